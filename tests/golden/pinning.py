"""What the golden tests share: cases, how they are recorded, and how a change is told.

A case gives text or plain data. What it gave when it was recorded lies in recorded/NAME.txt or
recorded/NAME.json; `python tests/golden/record.py [NAME …]` records it anew. Cases use only what
must not change: public names, commands and files.
"""

import difflib
import html
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import commands

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"
RECORDED = HERE / "recorded"
# Numbers of solvers are the same on every machine but for the last digits; what was trained
# differs a little more.
SOLVED, TRAINED = 1e-9, 1e-6
# As wide as a page of the docs; and no colours, whatever the tests run in.
TERMINAL = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}
# What a terminal of continuous integration or of a developer may set, and is not to matter.
UNSET = ("FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "FEDACCORD_DATA", "LINES")

# Keys of JSON whose values differ from run to run, or from machine to machine. Where a solver
# stops within its tolerance, and so how much an agent has to spare, depends on the processor.
VARYING = {"seconds", "run_seconds", "versions", "machine", "finished", "took", "worst_spare"}
PACKAGES = "Python|numpy|scipy|torch|scikit-learn|numba|fedaccord|cvxpy|pyscipopt|flwr|ray|highspy"
# Numbers with all digits of a double: of files, not of sentences.
LONG = re.compile(r"\d+\.\d{11,}(?:e[+-]?\d+)?")
DURATION = r"\d[\d.,]* (?:seconds?|minutes?|ms|min|s|h)\b"
REPLACED = (
    (re.compile(rf"\b({PACKAGES}) \d+(\.\d+)+[\w.+-]*", re.IGNORECASE), r"\1 VERSION"),
    (re.compile(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+\d\d:\d\d|Z)?)?"), "DATE"),
    (re.compile(rf"(less than )?\b{DURATION}( {DURATION})*"), "TIME"),
    (re.compile(r"\bnative block \w+"), "native block CODE"),
    (re.compile(r"(?<=\nSeconds\n)[\d.,]+"), "TIME"),
    (re.compile(r"(?m)^.+, \d+ cores?, \w+$"), "MACHINE"),
    (re.compile(r"\b\d+ (cores?|CPUs?)\b"), "N CORES"),
)


@dataclass(frozen=True)
class Case:
    """Something that is not to change.

    name: of the file it is recorded in.
    made: gives it anew; called with the folder it is in, where the inputs are.
    rel: how near numbers must come.
    slow: whether it takes more than a few seconds.
    growing: whether a dict may have new keys and a list of names new ones.
    """

    name: str
    made: Callable[[Path], Any]
    rel: float = SOLVED
    slow: bool = False
    growing: bool = False


CASES: dict[str, Case] = {}


def pinned(name: str, **options: Any) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    """Register what a function gives as a case."""

    def register(made: Callable[[Path], Any]) -> Callable[[Path], Any]:
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        CASES[name] = Case(name, made, **options)
        return made

    return register


@contextmanager
def workplace() -> Iterator[Path]:
    """Work in a new folder that has the inputs, at a terminal of a known size."""
    before, kept = Path.cwd(), os.environ.copy()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
        os.environ.update(TERMINAL)
        for variable in UNSET:
            os.environ.pop(variable, None)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(kept)


def made_now(case: Case) -> Any:
    """Give what a case is today: text, or data as JSON has it."""
    with workplace() as folder:
        found = case.made(folder)
        if isinstance(found, str):
            return normal(found, folder)
        return json.loads(json.dumps(found).replace(str(folder), "FOLDER"))


def recorded(case: Case) -> Any:
    """Give what a case was when it was recorded."""
    text, data = (RECORDED / f"{case.name}.{kind}" for kind in ("txt", "json"))
    if text.exists():
        return text.read_text(encoding="utf-8")
    return json.loads(data.read_text(encoding="utf-8"))


def record(case: Case) -> None:
    """Record what a case is today."""
    found = made_now(case)
    is_text = isinstance(found, str)
    path = RECORDED / f"{case.name}.{'txt' if is_text else 'json'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found if is_text else json.dumps(found, indent=1) + "\n", encoding="utf-8")


def run(*arguments: Any) -> commands.Run:
    """Run a command as if it had been typed: pages say how they were made."""
    typed, sys.argv = sys.argv, ["fedaccord", *map(str, arguments)]
    try:
        return commands.run(*arguments)
    finally:
        sys.argv = typed


def normal(text: str, folder: Path) -> str:
    """Put words in place of folders, versions, dates and times; drop the ends of lines."""
    plain = _without_varying(text.replace(str(folder), "FOLDER"))
    return "\n".join(line.rstrip() for line in plain.splitlines()) + "\n"


def _without_varying(text: str) -> str:
    for pattern, word in REPLACED:
        text = pattern.sub(word, text)
    return text


def settled(data: Any) -> Any:
    """Put words in place of what varies from run to run, anywhere in data."""
    if isinstance(data, dict):
        return {k: "VARIES" if k in VARYING else settled(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [settled(v) for v in data]
    return _without_varying(data) if isinstance(data, str) else data


def shape(data: Any) -> Any:
    """Give the keys and kinds of data: of a list the kinds that are in it, each once."""
    if isinstance(data, dict):
        return {str(k): shape(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        kinds: list[Any] = []
        for kind in map(shape, data):
            if kind not in kinds:
                kinds.append(kind)
        return kinds
    return "null" if data is None else type(data).__name__


def page_text(path: Path) -> str:
    """Give what a page says: without tags, styles and scripts, and of a figure that it is there."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"<svg\b.*?</svg>", "\n[figure]\n", text, flags=re.DOTALL)
    text = re.sub(r"<(?:t[dh]|/t[dh])\b[^>]*>", " | ", text)
    text = re.sub(r"<(?:span|a|em|strong|code|b|i|sup|sub|/\w+ ?)(?:\s[^>]*)?>", "", text)
    text = html.unescape(re.sub(r"<[^>]+>", "\n", text))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line.strip("| ")) + "\n"


def differences(case: Case, was: Any, now: Any) -> list[str]:
    """Tell what has changed, line by line or value by value; nothing where all is as it was."""
    if isinstance(was, str) and isinstance(now, str):
        before, after = was.splitlines(), now.splitlines()
        if len(before) == len(after):
            pairs = zip(before, after, strict=True)
            after = [old if _same_line(old, new, case.rel) else new for old, new in pairs]
        return list(difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=2))
    return list(_changes(case, was, now, case.name))


def _changes(case: Case, was: Any, now: Any, at: str) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was.keys() | now.keys():
            if key not in now:
                yield f"{at}.{key} is gone; it was {_brief(was[key])}"
            elif key in was:
                yield from _changes(case, was[key], now[key], f"{at}.{key}")
            elif not case.growing:
                yield f"{at}.{key} is new: {_brief(now[key])}"
    elif isinstance(was, list) and isinstance(now, list):
        if case.growing and all(isinstance(v, str) for v in was):
            yield from (f"{at} has no {v!r} any more" for v in was if v not in now)
        elif len(was) != len(now):
            gone, new = ([v for v in a if v not in b] for a, b in ((was, now), (now, was)))
            yield f"{at} had {len(was)} entries and has {len(now)}; gone: {gone}; new: {new}"
        else:
            for n, (old, new) in enumerate(zip(was, now, strict=True)):
                yield from _changes(case, old, new, f"{at}[{n}]")
    elif not _same(was, now, case.rel):
        yield f"{at} is {_brief(now)}; it was {_brief(was)}"


def _same_line(was: str, now: str, rel: float) -> bool:
    """Whether lines differ in the last digits of their longest numbers at most."""
    if LONG.sub("", was) != LONG.sub("", now):
        return False
    pairs = zip(LONG.findall(was), LONG.findall(now), strict=True)
    return all(_same(float(old), float(new), rel) for old, new in pairs)


def _same(was: Any, now: Any, rel: float) -> bool:
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (was, now)]
    if all(numbers):
        if math.isnan(was) or math.isnan(now):
            return math.isnan(was) and math.isnan(now)
        return math.isclose(was, now, rel_tol=rel, abs_tol=rel)
    return type(was) is type(now) and was == now


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else text[:117] + "..."
