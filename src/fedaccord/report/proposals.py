"""A proposal while it is discussed: what the screen and the page show of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Answer, Check
from fedaccord.planning.proposals import SMALL, Proposal
from fedaccord.planning.result import Outcome
from fedaccord.planning.what_if import Scenario, has_chances
from fedaccord.report.games import has_costs, list_needs
from fedaccord.report.games_chances import describe_average
from fedaccord.report.games_page import check_page
from fedaccord.report.games_verdicts import answer_envy
from fedaccord.report.kept import HEADING
from fedaccord.report.model import Fold, Listing, Mark, Page, Part, Section, joined
from fedaccord.report.plan_alternatives import explain_no_plan
from fedaccord.report.proposal_changes import describe_changes
from fedaccord.report.proposal_members import describe_conditions, explain_kept, judge_conditions
from fedaccord.report.proposal_offers import Offer, list_offers
from fedaccord.report.proposal_plans import AS_SURE
from fedaccord.report.proposal_verdicts import (
    CHANGED,
    add_unkept,
    explain_numbers,
    fold_verdict,
    judge_payments,
    judge_proposal,
    judge_shown,
    lacks_plan,
    list_warnings,
    name_hold,
    name_kind,
)
from fedaccord.report.renaming import NeedRenaming
from fedaccord.report.sharing import share_page
from fedaccord.sharing.result import CostShares
from fedaccord.wording import (
    count,
    format_amount,
    format_percent,
    format_range,
    format_short_probability,
    lower_first,
    name_alone,
)

# Up to this many agents each have a sentence.
SENTENCES = 60
# What figures are called that are shown in all states; envy is of one agent, and else.
IN_ALL, COST = "samples in all", "cost in all"
ENVIOUS = "agent that envies another", "agents that envy another"
LOCKS = "The number of a locked agent is its limit and its minimum in these tables."
CARRIED = (
    "The safety margins of the others have grown until all agents reach their goals with the "
    "requested probability. So the others may give more than they need themselves."
)


@dataclass(frozen=True)
class View:
    """What a screen shows of a proposal.

    verdict: on the proposal.
    note: what is not proved; empty where there is nothing to say.
    figures: numbers that matter, each with its name.
    parts: what each agent gives and needs, and its sentence; empty while the plan is looked for.
    folds: the rest of the verdict, and warnings and doubts; empty where there are none.
    offers: what would help.
    """

    verdict: Mark
    note: str
    figures: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    folds: tuple[Part, ...] = ()
    offers: tuple[Offer, ...] = ()


# What a screen shows while a plan is looked for, if nothing good is known of the numbers.
WAITING = View(Mark("The app is looking for a plan with these numbers.", "plain"), "", (), ())


def show_proposal(
    proposal: Proposal,
    found: Check,
    scenario: Scenario,
    *,
    concept: str,
    opened: Proposal | None = None,
    shares: CostShares | None = None,
) -> View:
    """Return what a screen shows of a proposal.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's.
    concept: stable, optimal or envy-free.
    opened: the plan before anything was changed; None where there is nothing to compare.
    shares: who pays whom; None for no payments.
    """
    lacks = tuple(explain_no_plan(proposal.plan, "page")) if proposal.settled else ()
    figures, agents = tuple(list_figures(found, proposal)), tuple(show_agents(found))
    verdict = judge_shown(proposal, found, scenario, concept)
    fails = verdict.tone == "bad" or (found.prospects is None and found.stable is Answer.FALSE)
    if not proposal.settled and (fails or proposal.contributions is None):
        return WAITING
    if shares is not None:
        verdict = judge_payments(shares, scenario)
    headline, details = fold_verdict(verdict, proposal.changed.every)
    folds = (*details, *fold_doubts(proposal, found))
    offers = tuple(list_offers(proposal, found, scenario))
    if lacks_plan(proposal, scenario):
        locks = (LOCKS,) if scenario.lock and lacks else ()
        said = judge_proposal(proposal, found, scenario).text
        shown = f"For the numbers shown, the check says: {lower_first(said)}"
        few = tuple(one for one in figures if one[0] in (IN_ALL, COST, *ENVIOUS))
        parts = (*lacks, *locks, shown, *agents)
        return View(headline, explain_numbers(proposal), few, parts, folds, offers)
    parts = (*lacks, *describe_moves(opened, proposal, found.contributions), *agents)
    # What is said of a plan that does not exist is for agents that lose what they withhold.
    lost = proposal.contributions is None
    note = name_kind(" ".join(proposal.said), concept)
    note = add_unkept(note, found) if lost else note
    return View(headline, note, figures, parts, folds, offers)


def fold_doubts(proposal: Proposal, found: Check) -> Iterator[Fold]:
    """Return the warnings and the doubts, under how many there are."""
    warnings, doubts = list_warnings(proposal, found)
    counts = [
        count(len(said), what) for said, what in ((warnings, "warning"), (doubts, "doubt")) if said
    ]
    if counts:
        yield Fold(", ".join(counts), (Listing((*warnings, *doubts)),))


def describe_moves(opened: Proposal | None, proposal: Proposal, given: Vector) -> Iterator[str]:
    """Return who gives more or fewer samples than at first, and why if others are carried.

    opened: the plan before anything was changed; None where there is nothing to compare.
    proposal: the plan now.
    given: what each agent gives now.
    """
    planned, basis = proposal.start, proposal.changed.basis
    sure = proposal.plan is not None and proposal.plan.outcome is Outcome.PLANNED
    if sure and has_chances(basis) and proposal.find_carried(planned) is not None:
        yield CARRIED
    if opened is None or opened.contributions is None or proposal.contributions is None:
        return
    if not proposal.settled:
        return
    before = dict(zip(opened.changed.names, opened.contributions.tolist(), strict=True))
    after = dict(zip(proposal.changed.names, planned.tolist(), strict=True))
    moved = {name: after[name] - before[name] for name in after if name in before}
    least = SMALL * max(before.values())
    said = [
        f"{name} {format_amount(abs(more))} {'more' if more > 0 else 'fewer'}"
        for name, more in sorted(moved.items(), key=lambda pair: -abs(pair[1]))
        if abs(more) > least
    ]
    rest = f"; {len(said) - CHANGED} others change too" if len(said) > CHANGED else ""
    head = "Compared with the plan as opened"
    head = head if np.array_equal(planned, given) else f"The plan, {lower_first(head)}"
    if said:
        yield f"{head}: {', '.join(said[:CHANGED])}{rest}."


def list_figures(found: Check, proposal: Proposal) -> Iterator[tuple[str, str]]:
    """Return the numbers that matter, each with its name.

    found: what the check says.
    proposal: the plan that was checked, or that other numbers were put into.
    """
    total, alone = float(found.contributions.sum()), found.judged.alone
    yield IN_ALL, format_amount(total)
    if has_costs(found.game):
        yield COST, format_amount(found.game.total(found.contributions))
    # What misses a goal saves nothing.
    fails = found.answers["feasible" if found.prospects is None else "sure"] is Answer.FALSE
    if not fails and alone.sum() > 0:
        named, unlocked = (
            f"{name_alone(found.judged.has_margins)}, in all",
            proposal.changed.unlocked,
        )
        few = (alone > (found.game.limits if unlocked is None else unlocked)).any()
        if found.judged.empty_handed.any() or not np.isfinite(alone.sum()):
            # As in a plan's table, a sum with a part that is missing is missing too.
            yield f"{named} (an agent cannot go alone)", "-"
        else:
            yield f"{named}{' (an agent has too few)' * bool(few)}", format_amount(alone.sum())
            dear = has_costs(found.game)
            saved = 1 - found.game.total(found.contributions) / found.game.total(alone)
            yield "saved" + " of the cost" * dear, format_percent(saved)
    if not fails:
        yield from _compare_cost(found, proposal)
    if found.game.size > 1:
        yield _count_envious(found.judged)
    if found.prospects is not None:
        everyone = found.prospects.everyone
        yield "P(all reach their goals)", _shorten(everyone.value)
        if everyone.low is not None and everyone.high is not None:
            ends = format_range(everyone.low, everyone.high, _shorten).removeprefix("from ")
            yield "its 95 % interval", ends


def _shorten(probability: float) -> str:
    """Return a probability that rests on pilots: > 0.99 at most, since nothing is certain."""
    return format_short_probability(min(max(probability, 0.001), 0.999))


def _count_envious(found: Check) -> tuple[str, str]:
    envious = len({agent for agent, _ in found.envy})
    unclear = len({agent for agent, _ in found.borderline} - {agent for agent, _ in found.envy})
    if unclear:
        shown = f"{envious}, and {unclear} too close to call" if envious else "too close to call"
        return ENVIOUS[1], shown
    return ENVIOUS[envious != 1], str(envious) if envious else "none"


def _compare_cost(found: Check, proposal: Proposal) -> Iterator[tuple[str, str]]:
    """Return how many times the cost of the optimal plan agents bear, where that plan is as sure.

    A proposal with other safety margins may cost less, or be surer: it buys something else.
    """
    optimal = proposal.optimal
    cost = 0.0 if optimal is None else found.game.total(optimal)
    if optimal is None or cost <= 0:
        return
    margins = ""
    if found.prospects is not None:
        sure = float(found.prospects.chances.everyone(optimal).mean())
        if sure < found.prospects.everyone.value - AS_SURE:
            return
        margins = " with these safety margins"
    scenario = proposal.changed.scenario
    if scenario.lock or scenario.limit:
        margins = f" with the {name_hold(proposal)}{margins.replace(' with', ' and')}"
    price = found.game.total(found.contributions) / cost
    if price > 1 - 1e-6:
        yield f"times the optimal cost{margins}", f"{price:.2f}"


def show_agents(found: Check) -> Iterator[Part]:
    """Return what each agent gives and needs, who envies whom, and a sentence for each agent."""
    yield list_needs(found).table("page")
    if found.prospects is not None:
        yield describe_average(found)
    elif found.game.size > 1:
        yield answer_envy(found)
    few = found.game.size <= SENTENCES
    yield Listing(tuple(f"{found.explain(i)}." for i in range(found.game.size * few)))


def proposal_page(
    proposal: Proposal,
    found: Check,
    scenario: Scenario,
    shares: CostShares | None,
    *,
    concept: str = "stable",
    command: str = "",
    files: Sequence[tuple[str, str]] = (),
) -> Page:
    """Make a page of a proposal; where there are payments, who pays whom comes first.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's.
    shares: who pays whom; None for no payments.
    concept: stable, optimal or envy-free.
    command: what makes the page again.
    files: facts about the files that were read.
    """
    page = check_page(found, command=command, files=files)
    names = proposal.changed.every
    verdict, details = fold_verdict(judge_shown(proposal, found, scenario, concept), names)
    folds = (*details, *fold_doubts(proposal, found))
    if proposal.contributions is not None and np.array_equal(proposal.start, found.contributions):
        agents = count(found.game.size, "agent")
        page = replace(page, title=f"How much each agent should give: a plan for {agents}")
    changes = tuple(filter(None, [describe_changes(proposal, scenario)]))
    head = (*folds, *changes, *page.head)
    page = replace(page, verdict=verdict.text, tone=verdict.tone, head=head)
    if conditions := tuple(describe_conditions(proposal, scenario)):
        follows = judge_conditions(proposal, found, scenario)
        section = Section("Who gives only if another gives", (*conditions, *follows))
        page = replace(page, sections=(*page.sections, section))
    if proposal.kept is not None:
        parts = tuple(explain_kept(proposal, found, scenario))
        section = Section(HEADING, parts)
        page = replace(page, sections=(*page.sections, section))
    if shares is None:
        return page
    paid = NeedRenaming.of(shares.game).page(share_page(shares, files=files))
    verdict, details = fold_verdict(judge_payments(shares, scenario), names)
    both = joined(paid.title, verdict.text, verdict.tone, pages=[paid, page], command=command)
    # The payments have the title and the verdict of the page itself.
    first, *rest = both.sections
    own = tuple(part for part in first.parts if isinstance(part, Section))
    return replace(both, head=details, sections=(*own, *rest))
