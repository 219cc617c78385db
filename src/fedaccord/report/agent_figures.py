"""What figures of agents have in common: their names on an axis, their samples on the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter

from fedaccord.report import style
from fedaccord.report.drawing import (
    HANDLE,
    LONGEST_NAME,
    NARROW,
    label_names,
    put_legend,
    short,
    size_of,
    width_of,
)
from fedaccord.report.terminal import plain
from fedaccord.wording import format_tick

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


def name_rows(ax: Axes, names: Iterable[str]) -> None:
    """Write the names of agents to the left of their rows, the first on top."""
    shown = cut_names(names, SHORT_NAME if is_narrow(ax) else LONGEST_NAME)
    label_names(ax, "y", range(len(shown)), shown)
    ax.set_ylim(len(shown) - 0.5, -0.5)


def legend_beside_names(ax: Axes) -> None:
    """Put the legend above the axes, in as many columns as fit beside the names of the rows."""
    names = max((width_of(label.get_text()) for label in ax.get_yticklabels()), default=0.0)
    labels = ax.get_legend_handles_labels()[1]
    widest = max((HANDLE + width_of(label, style.SMALL) for label in labels), default=1.0)
    fit = int((size_of(ax)[0] - names - EDGES) / widest)
    put_legend(ax, ncols=min(max(fit, 1), len(labels)))


def set_samples_axis(ax: Axes, label: str, ends: Sequence[float]) -> None:
    """Make the horizontal axis one of samples, with room for words at the ends of bars.

    ax: where.
    label: what the axis is.
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


def write_beside(ax: Axes, x: float, y: float, text: str) -> None:
    """Write beside the end of a bar."""
    ax.annotate(
        text,
        (x, y),
        xytext=(4, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=8.5,
        parse_math=False,
    )
