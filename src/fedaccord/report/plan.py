"""A plan as tables and sentences: what a terminal and the plan's page both show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Status
from fedaccord.planning.probabilities import Estimate, Estimates
from fedaccord.planning.result import Outcome, Plan, round_up
from fedaccord.planning.sentences import format_uncertain, has_costs, write_change, write_requested
from fedaccord.report.model import (
    FEW,
    MANY,
    Cell,
    Column,
    Estimated,
    Mark,
    Place,
    Records,
    Table,
    Tone,
    choose_rows,
    keep_finite,
    name_rows,
)
from fedaccord.wording import (
    capitalize_first,
    format_goal,
    format_interval,
    format_number,
    format_part,
    format_probability,
    format_range,
    format_samples,
    format_short_probability,
    join_with_and,
    shorten,
)

# Up to how many agents a page lists; of more, the agents that give most.
ROWS = 500
# The most agents that have a column in the table of certainties.
COLUMNS = 6
# The most equilibria that the table of a terminal lists.
LISTED = 8
CONCEPTS = ("optimal", "stable", "envy-free")
# The most sentences about doubts.
DOUBTS = 12
# Intervals leave out this part of the resamples anyway.
LEFT_OUT = 0.05
# A defector that reaches its goal this often stands out, and one that does this rarely too.
LOOSE, FIRM = 0.5, 0.1
ENDS = ("from", "to")
TONES: dict[Outcome, Tone] = {
    Outcome.PLANNED: "good",
    Outcome.LESS_SURE: "bad",
    Outcome.UNREACHABLE: "bad",
    Outcome.UNSTABLE: "bad",
}


def show_plan(plan: Plan) -> Iterator[str | Mark | Table]:
    """Return what a terminal shows: the verdict, who gives what, how sure it is, the rest."""
    yield Mark(plan.verdict, TONES[plan.outcome])
    doubts = list_doubts(plan)
    yield from (Mark(sentence, "unsure") for sentence in plan.assumed)
    yield from (Mark(f"Doubt: {sentence}", "unsure") for sentence in doubts[:DOUBTS])
    if len(doubts) > DOUBTS:
        yield Mark(f"And {len(doubts) - DOUBTS} more doubts; --json lists them.", "unsure")
    yield from _show_shares(plan) if plan.contributions is not None else _show_none(plan)
    if plan.solutions:
        yield (
            "Without a safety margin, agents reach their goals only on average:"
            if (plan.measurement is not None)
            else "Other plans, before rounding to whole samples:"
        )
        yield list_bare(plan).table("terminal")
        yield from describe_bare(plan)


def _show_none(plan: Plan) -> Iterator[str | Mark | Table]:
    if plan.unreachable:
        yield list_reach(plan).table("terminal")
    if plan.changes:
        yield introduce_changes(plan)
        yield list_changes(plan).table("terminal")
    if plan.together is not None:
        yield introduce_together(plan)
        yield list_together(plan).table("terminal")


def _show_shares(plan: Plan) -> Iterator[str | Mark | Table]:
    yield list_shares(plan).table("terminal")
    yield from describe_shares(plan, "terminal")
    if plan.satisfied is not None:
        yield list_chances(plan).table("terminal")
        some = format_part(next(iter(plan.cuts), 0.0))
        yield (
            f"One run: expected accuracy, with the interval that holds 95 % of runs. P at {some}: "
            f"the probability that an agent reaches its goal if it alone gives {some} of its "
            "contribution."
        )
        if plan.others is not None:
            least = format_part(min(plan.cuts))
            yield (
                "Others: the probability that all other agents reach their goals if this one gives "
                f"{least} of its contribution."
            )
    if plan.certainties:
        yield list_certainties(plan).table("terminal")
    if len(plan.tradeoffs) > 1:
        yield list_tradeoffs(plan).table("terminal")
    if plan.tradeoffs:
        yield describe_tradeoffs(plan)
    if plan.size <= FEW:
        yield ""
        yield "The plan, agent by agent:"
        yield from (plan.explain(agent) for agent in range(plan.size))
        yield ""


def choose_agents(plan: Plan, *, most: int = MANY, few: int = FEW) -> list[int]:
    """Return the agents to list: all, or the agents that give most."""
    weights = plan.game.alone if plan.contributions is None else plan.contributions
    return choose_rows(weights, most=most, few=few)


def list_doubts(plan: Plan) -> tuple[str, ...]:
    """Return what is doubted, in sentences that the verdict does not have already."""
    known = {one.agent for one in plan.unreachable}
    said = ("saturation-below-goal", "extrapolation")
    return tuple(
        one.sentence for one in plan.doubts if one.agent not in known or one.kind not in said
    )


# Cells.


def _of_agents(values: Estimates | None) -> Callable[[int], Estimated | None]:
    if values is None:
        return lambda agent: None
    return lambda i: Estimated(values[i].value, values[i].low, values[i].high)


def _of_each(values: Vector | None) -> Callable[[int], float | None]:
    return lambda agent: None if values is None else float(values[agent])


def _trim_samples(value: float) -> float:
    """Round a number of samples to a whole one: no fit knows it better."""
    return float(math.floor(value + 0.5)) if math.isfinite(value) else value


_trim_share = partial(round, ndigits=3)
_Samples = partial(Column, write=format_samples, trim=_trim_samples)
_Share = partial(Column, write="{:.3f}".format, trim=_trim_share)
_Probability = partial(Column, write=format_short_probability, trim=partial(round, ndigits=2))


def _goal(plan: Plan) -> Column:
    return Column("goal", _of_each(plan.goals), write=format_goal)


def _records(
    plan: Plan, caption: str, *columns: Column, agents: list[int] | None = None
) -> Records:
    page = choose_agents(plan, most=ROWS, few=ROWS) if agents is None else agents
    return Records(caption, columns, page, choose_agents(plan))


# Who gives what.


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


def list_shares(plan: Plan) -> Records:
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
        return None if agent in plan.recipients else _of_agents(alone)(agent)

    return _records(
        plan,
        "Samples that each agent gives in the plan, and would need alone for the same target",
        *_name_totals(plan),
        *([] if plan.goals is None else [_goal(plan)]),
        _Samples("plan", share, sums=_sum_up(plan, given, plan.total), ends=ENDS),
        *_reserve(plan),
        _Samples(
            "alone, same target" if plan.z > 0 else "alone",
            need,
            sums=_sum_up(plan, None if plan.recipients else alone.values),
            ends=ENDS,
        ),
        *(
            []
            if plan.satisfied is None
            else [_chance(plan, sums=() if everyone is None else (everyone.value,))]
        ),
        *(
            [_Samples("limit", lambda i: keep_finite(float(game.limits[i])), where="page")]
            if limited
            else []
        ),
        *([Column("cost of a sample", _of_each(game.costs), where="page")] * has_costs(plan)),
    )


def _reserve(plan: Plan) -> list[Column]:
    if plan.reserve is None:
        return []
    sums = [total.value for total in _sum_up(plan, plan.reserve)]
    return [_Samples("reserve", _of_each(plan.reserve), sums=sums)]


def _describe_reserve(plan: Plan) -> Iterator[str]:
    """Say what a reserve is, and what the reserves cannot make up for."""
    if plan.reserve is None:
        return
    yield (
        "Reserve: samples that an agent keeps ready. They are called only if another agent does "
        "not deliver its contribution."
    )
    if plan.uncovered:
        names = list(plan.uncovered)
        whose = (
            join_with_and(names[:COLUMNS]) if len(names) <= COLUMNS else f"{len(names):,} agents"
        )
        yield f"The reserves cannot make up for a failure of {whose}."


def _chance(plan: Plan, *, sums: Sequence[Cell | Estimated] = ()) -> Column:
    # What is not certain does not read as if it were.
    return _Probability(
        "P(goal)",
        _of_each(plan.satisfied),
        trim=lambda value: round(min(value, 0.99), 2),
        sums=sums,
    )


def describe_shares(plan: Plan, place: Place) -> Iterator[str]:
    """Say what the columns of the plan's table are, as a place shows them."""
    known = [e for e in (plan.real, plan.with_margin) if e is not None and e.low is not None]
    if known:
        ends = "In brackets are" if place == "terminal" else "From and to are the ends of"
        yield f"{ends} 95 % intervals, over the curves that fit the pilots."
    elif plan.measurement is None:
        yield "There are no intervals, because there are no pilots."
    yield from _describe_reserve(plan)
    if plan.z > 0:
        chance = "P(goal): the probability that an agent reaches its goal in one run."
        yield f"Alone, same target: what an agent would need without the others. {chance}"
    if any(e.high is not None and np.isinf(e.high).any() for e in known):
        never = "some curves that fit the pilots never reach the goal"
        yield f"An interval has no upper end if {never}."
    if plan.aims_missed > LEFT_OUT:
        yield from _describe_left_out(
            plan.aims_missed, "some target is out of reach", "of the plan and its total"
        )


