"""Pages of training: an audit of defection, a run, and what comes before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.federation.charts import (
    defection_chart,
    defector,
    defector_share,
    draws_chart,
    training_chart,
    worst_off,
)
from fedaccord.report import figures_training as figures
from fedaccord.report.answers import (
    ORDER,
    answered,
    answers_of,
    conclusion,
    counted_answers,
)
from fedaccord.report.drawing import picture_of
from fedaccord.report.facts import Facts, settings_text, surroundings, took
from fedaccord.report.model import MANY, Cell, Listing, Mark, Page, Part, Section, Table, Tone
from fedaccord.report.pages_beforehand import difficulty_page, pretrain_page, search_page
from fedaccord.report.training import (
    POOR,
    audit_sentences,
    counted,
    history_sentence,
    percent,
    percent_of,
    share_text,
    spoken_level,
    table_sentences,
)

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import DefectionAudit, DefectionCurve, DefectionLevel
    from fedaccord.federation.defection.intervals import Proportion
    from fedaccord.federation.history import History

__all__ = ["audit_page", "difficulty_page", "pretrain_page", "search_page", "train_page"]

# More algorithms than this are not read aloud one by one.
READ_ALOUD = 3
NO_BREAK = "\u00a0"

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
DILUTED = (
    "Agents of whom nothing is asked count here as well, as if they had cut something: what a "
    "contributor that cuts does to the others is more than this."
)


# Audits of defection.


def audit_page(found: DefectionAudit, *, command: str = "") -> Page:
    """Make a page of an audit of defection.

    found: the audit.
    command: what was typed.
    """
    plan = found.protocol == "P2"
    return Page(
        title="Could anybody give less than the plan asks?" if plan else "Could anybody give less?",
        verdict=audit_verdict(found),
        tone=audit_tone(found),
        sections=(
            Section("What giving less comes to", tuple(_curve_parts(found))),
            Section("Who could give less", tuple(_agent_parts(found))),
            Section("How to read this", tuple(_reading(found))),
        ),
        facts=_audit_facts(found),
        command=command,
    )


def audit_verdict(found: DefectionAudit) -> str:
    """Say whether anybody could give less, and how often who does is satisfied all the same."""
    curves = [curve for curve in found.curves if _at_spoken(found, curve).trials]
    if not curves:
        return "Nothing is asked of anybody, so nobody could give less."
    level = spoken_level(curves[0])
    what = "its data" if found.protocol == "P1" else "what is asked of it"
    shares = _each_said(curves, [_at_spoken(found, curve).p for curve in curves])
    who = defector(found, *curves)
    brings = percent_of(level.level) if level.level < 1 else "all"
    cut = f"{who[0].upper()}{who[1:]} that brings {brings} of {what} reaches its goal in {shares}"
    full = _each_said(curves, [curve.all_satisfied.p for curve in curves])
    numbers = f"{cut}; when everybody gives in full, all reach theirs in {full}."
    return " ".join(filter(None, (conclusion(found, curves), numbers)))


def _each_said(curves: Sequence[DefectionCurve], shares: Sequence[float]) -> str:
    """Say a share for each algorithm, or for the lowest and the highest of many."""
    pairs = [(c.algorithm, share) for c, share in zip(curves, shares, strict=True)]
    if len({percent(share) for share in shares}) == 1 and len(pairs) > 1:
        both = "both algorithms" if len(pairs) == 2 else f"all {len(pairs)} algorithms"
        return f"{percent(shares[0])} of runs under {both}"
    if len(pairs) > READ_ALOUD:
        ordered = sorted(pairs, key=lambda pair: pair[1])
        pairs = [ordered[0], ordered[-1]]
    first, *rest = pairs
    said = [f"{percent(first[1])} of runs under {first[0]}"]
    said += [f"{percent(share)} under {name}" for name, share in rest]
    return said[0] if not rest else f"{', '.join(said[:-1])} and {said[-1]}"


def _at_spoken(found: DefectionAudit, curve: DefectionCurve) -> Proportion:
    return defector_share(found, spoken_level(curve).at_end)


def audit_tone(found: DefectionAudit) -> Tone:
    """Tell whether giving less is deterred while full contribution satisfies, as far as is sure."""
    tones = {_curve_tone(found, curve) for curve in found.curves}
    return tones.pop() if len(tones) == 1 else "unsure"


def _curve_tone(found: DefectionAudit, curve: DefectionCurve) -> Tone:
    share = _at_spoken(found, curve)
    if not share.trials:
        return "plain"
    answers = answers_of(found, curve)
    if curve.all_satisfied.high < POOR or any(a.sure for a in answers.values() if a.word == "yes"):
        return "bad"
    deterred = all(answer.word == "no" for answer in answers.values())
    return "good" if deterred and share.high < POOR < curve.all_satisfied.low else "unsure"


def _curve_parts(found: DefectionAudit) -> Iterator[Part]:
    yield " ".join(text.plain for text in table_sentences(found))
    chart = defection_chart(found)
    worst = "The dashed line is the agent that fares worst, when it is the one that gives less."
    yield dataclasses.replace(
        picture_of(chart),
        draw=lambda ax: figures.plot_defection(found, ax),
        note=worst if any(line.of for line in chart.lines) else "",
    )
    yield _levels_table(found)
    yield Listing(tuple(text.plain for text in audit_sentences(found)))


def _share(share: Proportion) -> str:
    """Write a share with its interval, which no line break divides."""
    return share_text(share).replace(", ", f",{NO_BREAK}")


def _levels_table(found: DefectionAudit) -> Table:
    curves = found.curves

    def row(head: str, values: Sequence[Cell]) -> tuple[Cell, ...]:
        return (head, *values)

    rows = []
    for point in curves[0].levels:
        own = [_share(defector_share(found, c.at(point.level).at_end)) for c in curves]
        rows.append(row(percent_of(point.level), own))
    footer = [
        row("everybody satisfied at 100 %", [_share(c.all_satisfied) for c in curves]),
        row("different points used, all in full", [counted(c.total_samples) for c in curves]),
        row("samples drawn, all in full", [counted(c.total_draws) for c in curves]),
    ]
    if any(curve.diverged for curve in curves):
        footer.append(row("runs that diverged", [curve.diverged for curve in curves]))
    return Table(
        caption="Share of runs in which the agent that gives less reaches its goal",
        columns=(f"{defector(found)} brings", *(curve.algorithm for curve in curves)),
        rows=tuple(rows),
        footer=tuple(footer),
    )


def _agent_parts(found: DefectionAudit) -> Iterator[Part]:
    yield (
        "An agent could give less, down to the lowest level such that there, and at every higher "
        "level tried, it reaches its goal in at least half of the runs in which it is the one that "
        "cuts. What lies between the levels tried is not known."
    )
    for curve in found.curves:
        yield Section(curve.algorithm, (_count_sentence(found, curve), _agents_table(found, curve)))
    if len(found.clients) > 1:
        yield _others_table(found)
        if any(0 in curve.contributions for curve in found.curves):
            yield DILUTED


def _count_sentence(found: DefectionAudit, curve: DefectionCurve) -> str:
    if not any(curve.contributions):
        return "Nothing is asked of anybody."
    said = counted_answers(found, curve)
    worst = worst_off(curve)
    return f"{said} {worst} fares worst." if worst is not None else said


def _agents_table(found: DefectionAudit, curve: DefectionCurve) -> Table:
    """Lay out an algorithm's curve agent by agent; of many, those who could give least first."""
    plan = found.protocol == "P2"
    rows = []
    for agent, asked, goal in zip(
        found.clients, curve.contributions, found.requirements, strict=True
    ):
        shares = [_own_share(point, agent, asked) for point in curve.levels]
        rows.append((agent, goal, asked, *shares, _could_give_less(curve, agent, asked)))
    if len(rows) > MANY:
        answers = [answered(curve, agent) for agent in found.clients]
        ranks = [ORDER[answer.word] + (answer.level or 0) for answer in answers]
        rows = [rows[i] for i in np.argsort(ranks, kind="stable").tolist()]
    levels = (percent_of(point.level).replace(" ", NO_BREAK) for point in curve.levels)
    return Table(
        caption=f"{curve.algorithm}: per cent of runs in which each agent reaches its goal, by "
        "what part it brings",
        columns=(
            "agent",
            "goal",
            "points asked" if plan else "points it has",
            *levels,
            "could give less",
        ),
        rows=tuple(rows),
    )


