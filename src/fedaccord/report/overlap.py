"""Who shares data with whom: as numbers, and drawn as agents and shared points, or a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from fedaccord._checks import Indices, Matrix, Vector
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.base import Game
from fedaccord.report import style
from fedaccord.report.drawing import (
    finish,
    label_names,
    new_axes,
    set_axes,
    size_of,
    styled,
    wrap_lines,
    write_beside,
)
from fedaccord.report.games_figures import (
    SHORT_NAME,
    TOLD,
    WIDTH,
    cut_names,
    is_narrow,
    label_rows,
    narrow_size,
)
from fedaccord.report.model import Picture, Table
from fedaccord.wording import (
    capitalize_first,
    choose_places,
    count,
    format_amount,
    format_cell,
    format_percent,
    format_places,
    join_first,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to this many agents are named, in up to this many groups of shared points.
NAMED = 30
GROUPS = 24
# Up to this many agents the whole matrix is made, and drawn in at most this many cells a side.
MATRIX = 1_500
CELLS = 50
# Of more agents, these many are asked whom they share with, until so many were named.
ASKED = 1_000
ANSWERS = 5_000_000
# Where fewer than this part of all pairs share anything, ties are followed; else the strengths.
SPARSE = 0.3
# Cells have their numbers written in them while they are this few a side.
WRITTEN = 10
NARROW_WRITTEN = 5
LONGEST_COLUMN = 18
# Shades up to this part of the scale are light enough to write on.
LIGHT = 0.66
SWEEPS = 8

SHARED = "part of the row's points that the column has too"
WORTH = "what one sample of the column's agent is worth to the row's agent"
ADDS = "what the first sample of the column adds to the row's accuracy"


@dataclass(frozen=True, eq=False)
class SharedPoints:
    """Groups of points that the same agents have.

    masses: for each agent and group how likely the agent's sample is one of the group.
    sizes: how many points are in each group.
    own: how likely each agent's sample is a point that nobody else has.
    """

    masses: Matrix
    sizes: Indices
    own: Vector


@dataclass(frozen=True, eq=False)
class Pairs:
    """A number for each pair of agents.

    values: a row for each agent, in order.
    what: what the numbers are.
    columns: the agents that have a column; all where left out.
    """

    values: Matrix
    what: str
    columns: tuple[int, ...] | None = None

    @property
    def givers(self) -> list[int]:
        """The agents that have a column."""
        return list(range(len(self.values)) if self.columns is None else self.columns)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The numbers of pairs of many agents, in an order that puts those who share side by side.

    order: the agents.
    values: the mean over the pairs of each block of neighbours, an agent with itself left out.
    others: with how many others each agent shares, by number of agent.
    what: what the numbers are.
    """

    order: Indices
    values: Matrix
    others: Indices
    what: str


@dataclass(frozen=True, eq=False)
class Others:
    """With how many others some agents share.

    agents: who was asked.
    counts: with how many others each of them shares.
    """

    agents: Indices
    counts: Indices


Overlap: TypeAlias = SharedPoints | Pairs | Blocks | Others


def find_overlap(game: Game) -> Overlap | None:
    """Return what can be shown of who shares data with whom; None where a game does not tell."""
    if game.size == 1:
        return None
    # Of coverage games, times the copies of each point.
    distributions = getattr(game, "weights", getattr(game, "distributions", None))
    if distributions is None and not hasattr(game, "benefits_among"):
        return _first_samples(game)
    if game.size > MATRIX:
        return _others(game)
    if distributions is not None and game.size <= NAMED:
        groups = _shared_points(distributions, getattr(game, "copies", None))
        if len(groups.sizes) <= GROUPS:
            return groups
    values, what = _pairs(game, distributions)
    if game.size > NAMED:
        return _blocks(values, what)
    # Samples that an agent does not have are worth nothing to anybody.
    givers = np.flatnonzero(game.limits > 0) if what == WORTH else np.arange(game.size)
    some = 0 < len(givers) < game.size
    return Pairs(values, what, tuple(givers.tolist()) if some else None)


