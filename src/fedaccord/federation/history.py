"""What happens in a run of training, round by round and client by client.

`History` is what comes of a run, and `Session` the account that every loop keeps while it lasts,
here and under Flower. Nothing here needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, frozen
from fedaccord._display import Displayed
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import MOST_SAMPLES, Algorithm, Counts, Update

COLUMNS = ("round", "client", "samples", "unique", "loss", "accuracy")


@dataclass(frozen=True, eq=False)
class History(Displayed):
    """One run of training: arrays of one row a round and one column a client.

    clients: the clients' names.
    requirements: the accuracy each wants, mu.
    contributions: how many of its own points each brought, theta.
    algorithm: every setting of the algorithm.
    seed: of the run.
    samples: how many samples each client drew in each round.
    unique: how many different points each had used by then.
    loss: the mean loss over the samples drawn, NaN where none were.
    accuracy: on the whole validation set, NaN in rounds without an evaluation.
    diverged: whether a loss was not finite; training stops there.
    seconds: how long it took.
    weights: the model's parameters after the last round, by name; none where clients trained alone.
    checkpoints: the parameters with which clients left before the end, by client; from then on
        accuracy has what each left with.
    """

    clients: tuple[str, ...]
    requirements: Vector
    contributions: Counts
    algorithm: dict[str, Any]
    seed: int
    samples: Counts
    unique: Counts
    loss: Vector
    accuracy: Vector
    diverged: bool
    seconds: float
    weights: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    checkpoints: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        state = "diverged" if self.diverged else f"{int(self.satisfied.sum())} satisfied"
        return (
            f"History({self.algorithm['kind']}, {len(self.clients)} clients, "
            f"{len(self.samples)} rounds, {state})"
        )

    @property
    def final(self) -> Vector:
        """The accuracies at the last evaluation.

        After training diverged NaN, but of who had left before: it has what it left with.
        """
        return np.asarray(self.accuracy[-1])

    @property
    def satisfied(self) -> NDArray[np.bool_]:
        """Who has its accuracy at the last evaluation, or left with it before training diverged."""
        return np.asarray(self._reached[-1])

    @property
    def first_passage(self) -> Counts:
        """The first evaluation, by its round, at which each client had its accuracy; 0 for never.

        Only every `evaluate_every`-th round and the last count, even where an algorithm looks
        more often for its own purposes: who is looked at more often passes by chance more often.
        """
        rounds = np.arange(1, len(self.accuracy) + 1)
        common = rounds % self.algorithm.get("evaluate_every", 1) == 0
        common[-1] = True
        reached = self._reached & common[:, None]
        return np.where(reached.any(axis=0), reached.argmax(axis=0) + 1, 0)

    @property
    def _reached(self) -> NDArray[np.bool_]:
        # A comparison with NaN is false: a round without an evaluation reaches nothing.
        return np.asarray(self.accuracy >= self.requirements)

    def rows(self) -> Iterator[tuple[int, str, int, int, float, float]]:
        """Return one row per round and client, with the columns COLUMNS; rounds count from 1."""
        for n in range(len(self.samples)):
            for i, client in enumerate(self.clients):
                yield (
                    n + 1,
                    client,
                    int(self.samples[n, i]),
                    int(self.unique[n, i]),
                    float(self.loss[n, i]),
                    float(self.accuracy[n, i]),
                )

    def save(self, path: str | Path) -> None:
        """Write the rows as CSV, replacing the file in one step; what is not known stays empty."""
        from fedaccord._io.table import write_table

        write_table(path, COLUMNS, (["" if v != v else v for v in row] for row in self.rows()))

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values, the rounds as lists."""
        return {
            "clients": list(self.clients),
            "requirements": self.requirements.tolist(),
            "contributions": self.contributions.tolist(),
            "algorithm": self.algorithm,
            "seed": self.seed,
            "satisfied": self.satisfied.tolist(),
            "first_passage": self.first_passage.tolist(),
            "diverged": self.diverged,
            "samples": self.samples.tolist(),
            "unique": self.unique.tolist(),
            "loss": self.loss.tolist(),
            "accuracy": self.accuracy.tolist(),
            "seconds": self.seconds,
        }

    @classmethod
    def side_by_side(cls, parts: list[History]) -> History:
        """Join the histories of runs that clients made alone, of equal length or diverged."""
        rounds = max(len(part.samples) for part in parts)

        def join(name: str, **padding: Any) -> Any:
            columns = (getattr(part, name) for part in parts)
            padded = [np.pad(c, ((0, rounds - len(c)), (0, 0)), **padding) for c in columns]
            return np.concatenate(padded, axis=1)

        return cls(
            clients=tuple(name for part in parts for name in part.clients),
            requirements=np.concatenate([part.requirements for part in parts]),
            contributions=np.concatenate([part.contributions for part in parts]),
            algorithm=parts[0].algorithm,
            seed=parts[0].seed,
            samples=join("samples"),
            unique=join("unique", mode="edge"),
            loss=join("loss", constant_values=np.nan),
            accuracy=join("accuracy", constant_values=np.nan),
            diverged=any(part.diverged for part in parts),
            seconds=sum(part.seconds for part in parts),
        )


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
