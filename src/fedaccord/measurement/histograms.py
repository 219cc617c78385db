"""Label histograms: what a sample of one agent is worth to another, with no training at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Matrix, Vector, as_numbers, check_finite, find_closest, frozen
from fedaccord._io.csv import Rows, Sheet, read_number, read_rows
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame

# What may be said of an agent beside its counts: the column, the field that it is kept in, and what
# it is where nothing is said.
OWN = {
    "need": ("needs", np.nan),
    "goal": ("goals", np.nan),
    "limit": ("limits", np.inf),
    "minimum": ("minimums", 0.0),
    "cost": ("costs", 1.0),
}
EXAMPLE = "agent,<label>,<label>,... (or agent,label,count)"


@dataclass(frozen=True, eq=False)
class Histograms:
    """How many samples of each label every agent has.

    agents: names.
    labels: names.
    counts: k x labels.
    needs: how many own samples each would need alone; NaN where not said.
    goals: the accuracy each wants; NaN where not said.
    limits: the most each can give; no limit where left out.
    minimums: the least each must give to take part; zero where left out.
    costs: what one sample costs each; one where left out.
    """

    agents: tuple[str, ...]
    labels: tuple[str, ...]
    counts: Matrix
    needs: Vector
    goals: Vector
    limits: Vector
    minimums: Vector
    costs: Vector

    def __init__(
        self,
        agents: Sequence[str],
        labels: Sequence[str],
        counts: ArrayLike,
        *,
        needs: ArrayLike | None = None,
        goals: ArrayLike | None = None,
        limits: ArrayLike | None = None,
        minimums: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        values = as_numbers(counts, "counts")
        if values.shape != (len(agents), len(labels)) or values.size == 0:
            raise InputError(
                f"counts must have {len(agents)} rows, one per agent, and {len(labels)} columns, "
                f"one per label; got shape {values.shape}"
            )
        width = len(labels)
        check_finite(
            values.ravel(),
            "the count",
            lambda n: f"{labels[n % width]} of {agents[n // width]}",
        )
        if not values.any(axis=1).all():
            agent = agents[int(np.argmin(values.any(axis=1)))]
            raise InputError(f"{agent} has no samples of any label; leave it out")
        size = len(agents)
        own = (needs, goals, limits, minimums, costs)
        object.__setattr__(self, "agents", tuple(agents))
        object.__setattr__(self, "labels", tuple(labels))
        object.__setattr__(self, "counts", frozen(values))
        for (name, default), given in zip(OWN.values(), own, strict=True):
            array = np.full(size, default) if given is None else as_numbers(given, name)
            if array.shape != (size,):
                raise InputError(f"{name} must have {size} numbers, one per agent")
            object.__setattr__(self, name, frozen(array))
        known = np.where(np.isnan(self.needs), 1.0, self.needs)
        check_finite(known, "the need", lambda agent: agents[agent])

    def __repr__(self) -> str:
        return f"Histograms({len(self.agents)} agents, {len(self.labels)} labels)"

    @property
    def size(self) -> int:
        """How many agents there are, k."""
        return len(self.agents)

    @property
    def distributions(self) -> Matrix:
        """Q: the share of each label among an agent's samples."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @property
    def benefits(self) -> Matrix:
        """What a sample of j is worth to i, in samples of i: q_i q_j / q_i q_i."""
        shares = self.distributions
        overlaps = shares @ shares.T
        return np.asarray(overlaps / np.diag(overlaps)[:, None])

    def assumed_needs(
        self, needs: float | Mapping[str, float] | ArrayLike | None = None
    ) -> tuple[Vector, tuple[str, ...]]:
        """Return the number of own samples each would need alone, and what was assumed for them.

        needs: one number for all, one per agent, or some by name; where left out, those of the
            file, and where it has none, as many as the agent has.
        """
        if isinstance(needs, Mapping):
            for name in needs:
                if name not in self.agents:
                    near = find_closest(str(name), self.agents)
                    meant = f"; did you mean {near}?" if near else f": {', '.join(self.agents)}"
                    raise InputError(f"{name} is not among the agents of the histograms{meant}")
            said = [needs.get(a, n) for a, n in zip(self.agents, self.needs.tolist(), strict=True)]
            wanted = np.array(said, dtype=float)
        else:
            given = as_numbers(self.needs if needs is None else needs, "needs")
            if given.shape not in ((), (self.size,)):
                raise InputError(f"needs must have {self.size} numbers, one per agent")
            wanted = np.array(np.broadcast_to(given, self.size))
        silent = np.isnan(wanted)
        check_finite(np.where(silent, 1.0, wanted), "the need", lambda agent: self.agents[agent])
        if not silent.any():
            return wanted, ()
        wanted[silent] = self.counts.sum(axis=1)[silent]
        who = (
            "every agent"
            if silent.all()
            else ", ".join(name for name, none in zip(self.agents, silent, strict=True) if none)
        )
        return wanted, (
            f"No need was given for {who}: it is ASSUMED that alone each would need as many "
            "samples as it has. Give needs to plan in earnest.",
        )

    def game(self, needs: float | Mapping[str, float] | ArrayLike | None = None) -> LinearGame:
        """Make the linear game that the histograms say.

        needs: as in assumed_needs.
        """
        wanted, _ = self.assumed_needs(needs)
        return LinearGame(
            self.benefits,
            wanted,
            agents=self.agents,
            limits=self.limits,
            minimums=self.minimums,
            costs=self.costs,
        )

    def hints_for(self, agents: Sequence[str]) -> Matrix:
        """Return the benefits in another order of agents, as the prior of fit_curves.

        agents: those of the pilots; each must have a histogram.
        """
        for name in agents:
            if name not in self.agents:
                near = find_closest(name, self.agents)
                meant = f"; is it {near}?" if near else ": add one"
                raise InputError(f"{name} has pilots and no histogram{meant}")
        order = [self.agents.index(name) for name in agents]
        return self.benefits[np.ix_(order, order)]

    @classmethod
    def load(cls, path: str | Path) -> Histograms:
        """Read HISTOGRAMS.csv, wide or long.

            agent,<label>,<label>,...[,need][,goal][,limit][,minimum][,cost]
            agent,label,count[,need][,goal][,limit][,minimum][,cost]

        An empty count is none. Need (of own samples, alone), goal, limit, minimum and cost are an
        agent's own: the same in all its lines, or empty in some.
        """
        return cls.from_rows(read_rows(path))

    @classmethod
    def from_rows(cls, rows: Rows) -> Histograms:
        """Read the rows of HISTOGRAMS.csv."""
        sheet, path = rows.to_sheet(("agent", "label", "count", *OWN), EXAMPLE), rows.path
        if "agent" not in sheet.columns:
            raise InputError(f"{path} has no column 'agent'; histograms start with {EXAMPLE}")
        agents = sheet.names("agent")
        read = _read_long if {"label", "count"} <= set(sheet.columns) else _read_wide
        labels, counts = read(sheet, agents)
        own = {
            field: sheet.own_numbers(column, agents, default)
            for column, (field, default) in OWN.items()
        }
        try:
            return cls(agents, labels, counts, **own)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def is_histograms(rows: Rows) -> bool:
    """Return whether a file's first line is that of histograms."""
    return "agent" in rows.first and not {"accuracy", "contribution"} & set(rows.first)


