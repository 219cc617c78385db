"""Numbers that a comma between thousands has split into two cells, as 1,340 without quotes.

The line then has as many cells as the headings if an empty cell at its end was left out. Each line
is read both ways, and each reading rated by how far its numbers are from others in their columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple, NoReturn

from fedaccord._io.kinds import HISTOGRAMS, PROPOSAL, TableKind, has_no_counts, is_comment
from fedaccord._io.kinds import is_in_percent as has_percent
from fedaccord._io.numbers import PLAIN
from fedaccord.errors import InputError

HEAD, TAIL = re.compile("[1-9][0-9]{0,2}"), re.compile("[0-9]{3}")
# A number that cannot be a share, and one that cannot be a count.
NO_SHARE, NO_COUNT = re.compile("[2-9]|[0-9]{2,}"), re.compile(r"0?\.[0-9]+|[^0-9]+")
# How unlike a number are zeros in front of it, and a comment that is one, in powers of ten.
ZEROS, REMARK = 2.0, 1.0
# By so many powers of ten for each line must one reading be likelier, to decide or to be doubted.
CLEAR, CLOSE, FAR = 1.25, 0.5, 2.0
# Columns that hardly have a number of one digit, and the largest such numbers.
LARGE, ALONE = ("need", "validation", "limit"), ("need", "validation")
SMALL, FEW = 10, 100


class _Joined(NamedTuple):
    """A line with the cells at a place and after it as one, and how unlike its columns it is."""

    before: float
    after: float
    place: int
    cells: list[str]


class _Grid:
    """The columns of a table of a kind, to rate lines by.

    types: what the cells of each column are; empty where a column has no name.
    columns: their names.
    """

    def __init__(self, heads: Sequence[str], kind: TableKind) -> None:
        known = (*kind.needed, *kind.own)
        self.columns = [kind.find_column(head) or head for head in heads]
        is_wide = kind.labels and "label" not in self.columns
        self.kind = kind
        self.types: list[str] = []
        for head, column in zip(heads, self.columns, strict=True):
            found: str = kind.type_of(column) if column in known or is_wide else "free"
            if column not in known and is_comment(head):
                found = "comment"
            elif column not in known and has_no_counts(head):
                found = "" if head.casefold().startswith("unnamed") else "free"
            self.types.append("" if not head else "free" if has_percent(head) else found)
        long = kind is HISTOGRAMS and not is_wide
        self.by_label = self.columns.index("label") if long else -1
        self.medians: dict[tuple[int, str], float] = {}

    def is_number(self, place: int) -> bool:
        return place < len(self.types) and self.types[place] in ("count", "amount")

    def is_label(self, place: int) -> bool:
        """Return whether a column can well have numbers of one digit among large ones."""
        name = self.columns[place]
        return name not in LARGE and not (self.kind is PROPOSAL and name == "contribution")

    def _key(self, row: Sequence[str], place: int) -> tuple[int, str]:
        # Counts of one label are like each other.
        is_count = self.by_label >= 0 and self.columns[place] == "count"
        return place, (*row, "")[min(self.by_label, len(row))] if is_count else ""

    def learn(self, rows: Sequence[Sequence[str]]) -> float:
        """Find the middle of each column, and return how unlike it its numbers are in all."""
        found: dict[tuple[int, str], list[float]] = {}
        for row in rows:
            for place, cell in enumerate(row):
                if self.is_number(place) and PLAIN.fullmatch(cell) and int(cell):
                    found.setdefault(self._key(row, place), []).append(math.log10(int(cell)))
        self.medians = {key: median(logs) for key, logs in found.items()}
        rates = (self.rate(row, place, cell) for row in rows for place, cell in enumerate(row))
        return sum(filter(math.isfinite, rates))

    def rate(self, row: Sequence[str], place: int, cell: str) -> float:
        """Return how unlike its column a cell is, in powers of ten; infinite where it cannot be."""
        kind = self.types[place] if place < len(self.types) else ""
        if not cell:
            is_needed = place < len(self.types) and self.columns[place] in ("agent", "contribution")
            return math.inf if is_needed else 0.0
        if kind in ("", "share"):
            return math.inf if not kind or NO_SHARE.fullmatch(cell) else 0.0
        if kind == "comment":
            return REMARK if PLAIN.fullmatch(cell) else 0.0
        if kind not in ("count", "amount"):
            return 0.0
        if not PLAIN.fullmatch(cell):
            return math.inf if kind == "count" and NO_COUNT.fullmatch(cell) else 0.0
        zeros = ZEROS if cell[0] == "0" < cell[1:] else 0.0
        if not int(cell):
            return zeros
        size = math.log10(int(cell))
        return zeros + abs(size - self.medians.get(self._key(row, place), size))

    def join(self, row: list[str]) -> _Joined | None:
        """Return a line with two cells joined, so that it is like others; None if it cannot be."""
        while row and not row[-1]:
            row = row[:-1]
        row = row + [""] * (len(self.types) - len(row))
        pairs = [
            place
            for place in range(len(row) - 1)
            if self.is_number(place)
            and HEAD.fullmatch(row[place])
            and TAIL.fullmatch(row[place + 1])
        ]
        if not pairs:
            return None
        if len(row) > len(self.types) + 1:
            # More than one number is split.
            place = min(pairs, key=lambda place: len(row[place]))
            found = self.join([*row[:place], row[place] + row[place + 1], *row[place + 2 :]])
            return found and _Joined(math.inf, found.after, place, found.cells)
        here = [self.rate(row, place, cell) for place, cell in enumerate(row)]
        left = [self.rate(row, place, cell) for place, cell in enumerate([*row[1:], ""])]
        above = [0.0, *accumulate(here)]
        below = [*accumulate(reversed([*left, 0.0]))][::-1]
        rates = {n: above[n] + self.rate(row, n, row[n] + row[n + 1]) + below[n + 1] for n in pairs}
        # Of two readings the one with the smaller number.
        place = min(rates, key=lambda n: rates[n] + len(row[n]))
        after = rates[place]
        cells = [*row[:place], row[place] + row[place + 1], *row[place + 2 :], ""]
        return _Joined(above[-1], after, place, cells) if math.isfinite(after) else None


class _Search:
    """Lines of a table that may have a split number.

    grid: the columns.
    where: what a message calls each line.
    rows: the cells of the lines.
    joined: the lines with two cells joined, by their number.
    """

    def __init__(self, grid: _Grid, where: Sequence[str], rows: list[list[str]]) -> None:
        self.grid, self.where, self.rows = grid, where, rows
        self.as_is = grid.learn(rows)
        found = {n: grid.join(row) for n, row in enumerate(rows)}
        self.joined = {n: one for n, one in found.items() if one is not None}
        self.doubted: dict[int, _Joined] = {}

    def gain(self, group: Collection[int]) -> float:
        """Return how much likelier a line of a group is if its cells are one number."""
        both = [self.joined[n].cells if n in group else row for n, row in enumerate(self.rows)]
        return (self.as_is - self.grid.learn(both)) / len(group)

    def describe(self, row: int) -> str:
        pair = " and ".join(self._halves(row))
        return f"{self.where[row]} has {pair} next to each other"

    def _halves(self, row: int) -> list[str]:
        place = self.joined[row].place
        return self.rows[row][place : place + 2]

    def _refuse(self, row: int) -> NoReturn:
        first, second = self._halves(row)
        said = f"which can be {first}{second}: write {first}{second} if that is meant, or "
        said += f"{first}.0 and {second} if they are two numbers"
        if math.isinf(self.joined[row].before):
            said = f"likely one number with a comma: write {first}{second}"
        raise InputError(f"{self.describe(row)}, {said}")

    def _head(self, row: int) -> int:
        return int(self._halves(row)[0])

    def _is_like(self, row: int) -> bool:
        one = self.joined[row]
        return self.grid.rate(one.cells, one.place, one.cells[one.place]) < FAR

    def refuse_wrong(self) -> None:
        """Refuse a line that can be nothing else, and leave out those that cannot be joined."""
        wrong = {n for n, one in self.joined.items() if math.isinf(one.before)}
        likely = {n for n in wrong if self._is_like(n)}
        if wrong:
            self.gain(wrong)
            likely |= {n for n in wrong if self._head(n) < SMALL and self._is_like(n)}
        if likely:
            self._refuse(min(likely))
        self.joined = {
            n: one
            for n, one in self.joined.items()
            if n not in wrong and (self._head(n) < FEW or one.after < one.before)
        }

    def _is_toy(self) -> bool:
        """Return whether the other numbers of the table are small."""
        apart = {(n, one.place + side) for n, one in self.joined.items() for side in (0, 1)}
        known = [
            int(cell)
            for n, row in enumerate(self.rows)
            for place, cell in enumerate(row)
            if self.grid.is_number(place) and PLAIN.fullmatch(cell) and (n, place) not in apart
        ]
        return bool(known) and median(known) < FEW

    def judge(self) -> None:
        """Refuse lines, or doubt them, by the last cell that they fill."""
        is_toy = self._is_toy()
        filled = {n: [p for p, cell in enumerate(row) if cell] for n, row in enumerate(self.rows)}
        longest = max((max(places) for places in filled.values() if places), default=0)
        ends = {n: max(filled[n]) for n in self.joined}
        for end in sorted(set(ends.values())):
            there = [n for n, places in filled.items() if end in places]
            if all(n in self.joined for n in there):
                self._judge_all(there, is_toy=is_toy)
                continue
            # Other lines show that the last cell may be filled. A full line is short of no cell.
            for row in (n for n in there if ends.get(n) == end):
                self._judge_one(row, FAR if end == longest else CLEAR, is_toy=is_toy)

    def _judge_one(self, row: int, least: float, *, is_toy: bool) -> None:
        one = self.joined[row]
        is_odd = self.grid.columns[one.place] in ALONE and self._head(row) < SMALL and not is_toy
        if is_odd and self.gain([row]) > CLOSE:
            self._refuse(row)
        if one.before - one.after > least:
            self.doubted[row] = one

    def _judge_all(self, there: list[int], *, is_toy: bool) -> None:
        first, better = there[0], self.gain(set(there))
        one, most = self.joined[first], max(map(self._head, there))
        is_odd = not is_toy and not any(self.grid.is_label(self.joined[n].place) for n in there)
        bound = FEW if self.grid.columns[one.place] == "contribution" else SMALL
        few = most < (SMALL if len(there) == len(self.rows) else bound)
        if better > CLEAR or (is_odd and few and better > -CLOSE):
            self._refuse(first)
        if better > CLOSE or (most < bound and better > -CLOSE):
            self.doubted[first] = one

    def list_notes(self) -> list[str]:
        """Return what to say of the first line that is doubted."""
        return [
            f"{self.describe(row)}: write {''.join(self._halves(row))} if that is one number"
            for row in sorted(self.doubted)[:1]
        ]


def find_split_numbers(
    path: str, heads: Sequence[str], lines: Sequence[int], rows: list[list[str]], kind: TableKind
) -> list[str]:
    """Refuse a table of which a line very likely has a split number; note one that may have.

    path: the file, for messages.
    heads: of the columns.
    lines, rows: where the lines below stand, and their cells.
    kind: of table.
    """
    search = _Search(_Grid(heads, kind), [f"line {line} of {path}" for line in lines], rows)
    search.refuse_wrong()
    search.judge()
    return search.list_notes()
