"""Who gives how much: the object that solvers make, `check` judges and training follows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, as_numbers, check_finite, find_closest, frozen
from fedaccord._display import Displayed
from fedaccord._io.files import TABLES, read_json, replace_file
from fedaccord.errors import InputError


@dataclass(frozen=True, eq=False)
class Allocation(Displayed):
    """Contributions theta, one per agent, in samples.

    contributions: how many samples each agent gives.
    agents: the agents' names, in the same order; numbered where left out.
    notes: what to say about how the file was read.
    """

    contributions: Vector
    agents: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        contributions: ArrayLike,
        agents: Sequence[str] | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        values = as_numbers(contributions, "contributions")
        if values.ndim != 1:
            raise InputError(f"contributions must be one list; got shape {values.shape}")
        if agents is not None and len(agents) != len(values):
            raise InputError(f"{len(values)} contributions came with {len(agents)} agent names")
        object.__setattr__(self, "contributions", frozen(values))
        object.__setattr__(self, "agents", None if agents is None else tuple(map(str, agents)))
        object.__setattr__(self, "notes", tuple(notes))
        # Where each contribution stands in its file, for messages.
        object.__setattr__(self, "_places", ())
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
        """Return the allocation as ALLOCATION.json holds it."""
        result: dict[str, Any] = {"contributions": self.contributions.tolist()}
        if self.agents is not None:
            result["agents"] = list(self.agents)
        return result

    def save(self, path: str | Path) -> None:
        """Write JSON, CSV or a workbook, by the file's name, replacing the file in one step."""
        if Path(path).suffix in (".csv", ".xlsx"):
            from fedaccord._io.table import write_table

            amounts = self.contributions.tolist()
            # Without names no column of them: made-up ones would not match any game's.
            columns = [amounts] if self.agents is None else [self.agents, amounts]
            names = ["agent", "contribution"][-len(columns) :]
            write_table(path, names, zip(*columns, strict=True))
        else:
            replace_file(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path, *, sheet: str | None = None) -> Allocation:
        """Read JSON ({"contributions": [...]}) or a table with a contribution column.

        path: the file; a table's name ends in .csv, .tsv, .txt or .xlsx.
        sheet: of a workbook; the first where left out.
        """
        if Path(path).suffix.lower() in TABLES:
            return cls._from_table(path, sheet)
        if sheet is not None:
            raise InputError(f"{path} has no sheets; leave --sheet out, or name an .xlsx file")
        data = read_json(path)
        if "model" in data and "contributions" not in data:
            raise InputError(
                f"{path} is a game, and contributions are needed here: 'fedaccord solve {path}' "
                "takes it"
            )
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
    def _from_table(cls, path: str | Path, sheet: str | None) -> Allocation:
        from fedaccord._io.table import PROPOSAL, read_rows

        read = read_rows(path, sheet=sheet).to_sheet(PROPOSAL)
        values = read.numbers("contribution")
        for row, value in enumerate(values):
            if value != value:
                what = read.describe("contribution", row)
                raise InputError(f"{what} is empty: write 0 if it gives nothing")
        names = None
        if "agent" in read.columns:
            names = read.column("agent")
            if len(read.names("agent")) < len(names):
                row = next(n for n, name in enumerate(names) if name in names[:n])
                first = read.lines[names.index(names[row])]
                raise InputError(
                    f"{read.where(row)} is the second of {names[row]} (the first is {read.unit} "
                    f"{first}): give each agent one {read.unit}"
                )
        try:
            found = cls(values, names, notes=read.notes)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        object.__setattr__(found, "_places", tuple(map(read.where, range(len(values)))))
        return found

    def ordered_for(self, agents: Sequence[str] | None) -> Allocation:
        """Return the allocation in a game's order of agents, matched by name if both have names."""
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
            raise InputError(
                f"{self._place(extra[0])}{extra[0]} is not a member; did you mean {meant}?"
            )
        if missing:
            raise InputError(f"the allocation has no contribution of {missing[0]}; add one")
        if extra:
            raise InputError(
                f"{self._place(extra[0])}the allocation names {extra[0]}, who is not in the game; "
                "leave that out"
            )
        return Allocation(self.contributions[[place[n] for n in agents]], agents)

    def _place(self, name: str) -> str:
        """Return how a message begins on an agent of a file: with its line."""
        places: tuple[str, ...] = getattr(self, "_places", ())
        return f"{places[self.agents.index(name)]}: " if places and self.agents else ""
