"""How far above their goals agents should aim, so that one run satisfies all as often as asked.

Every agent aims z times its own noise above its goal, with one z for all; z is the least that
gives the probability asked for, or comes near the largest that there is a plan for. Who cannot
reach what it aims at, though it gives all it can, aims at what it does reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from fedaccord._checks import Vector
from fedaccord.errors import InputError
from fedaccord.games.learning_curve import accuracies_of, needs_of
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.bootstrap import settled
from fedaccord.planning.selection import Equilibria

# The first z tried after 0, how far z may go, and how finely it is told.
FIRST = 0.5
FARTHEST = 64.0
FINE = 0.005
# Where the probability asked for cannot be had, a plan that comes this near to the largest will do:
# the last hundredth may take all that everybody has.
NEAR = 0.01
# What sums of samples may be off by, relative to their value.
SLACK = 1e-9


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


def least_margin(
    game: MeasuredGame,
    noise: Vector,
    *,
    probability: float,
    aimed: Callable[[float, LinearGame], Aim | None],
) -> Aim | None:
    """Find the least z at which a plan satisfies all with a probability.

    Where none does, the least that comes near the largest probability that can be had. None where
    there is no plan even without a margin.

    game: with no margins.
    noise: how far single runs scatter, agent by agent.
    probability: what is asked.
    aimed: makes the plan of a z and its game; None where there is none.
    """

    @cache
    def at(z: float) -> Aim | None:
        try:
            aim = aimed(z, game.replace(margins=game.margins + z * noise) if z else game)
        except InputError:
            # Somebody would aim above what its curve reaches, or above an accuracy of one.
            aim = None
        lowered = game_at_limits(game, z * noise) if aim is None and z else None
        return aim if lowered is None else aimed(z, lowered)

    here = at(0.0)
    if here is None or not noise.any():
        return here
    found = _least(here, probability, at)
    return found if found.everyone >= probability else _least(here, found.everyone - NEAR, at)


def _least(here: Aim, probability: float, at: Callable[[float], Aim | None]) -> Aim:
    """Give the plan with the least z that has a probability; where none has, the likeliest seen.

    here: the plan without a margin.
    """
    if here.everyone >= probability:
        return here
    low, z = here, FIRST
    while z <= FARTHEST:
        there = at(z)
        if there is None or there.everyone >= probability:
            return _between(low, z, there, probability, at)
        low, z = (there if there.everyone > low.everyone else low), 2 * z
    return low


def game_at_limits(game: MeasuredGame, margins: Vector) -> MeasuredGame | None:
    """Give the game in which whoever gives all it can aims at what it reaches; None if below goals.

    Best response with limits comes to rest where some are short at their limits; that is an
    equilibrium once these aim at no more than they have there.

    game: with the margins it has without these.
    margins: by how much all would aim higher.
    """
    benefits, goals = game.dense_benefits, game.goals + game.margins
    needs = needs_of(game.rows, np.minimum(goals + margins, 1.0))
    if not (np.isfinite(needs) | np.isfinite(game.limits)).all():
        return None
    given = settled(benefits, needs, game.minimums, game.limits, game.minimums)
    if given is None:
        return None
    has = benefits @ given
    short = has < needs * (1 - SLACK)
    # A hair less, so that rounding leaves nobody short of what it has.
    reached = accuracies_of(game.rows, has * (1 - SLACK))
    above = np.where(short, reached - goals, margins)
    return None if (above < 0).any() else game.replace(margins=game.margins + above)


def _between(
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
