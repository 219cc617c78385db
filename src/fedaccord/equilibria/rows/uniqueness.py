"""When a game of rows has one stable plan: by a contraction, a definite matrix, or all minors.

A stable plan solves the vertical complementarity problem

    theta >= low,   A_g theta >= m_g,   theta_i = low_i  or  A_g theta = m_g for a goal g of i.

A representative of A takes one row of each agent. With R the set of representatives:

1. If some weights d > 0 have sum over j != i of |A_gj| d_j <= rate * A_gi d_i with rate < 1 for
   every goal g, best responses are a contraction: |f(x) - f(y)| <= rate * |x - y| in the norm
   max_i |x_i| / d_i, since each f_i is a maximum of functions with that constant. One plan, and
   |theta - theta*| <= |f(theta) - theta| / (1 - rate).
2. If each agent has one goal and the symmetric part of A is positive definite, one plan.
3. If every principal minor of every representative is above zero, one plan. Of two plans, let x be
   the difference: if x_i > 0, agent i has a goal that is tight at the first plan, so A_g x <= 0 for
   it; likewise for x_i < 0. The representative of these goals reverses the sign of x, which a
   matrix with positive principal minors does to no vector but zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fedaccord._checks import Vector
from fedaccord.games.base import ROUNDING
from fedaccord.games.linear import EPSILON
from fedaccord.games.rows import RowGame

# All minors are looked at where there are no more of them than this.
MOST_MINORS = 4_096
# Weights are improved this often.
ROUNDS = 200
# What doubles may be off by.
ROUNDED = 1e-9
# Above this size eigenvalues take too long.
MOST_EIGENVALUES = 1_500


@dataclass(frozen=True, eq=False)
class Uniqueness:
    """Why there is at most one stable plan, and how near to it an allocation is.

    reason: in words.
    radius: how far the plan's contributions may be from those at hand, agent by agent; None where
        only uniqueness is proved.
    """

    reason: str
    radius: Vector | None = None


def prove_unique(game: RowGame, near: Vector | None = None) -> Uniqueness | None:
    """Return why a game over the reals has at most one stable plan; None where that is not proved.

    near: contributions whose distance from the plan is wanted.
    """
    if game.is_integer:
        return None
    return (
        _prove_by_contraction(game, near) or _prove_by_definiteness(game, near) or _by_minors(game)
    )


def _residual(game: RowGame, near: Vector) -> Vector:
    """Return how far agents are from rest at most, in own samples.

    It is |min(theta - low, slack)|, and what slacks may be off by: games take that for zero, but
    divided by what is left of a contraction it is not.
    """
    slack = np.minimum.reduceat(game.slacks(near), game.starts)
    sizes = (game.sizes @ near + game.needs) / game.own_rows
    off = 2 * max(ROUNDING, EPSILON * (game.size + 4))
    return np.asarray(
        np.abs(np.minimum(near - game.minimums, slack))
        + off * np.maximum.reduceat(sizes, game.starts)
    )


def _prove_by_contraction(game: RowGame, near: Vector | None) -> Uniqueness | None:
    cross = np.abs(game.rows) / game.own_rows[:, None]
    cross[np.arange(len(game.owners)), game.owners] = 0.0
    weights = np.ones(game.size)
    for _ in range(ROUNDS):
        pull = np.maximum.reduceat(cross @ weights, game.starts)
        rate = float((pull / weights).max()) + ROUNDED
        if rate < 1:
            radius = None
            if near is not None:
                off = float((_residual(game, near) / weights).max()) / (1 - rate)
                radius = off * weights
            return Uniqueness("each agent's own samples outweigh those of the others", radius)
        weights = pull + weights.mean()
        weights /= weights.max()
    return None


def _prove_by_definiteness(game: RowGame, near: Vector | None) -> Uniqueness | None:
    """Prove it by |theta - theta*| <= (1 + |A|) |min(theta - low, A theta - m)| / least eigenvalue.

    With r that residual, z = theta - low - r and w = A theta - m - r are complementary, as are
    those of theta*, so (z - z*)'(w - w*) <= 0, and expanding it gives the bound.
    """
    if game.has_several_goals or game.size > MOST_EIGENVALUES:
        return None
    scale = 1 / np.sqrt(game.own_rows)
    for matrix, spread in (
        (game.rows / game.own_rows[:, None], np.ones(game.size)),
        (scale[:, None] * game.rows * scale, scale),
    ):
        least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
        least -= ROUNDED * game.size * float(np.abs(matrix).max())
        if least <= 0:
            continue
        radius = None
        if near is not None:
            rest = float(np.linalg.norm(_residual(game, near) / spread))
            size = float(np.linalg.norm(matrix, "fro"))
            radius = spread * (1 + size) * rest / least
        return Uniqueness(
            "the benefits are positive definite, which rules out a second one", radius
        )
    return None


def _by_minors(game: RowGame) -> Uniqueness | None:
    count = 1
    for agent in range(game.size):
        count *= 1 + len(game.goals_of(agent))
        if count > MOST_MINORS:
            return None
    blocks = [[row for row, _ in goals] for goals in game.exact_rows]
    if _has_positive_minors(blocks, 0):
        every = "every representative of the benefits is"
        every = every if game.has_several_goals else "the benefits are"
        return Uniqueness(f"{every} a P-matrix, so no requirements allow a second one")
    return None


def _has_positive_minors(blocks: Sequence[Sequence[Sequence[Fraction]]], agent: int) -> bool:
    """Return whether all principal minors of all representatives are above zero, from an agent on.

    Each agent is left out, or one of its rows is the next pivot; a minor is the product of its
    pivots.

    blocks: the rows of each agent, those before `agent` done with.
    """
    if agent == len(blocks):
        return True
    if not _has_positive_minors(blocks, agent + 1):
        return False
    for pivot in blocks[agent]:
        if pivot[agent] <= 0:
            return False
        reduced = [*blocks[: agent + 1]]
        for block in blocks[agent + 1 :]:
            reduced.append([_eliminate(row, pivot, agent) for row in block])
        if not _has_positive_minors(reduced, agent + 1):
            return False
    return True


def _eliminate(
    row: Sequence[Fraction], pivot: Sequence[Fraction], column: int
) -> Sequence[Fraction]:
    if not row[column]:
        return row
    factor = row[column] / pivot[column]
    return [a - factor * b for a, b in zip(row, pivot, strict=True)]
