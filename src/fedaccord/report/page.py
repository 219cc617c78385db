"""A page: sections of sentences, tables and pictures, with the verdict on top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fedaccord._files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Tone: TypeAlias = Literal["good", "bad", "unsure", "plain"]


@dataclass(frozen=True)
class Mark:
    """A cell that stands out: never by colour alone, its text says it too."""

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
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footer: tuple[tuple[Cell, ...], ...] = ()


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
    """

    name: str
    title: str
    alt: str
    draw: Callable[[Axes], object]
    data: Table
    size: tuple[float, float] = (7.6, 3.6)
    note: str = ""


@dataclass(frozen=True)
class Listing:
    """Sentences one below the other, each about a thing of its own."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading; a string is a paragraph, a section one level down."""

    heading: str
    parts: tuple[Part, ...]


Part: TypeAlias = "str | Table | Picture | Listing | Section"


@dataclass(frozen=True)
class Page:
    """A report.

    title: what it is about.
    verdict: the answer, in one sentence.
    tone: whether that is good news.
    sections: the rest.
    facts: method, versions, seeds: what one needs to know to trust or repeat it, by name.
    command: what to type to make it again.
    """

    title: str
    verdict: str
    tone: Tone
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = ()
    command: str = ""

    def html(self) -> str:
        """Give the page as one HTML text that needs nothing else."""
        from fedaccord.report.html import page_html

        return page_html(self)

    def save(self, path: str | Path) -> None:
        """Write the page to a file, replacing it in one step."""
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
    title: str, verdict: str, tone: Tone, *, pages: Sequence[Page], command: str = ""
) -> Page:
    """Make one page of several, each a section of it with its own verdict at its top."""
    sections = tuple(Section(page.title, (page.verdict, *page.sections)) for page in pages)
    facts = dict.fromkeys(fact for page in pages for fact in page.facts)
    return Page(title, verdict, tone, sections=sections, facts=tuple(facts), command=command)
