"""Find who should federate with whom."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from fedaccord._checks import Vector, check_choice, frozen
from fedaccord.coalitions.large import SMALL, Costs, MergeAndSplit, StableCosts
from fedaccord.coalitions.linear import check_linear, tabulate_stable_plans
from fedaccord.coalitions.result import Coalitions, Grouping, Move, Pair
from fedaccord.coalitions.rows import (
    CheapestCosts,
    tabulate_cheapest_plans,
    tabulate_goal_plans,
)
from fedaccord.coalitions.search import (
    Found,
    Parts,
    Preferences,
    find_cheapest,
    find_core,
    find_individually_stable,
)
from fedaccord.coalitions.table import (
    MOST_AGENTS,
    CoalitionTable,
    Members,
    list_members,
    name_burden,
    number_coalition,
)
from fedaccord.equilibria.result import Deadline
from fedaccord.equilibria.whole import has_whole_samples, round_plan
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import list_doubts
from fedaccord.games.rows import RowGame

# Up to this many agents coalitions are merged and split: for stable plans, and for cheapest plans,
# which one linear program each finds.
MERGED_AGENTS, MERGED_CHEAPEST = 40, 60
# Up to this many agents every pair is listed.
PAIRED_AGENTS = 8
# Moves that are followed in search of a cycle.
MOVES = 100_000
WHOLE = "Agents give whole samples. Coalitions were compared before rounding to whole samples."
EQUILIBRIUM = (
    "Each coalition follows its cheapest stable plan. If several plans cost the same, it follows "
    "the most even one."
)


CHEAPEST = "Each coalition follows its cheapest plan, which payments or pledges must hold."


def find_coalitions(
    subject: Game | CoalitionTable, *, plans: str = "stable", time_limit: float = 60.0
) -> Coalitions:
    """Find groupings of the agents that no group would leave, or prove that there is none.

    With up to 12 agents, all groupings are searched. With more, coalitions merge and split until
    no group of up to three agents would rather leave.

    subject: a linear or measured game, in which each coalition follows its cheapest stable plan; a
        game with several goals or harm, for stable plans of up to 12 agents; or a table of what
        agents bear in each coalition, for any other model.
    plans: "stable"; or "cheapest", for coalitions whose plan is held by payments or pledges.
    time_limit: seconds for each search.
    """
    if not (np.isfinite(time_limit) and time_limit > 0):
        raise InputError(f"time_limit must be a number of seconds above 0; got {time_limit!r}")
    if isinstance(subject, CoalitionTable):
        return _search_table(subject, time_limit, ())
    check_choice("plans", plans, ("stable", "cheapest"))
    found = _find(subject, plans, time_limit)
    aim = "target" if subject.has_margins else "requirement"
    return replace(found, doubts=list_doubts(subject), limits=subject.limits, aim=aim)


def _find(subject: Game, plans: str, time_limit: float) -> Coalitions:
    if plans == "cheapest":
        if subject.size > MOST_AGENTS:
            _check_size(subject, MERGED_CHEAPEST)
            return _merge_and_split(CheapestCosts(subject), time_limit, (CHEAPEST,), holds=False)
        return _search_table(tabulate_cheapest_plans(subject), time_limit, (CHEAPEST,))
    if isinstance(subject, RowGame):
        return _search_table(tabulate_goal_plans(subject), time_limit, (EQUILIBRIUM,))
    game = check_linear(subject)
    found = _search_game(game, time_limit)
    if not has_whole_samples(subject):
        return found
    return replace(
        found,
        core=tuple(_round(game, one) for one in found.core),
        individual=found.individual and tuple(_round(game, one) for one in found.individual),
        cheapest=found.cheapest and _round(game, found.cheapest),
        alone=_round(game, found.alone),
        together=found.together and _round(game, found.together),
        notes=(*found.notes, WHOLE),
        pairs=tuple(Pair(p.agents, _round_costs(game, p.agents, p.costs)) for p in found.pairs),
    )


def _round(game: LinearGame, grouping: Grouping) -> Grouping:
    """Return a grouping in whole samples, as plans are rounded."""
    costs = np.array(grouping.costs)
    for part in grouping.coalitions:
        costs[[*part]] = _round_costs(game, part, costs[[*part]])
    return replace(grouping, costs=frozen(costs), total=float(costs.sum()))


def _round_costs(game: LinearGame, members: Members, costs: Vector) -> Vector:
    if not np.isfinite(costs).all():
        return costs
    prices = game.costs[[*members]]
    return frozen(round_plan(game.restrict([*members]), costs / prices) * prices)


def _search_game(game: LinearGame, time_limit: float) -> Coalitions:
    notes = (EQUILIBRIUM,)
    if game.size <= MOST_AGENTS:
        return _search_table(tabulate_stable_plans(game), time_limit, notes)
    _check_size(game, MERGED_AGENTS)
    return _merge_and_split(StableCosts(game), time_limit, notes, holds=True)


def _check_size(game: Game, most: int) -> None:
    if game.size > most:
        raise InputError(
            f"coalitions are found for up to {most} agents; this game has {game.size}: merge "
            "agents that are alike"
        )


# Few agents.


def _search_table(table: CoalitionTable, time_limit: float, notes: tuple[str, ...]) -> Coalitions:
    preferences = Preferences(table)
    core = find_core(preferences, Deadline(time_limit))
    individual = find_individually_stable(preferences, Deadline(time_limit))
    everyone = (1 << table.size) - 1
    none = core.complete and not core.count
    return Coalitions(
        agents=tuple(table.name(agent) for agent in range(table.size)),
        core=_list_groupings(table, core, table.size),
        core_count=core.count,
        individual=_list_groupings(table, individual),
        individual_count=individual.count,
        cheapest=_make_grouping(table, find_cheapest(table)),
        alone=_make_grouping(table, tuple(1 << agent for agent in range(table.size))),
        together=_make_grouping(table, (everyone,)) if table.forms[everyone] else None,
        cycle=find_cycle(preferences) if none else (),
        complete=core.complete and individual.complete,
        what=table.what,
        notes=notes,
        pairs=_list_pairs(table) if 2 < table.size <= PAIRED_AGENTS else (),
    )


def _list_pairs(table: CoalitionTable) -> tuple[Pair, ...]:
    pairs = combinations(range(table.size), 2)
    return tuple(Pair(p, frozen(table.costs[number_coalition(p), [*p]])) for p in pairs)


def _make_grouping(table: CoalitionTable, parts: Parts, checked: int = 0) -> Grouping:
    costs = np.empty(table.size)
    for part in parts:
        members = [*list_members(part)]
        costs[members] = table.costs[part, members]
    total = float(sum(table.total(part) for part in parts))
    return Grouping(tuple(map(list_members, parts)), frozen(costs), total, checked)


def _list_groupings(table: CoalitionTable, found: Found, checked: int = 0) -> tuple[Grouping, ...]:
    made = [_make_grouping(table, parts, checked) for parts in found.groupings]
    # If groupings cost the same, the one with the fewest coalitions comes first.
    return tuple(sorted(made, key=_order))


def _order(grouping: Grouping) -> tuple[float, int, tuple[Members, ...]]:
    return float(f"{grouping.total:.9g}"), len(grouping.coalitions), grouping.coalitions


def find_cycle(preferences: Preferences) -> tuple[Move, ...]:
    """Return groups that leave one grouping after another until the first comes back.

    The largest group that gains leaves. What is left of a coalition stays together if it can. There
    are finitely many groupings, so this comes back to one of them unless one is core-stable.

    preferences: of agents without a core-stable grouping.
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


