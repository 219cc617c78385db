"""Who gives how much: the object that solvers make, `check` judges and training follows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, as_numbers, check_finite, clean_name, find_closest, frozen
from fedaccord._io.files import TABLES, read_json, replace_file
from fedaccord._lazy import Displayed
from fedaccord.errors import InputError


@dataclass(frozen=True, eq=False)
class Allocation(Displayed):
    """Contributions theta, one per agent, in samples.

    contributions: how many samples each agent gives.
    agents: the agents' names, in the same order; numbered where left out.
    reserve: how many more samples each agent holds in reserve. A run calls for them only if another
        agent does not deliver its contribution. None if the allocation has no reserves.
    notes: what to say about how the file was read.
    """

    contributions: Vector
    agents: tuple[str, ...] | None = None
    reserve: Vector | None = None
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        contributions: ArrayLike,
        agents: Sequence[str] | None = None,
        *,
        reserve: ArrayLike | None = None,
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
        object.__setattr__(self, "_source", "the allocation")
        check_finite(values, "the contribution", self.name)
        held = None if reserve is None else as_numbers(reserve, "reserve")
        if held is not None:
            if held.shape != values.shape:
                raise InputError(f"{len(values)} contributions came with {held.size} reserves")
            check_finite(held, "the reserve", self.name)
            held = frozen(held)
        object.__setattr__(self, "reserve", held)

    def __len__(self) -> int:
        return len(self.contributions)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Allocation)
            and self.agents == other.agents
            and np.array_equal(self.contributions, other.contributions)
            and np.array_equal(_or_nothing(self.reserve), _or_nothing(other.reserve))
        )

    def __repr__(self) -> str:
        return f"Allocation({len(self)} agents, total {self.total:.6g})"

    @property
    def total(self) -> float:
        """How many samples are given in all."""
        return float(self.contributions.sum())

    def name(self, agent: int) -> str:
        """Return what an agent is called."""
        return self.agents[agent] if self.agents is not None else f"agent {agent}"

    def to_dict(self) -> dict[str, Any]:
        """Return the allocation as ALLOCATION.json holds it."""
        result: dict[str, Any] = {"contributions": self.contributions.tolist()}
        if self.agents is not None:
            result["agents"] = list(self.agents)
        if self.reserve is not None:
            result["reserve"] = self.reserve.tolist()
        return result

    def save(self, path: str | Path) -> None:
        """Write JSON, CSV or a workbook, by the file's name, replacing the file in one step."""
        if Path(path).suffix in (".csv", ".xlsx"):
            from fedaccord._io.table import write_table

            columns: dict[str, Any] = {"contribution": _write_whole(self.contributions)}
            # Without names no column of them: made-up ones would not match any game's.
            if self.agents is not None:
                columns = {"agent": self.agents, **columns}
            if self.reserve is not None:
                columns["reserve"] = _write_whole(self.reserve)
            write_table(path, list(columns), zip(*columns.values(), strict=True))
        else:
            replace_file(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path, *, sheet: str | None = None, whole: bool = False) -> Allocation:
        """Read JSON ({"contributions": [...]}) or a table with a contribution column.

        path: the file; a table's name ends in .csv, .tsv, .txt or .xlsx.
        sheet: of a workbook; the first where left out.
        whole: whether a table with fractions of a sample is refused.
        """
        if Path(path).suffix.lower() in TABLES:
            return cls._from_table(path, sheet, whole)
        if sheet is not None:
            raise InputError(f"{path} has no sheets; leave --sheet out, or name an .xlsx file")
        data = read_json(path)
        if "model" in data and "contributions" not in data:
            raise InputError(
                f"{path} is a game, and contributions are needed here: 'fedaccord solve {path}' "
                "reads it"
            )
        if not isinstance(data.get("contributions"), list):
            raise InputError(f'{path} must hold an object with a "contributions" list')
        agents = data.get("agents")
        if agents is not None and not (
            isinstance(agents, list) and all(isinstance(name, str) for name in agents)
        ):
            raise InputError(f'"agents" in {path} must be a list of names')
        agents = None if agents is None else list(map(clean_name, agents))
        reserve = data.get("reserve")
        if reserve is not None and not isinstance(reserve, list):
            raise InputError(f'"reserve" in {path} must be a list of numbers')
        for name, values in (("contributions", data["contributions"]), ("reserve", reserve or [])):
            if any(isinstance(value, bool) or value is None for value in values):
                raise InputError(f'"{name}" in {path} must be numbers, no null, true or false')
        found = cls(data["contributions"], agents, reserve=reserve)
        object.__setattr__(found, "_source", str(path))
        return found

    @classmethod
    def _from_table(cls, path: str | Path, sheet: str | None, whole: bool) -> Allocation:
        from fedaccord._io.kinds import PROPOSAL
        from fedaccord._io.table import read_rows

        read = read_rows(path, sheet=sheet).to_sheet(PROPOSAL)
        if whole:
            read = replace(read, kind=replace(PROPOSAL, amounts=()))
        values = read.numbers("contribution")
        for row, value in enumerate(values):
            if value != value:
                what = read.describe("contribution", row)
                raise InputError(
                    f"{what} is empty: write 0 if it gives nothing, or delete the line if it "
                    "is a note"
                )
        reserve = None
        if "reserve" in read.columns:
            # An empty cell is no reserve.
            reserve = np.nan_to_num(read.numbers("reserve"))
        names = None
        if "agent" in read.columns:
            names = read.column("agent")
            if len(read.names("agent")) < len(names):
                row = next(n for n, name in enumerate(names) if name in names[:n])
                first = read.lines[names.index(names[row])]
                raise InputError(
                    f"{read.where(row)} repeats {names[row]} (first in {read.unit} {first}): "
                    f"give each agent one {read.unit}"
                )
        try:
            found = cls(values, names, reserve=reserve, notes=read.notes)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        object.__setattr__(found, "_places", tuple(map(read.where, range(len(values)))))
        object.__setattr__(found, "_source", str(path))
        return found

    def ordered_for(self, agents: Sequence[str] | None) -> Allocation:
        """Return the allocation in a game's order of agents, matched by name if both have names."""
        if self.agents is None or agents is None or self.agents == tuple(agents):
            return self
        # A letter with an accent may be written as one sign or as two.
        named, wanted = (list(map(clean_name, names)) for names in (self.agents, agents))
        place = {name: n for n, name in enumerate(named)}
        if len(place) != len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise InputError(f"the allocation names {twice} twice; give each agent one line")
        known = set(wanted)
        missing = [name for name in wanted if name not in place]
        extra = [own for own, name in zip(self.agents, named, strict=True) if name not in known]
        if extra and (meant := find_closest(extra[0], missing)):
            raise InputError(
                f"{self.place(extra[0])}{extra[0]} is not a member; did you mean {meant}?"
            )
        source: str = getattr(self, "_source", "the allocation")
        if missing:
            where = self.place(extra[0]).removesuffix(": ") if extra else ""
            other = f", or correct {extra[0]!r}{where and f' in {where}'}" if extra else ""
            raise InputError(
                f"{source} has no contribution of {missing[0]}; add one (0 if it gives nothing)"
                f"{other}"
            )
        if extra:
            raise InputError(
                f"{self.place(extra[0])}{extra[0]} is not an agent of the game; leave it out"
            )
        order = [place[name] for name in wanted]
        held = None if self.reserve is None else self.reserve[order]
        return Allocation(self.contributions[order], agents, reserve=held)

    def place(self, name: str, agent: int | None = None) -> str:
        """Return how a message on an agent of a file begins: with its line.

        name: of the agent.
        agent: its number, where the file has no names.
        """
        places: tuple[str, ...] = getattr(self, "_places", ())
        named = self.agents or ()
        row = named.index(name) if name in named else agent
        return f"{places[row]}: " if places and row is not None else ""


def _or_nothing(reserve: Vector | None) -> Vector:
    return np.zeros(0) if reserve is None else reserve


def _write_whole(values: Vector) -> list[float | int]:
    """Return numbers for a table, whole ones without a decimal point."""
    return [int(value) if value.is_integer() else value for value in values.tolist()]
