"""Figures of checks of plans: who would defect, and who envies whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Indices
from fedaccord.check import Check
from fedaccord.check.decide import LISTED
from fedaccord.report import style
from fedaccord.report.drawing import finish, new_axes, short, styled, write_beside
from fedaccord.report.games import ROWS, tabulate_needs
from fedaccord.report.games_figures import (
    FEW,
    NAMED,
    TINY,
    TOLD,
    WIDTH,
    cut_names,
    label_rows,
    legend_beside_names,
    narrow_size,
    set_samples_axis,
)
from fedaccord.report.games_verdicts import find_worst_envy, is_off, mark_off
from fedaccord.report.model import Cell, Picture, Table, rank
from fedaccord.wording import count, format_amount, join_first

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to this many agents and pairs envy is drawn as arrows.
ARROWS = 12
# Up to this many agents those who are not off are shown too.
ALL = 12

# Who would defect.


def size_spare(found: Check) -> tuple[float, float]:
    """Return the width and height in inches that the spare samples of a plan need."""
    return WIDTH, 1.4 + 0.3 * max(len(choose_most_off(found)), 1)


def choose_most_off(found: Check) -> Indices:
    """Choose whom to show: all in order, or of many those furthest off, the worst first."""
    if found.game.size <= ALL:
        return np.arange(found.game.size)
    off = np.maximum(found.short, found.spare)
    return rank(off, min(FEW, int(is_off(found, off).sum())))


def plot_spare(found: Check, ax: Axes | None = None) -> Axes:
    """Draw what each agent gives and needs: who could give less, who is short, and by how much.

    Of more than a dozen agents, those that are off, the worst first.

    found: what was found of a plan.
    ax: where to draw.
    """
    ax = new_axes(size_spare(found)) if ax is None else ax
    shown = choose_most_off(found)
    with styled():
        if len(shown):
            _draw_spare(ax, found, shown)
        else:
            ax.set_title("no agent could give less, and none is short")
            ax.set_axis_off()
    return finish(ax)


def _draw_spare(ax: Axes, found: Check, shown: Indices) -> None:
    places = np.arange(len(shown))
    given = found.contributions[shown]
    spare = np.where(is_off(found, found.spare), found.spare, 0.0)[shown]
    lacks = np.where(is_off(found, found.short), found.short, 0.0)[shown]
    largest = float(np.where(np.isfinite(lacks), given + lacks, given).max()) or 1.0
    # Where no amount suffices, the bar goes as far as the longest.
    lacks = np.where(np.isfinite(lacks), lacks, 1.05 * largest - given)
    ax.barh(places, given - spare, 0.62, color=style.MUTED, label="given and needed")
    if spare.any():
        some = spare > 0
        ax.barh(
            places[some], spare[some], 0.62, left=(given - spare)[some], facecolor=style.PAPER,
            hatch="/////", edgecolor=style.BAD, linewidth=1, label="spare: need not be given",
        )  # fmt: skip
    if lacks.any():
        some = lacks > 0
        ax.barh(
            places[some], lacks[some], 0.62, left=given[some], facecolor="none",
            edgecolor=style.UNSURE, linewidth=1.2, linestyle=(0, (3, 2)), label="short: missing",
        )  # fmt: skip
    for y, agent in enumerate(shown.tolist()):
        text = mark_off(found, agent).text
        write_beside(ax, given[y] + lacks[y], y, text, fontsize=TINY)
    label_rows(ax, (found.game.name(i) for i in shown.tolist()))
    set_samples_axis(ax, "samples", (0, largest, 0.24))
    legend_beside_names(ax)


def picture_spare(found: Check, plan: str) -> Picture | None:
    """Show who could give less and who is short under a plan of this name; None if nobody is."""
    off = is_off(found, np.maximum(found.short, found.spare))
    if not off.any():
        return None
    shown = choose_most_off(found)
    agents = [i for i in shown.tolist() if off[i]]
    told = (f"{found.game.name(i)}: {mark_off(found, i).text}" for i in agents)
    hidden, rest = int(off.sum()) - len(agents), found.game.size - len(shown)
    note = f"The other {rest:,} give exactly what they need." if rest else ""
    if rest == 1:
        note = "The other one gives exactly what it needs."
    if hidden:
        note = f"The {len(agents)} agents furthest from their needs, of {off.sum():,}."
    return Picture(
        name=f"defection-{plan}",
        title=f"What each gives and needs under the {plan} plan",
        alt="These do not give exactly what they need: "
        f"{join_first(told, int(off.sum()), most=TOLD)}.",
        draw=lambda ax: plot_spare(found, ax),
        data=tabulate_needs(found, shown, "What each gives and needs"),
        size=size_spare(found),
        narrow=narrow_size(size_spare(found)),
        note=note,
    )


# Who envies whom.


def size_envy(found: Check) -> tuple[float, float]:
    """Return the width and height in inches that the envy of a plan needs."""
    agents = found.game.size
    if agents > NAMED:
        return WIDTH, 1.4 + 0.3 * max(len(find_worst_envy(found, FEW)), 2)
    if _fits_arrows(found):
        return WIDTH, 1.2 + 0.42 * agents
    return WIDTH, 2.4 + 0.24 * len(_sides(found)[0])


def _fits_arrows(found: Check) -> bool:
    pairs = len(found.envy) + len(found.borderline)
    return found.game.size <= ARROWS and pairs <= ARROWS


def is_envy_matrix(found: Check) -> bool:
    """Return whether envy is drawn as a matrix, with a column for each agent."""
    return found.game.size <= NAMED and not _fits_arrows(found)


def plot_envy(found: Check, ax: Axes | None = None) -> Axes:
    """Draw who would rather have whose burden, and would still reach its requirement.

    A few pairs are arrows, more of them a matrix; of many agents those with the most to gain, each
    with its own burden and the smallest one it envies.

    found: what was found of a plan.
    ax: where to draw.
    """
    ax = new_axes(size_envy(found)) if ax is None else ax
    with styled():
        if _fits_arrows(found):
            _draw_arrows(ax, found)
        elif not found.envy and not found.borderline:
            ax.set_axis_off()
        elif found.game.size <= NAMED:
            _draw_pairs(ax, found)
        else:
            _draw_gaps(ax, found)
        if found.envy or found.borderline:
            legend_beside_names(ax)
        else:
            ax.set_title("no agent envies another")
    return finish(ax)


def _by_burden(found: Check) -> Indices:
    return np.argsort(-found.contributions, kind="stable")


def _draw_arrows(ax: Axes, found: Check) -> None:
    order = _by_burden(found)
    place = {agent: y for y, agent in enumerate(order.tolist())}
    given = found.contributions
    ax.plot(given[order], range(len(order)), "o", color=style.INK, markersize=8, zorder=4)
    for agent, y in place.items():
        text = format_amount(float(given[agent]))
        write_beside(ax, given[agent], y, text, by=(0, -7), fontsize=TINY, ha="center", va="top")
    for pairs, colour, line in (
        (found.envy, style.BAD, "solid"),
        (found.borderline, style.UNSURE, (0, (3, 2))),
    ):
        for i, j in pairs:
            ax.annotate(
                "", (given[j], place[j]), xytext=(given[i], place[i]),
                arrowprops={
                    "arrowstyle": "-|>", "color": colour, "linestyle": line, "linewidth": 1.6,
                    "shrinkA": 6, "shrinkB": 6, "connectionstyle": "arc3,rad=0.12",
                },
            )  # fmt: skip
        if pairs:
            said = "envies" if pairs is found.envy else "may envy: too close to call"
            ax.plot([], [], color=colour, linestyle=line, label=f"→ {said}")
    label_rows(ax, (found.game.name(i) for i in order.tolist()))
    largest = float(given.max()) or 1.0
    set_samples_axis(ax, "samples given", (-0.06 * largest, largest, 0.1))
    ax.grid(axis="y")


def _sides(found: Check) -> tuple[Indices, Indices]:
    """Return those who envy and those who are envied, the largest burden first."""
    pairs = np.array([*found.envy, *found.borderline], dtype=np.intp).reshape(-1, 2)
    order = _by_burden(found)
    return order[np.isin(order, pairs[:, 0])], order[np.isin(order, pairs[:, 1])]


def _draw_pairs(ax: Axes, found: Check) -> None:
    """Draw a matrix: a row for each agent that envies, marked in the columns of those it envies."""
    rows, columns = _sides(found)
    size = 9 if len(columns) <= 20 else 7
    for pairs, marker, colour, label in (
        (found.envy, "s", style.BAD, "the row's agent envies the column's"),
        (found.borderline, "D", style.UNSURE, "too close to call"),
    ):
        if pairs:
            across = [int(np.flatnonzero(columns == j)[0]) for _, j in pairs]
            down = [int(np.flatnonzero(rows == i)[0]) for i, _ in pairs]
            ax.plot(across, down, marker, color=colour, markersize=size, label=label)
    ax.set_yticks(range(len(rows)), _with_burdens(found, rows), parse_math=False)
    names = _with_burdens(found, columns)
    ax.set_xticks(range(len(columns)), names, rotation=90, parse_math=False)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="both")
    ax.spines["bottom"].set_visible(False)


def _with_burdens(found: Check, agents: Indices) -> list[str]:
    names = cut_names((found.game.name(i) for i in agents.tolist()), 16)
    burdens = found.contributions[agents].tolist()
    return [f"{name}: {format_amount(burden)}" for name, burden in zip(names, burdens, strict=True)]


def _draw_gaps(ax: Axes, found: Check) -> None:
    """Draw the most envious of many agents: own burden, and the smallest that it envies."""
    shown = find_worst_envy(found, FEW)
    if not shown:
        ax.set_title(f"{count(len(found.borderline), 'pair')} too close to call")
        ax.set_axis_off()
        return
    places = np.arange(len(shown))
    given = found.contributions
    own = given[[envy.agent for envy in shown]]
    envied = given[[envy.other for envy in shown]]
    ax.hlines(places, envied, own, color=style.BAD, linewidth=2, zorder=2)
    ax.plot(own, places, "o", color=style.INK, markersize=7, label="gives", zorder=3)
    label = "the smallest burden it envies" if found.game.size <= LISTED else "a burden it envies"
    ax.plot(envied, places, "D", color=style.BAD, markersize=6, label=label, zorder=3)
    largest = float(own.max())
    for y, envy in enumerate(shown):
        others = count(envy.pairs, "agent")
        name = short(found.game.name(envy.other), 18)
        said = f"envies {others}" if envy.pairs > 1 else f"envies {name}"
        write_beside(ax, own[y] + 0.01 * largest, y, said, fontsize=TINY)
    label_rows(ax, (found.game.name(envy.agent) for envy in shown))
    set_samples_axis(ax, "samples given", (-0.03 * largest, largest, 0.3))


def picture_envy(found: Check, plan: str) -> Picture | None:
    """Show who envies whom under a plan of this name; None where nobody does."""
    if not found.envy and not found.borderline:
        return None
    if found.game.size > NAMED and not found.envy:
        return None
    name, given = found.game.name, found.contributions
    worst = find_worst_envy(found, TOLD)
    told = (
        f"{name(e.agent)} gives {format_amount(given[e.agent])} and envies "
        f"{name(e.other)}, which gives {format_amount(given[e.other])}"
        for e in worst
    )
    envious = len({i for i, _ in found.envy})
    unclear = f" Too close to call: {count(len(found.borderline), 'pair')}." * bool(
        found.borderline
    )
    notes = []
    if found.game.size > NAMED and envious > FEW:
        notes.append(f"{envious:,} agents envy another. These have the most to gain.")
    if found.game.size > LISTED:
        notes.append("In a game this large, the check looks for one envied agent per agent.")
    listed = join_first(told, envious, most=TOLD) or "No agent envies another for certain"
    return Picture(
        name=f"envy-{plan}",
        title=f"Who envies whom under the {plan} plan",
        alt=f"{listed}.{unclear}",
        draw=lambda ax: plot_envy(found, ax),
        data=tabulate_envy(found),
        size=size_envy(found),
        narrow=None if is_envy_matrix(found) else narrow_size(size_envy(found)),
        note=" ".join(notes),
    )


def tabulate_envy(found: Check) -> Table:
    """List who envies whom, those with the most to gain first."""
    game, given = found.game, found.contributions
    pairs = np.array([*found.envy, *found.borderline], dtype=np.intp).reshape(-1, 2)
    gains = given[pairs[:, 0]] - given[pairs[:, 1]]
    rows: list[tuple[Cell, ...]] = []
    for n in rank(gains, min(ROWS, len(pairs))).tolist():
        i, j = pairs[n].tolist()
        said = "envies" if n < len(found.envy) else "too close to call"
        rows.append((game.name(i), float(given[i]), said, game.name(j), float(given[j])))
    more = f", the first {ROWS:,} of {len(pairs):,} pairs" if len(pairs) > ROWS else ""
    return Table(
        f"Who envies whom{more}",
        columns=("agent", "gives", "verdict", "whom", "which gives"),
        rows=tuple(rows),
    )
