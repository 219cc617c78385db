"""Safety margins for several goals: targets high enough that one run surely reaches all goals."""

from __future__ import annotations

import math

import numpy as np

from fedaccord._checks import Vector, check_choice, check_real
from fedaccord.equilibria.result import Deadline, Solution
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.errors import InputError, UnreachableError
from fedaccord.measurement.measures import GoalsMeasurement

# Margins are tried up to this many standard deviations, and this often.
MOST = 8.0
TRIES = 16
SOLVERS = {"stable": solve_stable, "optimal": solve_optimal}


def plan_goals(
    measured: GoalsMeasurement,
    *,
    probability: float = 0.95,
    concept: str = "stable",
    time_limit: float = 60.0,
) -> Solution:
    """Find the stable plan of targets above the goals, so that one run surely reaches all goals.

    Every target is the same number of standard deviations above its goal: the least number whose
    stable plan has the probability. Raises an UnreachableError where no number has it.

    measured: the game, fitted to pilots with several measures.
    probability: that one run reaches all goals, by how goals moved together in the pilots.
    concept: "stable"; or "optimal" for the cheapest plan, which payments or pledges must hold.
    time_limit: seconds in all.
    """
    check_real("probability", probability, above=0.0, below=1.0)
    solver = SOLVERS[check_choice("concept", concept, tuple(SOLVERS))]
    deadline = Deadline(time_limit)

    def solve(margins: Vector) -> Solution:
        found = solver(measured.make_game(margins), time_limit=deadline.left)
        if found.contributions is None:
            raise UnreachableError(
                f"there is no {concept} plan: {(found.note or found.status.value).rstrip('.')}"
            )
        return found

    base = solve(np.zeros(len(measured.game.goals)))
    spreads = measured.spreads(_contributions(base))

    most = 0.0

    def is_sure(plan: Solution) -> bool:
        nonlocal most
        chance = measured.estimate_all(_contributions(plan))
        most = max(most, chance)
        return chance >= probability

    if is_sure(base):
        return base
    # Below `low` plans are not sure enough; at `high` one is, or the goals are out of reach.
    low, high, best = 0.0, math.inf, None
    for _ in range(TRIES):
        number = (low + high) / 2 if math.isfinite(high) else max(2 * low, 1.0)
        if number > MOST or deadline.passed:
            break
        try:
            plan = solve(number * spreads)
        except UnreachableError:
            high = number
            continue
        if is_sure(plan):
            high, best = number, plan
        else:
            low = number
    if best is None:
        raise UnreachableError(
            f"no safety margin was found with which one run reaches all goals with probability "
            f"{probability:g}; the best has {math.floor(100 * most) / 100:g}: give easier goals or "
            "higher limits, or run more pilots"
        )
    return best


def _contributions(plan: Solution) -> Vector:
    if plan.contributions is None:
        raise InputError(plan.status.value)
    return plan.contributions
