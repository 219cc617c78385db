"""Groupings of the agents into coalitions, and what each agent gains by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord._lazy import Displayed
from fedaccord.coalitions.table import Members
from fedaccord.wording import (
    count,
    format_amount,
    join_with_and,
    name_few,
    pluralize,
    write_short_alone,
)

# Up to this many agents a coalition of all is named by its members.
NAMED = 5


@dataclass(frozen=True, eq=False)
class Grouping:
    """The agents in coalitions.

    coalitions: in the order of their first agents.
    costs: what each agent bears; infinite for one that is alone and short of its requirement.
    total: what all bear, by their weights.
    checked: no group of up to this size would rather leave, which is proved; zero if some group
        would, or if nothing is proved.
    """

    coalitions: tuple[Members, ...]
    costs: Vector
    total: float
    checked: int = 0

    @property
    def everyone_together(self) -> bool:
        """Whether all agents are in one coalition."""
        return len(self.coalitions) == 1


@dataclass(frozen=True, eq=False)
class Pair:
    """Two agents that leave the others together.

    agents: the two.
    costs: what each would bear.
    """

    agents: Members
    costs: Vector


@dataclass(frozen=True)
class Move:
    """A group that leaves a grouping to form a coalition of its own, or to join one.

    before: the grouping.
    group: the coalition that forms.
    """

    before: tuple[Members, ...]
    group: Members


@dataclass(frozen=True, eq=False)
class Coalitions(Displayed):
    """Which groupings of the agents hold.

    agents: names.
    core: core-stable groupings, cheapest first: no group of agents would all be better off.
    core_count: how many there are; more than listed where there are very many.
    individual: individually stable groupings, cheapest first; None if they were not searched.
    individual_count: how many there are.
    cheapest: the grouping with the least total, stable or not; None if it was not searched.
    alone: every agent on its own.
    together: all agents in one coalition; None where it cannot form.
    cycle: if no grouping is core-stable, groups that leave again and again.
    complete: whether the search ended, so that what was not found does not exist.
    what: what agents do: "gives", "bears".
    notes: what to know, a sentence each.
    pairs: what every two agents would bear as a coalition of their own, for few agents.
    doubts: what speaks against trusting a game that pilots measured, a sentence each.
    limits: the most that each agent can give; None where this is not known.
    aim: what an agent wants to reach: its requirement, its goal or its target.
    """

    agents: tuple[str, ...]
    core: tuple[Grouping, ...]
    core_count: int
    individual: tuple[Grouping, ...] | None
    individual_count: int
    cheapest: Grouping | None
    alone: Grouping
    together: Grouping | None
    cycle: tuple[Move, ...]
    complete: bool
    what: str
    notes: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    doubts: tuple[str, ...] = ()
    limits: Vector | None = None
    aim: str = "requirement"

    def __repr__(self) -> str:
        return f"Coalitions({self.verdict.rstrip('.')})"

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.agents)

    @property
    def chosen(self) -> Grouping | None:
        """The cheapest grouping that is stable in both ways, or else in one; None if none is."""
        both = {g.coalitions for g in self.core} & {g.coalitions for g in self.individual or ()}
        first = next((g for g in self.core if g.coalitions in both), None)
        return first or next(iter((*self.core, *(self.individual or ()))), None)

    @property
    def price_of_anarchy(self) -> float | None:
        """The largest total of a core-stable grouping, compared with the least of any.

        None where nothing is stable, not all groupings are known, or in one of them somebody misses
        its requirement.
        """
        known = self.complete and self.core_count == len(self.core)
        if not known or not self.core or self.cheapest is None or not self.cheapest.total:
            return None
        most = max(g.total for g in self.core)
        return most / self.cheapest.total if np.isfinite(most) else None

    def write_grouping(self, coalitions: tuple[Members, ...]) -> str:
        """Return a grouping in words: City and Rural; University."""
        return "; ".join(self.write_group(one) for one in coalitions)

    def write_group(self, members: Members) -> str:
        """Return the names of a coalition; of one of all agents, if they are many, that it is."""
        if len(members) == self.size > NAMED:
            return "all agents"
        return join_with_and([self.agents[agent] for agent in members])

    @property
    def verdict(self) -> str:
        """The answer in a sentence, and which agents stay short."""
        chosen = self.chosen
        if chosen is None or not self.core:
            if not self.complete:
                return "The search ended before a core-stable grouping was found."
            return "No grouping is core-stable: in each of them, some group would rather leave."
        small = "" if chosen.checked == self.size else f" of up to {chosen.checked} agents"
        short = [self.agents[n] for n in np.flatnonzero(~np.isfinite(chosen.costs)).tolist()]
        lack = f" {name_few(short)} {pluralize(len(short), 'stays', 'stay')} short."
        return (
            f"{self._write_chosen(chosen)}: no group{small} could leave so that all agents in it "
            f"are better off.{lack * bool(short)}"
        )

    def _write_chosen(self, chosen: Grouping) -> str:
        if chosen.everyone_together:
            return "One coalition of all agents holds"
        if len(chosen.coalitions) == self.size:
            return "Every agent stays alone"
        return f"{count(len(chosen.coalitions), 'coalition')} hold"

    def explain(self, agent: int) -> str:
        """Explain in a sentence what an agent gains in the grouping that was chosen."""
        chosen, name = self.chosen, self.agents[agent]
        if chosen is None:
            return f"{name} has no coalition that holds."
        others = next(part for part in chosen.coalitions if agent in part)
        names = self.write_group(tuple(a for a in others if a != agent))
        if chosen.everyone_together and self.size > NAMED:
            names = "all others"
        cost = float(chosen.costs[agent])
        said = (
            f"{name} {self.what} {format_amount(cost)} {f'with {names}' if names else 'on its own'}"
        )
        if not np.isfinite(cost):
            return f"{name} stays alone, short of its {self.aim}."
        alone, ends = float(self.alone.costs[agent]), []
        if names and np.isfinite(alone):
            ends.append(f"{format_amount(alone)} on its own")
        if not chosen.everyone_together and self.together is not None:
            ends.append(f"{format_amount(self.together.costs[agent])} with all together")
        said = f"{said}, against {join_with_and(ends)}." if ends else f"{said}."
        if not names or np.isfinite(alone):
            return said
        limit = np.inf if self.limits is None else float(self.limits[agent])
        return f"{said} {write_short_alone(limit, self.aim)}."

    def to_dict(self) -> dict[str, Any]:
        """Return the coalitions for machines."""
        chosen = self.chosen
        price = self.price_of_anarchy
        return {
            "verdict": self.verdict,
            "agents": list(self.agents),
            "chosen": _to_dict(chosen),
            "core": [_to_dict(g) for g in self.core],
            "core_count": self.core_count,
            "individual": None if self.individual is None else [
                _to_dict(g) for g in self.individual
            ],
            "individual_count": self.individual_count,
            "cheapest": _to_dict(self.cheapest),
            "alone": _to_dict(self.alone),
            "together": _to_dict(self.together),
            "price_of_anarchy": price,
            "cycle": [
                {"before": [list(part) for part in move.before], "group": list(move.group)}
                for move in self.cycle
            ],
            "complete": self.complete,
            "pairs": [
                {"agents": list(pair.agents), "costs": _list(pair.costs)} for pair in self.pairs
            ],
            "doubts": list(self.doubts),
            "notes": list(self.notes),
        }  # fmt: skip


def _to_dict(grouping: Grouping | None) -> dict[str, Any] | None:
    if grouping is None:
        return None
    return {
        "coalitions": [list(part) for part in grouping.coalitions],
        "costs": _list(grouping.costs),
        "total": grouping.total if np.isfinite(grouping.total) else None,
        "largest_group_checked": grouping.checked,
    }


def _list(costs: Vector) -> list[float | None]:
    return [c if np.isfinite(c) else None for c in costs.tolist()]
