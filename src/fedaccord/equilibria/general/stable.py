"""Stable equilibria of games of any model: all of a small real one, enclosed in boxes; or some.

What agent i needs falls as others give more, so in a box lo <= theta <= hi its best responses lie
between f_i(hi) and f_i(lo): boxes are narrowed to that, discarded when nothing is left, and halved.
Where responses jump, halving alone never ends; if utilities are linear in each contribution
between whole numbers, the whole numbers and the open cells between them are first looked at
separately and exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.equilibria.result import Box, Claim, Deadline, Interval, Solution, Status, stable_box
from fedaccord.errors import InputError
from fedaccord.games.base import Game

Cell: TypeAlias = tuple[tuple[Fraction, Fraction], ...]

MOST_AGENTS = 4
MOST_CELLS = 20_000
MOST_BOXES = 200_000
MOST_GROUPED = 500
# Responses are computed in floating point; boxes are widened by this much, relatively.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A box outside of which, near it, there is no equilibrium.

    lower, upper: its corners.
    witness: an allocation in it from which nobody's best response differs by more than the
        tolerance; None where none was found.
    exact: whether the witness was proved an equilibrium in exact arithmetic.
    """

    lower: Vector
    upper: Vector
    witness: Vector | None
    exact: bool = False


@dataclass(frozen=True, eq=False)
class Enclosures:
    """Boxes that together hold every equilibrium of a game.

    found: the boxes.
    complete: whether the search ended; without it, equilibria may lie outside of `found`.
    examined: how many cells and boxes were looked at.
    """

    found: tuple[Enclosure, ...]
    complete: bool
    examined: int

    @property
    def none_exist(self) -> bool:
        """Whether it is proved that the game has no equilibrium."""
        return self.complete and not self.found


def small_real_equilibria(
    game: Game, *, tolerance: float = 1e-6, deadline: Deadline | None = None
) -> Enclosures:
    """Enclose every stable equilibrium of a real game of up to four agents.

    tolerance: the side of the smallest boxes, relative to the largest stand-alone need.
    """
    if game.is_integer:
        raise InputError('this search is for strategies "real"; use exhaustive search')
    if game.size > MOST_AGENTS:
        raise InputError(f"this search is for up to {MOST_AGENTS} agents; got {game.size}")
    deadline = deadline or Deadline(60.0)
    box = stable_box(game)
    scale = float(box[1].max()) or 1.0
    exact: list[Enclosure] = []
    boxes = [box]
    examined = 0
    if getattr(game, "is_multilinear", False):
        cells = _cells_of(game, box)
        if math.prod(map(len, cells)) <= MOST_CELLS:
            exact, boxes, examined = _split_by_cells(game, cells, deadline)
    leaves, complete, more = _divide(game, boxes, tolerance * scale, deadline)
    grouped = [_enclosure(game, group, tolerance * scale) for group in _group_touching(leaves)]
    found = tuple(exact + [e for e in grouped if not _holds_only(e, exact)])
    return Enclosures(found, complete, examined + more)


def enclosed_stable(claim: Claim[Game]) -> Solution:
    """Find the cheapest or costliest equilibrium of a small real game, or prove there is none.

    The proof of absence is exact up to rounding. Presence is shown up to the tolerance: the
    allocation found is one from which nobody would move by more than that.
    """
    game, tolerance = claim.game, claim.tolerance
    result = small_real_equilibria(game, tolerance=tolerance / 4, deadline=claim.deadline)
    certificate = {
        "boxes": [[e.lower.tolist(), e.upper.tolist()] for e in result.found],
        "boxes_examined": result.examined,
        "complete": result.complete,
    }
    if result.none_exist:
        return claim.none_exists("enclosures", certificate=certificate)
    ends = [(game.total(e.lower), game.total(e.upper)) for e in result.found]
    if not result.complete:
        low, high = stable_box(game)
        ends.append((game.total(low), game.total(high)))
    witnesses = [e.witness for e in result.found if e.witness is not None]
    best = claim.better(witnesses) if witnesses else None
    if claim.costliest:
        total = -np.inf if best is None else game.total(best)
        bounds = Interval(total, max(max(high for _, high in ends), total))
    else:
        total = np.inf if best is None else game.total(best)
        bounds = Interval(min(min(low for low, _ in ends), total), total)
    small = bounds.upper - bounds.lower <= game.size * tolerance * (abs(total) or 1.0)
    found = Status.OPTIMAL if small and result.complete else Status.LIMIT
    return claim.solution(
        "enclosures", Status.FAILED if best is None else found, bounds,
        None if best is None else np.array(best), certificate=certificate,
        note="" if result.complete else f"Time ran out after {result.examined:,} boxes.",
    )  # fmt: skip


