"""From an answer to what is shown of it: tables and sentences of the reports, and nothing new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from fedaccord.charts import Chart, Line
from fedaccord.errors import FedaccordError
from fedaccord.explore.desk import Desk
from fedaccord.explore.state import State
from fedaccord.groups import list_blocking_groups
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import has_chances
from fedaccord.report.coalitions import coalitions_page
from fedaccord.report.games import describe_price, list_solved, list_totals
from fedaccord.report.groups import make_groups_section
from fedaccord.report.html import parts_html
from fedaccord.report.kept import NEEDS, list_kept_plan, mark_kept_verdict
from fedaccord.report.model import Listing, Mark, Part
from fedaccord.report.plan_alternatives import describe_tradeoffs, list_tradeoffs
from fedaccord.report.plan_certainty import list_certainties
from fedaccord.report.plan_figures import chart_certainty
from fedaccord.report.proposals import (
    CHEAPEST,
    LOCKS,
    LOST,
    MARGINS,
    compare_proposals,
    explain_no_plan,
    judge_no_plan,
    judge_proposal,
    list_figures,
    list_parts,
    say_fault,
    show_agents,
)
from fedaccord.report.renaming import Renaming
from fedaccord.report.sharing import judge_shares, share_page
from fedaccord.wording import lower_first

# The most members of a group that are looked for.
GROUPS = 3

Shown: TypeAlias = "Part | Chart"


@dataclass(frozen=True)
class View:
    """What follows as one moves.

    verdict: on the proposal.
    note: what is not proved; empty where there is nothing to say.
    figures: numbers that matter, each with its name.
    parts: what each agent gives and needs, and its sentence.
    """

    verdict: Mark
    note: str
    figures: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]


def make_view(desk: Desk, answer: Proposal, state: State) -> View:
    """Return what the screen shows of a proposal.

    desk: checks it.
    answer: the plan.
    state: what the visitor has set.
    """
    lacks = tuple(explain_no_plan(answer.plan)) if answer.settled else ()
    try:
        found = desk.check(answer, state)
    except FedaccordError as error:
        return View(say_fault(answer.said or error), "", (), lacks)
    figures = tuple(list_figures(found, answer))
    verdict, note, agents = judge_proposal(found), answer.said, tuple(show_agents(found))
    as_planned = not state.give and not state.cut
    if state.keep:
        verdict = Mark(f"{verdict.text} {LOST}", verdict.tone)
    if answer.contributions is None and as_planned and answer.settled:
        locks = (LOCKS,) if state.lock and lacks else ()
        shown = f"The check says of the numbers shown: {lower_first(verdict.text)}"
        no_plan = judge_no_plan(answer, state.concept)
        return View(no_plan, "", figures[:1], (*lacks, *locks, shown, *agents))
    parts = (*lacks, *agents)
    if state.plan == "payments" and as_planned and answer.settled:
        shares = desk.share(state.problem)
        return View(Mark(shares.verdict, judge_shares(shares)), note, figures, parts)
    return View(verdict, note, figures, parts)


# What is looked at in its own time; each may take seconds.


def show_plans(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the optimal, the stable and the envy-free plan side by side, with prices."""
    found = desk.solve_each(state)
    if has_chances(desk.change(state.problem).basis):
        yield MARGINS
    yield list_solved(found).table("page")
    yield list_totals(found.solutions, found.checks).table("page")
    said = {name: price for name, price in found.prices.items() if price is not None}
    yield Listing(tuple(describe_price(n.replace("_", " "), p) for n, p in said.items()))


def show_choice(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the stable plans to choose from."""
    plan = desk.plan(state.stable)
    yield from explain_no_plan(plan)
    if plan.tradeoffs:
        yield describe_tradeoffs(plan, hint=False)
        yield list_tradeoffs(plan).table("page")


def show_certainty(desk: Desk, state: State) -> Iterator[Shown]:
    """Return what each probability costs, with the proposal among them."""
    plan = desk.plan(state.stable)
    chart = chart_certainty(plan)
    if chart is None:
        yield "Only pilots tell what certainty costs; this file has none, or there is no plan."
        return
    found = desk.check(desk.answer(state), state)
    if found.prospects is not None:
        at, total = found.prospects.everyone.value, float(found.contributions.sum())
        chart = replace(chart, lines=(*chart.lines, Line("this proposal", (at,), (total,))))
    yield chart
    yield list_certainties(plan).table("page")


def show_members(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who could give less together, and what agents do that keep their data."""
    answer = desk.answer(state)
    found = desk.check(answer, state)
    if answer.contributions is not None or state.give:
        size = min(GROUPS, found.game.size)
        blocking = list_blocking_groups(found.judged, size=size)
        yield from make_groups_section(found, blocking, size).parts
    if state.keep and (kept := desk.keep_data(state)) is not None:
        yield NEEDS
        yield mark_kept_verdict(kept)
        yield list_kept_plan(kept).table("page")


def show_payments(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who pays whom for the cheapest plan."""
    verdict, *parts = list_parts(share_page(desk.share(state.problem)))
    yield from parts if state.plan == "payments" else (CHEAPEST, verdict, *parts)


def show_coalitions(desk: Desk, state: State) -> Iterator[Shown]:
    """Return who should federate with whom."""
    found = desk.find_coalitions(state)
    yield from list_parts(coalitions_page(found, desk.need_game(state)))


def show_both(desk: Desk, state: State) -> Iterator[Shown]:
    """Return the proposal next to the one that was kept."""
    if not state.other:
        yield "Press the scales at the top to keep a state; then change something."
        return
    sides = {"this proposal": state, "the one kept": State.read(state.other)}
    answers = {name: (desk.answer(one), one) for name, one in sides.items()}
    yield from compare_proposals({n: (a, desk.check(a, one)) for n, (a, one) in answers.items()})


VIEWS: Mapping[str, Callable[[Desk, State], Iterable[Shown]]] = {
    "plans": show_plans,
    "choice": show_choice,
    "certainty": show_certainty,
    "members": show_members,
    "payments": show_payments,
    "coalitions": show_coalitions,
    "compare": show_both,
}


def draw(parts: Iterable[Shown], renaming: Renaming) -> str:
    """Return parts as HTML, in the user's words; charts are drawn elsewhere."""
    return parts_html([renaming.part(part) for part in parts if not isinstance(part, Chart)])
