"""Games whose agents have one or more linear goals, of benefits of any sign.

Goal g of agent i is the row

    sum_j A_gj theta_j >= m_g,   A_gi > 0.

What row g lacks or has to spare is counted in samples of its own agent, so that rows compare:

    f_i(theta) = max(0, max over the goals g of i of  theta_i - (A_g theta - m_g) / A_gi)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Matrix, Vector, as_numbers, exact_numbers, frozen
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import NEAR, ROUNDING, Certified, Game, WellBehaved
from fedaccord.games.linear import EPSILON, LARGEST_RATIO

# A row in fractions: its benefits, and what they must add up to.
ExactRow = tuple[list[Fraction], Fraction]


class RowGame(Game):
    """Agents with linear goals; the rows of an agent lie together, in the order of agents.

    rows: A, one row per goal; A[g, j] is what one sample of j adds to goal g.
    needs: m, what each row must add up to.
    owners: whose goal each row is.
    own_benefits: in what unit an agent's utility counts its own samples.
    """

    rows: Matrix
    needs: Vector
    owners: Indices
    own_benefits: Vector

    def _set_rows(self, rows: Matrix, needs: Vector, owners: Indices, own: Vector) -> None:
        self.rows, self.needs = frozen(np.ascontiguousarray(rows)), frozen(needs)
        self.owners, self.own_benefits = frozen(owners), frozen(own)

    def goal_name(self, goal: int) -> str:
        """Return what a goal is called in messages."""
        return self.name(int(self.owners[goal]))

    def goals_of(self, agent: int) -> range:
        """Return the rows that are goals of an agent."""
        ends = np.searchsorted(self.owners, [agent, agent + 1]).tolist()
        return range(*ends)

    @property
    def has_several_goals(self) -> bool:
        """Whether an agent has more than one goal."""
        return len(self.owners) > self.size

    @cached_property
    def is_monotone(self) -> bool:
        """Whether no agent's samples harm another."""
        return bool((self.rows >= 0).all())

    @cached_property
    def has_only_harm(self) -> bool:
        """Whether no agent's samples help another."""
        others = np.arange(self.size) != self.owners[:, None]
        return bool((self.rows[others] <= 0).all())

    @cached_property
    def own_rows(self) -> Vector:
        """What one sample of its own agent adds to each goal."""
        return frozen(self.rows[np.arange(len(self.owners)), self.owners])

    @cached_property
    def sizes(self) -> Matrix:
        """The benefits without their signs."""
        return self.rows if self.is_monotone else frozen(np.abs(self.rows))

    @cached_property
    def starts(self) -> Indices:
        """The first row of each agent."""
        return frozen(np.searchsorted(self.owners, np.arange(self.size)))

    def slacks(self, contributions: Vector) -> Vector:
        """Return what each goal has to spare, in samples of its agent; below zero what it lacks.

        What may be the rounding of a sum is zero.
        """
        slack = self.rows @ contributions - self.needs
        size = self.sizes @ contributions + self.needs
        return np.asarray(np.where(np.abs(slack) <= ROUNDING * size, 0.0, slack) / self.own_rows)

    def binding_goals(self, contributions: Vector) -> Indices:
        """Return the goal of each agent that has least to spare: the one that asks most of it."""
        slacks = self.slacks(contributions)
        order = np.lexsort((slacks, self.owners))
        return order[self.starts]

    # What every model answers.

    def utilities(self, contributions: Vector) -> Vector:
        """Return mu_i + own_i * (what the goal with least to spare has to spare)."""
        least = np.minimum.reduceat(self.slacks(contributions), self.starts)
        return np.asarray(self.requirements + self.own_benefits * least)

    def _responses(self, contributions: Vector) -> Vector:
        least = np.minimum.reduceat(self.slacks(contributions), self.starts)
        return np.maximum(contributions - least, 0.0)

    def _response(self, agent: int, contributions: Vector) -> float:
        span = self._span(agent)
        slack = (self.rows[span] @ contributions - self.needs[span]) / self.own_rows[span]
        return max(float(contributions[agent] - slack.min()), 0.0)

    def _span(self, agent: int) -> slice:
        goals = self.goals_of(agent)
        return slice(goals.start, goals.stop)

    def _whole_response(self, agent: int, needed: float, contributions: Vector) -> float:
        """Round a real response up, in fractions where rounding might err.

        k products of any sign err by k units in the last place of the sum of their sizes.
        """
        span = self._span(agent)
        size = self.sizes[span] @ contributions + self.needs[span]
        error = EPSILON * (self.size + 4) * float((size / self.own_rows[span]).max())
        if abs(needed - round(needed)) > error + NEAR:
            return float(math.ceil(needed))
        given = exact_numbers(contributions)
        return float(max(math.ceil(given[agent] - self._exact_spare(agent, given)), 0))

    def swapped_utilities(self, contributions: Vector, agent: int, others: Indices) -> Vector:
        """Return u_i after each swap: each goal changes by (theta_i - theta_j)(A_gj - A_gi)."""
        span = self._span(agent)
        rows, own = self.rows[span], self.own_rows[span, None]
        gap = contributions[agent] - contributions[others]
        after = (rows @ contributions - self.needs[span])[:, None] + gap * (rows[:, others] - own)
        least = (after / own).min(axis=0)
        return np.asarray(self.requirements[agent] + self.own_benefits[agent] * least)

    def own_rates(self, agents: Indices, contributions: Vector) -> Vector:
        """Return what one own sample adds to the utility."""
        return self.own_benefits[agents]

    def satisfied(self, contributions: Vector) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for every agent whether it reaches all of its goals; exactly in integer games."""
        slack = self.rows @ contributions - self.needs
        size = self.sizes @ contributions + self.needs
        if not self.is_integer:
            return np.minimum.reduceat(slack + ROUNDING * size, self.starts) >= 0
        least = np.minimum.reduceat(slack, self.starts)
        result: np.ndarray[Any, np.dtype[np.bool_]] = least >= 0
        near = np.logical_or.reduceat(np.abs(slack) <= NEAR * np.maximum(1.0, size), self.starts)
        for agent in np.flatnonzero(near).tolist():
            result[agent] = self._exact_spare(agent, exact_numbers(contributions)) >= 0
        return result

    @cached_property
    def exact_rows(self) -> list[list[ExactRow]]:
        """By agent, its goals in fractions, every float read as its simplest fraction."""
        needs = exact_numbers(self.needs)
        return [
            [(exact_numbers(self.rows[g]), needs[g]) for g in self.goals_of(agent)]
            for agent in range(self.size)
        ]

    def _exact_spare(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return what the goal with least to spare has to spare, in own samples."""
        return min(
            (sum((w * contributions[j] for j, w in enumerate(row) if w), -need)) / row[agent]
            for row, need in self.exact_rows[agent]
        )

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return u_i(theta) in Fractions."""
        own = exact_numbers(self.own_benefits[agent : agent + 1])[0]
        return self.exact_requirements[agent] + own * self._exact_spare(agent, contributions)

    def well_behaved(self, box: ArrayLike | None = None) -> WellBehaved:
        """Certified on every box where nobody harms anybody: a least of linear functions."""
        if not self.is_monotone:
            return super().well_behaved(box)
        rows = np.array(self.rows / self.own_rows[:, None])
        rows[np.arange(len(self.owners)), self.owners] = 0.0
        cross = self.own_benefits * np.maximum.reduceat(rows.max(axis=1), self.starts)
        corner = self.alone if box is None else as_numbers(box, "box")
        return Certified(self.own_benefits, cross, frozen(corner))

    @cached_property
    def most_at_rest(self) -> Vector:
        """The most that agents give in an equilibrium: with harm, nothing but limits bounds it."""
        return super().most_at_rest if self.is_monotone else self.limits

    def short_at_limits(self) -> int | None:
        """Return an agent with a goal that no allocation within the limits reaches, if any.

        Helpers give their limits there, and those who harm give their minimums.
        """
        most = np.where(self.rows > 0, self.limits, self.minimums)
        with np.errstate(invalid="ignore"):
            best = np.where(self.rows == 0, 0.0, self.rows * most).sum(axis=1)
        size = np.abs(best) + self.needs
        for goal in np.flatnonzero(best < self.needs - ROUNDING * size).tolist():
            row, need = exact_numbers(self.rows[goal]), exact_numbers(self.needs[goal])[0]
            ends = exact_numbers(np.where(self.rows[goal] == 0, 0.0, most[goal]))
            if sum((w * t for w, t in zip(row, ends, strict=True)), Fraction(0)) < need:
                return int(self.owners[goal])
        return None

    # What the constructors check.

    def _check_rows(self) -> None:
        """Refuse goals that own samples do not help, and units that are too far apart."""
        wrong = ~(self.own_rows > 0)
        if wrong.any():
            goal = int(np.argmax(wrong))
            raise UnreachableError(
                f"{self.goal_name(goal)} gains nothing from its own samples (its own benefit is "
                f"{self.own_rows[goal]:g}): no amount of them meets its requirement; give it an "
                "own benefit above zero"
            )
        ratio = np.abs(self.rows).max(axis=1) / self.own_rows
        if ratio.max() > LARGEST_RATIO:
            goal = int(np.argmax(ratio))
            raise InputError(
                f"{self.goal_name(goal)} is affected {ratio[goal]:.0e} times as much by a sample "
                "of another as by its own: correct the units of its benefits"
            )
