"""Contracts that share the cost of a plan, and what each of them promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord._checks import SMALLEST, Vector
from fedaccord._lazy import Displayed
from fedaccord.allocation import Allocation
from fedaccord.equilibria.whole import has_whole_samples, round_up
from fedaccord.games.chances import Estimates
from fedaccord.games.linear import LinearGame
from fedaccord.games.rows import RowGame
from fedaccord.sharing.costs import MOST_AGENTS, GroupCosts, list_groups
from fedaccord.sharing.prices import Prices
from fedaccord.sharing.splitting import Splitting
from fedaccord.wording import format_amount, format_samples, join_with_and, write_short_alone

# Differences below this part of the total are rounding.
ROUNDING = 1e-8
# A group of more agents than this is not listed by name in the sentence of each of them.
NAMED = 4
# In more than this part of the worlds there is no plan: then payments are not certain.
MANY = 0.1
UNCERTAIN = (
    "The pilots do not yet show which agents pay and which are paid.",
    "Agree on the rule now, and on the numbers after more pilots.",
)


@dataclass(frozen=True)
class Unserved:
    """In how many worlds that fit the pilots no plan within the limits reaches all targets.

    worlds: how many these are.
    total: how many worlds there are.
    """

    worlds: int = 0
    total: int = 0

    @property
    def are_many(self) -> bool:
        """Whether these are so many that no payment is certain."""
        return self.worlds > MANY * self.total

    @property
    def sentences(self) -> tuple[str, ...]:
        """The part of the worlds, and why the plan's probability may still be high."""
        return (
            "The payments are not certain.",
            f"In {self.worlds} of {self.total} resamples of the fit to pilots, no plan within the "
            "limits reaches all targets.",
            "A target is a goal plus its whole safety margin, so agents may still reach their "
            "goals there.",
            "The probability of the plan counts goals, not targets.",
        )


@dataclass(frozen=True)
class Group:
    """The group that a contract serves least, all agents together left out.

    agents: the members' numbers.
    bears: what the contract makes them bear together.
    alone: what they would cost alone.
    """

    agents: tuple[int, ...]
    bears: float
    alone: float

    @property
    def saving(self) -> float:
        """What it saves by staying; below zero if it would rather leave."""
        return self.alone - self.bears


@dataclass(frozen=True, eq=False)
class Contract:
    """Who bears how much of a plan's cost.

    rule: prices, marginal, shapley or nucleolus.
    shares: what each agent bears in all: its samples, and what it pays; with intervals, if known.
    payments: what each agent pays on top of the cost of its samples; below zero, it is paid.
    deficit: the part of the plan's cost that no agent bears, for an outside funder.
    closest: the group that saves least by staying, or most by leaving; None if groups were not
        checked.
    leaves: whether that group would rather leave.
    leaver_known: whether all groups were checked, or a proof covers them.
    """

    rule: str
    shares: Estimates
    payments: Estimates
    deficit: float
    closest: Group | None
    leaves: bool
    leaver_known: bool

    @property
    def saving(self) -> float | None:
        """What every group saves at least by staying; None if groups were not checked."""
        if self.closest is None:
            return None
        return self.closest.saving if self.leaves else max(self.closest.saving, 0.0)

    @property
    def leaver(self) -> Group | None:
        """The group that would save most by leaving; None if no group would save anything."""
        return self.closest if self.leaves else None

    def to_dict(self) -> dict[str, Any]:
        """Return the contract for machines."""
        return {
            "shares": self.shares.to_dict(),
            "payments": self.payments.to_dict(),
            "deficit": self.deficit,
            "least_saving": self.saving,
            "closest_group": _to_dict(self.closest),
            "leaver": _to_dict(self.leaver),
            "all_groups_checked": self.leaver_known,
        }


