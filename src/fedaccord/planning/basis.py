"""What a plan is made from: a table of pilots, label histograms, a game or a federation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from fedaccord._checks import clean_name, fill_in
from fedaccord._io.numbers import Marks, read_number, read_share, shorten
from fedaccord.errors import InputError, UnreachableError
from fedaccord.wording import join_with_and, pluralize

if TYPE_CHECKING:
    from fedaccord._io.rows import Rows
    from fedaccord.games.base import Game
    from fedaccord.games.linear import LinearGame
    from fedaccord.games.rows import RowGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.measurement.measures import GoalsMeasurement
    from fedaccord.measurement.pilots import PilotTable

Kind: TypeAlias = Literal["config", "pilots", "measures", "histograms", "game"]
# The most headings that a message lists.
HEADS = 8
# Takes sentences on how a file was read.
Note: TypeAlias = Callable[[Sequence[str]], None]
# The options whose numbers are shares of one, which people also write in per cent.
SHARES = ("--goal", "--kept-worth")
Basis = TypeVar("Basis", bound="Measurement | GoalsMeasurement | Game")


@dataclass(frozen=True)
class Wanted:
    """Numbers of an option: one for all agents, some by name, or both.

    everyone: for all agents that are not named; None where only names were given.
    named: by name.
    """

    everyone: float | None
    named: Mapping[str, float]

    @classmethod
    def read(cls, given: Sequence[str] | None, option: str) -> Wanted | None:
        """Read X, or NAME=X any number of times; None where nothing was given.

        given: the texts.
        option: its name, for messages.
        """
        if not given:
            return None
        everyone: float | None = None
        named: dict[str, float] = {}
        for text in given:
            name, sign, value = (part.strip() for part in text.rpartition("="))
            if sign and name and not value:
                raise InputError(
                    f'{option} "{text}" has no number for {name}: write it after the equals sign, '
                    f"or leave {name} out"
                )
            name = clean_name(name)
            number = _read_number(value if name or not sign else "", text, option)
            if not sign and everyone is not None:
                raise InputError(f"{option} has two numbers for all; give one, or NAME=X for some")
            if sign and name in named:
                raise InputError(f"{option} names {name} twice; give it once")
            if sign:
                named[name] = number
            else:
                everyone = number
        return cls(everyone, named)

    def check_whole(self, option: str) -> Wanted:
        """Return the numbers if all are whole, as in tables, or raise an InputError."""
        for name, number in [("", self.everyone), *self.named.items()]:
            if number is not None and number % 1:
                raise InputError(
                    f'{option} "{name}{"=" if name else ""}{number:.15g}": write a whole number'
                )
        return self

    def among(self, agents: Sequence[str], otherwise: Sequence[float]) -> list[float]:
        """Return a number for each of some agents.

        agents: their names.
        otherwise: what each has by default.
        """
        usual = otherwise if self.everyone is None else [self.everyone] * len(agents)
        return list(fill_in(self.named, agents, usual, "the agents").tolist())


def _read_number(value: str, text: str, option: str) -> float:
    """Read the number of an option by the rules for numbers in tables, or raise an InputError."""
    what = f'{option} "{text}"'
    if not re.search(r"[0-9]", value):
        raise InputError(f"{what} must be a number, or read NAME=X, as in City=1")
    if option not in SHARES and value.endswith("%"):
        raise InputError(f"{what} is in per cent: write a number of samples")
    read = read_share if option in SHARES else read_number
    number = read(value, what, Marks())
    if not math.isfinite(number):
        raise InputError(f"{what} must be a number, or read NAME=X, as in City=1")
    return number


@dataclass(frozen=True)
class Source:
    """A file to plan from, which is read only once because it may be a pipe.

    kind: what it is.
    path: where it is; None for the built-in federation.
    rows: of a table of pilots or histograms.
    data: the object of a game whose name does not end in .json.
    """

    kind: Kind
    path: str | None
    rows: Rows | None = None
    data: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, path: str | None, sheet: str | None = None) -> Source:
        """Read a file and find what it is; the built-in federation where there is none."""
        if sheet is not None and (path is None or path.endswith((".toml", ".json"))):
            raise InputError("--sheet names a sheet of a workbook, an .xlsx file; leave it out")
        if path is None or path.endswith(".toml"):
            return cls("config", path)
        if path.endswith(".json"):
            found = _find_statistics(path)
            return cls("game", path) if found is None else cls("histograms", path, found)
        from fedaccord._io.kinds import HISTOGRAMS, PILOTS, PROPOSAL
        from fedaccord._io.table import read_rows_or_json

        rows = read_rows_or_json(path, sheet=sheet)
        if isinstance(rows, dict):
            return cls("game", path, data=rows)
        if rows.has_measures:
            return cls("measures", path, rows)
        if rows.kind is PILOTS:
            return cls("pilots", path, rows)
        if rows.kind is HISTOGRAMS:
            return cls("histograms", path, rows)
        if rows.kind is PROPOSAL:
            raise InputError(
                f"{path} is {PROPOSAL.title}, and plans are made from pilots or label histograms: "
                f"{PROPOSAL.use.format(path=path)}"
            )
        heads = shorten(", ".join(filter(None, rows.cells[0]))) if rows.cells else ""
        named = f"{path}{f', which has the headings {heads},' if heads else ''}"
        if (heading := rows.find_names()) is not None:
            raise InputError(
                f"{named} has no column 'agent': rename {heading!r} in {rows.unit} "
                f"{rows.lines[0]} to agent if it has the names of the agents"
            )
        raise InputError(
            f"{named} is neither a table of "
            "pilots (pilot,agent,contribution,accuracy) nor one of "
            "label histograms (agent,<label>,... or agent,label,count); a federation ends in "
            f".toml, a game in .json{_suggest_headings(rows)}"
        )


def _suggest_headings(rows: Rows) -> str:
    """Return which headings to rename, where a table has as many columns as one of pilots."""
    from fedaccord._io.kinds import PILOTS

    heads = rows.cells[0] if rows.cells else []
    unknown = [head for head in heads if head and PILOTS.find_column(head) is None]
    if len(heads) < len(PILOTS.needed) or not unknown:
        return ""
    known = {PILOTS.find_column(head) for head in heads}
    wanted = [column for column in PILOTS.needed if column not in known]
    return (
        f". If it is a table of pilots, rename headings in {rows.unit} {rows.lines[0]} to "
        f"{join_with_and(wanted)}; {join_with_and([repr(head) for head in unknown[:HEADS]])} "
        f"{pluralize(len(unknown), 'is', 'are')} not known"
    )


def _find_statistics(path: str) -> Rows | None:
    """Return the label histograms of a file of NVFlare's, None if it is another."""
    from fedaccord._io.files import read_text
    from fedaccord._io.nvflare import find_statistics

    try:
        text = read_text(path)
    except InputError:
        # Whoever reads the game says what is wrong.
        return None
    return find_statistics(text, path)


