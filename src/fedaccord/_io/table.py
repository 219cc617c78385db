"""Tables: those that people write by hand or save from a spreadsheet, and those that we write.

A table is a CSV file in any of the usual dialects, or an Excel workbook. A cell that could be read
in two ways is refused. In a CSV file that we write, a spreadsheet runs nothing.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedaccord._io.files import TABLES, read_bytes, read_json, replace_file
from fedaccord._io.numbers import GROUPED, shorten
from fedaccord._io.rows import (
    MARK_NAMES,
    MOST_ABOVE,
    Rows,
    clean_heading,
    count_known_headings,
    find_headings,
)
from fedaccord._io.sheet import escape_formula
from fedaccord.errors import InputError

# What the letters of other encodings look like in Windows-1252, as of the Macintosh: "SŸd".
MISREAD = re.compile(r"[€ƒ…†‡ˆ‰‹•˜™›Ÿ][a-zà-ÿ]")
# What the names of workbooks end in.
BOOKS = (".xlsx", ".xlsm")
# How files begin that are saved or sent in place of a table, and what they are.
FOREIGN = {
    **{b"%PDF": "a PDF", b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture"},
    **dict.fromkeys((b"<html", b"<!DOCTYPE", b"<!doctype", b"<table"), "a web page"),
}


def read_rows_or_json(path: str | Path, *, sheet: str | None = None) -> Rows | dict[str, Any]:
    """Read a table, or the JSON object of a file whose name does not end as that of a table.

    path: the file; a pipe has a name that says nothing.
    sheet: of a workbook; the first where left out.
    """
    data = read_bytes(path)
    named = sheet is not None or Path(path).suffix.lower() in TABLES
    if not named and re.match(rb"(?:\xef\xbb\xbf)?\s*\{", data):
        return read_json(path, data)
    return read_rows(path, sheet=sheet, data=data)


def read_rows(
    path: str | Path,
    expected: str | None = None,
    *,
    sheet: str | None = None,
    data: bytes | None = None,
) -> Rows:
    """Read a table, once: CSV in any of the usual dialects, or a workbook of Excel.

    path: the file.
    expected: a column that the first line must name; it decides which separator the file uses.
        Where left out, the headings of our tables decide.
    sheet: of a workbook; the first where left out.
    data: what the file holds, if it was read already.
    """
    found = _read_any(path, read_bytes(path) if data is None else data, expected, sheet)
    if expected is not None:
        return found
    if not found.cells:
        raise InputError(f"{path} is empty; save the table again, with its headings and numbers")
    table = found.without_title()
    heads = [clean_heading(head) for head in table.cells[0]]
    return replace(table, cells=[heads, *table.cells[1:]])


def _read_any(path: str | Path, data: bytes, expected: str | None, sheet: str | None) -> Rows:
    for start, kind in FOREIGN.items():
        if data.startswith(start):
            raise InputError(
                f"{path} is not a spreadsheet (it is {kind}); save the table as .xlsx or as CSV"
            )
    if data.startswith(b"PK\x03\x04"):
        from fedaccord._io.excel import read_workbook

        return Rows(str(path), *read_workbook(data, path, sheet, find_headings))
    if sheet is not None:
        raise InputError(f"{path} has no sheets; leave --sheet out, or name an .xlsx file")
    text, notes = _decode(data, path, strict=expected is not None)
    if Path(path).suffix.lower() in BOOKS:
        notes += (f"{path} is not a workbook, whatever its name, and is read as CSV",)
    skipped = 0
    separator = None
    if said := re.match(r"\s*\"?sep=(.)\"?[^\S\t\n]*\r?\n", text):
        separator, skipped = said[1], said[0].count("\n")
        text = text[said.end() :]
    first = next((row for row in text.splitlines() if row.strip()), "")
    if first.lstrip().startswith("{"):
        from fedaccord._io.nvflare import find_statistics

        found = find_statistics(text, path) if expected is None else None
        if found is not None:
            return found
        raise InputError(
            f"{path} is JSON and not a table; a game is taken by 'fedaccord solve' and "
            "'fedaccord plan' if its name ends in .json"
        )
    # Above the headings there may be a title.
    lines_above = [row for row in text.splitlines()[:MOST_ABOVE] if row.strip()]
    found_separator = _find_separator([first] if expected is not None else lines_above, expected)
    if separator and found_separator in first and not any(separator in row for row in lines_above):
        found_name = MARK_NAMES[found_separator]
        raise InputError(
            f"line {skipped} of {path} says that {separator!r} separates cells, and {found_name}s "
            f"do: delete line {skipped}"
        )
    separator = separator or found_separator
    lines, cells = _split_text(text, separator, path, skipped)
    return Rows(str(path), lines, cells, notes=notes, separator=separator)


def _split_text(
    text: str, separator: str, path: str | Path, above: int
) -> tuple[list[int], list[list[str]]]:
    """Return the lines of a CSV file that are not blank: where each ends, and its cells.

    text: of the file.
    separator: what stands between cells.
    path: the file, for messages.
    above: how many lines the file has above the text.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    lines: list[int] = []
    cells: list[list[str]] = []
    start = ended = above
    for row in _read_all(reader, path, above):
        start, ended = ended + 1, above + reader.line_num
        if any(cell.strip() for cell in row):
            lines.append(ended)
            cells.append([cell.strip() for cell in row])
            # Between commas an empty cell at the end may be half of a number's neighbour.
            while separator != "," and len(row) > len(cells[0]) and not cells[-1][-1]:
                cells[-1].pop()
                row.pop()
    # A quotation mark that is open takes all lines to the end into one cell.
    if ended > start and text.count('"') % 2:
        raise InputError(
            f"a quotation mark opens in line {start} of {path} and never closes: close it, or "
            "delete it"
        )
    return lines, cells


