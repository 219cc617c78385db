"""The command about defection: audit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_folder,
    check_report,
    command_line,
    complain_of,
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
    describe_kept,
    open_results,
    read_config,
    read_part,
)
from fedaccord.federation.config.sections import AuditOptions, override
from fedaccord.report.terminal import Log, complain, draw_audit, show_live
from fedaccord.wording import count

if TYPE_CHECKING:
    from fedaccord.federation.runs.execute import Progress

Names = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Algorithm of the config, or a built-in one such as MW-FED. Repeatable. Default: all.",
    ),
]


@app.command("audit")
@add_wording
@add_options(AuditOptions, first=("levels", "trials"))
def audit_defection(
    wording: Wording,
    options: dict[str, Any],
    config_file: ConfigFile = None,
    algorithm: Names = None,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    results: Results = RESULTS,
    part: PartOption = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Train repeatedly while one agent gives less: does that agent still reach its goal?

    Every finished run is stored, so the same command continues after an interruption.
    """
    config = read_config(config_file)
    algorithms = choose_algorithms(config, algorithm, path=config_file)
    asked = _load_plan(override(config.audit, **options))
    one = read_part(part)
    check_folder(results, "--results")
    check_report(report, keep=config_file)
    make_engine, workers = choose_engine(engine, workers, address)
    source = build_source(config, asked.seed, results=results, cache=cache)

    from fedaccord.federation.defection.audit import defection_curves

    news = _News(results if one is None else str(one.name_file(results)), asked)
    with open_results(results, one) as store, show_live(draw_audit, news.announce) as show:
        found = defection_curves(
            *(source, algorithms),
            options=asked,
            workers=workers,
            engine=make_engine,
            store=store,
            progress=lambda now: show(news.note(now)),
        )
    from fedaccord.report.defection import show_audit
    from fedaccord.report.defection_page import audit_page

    present(
        record=found.to_dict,
        parts=lambda: show_audit(found),
        page=lambda: audit_page(found, command=command_line()),
        report=report,
        as_json=as_json,
        wording=wording,
        names=source.names,
    )
    complain_of_versions(found.versions)
    complain(news.describe_end(found.reused))


def _load_plan(asked: AuditOptions) -> AuditOptions:
    from fedaccord.allocation import Allocation

    if isinstance(asked.plan, str):
        plan = Allocation.load(asked.plan)
        complain_of(plan.notes)
        return dataclasses.replace(asked, plan=plan)
    return asked


class _News:
    """What an audit says on standard error: how many runs there are, and how many are kept.

    results: the file that keeps them.
    asked: what was asked of the audit.
    """

    def __init__(self, results: str, asked: AuditOptions) -> None:
        # Of whom an algorithm of P2 asks nothing shows in its first runs.
        unplanned = asked.protocol == "P2" and asked.plan is None
        self._up_to = "up to " if asked.width is not None or unplanned else ""
        self._results = results
        there = Path(results).exists()
        self._apart = f", minus the runs already in {results}" if there else ""
        self._made = 0
        self._announced = False
        self._log = Log()

    def announce(self, progress: Progress) -> None:
        """Say once how many runs there are to make, and now and then how far they are."""
        if not self._announced:
            hedge = "about " if progress.estimated else self._up_to
            complain(f"{hedge}{count(progress.total, 'run')} to make{self._apart}")
        self._announced = True
        what = "finding plans" if progress.planning else "making runs"
        self._log.tell(what, progress.done, progress.total)

    def note(self, progress: Progress) -> Progress:
        """Take note of the runs made so far."""
        self._made = progress.done - progress.reused
        return progress

    def describe_end(self, reused: int) -> str:
        """Return how many runs are kept, and how many of them were there before."""
        # Those found after the last run was made are in no report.
        runs = self._made + reused
        there = f"{reused:,} of them {'was' if reused == 1 else 'were'}"
        if reused == runs:
            there = "it was" if runs == 1 else "all of them were"
        already = f"; {there} there already" if reused else ""
        return f"{describe_kept(runs, self._results)}{already}"