def _own_share(point: DefectionLevel, agent: str, asked: int) -> float | None:
    """Give how often an agent was satisfied in per cent, where it could be the one that cuts."""
    share = point.at_end.clients[agent]
    return round(100 * share.p, 1) if share.trials and (asked or point.level == 1) else None


def _could_give_less(curve: DefectionCurve, agent: str, asked: int) -> Cell:
    answer = answered(curve, agent)
    if not asked:
        return "gives nothing"
    if answer.word == "not tried":
        return None
    if answer.word == "yes":
        return Mark(f"yes: {percent_of(answer.level or 1)}", "bad")
    if answer.word == "no":
        return Mark(f"not with {percent_of(answer.level or 1)}", "good")
    return Mark(f"not clear: {answer.why}", "unsure")


def _others_table(found: DefectionAudit) -> Table:
    rows = []
    for point in found.curves[0].levels:
        others = [_share(curve.at(point.level).at_end.others) for curve in found.curves]
        rows.append((percent_of(point.level), *others))
    return Table(
        caption="What it does to the others: share of runs in which all of them reach their goals",
        columns=(f"{defector(found)} brings", *(curve.algorithm for curve in found.curves)),
        rows=tuple(rows),
    )


def _reading(found: DefectionAudit) -> Iterator[Part]:
    yield PROTOCOLS[found.protocol]
    yield f"{SATISFIED} {_by_then(found)}"
    yield f"{PAIRED} {INTERVALS}"
    if any(0 in curve.contributions for curve in found.curves):
        yield CONTRIBUTORS


