"""Audits of defection and runs of training as charts: lines to be drawn, without a way to draw.

Nothing here needs torch or matplotlib.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Vector
from fedaccord.charts import Chart, Line

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Satisfaction,
    )
    from fedaccord.federation.defection.intervals import Proportion
    from fedaccord.federation.history import History

# With more clients than this a chart of training shows how they spread, not each of them.
MOST_LINES = 8


# Defection.


def defection_chart(audit: DefectionAudit) -> Chart:
    """Chart how often a client that gives less is satisfied all the same, by algorithm.

    Each algorithm has a line with its 95 % intervals, and where clients do not fare alike one for
    the client that fares worst.

    audit: what was found; under P2 only clients count of whom something is asked.
    """
    lines = [line for curve in audit.curves for line in _curve_lines(audit, curve)]
    what = "its data" if audit.protocol == "P1" else "what is asked of it"
    rest = "theirs" if audit.protocol == "P1" else "what is asked of them"
    return Chart(
        name="defection" if audit.protocol == "P1" else "defection-from-plan",
        title="Runs in which the agent that gives less still reaches its goal",
        x=f"per cent of {what} that {defector(audit)} brings; the others bring all of {rest}",
        y="runs in which it still reaches its goal, with 95 % intervals",
        alt=_defection_alt(lines),
        lines=tuple(lines),
        percent=True,
    )


def defector(audit: DefectionAudit, *curves: DefectionCurve) -> str:
    """Say who it is that gives less: a random contributor where of some nothing is asked.

    audit: the audit.
    curves: those that are spoken of; all of them where left out.
    """
    idle = any(0 in curve.contributions for curve in curves or audit.curves)
    return "a random contributor" if idle and audit.protocol == "P2" else "a random agent"


def defector_share(audit: DefectionAudit, found: Satisfaction) -> Proportion:
    """Give the share of the one who gives less: under P2, of those who have something to cut."""
    return found.random if audit.protocol == "P1" else found.contributors


def worst_off(curve: DefectionCurve) -> str | None:
    """Name the client that is satisfied least often over all levels; None where all fare alike."""
    asked = dict(zip(curve.levels[0].at_end.clients, curve.contributions, strict=True))
    shares = {
        name: [point.at_end.clients[name].p for point in curve.levels if _tried(point, name)]
        for name, points in asked.items()
        if points
    }
    means = {name: float(np.mean(found)) for name, found in shares.items() if found}
    if len(set(means.values())) < 2:
        return None
    return min(means, key=lambda name: means[name])


def _tried(point: DefectionLevel, name: str) -> bool:
    return point.at_end.clients[name].trials > 0


def _curve_lines(audit: DefectionAudit, curve: DefectionCurve) -> list[Line]:
    """Give an algorithm's line, and below it that of the client that fares worst."""
    points = sorted(curve.levels, key=lambda point: point.level)
    known = [(100 * p.level, defector_share(audit, p.at_end)) for p in points]
    seen = [(level, share) for level, share in known if share.trials]
    if not seen:
        return []
    places = tuple(level for level, _ in seen)
    mean = Line(
        curve.algorithm,
        places,
        tuple(share.p for _, share in seen),
        low=tuple(share.low for _, share in seen),
        high=tuple(share.high for _, share in seen),
    )
    worst = worst_off(curve)
    if worst is None:
        return [mean]
    own = [(100 * p.level, p.at_end.clients[worst].p) for p in points if _tried(p, worst)]
    dashed = Line(
        f"{curve.algorithm}, worst off: {worst}",
        tuple(level for level, _ in own),
        tuple(share for _, share in own),
        of=curve.algorithm,
    )
    return [mean, dashed]


def _defection_alt(lines: list[Line]) -> str:
    """Give the shares that the lines show, from full contribution down."""
    said = []
    for line in lines:
        pairs = sorted(zip(line.x, line.y, strict=True), reverse=True)
        shares = ", ".join(f"{100 * share:.0f} % with {level:g} %" for level, share in pairs)
        said.append(f"{line.name}: satisfied in {shares}")
    return f"{'; '.join(said)}." if said else "Nothing is asked of anybody."


# Training.


