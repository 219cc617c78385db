"""A run of training: who is satisfied, for a terminal and as a page with figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.report.defection import SATISFIED
from fedaccord.report.model import (
    FEW,
    MANY,
    Column,
    Mark,
    Page,
    Part,
    Records,
    Section,
    Table,
    list_run_facts,
    name_rows,
)
from fedaccord.wording import count, format_duration, format_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.history import History

# With more clients than this a chart of training shows how they spread, not each of them.
MOST_LINES = 8


def show_run(history: History, algorithm: str) -> tuple[Table, Mark]:
    """Return what a terminal shows of a run: how each agent fared, and who is satisfied."""
    return list_agents(history).table("terminal"), describe_run(history, algorithm)


def list_agents(history: History) -> Records:
    """List how each agent fared; of many, those furthest from their goals first."""
    final, drawn = history.final, history.samples.sum(axis=0)
    short = np.nan_to_num(history.requirements - final, nan=1.0)
    many = len(short) > MANY
    order = (np.argsort(-short, kind="stable") if many else np.arange(len(short))).tolist()
    shown = order[:FEW] if many else order
    rest = f"and {len(short) - len(shown):,} more; all" if many else "all"
    share = partial(Column, write="{:.3f}".format)
    reached = {True: Mark("yes", "good"), False: Mark("no", "bad")}

    def counts(head: str, values: NDArray[Any]) -> Column:
        *words, last = head.split()
        return Column(
            head,
            lambda i: int(values[i]),
            sums=(int(values.sum()),),
            short=f"{' '.join(words)}\n{last}",
            write="{:,}".format,
        )

    return Records(
        "Agents after the last round" + (", furthest from their goals first" * many),
        (
            *name_rows(lambda i: history.clients[i], terminal=[rest], page=["all"]),
            share("goal", lambda i: float(history.requirements[i])),
            share(
                "accuracy",
                lambda i: None if np.isnan(final[i]) else float(final[i]),
                trim=partial(round, ndigits=3),
            ),
            Column("reached", lambda i: reached[bool(history.satisfied[i])], coloured=True),
            Column(
                "first in round",
                lambda i: int(history.first_passage[i]) or None,
                short="first in\nround",
                write="{:,}".format,
            ),
            counts("points brought", history.contributions),
            counts("of them used", history.unique[-1]),
            counts("samples drawn", drawn),
        ),
        page=order,
        terminal=shown,
    )


def describe_run(history: History, algorithm: str) -> Mark:
    """Say who is satisfied after a run, and by how much the others are not."""
    agents, rounds = len(history.clients), len(history.samples)
    satisfied = int(history.satisfied.sum())
    after = f"After {count(rounds, 'round')} of {algorithm}"
    if history.diverged:
        who = (
            f"only {satisfied:,} of {agents:,} agents, who had left before,"
            if satisfied
            else "nobody"
        )
        text = (
            f"{algorithm} diverged in round {rounds:,}: a loss was not a number, and {who} "
            f"{'are' if satisfied > 1 else 'is'} satisfied. Try a smaller learning rate."
        )
    elif satisfied == agents:
        text = f"{after} everybody is satisfied."
    else:
        missed = _describe_missed(history)
        text = f"{after} {satisfied:,} of {agents:,} agents are satisfied; {missed}."
    return Mark(text, "good" if satisfied == agents else "bad")


def _describe_missed(history: History) -> str:
    """Name the agents that miss their goals, with what they have and what they lack."""
    missed = np.flatnonzero(~history.satisfied).tolist()
    lack = {}
    for i in missed:
        accuracy, short = history.final[i], history.requirements[i] - history.final[i]
        lack[i] = f"short by {short:.1g}"
        if short >= 0.0005:
            lack[i] = f"{accuracy:.3f}, short by {short:.3f}"
    if len(missed) == 1:
        return f"{history.clients[missed[0]]} is not ({lack[missed[0]]})"
    names = ", ".join(f"{history.clients[i]} ({lack[i]})" for i in missed[:3])
    more = f" and {len(missed) - 3:,} more" if len(missed) > 3 else ""
    return f"{names}{more} are not"


# The page.


def train_page(history: History, name: str, *, command: str = "") -> Page:
    """Make a page of a run of training.

    history: what happened.
    name: of the algorithm.
    command: what was typed.
    """
    from fedaccord.report.drawing import picture_of

    verdict = describe_run(history, name)
    picture: list[Part] = []
    if not np.isnan(history.accuracy).all():
        chart = picture_of(training_chart(history))
        picture.append(replace(chart, draw=lambda ax: plot_training(history, ax)))
    looked = history.algorithm.get("evaluate_every", 1)
    every = "every round" if looked == 1 else f"one round in {looked:,}, and the last,"
    one_run = (
        f'For "first in round" {every} counts. '
        "This is one run: with another seed an agent close to its goal may end on its other side. "
        "How often it does, and whether it could bring less, is what 'fedaccord audit' tells."
    )
    return Page(
        title=f"Who is satisfied after training with {name}",
        verdict=verdict.text,
        tone=verdict.tone,
        sections=(
            Section("Accuracy and goal", (*picture, list_agents(history).table("page"))),
            Section("What was drawn", tuple(_show_draws(history))),
            Section("How to read this", (SATISFIED, one_run)),
        ),
        facts=(
            ("Algorithm", format_settings(history.algorithm)),
            ("Seed of the run", f"{history.seed}"),
            ("Training took", format_duration(history.seconds, hedge=True)),
            *list_run_facts(),
        ),
        command=command,
    )


def _show_draws(history: History) -> Iterator[Part]:
    from fedaccord.report.drawing import picture_of

    used, brought = int(history.unique[-1].sum()), int(history.contributions.sum())
    yield (
        f"The agents brought {brought:,} points; {used:,} of them were used, "
        f"in {int(history.samples.sum()):,} draws."
    )
    # Where all draw alike, a line for each would be one line.
    drawn = history.samples[:, history.contributions > 0]
    if (drawn != drawn[:, :1]).any():
        yield picture_of(draws_chart(history))
    else:
        yield "All agents that brought points drew alike."


# Figures.


def plot_training(history: History, ax: Axes | None = None) -> Axes:
    """Draw the accuracy for each client by round, with the goal.

    Of more than eight clients: the median, the quartiles, the extremes, and the client that ends
    furthest below its goal.

    history: the run.
    ax: where to draw.
    """
    from fedaccord.report.drawing import plot_chart

    ax = plot_chart(training_chart(history), ax)
    seen = history.accuracy[~np.isnan(history.accuracy)]
    if len(seen) and len(np.unique(history.requirements)) == 1:
        # From a little below the lowest: the half below it would be empty.
        lowest = min(float(seen.min()), float(history.requirements[0]))
        bottom = max(0.0, np.floor(10 * lowest - 0.5) / 10)
        ax.set_ylim(bottom, 1.02)
        ax.set_yticks(np.arange(10, round(10 * bottom) - 1, -1 if bottom > 0.45 else -2) / 10)
    return ax


def plot_draws(history: History, ax: Axes | None = None) -> Axes:
    """Draw how many samples each client has drawn by each round.

    history: the run.
    ax: where to draw.
    """
    from fedaccord.report.drawing import plot_chart

    return plot_chart(draws_chart(history), ax)


def training_chart(history: History) -> Chart:
    """Chart how accurate the model is for each client, round by round, with the goal.

    Of many clients there are the median with quartiles, the best, the worst, and the one that
    ends furthest below its goal. Where goals differ, accuracy is counted from each client's own.
    Rounds without an evaluation have no point.
    """
    goals = np.unique(history.requirements)
    same = len(goals) == 1
    heights = history.accuracy if same else 100 * (history.accuracy - history.requirements)
    lines = _draw_each(history, heights)
    if len(history.clients) > MOST_LINES:
        worst = find_furthest(history)
        where = "closest to" if history.satisfied[worst] else "furthest below"
        own = _draw_line(f"{where} its goal: {history.clients[worst]}", heights[:, worst])
        lines = [*_draw_spread(heights, most="the most accurate", least="the least accurate"), own]
    y = "accuracy on the own validation points"
    return Chart(
        name="training",
        title="Accuracy round by round, and the goal",
        x="round of training",
        y=y if same else f"{y}, percentage points above the own goal",
        alt=_describe_training(history),
        lines=tuple(lines),
        percent=same,
        goal=float(goals[0]) if same else 0.0,
    )


def find_furthest(history: History) -> int:
    """Return the number of the client that ends furthest below its goal, or least above it."""
    short = np.nan_to_num(history.requirements - history.final, nan=np.inf)
    return int(np.argmax(short))


def _draw_each(history: History, heights: Vector) -> list[Line]:
    return [_draw_line(name, heights[:, i]) for i, name in enumerate(history.clients)]


def _draw_spread(heights: Vector, *, most: str, least: str) -> list[Line]:
    """Return the median with quartiles, and the extremes, of each round (a row of heights)."""
    # An algorithm may look at some clients more often: only rounds in which all were looked at.
    common = heights.copy()
    common[np.isnan(heights).any(axis=1)] = np.nan
    low, middle, high = np.quantile(common, (0.25, 0.5, 0.75), axis=1)
    median = _draw_line("median, with quartiles", middle)
    seen = ~np.isnan(middle)
    return [
        replace(median, low=tuple(low[seen].tolist()), high=tuple(high[seen].tolist())),
        _draw_line(most, common.max(axis=1), of=median.name),
        _draw_line(least, common.min(axis=1), of=median.name),
    ]


def _draw_line(name: str, heights: Vector, *, of: str = "") -> Line:
    rounds = np.flatnonzero(~np.isnan(heights))
    return Line(name, tuple((rounds + 1).tolist()), tuple(heights[rounds].tolist()), of=of)


def draws_chart(history: History) -> Chart:
    """Chart how many samples each client has drawn by each round: whom the algorithm asks most."""
    drawn = np.cumsum(history.samples, axis=0).astype(np.float64)
    lines = _draw_each(history, drawn)
    if len(history.clients) > MOST_LINES:
        lines = _draw_spread(drawn, most="who draws most", least="who draws least")
    totals, names = drawn[-1], history.clients
    most, least = int(totals.argmax()), int(totals.argmin())
    return Chart(
        name="draws",
        title="Samples drawn up to each round",
        x="round of training",
        y="samples drawn so far",
        alt=(
            f"By the last round {names[most]} has drawn {totals[most]:,.0f} samples, the most, and "
            f"{names[least]} {totals[least]:,.0f}, the fewest; all together {totals.sum():,.0f}."
        ),
        lines=tuple(lines),
    )


def _describe_training(history: History) -> str:
    """Say where the accuracies end, and how many reach the goal."""
    final = history.final
    if np.isnan(final).all():
        return "Training diverged: there is no accuracy at its end."
    count, reached = len(history.clients), int(history.satisfied.sum())
    goals = history.requirements
    goal = f"{goals[0]:g}" if len(np.unique(goals)) == 1 else f"{goals.min():g} to {goals.max():g}"
    if count > MOST_LINES:
        ends = f"Accuracies end between {np.nanmin(final):.3f} and {np.nanmax(final):.3f}"
    else:
        pairs = zip(history.clients, final, strict=True)
        ends = "At the end " + ", ".join(f"{name} has {value:.3f}" for name, value in pairs)
    return f"{ends}; the goal is {goal}, and {reached:,} of {count:,} reach it."
