"""A proposal while it is discussed: the verdict, the numbers that matter, agents, and another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedaccord.check import Answer, Check
from fedaccord.check.sentences import describe_success
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.result import Plan
from fedaccord.report.games import list_needs
from fedaccord.report.games_chances import describe_average, judge_tone
from fedaccord.report.games_page import check_page
from fedaccord.report.games_verdicts import answer_envy, judge_plan
from fedaccord.report.model import (
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Table,
    joined,
    show_doubts,
)
from fedaccord.report.plan_alternatives import (
    introduce_changes,
    introduce_together,
    list_changes,
    list_reach,
    list_together,
)
from fedaccord.report.sharing import share_page
from fedaccord.sharing.result import CostShares
from fedaccord.wording import (
    capitalize_first,
    format_amount,
    format_percent,
    format_short_probability,
)

# Up to this many agents each have a sentence.
SENTENCES = 60
# What is said where a number could be misread.
LOST = "This assumes that an agent loses the samples it withholds. Members shows the other case."
LOCKS = "The number of a locked agent is its limit and its minimum in these tables."
CHEAPEST = "These payments go with the optimal plan, not with the contributions in the sliders."
MEMBERS = (
    "Who takes part? What an agent gives counts in the verdict above; let several give 25 % to see "
    "what comes of it if they defect together."
)
MARGINS = (
    "All three are for the safety margins of the present plan. With other margins a plan may cost "
    "less."
)


def judge_proposal(found: Check) -> Mark:
    """Return the verdict on a proposal."""
    if found.prospects is None:
        return Mark(*judge_plan(found))
    return Mark(describe_success(found, found.prospects), judge_tone(found))


def say_fault(error: object) -> Mark:
    """Return a fault as a sentence that stands out."""
    return Mark(f"{capitalize_first(str(error)).rstrip('.')}.", "bad")


def judge_no_plan(proposal: Proposal, concept: str) -> Mark:
    """Return that there is no plan of a kind, why, and what the numbers then are.

    proposal: without a plan.
    concept: stable, optimal or envy-free.
    """
    if proposal.plan is not None and proposal.instead is None:
        shown = "The numbers are what each agent would need alone, up to its limit."
        return Mark(f"{proposal.said} {shown}", "bad")
    reason = "" if proposal.plan is None else f" {proposal.plan.reason}"
    shown = " The numbers are those of the optimal plan." if proposal.instead is not None else ""
    return Mark(f"There is no {concept} plan.{reason or f' {proposal.said}'}{shown}", "bad")


def list_figures(found: Check, proposal: Proposal) -> Iterator[tuple[str, str]]:
    """Return the numbers that matter, each with its name.

    found: what the check says.
    proposal: the plan that was checked, or that other numbers were put into.
    """
    total, alone = float(found.contributions.sum()), found.judged.alone
    yield "samples in all", format_amount(total)
    # What misses a goal saves nothing, and who cannot go alone has nothing to compare with.
    fails = found.answers["feasible" if found.prospects is None else "sure"] is Answer.FALSE
    if not fails and (alone <= found.game.limits).all() and alone.sum() > 0:
        yield "alone, in all", format_amount(alone.sum())
        yield "saved", format_percent(1 - total / alone.sum())
    if not fails and proposal.optimal is not None and 0 < proposal.optimal < np.inf:
        price = found.game.total(found.contributions) / proposal.optimal
        margins = "" if found.prospects is None else " with these safety margins"
        yield f"times the optimal cost{margins}", f"{price:.2f}"
    if found.prospects is not None:
        everyone = found.prospects.everyone
        yield "P(all reach their goals)", format_short_probability(everyone.value)
        if everyone.low is not None and everyone.high is not None:
            low, high = map(format_short_probability, (everyone.low, everyone.high))
            yield "its 95 % interval", f"{low} to {high}"


def show_agents(found: Check) -> Iterator[Part]:
    """Return what each agent gives and needs, who envies whom, and a sentence for each agent."""
    yield list_needs(found).table("page")
    if found.prospects is not None:
        yield describe_average(found)
    else:
        yield answer_envy(found)
    few = found.game.size <= SENTENCES
    yield Listing(tuple(f"{found.explain(i)}." for i in range(found.game.size * few)))
    yield from show_doubts(found.doubts)


def explain_no_plan(plan: Plan | None) -> Iterator[Part]:
    """Return what stands in the way of a plan, and what would make one possible."""
    if plan is None or plan.contributions is not None:
        return
    if plan.unreachable:
        yield list_reach(plan).table("page")
    if plan.changes:
        yield introduce_changes(plan)
        yield list_changes(plan).table("page")
    if plan.together is not None:
        yield introduce_together(plan)
        yield list_together(plan).table("page")


def compare_proposals(sides: Mapping[str, tuple[Proposal, Check]]) -> Iterator[Part]:
    """Return proposals side by side: the verdicts, what each agent gives, the numbers that matter.

    sides: each proposal with its check, by what it is called.
    """
    for head, (_, found) in sides.items():
        mark = judge_proposal(found)
        yield Mark(f"{capitalize_first(head)}: {mark.text}", mark.tone)
    given = [
        dict(zip(proposal.changed.names, found.contributions.tolist(), strict=True))
        for proposal, found in sides.values()
    ]
    rows = [*_join_rows(given), ("all", *(sum(one.values()) for one in given))]
    heads: tuple[str, ...] = ("agent", *sides)
    if len(given) == 2:
        heads = (*heads, "difference")
        rows = [(*row, _subtract(*row[1:])) for row in rows]
    yield Table("What each agent gives", heads, tuple(rows[:-1]), (rows[-1],))
    figures = [dict(list_figures(found, proposal)) for proposal, found in sides.values()]
    yield Table("In short", ("", *sides), _join_rows(figures))


def _subtract(first: float | str | None, second: float | str | None) -> float | None:
    known = isinstance(first, float) and isinstance(second, float)
    return first - second if known else None  # type: ignore[operator]


def _join_rows(
    columns: Sequence[Mapping[str, float | str]],
) -> tuple[tuple[float | str | None, ...], ...]:
    names = dict.fromkeys(name for column in columns for name in column)
    return tuple((name, *(column.get(name) for column in columns)) for name in names)


def list_parts(page: Page) -> Iterator[Part]:
    """Return the verdict and the sections of a page, without its pictures."""
    yield Mark(page.verdict, page.tone)
    yield from page.head
    for section in page.sections:
        parts = tuple(part for part in section.parts if not isinstance(part, Picture))
        yield replace(section, parts=parts)


def proposal_page(
    found: Check,
    shares: CostShares | None,
    *,
    command: str = "",
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Make a page of a proposal, with who pays whom where there are payments.

    found: what the check says.
    shares: who pays whom; None for no payments.
    command: what makes the page again.
    files: facts about the files that were read.
    """
    page = check_page(found, command=command, files=files)
    if shares is None:
        return page
    pages = [page, share_page(shares, files=files)]
    return joined(page.title, page.verdict, page.tone, pages=pages, command=command)
