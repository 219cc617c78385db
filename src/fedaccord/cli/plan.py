"""The command plan: who gives how much, so that nobody could give less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from fedaccord._checks import fill_in
from fedaccord.cli.app import (
    app,
    check_destination,
    check_folder,
    check_report,
    check_time_limit,
    command_line,
    complain_of,
    describe_files,
    present,
)
from fedaccord.cli.options import (
    RESULTS,
    Address,
    AsJson,
    CacheFolder,
    EngineName,
    ReportFile,
    Results,
    SheetName,
    Workers,
    build_source,
    choose_algorithms,
    choose_engine,
    explain_interrupt,
    read_config,
)
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.config.sections import override
from fedaccord.report.terminal import complain, interruptible, progress, show_count
from fedaccord.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedaccord._io.table import Rows
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.measurement.histograms import Histograms
    from fedaccord.planning.result import Plan
    from fedaccord.report.model import Page

Kind: TypeAlias = Literal["config", "pilots", "histograms", "game"]

# What files that are saved may end in.
SUFFIXES = {
    "--save": (".json", ".csv", ".xlsx"),
    "--save-game": (".json",),
    "--save-pilots": (".csv", ".xlsx"),
}
Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="CONFIG.toml (a federation), PILOT.csv, HISTOGRAMS.csv or GAME.json. Default: the "
        "federation of handwritten digits.",
    ),
]
Goals = Annotated[
    list[str] | None,
    typer.Option(metavar="X|NAME=X", help="The accuracy wanted, by all or by one; may repeat."),
]
Needs = Annotated[
    list[str] | None,
    typer.Option(metavar="N|NAME=N", help="For histograms: samples needed alone; may repeat."),
]
Probability = Annotated[
    float, typer.Option(metavar="P", help="That all reach their goals in one run.")
]
Judgement = Annotated[
    str,
    typer.Option(
        "--judged",
        help="true: goals are about the model's true accuracy. measured: about one measurement.",
    ),
]
Preference = Annotated[
    str, typer.Option(help="total: the cheapest equilibrium. firm: where a cut is felt most.")
]
HistogramsFile = Annotated[
    str | None,
    typer.Option(metavar="HISTOGRAMS.csv", help="Beside pilots, for what those leave open."),
]
AlgorithmName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a federation: what trains. Default: its first."),
]
Budget = Annotated[
    int | None, typer.Option(metavar="N", help="Of a federation: how many pilots to train.")
]
TimeLimit = Annotated[float, typer.Option(metavar="SECONDS", help="The most time for each solver.")]
Save = Annotated[
    str | None,
    typer.Option(metavar="PLAN.(json|csv|xlsx)", help="Write the plan for check, train and audit."),
]
SaveGame = Annotated[
    str | None, typer.Option(metavar="GAME.json", help="Write the game that was planned for.")
]
SavePilots = Annotated[
    str | None, typer.Option(metavar="PILOT.csv", help="Write the table of pilots.")
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Of pilots and resamples.")]


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

    def among(self, agents: Sequence[str], otherwise: Sequence[float]) -> list[float]:
        """Return a number for each of some agents.

        agents: their names.
        otherwise: what each has where nothing was asked for it.
        """
        usual = otherwise if self.everyone is None else [self.everyone] * len(agents)
        return list(fill_in(self.named, agents, usual, "the agents").tolist())


def _read_number(value: str, text: str, option: str) -> float:
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
    def read(cls, path: str | None, sheet: str | None = None) -> Source:
        """Read a file and find what it is; the built-in federation where there is none."""
        if sheet is not None and (path is None or path.endswith((".toml", ".json"))):
            raise InputError("--sheet names a sheet of a workbook, an .xlsx file; leave it out")
        if path is None or path.endswith(".toml"):
            return cls("config", path)
        if path.endswith(".json"):
            return cls("game", path)
        from fedaccord._io.table import HISTOGRAMS, PILOTS, PROPOSAL, read_rows

        rows = read_rows(path, sheet=sheet)
        if rows.kind is PILOTS:
            return cls("pilots", path, rows)
        if rows.kind is HISTOGRAMS:
            return cls("histograms", path, rows)
        if rows.kind is PROPOSAL:
            raise InputError(
                f"{path} is {PROPOSAL.title}, and plans are made from pilots or label histograms: "
                f"{PROPOSAL.use.format(path=path)}"
            )
        raise InputError(
            f"{path} is neither a table of pilots (pilot,agent,contribution,accuracy) nor one of "
            "label histograms (agent,<label>,... or agent,label,count); a federation ends in "
            ".toml, a game in .json"
        )


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

    def find_stray(self) -> str | None:
        """Return an option that was given and is for federations only, if there is one."""
        given = {
            "--algorithm": self.algorithm,
            "--budget": self.budget,
            "--workers": self.workers,
            "--address": self.address,
            "--engine": None if self.engine == "local" else self.engine,
        }
        return next((name for name, value in given.items() if value is not None), None)


@app.command()
def plan(
    subject: Subject = None,
    goal: Goals = None,
    probability: Probability = 0.95,
    judged: Judgement = "true",
    prefer: Preference = "total",
    histograms: HistogramsFile = None,
    sheet: SheetName = None,
    need: Needs = None,
    algorithm: AlgorithmName = None,
    budget: Budget = None,
    time_limit: TimeLimit = 60.0,
    results: Results = RESULTS,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    save: Save = None,
    save_game: SaveGame = None,
    save_pilots: SavePilots = None,
    seed: Seed = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> int:
    """Plan who gives how much, so that nobody could give less and all reach their goals.

    FILE is a CONFIG.toml (a federation; by default that of handwritten digits), a PILOT.csv, a
    HISTOGRAMS.csv or a GAME.json. Of a federation it first trains pilots, and keeps every finished
    one: the same command goes on where it was stopped. Exits 0 with a plan that has the
    probability asked for, 1 when there is none: a goal is out of reach, or the probability is.
    """
    goals, needs = Wanted.read(goal, "--goal"), Wanted.read(need, "--need")
    _check_wanted(probability, judged, prefer, time_limit)
    training = Training(algorithm, budget, results, workers, engine, address, cache)
    saved = {"--save": save, "--save-game": save_game, "--save-pilots": save_pilots}
    _check_files(saved, report, keep=(subject, histograms))
    source = Source.read(subject, sheet)
    _check_fit(source.kind, goals, needs, training, histograms=histograms, save_pilots=save_pilots)
    start = _choose_seed(source, seed)
    try:
        basis, assumed = _find_basis(source, goals, needs, histograms, training, start)
    except UnreachableError as error:
        complain(f"there is no plan: {error}")
        return 1
    from fedaccord.planning.plan import make_plan

    # Solvers in machine code would not look at an interrupt until they are done, and nothing that
    # took long is lost.
    with progress("planning"), interruptible():
        found = make_plan(
            basis,
            probability=probability,
            judged=judged,  # type: ignore[arg-type]
            prefer=prefer,  # type: ignore[arg-type]
            seed=start,
            time_limit=time_limit,
            assumed=assumed,
        )
    _save(found, saved)
    files = describe_files(report, {"Planned from": subject, "Histograms": histograms})
    return _show(found, files, report=report, as_json=as_json)


def _show(found: Plan, files: list[tuple[str, str]], *, report: str | None, as_json: bool) -> int:
    """Write the plan's page where one was asked for, print the plan, return the exit code."""
    from fedaccord.report.plan import show_plan

    def make_page() -> Page:
        from fedaccord.report.plan_page import plan_page

        return plan_page(found, command=command_line(), files=files)

    return present(
        record=found.to_dict,
        parts=lambda: show_plan(found),
        page=make_page,
        report=report,
        as_json=as_json,
        success=found.outcome.key == "planned",
    )


