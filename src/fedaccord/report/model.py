"""What a result shows, without saying where: tables, pictures, sections, pages."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard, TypeVar

from fedaccord._io.files import replace_file
from fedaccord.errors import InputError
from fedaccord.wording import format_interval, format_number, format_short_probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fedaccord._checks import Indices, Vector

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# With more rows than this a terminal shows only the first FEW of those that matter most.
MANY = 30
FEW = 15

Tone: TypeAlias = Literal["good", "bad", "unsure", "plain"]
Place: TypeAlias = Literal["terminal", "page"]


@dataclass(frozen=True)
class Mark:
    """A cell or a sentence that stands out: never by colour alone, its text says it too."""

    text: str
    tone: Tone


# The heading over doubts of a game that pilots measured.
AGAINST = "Reasons for doubt"


def mark_doubts(doubts: Iterable[str]) -> Iterator[Mark]:
    """Return doubts as sentences that stand out."""
    return (Mark(f"Doubt: {sentence}", "unsure") for sentence in doubts)


@dataclass(frozen=True)
class Estimated:
    """A number with the ends of its interval, where they are known."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Probability(float):
    """A number that a page writes as a probability, as terminals do: > 0.99 and never 1.00."""

    __slots__ = ()


Cell: TypeAlias = "str | float | int | Mark | None"


def is_number(cell: object) -> TypeGuard[float]:
    """Return whether a cell is a number."""
    return isinstance(cell, Real) and not isinstance(cell, bool)


