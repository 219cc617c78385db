"""Differences between algorithms and between levels of an audit, as tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fedaccord.report.model import Table
from fedaccord.report.terminal import NO_BREAK
from fedaccord.wording import format_interval, format_level

if TYPE_CHECKING:
    from fedaccord.federation.defection.curves import DefectionAudit
    from fedaccord.federation.defection.intervals import Difference

EXPLAINED = (
    "Differences are between runs of the same trials, so they are more certain than the intervals "
    "of the two shares suggest. An interval that does not include 0 shows a difference. "
    "Agresti and Min (2005) give the formula."
)
SEQUENTIAL = EXPLAINED.replace(
    "Agresti and Min (2005) give the formula.", "The intervals hold at every look, too."
)


def _format(found: Difference | None) -> str:
    if found is None or not found.trials:
        return "-"
    # As many digits as tell an end that is not 0 from 0.
    ends = [abs(end) for end in (found.low, found.high) if end]
    digits = next((n for n in (2, 3, 4) if all(round(end, n) for end in ends)), 4)
    text = format_interval(found.value, found.low, found.high, f"{{:+.{digits}f}}".format)
    zero = f"{0:.{digits}f}"
    text = re.sub(rf"[+-]({re.escape(zero)})(?![0-9])", r"\1", text)
    return text.replace("-", "−").replace(", ", f",{NO_BREAK}")


def compare_with_first(audit: DefectionAudit) -> Table | None:
    """List how much more often a defector reaches its goal than under the first algorithm.

    None where there is one algorithm, or a result of before differences were counted.
    """
    first, *others = audit.curves
    if not any(first.algorithm in point.from_others for c in others for point in c.levels):
        return None
    rows = [
        (
            format_level(point.level),
            *(_format(c.at(point.level).from_others.get(first.algorithm)) for c in others),
        )
        for point in first.levels
    ]
    return Table(
        f"How much more often a defector reaches its goal than under {first.algorithm}",
        (f"compared with {first.algorithm}", *(curve.algorithm for curve in others)),
        tuple(rows),
    )


def compare_with_full(audit: DefectionAudit) -> Table | None:
    """List how much more often a defector reaches its goal than at full contribution.

    None where only full contribution was tried, or in a result of before this was counted.
    """
    levels = [p.level for p in audit.curves[0].levels if p.from_full is not None]
    rows = [
        (format_level(level), *(_format(c.at(level).from_full) for c in audit.curves))
        for level in levels
    ]
    heads = (curve.algorithm for curve in audit.curves)
    caption = "How much more often a defector reaches its goal than at 100 %"
    return Table(caption, ("compared with 100 %", *heads), tuple(rows)) if rows else None
