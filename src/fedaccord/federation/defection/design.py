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
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.runs.engines import Source
from fedaccord.federation.runs.store import Run
from fedaccord.federation.runs.trials import PLANNING
from fedaccord.federation.training.rng import stream

PROTOCOLS = ("P1", "P2")
DEFECTORS = ("each", "random")
LEVELS = (1.0, 0.75, 0.5, 0.25, 0.05)
# How many trials it takes to find prescribed contributions.
PLANNING_TRIALS = 3


@dataclass(frozen=True)
class Design:
    """What an audit was asked, checked; made by `designed`.

    names: the clients'.
    points: how many each could bring.
    fingerprint: of the source of federations.
    algorithms: by name.
    levels: what part of its contribution a defector gives.
    trials: how many at most.
    protocol: "P1" or "P2".
    defectors: "each" or "random".
    width: how narrow an interval is enough.
    seed: of the audit.
    """

    names: tuple[str, ...]
    points: Contributions
    fingerprint: str
    algorithms: Mapping[str, Algorithm]
    levels: tuple[float, ...]
    trials: int
    protocol: str
    defectors: str
    width: float | None
    seed: int

    def run(
        self,
        algorithm: str,
        contributions: Contributions,
        trial: int,
        *,
        full: Contributions | None = None,
    ) -> Run:
        """Give a run of the audit; the same arguments always mean the same run.

        algorithm: its name.
        contributions: how many points each client brings.
        trial: which draw of clients and of chance.
        full: how many it has promised; all its points where left out.
        """
        return Run(
            source=self.fingerprint,
            algorithm=self.held_to(algorithm, full),
            contributions=contributions,
            base_seed=self.seed,
            trial=trial,
        )

    def held_to(self, algorithm: str, full: Contributions | None = None) -> Algorithm:
        """Give an algorithm as it is once clients have promised so much; who cuts has, too."""
        return self.algorithms[algorithm].committed(self.points if full is None else full)

    def defecting(self, full: Contributions, client: int, level: float) -> Contributions:
        """Give what clients bring when one defects.

            P1:  min(theta_i, level * points_i), for so much of its data is there
            P2:  level * theta_i

        full: theta, what everybody is to bring.
        client: i, who defects.
        level: what part of its points, or of what it is to bring, stays.
        """
        if self.protocol == "P2":
            return cut(full, client, level)
        left = min(full[client], cut(self.points, client, level)[client])
        return (*full[:client], left, *full[client + 1 :])

    def defectors_of(self, trial: int) -> range | list[int]:
        """Tell who defects in a trial; in any k trials from a multiple of k, everybody once."""
        clients = len(self.names)
        if self.defectors == "each":
            return range(clients)
        block, place = divmod(trial, clients)
        return [int(stream(self.seed, "defectors", block).permutation(clients)[place])]

    def cutting(self, trial: int, full: Contributions) -> list[int]:
        """Tell whose cuts are looked at in a trial: who defects, and in any case a contributor.

        A random client that is to bring nothing cannot cut. To learn as much of those who can, one
        of them is drawn beside it, each equally often.

        trial: which.
        full: what everybody is to bring.
        """
        drawn = list(self.defectors_of(trial))
        giving = [i for i, points in enumerate(full) if points]
        if not giving or any(full[i] for i in drawn):
            return drawn
        block, place = divmod(trial, len(giving))
        order = stream(self.seed, "contributors", block).permutation(giving)
        return [*drawn, int(order[place])]

    @property
    def drawn(self) -> int:
        """How many clients defect in a trial."""
        return len(self.names) if self.defectors == "each" else 1


def designed(
    source: Source,
    algorithms: Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm],
    *,
    levels: Sequence[float],
    trials: int,
    protocol: str,
    defectors: str,
    width: float | None,
    seed: int,
) -> Design:
    """Check what an audit is asked; the arguments are those of `defection_curves`."""
    return Design(
        names=tuple(source.names),
        points=tuple(int(n) for n in source.points),
        fingerprint=source.fingerprint,
        algorithms=_named(algorithms),
        levels=_checked_levels(levels),
        trials=_checked_trials(trials),
        protocol=chosen("protocol", protocol, PROTOCOLS),
        defectors=chosen("defectors", defectors, DEFECTORS),
        width=_checked_width(width),
        seed=_checked_seed(seed),
    )


def cut(full: Contributions, client: int, level: float) -> Contributions:
    """Cut one client's contribution to a level, half up to whole points and at least one.

    full: everybody's contributions.
    client: whose is cut; nothing is left of nothing.
    level: what part of it stays.
    """
    # A level such as 0.29 is taken as 29/100: of 50 points that is 14.5, and no float says so.
    part = simplest_fraction(level) * full[client]
    whole = min(full[client], max(1, math.floor(part + Fraction(1, 2))))
    return (*full[:client], whole, *full[client + 1 :])


def _named(
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


def _checked_levels(levels: Sequence[object]) -> tuple[float, ...]:
    found: list[float] = []
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level <= 1:
            raise InputError(
                f"a level must be a number above 0 and at most 1, the part of its contribution "
                f"that a defector gives; got {level!r}"
            )
        if level in found:
            raise InputError(f"the level {level:g} comes twice; give it once")
        found.append(float(level))
    if not found:
        raise InputError("there is no level to audit; give at least one, such as 0.25")
    return tuple(found)


def _checked_trials(trials: object) -> int:
    if isinstance(trials, bool) or not isinstance(trials, int) or not 1 <= trials <= PLANNING:
        raise InputError(f"trials must be a whole number from 1 to {PLANNING}; got {trials!r}")
    return trials


def _checked_seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number, zero or more; got {seed!r}")
    return seed


def _checked_width(width: float | None) -> float | None:
    if width is not None and not 0 < width < 1:
        raise InputError(
            f"width must be between 0 and 1, the interval's upper end less its lower; got {width!r}"
        )
    return width


def chosen(what: str, value: str, known: Sequence[str]) -> str:
    """Give a choice that is among those known, or say which are."""
    if value not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}; got {value!r}")
    return value


def checked_plans(
    design: Design, plan: Allocation | Mapping[str, Allocation] | None
) -> dict[str, Contributions]:
    """Give the contributions of each algorithm that has a plan.

    design: of the audit.
    plan: one for all algorithms, or by their names.
    """
    if plan is None:
        return {}
    if isinstance(plan, Allocation):
        return dict.fromkeys(design.algorithms, _whole(design, plan, "the plan"))
    for name in plan:
        if name not in design.algorithms:
            known = ", ".join(design.algorithms)
            raise InputError(f"there is a plan for {name}, which is not audited; there is {known}")
    return {name: _whole(design, one, f"the plan of {name}") for name, one in plan.items()}


def _whole(design: Design, plan: Allocation, what: str) -> Contributions:
    """Give the contributions of a plan in the clients' order, rounded up to whole points."""
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
