"""What happens in a run of training, round by round and client by client.

`History` is the record of a finished run. `Session` is the record that every loop, here and under
Flower, keeps while it runs. Nothing here needs torch.
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
from fedaccord._lazy import Displayed
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import MOST_SAMPLES, Algorithm, Counts, Update
from fedaccord.federation.defection.tactic import Tactic

COLUMNS = ("round", "client", "samples", "unique", "loss", "accuracy")


@dataclass(frozen=True)
class WentOn:
    """The accuracies of clients that went on alone when training had ended.

    They are measured on what the run is judged by: scored samples, or else validation samples.

    given: of each client with the samples that it gave; NaN for those that did not go on.
    kept: the same with all samples that it has.
    """

    given: Vector
    kept: Vector


@dataclass(frozen=True, eq=False)
class GoalValues:
    """What came of each goal in the end, goal by goal, those of one client together.

    clients: whose goal it is.
    names: what it is called.
    targets: what the client wants.
    reached: whether the value does.
    values: on the validation points; NaN where training diverged before the client left.
    deviations: by how much a value varies with the draw of the points.
    scored: the values on the scored points; None where clients have none.
    """

    clients: tuple[str, ...]
    names: tuple[str, ...]
    targets: Vector
    reached: NDArray[np.bool_]
    values: Vector
    deviations: Vector
    scored: Vector | None = None

    @classmethod
    def join(cls, parts: Sequence[GoalValues]) -> GoalValues:
        """Join the goals of clients that trained alone."""

        def array(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            clients=tuple(name for part in parts for name in part.clients),
            names=tuple(name for part in parts for name in part.names),
            targets=array("targets"),
            reached=array("reached"),
            values=array("values"),
            deviations=array("deviations"),
            scored=None if parts[0].scored is None else array("scored"),
        )

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the goals as plain values, one entry each."""
        return [
            {
                "client": self.clients[n],
                "name": self.names[n],
                "target": float(self.targets[n]),
                "value": float(self.values[n]),
                "sd": float(self.deviations[n]),
                "reached": bool(self.reached[n]),
                **({} if self.scored is None else {"scored": float(self.scored[n])}),
            }
            for n in range(len(self.names))
        ]


@dataclass(frozen=True, eq=False)
class History(Displayed):
    """One run of training: arrays with one row per round and one column per client.

    clients: the clients' names.
    requirements: the accuracy each wants, mu.
    contributions: how many of its samples each gave, theta.
    algorithm: every setting of the algorithm.
    seed: of the run.
    samples: the draws of each client in each round.
    unique: how many different samples each had used by then.
    loss: the mean loss over the draws, NaN where there were none.
    accuracy: on the whole validation set, NaN in rounds without an evaluation.
    diverged: whether a loss was not finite; training stops there.
    seconds: how long it took.
    weights: the model's parameters after the last round, by name; none where clients trained alone.
    checkpoints: the parameters with which clients left before the end, or that were the last they
        were sent, by client; from then on accuracy has what each has.
    scored: the accuracy of each client's final model on its scored points, NaN where training
        diverged before the client left; None where clients have no scored points.
    went_on: the accuracies of clients that went on alone, if any did.
    tactic: what some clients did beyond giving less; None for nothing.
    goals: what came of each goal; None where all clients want an accuracy. Accuracies are then
        where clients stand: the value of a single goal, or what the goal with least to spare makes
        of it.
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
    scored: Vector | None = None
    went_on: WentOn | None = None
    tactic: Tactic | None = None
    goals: GoalValues | None = None

    def __repr__(self) -> str:
        state = "diverged" if self.diverged else f"{int(self.satisfied.sum())} satisfied"
        return (
            f"History({self.algorithm['kind']}, {len(self.clients)} clients, "
            f"{len(self.samples)} rounds, {state})"
        )

    @property
    def measure(self) -> str:
        """What accuracies are: a measure that all clients want, or where they stand."""
        if self.goals is None:
            return "accuracy"
        same = len(self.goals.names) == len(self.clients) and len(set(self.goals.names)) == 1
        return self.goals.names[0] if same else "standing"

    @property
    def final(self) -> Vector:
        """The accuracies at the last evaluation.

        NaN after training diverged, except for clients that had left before.
        """
        return np.asarray(self.accuracy[-1])

    @property
    def satisfied(self) -> NDArray[np.bool_]:
        """Which clients reach their goals at the last evaluation, or left having reached them."""
        return np.asarray(self._reached[-1])

    @property
    def scored_satisfied(self) -> NDArray[np.bool_] | None:
        """Which clients reach their accuracy on their scored points; None without such points."""
        return None if self.scored is None else np.asarray(self.scored >= self.requirements)

    @property
    def first_passage(self) -> Counts:
        """The round of the first evaluation at which each client reached its goal; 0 for never.

        Only every `evaluate_every`-th round and the last count, even if an algorithm tests goals
        more often: a client that is tested more often passes by chance more often.
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
        """Write the rows as CSV, replacing the file in one step; unknown values stay empty."""
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
            **({} if self.scored is None else {"scored": self.scored.tolist()}),
            **({} if self.goals is None else {"goals": self.goals.to_dict()}),
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

        scores = [part.scored for part in parts if part.scored is not None]
        goals = [part.goals for part in parts if part.goals is not None]
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
            scored=np.concatenate(scores) if len(scores) == len(parts) else None,
            checkpoints={part.clients[0]: part.weights for part in parts if not part.diverged},
            goals=GoalValues.join(goals) if goals else None,
        )


