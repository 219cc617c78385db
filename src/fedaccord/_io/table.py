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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path

from fedaccord._checks import as_numbers, find_closest
from fedaccord._io.columns import OWN, SYNONYMS, TOTALS, TYPES, Type
from fedaccord._io.files import read_bytes, replace_file
from fedaccord.errors import InputError

# Spaces and quotes that stand between thousands, and a minus that is no hyphen.
PLAINER = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-", "\uff05": "%"}
)
# Almost every cell: what is read as such goes fast, and to the same number.
PLAIN = re.compile(r"[0-9]{1,30}")
GROUPED = re.compile(
    r"[+-]?[1-9][0-9]{0,2}(?:(?P<group>[ '.,])[0-9]{3})(?P<more>(?:(?P=group)[0-9]{3})*)"
    r"(?:(?P<mark>[.,])[0-9]+)?"
)
DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+(?P<mark>[.,])[0-9]*|(?P<bare>[.,])[0-9]+)(?:[eE][+-]?[0-9]+)?"
)
# A count that was withheld because it is small, as <11.
SUPPRESSED = re.compile(r"(<=|<|≤)\s*([0-9]{1,6})\*?")
# A text that a spreadsheet would run, or one that was kept from it by an apostrophe.
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
MARKS = {".": "a point", ",": "a comma"}


class Exact(str):
    """A number that a workbook holds as such, so that its text can mean one thing only."""

    __slots__ = ()


@dataclass(frozen=True)
class TableKind:
    """A kind of table: its columns, and what it is for.

    title: what it is called in messages.
    needed: the columns it must have.
    own: the columns it may have.
    example: its first line.
    use: the command that takes it, with the file as {path}.
    amounts: columns that hold any amounts in it, not whole counts.
    labels: whether every other column holds the counts of a label.
    """

    title: str
    needed: tuple[str, ...]
    own: tuple[str, ...]
    example: str
    use: str
    amounts: tuple[str, ...] = ()
    labels: bool = False

    def type_of(self, column: str) -> Type:
        """Return what the cells of a column are."""
        return "amount" if column in self.amounts else TYPES.get(column, "count")

    def find_column(self, heading: str) -> str | None:
        """Return the column that a heading means, if there is one."""
        words = _simplify(heading)
        for column in (*self.needed, *self.own):
            if words == column or words in SYNONYMS[column]:
                return column
        return None


PILOTS = TableKind(
    "a table of pilots",
    ("pilot", "agent", "contribution", "accuracy"),
    ("goal", "validation", "limit", "minimum", "cost"),
    "pilot,agent,contribution,accuracy",
    "'fedaccord plan {path}' takes it",
)
HISTOGRAMS = TableKind(
    "a table of label histograms",
    ("agent",),
    ("label", "count", "need", "goal", "limit", "minimum", "cost"),
    "agent,<label>,<label>,... (or agent,label,count)",
    "'fedaccord plan {path}' takes it, or --histograms {path} beside pilots",
    labels=True,
)
PROPOSAL = TableKind(
    "a table of contributions",
    ("contribution",),
    ("agent",),
    "agent,contribution",
    "'fedaccord check GAME.json {path}' takes it",
    amounts=("contribution",),
)


