"""How likely agents are to reach their goals, over what curves may be, and how a run turns out.

Each resample of a fit is a world that may be the true one, all of them equally likely; in it

    P(i reaches its goal) = Phi((a_i(theta) - mu_i) / s_i)

with a_i the accuracy that the curve promises and s_i the scatter of single runs round it: of their
true accuracies, or of what is measured on the agent's validation points. Training scatters less
with more samples, at the rate that the pilots show. Runs scatter
independently from agent to agent; where they go up and down together, all agents reach their goals
together more often than is said here. Where some pilots failed altogether, as training that
diverges does, one more run fails as often, and no agent reaches its goal then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from fedaccord._checks import Indices, Matrix, Vector, as_numbers, frozen, is_real
from fedaccord.errors import InputError
from fedaccord.games.measured import PARTS, find_needs, predict_accuracies

# By what a run is judged: its true accuracy, or one measurement of it.
Judged: TypeAlias = Literal["true", "measured"]

# What intervals leave out on either side: they hold what they are about with 95 %.
TAIL = 0.025
# Single runs drawn from each resample, for the spread of their accuracies.
RUNS = 20
TINY = 1e-12
# The parts of its contribution that an agent might cut to.
LEVELS = (0.75, 0.5, 0.25)
# The form in which GAME.json holds chances. A reader refuses a form that it does not know.
VERSION = 1


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


@dataclass(frozen=True)
class Fading:
    """How training scatters less in runs with more samples: its variance is ~ samples ** -rate.

    rate: 0 where all runs scatter alike; 1 where they do as the mean of their samples does.
    usual: the number of samples at which runs scatter as the fit says.
    largest: of the pilots; nothing is known of larger runs, so that they scatter as this one.
    """

    rate: float = 0.0
    usual: float = 1.0
    largest: float = 1.0

    def scale(self, sizes: ArrayLike) -> Vector:
        """Return how many times as far runs of these sizes scatter as the fit says."""
        within = np.clip(sizes, 1.0, max(self.largest, 1.0))
        return np.asarray((self.usual / within) ** (self.rate / 2))

    @classmethod
    def from_dict(cls, data: Any) -> Fading:
        """Read what GAME.json holds of it; without that, all runs scatter alike."""
        if data is None:
            return cls()
        names = [field.name for field in dataclasses.fields(cls)]
        values: list[Any] = [data.get(n) for n in names] if isinstance(data, Mapping) else []
        if len(values) != 3 or not all(is_real(v) and 0 <= v < np.inf for v in values):
            raise InputError(
                f'"fading" in "chances" must have {", ".join(names)}, numbers of 0 or more'
            )
        rate, usual, largest = map(float, values)
        if rate > 1 or usual <= 0:
            raise InputError(
                '"fading" in "chances" must have a rate of 1 at most, and usual above 0'
            )
        return cls(rate, usual, largest)


class Fitted(Protocol):
    """What `Chances.of` reads of a Measurement."""

    @property
    def goals(self) -> Vector:
        """The accuracy each agent wants."""

    @property
    def measurement_noise(self) -> Vector:
        """What measuring adds to the scatter of a run, agent by agent."""

    @property
    def resamples(self) -> Any:
        """What may be true, given the pilots: training, benefits and curves."""

    @property
    def table(self) -> Any:
        """The pilots, of which a part may have failed."""

    @property
    def fading(self) -> Fading:
        """How runs with more samples scatter less."""


@dataclass(frozen=True, eq=False)
class Chances:
    """What may be true of a federation, for as many worlds as there are resamples.

    goals: the accuracy each agent wants.
    training: how far the true accuracies of runs of the usual size scatter round the curve in each
        world, standard deviations, B x k.
    benefits: W of each world, B x k x k.
    curves: the parameters of each agent's curve in each world, B x k x 4.
    finishing: the part of all runs in which training comes to an end that can be measured.
    measuring: how much scatter measuring an accuracy adds, standard deviations, (k,).
    judged: whether a run is judged by its true accuracy, or as measured once.
    probability: that all agents reach their goals, as the game's margins were chosen for; None
        where they were not chosen for one.
    doubts: what speaks against trusting the fit, a sentence each, where that is kept.
    fading: how runs with more samples scatter less.
    """

    goals: Vector
    training: Matrix
    benefits: Matrix
    curves: Matrix
    finishing: float = 1.0
    measuring: Vector | float = 0.0
    judged: Judged = "true"
    probability: float | None = None
    doubts: tuple[str, ...] = ()
    fading: Fading = Fading()

    @classmethod
    def of(cls, measurement: Fitted, judged: Judged = "true") -> Chances:
        """Take the resamples of a fit.

        measurement: the fit.
        judged: whether a run is judged by its true accuracy, or as measured once.
        """
        drawn = measurement.resamples
        return cls(
            goals=measurement.goals,
            training=drawn.training,
            benefits=drawn.benefits,
            curves=drawn.curves,
            finishing=measurement.table.finishing,
            measuring=measurement.measurement_noise,
            judged=judged,
            fading=measurement.fading,
        )

    def __len__(self) -> int:
        return len(self.training)

    def noise(self, sizes: ArrayLike) -> Matrix:
        """Return how far single runs scatter round the curve in each world, as judged, B x k.

        sizes: how many samples all agents give, in the run that each agent is judged by.
        """
        training = self.training * self.fading.scale(sizes)
        return np.hypot(training, self.measuring if self.judged == "measured" else 0.0)

    def replace(self, **changes: Any) -> Chances:
        """Return the same worlds with other goals, or judged in another way."""
        return dataclasses.replace(self, **changes)

    def restrict(self, keep: Indices) -> Chances:
        """Return the same worlds with some of the agents, the others gone with their data."""
        measuring = np.broadcast_to(self.measuring, self.goals.shape)
        return self.replace(
            goals=self.goals[keep],
            training=self.training[:, keep],
            benefits=self.benefits[:, keep][:, :, keep],
            curves=self.curves[:, keep],
            measuring=measuring[keep],
        )

    def needs(self, margins: Vector) -> Matrix:
        """Return the effective samples that goals and margins take in each world, B x k."""
        return find_needs(self.curves, self.goals + margins)

    def accuracies(self, contributions: Vector) -> Matrix:
        """Return the accuracy that each agent's curve promises in each world, B x k."""
        return predict_accuracies(self.curves, self.benefits @ contributions)

    def satisfied(self, contributions: Vector) -> Matrix:
        """Return the probability that each agent is satisfied in one run, in each world."""
        return self.finishing * self._reached(contributions)

    def everyone(self, contributions: Vector) -> Vector:
        """Return the probability that all are satisfied in one run, in each world."""
        return self.finishing * np.asarray(self._reached(contributions).prod(axis=1))

    def _reached(self, contributions: Vector) -> Matrix:
        """Return the probability that each reaches its goal in a run that ends, in each world."""
        ahead = self.accuracies(contributions) - self.goals
        return _chance_above(ahead, self.noise(np.sum(contributions)))

    def could_cut(self, contributions: Vector, level: float) -> Vector:
        """Return the probability that an agent is satisfied after a cut that nobody else makes.

        contributions: what everybody gives but for the cut.
        level: the part that the agent gives of its own.
        """
        own = self.benefits.diagonal(axis1=1, axis2=2)
        cut = (1 - level) * contributions
        left = self.benefits @ contributions - own * cut
        ahead = predict_accuracies(self.curves, left) - self.goals
        reached = _chance_above(ahead, self.noise(np.sum(contributions) - cut))
        return frozen((self.finishing * reached).mean(axis=0))

    def others_reach(self, contributions: Vector, level: float) -> Vector:
        """Return the probability that all other agents are satisfied, for each agent that cuts.

        contributions: what everybody gives but for the cut.
        level: the part that the agent that cuts gives of its own.
        """
        found = np.empty(len(contributions))
        for agent in range(len(contributions)):
            given = np.array(contributions, dtype=float)
            given[agent] *= level
            others = np.delete(self._reached(given), agent, axis=1).prod(axis=1)
            found[agent] = self.finishing * others.mean()
        return frozen(found)

    def runs(self, contributions: Vector, rng: np.random.Generator) -> Matrix:
        """Draw the accuracies of single runs, a row each, some in every world."""
        promised = np.repeat(self.accuracies(contributions), RUNS, axis=0)
        scatter = np.repeat(self.noise(np.sum(contributions)), RUNS, axis=0)
        drawn = promised + scatter * rng.standard_normal(promised.shape)
        return np.clip(drawn, 0.0, 1.0)

    def prospects(self, contributions: Vector) -> Prospects:
        """Return how likely agents are to reach their goals with these contributions."""
        return Prospects(self, contributions)

    # In GAME.json, whose goals they share.

    def to_dict(self) -> dict[str, Any]:
        """Return the worlds as GAME.json holds them, with every digit."""
        size = len(self.goals)
        return {
            "version": VERSION,
            "judged": self.judged,
            "finishing": self.finishing,
            **({} if self.probability is None else {"probability": self.probability}),
            **({"doubts": list(self.doubts)} if self.doubts else {}),
            **({"fading": dataclasses.asdict(self.fading)} if self.fading.rate else {}),
            "measuring": np.broadcast_to(self.measuring, (size,)).tolist(),
            "training": self.training.tolist(),
            "curves": self.curves.reshape(len(self), -1).tolist(),
            "benefits": self.benefits.reshape(len(self), -1).tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], goals: ArrayLike) -> Chances:
        """Read the worlds of GAME.json.

        data: what `to_dict` gave.
        goals: those of the game.
        """
        if data.get("version") != VERSION:
            raise InputError(
                f'"chances" must be an object of version {VERSION}; write the game again with '
                "'fedaccord plan --save-game', or leave \"chances\" out"
            )
        wanted = as_numbers(goals, "goals")
        size = len(wanted)
        training = _read_rows(data, "training", size)
        worlds = len(training)
        curves = _read_rows(data, "curves", size * len(PARTS), worlds)
        benefits = _read_rows(data, "benefits", size * size, worlds)
        doubts = data.get("doubts", [])
        if not isinstance(doubts, list) or not all(isinstance(one, str) for one in doubts):
            raise InputError('"doubts" in "chances" must be a list of sentences')
        if data.get("judged") not in get_args(Judged):
            raise InputError('"judged" in "chances" must be "true" or "measured"')
        return cls(
            goals=wanted,
            training=frozen(training),
            benefits=frozen(benefits.reshape(worlds, size, size)),
            curves=frozen(curves.reshape(worlds, size, len(PARTS))),
            finishing=_read_share(data, "finishing"),
            measuring=frozen(_read_rows({"measuring": [data.get("measuring")]}, "measuring", size))[
                0
            ],
            judged=data["judged"],
            probability=_read_share(data, "probability") if "probability" in data else None,
            doubts=tuple(doubts),
            fading=Fading.from_dict(data.get("fading")),
        )


