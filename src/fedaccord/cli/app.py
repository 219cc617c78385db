"""The group of commands: their order, faults in one sentence, exit codes.

Exit codes: 0 when all is well, 1 when the answer is no, 2 when the input is at fault; 130 after
Ctrl-C. Each fault is one sentence on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, NoReturn

import click
import typer
from typer.core import TyperGroup

from fedaccord.errors import FedaccordError
from fedaccord.report.terminal import (
    OutputError,
    complain,
    discard_output,
    emit_text,
    prepare_streams,
    writing,
)

# The order in the help: games, plans, training, Flower, the paper.
ORDER = (
    *("solve", "check", "catalog"),
    "plan",
    *("audit", "frontier", "train", "difficulty", "pretrain", "search"),
    "flower",
    "reproduce",
)

FAULT = 2
INTERRUPTED = 130
# What a shell reports for a program that writes to a closed pipe.
PIPE_CLOSED = 141


class Interrupted(Exception):
    """Ctrl-C during work of which something is kept; the text is a sentence that says what."""


class Commands(TyperGroup):
    """The commands, with every fault in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        prepare_streams()
        run = super().main
        sys.exit(_run(lambda: run(*args, **{**options, "standalone_mode": False})))


def _run(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code."""
    try:
        code = command()
        with writing():
            pass
        if code == INTERRUPTED:
            complain("interrupted")
        return code if isinstance(code, int) else 0
    except FedaccordError as error:
        complain(str(error))
    except click.UsageError as error:
        sentence = error.format_message().rstrip(".?").replace(". D", "; d")
        complain(f"{sentence}; see 'fedaccord --help'")
    except (click.Abort, Interrupted) as error:
        complain(str(error) or "interrupted")
        return INTERRUPTED
    except MemoryError:
        complain("this machine has too little memory for that; give it something smaller")
    except OutputError as error:
        if not str(error):
            return PIPE_CLOSED
        complain(str(error))
    except OSError as error:
        discard_output()
        complain(f"cannot write: {error.strerror or error}")
    return FAULT


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("fedaccord")
        except PackageNotFoundError:
            number = "(not installed)"
        emit_text(f"fedaccord {number}")
        raise typer.Exit


@app.callback()
def _fedaccord(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """Tell how much data each member should give, and whether anyone would gain by giving less.

    Exit codes: 0 all is well,
    1 a plan does not hold (check), there is none (plan) or somebody is not satisfied (train),
    2 the input is at fault.
    """


def main() -> NoReturn:
    """Run the command line."""
    app()
    raise SystemExit
