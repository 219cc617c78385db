"""Measured games from pilots: learning curves, cross-benefits, and how sure they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Indices, Matrix, Vector, as_numbers, frozen
from fedaccord._display import Displayed
from fedaccord.errors import InputError
from fedaccord.games.measured import MeasuredGame, find_needs, nearest_goals, predict_accuracies
from fedaccord.measurement.curve_fit import (
    CurveModel,
    Prior,
    Stack,
    Task,
    least_squares,
)
from fedaccord.measurement.diagnostics import Doubt, find_doubts
from fedaccord.measurement.pilots import PilotTable
from fedaccord.measurement.pooling import Population, draw_widths, make_design
from fedaccord.measurement.scatter import TYPICAL, Residuals, Scatter

# By what a run is judged: its true accuracy, or one measurement of it.
Judged: TypeAlias = Literal["true", "measured"]

RESAMPLES = 200
# What parameters are expected to be before any pilot is seen: the floor as a part of the lowest
# errors, the head as a part of the samples in mid-pilots, the pace.
FLOOR, HEAD, PACE = 0.4, 0.3, 0.5
# A sample of another's is worth 0.5 / sqrt(k - 1) of an own one: 0.29 among four, 0.13 among
# sixteen. Where histograms say what it should be worth, 0.02 at least.
WORTH, LEAST_HINT = 0.5, 0.02
# Rounds of fitting all agents, learning what they have in common, and fitting again.
ROUNDS = 8
# Accuracies near 0 or 1 scatter little, but not as little as the formula says.
LEAST_VARIANCE = 0.01
# Standard errors are taken as if this many more pilots had been seen.
EVIDENCE = 2.0
# The unknowns of all agents grow with the square of how many there are, and the time with more.
MOST_AGENTS = 100


@dataclass(frozen=True, eq=False)
class Resamples:
    """B fits to pilots drawn again from the fit: how else the same pilots could have come out.

    benefits: (B, k, k).
    curves: (B, k, 4), parts (floor, height, head, pace).
    training: (B, k), how far runs scatter in true accuracy, standard deviations.
    """

    benefits: Stack
    curves: Stack
    training: Stack

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
        return _shape(self.fitted) / self.validation

    @cached_property
    def scatter(self) -> Vector:
        """The standard deviation of each accuracy round the curve."""
        return np.sqrt(self.training**2 + self.measuring)


@dataclass(frozen=True, eq=False)
class Measurement(Displayed):
    """A game measured by pilots, and how sure it is.

    table: the pilots, with goals, limits and costs.
    benefits: W as fitted, k x k.
    curves: (k, 4) as fitted, parts (floor, height, head, pace).
    training_noise: (k,), the standard deviation of a run's true accuracy round the curve.
    measurement_noise: (k,), the standard deviation that measuring it on the agent's validation
        points adds at the goal; 0 where their number is not known, and training noise holds both.
    resamples: fits to pilots drawn again.
    fits: what was found for each agent, in the numbers of the fit.
    seed: of the resamples.
    """

    table: PilotTable
    benefits: Matrix
    curves: Matrix
    training_noise: Vector
    measurement_noise: Vector
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

    def noise(self, judged: Judged = "true") -> Vector:
        """Return how far one run scatters round the curve at the goals, standard deviations (k,).

        judged: by its true accuracy, or as measured once on the agent's validation points.
        """
        measuring = self.measurement_noise if judged == "measured" else 0.0
        return frozen(np.hypot(self.training_noise, measuring))

    def accuracies(self, contributions: ArrayLike) -> Matrix:
        """Return the accuracies (B, k) that all resamples expect.

        contributions: theta (k,), or one for each resample (B, k).
        """
        given = as_numbers(contributions, "contributions")
        theirs = np.broadcast_to(given, self.resamples.training.shape)
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
        noise = _find_measurement_noise(self.fits, table.goals)
        return dataclasses.replace(self, table=table, measurement_noise=noise)


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
    agents = [_describe_agent(table, agent, hint) for agent in range(table.size)]
    fits, scatter, population = _fit_together(agents, hinted=hint is not None)
    rng = np.random.default_rng(seed)
    training = scatter.draw(resamples, rng)
    shifts = population.draw_shifts(resamples, rng)
    wider = draw_widths(table.size, resamples, rng)
    drawn = [
        _resample(fit, training[:, i], shifts, wider, stream)
        for i, (fit, stream) in enumerate(zip(fits, rng.spawn(table.size), strict=True))
    ]
    return Measurement(
        table=table,
        benefits=frozen(np.stack([f.model.benefits(f.found[None])[0] for f in fits])),
        curves=frozen(np.stack([f.model.curves(f.found[None])[0] for f in fits])),
        training_noise=frozen(np.array([f.training for f in fits])),
        measurement_noise=_find_measurement_noise(fits, table.goals),
        resamples=Resamples(
            benefits=frozen(_stack(f.model.benefits(x) for f, x in zip(fits, drawn, strict=True))),
            curves=frozen(_stack(f.model.curves(x) for f, x in zip(fits, drawn, strict=True))),
            training=frozen(training),
        ),
        fits=fits,
        seed=seed,
    )


def _stack(parts: Iterator[Stack]) -> Stack:
    return np.stack(list(parts), axis=1)


def _shape(errors: Vector) -> Vector:
    """Return the variance of a yes or no with these probabilities."""
    return np.asarray(np.maximum(errors * (1 - errors), LEAST_VARIANCE))


def _find_measurement_noise(fits: tuple[AgentFit, ...], goals: Vector) -> Vector:
    """Return what measuring adds at the goals; in mid-pilots where there is no goal."""
    middles = np.array([float(np.median(fit.fitted)) for fit in fits])
    points = np.array([fit.validation for fit in fits])
    return frozen(np.sqrt(_shape(np.where(np.isnan(goals), middles, 1 - goals)) / points))


def _describe_agent(table: PilotTable, agent: int, hint: Matrix | None) -> AgentFit:
    """Return an agent's pilots and the centre of its prior, with nothing fitted yet."""
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


