"""One agent's learning curve and what the others' samples are worth to it, fitted to pilots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedaccord._arrays import Matrix, Vector

# Many fits at once: (fits, parameters) and (fits, residuals, parameters).
Stack: TypeAlias = NDArray[np.float64]

# The parameters that come before the benefits of the others: logit floor, log of the error above
# the floor at the reference, log head, log pace.
CURVE = 4
STEPS = 200
# A fit is found when a step would lower the sum of squares by less than this share of it.
SETTLED = 1e-9
# No step is longer than this in any parameter: they are logarithms, so it is a factor of e^2.
LONGEST = 2.0


@dataclass(frozen=True, eq=False)
class CurveModel:
    """err(theta) = floor + above * ((head + n) / (head + reference))^(-pace), n = w theta.

    contributions: n x k, of the pilots in which the agent was measured.
    agent: whose curve it is: its own samples are worth 1.
    reference: effective samples in the midst of the pilots, at which `above` is told.
    """

    contributions: Matrix
    agent: int
    reference: float

    @property
    def others(self) -> NDArray[np.intp]:
        """The agents whose benefit is to be found."""
        return np.delete(np.arange(self.contributions.shape[1]), self.agent)

    def benefits(self, found: Stack) -> Stack:
        """Give the agent's row of W from parameters."""
        row = np.ones((len(found), self.contributions.shape[1]))
        row[:, self.others] = np.exp(found[:, CURVE:])
        return row

    def curves(self, found: Stack) -> Stack:
        """Give (floor, height, head, pace) from parameters."""
        floor, above, head, pace = _parts(found)
        height = above * (head + self.reference) ** pace
        return np.stack([floor, height, head, pace], axis=1)

    def errors(self, found: Stack) -> Stack:
        """Give the error in every pilot."""
        floor, above, head, pace = (part[:, None] for part in _parts(found))
        samples = self.benefits(found) @ self.contributions.T
        return floor + above * ((head + samples) / (head + self.reference)) ** -pace

    def slopes(self, found: Stack) -> tuple[Stack, Stack]:
        """Give the error in every pilot, and its derivatives by the parameters."""
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
    return floor, above, head, pace


def least_squares(
    model: CurveModel, start: Stack, *, errors: Stack, scatter: Stack, centre: Stack, spread: Vector
) -> Stack:
    """Fit many tables of errors at once, by Levenberg and Marquardt's steps.

        minimise  sum_r ((err_r - errors_r) / scatter_r)^2 + sum_p ((x_p - centre_p) / spread_p)^2

    model: what is fitted.
    start: first parameters, one row per fit.
    errors, scatter: what was measured and its standard deviation, one row per fit.
    centre, spread: what the parameters are thought to be beforehand, and how surely.
    """
    found = np.array(start)
    damping = np.full(len(found), 1e-2)
    loss = _loss(model, found, errors, scatter, centre, spread)
    busy = np.arange(len(found))
    for _ in range(STEPS):
        at = found[busy]
        fitted, slopes = model.slopes(at)
        slopes /= scatter[busy][:, :, None]
        gap = (fitted - errors[busy]) / scatter[busy]
        curvature = np.einsum("brp,brq->bpq", slopes, slopes)
        diagonal = np.einsum("bpp->bp", curvature)
        diagonal += spread**-2
        gradient = np.einsum("brp,br->bp", slopes, gap) + (at - centre[busy]) / spread**2
        diagonal *= 1 + damping[busy][:, None]
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        step *= np.minimum(1, LONGEST / np.maximum(np.abs(step).max(axis=1), LONGEST))[:, None]
        after = at - step
        reached = _loss(model, after, errors[busy], scatter[busy], centre[busy], spread)
        better = reached < loss[busy]
        done = np.abs(np.einsum("bp,bp->b", gradient, step)) <= SETTLED * np.maximum(loss[busy], 1)
        found[busy[better]] = after[better]
        loss[busy[better]] = reached[better]
        damping[busy] = np.clip(np.where(better, damping[busy] / 5, damping[busy] * 4), 1e-9, 1e9)
        busy = busy[~done]
        if len(busy) == 0:
            break
    return found


def _loss(
    model: CurveModel, found: Stack, errors: Stack, scatter: Stack, centre: Stack, spread: Vector
) -> Vector:
    gap = (model.errors(found) - errors) / scatter
    prior = (found - centre) / spread
    return np.asarray((gap**2).sum(axis=1) + (prior**2).sum(axis=1))
