"""Every grouping that no group would leave, or the proof that there is none.

A coalition C *blocks* a grouping if all of its members are better off in C. A grouping is *core-
stable* if nothing blocks it. It is *individually stable* if no agent is better off in another
coalition of the grouping whose members would not be worse off with it, or alone.

Sets of coalitions are whole numbers of 2^k bits. For each coalition S, `spoiled[S]` has the
coalitions in which some member of S that they share is not better off than in S. A grouping of
the agents in U is blocked by a coalition inside U unless the spoiled sets of its parts cover all of
these, which takes two operations on such numbers. So a grouping is given up as soon as a part of
it is blocked. For individual stability, each pair of parts is compatible or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedaccord.coalitions.table import CoalitionTable
from fedaccord.equilibria.result import Deadline

# At most this many groupings are kept; all are counted.
KEPT = 1_000
# Steps of a search between two looks at the clock.
STEPS = 20_000

# The coalitions of a grouping, by number, in the order of their first agents.
Parts = tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """What a search found.

    groupings: the first ones.
    count: how many there are.
    complete: whether all were looked at, so that the count is proved.
    """

    groupings: tuple[Parts, ...]
    count: int
    complete: bool


class Preferences:
    """What agents prefer, as sets of coalitions.

    table: what each bears in each coalition.
    """

    def __init__(self, table: CoalitionTable) -> None:
        self.table = table
        self.size, self.everyone = table.size, (1 << table.size) - 1
        self.numbers = np.arange(1 << table.size)
        self.holds = self.numbers[:, None] >> np.arange(table.size) & 1 == 1
        self.all = _as_number(table.forms)

    @cached_property
    def spoiled(self) -> list[int]:
        """For each S, the coalitions in which a member that they share is not better off."""
        ranks, found = self.table.ranks, np.zeros((len(self.numbers),) * 2, dtype=bool)
        for agent in range(self.size):
            mine = np.flatnonzero(self.holds[:, agent])
            rank = ranks[mine, agent]
            found[np.ix_(mine, mine)] |= rank[None, :] >= rank[:, None]
        return _as_numbers(found & self.table.forms)

    @cached_property
    def outside(self) -> list[int]:
        """For each U, the coalitions that are not inside U."""
        inside = self.numbers[:, None] & self.numbers[None, :] == self.numbers[None, :]
        return _as_numbers(~inside & self.table.forms)

    @cached_property
    def compatible(self) -> list[int]:
        """For each coalition, those that can stand next to it without anybody moving over."""
        leaks = np.zeros((len(self.numbers),) * 2, dtype=bool)
        ranks = self.table.ranks
        for agent in range(self.size):
            without = np.flatnonzero(~self.holds[:, agent])[1:]
            joined = without | 1 << agent
            worse = (ranks[joined] > ranks[without]) & self.holds[without]
            opens = ~worse.any(axis=1) & self.table.forms[joined] & self.table.forms[without]
            mine = np.flatnonzero(self.holds[:, agent])
            wants = ranks[joined, agent][None, :] < ranks[mine, agent][:, None]
            leaks[np.ix_(mine, without)] |= wants & opens
        apart = self.numbers[:, None] & self.numbers[None, :] == 0
        return _as_numbers(~leaks & ~leaks.T & apart & self.table.forms)

    @cached_property
    def rational(self) -> NDArray[np.bool_]:
        """Coalitions that can form and in which nobody would rather be alone."""
        alone = self.table.ranks[1 << np.arange(self.size), np.arange(self.size)]
        fine = (self.table.ranks <= alone) | ~self.holds
        return np.asarray(fine.all(axis=1) & self.table.forms)

    def list_blocking(self, parts: Parts) -> list[int]:
        """Return the coalitions that block a grouping, in the order of their numbers."""
        current = np.empty(self.size, dtype=np.int64)
        for part in parts:
            current[self.holds[part]] = self.table.ranks[part, self.holds[part]]
        better = (self.table.ranks < current) | ~self.holds
        return np.flatnonzero(better.all(axis=1) & self.table.forms).tolist()


def find_core(preferences: Preferences, deadline: Deadline) -> Found:
    """Find every core-stable grouping.

    preferences: of the agents.
    deadline: when to give up.
    """
    spoiled, outside, every = preferences.spoiled, preferences.outside, preferences.all

    def add(state: int, part: int, covered: int) -> int | None:
        state |= spoiled[part]
        return state if state | outside[covered] == every else None

    whole = [add(0, part, part) is not None for part in range(1, len(spoiled))]
    usable = preferences.rational & np.array([False, *whole])
    return _search(preferences.size, usable, 0, add, deadline)


def find_individually_stable(preferences: Preferences, deadline: Deadline) -> Found:
    """Find every individually stable grouping.

    preferences: of the agents.
    deadline: when to give up.
    """
    compatible = preferences.compatible

    def add(state: int, part: int, covered: int) -> int | None:
        return state & compatible[part] if state >> part & 1 else None

    return _search(preferences.size, preferences.rational, preferences.all, add, deadline)


def _search(
    size: int,
    usable: NDArray[np.bool_],
    start: int,
    add: Callable[[int, int, int], int | None],
    deadline: Deadline,
) -> Found:
    """Put groupings together part by part, as long as `add` does not object."""
    everyone = (1 << size) - 1
    options: dict[int, list[int]] = {}
    kept: list[Parts] = []
    count = steps = 0
    # What is covered, the state, the parts, and the parts that are still to be tried.
    stack: list[tuple[int, int, Parts, Iterator[int]]] = []

    def push(covered: int, state: int, parts: Parts) -> None:
        left = everyone & ~covered
        if left not in options:
            options[left] = [part for part in _list_first_parts(left) if usable[part]]
        stack.append((covered, state, parts, iter(options[left])))

    push(0, start, ())
    while stack:
        covered, state, parts, untried = stack[-1]
        part = next(untried, None)
        if part is None:
            stack.pop()
            continue
        steps += 1
        if steps % STEPS == 0 and deadline.passed:
            return Found(tuple(kept), count, False)
        after = add(state, part, covered | part)
        if after is None:
            continue
        if covered | part == everyone:
            count += 1
            if len(kept) < KEPT:
                kept.append((*parts, part))
        else:
            push(covered | part, after, (*parts, part))
    return Found(tuple(kept), count, True)


def _list_first_parts(left: int) -> Iterator[int]:
    """Yield the coalitions inside a set of agents that hold its first agent, the largest first."""
    first = left & -left
    rest = left & ~first
    part = rest
    while True:
        yield part | first
        if part == 0:
            return
        part = (part - 1) & rest


def find_cheapest(table: CoalitionTable) -> Parts:
    """Return the grouping with the least total; agents that cannot be served stay alone."""
    totals = [table.total(s) if table.forms[s] else np.inf for s in range(1 << table.size)]
    # The total of any grouping is finite where every agent can be served at all.
    totals = [t if np.isfinite(t) else 1e100 * s.bit_count() for s, t in enumerate(totals)]
    forms = table.forms.tolist()
    best: list[tuple[float, int]] = [(0.0, 0)]
    for left in range(1, 1 << table.size):
        best.append(
            min((totals[part] + best[left & ~part][0], part)
                for part in _list_first_parts(left) if forms[part])
        )  # fmt: skip
    parts, left = [], (1 << table.size) - 1
    while left:
        parts.append(best[left][1])
        left &= ~parts[-1]
    return tuple(parts)


def _as_number(row: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little")


def _as_numbers(rows: NDArray[np.bool_]) -> list[int]:
    return [_as_number(row) for row in rows]
