"""What agents of one federation have in common: curves, help, and how far runs scatter are alike.

The parameters x_i of agent i scatter round a centre of its own scale, shifted by what all agents
share:

    x_i = centre_i + B m + e_i,   m ~ N(0, DOUBT^2),   e_i ~ N(0, spread)

for the floor, the head, the pace, and the worth of others' samples; the height is each agent's
own. Shift m and spread are learned from all agents' fits by expectation maximisation, so that
agents that differ much are pulled together little.

Two trainings with the same contributions differ in true accuracy, and each is measured on a finite
number of validation points. A measured accuracy, true accuracy a, has the variance

    training^2 + a (1 - a) / validation points

Only training, a standard deviation, is unknown. Agents differ in it, but not by much: its
logarithms scatter by ALIKE round one number that all agents share and that the pilots tell. The
posterior distribution is computed on a grid.

Cross-validation tells whether an agent should be pooled at all: do the others' curves help to
predict its pilots? Two fits predict each of its pilots from its other pilots: one with a prior
learned from the other agents alone, one with the prior before any pilot. What counts is the
logarithm of the probability density that each gives to what was measured. Pilots with the same
contributions are left out together. Nothing is fitted again for each: near the fit, leaving out an
observation with leverage h turns a standardised residual e into e / (1 - h), with the variance
1 / (1 - h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from fedaccord._checks import Matrix, Vector
from fedaccord.games.chances import Fading
from fedaccord.measurement.curve_fit import (
    CURVE,
    TYPICAL,
    AgentFit,
    Grouped,
    Prior,
    Residuals,
    Stack,
    fit_agent,
    list_starts,
)

# The places of floor, head and pace among the parameters; the worth of others comes after CURVE.
SHARED = (0, 2, 3)
# Of (floor, head, pace, worth): how far the shift may be from 0, and how far agents are expected to
# be from it, standard deviations of logarithms (of the floor: of its odds).
DOUBT = (1.4, 1.9, 0.65, 1.1)
EXPECTED = (0.4, 0.6, 0.25, 0.2)
# The height is each agent's own, and single benefits of an agent differ by this much.
HEIGHT, APART = 2.0, 0.5
# Where label histograms say what a sample should be worth: doubt, agents, single benefits.
HINTED = (0.4, 0.3, 0.5)
# The expected spreads count as the evidence of this many agents.
EVIDENCE = 4.0
# An agent is fitted by itself where pooling takes more than this from the score of its pilots:
# less is within what chance does to such sums.
MOST_LOST = 4.0
# How far what training is expected to be may be wrong, in logarithms.
SCATTER_DOUBT = 0.6
# By how much agents of one federation are expected to differ in it, in logarithms; that counts as
# the evidence of so many agents.
ALIKE, ALIKE_EVIDENCE = 0.3, 2.0
GRID = np.linspace(np.log(0.0005), np.log(0.2), 160)
# The rate at which larger runs scatter less is expected to be 0, give or take this: pilots have to
# show another. The least variance.
FADING, LEAST_VARIANCE = 0.5, 1e-12
# Rounds of learning what all agents but one have in common.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Population:
    """The distribution of agents' parameters round their centres.

    expected: the standard deviations of (floor, head, pace, worth), and of single benefits, before
        any pilot is seen.
    doubt: the variances of the shift before any pilot is seen.
    shift: m, of (floor, head, pace, worth).
    precision: of the shift, the inverse of its covariance.
    spread: the variances of agents round it.
    apart: the variance of single benefits round their agent's level.
    """

    expected: Vector
    doubt: Vector
    shift: Vector
    precision: Matrix
    spread: Vector
    apart: float

    @classmethod
    def before(cls, *, hinted: bool) -> Population:
        """Return what is expected before any pilot is seen.

        hinted: whether centres of worth come from label histograms.
        """
        doubt, expected, apart = np.array(DOUBT), np.array(EXPECTED), APART
        if hinted:
            doubt[-1], expected[-1], apart = HINTED
        known = np.append(expected, apart) ** 2
        precision = np.diag(doubt**-2)
        return cls(known, doubt**2, np.zeros(4), precision, known[:-1], float(known[-1]))

    def covariance(self, size: int) -> Matrix:
        """Return the covariance of one agent's parameters round the shift."""
        covariance = np.zeros((size, size))
        covariance[1, 1] = HEIGHT**2
        covariance[SHARED, SHARED] = self.spread[:-1]
        covariance[CURVE:, CURVE:] = self.spread[-1] + self.apart * np.eye(size - CURVE)
        return covariance

    def marginal_prior(self, centre: Vector) -> Prior:
        """Return an agent's prior with the doubt of the shift."""
        design = make_design(len(centre))
        doubt = design @ np.linalg.inv(self.precision) @ design.T
        root = np.linalg.cholesky(self.covariance(len(centre)) + doubt)
        return Prior(centre + design @ self.shift, np.asarray(root))

    def prior(self, centre: Vector) -> Prior:
        """Return an agent's prior at the shift."""
        shifted = centre + make_design(len(centre)) @ self.shift
        return Prior(shifted, np.asarray(np.linalg.cholesky(self.covariance(len(centre)))))

    def learn(self, agents: Sequence[AgentFit]) -> Population:
        """Return what the agents' fits say of shift and spread."""
        size = len(agents[0].found)
        design = make_design(size)
        inverse = np.linalg.inv(self.covariance(size))
        away = np.array([agent.found - agent.centre for agent in agents])
        within = np.linalg.inv(np.array([agent.information for agent in agents]) + inverse)
        weights = design.T @ inverse
        prior = np.diag(1 / self.doubt)
        shift = np.linalg.solve(prior + len(agents) * weights @ design, weights @ away.sum(axis=0))
        told = len(agents) * weights @ design - weights @ within.sum(axis=0) @ weights.T
        spread, apart = self._learn_spread(away - design @ shift, within)
        return replace(self, shift=shift, precision=prior + told, spread=spread, apart=apart)

    def _learn_spread(self, away: Matrix, within: Stack) -> tuple[Vector, float]:
        count, others = len(away), away.shape[1] - CURVE
        squares = np.zeros(4)
        squares[:-1] = (away**2 + within.diagonal(axis1=1, axis2=2))[:, SHARED].sum(axis=0)
        worth, doubt = away[:, CURVE:], within[:, CURVE:, CURVE:]
        apart, expected = self.apart, self.expected
        if others:
            level = worth.mean(axis=1)
            squares[-1] = (level**2).sum() + doubt.mean(axis=(1, 2)).sum()
            # The mean of so many benefits scatters by itself.
            squares[-1] = max(squares[-1] - count * apart / others, 0.0)
            round_level = ((worth - level[:, None]) ** 2).sum()
            round_level += (
                np.trace(doubt, axis1=1, axis2=2).sum() - others * doubt.mean(axis=(1, 2)).sum()
            )
            known = EVIDENCE + count * (others - 1)
            apart = float((EVIDENCE * expected[-1] + round_level) / known)
        spread = (EVIDENCE * expected[:-1] + squares) / (EVIDENCE + count)
        return spread, apart

    @property
    def parameters(self) -> float:
        """How many parameters of the shift the pilots decided; the prior decides the others."""
        return len(self.doubt) - float(np.trace(np.linalg.inv(self.precision) / self.doubt))


