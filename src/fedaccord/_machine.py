"""What results are made on and with."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fedaccord._checks import cores

# Whose versions decide a result, the heavy ones only where they are installed.
PACKAGES = ("fedaccord", "numpy", "scipy", "numba", "cvxpy", "pyscipopt", "torch", "scikit-learn")


def machine() -> str:
    """Return the names of the processor, the cores that this process may use, and the system."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    count = cores()
    return f"{model}, {count} {'core' if count == 1 else 'cores'}, {platform.system()}"


def versions() -> str:
    """Return the versions that decide results, without importing anything."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)
