"""The page of a proposal to agents of a measured game: the three answers, the plan, each agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator

from fedaccord.check import Check
from fedaccord.check.sentences import list_rest
from fedaccord.errors import InputError
from fedaccord.games.chances import Prospects
from fedaccord.report import style
from fedaccord.report.drawing import finish, new_axes, styled
from fedaccord.report.games_chances import (
    ask_three,
    describe_average,
    describe_total,
    list_alone,
    list_prospects,
    list_symbols,
    suggest_limit,
)
from fedaccord.report.games_figures import (
    FEW,
    NAMED,
    TOLD,
    WIDTH,
    label_rows,
    legend_beside_names,
    narrow_size,
    picture_burdens,
)
from fedaccord.report.model import (
    Cell,
    Listing,
    Part,
    Picture,
    Probability,
    Section,
    Table,
    rank,
    show_doubts,
)
from fedaccord.wording import count, format_part, format_uncertain, join_first, name_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord._checks import Indices

# How the probability with all of a contribution, and with each lower level, is drawn.
FULL = ("o", style.STABLE)
LEVELS = (("s", style.SHADES[4]), ("^", style.OPTIMAL), ("v", style.BAD))


def list_sections(found: Check, prospects: Prospects) -> list[Section]:
    """Return the sections on a proposal that only a measured game has.

    found: what was found.
    prospects: how likely agents are to reach their goals.
    """
    return [
        Section("In short", tuple(_summarize(found, prospects))),
        Section(
            "What each agent gives, and how likely it is to be enough",
            tuple(_compare(found, prospects)),
        ),
        Section("What an agent gains by giving less", tuple(_defect(found, prospects))),
    ]


def list_proposal_facts(found: Check, prospects: Prospects) -> Iterator[tuple[str, str]]:
    """Return what the probabilities rest on."""
    chances = prospects.chances
    judged = "true accuracy" if chances.judged == "true" else "one measurement"
    yield "Required", f"all agents reach their goals with probability {found.probability:g}"
    yield "Judged by", f"{judged}, in {count(len(chances), 'resample')} of the fit to pilots"


def _summarize(found: Check, prospects: Prospects) -> Iterator[Part]:
    yield Listing(tuple(list_rest(found, prospects)))
    yield from show_doubts(found.doubts)
    yield ask_three(found, prospects)
    yield describe_total(found, prospects)
    yield describe_average(found)
    yield from suggest_limit(found)


def _compare(found: Check, prospects: Prospects) -> Iterator[Part]:
    alone = np.nan_to_num(list_alone(found), nan=np.inf, posinf=np.inf)
    given = {name_alone(found.with_margin is not None or found.has_margins): alone}
    if found.plan is not None:
        given["plan"] = found.plan.contributions
    yield picture_burdens(found.game, {**given, "proposal": found.contributions})
    yield list_prospects(found, prospects).table("page")
    yield Listing(tuple(list_symbols(found, prospects, "page").values()))


def _defect(found: Check, prospects: Prospects) -> Iterator[Part]:
    giving = found.contributions > 0
    if not giving.any():
        yield "No agent gives anything, so none could give less."
        return
    least = min(prospects.defection)
    full, cut = (
        float(values[giving].mean()) for values in (prospects.satisfied, prospects.defection[least])
    )
    yield (
        f"An agent that alone gives only {format_part(least)} of its contribution reaches its goal "
        f"with probability {format_uncertain(cut)} on average. With its whole contribution, the "
        f"probability is {format_uncertain(full)}."
    )
    yield picture_levels(found, prospects)


# How sure each is, with all it gives and with less.


def choose_shown(found: Check, prospects: Prospects) -> Indices:
    """Choose whom to show: all in order, or of many those least likely to reach their goals."""
    if found.game.size <= NAMED:
        return np.arange(found.game.size)
    return rank(-prospects.satisfied, FEW)


def size_levels(found: Check) -> tuple[float, float]:
    """Return the width and height in inches that the probabilities of a proposal need."""
    return WIDTH, 1.5 + 0.32 * min(found.game.size, NAMED)


def plot_levels(found: Check, ax: Axes | None = None) -> Axes:
    """Draw how likely each agent is to reach its goal, and how likely if it alone gave less.

    found: what was found of a proposal, with probabilities.
    ax: where to draw.
    """
    prospects = found.prospects
    if prospects is None:
        raise InputError("this check knows of no probabilities: check a Measurement")
    ax = new_axes(size_levels(found)) if ax is None else ax
    shown = choose_shown(found, prospects)
    places = np.arange(len(shown))
    with styled():
        levels = [prospects.satisfied, *prospects.defection.values()]
        spread = np.array([values[shown] for values in levels])
        ax.hlines(places, spread.min(axis=0), spread.max(axis=0), color=style.GRID, linewidth=3)
        giving = found.contributions[shown] > 0
        names = ["all of it", *map(format_part, prospects.defection)]
        for name, values, (marker, colour) in zip(names, spread, (FULL, *LEVELS), strict=True):
            some = giving | (name == names[0])
            ax.plot(values[some], places[some], marker, color=colour, markersize=8, label=name)
        label_rows(ax, (found.game.name(i) for i in shown.tolist()))
        ax.set_xlim(-0.03, 1.03)
        ax.xaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        ax.set_xlabel("probability of reaching its goal, if it alone gives")
        ax.grid(axis="x")
        ax.spines["bottom"].set_visible(False)
        legend_beside_names(ax)
    return finish(ax)


def picture_levels(found: Check, prospects: Prospects) -> Picture:
    """Show how likely each agent is to reach its goal with all it gives, and with less."""
    shown = choose_shown(found, prospects).tolist()
    least = min(prospects.defection)
    levels = (1.0, *prospects.defection)

    def tell(agent: int) -> str:
        said = f"{found.game.name(agent)}: {format_uncertain(prospects.satisfied[agent])}"
        if not found.contributions[agent]:
            return said
        cut = format_uncertain(prospects.defection[least][agent])
        return f"{said}, and {cut} with {format_part(least)}"

    def list_row(agent: int) -> tuple[Cell, ...]:
        # An agent that gives nothing cannot give part of it.
        giving = bool(found.contributions[agent])
        cuts = (Probability(v[agent]) if giving else None for v in prospects.defection.values())
        return found.game.name(agent), Probability(prospects.satisfied[agent]), *cuts

    return Picture(
        name="levels",
        title="How likely each reaches its goal if it alone gives less",
        alt=f"{join_first(map(tell, shown), found.game.size, most=TOLD)}.",
        draw=lambda ax: plot_levels(found, ax),
        data=Table(
            "How likely each reaches its goal if it alone gives less",
            ("agent", *(f"P(goal) with {format_part(level)}" for level in levels)),
            tuple(map(list_row, shown)),
        ),
        size=size_levels(found),
        narrow=narrow_size(size_levels(found)),
        note="" if len(shown) == found.game.size else f"The {len(shown)} least likely to.",
    )
