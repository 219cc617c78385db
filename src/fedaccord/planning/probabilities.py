"""How likely agents reach their goals: over what the curves may be, and how one run turns out.

Each resample of the fit is a world that may be the true one, all of them equally likely; in it

    P(i satisfied) = Phi((a_i(theta) - mu_i) / s_i)

with a_i the accuracy that the curve promises and s_i the scatter of single runs round it. Runs
scatter independently from agent to agent; where they go up and down together, all are satisfied
together more often than is said here. Where some pilots failed altogether, as training that
diverges does, one more run fails as often, and satisfies nobody then.

So that one run satisfies all as often as asked, every agent aims z times its own noise above its
goal, with one z for all; z is the least that gives the probability asked for, or comes near the
largest that there is a plan for. Who cannot reach what it aims at, though it gives all it can,
aims at what it does reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr

from fedaccord._checks import Matrix, Vector, frozen
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, find_needs, predict_accuracies
from fedaccord.measurement.curve_fit import Stack
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.selection import Equilibria, settle_within

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
    def of(cls, measurement: Measurement) -> Chances:
        """Take the resamples of a fit."""
        drawn = measurement.resamples
        finishing = measurement.table.finishing
        return cls(measurement.goals, drawn.noise, drawn.benefits, drawn.curves, finishing)

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


# The first z tried after 0, how far z may go, and how finely it is told.
FIRST = 0.5
FARTHEST = 64.0
FINE = 0.005
# Where the probability asked for cannot be had, a plan that comes this near to the largest will do:
# the last hundredth may take all that everybody has.
NEAR = 0.01
# What sums of samples may be off by, relative to their value: less than what equilibria may be off
# by, or a goal lowered by this would leave none that is exact.
SLACK = 1e-11


@dataclass(frozen=True, eq=False)
class Aim:
    """A plan for one margin.

    z: how many times its noise everybody aims above its goal.
    game: with these margins.
    equilibria: those of the game that were found.
    chosen: which of them.
    contributions: the chosen one in whole numbers.
    everyone: the probability that one run satisfies all; NaN where nothing is known of it.
    """

    z: float
    game: LinearGame
    equilibria: Equilibria
    chosen: int
    contributions: Vector
    everyone: float

    @property
    def real(self) -> Vector:
        """The chosen equilibrium, before it is rounded."""
        return np.asarray(self.equilibria.contributions[self.chosen])


def find_margin(
    game: MeasuredGame,
    noise: Vector,
    *,
    probability: float,
    aim_at: Callable[[float, LinearGame], Aim | None],
) -> Aim | None:
    """Find the least z at which a plan satisfies all with a probability.

    Where none does, the least that comes near the largest probability that can be had. None where
    there is no plan even without a margin.

    game: with no margins.
    noise: how far single runs scatter, agent by agent.
    probability: what is asked.
    aim_at: makes the plan of a z and its game; None where there is none.
    """

    @cache
    def at(z: float) -> Aim | None:
        try:
            aim = aim_at(z, game.replace(margins=game.margins + z * noise) if z else game)
        except InputError:
            # Somebody would aim above what its curve reaches, or above an accuracy of one.
            aim = None
        lowered = lower_to_limits(game, z * noise) if aim is None and z else None
        return aim if lowered is None else aim_at(z, lowered)

    here = at(0.0)
    if here is None or not noise.any():
        return here
    found = _search_up(here, probability, at)
    return found if found.everyone >= probability else _search_up(here, found.everyone - NEAR, at)


def _search_up(here: Aim, probability: float, at: Callable[[float], Aim | None]) -> Aim:
    """Return the plan with the least z that has a probability; where none has, the likeliest seen.

    here: the plan without a margin.
    """
    if here.everyone >= probability:
        return here
    low, z = here, FIRST
    while z <= FARTHEST:
        there = at(z)
        if there is None or there.everyone >= probability:
            return _bisect(low, z, there, probability, at)
        low, z = (there if there.everyone > low.everyone else low), 2 * z
    return low


def lower_to_limits(game: MeasuredGame, margins: Vector) -> MeasuredGame | None:
    """Return the game in which who gives all it can aims at what it reaches; None if below goals.

    Best response with limits comes to rest where some are short at their limits; that is an
    equilibrium once these aim at no more than they have there.

    game: with the margins it has without these.
    margins: by how much all would aim higher.
    """
    benefits, goals = game.dense_benefits, game.goals + game.margins
    needs = find_needs(game.rows, np.minimum(goals + margins, 1.0))
    if not (np.isfinite(needs) | np.isfinite(game.limits)).all():
        return None
    given = settle_within(benefits, needs, game.minimums, game.limits, game.minimums)
    if given is None:
        return None
    has = benefits @ given
    short = has < needs * (1 - SLACK)
    # A hair less, so that rounding leaves nobody short of what it has.
    reached = predict_accuracies(game.rows, has * (1 - SLACK))
    above = np.where(short, reached - goals, margins)
    return None if (above < 0).any() else game.replace(margins=game.margins + above)


def _bisect(
    low: Aim, z: float, high: Aim | None, probability: float, at: Callable[[float], Aim | None]
) -> Aim:
    """Halve the distance between too little and enough, or too much for there to be a plan."""
    start, best = low.z, low
    while z - start > FINE:
        middle = (start + z) / 2
        there = at(middle)
        if there is not None and there.everyone >= probability:
            z, high = middle, there
        elif there is None and high is None:
            z = middle
        else:
            start = middle
            best = best if there is None or there.everyone < best.everyone else there
    return best if high is None else high
