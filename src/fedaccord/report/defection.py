"""An audit of defection: can an agent give less? For a terminal, and as a page with a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.report import differences
from fedaccord.report.defection_verdicts import (
    HALF,
    CutVerdict,
    Word,
    answer_share,
    choose_tone,
    describe_audit,
    find_levels,
    find_spoken_level,
    find_spoken_share,
    judge_cut,
    list_doubts,
    list_shares,
    name_part,
    sum_up_cuts,
)
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
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Satisfaction,
    )
    from fedaccord.federation.defection.intervals import Proportion
    from fedaccord.frontier.result import Frontier


PROTOCOLS = {
    "P1": (
        "Protocol P1, as in the paper: the federation trains many times. Each time one agent, the "
        "defector, gives only a part of its data (the level), and the others give all of theirs. "
        "This shows whether an agent can give less to this algorithm and still reach its goal."
    ),
    "P2": (
        "Protocol P2, the test of a plan: the plan asks each agent for a number of samples. The "
        "federation trains many times. Each time one agent, the defector, gives only a part of "
        "what the plan asks of it (the level), and the others give all of it. This shows whether "
        "the plan is stable."
    ),
}
PAIRED = (
    "All runs of one trial have the same samples and the same seed, so they differ only in what "
    "the defector gives."
)
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
INTERVALS = (
    "Legend: 0.80 [0.58, 0.92] is a share of runs with its 95 % interval. The interval allows for "
    "the fact that runs of one trial are alike. A dash stands where there is nothing to count."
)
SEQUENTIAL = (
    " A level stopped as soon as its interval was narrow enough. The intervals are those of "
    "confidence sequences: with probability 95 %, every look's interval holds the true share."
)
CONTRIBUTORS = (
    "The plan asks nothing of some agents. They cannot give less, so they are not among the "
    "contributors."
)
OTHERS = "How often all the others reach their goals, by what the defector gives"
DILUTED = (
    "Agents that the plan asks for nothing count in this table as defectors too. So a contributor "
    "that defects does more harm than this table shows."
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
    yield _list_answers(audit)
    table = list_levels(audit)
    yield replace(table, columns=(table.columns[0], *map(shorten_name, table.columns[1:])))
    if (compared := differences.compare_with_first(audit)) is not None:
        yield replace(compared, columns=tuple(map(shorten_name, compared.columns)))
    yield from _show_tactics(audit)
    yield from (_list_agents_across(audit, curve) for curve in audit.curves)
    yield from compare_levels(audit)


def _show_tactics(audit: DefectionAudit) -> Iterator[str | Table]:
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


def _list_answers(audit: DefectionAudit) -> Table:
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


def _list_both(audit: DefectionAudit) -> Table:
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
    return replace(_list_by_level(audit, caption, audit.defector_share), footer=tuple(footer))


def _list_by_level(
    audit: DefectionAudit, caption: str, share: Callable[[Satisfaction], Proportion]
) -> Table:
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


# The order of agents where they are many; levels, at most 1, are added.
ORDER: dict[Word, float] = {"yes": 0.0, "not clear": 2.0, "no": 4.0, "not tried": 6.0}


# The page.


def audit_page(found: DefectionAudit, *, command: str = "") -> Page:
    """Make a page of an audit of defection.

    found: the audit.
    command: what was typed.
    """
    asked = " than the plan asks" if found.protocol == "P2" else ""
    stops = "" if found.width is None else f", fewer once an interval is {found.width:g} narrow"
    idle = [CONTRIBUTORS] if any(0 in curve.contributions for curve in found.curves) else []
    reached = f"{explain_goal(found)} {_compare_by_then(found)}".strip()
    legend = INTERVALS + ("" if found.width is None else SEQUENTIAL)
    return Page(
        title=f"Can an agent give less{asked} and still reach its goal?",
        verdict=describe_audit(found),
        tone=choose_tone(found),
        sections=(
            Section("The answer in three questions", tuple(_show_answers(found))),
            Section("What a defector gets", tuple(_show_curves(found))),
            Section("Which agents can give less", tuple(_show_agents(found))),
            Section(
                "How to read this",
                (PROTOCOLS[found.protocol], reached, PAIRED, legend, *idle),
            ),
        ),
        facts=(
            ("Audit", f"protocol {found.protocol}; {describe_trials(found, stops)}"),
            ("Judged", describe_judging(found).removeprefix("judged ")),
            *((curve.algorithm, format_settings(curve.settings)) for curve in found.curves),
            *list_training_facts(found),
        ),
        command=command,
    )


def _show_answers(found: DefectionAudit) -> Iterator[Part]:
    yield _list_answers(found)
    level = find_spoken_level(found.curves[0]).level
    who = (
        f"A defector is {found.describe_defector()} that gives {format_level(level)} of "
        f"{name_part(found)}. That is enough if the defector reaches its goal. "
    )
    yield (who if level < 1 else "") + (
        "Yes: in more than half of the runs, and the whole 95 % interval says so. No: in less than "
        "half. Not clear: the interval includes a half."
    )
    if doubts := tuple(list_doubts(found)):
        yield Listing(doubts)


def _show_curves(found: DefectionAudit) -> Iterator[Part]:
    from fedaccord.federation.defection.chart import defection_chart
    from fedaccord.report.drawing import MANY_LINES, picture_of

    yield " ".join(explain_shares(found))
    chart = defection_chart(found)
    note = "Bars: 95 % intervals."
    if any(line.of for line in chart.lines):
        note += " Dashed line: the agent for which defection fails most often."
    # Of too many lines to tell apart, neither is drawn.
    note = note if len(chart.lines) <= MANY_LINES else ""
    yield replace(picture_of(chart), draw=lambda ax: plot_defection(found, ax), note=note)
    yield list_levels(found)
    if len(found.clients) > 1:
        yield _list_by_level(found, OTHERS, lambda satisfied: satisfied.others)
        if any(0 in curve.contributions for curve in found.curves):
            yield DILUTED
    tables = differences.compare_with_first(found), differences.compare_with_full(found)
    if compared := [table for table in tables if table is not None]:
        yield from compared
        yield differences.EXPLAINED if found.width is None else differences.SEQUENTIAL
    yield from _show_tactics(found)
    yield Listing(tuple(compare_levels(found)))
    if found.scored_on is not None:
        yield _list_both(found)


def _show_agents(found: DefectionAudit) -> Iterator[Part]:
    yield (
        "A level is enough for an agent if there, and at every higher level tried, the agent "
        "reaches its goal in at least half of the runs in which it is the defector. Levels between "
        "those tried are not known."
    )
    for curve in found.curves:
        said = "The plan asks nothing of any agent."
        if any(curve.contributions):
            said = capitalize_first(sum_up_cuts(found, curve)[1])
            highest = max((point.level for point in curve.levels if point.level < 1), default=1.0)
            less, not_less = (find_levels(found, curve, word) for word in ("yes", "no"))
            if highest < 1 and not less and not_less:
                said += f"; levels between {100 * highest:g} and 100 % were not tried"
            worst = curve.find_worst_off()
            said += f". Defection fails most often for {worst}." if worst else "."
        yield Section(curve.algorithm, (said, _list_agents_down(found, curve)))


def _list_agents_down(found: DefectionAudit, curve: DefectionCurve) -> Table:
    """List an algorithm's curve, an agent a row; of many, those that can give least first."""
    rows = []
    for agent, asked, goal in zip(
        found.clients, curve.contributions, found.requirements, strict=True
    ):
        # In per cent, where the agent could be the defector.
        shares = [
            round(100 * share.p) if share.trials and (asked or point.level == 1) else None
            for point in curve.levels
            for share in [point.judged.clients[agent]]
        ]
        rows.append((agent, goal, asked, *shares, _mark_cut(judge_cut(curve, agent), asked)))
    if len(rows) > MANY:
        verdicts = [judge_cut(curve, agent) for agent in found.clients]
        ranks = [ORDER[verdict.word] + (verdict.level or 0) for verdict in verdicts]
        rows = [rows[i] for i in np.argsort(ranks, kind="stable").tolist()]
    levels = (format_level(point.level).replace(" ", NO_BREAK) for point in curve.levels)
    asked_head = "samples in the plan" if found.protocol == "P2" else "samples it has"
    return Table(
        caption=f"{curve.algorithm}: per cent of runs in which an agent reaches its goal as the "
        f"defector, by what it gives, {describe_judging(found)}",
        columns=("agent", "goal", asked_head, *levels, "can give less"),
        rows=tuple(rows),
    )


def _mark_cut(verdict: CutVerdict, asked: int) -> Cell:
    if not asked:
        return "not asked to give"
    if verdict.word == "not tried":
        return None
    tone: Tone
    if verdict.word == "yes":
        said, tone = f"yes, {format_level(verdict.level or 1)} is enough", "bad"
    elif verdict.word == "no":
        said, tone = f"no, {format_level(verdict.level or 1)} is not enough", "good"
    else:
        return Mark(f"not clear: {verdict.why}", "unsure")
    return Mark(said, tone) if verdict.sure else Mark(f"{said}, not certain", "unsure")


def _compare_by_then(found: DefectionAudit) -> str:
    """Return what the shares would be if reaching the goal at any evaluation counted."""
    curves = [curve for curve in found.curves if find_spoken_share(found, curve).trials]
    if not curves:
        return ""
    point = find_spoken_level(curves[0])
    shares = [found.defector_share(find_spoken_level(curve).by_then).p for curve in curves]
    return (
        "If reaching the goal at any evaluation on validation samples counted, a defector at "
        f"{format_level(point.level)} would reach it in {list_shares(curves, shares)}."
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
