"""The server's book: who is in, what each is asked for, what each gave. Free of any framework."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.allotment import Counts
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower.members import Requirements, accuracies
from fedaccord.federation.flower.protocol import ALL_POINTS, EvaluateOrder, TrainOrder
from fedaccord.federation.history import History
from fedaccord.federation.training.session import Course, Notes


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
        self.requirements = accuracies(requirements, self.names)
        self.seed = seed
        # At how many evaluations, up to the last, everybody had its accuracy.
        self.goals_in_a_row = 0
        self._quotas = quotas
        self._points: dict[str, int] = {}
        self._drawn = np.zeros(len(self.names), dtype=np.int64)
        self._notes: Notes | None = None
        # How many rounds had their goal test.
        self._tested = 0

    @property
    def contributions(self) -> Counts:
        """How many different points each brings; none who was not heard of."""
        return np.array([self._brought(name) for name in self.names], dtype=np.int64)

    def _brought(self, name: str) -> int:
        return self._points.get(name, 0) if self._quotas is None else self._quotas[name]

    def quota(self, name: str) -> int | None:
        """How many different points a client may be asked for; None for all it has."""
        return None if self._quotas is None else self._quotas[name]

    def points(self, name: str) -> int:
        """How many points a client said it has; none if it was not heard of."""
        return self._points.get(name, 0)

    def drawn(self, name: str) -> int:
        """How many samples of a client went into the model so far; its next draw begins there."""
        return int(self._drawn[self.names.index(name)])

    def learn_points(self, name: str, points: int) -> None:
        """Note how many points a client has, once: its draws, and so its quota, depend on it."""
        quota = self.quota(name)
        if quota is not None and quota > points:
            raise InputError(
                f"the plan asks {name} for {quota:,} points and it has {points:,}; plan anew with "
                f"a limit of {points:,} for {name}"
            )
        if self._points.get(name, points) != points:
            raise InputError(
                f"{name} had {self._points[name]:,} points and came back with {points:,}, so that "
                "it would draw others; let it have the same points until the run is over"
            )
        self._points[name] = points

    @property
    def staying(self) -> list[str]:
        """Who has not left with a model of its own."""
        pairs = zip(self.names, self.course.left, strict=True)
        return [name for name, left in pairs if not left]

    @property
    def course(self) -> Course:
        """The algorithm under way, from when it is first asked.

        Who is heard of later brings its points from then on; an algorithm that goes by what was
        brought at first, or was promised, has no use for them.
        """
        return self._book.course

    @property
    def _book(self) -> Notes:
        if self._notes is None:
            course = Course(self.algorithm, self.contributions, self.requirements)
            self._notes = Notes(course, self.names, seed=self.seed)
        self._notes.course.contributions = self.contributions
        return self._notes

    def allot(self, present: Collection[str]) -> dict[str, int]:
        """Divide a round's samples; who is not there draws none, and nobody draws them instead."""
        counts = self.course.allot()
        named = zip(self.names, counts.tolist(), strict=True)
        able = {name for name in present if self.points(name)}
        return {name: count for name, count in named if name in able and count > 0}

    def train_order(
        self, name: str, samples: int, server_round: int, *, report: Sequence[str] = ()
    ) -> TrainOrder:
        """Say what a client is to do in a round.

        name: the client's.
        samples: how many it was allotted.
        server_round: counted from 1.
        report: what else it is to report.
        """
        quota = self.quota(name)
        return TrainOrder(
            server_round=server_round,
            client=name,
            seed=int(self.seed),
            num_samples=samples,
            quota=ALL_POINTS if quota is None else quota,
            num_points=self.points(name),
            drawn=self.drawn(name),
            form=self.algorithm.form,
            batch_size=self.algorithm.batch_size,
            optimizer=self.algorithm.optimizer,
            learning_rate=float(self.algorithm.learning_rate),
            report=",".join(report),
        )

    def evaluate_order(
        self, name: str, server_round: int, *, whole: bool, tested: bool
    ) -> EvaluateOrder:
        """Say what a client is to measure after a round: on all points, on the goal test's, both.

        name: the client's.
        server_round: counted from 1.
        whole: whether to measure on all points.
        tested: whether to measure on those of the goal test.
        """
        points = self.algorithm.goal_test_points or 0
        return EvaluateOrder(
            server_round=server_round,
            client=name,
            seed=int(self.seed),
            whole=whole,
            goal_points=points if tested else 0,
        )

    def note_training(self, used: Mapping[str, int], losses: Mapping[str, float]) -> None:
        """Begin a row with a round's samples and, where they are known, losses.

        What a client was allotted and did not use does not count, nor does what it used for a
        model that was dropped: it draws those samples again.

        used: the samples that went into the model.
        losses: the mean losses over them.
        """
        samples = np.array([used.get(name, 0) for name in self.names], dtype=np.int64)
        self._drawn += samples
        unique = np.minimum(self._drawn, self.contributions)
        self._book.training(samples, unique, self._ordered(losses))

    def note_evaluation(
        self, accuracies: Mapping[str, float] | None, tested: Mapping[str, float] | None = None
    ) -> list[str]:
        """Complete the last row, let the algorithm react to it, and tell who leaves.

        accuracies: on all validation points; None in a round in which they are not measured.
        tested: on the points that the goal test looked at, where those are fewer.
        """
        if accuracies is not None:
            self._book.evaluation(self._ordered(accuracies))
            met = bool((self._book.last >= self.requirements).all())
            self.goals_in_a_row = self.goals_in_a_row + 1 if met else 0
        if self._tested == self.rounds or not self.algorithm.tests(self.rounds - 1):
            return []
        self._tested = self.rounds
        found = self._ordered((tested if tested is not None else accuracies) or {})
        return [self.names[i] for i in self.course.test(found)]

    def note_divergence(self) -> None:
        """Complete the last row where training diverged: who left has what it left with."""
        self._book.ruin()

    def _ordered(self, values: Mapping[str, float]) -> Vector:
        return np.array([values.get(name, np.nan) for name in self.names])

    @property
    def rounds(self) -> int:
        """How many rounds have been noted."""
        return 0 if self._notes is None else len(self._notes)

    @property
    def weights(self) -> dict[str, Any]:
        """The algorithm's weight of each client, where its state is one number per client."""
        state = self.course.state
        if np.shape(state) != (len(self.names),):
            raise FedaccordError(f"the state of {self.algorithm.name} is not one weight per client")
        return dict(zip(self.names, np.asarray(state).tolist(), strict=True))

    def history(
        self,
        weights: Mapping[str, NDArray[Any]] | None = None,
        checkpoints: Mapping[str, Mapping[str, NDArray[Any]]] | None = None,
    ) -> History:
        """Return the rounds noted so far.

        weights: the model's parameters after the last round.
        checkpoints: those that clients left with.
        """
        if not self.rounds:
            raise FedaccordError("no round has been trained yet, so there is no history")
        return self._book.history(weights, checkpoints)
