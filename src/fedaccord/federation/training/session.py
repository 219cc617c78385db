"""An algorithm under way: what it asks of each client in a round, who has left, when it ends.

One account for every loop, here and under Flower, and one of what happened. Nothing here needs
torch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, frozen
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.allotment import Counts, Update
from fedaccord.federation.algorithms.base import MOST_SAMPLES, Algorithm
from fedaccord.federation.history import History


class Course:
    """Follows an algorithm through a run.

    algorithm: who draws how much, who may leave, and when it ends.
    contributions: how many points each client brings; who brings none is asked for none.
    requirements: the accuracy each wants.
    """

    def __init__(self, algorithm: Algorithm, contributions: Counts, requirements: Vector) -> None:
        self.algorithm = algorithm
        self.contributions = contributions
        self.state = algorithm.begin(contributions)
        self.requirements = requirements
        # Who has left, and the accuracy it left with.
        self._gone = np.zeros(len(requirements), dtype=bool)
        self._kept = np.full(len(requirements), np.nan)

    def allot(self) -> Counts:
        """Ask the algorithm for a round's samples, and see to it that they are counts."""
        algorithm, brought = self.algorithm, self.contributions
        counts = np.asarray(algorithm.allot(self.state))
        if counts.shape != brought.shape or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise InputError(
                f"allot of {algorithm.name} must give {len(brought)} whole numbers of zero or "
                f"more, one per client; got {counts.tolist()}"
            )
        if (counts > MOST_SAMPLES).any():
            raise InputError(
                f"allot of {algorithm.name} gives a client {int(counts.max()):,} samples in one "
                f"round; let it be at most {MOST_SAMPLES:,}"
            )
        return np.where((brought > 0) & ~self.left, counts, 0).astype(np.int64)

    def combine(self, updates: Sequence[Update], counts: Counts, clients: Sequence[int]) -> Update:
        """Ask the algorithm for one update out of the clients'.

        updates: of those that drew samples.
        counts: how many each drew.
        clients: which they are, as places among all.
        """
        return self.algorithm.combine(self.state, updates, counts, np.asarray(clients))

    def drew(self, counts: Counts) -> None:
        """Take note of the samples that went into the model in a round."""
        self.state = self._next(self.algorithm.drew(self.state, counts), "drew")

    def measured(self, accuracies: Vector) -> Vector:
        """Return what was measured; of who has left, the accuracy it left with."""
        return np.where(self.left, self._kept, accuracies)

    @property
    def kept(self) -> Vector:
        """The accuracies that clients left with; NaN of who has not left."""
        return self.measured(np.full(len(self._kept), np.nan))

    def test(self, accuracies: Vector) -> NDArray[np.intp]:
        """Let the algorithm react to a goal test, and tell who leaves with the present model.

        accuracies: what each client was found to have, NaN where that is not known.
        """
        # Who brings nothing is passed off as satisfied, for more cannot be asked of it.
        passed_off = self.algorithm.passes_off_idle & (self.contributions == 0)
        wanting = np.where(passed_off, np.inf, self.measured(accuracies))
        following = self.algorithm.weights(self.state, wanting, self.requirements)
        self.state = self._next(following, "weights")
        leaving = np.flatnonzero(self._left_now() & ~self._gone)
        self._gone[leaving] = True
        self._kept[leaving] = accuracies[leaving]
        return leaving

    @property
    def left(self) -> NDArray[np.bool_]:
        """Who has left, with the model as it was then; nobody returns."""
        return self._gone.copy()

    @property
    def ended(self) -> bool:
        """Whether training is over before its last round."""
        return bool(self.algorithm.ended(self.state))

    def _left_now(self) -> NDArray[np.bool_]:
        given = self.algorithm.left(self.state)
        left = np.zeros_like(self._gone) if given is None else np.asarray(given)
        if left.shape != self._gone.shape or left.dtype != np.bool_:
            raise InputError(
                f"left of {self.algorithm.name} must say true or false of each of the "
                f"{len(self._gone)} clients, or give None; got {given!r}"
            )
        return left

    def _next(self, state: object, hook: str) -> object:
        if state is None:
            raise InputError(
                f"{hook} of {self.algorithm.name} gave None; let it return the next state"
            )
        return state


class Notes:
    """The rounds of a history while it is being made.

    course: of the algorithm.
    names: the clients'.
    seed: of the run.
    """

    def __init__(self, course: Course, names: Sequence[str], *, seed: int) -> None:
        self.course = course
        self.diverged = False
        self._names = tuple(names)
        self._seed = seed
        self._rows: list[tuple[Counts, Counts, Vector, Vector]] = []
        self._started = time.perf_counter()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def last(self) -> Vector:
        """The accuracies of the last round; NaN where none were measured."""
        return self._rows[-1][-1]

    def training(self, samples: Counts, unique: Counts, losses: Vector) -> None:
        """Begin a round's row with its samples, the different points so far, and its losses."""
        self.course.drew(samples)
        self._rows.append((samples, unique, losses, np.full(len(self._names), np.nan)))

    def evaluation(self, accuracies: Vector) -> None:
        """Complete the row with the accuracies; who has left has the one it left with."""
        self.last[:] = self.course.measured(accuracies)

    def ruin(self) -> None:
        """Complete the row where training diverged: who left has what it left with."""
        self.diverged = True
        self.last[:] = self.course.kept

    def history(
        self,
        weights: Mapping[str, NDArray[Any]] | None = None,
        checkpoints: Mapping[str, Mapping[str, NDArray[Any]]] | None = None,
    ) -> History:
        """Return the rounds noted so far.

        weights: the model's parameters after the last round.
        checkpoints: those that clients left with.
        """
        columns = zip(*self._rows, strict=True)
        samples, unique, loss, accuracy = (frozen(np.array(column)) for column in columns)
        return History(
            clients=self._names,
            requirements=frozen(self.course.requirements),
            contributions=frozen(self.course.contributions),
            algorithm=self.course.algorithm.to_dict(),
            seed=self._seed,
            samples=samples,
            unique=unique,
            loss=loss,
            accuracy=accuracy,
            diverged=self.diverged,
            seconds=time.perf_counter() - self._started,
            weights=dict(weights or {}),
            checkpoints=dict(checkpoints or {}),
        )
