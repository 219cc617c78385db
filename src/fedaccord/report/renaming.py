"""The words of those who read a page: what they call agents and samples, wherever it is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fedaccord.games.base import Game
from fedaccord.games.measured import MeasuredGame
from fedaccord.report.model import (
    Card,
    Cell,
    Fold,
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Section,
    Table,
)
from fedaccord.wording import OWN_WORDS, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Renaming:
    """Puts a user's own words in place of agent and sample, wherever a result shows them.

    words: the user's.
    names: of the agents, which stay as they are.
    """

    words: Words
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        own = tuple(name for name in self.names if re.search(OWN_WORDS, name))
        object.__setattr__(self, "names", own)

    def text(self, text: str) -> str:
        """Return a text in the user's words."""
        return self.words.rename(text, self.names)

    def cell(self, cell: Cell) -> Cell:
        """Return a cell in the user's words."""
        if isinstance(cell, Mark):
            return replace(cell, text=self.text(cell.text))
        return self.text(cell) if isinstance(cell, str) else cell

    def table(self, table: Table) -> Table:
        """Return a table in the user's words."""
        rows, footer = (
            tuple(tuple(map(self.cell, row)) for row in part) for part in (table.rows, table.footer)
        )
        heads = tuple(map(self.text, table.columns))
        return Table(self.text(table.caption), heads, rows, footer)

    def line(self, part: str | Mark | Table) -> str | Mark | Table:
        """Return what a terminal shows, in the user's words."""
        if isinstance(part, Table):
            return self.table(part)
        if isinstance(part, Mark):
            return replace(part, text=self.text(part.text))
        return self.text(part)

    def part(self, part: Part) -> Part:
        """Return a part of a page in the user's words."""
        if isinstance(part, Section):
            return self.section(part)
        if isinstance(part, Picture):
            return self.picture(part)
        if isinstance(part, Listing):
            return Listing(tuple(map(self.text, part.items)))
        if isinstance(part, Card):
            entries = ((self.text(word), self.text(text)) for word, text in part.entries)
            return Card(self.text(part.title), tuple(entries))
        if isinstance(part, Fold):
            return Fold(self.text(part.summary), tuple(map(self.part, part.parts)))
        return self.line(part)

    def section(self, section: Section) -> Section:
        """Return a section in the user's words."""
        parts = tuple(map(self.part, section.parts))
        return replace(section, heading=self.text(section.heading), parts=parts)

    def picture(self, picture: Picture) -> Picture:
        """Return a picture in the user's words, those that it draws among them."""

        def draw(ax: Axes) -> None:
            from matplotlib.text import Text

            from fedaccord.report.drawing import figure_of

            picture.draw(ax)
            for drawn in figure_of(ax).findobj(Text):
                assert isinstance(drawn, Text)
                drawn.set_text(self.text(drawn.get_text()))

        title, alt, note = map(self.text, (picture.title, picture.alt, picture.note))
        data = self.table(picture.data)
        return replace(picture, title=title, alt=alt, note=note, draw=draw, data=data)

    def page(self, page: Page) -> Page:
        """Return a page in the user's words; the command that made it stays as it was typed."""
        return replace(
            page,
            title=self.text(page.title),
            verdict=self.text(page.verdict),
            head=tuple(map(self.part, page.head)),
            sections=tuple(map(self.section, page.sections)),
            facts=tuple((name, self.text(value)) for name, value in page.facts),
        )


@dataclass(frozen=True)
class NeedRenaming(Renaming):
    """Calls requirements targets where goals are accuracies, or goals if there are no margins.

    word: in place of requirement.
    """

    word: str = "target"

    @classmethod
    def of(cls, game: Game) -> NeedRenaming:
        """Return the renaming for a game; one without accuracies keeps its requirements."""
        if not isinstance(game, MeasuredGame):
            return cls(Words(), word="requirement")
        return cls(Words(), word="target" if game.has_margins else "goal")

    def text(self, text: str) -> str:
        """Return a text with the word for what agents need."""
        return re.sub(r"\brequirement(?=s?\b)", self.word, text)
