"""Draw charts with matplotlib, off its global state.

Colours come from fedaccord.report.style, so that figures on a page follow light and dark. An
image, as imshow makes one, would not: cells of a grid are rectangles filled with style.shade().
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.report import style
from fedaccord.report.model import Cell, Picture, Table
from fedaccord.report.terminal import plain
from fedaccord.wording import format_percent_tick, format_tick

matplotlib = imported("matplotlib")
imported("matplotlib.style")

from matplotlib.axes import Axes as Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.font_manager import FontProperties  # noqa: E402
from matplotlib.text import Text  # noqa: E402
from matplotlib.textpath import TextToPath  # noqa: E402
from matplotlib.ticker import (  # noqa: E402
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from matplotlib.transforms import ScaledTranslation  # noqa: E402

if TYPE_CHECKING:
    from fedaccord.charts import Chart, Line

SIZE = (7.6, 3.6)
# For a second drawing where the first would be too small to read.
NARROW = (4.4, 3.6)
LONGEST_NAME = 24
LONGEST_LEGEND = 48
# In inches: a line of text, the least space between two, what a legend puts round a name; and how
# much of a figure its axes take up.
NAME_HEIGHT = 0.2
GAP = 0.12
HANDLE = 0.65
PLOT_SHARE = 0.85
# How much of a figure's width a name may take up.
WIDEST_NAME = 0.4
# With more lines than this nobody could tell them apart.
MANY_LINES = 12
# With more points than this intervals are bands, and only some points are marked.
MANY_POINTS = 12
FONT = FontProperties(family="DejaVu Sans", size=style.FONT_SIZE)
TEXTS = TextToPath()
# matplotlib leaves labels that begin with an underscore out of legends; this has no width.
LISTED = "\u2060"


class OwnAxes(Axes):
    """Axes on a figure of their own, which know how high their legend is.

    above: in points, what a title has to leave free.
    """

    above: float = 0.0

    def _repr_png_(self) -> bytes:
        """Return the figure as a notebook shows it."""
        file = io.BytesIO()
        figure_of(self).savefig(file, format="png", dpi=100)
        return file.getvalue()

    def set_title(
        self,
        label: str,
        fontdict: dict[str, Any] | None = None,
        loc: Literal["left", "center", "right"] | None = None,
        pad: float | None = None,
        **rest: Any,
    ) -> Text:
        """Set a title, above the legend unless told otherwise."""
        if pad is None and loc != "left" and self.above:
            pad = self.above
        return super().set_title(label, fontdict, loc, pad, **rest)


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style inside this block, whatever the user's settings are."""
    with matplotlib.style.context(["default", style.RC]), warnings.catch_warnings():
        # Browsers have signs for every script; that a PNG may lack one is not worth a word.
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        yield


def new_axes(size: tuple[float, float] = SIZE) -> Axes:
    """Make axes on a figure of their own, which no window and no list of figures knows.

    size: width and height in inches.
    """
    with styled():
        ax = Figure(figsize=size, layout="constrained").add_subplot(axes_class=OwnAxes)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(format_tick))
            # Names at the ticks, where those are what is drawn, still take its place.
            axis.isDefault_majfmt = True
    return ax


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes are on."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise InputError("these axes are on no figure; draw on axes that are")
    return figure


def size_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height, in inches, of the part of the figure that axes may fill."""
    width, height = figure_of(ax).get_size_inches()
    place = ax.get_subplotspec()
    rows, columns = place.get_gridspec().get_geometry() if place is not None else (1, 1)
    return float(width) / columns, float(height) / rows


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a name that is too long for a figure, and show characters that would hide."""
    shown = plain(name)
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def width_of(text: str, size: float = style.FONT_SIZE) -> float:
    """Measure a line of text, in inches.

    text: to be measured.
    size: of its letters, in points.
    """
    width, _, _ = TEXTS.get_text_width_height_descent(text, FONT, False)
    return float(width) * size / style.FONT_SIZE / 72


def cut_to_fit(text: str, room: float, size: float = style.FONT_SIZE) -> str:
    """Cut a line of text that is wider than there is room, in inches."""
    shown = plain(text)
    if width_of(shown, size) <= room:
        return shown
    while len(shown) > 1 and width_of(shown + "…", size) > room:
        shown = shown[:-1]
    return shown.rstrip() + "…"


