"""Runs of training and audits of defection as tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from fedaccord.report.tables import FEW, LEAST_NAME, MANY, Sheet, line, number

if TYPE_CHECKING:
    from fedaccord.federation.curves import DefectionAudit, DefectionCurve
    from fedaccord.federation.history import History
    from fedaccord.federation.intervals import Proportion
    from fedaccord.federation.pretraining import Draw

# The level that the sentences are about, or the closest to it that was asked for.
SPOKEN = 0.25


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


def _share(share: Proportion) -> str:
    if not share.trials:
        return "-"
    return f"{share.p:.2f} [{share.low:.2f}, {share.high:.2f}]"


# Training.


def history_table(history: History) -> Sheet:
    """Lay out how each client fared; of many, those furthest from their goals first."""
    sheet = Sheet(
        "client", "wants", "has", "satisfied", "first in round", "points", "used", "drawn"
    )
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
    """Say who is satisfied after a run."""
    clients, rounds = len(history.clients), len(history.samples)
    satisfied = int(history.satisfied.sum())
    if history.diverged:
        text = (
            f"{algorithm} diverged in round {rounds}: a loss was not a number, and nobody is "
            "satisfied. Try a smaller learning rate."
        )
    elif satisfied == clients:
        text = f"After {rounds} rounds of {algorithm} everybody is satisfied."
    else:
        short = [c for c, s in zip(history.clients, history.satisfied, strict=True) if not s]
        names = ", ".join(short[:3]) + (f" and {len(short) - 3} more" if len(short) > 3 else "")
        are = "is" if len(short) == 1 else "are"
        text = (
            f"After {rounds} rounds of {algorithm} {satisfied} of {clients} are satisfied; "
            f"{names} {are} not."
        )
    return line(text, "green" if satisfied == clients else "red")


# Audits of defection.


def curves_table(audit: DefectionAudit) -> Sheet:
    """Lay out how often a random agent that gives less is satisfied, by level and algorithm."""
    heads = (shortened(curve.algorithm) for curve in audit.curves)
    sheet = Sheet("a random agent gives", *heads)
    for point in audit.curves[0].levels:
        shares = [_share(curve.at(point.level).at_end.random) for curve in audit.curves]
        sheet.add_row(percent_of(point.level), *shares)
    sheet.add_sum("everybody satisfied at 100 %", *(_share(c.all_satisfied) for c in audit.curves))
    sheet.add_sum("points used then, in all", *(number(c.total_samples) for c in audit.curves))
    sheet.add_sum("samples drawn then, in all", *(number(c.total_draws) for c in audit.curves))
    if any(curve.diverged for curve in audit.curves):
        sheet.add_sum("runs that diverged", *(f"{curve.diverged:,}" for curve in audit.curves))
    return sheet


def percent_of(level: float) -> str:
    """Write a level as a percentage, with the decimals it has."""
    return f"{100 * level:g} %"


def agents_table(curve: DefectionCurve) -> Sheet:
    """Lay out an algorithm's curve agent by agent, with what the cut does to the others."""
    agents = list(curve.levels[0].at_end.clients)
    shown = agents[:FEW] if len(agents) > MANY else agents
    idle = any(given == 0 for given in curve.contributions)
    extra = ["a contributor"] if idle else []
    heads = (shortened(agent) for agent in shown)
    sheet = Sheet(f"{curve.algorithm}, given", *heads, *extra, "all the others")
    for point in curve.levels:
        found = point.at_end
        own = [
            f"{found.clients[agent].p:.2f}" if found.clients[agent].trials else "-"
            for agent in shown
        ]
        among = [_share(found.contributors)] if idle else []
        sheet.add_row(percent_of(point.level), *own, *among, _share(found.others))
    return sheet


def audit_sentences(audit: DefectionAudit) -> Iterator[Text]:
    """Say in one sentence per algorithm what cutting one's contribution comes to."""
    for curve in audit.curves:
        point = min(curve.levels, key=lambda point: abs(point.level - SPOKEN))
        share = point.at_end.random
        runs = sum(one.trials for one in point.at_end.clients.values())
        what = "its data" if audit.protocol == "P1" else "what is asked of it"
        interval = f"{100 * share.low:.0f} to {percent(share.high)}, {runs:,} runs"
        yield line(
            f"Under {curve.algorithm} a random member that brings {percent_of(point.level)} of "
            f"{what} still reaches its goal in {percent(share.p)} of runs ({interval})."
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
        sheet.add_row(line(name), number(value) if isinstance(value, int | float) else str(value))
    return sheet
