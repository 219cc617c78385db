"""An audit of defection: can an agent give less? Its tables and sentences, and its figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fedaccord.report.defection_verdicts import (
    HALF,
    Word,
    answer_share,
    choose_tone,
    describe_audit,
    find_spoken_level,
    find_spoken_share,
    name_part,
)
from fedaccord.report.model import (
    FEW,
    MANY,
    Cell,
    Mark,
    Part,
    Table,
    Tone,
    list_run_facts,
)
from fedaccord.report.terminal import NO_BREAK, shorten_name
from fedaccord.wording import (
    count,
    format_duration,
    format_goal,
    format_interval,
    format_level,
    format_mean,
    format_percent,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Satisfaction,
    )
    from fedaccord.federation.defection.intervals import Difference, Proportion
    from fedaccord.frontier.result import Frontier


SATISFIED = (
    "An agent reaches its goal if the final model is as accurate as the agent wants, on the "
    "agent's own validation samples. A model that was good enough earlier in training does not "
    "count."
)
SCORED = (
    "An agent reaches its goal if the final model is as accurate as the agent wants, on {} of the "
    "agent's own kind. No agent trains or validates on them, and no algorithm sees them. With "
    "this many samples, chance in measuring hardly matters."
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
    yield list_answers(audit)
    table = list_levels(audit)
    yield replace(table, columns=(table.columns[0], *map(shorten_name, table.columns[1:])))
    if (compared := compare_with_first(audit)) is not None:
        yield replace(compared, columns=tuple(map(shorten_name, compared.columns)))
    yield from show_tactics(audit)
    yield from (_list_agents_across(audit, curve) for curve in audit.curves)
    yield from compare_levels(audit)


def show_progress(audit: DefectionAudit) -> Iterator[Part]:
    """Return what is known of an audit while it runs: its result so far, goals and curves."""
    yield Mark(describe_audit(audit), choose_tone(audit))
    yield from explain_shares(audit)
    yield list_levels(audit)


def show_tactics(audit: DefectionAudit) -> Iterator[str | Table]:
    """Return what defectors do beyond giving less, and what comes of it; nothing for no more."""
    if audit.tactics:
        from fedaccord.report.tactics import describe_tactics, show_going_on

        yield describe_tactics(audit)
        yield from show_going_on(audit)


def explain_shares(audit: DefectionAudit) -> tuple[str, str]:
    """Return two lines for above an audit's tables: what the numbers are, and how they came out."""
    seen = [point.judged.random.trials for curve in audit.curves for point in curve.levels]
    up_to = "up to " if min(seen) < max(seen) else ""
    rest = "all of their data" if audit.protocol == "P1" else "all that the plan asks of them"
    goals = set(audit.requirements)
    wanted = "; ".join(audit.measures)
    same = f" ({wanted} {format_goal(min(goals))})" if len(goals) == 1 else ""
    if len(audit.measures) > 1:
        same = f"s ({wanted})"
    looks = "" if audit.width is None else ", which hold at every look"
    return (
        f"The tables say how often a defector reaches its goal{same} at the end of training. "
        f"Numbers are fractions of the runs in {up_to}{count(max(seen), 'trial')}, with 95 % "
        f"intervals in brackets{looks}.",
        f"The others give {rest}. Models are {describe_judging(audit)}.",
    )


def describe_judging(found: DefectionAudit | Frontier) -> str:
    """Return on which samples models are judged, for the middle of a sentence."""
    if found.scored_on is None:
        return "judged on the agents' own validation samples"
    return f"judged on {count(found.scored_on, 'further sample')} per agent"


def explain_goal(found: DefectionAudit | Frontier) -> str:
    """Return what it means that an agent reaches its goal."""
    if found.scored_on is None:
        return SATISFIED
    return SCORED.format(count(found.scored_on, "further sample"))


# The three questions.


def list_answers(audit: DefectionAudit) -> Table:
    """List the three questions of an audit, with an answer for each algorithm."""
    curves = audit.curves
    level = find_spoken_level(curves[0]).level
    rows: list[tuple[Cell, ...]] = [
        (
            "Do all agents reach their goals?",
            *(_mark_answer(curve.all_judged, "good") for curve in curves),
        )
    ]
    if level < 1:
        rows += [
            (
                f"Is {format_level(level)} enough for a defector?",
                *(_mark_answer(find_spoken_share(audit, curve), "bad") for curve in curves),
            ),
            (
                "Do all the others then reach theirs?",
                *(_mark_answer(_find_others(curve, level), "good") for curve in curves),
            ),
        ]
    return Table(
        f"The three questions, {describe_judging(audit)}",
        ("question", *(curve.algorithm for curve in curves)),
        tuple(rows),
    )


def _find_others(curve: DefectionCurve, level: float) -> Proportion:
    """Return how often all the others reach their goals, where a contributor defects."""
    found = curve.at(level).judged
    return found.others_of_contributors or found.others


