"""Optimal allocations of coverage games."""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.coverage import scip
from fedaccord.equilibria.coverage.cuts import integer_optimum, quick_bound
from fedaccord.equilibria.coverage.feasible import (
    cap_by_total,
    cut_work_fits,
    feasible_start,
    fits_scip,
    lower_bound,
    made_feasible,
    polished,
    trimmed,
)
from fedaccord.equilibria.result import Claim, Deadline, Solution, check_method
from fedaccord.games.coverage import CoverageGame


def optimal_coverage(
    game: CoverageGame,
    *,
    method: str = "auto",
    tolerance: float = 1e-6,
    deadline: Deadline | None = None,
) -> Solution:
    """Find the least total that satisfies everybody.

    Whole contributions: exact, by integer programs over tangents of the convex constraints. Real
    ones: the smooth form bounds the total from below, its solution made feasible bounds it from
    above, and SCIP closes what is left in small games.

    method: "auto", "cuts" (bounds only) or "scip" (real games).
    """
    deadline = deadline or Deadline(60.0)
    claim = Claim(game, "optimal", tolerance, deadline)
    check_method(method, ("auto", "cuts", "scip"))
    start = feasible_start(game)
    if game.is_integer:
        return _integer_optimal(claim, start)
    lower, point = lower_bound(game, start, deadline)
    best = start
    for candidate in (made_feasible(game, point, start), made_feasible(game, start * 0, start)):
        best = min(best, trimmed(game, candidate, deadline), key=game.total)
    best = polished(game, best, deadline)
    most = cap_by_total(game, best)
    if method == "cuts" or claim.is_closed(lower, best):
        return claim.bounded("cuts", lower, best)
    if method == "auto" and not fits_scip(game, most):
        return claim.bounded("cuts", lower, best)
    searched = scip.solve_scip(game, deadline, most=most)
    if searched.contributions is not None:
        found = made_feasible(game, searched.contributions, best)
        best = min(best, found, key=game.total)
    return claim.bounded("scip", max(lower, searched.bound), best)


def _integer_optimal(claim: Claim[CoverageGame], start: Vector) -> Solution:
    game, deadline = claim.game, claim.deadline
    if not cut_work_fits(game):
        lower, direction = quick_bound(game, start)
        rounded = np.ceil(made_feasible(game.replace(strategies="real"), direction, start))
        best = trimmed(game, min(start, rounded, key=game.total), deadline)
        return claim.bounded("greedy", lower, best)
    bound = integer_optimum(game, deadline, upper=game.total(start))
    if bound.finished:
        return claim.bounded("integer cuts", bound.lower, bound.contributions)
    best = trimmed(game, start, deadline)
    return claim.bounded("integer cuts", min(bound.lower, game.total(best)), best)
