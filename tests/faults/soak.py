"""Try every command under faults for about ten minutes of a core, and print counts.

    python tests/faults/soak.py [--seed N] [--folder DIR]

It exits with 1 if anything went wrong. What was at fault is kept in the folder.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]

from faults import hostile, kills, mutants, surroundings  # noqa: E402

from fedaccord._checks import cores  # noqa: E402

Told = Iterator[tuple[str, list[str]]]


def kill_audits(audit: kills.Audit, seed: int, *, alone: int = 40, together: int = 15) -> Told:
    """Kill audits with one worker and with two."""
    for workers, count in ((1, alone), (2, together)):
        if workers > cores():
            yield "audits with --workers 2 were not killed: this machine has one core", []
            continue
        found = kills.Kills(audit, workers, seed)
        found.make(count)
        yield f"audits with --workers {workers}, killed: {describe(found.counts)}", found.faults


def disturb_audits(audit: kills.Audit, seed: int, *, stores: int = 60) -> Told:
    """Stop audits, run two at once, and damage their stores."""
    both = (1, 2) if cores() > 1 else (1,)
    for workers in both:
        told = f"an audit with --workers {workers}, stopped and continued: 1"
        yield told, kills.stop_and_continue(audit, workers)
    if cores() > 1:
        yield "an audit killed while its workers were stopped: 1", kills.kill_over_stopped(audit)
    yield "two audits on one store: 2", kills.run_twice(audit)
    counts, faults = kills.damage_store(audit, stores, seed)
    yield f"damaged stores: {describe(counts)}", faults


def change_files(seed: int, *, count: int = 90) -> Told:
    """Give commands mutated files of every format."""
    codes: dict[str, Counter[str]] = {}
    for reader, n, ended, faults in mutants.try_mutants(count, seed=seed):
        code = "too long" if ended.code is None else f"exit code {ended.code}"
        codes.setdefault(reader.kind, Counter())[code] += 1
        if faults:
            yield "", [f"{reader.kind} {n}, {reader.command}: {fault}" for fault in faults]
    for kind, counts in codes.items():
        yield f"mutated files, {kind}: {describe(counts)}", []
    yield f"mutated files: {sum(sum(counts.values()) for counts in codes.values())}", []
    found = list(mutants.leave_folder())
    told = f"names of matrices outside the folder, refused: {len(found)}"
    yield told, [f"{name!r}: {fault}" for name, faults in found for fault in faults]


def change_surroundings(audit: kills.Audit) -> Told:
    """Fill disks, close folders, and start commands in strange surroundings."""
    place = Path("disk").absolute()
    try:
        for free in (0, 8 << 10, 64 << 10):
            yield from tell(f"a disk with {free >> 10} KiB", surroundings.fill_disk(place, free))
        yield "an audit that fills its disk and goes on: 1", surroundings.outgrow_disk(audit, place)
        yield from tell("a folder that is read only", surroundings.close_folder(place))
    except surroundings.Unmountable as reason:
        yield f"full disks and closed folders were not tried: {reason}", []
    usual = {line: surroundings.start_strangely({}, line) for line in surroundings.READERS}
    for name, strange in surroundings.STRANGE.items():
        faults = [
            f"{name}, {line}: {fault}"
            for line, before in usual.items()
            for fault in surroundings.compare(before, surroundings.start_strangely(strange, line))
        ]
        yield f"{name}, commands: {len(usual)}", faults


def give_hostile_names() -> Told:
    """Give agents names that mean harm."""
    hostile.prepare(Path.cwd())
    yield from tell("hostile names, tables", hostile.write_tables())
    yield from tell("hostile names, pages", hostile.open_pages())


def tell(what: str, found: Iterator[tuple[str, kills.Ended, list[str]]]) -> Told:
    """Sum up commands by their exit codes."""
    codes: Counter[str] = Counter()
    for line, ended, faults in found:
        codes[f"exit code {ended.code}"] += 1
        if faults:
            yield "", [f"{what}, {line}: {fault}" for fault in faults]
    yield f"{what}: {describe(codes)}", []


def describe(counts: dict[str, int]) -> str:
    """Return counts in a line."""
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    folder = (asked.folder or Path(tempfile.mkdtemp(prefix="soak-"))).absolute() / "work"
    folder.mkdir(parents=True)
    os.chdir(folder)
    began = time.monotonic()
    mutants.prepare(folder)
    audit = kills.Audit()
    steps: tuple[Callable[[], Told], ...] = (
        lambda: kill_audits(audit, asked.seed),
        lambda: disturb_audits(audit, asked.seed),
        lambda: change_files(asked.seed),
        lambda: change_surroundings(audit),
        give_hostile_names,
    )
    faults = 0
    for step in steps:
        for told, found in step():
            faults += len(found)
            lines = [*([told] if told else []), *(f"    FAULT {fault}" for fault in found)]
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()
    minutes = (time.monotonic() - began) / 60
    sys.stdout.write(f"{faults} faults in {minutes:.0f} minutes; files in {folder}\n")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
