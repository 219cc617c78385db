"""What results are made on and with."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Whose versions decide a result, the heavy ones only where they are installed.
PACKAGES = ("fedaccord", "numpy", "scipy", "numba", "cvxpy", "pyscipopt", "torch", "scikit-learn")


def machine() -> str:
    """Name the processor, the cores that this process may use, and the system."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} {'core' if cores == 1 else 'cores'}, {platform.system()}"


def versions() -> str:
    """Name the versions that decide results, without importing anything."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)
