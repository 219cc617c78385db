"""An audit of defection: could anybody give less? For a terminal, and as a page with a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fedaccord.report.model import (
    FEW,
    MANY,
    Cell,
    Listing,
    Mark,
    Page,
    Part,
    Section,
    Table,
    Tone,
    list_run_facts,
)
from fedaccord.report.terminal import NO_BREAK, shorten_name
from fedaccord.wording import (
    capitalize_first,
    count,
    format_duration,
    format_goal,
    format_interval,
    format_level,
    format_mean,
    format_percent,
    format_settings,
    join_with_and,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Proportion,
        Satisfaction,
    )
    from fedaccord.frontier.result import Frontier

# The level that the sentences are about, or the closest to it that was asked for.
SPOKEN = 0.25
# Where all are satisfied less often than this with everybody in full, that is said first.
POOR = 0.5
# More algorithms than this are counted, not named, nor read aloud one by one.
NAMED = 3

PROTOCOLS = {
    "P1": (
        "P1, as in the paper: the federation is trained again and again, each time with one agent "
        "bringing only a part of its data (the level) and the others all of theirs. The question "
        "is whether a member could get away with bringing less to this algorithm."
    ),
    "P2": (
        "P2, the test of a plan: each agent is asked for so many points, and the federation is "
        "trained again and again, each time with one agent bringing only a part of what is asked "
        "of it (the level) and the others all that is asked of them. The question is whether the "
        "plan is stable: whether anybody could give less and still reach its goal."
    ),
}
PAIRED = (
    "The runs of one trial have the same points and the same seed, so that only the cut tells them "
    "apart."
)
SATISFIED = (
    "An agent is satisfied if the model is as accurate as the agent wants, on the agent's own "
    "validation points, at the last evaluation of training; to have been so before is not enough."
)
INTERVALS = (
    "In brackets are 95 % intervals: so far the true share may be from the one that was counted. "
    "They take into account that runs of one trial go together."
)
CONTRIBUTORS = (
    "Of some agents nothing is asked. They cannot give less, and are left out where a random "
    "contributor is spoken of."
)
OTHERS = "What it does to the others: share of runs in which all of them reach their goals"
DILUTED = (
    "Agents of whom nothing is asked count here as well, as if they had cut something: what a "
    "contributor that cuts does to the others is more than this."
)


def format_share(share: Proportion) -> str:
    """Write a share with its interval."""
    if not share.trials:
        return "-"
    return format_interval(share.p, share.low, share.high, "{:.2f}".format)


def _format_unbroken(share: Proportion) -> str:
    """Write a share with its interval, which no line break divides."""
    return format_share(share).replace(", ", f",{NO_BREAK}")


# What a terminal shows.


def show_audit(audit: DefectionAudit) -> Iterator[str | Table]:
    """Return what a terminal shows: what the numbers are, the curves, and what they come to."""
    yield from explain_shares(audit)
    table = list_levels(audit)
    yield replace(table, columns=(table.columns[0], *map(shorten_name, table.columns[1:])))
    yield from (_list_agents_across(audit, curve) for curve in audit.curves)
    yield from compare_levels(audit)


def explain_shares(audit: DefectionAudit) -> tuple[str, str]:
    """Say above an audit's tables what their numbers are."""
    seen = [point.at_end.random.trials for curve in audit.curves for point in curve.levels]
    up_to = "up to " if min(seen) < max(seen) else ""
    cut = "cut" if audit.protocol == "P1" else "brought a part of what is asked of it"
    full = "everything" if audit.protocol == "P1" else "all that is asked of them"
    goals = set(audit.requirements)
    same = f" (accuracy {format_goal(min(goals))} on its own validation points)"
    return (
        f"Share of {up_to}{count(max(seen), 'trial')} in which the agent that {cut} reached its "
        f"goal{same if len(goals) == 1 else ''} at the end of training;",
        f"in brackets the 95 % interval. The others bring {full}.",
    )


