"""Least totals of small linear games in fractions: nothing is rounded, so nothing is missed.

Feasible, stable and envy-free allocations of a linear game obey linear rows and, for each agent or
pair, one of a few alternatives: an agent gives its least or has nothing to spare; i gives no more
than j, or would be short after a swap. Branch and bound decides the alternatives that a corner of
the rows decided so far leaves open. Each corner is found from the last by the dual simplex method:
at costs above zero the least contributions are a start for any rows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, islice, permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fedaccord._checks import Vector, exact_numbers, simplest_fraction
from fedaccord.equilibria.linear.envy_free import forced_pairs
from fedaccord.equilibria.result import Concept, Deadline, Select
from fedaccord.games.base import ROUNDING
from fedaccord.games.linear import LinearGame

# After this many pivots for one corner rows and variables are taken in order, which cannot cycle.
FREE_PIVOTS = 60

# Points are sought on the way to a corner, halving what is left of it this often.
HALVINGS = 200

Numbers: TypeAlias = Sequence[Fraction] | Sequence[int]


class Row(NamedTuple):
    """The inequality sum of weight * x_j >= least, in whole numbers; where strict, > least.

    terms: pairs of a variable j and its weight, none of them zero.
    """

    terms: tuple[tuple[int, int], ...]
    least: int
    strict: bool = False

    def over(self, x: Numbers, unit: int = 1) -> Any:
        """Return by how much x / unit exceeds the least, times the unit."""
        return sum((w * x[j] for j, w in self.terms), -self.least * unit)

    def holds(self, x: Numbers, unit: int = 1, *, robustly: bool = False) -> bool:
        """Say whether x / unit obeys the row; robustly, if all points near it do."""
        over = self.over(x, unit)
        return bool(over > 0 if self.strict or robustly else over >= 0)


# One of the ways in which a choice can be settled: all of its rows.
Alternative: TypeAlias = tuple[Row, ...]


@dataclass(frozen=True)
class Program:
    """Least cost of variables x that obey all rows and one alternative of every choice.

    costs: of a unit of each variable, whole numbers.
    start: what costs least, rising from there (step 1), or most, falling from there (step -1).
    whole: whether variables must be whole numbers.
    amount, money: a unit of the variables in samples, and a unit of the costs times that.
    """

    costs: tuple[int, ...]
    start: tuple[int, ...]
    step: int
    rows: tuple[Row, ...]
    choices: tuple[tuple[Alternative, ...], ...] = ()
    whole: bool = False
    amount: Fraction = Fraction(1)
    money: Fraction = Fraction(1)

    def total(self, x: Numbers) -> Any:
        """Return what x costs; the costliest is the least of these if it falls from the start."""
        amounts: Sequence[Any] = x
        return self.step * sum(c * t for c, t in zip(self.costs, amounts, strict=True))

    def holds(self, x: Sequence[Fraction]) -> bool:
        """Say whether x is one of the points looked for."""
        return (
            all(row.holds(x) for row in self.rows)
            and all(any(_all_hold(a, x) for a in choice) for choice in self.choices)
            and not (self.whole and any(t.denominator > 1 for t in x))
        )


def _all_hold(rows: Alternative, x: Numbers, unit: int = 1, *, robustly: bool = False) -> bool:
    return all(row.holds(x, unit, robustly=robustly) for row in rows)


def to_floats(numbers: Sequence[Fraction]) -> Vector:
    """Return fractions in doubles."""
    return np.array([float(n) for n in numbers])


# Programs of games.


class _Writer:
    """Writes rows over contributions as rows over variables in whole numbers."""

    def __init__(self, amount: Fraction, whole: bool) -> None:
        self.amount, self.whole = amount, whole

    def row(
        self, weights: Iterable[tuple[int, Fraction | int]], least: Fraction | int, *,
        strict: bool = False,
    ) -> Row:  # fmt: skip
        """Return sum of weight * theta_j >= (or >) least; the sharpest such row of whole theta."""
        terms = [(j, w) for j, w in weights if w]
        right = least / self.amount
        scale = math.lcm(*(w.denominator for _, w in terms))
        if not self.whole:
            scale = math.lcm(scale, right.denominator)
        whole = [int(w * scale) for _, w in terms]
        right *= scale
        common = math.gcd(*whole) if self.whole else math.gcd(*whole, int(right))
        right /= common
        if self.whole:
            right = Fraction(math.floor(right) + 1 if strict else math.ceil(right))
            strict = False
        return Row(
            tuple((j, w // common) for (j, _), w in zip(terms, whole, strict=True)),
            int(right), strict,
        )  # fmt: skip


def program_of(game: LinearGame, concept: Concept, select: Select = "cheapest") -> Program:
    """Write down what the allocations of a concept must obey."""
    k, benefits = game.size, game.exact_benefits
    low, costs = exact_numbers(game.minimums), exact_numbers(game.costs)
    high = [simplest_fraction(n) if np.isfinite(n) else None for n in game.limits.tolist()]
    needs = list(game.exact_requirements)
    if not game.is_integer:
        needs = [_reach(row, need, high) for row, need in zip(benefits, needs, strict=True)]
    if concept == "stable":
        # Nobody gives more than alone, as the others' samples only help.
        alone = [need / benefits[i][i] for i, need in enumerate(needs)]
        if game.is_integer:
            alone = [Fraction(math.ceil(a)) for a in alone]
        most = [max(a, least) for a, least in zip(alone, low, strict=True)]
        high = [m if h is None else min(m, h) for m, h in zip(most, high, strict=True)]
    start = low if select == "cheapest" else [h or Fraction(0) for h in high]
    amount = Fraction(1, math.lcm(*(t.denominator for t in start)))
    unit = Fraction(1, math.lcm(*(c.denominator for c in costs)))
    writer = _Writer(amount, game.is_integer)
    rows = [writer.row([(j, 1)], low[j]) for j in range(k)]
    rows += [writer.row([(j, -1)], -h) for j, h in enumerate(high) if h is not None]
    rows += [writer.row(enumerate(benefits[i]), needs[i]) for i in range(k)]
    choices: list[tuple[Alternative, ...]] = []
    if concept == "stable":
        choices = [_rest(writer, i, benefits[i], needs[i], low[i]) for i in range(k)]
    elif concept == "envy-free":
        forced = forced_pairs(game)
        rows += [writer.row([(j, 1), (i, -1)], 0) for i, j in sorted(forced)]
        choices = [
            _no_envy(writer, i, j, benefits[i], needs[i], low, high)
            for i, j in permutations(range(k), 2)
            if (i, j) not in forced
        ]
    return Program(
        costs=tuple(int(c / unit) for c in costs),
        start=tuple(int(t / amount) for t in start),
        step=1 if select == "cheapest" else -1,
        rows=tuple(rows), choices=tuple(choices), whole=game.is_integer,
        amount=amount, money=amount * unit,
    )  # fmt: skip


def _reach(
    benefits: Sequence[Fraction], need: Fraction, high: Sequence[Fraction | None]
) -> Fraction:
    """Return what an agent needs, or what all limits give it where that is less by rounding."""
    most = Fraction(0)
    for weight, limit in zip(benefits, high, strict=True):
        if weight and limit is None:
            return need
        most += weight * (limit or 0)
    return most if most < need <= most * (1 + Fraction(ROUNDING)) else need


def _rest(
    writer: _Writer, agent: int, benefits: Sequence[Fraction], need: Fraction, low: Fraction
) -> tuple[Alternative, ...]:
    """Give the least, or more with nothing to spare: in whole numbers, less than one own sample."""
    idle = writer.row([(agent, -1)], -low)
    weights = [(j, -w) for j, w in enumerate(benefits)]
    if not writer.whole:
        return (idle,), (writer.row(weights, -need),)
    tight = writer.row(weights, -need - benefits[agent], strict=True)
    return (idle,), (tight, writer.row([(agent, 1)], low + 1))


def _no_envy(
    writer: _Writer, i: int, j: int, benefits: Sequence[Fraction], need: Fraction,
    low: Sequence[Fraction], high: Sequence[Fraction | None],
) -> tuple[Alternative, ...]:  # fmt: skip
    """Give no more than j; or be short after a swap; or be unable to swap.

    They are if i gives more than j's limit, or j less than i's minimum.
    """
    found: list[Alternative] = [(writer.row([(j, 1), (i, -1)], 0),)]
    if benefits[j] < benefits[i]:
        swapped = list(benefits)
        swapped[i], swapped[j] = benefits[j], benefits[i]
        short = writer.row(((n, -w) for n, w in enumerate(swapped)), -need, strict=True)
        found.append((short, writer.row([(i, 1), (j, -1)], 0)))
    theirs, mine = high[j], high[i]
    if theirs is not None and (mine is None or mine > theirs):
        found.append((writer.row([(i, 1)], theirs, strict=True),))
    if low[j] < low[i]:
        found.append((writer.row([(j, -1)], -low[i], strict=True),))
    return tuple(found)


# Linear programs.


@dataclass
class Corner:
    """The cheapest point of some rows, as a function of the slacks that are zero there.

    All numbers are whole and over a common denominator, a determinant (Bareiss' elimination).

    at: x; along[q]: the change of x with slack q; rates: that of the cost, none below zero.
    names: the places of the rows that the slacks belong to.
    """

    unit: int
    at: list[int]
    along: list[list[int]]
    rates: list[int]
    names: list[int]

    @classmethod
    def first(cls, program: Program) -> Corner:
        """Return the corner at which everybody gives its least, or most."""
        k = len(program.start)
        along = [[program.step * (i == j) for j in range(k)] for i in range(k)]
        return cls(1, list(program.start), along, list(program.costs), list(range(k)))

    def settle(self, rows: Sequence[Row]) -> bool:
        """Move to the cheapest point that obeys all rows; False where there is none."""
        for pivots in count():
            broken = ((row.over(self.at, self.unit), n) for n, row in enumerate(rows))
            worst = [(over, n) for over, n in broken if over < 0]
            if not worst:
                return True
            over, place = min(worst) if pivots < FREE_PIVOTS else worst[0]
            if not self._pivot(rows[place], -over, place):
                return False
        raise AssertionError

    def _pivot(self, row: Row, missing: int, name: int) -> bool:
        """Make up for what a row misses at the least rise in cost; False where nothing can."""
        gains = [sum(w * way[j] for j, w in row.terms) for way in self.along]
        best = -1
        for q, gain in enumerate(gains):
            if gain <= 0:
                continue
            order = 0 if best < 0 else self.rates[q] * gains[best] - self.rates[best] * gain
            if best < 0 or order < 0 or (order == 0 and self.names[q] < self.names[best]):
                best = q
        if best < 0:
            return False
        unit, pivot, way = self.unit, gains[best], self.along[best]
        self.at = [(t * pivot + missing * a) // unit for t, a in zip(self.at, way, strict=True)]
        for q, gain in enumerate(gains):
            if q != best:
                self.along[q] = [
                    (b * pivot - gain * a) // unit for b, a in zip(self.along[q], way, strict=True)
                ]
                self.rates[q] = (self.rates[q] * pivot - gain * self.rates[best]) // unit
        self.unit, self.names[best] = pivot, name
        return True

    def copy(self) -> Corner:
        """Return a corner to move on from; lists inside are replaced, never changed."""
        return Corner(self.unit, self.at, list(self.along), list(self.rates), list(self.names))

    @property
    def point(self) -> list[Fraction]:
        """x as fractions."""
        return [Fraction(t, self.unit) for t in self.at]


def _strict_point(
    program: Program, rows: Sequence[Row], most: Fraction | None = None
) -> list[Fraction] | None:
    """Return a point that obeys strict rows strictly, of at most a cost; None where none does.

    Minimises s >= 0 subject to a'x + s >= least + 1 for strict rows: below one if there is any.
    """
    k = len(program.start)
    eased = [Row((*row.terms, (k, 1)), row.least + 1) if row.strict else row for row in rows]
    eased.append(Row(((k, 1),), 0))
    if most is not None:
        scale = most.denominator
        terms = tuple((j, -program.step * c * scale) for j, c in enumerate(program.costs))
        eased.append(Row(terms, -most.numerator))
    corner = Corner.first(Program((0,) * k + (1,), (*program.start, 0), program.step, ()))
    corner.along[k][k] = 1
    if not corner.settle(eased) or corner.at[k] >= corner.unit:
        return None
    return corner.point[:k]


# The search.


@dataclass(frozen=True)
class Least:
    """What a search found, in samples.

    value: the least cost there is, or as near as you like above it; infinite where none exists.
    point: contributions that cost it, or None where none cost just so much.
    near: contributions that cost a little more and keep to strict rows by a margin, if need be.
    bound: what nothing costs less than; the value where the search is complete.
    complete: whether nothing was left unseen.
    nodes: how many corners were looked at.
    """

    value: Fraction | float = math.inf
    point: list[Fraction] | None = None
    near: list[Fraction] | None = None
    bound: Fraction | float = math.inf
    complete: bool = True
    nodes: int = 0


class _Node(NamedTuple):
    value: Fraction
    depth: int
    order: int
    corner: Corner
    rows: tuple[Row, ...]
    decided: frozenset[int]

    @property
    def has_ties(self) -> bool:
        """Whether the corner obeys a strict row only with equality."""
        corner = self.corner
        return any(row.strict and not row.holds(corner.at, corner.unit) for row in self.rows)


class _Search:
    """Branch and bound over the choices of a program, the cheapest corners first."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.heap: list[_Node] = []
        self.numbers = count()
        self.best = Least()
        self._push(Corner.first(program), program.rows, frozenset())

    def _push(self, corner: Corner, rows: tuple[Row, ...], decided: frozenset[int]) -> None:
        if not corner.settle(rows):
            return
        value = Fraction(self.program.total(corner.at), corner.unit)
        node = _Node(value, -len(decided), next(self.numbers), corner, rows, decided)
        heapq.heappush(self.heap, node)

    @property
    def is_done(self) -> bool:
        """Whether nothing left can be cheaper than the best, or as cheap and attained."""
        if not self.heap or self.heap[0].value > self.best.value:
            return True
        return self.best.point is not None and self.heap[0].value == self.best.value

    def look(self) -> None:
        """Take the cheapest node and settle it or divide it."""
        node = heapq.heappop(self.heap)
        if node.value == self.best.value and not _strict_point(self.program, node.rows, node.value):
            return
        split = _open_choice(self.program, node)
        if split is None:
            found = _resolve(self.program, node)
            if found is not None and (found.value < self.best.value or found.point is not None):
                self.best = found
            return
        place, alternatives = split
        decided = node.decided | {place}
        for alternative in alternatives:
            self._push(node.corner.copy(), (*node.rows, *alternative), decided)


def least_total(program: Program, deadline: Deadline, *, nodes: int = 5_000) -> Least:
    """Find the least cost.

    nodes: how many corners to look at before giving up.
    """
    search = _Search(program)
    looked = 0
    while not search.is_done and looked < nodes and not deadline.passed:
        search.look()
        looked += 1
    best, complete = search.best, search.is_done
    bound = best.value if complete else search.heap[0].value
    money, amount = program.step * program.money, program.amount
    return Least(
        best.value * money,
        None if best.point is None else [t * amount for t in best.point],
        None if best.near is None else [t * amount for t in best.near],
        bound * money, complete, looked,
    )  # fmt: skip


def _open_choice(program: Program, node: _Node) -> tuple[int, tuple[Alternative, ...]] | None:
    """Return a choice that the corner of a node leaves open; None where all are settled."""
    at, unit = node.corner.at, node.corner.unit
    if program.whole:
        parts = [(abs(2 * (t % unit) - unit), j) for j, t in enumerate(at) if t % unit]
        if parts:
            _, j = min(parts)
            floor = at[j] // unit
            return -1, ((Row(((j, -1),), -floor),), (Row(((j, 1),), floor + 1),))
    ties = node.has_ties
    worst: tuple[Fraction, int] | None = None
    for place, choice in enumerate(program.choices):
        if place in node.decided or any(_all_hold(a, at, unit, robustly=ties) for a in choice):
            continue
        lacking = max(min(Fraction(row.over(at, unit), _size(row)) for row in a) for a in choice)
        if worst is None or (lacking, place) < worst:
            worst = lacking, place
    return None if worst is None else (worst[1], program.choices[worst[1]])


def _size(row: Row) -> int:
    return max(abs(w) for _, w in row.terms)


def _resolve(program: Program, node: _Node) -> Least | None:
    """Return the least cost of a node whose corner settles every choice; None where it is empty.

    Where the corner obeys a strict row only with equality, points that obey it come as near the
    corner as you like, if there are any: with p one of them, corner + e (p - corner).
    """
    at, value = node.corner.point, node.value
    if not any(row.strict for row in node.rows):
        return Least(value, at)
    inner = _strict_point(program, node.rows)
    if inner is None:
        return None
    near = _first(program, _towards(at, inner), abs(value) * Fraction(1001, 1000))
    if node.has_ties:
        level = _strict_point(program, node.rows, value)
        point = None if level is None else _first(program, _towards(at, level), abs(value))
        return Least(value, point, near)
    return Least(value, at, near)


def _first(
    program: Program, points: Iterable[list[Fraction]], most: Fraction
) -> list[Fraction] | None:
    """Return the first of some points that is looked for and costs no more than the most."""
    for point in islice(points, HALVINGS):
        if abs(program.total(point)) <= most and program.holds(point):
            return point
    return None


def _towards(begin: Sequence[Fraction], end: Sequence[Fraction]) -> Iterator[list[Fraction]]:
    """Yield the end, half way back to the beginning, half of that, and so on."""
    share = Fraction(1)
    while True:
        yield [b + share * (e - b) for b, e in zip(begin, end, strict=True)]
        share /= 2
