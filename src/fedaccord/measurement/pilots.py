"""Pilot trainings: who gave how much in each, and how accurate each agent's model became."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedaccord._checks import (
    Matrix,
    Vector,
    as_numbers,
    check_finite,
    fill_in,
    find_closest,
    frozen,
)
from fedaccord._io.kinds import FAILED, OWN, PILOTS, has_no_counts
from fedaccord._io.numbers import Suspicion
from fedaccord._io.rows import Rows
from fedaccord._io.sheet import LEAST_PERCENT, NUMBERED, Sheet
from fedaccord._io.table import format_table, read_rows, write_table
from fedaccord.errors import InputError
from fedaccord.wording import count, pluralize

# The smallest number that may be a limit or a validation size, in a column with another heading.
LEAST_SIZE = 10
# That an agent gives the sum of the others is no chance with as many agents and pilots as this.
LEAST_SUMMED = 3


@dataclass(frozen=True, eq=False)
class PilotTable:
    """n pilot trainings of k agents: contributions in, accuracies out.

    agents: names.
    contributions: n x k, how many samples each agent gave in each pilot.
    accuracies: n x k, each agent's accuracy on its own validation points; NaN where not measured.
    goals: the accuracy each agent wants; NaN where not known yet.
    validation: how many validation points each agent measures on; NaN where not known.
    limits: the most each agent can give; no limit where left out.
    minimums: the least each must give to take part; zero where left out.
    costs: what one sample costs each; one where left out.
    notes: what to say about how the file was read.
    places: n x k, where each accuracy stands in its file; empty where there is no file.
    names: of the pilots; numbers from 0 where left out.
    """

    agents: tuple[str, ...]
    contributions: Matrix
    accuracies: Matrix
    goals: Vector
    validation: Vector
    limits: Vector
    minimums: Vector
    costs: Vector
    notes: tuple[str, ...]
    places: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]

    def __init__(
        self,
        agents: Sequence[str],
        contributions: ArrayLike,
        accuracies: ArrayLike,
        *,
        goals: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        limits: ArrayLike | None = None,
        minimums: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        notes: Sequence[str] = (),
        places: Sequence[Sequence[str]] = (),
        names: Sequence[str] = (),
    ) -> None:
        members = _read_agents(agents)
        given = as_numbers(contributions, "contributions")
        if given.ndim != 2 or given.shape[1] != len(members):
            raise InputError(
                f"contributions must have one row per pilot and {len(members)} columns, one per "
                f"agent; got shape {given.shape}"
            )
        reached = as_numbers(accuracies, "accuracies")
        if reached.shape != given.shape:
            raise InputError(
                f"accuracies must have the shape of the contributions, {given.shape}; got "
                f"{reached.shape}"
            )
        if len(given) == 0:
            raise InputError("there are no pilots; a table needs at least one")
        named = tuple(map(str, names or range(len(given))))
        if len(set(named)) != len(given):
            raise InputError(f"names must be {len(given)} different names, one per pilot")
        check_finite(given.ravel(), "the contribution", _cell_names(members))
        _check_accuracies(reached, members)
        own = read_own(
            members,
            goals=goals,
            validation=validation,
            limits=limits,
            minimums=minimums,
            costs=costs,
        )
        values = {
            "agents": members,
            "contributions": frozen(given),
            "accuracies": frozen(reached),
            **own,
            "notes": tuple(notes),
            "places": tuple(map(tuple, places)),
            "names": named,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_box()

    def _check_box(self) -> None:
        for wrong, why in (
            (self.validation < 1, "validation size below one: leave it out where not known"),
            (self.costs == 0, "cost of zero: give every agent a cost above zero"),
            (self.minimums > self.limits, "minimum above its limit: lower one or raise the other"),
        ):
            if wrong.any():
                raise InputError(f"{self.agents[int(np.argmax(wrong))]} has a {why}")

    def __len__(self) -> int:
        return len(self.contributions)

    def __repr__(self) -> str:
        return f"PilotTable({len(self)} pilots, {self.size} agents)"

    @property
    def size(self) -> int:
        """How many agents there are, k."""
        return len(self.agents)

    @property
    def finishing(self) -> float:
        """The part of the pilots in which anybody's accuracy is known; others failed altogether."""
        return float((~np.isnan(self.accuracies).all(axis=1)).mean())

    @property
    def has_goals(self) -> bool:
        """Whether every agent has a goal."""
        return not bool(np.isnan(self.goals).any())

    def locate(self, pilot: int, agent: int) -> str:
        """Return where an accuracy stands: in its file, or the name of its pilot."""
        return self.places[pilot][agent] if self.places else f"pilot {self.names[pilot]}"

    def with_goals(self, goals: float | Mapping[str, float] | ArrayLike) -> PilotTable:
        """Return the table with other goals.

        goals: one accuracy for all, one per agent, or some by name; the others keep theirs.
        """
        if isinstance(goals, Mapping):
            named = fill_in(goals, self.agents, self.goals.tolist(), "the agents of the pilots")
            return dataclasses.replace(self, goals=named)
        values = as_numbers(goals, "goals")
        return dataclasses.replace(
            self, goals=np.full(self.size, values) if values.ndim == 0 else values
        )

    def joined(self, other: PilotTable) -> PilotTable:
        """Return one table of the pilots of both, agents matched by name.

        What is known of an agent in one table only is kept; where both know it, they must agree.

        other: pilots of the same agents.
        """
        if set(other.agents) != set(self.agents):
            stray = sorted(set(self.agents) ^ set(other.agents))[0]
            raise InputError(
                f"{stray} is in one table of pilots and not in the other: only pilots of the same "
                "agents can be joined"
            )
        order = [other.agents.index(name) for name in self.agents]
        merged: dict[str, Any] = {}
        for field, default in (OWN[column] for column in PILOTS.own):
            mine, theirs = getattr(self, field), getattr(other, field)[order]
            merged[field] = self._merge(field, mine, theirs, default)
        if self.places and other.places:
            turned = [[row[agent] for agent in order] for row in other.places]
            merged["places"] = [*self.places, *turned]
        # Two tables may both have numbered their pilots.
        clash = set(self.names) & set(other.names)
        more = continue_names(self.names, len(other)) if clash else other.names
        merged["names"] = [*self.names, *more]
        return PilotTable(
            self.agents,
            np.concatenate([self.contributions, other.contributions[:, order]]),
            np.concatenate([self.accuracies, other.accuracies[:, order]]),
            notes=[*self.notes, *other.notes],
            **merged,
        )

    def _merge(self, field: str, mine: Vector, theirs: Vector, default: float) -> Vector:
        unsaid = _is_unsaid(mine, default)
        clash = ~unsaid & ~_is_unsaid(theirs, default) & (mine != theirs)
        if clash.any():
            agent = int(np.argmax(clash))
            raise InputError(
                f"{self.agents[agent]} has {mine[agent]:g} among the {field} of one table of "
                f"pilots and {theirs[agent]:g} in the other: correct one"
            )
        return np.where(unsaid, theirs, mine)

    # Files.

    def _cells(self) -> tuple[list[str], Iterator[list[float | str]]]:
        """Return the columns of the table as a file has it, and the lines below."""
        own = {}
        for column in PILOTS.own:
            field, default = OWN[column]
            if not _is_unsaid(getattr(self, field), default).all():
                own[column] = getattr(self, field)
        failed = [bool(row.all()) for row in np.isnan(self.accuracies)]
        rows = (
            [
                self.names[pilot],
                name,
                _format_cell(self.contributions[pilot, agent]),
                "failed" if failed[pilot] else _format_cell(self.accuracies[pilot, agent]),
                *(_format_cell(values[agent]) for values in own.values()),
            ]
            for pilot in range(len(self))
            for agent, name in enumerate(self.agents)
        )
        return [*PILOTS.needed, *own], rows

    def save(self, path: str | Path) -> None:
        """Write PILOTS.csv or PILOTS.xlsx, replacing the file in one step."""
        write_table(path, *self._cells())

    def to_csv(self) -> str:
        """Return the table as CSV."""
        return format_table(*self._cells())

    @classmethod
    def load(cls, path: str | Path, *, sheet: str | None = None) -> PilotTable:
        """Read a CSV file or a workbook with a line for every agent in every pilot.

            pilot,agent,contribution,accuracy[,goal][,validation][,limit][,minimum][,cost]

        An accuracy is a share of one, empty where it was not measured, and "failed" for every agent
        of a pilot in which training failed. A pilot without any accuracy has not been run yet and
        is left out. Goal, validation (the number of validation points), limit, minimum and cost are
        an agent's own: the same in all its lines, or empty in some. Other columns are left alone.

        path: the file.
        sheet: of a workbook; the first where left out.
        """
        return cls.from_rows(read_rows(path, sheet=sheet))

    @classmethod
    def from_rows(cls, rows: Rows) -> PilotTable:
        """Read the rows of a table of pilots."""
        sheet, path = rows.to_sheet(PILOTS), rows.path
        agents, pilots = sheet.names("agent"), sheet.names("pilot")
        contributions, accuracies, places = _read_runs(sheet, pilots, agents)
        if contributions.max() <= 1:
            raise InputError(
                f"no contribution in {path} is of more than one sample: write how many samples "
                "each gave, not a fraction"
            )
        _refuse_sums(sheet, contributions, agents, places)
        _check_cells(sheet)
        done = _find_done(sheet, pilots)
        _note_failed_parts(sheet)
        _note_copies(sheet, pilots, np.hstack([contributions, accuracies]))
        own = _read_own_fields(sheet, pilots, agents)
        _doubt_unread(sheet, dict(zip(agents, contributions.max(axis=0), strict=True)))
        _check_limits(sheet, dict(zip(agents, own["limits"], strict=True)))
        for agent in np.flatnonzero(~contributions.any(axis=0) & np.isinf(own["limits"])):
            sheet.notes.append(
                f"{agents[agent]} gives nothing in any pilot of {path}: if it has no samples, give "
                "it the limit 0"
            )
        try:
            return cls(
                agents,
                contributions[done],
                accuracies[done],
                **own,
                notes=sheet.notes,
                places=places[done].tolist(),
                names=[name for name, is_done in zip(pilots, done, strict=True) if is_done],
            )
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def continue_names(names: Sequence[str], number: int) -> tuple[str, ...]:
    """Return names for more pilots: after 1 to 11 come 12 and 13, after run 7 comes run 8.

    names: of the pilots that there are.
    number: how many more.
    """
    parts = [re.fullmatch(r"(.*?)(\d+)", name, re.DOTALL) for name in names]
    last = parts[-1]
    if last is None:
        free = (name for n in itertools.count(len(names) + 1) if (name := str(n)) not in names)
        return tuple(itertools.islice(free, number))
    most = max(int(part[2]) for part in parts if part is not None and part[1] == last[1])
    return tuple(f"{last[1]}{most + n}" for n in range(1, number + 1))