def list_bare(plan: Plan) -> Records:
    """List the plans of the theory: each agent reaches its goal on average, without a margin."""

    def column(concept: str) -> Column:
        solution = plan.solutions.get(concept)
        given = (
            None if solution is None or solution.contributions is None else solution.contributions
        )
        values = None if given is None else round_up(given)
        return _Samples(concept, _of_each(values), sums=[e.value for e in _sum_up(plan, values)])

    low, high = (None, None) if plan.alone is None else (plan.alone.low, plan.alone.high)
    ends = (None if end is None else round_up(end) for end in (low, high))
    alone = Estimates(round_up(plan.bare.alone), *ends)
    return _records(
        plan,
        "Samples that each agent gives without a safety margin",
        *_name_totals(plan),
        _Samples(
            "alone",
            lambda i: None if i in plan.recipients else _of_agents(alone)(i),
            sums=_sum_up(plan, None if plan.recipients else alone.values),
            ends=ENDS,
        ),
        *map(column, CONCEPTS),
    )


def describe_bare(plan: Plan) -> Iterator[str]:
    """Say how sure the totals and prices of the plans without a safety margin are."""
    known = [
        f"{name} {format_interval(*_round_total(plan, name), format_samples)}"
        for name, t in plan.totals.items()
        if t.low is not None and t.high is not None
    ]
    if known:
        again = len(plan.measurement.resamples) if plan.measurement else 0
        missing = f"No interval for the envy-free plan (it would take {again} solves)."
        yield f"Totals with 95 % intervals: {', '.join(known)}. {missing}"
    if plan.goals_missed > LEFT_OUT:
        yield from _describe_left_out(
            plan.goals_missed, "no such plan meets all goals", "of these totals and prices"
        )
    open_ended = [n for n, s in plan.solutions.items() if s.status is Status.LIMIT]
    if open_ended:
        yield f"Not proved to be the cheapest of their kind: {', '.join(open_ended)}."
    for name, price in plan.prices.items():
        found = plan.price_of_stability
        if name == "price of stability" and found is not None and found.low is not None:
            yield f"Price of stability: {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]."
        else:
            note = f" ({price.note.rstrip('.')})" if price.note else ""
            value = format_range(price.lower, price.upper, format_number)
            yield f"{capitalize_first(name)}: {value}{note}."


