"""Whole samples: a plan over the reals, as agents can carry it out."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fedaccord._checks import TIDY, Vector, round_bounds, round_wide_bounds
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.equilibria.result import SolvedGame
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame

# Up to this many agents a plan is settled in whole numbers; of more it is rounded up.
MOST_SETTLED = 200


def has_whole_samples(game: Game) -> bool:
    """Return whether agents give whole samples: pilots count them, or the game says so."""
    return game.is_integer or isinstance(game, MeasuredGame)


def has_whole_bounds(game: Game) -> bool:
    """Return whether all limits and minimums are whole numbers, or none."""
    bounds = np.concatenate([game.minimums, game.limits])
    return bool((np.isinf(bounds) | (bounds == np.floor(bounds))).all())


def round_up(given: Vector) -> Vector:
    """Return contributions rounded up to whole samples."""
    return np.asarray(np.ceil(np.minimum(given - TIDY, given * (1 - TIDY / 1e3))) + 0.0)


def round_box(game: LinearGame) -> LinearGame:
    """Return the game over the reals, with limits and minimums in whole samples.

    An agent that is held to a part of a sample, between two whole numbers, keeps its bounds.
    """
    minimums, limits = round_wide_bounds(game.minimums, game.limits)
    changed = (limits != game.limits).any() or (minimums != game.minimums).any()
    if not changed and not game.is_integer:
        return game
    return game.replace(limits=limits, minimums=minimums, strategies="real")


def round_plan(game: LinearGame, given: Vector) -> Vector:
    """Return a plan in whole samples: rounded up, then nobody gives one more than it needs.

    No agent gives less than its contribution rounded down, so that agents that give for others
    still do.

    game: linear.
    given: the plan over the reals.
    """
    up = np.minimum(round_up(given), game.limits)
    low = np.minimum(np.maximum(np.floor(given + TIDY), game.minimums), up)
    return _settle(game.replace(minimums=low, limits=up), up)


def round_equilibrium(game: LinearGame, given: Vector) -> Vector:
    """Return an equilibrium in whole samples: rounded up, then a best response of each agent.

    game: over the reals, its limits whole.
    given: an equilibrium.
    """
    return _settle(game, np.minimum(np.maximum(round_up(given), game.minimums), game.limits))


def is_whole_equilibrium(game: LinearGame, given: Vector) -> bool:
    """Return whether no agent could give even one sample less, or needs one more."""
    if game.size > MOST_SETTLED or not has_whole_bounds(game):
        return False
    integer = game.replace(strategies="integer")
    wanted = np.maximum(integer.best_responses(given), integer.minimums)
    return bool((wanted == given).all())


def solve_whole(game: Game, *, concepts: Collection[str], time_limit: float) -> SolvedGame:
    """Solve a game in whole samples; over the reals where a plan in whole samples is not found.

    game: over the reals.
    concepts: which of optimal, stable and envy-free.
    time_limit: the most seconds for each.
    """
    # Solvers bring much along, which rounding does without.
    from fedaccord.equilibria.solve import solve_all

    minimums, limits = round_bounds(game.minimums, game.limits)
    if (minimums <= limits).all():
        whole = game.replace(strategies="integer", limits=limits, minimums=minimums)
        found = solve_all(whole, concepts=concepts, time_limit=time_limit)
        if set(found.checks) == set(found.solutions):
            return found
    return solve_all(game, concepts=concepts, time_limit=time_limit)


def _settle(game: LinearGame, start: Vector) -> Vector:
    """Return the best responses in whole samples, or the start where they do not settle."""
    if game.size > MOST_SETTLED or not has_whole_bounds(game):
        return start
    integer = game.replace(strategies="integer")
    path = best_response_dynamics(integer, start=start, order="sequential", max_rounds=100)
    settled: Vector = np.array(path.contributions[-1])
    return settled if path.ending is Ending.CONVERGED and integer.is_feasible(settled) else start
