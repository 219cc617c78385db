"""How likely agents reach their goals: over what the curves may be, and how one run turns out.

Each resample of the fit is a world that may be the true one, all of them equally likely; in it

    P(i reaches its goal) = Phi((a_i(theta) - mu_i) / s_i)

with a_i the accuracy that the curve promises and s_i the scatter of single runs round it: of their
true accuracies, or of what is measured on the agent's validation points. Runs scatter
independently from agent to agent; where they go up and down together, all agents reach their goals
together more often than is said here. Where some pilots failed altogether, as training that
diverges does, one more run fails as often, and no agent reaches its goal then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fedaccord._checks import Matrix, Vector, frozen
from fedaccord.games.measured import find_needs, predict_accuracies
from fedaccord.measurement.curve_fit import Stack
from fedaccord.measurement.fit import Judged, Measurement

# What intervals leave out on either side: they hold what they are about with 95 %.
TAIL = 0.025
# Single runs drawn from each resample, for the spread of their accuracies.
RUNS = 20
TINY = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A number, and the interval it lies in, where that is known.

    value: the estimate.
    low, high: the ends of the interval; None where there is nothing to tell them from.
    """

    value: float
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """Return the number and the ends."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class Estimates:
    """A number for each agent, and the interval it lies in, where that is known.

    values: the estimates.
    low, high: the ends of their intervals; None where there is nothing to tell them from.
    """

    values: Vector
    low: Vector | None = None
    high: Vector | None = None

    def __getitem__(self, agent: int) -> Estimate:
        if self.low is None or self.high is None:
            return Estimate(float(self.values[agent]))
        return Estimate(float(self.values[agent]), float(self.low[agent]), float(self.high[agent]))

    def to_dict(self) -> dict[str, list[float] | None]:
        """Return the numbers and the ends."""
        ends = {"low": self.low, "high": self.high}
        return {
            "values": self.values.tolist(),
            **{name: None if end is None else end.tolist() for name, end in ends.items()},
        }


def spread(values: Vector, draws: Matrix) -> Estimates:
    """Return estimates with the interval that most of their draws lie in.

    A draw with a NaN is a world in which there is no such thing, and is left out; where most of
    the draws are, there is no interval.

    values: one estimate a column.
    draws: one row a draw.
    """
    known = draws[~np.isnan(draws).any(axis=1)]
    if 2 * len(known) < len(draws):
        return Estimates(frozen(np.array(values)))
    # No interpolation: between a number and infinity there is nothing to interpolate.
    low, high = np.quantile(known, [TAIL, 1 - TAIL], axis=0, method="inverted_cdf")
    return Estimates(frozen(np.array(values)), frozen(low), frozen(high))


def spread_of(value: float, draws: Vector) -> Estimate:
    """Return one estimate with the interval that most of its draws lie in."""
    return spread(np.array([value]), draws[:, None])[0]


@dataclass(frozen=True, eq=False)
class Chances:
    """What may be true of a federation, for as many worlds as there are resamples.

    goals: the accuracy each agent wants.
    noise: how far single runs scatter round the curve in each world, standard deviations, B x k.
    benefits: W of each world, B x k x k.
    curves: the parameters of each agent's curve in each world, B x k x 4.
    finishing: the part of all runs in which training comes to an end that can be measured.
    """

    goals: Vector
    noise: Matrix
    benefits: Stack
    curves: Stack
    finishing: float = 1.0

    @classmethod
    def of(cls, measurement: Measurement, judged: Judged = "true") -> Chances:
        """Take the resamples of a fit.

        measurement: the fit.
        judged: whether a run is judged by its true accuracy, or as measured once.
        """
        drawn = measurement.resamples
        measuring = measurement.measurement_noise if judged == "measured" else 0.0
        return cls(
            goals=measurement.goals,
            noise=np.hypot(drawn.training, measuring),
            benefits=drawn.benefits,
            curves=drawn.curves,
            finishing=measurement.table.finishing,
        )

    def needs(self, margins: Vector) -> Matrix:
        """Return the effective samples that goals and margins take in each world, B x k."""
        return find_needs(self.curves, self.goals + margins)

    def accuracies(self, contributions: Vector) -> Matrix:
        """Return the accuracy that each agent's curve promises in each world, B x k."""
        return predict_accuracies(self.curves, self.benefits @ contributions)

    def reached(self, accuracies: Matrix) -> Matrix:
        """Return the probability that one run reaches the goal, where the curve promises these."""
        return self.finishing * _chance_above(accuracies - self.goals, self.noise)

    def satisfied(self, contributions: Vector) -> Matrix:
        """Return the probability that each agent is satisfied in one run, in each world."""
        return self.reached(self.accuracies(contributions))

    def everyone(self, contributions: Vector) -> Vector:
        """Return the probability that all are satisfied in one run, in each world."""
        ahead = self.accuracies(contributions) - self.goals
        return self.finishing * np.asarray(_chance_above(ahead, self.noise).prod(axis=1))

    def could_cut(self, contributions: Vector, level: float) -> Vector:
        """Return the probability that an agent is satisfied after a cut that nobody else makes.

        contributions: what everybody gives but for the cut.
        level: the part that the agent gives of its own.
        """
        own = self.benefits.diagonal(axis1=1, axis2=2)
        left = self.benefits @ contributions - (1 - level) * own * contributions
        return frozen(self.reached(predict_accuracies(self.curves, left)).mean(axis=0))

    def runs(self, contributions: Vector, rng: np.random.Generator) -> Matrix:
        """Draw the accuracies of single runs, a row each, some in every world."""
        promised = np.repeat(self.accuracies(contributions), RUNS, axis=0)
        scatter = np.repeat(self.noise, RUNS, axis=0)
        drawn = promised + scatter * rng.standard_normal(promised.shape)
        return np.clip(drawn, 0.0, 1.0)


def _chance_above(ahead: Matrix, noise: Matrix) -> Matrix:
    """Return the probability that normal noise leaves what is ahead by so much at zero or more."""
    certain = (ahead >= -TINY).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(noise > 0, ndtr(ahead / noise), certain)


def lower_goals(runs: Matrix, goals: Vector, probability: float) -> Vector:
    """Lower the goals of those who miss them until runs meet all of them as often as asked.

    Each goal becomes what an agent reaches in the same part q of its runs, if that is less than the
    goal; q is the least part that will do.

    runs: accuracies of single runs, a row each.
    goals: what was wanted.
    probability: in what part of the runs all goals are to be met.
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        part = (low + high) / 2
        lowered = _lower_to_part(runs, goals, part)
        enough = (runs >= lowered - TINY).all(axis=1).mean() >= probability
        low, high = (low, part) if enough else (part, high)
    return frozen(_lower_to_part(runs, goals, high))


def _lower_to_part(runs: Matrix, goals: Vector, part: float) -> Vector:
    return np.minimum(goals, np.quantile(runs, 1 - part, axis=0, method="inverted_cdf"))
