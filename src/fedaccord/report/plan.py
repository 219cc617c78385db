"""A plan on a terminal. The tables and sentences are those of the plan's page."""

from __future__ import annotations

from collections.abc import Iterator

from fedaccord.planning.result import Outcome, Plan
from fedaccord.planning.sentences import find_carried, list_warnings
from fedaccord.report.model import FEW, Mark, Table, Tone, mark_doubts
from fedaccord.report.plan_alternatives import (
    describe_tradeoffs,
    explain_no_plan,
    list_tradeoffs,
)
from fedaccord.report.plan_contributions import (
    describe_bare,
    describe_contributions,
    describe_falls,
    list_bare,
    list_certainties,
    list_chances,
    list_contributions,
)
from fedaccord.wording import format_part

# The most sentences about doubts.
DOUBTS = 12
TONES: dict[Outcome, Tone] = {
    Outcome.PLANNED: "good",
    Outcome.LESS_SURE: "bad",
    Outcome.UNREACHABLE: "bad",
    Outcome.UNSTABLE: "bad",
}


def show_plan(plan: Plan) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows: the verdict, who gives what, how sure it is, the rest."""
    yield Mark(plan.verdict, "unsure" if find_carried(plan) else TONES[plan.outcome])
    doubts = list_doubts(plan)
    yield from (Mark(sentence, "unsure") for sentence in plan.assumed)
    yield from mark_doubts(doubts[:DOUBTS])
    if len(doubts) > DOUBTS:
        yield Mark(f"And {len(doubts) - DOUBTS} more doubts; --json lists them.", "unsure")
    yield from explain_no_plan(plan, "terminal")
    if plan.contributions is not None:
        yield from _show_contributions(plan)
    if plan.solutions:
        yield (
            "Without a safety margin, agents reach their goals only on average:"
            if (plan.measurement is not None)
            else "Other plans, before rounding to whole samples:"
        )
        yield list_bare(plan).table("terminal")
        yield from describe_bare(plan)


def list_doubts(plan: Plan) -> tuple[str, ...]:
    """Return what is doubted, in sentences that the verdict does not have already."""
    verdict = plan.verdict
    return tuple(sentence for sentence in list_warnings(plan) if sentence not in verdict)


def _show_contributions(plan: Plan) -> Iterator[str | Mark | Table]:
    yield list_contributions(plan).table("terminal")
    yield from describe_contributions(plan, "terminal")
    if plan.satisfied is not None:
        yield list_chances(plan).table("terminal")
        some = format_part(next(iter(plan.cuts), 0.0))
        yield (
            f"One run: expected accuracy, with the interval that holds 95 % of runs. P(goal) with "
            f"{some}: the probability that an agent reaches its goal if it alone gives {some} of "
            "its contribution."
        )
        if plan.others is not None:
            least = format_part(min(plan.cuts))
            yield (
                "Others: the probability that all other agents reach their goals if this one gives "
                f"{least} of its contribution."
            )
    if plan.certainties:
        yield list_certainties(plan).table("terminal")
        if falls := describe_falls(plan):
            yield falls
    if len(plan.tradeoffs) > 1:
        yield list_tradeoffs(plan).table("terminal")
    if plan.tradeoffs:
        yield describe_tradeoffs(plan)
    if plan.size <= FEW:
        yield ""
        yield "The plan, agent by agent:"
        yield from (plan.explain(agent) for agent in range(plan.size))
        yield ""
