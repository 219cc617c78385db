"""A proposal while it is discussed: the verdict, the numbers that matter, agents, and another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.check import Answer, Check
from fedaccord.check.sentences import describe_carried, describe_hurt, describe_success
from fedaccord.equilibria.result import SolvedGame
from fedaccord.groups import list_blocking_groups
from fedaccord.planning.proposals import SMALL, Proposal
from fedaccord.planning.result import Plan
from fedaccord.planning.sentences import describe_defection
from fedaccord.planning.what_if import Scenario, has_accuracies, has_chances
from fedaccord.report.games import (
    describe_price,
    has_costs,
    list_needs,
    list_solved,
    list_totals,
)
from fedaccord.report.games_chances import describe_average, describe_chances, judge_tone
from fedaccord.report.games_page import check_page
from fedaccord.report.games_verdicts import answer_envy, describe_proofs, judge_plan, tell_envy
from fedaccord.report.groups import make_groups_section
from fedaccord.report.kept import make_kept_section, mark_kept_verdict
from fedaccord.report.model import (
    Fold,
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Section,
    Tone,
    joined,
)
from fedaccord.report.plan import list_doubts
from fedaccord.report.plan_alternatives import (
    describe_tradeoffs,
    introduce_changes,
    introduce_together,
    list_changes,
    list_reach,
    list_together,
    list_tradeoffs,
)
from fedaccord.report.plan_certainty import describe_falls, list_certainties
from fedaccord.report.plan_figures import chart_certainty
from fedaccord.report.sharing import describe_raised, judge_shares, share_page
from fedaccord.sharing.result import CostShares
from fedaccord.wording import (
    capitalize_first,
    count,
    count_samples,
    format_amount,
    format_level,
    format_percent,
    format_samples,
    format_short_probability,
    join_with_and,
    lower_first,
    name_alone,
)

# Up to this many agents each have a sentence.
SENTENCES = 60
# The parts of a contribution that an agent can give.
LEVELS = (1.0, 0.75, 0.5, 0.25, 0.0)
# How many agents a sentence about a change names.
CHANGED = 4
# Plans whose probabilities differ by less are as sure.
AS_SURE = 0.001
# The most members of a group that are looked for.
GROUPS = 3
# What a figure is called that is shown in all states.
ENVIOUS = "agents that envy another"
# What is said where a number could be misread.
LOST = "This assumes that an agent loses the samples it withholds."
HOLDS = "An agent without a limit is assumed to hold as many samples as it would need alone."
INSTEAD = "The numbers shown are those of the optimal plan"
SURPLUS = " instead. In that plan no agent falls short, because some give more than they need"
UNKEPT = "If no agent keeps its data:"
LOCKS = "The number of a locked agent is its limit and its minimum in these tables."
NO_CHANCES = (
    "A game without pilots has no probabilities. To see them, and what certainty costs, open a "
    "table of pilots: fedaccord explore PILOTS.csv."
)
CARRIED = (
    "The safety margins of the others have grown until all agents reach their goals with the "
    "requested probability. So the others may give more than they need themselves."
)
CHEAPEST = "These payments go with the optimal plan, not with the contributions in the sliders."
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
LESS_SURE = (
    "The {} plan has the same safety margins as the stable plan, and is less sure. For a plan that "
    "holds, choose the stable plan."
)
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
REQUIREMENT = (
    "The requirement of an agent is the number of its own samples with which it would reach its "
    "goal and safety margin on average."
)


@dataclass(frozen=True)
class View:
    """What a screen shows of a proposal.

    verdict: on the proposal.
    note: what is not proved; empty where there is nothing to say.
    figures: numbers that matter, each with its name.
    parts: what each agent gives and needs, and its sentence.
    doubted: warnings and doubts, folded; empty where there are none.
    """

    verdict: Mark
    note: str
    figures: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    doubted: tuple[Part, ...] = ()


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
    lacks = tuple(explain_no_plan(proposal.plan)) if proposal.settled else ()
    figures, agents = tuple(list_figures(found, proposal)), tuple(show_agents(found))
    verdict = judge_shown(proposal, found, scenario, concept)
    doubted = tuple(fold_doubts(proposal, found))
    if lacks_plan(proposal, scenario):
        locks = (LOCKS,) if scenario.lock and lacks else ()
        said = judge_proposal(proposal, found, scenario).text
        shown = f"For the numbers shown, the check says: {lower_first(said)}"
        few = (figures[0], *(one for one in figures if one[0] == ENVIOUS))
        return View(verdict, "", few, (*lacks, *locks, shown, *agents), doubted)
    parts = (*lacks, *describe_moves(opened, proposal, found.contributions), *agents)
    if shares is not None:
        verdict = judge_payments(shares, scenario)
        parts = (*describe_raised(shares), *parts)
    # What is said of a plan that does not exist is for agents that lose what they withhold.
    lost = proposal.contributions is None
    note = name_kind(proposal.said, concept)
    note = _add_unkept(note, found) if lost else note
    return View(verdict, note, figures, parts, doubted)


def list_warnings(proposal: Proposal, found: Check) -> tuple[list[str], list[str]]:
    """Return the warnings and the doubts about the numbers that agents give, as on a plan's page.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    plan = proposal.plan
    if plan is None:
        return [], list(found.doubts)
    assumed = list(plan.assumed)
    given = plan.contributions
    if given is None:
        return assumed, list(found.doubts)
    deterrence = describe_defection(plan) if np.array_equal(found.contributions, given) else ""
    return [*assumed, *[deterrence] * ("Beware" in deterrence)], list(list_doubts(plan))


