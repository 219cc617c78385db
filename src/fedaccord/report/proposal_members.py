"""Members of a proposal: who gives only if another does, groups that defect, coalitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fedaccord.check import Check
from fedaccord.coalitions.result import Coalitions
from fedaccord.games.base import Game
from fedaccord.groups import list_blocking_groups
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import Scenario, has_chances
from fedaccord.report.coalitions import coalitions_page
from fedaccord.report.groups import make_groups_section
from fedaccord.report.kept import make_kept_section
from fedaccord.report.model import Mark, Part, Tone
from fedaccord.report.proposal_offers import describe_kept_probability
from fedaccord.report.proposal_plans import TARGET, list_parts
from fedaccord.report.proposal_verdicts import (
    Verdict,
    compare_with_free,
    doubt_if_kept,
    judge_proposal,
    name_hold,
)
from fedaccord.report.renaming import NeedRenaming
from fedaccord.wording import format_level, lower_first

# The parts of a contribution that an agent can give.
LEVELS = (1.0, 0.75, 0.5, 0.25, 0.0)
# The most members of a group that are looked for.
GROUPS = 3
COALITIONS = (
    "Coalitions are compared by their stable plans, not by the contributions in the sliders."
)
SAME_MARGINS = (
    "Each coalition keeps the safety margins of the present plan. When an agent leaves under "
    "Members, the others are planned again with margins of their own, so those numbers differ."
)
MEMBERS = (
    "Who takes part, and who defects? The verdict above uses what you choose here. Several agents "
    "may give less together, and an agent may give only if another does."
)

TAKEN = "The numbers shown are the plan for agents that keep their data: the last column."
KEPT_PLAN = "What follows is about the plan, and not about the numbers shown."


def explain_coalitions(
    coalitions: Coalitions, game: Game, proposal: Proposal, scenario: Scenario
) -> Iterator[Part]:
    """Return who should federate with whom, and what to know before.

    coalitions: that were found.
    game: of the plan.
    proposal: the plan.
    scenario: what agents give in place of the plan's.
    """
    need = NeedRenaming.of(game)
    if need.word == "target":
        yield TARGET
    yield from warn_of_carried(proposal, scenario)
    yield COALITIONS
    if has_chances(proposal.changed.basis):
        yield SAME_MARGINS
    page = coalitions_page(coalitions, game)
    _, *parts = list_parts(page)
    verdict = doubt_if_kept(Verdict.of([page.verdict], page.tone), scenario)
    yield from map(need.part, (Mark(verdict.text, verdict.tone), *parts))


def warn_of_carried(proposal: Proposal, scenario: Scenario) -> Iterator[Mark]:
    """Return that what follows is for a game in which the others carry agents; else nothing.

    proposal: the plan.
    scenario: what agents give in place of the plan's.
    """
    # What follows is about the plan, and not about numbers that were put in its place.
    carried = " ".join(compare_with_free(proposal, proposal.start))
    if carried and proposal.contributions is not None:
        yield Mark(f"What follows is with the {name_hold(proposal)}. {carried}", "unsure")


def describe_conditions(proposal: Proposal, scenario: Scenario) -> Iterator[str]:
    """Return which agents give only if another gives.

    proposal: the plan.
    scenario: on whom agents depend.
    """
    changed = proposal.changed
    for agent, other in scenario.only:
        if agent in changed.numbers and int(other) < len(changed.every):
            yield f"{changed.every[agent]} gives only if {changed.every[int(other)]} gives."


def judge_conditions(proposal: Proposal, found: Check, scenario: Scenario) -> Iterator[Mark]:
    """Return what follows if those give nothing on whom others depend.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's, and on whom they depend.
    """
    relied = {int(number) for _, number in scenario.only} & {*proposal.changed.numbers}
    for other in sorted(relied - {*proposal.find_broken(scenario).values()}):
        cut = tuple(sorted({**dict(scenario.cut), other: 0.0}.items()))
        without = replace(scenario, cut=cut)
        checked = proposal.check(proposal.put(without), found.probability, without.keep)
        mark = judge_proposal(proposal, checked, without)
        head = f"If {proposal.changed.every[other]} gave nothing"
        yield Mark(f"{head}: {lower_first(mark.text)}", mark.tone)


def judge_groups(proposal: Proposal, found: Check, scenario: Scenario) -> Iterator[Part]:
    """Return which groups could give less together; a cut that is shown is in the verdict.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's, and who keeps its data.
    """
    if scenario.cut or (proposal.contributions is None and not scenario.give):
        return
    bare = found
    if found.kept is not None:
        bare = proposal.check(found.contributions, found.probability)
    size = min(GROUPS, found.game.size)
    groups = list_blocking_groups(bare.judged, size=size)
    verdict, *rest = make_groups_section(bare, groups, size).parts
    if found.kept is not None and isinstance(verdict, Mark):
        tone: Tone = "plain" if verdict.tone == "good" else verdict.tone
        verdict = Mark(f"If no agent keeps its data: {lower_first(verdict.text)}", tone)
    yield from (verdict, *rest)


def explain_kept(proposal: Proposal, found: Check, scenario: Scenario) -> Iterator[Part]:
    """Return what agents do that keep their data, and whether they do it in the numbers shown.

    proposal: the plan, which knows what those agents do.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's, and who keeps its data.
    """
    if proposal.kept is None:
        return
    verdict, *parts = make_kept_section(proposal.kept).parts
    if proposal.is_kept_plan(found.contributions):
        verdict = Mark(TAKEN, "good")
    elif scenario.replaces:
        yield KEPT_PLAN
    yield from (verdict, *parts)
    yield from describe_kept_probability(proposal, found, scenario)


def offer_levels(level: float) -> dict[float, str]:
    """Return what an agent can do with its contribution, by the part that it gives.

    level: the part that it gives now.
    """
    said = {1.0: "gives its contribution", 0.0: "gives nothing"}
    parts = sorted({level, *LEVELS}, reverse=True)
    return {part: said.get(part, f"gives {format_level(part)}") for part in parts}


def offer_conditions(agent: int, names: Sequence[str]) -> dict[float, str]:
    """Return on whom an agent's contribution can depend, by number; -1 for nobody.

    agent: its number.
    names: of all agents.
    """
    others = {float(n): f"only if {name} gives" for n, name in enumerate(names) if n != agent}
    return {-1.0: "in any case", **others}
