"""What a plan says, in sentences: the verdict, what it rests on, and each agent's reasons.

Sentences speak of agents and samples; `report` puts the user's own words in their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector
from fedaccord.check.sentences import describe_carried
from fedaccord.equilibria.result import Status
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Unreachable
from fedaccord.planning.result import Outcome, Plan
from fedaccord.wording import (
    capitalize_first,
    count,
    count_named,
    count_whole,
    format_accuracy_down,
    format_beside,
    format_ends,
    format_goal,
    format_part,
    format_requested,
    format_samples,
    format_uncertain,
    join_with_and,
)

# Of more agents than this a sentence names only the first.
NAMED = 3
# A contributor that reaches its goal at least this often though it gives less risks little.
LOOSE = 0.5


# The verdict.


def write_verdict(plan: Plan) -> str:
    """Return in a few short sentences what came of planning, the result first."""
    return " ".join(list_verdict(plan))


def list_verdict(plan: Plan) -> list[str]:
    """Return the sentences of the verdict; the first two say what came of planning."""
    if plan.contributions is None:
        return ["There is no plan.", *_explain_none(plan)]
    if plan.outcome is Outcome.LESS_SURE:
        return _describe_less_sure(plan)
    said = [_describe_total(plan)]
    if plan.measurement is None:
        said += [_describe_stability(plan), _compare_with_alone(plan), _describe_basis(plan)]
    else:
        if carried := find_carried(plan):
            said.append(describe_carried(plan.game, carried))
        said += _list_certainty(plan)
        said += [_compare_with_alone(plan)]
        said += [_describe_recipients(plan), describe_defection(plan)]
    return [sentence for sentence in said if sentence]


def _describe_total(plan: Plan) -> str:
    if not np.asarray(plan.contributions).any():
        return "No agent needs to give anything."
    return f"The plan asks {_describe_asked(plan)}."


def _describe_asked(plan: Plan) -> str:
    given = np.asarray(plan.contributions)
    giving = int((given > 0).sum())
    agents = count(plan.size, "agent")
    if giving < plan.size:
        agents = f"{giving:,} of {agents}"
    cost = f" (cost {format_samples(plan.game.total(given))})" if has_costs(plan) else ""
    return f"{agents} for {count_whole(float(given.sum()), 'sample')}{cost}"


def has_costs(plan: Plan) -> bool:
    """Return whether samples cost some agents more than others."""
    return bool((plan.game.costs != 1).any())


def _compare_with_alone(plan: Plan) -> str:
    """Return how much less the agents give than they would need alone for the same targets.

    Agents without samples could not go alone. They are left out, and the sentence says so.
    """
    given, able = np.asarray(plan.contributions), plan.game.limits > 0
    alone = plan.game.total(np.where(able, plan.alone_as_sure.values, 0.0))
    saved = alone - plan.game.total(given)
    if not math.isfinite(alone) or alone <= 0 or plan.size == 1 or not given.any():
        return ""
    same = " for the same targets" if plan.z > 0 else ""
    whose, they, give, together = _name_able(plan, able)
    if has_costs(plan):
        start, would = f"The plan costs {whose}", f"{they} would pay"
        fewer, as_many = "less", "as much as"
    else:
        start = capitalize_first(f"{together}{whose} {give}")
        would = f"{they} would need"
        fewer, as_many = "fewer samples", "the same number as"
    if saved < -0.005 * alone:
        return f"{start} more than the {format_samples(alone)} that {would} alone{same}."
    if saved <= 0.005 * alone:
        return f"{start} about {as_many} {would} alone{same}."
    return f"{start} {format_part(saved / alone)} {fewer} than {would} alone{same}."


def _name_able(plan: Plan, able: NDArray[np.bool_]) -> tuple[str, str, str, str]:
    """Return who is compared with going alone: the name, the pronoun, the verb, the first word.

    able: which agents have samples.
    """
    number = int(able.sum())
    if number == 1:
        return plan.name(int(np.argmax(able))), "it", "gives", ""
    if number == plan.size:
        return "the agents", "they", "give", "Together "
    return f"the {number:,} agents that have samples", "they", "give", "Together "


def _describe_stability(plan: Plan) -> str:
    """Return that the plan is stable."""
    rounded = "" if plan.whole else "Apart from rounding up, "
    return capitalize_first(f"{rounded}no agent can give less and still reach its requirement.")


def _list_certainty(plan: Plan) -> list[str]:
    if plan.everyone is None:
        return []
    said = f"All agents reach their goals in a run with probability {write_everyone(plan)}."
    # The page's verdict has room for the probability alone.
    return [said, *describe_interval(plan)]


def describe_interval(plan: Plan) -> list[str]:
    """Return in a sentence between which ends the probability lies; none where it is not known."""
    if plan.everyone is None or plan.everyone.low is None or plan.everyone.high is None:
        return []
    ends = format_ends(plan.everyone.low, plan.everyone.high, format_uncertain)
    return [f"Given the pilots, the 95 % interval of this probability is {ends}."]


def write_everyone(plan: Plan) -> str:
    """Return the probability of a plan with digits enough to tell it from the requested one."""
    return _write_beside(plan, None if plan.everyone is None else plan.everyone.value)


def _write_beside(plan: Plan, value: float | None) -> str:
    return format_beside(value, float(plan.options["probability"]))


def _describe_recipients(plan: Plan) -> str:
    if not plan.recipients:
        return ""
    names = _join([plan.name(agent) for agent in plan.recipients])
    one = len(plan.recipients) == 1
    have, they, goals = ("has", "it", "its goal") if one else ("have", "them", "their goals")
    return f"{names} {have} no samples. The others give enough for {they} to reach {goals} too."


def describe_defection(plan: Plan) -> str:
    """Return what comes of it if a contributor gives less than the plan asks for."""
    level = min(plan.cuts, default=0.0)
    giving = np.asarray(plan.contributions) > 0
    if not plan.cuts or not giving.any() or plan.satisfied is None:
        return ""
    chance, full = (float(p[giving].mean()) for p in (plan.cuts[level], plan.satisfied))
    part = format_part(level)
    if giving.sum() == 1:
        who = f"If {plan.name(int(np.argmax(giving)))} gives only {part} of its contribution, it"
        mean = ""
    else:
        who, mean = f"An agent that gives only {part} of its contribution", " on average"
    said = (
        f"{who} reaches its goal with probability {format_uncertain(chance)}{mean}. With its whole "
        f"contribution, the probability is {format_uncertain(full)}."
    )
    return " ".join(filter(None, (said, warn_of_defection(plan))))


def warn_of_defection(plan: Plan) -> str:
    """Return that a contributor that gives less than the plan asks probably loses little."""
    level = min(plan.cuts, default=0.0)
    giving = np.asarray(plan.contributions) > 0
    if not plan.cuts or not giving.any() or float(plan.cuts[level][giving].mean()) < LOOSE:
        return ""
    return (
        f"Beware: an agent that gives {format_part(level)} probably still reaches its goal, so the "
        "plan hardly deters agents from giving less."
    )


def list_warnings(plan: Plan) -> list[str]:
    """List what a reader should know before trusting a plan, a sentence or two each.

    First that the plan hardly deters agents from giving less, if so. Then the doubts of the plan;
    what the verdict says of a goal that is out of reach is not said again.
    """
    beware = warn_of_defection(plan) if plan.outcome is Outcome.PLANNED else ""
    known = {one.agent for one in plan.unreachable}
    said = ("saturation-below-goal", "extrapolation")
    doubts = (one.sentence for one in plan.doubts if one.agent not in known or one.kind not in said)
    return [*filter(None, [beware]), *doubts]


def _describe_basis(plan: Plan) -> str:
    if isinstance(plan.game, MeasuredGame):
        if plan.game.chances is not None and plan.contributions is not None:
            sure = plan.game.chances.prospects(plan.contributions).everyone.value
            return f"All agents reach their goals with probability {format_uncertain(sure)}."
        return "The game has no pilots, so no probability is known."
    return "No training was run, so accuracies and probabilities are not known."


def write_requested(plan: Plan) -> str:
    """Return the requested probability with the digits it has: 0.95 or 0.999."""
    return format_requested(float(plan.options["probability"]))


def _describe_less_sure(plan: Plan) -> list[str]:
    asked = write_requested(plan)
    limits = " within the limits" if np.isfinite(plan.game.limits).any() else ""
    said = [
        f"No stable plan{limits} lets all agents reach their goals with probability {asked}.",
        _describe_nearest(plan),
        f"It asks {_describe_asked(plan)}.",
    ]
    if plan.ceiling is not None:
        said.append(
            "If all agents gave all that their limits allow, the probability would be "
            f"{_write_beside(plan, plan.ceiling.value)}."
        )
    return [*said, *_list_attainable(plan)]


def _describe_nearest(plan: Plan) -> str:
    """Return what the plan reaches, and what a plan that takes more samples was found to reach."""
    reached, highest = write_everyone(plan), plan.highest_probability
    if highest is None or plan.everyone is None or plan.everyone.value >= highest:
        return f"The nearest plan reaches {reached}."
    return f"This plan reaches {reached}, and the highest probability found is {highest:g}."


def _list_attainable(plan: Plan) -> list[str]:
    if plan.attainable is None or plan.goals is None:
        return []
    low = np.flatnonzero(plan.attainable < plan.goals - 5e-4).tolist()
    if not low:
        return []
    named = [f"{format_accuracy_down(plan.attainable[i])} for {plan.name(i)}" for i in low]
    these = "this lower goal" if len(low) == 1 else "these lower goals"
    likely = write_requested(plan)
    return [f"With probability {likely}, the plan reaches {these}: {_join(named)}."]


def _join(parts: list[str]) -> str:
    if len(parts) > 2 * NAMED:
        return f"{', '.join(parts[:NAMED])} and {len(parts) - NAMED:,} more"
    return join_with_and(parts)


# Without a plan.


def _explain_none(plan: Plan) -> list[str]:
    if plan.unreachable:
        said = [_describe_unreachable(plan, one) for one in plan.unreachable]
        named = count_named(len(said), NAMED)
        more = len(said) - named
        rest = [f"{more:,} more goals are out of reach."] * (more > 0)
        return [*said[:named], *rest, *_describe_changes(plan)]
    if not plan.blocking:
        return [plan.reason, *_describe_changes(plan)]
    fixed = "The safety margins of a saved game are fixed. From its pilots, plan finds others."
    optimal = plan.solutions.get("optimal")
    first = "Every plan that reaches all goals asks some agent for more than it needs."
    if optimal is not None and optimal.status is Status.INFEASIBLE:
        first = "Even if all agents give all they can, they do not reach all goals."
    return [
        first,
        _describe_blocking(plan),
        *[fixed] * _has_own_margins(plan),
        *_describe_changes(plan),
    ]


def _describe_unreachable(plan: Plan, missed: Unreachable) -> str:
    aim = f"its goal of {format_goal(missed.goal)}"
    if plan.goals is not None and _has_own_margins(plan):
        goal = format_goal(float(plan.goals[missed.agent]))
        aim = f"its target of {missed.goal:.3f}, its goal of {goal} plus a safety margin"
    return (
        f"{missed.name} cannot reach {aim}: if all agents give all they can, it reaches "
        f"{format_accuracy_down(missed.nearest)}."
    )


def _describe_blocking(plan: Plan) -> str:
    names = [plan.name(agent) for agent in plan.blocking]
    if len(names) > 1:
        return f"The limits of {_join(names)} are too low."
    limit = float(plan.game.limits[plan.blocking[0]])
    if limit == 0:
        return f"{names[0]} has no samples to give, and the others need fewer than it does."
    name = names[0] if plan.game.agents is not None else capitalize_first(names[0])
    aim = "requirement" if plan.goals is None else "goal"
    aim = "target, its goal plus a safety margin" if _has_own_margins(plan) else aim
    return (
        f"{name} cannot give enough: even with all of its {count_whole(limit, 'sample')} it "
        f"misses its {aim}."
    )


def _has_own_margins(plan: Plan) -> bool:
    """Return whether the plan is of a saved game that has safety margins."""
    return plan.measurement is None and bool(np.any(getattr(plan.game, "margins", 0.0)))


def _describe_changes(plan: Plan) -> list[str]:
    from fedaccord.planning.remedies import MOST_SEARCHED

    # What an agent without samples could do with some was not asked.
    what = "limit or goal" if plan.game.limits.all() else "goal, or of one limit above 0,"
    none = f"No change of one {what} was found to be enough."
    if plan.together is not None:
        return [none, _list_together(plan, plan.together)]
    if not plan.changes:
        return [none] * bool((plan.unreachable or plan.blocking) and plan.size <= MOST_SEARCHED)
    return [
        f"The smallest change that makes a plan possible: {describe_change(plan, 0)}.",
        *_qualify_change(plan),
    ]


def _qualify_change(plan: Plan) -> list[str]:
    """Return how likely all agents are to reach their goals after the smallest change."""
    known = plan.changes[0].probability
    if known is None:
        stays = plan.changes[0].kind == "goal" and _has_own_margins(plan)
        return ["Its safety margin stays the same."] * stays
    reached = _write_beside(plan, known)
    if known >= plan.options["probability"]:
        return [f"Then all agents reach their goals with probability {reached}."]
    return [
        "Even then all agents reach their goals only on average, with probability "
        f"{reached} instead of {write_requested(plan)}."
    ]


def _list_together(plan: Plan, goals: Vector) -> str:
    lowered = [i for i in range(plan.size) if goals[i] < np.asarray(plan.goals)[i]]
    named = [f"{format_goal(float(goals[i]))} for {plan.name(i)}" for i in lowered]
    asked = write_requested(plan)
    return f"All agents reach these lower goals with probability {asked}: {_join(named)}."


def describe_change(plan: Plan, place: int) -> str:
    """Return what to change for a plan to be possible: raise the limit of City from 20 to 35."""
    one = plan.changes[place]
    verb = "raise" if one.new > one.old else "lower"
    old, new = (write_change(one.kind, value) for value in (one.old, one.new))
    return f"{verb} the {one.kind} of {plan.name(one.agent)} from {old} to {new}"


def write_change(kind: str, value: float) -> str:
    """Return a limit in whole samples, or a goal with all its digits: fewer might not be enough."""
    if kind != "goal":
        return format_samples(value)
    short = format_goal(round(value, 9))
    return short if abs(float(short) - value) < 1e-9 else f"{value:.9g}"


# Why each gives what it gives.


@dataclass(frozen=True)
class Sheet:
    """What an agent's data manager should know, a sentence or two each.

    asks: what the plan asks of it.
    why: the reasons for the amount.
    gets: what accuracy it may expect, and how likely it is to reach its goal.
    less: what would come of it if it gave less.
    """

    asks: str
    why: str = ""
    gets: str = ""
    less: str = ""


def write_explanation(plan: Plan, agent: int) -> str:
    """Explain an agent's number to its data manager."""
    sheet = write_sheet(plan, agent)
    return " ".join(filter(None, vars(sheet).values()))


