"""Parts of reports as HTML, and charts as options of ECharts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup, escape

from fedaccord.charts import Chart
from fedaccord.explore.view import Point, Shown
from fedaccord.report.html import lay_out
from fedaccord.report.html import Shown as Cell
from fedaccord.report.model import Card, Fold, Listing, Mark, Section, Table
from fedaccord.report.style import COLOURS
from fedaccord.report.terminal import plain

# What stands before a verdict, so that it never rests on colour alone.
SIGNS = {"good": "✓", "bad": "✗", "unsure": "?", "plain": ""}


def draw_parts(parts: Sequence[Shown]) -> str:
    """Return parts as HTML in which nothing is left unescaped; charts are left out."""
    return "".join(str(text) for part in parts for text in _draw(part))


def _draw(part: Shown, level: int = 2) -> Iterator[Markup]:
    if isinstance(part, Table):
        yield draw_table(part)
    elif isinstance(part, Mark):
        yield draw_mark(part)
    elif isinstance(part, Listing):
        items = Markup("").join(Markup("<li>{}</li>").format(_text(item)) for item in part.items)
        yield Markup("<ul>{}</ul>").format(items)
    elif isinstance(part, str):
        yield Markup("<p>{}</p>").format(_text(part))
    elif isinstance(part, Section | Fold | Card):
        yield from _draw_group(part, level)


def _draw_group(part: Section | Fold | Card, level: int) -> Iterator[Markup]:
    if isinstance(part, Card):
        yield Markup("<h3>{}</h3>").format(_text(part.title))
        for word, text in part.entries:
            yield Markup("<p><b>{}</b> {}</p>").format(_text(word), _text(text))
        return
    head = part.heading if isinstance(part, Section) else part.summary
    yield Markup("<h{0}>{1}</h{0}>").format(level, _text(head))
    for inner in part.parts:
        yield from _draw(inner, level + 1)


def draw_mark(mark: Mark) -> Markup:
    """Return a verdict or a sentence that stands out."""
    said = f"{SIGNS[mark.tone]} {mark.text}".strip()
    return Markup('<p class="mark {}">{}</p>').format(mark.tone, _text(said))


def draw_table(table: Table) -> Markup:
    """Return a table that scrolls by itself where the screen is narrow."""
    laid = lay_out(table)
    heads = _join("<th scope=col class={}>{}</th>", zip(laid.kinds, laid.columns, strict=True))
    body = Markup("").join(_draw_row(row, laid.kinds) for row in laid.rows)
    foot = Markup("").join(_draw_row(row, laid.kinds) for row in laid.footer)
    return Markup(
        '<div class="scroll" tabindex="0" role="region"><table><caption>{}</caption>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody><tfoot>{}</tfoot></table></div>"
    ).format(_text(table.caption), heads, body, foot)


def _draw_row(row: Sequence[Cell], kinds: Sequence[str]) -> Markup:
    cells = Markup("").join(
        Markup("<td class='{} {}'>{}</td>").format(
            kind, cell.tone or "", _text(f"{SIGNS[cell.tone or 'plain']} {cell.text}".strip())
        )
        for cell, kind in zip(row[1:], kinds[1:], strict=True)
    )
    return Markup("<tr><th scope=row>{}</th>{}</tr>").format(_text(row[0].text), cells)


def draw_figures(figures: Sequence[tuple[str, str]]) -> str:
    """Return the numbers that matter, each above its name."""
    pairs = ((value, _text(name)) for name, value in figures)
    return str(_join("<div><b>{}</b><span>{}</span></div>", pairs))


def _join(pattern: str, rows: Any) -> Markup:
    return Markup("").join(Markup(pattern).format(*row) for row in rows)


def _text(text: str) -> Markup:
    """Return a text that is safe, with what cannot be seen written out."""
    return escape(plain(str(text)))


# Charts.


def chart_options(chart: Chart, *, dark: bool) -> dict[str, Any]:
    """Return a chart with its intervals as options of ECharts."""
    series: list[dict[str, Any]] = []
    for n, line in enumerate(chart.lines):
        colour = COLOURS[f"series-{n % 6 + 1}"][dark]
        points = [[x, y] for x, y in zip(line.x, line.y, strict=True)]
        kind = "scatter" if len(points) == 1 else "line"
        series.append(
            {
                "name": line.name,
                "type": kind,
                "data": points,
                "symbolSize": 14 if kind == "scatter" else 7,
                "color": colour,
                "lineStyle": {"type": "dashed" if line.of or line.reference else "solid"},
            }
        )
        series += _draw_intervals(line.x, line.low, line.high, colour)
    return _frame(chart.x, chart.y, series, dark=dark, most=1.0 if chart.percent else None)


def _draw_intervals(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> list[dict[str, Any]]:
    """Return each interval as a vertical line of its own."""
    ends = zip(x, low, high, strict=False) if low else ()
    style = {"type": "line", "color": colour, "symbol": "none", "silent": True}
    return [{**style, "data": [[at, a], [at, b]], "lineStyle": {"width": 1}} for at, a, b in ends]


def scatter_options(points: Sequence[Point], *, dark: bool) -> dict[str, Any]:
    """Return stable plans as a scatter: cost, firmness, and the largest contribution as size."""
    most = max((point.largest for point in points), default=1.0) or 1.0
    data = [
        {
            "value": [point.total, point.firmness],
            "name": f"stable plan {n + 1}",
            "symbolSize": 12 + 24 * point.largest / most,
            "itemStyle": {
                "color": COLOURS["series-2" if point.chosen else "series-1"][dark],
                "borderColor": COLOURS["ink"][dark],
                "borderWidth": 2 if point.chosen else 0,
            },
        }
        for n, point in enumerate(points)
    ]
    series = [{"type": "scatter", "data": data, "name": "stable plans"}]
    return _frame("total cost", "how much a defector loses", series, dark=dark, most=1.0)


def _frame(
    x: str, y: str, series: list[dict[str, Any]], *, dark: bool, most: float | None
) -> dict[str, Any]:
    ink, grid = COLOURS["ink"][dark], COLOURS["grid"][dark]
    axis = {
        "type": "value",
        "scale": True,
        "nameLocation": "middle",
        "axisLabel": {"color": ink},
        "nameTextStyle": {"color": ink},
        "splitLine": {"lineStyle": {"color": grid}},
    }
    top = {} if most is None else {"min": 0, "max": most}
    return {
        "animation": False,
        "textStyle": {"color": ink},
        "legend": {
            "textStyle": {"color": ink},
            "data": [one["name"] for one in series if "name" in one],
        },
        "tooltip": {"trigger": "item"},
        "grid": {"left": 70, "right": 24, "top": 40, "bottom": 50},
        "xAxis": {**axis, "name": x, "nameGap": 28},
        "yAxis": {**axis, "name": y, "nameGap": 50, **top},
        "series": series,
    }
