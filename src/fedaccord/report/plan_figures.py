"""Figures of plans: which equilibrium, what accuracies to expect, and the curves behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedaccord._checks import Matrix, Vector
from fedaccord.errors import InputError
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.probabilities import spread
from fedaccord.planning.result import Plan
from fedaccord.report import style
from fedaccord.report.agent_figures import (
    WIDTH,
    is_narrow,
    legend_beside_names,
    name_rows,
)
from fedaccord.report.drawing import finish, new_axes, put_legend, set_labels, short, styled
from fedaccord.report.plan import choose_agents
from fedaccord.wording import format_percent_tick, format_tick, pluralize

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE_POINTS = 80
# Curves are drawn this far beyond what was tried or is needed.
BEYOND = 1.15
# The most equilibria that are told apart by their numbers.
NUMBERED = 12


# Which equilibrium.


def plot_tradeoffs(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw the equilibria that a plan could be: what each costs, against how soon a cut is felt.

    plan: with equilibria to choose from.
    ax: where to draw.
    """
    ax = new_axes((WIDTH, 3.6)) if ax is None else ax
    totals, felt = tradeoff_points(plan)
    measured = plan.measurement is not None
    with styled():
        for chosen in (False, True):
            some = [n for n, t in enumerate(plan.tradeoffs) if t.chosen is chosen]
            if not some:
                continue
            ax.plot(
                totals[some],
                felt[some],
                "D" if chosen else "o",
                color=style.STABLE if chosen else style.ALONE,
                markersize=9 if chosen else 7,
                label="the plan" if chosen else "another equilibrium",
                zorder=4 if chosen else 3,
            )
        if len(totals) <= NUMBERED:
            for n, (x, y) in enumerate(zip(totals.tolist(), felt.tolist(), strict=True)):
                givers = len(plan.tradeoffs[n].contributors)
                ax.annotate(
                    f"{n + 1}: {givers} {pluralize(givers, 'gives', 'give')}",
                    (x, y),
                    xytext=(9, 4),
                    textcoords="offset points",
                    fontsize=style.SMALL,
                    parse_math=False,
                )
        low, high = float(totals.min()), float(totals.max())
        room = 0.12 * (high - low) or 0.05 * high or 1.0
        ax.set_xlim(low - room, high + 2.2 * room)
        ax.set_ylim(-0.04, 1.04)
        ax.xaxis.set_major_locator(MaxNLocator(5 if is_narrow(ax) else 8))
        ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
        ax.yaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        level = format_percent_tick(min(plan.options["levels"]))
        top = (
            f"mean probability that a contributor who cuts to {level} still reaches its goal"
            if measured
            else "mean part of what contributors need that they give themselves"
        )
        priced = bool((plan.game.costs != 1).any())
        set_labels(ax, x="total cost" if priced else "samples in all", top=top)
        ax.grid(axis="both")
        put_legend(ax)
    return finish(ax)


def tradeoff_points(plan: Plan) -> tuple[Vector, Vector]:
    """Return what each equilibrium costs, and how a cut is felt: by chance, or by the own part."""
    measured = plan.measurement is not None
    felt = [t.cut if measured else t.own_part for t in plan.tradeoffs]
    heights = np.array([0.0 if value is None else value for value in felt])
    return np.array([t.total for t in plan.tradeoffs]), heights


# What accuracies to expect.


def size_prospects(plan: Plan) -> tuple[float, float]:
    """Return the width and height in inches that the expected accuracies need."""
    return WIDTH, 1.5 + 0.34 * len(choose_agents(plan))


def plot_prospects(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw the accuracy that each agent may expect of one run under the plan, and its goal.

    plan: made of pilots.
    ax: where to draw.
    """
    ax = new_axes(size_prospects(plan)) if ax is None else ax
    if plan.runs is None or plan.accuracy is None or plan.goals is None:
        raise InputError("this plan knows of no accuracies: make one from pilots")
    shown = choose_agents(plan)
    places = np.arange(len(shown))
    runs, means = plan.runs, plan.accuracy
    with styled():
        for estimates, width, colour, label in (
            (runs, 3, style.SHADES[2], "95 % of single runs"),
            (means, 7, style.SHADES[3], "95 % interval of the mean"),
        ):
            if estimates.low is not None and estimates.high is not None:
                ax.hlines(
                    places,
                    estimates.low[shown],
                    estimates.high[shown],
                    color=colour,
                    linewidth=width,
                    label=label,
                )
        ax.plot(means.values[shown], places, "o", color=style.STABLE, label="expected")
        goals = plan.goals[shown]
        ax.vlines(goals, places - 0.3, places + 0.3, color=style.BAD, linewidth=2.2, label="goal")
        name_rows(ax, (plan.name(i) for i in shown))
        ax.xaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        ax.xaxis.set_major_locator(MaxNLocator(4 if is_narrow(ax) else 7))
        ax.set_xlabel("accuracy on the own validation points")
        ax.grid(axis="x")
        ax.spines["bottom"].set_visible(False)
        legend_beside_names(ax)
    return finish(ax)


# The curves behind it.


def compute_band(measurement: Measurement, agent: int, most: float) -> tuple[Vector, Matrix]:
    """Return effective samples, and rows of the curve and the ends of its 95 % band there.

    measurement: the fit.
    agent: whose curve.
    most: how far to go.
    """
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
    ax = new_axes((WIDTH, 3.2)) if ax is None else ax
    measurement = plan.measurement
    if measurement is None:
        raise InputError("this plan was made without pilots, so that there is no curve to draw")
    at, (fitted, low, high) = compute_band(measurement, agent, find_curve_end(plan, agent))
    table = measurement.table
    goal = float(measurement.goals[agent])
    with styled():
        ax.fill_between(at, low, high, color=style.STABLE, alpha=0.18, linewidth=0)
        ax.plot(at, fitted, color=style.STABLE, label="curve, with its 95 % band")
        ax.plot(
            table.contributions @ measurement.benefits[agent],
            table.accuracies[:, agent],
            "o",
            color=style.OPTIMAL,
            markersize=4,
            alpha=0.8,
            label="pilots",
        )
        ax.axhline(goal, color=style.INK, linewidth=1, linestyle=(0, (1, 2)), label="goal")
        if plan.contributions is not None and plan.accuracy is not None:
            ax.plot(
                float(plan.game.apply(plan.contributions)[agent]),
                float(plan.accuracy.values[agent]),
                "D",
                color=style.BAD,
                markersize=8,
                label="the plan",
                zorder=4,
            )
        known = table.accuracies[:, agent]
        least = float(np.nanmin([*known, goal, *low[CURVE_POINTS // 8 :]]))
        ax.set_ylim(max(least - 0.05, 0.0), min(float(np.nanmax([*high, *known])) + 0.04, 1.02))
        ax.set_xlim(0, at[-1])
        ax.xaxis.set_major_locator(MaxNLocator(4 if is_narrow(ax) else 8))
        ax.yaxis.set_major_locator(MaxNLocator(6))
        ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
        ax.yaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        who = short(plan.name(agent))
        set_labels(ax, x=f"samples, in samples of {who}", top=f"accuracy of {who}")
        ax.grid(axis="y")
        put_legend(ax)
    return finish(ax)