def keep_finite(value: float) -> float | None:
    """Return a number as a cell: None where it is infinite or not known."""
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True)
class Table:
    """Rows of cells; numbers are written for people here and in full in the CSV.

    caption: what it lists.
    columns: the heads; the first column names the rows.
    rows: the cells, None where there is nothing to say.
    footer: rows of sums, apart from the others.
    Cells left out at the end of a row are empty.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footer: tuple[tuple[Cell, ...], ...] = ()

    def __post_init__(self) -> None:
        for row in (*self.rows, *self.footer):
            if len(row) > len(self.columns):
                raise InputError(
                    f'the table "{self.caption}" has {len(self.columns)} columns, and a row of '
                    f"{len(row)} cells"
                )


# Tables of results: columns once, for every place they are shown in.


@dataclass(frozen=True)
class Column:
    """A column of a result's table.

    head: what it is.
    cell: its cell in the row of a thing, by the thing's number.
    sums: its cells in the rows of sums; empty in the rows beyond them.
    rest: its cell in the row that stands for things a terminal leaves out.
    where: the only place that shows it; None for every place.
    short: its head on a terminal, where that is another.
    ends: the heads of the ends of intervals on a page; on a terminal they stand in brackets.
    write: how a terminal writes its numbers.
    trim: how a page, and its CSV, rounds its numbers; probabilities are written as on terminals.
    coloured: whether a terminal shows the tones of its marks.
    """

    head: str
    cell: Callable[[int], Cell | Estimated]
    sums: Sequence[Cell | Estimated] = ()
    rest: Cell = ""
    where: Place | None = None
    short: str = ""
    ends: tuple[str, str] | None = None
    write: Callable[[float], str] = format_number
    trim: Callable[[float], float] = float
    coloured: bool = False

    def heads(self, place: Place) -> tuple[str, ...]:
        """Return its head, and those of the ends of intervals where they have columns."""
        if place == "terminal":
            return (self.short or self.head,)
        return (self.head, *(self.ends or ()))

    def cells(self, cell: Cell | Estimated, place: Place) -> tuple[Cell, ...]:
        """Return what a place shows of a cell: on a page, ends of intervals have their own."""
        if place == "terminal":
            return (self._write(cell),)
        if not isinstance(cell, Estimated):
            return (self._trim(cell), *([None] * len(self.ends or ())))
        value = None if cell.value is None else keep_finite(cell.value)
        if cell.low is None or cell.high is None:
            return self._trim(value), None, None
        high = "no bound" if math.isinf(cell.high) else cell.high
        return self._trim(value), self._trim(cell.low), self._trim(high)

    def _trim(self, cell: Cell) -> Cell:
        if not isinstance(cell, float):
            return cell
        return Probability(cell) if self.write is format_short_probability else self.trim(cell)

    def _write(self, cell: Cell | Estimated) -> Cell:
        if isinstance(cell, Estimated):
            if cell.value is None or not math.isfinite(cell.value):
                return "-"
            if cell.low is None or cell.high is None:
                return self.write(cell.value)
            return format_interval(cell.value, cell.low, cell.high, self.write)
        if isinstance(cell, Mark):
            return cell if self.coloured else cell.text
        if is_number(cell):
            return self.write(cell)
        return "-" if cell is None else cell


@dataclass(frozen=True)
class Records:
    """Things, one a row, with the columns that a terminal and a page show of them.

    caption: what is listed.
    columns: the first names the rows.
    page: the numbers of the things that a page lists, in order.
    terminal: those that a terminal lists; the same where left out.
    """

    caption: str
    columns: Sequence[Column]
    page: Sequence[int]
    terminal: Sequence[int] | None = None

    def table(self, place: Place) -> Table:
        """Return the table that a place shows."""
        columns = [column for column in self.columns if column.where in (None, place)]
        shown = self.page if place == "page" or self.terminal is None else self.terminal
        rows = [tuple(cell for c in columns for cell in c.cells(c.cell(n), place)) for n in shown]
        if place == "terminal" and columns[0].rest:
            rest = [cell for column in columns for cell in column.cells(column.rest, place)]
            rows.append((Mark(str(rest[0]), "plain"), *rest[1:]))
        return Table(
            self.caption,
            tuple(head for column in columns for head in column.heads(place)),
            tuple(rows),
            tuple(tuple(_sums(columns, place, n)) for n in range(len(columns[0].sums))),
        )


def _sums(columns: Sequence[Column], place: Place, number: int) -> Iterator[Cell]:
    nothing = "" if place == "terminal" else None
    last = max(n for n, column in enumerate(columns) if column.sums)
    for column in columns[: last + 1]:
        yield from column.cells(
            column.sums[number] if number < len(column.sums) else nothing, place
        )


def name_rows(
    name: Callable[[int], str],
    *,
    terminal: Sequence[str] = (),
    page: Sequence[str] = (),
    rest: str = "",
) -> tuple[Column, Column]:
    """Return the first column of a table of agents, whose sums have names of their own by place.

    name: of an agent.
    terminal, page: the names of the rows of sums.
    rest: the name of the row that stands for agents a terminal leaves out.
    """
    return (
        Column("agent", name, sums=terminal, rest=rest, where="terminal"),
        Column("agent", name, sums=page, where="page"),
    )


def rank(weights: Vector, most: int) -> Indices:
    """Return the numbers of the largest weights, the largest first, ties in order."""
    # Commands that show no table are quicker without.
    import numpy as np

    if len(weights) > 4 * most:
        # A sort of a million agents for the sake of a few would take longer than the rest.
        edge = np.partition(weights, -most)[-most]
        kept = np.flatnonzero(weights >= edge)
        return kept[np.argsort(-weights[kept], kind="stable")][:most]
    return np.argsort(-weights, kind="stable")[:most]


def choose_rows(weights: Vector, *, most: int = MANY, few: int = FEW) -> list[int]:
    """Return which things to list: all in order, or of many those with the largest weights.

    weights: of each.
    most: up to how many are all listed.
    few: how many of more are.
    """
    size = len(weights)
    return list(range(size)) if size <= most else [int(n) for n in rank(weights, few)]


@dataclass(frozen=True)
class Picture:
    """A figure with its data.

    name: a word for its files, as in allocations.svg; no two pictures of a page share it.
    title: what it shows.
    alt: what someone who cannot see it should know, with the numbers that matter.
    draw: draws it on axes.
    data: the numbers in it.
    size: width and height in inches.
    note: a sentence below it, or nothing.
    narrow: width and height of a second drawing for narrow screens, where the first would have to
        be scrolled; draw then has to do with either size.
    """

    name: str
    title: str
    alt: str
    draw: Callable[[Axes], object]
    data: Table
    size: tuple[float, float] = (7.6, 3.6)
    note: str = ""
    narrow: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"a picture's name goes into names of files: take letters, digits, - and _; "
                f"got {self.name!r}"
            )


@dataclass(frozen=True)
class Listing:
    """Sentences one below the other, each about a thing of its own."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """What one reader takes away: a title, and texts under words of their own.

    On paper a card is never broken.
    """

    title: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Fold:
    """Parts that only readers who ask for them see; on paper they are there."""

    summary: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    heading: what it is about.
    parts: a string is a paragraph, a mark a verdict of the section's own, a section one level down.
    """

    heading: str
    parts: tuple[Part, ...]


Part: TypeAlias = "str | Mark | Table | Picture | Listing | Card | Fold | Section"


def show_doubts(doubts: Sequence[str]) -> Iterator[Mark | Listing]:
    """Return doubts, several of them under one head."""
    if len(doubts) == 1:
        yield Mark(f"Doubt: {doubts[0]}", "unsure")
    elif doubts:
        yield Mark(f"There are {len(doubts)} doubts:", "unsure")
        yield Listing(tuple(doubts))


