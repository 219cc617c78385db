"""The command solve: the cheapest, the cheapest stable and the cheapest envy-free allocation."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.cli.app import (
    app,
    check_destination,
    check_report,
    check_time_limit,
    command_line,
    describe_files,
    present,
)
from fedaccord.cli.options import AsJson, GameFile, ReportFile
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fedaccord.report.model import Page


CONCEPTS = ("optimal", "stable", "envy-free")


@app.command()
def solve(
    game_file: GameFile,
    concept: Annotated[
        list[str] | None,
        typer.Option(
            help="Plan to find: optimal, stable or envy-free. Repeatable. Default: all three."
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit for each plan.")
    ] = 60.0,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="ALLOCATION.(json|csv|xlsx)",
            help="Save the stable plan (or the only plan) as a table for 'check'.",
        ),
    ] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Find the cheapest plan of a game, the cheapest stable and the cheapest envy-free plan.

    Exits 0 when every plan was found and passes the check, or was proved not to exist; 1
    otherwise.
    """
    # Solvers bring much along, which other commands do without.
    from fedaccord.equilibria.solve import solve_all
    from fedaccord.games.files import read_game
    from fedaccord.report.games import show_solutions

    concepts = _read_concepts(concept)
    check_time_limit(time_limit)
    if save is not None:
        if "stable" not in concepts and len(concepts) > 1:
            raise InputError("--save writes one plan; give one --concept, or include stable")
        check_destination(save, (".json", ".csv", ".xlsx"), keep=game_file, what="allocation")
    check_report(report, keep=game_file)
    with progress(f"reading {game_file}"):
        game = read_game(game_file)
    files = describe_files(report, {"Game file": game_file})
    stage = partial(_show_stage, time_limit)
    found = solve_all(game, concepts=concepts, time_limit=time_limit, stage=stage)
    main = found.solutions[found.main_concept]
    missing = save is not None and main.contributions is None
    if save is not None and not missing:
        main.allocation.save(save)

    def make_page() -> Page:
        from fedaccord.report.games_page import solve_page

        results = found.solutions, found.checks, found.prices
        return solve_page(game, *results, command=command_line(), files=files)

    code = present(
        record=found.to_dict,
        parts=lambda: show_solutions(found),
        page=make_page,
        report=report,
        as_json=as_json,
        success=not missing and all(map(found.is_answered, concepts)),
    )
    if missing:
        complain(f"no {main.concept} plan exists or was found, so nothing was saved to {save}")
    return code


@contextmanager
def _show_stage(time_limit: float, name: str) -> Iterator[None]:
    """Show what is under way; Ctrl-C ends a solver at once."""
    if name == "check":
        with progress("checking the plans"):
            yield
        return
    with (
        progress(f"finding the {name} plan (at most {time_limit:g} s)"),
        interruptible(),
    ):
        yield


def _read_concepts(given: Sequence[str] | None) -> tuple[str, ...]:
    known = ", ".join(CONCEPTS)
    for name in given or ():
        if not name.strip():
            raise InputError(f"--concept is empty; use one of {known}")
        if name not in CONCEPTS:
            raise InputError(f'--concept "{name}" is not known; use one of {known}')
    return tuple(name for name in CONCEPTS if not given or name in given)
