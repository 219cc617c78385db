"""What a plan says, in sentences: the verdict, what it rests on, and why each gives its share."""

from __future__ import annotations

import math

import numpy as np

from fedaccord._checks import Vector
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Unreachable
from fedaccord.planning.margins import NEAR
from fedaccord.planning.result import Outcome, Plan
from fedaccord.wording import (
    capitalize_first,
    format_accuracy,
    format_accuracy_down,
    format_part,
    format_probability,
    format_samples,
    join_with_and,
)

# Of more agents than this a sentence names only the first.
NAMED = 3


# The verdict.


def write_verdict(plan: Plan) -> str:
    """Return in a few sentences what came of planning."""
    if plan.outcome is Outcome.UNREACHABLE:
        return f"There is no plan. {_out_of_reach(plan.unreachable)}."
    if plan.contributions is None or plan.real is None:
        return f"There is no plan. {plan.reason}{_instead(plan)}".strip()
    if plan.outcome is Outcome.LESS_SURE:
        return _less_sure(plan)
    if not plan.contributions.any():
        said = f"No {plan.words.agent} needs to give anything."
    else:
        said = f"The plan asks for {_asked(plan)}{_saved(plan)}."
    if plan.measurement is None:
        return f"{said} {_firm(plan)} {_unmeasured(plan)}"
    return " ".join(filter(None, [said, _sure(plan), describe_defection(plan)]))


def _asked(plan: Plan) -> str:
    given = np.asarray(plan.contributions)
    giving = int((given > 0).sum())
    agents = plan.words.count_agents(plan.size)
    if giving < plan.size:
        agents = f"{giving:,} of {agents}"
    cost = f" (cost {format_samples(plan.game.total(given))})" if _has_costs(plan) else ""
    return f"{plan.words.count_samples(float(given.sum()))}{cost} from {agents}"


def _has_costs(plan: Plan) -> bool:
    return bool((plan.game.costs != 1).any())


def _saved(plan: Plan) -> str:
    # In whole samples, as the plan is.
    alone = plan.game.total(np.ceil(plan.game.alone - 1e-6))
    saved = alone - plan.game.total(np.asarray(plan.contributions))
    if not math.isfinite(alone) or alone <= 0:
        return ""
    word = "less" if _has_costs(plan) else "fewer"
    each = f"if each {plan.words.agent} trained alone"
    sure = " and wanted to be as sure" if plan.z > 0 else ""
    if saved < -0.005 * alone:
        return f", more than the {format_samples(alone)} {each}{sure}"
    if saved <= 0.005 * alone:
        return f", about as many as {each}"
    return f", {format_part(saved / alone)} {word} than {each}{sure}"


def _firm(plan: Plan) -> str:
    """Return that the plan is stable."""
    rounded = "" if plan.whole else "Apart from rounding up, "
    said = f"no {plan.words.agent} can give less and still reach its requirement."
    return capitalize_first(f"{rounded}{said}")


def _sure(plan: Plan) -> str:
    if plan.everyone is None:
        return ""
    everyone = plan.everyone
    value, low, high = map(
        format_probability, (everyone.value, everyone.low or 0.0, everyone.high or 0.0)
    )
    return (
        f"All {plan.words.agents} reach their goals in a run with probability {value} (95 % "
        f"interval {low} to {high})."
    )


def describe_defection(plan: Plan) -> str:
    """Return what a contributor gains that gives less than the plan asks for."""
    level = min(plan.cuts, default=0.0)
    giving = np.asarray(plan.contributions) > 0
    if not plan.cuts or not giving.any():
        return ""
    chance = float(plan.cuts[level][giving].mean())
    full = 0.0 if plan.satisfied is None else float(plan.satisfied[giving].mean())
    said = (
        f"A contributor that gives only {format_part(level)} of its share still reaches its goal "
        f"with probability {format_probability(chance)} on average, instead of "
        f"{format_probability(full)}"
    )
    return f"{said}: the safety margin protects it too." if chance >= 0.5 else f"{said}."


