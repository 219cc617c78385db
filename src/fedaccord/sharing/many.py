"""LP 1 of many small games at once: the dual simplex method on a stack of tableaus.

    minimise  c' theta   subject to  W theta >= mu,  low <= theta <= high

W has a row for each agent, or for each goal of agents with several.

Least contributions cost least, so that they are a start for the dual simplex method whatever the
requirements. All games take their pivots together. What comes out is proved for each game by its
own prices; a game whose proof fails is solved again by HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Matrix, Vector
from fedaccord.equilibria.programs import linear_program

# A requirement is missing, in units of the largest need, where it misses more than this.
SHORT = 1e-11
# Entries of a tableau below this are rounding.
PIVOT = 1e-10
# Plan and prices must agree to this part of the total, and requirements be met to it.
PROVED = 1e-8
# After this many pivots per variable a game is left to HiGHS.
PIVOTS = 12
# Numbers of a stack that are held at a time.
NUMBERS = 4_000_000

Stack = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Optima:
    """The cheapest plans of B games of k agents.

    totals: their costs, (B,); infinite where limits leave a requirement unmet.
    contributions: the plans, B x k; NaN where there is none.
    prices: y, what one more unit of each requirement adds to the total, B x rows.
    """

    totals: Vector
    contributions: Matrix
    prices: Matrix


def solve_many(benefits: Stack, needs: Matrix, low: Matrix, high: Vector, costs: Vector) -> Optima:
    """Return the cheapest plans of many games with the same agents.

    benefits: B x rows x k; columns of agents that are absent hold zeros.
    needs: the requirements, B x rows.
    low: the minimums, B x k.
    high, costs: the limits and costs of all games alike, (k,).
    """
    size = low.shape[1]
    rows = needs.shape[1] + int(np.isfinite(high).sum()) + 1
    step = max(1, NUMBERS // (rows * (size + 1)))
    parts = [
        _solve_part(benefits[at : at + step], needs[at : at + step], low[at : at + step], high,
                    costs)
        for at in range(0, len(needs), step)
    ]  # fmt: skip
    return Optima(
        np.concatenate([part.totals for part in parts]),
        np.concatenate([part.contributions for part in parts]),
        np.concatenate([part.prices for part in parts]),
    )


def _solve_part(benefits: Stack, needs: Matrix, low: Matrix, high: Vector, costs: Vector) -> Optima:
    # In units of the largest requirement and of each row's largest benefit.
    largest = benefits.max(axis=2)
    scale = np.where(largest > 0, largest, 1.0)
    unit = np.maximum((needs / scale).max(axis=1), low.max(axis=1))
    unit = np.where(unit > 0, unit, 1.0)
    tableau = _Tableau(benefits / scale[:, :, None], needs / scale / unit[:, None],
                       low / unit[:, None], high[None, :] / unit[:, None], costs)  # fmt: skip
    tableau.run()
    given = tableau.contributions * unit[:, None]
    prices = tableau.prices / scale
    totals = given @ costs
    infeasible = tableau.infeasible
    given[infeasible], totals[infeasible] = np.nan, np.inf
    for b in np.flatnonzero(_find_unproved(benefits, needs, low, high, costs, given, prices)):
        totals[b], given[b], prices[b] = _solve_one(benefits[b], needs[b], low[b], high, costs)
    return Optima(totals, given, prices)


def _find_unproved(
    benefits: Stack, needs: Matrix, low: Matrix, high: Vector, costs: Vector, given: Matrix,
    prices: Matrix,
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which games need another look: plan and prices do not prove each other.

    Infeasible games are looked at again, too, unless all limits together leave somebody short.
    """
    with np.errstate(invalid="ignore"):
        met = np.einsum("bij,bj->bi", benefits, given) >= needs * (1 - PROVED)
        inside = (given >= low * (1 - PROVED)) & (given <= high * (1 + PROVED))
        left = costs - np.einsum("bij,bi->bj", benefits, prices)
        over = np.isinf(high) & (left < -PROVED * costs)
        left = np.where(np.isinf(high), np.maximum(left, 0.0), left)
        ends = np.where(left >= 0, left * low, left * np.where(np.isinf(high), 0.0, high))
        bound = (needs * prices).sum(axis=1) + ends.sum(axis=1)
        totals = given @ costs
        proved = (totals - bound <= PROVED * totals) & met.all(axis=1) & inside.all(axis=1)
    proved &= ~over.any(axis=1) & (prices >= 0).all(axis=1)
    none = np.isnan(totals)
    if none.any():
        most = np.where(np.isinf(high), 1e30, high)
        best = np.maximum(benefits[none], 0.0) @ most
        proved[none] = (best < needs[none] * (1 - PROVED)).any(axis=1)
    return np.asarray(~proved)