def explain_no_overlap(game: Game) -> str:
    """Say why there is no picture of a game's overlap."""
    if game.size == 1:
        return "There is only one agent, so it shares no data."
    if game.model in ("goals", "signed"):
        return "Whose samples help or harm whom is listed for up to a dozen agents."
    if game.model == "pac":
        return (
            "Who learns from whose samples is drawn for up to "
            f"{NAMED} agents; this game has {game.size:,}."
        )
    return (
        "This game is a function of the contributions. It does not say whose data overlap, so "
        "there is no picture of that."
    )


def _first_samples(game: Game) -> Pairs | None:
    if game.model != "pac" or game.size > NAMED:
        return None
    try:
        return Pairs(game.jacobian(np.zeros(game.size)), ADDS)
    except ExactnessError:
        return None


def _shared_points(weights: Any, copies: Vector | None) -> SharedPoints:
    """Put points that the same agents have together; each set of agents is a binary number."""
    agents, points = weights.shape
    entries = weights.tocoo()
    owners = np.bincount(entries.col, weights=2.0**entries.row, minlength=points)
    held, sets = np.unique(owners, return_inverse=True)
    masses = np.zeros((agents, len(held)))
    np.add.at(masses, (entries.row, sets[entries.col]), entries.data)
    shared = np.asarray((masses > 0).sum(axis=0) > 1)
    own = masses[:, ~shared].sum(axis=1)
    sizes = np.bincount(sets, weights=copies).astype(np.intp)
    return SharedPoints(masses[:, shared], sizes[shared], own)


def _pairs(game: Any, weights: Any) -> tuple[Matrix, str]:
    """Return what each shares with each other, or what a sample of one is worth to another."""
    if weights is None:
        everyone = np.arange(game.size)
        benefits = game.benefits_among(everyone, everyone)
        return benefits / game.own_benefits[:, np.newaxis], WORTH
    has = weights.copy()
    has.data = np.ones_like(has.data)
    return np.asarray((weights @ has.T).toarray()), SHARED


def _blocks(values: Matrix, what: str) -> Blocks:
    ties = np.array(values)
    np.fill_diagonal(ties, 0.0)
    order = _order_side_by_side((ties + ties.T) / 2)
    ends = np.linspace(0, len(order), min(CELLS, len(order)) + 1).astype(np.intp)
    laid = ties[np.ix_(order, order)]
    sums = np.add.reduceat(np.add.reduceat(laid, ends[:-1], axis=0), ends[:-1], axis=1)
    sizes = np.diff(ends)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    others = np.count_nonzero(ties, axis=1)
    return Blocks(order, sums / np.maximum(pairs, 1), others, what)


def _order_side_by_side(ties: Matrix) -> Indices:
    """Order agents so that those with strong ties come close to each other."""
    if np.count_nonzero(ties) < SPARSE * ties.size:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        return np.asarray(reverse_cuthill_mckee(csr_array(ties), symmetric_mode=True), np.intp)
    from scipy.linalg import eigh

    # Fiedler's vector: of all ways to lay the agents along a line, that with the shortest ties.
    laplacian = np.diag(ties.sum(axis=1)) - ties
    vector = eigh(laplacian, subset_by_index=(1, 1))[1][:, 0]
    return np.argsort(vector * np.sign(vector[np.argmax(np.abs(vector))]), kind="stable")


def _others(game: Game) -> Others:
    """Ask agents spread over all, in an order that leaves any number of them spread too."""
    asked = np.unique(np.linspace(0, game.size - 1, ASKED).astype(np.intp))
    agents: list[int] = []
    counts: list[int] = []
    named = 0
    for agent in np.random.default_rng(0).permutation(asked).tolist():
        helpers: NDArray[np.intp] = game.helpers(agent)
        agents.append(agent)
        counts.append(int(np.count_nonzero(helpers != agent)))
        named += len(helpers)
        if named > ANSWERS:
            break
    return Others(np.array(agents), np.array(counts))


# Figures.


def plot_overlap(game: Game, ax: Axes | None = None) -> Axes:
    """Draw who shares data with whom.

    Games of distributions with a few agents are drawn as agents on the left and the points they
    share on the right. Other small games are a matrix of what a sample of one is worth to another;
    larger ones a matrix in an order that puts those who share side by side; very large ones the
    number of others that each shares with.

    game: whose agents.
    ax: where to draw.
    """
    found = find_overlap(game)
    if found is None:
        raise InputError(explain_no_overlap(game))
    return plot_found(game, found, ax=ax)