def _merge_and_split(
    costs: Costs, time_limit: float, notes: tuple[str, ...], *, holds: bool
) -> Coalitions:
    """Return the groupings that merging and splitting ends with, from agents alone and together.

    In a linear game more data never hurts. So no group of any size would leave the stable plan of
    all agents: each of its members would have to give less, and then one of them could do so alone.

    costs: of coalitions.
    holds: whether they are those of stable plans of a linear game.
    """
    game = costs.game
    merging = MergeAndSplit(costs)
    alone = merging.make_grouping(0)
    settled = merging.run(Deadline(time_limit))
    found = [merging.make_grouping(SMALL)] if settled else []
    everyone = tuple(range(game.size))
    together = None
    if np.isfinite(costs.find(everyone)).all():
        splitting = MergeAndSplit(costs, together=True)
        together = splitting.make_grouping(game.size if holds else 0)
        if holds:
            found = [g for g in found if not g.everyone_together] + [together]
        elif splitting.run(Deadline(time_limit)):
            last = splitting.make_grouping(SMALL)
            found = [g for g in found if g.coalitions != last.coalitions] + [last]
    return Coalitions(
        agents=tuple(map(game.name, everyone)),
        core=tuple(sorted(found, key=_order)),
        core_count=len(found),
        individual=None,
        individual_count=0,
        cheapest=None,
        alone=alone,
        together=together,
        # Groups that were seen to leave prove nothing of all groupings.
        cycle=(),
        complete=False,
        what=name_burden(game),
        notes=notes,
    )
