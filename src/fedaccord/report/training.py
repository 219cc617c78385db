"""Runs of training and audits of defection as tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from fedaccord.federation.charts import defector, defector_share
from fedaccord.report.model import FEW, MANY
from fedaccord.report.terminal import LEAST_NAME, Sheet, line
from fedaccord.wording import format_number

if TYPE_CHECKING:
    from fedaccord.federation.data.pretraining import Draw
    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
    )
    from fedaccord.federation.defection.intervals import Proportion
    from fedaccord.federation.history import History

# The level that the sentences are about, or the closest to it that was asked for.
SPOKEN = 0.25
# Where all are satisfied less often than this with everybody in full, that is said first.
POOR = 0.5


def percent(share: float) -> str:
    """Write a share as a percentage, without decimals: those are noise in a few dozen runs."""
    return f"{100 * share:.0f} %"


def span(seconds: float) -> str:
    """Write a time for people: seconds, then minutes, then hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def shortened(name: str) -> str:
    """Cut a long name, for the head of a column."""
    head = line(name)
    head.truncate(LEAST_NAME, overflow="ellipsis")
    return head.plain


def share_text(share: Proportion) -> str:
    """Write a share with its interval."""
    if not share.trials:
        return "-"
    return f"{share.p:.2f} [{share.low:.2f}, {share.high:.2f}]"


# Training.


def history_table(history: History) -> Sheet:
    """Lay out how each agent fared; of many, those furthest from their goals first."""
    heads = ("first in\nround", "points\nbrought", "of them\nused", "samples\ndrawn")
    sheet = Sheet("agent", "goal", "accuracy", "reached", *heads)
    final, drawn = history.final, history.samples.sum(axis=0)
    short = np.nan_to_num(history.requirements - final, nan=1.0)
    many = len(history.clients) > MANY
    shown = np.argsort(-short, kind="stable")[:FEW] if many else np.arange(len(short))
    for i in shown.tolist():
        satisfied = bool(history.satisfied[i])
        first = int(history.first_passage[i])
        sheet.add_row(
            line(history.clients[i]),
            f"{history.requirements[i]:.3f}",
            "-" if np.isnan(final[i]) else f"{final[i]:.3f}",
            Text("yes" if satisfied else "no", style="green" if satisfied else "red"),
            f"{first:,}" if first else "-",
            f"{history.contributions[i]:,}",
            f"{history.unique[-1, i]:,}",
            f"{drawn[i]:,}",
        )
    rest = f"and {len(short) - len(shown):,} more; all" if many else "all"
    totals = (history.contributions.sum(), history.unique[-1].sum(), drawn.sum())
    sheet.add_sum(rest, "", "", "", "", *(f"{total:,}" for total in totals))
    return sheet


def history_sentence(history: History, algorithm: str) -> Text:
    """Say who is satisfied after a run, and by how much the others are not."""
    agents, rounds = len(history.clients), len(history.samples)
    satisfied = int(history.satisfied.sum())
    after = f"After {rounds:,} {'round' if rounds == 1 else 'rounds'} of {algorithm}"
    if history.diverged:
        who = (
            f"only {satisfied:,} of {agents:,} agents, who had left before,"
            if satisfied
            else "nobody"
        )
        text = (
            f"{algorithm} diverged in round {rounds:,}: a loss was not a number, and {who} "
            f"{'are' if satisfied > 1 else 'is'} satisfied. Try a smaller learning rate."
        )
    elif satisfied == agents:
        text = f"{after} everybody is satisfied."
    else:
        text = f"{after} {satisfied:,} of {agents:,} agents are satisfied; {_missed(history)}."
    return line(text, "green" if satisfied == agents else "red")


