"""Measured games from pilots: learning curves, cross-benefits, and how sure they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Matrix, Vector, as_numbers, frozen
from fedaccord._lazy import Displayed
from fedaccord.errors import InputError
from fedaccord.games.chances import Chances, Fading, Judged
from fedaccord.games.measured import MeasuredGame, find_needs, nearest_goals, predict_accuracies
from fedaccord.measurement.curve_fit import (
    AgentFit,
    Residuals,
    Stack,
    centre_fit,
    describe_agent,
    find_residuals,
    fit_agent,
    list_starts,
    shape,
)
from fedaccord.measurement.diagnostics import Doubt, find_doubts
from fedaccord.measurement.pilots import PilotTable
from fedaccord.measurement.pooling import (
    Pooling,
    Population,
    Scatter,
    check_pooling,
    find_fading,
    leave_out,
)
from fedaccord.measurement.posterior import count_draws, draw_posterior
from fedaccord.wording import format_accuracy_down, format_goal

# Rounds of fitting all agents, learning what they have in common, and fitting again.
ROUNDS = 8
# The unknowns of all agents grow with the square of how many there are, and the time with more.
MOST_AGENTS = 100


@dataclass(frozen=True, eq=False)
class Resamples:
    """B draws from the posterior: what may be true of all agents, given the pilots.

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
            f"{self.name} wants an accuracy of {format_goal(self.goal)}. If all agents gave all "
            f"they can, it would reach {format_accuracy_down(self.nearest)}: lower its goal to "
            f"{_round_down(self.nearest)} or less"
        )


@dataclass(frozen=True, eq=False)
class Measurement(Displayed):
    """A game measured by pilots, and how sure it is.

    table: the pilots, with goals, limits and costs.
    benefits: W as fitted, k x k.
    curves: (k, 4) as fitted, parts (floor, height, head, pace).
    training_noise: (k,), the standard deviation of a run's true accuracy round the curve.
    measurement_noise: (k,), the standard deviation that measuring it on the agent's validation
        points adds at the goal; 0 where their number is not known, and training noise holds both.
    resamples: what else may be true, given the pilots.
    fits: what was found for each agent, in the numbers of the fit.
    pooling: which agents were fitted in the light of the others, and what cross-validation says.
    seed: of the resamples.
    fading: how runs with more samples scatter less.
    """

    table: PilotTable
    benefits: Matrix
    curves: Matrix
    training_noise: Vector
    measurement_noise: Vector
    resamples: Resamples
    fits: tuple[AgentFit, ...]
    pooling: Pooling
    seed: int
    fading: Fading

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
        game = self._game(self.benefits, self.curves)
        return game.replace(chances=Chances.of(self))

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
            raise InputError(f"{agent} has no goal: set the accuracy that it wants with with_goals")

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
        """Return the same curves with other goals; nothing is fitted again.

        goals: one accuracy for all, one per agent, or some by name.
        """
        table = self.table.with_goals(goals)
        noise = _find_measurement_noise(self.fits, table.goals)
        return dataclasses.replace(self, table=table, measurement_noise=noise)


