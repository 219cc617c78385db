"""Prices that make the cheapest plan hold: the duals of LP 1, and the proof that they are.

    maximise  mu'y + sum_j min over low_j <= t <= high_j of (c - W'y)_j t     over  y >= 0

Agent i is charged y_i for each unit of its requirement, and paid (W'y)_i for each sample it gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fedaccord._checks import Vector, exact_numbers, frozen, simplest_fraction
from fedaccord.equilibria.confirm import program_of
from fedaccord.equilibria.linear.optimal import dual_bound
from fedaccord.equilibria.programs import Corner, to_floats
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.solve import solve_optimal
from fedaccord.equilibria.whole import has_whole_samples, round_plan
from fedaccord.errors import InputError, UnsolvedError
from fedaccord.games.linear import LinearGame
from fedaccord.games.rows import RowGame
from fedaccord.sharing.costs import GroupCosts

# Up to this many agents prices are found and proved in fractions.
EXACT_AGENTS = 12
# Numbers that come to more bits than this are left to doubles.
LONG = 3_000


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of requirements, and the plan that they make hold.

    game: linear, or of several goals.
    contributions: the plan.
    requirements: y, what one more unit of each requirement adds to the cost; of an agent with
        several goals, what all of them add, per unit of its requirement.
    samples: W'y, what each agent is paid for one of its samples.
    charges: what the prices make each agent bear in all; the sum is a lower bound on every plan's
        cost.
    exact: whether it is proved in fractions that charges add up to what the plan costs, and that no
        group bears more than it would cost alone.
    """

    game: LinearGame | RowGame
    contributions: Vector
    requirements: Vector
    samples: Vector
    charges: Vector
    exact: bool

    @property
    def total(self) -> float:
        """What the plan costs."""
        return self.game.total(self.contributions)

    @property
    def hold(self) -> bool:
        """Whether prices alone prove that no group would leave: with harm they do not."""
        return not isinstance(self.game, RowGame) or self.game.is_monotone

    @property
    def gap(self) -> float:
        """How far charges are from covering the plan's cost, as a part of the charges."""
        covered = float(self.charges.sum())
        if self.exact or self.total <= 0:
            return 0.0
        return max(self.total / covered - 1, 0.0) if covered > 0 else math.inf


def find_prices(game: LinearGame | RowGame, *, time_limit: float = 60.0) -> Prices:
    """Return the prices that make the cheapest plan of a game hold.

    A game over whole numbers keeps its plan, and has the prices of the same game over the reals.
    The plan of a measured game is rounded to whole samples.

    game: linear, or of several goals.
    time_limit: seconds.
    """
    if isinstance(game, RowGame):
        return _find_for_goals(game)
    real = game.replace(strategies="real") if game.is_integer else game
    exact = _find_exactly(real) if game.size <= EXACT_AGENTS else None
    if exact is not None and not game.is_integer:
        given, prices, charges = map(to_floats, exact)
        whole = round_plan(game, given) if has_whole_samples(game) else given
        return _report(game, whole, prices, charges, exact=bool((whole == given).all()))
    solution = solve_optimal(game, time_limit=time_limit)
    given = _get_plan(solution)
    if exact is not None:
        found = to_floats(exact[1])
    else:
        relaxed = solve_optimal(real, time_limit=time_limit) if game.is_integer else solution
        _get_plan(relaxed)
        if "prices" not in relaxed.certificate:
            raise InputError(f"no prices were found within {time_limit:g} seconds: allow more time")
        found = np.asarray(relaxed.certificate["prices"])
    found = _make_feasible(game, found)
    if has_whole_samples(game):
        # Of plans that cost the same, the one that a plan from pilots rounds to is taken.
        near = round_plan(game, given if exact is None else to_floats(exact[0]))
        given = near if not game.is_integer or game.total(near) <= game.total(given) else given
    return _report(game, given, found, _share(game, found), exact=False)


