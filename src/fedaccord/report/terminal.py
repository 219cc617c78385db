"""Results on a terminal: sentences and tables, and streams as they are in practice.

Pipes close, disks are full, names would move the cursor, and some terminals are narrow.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from fedaccord.errors import FedaccordError
from fedaccord.report.model import Cell, Mark, Table
from fedaccord.wording import SPOKEN, Words, count, format_duration, format_level

if TYPE_CHECKING:
    from fedaccord.federation.defection.audit import Known
    from fedaccord.federation.runs.execute import Progress
    from fedaccord.frontier.compare import Stage

# Zero-width joiners shape letters in several scripts; every other invisible character only hides.
SHAPING = "\u200c\u200d"
# How wide lines are where there is no terminal to ask.
WIDTH = 100
NARROWEST = 60
NAME_WIDTH = 36
# Names give way to numbers down to this width; then columns move into a second table below.
LEAST_NAME = 20
# What rich puts around the table and between two columns.
EDGES = 2
GAP = 3
# What keeps numbers together on a page, where lines are broken.
NO_BREAK = "\u00a0"
# How wide a bar of progress is.
BAR = 40
# How often a log says how far long work is, in seconds.
LOG_PAUSE = 600.0
STYLES = {"good": "green", "bad": "red", "unsure": "yellow", "plain": "italic"}

News = TypeVar("News")


# What the user of the command that runs calls agents and samples.


class OutputError(Exception):
    """Standard output takes no more; the text is a sentence, empty where nobody is listening."""


def plain(text: str) -> str:
    """Show characters that would move the cursor, hide or reverse text by their escapes."""
    return "".join(c if _is_visible(c) else c.encode("unicode_escape").decode() for c in text)


def _is_visible(c: str) -> bool:
    return c.isprintable() or c in SHAPING or unicodedata.category(c) == "Zs"


def prepare_streams() -> None:
    """Make standard output and error take every name, and keep output to what is printed here.

    Solvers written in C print to file descriptor 1 even with printing off. So the real output
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


@contextlib.contextmanager
def use_words(words: Words) -> Iterator[None]:
    """Have messages and errors call agents and samples what the user calls them.

    words: the user's.
    """
    token = SPOKEN.set(words)
    try:
        yield
    except FedaccordError as error:
        if error.args:
            error.args = (words.rename(str(error)), *error.args[1:])
        raise
    finally:
        SPOKEN.reset(token)


def complain(sentence: str, names: Iterable[str] = ()) -> None:
    """Say in one line on standard error what is wrong, in the words of `use_words`.

    sentence: what to say.
    names: of agents, which no word changes.
    """
    sentence = SPOKEN.get().rename(sentence, names)
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
        raise OutputError(
            f"cannot write the result to standard output: {error.strerror or error}"
        ) from None


# Sentences and tables.


def line(text: str, style: str = "") -> Text:
    """Return a line in which nothing counts as markup."""
    return Text(plain(text), style=style)


def shorten_name(name: str) -> str:
    """Return a name cut to what the head of a column has room for."""
    head = line(name)
    head.truncate(LEAST_NAME, overflow="ellipsis")
    return head.plain


class Sheet:
    """A table whose numbers are never cut: columns that do not fit stand below, in a table alike.

    The first column names the rows and is repeated in each part.

    table: what is drawn.
    """

    def __init__(self, table: Table) -> None:
        heads = (head.replace(NO_BREAK, " ").split("\n") for head in table.columns)
        self.columns = ["\n".join(map(plain, lines)) for lines in heads]
        self.rows = [self._draw_row(row) for row in table.rows]
        self.footer = [self._draw_row(row) for row in table.footer]

    def _draw_row(self, row: Sequence[Cell]) -> list[Text]:
        cells = [
            line(cell.text.replace(NO_BREAK, " "), STYLES[cell.tone])
            if isinstance(cell, Mark)
            else line("-" if cell is None else str(cell).replace(NO_BREAK, " "))
            for cell in row
        ]
        return cells + [Text("")] * (len(self.columns) - len(cells))

    def _width(self, column: int) -> int:
        cells = (row[column].plain for row in self.rows + self.footer)
        return max(map(cell_len, (*self.columns[column].split("\n"), *cells)))

    def parts(self, width: int) -> list[list[int]]:
        """Divide the columns after the first among tables that fit the width."""
        name = min(self._width(0), LEAST_NAME)
        parts: list[list[int]] = [[]]
        used = EDGES + name
        for column in range(1, len(self.columns)):
            needs = GAP + self._width(column)
            if parts[-1] and used + needs > width:
                parts.append([])
                used = EDGES + name
            parts[-1].append(column)
            used += needs
        return parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Grid]:
        for part in self.parts(options.max_width):
            numbers = sum(GAP + self._width(column) for column in part)
            name = max(min(NAME_WIDTH, options.max_width - EDGES - numbers), 1)
            grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
            head = Text(self.columns[0])
            grid.add_column(head, no_wrap=True, overflow="ellipsis", max_width=name)
            for column in part:
                grid.add_column(Text(self.columns[column]), justify="right", no_wrap=True)
            for row in self.rows:
                grid.add_row(row[0], *(row[column] for column in part))
            grid.add_section()
            for row in self.footer:
                if any(row[column].plain for column in part):
                    grid.add_row(row[0], *(row[column] for column in part))
            yield grid


def _draw(part: RenderableType | Mark | Table) -> RenderableType:
    if isinstance(part, Table):
        return Sheet(part)
    if isinstance(part, Mark):
        return line(part.text, STYLES[part.tone])
    return line(part) if isinstance(part, str) else part