def _is_unsaid(values: Vector, default: float) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(values) if np.isnan(default) else values == default)


def _read_agents(agents: Sequence[str]) -> tuple[str, ...]:
    names = () if isinstance(agents, str) else tuple(map(str, agents))
    if not names or not all(name.strip() for name in names):
        raise InputError("agents must be a list of names, none of them blank")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two agents are called {twice!r}: give each its own name")
    return names


def _check_accuracies(accuracies: Matrix, names: tuple[str, ...]) -> None:
    wrong = (accuracies < 0) | (accuracies > 1)
    if wrong.any():
        pilot, agent = np.argwhere(wrong)[0]
        value = accuracies[pilot, agent]
        raise InputError(
            f"the accuracy of {names[agent]} in pilot {pilot} is {value:g}: {_explain_share(value)}"
        )


def _explain_share(value: float) -> str:
    if LEAST_PERCENT <= value <= 100:
        return f"did you mean {value / 100:g}?"
    return "it must lie between 0 and 1"


def read_own(names: Sequence[str], **given: ArrayLike | None) -> dict[str, Vector]:
    """Return the numbers that agents have one of each, by field, or raise an InputError.

    names: of the agents.
    given: by field, one number per agent; what it is where nothing is said, where left out.
    """
    columns = {field: column for column, (field, _) in OWN.items()}
    return {name: _read_column(columns[name], values, names) for name, values in given.items()}


