"""The command plan: who gives how much, so that nobody could give less."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._lazy import imported
from fedaccord.cli.app import app
from fedaccord.cli.configs import overridden, read_config
from fedaccord.cli.options import (
    RESULTS,
    Address,
    AsJson,
    CacheFolder,
    EngineName,
    ReportFile,
    Results,
    Workers,
    check_time_limit,
)
from fedaccord.cli.present import (
    check_destination,
    check_report,
    command_line,
    describe_files,
    present,
)
from fedaccord.cli.subjects import (
    Kind,
    Source,
    Training,
    Wanted,
    from_federation,
    from_game,
    from_histograms,
    from_pilots,
    read_histograms,
)
from fedaccord.errors import InputError, UnreachableError
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.planning.result import Plan

# What files that are saved may end in.
SUFFIXES = {"--save": (".json", ".csv"), "--save-game": (".json",), "--save-pilots": (".csv",)}

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


@app.command("plan")
def make(
    subject: Subject = None,
    goal: Goals = None,
    probability: Annotated[
        float, typer.Option(metavar="P", help="That all reach their goals in one run.")
    ] = 0.95,
    prefer: Annotated[
        str, typer.Option(help="total: the cheapest equilibrium. firm: where a cut is felt most.")
    ] = "total",
    histograms: Annotated[
        str | None,
        typer.Option(metavar="HISTOGRAMS.csv", help="Beside pilots, for what those leave open."),
    ] = None,
    need: Needs = None,
    algorithm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of a federation: what trains. Default: its first."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="Of a federation: how many pilots to train.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="The most time for each solver.")
    ] = 60.0,
    results: Results = RESULTS,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    save: Annotated[
        str | None,
        typer.Option(metavar="PLAN.(json|csv)", help="Write the plan for check, train and audit."),
    ] = None,
    save_game: Annotated[
        str | None, typer.Option(metavar="GAME.json", help="Write the game that was planned for.")
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

    FILE is a CONFIG.toml (a federation; by default that of handwritten digits), a PILOT.csv, a
    HISTOGRAMS.csv or a GAME.json. Of a federation it first trains pilots, and keeps every finished
    one: the same command goes on where it was stopped. Exits 0 with a plan that has the
    probability asked for, 1 when there is none: a goal is out of reach, or the probability is.
    """
    goals, needs = Wanted.read(goal, "--goal"), Wanted.read(need, "--need")
    _check_wanted(probability, prefer, time_limit)
    training = Training(algorithm, budget, results, workers, engine, address, cache)
    saved = {"--save": save, "--save-game": save_game, "--save-pilots": save_pilots}
    _check_files(saved, report, keep=(subject, histograms))
    read = Source.read(subject)
    _check_fit(read.kind, goals, needs, training, histograms=histograms, save_pilots=save_pilots)
    start = _seed(read, seed)
    try:
        found, assumed = _found(read, goals, needs, histograms, training, start)
    except UnreachableError as error:
        complain(f"there is no plan: {error}")
        return 1
    plan = _made(found, probability, prefer, start, time_limit, assumed)
    _keep(plan, saved)
    files = describe_files(report, {"Planned from": subject, "Histograms": histograms})
    pages, views = "fedaccord.report.pages_plans", "fedaccord.report.plans"
    return present(
        record=plan.to_dict,
        parts=lambda: imported(views).plan_parts(plan),
        page=lambda: imported(pages).plan_page(plan, command=command_line(), files=files),
        report=report,
        as_json=as_json,
        success=plan.outcome.key == "planned",
    )


def _check_wanted(probability: float, prefer: str, time_limit: float) -> None:
    """Refuse what no plan can be asked for before any pilot is trained for it."""
    if not 0 < probability < 1:
        raise InputError(
            f"--probability must be above 0 and below 1, as 0.95; got {probability:g}: no number "
            "of samples makes anything certain"
        )
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
    if kind != "config" and (stray := training.stray()):
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


def _seed(subject: Source, seed: int | None) -> int:
    """Return the seed that was asked for, or the config's, or 0."""
    if subject.kind == "config":
        chosen: int = overridden(read_config(subject.path).audit, seed=seed).seed
        return chosen
    if seed is not None and seed < 0:
        raise InputError(f"--seed must be a whole number of 0 or more; got {seed}")
    return 0 if seed is None else seed


def _found(
    subject: Source,
    goals: Wanted | None,
    needs: Wanted | None,
    histograms: str | None,
    training: Training,
    seed: int,
) -> tuple[Measurement | LinearGame, tuple[str, ...]]:
    """Return what there is to plan from, and sentences on what was assumed."""
    prior = None if histograms is None else read_histograms(histograms)
    if subject.rows is not None:
        if subject.kind == "pilots":
            return from_pilots(subject.rows, goals, prior=prior, seed=seed), ()
        return from_histograms(subject.rows, needs)
    if subject.kind == "game" and subject.path is not None:
        return from_game(subject.path, goals), ()
    return from_federation(subject.path, goals, training=training, prior=prior, seed=seed), ()


def _made(
    found: Measurement | LinearGame,
    probability: float,
    prefer: str,
    seed: int,
    time_limit: float,
    assumed: tuple[str, ...],
) -> Plan:
    from fedaccord.planning.plan import make_plan

    # Solvers in machine code would not look at an interrupt until they are done, and nothing that
    # took long is lost.
    with progress("planning"), interruptible():
        return make_plan(
            found,
            probability=probability,
            prefer=prefer,  # type: ignore[arg-type]
            seed=seed,
            time_limit=time_limit,
            assumed=assumed,
        )


def _keep(plan: Plan, saved: dict[str, str | None]) -> None:
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