def _unmeasured(plan: Plan) -> str:
    if isinstance(plan.game, MeasuredGame):
        return "The game came without pilots, so no probability is known."
    return "It rests on no training at all: accuracies and probabilities are not known."


def _less_sure(plan: Plan) -> str:
    asked = format_probability(plan.options["probability"])
    best = format_probability(plan.everyone.value) if plan.everyone is not None else "unknown"
    limits = " within the limits" if np.isfinite(plan.game.limits).any() else ""
    said = (
        f"No stable plan{limits} lets all {plan.words.agents} reach their goals with probability "
        f"{asked}. The nearest plan reaches {best}, or within {NEAR:g} of the most, and asks for "
        f"{_asked(plan)}."
    )
    if plan.ceiling is not None:
        said += (
            f" If all {plan.words.agents} gave all they have, the probability would be "
            f"{format_probability(plan.ceiling.value)}."
        )
    return f"{said} {_attainable(plan)}".strip()


def _attainable(plan: Plan) -> str:
    if plan.attainable is None or plan.goals is None:
        return ""
    low = np.flatnonzero(plan.attainable < plan.goals - 5e-4).tolist()
    if not low:
        return ""
    named = [f"{format_accuracy_down(plan.attainable[i])} for {plan.name(i)}" for i in low]
    goals = "a goal" if len(low) == 1 else "goals"
    likely = format_probability(plan.options["probability"])
    return f"With probability {likely} this plan reaches {goals} of {_join(named)}."


def _join(parts: list[str]) -> str:
    if len(parts) > 2 * NAMED:
        return f"{', '.join(parts[:NAMED])}, and so on for {len(parts) - NAMED:,} more"
    return join_with_and(parts)


def _out_of_reach(missed: tuple[Unreachable, ...]) -> str:
    listed = ". ".join(one.sentence.rstrip(".") for one in missed[:NAMED])
    more = len(missed) - NAMED
    return listed if more <= 0 else f"{listed}. {more:,} more goals are out of reach"


def _instead(plan: Plan) -> str:
    optimal = plan.solutions.get("optimal")
    if optimal is None or optimal.contributions is None:
        return ""
    total = plan.words.count_samples(math.ceil(float(optimal.contributions.sum())))
    said = f" The cheapest plan takes {total}, but in it some {plan.words.agent} could give less."
    # Without limits there would be a stable plan: whoever is at its limit stands in the way.
    full = np.flatnonzero(optimal.contributions >= plan.game.limits * (1 - 1e-6)).tolist()
    if not full:
        return said
    names = _join([plan.name(i) for i in full])
    return f"{said} The limit of {names} stands in the way: raise it, or lower its goal."


# Why each gives what it gives.


def write_explanation(plan: Plan, agent: int) -> str:
    """Explain an agent's number to its data manager."""
    name = plan.name(agent)
    missed = next((one for one in plan.unreachable if one.agent == agent), None)
    if missed is not None:
        return f"{missed.sentence}."
    if plan.contributions is None:
        return f"{name} has no share: there is no plan."
    given = float(plan.contributions[agent])
    said = [_share(plan, agent, given)]
    if plan.accuracy is not None and plan.goals is not None:
        said.append(_prospects(plan, agent, given))
    return " ".join(said)


