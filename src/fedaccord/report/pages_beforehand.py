"""Pages of what comes before training: difficulty, pre-training, the search of hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.report import figures_training as figures
from fedaccord.report.drawing import NARROW, picture_of
from fedaccord.report.facts import Facts, settings_text, surroundings
from fedaccord.report.model import Cell, Mark, Page, Part, Picture, Section, Table
from fedaccord.report.training import percent

if TYPE_CHECKING:
    from fedaccord.federation.data.difficulty import Bands, Scores
    from fedaccord.federation.data.pretraining import Draw, PretrainedWeights


def difficulty_page(scores: Scores, bands: Bands | None = None, *, command: str = "") -> Page:
    """Make a page of how hard points are.

    scores: the scores.
    bands: which parts of the scores are hard and easy.
    command: what was typed.
    """
    summary = scores.summary()
    pools = {} if bands is None else dict(zip(("hard", "easy"), bands.pools(scores), strict=True))
    verdict = (
        f"{summary['points']:,} points have scores from {summary['least']:.3g} to "
        f"{summary['most']:.3g}, {summary['mean']:.3g} on average."
    )
    doubt = _doubt(scores)
    return Page(
        title="How hard the points are",
        verdict=" ".join((*_band_words(scores, pools), verdict, *doubt)),
        tone="unsure" if doubt else "plain",
        sections=(
            Section(
                "Scores",
                (
                    f"A point's score is {figures.score_words(scores)}: the higher, the harder.",
                    _difficulty_picture(scores, bands),
                    _scores_table(scores, pools),
                ),
            ),
        ),
        facts=(
            *_provenance(scores.provenance),
            ("Points scored", f"sha256 {scores.pool}"),
            *surroundings(),
        ),
        command=command,
    )


def _band_words(scores: Scores, pools: Mapping[str, Any]) -> tuple[str, ...]:
    """Say how many points count as hard and how many as easy, and how far apart those are."""
    if not pools:
        return ()
    known = int((~np.isnan(scores.values)).sum())
    parts = [f"{percent(len(places) / known)} count as {name}" for name, places in pools.items()]
    means = [f"{scores.values[places].mean():.3g}" for places in pools.values()]
    return (
        f"Of the points {' and '.join(parts)}: the hard ones score {means[0]} on average, the easy "
        f"ones {means[1]}.",
    )


def _doubt(scores: Scores) -> tuple[str, ...]:
    """Say what makes the scores less certain than they look."""
    known = scores.provenance
    if known.get("good_enough") is False:
        return (
            "This is not certain: the network that gives the losses reached an accuracy of "
            f"{known['accuracy']:.3f}, less than the {known['until']:g} it was to reach.",
        )
    if known.get("capped"):
        return (
            f"This is not certain: {known['capped']:,} of {known['trials']:,} trials ended without "
            "being good.",
        )
    return ()


def _difficulty_picture(scores: Scores, bands: Bands | None) -> Picture:
    values = scores.values[~np.isnan(scores.values)]
    edges, _ = figures.bin_edges(values)
    counts, _ = np.histogram(values, edges)
    rows = tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))
    peak = int(counts.argmax())
    return Picture(
        name="difficulty",
        title="How many points are how hard",
        alt=f"A histogram of {len(values):,} scores; most, {counts[peak]:,}, lie between "
        f"{edges[peak]:.3g} and {edges[peak + 1]:.3g}.",
        draw=lambda ax: figures.plot_difficulty(scores, bands, ax),
        data=Table("Points by score", ("score from", "to", "points"), rows),
        narrow=NARROW,
    )


def _scores_table(scores: Scores, pools: Mapping[str, Any]) -> Table:
    groups = {"all": np.flatnonzero(~np.isnan(scores.values)), **pools}
    rows: list[tuple[Cell, ...]] = []
    for name, places in groups.items():
        own = scores.values[places]
        numbers = (own.mean(), own.std(), own.min(), own.max())
        rows.append((name, len(places), *(float(f"{number:.4g}") for number in numbers)))
    heads = ("points", "how many", "mean", "standard deviation", "least", "most")
    return Table("Scores of all points, and of the bands", heads, tuple(rows))


def _provenance(known: Mapping[str, Any]) -> Facts:
    """Write what is known of how numbers came about, a fact for each name."""
    return tuple(
        (name.replace("_", " ").capitalize(), _written(value))
        for name, value in known.items()
        if name not in ("versions", "pool") and value is not None
    )


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return settings_text(value) if isinstance(value, Mapping) else str(value)


def pretrain_page(weights: PretrainedWeights, *, command: str = "") -> Page:
    """Make a page of pre-training.

    weights: what it gave.
    command: what was typed.
    """
    known = weights.provenance
    batches = f"{weights.batches:,} {'batch' if weights.batches == 1 else 'batches'}"
    verdict = f"After {batches} on {known['points']:,} points "
    if not weights.record:
        verdict += "the network's accuracy is not known: there are no points to measure it on."
    else:
        verdict += f"the network's accuracy on the validation pool is {weights.accuracy:.3f}."
    until = known.get("until")
    missed = until is not None and not weights.accuracy >= until
    if missed:
        verdict += f" It was to reach {until:g}, and did not: give it more batches."
    elif weights.record:
        verdict += " Every federation of this config starts from it."
    rows = tuple((batches, _accuracy(accuracy)) for batches, accuracy in weights.record)
    parts: list[Part] = [Table("Accuracy by batches", ("after batches", "accuracy"), rows)]
    if len(weights.record) > 1:
        parts.insert(0, picture_of(figures.pretraining_chart(weights)))
    return Page(
        title="What the network knows before any federation",
        verdict=verdict,
        tone="unsure" if missed else "plain",
        sections=(Section("Pre-training", tuple(parts)),),
        facts=_provenance(known) + surroundings(),
        command=command,
    )


def search_page(draws: Sequence[Draw], *, seed: int | None = None, command: str = "") -> Page:
    """Make a page of a search of hyperparameters.

    draws: what was tried, the best first.
    seed: of the search; not told where left out.
    command: what was typed.
    """
    diverged = sum(bool(np.isnan(draw.accuracy)) for draw in draws)
    best = draws[0]
    choices = f"{len(draws):,} {'choice' if len(draws) == 1 else 'choices'}"
    if diverged == len(draws):
        verdict = f"All of {choices} diverged: try smaller learning rates."
    else:
        verdict = (
            f"Use a learning rate of {best.learning_rate:.2g} with batches of {best.batch_size:,}, "
            f"the best of {choices}: its accuracy on the validation pool is {best.accuracy:.3f}."
        )
    # Learning rates are orders apart: in full for the CSV, and short for the eye.
    full = _search_table(draws, [draw.learning_rate for draw in draws])
    short = _search_table(draws, [f"{draw.learning_rate:.2e}" for draw in draws])
    picture = Picture(
        name="search",
        title="Accuracy by learning rate and batch size",
        alt=f"{verdict} {diverged:,} diverged." if diverged else verdict,
        draw=lambda ax: figures.plot_search(draws, ax),
        data=full,
        narrow=NARROW,
    )
    return Page(
        title="Which learning rate and batch size",
        verdict=verdict,
        tone="bad" if diverged == len(draws) else "plain",
        sections=(Section("What was tried", (picture, short)),),
        facts=(*(() if seed is None else (("Seed", str(seed)),)), *surroundings()),
        command=command,
    )


def _search_table(draws: Sequence[Draw], rates: Sequence[Cell]) -> Table:
    rows = tuple(
        (rate, draw.batch_size, draw.batches, _accuracy(draw.accuracy))
        for rate, draw in zip(rates, draws, strict=True)
    )
    heads = ("learning rate", "batch size", "batches trained", "accuracy")
    return Table("What was tried, the best first", heads, rows)


def _accuracy(value: float) -> Cell:
    return Mark("diverged", "bad") if np.isnan(value) else round(value, 3)