@dataclass(frozen=True, eq=False)
class Populations:
    """Populations that may be true, one for each of many chains.

    before: what was expected before any pilot was seen.
    shift, spread: (chains, 4).
    apart: (chains,).
    """

    before: Population
    shift: Matrix
    spread: Matrix
    apart: Vector

    @classmethod
    def repeat(cls, population: Population, chains: int) -> Populations:
        """Let all chains begin with the same population."""
        shift, spread = (np.tile(row, (chains, 1)) for row in (population.shift, population.spread))
        return cls(population, shift, spread, np.full(chains, population.apart))

    def find_precision(self, size: int) -> Stack:
        """Return the inverse of the covariance of one agent's parameters, chain by chain."""
        precision = np.zeros((len(self.shift), size, size))
        precision[:, 1, 1] = HEIGHT**-2
        precision[:, SHARED, SHARED] = 1 / self.spread[:, :-1]
        # Sherman and Morrison's formula, for the worth of others' samples.
        others = size - CURVE
        less = self.spread[:, -1] / (self.apart * (self.apart + others * self.spread[:, -1]))
        worth = np.eye(others) / self.apart[:, None, None] - less[:, None, None]
        precision[:, CURVE:, CURVE:] = worth
        return precision

    def draw(self, away: Stack, rng: np.random.Generator) -> Populations:
        """Draw other populations, given how far agents are from their centres.

        away: (chains, agents, parameters).
        """
        worth = away[:, :, CURVE:]
        others = worth.shape[2]
        means = worth.sum(axis=2, keepdims=True) / max(others, 1)
        levels = np.append(away[:, :, SHARED], means, axis=2)
        variances = self.spread + np.outer(self.apart / max(others, 1), [0, 0, 0, 1])
        shift = self._draw_shift(levels, variances, rng)
        levels[:, :, -1] = self._draw_levels(levels[:, :, -1], shift[:, -1:], others, rng)
        apart = ((worth - levels[:, :, -1:]) ** 2).sum(axis=(1, 2))
        squares = ((levels - shift[:, None]) ** 2).sum(axis=1)
        count, expected = away.shape[1], self.before.expected
        return replace(
            self,
            shift=shift,
            spread=_draw_variance(squares, count, expected[:-1], rng),
            apart=_draw_variance(apart, count * others, expected[-1], rng),
        )

    def _draw_shift(self, levels: Stack, variances: Matrix, rng: np.random.Generator) -> Matrix:
        precision = 1 / self.before.doubt + levels.shape[1] / variances
        middle = levels.sum(axis=1) / variances / precision
        return np.asarray(middle + rng.standard_normal(middle.shape) / np.sqrt(precision))

    def _draw_levels(
        self, means: Matrix, shift: Matrix, others: int, rng: np.random.Generator
    ) -> Matrix:
        """Draw what others' samples are worth to each agent altogether."""
        told, known = others / self.apart[:, None], 1 / self.spread[:, -1:]
        middle = (means * told + shift * known) / (told + known)
        return np.asarray(middle + rng.standard_normal(means.shape) / np.sqrt(told + known))