def fold_doubts(proposal: Proposal, found: Check) -> Iterator[Fold]:
    """Return the warnings and the doubts, under how many there are."""
    warnings, doubts = list_warnings(proposal, found)
    counts = [
        count(len(said), what) for said, what in ((warnings, "warning"), (doubts, "doubt")) if said
    ]
    if counts:
        yield Fold(", ".join(counts), (Listing((*warnings, *doubts)),))


def name_kind(said: str, concept: str) -> str:
    """Return a sentence of a solver that says of which kind the plan is.

    said: the sentence, which knows of plans "of this kind".
    concept: stable, optimal or envy-free.
    """
    for plan in ("no plan", "a cheaper plan"):
        kind = f"{plan.split()[0]} {'cheaper ' * ('cheaper' in plan)}{concept} plan"
        said = said.replace(f"{plan} of this kind", kind)
    return said


def lacks_plan(proposal: Proposal, scenario: Scenario) -> bool:
    """Return whether there is no plan, and no numbers were put in its place."""
    return proposal.contributions is None and proposal.settled and not scenario.replaces


def judge_shown(proposal: Proposal, found: Check, scenario: Scenario, concept: str) -> Mark:
    """Return the verdict that a screen and a page begin with.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's.
    concept: stable, optimal or envy-free.
    """
    if lacks_plan(proposal, scenario):
        return judge_no_plan(proposal, found, concept)
    mark = judge_proposal(proposal, found, scenario)
    warnings, doubts = list_warnings(proposal, found)
    known = proposal.settled or found.prospects is None
    if mark.tone == "good" and (warnings or doubts or not known):
        # As on the page of a plan, all is well only where nothing is doubted.
        mark = Mark(mark.text, "unsure" if doubts else "plain")
    if proposal.contributions is None and proposal.settled:
        # The numbers were put in the place of other numbers, and not of a plan.
        tone: Tone = "bad" if mark.tone == "bad" else "unsure"
        return Mark(_add_unkept(f"There is no {concept} plan. {mark.text}", found), tone)
    if concept != "stable" and found.prospects is not None and not scenario.replaces:
        # What the check compares with is the stable plan.
        text = mark.text.replace("(the plan:", "(the stable plan:")
        text = text.replace("Compared with the plan,", "Compared with the stable plan,")
        less = LESS_SURE.format(concept) if "sure" in found.failing else ""
        mark = Mark(f"{text} {less}".rstrip(), mark.tone)
    envy = concept == "envy-free" and found.game.size > 1 and " env" not in mark.text
    return Mark(f"{mark.text} {tell_envy(found.judged)}", mark.tone) if envy else mark


def judge_payments(shares: CostShares, scenario: Scenario) -> Mark:
    """Return the verdict on payments; it is not good if agents keep what they withhold.

    shares: who pays whom.
    scenario: who keeps its data.
    """
    return doubt_if_kept(Mark(shares.verdict, judge_shares(shares)), scenario)


