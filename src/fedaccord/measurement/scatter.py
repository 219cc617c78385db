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
from scipy.optimize import minimize_scalar

from fedaccord._checks import Matrix, Vector
from fedaccord.games.chances import Fading

# What training is expected to be before any pilot is seen; and how far that may be wrong, in
# logarithms.
TYPICAL, DOUBT = 0.012, 0.6
# By how much agents of one federation are expected to differ, in logarithms; that counts as the
# evidence of so many agents.
ALIKE, EVIDENCE = 0.3, 2.0
GRID = np.linspace(np.log(0.0005), np.log(0.2), 160)
# The rate at which larger runs scatter less is expected to be 0, give or take this: pilots have to
# show another. The least variance.
RATE, LEAST = 0.5, 1e-12


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
        precision = DOUBT**-2 + agents / self.alike**2
        middle = np.log(TYPICAL) / DOUBT**2 + own.sum(axis=1) / self.alike**2
        middle = middle / precision + rng.standard_normal(len(own)) / np.sqrt(precision)
        squares = EVIDENCE * ALIKE**2 + ((own - middle[:, None]) ** 2).sum(axis=1)
        return Shared(middle, np.sqrt(squares / rng.chisquare(EVIDENCE + agents, len(own))))

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
        total = np.maximum(variances * fall(rate) + measuring, LEAST)
        return float((freedom * np.log(total) + squares / total).sum() + (rate / RATE) ** 2)

    rate = float(minimize_scalar(weigh, bounds=(0.0, 1.0), method="bounded").x)
    if np.ptp(logs) == 0 or weigh(rate) >= weigh(0.0):
        return Fading()
    usual = np.exp(logs.mean()) * np.exp(-rate * centred).mean() ** (-1 / rate)
    return Fading(rate, float(usual), float(np.exp(logs.max())))
