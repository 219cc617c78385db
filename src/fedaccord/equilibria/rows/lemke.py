"""Lemke's method for stable plans, with several goals per agent as Cottle and Dantzig have it.

    s_g = A_g x - q_g + z >= 0,   x >= 0,   z >= 0,   x_i = 0 or s_g = 0 for a goal g of i

Start with z large enough and x = 0. One agent then has two variables at zero; the one that did not
just become zero rises next, until z is zero (a plan) or nothing stops the rise (a ray: no plan was
found). In fractions with the lexicographic ratio test it cannot cycle.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fedaccord._checks import Vector, exact_numbers
from fedaccord.equilibria.result import Deadline
from fedaccord.games.rows import RowGame

# In doubles, needs are moved apart by this part of the largest.
APART = 1e-9


def find_by_lemke(game: RowGame, deadline: Deadline, *, exact: bool) -> Vector | None:
    """Return a stable plan of a game without regard to limits; None where the method finds none.

    exact: whether to compute in fractions; in doubles the result is near a plan, and to be checked.
    """
    rows, right = _scale(game, exact)
    count, size = rows.shape
    # Columns: x, then s, then z. Basic at first are the s: s - A x - z = -q.
    zero, one = (Fraction(0), Fraction(1)) if exact else (0.0, 1.0)
    table = np.full((count, size + count + 2), zero, dtype=object if exact else np.float64)
    table[:, :size], table[:, -2], table[:, -1] = -rows, -one, -right
    table[np.arange(count), size + np.arange(count)] = one
    basis = list(range(size, size + count))
    owner = [*range(size), *game.owners.tolist()]
    # Of ties the last: the rows above then stay positive in the order of the ratio test.
    row = count - 1 - int(np.argmin(table[::-1, -1]))
    if table[row, -1] >= 0:
        return np.array(game.minimums)
    entering = size + count
    left = _pivot(table, basis, row, entering)
    while not deadline.passed:
        entering = _next_of(owner, basis, owner[left], left, size)
        found = _choose_leaving_row(table, basis, entering, size, exact)
        if found is None:
            return None
        left = _pivot(table, basis, found, entering)
        if left == size + count:
            return _read_plan(game, table, basis, size)
    return None


def _scale(game: RowGame, exact: bool) -> tuple[Any, Any]:
    """Return A and q = m - A low, rows divided by their own benefits."""
    if not exact:
        own = game.own_rows
        needs = (game.needs - game.rows @ game.minimums) / own
        # Ties may cycle in doubles: no two rows are to be reached at once.
        apart = np.random.default_rng(0).random(len(needs)) * float(np.abs(needs).max())
        return game.rows / own[:, None], needs + APART * apart
    low = exact_numbers(game.minimums)
    rows, right = [], []
    for agent, goals in enumerate(game.exact_rows):
        for row, need in goals:
            rows.append([w / row[agent] for w in row])
            offset = sum((w * t for w, t in zip(row, low, strict=True)), Fraction(0))
            right.append((need - offset) / row[agent])
    return np.array(rows, dtype=object), np.array(right, dtype=object)


def _next_of(owner: list[int], basis: list[int], agent: int, left: int, size: int) -> int:
    """Return the other variable of an agent that is at zero."""
    taken = set(basis)
    mine = [agent, *(size + g for g, i in enumerate(owner[size:]) if i == agent)]
    return next(name for name in mine if name != left and name not in taken)


def _choose_leaving_row(
    table: Any, basis: list[int], entering: int, size: int, exact: bool
) -> int | None:
    """Return the row that first stops the rise; ties by the columns of s, in doubles z first."""
    column = table[:, entering]
    able = np.flatnonzero(column > (0 if exact else 1e-11))
    if able.size == 0:
        return None
    ratios = table[able, -1] / column[able]
    least = ratios.min()
    tied = able[ratios <= (least if exact else least + 1e-12)]
    artificial = table.shape[1] - 2
    rows: list[int] = tied.tolist()
    for row in rows:
        if basis[row] == artificial:
            return row
    if not exact:
        return max(rows, key=lambda r: float(column[r]))
    return min(rows, key=lambda r: list(table[r, size:-2] / table[r, entering]))


def _pivot(table: Any, basis: list[int], row: int, entering: int) -> int:
    """Bring a variable into the basis, and return the one that leaves it."""
    table[row] = table[row] / table[row, entering]
    for other in range(table.shape[0]):
        if other != row and table[other, entering]:
            table[other] = table[other] - table[other, entering] * table[row]
    left, basis[row] = basis[row], entering
    return left


def _read_plan(game: RowGame, table: Any, basis: list[int], size: int) -> Vector:
    plan = np.array(game.minimums, dtype=np.float64)
    for row, name in enumerate(basis):
        if name < size:
            plan[name] += float(table[row, -1])
    return plan