def doubt_if_kept(verdict: Mark, scenario: Scenario) -> Mark:
    """Return a verdict that takes no account of kept samples; it is not good if agents keep some.

    verdict: of a plan in which agents lose what they withhold.
    scenario: who keeps its data.
    """
    return Mark(f"{verdict.text} {LOST}", "unsure") if scenario.keep else verdict


def judge_proposal(proposal: Proposal, found: Check, scenario: Scenario) -> Mark:
    """Return the verdict on a proposal; it is not good if some agents carry others.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: what they give in place of the plan's.
    """
    if kept := _judge_kept(proposal, found, scenario):
        return kept
    if found.prospects is None:
        return _add_caveats(Mark(*judge_plan(found)), proposal, found, scenario)
    sure = (describe_success(found, found.prospects), describe_hurt(found))
    verdict = Mark(" ".join(filter(None, sure)), judge_tone(found))
    return _add_caveats(verdict, proposal, found, scenario)


def _add_caveats(verdict: Mark, proposal: Proposal, found: Check, scenario: Scenario) -> Mark:
    carried = ""
    if verdict.tone == "good" or (found.carried and not found.failing):
        same = np.array_equal(found.contributions, proposal.start)
        carried = compare_with_free(proposal, proposal.start)
        carried = carried.replace("But the", "But in the plan, the") if not same else carried
        # What the plan would be without a lock tells more than a limit that was there at first.
        carried = carried or describe_carried(found.game, found.carried)
    said = (verdict.text, carried, *describe_broken(proposal, scenario))
    left, dearer = describe_leaving(proposal, found), describe_better_alone(found)
    costs = proposal.find_costs_of_leaving(proposal.start) or {}
    more = sum(costs.values()) > SMALL * found.scale
    doubtful = verdict.tone in ("good", "plain") and (carried or more or dearer)
    keeping = describe_keeping(proposal, found, scenario)
    said = (
        *said,
        *describe_locked(found),
        *left,
        *_describe_alone(proposal),
        dearer,
        describe_certainty(proposal, found),
        *keeping,
    )
    return Mark(" ".join(filter(None, said)), "unsure" if doubtful else verdict.tone)


def describe_locked(found: Check) -> Iterator[str]:
    """Return which agents are locked at more than would be enough for them.

    found: what the check says of the numbers that agents give.
    """
    judged = found.judged
    more = judged.contributions - judged.needed > SMALL * found.scale
    agents = [agent for agent in found.locked if more[agent]]
    for agent in agents[:CHANGED]:
        given, needed = map(format_amount, (judged.contributions[agent], judged.needed[agent]))
        yield f"{found.game.name(agent)} is locked at {given}; {needed} would be enough."


def introduce_coalitions(proposal: Proposal, scenario: Scenario) -> Iterator[Part]:
    """Return what to know before who should federate with whom.

    proposal: the plan.
    scenario: what agents give in place of the plan's.
    """
    if has_accuracies(proposal.changed.basis):
        yield REQUIREMENT
    yield from warn_of_carried(proposal, scenario)
    yield COALITIONS
    if has_chances(proposal.changed.basis):
        yield SAME_MARGINS


