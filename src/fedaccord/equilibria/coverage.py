"""Optimal and stable allocations of coverage games; envy-free ones are in coverage_envy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse

from fedaccord._arrays import Vector
from fedaccord.equilibria import coverage_scip as scip
from fedaccord.equilibria.base import Concept, Deadline, Interval, Solution, Status
from fedaccord.equilibria.coverage_cuts import (
    integer_optimum,
    linear_program,
    quick_bound,
    smooth_bound,
)
from fedaccord.equilibria.coverage_sweeps import (
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
from fedaccord.errors import InputError
from fedaccord.games.coverage import CoverageGame

Select = Literal["cheapest", "costliest"]

# Linear programs over cuts are tried up to this many agents and this many products in a round of
# cuts; branch and bound by SCIP up to this many entries of Q and steps of all agents together.
CUTS_LIMIT = 3_000
CUTS_WORK = 20_000_000
SCIP_ENTRIES = 150
SCIP_STEPS = 400

# Exhaustive search is tried in integer games with at most e^12 = 160,000 candidates.
# Where there are more, but few agents, it is given a little time.
EXHAUSTIVE_LOG_POINTS = 12.0
EXHAUSTIVE_AGENTS = 300

# Real games of at most this many agents are polished by successive linear programs.
POLISH_LIMIT = 300


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
    claim.check_method(method, ("auto", "cuts", "scip"))
    if (answer := claim.infeasible()) is not None:
        return answer
    start = feasible_start(game)
    if game.is_integer:
        return _integer_optimal(claim, start)
    lower, point = lower_bound(game, start, deadline)
    best = start
    for candidate in (_made_feasible(game, point, start), _made_feasible(game, start * 0, start)):
        best = min(best, _trimmed(game, candidate, deadline), key=game.total)
    best = _polished(game, best, deadline)
    most = cap_by_total(game, best)
    if method == "cuts" or claim.is_closed(lower, best):
        return claim.bounded("cuts", lower, best)
    if method == "auto" and not fits_scip(game, most):
        return claim.bounded("cuts", lower, best)
    searched = scip.solve_scip(game, deadline, most=most)
    if searched.contributions is not None:
        found = _made_feasible(game, searched.contributions, best)
        best = min(best, found, key=game.total)
    return claim.bounded("scip", max(lower, searched.bound), best)


def _integer_optimal(claim: Claim, start: Vector) -> Solution:
    game, deadline = claim.game, claim.deadline
    if not cut_work_fits(game):
        best = _trimmed(game, start, deadline)
        return claim.bounded("greedy", quick_bound(game, best), best)
    bound = integer_optimum(game, deadline, upper=game.total(start))
    if bound.finished:
        return claim.bounded("integer cuts", game.total(bound.contributions), bound.contributions)
    best = _trimmed(game, start, deadline)
    return claim.bounded("integer cuts", min(bound.lower, game.total(best)), best)


def stable_coverage(
    game: CoverageGame,
    *,
    select: Select = "cheapest",
    method: str = "auto",
    tolerance: float = 1e-6,
    deadline: Deadline | None = None,
    start: Vector | None = None,
) -> Solution:
    """Find a stable equilibrium, the cheapest (or costliest) where that can be told.

    Uniform sets over the reals: the convex form, whose minimum is the equilibrium; other real games
    by damped best response, whole ones by the potential, from several starts. Small games are
    settled by SCIP or by trying everything. For "costliest", bounds hold the greatest total.

    method: "auto", "sweeps" (no SCIP, no enumeration), "scip" or "exhaustive".
    start: where sweeps begin, for a warm start.
    """
    deadline = deadline or Deadline(60.0)
    if select not in ("cheapest", "costliest"):
        raise InputError(f'select must be "cheapest" or "costliest"; got {select!r}')
    claim = Claim(game, "stable", tolerance, deadline, costliest=select == "costliest")
    claim.check_method(method, ("auto", "sweeps", "scip", "exhaustive"))
    if (answer := claim.infeasible()) is not None:
        return answer
    if has_convex_form(game) and method in ("auto", "sweeps"):
        return _uniform_stable(claim, start, method)
    if game.is_integer:
        return _integer_stable(claim, start, method)
    return _real_stable(claim, start, method)


def _uniform_stable(claim: Claim, start: Vector | None, method: str) -> Solution:
    game, tolerance = claim.game, claim.tolerance
    aim = tolerance if game.size > 10_000 else min(tolerance, 1e-10)
    swept = sweep_uniform(game, start, aim, claim.deadline)
    if not swept.is_close(tolerance):
        return claim.failed("convex form", "the sweeps were stopped by the time limit")
    given = swept.contributions
    if (missing := _unsatisfied(game, given, tolerance)) is not None:
        # All minima within the limits have the same utilities, and every equilibrium is one.
        return claim.none_exists("convex form", missing)
    # Far above what regret this small can move a utility by; too large a margin only costs proofs.
    margin = 1e-6 + 100 * swept.regret / (float(given.max()) or 1.0)
    if is_determined(game, given, margin):
        return claim.unique("convex form", swept)
    lower, upper = _face_bounds(claim, given)
    given, lower, upper = _face_vertex(claim, given, lower, upper)
    settled = claim.is_closed(*claim.ends(given, lower, upper))
    if method == "auto" and not settled and fits_scip(game, _cap_alone(game)):
        return _scip_stable(claim, given, lower, upper)
    return claim.among("convex form", given, lower, upper)


def _face_bounds(claim: Claim, given: Vector) -> tuple[float, float]:
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
    claim: Claim, given: Vector, lower: float, upper: float
) -> tuple[Vector, float, float]:
    """Look for a cheaper or costlier minimum among those with the same sums at every point.

    With theta_i >= s_i / l_i and theta_i <= b_i s_i, two linear programs over the s of all minima
    bound their totals; their vertices are minima too, and one may be better.
    """
    game = claim.game
    if game.size > CUTS_LIMIT:
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
            A_eq=sparse.csr_array(incidence.T),
            b_eq=incidence.T @ logs,
        )
        if answer.status != 0 or answer.x is None:
            continue
        slack = 1e-7 * max(1.0, abs(float(answer.fun)))
        if cheap:
            lower = max(lower, float(answer.fun) - slack)
        else:
            upper = min(upper, slack - float(answer.fun))
        found = contributions_of(game, np.exp(-np.clip(answer.x, low, high)))
        found = np.clip(found, game.minimums, game.limits)
        swept = Swept(found, regret(game, found), 0)
        if swept.is_close(claim.tolerance) and sign * game.total(found) < sign * game.total(best):
            best = found
    return best, lower, upper


def _real_stable(claim: Claim, start: Vector | None, method: str) -> Solution:
    game, deadline = claim.game, claim.deadline
    aim = min(claim.tolerance, 1e-10) if game.size <= 10_000 else claim.tolerance
    begins = [start] if start is not None else [None, game.alone]
    ends = [sweep_responses(game, b, aim, deadline) for b in begins]
    good = [s.contributions for s in ends if _is_equilibrium(claim, s)]
    best = claim.better(good) if good else None
    low, high = narrowed(game)
    over = low - game.limits > claim.tolerance * max(1.0, float(high.max()))
    if over.any():
        return claim.none_exists("best responses", int(np.argmax(over)))
    lower, upper = game.total(low), game.total(np.maximum(low, high))
    if best is not None:
        lower = max(lower, lower_bound(game, best, deadline)[0])
    small = fits_scip(game, _cap_alone(game))
    if method == "scip" or (method == "auto" and small and not deadline.passed):
        return _scip_stable(claim, best, lower, upper)
    if best is None:
        return claim.failed("best responses", "sweeps of best responses ended at no equilibrium")
    return claim.among("best responses", best, lower, upper)


def narrowed(game: CoverageGame, *, rounds: int = 30) -> tuple[Vector, Vector]:
    """Give a box that holds every equilibrium.

    What i needs falls as the others give more. So between low and high, theta_i is at least what i
    needs at high, and at most what it needs at low, or its minimum.
    """
    low, high = np.array(game.minimums), _cap_alone(game)
    for _ in range(rounds):
        more = np.maximum(low, game.best_responses(high))
        less = np.minimum(high, np.maximum(game.best_responses(more), game.minimums))
        still = np.array_equal(more, low) and np.array_equal(less, high)
        low, high = more, less
        if still or (low > high).any():
            break
    return low, high


def _scip_stable(claim: Claim, best: Vector | None, lower: float, upper: float) -> Solution:
    game, deadline = claim.game, claim.deadline
    sense: Literal["minimize", "maximize"] = "maximize" if claim.costliest else "minimize"
    answer = scip.solve_scip(game, deadline, most=_cap_alone(game), kind="stable", sense=sense)
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
        return claim.failed("scip", f"SCIP ended with: {answer.status}")
    return claim.among("scip", claim.better(found), lower, upper)


def _integer_stable(claim: Claim, start: Vector | None, method: str) -> Solution:
    game, deadline = claim.game, claim.deadline
    if method == "exhaustive" or (method == "auto" and game.size <= EXHAUSTIVE_AGENTS):
        from fedaccord.equilibria.exhaustive import exhaustive_stable

        # The search narrows boxes, and often ends soon where there are very many candidates.
        seconds = deadline.left / 2 if fits_exhaustive(game) else min(2.0, deadline.left / 4)
        share = deadline if method == "exhaustive" else Deadline(seconds)
        select: Select = "costliest" if claim.costliest else "cheapest"
        found = exhaustive_stable(game, select=select, deadline=share)
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
        return claim.failed("best responses", "sweeps of best responses ended at no equilibrium")
    best = claim.better(good)
    lower = 0.0 if claim.costliest else integer_lower_bound(game, best, deadline)
    return claim.among("best responses", best, lower, claim.most_stable())


def fits_exhaustive(game: CoverageGame) -> bool:
    """Say whether trying every allocation that could be an equilibrium is a matter of seconds."""
    return float(np.log(_cap_alone(game) - game.minimums + 1).sum()) <= EXHAUSTIVE_LOG_POINTS


def integer_lower_bound(game: CoverageGame, best: Vector, deadline: Deadline) -> float:
    """Bound the total of any feasible whole allocation from below."""
    if not cut_work_fits(game):
        return quick_bound(game, best)
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


# Feasible points, from below and above.


def lower_bound(game: CoverageGame, best: Vector, deadline: Deadline) -> tuple[float, Vector]:
    """Bound feasible totals from below; give the bound and a point that comes near it."""
    if not cut_work_fits(game):
        return quick_bound(game, best), best
    bound = smooth_bound(game, Deadline(deadline.left / 2), upper=game.total(best))
    return bound.lower, bound.contributions


def cut_work_fits(game: CoverageGame) -> bool:
    """Say whether a round of cuts, a product for each pair of agents at each point, is cheap."""
    degrees = np.bincount(game.distributions.indices).astype(np.float64)
    return game.size <= CUTS_LIMIT and float(degrees @ degrees) <= CUTS_WORK


def plenty(game: CoverageGame) -> Vector:
    """Give everybody's limit, or where there is none as much as leaves nothing unseen."""
    starts = game.distributions.indptr[:-1]
    slowest = np.minimum.reduceat(game.distributions.data, starts)
    return np.where(np.isfinite(game.limits), game.limits, np.ceil(800 / slowest))


