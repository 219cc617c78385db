"""One agent's learning curve and what the others' samples are worth to it, fitted to pilots.

Here are the curve (`CurveModel`), what it is expected to be before any pilot (`Prior`), its fit by
least squares, and what was found for an agent (`AgentFit`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Matrix, Vector
from fedaccord.errors import InputError
from fedaccord.measurement.pilots import PilotTable

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
# What parameters are expected to be before any pilot is seen: the floor as a part of the lowest
# errors, the head as a part of the samples in mid-pilots, the pace.
FLOOR, HEAD, PACE = 0.4, 0.3, 0.5
# A sample of another's is worth 0.5 / sqrt(k - 1) of an own one: 0.29 among four, 0.13 among
# sixteen. Where histograms say what it should be worth, 0.02 at least.
WORTH, LEAST_HINT = 0.5, 0.02
# Accuracies near 0 or 1 scatter little, but not as little as the formula says.
LEAST_VARIANCE = 0.01
# How much the mean parameters weigh beside the mean curve: as much as a prior beside pilots.
LIGHT = 1.0
# The standard deviation of training, expected before any pilot is seen.
TYPICAL = 0.012
# Standard errors are taken as if this many more pilots had been seen.
EVIDENCE = 2.0


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


@dataclass(frozen=True, eq=False)
class AgentFit:
    """What was found for one agent.

    model: the curve that was fitted.
    centre: what its parameters are expected to be, by the scale of its errors and samples.
    prior: the same, in the light of what all agents have in common.
    found: its parameters.
    information: what the pilots tell of them, the inverse of a covariance.
    errors: 1 - accuracy in the pilots in which it was measured.
    pilots: the places of those pilots in the table.
    parameters: how many parameters the pilots decided; the prior decides the others.
    training: the standard deviation of the true accuracy from run to run.
    validation: how many points an accuracy is measured on; infinite where that is not known, and
        training holds both.
    pooled: whether its prior is learned from all agents; else it is the one before any pilot.
    """

    model: CurveModel
    centre: Vector
    prior: Prior
    found: Vector
    information: Matrix
    errors: Vector
    pilots: Indices
    parameters: float
    training: float
    validation: float
    pooled: bool = True

    @property
    def freedom(self) -> float:
        """The degrees of freedom with which the scatter is known."""
        return EVIDENCE + len(self.errors) - self.parameters

    @cached_property
    def fitted(self) -> Vector:
        """The errors that the curve says."""
        return np.asarray(self.model.errors(self.found[None])[0])

    @cached_property
    def measuring(self) -> Vector:
        """The variance of measuring each accuracy."""
        return shape(self.fitted) / self.validation

    @cached_property
    def scatter(self) -> Vector:
        """The standard deviation of each accuracy round the curve."""
        return np.sqrt(self.training**2 + self.measuring)


@dataclass(frozen=True, eq=False)
class Grouped:
    """One agent's pilots, those with the same contributions as one.

    model: with one row per group.
    errors: the mean of each group.
    squares: of single pilots round the mean, summed.
    times: how many pilots.
    measuring: the variance of measuring one of them.
    """

    model: CurveModel
    errors: Vector
    squares: Vector
    times: Vector
    measuring: Vector

    @classmethod
    def of(cls, fit: AgentFit) -> Grouped:
        """Group the pilots of an agent."""
        rows, first, group, times = np.unique(
            fit.model.contributions,
            axis=0,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        group = group.ravel()
        means = np.bincount(group, fit.errors) / times
        squares = np.asarray(np.bincount(group, (fit.errors - means[group]) ** 2), dtype=np.float64)
        model = dataclasses.replace(fit.model, contributions=rows)
        return cls(model, means, squares, times.astype(np.float64), fit.measuring[first])

    def scatter(self, training: Vector) -> Matrix:
        """Return the standard deviation of each mean, for each of some training scatters."""
        return np.asarray(np.sqrt((training[:, None] ** 2 + self.measuring) / self.times))

    def find_squares(self, errors: Stack) -> Stack:
        """Return the squared distances of pilots from each of some curves, summed by group."""
        return np.asarray(self.squares + self.times * (errors - self.errors) ** 2)


def shape(errors: Vector) -> Vector:
    """Return the variance of a yes or no with these probabilities."""
    return np.asarray(np.maximum(errors * (1 - errors), LEAST_VARIANCE))


def describe_agent(table: PilotTable, agent: int, hint: Matrix | None) -> AgentFit:
    """Return an agent's pilots and the centre of its prior, with nothing fitted yet."""
    pilots = np.flatnonzero(~np.isnan(table.accuracies[:, agent]))
    if len(pilots) == 0:
        raise InputError(
            f"{table.agents[agent]} has no accuracy in any pilot: measure some, on validation "
            "samples of its own"
        )
    errors = 1 - table.accuracies[pilots, agent]
    given = table.contributions[pilots]
    level = WORTH / np.sqrt(max(table.size - 1, 1))
    worth = np.full(table.size, level) if hint is None else np.maximum(hint[agent], LEAST_HINT)
    worth[agent] = 1.0
    samples = given @ worth
    reference = float(np.median(samples[samples > 0])) if samples.any() else 1.0
    model = CurveModel(given, agent, reference)
    best = max(float(errors[samples >= np.quantile(samples, 0.75)].mean()), 0.01)
    middle = max(float(np.median(errors)), 0.02)
    scale = [np.log(0.6 * middle), np.log(HEAD * reference), np.log(PACE)]
    centre = np.concatenate([[_logit(FLOOR * best)], scale, np.log(worth[model.others])])
    points = float(table.validation[agent])
    return AgentFit(
        model=model,
        centre=centre,
        prior=Prior(centre, np.eye(len(centre))),
        found=centre,
        information=np.zeros((len(centre), len(centre))),
        errors=errors,
        pilots=pilots,
        parameters=0.0,
        training=TYPICAL,
        validation=np.inf if np.isnan(points) else points,
    )


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far an agent's pilots are from its curve.

    squares: the distances, squared, one per pilot.
    freedom: how free each was to be there; the rest of 1 was used up by fitting the curve.
    measuring: the variance of measuring each; 0 where it is not known and counts as training.
    """

    squares: Vector
    freedom: Vector
    measuring: Vector

    def weigh(self, training: Vector) -> Vector:
        """Return the logarithm of how likely they are, for each of some standard deviations."""
        variances = training[:, None] ** 2 + self.measuring
        terms = self.freedom * np.log(variances) + self.squares / variances
        return np.asarray(-0.5 * terms.sum(axis=1))


def find_residuals(fit: AgentFit, shared: float) -> Residuals:
    """Return how far an agent's pilots are from its curve, and how free they were to be there."""
    _, slopes = fit.model.slopes(fit.found[None])
    scaled = slopes[0] / fit.scatter[:, None]
    inverse = np.linalg.inv(fit.information + fit.prior.precision)
    used = np.einsum("ri,ij,rj->r", scaled, inverse, scaled) + shared
    return Residuals((fit.errors - fit.fitted) ** 2, np.maximum(1 - used, 0.0), fit.measuring)


