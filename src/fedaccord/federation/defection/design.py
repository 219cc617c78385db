"""The design of a defection audit: which runs it takes, checked before any of them is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fedaccord._checks import simplest_fraction
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.runs.engines import Source
from fedaccord.federation.runs.store import Run
from fedaccord.federation.training.rng import stream

# How many trials find the contributions to prescribe.
PLANNING_TRIALS = 3


@dataclass(frozen=True)
class Design:
    """An audit of a federation; made by `Design.of`.

    names: the clients'.
    points: how many each could bring.
    fingerprint: of the source of federations.
    algorithms: by name.
    options: what was asked.
    first: the number of the first trial.
    """

    names: tuple[str, ...]
    points: Contributions
    fingerprint: str
    algorithms: Mapping[str, Algorithm]
    options: AuditOptions
    first: int = 0

    @classmethod
    def of(
        cls,
        source: Source,
        algorithms: Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm],
        options: AuditOptions,
        *,
        first: int = 0,
    ) -> Design:
        """Return the design of an audit; the arguments are those of `defection_curves`."""
        return cls(
            names=tuple(source.names),
            points=tuple(int(n) for n in source.points),
            fingerprint=source.fingerprint,
            algorithms=_name_each(algorithms),
            options=options,
            first=first,
        )

    def run(
        self,
        algorithm: str,
        contributions: Contributions,
        trial: int,
        *,
        full: Contributions | None = None,
    ) -> Run:
        """Return a run of the audit; the same arguments always mean the same run.

        algorithm: its name.
        contributions: how many points each client brings.
        trial: which draw of clients and of chance.
        full: how many it has pledged; all its points where left out.
        """
        return Run(
            source=self.fingerprint,
            algorithm=self.pledge(algorithm, full),
            contributions=contributions,
            base_seed=self.options.seed,
            trial=trial,
        )

    def pledge(self, algorithm: str, full: Contributions | None = None) -> Algorithm:
        """Return an algorithm with what clients have pledged; a defector has pledged it too."""
        return self.algorithms[algorithm].committed(self.points if full is None else full)

    def defect(self, full: Contributions, client: int, level: float) -> Contributions:
        """Return what clients contribute when one of them defects.

            P1:  min(theta_i, level * points_i), since it has no more data left
            P2:  level * theta_i

        full: theta, what everybody is to bring.
        client: i, who defects.
        level: what part of its points, or of what it is to bring, stays.
        """
        if self.options.protocol == "P2":
            return cut(full, client, level)
        left = min(full[client], cut(self.points, client, level)[client])
        return (*full[:client], left, *full[client + 1 :])

    def defectors_of(self, trial: int) -> range | list[int]:
        """Return who defects in a trial; in any k trials from a multiple of k, everyone once."""
        clients = len(self.names)
        if self.options.defectors == "each":
            return range(clients)
        block, place = divmod(trial, clients)
        return [int(stream(self.options.seed, "defectors", block).permutation(clients)[place])]

    def choose_defectors(self, trial: int, full: Contributions) -> list[int]:
        """Return who defects in a trial, at least one contributor among them.

        A random client that is to contribute nothing cannot defect. In its trials a contributor is
        drawn as well, each equally often.

        trial: which.
        full: what everyone is to contribute.
        """
        drawn = list(self.defectors_of(trial))
        giving = [i for i, points in enumerate(full) if points]
        if not giving or any(full[i] for i in drawn):
            return drawn
        block, place = divmod(trial, len(giving))
        order = stream(self.options.seed, "contributors", block).permutation(giving)
        return [*drawn, int(order[place])]

    @property
    def drawn(self) -> int:
        """How many clients defect in a trial."""
        return len(self.names) if self.options.defectors == "each" else 1


def cut(full: Contributions, client: int, level: float) -> Contributions:
    """Return contributions with one client's cut to a level, half up and at least one point.

    full: everybody's contributions.
    client: whose is cut; nothing is left of nothing.
    level: what part of it stays.
    """
    # A level such as 0.29 is taken as 29/100: of 50 points that is 14.5, and no float says so.
    part = simplest_fraction(level) * full[client]
    whole = min(full[client], max(1, math.floor(part + Fraction(1, 2))))
    return (*full[:client], whole, *full[client + 1 :])


def _name_each(
    algorithms: Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm],
) -> dict[str, Algorithm]:
    if isinstance(algorithms, Algorithm):
        algorithms = [algorithms]
    pairs = (
        list(algorithms.items())
        if isinstance(algorithms, Mapping)
        else [(getattr(a, "name", ""), a) for a in algorithms]
    )
    if not pairs:
        raise InputError("there is no algorithm to audit; give at least one, such as FedAvg()")
    for name, algorithm in pairs:
        if not isinstance(algorithm, Algorithm):
            raise InputError(f"an algorithm is needed, such as FedAvg(); got {algorithm!r}")
        if [other for other, _ in pairs].count(name) > 1:
            raise InputError(
                f"two algorithms are called {name}; give a dict with a name for each of them"
            )
    return dict(pairs)


def read_plans(design: Design) -> dict[str, Contributions]:
    """Return the contributions of each algorithm that has a plan, or raise an InputError.

    design: of the audit.
    """
    plan = design.options.plan
    if plan is None:
        return {}
    if isinstance(plan, str):
        plan = Allocation.load(plan)
    if isinstance(plan, Allocation):
        return dict.fromkeys(design.algorithms, _round_up(design, plan, "the plan"))
    for name in plan:
        if name not in design.algorithms:
            known = ", ".join(design.algorithms)
            raise InputError(f"there is a plan for {name}, which is not audited; there is {known}")
    return {name: _round_up(design, one, f"the plan of {name}") for name, one in plan.items()}


def _round_up(design: Design, plan: Allocation, what: str) -> Contributions:
    """Return the contributions of a plan in the clients' order, rounded up to whole points."""
    names, points = design.names, design.points
    try:
        amounts = plan.ordered_for(names).contributions
    except InputError as error:
        raise InputError(f"{what} does not fit: {error}") from None
    if len(amounts) != len(names):
        raise InputError(f"{what} is for {len(amounts)} clients; there are {len(names)}")
    # Solvers give 80.00000001 for 80, which is not 81.
    whole = tuple(math.ceil(round(float(amount), 6)) for amount in amounts)
    for name, wanted, there in zip(names, whole, points, strict=True):
        if wanted > there:
            raise InputError(
                f"{what} asks {name} for {wanted} points, and it has {there}; lower that, or "
                "give it more data"
            )
    if not any(whole):
        raise InputError(f"{what} asks nobody for anything; somebody must contribute")
    return whole