def write_sheet(plan: Plan, agent: int) -> Sheet:
    """Return what an agent's data manager should know: what is asked, why, and what it gets."""
    missed = next((one for one in plan.unreachable if one.agent == agent), None)
    if missed is not None:
        return Sheet(_describe_unreachable(plan, missed))
    if plan.contributions is None:
        return Sheet(f"{plan.name(agent)} has no contribution: there is no plan.")
    return Sheet(
        _describe_share(plan, agent),
        " ".join(filter(None, (_describe_reason(plan, agent), _describe_driver(plan, agent)))),
        _describe_prospects(plan, agent),
        _describe_less(plan, agent),
    )


def _describe_share(plan: Plan, agent: int) -> str:
    given, game = float(np.asarray(plan.contributions)[agent]), plan.game
    name = plan.name(agent)
    if agent in plan.recipients:
        return f"{name} gives nothing: it has no samples."
    if given == 0:
        return f"{name} gives nothing."
    needed = (game.requirements[agent] - _supply(plan, agent)) / game.own_benefits[agent]
    least = ", its minimum" if needed < game.minimums[agent] - 1 else ""
    rest = ", its limit" if given >= game.limits[agent] else least
    return f"{name} gives {count_whole(given, 'sample')}{rest}."


def _supply(plan: Plan, agent: int) -> float:
    """Return what the others' samples are worth to an agent, in the units of its requirement."""
    given = np.asarray(plan.contributions)
    own = float(plan.game.own_benefits[agent] * given[agent])
    return float(plan.game.apply(given)[agent]) - own


