"""Algorithms side by side: for a terminal, and as a page with figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord.report.defection import (
    compare_judging,
    describe_judging,
    describe_trials,
    explain_goal,
    format_share,
    list_training_facts,
)
from fedaccord.report.defection_verdicts import FEW_TRIALS, MEASURED
from fedaccord.report.frontier_figures import (
    Place,
    place_cuts,
    place_satisfied,
    plot_frontier,
    plot_satisfied,
)
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
from fedaccord.wording import (
    count,
    format_interval,
    format_level,
    format_mean,
    format_percent,
    format_settings,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.text import Text

    from fedaccord.federation.defection.intervals import Interval, Proportion
    from fedaccord.frontier.result import Contender, Frontier, Reached

# Whose share is counted, where one agent defects.
WHO = {"random": "a random agent", "contributors": "a contributor", "others": "all the others"}
# In inches, of the figures on a page, wide and narrow; and what a line of their legends takes.
SIZE = (7.6, 4.2)
TALL = (4.4, 4.2)
LINE = 0.22
# With up to this many algorithms, the legends fit into these figures.
FEW_NAMES = 8

PLANS = (
    'A plan says how many samples each agent gives. "own": what the algorithm uses when all agents '
    'give everything. "all": every sample. "measured": a stable plan with a safety margin, from '
    'pilots. "sought": found by training (EQ-FED): agents add samples until all reach their goals, '
    "then each goes down to the least it needs. Any other word is the name of a file."
)
PROTOCOLS = (
    "Protocol P2 is the test of a plan: one agent, the defector, gives a part of what the plan "
    "asks of it, and the others give all of it. Protocol P1 is the paper's: the defector has only "
    "a part of its data, and gives what the plan asks as far as it has that. If the plan is the "
    "algorithm's own, the others give everything."
)
IDLE = (
    "An agent that the plan asks for nothing cannot give less. It counts as a random agent, but "
    "not as a contributor."
)
INTERVALS = (
    "Legend: 0.80 [0.58, 0.92] is a share of runs with its 95 % interval. The interval allows for "
    "the fact that runs of one trial are alike. In a share of samples, the interval divides each "
    "end by the opposite end for the baseline. Met, missed: the share is on the right or the wrong "
    "side of the criterion. Not certain: the interval includes the criterion. A dash stands where "
    "there is nothing to count."
)
COLLATERAL = (
    "Defection can harm more agents than the defector. If training ends for all as soon as one "
    "agent has nothing left to give, then the others lose too."
)


def show_frontier(frontier: Frontier) -> Iterator[str | Text | Table]:
    """Return what a terminal shows: the answer, what the numbers are, and the tables."""
    yield line(frontier.conclusion, "bold")
    yield (
        "The tables have the share of runs in which agents reach their goals at the end of "
        f"training, with 95 % intervals in brackets. Models are {describe_judging(frontier)}."
    )
    yield (
        "P2: one agent gives a part of what the plan asks of it, and the others give all of it. "
        "P1: one agent has only a part of its data."
    )
    yield describe_criteria(frontier)
    yield list_goals(frontier).table("terminal")
    yield list_costs(frontier).table("terminal")
    yield _list_asked_across(frontier)
    yield from _show_tactics(frontier)
    for protocol, who in choose_kinds(frontier):
        head = f"{protocol}, {WHO[who]}"
        table = list_levels(frontier, protocol, who)
        yield replace(table, columns=(head, *table.columns[1:]))
    yield from (frontier.verdict(one) for one in frontier.contenders)
    yield from filter(None, (frontier.describe_harm(one) for one in frontier.contenders))
    for name, why in frontier.unplanned.items():
        yield f"{name} was not compared: {why.rstrip('.')}."
    yield frontier.provenance


def _show_tactics(frontier: Frontier) -> Iterator[Table]:
    """Return the table of defectors that do more than give less; nothing where none do."""
    level = frontier.goals.level
    if any(one.further or one.p2.at(level).kept is not None for one in frontier.contenders):
        from fedaccord.report.tactics import list_tactics

        yield list_tactics(frontier)


# Tables.


def _name_plan(contender: Contender) -> str:
    """Return how a contender's plan was made: a word, or the name of a file."""
    return Path(contender.plan).name