def fit_curves(
    table: PilotTable,
    *,
    seed: int = 0,
    resamples: int | None = None,
    prior: ArrayLike | None = None,
) -> Measurement:
    """Fit learning curves and cross-benefits to pilots.

        1 - accuracy_i(theta) = floor_i + height_i * (head_i + (W theta)_i)^(-pace_i),   W_ii = 1

    table: the pilots.
    seed: of the resamples.
    resamples: how many sets of curves are drawn from the posterior; 800 for up to eight agents
        and 200 for more, where left out.
    prior: what a sample of j may be worth to i, k x k, as Histograms.benefits says; a fit that
        the pilots leave open stays near it.
    """
    if table.size > MOST_AGENTS:
        raise InputError(
            f"pilots of {table.size:,} agents have {table.size - 1:,} cross-benefits to be found "
            f"for each; curves are fitted to {MOST_AGENTS} agents at most: merge agents that are "
            "alike, or plan from label histograms"
        )
    hint = None if prior is None else as_numbers(prior, "prior")
    if hint is not None and hint.shape != (table.size, table.size):
        raise InputError(
            f"prior must be {table.size} x {table.size}, one row and column per agent; got shape "
            f"{hint.shape}"
        )
    if resamples is None:
        resamples = count_draws(table.size)
    if resamples < 1:
        raise InputError(f"resamples must be at least 1; got {resamples}")
    agents = [describe_agent(table, agent, hint) for agent in range(table.size)]
    before = Population.before(hinted=hint is not None)
    single = [_fit_single(agent, before) for agent in agents]
    fits, scatter, population = _fit_together(single, before)
    pooling = check_pooling(fits, population, before)
    if not all(pooling.pooled):
        fits, scatter, population = _fit_together(leave_out(single, pooling), before)
    draws = draw_posterior(fits, population, scatter, resamples, np.random.default_rng(seed))
    training = np.sqrt((draws.training**2).mean(axis=0)).tolist()
    fits = tuple(map(centre_fit, fits, draws.centres, draws.errors, training))
    models = [fit.model for fit in fits]
    drawn = draws.found.swapaxes(0, 1)
    return Measurement(
        table=table,
        benefits=frozen(np.stack([f.model.benefits(f.found[None])[0] for f in fits])),
        curves=frozen(np.stack([f.model.curves(f.found[None])[0] for f in fits])),
        training_noise=frozen(np.array([f.training for f in fits])),
        measurement_noise=_find_measurement_noise(fits, table.goals),
        resamples=Resamples(
            benefits=frozen(_stack(m.benefits(x) for m, x in zip(models, drawn, strict=True))),
            curves=frozen(_stack(m.curves(x) for m, x in zip(models, drawn, strict=True))),
            training=frozen(draws.training),
        ),
        fits=fits,
        pooling=pooling,
        seed=seed,
        fading=find_fading(list_scatter(table, fits)),
    )


def list_scatter(
    table: PilotTable, fits: Iterable[AgentFit]
) -> list[tuple[Vector, Residuals, float]]:
    """Return how far the pilots of some agents scatter, for `find_fading`."""
    sizes = table.contributions.sum(axis=1)
    return [(sizes[fit.pilots], find_residuals(fit, 0.0), fit.training) for fit in fits]


def _stack(parts: Iterator[Stack]) -> Stack:
    return np.stack(list(parts), axis=1)


def _find_measurement_noise(fits: tuple[AgentFit, ...], goals: Vector) -> Vector:
    """Return what measuring adds at the goals; in mid-pilots where there is no goal."""
    middles = np.array([float(np.median(fit.fitted)) for fit in fits])
    points = np.array([fit.validation for fit in fits])
    return frozen(np.sqrt(shape(np.where(np.isnan(goals), middles, 1 - goals)) / points))


def _fit_single(agent: AgentFit, before: Population) -> AgentFit:
    """Fit an agent on its own, which is the same whether it will be pooled or not."""
    return fit_agent(agent, before.marginal_prior(agent.centre), list_starts(agent.centre))


def _fit_together(
    single: Sequence[AgentFit], before: Population
) -> tuple[tuple[AgentFit, ...], Scatter, Population]:
    """Learn what the agents in the pool have in common, and fit all again with that.

    single: the fit of each agent on its own.
    before: what is expected before any pilot is seen.
    """
    fits, population = tuple(single), before
    for _ in range(ROUNDS):
        population = population.learn([fit for fit in fits if fit.pooled] or fits)
        # What agents share was found in their residuals as well.
        shared = population.parameters / sum(len(fit.errors) for fit in fits)
        scatter = Scatter.split([find_residuals(fit, shared) for fit in fits])
        fits = tuple(
            fit_agent(
                dataclasses.replace(fit, training=float(training)),
                population.prior(fit.centre) if fit.pooled else fit.prior,
                fit.found[None],
            )
            for fit, training in zip(fits, scatter.expected, strict=True)
        )
    return fits, scatter, population


def _round_down(accuracy: float) -> str:
    return f"{np.floor(accuracy * 1000 - 1e-9) / 1000:.3f}"
