"""The catalogue of games whose answers are known, on a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table as Grid

from fedaccord.equilibria.result import Interval
from fedaccord.games import catalog
from fedaccord.games.catalog.closed_forms import Answers
from fedaccord.games.catalog.entries import Entry
from fedaccord.report.model import Mark, Page, Part, Section, Table, list_run_facts
from fedaccord.report.terminal import line
from fedaccord.wording import capitalize_first, count, format_amount

# The flowers whose prices are drawn, from 5 to 10,001 agents.
PETALS = (4, 9, 25, 100, 400, 1_600, 10_000)
CONCEPTS = ("optimal", "stable", "envy_free")


def draw_catalog(entries: Iterable[Entry]) -> Grid:
    """Draw the games of the catalogue: what each is, and below it its source and parameters."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for entry in entries:
        grid.add_row(line(entry.name, "bold"), line(entry.summary))
        parameters = ", ".join(f"{key}={value}" for key, value in entry.parameters.items())
        grid.add_row("", line("; ".join(filter(None, (entry.source, parameters))), "dim"))
        grid.add_row("", "")
    return grid


def catalog_page(entries: Iterable[Entry], *, command: str = "") -> Page:
    """Make a page of games of the catalogue, with what is known of each.

    entries: which games; their parameters are those of the entries.
    command: what was typed.
    """
    shown = list(entries)
    sections = [_overview(shown)]
    if any(entry.name == "flower" for entry in shown):
        sections.append(_flowers())
    sections += [Section(entry.name, tuple(_describe_entry(entry))) for entry in shown]
    return Page(
        title="Games whose answers are known",
        verdict=_verdict(shown),
        tone="plain",
        sections=tuple(sections),
        facts=tuple(list_run_facts()),
        command=command,
    )


def _answers(entry: Entry) -> Answers:
    return catalog.answers(entry.name, **entry.parameters)


def _verdict(entries: Sequence[Entry]) -> str:
    if len(entries) != 1:
        return (
            f"{count(len(entries), 'game')} from the paper and beyond, with the smallest known "
            "totals of each."
        )
    entry = entries[0]
    known = _answers(entry)
    told = []
    for concept in CONCEPTS:
        cell = _cell(known, concept)
        if cell is not None:
            text = cell.text if isinstance(cell, Mark) else format_amount(float(cell))
            told.append(f"{concept.replace('_', '-')} {text}")
    return f"Smallest known totals of the game {entry.name}: {', '.join(told) or 'none'}."


def _cell(known: Answers, concept: str) -> Mark | float | None:
    value: float | None = getattr(known, concept)
    if concept == "stable" and not known.stable_exists:
        return Mark("none exists", "bad")
    if concept == "envy_free" and value is not None and not known.envy_free_attained:
        return Mark(f"{format_amount(value)}, never reached", "unsure")
    return None if value is None else float(value)


def _overview(entries: Sequence[Entry]) -> Section:
    rows = tuple(
        (entry.name, *(_cell(_answers(entry), concept) for concept in CONCEPTS), entry.summary)
        for entry in entries
    )
    said = "The smallest total of each kind of plan. A dash means that it is not known."
    columns = ("game", "optimal", "stable", "envy-free", "what it is")
    table = Table("Games and their known totals", columns, rows)
    return Section("The games at a glance", (said, table))


def _flowers() -> Section:
    # Here and below: only pages have figures, and the list on a terminal needs no matplotlib.
    from fedaccord.report.games_figures import picture_prices

    prices: dict[str, dict[int, Interval]] = {"price of stability": {}, "price of fairness": {}}
    for petals in PETALS:
        known = catalog.answers("flower", petals=petals)
        if known.optimal and known.stable and known.envy_free:
            for name, total in zip(prices, (known.stable, known.envy_free), strict=True):
                prices[name][petals + 1] = Interval(total / known.optimal, total / known.optimal)
    said = (
        "In the flower, one agent could serve all others, but has no reason to. The prices of "
        "stability and fairness grow like the square root of the number of agents (Theorem 4)."
    )
    picture = picture_prices(prices)
    return Section("How prices grow in the flower", (said, *([picture] if picture else [])))


def _describe_entry(entry: Entry) -> Iterator[Part]:
    from fedaccord.report.overlap import picture_overlap

    known = _answers(entry)
    yield f"{capitalize_first(entry.summary)}."
    yield f"From: {entry.source}. Totals: {known.source}."
    options = "".join(f" --parameter {key}={value}" for key, value in entry.parameters.items())
    yield f"To make it: fedaccord catalog {entry.name}{options} --save {entry.name}.json"
    game = catalog.build(entry.name, **entry.parameters)
    picture = picture_overlap(game, f"overlap-{entry.name}")
    if picture is not None:
        yield picture
