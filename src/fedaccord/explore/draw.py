"""Parts of reports as HTML, and charts as options of ECharts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedaccord.charts import Chart
from fedaccord.explore.view import Point, Shown
from fedaccord.report.html import parts_html
from fedaccord.report.style import COLOURS


def draw_parts(parts: Sequence[Shown]) -> str:
    """Return parts as HTML in which nothing is left unescaped; charts are drawn elsewhere."""
    return parts_html([part for part in parts if not isinstance(part, Chart)])


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
