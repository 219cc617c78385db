"""What tests that start processes need: quiet settings, free ports, patience, and who is alive."""

import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import run

# Flower and Ray send nothing home, and do not warn of the future.
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# A machine that is busy with other tests may be very slow.
PATIENCE = 240.0
# Below those that systems give to whoever connects somewhere, so that nobody gets one by chance
# between being found free here and being used.
PORTS = range(12_000, 32_000)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are seen in /proc"
)

_given: set[int] = set()


def free_ports(count: int) -> int:
    """Give the first of so many ports in a row that nobody uses, and that were not given before."""
    # Not what random numbers are drawn from elsewhere, which tests set to be the same everywhere.
    ours = random.SystemRandom()
    while True:
        first = ours.randrange(PORTS.start, PORTS.stop - count)
        row = set(range(first, first + count))
        with contextlib.suppress(OSError), contextlib.ExitStack() as bound:
            for port in row - _given:
                bound.enter_context(socket.socket()).bind(("127.0.0.1", port))
            if not row & _given:
                _given.update(row)
                return first


def free_port() -> int:
    """Give a port that nobody uses, and that was not given before."""
    return free_ports(1)


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait for something that happens soon, or complain that it has not."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not in {seconds:g} seconds"
        time.sleep(0.05)
    return found


class Living(NamedTuple):
    """A process that is not just waiting to be buried."""

    name: str
    parent: int
    group: int


def processes() -> dict[int, Living]:
    """Give every living process by its id."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = stat.read_text().split("(", 1)[1].rsplit(")", 1)
            state, parent, group = rest.split()[:3]
            if state != "Z":
                found[int(stat.parent.name)] = Living(name, int(parent), int(group))
    return found


def is_alive(pid: int) -> bool:
    return pid in processes()


def told(pid: int, what: str = "cmdline") -> bytes:
    """Give the command line of a process, or its environ; nothing if it is gone or not ours."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes()
    return b""


def start_elsewhere(command: Sequence[Any]) -> int:
    """Run a command in a process of its own; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os._exit(run(*command).code)
    finally:
        os._exit(99)


def make_in_spite_of_a_kill(command: Sequence[Any], after: float) -> bool:
    """Run a command, kill it after some seconds and run it again; return whether it was killed."""
    child = start_elsewhere(command)
    end = time.monotonic() + after
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.002)
    if killed := not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        ended = os.waitpid(start_elsewhere(command), 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    return killed


def make_parts_in_spite_of_kills(
    command: Sequence[Any], numbers: Iterable[int], of: int, seconds: float, ours: random.Random
) -> None:
    """Make parts of a command's work, each killed at some moment and made again; some were.

    numbers: of the parts to make.
    of: how many parts there are.
    seconds: at most how long after its start a part is killed.
    """
    killed = [
        make_in_spite_of_a_kill([*command, "--part", f"{i}/{of}"], ours.uniform(0, seconds))
        for i in numbers
    ]
    assert any(killed)


def merge_in_any_order(parts: list[str], whole: str, ours: random.Random) -> None:
    """Merge all parts of some work twice, each time in another order; the second adds nothing."""
    for _ in range(2):
        ours.shuffle(parts)
        done = run("merge", *parts, "--into", whole)
        assert (done.code, done.stdout) == (0, "")
        assert "unfinished" not in done.stderr
    assert "0 of them are new" in done.stderr
