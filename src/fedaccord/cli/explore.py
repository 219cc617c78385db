"""The command explore: a local web app for the meeting, and for watching audits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._lazy import imported
from fedaccord.cli.app import Wording, app, describe_files
from fedaccord.cli.options import SheetName, add_wording
from fedaccord.cli.plan import Goals, fit_pilots
from fedaccord.errors import InputError
from fedaccord.planning.basis import Source, Wanted, read_histograms
from fedaccord.report.terminal import complain
from fedaccord.wording import Words

if TYPE_CHECKING:
    from fedaccord.explore.subject import Subject
    from fedaccord.games.base import Game
    from fedaccord.measurement.fit import Measurement

OpenedFile = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="PILOTS.csv, GAME.json, CONFIG.toml or RUNS.sqlite. Default: the README's hospitals.",
    ),
]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen. 0.0.0.0 is every network.")
]
Port = Annotated[
    int | None,
    typer.Option(
        min=1, max=65535, metavar="N", help="Port to listen on. Default: 8470, or a free one."
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        envvar="FEDACCORD_TOKEN",
        help="Secret in the address, so that bookmarks outlive a restart. Default: a new one.",
    ),
]
OpenBrowser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")]
# The fewest letters of a token that nobody guesses.
SHORTEST = 12


@app.command()
@add_wording
def explore(
    wording: Wording,
    file: OpenedFile = None,
    goal: Goals = None,
    sheet: SheetName = None,
    host: Host = "127.0.0.1",
    port: Port = None,
    token: Token = None,
    browser: OpenBrowser = True,
) -> int:
    """Open a plan in the browser: move a slider, and see the plan, its price and who could defect.

    Only this machine can reach the app, and only with the token in its address. Every state is an
    address of its own. Ctrl-C ends the app.
    """
    imported("nicegui")
    imported("fedaccord.report.html")
    if token is not None and (
        len(token) < SHORTEST or not token.isascii() or not token.isprintable()
    ):
        raise InputError(f"--token must have at least {SHORTEST} letters or digits")
    from fedaccord.explore.app import serve

    subject = _read(file, Wanted.read(goal, "--goal"), sheet)
    if wording.words != Words():
        subject = replace(subject, words=wording.words)
    if wording.title is not None:
        subject = replace(subject, title=wording.title)

    def tell(address: str) -> None:
        complain(f"open {address} (Ctrl-C ends the app)")

    serve(subject, host=host, port=port, token=token, browser=browser, tell=tell)
    return 0


def _read(file: str | None, goals: Wanted | None, sheet: str | None) -> Subject:
    """Return what to open."""
    from fedaccord.explore.subject import Subject, open_hospitals

    if file is None:
        return open_hospitals()
    basis, notes = _read_basis(file, goals, sheet)
    files = describe_files("", {"Explored": file})
    return Subject(basis, files=tuple(files), notes=notes)


def _read_basis(
    file: str, goals: Wanted | None, sheet: str | None
) -> tuple[Measurement | Game, tuple[str, ...]]:
    from fedaccord.games.files import read_game

    source = Source.read(file, sheet)
    if source.rows is not None and source.kind == "histograms":
        return read_histograms(source.rows, None, note=_complain_of)
    if source.rows is not None:
        return fit_pilots(source.rows, goals, prior=None, seed=0), ()
    if source.kind == "config":
        raise InputError("not yet")
    return read_game(file), ()


def _complain_of(notes: object) -> None:
    from fedaccord.cli.app import complain_of

    complain_of(notes)  # type: ignore[arg-type]
