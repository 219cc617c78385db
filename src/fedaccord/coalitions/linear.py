"""Coalitions of a linear game: each follows its cheapest stable plan.

A stable plan of a coalition S is a set T of members that give more than their minimums, with

    (W theta)_i = mu_i for i in T,   theta_j = low_j and (W theta)_j >= mu_j for j in S \\ T

One inverse of W_TT serves every coalition that holds T, so all stable plans of all coalitions take
2^k inverses. Each coalition follows its cheapest plan; if several are cheapest, the most even
one (least sum of squares). If W_TT is singular, its most even plan is tried. If limits exclude that
plan, or may leave a cheaper one, the coalition is solved by itself.
"""

from __future__ import annotations

import numpy as np

from fedaccord._checks import Indices, Matrix
from fedaccord.coalitions.table import CoalitionTable, list_members, name_burden
from fedaccord.equilibria.solve import solve_stable
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame

# Requirements are met, and contributions in their range, up to this part.
MET = 1e-9
# Totals that differ by less than this part are the same.
SAME = 1e-9
# Benefits of a set of agents are singular from this condition on.
SINGULAR = 1e12


def check_linear(game: Game) -> LinearGame:
    """Return a linear game over the reals, or raise an InputError."""
    if not isinstance(game, LinearGame):
        raise InputError(
            f"coalitions need a linear or a measured game; this is a {game.model} game: give a "
            "table of costs, or measure it with pilots"
        )
    return game.replace(strategies="real") if game.is_integer else game


def tabulate_stable_plans(game: Game) -> CoalitionTable:
    """Return what each agent's samples cost it in each coalition's cheapest stable plan.

    game: linear or measured, of up to 12 agents.
    """
    linear = check_linear(game)
    return CoalitionTable(find_stable_costs(linear), linear.agents, what=name_burden(linear))


def find_stable_costs(game: LinearGame) -> Matrix:
    """Return the costs of all coalitions of a game, 2^k x k; infinite where none is stable."""
    size = game.size
    plans = _Plans(game)
    for givers in range(1 << size):
        plans.try_givers(givers)
    for coalition in np.flatnonzero(plans.unsure).tolist():
        plans.solve(coalition)
    return np.where(np.isfinite(plans.totals)[:, None], plans.given * game.costs, np.inf)


class _Plans:
    """The best stable plan of each coalition so far.

    totals, squares: what it costs, and the sum of its squares.
    given: what each agent gives.
    unsure: whether limits may have hidden a better one.
    """

    def __init__(self, game: LinearGame) -> None:
        self.game = game
        count = 1 << game.size
        self.totals, self.squares = np.full(count, np.inf), np.full(count, np.inf)
        self.totals[0] = 0.0
        self.given = np.zeros((count, game.size))
        self.unsure = np.zeros(count, dtype=bool)

    def try_givers(self, givers: int) -> None:
        """Try a set of agents that give more than their minimums, in all coalitions of theirs."""
        game, size = self.game, self.game.size
        inside = np.flatnonzero(givers >> np.arange(size) & 1)
        outside = np.flatnonzero(~givers >> np.arange(size) & 1)
        idle = (np.arange(1 << len(outside))[:, None] >> np.arange(len(outside)) & 1) == 1
        benefits, needs = game.dense_benefits, game.requirements
        least = idle * game.minimums[outside]
        right = needs[inside] - least @ benefits[np.ix_(inside, outside)].T
        given, free = self._meet(inside, right)
        has = given @ benefits[np.ix_(outside, inside)].T
        has += least @ benefits[np.ix_(outside, outside)].T
        spare = MET * np.maximum(needs[outside], 1e-300)
        fits = ((has >= needs[outside] - spare) | ~idle).all(axis=1)
        low, high = game.minimums[inside], game.limits[inside]
        room = MET * np.abs(given).max(axis=1, initial=0.0)[:, None]
        within = ((given >= low - room) & (given <= high + room)).all(axis=1)
        fits &= within
        coalitions = givers + (idle @ (1 << outside) if len(outside) else np.zeros(1, dtype=int))
        if len(free) and (high < game.alone[inside]).any():
            costs = game.costs[inside]
            differ = bool((np.abs(free @ costs) > SAME * costs.max()).any())
            self.unsure[coalitions] |= (differ | ~within) & np.isfinite(given).all(axis=1)
        plans = np.zeros((len(idle), size))
        plans[:, inside], plans[:, outside] = np.maximum(given, low), least
        self._keep(coalitions[fits], plans[fits])

    def solve(self, coalition: int) -> None:
        """Solve for the cheapest stable plan of one coalition."""
        members = [*list_members(coalition)]
        found = solve_stable(self.game.restrict(members)).contributions
        if found is not None:
            plan = np.zeros((1, self.game.size))
            plan[:, members] = found
            self._keep(np.array([coalition]), plan)

    def _meet(self, inside: Indices, right: Matrix) -> tuple[Matrix, Matrix]:
        """Return contributions that meet requirements exactly, the most even of several.

        And the directions in which they can change and still do.
        """
        if not len(inside):
            return np.zeros((len(right), 0)), np.zeros((0, 0))
        block = self.game.dense_benefits[np.ix_(inside, inside)]
        # Rows in units of own benefits, so that units do not look like singularity.
        scale = np.diag(block)
        block, right = block / scale[:, None], right / scale
        _, sizes, directions = np.linalg.svd(block)
        if sizes[0] < SINGULAR * sizes[-1]:
            return np.asarray(np.linalg.solve(block, right.T).T), directions[:0]
        found = np.array(np.linalg.lstsq(block, right.T, rcond=1e-11)[0].T, dtype=np.float64)
        wrong = np.abs(found @ block.T - right).max(axis=1)
        found[wrong > MET * np.abs(right).max(axis=1)] = np.nan
        return found, directions[sizes <= 1e-11 * sizes[0]]

    def _keep(self, coalitions: Indices, plans: Matrix) -> None:
        totals, squares = plans @ self.game.costs, (plans**2).sum(axis=1)
        before = self.totals[coalitions]
        with np.errstate(invalid="ignore"):
            tie = np.abs(totals - before) <= SAME * np.abs(before)
        better = (totals < before) & ~tie
        better |= tie & (squares < self.squares[coalitions] * (1 - SAME))
        chosen = coalitions[better]
        self.totals[chosen], self.squares[chosen] = totals[better], squares[better]
        self.given[chosen] = plans[better]