def _round_total(plan: Plan, concept: str) -> tuple[float, float, float]:
    """Return what a plan costs in whole samples, as its table has it, and the interval of that."""
    given = np.asarray(plan.solutions[concept].contributions)
    found = plan.totals[concept]
    low, high = round_up(np.array([found.low, found.high])).tolist()
    return plan.game.total(round_up(given)), low, high


def _describe_left_out(part: float, what: str, whose: str) -> Iterator[str]:
    """Say how many resamples the intervals leave out, and why."""
    if part > 0.5:
        yield f"In {format_part(part)} of the resamples, {what}. There are no intervals {whose}."
    else:
        left = f"The intervals {whose} leave these resamples out."
        yield f"In {format_part(part)} of the resamples, {what}. {left}"


# How sure it is.


def list_chances(plan: Plan) -> Records:
    """List what each may expect of one run, and of one in which it alone gives less."""
    given, runs = plan.contributions, plan.runs
    low, high = (None, None) if runs is None else (runs.low, runs.high)

    def cut(level: float, agent: int) -> float | None:
        """Return the chance of an agent that gives less, if it gives anything."""
        return float(plan.cuts[level][agent]) if given is not None and given[agent] else None

    return _records(
        plan,
        "Accuracies under the plan, with 95 % intervals, and P(goal): the probability that a run "
        "reaches the goal",
        *name_rows(plan.name),
        _goal(plan),
        _Share("target", _of_each(plan.aims)),
        _Share("expected", _of_agents(plan.accuracy), ends=ENDS, where="page"),
        _Share("one run reaches", _of_agents(plan.runs), where="terminal"),
        _Share("one run from", _of_each(low), where="page"),
        _Share("to", _of_each(high), where="page"),
        replace(_chance(plan), where="page"),
        *(
            _Probability(f"P at {format_part(level)}", partial(cut, level), where="terminal")
            for level in plan.cuts
        ),
        *(replace(column, where="terminal") for column in _others(plan)),
    )


