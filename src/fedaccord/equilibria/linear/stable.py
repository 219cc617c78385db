"""Stable equilibria of linear games: best response, the potential, and the solution set.

A stable equilibrium of u = W theta is a solution of the complementarity problem

    low <= theta <= high,   W theta >= mu,   (theta_i - low_i) (W theta - mu)_i = 0.

For symmetric W a sweep of best responses, one agent after the other (Gauss-Seidel), is coordinate
descent on the potential

    minimise  1/2 theta' W theta - mu' theta    subject to  low <= theta <= high,

whose stationary points are the fixed points of best response clipped to the strategy space. Where W
is PSD too, any two solutions have the same utilities, so one of them shows all. Programs find the
equilibria of other games: the paper's CP 1, and a mixed-integer one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Matrix, Vector
from fedaccord.equilibria.linear.best_response import FixedPoint, find_fixed_point
from fedaccord.equilibria.linear.optimal import is_tame, normalise
from fedaccord.equilibria.programs import Outcome, linear_program, mixed_program
from fedaccord.equilibria.result import Claim, Deadline, Interval, Solution, Status
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.games.linear import DiscoveryGame, LinearGame, is_sparse, relative_regret

# Above this size a dense factorisation takes too long to try.
FACTOR_LIMIT = 2_000
# The regret that games small enough to polish are brought to.
FINE = 1e-9
# Polishing solves a dense system among the contributors, up to this many.
POLISH_LIMIT = 3_000
# A least-squares solution of a singular system, up to this many.
LEAST_SQUARES_LIMIT = 600
# Above this size a mixed-integer program takes too long to try.
MILP_LIMIT = 400


def stable_linear(
    claim: Claim[LinearGame], method: str = "auto", start: Vector | None = None
) -> Solution:
    """Find a stable equilibrium by a method, or the one that fits the benefits."""
    game = claim.game
    if method == "cp1":
        return cp1_stable(claim)
    if method == "milp":
        return milp_stable(claim)
    if game.is_integer:
        return integer_stable(claim)
    if game.is_symmetric and game.is_psd:
        return potential_stable(claim, start)
    if method == "auto" and game.size <= MILP_LIMIT:
        exact = milp_stable(claim)
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


def polish(game: LinearGame, contributions: Vector) -> Vector:
    """Solve W_SS theta_S = mu_S - W_SF theta_F exactly, S the contributors strictly inside the box.

    Returns the contributions unchanged where S is large or the result is no better.
    """
    free = (contributions > game.minimums) & (contributions < game.limits)
    # A contribution this small next to the largest is rounding: its agent gives nothing.
    free &= contributions - game.minimums > 1e-9 * contributions.max()
    inside = np.flatnonzero(free)
    if not 0 < inside.size <= POLISH_LIMIT:
        return contributions
    fixed = np.where(
        contributions - game.minimums <= game.limits - contributions, game.minimums, game.limits
    )
    rest = np.where(free, 0.0, fixed)
    target = (game.requirements - game.apply(rest))[inside]
    block = game.benefits_among(inside, inside)
    before = relative_regret(game, contributions)
    for correct in _corrections(inside.size):
        # Correcting the residual, not solving afresh, keeps to the nearest solution where W_SS is
        # singular and many would do.
        polished = rest.copy()
        polished[inside] = contributions[inside] + correct(
            block, target - block @ contributions[inside]
        )
        polished = np.clip(polished, game.minimums, game.limits)
        if relative_regret(game, polished) < before:
            return polished
    return contributions


def _corrections(size: int) -> Iterator[Callable[[Matrix, Vector], Vector]]:
    """Yield ways to solve for a correction: quick, then sure where W_SS may be singular."""

    def solve(block: Matrix, residual: Vector) -> Vector:
        try:
            return np.asarray(np.linalg.solve(block, residual))
        except np.linalg.LinAlgError:
            return np.zeros(residual.size)

    yield solve
    if size <= LEAST_SQUARES_LIMIT:
        yield lambda block, residual: np.asarray(np.linalg.lstsq(block, residual, rcond=1e-12)[0])


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


def cp1_stable(claim: Claim[LinearGame]) -> Solution:
    """Solve the paper's convex program CP 1 as it is printed.

        minimise  sum(theta)   s.t.  W theta >= mu,  theta >= 0,  theta' W theta - mu' theta <= 0

    The last constraint can hold only with equality, so the program has no interior: conic solvers
    give its total to many digits and its contributions to few. Kept as a second opinion.
    """
    game = claim.game
    if game.is_integer or claim.costliest:
        raise InputError('method "cp1" finds the cheapest real equilibrium only; use "auto"')
    try:
        import cvxpy
    except ImportError:
        raise MissingExtraError("cvxpy", "solvers") from None
    if not (game.is_symmetric and game.is_psd):
        raise InputError('method "cp1" needs symmetric positive semidefinite benefits')
    theta = cvxpy.Variable(game.size, nonneg=True)
    if isinstance(game, DiscoveryGame):
        utility = game.distributions @ (game.distributions.T @ theta)
        square = cvxpy.sum_squares(game.distributions.T @ theta)
    else:
        utility = game.benefits @ theta
        square = cvxpy.quad_form(theta, cvxpy.psd_wrap(game.benefits))
    constraints = [
        utility >= game.requirements,
        # Nobody above its minimum has anything to spare; without minimums, as printed.
        square - game.requirements @ theta - game.minimums @ (utility - game.requirements) <= 0,
        theta >= game.minimums,
    ]
    limited = np.flatnonzero(np.isfinite(game.limits))
    if limited.size:
        constraints.append(theta[limited] <= game.limits[limited])
    problem = cvxpy.Problem(cvxpy.Minimize(game.costs @ theta), constraints)
    # That it is inaccurate is known, and measured below; now and then the solver gives up.
    with warnings.catch_warnings(), contextlib.suppress(cvxpy.error.SolverError):
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cvxpy.CLARABEL, time_limit=max(claim.deadline.left, 1e-3))
    if theta.value is None:
        said = problem.status or "it made no progress"
        return claim.failed("cp1", f"The conic solver said: {said}.")
    found = np.clip(theta.value, game.minimums, game.limits)
    regret = relative_regret(game, found)
    exact = regret <= claim.tolerance
    bounds = Interval(trivial_lower_bound(game), game.total(found) if exact else np.inf)
    if exact:
        bounds = bound_totals(game, found, potential_gap(game, found)) or bounds
    note = "" if exact else f"CP 1 gave contributions with a relative regret of {regret:.1e}."
    status = Status.OPTIMAL if exact else Status.LIMIT
    return claim.solution("cp1", status, bounds, found, certificate={"regret": regret}, note=note)


def milp_stable(claim: Claim[LinearGame]) -> Solution:
    """Find the cheapest or costliest equilibrium of any linear game, W symmetric or not.

    minimise    c' theta
    subject to  0 <= W theta - mu <= S (1 - z) [+ (W_ii - eps) z in integer games]
                low <= theta <= low + (alone - low) z,   z binary
    """
    game, scaled = claim.game, normalise(claim.game)
    k = game.size
    # Nobody gives more than alone, so utilities are at most those of everybody alone.
    most = np.minimum(
        np.maximum(np.ceil(scaled.needs) if game.is_integer else scaled.needs, scaled.low),
        scaled.high,
    )
    surplus = np.maximum(scaled.benefits @ most - scaled.needs, 0.0)
    # An integer contributor may have less than one own sample to spare.
    kept = (1.0 - 1e-6) if game.is_integer else 0.0
    surplus = np.maximum(surplus, kept)
    eye = sparse.eye_array(k, format="csr")
    zero = sparse.csr_array((k, k))
    rows = [
        (sparse.hstack([scaled.benefits, zero]), scaled.needs, np.inf),
        (
            sparse.hstack([scaled.benefits, sparse.diags_array(surplus - kept)]),
            -np.inf,
            scaled.needs + surplus,
        ),
        (sparse.hstack([eye, -sparse.diags_array(most - scaled.low)]), -np.inf, scaled.low),
    ]
    sign = -1.0 if claim.costliest else 1.0
    result = mixed_program(
        np.concatenate([sign * scaled.costs, np.zeros(k)]),
        np.concatenate([scaled.low, np.zeros(k)]),
        np.concatenate([most, np.ones(k)]),
        rows=rows,
        whole=np.repeat([game.is_integer, True], k),
        seconds=claim.deadline.left,
        gap=claim.tolerance / 10,
    )
    return _check_milp(claim, result)


def _check_milp(claim: Claim[LinearGame], result: Outcome) -> Solution:
    """Claim what the program found as far as best responses and tolerances bear it out."""
    game, lower = claim.game, trivial_lower_bound(claim.game)
    if result.x is None:
        # Without limits an equilibrium exists (Theorem 2), whatever a solver says.
        limited = bool(np.isfinite(game.limits).any())
        if result.infeasible and not game.is_integer and limited and is_tame(game):
            return claim.none_exists("milp")
        note = "The solver found none. This does not prove that there is none."
        return claim.failed("milp", note, lower=lower)
    theta = _solve_on_support(game, result.x)
    if not is_stable(game, theta, claim.tolerance):
        note = "The mixed-integer solver's answer did not pass the check of best responses."
        return claim.failed("milp", note, lower=lower)
    total = game.total(theta)
    factor = float(game.costs.max()) * normalise(game).unit
    bound = max(-result.bound if claim.costliest else result.bound, 0.0) * factor
    tame = is_tame(game)
    closed = result.solved and tame and abs(bound - total) <= claim.tolerance * total
    if not tame and not claim.costliest:
        bound = lower
    ends = (total, max(bound, total)) if claim.costliest else (min(bound, total), total)
    return claim.solution(
        "milp", Status.OPTIMAL if closed else Status.LIMIT, Interval(*ends), theta,
        certificate={"regret": relative_regret(game, theta)},
    )  # fmt: skip


def _solve_on_support(game: LinearGame, point: Vector) -> Vector:
    unit = normalise(game).unit
    theta = point[: game.size] * unit
    if game.is_integer:
        return np.round(theta)
    contributing: Indices = np.flatnonzero(point[game.size :] > 0.5)
    fixed = np.array(game.minimums)
    fixed[contributing] = np.maximum(theta[contributing], fixed[contributing] + 1e-8 * unit)
    return polish(game, np.clip(fixed, game.minimums, game.limits))


def integer_stable(claim: Claim[LinearGame]) -> Solution:
    """Take what the potential leads to, and improve on it by MILP where that is not too large.

    Sequential integer best response ends for symmetric W, even indefinite: each move lowers
    1/2 theta' W theta - (mu + diag(W)/2)' theta, or keeps it and lowers the total.
    """
    from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
    from fedaccord.equilibria.general.exhaustive import exhaustive_stable

    game, exact = claim.game, None
    if game.size <= MILP_LIMIT:
        exact = milp_stable(claim)
        if exact.status is Status.OPTIMAL:
            return exact
        if exact.status is Status.FAILED:
            # What the solver's tolerance cannot tell, narrowing boxes of whole numbers often can.
            share = Deadline(claim.deadline.left / 2)
            searched = exhaustive_stable(game, select=claim.select, deadline=share)
            if searched.status in (Status.OPTIMAL, Status.NONE_EXISTS):
                return searched
    path = best_response_dynamics(
        game, order="sequential", max_rounds=10_000, deadline=claim.deadline
    )
    if path.ending is Ending.CONVERGED and is_stable(game, path.last, claim.tolerance):
        lower = trivial_lower_bound(game) if exact is None else exact.bounds.lower
        return claim.one_sided("potential", lower, path.last)
    return exact or claim.failed("potential", "Sequential best response did not settle.")


def is_stable(game: LinearGame, theta: Vector, tolerance: float) -> bool:
    """Check that everybody is at its best response, exactly in integer games."""
    needed = game.best_responses(theta)
    wanted = np.maximum(needed, game.minimums)
    if game.is_integer:
        return bool((wanted == theta).all())
    scale = float(theta.max()) or 1.0
    return bool((np.abs(wanted - theta) <= tolerance * scale).all())
