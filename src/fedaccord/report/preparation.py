"""What comes before federated training: hard and easy samples, pre-training, hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.report import style
from fedaccord.report.model import (
    Cell,
    Column,
    Mark,
    Page,
    Part,
    Picture,
    Records,
    Section,
    Table,
    list_run_facts,
)
from fedaccord.wording import count, format_number, format_percent, format_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.data.pretraining import Bands, PretrainedWeights, Scores
    from fedaccord.federation.data.search import Draw

# What a score is, by the method that found it.
SCORES = {
    "loss": "its loss under a network trained on other samples",
    "trials": "the mean number of batches until networks that learn from it are good enough",
}
BINS = 40
# Scores that reach this many times their median need a logarithmic axis to be seen.
SKEWED = 10


def list_pairs(head: str, pairs: Mapping[str, Any]) -> Table:
    """List values by name, below a head."""
    rows = (
        (name, format_number(value) if isinstance(value, int | float) else str(value))
        for name, value in pairs.items()
    )
    return Table(head, (head, ""), tuple(rows))


def _list_provenance(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the settings and results behind the numbers, a fact for each name."""
    for name, value in known.items():
        if name in ("versions", "pool") or value is None:
            continue
        text = format_settings(value) if isinstance(value, Mapping) else str(value)
        if isinstance(value, bool):
            text = "yes" if value else "no"
        yield name.replace("_", " ").capitalize(), text


def _mark_accuracy(value: float) -> Cell:
    return Mark("diverged", "bad") if np.isnan(value) else value


# Difficulty.


def difficulty_page(scores: Scores, bands: Bands | None = None, *, command: str = "") -> Page:
    """Make a page of how hard samples are.

    scores: the scores.
    bands: which parts of the scores are hard and easy.
    command: what was typed.
    """
    summary = scores.summary()
    score = SCORES.get(str(scores.provenance.get("method")), "the score")
    pools = {} if bands is None else dict(zip(("hard", "easy"), bands.pools(scores), strict=True))
    verdict = (
        f"The scores of {summary['points']:,} samples go from {summary['least']:.3g} to "
        f"{summary['most']:.3g}; the mean is {summary['mean']:.3g}."
    )
    doubt = _doubt_scores(scores)
    return Page(
        title="How hard the samples are",
        verdict=" ".join(filter(None, (_describe_bands(scores, pools), verdict, doubt))),
        tone="unsure" if doubt else "plain",
        sections=(
            Section(
                "Scores",
                (
                    f"The score of a sample is {score}. A higher score means a harder sample.",
                    _picture_difficulty(scores, bands),
                    _list_scores(scores, pools),
                ),
            ),
        ),
        facts=(
            *_list_provenance(scores.provenance),
            ("Scored samples", f"sha256 {scores.pool}"),
            *list_run_facts(),
        ),
        command=command,
    )


def _describe_bands(scores: Scores, pools: Mapping[str, Any]) -> str:
    """Return how many samples count as hard and as easy, and how far apart they are."""
    if not pools:
        return ""
    known = int((~np.isnan(scores.values)).sum())
    parts = [f"{format_percent(len(own) / known)} count as {name}" for name, own in pools.items()]
    means = [f"{scores.values[own].mean():.3g}" for own in pools.values()]
    return (
        f"Of all samples, {' and '.join(parts)}. The mean score is {means[0]} for hard samples and "
        f"{means[1]} for easy ones."
    )


def _doubt_scores(scores: Scores) -> str:
    """Return what makes the scores less certain than they look, if anything does."""
    known = scores.provenance
    if known.get("good_enough") is False:
        return (
            "Doubt: the network behind the losses reached an accuracy of "
            f"{known['accuracy']:.3f}, less than the target of {known['until']:g}."
        )
    if known.get("capped"):
        return (
            f"Doubt: {known['capped']:,} of {known['trials']:,} trials ended before the network "
            "was good enough."
        )
    return ""


