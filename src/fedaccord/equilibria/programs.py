"""Linear and mixed-integer programs: in doubles by HiGHS, and small ones in fractions.

In fractions nothing is rounded, so nothing is missed. Programs have linear rows and choices between
a few alternatives. Branch and bound decides the alternatives that a corner of the rows decided so
far leaves open. Each corner is found from the last by the dual simplex method: at costs above zero
the least contributions are a start for any rows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Deadline

if TYPE_CHECKING:
    from fedaccord.equilibria.rounding import RoundedCorner

# After this many pivots for one corner rows and variables are taken in order, which cannot cycle.
FREE_PIVOTS = 60

# Points are sought on the way to a corner, halving what is left of it this often. The way begins
# where strict rows have a margin, of the largest variable divided by the second number, if it can.
HALVINGS = 200
MARGIN = 1_000

Numbers: TypeAlias = Sequence[Fraction] | Sequence[int]


# In doubles.


@dataclass(frozen=True, eq=False)
class Outcome:
    """What HiGHS said.

    x: the point found, or None.
    bound: a proved lower bound on the cost; minus infinity where there is none.
    duals: prices of the inequality rows (linear programs only).
    solved, infeasible: whether it claims an optimum, or that there is no point.
    message: its own words.
    """

    x: Vector | None
    bound: float
    duals: Vector
    solved: bool
    infeasible: bool
    message: str


def linear_program(
    cost: Vector,
    low: Vector,
    high: Vector,
    *,
    rows: Any = None,
    most: Vector | None = None,
    equal_rows: Any = None,
    equals: Vector | None = None,
    method: str = "highs",
    seconds: float = np.inf,
    tolerance: float = 1e-7,
) -> Outcome:
    """Minimise cost'x subject to rows x <= most, equal_rows x = equals, low <= x <= high."""
    from scipy.optimize import linprog

    solve: Any = linprog
    # Tolerances are absolute: costs are given in units of the largest.
    unit = float(np.abs(cost).max(initial=0.0)) or 1.0
    result = solve(
        cost / unit, A_ub=rows, b_ub=most, A_eq=equal_rows, b_eq=equals,
        bounds=np.column_stack([low, high]), method=method,
        options={"time_limit": max(seconds, 0.1), "primal_feasibility_tolerance": tolerance},
    )  # fmt: skip
    solved = result.status == 0 and result.x is not None
    return Outcome(
        x=np.asarray(result.x, dtype=np.float64) if solved else None,
        bound=float(result.fun) * unit if solved else -np.inf,
        duals=result.ineqlin.marginals * unit if solved and rows is not None else np.zeros(0),
        solved=solved,
        infeasible=result.status == 2,
        message=str(result.message),
    )


