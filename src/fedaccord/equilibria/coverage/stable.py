"""Stable equilibria of coverage games."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.equilibria.coverage import scip
from fedaccord.equilibria.coverage.cuts import integer_optimum, quick_bound
from fedaccord.equilibria.coverage.optimal import cut_work_fits, fits_scip, lower_bound
from fedaccord.equilibria.coverage.sweeps import (
    Swept,
    contributions_of,
    has_convex_form,
    is_determined,
    regret,
    set_logs,
    set_misses,
    set_rates,
    sweep_responses,
    sweep_uniform,
)
from fedaccord.equilibria.programs import linear_program
from fedaccord.equilibria.result import Claim, Deadline, Interval, Solution, Status
from fedaccord.games.coverage import CoverageGame

# Exhaustive search is tried in integer games with at most e^12 = 160,000 candidates.
# Where there are more, but few agents, it is given a little time.
EXHAUSTIVE_LOG_POINTS = 12.0
EXHAUSTIVE_AGENTS = 300

# Linear programs over all equilibria of the convex form are tried up to this many agents.
FACE_LIMIT = 2_000

NOT_SETTLED = "Because sweeps of best responses ended at no equilibrium."


def stable_coverage(
    claim: Claim[CoverageGame], method: str = "auto", start: Vector | None = None
) -> Solution:
    """Find a stable equilibrium, the cheapest (or costliest) where that is known.

    Uniform sets over the reals: the convex form, whose minimum is the equilibrium; other real games
    by damped best response, whole ones by the potential, from several starts. Small games are
    settled by SCIP or by trying everything. For "costliest", bounds hold the greatest total.

    method: "auto", "sweeps" (no SCIP, no enumeration), "scip" or "exhaustive".
    start: where sweeps begin, for a warm start.
    """
    game = claim.game
    if has_convex_form(game) and method in ("auto", "sweeps"):
        return _uniform_stable(claim, start, method)
    if game.is_integer:
        return _integer_stable(claim, start, method)
    return _real_stable(claim, start, method)


def _uniform_stable(claim: Claim[CoverageGame], start: Vector | None, method: str) -> Solution:
    game, tolerance = claim.game, claim.tolerance
    aim = tolerance if len(game.rows) > 10**6 else min(tolerance, 1e-10)
    swept = sweep_uniform(game, start, aim, claim.deadline)
    if not swept.is_close(tolerance):
        return claim.failed("convex form", "Because the sweeps were stopped by the time limit.")
    given = swept.contributions
    if (missing := _find_unsatisfied(game, given, tolerance)) is not None:
        # All minima within the limits have the same utilities, and every equilibrium is one.
        return claim.none_exists("convex form", _beyond_limit(game, missing))
    # Far above what regret this small can move a utility by; too large a margin only costs proofs.
    margin = 1e-6 + 100 * swept.regret / (float(given.max()) or 1.0)
    if is_determined(game, given, margin):
        total = game.total(given)
        certificate = {"unique": True, "sweeps": swept.sweeps, "regret": swept.regret}
        return claim.solution(
            "convex form", Status.OPTIMAL, Interval(total, total), given, certificate=certificate
        )
    lower, upper = _face_bounds(claim, given)
    given, lower, upper = _face_vertex(claim, given, lower, upper)
    settled = claim.is_closed(claim.mirror(given, lower, upper), given)
    if method == "auto" and not settled and fits_scip(game, game.most_at_rest):
        return _scip_stable(claim, given, lower, upper)
    return claim.among("convex form", given, lower, upper)


def _beyond_limit(game: CoverageGame, agent: int) -> str:
    return f"{game.name(agent)} would need more than its limit."


def _face_bounds(claim: Claim[CoverageGame], given: Vector) -> tuple[float, float]:
    """Bound the totals of all minima of the convex form, given one.

    The sums at all points are constant, so sum_i b_i s_i is too. Randomized rounding has
    s <= theta l, l = -log(1 - 1/b) (Jensen), and s >= theta / b; so that
    min_i c_i / (b_i l_i) <= total / sum_i b_i s_i <= max_i c_i.
    """
    game = claim.game
    rates, logs = set_rates(game), -set_logs(game)
    weighted = float((-np.log(set_misses(game, given)) / rates).sum())
    return float((game.costs * rates / logs).min()) * weighted, float(game.costs.max()) * weighted


def _face_vertex(
    claim: Claim[CoverageGame], given: Vector, lower: float, upper: float
) -> tuple[Vector, float, float]:
    """Look for a cheaper or costlier minimum among those with the same sums at every point.

    With theta_i >= s_i / l_i and theta_i <= b_i s_i, two linear programs over the s of all minima
    bound their totals; their vertices are minima too, and one may be better.
    """
    game = claim.game
    if game.size > FACE_LIMIT:
        return given, lower, upper
    incidence: Any = sparse.csr_array(game.distributions > 0).astype(np.float64)
    logs = -np.log(set_misses(game, given))
    low = -np.log(set_misses(game, game.minimums))
    high = -np.log(np.maximum(set_misses(game, game.limits), 1e-300))
    most = logs[logs > 0].max(initial=1.0)
    best, sign = given, -1.0 if claim.costliest else 1.0
    for costs, cheap in (
        (game.costs / -set_logs(game), True),
        (-game.costs / set_rates(game), False),
    ):
        answer = linear_program(
            costs,
            low,
            np.minimum(high, 1e3 * most),
            equal_rows=sparse.csr_array(incidence.T),
            equals=incidence.T @ logs,
        )
        if answer.x is None:
            continue
        slack = 1e-7 * max(1.0, abs(answer.bound))
        if cheap:
            lower = max(lower, answer.bound - slack)
        else:
            upper = min(upper, slack - answer.bound)
        found = contributions_of(game, np.exp(-np.clip(answer.x, low, high)))
        found = np.clip(found, game.minimums, game.limits)
        swept = Swept(found, regret(game, found), 0)
        if swept.is_close(claim.tolerance) and sign * game.total(found) < sign * game.total(best):
            best = found
    return best, lower, upper


def _real_stable(claim: Claim[CoverageGame], start: Vector | None, method: str) -> Solution:
    game, deadline = claim.game, claim.deadline
    aim = min(claim.tolerance, 1e-10) if len(game.rows) <= 10**6 else claim.tolerance
    begins = [start] if start is not None else [None, game.alone]
    ends = [sweep_responses(game, b, aim, deadline) for b in begins]
    good = [s.contributions for s in ends if _is_equilibrium(claim, s)]
    best = claim.better(good) if good else None
    low, high = narrow_box(game)
    over = low - game.limits > claim.tolerance * max(1.0, float(high.max()))
    if over.any():
        return claim.none_exists("best responses", _beyond_limit(game, int(np.argmax(over))))
    lower, upper = game.total(low), game.total(np.maximum(low, high))
    if best is not None:
        lower = max(lower, lower_bound(game, best, deadline)[0])
    small = fits_scip(game, game.most_at_rest)
    if method == "scip" or (method == "auto" and small and not deadline.passed):
        return _scip_stable(claim, best, lower, upper)
    if best is None:
        return claim.failed("best responses", NOT_SETTLED)
    return claim.among("best responses", best, lower, upper)


def narrow_box(game: CoverageGame, *, rounds: int = 30) -> tuple[Vector, Vector]:
    """Return a box that holds every equilibrium.

    What i needs falls as the others give more. So between low and high, theta_i is at least what i
    needs at high, and at most what it needs at low, or its minimum.
    """
    low, high = np.array(game.minimums), np.array(game.most_at_rest)
    for _ in range(rounds):
        more = np.maximum(low, game.best_responses(high))
        less = np.minimum(high, np.maximum(game.best_responses(more), game.minimums))
        still = np.array_equal(more, low) and np.array_equal(less, high)
        low, high = more, less
        if still or (low > high).any():
            break
    return low, high


def _scip_stable(
    claim: Claim[CoverageGame], best: Vector | None, lower: float, upper: float
) -> Solution:
    game, deadline = claim.game, claim.deadline
    sense: Literal["minimize", "maximize"] = "maximize" if claim.costliest else "minimize"
    answer = scip.solve_scip(game, deadline, most=game.most_at_rest, kind="stable", sense=sense)
    if claim.costliest:
        upper = min(upper, answer.bound)
    else:
        lower = max(lower, answer.bound)
    found = [] if best is None else [best]
    if answer.contributions is not None:
        near = np.where(answer.contributions < 1e-6, 0.0, answer.contributions)
        polish = sweep_uniform if has_convex_form(game) else sweep_responses
        for candidate in (
            Swept(near, regret(game, near), 0),
            polish(game, near, min(claim.tolerance, 1e-10), Deadline(max(1.0, deadline.left))),
        ):
            if _is_equilibrium(claim, candidate):
                found.append(candidate.contributions)
    if not found:
        return claim.failed("scip", f"Because SCIP ended with: {answer.status}.")
    return claim.among("scip", claim.better(found), lower, upper)


def _integer_stable(claim: Claim[CoverageGame], start: Vector | None, method: str) -> Solution:
    game, deadline = claim.game, claim.deadline
    if method == "exhaustive" or (method == "auto" and game.size <= EXHAUSTIVE_AGENTS):
        from fedaccord.equilibria.general.exhaustive import exhaustive_stable

        # The search narrows boxes, and often ends soon where there are very many candidates.
        seconds = deadline.left / 2 if fits_exhaustive(game) else min(2.0, deadline.left / 4)
        share = deadline if method == "exhaustive" else Deadline(seconds)
        found = exhaustive_stable(game, select=claim.select, deadline=share)
        if method == "exhaustive" or found.status is not Status.FAILED:
            return found
    good = []
    for begin in [start] if start is not None else _integer_starts(game):
        swept = sweep_responses(game, begin, 0.0, deadline)
        if swept.regret == 0 and game.is_feasible(swept.contributions):
            good.append(swept.contributions)
        if deadline.passed:
            break
    if not good:
        return claim.failed("best responses", NOT_SETTLED)
    best = claim.better(good)
    lower = 0.0 if claim.costliest else integer_lower_bound(game, best, deadline)
    # No equilibrium costs more than everybody going alone.
    return claim.among("best responses", best, lower, game.total(game.most_at_rest))


def fits_exhaustive(game: CoverageGame) -> bool:
    """Return whether trying every allocation that could be an equilibrium takes seconds."""
    return float(np.log(game.most_at_rest - game.minimums + 1).sum()) <= EXHAUSTIVE_LOG_POINTS


def integer_lower_bound(game: CoverageGame, best: Vector, deadline: Deadline) -> float:
    """Bound the total of any feasible whole allocation from below."""
    if not cut_work_fits(game):
        return quick_bound(game, best)[0]
    share = Deadline(deadline.left / 2)
    return integer_optimum(game, share, upper=game.total(best)).lower


def _integer_starts(game: CoverageGame) -> list[Vector | None]:
    """Zero, everyone alone, and each of a few agents alone: different starts, different ends."""
    starts: list[Vector | None] = [None, np.array(game.alone)]
    for i in range(min(game.size, 10)):
        one = np.zeros(game.size)
        one[i] = game.alone[i]
        starts.append(one)
    return starts


def _find_unsatisfied(game: CoverageGame, given: Vector, tolerance: float) -> int | None:
    """Return an agent that needs more than its limit, if there is one."""
    needed = game.best_responses(given)
    over = needed - game.limits > tolerance * (float(given.max()) or 1.0)
    return int(np.argmax(over)) if over.any() else None


def _is_equilibrium(claim: Claim[CoverageGame], swept: Swept) -> bool:
    close = swept.is_close(claim.tolerance)
    return close and _find_unsatisfied(claim.game, swept.contributions, claim.tolerance) is None
