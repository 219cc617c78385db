"""Try an installed fedaccord, with its extra "train", on an emulated processor without AVX2.

Run it in the checkout, with the Python in which the wheel is installed:

    python .ci/try_processor.py

It needs qemu-x86_64 (on Debian: apt-get install qemu-user). Commands and training must work there
without the native block. Where the block is used in spite of that, the processor must stop: an
emulator that runs AVX2 would show nothing.
"""

import json
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import fedaccord

ROOT = Path(__file__).resolve().parents[1]
HOSPITALS = ROOT / "docs" / "tutorial" / "hospitals.json"
PILOTS = ROOT / "docs" / "how-to" / "network" / "pilots.csv"
BLOCK = Path(fedaccord.__file__).parent / "federation" / "fused" / "fused.so"
# The last has neither AVX nor AVX2.
WITH_AVX2, WITHOUT = "max", "Nehalem"

TRAIN = """
import json
from fedaccord.federation.config.load import Config
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.models import fused
from fedaccord.federation.models.networks import PaperNet
from fedaccord.federation.training.loop import train
import torch
model = PaperNet()
model(torch.ones(2, 1, 28, 28)).sum().backward()
seen = train(Config.default().build(seed=1).deal(0), FedAvg(rounds=2, batch_size=8), seed=1)
print(json.dumps([fused.why_not(), model.engine, seen.loss.tolist()]))
"""
# The fault: the block says that it runs on every processor.
FORCED = """
import ctypes
import torch
class Forced(ctypes.CDLL):
    fused_runs_here = staticmethod(lambda: 1)
ctypes.CDLL = Forced
"""


def emulate(processor: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python on a processor."""
    command = ["qemu-x86_64", "-cpu", processor, sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def run(*arguments: object, code: int = 0) -> str:
    """Run a command of fedaccord without AVX2, and give what it printed."""
    done = emulate(WITHOUT, "-m", "fedaccord", *arguments)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def try_commands(folder: Path) -> None:
    """Run the commands of the core, and compare with the tutorial's and the README's numbers."""
    solved = json.loads(run("solve", HOSPITALS, "--json"))
    assert round(solved["solutions"]["stable"]["total"], 3) == 2100, solved
    proposal = folder / "proposal.csv"
    proposal.write_text("agent,contribution\nUniversity,700\nCity,700\nRural,700\n")
    assert "City is short by 250" in run("check", HOSPITALS, proposal, code=1)
    plan = json.loads(run("plan", PILOTS, "--json"))
    row = rf"Harbour .* {plan['contributions'][0]:,.0f} \["
    assert re.search(row, (ROOT / "README.md").read_text(encoding="utf-8")), plan["contributions"]


def try_training() -> None:
    """Train without the block, and with the fault, which only a processor with AVX2 survives."""
    done = emulate(WITHOUT, "-c", TRAIN)
    assert done.returncode == 0, done.stderr
    reason, engine, losses = json.loads(done.stdout)
    assert "needs a processor with AVX2" in reason and engine == "torch", (reason, engine)
    print(f"{WITHOUT}: {reason}; losses {losses}")
    forced = emulate(WITHOUT, "-c", FORCED + TRAIN)
    assert forced.returncode == -signal.SIGILL, (forced.returncode, forced.stderr)
    print(f"{WITHOUT}, block forced: {signal.Signals(-forced.returncode).name}")
    able = emulate(WITH_AVX2, "-c", FORCED + TRAIN)
    assert able.returncode == 0, able.stderr
    assert json.loads(able.stdout)[:2] == [None, "native"], able.stdout
    print(f"{WITH_AVX2}, block forced: losses {json.loads(able.stdout)[2]}")


def main() -> None:
    """Run all of it, or say why not."""
    assert ROOT not in Path(fedaccord.__file__).parents, "this tries the checkout, not the install"
    if shutil.which("qemu-x86_64") is None:
        print("skipped: there is no qemu-x86_64 (on Debian: apt-get install qemu-user)")
        return
    if platform.machine() != "x86_64" or not BLOCK.exists():
        print("skipped: the package has no native block for x86_64")
        return
    with tempfile.TemporaryDirectory() as folder:
        try_commands(Path(folder))
    print(f"{WITHOUT}: solve, check and plan give the documented numbers")
    try_training()


if __name__ == "__main__":
    main()
