"""Who shares data with whom, drawn: agents and shared points, or a matrix."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter

from fedaccord._checks import Indices, Matrix
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.report import style
from fedaccord.report.drawing import finish, label_names, new_axes, set_labels, styled
from fedaccord.report.figures_parts import SHORT_NAME, WIDTH, is_narrow, name_rows, told_apart
from fedaccord.report.overlap import (
    Blocks,
    Others,
    Overlap,
    Pairs,
    SharedPoints,
    overlap_of,
    why_nothing,
)
from fedaccord.wording import count, format_tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Cells have their numbers written in them while they are this few a side.
WRITTEN = 10
NARROW_WRITTEN = 5
LONGEST_COLUMN = 18
# Shades up to this part of the scale are light enough to write on.
LIGHT = 0.66
SWEEPS = 8


def plot_overlap(game: Game, ax: Axes | None = None) -> Axes:
    """Draw who shares data with whom.

    Games of distributions with a few agents are drawn as agents on the left and the points they
    share on the right. Other small games are a matrix of what a sample of one is worth to another;
    larger ones a matrix in an order that puts those who share side by side; very large ones the
    number of others that each shares with.

    game: whose agents.
    ax: where to draw.
    """
    found = overlap_of(game)
    if found is None:
        raise InputError(why_nothing(game))
    return plot_found(game, found, ax=ax)


def plot_found(game: Game, found: Overlap, *, ax: Axes | None = None) -> Axes:
    """Draw an overlap that was found before.

    game: whose agents.
    found: what they share.
    ax: where to draw.
    """
    ax = new_axes(overlap_size(found)) if ax is None else ax
    with styled():
        if isinstance(found, SharedPoints):
            _draw_points(found, game, ax)
        elif isinstance(found, Pairs):
            _draw_pairs(found, game, ax)
        elif isinstance(found, Blocks):
            _draw_blocks(found, game, ax)
        else:
            _draw_others(found, game, ax)
    return finish(ax)


def overlap_size(found: Overlap) -> tuple[float, float]:
    """Give the width and height in inches that an overlap needs."""
    if isinstance(found, SharedPoints):
        agents, groups = found.masses.shape
        return WIDTH, 0.6 + max(0.26 * agents, 0.3 * groups, 1.2)
    if isinstance(found, Pairs):
        return WIDTH, 2.2 + 0.26 * len(found.values)
    return WIDTH, 6.4 if isinstance(found, Blocks) else 3.4


# Agents and the points they share.


def _draw_points(found: SharedPoints, game: Game, ax: Axes) -> None:
    agents, groups = untangled(found.masses)
    left = dict(zip(agents.tolist(), range(len(agents)), strict=True))
    heights = _spread(len(groups), len(agents))
    for n, group in enumerate(groups.tolist()):
        colour, marker, _ = style.series(n)
        held = found.masses[:, group]
        for agent in np.flatnonzero(held).tolist():
            curve = Path(
                [(0, left[agent]), (0.45, left[agent]), (0.55, heights[n]), (1, heights[n])],
                [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
            )
            ax.add_patch(
                PathPatch(
                    curve, facecolor="none", edgecolor=colour, alpha=0.6,
                    linewidth=0.8 + 6 * float(held[agent]),
                )
            )  # fmt: skip
        ax.plot(1, heights[n], marker, color=colour, markersize=9, zorder=3)
        held_by = count(int(np.count_nonzero(held)), "agent")
        _write(ax, heights[n], f"{count(int(found.sizes[group]), 'point')} of {held_by}")
    ax.plot(np.zeros(len(agents)), range(len(agents)), "o", color=style.INK, markersize=6, zorder=3)
    label_names(ax, "y", range(len(agents)), _named(ax, game, found, agents))
    ax.set_xlim(-0.02, 2.0 if is_narrow(ax) else 1.42)
    ax.set_ylim(len(agents) - 0.4, -0.6)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    if not len(groups):
        ax.set_title("nobody shares a point with anybody")


def _named(ax: Axes, game: Game, found: SharedPoints, agents: Indices) -> list[str]:
    """Give the names of agents, with what part of their points is their own."""
    longest = SHORT_NAME if is_narrow(ax) else LONGEST_COLUMN
    names = told_apart((game.name(agent) for agent in agents.tolist()), longest)
    parts = found.own[agents].tolist()
    return [
        f"{name}, {100 * own:.0f} % own" if own > 0 else name
        for name, own in zip(names, parts, strict=True)
    ]


def _write(ax: Axes, height: float, text: str) -> None:
    ax.annotate(
        text, (1, height), xytext=(9, 0), textcoords="offset points", va="center_baseline",
        fontsize=style.SMALL,
    )  # fmt: skip


def _spread(groups: int, agents: int) -> list[float]:
    """Place groups at equal distances along the agents."""
    if groups <= 1:
        return [(agents - 1) / 2] * groups
    margin = (agents - 1) / (2 * groups) if groups < agents else 0.0
    return [float(y) for y in np.linspace(margin, agents - 1 - margin, groups)]


def untangled(masses: Matrix) -> tuple[Indices, Indices]:
    """Order agents and groups so that few of the lines between them cross.

    Each side in turn is sorted by the mean place of those it is tied to on the other.
    """
    agents, groups = (np.arange(size) for size in masses.shape)
    ties = masses > 0
    for _ in range(SWEEPS):
        groups = _by_mean_place(ties.T, agents)
        agents = _by_mean_place(ties, groups)
    return agents, groups


def _by_mean_place(ties: Any, others: Indices) -> Indices:
    place = np.empty(len(others))
    place[others] = np.linspace(0, 1, len(others)) if len(others) else 0.0
    held = ties.sum(axis=1)
    mean = np.where(held > 0, ties @ place / np.maximum(held, 1), 2.0)
    return np.argsort(mean, kind="stable")


# Matrices.


def _draw_pairs(found: Pairs, game: Game, ax: Axes) -> None:
    size = len(found.values)
    names = [game.name(agent) for agent in range(size)]
    name_rows(ax, names)
    longest = SHORT_NAME if is_narrow(ax) else LONGEST_COLUMN
    shown = told_apart(names, longest)
    upright = max(map(len, shown)) * size > (24 if is_narrow(ax) else 60)
    ax.set_xticks(range(size), shown, rotation=90 if upright else 0, parse_math=False)
    ax.xaxis.tick_top()
    if size <= (NARROW_WRITTEN if is_narrow(ax) else WRITTEN):
        _write_cells(ax, found.values)
        ax.set_xlabel(_wrapped(ax, found.what))
    else:
        _draw_cells(ax, found.values)
        _draw_key(ax, _ends(found.values), found.what)
    _square(ax, size)


def _ends(values: Matrix) -> tuple[float, float]:
    """Give what the lightest and the darkest shade stand for: from zero, unless all are near."""
    low, high = float(values.min()), float(values.max()) or 1.0
    return (low if high / 2 < low < high else 0.0), high


def _write_cells(ax: Axes, values: Matrix) -> None:
    """Draw cells with their numbers in them, in shades light enough for that."""
    low, high = _ends(values)
    for (row, column), value in np.ndenumerate(values):
        shade = style.shade(LIGHT * (float(value) - low) / (high - low))
        box = _box(column, column + 1, row, 0.03)
        ax.add_patch(PathPatch(box, facecolor=shade, edgecolor=shade))
        ax.text(
            column, row, _cell_text(float(value)), ha="center", va="center_baseline",
        )  # fmt: skip


def _cell_text(value: float) -> str:
    if 0 < value < 0.005:
        return "<.01"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 100 else f"{value:.3g}"


def _draw_blocks(found: Blocks, game: Game, ax: Axes) -> None:
    _draw_cells(ax, found.values)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_ylabel(f"{game.size:,} agents, those who share side by side")
    _draw_key(ax, _ends(found.values), found.what)
    _square(ax, len(found.values))
    ax.set_aspect("equal")


def _square(ax: Axes, size: int) -> None:
    ax.set_xlim(-0.5, size - 0.5)
    ax.set_ylim(size - 0.5, -0.5)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _draw_cells(ax: Axes, values: Matrix) -> None:
    """Draw cells as one patch a shade, neighbours in a row together: that keeps files small."""
    low, high = _ends(values)
    parts = (values - low) / (high - low)
    # What is nothing stays white.
    shades = np.where(values > 0, [[style.shade(float(p)) for p in row] for row in parts], "")
    for shade in style.SHADES:
        boxes = []
        for y, row in enumerate(shades == shade):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
            ends = np.array([edges[::2], edges[1::2]]).T.tolist()
            boxes += [_box(start, stop, y) for start, stop in ends]
        if boxes:
            path = Path.make_compound_path(*boxes)
            ax.add_patch(PathPatch(path, facecolor=shade, edgecolor=shade, linewidth=0.2))


def _box(start: int, stop: int, row: int, gap: float = 0.0) -> Path:
    left, right, top, bottom = start - 0.5 + gap, stop - 0.5 - gap, row - 0.5 + gap, row + 0.5 - gap
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    return Path(corners, closed=True)


def _draw_key(ax: Axes, ends: tuple[float, float], what: str) -> None:
    """Say below a matrix what its numbers are, and which shade stands for which."""
    steps = len(style.SHADES)
    low, high = ends
    digits = 3 if low else 2
    patches = [
        Patch(facecolor=shade, label=f"{low + (high - low) * (n + 1) / steps:.{digits}g}")
        for n, shade in enumerate(style.SHADES)
    ]
    ax.legend(
        handles=patches,
        ncols=3 if is_narrow(ax) else steps,
        loc="upper left",
        bbox_to_anchor=(0, -0.01),
        title=_wrapped(ax, f"{what}, up to"),
        title_fontsize=style.SMALL,
        alignment="left",
        handlelength=1.2,
        handleheight=1.2,
        columnspacing=1.0,
    )


def _wrapped(ax: Axes, what: str) -> str:
    return "\n".join(wrap(what, 30 if is_narrow(ax) else 70))


# Very many agents.


def _draw_others(found: Others, game: Game, ax: Axes) -> None:
    starts, heights = counted(found)
    widths = np.diff(starts)
    ax.bar(starts[:-1], heights, widths * 0.94, align="edge", color=style.STABLE)
    asked = "" if len(found.agents) == game.size else f", of {len(found.agents):,} asked"
    set_labels(ax, x="others that an agent shares data with", top=f"agents{asked}")
    ax.xaxis.set_major_formatter(FuncFormatter(format_tick))
    ax.grid(axis="y")


def counted(found: Others, bins: int = 30) -> tuple[Indices, Indices]:
    """Count agents by how many others they share with: where the bins start, and how many."""
    low, high = int(found.counts.min()), int(found.counts.max())
    step = max(-(-(high - low + 1) // bins), 1)
    starts = np.arange(low, high + step + 1, step)
    return starts, np.histogram(found.counts, starts)[0]
