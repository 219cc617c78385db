"""Predict from a few runs whether clients will reach their goals."""

from __future__ import annotations

import math
from collections.abc import Hashable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Matrix, Vector
from fedaccord.federation.algorithms.base import Counts

NORMAL = NormalDist()
# What other runs tell of how much accuracies vary counts as much as so many more trials would.
OTHERS = 2
# A few runs are enough where a mean so many standard errors higher, or lower, would come to the
# same: much more luck is unlikely in the first case, and the second has its luck counted already.
TOO_LOW = 2.0
HIGH_ENOUGH = 1.0


class Judge:
    """Estimates the probability that clients reach their goals in one more trial.

        accuracy of i  ~  Normal(mean_i, variance_i),
        variance_i     =  (p_i (1 - p_i) / v_i + t^2) (1 + 1 / n)

    for the mean of n trials. The first term is the chance that lies in v_i validation points,
    which is known; t^2, whatever else differs from trial to trial (the points dealt, the draws),
    is taken to be the same for all clients, so that a few trials tell it. Other runs that ended
    above the goals have a say in it too; those that ended below have not, for where a learning
    curve is steep everything varies more. Where every trial has the same validation points, their
    chance does not wear off with n, and the points that are to verify have theirs too: it counts
    twice.

    goals: the accuracy each client wants.
    validation: how many validation points each has; infinite where the chance in them is not
        known and counts as what else differs.
    confidence: how likely all are to be satisfied.
    same_points: whether all trials have the same validation points.
    """

    def __init__(
        self, goals: Vector, validation: Vector | Counts, *, confidence: float, same_points: bool
    ) -> None:
        self.goals = goals
        self.confidence = confidence
        self._validation = np.asarray(validation, dtype=float)
        self._same_points = same_points
        self._others: dict[Hashable, tuple[float, int]] = {}

    def note(self, what: Hashable, accuracies: Matrix) -> None:
        """Take runs into account for how much accuracies vary.

        what: names the runs; noted again, they replace what was noted before.
        accuracies: one row a trial, one column a client.
        """
        above = accuracies.mean(axis=0) >= self.goals
        self._others.pop(what, None)
        if len(accuracies) > 1 and above.any():
            weight = len(accuracies) - 1
            excess = self._excess(accuracies)[above]
            self._others[what] = weight * float(excess.sum()), weight * len(excess)

    def chances(self, accuracies: Matrix) -> Vector:
        """Return the probability that each client reaches its goal in one more trial.

        accuracies: one row a trial, one column a client.
        """
        above = (accuracies.mean(axis=0) - self.goals) / self._deviations(accuracies)
        return np.array([NORMAL.cdf(float(z)) for z in above])

    def bounds(self, accuracies: Matrix, level: float) -> Vector:
        """Return the accuracy that each client stays above in one more trial, at a probability."""
        reach = NORMAL.inv_cdf(level)
        return np.asarray(accuracies.mean(axis=0) - reach * self._deviations(accuracies))

    def falls_short(self, accuracies: Matrix, level: float) -> NDArray[np.bool_]:
        """Return which clients would almost surely stay below their goals after further trials."""
        return self._would_do(accuracies, level, TOO_LOW) < 0

    def does_well(self, accuracies: Matrix, level: float) -> NDArray[np.bool_]:
        """Return which clients would almost surely stay at their goals after further trials."""
        return self._would_do(accuracies, level, -HIGH_ENOUGH) >= 0

    def level(self, contributors: int) -> float:
        """Return the probability that each client needs, for all to reach the confidence together.

        At an equilibrium those who contribute are at their bounds, and the others have more than
        they want: so the confidence is divided among the contributors.
        """
        return float(self.confidence ** (1 / max(1, contributors)))

    def _would_do(self, accuracies: Matrix, level: float, errors: float) -> Vector:
        """Return how far bounds would be above goals if means were `errors` errors higher."""
        luck = errors / math.sqrt(len(accuracies)) * self._deviations(accuracies)
        return np.asarray(self.bounds(accuracies, level) + luck - self.goals)

    def _excess(self, accuracies: Matrix) -> Vector:
        """Return by how much accuracies vary more than for the chance in validation points."""
        if len(accuracies) < 2:
            return np.zeros(accuracies.shape[1])
        counted = 0 if self._same_points else self._find_counting_variance(accuracies)
        return np.asarray(accuracies.var(axis=0, ddof=1) - counted)

    def _find_counting_variance(self, accuracies: Matrix) -> Vector:
        # An accuracy of 1 on v points may well be one of 1 - 1/(2 v).
        least = 0.5 / self._validation
        p = np.clip(accuracies.mean(axis=0), least, 1 - least)
        return np.asarray(p * (1 - p) / self._validation)

    def _deviations(self, accuracies: Matrix) -> Vector:
        freedom = len(accuracies) - 1
        others = OTHERS if self._others else 0
        varying = freedom * float(self._excess(accuracies).mean())
        if others:
            sums, weights = zip(*self._others.values(), strict=True)
            varying += others * sum(sums) / sum(weights)
        varying = max(0.0, varying / max(1, freedom + others))
        counting, again = self._find_counting_variance(accuracies), 1 + 1 / len(accuracies)
        known = 2 * counting if self._same_points else counting * again
        return np.sqrt(known + varying * again)