def training_chart(history: History) -> Chart:
    """Chart how accurate the model is for each client, round by round, with the goal.

    Of many clients there are the median with quartiles, the best, the worst, and the one that
    ends furthest below its goal. Where goals differ, accuracy is counted from each client's own.

    history: the run; rounds without an evaluation have no point.
    """
    goals = np.unique(history.requirements)
    same = len(goals) == 1
    heights = history.accuracy if same else 100 * (history.accuracy - history.requirements)
    lines = _each(history, heights)
    if len(history.clients) > MOST_LINES:
        worst = furthest(history)
        where = "closest to" if history.satisfied[worst] else "furthest below"
        own = _line(f"{where} its goal: {history.clients[worst]}", heights[:, worst])
        lines = [*_spread(heights, most="the most accurate", least="the least accurate"), own]
    y = "accuracy on the own validation points"
    return Chart(
        name="training",
        title="Accuracy round by round, and the goal",
        x="round of training",
        y=y if same else f"{y}, percentage points above the own goal",
        alt=_training_alt(history),
        lines=tuple(lines),
        percent=same,
        goal=float(goals[0]) if same else 0.0,
    )


def furthest(history: History) -> int:
    """Give the place of the client that ends furthest below its goal, or least above it."""
    short = np.nan_to_num(history.requirements - history.final, nan=np.inf)
    return int(np.argmax(short))


def _each(history: History, heights: Vector) -> list[Line]:
    return [_line(name, heights[:, i]) for i, name in enumerate(history.clients)]


def _spread(heights: Vector, *, most: str, least: str) -> list[Line]:
    """Give the median with quartiles, and the extremes, of each round.

    heights: one row a round, one column a client.
    most, least: what the extremes are called.
    """
    # An algorithm may look at some clients more often: only rounds in which all were looked at.
    common = heights.copy()
    common[np.isnan(heights).any(axis=1)] = np.nan
    low, middle, high = np.quantile(common, (0.25, 0.5, 0.75), axis=1)
    median = _line("median, with quartiles", middle)
    seen = ~np.isnan(middle)
    return [
        replace(median, low=_values(low[seen]), high=_values(high[seen])),
        _line(most, common.max(axis=1), of=median.name),
        _line(least, common.min(axis=1), of=median.name),
    ]


def _line(name: str, heights: Vector, *, of: str = "") -> Line:
    rounds = np.flatnonzero(~np.isnan(heights))
    return Line(name, _values(rounds + 1), _values(heights[rounds]), of=of)


def _values(array: NDArray[Any]) -> tuple[float, ...]:
    return tuple(array.tolist())


def draws_chart(history: History) -> Chart:
    """Chart how many samples each client has drawn by each round: whom the algorithm asks most.

    history: the run.
    """
    drawn = np.cumsum(history.samples, axis=0).astype(np.float64)
    lines = _each(history, drawn)
    if len(history.clients) > MOST_LINES:
        lines = _spread(drawn, most="who draws most", least="who draws least")
    totals, names = drawn[-1], history.clients
    most, least = int(totals.argmax()), int(totals.argmin())
    return Chart(
        name="draws",
        title="Samples drawn up to each round",
        x="round of training",
        y="samples drawn so far",
        alt=(
            f"By the last round {names[most]} has drawn {totals[most]:,.0f} samples, the most, and "
            f"{names[least]} {totals[least]:,.0f}, the fewest; all together {totals.sum():,.0f}."
        ),
        lines=tuple(lines),
    )


def _training_alt(history: History) -> str:
    """Say where the accuracies end, and how many reach the goal."""
    final = history.final
    if np.isnan(final).all():
        return "Training diverged: there is no accuracy at its end."
    count, reached = len(history.clients), int(history.satisfied.sum())
    goals = history.requirements
    goal = f"{goals[0]:g}" if len(np.unique(goals)) == 1 else f"{goals.min():g} to {goals.max():g}"
    if count > MOST_LINES:
        ends = f"Accuracies end between {np.nanmin(final):.3f} and {np.nanmax(final):.3f}"
    else:
        pairs = zip(history.clients, final, strict=True)
        ends = "At the end " + ", ".join(f"{name} has {value:.3f}" for name, value in pairs)
    return f"{ends}; the goal is {goal}, and {reached:,} of {count:,} reach it."
