"""One agent's learning curve and what the others' samples are worth to it, fitted to pilots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Matrix, Vector

# Many fits at once: (fits, parameters) and (fits, residuals, parameters).
Stack: TypeAlias = NDArray[np.float64]

# The parameters that come before the benefits of the others: logit floor, log of the error above
# the floor at the reference, log head, log pace.
CURVE = 4
STEPS = 100
# A fit is found when a step would lower the sum of squares by less than this. That sum is in units
# of the measurements' variances, so parameters are then within 1 % of their standard errors.
SETTLED = 1e-4
# No step is longer than this in any parameter: they are logarithms, so it is a factor of e^2.
LONGEST = 2.0
# No curve falls faster: its height, which has the pace as exponent, would leave a double's range.
FASTEST = 40.0


@dataclass(frozen=True, eq=False)
class CurveModel:
    """err(theta) = floor + above * ((head + n) / (head + reference))^(-pace), n = w theta.

    contributions: n x k, of the pilots in which the agent was measured.
    agent: whose curve it is: its own samples are worth 1.
    reference: effective samples in the midst of the pilots, at which `above` is measured.
    """

    contributions: Matrix
    agent: int
    reference: float

    @cached_property
    def others(self) -> Indices:
        """The agents whose benefit is to be found."""
        return np.delete(np.arange(self.contributions.shape[1]), self.agent)

    def benefits(self, found: Stack) -> Stack:
        """Return the agent's row of W from parameters."""
        row = np.ones((len(found), self.contributions.shape[1]))
        row[:, self.others] = np.exp(found[:, CURVE:])
        return row

    def curves(self, found: Stack) -> Stack:
        """Return (floor, height, head, pace) from parameters."""
        floor, above, head, pace = _parts(found)
        height = above * (head + self.reference) ** pace
        return np.stack([floor, height, head, pace], axis=1)

    def errors(self, found: Stack) -> Stack:
        """Return the error in every pilot."""
        floor, above, head, pace = (part[:, None] for part in _parts(found))
        samples = self.benefits(found) @ self.contributions.T
        return floor + above * ((head + samples) / (head + self.reference)) ** -pace

    def slopes(self, found: Stack) -> tuple[Stack, Stack]:
        """Return the error in every pilot, and its derivatives by the parameters."""
        floor, above, head, pace = (part[:, None] for part in _parts(found))
        worth = self.benefits(found)
        samples = worth @ self.contributions.T
        power = -pace * np.log((head + samples) / (head + self.reference))
        excess = above * np.exp(power)
        slopes = np.empty((*samples.shape, found.shape[1]))
        slopes[:, :, 0] = floor * (1 - floor)
        slopes[:, :, 1] = excess
        slopes[:, :, 2] = (
            excess * -pace * head * (1 / (head + samples) - 1 / (head + self.reference))
        )
        slopes[:, :, 3] = excess * power
        by_sample = excess * -pace / (head + samples)
        slopes[:, :, CURVE:] = (
            by_sample[:, :, None]
            * self.contributions[None, :, self.others]
            * worth[:, None, self.others]
        )
        return floor + excess, slopes


def _parts(found: Stack) -> tuple[Vector, Vector, Vector, Vector]:
    floor = 1 / (1 + np.exp(-found[:, 0]))
    above, head, pace = np.exp(found[:, 1:CURVE]).T
    return floor, above, head, np.minimum(pace, FASTEST)


@dataclass(frozen=True, eq=False)
class Prior:
    """What the parameters are expected to be before any pilot is seen: a normal distribution.

    centre: their means.
    root: a matrix R such that R R' is their covariance.
    """

    centre: Vector
    root: Matrix

    @cached_property
    def precision(self) -> Matrix:
        """The inverse of the covariance."""
        return np.asarray(np.linalg.inv(self.root @ self.root.T))


@dataclass(frozen=True, eq=False)
class Task:
    """Tables of errors to be fitted at once, one row per fit.

        minimise  sum_r ((err_r(x) - errors_r) / scatter_r)^2
                  + (x - centre)' precision (x - centre)

    model: what is fitted.
    errors, scatter: what was measured, and its standard deviation.
    centre, precision: of each fit's prior.
    """

    model: CurveModel
    errors: Stack
    scatter: Stack
    centre: Stack
    precision: Stack

    def at(self, found: Stack, which: Indices) -> tuple[Vector, Stack, Stack]:
        """Return the sum of squares of some fits, half its gradient, and Gauss' half curvature."""
        fitted, slopes = self.model.slopes(found)
        weights = 1 / self.scatter[which]
        slopes *= weights[:, :, None]
        gaps = (fitted - self.errors[which]) * weights
        away = found - self.centre[which]
        precision = self.precision[which]
        pull = (precision @ away[:, :, None])[:, :, 0]
        sums = (gaps**2).sum(axis=1) + (away * pull).sum(axis=1)
        turned = slopes.transpose(0, 2, 1)
        return sums, (turned @ gaps[:, :, None])[:, :, 0] + pull, turned @ slopes + precision


def least_squares(task: Task, start: Stack) -> tuple[Stack, Vector]:
    """Fit by Levenberg and Marquardt's steps; return the parameters and the sums of squares.

    task: what to fit.
    start: first parameters, one row per fit.
    """
    found = np.array(start)
    busy = np.arange(len(found))
    sums, gradients, curvatures = task.at(found, busy)
    damping = np.full(len(found), 1e-2)
    everywhere = np.arange(found.shape[1])
    for _ in range(STEPS):
        matrix = curvatures[busy]
        matrix[:, everywhere, everywhere] *= 1 + damping[busy][:, None]
        step = np.linalg.solve(matrix, gradients[busy][:, :, None])[:, :, 0]
        step *= np.minimum(1, LONGEST / np.maximum(np.abs(step).max(axis=1), LONGEST))[:, None]
        trial = found[busy] - step
        after = task.at(trial, busy)
        better = after[0] < sums[busy]
        expected = (gradients[busy] * step).sum(axis=1)
        taken = busy[better]
        found[taken] = trial[better]
        for kept, new in zip((sums, gradients, curvatures), after, strict=True):
            kept[taken] = new[better]
        damping[busy] = np.clip(np.where(better, damping[busy] / 8, damping[busy] * 4), 1e-9, 1e12)
        busy = busy[expected > SETTLED]
        if len(busy) == 0:
            break
    return found, sums
