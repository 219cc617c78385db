"""Exact answers for small integer games of any model, by dividing a box that suffices.

More samples never hurt anybody, so over a box lo <= theta <= hi the least own amount f_i(theta)
that satisfies i lies between f_i(hi) and f_i(lo). Boxes in which that rules every allocation out
are discarded, the others narrowed and halved down to single allocations. What is left is all there
is: when nothing is left, no allocation of the kind exists.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import (
    Box,
    Claim,
    Concept,
    Deadline,
    Interval,
    Select,
    Solution,
    Status,
    equal_allocation,
    least_whole,
    level_allocation,
    stable_box,
)
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import Game

# Everybody's contribution is doubled this often in search of a feasible allocation.
DOUBLINGS = 40
# Costs are floats: a total is let exceed a bound by this much, relatively, before it is cut off.
SLACK = 1e-9


class _Search:
    """A search for the allocations of a concept in a box that holds all that matter.

    examined: how many boxes were looked at.
    finished: whether nothing was left unseen.
    bound: the least order of what was left.
    """

    def __init__(
        self, game: Game, concept: Concept, box: Box, deadline: Deadline | None,
        *, costliest: bool = False,
    ) -> None:  # fmt: skip
        self.claim = Claim(game, concept, 0.0, deadline or Deadline(60.0), costliest)
        self.box = box
        self.examined, self.finished, self.bound = 0, False, np.inf

    def order(self, lo: Vector, hi: Vector) -> float:
        """Return a bound over a box of what is least at the allocation looked for."""
        game = self.claim.game
        return -game.total(hi) if self.claim.costliest else game.total(lo)

    def points(self) -> Iterator[Vector]:
        """Yield the single allocations that survive narrowing, by increasing order.

        The order of a box must not fall as the box shrinks. A box is taken up only when its bound
        is the least, so what comes first is the least.
        """
        narrow = partial(NARROW[self.claim.concept], self.claim.game)
        heap: list[tuple[float, int, bool, Vector, Vector]]
        heap = [(self.order(*self.box), 0, False, *self.box)]
        count = 1
        while heap:
            if self.claim.deadline.passed:
                self.bound = heap[0][0]
                return
            _, _, narrowed, lo, hi = heapq.heappop(heap)
            if narrowed and (lo == hi).all():
                yield lo
                continue
            for part in _halves(lo, hi) if narrowed else [(lo, hi)]:
                self.examined += 1
                kept = narrow(*part)
                if kept is not None:
                    heapq.heappush(heap, (self.order(*kept), count, True, *kept))
                    count += 1
        self.finished = True

    def list_all(self) -> list[Vector]:
        """List all allocations; raise where time runs out first."""
        found = list(self.points())
        if not self.finished:
            raise ExactnessError(
                f"time ran out after {self.examined:,} boxes, so the list is not complete: allow "
                "more time, or make the game smaller"
            )
        return found

    def report(
        self, status: Status, bounds: Interval, point: Vector | None = None, note: str = ""
    ) -> Solution:
        """Claim something, with what was searched."""
        box = self.box
        certificate = {
            "box": [[v if np.isfinite(v) else None for v in side.tolist()] for side in box],
            "points": _points_in(box) if np.isfinite(box[1]).all() else None,
            "boxes_examined": self.examined,
            "complete": self.finished,
        }
        note = " ".join(filter(None, (note, getattr(self.claim.game, "estimated", ""))))
        given = None if point is None else np.array(point)
        return self.claim.solution(
            "exhaustive", status, bounds, given, certificate=certificate, note=note
        )

    def report_cheapest(self, start: Vector) -> Solution:
        """Claim the first allocation found, or the start where time ran out."""
        point, total = next(self.points(), None), self.claim.game.total
        if point is not None:
            return self.report(Status.OPTIMAL, Interval(total(point), total(point)), point)
        if not self.finished:
            note = f"Time ran out after {self.examined:,} boxes."
            return self.report(Status.LIMIT, Interval(self.bound, total(start)), start, note)
        # The start lies in the box and is of the kind: only utilities that fall as somebody gives
        # more can have ruled it out.
        note = "The search contradicts itself: utilities do not always rise with contributions."
        return self.report(Status.FAILED, Interval(total(self.box[0]), np.inf), note=note)


# Lists of allocations.


def all_equilibria(game: Game, *, deadline: Deadline | None = None) -> list[Vector]:
    """List every stable equilibrium of a small integer game, the cheapest first.

    theta_i = max(f_i(theta), minimum_i) <= limit_i   for every agent i
    """
    box = stable_box(_check_integer(game))
    return _Search(game, "stable", box, deadline).list_all()


def all_envy_free(game: Game, *, up_to: float, deadline: Deadline | None = None) -> list[Vector]:
    """List every envy-free allocation of a small integer game that costs at most a total.

    up_to: the largest total to list; there are infinitely many without it.
    """
    box = _box_below(_check_integer(game), up_to)
    found = _Search(game, "envy-free", box, deadline).list_all()
    return [theta for theta in found if game.total(theta) <= up_to * (1 + SLACK)]


# Solutions.


def exhaustive_optimal(game: Game, *, deadline: Deadline | None = None) -> Solution:
    """Find a cheapest feasible allocation of a small integer game.

    minimise    sum(costs * theta)
    subject to  u_i(theta) >= mu_i,  minimums <= theta <= limits,  theta integer
    """
    start = _feasible_start(_check_integer(game), deadline)
    if isinstance(start, Solution):
        return start
    start = _trim(game, start)
    box = _box_below(game, game.total(start))
    return _Search(game, "optimal", box, deadline).report_cheapest(start)


def exhaustive_envy_free(game: Game, *, deadline: Deadline | None = None) -> Solution:
    """Find a cheapest envy-free allocation of a small integer game.

    minimise    sum(costs * theta)
    subject to  u_i(theta) >= mu_i, and for no pair theta_i > theta_j and u_i(swapped) >= mu_i
    """
    start = _feasible_start(_check_integer(game), deadline, "envy-free")
    if isinstance(start, Solution):
        return start
    equal = equal_allocation(game)
    # Whatever satisfies everybody, its largest gift given by all does too, as far as limits allow.
    start = level_allocation(game, float(start.max())) if equal is None else equal
    box = _box_below(game, game.total(start))
    return _Search(game, "envy-free", box, deadline).report_cheapest(start)


def exhaustive_stable(
    game: Game, *, select: Select = "cheapest", deadline: Deadline | None = None
) -> Solution:
    """Find a stable equilibrium of a small integer game, or prove that none exists.

    select: "cheapest" or "costliest"; bounds are then on the total of that one.
    """
    if select not in ("cheapest", "costliest"):
        raise InputError(f'select must be "cheapest" or "costliest"; got {select!r}')
    box = stable_box(_check_integer(game))
    search = _Search(game, "stable", box, deadline, costliest=select == "costliest")
    point = next(search.points(), None)
    if point is not None:
        total = game.total(point)
        return search.report(Status.OPTIMAL, Interval(total, total), point)
    if search.finished:
        nothing = Interval(np.inf, np.inf)
        if np.isfinite(game.limits).all() and not game.is_feasible(game.limits):
            return search.report(Status.INFEASIBLE, nothing)
        note = f"Every one of {_points_in(box):,} allocations was ruled out."
        return search.report(Status.NONE_EXISTS, nothing, note=note)
    low, high = search.bound, np.inf
    if select == "costliest":
        low, high = game.total(box[0]), -search.bound
    note = f"Time ran out after {search.examined:,} boxes; no equilibrium was found by then."
    return search.report(Status.FAILED, Interval(low, high), note=note)


# Boxes that suffice.


def _check_integer(game: Game) -> Game:
    if not game.is_monotone:
        raise InputError("boxes are searched only where nobody harms anybody: use solve_stable")
    if not game.is_integer:
        raise InputError('exhaustive search needs whole contributions: use strategies "integer"')
    return game


def _box_below(game: Game, total: float) -> Box:
    """Return the box that holds every allocation of at most a total cost.

    An agent at its minimum leaves the most to agent i: total - costs @ minimums above its own.
    """
    lo = np.array(game.minimums)
    spare = (total - game.total(lo)) / game.costs
    hi = np.floor(lo + spare + SLACK * np.maximum(1.0, np.abs(spare)))
    return lo, np.minimum(np.maximum(hi, lo), game.limits)


def _feasible_start(
    game: Game, deadline: Deadline | None, concept: Concept = "optimal"
) -> Vector | Solution:
    """Find some feasible allocation, or report that there is none or that none was found."""
    alone = np.maximum(game.alone, game.minimums)
    if (alone <= game.limits).all() and np.isfinite(alone).all():
        return np.array(alone)
    box = np.array(game.minimums), np.array(game.limits)
    search = _Search(game, concept, box, deadline)
    if np.isfinite(game.limits).all():
        if game.is_feasible(game.limits):
            return np.array(game.limits)
        return search.report(Status.INFEASIBLE, Interval(np.inf, np.inf))
    try:
        for doubling in range(DOUBLINGS):
            level = level_allocation(game, 2.0**doubling)
            if game.is_feasible(level):
                return level
            if search.claim.deadline.passed:
                break
    except ExactnessError:
        pass  # too many samples to follow: the sentence below is what is known
    note = "No feasible allocation was found; some agents have no limit, so none is ruled out."
    return search.report(Status.FAILED, Interval(game.total(game.minimums), np.inf), note=note)


def _trim(game: Game, start: Vector) -> Vector:
    """Let one agent after the other give as little as leaves everybody satisfied."""
    given = np.array(start)
    for agent in np.argsort(-game.costs, kind="stable").tolist():
        given[agent] = least_whole(game, given, agent)
    return given


def _halves(lo: Vector, hi: Vector) -> list[Box]:
    widest = int(np.argmax(hi - lo))
    middle = np.floor((lo[widest] + hi[widest]) / 2)
    left, right = np.array(hi), np.array(lo)
    left[widest], right[widest] = middle, middle + 1
    return [(lo, left), (right, hi)]


def _narrow_stable(game: Game, lo: Vector, hi: Vector) -> Box | None:
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


def _narrow_feasible(game: Game, lo: Vector, hi: Vector) -> Box | None:
    # Who is satisfied here gives at least what it would need if all others gave their most.
    low = np.maximum(lo, game.best_responses(hi))
    return None if (low > hi).any() else (low, hi)


def _narrow_optimal(game: Game, lo: Vector, hi: Vector) -> Box | None:
    box = _narrow_feasible(game, lo, hi)
    if box is not None and game.is_feasible(box[0]):
        return box[0], box[0]  # nothing in the box is cheaper
    return box


def _narrow_envy_free(game: Game, lo: Vector, hi: Vector) -> Box | None:
    box = _narrow_feasible(game, lo, hi)
    return None if box is None or _envy_throughout(game, *box) else box


def _envy_throughout(game: Game, lo: Vector, hi: Vector) -> bool:
    """Return whether some agent envies another everywhere in a box.

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


NARROW: dict[Concept, Callable[[Game, Vector, Vector], Box | None]] = {
    "optimal": _narrow_optimal,
    "stable": _narrow_stable,
    "envy-free": _narrow_envy_free,
}
