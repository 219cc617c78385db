"""Corners of programs in doubles, with bounds on what rounding may have changed.

Numbers with many digits make fractions slow, and hardly ever meet in a tie; so doubles can tell
their signs. A sign within the bounds of rounding raises Undecided.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from fedaccord._checks import Indices, Matrix, Vector
from fedaccord.equilibria.programs import Alternative, Program, Row, Undecided

# What rounding to a double may change, relatively.
UNIT = 2.0**-53
# What a cost may be off by, relatively.
DIGITS = 1e-11
# A corner is given up after this many pivots.
PIVOTS = 1_000


class _Table:
    """All rows of a program in doubles, each over its largest weight.

    place: where a row is, by its identity.
    ways, sides: a number for each direction of weights, and the sign of a row in it.
    weights, least, sizes: sum of weight * x_j >= least, and the weights' absolute values.
    """

    def __init__(self, program: Program) -> None:
        options = chain.from_iterable(chain.from_iterable(program.choices))
        self.rows = list(chain(program.rows, options))
        self.place = {id(row): n for n, row in enumerate(self.rows)}
        size = len(program.costs)
        self.weights, self.least = np.zeros((len(self.rows), size)), np.zeros(len(self.rows))
        ways: dict[tuple[tuple[int, int], ...], int] = {}
        self.ways, self.sides = np.zeros((2, len(self.rows)), dtype=np.int64)
        for n, row in enumerate(self.rows):
            scale = max(abs(w) for _, w in row.terms)
            for j, w in row.terms:
                self.weights[n, j] = w / scale
            self.least[n] = row.least / scale
            side = self.sides[n] = 1 if row.terms[0][1] > 0 else -1
            way = tuple((j, int(side) * w) for j, w in row.terms)
            self.ways[n] = ways.setdefault(way, len(ways))
        self.sizes = np.abs(self.weights)
        self.costs = program.step * np.array([float(c) for c in program.costs])
        # Sums of so many products err by this much, relatively, and as much for numbers that were
        # rounded themselves; twice that covers what the bounds' own rounding may miss.
        self.doubt = 4 * (size + 4) * UNIT


class RoundedCorner:
    """The cheapest point of some rows; see programs.Corner.

    basis: the places of the rows that hold with equality, as many as there are variables.
    """

    def __init__(self, program: Program) -> None:
        size = len(program.costs)
        # The first rows are lower bounds, and upper ones follow.
        self.basis = np.arange(size) + (0 if program.step > 0 else size)
        try:
            self.table = _Table(program)
        except OverflowError:
            raise Undecided from None
        self._ties: _Ties | None = None

    def copy(self) -> RoundedCorner:
        """Return a corner to move on from; arrays inside are replaced, but for the basis."""
        other = copy.copy(self)
        other.basis = self.basis.copy()
        return other

    def settle(self, rows: Sequence[Row]) -> bool:
        """Move to the cheapest point that obeys all rows; False where there is none."""
        table = self.table
        places = np.array([table.place[id(row)] for row in rows])
        for _ in range(PIVOTS):
            self._solve()
            over, doubt = self.over[places], self.over_doubt[places]
            worst = int(np.argmin(over))
            if over[worst] >= -doubt[worst]:
                if all(self._is_tied(n) for n in places[over < doubt].tolist()):
                    self._check_costs()
                    return True
                raise Undecided
            gains, gains_doubt = self._gains(int(places[worst]))
            if (gains <= -gains_doubt).all():
                # However the slacks rise, the row stays broken.
                return False
            useful = np.flatnonzero(gains > 1e3 * gains_doubt)
            if not useful.size:
                raise Undecided
            rates = (table.costs @ self.along)[useful]
            self.basis[useful[np.argmin(np.maximum(rates, 0.0) / gains[useful])]] = places[worst]
        raise Undecided

    def _gains(self, place: int) -> tuple[Vector, Vector]:
        """Return what a row gains by each slack, and bounds on the errors of that."""
        table = self.table
        if (same := np.flatnonzero(table.ways[self.basis] == table.ways[place])).size:
            # Parallel to a row of the basis, it gains by that row's slack and by no other.
            gains = np.zeros(self.basis.size)
            gains[same] = table.sides[place] * table.sides[self.basis[same]]
            return gains, np.zeros(self.basis.size)
        sizes = table.sizes[place]
        doubt = sizes @ (self.along_doubt + table.doubt * np.abs(self.along))
        return table.weights[place] @ self.along, doubt

    def _solve(self) -> None:
        """Find the corner of the basis, the changes along slacks, and bounds on their errors.

        With R an approximate inverse of the basis B and E >= |1 - R B|, the inverse differs from R
        by at most (E + E^2 + ...) |R|, and the corner from x by at most its size times |b - B x|.
        """
        table, size = self.table, self.basis.size
        basis, least = table.weights[self.basis], table.least[self.basis]
        single = np.count_nonzero(basis, axis=1) == 1
        self.along = _invert(basis, single)
        bounded = np.abs(basis[single]).argmax(axis=1)
        wide = np.abs(self.along)
        error = np.abs(np.eye(size) - self.along @ basis) + table.doubt * (wide @ np.abs(basis))
        # Variables at a bound of theirs are known exactly, as far as the bound is a double.
        error[bounded] = 0.0
        norms = error.sum(axis=1)
        if not norms.max() < 0.5:
            raise Undecided
        first = error @ wide
        further = norms[:, None] * first.max(axis=0) / (1 - norms.max())
        # What no power of E connects stays zero exactly.
        linked = np.linalg.matrix_power(np.eye(size) + (error > 0), size) @ (wide > 0)
        self.along_doubt = np.where(linked > 0, first + further, 0.0)
        self.at = self.along @ least
        missing = np.abs(least - basis @ self.at)
        missing += table.doubt * (np.abs(basis) @ np.abs(self.at) + np.abs(least))
        missing[single] = 2 * UNIT * np.abs(least[single])
        self.at_doubt = 1.01 * (wide + self.along_doubt) @ missing
        self.over = table.weights @ self.at - table.least
        self.over_doubt = table.sizes @ (self.at_doubt + table.doubt * np.abs(self.at))
        self.over_doubt += table.doubt * np.abs(table.least)
        self.over[self.basis] = self.over_doubt[self.basis] = 0.0
        self._ties = None

    def _is_tied(self, place: int) -> bool:
        """Return whether the corner obeys a row with equality because of what the basis says."""
        if self.over_doubt[place] == 0:
            return bool(self.over[place] == 0)
        if self._ties is None:
            self._ties = _Ties([self.table.rows[n] for n in self.basis])
        if not self._ties.cover(self.table.rows[place]):
            return False
        self.over[place] = self.over_doubt[place] = 0.0
        return True

    def _check_costs(self) -> None:
        """Check that no slack that rises lowers the cost, and that the cost has enough digits."""
        costs, doubt = np.abs(self.table.costs), self.table.doubt
        rates_doubt = costs @ (self.along_doubt + doubt * np.abs(self.along))
        if (self.table.costs @ self.along < rates_doubt).any():
            raise Undecided
        if costs @ (self.at_doubt + doubt * np.abs(self.at)) > DIGITS * (costs @ np.abs(self.at)):
            raise Undecided

    def total(self, program: Program) -> float:
        """Return what the corner costs."""
        return float(self.table.costs @ self.at)

    def sign(self, row: Row) -> int:
        """Return the sign of what the corner exceeds a row's least by."""
        place = self.table.place[id(row)]
        over, doubt = self.over[place], self.over_doubt[place]
        if abs(over) > doubt:
            return 1 if over > 0 else -1
        if not self._is_tied(place):
            raise Undecided
        return 0

    def shortfall(self, rows: Alternative) -> float:
        """Return what the corner exceeds the least by in the row it obeys least."""
        return min(float(self.over[self.table.place[id(row)]]) for row in rows)

    @property
    def point(self) -> list[float]:
        """x in doubles."""
        return [float(t) for t in self.at]


