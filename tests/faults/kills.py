"""Audits that are killed, stopped, run twice at once, or given a damaged store.

Each ends as an audit that nobody disturbed: no finished run is lost, the result is the same, and
no process outlives the one that started it.
"""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from commands import run, write
from faults.forked import Ended, Forked, Started
from faults.mutants import change_row, cut, flip
from federation.tiny import tiny_audit
from processes import processes, until

from fedaccord.errors import FedaccordError
from fedaccord.federation.defection.stored import read_audits

PATIENCE = 120.0
# How long after its parent's end nothing of a command may be alive, in seconds.
GONE_AFTER = 1.0
STORE = Path("killed.sqlite")
Rows = frozenset[tuple[str, str]]


class Audit:
    """An audit in the current folder, and what comes of it if nobody disturbs it.

    trials: of the audit; each has six runs.
    """

    def __init__(self, trials: int = 12) -> None:
        config = tiny_audit(trials=trials).replace("rounds = 4", "rounds = 10")
        write(Path("tiny.toml"), config)
        # In this process: what is imported now need not be again in every fork.
        done = run(*self.arguments(1, "unbroken.sqlite"))
        assert done.code == 0, done.stderr
        self.expected = timeless(done.stdout)
        self.rows = read_rows(Path("unbroken.sqlite"))

    def arguments(self, workers: int, store: str | Path = STORE) -> list[Any]:
        """Return the command."""
        return ["audit", "tiny.toml", "--workers", workers, "--results", store, "--json"]

    def finish(self, workers: int = 1) -> list[str]:
        """Run the audit to its end; list what is not as it is in an audit that nobody disturbed."""
        return self.judge(Started(self.arguments(workers)).wait(PATIENCE))

    def judge(self, ended: Ended) -> list[str]:
        """List what is wrong with an audit that should have come to its end."""
        faults = ended.faults(codes=(0,))
        if not faults and timeless(ended.out) != self.expected:
            faults.append("another result than without the disturbance")
        if not faults and read_rows(STORE) != self.rows:
            faults.append("other runs in the store")
        return faults


def timeless(text: str) -> Any:
    """Read a result, without its times."""
    found = json.loads(text)
    return {key: found[key] for key in found if key not in ("seconds", "run_seconds")}


def read_rows(path: Path) -> Rows:
    """Read which runs a store has, and what came of each; none where it is not there yet."""
    if not path.exists():
        return frozenset()
    with closing(sqlite3.connect(path, timeout=60)) as store, suppress(sqlite3.OperationalError):
        return frozenset(store.execute("SELECT key, digest FROM runs"))
    return frozenset()


def is_locked(path: Path) -> bool:
    """Return whether a store cannot be read, because somebody writes into it."""
    with closing(sqlite3.connect(path, timeout=0)) as store:
        try:
            store.execute("SELECT count(*) FROM runs")
        except sqlite3.OperationalError as error:
            return "locked" in str(error)
    return False


def tell(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes."""
    for pid in pids:
        os.kill(pid, number)


def descend(pid: int) -> set[int]:
    """Return the processes that a process has started, directly or not."""
    alive, found = processes(), {pid}
    while more := {n for n, one in alive.items() if one.parent in found and n not in found}:
        found |= more
    return found - {pid}


def outlive(pids: set[int]) -> list[str]:
    """List processes that are alive a second after their parent's end, and end them."""
    time.sleep(GONE_AFTER)
    left = sorted(pids & processes().keys())
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"process {pid} outlived its parent" for pid in left]


class Kills:
    """Kills audits again and again until they have ended in spite of it.

    audit: which.
    workers: 1 or 2.
    """

    def __init__(self, audit: Audit, workers: int, seed: int = 0) -> None:
        self.audit, self.workers = audit, workers
        self.random = random.Random(f"{seed} {workers}")
        self.counts = dict.fromkeys(("parent", "worker", "too late", "audits finished"), 0)
        self.faults: list[str] = []

    def make(self, kills: int) -> None:
        """Kill so many processes, and finish the last audit."""
        STORE.unlink(missing_ok=True)
        while self.counts["parent"] + self.counts["worker"] < kills:
            self.kill_once()
            if read_rows(STORE) == self.audit.rows:
                self.end_audit()
        self.end_audit()

    def end_audit(self) -> None:
        """Let the audit come to its end, and begin with a new store."""
        self.faults += self.audit.finish(self.workers)
        self.counts["audits finished"] += 1
        STORE.unlink()

    def kill_once(self) -> None:
        """Start the audit and kill it, or one of its workers, at some moment."""
        before = read_rows(STORE)
        audit = Started(self.audit.arguments(self.workers))
        # Some are killed as they start, most in the middle of their work.
        if self.random.random() < 0.8:
            wait_for_run(audit.pid, before)
        time.sleep(self.random.uniform(0, 0.4))
        started, safe = descend(audit.pid), read_rows(STORE)
        of_parent = not started or self.counts["worker"] > self.counts["parent"]
        victim = audit.pid if of_parent else self.random.choice(sorted(started))
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        ended = audit.wait(PATIENCE)
        if self.workers > 1:
            self.faults += outlive(started)
        if not safe <= read_rows(STORE):
            self.faults.append("finished runs were lost")
        if of_parent and ended.code == -signal.SIGKILL:
            self.counts["parent"] += 1
        elif not of_parent and ended.code == 2:
            self.counts["worker"] += 1
            self.faults += ended.faults(codes=(2,))
            if "safe in" not in ended.err:
                self.faults.append(f"no word on finished runs: {ended.err}")
        else:
            # It had ended, or the worker had nothing left to do.
            self.counts["too late"] += 1
            self.faults += ended.faults(codes=(0,))


