"""Optimal allocations of coverage games: feasible ones found, cut back, and bounded from below."""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.coverage import scip
from fedaccord.equilibria.coverage.cuts import integer_optimum, quick_bound, smooth_bound
from fedaccord.equilibria.programs import linear_program
from fedaccord.equilibria.result import Claim, Deadline, Solution, bisect, least_whole
from fedaccord.games.coverage import CoverageGame

# Linear programs over cuts are tried up to this many agents and this many products in a round of
# cuts; branch and bound by SCIP up to this many entries of Q and steps of all agents together.
CUTS_LIMIT = 20_000
CUTS_WORK = 20_000_000
SCIP_ENTRIES = 150
SCIP_STEPS = 400

# Real games of at most this many agents are polished by successive linear programs.
POLISH_LIMIT = 300


def optimal_coverage(claim: Claim[CoverageGame], method: str = "auto") -> Solution:
    """Find the least total that satisfies everybody.

    Whole contributions: exact, by integer programs over tangents of the convex constraints. Real
    ones: the smooth form bounds the total from below, its solution made feasible bounds it from
    above, and SCIP closes what is left in small games.

    method: "auto", "cuts" (bounds only) or "scip" (real games).
    """
    game, deadline = claim.game, claim.deadline
    start = feasible_start(game)
    if game.is_integer:
        return _integer_optimal(claim, start)
    lower, point = lower_bound(game, start, deadline)
    best = start
    for candidate in (make_feasible(game, point, start), make_feasible(game, start * 0, start)):
        best = min(best, trim(game, candidate, deadline), key=game.total)
    best = polish(game, best, deadline)
    most = cap_by_total(game, best)
    if method == "cuts" or claim.is_closed(lower, best):
        return claim.bounded("cuts", lower, best)
    if method == "auto" and not fits_scip(game, most):
        return claim.bounded("cuts", lower, best)
    searched = scip.solve_scip(game, deadline, most=most)
    if searched.contributions is not None:
        found = make_feasible(game, searched.contributions, best)
        best = min(best, found, key=game.total)
    return claim.bounded("scip", max(lower, searched.bound), best)


def _integer_optimal(claim: Claim[CoverageGame], start: Vector) -> Solution:
    game, deadline = claim.game, claim.deadline
    if not cut_work_fits(game):
        lower, direction = quick_bound(game, start)
        rounded = np.ceil(make_feasible(game.replace(strategies="real"), direction, start))
        best = trim(game, min(start, rounded, key=game.total), deadline)
        return claim.bounded("greedy", lower, best)
    bound = integer_optimum(game, deadline, upper=game.total(start))
    if bound.finished:
        return claim.bounded("integer cuts", bound.lower, bound.contributions)
    best = trim(game, start, deadline)
    return claim.bounded("integer cuts", min(bound.lower, game.total(best)), best)


def lower_bound(game: CoverageGame, best: Vector, deadline: Deadline) -> tuple[float, Vector]:
    """Bound feasible totals from below; give the bound and a point that comes near it."""
    if not cut_work_fits(game):
        return quick_bound(game, best)
    bound = smooth_bound(game, Deadline(deadline.left / 2), upper=game.total(best))
    if bound.finished:
        return bound.lower, bound.contributions
    lower, direction = quick_bound(game, best)
    return max(lower, bound.lower), direction


def cut_work_fits(game: CoverageGame) -> bool:
    """Return whether a round of cuts, a product for each pair of agents at each point, is cheap."""
    degrees = np.bincount(game.distributions.indices).astype(np.float64)
    return game.size <= CUTS_LIMIT and float(degrees @ degrees) <= CUTS_WORK


def plenty(game: CoverageGame) -> Vector:
    """Return everybody's limit, or where there is none as much as leaves nothing unseen."""
    starts = game.distributions.indptr[:-1]
    slowest = np.minimum.reduceat(game.distributions.data, starts)
    return np.where(np.isfinite(game.limits), game.limits, np.ceil(800 / slowest))


def feasible_start(game: CoverageGame) -> Vector:
    """Return a feasible allocation of a feasible game: agents do in turn what is left to do."""
    given = np.array(game.minimums)
    if game.size <= POLISH_LIMIT:
        for i in np.argsort(-game.alone, kind="stable").tolist():
            given[i] = np.clip(game.best_response(i, given), given[i], game.limits[i])
    else:
        given = np.clip(game.alone, given, game.limits)
    if game.is_feasible(given):
        return given
    top = np.maximum(given, plenty(game))
    return trim(game, top, None) if game.is_integer else _move_up(game, given, top)


def _move_up(game: CoverageGame, given: Vector, top: Vector) -> Vector:
    """Return the first feasible point on the way up from given to a feasible top."""
    if game.is_feasible(given):
        return given
    share = bisect(lambda part: game.is_feasible(given + part * (top - given)), 0.0, 1.0)
    return np.asarray(given + share * (top - given))


def make_feasible(game: CoverageGame, point: Vector, reference: Vector) -> Vector:
    """Scale a real point up until it is feasible; or move it towards a feasible reference."""
    point = np.clip(point, game.minimums, game.limits)
    for _ in range(8):
        larger = np.minimum(2 * point, game.limits)
        if game.is_feasible(larger):
            return _move_up(game, point, larger)
        point = larger
    return _move_up(game, point, np.maximum(point, reference))


def trim(game: CoverageGame, given: Vector, deadline: Deadline | None) -> Vector:
    """Let one agent after another give as little as leaves everybody satisfied."""
    given = np.array(given)
    if game.size > POLISH_LIMIT:
        return given
    for i in np.argsort(-game.costs * given, kind="stable").tolist():
        if deadline is not None and deadline.passed:
            break
        bottom = given.copy()
        bottom[i] = game.minimums[i]
        if not game.is_integer:
            given = _move_up(game, bottom, given)
            continue
        given[i] = least_whole(game, given, i)
    return given


def polish(game: CoverageGame, given: Vector, deadline: Deadline) -> Vector:
    """Lower the total of a feasible point by linear programs over steps within a shrinking box."""
    if game.size > POLISH_LIMIT or not given.any():
        return given
    radius = 0.25 * float(given.max())
    for _ in range(60):
        if deadline.passed or radius < 1e-9 * float(given.max()):
            break
        slack = game.utilities(given) - game.requirements
        low = np.maximum(game.minimums - given, -radius)
        high = np.minimum(game.limits - given, radius)
        slopes, most = -game.jacobian(given), np.maximum(slack, 0.0)
        answer = linear_program(game.costs, low, high, rows=slopes, most=most)
        radius /= 2
        if answer.x is not None:
            found = make_feasible(game, given + answer.x, given)
            if game.total(found) < game.total(given) * (1 - 1e-12):
                given, radius = found, min(2 * radius * 1.5, float(given.max()))
    return given


def cap_by_total(game: CoverageGame, best: Vector) -> Vector:
    """No agent of a cheaper allocation gives more than the whole of the best total buys."""
    rest = game.total(best) - game.total(game.minimums)
    return np.minimum(game.limits, game.minimums + rest / game.costs)


def fits_scip(game: CoverageGame, most: Vector) -> bool:
    """Return whether branch and bound is likely to end, and SCIP is there."""
    few = len(game.rows) <= SCIP_ENTRIES and float(np.ceil(most).sum()) <= SCIP_STEPS
    return few and scip.is_available()
