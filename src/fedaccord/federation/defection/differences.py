"""Differences of shares that are seen in the same trials: of two algorithms, and of two levels.

The runs of a trial share its data and its seed, so chance moves both shares alike, and their
difference is known better than either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from fedaccord.federation.defection.curves import DefectionCurve, DefectionLevel, Rows
from fedaccord.federation.defection.intervals import Difference, difference_interval, read_rows
from fedaccord.federation.defection.sequences import find_ends


def compare_curves(
    curves: Iterable[DefectionCurve],
    rows: Mapping[tuple[str, float], Rows],
    width: float | None = None,
    block: int = 1,
) -> tuple[DefectionCurve, ...]:
    """Return curves with their differences from full contribution and from each other.

    curves: in the order asked for.
    rows: how the trials of each algorithm ended at each level, for the defectors.
    width, block: as in `compare_trials`.
    """
    subtract = partial(compare_trials, width=width, block=block)
    known: list[DefectionCurve] = []
    for curve in curves:
        name = curve.algorithm

        def compare(point: DefectionLevel, name: str = name) -> DefectionLevel:
            own, level = rows[name, point.level], point.level
            others = {c.algorithm: rows[c.algorithm, level] for c in known}
            return replace(
                point,
                from_full=None if level == 1 else subtract(own, rows[name, 1.0]),
                from_others={n: subtract(own, other) for n, other in others.items()},
            )

        known.append(replace(curve, levels=tuple(map(compare, curve.levels))))
    return tuple(known)


def compare_trials(
    first: ArrayLike, second: ArrayLike, width: float | None = None, *, block: int = 1
) -> Difference:
    """Return how much larger the first share is than the second, by the trials that both have.

    The 95 % interval for the differences d is that of Agresti and Min (2005). With a width, it is
    that of a confidence sequence for (1 + d) / 2.

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
        low, high = find_ends((1 + d[:, None]) / 2, width / 2, most=math.inf, block=block)
        return Difference(float(d.mean()), 2 * low - 1, 2 * high - 1, trials)
    ends = difference_interval(d, NormalDist().inv_cdf(0.975))
    return Difference(float(d.mean()), *ends, trials)