def _read_column(column: str, given: ArrayLike | None, names: Sequence[str]) -> Vector:
    """Return the numbers of one column, or raise an InputError.

    column: which, as tables call it.
    given: one per agent; what it is where nothing is said, where left out.
    names: of the agents.
    """
    field, default = OWN[column]
    if given is None:
        return frozen(np.full(len(names), default))
    values = as_numbers(given, field)
    if values.shape != (len(names),):
        raise InputError(f"{field} must have {len(names)} numbers, one per agent")
    if column == "goal":
        wrong = (values <= 0) | (values >= 1)
        if wrong.any():
            value = float(values[np.argmax(wrong)])
            why = "give an accuracy above 0 and below 1"
            why = _explain_share(value) if 1 < value <= 100 else why
            raise InputError(f"the goal of {names[int(np.argmax(wrong))]} is {value:g}: {why}")
    what = "the validation size" if column == "validation" else f"the {column}"
    # What stands for "not known" or "none" is no fault.
    said = np.where(_is_unsaid(values, default), 1.0, values)
    check_finite(said, what, lambda agent: names[agent])
    return frozen(values)


def _read_runs(
    sheet: Sheet, pilots: tuple[str, ...], agents: tuple[str, ...]
) -> tuple[Matrix, Matrix, NDArray[np.str_]]:
    """Turn one line per agent and pilot into matrices with one row per pilot.

    The last says where the line of each agent and pilot stands.
    """
    rows: dict[tuple[str, str], int] = {}
    shape = len(pilots), len(agents)
    contributions, accuracies = np.full(shape, np.nan), np.full(shape, np.nan)
    places = {name: n for n, name in enumerate(pilots)}, {name: n for n, name in enumerate(agents)}
    cells = zip(*(sheet.column(name) for name in ("pilot", "agent", "contribution")), strict=True)
    for row, (pilot, agent, contribution) in enumerate(cells):
        if (pilot, agent) in rows:
            remedy = f"give a repeated pilot its own number, or delete the {sheet.unit}"
            raise InputError(
                f"{sheet.where(row)} repeats {agent} in pilot {pilot} (first on {sheet.unit} "
                f"{sheet.lines[rows[pilot, agent]]}): {remedy}"
            )
        rows[pilot, agent] = row
        place = places[0][pilot], places[1][agent]
        if not contribution:
            what = sheet.describe("contribution", row)
            raise InputError(f"{what} is empty: write 0 if the agent gave nothing")
        contributions[place] = sheet.number("contribution", row)
        accuracies[place] = sheet.number("accuracy", row)
    for pilot in pilots:
        for agent in agents:
            if (pilot, agent) not in rows:
                _explain_gap(sheet, pilot, agent)
    where = [[sheet.where(rows[pilot, agent]) for agent in agents] for pilot in pilots]
    places_in_file = np.array(where)
    check_finite(
        contributions.ravel(),
        "the contribution",
        lambda n: f"{agents[n % len(agents)]} in {places_in_file.flat[n]}",
    )
    return contributions, accuracies, places_in_file


