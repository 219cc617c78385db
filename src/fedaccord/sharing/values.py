"""Shares of the worth of a whole: the Shapley value, the least core and the nucleolus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Matrix, Vector, frozen
from fedaccord.equilibria.programs import linear_program
from fedaccord.equilibria.result import Deadline
from fedaccord.errors import InputError
from fedaccord.games.chances import Estimates
from fedaccord.sharing.costs import Members, list_groups

# Up to this many agents the nucleolus is found.
NUCLEOLUS_AGENTS = 12
# Orders of joining that are drawn at a time.
BLOCK = 10
# Half the width of a 95 % interval, in standard errors.
WIDE = 1.959964
# Ties between groups are decided to this part of the cost of all.
TIED = 1e-7

# What groups are worth: one row of members a group.
Worth = Callable[[Members], Vector]


def shapley_value(values: Vector) -> Vector:
    """Return the Shapley value: what each agent adds, on average over all orders of joining.

    values: the worth of every group; agent i is in group n if bit i of n is one.
    """
    size = len(values).bit_length() - 1
    if len(values) != 1 << size or size < 1:
        raise InputError(f"the worth of every group is 2, 4, 8, ... numbers; got {len(values)}")
    groups = np.arange(len(values))
    sizes = list_groups(size).sum(axis=1)
    weights = np.array([1 / (size * comb(size - 1, n)) for n in range(size)])
    shares = np.empty(size)
    for agent in range(size):
        without = groups[(groups >> agent & 1) == 0]
        added = values[without | 1 << agent] - values[without]
        shares[agent] = weights[sizes[without]] @ added
    return shares


def sample_shapley_value(
    worth: Worth, size: int, *, orders: int, seed: int = 0, deadline: Deadline | None = None
) -> Estimates:
    """Return the Shapley value as the mean over random orders of joining, with 95 % intervals.

    worth: what groups are worth.
    size: how many agents there are.
    orders: how many orders are drawn; each is used forwards and backwards.
    seed: of the orders.
    deadline: when to stop drawing; at least two blocks of orders are drawn.
    """
    rng = np.random.default_rng(seed)
    blocks: list[Matrix] = []
    while (left := orders - BLOCK * len(blocks)) > 0:
        if len(blocks) > 1 and deadline is not None and deadline.passed:
            break
        drawn = np.array([rng.permutation(size) for _ in range(min(BLOCK, left))])
        both = _add_in_order(worth, np.vstack([drawn, drawn[:, ::-1]]))
        blocks.append((both[: len(drawn)] + both[len(drawn) :]) / 2)
    added = np.vstack(blocks)
    values = added.mean(axis=0)
    half = WIDE * added.std(axis=0, ddof=1) / np.sqrt(len(added))
    return Estimates(frozen(values), frozen(values - half), frozen(values + half))


def _add_in_order(worth: Worth, orders: NDArray[np.intp]) -> Matrix:
    """Return what each agent adds in each order."""
    size = orders.shape[1]
    # Agents join one after the other; nobody is in the first group.
    place = orders.argsort(axis=1)
    members = place[:, None, :] < np.arange(size + 1)[None, :, None]
    values = worth(members.reshape(-1, size)).reshape(len(orders), size + 1)
    return np.take_along_axis(np.diff(values, axis=1), place, axis=1)


@dataclass(frozen=True, eq=False)
class Nucleolus:
    """The shares that leave the least satisfied groups as satisfied as can be.

    shares: what each agent bears.
    least: what every group saves at least, compared with its cost alone; below zero where the core
        is empty. All shares with this least saving are the least core.
    rounds: how many linear programs it took.
    """

    shares: Vector
    least: float
    rounds: int


def find_nucleolus(values: Vector) -> Nucleolus:
    """Return the nucleolus of the cost of every group, by one linear program after another.

    Each program maximises the least saving e over groups that are not settled:

        x(S) + e <= c(S),   x(S) = what it was settled at,   x(N) = c(N)

    Groups with a price above zero are tight in every solution, and are settled there. Groups whose
    members' shares follow from settled ones are left out. Each round settles at least one share
    more, so that k rounds are enough.

    values: the cost of every group.
    """
    size = len(values).bit_length() - 1
    if size > NUCLEOLUS_AGENTS:
        raise InputError(
            f"the nucleolus is found for up to {NUCLEOLUS_AGENTS} agents; got {size}: leave it out"
        )
    if not np.isfinite(values).all():
        raise InputError("the nucleolus needs the cost of every group, and some are infinite")
    unit = float(values[-1]) or 1.0
    groups = list_groups(size)[1:-1].astype(float)
    costs = values[1:-1] / unit
    settled, amounts = np.ones((1, size)), np.array([values[-1] / unit])
    least, rounds = np.inf, 0
    shares = np.full(size, amounts[0] / size)
    while np.linalg.matrix_rank(settled) < size:
        follows = _follows(groups, settled)
        groups, costs = groups[~follows], costs[~follows]
        if not len(groups):
            break
        shares, saving, tight = _raise_saving(groups, costs, settled, amounts)
        least = min(least, saving) if rounds == 0 else least
        settled = np.vstack([settled, groups[tight]])
        amounts = np.concatenate([amounts, costs[tight] - saving])
        rounds += 1
    if np.linalg.matrix_rank(settled) == size:
        shares = np.linalg.lstsq(settled, amounts, rcond=None)[0]
    return Nucleolus(frozen(shares * unit), least * unit if rounds else 0.0, rounds)


def _follows(groups: Matrix, settled: Matrix) -> NDArray[np.bool_]:
    """Return which groups are combinations of settled ones."""
    basis = np.linalg.svd(settled, full_matrices=False)
    rows = basis.Vh[1e-9 * basis.S[0] < basis.S]
    rest = groups - groups @ rows.T @ rows
    return np.asarray(np.abs(rest).max(axis=1, initial=0.0) < 1e-9)


def _raise_saving(
    groups: Matrix, costs: Vector, settled: Matrix, amounts: Vector
) -> tuple[Vector, float, NDArray[np.bool_]]:
    """Return shares with the largest least saving, that saving, and the groups that are tight."""
    size = groups.shape[1]
    rows = np.hstack([groups, np.ones((len(groups), 1))])
    found = linear_program(
        np.append(np.zeros(size), -1.0),
        np.full(size + 1, -np.inf),
        np.full(size + 1, np.inf),
        rows=rows,
        most=costs,
        equal_rows=np.hstack([settled, np.zeros((len(settled), 1))]),
        equals=amounts,
        tolerance=1e-10,
    )
    if found.x is None:
        raise InputError(f"the nucleolus was not found: {found.message}")
    tight = -found.duals > TIED
    return found.x[:size], float(found.x[size]), tight
