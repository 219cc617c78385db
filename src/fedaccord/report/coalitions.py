"""Who should federate with whom: tables, sentences and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Vector
from fedaccord.coalitions.result import Coalitions, Grouping
from fedaccord.coalitions.table import SAME
from fedaccord.report.games import list_game_facts
from fedaccord.report.model import (
    AGAINST,
    Column,
    Listing,
    Mark,
    Page,
    Records,
    Section,
    Table,
    Tone,
    keep_finite,
    list_run_facts,
    mark_doubts,
)
from fedaccord.wording import count, format_amount, pluralize

if TYPE_CHECKING:
    from fedaccord.games.base import Game

# Groupings that a terminal lists, and those that a page lists; JSON has more.
SHOWN = 8
LISTED = 100
CORE = (
    "A grouping puts every agent into exactly one coalition. Core-stable: no group of agents could "
    "leave so that all of its members are better off. Individually stable: no agent would rather "
    "be alone, or in another coalition that would accept it."
)
PAIRS = "A pair would leave if both of its agents are better off as a pair than now."


def judge_coalitions(found: Coalitions) -> Tone:
    """Return whether the verdict is good news, and nothing speaks against the game."""
    chosen = found.chosen
    if chosen is None or not found.core:
        return "bad" if found.complete else "unsure"
    short = not np.isfinite(chosen.costs).all()
    return "good" if chosen.checked == found.size and not found.doubts and not short else "unsure"


def show_coalitions(found: Coalitions) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows: the grouping that holds, gains, and other groupings."""
    yield Mark(found.verdict, judge_coalitions(found))
    yield from mark_doubts(found.doubts)
    if found.chosen is not None:
        yield list_gains(found).table("terminal")
        if not found.chosen.everyone_together:
            yield from _number("Coalition", map(found.write_group, found.chosen.coalitions))
        if found.size <= 15:
            yield from map(found.explain, range(found.size))
            yield ""
    if found.core or found.individual:
        yield list_groupings(found).table("terminal")
        shown = _list_stable(found)[:SHOWN]
        yield from _number("Grouping", (found.write_grouping(g.coalitions) for g in shown))
    yield CORE
    yield from describe_search(found)
    if found.chosen is not None and found.pairs:
        yield ""
        yield list_pairs(found).table("terminal")
        yield PAIRS
    yield from list_cycle(found)
    yield from found.notes


def describe_search(found: Coalitions) -> Iterator[str]:
    """Return how many groupings are stable, and what stability costs."""
    if found.individual is not None:
        core, single = (
            pluralize(n, "is", "are") for n in (found.core_count, found.individual_count)
        )
        more = "" if found.complete else " The search ran out of time: there may be more."
        yield (
            f"{count(found.core_count, 'grouping')} {core} core-stable, and "
            f"{found.individual_count:,} {single} individually stable.{more}"
        )
    price = found.price_of_anarchy
    if price is not None and price > 1 + 1e-9:
        yield (
            f"The most expensive core-stable grouping costs {price:.4g} times as much as the "
            "cheapest grouping."
        )


def list_cycle(found: Coalitions) -> Iterator[str]:
    """Return the groups that leave again and again, if no grouping is core-stable."""
    for move in found.cycle:
        yield (
            f"From {found.write_grouping(move.before)}: {found.write_group(move.group)} would "
            "leave and form a coalition."
        )


# Tables.


def list_gains(found: Coalitions) -> Records:
    """List each agent's coalition, and what it bears there, alone, and with all together."""
    chosen = found.chosen
    assert chosen is not None
    place = {agent: n for n, part in enumerate(chosen.coalitions) for agent in part}

    def write_place(agent: int) -> str:
        return found.write_group(chosen.coalitions[place[agent]])

    columns = [
        Column("agent", lambda i: found.agents[i], sums=("all",)),
        Column("coalition", lambda i: f"{place[i] + 1}", sums=("",), where="terminal"),
        Column("coalition", write_place, sums=("",), where="page"),
        _costs(found.what, chosen),
    ]
    if np.isfinite(found.alone.costs).any():
        columns.append(_costs("on its own", found.alone))
    if found.together is not None:
        columns.append(_costs("all together", found.together))
    return Records("What each agent gains", columns, range(found.size))


