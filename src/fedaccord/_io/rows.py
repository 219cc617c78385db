"""The lines of a table: its headings found, its columns named, and what is no table refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

from fedaccord._checks import clean_name, find_closest
from fedaccord._io.commas import find_split_numbers
from fedaccord._io.kinds import (
    HISTOGRAMS,
    MEMBERS,
    PILOTS,
    PROPOSAL,
    TYPES,
    TableKind,
    has_no_counts,
    is_comment,
    is_in_percent,
    simplify,
)
from fedaccord._io.numbers import PLAIN, Merged, shorten
from fedaccord._io.sheet import Sheet, is_total, name_cell, unescape_formula
from fedaccord.errors import InputError
from fedaccord.wording import SPOKEN, join_with_and, name_few, pluralize

# Above the headings of a table there may be a title, of up to so many lines.
MOST_ABOVE = 10
# How a text begins that is a note and no agent.
NOTE = re.compile(
    r"[*†‡¹²³]|[(\[]?[0-9a-z][)\]]|[^:]{2,30}: |(?:note|notes|hinweis|anmerkung)\b", re.IGNORECASE
)
# The most words in the name of an agent; a longer text is likely a note.
MOST_WORDS = 4
# What a heading says of numbers that are not in single samples.
IN_THOUSANDS = re.compile(
    r" ?[(\[]?(?:in )?(?:thousands?|tausend|tsd\.?|k|'?000s?|millions?|mio\.?)[)\]]?$"
)
# A cell with a letter.
TEXT = re.compile(r"[^\W\d_]")
# The most columns that are not read and have a note each.
MOST_UNREAD = 5
MARK_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


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
        columns = {head: place for place, head in enumerate(self.cells[0]) if head}
        texts = self._list_texts(columns)
        if min(len(columns), len(self.cells) - 1) < 2 or len(texts) != 1:
            return None
        ((heading, are_names),) = texts.items()
        return heading if are_names else None

    def _list_texts(self, places: Mapping[str, int]) -> dict[str, bool]:
        """Return the columns with texts, and whether each has a different one in every line.

        places: where each column to look at stands.
        """
        columns = {
            name: [row[place].casefold() if place < len(row) else "" for row in self.cells[1:]]
            for name, place in places.items()
        }
        return {
            name: all(cells) and _are_different(cells)
            for name, cells in columns.items()
            if any(map(TEXT.search, cells))
        }

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
        notes = list(self.notes)
        if self.separator == "," and self.unit == "line":
            heads, *below = self.cells
            notes += find_split_numbers(self.path, heads, self.lines[1:], below, kind)
        places, percents, renamed = _find_columns(self, kind)
        self._check_widths()
        if kind is PROPOSAL and (heading := self._find_agents(places)):
            places["agent"] = places.pop(heading)
            renamed.append(f"the column {heading!r} is read as agent")
        if kind is PROPOSAL and "agent" not in places:
            self._refuse_numbered(places)
        self._check_strays(kind, places)
        if renamed:
            notes.append(f"in {self.path} {_join(renamed)}")
        notes += self._note_unread(kind, places)
        rows = self.cells[1:]
        cells = {name: [row[place] for row in rows] for name, place in places.items()}
        for name in cells:
            if TYPES.get(name) == "name":
                cells[name] = [c.above if isinstance(c, Merged) else c for c in cells[name]]
            # A workbook needs no apostrophe to keep a text from being run.
            if TYPES.get(name) == "name" and self.unit == "line":
                cells[name] = [unescape_formula(cell) for cell in cells[name]]
            if TYPES.get(name) == "name":
                cells[name] = list(map(clean_name, cells[name]))
        sheet = Sheet(
            path=self.path,
            lines=self.lines[1:],
            cells=cells,
            unit=self.unit,
            kind=kind,
            places=places,
            percents=frozenset(percents),
            notes=notes,
            headings={name: self.cells[0][place] for name, place in places.items()},
        )
        sheet.refuse_merged()
        sheet.note_shown()
        return sheet.without_total()

    def _find_agents(self, places: Mapping[str, int]) -> str | None:
        """Return the column of a proposal that names its agents under a heading of its own.

        Without names the proposal is in the order of the game, and then it has no texts at all.

        places: where each column stands.
        """
        if "agent" in places:
            return None
        known = (*PROPOSAL.needed, *PROPOSAL.own)
        texts = self._list_texts({name: at for name, at in places.items() if name not in known})
        named = [name for name, are_names in texts.items() if are_names]
        if texts and len(named) != 1:
            raise InputError(
                f"{self.path} has no column 'agent', and texts in the "
                f"{pluralize(len(texts), 'column')} {join_with_and(list(map(repr, texts)))}: call "
                "the column with the names of the agents 'agent', and delete other texts"
            )
        return named[0] if named else None

    def _refuse_numbered(self, places: Mapping[str, int]) -> None:
        """Refuse a proposal without names whose lines have numbers in another order.

        places: where each column stands.
        """
        for name, place in places.items():
            cells = [row[place] for row in self.cells[1:]]
            if name in (*PROPOSAL.needed, *PROPOSAL.own) or not all(map(PLAIN.fullmatch, cells)):
                continue
            found = list(map(int, cells))
            counted = any(sorted(found) == [*range(n, n + len(found))] for n in (0, 1))
            if (counted or (has_no_counts(name) and _are_different(cells))) and found != sorted(
                found
            ):
                raise InputError(
                    f"{self.path} has no names of agents, and the numbers in the column {name!r} "
                    f"are not in order: sort the {self.unit}s by them, or add a column 'agent' "
                    "with the names"
                )

    def _note_unread(self, kind: TableKind, places: Mapping[str, int]) -> list[str]:
        """Return notes on columns that are not read; refuse one that is likely misspelt.

        kind: of table.
        places: where each column stands.
        """
        notes, unread = [], []
        known = (*kind.needed, *kind.own)
        free = [name for name in known if name not in places]
        is_wide = kind.labels and "label" not in places
        for name in places:
            if name in known or (is_wide and not is_comment(name)):
                continue
            if meant := kind.find_misspelt(name, free):
                raise InputError(
                    f"the column {name!r} of {self.path} is likely the {meant}: call it {meant!r}, "
                    "or delete it"
                )
            near = find_closest(name, free)
            if near:
                said = f"if it is the {near}, call it {near!r}"
                notes.append(f"the column {name!r} of {self.path} is not read; {said}")
            else:
                unread.append(name)
        if len(unread) > MOST_UNREAD:
            said = f"the column {unread[0]!r} of {self.path} and {len(unread) - 1:,} others"
            return [*notes, f"{said} are not read"]
        return [*notes, *(f"the column {name!r} of {self.path} is not read" for name in unread)]

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
        if found is PROPOSAL is not kind:
            self._refuse_sum_of_labels()
        if found is not None and found is not kind:
            raise InputError(
                f"{self.path} is {found.title}, and {kind.title} is needed here: "
                f"{found.use.format(path=self.path)}"
            )
        strangers = [h for h, column in zip(heads, columns, strict=True) if column is None]
        if kind is PILOTS and self.has_measures and "accuracy" not in columns:
            raise InputError(
                f"{self.path} has pilots of several measures, and pilots of an accuracy are needed "
                f"here: 'fedaccord solve {self.path}' reads it"
            )
        missing = [name for name in kind.needed if name not in columns]
        self._refuse_scaled(strangers)
        if missing:
            self._refuse_turned()
            self._refuse_title(kind)
        self._refuse_wide(kind, missing, strangers)
        where = f"{self.unit} {self.lines[0]}"
        for name in missing:
            near = find_closest(name, strangers)
            meant = f": rename {near!r} if that is the column" if near else ""
            # A proposal can do without names; a heading that is not ours may still mean them.
            unknown = dict.fromkeys(["agent", *missing] if "agent" not in columns else missing)
            known = "; ".join(
                f"for the {one}: {name_few([*map(repr, kind.headings(one))], 4)}" for one in unknown
            )
            raise InputError(
                f"{self.path} has no column {name!r}{meant}. Its headings in {where} are "
                f"{name_few([*map(repr, heads)], 8)}. Rename one to an accepted heading, {known}"
            )

    def _refuse_scaled(self, strangers: Sequence[str]) -> None:
        """Refuse a column of ours whose heading says that it is in thousands or millions."""
        for head in strangers:
            bare = IN_THOUSANDS.sub("", simplify(head))
            known = (kind.find_column(bare) for kind in (PILOTS, HISTOGRAMS, PROPOSAL))
            if bare != simplify(head) and (column := next(filter(None, known), None)):
                raise InputError(
                    f"the column {head!r} of {self.path} is not in single samples: write the "
                    f"numbers in full, and call it {column!r}"
                )

    def _refuse_turned(self) -> None:
        """Refuse a table with a line for each label, and a column for each agent."""
        first, *others = self.cells[0]
        found = {HISTOGRAMS.find_column(head) for head in others if head}
        strangers = [head for head in others if head and HISTOGRAMS.find_column(head) is None]
        is_turned = HISTOGRAMS.find_column(first) == "label" and len(strangers) > 1
        if is_turned and not found & {"agent", "count"}:
            raise InputError(
                f"the table {self.path} is turned, if {strangers[0]!r} is an agent: write one "
                f"{self.unit} for each agent, below the heading 'agent', and a column for each "
                "label"
            )

    def _refuse_sum_of_labels(self) -> None:
        """Refuse a column headed like contributions that is the sum of the labels next to it."""
        heads = self.cells[0]
        columns = list(map(HISTOGRAMS.find_column, heads))
        labels = [n for n, head in enumerate(heads) if head and columns[n] is None]
        if columns.count("count") != 1 or len(labels) < 2:
            return
        place = columns.index("count")
        rows = [
            [row[n] if n < len(row) else "" for n in (place, *labels)] for row in self.cells[1:]
        ]
        if all(map(PLAIN.fullmatch, (cell for row in rows for cell in row if cell))) and all(
            row[0] and int(row[0]) == sum(int(cell or 0) for cell in row[1:]) for row in rows
        ):
            raise InputError(
                f"the column {heads[place]!r} of {self.path} is the sum of the others: delete it"
            )

    def _refuse_title(self, kind: TableKind) -> None:
        """Refuse a line above the headings that has as many cells as they have."""
        for line, row in list(zip(self.lines, self.cells, strict=True))[1:MOST_ABOVE]:
            found = {kind.find_column(cell) for cell in row if cell}
            if found.issuperset((*kind.needed, "agent")):
                first, last = self.lines[0], line - 1
                above = (
                    f"{self.unit} {last}" if first == last else f"{self.unit}s {first} to {last}"
                )
                raise InputError(
                    f"the headings of {self.path} are in {self.unit} {line}: delete {above}"
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
        if kind is HISTOGRAMS:
            self._refuse_below()
        agent = places.get("agent")
        for line, row in zip(self.lines[1:], self.cells[1:], strict=True):
            where = f"{self.unit} {line} of {self.path}"
            said = [(place, cell) for place, cell in enumerate(row) if cell]
            place, text = said[0]
            stray = place != agent or kind is PILOTS or NOTE.match(text)
            is_text = re.search(r"[^\W0-9]", text) and not is_total(text)
            alone = len(said) == 1 < len(places) and is_text and not text.startswith("#")
            if alone and stray:
                raise InputError(f"{where} looks like a note: delete it")
            if alone and kind is HISTOGRAMS:
                raise InputError(
                    f"{where} has the name {shorten(text)!r} and no number: delete it if it is a "
                    "note, or write 0 in its empty cells if it is an agent without samples"
                )
            if len(said) == 1 < len(places) and kind is PROPOSAL and _is_long(text):
                raise InputError(
                    f"{where} looks like a note: delete it, or fill in the missing cells"
                )

    def _refuse_below(self) -> None:
        """Refuse another table or notes below label histograms, of a name and one more cell."""
        sizes = [sum(map(bool, row)) for row in self.cells]
        full = max((n for n, size in enumerate(sizes) if n and size > 2), default=0)
        if not full or min(sizes[1 : full + 1]) < 3:
            return
        for n in range(full + 1, len(sizes)):
            first, second = [*filter(None, self.cells[n]), ""][:2]
            apart = self.lines[n] > self.lines[n - 1] + 1
            if second not in ("", "0") and (apart or NOTE.match(first)):
                raise InputError(
                    f"{self.unit} {self.lines[n]} of {self.path} has only {first!r} and "
                    f"{second!r}, like a note or another table: delete it, or write 0 in its "
                    "empty cells if it is an agent"
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


def _are_different(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _is_long(text: str) -> bool:
    """Return whether a text has more words than names of agents have."""
    return len(text.split()) > MOST_WORDS


def _join(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


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
        if column in TYPES and is_in_percent(heading):
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
            remedy = "write numbers without commas" if rows.separator == "," else "delete it"
            raise InputError(
                f"column {column} of {rows.path} has no name in {rows.unit} {rows.lines[0]}, and "
                f"{where} has {shorten(row[place])!r}{'' if book else ' in it'}: give the column "
                f"a name, or {'delete what stands in it' if book else remedy}"
            )


def clean_heading(text: str) -> str:
    """Return a heading in one line, with single spaces."""
    return " ".join(clean_name(text).split())


def count_known_headings(heads: Sequence[str]) -> int:
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
    return is_text and len(said) > 1 and count_known_headings(said) > (0 if apart else 1)


def _is_above_headings(row: list[str], below: Sequence[str] = ()) -> bool:
    """Return whether a line has groups of headings, with gaps, and the next the headings."""
    has_gaps = not all(row) or len(row) < len(below)
    return has_gaps and count_known_headings(below) > max(count_known_headings(row), 1)


def find_headings(cells: list[list[str]]) -> list[str]:
    """Return the columns of a table of ours, perhaps below a title; none of any other cells."""
    table = Rows("", [0] * len(cells), cells).without_title()
    if (kind := table.kind) is None:
        return []
    heads = filter(None, _fold_heads(table.cells[0]))
    return [kind.title, *sorted(kind.find_column(head) or head for head in heads)]
