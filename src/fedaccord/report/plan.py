"""A plan as tables and sentences: what a terminal and the plan's page both show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Status
from fedaccord.planning.probabilities import Estimate, Estimates
from fedaccord.planning.result import Outcome, Plan
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
    format_accuracy,
    format_interval,
    format_number,
    format_part,
    format_probability,
    format_range,
    format_samples,
    format_short_probability,
    shorten,
)

# Up to how many agents a page lists; of more, those who give most.
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
# A chance of at least this much of getting away with a cut stands out, one of at most this little
# too.
LOOSE, FIRM = 0.5, 0.1
ENDS = ("from", "to")
TONES: dict[Outcome, Tone] = {
    Outcome.PLANNED: "good",
    Outcome.LESS_SURE: "unsure",
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
    if plan.outcome is Outcome.UNREACHABLE:
        yield list_reach(plan).table("terminal")
        return
    yield list_shares(plan).table("terminal")
    yield from describe_shares(plan)
    if plan.satisfied is not None:
        yield list_chances(plan).table("terminal")
        some = format_part(next(iter(plan.cuts), 0.0))
        yield (
            f"What each may expect of one run under the plan. P at {some}: that it reaches its "
            f"goal though it alone gives {some} of its share."
        )
    if plan.certainties:
        yield list_certainties(plan).table("terminal")
    if len(plan.tradeoffs) > 1:
        yield list_tradeoffs(plan).table("terminal")
    if plan.tradeoffs:
        yield describe_tradeoffs(plan)
    if plan.contributions is not None and plan.size <= FEW:
        yield ""
        yield "The plan, agent by agent:"
        yield from (plan.explain(agent) for agent in range(plan.size))


def choose_agents(plan: Plan, *, most: int = MANY, few: int = FEW) -> list[int]:
    """Return the agents to list: all, or those who give most."""
    weights = plan.game.alone if plan.contributions is None else plan.contributions
    return choose_rows(weights, most=most, few=few)


def list_doubts(plan: Plan) -> tuple[str, ...]:
    """Return what is doubted, in sentences that the verdict does not have already."""
    return tuple(one.sentence for one in plan.doubts if one.sentence not in plan.verdict)


# Cells.


def _of_agents(values: Estimates | None) -> Callable[[int], Estimated | None]:
    if values is None:
        return lambda agent: None
    return lambda i: Estimated(values[i].value, values[i].low, values[i].high)


def _of_each(values: Vector | None) -> Callable[[int], float | None]:
    return lambda agent: None if values is None else float(values[agent])


def _trim_samples(value: float) -> float:
    """Round a number of samples to a whole one: no fit knows it better."""
    return float(round(value)) if abs(value) >= 10 else value


_trim_share = partial(round, ndigits=3)
_Samples = partial(Column, write=format_samples, trim=_trim_samples)
_Share = partial(Column, write="{:.3f}".format, trim=_trim_share)
_Probability = partial(Column, write=format_short_probability, trim=_trim_share)


def _goal(plan: Plan, where: Place | None = None) -> Column:
    return _Share("goal", _of_each(plan.goals), write=format_accuracy, where=where)


def _records(
    plan: Plan, caption: str, *columns: Column, agents: list[int] | None = None
) -> Records:
    page = choose_agents(plan, most=ROWS, few=ROWS) if agents is None else agents
    return Records(caption, columns, page, choose_agents(plan))


# Who gives what.


def list_shares(plan: Plan) -> Records:
    """List what each gives: in the plan, alone, and under plans that just meet the goals."""
    game, given = plan.game, plan.contributions
    priced, limited = bool((game.costs != 1).any()), bool(np.isfinite(game.limits).any())
    rest = plan.size - len(choose_agents(plan))

    def sums(values: Vector | None, ends: Estimate | None = None) -> list[Estimated]:
        """Return what all give together, and what it costs where samples have costs."""
        totals = [None, None] if values is None else [float(values.sum()), game.total(values)]
        found = [Estimated(total) for total in totals[: 1 + priced]]
        # The interval of the total is that of what it costs, the same where samples cost alike.
        if ends is not None:
            found[-1] = Estimated(found[-1].value, ends.low, ends.high)
        return found

    def share(agent: int) -> Estimated | None:
        """Return what the plan asks of an agent, and what it might have asked."""
        if given is None or plan.real is None:
            return None
        return Estimated(float(given[agent]), plan.real[agent].low, plan.real[agent].high)

    def limit(agent: int) -> float | None:
        return keep_finite(game.limits[agent])

    def column(concept: str) -> Column:
        solution = plan.solutions.get(concept)
        values = None if solution is None else solution.contributions
        return _Samples(concept, _of_each(values), sums=[e.value for e in sums(values)])

    return _records(
        plan,
        "Samples that each gives; from and to are the ends of 95 % intervals",
        *name_rows(
            plan.name,
            terminal=("all (samples)", "total cost") if priced else ("all",),
            page=("all", "total cost")[: 1 + priced],
            rest=f"and {rest:,} others" if rest else "",
        ),
        *([] if plan.goals is None else [_goal(plan, "terminal")]),
        _Samples("plan", share, sums=sums(given, plan.total), ends=ENDS),
        _Samples("alone", _of_agents(plan.alone), sums=sums(plan.bare.alone), ends=ENDS),
        *map(column, CONCEPTS),
        *([Column("limit", limit, where="page")] if limited else []),
        *([Column("cost of a sample", _of_each(game.costs), where="page")] if priced else []),
    )


def describe_shares(plan: Plan) -> Iterator[str]:
    """Say what the columns are, and how sure the totals and prices of the other plans are."""
    if plan.measurement is not None:
        yield (
            "Alone, optimal, stable and envy-free reach the goals on average, with no room for "
            "chance; in brackets are 95 % intervals."
        )
        yield from _describe_left_out(plan)
    else:
        yield "There are no intervals: without pilots there is nothing to tell them from."
    if plan.alone is not None and plan.alone.high is not None and np.isinf(plan.alone.high).any():
        yield "Where an interval has no end, some resamples have the goal out of reach alone."
    known = [
        f"{name} {format_interval(t.value, t.low, t.high, format_samples)}"
        for name, t in plan.totals.items()
        if t.low is not None and t.high is not None
    ]
    if known:
        again = f"{len(plan.measurement.resamples) if plan.measurement else 0} times"
        yield (
            f"Totals: {', '.join(known)}. Of the envy-free plan there is no interval: it "
            f"would have to be found {again}."
        )
    open_ended = [n for n, s in plan.solutions.items() if s.status is Status.LIMIT]
    if open_ended:
        yield f"That no plan of its kind is cheaper is not proved of: {', '.join(open_ended)}."
    for name, price in plan.prices.items():
        found = plan.price_of_stability
        if name == "price of stability" and found is not None and found.low is not None:
            yield f"Price of stability: {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]."
        else:
            note = f" ({price.note})" if price.note else ""
            value = format_range(price.lower, price.upper, format_number)
            yield f"{capitalize_first(name)}: {value}{note}."


def _describe_left_out(plan: Plan) -> Iterator[str]:
    """Say how many resamples the intervals leave out, and why."""
    for part, what, whose in (
        (plan.goals_missed, "no such plan meets all goals", "of their totals and prices"),
        (plan.aims_missed, "not all that is aimed at can be had", "of the plan and its total"),
    ):
        if part > 0.5:
            yield f"In {format_part(part)} of the resamples {what}: there are no intervals {whose}."
        elif part > LEFT_OUT:
            kept = f"intervals {whose} are over the others"
            yield f"In {format_part(part)} of the resamples {what}: {kept}."


# How sure it is.


def list_chances(plan: Plan) -> Records:
    """List what each may expect of one run, and of one in which it alone gives less."""
    given, runs = plan.contributions, plan.runs
    low, high = (None, None) if runs is None else (runs.low, runs.high)

    def cut(level: float, agent: int) -> float | None:
        """Return the chance of getting away with a cut, of agents who have something to cut."""
        return float(plan.cuts[level][agent]) if given is not None and given[agent] else None

    everyone = None if plan.everyone is None else plan.everyone.value
    return _records(
        plan,
        "Accuracies under the plan, with 95 % intervals, and P(goal): that one run reaches it",
        *name_rows(plan.name, terminal=() if everyone is None else ("all at once",)),
        _goal(plan),
        _Share("aims at", _of_each(plan.aims)),
        _Share("expected", _of_agents(plan.accuracy), ends=ENDS, where="page"),
        _Share("one run reaches", _of_agents(plan.runs), where="terminal"),
        _Share("one run from", _of_each(low), where="page"),
        _Share("to", _of_each(high), where="page"),
        # What is not certain does not read as if it were.
        _Probability(
            "P(goal)",
            _of_each(plan.satisfied),
            trim=lambda value: _trim_share(min(value, 0.999)),
            sums=(everyone,),
        ),
        *(
            _Probability(f"P at {format_part(level)}", partial(cut, level), where="terminal")
            for level in plan.cuts
        ),
    )


def list_cuts(plan: Plan, agents: list[int]) -> Records:
    """List how often each of these would reach its goal though it alone gives less."""

    def mark(level: float, agent: int) -> Mark:
        value = float(plan.cuts[level][agent])
        tone: Tone = "bad" if value >= LOOSE else "good" if value <= FIRM else "unsure"
        return Mark(format_probability(value), tone)

    return _records(
        plan,
        "P(goal) of an agent that alone gives part of its share",
        Column("agent", plan.name),
        Column("gives", _of_each(plan.contributions)),
        _Probability("P(goal)", _of_each(plan.satisfied)),
        *(Column(f"with {format_part(level)}", partial(mark, level)) for level in plan.cuts),
        agents=agents,
    )


def list_certainties(plan: Plan) -> Records:
    """List what other probabilities that all agents reach their goals would take."""
    rows = plan.certainties
    level = format_part(min(plan.options["levels"]))

    def name(n: int) -> Cell:
        probability = format_probability(rows[n].probability)
        chosen = rows[n].probability == plan.options["probability"]
        return Mark(f"{probability}, the plan", "good") if chosen else probability

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
        "The price of certainty: what each gives for P(all), the probability that all reach "
        "their goals; no number where no stable plan has it",
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
    """List the equilibria to choose from: what they cost, and how soon a cut is felt."""
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
        return ", ".join(plan.name(i) for i in options[n].envious[:6]) or "nobody"

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
            Column("who gives", givers, where="page"),
            Column("givers", lambda n: f"{len(options[n].contributors):,}", where="terminal"),
            _Samples("total", lambda n: options[n].total),
            *(chances if measured else [own]),
            _Samples("largest share", largest, where="page"),
            Column("largest share", largest_by, where="terminal"),
            Column("whose", lambda n: plan.name(options[n].largest), where="page"),
            Column("who envies another", envious, where="page"),
            Column("envious", lambda n: str(len(options[n].envious)), where="terminal"),
        ),
        page=range(len(options)),
        terminal=[n for n, option in enumerate(options) if n < LISTED or option.chosen],
    )


def mean_cut(plan: Plan) -> float | None:
    """Return the mean chance of a contributor who cuts to the least level; None without one."""
    chosen = [tradeoff for tradeoff in plan.tradeoffs if tradeoff.chosen]
    return chosen[0].cut if chosen else None


def describe_tradeoffs(plan: Plan, *, hint: bool = True) -> str:
    """Say how many equilibria there are, and how the plan was chosen among them.

    plan: chosen among equilibria.
    hint: whether to name the option that would choose another.
    """
    number = len(plan.tradeoffs)
    if number == 1 and plan.complete:
        return f"There is no other equilibrium to choose{' at these margins' * (plan.z > 0)}."
    if number == 1:
        return "Other equilibria were not looked for, or none was found: there are many agents."
    cheapest = plan.tradeoffs[0].chosen
    loose = [
        -round(one.own_part or 0.0, 9) if one.cut is None else round(one.cut, 9)
        for one in plan.tradeoffs
    ]
    firmest = plan.tradeoffs[int(np.argmin(loose))].chosen
    kind = " and ".join(["cheapest"] * cheapest + ["firmest"] * firmest) or "preferred"
    found = "" if plan.complete else " that were found; there may be more"
    said = f"The plan is the {kind} of {number} equilibria{found}"
    if not hint or (cheapest and firmest):
        return f"{said}."
    other, word = ("firm", "firmest") if cheapest else ("total", "cheapest")
    return f"{said}; --prefer {other} takes the {word}."


# Goals out of reach.


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
            _goal(plan, "terminal"),
            Column("goal", _of_each(plan.goals), where="page"),
            Column("is", mark, where="page"),
            _Share("most it can reach", _of_agents(plan.nearest), ends=ENDS),
            Column("", lambda i: mark(i) if i in missed else "", where="terminal", coloured=True),
        ),
        page=agents[:ROWS],
        terminal=sorted(agents[:MANY]),
    )
