"""Algorithms side by side, as tables and sentences for a terminal, and while it is going on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedaccord.frontier.sentences import harm
from fedaccord.report.live import BAR, audit_display
from fedaccord.report.model import FEW, MANY
from fedaccord.report.terminal import Sheet, line
from fedaccord.report.training import counted, percent_of, share_text, shortened

if TYPE_CHECKING:
    from fedaccord.federation.defection.intervals import Interval, Proportion
    from fedaccord.frontier.compare import Stage
    from fedaccord.frontier.result import Contender, Frontier

# Who it is that is counted, where one gives less.
WHO = {
    "random": "a random agent",
    "contributors": "a contributor",
    "others": "all the others",
}


def plan_word(contender: Contender) -> str:
    """Name how a contender's plan was made: a word, or the file's name."""
    return Path(contender.plan).name


def mean_text(mean: float, ends: Interval | None) -> str:
    """Write a mean of counts with its interval, where there is one to speak of."""
    if ends is None or ends[0] == ends[1]:
        return counted(mean)
    return f"{counted(mean)} [{ends[0]:,.0f}, {ends[1]:,.0f}]"


def goals_table(frontier: Frontier) -> Sheet:
    """Lay out how often agents are satisfied, and how many goals each contender reaches."""
    level = frontier.goals.level
    at = percent_of(level)
    sheet = Sheet(
        "algorithm",
        "plan",
        "everybody\nsatisfied",
        f"contributor that\ngives {at} (P2)",
        "all the others\nthen",
        "goals\nreached",
    )
    for one in frontier.contenders:
        reached = sum(found.reached for found in frontier.reached(one))
        sheet.add_row(
            line(one.name),
            shortened(plan_word(one)),
            share_text(one.all_satisfied),
            share_text(one.defector("P2", level, contributors=True)),
            share_text(one.others("P2", level)),
            f"{reached} of 3",
        )
    return sheet


def costs_table(frontier: Frontier) -> Sheet:
    """Lay out what each contender takes: different points, and samples drawn."""
    heads = ("different\npoints", f"of\n{shortened(frontier.baseline)}'s", "samples\ndrawn")
    sheet = Sheet("algorithm", *heads, "runs that\nmade the plan")
    for one in frontier.contenders:
        share, _ = frontier.share(one)
        sheet.add_row(
            line(one.name),
            mean_text(one.p2.total_samples, one.p2.samples_interval),
            f"{100 * share:.0f} %",
            mean_text(one.p2.total_draws, one.p2.draws_interval),
            f"{one.planning_runs:,}" if one.planning_runs else "-",
        )
    return sheet


def asked_table(frontier: Frontier) -> Sheet:
    """Lay out what each plan asks of each agent; of many agents, the first few."""
    names = frontier.clients
    shown = range(len(names)) if len(names) <= MANY else range(FEW)
    more = len(names) - len(shown)
    heads = (shortened(names[i]) for i in shown)
    sheet = Sheet("points asked", *heads, *([f"{more:,} others"] if more else []), "all")
    for one in frontier.contenders:
        asked = one.contributions
        rest = [f"{sum(asked[len(shown) :]):,}"] if more else []
        own = (f"{asked[i]:,}" if asked[i] else "-" for i in shown)
        sheet.add_row(line(one.name), *own, *rest, f"{sum(asked):,}")
    own = (f"{frontier.points[i]:,}" for i in shown)
    rest = [f"{sum(frontier.points[len(shown) :]):,}"] if more else []
    sheet.add_sum("all there are", *own, *rest, f"{sum(frontier.points):,}")
    return sheet


def share_of(contender: Contender, protocol: str, level: float, who: str) -> Proportion:
    """Give how often somebody was satisfied when one gave less.

    contender: whose runs.
    protocol: "P1" or "P2".
    level: what part the one gave.
    who: one of WHO.
    """
    if who == "others":
        return contender.others(protocol, level)
    return contender.defector(protocol, level, contributors=who == "contributors")


def levels_of(frontier: Frontier, who: str) -> list[float]:
    """List the levels to be shown: of the others, only those at which somebody cuts."""
    return [level for level in frontier.levels if level < 1 or who != "others"]


def kinds_of(frontier: Frontier) -> list[tuple[str, str]]:
    """List whom to tell of: by protocol, and where somebody is asked for nothing, contributors."""
    people = ["random", *(["contributors"] if frontier.idle else []), "others"]
    if len(frontier.clients) == 1:
        people.remove("others")
    return [(protocol, who) for protocol in ("P2", "P1") for who in people]


def levels_table(frontier: Frontier, protocol: str, who: str) -> Sheet:
    """Lay out how often somebody was satisfied by what one gave, contender by contender.

    frontier: the comparison.
    protocol: "P1" or "P2".
    who: one of WHO.
    """
    levels = levels_of(frontier, who)
    sheet = Sheet(f"{protocol}, {WHO[who]}", *(percent_of(level) for level in levels))
    for one in frontier.contenders:
        shares = (share_of(one, protocol, level, who) for level in levels)
        sheet.add_row(line(one.name), *(share_text(share) for share in shares))
    return sheet


def frontier_parts(frontier: Frontier) -> Iterator[RenderableType]:
    """Give everything that is said on a terminal, in order."""
    yield line(
        "Share of runs in which agents reach their goals at the end of training; in brackets the "
        "95 % interval."
    )
    yield line(
        "P2: one gives a part of what is asked of it, the others all that is asked of them. P1: "
        "one has only a part of its data."
    )
    yield goals_table(frontier)
    yield costs_table(frontier)
    yield asked_table(frontier)
    for protocol, who in kinds_of(frontier):
        yield levels_table(frontier, protocol, who)
    yield from frontier_sentences(frontier)


def frontier_sentences(frontier: Frontier) -> Iterator[Text]:
    """Say which goals each contender reaches, what cuts do to the others, and who reaches all."""
    for one in frontier.contenders:
        yield line(frontier.verdict(one))
    for one in frontier.contenders:
        if said := harm(frontier, one):
            yield line(said)
    for name, why in frontier.unplanned.items():
        yield line(f"{name} was not compared: {why.rstrip('.')}.")
    yield line(frontier.provenance)
    yield line(frontier.conclusion, "bold")


# While it is going on.


def stage_display(stage: Stage) -> RenderableType:
    """Lay out what is under way, and how far it is."""
    if stage.audit is not None:
        return Group(line(stage.what), audit_display(stage.audit))
    bar = Table.grid()
    bar.add_row(ProgressBar(max(stage.total, 1), min(stage.done, stage.total), width=BAR))
    words = line(f"{stage.done:,} of {stage.total:,} runs")
    return Group(line(stage.what), bar, words)