@dataclass(frozen=True)
class Rows:
    """The lines of a table that are not blank.

    path: the file, for messages.
    lines: the number of each line.
    cells: its cells, without the blanks round them.
    unit: what a line is called: "row" in a workbook.
    notes: what to say about how it was read.
    """

    path: str
    lines: list[int]
    cells: list[list[str]]
    unit: str = "line"
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> TableKind | None:
        """The kind of table that the first line is of, if it is one of ours."""
        heads = self.cells[0] if self.cells else []
        found = {column for head in heads if (column := PILOTS.find_column(head))}
        counts = {column for head in heads if (column := HISTOGRAMS.find_column(head))}
        if "pilot" in found or {"contribution", "accuracy"} <= found:
            return PILOTS
        if {"agent", "label", "count"} <= counts:
            return HISTOGRAMS
        if "contribution" in found:
            return PROPOSAL
        return HISTOGRAMS if "agent" in found and "accuracy" not in found else None

    def to_sheet(self, kind: TableKind) -> Sheet:
        """Read the first line as names of columns, and what is below it as their cells.

        kind: the kind of table that it must be.
        """
        if len(self.cells) < 2:
            fault = "has nothing below its first line" if self.cells else "is empty"
            raise InputError(
                f"{self.path} {fault}; it must start with a line such as {kind.example}, and hold "
                "numbers below it"
            )
        self._check_kind(kind)
        places, percents, renamed = _find_columns(self, kind)
        self._check_widths()
        notes = list(self.notes)
        if renamed:
            notes.append(f"in {self.path} {_join(renamed)}")
        rows = self.cells[1:]
        cells = {name: [row[place] for row in rows] for name, place in places.items()}
        for name in cells:
            # A workbook needs no apostrophe to keep a text from being run.
            if TYPES.get(name) == "name" and self.unit == "line":
                cells[name] = [_unescape(cell) for cell in cells[name]]
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

    def _check_kind(self, kind: TableKind) -> None:
        heads = [head for head in self.cells[0] if head]
        columns = [kind.find_column(head) for head in heads]
        found = self.kind
        if kind is PROPOSAL and (
            # Accuracies may stand beside contributions, and one column of numbers be anything.
            (found is PILOTS and "pilot" not in map(PILOTS.find_column, heads))
            or (found is HISTOGRAMS and len(heads) < 3)
        ):
            found = kind
        if found is not None and found is not kind:
            raise InputError(
                f"{self.path} is {found.title}, and {kind.title} is needed here: "
                f"{found.use.format(path=self.path)}"
            )
        for name in kind.needed:
            if name not in columns:
                strangers = [h for h, column in zip(heads, columns, strict=True) if column is None]
                near = find_closest(name, strangers)
                meant = f"; is it the column {near!r}? rename it" if near else ""
                raise InputError(
                    f"{self.path} has no column {name!r}{meant}; {kind.title} starts with "
                    f"{kind.example}"
                )

    def _check_widths(self) -> None:
        """Refuse lines with more or fewer cells than the first.

        A separator at the end of every line below the first is a habit of some programs.
        """
        width = len(self.cells[0])
        surplus = min(len(row) - width for row in self.cells[1:])
        for line, row in zip(self.lines[1:], self.cells[1:], strict=True):
            if len(row) != width + max(surplus, 0) or any(row[width:]):
                raise InputError(
                    f"{self.unit} {line} of {self.path} has {len(row)} cells, the first line "
                    f"{width}: is the file cut short, does a number have a comma, or a name with "
                    "one lack quotes?"
                )


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
                raise InputError(f"{self.where(row)} names no {column}; fill it in")
            if name.startswith("#") and name.endswith(("!", "?", "/A")):
                raise InputError(f'{self.where(row)} has "{name}" for the {column}: {ERROR}')
            first = seen.setdefault(_fold(name), row)
            if cells[first] != name:
                raise InputError(
                    f"{self.where(row)} names the {column} {name!r} and {self.unit} "
                    f"{self.lines[first]} {cells[first]!r}: write one name one way"
                )
        return tuple(dict.fromkeys(cells))

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
        if kind == "share":
            return self._read_share(name, row)
        if PLAIN.fullmatch(text):
            return float(text)
        what = self.describe(name, row)
        if text.endswith("%"):
            raise InputError(f'{what} reads "{shorten(text)}": write a number of samples')
        value = read_number(text, what, self.marks, kind=kind, column=name)
        if kind == "count" and value % 1:
            remedy = "write a whole number"
            if name == "contribution" and 0 < value < 1:
                remedy = "write how many samples it gave, not which part of what it has"
            raise InputError(f"{what} is {value:g}: {remedy}")
        return value

    def _read_share(self, name: str, row: int) -> float:
        text, what = self.cells[name][row], self.describe(name, row)
        signed = text.endswith("%")
        value = read_number(text.rstrip("% "), what, self.marks, kind="share")
        if signed or name in self.percents:
            if not signed and 0 < value <= 1:
                raise InputError(
                    f"{what} is {value:g} below a heading with %: write it in per cent, or take "
                    "the sign out of the heading"
                )
            # As the decimal number that it is: 87.4 / 100 would be off in the last place.
            value = float(Decimal(repr(value)).scaleb(-2))
        if not 0 <= value <= 1:
            remedy = "it must lie between 0 and 1"
            if 1 < value <= 100:
                remedy = f"did you mean {value / 100:g}, or {value:g} %?"
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
        sums = [row for row, title in enumerate(titles) if _fold(title) in TOTALS]
        if not sums or len(self.lines) == 1:
            return self
        last = len(self.lines) - 1
        if sums != [last]:
            raise InputError(
                f"{self.where(sums[0])} is called {titles[sums[0]]!r}, as if it summed up others: "
                "leave such lines out"
            )
        cells = {name: texts[:last] for name, texts in self.cells.items()}
        rest = replace(self, lines=self.lines[:last], cells=cells)
        for name in self.cells:
            if name in ("contribution", "count") or self._is_label(name):
                self._check_total(name, rest)
        self.notes.append(
            f"{self.where(last)}, {titles[last]!r}, sums up the others and is left out"
        )
        return rest

    def _check_total(self, name: str, rest: Sheet) -> None:
        """Refuse a sum that is not one; counts that were withheld leave it some room."""
        last = len(self.lines) - 1
        bounds = [SUPPRESSED.fullmatch(cell) for cell in rest.cells[name]]
        room = sum(2 * find_middle(bound) for bound in bounds if bound)
        values = rest.numbers(name, suppressed=True)
        total = self.number(name, last)
        known = sum(v for v, b in zip(values, bounds, strict=True) if b is None and v == v)
        if total < known - 1e-9 * abs(known) or total > (known + room) * (1 + 1e-9):
            raise InputError(
                f"{self.describe(name, last)} is {total:g}, and the sum of the others is "
                f"{known:g}: correct it, or leave the {self.unit} out"
            )