@dataclass(frozen=True, eq=False)
class Prospects:
    """How likely agents are to reach their goals with some contributions.

    chances: what may be true.
    contributions: what each agent gives.
    """

    chances: Chances
    contributions: Vector

    @cached_property
    def everyone(self) -> Estimate:
        """The probability that all agents reach their goals in one run."""
        drawn = self.chances.everyone(self.contributions)
        return spread_of(float(drawn.mean()), drawn)

    @cached_property
    def satisfied(self) -> Vector:
        """The probability that each agent reaches its goal in one run."""
        return frozen(self.chances.satisfied(self.contributions).mean(axis=0))

    @cached_property
    def defection(self) -> dict[float, Vector]:
        """By level, the probability that each reaches its goal if it alone gives that part."""
        return {level: self.chances.could_cut(self.contributions, level) for level in LEVELS}

    @property
    def weakest(self) -> int:
        """The agent that is least likely to reach its goal."""
        return int(np.argmin(self.satisfied))


def _read_share(data: Mapping[str, Any], name: str) -> float:
    value: Any = data.get(name)
    if not is_real(value) or not 0 <= value <= 1:
        raise InputError(f'"{name}" in "chances" must be a number from 0 to 1')
    return float(value)


def _read_rows(data: Mapping[str, Any], name: str, columns: int, rows: int | None = None) -> Matrix:
    """Return a list of rows in "chances" as an array, or say what is wrong with it."""
    given: Any = data.get(name)
    if isinstance(given, list) and all(isinstance(row, list) for row in given):
        number = len(given) if rows is None else rows
        lengths = {len(row) for row in given}
        if number and len(given) == number and lengths == {columns}:
            values = as_numbers(given, f'"{name}" in "chances"')
            if (np.isfinite(values) & (values >= 0)).all():
                return values
    many = "rows" if rows is None else f"{rows} rows"
    raise InputError(
        f'"{name}" in "chances" must have {many} of {columns} numbers that are 0 or more: write '
        "the game again with 'fedaccord plan --save-game'"
    )


def _chance_above(ahead: Matrix, noise: Matrix) -> Matrix:
    """Return the probability that normal noise leaves a lead at zero or more."""
    certain = (ahead >= -TINY).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(noise > 0, ndtr(ahead / noise), certain)
