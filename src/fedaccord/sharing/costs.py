"""What a group of agents costs alone: the cheapest plan of the game among its members.

c(S) = min  c_S' theta   subject to  W_SS theta >= mu_S,  low_S <= theta <= high_S

where W has a row for each agent, or for each goal of agents with several.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Matrix, Vector, frozen
from fedaccord.games.linear import LinearGame
from fedaccord.games.rows import RowGame
from fedaccord.sharing.many import Optima, solve_many

# Up to this many agents every group is solved.
MOST_AGENTS = 16
# Groups that are solved at a time.
STEP = 8_192

# Which agents are members, one row a group.
Members: TypeAlias = NDArray[np.bool_]


def list_groups(size: int) -> Members:
    """Return every group of some agents: agent i is in group n if bit i of n is one."""
    return (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(bool)


def number_group(members: Iterable[int]) -> int:
    """Return the number of a group in that list."""
    return sum(1 << agent for agent in members)


@dataclass(frozen=True, eq=False)
class Rows:
    """The requirements of a game: benefits @ contributions >= needs.

    benefits: one row per requirement.
    needs: what each row must add up to.
    owners: whose requirement each row is.
    """

    benefits: Matrix
    needs: Vector
    owners: Indices

    @classmethod
    def of(cls, game: LinearGame | RowGame) -> Rows:
        """Return the requirements of a game."""
        if isinstance(game, RowGame):
            return cls(game.rows, game.needs, game.owners)
        return cls(game.dense_benefits, game.requirements, np.arange(game.size))


@dataclass(frozen=True, eq=False)
class GroupCosts:
    """What each group of agents costs alone.

    game: linear, or of several goals, over the reals.
    """

    game: LinearGame | RowGame

    def measure(self, members: Members) -> Vector:
        """Return c(S) of some groups; infinite where limits leave a member short.

        members: one row a group.
        """
        return self.solve(members).totals

    def solve(self, members: Members) -> Optima:
        """Return the cheapest plans of some groups.

        members: one row a group.
        """
        game, rows = self.game, Rows.of(self.game)
        parts = []
        for at in range(0, max(len(members), 1), STEP):
            inside = members[at : at + STEP]
            wanted = inside[:, rows.owners]
            parts.append(
                solve_many(
                    rows.benefits * inside[:, None, :] * wanted[:, :, None],
                    rows.needs * wanted,
                    game.minimums * inside,
                    game.limits,
                    game.costs,
                )
            )
        names = ("totals", "contributions", "prices")
        return Optima(*(np.concatenate([getattr(part, n) for part in parts]) for n in names))

    @cached_property
    def values(self) -> Vector:
        """The cost of every group, by its number; for few agents only."""
        return frozen(self.measure(list_groups(self.game.size)))

    def cost(self, members: Iterable[int]) -> float:
        """Return what one group costs alone."""
        return float(self.values[number_group(members)])

    @cached_property
    def alone(self) -> Vector:
        """What each agent costs alone; infinite where its limit is too low."""
        return frozen(self.measure(np.eye(self.game.size, dtype=bool)))

    @cached_property
    def without_one(self) -> Vector:
        """What all agents but one cost, for each of them."""
        return frozen(self.measure(~np.eye(self.game.size, dtype=bool)))