@dataclass
class Marks:
    """What points and commas mean in a file, and the cell that shows it.

    roles: by the mark, whether it stands before decimals or between thousands, and where.
    columns: those in which a mark stands before decimals.
    """

    roles: dict[str, tuple[str, str]] = field(default_factory=dict)
    columns: set[str] = field(default_factory=set)

    def learn(self, text: str, kind: Type, column: str, describe: Callable[[], str]) -> None:
        """Take note of what a cell shows, or raise an InputError where another shows otherwise.

        text: the cell.
        kind: of its column.
        column: its column.
        describe: says what it is and where it stands.
        """
        if isinstance(text, Exact):
            return
        text = text.translate(PLAINER).rstrip("% ")
        if (found := GROUPED.fullmatch(text)) and found["mark"] != found["group"]:
            single = not found["more"] and not found["mark"]
            if found["group"] in MARKS and (kind == "share" or not single):
                self._note(found["group"], "decimals" if single else "thousands", text, describe)
            if found["mark"]:
                self._note(found["mark"], "decimals", text, describe)
                self.columns.add(column)
        elif found := DECIMAL.fullmatch(text):
            self._note(found["mark"] or found["bare"], "decimals", text, describe)
            self.columns.add(column)

    def _note(self, mark: str, role: str, text: str, describe: Callable[[], str]) -> None:
        others = [r for m, (r, _) in self.roles.items() if m != mark]
        if self.roles.get(mark, ("",))[0] == role and "decimals" not in others:
            return
        here = f'{describe()} reads "{text}"'
        before = {m: (r, where) for m, (r, where) in self.roles.items() if m == mark and r != role}
        if role == "decimals":
            before |= {m: v for m, v in self.roles.items() if m != mark and v[0] == "decimals"}
        for other, (its_role, where) in before.items():
            raise InputError(
                f"{here}, with {MARKS[mark]} for {role}, and {where}, with {MARKS[other]} for "
                f"{its_role}: write all numbers one way"
            )
        self.roles.setdefault(mark, (role, here))

    def clean(self, text: str, kind: Type, column: str, what: str) -> str:
        """Return a number with a point for decimals and nothing between thousands.

        text: the cell; what is no number comes back as it is.
        kind: of its column.
        column: its column.
        what: what it is and where it stands, for messages.
        """
        found = GROUPED.fullmatch(text)
        if found is None or found["mark"] == found["group"]:
            return text.replace(",", ".") if DECIMAL.fullmatch(text) else text
        group = found["group"]
        single = group in MARKS and not found["more"] and not found["mark"]
        if single and self._is_decimal(text, group, kind, column, what):
            return text.replace(",", ".")
        return text.replace(group, "").replace(",", ".")

    def _is_decimal(self, text: str, mark: str, kind: Type, column: str, what: str) -> bool:
        """Return whether a mark before three digits is that of decimals; refuse where unclear."""
        role = self.roles.get(mark, ("",))[0]
        other = self.roles.get("," if mark == "." else ".", ("",))[0]
        shown = kind == "amount" and column in self.columns
        if kind == "share" or (role == "decimals" and shown):
            return True
        if role == "thousands" or (not role and other == "decimals"):
            return False
        whole, part = text.split(mark)
        decimal = f"{whole}.{part.rstrip('0')}".rstrip(".")
        remedy = f"write {whole}{part}" if kind == "count" else f"write {whole}{part} or {decimal}"
        remedy += "" if kind == "count" or part.endswith("0") else "0"
        raise InputError(
            f'{what} reads "{text}", which can be {whole}{part} or {decimal}: {remedy}'
        )


def read_number(
    text: str, what: str, marks: Marks, *, kind: Type = "amount", column: str = ""
) -> float:
    """Read a number, or raise an InputError that says how to write it.

    text: the cell.
    what: what it is and where it stands, for messages.
    marks: what points and commas mean in the file.
    kind: of its column.
    column: its name.
    """
    if PLAIN.fullmatch(text) or isinstance(text, Exact):
        return float(text)
    plainer = marks.clean(text.translate(PLAINER), kind, column, what)
    try:
        value = float(as_numbers([plainer], what)[0])
    except InputError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f'{what} reads "{shorten(text)}": {_find_remedy(text)}')
    return value


