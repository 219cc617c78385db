"""The command that compares algorithms: frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_folder,
    check_report,
    command_line,
    present,
)
from fedaccord.cli.options import (
    RESULTS,
    Address,
    AsJson,
    CacheFolder,
    ConfigFile,
    EngineName,
    PartOption,
    ReportFile,
    Results,
    Workers,
    add_options,
    build_source,
    choose_algorithms,
    choose_engine,
    complain_of_versions,
    count_kept,
    describe_kept,
    open_results,
    read_config,
    read_part,
)
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import FrontierOptions, override
from fedaccord.report.terminal import Log, complain, draw_stage, show_live
from fedaccord.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.config.load import Config
    from fedaccord.frontier.compare import Stage

Names = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Algorithm of the config. Repeatable. Default: all."),
]
Plans = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PLAN",
        help=(
            "Plan of an algorithm: own, all, measured, sought or a file. Repeatable. "
            "Default: the config's."
        ),
    ),
]


@app.command("frontier")
@add_wording
@add_options(FrontierOptions, first=("levels", "trials", "pilots", "seeking"))
def frontier(
    wording: Wording,
    options: dict[str, Any],
    config_file: ConfigFile = None,
    algorithm: Names = None,
    plan: Plans = None,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    results: Results = RESULTS,
    part: PartOption = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Compare algorithms with their plans: goals reached, gains from defecting, samples used.

    Every finished run is stored, so the same command continues after an interruption.
    """
    config = read_config(config_file)
    algorithms = choose_algorithms(config, algorithm, path=config_file)
    asked = override(config.frontier, **options)
    asked = override(asked, seed=config.audit.seed if asked.seed is None else asked.seed)
    plans = _choose_plans(config, algorithms, plan or ())
    one = read_part(part)
    check_folder(results, "--results")
    check_report(report, keep=config_file)
    make_engine, workers = choose_engine(engine, workers, address)
    source = build_source(config, asked.seed or 0, results=results, cache=cache)

    from fedaccord.frontier.compare import compare_algorithms

    with open_results(results, one) as store, show_live(draw_stage, _News().announce) as show:
        found = compare_algorithms(
            *(source, algorithms),
            plans=plans,
            options=asked,
            workers=workers,
            engine=make_engine,
            store=store,
            progress=show,
        )
    from fedaccord.report import frontier as pages

    present(
        record=found.to_dict,
        parts=lambda: pages.show_frontier(found),
        page=lambda: pages.frontier_page(found, command=command_line()),
        report=report,
        as_json=as_json,
        wording=wording,
        names=source.names,
    )
    complain_of_versions(found.versions)
    complain(describe_kept(count_kept(results), results))


def _choose_plans(
    config: Config, algorithms: Mapping[str, Algorithm], options: Sequence[str]
) -> dict[str, str]:
    """Return how each algorithm's plan is made: as an option says, or the config."""
    plans = {name: config.plans[name] for name in algorithms if name in config.plans}
    for option in options:
        # A name may have a sign of its own; the longest that fits is meant.
        fitting = [name for name in algorithms if option.startswith(f"{name}=")]
        name = max(fitting, key=len, default=option.partition("=")[0])
        sign, word = option[len(name) : len(name) + 1], option[len(name) + 1 :]
        if not sign or not word.strip():
            raise InputError(f"--plan must be NAME=PLAN, such as FedAvg=own; got {option!r}")
        if name not in algorithms:
            known = ", ".join(algorithms)
            raise InputError(
                f'--plan {option}: "{name}" is not one of the compared algorithms ({known})'
            )
        plans[name] = word
    return plans


class _News:
    """Says off a terminal what is begun, a line for each stage, and how far long stages are."""

    def __init__(self) -> None:
        self._before = ""
        self._log = Log()

    def announce(self, stage: Stage) -> None:
        """Say once that a stage has begun, and now and then how far it is."""
        what = stage.what.partition(":")[0]
        if what != self._before:
            complain(f"{what}: up to {count(stage.total, 'run')}")
        self._before = what
        now = stage.audit or stage
        self._log.tell(what, now.done, now.total)
