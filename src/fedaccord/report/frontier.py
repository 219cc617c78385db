"""Algorithms side by side: for a terminal, and as a page with figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord.report import style
from fedaccord.report.defection import describe_trials, format_share, list_training_facts
from fedaccord.report.model import (
    FEW,
    MANY,
    Cell,
    Column,
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Records,
    Section,
    Table,
    Tone,
)
from fedaccord.report.terminal import NO_BREAK, line, shorten_name
from fedaccord.wording import format_level, format_mean, format_percent, format_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform
    from rich.text import Text

    from fedaccord.federation.defection.curves import Interval, Proportion
    from fedaccord.frontier.result import Contender, Frontier, Reached

# Who it is that is counted, where one gives less.
WHO = {"random": "a random agent", "contributors": "a contributor", "others": "all the others"}
# In inches, of the figures on a page, wide and narrow.
SIZE = (7.6, 4.2)
TALL = (4.4, 4.2)
# Intervals nearer than this part of the axis would cover each other; so far apart they are put, in
# inches.
NEAR = 0.03
APART = 0.14

PLANS = (
    'A plan says what is asked of each agent. "own": what the algorithm uses when all bring '
    'everything. "all": every point. "measured": pilot trainings, the learning curves that they '
    "show, and of the game that these make a stable plan with a margin. "
    '"sought": found by training, in which agents reveal points until all are satisfied and then '
    "each goes down to the least it needs (EQ-FED). Anything else is a file."
)
PROTOCOLS = (
    "P2 is the test of a plan: one agent gives a part of what is asked of it, the others all that "
    "is asked of them. P1 is the paper's: one agent has only a part of its data, and brings what "
    "is asked of it as far as it has that; where the plan is the algorithm's own, everybody else "
    "brings everything."
)
SATISFIED = (
    "An agent is satisfied if the model is as accurate as the agent wants, on the agent's own "
    "validation points, at the last evaluation of training. An agent of whom nothing is asked "
    "cannot give less: a random agent may be it, a random contributor may not."
)
INTERVALS = (
    "In brackets are 95 % intervals. Those of shares take into account that runs of one trial go "
    "together; the interval of samples as a share of the baseline's takes each end against the "
    "baseline's far one. A goal is reached if what was seen is on its right side, and surely so "
    "if the whole interval is."
)
COLLATERAL = (
    "A cut may be felt by more than the one who cuts. Where training ends for all as soon as one "
    "has nothing left to give, that is what makes everybody keep to the plan, and what the others "
    "pay if somebody does not."
)


def show_frontier(frontier: Frontier) -> Iterator[str | Text | Table]:
    """Return what a terminal shows: what the numbers are, the tables, and what they come to."""
    yield (
        "Share of runs in which agents reach their goals at the end of training; in brackets the "
        "95 % interval."
    )
    yield (
        "P2: one gives a part of what is asked of it, the others all that is asked of them. P1: "
        "one has only a part of its data."
    )
    yield list_goals(frontier).table("terminal")
    yield list_costs(frontier).table("terminal")
    yield _list_asked_across(frontier)
    for protocol, who in choose_kinds(frontier):
        head = f"{protocol}, {WHO[who]}"
        table = list_levels(frontier, protocol, who)
        yield replace(table, columns=(head, *table.columns[1:]))
    yield from (frontier.verdict(one) for one in frontier.contenders)
    yield from filter(None, (frontier.describe_harm(one) for one in frontier.contenders))
    for name, why in frontier.unplanned.items():
        yield f"{name} was not compared: {why.rstrip('.')}."
    yield frontier.provenance
    yield line(frontier.conclusion, "bold")


# Tables.


def _name_plan(contender: Contender) -> str:
    """Return how a contender's plan was made: a word, or the file's name."""
    return Path(contender.plan).name


def _format_unbroken(share: Proportion) -> str:
    """Write a share with its interval, which no line break divides."""
    return format_share(share).replace(" ", NO_BREAK)


def _format_mean(mean: float, ends: Interval | None) -> str:
    """Write a mean of counts with its interval, where there is one to speak of."""
    if ends is None or ends[0] == ends[1]:
        return format_mean(mean)
    return f"{format_mean(mean)} [{ends[0]:,.0f}, {ends[1]:,.0f}]".replace(" ", NO_BREAK)


def list_goals(frontier: Frontier) -> Records:
    """List how often agents are satisfied, and which goals each contender reaches."""
    contenders, level = frontier.contenders, frontier.goals.level
    at = format_level(level).replace(" ", NO_BREAK)
    reached = [frontier.reached(one) for one in contenders]

    def goal(number: int, texts: list[str], head: str, short: str = "") -> Iterator[Column]:
        if short:
            yield Column(short, lambda n: texts[n], where="terminal")
        yield Column(head, lambda n: _mark_goal(reached[n][number], texts[n]), where="page")

    satisfied = [_format_unbroken(one.all_satisfied) for one in contenders]
    cut = [_format_unbroken(one.defector("P2", level, contributors=True)) for one in contenders]
    samples = [f"{100 * frontier.share(one)[0]:.0f}{NO_BREAK}%" for one in contenders]
    others = [_format_unbroken(one.others("P2", level)) for one in contenders]
    plans = [_name_plan(one) for one in contenders]
    scores = [f"{sum(goal.reached for goal in goals)} of 3" for goals in reached]
    gives = (f"contributor that gives {at} of its share (P2)", f"contributor that\ngives {at} (P2)")
    return Records(
        "Algorithms with their plans, and the three goals",
        (
            Column("algorithm", lambda n: contenders[n].name),
            Column("plan", lambda n: shorten_name(plans[n]), where="terminal"),
            Column("plan", lambda n: plans[n], where="page"),
            *goal(0, satisfied, "everybody satisfied", "everybody\nsatisfied"),
            *goal(1, cut, *gives),
            *goal(2, samples, f"samples, of {frontier.baseline}'s"),
            Column("all the others\nthen", lambda n: others[n], where="terminal"),
            Column("goals\nreached", lambda n: scores[n], where="terminal"),
        ),
        range(len(contenders)),
    )


def _mark_goal(found: Reached, text: str) -> Cell:
    """Mark a number by whether it reaches its goal, and say so."""
    if found.value is None:
        return text
    word = "reached" if found.reached else "missed"
    sure: Tone = "good" if found.reached else "bad"
    return Mark(f"{text} {word}", sure if found.sure else "unsure")


def list_costs(frontier: Frontier) -> Records:
    """List what each contender takes: different points, and samples drawn."""
    contenders = frontier.contenders
    at = format_level(frontier.goals.level).replace(" ", NO_BREAK)
    others = [_format_unbroken(one.others("P2", frontier.goals.level)) for one in contenders]
    audits = [one.p2 for one in contenders]
    return Records(
        "What it takes, and what a cut does to the others",
        (
            Column("algorithm", lambda n: contenders[n].name),
            Column(
                "different points used",
                lambda n: _format_mean(audits[n].total_samples, audits[n].samples_interval),
                short="different\npoints",
            ),
            Column(
                f"of\n{shorten_name(frontier.baseline)}'s",
                lambda n: f"{100 * frontier.share(contenders[n])[0]:.0f} %",
                where="terminal",
            ),
            Column(
                "samples drawn",
                lambda n: _format_mean(audits[n].total_draws, audits[n].draws_interval),
                short="samples\ndrawn",
            ),
            Column(
                "runs that made the plan",
                lambda n: contenders[n].planning_runs or None,
                short="runs that\nmade the plan",
                write="{:,}".format,
            ),
            Column(
                f"all the others satisfied, when a contributor gives {at}",
                lambda n: others[n],
                where="page",
            ),
        ),
        range(len(contenders)),
    )


def _list_asked_across(frontier: Frontier) -> Table:
    """List what each plan asks, an agent a column; of many agents, the first few."""
    names = frontier.clients
    few = len(names) if len(names) <= MANY else FEW
    more = len(names) - few

    def row(head: str, points: Sequence[int], nothing: str) -> tuple[Cell, ...]:
        own = (f"{number:,}" if number else nothing for number in points[:few])
        rest = [f"{sum(points[few:]):,}"] if more else []
        return (head, *own, *rest, f"{sum(points):,}")

    others = [f"{more:,} others"] if more else []
    return Table(
        "",
        ("points asked", *map(shorten_name, names[:few]), *others, "all"),
        tuple(row(one.name, one.contributions, "-") for one in frontier.contenders),
        footer=(row("all there are", frontier.points, "0"),),
    )


def _list_asked_down(frontier: Frontier) -> Table:
    """List what each plan asks, an agent a row."""
    contenders = frontier.contenders
    rows: list[tuple[Cell, ...]] = [
        (agent, goal, frontier.points[i], *(one.contributions[i] for one in contenders))
        for i, (agent, goal) in enumerate(zip(frontier.clients, frontier.requirements, strict=True))
    ]
    totals = (sum(one.contributions) for one in contenders)
    return Table(
        "Points asked of each agent, by algorithm",
        ("agent", "goal", "has", *(one.name for one in contenders)),
        tuple(rows),
        footer=(("all", None, sum(frontier.points), *totals),),
    )


def choose_kinds(frontier: Frontier) -> list[tuple[str, str]]:
    """List whom to speak of: by protocol, and where somebody is asked for nothing, contributors."""
    people = ["random", *(["contributors"] if frontier.idle else []), "others"]
    if len(frontier.clients) == 1:
        people.remove("others")
    return [(protocol, who) for protocol in ("P2", "P1") for who in people]


def list_levels(frontier: Frontier, protocol: str, who: str) -> Table:
    """List how often somebody, one of WHO, was satisfied by what one gave under P1 or P2."""
    # Of the others, only levels at which somebody cuts.
    levels = [level for level in frontier.levels if level < 1 or who != "others"]
    of = "what is asked of it" if protocol == "P2" else "its data"
    verb = "gives" if protocol == "P2" else "has"
    caption = f"{protocol}: {WHO[who]} that {verb} a part of {of} reaches its goal"
    if who == "others":
        caption = f"{protocol}: {WHO[who]} reach theirs when a contributor {verb} a part of {of}"

    def share(one: Contender, level: float) -> Proportion:
        if who == "others":
            return one.others(protocol, level)
        return one.defector(protocol, level, contributors=who == "contributors")

    rows = [
        (one.name, *(_format_unbroken(share(one, level)) for level in levels))
        for one in frontier.contenders
    ]
    heads = (format_level(level).replace(" ", NO_BREAK) for level in levels)
    return Table(caption, ("algorithm", *heads), tuple(rows))


# The page.


def frontier_page(found: Frontier, *, command: str = "") -> Page:
    """Make a page of a comparison of algorithms.

    found: the comparison.
    command: what was typed.
    """
    told = tuple(_tell_stories(found))
    stories = [Listing(told)] if told else []
    return Page(
        title="Which algorithm satisfies all, and lets nobody give less?",
        verdict=found.conclusion,
        tone=_choose_tone(found),
        sections=(
            Section("Algorithms side by side", tuple(_show_overview(found))),
            Section("What giving less comes to", tuple(_show_cuts(found))),
            Section("Who is asked for how much", (_list_asked_down(found), *stories)),
            Section("How to read this", (found.provenance, PLANS, PROTOCOLS, SATISFIED, INTERVALS)),
        ),
        facts=(
            ("Comparison", f"by P1 and P2; {describe_trials(found)}"),
            *((one.name, format_settings(one.p2.settings)) for one in found.contenders),
            *list_training_facts(found),
        ),
        command=command,
    )


def _choose_tone(found: Frontier) -> Tone:
    best = [found.reached(one) for one in found.contenders]
    winners = [goals for goals in best if all(goal.reached for goal in goals)]
    if not winners:
        return "bad"
    return "good" if any(all(goal.sure for goal in goals) for goals in winners) else "unsure"


def _show_overview(found: Frontier) -> Iterator[Part]:
    goals = found.goals
    yield _picture(
        found,
        "frontier",
        place_cuts(found),
        plot_frontier,
        heads=("who cuts is satisfied", "a contributor that cuts is satisfied"),
        note=f"Filled marks: all are satisfied in at least {format_level(goals.satisfied)} of runs "
        "when everybody gives what is asked. Hollow ones: less often. The lower left is where an "
        "algorithm should be, with a filled mark. Marks that would cover each other stand side by "
        "side.",
    )
    yield _picture(
        found,
        "satisfied",
        place_satisfied(found),
        plot_satisfied,
        heads=("all are satisfied", "all are satisfied"),
        note=f"Filled marks: a contributor that gives {format_level(goals.level)} of what is asked "
        f"is satisfied in at most {format_level(goals.cut)} of runs. Hollow ones: more often.",
    )
    yield list_goals(found).table("page")
    yield list_costs(found).table("page")
    yield Listing(tuple(found.verdict(one) for one in found.contenders))
    if found.unplanned:
        yield Listing(tuple(f"{n} was not compared: {why}" for n, why in found.unplanned.items()))


def _picture(
    found: Frontier,
    name: str,
    places: Sequence[Place],
    plot: Callable[[Frontier, Axes], object],
    *,
    heads: tuple[str, str],
    note: str,
) -> Picture:
    known = [place for place in places if place.height.trials]
    said = "; ".join(
        f"{p.name}: {heads[1]} in {format_percent(p.height.p)} of runs, with "
        f"{format_percent(p.share)} of {found.baseline}'s samples"
        for p in known
    )
    rows = [
        (p.name, p.share, *(p.ends or (None, None)), p.height.p, p.height.low, p.height.high)
        for p in known
    ]
    columns = ("algorithm", "share of samples", "from", "to", heads[0], "from", "to")
    return Picture(
        name,
        f"How often {heads[0]}, by the samples it takes",
        f"{said}.",
        draw=lambda ax: plot(found, ax),
        data=Table(f"How often {heads[0]}, by samples", columns, tuple(rows)),
        size=SIZE,
        note=note,
        narrow=TALL,
    )


def _show_cuts(found: Frontier) -> Iterator[Part]:
    yield from (list_levels(found, protocol, who) for protocol, who in choose_kinds(found))
    harmed = [said for one in found.contenders if (said := found.describe_harm(one))]
    if harmed:
        yield COLLATERAL
        yield Listing(tuple(harmed))


def _tell_stories(found: Frontier) -> Iterator[str]:
    for one in found.contenders:
        runs = f" It took {one.planning_runs:,} runs of training." if one.planning_runs else ""
        if one.story:
            yield f"{one.name}, {_name_plan(one)}: {one.story}{runs}"


# Figures.


@dataclass(frozen=True)
class Place:
    """Where a contender stands.

    name: of the contender.
    share: of the baseline's samples, with its interval where that is known.
    height: what was counted.
    filled: whether it reaches the goal that this figure does not show.
    """

    name: str
    share: float
    ends: Interval | None
    height: Proportion
    filled: bool


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw how often a contributor that cuts is satisfied, by the samples each contender takes.

    Filled marks are of contenders under whom all are satisfied as often as they are to be.

    frontier: the comparison.
    ax: where to draw.
    """
    goals = frontier.goals
    what = f"runs in which a contributor that gives {format_level(goals.level)} of what is asked"
    return _draw(
        frontier,
        place_cuts(frontier),
        heights=(0.0, goals.cut),
        top=f"{what} still reaches its goal, with 95 % intervals",
        ax=ax,
    )


