"""How far above their goals agents should aim, so that one run satisfies all as often as asked.

Every agent aims z times its own noise above its goal, with one z for all; z is the least that
gives the probability asked for, or the largest for which there is a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedaccord._arrays import Vector
from fedaccord.errors import UnreachableError
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.choosing import Equilibria

# The first z tried after 0, how far z may go, and how finely it is told.
FIRST = 0.5
FARTHEST = 64.0
FINE = 0.005


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
    """Find the least z at which a plan satisfies all with a probability; the best where none does.

    None where there is no plan even without a margin.

    game: with no margins.
    noise: how far single runs scatter, agent by agent.
    probability: what is asked.
    aimed: makes the plan of a z and its game; None where there is none.
    """

    def at(z: float) -> Aim | None:
        margins = game.margins + z * noise
        if (game.goals + margins >= 1).any():
            return None
        try:
            return aimed(z, game.replace(margins=margins) if z else game)
        except UnreachableError:
            return None

    here = at(0.0)
    if here is None or here.everyone >= probability or not noise.any():
        return here
    low, z = here, FIRST
    while z <= FARTHEST:
        there = at(z)
        if there is None or there.everyone >= probability:
            return _between(low, z, there, probability, at)
        low, z = (there if there.everyone > low.everyone else low), 2 * z
    return low


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