def _mark_answer(share: Proportion, yes: Tone) -> Cell:
    """Return an answer with its share, in the tone that a yes has here."""
    word = answer_share(share)
    if word == "not tried":
        return None
    no: Tone = "bad" if yes == "good" else "good"
    tones: dict[Word, Tone] = {"yes": yes, "no": no}
    return Mark(f"{word}, {_format_unbroken(share)}", tones.get(word, "unsure"))


def list_both(audit: DefectionAudit) -> Table:
    """List the shares on further samples and on validation samples next to each other."""
    cases = []
    for curve in audit.curves:
        name = curve.algorithm
        cases.append((name, "all agents, in full", curve.all_judged, curve.all_satisfied))
        for point in curve.levels:
            gives = f"{audit.describe_defector()} that gives {format_level(point.level)}"
            scored, measured = map(audit.defector_share, (point.judged, point.at_end))
            cases.append((name, gives, scored, measured))
    return compare_judging(cases)


def compare_judging(cases: Iterable[tuple[str, str, Proportion, Proportion]]) -> Table:
    """Return a table of shares on further samples and on validation samples.

    cases: the algorithm, whose share it is, and the two shares.
    """
    rows = [(name, who, *_mark_both(scored, seen)) for name, who, scored, seen in cases]
    heads = ("algorithm", "how often these reach their goals", "on further samples")
    return Table(
        "Further samples against validation samples",
        (*heads, "on validation samples", "answer"),
        tuple(rows),
    )


def _mark_both(scored: Proportion, measured: Proportion) -> tuple[Cell, Cell, Cell]:
    one, other = answer_share(scored), answer_share(measured)
    answer: Cell = one if one == other else Mark(f"{one}, not {other}", "unsure")
    return _format_unbroken(scored), _format_unbroken(measured), answer


def list_levels(audit: DefectionAudit) -> Table:
    """List how often a defector still reaches its goal, by level and algorithm."""
    curves = audit.curves
    footer: list[tuple[Cell, ...]] = [
        ("all reach their goals at 100 %", *(_format_unbroken(c.all_judged) for c in curves)),
        ("different samples used at 100 %", *(format_mean(c.total_samples) for c in curves)),
        ("draws at 100 %", *(format_mean(c.total_draws) for c in curves)),
    ]
    if any(curve.diverged for curve in curves):
        footer.append(("runs that diverged", *(f"{curve.diverged:,}" for curve in curves)))
    caption = f"How often a defector still reaches its goal, {describe_judging(audit)}"
    return replace(list_by_level(audit, caption, audit.defector_share), footer=tuple(footer))


def list_by_level(
    audit: DefectionAudit, caption: str, share: Callable[[Satisfaction], Proportion]
) -> Table:
    """List a share by level, with a column for each algorithm.

    audit: the audit.
    caption: of the table.
    share: of what came of a level.
    """
    rows = [
        (
            format_level(point.level),
            *(_format_unbroken(share(c.at(point.level).judged)) for c in audit.curves),
        )
        for point in audit.curves[0].levels
    ]
    heads = (curve.algorithm for curve in audit.curves)
    return Table(caption, (f"{audit.describe_defector()} gives", *heads), tuple(rows))


def _list_agents_across(audit: DefectionAudit, curve: DefectionCurve) -> Table:
    """List an algorithm's curve, an agent a column, with what defection does to the others."""
    asked = dict(zip(audit.clients, curve.contributions, strict=True))
    shown = audit.clients[:FEW] if len(audit.clients) > MANY else audit.clients
    rows: list[tuple[Cell, ...]] = []
    if audit.protocol == "P2":
        rows.append(
            ("plan asks", *(f"{asked[agent]:,}" if asked[agent] else "-" for agent in shown))
        )
    for point in curve.levels:
        cuts = point.level < 1
        found = point.judged
        own = (
            f"{found.clients[agent].p:.2f}"
            if found.clients[agent].trials and (asked[agent] or not cuts)
            else "-"
            for agent in shown
        )
        rows.append((format_level(point.level), *own, format_share(found.others) if cuts else "-"))
    heads = (f"{shorten_name(curve.algorithm)}, gives", *map(shorten_name, shown))
    return Table("", (*heads, "all the others\nreach theirs"), tuple(rows))


# Differences between algorithms and between levels.


def _format_gap(found: Difference | None) -> str:
    if found is None or not found.trials:
        return "-"
    # As many digits as tell an end that is not 0 from 0.
    ends = [abs(end) for end in (found.low, found.high) if end]
    digits = next((n for n in (2, 3, 4) if all(round(end, n) for end in ends)), 4)
    text = format_interval(found.value, found.low, found.high, f"{{:+.{digits}f}}".format)
    zero = f"{0:.{digits}f}"
    text = re.sub(rf"[+-]({re.escape(zero)})(?![0-9])", r"\1", text)
    return text.replace("-", "−").replace(", ", f",{NO_BREAK}")


