"""Lines to be drawn, as data: what a figure shows, and nothing of how it looks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedaccord.errors import InputError


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    name: what the legend calls it.
    x, y: its points.
    low, high: the ends of the interval round each y, where there are any.
    reference: whether it is there to be compared with, and was not measured.
    of: the name of a line that this one is a detail of, to be drawn like it but dashed.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    reference: bool = False
    of: str = ""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.low) != len(self.high):
            raise InputError(f"the line {self.name} needs as many y as x, and as many high as low")
        if self.low and len(self.low) != len(self.y):
            raise InputError(f"the line {self.name} needs an interval for each point, or none")

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values."""
        ends = {"low": list(self.low), "high": list(self.high)} if self.low else {}
        kind = {"reference": True} if self.reference else {}
        part = {"of": self.of} if self.of else {}
        return {"name": self.name, "x": list(self.x), "y": list(self.y), **ends, **kind, **part}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Line:
        """Make a line of what to_dict gives, or of that after it was JSON, where NaN is null."""
        values: dict[str, Any] = dict(data)
        for key in ("x", "y", "low", "high"):
            values[key] = tuple(math.nan if v is None else v for v in data.get(key, ()))
        return cls(**values)


@dataclass(frozen=True)
class Chart:
    """A figure as data.

    name: a word for its files, as in defection.svg.
    title: what it shows.
    x, y: what the axes are.
    alt: what someone who cannot see it should know, with the numbers that matter.
    lines: what is drawn.
    logarithmic: whether both axes are.
    percent: whether y is a share, from 0 to 1.
    goal: a height to be marked.
    """

    name: str
    title: str
    x: str
    y: str
    alt: str
    lines: tuple[Line, ...]
    logarithmic: bool = False
    percent: bool = False
    goal: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the chart as plain values."""
        return {**vars(self), "lines": [line.to_dict() for line in self.lines]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chart:
        """Make a chart of what to_dict gives."""
        return cls(**{**data, "lines": tuple(Line.from_dict(line) for line in data["lines"])})
