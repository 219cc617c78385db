"""Plans as tables and sentences for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from fedaccord.equilibria.result import Status
from fedaccord.planning.probabilities import Estimate, Estimates
from fedaccord.planning.result import Outcome, Plan, Tradeoff
from fedaccord.report.tables import FEW, MANY, Sheet, line, price_line
from fedaccord.wording import (
    format_accuracy,
    format_interval,
    format_part,
    format_samples,
    format_short_probability,
    shorten,
)

# The most equilibria that the table of a terminal lists.
LISTED = 8
CONCEPTS = ("optimal", "stable", "envy-free")
# The most sentences about doubts.
DOUBTS = 12
# Intervals leave out this part of the resamples anyway.
LEFT_OUT = 0.05
STYLES = {
    Outcome.PLANNED: "green",
    Outcome.LESS_SURE: "yellow",
    Outcome.UNREACHABLE: "red",
    Outcome.UNSTABLE: "red",
}


def plan_parts(plan: Plan) -> Iterator[RenderableType]:
    """Lay out a plan: the verdict, who gives what, how sure it is, what else there is to know."""
    yield line(plan.verdict, STYLES[plan.outcome])
    yield from _doubts(plan)
    if plan.outcome is Outcome.UNREACHABLE:
        yield reach_table(plan)
        return
    yield shares_table(plan)
    yield from (line(sentence) for sentence in shares_sentences(plan))
    if plan.satisfied is not None:
        yield chances_table(plan)
        yield line(chances_sentence(plan))
    yield from _tradeoffs(plan)
    if plan.contributions is not None and plan.size <= FEW:
        yield Text("")
        yield line("The plan, agent by agent:")
        yield from (line(plan.explain(agent)) for agent in range(plan.size))


def shown_agents(plan: Plan) -> list[int]:
    """Give the agents to list: all, or those who give most."""
    if plan.size <= MANY:
        return list(range(plan.size))
    weights = plan.game.alone if plan.contributions is None else plan.contributions
    return [int(agent) for agent in np.argsort(-weights, kind="stable")[:FEW]]


def _goal(plan: Plan, agent: int) -> str:
    return "-" if plan.goals is None else format_accuracy(float(plan.goals[agent]))


def _amount(estimate: Estimate | None) -> str:
    """Write a number of samples with its interval."""
    if estimate is None or not math.isfinite(estimate.value):
        return "-"
    if estimate.low is None or estimate.high is None:
        return format_samples(estimate.value)
    return format_interval(estimate.value, estimate.low, estimate.high, format_samples)


def share(plan: Plan, agent: int) -> Estimate | None:
    """Give what the plan asks of an agent, and what it might have asked."""
    if plan.contributions is None or plan.real is None:
        return None
    asked = plan.real[agent]
    return Estimate(float(plan.contributions[agent]), asked.low, asked.high)


def _at(values: Estimates | None, agent: int) -> str:
    return "-" if values is None else _amount(values[agent])


def shares_table(plan: Plan) -> Sheet:
    """Lay out what each gives: in the plan, alone, and under plans that just meet the goals."""
    goals = [] if plan.goals is None else ["goal"]
    given = {name: s.contributions for name, s in plan.solutions.items()}
    sheet = Sheet("agent", *goals, "plan", "alone", *CONCEPTS)
    for agent in shown_agents(plan):
        others = {
            n: "-" if v is None else format_samples(float(v[agent])) for n, v in given.items()
        }
        sheet.add_row(
            line(plan.name(agent)),
            *([_goal(plan, agent)] if goals else []),
            _amount(share(plan, agent)),
            _at(plan.alone, agent),
            *_named(others),
        )
    rest = plan.size - len(shown_agents(plan))
    if rest:
        sheet.add_row(Text(f"and {rest:,} others", style="italic"))
    _add_totals(sheet, plan, blank=len(goals))
    return sheet


def _add_totals(sheet: Sheet, plan: Plan, *, blank: int) -> None:
    """Add what all give together, and what it costs where samples have costs."""
    game = plan.game
    found = {name: s.contributions for name, s in plan.solutions.items()}
    sums = {n: "-" if v is None else format_samples(float(v.sum())) for n, v in found.items()}
    priced = bool((game.costs != 1).any())
    alone = "-" if plan.alone is None else format_samples(float(plan.alone.values.sum()))
    mine = "-" if plan.contributions is None else format_samples(float(plan.contributions.sum()))
    pad = [""] * blank
    sheet.add_sum("all (samples)" if priced else "all", *pad, mine, alone, *_named(sums))
    if priced:
        costs = {name: format_samples(total.value) for name, total in plan.totals.items()}
        mine = "-" if plan.contributions is None else format_samples(game.total(plan.contributions))
        alone = format_samples(game.total(plan.bare.alone))
        sheet.add_sum("total cost", *pad, mine, alone, *_named(costs))


def _named(values: dict[str, str]) -> list[str]:
    return [values.get(name, "-") for name in CONCEPTS]


def shares_sentences(plan: Plan) -> Iterator[str]:
    """Say what the columns are, and how sure the totals and prices of the other plans are."""
    if plan.measurement is not None:
        yield (
            "Alone, optimal, stable and envy-free reach the goals on average, with no room for "
            "chance; in brackets are 95 % intervals."
        )
        yield from _left_out(plan)
    else:
        yield "There are no intervals: without pilots there is nothing to tell them from."
    if plan.alone is not None and plan.alone.high is not None and np.isinf(plan.alone.high).any():
        yield "Where an interval has no end, some resamples have the goal out of reach alone."
    known = [f"{n} {_amount(t)}" for n, t in plan.totals.items() if t.low is not None]
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
            yield f"{price_line(name.capitalize(), price).plain}."


def _left_out(plan: Plan) -> Iterator[str]:
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


def chances_sentence(plan: Plan) -> str:
    """Say what the columns of the table of chances are."""
    some = format_part(next(iter(plan.cuts), 0.0))
    return (
        "What each may expect of one run under the plan. P at "
        f"{some}: that it reaches its goal though it alone gives {some} of its share."
    )


def chances_table(plan: Plan) -> Sheet:
    """Lay out what each may expect of one run, and of one in which it alone gives less."""
    levels = [f"P at {format_part(level)}" for level in plan.cuts]
    sheet = Sheet("agent", "goal", "aims at", "one run reaches", "P(goal)", *levels)
    if plan.satisfied is None or plan.runs is None:
        return sheet
    for agent in shown_agents(plan):
        run = plan.runs[agent]
        idle = plan.contributions is None or plan.contributions[agent] == 0
        cuts = [
            "-" if idle else format_short_probability(float(v[agent])) for v in plan.cuts.values()
        ]
        sheet.add_row(
            line(plan.name(agent)),
            _goal(plan, agent),
            f"{plan.aims[agent]:.3f}",
            f"{run.value:.3f} [{run.low:.3f}, {run.high:.3f}]",
            format_short_probability(float(plan.satisfied[agent])),
            *cuts,
        )
    if plan.everyone is not None:
        sheet.add_sum("all at once", "", "", "", format_short_probability(plan.everyone.value))
    return sheet


def tradeoffs_table(plan: Plan) -> Sheet:
    """Lay out the equilibria to choose from: what they cost, and how soon a cut is felt."""
    measured = any(tradeoff.everyone is not None for tradeoff in plan.tradeoffs)
    least = min(plan.options["levels"])
    heads = ["P(all)", f"P at {format_part(least)}"] if measured else ["own part"]
    sheet = Sheet("equilibrium", "givers", "total", *heads, "largest share", "envious")
    for place, tradeoff in enumerate(plan.tradeoffs):
        if place >= LISTED and not tradeoff.chosen:
            continue
        numbers = (
            [format_short_probability(tradeoff.everyone), format_short_probability(tradeoff.cut)]
            if measured
            else ["-" if tradeoff.own_part is None else format_part(tradeoff.own_part)]
        )
        most = tradeoff.largest
        largest = format_samples(float(tradeoff.contributions[most]))
        sheet.add_row(
            f"{place + 1}, the plan" if tradeoff.chosen else str(place + 1),
            f"{len(tradeoff.contributors):,}",
            format_samples(tradeoff.total),
            *numbers,
            line(f"{largest} by {shorten(plan.name(most), 16)}"),
            str(len(tradeoff.envious)),
        )
    return sheet


def _tradeoffs(plan: Plan) -> Iterator[RenderableType]:
    if len(plan.tradeoffs) > 1:
        yield tradeoffs_table(plan)
    if plan.tradeoffs:
        yield line(tradeoffs_sentence(plan))


def mean_cut(plan: Plan) -> float | None:
    """Give the mean chance of a contributor who cuts to the least level; None without one."""
    chosen = [tradeoff for tradeoff in plan.tradeoffs if tradeoff.chosen]
    return chosen[0].cut if chosen else None


def tradeoffs_sentence(plan: Plan, *, hint: bool = True) -> str:
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
    loose = [_looseness(tradeoff) for tradeoff in plan.tradeoffs]
    firmest = plan.tradeoffs[int(np.argmin(loose))].chosen
    kind = " and ".join(["cheapest"] * cheapest + ["firmest"] * firmest) or "preferred"
    found = "" if plan.complete else " that were found; there may be more"
    said = f"The plan is the {kind} of {number} equilibria{found}"
    if not hint or (cheapest and firmest):
        return f"{said}."
    other, word = ("firm", "firmest") if cheapest else ("total", "cheapest")
    return f"{said}; --prefer {other} takes the {word}."


def _looseness(tradeoff: Tradeoff) -> float:
    if tradeoff.cut is not None:
        return round(tradeoff.cut, 9)
    return -round(tradeoff.own_part or 0.0, 9)


def reach_table(plan: Plan) -> Sheet:
    """Lay out what each wants and could have if all gave as much as they can."""
    sheet = Sheet("agent", "goal", "most it can reach", "")
    missed = {one.agent for one in plan.unreachable}
    shown = [*sorted(missed), *(i for i in range(plan.size) if i not in missed)][:MANY]
    for agent in sorted(shown):
        most = "-"
        if plan.nearest is not None:
            near = plan.nearest[agent]
            ends = "" if near.low is None else f" [{near.low:.3f}, {near.high:.3f}]"
            most = f"{near.value:.3f}{ends}"
        word = Text("out of reach", style="red") if agent in missed else Text("")
        sheet.add_row(line(plan.name(agent)), _goal(plan, agent), most, word)
    return sheet


def doubtful(plan: Plan) -> tuple[str, ...]:
    """Give what is doubted, in sentences that the verdict does not have already."""
    return tuple(one.sentence for one in plan.doubts if one.sentence not in plan.verdict)


def _doubts(plan: Plan) -> Iterator[Text]:
    for sentence in plan.assumed:
        yield line(sentence, "yellow")
    sentences = doubtful(plan)
    for sentence in sentences[:DOUBTS]:
        yield line(f"Doubt: {sentence}", "yellow")
    if len(sentences) > DOUBTS:
        yield line(f"And {len(sentences) - DOUBTS} more doubts; --json lists them.", "yellow")