def _by_then(found: DefectionAudit) -> str:
    """Say what the shares would be if an agent were satisfied once it has reached its goal."""
    curves = [curve for curve in found.curves if _at_spoken(found, curve).trials]
    if not curves:
        return ""
    point = spoken_level(curves[0])
    shares = [defector_share(found, spoken_level(curve).by_then).p for curve in curves]
    return (
        f"If to have been so at any evaluation counted, the shares at {percent_of(point.level)} "
        f"would be {_each_said(curves, shares)}."
    )


def _audit_facts(found: DefectionAudit) -> Facts:
    stops = "" if found.width is None else f", fewer where an interval is {found.width:g} narrow"
    trials = f"{found.trials:,} {'trial' if found.trials == 1 else 'trials'}{stops}"
    cut = "each agent cuts in every one" if found.defectors == "each" else "one random agent cuts"
    times = f"{took(found.run_seconds)} for all runs; {took(found.seconds)} this time"
    return (
        ("Audit", f"by {found.protocol}; {trials}; {cut}; seed {found.seed}"),
        *((curve.algorithm, settings_text(curve.settings)) for curve in found.curves),
        ("Federation", f"sha256 {found.source}"),
        ("Runs made with", "; ".join(found.versions)),
        ("Computing", times),
        *surroundings(),
    )


# Runs of training.


def train_page(history: History, name: str, *, command: str = "") -> Page:
    """Make a page of a run of training.

    history: what happened.
    name: of the algorithm.
    command: what was typed.
    """
    return Page(
        title=f"Who is satisfied after training with {name}",
        verdict=history_sentence(history, name).plain,
        tone="good" if history.satisfied.all() else "bad",
        sections=(
            Section("Accuracy and goal", tuple(_run_parts(history))),
            Section("What was drawn", tuple(_drawn_parts(history))),
            Section("How to read this", (SATISFIED, _one_run(history))),
        ),
        facts=(
            ("Algorithm", settings_text(history.algorithm)),
            ("Seed of the run", f"{history.seed}"),
            ("Training took", took(history.seconds)),
            *surroundings(),
        ),
        command=command,
    )


def _run_parts(history: History) -> Iterator[Part]:
    if not np.isnan(history.accuracy).all():
        yield dataclasses.replace(
            picture_of(training_chart(history)), draw=lambda ax: figures.plot_training(history, ax)
        )
    yield _clients_table(history)


def _clients_table(history: History) -> Table:
    """Lay out how each agent fared; of many, those furthest from their goals first."""
    final, drawn = history.final, history.samples.sum(axis=0)
    short = np.nan_to_num(history.requirements - final, nan=1.0)
    many = len(history.clients) > MANY
    order = np.argsort(-short, kind="stable") if many else np.arange(len(short))
    rows = []
    for i in order.tolist():
        satisfied, first = bool(history.satisfied[i]), int(history.first_passage[i])
        rows.append(
            (
                history.clients[i],
                float(history.requirements[i]),
                None if np.isnan(final[i]) else round(float(final[i]), 3),
                Mark("yes", "good") if satisfied else Mark("no", "bad"),
                first or None,
                int(history.contributions[i]),
                int(history.unique[-1, i]),
                int(drawn[i]),
            )
        )
    totals = (history.contributions.sum(), history.unique[-1].sum(), drawn.sum())
    return Table(
        caption="Agents after the last round" + (", furthest from their goals first" * many),
        columns=(
            *("agent", "goal", "accuracy", "reached", "first in round"),
            *("points brought", "of them used", "samples drawn"),
        ),
        rows=tuple(rows),
        footer=(("all", None, None, None, None, *(int(total) for total in totals)),),
    )


def _drawn_parts(history: History) -> Iterator[Part]:
    used, brought = int(history.unique[-1].sum()), int(history.contributions.sum())
    yield (
        f"The agents brought {brought:,} points; {used:,} of them were used, "
        f"in {int(history.samples.sum()):,} draws."
    )
    # Where all draw alike, a line for each would be one line.
    drawn = history.samples[:, history.contributions > 0]
    if (drawn != drawn[:, :1]).any():
        yield dataclasses.replace(
            picture_of(draws_chart(history)), draw=lambda ax: figures.plot_draws(history, ax)
        )
    else:
        yield "All agents that brought points drew alike."


def _one_run(history: History) -> str:
    looked = history.algorithm.get("evaluate_every", 1)
    every = "every round" if looked == 1 else f"one round in {looked:,}, and the last,"
    return (
        f'For "first in round" {every} counts. '
        "This is one run: with another seed an agent close to its goal may end on its other side. "
        "How often it does, and whether it could bring less, is what 'fedaccord audit' tells."
    )
