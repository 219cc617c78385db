"""The command share: who pays whom for the cheapest plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._checks import check_whole
from fedaccord.cli.app import (
    Wording,
    add_wording,
    app,
    check_report,
    check_time_limit,
    command_line,
    present,
)
from fedaccord.cli.destinations import Written, check_destination
from fedaccord.cli.linear import Input, add_input, read_benefits
from fedaccord.cli.options import AsJson, ReportFile, TimeLimit
from fedaccord.errors import UnreachableError, UnsolvedError
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from fedaccord.report.model import Page


@app.command()
@add_wording
@add_input
def share(
    wording: Wording,
    source: Input,
    orders: Annotated[
        int,
        typer.Option(
            metavar="N", help="Number of orders to draw for the Shapley shares of over 16 agents."
        ),
    ] = 200,
    time_limit: TimeLimit = 60.0,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="PAYMENTS.(csv|xlsx)",
            help="Save what each agent gives, bears and pays as a table.",
        ),
    ] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Share the cost of the cheapest plan: who pays whom, so that no group would rather leave.

    The cheapest plan asks some agents for more than they need themselves. Payments make it hold:
    they add up to zero, and no group of agents would pay less alone. Other contracts are listed
    for comparison. Take marginal if agents could misstate their costs and a funder covers the
    deficit. Take shapley if each agent should bear the cost that it adds. The exit code is 1
    if there is no plan.
    """
    from fedaccord.report.sharing import share_page, show_shares
    from fedaccord.sharing.share import share_costs

    check_time_limit(time_limit)
    check_whole("--orders", orders, least=20)
    for read in (source.subject, source.histograms):
        check_report(report, keep=read)
    if save is not None:
        kept = (source.subject, source.histograms)
        check_destination(
            save, (".csv", ".xlsx"), keep=kept, what="table", written=Written.PAYMENTS
        )
    try:
        game = read_benefits(source)
        with progress("sharing the cost"), interruptible():
            found = share_costs(game, orders=orders, seed=source.seed, time_limit=time_limit)
    except (UnreachableError, UnsolvedError) as error:
        complain(str(error))
        return 1
    if save is not None:
        found.save(save)
    files = source.describe(report, "Shared from")

    def make_page() -> Page:
        return share_page(found, command=command_line(), files=files)

    return present(
        record=found.to_dict,
        parts=lambda: show_shares(found),
        page=make_page,
        report=report,
        as_json=as_json,
        wording=wording,
        names=game.agents,
    )
