"""Solutions and audits as tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from fedaccord._arrays import Indices, Vector
from fedaccord.audit import Answer, Audit
from fedaccord.equilibria.base import Solution, Status
from fedaccord.games.base import Game
from fedaccord.report.terminal import plain

# With more agents than this a table shows only the first FEW of those that matter most.
MANY = 30
FEW = 15
NAME_WIDTH = 36

ENVY = {
    Answer.TRUE: "Nobody envies anybody.",
    Answer.FALSE: "The audit does not find it envy-free.",
    Answer.BORDERLINE: "Whether anybody envies anybody is too close to call.",
}


def line(text: str, style: str = "") -> Text:
    """Make a line in which nothing counts as markup."""
    return Text(plain(text), style=style)


def number(value: float | None) -> str:
    """Write a number for people: six digits, or all digits before the point."""
    if value is None or not np.isfinite(value):
        return "-"
    if 1e5 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.6g}"


def _table(*columns: str, title: str = "") -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    table.add_column(columns[0], no_wrap=True, overflow="ellipsis", max_width=NAME_WIDTH)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _most(weights: Vector) -> Indices:
    """Choose whom to show: everybody, or those with the largest weights, the largest first."""
    if len(weights) <= MANY:
        return np.arange(len(weights))
    return np.argsort(-weights, kind="stable")[:FEW]


# Solutions.


def solutions_table(game: Game, solutions: Mapping[str, Solution]) -> Table:
    """Lay out who gives what under each concept, beside what each would need alone.

    game: what was solved.
    solutions: the solutions by concept.
    """
    found = {c: s.contributions for c, s in solutions.items() if s.contributions is not None}
    table = _table("agent", "alone", *solutions)
    weights = np.max([*found.values()], axis=0) if found else game.requirements
    shown = _most(weights)
    for agent in shown.tolist():
        given = [number(found[c][agent]) if c in found else "-" for c in solutions]
        table.add_row(line(game.name(agent)), number(game.alone[agent]), *given)
    if len(shown) < game.size:
        others = np.delete(np.arange(game.size), shown)
        sums = [number(found[c][others].sum()) if c in found else "-" for c in solutions]
        alone = number(game.alone[others].sum())
        table.add_row(Text(f"{len(others):,} others, in all", style="italic"), alone, *sums)
    table.add_section()
    sums = [number(found[c].sum()) if c in found else "-" for c in solutions]
    table.add_row("all", number(game.alone.sum()), *sums)
    return table


def totals_table(solutions: Mapping[str, Solution]) -> Table:
    """Lay out each concept's total, what is proved of it, and how it was found."""
    table = _table("concept", "total", "at least", "at most", "status", "method")
    for concept, solution in solutions.items():
        table.add_row(
            concept,
            number(solution.total),
            number(solution.bounds.lower),
            number(solution.bounds.upper),
            solution.status.key,
            solution.method,
        )
    return table


def solution_lines(solution: Solution, found: Audit | None) -> Iterable[Text]:
    """Say what the audit makes of a solution, or why there is nothing to audit.

    solution: what the solver claims.
    found: the audit of its allocation, if it has one.
    """
    if found is not None:
        yield line(f"{solution.concept}: {found.sentence()}")
        # The verdict stops at what it finds first; this concept is about envy all the same.
        if solution.concept == "envy-free" and found.stable is Answer.FALSE:
            yield line(f"{solution.concept}: {ENVY[found.envy_free]}")
    if solution.status is not Status.OPTIMAL:
        yield line(f"{solution.concept}: {solution.status.value}")
    if solution.note:
        yield line(f"{solution.concept}: {solution.note}")


def price_line(name: str, price: Any) -> Text:
    """Say what an interval tells of a price.

    name: what the price is called.
    price: its lower and upper end, and a note.
    """
    low, high = number(price.lower), number(price.upper)
    if price.lower == np.inf:
        value = "none"
    elif high == "-":
        value = f"at least {low}" if low != "-" else "unknown"
    else:
        value = low if low == high else f"from {low} to {high}"
    return line(f"{name}: {value}" + (f" ({price.note})" if price.note else ""))


# Audits.


def audit_table(found: Audit) -> Table:
    """Lay out what an audit found, agent by agent; of many agents, the furthest off."""
    game = found.game
    envied = dict(reversed(found.envy))
    table = _table("agent", "gives", "needs", "short", "spare", "alone", "envies")
    finite = np.where(np.isfinite(found.short), found.short, np.inf)
    shown = _most(np.maximum(finite, found.spare))
    for agent in shown.tolist():
        values = (found.contributions, found.needed, found.short, found.spare, found.alone)
        envies = line(game.name(envied[agent])) if agent in envied else Text("-")
        envies.truncate(20, overflow="ellipsis")
        row = [number(v[agent]) for v in values]
        table.add_row(line(game.name(agent)), *row, envies)
    table.add_section()
    rest = f"and {game.size - len(shown):,} more; all" if len(shown) < game.size else "all"
    table.add_row(rest, number(found.contributions.sum()))
    return table


def verdict_style(answer: Answer) -> str:
    """Choose a colour for a verdict."""
    return {Answer.TRUE: "green", Answer.FALSE: "red", Answer.BORDERLINE: "yellow"}[answer]


def explanations(found: Audit) -> Iterable[Text]:
    """Explain each agent's number, where there are few enough to read."""
    if found.game.size <= FEW:
        for agent in range(found.game.size):
            yield line(found.explain(agent) + ".")


# The catalogue.


def catalog_table(entries: Iterable[Any]) -> Table:
    """List the games of the catalogue."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "what it is", "source", "parameters"):
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for entry in entries:
        parameters = ", ".join(f"{key}={value}" for key, value in entry.parameters.items())
        table.add_row(*map(line, (entry.name, entry.summary, entry.source, parameters)))
    return table
