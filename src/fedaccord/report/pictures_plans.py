"""Tables and pictures of a plan for its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fedaccord.charts import Chart, Line
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.probabilities import Estimate, Estimates
from fedaccord.planning.result import Plan
from fedaccord.report.drawing import NARROW
from fedaccord.report.figures_plans import (
    curve_band,
    curve_end,
    plot_learning,
    plot_prospects,
    prospects_size,
)
from fedaccord.report.page import Cell, Mark, Picture, Table, Tone
from fedaccord.report.pictures_games import finite, narrowed
from fedaccord.report.plans import CONCEPTS, share, shown_agents
from fedaccord.report.words_games import ranked
from fedaccord.wording import count, format_part, format_probability, format_samples

# Tables list this many agents; of more, those who give most.
ROWS = 500
# A chance of at least this much of getting away with a cut stands out, one of at most this little
# too.
LOOSE, FIRM = 0.5, 0.1


def listed_agents(plan: Plan) -> list[int]:
    """Give the agents that tables list: all, or those who give most."""
    if plan.size <= ROWS:
        return list(range(plan.size))
    weights = plan.game.alone if plan.contributions is None else plan.contributions
    return [int(agent) for agent in ranked(weights, ROWS)]


def interval_cells(estimate: Estimate | None) -> tuple[Cell, Cell]:
    """Give the ends of an interval as cells."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return None, None
    return estimate.low, "no bound" if np.isinf(estimate.high) else estimate.high


def _counts(*cells: Cell) -> tuple[Cell, ...]:
    """Round numbers of samples to whole ones: no fit knows them better."""
    return tuple(float(round(c)) if isinstance(c, float) and abs(c) >= 10 else c for c in cells)


def shares_of_one(*cells: Cell) -> tuple[Cell, ...]:
    """Round accuracies and probabilities to three digits."""
    return tuple(round(cell, 3) if isinstance(cell, float) else cell for cell in cells)


def shares_table(plan: Plan) -> Table:
    """List what each gives, in the plan and otherwise."""
    rows: list[tuple[Cell, ...]] = []
    found = {name: s.contributions for name, s in plan.solutions.items()}
    priced = bool((plan.game.costs != 1).any())
    limited = bool(np.isfinite(plan.game.limits).any())
    for agent in listed_agents(plan):
        asked = share(plan, agent)
        alone = None if plan.alone is None else plan.alone[agent]
        others = [found.get(name) for name in CONCEPTS]
        rows.append(
            (
                plan.name(agent),
                *_counts(None if asked is None else asked.value, *interval_cells(asked)),
                *_counts(None if alone is None else finite(alone.value), *interval_cells(alone)),
                *_counts(*(None if v is None else float(v[agent]) for v in others)),
                *([finite(float(plan.game.limits[agent]))] if limited else []),
                *([float(plan.game.costs[agent])] if priced else []),
            )
        )
    heads = ("agent", "plan", "from", "to", "alone", "from", "to", *CONCEPTS)
    more = (*(["limit"] if limited else []), *(["cost of a sample"] if priced else []))
    return Table(
        "Samples that each gives; from and to are the ends of 95 % intervals",
        (*heads, *more),
        tuple(rows),
        footer=tuple(_sums(plan, priced=priced)),
    )


def _sums(plan: Plan, *, priced: bool) -> Iterator[tuple[Cell, ...]]:
    found = {name: s.contributions for name, s in plan.solutions.items()}
    others = [found.get(name) for name in CONCEPTS]
    mine = None if plan.contributions is None else float(plan.contributions.sum())
    alone = finite(float(plan.bare.alone.sum()))
    sums = [None if values is None else float(values.sum()) for values in others]
    # The interval of the total is that of what it costs, the same where samples cost alike.
    ends = (None, None) if priced else interval_cells(plan.total)
    yield ("all", *_counts(mine, *ends, alone, None, None, *sums))
    if priced:
        mine = None if plan.contributions is None else plan.game.total(plan.contributions)
        costs = [None if values is None else plan.game.total(values) for values in others]
        alone = finite(plan.game.total(plan.bare.alone))
        ends = interval_cells(plan.total)
        yield ("total cost", *_counts(mine, *ends, alone, None, None, *costs))


def prospects_picture(plan: Plan) -> Picture:
    """Show what accuracies to expect."""
    table = chances_table(plan)
    told = (
        f"{plan.name(i)} {plan.runs.values[i]:.3f}, goal {plan.goals[i]:g}"
        for i in shown_agents(plan)[:12]
        if plan.runs is not None and plan.goals is not None
    )
    return Picture(
        "prospects",
        "Accuracies to expect, and the goals",
        f"Expected accuracies: {'; '.join(told)}.",
        draw=lambda ax: plot_prospects(plan, ax),
        data=table,
        size=prospects_size(plan),
        narrow=narrowed(prospects_size(plan)),
    )


