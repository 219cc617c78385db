"""Processes of our own at the end of two pipes, which end when this one does."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

# A process's first words: the search path, then all else can be imported; nothing if the process
# that started it is gone already. With a third argument, the id of that process, Linux kills it
# together with the thread that started it (PR_SET_PDEATHSIG), also in the middle of a long import;
# elsewhere it notices at its pipe.
BOOT = """
import ctypes, importlib, json, os, sys
if sys.platform == "linux" and sys.argv[3:]:
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[3]):
        sys.exit()
sys.path[:] = json.loads(sys.stdin.buffer.readline() or "0") or sys.exit()
module, name = sys.argv[2].split(":")
getattr(importlib.import_module(module), name)(sys.stdin.buffer, int(sys.argv[1]))
"""
# The processes are the parallelism: libraries must not start threads of their own.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
# Waits for the end of the process that started it, and ends whatever that has left behind.
CLEANER = """
cat
kill -s KILL -- "-$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$2" && break; sleep 0.2; done
"""


def new_token() -> dict[str, str]:
    """Return the environment of a Ray that refuses strangers, for it listens on all interfaces."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def clean_up_after(folder: Path) -> subprocess.Popen[bytes]:
    """Make a folder of this process's own, and start what removes it however this process ends.

    It first ends all processes of the group that this one leads, and so, at the end of a with
    block, this one too.
    """
    folder.mkdir(mode=0o700)
    # It waits at a pipe that nobody else has.
    return subprocess.Popen(
        ["/bin/sh", "-c", CLEANER, "sh", str(os.getpid()), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def name_folder(prefix: str) -> Path:
    """Name a new folder for a Ray, whose sockets are files in it and need short paths.

    Its process makes it, so that none is left if the process is never started.
    """
    place = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    return Path(place) / f"{prefix}{secrets.token_hex(6)}"


class Process:
    """A process: what it is to do goes in through one pipe, what came of it back by another.

    server: the function that it runs, as "module:name"; it is given the file that it reads from
        and the descriptor of the pipe that it writes to, and should leave at the end of the file.
    environment: how its environment differs from this process's, apart from one thread.
    quiet: whether its errors are not shown but kept, for `read_errors`.
    at_once: whether it is killed as soon as this process ends, since it has nothing to clean up.
    """

    def __init__(
        self,
        server: str,
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        quiet: bool = False,
        at_once: bool = False,
    ) -> None:
        parent = [str(os.getpid())] if at_once else []
        self._errors = tempfile.TemporaryFile() if quiet else None  # noqa: SIM115 - as long as it is
        read, write = os.pipe()
        try:
            # In a group of its own it does not get the terminal's Ctrl-C: this process decides.
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(write), server, *parent],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(write,),
                env={**os.environ, **ONE_THREAD, **environment},
                process_group=0,
            )
        except OSError:
            os.close(read)
            raise
        finally:
            os.close(write)
        assert self._process.stdin is not None
        self.tasks: IO[bytes] = self._process.stdin
        self.results: IO[bytes] = os.fdopen(read, "rb")

    def greet(self) -> None:
        """Send the first words; it does nothing before."""
        self.tasks.write(json.dumps(sys.path).encode() + b"\n")

    def status(self, patience: float = 5) -> int:
        """Wait for a process that no longer answers to end, and not for ever."""
        try:
            return self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.end()
            return self._process.wait()

    def end(self) -> None:
        """End the process and what it started, whatever they are at."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def hang_up(self) -> None:
        """Close the pipe, so that the process ends."""
        # What is still in the buffer has nobody to go to.
        with contextlib.suppress(BrokenPipeError):
            self.tasks.close()

    def close(self) -> None:
        """Close the pipes, and forget the errors."""
        self.results.close()
        self.hang_up()
        if self._errors is not None:
            self._errors.close()

    def read_errors(self) -> str:
        """Return the end of what a quiet process said, to find out why it ended."""
        if self._errors is None:
            return ""
        log = self._errors.fileno()
        start = max(0, os.fstat(log).st_size - 2000)
        return os.pread(log, 2000, start).decode(errors="replace").strip()
