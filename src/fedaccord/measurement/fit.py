"""Measured games from pilots: learning curves, cross-benefits, and how sure they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Matrix, Vector, as_numbers, frozen
from fedaccord._display import Displayed
from fedaccord.errors import InputError
from fedaccord.games.measured import MeasuredGame, find_needs, nearest_goals, predict_accuracies
from fedaccord.measurement.curve_fit import (
    CURVE,
    Beforehand,
    CurveModel,
    Stack,
    Task,
    least_squares,
)
from fedaccord.measurement.diagnostics import Doubt, find_doubts
from fedaccord.measurement.pilots import PilotTable

RESAMPLES = 200
# What is thought of parameters before any pilot is seen, as standard deviations of logarithms:
# of the floor (its odds), the error above it, the head and the pace.
SPREAD = np.array([1.5, 2.0, 2.0, 0.7])
FLOOR, HEAD, PACE = 0.4, 0.3, 0.5
# A sample of another's is worth 0.5 / sqrt(k - 1) of an own one: 0.29 among four, 0.13 among
# sixteen. That may be wrong by a factor of 3 or so for all together, and of 2 for each.
WORTH, WORTH_SPREAD = 0.5, (1.2, 0.7)
# Where histograms say what it should be worth, 0.02 at least.
HINT_SPREAD, LEAST_HINT = (0.5, 0.5), 0.02
# Validation points that explain the scatter of accuracies where nothing else is known of it, and
# how many pilots' worth of evidence that is.
VALIDATION, EVIDENCE = 400.0, 2.0
# Accuracies near 0 or 1 scatter little, but not as little as the formula says.
LEAST_VARIANCE = 0.01
PASSES = 3
# The unknowns of all agents grow with the square of how many there are, and the time with more.
MOST_AGENTS = 100


@dataclass(frozen=True, eq=False)
class Resamples:
    """Fits to pilots drawn anew, B of them: how else the same pilots could have come out.

    benefits: (B, k, k).
    curves: (B, k, 4), parts (floor, height, head, pace).
    noise: (B, k), standard deviations of one run's accuracy at the goals.
    """

    benefits: Stack
    curves: Stack
    noise: Stack

    def __len__(self) -> int:
        return len(self.benefits)


@dataclass(frozen=True)
class Unreachable:
    """An agent whose goal cannot be met, even if all give as much as they can.

    agent: its place.
    name: what it is called.
    goal: the accuracy it wants.
    nearest: the accuracy it could have; more and more data come close where there is no limit.
    """

    agent: int
    name: str
    goal: float
    nearest: float

    @property
    def sentence(self) -> str:
        """The fact in words, without a full stop."""
        return (
            f"{self.name} wants an accuracy of {self.goal:.3g}, and would reach "
            f"{self.nearest:.3f} at most, with as much data as all can give: "
            f"the nearest goal it can have is {_round_down(self.nearest)}"
        )


@dataclass(frozen=True, eq=False)
class AgentFit:
    """What was found for one agent.

    model: the curve that was fitted.
    found: its parameters.
    beforehand: what was thought of them before the fit.
    errors: 1 - accuracy in the pilots in which it was measured.
    pilots: the places of those pilots in the table.
    variance: of one run's accuracy, at an accuracy a: variance * a * (1 - a).
    freedom: the degrees of freedom that the variance is known with.
    """

    model: CurveModel
    found: Vector
    beforehand: Beforehand
    errors: Vector
    pilots: Indices
    variance: float
    freedom: float

    @property
    def parameters(self) -> float:
        """How many parameters the pilots decided; the others are as thought beforehand."""
        return EVIDENCE + len(self.errors) - self.freedom

    @cached_property
    def fitted(self) -> Vector:
        """The errors that the curve says."""
        return np.asarray(self.model.errors(self.found[None])[0])

    @cached_property
    def scatter(self) -> Vector:
        """The standard deviation of each accuracy round the curve."""
        return np.asarray(np.sqrt(self.variance * _shape(self.fitted)))


@dataclass(frozen=True, eq=False)
class Measurement(Displayed):
    """A game measured by pilots, and how sure it is.

    table: the pilots, with goals, limits and costs.
    benefits: W as fitted, k x k.
    curves: (k, 4) as fitted, parts (floor, height, head, pace).
    noise: (k,), the standard deviation of one run's accuracy round the curve, at the goal.
    resamples: fits to pilots drawn anew.
    fits: what was found for each agent, in the numbers of the fit.
    seed: of the resamples.
    """

    table: PilotTable
    benefits: Matrix
    curves: Matrix
    noise: Vector
    resamples: Resamples
    fits: tuple[AgentFit, ...]
    seed: int

    def __repr__(self) -> str:
        return (
            f"Measurement({self.table.size} agents, {len(self.table)} pilots, "
            f"{len(self.resamples)} resamples, {len(self.doubts)} doubts)"
        )

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names."""
        return self.table.agents

    @property
    def goals(self) -> Vector:
        """The accuracy each agent wants."""
        return self.table.goals

    @cached_property
    def game(self) -> MeasuredGame:
        """The game as fitted, without margins; an UnreachableError where a goal cannot be met."""
        return self._game(self.benefits, self.curves)

    @property
    def games(self) -> Iterator[MeasuredGame]:
        """The games of the resamples in which every goal can be met."""
        for benefits, curves, needs in zip(
            self.resamples.benefits, self.resamples.curves, self.needs(), strict=True
        ):
            if np.isfinite(needs).all():
                yield self._game(benefits, curves)

    def _game(self, benefits: Matrix, curves: Matrix) -> MeasuredGame:
        self._need_goals()
        table = self.table
        return MeasuredGame(
            benefits,
            curves,
            self.goals,
            agents=table.agents,
            limits=table.limits,
            minimums=table.minimums,
            costs=table.costs,
        )

    def _need_goals(self) -> None:
        if not self.table.has_goals:
            agent = self.agents[int(np.argmax(np.isnan(self.goals)))]
            raise InputError(f"{agent} has no goal: say which accuracy it wants, as with_goals can")

    def accuracies(self, contributions: ArrayLike) -> Matrix:
        """Return the accuracies (B, k) that all resamples expect.

        contributions: theta (k,), or one for each resample (B, k).
        """
        given = as_numbers(contributions, "contributions")
        theirs = np.broadcast_to(given, self.resamples.noise.shape)
        samples = np.einsum("bij,bj->bi", self.resamples.benefits, theirs)
        return predict_accuracies(self.resamples.curves, samples)

    def needs(self, goals: ArrayLike | None = None) -> Matrix:
        """Return the needs (B, k) of all resamples: effective samples; inf if a goal is too high.

        goals: other goals than the agents'.
        """
        if goals is None:
            self._need_goals()
        wanted = self.goals if goals is None else as_numbers(goals, "goals")
        return find_needs(self.resamples.curves, wanted)

    @cached_property
    def unreachable(self) -> tuple[Unreachable, ...]:
        """The agents whose goals cannot be met even if all give their limits, as fitted."""
        nearest = nearest_goals(self.benefits, self.curves, self.table.limits)
        # Without a limit the accuracy comes close to its best and never is there.
        short = (nearest < self.goals) | np.isinf(find_needs(self.curves, self.goals))
        return tuple(
            Unreachable(i, self.agents[i], float(self.goals[i]), float(nearest[i]))
            for i in np.flatnonzero(short).tolist()
        )

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """What speaks against trusting the fit; empty where nothing does."""
        return find_doubts(self)

    def with_goals(self, goals: float | Mapping[str, float] | ArrayLike) -> Measurement:
        """Return the same curves with other goals; nothing is fitted anew.

        goals: one accuracy for all, one per agent, or some by name.
        """
        table = self.table.with_goals(goals)
        noise = _find_noise(self.fits, table.goals)
        ratio = noise / self.noise
        resamples = dataclasses.replace(self.resamples, noise=frozen(self.resamples.noise * ratio))
        return dataclasses.replace(self, table=table, noise=noise, resamples=resamples)


