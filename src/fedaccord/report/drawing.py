"""Draw charts with matplotlib, off its global state.

    ax = new_axes()                      a figure of its own, in the house style
    with styled(): ...                   draw in that style; the user's settings come back after
    label_names(ax, "y", places, names)  names of agents as tick labels, as many as fit
    finish(ax)                           no text is taken for maths

Colours come from fedaccord.report.style, so that figures on a page follow light and dark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Literal

from fedaccord._lazy import imported
from fedaccord.charts import Chart
from fedaccord.errors import InputError
from fedaccord.report import style
from fedaccord.report.page import Picture, Table
from fedaccord.report.terminal import plain

matplotlib = imported("matplotlib")
imported("matplotlib.style")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

SIZE = (7.6, 3.6)
LONGEST_NAME = 24
# In inches: a line of text, and a letter; and how much of a figure its axes take up.
NAME_HEIGHT = 0.2
LETTER = 0.09
PLOT_SHARE = 0.8


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style inside this block, whatever the user's settings are."""
    with matplotlib.style.context(["default", style.RC]):
        yield


def new_axes(size: tuple[float, float] = SIZE) -> Axes:
    """Make axes on a figure of their own, which no window and no list of figures knows.

    size: width and height in inches.
    """
    with styled():
        return Figure(figsize=size, layout="constrained").add_subplot()


def figure_of(ax: Axes) -> Figure:
    """Give the figure that axes are on."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise InputError("these axes are on no figure; draw on axes that are")
    return figure


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a name that is too long for a figure, and show characters that would hide."""
    shown = plain(name)
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def label_names(
    ax: Axes, axis: Literal["x", "y"], places: Sequence[float], names: Sequence[str]
) -> None:
    """Label places with the names of agents: all of them, or every n-th where not all fit.

    ax: where.
    axis: the axis along which they stand.
    places: where each stands, in order.
    names: in full; what is too long is cut.
    """
    width, height = figure_of(ax).get_size_inches()
    shown = [short(name) for name in names]
    needed = NAME_HEIGHT if axis == "y" else LETTER * max(map(len, [*shown, "  "])) + LETTER
    fit = max(int(PLOT_SHARE * (height if axis == "y" else width) / needed), 1)
    step = -(-len(places) // fit)
    set_ticks = ax.set_yticks if axis == "y" else ax.set_xticks
    set_ticks(places[::step], shown[::step], parse_math=False)


def finish(ax: Axes) -> Axes:
    """See to it that no text on the figure is taken for maths."""
    for text in figure_of(ax).findobj(Text):
        text.set_parse_math(False)
    return ax


def plot_chart(chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw a chart, on axes of its own where none are given.

    chart: what to draw.
    ax: where.
    """
    ax = new_axes() if ax is None else ax
    with styled():
        for n, line in enumerate(chart.lines):
            colour, marker, dashes = style.series(n)
            if line.reference:
                colour, marker, dashes = style.REFERENCE, "", "dashed"
            ax.plot(line.x, line.y, color=colour, marker=marker, ls=dashes, label=short(line.name))
        if chart.logarithmic:
            ax.set_xscale("log")
            ax.set_yscale("log")
        ax.set_xlabel(plain(chart.x))
        ax.set_title(plain(chart.y), loc="left")
        ax.legend()
    return finish(ax)


def picture_of(chart: Chart) -> Picture:
    """Make a picture of a chart, with its numbers."""
    rows = tuple(
        (line.name, x, y, *((line.low[n], line.high[n]) if line.low else (None, None)))
        for line in chart.lines
        for n, (x, y) in enumerate(zip(line.x, line.y, strict=True))
    )
    data = Table(chart.title, ("line", chart.x, chart.y, "from", "to"), rows)
    return Picture(chart.name, chart.title, chart.alt, lambda ax: plot_chart(chart, ax), data)
