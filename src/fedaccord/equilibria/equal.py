"""The equal allocation of Theorem 1: envy-free, whatever the game."""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Vector
from fedaccord.games.base import Game


def level_allocation(game: Game, level: float) -> Vector:
    """Let everybody give the same, as far as limits and minimums allow."""
    return np.asarray(np.clip(np.full(game.size, level), game.minimums, game.limits))


def equal_allocation(game: Game) -> Vector | None:
    """Give the least equal contributions that satisfy everybody; None where none do.

    With limits and minimums everybody gives the level moved into its range: whoever then gives less
    than another cannot take the other's burden, or the other cannot take its.
    """
    if game.is_feasible(level_allocation(game, 0.0)):
        return level_allocation(game, 0.0)
    low, high = 0.0, float(np.ceil(game.alone[np.isfinite(game.alone)].max(initial=1.0)))
    while not game.is_feasible(level_allocation(game, high)):
        if (level_allocation(game, high) == level_allocation(game, 2 * high)).all():
            return None
        low, high = high, 2 * high
    # Two hundred halvings exhaust a double's digits.
    for _ in range(200):
        middle = float((low + high) // 2) if game.is_integer else (low + high) / 2
        if middle in (low, high):
            break
        enough = game.is_feasible(level_allocation(game, middle))
        low, high = (low, middle) if enough else (middle, high)
    return level_allocation(game, high)
