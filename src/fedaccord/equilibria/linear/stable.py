"""Stable equilibria of linear games: the potential, the solution set, CP 1, and MILP.

A stable equilibrium of u = W theta is a solution of the complementarity problem

    low <= theta <= high,   W theta >= mu,   (theta_i - low_i) (W theta - mu)_i = 0.

For symmetric PSD W it is the optimality system of the potential (best_response.py); any two
solutions then have the same utilities, so one of them shows all.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.highs import Outcome, linear_program, mixed_program
from fedaccord.equilibria.linear.best_response import (
    FixedPoint,
    clipped_responses,
    find_fixed_point,
    polish,
    relative_regret,
)
from fedaccord.equilibria.result import Deadline, Interval, Select, Solution, Status
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.games.linear import DiscoveryGame, LinearGame, is_sparse

# Above these sizes a dense factorisation, and a mixed-integer program, take too long to try.
FACTOR_LIMIT = 2_000
MILP_LIMIT = 400
# The regret that games small enough to polish are brought to.
FINE = 1e-9


def potential_stable(
    game: LinearGame,
    *,
    select: Select,
    tolerance: float,
    deadline: Deadline,
    start: Vector | None = None,
) -> Solution:
    """Find a stable equilibrium of a symmetric PSD game from its convex potential.

        minimise  1/2 theta' W theta - mu' theta   subject to  low <= theta <= high

    Limits may leave somebody short at the minimum; then no equilibrium exists, because all minima
    have the same utilities.
    """
    point, theta = _polished_fixed_point(game, tolerance, deadline, start)
    gap = potential_gap(game, theta)
    # |W(theta - theta*)|_i <= sqrt(W_ii) |theta - theta*|_W, and half the square of the last is
    # at most the gap.
    doubt = np.sqrt(2 * gap * game.own_benefits)
    short = game.requirements - game.apply(theta)
    if (short > doubt + tolerance * game.requirements).any():
        agent = int(np.argmax(short - doubt))
        return Solution(
            game,
            "stable",
            "potential",
            Status.NONE_EXISTS,
            Interval(np.inf, np.inf),
            certificate={"potential_gap": gap, "agent": agent, "minimiser": theta},
            note=f"At its limit {game.name(agent)} stays short, while the others have no reason to "
            "give more.",
        )
    method = "best-response" + ("+momentum" if point.accelerated else "")
    bounds = _total_bounds(game, theta, gap)
    if bounds is None:
        chosen = _over_solution_set(game, theta, select, deadline)
        if chosen is not None and relative_regret(game, chosen) <= max(tolerance, 1e-8):
            theta, method = chosen, method + "+solution-set-lp"
            total = game.total(theta)
            bounds = Interval(total * (1 - 1e-9), total * (1 + 1e-9))
    if bounds is None:
        total = game.total(theta)
        cheapest = select == "cheapest"
        ends = (trivial_lower_bound(game), total) if cheapest else (total, np.inf)
        reached = relative_regret(game, theta) <= tolerance
        bounds = Interval(*ends) if reached else Interval(trivial_lower_bound(game), np.inf)
        return _finished(game, theta, point, method, bounds, Status.LIMIT, tolerance, deadline, gap)
    return _finished(game, theta, point, method, bounds, Status.OPTIMAL, tolerance, deadline, gap)


def _polished_fixed_point(
    game: LinearGame, tolerance: float, deadline: Deadline, start: Vector | None
) -> tuple[FixedPoint, Vector]:
    """Sweep to the tolerance and polish; in small games go on to nine digits."""
    point = find_fixed_point(game, tolerance=tolerance, deadline=deadline, start=start)
    theta = polish(game, point.contributions)
    if game.size <= FACTOR_LIMIT and relative_regret(game, theta) > FINE:
        further = find_fixed_point(game, tolerance=FINE, deadline=deadline, start=theta)
        polished = polish(game, further.contributions)
        if relative_regret(game, polished) < relative_regret(game, theta):
            point, theta = further, polished
    return point, theta


def _finished(
    game: LinearGame, theta: Vector, point: FixedPoint, method: str, bounds: Interval,
    status: Status, tolerance: float, deadline: Deadline, gap: float,
) -> Solution:  # fmt: skip
    regret = relative_regret(game, theta)
    # What is not at rest is no equilibrium: its place is among the certificates.
    reached = regret <= tolerance
    if reached:
        # Contributions are exact to the tolerance, and so is their total: keep it in the bounds.
        total = game.total(theta)
        bounds = Interval(min(bounds.lower, total), max(bounds.upper, total))
        if bounds.relative_gap > 10 * tolerance:
            status = Status.LIMIT
    note = "" if reached else f"Best response stopped at a relative regret of {regret:.1e}."
    certificate: dict[str, Any] = {"regret": regret, "sweeps": point.sweeps, "potential_gap": gap}
    if not reached:
        certificate["nearest"] = theta
    return Solution(
        game, "stable", method, status if reached else Status.FAILED, bounds,
        theta if reached else None, certificate=certificate, note=note,
    )  # fmt: skip


def potential_gap(game: LinearGame, theta: Vector) -> float:
    """Bound how far the potential at theta is above its minimum.

    By convexity the distance is at most the sum of slope_i (theta_i - x_i) for the minimiser x,
    which lies between low and max(low, alone) because nobody gives more than alone.
    """
    slope = game.apply(theta) - game.requirements
    most = np.minimum(np.maximum(game.alone, game.minimums), game.limits)
    worst = np.where(slope > 0, slope * (theta - game.minimums), slope * (theta - most))
    return float(np.maximum(worst, 0.0).sum())


def _total_bounds(game: LinearGame, theta: Vector, gap: float) -> Interval | None:
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
    most = np.minimum(np.maximum(game.alone, game.minimums), game.limits)
    error = factor * float(np.sqrt(2 * gap * game.own_benefits) @ most + gap)
    total = game.total(theta)
    return Interval(max(0.0, total - error), total + error)


def _least_eigenvalue(game: LinearGame) -> float | None:
    """Give a positive lower bound on W's eigenvalues; None where W is singular or large."""
    if game.size > FACTOR_LIMIT:
        return None
    values = np.linalg.eigvalsh(game.dense_benefits)
    least = float(values[0] - 1e-13 * game.size * values[-1])
    return least if least > 1e-11 * values[-1] else None