def feasible_start(game: CoverageGame) -> Vector:
    """Give a feasible allocation of a feasible game: one agent after another does what is left."""
    given = np.array(game.minimums)
    if game.size <= POLISH_LIMIT:
        for i in np.argsort(-game.alone, kind="stable").tolist():
            given[i] = np.clip(game.best_response(i, given), given[i], game.limits[i])
    else:
        given = np.clip(game.alone, given, game.limits)
    if game.is_feasible(given):
        return given
    top = np.maximum(given, plenty(game))
    return _trimmed(game, top, None) if game.is_integer else _towards(game, given, top)


def _towards(game: CoverageGame, given: Vector, top: Vector) -> Vector:
    """Give the first feasible point on the way up from given to a feasible top."""
    low, high = 0.0, 1.0
    if game.is_feasible(given):
        return given
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if game.is_feasible(given + middle * (top - given)):
            high = middle
        else:
            low = middle
    return np.asarray(given + high * (top - given))


def _made_feasible(game: CoverageGame, point: Vector, reference: Vector) -> Vector:
    """Scale a point up until it is feasible; or move it towards a feasible reference."""
    point = np.clip(point, game.minimums, game.limits)
    if game.is_integer:
        point = np.ceil(point)
    larger = np.minimum(2 * point, game.limits)
    if game.is_feasible(larger) and not game.is_integer:
        return _towards(game, point, larger)
    if game.is_integer:
        return point if game.is_feasible(point) else reference
    return _towards(game, point, np.maximum(point, reference))


