"""Who gives how much: the object that solvers make, audits check and training follows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, as_numbers, check_finite, find_closest, frozen
from fedaccord._io.files import read_json, replace_file
from fedaccord.errors import InputError

# What helps where a contribution is no number, by what its cell contains.
REMEDIES = {
    ",": "write it with a point for decimals and no separators, as 1700 or 1.5",
    "": "write a number",
}


@dataclass(frozen=True, eq=False)
class Allocation:
    """Contributions theta, one per agent, in samples.

    contributions: how many samples each agent gives.
    agents: the agents' names, in the same order; numbered where left out.
    """

    contributions: Vector
    agents: tuple[str, ...] | None = None

    def __init__(self, contributions: ArrayLike, agents: Sequence[str] | None = None) -> None:
        values = as_numbers(contributions, "contributions")
        if values.ndim != 1:
            raise InputError(f"contributions must be one list; got shape {values.shape}")
        if agents is not None and len(agents) != len(values):
            raise InputError(f"{len(values)} contributions came with {len(agents)} agent names")
        object.__setattr__(self, "contributions", frozen(values))
        object.__setattr__(self, "agents", None if agents is None else tuple(map(str, agents)))
        check_finite(values, "the contribution", self.name)

    def __len__(self) -> int:
        return len(self.contributions)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Allocation)
            and self.agents == other.agents
            and np.array_equal(self.contributions, other.contributions)
        )

    def __repr__(self) -> str:
        return f"Allocation({len(self)} agents, total {self.total:.6g})"

    @property
    def total(self) -> float:
        """How many samples are given in all."""
        return float(self.contributions.sum())

    def name(self, agent: int) -> str:
        """What an agent is called."""
        return self.agents[agent] if self.agents is not None else f"agent {agent}"

    def to_dict(self) -> dict[str, Any]:
        """Give the allocation as ALLOCATION.json holds it."""
        result: dict[str, Any] = {"contributions": self.contributions.tolist()}
        if self.agents is not None:
            result["agents"] = list(self.agents)
        return result

    def save(self, path: str | Path) -> None:
        """Write ALLOCATION.json or ALLOCATION.csv, replacing the file in one step."""
        if Path(path).suffix == ".csv":
            from fedaccord._io.csv import write_csv

            amounts = [repr(c) for c in self.contributions.tolist()]
            # Without names no column of them: made-up ones would not match any game's.
            columns = [amounts] if self.agents is None else [self.agents, amounts]
            names = ["agent", "contribution"][-len(columns) :]
            write_csv(path, names, zip(*columns, strict=True))
        else:
            replace_file(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Allocation:
        """Read ALLOCATION.json ({"contributions": [...]}) or a CSV with a contribution column."""
        if Path(path).suffix == ".csv":
            return cls._from_csv(path)
        data = read_json(path)
        if not isinstance(data.get("contributions"), list):
            raise InputError(f'{path} must hold an object with a "contributions" list')
        agents = data.get("agents")
        if agents is not None and not (
            isinstance(agents, list) and all(isinstance(name, str) for name in agents)
        ):
            raise InputError(f'"agents" in {path} must be a list of names')
        if any(isinstance(c, bool) or c is None for c in data["contributions"]):
            raise InputError(f'"contributions" in {path} must be numbers, no null, true or false')
        return cls(data["contributions"], agents)

    @classmethod
    def _from_csv(cls, path: str | Path) -> Allocation:
        from fedaccord._io.csv import read_number, read_rows

        read = read_rows(path, "contribution")
        if "contribution" not in read.first:
            raise InputError(
                f"{path} must start with a header line that has a column 'contribution' "
                "(and may have one 'agent')"
            )
        column = read.first.index("contribution")
        names = read.first.index("agent") if "agent" in read.first else None
        values = []
        for line, row in zip(read.lines[1:], read.cells[1:], strict=True):
            where = f"line {line} of {path}"
            if len(row) <= max(column, names or 0):
                raise InputError(f"{where} has too few columns; is the file cut short?")
            if any(row[len(read.first) :]):
                raise InputError(
                    f"{where} has more columns than the header: write 1700 for 1,700, and put "
                    "names that have a comma in quotes"
                )
            whose = "" if names is None else f" of {row[names]}"
            what = f"the contribution{whose} in {where}"
            values.append(read_number(row[column], what, REMEDIES, needed=True))
        return cls(values, None if names is None else [row[names] for row in read.cells[1:]])

    def ordered_for(self, agents: Sequence[str] | None) -> Allocation:
        """Give the allocation in a game's order of agents, matched by name if both have names."""
        if self.agents is None or agents is None or self.agents == tuple(agents):
            return self
        place = {name: n for n, name in enumerate(self.agents)}
        if len(place) != len(self.agents):
            twice = next(n for n in self.agents if self.agents.count(n) > 1)
            raise InputError(f"the allocation names {twice} twice; give each agent one line")
        known = set(agents)
        missing = [name for name in agents if name not in place]
        extra = [name for name in self.agents if name not in known]
        if extra and (meant := find_closest(extra[0], missing)):
            raise InputError(f"{extra[0]} is not a member; did you mean {meant}?")
        if missing:
            raise InputError(f"the allocation has no contribution of {missing[0]}; add one")
        if extra:
            raise InputError(
                f"the allocation names {extra[0]}, who is not in the game; leave that out"
            )
        return Allocation(self.contributions[[place[n] for n in agents]], agents)
