"""Stable equilibria of linear games: best response, the potential, and the solution set.

A stable equilibrium of u = W theta is a solution of the complementarity problem

    low <= theta <= high,   W theta >= mu,   (theta_i - low_i) (W theta - mu)_i = 0.

For symmetric W a sweep of best responses, one agent after the other (Gauss-Seidel), is coordinate
descent on the potential

    minimise  1/2 theta' W theta - mu' theta    subject to  low <= theta <= high,

whose stationary points are the fixed points of best response clipped to the strategy space. Where W
is PSD too, any two solutions have the same utilities, so one of them shows all. Programs find the
equilibria of other games (stable_programs.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.linear.best_response import (
    FixedPoint,
    find_fixed_point,
    polish,
    relative_regret,
)
from fedaccord.equilibria.programs import linear_program
from fedaccord.equilibria.result import Claim, Deadline, Interval, Solution, Status
from fedaccord.games.linear import DiscoveryGame, LinearGame, is_sparse

# Above this size a dense factorisation takes too long to try.
FACTOR_LIMIT = 2_000
# The regret that games small enough to polish are brought to.
FINE = 1e-9


def stable_linear(
    claim: Claim[LinearGame], method: str = "auto", start: Vector | None = None
) -> Solution:
    """Find a stable equilibrium by a method, or the one that fits the benefits."""
    # Programs are imported for the games that need them.
    from fedaccord.equilibria.linear import stable_programs as programs

    game = claim.game
    if method == "cp1":
        return programs.cp1_stable(claim)
    if method == "milp":
        return programs.milp_stable(claim)
    if game.is_integer:
        return programs.integer_stable(claim)
    if game.is_symmetric and game.is_psd:
        return potential_stable(claim, start)
    if method == "auto" and game.size <= programs.MILP_LIMIT:
        exact = programs.milp_stable(claim)
        if exact.status is not Status.FAILED:
            return exact
    later = Deadline(max(claim.deadline.left, 1.0))
    return damped_stable(dataclasses.replace(claim, deadline=later), start)


def potential_stable(claim: Claim[LinearGame], start: Vector | None = None) -> Solution:
    """Find a stable equilibrium of a symmetric PSD game from its convex potential.

        minimise  1/2 theta' W theta - mu' theta   subject to  low <= theta <= high

    Limits may leave somebody short at the minimum; then no equilibrium exists, because all minima
    have the same utilities.
    """
    game, tolerance = claim.game, claim.tolerance
    point, theta = _find_polished_point(claim, start)
    gap = potential_gap(game, theta)
    # |W(theta - theta*)|_i <= sqrt(W_ii) |theta - theta*|_W, and half the square of the last is
    # at most the gap.
    doubt = np.sqrt(2 * gap * game.own_benefits)
    short = game.requirements - game.apply(theta)
    if (short > doubt + tolerance * game.requirements).any():
        agent = int(np.argmax(short - doubt))
        return claim.none_exists(
            "potential",
            f"At its limit {game.name(agent)} stays short, while the others have no reason to give "
            "more.",
            certificate={"potential_gap": gap, "agent": agent, "minimiser": theta},
        )
    method = "best-response" + ("+momentum" if point.accelerated else "")
    bounds = bound_totals(game, theta, gap)
    if bounds is None:
        chosen = _choose_among_solutions(claim, theta)
        if chosen is not None and relative_regret(game, chosen) <= max(tolerance, 1e-8):
            theta, method = chosen, method + "+solution-set-lp"
            total = game.total(theta)
            bounds = Interval(total * (1 - 1e-9), total * (1 + 1e-9))
    regret = relative_regret(game, theta)
    certificate: dict[str, Any] = {"regret": regret, "sweeps": point.sweeps, "potential_gap": gap}
    if regret > tolerance:
        # What is not at rest is no equilibrium: its place is among the certificates.
        bounds = bounds or Interval(trivial_lower_bound(game), np.inf)
        note = f"Best response stopped at a relative regret of {regret:.1e}."
        certificate["nearest"] = theta
        return claim.solution(method, Status.FAILED, bounds, certificate=certificate, note=note)
    if bounds is None:
        lower = trivial_lower_bound(game)
        return claim.one_sided(method, lower, theta, certificate=certificate)
    # Contributions are exact to the tolerance, and so is their total: keep it in the bounds.
    total = game.total(theta)
    bounds = Interval(min(bounds.lower, total), max(bounds.upper, total))
    status = Status.OPTIMAL if bounds.relative_gap <= 10 * tolerance else Status.LIMIT
    return claim.solution(method, status, bounds, theta, certificate=certificate)


def _find_polished_point(
    claim: Claim[LinearGame], start: Vector | None
) -> tuple[FixedPoint, Vector]:
    """Sweep to the tolerance and polish; in small games go on to nine digits."""
    game, deadline = claim.game, claim.deadline
    point = find_fixed_point(game, tolerance=claim.tolerance, deadline=deadline, start=start)
    theta = polish(game, point.contributions)
    if game.size <= FACTOR_LIMIT and relative_regret(game, theta) > FINE:
        further = find_fixed_point(game, tolerance=FINE, deadline=deadline, start=theta)
        polished = polish(game, further.contributions)
        if relative_regret(game, polished) < relative_regret(game, theta):
            point, theta = further, polished
    return point, theta


def potential_gap(game: LinearGame, theta: Vector) -> float:
    """Bound how far the potential at theta is above its minimum.

    By convexity the distance is at most the sum of slope_i (theta_i - x_i) for the minimiser x,
    which lies between low and max(low, alone) because nobody gives more than alone.
    """
    slope = game.apply(theta) - game.requirements
    worst = np.where(
        slope > 0, slope * (theta - game.minimums), slope * (theta - game.most_at_rest)
    )
    return float(np.maximum(worst, 0.0).sum())


def bound_totals(game: LinearGame, theta: Vector, gap: float) -> Interval | None:
    """Bound the total of every equilibrium, where all have the same; None where they may differ."""
    total = game.total(theta)
    level = float(game.requirements[0])
    if np.ptp(game.requirements) == 0 and np.ptp(game.costs) == 0:
        if level == 0.0:
            return Interval(total, total)
        return _equal_requirement_bounds(game, theta, gap, float(game.costs[0]) / level)
    if isinstance(game, DiscoveryGame) and game.has_equal_totals:
        # sum(theta) = sum(Q' theta), and |Q'(theta - theta*)|^2 <= 2 gap.
        error: float = float(game.costs[0] * np.sqrt(2 * gap * game.distributions.shape[1]))
    else:
        least = _least_eigenvalue(game)
        if least is None:
            return None
        error = float(np.linalg.norm(game.costs) * np.sqrt(2 * gap / least))
    return Interval(max(0.0, total - error), total + error)


def _equal_requirement_bounds(
    game: LinearGame, theta: Vector, gap: float, factor: float
) -> Interval:
    """Bound mu' theta* for the equilibria theta*, and so, times a factor, their common total."""
    if not game.minimums.any():
        # theta*' W theta* = mu' theta*, so the least potential is -mu' theta* / 2; it lies within
        # the gap below the potential at theta.
        potential = float(theta @ game.apply(theta) / 2 - game.requirements @ theta)
        return Interval(-2 * potential * factor, -2 * (potential - gap) * factor)
    # With e = theta - theta* and s* the slack at theta*: mu'e = theta*'We - e's*; the first is at
    # most the doubt about utilities times theta*, the second lies between 0 and the gap.
    error = factor * float(np.sqrt(2 * gap * game.own_benefits) @ game.most_at_rest + gap)
    total = game.total(theta)
    return Interval(max(0.0, total - error), total + error)


