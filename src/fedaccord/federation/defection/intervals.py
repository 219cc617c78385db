"""Intervals: how far a share or a mean seen in a few trials may be from the true one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord.errors import InputError

# The lower and the upper end.
Interval: TypeAlias = tuple[float, float]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Proportion:
    """A share seen in trials, and the interval that holds the true one with some confidence.

    p: the share seen, NaN without trials.
    low: the lower end of the interval.
    high: the upper end.
    trials: how many independent trials it was seen in.
    """

    p: float
    low: float
    high: float
    trials: int

    def __str__(self) -> str:
        return "unknown" if not self.trials else f"{self.p:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.high - self.low

    def to_dict(self) -> dict[str, Any]:
        """Return the share, the ends and the trials; a share that is not known as None."""
        return {**asdict(self), "p": self.p if self.trials else None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Proportion:
        """Return the proportion that to_dict wrote."""
        p = math.nan if data["p"] is None else float(data["p"])
        return cls(p, data["low"], data["high"], data["trials"])


@dataclass(frozen=True)
class Difference:
    """The difference of two shares seen in the same trials, with its 95 % interval.

    value: by how much the first is larger, NaN without trials.
    low, high: the ends of the interval.
    trials: how many trials both have.
    """

    value: float
    low: float
    high: float
    trials: int

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain values; one that is not known as None."""
        return {**asdict(self), "value": self.value if self.trials else None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Difference:
        """Return the difference that to_dict wrote."""
        return cls(**{**data, "value": math.nan if data["value"] is None else data["value"]})


@dataclass(frozen=True)
class KeptWorth:
    """The worth of a kept sample, with the interval that holds the true one with 95 %.

    value: kappa; NaN where sharing made no difference that could be measured.
    low, high: the ends of the interval; infinite where the trials do not bound it.
    trials: how many trials it is measured in.
    """

    value: float
    low: float
    high: float
    trials: int

    @property
    def known(self) -> bool:
        """Whether the trials bound it on both sides."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def to_dict(self) -> dict[str, Any]:
        """Return the worth as plain values; what is not known as None."""
        ends = (("value", self.value), ("low", self.low), ("high", self.high))
        known = {name: end if math.isfinite(end) else None for name, end in ends}
        return {**known, "trials": self.trials}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KeptWorth:
        """Return the worth that to_dict wrote."""
        ends = (("value", math.nan), ("low", -math.inf), ("high", math.inf))
        known = {n: end if data[n] is None else float(data[n]) for n, end in ends}
        return cls(**known, trials=data["trials"])


def read_rows(outcomes: ArrayLike) -> Floats:
    """Return outcomes as a table with one row per trial, none where there are none."""
    table = np.atleast_2d(np.asarray(outcomes, dtype=np.float64))
    return table if table.size else np.zeros((0, 1))


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Proportion:
    """Return Wilson's score interval for a share of independent trials.

        |p - q| <= z * sqrt(q (1 - q) / n)      holds for the q in the interval

    Unlike p +- z * sqrt(p (1 - p) / n) it stays within [0, 1], and says something when all
    trials end alike.

    successes: how many trials ended well.
    trials: how many there were.
    confidence: how often such intervals hold the true share, nearly.
    """
    if not 0 <= successes <= trials:
        raise InputError(f"successes must be 0 to {trials}, the trials; got {successes}")
    p = successes / trials if trials else math.nan
    return _score_interval(p, trials, trials, confidence)


def clustered(outcomes: ArrayLike, confidence: float = 0.95) -> Proportion:
    """Return an interval for a random client's share when each trial tries every client.

    One trial's runs share their seed and their data, so their outcomes go together: 20 trials of
    4 clients tell less than 80 trials would, in the worst case no more than 20. How much they
    tell shows in the spread s of the trials' own shares: the overall share q has variance
    s^2 / T, and as many independent outcomes n would have it with

        q (1 - q) / n = s^2 / T

    Wilson's interval is taken with this n, never below T (outcomes that are copies of each other)
    nor above k T (independent ones). A few trials that happen to agree would promise too much:
    so q and s are those of the trials and two more, one in which all clients succeed and one in
    which none does.

    outcomes: one row per trial, one column per client, true where it reached its goal. A trial
        that is not finished has a shorter row.
    confidence: how often such intervals hold the true share, nearly.
    """
    rows = [row for row in map(np.atleast_1d, cast("Iterable[Any]", outcomes)) if row.size]
    trials, size = len(rows), sum(row.size for row in rows)
    if not trials:
        return _score_interval(math.nan, 0, 0, confidence)
    p = float(sum(row.sum() for row in rows)) / size
    shares = np.append([row.mean() for row in rows], (1.0, 0.0))
    q = float(shares.mean())
    effective = trials * q * (1 - q) / float(shares.var(ddof=1))
    return _score_interval(p, min(max(effective, trials), size), trials, confidence)


def difference_interval(differences: ArrayLike, quantile: float) -> tuple[float, float]:
    """Return the interval for the mean difference of two shares seen in the same trials.

    That of Agresti and Min (2005) for n trials, with two more: d = 0, 0, 1 and -1, each of which
    counts half. So it says something when all trials end alike.

        m = sum(d) / (n + 2)     m +- z sqrt((sum(d^2) + 1) / (n + 2) - m^2) / sqrt(n + 2)

    differences: of each trial, d from -1 to 1.
    quantile: z, of the distribution that decides how wide it is.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = len(d) + 2
    middle = float(d.sum()) / n
    reach = quantile * math.sqrt(((float(d @ d) + 1) / n - middle**2) / n)
    return max(-1.0, middle - reach), min(1.0, middle + reach)


def compare_trials(
    first: ArrayLike, second: ArrayLike, width: float | None = None, *, block: int = 1
) -> Difference:
    """Return how much larger the first share is than the second, by the trials that both have.

    The runs of a trial share its data and its seed, so chance moves both shares alike, and their
    difference is known better than either. The 95 % interval for the differences d is that of
    Agresti and Min (2005). With a width, it is that of a confidence sequence for (1 + d) / 2.

    first, second: one row per trial in order, one column per client.
    width: how narrow intervals had to be for trials to end; None for a fixed number of trials.
    block: in how many trials all defect equally often.
    """
    tables = [read_rows(one) for one in (first, second)]
    trials = min(map(len, tables))
    if not trials:
        return Difference(math.nan, -1.0, 1.0, 0)
    d = np.subtract(*(table[:trials].mean(axis=1) for table in tables))
    if width is not None:
        from fedaccord.federation.defection.sequences import find_ends

        low, high = find_ends((1 + d[:, None]) / 2, width / 2, most=math.inf, block=block)
        return Difference(float(d.mean()), 2 * low - 1, 2 * high - 1, trials)
    ends = difference_interval(d, NormalDist().inv_cdf(0.975))
    return Difference(float(d.mean()), *ends, trials)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval | None:
    """Return Student's interval for the mean of what independent trials gave.

        mean +- t * s / sqrt(n)

    values: one per trial; fewer than two give no interval, but None.
    confidence: how often such intervals hold the true mean, nearly.
    """
    from scipy.special import stdtrit

    seen = np.asarray(values, dtype=np.float64)
    if seen.size < 2:
        return None
    reach = float(stdtrit(seen.size - 1, (1 + confidence) / 2)) * float(seen.std(ddof=1))
    middle = float(seen.mean())
    return middle - reach / math.sqrt(seen.size), middle + reach / math.sqrt(seen.size)


def _score_interval(p: float, n: float, trials: int, confidence: float) -> Proportion:
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1; got {confidence!r}")
    if n == 0:
        return Proportion(p, 0.0, 1.0, trials)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives exactly 0 and 1, and rounding must not.
    low = 0.0 if p == 0 else max(0.0, middle - reach)
    high = 1.0 if p == 1 else min(1.0, middle + reach)
    return Proportion(p, low, high, trials)
