"""The command that compares algorithms: frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._io.json import json_text
from fedaccord._lazy import imported
from fedaccord.cli.app import app
from fedaccord.cli.configs import chosen_algorithms, numbers, overridden, read_config
from fedaccord.cli.options import (
    RESULTS,
    Address,
    AsJson,
    CacheFolder,
    ConfigFile,
    EngineName,
    ReportFile,
    Results,
    Workers,
)
from fedaccord.cli.present import check_folder, check_report, command_line, write_page
from fedaccord.cli.runs import (
    chosen_engine,
    complain_of_versions,
    kept_in_all,
    kept_on_interrupt,
    some_runs,
    source_of,
)
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, emit, emit_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.config.load import Config, FrontierSettings
    from fedaccord.federation.runs.engines import Engine, Source
    from fedaccord.frontier.compare import Stage
    from fedaccord.frontier.result import Frontier

Names = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Of the config's; may repeat. Default: all."),
]
Plans = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PLAN",
        help="own, all, measured, sought or a file, in place of the config's; may repeat.",
    ),
]


@app.command("frontier")
def frontier(
    config_file: ConfigFile = None,
    algorithm: Names = None,
    plan: Plans = None,
    levels: Annotated[
        str | None, typer.Option(help="What part a defector gives. Default: 1,.75,.5,.25.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="How often everything is done.")
    ] = None,
    pilots: Annotated[
        int | None, typer.Option(metavar="N", help="How many a measured plan may take.")
    ] = None,
    seeking: Annotated[
        int | None, typer.Option(metavar="N", help="How many runs a sought plan may take.")
    ] = None,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    defectors: Annotated[
        str | None, typer.Option(help="each agent in every trial, or one at random.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of deals and runs.")] = None,
    results: Results = RESULTS,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Compare algorithms, each with its plan: who is satisfied, who could cut, what it takes.

    Every finished run is kept at once: the same command goes on where it was stopped. Without a
    CONFIG.toml the federation is the built-in one of handwritten digits.
    """
    config = read_config(config_file)
    algorithms = chosen_algorithms(config, algorithm, path=config_file)
    settings: FrontierSettings = overridden(
        config.frontier,
        levels=numbers(levels, "--levels"),
        trials=trials,
        defectors=defectors,
        seed=seed,
        pilots=pilots,
        seeking=seeking,
    )
    plans = _plans(config, algorithms, plan or ())
    check_folder(results, "--results")
    check_report(report, keep=config_file)
    make_engine, workers = chosen_engine(engine, workers, address)
    own_seed = config.audit.seed if settings.seed is None else settings.seed
    source = source_of(config, own_seed, results=results, cache=cache)
    found = _compared(source, algorithms, plans, settings, own_seed, workers, make_engine, results)
    _tell(found, report, as_json=as_json)
    complain(kept_in_all(results))


def _plans(
    config: Config, algorithms: Mapping[str, Algorithm], options: Sequence[str]
) -> dict[str, str]:
    """Give how each algorithm's plan is made: as an option says, or the config."""
    plans = {name: config.plans[name] for name in algorithms if name in config.plans}
    for option in options:
        # A name may have a sign of its own; the longest that fits is meant.
        fitting = [name for name in algorithms if option.startswith(f"{name}=")]
        name = max(fitting, key=len, default=option.partition("=")[0])
        sign, word = option[len(name) : len(name) + 1], option[len(name) + 1 :]
        if not sign or not word.strip():
            raise InputError(f"--plan must be NAME=PLAN, as FedAvg=own; got {option!r}")
        if name not in algorithms:
            known = ", ".join(algorithms)
            raise InputError(
                f'--plan {option}: no algorithm "{name}" is compared; there is {known}'
            )
        plans[name] = word
    return plans


class _Told:
    """Says off a terminal what is begun, a line for each stage."""

    def __init__(self) -> None:
        self._before = ""

    def say(self, stage: Stage) -> None:
        """Say once that a stage has begun."""
        what = stage.what.partition(":")[0]
        if what != self._before:
            complain(f"{what}: up to {some_runs(stage.total)}")
        self._before = what


def _compared(
    source: Source,
    algorithms: Mapping[str, Algorithm],
    plans: Mapping[str, str],
    settings: FrontierSettings,
    seed: int,
    workers: int | None,
    engine: Callable[..., Engine],
    results: str,
) -> Frontier:
    """Make the runs, showing how far things are; Ctrl-C says what is kept."""
    from fedaccord.frontier.compare import compare_algorithms
    from fedaccord.report.live import draw_stage, show_live

    with kept_on_interrupt(results), show_live(draw_stage, _Told().say) as show:
        return compare_algorithms(
            source,
            algorithms,
            plans=plans,
            levels=settings.levels,
            trials=settings.trials,
            defectors=settings.defectors,
            seed=seed,
            baseline=settings.baseline,
            pilots=settings.pilots,
            seeking=settings.seeking,
            probability=settings.probability,
            prefer=settings.prefer,
            workers=workers,
            engine=engine,
            store=results,
            progress=show,
        )


def _tell(found: Frontier, report: str | None, *, as_json: bool) -> None:
    pages = "fedaccord.report.frontier"
    write_page(report, lambda: imported(pages).frontier_page(found, command=command_line()))
    if as_json:
        emit_text(json_text(found.to_dict()))
    else:
        emit(*imported(pages).show_frontier(found))
    complain_of_versions(found.versions)
