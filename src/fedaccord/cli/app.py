"""What all commands share: their order, faults, exit codes, words, and showing a result.

Exit codes: 0 when all is well, 1 when the answer is no, 2 when the input is at fault; 130 after
Ctrl-C. Each fault is one sentence on standard error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import logging
import math
import os
import re
import shlex
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_type_hints

import click
import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo

from fedaccord._io.files import json_text
from fedaccord._io.numbers import Marks, read_number, read_share
from fedaccord._lazy import EXTRAS, imported
from fedaccord.cli.destinations import check_destination
from fedaccord.errors import FedaccordError, InputError, MissingExtraError, OnlyPart
from fedaccord.report.model import Mark, Table
from fedaccord.report.terminal import (
    OutputError,
    complain,
    discard_output,
    emit,
    emit_text,
    prepare_streams,
    progress,
    use_words,
    writing,
)
from fedaccord.wording import Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType

    from fedaccord.report.model import Page

# The order in the help: games, plans, training, Flower, the paper.
ORDER = (
    *("solve", "check", "share", "coalitions", "catalog"),
    *("template", "pilots", "plan", "explore"),
    *("audit", "frontier", "train", "difficulty", "pretrain", "search", "merge"),
    "flower",
    "reproduce",
)

# What a terminal shows in the words of its user; anything else is drawn already.
Shown = str | Mark | Table
FAULT = 2
INTERRUPTED = 130
# What a shell reports for a program that writes to a closed pipe.
PIPE_CLOSED = 141

# The words of a page.

Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="Title of the page and the tables.")
]
AgentWord = Annotated[
    str,
    typer.Option(metavar="WORD", help="Your word for an agent: hospital, or country/countries."),
]
SampleWord = Annotated[
    str,
    typer.Option(metavar="WORD", help="Your word for a sample: case, or biopsy/biopsies."),
]
# The most letters of a word and of a title.
LONGEST_WORD, LONGEST_TITLE = 30, 150


class Interrupted(Exception):
    """Ctrl-C during work of which something is kept; the text is a sentence that says what."""


def _restore_help(command: click.Command) -> None:
    """Set the help of a command's arguments again: click 8.5 empties what typer has set.

    The lines of a paragraph of the command's own help become one, for the terminal to break.
    """
    for part in getattr(command, "commands", {}).values():
        _restore_help(part)
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    hints = get_type_hints(command.callback, include_extras=True) if command.callback else {}
    for argument in command.params:
        if isinstance(argument, click.Argument) and getattr(argument, "help", None) is None:
            notes = getattr(hints.get(argument.name or ""), "__metadata__", ())
            found = (note.help for note in notes if isinstance(note, ArgumentInfo))
            argument.help = next(found, None)


class Commands(TyperGroup):
    """The commands, with every fault in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, with the help of its arguments."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _restore_help(command)
        return command

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        prepare_streams()
        # Without a home that can be written to, it would say so at length, and works all the same.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
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
    except OnlyPart as end:
        complain(str(end))
        return 0
    except FedaccordError as error:
        complain(str(error))
    except click.UsageError as error:
        sentence = error.format_message().rstrip(".?").replace(". D", "; d")
        said = sentence.replace("a valid float", "a number")
        said = said.replace("a valid integer", "a whole number")
        complain(f"{said}; {_find_remedy(sentence)}")
    except (click.Abort, Interrupted) as error:
        complain(str(error) or "interrupted")
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        complain(str(MissingExtraError(error.name, EXTRAS[error.name])))
    except MemoryError:
        complain("this machine has too little memory for this; use a smaller input")
    except OutputError as error:
        if not str(error):
            return PIPE_CLOSED
        complain(str(error))
    except OSError as error:
        discard_output()
        where = "" if error.filename is None else f" {error.filename}"
        complain(f"cannot write{where}: {error.strerror or error}")
    return FAULT


def _find_remedy(sentence: str) -> str:
    """Return how to write a number that an option does not take, as 0.95 for 95 %."""
    found = re.search(r": '(.*)' is not a valid (float|int)", sentence)
    with contextlib.suppress(InputError):
        if found is not None:
            is_share = found[1].endswith(("%", "％"))
            read = read_share if is_share else read_number
            value = read(found[1], "", Marks())
            if found[2] == "float" or value.is_integer():
                return f"write {value:.15g}"
    return "see 'fedaccord --help'"


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
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Plan how much data each agent should give; check whether any agent could give less.

    The exit code is 0 for success, 1 if the answer is no, and 2 if the input has an error.
    """


def main() -> NoReturn:
    """Run the command line."""
    app()
    raise SystemExit


# The words of a page.


@dataclasses.dataclass(frozen=True)
class Wording:
    """What a page is called, and what it calls agents and samples.

    title: in place of the page's own; None to keep that.
    words: in place of agent and sample.
    """

    title: str | None = None
    words: Words = dataclasses.field(default_factory=Words)


def add_wording(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the options --title, --agent-word and --sample-word.

    The command gets them as `wording`, and hands that to `present`. Messages and errors follow
    the words by themselves.
    """

    @functools.wraps(command)
    def speak(*, wording: Wording, **given: Any) -> Any:
        with use_words(wording.words):
            return command(wording=wording, **given)

    ours = {
        "title": (Title, None),
        "agent_word": (AgentWord, "agent"),
        "sample_word": (SampleWord, "sample"),
    }
    return gather_options("wording", ours, read_wording, last=True)(speak)