def _over_solution_set(
    game: LinearGame, theta: Vector, select: Select, deadline: Deadline
) -> Vector | None:
    """Choose the cheapest or costliest equilibrium, given one.

    minimise c' theta   subject to   W theta = W theta*,  theta_i = low_i where u_i > mu_i
    """
    if game.size > FACTOR_LIMIT:
        return None
    unit = float(theta.max()) or 1.0
    utility = game.apply(theta)
    spare = (utility - game.requirements) / game.own_benefits > 1e-9 * unit
    high = np.where(spare, game.minimums, game.limits) / unit
    rows = game.dense_benefits / game.own_benefits[:, None]
    sign = 1.0 if select == "cheapest" else -1.0
    result = linear_program(
        sign * game.costs / game.costs.max(),
        np.minimum(game.minimums / unit, high),
        high,
        equal_rows=rows,
        equals=utility / game.own_benefits / unit,
        seconds=deadline.left,
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


def cp1_stable(game: LinearGame, *, tolerance: float, deadline: Deadline) -> Solution:
    """Solve the paper's convex program CP 1 as it is printed.

        minimise  sum(theta)   s.t.  W theta >= mu,  theta >= 0,  theta' W theta - mu' theta <= 0

    The last constraint can hold only with equality, so the program has no interior: conic solvers
    give its total to many digits and its contributions to few. Kept as a second opinion.
    """
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
        problem.solve(solver=cvxpy.CLARABEL, time_limit=max(deadline.left, 1e-3))
    if theta.value is None:
        said = problem.status or "it made no progress"
        return Solution(
            game, "stable", "cp1", Status.FAILED, Interval(0.0, np.inf),
            note=f"The conic solver said: {said}.",
        )  # fmt: skip
    found = np.clip(theta.value, game.minimums, game.limits)
    regret = relative_regret(game, found)
    exact = regret <= tolerance
    bounds = Interval(trivial_lower_bound(game), game.total(found) if exact else np.inf)
    if exact:
        bounds = _total_bounds(game, found, potential_gap(game, found)) or bounds
    note = "" if exact else f"CP 1 gave contributions with a relative regret of {regret:.1e}."
    return Solution(
        game, "stable", "cp1", Status.OPTIMAL if exact else Status.LIMIT, bounds, found,
        certificate={"regret": regret}, note=note,
    )  # fmt: skip


def damped_stable(
    game: LinearGame, *, select: Select = "cheapest", tolerance: float, deadline: Deadline,
    start: Vector | None = None,
) -> Solution:  # fmt: skip
    """Find a stable equilibrium of any linear game by best response damped by a half.

    No guarantee of convergence; what it returns is verified.
    """
    theta = np.array(game.minimums if start is None else start, dtype=np.float64)
    rounds, regret = 0, np.inf
    while not deadline.passed and rounds < 100_000:
        theta = (theta + clipped_responses(game, theta)) / 2
        rounds += 1
        if rounds % 10 == 0 and (regret := relative_regret(game, theta)) <= tolerance / 10:
            break
    theta = polish(game, theta)
    regret = relative_regret(game, theta)
    short = bool((game.best_responses(theta) > theta + tolerance * theta.max()).any())
    settled = regret <= tolerance and not short
    total = game.total(theta)
    bounds = Interval(trivial_lower_bound(game), np.inf)
    if settled:
        bounds = Interval(bounds.lower, total) if select == "cheapest" else Interval(total, np.inf)
    note = "" if settled else "Damped best response did not settle on an equilibrium."
    return Solution(
        game, "stable", "damped-best-response", Status.LIMIT if settled else Status.FAILED, bounds,
        theta if settled else None, certificate={"regret": regret, "rounds": rounds}, note=note,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Normalised:
    """A linear game in units a solver's absolute tolerances suit: alone needs near one.

    benefits: W with every row divided by its own benefit.
    needs, low, high, costs: in units of the largest stand-alone need.
    unit: that need.
    """

    benefits: Any
    needs: Vector
    low: Vector
    high: Vector
    costs: Vector
    unit: float


def normalise(game: LinearGame) -> Normalised:
    """Rescale a game for HiGHS, whose tolerances are absolute; integer games keep their unit."""
    needs = game.requirements / game.own_benefits
    unit = 1.0 if game.is_integer else float(needs.max()) or 1.0
    scaled = sparse.diags_array(1 / game.own_benefits) @ sparse.csr_array(game.benefits)
    return Normalised(
        benefits=sparse.csr_array(scaled),
        needs=needs / unit,
        low=game.minimums / unit,
        high=game.limits / unit,
        costs=game.costs / game.costs.max(),
        unit=unit,
    )


def milp_stable(
    game: LinearGame, *, select: Select, tolerance: float, deadline: Deadline
) -> Solution:
    """Find the cheapest or costliest equilibrium of any linear game, W symmetric or not.

    minimise    c' theta
    subject to  0 <= W theta - mu <= S (1 - z) [+ (W_ii - eps) z in integer games]
                low <= theta <= low + (alone - low) z,   z binary
    """
    scaled = normalise(game)
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
        (
            sparse.hstack([eye, -sparse.diags_array(most - scaled.low)]),
            -np.inf,
            scaled.low,
        ),
    ]
    sign = 1.0 if select == "cheapest" else -1.0
    result = mixed_program(
        np.concatenate([sign * scaled.costs, np.zeros(k)]),
        np.concatenate([scaled.low, np.zeros(k)]),
        np.concatenate([most, np.ones(k)]),
        rows=rows,
        whole=np.repeat([game.is_integer, True], k),
        seconds=deadline.left,
        gap=tolerance / 10,
    )
    return _milp_answer(game, result, select, tolerance, deadline)


def _milp_answer(
    game: LinearGame, result: Outcome, select: Select, tolerance: float, deadline: Deadline
) -> Solution:
    method = "milp"
    factor = float(game.costs.max()) * normalise(game).unit
    if result.x is None:
        # Without limits an equilibrium exists (Theorem 2), whatever a solver says.
        limited = bool(np.isfinite(game.limits).any())
        proved = result.infeasible and not game.is_integer and limited and is_tame(game)
        return Solution(
            game, "stable", method, Status.NONE_EXISTS if proved else Status.FAILED,
            Interval(np.inf, np.inf) if proved else Interval(trivial_lower_bound(game), np.inf),
            note="" if proved else "The mixed-integer solver found none; that is no proof.",
        )  # fmt: skip
    theta = _exact_on_support(game, result.x)
    total = game.total(theta)
    proved_bound = max(result.bound if select == "cheapest" else -result.bound, 0.0) * factor
    if not is_stable(game, theta, tolerance):
        return Solution(
            game, "stable", method, Status.FAILED, Interval(trivial_lower_bound(game), np.inf),
            note="The mixed-integer solver's answer did not pass the check of best responses.",
        )  # fmt: skip
    closed = result.solved and is_tame(game) and abs(proved_bound - total) <= tolerance * total
    if not closed and select == "cheapest" and not is_tame(game):
        proved_bound = trivial_lower_bound(game)
    ends = sorted(
        (
            min(proved_bound, total) if select == "cheapest" else total,
            max(proved_bound, total) if select == "costliest" else total,
        )
    )
    return Solution(
        game, "stable", method, Status.OPTIMAL if closed else Status.LIMIT, Interval(*ends), theta,
        certificate={"regret": relative_regret(game, theta)},
    )  # fmt: skip


def _exact_on_support(game: LinearGame, point: Vector) -> Vector:
    unit = normalise(game).unit
    theta = point[: game.size] * unit
    if game.is_integer:
        return np.round(theta)
    contributing: Indices = np.flatnonzero(point[game.size :] > 0.5)
    fixed = np.array(game.minimums)
    fixed[contributing] = np.maximum(theta[contributing], fixed[contributing] + 1e-8 * unit)
    return polish(game, np.clip(fixed, game.minimums, game.limits))


def is_tame(game: LinearGame) -> bool:
    """Say whether benefits are near enough to each other for a mixed-integer solver's tolerance."""
    return float(normalise(game).benefits.max()) <= 1e4


def is_stable(game: LinearGame, theta: Vector, tolerance: float) -> bool:
    """Check that everybody is at its best response, exactly in integer games."""
    needed = game.best_responses(theta)
    wanted = np.maximum(needed, game.minimums)
    if game.is_integer:
        return bool((wanted == theta).all())
    scale = float(theta.max()) or 1.0
    return bool((np.abs(wanted - theta) <= tolerance * scale).all())