def _format_unbroken(share: Proportion) -> str:
    """Write a share with its interval, which no line break divides."""
    return format_share(share).replace(" ", NO_BREAK)


def _format_mean(mean: float, ends: Interval | None) -> str:
    """Write a mean of counts with its interval, if it has one."""
    if ends is None or ends[0] == ends[1]:
        return format_mean(mean)
    return f"{format_mean(mean)} [{ends[0]:,.0f}, {ends[1]:,.0f}]".replace(" ", NO_BREAK)


def list_goals(frontier: Frontier) -> Records:
    """List the questions for each algorithm, and which criteria it meets."""
    contenders, level = frontier.contenders, frontier.goals.level
    at = format_level(level).replace(" ", NO_BREAK)
    reached = [frontier.reached(one) for one in contenders]

    def goal(number: int, texts: list[str], head: str, short: str = "") -> Iterator[Column]:
        if short:
            yield Column(short, lambda n: texts[n], where="terminal")
        yield Column(head, lambda n: _mark_goal(reached[n][number], texts[n]), where="page")

    satisfied = [_format_unbroken(one.all_satisfied) for one in contenders]
    cut = [_format_reached(found[1]) for found in reached]
    others = [_format_unbroken(one.others("P2", level)) for one in contenders]
    samples = [f"{100 * frontier.share(one)[0]:.0f}{NO_BREAK}%" for one in contenders]
    plans = [_name_plan(one) for one in contenders]
    scores = [f"{sum(goal.reached for goal in goals)} of {len(goals)}" for goals in reached]
    asks = f"Does a contributor at {at} reach its goal (P2)?"

    def further() -> Iterator[Column]:
        for number, found in enumerate(reached[0][3:-1], start=3):
            texts = [_format_reached(goals[number]) for goals in reached]
            head = (
                "Does it reach its goal with its kept data (P3)?" if found.goal == "kept" else None
            )
            yield from goal(
                number, texts, head or f"Do defectors reach their goals ({found.goal})?"
            )

    return Records(
        f"The questions, {describe_judging(frontier)}",
        (
            Column("algorithm", lambda n: contenders[n].name),
            Column("plan", lambda n: shorten_name(plans[n]), where="terminal"),
            *goal(0, satisfied, "Do all agents reach their goals?", "all reach\ntheir goals"),
            *goal(1, cut, asks, f"a contributor that\ngives {at} (P2)"),
            *goal(2, others, "Do all the others then reach theirs?", "all the others\nthen"),
            *further(),
            *goal(len(reached[0]) - 1, samples, "samples used"),
            Column("criteria\nmet", lambda n: scores[n], where="terminal"),
        ),
        range(len(contenders)),
    )


def _format_reached(found: Reached) -> str:
    """Write the share of a criterion with its interval, which no line break divides."""
    if found.value is None or found.low is None or found.high is None:
        return "-"
    shown = format_interval(found.value, found.low, found.high, "{:.2f}".format)
    return shown.replace(" ", NO_BREAK)


def _mark_goal(found: Reached, text: str) -> Cell:
    """Mark a number by whether it meets its criterion, and say so."""
    if found.value is None:
        return text
    word = "met" if found.reached else "missed"
    doubt = "" if found.sure else ", not certain"
    sure: Tone = "good" if found.reached else "bad"
    return Mark(f"{text} {word}{doubt}", sure if found.sure else "unsure")


def describe_criteria(frontier: Frontier) -> str:
    """Return the criteria in sentences, after one that says where they are set."""
    return " ".join(("Your criteria are set in [frontier].", *frontier.criteria))