def general_stable(
    claim: Claim[Game], method: str = "auto", start: Vector | None = None
) -> Solution:
    """Enclose the equilibria of a game if they can be, and look for one otherwise.

    method: "auto", or "best-response" to look for one.
    """
    if method == "auto" and _can_enclose(claim.game):
        half = Deadline(claim.deadline.left / 2)
        found = enclosed_stable(dataclasses.replace(claim, deadline=half))
        if found.status is not Status.FAILED:
            return found
    return damped_stable(claim, start)


def _can_enclose(game: Game) -> bool:
    """Return whether all equilibria of a real game can be enclosed: few agents, exact responses."""
    reachable = bool(np.isfinite(np.minimum(game.alone, game.limits)).all())
    exact = not game.is_integer and game.utility_doubt == 0
    return exact and game.size <= MOST_AGENTS and reachable


def damped_stable(claim: Claim[Game], start: Vector | None) -> Solution:
    """Look for an equilibrium of any game by best response, damped where it cycles.

    The equilibrium found is verified; whether a cheaper or a costlier one exists is not known.
    """
    game, name = claim.game, "damped-best-response"
    for damping in (1.0,) if game.is_integer else (0.5, 0.25):
        path = best_response_dynamics(
            game, start=start, order="sequential", damping=damping,
            tolerance=min(claim.tolerance, 1e-9), max_rounds=2_000, deadline=claim.deadline,
        )  # fmt: skip
        found = np.array(path.contributions[-1])
        needed = np.maximum(game.best_responses(found), game.minimums)
        allowed = 0.0 if game.is_integer else claim.tolerance * (float(found.max()) or 1.0)
        if path.ending is Ending.CONVERGED and (np.abs(needed - found) <= allowed).all():
            rounds = len(path.contributions)
            return claim.one_sided(name, 0.0, found, certificate={"rounds": rounds})
        if claim.deadline.passed:
            break
    note = "Best responses did not settle. This does not prove that no equilibrium exists."
    return claim.failed(name, note)


# Whole numbers and the open cells between them, exactly.


def _cells_of(game: Game, box: Box) -> list[list[tuple[Fraction, Fraction]]]:
    """Divide each side of the box into points (a, a) and open intervals (a, b) without a kink."""
    result = []
    for lo, hi in zip(box[0].tolist(), box[1].tolist(), strict=True):
        # The stand-alone need is a rounded number: the cell must reach the next double up.
        top = Fraction(hi if hi == math.floor(hi) else math.nextafter(hi, math.inf))
        inner = map(Fraction, range(math.floor(lo) + 1, math.ceil(top)))
        ends = sorted({Fraction(lo), *inner, top})
        cells = [(a, a) for a in ends] + list(pairwise(ends))
        result.append(sorted(cells))
    return result


def _split_by_cells(
    game: Game, cells: list[list[tuple[Fraction, Fraction]]], deadline: Deadline
) -> tuple[list[Enclosure], list[Box], int]:
    """Sort cells into equilibria proved, boxes left to search, and those ruled out."""
    exact: list[Enclosure] = []
    boxes: list[Box] = []
    examined = 0
    for cell in product(*cells):
        examined += 1
        if not deadline.passed and any(_is_excluded(game, cell, i) for i in range(game.size)):
            continue
        lower = np.array([float(a) for a, _ in cell])
        upper = np.array([float(b) for _, b in cell])
        if not deadline.passed and all(a == b for a, b in cell):
            exact.append(Enclosure(frozen(lower), frozen(upper), lower, exact=True))
        else:
            boxes.append((lower, upper))
    return exact, boxes, examined


def _is_excluded(game: Game, cell: Cell, agent: int) -> bool:
    """Return whether a cell, without its boundary, has no allocation that settles the agent.

    Inside, u_i is a mean of its values at the corners with every weight positive. So it is below
    the requirement if no corner is above and some corner below; likewise the other way round; and
    constant if the corners agree. An agent that gives more than it must is settled where u_i
    equals the requirement and any less would not do.
    """
    required = game.exact_requirements[agent]
    values = {game.exact_utility(agent, corner) for corner in product(*map(set, cell))}
    if max(values) <= required and min(values) < required:
        return True
    low, high = cell[agent]
    least = Fraction(float(game.minimums[agent]))
    if high <= least:
        return False
    if min(values) >= required and max(values) > required:
        return True
    if values != {required}:
        return False
    if low < high:
        return True
    # A whole number: what decides is the stretch just below it, linear from the one before.
    before = max(least, Fraction(math.ceil(low) - 1))
    below = [*cell[:agent], (before, before), *cell[agent + 1 :]]
    return all(game.exact_utility(agent, c) >= required for c in product(*map(set, below)))


