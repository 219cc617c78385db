"""The envy-free allocation: nobody would rather have another's smaller burden."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.linear.envy_free import envy_free_linear
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.result import Claim, Deadline, Solution, answer, equal_allocation
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
    return envy_free_beside((), game, method=method, tolerance=tolerance, time_limit=time_limit)


def envy_free_beside(
    known: Sequence[Solution],
    game: Game,
    *,
    method: str = "auto",
    tolerance: float = 1e-6,
    time_limit: float = 60.0,
) -> Solution:
    """Find the cheapest envy-free allocation as `solve_envy_free` does, given other solutions.

    The optimum and the equilibrium bound and suggest envy-free allocations; those among the known
    solutions of the same game are not solved for again.
    """
    given = {solution.concept: solution for solution in known if solution.game is game}

    def solve(deadline: Deadline) -> Solution:
        claim = Claim(game, "envy-free", tolerance, deadline)
        equal = equal_allocation(game)
        if equal is None:
            note = "No equal allocation within the limits satisfies everybody."
            return claim.failed("equal", note)
        if method == "equal":
            return claim.bounded("equal", float(game.costs @ game.minimums), equal)
        if method == "exhaustive" or (game.is_integer and _few_below(game, equal)):
            from fedaccord.equilibria.general.exhaustive import exhaustive_envy_free

            return exhaustive_envy_free(game, deadline=deadline)
        if not isinstance(game, LinearGame):
            from fedaccord.equilibria.coverage import envy_free_coverage
            from fedaccord.games.coverage import CoverageGame

            if isinstance(game, CoverageGame):
                return envy_free_coverage(game, tolerance=tolerance, deadline=deadline)
        # Of the optimum only the lower bound and a candidate are wanted; any game's is found by
        # boxes, whose last digits take most of the time.
        fine = tolerance if isinstance(game, LinearGame) else max(tolerance, 1e-2)
        optimal = given.get("optimal") or solve_optimal(
            game, tolerance=fine, time_limit=deadline.left / 3
        )
        stable = given.get("stable") or solve_stable(
            game, tolerance=tolerance, time_limit=deadline.left / 3
        )
        if isinstance(game, LinearGame) and game.size <= PAIRS_LIMIT:
            return envy_free_linear(
                game, equal=equal, stable=stable.contributions, lower=optimal.bounds.lower,
                tolerance=tolerance, deadline=deadline,
            )  # fmt: skip
        return _best_without_envy(claim, equal, optimal, stable)

    options = {"method": method, "tolerance": tolerance}
    return answer(game, "envy-free", options, methods=METHODS, time_limit=time_limit, solve=solve)


def _few_below(game: Game, equal: Vector) -> bool:
    """Say whether few enough allocations cost no more than the equal one."""
    budget = game.total(equal) / game.costs
    points = np.minimum(budget, game.limits) - game.minimums + 1
    # Allocations within a budget fill a simplex: a k!-th of the box around it.
    simplex = float(np.log(points).sum()) - math.lgamma(game.size + 1)
    return simplex <= math.log(EXHAUSTIVE_LIMIT)


def _best_without_envy(
    claim: Claim[Game], equal: Vector, optimal: Solution, stable: Solution
) -> Solution:
    """Take the cheapest of the equal allocation, the optimum and the equilibrium without envy."""
    game, best = claim.game, claim.bounded("equal", optimal.bounds.lower, equal)
    large = isinstance(game, LinearGame)
    for solution in (stable,) if large else (optimal, stable):
        given = solution.contributions
        if given is None or game.total(given) >= best.total:
            continue
        if _has_no_envy(claim, np.array(given)):
            best = claim.bounded(solution.concept, optimal.bounds.lower, np.array(given))
    return best


def _has_no_envy(claim: Claim[Game], given: Vector) -> bool:
    """Check an optimum or equilibrium pair by pair; a large linear equilibrium by Theorem 6.

    With W_ij < W_ii for all j, contributors have nothing to spare, and any swap to a smaller burden
    leaves them short. Whole contributors may have something to spare, so that the theorem is about
    the reals.
    """
    game = claim.game
    if isinstance(game, LinearGame):
        if game.is_integer:
            return False
        from fedaccord.equilibria.structure import strictly_dominant_own_benefits

        return bool(strictly_dominant_own_benefits(game, deadline=claim.deadline))
    return game.is_feasible(given) and has_no_envy(game, given, claim.tolerance)
