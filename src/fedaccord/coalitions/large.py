"""Coalitions of many agents: merge and split until no small group would rather leave.

Two coalitions merge if nobody is worse off and somebody is better off. A group of up to three
agents splits off, or comes together from several coalitions, if all of its members are better off.
When neither is possible, no group of up to three agents blocks the grouping.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Protocol

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.coalitions.linear import find_stable_costs
from fedaccord.coalitions.result import Grouping
from fedaccord.coalitions.table import SAME, Members
from fedaccord.equilibria.result import Deadline
from fedaccord.equilibria.solve import solve_stable
from fedaccord.games.linear import LinearGame

# The largest group that is looked at.
SMALL = 3
# Coalitions up to this size list all of their stable plans.
LISTED = 6


class Costs(Protocol):
    """What members of a coalition bear: `game` has the agents, `find` the costs of members."""

    @property
    def game(self) -> Any: ...

    def find(self, members: Members, /) -> Vector: ...


class StableCosts:
    """What members of a coalition give in its cheapest stable plan; each plan is solved once.

    game: linear, over the reals.
    seconds: for one coalition.
    """

    def __init__(self, game: LinearGame, seconds: float = 10.0) -> None:
        self.game, self.seconds = game, seconds
        self.known: dict[Members, Vector] = {}

    def find(self, members: Members) -> Vector:
        """Return the cost of each member; infinite where no plan is stable."""
        if members not in self.known:
            self.known[members] = self._solve(members)
        return self.known[members]

    def _solve(self, members: Members) -> Vector:
        game = self.game.restrict(members)
        if game.size <= LISTED:
            return np.array(find_stable_costs(game)[-1])
        given = solve_stable(game, time_limit=self.seconds).contributions
        return np.full(game.size, np.inf) if given is None else np.asarray(game.costs * given)


class MergeAndSplit:
    """A grouping that changes until no small group would rather leave.

    costs: of coalitions.
    together: whether to start with all agents in one coalition, and not with each alone.
    """

    def __init__(self, costs: Costs, *, together: bool = False) -> None:
        self.costs, self.size = costs, costs.game.size
        alone: list[Members] = [(agent,) for agent in range(self.size)]
        self.parts = [tuple(range(self.size))] if together else alone
        self.current = np.concatenate([costs.find(part) for part in self.parts])
        self.seen: set[tuple[Members, ...]] = set()

    def run(self, deadline: Deadline) -> bool:
        """Merge and split until no step is left; False if the groupings repeat or time runs out."""
        while not deadline.passed:
            if self._merge():
                continue
            group = self.find_blocking()
            if group is None:
                return True
            state = tuple(sorted(self.parts))
            if state in self.seen:
                return False
            self.seen.add(state)
            self._form(group)
        return False

    def _merge(self) -> bool:
        """Merge the two coalitions that save most by it; False where no two can."""
        best: tuple[float, Members] | None = None
        for first, second in combinations(self.parts, 2):
            both = tuple(sorted(first + second))
            after, before = self.costs.find(both), self.current[[*both]]
            if (after > before * (1 + SAME)).any() or not (after < before * (1 - SAME)).any():
                continue
            saved = float((np.minimum(before, 1e100) - np.minimum(after, 1e100)).sum())
            if best is None or saved > best[0]:
                best = saved, both
        if best is not None:
            self._form(best[1])
        return best is not None

    def find_blocking(self) -> Members | None:
        """Return a group of up to three agents that would all be better off; None if there is none.

        An agent that gives nothing cannot be better off.
        """
        could = np.flatnonzero(self.current > 0).tolist()
        for size in range(1, SMALL + 1):
            for group in combinations(could, size):
                if (self.costs.find(group) < self.current[[*group]] * (1 - SAME)).all():
                    return group
        return None

    def _form(self, group: Members) -> None:
        """Form a coalition; the rest of each other coalition stays together if it can."""
        parts = [group]
        for part in self.parts:
            left = tuple(agent for agent in part if agent not in group)
            if left and np.isfinite(self.costs.find(left)).all():
                parts.append(left)
            else:
                parts += [(agent,) for agent in left]
        self.parts = sorted(parts)
        for part in self.parts:
            self.current[[*part]] = self.costs.find(part)

    def make_grouping(self, checked: int) -> Grouping:
        """Return the current grouping, with the size of the groups that it holds against."""
        costs = frozen(np.array(self.current))
        return Grouping(tuple(self.parts), costs, float(costs.sum()), checked)
