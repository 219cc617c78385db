"""The server's book: who is in, what each is asked for, what each gave. Free of any framework."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._arrays import Vector, frozen
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import Algorithm, allotted, reweighed
from fedaccord.federation.allotment import Counts
from fedaccord.federation.history import History

Requirements = float | Mapping[str, float]

# Contributions of a plan that are whole but for rounding are not rounded up.
NEARLY = 1e-6


class Ledger:
    """The clients by name, their quotas and the algorithm's weights, and the rows of the history.

    algorithm: who draws how much.
    names: of all members, whether they are there or not; weights are kept by name.
    requirements: the accuracy each wants; one number for all.
    quotas: how many different points each may be asked for, at most; all it has where left out.
    seed: of the run.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        names: Sequence[str],
        *,
        requirements: Requirements,
        quotas: Mapping[str, int] | None = None,
        seed: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.names = tuple(names)
        self.requirements = _wanted(requirements, self.names)
        self.seed = seed
        self.diverged = False
        self._quotas = quotas
        self._points: dict[str, int] = {}
        self._drawn = np.zeros(len(self.names), dtype=np.int64)
        self._state = algorithm.init(len(self.names))
        self._rows: list[tuple[Counts, Counts, Vector, Vector]] = []
        self._started = time.perf_counter()

    @property
    def contributions(self) -> Counts:
        """How many different points each brings; none who was not heard of."""
        return np.array([self._brought(name) for name in self.names], dtype=np.int64)

    def _brought(self, name: str) -> int:
        return self._points.get(name, 0) if self._quotas is None else self._quotas[name]

    def quota(self, name: str) -> int | None:
        """How many different points a client may be asked for; None for all it has."""
        return None if self._quotas is None else self._quotas[name]

    def drawn(self, name: str) -> int:
        """How many samples a client drew so far."""
        return int(self._drawn[self.names.index(name)])

    def learn_points(self, name: str, points: int) -> None:
        """Note how many points a client has; a quota above that cannot be kept."""
        quota = self.quota(name)
        if quota is not None and quota > points:
            raise InputError(
                f"the plan asks {name} for {quota:,} points and it has {points:,}; plan anew with "
                f"a limit of {points:,} for {name}"
            )
        self._points[name] = points

    def allot(self, present: Collection[str]) -> dict[str, int]:
        """Divide a round's samples; who is not there draws none, and nobody draws them instead."""
        counts = allotted(self.algorithm, self._state, self.contributions)
        named = zip(self.names, counts.tolist(), strict=True)
        return {name: count for name, count in named if name in present and count > 0}

    def note_training(self, used: Mapping[str, int], losses: Mapping[str, float]) -> None:
        """Begin a row with a round's samples and, where they are known, losses."""
        samples = np.array([used.get(name, 0) for name in self.names], dtype=np.int64)
        self._drawn += samples
        loss = np.array([losses.get(name, np.nan) for name in self.names])
        unknown = np.full(len(self.names), np.nan)
        self._rows.append((samples, np.minimum(self._drawn, self.contributions), loss, unknown))

    def note_evaluation(
        self, accuracies: Mapping[str, float], tested: Mapping[str, float] | None = None
    ) -> None:
        """Complete the last row, and let the algorithm react to who is short of its goal.

        accuracies: on all validation points; none in a round without an evaluation.
        tested: on the points that the goal test looked at, where those are fewer.
        """
        self._rows[-1][3][:] = self._ordered(accuracies)
        if self.algorithm.tests_goal:
            found = self._ordered(accuracies if tested is None else tested)
            self._state = reweighed(
                self.algorithm, self._state, found, self.requirements, self.contributions
            )

    def _ordered(self, values: Mapping[str, float]) -> Vector:
        return np.array([values.get(name, np.nan) for name in self.names])

    @property
    def satisfied(self) -> NDArray[np.bool_]:
        """Who had its accuracy in the last row; nobody whose accuracy is not known."""
        return np.asarray(self._rows[-1][3] >= self.requirements)

    @property
    def state(self) -> Any:
        """The algorithm's weights, in the order of the names."""
        return self._state

    def history(self, weights: Mapping[str, NDArray[Any]] | None = None) -> History:
        """Give the rounds noted so far.

        weights: the model's parameters after the last round.
        """
        shape = (0, len(self.names))
        columns = zip(*self._rows, strict=True) if self._rows else (np.zeros(shape),) * 4
        samples, unique, loss, accuracy = (frozen(np.array(column)) for column in columns)
        return History(
            clients=self.names,
            requirements=frozen(self.requirements),
            contributions=frozen(self.contributions),
            algorithm=self.algorithm.to_dict(),
            seed=self.seed,
            samples=samples,
            unique=unique,
            loss=loss,
            accuracy=accuracy,
            diverged=self.diverged,
            seconds=time.perf_counter() - self._started,
            weights=dict(weights or {}),
        )


def whole_quotas(plan: Allocation, names: Sequence[str]) -> dict[str, int]:
    """Read a plan as quotas, each rounded up to a whole point: who gives less may fall short.

    plan: who gives how much, with names.
    names: of the members.
    """
    values = plan.ordered_for(names).contributions
    if len(values) != len(names):
        raise InputError(
            f"the plan has {len(values)} contributions, and {len(names)} clients are there; give "
            "the plan the clients' names"
        )
    if not values.any():
        raise InputError("the plan asks nobody for any point; let at least one client bring some")
    return dict(zip(names, np.ceil(values - NEARLY).astype(np.int64).tolist(), strict=True))


def _wanted(requirements: Requirements, names: Sequence[str]) -> Vector:
    if not isinstance(requirements, Mapping):
        requirements = dict.fromkeys(names, requirements)
    for name in names:
        if name not in requirements:
            raise InputError(f"no requirement is given for {name}; say what accuracy it wants")
        given: Any = requirements[name]
        number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
        if not (number and 0 < given <= 1):
            raise InputError(
                f"the requirement of {name} must be an accuracy above 0 and at most 1; got "
                f"{given!r}"
            )
    return np.array([float(requirements[name]) for name in names])