def list_levels(audit: DefectionAudit) -> Table:
    """List how often a random agent that brings less is satisfied, by level and algorithm."""
    curves = audit.curves
    footer: list[tuple[Cell, ...]] = [
        ("everybody satisfied at 100 %", *(_format_unbroken(c.all_satisfied) for c in curves)),
        ("different points used, all in full", *(format_mean(c.total_samples) for c in curves)),
        ("samples drawn, all in full", *(format_mean(c.total_draws) for c in curves)),
    ]
    if any(curve.diverged for curve in curves):
        footer.append(("runs that diverged", *(f"{curve.diverged:,}" for curve in curves)))
    caption = "Share of runs in which the agent that gives less reaches its goal"
    return replace(_list_by_level(audit, caption, audit.defector_share), footer=tuple(footer))


def _list_by_level(
    audit: DefectionAudit, caption: str, share: Callable[[Satisfaction], Proportion]
) -> Table:
    rows = [
        (
            format_level(point.level),
            *(_format_unbroken(share(c.at(point.level).at_end)) for c in audit.curves),
        )
        for point in audit.curves[0].levels
    ]
    heads = (curve.algorithm for curve in audit.curves)
    return Table(caption, (f"{audit.describe_defector()} brings", *heads), tuple(rows))


def _list_agents_across(audit: DefectionAudit, curve: DefectionCurve) -> Table:
    """List an algorithm's curve, an agent a column, with what the cut does to the others."""
    asked = dict(zip(audit.clients, curve.contributions, strict=True))
    shown = audit.clients[:FEW] if len(audit.clients) > MANY else audit.clients
    rows: list[tuple[Cell, ...]] = []
    if audit.protocol == "P2":
        rows.append(("asked", *(f"{asked[agent]:,}" if asked[agent] else "-" for agent in shown)))
    for point in curve.levels:
        cuts = point.level < 1
        found = point.at_end
        own = (
            f"{found.clients[agent].p:.2f}"
            if found.clients[agent].trials and (asked[agent] or not cuts)
            else "-"
            for agent in shown
        )
        rows.append((format_level(point.level), *own, format_share(found.others) if cuts else "-"))
    heads = (f"{shorten_name(curve.algorithm)}, brings", *map(shorten_name, shown))
    return Table("", (*heads, "all the others\nreach theirs"), tuple(rows))


def compare_levels(audit: DefectionAudit) -> Iterator[str]:
    """Say for each algorithm what cutting one's contribution comes to, and for whom."""
    for curve in audit.curves:
        if curve.all_satisfied.p < POOR:
            full = "everything" if audit.protocol == "P1" else "all that is asked of it"
            share = curve.all_satisfied.p
            often = f"only {format_percent(share)} of runs" if share else "none of the runs"
            yield (
                f"Under {curve.algorithm} all agents reach their goals in {often} even when "
                f"everybody brings {full}."
            )
        yield _compare_with_full(audit, curve)


def _find_spoken_level(curve: DefectionCurve) -> DefectionLevel:
    """Return the level that sentences are about."""
    return min(curve.levels, key=lambda point: abs(point.level - SPOKEN))


def _compare_with_full(audit: DefectionAudit, curve: DefectionCurve) -> str:
    """Compare the level that sentences are about with full contribution, where that is known."""
    point = _find_spoken_level(curve)
    whole = next((p for p in curve.levels if p.level == 1 and p is not point), None)
    share = audit.defector_share(point.at_end)
    if not share.trials:
        return f"Under {curve.algorithm} nothing is asked of anybody."
    what = ("all of its data", "its data")
    if audit.protocol == "P2":
        what = ("all that is asked of it", "what is asked of it")
    text = f"Under {curve.algorithm} {audit.describe_defector(curve)} reaches its goal in "
    if whole is not None:
        at_full = format_percent(audit.defector_share(whole.at_end).p)
        text += f"{at_full} of runs with {what[0]} and in {format_percent(share.p)} with "
        text += f"{format_level(point.level)} of it"
    else:
        part = what[0] if point.level == 1 else f"{format_level(point.level)} of {what[1]}"
        text += f"{format_percent(share.p)} of runs with {part}"
    trials = count(share.trials, "trial")
    if audit.defectors == "each":
        asked = sum(map(bool, curve.contributions))
        agents = len(audit.clients) if audit.protocol == "P1" else asked
        trials += f" x {count(agents, 'agent')}"
    text += f" ({100 * share.low:.0f} to {format_percent(share.high)}, {trials})"
    # Nothing that an agent of whom nothing is asked does could harm the others.
    harm = "" if 0 in curve.contributions or whole is None else _describe_harm(audit, point, whole)
    return f"{text}{harm}."


