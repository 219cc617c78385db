"""Workbooks of Excel in and out, by openpyxl."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from fedaccord._checks import suggest
from fedaccord._io.files import replacing
from fedaccord._io.numbers import Date, Exact, Merged, Shown, Suspicion
from fedaccord._io.rows import MOST_ABOVE
from fedaccord._io.sheet import name_cell
from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.wording import join_with_and, pluralize

# How wide columns are that we write, in letters.
NARROWEST, WIDEST = 10, 60
# How many rows a note names that are struck through.
MOST_NAMED = 5
# What a format of numbers has besides their digits: texts, colours, and room for signs. Commas
# behind the last digit divide by thousands; with three decimals 2 is shown as 2.000.
UNSHOWN = re.compile(r'"[^"]*"|\[[^\]]*\]|[\\_*].')
SCALING = re.compile(r"[0#?],+(?![0#?,])")
THOUSANDTHS = re.compile(r"\.0{3}(?![0#?])")
# What a workbook of a table has far less of: a few kilobytes can unpack to cells for hours.
MOST_BYTES, MOST_CELLS, MOST_PLACES = 64 * 2**20, 300_000, 10**6


def read_workbook(
    data: bytes,
    path: str | Path,
    sheet: str | None,
    find_heads: Callable[[list[list[str]]], list[str]],
) -> tuple[list[int], list[list[str]], str, tuple[str, ...]]:
    """Return the rows of a sheet that are not blank: numbers, cells, "row", and what to say.

    data: the file's content.
    path: its name, for messages.
    sheet: the sheet's name; where left out, the first that is not hidden and holds a table.
    find_heads: the headings of cells that are a table that is looked for; none of others.
    """
    values, formulas = (_open(data, path, data_only=cached) for cached in (True, False))
    sheets = [one for one in values.worksheets if one.sheet_state == "visible"]
    titles = [one.title for one in values.worksheets]
    if sheet is not None and sheet not in titles:
        named = join_with_and([repr(title) for title in titles])
        meant = suggest(sheet, titles) or (
            f"; its sheets are {named}: name one of them"
            if len(titles) > 1
            else f"; the workbook has only the sheet {named}: leave --sheet out"
        )
        raise InputError(f"{path} has no sheet {sheet!r}{meant}")
    if not sheets:
        raise InputError(f"{path} has no sheet with cells; save the table as one, or as CSV")
    chosen = sheets[0] if sheet is None else values[sheet]
    tables: list[Any] = []
    if sheet is None:
        heads = {one.title: find_heads(_read_heads(one)) for one in sheets}
        tables = [one for one in sheets if heads[one.title]]
        chosen = next(iter(tables), chosen)
        _refuse_alike(
            [t for t, found in heads.items() if found and found == heads[chosen.title]], path
        )
    if (places := chosen.max_row * chosen.max_column) > MOST_PLACES:
        last = name_cell(chosen.max_column - 1, chosen.max_row)
        raise InputError(
            f"the sheet {chosen.title!r} of {path} reaches to cell {last}, which makes {places:,} "
            "cells: delete what is far from the table, or save the table as CSV"
        )
    lines, cells, struck = [], [], []
    for row in chosen.iter_rows():
        texts = [_read_cell(cell, formulas[chosen.title], path) for cell in row]
        if any(texts):
            lines.append(row[0].row)
            cells.append(texts)
        if any(text and cell.font.strike for cell, text in zip(row, texts, strict=True)):
            struck.append(row[0].row)
    _fill_merged(chosen, lines, cells)
    notes = _note_unseen(chosen, path, lines, cells, struck)
    others = sheet is None and sum(one.max_row > 1 for one in sheets if one is not chosen)
    which = "the first sheet" if chosen is sheets[0] else "one sheet"
    said = f"in {path} {which} is read, {chosen.title!r}; --sheet names another"
    if more := [one.title for one in tables if one is not chosen]:
        said += f". The sheet {more[0]!r} looks like such a table too, and is not read"
    if not cells and (away := [one.title for one in values.worksheets if one not in sheets]):
        raise InputError(
            f"the sheet {chosen.title!r} of {path} is empty, and the sheet {away[0]!r} is hidden: "
            f"--sheet {away[0]!r} reads it"
        )
    return lines, cells, "row", (*([said] if others else []), *notes)


def _refuse_alike(titles: Sequence[str], path: str | Path) -> None:
    """Refuse several sheets with the same columns, of which any could be meant."""
    if len(titles) > 1:
        raise InputError(
            f"the sheets {join_with_and([repr(title) for title in titles])} of {path} have the "
            "same columns: hide or delete all but one, or name one, as --sheet "
            f"{shlex.quote(titles[-1])}"
        )


def _fill_merged(sheet: Any, lines: list[int], cells: list[list[str]]) -> None:
    """Put into empty cells what they are merged with."""
    places = {line: place for place, line in enumerate(lines)}
    for area in sheet.merged_cells.ranges:
        first = (area.min_row, area.min_col)
        held = cells[places[first[0]]][first[1] - 1] if first[0] in places else ""
        for line in range(area.min_row, area.max_row + 1):
            for column in range(area.min_col, area.max_col + 1):
                if line in places and (line, column) != first:
                    cell = cells[places[line]][column - 1] = Merged()
                    below = column == area.min_col
                    cell.above, cell.left = (held, "") if below else ("", held)


def _note_unseen(
    sheet: Any, path: str | Path, lines: list[int], cells: list[list[str]], struck: list[int]
) -> list[str]:
    """Return notes on what is read though it is hidden or struck through.

    sheet: which is read.
    path: of the workbook, for messages.
    lines, cells: what is read.
    struck: the rows with cells that are struck through.
    """
    hidden = [line for line in lines if sheet.row_dimensions[line].hidden]
    notes = []
    if hidden:
        notes.append(f"hidden rows of {path} are read too, the first is row {hidden[0]}")
    away = {
        place - 1
        for area in sheet.column_dimensions.values()
        if area.hidden
        for place in range(area.min or 0, (area.max or 0) + 1)
    }
    full = [n for n in sorted(away) if any(n < len(row) and row[n] for row in cells)]
    if full:
        column = name_cell(full[0], 1).removesuffix("1")
        notes.append(f"hidden columns of {path} are read too, the first is column {column}")
    if struck:
        names = [str(line) for line in struck[:MOST_NAMED]]
        more = [f"{len(struck) - MOST_NAMED} more"] if len(struck) > MOST_NAMED else []
        which = f"{pluralize(len(struck), 'row', 'rows')} {join_with_and([*names, *more])}"
        notes.append(
            Suspicion(
                f"{which} of {path} {pluralize(len(struck), 'is', 'are')} struck through and read "
                "too: delete what does not count"
            )
        )
    return notes


def _read_heads(sheet: Any) -> list[list[str]]:
    """Return the first rows of a sheet that are not blank, as texts."""
    rows = sheet.iter_rows(max_row=MOST_ABOVE, values_only=True)
    texts = [["" if value is None else str(value).strip() for value in row] for row in rows]
    return [row for row in texts if any(row)]


def _open(data: bytes, path: str | Path, *, data_only: bool) -> Any:
    openpyxl = imported("openpyxl")
    try:
        _check_size(data, path)
        with warnings.catch_warnings():
            # On styles and validations, which are of no use here.
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(io.BytesIO(data), data_only=data_only)
    # A workbook may be broken in ways that its reader does not foresee.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        OSError,
        ParseError,
    ) as error:
        remedy = "save it as .xlsx or as CSV"
        if _has_chart_sheet(data):
            remedy = "delete the sheet that has only a chart, or save the table as CSV"
        raise InputError(f"{path} is not a workbook that can be read ({error}); {remedy}") from None


def _has_chart_sheet(data: bytes) -> bool:
    with (
        contextlib.suppress(zipfile.BadZipFile, RuntimeError),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        return any(name.startswith("xl/chartsheets/") for name in archive.namelist())
    return False


def _check_size(data: bytes, path: str | Path) -> None:
    """Raise an InputError at a workbook that unpacks to far more than a table."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        large = sum(member.file_size for member in archive.infolist()) > MOST_BYTES
        sheets = [name for name in archive.namelist() if name.endswith(".xml") and not large]
        # A null byte is every second one in UTF-16.
        counts = (archive.read(name).replace(b"\0", b"").count(b"<c") for name in sheets)
        if large or sum(counts) > MOST_CELLS:
            raise InputError(
                f"{path} unpacks to far more than a table: save the table alone, or as CSV"
            )


def _read_cell(cell: Any, formulas: Any, path: str | Path) -> str:
    value = cell.value
    if value is None:
        # A formula whose value is an empty text has the type of texts.
        if formulas.cell(cell.row, cell.column).data_type == "f" and cell.data_type != "str":
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
        text = str(int(value)) if whole else repr(float(value))
        return _mark_shown(text, cell.number_format) or Exact(text)
    if isinstance(value, date | time):
        # A date is kept with the time of midnight.
        return Date(str(value).removesuffix(" 00:00:00"))
    return str(value).strip()


def _mark_shown(text: str, code: str) -> Shown | None:
    """Return a number that its cell shows as another; nothing if it shows the number.

    text: the number.
    code: the format of its cell.
    """
    plain = UNSHOWN.sub("", code.split(";")[0])
    scaled = SCALING.search(plain) is not None
    if text == "0" or not (scaled or THOUSANDTHS.search(plain)):
        return None
    shown = Shown(text)
    shown.code, shown.scaled = code, scaled
    return shown


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
