"""Tables that people write by hand or save from a spreadsheet, and those we write.

A table is a CSV file in any of the usual dialects, or an Excel workbook. A cell that could be read
in two ways is refused.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from fedaccord._checks import clean_name, find_closest
from fedaccord._io.files import TABLES, read_bytes, read_json, replace_file
from fedaccord._io.kinds import (
    FAILED,
    HISTOGRAMS,
    MEANS,
    MEMBERS,
    OWN,
    PILOTS,
    PROPOSAL,
    TOTALS,
    TYPES,
    TableKind,
    simplify,
)
from fedaccord._io.numbers import (
    ERROR,
    GROUPED,
    PLAIN,
    PLAINER,
    SUPPRESSED,
    Date,
    Marks,
    Merged,
    find_middle,
    read_number,
    read_share,
    shorten,
    to_share,
)
from fedaccord.errors import InputError
from fedaccord.wording import SPOKEN, join_with_and, pluralize

# A text that a spreadsheet would run, or one that was kept from it by an apostrophe.
FORMULA = re.compile(r" *'*[=+\-@\t\r\n＝＋－＠]")
# Above the headings of a table there may be a title, of up to so many lines.
MOST_ABOVE = 10
# A share above 1 and below this is a slip of the pen, not one in per cent without its sign.
LEAST_PERCENT = 10
# A number as a pilot's name, and how a text begins that is a note and no agent.
NUMBERED = re.compile(r"[0-9]+(?:[.,]0+)?")
NOTE = re.compile(
    r"[*†‡¹²³]|[(\[]?[0-9a-z][)\]]|[^:]{2,30}: |(?:note|notes|hinweis|anmerkung)\b", re.IGNORECASE
)
# The most words in the name of an agent; a longer text is likely a note.
MOST_WORDS = 4
# A cell with a letter.
TEXT = re.compile(r"[^\W\d_]")
# Numbers of samples have at most so many digits.
MOST_DIGITS = 15
# What the letters of other encodings look like in Windows-1252, as of the Macintosh: "SŸd".
MISREAD = re.compile(r"[€ƒ…†‡ˆ‰‹•˜™›Ÿ][a-zà-ÿ]")
MARK_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# How files begin that are saved or sent in place of a table, and what they are.
FOREIGN = {
    **{b"%PDF": "a PDF", b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture"},
    **dict.fromkeys((b"<html", b"<!DOCTYPE", b"<!doctype", b"<table"), "a web page"),
}


@dataclass(frozen=True)
class Rows:
    """The lines of a table that are not blank.

    path: the file, for messages.
    lines: the number of each line.
    cells: its cells, without the blanks round them.
    unit: what a line is called: "row" in a workbook.
    notes: what to say about how it was read.
    separator: what stands between the cells of a line.
    """

    path: str
    lines: list[int]
    cells: list[list[str]]
    unit: str = "line"
    notes: tuple[str, ...] = ()
    separator: str = ","

    @property
    def kind(self) -> TableKind | None:
        """The kind of table that the first line is of, if it is one of ours."""
        heads = self.cells[0] if self.cells else []
        found = {column for head in heads if (column := PILOTS.find_column(head))}
        counts = {column for head in heads if (column := HISTOGRAMS.find_column(head))}
        if "pilot" in found or {"contribution", "accuracy"} <= found:
            return PILOTS
        if {"label", "count"} <= counts:
            return HISTOGRAMS
        if "contribution" in found:
            return PROPOSAL
        return HISTOGRAMS if "agent" in found and "accuracy" not in found else None

    def find_names(self) -> str | None:
        """Return the heading of the only column with texts, if it has a different one in each line.

        So the agents stand in a table of label histograms, or a list, whatever their column is
        called.
        """
        heads, below = self.cells[0], self.cells[1:]
        columns = {
            head: [row[place].casefold() if place < len(row) else "" for row in below]
            for place, head in enumerate(heads)
            if head
        }
        texts = [head for head, cells in columns.items() if any(map(TEXT.search, cells))]
        if min(len(columns), len(below)) < 2 or len(texts) != 1 or not all(columns[texts[0]]):
            return None
        return texts[0] if _are_different(columns[texts[0]]) else None

    @property
    def document(self) -> str:
        """What holds one table and no more, in words."""
        return "sheet" if self.unit == "row" else "file"

    @property
    def has_measures(self) -> bool:
        """Whether the columns are those of pilots with several measures."""
        heads = {simplify(head) for head in self.cells[0]} if self.cells else set()
        return {"pilot", "measure", "value"} <= heads

    def without_title(self) -> Rows:
        """Return the rows from the headings on, where a title or groups of headings stand above."""
        for place, row in enumerate(self.cells[:MOST_ABOVE]):
            if _is_above_headings(row, *self.cells[place + 1 : place + 2]):
                continue
            if sum(map(bool, row)) > 1:
                below = replace(self, lines=self.lines[place:], cells=self.cells[place:])
                if place == 0 or below.kind is None:
                    return self
                said = f"headings of {self.path} found in {self.unit} {self.lines[place]}; "
                said += f"{self.unit}s above were skipped"
                return replace(below, notes=(*self.notes, said))
        return self

    def to_sheet(self, kind: TableKind) -> Sheet:
        """Read the first line as names of columns, and what is below it as their cells.

        kind: the kind of table that it must be.
        """
        if len(self.cells) < 2:
            raise InputError(
                f"{self.path} has nothing below its first line; it must start with a line such as "
                f"{kind.example}, and hold numbers below it"
            )
        self._check_kind(kind)
        return self._join_tables()._take_apart(kind)

    def _take_apart(self, kind: TableKind) -> Sheet:
        """Return the columns of one table, whose kind is right."""
        places, percents, renamed = _find_columns(self, kind)
        self._check_widths()
        if kind is PROPOSAL and (heading := self._find_names(places)):
            places["agent"] = places.pop(heading)
            renamed.append(f"the column {heading!r} is read as agent")
        self._check_strays(kind, places)
        notes = list(self.notes)
        if renamed:
            notes.append(f"in {self.path} {_join(renamed)}")
        notes += [] if kind.labels else self._note_unread(kind, places)
        rows = self.cells[1:]
        cells = {name: [row[place] for row in rows] for name, place in places.items()}
        for name in cells:
            if TYPES.get(name) == "name":
                cells[name] = [c.above if isinstance(c, Merged) else c for c in cells[name]]
            # A workbook needs no apostrophe to keep a text from being run.
            if TYPES.get(name) == "name" and self.unit == "line":
                cells[name] = [_unescape(cell) for cell in cells[name]]
            if TYPES.get(name) == "name":
                cells[name] = list(map(clean_name, cells[name]))
        return Sheet(
            path=self.path,
            lines=self.lines[1:],
            cells=cells,
            unit=self.unit,
            kind=kind,
            places=places,
            percents=frozenset(percents),
            notes=notes,
        ).without_total()

    def _find_names(self, places: Mapping[str, int]) -> str | None:
        """Return the column of a proposal that names its agents under a heading of its own.

        Without names the proposal is in the order of the game, and then it has no texts at all.

        places: where each column stands.
        """
        if "agent" in places:
            return None
        below = {
            name: [row[place].casefold() for row in self.cells[1:]]
            for name, place in places.items()
            if name not in (*PROPOSAL.needed, *PROPOSAL.own)
        }
        texts = [name for name, cells in below.items() if any(map(TEXT.search, cells))]
        named = [name for name in texts if all(below[name]) and _are_different(below[name])]
        if texts and len(named) != 1:
            raise InputError(
                f"{self.path} has no column 'agent', and texts in the "
                f"{pluralize(len(texts), 'column')} {join_with_and(list(map(repr, texts)))}: call "
                "the column with the names of the agents 'agent', and delete other texts"
            )
        return named[0] if named else None

    def _note_unread(self, kind: TableKind, places: Mapping[str, int]) -> list[str]:
        """Return notes on columns that are not read; refuse one that is likely misspelt.

        kind: of table.
        places: where each column stands.
        """
        notes = []
        known = (*kind.needed, *kind.own)
        free = [name for name in known if name not in places]
        for name in places:
            if name in known:
                continue
            if meant := kind.find_misspelt(name, free):
                raise InputError(
                    f"the column {name!r} of {self.path} is likely the {meant}: call it {meant!r}, "
                    "or delete it"
                )
            near = find_closest(name, free)
            said = f"; if it is the {near}, call it {near!r}" if near else ""
            notes.append(f"the column {name!r} of {self.path} is not read{said}")
        return notes

    def _check_kind(self, kind: TableKind) -> None:
        heads = [head for head in self.cells[0] if head]
        columns = [kind.find_column(head) for head in heads]
        found = self.kind
        if kind is PROPOSAL and (
            # Accuracies may stand next to contributions, and one column of numbers be anything.
            (found is PILOTS and "pilot" not in map(PILOTS.find_column, heads))
            or (found is HISTOGRAMS and len(heads) < 3)
        ):
            found = kind
        if kind is MEMBERS and (found is HISTOGRAMS or "limit" in columns):
            # What each has may stand under any of the headings that mean counts.
            found = kind
        if found is not None and found is not kind:
            raise InputError(
                f"{self.path} is {found.title}, and {kind.title} is needed here: "
                f"{found.use.format(path=self.path)}"
            )
        strangers = [h for h, column in zip(heads, columns, strict=True) if column is None]
        if kind is PILOTS and self.has_measures and "accuracy" not in columns:
            raise InputError(
                f"{self.path} has pilots of several measures, and pilots of an accuracy are needed "
                f"here: 'fedaccord solve {self.path}' takes it"
            )
        missing = [name for name in kind.needed if name not in columns]
        self._refuse_wide(kind, missing, strangers)
        where = f"{self.unit} {self.lines[0]}"
        for name in missing:
            near = find_closest(name, strangers)
            meant = f"; is it the column {near!r}? rename it" if near else ""
            # A proposal can do without names; a heading that is not ours may still mean them.
            unknown = dict.fromkeys(["agent", *missing] if "agent" not in columns else missing)
            known = "; ".join(
                f"for the {one}: {', '.join(map(repr, kind.headings(one)))}" for one in unknown
            )
            raise InputError(
                f"{self.path} has no column {name!r}{meant}; its headings in {where} are "
                f"{', '.join(map(repr, heads))}; "
                f"accepted are, {known}"
            )

    def _refuse_wide(self, kind: TableKind, missing: list[str], strangers: list[str]) -> None:
        """Refuse a table with columns of its own for each agent, as 'Hill cases', 'Hill acc'."""
        ends = [kind.find_column(head.split()[-1]) for head in strangers if " " in head]
        columns = [column for column in ends if column in missing]
        if "agent" in missing and len(columns) > len(set(columns)):
            needed = ", ".join(kind.needed)
            raise InputError(
                f"{self.path} has columns of its own for each agent, as {strangers[0]!r}: write "
                f"one {self.unit} for each agent and pilot, with the columns {needed}"
            )

    def _join_tables(self) -> Rows:
        """Return the rows without headings that come again, or refuse another table below."""
        heads = _fold_heads(self.cells[0])
        again = []
        for place in range(1, len(self.cells)):
            row = self.cells[place]
            apart = self.lines[place] > self.lines[place - 1] + 1
            if _fold_heads(row) == heads:
                again.append(place)
            elif _is_headings(row, apart=apart):
                raise InputError(
                    f"another table begins in {self.unit} {self.lines[place]} of {self.path}, with "
                    f"the headings {', '.join(repr(cell) for cell in row if cell)}: move it to a "
                    f"{self.document} of its own"
                )
        if not again:
            return self
        kept = [place for place in range(len(self.cells)) if place not in again]
        said = f"{self.unit} {self.lines[again[0]]} of {self.path} has the headings again"
        said += ": what is below it is read as the same table"
        return replace(
            self,
            lines=[self.lines[place] for place in kept],
            cells=[self.cells[place] for place in kept],
            notes=(*self.notes, said),
        )

    def _check_widths(self) -> None:
        """Refuse lines with more or fewer cells than the first.

        A separator at the end of every line below the first is a habit of some programs.
        """
        width = len(self.cells[0])
        surplus = min(len(row) - width for row in self.cells[1:])
        for line, row in zip(self.lines[1:], self.cells[1:], strict=True):
            if len(row) != width + max(surplus, 0) or any(row[width:]):
                remedy = self._find_width_remedy(row, width)
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                raise InputError(
                    f"{self.unit} {line} of {self.path} has {cells}, the headings {width}: {remedy}"
                )

    def _check_strays(self, kind: TableKind, places: Mapping[str, int]) -> None:
        """Refuse lines that are not of the table, as a note.

        kind: of table.
        places: where each column stands.
        """
        agent = places.get("agent")
        for line, row in zip(self.lines[1:], self.cells[1:], strict=True):
            where = f"{self.unit} {line} of {self.path}"
            said = [(place, cell) for place, cell in enumerate(row) if cell]
            place, text = said[0]
            # An agent may stand alone in its line, and then it has no samples.
            stray = place != agent or kind is PILOTS or NOTE.match(text)
            is_text = re.search(r"[^\W0-9]", text) and not is_total(text)
            if len(said) == 1 < len(places) and stray and is_text and not text.startswith("#"):
                raise InputError(f"{where} looks like a note: delete it")
            if len(said) == 1 < len(places) and kind is PROPOSAL and _is_long(text):
                raise InputError(
                    f"{where} looks like a note: delete it, or fill in the missing cells"
                )

    def _find_width_remedy(self, row: list[str], width: int) -> str:
        """Return what to do about a line with more or fewer cells than the headings."""
        if len(row) <= width:
            fill = "fill in the missing cells"
            if len(row) == 1 and NOTE.match(row[0]):
                return "it looks like a note; delete it"
            if any(cell[:1].isdigit() for cell in row):
                return fill
            if width > 2 or NOTE.match(row[0]):
                return "it looks like a note; delete it"
            return f"it looks like a note; delete it, or {fill}" if _is_long(row[0]) else fill
        for one, other in pairwise(row):
            if one and other and not re.search(r"[0-9]", one + other):
                name = f"{one}{self.separator.strip()} {other}"
                mark = MARK_NAMES.get(self.separator, "separator")
                return f'put a name with a {mark} in quotes, as "{name}"'
        if self.separator == ",":
            return "write numbers without commas, as 1700 or 0.85"
        return "delete the cells without a heading"


@dataclass(frozen=True)
class Sheet:
    """A table taken apart by columns.

    path: the file, for messages.
    lines: the line of the file that every row stands in.
    cells: by the columns' names the texts below them, empty where there is none.
    unit: what a line is called.
    kind: of table.
    places: where in the file each column stands.
    percents: columns whose heading says that they are in per cent.
    notes: what to say about how it was read.
    """

    path: str
    lines: list[int]
    cells: dict[str, list[str]]
    unit: str = "line"
    kind: TableKind = PROPOSAL
    places: dict[str, int] = field(default_factory=dict)
    percents: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.cells)

    def column(self, name: str) -> list[str]:
        """Return the cells of a column; empty texts where there is no such column."""
        return self.cells.get(name, [""] * len(self.lines))

    def where(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return f"{self.unit} {self.lines[row]} of {self.path}"

    def names(self, column: str) -> tuple[str, ...]:
        """Return the different names in a column, in the order in which they come."""
        cells = self.column(column)
        seen: dict[str, int] = {}
        for row, name in enumerate(cells):
            if not name:
                raise InputError(f"{self.where(row)} names no {column}{self._fill_name(row)}")
            if name.startswith("#") and name.endswith(("!", "?", "/A")):
                raise InputError(f'{self.where(row)} has "{name}" for the {column}: {ERROR}')
            key = _fold(name)
            if column == "pilot":
                # A spreadsheet turns 2 into 2.0, or 02.
                key = (
                    re.sub(r"0*([0-9]+)(?:[.,]0+)?", r"\1", key) if NUMBERED.fullmatch(key) else key
                )
            first = seen.setdefault(key, row)
            if cells[first] != name:
                raise InputError(
                    f"{self.where(row)} names the {column} {name!r} and {self.unit} "
                    f"{self.lines[first]} {cells[first]!r}: use the same spelling everywhere"
                )
        return tuple(dict.fromkeys(cells))

    def _fill_name(self, row: int) -> str:
        """Return what to do about a line without a name; it may be one of sums, or of units."""
        columns = [
            name for name in self.cells if name in ("contribution", "count") or self._is_label(name)
        ]
        with contextlib.suppress(InputError):
            read = [self.numbers(name, suppressed=True) for name in columns]
            if all(cells[row] and 2 * cells[row] == math.fsum(cells) for cells in read):
                return f", and is the sum of the others: delete the {self.unit}"
        return f"; fill it in, or delete the {self.unit}"

    def numbers(self, name: str, *, suppressed: bool = False) -> list[float]:
        """Return the numbers of a column, NaN where a cell is empty, or raise an InputError.

        name: the column.
        suppressed: whether counts such as <11 may stand for the middle of what they can be.
        """
        cells = self.cells[name]
        bounds = [SUPPRESSED.fullmatch(cell) if suppressed else None for cell in cells]
        return [
            find_middle(bound) if bound else self.number(name, row)
            for row, bound in enumerate(bounds)
        ]

    def number(self, name: str, row: int) -> float:
        """Return the number in a cell, NaN where it is empty, or raise an InputError."""
        text, kind = self.cells[name][row], self.kind.type_of(name)
        if not text:
            return math.nan
        if isinstance(text, Date):
            raise InputError(
                f"{self.describe(name, row)} is a date, {text}: format the cell as a number and "
                "type the number again"
            )
        if kind == "share":
            return self._read_share(name, row)
        if PLAIN.fullmatch(text) and len(text) <= MOST_DIGITS:
            return float(text)
        what = self.describe(name, row)
        if text.endswith(("%", "‰")):
            raise InputError(f'{what} reads "{shorten(text)}": write a number of samples')
        value = read_number(text, what, self.marks, kind=kind, column=name)
        if value < 0:
            raise InputError(
                f"{what} is negative ({value:.15g}): give a number that is zero or more"
            )
        if kind == "count" and value >= 10**MOST_DIGITS:
            raise InputError(
                f'{what} reads "{shorten(text)}", which is more than anyone has: write the number '
                "of samples"
            )
        if kind == "count" and math.isclose(value, round(value)):
            # A formula leaves 420.00000000000006 where it means 420.
            return float(round(value))
        if kind == "count":
            remedy = "write a whole number"
            if name == "contribution" and 0 < value < 1:
                remedy = "write how many samples it gave, not which part of what it has"
            raise InputError(f"{what} is {value:.15g}: {remedy}")
        return value

    def _read_share(self, name: str, row: int) -> float:
        text, what = self.cells[name][row], self.describe(name, row)
        if name == "accuracy" and text.casefold() in FAILED:
            return math.nan
        value = read_share(text, what, self.marks, column=name)
        if name in self.percents and not text.translate(PLAINER).endswith("%"):
            if 0 < value <= 1:
                raise InputError(
                    f"{what} is {value:g} below a heading with %: write it in per cent, or take "
                    "the sign out of the heading"
                )
            value = to_share(value)
        if not 0 <= value <= 1:
            remedy = "it must lie between 0 and 1"
            if value > 1:
                remedy += ", or end with %, such as 87.2 %"
            if LEAST_PERCENT <= value <= 100:
                remedy = f"did you mean {value / 100:g}, or {value:g} %?"
                remedy += f' For a column in per cent, write the heading "{name} (%)"'
            raise InputError(f"{what} is {value:g}: {remedy}")
        return value

    def describe(self, name: str, row: int) -> str:
        """Return what a cell is and where it stands, for messages."""
        label = name not in TYPES
        what = f"the count of {name}" if label else f"the {name}"
        if name == "count" and "label" in self.cells:
            what = f"the count of {self.cells['label'][row]}"
        owner = self.cells["agent"][row] if "agent" in self.cells else ""
        whose = f" of {owner}" if owner else ""
        cell = ""
        if self.unit == "row" and name in self.places:
            cell = f" (cell {name_cell(self.places[name], self.lines[row])})"
        return f"{what}{whose} in {self.where(row)}{cell}"

    @cached_property
    def marks(self) -> Marks:
        """What points and commas mean in this file, by all its cells."""
        marks = Marks()
        for name, cells in self.cells.items():
            kind = self.kind.type_of(name)
            if kind != "name" and (name in TYPES or self._is_label(name)):
                for row, cell in enumerate(cells):
                    if cell and not PLAIN.fullmatch(cell):
                        marks.learn(cell, kind, name, partial(self.describe, name, row))
        return marks

    def _is_label(self, name: str) -> bool:
        """Return whether a column has the counts of a label, in a table that is wide."""
        return self.kind.labels and name not in TYPES and "label" not in self.cells

    def own_fields(self, agents: Sequence[str]) -> dict[str, list[float]]:
        """Return the numbers that agents have one of each, by the field that keeps them.

        agents: whose numbers to return; the column "agent" says whose row it is.
        """
        columns = [name for name in self.kind.own if name in OWN]
        return {OWN[name][0]: self._own_numbers(name, agents, OWN[name][1]) for name in columns}

    def _own_numbers(self, name: str, agents: Sequence[str], otherwise: float) -> list[float]:
        if name not in self.cells:
            return [otherwise] * len(agents)
        found: dict[str, float] = {}
        owners = zip(self.column("agent"), self.numbers(name), strict=True)
        for row, (owner, value) in enumerate(owners):
            if not math.isnan(value) and found.setdefault(owner, value) != value:
                raise InputError(
                    f"the {name} of {owner} is {found[owner]:g} in one {self.unit} of {self.path} "
                    f"and {value:g} in {self.unit} {self.lines[row]}: an agent has one {name}; "
                    "correct one"
                )
        return [found.get(agent, otherwise) for agent in agents]

    def without_total(self) -> Sheet:
        """Return the sheet without a last line that sums up the others, or refuse a wrong one."""
        column = "agent" if "agent" in self.cells else None
        named = self.column("agent")
        first = self.cells[min(self.places, key=lambda name: self.places[name])]
        titles = [own or (other if column else "") for own, other in zip(named, first, strict=True)]
        means = [row for row, title in enumerate(titles) if _fold(title) in MEANS]
        if means and len(self.lines) > 1:
            raise InputError(
                f"{self.where(means[0])} is called {titles[means[0]]!r}, like a line that sums up "
                "others: leave it out"
            )
        sums = [row for row, title in enumerate(titles) if is_total(title)]
        if not sums or len(self.lines) == 1:
            return self
        last = len(self.lines) - 1
        if sums != [last]:
            raise InputError(
                f"{self.where(sums[0])} is called {titles[sums[0]]!r}, like a line of totals: "
                "leave such lines out"
            )
        cells = {name: texts[:last] for name, texts in self.cells.items()}
        rest = replace(self, lines=self.lines[:last], cells=cells)
        for name in self.cells:
            if name in ("contribution", "count") or self._is_label(name):
                self._check_total(name, rest, titles[last])
        self.notes.append(
            f"{self.where(last)}, {titles[last]!r}, is a line of totals and is left out"
        )
        return rest

    def _check_total(self, name: str, rest: Sheet, title: str) -> None:
        """Refuse a sum that is not one; counts that were withheld leave it some room.

        name: the column.
        rest: the sheet without the sums.
        title: what the line of sums is called.
        """
        last = len(self.lines) - 1
        bounds = [SUPPRESSED.fullmatch(cell) for cell in rest.cells[name]]
        room = sum(2 * find_middle(bound) for bound in bounds if bound)
        values = rest.numbers(name, suppressed=True)
        total = self.number(name, last)
        known = sum(v for v, b in zip(values, bounds, strict=True) if b is None and v == v)
        if total < known - 1e-9 * abs(known) or total > (known + room) * (1 + 1e-9):
            raise InputError(
                f"{self.describe(name, last)} is {total:g}, and the sum of the others is "
                f"{known:g}: correct the {self.unit} {title!r}, or leave it out"
            )


def name_cell(place: int, line: int) -> str:
    """Return a cell's name in a spreadsheet, as C5."""
    letters = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{line}"


