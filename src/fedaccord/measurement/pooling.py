"""What agents of one federation have in common: their curves are alike, and so is their help.

The parameters x_i of agent i scatter round a centre of its own scale, shifted by what all agents
share:

    x_i = centre_i + B m + e_i,   m ~ N(0, DOUBT^2),   e_i ~ N(0, spread)

for the floor, the head, the pace, and the worth of others' samples; the height is each agent's
own. Shift m and spread are learned from all agents' fits by expectation maximisation, so that
agents who differ much are pulled together little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.measurement.curve_fit import CURVE, Prior, Stack

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
EVIDENCE = 1.0


class Fitted(Protocol):
    """One agent's fit, as the population learns from it.

    centre: what its parameters are expected to be before anything is shared.
    found: its parameters.
    information: what the pilots tell of them, the inverse of a covariance.
    """

    @property
    def centre(self) -> Vector: ...

    @property
    def found(self) -> Vector: ...

    @property
    def information(self) -> Matrix: ...


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

    def _covariance(self, size: int) -> Matrix:
        covariance = np.zeros((size, size))
        covariance[1, 1] = HEIGHT**2
        covariance[SHARED, SHARED] = self.spread[:-1]
        covariance[CURVE:, CURVE:] = self.spread[-1] + self.apart * np.eye(size - CURVE)
        return covariance

    def marginal_prior(self, centre: Vector) -> Prior:
        """Return an agent's prior with the doubt of the shift."""
        design = make_design(len(centre))
        doubt = design @ np.linalg.inv(self.precision) @ design.T
        root = np.linalg.cholesky(self._covariance(len(centre)) + doubt)
        return Prior(centre + design @ self.shift, np.asarray(root))

    def prior(self, centre: Vector) -> Prior:
        """Return an agent's prior at the shift."""
        shifted = centre + make_design(len(centre)) @ self.shift
        return Prior(shifted, np.asarray(np.linalg.cholesky(self._covariance(len(centre)))))

    def learn(self, agents: Sequence[Fitted]) -> Population:
        """Return what the agents' fits say of shift and spread."""
        size = len(agents[0].found)
        design = make_design(size)
        inverse = np.linalg.inv(self._covariance(size))
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

    def draw_shifts(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw how far the shift may be from what was found, count x 4."""
        root = np.linalg.cholesky(np.linalg.inv(self.precision))
        return np.asarray(rng.standard_normal((count, len(root))) @ root.T)


def draw_widths(agents: int, count: int, rng: np.random.Generator) -> Vector:
    """Draw by what factor agents may differ more than their spread says: few tell little of it."""
    freedom = EVIDENCE + agents
    return np.asarray(np.sqrt(freedom / rng.chisquare(freedom, size=count)))


def make_design(size: int) -> Matrix:
    """Return B, which says what the shift does to each of an agent's parameters."""
    design = np.zeros((size, 4))
    design[SHARED, range(3)] = 1.0
    design[CURVE:, 3] = 1.0
    return design