def plot_found(game: Game, found: Overlap, *, ax: Axes | None = None) -> Axes:
    """Draw an overlap that was found before."""
    ax = new_axes(size_overlap(found)) if ax is None else ax
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


def size_overlap(found: Overlap) -> tuple[float, float]:
    """Return the width and height in inches that an overlap needs."""
    if isinstance(found, SharedPoints):
        agents, groups = found.masses.shape
        return WIDTH, 0.6 + max(0.26 * agents, 0.3 * groups, 1.2)
    if isinstance(found, Pairs):
        return WIDTH, 2.2 + 0.26 * len(found.values)
    return WIDTH, 6.4 if isinstance(found, Blocks) else 3.4


# Agents and the points they share.


def _draw_points(found: SharedPoints, game: Game, ax: Axes) -> None:
    agents, groups = order_sides(found.masses)
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
            width = 0.8 + 6 * float(held[agent])
            ax.add_patch(PathPatch(curve, fc="none", ec=colour, alpha=0.6, linewidth=width))
        ax.plot(1, heights[n], marker, color=colour, markersize=9, zorder=3)
        held_by = count(int(np.count_nonzero(held)), "agent")
        said = f"{count(int(found.sizes[group]), 'point')} of {held_by}"
        write_beside(ax, 1, heights[n], said, by=(9, 0))
    ax.plot(np.zeros(len(agents)), range(len(agents)), "o", color=style.INK, markersize=6, zorder=3)
    label_names(ax, "y", range(len(agents)), _name_agents(ax, game, found, agents))
    ax.set_xlim(-0.02, 2.0 if is_narrow(ax) else 1.42)
    ax.set_ylim(len(agents) - 0.4, -0.6)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    if not len(groups):
        ax.set_title("no two agents share a point")


def _name_agents(ax: Axes, game: Game, found: SharedPoints, agents: Indices) -> list[str]:
    """Return the names of agents, with what part of their points is their own."""
    longest = SHORT_NAME if is_narrow(ax) else LONGEST_COLUMN
    names = cut_names((game.name(agent) for agent in agents.tolist()), longest)
    parts = found.own[agents].tolist()
    return [
        f"{name}, {format_percent(own)} own" if own > 0 else name
        for name, own in zip(names, parts, strict=True)
    ]


def _spread(groups: int, agents: int) -> list[float]:
    """Place groups at equal distances along the agents."""
    if groups <= 1:
        return [(agents - 1) / 2] * groups
    margin = (agents - 1) / (2 * groups) if groups < agents else 0.0
    return [float(y) for y in np.linspace(margin, agents - 1 - margin, groups)]


def order_sides(masses: Matrix) -> tuple[Indices, Indices]:
    """Order agents and groups so that few of the lines between them cross.

    Each side in turn is sorted by the mean place of those it is tied to on the other.
    """
    agents, groups = (np.arange(size) for size in masses.shape)
    ties = masses > 0
    for _ in range(SWEEPS):
        groups = _sort_by_mean_place(ties.T, agents)
        agents = _sort_by_mean_place(ties, groups)
    return agents, groups


def _sort_by_mean_place(ties: Any, others: Indices) -> Indices:
    place = np.empty(len(others))
    place[others] = np.linspace(0, 1, len(others)) if len(others) else 0.0
    held = ties.sum(axis=1)
    mean = np.where(held > 0, ties @ place / np.maximum(held, 1), 2.0)
    return np.argsort(mean, kind="stable")


# Matrices.


