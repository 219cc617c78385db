"""Tables and sentences made from results, whatever the results."""

import dataclasses
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fedaccord.check import Check, check
from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.games.linear import LinearGame
from fedaccord.report import games
from fedaccord.report.catalog import draw_catalog
from fedaccord.report.model import FEW
from fedaccord.report.terminal import Sheet

GAME = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], agents=["site A", "[red]B[/red]"])


def solution(game: LinearGame, concept: Any, given: Any, status: Status, **rest: Any) -> Solution:
    values = None if given is None else np.array(given, dtype=float)
    total = np.inf if values is None else game.total(values)
    return Solution(game, concept, "hand", status, Interval(1.0, total), values, **rest)


def shown(*parts: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for part in parts:
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def solutions_sheet(game: LinearGame, found: dict[str, Solution]) -> Sheet:
    return Sheet(games.list_allocations(game, found, "stable").table("terminal"))


def totals_sheet(found: dict[str, Solution]) -> Sheet:
    return Sheet(games.list_totals(found).table("terminal"))


def check_sheet(found: Check) -> Sheet:
    return Sheet(games.list_needs(found).table("terminal"))


@dataclass
class Price:
    lower: float
    upper: float
    note: str = ""


def test_solutions_stand_side_by_side_with_the_stand_alone_needs() -> None:
    found = {
        "optimal": solution(GAME, "optimal", [2 / 3, 2 / 3], Status.OPTIMAL),
        "stable": solution(GAME, "stable", None, Status.NONE_EXISTS),
    }
    rows = [line.split() for line in shown(solutions_sheet(GAME, found)).splitlines()]
    assert ["agent", "alone", "optimal", "stable"] in rows
    assert ["[red]B[/red]", "1", "0.666667", "-"] in rows
    assert ["all", "2", "1.33333", "-"] in rows


def test_of_many_agents_the_heaviest_are_shown_and_the_rest_summed() -> None:
    size = 100
    game = LinearGame(np.eye(size), np.arange(1, size + 1))
    found = {"stable": solution(game, "stable", np.arange(1, size + 1), Status.OPTIMAL)}
    lines = [line for line in shown(solutions_sheet(game, found)).splitlines() if line.strip()]
    rows = [line.split() for line in lines]
    assert rows[2] == ["agent", "99", "100", "100"]
    assert len(rows) == 2 + FEW + 2
    rest = f"{sum(range(1, size + 1 - FEW)):,}"
    assert rows[-2] == ["85", "others,", "in", "all", rest, rest]
    assert rows[-1] == ["all", "5,050", "5,050"]


def test_totals_come_with_their_bounds_and_status() -> None:
    found = {"stable": solution(GAME, "stable", [1, 1], Status.LIMIT)}
    text = shown(totals_sheet(found))
    assert ["stable", "2", "1", "2", "limit", "hand"] in [
        line.split() for line in text.splitlines()
    ]


def test_a_solution_is_told_by_its_audit_its_status_and_its_note() -> None:
    found = solution(GAME, "stable", [1, 1], Status.LIMIT, note="Try [b]longer[/b].")
    lines = list(games.describe_solution(found, check(GAME, [1, 1])))
    assert lines[0].startswith(
        "stable: Feasible but not stable: site A could give 0.5 samples less"
    )
    assert lines[1] == f"stable: {Status.LIMIT.value}"
    assert lines[2] == "stable: Try [b]longer[/b]."
    fair = solution(GAME, "envy-free", [1, 1], Status.OPTIMAL)
    lines = list(games.describe_solution(fair, check(GAME, [1, 1])))
    assert lines[1:] == ["envy-free: No agent envies another."]
    none = solution(GAME, "stable", None, Status.NONE_EXISTS)
    assert list(games.describe_solution(none, None)) == [f"stable: {Status.NONE_EXISTS.value}"]


@pytest.mark.parametrize(
    ("price", "text"),
    [
        (Price(2.0, 2.0), "Price: 2."),
        (Price(1.5, 1.6), "Price: from 1.5 to 1.6."),
        (Price(1.5, np.inf), "Price: at least 1.5."),
        (Price(np.nan, np.nan), "Price: unknown."),
        (Price(np.inf, np.inf, "No such allocation."), "Price: none. No such allocation."),
    ],
)
def test_prices_are_told_as_intervals(price: Price, text: str) -> None:
    assert games.describe_price("price", price) == text


def test_an_audit_shows_who_is_off_and_whom_an_agent_envies() -> None:
    rows = [line.split() for line in shown(check_sheet(check(GAME, [1, 0.5]))).splitlines()]
    assert ["site", "A", "1", "0.75", "0", "0.25", "1", "[red]B[/red]"] in rows
    assert ["[red]B[/red]", "0.5", "0.5", "0", "0", "1", "-"] in rows


def test_long_names_keep_the_table_in_its_width() -> None:
    game = GAME.replace(agents=["a" * 500, "病" * 300])
    for width in (40, 80, 120):
        text = shown(check_sheet(check(game, [1, 0.5])), width=width)
        assert all(len(line) <= width for line in text.splitlines())


def test_explanations_are_kept_to_games_that_can_be_read() -> None:
    assert len(games.explain_agents(check(GAME, [1, 1]))) == 2
    many = LinearGame(np.eye(50), np.ones(50))
    assert games.explain_agents(check(many, np.ones(50))) == []


def test_the_catalogue_is_listed_without_markup() -> None:
    @dataclass
    class Entry:
        name: str
        summary: str
        source: str
        parameters: dict[str, Any]

    entry = Entry("flower", "[b]core[/b] " + "of many words " * 8, "§ 4", {"petals": 16, "a": 1})
    for width in (80, 100):
        text = shown(draw_catalog([entry, entry]), width=width)
        rows = [line.split() for line in text.splitlines()]
        assert rows[0][:2] == ["flower", "[b]core[/b]"]
        assert ["§", "4;", "petals=16,", "a=1"] in rows
        assert len(rows) <= 2 * 5


def test_with_costs_samples_and_costs_have_rows_of_their_own() -> None:
    dear = GAME.replace(costs=[3, 1])
    found = {"stable": solution(dear, "stable", [0.5, 0.75], Status.OPTIMAL)}
    text = shown(solutions_sheet(dear, found), check_sheet(check(dear, [0.5, 0.75])))
    rows = [line.split() for line in text.splitlines()]
    assert ["all", "(samples)", "2", "1.25"] in rows
    assert ["total", "cost", "4", "2.25"] in rows
    assert ["all", "(samples)", "1.25"] in rows
    assert ["total", "cost", "2.25"] in rows
    assert "total cost" in shown(totals_sheet(found))
    assert "cost" not in shown(
        totals_sheet({"stable": solution(GAME, "stable", [1, 1], Status.OPTIMAL)})
    )


@pytest.mark.parametrize("width", [30, 45, 60, 61, 80, 100])
def test_numbers_are_never_cut(width: int) -> None:
    game = LinearGame(
        np.array([[1, 0.5], [0.5, 1]]) / 1e6, [1.23457, 1.5], agents=["A hospital " * 5, "B"]
    )
    given = [123456.7, 1999999.5]
    concepts = ("optimal", "stable", "envy-free")
    found = {c: solution(game, c, given, Status.NOT_ATTAINED) for c in concepts}
    report = check(game, given)
    wide = "best-response+solution-set-lp"
    claimed = {"stable": dataclasses.replace(found["stable"], method=wide)}
    for sheet in (
        solutions_sheet(game, found),
        check_sheet(report),
        totals_sheet(claimed if width >= 60 else found),
    ):
        text = shown(sheet, width=width)
        words = set(text.split())
        cells = [cell.plain for row in sheet.rows for cell in row[1:]]
        assert {word for cell in cells for word in cell.split() if "hosp" not in cell} <= words
        assert {word for head in sheet.columns for word in head.split()} <= words
        assert all(len(line) <= width for line in text.splitlines())


def test_columns_stay_together_where_they_fit() -> None:
    sheet = check_sheet(check(GAME, [1, 0.5]))
    assert len(sheet.parts(100)) == 1
    assert len(sheet.parts(40)) > 1
