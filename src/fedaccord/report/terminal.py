"""Standard output and error as they are in practice: pipes that close, full disks, terminals."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import unicodedata
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

# Zero-width joiners shape letters in several scripts; every other invisible character only hides.
SHAPING = "\u200c\u200d"
# How wide lines are where there is no terminal to ask.
WIDTH = 100
NARROWEST = 60


class OutputError(Exception):
    """Standard output takes no more; the text is a sentence, empty where nobody is listening."""


def plain(text: str) -> str:
    """Show characters that would move the cursor, hide or reverse text by their escapes."""
    return "".join(c if _is_visible(c) else c.encode("unicode_escape").decode() for c in text)


def _is_visible(c: str) -> bool:
    return c.isprintable() or c in SHAPING or unicodedata.category(c) == "Zs"


def prepare_streams() -> None:
    """Make standard output and error take every name, and keep output to what is printed here.

    Solvers written in C print to file descriptor 1 whatever they are told. So the real output
    moves to another descriptor, and what arrives at the first is dropped, even at exit.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with contextlib.suppress(OSError, AttributeError):
        if sys.stdout.fileno() == 1:
            sys.stdout.flush()
            # Buffered even under PYTHONUNBUFFERED, where a write that a full disk cuts short
            # would pass for a whole one.
            sys.stdout = os.fdopen(
                os.dup(1), "w", encoding=sys.stdout.encoding, errors="backslashreplace"
            )
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)


def complain(sentence: str) -> None:
    """Say in one line on standard error what is wrong."""
    end = "" if sentence.endswith((".", "?", "!")) else "."
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(f"fedaccord: {plain(sentence)}{end}\n")
            sys.stderr.flush()


def discard_output() -> None:
    """Point standard output at nothing, so that Python's own flush at the end cannot fail."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Write to standard output and see to it that all of it arrives."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        raise OutputError from None
    except OSError as error:
        discard_output()
        raise OutputError(f"cannot write the result: {error.strerror or error}") from None


class _Printer(Console):
    def on_broken_pipe(self) -> None:
        """Pass a closed pipe on, where rich would end the process as if the answer were no."""
        raise BrokenPipeError


def emit(*parts: RenderableType) -> None:
    """Print for people: whole lines where nobody's terminal would wrap them."""
    console = _Printer(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    # Narrower, tables would drop their numbers; a line that wraps loses nothing.
    console.width = max(console.width, NARROWEST)
    with writing():
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text))


def emit_text(text: str) -> None:
    """Print for machines: the text as it is."""
    with writing():
        if sys.stdout is not None:
            sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once: compiled solvers would not look until they are done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Show on a terminal what is under way once it takes longer than a second."""
    console = Console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    display = Progress(*columns, console=console, transient=True)
    display.add_task(what)

    def start() -> None:
        display.start()
        # An interrupt may end the process at once, and must not leave the cursor hidden.
        console.show_cursor(True)

    timer = threading.Timer(1.0, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        display.stop()
