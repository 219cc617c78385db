"""What each agent's membership costs it in each coalition: all that preferences rest on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import Matrix, Vector, as_numbers, frozen
from fedaccord.errors import InputError
from fedaccord.games.base import Game

# Up to this many agents all coalitions are listed.
MOST_AGENTS = 12
# Costs that differ by less than this part of the larger are the same to an agent.
SAME = 1e-9

Members = tuple[int, ...]


def name_burden(game: Game) -> str:
    """Return what agents do in a coalition: they give samples, or bear costs that differ."""
    return "gives" if np.all(game.costs == 1) else "bears"


def list_members(coalition: int) -> Members:
    """Return the agents of a coalition: agent i is a member if bit i is one."""
    return tuple(i for i in range(coalition.bit_length()) if coalition >> i & 1)


def number_coalition(members: Sequence[int]) -> int:
    """Return the number of a coalition."""
    return sum(1 << agent for agent in members)


@dataclass(frozen=True, eq=False)
class CoalitionTable:
    """What every agent bears in every coalition; less is better.

    costs: 2^k x k; row n is the coalition of the agents i whose bit in n is one. Numbers of agents
        outside a coalition mean nothing. Infinite: the coalition cannot form, or an agent alone
        cannot reach its requirement.
    agents: names; numbered where left out.
    weights: how much each agent counts in totals; one where left out.
    what: what costs are, for sentences: "gives 12".
    """

    costs: Matrix
    agents: tuple[str, ...] | None = None
    weights: Vector | None = None
    what: str = "bears"

    def __post_init__(self) -> None:
        costs = as_numbers(self.costs, "costs")
        if costs.ndim != 2 or costs.shape[0] != 1 << costs.shape[1] or costs.shape[1] < 1:
            raise InputError(
                f"costs must have 2^k rows, one per coalition, and k columns; got {costs.shape}"
            )
        size = costs.shape[1]
        if size > MOST_AGENTS:
            raise InputError(
                f"all coalitions are listed for up to {MOST_AGENTS} agents; got {size}"
            )
        inside = np.arange(len(costs))[:, None] >> np.arange(size) & 1 == 1
        if np.isnan(costs[inside]).any() or (costs[inside] < 0).any():
            row = int(np.argmax(((np.isnan(costs) | (costs < 0)) & inside).any(axis=1)))
            raise InputError(
                f"the costs of coalition {list_members(row)} must be 0 or more, or infinite"
            )
        # A coalition forms whole or not at all.
        broken = (np.isinf(costs) & inside).any(axis=1)
        costs = np.where(inside & ~broken[:, None], costs, np.inf)
        object.__setattr__(self, "costs", frozen(costs))
        weights = np.ones(size) if self.weights is None else as_numbers(self.weights, "weights")
        if weights.shape != (size,) or not (weights > 0).all():
            raise InputError(f"weights must be {size} numbers above 0, one per agent")
        object.__setattr__(self, "weights", frozen(weights))
        if self.agents is not None and len(self.agents) != size:
            raise InputError(f"{size} agents came with {len(self.agents)} names")

    @property
    def size(self) -> int:
        """How many agents there are."""
        return int(self.costs.shape[1])

    def name(self, agent: int) -> str:
        """Return what an agent is called."""
        return self.agents[agent] if self.agents is not None else f"agent {agent}"

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """Costs as whole numbers, agent by agent, the same where costs differ by rounding alone."""
        ranks = np.empty(self.costs.shape, dtype=np.int64)
        for agent in range(self.size):
            order = np.argsort(self.costs[:, agent], kind="stable")
            costs = self.costs[order, agent]
            with np.errstate(invalid="ignore"):
                apart = np.diff(costs) > SAME * np.abs(costs[1:])
            # Between two infinities there is no difference.
            apart |= np.isinf(costs[1:]) & np.isfinite(costs[:-1])
            ranks[order, agent] = np.concatenate([[0], np.cumsum(apart)])
        return ranks

    @cached_property
    def forms(self) -> NDArray[np.bool_]:
        """Which coalitions can form; an agent alone always can, whatever it costs."""
        finite = np.asarray(np.isfinite(self.costs).any(axis=1))
        finite[1 << np.arange(self.size)] = True
        finite[0] = False
        return finite

    def total(self, coalition: int) -> float:
        """Return what a coalition costs its members in all, by their weights."""
        members = [*list_members(coalition)]
        weights = np.asarray(self.weights)
        return float(self.costs[coalition, members] @ weights[members])


def tabulate_coalitions(
    size: int,
    cost: Callable[[Members], ArrayLike],
    *,
    agents: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    what: str = "bears",
) -> CoalitionTable:
    """Return the table of any model that says what members of a coalition bear.

    size: how many agents there are, up to 12.
    cost: takes the members of a coalition in order, and returns what each of them bears;
        infinite numbers where it cannot form.
    agents, weights, what: see CoalitionTable.
    """
    if not 1 <= size <= MOST_AGENTS:
        raise InputError(f"all coalitions are listed for 1 to {MOST_AGENTS} agents; got {size}")
    costs = np.full((1 << size, size), np.inf)
    for coalition in range(1, 1 << size):
        members = list_members(coalition)
        found = np.asarray(cost(members), dtype=float)
        if found.shape != (len(members),):
            raise InputError(
                f"the cost of coalition {members} must be {len(members)} numbers, one per member; "
                f"got shape {found.shape}"
            )
        costs[coalition, [*members]] = found
    names = None if agents is None else tuple(agents)
    return CoalitionTable(costs, names, None if weights is None else np.asarray(weights), what)
