"""The commands about games: solve, check and catalog."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._io.json import json_text
from fedaccord._lazy import imported
from fedaccord.cli.base import (
    AsJson,
    ReportFile,
    app,
    check_destination,
    check_report,
    command_line,
    file_facts,
    write_report,
)
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, emit, emit_text, interruptible, progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fedaccord.audit import Audit
    from fedaccord.equilibria.result import Solution
    from fedaccord.games.base import Game
    from fedaccord.games.catalog.entries import Entry

CONCEPTS = ("optimal", "stable", "envy-free")
VERDICTS = ("feasible", "stable", "envy-free")

GameFile = Annotated[str, typer.Argument(metavar="GAME.json", help="The game.")]


def _pages() -> Any:
    return imported("fedaccord.report.pages_games")


# solve


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

    concepts = _checked_concepts(concept)
    if not (math.isfinite(time_limit) and time_limit > 0):
        raise InputError(f"--time-limit must be a number of seconds above 0; got {time_limit:g}")
    chosen = "stable" if "stable" in concepts else concepts[0]
    if save is not None:
        _check_destination(save, game_file, concepts)
    check_report(report, keep=game_file)
    with progress(f"reading {game_file}"):
        game = read_game(game_file)
    files = file_facts(report, {"Game file": game_file})
    solutions = {name: _solve(game, name, time_limit) for name in concepts}
    audits: dict[str, Audit] = {}
    with progress("checking the allocations"):
        for name, solution in solutions.items():
            if solution.contributions is not None:
                audits[name] = audit(game, solution.allocation)
    prices = _prices(solutions)
    # Files first: whoever reads the output may stop in the middle of it.
    saved = save is None or solutions[chosen].contributions is not None
    if save is not None and saved:
        solutions[chosen].allocation.save(save)
    found = (game, solutions, audits, prices)
    write_report(report, lambda: _pages().solve_page(*found, command=command_line(), files=files))
    if as_json:
        emit_text(json_text(_solve_dict(solutions, audits, prices)))
    else:
        _emit_solutions(game, solutions, audits, prices, chosen)
    if not saved:
        complain(f"there is no {chosen} allocation, so nothing was saved to {save}")
        return 1
    return 0 if all(_answered(s, audits.get(name)) for name, s in solutions.items()) else 1


def _checked_concepts(given: Sequence[str] | None) -> tuple[str, ...]:
    known = ", ".join(CONCEPTS)
    for name in given or ():
        if not name.strip():
            raise InputError(f"the concept is empty; give one of {known}")
        if name not in CONCEPTS:
            raise InputError(f'the concept "{name}" is not known; give one of {known}')
    return tuple(name for name in CONCEPTS if not given or name in given)


def _check_destination(save: str, game_file: str, concepts: Sequence[str]) -> None:
    if "stable" not in concepts and len(concepts) > 1:
        raise InputError("--save writes one allocation; give one --concept, or stable among them")
    check_destination(save, (".json", ".csv"), keep=game_file, what="allocation")


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
    from fedaccord.equilibria.prices import price_of_fairness, price_of_stability

    optimal = solutions["optimal"]
    if "stable" in solutions:
        prices["price_of_stability"] = price_of_stability(solutions["stable"], optimal)
    if "envy-free" in solutions:
        prices["price_of_fairness"] = price_of_fairness(solutions["envy-free"], optimal)
    return prices


def _answered(solution: Solution, found: Audit | None) -> bool:
    """Say whether a concept got an answer, and the audit does not refute it."""
    from fedaccord.audit import Answer
    from fedaccord.equilibria.result import Status

    if found is None:
        return solution.status is not Status.FAILED
    claimed = {"optimal": found.feasible, "stable": found.stable, "envy-free": found.envy_free}
    return claimed[solution.concept] is not Answer.FALSE


def _solve_dict(
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


def _emit_solutions(
    game: Game,
    solutions: dict[str, Solution],
    audits: dict[str, Audit],
    prices: dict[str, Any],
    chosen: str,
) -> None:
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
    emit(*parts)


# check


@app.command()
def check(
    game_file: GameFile,
    allocation_file: Annotated[
        str, typer.Argument(metavar="ALLOCATION.(json|csv)", help="Who gives how much.")
    ],
    require: Annotated[
        str,
        typer.Option(
            metavar="VERDICTS",
            help="What the audit must say yes to, of: feasible,stable,envy-free.",
        ),
    ] = "feasible,stable",
    tolerance: Annotated[
        float,
        typer.Option(help="What counts as nothing, relative to the largest contribution."),
    ] = 1e-6,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> int:
    """Check an allocation against a game: feasible, stable, envy-free, and why.

    Exits 0 when the audit says yes to all that --require lists, 1 when it says no or cannot tell.
    """
    from fedaccord.allocation import Allocation
    from fedaccord.audit import Answer, audit
    from fedaccord.games.files import read_game

    required = _checked_verdicts(require)
    for file in (game_file, allocation_file):
        check_report(report, keep=file)
    with progress("checking the allocation"):
        found = audit(read_game(game_file), Allocation.load(allocation_file), tolerance=tolerance)
    files = file_facts(report, {"Game file": game_file, "Plan file": allocation_file})
    write_report(report, lambda: _pages().check_page(found, command=command_line(), files=files))
    if as_json:
        emit_text(json_text(found.to_dict()))
    else:
        _emit_audit(found)
    said = {"feasible": found.feasible, "stable": found.stable, "envy-free": found.envy_free}
    return 0 if all(said[name] is Answer.TRUE for name in required) else 1


def _checked_verdicts(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in VERDICTS:
            raise InputError(f'--require lists "{name}"; give one or more of {", ".join(VERDICTS)}')
    return names


def _emit_audit(found: Audit) -> None:
    from fedaccord.report import tables

    style = tables.verdict_style(found.stable)
    emit(
        tables.line(found.sentence(), style),
        tables.audit_table(found),
        *tables.explanations(found),
    )


# catalog


@app.command()
def catalog(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which game.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="As petals=16; may repeat.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="GAME.json", help="Write the game there instead of printing it."),
    ] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """List the games whose answers are known, or print one of them as a GAME.json."""
    if parameter and name is None:
        raise InputError("--parameter needs the NAME of a game; 'fedaccord catalog' lists them")
    check_report(report)
    if report is not None and save is not None and Path(report) == save:
        raise InputError(f"--report and --save both name {report}; name two files")
    from fedaccord.games import catalog as games

    if name is not None:
        chosen = _parameters(parameter or ())
        game = games.build(name, **chosen)
        _report_catalog(report, [_chosen_entry(games.ENTRIES[name], chosen)])
        _give_game(game, save)
        return
    if save is not None:
        raise InputError("--save needs the NAME of a game; 'fedaccord catalog' lists them")
    _report_catalog(report, list(games.ENTRIES.values()))
    if as_json:
        emit_text(json_text({"entries": [_entry_dict(e) for e in games.ENTRIES.values()]}))
    else:
        from fedaccord.report import tables

        emit(tables.catalog_table(games.ENTRIES.values()))


def _chosen_entry(entry: Entry, parameters: dict[str, int | str]) -> Entry:
    return dataclasses.replace(entry, parameters={**entry.parameters, **parameters})


def _report_catalog(report: str | None, entries: list[Entry]) -> None:
    write_report(report, lambda: _pages().catalog_page(entries, command=command_line()))


def _give_game(game: Game, save: Path | None) -> None:
    from fedaccord.games.files import fits_in_text, write_game

    if save is not None:
        write_game(game, save)
    elif fits_in_text(game):
        emit_text(json_text(game.to_dict()))
    else:
        raise InputError(
            f"a game of {game.size:,} agents is too large to print: add --save GAME.json, which "
            "puts its matrix into an .npz beside the file"
        )


def _entry_dict(entry: Any) -> dict[str, Any]:
    simple = (int, float, str, bool, type(None))
    parameters = {k: v if isinstance(v, simple) else str(v) for k, v in entry.parameters.items()}
    return {
        "name": entry.name,
        "summary": entry.summary,
        "source": entry.source,
        "parameters": parameters,
    }


def _parameters(given: Sequence[str]) -> dict[str, int | str]:
    """Read NAME=VALUE pairs; whole numbers as such, and the catalogue judges the rest."""
    result: dict[str, int | str] = {}
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not (sign and key.isidentifier() and value):
            raise InputError(f'--parameter "{text}" must read NAME=VALUE, as in petals=16')
        if key in result:
            raise InputError(f"--parameter {key} comes twice; give it once")
        digits = value.removeprefix("-")
        result[key] = int(value) if digits.isdecimal() and len(digits) < 20 else value
    return result