def _draw_variance(
    squares: Vector, count: int, expected: Vector | float, rng: np.random.Generator
) -> Vector:
    """Draw variances, given the sum of `count` squares and what they are expected to be."""
    drawn = rng.chisquare(EVIDENCE + count, size=squares.shape)
    return np.asarray((EVIDENCE * expected + squares) / drawn)


def make_design(size: int) -> Matrix:
    """Return B, which says what the shift does to each of an agent's parameters."""
    design = np.zeros((size, 4))
    design[SHARED, range(3)] = 1.0
    design[CURVE:, 3] = 1.0
    return design


# How far runs scatter.


@dataclass(frozen=True, eq=False)
class Scatter:
    """What is known of the training scatter of each agent.

    shared: the probability of each value on the grid of what agents share.
    given: k x (shared) x (own), the probability of an agent's own value, given what they share.
    """

    shared: Vector
    given: Matrix

    @classmethod
    def split(cls, agents: Sequence[Residuals]) -> Scatter:
        """Take what measuring explains from how far pilots are from the curves; training is left.

        agents: the residuals of each.
        """
        log_likely = np.array([agent.weigh(np.exp(GRID)) for agent in agents])
        likely = np.exp(log_likely - log_likely.max(axis=1, keepdims=True))
        own = np.exp(-0.5 * ((GRID - GRID[:, None]) / ALIKE) ** 2)
        joint = (own / own.sum(axis=1, keepdims=True)) * likely[:, None, :]
        evidence = joint.sum(axis=2)
        log_shared = (
            np.log(evidence).sum(axis=0) - 0.5 * ((GRID - np.log(TYPICAL)) / SCATTER_DOUBT) ** 2
        )
        shared = np.exp(log_shared - log_shared.max())
        return cls(shared / shared.sum(), joint / evidence[:, :, None])

    @property
    def expected(self) -> Vector:
        """The training scatter of each agent: the root of its expected square."""
        return np.asarray(np.sqrt((self.shared @ self.given) @ np.exp(2 * GRID)))

    def draw(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw training scatters, count x k."""
        shared = rng.choice(len(GRID), size=count, p=self.shared)
        chances = rng.random((len(self.given), count))
        below = np.cumsum(self.given, axis=2)[:, shared]
        places = np.minimum((below < chances[:, :, None]).sum(axis=2), len(GRID) - 1)
        return np.asarray(np.exp(GRID[places]).T)


@dataclass(frozen=True, eq=False)
class Shared:
    """What agents share in their training scatter, chain by chain.

    middle: the logarithm that agents' own ones lie round.
    alike: the standard deviation of these.
    """

    middle: Vector
    alike: Vector

    @classmethod
    def start(cls, training: Matrix) -> Shared:
        """Return what agents seem to share.

        training: standard deviations, (chains, agents).
        """
        return cls(np.log(training).mean(axis=1), np.full(len(training), ALIKE))

    def draw(self, training: Matrix, rng: np.random.Generator) -> Shared:
        """Draw what agents may share, given their own training scatters."""
        own, agents = np.log(training), training.shape[1]
        precision = SCATTER_DOUBT**-2 + agents / self.alike**2
        middle = np.log(TYPICAL) / SCATTER_DOUBT**2 + own.sum(axis=1) / self.alike**2
        middle = middle / precision + rng.standard_normal(len(own)) / np.sqrt(precision)
        squares = ALIKE_EVIDENCE * ALIKE**2 + ((own - middle[:, None]) ** 2).sum(axis=1)
        return Shared(middle, np.sqrt(squares / rng.chisquare(ALIKE_EVIDENCE + agents, len(own))))

    def draw_training(
        self, squares: Matrix, times: Vector, measuring: Vector, rng: np.random.Generator
    ) -> Vector:
        """Draw the training scatter of one agent, given its curve.

        squares: of distances from the curve, summed by group of pilots, one row per chain.
        times: how many pilots each group has.
        measuring: the variance of measuring one pilot of each group.
        """
        variances = np.exp(2 * GRID)[:, None] + measuring
        terms = np.log(variances) @ times + squares @ (1 / variances).T
        terms += ((GRID - self.middle[:, None]) / self.alike[:, None]) ** 2
        likely = np.exp(-0.5 * (terms - terms.min(axis=1, keepdims=True)))
        below = np.cumsum(likely, axis=1)
        chances = rng.random((len(below), 1)) * below[:, -1:]
        return np.asarray(np.exp(GRID[np.minimum((below < chances).sum(axis=1), len(GRID) - 1)]))


def find_fading(agents: Sequence[tuple[Vector, Residuals, float]]) -> Fading:
    """Return the likeliest rate, between 0 and 1, at which training scatters less in larger runs.

    agents: of each, or of each of its goals, how many samples its pilots had in all; how far they
        were from the curve; and its training scatter, which is that of the pilots on average.
    """
    sizes, found, training = zip(*agents, strict=True)
    logs = np.log(np.maximum(np.concatenate(sizes), 1.0))
    squares, freedom, measuring = (
        np.concatenate([getattr(one, name) for one in found])
        for name in ("squares", "freedom", "measuring")
    )
    variances = np.repeat(np.square(training), [len(one) for one in sizes])
    centred = logs - logs.mean()

    def fall(rate: float) -> Vector:
        falls = np.exp(-rate * centred)
        return np.asarray(falls / falls.mean())

    def weigh(rate: float) -> float:
        total = np.maximum(variances * fall(rate) + measuring, LEAST_VARIANCE)
        return float((freedom * np.log(total) + squares / total).sum() + (rate / FADING) ** 2)

    rate = float(minimize_scalar(weigh, bounds=(0.0, 1.0), method="bounded").x)
    if np.ptp(logs) == 0 or weigh(rate) >= weigh(0.0):
        return Fading()
    usual = np.exp(logs.mean()) * np.exp(-rate * centred).mean() ** (-1 / rate)
    return Fading(rate, float(usual), float(np.exp(logs.max())))


# Who should be pooled.


@dataclass(frozen=True, eq=False)
class Pooling:
    """What cross-validation says of pooling.

    gains: by how much the other agents raise the logarithm of the probability density of each
        agent's pilots, each predicted from the others; below 0 where they mislead.
    pooled: which agents are pooled.
    """

    gains: Vector
    pooled: tuple[bool, ...]

    def to_dict(self) -> dict[str, list[float] | list[bool]]:
        """Return it for machines."""
        return {"gains": self.gains.tolist(), "pooled": list(self.pooled)}


def check_pooling(fits: Sequence[AgentFit], population: Population, before: Population) -> Pooling:
    """Return by how much each agent gains from the others, and which of them should be pooled.

    fits: of all agents, pooled.
    population: what they have in common.
    before: what is expected before any pilot is seen.
    """
    if len(fits) == 1:
        return Pooling(np.zeros(1), (True,))
    gains = np.array(
        [
            _score(fit, _learn_without(fits, agent, population).marginal_prior(fit.centre))
            - _score(fit, before.marginal_prior(fit.centre))
            for agent, fit in enumerate(fits)
        ]
    )
    return Pooling(gains, tuple((gains > -MOST_LOST).tolist()))


def _learn_without(fits: Sequence[AgentFit], agent: int, population: Population) -> Population:
    others = [fit for place, fit in enumerate(fits) if place != agent]
    for _ in range(ROUNDS):
        population = population.learn(others)
    return population


def _score(fit: AgentFit, prior: Prior) -> float:
    """Return the logarithm of the density of an agent's pilots, each predicted from the others."""
    starts = np.concatenate([fit.found[None], list_starts(prior.centre)])
    return float(score_left_out(fit_agent(fit, prior, starts)).sum())


def score_left_out(fit: AgentFit) -> Vector:
    """Return the logarithm of the density of each group of pilots, predicted from the others.

    Parts that every fit to the same pilots has in common are left out.
    """
    pilots = Grouped.of(fit)
    scatter = pilots.scatter(np.array([fit.training]))[0]
    fitted, slopes = pilots.model.slopes(fit.found[None])
    scaled = slopes[0] / scatter[:, None]
    inverse = np.linalg.inv(scaled.T @ scaled + fit.prior.precision)
    left = 1 - np.einsum("ri,ij,rj->r", scaled, inverse, scaled)
    residuals = (pilots.errors - fitted[0]) / scatter
    return np.asarray(0.5 * (np.log(left) - residuals**2 / left))


def leave_out(fits: Sequence[AgentFit], pooling: Pooling) -> list[AgentFit]:
    """Return the fits, with those marked that are not to be pooled; none where one is left."""
    alone = sum(pooling.pooled) < 2
    return [
        replace(fit, pooled=pooled and not alone)
        for fit, pooled in zip(fits, pooling.pooled, strict=True)
    ]