def _draw_pairs(found: Pairs, game: Game, ax: Axes) -> None:
    size, givers = len(found.values), found.givers
    label_rows(ax, [game.name(agent) for agent in range(size)])
    longest = SHORT_NAME if is_narrow(ax) else LONGEST_COLUMN
    shown = cut_names([game.name(agent) for agent in givers], longest)
    upright = max(map(len, shown)) * len(givers) > (24 if is_narrow(ax) else 60)
    values = found.values[:, givers]
    ax.set_xticks(range(len(givers)), shown, rotation=90 if upright else 0, parse_math=False)
    ax.xaxis.tick_top()
    if size <= (NARROW_WRITTEN if is_narrow(ax) else WRITTEN):
        _write_cells(ax, values)
        ax.set_xlabel(_wrap(ax, found.what))
    else:
        _draw_cells(ax, values)
        _draw_key(ax, values, found.what)
    _square(ax, size, len(givers))


def _ends(values: Matrix) -> tuple[float, float]:
    """Return what the lightest and the darkest shade stand for: from zero, unless all are near."""
    low, high = float(values.min()), float(values.max()) or 1.0
    return (low if high / 2 < low < high else 0.0), high


def _write_cells(ax: Axes, values: Matrix) -> None:
    """Draw cells with their numbers in them, in shades light enough for that."""
    low, high = _ends(values)
    places = choose_places(values[values < 100], 2)
    for (row, column), value in np.ndenumerate(values):
        shade = style.shade(LIGHT * (float(value) - low) / (high - low))
        box = _box(column, column + 1, row, 0.03)
        ax.add_patch(PathPatch(box, facecolor=shade, edgecolor=shade))
        text = format_cell(float(value), places)
        ax.text(column, row, text, ha="center", va="center_baseline")


def _draw_blocks(found: Blocks, game: Game, ax: Axes) -> None:
    _draw_cells(ax, found.values)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_ylabel(f"{game.size:,} agents; agents that share points are next to each other")
    _draw_key(ax, found.values, found.what)
    _square(ax, len(found.values))
    ax.set_aspect("equal")


def _square(ax: Axes, size: int, columns: int | None = None) -> None:
    ax.set_xlim(-0.5, (size if columns is None else columns) - 0.5)
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


def _draw_key(ax: Axes, values: Matrix, what: str) -> None:
    """Say below a matrix what its numbers are, and which shade stands for which."""
    steps = len(style.SHADES)
    low, high = _ends(values)
    tops = [low + (high - low) * (n + 1) / steps for n in range(steps)]
    # Two digits tell them apart, or three where all are near.
    places = choose_places(tops, max((3 if low else 2) - math.floor(math.log10(high)), 0))
    patches = [
        Patch(facecolor=shade, label=format_places(top, places))
        for top, shade in zip(tops, style.SHADES, strict=True)
    ]
    if not values.all():
        patches.insert(
            0, Patch(facecolor=style.PAPER, edgecolor=style.REFERENCE, lw=0.6, label="0")
        )
    ax.legend(
        handles=patches,
        ncols=4 if is_narrow(ax) else len(patches),
        loc="upper left",
        bbox_to_anchor=(0, -0.01),
        title=_wrap(ax, f"{what}, up to"),
        title_fontsize=style.SMALL,
        alignment="left",
        handlelength=1.2,
        handleheight=1.2,
        columnspacing=1.0,
    )


def _wrap(ax: Axes, what: str) -> str:
    return wrap_lines(what, 0.7 * size_of(ax)[0])


# Very many agents.


def _draw_others(found: Others, game: Game, ax: Axes) -> None:
    starts, heights = count_agents(found)
    widths = np.diff(starts)
    ax.bar(starts[:-1], heights, widths * 0.94, align="edge", color=style.STABLE)
    asked = "" if len(found.agents) == game.size else f", of {len(found.agents):,} asked"
    x, top = "others that an agent shares data with", f"agents{asked}"
    set_axes(ax, x=x, top=top, legend=False)


