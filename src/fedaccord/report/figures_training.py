"""Figures of training and of audits of defection, as matplotlib axes.

    plot_defection(audit)         how often an agent that gives less is satisfied all the same
    plot_training(history)        accuracy round by round, with the goal
    plot_draws(history)           whom the algorithm has drawn samples from
    plot_difficulty(scores)       how hard the points are, and which are hard and easy ones
    plot_pretraining(weights)     accuracy by batches, before any federation
    plot_search(draws)            accuracy by learning rate and batch size

Each draws on the axes it is given, or on a figure of its own that matplotlib.pyplot does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.federation.charts import defection_chart, draws_chart, training_chart
from fedaccord.report import style
from fedaccord.report.drawing import finish, new_axes, plot_chart, put_legend, set_labels, styled
from fedaccord.wording import format_percent_tick, format_tick

# After fedaccord.report.drawing, which says what to install where matplotlib is missing.
from matplotlib.ticker import FuncFormatter  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.data.difficulty import Bands, Scores
    from fedaccord.federation.data.pretraining import Draw, PretrainedWeights
    from fedaccord.federation.defection.curves import DefectionAudit
    from fedaccord.federation.history import History

BINS = 40
# Scores that reach this many times their median need a logarithmic axis to be seen.
SKEWED = 10


def plot_defection(audit: DefectionAudit, ax: Axes | None = None) -> Axes:
    """Draw how often an agent that gives less is satisfied all the same, by algorithm.

    The line is a random agent, with its 95 % intervals; the dashed one the agent worst off.

    audit: what was found.
    ax: where to draw.
    """
    ax = plot_chart(defection_chart(audit), ax)
    levels = sorted({100 * point.level for curve in audit.curves for point in curve.levels})
    with styled():
        ax.set_xticks(levels, [f"{level:g} %" for level in levels])
        ax.set_xlim(min(0, *levels), 103)
    return finish(ax)


def plot_training(history: History, ax: Axes | None = None) -> Axes:
    """Draw the accuracy for each client by round, with the goal.

    Of more than eight clients: the median, the quartiles, the extremes, and the client that ends
    furthest below its goal.

    history: the run.
    ax: where to draw.
    """
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
    return plot_chart(draws_chart(history), ax)


def pretraining_chart(weights: PretrainedWeights) -> Chart:
    """Chart the accuracy by batches of pre-training, wherever it was looked at."""
    line = Line(
        "accuracy",
        tuple(float(batches) for batches, _ in weights.record),
        tuple(accuracy for _, accuracy in weights.record),
    )
    said = ", ".join(f"{found:.3f} after {batches:,}" for batches, found in weights.record)
    return Chart(
        name="pretraining",
        title="Accuracy of the network by batches of pre-training",
        x="batches of pre-training",
        y="accuracy on the validation pool",
        alt=f"Accuracy by batches: {said or 'it was not measured'}.",
        lines=(line,),
        percent=True,
        goal=weights.provenance.get("until"),
    )


def plot_pretraining(weights: PretrainedWeights, ax: Axes | None = None) -> Axes:
    """Draw the accuracy by batches of pre-training, and the accuracy that was to be reached.

    weights: what pre-training gave.
    ax: where to draw.
    """
    return plot_chart(pretraining_chart(weights), ax)


# Difficulty.


def plot_difficulty(scores: Scores, bands: Bands | None = None, ax: Axes | None = None) -> Axes:
    """Draw how many points have which score, and which of them are the hard and the easy ones.

    scores: the scores; points without one are left out.
    bands: which parts of the scores are hard and easy; none are shown where left out.
    ax: where to draw.
    """
    ax = new_axes() if ax is None else ax
    known = scores.values[~np.isnan(scores.values)]
    if not len(known):
        raise InputError("no point has a score yet; run more trials")
    edges, logarithmic = bin_edges(known)
    parts = {"other points": known}
    if bands is not None:
        hard, easy = bands.pools(scores)
        rest = np.setdiff1d(np.flatnonzero(~np.isnan(scores.values)), np.union1d(hard, easy))
        places = {"easy points": easy, "hard points": hard, "neither": rest}
        parts = {name: scores.values[place] for name, place in places.items() if len(place)}
    colours = {"easy points": style.SERIES[0], "hard points": style.SERIES[1]}
    with styled():
        ax.hist(
            list(parts.values()),
            bins=edges.tolist(),
            stacked=True,
            color=[colours.get(name, style.SERIES[3]) for name in parts],
            label=[f"{name}: {len(values):,}" for name, values in parts.items()],
            rwidth=0.92,
        )
        if logarithmic:
            _set_logarithmic(ax)
        words = f"difficulty, {score_words(scores)}: the further right, the harder"
        set_labels(ax, x=words, top="points")
        ax.grid(axis="y")
        if bands is not None:
            put_legend(ax)
    return finish(ax)


def _set_logarithmic(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
    ax.xaxis.set_minor_formatter(lambda value, _: "")


def score_words(scores: Scores) -> str:
    """Say what a score is, by the method it was found with."""
    words = {
        "loss": "the loss under a network that learnt from others",
        "trials": "the mean number of batches until networks that learn from it are good",
    }
    return words.get(str(scores.provenance.get("method")), "the score")


def bin_edges(known: Vector) -> tuple[Vector, bool]:
    """Choose the bins of a histogram of scores, and whether its axis is logarithmic."""
    least, most = float(known.min()), float(known.max())
    if least > 0 and most > SKEWED * float(np.median(known)):
        return np.geomspace(least, most, BINS + 1), True
    if least == most:
        return np.array([least - 0.5, most + 0.5]), False
    return np.linspace(least, most, BINS + 1), False


# The search of hyperparameters.


def plot_search(draws: Sequence[Draw], ax: Axes | None = None) -> Axes:
    """Draw the accuracy by learning rate, with a marker for each batch size.

    draws: what was tried; those that diverged stand at the bottom.
    ax: where to draw.
    """
    ax = new_axes() if ax is None else ax
    sizes = sorted({draw.batch_size for draw in draws})
    with styled():
        for n, size in enumerate(sizes):
            colour, marker, _ = style.series(n)
            own = [d for d in draws if d.batch_size == size and not np.isnan(d.accuracy)]
            ax.plot(
                [draw.learning_rate for draw in own],
                [draw.accuracy for draw in own],
                marker,
                color=colour,
                markersize=7,
                label=f"batches of {size:,}",
                clip_on=False,
            )
        diverged = [draw.learning_rate for draw in draws if np.isnan(draw.accuracy)]
        if diverged:
            bottom = [0.0] * len(diverged)
            ax.plot(diverged, bottom, "x", color=style.BAD, label="diverged", clip_on=False)
        _set_logarithmic(ax)
        set_labels(ax, x="learning rate", top="accuracy on the validation pool")
        ax.set_ylim(0, 1)
        ax.yaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        ax.grid(axis="y")
        put_legend(ax)
    return finish(ax)
