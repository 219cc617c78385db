"""Exact answers for small integer games of any model, by dividing a box that suffices.

More samples never hurt anybody, so over a box lo <= theta <= hi the least own amount f_i(theta)
that satisfies i lies between f_i(hi) and f_i(lo). Boxes in which that rules every allocation out
are discarded, the others narrowed and halved down to single allocations. What is left is all there
is: when nothing is left, no allocation of the kind exists.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import (
    Box,
    Concept,
    Deadline,
    Interval,
    Select,
    Solution,
    Status,
    equal_allocation,
    level_allocation,
    stable_box,
)
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import Game

Narrow: TypeAlias = Callable[[Vector, Vector], Box | None]

# Everybody's contribution is doubled this often in search of a feasible allocation.
DOUBLINGS = 40
# Costs are floats: a total is let exceed a bound by this much, relatively, before it is cut off.
SLACK = 1e-9


@dataclass
class _Tally:
    """What a search has seen: the boxes examined, and the bound of what it left unseen."""

    examined: int = 0
    finished: bool = False
    bound: float = np.inf


# Lists of allocations.


def all_equilibria(game: Game, *, deadline: Deadline | None = None) -> list[Vector]:
    """List every stable equilibrium of a small integer game, the cheapest first.

    theta_i = max(f_i(theta), minimum_i) <= limit_i   for every agent i
    """
    tally = _Tally()
    box = stable_box(_integer(game))
    found = list(_stable_points(game, box, "cheapest", deadline or Deadline(60.0), tally))
    _require_finished(tally)
    return found


def all_envy_free(game: Game, *, up_to: float, deadline: Deadline | None = None) -> list[Vector]:
    """List every envy-free allocation of a small integer game that costs at most a total.

    up_to: the largest total to list; there are infinitely many without it.
    """
    tally = _Tally()
    box = _box_below(_integer(game), up_to)
    found = list(_envy_free_points(game, box, deadline or Deadline(60.0), tally))
    _require_finished(tally)
    return [theta for theta in found if game.total(theta) <= up_to * (1 + SLACK)]


def least_feasible(game: Game, *, deadline: Deadline | None = None) -> Vector | None:
    """Give a cheapest allocation that satisfies everybody in a small integer game; None if none."""
    solution = exhaustive_optimal(game, deadline=deadline)
    if solution.status is Status.INFEASIBLE:
        return None
    return solution.allocation.contributions


# Solutions.


def exhaustive_optimal(game: Game, *, deadline: Deadline | None = None) -> Solution:
    """Find a cheapest feasible allocation of a small integer game.

    minimise    sum(costs * theta)
    subject to  u_i(theta) >= mu_i,  minimums <= theta <= limits,  theta integer
    """
    deadline = deadline or Deadline(60.0)
    start = _feasible_start(_integer(game), deadline)
    if isinstance(start, Solution):
        return start
    start = _trimmed(game, start)
    box = _box_below(game, game.total(start))
    tally = _Tally()
    points = _best_first(box, _narrow_optimal(game), lambda lo, hi: game.total(lo), deadline, tally)
    return _cheapest(game, "optimal", next(points, None), start, box, tally)


def exhaustive_envy_free(game: Game, *, deadline: Deadline | None = None) -> Solution:
    """Find a cheapest envy-free allocation of a small integer game.

    minimise    sum(costs * theta)
    subject to  u_i(theta) >= mu_i, and for no pair theta_i > theta_j and u_i(swapped) >= mu_i
    """
    deadline = deadline or Deadline(60.0)
    start = _feasible_start(_integer(game), deadline, concept="envy-free")
    if isinstance(start, Solution):
        return start
    equal = equal_allocation(game)
    # Whatever satisfies everybody, its largest gift given by all does too, as far as limits allow.
    start = level_allocation(game, float(start.max())) if equal is None else equal
    box = _box_below(game, game.total(start))
    tally = _Tally()
    points = _envy_free_points(game, box, deadline, tally)
    return _cheapest(game, "envy-free", next(points, None), start, box, tally)


def exhaustive_stable(
    game: Game, *, select: Select = "cheapest", deadline: Deadline | None = None
) -> Solution:
    """Find a stable equilibrium of a small integer game, or prove that none exists.

    select: "cheapest" or "costliest"; bounds are then on the total of that one.
    """
    if select not in ("cheapest", "costliest"):
        raise InputError(f'select must be "cheapest" or "costliest"; got {select!r}')
    deadline = deadline or Deadline(60.0)
    box = stable_box(_integer(game))
    tally = _Tally()
    point = next(_stable_points(game, box, select, deadline, tally), None)
    if point is not None:
        total = game.total(point)
        return _solution(game, "stable", Status.OPTIMAL, Interval(total, total), point, box, tally)
    if tally.finished:
        nothing = Interval(np.inf, np.inf)
        status = Status.NONE_EXISTS
        note = f"Every one of {_points_in(box):,} allocations was ruled out."
        if not np.isfinite(game.limits).all() or game.is_feasible(game.limits):
            return _solution(game, "stable", status, nothing, None, box, tally, note)
        status = Status.INFEASIBLE
        return _solution(game, "stable", status, nothing, None, box, tally)
    ends = (tally.bound, np.inf) if select == "cheapest" else (game.total(box[0]), -tally.bound)
    note = f"Time ran out after {tally.examined:,} boxes; no equilibrium was found by then."
    return _solution(game, "stable", Status.FAILED, Interval(*ends), None, box, tally, note)


def _cheapest(
    game: Game,
    concept: Concept,
    point: Vector | None,
    start: Vector,
    box: Box,
    tally: _Tally,
) -> Solution:
    """Report the first allocation of a cost-ordered search, or the start where time ran out."""
    if point is None and not tally.finished:
        bounds = Interval(tally.bound, game.total(start))
        note = f"Time ran out after {tally.examined:,} boxes."
        return _solution(game, concept, Status.LIMIT, bounds, start, box, tally, note)
    if point is None:
        # The start lies in the box and is of the kind: only utilities that fall as somebody gives
        # more can have ruled it out.
        note = "The search contradicts itself: utilities do not always rise with contributions."
        nothing = Interval(game.total(box[0]), np.inf)
        return _solution(game, concept, Status.FAILED, nothing, None, box, tally, note)
    total = game.total(point)
    bounds = Interval(total, total)
    return _solution(game, concept, Status.OPTIMAL, bounds, point, box, tally)


def _solution(
    game: Game,
    concept: Concept,
    status: Status,
    bounds: Interval,
    point: Vector | None,
    box: Box,
    tally: _Tally,
    note: str = "",
) -> Solution:
    estimated = getattr(game, "estimated", "")
    return Solution(
        game=game,
        concept=concept,
        method="exhaustive",
        status=status,
        bounds=bounds,
        contributions=None if point is None else np.array(point),
        certificate=_certificate(box, tally),
        note=" ".join(filter(None, (note, estimated))),
    )


def _certificate(box: Box, tally: _Tally) -> dict[str, Any]:
    return {
        "box": [[v if np.isfinite(v) else None for v in side.tolist()] for side in box],
        "points": _points_in(box) if np.isfinite(box[1]).all() else None,
        "boxes_examined": tally.examined,
        "complete": tally.finished,
    }


# Boxes that suffice.


def _integer(game: Game) -> Game:
    if not game.is_integer:
        raise InputError('exhaustive search needs whole contributions: use strategies "integer"')
    return game


def _box_below(game: Game, total: float) -> Box:
    """Give the box that holds every allocation of at most a total cost.

    Whoever gives at its minimum leaves the most to agent i: total - costs @ minimums above its own.
    """
    lo = np.array(game.minimums)
    spare = (total - game.total(lo)) / game.costs
    hi = np.floor(lo + spare + SLACK * np.maximum(1.0, np.abs(spare)))
    return lo, np.minimum(np.maximum(hi, lo), game.limits)


def _feasible_start(
    game: Game, deadline: Deadline, concept: Concept = "optimal"
) -> Vector | Solution:
    """Find some feasible allocation, or report that there is none or that none was found."""
    alone = np.maximum(game.alone, game.minimums)
    if (alone <= game.limits).all() and np.isfinite(alone).all():
        return np.array(alone)
    box = np.array(game.minimums), np.array(game.limits)
    tally = _Tally()
    if np.isfinite(game.limits).all():
        if game.is_feasible(game.limits):
            return np.array(game.limits)
        nothing = Interval(np.inf, np.inf)
        return _solution(game, concept, Status.INFEASIBLE, nothing, None, box, tally)
    try:
        for doubling in range(DOUBLINGS):
            level = level_allocation(game, 2.0**doubling)
            if game.is_feasible(level):
                return level
            if deadline.passed:
                break
    except ExactnessError:
        pass  # too many samples to follow: the sentence below is what is known
    note = "No feasible allocation was found; some agents have no limit, so none is ruled out."
    bounds = Interval(game.total(game.minimums), np.inf)
    return _solution(game, concept, Status.FAILED, bounds, None, box, tally, note)


def _trimmed(game: Game, start: Vector) -> Vector:
    """Let one agent after the other give as little as leaves everybody satisfied."""
    trimmed = np.array(start)
    for agent in np.argsort(-game.costs, kind="stable").tolist():
        low, high = float(game.minimums[agent]) - 1, float(trimmed[agent])
        while high - low > 1:
            trimmed[agent] = np.floor((low + high) / 2)
            low, high = (
                (low, trimmed[agent]) if game.is_feasible(trimmed) else (trimmed[agent], high)
            )
        trimmed[agent] = high
    return trimmed


def _stable_points(
    game: Game, box: Box, select: Select, deadline: Deadline, tally: _Tally
) -> Iterator[Vector]:
    def order(lo: Vector, hi: Vector) -> float:
        return game.total(lo) if select == "cheapest" else -game.total(hi)

    return _best_first(box, _narrow_stable(game), order, deadline, tally)


def _envy_free_points(game: Game, box: Box, deadline: Deadline, tally: _Tally) -> Iterator[Vector]:
    return _best_first(box, _narrow_envy_free(game), lambda lo, hi: game.total(lo), deadline, tally)


def _best_first(
    box: Box,
    narrow: Narrow,
    order: Callable[[Vector, Vector], float],
    deadline: Deadline,
    tally: _Tally,
) -> Iterator[Vector]:
    """Yield the single allocations that survive narrowing, by increasing order.

    order(lo, hi) must be a lower bound over the box and must not fall as the box shrinks. A box
    is taken up only when its bound is the least, so what comes first is the least.
    """
    heap: list[tuple[float, int, bool, Vector, Vector]] = [(order(*box), 0, False, *box)]
    count = 1
    while heap:
        if deadline.passed:
            tally.bound = heap[0][0]
            return
        _, _, narrowed, lo, hi = heapq.heappop(heap)
        if narrowed and (lo == hi).all():
            yield lo
            continue
        halves = _halves(lo, hi) if narrowed else [(lo, hi)]
        for part in halves:
            tally.examined += 1
            kept = narrow(*part)
            if kept is not None:
                heapq.heappush(heap, (order(*kept), count, True, *kept))
                count += 1
    tally.finished = True


def _halves(lo: Vector, hi: Vector) -> list[Box]:
    widest = int(np.argmax(hi - lo))
    middle = np.floor((lo[widest] + hi[widest]) / 2)
    left, right = np.array(hi), np.array(lo)
    left[widest], right[widest] = middle, middle + 1
    return [(lo, left), (right, hi)]


def _narrow_stable(game: Game) -> Narrow:
    def narrow(lo: Vector, hi: Vector) -> Box | None:
        # An equilibrium here has theta_i between max(f_i(hi), minimum) and max(f_i(lo), minimum).
        while True:
            low = np.maximum(lo, game.best_responses(hi))
            if (low > hi).any():
                return None
            high = np.minimum(hi, np.maximum(game.best_responses(low), game.minimums))
            if (low > high).any():
                return None
            if (low == lo).all() and (high == hi).all():
                return lo, hi
            lo, hi = low, high

    return narrow


def _narrow_feasible(game: Game, lo: Vector, hi: Vector) -> Box | None:
    # Who is satisfied here gives at least what it would need if all others gave their most.
    low = np.maximum(lo, game.best_responses(hi))
    return None if (low > hi).any() else (low, hi)


def _narrow_optimal(game: Game) -> Narrow:
    def narrow(lo: Vector, hi: Vector) -> Box | None:
        box = _narrow_feasible(game, lo, hi)
        if box is not None and game.is_feasible(box[0]):
            return box[0], box[0]  # nothing in the box is cheaper
        return box

    return narrow


def _narrow_envy_free(game: Game) -> Narrow:
    def narrow(lo: Vector, hi: Vector) -> Box | None:
        box = _narrow_feasible(game, lo, hi)
        return None if box is None or _envy_throughout(game, *box) else box

    return narrow


def _envy_throughout(game: Game, lo: Vector, hi: Vector) -> bool:
    """Say whether some agent envies another everywhere in a box.

    So it is when i gives more than j throughout, may always swap, and is satisfied after the swap
    at the lowest contributions: with more of everybody's it still is.
    """
    for i in range(game.size):
        below = (hi < lo[i]) & (hi[i] <= game.limits) & (lo >= game.minimums[i])
        for j in np.flatnonzero(below).tolist():
            swapped = np.array(lo)
            swapped[[i, j]] = swapped[[j, i]]
            if game.satisfied(swapped)[i]:
                return True
    return False


def _points_in(box: Box) -> int:
    return int(np.prod((box[1] - box[0] + 1).astype(object)))


def _require_finished(tally: _Tally) -> None:
    if not tally.finished:
        raise ExactnessError(
            f"time ran out after {tally.examined:,} boxes, so the list is not complete: allow "
            "more time, or make the game smaller"
        )