def mixed_program(
    cost: Vector,
    low: Vector,
    high: Vector,
    *,
    rows: Sequence[tuple[Any, Any, Any]],
    whole: Any,
    seconds: float,
    gap: float,
) -> Outcome:
    """Minimise cost'x subject to least <= rows x <= most for each block, low <= x <= high.

    rows: blocks (matrix, least, most).
    whole: true where a variable must be a whole number.
    gap: relative distance between bound and cost to stop at.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    solve: Any = milp
    # HiGHS stops at an absolute distance of 1e-6 too: in units of the smallest cost that is little.
    sizes = np.abs(cost[cost != 0])
    unit = float(sizes.min(initial=np.inf)) / 1e3 if sizes.size else 1.0
    result = solve(
        cost / unit,
        constraints=[LinearConstraint(matrix, least, most) for matrix, least, most in rows],
        bounds=Bounds(low, high),
        integrality=np.asarray(whole, dtype=np.int64),
        options={"time_limit": max(seconds, 0.1), "mip_rel_gap": gap},
    )
    solved = result.status == 0 and result.x is not None
    # Without whole variables HiGHS solves a linear program and reports no bound but its value.
    value = result.mip_dual_bound if result.mip_dual_bound is not None else result.fun
    known = result.x is not None and value is not None
    return Outcome(
        x=None if result.x is None else np.asarray(result.x, dtype=np.float64),
        bound=float(value) * unit if known else -np.inf,
        duals=np.zeros(0),
        solved=solved,
        infeasible=result.status == 2,
        message=str(result.message),
    )


def make_difference_rows(pairs: Sequence[tuple[int, int]], size: int) -> sparse.csr_array:
    """Return rows x_i - x_j, one for each pair (i, j)."""
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    count, ones = np.arange(len(pairs)), np.ones(len(pairs))
    places = (np.tile(count, 2), np.concatenate([first, second]))
    return sparse.csr_array((np.concatenate([ones, -ones]), places), shape=(len(pairs), size))


def bound_by_prices(
    cost: Vector, rows: Any, least: Vector, prices: Vector, low: Vector, high: Vector
) -> float:
    """Bound cost'x from below where rows x >= least and low <= x <= high, by prices y of the rows.

        c x >= b y + sum_j min over [low_j, high_j] of (c - A' y)_j x_j

    This holds for any y >= 0, whatever a solver's tolerance. Where a variable has no upper end,
    prices are first scaled down until A' y <= c for it.
    """
    prices = np.maximum(prices, 0.0)
    worth, free = np.asarray(rows.T @ prices), np.isinf(high)
    share = min(1.0, float((cost[free] / np.maximum(worth[free], 1e-300)).min(initial=1.0)))
    left = cost - share * worth
    left[free] = np.maximum(left[free], 0.0)
    ends = np.where(left >= 0, left * low, left * np.where(free, 0.0, high))
    return float(share * (least @ prices) + ends.sum())


# In fractions.


class Undecided(Exception):
    """Raised where doubles cannot tell what fractions would."""


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

    def holds(self, x: Numbers) -> bool:
        """Return whether x obeys the row."""
        return bool(self.over(x) > 0 if self.strict else self.over(x) >= 0)

    def widen(self, margin: Fraction) -> Row:
        """Return the row with a margin in one of its variables, for which it is not strict."""
        largest = max((abs(w) for _, w in self.terms), default=0)
        return Row(self.terms, self.least + max(1, math.ceil(margin * largest)))


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
        """Return whether x is one of the points looked for."""
        return (
            all(row.holds(x) for row in self.rows)
            and all(any(all(row.holds(x) for row in a) for a in c) for c in self.choices)
            and not (self.whole and any(t.denominator > 1 for t in x))
        )


def to_floats(numbers: Sequence[Fraction | float]) -> Vector:
    """Return fractions in doubles."""
    return np.array([float(n) for n in numbers])


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

    def total(self, program: Program) -> Fraction:
        """Return what the corner costs."""
        return Fraction(program.total(self.at), self.unit)

    def sign(self, row: Row) -> int:
        """Return the sign of what the corner exceeds a row's least by."""
        over = row.over(self.at, self.unit)
        return int(over > 0) - int(over < 0)

    def shortfall(self, rows: Alternative) -> Fraction:
        """Return what the corner exceeds the least by in the row that it obeys least."""
        return min(
            Fraction(row.over(self.at, self.unit), max(abs(w) for _, w in row.terms))
            for row in rows
        )

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
    point: contributions that cost it, or None where none cost exactly that.
    near: contributions that cost a little more and keep to strict rows by a margin, if need be.
    bound: what nothing costs less than; the value where the search is complete.
    complete: whether nothing was left unseen.
    nodes: how many corners were looked at.
    """

    value: Fraction | float = math.inf
    point: Sequence[Fraction | float] | None = None
    near: list[Fraction] | None = None
    bound: Fraction | float = math.inf
    complete: bool = True
    nodes: int = 0


class _Node(NamedTuple):
    value: Fraction | float
    depth: int
    order: int
    corner: Corner | RoundedCorner
    rows: tuple[Row, ...]
    decided: frozenset[int]

    @property
    def has_ties(self) -> bool:
        """Whether the corner obeys a strict row only with equality."""
        return any(row.strict and self.corner.sign(row) <= 0 for row in self.rows)

    def obeys(self, rows: Alternative, *, robustly: bool) -> bool:
        """Return whether the corner obeys some rows; robustly, if all points near it do."""
        return all(self.corner.sign(row) >= (row.strict or robustly) for row in rows)


class _Search:
    """Branch and bound over the choices of a program, the cheapest corners first."""

    def __init__(self, program: Program, corner: Corner | RoundedCorner) -> None:
        self.program = program
        self.heap: list[_Node] = []
        self.numbers = count()
        self.best = Least()
        self._push(corner, program.rows, frozenset())

    def _push(
        self, corner: Corner | RoundedCorner, rows: tuple[Row, ...], decided: frozenset[int]
    ) -> None:
        if not corner.settle(rows):
            return
        value = corner.total(self.program)
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
        level = node.value
        if level == self.best.value and not _strict_point(self.program, node.rows, Fraction(level)):
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


def least_total(
    program: Program, deadline: Deadline, *, nodes: int = 5_000, rounded: bool = False
) -> Least:
    """Find the least cost.

    nodes: how many corners to look at before giving up.
    rounded: whether to search in doubles, up to their rounding; raises Undecided where they cannot
        tell what fractions would.
    """
    if rounded:
        from fedaccord.equilibria.rounding import RoundedCorner

        search = _Search(program, RoundedCorner(program))
    else:
        search = _Search(program, Corner.first(program))
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
    corner = node.corner
    if program.whole and isinstance(corner, Corner):
        at, unit = corner.at, corner.unit
        parts = [(abs(2 * (t % unit) - unit), j) for j, t in enumerate(at) if t % unit]
        if parts:
            _, j = min(parts)
            floor = at[j] // unit
            return -1, ((Row(((j, -1),), -floor),), (Row(((j, 1),), floor + 1),))
    ties = node.has_ties
    open_choices = (
        (max(corner.shortfall(a) for a in choice), place)
        for place, choice in enumerate(program.choices)
        if place not in node.decided and not any(node.obeys(a, robustly=ties) for a in choice)
    )
    worst = min(open_choices, default=None)
    return None if worst is None else (worst[1], program.choices[worst[1]])


def _resolve(program: Program, node: _Node) -> Least | None:
    """Return the least cost of a node whose corner settles every choice; None where it is empty.

    Where the corner obeys a strict row only with equality, points that obey it come as near the
    corner as you like, if there are any: with p one of them, corner + e (p - corner).
    """
    corner = node.corner
    if not isinstance(corner, Corner):
        if node.has_ties:
            raise Undecided
        return Least(node.value, corner.point)
    at, value = corner.point, corner.total(program)
    if not any(row.strict for row in node.rows):
        return Least(value, at)
    inner = _strict_point(program, node.rows)
    if inner is None:
        return None
    # The cheapest point with a margin keeps more of it for the same money.
    wide, most = Corner.first(program), max(at) / MARGIN
    if wide.settle([row.widen(most) if row.strict else row for row in node.rows]):
        inner = wide.point
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
