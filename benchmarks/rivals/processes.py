"""The engines, each in processes of its own that do one job after the other."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

HERE = Path(__file__).parent
PFL_VENV = HERE.parents[1] / ".venv-pfl"
PFL = ("pfl[pytorch]==0.6.0", HERE.parent / "pfl-constraints.txt")
# How long a job may take before its engine is given up, in seconds.
PATIENCE = 300.0


class EngineError(RuntimeError):
    """An engine did not start, or gave up."""


class Engine:
    """One or more processes that do jobs together, and answer in lines of JSON."""

    def __init__(self, name: str, commands: list[list[str]], folder: Path, **env: str) -> None:
        self._log = folder / f"{name}.log"
        self._processes = []
        # Free before any of them starts, and the same for all.
        port = _free_port()
        with self._log.open("w") as log:
            for rank, command in enumerate(commands):
                own = {key: value.format(rank=rank, port=port) for key, value in env.items()}
                self._processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                        cwd=folder,
                        env={**os.environ, "FEDACCORD_BENCH_WORK": str(folder), **own},
                    )
                )
        self.ready = self._heard()[0]

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Have a job done; with the processor time of all its processes, for each round made."""
        before = self._processor_time()
        for rank, process in enumerate(self._processes):
            own = job if rank == 0 else {**job, "save": None}
            # One that is gone is noticed when its answer does not come.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(own) + "\n")
                process.stdin.flush()
        answers = self._heard()
        after = self._processor_time()
        steps = [a["steps"] for a in answers]
        return {
            "seconds": max(a["seconds"] for a in answers),
            "steps": None if None in steps else sum(steps),
            "samples": sum(a["samples"] for a in answers),
            "accuracy": answers[0]["accuracy"],
            "cpu_seconds": (after - before) / (answers[0].get("made") or job["rounds"]),
        }

    def _processor_time(self) -> float:
        """Sum the seconds of the processes and of all that they started; NaN where unknown."""
        table = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                # After the name, which may have blanks in it: state, parent, ..., user, system.
                fields = file.read_text().rpartition(")")[2].split()
                table[int(file.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
        own = {process.pid for process in self._processes}
        while more := {pid for pid, (parent, _) in table.items() if parent in own} - own:
            own |= more
        ticks = [table[pid][1] for pid in own if pid in table]
        return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else math.nan

    def _heard(self) -> list[dict[str, Any]]:
        late = threading.Timer(PATIENCE, self._kill)
        late.start()
        try:
            lines = [process.stdout.readline() for process in self._processes]
        finally:
            late.cancel()
        if not all(lines):
            self._kill()
            words = " ".join(self._log.read_text().split())
            raise EngineError(f"its process ended: ... {words[-600:]}")
        return [json.loads(line) for line in lines]

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """Tell the processes that there is no more to do, and wait until they are gone."""
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_pfl() -> Path:
    """Give the Python of pfl's own environment, after making it where there is none."""
    python = PFL_VENV / "bin" / "python"
    if (PFL_VENV / ".installed").exists():
        return python
    Console(stderr=True).print(f"installing pfl into {PFL_VENV.name}, about two minutes once")
    wanted, constraints = PFL
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", PFL_VENV],
        [*pip, "-c", constraints, wanted],
    ):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
        except subprocess.CalledProcessError as error:
            said = " ".join(error.stderr.split())[-400:]
            raise EngineError(f"{wanted} cannot be installed: {said}") from None
        except (subprocess.TimeoutExpired, OSError) as error:
            raise EngineError(f"{wanted} cannot be installed: {error}") from None
    (PFL_VENV / ".installed").touch()
    return python


def _start_local(folder: Path) -> Engine:
    return Engine("local", [[sys.executable, str(HERE / "run_local.py"), str(folder)]], folder)


def _start_flower(folder: Path) -> Engine:
    command = [sys.executable, str(HERE / "run_flower.py"), str(folder)]
    return Engine("flower", [command], folder, FLWR_HOME=str(folder / "flwr"))


def _start_pfl(folder: Path, processes: int = 1) -> Engine:
    command = [str(install_pfl()), str(HERE / "run_pfl.py"), str(folder)]
    if processes == 1:
        return Engine("pfl", [command], folder)
    # As its users spread it over processes.
    addresses = ",".join(["127.0.0.1:{port}"] * processes)
    return Engine(
        "pfl2",
        [command] * processes,
        folder,
        PFL_WORKER_RANK="{rank}",
        PFL_WORKER_ADDRESSES=addresses,
    )


STARTS: dict[str, Callable[[Path], Engine]] = {
    "local": _start_local,
    "flower": _start_flower,
    "pfl": _start_pfl,
    "pfl2": functools.partial(_start_pfl, processes=2),
}
