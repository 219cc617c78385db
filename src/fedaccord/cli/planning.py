"""The command about plans: plan."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._json import json_text
from fedaccord._lazy import imported
from fedaccord._machine import checked_workers, cores
from fedaccord.cli.base import (
    AsJson,
    Interrupted,
    ReportFile,
    app,
    check_destination,
    check_report,
    command_line,
    write_report,
)
from fedaccord.cli.configs import (
    CACHE,
    CacheFolder,
    building_of,
    check_folder,
    chosen_algorithms,
    overridden,
    read_config,
)
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, emit, emit_text, progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedaccord.games.fitting import Measurement
    from fedaccord.games.histograms import Histograms
    from fedaccord.games.linear import LinearGame
    from fedaccord.pilots import PilotTable
    from fedaccord.planning.base import Plan

# A goal or a need: of all agents, or of some by name.
Wanted = float | dict[str, float] | None

Subject = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CONFIG.toml (a federation), PILOT.csv, HISTOGRAMS.csv or GAME.json.",
    ),
]


@app.command("plan")
def make(
    subject: Subject,
    goal: Annotated[
        list[str] | None,
        typer.Option(metavar="X|NAME=X", help="The accuracy wanted, by all or by one; may repeat."),
    ] = None,
    probability: Annotated[
        float, typer.Option(metavar="P", help="That all reach their goals in one run.")
    ] = 0.95,
    prefer: Annotated[
        str, typer.Option(help="total: the cheapest equilibrium. firm: where a cut is felt most.")
    ] = "total",
    histograms: Annotated[
        str | None,
        typer.Option(
            metavar="HISTOGRAMS.csv", help="Beside pilots: where those leave things open."
        ),
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option(metavar="N|NAME=N", help="For histograms: samples needed alone; may repeat."),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of a federation: what trains. Default: its first."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="Of a federation: how many pilots to train.")
    ] = None,
    results: Annotated[
        str, typer.Option(metavar="FILE.sqlite", help="Of a federation: keeps every finished run.")
    ] = "fedaccord.sqlite",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Pilots at a time. Default: one per core.")
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(metavar="PLAN.(json|csv)", help="Write the plan for check, train and audit."),
    ] = None,
    save_game: Annotated[
        str | None, typer.Option(metavar="GAME.json", help="Write the game that was measured.")
    ] = None,
    save_pilots: Annotated[
        str | None, typer.Option(metavar="PILOT.csv", help="Write the table of pilots.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of pilots and resamples.")] = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> int:
    """Plan who gives how much, so that nobody could give less and all reach their goals.

    Exits 0 with a plan that has the probability asked for, 1 when there is none: a goal is out of
    reach, or the probability is.
    """
    wanted, needs = _wanted(goal, "--goal"), _wanted(need, "--need")
    _check_files(subject, save=save, save_game=save_game, save_pilots=save_pilots, report=report)
    kind = _kind(subject)
    training = {"--algorithm": algorithm, "--budget": budget, "--workers": workers}
    _check_fit(kind, wanted, needs, histograms, save_pilots, training)
    prior = None if histograms is None else _histograms(histograms)
    assumed: tuple[str, ...] = ()
    found: Measurement | LinearGame
    if kind == "config":
        start = overridden(read_config(subject).audit, seed=seed).seed
        options = (algorithm, budget, results, workers, cache)
        found = _from_federation(subject, wanted, prior, start, *options)
    else:
        start = 0 if seed is None else seed
        if kind == "pilots":
            found = _from_pilots(subject, wanted, prior, start)
        elif kind == "histograms":
            found, assumed = _from_histograms(subject, needs)
        else:
            found = _from_game(subject, wanted)
    if save_pilots is not None:
        found.table.save(save_pilots)  # type: ignore[union-attr]
    plan = _made(found, probability, prefer, start, assumed)
    _keep(plan, save, save_game)
    pages = "fedaccord.report.pages_plans"
    write_report(report, lambda: imported(pages).plan_page(plan, command=command_line()))
    if as_json:
        emit_text(json_text(plan.to_dict()))
    else:
        from fedaccord.report.plans import plan_parts

        emit(*plan_parts(plan))
    return 0 if plan.outcome.key == "planned" else 1


# What was asked.


def _wanted(given: Sequence[str] | None, option: str) -> Wanted:
    """Read X, or NAME=X as often as there are names."""
    if not given:
        return None
    named: dict[str, float] = {}
    everyone: float | None = None
    for text in given:
        name, sign, value = text.rpartition("=")
        number = _number(value, text, option)
        if not sign:
            if everyone is not None:
                raise InputError(f"{option} has two numbers for all; give one, or NAME=X for some")
            everyone = number
        elif name.strip() in named:
            raise InputError(f"{option} names {name.strip()} twice; give it once")
        else:
            named[name.strip()] = number
    if everyone is None:
        return named
    return {"": everyone, **named} if named else everyone


def _number(value: str, text: str, option: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f'{option} "{text}" must be a number, or read NAME=X, as in City=0.8')
    return number


def _for_agents(wanted: Wanted, agents: Sequence[str]) -> float | dict[str, float]:
    """Spread a number for all over those who have none of their own."""
    if not isinstance(wanted, dict):
        return 0.0 if wanted is None else wanted
    if "" not in wanted:
        return wanted
    named = {name: number for name, number in wanted.items() if name}
    return {**dict.fromkeys(agents, wanted[""]), **named}


def _check_files(subject: str, *, report: str | None, **saved: str | None) -> None:
    """Refuse files that cannot be written before any time goes into their content."""
    suffixes = {"save": (".json", ".csv"), "save_game": (".json",), "save_pilots": (".csv",)}
    for name, path in saved.items():
        if path is not None:
            option = f"--{name.replace('_', '-')}"
            check_destination(path, suffixes[name], keep=subject, option=option)
    check_report(report, keep=subject)
    files = [str(Path(path).resolve()) for path in (*saved.values(), report) if path is not None]
    if len(set(files)) < len(files):
        raise InputError("two options name the same file to write; name two files")


def _kind(path: str) -> str:
    """Tell by its content what a file is."""
    if path.endswith(".toml"):
        return "config"
    if path.endswith(".json"):
        return "game"
    from fedaccord.games.histograms import is_histograms
    from fedaccord.pilots import is_pilot_table

    if is_pilot_table(path):
        return "pilots"
    if is_histograms(path):
        return "histograms"
    raise InputError(
        f"{path} is neither a table of pilots (pilot,agent,contribution,accuracy) nor one of label "
        "histograms (agent,<label>,... or agent,label,count); a federation ends in .toml, a game "
        "in .json"
    )


def _check_fit(
    kind: str,
    goals: Wanted,
    needs: Wanted,
    histograms: str | None,
    save_pilots: str | None,
    training: Mapping[str, Any],
) -> None:
    """Refuse options that mean nothing for this kind of file."""
    if kind != "config" and (given := [name for name, v in training.items() if v is not None]):
        raise InputError(f"{given[0]} is for a federation, a CONFIG.toml; leave it out")
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


# What there is to plan from.


def _histograms(path: str) -> Histograms:
    from fedaccord.games.histograms import Histograms

    return Histograms.load(path)


def _with_goals(table: PilotTable, goals: Wanted) -> PilotTable:
    table = table if goals is None else table.with_goals(_for_agents(goals, table.agents))
    missing = [name for name, goal in zip(table.agents, table.goals, strict=True) if goal != goal]
    if missing:
        raise InputError(
            f"{missing[0]} has no goal: add --goal 0.8, or --goal NAME=0.8, or a column goal"
        )
    return table


def _from_pilots(path: str, goals: Wanted, prior: Histograms | None, seed: int) -> Measurement:
    from fedaccord.games.fitting import fit_curves
    from fedaccord.pilots import PilotTable

    table = _with_goals(PilotTable.load(path), goals)
    hints = None if prior is None else prior.hints_for(table.agents)
    with progress("fitting learning curves"):
        return fit_curves(table, seed=seed, prior=hints)


def _from_histograms(path: str, needs: Wanted) -> tuple[LinearGame, tuple[str, ...]]:
    found = _histograms(path)
    asked = None if needs is None else _for_agents(needs, found.agents)
    _, assumed = found.assumed_needs(asked)
    worth = (
        "What a sample is worth to another agent is taken from how alike their labels are: "
        "q_i.q_j / q_i.q_i for shares q of labels. That cases with the same label are alike from "
        "agent to agent is ASSUMED."
    )
    return found.game(asked), (*assumed, worth)


def _from_game(path: str, goals: Wanted) -> LinearGame:
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
    wanted = _for_agents(goals, names)
    if isinstance(wanted, dict):
        if unknown := [name for name in wanted if name not in names]:
            raise InputError(f"{unknown[0]} is not among the agents: {', '.join(names)}")
        values = [wanted.get(n, g) for n, g in zip(names, game.goals.tolist(), strict=True)]
        return game.replace(goals=values)
    return game.replace(goals=[wanted] * game.size)


def _from_federation(
    path: str,
    goals: Wanted,
    prior: Histograms | None,
    seed: int,
    name: str | None,
    budget: int | None,
    results: str,
    workers: int | None,
    cache: str | None,
) -> Measurement:
    """Make the pilots that are missing, showing how far things are; Ctrl-C says what is kept."""
    from fedaccord.report.live import counted

    config = read_config(path)
    chosen = chosen_algorithms(config, None if name is None else [name], path=path)
    title, algorithm = next(iter(chosen.items()))
    check_folder(results, "--results")
    folder = Path(results).parent / CACHE if cache is None else Path(cache)
    if workers is not None:
        checked_workers(workers)
    source = building_of(config, folder).source(seed)
    from fedaccord.planning.piloted import from_federation

    count = _Count(results, title)
    try:
        with counted(f"training pilots of {title}") as show:

            def told(done: int, total: int) -> None:
                count.say(total)
                show(done, total)

            return from_federation(
                source,
                algorithm,
                budget=budget,
                goals=_goals_of(source, goals),
                seed=seed,
                store=results,
                workers=cores() if workers is None else workers,
                progress=told,
                histograms=prior,
            )
    except KeyboardInterrupt:
        raise Interrupted(_kept(results)) from None


class _Count:
    """Says once how many pilots there are to make."""

    def __init__(self, results: str, algorithm: str) -> None:
        self._apart = f", less those that are in {results} already" * Path(results).exists()
        self._algorithm = algorithm
        self._told = False

    def say(self, total: int) -> None:
        if not self._told:
            pilots = "1 pilot" if total == 1 else f"{total:,} pilots"
            complain(f"{pilots} of {self._algorithm} to train{self._apart}")
        self._told = True


def _kept(results: str) -> str:
    with imported("fedaccord.federation.store").RunStore(results) as store:
        count = len(store)
    runs = "run is" if count == 1 else "runs are"
    return (
        f"interrupted: {count:,} finished {runs} kept in {results}; the same command goes on from "
        "there"
    )


def _goals_of(source: Any, goals: Wanted) -> list[float] | None:
    if goals is None:
        return None
    names = list(source.names)
    wanted = _for_agents(goals, names)
    if not isinstance(wanted, dict):
        return [wanted] * len(names)
    from fedaccord.allocation import closest

    for name in wanted:
        if name not in names:
            near = closest(name, names)
            meant = f"; did you mean {near}?" if near else f": {', '.join(names)}"
            raise InputError(f"{name} is not among the agents{meant}")
    return [wanted.get(n, float(g)) for n, g in zip(names, source.requirements, strict=True)]


# What comes of it.


def _made(
    found: Measurement | LinearGame,
    probability: float,
    prefer: str,
    seed: int,
    assumed: tuple[str, ...],
) -> Plan:
    from fedaccord.planning.plan import make_plan

    with progress("planning"):
        return make_plan(
            found,
            probability=probability,
            prefer=prefer,  # type: ignore[arg-type]
            seed=seed,
            assumed=assumed,
        )


def _keep(plan: Plan, save: str | None, save_game: str | None) -> None:
    if save_game is not None:
        from fedaccord.games.files import write_game

        # Over whole numbers, so that `check` finds of the plan what it is.
        whole = plan.whole and plan.contributions is not None
        write_game(plan.game.replace(strategies="integer") if whole else plan.game, save_game)
    if save is not None:
        if plan.contributions is None:
            complain(f"there is no plan, so nothing was saved to {save}")
        else:
            plan.save(save)
