"""What a plan can be made of: a federation, pilots, label histograms, or a game as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fedaccord.cli.configs import chosen_algorithms, read_config
from fedaccord.cli.present import check_folder
from fedaccord.cli.runs import chosen_engine, kept_on_interrupt, source_of
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedaccord._io.csv import Rows
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.measurement.histograms import Histograms

Kind: TypeAlias = Literal["config", "pilots", "histograms", "game"]

# With more agents than this, what each is worth to each is not written down.
DENSE = 1_000
WORTH = (
    "What a sample is worth to another agent is taken from how alike their labels are, q_i.q_j / "
    "q_i.q_i for shares q of labels: that cases with the same label are alike from agent to agent "
    "is ASSUMED."
)


@dataclass(frozen=True)
class Wanted:
    """Numbers asked for on the command line: one for all, some by name, or both.

    everyone: for all who are not named; None where only names were given.
    named: by name.
    """

    everyone: float | None
    named: Mapping[str, float]

    @classmethod
    def read(cls, given: Sequence[str] | None, option: str) -> Wanted | None:
        """Read X, or NAME=X as often as there are names; None where nothing was given.

        given: the texts.
        option: that they were given with, for messages.
        """
        if not given:
            return None
        everyone: float | None = None
        named: dict[str, float] = {}
        for text in given:
            name, sign, value = (part.strip() for part in text.rpartition("="))
            number = _number(value if name or not sign else "", text, option)
            if not sign and everyone is not None:
                raise InputError(f"{option} has two numbers for all; give one, or NAME=X for some")
            if sign and name in named:
                raise InputError(f"{option} names {name} twice; give it once")
            if sign:
                named[name] = number
            else:
                everyone = number
        return cls(everyone, named)

    def among(self, agents: Sequence[str], otherwise: Sequence[float]) -> list[float]:
        """Give a number for each of some agents.

        agents: their names.
        otherwise: what each has where nothing was asked for it.
        """
        from fedaccord._checks import find_closest

        for name in self.named:
            if name not in agents:
                near = find_closest(name, agents)
                known = ", ".join(agents[:20]) + ("..." if len(agents) > 20 else "")
                meant = f"; did you mean {near}?" if near else f"; they are: {known}"
                raise InputError(f"{name} is not among the agents{meant}")
        usual = otherwise if self.everyone is None else [self.everyone] * len(agents)
        return [self.named.get(name, float(own)) for name, own in zip(agents, usual, strict=True)]


def _number(value: str, text: str, option: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f'{option} "{text}" must be a number, or read NAME=X, as in City=0.8')
    return number


@dataclass(frozen=True)
class Source:
    """A file to plan from, read at most once: it may be a pipe.

    kind: what it is.
    path: where it is; None for the built-in federation.
    rows: of a table of pilots or histograms.
    """

    kind: Kind
    path: str | None
    rows: Rows | None = None

    @classmethod
    def read(cls, path: str | None) -> Source:
        """Tell by its content what a file is; the built-in federation where there is none."""
        if path is None or path.endswith(".toml"):
            return cls("config", path)
        if path.endswith(".json"):
            return cls("game", path)
        from fedaccord._io.csv import read_rows
        from fedaccord.measurement.histograms import is_histograms
        from fedaccord.measurement.pilots import is_pilot_table

        rows = read_rows(path)
        if is_pilot_table(rows):
            return cls("pilots", path, rows)
        if is_histograms(rows):
            return cls("histograms", path, rows)
        raise InputError(
            f"{path} is neither a table of pilots (pilot,agent,contribution,accuracy) nor one of "
            "label histograms (agent,<label>,... or agent,label,count); a federation ends in "
            ".toml, a game in .json"
        )


def read_histograms(path: str) -> Histograms:
    """Read label histograms."""
    from fedaccord.measurement.histograms import Histograms

    return Histograms.load(path)


# From pilots.


def from_pilots(
    rows: Rows, goals: Wanted | None, *, prior: Histograms | None, seed: int
) -> Measurement:
    """Fit curves to a table of pilots.

    rows: of the table.
    goals: in place of the table's own.
    prior: label histograms beside it.
    seed: of the resamples.
    """
    from fedaccord.measurement.fit import fit_curves
    from fedaccord.measurement.pilots import PilotTable

    table = PilotTable.from_rows(rows)
    if goals is not None:
        table = table.with_goals(goals.among(table.agents, table.goals.tolist()))
    for name, goal in zip(table.agents, table.goals.tolist(), strict=True):
        if math.isnan(goal):
            raise InputError(
                f"{name} has no goal: add --goal 0.8, or --goal NAME=0.8, or a column goal"
            )
    hints = None if prior is None else prior.hints_for(table.agents)
    with progress("fitting learning curves"):
        return fit_curves(table, seed=seed, prior=hints)


# Without training.


def from_histograms(rows: Rows, needs: Wanted | None) -> tuple[LinearGame, tuple[str, ...]]:
    """Make the game that label histograms say, with sentences on what is assumed.

    rows: of the histograms.
    needs: how many samples each would need alone, in place of the file's.
    """
    from fedaccord.measurement.histograms import Histograms

    found = Histograms.from_rows(rows)
    asked = None if needs is None else needs.among(found.agents, found.needs.tolist())
    wanted, assumed = found.assumed_needs(asked)
    if found.size <= DENSE:
        return found.game(asked), (*assumed, WORTH)
    from fedaccord.games.linear import DiscoveryGame

    # The same game, each row of W times q_i.q_i: W = Q Q' is never formed, and is symmetric.
    shares = found.distributions
    game = DiscoveryGame(
        shares,
        wanted * (shares * shares).sum(axis=1),
        agents=found.agents,
        limits=found.limits,
        minimums=found.minimums,
        costs=found.costs,
    )
    return game, (*assumed, WORTH)


def from_game(path: str, goals: Wanted | None) -> LinearGame:
    """Read a linear or a measured game.

    path: of the game.
    goals: in place of the game's own.
    """
    from fedaccord.games.files import read_game
    from fedaccord.games.linear import LinearGame
    from fedaccord.games.measured import MeasuredGame

    game = read_game(path)
    if not isinstance(game, LinearGame):
        raise InputError(
            f"{path} is a {game.model} game, and plans are made of linear and measured ones: "
            "'fedaccord solve' solves it"
        )
    if goals is None:
        return game
    if not isinstance(game, MeasuredGame):
        raise InputError("--goal is for accuracies, and this game knows of none; leave it out")
    names = [game.name(i) for i in range(game.size)]
    return game.replace(goals=goals.among(names, game.goals.tolist()))


# From a federation.


@dataclass(frozen=True)
class Training:
    """How pilots of a federation are to be made, as it was asked for.

    algorithm: its name; the config's first where left out.
    budget: how many pilots.
    results: the file that keeps runs.
    workers, engine, address: where they are made.
    cache: the folder for scores and weights.
    """

    algorithm: str | None
    budget: int | None
    results: str
    workers: int | None
    engine: str
    address: str | None
    cache: str | None

    def stray(self) -> str | None:
        """Name an option that was given and is for federations only, if there is one."""
        given = {
            "--algorithm": self.algorithm,
            "--budget": self.budget,
            "--workers": self.workers,
            "--address": self.address,
            "--engine": None if self.engine == "local" else self.engine,
        }
        return next((name for name, value in given.items() if value is not None), None)


def from_federation(
    path: str | None,
    goals: Wanted | None,
    *,
    training: Training,
    prior: Histograms | None,
    seed: int,
) -> Measurement:
    """Make the pilots that are missing, showing how far things are; Ctrl-C says what is kept.

    path: of the config; None for the built-in one.
    goals: in place of the config's own.
    training: how pilots are made.
    prior: label histograms beside it.
    seed: of deals, pilots and resamples.
    """
    config = read_config(path)
    names = None if training.algorithm is None else [training.algorithm]
    title, algorithm = next(iter(chosen_algorithms(config, names, path=path).items()))
    check_folder(training.results, "--results")
    make_engine, workers = chosen_engine(training.engine, training.workers, training.address)
    source = source_of(config, seed, results=training.results, cache=training.cache)
    asked = None if goals is None else goals.among(source.names, source.requirements.tolist())

    from fedaccord.planning.from_federation import from_federation as measured
    from fedaccord.report.live import counted

    count = _Count(training.results, title)
    with kept_on_interrupt(training.results), counted(f"training pilots of {title}") as show:
        return measured(
            source,
            algorithm,
            budget=training.budget,
            goals=asked,
            seed=seed,
            store=training.results,
            workers=workers,
            engine=make_engine,
            progress=count.telling(show),
            histograms=prior,
        )


class _Count:
    """Says once how many pilots there are to make.

    results: the file that keeps them.
    algorithm: that they are made with.
    """

    def __init__(self, results: str, algorithm: str) -> None:
        self._apart = f", less those that are in {results} already" * Path(results).exists()
        self._algorithm = algorithm
        self._told = False

    def telling(self, show: Callable[[int, int], None]) -> Callable[[int, int], None]:
        """Give what is told of progress: says how many there are, and shows how far they are."""

        def told(done: int, total: int) -> None:
            if not self._told:
                pilots = "1 pilot" if total == 1 else f"{total:,} pilots"
                complain(f"{pilots} of {self._algorithm} to train{self._apart}")
            self._told = True
            show(done, total)

        return told
