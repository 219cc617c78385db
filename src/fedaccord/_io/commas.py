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
from typing import NamedTuple

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


def find_split_numbers(
    path: str, heads: Sequence[str], lines: Sequence[int], rows: list[list[str]], kind: TableKind
) -> list[str]:
    """Refuse a table of which a line very likely has a split number; note one that may have.

    path: the file, for messages.
    heads: of the columns.
    lines, rows: where the lines below stand, and their cells.
    kind: of table.
    """
    grid = _Grid(heads, kind)
    as_is = grid.learn(rows)
    joined = {n: found for n, row in enumerate(rows) if (found := grid.join(row)) is not None}
    doubted: dict[int, _Joined] = {}

    def gain(group: Collection[int]) -> float:
        both = [joined[n].cells if n in group else row for n, row in enumerate(rows)]
        return (as_is - grid.learn(both)) / len(group)

    def describe(row: int, one: _Joined) -> str:
        pair = " and ".join(rows[row][one.place : one.place + 2])
        return f"line {lines[row]} of {path} has {pair} next to each other"

    def refuse(row: int, one: _Joined) -> None:
        first, second = rows[row][one.place : one.place + 2]
        said = f"which can be {first}{second}: write {first}{second} if that is meant, or "
        said += f"{first}.0 and {second} if they are two numbers"
        if math.isinf(one.before):
            said = f"likely one number with a comma: write {first}{second}"
        raise InputError(f"{describe(row, one)}, {said}")

    def head(row: int) -> int:
        return int(rows[row][joined[row].place])

    def is_like(row: int) -> bool:
        one = joined[row]
        return grid.rate(one.cells, one.place, one.cells[one.place]) < FAR

    wrong = {n: one for n, one in joined.items() if math.isinf(one.before)}
    likely = {n for n in wrong if is_like(n)}
    if wrong:
        gain(wrong)
        likely |= {n for n in wrong if head(n) < SMALL and is_like(n)}
    if likely:
        refuse(min(likely), joined[min(likely)])
    joined = {
        n: one
        for n, one in joined.items()
        if n not in wrong and (head(n) < FEW or one.after < one.before)
    }
    apart = {(n, one.place + side) for n, one in joined.items() for side in (0, 1)}
    known = [
        int(cell)
        for n, row in enumerate(rows)
        for place, cell in enumerate(row)
        if grid.is_number(place) and PLAIN.fullmatch(cell) and (n, place) not in apart
    ]
    is_toy = bool(known) and median(known) < FEW
    longest = max((place for row in rows for place, cell in enumerate(row) if cell), default=0)
    ends = {n: max(place for place, cell in enumerate(rows[n]) if cell) for n in joined}
    for end in sorted(set(ends.values())):
        filled = [n for n, row in enumerate(rows) if end < len(row) and row[end]]
        if not all(n in joined for n in filled):
            # Other lines show that the last cell may be filled.
            for row in (n for n in filled if ends.get(n) == end):
                one = joined[row]
                is_odd = grid.columns[one.place] in ALONE and head(row) < SMALL and not is_toy
                if is_odd and gain([row]) > CLOSE:
                    refuse(row, one)
                # A line that is full is short of no cell.
                if one.before - one.after > (FAR if end == longest else CLEAR):
                    doubted[row] = one
            continue
        better, one = gain(set(filled)), joined[filled[0]]
        is_odd = not is_toy and not any(grid.is_label(joined[n].place) for n in filled)
        is_whole = len(filled) == len(rows)
        most = max(map(head, filled))
        bound = FEW if grid.columns[one.place] == "contribution" else SMALL
        few = most < (SMALL if is_whole else bound)
        if better > CLEAR or (is_odd and few and better > -CLOSE):
            refuse(filled[0], one)
        if better > CLOSE or (most < bound and better > -CLOSE):
            doubted[filled[0]] = one
    return [
        f"{describe(row, one)}: write {''.join(rows[row][one.place : one.place + 2])} if that is "
        "one number"
        for row, one in sorted(doubted.items())[:1]
    ]
