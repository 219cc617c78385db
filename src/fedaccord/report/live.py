"""How far work is, shown on a terminal and nowhere else.

show_live(draw, otherwise)      whatever is drawn of the news
show_count(what), show_stages() a bar with the time left
"""

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
from fedaccord.wording import count, format_duration, format_level

if TYPE_CHECKING:
    from fedaccord.federation.defection.audit import Known
    from fedaccord.federation.runs.execute import Progress
    from fedaccord.frontier.compare import Stage

BAR = 40
News = TypeVar("News")


# What is drawn.


def draw_audit(progress: Progress) -> RenderableType:
    """Draw how far an audit is, and how often defectors were satisfied so far."""
    left = "" if progress.left is None else f", about {format_duration(progress.left)} left"
    there = f" ({progress.reused:,} were there already)" if progress.reused else ""
    what = "plans" if progress.planning else "runs"
    words = line(f"{progress.done:,} of {progress.total:,} {what}{there}{left}")
    known = [_draw_known(progress.known)] if progress.known else []
    return Group(_draw_bar(progress.done, progress.total), words, *known)


def draw_stage(stage: Stage) -> RenderableType:
    """Draw what stage of a comparison is under way, and how far it is."""
    if stage.audit is not None:
        return Group(line(stage.what), draw_audit(stage.audit))
    words = line(f"{stage.done:,} of {stage.total:,} runs")
    return Group(line(stage.what), _draw_bar(min(stage.done, stage.total), stage.total), words)


def _draw_bar(done: int, total: int) -> Table:
    # A bar does not end its line; a row of a grid does.
    bar = Table.grid()
    bar.add_row(ProgressBar(max(total, 1), done, width=BAR))
    return bar


def _draw_known(known: tuple[Known, ...]) -> Table:
    """Draw what is known: a row per level, a column per algorithm."""
    algorithms = list(dict.fromkeys(cell.algorithm for cell in known))
    table = Table.grid(padding=(0, 3, 0, 0))
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


# Where it is shown.


@contextlib.contextmanager
def show_live(
    draw: Callable[[News], RenderableType], otherwise: Callable[[News], None]
) -> Iterator[Callable[[News], None]]:
    """Show news as they come.

    draw: draws them.
    otherwise: what is done with them off a terminal, where nothing is shown.
    """
    console = Console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield otherwise
        return
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
