"""Reading tables from CSV files: a label, maybe a site, and columns of numbers or texts."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedaccord._io.atomic import read_text
from fedaccord.errors import InputError
from fedaccord.federation.data.preprocessing import Column

# A text column with more levels is a name or a date, and would swamp the other features.
MOST_LEVELS = 50
# Beyond a single's range a number would become infinite on the way.
LARGEST_NUMBER = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Table:
    """A CSV file taken apart: cells by column, with the lines they stand in.

    path: the file, for messages.
    names: the columns.
    cells: a list of texts for every column; empty where a value is missing.
    lines: the line of the file that every row stands in.
    """

    path: Path
    names: tuple[str, ...]
    cells: dict[str, list[str]]
    lines: list[int]

    def column(self, name: str, use: str) -> list[str]:
        """Give a column in which no cell may be empty, or say which line lacks it.

        name: the column.
        use: what it is to be, for messages: "label" or "site".
        """
        if name not in self.cells:
            raise InputError(
                f"{self.path} has no column {name!r} for the {use}; its columns are "
                f"{', '.join(self.names)}"
            )
        for line, cell in zip(self.lines, self.cells[name], strict=True):
            if not cell:
                raise InputError(
                    f"line {line} of {self.path} has no {use} ({name} is empty): fill it in or "
                    "leave the line out"
                )
        return self.cells[name]


def read_table(path: Path, expected: str) -> Table:
    """Read a CSV file whose first line names the columns; semicolons may stand for commas.

    path: the file.
    expected: a column it must have, by which commas and semicolons are told apart.
    """
    text = read_text(path)
    first = next((row for row in text.splitlines() if row.strip()), "")
    with_commas = {cell.strip(' "') for cell in first.split(",")}
    delimiter = ";" if ";" in first and expected not in with_commas else ","
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"{path} is not CSV ({error}); save it anew") from None
    if len(rows) < 2:
        raise InputError(
            f"{path} {'has no rows below its header' if rows else 'is empty'}; it must hold a line "
            "that names the columns and then a line for every point"
        )
    names = tuple(cell.strip() for cell in rows[0][1])
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{path} names the column {twice!r} twice; rename one of them")
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise InputError(
                f"line {line} of {path} has {len(row)} cells, the header {len(names)}: is the file "
                "cut short, or does a text with a comma lack quotes?"
            )
    cells = {n: [row[c].strip() for _, row in rows[1:]] for c, n in enumerate(names)}
    return Table(path, names, cells, [line for line, _ in rows[1:]])


def table_inputs(
    table: Table, used: Sequence[str], categories: Sequence[str]
) -> tuple[NDArray[np.float32], tuple[Column, ...]]:
    """Give the columns that a network learns from, as numbers; NaN where a value is missing.

    table: the file's content.
    used: the columns that are labels or sites or left out.
    categories: columns of numbers that stand for kinds, to be read as texts.
    """
    for name in categories:
        if name not in table.cells:
            raise InputError(
                f"{table.path} has no column {name!r}; its columns are {', '.join(table.names)}"
            )
    names = [name for name in table.names if name not in used]
    if not names:
        raise InputError(f"{table.path} has no column to learn from beside {', '.join(used)}")
    read = [_read_column(table, name, name in categories) for name in names]
    return np.stack([values for values, _ in read], axis=1), tuple(column for _, column in read)


def _read_column(table: Table, name: str, kinds: bool) -> tuple[NDArray[np.float32], Column]:
    cells = table.cells[name]
    numbers = [None if kinds else _number(cell) for cell in cells]
    gaps = any(not cell for cell in cells)
    if any(number is not None for number in numbers):
        return _numbers(table, name, numbers), Column(name, None, gaps)
    levels = tuple(sorted({cell for cell in cells if cell}))
    if not levels:
        raise InputError(f"column {name} of {table.path} is empty; leave the column out")
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"column {name} of {table.path} has {len(levels)} different texts, more than the "
            f"{MOST_LEVELS} that can be learned from; leave the column out"
        )
    place = {level: float(n) for n, level in enumerate(levels)}
    values = np.array([place.get(cell, math.nan) for cell in cells], dtype=np.float32)
    return values, Column(name, levels, gaps)


def _numbers(table: Table, name: str, numbers: list[float | None]) -> NDArray[np.float32]:
    rows = zip(table.lines, table.cells[name], numbers, strict=True)
    for line, cell, number in rows:
        if cell and (number is None or not abs(number) < LARGEST_NUMBER):
            shown = cell if len(cell) <= 40 else cell[:37] + "..."
            raise InputError(
                f'line {line} of {table.path} has "{shown}" in column {name}, where other lines '
                "have numbers: correct it, leave the cell empty if the value is missing, or name "
                "the column among the categories"
            )
    filled = [math.nan if number is None else number for number in numbers]
    return np.array(filled, dtype=np.float32)


def _number(text: str) -> float | None:
    # float() takes 1_000, which in a table is a slip rather than a thousand.
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
