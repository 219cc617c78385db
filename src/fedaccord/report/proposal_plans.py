"""The plans to propose: side by side with their proofs, to choose from, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.check import Check
from fedaccord.equilibria.result import SolvedGame
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.result import Plan
from fedaccord.planning.what_if import has_chances
from fedaccord.report.games import describe_price, list_solved, list_totals
from fedaccord.report.games_verdicts import describe_proofs
from fedaccord.report.model import Listing, Mark, Page, Part, Picture, Section
from fedaccord.report.plan_alternatives import (
    describe_tradeoffs,
    explain_no_plan,
    list_tradeoffs,
)
from fedaccord.report.plan_contributions import describe_falls, list_certainties
from fedaccord.report.plan_figures import chart_certainty
from fedaccord.report.proposal_verdicts import name_hold, name_kind
from fedaccord.report.renaming import NeedRenaming
from fedaccord.report.sharing import share_page
from fedaccord.sharing.result import CostShares

# Plans whose probabilities differ by less are as sure.
AS_SURE = 0.001
# Contributions that differ by this part of the largest are the same.
SAME = 1e-6
NO_CHANCES = (
    "A game without pilots has no probabilities. To see them, and what certainty costs, open a "
    "table of pilots: fedaccord explore PILOTS.csv."
)
LOCKED = (
    "A lock counts as a limit in these payments. In the saved game it is a minimum too, so "
    "fedaccord share can find other payments."
)
LOST = "These payments assume that an agent loses the samples it withholds."
CHEAPEST = "These payments go with the optimal plan, not with the contributions in the sliders."
UNPRICED = (
    "There are no prices: with these safety margins the optimal plan is less sure than the stable "
    "plan, so their costs do not buy the same."
)
MARGINS = (
    "All three are for the safety margins of the present plan. With other margins a plan may cost "
    "less."
)
REPEAT = (
    "To check this yourself, save game.json and plan.csv. fedaccord solve game.json --json prints "
    "the bounds with all digits. fedaccord check game.json plan.csv checks the numbers in the "
    "sliders, without a solver. Totals that differ by less than the tolerance count as the same."
)
TARGET = "The target of an agent is its goal plus its safety margin."


def explain_choice(plan: Plan) -> Iterator[Part]:
    """Return the stable plans to choose from; what stands in the way where there is none."""
    yield from explain_no_plan(plan, "page")
    if plan.tradeoffs:
        yield describe_tradeoffs(plan, hint=False)
        yield list_tradeoffs(plan).table("page")


def explain_certainty(plan: Plan, found: Check) -> Iterator[Part | Chart]:
    """Return what each probability costs, with a proposal among them.

    plan: that was made from pilots.
    found: what the check says of the proposal.
    """
    chart = chart_certainty(plan)
    if chart is None:
        yield NO_CHANCES if not has_chances(plan.game) else "There is no plan, so it has no price."
        return
    if found.prospects is not None:
        at, total = found.prospects.everyone.value, float(found.contributions.sum())
        chart = replace(chart, lines=(*chart.lines, Line("this proposal", (at,), (total,))))
    yield chart
    yield list_certainties(plan).table("page")
    if falls := describe_falls(plan):
        yield falls


def explain_plans(found: SolvedGame) -> Iterator[Part]:
    """Return the plans of a solved game side by side, what proves each, and the prices."""
    yield list_solved(found).table("page")
    yield list_totals(found.solutions, found.checks).table("page")
    proofs = zip(describe_proofs(found), found.solutions, strict=True)
    yield Listing(tuple(name_kind(proof, concept) for proof, concept in proofs))
    yield REPEAT
    yield Listing(tuple(_describe_prices(found)))


def _describe_prices(found: SolvedGame) -> Iterator[str]:
    """Return the prices of a solved game; those of a plan that does not exist say so.

    There are none where the optimal plan is less sure than the stable plan.
    """
    sure = {
        name: one.prospects.everyone.value
        for name, one in found.checks.items()
        if one.prospects is not None
    }
    if sure.get("optimal", 1.0) < sure.get("stable", 0.0) - AS_SURE:
        yield UNPRICED
        return
    for name, price in found.prices.items():
        if price is not None:
            kind = "envy-free" if "fairness" in name else "stable"
            yield name_kind(describe_price(name.replace("_", " "), price), kind)


def explain_payments(
    shares: CostShares, proposal: Proposal, given: Vector, *, told: bool = False
) -> Iterator[Part]:
    """Return who pays whom; where that is not for the numbers shown, the heading says for which.

    shares: the payments, which are for the optimal plan.
    proposal: the plan.
    given: what each agent gives.
    told: whether the verdict on the payments stands above.
    """
    if proposal.changed.scenario.lock:
        yield LOCKED
    need = NeedRenaming.of(shares.game)
    if need.word == "target":
        yield TARGET
    verdict, *parts = map(need.part, list_parts(share_page(shares)))
    if np.allclose(given, shares.contributions, rtol=0, atol=SAME * max(given.max(), 1.0)):
        if not told and not shares.is_certain:
            yield verdict
        yield from parts
        return
    hold = name_hold(proposal)
    heading = f"Who pays whom in the optimal plan{f' with the {hold}' if hold else ''}"
    yield CHEAPEST
    yield verdict
    for part in parts:
        is_first = isinstance(part, Section) and part.heading == "Who pays whom"
        yield replace(part, heading=heading) if isinstance(part, Section) and is_first else part


def list_parts(page: Page) -> Iterator[Part]:
    """Return the verdict and the sections of a page, without its pictures."""
    yield Mark(page.verdict, page.tone)
    yield from page.head
    for section in page.sections:
        parts = tuple(part for part in section.parts if not isinstance(part, Picture))
        yield replace(section, parts=parts)
