"""What the figures of games have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedaccord.report.words_games import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In inches.
WIDTH = 7.6
# Up to this many agents are all shown by name; of more, these many.
NAMED = 30
FEW = 25


def finish_samples(ax: Axes, label: str) -> None:
    """Finish a figure whose horizontal axis counts samples."""
    ax.set_xlabel(label)
    ax.xaxis.set_major_formatter(lambda value, _: amount(value))
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


def draw_legend(ax: Axes, columns: int) -> None:
    """Put the legend above the axes."""
    ax.legend(
        ncols=columns, loc="lower left", bbox_to_anchor=(0, 1.03), columnspacing=1.6,
    )  # fmt: skip
