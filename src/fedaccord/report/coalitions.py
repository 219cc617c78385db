"""Who should federate with whom: tables, sentences and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fedaccord.coalitions.result import Coalitions, Grouping
from fedaccord.report.games import list_game_facts
from fedaccord.report.model import (
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
)
from fedaccord.wording import count, format_amount, pluralize

if TYPE_CHECKING:
    from fedaccord.games.base import Game

# Groupings that a terminal lists, and those that a page lists; JSON has more.
SHOWN = 8
LISTED = 100
CORE = (
    "A grouping puts every agent into one coalition. It is core-stable if no group of agents could "
    "form another coalition in which all of them are better off. It is individually stable if no "
    "agent would rather be alone, or in another coalition whose members would not be worse off "
    "with it."
)


def judge_coalitions(found: Coalitions) -> Tone:
    """Return whether the verdict is good news."""
    chosen = found.chosen
    if chosen is None or not found.core:
        return "bad" if found.complete else "unsure"
    return "good" if chosen.checked == found.size else "unsure"


def show_coalitions(found: Coalitions) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows: the grouping that holds, gains, and other groupings."""
    yield Mark(found.verdict, judge_coalitions(found))
    if found.chosen is not None:
        yield list_gains(found).table("terminal")
        if found.size <= 15:
            yield from map(found.explain, range(found.size))
            yield ""
    if found.core or found.individual:
        yield list_groupings(found).table("terminal")
    yield from describe_search(found)
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
    place = {agent: part for part in chosen.coalitions for agent in part}
    columns = [
        Column("agent", lambda i: found.agents[i], sums=("all",)),
        Column("coalition", lambda i: found.write_group(place[i]), sums=("",)),
        _costs(found.what, chosen),
        _costs("alone", found.alone),
    ]
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
    core = {grouping.coalitions for grouping in found.core}
    single = None if found.individual is None else {g.coalitions for g in found.individual}
    listed = [*found.core, *(g for g in found.individual or () if g.coalitions not in core)]

    def is_single(n: int) -> str:
        return "not checked" if single is None else _answer(listed[n].coalitions in single)

    return Records(
        "Stable groupings",
        (
            Column("grouping", lambda n: found.write_grouping(listed[n].coalitions)),
            Column("total", lambda n: keep_finite(listed[n].total), write=format_amount),
            Column("core-stable", lambda n: _write_core(found, listed[n])),
            Column("individually stable", is_single, short="individually"),
        ),
        range(min(len(listed), LISTED)),
        range(min(len(listed), SHOWN)),
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
    if found.chosen is not None:
        said = Listing(tuple(map(found.explain, range(found.size))))
        sections.append(Section("What each agent gains", (list_gains(found).table("page"), said)))
    stable: list[str | Table] = [CORE, *describe_search(found)]
    if found.core or found.individual:
        stable.append(list_groupings(found).table("page"))
    sections.append(Section("Which groupings hold", tuple(stable)))
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
