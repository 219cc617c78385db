"""What happened in a run of training, round by round and client by client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector
from fedaccord._io.csv import write_csv
from fedaccord.federation.algorithms.base import Counts

COLUMNS = ("round", "client", "samples", "unique", "loss", "accuracy")


@dataclass(frozen=True, eq=False)
class History:
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
        write_csv(path, COLUMNS, (["" if v != v else v for v in row] for row in self.rows()))

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

        def joined(name: str, **padding: Any) -> Any:
            columns = (getattr(part, name) for part in parts)
            padded = [np.pad(c, ((0, rounds - len(c)), (0, 0)), **padding) for c in columns]
            return np.concatenate(padded, axis=1)

        return cls(
            clients=tuple(name for part in parts for name in part.clients),
            requirements=np.concatenate([part.requirements for part in parts]),
            contributions=np.concatenate([part.contributions for part in parts]),
            algorithm=parts[0].algorithm,
            seed=parts[0].seed,
            samples=joined("samples"),
            unique=joined("unique", mode="edge"),
            loss=joined("loss", constant_values=np.nan),
            accuracy=joined("accuracy", constant_values=np.nan),
            diverged=any(part.diverged for part in parts),
            seconds=sum(part.seconds for part in parts),
        )