def _picture_difficulty(scores: Scores, bands: Bands | None) -> Picture:
    from fedaccord.report.drawing import NARROW

    values = scores.values[~np.isnan(scores.values)]
    edges, _ = choose_bins(values)
    counts, _ = np.histogram(values, edges)
    rows = tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))
    peak = int(counts.argmax())
    return Picture(
        name="difficulty",
        title="How many samples have which difficulty",
        alt=f"A histogram of {len(values):,} scores; most, {counts[peak]:,}, lie between "
        f"{edges[peak]:.3g} and {edges[peak + 1]:.3g}.",
        draw=lambda ax: plot_difficulty(scores, bands, ax),
        data=Table("Samples by score", ("score from", "to", "samples"), rows),
        narrow=NARROW,
    )


def _list_scores(scores: Scores, pools: Mapping[str, Any]) -> Table:
    groups = {"all": np.flatnonzero(~np.isnan(scores.values)), **pools}
    rows: list[tuple[Cell, ...]] = []
    for name, places in groups.items():
        own = scores.values[places]
        numbers = (own.mean(), own.std(), own.min(), own.max())
        rows.append((name, len(places), *(float(f"{number:.4g}") for number in numbers)))
    heads = ("samples", "number", "mean", "standard deviation", "least", "most")
    return Table("Scores of all samples, and of the hard and the easy ones", heads, tuple(rows))


def plot_difficulty(scores: Scores, bands: Bands | None = None, ax: Axes | None = None) -> Axes:
    """Draw how many samples have which score, with the hard and the easy ones.

    scores: the scores; samples without one are left out.
    bands: which parts of the scores are hard and easy; None shows none.
    ax: where to draw.
    """
    from fedaccord.report.drawing import finish, new_axes, set_axes, styled

    ax = new_axes() if ax is None else ax
    known = scores.values[~np.isnan(scores.values)]
    if not len(known):
        raise InputError("no sample has a score yet; run more trials")
    edges, logarithmic = choose_bins(known)
    parts = {"other samples": known}
    if bands is not None:
        hard, easy = bands.pools(scores)
        rest = np.setdiff1d(np.flatnonzero(~np.isnan(scores.values)), np.union1d(hard, easy))
        places = {"easy samples": easy, "hard samples": hard, "neither": rest}
        parts = {name: scores.values[place] for name, place in places.items() if len(place)}
    colours = {"easy samples": style.SERIES[0], "hard samples": style.SERIES[1]}
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
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter(lambda value, _: "")
        score = SCORES.get(str(scores.provenance.get("method")), "the score")
        words = f"difficulty of a sample: {score}"
        set_axes(ax, x=words, top="samples", legend=bands is not None)
    return finish(ax)


def choose_bins(known: Vector) -> tuple[Vector, bool]:
    """Return the edges of the bins of a histogram of scores, and whether they are logarithmic."""
    least, most = float(known.min()), float(known.max())
    if least > 0 and most > SKEWED * float(np.median(known)):
        return np.geomspace(least, most, BINS + 1), True
    if least == most:
        return np.array([least - 0.5, most + 0.5]), False
    return np.linspace(least, most, BINS + 1), False


# Pre-training.


def pretrain_page(weights: PretrainedWeights, *, command: str = "") -> Page:
    """Make a page of pre-training.

    weights: the weights that it ended with.
    command: what was typed.
    """
    from fedaccord.report.drawing import picture_of

    known = weights.provenance
    batches = count(weights.batches, "batch", "batches")
    verdict = f"After {batches} on {known['points']:,} samples, "
    if not weights.record:
        verdict += "the network's accuracy is not known: there are no samples to measure it on."
    else:
        verdict += f"the network's accuracy on the validation pool is {weights.accuracy:.3f}."
    until = known.get("until")
    missed = until is not None and not weights.accuracy >= until
    if missed:
        verdict += f" That is below the target of {until:g}: use more batches."
    elif weights.record:
        verdict += " Every federation of this config starts from these weights."
    rows = tuple((batches, _mark_accuracy(round(found, 3))) for batches, found in weights.record)
    parts: list[Part] = [Table("Accuracy by batches", ("after batches", "accuracy"), rows)]
    if len(weights.record) > 1:
        parts.insert(0, picture_of(_chart_pretraining(weights)))
    return Page(
        title="What the network knows before federated training",
        verdict=verdict,
        tone="unsure" if missed else "plain",
        sections=(Section("Pre-training", tuple(parts)),),
        facts=(*_list_provenance(known), *list_run_facts()),
        command=command,
    )