def _count(text: str, what: str) -> float:
    value = read_number(text, what)
    return 0.0 if np.isnan(value) else value


def _read_wide(sheet: Sheet, agents: tuple[str, ...]) -> tuple[tuple[str, ...], Matrix]:
    labels = tuple(name for name in sheet.columns if name not in ("agent", *OWN))
    if not labels:
        raise InputError(f"{sheet.path} has no column with counts of a label; add one per label")
    if len(agents) < len(sheet.lines):
        owners = sheet.column("agent")
        row = next(n for n, name in enumerate(owners) if name in owners[:n])
        raise InputError(f"{sheet.where(row)} is the second of {owners[row]}; join the two")
    counts = [
        [
            _count(cell, f"the count of {label} of {agent} in {sheet.where(row)}")
            for row, (agent, cell) in enumerate(zip(agents, sheet.column(label), strict=True))
        ]
        for label in labels
    ]
    return labels, np.array(counts).T


def _read_long(sheet: Sheet, agents: tuple[str, ...]) -> tuple[tuple[str, ...], Matrix]:
    labels = sheet.names("label")
    counts = np.full((len(agents), len(labels)), np.nan)
    rows, columns = ({name: n for n, name in enumerate(some)} for some in (agents, labels))
    cells = zip(sheet.column("agent"), sheet.column("label"), sheet.column("count"), strict=True)
    for row, (agent, label, cell) in enumerate(cells):
        place = rows[agent], columns[label]
        if not np.isnan(counts[place]):
            raise InputError(
                f"{sheet.where(row)} is the second of {agent} for the label {label!r}; join the two"
            )
        counts[place] = _count(cell, f"the count of {label} of {agent} in {sheet.where(row)}")
    return labels, np.nan_to_num(counts, nan=0.0)
