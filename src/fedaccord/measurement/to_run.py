"""Pilots to run, as a table to fill in: who takes part, and what each gives in every pilot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, clean_name
from fedaccord._io.kinds import HISTOGRAMS, MEMBERS, OWN, PILOTS
from fedaccord._io.numbers import Marks, read_number
from fedaccord._io.rows import Rows
from fedaccord._io.table import format_table, write_table
from fedaccord.errors import InputError
from fedaccord.measurement.design import Contributions, pilot_design, whole_design
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.pilots import read_own

# What a table to fill in always has.
COLUMNS = (*PILOTS.needed, "goal", "validation", "limit")
EXAMPLE = "City=1200,Rural=800"


@dataclass(frozen=True, eq=False)
class Members:
    """The agents that will run pilots, and what is known of them before any pilot.

    agents: names.
    limits: how many samples each has, in whole numbers; 0 for one that only wants the model.
    goals, validation: NaN where not known yet.
    minimums, costs: as in PilotTable.
    notes: what to say about how a file was read.
    """

    agents: tuple[str, ...]
    limits: Vector
    goals: Vector
    validation: Vector
    minimums: Vector
    costs: Vector
    notes: tuple[str, ...]

    def __init__(
        self,
        agents: Sequence[str],
        limits: ArrayLike,
        *,
        goals: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        minimums: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        names = tuple(agents)
        values = read_own(
            names, limits=limits, goals=goals, validation=validation, minimums=minimums, costs=costs
        )
        values["limits"] = np.floor(values["limits"])
        for name, limit in zip(names, values["limits"].tolist(), strict=True):
            if np.isinf(limit):
                raise InputError(
                    f"{name} has no limit: write how many samples it has, 0 if it has none"
                )
        if not values["limits"].any():
            raise InputError("no agent has samples; at least one agent must have samples")
        for name, value in {"agents": names, **values, "notes": tuple(notes)}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.agents)

    def with_limits(self, limits: ArrayLike) -> Members:
        """Return the same agents with other numbers of samples."""
        return Members(**{**vars(self), "limits": limits})

    @classmethod
    def from_text(cls, text: str) -> Members:
        """Read agents and how many samples each has, as City=1200,Rural=800."""
        limits: dict[str, float] = {}
        for part in re.split("[,;]", text):
            name, sign, number = (clean_name(piece).strip() for piece in part.rpartition("="))
            if not sign or not name:
                shown = part.strip().replace('"', "")
                raise InputError(
                    f'"{shown}" does not read NAME=SAMPLES: write the agents as {EXAMPLE}, without '
                    "separators between thousands; a name with a comma needs a file, with the "
                    "columns agent and limit"
                )
            if name in limits:
                raise InputError(f"{name} is named twice; name each agent once")
            what = f"the number of samples of {name}"
            value = read_number(number, what, Marks(), kind="count")
            if value < 0 or value % 1:
                raise InputError(f'{what} is "{number}": write a whole number of 0 or more')
            limits[name] = value
        return cls(tuple(limits), list(limits.values()))

    @classmethod
    def from_rows(cls, rows: Rows) -> Members:
        """Read a table of label histograms, or a list of agents with the samples each has."""
        heads = [HISTOGRAMS.find_column(head) for head in rows.cells[0] if head]
        long = {"label", "count"} <= set(heads)
        if rows.kind is not HISTOGRAMS or not (long or None in heads):
            return cls._from_list(rows)
        found = Histograms.from_rows(rows)
        has = found.counts.sum(axis=1)
        limits = np.where(np.isinf(found.limits), has, found.limits)
        own = {name: getattr(found, name) for name in ("goals", "validation", "minimums", "costs")}
        return cls(found.agents, limits, **own, notes=found.notes)

    @classmethod
    def _from_list(cls, rows: Rows) -> Members:
        sheet = rows.to_sheet(MEMBERS)
        agents = sheet.names("agent")
        if len(agents) < len(sheet.lines):
            owners = sheet.column("agent")
            row = next(n for n, name in enumerate(owners) if name in owners[:n])
            raise InputError(f"{sheet.where(row)} is the second of {owners[row]}; leave one out")
        for row, cell in enumerate(sheet.column("limit")):
            if not cell:
                raise InputError(
                    f"{sheet.describe('limit', row)} is empty: write how many samples it has, 0 "
                    "if it has none"
                )
        own = sheet.own_fields(agents)
        limits = sheet.numbers("limit")
        try:
            return cls(agents, limits, **own, notes=sheet.notes)
        except InputError as error:
            raise InputError(f"{rows.path}: {error}") from None


@dataclass(frozen=True, eq=False)
class PilotList:
    """Pilots to run.

    members: who takes part.
    contributions: what each gives, pilot by pilot.
    names: of the pilots.
    why: what each pilot is for, a sentence each; empty where they are of the design.
    columns: of the table to fill in; columns that are not ours stay empty, but for why.
    """

    members: Members
    contributions: tuple[Contributions, ...]
    names: tuple[str, ...]
    why: tuple[str, ...] = ()
    columns: tuple[str, ...] = COLUMNS

    def __len__(self) -> int:
        return len(self.contributions)

    @classmethod
    def first(cls, members: Members, budget: int | None = None) -> PilotList:
        """Return the pilots of the design.

        members: who takes part.
        budget: how many pilots; one round of the design where left out.
        """
        sizes = [int(limit) for limit in members.limits]
        giving = sum(size > 0 for size in sizes)
        number = whole_design(giving) if budget is None else budget
        design = pilot_design(sizes, budget=number)
        said = [name for name in ("minimum", "cost") if _is_said(members, name)]
        names = tuple(str(n) for n in range(1, len(design) + 1))
        return cls(members, tuple(design), names, columns=(*COLUMNS, *said))

    @property
    def rows(self) -> list[list[object]]:
        """The cells of the table to fill in, a line for every agent in every pilot."""
        return [
            [self._write_cell(column, pilot, agent) for column in self.columns]
            for pilot in range(len(self))
            for agent in range(len(self.members))
        ]

    def _write_cell(self, column: str, pilot: int, agent: int) -> object:
        """Return a cell; what an agent has one of stands in its first line only."""
        known = PILOTS.find_column(column)
        if known == "pilot":
            return self.names[pilot]
        if known == "agent":
            return self.members.agents[agent]
        if known == "contribution":
            return self.contributions[pilot][agent]
        if column == "why":
            return self.why[pilot] if agent == 0 else ""
        # Pilots that are added follow lines that have all this.
        if known is None or known not in OWN or pilot or self.why:
            return ""
        value = float(getattr(self.members, OWN[known][0])[agent])
        if np.isnan(value) or (known != "limit" and value == OWN[known][1]):
            return ""
        return int(value) if value.is_integer() else value

    def to_dict(self) -> dict[str, object]:
        """Return the pilots for machines."""
        return {
            "agents": list(self.members.agents),
            "pilots": list(self.names),
            "contributions": [list(given) for given in self.contributions],
        }

    def to_csv(self) -> str:
        """Return the table to fill in as CSV."""
        return format_table(self.columns, self.rows)

    def save(self, path: str | Path) -> None:
        """Write the table to fill in as .csv or .xlsx, replacing the file in one step."""
        write_table(path, self.columns, self.rows)


def _is_said(members: Members, column: str) -> bool:
    field, default = OWN[column]
    return bool((getattr(members, field) != default).any())
