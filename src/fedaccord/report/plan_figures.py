"""Figures of a plan: who gives how much, accuracies to expect, defection, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedaccord._checks import Matrix, Vector
from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.probabilities import spread
from fedaccord.planning.result import Plan
from fedaccord.report import style
from fedaccord.report.drawing import (
    NARROW,
    finish,
    new_axes,
    set_axes,
    short,
    styled,
    write_beside,
)
from fedaccord.report.games import has_costs
from fedaccord.report.games_figures import (
    WIDTH,
    is_narrow,
    label_rows,
    legend_beside_names,
    narrow_size,
    picture_burdens,
)
from fedaccord.report.model import Cell, Picture, Table, keep_finite
from fedaccord.report.plan_alternatives import list_tradeoffs
from fedaccord.report.plan_contributions import choose_agents, list_chances
from fedaccord.wording import (
    count,
    count_whole,
    format_goal,
    format_part,
    format_percent_tick,
    format_samples,
    format_uncertain,
    name_alone,
    pluralize,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE = (WIDTH, 3.2)
# On paper two curves stand side by side.
NARROW_CURVE = (4.0, 2.7)
LOW = (WIDTH, 2.6)
CURVE_POINTS = 80
# Curves are drawn this far beyond what was tried or is needed.
BEYOND = 1.15
# The most equilibria that are told apart by their numbers.
NUMBERED = 12


# What is pictured.


def picture_contributions(plan: Plan) -> Picture:
    """Picture what each gives in the plan, and would need alone for the same target."""
    alone = np.array(plan.alone_as_sure.values)
    # An agent without samples reaches nothing alone.
    alone[list(plan.recipients)] = np.inf
    given = {name_alone(plan.z > 0): alone}
    if plan.contributions is not None:
        given["plan"] = plan.contributions
    return picture_burdens(plan.game, given)


def chart_certainty(plan: Plan) -> Chart | None:
    """Chart what it takes to be surer that all agents reach their goals; None where unknown."""
    known = [one for one in plan.certainties if one.contributions is not None]
    if not known:
        return None
    line = Line(
        "all",
        tuple(one.probability for one in known),
        tuple(float(np.asarray(one.contributions).sum()) for one in known),
    )
    return Chart(
        "certainty",
        "The price of certainty",
        "probability that all agents reach their goals",
        "samples that all agents give together",
        f"From {count_whole(line.y[0], 'sample')} for {known[0].probability:g} to "
        f"{count_whole(line.y[-1], 'sample')} for {known[-1].probability:g}.",
        (line,),
    )


def picture_tradeoffs(plan: Plan) -> Picture:
    """Picture the equilibria to choose from."""
    return Picture(
        "tradeoffs",
        "Equilibria: what each costs, and what a defector can expect",
        _describe_tradeoffs_picture(plan),
        draw=lambda ax: plot_tradeoffs(plan, ax),
        data=list_tradeoffs(plan).table("page"),
        narrow=NARROW,
    )


def picture_prospects(plan: Plan) -> Picture:
    """Picture what accuracies to expect."""
    table = list_chances(plan).table("page")
    told = (
        f"{plan.name(i)} {plan.runs.values[i]:.3f}, goal {format_goal(float(plan.goals[i]))}"
        for i in choose_agents(plan)[:12]
        if plan.runs is not None and plan.goals is not None
    )
    return Picture(
        "prospects",
        "Accuracies to expect, and the goals",
        f"Expected accuracies: {'; '.join(told)}.",
        draw=lambda ax: plot_prospects(plan, ax),
        data=table,
        size=size_prospects(plan),
        narrow=narrow_size(size_prospects(plan)),
    )


def chart_cuts(plan: Plan, agents: Sequence[int]) -> Chart:
    """Chart how likely some agents are to reach their goals if they give less."""
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
        f"{plan.name(i)} {format_uncertain(float(plan.cuts[least][i]))}" for i in agents
    )
    return Chart(
        "cuts",
        "Probability that a defector still reaches its goal",
        "per cent of its contribution that an agent gives, while the others give all of theirs",
        "probability that it reaches its goal",
        f"With {format_part(least)} of its contribution: {told}.",
        lines,
        percent=True,
    )


def _describe_tradeoffs_picture(plan: Plan) -> str:
    """Return what equilibria there are, for those who do not see them."""
    chosen = next(t for t in plan.tradeoffs if t.chosen)
    chance = "" if chosen.cut is None else format_uncertain(chosen.cut)
    unfelt = f", and a defector reaches its goal with probability {chance}" if chance else ""
    low, high, total = (
        format_samples(t.total) for t in (plan.tradeoffs[0], plan.tradeoffs[-1], chosen)
    )
    return (
        f"{len(plan.tradeoffs)} equilibria with totals from {low} to {high}; the plan has "
        f"{total}{unfelt}."
    )


def picture_curve(plan: Plan, measurement: Measurement, agent: int, number: int) -> Picture:
    """Picture an agent's learning curve, with a number for the names of its files."""
    at, bands = compute_band(measurement, agent, find_curve_end(plan, agent))
    table = measurement.table
    tried = table.contributions @ measurement.benefits[agent]
    name = plan.name(agent)
    rows: list[tuple[Cell, ...]] = [
        ("pilot", float(x), keep_finite(float(y)), None, None)
        for x, y in zip(tried, table.accuracies[:, agent], strict=True)
    ]
    rows += [("curve", float(x), *row) for x, row in zip(at, bands.T.tolist(), strict=True)]
    goal, ends = float(measurement.goals[agent]), bands[:, -1]
    return Picture(
        f"curve-{number}",
        f"The learning curve of {name}",
        f"{count(len(table), 'pilot')}; the goal is {format_goal(goal)}; with "
        f"{format_samples(float(at[-1]))} samples' worth the curve is at "
        f"{ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f}).",
        draw=lambda ax: plot_learning(plan, agent, ax=ax),
        data=Table(
            f"Curve and pilots of {name}",
            ("what", "samples' worth", "accuracy", "from", "to"),
            tuple(rows),
        ),
        size=CURVE,
        narrow=NARROW_CURVE,
    )


