"""MW-FED, the paper's Algorithm 2: multiplicative weights, and sample counts that follow them.

Weights are kept as logarithms. After 250 rounds a factor of 4 has raised a weight 10^150 times;
only differences matter, and those of logarithms neither overflow nor underflow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, check_choice, check_real, check_whole
from fedaccord.federation.algorithms.base import Algorithm, Counts

COUNTS = ("exact", "printed")
# Equal weights make shares such as 0.9999999999999999, of which the floor would be nothing.
SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class MwFed(Algorithm):
    """MW-FED: clients below their goals draw more (the paper's Algorithm 2).

        m_i = m * B * k * w_i / sum(w),    then w_i <- c * w_i where accuracy_i < requirement_i

    factor: c.
    counts: "exact" draws m_i samples, made whole so that they sum to m * B * k; "printed" draws
        floor(m_i / m) batches of m.
    goal_points: how many validation samples of each client the goal test uses, drawn again each
        round; None for all of them.
    """

    kind = "mw-fed"
    name = "MW-FED"

    factor: float = 2.0
    counts: str = "exact"
    goal_points: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("factor", self.factor, least=1, expected="a number of 1 or more")
        check_choice("counts", self.counts, COUNTS)
        if self.goal_points is not None:
            check_whole("goal_points", self.goal_points)

    @property
    def goal_test_points(self) -> int | None:
        """How many of each client's validation points a goal test looks at; None for all."""
        return self.goal_points

    def allot(self, state: Vector) -> Counts:
        """Divide the round's samples in proportion to the weights."""
        total = self.batch_size * self.local_batches * len(state)
        parts = shares(state)
        if self.counts == "printed":
            return printed_counts(parts, total, self.batch_size)
        return exact_counts(parts, total)

    def weights(self, state: Vector, accuracies: Vector, requirements: Vector) -> Vector:
        """Raise the weights of the clients below their goals."""
        return raise_weights(state, accuracies < requirements, self.factor)


def raise_weights(log_weights: Vector, unsatisfied: NDArray[np.bool_], factor: float) -> Vector:
    """Multiply the weights of unsatisfied clients by a factor.

    w_i <- c * w_i    for every client i short of its goal
    """
    return np.where(unsatisfied, log_weights + np.log(factor), log_weights)


def shares(log_weights: Vector) -> Vector:
    """Return each client's part of a round's samples, w_i / sum(w)."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def exact_counts(parts: Vector, total: int) -> Counts:
    """Divide a round's samples in proportion to the parts, to the last sample.

    Each client gets the whole part of total * parts_i; what is left goes, one each, to the
    largest remainders, the first client winning a tie.
    """
    ideal = parts * total
    counts = np.floor(ideal + SLACK).astype(np.int64)
    left = total - int(counts.sum())
    if left > 0:
        # A stable sort of the negatives keeps the order of clients among equal remainders.
        remainders = np.round(ideal - counts, 9)
        counts[np.argsort(-remainders, kind="stable")[:left]] += 1
    return counts


def printed_counts(parts: Vector, total: int, batch_size: int) -> Counts:
    """Divide a round's samples as Algorithm 2 prints it: whole batches only, rounded down.

        m_i = total * parts_i,    samples_i = m * floor(m_i / m)

    With one batch per client, a client below the average gets nothing.
    """
    return batch_size * np.floor(parts * total / batch_size + SLACK).astype(np.int64)