class _Ties:
    """What rows that hold with equality say of others, in whole numbers.

    Variables that some rows say are equal, or fix at a bound, are replaced in all other rows; those
    that are then the same row hold with equality, too.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.same: dict[int, int] = {}
        self.fixed: dict[int, int] = {}
        for terms, least, _ in rows:
            if least == 0 and [w for _, w in terms] in ([1, -1], [-1, 1]):
                first, second = (self._find(j) for j, _ in terms)
                self.same[first] = second
        for terms, least, _ in rows:
            if len(terms) == 1 and abs(terms[0][1]) == 1:
                self.fixed[self._find(terms[0][0])] = least * terms[0][1]
        self.known = {self._reduce(row) for row in rows} | {()}

    def _find(self, variable: int) -> int:
        while variable in self.same:
            variable = self.same[variable]
        return variable

    def _reduce(self, row: Row) -> tuple[object, ...]:
        weights: dict[int, int] = {}
        least = row.least
        for j, w in row.terms:
            variable = self._find(j)
            if variable in self.fixed:
                least -= w * self.fixed[variable]
            else:
                weights[variable] = weights.get(variable, 0) + w
        terms = sorted((j, w) for j, w in weights.items() if w)
        if not terms and least == 0:
            return ()
        common = math.gcd(least, *(w for _, w in terms)) * (1 if terms and terms[0][1] > 0 else -1)
        return (least // common, *((j, w // common) for j, w in terms))

    def cover(self, row: Row) -> bool:
        """Return whether a row holds with equality where those do."""
        return self._reduce(row) in self.known


def _invert(basis: Matrix, single: Any) -> Matrix:
    """Invert a matrix some of whose rows have a single entry, one or minus one."""
    inverse = np.zeros(basis.shape)
    place: Indices = np.flatnonzero(single)
    variable: Indices = np.abs(basis[place]).argmax(axis=1)
    inverse[variable, place] = basis[place, variable]
    rest = np.flatnonzero(~single)
    free = np.setdiff1d(np.arange(len(basis)), variable)
    if free.size != rest.size:
        raise Undecided
    try:
        block = np.linalg.inv(basis[np.ix_(rest, free)])
    except np.linalg.LinAlgError:
        raise Undecided from None
    inverse[np.ix_(free, rest)] = block
    inverse[np.ix_(free, place)] = -block @ basis[np.ix_(rest, variable)] * basis[place, variable]
    return inverse