def _trimmed(game: CoverageGame, given: Vector, deadline: Deadline | None) -> Vector:
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
            given = _towards(game, bottom, given)
            continue
        low, high = game.minimums[i] - 1, given[i]
        while high - low > 1:
            bottom[i] = np.floor((low + high) / 2)
            low, high = (low, bottom[i]) if game.is_feasible(bottom) else (bottom[i], high)
        given[i] = high
    return given


def _polished(game: CoverageGame, given: Vector, deadline: Deadline) -> Vector:
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
        rows = {"A_ub": -game.jacobian(given), "b_ub": np.maximum(slack, 0.0)}
        answer = linear_program(game.costs, low, high, **rows)
        radius /= 2
        if answer.status == 0 and answer.x is not None:
            found = _made_feasible(game, given + answer.x, given)
            if game.total(found) < game.total(given) * (1 - 1e-12):
                given, radius = found, min(2 * radius * 1.5, float(given.max()))
    return given


def cap_by_total(game: CoverageGame, best: Vector) -> Vector:
    """No agent of a cheaper allocation gives more than the whole of the best total buys."""
    rest = game.total(best) - game.total(game.minimums)
    return np.minimum(game.limits, game.minimums + rest / game.costs)


def _cap_alone(game: CoverageGame) -> Vector:
    """In an equilibrium nobody gives more than alone: f_i falls as the others give more."""
    return np.minimum(np.maximum(game.alone, game.minimums), game.limits)