def _describe_harm(audit: DefectionAudit, point: DefectionLevel, whole: DefectionLevel) -> str:
    """Say what the cut does to the others, if they reach their goals less often."""
    then, before = point.at_end.others, whole.at_end.others
    now = format_percent(then.p)
    if not before.trials or then.p >= before.p or now == format_percent(before.p):
        return ""
    full = "everything" if audit.protocol == "P1" else "all of it"
    return (
        f", and then all the others reach theirs in {now} ({format_percent(before.p)} when it "
        f"brings {full})"
    )


# Whether an agent could give less.

Word: TypeAlias = Literal["yes", "no", "not clear", "not tried"]
# In which order agents are listed where they are many; levels, at most 1, go on top.
ORDER: dict[Word, float] = {"yes": 0.0, "not clear": 2.0, "no": 4.0, "not tried": 6.0}


@dataclass(frozen=True)
class CutVerdict:
    """Whether an agent could give less, from how often it reached its goal at the levels tried.

    word: the answer.
    level: the lowest that is enough where it is yes, and the highest cut that is not where no.
    sure: whether the interval at that level lies on the same side of a half.
    why: what makes it unclear.
    """

    word: Word
    level: float | None = None
    sure: bool = False
    why: str = ""


def judge_cut(curve: DefectionCurve, agent: str) -> CutVerdict:
    """Return whether an agent could give less, as far as the levels tried tell."""
    shares = _find_shares(curve, agent)
    cuts = [level for level in shares if level < 1]
    if not cuts:
        return CutVerdict("not tried")
    least = find_least_level(curve, agent)
    if 1 in shares and shares[1].p < POOR:
        return CutVerdict("not clear", why="misses its goal in full too")
    if least is not None and least < 1:
        return CutVerdict("yes", least, sure=shares[least].low > POOR)
    if lucky := [level for level in cuts if shares[level].p >= POOR]:
        why = f"not with {format_level(cuts[0])}, but with {format_level(lucky[0])}"
        return CutVerdict("not clear", why=why)
    if 1 not in shares:
        return CutVerdict("not clear", why=f"not with {format_level(cuts[0])}, and 100 % not tried")
    return CutVerdict("no", cuts[0], sure=shares[cuts[0]].high < POOR)


def find_least_level(curve: DefectionCurve, agent: str) -> float | None:
    """Return the lowest level at which, and at every higher one tried, an agent is satisfied.

    Satisfied in at least half of its runs, that is; None where not even the highest level tried
    suffices.
    """
    enough = None
    for level, share in _find_shares(curve, agent).items():
        if share.p < POOR:
            break
        enough = level
    return enough


def _find_shares(curve: DefectionCurve, agent: str) -> dict[float, Proportion]:
    """Return how often an agent was satisfied at the levels it was tried at, the highest first."""
    points = sorted(curve.levels, key=lambda point: -point.level)
    found = {point.level: point.at_end.clients[agent] for point in points}
    return {level: share for level, share in found.items() if share.trials}


def _judge_cuts(audit: DefectionAudit, curve: DefectionCurve) -> dict[str, CutVerdict]:
    """Return the verdicts for all agents of whom something is asked."""
    asked = zip(audit.clients, curve.contributions, strict=True)
    return {agent: judge_cut(curve, agent) for agent, points in asked if points}