def _refuse_sums(
    sheet: Sheet, contributions: Matrix, agents: tuple[str, ...], places: NDArray[np.str_]
) -> None:
    """Refuse an agent that gives as much as all others together in every pilot, as a total does."""
    if len(agents) < LEAST_SUMMED or len(contributions) < LEAST_SUMMED:
        return
    sums = contributions.sum(axis=1)
    for agent, given in enumerate(contributions.T):
        others = np.delete(contributions, agent, axis=1)
        if (2 * given == sums).all() and np.linalg.matrix_rank(others) > 1:
            raise InputError(
                f"{agents[agent]} gives in every pilot as much as all others together (first on "
                f"{places[0, agent]}), like a total: delete all {sheet.unit}s of {agents[agent]}"
            )


def _read_own_fields(
    sheet: Sheet, pilots: Sequence[str], agents: Sequence[str]
) -> dict[str, list[float]]:
    """Return what agents have one of each; where that fails, headings may have been swapped."""
    try:
        return sheet.own_fields(agents)
    except InputError:
        if all(map(NUMBERED.fullmatch, agents)) and not any(map(NUMBERED.fullmatch, pilots)):
            raise InputError(
                f"the headings {sheet.heading('pilot')!r} and {sheet.heading('agent')!r} of "
                f"{sheet.path} seem to be swapped: {agents[0]} is an agent, and {pilots[0]} a pilot"
            ) from None
        raise


