"""Pages as HTML: one file that needs nothing else, and pictures as SVG, PNG and CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

from fedaccord._io.files import replacing
from fedaccord._io.sheet import escape_formula
from fedaccord._lazy import imported
from fedaccord.report import drawing, style
from fedaccord.report.model import (
    Card,
    Cell,
    Fold,
    Listing,
    Mark,
    Page,
    Part,
    Picture,
    Probability,
    Section,
    Table,
    Tone,
    is_number,
)
from fedaccord.report.terminal import plain
from fedaccord.wording import NOTHING, choose_places, format_places, format_short_probability

jinja2 = imported("jinja2")

# Which jinja2 and matplotlib bring along.
from markupsafe import Markup, escape  # noqa: E402
from PIL import Image  # noqa: E402

# Significant digits of a column's largest number, and the most behind the point.
DIGITS = 5
BEHIND = 6
# A column with words longer than this needs room.
WORDS = 40
# With none longer than this a column is not broken into lines, the first one, of names, less soon.
UNBROKEN = 16
UNBROKEN_NAMES = 30
# With more rows than this a table can be searched, and with more than that it scrolls by itself.
LONG = 30
TALL = 60
# What the columns of an interval are called, after its number's own.
ENDS = ("from", "to")
# With more sections than this a page has a list of them.
FEW_SECTIONS = 3
# With more headings than this that list leaves out those below the first level.
MOST_LISTED = 40
DPI = 160
# How many pixels a point of a picture may take up at most.
PIXELS = 1.404
LAST = "How this was made"
# Letters written from right to left, and what stands between them.
RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
LEFTWARD = re.compile(f"[{RIGHT_TO_LEFT}]+(?:[^\\w]*[{RIGHT_TO_LEFT}]+)*")
# Between a number and its sign no line ends.
PER_CENT = re.compile(r"(?<=\d) %")
# An option of a command, which no line end divides.
OPTION = re.compile(r"(?<!\S)--[a-z][\w-]*")


# Tables.


@dataclass(frozen=True)
class Shown:
    """A cell as it stands on a page.

    text: what is read.
    key: what it is sorted by, where that is not the text.
    tone: whether it stands out.
    """

    text: str
    key: str = ""
    tone: Tone | None = None


@dataclass(frozen=True)
class Laid:
    """A table as it stands on a page.

    kinds: of each column, number, short (never broken), text or words (which need room).
    rows, footer: the cells, as many in each row as there are columns.
    """

    caption: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[Shown, ...], ...]
    footer: tuple[tuple[Shown, ...], ...]


def lay_out(table: Table) -> Laid:
    """Write a table's cells, the numbers of a column alike."""
    rows, footer = ([_pad(table, row) for row in part] for part in (table.rows, table.footer))
    places = _count_places(table.columns, rows + footer)
    unbroken = [UNBROKEN_NAMES, *[UNBROKEN] * (len(table.columns) - 1)]
    kinds = tuple(_kind([row[n] for row in rows], most) for n, most in enumerate(unbroken))

    return Laid(
        table.caption,
        table.columns,
        kinds,
        rows=tuple(tuple(map(_show, row, places)) for row in rows),
        # That there is no sum goes without saying.
        footer=tuple(
            tuple(map(_show, ["" if cell is None else cell for cell in row], places))
            for row in footer
        ),
    )


def _pad(table: Table, row: Sequence[Cell]) -> list[Cell]:
    return [*row, *[None] * (len(table.columns) - len(row))]


def _kind(cells: Sequence[Cell], unbroken: int) -> str:
    words = [_text(cell) for cell in cells if cell is not None and not is_number(cell)]
    longest = max(map(len, words), default=0)
    if longest > WORDS:
        return "words"
    if 2 * len(words) < sum(cell is not None for cell in cells):
        return "number"
    return "short" if longest <= unbroken else "text"


def _count_places(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Choose each column's digits behind the point; those of a number and its interval alike."""
    first = [n for n, name in enumerate(columns) if name.split(", ")[-1] not in ENDS or n == 0]
    places: list[int] = []
    for start, end in pairwise([*first, len(columns)]):
        places += [count_places([cell for row in rows for cell in row[start:end]])] * (end - start)
    return places


def count_places(cells: Sequence[Cell]) -> int:
    """Choose how many digits behind the point a column's numbers have."""
    found = [float(cell) for cell in cells if is_number(cell) and math.isfinite(cell)]
    largest = max(map(abs, found), default=0.0)
    if largest == 0:
        return 0
    most = min(max(DIGITS - 1 - math.floor(math.log10(largest)), 0), BEHIND)
    return choose_places(found, most)


def _show(cell: Cell, places: int) -> Shown:
    if cell is None:
        return Shown(NOTHING)
    if isinstance(cell, Mark):
        return Shown(cell.text, tone=cell.tone)
    if not is_number(cell):
        return Shown(str(cell))
    is_chance = isinstance(cell, Probability)
    text = format_short_probability(cell) if is_chance else format_places(cell, places)
    # The page's script reads infinities as they are shown.
    plain = not math.isfinite(cell) or _read(text) == float(cell)
    return Shown(text, key="" if plain else f"{float(cell):.12g}")


def _read(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("−", "-"))
    except ValueError:
        return None


def _text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Mark) else str(cell)