def fit_curves(
    table: PilotTable,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    prior: ArrayLike | None = None,
) -> Measurement:
    """Fit learning curves and cross-benefits to pilots.

        1 - accuracy_i(theta) = floor_i + height_i * (head_i + (W theta)_i)^(-pace_i),   W_ii = 1

    table: the pilots.
    seed: of the resamples.
    resamples: how often pilots are drawn anew from the fitted curves and fitted again.
    prior: what a sample of j may be worth to i, k x k, as Histograms.benefits says; a fit that
        the pilots leave open stays near it.
    """
    if table.size > MOST_AGENTS:
        raise InputError(
            f"pilots of {table.size:,} agents have {table.size - 1:,} cross-benefits to be found "
            f"for each; curves are fitted to {MOST_AGENTS} agents at most: let agents that are "
            "alike count as one, or plan from label histograms"
        )
    hint = None if prior is None else as_numbers(prior, "prior")
    if hint is not None and hint.shape != (table.size, table.size):
        raise InputError(
            f"prior must be {table.size} x {table.size}, one row and column per agent; got shape "
            f"{hint.shape}"
        )
    if resamples < 1:
        raise InputError(f"resamples must be at least 1; got {resamples}")
    fits = tuple(_fit_agent(table, agent, hint) for agent in range(table.size))
    streams = np.random.default_rng(seed).spawn(table.size)
    drawn = [_resample(fit, resamples, rng) for fit, rng in zip(fits, streams, strict=True)]
    noise = _find_noise(fits, table.goals)
    factors = np.stack([factor for _, factor in drawn], axis=1)
    return Measurement(
        table=table,
        benefits=frozen(np.stack([f.model.benefits(f.found[None])[0] for f in fits])),
        curves=frozen(np.stack([f.model.curves(f.found[None])[0] for f in fits])),
        noise=noise,
        resamples=Resamples(
            benefits=frozen(
                _stack(f.model.benefits(x) for f, (x, _) in zip(fits, drawn, strict=True))
            ),
            curves=frozen(_stack(f.model.curves(x) for f, (x, _) in zip(fits, drawn, strict=True))),
            noise=frozen(noise * factors),
        ),
        fits=fits,
        seed=seed,
    )