def fit_agent(fit: AgentFit, prior: Prior, starts: Stack) -> AgentFit:
    """Fit the curve again with a prior, and weights by how far the last curve says runs scatter."""

    def repeat(row: Vector) -> Stack:
        return np.repeat(row[None], len(starts), axis=0)

    task = Task(
        fit.model,
        repeat(fit.errors),
        repeat(fit.scatter),
        repeat(prior.centre),
        repeat(prior.precision),
    )
    all_found, sums = least_squares(task, starts)
    found = np.asarray(all_found[int(np.argmin(sums))])
    _, _, curvature = task.at(found[None], np.zeros(1, dtype=np.intp))
    information = curvature[0] - prior.precision
    # The trace of the hat matrix.
    used = float(np.trace(np.linalg.solve(curvature[0], information)))
    return dataclasses.replace(
        fit, prior=prior, found=found, information=information, parameters=used
    )


def centre_fit(fit: AgentFit, centre: Vector, errors: Vector, training: float) -> AgentFit:
    """Return the fit whose curve is nearest to the mean of the curves in the posterior.

    The likeliest parameters are no good centre: where many are hardly known, as the worth of
    fifteen others, the bulk of the posterior is elsewhere. Nor are the mean parameters, whose
    curve may be none of the posterior's. So the curve is fitted to the mean errors in the pilots;
    what these leave open is taken from the mean parameters.

    centre: the mean parameters.
    errors: the mean errors in the pilots, by group.
    training: the training scatter.
    """
    fit = dataclasses.replace(fit, training=training)
    pilots = Grouped.of(fit)
    scatter = pilots.scatter(np.array([training]))
    pull = LIGHT * fit.prior.precision
    task = Task(pilots.model, errors[None], scatter, centre[None], pull[None])
    found, _ = least_squares(task, centre[None])
    _, slopes = pilots.model.slopes(found)
    scaled = slopes[0] / scatter[0][:, None]
    information = scaled.T @ scaled
    used = np.trace(np.linalg.solve(information + fit.prior.precision, information))
    return dataclasses.replace(fit, found=found[0], information=information, parameters=float(used))


def list_starts(centre: Vector) -> Stack:
    """Return a few places to start from: fast and slow curves, low and high floors."""
    starts = [centre]
    for pace in (-0.7, 0.7):
        for floor in (-1.5, 1.0):
            start = np.array(centre)
            start[0] += floor
            start[3] += pace
            starts.append(start)
    return np.array(starts)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
