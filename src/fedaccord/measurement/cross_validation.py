"""Whether agents should be pooled: do the others' curves help to predict an agent's pilots?

For every agent, two fits predict each of its pilots from its other pilots: one with a prior learned
from the other agents alone, one with the prior before any pilot. What counts is the logarithm of
the probability density that each gives to what was measured. Pilots with the same contributions
are left out together. Nothing is fitted again for each: near the fit, leaving out an observation
with leverage h turns a standardised residual e into e / (1 - h), with the variance 1 / (1 - h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedaccord._checks import Vector
from fedaccord.measurement.agents import AgentFit, Grouped, fit_agent, list_starts
from fedaccord.measurement.curve_fit import Prior
from fedaccord.measurement.pooling import Population

# An agent is fitted by itself where pooling takes more than this from the score of its pilots:
# less is within what chance does to such sums.
MOST_LOST = 4.0
# Rounds of learning what all agents but one have in common.
ROUNDS = 3


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