def _least_eigenvalue(game: LinearGame) -> float | None:
    """Return a positive lower bound on W's eigenvalues; None where W is singular or large."""
    if game.size > FACTOR_LIMIT:
        return None
    values = np.linalg.eigvalsh(game.dense_benefits)
    least = float(values[0] - 1e-13 * game.size * values[-1])
    return least if least > 1e-11 * values[-1] else None


def _choose_among_solutions(claim: Claim[LinearGame], theta: Vector) -> Vector | None:
    """Choose the cheapest or costliest equilibrium, given one.

    minimise c' theta   subject to   W theta = W theta*,  theta_i = low_i where u_i > mu_i
    """
    game = claim.game
    if game.size > FACTOR_LIMIT:
        return None
    unit = float(theta.max()) or 1.0
    utility = game.apply(theta)
    spare = (utility - game.requirements) / game.own_benefits > 1e-9 * unit
    high = np.where(spare, game.minimums, game.limits) / unit
    rows = game.dense_benefits / game.own_benefits[:, None]
    sign = -1.0 if claim.costliest else 1.0
    result = linear_program(
        sign * game.costs / game.costs.max(),
        np.minimum(game.minimums / unit, high),
        high,
        equal_rows=rows,
        equals=utility / game.own_benefits / unit,
        seconds=claim.deadline.left,
        tolerance=1e-10,
    )
    if result.x is None:
        return None
    chosen = np.clip(result.x * unit, game.minimums, game.limits)
    return polish(game, chosen)


def trivial_lower_bound(game: LinearGame) -> float:
    """Bound every feasible total from below: somebody must meet the hardest requirement.

    u_i <= sum_j W_ij theta_j <= max_j (W_ij / c_j) * total.
    """
    if isinstance(game, DiscoveryGame) or is_sparse(game.benefits):
        return float((game.costs * game.minimums).sum())
    best = (game.dense_benefits / game.costs).max(axis=1)
    return float((game.requirements / best).max())


def damped_stable(claim: Claim[LinearGame], start: Vector | None = None) -> Solution:
    """Find a stable equilibrium of any linear game by best response damped by a half.

    No guarantee of convergence; what it returns is verified.
    """
    game, tolerance = claim.game, claim.tolerance
    theta = np.array(game.minimums if start is None else start, dtype=np.float64)
    rounds, regret = 0, np.inf
    while not claim.deadline.passed and rounds < 100_000:
        theta = (theta + game.responses_within(theta)) / 2
        rounds += 1
        if rounds % 10 == 0 and (regret := relative_regret(game, theta)) <= tolerance / 10:
            break
    theta = polish(game, theta)
    regret = relative_regret(game, theta)
    short = bool((game.best_responses(theta) > theta + tolerance * theta.max()).any())
    certificate = {"regret": regret, "rounds": rounds}
    lower = trivial_lower_bound(game)
    if regret <= tolerance and not short:
        return claim.one_sided("damped-best-response", lower, theta, certificate=certificate)
    note = "Damped best response did not settle on an equilibrium."
    return claim.failed("damped-best-response", note, lower=lower, certificate=certificate)