def _find_levels(audit: DefectionAudit, curve: DefectionCurve, word: str) -> list[float]:
    every = _judge_cuts(audit, curve).values()
    return [found.level for found in every if found.word == word and found.level is not None]


def _sum_up_cuts(audit: DefectionAudit, curve: DefectionCurve) -> tuple[Word, str]:
    """Sum up the verdicts on a curve's agents in a word and a clause."""
    agents = _judge_cuts(audit, curve)
    less, not_less = _find_levels(audit, curve, "yes"), _find_levels(audit, curve, "no")
    unclear = sum(found.word == "not clear" for found in agents.values())
    what = "its data" if audit.protocol == "P1" else "what is asked of it"
    every = count(len(agents), "agent")
    doubt = f"for {unclear:,} of {every} it is not clear"
    if less and len(agents) == 1:
        only = next(iter(agents))
        return "yes", f"{only} could give less, and get by with {format_level(less[0])}"
    if less:
        low = min(less)
        said = (
            f"{len(less):,} of {every} could give less; "
            f"{less.count(low):,} would get by with {format_level(low)}"
        )
        return "yes", f"{said}; {doubt}" if unclear else said
    if not_less:
        nobody = "nobody else" if unclear else "nobody"
        said = f"{nobody} could give {format_level(max(not_less))} or less of {what}"
        return ("not clear", f"{doubt}; {said}") if unclear else ("no", said)
    if unclear:
        return "not clear", doubt
    return "not tried", "nobody was let give less"


def _conclude(audit: DefectionAudit, curves: Sequence[DefectionCurve]) -> str:
    """Answer in a sentence whether anybody could give less, curve by curve."""
    groups: dict[tuple[Word, str], list[str]] = {}
    for curve in curves:
        word, said = _sum_up_cuts(audit, curve)
        said = said if len(curves) <= NAMED else ""
        groups.setdefault((word, said), []).append(curve.algorithm)
    if {word for word, _ in groups} == {"not tried"}:
        return ""
    if len(curves) > NAMED:
        of = f"of {len(curves):,} algorithms"
        text = ", ".join(f"{word} under {len(names):,} {of}" for (word, _), names in groups.items())
        return f"{capitalize_first(text)}."
    return " ".join(
        capitalize_first(f"{word} under {join_with_and(names)}: {said}.")
        for (word, said), names in groups.items()
    )


# The page.


def audit_page(found: DefectionAudit, *, command: str = "") -> Page:
    """Make a page of an audit of defection.

    found: the audit.
    command: what was typed.
    """
    plan = found.protocol == "P2"
    satisfied, paired = f"{SATISFIED} {_compare_by_then(found)}", f"{PAIRED} {INTERVALS}"
    explained = (PROTOCOLS[found.protocol], satisfied, paired)
    stops = "" if found.width is None else f", fewer where an interval is {found.width:g} narrow"
    idle = [CONTRIBUTORS] if any(0 in curve.contributions for curve in found.curves) else []
    return Page(
        title="Could anybody give less than the plan asks?" if plan else "Could anybody give less?",
        verdict=describe_audit(found),
        tone=choose_tone(found),
        sections=(
            Section("What giving less comes to", tuple(_show_curves(found))),
            Section("Who could give less", tuple(_show_agents(found))),
            Section("How to read this", (*explained, *idle)),
        ),
        facts=(
            ("Audit", f"by {found.protocol}; {describe_trials(found, stops)}"),
            *((curve.algorithm, format_settings(curve.settings)) for curve in found.curves),
            *list_training_facts(found),
        ),
        command=command,
    )


