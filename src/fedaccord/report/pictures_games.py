"""Pictures of games and plans for pages: each figure with its numbers, and words for its reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.audit import Audit
from fedaccord.equilibria.result import Interval, Solution
from fedaccord.games.base import Game
from fedaccord.games.envy import LISTED
from fedaccord.report.drawing import NARROW
from fedaccord.report.figures_audits import (
    envy_size,
    is_envy_matrix,
    most_off,
    plot_envy,
    plot_spare,
    spare_size,
)
from fedaccord.report.figures_games import (
    DOTS,
    band_ends,
    banded,
    burdens,
    burdens_size,
    by_need,
    plot_burdens,
    plot_prices,
)
from fedaccord.report.figures_overlap import counted, overlap_size, plot_found
from fedaccord.report.figures_parts import FEW, NAMED
from fedaccord.report.model import Cell, Picture, Table
from fedaccord.report.overlap import Blocks, Overlap, Pairs, SharedPoints, overlap_of
from fedaccord.report.words_games import is_off, off_mark, price_value, ranked, worst_envy
from fedaccord.wording import capitalize_first, count, format_amount, join_first

# The most rows of a picture's numbers.
ROWS = 2_000
# The most that is told of a picture in words, for those who do not see it.
TOLD = 12


def finite(value: float) -> float | None:
    """Give a number for a table; None where it is infinite."""
    return float(value) if np.isfinite(value) else None


def narrowed(size: tuple[float, float]) -> tuple[float, float]:
    """Give the size for a narrow screen: the legend takes more lines."""
    return NARROW[0], size[1] + 0.4


# Who gives how much.


def allocations_picture(game: Game, solutions: Mapping[str, Solution]) -> Picture:
    """Show what each agent gives, alone and under each plan."""
    return burdens_picture(game, burdens(game, solutions))


def burdens_picture(game: Game, given: Mapping[str, Vector]) -> Picture:
    """Show what each agent gives.

    game: whose plans.
    given: what each agent gives, by the name of the plan.
    """
    if game.size <= NAMED:
        note = ""
    elif game.size <= DOTS:
        note = "Each agent is one place from left to right, with a mark for each plan."
    else:
        note = (
            f"Agents stand in {len(band_ends(game.size)) - 1} groups of neighbours: the line is "
            "the middle agent of each, the band holds those from 10 to 90 %."
        )
    return Picture(
        name="allocations",
        title="Who gives how much",
        alt=" ".join([f"What {count(game.size, 'agent')} give.", *_totals_told(game, given)]),
        draw=lambda ax: plot_burdens(game, given, ax=ax),
        data=_allocations_data(game, given),
        size=burdens_size(game, given),
        narrow=narrowed(burdens_size(game, given)),
        note=note,
    )


def _totals_told(game: Game, given: Mapping[str, Vector]) -> Iterator[str]:
    for name, values in given.items():
        known = np.where(np.isfinite(values), values, -1.0)
        most = int(np.argmax(known))
        total = (
            f"{format_amount(values.sum())} in all" if np.isfinite(values).all() else "not for all"
        )
        yield (
            f"{capitalize_first(name)}: {total}, the most by {game.name(most)} with "
            f"{format_amount(known[most])}; "
            f"{count(int((values == 0).sum()), 'agent')} with nothing."
        )


def _allocations_data(game: Game, given: Mapping[str, Vector]) -> Table:
    if game.size <= ROWS:
        return Table(
            caption="What each agent gives",
            columns=("agent", *given),
            rows=tuple(
                (game.name(i), *(finite(values[i]) for values in given.values()))
                for i in range(game.size)
            ),
        )
    order = by_need(given)
    heads = [f"{name}, {part}" for name in given for part in ("10 %", "middle", "90 %")]
    points = [point for values in given.values() for point in banded(order, values)[1]]
    ranks = pairwise(band_ends(game.size).tolist())
    return Table(
        caption="What agents give, in groups of neighbours by stand-alone need",
        columns=("ranks", "agents", *heads),
        rows=tuple(
            (f"{a + 1:,} to {b:,}", b - a, *(finite(point[n]) for point in points))
            for n, (a, b) in enumerate(ranks)
        ),
    )


# Who would defect, and who envies whom.


def spare_picture(audit: Audit, plan: str) -> Picture | None:
    """Show who could give less and who is short; None where nobody is.

    audit: what was found.
    plan: what the plan is called, in a word.
    """
    off = is_off(audit, np.maximum(audit.short, audit.spare))
    if not off.any():
        return None
    shown = most_off(audit)
    agents = [i for i in shown.tolist() if off[i]]
    told = (f"{audit.game.name(i)}: {off_mark(audit, i).text}" for i in agents)
    hidden = int(off.sum()) - len(agents)
    return Picture(
        name=f"defection-{plan}",
        title=f"What each gives and needs under the {plan} plan",
        alt=f"Off what they need are {join_first(told, int(off.sum()), most=TOLD)}.",
        draw=lambda ax: plot_spare(audit, ax),
        data=spare_table(audit, shown, "What each gives and needs"),
        size=spare_size(audit),
        narrow=narrowed(spare_size(audit)),
        note=_spare_note(audit.game.size, len(shown), len(agents), hidden),
    )


def _spare_note(size: int, shown: int, off: int, hidden: int) -> str:
    if hidden:
        return f"The {off} furthest off; {hidden:,} more are off too."
    rest = size - shown
    if not rest:
        return ""
    if rest == 1:
        return "The other one gives exactly what it needs."
    return f"The other {rest:,} give exactly what they need."


def spare_table(audit: Audit, agents: Indices, caption: str) -> Table:
    """List what agents give and need.

    audit: what was found.
    agents: whom to list, in order.
    caption: what the table is.
    """
    parts = (audit.contributions, audit.needed, audit.short, audit.spare, audit.alone)
    return Table(
        caption,
        columns=("agent", "gives", "needs", "short", "spare", "alone"),
        rows=tuple(
            (audit.game.name(i), *(finite(part[i]) for part in parts)) for i in agents.tolist()
        ),
    )


def envy_picture(audit: Audit, plan: str) -> Picture | None:
    """Show who envies whom; None where nobody does.

    audit: what was found.
    plan: what the plan is called, in a word.
    """
    if not audit.envy and not audit.borderline:
        return None
    if audit.game.size > NAMED and not audit.envy:
        return None
    name, given = audit.game.name, audit.contributions
    worst = worst_envy(audit, TOLD)
    told = (
        f"{name(e.agent)} gives {format_amount(given[e.agent])} and envies "
        f"{name(e.other)}, who gives {format_amount(given[e.other])}"
        for e in worst
    )
    envious = len({i for i, _ in audit.envy})
    unclear = f" {count(len(audit.borderline), 'pair')} too close to call." * bool(audit.borderline)
    listed = join_first(told, envious, most=TOLD) or "Nobody envies anybody for certain"
    return Picture(
        name=f"envy-{plan}",
        title=f"Who envies whom under the {plan} plan",
        alt=f"{listed}.{unclear}",
        draw=lambda ax: plot_envy(audit, ax),
        data=envy_table(audit),
        size=envy_size(audit),
        narrow=None if is_envy_matrix(audit) else narrowed(envy_size(audit)),
        note=_envy_note(audit, envious),
    )


def _envy_note(audit: Audit, envious: int) -> str:
    if audit.game.size <= NAMED:
        return ""
    few = f"Of {envious:,} who envy somebody, those with the most to gain. " * (envious > FEW)
    one = "In a game this large one envied agent is looked for, for each." * (
        audit.game.size > LISTED
    )
    return f"{few}{one}".strip()


def envy_table(audit: Audit) -> Table:
    """List who envies whom, those with the most to gain first."""
    game, given = audit.game, audit.contributions
    pairs = np.array([*audit.envy, *audit.borderline], dtype=np.intp).reshape(-1, 2)
    gains = given[pairs[:, 0]] - given[pairs[:, 1]]
    rows: list[tuple[Cell, ...]] = []
    for n in ranked(gains, min(ROWS, len(pairs))).tolist():
        i, j = pairs[n].tolist()
        said = "envies" if n < len(audit.envy) else "too close to call"
        rows.append((game.name(i), float(given[i]), said, game.name(j), float(given[j])))
    more = f", the first {ROWS:,} of {len(pairs):,} pairs" if len(pairs) > ROWS else ""
    return Table(
        f"Who envies whom{more}",
        columns=("agent", "gives", "verdict", "whom", "who gives"),
        rows=tuple(rows),
    )


# Prices.


def prices_picture(prices: Mapping[str, Mapping[int, Interval]]) -> Picture | None:
    """Show prices against the number of agents, with sqrt(k); None where there are none.

    prices: for each name the price at each number of agents.
    """
    known = {
        name: {k: price for k, price in series.items() if np.isfinite(price.lower)}
        for name, series in prices.items()
    }
    known = {name: series for name, series in known.items() if series}
    if not known:
        return None
    told = (
        f"{name} {price_value(price)} at {count(k, 'agent')}, where sqrt(k) is {k**0.5:.4g}"
        for name, series in known.items()
        for k, price in series.items()
    )
    return Picture(
        name="prices",
        title="Prices against the number of agents",
        alt=f"{capitalize_first(join_first(told, sum(map(len, known.values())), most=TOLD))}.",
        draw=lambda ax: plot_prices(known, ax),
        data=Table(
            "Prices, proved to lie in these intervals",
            columns=("price", "agents", "at least", "at most", "sqrt(k)"),
            rows=tuple(
                (name, k, price.lower, finite(price.upper), k**0.5)
                for name, series in known.items()
                for k, price in series.items()
            ),
        ),
        narrow=NARROW,
    )


# Whose data overlap.


def overlap_picture(game: Game, name: str = "overlap") -> Picture | None:
    """Show who shares data with whom; None where a game does not tell.

    game: whose agents.
    name: for the picture's files.
    """
    found = overlap_of(game)
    if found is None:
        return None
    title, alt, note = _overlap_words(game, found)
    return Picture(
        name=name,
        title=title,
        alt=alt,
        draw=lambda ax: plot_found(game, found, ax=ax),
        data=_overlap_data(game, found),
        size=overlap_size(found),
        narrow=None if _is_wide(found) else narrowed(overlap_size(found)),
        note=note,
    )


def _is_wide(found: Overlap) -> bool:
    """Say whether a matrix has more names than a narrow screen has room for."""
    return isinstance(found, Pairs) and len(found.values) > 15


def _overlap_words(game: Game, found: Overlap) -> tuple[str, str, str]:
    """Give a title, what there is to see, and a note."""
    agents = count(game.size, "agent")
    if isinstance(found, SharedPoints):
        groups = (
            f"{count(int(size), 'point')} of {count(int((found.masses[:, n] > 0).sum()), 'agent')}"
            for n, size in enumerate(found.sizes.tolist())
        )
        told = join_first(groups, len(found.sizes), most=TOLD) or "no points"
        return (
            "Agents, and the points that they share",
            f"{agents} share {told}. {_lonely(game, found)}",
            "A line is the thicker the likelier an agent's sample is one of those points. Points "
            "that the same agents have stand together.",
        )
    if isinstance(found, Pairs):
        return (
            "What agents have in common" if "points" in found.what else "Whose samples help whom",
            f"A matrix of {agents} by {agents}: {found.what}. {_strongest(game, found)}",
            "",
        )
    if isinstance(found, Blocks):
        middle = int(np.median(found.others))
        return (
            "What agents have in common" if "points" in found.what else "Whose samples help whom",
            f"A matrix of {agents}: {found.what}. The middle agent shares with {middle:,} others.",
            f"Each cell is the mean over a block of neighbours; {agents} in all, an agent with "
            "itself left out.",
        )
    asked = count(len(found.agents), "agent")
    return (
        "With how many others agents share data",
        f"{asked} asked, spread over all: from {found.counts.min():,} to {found.counts.max():,} "
        f"others, the middle one {int(np.median(found.counts)):,}.",
        f"{asked} asked, spread over all {game.size:,}." if len(found.agents) < game.size else "",
    )


def _lonely(game: Game, found: SharedPoints) -> str:
    own = int(np.argmax(found.own))
    if found.own[own] == 0:
        return "Nobody has points of its own."
    return f"{game.name(own)} has the largest part of its own, {100 * found.own[own]:.0f} %."


def _strongest(game: Game, found: Pairs) -> str:
    apart = np.array(found.values)
    np.fill_diagonal(apart, -1.0)
    row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
    if apart[row, column] <= 0:
        return "Nobody's samples help anybody else."
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
        rows = tuple((game.name(i), *found.values[i].tolist()) for i in everyone)
        return Table(capitalize_first(found.what), ("agent", *map(game.name, everyone)), rows)
    if isinstance(found, Blocks):
        shown = ((game.name(i), int(found.others[i])) for i in found.order.tolist())
        heads = ["agent", "others it shares with"]
        return Table("Agents in the order of the picture", tuple(heads), tuple(shown))
    starts, heights = counted(found)
    bins = zip(starts[:-1].tolist(), (starts[1:] - 1).tolist(), heights.tolist(), strict=True)
    return Table("Agents by the others they share with", ("from", "to", "agents"), tuple(bins))
