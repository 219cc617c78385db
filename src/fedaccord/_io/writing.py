"""Tables that we write: CSV in which nothing is run, and workbooks of Excel."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from fedaccord._io.files import replace_file
from fedaccord._io.numbers import GROUPED

# A text that a spreadsheet would run, or one that was kept from it by an apostrophe.
FORMULA = re.compile(r" *'*[=+\-@\t\r\n＝＋－＠]")


def write_table(path: str | Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file or a workbook of Excel, by the file's name, replacing it in one step.

    path: the file.
    columns: the names in the first line.
    rows: the cells below it.
    """
    if Path(path).suffix == ".xlsx":
        from fedaccord._io.excel import write_workbook

        write_workbook(path, list(columns), rows)
        return
    replace_file(path, format_table(columns, rows))


def format_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV.

    columns: the names in the first line.
    rows: the cells below it.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_write_cell, columns))
    writer.writerows(map(_write_cell, row) for row in rows)
    return text.getvalue()


def _write_cell(value: object) -> str:
    """Write a cell so that it is read as the same again, and no spreadsheet runs it."""
    if isinstance(value, float):
        text = repr(value)
        # With three digits behind the point it could be thousands.
        return text + "0" if GROUPED.fullmatch(text) else text
    return escape_formula(value) if isinstance(value, str) else str(value)


def escape_formula(text: str) -> str:
    """Return a text for a cell of a CSV file, with an apostrophe if a spreadsheet would run it."""
    return f"'{text}" if FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Take away the apostrophe that keeps a spreadsheet from running a text."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text