class _Printer(Console):
    def on_broken_pipe(self) -> None:
        """Pass a closed pipe on, where rich would end the process as if the answer were no."""
        raise BrokenPipeError


def emit(*parts: RenderableType | Mark | Table) -> None:
    """Print for people: whole lines where nobody's terminal would wrap them."""
    console = _Printer(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    # Narrower, tables would drop their numbers; a line that wraps loses nothing.
    console.width = max(console.width, NARROWEST)
    with writing():
        for part in map(_draw, parts):
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


# How far work is, shown on a terminal and nowhere else.


def _terminal() -> Console | None:
    """Return the terminal that progress is shown on, if there is one."""
    console = Console(stderr=True)
    return console if sys.stderr is not None and console.is_terminal else None


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Show what is under way once it takes longer than a second."""
    console = _terminal()
    if console is None:
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


@contextlib.contextmanager
def show_live(
    draw: Callable[[News], RenderableType], otherwise: Callable[[News], None]
) -> Iterator[Callable[[News], None]]:
    """Show news as they come.

    draw: draws them.
    otherwise: what is done with them off a terminal, where nothing is shown.
    """
    console = _terminal()
    if console is None:
        yield otherwise
        return
    from rich.live import Live

    with Live(console=console, transient=True, refresh_per_second=4) as live:
        yield lambda news: live.update(draw(news))


@contextlib.contextmanager
def show_count(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show what is under way, and how much of it is done."""
    with show_stages(what) as tell:
        yield lambda done, total: tell(what, done, total)


@contextlib.contextmanager
def show_stages(what: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """Show what is under way, one stage after the other, and how much of each is done."""
    if Console().is_jupyter:
        yield _show_in_notebook()
        return
    console = _terminal()
    if console is None:
        yield Log().tell
        return
    from rich import progress as shown

    columns = (
        shown.TextColumn("{task.description}", markup=False),
        shown.BarColumn(BAR),
        shown.TimeElapsedColumn(),
        shown.TextColumn("left:"),
        shown.TimeRemainingColumn(),
    )
    with shown.Progress(*columns, console=console, transient=True) as display:
        task = display.add_task(what, total=None)
        yield lambda what, done, total: display.update(
            task, description=what, completed=done, total=total
        )


class Log:
    """Says every ten minutes how far work is, where there is no terminal: in the log of a job."""

    def __init__(self) -> None:
        self._what, self._done, self._since = "", 0, 0.0

    def tell(self, what: str, done: int, total: int) -> None:
        """Take note of how far work is, and say so if it is time.

        what: is under way.
        done, total: how much of it is done, and of how much.
        """
        now = time.monotonic()
        if what != self._what:
            self._what, self._done, self._since = what, done, now
        if now - self._since < LOG_PAUSE or not self._done < done < total:
            return
        # By the pace since the last sentence: what was stored before is found much faster.
        left = (now - self._since) / (done - self._done) * (total - done)
        complain(f"{what}: {done:,} of {total:,} done, about {format_duration(left)} left")
        self._done, self._since = done, now


def _show_in_notebook() -> Callable[[str, int, int], None]:
    """Show a bar below the cell, and return what moves it."""
    from html import escape

    # Where Jupyter runs, it is there.
    handle = import_module("IPython.display").display({"text/plain": ""}, raw=True, display_id=True)

    def tell(what: str, done: int, total: int) -> None:
        words = f"{plain(what)}: {done:,} of {total:,}"
        bar = f'<progress max="{max(total, 1)}" value="{done}"></progress> {escape(words)}'
        handle.update({"text/html": bar, "text/plain": words}, raw=True)

    return tell


def draw_audit(progress: Progress) -> RenderableType:
    """Draw how far an audit is, and how often defectors were satisfied so far."""
    left = "" if progress.left is None else f", about {format_duration(progress.left)} left"
    there = f" ({progress.reused:,} were there already)" if progress.reused else ""
    what = "plans" if progress.planning else "runs"
    about = "about " if progress.estimated else ""
    words = line(f"{progress.done:,} of {about}{progress.total:,} {what}{there}{left}")
    known = [_draw_known(progress.known)] if progress.known else []
    return Group(_draw_bar(progress.done, progress.total), words, *known)


def draw_stage(stage: Stage) -> RenderableType:
    """Draw what stage of a comparison is under way, and how far it is."""
    if stage.audit is not None:
        return Group(line(stage.what), draw_audit(stage.audit))
    words = line(f"{stage.done:,} of {stage.total:,} runs")
    return Group(line(stage.what), _draw_bar(min(stage.done, stage.total), stage.total), words)


def _draw_bar(done: int, total: int) -> Grid:
    # A bar does not end its line; a row of a grid does.
    bar = Grid.grid()
    bar.add_row(ProgressBar(max(total, 1), done, width=BAR))
    return bar


def _draw_known(known: tuple[Known, ...]) -> Grid:
    """Draw what is known: a row per level, a column per algorithm."""
    algorithms = list(dict.fromkeys(cell.algorithm for cell in known))
    table = Grid.grid(padding=(0, 3, 0, 0))
    table.add_row("brings", *(line(name) for name in algorithms))
    for level in dict.fromkeys(cell.level for cell in known):
        row = {cell.algorithm: cell for cell in known if cell.level == level}
        table.add_row(format_level(level), *(_describe_cell(row[name]) for name in algorithms))
    return table


def _describe_cell(cell: Known) -> str:
    share = cell.satisfied
    if not share.trials:
        return "-"
    stopped = ", enough" if cell.stopped else ""
    return f"{share.p:.2f} ({count(share.trials, 'trial')}{stopped})"