def _check_cells(sheet: Sheet) -> None:
    """Refuse cells of an agent's own that cannot be; note an accuracy without any error."""
    cells = [name for name in ("goal", "validation", "cost") if name in sheet.columns]
    for name in cells:
        for row, value in enumerate(sheet.numbers(name)):
            if name == "goal" and value in (0, 1):
                why = "give an accuracy above 0 and below 1"
                raise InputError(f"{sheet.describe(name, row)} is {value:g}: {why}")
            if name == "validation" and value < 1:
                why = "leave it empty where it is not known"
                raise InputError(f"{sheet.describe(name, row)} is {value:g}: {why}")
            if name == "cost" and value == 0:
                why = "give every agent a cost above zero"
                raise InputError(f"{sheet.describe(name, row)} is {value:g}: {why}")
    for end, question in (
        (1, "check whether the model made no error at all"),
        (0, 'write "failed" if training failed'),
    ):
        rows = [row for row, value in enumerate(sheet.numbers("accuracy")) if value == end]
        if rows:
            more = f", and {len(rows) - 1} more are" if len(rows) > 1 else ""
            said = f"{sheet.describe('accuracy', rows[0])} is {end}{more}: {question}"
            sheet.notes.append(said if end else Suspicion(said))


def _note_failed_parts(sheet: Sheet) -> None:
    """Note accuracies that failed in a pilot in which others did not: a run fails as a whole."""
    cells = list(zip(sheet.column("pilot"), sheet.column("accuracy"), strict=True))
    finished = {pilot for pilot, cell in cells if cell and cell.casefold() not in FAILED}
    rows = [
        row
        for row, (pilot, cell) in enumerate(cells)
        if pilot in finished and cell.casefold() in FAILED
    ]
    if rows:
        more = f", and {len(rows) - 1} more do" if len(rows) > 1 else ""
        sheet.notes.append(
            Suspicion(
                f"{sheet.describe('accuracy', rows[0])} reads {cells[rows[0]][1]!r}{more}, but "
                "other agents have an accuracy in the same pilot: it counts as not measured. If "
                'training failed, write "failed" for every agent of the pilot; if only the '
                "measurement failed, leave the cell empty"
            )
        )


def _note_copies(sheet: Sheet, pilots: tuple[str, ...], values: Matrix) -> None:
    """Note pilots that equal an earlier one in every number, as those that were pasted twice.

    sheet: the table.
    pilots: their names.
    values: by pilot, all contributions and all accuracies.
    """
    width = values.shape[1] // 2
    lines = dict(zip(reversed(sheet.column("pilot")), reversed(sheet.lines), strict=True))
    seen: dict[bytes, str] = {}
    copies = []
    for pilot, row in zip(pilots, values, strict=True):
        first = pilot if np.isnan(row[width:]).all() else seen.setdefault(row.tobytes(), pilot)
        if first != pilot:
            copies.append((pilot, first))
    for pilot, first in copies[:1]:
        more = f", and {len(copies) - 1} more are copies too" if len(copies) > 1 else ""
        sheet.notes.append(
            Suspicion(
                f"pilot {pilot} (from {sheet.unit} {lines[pilot]} of {sheet.path}) equals pilot "
                f"{first} (from {sheet.unit} {lines[first]}) in every contribution and every "
                f"accuracy{more}: if it was pasted twice, delete it, because copies make runs seem "
                "to scatter less than they do"
            )
        )