def _missed(history: History) -> str:
    """Name the agents that miss their goals, with what they have and what they lack."""
    missed = np.flatnonzero(~history.satisfied).tolist()
    lack = {i: _lack(float(history.final[i]), float(history.requirements[i])) for i in missed}
    if len(missed) == 1:
        return f"{history.clients[missed[0]]} is not ({lack[missed[0]]})"
    names = ", ".join(f"{history.clients[i]} ({lack[i]})" for i in missed[:3])
    more = f" and {len(missed) - 3:,} more" if len(missed) > 3 else ""
    return f"{names}{more} are not"


def _lack(accuracy: float, goal: float) -> str:
    lack = goal - accuracy
    return f"{accuracy:.3f}, short by {lack:.3f}" if lack >= 0.0005 else f"short by {lack:.1g}"


# Audits of defection.


def counted(value: float) -> str:
    """Write a mean of counts: thousands apart, one decimal where there is any."""
    return f"{value:,.1f}".removesuffix(".0")


def percent_of(level: float) -> str:
    """Write a level as a percentage, with the decimals it has."""
    return f"{100 * level:g} %"


def table_sentences(audit: DefectionAudit) -> Iterator[Text]:
    """Say above an audit's tables what their numbers are."""
    seen = [point.at_end.random.trials for curve in audit.curves for point in curve.levels]
    most = max(seen)
    trials = f"{most:,} {'trial' if most == 1 else 'trials'}"
    up_to = "up to " if min(seen) < most else ""
    cut = "cut" if audit.protocol == "P1" else "brought a part of what is asked of it"
    full = "everything" if audit.protocol == "P1" else "all that is asked of them"
    yield line(
        f"Share of {up_to}{trials} in which the agent that {cut} reached its goal"
        f"{_common_goal(audit)} at the end of training;"
    )
    yield line(f"in brackets the 95 % interval. The others bring {full}.")


def _common_goal(audit: DefectionAudit) -> str:
    goals = set(audit.requirements)
    if len(goals) != 1:
        return ""
    (goal,) = goals
    written = f"{goal:.2f}" if round(goal, 2) == goal else f"{goal:g}"
    return f" (accuracy {written} on its own validation points)"


def curves_table(audit: DefectionAudit) -> Sheet:
    """Lay out how often a random agent that brings less is satisfied, by level and algorithm."""
    heads = (shortened(curve.algorithm) for curve in audit.curves)
    sheet = Sheet(f"{defector(audit, *audit.curves)} brings", *heads)
    for point in audit.curves[0].levels:
        levels = (curve.at(point.level) for curve in audit.curves)
        shares = (share_text(defector_share(audit, level.at_end)) for level in levels)
        sheet.add_row(percent_of(point.level), *shares)
    sheet.add_sum(
        "everybody satisfied at 100 %", *(share_text(c.all_satisfied) for c in audit.curves)
    )
    used = (counted(curve.total_samples) for curve in audit.curves)
    sheet.add_sum("different points used, all in full", *used)
    drawn = (counted(curve.total_draws) for curve in audit.curves)
    sheet.add_sum("samples drawn, all in full", *drawn)
    if any(curve.diverged for curve in audit.curves):
        sheet.add_sum("runs that diverged", *(f"{curve.diverged:,}" for curve in audit.curves))
    return sheet


def agents_table(audit: DefectionAudit, curve: DefectionCurve) -> Sheet:
    """Lay out an algorithm's curve agent by agent, with what the cut does to the others.

    audit: the whole.
    curve: the algorithm's.
    """
    asked = dict(zip(audit.clients, curve.contributions, strict=True))
    shown = audit.clients[:FEW] if len(audit.clients) > MANY else audit.clients
    heads = (shortened(agent) for agent in shown)
    sheet = Sheet(f"{shortened(curve.algorithm)}, brings", *heads, "all the others\nreach theirs")
    if audit.protocol == "P2":
        sheet.add_row("asked", *(f"{asked[agent]:,}" if asked[agent] else "-" for agent in shown))
    for point in curve.levels:
        cuts = point.level < 1
        found = point.at_end
        own = (
            f"{found.clients[agent].p:.2f}"
            if found.clients[agent].trials and (asked[agent] or not cuts)
            else "-"
            for agent in shown
        )
        sheet.add_row(percent_of(point.level), *own, share_text(found.others) if cuts else "-")
    return sheet


