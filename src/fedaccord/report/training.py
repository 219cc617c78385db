"""A training run: which agents reach their goals, for a terminal and as a page with figures."""

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
    Cell,
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
from fedaccord.wording import (
    capitalize_first,
    count,
    count_named,
    format_duration,
    format_settings,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.history import History

# With more clients than this a chart of training shows how they spread, not each of them.
MOST_LINES = 8


def show_run(history: History, algorithm: str) -> tuple[Table | Mark, ...]:
    """Return what a terminal shows of a run: a row for each agent, its goals, and the verdict."""
    tables = [list_agents(history).table("terminal"), *list_goals(history)]
    return (*tables, describe_run(history, algorithm))


def list_goals(history: History) -> list[Table]:
    """List what came of each goal, where agents have several or other ones than an accuracy."""
    goals = history.goals
    if goals is None or history.measure != "standing":
        return []
    rows: list[tuple[Cell, ...]] = [
        (
            goals.clients[n],
            goals.names[n],
            float(goals.targets[n]),
            None if np.isnan(goals.values[n]) else round(float(goals.values[n]), 3),
            round(float(goals.deviations[n]), 3) if goals.deviations[n] > 0 else None,
            Mark("yes", "good") if goals.reached[n] else Mark("no", "bad"),
        )
        for n in range(len(goals.names))
    ]
    heads = ("agent", "goal", "target", "value", "sd", "reached")
    return [Table("Goals after the last round", heads, tuple(rows))]


def list_agents(history: History) -> Records:
    """List what each agent reached; of many, those furthest from their goals first."""
    final, drawn = history.final, history.samples.sum(axis=0)
    short = np.nan_to_num(history.requirements - final, nan=1.0)
    many = len(short) > MANY
    order = (np.argsort(-short, kind="stable") if many else np.arange(len(short))).tolist()
    shown = order[:FEW] if many else order
    rest = f"and {len(short) - len(shown):,} more; all" if many else "all"
    share = partial(Column, write="{:.3f}".format)
    reached = {True: Mark("yes", "good"), False: Mark("no", "bad")}

    def counts(head: str, values: NDArray[Any]) -> Column:
        return Column(
            head,
            lambda i: int(values[i]),
            sums=(int(values.sum()),),
            short="\n".join(head.rsplit(maxsplit=1)),
            write="{:,}".format,
        )

    return Records(
        "Agents after the last round" + (", furthest from their goals first" * many),
        (
            *name_rows(lambda i: history.clients[i], terminal=[rest], page=["all"]),
            share("goal", lambda i: float(history.requirements[i])),
            share(
                history.measure,
                lambda i: None if np.isnan(final[i]) else float(final[i]),
                trim=partial(round, ndigits=3),
            ),
            Column(
                "goal reached",
                lambda i: reached[bool(history.satisfied[i])],
                short="goal\nreached",
                coloured=True,
            ),
            Column(
                "first in round",
                lambda i: int(history.first_passage[i]) or None,
                short="first in\nround",
                write="{:,}".format,
            ),
            counts("samples given", history.contributions),
            counts("of them used", history.unique[-1]),
            counts("draws", drawn),
        ),
        page=order,
        terminal=shown,
    )


def describe_run(history: History, algorithm: str) -> Mark:
    """Return which agents reach their goals after a run, and by how much the others miss."""
    agents, rounds = len(history.clients), len(history.samples)
    satisfied = int(history.satisfied.sum())
    after = f"After {count(rounds, 'round')} of {algorithm}"
    if history.diverged:
        who = "no agent reaches its goal"
        if satisfied:
            reach = "reach their goals" if satisfied > 1 else "reaches its goal"
            who = f"only {satisfied:,} of {agents:,} agents, which left before, {reach}"
        text = (
            f"{algorithm} diverged in round {rounds:,}: a loss was not a number, so {who}. "
            "Use a smaller learning rate."
        )
    elif satisfied == agents:
        text = f"{after}, all agents reach their goals."
    else:
        missed = _describe_missed(history)
        text = f"{after}, {satisfied:,} of {agents:,} agents reach their goals. Missed: {missed}."
    return Mark(text, "good" if satisfied == agents else "bad")


def _describe_missed(history: History) -> str:
    """Name the agents that miss their goals, with their accuracies and what they lack."""
    missed = np.flatnonzero(~history.satisfied).tolist()
    lack = {}
    for i in missed:
        accuracy, short = history.final[i], history.requirements[i] - history.final[i]
        lack[i] = f"short by {short:.1g}"
        if short >= 0.0005:
            lack[i] = f"{accuracy:.3f}, short by {short:.3f}"
    named = count_named(len(missed))
    names = ", ".join(f"{history.clients[i]} ({lack[i]})" for i in missed[:named])
    more = f" and {len(missed) - named:,} more" if len(missed) > named else ""
    return f"{names}{more}"


# The page.


def train_page(history: History, name: str, *, command: str = "") -> Page:
    """Make a page of a training run.

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
    every = "every round" if looked == 1 else f"every {looked:,} rounds, and after the last"
    one_run = (
        f'"First in round" is the first evaluation at which an agent reached its goal. Evaluations '
        f"take place after {every}. This is one run: with another seed, an agent close to its goal "
        "may end on the other side. 'fedaccord audit' shows how often it does, and whether it can "
        "give less."
    )
    return Page(
        title=f"Which agents reach their goals after training with {name}",
        verdict=verdict.text,
        tone=verdict.tone,
        sections=(
            Section(
                f"{capitalize_first(history.measure)} and goal",
                (*picture, list_agents(history).table("page"), *list_goals(history)),
            ),
            Section("Which samples were used", tuple(_show_draws(history))),
            Section("How to read this", (SATISFIED, one_run)),
        ),
        facts=(
            ("Algorithm", format_settings(history.algorithm)),
            ("Random seed", f"{history.seed}"),
            ("Training took", format_duration(history.seconds, hedge=True)),
            *list_run_facts(),
        ),
        command=command,
    )


def _show_draws(history: History) -> Iterator[Part]:
    from fedaccord.report.drawing import picture_of

    used, brought = int(history.unique[-1].sum()), int(history.contributions.sum())
    yield (
        f"The agents gave {brought:,} samples. Training used {used:,} of them, in "
        f"{int(history.samples.sum()):,} draws. A draw is one use of a sample."
    )
    # If all draw alike, their lines would cover each other.
    drawn = history.samples[:, history.contributions > 0]
    if (drawn != drawn[:, :1]).any():
        yield picture_of(draws_chart(history))
    else:
        yield "All agents that gave samples have the same number of draws."


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
    """Draw how many draws each client has made by each round.

    history: the run.
    ax: where to draw.
    """
    from fedaccord.report.drawing import plot_chart

    return plot_chart(draws_chart(history), ax)


def training_chart(history: History) -> Chart:
    """Chart the accuracy for each client, round by round, with the goal.

    With many clients the chart has the median with quartiles, the best, the worst, and the one
    that ends furthest below its goal. If goals differ, accuracy is counted from each client's own.
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
    y = f"{history.measure} on the agent's own validation samples"
    return Chart(
        name="training",
        title=f"{capitalize_first(history.measure)} round by round, and the goal",
        x="round of training",
        y=y if same else f"{y}, percentage points above its goal",
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
    # An algorithm may evaluate some clients more often: only rounds in which all were evaluated.
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
    """Chart how many draws each client has made by each round."""
    drawn = np.cumsum(history.samples, axis=0).astype(np.float64)
    lines = _draw_each(history, drawn)
    if len(history.clients) > MOST_LINES:
        lines = _draw_spread(
            drawn, most="the agent with the most draws", least="the agent with the fewest"
        )
    totals, names = drawn[-1], history.clients
    most, least = int(totals.argmax()), int(totals.argmin())
    return Chart(
        name="draws",
        title="Draws up to each round",
        x="round of training",
        y="draws so far",
        alt=(
            f"By the last round {names[most]} has the most draws, {totals[most]:,.0f}. "
            f"{names[least]} has the fewest, {totals[least]:,.0f}. All agents together have "
            f"{totals.sum():,.0f}."
        ),
        lines=tuple(lines),
    )


def _describe_training(history: History) -> str:
    """Return where the accuracies end, and how many agents reach their goals."""
    final = history.final
    if np.isnan(final).all():
        return "Training diverged, so there is no accuracy at the end."
    count, reached = len(history.clients), int(history.satisfied.sum())
    goals = history.requirements
    goal = f"{goals[0]:g}" if len(np.unique(goals)) == 1 else f"{goals.min():g} to {goals.max():g}"
    if count > MOST_LINES:
        ends = f"Accuracies end between {np.nanmin(final):.3f} and {np.nanmax(final):.3f}"
    else:
        pairs = zip(history.clients, final, strict=True)
        ends = "At the end " + ", ".join(f"{name} has {value:.3f}" for name, value in pairs)
    return f"{ends}. The goal is {goal}; {reached:,} of {count:,} agents reach it."
