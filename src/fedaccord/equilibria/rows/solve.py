"""Plans of games of rows: exactly where they are small, with proved bounds where they are not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.check.decide import has_no_envy
from fedaccord.equilibria.confirm import NODES, SECONDS, is_refuted, program_of, report
from fedaccord.equilibria.linear.optimal import round_bound
from fedaccord.equilibria.programs import (
    Least,
    bound_by_prices,
    least_total,
    linear_program,
    mixed_program,
    to_floats,
)
from fedaccord.equilibria.result import (
    Claim,
    Deadline,
    Interval,
    Solution,
    Status,
    equal_allocation,
    limit_work,
)
from fedaccord.equilibria.rows.lemke import find_by_lemke
from fedaccord.equilibria.rows.uniqueness import Uniqueness, prove_unique
from fedaccord.errors import InputError
from fedaccord.games.rows import RowGame

# Up to this many agents a plan is looked for in fractions.
EXACT_AGENTS = 12
# Up to this many rows, Lemke's method in fractions, in doubles, and a mixed-integer program.
LEMKE_EXACT = 24
LEMKE_ROWS = 600
MILP_ROWS = 300
# Best responses: how many rounds, what counts as settled, and what as without end.
ROUNDS = 2_000
SETTLED = 1e-13
BEYOND = 1e9


def solve_rows(claim: Claim[RowGame], start: Vector | None = None) -> Solution:
    """Find a plan of a game of rows, and claim no more than is proved.

    start: where best responses begin.
    """
    game = claim.game
    unique = None
    if claim.concept == "stable" and (claim.costliest or game.size <= EXACT_AGENTS):
        unique = prove_unique(game)
    if claim.costliest and unique is None:
        _check_bounded(game)
    search = claim if unique is None else dataclasses.replace(claim, costliest=False)
    least = None
    if game.size <= EXACT_AGENTS:
        program = program_of(game, claim.concept, search.select)
        seconds = min(SECONDS, claim.deadline.left)
        least = least_total(program, limit_work(seconds), nodes=NODES)
        if least.complete and (found := report(search, least)).status is not Status.FAILED:
            return _add_uniqueness(found, unique)
    if claim.concept == "optimal":
        return _optimal(claim, least)
    if claim.concept == "stable":
        return _stable(claim, least, start)
    return _envy_free(claim, least)


def _check_bounded(game: RowGame) -> None:
    if not np.isfinite(game.most_at_rest).all():
        agent = int(np.argmax(~np.isfinite(game.most_at_rest)))
        raise InputError(
            f"with harm nothing but a limit bounds what {game.name(agent)} gives in a stable plan: "
            'give every agent a limit to find the costliest, or use select="cheapest"'
        )


def _add_uniqueness(solution: Solution, unique: Uniqueness | None) -> Solution:
    """Say that a stable plan is the only one, where that is proved."""
    if unique is None or solution.contributions is None:
        return solution
    note = f"It is the only stable plan: {unique.reason}."
    return dataclasses.replace(solution, note=" ".join(filter(None, (solution.note, note))))


# The optimum.


def _solve_relaxed(claim: Claim[RowGame]) -> tuple[Vector | None, float, bool]:
    """Return the cheapest real point that reaches all goals, and a lower bound of all totals.

    And whether HiGHS says that there is no such point; the bound is proved, and that is not.
    """
    game = claim.game
    own = game.own_rows[:, None]
    rows, least = game.rows / own, game.needs / game.own_rows
    unit = float(max(least.max(), game.minimums.max())) or 1.0
    low, high = game.minimums / unit, game.limits / unit
    result = linear_program(
        game.costs, low, high, rows=sparse.csr_array(-rows), most=-least / unit,
        seconds=max(1.0, claim.deadline.left), tolerance=1e-9,
    )  # fmt: skip
    if result.x is None:
        return None, float(game.costs @ game.minimums), result.infeasible
    prices = -result.duals
    bound = bound_by_prices(game.costs, rows, least / unit, prices, low, high) * unit
    return np.clip(result.x * unit, game.minimums, game.limits), _round_up(game, bound), False


def _round_up(game: RowGame, bound: float) -> float:
    """Return a bound on totals; of whole numbers of equal costs, the next total there is."""
    return round_bound(game, max(bound * (1 - 1e-12), float(game.costs @ game.minimums)))


def _lift(game: RowGame, point: Vector) -> Vector:
    """Move a point that is short by a solver's tolerance up until every goal is reached.

    With needs of zero or more, A (t theta) = t A theta: a longer step in the same direction.
    """
    reached, some = game.rows @ point, game.needs > 0
    factor = float((game.needs[some] / np.maximum(reached[some], 1e-300)).max(initial=1.0))
    return np.minimum(point * factor, game.limits) if factor < 1 + 1e-6 else point


def _optimal(claim: Claim[RowGame], least: Least | None) -> Solution:
    game = claim.game
    point, bound, infeasible = _solve_relaxed(claim)
    bound = max(bound, 0.0 if least is None else float(least.bound))
    if game.is_integer and point is not None:
        point = _round_to_whole(claim, point)
    elif point is not None:
        point = _lift(game, point)
    found = [] if least is None or least.point is None else [to_floats(least.point)]
    found += [] if point is None else [point]
    found = [one for one in found if _is_of_kind(claim, one)]
    if not found:
        said = "The solver says, without a proof, that no plan reaches every goal." * infeasible
        return claim.failed("highs", said or "The solver found no plan.", lower=bound)
    return claim.bounded("highs", bound, claim.better(found))


def _round_to_whole(claim: Claim[RowGame], point: Vector) -> Vector | None:
    """Return the plan of whole numbers that a mixed-integer program finds, or one rounded up."""
    game = claim.game
    result = mixed_program(
        game.costs, game.minimums, game.limits,
        rows=[(sparse.csr_array(game.rows), game.needs, np.inf)], whole=np.ones(game.size),
        seconds=claim.deadline.left / 2, gap=claim.tolerance / 10,
    )  # fmt: skip
    for trial in (result.x, point):
        if trial is None:
            continue
        for whole in (np.round(trial), np.ceil(trial - 1e-9)):
            if game.is_feasible(whole) and (whole <= game.limits).all():
                return np.asarray(whole)
    return None


def _is_of_kind(claim: Claim[RowGame], point: Vector) -> bool:
    """Return whether the check bears out that a point is of the kind that is claimed."""
    bounds = Interval(0.0, np.inf)
    fine = 0.0 if claim.game.is_integer else min(claim.tolerance, 1e-6)
    return not is_refuted(claim.solution("", Status.LIMIT, bounds, point), fine)


# The stable plan.


def _stable(claim: Claim[RowGame], least: Least | None, start: Vector | None) -> Solution:
    game = claim.game
    relaxed, bound, _ = _solve_relaxed(claim)
    if least is not None and not claim.costliest:
        bound = max(bound, float(least.bound))
    found: list[Vector] = [] if least is None or least.point is None else [to_floats(least.point)]
    method = "exact"
    for method, point in _candidates(claim, start, relaxed):
        point = point if game.is_integer else _polish(game, point)
        unique = _judge_unique(claim, method, point, bound)
        if unique is not None:
            return unique
        if _is_of_kind(claim, point):
            found.append(point)
            break
    mixed = None if game.is_integer or len(game.owners) > MILP_ROWS else _solve_mixed(claim)
    if mixed is not None and _is_of_kind(claim, mixed := _polish(game, mixed)):
        method, found = "milp", [*found, mixed]
    if not found:
        note = "No method found a stable plan. This does not prove that there is none."
        return claim.failed(method, note, lower=0.0 if claim.costliest else bound)
    best = claim.better(found)
    return claim.among(method, best, bound, float(game.costs @ game.most_at_rest))


def _candidates(
    claim: Claim[RowGame], start: Vector | None, relaxed: Vector | None
) -> Iterator[tuple[str, Vector]]:
    """Yield allocations that may be stable, the likeliest first."""
    game = claim.game
    if game.has_only_harm and relaxed is not None and not game.is_integer:
        # The least point of all that reach the goals: it is optimal and stable.
        yield "highs", relaxed
    share = Deadline(claim.deadline.left / 3)
    begin = game.minimums if start is None else np.clip(start, game.minimums, game.limits)
    for move in (_move_in_turn, _move_half_way)[: 1 if game.is_integer else 2]:
        point = _respond(game, begin, move, share)
        if point is not None:
            yield "best-response", point
            break
    if not game.is_integer and len(game.owners) <= LEMKE_ROWS:
        exact = len(game.owners) <= LEMKE_EXACT
        point = find_by_lemke(game, Deadline(claim.deadline.left / 2), exact=exact)
        if point is not None:
            yield "lemke", point


def _move_in_turn(game: RowGame, theta: Vector) -> Vector:
    """Return where agents end that move to their best responses one after the other."""
    moved = np.array(theta)
    for agent in range(game.size):
        wanted = game.best_response(agent, moved)
        moved[agent] = min(max(wanted, game.minimums[agent]), game.limits[agent])
    return moved


def _move_half_way(game: RowGame, theta: Vector) -> Vector:
    """Return where agents end that all move half way to their best responses."""
    return np.asarray((theta + game.responses_within(theta)) / 2)


def _respond(
    game: RowGame, begin: Vector, move: Callable[[RowGame, Vector], Vector], deadline: Deadline
) -> Vector | None:
    """Return where best responses settle; None where they cycle, or rise without end by harm."""
    theta, most = np.array(begin), BEYOND * game.scale_of(begin)
    seen: set[bytes] = set()
    for _ in range(ROUNDS):
        after = move(game, theta)
        if np.abs(after - theta).max() <= SETTLED * after.max():
            return after
        if deadline.passed or after.max() > most or after.tobytes() in seen:
            return None
        seen.add(after.tobytes())
        theta = after
    return None


def _judge_unique(
    claim: Claim[RowGame], method: str, point: Vector, bound: float
) -> Solution | None:
    """Return what is proved if there is one plan at most, and it is near a point."""
    game = claim.game
    unique = prove_unique(game, point)
    if unique is None or unique.radius is None:
        return None
    beyond = point - unique.radius > game.limits
    if beyond.any():
        agent = game.name(int(np.argmax(beyond)))
        note = f"The only plan in which no agent would move asks {agent} for more than its limit."
        return claim.none_exists(method, note)
    if not _is_of_kind(claim, point):
        return None
    total, off = game.total(point), float(game.costs @ unique.radius)
    bounds = Interval(min(max(total - off, bound), total), total + off)
    status = Status.OPTIMAL if off <= claim.tolerance * total else Status.LIMIT
    return _add_uniqueness(claim.solution(method, status, bounds, point), unique)


def _polish(game: RowGame, point: Vector) -> Vector:
    """Solve the tight goals of agents above their minimums, if that is nearer to rest."""
    scale = game.scale_of(point)
    inside = np.flatnonzero(point - game.minimums > 1e-7 * scale)
    tight = game.binding_goals(point)[inside]
    fixed = np.array(game.minimums)
    fixed[inside] = 0.0
    try:
        solved = np.linalg.solve(
            game.rows[np.ix_(tight, inside)], game.needs[tight] - game.rows[tight] @ fixed
        )
    except np.linalg.LinAlgError:
        return point
    fixed[inside] = solved
    fixed = np.clip(fixed, game.minimums, game.limits)

    def regret(theta: Vector) -> float:
        wanted = np.maximum(game.best_responses(theta), game.minimums)
        return float(np.abs(wanted - theta).max())

    return fixed if regret(fixed) < regret(point) else point


def _solve_mixed(claim: Claim[RowGame]) -> Vector | None:
    """Return the cheapest stable plan in a box, as a mixed-integer program has it.

        m <= A theta,   (A theta - m)_g <= S_g (1 - z_g),   theta_i <= low_i + (high - low)_i sum z

    The box is that of going alone where nobody harms anybody, and else of limits; without either
    there is no program.
    """
    game = claim.game
    most = game.most_at_rest
    if not np.isfinite(most).all():
        return None
    unit = float(most.max()) or 1.0
    rows, needs = game.rows / game.own_rows[:, None], game.needs / game.own_rows / unit
    low, high = game.minimums / unit, most / unit
    count = len(game.owners)
    surplus = np.maximum(np.maximum(rows, 0) @ high + np.minimum(rows, 0) @ low - needs, 0.0)
    whose = sparse.csr_array(
        ((high - low)[game.owners], (game.owners, np.arange(count))), shape=(game.size, count)
    )
    matrix: Any = sparse.csr_array(rows)
    sign = -1.0 if claim.costliest else 1.0
    result = mixed_program(
        np.concatenate([sign * game.costs, np.zeros(count)]),
        np.concatenate([low, np.zeros(count)]),
        np.concatenate([high, np.ones(count)]),
        rows=[
            (sparse.hstack([matrix, sparse.csr_array((count, count))]), needs, np.inf),
            (sparse.hstack([matrix, sparse.diags_array(surplus)]), -np.inf, needs + surplus),
            (sparse.hstack([sparse.eye_array(game.size), -whose]), -np.inf, low),
        ],
        whole=np.repeat([False, True], [game.size, count]),
        seconds=claim.deadline.left,
        gap=claim.tolerance / 10,
    )
    return None if result.x is None else np.asarray(result.x[: game.size] * unit)


# The envy-free plan.


def _envy_free(claim: Claim[RowGame], least: Least | None) -> Solution:
    """Take the cheapest of the plans at hand that nobody's envy refutes."""
    game = claim.game
    as_optimal = dataclasses.replace(claim, concept="optimal")
    relaxed, bound, _ = _solve_relaxed(as_optimal)
    bound = max(bound, 0.0 if least is None else float(least.bound))
    stable = _stable(dataclasses.replace(claim, concept="stable"), None, None)
    trials = {
        "exact": None if least is None or least.point is None else to_floats(least.point),
        "optimal": None if relaxed is None or game.is_integer else _lift(game, relaxed),
        "stable": None if stable.contributions is None else np.array(stable.contributions),
        "equal": equal_allocation(game) if game.is_monotone else _equal_with_harm(game),
    }
    found = {
        method: point
        for method, point in trials.items()
        if point is not None
        and _is_of_kind(claim, point)
        and has_no_envy(game, point, claim.tolerance)
    }
    if not found:
        return claim.failed("equal", "No envy-free plan was found.", lower=bound)
    method = min(found, key=lambda name: game.total(found[name]))
    return claim.bounded(method, bound, found[method])


def _equal_with_harm(game: RowGame) -> Vector | None:
    """Return equal contributions that reach all goals, if the sums of the rows allow it."""
    sums = game.rows.sum(axis=1)
    wanting = game.needs > 0
    if (sums[wanting] <= 0).any() or (sums < 0).any():
        return None
    level = float((game.needs[wanting] / sums[wanting]).max(initial=0.0))
    level = max(level, float(game.minimums.max()))
    level = math.ceil(level - 1e-12) if game.is_integer else level
    equal = np.full(game.size, float(level))
    return equal if (equal <= game.limits).all() else None