def _describe_reason(plan: Plan, agent: int) -> str:
    given = np.asarray(plan.contributions)
    others = float(given.sum() - given[agent])
    supplied = _supply(plan, agent) / float(plan.game.own_benefits[agent])
    need, wants = float(plan.alone_as_sure.values[agent]), _describe_target(plan, agent)
    if need <= 0 and agent in plan.recipients:
        return (
            "It states no need, so the plan does not serve it. To plan for it, state how many "
            "samples it would need alone."
        )
    if need <= 0:
        return f"It needs no samples {wants}."
    best = _name_best_helper(plan, agent, given)
    if agent in plan.recipients:
        most = f", most of all on those of {best[0]}" if best else ""
        return f"It relies on the {count_whole(others, 'sample')} of the others {wants}{most}."
    alone = f"Alone it would need {count_whole(need, 'sample')} {wants}."
    if others <= 0:
        return f"{alone} The others give nothing."
    if supplied < 0.5:
        return f"{alone} The {format_samples(others)} that the others give are worth nothing to it."
    own = count_whole(supplied, "sample")
    worth = f"To this agent they are worth as much as {own} of its own."
    if best:
        worth += f" The largest part, {format_samples(best[1])}, comes from {best[0]}."
    return f"{alone} The others give {count_whole(others, 'sample')}. {worth}"


