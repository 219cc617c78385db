"""The command coalitions: who should federate with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._checks import check_choice
from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_report,
    check_time_limit,
    command_line,
    present,
)
from fedaccord.cli.linear import Input, add_input, read_benefits
from fedaccord.cli.options import AsJson, ReportFile, TimeLimit
from fedaccord.errors import UnreachableError
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from fedaccord.report.model import Page


@app.command()
@add_wording
@add_input
def coalitions(
    wording: Wording,
    source: Input,
    plans: Annotated[
        str,
        typer.Option(
            help="Plan that each coalition follows. stable: its cheapest stable plan. cheapest: "
            "its cheapest plan, held by payments or pledges."
        ),
    ] = "stable",
    time_limit: TimeLimit = 60.0,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Find who should federate with whom: coalitions that no group of agents would leave.

    Each coalition follows its cheapest stable plan, and an agent prefers the coalition in which it
    gives least. With up to 12 agents, all groupings are searched. The exit code
    is 1 if none is core-stable.
    """
    from fedaccord.coalitions.find import find_coalitions
    from fedaccord.report.coalitions import coalitions_page, show_coalitions

    check_time_limit(time_limit)
    check_choice("--plans", plans, ("stable", "cheapest"))
    for read in (source.subject, source.histograms):
        check_report(report, keep=read)
    try:
        game = read_benefits(source)
    except UnreachableError as error:
        complain(str(error))
        return 1
    with progress("comparing coalitions"), interruptible():
        found = find_coalitions(game, plans=plans, time_limit=time_limit)
    files = source.describe(report, "Compared from")

    def make_page() -> Page:
        return coalitions_page(found, game, command=command_line(), files=files)

    return present(
        record=found.to_dict,
        parts=lambda: show_coalitions(found),
        page=make_page,
        report=report,
        as_json=as_json,
        wording=wording,
        names=game.agents,
        success=bool(found.core),
    )