def _find_for_goals(game: RowGame) -> Prices:
    """Return the prices of a game whose agents have several goals, one price per goal at first."""
    found = GroupCosts(game).solve(np.ones((1, game.size), dtype=bool))
    if not np.isfinite(found.totals[0]):
        raise UnsolvedError("There is nothing to share: no plan within the limits meets all goals.")
    prices = found.prices[0]
    samples = prices @ game.rows
    charged = np.bincount(game.owners, prices * game.needs, game.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(game.requirements > 0, charged / game.requirements, 0.0)
    charges = charged + _find_ends(game, game.costs - samples)
    given = found.contributions[0]
    return Prices(game, frozen(given), frozen(each), frozen(samples), frozen(charges), exact=False)


def _get_plan(solution: Solution) -> Vector:
    if solution.contributions is None:
        raise UnsolvedError(
            " ".join(filter(None, ("There is nothing to share.", solution.status.value,
                                   solution.note)))
        )  # fmt: skip
    return solution.contributions


def _report(
    game: LinearGame, given: Vector, prices: Vector, charges: Vector, *, exact: bool
) -> Prices:
    samples = frozen(game.apply_transposed(prices))
    return Prices(game, frozen(given), frozen(prices), samples, frozen(charges), exact)


# In doubles.


def _make_feasible(game: LinearGame, prices: Vector) -> Vector:
    """Scale prices down until samples of agents without a limit are worth no more than they cost.

    Prices of zero prove the least contributions; they are taken where they prove more.
    """
    prices = np.maximum(prices, 0.0)
    free = np.isinf(game.limits)
    worth = game.apply_transposed(prices)
    over = float((worth[free] / game.costs[free]).max(initial=0.0))
    prices = prices / over if over > 1 else prices
    floor = float(game.costs @ game.minimums)
    return prices if dual_bound(game, prices) > floor else np.zeros(game.size)


def _share(game: LinearGame, prices: Vector) -> Vector:
    ends = _find_ends(game, game.costs - game.apply_transposed(prices))
    return np.asarray(game.requirements * prices + ends)


def _find_ends(game: LinearGame | RowGame, left: Vector) -> Vector:
    """Return the least of left_i t over what agent i can give: samples that cost more, or less."""
    left = np.where(np.isinf(game.limits), np.maximum(left, 0.0), left)
    high = np.where(np.isinf(game.limits), 0.0, game.limits)
    return np.where(left >= 0, left * game.minimums, left * high)


# In fractions.


def _find_exactly(game: LinearGame) -> tuple[list[Fraction], ...] | None:
    """Return plan, prices and charges in fractions; None if numbers are long or nothing is proved.

    The cheapest corner of LP 1 knows by how much its cost rises with each row that is tight.
    """
    program = program_of(game, "optimal")
    if max(row.terms[0][1].bit_length() for row in program.rows) * game.size > LONG:
        return None
    corner = Corner.first(program)
    if not corner.settle(program.rows):
        return None
    prices = [Fraction(0)] * game.size
    first = len(program.rows) - game.size
    for rate, place in zip(corner.rates, corner.names, strict=True):
        if place >= first:
            agent = place - first
            # The row is the requirement in other units.
            other, weight = program.rows[place].terms[0]
            scale = weight / game.exact_benefits[agent][other]
            prices[agent] = Fraction(rate, corner.unit) * scale * program.money / program.amount
    given = [t * program.amount for t in corner.point]
    charges = share_by_prices(game, prices)
    if charges is None or not proves_plan(game, given, prices):
        return None
    return given, prices, charges


def proves_plan(
    game: LinearGame, contributions: Sequence[Fraction], prices: Sequence[Fraction]
) -> bool:
    """Return whether a plan and prices prove each other: both feasible, with the same value.

    game: linear, over the reals.
    contributions: the plan, in fractions.
    prices: y, in fractions.
    """
    low, costs = exact_numbers(game.minimums), exact_numbers(game.costs)
    for agent, given in enumerate(contributions):
        limit = float(game.limits[agent])
        if given < low[agent] or (math.isfinite(limit) and given > simplest_fraction(limit)):
            return False
        if game.exact_utility(agent, contributions) < game.exact_requirements[agent]:
            return False
    if min(prices) < 0:
        return False
    charges = share_by_prices(game, prices)
    cost = sum((c * t for c, t in zip(costs, contributions, strict=True)), Fraction(0))
    return charges is not None and sum(charges) == cost


def share_by_prices(game: LinearGame, prices: Sequence[Fraction]) -> list[Fraction] | None:
    """Return what prices make each agent bear, in fractions.

        mu_i y_i + min over low_i <= t <= high_i of (c - W'y)_i t

    None where that has no minimum: a sample is worth more than it costs, and has no limit.
    """
    charges = []
    for agent, (need, price) in enumerate(zip(game.exact_requirements, prices, strict=True)):
        worth = sum((game.exact_benefits[i][agent] * y for i, y in enumerate(prices)), Fraction(0))
        left = simplest_fraction(float(game.costs[agent])) - worth
        end = float(game.minimums[agent] if left >= 0 else game.limits[agent])
        if math.isinf(end):
            return None
        charges.append(need * price + left * simplest_fraction(end))
    return charges
