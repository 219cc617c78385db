"""The command catalog: games whose answers are known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord._io.files import json_text
from fedaccord.cli.app import app, check_report, command_line, present, write_page
from fedaccord.cli.destinations import Written, check_replaced
from fedaccord.cli.options import AsJson, ReportFile
from fedaccord.errors import InputError
from fedaccord.report.terminal import emit_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedaccord.games.base import Game
    from fedaccord.games.catalog.entries import Entry
    from fedaccord.report.model import Page


@app.command()
def catalog(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of a game.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter, such as petals=16. Repeatable."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="GAME.json", help="Write the game to this file instead of printing it."
        ),
    ] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """List games with known solutions, or print one of them as GAME.json."""
    if parameter and name is None:
        raise InputError("--parameter needs the NAME of a game; 'fedaccord catalog' lists them")
    check_report(report)
    if report is not None and save is not None and Path(report) == save:
        raise InputError(f"--report and --save both name {report}; use two files")
    from fedaccord.games import catalog as games
    from fedaccord.report.catalog import draw_catalog

    if name is not None:
        chosen = _read_parameters(parameter or ())
        game, entry = games.build(name, **chosen), games.ENTRIES[name]
        entry = dataclasses.replace(entry, parameters={**entry.parameters, **chosen})
        write_page(report, lambda: _page([entry]))
        _write_game(game, save)
        return
    if save is not None:
        raise InputError("--save needs the NAME of a game; 'fedaccord catalog' lists them")
    entries = list(games.ENTRIES.values())
    present(
        record=lambda: {"entries": [_record(entry) for entry in entries]},
        parts=lambda: [draw_catalog(entries)],
        page=lambda: _page(entries),
        report=report,
        as_json=as_json,
    )


def _page(entries: list[Entry]) -> Page:
    from fedaccord.report.catalog import catalog_page

    return catalog_page(entries, command=command_line())


def _write_game(game: Game, save: Path | None) -> None:
    from fedaccord.games.files import fits_in_text, write_game

    if save is not None:
        if save.exists():
            check_replaced(save, Written.GAME, "--save")
        write_game(game, save)
    elif fits_in_text(game):
        emit_text(json_text(game.to_dict()))
    else:
        raise InputError(
            f"a game of {game.size:,} agents is too large to print: add --save GAME.json, "
            "which writes its matrix to an .npz file next to it"
        )


def _record(entry: Entry) -> dict[str, Any]:
    simple = (int, float, str, bool, type(None))
    parameters = {k: v if isinstance(v, simple) else str(v) for k, v in entry.parameters.items()}
    return {
        "name": entry.name,
        "summary": entry.summary,
        "source": entry.source,
        "parameters": parameters,
    }


def _read_parameters(given: Sequence[str]) -> dict[str, int | str]:
    """Read NAME=VALUE pairs; whole numbers as such, and the catalogue judges the rest."""
    result: dict[str, int | str] = {}
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not (sign and key.isidentifier() and value):
            raise InputError(f'--parameter must be NAME=VALUE, such as petals=16; got "{text}"')
        if key in result:
            raise InputError(f"--parameter {key} appears twice; give it once")
        digits = value.removeprefix("-")
        result[key] = int(value) if digits.isdecimal() and len(digits) < 20 else value
    return result
