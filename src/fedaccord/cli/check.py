"""The command check: whether an allocation is feasible, stable and envy-free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.cli.app import app, check_report, command_line, complain_of, describe_files, present
from fedaccord.cli.options import AsJson, GameFile, ReportFile, SheetName
from fedaccord.errors import InputError
from fedaccord.report.terminal import progress

if TYPE_CHECKING:
    from fedaccord.report.model import Page

VERDICTS = ("feasible", "stable", "envy-free")


@app.command()
def check(
    game_file: GameFile,
    allocation_file: Annotated[
        str,
        typer.Argument(
            metavar="ALLOCATION.(json|csv|xlsx)", help="The contribution of each agent."
        ),
    ],
    require: Annotated[
        str,
        typer.Option(
            metavar="VERDICTS",
            help="Which answers must be yes: feasible,stable,envy-free.",
        ),
    ] = "feasible,stable",
    tolerance: Annotated[
        float,
        typer.Option(
            help="Differences below this count as zero, relative to the largest contribution."
        ),
    ] = 1e-6,
    sheet: SheetName = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Check a plan against a game: is it feasible, stable and envy-free?

    Exits 0 when every answer that --require lists is yes, 1 when one is no or unknown.
    """
    from fedaccord.allocation import Allocation
    from fedaccord.check import Answer, check
    from fedaccord.games.files import read_game
    from fedaccord.report.games import show_check

    required = _read_verdicts(require)
    for file in (game_file, allocation_file):
        check_report(report, keep=file)
    with progress("checking the plan"):
        game = read_game(game_file)
        allocation = Allocation.load(allocation_file, sheet=sheet)
        found = check(game, allocation, tolerance=tolerance)
    complain_of(allocation.notes)
    files = describe_files(report, {"Game file": game_file, "Plan file": allocation_file})
    answers = {"feasible": found.feasible, "stable": found.stable, "envy-free": found.envy_free}

    def make_page() -> Page:
        from fedaccord.report.games_page import check_page

        return check_page(found, command=command_line(), files=files)

    return present(
        record=found.to_dict,
        parts=lambda: show_check(found),
        page=make_page,
        report=report,
        as_json=as_json,
        success=all(answers[name] is Answer.TRUE for name in required),
    )


def _read_verdicts(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in VERDICTS:
            raise InputError(f'--require has "{name}"; use one or more of {", ".join(VERDICTS)}')
    return names