def _check_wanted(probability: float, judged: str, prefer: str, time_limit: float) -> None:
    """Refuse what no plan can be asked for before any pilot is trained for it."""
    if not 0 < probability < 1:
        raise InputError(
            f"--probability must be above 0 and below 1, as 0.95; got {probability:g}: no number "
            "of samples makes anything certain"
        )
    if judged not in ("true", "measured"):
        raise InputError(f'--judged must be "true" or "measured"; got {judged!r}')
    if prefer not in ("total", "firm"):
        raise InputError(f'--prefer must be "total" or "firm"; got {prefer!r}')
    check_time_limit(time_limit)


def _check_files(
    saved: dict[str, str | None], report: str | None, *, keep: tuple[str | None, ...]
) -> None:
    """Refuse files that cannot be written before any time goes into their content."""
    for read in keep:
        for option, path in saved.items():
            if path is not None:
                check_destination(path, SUFFIXES[option], keep=read, option=option)
        check_report(report, keep=read)
    files = [str(Path(path).resolve()) for path in (*saved.values(), report) if path is not None]
    if len(set(files)) < len(files):
        raise InputError("two options name the same file to write; name two files")


def _check_fit(
    kind: Kind,
    goals: Wanted | None,
    needs: Wanted | None,
    training: Training,
    *,
    histograms: str | None,
    save_pilots: str | None,
) -> None:
    """Refuse options that mean nothing for this kind of file."""
    if kind != "config" and (stray := training.find_stray()):
        raise InputError(f"{stray} is for a federation, a CONFIG.toml; leave it out")
    if kind != "histograms" and needs is not None:
        raise InputError("--need is for label histograms; pilots tell what is needed: leave it out")
    if kind == "histograms" and goals is not None:
        raise InputError(
            "label histograms say nothing of accuracies: give --need, how many samples each would "
            "need alone, or a table of pilots with --histograms"
        )
    if kind not in ("config", "pilots") and histograms is not None:
        raise InputError("--histograms goes with pilots; here it would be the FILE itself")
    if kind not in ("config", "pilots") and save_pilots is not None:
        raise InputError("--save-pilots has nothing to write: there are no pilots")


