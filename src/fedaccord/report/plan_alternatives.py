"""What else could be planned: other equilibria, and what to change where there is no plan."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fedaccord.planning.remedies import MOST_SEARCHED
from fedaccord.planning.result import Outcome, Plan
from fedaccord.planning.sentences import find_lowered, write_change, write_requested
from fedaccord.report.model import MANY, Cell, Column, Mark, Place, Records, Table
from fedaccord.report.plan_contributions import (
    ENDS,
    ROWS,
    Fractions,
    Probabilities,
    Samples,
    list_goal,
    list_records,
    of_agents,
    of_each,
)
from fedaccord.wording import (
    format_accuracy_down,
    format_goal,
    format_part,
    format_samples,
    join_with_and,
    round_accuracy_down,
    shorten,
)

# The most equilibria, or changes, that a table of a terminal lists.
LISTED = 8
# What a plan is the cheapest of.
EQUAL = "Each agent's safety margin is {:.2f} times the scatter of its runs{}."
# The most agents that a sentence names.
NAMES = 3
NO_SINGLE = "No single change of one limit or one {} was found that makes a plan possible."


def list_tradeoffs(plan: Plan) -> Records:
    """List the equilibria to choose from: what they cost, and what a defector can expect."""
    options = plan.tradeoffs
    measured = plan.measurement is not None
    level = format_part(min(plan.options["levels"]))

    def name(n: int) -> Cell:
        return Mark(f"{n + 1}, the plan", "good") if options[n].chosen else str(n + 1)

    def givers(n: int) -> str:
        who = ", ".join(plan.name(i) for i in options[n].contributors[:6])
        return who + ("…" if len(options[n].contributors) > 6 else "")

    def largest(n: int) -> float:
        return float(options[n].contributions[options[n].largest])

    def largest_by(n: int) -> str:
        whose = shorten(plan.name(options[n].largest), 16)
        return f"{format_samples(largest(n))} by {whose}"

    def envious(n: int) -> str:
        return ", ".join(plan.name(i) for i in options[n].envious[:6]) or "none"

    chances = (
        Probabilities("P(all)", lambda n: options[n].everyone),
        Probabilities(
            f"P(goal) with {level}, mean",
            lambda n: options[n].cut,
            short=f"P(goal) with\n{level}, mean",
        ),
    )
    own = Fractions(
        "own part, mean", lambda n: options[n].own_part, short="own part", write=format_part
    )
    return Records(
        "The equilibria, before rounding",
        (
            Column("no.", name, short="equilibrium"),
            Column("contributors", givers, where="page"),
            Column("contributors", lambda n: f"{len(options[n].contributors):,}", where="terminal"),
            Samples("total", lambda n: options[n].total),
            *(chances if measured else [own]),
            Samples("largest contribution", largest, where="page"),
            Column("largest contribution", largest_by, where="terminal"),
            Column("by", lambda n: plan.name(options[n].largest), where="page"),
            Column("envious", envious, where="page"),
            Column("envious", lambda n: str(len(options[n].envious)), where="terminal"),
        ),
        page=range(len(options)),
        terminal=[n for n, option in enumerate(options) if n < LISTED or option.chosen],
    )


def mean_cut(plan: Plan) -> float | None:
    """Return the mean chance of a contributor that gives the least level; None without one."""
    chosen = [tradeoff for tradeoff in plan.tradeoffs if tradeoff.chosen]
    return chosen[0].cut if chosen else None


def describe_tradeoffs(plan: Plan, *, hint: bool = True) -> str:
    """Return how many equilibria there are, and how the plan was chosen among them.

    plan: chosen among equilibria.
    hint: whether to name the option that would choose another.
    """
    said = _describe_choice(plan, hint=hint)
    if plan.z <= 0 or plan.size == 1:
        return said
    lowered = [plan.name(agent) for agent in find_lowered(plan)]
    who = join_with_and(lowered) if len(lowered) <= NAMES else f"{len(lowered)} agents"
    smaller = f", but smaller for {who}, which cannot give more" if lowered else ""
    equal = EQUAL.format(plan.z, smaller)
    return " ".join(filter(None, (said, equal, _suggest_limit(plan, hint=hint))))


def _suggest_limit(plan: Plan, *, hint: bool) -> str:
    """Return which limit may make a plan cheaper; empty if that agent must give it all.

    An agent at its limit has a smaller safety margin, and the others give in its place. Where
    limits prevent the requested probability, or the agent gives its limit already, a lower limit
    is no advice.
    """
    given = np.asarray(plan.contributions)
    most = int(np.argmax(given))
    if plan.outcome is not Outcome.PLANNED or given[most] <= plan.game.minimums[most]:
        return ""
    if given[most] >= plan.game.limits[most]:
        return ""
    which = "A smaller limit" if np.isfinite(plan.game.limits[most]) else "A limit"
    said = f"{which} for {plan.name(most)}, which gives most, may make the plan cheaper"
    return f"{said}: try --limit." if hint else f"{said}."


def _describe_choice(plan: Plan, *, hint: bool) -> str:
    number = len(plan.tradeoffs)
    if number == 1 and plan.complete:
        return f"This is the only stable plan{_at_margins(plan)}."
    if number == 1:
        few = "With this many agents, the search was not complete."
        return f"No other stable plan was found{_at_margins(plan)}. {few}"
    cheapest = plan.tradeoffs[0].chosen
    loose = [
        -round(one.own_part or 0.0, 9) if one.cut is None else round(one.cut, 9)
        for one in plan.tradeoffs
    ]
    lose = "the one in which defectors lose most"
    deters = plan.tradeoffs[int(np.argmin(loose))].chosen
    kind = " and ".join(["the cheapest"] * cheapest + [lose] * deters) or "the preferred one"
    more = "" if plan.complete else " There may be more."
    found = f"{number} stable plans were found{_at_margins(plan)}.{more}"
    said = f"{found} This is {kind}."
    if not hint or (cheapest and deters):
        return said
    other, word = ("firm", lose) if cheapest else ("total", "the cheapest")
    return f"{said} --prefer {other} takes {word}."


def _at_margins(plan: Plan) -> str:
    return " with these safety margins" if plan.z > 0 else ""


def explain_no_plan(plan: Plan | None, place: Place) -> Iterator[str | Table]:
    """Return what stands in the way of a plan, and what would make one possible, if there is none.

    plan: what was planned; None where nothing is known of what stands in the way.
    place: where it is shown.
    """
    if plan is None or plan.contributions is not None:
        return
    if plan.unreachable:
        yield list_reach(plan).table(place)
    if plan.changes:
        yield introduce_changes(plan)
        yield list_changes(plan).table(place)
    elif plan.together is None and plan.size <= MOST_SEARCHED:
        yield NO_SINGLE.format("requirement" if plan.goals is None else "goal")
    if plan.together is not None:
        yield introduce_together(plan)
        yield list_together(plan).table(place)


def list_reach(plan: Plan) -> Records:
    """List what each wants and could have if all gave as much as they can."""
    missed = {one.agent for one in plan.unreachable}
    agents = [*sorted(missed), *(i for i in range(plan.size) if i not in missed)]

    def mark(agent: int) -> Mark:
        return Mark("out of reach", "bad") if agent in missed else Mark("within reach", "good")

    return Records(
        "Goals, and what can be reached",
        (
            Column("agent", plan.name),
            list_goal(plan),
            Column("is", mark, where="page"),
            # Rounded down, as in the verdict.
            Column(
                "most it can reach",
                of_agents(plan.nearest),
                ends=ENDS,
                write=format_accuracy_down,
                trim=round_accuracy_down,
            ),
            Column("", lambda i: mark(i) if i in missed else "", where="terminal", coloured=True),
        ),
        page=agents[:ROWS],
        terminal=sorted(agents[:MANY]),
    )


def list_changes(plan: Plan) -> Records:
    """List the single changes that would make a plan possible, the smallest first."""
    changes = plan.changes

    def write(n: int, value: float) -> str:
        return write_change(changes[n].kind, value)

    def total(n: int) -> float:
        return float(math.ceil(changes[n].total - 1e-6))

    return Records(
        "Single changes that would make a plan possible, the smallest first",
        (
            Column("agent", lambda n: plan.name(changes[n].agent)),
            Column("what changes", lambda n: changes[n].kind),
            Column("from", lambda n: write(n, changes[n].old)),
            Column("to", lambda n: write(n, changes[n].new)),
            Samples("samples the plan then takes", total, short="samples then"),
        ),
        range(min(len(changes), LISTED)),
    )


def introduce_changes(plan: Plan) -> str:
    """Return what comes of each of the changes, and how likely."""
    known = plan.changes[0].probability
    if known is not None and known >= plan.options["probability"]:
        return (
            "Each of these changes alone makes a plan possible in which all agents reach their "
            f"goals with probability {write_requested(plan)}:"
        )
    return (
        "Each of these changes alone would make a plan possible, in which all agents reach their "
        "goals only on average:"
        if plan.measurement is not None
        else "Each of these changes alone would make a plan possible:"
    )


def introduce_together(plan: Plan) -> str:
    """Return how likely all agents are to reach the lower goals."""
    asked = write_requested(plan)
    return f"All agents reach these lower goals with probability {asked}:"


def list_together(plan: Plan) -> Records:
    """List the lower goals that all agents reach, next to those that they want."""
    return list_records(
        plan,
        "The highest goals that all agents reach, found by lowering those that are too high",
        Column("agent", plan.name),
        list_goal(plan),
        Column("lower goal", of_each(plan.together), write=format_goal),
        agents=list(range(plan.size)),
    )