def _stack(parts: Iterator[Stack]) -> Stack:
    return np.stack(list(parts), axis=1)


def _shape(errors: Vector) -> Vector:
    """Return the variance of a yes or no with these probabilities."""
    return np.asarray(np.maximum(errors * (1 - errors), LEAST_VARIANCE))


def _find_noise(fits: tuple[AgentFit, ...], goals: Vector) -> Vector:
    middles = np.array([float(np.median(fit.fitted)) for fit in fits])
    at = np.where(np.isnan(goals), middles, 1 - goals)
    return frozen(np.sqrt(np.array([fit.variance for fit in fits]) * _shape(at)))


def _fit_agent(table: PilotTable, agent: int, hint: Matrix | None) -> AgentFit:
    pilots = np.flatnonzero(~np.isnan(table.accuracies[:, agent]))
    if len(pilots) == 0:
        raise InputError(
            f"{table.agents[agent]} has no accuracy in any pilot: a curve needs some; measure it "
            "on validation points of its own"
        )
    errors = 1 - table.accuracies[pilots, agent]
    given = table.contributions[pilots]
    level = WORTH / np.sqrt(max(table.size - 1, 1))
    worth = np.full(table.size, level) if hint is None else np.maximum(hint[agent], LEAST_HINT)
    worth[agent] = 1.0
    samples = given @ worth
    reference = float(np.median(samples[samples > 0])) if samples.any() else 1.0
    model = CurveModel(given, agent, reference)
    beforehand = _make_prior(model, errors, worth, hint is not None)
    return _fit_weighted(model, errors, pilots, beforehand, float(table.validation[agent]))


