"""Reading files of a user's own: CSV tables and npz arrays, with a label and maybe a site."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._io.npz import list_npz, read_npz
from fedaccord._io.numbers import shorten
from fedaccord._io.sheet import Sheet
from fedaccord._io.table import read_rows
from fedaccord.errors import InputError
from fedaccord.federation.data.dataset import Column, Dataset
from fedaccord.federation.data.idx import find_file

# A text column with more levels is a name or a date, and would swamp the other features.
MOST_LEVELS = 50
# Beyond a single's range a number would become infinite on the way.
LARGEST_NUMBER = float(np.finfo(np.float32).max)
# What the arrays of an npz file may be called.
INPUT_KEYS = ("images", "inputs", "x", "X")
LABEL_KEYS = ("labels", "y")
SITE_KEYS = ("sites", "site")


def choose_array(names: Sequence[str], keys: Sequence[str], path: Path) -> str:
    """Return the first of some keys that an npz file has an array of."""
    for key in keys:
        if key in names:
            return key
    raise InputError(
        f"{path} has no array {' or '.join(keys)}; its arrays are {', '.join(names) or 'none'}"
    )


def load_npz(
    source: str, label: str | None, site: str | None, label_above: float | None
) -> Dataset:
    """Read the arrays of an npz file; the arguments are those of `load_data`."""
    path = find_file(source)
    there = list_npz(path)
    wanted = {"labels": choose_array(there, (label,) if label else LABEL_KEYS, path)}
    if site is not None or any(key in there for key in SITE_KEYS):
        wanted["sites"] = choose_array(there, (site,) if site else SITE_KEYS, path)
    wanted["inputs"] = choose_array(there, INPUT_KEYS, path)
    if "classes" in there and label_above is None:
        wanted["classes"] = "classes"
    arrays = read_npz(path, wanted.values())
    content = {part: arrays[name] for part, name in wanted.items()}
    labels, classes = content["labels"], content.get("classes")
    names = None if classes is None else [str(name) for name in classes.ravel()]
    if label_above is not None:
        labels, names = _split_labels(labels, label_above, label or "label", path)
    return Dataset(
        content["inputs"], labels, classes=names, source=path.name, sites=content.get("sites")
    )


def _split_labels(
    labels: NDArray[Any], level: float, name: str, path: str | Path
) -> tuple[NDArray[Any], list[str]]:
    if not math.isfinite(level):
        raise InputError(f"label_above must be a finite number; got {level}")
    if labels.dtype.kind not in "uif":
        raise InputError(f"label_above needs labels that are numbers; {name} of {path} are not")
    if np.isnan(labels).any():
        place = int(np.flatnonzero(np.isnan(labels))[0])
        raise InputError(
            f"the label of sample {place} of {path} is nan: fill it in or leave the sample out"
        )
    above = labels > level
    if above.all() or not above.any():
        low, high = labels.min(), labels.max()
        raise InputError(
            f"label_above = {level:g} gives all samples of {path} one label, because {name} goes "
            f"from {low:g} to {high:g}; there is nothing to learn"
        )
    return above.astype(np.int64), [f"{name} <= {level:g}", f"{name} > {level:g}"]


def load_csv(
    source: str,
    label: str | None,
    site: str | None,
    label_above: float | None,
    categories: Sequence[str],
    without: Sequence[str],
    *,
    event: str | None = None,
    amounts: bool = False,
) -> Dataset:
    """Read a CSV file; the arguments are those of `load_data`."""
    path = find_file(source)
    table = read_table(path, label or "")
    if label is None:
        raise InputError(
            f"say which column of {source} is to be learned (label); its columns are "
            f"{', '.join(table.columns)}"
        )
    if site == label:
        raise InputError(f"{label} of {source} cannot be both the label and the site; name another")
    kind = "amounts" if amounts else "classes" if event is None else "times"
    classes: list[str] | None = None
    if kind == "classes":
        labels, classes = _csv_labels(table, label, label_above)
    else:
        labels = _csv_numbers(table, label, event)
    sites = None if site is None else np.array(read_full_column(table, site, "site"))
    used = [label, *(name for name in (site, event) if name is not None), *without]
    for name in without:
        if name not in table.cells:
            raise InputError(
                f"{path} has no column {name!r} to leave out; its columns are "
                f"{', '.join(table.columns)}"
            )
    inputs, columns = read_table_inputs(table, used, categories)
    return Dataset(
        *(inputs, labels),
        classes=classes,
        source=path.name,
        sites=sites,
        columns=columns,
        kind=kind,
    )


def _csv_numbers(table: Sheet, name: str, event: str | None) -> NDArray[np.float64]:
    """Return amounts; or times, each with 1 or 0 from the column of the event."""

    def read(column: str, use: str) -> NDArray[np.float64]:
        numbers = [_number(cell) for cell in read_full_column(table, column, use)]
        for row, number in enumerate(numbers):
            if number is None or not math.isfinite(number):
                raise InputError(
                    f'{table.where(row)} has "{shorten(table.cells[column][row])}" as its {use} '
                    f"({column}): give a number"
                )
        return np.array(numbers, dtype=np.float64)

    if event is None:
        return read(name, "label")
    times, events = read(name, "label"), read(event, "event")
    for row, (time, happened) in enumerate(zip(times, events, strict=True)):
        if time <= 0 or happened not in (0, 1):
            raise InputError(
                f"{table.where(row)} has the time {time:g} and the event {happened:g}: give a time "
                "above 0, and 1 if the event took place then or 0 if it had not"
            )
    return np.stack([times, events], axis=1)


def _csv_labels(table: Sheet, name: str, level: float | None) -> tuple[NDArray[Any], list[str]]:
    """Number the labels in their order: as numbers if all are, otherwise as texts."""
    cells, path = read_full_column(table, name, "label"), table.path
    for line, cell in zip(table.lines, cells, strict=True):
        if cell.lower() in ("nan", "inf", "-inf"):
            raise InputError(
                f"line {line} of {path} has the label {cell}: fill it in or leave the line out"
            )
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError:
        values = np.array(cells)
    if level is not None:
        return _split_labels(values, level, name, path)
    distinct, numbers = np.unique(values, return_inverse=True)
    if len(distinct) > max(20, len(cells) // 10) and values.dtype.kind == "f":
        raise InputError(
            f"column {name} of {path} has {len(distinct)} different values, so it is an amount and "
            "not a class; give label_above to learn whether it is above some value"
        )
    return numbers.astype(np.int64), [
        f"{value:g}" if values.dtype.kind == "f" else str(value) for value in distinct
    ]


def read_table(path: Path, expected: str) -> Sheet:
    """Read a CSV file whose first line names the columns; semicolons may stand for commas.

    path: the file.
    expected: a column it must have; it decides between commas and semicolons.
    """
    read = read_rows(path, expected)
    if len(read.cells) < 2:
        raise InputError(
            f"{path} {'has no rows below its header' if read.cells else 'is empty'}; it must have "
            "a line that names the columns and then a line for every sample"
        )
    names, lines, rows = read.cells[0], read.lines[1:], read.cells[1:]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} names the column {twice!r} twice; rename one of them")
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(names):
            raise InputError(
                f"line {line} of {path} has {len(row)} cells, the header {len(names)}: is the file "
                "cut short, or does a text with a comma lack quotes?"
            )
    cells = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return Sheet(read.path, lines, cells)


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
        raise InputError(f"{table.path} has no column to learn from besides {', '.join(used)}")
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
