"""What single runs leave of goals that a plan cannot promise; probabilities are `games.chances`."""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Matrix, Vector, frozen
from fedaccord.games.chances import (
    RUNS,
    TAIL,
    TINY,
    Chances,
    Estimate,
    Estimates,
    spread,
    spread_of,
)

__all__ = [
    "RUNS",
    "TAIL",
    "Chances",
    "Estimate",
    "Estimates",
    "lower_goals",
    "spread",
    "spread_of",
]


def lower_goals(runs: Matrix, goals: Vector, probability: float) -> Vector:
    """Lower the goals of those who miss them until runs meet all of them as often as asked.

    Each goal becomes what an agent reaches in the same part q of its runs, if that is less than the
    goal; q is the least part that will do.

    runs: accuracies of single runs, a row each.
    goals: what was wanted.
    probability: in what part of the runs all goals are to be met.
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        part = (low + high) / 2
        lowered = _lower_to_part(runs, goals, part)
        enough = (runs >= lowered - TINY).all(axis=1).mean() >= probability
        low, high = (low, part) if enough else (part, high)
    return frozen(_lower_to_part(runs, goals, high))


def _lower_to_part(runs: Matrix, goals: Vector, part: float) -> Vector:
    return np.minimum(goals, np.quantile(runs, 1 - part, axis=0, method="inverted_cdf"))
