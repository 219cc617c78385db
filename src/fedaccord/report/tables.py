"""Solutions and audits as tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from fedaccord._checks import Indices, Vector
from fedaccord.audit import Answer, Audit
from fedaccord.equilibria.result import Solution, Status
from fedaccord.games.base import Game
from fedaccord.report.model import FEW, MANY
from fedaccord.report.terminal import LEAST_NAME, Sheet, line
from fedaccord.wording import format_number, format_range

ENVY = {
    Answer.TRUE: "Nobody envies anybody.",
    Answer.FALSE: "The audit does not find it envy-free.",
    Answer.BORDERLINE: "Whether anybody envies anybody is too close to call.",
}


def _has_costs(game: Game) -> bool:
    return bool((game.costs != 1).any())


def _cost(game: Game, contributions: Vector) -> str:
    return format_number(game.total(contributions) if np.isfinite(contributions).all() else None)


def _most(weights: Vector) -> Indices:
    """Choose whom to show: everybody, or those with the largest weights, the largest first."""
    if len(weights) <= MANY:
        return np.arange(len(weights))
    return np.argsort(-weights, kind="stable")[:FEW]


# Solutions.


def solutions_table(game: Game, solutions: Mapping[str, Solution]) -> Sheet:
    """Lay out who gives what under each concept, beside what each would need alone.

    game: what was solved.
    solutions: the solutions by concept.
    """
    found = {c: s.contributions for c, s in solutions.items() if s.contributions is not None}
    sheet = Sheet("agent", "alone", *solutions)
    weights = np.max([*found.values()], axis=0) if found else game.requirements
    shown = _most(weights)
    for agent in shown.tolist():
        given = [format_number(found[c][agent]) if c in found else "-" for c in solutions]
        sheet.add_row(line(game.name(agent)), format_number(game.alone[agent]), *given)
    if len(shown) < game.size:
        others = np.delete(np.arange(game.size), shown)
        sums = [format_number(found[c][others].sum()) if c in found else "-" for c in solutions]
        alone = format_number(game.alone[others].sum())
        sheet.add_row(Text(f"{len(others):,} others, in all", style="italic"), alone, *sums)
    sums = [format_number(found[c].sum()) if c in found else "-" for c in solutions]
    priced = _has_costs(game)
    sheet.add_sum("all (samples)" if priced else "all", format_number(game.alone.sum()), *sums)
    if priced:
        costs = [_cost(game, found[c]) if c in found else "-" for c in solutions]
        sheet.add_sum("total cost", _cost(game, game.alone), *costs)
    return sheet


def totals_table(solutions: Mapping[str, Solution]) -> Sheet:
    """Lay out each concept's total, what is proved of it, and how it was found."""
    priced = any(_has_costs(solution.game) for solution in solutions.values())
    total = "total cost" if priced else "total"
    sheet = Sheet("concept", total, "at least", "at most", "status", "method")
    for concept, solution in solutions.items():
        sheet.add_row(
            concept,
            format_number(solution.total),
            format_number(solution.bounds.lower),
            format_number(solution.bounds.upper),
            solution.status.key,
            solution.method,
        )
    return sheet


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
    value = format_range(price.lower, price.upper, format_number)
    return line(f"{name}: {value}" + (f" ({price.note})" if price.note else ""))


# Audits.


def audit_table(found: Audit) -> Sheet:
    """Lay out what an audit found, agent by agent; of many agents, the furthest off."""
    game = found.game
    envied = dict(reversed(found.envy))
    sheet = Sheet("agent", "gives", "needs", "short", "spare", "alone", "envies")
    finite = np.where(np.isfinite(found.short), found.short, np.inf)
    shown = _most(np.maximum(finite, found.spare))
    for agent in shown.tolist():
        values = (found.contributions, found.needed, found.short, found.spare, found.alone)
        envies = line(game.name(envied[agent])) if agent in envied else Text("-")
        envies.truncate(LEAST_NAME, overflow="ellipsis")
        row = [format_number(v[agent]) for v in values]
        sheet.add_row(line(game.name(agent)), *row, envies)
    rest = f"and {game.size - len(shown):,} more; all" if len(shown) < game.size else "all"
    priced = _has_costs(game)
    sheet.add_sum(f"{rest} (samples)" if priced else rest, format_number(found.contributions.sum()))
    if priced:
        sheet.add_sum("total cost", _cost(game, found.contributions))
    return sheet


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
    """List the games of the catalogue: what each is, and below it its source and parameters."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for entry in entries:
        table.add_row(line(entry.name, "bold"), line(entry.summary))
        parameters = ", ".join(f"{key}={value}" for key, value in entry.parameters.items())
        table.add_row("", line("; ".join(filter(None, (entry.source, parameters))), "dim"))
        table.add_row("", "")
    return table