@dataclass(frozen=True, eq=False)
class CostShares(Displayed):
    """Who pays whom for the cheapest plan of a game, under several contracts.

    game: linear or measured, or of several goals.
    prices: the plan, and the prices that make it hold.
    contracts: by rule; prices first.
    costs: what groups cost alone.
    accuracy: of a measured game, how much of the mean accuracy each agent's samples account for.
    splitting: what agents would gain by appearing as two; None if it was not tried.
    notes: what could not be found, and why, a sentence each.
    unserved: in how many worlds there is no plan for all targets.
    doubts: what speaks against trusting a game that pilots measured, a sentence each.
    """

    game: LinearGame | RowGame
    prices: Prices
    contracts: Mapping[str, Contract]
    costs: GroupCosts
    accuracy: Estimates | None
    splitting: Splitting | None
    notes: tuple[str, ...]
    unserved: Unserved = Unserved()
    doubts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"CostShares({self.verdict.rstrip('.')})"

    @property
    def contributions(self) -> Vector:
        """What each agent gives in the cheapest plan."""
        return self.prices.contributions

    @property
    def allocation(self) -> Allocation:
        """The cheapest plan."""
        return Allocation(self.contributions, self.game.agents)

    @property
    def payments(self) -> Vector:
        """What each agent pays under the prices; below zero, it is paid."""
        return self.contracts["prices"].payments.values

    @cached_property
    def alone(self) -> Vector | None:
        """What each agent would cost alone; None if there are too many agents."""
        if self.game.size > 4 * MOST_AGENTS:
            return None
        alone, costs = self.costs.alone, self.game.costs
        return round_up(alone / costs) * costs if has_whole_samples(self.game) else alone

    @property
    def is_certain(self) -> bool:
        """Whether most worlds have a plan, and pilots tell of an agent that pays, or of none."""
        if self.unserved.are_many:
            return False
        found = self.contracts["prices"].payments
        if found.low is None or found.high is None:
            return True
        return bool((found.low > 0).any() or not (found.high > 0).any())

    @property
    def is_proved(self) -> bool:
        """Whether no group of agents would pay less alone, up to rounding."""
        saving = self.contracts["prices"].saving
        if not self.prices.hold:
            return saving is not None and saving >= -ROUNDING * self.prices.total
        return self.prices.gap <= ROUNDING or (saving is not None and saving >= 0)

    @property
    def verdict(self) -> str:
        """The answer in a few sentences."""
        return " ".join(list_verdict(self))

    @property
    def promise(self) -> str:
        """What the payments do, in one sentence or two."""
        return " ".join(self._list_promises())

    def _list_promises(self) -> tuple[str, ...]:
        gap = self.prices.gap
        if not self.prices.hold and not self.is_proved:
            return self._describe_leaver()
        if self.prices.exact or (gap > ROUNDING and self.is_proved):
            return (
                "With these payments the cheapest plan holds: they add up to zero, and no group "
                "of agents would pay less alone.",
            )
        if gap <= ROUNDING:
            return (
                "With these payments the cheapest plan holds, up to rounding: they add up to "
                "zero, and no group of agents would pay less alone.",
            )
        return (
            "The payments add up to zero.",
            "No group of agents saves more than "
            f"{100 * gap / (1 + gap):.2g} % of its cost by leaving.",
        )

    def _describe_leaver(self) -> tuple[str, ...]:
        """Return which group would leave: with harm, it may pay less without the others."""
        leaver = self.contracts["prices"].leaver
        if leaver is None:
            return (
                "The payments add up to zero.",
                "Samples harm some agents, so prices do not prove that every group stays.",
            )
        names = join_with_and([self.game.name(member) for member in leaver.agents])
        bears = self.write_burden(leaver.bears, len(leaver.agents))
        return (
            f"The payments add up to zero, but {names} {bears} and "
            f"would pay {self.write(leaver.alone)} without the others.",
        )

    def write(self, amount: float) -> str:
        """Return an amount of money, rounded like all amounts of this game."""
        return choose_writer(self.prices.total)(amount)

    def write_burden(self, amount: float, agents: int = 1) -> str:
        """Return what agents bear; where it is below zero, what they earn.

        amount: what they bear.
        agents: how many they are.
        """
        earns = amount < -ROUNDING * max(self.prices.total, 1e-300)
        verb = f"{'earn' if earns else 'bear'}{'s' * (agents == 1)}"
        return f"{verb} {self.write(-amount if earns else amount)}"

    def explain(self, agent: int) -> str:
        """Explain what an agent gives, pays and bears, and what it would pay otherwise."""
        name = self.game.name(agent)
        paid, given = float(self.payments[agent]), float(self.contributions[agent])
        bears = float(self.contracts["prices"].shares.values[agent])
        write_samples = choose_writer(float(self.contributions.sum()))
        gives = f"{name} gives {write_samples(given) if given > 0 else 'nothing'}"
        small = ROUNDING * max(self.prices.total, 1e-300)
        if abs(paid) <= small:
            said = f"{gives} and pays nothing."
        else:
            amount = self.write(abs(paid))
            amount = "less than 1" if amount == "0" else amount
            said = f"{gives} and {'pays' if paid > 0 else 'is paid'} {amount}."
        return f"{said} It {self.write_burden(bears)} in all{self._compare(agent)}."

    def _compare(self, agent: int) -> str:
        """Return what an agent would pay alone, and in the group that saves least by staying."""
        if self.alone is None:
            return ""
        alone, group = float(self.alone[agent]), self._find_tightest(agent)
        bears = self.contracts["prices"].shares.values
        same, aim = "", "requirement"
        if self.game.has_margins:
            same, aim = " for the same target", "target"
        apart = self._write_apart(alone, float(bears[agent]))
        end = (
            f", and would pay {apart} alone{same}"
            if np.isfinite(alone)
            else f". {write_short_alone(float(self.game.limits[agent]), aim)}"
        )
        if group is None:
            return end
        names = join_with_and([self.game.name(member) for member in group])
        if len(group) > NAMED:
            names = f"{self.game.name(agent)} and {len(group) - 1} others"
        bear = float(bears[[*group]].sum())
        apart = self._write_apart(self.costs.cost(group), bear)
        return (
            f"{end}. {names} together {self.write_burden(bear, len(group))}. Without the "
            f"{'rest' if len(group) > NAMED else 'others'} they would pay {apart}"
        )

    def _write_apart(self, cost: float, bear: float) -> str:
        """Return what agents would pay apart; whole samples may make them bear a little more.

        cost: what they would pay.
        bear: what they bear.
        """
        room = ROUNDING * self.prices.total
        if has_whole_samples(self.game):
            # Whole samples ask each agent that gives for less than one more.
            room += float(self.game.costs[self.contributions > 0].sum())
        written = self.write(cost)
        is_rounding = 0 < bear - cost <= room and written != self.write(bear)
        return "about the same" if is_rounding else written

    def _find_tightest(self, agent: int) -> tuple[int, ...] | None:
        """Return the group of an agent and some others, not all, that saves least by staying."""
        size = self.game.size
        if not 2 < size <= MOST_AGENTS:
            return None
        groups = list_groups(size)
        bears = groups @ self.contracts["prices"].shares.values
        sizes = groups.sum(axis=1)
        fits = groups[:, agent] & (sizes > 1) & (sizes < size) & np.isfinite(self.costs.values)
        if not fits.any():
            return None
        saved = np.where(fits, self.costs.values - bears, np.inf)
        # If several groups save the same, the smallest is the easiest to read.
        best = np.flatnonzero(saved <= saved.min() + ROUNDING * self.prices.total)
        chosen = int(best[sizes[best].argmin()])
        return tuple(np.flatnonzero(groups[chosen]).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the shares for machines."""
        split = self.splitting
        return {
            "verdict": self.verdict,
            "promise": self.promise,
            "agents": [self.game.name(agent) for agent in range(self.game.size)],
            "contributions": self.contributions.tolist(),
            "total": self.prices.total,
            "prices": self.prices.requirements.tolist(),
            "sample_prices": self.prices.samples.tolist(),
            "exact": self.prices.exact,
            "gap": self.prices.gap,
            "alone": None if self.alone is None else [
                n if np.isfinite(n) else None for n in self.alone.tolist()
            ],
            "contracts": {name: found.to_dict() for name, found in self.contracts.items()},
            "accuracy": None if self.accuracy is None else self.accuracy.to_dict(),
            "splitting": None if split is None else {
                name: gains.tolist() for name, gains in split.gains.items()
            },
            "doubts": [*([] if self.is_certain else [self.verdict]), *self.doubts],
            "notes": list(self.notes),
        }  # fmt: skip

    def save(self, path: Any) -> None:
        """Write what each agent gives, bears and pays as a table, by the file's name.

        path: ends in .csv or .xlsx.
        """
        from fedaccord._io.table import write_table

        names = [self.game.name(agent) for agent in range(self.game.size)]
        shares = self.contracts["prices"].shares.values
        columns = (self.contributions, shares, self.payments)
        # What an addition leaves behind, as in 49.99999999999999, is not written.
        written = ([float(f"{number:.12g}") for number in column] for column in columns)
        rows = zip(names, *written, strict=True)
        write_table(path, ["agent", "contribution", "share", "payment"], rows)


def _to_dict(group: Group | None) -> dict[str, Any] | None:
    return None if group is None else {**vars(group), "agents": list(group.agents)}


def choose_writer(largest: float) -> Callable[[float], str]:
    """Return what writes the amounts of a table, all rounded alike: whole if they are large.

    largest: the largest amount.
    """
    if largest >= 100:
        return format_samples
    places = max(2, 3 - math.floor(math.log10(max(largest, SMALLEST))))

    def write(value: float) -> str:
        if not math.isfinite(value):
            return format_amount(value)
        text = f"{round(value, places) + 0.0:.{places}f}"
        return text.rstrip("0").rstrip(".")

    return write


def find_closest(shares: Vector, costs: GroupCosts) -> Group | None:
    """Return the group that saves least by staying; None if there is a single agent.

    All agents together do not count as a group: they save what nobody bears. If several groups
    save the same, the smallest is the easiest to read.

    shares: what each agent bears.
    costs: of all groups of few agents.
    """
    groups = list_groups(len(shares))[1:-1]
    if not len(groups):
        return None
    alone, bears = costs.values[1:-1], groups @ shares
    saved, sizes = alone - bears, groups.sum(axis=1)
    best = np.flatnonzero(saved <= saved.min() + ROUNDING * costs.values[-1])
    chosen = int(best[sizes[best].argmin()])
    agents = tuple(np.flatnonzero(groups[chosen]).tolist())
    return Group(agents, float(bears[chosen]), float(alone[chosen]))


def list_verdict(shares: CostShares) -> tuple[str, ...]:
    """Return the sentences of the verdict on payments."""
    if shares.is_certain:
        return shares._list_promises()
    return shares.unserved.sentences if shares.unserved.are_many else UNCERTAIN
