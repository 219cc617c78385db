"""What each agent gives, in the plan and without a safety margin, and how sure a plan is.

Here are also the columns that all tables of a plan share, and the choice of the agents to list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.whole import round_up
from fedaccord.games.chances import Judged
from fedaccord.planning.probabilities import Estimate, Estimates
from fedaccord.planning.result import Certainty, Plan
from fedaccord.planning.sentences import find_driver, has_costs, write_requested
from fedaccord.report.games_chances import JUDGED
from fedaccord.report.model import (
    FEW,
    MANY,
    Cell,
    Column,
    Estimated,
    Mark,
    Place,
    Records,
    Tone,
    choose_rows,
    keep_finite,
    name_rows,
)
from fedaccord.wording import (
    ALONE,
    ALONE_FOR_GOAL,
    capitalize_first,
    format_goal,
    format_interval,
    format_part,
    format_range,
    format_requested,
    format_samples,
    format_short_probability,
    format_uncertain,
    join_with_and,
    name_alone,
)

CONCEPTS = ("optimal", "stable", "envy-free")
# Intervals leave out this part of the resamples anyway.
LEFT_OUT = 0.05
# Up to how many agents a page lists; of more, the agents that give most.
ROWS = 500
# The most agents that a table has columns for, or a sentence names.
COLUMNS = 6
ENDS = ("from", "to")
# A defector that reaches its goal this often stands out, and one that does this rarely too.
LOOSE, FIRM = 0.5, 0.1


def list_contributions(plan: Plan) -> Records:
    """List what each gives in the plan, what it would need alone, and how sure it is."""
    game, given = plan.game, plan.contributions
    limited = bool(np.isfinite(game.limits).any())
    alone, everyone = plan.alone_as_sure, plan.everyone

    def share(agent: int) -> Estimated | None:
        """Return what the plan asks of an agent, and what it might have asked."""
        if given is None or plan.real is None:
            return None
        low, high = plan.real[agent].low, plan.real[agent].high
        # An agent that gives the same under every curve needs no interval.
        if low is None or high is None or low == high:
            return Estimated(float(given[agent]))
        return Estimated(float(given[agent]), *round_up(np.array([low, high])).tolist())

    def need(agent: int) -> Estimated | None:
        return None if agent in plan.recipients else of_agents(alone)(agent)

    goal = "the same target" if plan.z > 0 else "its goal"
    return list_records(
        plan,
        f"Samples that each agent gives in the plan, and would need alone for {goal}",
        *_name_totals(plan),
        *([] if plan.goals is None else [list_goal(plan)]),
        Samples("plan", share, sums=_sum_up(plan, given, plan.total), ends=ENDS),
        *_reserve(plan),
        Samples(
            name_alone(plan.z > 0),
            need,
            sums=_sum_up(plan, None if plan.recipients else alone.values),
            ends=ENDS,
        ),
        *(
            []
            if plan.satisfied is None
            else [
                list_chance(
                    plan,
                    sums=() if everyone is None else (everyone.value, None)[: 1 + has_costs(plan)],
                )
            ]
        ),
        *(
            [Samples("limit", lambda i: keep_finite(float(game.limits[i])), where="page")]
            if limited
            else []
        ),
        *([Column("cost of a sample", of_each(game.costs), where="page")] * has_costs(plan)),
    )


def describe_contributions(plan: Plan, place: Place) -> Iterator[str]:
    """Return what the columns of the plan's table are, as a place shows them."""
    known = [e for e in (plan.real, plan.with_margin) if e is not None and e.low is not None]
    if known:
        ends = "Brackets show" if place == "terminal" else "From and to are the ends of"
        yield f"{ends} 95 % intervals, over the curves that fit the pilots."
    elif plan.measurement is None:
        yield "There are no intervals, because there are no pilots."
    if plan.reseeded is not None and not plan.reseeded.is_much and plan.reseeded.away > 0:
        yield plan.reseeded.describe(write_requested(plan))
    yield from _describe_reserve(plan)
    if plan.z > 0:
        chance = "P(goal): the probability that an agent reaches its goal in one run."
        without = "what an agent would need without the others to reach its target"
        yield f"Alone, same target: {without}. {chance}"
    # A page has it among what is assumed.
    if plan.satisfied is not None and place == "terminal":
        yield _describe_judgement(plan)
    yield from _describe_limits(plan)
    if any(e.high is not None and np.isinf(e.high).any() for e in known):
        never = "some curves that fit the pilots never reach the goal"
        yield f"An interval has no upper end if {never}."
    if plan.aims_missed > LEFT_OUT:
        yield from _describe_left_out(
            plan.aims_missed, "some target is out of reach", "of the plan and its total"
        )


