"""Read what a terminal shows of a result, the parts of its page, and its figures."""

import io

from rich.console import Console

from fedaccord.report.drawing import figure_of
from fedaccord.report.model import Listing, Mark, Section, Table
from fedaccord.report.terminal import Sheet, line


def shown(*parts, width=100):
    """Return what is printed, without colours."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    for part in parts:
        if isinstance(part, Table):
            part = Sheet(part)
        elif isinstance(part, str | Mark):
            part = line(part if isinstance(part, str) else part.text)
        console.print(part, soft_wrap=True)
    return console.file.getvalue()


def cells(text):
    """Split every line that is not empty into words."""
    return [line.split() for line in text.splitlines() if line.strip()]


def row(rows, *start):
    """Return the rest of the first row that starts so."""
    return next(cells[len(start) :] for cells in rows if cells[: len(start)] == list(start))


def parts(page, kind):
    """List the parts of one kind, at whatever depth."""
    found = []

    def look(sections):
        for section in sections:
            found.extend(part for part in section.parts if isinstance(part, kind))
            look([part for part in section.parts if isinstance(part, Section)])

    look(page.sections)
    return found


def table(page, start):
    """Return the only table whose caption starts so."""
    (found,) = [part for part in parts(page, Table) if part.caption.startswith(start)]
    return found


def texts(page):
    """Return all sentences of a page."""
    items = [item for listing in parts(page, Listing) for item in listing.items]
    return " ".join([page.verdict, *parts(page, str), *items])


def legend(ax):
    """Return the names in the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(ax, axis):
    """Return the labels at the ticks of an axis."""
    figure_of(ax).draw_without_rendering()
    labels = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    return [label.get_text() for label in labels]
