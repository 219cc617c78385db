"""CSV tables that people write by hand or save from a spreadsheet, and those we write."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedaccord._checks import as_numbers
from fedaccord._io.files import read_text, replace_file
from fedaccord.errors import InputError

# Almost every cell: what is read as such goes fast, and to the same number.
PLAIN = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")
# What helps where a cell is no number, by what it contains.
REMEDIES = {
    "%": "write a share, as 0.85 for 85 %",
    ",": "write it with a point for decimals and no separators, as 1700 or 0.85",
    "": "write a number, or leave the cell empty where there is none",
}


@dataclass(frozen=True)
class Rows:
    """The lines of a CSV file that are not blank.

    path: the file, for messages.
    lines: the number of each line.
    cells: its cells, without the blanks round them.
    """

    path: str
    lines: list[int]
    cells: list[list[str]]

    @property
    def first(self) -> tuple[str, ...]:
        """The cells of the first line, in small letters."""
        return tuple(cell.lower() for cell in self.cells[0]) if self.cells else ()

    def to_sheet(self, known: Sequence[str], example: str) -> Sheet:
        """Read the first line as names of columns, and what is below it as their cells.

        known: columns whose names may be written in capitals or not.
        example: the first line that such a file has, for messages.
        """
        if len(self.cells) < 2:
            fault = "has nothing below its first line" if self.cells else "is empty"
            raise InputError(
                f"{self.path} {fault}; it must start with a line such as {example}, and hold "
                "numbers below it"
            )
        columns = _read_columns(self.cells[0], known, self.path)
        lines, rows = self.lines[1:], self.cells[1:]
        for line, row in zip(lines, rows, strict=True):
            if len(row) < len(columns) or any(row[len(columns) :]):
                raise InputError(
                    f"line {line} of {self.path} has {len(row)} cells, the first line "
                    f"{len(columns)}: is the file cut short, does a number have a comma, or a name "
                    "with one lack quotes?"
                )
        return Sheet.of(self.path, columns, lines, rows)


@dataclass(frozen=True)
class Sheet:
    """A CSV file taken apart by columns.

    path: the file, for messages.
    lines: the line of the file that every row stands in.
    cells: by the columns' names the texts below them, empty where there is none.
    """

    path: str
    lines: list[int]
    cells: dict[str, list[str]]

    @classmethod
    def of(
        cls, path: str, columns: Sequence[str], lines: list[int], rows: Sequence[Sequence[str]]
    ) -> Sheet:
        """Turn rows into columns."""
        cells = {name: [row[place] for row in rows] for place, name in enumerate(columns)}
        return cls(path, lines, cells)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.cells)

    def column(self, name: str) -> list[str]:
        """Return the cells of a column; empty texts where there is no such column."""
        return self.cells.get(name, [""] * len(self.lines))

    def where(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return f"line {self.lines[row]} of {self.path}"

    def names(self, column: str) -> tuple[str, ...]:
        """Return the different names in a column, in the order in which they come."""
        cells = self.column(column)
        if "" in cells:
            raise InputError(f"{self.where(cells.index(''))} names no {column}; fill it in")
        return tuple(dict.fromkeys(cells))

    def own_numbers(self, name: str, agents: Sequence[str], otherwise: float) -> list[float]:
        """Return the one number that each agent has in a column, whether there is one or not.

        name: the column.
        agents: whose numbers to return; the column "agent" says whose row it is.
        otherwise: what an agent has where all its cells are empty.
        """
        found: dict[str, float] = {}
        cells = zip(self.column("agent"), self.column(name), strict=True)
        for row, (owner, cell) in enumerate(cells):
            if not cell:
                continue
            value = read_number(cell, f"the {name} of {owner} in {self.where(row)}")
            if found.setdefault(owner, value) != value:
                raise InputError(
                    f"the {name} of {owner} is {found[owner]:g} in one line of {self.path} and "
                    f"{value:g} in line {self.lines[row]}: an agent has one {name}; correct one"
                )
        return [found.get(agent, otherwise) for agent in agents]


def read_rows(path: str | Path, expected: str | None = None) -> Rows:
    """Read a CSV file, once; semicolons may stand for commas.

    path: the file.
    expected: a column that the first line must name, by which the two are told apart; where left
        out, whichever comes more often separates.
    """
    text = read_text(path)
    first = next((row for row in text.splitlines() if row.strip()), "")
    if expected is None:
        # A decimal comma stands in no first line.
        semicolons = first.count(";") > first.count(",")
    else:
        by_commas = {cell.strip(' "').lower() for cell in first.split(",")}
        semicolons = ";" in first and expected.lower() not in by_commas
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if semicolons else ",")
    lines, cells = [], []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                lines.append(reader.line_num)
                cells.append([cell.strip() for cell in row])
    except csv.Error as error:
        raise InputError(f"{path} is not CSV ({error}); save it anew") from None
    return Rows(str(path), lines, cells)


def _read_columns(cells: Sequence[str], known: Sequence[str], path: str) -> tuple[str, ...]:
    names = [cell.lower() if cell.lower() in known else cell for cell in cells]
    # A spreadsheet may leave empty columns at the end of every line.
    while names and not names[-1]:
        names.pop()
    if "" in names:
        raise InputError(f"a column in the first line of {path} has no name; give it one")
    check_distinct(names, path)
    return tuple(names)


def check_distinct(columns: Sequence[str], path: str) -> None:
    """Raise an InputError where a column is named twice."""
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InputError(f"{path} names the column {twice!r} twice; rename one of them")


def read_number(
    text: str, what: str, remedies: Mapping[str, str] = REMEDIES, *, needed: bool = False
) -> float:
    """Read a number, or raise an InputError that says how to write it.

    text: the cell.
    what: what it is and where it stands, for messages.
    remedies: what to do instead, by what the cell contains.
    needed: whether an empty cell is a fault too; otherwise it is NaN.
    """
    if not text and not needed:
        return math.nan
    if PLAIN.fullmatch(text):
        return float(text)
    try:
        value = float(as_numbers([text], what)[0])
    except InputError:
        value = math.nan
    if math.isnan(value):
        remedy = next(remedy for sign, remedy in remedies.items() if sign in text)
        raise InputError(f'{what} reads "{shorten(text)}": {remedy}')
    return value


def shorten(text: str) -> str:
    """Return a cell for messages, which may be of any length."""
    return text if len(text) <= 40 else text[:37] + "..."


def write_csv(path: str | Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file, replacing it in one step.

    path: the file.
    columns: the names in the first line.
    rows: the cells below it.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    replace_file(path, text.getvalue())
