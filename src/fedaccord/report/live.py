"""What is known while work is going on, on a terminal and nowhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fedaccord.report.terminal import line
from fedaccord.report.training import percent_of, span

if TYPE_CHECKING:
    from fedaccord.federation.defection.audit import Known
    from fedaccord.federation.runs.execute import Progress

BAR = 40
News = TypeVar("News")


def audit_display(progress: Progress) -> RenderableType:
    """Lay out how far an audit is, and how often defectors were satisfied so far."""
    # A bar does not end its line; a row of a grid does.
    bar = Table.grid()
    bar.add_row(ProgressBar(max(progress.total, 1), progress.done, width=BAR))
    left = "" if progress.left is None else f", about {span(progress.left)} left"
    there = f" ({progress.reused:,} were there already)" if progress.reused else ""
    what = "plans" if progress.planning else "runs"
    words = line(f"{progress.done:,} of {progress.total:,} {what}{there}{left}")
    return Group(bar, words, *([_known_table(progress.known)] if progress.known else []))


def _known_table(known: tuple[Known, ...]) -> Table:
    """Lay out what is known: a row per level, a column per algorithm."""
    algorithms = list(dict.fromkeys(cell.algorithm for cell in known))
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_row("brings", *(line(name) for name in algorithms))
    for level in dict.fromkeys(cell.level for cell in known):
        row = {cell.algorithm: cell for cell in known if cell.level == level}
        table.add_row(percent_of(level), *(_so_far(row[name]) for name in algorithms))
    return table


def _so_far(cell: Known) -> str:
    share = cell.satisfied
    if not share.trials:
        return "-"
    trials = "1 trial" if share.trials == 1 else f"{share.trials} trials"
    stopped = ", enough" if cell.stopped else ""
    return f"{share.p:.2f} ({trials}{stopped})"


@contextlib.contextmanager
def shown_live(
    display: Callable[[News], RenderableType], otherwise: Callable[[News], None]
) -> Iterator[Callable[[News], None]]:
    """Show how far things are as it is told.

    display: lays out what is told.
    otherwise: what is told of it off a terminal, where nothing is shown.
    """
    console = Console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield otherwise
        return
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        yield lambda news: live.update(display(news))


@contextlib.contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal what is under way and how much of it is done, as far as it is told."""
    with changing(what) as tell:
        yield lambda done, total: tell(what, done, total)


@contextlib.contextmanager
def changing(what: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """Show on a terminal what is under way, one thing after the other, as far as it is told."""
    console = Console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield lambda what, done, total: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(BAR),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task(what, total=None)
        yield lambda what, done, total: display.update(
            task, description=what, completed=done, total=total
        )
