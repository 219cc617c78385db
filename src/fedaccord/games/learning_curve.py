"""Learning curves: how accurate a model becomes with so many samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import LARGEST, Matrix, Vector, as_numbers
from fedaccord.errors import InputError

# The numbers of a curve, in the order in which arrays of curves hold them.
PARTS = ("floor", "height", "head", "pace")
# A need below this part of the head start is the rounding of a need of none.
ROUNDING = 1e-12


@dataclass(frozen=True)
class LearningCurve:
    """A power law with a floor, in effective samples n.

        accuracy(n) = 1 - floor - height * (head + n)^(-pace),   cut off at 0

    floor: the error that no amount of data takes away.
    height: how large the error above the floor is.
    head: how many samples' worth is known before the first, as by pre-training.
    pace: how fast the error falls.
    """

    floor: float
    height: float
    head: float
    pace: float

    def __post_init__(self) -> None:
        for name in PARTS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
                raise InputError(f"the {name} of a learning curve must be a number; got {value!r}")
            object.__setattr__(self, name, float(value))
        wrong = (
            ("floor", not 0 <= self.floor < 1, "at least 0 and below 1"),
            ("height", not 0 < self.height < np.inf, "above 0"),
            ("head", not 0 <= self.head <= LARGEST, "0 or more"),
            ("pace", not 0 < self.pace <= LARGEST, "above 0"),
        )
        for name, bad, rule in wrong:
            if bad:
                got = getattr(self, name)
                raise InputError(f"the {name} of a learning curve must be {rule}; got {got:g}")

    @property
    def best(self) -> float:
        """The accuracy that more and more data comes close to."""
        return 1 - self.floor

    def accuracy(self, samples: ArrayLike) -> Any:
        """Give the accuracy with so many effective samples, for a number or an array of them."""
        return accuracies_of(self.row, np.asarray(samples, dtype=float))[()]

    def need(self, goal: ArrayLike) -> Any:
        """Give the least effective samples that reach a goal; inf where none do, 0 at once."""
        return needs_of(self.row, np.asarray(goal, dtype=float))[()]

    @property
    def row(self) -> Vector:
        """The four numbers as an array."""
        return np.array([self.floor, self.height, self.head, self.pace])

    def to_dict(self) -> dict[str, float]:
        """Give the curve as GAME.json holds it."""
        return {name: getattr(self, name) for name in PARTS}


def accuracies_of(curves: Matrix, samples: Matrix) -> Matrix:
    """Give accuracies of many curves at once.

    curves: (..., 4), the parts of each curve.
    samples: effective samples, of the shape in front or one that goes with it.
    """
    floor, height, head, pace = np.moveaxis(curves, -1, 0)
    with np.errstate(divide="ignore", over="ignore"):
        error = floor + height * (head + samples) ** -pace
    return np.asarray(np.maximum(1 - error, 0.0))


def needs_of(curves: Matrix, goals: Matrix) -> Matrix:
    """Give the effective samples that reach the goals on many curves at once; inf where none do.

    curves: (..., 4), the parts of each curve.
    goals: accuracies, of the shape in front or one that goes with it.
    """
    floor, height, head, pace = np.moveaxis(curves, -1, 0)
    above = (1 - goals) - floor
    with np.errstate(divide="ignore", over="ignore"):
        total = (np.maximum(above, 0.0) / height) ** (-1 / pace)
    needs = np.where(total - head > ROUNDING * head, total - head, 0.0)
    # Every model is right with probability 0 at least.
    return np.where(goals <= 0, 0.0, np.where(needs > LARGEST, np.inf, needs))


def curve_rows(curves: Sequence[LearningCurve] | ArrayLike) -> Matrix:
    """Give curves as an array with one row each, whichever way they came."""
    if isinstance(curves, Sequence):
        made = [curve.row for curve in curves if isinstance(curve, LearningCurve)]
        if made and len(made) == len(curves):
            return np.array(made)
    rows = as_numbers(curves, "curves")
    if rows.ndim != 2 or rows.shape[1] != len(PARTS):
        raise InputError(
            f"curves must be learning curves or rows of ({', '.join(PARTS)}); got shape "
            f"{rows.shape}"
        )
    return rows