def _describe_judgement(plan: Plan) -> str:
    """Return what counts as a goal reached, and how to plan for one measurement instead."""
    judged: Judged = plan.options["judged"]
    other = " If one measurement will decide, plan with --judged measured."
    return f"{JUDGED[judged]}{other * (judged == 'true')}"


def _describe_limits(plan: Plan) -> Iterator[str]:
    """Return which agents give their limits, and that the others may have to give more."""
    given, game = np.asarray(plan.contributions), plan.game
    full = np.flatnonzero((given >= game.limits) & (game.limits > game.minimums))
    if not full.size or plan.size == 1:
        return
    whom = _join_few([plan.name(agent) for agent in full.tolist()])
    if full.size == 1:
        give, ask = "gives its limit", f"Ask {whom} to show why it cannot"
    else:
        give, ask = "give their limits", "Ask them to show why they cannot"
    yield f"{whom} {give}, so the others may have to give more. {ask} give more."
    driver = find_driver(plan)
    if driver is not None:
        yield (
            f"{plan.name(driver)} is the least likely to reach its goal. So the agents below their "
            "limits have larger safety margins."
        )


def _join_few(names: list[str]) -> str:
    """Return the names, or how many there are if these are too many for a sentence."""
    return join_with_and(names) if len(names) <= COLUMNS else f"{len(names):,} agents"


def _reserve(plan: Plan) -> list[Column]:
    if plan.reserve is None:
        return []
    sums = [total.value for total in _sum_up(plan, plan.reserve)]
    return [Samples("reserve", of_each(plan.reserve), sums=sums)]


def _describe_reserve(plan: Plan) -> Iterator[str]:
    """Return what a reserve is, and what the reserves cannot make up for."""
    if plan.reserve is None:
        return
    yield (
        "Reserve: samples that an agent keeps ready. They are called only if another agent does "
        "not deliver its contribution."
    )
    if plan.uncovered:
        whose = _join_few(list(plan.uncovered))
        yield f"The reserves cannot make up for a failure of {whose}."


def list_bare(plan: Plan) -> Records:
    """List the plans of the theory: each agent reaches its goal on average, without a margin."""

    def column(concept: str) -> Column:
        solution = plan.solutions.get(concept)
        given = (
            None if solution is None or solution.contributions is None else solution.contributions
        )
        values = None if given is None else round_up(given)
        return Samples(concept, of_each(values), sums=[e.value for e in _sum_up(plan, values)])

    low, high = (None, None) if plan.alone is None else (plan.alone.low, plan.alone.high)
    ends = (None if end is None else round_up(end) for end in (low, high))
    alone = Estimates(round_up(plan.bare.alone), *ends)
    return list_records(
        plan,
        "Samples that each agent gives without a safety margin",
        *_name_totals(plan),
        Samples(
            ALONE_FOR_GOAL if plan.z > 0 else ALONE,
            lambda i: None if i in plan.recipients else of_agents(alone)(i),
            sums=_sum_up(plan, None if plan.recipients else alone.values),
            ends=ENDS,
        ),
        *map(column, CONCEPTS),
    )


def describe_bare(plan: Plan) -> Iterator[str]:
    """Return how sure the totals and prices of the plans without a safety margin are."""
    stable = plan.solutions.get("stable")
    if plan.contributions is not None and stable is not None and stable.contributions is None:
        proved = stable.status is Status.NONE_EXISTS
        said = "there is no stable plan" if proved else "no stable plan was found"
        yield (
            f"Without a safety margin, {said} within the limits. With safety margins, the others "
            "give more. So an agent at its limit reaches its goal too."
        )
    known = [n for n, t in plan.totals.items() if t.low is not None and t.high is not None]
    for name in known:
        total = format_interval(*_round_total(plan, name), format_samples)
        yield f"Total of the {name} plan, with its 95 % interval: {total}."
    if known:
        again = len(plan.measurement.resamples) if plan.measurement else 0
        yield f"No interval for the envy-free plan (it would take {again} solves)."
    if plan.goals_missed > LEFT_OUT:
        yield from _describe_left_out(
            plan.goals_missed, "no stable plan reaches all goals", "of these totals and prices"
        )
    open_ended = [n for n, s in plan.solutions.items() if s.status is Status.LIMIT]
    if open_ended:
        names = ", ".join(open_ended)
        yield f"These plans are not proved to be the cheapest of their kind: {names}."
    for name, price in plan.prices.items():
        found = plan.price_of_stability
        if name == "price of stability" and found is not None and found.low is not None:
            yield f"Price of stability: {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]."
        else:
            note = f" {price.note}" if price.note else ""
            value = format_range(price.lower, price.upper, "{:.3f}".format)
            yield f"{capitalize_first(name)}: {value}.{note}"


