"""Numbers seen in a few trials, with how far the true ones may be from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector

RESAMPLES = 2_000


@dataclass(frozen=True)
class Estimate:
    """A number and the interval that holds the true one with 95 % confidence, nearly.

    value: as seen.
    low, high: the ends of the interval.
    """

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """Write the number and its interval, with digits as in f"{estimate:.1f}"."""
        return "{:{spec}} [{:{spec}}, {:{spec}}]".format(
            self.value, self.low, self.high, spec=spec or ".2f"
        )

    def holds(self, number: float) -> bool:
        """Return whether a number is inside the interval."""
        return self.low <= number <= self.high

    def agrees(self, number: float, *, tolerance: float, widest: float) -> bool:
        """Return whether it is near a number, and known well enough to say so.

        number: what it is compared with.
        tolerance: how far from it still counts as near.
        widest: how wide the interval may be; few trials make a wide one that excludes nothing.
        """
        return abs(self.value - number) <= tolerance and self.high - self.low <= widest


def estimate_mean(values: ArrayLike) -> Estimate:
    """Estimate a mean from independent values, by Student's t; of one value nothing is known."""
    from fedaccord.federation.defection.intervals import mean_interval

    low, high = mean_interval(values) or (-math.inf, math.inf)
    return Estimate(float(np.asarray(values, dtype=np.float64).mean()), low, high)


def find_quantile(n: int) -> float:
    """Return Student's quantile for a 95 % interval from n values."""
    from scipy.special import stdtrit

    return float(stdtrit(max(1, n - 1), 0.975))


def estimate_difference(differences: ArrayLike) -> Estimate:
    """Estimate the mean difference of two shares that were seen in the same trials.

    The interval of Agresti and Min (2005), with Student's quantile: so it keeps its promise with a
    dozen trials.

    differences: per trial, from -1 to 1: the first share less the second.
    """
    from fedaccord.federation.defection.intervals import difference_interval

    table = np.asarray(differences, dtype=np.float64)
    ends = difference_interval(table, find_quantile(len(table)))
    return Estimate(float(table.mean()), *ends)


def resample(trials: Vector, statistic: Callable[[Vector], float], *, seed: int = 0) -> Estimate:
    """Estimate a number that is computed from all trials, by resampling trials.

    Quantiles of what is drawn, taken further out so that the interval of a mean is Student's (the
    expanded percentile interval of Hesterberg, 2015). With a dozen trials it is still rough:
    it holds the true mean nearly as often as promised, a deviation only in four cases of five.

    trials: one entry per trial.
    statistic: what is computed from them.
    seed: of the draws.
    """
    random, n = np.random.default_rng(seed), len(trials)
    found = [statistic(trials[random.integers(n, size=n)]) for _ in range(RESAMPLES)]
    further = find_quantile(n) * math.sqrt(n / max(1, n - 1))
    # The share of a normal distribution below so many deviations.
    out = math.erfc(-further / math.sqrt(2)) / 2
    low, high = np.quantile(found, (1 - out, out))
    return Estimate(statistic(trials), float(low), float(high))
