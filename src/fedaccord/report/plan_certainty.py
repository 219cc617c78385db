"""How sure a plan is: accuracies, defectors, and the price of certainty."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from fedaccord._checks import Vector
from fedaccord.planning.result import Certainty, Plan
from fedaccord.planning.sentences import write_requested
from fedaccord.report.model import Cell, Column, Mark, Records, Tone, choose_rows, name_rows
from fedaccord.report.plan_contributions import (
    COLUMNS,
    ENDS,
    Fractions,
    Probabilities,
    Samples,
    choose_agents,
    list_chance,
    list_goal,
    list_records,
    of_agents,
    of_each,
)
from fedaccord.wording import format_part, format_requested, format_uncertain, join_with_and

# A defector that reaches its goal this often stands out, and one that does this rarely too.
LOOSE, FIRM = 0.5, 0.1


def list_chances(plan: Plan) -> Records:
    """List what each may expect of one run, and of one in which it alone gives less."""
    given, runs = plan.contributions, plan.runs
    low, high = (None, None) if runs is None else (runs.low, runs.high)

    def cut(level: float, agent: int) -> float | None:
        """Return the chance of an agent that gives less, if it gives anything."""
        return float(plan.cuts[level][agent]) if given is not None and given[agent] else None

    return list_records(
        plan,
        "Accuracies under the plan, with 95 % intervals, and P(goal): the probability that a run "
        "reaches the goal",
        *name_rows(plan.name),
        list_goal(plan),
        Fractions("target", of_each(plan.aims)),
        Fractions("expected", of_agents(plan.accuracy), ends=ENDS, where="page"),
        Fractions("one run reaches", of_agents(plan.runs), where="terminal"),
        Fractions("one run from", of_each(low), where="page"),
        Fractions("to", of_each(high), where="page"),
        replace(list_chance(plan), where="page"),
        *(
            Probabilities(
                f"P(goal)\nwith {format_part(level)}", partial(cut, level), where="terminal"
            )
            for level in plan.cuts
        ),
        *(replace(column, where="terminal") for column in _list_others(plan)),
    )


def list_cuts(plan: Plan, agents: list[int]) -> Records:
    """List how often each of these would reach its goal though it alone gives less."""

    def mark(level: float, agent: int) -> Mark:
        value = float(plan.cuts[level][agent])
        tone: Tone = "bad" if value >= LOOSE else "good" if value <= FIRM else "unsure"
        return Mark(format_uncertain(value), tone)

    return list_records(
        plan,
        "P(goal) of an agent that alone gives part of its contribution",
        Column("agent", plan.name),
        Samples("gives", of_each(plan.contributions)),
        list_chance(plan),
        *(Column(f"with {format_part(level)}", partial(mark, level)) for level in plan.cuts),
        *_list_others(plan),
        agents=agents,
    )


def _list_others(plan: Plan) -> list[Column]:
    """Return what becomes of the others if a contributor gives only the least level."""
    if plan.others is None:
        return []
    least = format_part(min(plan.cuts))
    given, others = np.asarray(plan.contributions), plan.others

    def reach(agent: int) -> float | None:
        return float(others[agent]) if given[agent] else None

    return [
        Probabilities(
            f"P(all others) with {least}",
            reach,
            trim=lambda value: round(min(value, 0.99), 2),
            short="others",
        )
    ]


def list_certainties(plan: Plan) -> Records:
    """List what other probabilities that all agents reach their goals would take."""
    rows = plan.certainties
    level = format_part(min(plan.options["levels"]))

    def name(n: int) -> Cell:
        probability = format_requested(rows[n].probability)
        if rows[n].probability != plan.options["probability"]:
            return probability
        if rows[n].contributions is None:
            return Mark(f"{write_requested(plan)}, requested", "bad")
        return Mark(f"{probability}, the plan", "good")

    def total(n: int) -> float | None:
        given = rows[n].contributions
        return None if given is None else float(given.sum())

    def column(agent: int) -> Column:
        def given(n: int) -> float | None:
            row = rows[n].contributions
            return None if row is None else float(row[agent])

        return Samples(plan.name(agent), given)

    places = list(range(len(rows)))
    return Records(
        "The price of certainty: what each gives for P(all), the probability that all agents "
        "reach their goals. A dash means that no stable plan reaches this probability",
        (
            Column("P(all)", name),
            Samples("all", total),
            *map(column, _choose_givers(plan)),
            Probabilities(
                f"P(goal) with {level}, mean",
                lambda n: rows[n].cut,
                short=f"P(goal) with\n{level}, mean",
            ),
        ),
        places,
    )


def _choose_givers(plan: Plan) -> list[int]:
    """Return the agents that have a column: all, or of many those that give most in some row."""
    given = [row.contributions for row in plan.certainties if row.contributions is not None]
    if plan.size <= COLUMNS or not given:
        return choose_agents(plan, most=COLUMNS, few=COLUMNS)
    most = np.max(given, axis=0)
    return [agent for agent in choose_rows(most, most=COLUMNS, few=COLUMNS) if most[agent] > 0]


def describe_falls(plan: Plan) -> str:
    """Return which agents give less where all are surer, and why; nothing where none does.

    The others' samples then have to be worth more to such an agent: its target is no lower, and it
    reached no more than its target before.
    """
    shown = _choose_givers(plan)
    rows = [row for row in plan.certainties if row.contributions is not None]
    if len(rows) < 2:
        return ""
    low, high = max(pairwise(rows), key=lambda pair: _find_falls(*pair)[shown].sum())
    falls = _find_falls(low, high)
    names = [plan.name(agent) for agent in shown if falls[agent]]
    if not names:
        return ""
    verb, whose = ("gives", "its") if len(names) == 1 else ("give", "their")
    then = format_requested(high.probability)
    reason = f"the others' samples then replace more of {whose} own"
    before_giving, then_giving = (np.asarray(row.contributions) > 0 for row in (low, high))
    if (before_giving != then_giving).any():
        gone, new = (before_giving & ~then_giving).any(), (then_giving & ~before_giving).any()
        which = "other" if gone and new else "fewer" if gone else "more"
        reason = f"the plan for {then} has {which} contributors"
    before = format_requested(low.probability)
    return f"{join_with_and(names)} {verb} less at {then} than at {before}: {reason}."


def _find_falls(low: Certainty, high: Certainty) -> Vector:
    """Return how much less each agent gives at the higher probability; 0 for more, or rounding."""
    before, after = np.asarray(low.contributions), np.asarray(high.contributions)
    # A sample, or one in a hundred, is what rounding does.
    is_less = before - after > np.maximum(1.0, 0.01 * before)
    return np.where(is_less, before - after, 0.0)