def list_cuts(plan: Plan, agents: list[int]) -> Records:
    """List how often each of these would reach its goal though it alone gives less."""

    def mark(level: float, agent: int) -> Mark:
        value = float(plan.cuts[level][agent])
        tone: Tone = "bad" if value >= LOOSE else "good" if value <= FIRM else "unsure"
        return Mark(format_uncertain(value), tone)

    return _records(
        plan,
        "P(goal) of an agent that alone gives part of its contribution",
        Column("agent", plan.name),
        _Samples("gives", _of_each(plan.contributions)),
        _chance(plan),
        *(Column(f"with {format_part(level)}", partial(mark, level)) for level in plan.cuts),
        *_others(plan),
        agents=agents,
    )


def _others(plan: Plan) -> list[Column]:
    """Return what becomes of the others if a contributor gives only the least level."""
    if plan.others is None:
        return []
    least = format_part(min(plan.cuts))
    given, others = np.asarray(plan.contributions), plan.others

    def reach(agent: int) -> float | None:
        return float(others[agent]) if given[agent] else None

    return [
        _Probability(
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
        probability = format_probability(rows[n].probability)
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

        return _Samples(plan.name(agent), given)

    places = list(range(len(rows)))
    return Records(
        "The price of certainty: what each gives for P(all), the probability that all agents "
        "reach their goals. A dash means that no stable plan reaches this probability",
        (
            Column("P(all)", name),
            _Samples("all", total),
            *map(column, choose_agents(plan, most=COLUMNS, few=COLUMNS)),
            _Probability(
                f"P(goal) with {level}, mean", lambda n: rows[n].cut, short=f"P at {level}"
            ),
        ),
        places,
    )


# Which equilibrium.


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
        _Probability("P(all)", lambda n: options[n].everyone),
        _Probability(
            f"P(goal) with {level}, mean", lambda n: options[n].cut, short=f"P at {level}"
        ),
    )
    own = _Share(
        "own part, mean", lambda n: options[n].own_part, short="own part", write=format_part
    )
    return Records(
        "The equilibria, before rounding",
        (
            Column("no.", name, short="equilibrium"),
            Column("contributors", givers, where="page"),
            Column("contributors", lambda n: f"{len(options[n].contributors):,}", where="terminal"),
            _Samples("total", lambda n: options[n].total),
            *(chances if measured else [own]),
            _Samples("largest contribution", largest, where="page"),
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
    """Say how many equilibria there are, and how the plan was chosen among them.

    plan: chosen among equilibria.
    hint: whether to name the option that would choose another.
    """
    number = len(plan.tradeoffs)
    if number == 1 and plan.complete:
        return f"There is no other stable plan{_at_margins(plan)}."
    if number == 1:
        few = "With this many agents, not all could be searched."
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
    return " for these safety margins" if plan.z > 0 else ""


# Without a plan.


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
            _goal(plan),
            Column("is", mark, where="page"),
            _Share("most it can reach", _of_agents(plan.nearest), ends=ENDS),
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
            _Samples("samples the plan then takes", total, short="samples then"),
        ),
        range(min(len(changes), LISTED)),
    )


def introduce_changes(plan: Plan) -> str:
    """Say what comes of each of the changes, and how likely."""
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
    """Say how likely all agents reach the lower goals."""
    asked = write_requested(plan)
    return f"All agents reach these lower goals with probability {asked}:"


def list_together(plan: Plan) -> Records:
    """List the lower goals that all agents reach, next to those that they want."""
    return _records(
        plan,
        "The highest goals that all agents reach, found by lowering those that are too high",
        Column("agent", plan.name),
        _goal(plan),
        Column("lower goal", _of_each(plan.together), write=format_goal),
        agents=list(range(plan.size)),
    )


# The three questions.


def answer_questions(plan: Plan) -> Iterator[tuple[str, Mark, str]]:
    """Return whether all reach their goals, whether any could give less, and whether any envies."""
    margin = " and keep its safety margin" if plan.z > 0 else ""
    reach, less, envy = (
        "Do all agents reach their goals?",
        f"Could an agent give less{margin}?",
        "Does an agent envy another?",
    )
    if plan.contributions is None:
        nothing = Mark("there is no plan", "bad")
        yield reach, nothing, "not feasible"
        yield less, nothing, "not stable"
        yield envy, nothing, "not envy-free"
        return
    yield reach, _answer_reach(plan), _name_certainty(plan)
    yield less, _answer_less(plan), "stable"
    envious = next((t.envious for t in plan.tradeoffs if t.chosen), ())
    names = [plan.name(agent) for agent in envious]
    said = join_with_and(names) if len(names) <= COLUMNS else f"{len(names):,} agents do"
    answer = Mark(f"yes: {said}", "bad") if names else Mark("no", "good")
    yield envy, answer, "not envy-free" if names else "envy-free"


def _answer_reach(plan: Plan) -> Mark:
    if plan.everyone is None:
        return Mark("on average, by the numbers of the game", "unsure")
    asked = write_requested(plan)
    said = f"with probability {format_uncertain(plan.everyone.value)}; {asked} was requested"
    return Mark(said, TONES[plan.outcome])


def _name_certainty(plan: Plan) -> str:
    if plan.everyone is None:
        return "feasible"
    return "sure enough" if plan.outcome is Outcome.PLANNED else "not sure enough"


def _answer_less(plan: Plan) -> Mark:
    rounded = "" if plan.whole else ", apart from rounding up"
    cut = mean_cut(plan)
    if cut is None or cut < LOOSE:
        return Mark(f"no{rounded}", "good")
    return Mark(f"no{rounded}; but it may still reach its goal without the margin", "unsure")


# What words and symbols mean.


def list_symbols(plan: Plan) -> Iterator[tuple[str, str]]:
    """Return the words and symbols of a plan's page, each with what it means."""
    measured = plan.measurement is not None
    least = format_part(min(plan.options["levels"]))
    if plan.goals is not None:
        yield "goal", "the accuracy that an agent wants"
    if plan.z > 0:
        yield "target", "an agent's goal plus a safety margin"
        yield "safety margin", f"{plan.z:.2f} times the scatter of the agent's runs"
        yield "alone, same target", "what an agent would need without the others for its target"
    else:
        yield "alone", "what an agent would need without the others"
    yield "contribution", "how many samples an agent gives"
    if measured:
        yield "P(goal)", "the probability that an agent reaches its goal in one run"
        yield "P(all)", "the probability that all agents reach their goals in the same run"
        yield (
            f"P at {least}, with {least}",
            f"P(goal) of an agent that alone gives {least} of its contribution",
        )
        if plan.others is not None:
            yield (
                f"P(all others) with {least}",
                "the probability that all other agents reach their goals if this agent gives "
                f"{least} of its contribution",
            )
        yield "from, to", "the ends of the 95 % interval, over the curves that fit the pilots"
        yield (
            "resample",
            "a curve for each agent, drawn from the curves that fit the pilots",
        )
    yield "contributor", "an agent that gives something"
    yield "defector", "an agent that gives less than the plan asks"
    yield "equilibrium", "a plan in which no agent could give less and still expect its target"
    yield (
        ("sure enough", "all agents reach their goals with the requested probability")
        if measured
        else ("feasible", "all agents reach their goals")
    )
    yield "stable", "no agent could give less while the others keep to the plan"
    yield "envy-free", "no agent would be better off with the contribution of another"
    yield "optimal", "no plan that reaches the goals has a smaller total"
    if plan.prices:
        yield "price of stability", "the total of the stable plan, divided by that of the optimal"
        yield "price of fairness", "the total of the envy-free plan, divided by the optimal"
    yield "–", "there is no such number"
