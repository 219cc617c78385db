"""The socially optimal allocation: the least total that satisfies everybody."""

from __future__ import annotations

import dataclasses

import numpy as np

from fedaccord.equilibria.linear import optimal as linear
from fedaccord.equilibria.result import (
    Deadline,
    Solution,
    Status,
    answer,
)
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import DiscoveryGame, LinearGame

LINEAR_METHODS = ("highs", "first-order", "multiplicative-weights", "milp")
COVERAGE_METHODS = ("cuts", "scip")
METHODS = ("auto", *LINEAR_METHODS, *COVERAGE_METHODS, "exhaustive")

# What a certificate can prove at sizes where only first-order methods reach.
FIRST_ORDER_TOLERANCE = 1e-3


def solve_optimal(
    game: Game, *, method: str = "auto", tolerance: float = 1e-6, time_limit: float = 60.0
) -> Solution:
    """Find the least total that satisfies everybody.

        minimise    sum(costs[i] * contributions[i])
        subject to  u_i(contributions) >= requirements[i]   for every agent i

    game: what the agents want.
    method: "auto"; for linear games "highs", "first-order", "multiplicative-weights" or "milp"
        (whole numbers); for coverage "cuts" or "scip"; "exhaustive" for small integer games.
    tolerance: relative distance between the proved bounds to stop at. By default large linear games
        stop at a certified 1e-3.
    time_limit: seconds after which the best found so far is returned with its bounds.
    """

    def solve(deadline: Deadline) -> Solution:
        if isinstance(game, LinearGame) and method not in (*COVERAGE_METHODS, "exhaustive"):
            return _linear(game, method, tolerance, deadline)
        # Solvers bring much along: each is imported when a game needs it.
        from fedaccord.equilibria.coverage import optimal_coverage
        from fedaccord.equilibria.general.exhaustive import exhaustive_optimal
        from fedaccord.equilibria.general.optimal import general_optimal
        from fedaccord.games.coverage import CoverageGame

        if method == "exhaustive":
            return exhaustive_optimal(game, deadline=deadline)
        if isinstance(game, CoverageGame) and method not in LINEAR_METHODS:
            return optimal_coverage(game, method=method, tolerance=tolerance, deadline=deadline)
        if method != "auto":
            raise InputError(f'method "{method}" does not fit this utility model; use "auto"')
        if game.is_integer:
            return exhaustive_optimal(game, deadline=deadline)
        return general_optimal(game, tolerance=tolerance, deadline=deadline)

    options = {"method": method, "tolerance": tolerance}
    return answer(game, "optimal", options, methods=METHODS, time_limit=time_limit, solve=solve)


def _linear(game: LinearGame, method: str, tolerance: float, deadline: Deadline) -> Solution:
    if game.is_integer and method in ("auto", "milp"):
        return linear.milp_optimal(game, tolerance=tolerance, deadline=deadline)
    if game.is_integer or method == "milp":
        raise InputError(f'method "{method}" does not fit {game.strategies} strategies; use "auto"')
    if method == "multiplicative-weights":
        from fedaccord.equilibria.linear.multiplicative_weights import (
            multiplicative_weights_optimal,
        )

        return multiplicative_weights_optimal(game, tolerance=tolerance, deadline=deadline)
    if method == "highs" or (method == "auto" and _nonzeros(game) <= linear.EXACT_LIMIT):
        # Half the time, so that what HiGHS cannot finish a first-order method can still bound.
        share = deadline if method == "highs" else Deadline(deadline.left / 2)
        exact = linear.highs_optimal(game, tolerance=tolerance, deadline=share)
        if exact is not None:
            return exact
    goal = max(tolerance, FIRST_ORDER_TOLERANCE) if method == "auto" else tolerance
    solution = linear.first_order_optimal(game, tolerance=goal, deadline=deadline)
    if solution.status is Status.OPTIMAL and solution.bounds.relative_gap > tolerance:
        return dataclasses.replace(solution, status=Status.LIMIT)
    return solution


def _nonzeros(game: LinearGame) -> float:
    if isinstance(game, DiscoveryGame):
        # Each point that m agents share makes m^2 entries of Q Q', at most k^2 in all.
        sharing = np.bincount(game.distributions.indices).astype(np.float64)
        return min(float((sharing**2).sum()), float(game.size) ** 2)
    return float(getattr(game.benefits, "nnz", game.size**2))
