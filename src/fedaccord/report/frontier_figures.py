"""Figures that compare algorithms: shares of runs by the samples that each algorithm uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedaccord.report import style
from fedaccord.wording import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

    from fedaccord.federation.defection.intervals import Interval, Proportion
    from fedaccord.frontier.result import Contender, Frontier

# Intervals nearer than this part of the axis would cover each other; so far apart they are put, in
# inches.
NEAR = 0.03
APART = 0.14
# How much of a figure's width its axis takes up at least.
AXIS = 0.75


@dataclass(frozen=True)
class Place:
    """Where an algorithm stands in a figure.

    name: of the algorithm.
    share: of the baseline's samples.
    ends: the interval of that, if it is known.
    height: the share of runs.
    filled: whether it meets the criterion that this figure does not show.
    """

    name: str
    share: float
    ends: Interval | None
    height: Proportion
    filled: bool


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw how often a contributor that defects reaches its goal, by the samples used.

    Filled marks are of algorithms under which all clients reach their goals often enough.

    frontier: the comparison.
    ax: where to draw.
    """
    goals = frontier.goals
    what = f"runs in which a contributor that gives {format_level(goals.level)} of the plan"
    return _draw(
        frontier,
        place_cuts(frontier),
        heights=(0.0, goals.cut),
        top=f"{what} reaches its goal, with 95 % intervals",
        ax=ax,
    )


def plot_satisfied(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw how often all clients reach their goals, by the samples used.

    Filled marks are of algorithms under which a contributor that defects seldom reaches its goal.

    frontier: the comparison.
    ax: where to draw.
    """
    return _draw(
        frontier,
        place_satisfied(frontier),
        heights=(frontier.goals.satisfied, 1.0),
        top="runs in which all reach their goals, with 95 % intervals",
        ax=ax,
    )


def place_cuts(frontier: Frontier) -> list[Place]:
    """Return where algorithms stand by how often a contributor that defects reaches its goal."""
    level = frontier.goals.level
    return [
        _place(frontier, one, one.defector("P2", level, contributors=True), goal="satisfied")
        for one in frontier.contenders
    ]


def place_satisfied(frontier: Frontier) -> list[Place]:
    """Return where algorithms stand by how often all clients reach their goals."""
    return [_place(frontier, one, one.all_satisfied, goal="cut") for one in frontier.contenders]


def _place(frontier: Frontier, one: Contender, height: Proportion, *, goal: str) -> Place:
    reached = {found.goal: found.reached for found in frontier.reached(one)}
    return Place(one.name, *frontier.share(one), height, reached[goal])


def _draw(
    frontier: Frontier,
    places: Sequence[Place],
    *,
    heights: tuple[float, float],
    top: str,
    ax: Axes | None,
) -> Axes:
    from matplotlib.ticker import FixedLocator

    from fedaccord.report.drawing import finish, new_axes, set_axes, size_of, styled

    ax = new_axes() if ax is None else ax
    known = [place for place in places if place.height.trials]
    with styled():
        # As far as the marks, their intervals and marks moved aside reach.
        ends = [max(1.05 * p.share, p.ends[1] if p.ends else 0.0) for p in known]
        right = max([1.05, *ends])
        shifts = _choose_shifts(known, right)
        width = AXIS * size_of(ax)[0]
        moved = (end / (1 - min(by / width, 0.5)) for end, by in zip(ends, shifts, strict=True))
        right = max([right, *moved])
        ax.set_xlim(0, right)
        ax.set_ylim(-0.04, 1.04)
        _put_region(ax, frontier.goals.samples, *heights)
        for n, (place, shift) in enumerate(zip(known, shifts, strict=True)):
            _put_place(ax, place, n, shift)
        ax.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        x = f"different samples used, in per cent of {frontier.baseline}'s"
        ticks = 6 if size_of(ax)[0] < 6 else 11
        set_axes(ax, x=x, top=top, percent="xy", ticks=ticks, grid="both")
        if not known:
            ax.text(0.5, 0.5, "nothing to show", transform=ax.transAxes, ha="center")
    return finish(ax)


def _put_region(ax: Axes, samples: float, low: float, high: float) -> None:
    """Shade where the criteria of a figure are met."""
    from matplotlib.patches import Rectangle

    from fedaccord.report.drawing import write_beside

    # To the edges of the figure, and wide enough to be seen.
    bottom = -0.04 if low == 0 else low
    above = 1.04 if high == 1 else high
    place = ((0, bottom), samples, above - bottom)
    ax.add_patch(Rectangle(*place, color=style.GOOD, alpha=0.18, zorder=0.5))
    middle = (bottom + above) / 2
    write_beside(ax, 0, middle, "criteria met", by=(5, 0), va="center", color=style.GOOD)


def _choose_shifts(places: Sequence[Place], right: float) -> list[float]:
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
    from matplotlib.transforms import ScaledTranslation

    from fedaccord.report.drawing import figure_of, keep_listed

    colour, marker = _choose_look(n)
    moved: Transform = ax.transData + ScaledTranslation(shift, 0, figure_of(ax).dpi_scale_trans)
    share = place.height
    bars: dict[str, Any] = {"yerr": [[share.p - share.low], [share.high - share.p]]}
    if place.ends is not None and place.ends[1] - place.ends[0] > 0.01:
        low, high = place.ends
        bars["xerr"] = [[max(place.share - low, 0)], [max(high - place.share, 0)]]
    if not place.filled:
        bars["markerfacecolor"] = style.PAPER
    bars |= {
        "color": colour,
        "elinewidth": 1.2,
        "label": keep_listed(place.name),
        "transform": moved,
    }
    marks: dict[str, Any] = {
        "fmt": marker,
        "markersize": 7,
        "markeredgewidth": 1.6,
        "clip_on": False,
    }
    ax.errorbar([place.share], [share.p], **bars, **marks)


def _choose_look(n: int) -> tuple[str, str]:
    """Return a colour and a marker; the first 36 algorithms have different pairs."""
    again, place = divmod(n, len(style.SERIES))
    return style.SERIES[place], style.MARKERS[(place + again) % len(style.MARKERS)]
