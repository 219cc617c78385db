"""Compile the native block while the package is being built, and pack the paper's numbers.

Without a C++ compiler the build goes on: the package then trains with torch, and
fedaccord.federation.models.fused.why_not() says why. Run by hand, after a change of the source:

    python hatch_build.py
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling need not be installed
    BuildHookInterface = object  # type: ignore[assignment,misc]

FOLDER = Path(__file__).parent / "src" / "fedaccord" / "federation" / "fused"
SOURCE = FOLDER / "fused.cpp"
LIBRARY = FOLDER / "fused.so"
# Why there is no library, for why_not(); written only when there is none.
REASON = FOLDER / "not_built.txt"
COMPILERS = ("c++", "g++", "clang++")
# No -ffast-math: results must be those of ordinary arithmetic.
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=default", "-ffp-contract=fast"]


def compile_native() -> str | None:
    """Compile the native block beside its source; give why not, or None when it worked."""
    reason = _compile()
    if reason is None:
        REASON.unlink(missing_ok=True)
    else:
        LIBRARY.unlink(missing_ok=True)
        REASON.write_text(reason + "\n", encoding="utf-8")
    return reason


def _compile() -> str | None:
    if os.name == "nt":
        # GCC does not align the stack there for registers of 32 bytes, so the block could crash.
        return "it is not built on Windows"
    command = _compiler()
    if command is None:
        return "no C++ compiler was found"
    flags = list(FLAGS)
    if platform.machine().lower() in ("x86_64", "amd64"):
        flags += ["-mavx2", "-mfma"]
    # By this models/fused.py tells whether the library is of the source beside it.
    digest = hashlib.sha256()
    for file in sorted(FOLDER.glob("*.[ch]pp")):
        digest.update(file.read_bytes())
    # Elsewhere first, then at once in place of the old: a process may be about to load it.
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        made = Path(folder) / LIBRARY.name
        flags += [f'-DFUSED_SOURCE="{digest.hexdigest()}"', str(SOURCE), "-o", str(made)]
        try:
            done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]} did not run: {error}"
        if done.returncode or not made.exists():
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            return f"{command[0]} failed and said: {said[:200]}"
        os.replace(made, LIBRARY)
    return None


def _compiler() -> list[str] | None:
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        return chosen if shutil.which(chosen[0]) else None
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


def packed(root: Path) -> dict[str, str]:
    """Give the experiments' configs and the paper's numbers, by where they go in a wheel."""
    files = sorted((root / "experiments" / "blum2021").glob("*.toml"))
    return {str(file): f"fedaccord/reproduce/blum2021/{file.name}" for file in files}


def platform_tag(system: str, machine: str) -> str:
    """Return the platform of a wheel that holds the native block.

    system: what Python was built for, such as linux-x86_64 or macosx-10.13-universal2.
    machine: the processor that the compiler makes code for.
    """
    if system.endswith("universal2"):
        # Python holds code for two processors there, and the block for one. Wheels for arm64
        # begin with macOS 11.
        system = "macosx-11.0-arm64" if machine == "arm64" else f"{system[:-10]}{machine}"
    return system.replace("-", "_").replace(".", "_")


class NativeBlock(BuildHookInterface):
    """The hook by which hatchling compiles the native block, for wheels and editable installs."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; only a wheel that holds machine code is tied to its platform."""
        # An editable install finds them in the checkout.
        if version != "editable":
            build_data["force_include"].update(packed(Path(self.root)))
        reason = compile_native()
        if reason is not None:
            self.app.display_warning(f"fedaccord is built without its native block: {reason}")
            build_data["artifacts"].append(str(REASON.relative_to(Path(self.root))))
            return
        build_data["artifacts"].append(str(LIBRARY.relative_to(Path(self.root))))
        build_data["pure_python"] = False
        # Not tied to a version of Python: the library is loaded by ctypes.
        build_data["tag"] = f"py3-none-{platform_tag(sysconfig.get_platform(), platform.machine())}"


if __name__ == "__main__":
    raise SystemExit(compile_native())
