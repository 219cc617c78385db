"""Find who should federate with whom."""

from __future__ import annotations

import numpy as np

from fedaccord._checks import frozen
from fedaccord.coalitions.large import SMALL, MergeAndSplit, StableCosts
from fedaccord.coalitions.linear import check_linear, tabulate_stable_plans
from fedaccord.coalitions.result import Coalitions, Move, Partition
from fedaccord.coalitions.search import (
    Found,
    Parts,
    Preferences,
    find_cheapest,
    find_core,
    find_individually_stable,
)
from fedaccord.coalitions.table import MOST_AGENTS, CoalitionTable, Members, list_members
from fedaccord.equilibria.result import Deadline
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame

# Up to this many agents coalitions are merged and split.
MERGED_AGENTS = 40
# Moves that are followed in search of a cycle.
MOVES = 100_000
WHOLE = "Agents give whole samples; coalitions were compared over the reals."
EQUILIBRIUM = (
    "Each coalition plays its cheapest stable plan; of several that cost the same, the most even."
)


def find_coalitions(subject: Game | CoalitionTable, *, time_limit: float = 60.0) -> Coalitions:
    """Find partitions of the agents that no group would leave, or prove that there is none.

    Of up to 12 agents all partitions are searched. Of more, coalitions merge and split until no
    group of up to three agents would rather leave.

    subject: a linear or measured game, each of whose coalitions plays its cheapest stable plan; or
        a table of what agents bear in each coalition, for any other model.
    time_limit: seconds for each search.
    """
    if not (np.isfinite(time_limit) and time_limit > 0):
        raise InputError(f"time_limit must be a number of seconds above 0; got {time_limit!r}")
    if isinstance(subject, CoalitionTable):
        return _search_table(subject, time_limit, ())
    game = check_linear(subject)
    notes = (EQUILIBRIUM, *((WHOLE,) if subject.is_integer else ()))
    if game.size <= MOST_AGENTS:
        return _search_table(tabulate_stable_plans(game), time_limit, notes)
    if game.size > MERGED_AGENTS:
        raise InputError(
            f"coalitions are found for up to {MERGED_AGENTS} agents, and there are {game.size}: "
            "join agents that are alike"
        )
    return _merge_and_split(game, time_limit, notes)


# Few agents.


def _search_table(table: CoalitionTable, time_limit: float, notes: tuple[str, ...]) -> Coalitions:
    preferences = Preferences(table)
    core = find_core(preferences, Deadline(time_limit))
    individual = find_individually_stable(preferences, Deadline(time_limit))
    everyone = (1 << table.size) - 1
    none = core.complete and not core.count
    return Coalitions(
        agents=tuple(table.name(agent) for agent in range(table.size)),
        core=_list_partitions(table, core, table.size),
        core_count=core.count,
        individual=_list_partitions(table, individual),
        individual_count=individual.count,
        cheapest=_make_partition(table, find_cheapest(table)),
        alone=_make_partition(table, tuple(1 << agent for agent in range(table.size))),
        together=_make_partition(table, (everyone,)) if table.forms[everyone] else None,
        cycle=find_cycle(preferences) if none else (),
        complete=core.complete and individual.complete,
        what=table.what,
        notes=notes,
    )


def _make_partition(table: CoalitionTable, parts: Parts, checked: int = 0) -> Partition:
    costs = np.empty(table.size)
    for part in parts:
        members = [*list_members(part)]
        costs[members] = table.costs[part, members]
    total = float(sum(table.total(part) for part in parts))
    return Partition(tuple(map(list_members, parts)), frozen(costs), total, checked)


def _list_partitions(
    table: CoalitionTable, found: Found, checked: int = 0
) -> tuple[Partition, ...]:
    made = [_make_partition(table, parts, checked) for parts in found.partitions]
    # Of partitions that cost the same, the one with the fewest coalitions comes first.
    return tuple(sorted(made, key=_order))


def _order(partition: Partition) -> tuple[float, int, tuple[Members, ...]]:
    return float(f"{partition.total:.9g}"), len(partition.parts), partition.parts


def find_cycle(preferences: Preferences) -> tuple[Move, ...]:
    """Return groups that leave one partition after another until the first comes back.

    The largest group leaves; what is left of coalitions stays together if it can. There are
    finitely many partitions, so that this comes back to one of them unless one is core-stable.

    preferences: of agents without a core-stable partition.
    """
    table = preferences.table
    parts: Parts = ((1 << table.size) - 1,)
    parts = parts if table.forms[parts[0]] else tuple(1 << i for i in range(table.size))
    seen: dict[Parts, int] = {}
    moves: list[Move] = []
    for _ in range(MOVES):
        if parts in seen:
            return tuple(moves[seen[parts] :])
        seen[parts] = len(moves)
        blocking = preferences.list_blocking(parts)
        if not blocking:
            return ()
        group = max(blocking, key=lambda c: (c.bit_count(), -c))
        moves.append(Move(tuple(map(list_members, parts)), list_members(group)))
        parts = _leave(table, parts, group)
    return ()


def _leave(table: CoalitionTable, parts: Parts, group: int) -> Parts:
    after = [group]
    for part in parts:
        left = part & ~group
        whole = bool(left) and bool(table.forms[left])
        after += [left] if whole else [1 << agent for agent in list_members(left)]
    return tuple(sorted(after, key=lambda part: part & -part))


# Many agents.


def _merge_and_split(game: LinearGame, time_limit: float, notes: tuple[str, ...]) -> Coalitions:
    """Return what merging and splitting comes to, and all agents together.

    More data never hurts in a linear game, so that no group of any size would leave the stable plan
    of all agents: every member would have to give less, and then one of them could alone.
    """
    costs = StableCosts(game)
    merging = MergeAndSplit(costs)
    alone = merging.make_partition(0)
    settled = merging.run(Deadline(time_limit))
    found = [merging.make_partition(SMALL)] if settled else []
    everyone = tuple(range(game.size))
    given = costs.find(everyone)
    together = None
    if np.isfinite(given).all():
        together = Partition((everyone,), frozen(given), float(given.sum()), game.size)
        found = [p for p in found if not p.everyone_together] + [together]
    return Coalitions(
        agents=tuple(map(game.name, everyone)),
        core=tuple(sorted(found, key=_order)),
        core_count=len(found),
        individual=None,
        individual_count=0,
        cheapest=None,
        alone=alone,
        together=together,
        # Groups that were seen to leave prove nothing of all partitions.
        cycle=(),
        complete=False,
        what="gives",
        notes=notes,
    )