def _choose_seed(source: Source, seed: int | None) -> int:
    """Return the seed that was asked for, or the config's, or 0."""
    if source.kind == "config":
        chosen: int = override(read_config(source.path).audit, seed=seed).seed
        return chosen
    if seed is not None and seed < 0:
        raise InputError(f"--seed must be a whole number of 0 or more; got {seed}")
    return 0 if seed is None else seed


# What to plan from.


def _find_basis(
    source: Source,
    goals: Wanted | None,
    needs: Wanted | None,
    histograms: str | None,
    training: Training,
    seed: int,
) -> tuple[Measurement | LinearGame, tuple[str, ...]]:
    """Return what there is to plan from, and sentences on what was assumed."""
    prior = None
    if histograms is not None:
        from fedaccord.measurement.histograms import Histograms

        prior = Histograms.load(histograms)
        complain_of(prior.notes)
    if source.rows is not None and source.kind == "histograms":
        return _read_histograms(source.rows, needs)
    if source.rows is not None:
        return _fit_pilots(source.rows, goals, prior=prior, seed=seed), ()
    if source.kind == "game" and source.path is not None:
        return _read_game(source.path, goals), ()
    return _train_pilots(source.path, goals, training=training, prior=prior, seed=seed), ()


def _fit_pilots(
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
    complain_of(table.notes)
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


def _read_histograms(rows: Rows, needs: Wanted | None) -> tuple[LinearGame, tuple[str, ...]]:
    """Make the game that label histograms say, with sentences on what is assumed.

    rows: of the histograms.
    needs: how many samples each would need alone, in place of the file's.
    """
    from fedaccord.measurement.histograms import Histograms

    found = Histograms.from_rows(rows)
    complain_of(found.notes)
    asked = None if needs is None else needs.among(found.agents, found.needs.tolist())
    return found.planning_game(asked)


def _read_game(path: str, goals: Wanted | None) -> LinearGame:
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


def _train_pilots(
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
    title, algorithm = next(iter(choose_algorithms(config, names, path=path).items()))
    check_folder(training.results, "--results")
    make_engine, workers = choose_engine(training.engine, training.workers, training.address)
    source = build_source(config, seed, results=training.results, cache=training.cache)
    asked = None if goals is None else goals.among(source.names, source.requirements.tolist())

    from fedaccord.frontier.from_federation import from_federation

    kept = f", minus the runs already in {training.results}"
    there = Path(training.results).exists()
    announced = False
    with explain_interrupt(training.results), show_count(f"training pilots of {title}") as show:

        def announce(done: int, total: int) -> None:
            nonlocal announced
            if not announced:
                complain(f"{count(total, 'pilot')} of {title} to train{kept if there else ''}")
            announced = True
            show(done, total)

        return from_federation(
            source,
            algorithm,
            budget=training.budget,
            goals=asked,
            seed=seed,
            store=training.results,
            workers=workers,
            engine=make_engine,
            progress=announce,
            histograms=prior,
        )


def _save(plan: Plan, saved: dict[str, str | None]) -> None:
    """Write what was asked for, and say what there is not to write."""
    if (path := saved["--save-pilots"]) is not None and plan.measurement is not None:
        plan.measurement.table.save(path)
    if (path := saved["--save-game"]) is not None:
        from fedaccord.games.files import write_game

        # Over whole numbers, so that `check` finds of the plan what it is.
        write_game(plan.game.replace(strategies="integer") if plan.whole else plan.game, path)
    if (path := saved["--save"]) is not None:
        if plan.contributions is None:
            complain(f"there is no plan, so nothing was saved to {path}")
        else:
            plan.save(path)
