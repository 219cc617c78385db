"""What may be true of all agents, given the pilots: draws from the posterior distribution.

The unknowns are the parameters x_i of every agent, the population that they come from (shift,
spread, apart), and how far runs scatter in training. Chains visit them in turn:

    population | x              from its exact distribution
    x_i | population, scatter   a random step, taken or not by Metropolis and Hastings' rule
    scatter | x                 from its exact distribution on a grid

A step goes where Newton's method would, with noise of the inverse curvature, so on a straight
problem it is an exact draw. Further steps move all agents and what they share at once. Every
unknown varies, so no interval takes for certain what was estimated from the same pilots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.measurement.curve_fit import AgentFit, Grouped, Stack, Task
from fedaccord.measurement.pooling import Population, Populations, Scatter, Shared, make_design

# The sweeps that each chain makes before anything is kept, and those between two kept draws.
BEFORE, BETWEEN = 60, 8
# At least so many chains. A chain keeps at most so many draws: chains are vectors, sweeps are not.
CHAINS, MOST = 20, 10
# Each chain keeps this many at least, so that the centre is known where few draws are wanted.
LEAST = 5
# How many draws a fit makes. The total of few agents follows single curves, so another seed would
# change it by 2 % with the fewer draws; the total of many agents averages over their curves.
MANY, FEW = 800, 200
FEW_AGENTS = 8
# How much of where a chain is a step keeps, in turn: none, much, more. Bold steps fail more often.
KEEP = (0.0, 0.6, 0.9)
# How long steps of all agents at once are, in standard deviations of what they share.
TOGETHER = (0.6, 0.3)
# A step that is less likely than this, in logarithms, is not taken; its curvature may not exist.
HOPELESS = 500.0


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the posterior.

    found: (B, k, parameters).
    training: (B, k), standard deviations.
    centres: (k, parameters), the means of all that chains visited.
    errors: the mean errors in the pilots of each agent, by group.
    """

    found: Stack
    training: Stack
    centres: Matrix
    errors: list[Vector]


def count_draws(agents: int) -> int:
    """Return how many draws the total of a plan needs so that it hardly depends on the seed."""
    return MANY if agents <= FEW_AGENTS else FEW


