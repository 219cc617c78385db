"""What was changed of a plan, in a line for paper, on which there is nothing to press."""

from __future__ import annotations

import math

from fedaccord.planning.proposals import Proposal
from fedaccord.planning.what_if import Scenario, has_accuracies
from fedaccord.wording import format_level

# What was changed: of whom, to what, and what its goal is called.
CHANGES = {
    "lock": "{} is locked at {}",
    "limit": "{} has {}",
    "goal": "the {2} of {0} is {1}",
    "cost": "a sample of {} costs {}",
    "give": "{} gives {}",
    "cut": "{} gives {} of its contribution",
    "keep": "{} keeps its data{}",
}


def describe_changes(proposal: Proposal, scenario: Scenario) -> str:
    """Return all that was changed, for paper; nothing where nothing was.

    proposal: the plan.
    scenario: what was changed.
    """
    names, basis = proposal.changed.every, proposal.changed.basis
    goal = "goal" if has_accuracies(basis) else "requirement"
    said = [
        CHANGES[field].format(names[agent], _write_change(field, value), goal)
        for field in CHANGES
        for agent, value in getattr(scenario, field)
        if agent < len(names)
    ]
    said += [f"{name} left" for name in proposal.changed.gone]
    said += [f"{name} joined" for name in names[len(names) - len(scenario.like) :]]
    said += [
        f"{names[agent]} gives only if {names[int(other)]} gives"
        for agent, other in scenario.only
        if max(agent, other) < len(names)
    ]
    probability = getattr(scenario, "probability", None)
    said += [] if probability is None else [f"the requested probability is {probability:.12g}"]
    return f"Changed: {'; '.join(said)}." if said else ""


def _write_change(field: str, value: float) -> str:
    if math.isinf(value):
        return "no limit"
    whole = "" if value == 1 else f" (worth {value:.12g} of shared data)"
    said = {"keep": whole, "cut": format_level(value), "limit": f"a limit of {value:,.12g}"}
    return said.get(field, f"{value:,.12g}")