ERROR = "an error of the spreadsheet; correct its formula"


def _find_remedy(text: str) -> str:
    if text.startswith("#"):
        return ERROR
    if SUPPRESSED.fullmatch(text):
        return "a count that is withheld cannot be used here; write the number itself"
    if re.search(r"[0-9][,'. ][0-9]", text):
        return "write it with a point for decimals and no separators, as 1700 or 0.85"
    return "write a number, or leave the cell empty where there is none"


def find_middle(bound: re.Match[str]) -> float:
    """Return the middle of what a count can be that was withheld: 5 for <11, of 0 to 10."""
    most = int(bound[2]) - (bound[1] == "<")
    return max(most, 0) / 2


def shorten(text: str) -> str:
    """Return a cell for messages, which may be of any length."""
    return text if len(text) <= 40 else text[:37] + "..."


def name_cell(place: int, line: int) -> str:
    """Return a cell's name in a spreadsheet, as C5."""
    letters = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{line}"


def _fold(name: str) -> str:
    return re.sub(r"\s+", "", name.translate(PLAINER)).casefold()


def _simplify(heading: str) -> str:
    """Return a heading in small letters, with single spaces and no sign of per cent."""
    words = re.sub(r"[\s_\-]+", " ", heading).strip().casefold()
    return re.sub(r"\s*(\(%\)|\[%\]|in %|%)$", "", words)


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
            if any(row[place] for row in rows.cells[1:] if place < len(row)):
                raise InputError(
                    f"a column in the first line of {rows.path} has no name; give it one"
                )
            continue
        column = kind.find_column(heading) or heading
        if column in places:
            before = rows.cells[0][places[column]]
            raise InputError(
                f"{rows.path} names the column {column!r} twice; rename one of them"
                if before.casefold() == heading.casefold()
                else f"{rows.path} has two columns for the {column}, {before!r} and {heading!r}: "
                "leave one out, or rename it"
            )
        places[column] = place
        if column in TYPES and "%" in heading:
            percents.append(column)
        if column in TYPES and _simplify(heading) != column:
            renamed.append(f"the column {heading!r} is read as {column}")
    return places, percents, renamed


# Files.


def read_rows(path: str | Path, expected: str | None = None, *, sheet: str | None = None) -> Rows:
    """Read a table, once: CSV in any of the usual dialects, or a workbook of Excel.

    path: the file.
    expected: a column that the first line must name, by which separators are told apart; where
        left out, they are told by the headings of our tables.
    sheet: of a workbook; the first where left out.
    """
    data = read_bytes(path)
    if data.startswith(b"PK\x03\x04"):
        from fedaccord._io.excel import read_workbook

        return Rows(str(path), *read_workbook(data, path, sheet))
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
        raise InputError(
            f"{path} is JSON and not a table; a game is taken by 'fedaccord solve' and "
            "'fedaccord plan' if its name ends in .json"
        )
    separator = separator or _find_separator(first, expected)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    lines, cells = [], []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                lines.append(reader.line_num + skipped)
                cells.append([cell.strip() for cell in row])
                # Between commas an empty cell at the end may be half of a number's neighbour.
                while separator != "," and len(row) > len(cells[0]) and not cells[-1][-1]:
                    cells[-1].pop()
                    row.pop()
    except csv.Error as error:
        raise InputError(f"{path} is not CSV ({error}); save it anew") from None
    return Rows(str(path), lines, cells, notes=notes)


def _decode(data: bytes, path: str | Path, *, strict: bool) -> tuple[str, tuple[str, ...]]:
    """Return a file's text, and what to say about how it was read.

    data: its content.
    path: its name, for messages.
    strict: whether to refuse what is neither UTF-8 nor UTF-16, as for data that is learned from.
    """
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
    return text, (
        f"{path} is not in UTF-8 and is read as Windows-1252: look whether names are right",
    )


def _find_separator(first: str, expected: str | None) -> str:
    """Return what separates the cells of a file's first line."""

    def rate(separator: str) -> tuple[int, int]:
        heads = next(csv.reader([first], delimiter=separator), [])
        if expected is not None:
            known = sum(head.strip().lower() == expected.lower() for head in heads)
        else:
            kinds = (PILOTS, HISTOGRAMS)
            known = sum(any(kind.find_column(head) for kind in kinds) for head in heads)
        return known, len(heads)

    # Of equals the first.
    return max((",", ";", "\t"), key=rate)


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
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_write_cell, columns))
    writer.writerows(map(_write_cell, row) for row in rows)
    replace_file(path, text.getvalue())


def _write_cell(value: object) -> str:
    """Write a cell so that it is read as the same again, and no spreadsheet runs it."""
    if isinstance(value, float):
        text = repr(value)
        # With three digits behind the point it could be thousands.
        return text + "0" if GROUPED.fullmatch(text) else text
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else str(value)