def _find_done(sheet: Sheet, pilots: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which pilots have been run, and note those that have not, or not for all agents."""
    owners = sheet.column("pilot")
    empty = [row for row, cell in enumerate(sheet.column("accuracy")) if not cell]
    run = {pilot for row, pilot in enumerate(owners) if sheet.column("accuracy")[row]}
    if not run:
        raise InputError(
            f"no pilot in {sheet.path} has an accuracy yet: run the pilots, fill in the column "
            'accuracy, and write "failed" where training failed'
        )
    failed = 'left out; write "failed" where training failed'
    for is_half, said in (
        (False, ("has no accuracy yet and is", "have no accuracy yet and are", failed)),
        (True, ("lacks", "lack", "the accuracy of an agent; the other accuracies count")),
    ):
        rows = [row for row in empty if (owners[row] in run) == is_half]
        if rows:
            number = len({owners[row] for row in rows})
            sheet.notes.append(
                f"{count(number, 'pilot')} in {sheet.path}, the first on {sheet.unit} "
                f"{sheet.lines[rows[0]]}, {pluralize(number, *said[:2])} {said[2]}"
            )
    return np.array([pilot in run for pilot in pilots])


def _explain_gap(sheet: Sheet, pilot: str, agent: str) -> NoReturn:
    """Refuse a table in which an agent lacks a line, or has it under another name."""
    found: dict[str, set[str]] = {}
    for run, name in zip(sheet.column("pilot"), sheet.column("agent"), strict=True):
        found.setdefault(name, set()).add(run)
    apart = [name for name in found if name != agent and not found[name] & found[agent]]
    # Two names that share all pilots between them are likely one agent; of two agents in all, each
    # may have trained alone.
    runs = set(sheet.column("pilot")) if len(found) > 2 else None
    instead = [name for name in apart if found[name] | found[agent] == runs]
    if near := find_closest(agent, apart) or (instead[0] if len(instead) == 1 else None):
        # The name that comes less often, or later, is the slip.
        order = list(found)
        pair = sorted((agent, near), key=order.index, reverse=True)
        slip, meant = sorted(pair, key=lambda name: len(found[name]))
        row = sheet.column("agent").index(slip)
        raise InputError(
            f"{sheet.where(row)} names {slip}, which is not in every pilot; did you mean {meant}?"
        )
    _suspect_pilot(sheet)
    first = sheet.lines[sheet.column("pilot").index(pilot)]
    raise InputError(
        f"pilot {pilot} in {sheet.path}, from {sheet.unit} {first}, has no {sheet.unit} for "
        f"{agent}: add one, with contribution 0 if "
        "it gave nothing and no accuracy if none was measured"
    )


def _suspect_pilot(sheet: Sheet) -> None:
    """Refuse a pilot of one agent if another pilot lacks just this agent: its name is a slip."""
    members: dict[str, set[str]] = {}
    for run, name in zip(sheet.column("pilot"), sheet.column("agent"), strict=True):
        members.setdefault(run, set()).add(name)
    everyone = set().union(*members.values())
    for single, agents in members.items():
        lacking = [run for run, among in members.items() if among == everyone - agents]
        if len(everyone) > 2 and len(agents) == 1 and lacking:
            meant = find_closest(single, lacking) or lacking[0]
            raise InputError(
                f"{sheet.where(sheet.column('pilot').index(single))} names pilot {single}, which "
                f"has no other agent; did you mean pilot {meant}, which has no {sheet.unit} for "
                f"{next(iter(agents))}?"
            )


def _doubt_unread(sheet: Sheet, largest: Mapping[str, float]) -> None:
    """Doubt a column that is not read and looks like limits, or like validation sizes.

    What is the same for all agents, as a number of rounds, looks like neither.

    sheet: the table.
    largest: the largest contribution of each agent.
    """
    for name in sheet.columns:
        if name in (*PILOTS.needed, *PILOTS.own) or has_no_counts(name):
            continue
        found: dict[str, set[float]] = {}
        with contextlib.suppress(InputError):
            for agent, value in zip(sheet.column("agent"), sheet.numbers(name), strict=True):
                if not np.isnan(value):
                    found.setdefault(agent, set()).add(value)
        if set(found) != set(largest) or any(len(values) > 1 for values in found.values()):
            continue
        owned = {agent: values.pop() for agent, values in found.items()}
        is_limit = all(owned[agent] >= most for agent, most in largest.items())
        free = [repr(one) for one in ("limit", "validation") if one not in sheet.columns]
        if (
            free
            and len(set(owned.values())) > 1
            and (is_limit or min(owned.values()) >= LEAST_SIZE)
        ):
            said = (
                f"the column {name!r} of {sheet.path} has one whole number for each agent, and is"
            )
            sheet.notes.append(
                Suspicion(f"{said} not read: call it {' or '.join(free)} if it is that")
            )


def _check_limits(sheet: Sheet, limits: Mapping[str, float]) -> None:
    for row, agent in enumerate(sheet.column("agent")):
        if sheet.number("contribution", row) > limits[agent]:
            raise InputError(
                f"{sheet.describe('contribution', row)} is {sheet.number('contribution', row):g}, "
                f"above its limit of {limits[agent]:g}: correct one of them, or set a limit for "
                "plans alone with --limit"
            )


def _cell_names(names: tuple[str, ...]) -> Callable[[int], str]:
    """Return what says where a number stands that is the n-th of a table, pilot by pilot."""
    return lambda n: f"{names[n % len(names)]} in pilot {n // len(names)}"


def _format_cell(value: float) -> float | str:
    """Return a number for a cell, whole if it is, and nothing where there is none."""
    if not np.isfinite(value):
        return ""
    return int(value) if value.is_integer() and value < 2**53 else float(value)