def find_lowered(plan: Plan) -> list[int]:
    """Return the agents at their limits whose targets were lowered to what they reach there."""
    if plan.measurement is None or plan.margins is None:
        return []
    wanted = plan.z * plan.measurement.noise(plan.options["judged"])
    return np.flatnonzero(plan.margins < wanted - 1e-9).tolist()


def find_carried(plan: Plan) -> list[int]:
    """Return the agents that give some samples, but too few for their targets by their limits."""
    if plan.outcome is not Outcome.PLANNED:
        return []
    return [i for i in find_lowered(plan) if plan.game.limits[i] > 0]


def find_driver(plan: Plan) -> int | None:
    """Return the agent at its limit that sets the common margin; None where there is none.

    An agent that gives all it has cannot reach a higher target of its own. If it is also the least
    likely to reach its goal, only more from the others makes it likelier.
    """
    if plan.satisfied is None or plan.z <= 0:
        return None
    least = int(np.argmin(plan.satisfied))
    full = float(np.asarray(plan.contributions)[least]) >= float(plan.game.limits[least]) > 0
    return least if full and least in find_lowered(plan) else None


def _describe_driver(plan: Plan, agent: int) -> str:
    """Return that an agent at its limit makes the margins of the others larger, if it does."""
    if find_driver(plan) != agent:
        return ""
    return (
        "It gives its limit and is still the least likely to reach its goal. So the other agents "
        "have larger safety margins."
    )


