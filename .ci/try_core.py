"""Try an installed fedaccord without extras: the documented examples, and what asks for an extra.

Run it in the checkout, with the Python in which the wheel or the sdist is installed:

    python .ci/try_core.py
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import fedaccord

ROOT = Path(__file__).resolve().parents[1]
HOSPITALS = ROOT / "docs" / "tutorial" / "hospitals.json"
PILOTS = ROOT / "docs" / "how-to" / "network" / "pilots.csv"
PROPOSAL = "agent,contribution\nUniversity,700\nCity,700\nRural,700\n"


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command, which must end with the exit code."""
    command = [sys.executable, "-m", "fedaccord", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done


def main() -> None:
    """Run the commands, and compare with the numbers of the tutorial and the README."""
    assert ROOT not in Path(fedaccord.__file__).parents, "this tries the checkout, not the install"
    solved = json.loads(run("solve", HOSPITALS, "--json").stdout)
    assert round(solved["solutions"]["stable"]["total"], 3) == 2100, solved
    with tempfile.TemporaryDirectory() as folder:
        proposal = Path(folder) / "proposal.csv"
        proposal.write_text(PROPOSAL, encoding="utf-8")
        assert "City is short by 250" in run("check", HOSPITALS, proposal, code=1).stdout
    plan = json.loads(run("plan", PILOTS, "--json").stdout)
    row = rf"Harbour .* {plan['contributions'][0]:,.0f} \["
    assert re.search(row, (ROOT / "README.md").read_text(encoding="utf-8")), plan["contributions"]
    assert "flower" in run("catalog").stdout
    assert "pip install 'fedaccord[train]'" in run("audit", code=2).stderr


if __name__ == "__main__":
    main()