def read_pilots(rows: Rows, goals: Wanted | None, *, note: Note) -> PilotTable:
    """Return a table of pilots in which every agent has a goal.

    rows: of the table.
    goals: in place of the table's own.
    note: takes the sentences on how the file was read.
    """
    from fedaccord._io.kinds import PILOTS
    from fedaccord._io.numbers import Suspicion
    from fedaccord.measurement.pilots import PilotTable

    table = PilotTable.from_rows(rows)
    # A suspicion becomes a doubt of the plan.
    note([one for one in table.notes if not isinstance(one, Suspicion)])
    if goals is not None:
        table = table.with_goals(goals.among(table.agents, table.goals.tolist()))
    without = [n for n, goal in zip(table.agents, table.goals, strict=True) if math.isnan(goal)]
    if len(without) == len(table.agents):
        raise InputError(
            f"{rows.path} has no goals: add a column goal, with the accuracy that each agent "
            "wants, or add --goal 0.8 for all agents"
        )
    if without:
        goal = next((head for head in rows.cells[0] if PILOTS.find_column(head) == "goal"), "goal")
        raise InputError(
            f"{without[0]} has no goal in {rows.path}: fill in the column {goal!r}, or add "
            f'--goal "{without[0]}=0.8"'
        )
    return table


def read_histograms(
    rows: Rows, needs: Wanted | None, *, note: Note
) -> tuple[LinearGame, tuple[str, ...]]:
    """Return the game of label histograms, and sentences on what was assumed.

    rows: of the histograms.
    needs: the samples that each agent needs alone, in place of the file's.
    note: takes the sentences on how the file was read.
    """
    from fedaccord.measurement.histograms import Histograms

    found = Histograms.from_rows(rows)
    note(found.notes)
    asked = None if needs is None else needs.among(found.agents, found.needs.tolist())
    return found.planning_game(asked)


def read_priced_game(
    path: str, goals: Wanted | None, data: Mapping[str, Any] | None = None
) -> LinearGame | RowGame:
    """Return a game whose costs can be shared: linear, measured, of several goals, or with harm.

    path: of the game.
    goals: in place of the game's own.
    data: the object in the file, if it was read already.
    """
    from fedaccord.games.rows import RowGame

    game = _read_game(path, data)
    return game if goals is None and isinstance(game, RowGame) else _set_goals(game, path, goals)


def read_linear_game(
    path: str, goals: Wanted | None, data: Mapping[str, Any] | None = None
) -> LinearGame:
    """Return a linear or a measured game.

    path: of the game.
    goals: in place of the game's own.
    data: the object in the file, if it was read already.
    """
    return _set_goals(_read_game(path, data), path, goals)


def _read_game(path: str, data: Mapping[str, Any] | None) -> Game:
    from fedaccord.games.files import game_of_file, read_game

    try:
        return read_game(path) if data is None else game_of_file(path, data)
    except UnreachableError as error:
        # No plan was looked for: the file itself is at fault.
        raise InputError(str(error)) from None


def _set_goals(game: Game, path: str, goals: Wanted | None) -> LinearGame:
    from fedaccord.games.linear import LinearGame
    from fedaccord.games.measured import MeasuredGame

    if not isinstance(game, LinearGame):
        raise InputError(
            f"{path} is a {game.model} game, and plans need a linear or a measured game: "
            "'fedaccord solve' solves it"
        )
    if goals is None:
        return game
    if not isinstance(game, MeasuredGame):
        raise InputError("--goal is for accuracies, and this game has none; leave it out")
    names = [game.name(i) for i in range(game.size)]
    return game.replace(goals=goals.among(names, game.goals.tolist()))


def set_limits(basis: Basis, limits: Wanted | None) -> Basis:
    """Return what to plan from, with other limits; pilots may have used more samples.

    basis: a game, or what pilots measured.
    limits: the most samples that agents can give from now on, in place of their own limits.
    """
    if limits is None:
        return basis
    from fedaccord.games.base import Game
    from fedaccord.measurement.measures import GoalsMeasurement

    if isinstance(basis, GoalsMeasurement):
        fits = {name: set_limits(one, limits) for name, one in basis.measurements.items()}
        return replace(basis, measurements=fits)
    if isinstance(basis, Game):
        names = [basis.name(i) for i in range(basis.size)]
        return basis.replace(limits=limits.among(names, basis.limits.tolist()))
    table = basis.table
    chosen = np.array(limits.check_whole("--limit").among(table.agents, table.limits.tolist()))
    return replace(basis, table=replace(table, limits=chosen))
