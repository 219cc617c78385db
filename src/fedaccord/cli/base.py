"""What all commands share: the group they belong to, faults told in one sentence, exit codes.

Exit codes: 0 when all is well, 1 when the answer is no, 2 when the input is at fault; 130 after
Ctrl-C. What is wrong is said in one sentence on standard error.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import click
import typer
from typer.core import TyperGroup

from fedaccord._lazy import imported
from fedaccord.errors import FedaccordError, InputError
from fedaccord.report.terminal import (
    OutputError,
    complain,
    discard_output,
    emit_text,
    prepare_streams,
    progress,
    writing,
)

if TYPE_CHECKING:
    from fedaccord.report.page import Page

# First what is asked of games, then what is asked of training, then Flower, then the paper.
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
    """The commands, with every fault told in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order of the help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        prepare_streams()
        run = super().main
        sys.exit(_guarded(lambda: run(*args, **{**options, "standalone_mode": False})))


def _guarded(run: Callable[[], Any]) -> int:
    try:
        code = run()
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

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, every number in full.")]

ReportFile = Annotated[
    str | None,
    typer.Option(
        "--report", metavar="FILE.html", help="Write a page there that opens in any browser."
    ),
]


def check_report(report: str | None, *, keep: str | Path | None = None) -> None:
    """Refuse a report that cannot be written, or drawn, before any time goes into it.

    report: the file's name, as it was given; None for no report.
    keep: a file that must not be overwritten.
    """
    if report is not None:
        check_destination(report, (".html",), keep=keep, what="report", option="--report")
        try:
            imported("fedaccord.report.html")
        except ValueError as error:
            # Settings of matplotlib's in the environment or in a file, read on import.
            raise InputError(f"matplotlib cannot be loaded for --report: {error}") from None


def write_report(report: str | None, make: Callable[[], Page]) -> None:
    """Write a page where one was asked for, and say where it is.

    report: the file's name; None for no report.
    make: makes the page.
    """
    if report is not None:
        with progress(f"writing {report}"):
            make().save(report)
        complain(f"the page is in {report}")


def file_facts(report: str | None, files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Say which files a page is about, so that another of the same name is not taken for it.

    report: where the page goes; None for no page, of which nothing need be known.
    files: by what they are called on it.
    """
    if report is None:
        return []
    # What comes through a pipe can be read only once.
    paths = {what: Path(name) for what, name in files.items() if Path(name).is_file()}
    return [
        (what, f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
        for what, path in paths.items()
    ]


def command_line() -> str:
    """Give the command as it was typed, to be typed again."""
    return shlex.join(["fedaccord", *sys.argv[1:]])


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


def check_destination(
    save: str,
    suffixes: Sequence[str],
    *,
    keep: str | Path | None = None,
    what: str = "file",
    option: str = "--save",
) -> None:
    """Refuse a file that cannot be written before any time goes into its content.

    save: the file's name, as it was given.
    suffixes: what its name may end in.
    keep: a file that must not be overwritten.
    what: what is written there, for the message.
    option: that named the file, for the message.
    """
    path = Path(save)
    if path.suffix not in suffixes:
        raise InputError(f"{option} needs a file that ends in {' or '.join(suffixes)}; got {save}")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} would overwrite {save}, which is no {what}; name another")
    if path.exists() and keep is not None and Path(keep).exists() and os.path.samefile(path, keep):
        raise InputError(f"{option} would overwrite {save}, which is read here; name another file")
    # Through a link to where the file will be.
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {save}: there is no folder {folder} to write to")
