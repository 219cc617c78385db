"""Audits of defection as charts: lines to be drawn, without a way to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedaccord.charts import Chart, Line

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import DefectionAudit, DefectionCurve


def defection_chart(audit: DefectionAudit) -> Chart:
    """Chart how often a defector still reaches its goal, by algorithm.

    Each algorithm has a line with its 95 % intervals. If clients differ, a dashed line shows the
    client for which defection fails most often.

    audit: the audit; under P2 only clients count that the plan asks for something.
    """
    lines = [line for curve in audit.curves for line in _draw_curve(audit, curve)]
    what = "its data" if audit.protocol == "P1" else "what the plan asks of it"
    who = audit.describe_defector()
    return Chart(
        name="defection" if audit.protocol == "P1" else "defection-from-plan",
        title="How often a defector still reaches its goal",
        x=f"per cent of {what} that {who} gives; the others give all",
        y="runs in which the defector reaches its goal, with 95 % intervals",
        alt=_describe_lines(lines),
        lines=tuple(lines),
        percent=True,
    )


def _draw_curve(audit: DefectionAudit, curve: DefectionCurve) -> list[Line]:
    """Return an algorithm's line, and that of the client for which defection fails most often."""
    points = sorted(curve.levels, key=lambda point: point.level)
    known = [(100 * p.level, audit.defector_share(p.judged)) for p in points]
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
    worst = curve.find_worst_off()
    if worst is None:
        return [mean]
    own = [
        (100 * p.level, p.judged.clients[worst].p) for p in points if p.judged.clients[worst].trials
    ]
    dashed = Line(
        f"{curve.algorithm}, worst off: {worst}",
        tuple(level for level, _ in own),
        tuple(share for _, share in own),
        of=curve.algorithm,
    )
    return [mean, dashed]


def _describe_lines(lines: list[Line]) -> str:
    """Return the shares that the lines show, from full contribution down."""
    said = []
    for line in lines:
        pairs = sorted(zip(line.x, line.y, strict=True), reverse=True)
        shares = ", ".join(f"{100 * share:.0f} % with {level:g} %" for level, share in pairs)
        said.append(f"{line.name}: the defector reaches its goal in {shares}")
    return f"{'; '.join(said)}." if said else "The plan asks nothing of any agent."
