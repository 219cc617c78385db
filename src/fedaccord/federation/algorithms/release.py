"""RELEASE: a client that has reached its goal leaves with the model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, check_real, check_whole
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.algorithms.mw_fed import exact_counts, raise_weights, shares


@dataclass(frozen=True)
class ReleaseState:
    """Which clients are still there, and how much of each round they draw.

    log_weights: of all, as logarithms.
    passed: at how many goal tests in a row, up to the last it reported at, each reached its goal.
    brings: whether it has any sample to draw.
    gone: whether it has left.
    """

    log_weights: Vector
    passed: Counts
    brings: NDArray[np.bool_]
    gone: NDArray[np.bool_]

    @property
    def drawing(self) -> NDArray[np.bool_]:
        """Which clients samples are drawn from."""
        return np.asarray(self.brings & ~self.gone)


@dataclass(frozen=True, kw_only=True)
class Release(Algorithm):
    """A client that reaches its goal at several tests in a row leaves with the model for good.

        m_i = m * B * r * w_i / sum(w),    then w_i <- c * w_i where accuracy_i < requirement_i

    over the r clients that are still there and have samples. The goal is tested at evaluations,
    every `evaluate_every` rounds. Nothing is drawn from a client that has left, whatever becomes of
    the model: it keeps the one it left with. Training is over when no client is left to draw from.
    A client without samples leaves when it reaches its goal, like any other.

    factor: c.
    evaluations: how many tests in a row.
    """

    kind = "release"
    name = "RELEASE"
    passes_off_idle = False
    tests_at_evaluations = True

    factor: float = 2.0
    evaluations: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("factor", self.factor, least=1, expected="a number of 1 or more")
        check_whole("evaluations", self.evaluations)

    def begin(self, contributions: Counts) -> ReleaseState:
        """Start with all clients, at equal weights."""
        clients = len(contributions)
        return ReleaseState(
            log_weights=np.zeros(clients),
            passed=np.zeros(clients, dtype=np.int64),
            brings=np.asarray(contributions) > 0,
            gone=np.zeros(clients, dtype=bool),
        )

    def allot(self, state: ReleaseState) -> Counts:
        """Divide the samples among the remaining clients in proportion to their weights."""
        counts = np.zeros(len(state.gone), dtype=np.int64)
        drawing = np.flatnonzero(state.drawing)
        if len(drawing):
            total = self.batch_size * self.local_batches * len(drawing)
            parts = shares(state.log_weights[drawing])
            counts[drawing] = exact_counts(parts, total)
        return counts

    def weights(
        self, state: ReleaseState, accuracies: Vector, requirements: Vector
    ) -> ReleaseState:
        """Release clients that passed often enough; raise the weights of unsatisfied ones."""
        # A client that did not report, its accuracy NaN, has neither passed nor failed.
        passed = state.passed + (accuracies >= requirements)
        passed[accuracies < requirements] = 0
        return dataclasses.replace(
            state,
            log_weights=raise_weights(state.log_weights, accuracies < requirements, self.factor),
            passed=passed,
            gone=state.gone | (passed >= self.evaluations),
        )

    def left(self, state: ReleaseState) -> NDArray[np.bool_]:
        """Return which clients have left."""
        return state.gone

    def ended(self, state: ReleaseState) -> bool:
        """Return whether no client is left to draw from."""
        return not state.drawing.any()