def count_chains(draws: int) -> int:
    """Return how many chains make so many draws."""
    return max(CHAINS, -(-draws // MOST))


def draw_posterior(
    fits: Sequence[AgentFit],
    population: Population,
    scatter: Scatter,
    count: int,
    rng: np.random.Generator,
) -> Draws:
    """Draw what may be true of all agents.

    fits: where chains begin: the likeliest parameters in the light of the population.
    population, scatter: as estimated.
    count: how many draws.
    rng: of the chains.
    """
    number = count_chains(count)
    chains = _Chains(fits, population, scatter.draw(number, rng), rng)
    for sweep in range(BEFORE):
        chains.sweep(sweep)
    kept, visited = [], []
    for sweep in range(max(LEAST, -(-count // number)) * BETWEEN):
        chains.sweep(sweep)
        visited.append(chains.find_means())
        if sweep % BETWEEN == BETWEEN - 1:
            kept.append((chains.found.copy(), chains.training.copy()))
    found, training = (np.concatenate(part[::-1])[:count] for part in zip(*kept, strict=True))
    centres, *errors = (np.mean(part, axis=0) for part in zip(*visited, strict=True))
    return Draws(found, training, centres, errors)


class _Chains:
    """Where chains are.

    found: (chains, k, parameters).
    training: (chains, k).
    """

    def __init__(
        self,
        fits: Sequence[AgentFit],
        population: Population,
        training: Matrix,
        rng: np.random.Generator,
    ) -> None:
        self.rng = rng
        self.training = training
        self.pilots = [Grouped.of(fit) for fit in fits]
        self.centres = np.array([fit.centre for fit in fits])
        self.found = np.stack([_start(fit, len(training), rng) for fit in fits], axis=1)
        self.shared = Shared.start(training)
        self.populations = Populations.repeat(population, len(training))
        self.design = make_design(self.centres.shape[1])
        self.pooled = np.array([fit.pooled for fit in fits])
        self.priors = [fit.prior for fit in fits]
        self.errors = self._predict()
        self._aim_together(fits, population)

    def _aim_together(self, fits: Sequence[AgentFit], population: Population) -> None:
        """Find how agents' parameters follow what they share, and how far that may be off."""
        precision = np.linalg.inv(population.covariance(len(self.design)))
        pull = precision @ self.design
        self.follow = [
            np.linalg.solve(fit.information + precision, pull) if fit.pooled else 0 * pull
            for fit in fits
        ]
        told = np.diag(1 / population.doubt)
        for follow in np.array(self.follow)[self.pooled]:
            told += self.design.T @ pull - pull.T @ follow
        self.root = np.linalg.cholesky(np.linalg.inv(told))

    def sweep(self, number: int) -> None:
        """Visit all unknowns once."""
        away = (self.found - self.centres)[:, self.pooled]
        self.populations = self.populations.draw(away, self.rng)
        precision = self.populations.find_precision(len(self.design))
        for agent in range(len(self.pilots)):
            self._step(self._make_task(agent, precision), agent, KEEP[number % len(KEEP)])
        for length in TOGETHER:
            self._step_together(precision, length)
        self.errors = self._predict()
        for agent, pilots in enumerate(self.pilots):
            squares = pilots.find_squares(self.errors[agent])
            self.training[:, agent] = self.shared.draw_training(
                squares, pilots.times, pilots.measuring, self.rng
            )
        self.shared = self.shared.draw(self.training, self.rng)

    def _predict(self) -> list[Matrix]:
        """Return the errors in the pilots of each agent, chain by chain."""
        return [pilots.model.errors(self.found[:, i]) for i, pilots in enumerate(self.pilots)]

    def find_means(self) -> list[Matrix]:
        """Return the mean parameters of all agents, and the mean errors of each."""
        return [self.found.mean(axis=0), *(errors.mean(axis=0) for errors in self.errors)]

    def _make_task(self, agent: int, precision: Stack) -> Task:
        pilots = self.pilots[agent]
        scatter = pilots.scatter(self.training[:, agent])
        errors = np.broadcast_to(pilots.errors, scatter.shape)
        if self.pooled[agent]:
            centre = self.centres[agent] + self.populations.shift @ self.design.T
        else:
            centre = np.broadcast_to(self.priors[agent].centre, self.found[:, agent].shape)
            precision = np.broadcast_to(self.priors[agent].precision, precision.shape)
        return Task(pilots.model, errors, scatter, centre, precision)

    def _step(self, task: Task, agent: int, keep: float) -> None:
        """Move one agent's parameters in all chains.

        On a straight problem, x' = x - (1 - keep) H^-1 g + sqrt(1 - keep^2) N(0, H^-1) leaves the
        posterior as it is, whatever part is kept.
        """
        here = self.found[:, agent]
        everywhere = np.arange(len(here))
        noise = self.rng.standard_normal(here.shape)
        wide = np.sqrt(1 - keep**2)
        before, gradient, curvature = task.at(here, everywhere)
        root = np.asarray(np.linalg.cholesky(curvature))
        # H^-1 R z, with R R' = H, has the covariance H^-1.
        sides = np.stack([gradient, (root @ noise[:, :, None])[:, :, 0]], axis=2)
        newton, random = np.moveaxis(np.linalg.solve(curvature, sides), 2, 0)
        there = here - (1 - keep) * newton + wide * random
        with np.errstate(over="ignore", invalid="ignore"):
            after, gradient, curvature = task.at(there, everywhere)
            fair = after - before < HOPELESS
        gradient, curvature = gradient[fair], curvature[fair]
        turned = np.asarray(np.linalg.cholesky(curvature))
        newton = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        back = here[fair] - there[fair] + (1 - keep) * newton
        back = (turned.transpose(0, 2, 1) @ back[:, :, None])[:, :, 0] / wide
        log_odds = -0.5 * (after - before)[fair] - 0.5 * (back**2 - noise[fair] ** 2).sum(axis=1)
        log_odds += _find_log_root(turned) - _find_log_root(root[fair])
        taken = everywhere[fair][np.log(self.rng.random(len(here)))[fair] < log_odds]
        self.found[taken, agent] = there[taken]

    def _step_together(self, precision: Stack, length: float) -> None:
        """Move what agents share, and all of them as far as their pilots let them follow."""
        away = length * self.rng.standard_normal((len(self.found), len(self.root))) @ self.root.T
        there = self.found + np.stack([away @ follow.T for follow in self.follow], axis=1)
        moved = replace(self.populations, shift=self.populations.shift + away)
        with np.errstate(over="ignore", invalid="ignore"):
            change = self._weigh(there, moved, precision)
            change -= self._weigh(self.found, self.populations, precision)
            taken = np.log(self.rng.random(len(away))) < -0.5 * change
        self.found[taken] = there[taken]
        shift = np.where(taken[:, None], moved.shift, self.populations.shift)
        self.populations = replace(self.populations, shift=shift)

    def _weigh(self, found: Stack, populations: Populations, precision: Stack) -> Vector:
        """Return minus twice the logarithm of how likely parameters and shifts are."""
        sums = (populations.shift**2 / populations.before.doubt).sum(axis=1)
        for agent in np.flatnonzero(self.pooled).tolist():
            pilots = self.pilots[agent]
            gaps = pilots.model.errors(found[:, agent]) - pilots.errors
            away = found[:, agent] - self.centres[agent] - populations.shift @ self.design.T
            sums += ((gaps / pilots.scatter(self.training[:, agent])) ** 2).sum(axis=1)
            sums += (away * (precision @ away[:, :, None])[:, :, 0]).sum(axis=1)
        return np.asarray(sums)


def _start(fit: AgentFit, chains: int, rng: np.random.Generator) -> Stack:
    """Draw where chains begin, as if the problem were straight."""
    root = np.linalg.cholesky(np.linalg.inv(fit.information + fit.prior.precision))
    return np.asarray(fit.found + rng.standard_normal((chains, len(root))) @ root.T)


def _find_log_root(roots: Stack) -> Vector:
    return np.asarray(np.log(roots.diagonal(axis1=1, axis2=2)).sum(axis=1))
