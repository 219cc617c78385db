"""Audits of defection as charts: lines to be drawn, without a way to draw.

Nothing here needs torch or matplotlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedaccord.charts import Chart, Line

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import (
        DefectionAudit,
        DefectionCurve,
        DefectionLevel,
        Satisfaction,
    )
    from fedaccord.federation.defection.intervals import Proportion


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
