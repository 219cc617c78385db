"""Cells of tables: written for people on a page, and in full for a spreadsheet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeGuard

from fedaccord.report.model import Cell, Mark, Table, Tone
from fedaccord.wording import NOTHING, format_places

# Significant digits of a column's largest number, and the most behind the point.
DIGITS = 5
BEHIND = 6
# What spreadsheets take for the start of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# A column with words longer than this needs room.
WORDS = 40
# With none longer than this a column is not broken into lines, the first one, of names, less soon.
UNBROKEN = 16
UNBROKEN_NAMES = 30


@dataclass(frozen=True)
class Shown:
    """A cell as it stands on a page.

    text: what is read.
    key: what it is sorted by, where that is not the text.
    tone: whether it stands out.
    """

    text: str
    key: str = ""
    tone: Tone | None = None


@dataclass(frozen=True)
class Laid:
    """A table as it stands on a page.

    kinds: of each column, number, short (never broken), text or words (which need room).
    rows, footer: the cells, as many in each row as there are columns.
    """

    caption: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[Shown, ...], ...]
    footer: tuple[tuple[Shown, ...], ...]


def laid_out(table: Table) -> Laid:
    """Write a table's cells, the numbers of a column alike."""
    rows, footer = ([_padded(table, row) for row in part] for part in (table.rows, table.footer))
    places = [_places([row[n] for row in rows + footer]) for n in range(len(table.columns))]
    unbroken = [UNBROKEN_NAMES, *[UNBROKEN] * (len(table.columns) - 1)]
    kinds = tuple(_kind([row[n] for row in rows], most) for n, most in enumerate(unbroken))

    return Laid(
        table.caption,
        table.columns,
        kinds,
        rows=tuple(tuple(map(_shown, row, places)) for row in rows),
        # That there is no sum goes without saying.
        footer=tuple(
            tuple(
                Shown("") if cell is None else _shown(cell, n)
                for cell, n in zip(row, places, strict=True)
            )
            for row in footer
        ),
    )


def _padded(table: Table, row: Sequence[Cell]) -> list[Cell]:
    return [*row, *[None] * (len(table.columns) - len(row))]


def is_number(cell: object) -> TypeGuard[float]:
    """Tell whether a cell is a number."""
    return isinstance(cell, Real) and not isinstance(cell, bool)


def _kind(cells: Sequence[Cell], unbroken: int) -> str:
    words = [_text(cell) for cell in cells if cell is not None and not is_number(cell)]
    longest = max(map(len, words), default=0)
    if longest > WORDS:
        return "words"
    if 2 * len(words) < sum(cell is not None for cell in cells):
        return "number"
    return "short" if longest <= unbroken else "text"


def _places(cells: Sequence[Cell]) -> int:
    """Choose how many digits behind the point a column's numbers have."""
    found = [float(cell) for cell in cells if is_number(cell) and math.isfinite(cell)]
    largest = max(map(abs, found), default=0.0)
    if largest == 0:
        return 0
    most = min(max(DIGITS - 1 - math.floor(math.log10(largest)), 0), BEHIND)
    # No more than any of them needs.
    return next(n for n in range(most + 1) if n == most or _needs_no_more(found, n, most))


def _needs_no_more(numbers: Sequence[float], places: int, most: int) -> bool:
    return all(round(number, places) == round(number, most) for number in numbers)


def _shown(cell: Cell, places: int) -> Shown:
    if cell is None:
        return Shown(NOTHING)
    if isinstance(cell, Mark):
        return Shown(cell.text, tone=cell.tone)
    if not is_number(cell):
        return Shown(str(cell))
    text = format_places(cell, places)
    # The page's script reads infinities as they are shown.
    plain = not math.isfinite(cell) or _read(text) == float(cell)
    return Shown(text, key="" if plain else f"{float(cell):.12g}")


def _read(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("−", "-"))
    except ValueError:
        return None


def _text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Mark) else str(cell)


def table_csv(table: Table) -> str:
    """Give a table as CSV, every number in full, and no text that a spreadsheet would run."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([_in_full(head) for head in table.columns])
    for row in (*table.rows, *table.footer):
        writer.writerow([_in_full(cell) for cell in _padded(table, row)])
    return file.getvalue()


def _in_full(cell: Cell) -> str:
    if cell is None:
        return ""
    if is_number(cell):
        whole: object = cell
        return str(int(cell)) if isinstance(whole, Integral) else repr(float(cell))
    text = _text(cell).replace("\0", "")
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
