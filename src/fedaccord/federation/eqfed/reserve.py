"""The reserve of a plan, found by training: as small as lets the others reach their goals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from fedaccord._checks import Matrix
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.algorithms.mw_fed import exact_counts
from fedaccord.federation.defection.curves import Contributions, cut
from fedaccord.federation.eqfed.estimate import Judge
from fedaccord.federation.eqfed.result import Step
from fedaccord.federation.eqfed.search import Bench, SpentError, describe_step
from fedaccord.federation.runs.store import Run
from fedaccord.federation.runs.trials import SEEKING

# How likely all the others are to reach their goals when one fails, at least.
OTHERS = 0.9
# The part of the full reserve down to which it is found.
FINENESS = 1 / 8


def spread_reserve(theta: Contributions, points: Sequence[int], part: float) -> tuple[int, ...]:
    """Return reserves that replace a part of any one contribution, of what agents have left.

        sum over j other than i of r_j  >=  part * theta_i        for all i

    in proportion to what each has left, as far as they have it.
    """
    left = np.array(points) - np.array(theta)
    most = int(left.sum())
    for total in range(math.ceil(part * max(theta)), most + 1):
        held = exact_counts(left / max(most, 1), total) if most else left
        if all(held.sum() - held[i] >= part * n for i, n in enumerate(theta) if n):
            return tuple(held.tolist())
    return tuple(left.tolist())


class ReserveSearch:
    """Looks for the least reserve with which all the others reach their goals when one fails.

    bench: makes the runs.
    algorithm: with what clients have pledged, and no reserve.
    judge: tells who will be satisfied.
    theta: what clients have pledged.
    level: the part of its pledge that the one that fails delivers.
    trials: with how many deals or seeds each reserve is tried.
    most: how many runs there may be in all.
    """

    def __init__(
        self,
        bench: Bench,
        algorithm: Algorithm,
        judge: Judge,
        *,
        theta: Contributions,
        level: float,
        trials: int,
        most: int,
    ) -> None:
        self.story: list[Step] = []
        self._bench = bench
        self._algorithm = algorithm
        self._judge = judge
        self._theta = theta
        self._level = level
        self._trials = range(SEEKING, SEEKING + trials)
        self._most = most

    def find(self) -> Algorithm:
        """Return the algorithm with its reserve: all that can be called, unless less is enough.

        The reserve is a part of what would replace any one pledge in full: none, if that is enough,
        or what bisection leaves. If even the full reserve is not enough, it is still taken.
        """
        cover = float(getattr(self._algorithm, "cover", 1.0))
        full = self._hold(cover)
        try:
            if not self._does(cover):
                return full
            low, high = 0.0, cover
            if self._does(0.0):
                return self._hold(0.0)
            while high - low > FINENESS * cover:
                middle = (low + high) / 2
                low, high = (low, middle) if self._does(middle) else (middle, high)
            return self._hold(high)
        except SpentError:
            return full

    def _hold(self, part: float) -> Algorithm:
        points = [int(n) for n in self._bench.source.points]
        return self._algorithm.reserving(spread_reserve(self._theta, points, part))

    def _does(self, part: float) -> bool:
        """Try a reserve with each contributor failing, and tell whether the others have enough."""
        holding = self._hold(part)
        for i in [i for i, n in enumerate(self._theta) if n]:
            accuracies = self._train(holding, i)
            chances = np.delete(self._judge.chances(accuracies), i)
            if float(np.prod(chances)) < OTHERS:
                return False
        return True

    def _train(self, algorithm: Algorithm, i: int) -> Matrix:
        given, bench = cut(self._theta, i, self._level), self._bench
        runs = [
            Run(bench.source.fingerprint, algorithm, given, bench.seed, trial)
            for trial in self._trials
        ]
        outcomes = bench.outcomes(runs, "reserve", most=self._most)
        accuracies: Matrix = np.nan_to_num(np.array([o.accuracies for o in outcomes]), nan=0.0)
        row = describe_step(self._judge, accuracies, given, bench.source.names, "reserve", i)
        reserve = tuple(getattr(algorithm, "reserve", None) or ())
        self.story.append(dataclasses.replace(row, reserve=reserve))
        return accuracies
