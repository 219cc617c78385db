"""Safety margins for several goals: targets high enough that one run surely reaches all goals."""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Vector, check_real
from fedaccord.equilibria.result import Deadline, Solution
from fedaccord.equilibria.solve import solve_stable
from fedaccord.errors import InputError, UnreachableError
from fedaccord.measurement.measures import GoalsMeasurement

# Margins are tried up to this many standard deviations, and then halved between this often.
MOST = 8.0
HALVINGS = 12


def plan_goals(
    measured: GoalsMeasurement, *, probability: float = 0.95, time_limit: float = 60.0
) -> Solution:
    """Find the stable plan of targets above the goals, so that one run surely reaches all goals.

    Every target is the same number of standard deviations above its goal: the least number whose
    stable plan has the probability. Raises an UnreachableError where no number has it.

    measured: the game, fitted to pilots with several measures.
    probability: that one run reaches all goals, at least; misses of goals are added up.
    time_limit: seconds in all.
    """
    check_real("probability", probability, above=0.0, below=1.0)
    deadline = Deadline(time_limit)
    base = _solve(measured, np.zeros(len(measured.game.goals)), deadline)
    spreads = measured.spreads(_contributions(base))

    def find(number: float) -> Solution | None:
        """Return the plan at some margins, if it is sure enough."""
        try:
            plan = _solve(measured, number * spreads, deadline)
        except UnreachableError:
            return None
        return plan if measured.chance_of_all(_contributions(plan)) >= probability else None

    if measured.chance_of_all(_contributions(base)) >= probability:
        return base
    low, high = 0.0, 1.0
    while (best := find(high)) is None:
        if high >= MOST or deadline.passed:
            raise UnreachableError(
                f"no safety margin was found with which one run reaches all goals with probability "
                f"{probability:g}: give easier goals or higher limits, or run more pilots"
            )
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if (found := find(middle)) is None:
            low = middle
        else:
            high, best = middle, found
    return best


def _solve(measured: GoalsMeasurement, margins: Vector, deadline: Deadline) -> Solution:
    solution = solve_stable(measured.make_game(margins), time_limit=deadline.left)
    if solution.contributions is None:
        raise UnreachableError(f"there is no stable plan: {solution.note or solution.status.value}")
    return solution


def _contributions(plan: Solution) -> Vector:
    if plan.contributions is None:
        raise InputError(plan.status.value)
    return plan.contributions
