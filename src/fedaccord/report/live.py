"""What a page that changes shows: numbers that matter as HTML, charts as options of ECharts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

from markupsafe import Markup, escape

from fedaccord._io.numbers import Marks, read_number
from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.planning.result import Plan
from fedaccord.report.style import COLOURS
from fedaccord.report.terminal import plain
from fedaccord.wording import format_amount

# How many places a slider has, more or less.
PLACES = 400
# The largest number that is read.
MOST = 1e15
# The most letters of a line of an axis' name; and where such a name begins, left of its axis.
LETTERS = 44
LEFT = {"align": "left", "padding": [0, 0, 0, -56]}
# The part of the axis that is left free at its ends if lines are moved sideways.
MARGIN = 0.04
# How many pixels points are moved that would cover each other.
APART = 24


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
    groups = list(dict.fromkeys(line.of or line.name for line in chart.lines))
    shifts = _shift(chart)
    for line in chart.lines:
        # A line that is a detail of another is drawn like it.
        colour = COLOURS[f"series-{groups.index(line.of or line.name) % 6 + 1}"][dark]
        shift = shifts.get(line.of or line.name, 0.0)
        points = [_draw_point(line, x, y, shift) for x, y in zip(line.x, line.y, strict=True)]
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
        series += _draw_intervals([x + shift for x in line.x], line.low, line.high, colour)
    options = _frame(
        say(chart.x), say(chart.y), series, dark=dark, most=1.0 if chart.percent else None
    )
    if shifts:
        # What is moved beyond the last tick needs no other tick.
        places = [x for line in chart.lines for x in line.x]
        low, high = min(places), max(places)
        room = {"min": low - MARGIN * (high - low), "max": high + MARGIN * (high - low)}
        labels = {"showMinLabel": False, "showMaxLabel": False}
        axis = options["xAxis"]
        axis |= {**room, "axisLabel": {**axis["axisLabel"], **labels}}
    return options


def _shift(chart: Chart) -> dict[str, float]:
    """Return how far lines move sideways, so that their intervals do not cover each other."""
    barred = [line.name for line in chart.lines if line.low]
    places = [x for line in chart.lines for x in line.x]
    if len(barred) < 2 or min(places) == max(places):
        return {}
    step = min(0.01, MARGIN / len(barred)) * (max(places) - min(places))
    return {name: step * (n - (len(barred) - 1) / 2) for n, name in enumerate(barred)}


def _draw_point(line: Line, x: float, y: float, shift: float) -> Any:
    """Return a point; one that was moved still says where it belongs."""
    if not shift:
        return [x, y]
    said = str(escape(f"{plain(line.name)}: {y:.3g} at {x:g}"))
    return {"value": [x + shift, y], "tooltip": {"formatter": said}}


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
    data: list[dict[str, Any]] = []
    places: list[tuple[str, str]] = []
    for n, (one, size) in enumerate(zip(plan.tradeoffs, sizes, strict=True)):
        stands_out = one.chosen if chosen is None else n == chosen
        firmness = (one.own_part or 0.0) if one.cut is None else 1 - one.cut
        place = f"{one.total:.3g}", f"{firmness:.2f}"
        places.append(place)
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
                # Plans that would cover each other stand side by side.
                "symbolOffset": [APART * (places.count(place) - 1), 0],
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
        "nameTextStyle": {"color": ink, "lineHeight": 15},
        "splitLine": {"lineStyle": {"color": grid}},
    }
    names = [one["name"] for one in series if "name" in one]
    top = {} if most is None else {"min": 0, "max": most}
    # Above the axis and in lines of its own, a name fits any height and any width.
    below, above = (wrap(name, LETTERS) for name in (x, y))
    legend = 30 * (len(names) > 1)
    start = {"nameLocation": "end", "nameTextStyle": {**LEFT, "color": ink, "lineHeight": 15}}
    return {
        "animation": False,
        "textStyle": {"color": ink},
        "legend": {
            "top": 0,
            "type": "scroll",
            "textStyle": {"color": ink},
            "data": names if len(names) > 1 else [],
        },
        "tooltip": {"trigger": "item", "confine": True},
        "grid": {
            "left": 62,
            "right": 24,
            "top": legend + 16 * len(above) + 12,
            "bottom": 34 + 16 * len(below),
            "outerBoundsMode": "none",
        },
        "xAxis": {**axis, "name": "\n".join(below), "nameGap": 28},
        "yAxis": {**axis, **start, "name": "\n".join(above), "nameGap": 10, **top},
        "series": series,
    }


def quote(name: str) -> str:
    """Return a name that can stand in the property of an element."""
    return plain(name).replace('"', "'").replace("\\", "/")


def read_field(value: Any, what: str) -> float | None:
    """Return a number of 0 or more as tables have it, or raise an InputError; None for nothing.

    value: a number, or what was typed.
    what: what it is, for messages.
    """
    if value in (None, ""):
        return None
    number = value if isinstance(value, int | float) else read_number(str(value), what, Marks())
    if not number >= 0:
        raise InputError(f"{what} must be 0 or more; got {str(value)[:40]}")
    if number > MOST:
        raise InputError(f"{what} must be {MOST:,.0f} or less; got {str(value)[:40]}")
    return float(number)