def count_agents(found: Others, bins: int = 30) -> tuple[Indices, Indices]:
    """Count agents by how many others they share with: where the bins start, and how many."""
    low, high = int(found.counts.min()), int(found.counts.max())
    step = max(-(-(high - low + 1) // bins), 1)
    starts = np.arange(low, high + step + 1, step)
    return starts, np.histogram(found.counts, starts)[0]


# Its picture on a page.


def picture_overlap(game: Game, name: str = "overlap") -> Picture | None:
    """Show who shares data with whom; None where a game does not tell.

    game: whose agents.
    name: for the picture's files.
    """
    found = find_overlap(game)
    if found is None:
        return None
    title, alt, note = _overlap_words(game, found)
    # A matrix may have more names than a narrow screen has room for.
    wide = isinstance(found, Pairs) and len(found.values) > 15
    return Picture(
        name=name,
        title=title,
        alt=alt,
        draw=lambda ax: plot_found(game, found, ax=ax),
        data=_overlap_data(game, found),
        size=size_overlap(found),
        narrow=None if wide else narrow_size(size_overlap(found)),
        note=note,
    )


def _overlap_words(game: Game, found: Overlap) -> tuple[str, str, str]:
    """Return a title, what there is to see, and a note."""
    agents = count(game.size, "agent")
    if isinstance(found, SharedPoints):
        groups = (
            f"{count(int(size), 'point')} of {count(int((found.masses[:, n] > 0).sum()), 'agent')}"
            for n, size in enumerate(found.sizes.tolist())
        )
        told = join_first(groups, len(found.sizes), most=TOLD) or "no points"
        most = int(np.argmax(found.own))
        part = format_percent(found.own[most])
        own = f"{game.name(most)} has the largest part that it shares with no agent, {part}."
        if not found.own[most]:
            own = "No agent has points of its own."
        return (
            "Agents, and the points that they share",
            f"{agents} share {told}. {own}",
            "The thicker a line, the likelier a sample of the agent is one of these points. Points "
            "that the same agents have are drawn together.",
        )
    title = "What agents have in common"
    if isinstance(found, Pairs | Blocks) and "points" not in found.what:
        title = "Whose samples help whom"
    if isinstance(found, Pairs):
        others = count(len(found.givers), "agent")
        alt = f"A matrix of {agents} by {others}: {found.what}. {_describe_strongest(game, found)}"
        return title, alt, ""
    if isinstance(found, Blocks):
        middle = int(np.median(found.others))
        return (
            title,
            f"A matrix of {agents}: {found.what}. The median agent shares data with {middle:,}.",
            f"Each cell is the mean over a block of neighbours, of {agents} in all. Pairs of an "
            "agent with itself are left out.",
        )
    asked = count(len(found.agents), "agent")
    return (
        "With how many others agents share data",
        f"{asked} counted: from {found.counts.min():,} to {found.counts.max():,} others. The "
        f"median is {int(np.median(found.counts)):,}.",
        f"{asked} counted, spread over all {game.size:,}." if len(found.agents) < game.size else "",
    )


def _describe_strongest(game: Game, found: Pairs) -> str:
    apart = np.array(found.values)
    np.fill_diagonal(apart, -1.0)
    apart[:, np.setdiff1d(np.arange(len(apart)), found.givers)] = -1.0
    row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
    if apart[row, column] <= 0:
        return "No agent's samples help another."
    return (
        f"The most is {format_amount(apart[row, column])}, from {game.name(int(column))} to "
        f"{game.name(int(row))}."
    )


def _overlap_data(game: Game, found: Overlap) -> Table:
    everyone = range(game.size)
    if isinstance(found, SharedPoints):
        heads = [f"{count(int(n), 'point')} (group {g + 1})" for g, n in enumerate(found.sizes)]
        columns = ("agent", "points of its own", *heads)
        parts = np.column_stack([found.own, found.masses]).tolist()
        rows = tuple((game.name(i), *parts[i]) for i in everyone)
        return Table("How likely an agent's sample is in each group of points", columns, rows)
    if isinstance(found, Pairs):
        givers = found.givers
        rows = tuple((game.name(i), *found.values[i, givers].tolist()) for i in everyone)
        return Table(capitalize_first(found.what), ("agent", *map(game.name, givers)), rows)
    if isinstance(found, Blocks):
        shown = ((game.name(i), int(found.others[i])) for i in found.order.tolist())
        two = ("agent", "others it shares data with")
        return Table("Agents in the order of the picture", two, tuple(shown))
    starts, heights = count_agents(found)
    bins = zip(starts[:-1].tolist(), (starts[1:] - 1).tolist(), heights.tolist(), strict=True)
    return Table(
        "Agents by the number of others they share data with", ("from", "to", "agents"), tuple(bins)
    )