def _read_all(reader: Any, path: str | Path, above: int) -> Iterator[list[str]]:
    """Return the lines that a reader of CSV finds, or say in which it fails.

    reader: the reader.
    path: the file, for messages.
    above: how many lines the file has above those of the reader.
    """
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            line = above + reader.line_num
            raise InputError(
                f"line {line} of {path} is not CSV ({error}): correct it, or delete it"
            ) from None


def _decode(data: bytes, path: str | Path, *, strict: bool) -> tuple[str, tuple[str, ...]]:
    """Return a file's text, and what to say about how it was read.

    data: its content.
    path: its name, for messages.
    strict: whether to refuse what is neither UTF-8 nor UTF-16, as for data that is learned from.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0") and "EncryptedPackage".encode("utf-16-le") in data:
        raise InputError(
            f"{path} has a password: remove the password in the spreadsheet, and save it again"
        )
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError(f"{path} is an old Excel workbook; save it as .xlsx or as CSV")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16"), ()
        except UnicodeDecodeError:
            raise InputError(f"{path} is cut short; save it as CSV in UTF-8") from None
    # A zero byte is valid UTF-8, and the mark of UTF-16 that does not say so.
    if b"\x00" not in data:
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode("utf-8-sig")
            return text, _note_encoded_twice(text, path)
    # No text has control characters; and without them it is what Windows writes in Europe.
    try:
        if strict or re.search(rb"[\x00-\x08\x0e-\x1f]", data):
            raise ValueError
        text = data.decode("cp1252")
    except ValueError:
        if Path(path).suffix.lower() in BOOKS:
            raise InputError(
                f"{path} is not a workbook, whatever its name: save the table again as .xlsx or as "
                "CSV"
            ) from None
        raise InputError(f"{path} is not a text file in UTF-8; save it as one") from None
    words = re.findall(r"[^\s,;|\"]*[^\x00-\x7f][^\s,;|\"]*", text)
    if strange := next(filter(MISREAD.search, words), None):
        raise InputError(
            f"{path} is not in UTF-8, and not in Windows-1252, in which it names {strange!r}: save "
            "it as CSV in UTF-8"
        )
    return text, (
        f"{path} is not in UTF-8 and is read as Windows-1252: check that names are right, as "
        f"{shorten(words[0])!r}",
    )


def _note_encoded_twice(text: str, path: str | Path) -> tuple[str, ...]:
    """Return a note on a name that was saved in UTF-8 and then read as Windows-1252."""
    words = re.split(r"[\s,;|\"]+", text) if re.search("[ÃÂ].", text) else []
    for word in filter(re.compile("[ÃÂ]").search, words):
        with contextlib.suppress(UnicodeError):
            meant = word.encode("cp1252").decode("utf-8")
            return (
                f"{path} names {shorten(word)!r}, which is likely {shorten(meant)!r} in a wrong "
                "encoding: save the table again as CSV in UTF-8",
            )
    return ()


def _find_separator(first: Sequence[str], expected: str | None) -> str:
    """Return what separates the cells of a file, by its first lines.

    first: lines that are not blank; one of them has the headings.
    expected: a heading that the first line has, if one is known.
    """

    def split(line: str, separator: str) -> list[str]:
        with contextlib.suppress(csv.Error):
            return next(csv.reader([line], delimiter=separator), [])
        return []

    def count_known(heads: list[str]) -> int:
        if expected is not None:
            return sum(head.strip().lower() == expected.lower() for head in heads)
        return count_known_headings(heads)

    def rate(separator: str) -> tuple[int, int]:
        rows = [split(line, separator) for line in first]
        return max(map(count_known, rows), default=0), len(rows[0]) if rows else 0

    # Of equals the first.
    return max(MARK_NAMES, key=rate)


# Tables that we write.


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
