"""How far pilots scatter round their curves: by training, and by measuring.

Two trainings with the same contributions differ in true accuracy, and each is measured on a finite
number of validation points. A measured accuracy, true accuracy a, has the variance

    training^2 + a (1 - a) / validation points

Only training, a standard deviation, is unknown. Agents differ in it, but not by much: its
logarithms scatter by ALIKE round one number that all agents share and that the pilots tell. The
posterior distribution is computed on a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Matrix, Vector

# What training is expected to be before any pilot is seen; that may be wrong by a factor of e.
TYPICAL, DOUBT = 0.012, 1.0
# By how much agents of one federation differ, in logarithms.
ALIKE = 0.5
GRID = np.linspace(np.log(0.0005), np.log(0.2), 160)


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
        log_shared = np.log(evidence).sum(axis=0) - 0.5 * ((GRID - np.log(TYPICAL)) / DOUBT) ** 2
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
