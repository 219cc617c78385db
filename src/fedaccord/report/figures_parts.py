"""What the figures of games have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter

from fedaccord.report.drawing import LONGEST_NAME, NARROW, label_names, short, size_of, tick_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In inches.
WIDTH = 7.6
# Up to this many agents are all shown by name; of more, these many.
NAMED = 30
FEW = 25
# Names on figures for narrow screens are cut to this.
SHORT_NAME = 14


def is_narrow(ax: Axes) -> bool:
    """Say whether a figure is for a narrow screen."""
    return size_of(ax)[0] < (WIDTH + NARROW[0]) / 2


def name_rows(ax: Axes, names: Iterable[str]) -> None:
    """Write the names of agents to the left of their rows, the first on top."""
    longest = SHORT_NAME if is_narrow(ax) else LONGEST_NAME
    shown = [short(name, longest) for name in names]
    label_names(ax, "y", range(len(shown)), shown)
    ax.set_ylim(len(shown) - 0.5, -0.5)


def count_samples(ax: Axes, label: str, ends: Sequence[float]) -> None:
    """Make the horizontal axis one of samples, with room for words at the ends of bars.

    ax: where.
    label: what the axis is.
    ends: its least and largest number, and what part of that is room.
    """
    least, most, room = ends
    ax.set_xlim(least, most * (1 + room * (1.7 if is_narrow(ax) else 1.0)))
    ax.set_xlabel(label)
    ax.xaxis.set_major_formatter(FuncFormatter(tick_text))
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
