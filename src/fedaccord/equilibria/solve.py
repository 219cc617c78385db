"""Solve a game for a concept: choose a solver that fits the game, and confirm what it claims."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, as_numbers, check_finite
from fedaccord.check import Check, check
from fedaccord.check.decide import has_no_envy
from fedaccord.equilibria.linear.envy_free import envy_free_linear
from fedaccord.equilibria.linear.optimal import optimal_linear
from fedaccord.equilibria.linear.stable import stable_linear
from fedaccord.equilibria.result import (
    CONCEPTS,
    Claim,
    Concept,
    Deadline,
    Interval,
    Price,
    Select,
    Solution,
    SolvedGame,
    Status,
    Staying,
    equal_allocation,
)
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.rows import RowGame

LINEAR_METHODS: dict[Concept, tuple[str, ...]] = {
    "optimal": ("highs", "first-order", "multiplicative-weights", "milp"),
    "stable": ("best-response", "cp1", "milp"),
    "envy-free": ("equal",),
}
COVERAGE_METHODS: dict[Concept, tuple[str, ...]] = {
    "optimal": ("cuts", "scip"),
    "stable": ("sweeps", "scip"),
    "envy-free": (),
}

# Integer games with at most this many allocations below the stand-alone needs, or below their equal
# level, are searched whole.
EXHAUSTIVE_LIMIT = 200_000
# Above this size the pairs of a linear game are too many for a program.
PAIRS_LIMIT = 150


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

    def solve(claim: Claim[Any]) -> Solution:
        if isinstance(game, RowGame):
            return _solve_rows(claim)
        if isinstance(game, LinearGame) and _fits_linear("optimal", method):
            return optimal_linear(claim, method)
        # Solvers bring much along: each is imported when a game needs it.
        from fedaccord.equilibria.coverage import optimal_coverage
        from fedaccord.equilibria.general.exhaustive import exhaustive_optimal
        from fedaccord.equilibria.general.optimal import general_optimal
        from fedaccord.games.coverage import CoverageGame

        if method == "exhaustive":
            return exhaustive_optimal(game, deadline=claim.deadline)
        if isinstance(game, CoverageGame) and method not in LINEAR_METHODS["optimal"]:
            return optimal_coverage(claim, method)
        if method != "auto":
            raise InputError(f'method "{method}" does not fit this utility model; use "auto"')
        if game.is_integer:
            return exhaustive_optimal(game, deadline=claim.deadline)
        return general_optimal(claim)

    options = {"method": method, "tolerance": tolerance}
    return _answer(game, "optimal", options, time_limit, solve)


def solve_stable(
    game: Game,
    *,
    method: str = "auto",
    select: Select = "cheapest",
    tolerance: float = 1e-6,
    time_limit: float = 60.0,
    start: ArrayLike | None = None,
) -> Solution:
    """Find the cheapest stable equilibrium.

        minimise    sum(costs[i] * contributions[i])
        subject to  u_i(contributions) >= requirements[i]
                    no x < contributions[i] with u_i(x, contributions of others) >= requirements[i]

    game: what the agents want.
    method: "auto"; for linear games "best-response", "cp1" (the paper's convex program) or "milp";
        for coverage "sweeps" or "scip"; "exhaustive" for small integer games.
    select: "cheapest", or "costliest" for the worst equilibrium (price of anarchy).
    tolerance: regret to reach, relative to the largest contribution.
    time_limit: seconds after which the best found so far is returned with its bounds.
    start: contributions to begin from, such as a former equilibrium before somebody joined.
    """
    if select not in ("cheapest", "costliest"):
        raise InputError(f'select must be "cheapest" or "costliest"; got {select!r}')
    begin = None if start is None else _check_start(game, start)

    def solve(claim: Claim[Any]) -> Solution:
        if isinstance(game, RowGame):
            return _solve_rows(claim, begin)
        small = game.is_integer and _box_points(game) <= EXHAUSTIVE_LIMIT
        search = method == "exhaustive" or (method == "auto" and small)
        if isinstance(game, LinearGame) and _fits_linear("stable", method) and not search:
            return stable_linear(claim, method, begin)
        from fedaccord.equilibria.coverage import stable_coverage
        from fedaccord.equilibria.general.exhaustive import exhaustive_stable
        from fedaccord.equilibria.general.stable import general_stable
        from fedaccord.games.coverage import CoverageGame

        if search:
            return exhaustive_stable(game, select=select, deadline=claim.deadline)
        if isinstance(game, CoverageGame) and method not in LINEAR_METHODS["stable"]:
            return stable_coverage(claim, method, begin)
        if method not in ("auto", "best-response"):
            raise InputError(f'method "{method}" does not fit this utility model; use "auto"')
        return general_stable(claim, method, begin)

    options = {"method": method, "select": select, "tolerance": tolerance}
    return _answer(game, "stable", options, time_limit, solve)


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
    return solve_envy_free_given((), game, method, tolerance, time_limit)


def solve_envy_free_given(
    known: Sequence[Solution],
    game: Game,
    method: str = "auto",
    tolerance: float = 1e-6,
    time_limit: float = 60.0,
) -> Solution:
    """Find the cheapest envy-free allocation as `solve_envy_free` does, given other solutions.

    The optimum and the equilibrium bound and suggest envy-free allocations; those among the known
    solutions of the same game are not solved for again.
    """
    given = {solution.concept: solution for solution in known if solution.game is game}

    def solve(claim: Claim[Any]) -> Solution:
        if isinstance(game, RowGame):
            return _solve_rows(claim)
        equal = equal_allocation(game)
        if equal is None:
            note = "Within the limits, equal contributions do not meet every requirement."
            return claim.failed("equal", note)
        if method == "equal":
            return claim.bounded("equal", float(game.costs @ game.minimums), equal)
        if method == "exhaustive" or (game.is_integer and _few_below(game, equal)):
            from fedaccord.equilibria.general.exhaustive import exhaustive_envy_free

            return exhaustive_envy_free(game, deadline=claim.deadline)
        linear = isinstance(game, LinearGame)
        if not linear:
            from fedaccord.equilibria.coverage import envy_free_coverage
            from fedaccord.games.coverage import CoverageGame

            if isinstance(game, CoverageGame):
                return envy_free_coverage(claim)
        # Of the optimum only the lower bound and a candidate are wanted; any game's is found by
        # boxes, whose last digits take most of the time.
        fine = tolerance if linear else max(tolerance, 1e-2)
        optimal = given.get("optimal") or solve_optimal(
            game, tolerance=fine, time_limit=claim.deadline.left / 3
        )
        stable = given.get("stable") or solve_stable(
            game, tolerance=tolerance, time_limit=claim.deadline.left / 3
        )
        if isinstance(game, LinearGame) and game.size <= PAIRS_LIMIT:
            return envy_free_linear(
                claim, equal=equal, stable=stable.contributions, lower=optimal.bounds.lower
            )
        return _best_without_envy(claim, equal, optimal, stable)

    options = {"method": method, "tolerance": tolerance}
    return _answer(game, "envy-free", options, time_limit, solve)


def solve_all(
    game: Game,
    *,
    concepts: Collection[str] = CONCEPTS,
    time_limit: float = 60.0,
    stage: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> SolvedGame:
    """Solve a game for several concepts, and check what was found.

    concepts: which of optimal, stable and envy-free.
    time_limit: the most seconds for each.
    stage: a context to solve each concept in, given its name, and "check" to check in.
    """
    solutions: dict[str, Solution] = {}
    if "optimal" in concepts:
        with stage("optimal"):
            solutions["optimal"] = solve_optimal(game, time_limit=time_limit)
    if "stable" in concepts:
        with stage("stable"):
            solutions["stable"] = solve_stable(game, time_limit=time_limit)
    if "envy-free" in concepts:
        with stage("envy-free"):
            known = tuple(solutions.values())
            solutions["envy-free"] = solve_envy_free_given(known, game, time_limit=time_limit)
    with stage("check"):
        checks = {
            concept: check(game, solution.allocation)
            for concept, solution in solutions.items()
            if solution.contributions is not None
        }
    optimal = solutions.get("optimal")
    stable, envy_free = solutions.get("stable"), solutions.get("envy-free")
    return SolvedGame(
        game,
        solutions,
        checks,
        price_of_stability(stable, optimal) if optimal and stable else None,
        price_of_fairness(envy_free, optimal) if optimal and envy_free else None,
        _find_staying(game, checks.get("stable"), time_limit),
    )


def _find_staying(game: Game, found: Check | None, time_limit: float) -> Staying | None:
    """Return who stays where agents harm each other, if somebody would give less alone."""
    if not isinstance(game, RowGame) or game.is_monotone or found is None or found.rational:
        return None
    return find_staying(game, time_limit=time_limit)


def find_staying(game: RowGame, *, time_limit: float = 60.0) -> Staying:
    """Remove agents until no agent that stays would give less alone.

    Each round finds the cheapest stable plan of the agents that stay. Among those that give more
    than they would alone, the agent that gives most in proportion leaves. An agent that is left
    alone gives what it needs alone, so this ends. Other orders may end with other agents.

    game: what the agents want.
    time_limit: seconds in all.
    """
    if time_limit < 0:
        raise InputError(f"time_limit must be zero seconds or more; got {time_limit!r}")
    deadline = Deadline(time_limit)
    agents = list(range(game.size))
    left: list[int] = []
    while True:
        part = game if not left else game.restrict(agents)
        solution = solve_stable(part, time_limit=deadline.left)
        if solution.contributions is None or len(agents) == 1:
            break
        found = check(part, solution.allocation)
        if not len(found.better_alone):
            break
        harmed = found.better_alone
        alone = np.maximum(found.alone[harmed], 1e-300)
        worst = int(harmed[np.argmax(found.contributions[harmed] / alone)])
        left.append(agents.pop(worst))
    return Staying(tuple(agents), tuple(left), solution)


def _solve_rows(claim: Claim[Any], start: Vector | None = None) -> Solution:
    from fedaccord.equilibria.rows.solve import solve_rows

    return solve_rows(claim, start)


def _fits_linear(concept: Concept, method: str) -> bool:
    return method == "auto" or method in LINEAR_METHODS[concept]


def _check_start(game: Game, start: ArrayLike) -> Vector:
    values = as_numbers(start, "start")
    if values.shape != (game.size,):
        raise InputError(f"start must have {game.size} contributions; got shape {values.shape}")
    check_finite(values, "the start", game.name)
    return values


def _box_points(game: Game) -> float:
    """Count the allocations below the stand-alone needs, the last agent's left out."""
    high = np.minimum(game.alone, game.limits)
    if not np.isfinite(high).all():
        return np.inf
    with np.errstate(over="ignore"):
        return float(np.prod(np.maximum(high - game.minimums, 0)[:-1] + 1))


def _few_below(game: Game, equal: Vector) -> bool:
    """Return whether few enough allocations cost no more than the equal one."""
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


def _answer(
    game: Game,
    concept: Concept,
    options: Mapping[str, Any],
    time_limit: float,
    solve: Callable[[Claim[Any]], Solution],
) -> Solution:
    """Check what every solver checks, solve, and temper claims that estimates cannot bear."""
    if isinstance(game, RowGame) and options["method"] != "auto":
        raise InputError(
            f"method {options['method']!r} does not fit a game of several goals or of harm; use "
            '"auto"'
        )
    fitting = (*LINEAR_METHODS[concept], *COVERAGE_METHODS[concept])
    known = ("auto", *fitting, "exhaustive")
    if options["method"] not in known:
        raise InputError(f"method must be one of {', '.join(known)}; got {options['method']!r}")
    _check_number("tolerance", options["tolerance"], "above 0 and below 1", lambda t: 0 < t < 1)
    _check_number("time_limit", time_limit, "zero seconds or more", lambda t: t >= 0)
    deadline = Deadline(time_limit)
    costliest = options.get("select") == "costliest"
    claim = Claim(game, concept, options["tolerance"], deadline, costliest)
    try:
        agent = game.short_at_limits()
        solution = (
            _confirm(claim, solve, options["method"]) if agent is None else _refuse(claim, agent)
        )
    except ExactnessError as error:
        solution = claim.failed("exact", str(error))
    if game.utility_doubt > 0:
        solution = _temper(solution)
    return dataclasses.replace(solution, options=options, seconds=deadline.elapsed)


def _confirm(claim: Claim[Any], solve: Callable[[Claim[Any]], Solution], method: str) -> Solution:
    """Solve, and of a linear game return only what is confirmed."""
    if not isinstance(claim.game, LinearGame):
        return solve(claim)
    from fedaccord.equilibria.confirm import confirm, solve_exactly

    found = solve_exactly(claim) if method == "auto" else None
    return found or confirm(claim, solve(claim), method)


def _temper(solution: Solution) -> Solution:
    """Claim nothing for certain of a game whose utilities are estimates."""
    return dataclasses.replace(
        solution,
        status=Status.FAILED if solution.contributions is None else Status.LIMIT,
        bounds=Interval(0.0, np.inf),
        note=" ".join(
            filter(None, (solution.note, "Utilities are estimates: nothing is proved by them."))
        ),
    )


def _check_number(name: str, value: Any, what: str, fits: Callable[[float], bool]) -> None:
    if not isinstance(value, int | float) or not fits(value):
        raise InputError(f"{name} must be a number, {what}; got {value!r}")


def _refuse(claim: Claim[Game], agent: int) -> Solution:
    name = claim.game.name(agent)
    return claim.solution(
        "limits", Status.INFEASIBLE, Interval(np.inf, np.inf), certificate={"agent": agent},
        note=f"{name} cannot reach its requirement: raise a limit, or lower the requirement.",
    )  # fmt: skip


# Prices.


def price_of_stability(stable: Solution, optimal: Solution) -> Price:
    """Return the least total of a stable equilibrium over the least total of any allocation."""
    if stable.options.get("select") == "costliest":
        raise InputError('the price of stability needs solve_stable(game, select="cheapest")')
    return _ratio(stable, optimal, "stable")


def price_of_fairness(envy_free: Solution, optimal: Solution) -> Price:
    """Return the least total of an envy-free allocation over the least total of any allocation."""
    return _ratio(envy_free, optimal, "envy-free")


def price_of_anarchy(worst_stable: Solution, optimal: Solution) -> Price:
    """Return the greatest total of a stable equilibrium over the least total of any allocation.

    worst_stable: from solve_stable(game, select="costliest").
    """
    if worst_stable.options.get("select") != "costliest":
        raise InputError('the price of anarchy needs solve_stable(game, select="costliest")')
    return _ratio(worst_stable, optimal, "stable")


def _ratio(above: Solution, below: Solution, concept: str) -> Price:
    if above.concept != concept or below.concept != "optimal":
        raise InputError(
            f"this price needs a solution of concept {concept} and one of concept optimal; got "
            f"{above.concept} and {below.concept}"
        )
    if above.game is not below.game:
        if above.game.strategies != below.game.strategies:
            raise InputError(
                f"totals over {above.game.strategies} and {below.game.strategies} strategies "
                "cannot be compared: solve both over the same space"
            )
        raise InputError("both solutions must be of the same game")
    if above.status is Status.NONE_EXISTS:
        return Price(np.inf, np.inf, f"There is no {concept} plan.")
    if above.status is Status.INFEASIBLE:
        return Price(np.inf, np.inf, above.status.value)
    if above.bounds.upper == 0.0 and below.bounds.upper == 0.0:
        return Price(1.0, 1.0, "No agent needs to give anything, so the price counts as 1.")
    upper = above.bounds.upper / below.bounds.lower if below.bounds.lower > 0 else np.inf
    lower = above.bounds.lower / below.bounds.upper if below.bounds.upper > 0 else 1.0
    # No equilibrium undercuts the optimum.
    return Price(max(1.0, lower), max(1.0, upper))
