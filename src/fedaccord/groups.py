"""Groups of agents that could give less together: found without any solver.

Let every utility be non-decreasing in every contribution, and let a group be *blocking* if all of
its members could give less at once and all of them would still reach their requirements.

    1. Every part of a blocking group is blocking: those who stay out give more than before.
    2. So every member of a blocking group could give less alone, and a stable allocation has no
       blocking group, whatever its size.
    3. A group is blocking if and only if all of its members can give the least amount less at once:
       any larger reduction leaves everybody with less than that one.

By 1 the search grows groups from smaller ones and misses none; by 3 each group takes one look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, check_whole, frozen
from fedaccord.allocation import Allocation
from fedaccord.check import Check, check
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.wording import format_amount_with_digits, join_with_and

Members: TypeAlias = tuple[int, ...]

# A search that looks at more groups than this is refused: nobody reads such a list.
MOST_GROUPS = 100_000
# An equal reduction is found to this part of itself over the reals.
FINE = 1e-13


@dataclass(frozen=True, eq=False)
class BlockingGroup:
    """Agents that could all give less at once, and all still reach their requirements.

    found: the check of the plan from which they would depart.
    agents: the members' numbers, in order.
    """

    found: Check
    agents: Members

    def __repr__(self) -> str:
        return f"BlockingGroup({self.sentence().rstrip('.')})"

    @property
    def names(self) -> tuple[str, ...]:
        """What the members are called."""
        return tuple(self.found.game.name(agent) for agent in self.agents)

    @cached_property
    def less(self) -> float:
        """The largest amount that every member can give less, or else give its minimum."""
        given, least = self.found.contributions[[*self.agents]], self._minimums
        low, high = _step(self.found), float((given - least).max())
        if self._holds(high):
            return high
        whole = self.found.game.is_integer
        while high - low > (1.0 if whole else FINE * high):
            middle = low + (high - low) / 2
            middle = float(np.floor(middle)) if whole else middle
            if not low < middle < high:
                break
            low, high = (middle, high) if self._holds(middle) else (low, middle)
        # Halving ends within rounding of the amount, which is often a short number.
        short = float(f"{low:.9g}")
        return short if short > low - FINE * 100 * low and self._holds(short) else low

    @property
    def contributions(self) -> Vector:
        """What all agents give after that reduction; those outside the group give as before."""
        return frozen(self._reduce(self.less))

    @property
    def saved(self) -> float:
        """How many samples the group saves in all by that reduction."""
        return float(self.found.contributions.sum() - self.contributions.sum())

    @property
    def _minimums(self) -> Vector:
        return self.found.game.minimums[[*self.agents]]

    def _reduce(self, amount: float) -> Vector:
        given = np.array(self.found.contributions)
        members = [*self.agents]
        given[members] = np.maximum(given[members] - amount, self._minimums)
        return given

    def _holds(self, amount: float) -> bool:
        return _all_satisfied(self.found.game, self._reduce(amount), self.agents)

    def sentence(self) -> str:
        """Return what the group could do, in one sentence."""
        amount = format_amount_with_digits(self.less)
        samples = f"{amount} sample{'s' * (amount != '1')}"
        if len(self.agents) == 1:
            return f"{self.names[0]} could give {samples} less and still reach its requirement."
        return (
            f"{join_with_and(self.names)} could each give {samples} less at once, and all of them "
            "would still reach their requirements."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the group for machines."""
        return {
            "agents": list(self.names if self.found.game.agents is not None else self.agents),
            "less": self.less,
            "saved": self.saved,
        }


def find_blocking_group(
    game: Game,
    allocation: Allocation | ArrayLike,
    *,
    size: int = 1,
    tolerance: float = 1e-6,
) -> BlockingGroup | None:
    """Find a group of one size whose members could all give less at once; None if there is none.

    game: what the agents want; no utility may fall when anybody gives more.
    allocation: who gives how much; an Allocation with names is matched by name.
    size: how many members the group has.
    tolerance: the least reduction that counts, relative to the largest contribution; in integer
        games it is one sample.
    """
    found = check(game, allocation, tolerance=tolerance)
    groups = _search(found, check_whole("size", size))
    return next((group for group in groups if len(group.agents) == size), None)


def find_blocking_groups(
    game: Game,
    allocation: Allocation | ArrayLike,
    *,
    size: int = 2,
    tolerance: float = 1e-6,
) -> tuple[BlockingGroup, ...]:
    """Find every group of up to `size` agents whose members could all give less at once.

    The smallest groups come first. In a stable allocation there are none.

    game, allocation, tolerance: as in `find_blocking_group`.
    size: the most members of a group.
    """
    return list_blocking_groups(check(game, allocation, tolerance=tolerance), size=size)


def list_blocking_groups(found: Check, *, size: int = 2) -> tuple[BlockingGroup, ...]:
    """List every group of up to `size` agents that could give less together than a checked plan.

    found: what `check` found about the plan.
    size: the most members of a group.
    """
    return tuple(_search(found, check_whole("size", size)))


def _search(found: Check, size: int) -> Iterator[BlockingGroup]:
    """Return blocking groups, smallest first, each put together from smaller ones."""
    game, given, step = found.game, found.contributions, _step(found)
    if game.utility_doubt:
        raise InputError(
            "the utilities of this game are estimates, and groups need exact ones: leave out "
            '"draws" to make the game exact'
        )
    if not game.is_monotone:
        raise InputError(
            "samples of this game harm some agents, but --groups needs a game without harm: "
            "leave out --groups"
        )
    # An agent that is short has nothing to spare, and stays short in any group.
    could = np.flatnonzero(found.spare > found.tolerance * found.scale)
    level: list[Members] = [(agent,) for agent in could.tolist()]
    looked = 0
    for members in range(1, size + 1):
        for group in level:
            yield BlockingGroup(found, group)
        if members == size:
            return
        larger: list[Members] = []
        for group in _candidates(level):
            looked += 1
            if looked > MOST_GROUPS:
                raise InputError(
                    f"there are more than {MOST_GROUPS:,} groups of up to {size} agents to look "
                    f"at: ask for groups of up to {members}"
                )
            trial = np.array(given)
            trial[[*group]] -= step
            if _all_satisfied(game, trial, group):
                larger.append(group)
        level = larger


def _candidates(level: list[Members]) -> Iterator[Members]:
    """Return the groups with one more member all of whose parts are in a sorted list."""
    known = set(level)
    for first, second in _siblings(level):
        group = (*first, second[-1])
        if all(part in known for part in combinations(group, len(first))):
            yield group


def _siblings(level: list[Members]) -> Iterator[tuple[Members, Members]]:
    """Return pairs of groups that differ in their last member alone."""
    for place, first in enumerate(level):
        for second in level[place + 1 :]:
            if second[:-1] != first[:-1]:
                break
            yield first, second


def _all_satisfied(game: Game, contributions: Vector, group: Members) -> bool:
    return bool(game.satisfied(contributions)[[*group]].all())


def _step(found: Check) -> float:
    """Return the least reduction that counts."""
    if found.game.is_integer:
        return 1.0
    if found.tolerance == 0:
        raise InputError("groups over the reals need a tolerance above 0; use 1e-9, for example")
    return found.tolerance * found.scale
