"""What the benchmarks share: tasks that take turns, ratios with their spread, files of results.

Machines are noisy. So what is compared is measured in turn, several times, and a ratio is of two
measurements that follow each other. A row has the median of its ratios, and their spread. Seconds
are those of this process's processor time unless a row says otherwise: a process that waits for a
core does not become slower by that.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from fedaccord._io.files import replace_file


def clock(
    task: Callable[[], Any], watch: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Time a task once.

    watch: time.perf_counter where other processes do the work.
    """
    begin = watch()
    result = task()
    return watch() - begin, result


def take_turns(tasks: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """Do each task in turn, so that a slow minute of the machine falls on all alike."""
    results: dict[str, list[Any]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            results[name].append(task())
    return results


def interleaved(
    tasks: dict[str, Callable[[], Any]],
    rounds: int,
    watch: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Time each task in turn."""
    clocked = {name: functools.partial(clock, task, watch) for name, task in tasks.items()}
    return {name: [s for s, _ in found] for name, found in take_turns(clocked, rounds).items()}


def yardstick() -> float:
    """Do a fixed piece of work in Python and NumPy, for tasks that have no rival."""
    square = (np.arange(90_000.0) % 97).reshape(300, 300)
    return sum(n * n for n in range(500_000)) + float((square @ square).sum())


def compare(upper: Iterable[float], lower: Iterable[float], key: str = "ratio") -> dict[str, Any]:
    """Return the median of the ratios of measurements that follow each other, and their spread."""
    return summarize([a / b for a, b in zip(upper, lower, strict=True)], key)


def summarize(values: list[float], key: str) -> dict[str, Any]:
    """Return the median of values and their spread, under a key."""
    least, low, middle, high, most = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    spread = {"min": least, "quartiles": [low, high], "max": most, "repeats": len(values)}
    return {key: middle, f"{key}_spread": spread}


def write_ratio(row: dict[str, Any], key: str = "ratio") -> str:
    """Write a ratio with its least and its most."""
    if key not in row:
        return ""
    spread = row[f"{key}_spread"]
    return f"{row[key]:.3g} [{spread['min']:.3g}, {spread['max']:.3g}]"


def compare_seconds(
    name: str, ours: list[float], theirs: list[float], *, faster: bool, **rest: Any
) -> dict[str, Any]:
    """Make a row of the seconds of two tasks that took turns.

    faster: whether the ratio says how often ours fits into theirs; otherwise theirs into ours.
    rest: what else the row has.
    """
    return {
        "row": name,
        "seconds": statistics.median(ours),
        "against_seconds": statistics.median(theirs),
        **(compare(theirs, ours) if faster else compare(ours, theirs)),
        "all_seconds": {"ours": ours, "against": theirs},
        **rest,
    }


def in_child(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a process of its own, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, arguments)


def machine(*packages: str) -> dict[str, Any]:
    """Say what ran this, and how busy it was: above the number of cores, tasks had to wait."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or "unknown"
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "threads_used": 1,
        "python": platform.python_version(),
        **{name: version(name) for name in ("fedaccord", "numpy", "scipy", "numba", *packages)},
    }


def measure_rows(
    measures: dict[str, Callable[[bool], Any]],
    chosen: argparse.Namespace,
    *,
    results: Path,
    seed: int,
    machine: Callable[[], Any],
    table: Callable[[Any], Table],
) -> None:
    """Measure the groups asked for, print them, and put them beside the others in the file."""
    console = Console(width=160)
    for name in chosen.only:
        rows = measures[name](chosen.quick)
        console.print(table(rows))
        if not chosen.quick:
            # Written as they come: a run cut short loses only the row in hand. Read at the last
            # moment: another process may measure other groups.
            groups = json.loads(results.read_text())["groups"] if results.exists() else {}
            groups[name] = {"machine": machine(), "rows": rows}
            text = {"command": "make bench", "seed": seed, "groups": groups}
            replace_file(results, json.dumps(text, indent=1) + "\n")


def parse_rows(
    title: str, rows: Iterable[str], *, rare: Iterable[str] = ()
) -> argparse.ArgumentParser:
    """Make a parser of the options that all benchmarks of groups have.

    rare: groups that are measured only when they are asked for.
    """
    parser = argparse.ArgumentParser(description=title)
    rows = list(rows)
    default = [row for row in rows if row not in rare]
    parser.add_argument("--only", nargs="*", choices=rows, default=default)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    return parser
