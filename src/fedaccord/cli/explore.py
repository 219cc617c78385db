"""The command explore: a local web app for the meeting, and for watching audits."""

from __future__ import annotations

import secrets
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord._lazy import imported
from fedaccord.cli.app import Wording, add_wording, app, check_folder, complain_of, describe_files
from fedaccord.cli.options import RESULTS, Goals, SheetName
from fedaccord.cli.plan import fit_pilots
from fedaccord.errors import InputError
from fedaccord.planning.basis import Source, Wanted, read_histograms, read_linear_game
from fedaccord.report.terminal import complain
from fedaccord.wording import Words

if TYPE_CHECKING:
    from fedaccord.explore.desk import Subject
    from fedaccord.explore.watch import Auditor
    from fedaccord.games.base import Game
    from fedaccord.measurement.fit import Measurement

OpenedFile = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="PILOTS.csv, GAME.json, CONFIG.toml or RUNS.sqlite. Default: the README's hospitals.",
    ),
]
# Only to say what to do instead.
NoHistograms = Annotated[str | None, typer.Option(hidden=True)]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen. 0.0.0.0 listens on all networks.")
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
        help="Secret in the address. Set it to keep bookmarks over a restart. Default: a new one.",
    ),
]
OpenBrowser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")]
# The fewest letters of a token that nobody guesses.
SHORTEST = 12
# The port unless the user names another; a free one if it is taken.
PORT = 8470


Results = Annotated[
    str | None,
    typer.Option(metavar="RUNS.sqlite", help="For a CONFIG.toml: the file of its runs."),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="CONFIG.toml",
        help="For RUNS.sqlite: the config to resume its audit with.",
    ),
]


@app.command()
@add_wording
def explore(
    wording: Wording,
    file: OpenedFile = None,
    goal: Goals = None,
    sheet: SheetName = None,
    histograms: NoHistograms = None,
    results: Results = None,
    config: ConfigOption = None,
    host: Host = "127.0.0.1",
    port: Port = None,
    token: Token = None,
    browser: OpenBrowser = True,
) -> int:
    """Open a plan in the browser: move a slider, and see the plan, its price and who could defect.

    With a CONFIG.toml or RUNS.sqlite, the app shows the curves of audits while they run. Only
    this machine can reach the app, and only with the token in its address. Each state of the app
    has its own address. Ctrl-C ends the app.
    """
    if histograms is not None:
        raise InputError(
            "explore takes no --histograms: make the plan with 'fedaccord plan PILOTS.csv "
            "--histograms HISTOGRAMS.csv --save-game game.json', and open game.json"
        )
    serve = imported("fedaccord.explore.app").serve
    if token is not None and (len(token) < SHORTEST or not token.isalnum() or not token.isascii()):
        raise InputError(f"--token must have {SHORTEST} or more letters and digits")
    wanted = Wanted.read(goal, "--goal")
    subject = _read_audit(file, results, config) or _read(file, wanted, sheet, wording)
    port = _choose_port(host, port)
    token = token or secrets.token_hex(16)
    address = _write_address(host, port, token)

    def tell() -> None:
        complain(f"open {address} (Ctrl-C ends the app)")

    serve(subject, host=host, port=port, token=token, browser=browser, tell=tell)
    return 0


# What it is opened on.


def _read_audit(file: str | None, results: str | None, config: str | None) -> Auditor | None:
    """Return the audit to watch, and to resume where its config is known; None for no audit."""
    from fedaccord.explore.watch import Auditor

    if file is not None and file.endswith(".toml"):
        if config is not None:
            raise InputError("--config is for RUNS.sqlite; leave it out")
        config, results = file, results or RESULTS
    elif file is not None and file.endswith((".sqlite", ".db")):
        if results is not None:
            raise InputError("--results is for a CONFIG.toml; leave it out")
        results = file
    elif results is not None or config is not None:
        raise InputError("--results and --config are for audits: open a CONFIG.toml or RUNS.sqlite")
    if results is None:
        return None
    check_folder(results, "--results")
    command = None
    if config is not None:
        from fedaccord.federation.config.load import Config

        Config.load(config)
        command = ["audit", config, "--results", results]
    return Auditor(results, command)


def _read(file: str | None, goals: Wanted | None, sheet: str | None, wording: Wording) -> Subject:
    """Return the game or the pilots to open."""
    from fedaccord.explore.desk import Subject

    if file is None:
        subject = Subject(_make_hospitals(), "Three hospitals", Words("hospital", "case"))
    else:
        facts = describe_files("", {"Explored": file})
        subject = Subject(_read_basis(file, goals, sheet), files=tuple(facts))
    if wording.words != Words():
        subject = replace(subject, words=wording.words)
    return subject if wording.title is None else replace(subject, title=wording.title)


def _make_hospitals() -> Game:
    """Return the hospitals of the README: the worth of a case of each to each, and their needs."""
    from fedaccord.games.linear import LinearGame

    benefits = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
    return LinearGame(benefits, [1440, 1440, 930], agents=["University", "City", "Rural"])


def _read_basis(file: str, goals: Wanted | None, sheet: str | None) -> Measurement | Game:
    from fedaccord.games.files import read_game

    source = Source.read(file, sheet)
    if source.rows is None:
        return read_game(file) if goals is None else read_linear_game(file, goals)
    if source.kind == "pilots":
        return fit_pilots(source.rows, goals, histograms=None, seed=0)
    game, assumed = read_histograms(source.rows, None, note=complain_of)
    complain_of(assumed)
    return game


# Where it listens.


def _choose_port(host: str, port: int | None) -> int:
    """Return a port to listen on, or raise an InputError.

    host: where to listen.
    port: the user's choice, which must be free; None for the usual port, or a free one.
    """
    for wanted in (PORT, 0) if port is None else (port,):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, wanted))
            except OSError as error:
                if wanted and port is None:
                    continue
                raise InputError(
                    f"cannot listen on {host}, port {wanted} ({error.strerror}); give another "
                    "--port or --host"
                ) from None
            return int(trial.getsockname()[1])
    raise AssertionError


def _write_address(host: str, port: int, token: str) -> str:
    """Return the address to open."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/?token={token}"
