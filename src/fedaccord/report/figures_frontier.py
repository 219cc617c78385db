"""Figures of algorithms side by side, as matplotlib axes.

    plot_frontier(frontier)     how often who cuts is satisfied, by the samples it takes
    plot_satisfied(frontier)    how often all are satisfied, by the samples it takes

Each draws on the axes it is given, or on a figure of its own that matplotlib.pyplot does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedaccord.report import style
from fedaccord.report.drawing import (
    figure_of,
    finish,
    listed,
    new_axes,
    put_legend,
    set_labels,
    size_of,
    styled,
)
from fedaccord.report.training import percent_of
from fedaccord.wording import format_percent_tick

# After fedaccord.report.drawing, which says what to install where matplotlib is missing.
from matplotlib.patches import Rectangle  # isort: skip
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator  # isort: skip
from matplotlib.transforms import ScaledTranslation  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

    from fedaccord.federation.defection.intervals import Interval, Proportion
    from fedaccord.frontier.result import Contender, Frontier

# Intervals nearer than this part of the axis would cover each other; so far apart they are put, in
# inches.
NEAR = 0.03
APART = 0.14


@dataclass(frozen=True)
class Place:
    """Where a contender stands.

    name: of the contender.
    share: of the baseline's samples, with its interval where that is known.
    height: what was counted.
    filled: whether it reaches the goal that this figure does not show.
    """

    name: str
    share: float
    ends: Interval | None
    height: Proportion
    filled: bool


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw how often a contributor that cuts is satisfied, by the samples each contender takes.

    Filled marks are of contenders under whom all are satisfied as often as they are to be.

    frontier: the comparison.
    ax: where to draw.
    """
    goals = frontier.goals
    what = f"runs in which a contributor that gives {percent_of(goals.level)} of what is asked"
    return _drawn(
        frontier,
        cut_places(frontier),
        heights=(0.0, goals.cut),
        top=f"{what} still reaches its goal, with 95 % intervals",
        ax=ax,
    )


def plot_satisfied(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw how often all are satisfied, by the samples each contender takes.

    Filled marks are of contenders under whom a cut is felt as often as it is to be.

    frontier: the comparison.
    ax: where to draw.
    """
    return _drawn(
        frontier,
        satisfied_places(frontier),
        heights=(frontier.goals.satisfied, 1.0),
        top="runs in which all reach their goals, everybody giving what is asked, with 95 % "
        "intervals",
        ax=ax,
    )


def cut_places(frontier: Frontier) -> list[Place]:
    """Give where contenders stand by how often a contributor that cuts is satisfied."""
    level = frontier.goals.level
    return [
        _place(frontier, one, one.defector("P2", level, contributors=True), goal="satisfied")
        for one in frontier.contenders
    ]


def satisfied_places(frontier: Frontier) -> list[Place]:
    """Give where contenders stand by how often all are satisfied."""
    return [_place(frontier, one, one.all_satisfied, goal="cut") for one in frontier.contenders]


def _place(frontier: Frontier, one: Contender, height: Proportion, *, goal: str) -> Place:
    reached = {found.goal: found.reached for found in frontier.reached(one)}
    return Place(one.name, *frontier.share(one), height, reached[goal])


def _drawn(
    frontier: Frontier,
    places: Sequence[Place],
    *,
    heights: tuple[float, float],
    top: str,
    ax: Axes | None,
) -> Axes:
    ax = new_axes() if ax is None else ax
    known = [place for place in places if place.height.trials]
    with styled():
        right = max(1.05, *(1.05 * p.share for p in known)) if known else 1.05
        ax.set_xlim(0, right)
        ax.set_ylim(-0.04, 1.04)
        _put_region(ax, frontier.goals.samples, *heights)
        for n, (place, shift) in enumerate(zip(known, _shifts(known, right), strict=True)):
            _put_place(ax, place, n, shift)
        ax.xaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        ax.xaxis.set_major_locator(MaxNLocator(6 if size_of(ax)[0] < 6 else 11))
        ax.yaxis.set_major_formatter(FuncFormatter(format_percent_tick))
        ax.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        ax.grid(axis="both")
        set_labels(ax, x=f"different points used, in per cent of {frontier.baseline}'s", top=top)
        put_legend(ax)
        if not known:
            ax.text(0.5, 0.5, "nothing to show", transform=ax.transAxes, ha="center")
    return finish(ax)


def _put_region(ax: Axes, samples: float, low: float, high: float) -> None:
    """Shade where the goals of a figure are met."""
    # To the edges of the figure, and wide enough to be seen.
    bottom = -0.04 if low == 0 else low
    above = 1.04 if high == 1 else high
    ax.add_patch(
        Rectangle((0, bottom), samples, above - bottom, color=style.GOOD, alpha=0.18, zorder=0.5)
    )
    ax.annotate(
        "goal",
        (0, (bottom + above) / 2),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=style.SMALL,
        color=style.GOOD,
    )


def _shifts(places: Sequence[Place], right: float) -> list[float]:
    """Move marks that would cover each other apart, in inches, each group round its middle."""
    groups: list[list[int]] = []
    for n, place in enumerate(places):
        for group in groups:
            if abs(places[group[0]].share - place.share) < NEAR * right:
                group.append(n)
                break
        else:
            groups.append([n])
    shifts = [0.0] * len(places)
    for group in groups:
        for rank, n in enumerate(group):
            shifts[n] = APART * (rank - (len(group) - 1) / 2)
    return shifts


def _put_place(ax: Axes, place: Place, n: int, shift: float) -> None:
    colour, marker = _look(n)
    moved: Transform = ax.transData + ScaledTranslation(shift, 0, figure_of(ax).dpi_scale_trans)
    share = place.height
    bars: dict[str, Any] = {"yerr": [[share.p - share.low], [share.high - share.p]]}
    if place.ends is not None and place.ends[1] - place.ends[0] > 0.01:
        low, high = place.ends
        bars["xerr"] = [[max(place.share - low, 0)], [max(high - place.share, 0)]]
    ax.errorbar(
        [place.share],
        [share.p],
        fmt=marker,
        color=colour,
        markerfacecolor=colour if place.filled else style.PAPER,
        markeredgewidth=1.6,
        markersize=7,
        elinewidth=1.2,
        label=listed(place.name),
        transform=moved,
        clip_on=False,
        **bars,
    )


def _look(n: int) -> tuple[str, str]:
    """Give a colour and a marker that no other of the first 36 contenders has together."""
    again, place = divmod(n, len(style.SERIES))
    return style.SERIES[place], style.MARKERS[(place + again) % len(style.MARKERS)]