def describe_audit(found: DefectionAudit) -> str:
    """Say whether anybody could give less, and how often an agent that does is satisfied."""
    curves = [curve for curve in found.curves if _find_spoken_share(found, curve).trials]
    if not curves:
        return "Nothing is asked of anybody, so nobody could give less."
    level = _find_spoken_level(curves[0])
    what = "its data" if found.protocol == "P1" else "what is asked of it"
    shares = _list_shares(curves, [_find_spoken_share(found, curve).p for curve in curves])
    who = capitalize_first(found.describe_defector(*curves))
    brings = format_level(level.level) if level.level < 1 else "all"
    cut = f"{who} that brings {brings} of {what} reaches its goal in {shares}"
    full = _list_shares(curves, [curve.all_satisfied.p for curve in curves])
    numbers = f"{cut}; when everybody gives in full, all reach theirs in {full}."
    return " ".join(filter(None, (_conclude(found, curves), numbers)))


def _list_shares(curves: Sequence[DefectionCurve], shares: Sequence[float]) -> str:
    """Say a share for each algorithm, or for the lowest and the highest of many."""
    pairs = [(c.algorithm, share) for c, share in zip(curves, shares, strict=True)]
    if len({format_percent(share) for share in shares}) == 1 and len(pairs) > 1:
        both = "both algorithms" if len(pairs) == 2 else f"all {len(pairs)} algorithms"
        return f"{format_percent(shares[0])} of runs under {both}"
    if len(pairs) > NAMED:
        ordered = sorted(pairs, key=lambda pair: pair[1])
        pairs = [ordered[0], ordered[-1]]
    first, *rest = pairs
    said = [f"{format_percent(first[1])} of runs under {first[0]}"]
    return join_with_and(said + [f"{format_percent(share)} under {name}" for name, share in rest])


def _find_spoken_share(found: DefectionAudit, curve: DefectionCurve) -> Proportion:
    return found.defector_share(_find_spoken_level(curve).at_end)


def choose_tone(found: DefectionAudit) -> Tone:
    """Return the tone: good where cuts are surely felt and full contribution satisfies."""
    tones = {_choose_curve_tone(found, curve) for curve in found.curves}
    return tones.pop() if len(tones) == 1 else "unsure"


def _choose_curve_tone(found: DefectionAudit, curve: DefectionCurve) -> Tone:
    share = _find_spoken_share(found, curve)
    if not share.trials:
        return "plain"
    verdicts = _judge_cuts(found, curve).values()
    if curve.all_satisfied.high < POOR or any(v.sure for v in verdicts if v.word == "yes"):
        return "bad"
    deterred = all(verdict.word == "no" for verdict in verdicts)
    return "good" if deterred and share.high < POOR < curve.all_satisfied.low else "unsure"


def _show_curves(found: DefectionAudit) -> Iterator[Part]:
    from fedaccord.federation.defection.chart import defection_chart
    from fedaccord.report.drawing import picture_of

    yield " ".join(explain_shares(found))
    chart = defection_chart(found)
    worst = "The dashed line is the agent that fares worst, when it is the one that gives less."
    yield replace(
        picture_of(chart),
        draw=lambda ax: plot_defection(found, ax),
        note=worst if any(line.of for line in chart.lines) else "",
    )
    yield list_levels(found)
    yield Listing(tuple(compare_levels(found)))


def _show_agents(found: DefectionAudit) -> Iterator[Part]:
    yield (
        "An agent could give less, down to the lowest level such that there, and at every higher "
        "level tried, it reaches its goal in at least half of the runs in which it is the one that "
        "cuts. What lies between the levels tried is not known."
    )
    for curve in found.curves:
        said = "Nothing is asked of anybody."
        if any(curve.contributions):
            said = capitalize_first(_sum_up_cuts(found, curve)[1])
            highest = max((point.level for point in curve.levels if point.level < 1), default=1.0)
            less, not_less = (_find_levels(found, curve, word) for word in ("yes", "no"))
            if highest < 1 and not less and not_less:
                said += f"; parts between {100 * highest:g} and 100 % were not tried"
            worst = curve.find_worst_off()
            said += f". {worst} fares worst." if worst else "."
        yield Section(curve.algorithm, (said, _list_agents_down(found, curve)))
    if len(found.clients) > 1:
        yield _list_by_level(found, OTHERS, lambda satisfied: satisfied.others)
        if any(0 in curve.contributions for curve in found.curves):
            yield DILUTED