def tabulate_questions(answers: Iterable[tuple[str, Mark, str]], what: str = "plan") -> Table:
    """Return the table at the head of a page: each question, its answer, and what follows.

    answers: to each question, with the word for what the plan then is.
    what: a plan, or a proposal.
    """
    return Table("The three questions", ("question", "answer", f"so the {what} is"), tuple(answers))


@dataclass(frozen=True)
class Page:
    """A report.

    title: what it is about.
    verdict: the answer, in one sentence.
    tone: whether that is good news.
    sections: the rest.
    head: what stands right below the verdict, before the contents.
    facts: method, versions, seeds: what one needs to know to trust or repeat it, by name.
    command: what to type to make it again, in one line or several.
    """

    title: str
    verdict: str
    tone: Tone
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""
    head: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        names = [picture.name for picture in self.pictures()]
        if twice := [name for n, name in enumerate(names) if name in names[:n]]:
            raise InputError(f"two pictures of this page are named {twice[0]}; rename one")

    def html(self) -> str:
        """Return the page as one HTML text that needs nothing else."""
        from fedaccord.report.html import page_html

        return page_html(self)

    def save(self, path: str | Path) -> None:
        """Write the page to a file, replacing it in one step."""
        if not Path(path).parent.is_dir():
            raise InputError(
                f"cannot write {path}: the folder {Path(path).parent} does not exist; make it first"
            )
        replace_file(path, self.html())

    def pictures(self) -> list[Picture]:
        """List the pictures, in order."""
        return [part for section in self.sections for part in _pictures(section.parts)]

    def save_pictures(self, folder: str | Path) -> list[Path]:
        """Write every picture as SVG, PNG and CSV into a folder; return the files."""
        from fedaccord.report.html import save_picture

        return [path for picture in self.pictures() for path in save_picture(picture, Path(folder))]


def _pictures(parts: Sequence[Part]) -> list[Picture]:
    found: list[Picture] = []
    for part in parts:
        if isinstance(part, Picture):
            found.append(part)
        elif isinstance(part, Section | Fold):
            found.extend(_pictures(part.parts))
    return found


def list_run_facts() -> Iterator[tuple[str, str]]:
    """Return what a page was made with, where and when."""
    from fedaccord._machine import machine, versions

    yield "Versions", versions()
    yield "Machine", machine()
    yield "Date", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def joined(
    title: str,
    verdict: str,
    tone: Tone,
    *,
    pages: Sequence[Page],
    names: Sequence[str] = (),
    command: str = "",
) -> Page:
    """Make one page of several, each a section of it with its own verdict at its top.

    Pictures that share a name get a number behind it. A fact that several pages share appears once,
    the others with the page that they are about.

    names: short ones of the pages, for the facts; their titles where left out.
    """
    taken: set[str] = set()
    sections = tuple(
        _rename_pictures(
            Section(page.title, (Mark(page.verdict, page.tone), *page.head, *page.sections)), taken
        )
        for page in pages
    )
    facts = _join_facts(pages, names or [page.title for page in pages])
    return Page(title, verdict, tone, sections=sections, facts=facts, command=command)


def _join_facts(pages: Sequence[Page], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """List the facts of pages: those of one with its name, those that are shared at the end."""
    if len(names) != len(pages):
        raise InputError(f"there are {len(pages)} pages and {len(names)} names; give one each")
    values: dict[str, list[str]] = {}
    for fact, value in (fact for page in pages for fact in page.facts):
        values.setdefault(fact, []).append(value)
    shared = {
        n: v[0] for n, v in values.items() if len(set(v)) == 1 and (len(v) > 1 or len(pages) == 1)
    }
    own = [
        (f"{name}: {fact}", value)
        for name, page in zip(names, pages, strict=True)
        for fact, value in page.facts
        if fact not in shared
    ]
    return (*own, *shared.items())


_Group = TypeVar("_Group", bound=Section | Fold)


def _rename_pictures(group: _Group, taken: set[str]) -> _Group:
    parts: list[Part] = []
    for part in group.parts:
        if isinstance(part, Section | Fold):
            part = _rename_pictures(part, taken)
        elif isinstance(part, Picture):
            names = (part.name if n == 1 else f"{part.name}-{n}" for n in count(1))
            part = replace(part, name=next(name for name in names if name not in taken))
            taken.add(part.name)
        parts.append(part)
    return replace(group, parts=tuple(parts))