def gather_options(
    name: str, ours: Mapping[str, tuple[Any, Any]], make: Callable[..., Any], *, last: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what gives a command options, which the command gets as one argument.

    name: of the argument.
    ours: the options, each with its annotation and its default, `...` for none.
    make: makes the argument of the values, which it gets by name.
    last: whether the options come last in the help, and not in the argument's place.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [
        inspect.Parameter(key, kind, annotation=hint)
        if usual is ...
        else inspect.Parameter(key, kind, default=usual, annotation=hint)
        for key, (hint, usual) in ours.items()
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            made = make(**{key: given.pop(key) for key in ours})
            return command(**given, **{name: made})

        hints = get_type_hints(command, include_extras=True)
        shown: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name != name:
                own = hints.get(parameter.name, parameter.annotation)
                shown.append(parameter.replace(annotation=own))
            elif not last:
                shown += added
        shown += added if last else []
        call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return call

    return decorate


def read_wording(
    title: str | None, agent_word: str = "agent", sample_word: str = "sample"
) -> Wording:
    """Return the user's words, or raise an InputError.

    title: of the page; None for its own.
    agent_word, sample_word: hospital, or with its plural, country/countries.
    """
    if title is not None:
        _check_words(title, "--title", LONGEST_TITLE)
    (one, many), (case, cases) = (
        _read_word(text, option)
        for text, option in ((agent_word, "--agent-word"), (sample_word, "--sample-word"))
    )
    return Wording(title, Words(one, case, many, cases))


def _read_word(text: str, option: str) -> tuple[str, str]:
    one, sign, many = (part.strip() for part in text.partition("/"))
    for part in (one, many) if sign else (one,):
        _check_words(part, option, LONGEST_WORD)
        if not re.fullmatch(r"[^\W\d_][\w' -]*", part):
            raise InputError(
                f'{option} "{text}" must be a word, such as hospital, or a word and its plural, '
                "such as country/countries"
            )
    return one, many


def _check_words(text: str, option: str, longest: int) -> None:
    if not text.strip():
        raise InputError(f"{option} is empty; give a text, or leave the option out")
    if len(text) > longest:
        raise InputError(f"{option} has {len(text)} letters; use at most {longest}")
    if not text.isprintable():
        raise InputError(f"{option} must be one line without control characters")


# What happens to a result.


def present(
    *,
    record: Callable[[], Mapping[str, Any]],
    parts: Callable[[], Iterable[RenderableType | Mark | Table]],
    page: Callable[[], Page] | None = None,
    report: str | None = None,
    as_json: bool = False,
    success: bool = True,
    wording: Wording | None = None,
    names: Iterable[str] | None = None,
) -> int:
    """Write a result's page if the user wants one, print the result, return the exit code.

    record: makes the record that JSON has.
    parts: lays the result out for the terminal.
    page: makes the page.
    report: the page's file; None for no page.
    as_json: whether JSON is printed, not tables.
    success: whether the answer is yes.
    wording: the title and the words that page and tables are to have; JSON keeps its own.
    names: of the agents, which no word changes; None where they have none.
    """
    wording = wording or Wording()
    # Files first: whoever reads the output may stop in the middle of it.
    if page is not None:
        write_page(report, lambda: _reword(page(), wording, names))
    if as_json:
        emit_text(json_text(record()))
        return 0 if success else 1
    if wording.title is not None:
        emit(wording.title)
    emit(*_reword_parts(parts(), wording, names))
    return 0 if success else 1


def _reword(page: Page, wording: Wording, names: Iterable[str] | None) -> Page:
    if wording.words != Words():
        from fedaccord.report.renaming import Renaming

        page = Renaming(wording.words, tuple(names or ())).page(page)
    return page if wording.title is None else dataclasses.replace(page, title=wording.title)


def _reword_parts(
    parts: Iterable[RenderableType | Mark | Table], wording: Wording, names: Iterable[str] | None
) -> Iterable[RenderableType | Mark | Table]:
    if wording.words == Words():
        return parts
    from fedaccord.report.renaming import Renaming

    renaming = Renaming(wording.words, tuple(names or ()))
    return (renaming.line(part) if isinstance(part, Shown) else part for part in parts)


def write_page(report: str | None, page: Callable[[], Page]) -> None:
    """Write a page if the user wants one, and print where it is.

    report: the file's name; None for no page.
    page: makes the page.
    """
    if report is not None:
        with progress(f"writing {report}"):
            page().save(report)
        complain(f"the page is in {report}")


def command_line() -> str:
    """Return the command as it was typed, to be typed again."""
    return shlex.join(["fedaccord", *sys.argv[1:]])


def describe_files(report: str | None, files: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Return the facts of a page that say which files it is about, by name and content.

    report: where the page goes; None for no page, which needs none.
    files: by what the page calls them; None where there is none.
    """
    if report is None:
        return []
    # What comes through a pipe can be read only once.
    paths = {what: Path(name) for what, name in files.items() if name and Path(name).is_file()}
    return [
        (what, f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
        for what, path in paths.items()
    ]


def complain_of(notes: Iterable[str]) -> None:
    """Print notes about how a file was read."""
    for note in notes:
        complain(note)


# Checks of what is asked for, and of files to write.


def check_time_limit(seconds: float) -> None:
    """Refuse a limit that is no time."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"--time-limit must be a number of seconds above 0; got {seconds:g}")


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


def check_folder(path: str, option: str) -> None:
    """Refuse a file in a folder that is not there or cannot be written to.

    path: the file's name, as it was given.
    option: that named the file, for the message.
    """
    folder = Path(path).parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"cannot write {option} {path}: the folder {folder} is missing or not writable"
        )
