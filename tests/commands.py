"""Running the command line from tests, and judging what it says."""

import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extras import skip_if_absent
from typer.testing import CliRunner

from fedaccord.cli import app

TWO_HOSPITALS = {
    "model": "linear",
    "requirements": [1, 1],
    "benefits": [[1, 0.5], [0.5, 1]],
    "agents": ["site A", "site B"],
}


@dataclass
class Run:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


def run(*arguments: Any) -> Run:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    skip_if_absent(result.stderr)
    return Run(result.exit_code, result.stdout, result.stderr)


def run_process(*arguments: Any, **options: Any) -> Run:
    """Run a command as a user would, in a process of its own."""
    source = Path(__file__).parents[1] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source), **options.pop("env", {})}
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run(
        [sys.executable, "-m", "fedaccord", *map(str, arguments)],
        stderr=subprocess.PIPE,
        env=environment,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=120,
        **options,
    )
    skip_if_absent(done.stderr)
    return Run(done.returncode, done.stdout or "", done.stderr)


def write(path: Path, data: Any) -> Path:
    """Write a file: text as it is, bytes as they are, anything else as JSON."""
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def assert_visible(text: str) -> None:
    """Insist that a text has no control, surrogate or direction-changing characters."""
    hidden = {c for c in text if c != "\n" and unicodedata.category(c)[0] in "C"} - {
        "\u200c",
        "\u200d",
    }
    assert not hidden and not set("\u2028\u2029") & set(text), f"hidden characters {hidden}"


def assert_refused(result: Run, *words: str) -> None:
    """Insist on exit code 2, nothing on stdout, and one sentence with the words on stderr."""
    assert result.code == 2, f"exit code {result.code}: {result.stdout}{result.stderr}"
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1, f"not one line: {result.stderr!r}"
    assert result.stderr.startswith("fedaccord: ")
    assert result.stderr.rstrip("\n").endswith((".", "?", "!"))
    assert_visible(result.stderr)
    for word in words:
        assert word in result.stderr, f"{word!r} is not in {result.stderr!r}"