def _round_total(plan: Plan, concept: str) -> tuple[float, float, float]:
    """Return what a plan costs in whole samples, as its table has it, and the interval of that."""
    given = np.asarray(plan.solutions[concept].contributions)
    found = plan.totals[concept]
    low, high = round_up(np.array([found.low, found.high])).tolist()
    return plan.game.total(round_up(given)), low, high


def _describe_left_out(part: float, what: str, whose: str) -> Iterator[str]:
    """Return how many resamples the intervals leave out, and why."""
    if part > 0.5:
        yield f"In {format_part(part)} of the resamples, {what}. There are no intervals {whose}."
    else:
        left = f"These resamples are not in the intervals {whose}."
        yield f"In {format_part(part)} of the resamples, {what}. {left}"


def _name_totals(plan: Plan) -> tuple[Column, Column]:
    rest = plan.size - len(choose_agents(plan))
    return name_rows(
        plan.name,
        terminal=("all (samples)", "total cost") if has_costs(plan) else ("all",),
        page=("all", "total cost")[: 1 + has_costs(plan)],
        rest=f"and {rest:,} others" if rest else "",
    )


def _sum_up(plan: Plan, values: Vector | None, ends: Estimate | None = None) -> list[Estimated]:
    """Return what all give together, and what it costs where samples have costs."""
    totals = [None, None] if values is None else [float(values.sum()), plan.game.total(values)]
    found = [Estimated(total) for total in totals[: 1 + has_costs(plan)]]
    # The interval of the total is that of what it costs, the same where samples cost alike.
    if ends is not None:
        found[-1] = Estimated(found[-1].value, ends.low, ends.high)
    return found


# How sure a plan is: accuracies, defectors, and the price of certainty.


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


# What the tables of a plan share.


def choose_agents(plan: Plan, *, most: int = MANY, few: int = FEW) -> list[int]:
    """Return the agents to list: all, or the agents that give most."""
    weights = plan.game.alone if plan.contributions is None else plan.contributions
    return choose_rows(weights, most=most, few=few)


def of_agents(values: Estimates | None) -> Callable[[int], Estimated | None]:
    """Return what a column shows of each agent: an estimate with its interval."""
    if values is None:
        return lambda agent: None
    return lambda i: Estimated(values[i].value, values[i].low, values[i].high)


def of_each(values: Vector | None) -> Callable[[int], float | None]:
    """Return what a column shows of each agent: a number."""
    return lambda agent: None if values is None else float(values[agent])


def _trim_samples(value: float) -> float:
    """Round a number of samples to a whole one: no fit knows it better."""
    return float(math.floor(value + 0.5)) if math.isfinite(value) else value


# Samples are whole, accuracies and parts have three digits, probabilities two.
Samples = partial(Column, write=format_samples, trim=_trim_samples)
Fractions = partial(Column, write="{:.3f}".format, trim=partial(round, ndigits=3))
Probabilities = partial(Column, write=format_short_probability, trim=partial(round, ndigits=2))


def list_goal(plan: Plan) -> Column:
    """Return the column of goals."""
    return Column("goal", of_each(plan.goals), write=format_goal)


def list_chance(plan: Plan, *, sums: Sequence[Cell | Estimated] = ()) -> Column:
    """Return the column of the probabilities that agents reach their goals."""
    # What is not certain does not read as if it were.
    return Probabilities(
        "P(goal)",
        of_each(plan.satisfied),
        trim=lambda value: round(min(value, 0.99), 2),
        sums=sums,
    )


def list_records(
    plan: Plan, caption: str, *columns: Column, agents: list[int] | None = None
) -> Records:
    """Return a table with a row for each agent: of the page all or ROWS, of the terminal few."""
    page = choose_agents(plan, most=ROWS, few=ROWS) if agents is None else agents
    return Records(caption, columns, page, choose_agents(plan))