# Dividing boxes.


def _divide(
    game: Game, boxes: Sequence[Box], smallest: float, deadline: Deadline
) -> tuple[list[Box], bool, int]:
    """Narrow and halve boxes until they are small; say whether all were dealt with."""
    stack, examined = list(boxes), 0
    leaves: list[Box] = []
    while stack:
        if deadline.passed or examined >= MOST_BOXES:
            return leaves + stack, False, examined
        examined += 1
        box = _narrow(game, *stack.pop())
        if box is None:
            continue
        if (box[1] - box[0]).max() <= smallest:
            leaves.append(box)
        else:
            stack.extend(_halves(*box))
    return leaves, True, examined


def _narrow(game: Game, lo: Vector, hi: Vector) -> Box | None:
    """Narrow a box to the responses that it allows, as long as that pays."""
    slack = ROUNDING * max(1.0, float(hi.max()))
    while True:
        low = np.maximum(lo, np.maximum(game.best_responses(hi), game.minimums) - slack)
        if (low > hi).any():
            return None
        needed = np.maximum(game.best_responses(low), game.minimums)
        high = np.minimum(hi, needed + slack)
        if (low > high).any():
            return None
        if (high - low).max() >= 0.7 * (hi - lo).max():
            return low, high
        lo, hi = low, high


def _halves(lo: Vector, hi: Vector) -> Iterator[Box]:
    widest = int(np.argmax(hi - lo))
    # Not quite the middle: solutions of symmetric games like to lie there, on the cut.
    middle = lo[widest] + 0.48 * (hi[widest] - lo[widest])
    left, right = np.array(hi), np.array(lo)
    left[widest] = right[widest] = middle
    yield lo, left
    yield right, hi


def _group_touching(boxes: list[Box]) -> Iterator[list[Box]]:
    """Group boxes that touch, directly or through others; all together where they are many."""
    if len(boxes) > MOST_GROUPED:
        yield list(boxes)
        return
    left = list(boxes)
    while left:
        group, frontier = [], [left.pop()]
        while frontier:
            lo, hi = frontier.pop()
            group.append((lo, hi))
            gap = 1e-9 * max(1.0, float(hi.max()))
            near = [(a <= hi + gap).all() and (b >= lo - gap).all() for a, b in left]
            frontier.extend(box for box, touches in zip(left, near, strict=True) if touches)
            left = [box for box, touches in zip(left, near, strict=True) if not touches]
        yield group


def _enclosure(game: Game, group: list[Box], allowed: float) -> Enclosure:
    lower = np.min([lo for lo, _ in group], axis=0)
    upper = np.max([hi for _, hi in group], axis=0)
    points = [(lower + upper) / 2, *((lo + hi) / 2 for lo, hi in group)]
    witness = _polish(game, min(points, key=lambda point: _regret(game, point)), lower, upper)
    settled = _regret(game, witness) <= 4 * allowed
    return Enclosure(frozen(lower), frozen(upper), witness if settled else None)


def _polish(game: Game, point: Vector, lower: Vector, upper: Vector) -> Vector:
    """Move half way to the best responses, inside the box, while that brings them nearer."""
    regret = _regret(game, point)
    while regret > 0:
        needed = np.maximum(game.best_responses(point), game.minimums)
        moved = np.clip((point + needed) / 2, lower, upper)
        after = _regret(game, moved)
        if after > 0.9 * regret:
            break
        point, regret = moved, after
    return point


def _regret(game: Game, point: Vector) -> float:
    needed = np.maximum(game.best_responses(point), game.minimums)
    return float(np.abs(needed - point).max())


def _holds_only(enclosure: Enclosure, exact: list[Enclosure]) -> bool:
    """Return whether a small box only repeats a point that was proved an equilibrium."""
    if enclosure.witness is not None and not (enclosure.upper - enclosure.lower > 1e-9).any():
        return any(np.allclose(e.lower, enclosure.lower, atol=1e-9) for e in exact)
    return False
