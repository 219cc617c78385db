"""Pages as HTML: one file that needs nothing else, and pictures as SVG, PNG and CSV."""

from __future__ import annotations

import csv
import io
from numbers import Real
from pathlib import Path
from typing import Any

from fedaccord._files import replacing
from fedaccord._lazy import imported
from fedaccord.report import drawing
from fedaccord.report.page import Cell, Mark, Page, Picture, Table
from fedaccord.report.terminal import plain

jinja2 = imported("jinja2")


def page_html(page: Page) -> str:
    """Give a page as one HTML text that needs nothing else."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fedaccord.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    template = environment.get_template("page.html")
    kinds = {"svg": lambda p: jinja2.utils.markupsafe.Markup(_inner(picture_svg(p)))}
    text: str = template.render(page=page, kind=lambda part: type(part).__name__, **kinds)
    return text


def _inner(svg: str) -> str:
    return svg[svg.index("<svg") :]


def _shown(value: Any) -> Any:
    if isinstance(value, Mark):
        value = value.text
    if value is None:
        return "–"
    if isinstance(value, Real):
        return f"{float(value):,.6g}"
    return value if hasattr(value, "__html__") else plain(str(value))


def picture_svg(picture: Picture) -> str:
    """Draw a picture as SVG."""
    return _drawn(picture, "svg").decode()


def picture_png(picture: Picture, *, dpi: int = 200) -> bytes:
    """Draw a picture as PNG."""
    return _drawn(picture, "png", dpi=dpi)


def _drawn(picture: Picture, form: str, **options: Any) -> bytes:
    with drawing.styled():
        ax = drawing.new_axes(picture.size)
        picture.draw(ax)
        drawing.finish(ax)
        file = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else None
        drawing.figure_of(ax).savefig(file, format=form, metadata=metadata, **options)
    return file.getvalue()


def picture_csv(picture: Picture) -> str:
    """Give the numbers of a picture in full, as CSV."""
    return table_csv(picture.data)


def table_csv(table: Table) -> str:
    """Give a table as CSV."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([_cell(head) for head in table.columns])
    writer.writerows([[_cell(cell) for cell in row] for row in table.rows])
    return file.getvalue()


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Real):
        return repr(cell)
    text = cell.text if isinstance(cell, Mark) else str(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def save_picture(picture: Picture, folder: Path) -> list[Path]:
    """Write a picture as SVG and PNG and its numbers as CSV into a folder; give the files."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "svg": picture_svg(picture).encode(),
        "png": picture_png(picture),
        "csv": picture_csv(picture).encode(),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(folder / f"{picture.name}.{suffix}")
        with replacing(paths[-1]) as file:
            file.write(content)
    return paths