def fits_scip(game: CoverageGame, most: Vector) -> bool:
    """Say whether branch and bound is likely to end, and SCIP is there."""
    few = len(game.rows) <= SCIP_ENTRIES and float(np.ceil(most).sum()) <= SCIP_STEPS
    return few and scip.is_available()


def _unsatisfied(game: CoverageGame, given: Vector, tolerance: float) -> int | None:
    """Give an agent that needs more than its limit, if there is one."""
    needed = game.best_responses(given)
    over = needed - game.limits > tolerance * (float(given.max()) or 1.0)
    return int(np.argmax(over)) if over.any() else None


def _is_equilibrium(claim: Claim, swept: Swept) -> bool:
    close = swept.is_close(claim.tolerance)
    return close and _unsatisfied(claim.game, swept.contributions, claim.tolerance) is None


class Claim:
    """Puts what was found into a Solution, with the status that its bounds allow."""

    def __init__(
        self,
        game: CoverageGame,
        concept: Concept,
        tolerance: float,
        deadline: Deadline,
        *,
        costliest: bool = False,
    ) -> None:
        self.game, self.concept = game, concept
        self.tolerance, self.deadline, self.costliest = tolerance, deadline, costliest

    def _solution(self, method: str, status: Status, bounds: Interval, **rest: Any) -> Solution:
        options: dict[str, Any] = {"tolerance": self.tolerance}
        if self.concept == "stable":
            options["select"] = "costliest" if self.costliest else "cheapest"
        return Solution(
            game=self.game,
            concept=self.concept,
            method=method,
            status=status,
            bounds=bounds,
            options=options,
            seconds=self.deadline.elapsed,
            **rest,
        )

    def check_method(self, method: str, known: tuple[str, ...]) -> None:
        """Refuse a method that this concept does not have."""
        if method not in known:
            raise InputError(f"method must be one of {', '.join(known)}; got {method!r}")

    def infeasible(self) -> Solution | None:
        """Answer at once where not even everybody's limit meets every requirement."""
        if not np.isfinite(self.game.limits).any():
            return None
        satisfied = self.game.satisfied(plenty(self.game))
        if satisfied.all():
            return None
        name = self.game.name(int(np.argmin(satisfied)))
        note = f"With everybody at its limit {name} still misses its requirement."
        bounds = Interval(np.inf, np.inf)
        return self._solution("limits", Status.INFEASIBLE, bounds, note=note)

    def is_closed(self, lower: float, best: Vector) -> bool:
        upper = self.game.total(best)
        return upper - lower <= self.tolerance * upper

    def bounded(self, method: str, lower: float, best: Vector) -> Solution:
        """Claim an allocation and a lower bound on the least total."""
        upper = self.game.total(best)
        status = Status.OPTIMAL if self.is_closed(lower, best) else Status.LIMIT
        bounds = Interval(min(lower, upper), upper)
        return self._solution(method, status, bounds, contributions=best)

    def ends(self, best: Vector, lower: float, upper: float) -> tuple[float, Vector]:
        """Mirror the costliest case, so that one test of closeness does for both."""
        return (2 * self.game.total(best) - upper if self.costliest else lower), best

    def among(self, method: str, best: Vector, lower: float, upper: float) -> Solution:
        """Claim an equilibrium among others whose totals lie between lower and upper."""
        total = self.game.total(best)
        if not self.costliest:
            return self.bounded(method, lower, best)
        closed = self.is_closed(*self.ends(best, lower, upper))
        status = Status.OPTIMAL if closed else Status.LIMIT
        bounds = Interval(total, max(upper, total))
        return self._solution(method, status, bounds, contributions=best)

    def unique(self, method: str, swept: Swept) -> Solution:
        """Claim the only equilibrium there is."""
        total = self.game.total(swept.contributions)
        return self._solution(
            method,
            Status.OPTIMAL,
            Interval(total, total),
            contributions=swept.contributions,
            certificate={"unique": True, "sweeps": swept.sweeps, "regret": swept.regret},
        )

    def none_exists(self, method: str, agent: int) -> Solution:
        note = f"{self.game.name(agent)} would need more than its limit."
        return self._solution(method, Status.NONE_EXISTS, Interval(np.inf, np.inf), note=note)

    def failed(self, method: str, why: str) -> Solution:
        bounds = Interval(0.0, np.inf)
        return self._solution(method, Status.FAILED, bounds, note=f"Because {why}.")

    def better(self, found: list[Vector]) -> Vector:
        return (max if self.costliest else min)(found, key=self.game.total)

    def most_stable(self) -> float:
        """No equilibrium costs more than everybody going alone."""
        return self.game.total(_cap_alone(self.game))
