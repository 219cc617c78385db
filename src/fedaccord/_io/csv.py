"""CSV tables that people write by hand or save from a spreadsheet: pilots and histograms."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedaccord._checks import Vector, as_numbers
from fedaccord._io.atomic import read_text
from fedaccord.errors import InputError

# Almost every cell: what is read as such goes fast, and to the same number.
PLAIN = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")
# What a table means where it leaves these of an agent open.
UNSAID = {"limit": math.inf, "minimum": 0.0, "cost": 1.0}


@dataclass(frozen=True)
class Sheet:
    """A CSV file taken apart: its columns, and below them rows of texts with their lines.

    path: the file, for messages.
    columns: the names in the first line, in small letters where they are known ones.
    rows: the cells of every line that is not blank.
    lines: the line of the file that every row stands in.
    """

    path: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def column(self, name: str) -> list[str]:
        """Give the cells of a column; empty texts where there is no such column."""
        if name not in self.columns:
            return [""] * len(self.rows)
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def where(self, row: int) -> str:
        """Say where a row stands."""
        return f"line {self.lines[row]} of {self.path}"


def read_sheet(path: str | Path, known: Sequence[str], example: str) -> Sheet:
    """Read a CSV file whose first line names the columns; semicolons may stand for commas.

    path: the file.
    known: columns whose names may be written in capitals or not.
    example: the first line that such a file has, for messages.
    """
    rows = _read_rows(path, example)
    columns = _columns(rows[0][1], known, str(path))
    for line, row in rows[1:]:
        if len(row) < len(columns) or any(row[len(columns) :]):
            raise InputError(
                f"line {line} of {path} has {len(row)} cells, the first line {len(columns)}: is "
                "the file cut short, does a number have a comma, or a name with one lack quotes?"
            )
    return Sheet(
        str(path),
        columns,
        tuple(tuple(row[: len(columns)]) for _, row in rows[1:]),
        tuple(line for line, _ in rows[1:]),
    )


def first_line(path: str | Path) -> tuple[str, ...]:
    """Give the columns that the first line of a file names, in small letters."""
    rows = _rows_of(read_text(path), path)
    return tuple(cell.lower() for cell in rows[0][1]) if rows else ()


def _read_rows(path: str | Path, example: str) -> list[tuple[int, list[str]]]:
    rows = _rows_of(read_text(path), path)
    if len(rows) < 2:
        raise InputError(
            f"{path} {'has nothing below its first line' if rows else 'is empty'}; it must start "
            f"with a line such as {example}, and hold numbers below it"
        )
    return rows


def _rows_of(text: str, path: str | Path) -> list[tuple[int, list[str]]]:
    first = next((row for row in text.splitlines() if row.strip()), "")
    # Whichever of the two comes more often separates; a decimal comma stands in no first line.
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [
            (reader.line_num, [cell.strip() for cell in row])
            for row in reader
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise InputError(f"{path} is not CSV ({error}); save it anew") from None


def _columns(cells: Sequence[str], known: Sequence[str], path: str) -> tuple[str, ...]:
    names = [cell.lower() if cell.lower() in known else cell for cell in cells]
    # A spreadsheet may leave empty columns at the end of every line.
    while names and not names[-1]:
        names.pop()
    if "" in names:
        raise InputError(f"a column in the first line of {path} has no name; give it one")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} names the column {twice!r} twice; rename one of them")
    return tuple(names)


def number(text: str, what: str) -> float:
    """Read a number; NaN where there is none.

    text: the cell.
    what: what it is and where it stands, for messages.
    """
    if not text:
        return math.nan
    if PLAIN.fullmatch(text):
        return float(text)
    try:
        value = float(as_numbers([text], what)[0])
    except InputError:
        value = math.nan
    if math.isnan(value):
        remedy = "write a number, or leave the cell empty where there is none"
        if "," in text:
            remedy = "write it with a point for decimals and no separators, as 1700 or 0.85"
        if text.endswith("%"):
            remedy = "write a share, as 0.85 for 85 %"
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise InputError(f'{what} reads "{shown}": {remedy}')
    return value


def own_numbers(sheet: Sheet, names: Sequence[str], agents: Sequence[str]) -> dict[str, Vector]:
    """Give by column the one number that each agent has in it.

    Where an agent has none it is what UNSAID has, or NaN.

    sheet: the file, which names an agent in every row.
    names: the columns, whether the file has them or not.
    agents: whose numbers to give.
    """
    owners = sheet.column("agent")
    return {name: np.array(_constant(sheet, name, agents, owners)) for name in names}


def _constant(sheet: Sheet, name: str, agents: Sequence[str], owners: Sequence[str]) -> list[float]:
    found: dict[str, float] = {}
    for row, (owner, cell) in enumerate(zip(owners, sheet.column(name), strict=True)):
        if not cell:
            continue
        value = number(cell, f"the {name} of {owner} in {sheet.where(row)}")
        if found.setdefault(owner, value) != value:
            raise InputError(
                f"the {name} of {owner} is {found[owner]:g} in one line of {sheet.path} and "
                f"{value:g} in line {sheet.lines[row]}: an agent has one {name}; correct one"
            )
    otherwise = UNSAID.get(name, math.nan)
    return [found.get(agent, otherwise) for agent in agents]
