"""Share the cost of the cheapest plan: who pays whom, under several contracts."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedaccord._checks import Matrix, Vector, check_whole, frozen
from fedaccord.equilibria.result import Deadline
from fedaccord.equilibria.whole import has_whole_samples
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.chances import Estimates, spread
from fedaccord.games.goals import GoalsGame, Worlds
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, list_doubts
from fedaccord.games.rows import RowGame
from fedaccord.sharing.costs import MOST_AGENTS, GroupCosts, Members, Rows, list_groups
from fedaccord.sharing.many import solve_many
from fedaccord.sharing.prices import Prices, find_prices
from fedaccord.sharing.result import ROUNDING, Contract, CostShares, Unserved, find_closest
from fedaccord.sharing.splitting import SPLIT_AGENTS, Splitting, find_splits
from fedaccord.sharing.values import (
    NUCLEOLUS_AGENTS,
    Worth,
    find_nucleolus,
    sample_shapley_value,
    shapley_value,
)

# Up to this many agents Shapley shares are sampled, and each agent is left out once.
SAMPLED_AGENTS = 60
UNEXAMINED = (
    "The payments have no intervals: the effect of errors in the game's numbers was not examined."
)

# Plans that differ by less, relative to their numbers, are the same.
SAME = 1e-6


def share_costs(
    game: Game, *, orders: int = 200, seed: int = 0, time_limit: float = 60.0
) -> CostShares:
    """Share the cost of the cheapest plan, so that no group of agents would rather leave.

    game: linear or measured, or of several goals; samples may harm.
    orders: how many orders of joining are drawn for Shapley shares of more than 16 agents.
    seed: of these orders.
    time_limit: seconds for the plan, and for drawing orders.
    """
    if not isinstance(game, LinearGame | RowGame) or (
        isinstance(game, RowGame) and game.is_integer
    ):
        raise InputError(
            f"payments need a linear or a measured game; this is a {game.model} game: measure it "
            "with pilots, or write down its benefits"
        )
    check_whole("orders", orders, least=20)
    prices = find_prices(game, time_limit=time_limit)
    sharer = _Sharer(game, prices, orders, seed, Deadline(time_limit))
    return sharer.share()


def share_held_costs(
    game: LinearGame, given: Vector | None, minimums: Vector, *, time_limit: float
) -> CostShares:
    """Say who pays whom for a cheapest plan in which some agents are held to a number.

    That number counts as a limit where the plan is the same with either, so payments are too.

    game: in which the number is the minimum and the limit of those agents.
    given: the plan; None if no agent is held.
    minimums: of all agents if none is held.
    time_limit: seconds for each solver.
    """
    if given is not None:
        found = share_costs(game.replace(minimums=minimums), time_limit=time_limit)
        if np.allclose(found.contributions, given, rtol=SAME, atol=SAME):
            return found
    return share_costs(game, time_limit=time_limit)


class _Sharer:
    """Holds what all contracts share.

    game: what is shared.
    prices: the plan and its prices.
    orders, seed, deadline: of Shapley shares that are sampled.
    """

    def __init__(
        self,
        game: LinearGame | RowGame,
        prices: Prices,
        orders: int,
        seed: int,
        deadline: Deadline,
    ) -> None:
        self.game, self.prices = game, prices
        self.orders, self.seed, self.deadline = orders, seed, deadline
        self.costs = GroupCosts(game)
        self.notes: list[str] = []
        self.unserved = Unserved()
        self.whole = has_whole_samples(game)
        if self.whole:
            self.notes.append(
                "Agents give whole samples. Prices and the costs of groups are from before "
                "rounding, so groups may cost slightly more."
            )

    def share(self) -> CostShares:
        """Return all contracts that can be found."""
        found = [self._share_by_prices(), self._share_by_marginal_costs()]
        if self._can_all_go_alone():
            found += [self._share_by_shapley_value(), self._share_by_nucleolus()]
        return CostShares(
            self.game,
            self.prices,
            {contract.rule: contract for contract in found if contract is not None},
            self.costs,
            self._share_accuracy(),
            self._find_splits(),
            tuple(self.notes),
            unserved=self.unserved,
            doubts=list_doubts(self.game),
        )

    def _write(self, rule: str, shares: Estimates, payments: Estimates | None = None) -> Contract:
        """Return a contract; agents pay what they bear beyond their samples' cost.

        payments: for the contract of prices, which no group would leave.
        """
        spent = self.game.costs * self.prices.contributions
        paid = payments or self._clear(_shift(shares, -spent))
        shares = self._clear(shares)
        proved = rule == "prices" and self.prices.hold
        small, total = self.game.size <= MOST_AGENTS, self.prices.total
        closest = find_closest(shares.values, self.costs) if small else None
        leaves = closest is not None and closest.saving < -ROUNDING * total
        if leaves and (self.whole or proved):
            # Over the reals a group costs less than with whole samples: it may not save anything.
            # And what prices leave to rounding, their own gap tells.
            small, closest, leaves = False, None, False
        deficit = total - float(shares.values.sum())
        return Contract(
            rule,
            shares,
            paid,
            0.0 if abs(deficit) <= 1e-9 * total else deficit,
            closest,
            leaves,
            small or proved,
        )

    def _share_by_prices(self) -> Contract:
        prices = self.prices
        if np.isinf(prices.gap):
            raise InputError("no prices were found in time: allow more time")
        shares = Estimates(frozen(self._clear_rounding(prices.charges * (1 + prices.gap))))
        drawn = self._draw_shares()
        if drawn is None:
            self.notes.append(UNEXAMINED)
            return self._write("prices", shares)
        spent = self.game.costs * prices.contributions
        payments = spread(self._clear_rounding(shares.values - spent), drawn[1])
        return self._write("prices", spread(shares.values, drawn[0]), payments)

    def _draw_shares(self) -> tuple[Matrix, Matrix] | None:
        """Return shares and payments in each world that fits the pilots; None without pilots.

        Each world has its own cheapest plan, with its own prices.
        """
        game, worlds = self.game, _find_worlds(self.game)
        if worlds is None or game.size > SAMPLED_AGENTS:
            return None
        known = np.asarray(np.isfinite(worlds.needs).all(axis=1))
        benefits, needs = worlds.benefits[known], worlds.needs[known]
        low = np.broadcast_to(game.minimums, (len(needs), game.size))
        found = solve_many(benefits, needs, low, game.limits, game.costs)
        worth = np.einsum("bij,bi->bj", benefits, found.prices)
        # What the rows of an agent are charged is charged to the agent.
        charged = (found.prices * needs) @ (Rows.of(game).owners[:, None] == np.arange(game.size))
        shares, payments = np.full((2, len(known), game.size), np.nan)
        payments[known] = charged - worth * found.contributions
        shares[known] = payments[known] + game.costs * found.contributions
        self._note_worlds(int(np.isfinite(found.totals).sum()), len(known))
        return self._clear_rounding(shares), self._clear_rounding(payments)

    def _note_worlds(self, served: int, count: int) -> None:
        """Say in how many worlds there is no plan: intervals know nothing of these."""
        self.unserved = Unserved(count - served, count)
        if served < count:
            self.notes.append(
                f"In {count - served} of {count} resamples of the fit to pilots, no plan within "
                "the limits reaches all targets. "
                + ("The intervals leave these out." if 2 * served >= count else "So there are no "
                   "intervals.")
            )  # fmt: skip

    def _clear_rounding(self, amounts: Matrix) -> Matrix:
        """Return amounts of money, zero where there is nothing but rounding."""
        return np.where(np.abs(amounts) <= ROUNDING * self.prices.total, 0.0, amounts)

    def _clear(self, amounts: Estimates) -> Estimates:
        """Return amounts of money and their intervals, zero where there is nothing but rounding."""
        low, high = amounts.low, amounts.high
        return Estimates(
            frozen(self._clear_rounding(amounts.values)),
            None if low is None else frozen(self._clear_rounding(low)),
            None if high is None else frozen(self._clear_rounding(high)),
        )

    def _share_by_marginal_costs(self) -> Contract | None:
        """Return the contract in which each agent bears what it adds to the others' cost."""
        if self.game.size > SAMPLED_AGENTS:
            self._note_size("marginal shares", SAMPLED_AGENTS)
            return None
        without = self.costs.without_one
        if np.isinf(without).any():
            agent = self.game.name(int(np.argmax(np.isinf(without))))
            aims = "targets" if self.game.has_margins else "requirements"
            self.notes.append(
                f"There are no marginal shares. The others cannot reach their {aims} without "
                f"{agent}. So {agent} could ask for any amount."
            )
            return None
        shares = self._total_of_groups - without
        return self._write("marginal", Estimates(frozen(shares)))

    @cached_property
    def _total_of_groups(self) -> float:
        """The cost of all agents as groups are measured, over the reals."""
        everyone = np.ones((1, self.game.size), dtype=bool)
        return float(self.costs.measure(everyone)[0])

    @property
    def _excess(self) -> float:
        """What the plan costs in parts of that; more than one where samples are whole."""
        total = self._total_of_groups
        return self.prices.total / total if self.whole and total > 0 else 1.0

    def _can_all_go_alone(self) -> bool:
        """Return whether every group has a cost, which it has if every agent has one alone."""
        if self.game.size > SAMPLED_AGENTS or np.isfinite(self.costs.alone).all():
            return True
        agent = self.game.name(int(np.argmax(np.isinf(self.costs.alone))))
        aim = "target" if self.game.has_margins else "requirement"
        self.notes.append(
            f"There are no Shapley shares and there is no nucleolus. {agent} cannot reach its "
            f"{aim} alone, so its cost alone is not defined."
        )
        return False

    def _share_by_shapley_value(self) -> Contract | None:
        size = self.game.size
        if size > SAMPLED_AGENTS:
            self._note_size("Shapley shares", SAMPLED_AGENTS)
            return None
        values = self.costs.values if size <= MOST_AGENTS else None
        found = self._find_shapley_value(self.costs.measure, values)
        return self._write("shapley", _scale(found, self._excess))

    def _find_shapley_value(self, worth: Worth, values: Vector | None = None) -> Estimates:
        """Return the Shapley value; values are those of all groups, where they are known."""
        size = self.game.size
        if size > MOST_AGENTS:
            return sample_shapley_value(
                worth, size, orders=self.orders, seed=self.seed, deadline=self.deadline
            )
        known = worth(list_groups(size)) if values is None else values
        return Estimates(frozen(shapley_value(known)))

    def _share_by_nucleolus(self) -> Contract | None:
        if self.game.size > NUCLEOLUS_AGENTS:
            self.notes.append(
                f"There is no nucleolus: it is found for up to {NUCLEOLUS_AGENTS} agents."
            )
            return None
        shares = find_nucleolus(self.costs.values).shares
        return self._write("nucleolus", _scale(Estimates(shares), self._excess))

    def _share_accuracy(self) -> Estimates | None:
        """Return what each agent's samples add to the mean accuracy of all agents."""
        game, given = self.game, self.prices.contributions
        if not isinstance(game, MeasuredGame) or game.size > SAMPLED_AGENTS:
            return None

        def worth(members: Members) -> Vector:
            return np.asarray(game.accuracies(members * given).mean(axis=1))

        return self._find_shapley_value(worth)

    def _find_splits(self) -> Splitting | None:
        game = self.game
        if game.size > SPLIT_AGENTS or isinstance(game, RowGame):
            return None
        if np.isfinite(game.limits).any() or game.minimums.any():
            self.notes.append(
                "What an agent would gain by appearing as two was not computed: with limits or "
                "minimums it depends on how it divides its samples."
            )
            return None
        return find_splits(self.costs)

    def _note_size(self, what: str, most: int) -> None:
        self.notes.append(f"There are no {what}: they are found for up to {most} agents.")


def _find_worlds(game: LinearGame | RowGame) -> Worlds | None:
    """Return what else may be true of a game that pilots measured."""
    if isinstance(game, GoalsGame):
        return game.worlds
    if not isinstance(game, MeasuredGame) or game.chances is None:
        return None
    return Worlds(game.chances.benefits, game.chances.needs(game.margins))


def _scale(estimates: Estimates, factor: float) -> Estimates:
    low, high = estimates.low, estimates.high
    return Estimates(
        frozen(estimates.values * factor),
        None if low is None else frozen(low * factor),
        None if high is None else frozen(high * factor),
    )


def _shift(estimates: Estimates, amount: Vector) -> Estimates:
    low, high = estimates.low, estimates.high
    return Estimates(
        frozen(estimates.values + amount),
        None if low is None else frozen(low + amount),
        None if high is None else frozen(high + amount),
    )