def _share(plan: Plan, agent: int, given: float) -> str:
    game, everyone = plan.game, np.asarray(plan.contributions)
    own = float(game.own_benefits[agent])
    need = float(game.requirements[agent]) / own
    supplied = float(game.apply(everyone)[agent]) / own - given
    others = float(everyone.sum()) - given
    name, wants, count = plan.name(agent), _wants(plan, agent), plan.words.count_samples
    gives = f"{name} gives {'nothing' if given == 0 else count(given)}"
    if need <= 0:
        return f"{gives}. It needs no {plan.words.samples} {wants}."
    help_ = (
        f"The others give {format_samples(others)}, worth {format_samples(supplied)} of its own to "
        f"it{_best_helper(plan, agent, everyone)}."
    )
    if others <= 0:
        help_ = "The others give nothing."
    elif supplied < 0.5:
        help_ = f"The {format_samples(others)} that the others give are worth nothing to it."
    alone = f"Alone it would need {count(math.ceil(need - 1e-6))} {wants}."
    if given > 0 and need - supplied < game.minimums[agent] - 1:
        return f"{gives}, its minimum. {help_}"
    if given >= game.limits[agent] > 0:
        gives = f"{gives}, all it has"
    return f"{gives}. {alone} {help_}"


def _wants(plan: Plan, agent: int) -> str:
    if plan.goals is None:
        return "to reach its requirement"
    goal = format_accuracy(float(plan.goals[agent]))
    if plan.margins is None or plan.margins[agent] <= 0:
        return f"to reach its goal of {goal}"
    return f"to reach its target of {plan.aims[agent]:.3f} (goal {goal} plus a safety margin)"


def _best_helper(plan: Plan, agent: int, given: Vector) -> str:
    worth = plan.game.benefits_among(np.array([agent]), np.arange(plan.size))[0] * given
    worth = worth / plan.game.own_benefits[agent]
    worth[agent] = 0.0
    if (worth > 0).sum() < 2:
        return ""
    most = int(np.argmax(worth))
    return f", most of it from {plan.name(most)} ({format_samples(float(worth[most]))})"


def _prospects(plan: Plan, agent: int, given: float) -> str:
    """Return what an agent may expect, and what it gains by giving less."""
    if plan.accuracy is None or plan.goals is None:
        return ""
    expected = f"It is expected to reach {plan.accuracy.values[agent]:.3f}"
    if plan.satisfied is None or plan.runs is None:
        return f"{expected}."
    run = plan.runs[agent]
    said = (
        f"{expected} (a single run: {run.low:.3f} to {run.high:.3f}), and reaches its goal with "
        f"probability {format_probability(float(plan.satisfied[agent]))}."
    )
    if given == 0 or not plan.cuts:
        return said
    less = ", ".join(
        f"{format_probability(float(chances[agent]))} with {format_part(level)} of its share"
        for level, chances in plan.cuts.items()
    )
    return f"{said} If it alone gave less: {less}."


# What has to be so.

_PILOTS = (
    "The real training is like the pilots: the same algorithm, model, rounds and kind of data.",
    "What an agent gives is a random part of what it has, no better and no worse than the rest.",
    "A sample of another agent is worth a fixed number of an agent's own samples. The error falls "
    "as a power law of their sum, down to a floor.",
    "Agents of one federation have similar learning curves; how similar is learned from the "
    "pilots.",
    "Each fit to resampled pilots is as likely to be the truth as any other.",
    "Every pilot was measured on validation data that were drawn afresh. If all pilots share one "
    "validation set, the true accuracy may differ from the measured curve by its sampling error.",
    "Runs scatter normally around the curve, independently from agent to agent. If they go up and "
    "down together, all agents reach their goals together more often than stated.",
    "Agents give what the plan asks for, and their samples are as good as in the pilots.",
)
_JUDGED = {
    "true": "A goal counts as reached when the model's true accuracy on the agent's own kind of "
    "data reaches it, not when one measurement happens to.",
    "measured": "A goal counts as reached when one measurement on the agent's validation samples "
    "reaches it.",
}
_BARE = (
    "What a sample of one agent is worth to another, and what each agent needs, is as the game "
    "says. Without pilots there are no intervals and no probabilities.",
)


def list_assumptions(plan: Plan) -> tuple[str, ...]:
    """List what has to be so for the numbers to be right, a sentence each."""
    if plan.measurement is None:
        return (*plan.assumed, *_BARE)
    return (*plan.assumed, _JUDGED[plan.options["judged"]], *_PILOTS)