def list_costs(frontier: Frontier) -> Records:
    """List what each algorithm takes: different samples, draws, and runs for the plan."""
    contenders = frontier.contenders
    audits = [one.p2 for one in contenders]
    return Records(
        "What each algorithm takes, if all give what the plan asks",
        (
            Column("algorithm", lambda n: contenders[n].name),
            Column("plan", lambda n: _name_plan(contenders[n]), where="page"),
            Column(
                "different samples used",
                lambda n: _format_mean(audits[n].total_samples, audits[n].samples_interval),
                short="different\nsamples",
            ),
            Column(
                f"of\n{shorten_name(frontier.baseline)}'s",
                lambda n: f"{100 * frontier.share(contenders[n])[0]:.0f} %",
                where="terminal",
            ),
            Column(
                "draws",
                lambda n: _format_mean(audits[n].total_draws, audits[n].draws_interval),
            ),
            Column(
                "training runs for the plan",
                lambda n: contenders[n].planning_runs or None,
                short="training runs\nfor the plan",
                write="{:,}".format,
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
        ("samples in plan", *map(shorten_name, names[:few]), *others, "all"),
        tuple(row(one.name, one.contributions, "-") for one in frontier.contenders),
        footer=(row("available", frontier.points, "0"),),
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
        "Samples that the plans ask of each agent",
        ("agent", "goal", "has", *(one.name for one in contenders)),
        tuple(rows),
        footer=(("all", None, sum(frontier.points), *totals),),
    )


def choose_kinds(frontier: Frontier) -> list[tuple[str, str]]:
    """List whose shares to show: by protocol, and contributors where a plan leaves an agent out."""
    people = ["random", *(["contributors"] if frontier.idle else []), "others"]
    if len(frontier.clients) == 1:
        people.remove("others")
    return [(protocol, who) for protocol in ("P2", "P1") for who in people]


def list_levels(frontier: Frontier, protocol: str, who: str) -> Table:
    """List how often one of WHO reached its goal, by what a defector gave under P1 or P2."""
    # Of the others, only levels at which an agent defects.
    levels = [level for level in frontier.levels if level < 1 or who != "others"]
    of = "what the plan asks of it" if protocol == "P2" else "its data"
    verb = "gives" if protocol == "P2" else "has"
    caption = f"{protocol}: how often {WHO[who]} that {verb} a part of {of} reaches its goal"
    if who == "others":
        caption = (
            f"{protocol}: how often {WHO[who]} reach their goals when a contributor {verb} a part "
            f"of {of}"
        )
    caption += f", {describe_judging(frontier)}"

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
        title="Which algorithm lets all agents reach their goals, and no defector?",
        verdict=found.conclusion,
        tone=_choose_tone(found),
        sections=(
            Section("The answers", tuple(_show_answers(found))),
            Section("Algorithms side by side", tuple(_show_overview(found))),
            Section("What a defector gets", tuple(_show_cuts(found))),
            Section("What the plans ask", (_list_asked_down(found), *stories)),
            Section("How to read this", tuple(_explain(found))),
        ),
        facts=(
            ("Comparison", f"protocols P1 and P2; {describe_trials(found)}"),
            ("Judged", describe_judging(found).removeprefix("judged ")),
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


def _show_answers(found: Frontier) -> Iterator[Part]:
    yield describe_criteria(found)
    yield list_goals(found).table("page")
    yield (
        f"A contributor at {format_level(found.goals.level)} gives that part of what the plan asks "
        f"of it. Samples used are a share of those of {found.baseline}."
    )
    if doubts := tuple(_list_doubts(found)):
        yield Listing(doubts)


def _list_doubts(found: Frontier) -> Iterator[str]:
    """Yield what speaks against taking the verdict for certain."""
    if found.trials < FEW_TRIALS:
        yield f"Doubt: {count(found.trials, 'trial')} leave wide intervals. Use more trials."
    for one in found.contenders:
        if diverged := one.p1.diverged + one.p2.diverged:
            yield (
                f"Doubt: under {one.name}, {count(diverged, 'run')} diverged; agents count as "
                "missing their goals there."
            )
    for name, why in found.unplanned.items():
        yield f"Doubt: {name} was not compared: {why.rstrip('.')}."
    if found.scored_on is None:
        yield MEASURED


def _explain(found: Frontier) -> Iterator[str]:
    yield from (found.provenance, PLANS, PROTOCOLS, explain_goal(found))
    if found.idle:
        yield IDLE
    yield INTERVALS


def _show_overview(found: Frontier) -> Iterator[Part]:
    goals = found.goals
    yield _picture(
        found,
        "frontier",
        place_cuts(found),
        plot_frontier,
        title="How often a defector still reaches its goal, by samples used",
        heads=("a defector reaches its goal", "a contributor that defects reaches its goal"),
        note=f"Filled marks: all reach their goals in at least {format_level(goals.satisfied)} of "
        "runs. Hollow marks: less often. Bars: 95 % intervals. Shaded: both criteria of this "
        "figure are met. Marks that would cover each other stand side by side.",
    )
    yield _picture(
        found,
        "satisfied",
        place_satisfied(found),
        plot_satisfied,
        title="How often all agents reach their goals, by samples used",
        heads=("all agents reach their goals", "all agents reach their goals"),
        note=f"Filled marks: a contributor that gives {format_level(goals.level)} reaches its goal "
        f"in at most {format_level(goals.cut)} of runs. Hollow marks: more often. Bars: 95 % "
        "intervals. Shaded: both criteria of this figure are met.",
    )
    yield list_costs(found).table("page")
    yield Listing(tuple(found.verdict(one) for one in found.contenders))
    if found.scored_on is not None:
        yield list_both(found)


def _picture(
    found: Frontier,
    name: str,
    places: Sequence[Place],
    plot: Callable[[Frontier, Axes], object],
    *,
    title: str,
    heads: tuple[str, str],
    note: str,
) -> Picture:
    known = [place for place in places if place.height.trials]
    said = "; ".join(
        f"{p.name}: {heads[1]} in {format_percent(p.height.p)} of runs, with "
        f"{format_percent(p.share)} of the samples of {found.baseline}"
        for p in known
    )
    rows = [
        (p.name, p.share, *(p.ends or (None, None)), p.height.p, p.height.low, p.height.high)
        for p in known
    ]
    columns = ("algorithm", "share of samples", "from", "to", heads[0], "from", "to")
    # A narrow figure may have a line for each name, and a wide one for every three.
    more = LINE * max(len(known) - FEW_NAMES, 0)
    return Picture(
        name,
        title,
        f"{said}.",
        draw=lambda ax: plot(found, ax),
        data=Table(title, columns, tuple(rows)),
        size=(SIZE[0], SIZE[1] + more / 3),
        note=note,
        narrow=(TALL[0], TALL[1] + more),
    )


def list_both(found: Frontier) -> Table:
    """List the shares on further samples and on validation samples next to each other."""
    level = found.goals.level
    cases = []
    for one in found.contenders:
        point = one.p2.at(level)
        cut = f"a contributor that gives {format_level(level)}"
        shares = (point.judged.contributors, point.at_end.contributors)
        cases.append((one.name, "all agents, in full", one.p2.all_judged, one.p2.all_satisfied))
        cases.append((one.name, cut, *shares))
    return compare_judging(cases)


def _show_cuts(found: Frontier) -> Iterator[Part]:
    yield from _show_tactics(found)
    yield from (list_levels(found, protocol, who) for protocol, who in choose_kinds(found))
    harmed = [said for one in found.contenders if (said := found.describe_harm(one))]
    if harmed:
        yield COLLATERAL
        yield Listing(tuple(harmed))


def _tell_stories(found: Frontier) -> Iterator[str]:
    for one in found.contenders:
        runs = f" It took {one.planning_runs:,} training runs." if one.planning_runs else ""
        if one.story:
            yield f"{one.name}, {_name_plan(one)}: {one.story}{runs}"
