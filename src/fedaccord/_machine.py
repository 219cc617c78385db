"""What results are made on and with."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fedaccord.errors import InputError

# Whose versions decide a result, the heavy ones only where they are installed.
PACKAGES = ("fedaccord", "numpy", "scipy", "numba", "cvxpy", "pyscipopt", "torch", "scikit-learn")


def cores() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def whole_workers(workers: object) -> int:
    """Give a number of workers, on whatever machines, or say what is wrong."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(f"workers must be a whole number of 1 or more; got {workers!r}")
    return workers


def checked_workers(workers: object) -> int:
    """Give a number of workers that this machine has cores for, or say what is wrong."""
    workers = whole_workers(workers)
    if workers > cores():
        raise InputError(
            f"{workers} workers are more than the cores here, {cores()}, and would get in each "
            f"other's way: ask for {cores()} or fewer"
        )
    return workers


def machine() -> str:
    """Name the processor, the cores that this process may use, and the system."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    count = cores()
    return f"{model}, {count} {'core' if count == 1 else 'cores'}, {platform.system()}"


def versions() -> str:
    """Name the versions that decide results, without importing anything."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)
