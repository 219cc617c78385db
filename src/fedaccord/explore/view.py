"""From an answer to what is shown of it: tables and sentences of the reports, and nothing new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from fedaccord.charts import Chart, Line
from fedaccord.check import Check
from fedaccord.check.sentences import describe_success
from fedaccord.errors import FedaccordError
from fedaccord.explore.desk import Answer, Desk
from fedaccord.explore.state import State
from fedaccord.groups import list_blocking_groups
from fedaccord.planning.result import Plan
from fedaccord.report.games import ENVY, describe_price, list_needs, list_solved, list_totals
from fedaccord.report.games_chances import describe_average, judge_tone
from fedaccord.report.games_verdicts import describe_envy, judge_plan
from fedaccord.report.groups import make_groups_section
from fedaccord.report.kept import NEEDS, list_kept_plan, mark_kept_verdict
from fedaccord.report.model import Listing, Mark, Page, Part, Picture, Section, Table
from fedaccord.report.plan_alternatives import (
    describe_tradeoffs,
    introduce_changes,
    introduce_together,
    list_changes,
    list_reach,
    list_together,
    list_tradeoffs,
)
from fedaccord.report.plan_certainty import list_certainties
from fedaccord.report.plan_figures import chart_certainty
from fedaccord.report.renaming import Renaming
from fedaccord.wording import (
    capitalize_first,
    format_amount,
    format_percent,
    format_probability,
    format_short_probability,
)

# Up to this many agents each have a sentence on the screen.
SENTENCES = 60
# The most members of a group that are looked for.
GROUPS = 3

Shown: TypeAlias = "Part | Chart"


@dataclass(frozen=True)
class Point:
    """An equilibrium to choose.

    total: what it costs.
    firmness: how much a defector loses, from 0 to 1.
    largest: the largest contribution.
    chosen: whether it is the proposal.
    """

    total: float
    firmness: float
    largest: float
    chosen: bool


@dataclass(frozen=True)
class View:
    """What follows as one moves.

    verdict: on the proposal.
    note: what is not proved, or under way; empty where there is nothing to say.
    figures: numbers that matter, each with its name.
    parts: what each agent gives and needs, and its sentence.
    """

    verdict: Mark
    note: str
    figures: tuple[tuple[str, str], ...]
    parts: tuple[Shown, ...]


def make_view(desk: Desk, answer: Answer, state: State) -> View:
    """Return what the screen shows of a proposal.

    desk: checks it.
    answer: the plan.
    state: what the visitor has set.
    """
    try:
        found = desk.check(answer, state)
    except FedaccordError as error:
        verdict = Mark(capitalize_first(answer.said or f"{error}."), "bad")
        return View(verdict, "", (), tuple(_explain_no_plan(answer.plan)))
    return View(
        _judge(found),
        answer.said,
        tuple(_list_figures(found, answer)),
        (*_explain_no_plan(answer.plan), *_show_agents(found)),
    )


def _judge(found: Check) -> Mark:
    if found.prospects is None:
        return Mark(*judge_plan(found))
    return Mark(describe_success(found, found.prospects), judge_tone(found))


def _list_figures(found: Check, answer: Answer) -> Iterator[tuple[str, str]]:
    total, game = float(found.contributions.sum()), found.game
    yield "samples in all", format_amount(total)
    alone = found.judged.alone
    if np.isfinite(alone).all() and alone.sum() > 0:
        yield "alone, in all", format_amount(float(alone.sum()))
        yield "saved", format_percent(1 - total / float(alone.sum()))
    if answer.optimal is not None and 0 < answer.optimal < np.inf:
        price = game.total(found.contributions) / answer.optimal
        yield "times the optimal cost", format_amount(price)
    if found.prospects is not None:
        everyone = found.prospects.everyone
        yield "P(all reach their goals)", format_short_probability(everyone.value)
        if everyone.low is not None and everyone.high is not None:
            low, high = map(format_probability, (everyone.low, everyone.high))
            yield "95 % interval", f"{low} to {high}"


def _show_agents(found: Check) -> Iterator[Shown]:
    yield list_needs(found).table("page")
    if found.prospects is not None:
        yield describe_average(found)
    else:
        yield f"{describe_envy(found)}." if found.envy else ENVY[found.envy_free]
    few = found.game.size <= SENTENCES
    yield Listing(tuple(f"{found.explain(i)}." for i in range(found.game.size * few)))
    yield from (Mark(f"Doubt: {sentence}", "unsure") for sentence in found.doubts)


def _explain_no_plan(plan: Plan | None) -> Iterator[Shown]:
    """Return what stands in the way of a plan, and what would make one possible."""
    if plan is None or plan.contributions is not None:
        return
    yield Mark(plan.reason, "bad")
    if plan.unreachable:
        yield list_reach(plan).table("page")
    if plan.changes:
        yield introduce_changes(plan)
        yield list_changes(plan).table("page")
    if plan.together is not None:
        yield introduce_together(plan)
        yield list_together(plan).table("page")


# What is looked at in its own time; each may take seconds.


def show_plans(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the optimal, the stable and the envy-free plan side by side, with prices."""
    found = desk.solve_each(state)
    yield list_solved(found).table("page")
    yield list_totals(found.solutions, found.checks).table("page")
    said = {name: price for name, price in found.prices.items() if price is not None}
    yield Listing(tuple(describe_price(n.replace("_", " "), p) for n, p in said.items()))


