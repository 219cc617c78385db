"""On a processor without AVX2 the native block is not used, and deciding that needs no AVX2."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fedaccord.federation.models import fused as native
from fedaccord.federation.models.networks import PaperNet

LIBRARY = native.FOLDER / "fused.so"
SENTENCE = (
    "the native block needs a processor with AVX2 and FMA; training uses torch, some 5 times slower"
)
needs_x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or not LIBRARY.exists(), reason="there is no block for x86_64"
)
# What is called, or runs when the library is loaded, before it is known what the processor can do.
BEFORE = ("_init", "frame_dummy", "__cpu_indicator_init", "fused_source", "fused_runs_here")


def test_a_processor_without_avx2_trains_with_torch_and_says_so(monkeypatch):
    functions = {name: lambda: 0 for name in native._SIGNATURES}
    digest = native.source_digest(native.FOLDER).encode()
    library = SimpleNamespace(**functions | {"fused_source": lambda: digest})
    monkeypatch.setattr(native.ctypes, "CDLL", lambda path: library)
    monkeypatch.setattr(Path, "exists", lambda path: True)
    monkeypatch.setattr(native, "_load", lambda: native.load_library(native.FOLDER))
    assert native.why_not() == SENTENCE
    assert PaperNet().engine == "torch"
    # It is the answer that decides.
    library.fused_runs_here = lambda: 1
    assert native.why_not() is None


def instructions(function):
    """List the names of a function's instructions."""
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(LIBRARY)],
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"^ +[0-9a-f]+:\t(\w+)", shown.stdout, flags=re.MULTILINE)


def needing_avx(names):
    """List the instructions that need AVX: their names begin with v, those of older ones do not."""
    return [name for name in names if name.startswith("v") and name not in ("verr", "verw")]


@needs_x86
@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump")
def test_what_runs_before_the_decision_needs_no_avx():
    for function in BEFORE:
        found = instructions(function)
        assert found or function == "_init", f"{function} is not in the library"
        assert needing_avx(found) == [], f"{function} needs AVX"
    # The look at instructions sees them where they are.
    assert needing_avx(instructions("fused_forward"))
    # No constructor of a global object runs when the library is loaded.
    symbols = subprocess.run(
        ["objdump", "-t", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    assert "_GLOBAL__sub_I" not in symbols.stdout


def emulate(processor, code):
    """Run Python code on another processor."""
    return subprocess.run(
        ["qemu-x86_64", "-cpu", processor, sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.slow
@needs_x86
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="there is no qemu-x86_64")
def test_an_emulated_processor_without_avx2_trains_with_torch():
    done = emulate(
        "Nehalem",
        "from fedaccord.federation.models import fused\n"
        "from fedaccord.federation.models.networks import PaperNet\n"
        "print(fused.why_not()); print(PaperNet().engine)",
    )
    assert (done.returncode, done.stdout) == (0, f"{SENTENCE}\ntorch\n"), done.stderr
    # The emulated processor does stop at the block's instructions, and takes them where it can.
    forward = (
        "import ctypes\n"
        f"library = ctypes.CDLL({str(LIBRARY)!r})\n"
        "room = ctypes.cast((ctypes.c_float * 2_000_000)(), ctypes.c_void_p)\n"
        "weights = (ctypes.c_void_p * 6)(*[room] * 6)\n"
        "library.fused_forward.argtypes = [ctypes.c_ssize_t, *[ctypes.c_void_p] * 3, ctypes.c_int,"
        " ctypes.c_float, *[ctypes.c_void_p] * 3]\n"
        "library.fused_forward(1, room, weights, None, 0, 1.0, room, None, room)"
    )
    assert "Illegal instruction" in emulate("Nehalem", forward).stderr
    assert emulate("max", forward).returncode == 0