def compare_with_first(audit: DefectionAudit) -> Table | None:
    """List how much more often a defector reaches its goal than under the first algorithm.

    None where there is one algorithm, or a result from before differences were counted.
    """
    first, *others = audit.curves
    if not any(first.algorithm in point.from_others for c in others for point in c.levels):
        return None
    rows = [
        (
            format_level(point.level),
            *(_format_gap(c.at(point.level).from_others.get(first.algorithm)) for c in others),
        )
        for point in first.levels
    ]
    return Table(
        f"How much more often a defector reaches its goal than under {first.algorithm}",
        (f"compared with {first.algorithm}", *(curve.algorithm for curve in others)),
        tuple(rows),
    )


def compare_with_full(audit: DefectionAudit) -> Table | None:
    """List how much more often a defector reaches its goal than at full contribution.

    None where only full contribution was tried, or in a result of before this was counted.
    """
    levels = [p.level for p in audit.curves[0].levels if p.from_full is not None]
    rows = [
        (format_level(level), *(_format_gap(c.at(level).from_full) for c in audit.curves))
        for level in levels
    ]
    heads = (curve.algorithm for curve in audit.curves)
    caption = "How much more often a defector reaches its goal than at 100 %"
    return Table(caption, ("compared with 100 %", *heads), tuple(rows)) if rows else None


def compare_levels(audit: DefectionAudit) -> Iterator[str]:
    """Yield sentences for each algorithm: what a defector gets, and what the others get."""
    for curve in audit.curves:
        if curve.all_judged.p < HALF:
            full = "all of their data" if audit.protocol == "P1" else "all that the plan asks"
            share = curve.all_judged.p
            often = f"only {format_percent(share)} of runs" if share else "none of the runs"
            yield (
                f"Under {curve.algorithm}, all agents reach their goals in {often}, even if all "
                f"give {full}."
            )
        yield _compare_with_full(audit, curve)


def _compare_with_full(audit: DefectionAudit, curve: DefectionCurve) -> str:
    """Compare the level that sentences are about with full contribution, where that is known."""
    point = find_spoken_level(curve)
    whole = next((p for p in curve.levels if p.level == 1 and p is not point), None)
    share = audit.defector_share(point.judged)
    if not share.trials:
        return f"Under {curve.algorithm}, the plan asks nothing of any agent."
    what = name_part(audit)
    part = f"all of {what}" if point.level == 1 else f"{format_level(point.level)} of {what}"
    trials = count(share.trials, "trial")
    if audit.defectors == "each":
        asked = sum(map(bool, curve.contributions))
        agents = len(audit.clients) if audit.protocol == "P1" else asked
        trials += f" of {count(agents, 'agent')}"
    text = (
        f"Under {curve.algorithm}, {audit.describe_defector(curve)} that gives {part} reaches its "
        f"goal in {format_percent(share.p)} of runs. The 95 % interval is from "
        f"{100 * share.low:.0f} % to {format_percent(share.high)} ({trials})."
    )
    if whole is None:
        return text
    full = format_percent(audit.defector_share(whole.judged).p)
    text += f" If it gives all, it reaches its goal in {full} of runs."
    # An agent that the plan asks for nothing cannot harm the others.
    return text + ("" if 0 in curve.contributions else _describe_harm(point, whole))


def _describe_harm(point: DefectionLevel, whole: DefectionLevel) -> str:
    """Return how often the others reach their goals, if that is less often when one defects.

    Whether the defection is why is not known: few runs are compared here.
    """
    then, before = point.judged.others, whole.judged.others
    now = format_percent(then.p)
    if not before.trials or then.p >= before.p or now == format_percent(before.p):
        return ""
    return (
        f" If it defects, all the others reach their goals in {now} of runs, instead of "
        f"{format_percent(before.p)}."
    )


def describe_trials(found: DefectionAudit | Frontier, stops: str = "") -> str:
    """Return how many trials there are, which agents defect in them, and the seed."""
    who = "each agent defects in every trial"
    if found.defectors != "each":
        who = "one random agent defects in each trial"
    return f"{count(found.trials, 'trial')}{stops}; {who}; seed {found.seed}"


def list_training_facts(found: DefectionAudit | Frontier) -> Iterator[tuple[str, str]]:
    """Return the facts of runs: the federation, the versions, and how long it took."""
    took = (format_duration(s, hedge=True) for s in (found.run_seconds, found.seconds))
    yield "Federation", f"sha256 {found.source}"
    yield "Runs made with", "; ".join(found.versions)
    yield "Computing", "{} for all runs; {} this time".format(*took)
    yield from list_run_facts()


def plot_defection(audit: DefectionAudit, ax: Axes | None = None) -> Axes:
    """Draw how often a defector still reaches its goal, by algorithm.

    The line is a random agent, with its 95 % intervals. The dashed line is the agent for which
    defection fails most often.

    audit: the audit.
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