def _costs(head: str, grouping: Grouping) -> Column:
    return Column(
        head,
        lambda i: keep_finite(grouping.costs[i]),
        sums=(keep_finite(grouping.total),),
        write=format_amount,
    )


def list_groupings(found: Coalitions) -> Records:
    """List stable groupings, the cheapest first."""
    single = None if found.individual is None else {g.coalitions for g in found.individual}
    listed = _list_stable(found)

    def is_single(n: int) -> str:
        return "not checked" if single is None else _answer(listed[n].coalitions in single)

    return Records(
        "Stable groupings",
        (
            Column("grouping", lambda n: f"{n + 1}", where="terminal"),
            Column("grouping", lambda n: found.write_grouping(listed[n].coalitions), where="page"),
            Column("total", lambda n: keep_finite(listed[n].total), write=format_amount),
            Column("core-stable", lambda n: _write_core(found, listed[n])),
            Column("individually stable", is_single, short="individually\nstable"),
        ),
        range(min(len(listed), LISTED)),
        range(min(len(listed), SHOWN)),
    )


def _list_stable(found: Coalitions) -> list[Grouping]:
    core = {grouping.coalitions for grouping in found.core}
    return [*found.core, *(g for g in found.individual or () if g.coalitions not in core)]


def _number(what: str, names: Iterable[str]) -> Iterator[str]:
    return (f"{what} {n}: {text}." for n, text in enumerate(names, 1))


def list_pairs(found: Coalitions) -> Records:
    """List what every two agents would bear as a pair, and what they bear now."""
    chosen = found.chosen
    assert chosen is not None

    def write_both(costs: Vector) -> str:
        return " and ".join(map(format_amount, costs.tolist()))

    def write_pair(n: int) -> str:
        costs = found.pairs[n].costs
        return write_both(costs) if np.isfinite(costs).all() else "cannot both be satisfied"

    def write_now(n: int) -> str:
        return write_both(chosen.costs[[*found.pairs[n].agents]])

    def would_leave(n: int) -> str:
        now = chosen.costs[[*found.pairs[n].agents]]
        return _answer(bool((found.pairs[n].costs < now * (1 - SAME)).all()))

    return Records(
        "What pairs would give" if found.what == "gives" else "What pairs would bear",
        (
            Column("pair", lambda n: found.write_group(found.pairs[n].agents)),
            Column("as a pair", write_pair),
            Column("now", write_now),
            Column("would leave", would_leave),
        ),
        range(len(found.pairs)),
    )


def _write_core(found: Coalitions, grouping: Grouping) -> str:
    if 0 < grouping.checked < found.size:
        return f"groups up to {grouping.checked}"
    return _answer(grouping.checked > 0)


def _answer(yes: bool) -> str:
    return "yes" if yes else "no"


# The page.


def coalitions_page(
    found: Coalitions,
    game: Game,
    *,
    command: str = "",
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Make a page on who should federate with whom.

    found: the coalitions.
    game: what they are coalitions of.
    command: what was typed.
    files: facts about the files that were read.
    """
    sections = []
    if found.doubts:
        sections.append(Section(AGAINST, tuple(mark_doubts(found.doubts))))
    if found.chosen is not None:
        said = Listing(tuple(map(found.explain, range(found.size))))
        sections.append(Section("What each agent gains", (list_gains(found).table("page"), said)))
    stable: list[str | Table] = [CORE, *describe_search(found)]
    if found.core or found.individual:
        stable.append(list_groupings(found).table("page"))
    sections.append(Section("Which groupings hold", tuple(stable)))
    if found.chosen is not None and found.pairs:
        listed = list_pairs(found).table("page")
        sections.append(Section("Two agents that leave together", (PAIRS, listed)))
    if found.cycle:
        sections.append(Section("Why none holds", (Listing(tuple(list_cycle(found))),)))
    if found.notes:
        sections.append(Section("How coalitions were compared", (Listing(found.notes),)))
    return Page(
        title=f"Who should federate with whom: {count(found.size, 'agent')}",
        verdict=found.verdict,
        tone=judge_coalitions(found),
        sections=tuple(sections),
        facts=(*files, *list_game_facts(game), *list_run_facts()),
        command=command,
    )