def plot_satisfied(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draw how often all are satisfied, by the samples each contender takes.

    Filled marks are of contenders under whom a cut is felt as often as it is to be.

    frontier: the comparison.
    ax: where to draw.
    """
    return _draw(
        frontier,
        place_satisfied(frontier),
        heights=(frontier.goals.satisfied, 1.0),
        top="runs in which all reach their goals, everybody giving what is asked, with 95 % "
        "intervals",
        ax=ax,
    )


def place_cuts(frontier: Frontier) -> list[Place]:
    """Return where contenders stand by how often a contributor that cuts is satisfied."""
    level = frontier.goals.level
    return [
        _place(frontier, one, one.defector("P2", level, contributors=True), goal="satisfied")
        for one in frontier.contenders
    ]


def place_satisfied(frontier: Frontier) -> list[Place]:
    """Return where contenders stand by how often all are satisfied."""
    return [_place(frontier, one, one.all_satisfied, goal="cut") for one in frontier.contenders]


def _place(frontier: Frontier, one: Contender, height: Proportion, *, goal: str) -> Place:
    reached = {found.goal: found.reached for found in frontier.reached(one)}
    return Place(one.name, *frontier.share(one), height, reached[goal])


def _draw(
    frontier: Frontier,
    places: Sequence[Place],
    *,
    heights: tuple[float, float],
    top: str,
    ax: Axes | None,
) -> Axes:
    from matplotlib.ticker import FixedLocator

    from fedaccord.report.drawing import finish, new_axes, set_axes, size_of, styled

    ax = new_axes() if ax is None else ax
    known = [place for place in places if place.height.trials]
    with styled():
        right = max(1.05, *(1.05 * p.share for p in known)) if known else 1.05
        ax.set_xlim(0, right)
        ax.set_ylim(-0.04, 1.04)
        _put_region(ax, frontier.goals.samples, *heights)
        for n, (place, shift) in enumerate(zip(known, _choose_shifts(known, right), strict=True)):
            _put_place(ax, place, n, shift)
        ax.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        x = f"different points used, in per cent of {frontier.baseline}'s"
        ticks = 6 if size_of(ax)[0] < 6 else 11
        set_axes(ax, x=x, top=top, percent="xy", ticks=ticks, grid="both")
        if not known:
            ax.text(0.5, 0.5, "nothing to show", transform=ax.transAxes, ha="center")
    return finish(ax)


def _put_region(ax: Axes, samples: float, low: float, high: float) -> None:
    """Shade where the goals of a figure are met."""
    from matplotlib.patches import Rectangle

    from fedaccord.report.drawing import write_beside

    # To the edges of the figure, and wide enough to be seen.
    bottom = -0.04 if low == 0 else low
    above = 1.04 if high == 1 else high
    place = ((0, bottom), samples, above - bottom)
    ax.add_patch(Rectangle(*place, color=style.GOOD, alpha=0.18, zorder=0.5))
    middle = (bottom + above) / 2
    write_beside(ax, 0, middle, "goal", by=(5, 0), va="center", color=style.GOOD)


def _choose_shifts(places: Sequence[Place], right: float) -> list[float]:
    """Move marks that would cover each other apart, in inches, each group round its middle."""
    groups: list[list[int]] = []
    for n, place in enumerate(places):
        for group in groups:
            if abs(places[group[0]].share - place.share) < NEAR * right:
                group.append(n)
                break
        else:
            groups.append([n])
    shifts = [0.0] * len(places)
    for group in groups:
        for rank, n in enumerate(group):
            shifts[n] = APART * (rank - (len(group) - 1) / 2)
    return shifts


def _put_place(ax: Axes, place: Place, n: int, shift: float) -> None:
    from matplotlib.transforms import ScaledTranslation

    from fedaccord.report.drawing import figure_of, keep_listed

    colour, marker = _choose_look(n)
    moved: Transform = ax.transData + ScaledTranslation(shift, 0, figure_of(ax).dpi_scale_trans)
    share = place.height
    bars: dict[str, Any] = {"yerr": [[share.p - share.low], [share.high - share.p]]}
    if place.ends is not None and place.ends[1] - place.ends[0] > 0.01:
        low, high = place.ends
        bars["xerr"] = [[max(place.share - low, 0)], [max(high - place.share, 0)]]
    if not place.filled:
        bars["markerfacecolor"] = style.PAPER
    bars |= {
        "color": colour,
        "elinewidth": 1.2,
        "label": keep_listed(place.name),
        "transform": moved,
    }
    marks: dict[str, Any] = {
        "fmt": marker,
        "markersize": 7,
        "markeredgewidth": 1.6,
        "clip_on": False,
    }
    ax.errorbar([place.share], [share.p], **bars, **marks)


def _choose_look(n: int) -> tuple[str, str]:
    """Return a colour and a marker that no other of the first 36 contenders has together."""
    again, place = divmod(n, len(style.SERIES))
    return style.SERIES[place], style.MARKERS[(place + again) % len(style.MARKERS)]
