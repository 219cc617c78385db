"""Stable equilibria of linear games by programs: the paper's CP 1, and a mixed-integer one."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.linear.best_response import polish, relative_regret
from fedaccord.equilibria.linear.optimal import is_tame, normalise
from fedaccord.equilibria.linear.stable import bound_totals, potential_gap, trivial_lower_bound
from fedaccord.equilibria.programs import Outcome, mixed_program
from fedaccord.equilibria.result import Claim, Deadline, Interval, Solution, Status
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.games.linear import DiscoveryGame, LinearGame

# Above this size a mixed-integer program takes too long to try.
MILP_LIMIT = 400


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
