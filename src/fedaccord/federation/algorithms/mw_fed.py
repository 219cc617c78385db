"""MW-FED, the paper's Algorithm 2: multiplicative weights."""

from __future__ import annotations

from dataclasses import dataclass

from fedaccord._checks import Vector, check_choice, check_real, check_whole
from fedaccord.federation.algorithms import allotment
from fedaccord.federation.algorithms.allotment import Counts
from fedaccord.federation.algorithms.base import Algorithm

COUNTS = ("exact", "printed")


@dataclass(frozen=True, kw_only=True)
class MwFed(Algorithm):
    """MW-FED: who is short of its goal draws more (the paper's Algorithm 2).

        m_i = m * B * k * w_i / sum(w),    then w_i <- c * w_i where accuracy_i < requirement_i

    factor: c.
    counts: "exact" draws m_i samples, made whole so that they sum to m * B * k; "printed" draws
        floor(m_i / m) batches of m.
    goal_points: how many validation points of each client, drawn anew each round, the test of
        the goal looks at; None for all of them.
    """

    kind = "mw-fed"
    name = "MW-FED"

    factor: float = 2.0
    counts: str = "exact"
    goal_points: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that no training could follow."""
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
        parts = allotment.shares(state)
        if self.counts == "printed":
            return allotment.printed_counts(parts, total, self.batch_size)
        return allotment.exact_counts(parts, total)

    def weights(self, state: Vector, accuracies: Vector, requirements: Vector) -> Vector:
        """Raise the weights of the clients that are short of their goals."""
        return allotment.raised(state, accuracies < requirements, self.factor)
