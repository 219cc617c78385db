"""Whether clients will have their accuracies, judged by a few runs."""

from __future__ import annotations

import math
from collections.abc import Hashable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fedaccord._arrays import Matrix, Vector
from fedaccord.federation.allotment import Counts

NORMAL = NormalDist()
# Runs in which a client was further below its goal than this tell little of how much its accuracy
# would vary at the goal: where a learning curve is steep, everything varies more.
NEAR = 0.1
# A few runs are enough to give something up if even a mean so many standard errors higher would
# not do.
BENEFIT_OF_DOUBT = 2.0


class Judge:
    """Estimates how likely clients are to have their accuracies in one more trial.

        accuracy of i  ~  Normal(mean_i, variance_i),
        variance_i     =  (p_i (1 - p_i) / v_i + t^2) (1 + 1 / n)

    for the mean of n trials. The first term is the chance that lies in v_i validation points,
    which is known; t^2, whatever else differs from trial to trial (the points dealt, the draws),
    is taken to be the same for all clients, so that few trials tell it: half of the estimate is
    of the runs judged, half of all runs that ended not far from the goals. Where every trial has
    the same validation points, their chance does not wear off with n, and the points that are to
    verify have theirs too: it counts twice.

    goals: the accuracy each client wants.
    validation: how many validation points each has.
    confidence: how likely all are to be satisfied.
    same_points: whether all trials have the same validation points.
    """

    def __init__(
        self, goals: Vector, validation: Counts, *, confidence: float, same_points: bool
    ) -> None:
        self.goals = goals
        self.confidence = confidence
        self._validation = np.asarray(validation, dtype=float)
        self._same_points = same_points
        self._near: dict[Hashable, tuple[float, int]] = {}

    def note(self, what: Hashable, accuracies: Matrix) -> None:
        """Take runs into account for how much accuracies vary.

        what: names the runs; noted again, they replace what was noted before.
        accuracies: one row a trial, one column a client.
        """
        near = accuracies.mean(axis=0) >= self.goals - NEAR
        if len(accuracies) > 1 and near.any():
            excess = self._excess(accuracies)[near]
            self._near[what] = (float(excess.sum()), int(near.sum()))

    def chances(self, accuracies: Matrix) -> Vector:
        """Give how likely each client is to have its accuracy in one more trial.

        accuracies: one row a trial, one column a client.
        """
        above = (accuracies.mean(axis=0) - self.goals) / self._deviations(accuracies)
        return np.array([NORMAL.cdf(float(z)) for z in above])

    def bounds(self, accuracies: Matrix, level: float) -> Vector:
        """Give the accuracy that each client stays above in one more trial, at a probability."""
        reach = NORMAL.inv_cdf(level)
        return np.asarray(accuracies.mean(axis=0) - reach * self._deviations(accuracies))

    def hopeless(self, accuracies: Matrix, level: float) -> NDArray[np.bool_]:
        """Tell for whom further trials would hardly change that it is short, at a level."""
        doubt = BENEFIT_OF_DOUBT / math.sqrt(len(accuracies))
        higher = self.bounds(accuracies, level) + doubt * self._deviations(accuracies)
        return np.asarray(higher < self.goals)

    def level(self, contributors: int) -> float:
        """Give how likely each has to be satisfied for all to be with the confidence asked for.

        At an equilibrium those who contribute are at their bounds, and the others have more than
        they want: so the confidence is divided among the contributors.
        """
        return float(self.confidence ** (1 / max(1, contributors)))

    def _excess(self, accuracies: Matrix) -> Vector:
        """Give by how much accuracies vary more than for the chance in validation points."""
        if len(accuracies) < 2:
            return np.zeros(accuracies.shape[1])
        counted = 0 if self._same_points else self._counting(accuracies)
        return np.asarray(accuracies.var(axis=0, ddof=1) - counted)

    def _counting(self, accuracies: Matrix) -> Vector:
        # An accuracy of 1 on v points may well be one of 1 - 1/(2 v).
        least = 0.5 / self._validation
        p = np.clip(accuracies.mean(axis=0), least, 1 - least)
        return np.asarray(p * (1 - p) / self._validation)

    def _deviations(self, accuracies: Matrix) -> Vector:
        own = [float(self._excess(accuracies).mean())] if len(accuracies) > 1 else []
        if self._near:
            sums, counts = zip(*self._near.values(), strict=True)
            own.append(sum(sums) / sum(counts))
        varying = max(0.0, sum(own) / len(own)) if own else 0.0
        counting, again = self._counting(accuracies), 1 + 1 / len(accuracies)
        known = 2 * counting if self._same_points else counting * again
        return np.sqrt(known + varying * again)
