"""A table taken apart by columns: its names and numbers, read or refused cell by cell."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from fedaccord._io.kinds import FAILED, MEANS, OWN, PROPOSAL, TOTALS, TYPES, TableKind, is_comment
from fedaccord._io.numbers import (
    ERROR,
    PLAIN,
    PLAINER,
    SUPPRESSED,
    Date,
    Marks,
    Merged,
    Shown,
    Suspicion,
    find_middle,
    read_number,
    read_share,
    shorten,
    to_share,
)
from fedaccord.errors import InputError

# A share above 1 and below this is a slip of the pen, not one in per cent without its sign.
LEAST_PERCENT = 10
# A number as a pilot's name.
NUMBERED = re.compile(r"[0-9]+(?:[.,]0+)?")
# A text that a spreadsheet would run, or one that was kept from it by an apostrophe.
FORMULA = re.compile(r" *'*[=+\-@\t\r\n＝＋－＠]")
# Numbers of samples have at most so many digits.
MOST_DIGITS = 15


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
    headings: what the file calls each column.
    """

    path: str
    lines: list[int]
    cells: dict[str, list[str]]
    unit: str = "line"
    kind: TableKind = PROPOSAL
    places: dict[str, int] = field(default_factory=dict)
    percents: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    headings: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.cells)

    def column(self, name: str) -> list[str]:
        """Return the cells of a column; empty texts where there is no such column."""
        return self.cells.get(name, [""] * len(self.lines))

    def heading(self, name: str) -> str:
        """Return what the file calls a column."""
        return self.headings.get(name, name)

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
        """Return what to do about a line without a name; it may be the sum of two others or more.

        row: the line.
        """
        columns = [
            name for name in self.cells if name in ("contribution", "count") or self._is_label(name)
        ]
        with contextlib.suppress(InputError):
            read = [self.numbers(name, suppressed=True) for name in columns]
            others = sum(1 for name in self.column("agent") if name)
            is_sum = all(cells[row] and 2 * cells[row] == math.fsum(cells) for cells in read)
            if read and others > 1 and is_sum:
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
                remedy = "write how many samples it gave, not a fraction"
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
                    f"{what} is {value:g} below a heading with %: write it in per cent, or remove "
                    "the sign from the heading"
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
        is_wide = self.kind.labels and "label" not in self.cells
        return is_wide and name not in TYPES and not is_comment(name)

    def own_fields(self, agents: Sequence[str]) -> dict[str, list[float]]:
        """Return the numbers that agents have one of each, by the field that keeps them.

        agents: whose numbers to return; the column "agent" says whose row it is.
        """
        columns = [name for name in self.kind.own if name in OWN]
        found = {name: self._own_numbers(name, agents, OWN[name][1]) for name in columns}
        limits = dict(zip(agents, found.get("limit", ()), strict=False))
        for row, owner in enumerate(self.cells["agent"] if "minimum" in self.cells else ()):
            if (least := self.number("minimum", row)) > (most := limits.get(owner, math.inf)):
                raise InputError(
                    f"{self.describe('minimum', row)} is {least:g}, above its limit of {most:g}: "
                    "lower one or raise the other"
                )
        return {OWN[name][0]: values for name, values in found.items()}

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

    def refuse_merged(self) -> None:
        """Refuse numbers that are merged with others: they would count for the first alone.

        What an agent has one of may be merged over its own lines.
        """
        owners = self.column("agent")
        known = (*self.kind.needed, *self.kind.own)
        for name, cells in self.cells.items():
            is_read = name in known or self._is_label(name)
            if not is_read or self.kind.type_of(name) == "name":
                continue
            first = 0
            for row, cell in enumerate(cells):
                if not isinstance(cell, Merged):
                    first = row
                elif cell.left or (
                    cell.above and (name not in OWN or owners[row] != owners[first])
                ):
                    with_what = "to its left" if cell.left else "above"
                    raise InputError(
                        f"{self.describe(name, row)} is merged with the cell {with_what}: split "
                        "them, and write a number in each"
                    )

    def note_shown(self) -> None:
        """Note the first number of each column that a workbook shows as another."""
        for name, cells in self.cells.items():
            kind = self.kind.type_of(name)
            if kind in ("name", "share") or not (name in TYPES or self._is_label(name)):
                continue
            for row, cell in enumerate(cells):
                if isinstance(cell, Shown) and (cell.scaled or kind == "count"):
                    how = "in thousands or millions" if cell.scaled else "like thousands"
                    said = (
                        f"{self.describe(name, row)} is read as {cell}, and the spreadsheet shows"
                    )
                    said += f" it {how}, with the format {cell.code}: check the number"
                    self.notes.append(Suspicion(said))
                    break

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


def escape_formula(text: str) -> str:
    """Return a text for a cell of a CSV file, with an apostrophe if a spreadsheet would run it."""
    return f"'{text}" if FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Take away the apostrophe that keeps a spreadsheet from running a text."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def is_total(name: str) -> bool:
    """Return whether a line or a label is called like one that sums up the others."""
    return _fold(name).rstrip(":.") in TOTALS


def _fold(name: str) -> str:
    return re.sub(r"\s+", "", name.translate(PLAINER)).casefold()
