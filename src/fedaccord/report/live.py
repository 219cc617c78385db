"""What a page that changes shows: numbers that matter as HTML, charts as options of ECharts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from fedaccord.charts import Chart
from fedaccord.planning.result import Plan
from fedaccord.report.style import COLOURS
from fedaccord.report.terminal import plain
from fedaccord.wording import format_amount

# How many places a slider has, more or less.
PLACES = 400


def choose_step(top: float) -> float:
    """Return the step of a slider: 1, 2 or 5 times a power of ten, at most about 400 places."""
    rough = top / PLACES
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough)


def draw_figures(figures: Sequence[tuple[str, str]]) -> str:
    """Return the numbers that matter, each above its name."""
    pair = Markup("<div><b>{}</b><span>{}</span></div>")
    return str(Markup("").join(pair.format(value, name) for name, value in figures))


def chart_options(chart: Chart, say: Callable[[str], str] = str, *, dark: bool) -> dict[str, Any]:
    """Return a chart with its intervals as options of ECharts.

    chart: what is drawn.
    say: puts texts into the user's words.
    dark: whether the page is dark.
    """
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
    return _frame(
        say(chart.x), say(chart.y), series, dark=dark, most=1.0 if chart.percent else None
    )


def _draw_intervals(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> list[dict[str, Any]]:
    """Return each interval as a vertical line of its own."""
    ends = zip(x, low, high, strict=False) if low else ()
    style = {"type": "line", "color": colour, "symbol": "none", "silent": True}
    return [{**style, "data": [[at, a], [at, b]], "lineStyle": {"width": 1}} for at, a, b in ends]


def tradeoff_options(plan: Plan, chosen: int | None, *, dark: bool) -> dict[str, Any]:
    """Return the stable plans to choose from: cost, what a defector loses, largest contribution.

    plan: whose equilibria they are.
    chosen: the number of the one that stands out; None for the plan.
    dark: whether the page is dark.
    """
    sizes = [float(one.contributions[one.largest]) for one in plan.tradeoffs]
    data = []
    for n, (one, size) in enumerate(zip(plan.tradeoffs, sizes, strict=True)):
        stands_out = one.chosen if chosen is None else n == chosen
        firmness = (one.own_part or 0.0) if one.cut is None else 1 - one.cut
        style = {
            "color": COLOURS["series-2" if stands_out else "series-1"][dark],
            "borderColor": COLOURS["ink"][dark],
            "borderWidth": 2 * stands_out,
        }
        data.append(
            {
                "value": [one.total, firmness],
                "name": f"stable plan {n + 1}; largest contribution {format_amount(size)}",
                "symbolSize": 12 + 24 * size / (max(sizes) or 1.0),
                "itemStyle": style,
            }
        )
    series = [{"type": "scatter", "data": data, "name": "stable plans"}]
    loss = (
        "own part of what contributors need"
        if plan.tradeoffs[0].cut is None
        else ("probability that a defector misses its goal")
    )
    return _frame("total cost", loss, series, dark=dark, most=1.0)


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
    names = [one["name"] for one in series if "name" in one]
    top = {} if most is None else {"min": 0, "max": most}
    return {
        "animation": False,
        "textStyle": {"color": ink},
        "legend": {"top": 0, "textStyle": {"color": ink}, "data": names if len(names) > 1 else []},
        "tooltip": {"trigger": "item"},
        "grid": {"left": 70, "right": 24, "top": 40, "bottom": 50},
        "xAxis": {**axis, "name": x, "nameGap": 28},
        "yAxis": {**axis, "name": y, "nameGap": 50, **top},
        "series": series,
    }


def quote(name: str) -> str:
    """Return a name that can stand in the property of an element."""
    return plain(name).replace('"', "'").replace("\\", "/")


def read_field(value: Any) -> float | None:
    """Return a number of 0 or more; None where the field is empty or holds no such number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number <= 1e15 else None