def list_points(desk: Desk, state: State) -> tuple[Point, ...]:
    """Return the stable plans to choose from, the cheapest first."""
    plan = desk.plan(state.stable)
    chosen = state.equilibrium
    return tuple(
        Point(
            one.total,
            (one.own_part or 0.0) if one.cut is None else 1 - one.cut,
            float(one.contributions[one.largest]),
            one.chosen if chosen is None else n == chosen,
        )
        for n, one in enumerate(plan.tradeoffs)
    )


def show_choice(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the stable plans to choose from."""
    plan = desk.plan(state.stable)
    if not plan.tradeoffs:
        yield from _explain_no_plan(plan)
        return
    yield describe_tradeoffs(plan, hint=False)
    yield list_tradeoffs(plan).table("page")


def show_certainty(desk: Desk, answer: Answer, state: State) -> Iterator[Shown]:
    """Return what each probability costs, with the proposal among them."""
    plan = desk.plan(state.stable)
    chart = chart_certainty(plan)
    if chart is None:
        yield "Only pilots tell what certainty costs; this file has none, or there is no plan."
        return
    found = desk.check(answer, state)
    if found.prospects is not None:
        at, total = found.prospects.everyone.value, float(found.contributions.sum())
        point = Line("this proposal", (at,), (total,))
        chart = replace(chart, lines=(*chart.lines, point))
    yield chart
    yield list_certainties(plan).table("page")


def show_members(desk: Desk, answer: Answer, state: State) -> Iterator[Shown]:
    """Return who could give less together, and what agents do that keep their data."""
    found = desk.check(answer, state)
    size = min(GROUPS, found.game.size)
    blocking = list_blocking_groups(found.judged, size=size)
    yield from make_groups_section(found, blocking, size).parts
    if state.keep and (kept := desk.keep_data(state)) is not None:
        yield NEEDS
        yield mark_kept_verdict(kept)
        yield list_kept_plan(kept).table("page")


def show_payments(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who pays whom for the cheapest plan."""
    from fedaccord.report.sharing import share_page

    yield from show_page(share_page(desk.share(state)))


def show_coalitions(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who should federate with whom."""
    from fedaccord.report.coalitions import coalitions_page

    found = desk.find_coalitions(state)
    yield from show_page(coalitions_page(found, desk.subject.basis))  # type: ignore[arg-type]


def show_page(page: Page) -> Iterator[Shown]:
    """Return the verdict and the sections of a page, without its pictures."""
    yield Mark(page.verdict, page.tone)
    yield from page.head
    for section in page.sections:
        parts = tuple(part for part in section.parts if not isinstance(part, Picture))
        yield replace(section, parts=parts)


def compare(desk: Desk, state: State, other: State) -> Iterator[Shown]:
    """Return two proposals side by side: what each agent gives, and the verdicts.

    state: the present one.
    other: the one to compare with.
    """
    answers = [desk.answer(one) for one in (state, other)]
    checks = [desk.check(a, s) for a, s in zip(answers, (state, other), strict=True)]
    heads = ("this proposal", "the other")
    for head, found in zip(heads, checks, strict=True):
        mark = _judge(found)
        yield replace(mark, text=f"{capitalize_first(head)}: {mark.text}")
    given = [
        dict(zip(a.changed.names, found.contributions.tolist(), strict=True))
        for a, found in zip(answers, checks, strict=True)
    ]
    names = list(dict.fromkeys((*given[0], *given[1])))
    rows = tuple((name, given[0].get(name), given[1].get(name)) for name in names)
    sums = tuple(sum(one.values()) for one in given)
    yield Table("What each agent gives", ("agent", *heads), rows, (("all", *sums),))
    figures = [dict(_list_figures(f, a)) for f, a in zip(checks, answers, strict=True)]
    words = tuple((name, *(one.get(name) for one in figures)) for name in figures[0])
    yield Table("In short", ("", *heads), words)


def reword(parts: Sequence[Shown], renaming: Renaming) -> tuple[Shown, ...]:
    """Return parts in the user's words."""
    return tuple(
        _reword_chart(part, renaming) if isinstance(part, Chart) else renaming.part(part)
        for part in parts
    )


def _reword_chart(chart: Chart, renaming: Renaming) -> Chart:
    title, x, y, alt = map(renaming.text, (chart.title, chart.x, chart.y, chart.alt))
    return replace(chart, title=title, x=x, y=y, alt=alt)


__all__ = ["Point", "Section", "Shown", "View", "compare", "make_view", "reword"]