def audit_sentences(audit: DefectionAudit) -> Iterator[Text]:
    """Say for each algorithm what cutting one's contribution comes to, and for whom."""
    for curve in audit.curves:
        if curve.all_satisfied.p < POOR:
            full = "everything" if audit.protocol == "P1" else "all that is asked of it"
            share = curve.all_satisfied.p
            often = f"only {percent(share)} of runs" if share else "none of the runs"
            yield line(
                f"Under {curve.algorithm} all agents reach their goals in {often} even when "
                f"everybody brings {full}."
            )
        yield line(_comparison(audit, curve))


def spoken_level(curve: DefectionCurve) -> DefectionLevel:
    """Give the level that sentences are about."""
    return min(curve.levels, key=lambda point: abs(point.level - SPOKEN))


def _comparison(audit: DefectionAudit, curve: DefectionCurve) -> str:
    """Compare the level that sentences are about with full contribution, where that is known."""
    point = spoken_level(curve)
    whole = next((p for p in curve.levels if p.level == 1 and p is not point), None)
    share = defector_share(audit, point.at_end)
    if not share.trials:
        return f"Under {curve.algorithm} nothing is asked of anybody."
    what = ("all of its data", "its data")
    if audit.protocol == "P2":
        what = ("all that is asked of it", "what is asked of it")
    text = f"Under {curve.algorithm} {defector(audit, curve)} reaches its goal in "
    if whole is not None:
        at_full = percent(defector_share(audit, whole.at_end).p)
        text += f"{at_full} of runs with {what[0]} and in {percent(share.p)} with "
        text += f"{percent_of(point.level)} of it"
    else:
        part = what[0] if point.level == 1 else f"{percent_of(point.level)} of {what[1]}"
        text += f"{percent(share.p)} of runs with {part}"
    text += f" ({100 * share.low:.0f} to {percent(share.high)}, {_trials(audit, curve, share)})"
    # Nothing that an agent of whom nothing is asked does could harm the others.
    harm = "" if 0 in curve.contributions or whole is None else _harm(audit, point, whole)
    return f"{text}{harm}."


def _trials(audit: DefectionAudit, curve: DefectionCurve, share: Proportion) -> str:
    trials = f"{share.trials:,} {'trial' if share.trials == 1 else 'trials'}"
    if audit.defectors != "each":
        return trials
    agents = len(audit.clients) if audit.protocol == "P1" else np.count_nonzero(curve.contributions)
    return f"{trials} x {agents:,} {'agent' if agents == 1 else 'agents'}"


def _harm(audit: DefectionAudit, point: DefectionLevel, whole: DefectionLevel) -> str:
    """Say what the cut does to the others, if they reach their goals less often."""
    then, before = point.at_end.others, whole.at_end.others
    if not before.trials or then.p >= before.p or percent(then.p) == percent(before.p):
        return ""
    full = "everything" if audit.protocol == "P1" else "all of it"
    return (
        f", and then all the others reach theirs in {percent(then.p)} ({percent(before.p)} when it "
        f"brings {full})"
    )


# Beforehand.


def search_table(draws: Sequence[Draw]) -> Sheet:
    """Lay out what a search tried, the best first."""
    sheet = Sheet("learning rate", "batch size", "batches", "accuracy")
    for draw in draws:
        reached = "diverged" if np.isnan(draw.accuracy) else f"{draw.accuracy:.4f}"
        sheet.add_row(
            f"{draw.learning_rate:.2e}", f"{draw.batch_size}", f"{draw.batches:,}", reached
        )
    return sheet


def pairs_table(head: str, rows: dict[str, Any]) -> Sheet:
    """Lay out names and values."""
    sheet = Sheet(head, "")
    for name, value in rows.items():
        sheet.add_row(
            line(name), format_number(value) if isinstance(value, int | float) else str(value)
        )
    return sheet