def _fit_together(
    agents: list[AgentFit], *, hinted: bool
) -> tuple[tuple[AgentFit, ...], Scatter, Population]:
    """Fit every agent, learn what they have in common, and fit again in the light of that."""
    population = Population.before(hinted=hinted)
    fits = tuple(
        _fit_agent(agent, population.marginal_prior(agent.centre), _list_starts(agent.centre))
        for agent in agents
    )
    for _ in range(ROUNDS):
        population = population.learn(fits)
        # What agents share was found in their residuals as well.
        shared = population.parameters / sum(len(fit.errors) for fit in fits)
        scatter = Scatter.split([_find_residuals(fit, shared) for fit in fits])
        fits = tuple(
            _fit_agent(
                dataclasses.replace(fit, training=float(training)),
                population.prior(fit.centre),
                fit.found[None],
            )
            for fit, training in zip(fits, scatter.expected, strict=True)
        )
    return fits, scatter, population


def _find_residuals(fit: AgentFit, shared: float) -> Residuals:
    """Return how far an agent's pilots are from its curve, and how free they were to be there."""
    _, slopes = fit.model.slopes(fit.found[None])
    scaled = slopes[0] / fit.scatter[:, None]
    inverse = np.linalg.inv(fit.information + fit.prior.precision)
    used = np.einsum("ri,ij,rj->r", scaled, inverse, scaled) + shared
    return Residuals((fit.errors - fit.fitted) ** 2, np.maximum(1 - used, 0.0), fit.measuring)


def _fit_agent(fit: AgentFit, prior: Prior, starts: Stack) -> AgentFit:
    """Fit the curve again with a prior, and weights by how far the last curve says runs scatter."""

    def repeat(row: Vector) -> Stack:
        return np.tile(row, (len(starts), 1))

    task = Task(
        fit.model,
        repeat(fit.errors),
        repeat(fit.scatter),
        repeat(prior.centre),
        prior.precision,
        np.ones(len(starts)),
    )
    all_found, sums = least_squares(task, starts)
    found = np.asarray(all_found[int(np.argmin(sums))])
    _, _, curvature = task.at(found[None], np.zeros(1, dtype=np.intp))
    information = curvature[0] - task.precision
    # The trace of the hat matrix.
    used = float(np.trace(np.linalg.solve(curvature[0], information)))
    return dataclasses.replace(
        fit, prior=prior, found=found, information=information, parameters=used
    )


def _list_starts(centre: Vector) -> Stack:
    """Return a few places to start from: fast and slow curves, low and high floors."""
    starts = [centre]
    for pace in (-0.7, 0.7):
        for floor in (-1.5, 1.0):
            start = np.array(centre)
            start[0] += floor
            start[3] += pace
            starts.append(start)
    return np.array(starts)


def _resample(
    fit: AgentFit, training: Vector, shifts: Matrix, wider: Vector, rng: np.random.Generator
) -> Stack:
    """Return the parameters of fits to pilots drawn again, one row each.

    The prior is drawn again as well: where the pilots say nothing of a parameter, the resamples
    are then as far apart as it might be.
    """
    # Pilots with the same contributions are drawn as their mean, which says as much of the curve.
    rows, first, times = np.unique(
        fit.model.contributions, axis=0, return_index=True, return_counts=True
    )
    scatter = np.sqrt((training[:, None] ** 2 + fit.measuring[first]) / times)
    errors = fit.fitted[first] + scatter * rng.standard_normal(scatter.shape)
    around = fit.found + shifts @ make_design(len(fit.found)).T
    centre = fit.prior.draw(around, wider, rng)
    model = dataclasses.replace(fit.model, contributions=rows)
    task = Task(model, errors, scatter, centre, fit.prior.precision, wider)
    found, _ = least_squares(task, np.tile(fit.found, (len(shifts), 1)))
    return found


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _round_down(accuracy: float) -> str:
    return f"{np.floor(accuracy * 1000 - 1e-9) / 1000:.3f}"