def wait_for_run(pid: int, before: Rows) -> None:
    """Wait until an audit has stored a run more than before, or has ended."""
    until(lambda: read_rows(STORE) > before or pid not in processes(), "a run is stored", PATIENCE)


def stop_and_continue(audit: Audit, workers: int) -> list[str]:
    """Stop all processes of an audit for a moment, and then let it come to its end."""
    STORE.unlink(missing_ok=True)
    running = Started(audit.arguments(workers))
    wait_for_run(running.pid, frozenset())
    group = [running.pid, *descend(running.pid)]
    tell(group, signal.SIGSTOP)
    while is_locked(STORE):
        # It was writing: as long as it stands, nobody can read.
        tell(group, signal.SIGCONT)
        time.sleep(0.01)
        tell(group, signal.SIGSTOP)
    there = read_rows(STORE)
    time.sleep(1)
    stood = read_rows(STORE) == there
    tell(group, signal.SIGCONT)
    return [*([] if stood else ["a stopped audit went on"]), *audit.judge(running.wait(PATIENCE))]


def kill_over_stopped(audit: Audit) -> list[str]:
    """Kill an audit whose workers are stopped: they go with it."""
    STORE.unlink(missing_ok=True)
    running = Started(audit.arguments(2))
    wait_for_run(running.pid, frozenset())
    workers = descend(running.pid)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    faults = [] if workers else ["there were no workers"]
    return [*faults, *outlive(workers), *audit.finish(2)]


def run_twice(audit: Audit) -> list[str]:
    """Run two audits on one store at the same time."""
    STORE.unlink(missing_ok=True)
    both = [Started(audit.arguments(1)) for _ in range(2)]
    return [fault for one in both for fault in audit.judge(one.wait(PATIENCE))]


def change_digit(content: bytes, ours: random.Random) -> bytes:
    """Change a digit in a list of numbers: the file stays sound, and a result is another."""
    place = ours.choice(list(re.finditer(rb"\[(\d+), ?\d+\]", content))).start(1)
    other = (content[place] - ord("0") + ours.randrange(1, 10)) % 10
    return content[:place] + b"%d" % other + content[place + 1 :]


def list_audits() -> None:
    """Read the store as `explore` does."""
    try:
        read_audits(STORE)
    except FedaccordError as error:
        sys.stderr.write(f"fedaccord: {error}\n")
        sys.exit(2)


def damage_store(audit: Audit, count: int, seed: int = 0) -> tuple[dict[str, int], list[str]]:
    """Give the audit damaged stores: it refuses each, or finds what it would have found.

    Return how many were refused and how many were read, and what was wrong.
    """
    counts, faults = {"refused": 0, "read": 0}, []
    sound = Path("unbroken.sqlite").read_bytes()
    ways: Sequence[Callable[[bytes, random.Random], bytes]] = (flip, cut, change_row, change_digit)
    for n in range(count):
        ours = random.Random(f"{seed} store {n}")
        way = ways[n % len(ways)]
        STORE.write_bytes(way(sound, ours))
        found = Forked([], command=list_audits).wait(PATIENCE).faults(codes=(0, 2))
        ended = Started(audit.arguments(1)).wait(PATIENCE)
        found += ended.faults(codes=(0, 2))
        if ended.code == 0:
            mine = {key: audit.expected[key] for key in audit.expected if key != "versions"}
            theirs = timeless(ended.out)
            if mine != {key: theirs[key] for key in mine}:
                found.append("a wrong result out of a damaged store")
        counts["refused" if ended.code == 2 else "read"] += 1
        if found:
            shutil.copy(STORE, f"fault-store-{n}.sqlite")
        faults += [f"store {n}, {way.__name__}: {fault}" for fault in found]
    STORE.unlink(missing_ok=True)
    return counts, faults