def _list_agents_down(found: DefectionAudit, curve: DefectionCurve) -> Table:
    """List an algorithm's curve, an agent a row; of many, those who could give least first."""
    rows = []
    for agent, asked, goal in zip(
        found.clients, curve.contributions, found.requirements, strict=True
    ):
        # In per cent, where the agent could be the one that cuts.
        shares = [
            round(100 * share.p, 1) if share.trials and (asked or point.level == 1) else None
            for point in curve.levels
            for share in [point.at_end.clients[agent]]
        ]
        rows.append((agent, goal, asked, *shares, _mark_cut(judge_cut(curve, agent), asked)))
    if len(rows) > MANY:
        verdicts = [judge_cut(curve, agent) for agent in found.clients]
        ranks = [ORDER[verdict.word] + (verdict.level or 0) for verdict in verdicts]
        rows = [rows[i] for i in np.argsort(ranks, kind="stable").tolist()]
    levels = (format_level(point.level).replace(" ", NO_BREAK) for point in curve.levels)
    asked_head = "points asked" if found.protocol == "P2" else "points it has"
    return Table(
        caption=f"{curve.algorithm}: per cent of runs in which each agent reaches its goal, by "
        "what part it brings",
        columns=("agent", "goal", asked_head, *levels, "could give less"),
        rows=tuple(rows),
    )


def _mark_cut(verdict: CutVerdict, asked: int) -> Cell:
    if not asked:
        return "gives nothing"
    if verdict.word == "not tried":
        return None
    if verdict.word == "yes":
        return Mark(f"yes: {format_level(verdict.level or 1)}", "bad")
    if verdict.word == "no":
        return Mark(f"not with {format_level(verdict.level or 1)}", "good")
    return Mark(f"not clear: {verdict.why}", "unsure")


def _compare_by_then(found: DefectionAudit) -> str:
    """Say what the shares would be if an agent were satisfied once it has reached its goal."""
    curves = [curve for curve in found.curves if _find_spoken_share(found, curve).trials]
    if not curves:
        return ""
    point = _find_spoken_level(curves[0])
    shares = [found.defector_share(_find_spoken_level(curve).by_then).p for curve in curves]
    return (
        f"If to have been so at any evaluation counted, the shares at {format_level(point.level)} "
        f"would be {_list_shares(curves, shares)}."
    )


def describe_trials(found: DefectionAudit | Frontier, stops: str = "") -> str:
    """Say how many trials there are, who cuts in them, and what the seed is."""
    cut = "each agent cuts in every one" if found.defectors == "each" else "one random agent cuts"
    return f"{count(found.trials, 'trial')}{stops}; {cut}; seed {found.seed}"


def list_training_facts(found: DefectionAudit | Frontier) -> Iterator[tuple[str, str]]:
    """Return the facts of runs: what they are of, with what they were made, how long it took."""
    took = (format_duration(s, hedge=True) for s in (found.run_seconds, found.seconds))
    yield "Federation", f"sha256 {found.source}"
    yield "Runs made with", "; ".join(found.versions)
    yield "Computing", "{} for all runs; {} this time".format(*took)
    yield from list_run_facts()


def plot_defection(audit: DefectionAudit, ax: Axes | None = None) -> Axes:
    """Draw how often an agent that gives less is satisfied all the same, by algorithm.

    The line is a random agent, with its 95 % intervals; the dashed one the agent worst off.

    audit: what was found.
    ax: where to draw.
    """
    from fedaccord.federation.defection.chart import defection_chart
    from fedaccord.report.drawing import finish, plot_chart, styled

    ax = plot_chart(defection_chart(audit), ax)
    levels = sorted({100 * point.level for curve in audit.curves for point in curve.levels})
    with styled():
        ax.set_xticks(levels, [f"{level:g} %" for level in levels])
        ax.set_xlim(min(0, *levels), 103)
    return finish(ax)
