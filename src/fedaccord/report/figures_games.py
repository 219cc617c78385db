"""Figures of games, plans and their audits, as matplotlib axes.

    plot_allocations(game, solutions)   who gives how much, alone and under each plan
    plot_spare(audit)                   who could give less, who is short, and by how much
    plot_envy(audit)                    who would rather have whose burden
    plot_prices(prices)                 what stability and fairness cost, against sqrt(k)
    plot_overlap(game)                  who shares data with whom

Each draws on the axes it is given, or on a figure of its own that matplotlib.pyplot does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter

from fedaccord._arrays import Indices, Vector
from fedaccord.equilibria.base import Interval, Solution
from fedaccord.games.base import Game
from fedaccord.report import style
from fedaccord.report.drawing import (
    finish,
    new_axes,
    put_legend,
    set_labels,
    short,
    styled,
    tick_text,
)
from fedaccord.report.figures_audits import plot_envy, plot_spare
from fedaccord.report.figures_overlap import plot_overlap
from fedaccord.report.figures_parts import (
    NAMED,
    WIDTH,
    count_samples,
    legend_beside_names,
    name_rows,
    write_beside,
)
from fedaccord.report.words_games import amount, price_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_allocations", "plot_envy", "plot_overlap", "plot_prices", "plot_spare"]

# Up to NAMED agents have bars; up to DOTS a dot; beyond, bands over neighbours in rank.
DOTS = 500
BANDS = 100
LEAST = 25
# Bars are thick, with their numbers at their ends, while there are this few agents.
THICK = 12

COLOURS = {
    "alone": style.ALONE,
    "optimal": style.OPTIMAL,
    "stable": style.STABLE,
    "envy-free": style.ENVY_FREE,
}
MARKERS = dict(zip(COLOURS, ("", *style.MARKERS), strict=False))


# Who gives how much.


def burdens(game: Game, solutions: Mapping[str, Solution]) -> dict[str, Vector]:
    """Give what each agent gives: alone, and under each plan that was found."""
    found = {n: s.contributions for n, s in solutions.items() if s.contributions is not None}
    return {"alone": game.alone, **found}


def allocations_size(game: Game, solutions: Mapping[str, Solution]) -> tuple[float, float]:
    """Give the width and height in inches that the plans of a game need."""
    if game.size > NAMED:
        return WIDTH, 4.2
    bars = len(burdens(game, solutions))
    row = 0.12 + 0.17 * bars if game.size <= THICK else 0.08 + 0.075 * bars
    return WIDTH, 1.3 + game.size * row


def plot_allocations(
    game: Game, solutions: Mapping[str, Solution], *, ax: Axes | None = None
) -> Axes:
    """Draw what each agent gives, alone and under each plan, side by side.

    Up to thirty agents have bars; more stand in the order of what each would need alone, as dots,
    and above five hundred as the middle and the 10 to 90 % band of neighbours in that order.

    game: what was solved.
    solutions: the solutions by name, such as the concept.
    ax: where to draw.
    """
    ax = new_axes(allocations_size(game, solutions)) if ax is None else ax
    given = burdens(game, solutions)
    with styled():
        if game.size <= NAMED:
            _draw_bars(ax, game, given)
            legend_beside_names(ax)
        else:
            (_draw_dots if game.size <= DOTS else _draw_bands)(ax, given)
            _set_scale(ax, given)
            label = "agents, from the largest stand-alone need to the smallest"
            set_labels(ax, x=label, top="samples")
            ax.set_xlim(0, game.size + 1)
            ax.xaxis.set_major_formatter(FuncFormatter(tick_text))
            ax.grid(axis="y")
            put_legend(ax)
    return finish(ax)


def _colour(name: str, place: int) -> str:
    return COLOURS.get(name, style.SERIES[place % len(style.SERIES)])


def _total_label(name: str, values: Vector) -> str:
    total = values.sum()
    return f"{short(name)}: {amount(total)} in all" if np.isfinite(total) else short(name)


def _draw_bars(ax: Axes, game: Game, given: Mapping[str, Vector]) -> None:
    width = 0.84 / len(given)
    places = np.arange(game.size)
    largest = max(float(v[np.isfinite(v)].max(initial=0.0)) for v in given.values()) or 1.0
    for n, (name, values) in enumerate(given.items()):
        at = places + (n - (len(given) - 1) / 2) * width
        finite = np.where(np.isfinite(values), values, 0.0)
        bars = ax.barh(at, finite, 0.9 * width, color=_colour(name, n))
        bars.set_label(_total_label(name, values))
        for y, value in zip(at.tolist(), values.tolist(), strict=True):
            if not np.isfinite(value):
                write_beside(ax, 0.0, y, "alone no amount suffices")
            elif game.size <= THICK:
                write_beside(ax, value, y, amount(value))
    name_rows(ax, (game.name(i) for i in range(game.size)))
    count_samples(ax, "samples", (0, largest, 0.12))


def by_need(given: Mapping[str, Vector]) -> Indices:
    """Order agents by what they would need alone, the largest first; ties by the plans."""
    keys = [-np.asarray(values) for values in given.values()]
    # Of plans of the same kind the stable one says most about who carries what.
    keys[1:] = sorted(keys[1:], key=lambda key: key is not given.get("stable"))
    return np.lexsort(keys[::-1])


def _draw_dots(ax: Axes, given: Mapping[str, Vector]) -> None:
    order = by_need(given)
    ranks = np.arange(1, len(order) + 1)
    for n, (name, values) in enumerate(given.items()):
        label, shown = _total_label(name, values), values[order]
        if name == "alone":
            ax.step(ranks, shown, where="mid", color=_colour(name, n), label=label)
        else:
            # The last is hollow: where two plans agree, both are seen.
            colour, hollow = _colour(name, n), n == len(given) - 1 > 1
            ax.plot(
                ranks,
                shown,
                MARKERS.get(name, style.MARKERS[n % len(style.MARKERS)]),
                color=colour,
                markersize=5 if hollow else 4,
                markerfacecolor="none" if hollow else colour,
                markeredgewidth=0.8 if hollow else 0,
                label=label,
                zorder=3,
            )


def band_ends(size: int) -> Indices:
    """Give where groups of neighbours begin and end: at most BANDS, of LEAST agents or more."""
    return np.linspace(0, size, min(BANDS, max(size // LEAST, 1)) + 1).astype(np.intp)


def banded(order: Indices, values: Vector) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
    """Give the middle rank of each group of neighbours, and its 10, 50 and 90 % points."""
    ends = band_ends(len(order))
    laid = values[order]
    groups = [laid[a:b] for a, b in pairwise(ends.tolist())]
    points = [np.quantile(group, (0.1, 0.5, 0.9), method="nearest") for group in groups]
    low, middle, high = np.array(points).T
    return (ends[:-1] + ends[1:] + 1) / 2, (low, middle, high)


def _draw_bands(ax: Axes, given: Mapping[str, Vector]) -> None:
    order = by_need(given)
    for n, (name, values) in enumerate(given.items()):
        ranks, (low, middle, high) = banded(order, values)
        colour, dashes = _colour(name, n), style.DASHES[n % len(style.DASHES)]
        ax.fill_between(ranks, low, high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(ranks, middle, color=colour, ls=dashes, label=_total_label(name, values))


def _set_scale(ax: Axes, given: Mapping[str, Vector]) -> None:
    """Use a logarithmic axis, with room for zero, where numbers are orders apart."""
    values = np.concatenate(list(given.values()))
    positive = values[np.isfinite(values) & (values > 0)]
    least, most = np.quantile(positive, (0.02, 1.0)) if positive.size else (1.0, 1.0)
    if most > 100 * least:
        ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(least)), linscale=0.5)
    ax.yaxis.set_major_formatter(FuncFormatter(tick_text))
    ax.set_ylim(0, most * 1.05)


# Prices.


def plot_prices(prices: Mapping[str, Mapping[int, Interval]], ax: Axes | None = None) -> Axes:
    """Draw prices against the number of agents, with sqrt(k) for comparison.

    Theorem 4's flower has prices that grow like sqrt(k), about half of it.

    prices: for each name, such as "price of stability", the price at each number of agents.
    ax: where to draw.
    """
    ax = new_axes((WIDTH, 3.6)) if ax is None else ax
    sizes = [k for series in prices.values() for k in series] or [1]
    ends = np.array([1.0, 10 ** np.ceil(np.log10(max(sizes) + 1.5))])
    with styled():
        ax.plot(
            ends, np.sqrt(ends), color=style.REFERENCE, ls="dashed", label="√k, for comparison",
            linewidth=1.4,
        )  # fmt: skip
        for n, (name, series) in enumerate(prices.items()):
            # Prices of one game stand side by side.
            apart = ends[1] ** (0.025 * (n - (len(prices) - 1) / 2)) if len(series) == 1 else 1.0
            _draw_price(ax, name, series, n, apart)
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(tick_text))
            axis.set_minor_formatter(lambda value, _: "")
        ax.set_xlim(*ends)
        top = max([float(np.sqrt(ends[1])), *_finite_ends(prices)])
        ax.set_ylim(top**-0.06, top * 1.15)
        marks = (1, 1.5, 2, 3, 5, 10, 20) if top <= 20 else 10.0 ** np.arange(10)
        ax.set_yticks([mark for mark in marks if mark <= top * 1.1])
        set_labels(ax, x="k, the number of agents", top="price: total over the least total")
        ax.grid(axis="both")
        put_legend(ax)
    return finish(ax)


def _finite_ends(prices: Mapping[str, Mapping[int, Interval]]) -> list[float]:
    ends = [e for series in prices.values() for p in series.values() for e in (p.lower, p.upper)]
    return [end for end in ends if np.isfinite(end)]


def _draw_price(ax: Axes, name: str, series: Mapping[int, Interval], n: int, apart: float) -> None:
    """Draw a price at each number of agents: a point, and its interval where it is not exact."""
    colour = {
        "price of stability": style.STABLE, "price of fairness": style.ENVY_FREE
    }.get(name, style.SERIES[n % len(style.SERIES)])  # fmt: skip
    known = {k: p for k, p in sorted(series.items()) if np.isfinite(p.lower)}
    at = np.array([k * apart for k in known])
    low = np.array([p.lower for p in known.values()])
    high = np.array([p.upper for p in known.values()])
    bounded = np.isfinite(high)
    middle = np.where(bounded, np.sqrt(low * np.where(bounded, high, 1.0)), low)
    ax.plot(
        at, middle, marker=style.MARKERS[n % len(style.MARKERS)], color=colour, markersize=7,
        linewidth=1.4, label=short(_priced(name, series), 60), zorder=4,
    )  # fmt: skip
    ax.vlines(at[bounded], low[bounded], high[bounded], color=colour, linewidth=4, alpha=0.5)
    for x, y in zip(at[~bounded].tolist(), low[~bounded].tolist(), strict=True):
        ax.annotate(
            "", (x, y * 1.35), xytext=(x, y),
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
        )  # fmt: skip


def _priced(name: str, series: Mapping[int, Interval]) -> str:
    if len(series) != 1:
        return name
    return f"{name}: {price_value(next(iter(series.values())))}"
