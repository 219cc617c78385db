"""The server's book: which clients take part, their quotas and draws. Needs no framework."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.history import Session
from fedaccord.federation.remote.members import Requirements, read_requirements
from fedaccord.federation.remote.protocol import (
    ALL_POINTS,
    LARGEST,
    EvaluateOrder,
    TrainOrder,
)


class Ledger(Session):
    """A session whose clients are known by name, and come and go.

    Who is heard of later brings its points from then on; an algorithm that goes by what was brought
    at first, or was promised, has no use for them.

    algorithm: who draws how much.
    points: how many points each member has; None where it has not said so yet.
    requirements: the accuracy each wants; one number for all.
    quotas: how many different points each may be asked for, at most; all it has where left out.
    seed: of the run.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        points: Mapping[str, int | None],
        *,
        requirements: Requirements,
        quotas: Mapping[str, int] | None = None,
        seed: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.names = tuple(points)
        # At how many evaluations, up to the last, everybody had its accuracy.
        self.goals_in_a_row = 0
        self._quotas = quotas
        self._points: dict[str, int] = {}
        self._drawn = np.zeros(len(self.names), dtype=np.int64)
        self._fresh = np.zeros(len(self.names), dtype=np.int64)
        # How the quota of each changed, with what it had drawn by then.
        self._changes: dict[str, list[tuple[int, int]]] = {}
        # How many rounds had their goal test.
        self._tested = 0
        wanted = read_requirements(requirements, self.names)
        for name, count in points.items():
            if count is not None:
                self.learn_points(name, count)
        brought = self._brought()
        if not brought.any():
            raise InputError("no client has any samples: check the clients' data")
        super().__init__(algorithm, self.names, brought, wanted, seed=seed)

    def learn_points(self, name: str, points: int) -> None:
        """Note how many points a client has, once: its draws, and so its quota, depend on it."""
        quota = points if self._quotas is None else self._quotas[name]
        # Where the model is earned, who has too few points is held to its pledge all the same.
        if quota > points and not self.algorithm.withholds:
            raise InputError(
                f"the plan asks {name} for {quota:,} samples and it has {points:,}; plan again "
                f"with a limit of {points:,} for {name}"
            )
        if self._points.get(name, points) != points:
            raise InputError(
                f"{name} had {self._points[name]:,} samples and came back with {points:,}; give it "
                "the same samples until the run is over, or it would draw different ones"
            )
        self._points[name] = points
        self.contributions = self._brought()

    def _brought(self) -> Counts:
        """Return how many different points each brings; none who was not heard of."""
        quotas = self._points if self._quotas is None else self._quotas
        brought = [min(quotas.get(name, 0), self._points.get(name, LARGEST)) for name in self.names]
        return np.array(brought, dtype=np.int64)

    @property
    def staying(self) -> list[str]:
        """Who has not left with a model of its own."""
        return [name for name, left in zip(self.names, self.left, strict=True) if not left]

    @property
    def without_model(self) -> list[str]:
        """Who gets no further model for now, and may come back."""
        left = zip(self.names, self.left, strict=True)
        return [name for name, out in left if out] if self.algorithm.withholds else []

    @property
    def unmeasured(self) -> list[str]:
        """Who keeps an older model whose accuracy is not known."""
        kept = dict(zip(self.names, self._kept.tolist(), strict=True))
        return [name for name in self.without_model if kept[name] != kept[name]]

    def keep_accuracy(self, name: str, accuracy: float) -> None:
        """Note what a client reaches with the older model that it keeps."""
        self.keep(np.array([self.names.index(name)]), np.array([accuracy]))

    def allot_to(self, present: Collection[str]) -> dict[str, int]:
        """Divide a round's samples; who is not there draws none, and nobody draws them instead."""
        named = zip(self.names, self.allot().tolist(), strict=True)
        able = {name for name in present if self._points.get(name)}
        return {name: count for name, count in named if name in able and count > 0}

    def train_order(
        self, name: str, samples: int, server_round: int, *, report: Sequence[str] = ()
    ) -> TrainOrder:
        """Return what a client is to do in a round."""
        place = self.names.index(name)
        quota, changes = self._note_quota(place)
        return TrainOrder(
            server_round=server_round,
            client=name,
            seed=int(self.seed),
            num_samples=samples,
            quota=quota,
            num_points=self._points.get(name, 0),
            drawn=int(self._drawn[place]),
            form=self.algorithm.form,
            batch_size=self.algorithm.batch_size,
            optimizer=self.algorithm.optimizer,
            learning_rate=float(self.algorithm.learning_rate),
            report=",".join(report),
            changes=",".join(f"{before}:{most}" for before, most in changes),
        )

    def _note_quota(self, place: int) -> tuple[int, list[tuple[int, int]]]:
        """Return a client's quota now, and how it changed, if it did."""
        if self._quotas is None and self.algorithm.called(self.state) is None:
            return ALL_POINTS, []
        name, now = self.names[place], int(self.brought[place])
        changes = self._changes.setdefault(name, [(0, int(self.contributions[place]))])
        if changes[-1][1] != now:
            changes.append((int(self._drawn[place]), now))
        return now, changes if len(changes) > 1 else []

    def evaluate_order(
        self, name: str, server_round: int, *, whole: bool, tested: bool
    ) -> EvaluateOrder:
        """Return what a client is to measure: all points, the goal test's, or both."""
        return EvaluateOrder(
            server_round=server_round,
            client=name,
            seed=int(self.seed),
            whole=whole,
            goal_points=(self.algorithm.goal_test_points or 0) if tested else 0,
        )

    def note_training(self, used: Mapping[str, int], losses: Mapping[str, float]) -> None:
        """Begin a row with a round's samples and, where they are known, losses.

        What a client was allotted and did not use does not count, nor does what it used for a
        model that was dropped: it draws those samples again.
        """
        samples = np.array([used.get(name, 0) for name in self.names], dtype=np.int64)
        self._drawn += samples
        # A client draws each of its points once before it draws any again.
        self._fresh = np.minimum(self._fresh + samples, self.brought)
        self.record_round(samples, self._fresh.copy(), self._in_order(losses))

    def note_evaluation(
        self, accuracies: Mapping[str, float] | None, tested: Mapping[str, float] | None = None
    ) -> list[str]:
        """Complete the last row, let the algorithm react to it, and return who leaves.

        accuracies: on all validation points; None in a round in which they are not measured.
        tested: on the points that the goal test looked at, where those are fewer.
        """
        if accuracies is not None:
            self.record_accuracies(self._in_order(accuracies))
            waived = self.left & self.algorithm.withholds
            met = bool((waived | (self.accuracies >= self.requirements)).all())
            self.goals_in_a_row = self.goals_in_a_row + 1 if met else 0
        if self._tested == self.rounds or not self.algorithm.tests(self.rounds - 1):
            return []
        self._tested = self.rounds
        found = self._in_order((tested if tested is not None else accuracies) or {})
        return [self.names[i] for i in self.test(found)]

    def _in_order(self, values: Mapping[str, float]) -> Vector:
        return np.array([values.get(name, np.nan) for name in self.names])

    @property
    def weights(self) -> dict[str, Any]:
        """The algorithm's weight of each client, where its state is one number per client."""
        if np.shape(self.state) != (len(self.names),):
            raise FedaccordError(f"the state of {self.algorithm.name} is not one weight per client")
        return dict(zip(self.names, np.asarray(self.state).tolist(), strict=True))