def wrap_lines(text: str, room: float) -> str:
    """Break text into lines no wider than there is room, in inches."""
    lines = [""]
    for word in plain(text).split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(cut_to_fit(line, room) for line in lines)


def label_names(
    ax: Axes, axis: Literal["x", "y"], places: Sequence[float], names: Sequence[str]
) -> None:
    """Label places with the names of agents: all of them, or every n-th where not all fit.

    ax: where.
    axis: the axis along which they stand.
    places: where each stands, in order.
    names: in full; what is too long is cut.
    """
    width, height = size_of(ax)
    if axis == "y":
        room, needed = height, NAME_HEIGHT
    else:
        longest = max((short(name) for name in names), key=len, default="")
        room, needed = width, min(width_of(longest), WIDEST_NAME * width) + GAP
    fit = max(int(PLOT_SHARE * room / needed), 1)
    step = max(-(-len(places) // fit), 1)
    shown = [cut_to_fit(short(name), WIDEST_NAME * width) for name in names[::step]]
    set_ticks = ax.set_yticks if axis == "y" else ax.set_xticks
    set_ticks(places[::step], shown, parse_math=False)


def set_labels(ax: Axes, *, x: str = "", top: str = "") -> None:
    """Name the axes: x below, and above what is measured.

    ax: where; call this before put_legend.
    x: what the horizontal axis is.
    top: what the heights, or the bars, are.
    """
    room = PLOT_SHARE * size_of(ax)[0]
    if x:
        ax.set_xlabel(wrap_lines(x, room), parse_math=False)
    if top and isinstance(ax, OwnAxes):
        ax.set_title(wrap_lines(top, room), loc="left", parse_math=False)
    elif top:
        # The place above is for a title of the user's.
        ax.set_ylabel(wrap_lines(top, PLOT_SHARE * size_of(ax)[1]), parse_math=False)


def keep_listed(label: str) -> str:
    """Return a label that legends list even if it begins with an underscore."""
    return LISTED + label if label.startswith("_") else label


def put_legend(ax: Axes, *, order: Sequence[str] = (), **options: Any) -> None:
    """Put the legend above the axes, where it covers nothing, in as many columns as fit.

    Below them on axes of the user's, whose title may then be set as usual.

    ax: with labelled lines or bars; call this when its axis is labelled.
    order: the labels in the order they are to have; matplotlib's where left out.
    options: more for matplotlib's legend.
    """
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    labels = [label.removeprefix(LISTED) for label in labels]
    if order:
        rank = {name: n for n, name in enumerate(order)}
        places = sorted(range(len(labels)), key=lambda n: rank.get(labels[n], len(rank)))
        handles, labels = ([some[n] for n in places] for some in (handles, labels))
    room = PLOT_SHARE * size_of(ax)[0]
    shown = [
        cut_to_fit(short(label, LONGEST_LEGEND), room - HANDLE, style.SMALL) for label in labels
    ]
    columns = _columns([HANDLE + width_of(text, style.SMALL) for text in shown], room)
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.02)}
    where = above if isinstance(ax, OwnAxes) else _below(ax)
    place = {"ncols": columns, **where, **options}
    # matplotlib fills column by column; people read line by line.
    columns = int(place["ncols"])
    across = [n for first in range(columns) for n in range(first, len(shown), columns)]
    legend = ax.legend(
        [handles[n] for n in across], [shown[n] for n in across], borderaxespad=0, **place
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    if isinstance(ax, OwnAxes):
        # What is measured stands above the legend, and a title beside it.
        ax.above = 14 + -(-len(shown) // columns) * 1.5 * style.SMALL
        if title := ax.get_title(loc="left"):
            ax.set_title(title, loc="left", pad=ax.above, parse_math=False)


def _below(ax: Axes) -> dict[str, Any]:
    """Place a legend below the names and the label of the horizontal axis."""
    figure = figure_of(ax)
    taken = ax.xaxis.get_tightbbox(None)
    depth = max(ax.bbox.y0 - taken.y0, 0.0) / figure.dpi if taken is not None else 0.0
    down = ScaledTranslation(0, -depth - GAP / 2, figure.dpi_scale_trans)
    return {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": ax.transAxes + down}


def _columns(widths: Sequence[float], room: float) -> int:
    """Choose the most columns that fit; entries run along each line before the next."""
    for columns in range(len(widths), 1, -1):
        if sum(max(widths[first::columns]) for first in range(columns)) <= room:
            return columns
    return 1


def finish(ax: Axes) -> Axes:
    """See to it that no text on the figure is taken for maths, and that none is cut off."""
    if figure_of(ax).get_layout_engine() is None:
        # Names, labels and legends of ours need more room than matplotlib leaves by itself.
        figure_of(ax).set_layout_engine("constrained")
    ax.set_axisbelow(True)
    for text in ax.findobj(Text):
        text.set_parse_math(False)
    return ax


def write_beside(
    ax: Axes, x: float, y: float, text: str, *, by: tuple[float, float] = (4, 0), **look: Any
) -> None:
    """Write next to a point, `by` points to the right and up of it.

    look: options of matplotlib's for text, such as its size.
    """
    usual: dict[str, Any] = {"va": "center_baseline", "fontsize": style.SMALL, "parse_math": False}
    ax.annotate(text, (x, y), xytext=by, textcoords="offset points", **{**usual, **look})


# Charts.


def plot_chart(chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw a chart, on axes of its own where none are given.

    chart: what to draw.
    ax: where.
    """
    ax = new_axes() if ax is None else ax
    with styled():
        _put_lines(ax, chart)
        if chart.logarithmic:
            set_logarithmic(ax)
        else:
            _set_places(ax, chart)
        grid: Literal["y", "both"] = "both" if chart.logarithmic else "y"
        percent = "y" if chart.percent else ""
        set_axes(ax, x=chart.x, top=chart.y, percent=percent, grid=grid, legend=False)
        if chart.goal is not None:
            _put_goal(ax, chart.goal, percent=chart.percent)
        if len(chart.lines) > 1 or any(line.reference for line in chart.lines):
            put_legend(ax, order=[line.name for line in chart.lines])
        if not any(line.x for line in chart.lines):
            ax.text(0.5, 0.5, "nothing to show", transform=ax.transAxes, ha="center")
    return finish(ax)


def _put_lines(ax: Axes, chart: Chart) -> None:
    measured = [line for line in chart.lines if not line.reference]
    if len(measured) > MANY_LINES:
        for line in measured:
            ax.plot(line.x, line.y, color=style.SERIES[0], linewidth=0.8, alpha=0.45)
        ax.lines[0].set_label(f"{len(measured)} lines, told apart in the table")
    else:
        for line, n in _number_lines(measured):
            _put_line(ax, line, n, shift=_shift(chart, measured, n))
    for n, line in enumerate(line for line in chart.lines if line.reference):
        dashes, label = style.DASHES[1 + n % (len(style.DASHES) - 1)], keep_listed(line.name)
        ax.plot(line.x, line.y, color=style.REFERENCE, lw=1.4, ls=dashes, label=label)


def _number_lines(lines: Sequence[Line]) -> list[tuple[Line, int]]:
    """Number lines; one that is a detail of another before it has the other's number."""
    numbers: dict[str, int] = {}
    found: list[tuple[Line, int]] = []
    fresh = count()
    for line in lines:
        if line.of not in numbers:
            numbers[line.name] = next(fresh)
        found.append((line, numbers[line.of if line.of in numbers else line.name]))
    return found


def _shift(chart: Chart, lines: Sequence[Line], n: int) -> float:
    """Move lines a little sideways, so that their intervals do not cover each other."""
    places = [x for line in lines for x in line.x]
    groups = 1 + max(number for _, number in _number_lines(lines))
    barred = [line for line in lines if line.low and len(line.x) <= MANY_POINTS]
    if chart.logarithmic or len(barred) < 2:
        return 0.0
    return 0.008 * (max(places) - min(places)) * (2 * n - groups + 1) / (groups - 1)


def _put_line(ax: Axes, line: Line, n: int, *, shift: float) -> None:
    colour, marker, dashes = style.series(n)
    places = [x + shift for x in line.x]
    many = len(places) > MANY_POINTS
    look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dashes}
    look["label"] = keep_listed(line.name)
    if line.of:
        look |= {"marker": "", "linestyle": (0, (4, 3)), "linewidth": 1.2}
    if many:
        # Not the same places on every line, or marks would hide each other.
        step = len(places) // 6
        look["markevery"] = (min(n * step // 6, len(places) - 1), step)
    if line.low and many:
        ax.fill_between(places, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(places, line.y, **look)
    elif line.low:
        below = [max(y - low, 0.0) for y, low in zip(line.y, line.low, strict=True)]
        above = [max(high - y, 0.0) for y, high in zip(line.y, line.high, strict=True)]
        ax.errorbar(places, line.y, yerr=[below, above], elinewidth=1.2, **look)
    else:
        ax.plot(places, line.y, **look)


def set_axes(
    ax: Axes,
    *,
    x: str = "",
    top: str = "",
    percent: str = "",
    ticks: int | None = None,
    grid: Literal["x", "y", "both"] = "y",
    legend: bool = True,
) -> None:
    """Name the axes, write their ticks, and put the grid and the legend.

    x, top: what the axes are, as set_labels has it.
    percent: the axes whose numbers are shares: "x", "y" or "xy".
    ticks: the most of the horizontal axis; matplotlib's choice where left out.
    """
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        axis.set_major_formatter(
            FuncFormatter(format_percent_tick if name in percent else format_tick)
        )
    if ticks is not None:
        ax.xaxis.set_major_locator(MaxNLocator(ticks))
    ax.grid(axis=grid)
    set_labels(ax, x=x, top=top)
    if legend:
        put_legend(ax)


def set_logarithmic(ax: Axes) -> None:
    """Make both axes logarithmic, with as many ticks as their ends have room for."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        decades = math.log10(high / low)
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,)))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())


def _set_places(ax: Axes, chart: Chart) -> None:
    """Put ticks where points are, if they are few and not too near; heights start at nothing."""
    places = sorted({x for line in chart.lines if not line.reference for x in line.x})
    width = size_of(ax)[0]
    if 1 < len(places) <= 8:
        room = 0.4 * (places[-1] - places[0]) / (width * PLOT_SHARE)
        ticks = [places[-1]]
        for place in reversed(places):
            if place <= ticks[-1] - room:
                ticks.append(place)
        ax.xaxis.set_major_locator(FixedLocator(ticks))
    else:
        most: int | Literal["auto"] = "auto" if width > NARROW[0] else 5
        whole = all(float(place).is_integer() for place in places)
        ax.xaxis.set_major_locator(MaxNLocator(most, integer=whole))
    low, high = ax.get_ylim()
    heights = [y for line in chart.lines for y in (*line.y, *line.low) if math.isfinite(y)]
    if chart.percent:
        ax.set_ylim(min(0.0, low), max(1.03, high))
        ax.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    elif heights and 0 <= min(heights) < 0.6 * high:
        ax.set_ylim(0, high)


def _put_goal(ax: Axes, goal: float, *, percent: bool) -> None:
    ax.axhline(goal, color=style.INK, linewidth=1, linestyle=(0, (1, 2)))
    text = f"goal {format_percent_tick(goal)}" if percent else "goal"
    ax.text(
        *(1.01, goal, text),
        transform=ax.get_yaxis_transform(),
        va="center",
        fontsize=style.SMALL,
        color=style.MUTED,
        parse_math=False,
    )


def picture_of(chart: Chart) -> Picture:
    """Make a picture of a chart, with its numbers."""
    intervals = any(line.low for line in chart.lines)
    rows: list[tuple[Cell, ...]] = []
    for line in chart.lines:
        ends = [line.low or [None] * len(line.y), line.high or [None] * len(line.y)]
        columns = [line.x, line.y, *(ends if intervals else ())]
        rows += [(line.name, *cells) for cells in zip(*columns, strict=True)]
    heads = ("line", chart.x, chart.y, *(("from", "to") if intervals else ()))
    return Picture(
        chart.name,
        chart.title,
        chart.alt,
        draw=lambda ax: plot_chart(chart, ax),
        data=Table(chart.title, heads, tuple(rows)),
        size=SIZE,
        narrow=NARROW,
    )