def _solve_one(
    benefits: Matrix, needs: Vector, low: Vector, high: Vector, costs: Vector
) -> tuple[float, Vector, Vector]:
    scale = np.maximum(benefits.max(axis=1), 1e-300)
    unit = float(max((needs / scale).max(), low.max())) or 1.0
    found = linear_program(
        costs, low / unit, high / unit, rows=-benefits / scale[:, None], most=-needs / scale / unit,
        tolerance=1e-10,
    )  # fmt: skip
    if found.x is None:
        return np.inf, np.full(len(low), np.nan), np.zeros(len(needs))
    given = found.x * unit
    return float(costs @ given), given, np.maximum(-found.duals, 0.0) / scale


class _Tableau:
    """Dictionaries of B programs: basic variables and cost as functions of the others.

    The first rows are the slacks of requirements, the next those of limits, the last row the cost;
    column j < k belongs to a variable that is zero, the last column has the values there.
    """

    def __init__(
        self, benefits: Stack, needs: Matrix, low: Matrix, high: Matrix, costs: Vector
    ) -> None:
        (count, goals), size = needs.shape, low.shape[1]
        limited = np.flatnonzero(np.isfinite(high[0]))
        rows = goals + len(limited)
        self.low, self.size, self.goals = low, size, goals
        self.cells = np.zeros((count, rows + 1, size + 1))
        self.cells[:, :goals, :size] = benefits
        self.cells[:, :goals, size] = np.einsum("bij,bj->bi", benefits, low) - needs
        for row, agent in enumerate(limited.tolist(), goals):
            self.cells[:, row, agent] = -1.0
            self.cells[:, row, size] = high[:, agent] - low[:, agent]
        self.cells[:, rows, :size] = costs
        # Variables are numbered: what agents give beyond their minimums, then slacks of rows.
        self.basic = np.tile(np.arange(size, size + rows), (count, 1))
        self.zero = np.tile(np.arange(size), (count, 1))
        self.infeasible = np.zeros(count, dtype=bool)

    def run(self) -> None:
        """Pivot until no requirement is missing, or a program has no solution."""
        left = np.arange(len(self.cells))
        for pivots in range(PIVOTS * (self.goals + 2)):
            left = self._pivot(left, careful=pivots > 4 * self.goals)
            if not len(left):
                return

    def _pivot(self, left: NDArray[np.intp], *, careful: bool) -> NDArray[np.intp]:
        """Take one pivot in each program that is not done; return those that are left.

        careful: whether to take rows and variables in order, which cannot cycle.
        """
        size = self.size
        values = self.cells[left, :-1, size]
        short = values < -SHORT
        some = short.any(axis=1)
        left, values, short = left[some], values[some], short[some]
        if not len(left):
            return left
        numbers = self.basic[left]
        order = np.where(short, numbers, numbers.max() + 1) if careful else values
        row = order.argmin(axis=1)
        weights = self.cells[left, row, :size]
        rates = np.maximum(self.cells[left, -1, :size], 0.0)
        ratios = np.where(weights > PIVOT, rates / np.where(weights > PIVOT, weights, 1.0), np.inf)
        if careful:
            tied = ratios <= ratios.min(axis=1, keepdims=True)
            column = np.where(tied, self.zero[left], 10**9).argmin(axis=1)
        else:
            column = ratios.argmin(axis=1)
        stuck = np.isinf(ratios.min(axis=1))
        self.infeasible[left[stuck]] = True
        left, row, column = left[~stuck], row[~stuck], column[~stuck]
        self._exchange(left, row, column)
        return left

    def _exchange(
        self, left: NDArray[np.intp], row: NDArray[np.intp], column: NDArray[np.intp]
    ) -> None:
        """Exchange the basic variable of a row and the zero variable of a column."""
        every = np.arange(len(left))
        cells = self.cells[left]
        pivot = cells[every, row, column]
        leaving = -cells[every, row] / pivot[:, None]
        leaving[every, column] = 1 / pivot
        factors = cells[every, :, column]
        cells[every, :, column] = 0.0
        cells += factors[:, :, None] * leaving[:, None, :]
        cells[every, row] = leaving
        self.cells[left] = cells
        entering = self.zero[left, column]
        self.zero[left, column] = self.basic[left, row]
        self.basic[left, row] = entering

    @property
    def contributions(self) -> Matrix:
        """What agents give."""
        given = np.array(self.low)
        program, row = np.nonzero(self.basic < self.size)
        given[program, self.basic[program, row]] += self.cells[program, row, self.size]
        return np.maximum(given, self.low)

    @property
    def prices(self) -> Matrix:
        """The rates at which costs rise with what requirements have to spare."""
        prices = np.zeros((len(self.cells), self.size + self.basic.shape[1]))
        np.put_along_axis(prices, self.zero, self.cells[:, -1, : self.size], axis=1)
        return np.maximum(prices[:, self.size : self.size + self.goals], 0.0)
