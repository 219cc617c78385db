"""What a group of agents costs alone: the cheapest plan of the game among its members.

c(S) = min  c_S' theta   subject to  W_SS theta >= mu_S,  low_S <= theta <= high_S
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector, frozen
from fedaccord.games.linear import LinearGame
from fedaccord.sharing.many import solve_many

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
class GroupCosts:
    """What each group of agents costs alone.

    game: linear, over the reals.
    """

    game: LinearGame

    def measure(self, members: Members) -> Vector:
        """Return c(S) of some groups; infinite where limits leave a member short.

        members: one row a group.
        """
        game = self.game
        totals = [np.zeros(0)]
        for at in range(0, len(members), STEP):
            inside = members[at : at + STEP]
            found = solve_many(
                game.dense_benefits * inside[:, None, :],
                game.requirements * inside,
                game.minimums * inside,
                game.limits,
                game.costs,
            )
            totals.append(found.totals)
        return np.concatenate(totals)

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
