"""A page: sections of sentences, tables and pictures, with the verdict on top."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fedaccord._io.atomic import replace_file
from fedaccord.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

Tone: TypeAlias = Literal["good", "bad", "unsure", "plain"]


@dataclass(frozen=True)
class Mark:
    """A cell or a sentence that stands out: never by colour alone, its text says it too."""

    text: str
    tone: Tone


Cell: TypeAlias = "str | float | int | Mark | None"


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
class Section:
    """A part of a page under a heading.

    heading: what it is about.
    parts: a string is a paragraph, a mark a verdict of the section's own, a section one level down.
    """

    heading: str
    parts: tuple[Part, ...]


Part: TypeAlias = "str | Mark | Table | Picture | Listing | Section"


@dataclass(frozen=True)
class Page:
    """A report.

    title: what it is about.
    verdict: the answer, in one sentence.
    tone: whether that is good news.
    sections: the rest.
    facts: method, versions, seeds: what one needs to know to trust or repeat it, by name.
    command: what to type to make it again, in one line or several.
    """

    title: str
    verdict: str
    tone: Tone
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""

    def __post_init__(self) -> None:
        names = [picture.name for picture in self.pictures()]
        if twice := [name for n, name in enumerate(names) if name in names[:n]]:
            raise InputError(f"two pictures of this page are named {twice[0]}; rename one")

    def html(self) -> str:
        """Give the page as one HTML text that needs nothing else."""
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
        return [part for section in self.sections for part in _pictures(section)]

    def save_pictures(self, folder: str | Path) -> list[Path]:
        """Write every picture as SVG and PNG and its data as CSV into a folder; give the files."""
        from fedaccord.report.html import save_picture

        return [path for picture in self.pictures() for path in save_picture(picture, Path(folder))]


def _pictures(section: Section) -> list[Picture]:
    found: list[Picture] = []
    for part in section.parts:
        if isinstance(part, Picture):
            found.append(part)
        elif isinstance(part, Section):
            found.extend(_pictures(part))
    return found


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

    Pictures that share a name get a number behind it. A fact that several pages share is told once,
    the others with the page that they are about.

    names: short ones of the pages, for the facts; their titles where left out.
    """
    taken: set[str] = set()
    sections = tuple(
        _renamed(Section(page.title, (Mark(page.verdict, page.tone), *page.sections)), taken)
        for page in pages
    )
    facts = _drop_repeats(pages, names or [page.title for page in pages])
    return Page(title, verdict, tone, sections=sections, facts=facts, command=command)


def _drop_repeats(pages: Sequence[Page], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
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


def _renamed(section: Section, taken: set[str]) -> Section:
    parts: list[Part] = []
    for part in section.parts:
        if isinstance(part, Section):
            part = _renamed(part, taken)
        elif isinstance(part, Picture):
            names = (part.name if n == 1 else f"{part.name}-{n}" for n in count(1))
            part = replace(part, name=next(name for name in names if name not in taken))
            taken.add(part.name)
        parts.append(part)
    return Section(section.heading, tuple(parts))