def _chart_pretraining(weights: PretrainedWeights) -> Chart:
    """Chart the accuracy by batches of pre-training, at each evaluation."""
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
        alt=f"Accuracy by batches: {said or 'not measured'}.",
        lines=(line,),
        percent=True,
        goal=weights.provenance.get("until"),
    )


def plot_pretraining(weights: PretrainedWeights, ax: Axes | None = None) -> Axes:
    """Draw the accuracy by batches of pre-training, with the target.

    weights: the weights that pre-training ended with.
    ax: where to draw.
    """
    from fedaccord.report.drawing import plot_chart

    return plot_chart(_chart_pretraining(weights), ax)


# The search of hyperparameters.


def list_search(draws: Sequence[Draw], rate: Callable[[float], Cell] = "{:.2e}".format) -> Records:
    """List the choices of a search, the best first.

    draws: the choices.
    rate: writes a learning rate; learning rates are orders of magnitude apart.
    """
    return Records(
        "Choices tried, the best first",
        (
            Column("learning rate", lambda n: rate(draws[n].learning_rate)),
            Column("batch size", lambda n: draws[n].batch_size, write=str),
            Column(
                "batches trained", lambda n: draws[n].batches, short="batches", write="{:,}".format
            ),
            Column(
                "accuracy",
                lambda n: _mark_accuracy(draws[n].accuracy),
                write="{:.4f}".format,
                trim=partial(round, ndigits=3),
            ),
        ),
        range(len(draws)),
    )


def search_page(draws: Sequence[Draw], *, seed: int | None = None, command: str = "") -> Page:
    """Make a page of a search of hyperparameters.

    draws: the choices, the best first.
    seed: of the search; None leaves it out of the facts.
    command: what was typed.
    """
    from fedaccord.report.drawing import NARROW

    diverged = sum(bool(np.isnan(draw.accuracy)) for draw in draws)
    best, choices = draws[0], count(len(draws), "choice")
    if diverged == len(draws):
        verdict = f"All of {choices} diverged. Use smaller learning rates."
    else:
        verdict = (
            f"Use a learning rate of {best.learning_rate:.2g} with batches of {best.batch_size:,}: "
            f"the best of {choices}. Its accuracy on the validation pool is {best.accuracy:.3f}."
        )
    picture = Picture(
        name="search",
        title="Accuracy by learning rate and batch size",
        alt=f"{verdict} {diverged:,} diverged." if diverged else verdict,
        draw=lambda ax: plot_search(draws, ax),
        data=list_search(draws, float).table("page"),
        narrow=NARROW,
    )
    return Page(
        title="Which learning rate and batch size to use",
        verdict=verdict,
        tone="bad" if diverged == len(draws) else "plain",
        sections=(Section("Choices tried", (picture, list_search(draws).table("page"))),),
        facts=(*(() if seed is None else (("Seed", str(seed)),)), *list_run_facts()),
        command=command,
    )


def plot_search(draws: Sequence[Draw], ax: Axes | None = None) -> Axes:
    """Draw the accuracy by learning rate, with a marker for each batch size.

    draws: the choices; those that diverged are at the bottom.
    ax: where to draw.
    """
    from fedaccord.report.drawing import finish, new_axes, set_axes, styled

    ax = new_axes() if ax is None else ax
    with styled():
        for n, size in enumerate(sorted({draw.batch_size for draw in draws})):
            colour, marker, _ = style.series(n)
            own = [d for d in draws if d.batch_size == size and not np.isnan(d.accuracy)]
            rates, heights = [d.learning_rate for d in own], [d.accuracy for d in own]
            label = f"batches of {size:,}"
            ax.plot(rates, heights, marker, color=colour, ms=7, label=label, clip_on=False)
        diverged = [draw.learning_rate for draw in draws if np.isnan(draw.accuracy)]
        if diverged:
            bottom = [0.0] * len(diverged)
            ax.plot(diverged, bottom, "x", color=style.BAD, label="diverged", clip_on=False)
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(lambda value, _: "")
        ax.set_ylim(0, 1)
        set_axes(ax, x="learning rate", top="accuracy on the validation pool", percent="y")
    return finish(ax)
