"""Commands in processes that are forked, limited and judged.

A fork has everything imported already, so that hundreds of commands take minutes. It is a process
of its own all the same, with its own memory, files and end.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 30.0
MEMORY = 4 << 30
# No such sentence is an answer to a small file.
NO_MEMORY = "too little memory"


@dataclass(frozen=True)
class Ended:
    """A command that has ended.

    code: its exit code, negative for a signal; None if it was killed because it took too long.
    out, err: what it wrote.
    seconds: how long it took.
    """

    code: int | None
    out: str
    err: str
    seconds: float

    def faults(self, codes: Sequence[int] = (0, 1, 2)) -> list[str]:
        """List what no command may do, whatever its input is.

        codes: the exit codes that are right.
        """
        found = []
        if self.code is None:
            found.append(f"it took over {self.seconds:.0f} s")
        elif self.code not in codes:
            found.append(f"exit code {self.code}")
        if "Traceback" in self.out + self.err:
            found.append("a traceback")
        if NO_MEMORY in self.err:
            found.append(f"over {MEMORY >> 30} GiB")
        if self.code == 2 and (self.out or not self.err.startswith("fedaccord: ")):
            found.append("no sentence, or something apart from it")
        last = self.err.strip().splitlines()[-1:]
        return [f"{fault}: {' '.join(last)}" for fault in found]


class Forked:
    """A command in a fork of this process.

    arguments: the command's, without the program.
    memory: how many bytes it may use; None for no limit.
    command: what runs instead of fedaccord, to plant faults.
    """

    def __init__(
        self,
        arguments: Sequence[Any],
        *,
        memory: int | None = None,
        command: Callable[[], None] | None = None,
    ) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - until it ends
        self._started = time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            _run(arguments, *(file.fileno() for file in self._files), memory, command)

    def wait(self, seconds: float = SECONDS) -> Ended:
        """Wait for its end; kill it if it takes too long."""
        code = _wait(self.pid, self._started + seconds)
        taken = time.monotonic() - self._started
        texts = []
        for file in self._files:
            with file:
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        return Ended(code, *texts, taken)


class Started(Forked):
    """A command in a process of its own, for training: a fork of its threads may wait for ever.

    arguments: the command's, without the program.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - until it ends
        self._started = time.monotonic()
        line = [sys.executable, "-m", "fedaccord", *map(str, arguments)]
        self._process = subprocess.Popen(line, stdout=self._files[0], stderr=self._files[1])
        self.pid = self._process.pid

    def wait(self, seconds: float = SECONDS) -> Ended:
        """Wait for its end; kill it if it takes too long."""
        ended = super().wait(seconds)
        self._process.returncode = -signal.SIGKILL if ended.code is None else ended.code
        return ended


def _run(
    arguments: Sequence[Any],
    out: int,
    err: int,
    memory: int | None,
    command: Callable[[], None] | None,
) -> None:
    """Run a command as the interpreter does, and end this process."""
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8") for n in (1, 2))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["fedaccord", *map(str, arguments)]
        from fedaccord.__main__ import main

        (command or main)()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, end: float) -> int | None:
    """Return a child's exit code; kill it at the end of its time, and return None."""
    pause = 0.001
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