def _make_prior(model: CurveModel, errors: Vector, worth: Vector, hinted: bool) -> Beforehand:
    """Return what parameters are thought to be before the fit, all but the worth by their scale."""
    samples = model.contributions @ worth
    best = max(float(errors[samples >= np.quantile(samples, 0.75)].mean()), 0.01)
    middle = max(float(np.median(errors)), 0.02)
    scale = [np.log(0.6 * middle), np.log(HEAD * model.reference), np.log(PACE)]
    others = model.others
    centre = np.concatenate([[_logit(FLOOR * best)], scale, np.log(worth[others])])
    covariance = np.zeros((len(centre), len(centre)))
    covariance[range(CURVE), range(CURVE)] = SPREAD**2
    common, apart = HINT_SPREAD if hinted else WORTH_SPREAD
    covariance[CURVE:, CURVE:] = common**2 + apart**2 * np.eye(len(others))
    return Beforehand(centre, np.asarray(np.linalg.cholesky(covariance)))


def _fit_weighted(
    model: CurveModel, errors: Vector, pilots: Indices, beforehand: Beforehand, known: float
) -> AgentFit:
    """Fit, see how far the accuracies scatter, and fit again with the weights that this says."""
    least = 0.0 if np.isnan(known) else 1 / known
    variance, freedom = least or 1 / VALIDATION, EVIDENCE
    shape = _shape(np.full(len(errors), float(np.median(errors))))
    starts = _starts(beforehand.centre)
    for _ in range(PASSES):
        task = _make_task(model, errors, np.sqrt(variance * shape), beforehand, len(starts))
        all_found, sums = least_squares(task, starts)
        found = np.asarray(all_found[int(np.argmin(sums))])
        fitted = model.errors(found[None])[0]
        shape = _shape(fitted)
        freedom = EVIDENCE + len(errors) - _parameters_used(task, found)
        squares = float(((errors - fitted) ** 2 / shape).sum())
        # No run scatters less than its validation points do.
        variance = max((squares + EVIDENCE * (least or 1 / VALIDATION)) / freedom, least)
        starts = found[None]
    return AgentFit(model, found, beforehand, errors, pilots, variance, freedom)


def _make_task(
    model: CurveModel, errors: Vector, scatter: Vector, beforehand: Beforehand, count: int
) -> Task:
    """Ask for the same fit so many times, to be started from different places."""

    def tiled(row: Vector) -> Stack:
        return np.tile(row, (count, 1))

    centre = tiled(beforehand.centre)
    return Task(model, tiled(errors), tiled(scatter), centre, beforehand.precision)


def _starts(centre: Vector) -> Stack:
    """Return a few places to start from: fast and slow curves, low and high floors."""
    starts = [centre]
    for pace in (-0.7, 0.7):
        for floor in (-1.5, 1.0):
            start = np.array(centre)
            start[0] += floor
            start[3] += pace
            starts.append(start)
    return np.array(starts)


def _parameters_used(task: Task, found: Vector) -> float:
    """Return how many parameters the pilots decided: the trace of the hat matrix."""
    _, _, curvature = task.at(found[None], np.zeros(1, dtype=np.intp))
    information = curvature[0] - task.precision
    return float(np.trace(np.linalg.solve(curvature[0], information)))


def _resample(fit: AgentFit, count: int, rng: np.random.Generator) -> tuple[Stack, Vector]:
    """Fit pilots drawn anew; give the parameters, and by what factor their noise differs.

    What was thought beforehand is drawn anew as well: where the pilots say nothing of a parameter,
    the resamples are then as far apart as it might be.
    """
    factor = np.sqrt(fit.freedom / rng.chisquare(fit.freedom, size=count))
    # Pilots with the same contributions are drawn as their mean, which says as much of the curve.
    rows, first, times = np.unique(
        fit.model.contributions, axis=0, return_index=True, return_counts=True
    )
    scatter = factor[:, None] * (fit.scatter[first] / np.sqrt(times))
    errors = fit.fitted[first] + scatter * rng.standard_normal(scatter.shape)
    centre = fit.beforehand.drawn(fit.found, count, rng)
    model = dataclasses.replace(fit.model, contributions=rows)
    task = Task(model, errors, scatter, centre, fit.beforehand.precision)
    found, _ = least_squares(task, np.tile(fit.found, (count, 1)))
    return found, factor


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _round_down(accuracy: float) -> str:
    return f"{np.floor(accuracy * 1000 - 1e-9) / 1000:.3f}"