def chances_table(plan: Plan) -> Table:
    """List what accuracies to expect, and how likely the goals are."""
    rows: list[tuple[Cell, ...]] = []
    for agent in listed_agents(plan):
        mean, run = _estimate(plan.accuracy, agent), _estimate(plan.runs, agent)
        # What is not certain does not read as if it were.
        reached = None if plan.satisfied is None else min(float(plan.satisfied[agent]), 0.999)
        goal = None if plan.goals is None else float(plan.goals[agent])
        expected = None if mean is None else mean.value
        aim = float(plan.aims[agent])
        numbers = shares_of_one(
            goal, aim, expected, *interval_cells(mean), *interval_cells(run), reached
        )
        rows.append((plan.name(agent), *numbers))
    heads = ("agent", "goal", "aims at", "expected", "from", "to", "one run from", "to")
    return Table(
        "Accuracies under the plan, with 95 % intervals, and P(goal): that one run reaches it",
        (*heads, "P(goal)"),
        tuple(rows),
    )


def _estimate(values: Estimates | None, agent: int) -> Estimate | None:
    return None if values is None else values[agent]


def cut_mark(value: float) -> Mark:
    """Write the chance of getting away with a cut."""
    tone: Tone = "bad" if value >= LOOSE else "good" if value <= FIRM else "unsure"
    return Mark(format_probability(value), tone)


def cuts_chart(plan: Plan, agents: Sequence[int]) -> Chart:
    """Chart what giving less would come to.

    plan: made of pilots.
    agents: whom to show.
    """
    levels = sorted(plan.cuts)
    reached = np.zeros(plan.size) if plan.satisfied is None else plan.satisfied
    lines = tuple(
        Line(
            plan.name(i),
            tuple(100 * level for level in [*levels, 1.0]),
            (*(float(plan.cuts[level][i]) for level in levels), float(reached[i])),
        )
        for i in agents
    )
    least = levels[0]
    told = "; ".join(
        f"{plan.name(i)} {format_probability(float(plan.cuts[least][i]))}" for i in agents
    )
    return Chart(
        "cuts",
        "Probability to reach the goal in spite of a cut",
        "per cent of its share that an agent gives; the others give all of theirs",
        "probability that it still reaches its goal",
        f"With {format_part(least)} of its share: {told}.",
        lines,
        percent=True,
    )


def tradeoffs_told(plan: Plan) -> str:
    """Say what equilibria there are, for those who do not see them."""
    chosen = next(t for t in plan.tradeoffs if t.chosen)
    cut = (
        ""
        if chosen.cut is None
        else f", a cut goes unfelt with probability {format_probability(chosen.cut)}"
    )
    low, high, total = (
        format_samples(t.total) for t in (plan.tradeoffs[0], plan.tradeoffs[-1], chosen)
    )
    return (
        f"{len(plan.tradeoffs)} equilibria with totals from {low} to {high}; the plan has "
        f"{total}{cut}."
    )


def tradeoffs_table(plan: Plan) -> Table:
    """List the equilibria to choose from."""
    measured = plan.measurement is not None
    level = format_part(min(plan.options["levels"]))
    rows: list[tuple[Cell, ...]] = []
    for n, tradeoff in enumerate(plan.tradeoffs):
        most = tradeoff.largest
        who = ", ".join(plan.name(i) for i in tradeoff.contributors[:6])
        envious = ", ".join(plan.name(i) for i in tradeoff.envious[:6])
        numbers = [tradeoff.everyone, tradeoff.cut] if measured else [tradeoff.own_part]
        rows.append(
            (
                Mark(f"{n + 1}, the plan", "good") if tradeoff.chosen else str(n + 1),
                who + ("…" if len(tradeoff.contributors) > 6 else ""),
                *_counts(tradeoff.total),
                *shares_of_one(*numbers),
                *_counts(float(tradeoff.contributions[most])),
                plan.name(most),
                envious or "nobody",
            )
        )
    heads = ("P(all)", f"P(goal) with {level}, mean") if measured else ("own part, mean",)
    return Table(
        "The equilibria, before rounding",
        ("no.", "who gives", "total", *heads, "largest share", "whose", "who envies another"),
        tuple(rows),
    )


def curve_picture(plan: Plan, measurement: Measurement, agent: int, number: int) -> Picture:
    """Show an agent's learning curve.

    plan: made of pilots.
    measurement: what they say.
    agent: whose curve.
    number: of the picture, for the names of its files.
    """
    at, bands = curve_band(measurement, agent, curve_end(plan, agent))
    table = measurement.table
    tried = table.contributions @ measurement.benefits[agent]
    name = plan.name(agent)
    rows: list[tuple[Cell, ...]] = [
        ("pilot", float(x), finite(float(y)), None, None)
        for x, y in zip(tried, table.accuracies[:, agent], strict=True)
    ]
    rows += [("curve", float(x), *row) for x, row in zip(at, bands.T.tolist(), strict=True)]
    goal, ends = float(measurement.goals[agent]), bands[:, -1]
    return Picture(
        f"curve-{number}",
        f"The learning curve of {name}",
        f"{count(len(table), 'pilot')}; the goal is {goal:g}; with {format_samples(float(at[-1]))} "
        f"samples' worth the curve is at {ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f}).",
        draw=lambda ax: plot_learning(plan, agent, ax=ax),
        data=Table(
            f"Curve and pilots of {name}",
            ("what", "samples' worth", "accuracy", "from", "to"),
            tuple(rows),
        ),
        size=(7.6, 3.2),
        narrow=(NARROW[0], 3.2),
    )
