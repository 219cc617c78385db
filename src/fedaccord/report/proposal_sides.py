"""Proposals side by side: what each is called, what agents give, and the numbers that matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from fedaccord.check import Check
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import Scenario
from fedaccord.report.html import count_places
from fedaccord.report.model import Cell, Mark, Part, Probability, Table
from fedaccord.report.proposal_verdicts import fold_verdict, judge_shown
from fedaccord.report.proposals import list_figures
from fedaccord.wording import capitalize_first, format_number, format_percent

# What a figure says besides its quantity, which is the same on both sides.
ADDITIONS = (" with", " (", ", same target")
# What was changed: of whom, and to what.
CHANGES = {
    "lock": "{} locked at {}",
    "give": "{} gives {}",
    "cut": "{} gives {}",
    "limit": "limit of {}: {}",
    "goal": "goal of {}: {}",
    "cost": "cost of {}: {}",
    "keep": "{} keeps data worth {}",
}
# The most changes that a name lists.
LISTED = 3


def compare_proposals(sides: Mapping[str, tuple[Proposal, Check, Scenario, str]]) -> Iterator[Part]:
    """Return proposals side by side: the verdicts, what each agent gives, the numbers that matter.

    sides: each proposal with its check, its scenario and its concept, by what it is called.
    """
    for head, side in sides.items():
        mark, details = fold_verdict(judge_shown(*side), side[0].changed.every)
        yield Mark(f"{capitalize_first(head)}. {mark.text}", mark.tone)
        yield from details
    given = [
        dict(zip(proposal.changed.names, found.contributions.tolist(), strict=True))
        for proposal, found, *_ in sides.values()
    ]
    # In the order of the file, whichever side an agent is on.
    every = [name for proposal, *_ in sides.values() for name in proposal.changed.every]
    rows = [*_join_rows(given, every), ("all", *(sum(one.values()) for one in given))]
    heads: tuple[str, ...] = ("agent", *sides)
    if len(given) == 2:
        heads = (*heads, "difference")
        # No more digits than the contributions have: what solvers leave over is no difference.
        places = count_places([cell for row in rows for cell in row[1:]])
        rows = [(*row, _subtract(row[1], row[2], places)) for row in rows]
    yield Table("What each agent gives", heads, tuple(rows[:-1]), (rows[-1],))
    chances = [dict(_list_chances(found)) for _, found, *_ in sides.values()]
    if any(chances):
        yield Table("P(goal) of each agent", ("agent", *sides), _join_rows(chances, every))
    figures = [
        _match_figures(list_figures(found, proposal)) for proposal, found, *_ in sides.values()
    ]
    yield Table("In short", ("", *sides), _join_rows(figures))


def _list_chances(found: Check) -> Iterator[tuple[str, Probability]]:
    if found.prospects is not None:
        for agent, chance in enumerate(found.prospects.satisfied.tolist()):
            yield found.game.name(agent), Probability(chance)


def _match_figures(figures: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Return figures by their quantities: what is added to a name on one side is with its value."""
    found = {}
    for name, value in figures:
        cuts = [name.index(added) for added in ADDITIONS if added in name]
        end = min(cuts) if cuts and not name.startswith("P(") else len(name)
        found[name[:end]] = value
    return found


def name_sides(now: Scenario, kept: Scenario, names: Sequence[str]) -> tuple[str, str]:
    """Return names for two proposals: the plan, and the changes in which they differ.

    now, kept: what was changed.
    names: of all agents.
    """
    mine, others = _list_changes(now, names), _list_changes(kept, names)
    first = [one for one in mine if one not in others]
    second = [one for one in others if one not in mine]
    return _name(now, first, mine), _name(kept, second, others)


def _name(scenario: Scenario, different: Sequence[str], changes: Sequence[str]) -> str:
    plan = str(getattr(scenario, "plan", "stable"))
    kind = {"payments": "optimal plan with payments"}.get(plan, f"{plan} plan")
    kind = f"stable plan {plan}" if plan.isdigit() else kind
    if not changes:
        return "as opened" if plan == "stable" else kind
    listed = list(different[:LISTED])
    if len(different) > LISTED:
        listed.append(f"{len(different) - LISTED} more")
    return ", ".join([*[kind] * (plan != "stable" or not listed), *listed])


def _list_changes(scenario: Scenario, names: Sequence[str]) -> list[str]:
    """Return the changes of a scenario in few words each."""

    def name(agent: int) -> str:
        return names[agent] if agent < len(names) else f"agent {agent}"

    said = []
    for field in fields(Scenario):
        if field.name in ("left", "like", "only"):
            continue
        for agent, value in getattr(scenario, field.name):
            number = format_percent(value) if field.name == "cut" else format_number(value)
            said.append(CHANGES[field.name].format(name(agent), number))
    said += [f"{name(agent)} left" for agent in scenario.left]
    said += [f"one like {name(agent)}" for agent in scenario.like]
    said += [f"{name(agent)} only if {name(int(other))}" for agent, other in scenario.only]
    probability = getattr(scenario, "probability", None)
    return said if probability is None else [*said, f"{probability:g}"]


def _subtract(first: Cell, second: Cell, places: int) -> float | None:
    if not isinstance(first, float) or not isinstance(second, float):
        return None
    return round(first - second, places) + 0.0


def _join_rows(
    columns: Sequence[Mapping[str, float | str]], order: Sequence[str] = ()
) -> tuple[tuple[float | str | None, ...], ...]:
    """Return a row for each name that a column has; those of an order come first, as in it."""
    found = dict.fromkeys(name for column in columns for name in column)
    names = [*(name for name in dict.fromkeys(order) if name in found), *found]
    return tuple((name, *(column.get(name) for column in columns)) for name in dict.fromkeys(names))
