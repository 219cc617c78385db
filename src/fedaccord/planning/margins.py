"""The safety margin of a plan: how far above its goal each agent's target is.

So that one run satisfies all agents as often as asked, every agent's target is z times its own
noise above its goal, with one z for all; z is the least that has the probability asked for, or
comes near the largest probability that any plan has. An agent that cannot reach its target, though
it gives all it can, has what it does reach for a target.

A probability over a few hundred worlds has an error of its own: another seed, or another order of
the rows, could move the margin and with it the total (`Reseeded`). The plans that the search went
through tell what a probability costs near the requested one, so no further plan has to be made.
Where samples run out, a small error of the probability is a large one of the total.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from fedaccord._checks import Vector
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, find_needs, predict_accuracies
from fedaccord.measurement.posterior import count_chains
from fedaccord.planning.selection import MOST_AGENTS, Equilibria, settle_within
from fedaccord.wording import count_whole

# Which z are tried after 0; which of them between these where there is no plan at any of these,
# since plans may begin and end there; and how finely z is told.
DOUBLES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
BETWEEN = tuple(part * z for z in DOUBLES for part in (0.625, 0.75, 0.875))
FINE = 0.005
# Where the probability asked for cannot be had, a plan that comes this near to the largest will do:
# the last hundredth may take all that everybody has.
NEAR = 0.01
# What sums of samples may be off by, relative to their value: less than what equilibria may be off
# by, or a goal lowered by this would leave none that is exact.
SLACK = 1e-11
# Two runs differ by less than this many standard errors of one of them, with 95 %.
APART = 2 * math.sqrt(2)
# Probabilities are compared on a scale on which certainty is far away, but not infinitely.
SUREST = 1 - 1e-9
# A change of the total by more than this part of it is a reason to doubt the plan; and where an
# agent gives its limit, since totals of other seeds were seen to change by three times as much.
MUCH, MUCH_AT_LIMITS = 0.1, 0.03


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


class MarginSearch:
    """Plans for one game, by margin: each z is planned for once, whatever is asked.

    game: with no margins.
    noise: how far single runs scatter, agent by agent.
    aim_at: makes the plan of a z and its game; None where there is none.
    """

    def __init__(
        self, game: MeasuredGame, noise: Vector, aim_at: Callable[[float, LinearGame], Aim | None]
    ) -> None:
        self.game = game
        self.noise = noise
        self._aim_at = aim_at
        self._seen: dict[float, Aim | None] = {}

    def at(self, z: float) -> Aim | None:
        """Return the plan with a margin of z times the noise; None where there is none."""
        if z not in self._seen:
            self._seen[z] = self._make(z)
        return self._seen[z]

    @property
    def seen(self) -> tuple[Aim, ...]:
        """The plans of all margins that were tried."""
        return tuple(aim for aim in self._seen.values() if aim is not None)

    def _make(self, z: float) -> Aim | None:
        margins = z * self.noise
        try:
            game = self.game.replace(margins=self.game.margins + margins) if z else self.game
            aim = self._aim_at(z, game)
        except InputError:
            # A target is above what the agent's curve reaches, or above an accuracy of one.
            aim = None
        lowered = lower_to_limits(self.game, margins) if aim is None else None
        return aim if lowered is None else self._aim_at(z, lowered)

    def find(self, probability: float) -> Aim | None:
        """Return the plan with the least z at which all agents are satisfied with a probability.

        Where none has it, the least z that comes near the largest probability that any plan has.
        None where there is no plan with any margin. Under limits there may be one though there is
        none without a margin: the others then give more, and an agent at its limit needs less.
        """
        if not self.noise.any():
            return self.at(0.0)
        found = self._search_up(probability)
        if found is None or found.everyone >= probability:
            return found
        return self._search_up(found.everyone - NEAR)

    def _search_up(self, probability: float) -> Aim | None:
        """Return the plan with the least z that has a probability, or the likeliest seen."""
        start, best = 0.0, None
        for z in self._steps:
            there = self.at(z)
            if there is not None and there.everyone >= probability:
                return self._bisect(start, best, z, there, probability)
            if there is None:
                return self._bisect(start, best, z, None, probability)
            if best is None or there.everyone > best.everyone:
                start, best = z, there
        return best

    @cached_property
    def _steps(self) -> tuple[float, ...]:
        """The steps of z, from the first that was found to have a plan; none where none has."""
        if self.at(0.0) is not None:
            return (0.0, *DOUBLES)
        small = self.game.size <= MOST_AGENTS
        # In a large game it takes long to find that there is no plan: best response has to hint.
        tried = (
            z
            for z in (*DOUBLES, *(BETWEEN if small else ()))
            if small or lower_to_limits(self.game, z * self.noise) is not None
        )
        first = next((z for z in tried if self.at(z) is not None), None)
        return () if first is None else (first, *(z for z in DOUBLES if z > first))

    def _bisect(
        self, start: float, best: Aim | None, z: float, high: Aim | None, probability: float
    ) -> Aim | None:
        """Halve the distance between too little and enough, or too much for there to be a plan."""
        while z - start > FINE:
            middle = (start + z) / 2
            there = self.at(middle)
            if there is not None and there.everyone >= probability:
                z, high = middle, there
            elif there is None and high is None:
                z = middle
            else:
                start = middle
                if there is not None and (best is None or there.everyone >= best.everyone):
                    best = there
        return best if high is None else high


def lower_to_limits(game: MeasuredGame, margins: Vector) -> MeasuredGame | None:
    """Return the game in which agents at their limits target what they reach; None if below goals.

    Best response with limits comes to rest where some agents are short at their limits. That is an
    equilibrium once the target of these is no more than they have there. An agent that has nothing
    to give cannot defect: its target may be below its goal, and how likely it is to reach the goal
    decides, as for all, which margin is enough.

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
    # Others have what they need, but for what best response may be off by.
    short = (benefits @ given < needs * (1 - SLACK)) & (given >= game.limits * (1 - SLACK))
    # A hair less, so that rounding neither takes anybody above its limit nor leaves it short.
    limits = np.where(short, np.maximum(game.limits * (1 - SLACK), game.minimums), game.limits)
    rest = settle_within(benefits, needs, game.minimums, limits, given)
    has = benefits @ (given if rest is None else rest)
    reached = predict_accuracies(game.rows, np.where(limits < game.limits, has, has * (1 - SLACK)))
    above = np.where(short, reached - goals, margins)
    below = (above < 0) & (game.limits > 0)
    return None if below.any() else game.replace(margins=game.margins + above)