def table_csv(table: Table) -> str:
    """Return a table as CSV, every number in full, and no text that a spreadsheet would run."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([_in_full(head) for head in table.columns])
    for row in (*table.rows, *table.footer):
        writer.writerow([_in_full(cell) for cell in _pad(table, row)])
    return file.getvalue()


def _in_full(cell: Cell) -> str:
    if cell is None:
        return ""
    if is_number(cell):
        whole: object = cell
        return str(int(cell)) if isinstance(whole, Integral) else repr(float(cell))
    return escape_formula(_text(cell).replace("\0", ""))


# Pictures.


def _draw(picture: Picture, size: tuple[float, float], *, png: bool = True) -> tuple[str, bytes]:
    """Return a picture as matplotlib writes it: as SVG, and as PNG unless that is not wanted."""
    svg_file, png_file, smaller = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with drawing.styled():
        ax = drawing.new_axes(size)
        picture.draw(ax)
        figure = drawing.figure_of(drawing.finish(ax))
        # On a page it is the page that shows through.
        figure.savefig(svg_file, format="svg", metadata={"Date": None}, facecolor="none")
        if png:
            # Laid out already; both forms are to show the same.
            figure.set_layout_engine("none")
            figure.savefig(png_file, format="png", dpi=DPI)
            # With a palette of 128 colours: a third of the size, and nobody sees it.
            with Image.open(png_file) as image:
                image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(smaller, "png")
    return svg_file.getvalue().decode(), smaller.getvalue()


def picture_svg(picture: Picture, source: str = "") -> str:
    """Draw a picture as an SVG file, in light colours on white.

    source: what matplotlib wrote, where it is drawn already.
    """
    source = source or _draw(picture, picture.size, png=False)[0]
    return style.write_svg(source, title=plain(picture.title), alt=plain(picture.alt))


def picture_png(picture: Picture) -> bytes:
    """Draw a picture as a PNG file."""
    return _draw(picture, picture.size)[1]


def picture_csv(picture: Picture) -> str:
    """Return the numbers of a picture in full, as CSV."""
    return table_csv(picture.data)


def save_picture(picture: Picture, folder: Path) -> list[Path]:
    """Write a picture as SVG and PNG and its numbers as CSV into a folder; give the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, content in _contents(picture, *_draw(picture, picture.size)).items():
        written.append(folder / f"{picture.name}.{suffix}")
        with replacing(written[-1]) as file:
            file.write(content)
    return written


def _contents(picture: Picture, svg: str, png: bytes) -> dict[str, bytes]:
    # The mark in front tells spreadsheets that it is UTF-8.
    return {
        "png": png,
        "svg": picture_svg(picture, svg).encode(),
        "csv": picture_csv(picture).encode("utf-8-sig", "backslashreplace"),
    }


TYPES = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}


# Pages.


