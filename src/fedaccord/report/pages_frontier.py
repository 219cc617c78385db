"""A page of algorithms side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fedaccord.frontier.sentences import harm
from fedaccord.report import figures_frontier as figures
from fedaccord.report.drawing import NARROW
from fedaccord.report.facts import Facts, settings_text, surroundings, took
from fedaccord.report.frontier import WHO, kinds_of, levels_of, plan_word, share_of
from fedaccord.report.model import Cell, Listing, Mark, Page, Part, Picture, Section, Table, Tone
from fedaccord.report.training import counted, percent_of, share_text

if TYPE_CHECKING:
    from fedaccord.federation.defection.intervals import Interval, Proportion
    from fedaccord.frontier.result import Contender, Frontier, Reached

NO_BREAK = "\u00a0"
SIZE = (7.6, 4.2)
TALL = (NARROW[0], 4.2)

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


def frontier_page(found: Frontier, *, command: str = "") -> Page:
    """Make a page of a comparison of algorithms.

    found: the comparison.
    command: what was typed.
    """
    return Page(
        title="Which algorithm satisfies all, and lets nobody give less?",
        verdict=found.conclusion,
        tone=_tone(found),
        sections=(
            Section("Algorithms side by side", tuple(_overview(found))),
            Section("What giving less comes to", tuple(_cuts(found))),
            Section("Who is asked for how much", tuple(_asked(found))),
            Section("How to read this", (found.provenance, PLANS, PROTOCOLS, SATISFIED, INTERVALS)),
        ),
        facts=_facts(found),
        command=command,
    )


def _tone(found: Frontier) -> Tone:
    best = [found.reached(one) for one in found.contenders]
    winners = [goals for goals in best if all(goal.reached for goal in goals)]
    if not winners:
        return "bad"
    return "good" if any(all(goal.sure for goal in goals) for goals in winners) else "unsure"


def _overview(found: Frontier) -> Iterator[Part]:
    goals = found.goals
    yield Picture(
        "frontier",
        "How often who cuts is satisfied, by the samples it takes",
        _alt(found, figures.cut_places(found), "a contributor that cuts is satisfied"),
        draw=lambda ax: figures.plot_frontier(found, ax),
        data=_places_table("who cuts is satisfied", figures.cut_places(found)),
        size=SIZE,
        note=f"Filled marks: all are satisfied in at least {percent_of(goals.satisfied)} of runs "
        "when everybody gives what is asked. Hollow ones: less often. The lower left is where an "
        "algorithm should be, with a filled mark. Marks that would cover each other stand side by "
        "side.",
        narrow=TALL,
    )
    yield Picture(
        "satisfied",
        "How often all are satisfied, by the samples it takes",
        _alt(found, figures.satisfied_places(found), "all are satisfied"),
        draw=lambda ax: figures.plot_satisfied(found, ax),
        data=_places_table("all are satisfied", figures.satisfied_places(found)),
        size=SIZE,
        note=f"Filled marks: a contributor that gives {percent_of(goals.level)} of what is asked "
        f"is satisfied in at most {percent_of(goals.cut)} of runs. Hollow ones: more often.",
        narrow=TALL,
    )
    yield _goals_table(found)
    yield _costs_table(found)
    yield Listing(tuple(found.verdict(one) for one in found.contenders))
    if found.unplanned:
        yield Listing(tuple(f"{n} was not compared: {why}" for n, why in found.unplanned.items()))


def _alt(found: Frontier, places: Sequence[figures.Place], what: str) -> str:
    said = "; ".join(
        f"{p.name}: {what} in {100 * p.height.p:.0f} % of runs, with {100 * p.share:.0f} % of "
        f"{found.baseline}'s samples"
        for p in places
        if p.height.trials
    )
    return f"{said}."


def _places_table(what: str, places: Sequence[figures.Place]) -> Table:
    rows = [
        (p.name, p.share, *(p.ends or (None, None)), p.height.p, p.height.low, p.height.high)
        for p in places
        if p.height.trials
    ]
    heads = ("algorithm", "share of samples", "from", "to", what, "from", "to")
    return Table(f"How often {what}, by samples", heads, tuple(rows))


def _share(share: Proportion) -> str:
    """Write a share with its interval, which no line break divides."""
    return share_text(share).replace(" ", NO_BREAK)


def _mean(mean: float, ends: Interval | None) -> str:
    if ends is None or ends[0] == ends[1]:
        return counted(mean)
    return f"{counted(mean)} [{ends[0]:,.0f}, {ends[1]:,.0f}]".replace(" ", NO_BREAK)


def _goals_table(found: Frontier) -> Table:
    level = found.goals.level
    rows = []
    for one in found.contenders:
        satisfied, cut, samples = found.reached(one)
        share, _ = found.share(one)
        rows.append(
            (
                one.name,
                plan_word(one),
                _goal(satisfied, _share(one.all_satisfied)),
                _goal(cut, _share(one.defector("P2", level, contributors=True))),
                _goal(samples, f"{100 * share:.0f}{NO_BREAK}%"),
            )
        )
    at = percent_of(level).replace(" ", NO_BREAK)
    return Table(
        caption="Algorithms with their plans, and the three goals",
        columns=(
            "algorithm",
            "plan",
            "everybody satisfied",
            f"contributor that gives {at} of its share (P2)",
            f"samples, of {found.baseline}'s",
        ),
        rows=tuple(rows),
    )


def _costs_table(found: Frontier) -> Table:
    level = found.goals.level
    rows = [
        (
            one.name,
            _mean(one.p2.total_samples, one.p2.samples_interval),
            _mean(one.p2.total_draws, one.p2.draws_interval),
            one.planning_runs or None,
            _share(one.others("P2", level)),
        )
        for one in found.contenders
    ]
    return Table(
        caption="What it takes, and what a cut does to the others",
        columns=(
            "algorithm",
            "different points used",
            "samples drawn",
            "runs that made the plan",
            "all the others satisfied, when a contributor gives "
            + percent_of(level).replace(" ", NO_BREAK),
        ),
        rows=tuple(rows),
    )


def _goal(found: Reached, text: str) -> Cell:
    """Mark a number by whether it reaches its goal, and say so."""
    if found.value is None:
        return text
    word = "reached" if found.reached else "missed"
    sure: Tone = "good" if found.reached else "bad"
    return Mark(f"{text} {word}", sure if found.sure else "unsure")


def _cuts(found: Frontier) -> Iterator[Part]:
    for protocol, who in kinds_of(found):
        yield _levels_table(found, protocol, who)
    harmed = [said for one in found.contenders if (said := harm(found, one))]
    if harmed:
        yield COLLATERAL
        yield Listing(tuple(harmed))


def _levels_table(found: Frontier, protocol: str, who: str) -> Table:
    levels = levels_of(found, who)
    of = "what is asked of it" if protocol == "P2" else "its data"
    verb = "gives" if protocol == "P2" else "has"
    caption = f"{protocol}: {WHO[who]} that {verb} a part of {of} reaches its goal"
    if who == "others":
        caption = f"{protocol}: {WHO[who]} reach theirs when a contributor {verb} a part of {of}"
    rows = [
        (one.name, *(_share(share_of(one, protocol, level, who)) for level in levels))
        for one in found.contenders
    ]
    heads = (percent_of(level).replace(" ", NO_BREAK) for level in levels)
    return Table(caption, ("algorithm", *heads), tuple(rows))


def _asked(found: Frontier) -> Iterator[Part]:
    names = [one.name for one in found.contenders]
    rows: list[tuple[Cell, ...]] = []
    for i, (agent, goal) in enumerate(zip(found.clients, found.requirements, strict=True)):
        rows.append(
            (agent, goal, found.points[i], *(one.contributions[i] for one in found.contenders))
        )
    totals = (sum(one.contributions) for one in found.contenders)
    yield Table(
        "Points asked of each agent, by algorithm",
        ("agent", "goal", "has", *names),
        tuple(rows),
        footer=(("all", None, sum(found.points), *totals),),
    )
    stories = [_story(one) for one in found.contenders if one.story]
    if stories:
        yield Listing(tuple(stories))


def _story(one: Contender) -> str:
    runs = f" It took {one.planning_runs:,} runs of training." if one.planning_runs else ""
    return f"{one.name}, {plan_word(one)}: {one.story}{runs}"


def _facts(found: Frontier) -> Facts:
    trials = f"{found.trials:,} {'trial' if found.trials == 1 else 'trials'}"
    cut = "each agent cuts in every one" if found.defectors == "each" else "one random agent cuts"
    times = f"{took(found.run_seconds)} for all runs; {took(found.seconds)} this time"
    settings = ((one.name, settings_text(one.p2.settings)) for one in found.contenders)
    return (
        ("Comparison", f"by P1 and P2; {trials}; {cut}; seed {found.seed}"),
        *settings,
        ("Federation", f"sha256 {found.source}"),
        ("Runs made with", "; ".join(found.versions)),
        ("Computing", times),
        *surroundings(),
    )
