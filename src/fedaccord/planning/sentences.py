"""What a plan says, in sentences: the verdict, what it rests on, and why each gives its share."""

from __future__ import annotations

import math

import numpy as np

from fedaccord._checks import Vector
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Unreachable
from fedaccord.planning.probabilities import NEAR
from fedaccord.planning.result import Outcome, Plan
from fedaccord.wording import (
    count,
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
    """Return in a sentence or two what came of planning."""
    if plan.outcome is Outcome.UNREACHABLE:
        return f"There is no plan: {_out_of_reach(plan.unreachable)}."
    if plan.contributions is None or plan.real is None:
        return f"There is no plan. {plan.reason}{_instead(plan)}".strip()
    if plan.outcome is Outcome.LESS_SURE:
        return _less_sure(plan)
    if not plan.contributions.any():
        nobody = "Nobody needs to give anything: all goals are met without"
        return f"{nobody}{_sure(plan)}." if plan.measurement else f"{nobody}."
    asked = f"The plan asks {_asked(plan)}{_saved(plan)}"
    if plan.measurement is None:
        firm = (
            "nobody could give less" if plan.whole else "rounding up aside, nobody could give less"
        )
        return f"{asked}; {firm}. {_unmeasured(plan)}"
    return f"{asked}{_sure(plan)}. {_holds(plan)}"


def _asked(plan: Plan) -> str:
    given = np.asarray(plan.contributions)
    giving = int((given > 0).sum())
    of = (
        count(giving, "agent")
        if giving == plan.size
        else f"{giving:,} of {count(plan.size, 'agent')}"
    )
    noun = "sample" if given.sum() == 1 else "samples"
    cost = f" at a cost of {format_samples(plan.game.total(given))}" if _has_costs(plan) else ""
    return f"{format_samples(float(given.sum()))} {noun}{cost} of {of}"


def _has_costs(plan: Plan) -> bool:
    return bool((plan.game.costs != 1).any())


def _saved(plan: Plan) -> str:
    # In whole samples, as the plan is.
    alone = plan.game.total(np.ceil(plan.game.alone - 1e-6))
    saved = alone - plan.game.total(np.asarray(plan.contributions))
    if not math.isfinite(alone) or alone <= 0:
        return ""
    word = "less" if _has_costs(plan) else "fewer"
    sure = " and wanted to be as sure" if plan.z > 0 else ""
    if saved < -0.005 * alone:
        return f", more than the {format_samples(alone)} if each went alone{sure}"
    if saved <= 0.005 * alone:
        return ", about as many as if each went alone"
    return f", {format_part(saved / alone)} {word} than if each went alone{sure}"


def _sure(plan: Plan) -> str:
    if plan.everyone is None:
        return ""
    everyone = plan.everyone
    value, low, high = map(
        format_probability, (everyone.value, everyone.low or 0.0, everyone.high or 0.0)
    )
    return (
        f"; in one run all reach their goals with probability {value} ({low} to {high}, depending "
        "on which of the curves that fit the pilots is true)"
    )


def _holds(plan: Plan) -> str:
    """Return what becomes of contributors who cut."""
    level, cut = _mean_cut(plan)
    if cut is None:
        return ""
    return (
        f"A contributor who quietly cut to {format_part(level)} of its share would still reach its "
        f"goal with probability {format_probability(cut)}, on average."
    )


def _mean_cut(plan: Plan) -> tuple[float, float | None]:
    level = min(plan.cuts, default=0.0)
    giving = np.asarray(plan.contributions) > 0
    if not plan.cuts or not giving.any():
        return level, None
    return level, float(plan.cuts[level][giving].mean())


def _unmeasured(plan: Plan) -> str:
    if isinstance(plan.game, MeasuredGame):
        return "The game came without pilots, so that no probability is known."
    return "It rests on no training at all: accuracies and probabilities are not known."


def _less_sure(plan: Plan) -> str:
    asked = format_probability(plan.options["probability"])
    best = format_probability(plan.everyone.value) if plan.everyone is not None else "unknown"
    limits = " within the limits" if np.isfinite(plan.game.limits).any() else ""
    said = (
        f"No stable plan{limits} was found that lets all reach their goals in one run with "
        f"probability {asked}; the nearest, or within {NEAR:g} of it, has {best} and asks "
        f"{_asked(plan)}"
    )
    if plan.ceiling is not None:
        said += f"; if all gave all they can it would be {format_probability(plan.ceiling.value)}"
    return f"{said}. {_attainable(plan)}".strip()


def _attainable(plan: Plan) -> str:
    if plan.attainable is None or plan.goals is None:
        return ""
    low = np.flatnonzero(plan.attainable < plan.goals - 5e-4).tolist()
    if not low:
        return ""
    named = [f"{format_accuracy_down(plan.attainable[i])} for {plan.name(i)}" for i in low]
    goals = "a goal" if len(low) == 1 else "goals"
    likely = format_probability(plan.options["probability"])
    return f"With probability {likely} this plan lets all reach {goals} of {_join(named)}."


def _join(parts: list[str]) -> str:
    if len(parts) > 2 * NAMED:
        return f"{', '.join(parts[:NAMED])}, and so on for {len(parts) - NAMED:,} more"
    return join_with_and(parts)


def _out_of_reach(missed: tuple[Unreachable, ...]) -> str:
    told = "; ".join(one.sentence.rstrip(".") for one in missed[:NAMED])
    more = len(missed) - NAMED
    return told if more <= 0 else f"{told}; and {more:,} more are out of reach"


_REMEDY = "raise the limit, or lower the goal."


def _instead(plan: Plan) -> str:
    optimal = plan.solutions.get("optimal")
    if optimal is None or optimal.contributions is None:
        return ""
    total = format_samples(float(optimal.contributions.sum()))
    said = f" The cheapest plan asks {total} samples in all, and somebody could give less."
    # Without limits there would be a stable plan: whoever is at its limit stands in the way.
    full = np.flatnonzero(optimal.contributions >= plan.game.limits * (1 - 1e-6)).tolist()
    if not full:
        return said
    return f"{said} It takes all that {_join([plan.name(i) for i in full])} can give: {_REMEDY}"


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
    name, wants = plan.name(agent), _wants(plan, agent)
    if need <= 0:
        return f"{name} gives {_nothing(given)}: it needs no samples {wants}."
    worth = (
        f"the others give {format_samples(others)}, worth {format_samples(supplied)} of its own to "
        f"it{_best_helper(plan, agent, everyone)}"
    )
    if others <= 0:
        worth = "the others give nothing"
    elif supplied < 0.5:
        worth = f"the {format_samples(others)} that the others give are worth nothing to it"
    if given == 0:
        return f"{name} gives nothing: {worth}, and it needs {format_samples(need)} {wants}."
    if need - supplied < game.minimums[agent] - 1:
        least = format_samples(float(game.minimums[agent]))
        return f"{name} gives {format_samples(given)}, its minimum ({least}): {worth}."
    part = (
        f", {format_part(min(supplied / need, 1.0))} of that"
        if others > 0 and supplied >= 0.5
        else ""
    )
    all_of_it = ", all it can" if given >= game.limits[agent] else ""
    return (
        f"{name} gives {format_samples(given)}{all_of_it}: alone it would need "
        f"{format_samples(need)} {wants}; {worth}{part}; "
        f"{'the rest it gives' if part else 'it gives all of it'} itself."
    )


def _nothing(given: float) -> str:
    return "nothing" if given == 0 else format_samples(given)


def _wants(plan: Plan, agent: int) -> str:
    if plan.goals is None:
        return "to reach its requirement"
    goal = format_accuracy(float(plan.goals[agent]))
    if plan.margins is None or plan.margins[agent] <= 0:
        return f"to reach {goal}"
    return f"to reach {plan.aims[agent]:.3f}, its goal of {goal} with room for chance"


def _best_helper(plan: Plan, agent: int, given: Vector) -> str:
    worth = plan.game.benefits_among(np.array([agent]), np.arange(plan.size))[0] * given
    worth = worth / plan.game.own_benefits[agent]
    worth[agent] = 0.0
    if (worth > 0).sum() < 2:
        return ""
    most = int(np.argmax(worth))
    return (
        f" (most by {plan.name(most)}, whose {format_samples(float(given[most]))} are worth "
        f"{format_samples(float(worth[most]))})"
    )


def _prospects(plan: Plan, agent: int, given: float) -> str:
    """Return what an agent may expect, and what a cut would do."""
    if plan.accuracy is None or plan.goals is None:
        return ""
    expected = f"It is expected to reach {plan.accuracy.values[agent]:.3f}"
    if plan.satisfied is None or plan.runs is None:
        return f"{expected}."
    run = plan.runs[agent]
    said = (
        f"{expected} (a single run: {run.low:.3f} to {run.high:.3f}) and reaches "
        f"{format_accuracy(float(plan.goals[agent]))} in one run with probability "
        f"{format_probability(float(plan.satisfied[agent]))}"
    )
    if given == 0 or not plan.cuts:
        return f"{said}."
    cuts = ", ".join(
        f"{format_probability(float(chances[agent]))} with {format_part(level)}"
        for level, chances in plan.cuts.items()
    )
    return f"{said}; if it gave only part of its share, {cuts}."


# What has to be so.

_PILOTS = (
    "The training to come is made as the pilots were: same algorithm, model, rounds and goals.",
    "What an agent gives is a random part of what it has: no better and no worse than the rest.",
    "A sample of another's is worth a fixed number of an agent's own to it, however many there "
    "are; the error falls with the sum as a power law, down to a floor.",
    "Each fit to pilots drawn anew is as likely to be the truth as any other.",
    "Single runs scatter normally round the curve, independently from agent to agent. Where they "
    "go up and down together, all reach their goals together more often than is said here.",
    "Agents give what the plan says; nobody sends samples that are worth less than before.",
)
_BARE = (
    "What a sample of one agent is worth to another, and what each needs, is as the game says; "
    "there are no pilots to tell how far off that may be, hence no intervals and no probabilities.",
)


def list_assumptions(plan: Plan) -> tuple[str, ...]:
    """List what has to be so for the numbers to be right, a sentence each."""
    known = _PILOTS if plan.measurement is not None else _BARE
    return (*plan.assumed, *known)