# Which equilibrium.


def plot_tradeoffs(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw the equilibria that a plan could be: what each costs, and what a defector can expect.

    plan: with equilibria to choose from.
    ax: where to draw.
    """
    ax = new_axes((WIDTH, 3.6)) if ax is None else ax
    totals, felt = tradeoff_points(plan)
    with styled():
        for chosen, marker, size, colour, label in (
            (False, "o", 7, style.ALONE, "another equilibrium"),
            (True, "D", 9, style.STABLE, "the plan"),
        ):
            some = [n for n, t in enumerate(plan.tradeoffs) if t.chosen is chosen]
            if some:
                spots = ax.plot(totals[some], felt[some], marker, color=colour, label=label)
                spots[0].set(markersize=size, zorder=3 + chosen)
        for n, (x, y) in enumerate(zip(totals.tolist(), felt.tolist(), strict=True)):
            if len(totals) <= NUMBERED:
                givers = len(plan.tradeoffs[n].contributors)
                said = f"{n + 1}: {givers} {pluralize(givers, 'gives', 'give')}"
                write_beside(ax, x, y, said, by=(9, 4), va="baseline")
        low, high = float(totals.min()), float(totals.max())
        room = 0.12 * (high - low) or 0.05 * high or 1.0
        ax.set_xlim(low - room, high + 2.2 * room)
        ax.set_ylim(-0.04, 1.04)
        level = format_percent_tick(min(plan.options["levels"]))
        top = (
            "mean part of what contributors need that they give themselves"
            if plan.measurement is None
            else f"mean probability that a contributor that gives {level} reaches its goal"
        )
        x = "total cost" if has_costs(plan.game) else "samples in all"
        set_axes(ax, x=x, top=top, percent="y", ticks=5 if is_narrow(ax) else 8, grid="both")
    return finish(ax)


def tradeoff_points(plan: Plan) -> tuple[Vector, Vector]:
    """Return what each equilibrium costs, and a defector's chance, or the own part without one."""
    measured = plan.measurement is not None
    felt = [t.cut if measured else t.own_part for t in plan.tradeoffs]
    heights = np.array([0.0 if value is None else value for value in felt])
    return np.array([t.total for t in plan.tradeoffs]), heights


# What accuracies to expect.


def size_prospects(plan: Plan) -> tuple[float, float]:
    """Return the width and height in inches that the expected accuracies need."""
    return WIDTH, 1.4 + 0.27 * len(choose_agents(plan))


def plot_prospects(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw the accuracy that each agent may expect of one run under the plan, and its goal.

    plan: made of pilots.
    ax: where to draw.
    """
    ax = new_axes(size_prospects(plan)) if ax is None else ax
    if plan.runs is None or plan.accuracy is None or plan.goals is None:
        raise InputError("this plan has no accuracies: make one from pilots")
    shown = choose_agents(plan)
    places = np.arange(len(shown))
    runs, means = plan.runs, plan.accuracy
    with styled():
        for estimates, width, colour, label in (
            (runs, 3, style.SHADES[2], "95 % of single runs"),
            (means, 7, style.SHADES[3], "95 % interval of the mean"),
        ):
            if estimates.low is not None and estimates.high is not None:
                ends = estimates.low[shown], estimates.high[shown]
                ax.hlines(places, *ends, color=colour, linewidth=width, label=label)
        ax.plot(means.values[shown], places, "o", color=style.STABLE, label="expected")
        goals = plan.goals[shown]
        ax.vlines(goals, places - 0.3, places + 0.3, color=style.BAD, linewidth=2.2, label="goal")
        label_rows(ax, (plan.name(i) for i in shown))
        ax.xaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        ax.xaxis.set_major_locator(MaxNLocator(4 if is_narrow(ax) else 7))
        ax.set_xlabel("accuracy on the agent's own kind of data")
        ax.grid(axis="x")
        ax.spines["bottom"].set_visible(False)
        legend_beside_names(ax)
    return finish(ax)


# The curves behind it.


def compute_band(measurement: Measurement, agent: int, most: float) -> tuple[Vector, Matrix]:
    """Return effective samples up to the most, and rows of an agent's curve and its 95 % band."""
    at = np.linspace(0, most, CURVE_POINTS)
    fitted = predict_accuracies(measurement.curves[agent][None], at)
    drawn = predict_accuracies(measurement.resamples.curves[:, agent][:, None], at)
    band = spread(fitted, drawn)
    return at, np.array([fitted, band.low, band.high])


def find_curve_end(plan: Plan, agent: int) -> float:
    """Return how many effective samples a figure of an agent's curve should reach."""
    measurement = plan.measurement
    if measurement is None:
        return 1.0
    tried = float((measurement.table.contributions @ measurement.benefits[agent]).max())
    needed = float(plan.game.requirements[agent])
    return BEYOND * max(tried, needed, 1.0)


def plot_learning(plan: Plan, agent: int, *, ax: Axes | None = None) -> Axes:
    """Draw an agent's learning curve with its band, the pilots, the goal, and where the plan is.

    plan: made of pilots.
    agent: whose curve.
    ax: where to draw.
    """
    ax = new_axes(CURVE) if ax is None else ax
    measurement = plan.measurement
    if measurement is None:
        raise InputError("this plan was made without pilots, so there is no curve to draw")
    at, (fitted, low, high) = compute_band(measurement, agent, find_curve_end(plan, agent))
    table = measurement.table
    goal = float(measurement.goals[agent])
    with styled():
        ax.fill_between(at, low, high, color=style.STABLE, alpha=0.18, linewidth=0)
        ax.plot(at, fitted, color=style.STABLE, label="curve, 95 % band")
        tried, known = table.contributions @ measurement.benefits[agent], table.accuracies[:, agent]
        ax.plot(tried, known, "o", color=style.OPTIMAL, markersize=4, alpha=0.8, label="pilots")
        ax.axhline(goal, color=style.INK, linewidth=1, linestyle=(0, (1, 2)), label="goal")
        if plan.contributions is not None and plan.accuracy is not None:
            place = plan.game.apply(plan.contributions)[agent], plan.accuracy.values[agent]
            ax.plot(*place, "D", color=style.BAD, markersize=8, label="the plan", zorder=4)
        least = float(np.nanmin([*known, goal, *low[CURVE_POINTS // 8 :]]))
        ax.set_ylim(max(least - 0.05, 0.0), min(float(np.nanmax([*high, *known])) + 0.04, 1.02))
        ax.set_xlim(0, at[-1])
        ax.yaxis.set_major_locator(MaxNLocator(6))
        who = short(plan.name(agent))
        x, top = f"samples, in samples of {who}", f"accuracy of {who}"
        set_axes(ax, x=x, top=top, percent="y", ticks=4 if is_narrow(ax) else 8)
    return finish(ax)
