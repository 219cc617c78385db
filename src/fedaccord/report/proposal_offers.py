"""Ways out that are offered with a proposal: what would work, at one click."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fedaccord.check import Check
from fedaccord.planning.proposals import Proposal
from fedaccord.planning.remedies import Change
from fedaccord.planning.result import Plan
from fedaccord.planning.sentences import write_change
from fedaccord.planning.what_if import Numbers, Scenario
from fedaccord.report.proposal_verdicts import name_hold
from fedaccord.wording import format_uncertain, name_few

# The most changes that are offered, and the most agents that an offer names.
OFFERED, NAMED = 3, 3
UNKNOWN = "A game without pilots has no probabilities, so there is none for the last column."


class Offer(NamedTuple):
    """A change of a scenario that is worth a try.

    label: what to do, as on a button.
    changes: the new values of the scenario, by field.
    """

    label: str
    changes: Mapping[str, Any]


def list_offers(proposal: Proposal, found: Check | None, scenario: Scenario) -> Iterator[Offer]:
    """Return what would help where there is no plan as asked for, or agents keep their data.

    proposal: the plan.
    found: what the check says of the numbers that agents give; None where it says nothing.
    scenario: what they give in place of the plan's, and who keeps its data.
    """
    if not proposal.settled:
        return
    plan = proposal.plan
    highest = None if plan is None else plan.highest_probability
    if plan is not None and plan.contributions is None:
        yield from _offer_changes(proposal, plan, scenario)
    if highest is not None:
        label = f"Plan for {highest:g}, the highest probability that a plan was found to reach"
        yield Offer(label, {"probability": highest})
    if found is not None:
        yield from _offer_kept(proposal, found, scenario)


def _offer_changes(proposal: Proposal, plan: Plan, scenario: Scenario) -> Iterator[Offer]:
    """Return the single changes that make a plan possible, or the goals that hold together."""
    if not plan.changes and plan.together is None and proposal.free is not None:
        held = name_few([proposal.changed.names[place] for place in proposal.list_held()], NAMED)
        hold = name_hold(proposal)
        yield Offer(f"Take back the {hold} of {held}", {"lock": (), "limit": ()})
    for one in plan.changes[:OFFERED]:
        yield _offer_change(plan, one, proposal.changed.numbers[one.agent], scenario)
    if plan.together is not None and plan.goals is not None:
        lower = [agent for agent in range(plan.size) if plan.together[agent] < plan.goals[agent]]
        goals = {proposal.changed.numbers[agent]: float(plan.together[agent]) for agent in lower}
        names = name_few([plan.name(agent) for agent in lower], NAMED)
        whose = f"goal of {names}" if len(lower) == 1 else f"goals of {names}"
        yield Offer(f"Lower the {whose}", {"goal": _merge(scenario.goal, goals)})


def _offer_change(plan: Plan, one: Change, number: int, scenario: Scenario) -> Offer:
    name, new = plan.name(one.agent), write_change(one.kind, one.new)
    if one.kind != "limit":
        verb = "Raise" if one.new > one.old else "Lower"
        goal = _merge(scenario.goal, {number: one.new})
        return Offer(f"{verb} the {one.kind} of {name} to {new}", {"goal": goal})
    limit = {"limit": _merge(scenario.limit, {number: one.new})}
    if number not in dict(scenario.lock):
        return Offer(f"Raise the limit of {name} to {new}", limit)
    lock = tuple(pair for pair in scenario.lock if pair[0] != number)
    return Offer(f"Unlock {name}, with a limit of {new}", {"lock": lock, **limit})


def _offer_kept(proposal: Proposal, found: Check, scenario: Scenario) -> Iterator[Offer]:
    """Return the plan for agents that keep their data, unless it is what agents give already.

    The plan of the others alone is not offered: it leaves those that give nothing short.
    """
    given, kept = proposal.find_kept_plan(), proposal.kept
    if given is None or kept is None or kept.stable.contributions is None:
        return
    if proposal.is_kept_plan(found.contributions):
        return
    what = "Take the plan for agents that keep their data"
    sure = _find_probability(proposal, found, scenario)
    changes = {"give": tuple(zip(proposal.changed.numbers, given.tolist(), strict=True)), "cut": ()}
    yield Offer(f"{what} (probability {sure})" if sure else what, changes)


def describe_kept_probability(
    proposal: Proposal, found: Check, scenario: Scenario
) -> Iterator[str]:
    """Return the probability of the plan for agents that keep their data, or why there is none.

    proposal: the plan, which knows what those agents do.
    found: what the check says of the numbers that agents give.
    scenario: who keeps its data.
    """
    if proposal.kept is None:
        return
    if proposal.find_kept_plan() is None:
        yield "So there is no plan for them to take, and no probability."
        return
    sure = _find_probability(proposal, found, scenario)
    stable = proposal.kept.stable.contributions is not None
    given = "what the last column asks" if stable else "that"
    said = f"If all agents give {given}, they all reach their goals with probability {sure}."
    yield said if sure else UNKNOWN


def _find_probability(proposal: Proposal, found: Check, scenario: Scenario) -> str:
    """Return how likely the plan of agents that keep their data is; nothing where it is unknown."""
    given = proposal.find_kept_plan()
    if given is None or found.prospects is None:
        return ""
    prospects = proposal.check(given, found.probability, scenario.keep).prospects
    return "" if prospects is None else format_uncertain(prospects.everyone.value)


def _merge(numbers: Numbers, new: Mapping[int, float]) -> Numbers:
    return tuple(sorted({**dict(numbers), **new}.items()))
