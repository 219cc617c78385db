"""Figures of games and plans: who gives how much, and what stability and fairness cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.result import Interval, Solution
from fedaccord.games.base import Game
from fedaccord.report import style
from fedaccord.report.drawing import (
    HANDLE,
    LONGEST_NAME,
    NARROW,
    finish,
    label_names,
    new_axes,
    put_legend,
    set_axes,
    set_logarithmic,
    short,
    size_of,
    styled,
    width_of,
    write_beside,
)
from fedaccord.report.games import ROWS, format_price
from fedaccord.report.model import Picture, Table, keep_finite
from fedaccord.report.terminal import plain
from fedaccord.wording import (
    ALONE,
    ALONE_FOR_TARGET,
    capitalize_first,
    count,
    format_amount,
    format_tick,
    join_first,
    name_alone,
    pluralize,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In inches: how wide figures are, and what is left free at their sides.
WIDTH = 7.6
EDGES = 0.3
# Up to this many agents are all shown by name; of more, these many.
NAMED = 30
FEW = 25
# The most that is told of a picture in words, for those who do not see it.
TOLD = 12
# Names on figures for narrow screens are cut to this.
SHORT_NAME = 14
# The size of numbers at the ends of bars, in points.
TINY = 8.5
# Up to NAMED agents have bars; up to DOTS a dot; beyond, bands over neighbours in rank.
DOTS = 500
BANDS = 100
LEAST = 25
# Bars are thick, with their numbers at their ends, while there are this few agents.
THICK = 12
# What part of a figure's height a line of text takes up.
LINE = 0.08

COLOURS = {
    ALONE: style.ALONE,
    "optimal": style.OPTIMAL,
    "stable": style.STABLE,
    "envy-free": style.ENVY_FREE,
    ALONE_FOR_TARGET: style.ALONE,
    "plan": style.STABLE,
    "proposal": style.OPTIMAL,
}
BOTH_ALONE = (ALONE, ALONE_FOR_TARGET)
MARKERS = dict(zip(COLOURS, ("", *style.MARKERS), strict=False))


# What figures of agents have in common: their names on an axis, their samples on the other.


def narrow_size(size: tuple[float, float]) -> tuple[float, float]:
    """Return the size for a narrow screen: the legend takes more lines."""
    return NARROW[0], size[1] + 0.4


def is_narrow(ax: Axes) -> bool:
    """Return whether a figure is for a narrow screen."""
    return size_of(ax)[0] < (WIDTH + NARROW[0]) / 2


def cut_names(names: Iterable[str], longest: int) -> list[str]:
    """Cut names that are too long: at the end, or where that makes two alike, in the middle."""
    full = [plain(name) for name in names]
    cut = [short(name, longest) for name in full]
    if len(set(cut)) == len(cut):
        return cut
    end = longest * 2 // 3
    return [
        name if len(name) <= longest else f"{name[: longest - end - 1]}…{name[-end:]}"
        for name in full
    ]


def label_rows(ax: Axes, names: Iterable[str]) -> None:
    """Write the names of agents to the left of their rows, the first on top."""
    shown = cut_names(names, SHORT_NAME if is_narrow(ax) else LONGEST_NAME)
    label_names(ax, "y", range(len(shown)), shown)
    ax.set_ylim(len(shown) - 0.5, -0.5)


def legend_beside_names(ax: Axes) -> None:
    """Put the legend above the axes, in as many columns as fit next to the names of the rows."""
    names = max((width_of(label.get_text()) for label in ax.get_yticklabels()), default=0.0)
    labels = ax.get_legend_handles_labels()[1]
    widest = max((HANDLE + width_of(label, style.SMALL) for label in labels), default=1.0)
    fit = int((size_of(ax)[0] - names - EDGES) / widest)
    put_legend(ax, ncols=min(max(fit, 1), len(labels)))


def set_samples_axis(ax: Axes, label: str, ends: Sequence[float]) -> None:
    """Make the horizontal axis one of samples, with room for words at the ends of bars.

    ends: its least and largest number, and what part of that is room.
    """
    least, most, room = ends
    ax.set_xlim(least, most * (1 + room * (1.7 if is_narrow(ax) else 1.0)))
    ax.set_xlabel(label)
    ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
    if is_narrow(ax):
        ax.locator_params(axis="x", nbins=5)
    ax.spines["bottom"].set_visible(False)
    ax.grid(axis="x")


# Who gives how much.


def collect_burdens(game: Game, solutions: Mapping[str, Solution]) -> dict[str, Vector]:
    """Return what each agent gives: alone, and under each plan that was found."""
    found = {n: s.contributions for n, s in solutions.items() if s.contributions is not None}
    return {name_alone(game.has_margins): game.alone, **found}


def size_burdens(game: Game, given: Mapping[str, Vector]) -> tuple[float, float]:
    """Return the width and height in inches that the plans of a game need."""
    if game.size > NAMED:
        return WIDTH, 4.2
    bars = len(given)
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
    return plot_burdens(game, collect_burdens(game, solutions), ax=ax)


def plot_burdens(game: Game, given: Mapping[str, Vector], *, ax: Axes | None = None) -> Axes:
    """Draw what each agent gives by the name of the plan, as plot_allocations does."""
    ax = new_axes(size_burdens(game, given)) if ax is None else ax
    with styled():
        if game.size <= NAMED:
            _draw_bars(ax, game, given)
            legend_beside_names(ax)
        else:
            (_draw_dots if game.size <= DOTS else _draw_bands)(ax, given)
            _set_scale(ax, given)
            ax.set_xlim(0, game.size + 1)
            label = "agents, from the largest stand-alone need to the smallest"
            set_axes(ax, x=label, top="samples")
    return finish(ax)


def _colour(name: str, place: int) -> str:
    return COLOURS.get(name, style.SERIES[place % len(style.SERIES)])


def _total_label(name: str, values: Vector) -> str:
    total = values.sum()
    return f"{short(name)}: {format_amount(total)} in all" if np.isfinite(total) else short(name)


def _draw_bars(ax: Axes, game: Game, given: Mapping[str, Vector]) -> None:
    width = 0.84 / len(given)
    places = np.arange(game.size)
    largest = max(float(v[np.isfinite(v)].max(initial=0.0)) for v in given.values()) or 1.0
    for n, (name, values) in enumerate(given.items()):
        at = places + (n - (len(given) - 1) / 2) * width
        finite = np.where(np.isfinite(values), values, 0.0)
        bars = ax.barh(at, finite, 0.9 * width, color=_colour(name, n))
        bars.set_label(_total_label(name, values))
        for y, value, limit in zip(at.tolist(), values.tolist(), game.limits.tolist(), strict=True):
            if not np.isfinite(value):
                none = "alone no amount is enough" if limit else "no samples of its own"
                write_beside(ax, 0.0, y, none, fontsize=TINY)
            elif game.size <= THICK:
                write_beside(ax, value, y, format_amount(value), fontsize=TINY)
    label_rows(ax, (game.name(i) for i in range(game.size)))
    set_samples_axis(ax, "samples", (0, largest, 0.12))


def order_by_need(given: Mapping[str, Vector]) -> Indices:
    """Order agents by what they would need alone, the largest first; ties by the plans."""
    keys = [-np.asarray(values) for values in given.values()]
    # Of plans of the same kind the stable one says most about who carries what.
    keys[1:] = sorted(keys[1:], key=lambda key: key is not given.get("stable"))
    return np.lexsort(keys[::-1])


def _draw_dots(ax: Axes, given: Mapping[str, Vector]) -> None:
    order = order_by_need(given)
    ranks = np.arange(1, len(order) + 1)
    for n, (name, values) in enumerate(given.items()):
        label, shown = _total_label(name, values), values[order]
        if name in BOTH_ALONE:
            ax.step(ranks, shown, where="mid", color=_colour(name, n), label=label)
        else:
            # The last is hollow: where two plans agree, both are seen.
            colour, hollow = _colour(name, n), n == len(given) - 1 > 1
            same = _same_plan(name, given)
            ax.plot(
                [] if same else ranks,
                [] if same else shown,
                MARKERS.get(name, style.MARKERS[n % len(style.MARKERS)]),
                color=colour,
                markersize=5 if hollow else 4,
                markerfacecolor="none" if hollow else colour,
                markeredgewidth=0.8 if hollow else 0,
                label=f"{short(name)}: the same as {short(same)}" if same else label,
                zorder=3,
            )


def _same_plan(name: str, given: Mapping[str, Vector]) -> str:
    """Name the plan before this one that asks the same of everybody, if there is one."""
    for other, values in given.items():
        if other == name:
            break
        if other not in BOTH_ALONE and np.allclose(values, given[name], rtol=1e-6, atol=0):
            return other
    return ""


def band_ends(size: int) -> Indices:
    """Return where groups of neighbours begin and end: at most BANDS, of LEAST agents or more."""
    return np.linspace(0, size, min(BANDS, max(size // LEAST, 1)) + 1).astype(np.intp)


def group_by_rank(order: Indices, values: Vector) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
    """Return the middle rank of each group of neighbours, and its 10, 50 and 90 % points."""
    ends = band_ends(len(order))
    laid = values[order]
    groups = [laid[a:b] for a, b in pairwise(ends.tolist())]
    points = [np.quantile(group, (0.1, 0.5, 0.9), method="nearest") for group in groups]
    low, middle, high = np.array(points).T
    return (ends[:-1] + ends[1:] + 1) / 2, (low, middle, high)


def _draw_bands(ax: Axes, given: Mapping[str, Vector]) -> None:
    order = order_by_need(given)
    for n, (name, values) in enumerate(given.items()):
        ranks, (low, middle, high) = group_by_rank(order, values)
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
    ax.set_ylim(0, most * 1.05)


def picture_burdens(game: Game, given: Mapping[str, Vector]) -> Picture:
    """Show what each agent gives, by the name of the plan."""
    if game.size <= NAMED:
        note = ""
    elif game.size <= DOTS:
        note = "Each agent is one place from left to right, with a mark for each plan."
    else:
        note = (
            f"Agents stand in {len(band_ends(game.size)) - 1} groups of neighbours: the line is "
            "the middle agent of each, the band holds those from 10 to 90 %."
        )
    return Picture(
        name="allocations",
        title="Who gives how much",
        alt=" ".join([f"What {count(game.size, 'agent')} give.", *_tell_totals(game, given)]),
        draw=lambda ax: plot_burdens(game, given, ax=ax),
        data=_allocations_data(game, given),
        size=size_burdens(game, given),
        narrow=narrow_size(size_burdens(game, given)),
        note=note,
    )


def _tell_totals(game: Game, given: Mapping[str, Vector]) -> Iterator[str]:
    for name, values in given.items():
        known = np.where(np.isfinite(values), values, -1.0)
        most = int(np.argmax(known))
        every = np.isfinite(values).all()
        total = f"{format_amount(values.sum())} in all" if every else "not for all"
        idle = int((values == 0).sum())
        gives = pluralize(idle, "gives", "give")
        nothing = f" {count(idle, 'agent')} {gives} nothing." if idle else ""
        yield (
            f"{capitalize_first(name)}: {total}, the most by {game.name(most)} with "
            f"{format_amount(known[most])}.{nothing}"
        )


def _allocations_data(game: Game, given: Mapping[str, Vector]) -> Table:
    if game.size <= ROWS:
        return Table(
            caption="What each agent gives",
            columns=("agent", *given),
            rows=tuple(
                (game.name(i), *(keep_finite(values[i]) for values in given.values()))
                for i in range(game.size)
            ),
        )
    order = order_by_need(given)
    heads = [f"{name}, {part}" for name in given for part in ("10 %", "middle", "90 %")]
    points = [point for values in given.values() for point in group_by_rank(order, values)[1]]
    ranks = pairwise(band_ends(game.size).tolist())
    return Table(
        caption="What agents give, in groups of neighbours by stand-alone need",
        columns=("ranks", "agents", *heads),
        rows=tuple(
            (f"{a + 1:,} to {b:,}", b - a, *(keep_finite(point[n]) for point in points))
            for n, (a, b) in enumerate(ranks)
        ),
    )


# Prices.


def plot_prices(prices: Mapping[str, Mapping[int, Interval]], ax: Axes | None = None) -> Axes:
    """Draw prices against the number of agents, with sqrt(k) for comparison.

    Theorem 4's flower has prices that grow like sqrt(k), about half of it.

    prices: for each name, such as "price of stability", the price at each number of agents.
    ax: where to draw.
    """
    ax = new_axes((WIDTH, 3.6)) if ax is None else ax
    sizes = {k for series in prices.values() for k in series} or {1}
    found = [price for series in prices.values() for price in series.values()]
    known = [end for price in found for end in (price.lower, price.upper) if np.isfinite(end)]
    right = 2.0 * max(sizes)
    top = max([right**0.5, *known])
    with styled():
        ax.set_xlim(1.0, right)
        if len(sizes) > 1:
            # On logarithmic axes sqrt(k) is a line.
            ax.set_ylim(top**-0.06, top * 1.15)
            set_logarithmic(ax)
        else:
            ax.set_ylim(1 - 0.06 * top, top * 1.05)
            ax.xaxis.set_major_locator(MaxNLocator(5 if is_narrow(ax) else 9, integer=True))
        at = np.linspace(1.0, right, 100)
        label = "√k, for comparison"
        ax.plot(at, np.sqrt(at), color=style.REFERENCE, ls="dashed", lw=1.4, label=label)
        for n, (name, series) in enumerate(prices.items()):
            _draw_price(ax, name, series, n)
        if len(sizes) == 1:
            _write_prices(ax, prices, next(iter(sizes)))
        what = "price: total over the least total"
        set_axes(ax, x="k, the number of agents", top=what, grid="both")
    return finish(ax)


def _write_prices(ax: Axes, prices: Mapping[str, Mapping[int, Interval]], size: int) -> None:
    """Write the prices of one game next to their points, none over another, and the root of k."""
    ax.plot(size, size**0.5, "o", color=style.REFERENCE, markersize=5)
    said = [(size**0.5, f"√k = {format_amount(size**0.5)}")]
    for series in prices.values():
        said += [(_height(p), format_price(p)) for p in series.values() if np.isfinite(p.lower)]
    low, high = ax.get_ylim()
    place = -np.inf
    for height, text in sorted(said):
        place = max(height, place + LINE * (high - low))
        # What is said of the root stands below its line.
        down = 8 if height == size**0.5 else 0
        write_beside(ax, size, place, text, by=(12, -down))


def _height(price: Interval) -> float:
    """Say where a price is drawn: in the middle of its interval, or at its lower end."""
    return float(np.sqrt(price.lower * price.upper) if np.isfinite(price.upper) else price.lower)


def _draw_price(ax: Axes, name: str, series: Mapping[int, Interval], n: int) -> None:
    """Draw a price at each number of agents: a point, and its interval where it is not exact."""
    colour = {
        "price of stability": style.STABLE, "price of fairness": style.ENVY_FREE
    }.get(name, style.SERIES[n % len(style.SERIES)])  # fmt: skip
    known = {k: p for k, p in sorted(series.items()) if np.isfinite(p.lower)}
    label = f"{name}: {format_price(*series.values())}" if len(series) == 1 else name
    # Those after the first are hollow and larger: where two agree, both are seen.
    ax.plot(
        list(known), [_height(p) for p in known.values()], color=colour, linewidth=1.4, zorder=4,
        marker=style.MARKERS[n % len(style.MARKERS)], markersize=7 + 3 * min(n, 2),
        markerfacecolor="none" if n else colour, markeredgewidth=1.4,
        label=short(label, 60),
    )  # fmt: skip
    low, high = ax.get_ylim()
    for k, price in known.items():
        if np.isfinite(price.upper):
            ax.vlines(k, price.lower, price.upper, color=colour, linewidth=4, alpha=0.5)
            continue
        log = ax.get_yscale() == "log"
        end = price.lower * 1.35 if log else price.lower + 0.16 * (high - low)
        ax.annotate(
            "", (k, end), xytext=(k, price.lower),
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
        )  # fmt: skip


def picture_prices(prices: Mapping[str, Mapping[int, Interval]]) -> Picture | None:
    """Show prices against the number of agents, with sqrt(k); None where there are none."""
    known = {
        name: {k: price for k, price in series.items() if np.isfinite(price.lower)}
        for name, series in prices.items()
    }
    known = {name: series for name, series in known.items() if series}
    if not known:
        return None
    told = (
        f"{name} {format_price(price)} at {count(k, 'agent')}, where sqrt(k) is {k**0.5:.4g}"
        for name, series in known.items()
        for k, price in series.items()
    )
    return Picture(
        name="prices",
        title="Prices against the number of agents",
        alt=f"{capitalize_first(join_first(told, sum(map(len, known.values())), most=TOLD))}.",
        draw=lambda ax: plot_prices(known, ax),
        data=Table(
            "Prices, proved to lie in these intervals",
            columns=("price", "agents", "at least", "at most", "sqrt(k)"),
            rows=tuple(
                (name, k, price.lower, keep_finite(price.upper), k**0.5)
                for name, series in known.items()
                for k, price in series.items()
            ),
        ),
        narrow=NARROW,
    )
