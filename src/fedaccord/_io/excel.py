"""Workbooks of Excel in and out, by openpyxl."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from fedaccord._checks import suggest
from fedaccord._io.files import replacing
from fedaccord._io.numbers import Date, Exact
from fedaccord._io.table import MOST_ABOVE, name_cell
from fedaccord._lazy import imported
from fedaccord.errors import InputError

# How wide columns are that we write, in letters.
NARROWEST, WIDEST = 10, 60


def read_workbook(
    data: bytes,
    path: str | Path,
    sheet: str | None,
    is_table: Callable[[list[list[str]]], bool] = bool,
) -> tuple[list[int], list[list[str]], str, tuple[str, ...]]:
    """Return the rows of a sheet that are not blank: numbers, cells, "row", and what to say.

    data: the file's content.
    path: its name, for messages.
    sheet: the sheet's name; where left out, the first that is not hidden and holds a table.
    is_table: whether cells are a table that is looked for.
    """
    values, formulas = (_open(data, path, data_only=cached) for cached in (True, False))
    sheets = [one for one in values.worksheets if one.sheet_state == "visible"]
    titles = [one.title for one in values.worksheets]
    if sheet is not None and sheet not in titles:
        meant = suggest(sheet, titles) or f"; there are {', '.join(titles)}"
        raise InputError(f"{path} has no sheet {sheet!r}{meant}")
    if not sheets:
        raise InputError(f"{path} has no sheet with cells; save the table as one, or as CSV")
    chosen = sheets[0] if sheet is None else values[sheet]
    if sheet is None:
        tables = (one for one in sheets if is_table(_read_heads(one)))
        chosen = next(tables, chosen)
    lines, cells = [], []
    for row in chosen.iter_rows():
        texts = [_read_cell(cell, formulas[chosen.title], path) for cell in row]
        if any(texts):
            lines.append(row[0].row)
            cells.append(texts)
    hidden = [line for line in lines if chosen.row_dimensions[line].hidden]
    notes = [f"hidden rows of {path} are read too, the first is row {hidden[0]}"] if hidden else []
    others = sheet is None and sum(one.max_row > 1 for one in sheets if one is not chosen)
    which = "the first" if chosen is sheets[0] else "one"
    said = f"of the sheets of {path} {which} is read, {chosen.title!r}; --sheet names another"
    return lines, cells, "row", (*([said] if others else []), *notes)


def _read_heads(sheet: Any) -> list[list[str]]:
    """Return the first rows of a sheet that are not blank, as texts."""
    rows = sheet.iter_rows(max_row=MOST_ABOVE, values_only=True)
    texts = [["" if value is None else str(value).strip() for value in row] for row in rows]
    return [row for row in texts if any(row)]


def _open(data: bytes, path: str | Path, *, data_only: bool) -> Any:
    openpyxl = imported("openpyxl")
    try:
        with warnings.catch_warnings():
            # On styles and validations, which are of no use here.
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(io.BytesIO(data), data_only=data_only)
    # A workbook may be broken in ways that its reader does not foresee.
    except (
        zipfile.BadZipFile,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        OSError,
        ParseError,
    ) as error:
        raise InputError(
            f"{path} is no workbook that can be read ({error}); save it as .xlsx or as CSV"
        ) from None


def _read_cell(cell: Any, formulas: Any, path: str | Path) -> str:
    value = cell.value
    if value is None:
        if formulas.cell(cell.row, cell.column).data_type == "f":
            name = name_cell(cell.column - 1, cell.row)
            raise InputError(
                f"cell {name} of {path} has a formula without a value: type the value in its "
                "place, or open the file in a spreadsheet and save it there"
            )
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float) and "%" in cell.number_format:
        # 0.874 that is shown as 87.4 %.
        return f"{Decimal(repr(float(value))).scaleb(2).normalize():f} %"
    if isinstance(value, int | float):
        whole = float(value).is_integer() and abs(value) < 2**53
        return Exact(int(value) if whole else repr(float(value)))
    if isinstance(value, date | time):
        # A date is kept with the time of midnight.
        return Date(str(value).removesuffix(" 00:00:00"))
    return str(value).strip()


def write_workbook(
    path: str | Path, columns: Sequence[str], rows: Iterable[Iterable[object]]
) -> None:
    """Write a workbook with one sheet, replacing the file in one step.

    path: the file.
    columns: the names in the first row.
    rows: the cells below it.
    """
    try:
        content = format_workbook(columns, rows)
    except imported("openpyxl.utils.exceptions").IllegalCharacterError as error:
        raise InputError(f"cannot write {path}: {error}; save it as CSV") from None
    with replacing(path) as file:
        file.write(content)


def format_workbook(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> bytes:
    """Return a workbook with one sheet, its columns as wide as what they hold.

    columns: the names in the first row.
    rows: the cells below it.
    """
    book = imported("openpyxl").Workbook()
    sheet = book.active
    sheet.freeze_panes = "A2"
    widths = [NARROWEST] * len(columns)
    for line, row in enumerate([columns, *rows], start=1):
        for place, value in enumerate(row, start=1):
            cell = sheet.cell(line, place, value)
            if isinstance(value, str):
                # A text, whatever it begins with: no name is run as a formula.
                cell.data_type = "s"
            widths[place - 1] = min(max(widths[place - 1], len(str(value)) + 2), WIDEST)
    for place, width in enumerate(widths):
        sheet.column_dimensions[name_cell(place, 1)[:-1]].width = width
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()
