"""The page of an audit of defection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.report.defection import (
    compare_levels,
    compare_with_first,
    compare_with_full,
    describe_judging,
    describe_trials,
    explain_goal,
    explain_shares,
    list_answers,
    list_both,
    list_by_level,
    list_levels,
    list_training_facts,
    plot_defection,
    show_tactics,
)
from fedaccord.report.defection_verdicts import (
    CutVerdict,
    Word,
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
    MANY,
    Cell,
    Listing,
    Mark,
    Page,
    Part,
    Section,
    Table,
    Tone,
)
from fedaccord.report.terminal import NO_BREAK
from fedaccord.wording import (
    capitalize_first,
    format_level,
    format_settings,
)

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
    )

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
INTERVALS = (
    "Legend: 0.80 [0.58, 0.92] is a share of runs with its 95 % interval, in which the true share "
    "lies. The interval allows for the fact that runs of one trial are alike. A dash stands where "
    "there is nothing to count."
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
EXPLAINED = (
    "Differences are between runs of the same trials, so they are more certain than the intervals "
    "of the two shares suggest. An interval that does not include 0 shows a difference. "
    "Agresti and Min (2005) give the formula."
)
EXPLAINED_AT_EVERY_LOOK = EXPLAINED.replace(
    "Agresti and Min (2005) give the formula.", "The intervals hold at every look, too."
)
# The order of agents where they are many; levels, at most 1, are added.
ORDER: dict[Word, float] = {"yes": 0.0, "not clear": 2.0, "no": 4.0, "not tried": 6.0}


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
    yield list_answers(found)
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
        yield list_by_level(found, OTHERS, lambda satisfied: satisfied.others)
        if any(0 in curve.contributions for curve in found.curves):
            yield DILUTED
    tables = compare_with_first(found), compare_with_full(found)
    if compared := [table for table in tables if table is not None]:
        yield from compared
        yield EXPLAINED if found.width is None else EXPLAINED_AT_EVERY_LOOK
    yield from show_tactics(found)
    yield Listing(tuple(compare_levels(found)))
    if found.scored_on is not None:
        yield list_both(found)


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
