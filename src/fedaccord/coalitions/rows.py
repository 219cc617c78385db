"""Coalitions of a game whose agents have several goals, or harm each other.

Samples can harm, so the plan of all agents need not be the one that every agent prefers.
"""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Vector
from fedaccord.coalitions.table import (
    MOST_AGENTS,
    CoalitionTable,
    Members,
    name_burden,
    tabulate_coalitions,
)
from fedaccord.equilibria.programs import linear_program
from fedaccord.equilibria.solve import solve_stable
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.rows import RowGame


def tabulate_goal_plans(game: RowGame) -> CoalitionTable:
    """Return what each agent's samples cost it in each coalition's cheapest stable plan.

    game: over the reals, of up to 12 agents.
    """

    def find(members: Members) -> Vector:
        given = solve_stable(game.restrict([*members])).contributions
        costs = game.costs[[*members]]
        return np.full(len(members), np.inf) if given is None else np.asarray(costs * given)

    _check_size(game)
    return tabulate_coalitions(game.size, find, agents=game.agents, what=name_burden(game))


def tabulate_cheapest_plans(game: Game) -> CoalitionTable:
    """Return what each agent's samples cost it in each coalition's cheapest plan.

    game: linear, or of several goals, over the reals, of up to 12 agents.
    """
    costs = CheapestCosts(game)
    _check_size(game)
    return tabulate_coalitions(game.size, costs.find, agents=game.agents, what=name_burden(game))


class CheapestCosts:
    """What members of a coalition give in its cheapest plan; each plan is solved once.

        minimise  c' theta   subject to the goals of the members,  low <= theta <= high

    game: linear, or of several goals, over the reals.
    """

    def __init__(self, game: Game) -> None:
        if isinstance(game, RowGame):
            rows, self.needs, self.owners = game.rows, game.needs, game.owners
        elif isinstance(game, LinearGame):
            rows, self.needs = game.dense_benefits, game.requirements
            self.owners = np.arange(game.size)
        else:
            raise InputError(
                f"cheapest plans of coalitions need linear goals; got a {game.model} game"
            )
        # In units of own samples, so that rows compare.
        own = rows[np.arange(len(self.owners)), self.owners]
        self.rows, self.needs = rows / own[:, None], self.needs / own
        self.game = game
        self.known: dict[Members, Vector] = {}

    def find(self, members: Members) -> Vector:
        """Return the cost of each member; infinite where no plan reaches their goals."""
        if members not in self.known:
            self.known[members] = self._solve([*members])
        return self.known[members]

    def _solve(self, chosen: list[int]) -> Vector:
        game, inside = self.game, np.isin(self.owners, chosen)
        costs, rows = game.costs[chosen], self.rows[inside][:, chosen]
        low, high = game.minimums[chosen], game.limits[chosen]
        found = linear_program(costs, low, high, rows=-rows, most=-self.needs[inside])
        return np.full(len(chosen), np.inf) if found.x is None else np.maximum(costs * found.x, 0.0)


def _check_size(game: Game) -> None:
    if game.size > MOST_AGENTS:
        raise InputError(
            f"coalitions with several goals or harm are found for up to {MOST_AGENTS} agents; this "
            f"game has {game.size}: merge agents that are alike"
        )
