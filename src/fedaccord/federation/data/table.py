"""Reading tables from CSV files: a label, maybe a site, and columns of numbers or texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedaccord._io.csv import Sheet, check_distinct, read_rows, shorten
from fedaccord.errors import InputError
from fedaccord.federation.data.preprocessing import Column

# A text column with more levels is a name or a date, and would swamp the other features.
MOST_LEVELS = 50
# Beyond a single's range a number would become infinite on the way.
LARGEST_NUMBER = float(np.finfo(np.float32).max)


def read_table(path: Path, expected: str) -> Sheet:
    """Read a CSV file whose first line names the columns; semicolons may stand for commas.

    path: the file.
    expected: a column it must have, by which commas and semicolons are told apart.
    """
    read = read_rows(path, expected)
    if len(read.cells) < 2:
        raise InputError(
            f"{path} {'has no rows below its header' if read.cells else 'is empty'}; it must hold "
            "a line that names the columns and then a line for every point"
        )
    names, lines, rows = read.cells[0], read.lines[1:], read.cells[1:]
    check_distinct(names, read.path)
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(names):
            raise InputError(
                f"line {line} of {path} has {len(row)} cells, the header {len(names)}: is the file "
                "cut short, or does a text with a comma lack quotes?"
            )
    return Sheet.of(read.path, names, lines, rows)


def read_full_column(table: Sheet, name: str, use: str) -> list[str]:
    """Return a column in which no cell may be empty, or say which line lacks it.

    table: the file's content.
    name: the column.
    use: what it is to be, for messages: "label" or "site".
    """
    if name not in table.cells:
        raise InputError(
            f"{table.path} has no column {name!r} for the {use}; its columns are "
            f"{', '.join(table.columns)}"
        )
    cells = table.cells[name]
    if "" in cells:
        raise InputError(
            f"{table.where(cells.index(''))} has no {use} ({name} is empty): fill it in or leave "
            "the line out"
        )
    return cells


def read_table_inputs(
    table: Sheet, used: Sequence[str], categories: Sequence[str]
) -> tuple[NDArray[np.float32], tuple[Column, ...]]:
    """Return the columns that a network learns from, as numbers; NaN where a value is missing.

    table: the file's content.
    used: the columns that are labels or sites or left out.
    categories: columns of numbers that stand for kinds, to be read as texts.
    """
    for name in categories:
        if name not in table.cells:
            raise InputError(
                f"{table.path} has no column {name!r}; its columns are {', '.join(table.columns)}"
            )
    names = [name for name in table.columns if name not in used]
    if not names:
        raise InputError(f"{table.path} has no column to learn from beside {', '.join(used)}")
    read = [_read_column(table, name, name in categories) for name in names]
    return np.stack([values for values, _ in read], axis=1), tuple(column for _, column in read)


def _read_column(table: Sheet, name: str, kinds: bool) -> tuple[NDArray[np.float32], Column]:
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


def _numbers(table: Sheet, name: str, numbers: list[float | None]) -> NDArray[np.float32]:
    rows = zip(table.lines, table.cells[name], numbers, strict=True)
    for line, cell, number in rows:
        if cell and (number is None or not abs(number) < LARGEST_NUMBER):
            raise InputError(
                f'line {line} of {table.path} has "{shorten(cell)}" in column {name}, where '
                "other lines have numbers: correct it, leave the cell empty if the value is "
                "missing, or name the column among the categories"
            )
    filled = [math.nan if number is None else number for number in numbers]
    return np.array(filled, dtype=np.float32)


def _number(text: str) -> float | None:
    # float() takes 1_000, which in a table is a slip rather than a thousand.
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
