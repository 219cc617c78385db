"""The command solve: the cheapest, the cheapest stable and the cheapest envy-free allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._lazy import imported
from fedaccord.cli.app import app
from fedaccord.cli.options import AsJson, GameFile, ReportFile, check_time_limit
from fedaccord.cli.present import (
    check_destination,
    check_report,
    command_line,
    describe_files,
    present,
)
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, interruptible, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from fedaccord.audit import Audit
    from fedaccord.equilibria.result import Solution
    from fedaccord.games.base import Game

CONCEPTS = ("optimal", "stable", "envy-free")


@app.command()
def solve(
    game_file: GameFile,
    concept: Annotated[
        list[str] | None,
        typer.Option(help="optimal, stable or envy-free; may repeat. Default: all three."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="The most time for each concept.")
    ] = 60.0,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="ALLOCATION.(json|csv)",
            help="Write the stable allocation (or that of the only concept) for 'check'.",
        ),
    ] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Find the cheapest, the cheapest stable and the cheapest envy-free allocation of a game.

    Exits 0 when every concept got an answer that the audit does not refute, and a proof that no
    such allocation exists is an answer; 1 when one got none.
    """
    from fedaccord.audit import audit
    from fedaccord.games.files import read_game

    concepts = _read_concepts(concept)
    check_time_limit(time_limit)
    chosen = "stable" if "stable" in concepts else concepts[0]
    if save is not None:
        if "stable" not in concepts and len(concepts) > 1:
            raise InputError(
                "--save writes one allocation; give one --concept, or stable among them"
            )
        check_destination(save, (".json", ".csv"), keep=game_file, what="allocation")
    check_report(report, keep=game_file)
    with progress(f"reading {game_file}"):
        game = read_game(game_file)
    files = describe_files(report, {"Game file": game_file})
    solutions = {name: _solve(game, name, time_limit) for name in concepts}
    audits: dict[str, Audit] = {}
    with progress("checking the allocations"):
        for name, solution in solutions.items():
            if solution.contributions is not None:
                audits[name] = audit(game, solution.allocation)
    prices = _prices(solutions)
    saved = save is None or solutions[chosen].contributions is not None
    if save is not None and saved:
        solutions[chosen].allocation.save(save)
    found = (game, solutions, audits, prices)
    code = present(
        record=lambda: _record(solutions, audits, prices),
        parts=lambda: _parts(*found, chosen),
        page=lambda: imported("fedaccord.report.pages_games").solve_page(
            *found, command=command_line(), files=files
        ),
        report=report,
        as_json=as_json,
        success=saved and all(_has_answer(s, audits.get(name)) for name, s in solutions.items()),
    )
    if not saved:
        complain(f"there is no {chosen} allocation, so nothing was saved to {save}")
    return code


def _read_concepts(given: Sequence[str] | None) -> tuple[str, ...]:
    known = ", ".join(CONCEPTS)
    for name in given or ():
        if not name.strip():
            raise InputError(f"the concept is empty; give one of {known}")
        if name not in CONCEPTS:
            raise InputError(f'the concept "{name}" is not known; give one of {known}')
    return tuple(name for name in CONCEPTS if not given or name in given)


def _solve(game: Game, concept: str, time_limit: float) -> Solution:
    solver = _solver(concept)
    what = f"finding the {concept} allocation (at most {time_limit:g} s)"
    with progress(what), interruptible():
        return solver(game, time_limit=time_limit)


def _solver(concept: str) -> Callable[..., Solution]:
    # Solvers bring much along; each is imported when it is asked for.
    if concept == "optimal":
        from fedaccord.equilibria.optimal import solve_optimal

        return solve_optimal
    if concept == "stable":
        from fedaccord.equilibria.stable import solve_stable

        return solve_stable
    from fedaccord.equilibria.envy_free import solve_envy_free

    return solve_envy_free


def _prices(solutions: dict[str, Solution]) -> dict[str, Any]:
    prices: dict[str, Any] = {"price_of_stability": None, "price_of_fairness": None}
    if "optimal" not in solutions or len(solutions) == 1:
        return prices
    from fedaccord.equilibria.all_concepts import price_of_fairness, price_of_stability

    optimal = solutions["optimal"]
    if "stable" in solutions:
        prices["price_of_stability"] = price_of_stability(solutions["stable"], optimal)
    if "envy-free" in solutions:
        prices["price_of_fairness"] = price_of_fairness(solutions["envy-free"], optimal)
    return prices


def _has_answer(solution: Solution, found: Audit | None) -> bool:
    """Return whether a concept got an answer, and the audit does not refute it."""
    from fedaccord.audit import Answer
    from fedaccord.equilibria.result import Status

    if found is None:
        return solution.status is not Status.FAILED
    claimed = {"optimal": found.feasible, "stable": found.stable, "envy-free": found.envy_free}
    return claimed[solution.concept] is not Answer.FALSE


def _record(
    solutions: dict[str, Solution], audits: dict[str, Audit], prices: dict[str, Any]
) -> dict[str, Any]:
    return {
        "solutions": {
            name: {
                **solution.to_dict(),
                "audit": audits[name].to_dict() if name in audits else None,
            }
            for name, solution in solutions.items()
        },
        **{name: price and price.to_dict() for name, price in prices.items()},
    }


def _parts(
    game: Game,
    solutions: dict[str, Solution],
    audits: dict[str, Audit],
    prices: dict[str, Any],
    chosen: str,
) -> list[RenderableType]:
    from fedaccord.report import tables

    parts: list[RenderableType] = [
        tables.solutions_table(game, solutions),
        tables.totals_table(solutions),
    ]
    for name, solution in solutions.items():
        parts.extend(tables.solution_lines(solution, audits.get(name)))
    for name, price in prices.items():
        if price is not None:
            parts.append(tables.price_line(name.replace("_", " "), price))
    if chosen in audits and (reasons := list(tables.explanations(audits[chosen]))):
        parts.extend(["", tables.line(f"The {chosen} allocation, agent by agent:"), *reasons])
    return parts
