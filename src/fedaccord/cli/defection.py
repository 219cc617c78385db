"""The command about defection: audit."""

from __future__ import annotations

from pathlib import Path
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
    kept_on_interrupt,
    some_runs,
    source_of,
)
from fedaccord.report.terminal import complain, emit, emit_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fedaccord.allocation import Allocation
    from fedaccord.federation.algorithms.base import Algorithm
    from fedaccord.federation.config.load import AuditSettings
    from fedaccord.federation.defection.curves import DefectionAudit
    from fedaccord.federation.runs.engines import Engine, Source
    from fedaccord.federation.runs.execute import Progress


Names = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Of the config's, or FedAvg, MW-FED, Solo; may repeat. Default: all."
    ),
]
Protocol = Annotated[
    str | None, typer.Option(help="P1: part of its data. P2: part of what is asked of it.")
]
Plan = Annotated[
    str | None, typer.Option(metavar="ALLOCATION.(json|csv)", help="What is asked of each agent.")
]


@app.command("audit")
def audit_defection(
    config_file: ConfigFile = None,
    algorithm: Names = None,
    levels: Annotated[
        str | None, typer.Option(help="What part a defector gives. Default: 1,.75,.5,.25,.05.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="How often everything is done.")
    ] = None,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    protocol: Protocol = None,
    plan: Plan = None,
    defectors: Annotated[
        str | None, typer.Option(help="each agent in every trial, or one at random.")
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(metavar="W", help="Stop a level once its interval is as narrow."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of deals and runs.")] = None,
    results: Results = RESULTS,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Train again and again with one agent giving less: is it satisfied all the same?

    Every finished run is kept at once: the same command goes on where it was stopped. Without a
    CONFIG.toml the federation is the built-in one of handwritten digits.
    """
    config = read_config(config_file)
    algorithms = chosen_algorithms(config, algorithm, path=config_file)
    settings: AuditSettings = overridden(
        config.audit,
        levels=numbers(levels, "--levels"),
        trials=trials,
        protocol=protocol,
        plan=plan,
        defectors=defectors,
        width=width,
        seed=seed,
    )
    prescribed = _read_plan(settings.plan)
    check_folder(results, "--results")
    check_report(report, keep=config_file)
    make_engine, workers = chosen_engine(engine, workers, address)
    source = source_of(config, settings.seed, results=results, cache=cache)
    count = _Count(results, at_most=_may_be_fewer(settings, prescribed))
    found = _audited(source, algorithms, settings, prescribed, workers, make_engine, results, count)
    _tell(found, report, as_json=as_json)
    complain(count.kept(found.reused))


def _may_be_fewer(settings: AuditSettings, plan: Allocation | None) -> bool:
    """Say whether there may turn out to be fewer runs than can be told beforehand."""
    # Of whom an algorithm of P2 asks nothing shows in its first runs.
    return settings.width is not None or (settings.protocol == "P2" and plan is None)


class _Count:
    """Counts the runs of an audit as it is told of them; says at the start how many there are.

    results: the file that keeps them.
    at_most: whether there may turn out to be fewer.
    """

    def __init__(self, results: str, *, at_most: bool) -> None:
        self._results = results
        self._file_is_new = not Path(results).exists()
        self._at_most = at_most
        self._made = 0
        self._told = False

    def say(self, progress: Progress) -> None:
        """Say once how many runs there are to make."""
        if not self._told:
            up_to = "up to " if self._at_most else ""
            apart = "" if self._file_is_new else f", less those that are in {self._results} already"
            complain(f"{up_to}{some_runs(progress.total)} to make{apart}")
        self._told = True

    def update(self, progress: Progress) -> None:
        """Take note of the runs made so far."""
        self._made = progress.done - progress.reused

    def kept(self, reused: int) -> str:
        """Say how many runs are kept, and how many of them were there before."""
        # Those found after the last run was made are in no report.
        count = self._made + reused
        there = f"{reused:,} of them {'was' if reused == 1 else 'were'}"
        if reused == count:
            there = "it was" if count == 1 else "all of them were"
        already = f"; {there} there already" if reused else ""
        return (
            f"{some_runs(count)} {'is' if count == 1 else 'are'} kept in {self._results}{already}"
        )


def _read_plan(path: str | None) -> Allocation | None:
    from fedaccord.allocation import Allocation

    return None if path is None else Allocation.load(path)


def _audited(
    source: Source,
    algorithms: Mapping[str, Algorithm],
    settings: AuditSettings,
    plan: Allocation | None,
    workers: int | None,
    engine: Callable[..., Engine],
    results: str,
    count: _Count,
) -> DefectionAudit:
    """Make the runs, showing how far things are; Ctrl-C says what is kept."""
    from fedaccord.federation.defection.audit import defection_curves
    from fedaccord.report.live import draw_audit, show_live

    with kept_on_interrupt(results), show_live(draw_audit, count.say) as show:

        def progress(now: Progress) -> None:
            count.update(now)
            show(now)

        return defection_curves(
            source,
            algorithms,
            levels=settings.levels,
            trials=settings.trials,
            protocol=settings.protocol,
            plan=plan,
            defectors=settings.defectors,
            width=settings.width,
            seed=settings.seed,
            workers=workers,
            engine=engine,
            store=results,
            progress=progress,
        )


def _tell(found: DefectionAudit, report: str | None, *, as_json: bool) -> None:
    pages = "fedaccord.report.defection"
    write_page(report, lambda: imported(pages).audit_page(found, command=command_line()))
    if as_json:
        emit_text(json_text(found.to_dict()))
    else:
        emit(*imported(pages).show_audit(found))
    complain_of_versions(found.versions)