def describe_leaving(proposal: Proposal, found: Check) -> Iterator[str]:
    """Return who left, and what that costs those that stay; nothing where none left.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    # Plan is compared with plan, whatever numbers were put in its place.
    changed, given = proposal.changed, proposal.start
    gone = changed.gone
    if not gone:
        return
    others = [count(len(gone) - CHANGED, "other")] if len(gone) > CHANGED else []
    yield f"{join_with_and([*gone[:CHANGED], *others])} left."
    costs = proposal.find_costs_of_leaving(given)
    if costs is None:
        return
    total, least = sum(costs.values()), SMALL * found.scale
    them = "it" if len(gone) == 1 else "them"
    stay = next(iter(costs)) + " gives" if len(costs) == 1 else "the others give"
    in_all = " in all" if len(costs) > 1 else ""
    without = f"Without {them}, {stay}"
    if not np.array_equal(found.contributions, given):
        without = f"In the plan without {them}, {stay}"
    if abs(total) <= least:
        yield f"{without} as much{in_all} as before."
        return
    yield f"{without} {_compare(total)}{in_all} than with {them}."
    alone = found.judged.alone
    for agent in np.flatnonzero((alone > 0) & (np.abs(given - alone) <= least)).tolist()[:CHANGED]:
        name = changed.names[agent]
        more = f", {_compare(costs[name])} than before" if len(costs) > 1 else ""
        yield f"{name} gives what it would need alone{more}."


def _describe_alone(proposal: Proposal) -> Iterator[str]:
    """Return what agents that left would need alone, and how much more than they gave that is."""
    gone = proposal.changed.gone[:CHANGED]
    whole = proposal.whole
    if whole is None or whole.game is None or whole.contributions is None:
        return
    for agent in (whole.changed.names.index(name) for name in gone if name in whole.changed.names):
        alone, limit = float(whole.game.alone[agent]), float(whole.game.limits[agent])
        if whole.plan is not None:
            # A plan asks for whole samples.
            alone = float(np.ceil(alone * (1 - 1e-9)))
        name, more = whole.changed.names[agent], alone - float(whole.contributions[agent])
        target = "requirement" if whole.plan is None else "target"
        if alone > limit:
            yield f"Alone, {name} falls short: it has a limit of {format_samples(limit)}."
        elif more > SMALL * alone:
            needs = f"Alone, {name} needs {count_samples(alone)} for the same {target}"
            yield f"{needs}, {_compare(more)} than with all."


def _compare(more: float) -> str:
    return f"{count_samples(abs(more))} {'more' if more > 0 else 'fewer'}"


def describe_better_alone(found: Check) -> str:
    """Return which agent gives the most more than it would need alone; nothing where none does.

    found: what the check says of the numbers that agents give.
    """
    better = found.judged.better_alone.tolist()
    # Who keeps samples has them in either case.
    better = [i for i in better if found.kept is None or found.kept[i] == 0]
    if not better:
        return ""
    name, given = found.game.name(better[0]), format_amount(found.contributions[better[0]])
    alone = format_amount(found.judged.alone[better[0]])
    too = f", and so would {count(len(better) - 1, 'other agent')}" if len(better) > 1 else ""
    needs = f"it gives {given}, and alone it would need {alone}"
    return f"{name} would be better off alone{too}: {needs}."


def describe_certainty(proposal: Proposal, found: Check) -> str:
    """Return how many samples more or fewer a plan takes than one for the usual probability.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    """
    usual, given = proposal.usual, proposal.contributions
    if usual is None or usual.plan is None or usual.contributions is None or given is None:
        return ""
    # Other numbers than the plan's have no price of certainty.
    if not np.array_equal(found.contributions, given):
        return ""
    asked, more = usual.plan.options["probability"], float(given.sum() - usual.contributions.sum())
    if asked == found.probability or not more:
        return ""
    return f"This plan takes {_compare(more)} than the plan for probability {asked:g}."


def _judge_kept(proposal: Proposal, found: Check, scenario: Scenario) -> Mark | None:
    """Return that a plan does not hold since agents keep their data; None where it is not so.

    That is said of the plan as it is. If numbers were put into it, the check counts what is kept.
    """
    kept = proposal.kept
    if kept is None or not kept.kept.worth[kept.defectors].any():
        return None
    if scenario.replaces or proposal.find_broken(scenario):
        return None
    sure = "every agent reaches its requirement" if found.feasible is Answer.TRUE else ""
    if found.prospects is not None:
        sure = describe_chances(found.prospects)
    gave = f"If all give what the plan asks, {sure}." if sure else ""
    said = (mark_kept_verdict(kept).text, gave, *describe_keeping(proposal, found, scenario))
    return Mark(" ".join(filter(None, said)), "bad")


def describe_keeping(proposal: Proposal, found: Check, scenario: Scenario) -> Iterator[str]:
    """Return how the samples count that agents keep.

    proposal: the plan.
    found: what the check says of the numbers that agents give.
    scenario: who keeps its data.
    """
    if found.kept is None:
        yield LOST * bool(scenario.keep)
        return
    keepers = np.flatnonzero(found.kept > 0).tolist()
    said = [f"{found.game.name(i)} keeps {format_amount(found.kept[i])}" for i in keepers[:CHANGED]]
    if len(keepers) > CHANGED:
        said.append(f"{len(keepers) - CHANGED} others keep some too")
    if said:
        learns = "it learns" if len(keepers) == 1 else "they learn"
        yield f"This assumes that {join_with_and(said)}, and that {learns} from these samples."
        unlocked = proposal.changed.unlocked
        if np.isinf(found.game.limits if unlocked is None else unlocked)[keepers].any():
            yield HOLDS


def warn_of_carried(proposal: Proposal, scenario: Scenario) -> Iterator[Mark]:
    """Return that what follows is for a game in which the others carry agents; else nothing.

    proposal: the plan.
    scenario: what agents give in place of the plan's.
    """
    # What follows is about the plan, and not about numbers that were put in its place.
    carried = compare_with_free(proposal, proposal.start)
    if carried and proposal.contributions is not None:
        yield Mark(f"What follows is with the {_name_hold(proposal)}. {carried}", "unsure")


def _name_hold(proposal: Proposal) -> str:
    changed = proposal.changed
    return "lock" if len(changed.find(changed.scenario.lock)) > 0 else "limit"


def compare_with_free(proposal: Proposal, given: Vector) -> str:
    """Return which agents the others carry, and what it costs these; else nothing.

    proposal: the plan.
    given: what each agent gives.
    """
    carried = proposal.find_carried(given)
    if carried is None:
        return ""
    names = [proposal.changed.names[i] for i in carried.agents]
    it, would = ("It gives", "it would") if len(names) == 1 else ("They give", "they would")
    fewer, more = format_amount(carried.fewer), format_amount(carried.more)
    return (
        f"But the others carry {join_with_and(names)}. {it} {fewer} fewer than {would} without "
        f"the {_name_hold(proposal)}, and the others give {more} more."
    )


def describe_broken(proposal: Proposal, scenario: Scenario) -> Iterator[str]:
    """Return which agents give nothing, because they give only if another does.

    proposal: the plan.
    scenario: what agents give in place of the plan's, and on whom they depend.
    """
    changed = proposal.changed
    for place, other in proposal.find_broken(scenario).items():
        name = changed.every[other] if other < len(changed.every) else f"agent {other}"
        does = "gives less than the plan asks"
        if other not in changed.numbers:
            does = "does not take part"
        elif changed.numbers.index(other) in proposal.list_held():
            does = "gives less than it would without its lock or limit"
        yield f"{changed.names[place]} gives nothing, because {name} {does}."


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


def offer_levels(level: float) -> dict[float, str]:
    """Return what an agent can do with its contribution, by the part that it gives.

    level: the part that it gives now.
    """
    said = {1.0: "gives all of it", 0.0: "gives nothing"}
    parts = sorted({level, *LEVELS}, reverse=True)
    return {part: said.get(part, f"gives {format_level(part)}") for part in parts}


def offer_conditions(agent: int, names: Sequence[str]) -> dict[float, str]:
    """Return on whom an agent's contribution can depend, by number; -1 for nobody.

    agent: its number.
    names: of all agents.
    """
    others = {float(n): f"only if {name} gives" for n, name in enumerate(names) if n != agent}
    return {-1.0: "in any case", **others}


def say_fault(error: object) -> Mark:
    """Return a fault as a sentence that stands out."""
    said = capitalize_first(str(error)).rstrip(".")
    return Mark(said if said.endswith("?") else f"{said}.", "bad")


def describe_moves(opened: Proposal | None, proposal: Proposal, given: Vector) -> Iterator[str]:
    """Return who gives more or fewer samples than at first, and why if others are carried.

    opened: the plan before anything was changed; None where there is nothing to compare.
    proposal: the plan now.
    given: what each agent gives now.
    """
    planned = proposal.start
    if proposal.find_carried(planned) is not None and has_chances(proposal.changed.basis):
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


def judge_no_plan(proposal: Proposal, found: Check, concept: str) -> Mark:
    """Return that there is no plan of a kind, why, and what the numbers then are.

    proposal: without a plan.
    found: what the check says of the numbers that stand in its place.
    concept: stable, optimal or envy-free.
    """
    if proposal.plan is not None and proposal.instead is None:
        shown = "The numbers are what each agent would need alone, up to its limit."
        return Mark(_add_unkept(f"{proposal.said} {shown}", found), "bad")
    reason = "" if proposal.plan is None else f" {proposal.plan.reason}"
    shown = ""
    if proposal.instead is not None:
        # Without a stable plan, the optimal one is not stable.
        shown = f" {INSTEAD}{SURPLUS if concept == 'stable' else ''}."
        shown = f"{shown} {describe_better_alone(found)}".rstrip()
    said = f"There is no {concept} plan.{reason or f' {name_kind(proposal.said, concept)}'}{shown}"
    return Mark(_add_unkept(said, found), "bad")


def _add_unkept(said: str, found: Check) -> str:
    return said if found.kept is None or not said else f"{UNKEPT} {lower_first(said)}"


def list_figures(found: Check, proposal: Proposal) -> Iterator[tuple[str, str]]:
    """Return the numbers that matter, each with its name.

    found: what the check says.
    proposal: the plan that was checked, or that other numbers were put into.
    """
    total, alone = float(found.contributions.sum()), found.judged.alone
    yield "samples in all", format_amount(total)
    # What misses a goal saves nothing, and an agent that cannot go alone leaves nothing to compare.
    fails = found.answers["feasible" if found.prospects is None else "sure"] is Answer.FALSE
    if not fails and alone.sum() > 0:
        named = f"{name_alone(found.judged.has_margins)}, in all"
        unlocked = proposal.changed.unlocked
        if (alone <= (found.game.limits if unlocked is None else unlocked)).all():
            yield named, format_amount(alone.sum())
            dear = has_costs(found.game)
            saved = 1 - found.game.total(found.contributions) / found.game.total(alone)
            yield "saved" + " of the cost" * dear, format_percent(saved)
        else:
            shown = format_amount(alone.sum()) if np.isfinite(alone.sum()) else "-"
            yield f"{named} (an agent has too few)", shown
    if not fails and proposal.optimal is not None and 0 < proposal.optimal < np.inf:
        price = found.game.total(found.contributions) / proposal.optimal
        margins = "" if found.prospects is None else " with these safety margins"
        scenario = proposal.changed.scenario
        if scenario.lock or scenario.limit:
            margins = f" with the {_name_hold(proposal)}{margins.replace(' with', ' and')}"
        # A proposal with other margins may cost less: it is no case of the optimal plan's kind.
        if price > 1 - 1e-6:
            yield f"times the optimal cost{margins}", f"{price:.2f}"
    if found.game.size > 1:
        envious = len({agent for agent, _ in found.judged.envy})
        yield ENVIOUS, str(envious) if envious else "none"
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
    elif found.game.size > 1:
        yield answer_envy(found)
    few = found.game.size <= SENTENCES
    yield Listing(tuple(f"{found.explain(i)}." for i in range(found.game.size * few)))


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


def explain_choice(plan: Plan) -> Iterator[Part]:
    """Return the stable plans to choose from; what stands in the way where there is none."""
    yield from explain_no_plan(plan)
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


def list_parts(page: Page) -> Iterator[Part]:
    """Return the verdict and the sections of a page, without its pictures."""
    yield Mark(page.verdict, page.tone)
    yield from page.head
    for section in page.sections:
        parts = tuple(part for part in section.parts if not isinstance(part, Picture))
        yield replace(section, parts=parts)


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
    verdict = judge_shown(proposal, found, scenario, concept)
    doubted = tuple(fold_doubts(proposal, found))
    if proposal.contributions is not None and np.array_equal(proposal.start, found.contributions):
        agents = count(found.game.size, "agent")
        page = replace(page, title=f"How much each agent should give: a plan for {agents}")
    page = replace(page, verdict=verdict.text, tone=verdict.tone, head=(*doubted, *page.head))
    if conditions := tuple(describe_conditions(proposal, scenario)):
        follows = judge_conditions(proposal, found, scenario)
        section = Section("Who gives only if another gives", (*conditions, *follows))
        page = replace(page, sections=(*page.sections, section))
    if proposal.kept is not None:
        page = replace(page, sections=(*page.sections, make_kept_section(proposal.kept)))
    if shares is None:
        return page
    paid = share_page(shares, files=files)
    verdict = judge_payments(shares, scenario)
    return joined(paid.title, verdict.text, verdict.tone, pages=[paid, page], command=command)
