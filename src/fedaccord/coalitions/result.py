"""Partitions of the agents into coalitions, and what each agent gains by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord._display import Displayed
from fedaccord.coalitions.table import Members
from fedaccord.wording import count, format_amount, join_with_and


@dataclass(frozen=True, eq=False)
class Partition:
    """The agents in coalitions.

    parts: the coalitions, in the order of their first agents.
    costs: what each agent bears; infinite for one that is alone and short of its requirement.
    total: what all bear, by their weights.
    checked: the size of the largest groups of which it is proved that none would rather leave; zero
        where some would, or nothing is proved.
    """

    parts: tuple[Members, ...]
    costs: Vector
    total: float
    checked: int = 0

    @property
    def everyone_together(self) -> bool:
        """Whether all agents are in one coalition."""
        return len(self.parts) == 1


@dataclass(frozen=True)
class Move:
    """A group that leaves a partition to form a coalition of its own, or to join one.

    before: the partition.
    group: the coalition that forms.
    """

    before: tuple[Members, ...]
    group: Members


@dataclass(frozen=True, eq=False)
class Coalitions(Displayed):
    """Which partitions of the agents hold.

    agents: names.
    core: core-stable partitions, cheapest first: no group of agents would all be better off.
    core_count: how many there are; more than listed where there are very many.
    individual: individually stable partitions, cheapest first; None where it was not searched.
    individual_count: how many there are.
    cheapest: the partition with the least total, stable or not; None where it was not searched.
    alone: every agent on its own.
    together: all agents in one coalition; None where it cannot form.
    cycle: where no partition is core-stable, groups that leave again and again.
    complete: whether the search ended, so that what was not found does not exist.
    what: what agents do: "gives", "bears".
    notes: what to know, a sentence each.
    """

    agents: tuple[str, ...]
    core: tuple[Partition, ...]
    core_count: int
    individual: tuple[Partition, ...] | None
    individual_count: int
    cheapest: Partition | None
    alone: Partition
    together: Partition | None
    cycle: tuple[Move, ...]
    complete: bool
    what: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Coalitions({self.verdict.rstrip('.')})"

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.agents)

    @property
    def chosen(self) -> Partition | None:
        """The cheapest partition that is stable in both ways, or else in one; None without any."""
        both = {p.parts for p in self.core} & {p.parts for p in self.individual or ()}
        first = next((p for p in self.core if p.parts in both), None)
        return first or next(iter((*self.core, *(self.individual or ()))), None)

    @property
    def price_of_anarchy(self) -> float | None:
        """The largest total of a core-stable partition, compared with the least of any.

        None where nothing is stable, or not all partitions are known.
        """
        known = self.complete and self.core_count == len(self.core)
        if not known or not self.core or self.cheapest is None or not self.cheapest.total:
            return None
        return max(p.total for p in self.core) / self.cheapest.total

    def write_parts(self, parts: tuple[Members, ...]) -> str:
        """Return a partition in words: City and Rural; University."""
        return "; ".join(self.write_group(part) for part in parts)

    def write_group(self, members: Members) -> str:
        """Return the names of a coalition."""
        return join_with_and([self.agents[agent] for agent in members])

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        chosen = self.chosen
        if chosen is None or not self.core:
            if not self.complete:
                return "The search ended before a core-stable partition was found."
            return "No partition is core-stable: whatever forms, some group would rather leave."
        group = (
            "no group of agents"
            if chosen.checked == self.size
            else f"no group of up to {chosen.checked} agents"
        )
        return f"{self._write_chosen(chosen)}: {group} would all be better off elsewhere."

    def _write_chosen(self, chosen: Partition) -> str:
        if chosen.everyone_together:
            return "One coalition of all agents holds"
        if len(chosen.parts) == self.size:
            return "Every agent stays alone"
        return f"{count(len(chosen.parts), 'coalition')} hold"

    def explain(self, agent: int) -> str:
        """Explain in a sentence what an agent gains in the partition that was chosen."""
        chosen, name = self.chosen, self.agents[agent]
        if chosen is None:
            return f"{name} has no coalition that holds."
        others = next(part for part in chosen.parts if agent in part)
        names = self.write_group(tuple(a for a in others if a != agent))
        cost = float(chosen.costs[agent])
        said = f"{name} {self.what} {format_amount(cost)} {f'with {names}' if names else 'alone'}"
        if not np.isfinite(cost):
            return f"{name} stays alone, short of its requirement."
        ends = []
        if names:
            ends.append(_compare(float(self.alone.costs[agent]), "alone"))
        if not chosen.everyone_together and self.together is not None:
            ends.append(_compare(float(self.together.costs[agent]), "with all together"))
        return f"{said}, against {join_with_and(ends)}." if ends else f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Return the coalitions for machines."""
        chosen = self.chosen
        price = self.price_of_anarchy
        return {
            "verdict": self.verdict,
            "agents": list(self.agents),
            "chosen": _to_dict(chosen),
            "core": [_to_dict(p) for p in self.core],
            "core_count": self.core_count,
            "individual": None if self.individual is None else [
                _to_dict(p) for p in self.individual
            ],
            "individual_count": self.individual_count,
            "cheapest": _to_dict(self.cheapest),
            "alone": _to_dict(self.alone),
            "together": _to_dict(self.together),
            "price_of_anarchy": price,
            "cycle": [
                {"before": [list(p) for p in move.before], "group": list(move.group)}
                for move in self.cycle
            ],
            "complete": self.complete,
            "notes": list(self.notes),
        }  # fmt: skip


def _compare(cost: float, where: str) -> str:
    return f"{format_amount(cost)} {where}" if np.isfinite(cost) else f"nothing possible {where}"


def _to_dict(partition: Partition | None) -> dict[str, Any] | None:
    if partition is None:
        return None
    return {
        "parts": [list(part) for part in partition.parts],
        "costs": [c if np.isfinite(c) else None for c in partition.costs.tolist()],
        "total": partition.total if np.isfinite(partition.total) else None,
        "largest_group_checked": partition.checked,
    }