def _describe_target(plan: Plan, agent: int) -> str:
    if plan.goals is None:
        return "to reach its requirement"
    goal = format_goal(float(plan.goals[agent]))
    if plan.margins is None or plan.margins[agent] <= 0:
        return f"to reach its goal of {goal}"
    return f"to reach its target of {plan.aims[agent]:.3f}, its goal plus a safety margin"


def _name_best_helper(plan: Plan, agent: int, given: Vector) -> tuple[str, float] | None:
    """Return who helps an agent most, and how much; None where not several do."""
    worth = plan.game.benefits_among(np.array([agent]), np.arange(plan.size))[0] * given
    worth = worth / plan.game.own_benefits[agent]
    worth[agent] = 0.0
    most = int(np.argmax(worth))
    return None if (worth > 0).sum() < 2 else (plan.name(most), float(worth[most]))


def _describe_prospects(plan: Plan, agent: int) -> str:
    """Return what accuracy an agent may expect, and how likely it is to reach its goal."""
    if plan.accuracy is None or plan.goals is None:
        return ""
    said = [f"Its expected accuracy is {plan.accuracy.values[agent]:.3f}."]
    if plan.satisfied is None or plan.runs is None:
        return said[0]
    run = plan.runs[agent]
    if run.low is not None:
        said.append(f"In 95 % of runs, its accuracy is between {run.low:.3f} and {run.high:.3f}.")
    chance = format_uncertain(float(plan.satisfied[agent]))
    return " ".join([*said, f"It reaches its goal with probability {chance}."])


def _describe_less(plan: Plan, agent: int) -> str:
    """Return how likely an agent is to reach its goal if it alone gives less."""
    if not plan.cuts or not np.asarray(plan.contributions)[agent]:
        return ""
    level = min(plan.cuts)
    return (
        f"If it alone gave only {format_part(level)} of its contribution, the probability would be "
        f"{format_uncertain(float(plan.cuts[level][agent]))}."
    )


# What has to be so.

_PILOTS = (
    "The real training is like the pilots: the same algorithm, model, rounds and kind of data.",
    "Each agent gives a random selection of its samples.",
    "A sample of another agent is worth a fixed number of an agent's own samples. The error falls "
    "as a power law of their sum, down to a floor.",
    "Agents of one federation have similar learning curves. The pilots show how similar.",
    "Each curve drawn from the posterior is as likely to be true as any other.",
    "Every pilot was measured on newly drawn validation data. If all pilots share one validation "
    "set, they all share its sampling error. Then plan with --judged measured, which includes it.",
    "Runs scatter normally around the curve, independently from agent to agent. If they go up and "
    "down together, all agents reach their goals together more often than stated.",
    "Agents give what the plan asks for, and their samples are as good as in the pilots.",
)
_JUDGED = {
    "true": "A goal counts as reached when the model's true accuracy on the agent's own kind of "
    "data reaches it. One measurement above the goal is not enough.",
    "measured": "A goal counts as reached when one measurement on the agent's validation samples "
    "reaches it.",
}
_BARE = (
    "The game is right about what a sample of one agent is worth to another, and about what each "
    "agent needs. No training was run, so accuracies and probabilities are not known.",
)


def list_assumptions(plan: Plan) -> tuple[str, ...]:
    """List what has to be so for the numbers to be right, a sentence each."""
    if plan.measurement is None:
        return (*plan.assumed, *_BARE)
    return (*plan.assumed, _JUDGED[plan.options["judged"]], *_PILOTS)
