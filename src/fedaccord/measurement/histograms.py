"""Label histograms: what a sample of one agent is worth to another, with no training at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import (
    Matrix,
    Vector,
    as_numbers,
    check_finite,
    fill_in,
    find_closest,
    find_slip,
    frozen,
)
from fedaccord._io.kinds import HISTOGRAMS
from fedaccord._io.numbers import Suspicion
from fedaccord._io.rows import Rows
from fedaccord._io.table import read_rows
from fedaccord.errors import InputError
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.measurement.label_counts import SWAP, read_counts, refuse_twice
from fedaccord.measurement.pilots import read_own
from fedaccord.wording import capitalize_first, count, name_few, pluralize

# With more agents than this, what each is worth to each is not written down.
DENSE = 1_000
# The most labels that a note names.
MOST_NAMED = 12
WORTH = (
    "What a sample is worth to another agent is computed from how alike the two agents' labels "
    "are. This assumes that samples with the same label are alike for all agents."
)


@dataclass(frozen=True, eq=False)
class Histograms:
    """How many samples of each label every agent has; none at all for one that only receives.

    agents: names.
    labels: names.
    counts: k x labels.
    needs: how many own samples each would need alone; NaN where not said.
    goals: the accuracy each wants; NaN where not said.
    validation: how many validation samples each has, for pilots; NaN where not said.
    limits: the most each can give; no limit where left out.
    minimums: the least each must give to take part; zero where left out.
    costs: what one sample costs each; one where left out.
    notes: what to say about how the file was read.
    """

    agents: tuple[str, ...]
    labels: tuple[str, ...]
    counts: Matrix
    needs: Vector
    goals: Vector
    validation: Vector
    limits: Vector
    minimums: Vector
    costs: Vector
    notes: tuple[str, ...]

    def __init__(
        self,
        agents: Sequence[str],
        labels: Sequence[str],
        counts: ArrayLike,
        *,
        needs: ArrayLike | None = None,
        goals: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        limits: ArrayLike | None = None,
        minimums: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        notes: Sequence[str] = (),
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
        if not values.any():
            raise InputError("no agent has samples of any label; give the counts of one at least")
        own: dict[str, Any] = {
            "agents": tuple(agents),
            "labels": tuple(labels),
            "counts": frozen(values),
            **read_own(
                agents,
                needs=needs,
                goals=goals,
                validation=validation,
                limits=limits,
                minimums=minimums,
                costs=costs,
            ),
            "notes": tuple(notes),
        }
        # Who has nothing can give nothing.
        empty = ~values.any(axis=1) & np.isinf(own["limits"])
        own["limits"] = frozen(np.where(empty, 0.0, own["limits"]))
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Histograms({len(self.agents)} agents, {len(self.labels)} labels)"

    @property
    def size(self) -> int:
        """How many agents there are, k."""
        return len(self.agents)

    @property
    def distributions(self) -> Matrix:
        """Q: the share of each label among an agent's samples, or among all where it has none."""
        everyone = self.counts.sum(axis=0)
        counts = np.where(self.counts.any(axis=1, keepdims=True), self.counts, everyone)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

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
            wanted = fill_in(
                needs, self.agents, self.needs.tolist(), "the agents of the histograms"
            )
        else:
            given = as_numbers(self.needs if needs is None else needs, "needs")
            if given.shape not in ((), (self.size,)):
                raise InputError(f"needs must have {self.size} numbers, one per agent")
            wanted = np.array(np.broadcast_to(given, self.size))
        silent = np.isnan(wanted)
        check_finite(np.where(silent, 1.0, wanted), "the need", lambda agent: self.agents[agent])
        empty = self.counts.sum(axis=1) == 0
        said = []
        if silent.any():
            wanted[silent] = self.counts.sum(axis=1)[silent]
            who = "every agent" if silent.all() else self._list(silent)
            said.append(
                f"No need was given for {who}. The plan assumes that alone each would need as many "
                "samples as it has. State the needs before you use the plan."
            )
        if empty.any():
            said.append(
                f"Agents without samples ({self._list(empty)}): the plan assumes that they need "
                "the mix of labels that all agents have together."
            )
        return wanted, tuple(said)

    def _list(self, chosen: NDArray[np.bool_]) -> str:
        return ", ".join(name for name, one in zip(self.agents, chosen, strict=True) if one)

    def game(self, needs: float | Mapping[str, float] | ArrayLike | None = None) -> LinearGame:
        """Make the linear game that the histograms say.

        needs: as in assumed_needs.
        """
        wanted, _ = self.assumed_needs(needs)
        return LinearGame(self.benefits, wanted, **self._frame)

    def planning_game(
        self, needs: float | Mapping[str, float] | ArrayLike | None = None
    ) -> tuple[LinearGame, tuple[str, ...]]:
        """Make the game to plan from, without a matrix of benefits where that would be too large.

        Return it with sentences on what is assumed.

        needs: as in assumed_needs.
        """
        wanted, assumed = self.assumed_needs(needs)
        doubted = (n for n in self.notes if isinstance(n, Suspicion) or " withheld: " in n)
        said = (*assumed, WORTH, *(f"{capitalize_first(note)}." for note in doubted))
        if self.size <= DENSE:
            return LinearGame(self.benefits, wanted, **self._frame), said
        # The same game, each row of W times q_i.q_i: W = Q Q' is never formed, and is symmetric.
        shares = self.distributions
        return DiscoveryGame(shares, wanted * (shares * shares).sum(axis=1), **self._frame), said

    @property
    def _frame(self) -> dict[str, Any]:
        fields = ("agents", "limits", "minimums", "costs")
        return {name: getattr(self, name) for name in fields}

    def hints_for(self, agents: Sequence[str]) -> Matrix:
        """Return the benefits in another order of agents, as the prior of fit_curves.

        agents: those of the pilots; each must have a histogram.
        """
        for name in agents:
            if name not in self.agents and name in self.labels:
                raise InputError(f"{name} has pilots, and is a label of the histograms: {SWAP}")
            if name not in self.agents:
                near = find_closest(name, self.agents)
                meant = f"; is it {near}?" if near else ": add one"
                raise InputError(f"{name} has pilots and no histogram{meant}")
        for name in self.agents:
            if name not in agents and (near := find_slip(name, agents)):
                raise InputError(
                    f"{name} has a histogram and no pilots; did you mean {near}? Correct the name, "
                    "or leave the histogram out"
                )
        order = [self.agents.index(name) for name in agents]
        return self.benefits[np.ix_(order, order)]

    @classmethod
    def load(cls, path: str | Path, *, sheet: str | None = None) -> Histograms:
        """Read a CSV file or a workbook, wide or long.

            agent,<label>,<label>,...[,need][,goal][,validation][,limit][,minimum][,cost]
            agent,label,count[,need][,goal][,validation][,limit][,minimum][,cost]

        An empty count is none, and one such as <11 the middle of what it can be. Need (of own
        samples, alone), goal, validation, limit, minimum and cost are an agent's own: the same in
        all its lines, or empty in some.

        path: the file.
        sheet: of a workbook; the first where left out.
        """
        return cls.from_rows(read_rows(path, sheet=sheet))

    @classmethod
    def from_rows(cls, rows: Rows) -> Histograms:
        """Read the rows of a table of histograms."""
        sheet = rows.to_sheet(HISTOGRAMS)
        agents = sheet.names("agent")
        refuse_twice(sheet)
        own = sheet.own_fields(agents)
        labels, counts = read_counts(sheet, agents, own["limits"])
        said = (
            f"read {count(len(agents), 'agent')} and {count(len(labels), 'label')} from "
            f"{rows.path}: the {pluralize(len(agents), 'agent')} {name_few(agents, MOST_NAMED)}, "
            f"and the {pluralize(len(labels), 'label')} {name_few(labels, MOST_NAMED)}"
        )
        try:
            return cls(agents, labels, counts, **own, notes=[said, *sheet.notes])
        except InputError as error:
            raise InputError(f"{rows.path}: {error}") from None
