"""The envy-free allocation: nobody would rather have another's smaller burden."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.equal import equal_allocation
from fedaccord.equilibria.linear.envy_free import envy_free_linear
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.result import (
    Deadline,
    Interval,
    Solution,
    Status,
    answer,
)
from fedaccord.equilibria.stable import solve_stable
from fedaccord.games.base import Game
from fedaccord.games.envy import has_no_envy
from fedaccord.games.linear import LinearGame

METHODS = ("auto", "equal", "exhaustive")

# Integer games with at most this many allocations below their equal level are searched whole.
EXHAUSTIVE_LIMIT = 200_000
# Above this size the pairs of a linear game are too many for a program.
PAIRS_LIMIT = 150


def solve_envy_free(
    game: Game, *, method: str = "auto", tolerance: float = 1e-6, time_limit: float = 60.0
) -> Solution:
    """Find the cheapest envy-free allocation.

        minimise    sum(costs[i] * contributions[i])
        subject to  u_i(contributions) >= requirements[i]
                    no j with contributions[j] < contributions[i] and
                    u_i(contributions with i and j swapped) >= requirements[i]

    game: what the agents want.
    method: "auto", "equal" (the construction of Theorem 1), or "exhaustive" for integer games.
    tolerance: relative distance between the bounds that counts as solved.
    time_limit: seconds after which the best found so far is returned with its bounds.
    """
    return answer(
        game,
        "envy-free",
        {"method": method, "tolerance": tolerance},
        methods=METHODS,
        time_limit=time_limit,
        solve=lambda deadline: _dispatch(game, method, tolerance, deadline),
    )


def _dispatch(game: Game, method: str, tolerance: float, deadline: Deadline) -> Solution:
    from fedaccord.equilibria import coverage
    from fedaccord.equilibria.general import exhaustive
    from fedaccord.games.coverage import CoverageGame

    equal = equal_allocation(game)
    if equal is None:
        return Solution(
            game, "envy-free", "equal", Status.FAILED, Interval(0.0, np.inf),
            note="No equal allocation within the limits satisfies everybody.",
        )  # fmt: skip
    if method == "equal":
        return _equal_solution(game, equal, float(game.costs @ game.minimums), tolerance, deadline)
    if method == "exhaustive" or (game.is_integer and _few_below(game, equal)):
        return exhaustive.exhaustive_envy_free(game, deadline=deadline)
    if isinstance(game, CoverageGame):
        return coverage.envy_free_coverage(game, tolerance=tolerance, deadline=deadline)
    # Of the optimum only the lower bound and a candidate are wanted; any game's is found by boxes,
    # whose last digits take most of the time.
    fine = tolerance if isinstance(game, LinearGame) else max(tolerance, 1e-2)
    optimal = solve_optimal(game, tolerance=fine, time_limit=deadline.left / 3)
    stable = solve_stable(game, tolerance=tolerance, time_limit=deadline.left / 3)
    if not isinstance(game, LinearGame):
        return _best_without_envy(game, equal, (optimal, stable), tolerance, deadline)
    if game.size > PAIRS_LIMIT:
        return _large_linear(game, equal, stable, optimal, tolerance, deadline)
    return envy_free_linear(
        game, equal=equal, stable=stable.contributions, lower=optimal.bounds.lower,
        tolerance=tolerance, deadline=deadline,
    )  # fmt: skip


def _few_below(game: Game, equal: Vector) -> bool:
    """Say whether few enough allocations cost no more than the equal one."""
    budget = game.total(equal) / game.costs
    points = np.minimum(budget, game.limits) - game.minimums + 1
    # Allocations within a budget fill a simplex: a k!-th of the box around it.
    simplex = float(np.log(points).sum()) - math.lgamma(game.size + 1)
    return simplex <= math.log(EXHAUSTIVE_LIMIT)


def _equal_solution(
    game: Game, equal: Vector, lower: float, tolerance: float, deadline: Deadline
) -> Solution:
    total = game.total(equal)
    done = total - lower <= tolerance * total
    return Solution(
        game, "envy-free", "equal", Status.OPTIMAL if done else Status.LIMIT,
        Interval(min(lower, total), total), equal,
    )  # fmt: skip


def _best_without_envy(
    game: Game, equal: Vector, others: Sequence[Solution], tolerance: float, deadline: Deadline
) -> Solution:
    """Take the cheapest of the equal allocation, the optimum and the equilibrium without envy."""
    best, method = equal, "equal"
    lower = others[0].bounds.lower
    for solution in others:
        given = solution.contributions
        if given is None or game.total(given) >= game.total(best):
            continue
        if game.is_feasible(given) and has_no_envy(game, given, tolerance):
            best, method = np.array(given), solution.concept
    answer = _equal_solution(game, best, lower, tolerance, deadline)
    return dataclasses.replace(answer, method=method)


def _large_linear(
    game: LinearGame, equal: Vector, stable: Solution, optimal: Solution, tolerance: float,
    deadline: Deadline,
) -> Solution:  # fmt: skip
    """Take the equilibrium where Theorem 6 makes it envy-free and it is the cheaper one.

    With W_ij < W_ii for all j, contributors have nothing to spare, and any swap to a smaller burden
    leaves them short.
    """
    best, method = equal, "equal"
    given = stable.contributions
    if given is not None and game.total(given) < game.total(equal):
        from fedaccord.equilibria.structure import strictly_dominant_own_benefits

        # Whole contributors may have something to spare, so that the theorem is about the reals.
        if not game.is_integer and strictly_dominant_own_benefits(game, deadline=deadline):
            best, method = np.array(given), "stable"
    solution = _equal_solution(game, best, optimal.bounds.lower, tolerance, deadline)
    return dataclasses.replace(solution, method=method)