class Session:
    """A run of an algorithm, from its first round to its history.

    algorithm: how much each client draws, which clients may leave, and when training ends.
    names: the clients'.
    contributions: how many samples each client gives; nothing is drawn from one that gives none.
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
        # Which clients have left with the model of that time, and their accuracies then.
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
    def brought(self) -> Counts:
        """How many different points each client may be asked for now: what is called included."""
        called = self.algorithm.called(self.state)
        if called is None:
            return self.contributions
        found, given = np.asarray(called), self.contributions
        is_whole = found.shape == given.shape and found.dtype.kind in "iu"
        limits = self.algorithm.limits(given)
        # Fewer than a client's contribution may be asked for, too.
        if not is_whole or (found < -given).any() or (given + found > limits).any():
            raise InputError(
                f"called of {self.algorithm.name} must return {len(given)} whole numbers, one per "
                "client, that leave it at 0 samples or more and within its limits, or give None; "
                f"got {called!r}"
            )
        return frozen(given + found)

    @property
    def ended(self) -> bool:
        """Whether training is over before its last round."""
        return bool(self.algorithm.ended(self.state))

    def allot(self) -> Counts:
        """Return the algorithm's draws for a round, and check that they are counts."""
        algorithm, brought = self.algorithm, self.brought
        counts = np.asarray(algorithm.allot(self.state))
        if counts.shape != brought.shape or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise InputError(
                f"allot of {algorithm.name} must return {len(brought)} whole numbers of zero or "
                f"more, one per client; got {counts.tolist()}"
            )
        if (counts > MOST_SAMPLES).any():
            raise InputError(
                f"allot of {algorithm.name} gives a client {int(counts.max()):,} samples in one "
                f"round; the most is {MOST_SAMPLES:,}"
            )
        # Who was sent the model no more may be asked for what it owes, and so come back.
        asked = (brought > 0) & (~self.left | algorithm.withholds)
        return np.where(asked, counts, 0).astype(np.int64)

    def combine(self, updates: Sequence[Update], counts: Counts, clients: Sequence[int]) -> Update:
        """Return one update made of the clients' updates by the algorithm.

        updates: of those that drew samples.
        counts: how many each drew.
        clients: which they are, as places among all.
        """
        return self.algorithm.combine(self.state, updates, counts, np.asarray(clients))

    def advance(self, server: Update, mean: Update) -> Update:
        """Return the server's next model, and keep the algorithm's state."""
        model, state = self.algorithm.advance(self.state, server, mean)
        self._move_to(state, "advance")
        return model

    def hear(self, losses: Vector) -> None:
        """Let the algorithm know each client's mean loss under the present model."""
        if self.algorithm.hears:
            self._move_to(self.algorithm.heard(self.state, losses), "heard")

    def record_round(self, samples: Counts, unique: Counts, losses: Vector) -> None:
        """Start a round's row with its draws, the different samples so far, and its losses."""
        self._move_to(self.algorithm.drew(self.state, samples), "drew")
        self._move_to(self.algorithm.delivered(self.state, unique), "delivered")
        self._rows.append((samples, unique, losses, np.full(len(self.names), np.nan)))

    def record_accuracies(self, accuracies: Vector) -> None:
        """Complete the row with accuracies; a client that left keeps the one it left with."""
        self.accuracies[:] = self._measured(accuracies)

    def record_divergence(self) -> None:
        """Complete the row where training diverged; a client that left keeps its accuracy."""
        self._diverged = True
        self.accuracies[:] = self._kept

    def test(self, accuracies: Vector) -> NDArray[np.intp]:
        """Update the algorithm's state after a goal test; return which clients leave now.

        accuracies: what each client was found to have, NaN where that is not known.
        """
        # A client without samples is reported as satisfied: it cannot give more.
        passed_off = self.algorithm.passes_off_idle & (self.contributions == 0)
        wanting = np.where(passed_off, np.inf, self._measured(accuracies))
        following = self.algorithm.weights(self.state, wanting, self.requirements)
        self._move_to(following, "weights")
        leaving = self.part()
        self.keep(leaving, accuracies[leaving])
        return leaving

    def part(self) -> NDArray[np.intp]:
        """Ask the algorithm who has left; return who leaves now.

        Who is back, if an algorithm lets clients come back, has the common model again.
        """
        given = self.algorithm.left(self.state)
        left = np.zeros_like(self.left) if given is None else np.asarray(given)
        if left.shape != self.left.shape or left.dtype != np.bool_:
            raise InputError(
                f"left of {self.algorithm.name} must return true or false for each of the "
                f"{len(self.left)} clients, or give None; got {given!r}"
            )
        leaving = np.flatnonzero(left & ~self.left)
        self.left = frozen(left if self.algorithm.withholds else self.left | left)
        self._kept[~self.left] = np.nan
        return leaving

    def keep(self, clients: NDArray[np.intp], accuracies: Vector) -> None:
        """Note the accuracies of the models with which clients left."""
        self._kept[clients] = accuracies

    def history(
        self,
        weights: Mapping[str, NDArray[Any]] | None = None,
        checkpoints: Mapping[str, Mapping[str, NDArray[Any]]] | None = None,
    ) -> History:
        """Return the rounds recorded so far."""
        if not self._rows:
            raise FedaccordError("no round has been trained yet, so there is no history")
        columns = zip(*self._rows, strict=True)
        samples, unique, loss, accuracy = (frozen(np.array(column)) for column in columns)
        # A client that came back has the common model again.
        away = {name for name, left in zip(self.names, self.left, strict=True) if left}
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
            checkpoints={n: kept for n, kept in (checkpoints or {}).items() if n in away},
        )

    def _measured(self, accuracies: Vector) -> Vector:
        return np.where(self.left, self._kept, accuracies)

    def _move_to(self, state: object, hook: str) -> None:
        if state is None:
            raise InputError(
                f"{hook} of {self.algorithm.name} returned None; it must return the next state"
            )
        self.state = state
