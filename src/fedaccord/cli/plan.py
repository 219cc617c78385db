"""The command plan: how much each agent gives, so that all reach their goals."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._io.numbers import to_share
from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_folder,
    check_report,
    check_time_limit,
    command_line,
    complain_of,
    describe_files,
    present,
)
from fedaccord.cli.destinations import Written, check_destination
from fedaccord.cli.kept import KeptWorths, read_kept
from fedaccord.cli.options import (
    RESULTS,
    Address,
    AsJson,
    CacheFolder,
    EngineName,
    Goals,
    HistogramsFile,
    Limits,
    ReportFile,
    Results,
    SheetName,
    TimeLimit,
    Workers,
    build_source,
    choose_algorithms,
    choose_engine,
    explain_interrupt,
    read_config,
    read_probability,
)
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.config.sections import override
from fedaccord.planning.basis import (
    Kind,
    Source,
    Wanted,
    read_histograms,
    read_linear_game,
    read_pilots,
    set_limits,
)
from fedaccord.report.terminal import complain, interruptible, progress, show_count
from fedaccord.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fedaccord._io.rows import Rows
    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.runs.execute import Source as Federations
    from fedaccord.games.linear import LinearGame
    from fedaccord.measurement.fit import Measurement
    from fedaccord.measurement.histograms import Histograms
    from fedaccord.planning.kept import KeptPlan
    from fedaccord.planning.result import Plan
    from fedaccord.report.model import Mark, Page, Table

# What files that are saved may end in.
SUFFIXES = {
    "--save": (".json", ".csv", ".xlsx"),
    "--save-game": (".json",),
    "--save-pilots": (".csv", ".xlsx"),
}
WRITTEN = {
    "--save": Written.PLAN,
    "--save-game": Written.GAME,
    "--save-pilots": Written.PILOTS,
}
Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="CONFIG.toml (a federation), PILOTS.csv, HISTOGRAMS.csv or GAME.json. Default: the "
        "built-in handwritten-digits federation.",
    ),
]
Needs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N|NAME=N", help="For histograms: samples an agent needs alone. Repeatable."
    ),
]
Probability = Annotated[
    float,
    typer.Option(
        metavar="P",
        parser=read_probability,
        help="Probability that all agents reach their goals.",
    ),
]
Judgement = Annotated[
    str,
    typer.Option(
        "--judged",
        help="What goals are about. true: the model's true accuracy. measured: one measurement.",
    ),
]
Preference = Annotated[
    str,
    typer.Option(
        help="Which stable plan to choose. In all of them each safety margin is the same multiple "
        "of the agent's scatter. total: the cheapest. firm: the one in which defectors lose most."
    ),
]
AlgorithmName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="For a federation: its algorithm. Default: its first."),
]
Budget = Annotated[
    int | None, typer.Option(metavar="N", help="For a federation: the number of pilots to train.")
]
Save = Annotated[
    str | None,
    typer.Option(metavar="PLAN.(json|csv|xlsx)", help="Write the plan for check, train and audit."),
]
SaveGame = Annotated[
    str | None, typer.Option(metavar="GAME.json", help="Write the game of the plan.")
]
SavePilots = Annotated[
    str | None, typer.Option(metavar="PILOTS.csv", help="Write the table of pilots.")
]
WithReserve = Annotated[
    bool,
    typer.Option(
        "--reserve",
        help="Also plan reserves: samples that agents keep ready in case another does not deliver.",
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Random seed.")]
Harm = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="For pilots with several measures: count harm that has at least this probability.",
    ),
]


@dataclass(frozen=True)
class Training:
    """How to make pilots of a federation, by the user's options.

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
@add_wording
def plan(
    wording: Wording,
    subject: Subject = None,
    goal: Goals = None,
    limit: Limits = None,
    probability: Probability = 0.95,
    judged: Judgement = "true",
    prefer: Preference = "total",
    histograms: HistogramsFile = None,
    sheet: SheetName = None,
    need: Needs = None,
    kept_worth: KeptWorths = None,
    harm: Harm = None,
    reserve: WithReserve = False,
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
    """Plan how much each agent gives, so that all agents reach their goals and none gives too much.

    FILE is a CONFIG.toml (a federation; default: the built-in handwritten-digits federation), a
    PILOTS.csv, a MEASURES.csv, a HISTOGRAMS.csv or a GAME.json. For a federation, the command first
    trains pilots. Every finished pilot is stored, so the same command continues after an
    interruption. The exit code is 1 if no plan reaches the requested probability.
    """
    goals, needs, limits = map(Wanted.read, (goal, need, limit), ("--goal", "--need", "--limit"))
    check_wanted(probability, judged, prefer, time_limit)
    training = Training(algorithm, budget, results, workers, engine, address, cache)
    saved = {"--save": save, "--save-game": save_game, "--save-pilots": save_pilots}
    _check_files(saved, report, keep=(subject, histograms))
    source = Source.read(subject, sheet)
    if source.kind == "measures":
        strays = {
            "--goal": goal, "--need": need, "--histograms": histograms, "--reserve": reserve,
            "--kept-worth": kept_worth, "--save-pilots": save_pilots, "--judged": judged != "true",
            "--prefer": prefer != "total",
        }  # fmt: skip
        return _plan_for_goals(
            source, wording, training, strays, limits=limits, probability=probability, harm=harm,
            seed=seed or 0, time_limit=time_limit, saved=saved, report=report, as_json=as_json,
        )  # fmt: skip
    _check_fit(source.kind, goals, needs, limits, training, harm, histograms, save_pilots)
    start = _choose_seed(source, seed)
    try:
        basis, assumed = _find_basis(source, goals, needs, limits, histograms, training, start)
    except UnreachableError as error:
        complain(f"there is no plan: {error}")
        return 1
    found = _make(
        basis, probability=probability, judged=judged, prefer=prefer, seed=start,
        time_limit=time_limit, assumed=assumed, reserve=reserve,
    )  # fmt: skip
    kept = _plan_for_kept_data(found, kept_worth, time_limit)
    _save(found, saved)
    files = describe_files(report, {"Planned from": subject, "Histograms": histograms})
    return _show(found, kept, files, wording, report=report, as_json=as_json)


def _plan_for_goals(
    source: Source,
    wording: Wording,
    training: Training,
    strays: Mapping[str, Any],
    **options: Any,
) -> int:
    """Plan from pilots with several measures; refuse options that mean nothing for them."""
    from fedaccord.cli.linear import refuse_for_goals
    from fedaccord.cli.solve import plan_for_goals

    assert source.rows is not None
    refuse_for_goals(strays)
    if (stray := training.find_stray()) is not None:
        refuse_for_goals({stray: True})
    return plan_for_goals(source.rows, source.path or "", wording, **options)


def _make(basis: Measurement | LinearGame, *, reserve: bool, **wanted: Any) -> Plan:
    """Return the plan, and say what takes long."""
    from fedaccord.planning.plan import make_plan

    # Solvers in machine code would not look at an interrupt until they are done, and nothing that
    # took long is lost.
    with progress("planning"), interruptible():
        found = make_plan(basis, **wanted)
        return found.with_reserve() if reserve else found


def _plan_for_kept_data(
    found: Plan, kept_worth: Sequence[str] | None, time_limit: float
) -> KeptPlan | None:
    """Return the plan for agents that keep what they withhold, if the user wants it."""
    if not kept_worth:
        return None
    from fedaccord.planning.kept import plan_for_kept_data

    kept = read_kept(found.game, kept_worth)
    with progress("planning for kept data"), interruptible():
        return plan_for_kept_data(found, kept.worth, kept.holdings, time_limit=time_limit)


def _show(
    found: Plan,
    kept: KeptPlan | None,
    files: list[tuple[str, str]],
    wording: Wording,
    *,
    report: str | None,
    as_json: bool,
) -> int:
    """Write the plan's page if the user wants one, print the plan, return the exit code."""
    from fedaccord.report.plan import show_plan

    def make_page() -> Page:
        from fedaccord.report.plan_page import plan_page

        page = plan_page(found, command=command_line(), files=files)
        if kept is None:
            return page
        from fedaccord.report.kept import add_kept_section

        return add_kept_section(page, kept)

    def make_parts() -> Iterator[str | Mark | Table]:
        if kept is None:
            return show_plan(found)
        from fedaccord.report.kept import show_kept_plan

        return show_kept_plan(kept, show_plan(found))

    return present(
        record=lambda: {**found.to_dict(), **({} if kept is None else {"kept": kept.to_dict()})},
        parts=make_parts,
        page=make_page,
        report=report,
        as_json=as_json,
        wording=wording,
        names=found.game.agents,
        success=found.outcome.key == "planned",
    )


def check_wanted(
    probability: float, judged: str, prefer: str = "total", time_limit: float = 60.0
) -> None:
    """Refuse options that no plan can have before any pilot is trained."""
    if 1 < probability <= 100:
        raise InputError(
            f"--probability must be above 0 and below 1; got {probability:g}: did you mean "
            f"{to_share(probability):g}, or {probability:g}%?"
        )
    if not 0 < probability < 1:
        raise InputError(
            f"--probability must be above 0 and below 1, such as 0.95; got {probability:g}: no "
            "number of samples makes a goal certain"
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
    for option, path in saved.items():
        if path is not None:
            written = WRITTEN.get(option)
            check_destination(path, SUFFIXES[option], keep=keep, option=option, written=written)
    for read in keep:
        check_report(report, keep=read)
    files = [str(Path(path).resolve()) for path in (*saved.values(), report) if path is not None]
    if len(set(files)) < len(files):
        raise InputError("two options name the same file to write; name two files")


def _check_fit(
    kind: Kind,
    goals: Wanted | None,
    needs: Wanted | None,
    limits: Wanted | None,
    training: Training,
    harm: float | None,
    histograms: str | None,
    save_pilots: str | None,
) -> None:
    """Refuse options that mean nothing for this kind of file."""
    if harm is not None:
        raise InputError("--harm is for pilots with several measures; leave it out")
    if limits is not None and save_pilots is not None:
        raise InputError("--save-pilots writes the limits of the pilots; leave --limit out")
    if kind != "config" and (stray := training.find_stray()):
        raise InputError(f"{stray} is for a federation, a CONFIG.toml; leave it out")
    if kind != "histograms" and needs is not None:
        raise InputError("--need is for label histograms; pilots measure the needs: leave it out")
    if kind == "histograms" and goals is not None:
        raise InputError(
            "label histograms have no accuracies: give --need, the samples that each agent needs "
            "alone, or a table of pilots with --histograms"
        )
    if kind == "histograms" and histograms is not None:
        raise InputError(
            "--histograms goes with a table of pilots, and the first file has label histograms: if "
            f"{histograms} has the pilots, swap the two files; if not, leave --histograms out"
        )
    if kind == "game" and histograms is not None:
        raise InputError("--histograms goes with a table of pilots; leave it out")
    if kind not in ("config", "pilots") and save_pilots is not None:
        raise InputError("--save-pilots has nothing to write: there are no pilots")


def _choose_seed(source: Source, seed: int | None) -> int:
    """Return the user's seed, or the config's, or 0."""
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
    limits: Wanted | None,
    histograms: str | None,
    training: Training,
    seed: int,
) -> tuple[Measurement | LinearGame, tuple[str, ...]]:
    """Return what to plan from, and sentences on what was assumed."""
    if source.rows is not None and source.kind == "histograms":
        from fedaccord.measurement.label_counts import refuse_turned

        for wanted in filter(None, (needs, limits)):
            refuse_turned(source.rows, wanted.named)
        game, assumed = read_histograms(source.rows, needs, note=complain_of)
        return set_limits(game, limits), assumed
    basis: Measurement | LinearGame
    if source.rows is not None:
        basis = fit_pilots(source.rows, goals, histograms=histograms, seed=seed)
    elif source.kind == "game" and source.path is not None:
        basis = read_linear_game(source.path, goals, source.data)
    else:
        basis = _train_pilots(
            source.path, goals, training=training, histograms=histograms, seed=seed
        )
    return set_limits(basis, limits), ()


def fit_pilots(
    rows: Rows, goals: Wanted | None, *, histograms: str | None, seed: int
) -> Measurement:
    """Fit curves to a table of pilots, showing that it takes a while.

    rows: of the table.
    goals: in place of the table's own.
    histograms: the file of label histograms, if there is one.
    seed: of the resamples.
    """
    from fedaccord.measurement.fit import fit_curves

    prior = _load_histograms(histograms)
    table = read_pilots(rows, goals, note=complain_of)
    hints = None if prior is None else prior.hints_for(table.agents)
    complain_of(() if prior is None else prior.notes)
    with progress("fitting learning curves"):
        return fit_curves(table, seed=seed, prior=hints)


def _load_histograms(path: str | None) -> Histograms | None:
    if path is None:
        return None
    from fedaccord.measurement.histograms import Histograms

    return Histograms.load(path)


def _train_pilots(
    path: str | None,
    goals: Wanted | None,
    *,
    training: Training,
    histograms: str | None,
    seed: int,
) -> Measurement:
    """Make the pilots that are missing, showing how far things are; Ctrl-C says what is kept.

    path: of the config; None for the built-in one.
    goals: in place of the config's own.
    training: how pilots are made.
    histograms: the file of label histograms, if there is one.
    seed: of deals, pilots and resamples.
    """
    from fedaccord.frontier.from_federation import from_federation

    prior = _load_histograms(histograms)
    complain_of(() if prior is None else prior.notes)
    with prepare_pilots(path, training, seed) as (source, algorithm, how):
        asked = None if goals is None else goals.among(source.names, source.requirements.tolist())
        return from_federation(source, algorithm, goals=asked, histograms=prior, **how)


@contextlib.contextmanager
def prepare_pilots(
    path: str | None, training: Training, seed: int
) -> Iterator[tuple[Federations, Algorithm, dict[str, Any]]]:
    """Yield a federation, its algorithm, and where and how many pilots to make, with a counter.

    path: of the config; None for the built-in one.
    training: how pilots are made.
    seed: of deals and pilots.
    """
    config = read_config(path)
    names = None if training.algorithm is None else [training.algorithm]
    title, algorithm = next(iter(choose_algorithms(config, names, path=path).items()))
    check_folder(training.results, "--results")
    make_engine, workers = choose_engine(training.engine, training.workers, training.address)
    source = build_source(config, seed, results=training.results, cache=training.cache)
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

        yield (
            source,
            algorithm,
            {
                "budget": training.budget,
                "seed": seed,
                "store": training.results,
                "workers": workers,
                "engine": make_engine,
                "progress": announce,
            },
        )


def _save(plan: Plan, saved: dict[str, str | None]) -> None:
    """Write the files that the user wants, and print what cannot be written."""
    if (path := saved["--save-pilots"]) is not None and plan.measurement is not None:
        plan.measurement.table.save(path)
    if (path := saved["--save-game"]) is not None:
        plan.save_game(path)
    if (path := saved["--save"]) is not None:
        if plan.contributions is None:
            complain(f"there is no plan, so {path} was not written")
        elif plan.outcome.key != "planned":
            complain(_explain_unsaved(plan, path))
        else:
            plan.save(path)


def _explain_unsaved(plan: Plan, path: str) -> str:
    """Say why a plan that misses the requested probability was not written, and how to get it."""
    from fedaccord.planning.sentences import write_requested

    asked = write_requested(plan)
    said = f"the plan misses the requested probability of {asked}, so {path} was not written"
    had = 0.0 if plan.everyone is None else math.floor(100 * plan.everyone.value) / 100
    return f"{said}; ask for --probability {had:g} to save it anyway" if had > 0 else said