@dataclass
class _Builder:
    """Turns the parts of a page into what the template shows, and gathers their CSS."""

    classes: dict[str, str] = field(default_factory=dict)
    tables: int = 0
    sections: int = 0

    def part(self, part: Part, level: int) -> dict[str, Any]:
        if isinstance(part, Section):
            return self.section(part, level)
        if isinstance(part, Picture):
            return self.picture(part)
        if isinstance(part, Table):
            return {"kind": "table", **self.table(part)}
        if isinstance(part, Listing):
            return {"kind": "listing", "entries": part.items}
        if isinstance(part, Card):
            return {"kind": "card", "title": part.title, "entries": part.entries}
        if isinstance(part, Fold):
            inner = [self.part(inside, level) for inside in part.parts]
            return {"kind": "fold", "summary": part.summary, "parts": inner}
        if isinstance(part, Mark):
            return {"kind": "verdict", "text": part.text, "tone": part.tone}
        return {"kind": "paragraph", "text": part}

    def section(self, section: Section, level: int = 2) -> dict[str, Any]:
        self.sections += 1
        number, heading = self.sections, section.heading
        parts = [self.part(part, level + 1) for part in section.parts]
        for part, shown in zip(section.parts, parts, strict=True):
            # The heading says it already.
            shown["unseen"] = heading == getattr(part, "title", getattr(part, "caption", None))
        return {
            "kind": "section",
            "id": f"s{number}",
            "heading": heading,
            "level": min(level, 6),
            "parts": parts,
        }

    def table(self, table: Table) -> dict[str, Any]:
        self.tables += 1
        size = {"long": len(table.rows) > LONG, "tall": len(table.rows) > TALL, "unseen": False}
        return {"id": f"t{self.tables}", "table": lay_out(table), **size}

    def picture(self, picture: Picture) -> dict[str, Any]:
        svg, png = _draw(picture, picture.size)
        drawings = [self.drawing(svg, f"p-{picture.name}", "wide")]
        if picture.narrow is not None:
            second, _ = _draw(picture, picture.narrow, png=False)
            drawings.append(self.drawing(second, f"n-{picture.name}", "narrow"))
        contents = _contents(picture, svg, png)
        return {
            "kind": "picture",
            "picture": picture,
            "drawings": drawings,
            "downloads": {
                key: f"data:{TYPES[key]};base64,{b64encode(content).decode()}"
                for key, content in contents.items()
            },
            **self.table(picture.data),
        }

    def drawing(self, source: str, prefix: str, kind: str) -> dict[str, Any]:
        drawn = style.Drawing(source, prefix=prefix, classes=self.classes)
        size = {"width": f"{drawn.width:g}", "height": f"{drawn.height:g}"}
        shown = {"most": f"{drawn.width * PIXELS:.0f}", "high": f"{drawn.height * PIXELS:.0f}"}
        return {"id": prefix, "kind": kind, "body": Markup(drawn.body), **size, **shown}


def page_html(page: Page) -> str:
    """Return a page as one HTML text that needs nothing else."""
    builder = _Builder()
    head = [builder.part(part, 2) for part in page.head]
    sections = [builder.section(section) for section in page.sections]
    css, script = _css(builder.classes), _read_asset("page.js")
    hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (css, script)]
    # This page's style and script by their hashes, pictures that it holds, nothing else.
    policy = (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    text: str = _template().render(
        page=page,
        head=head,
        sections=sections,
        outline=_outline(page.sections, sections),
        last=LAST,
        css=Markup(css),
        script=Markup(script),
        policy=policy,
    )
    return text


def parts_html(parts: Sequence[Part]) -> str:
    """Return parts of a page as HTML, for a page of somebody else's that has this one's CSS."""
    builder = _Builder()
    text: str = _template(alone=True).render(parts=[builder.part(part, 2) for part in parts])
    return text


def page_css() -> str:
    """Return the CSS of pages, without colours."""
    return _read_asset("page.css")


def _outline(
    sections: Sequence[Section], shown: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """List the headings, with those one level down where that is not too long to read."""
    if len(sections) <= FEW_SECTIONS:
        return []
    inner = [[part for part in top["parts"] if part["kind"] == "section"] for top in shown]
    short = len(shown) + sum(map(len, inner)) <= MOST_LISTED
    return [(top, below if short else []) for top, below in zip(shown, inner, strict=True)]


def _css(classes: dict[str, str]) -> str:
    light, dark = style.declare_colours(0), style.declare_colours(1)
    themes = (
        f":root{{{light}color-scheme:light}}\n"
        "@media (prefers-color-scheme:dark){"
        f":root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
    )
    paper = f"@media print{{:root:root:root{{{light}color-scheme:light}}}}\n"
    fonts = f"body{{font-family:{style.FONTS}}}\n"
    return (
        themes + paper + fonts + _read_asset("page.css") + style.write_rules(classes, themed=True)
    )


@cache
def _read_asset(name: str) -> str:
    return files("fedaccord.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _template(*, alone: bool = False) -> Any:
    """Return the template of a page, or of its parts alone."""
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_show_hidden,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["said"] = _write_text
    text = _read_asset("page.html")
    if alone:
        text = (
            text.partition("<!doctype html>")[0] + "{% for p in parts %}{{ part(p) }}{% endfor %}"
        )
    return environment.from_string(text)


def _show_hidden(value: Any) -> Any:
    """Show what would hide or reverse text; whatever is no markup is escaped after this."""
    return value if hasattr(value, "__html__") else plain(str(value))


def _write_text(text: str) -> Markup:
    """Keep names written from right to left from moving the words round them, and 5 % together."""
    shown = PER_CENT.sub("\u00a0%", str(escape(plain(text))))
    shown = OPTION.sub(lambda found: f'<span class="option">{found[0]}</span>', shown)
    return Markup(LEFTWARD.sub(lambda found: f"<bdi>{found[0]}</bdi>", shown))
