"""The stable equilibrium: nobody can give less alone and still be satisfied."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, as_numbers, check_finite
from fedaccord.equilibria.linear import stable as linear
from fedaccord.equilibria.result import Deadline, Interval, Select, Solution, Status, answer
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame

LINEAR_METHODS = ("best-response", "cp1", "milp")
COVERAGE_METHODS = ("sweeps", "scip")
METHODS = ("auto", *LINEAR_METHODS, *COVERAGE_METHODS, "exhaustive")

# Integer games with at most this many allocations below the stand-alone needs are searched whole.
EXHAUSTIVE_LIMIT = 200_000


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

    def solve(deadline: Deadline) -> Solution:
        small = game.is_integer and _box_points(game) <= EXHAUSTIVE_LIMIT
        search = method == "exhaustive" or (method == "auto" and small)
        if isinstance(game, LinearGame) and method not in COVERAGE_METHODS and not search:
            return _linear(game, method, select, tolerance, deadline, begin)
        # Solvers bring much along: each is imported when a game needs it.
        from fedaccord.equilibria.coverage import stable_coverage
        from fedaccord.equilibria.general.enclosures import enclosed_stable
        from fedaccord.equilibria.general.exhaustive import exhaustive_stable
        from fedaccord.games.coverage import CoverageGame

        if search:
            return exhaustive_stable(game, select=select, deadline=deadline)
        if isinstance(game, CoverageGame) and method not in LINEAR_METHODS:
            return stable_coverage(
                game, method=method, select=select, tolerance=tolerance, deadline=deadline,
                start=begin,
            )  # fmt: skip
        if method not in ("auto", "best-response"):
            raise InputError(f'method "{method}" does not fit this utility model; use "auto"')
        if method == "auto" and _can_enclose(game):
            half = Deadline(deadline.left / 2)
            found = enclosed_stable(game, select=select, tolerance=tolerance, deadline=half)
            if found.status is not Status.FAILED:
                return found
        return general_stable(
            game, select=select, tolerance=tolerance, deadline=deadline, start=begin
        )

    options = {"method": method, "select": select, "tolerance": tolerance}
    return answer(game, "stable", options, methods=METHODS, time_limit=time_limit, solve=solve)


def _check_start(game: Game, start: ArrayLike) -> Vector:
    values = as_numbers(start, "start")
    if values.shape != (game.size,):
        raise InputError(f"start must have {game.size} contributions; got shape {values.shape}")
    check_finite(values, "the start", game.name)
    return values


def _can_enclose(game: Game) -> bool:
    """Say whether all equilibria of a real game can be enclosed: few agents, exact responses."""
    from fedaccord.equilibria.general.enclosures import MOST_AGENTS

    reachable = bool(np.isfinite(np.minimum(game.alone, game.limits)).all())
    exact = not game.is_integer and game.utility_doubt == 0
    return exact and game.size <= MOST_AGENTS and reachable


def _box_points(game: Game) -> float:
    """Count the allocations below the stand-alone needs, the last agent's left out."""
    high = np.minimum(game.alone, game.limits)
    if not np.isfinite(high).all():
        return np.inf
    with np.errstate(over="ignore"):
        return float(np.prod(np.maximum(high - game.minimums, 0)[:-1] + 1))


def _linear(
    game: LinearGame, method: str, select: Select, tolerance: float, deadline: Deadline,
    start: Vector | None,
) -> Solution:  # fmt: skip
    if method == "cp1":
        if game.is_integer or select == "costliest":
            raise InputError('method "cp1" finds the cheapest real equilibrium only; use "auto"')
        return linear.cp1_stable(game, tolerance=tolerance, deadline=deadline)
    if method == "milp":
        return linear.milp_stable(game, select=select, tolerance=tolerance, deadline=deadline)
    if game.is_integer:
        return _linear_integer(game, select, tolerance, deadline)
    if game.is_symmetric and game.is_psd:
        return linear.potential_stable(
            game, select=select, tolerance=tolerance, deadline=deadline, start=start
        )
    if method == "auto" and game.size <= linear.MILP_LIMIT:
        exact = linear.milp_stable(game, select=select, tolerance=tolerance, deadline=deadline)
        if exact.status is not Status.FAILED:
            return exact
    return linear.damped_stable(
        game,
        select=select,
        tolerance=tolerance,
        deadline=Deadline(max(deadline.left, 1.0)),
        start=start,
    )


def _linear_integer(
    game: LinearGame, select: Select, tolerance: float, deadline: Deadline
) -> Solution:
    """Take what the potential leads to, and improve on it by MILP where that is not too large.

    Sequential integer best response ends for symmetric W, even indefinite: each move lowers
    1/2 theta' W theta - (mu + diag(W)/2)' theta, or keeps it and lowers the total.
    """
    from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
    from fedaccord.equilibria.general.exhaustive import exhaustive_stable

    exact = None
    if game.size <= linear.MILP_LIMIT:
        exact = linear.milp_stable(game, select=select, tolerance=tolerance, deadline=deadline)
        if exact.status is Status.OPTIMAL:
            return exact
        if exact.status is Status.FAILED:
            # What the solver's tolerance cannot tell, narrowing boxes of whole numbers often can.
            share = Deadline(deadline.left / 2)
            searched = exhaustive_stable(game, select=select, deadline=share)
            if searched.status in (Status.OPTIMAL, Status.NONE_EXISTS):
                return searched
    path = best_response_dynamics(game, order="sequential", max_rounds=10_000, deadline=deadline)
    found = path.contributions[-1]
    if path.ending is Ending.CONVERGED and linear.is_stable(game, found, tolerance):
        lower = linear.trivial_lower_bound(game) if exact is None else exact.bounds.lower
        total = game.total(found)
        ends = (min(lower, total), total) if select == "cheapest" else (total, np.inf)
        return Solution(
            game, "stable", "potential", Status.LIMIT, Interval(*ends), np.array(found),
        )  # fmt: skip
    return exact if exact is not None else Solution(
        game, "stable", "potential", Status.FAILED, Interval(0.0, np.inf),
        note="Sequential best response did not settle.",
    )  # fmt: skip


def general_stable(
    game: Game, *, select: Select = "cheapest", tolerance: float, deadline: Deadline,
    start: Vector | None,
) -> Solution:  # fmt: skip
    """Look for an equilibrium of any game by best response, damped where it cycles.

    The equilibrium found is verified; whether a cheaper or a costlier one exists is not known.
    """
    from fedaccord.equilibria.dynamics import Ending, best_response_dynamics

    for damping in (1.0,) if game.is_integer else (0.5, 0.25):
        path = best_response_dynamics(
            game, start=start, order="sequential", damping=damping,
            tolerance=min(tolerance, 1e-9), max_rounds=2_000, deadline=deadline,
        )  # fmt: skip
        found = np.array(path.contributions[-1])
        needed = np.maximum(game.best_responses(found), game.minimums)
        allowed = 0.0 if game.is_integer else tolerance * (float(found.max()) or 1.0)
        if path.ending is Ending.CONVERGED and (np.abs(needed - found) <= allowed).all():
            total = game.total(found)
            ends = (0.0, total) if select == "cheapest" else (total, np.inf)
            return Solution(
                game, "stable", "damped-best-response", Status.LIMIT, Interval(*ends), found,
                certificate={"rounds": len(path.contributions)},
            )  # fmt: skip
        if deadline.passed:
            break
    return Solution(
        game, "stable", "damped-best-response", Status.FAILED, Interval(0.0, np.inf),
        note="Best response did not settle; that does not prove that no equilibrium exists.",
    )  # fmt: skip