@dataclass(frozen=True)
class Reseeded:
    """What the total of a plan could be with another seed, or another order of the rows.

    low, high: its ends, in samples; high is None if no plan was found that is as sure as it takes.
    total: of the plan.
    away: by how much the probability of the same contributions could change.
    at_limits: whether an agent gives its limit, so that the others may have to give still more.
    """

    low: float
    high: float | None
    total: float
    away: float
    at_limits: bool = False

    @property
    def change(self) -> float:
        """By how many samples the total could change, if there is a plan at all."""
        more = 0.0 if self.high is None else self.high - self.total
        return max(more, self.total - self.low)

    @property
    def is_much(self) -> bool:
        """Whether the total could change by so much that nobody should sign unaware of it."""
        most = MUCH_AT_LIMITS if self.at_limits else MUCH
        return self.high is None or self.change > most * self.total

    def describe(self, probability: str) -> str:
        """Return in a sentence by how much the total could change.

        probability: the requested one, as it is written.
        """
        digits = 1 - math.floor(math.log10(max(self.change, 1.0)))
        number = count_whole(round(max(self.change, 1.0), min(digits, 0)), "sample")
        number = f"{number} or more" if self.at_limits else f"about {number}"
        said = (
            f"The total could change by {number} with another random seed or another order of the "
            "rows."
        )
        if self.high is None:
            said += f" There may even be no plan with probability {probability}."
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the ends for machines."""
        return {"low": self.low, "high": self.high, "probability_change": self.away}


def reseed_total(chosen: Aim, seen: Sequence[Aim], worlds: Vector) -> Reseeded:
    """Return what the total could be with another seed.

    chosen: the plan.
    seen: plans for other margins.
    worlds: the probability that all agents reach their goals with the plan, in each world.
    """
    total = float(chosen.contributions.sum())
    order = sorted(seen, key=lambda aim: aim.everyone)
    known = np.array([aim.everyone for aim in order])
    costs = np.array([aim.contributions.sum() for aim in order])
    # What a probability costs at least: a surer plan that is cheaper will do as well.
    costs = np.minimum.accumulate(costs[::-1])[::-1]
    away = APART * find_error(worlds)

    def price(probability: float) -> float:
        ends = ndtri(np.minimum((probability, *known), SUREST))
        return float(np.interp(ends[0], ends[1:], costs))

    times = total / max(price(chosen.everyone), 1.0)
    low = times * price(max(chosen.everyone - away, known[0]))
    surer = find_surer(chosen, worlds)
    high = None if surer > known[-1] else times * price(surer)
    full = bool((chosen.contributions >= chosen.game.limits)[chosen.contributions > 0].any())
    high = None if high is None else max(high, total)
    return Reseeded(min(low, total), high, total, away, full)


def find_surer(chosen: Aim, worlds: Vector) -> float:
    """Return the probability that a plan must have so that with another seed it is sure enough.

    chosen: the plan.
    worlds: the probability that all agents reach their goals with the plan, in each world.
    """
    # Near certainty an error of the same size would leave no room: three quarters of it at most.
    return min(chosen.everyone + APART * find_error(worlds), 1 - (1 - chosen.everyone) / 4)


def find_error(worlds: Vector) -> float:
    """Return the standard error of a mean over worlds; those of one Markov chain are alike."""
    error = float(worlds.std() / np.sqrt(len(worlds)))
    number = count_chains(len(worlds))
    rounds = len(worlds) // number
    if rounds < 2:
        return error
    # Each round has one world of every chain.
    chains = worlds[: rounds * number].reshape(rounds, number).mean(axis=0)
    return max(error, float(chains.std(ddof=1) / np.sqrt(number)))