def is_total(name: str) -> bool:
    """Return whether a line or a label is called like one that sums up the others."""
    return _fold(name).rstrip(":.") in TOTALS


def _are_different(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _is_long(text: str) -> bool:
    """Return whether a text has more words than names of agents have."""
    return len(text.split()) > MOST_WORDS


def _fold(name: str) -> str:
    return re.sub(r"\s+", "", name.translate(PLAINER)).casefold()


def _join(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _unescape(text: str) -> str:
    """Take away the apostrophe that keeps a spreadsheet from running a text."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def _find_columns(rows: Rows, kind: TableKind) -> tuple[dict[str, int], list[str], list[str]]:
    """Return where each column stands, those in per cent, and what was read by another name."""
    places: dict[str, int] = {}
    percents, renamed = [], []
    for place, heading in enumerate(rows.cells[0]):
        if not heading:
            # A spreadsheet may leave empty columns, at the end of every line or elsewhere.
            _refuse_cells_below(rows, place)
            continue
        column = kind.find_column(heading) or heading
        if column in places:
            _refuse_twice(rows, column, places[column], place)
        places[column] = place
        if column in TYPES and "%" in heading:
            if kind.type_of(column) != "share":
                raise InputError(
                    f"the column {heading!r} of {rows.path} is in per cent: write numbers, and "
                    f"call it {column!r}"
                )
            percents.append(column)
        if column in TYPES and simplify(heading) not in (column, SPOKEN.get().rename(column)):
            renamed.append(f"the column {heading!r} is read as {column}")
    return places, percents, renamed


def _refuse_twice(rows: Rows, column: str, first: int, second: int) -> NoReturn:
    """Refuse two headings for one column; beyond a gap they are likely of another table.

    rows: the table.
    column: what both headings mean.
    first, second: where they stand.
    """
    before, heading = rows.cells[0][first], rows.cells[0][second]
    where = f"{rows.unit} {rows.lines[0]} of {rows.path}"
    if not all(rows.cells[0][first:second]):
        raise InputError(
            f"{where} names the column {column!r} twice, the second time beyond an empty column: "
            f"move a table that stands next to another to a {rows.document} of its own"
        )
    raise InputError(
        f"{where} names the column {column!r} twice; rename one of them"
        if before.casefold() == heading.casefold()
        else f"{where} has two columns for the {column}, {before!r} and {heading!r}: "
        "leave one out, or rename it"
    )


def _refuse_cells_below(rows: Rows, place: int) -> None:
    """Refuse a column without a heading that has a cell below, and name the first."""
    for line, row in zip(rows.lines[1:], rows.cells[1:], strict=True):
        if place < len(row) and row[place]:
            cell = name_cell(place, line)
            book = rows.unit == "row"
            column = cell.removesuffix(str(line)) if book else place + 1
            where = f"cell {cell}" if book else f"line {line}"
            raise InputError(
                f"column {column} of {rows.path} has no name in {rows.unit} {rows.lines[0]}, and "
                f"{where} has {shorten(row[place])!r}{'' if book else ' in it'}: give it a name, "
                "or delete what stands in it"
            )


# Files.


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

        return Rows(str(path), *read_workbook(data, path, sheet, _find_headings))
    if sheet is not None:
        raise InputError(f"{path} has no sheets; leave --sheet out, or name an .xlsx file")
    text, notes = _decode(data, path, strict=expected is not None)
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
    if separator is None:
        # Above the headings there may be a title.
        lines_above = [row for row in text.splitlines()[:MOST_ABOVE] if row.strip()]
        separator = _find_separator([first] if expected is not None else lines_above, expected)
    try:
        lines, cells = _split_text(text, separator, path, skipped)
    except csv.Error as error:
        raise InputError(f"{path} is not CSV ({error}); save it again") from None
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
    for row in reader:
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


def clean_heading(text: str) -> str:
    """Return a heading in one line, with single spaces."""
    return " ".join(clean_name(text).split())


def _count_known(heads: Sequence[str]) -> int:
    """Return how many columns of our tables some headings name."""
    return sum(any(kind.find_column(head) for kind in (PILOTS, HISTOGRAMS)) for head in heads)


def _fold_heads(row: Sequence[str]) -> list[str]:
    """Return the headings of a line in small letters, without empty ones at its end."""
    heads = [clean_heading(cell).casefold() for cell in row]
    while heads and not heads[-1]:
        heads.pop()
    return heads


def _is_headings(row: Sequence[str], *, apart: bool) -> bool:
    """Return whether a line below a table has the headings of another.

    row: its cells.
    apart: whether an empty line stands above it.
    """
    said = [cell for cell in row if cell]
    is_text = all(re.search(r"[^\W0-9]", cell) and not cell[0].isdigit() for cell in said)
    return is_text and len(said) > 1 and _count_known(said) > (0 if apart else 1)


def _is_above_headings(row: list[str], below: Sequence[str] = ()) -> bool:
    """Return whether a line has groups of headings, with gaps, and the next the headings."""
    has_gaps = not all(row) or len(row) < len(below)
    return has_gaps and _count_known(below) > max(_count_known(row), 1)


def _find_headings(cells: list[list[str]]) -> list[str]:
    """Return the headings of a table of ours, perhaps below a title; none of any other cells."""
    table = Rows("", [0] * len(cells), cells).without_title()
    return [] if table.kind is None else _fold_heads(table.cells[0])


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
        raise InputError(f"{path} is a workbook of an old Excel; save it as .xlsx or as CSV")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16"), ()
        except UnicodeDecodeError:
            raise InputError(f"{path} is cut short; save it as CSV in UTF-8") from None
    # A zero byte is valid UTF-8, and the mark of UTF-16 that does not say so.
    if b"\x00" not in data:
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode("utf-8-sig"), ()
    # No text has control characters; and without them it is what Windows writes in Europe.
    try:
        if strict or re.search(rb"[\x00-\x08\x0e-\x1f]", data):
            raise ValueError
        text = data.decode("cp1252")
    except ValueError:
        raise InputError(f"{path} is not a text file in UTF-8; save it as one") from None
    words = re.findall(r"[^\s,;|\"]*[^\x00-\x7f][^\s,;|\"]*", text)
    if strange := next(filter(MISREAD.search, words), None):
        raise InputError(
            f"{path} is not in UTF-8, and not in Windows-1252, in which it names {strange!r}: save "
            "it as CSV in UTF-8"
        )
    return text, (
        f"{path} is not in UTF-8 and is read as Windows-1252: look whether names are right, as "
        f"{shorten(words[0])!r}",
    )


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
        return _count_known(heads)

    def rate(separator: str) -> tuple[int, int]:
        rows = [split(line, separator) for line in first]
        return max(map(count_known, rows), default=0), len(rows[0]) if rows else 0

    # Of equals the first.
    return max(MARK_NAMES, key=rate)


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
