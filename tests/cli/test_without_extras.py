"""With the core alone, commands work or name the extra that they need, in one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import TWO_HOSPITALS, Run, assert_refused, write

from fedaccord._lazy import EXTRAS

ROOT = Path(__file__).parents[2]
# As in an environment without extras, in one process, because imports take seconds.
CODE = f"""
import json, sys
sys.modules.update(dict.fromkeys({[*EXTRAS, "cvxpy", "pyscipopt"]!r}))
from typer.testing import CliRunner
from fedaccord.cli import app
for command in json.load(sys.stdin):
    done = CliRunner().invoke(app, command)
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""
PILOTS = ROOT / "docs" / "how-to" / "network" / "pilots.csv"
TRAIN = ("torch, in the extra train (0.8 GB", "pip install 'fedaccord[train]'")
REFUSED = {
    **{
        (*command.split(),): TRAIN
        for command in ("audit", "train", "difficulty", "pretrain", "search", "audit --engine ray")
    },
    **{
        (command, "federation.toml"): TRAIN
        for command in ("audit", "frontier", "train", "plan", "pilots")
    },
    ("explore",): ("this needs nicegui", "pip install 'fedaccord[explore]'"),
    ("plan", "sheet.xlsx"): ("this needs openpyxl", "pip install 'fedaccord[excel]'"),
    ("solve", "game.json", "--save", "plan.xlsx"): ("openpyxl", "pip install 'fedaccord[excel]'"),
    ("flower", "keys", "keys", "A"): ("cryptography", "pip install 'fedaccord[flower]'"),
    **{
        (*command.split(), "--report", "page.html"): (
            "this needs matplotlib",
            "pip install 'fedaccord[report]'",
        )
        for command in ("solve game.json", "check game.json even.json", "plan pilots.csv", "audit")
    },
}
WORK = (
    "solve game.json",
    "check game.json even.json",
    "share game.json",
    "coalitions game.json",
    "catalog",
    "catalog flower",
    "template plan tables",
    "pilots A=300,B=200",
    "plan pilots.csv",
    "reproduce --list",
    "flower init app",
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Run]:
    """Run all commands where no extra can be imported."""
    folder = tmp_path_factory.mktemp("core")
    write(folder / "game.json", TWO_HOSPITALS)
    write(folder / "even.json", {"contributions": [1, 1]})
    write(folder / "pilots.csv", PILOTS.read_text(encoding="utf-8"))
    # Whatever its content: a workbook is a ZIP file.
    write(folder / "sheet.xlsx", b"PK\x03\x04")
    digits = ROOT / "src" / "fedaccord" / "federation" / "digits.toml"
    write(folder / "federation.toml", digits.read_text(encoding="utf-8"))
    commands = [*REFUSED, *((*command.split(),) for command in WORK)]
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        input=json.dumps(commands),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = map(json.loads, done.stdout.splitlines())
    return {command: Run(*result) for command, result in zip(commands, found, strict=True)}


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_needs_an_extra_names_it_with_the_pip_command(
    core: dict[tuple[str, ...], Run], command: tuple[str, ...]
) -> None:
    assert_refused(core[command], *REFUSED[command])


@pytest.mark.parametrize("command", WORK)
def test_what_needs_no_extra_works_with_the_core(
    core: dict[tuple[str, ...], Run], command: str
) -> None:
    result = core[(*command.split(),)]
    assert result.code in (0, 1), result.stderr
    assert result.stdout
    assert "this needs" not in result.stderr
