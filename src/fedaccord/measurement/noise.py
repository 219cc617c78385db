"""How far chance in the validation points moves a measure, where only their number is known.

A share of right answers, true share a, on n points has the variance a (1 - a) / n. Of another
measure the number of points is looked for on which a share would vary as much: what is computed
for shares then holds for the measure too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def deviate_auc_of_counts(value: float, positives: float, negatives: float) -> float:
    """Return the standard deviation of an AUC by Hanley and McNeil (1982), from counts alone.

    value: the AUC.
    positives, negatives: how many points each class has.
    """
    # Classes that are apart by chance do not make an AUC certain.
    least = 0.5 / min(positives, negatives)
    auc = min(max(value, least), 1 - least)
    first, second = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    total = auc * (1 - auc) + (positives - 1) * (first - auc**2)
    total += (negatives - 1) * (second - auc**2)
    return math.sqrt(total / (positives * negatives))


def count_alike(measure: str, value: float, counts: Sequence[float]) -> float:
    """Return on how many points a share varies as much as a measure; NaN where it is not known.

        value (1 - value) / count  =  variance of the measure

    measure: one of MEASURES.
    value: about what the measure is.
    counts: how many points each class has, the negative before the positive.
    """
    if measure == "accuracy":
        return float(sum(counts))
    if measure == "balanced accuracy":
        there = [count for count in counts if count]
        return len(there) ** 2 / sum(1 / count for count in there)
    if len(counts) != 2 or measure not in ("AUC", "sensitivity", "specificity"):
        return math.nan
    negatives, positives = counts
    if measure != "AUC":
        return float(positives if measure == "sensitivity" else negatives)
    least = 0.5 / min(counts)
    share = min(max(value, least), 1 - least)
    return share * (1 - share) / deviate_auc_of_counts(share, positives, negatives) ** 2


def count_by_deviations(shares: Sequence[float], deviations: Sequence[float]) -> float:
    """Return on how many points shares vary as much as they do; NaN where none is known.

    shares: the values.
    deviations: the standard deviation of each by chance in the points; NaN where not known.
    """
    values, spread = np.asarray(shares, dtype=float), np.asarray(deviations, dtype=float)
    known = np.isfinite(values) & np.isfinite(spread) & (spread > 0)
    if not known.any():
        return math.nan
    inside = np.clip(values[known], 0.0, 1.0)
    return float((inside * (1 - inside)).sum() / (spread[known] ** 2).sum())
