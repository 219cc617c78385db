"""An algorithm under way: what it asks of each client, who has left, and the rounds so far.

One account for every loop, here and under Flower. Nothing here needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, frozen
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import MOST_SAMPLES, Algorithm, Counts, Update
from fedaccord.federation.history import History


class Session:
    """A run of an algorithm, from its first round to its history.

    algorithm: who draws how much, who may leave, and when it ends.
    names: the clients'.
    contributions: how many points each client brings; who brings none is asked for none.
    requirements: the accuracy each wants.
    seed: of the run.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        names: Sequence[str],
        contributions: Counts,
        requirements: Vector,
        *,
        seed: int,
    ) -> None:
        self.algorithm = algorithm
        self.names = tuple(names)
        self.contributions = contributions
        self.requirements = requirements
        self.seed = seed
        self.state = algorithm.begin(contributions)
        # Who has left with the model as it was then, and the accuracy it left with.
        self.left = frozen(np.zeros(len(self.names), dtype=bool))
        self._kept = np.full(len(self.names), np.nan)
        self._rows: list[tuple[Counts, Counts, Vector, Vector]] = []
        self._diverged = False
        self._started = time.perf_counter()

    @property
    def rounds(self) -> int:
        """How many rounds have been recorded."""
        return len(self._rows)

    @property
    def accuracies(self) -> Vector:
        """The accuracies of the last round; NaN where none were measured."""
        return self._rows[-1][-1]

    @property
    def ended(self) -> bool:
        """Whether training is over before its last round."""
        return bool(self.algorithm.ended(self.state))

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

    def record_round(self, samples: Counts, unique: Counts, losses: Vector) -> None:
        """Begin a round's row with its samples, the different points so far, and its losses."""
        self._move_to(self.algorithm.drew(self.state, samples), "drew")
        self._rows.append((samples, unique, losses, np.full(len(self.names), np.nan)))

    def record_accuracies(self, accuracies: Vector) -> None:
        """Complete the row with the accuracies; who has left has the one it left with."""
        self.accuracies[:] = self._measured(accuracies)

    def record_divergence(self) -> None:
        """Complete the row where training diverged: who left has what it left with."""
        self._diverged = True
        self.accuracies[:] = self._kept

    def test(self, accuracies: Vector) -> NDArray[np.intp]:
        """Let the algorithm react to a goal test; return who leaves with the present model.

        accuracies: what each client was found to have, NaN where that is not known.
        """
        # Who brings nothing is passed off as satisfied, for more cannot be asked of it.
        passed_off = self.algorithm.passes_off_idle & (self.contributions == 0)
        wanting = np.where(passed_off, np.inf, self._measured(accuracies))
        following = self.algorithm.weights(self.state, wanting, self.requirements)
        self._move_to(following, "weights")
        given = self.algorithm.left(self.state)
        left = np.zeros_like(self.left) if given is None else np.asarray(given)
        if left.shape != self.left.shape or left.dtype != np.bool_:
            raise InputError(
                f"left of {self.algorithm.name} must say true or false of each of the "
                f"{len(self.left)} clients, or give None; got {given!r}"
            )
        leaving = np.flatnonzero(left & ~self.left)
        # Nobody returns.
        self.left = frozen(self.left | left)
        self._kept[leaving] = accuracies[leaving]
        return leaving

    def history(
        self,
        weights: Mapping[str, NDArray[Any]] | None = None,
        checkpoints: Mapping[str, Mapping[str, NDArray[Any]]] | None = None,
    ) -> History:
        """Return the rounds recorded so far.

        weights: the model's parameters after the last round.
        checkpoints: those that clients left with.
        """
        if not self._rows:
            raise FedaccordError("no round has been trained yet, so there is no history")
        columns = zip(*self._rows, strict=True)
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
            diverged=self._diverged,
            seconds=time.perf_counter() - self._started,
            weights=dict(weights or {}),
            checkpoints=dict(checkpoints or {}),
        )

    def _measured(self, accuracies: Vector) -> Vector:
        return np.where(self.left, self._kept, accuracies)

    def _move_to(self, state: object, hook: str) -> None:
        if state is None:
            raise InputError(
                f"{hook} of {self.algorithm.name} gave None; let it return the next state"
            )
        self.state = state
