"""List every committed result with its command, its cost, and the commit that last changed it.

    python experiments/list_results.py

Reads results.toml, the results themselves and the history, and writes README.md. Commit results
before you list them: a file with changes that are not committed is refused. A test compares the
table with the files, so a result that was made again without a new table is noticed. In the end
the script names the results that are older than a change of the code they come from.
"""

import hashlib
import json
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from fedaccord._io.files import replace_file
from fedaccord.wording import format_duration

HERE = Path(__file__).parent
TABLE = HERE / "README.md"
# What results depend on, as git names it from here.
CODE = [
    f"../src/fedaccord/{name}" for name in ("federation", "frontier", "measurement", "planning")
]
# Hexadecimal digits of a commit, and of a file's digest.
DIGITS = 8
INTRODUCTION = """# Experiments

Each folder has a README that says what was asked, how settings were chosen, and what came out.
This page lists the committed results: what made them, what that cost, and the last commit that
changed them. The numbers of a result are those of the code at that commit.

`python experiments/list_results.py` makes this page, and a test compares it with the files. The
digest is the beginning of the SHA-256 of the files, one after the other. *Training* is the time of
all counted runs, added up, on one core each. *Elapsed* is the time of the last call, which may have
found runs that were made before. A dash means that nobody wrote the cost down.
"""


def list_files() -> list[str]:
    """Return every committed result, below experiments/."""
    patterns = ("*/results/**/*", "*/pilots.csv", "*.md")
    kept = (".json", ".jsonl", ".csv", ".md")
    found = {path for pattern in patterns for path in HERE.glob(pattern) if path.suffix in kept}
    return sorted(str(path.relative_to(HERE)) for path in found - {TABLE} if path.is_file())


def find_files(made: dict) -> list[str]:
    """Return the results of a command."""
    found = {path for pattern in made["files"] for path in HERE.glob(pattern) if path.is_file()}
    return sorted(str(path.relative_to(HERE)) for path in found)


def read_made() -> list[dict]:
    """Read what made the results; each command with its files."""
    tables = tomllib.loads((HERE / "results.toml").read_text(encoding="utf-8"))["made"]
    return [{**made, "found": find_files(made)} for made in tables]


def describe_cost(made: dict) -> str:
    """Return a command's cost as its results state it, or a page that results.toml names."""
    if "cost" in made:
        return f"{made['cost']} ([README]({made['stated']}))"
    costs = {}
    for name in made["found"]:
        for kind, seconds in read_costs(HERE / name):
            costs[kind] = costs.get(kind, 0.0) + seconds
    return ", ".join(f"{kind} {format_duration(costs[kind])}" for kind in sorted(costs)) or "-"


def read_costs(path: Path) -> Iterator[tuple[str, float]]:
    """Read a result's cost in seconds: of its runs or the processor, and else by the clock."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None
    if not isinstance(found, dict):
        return
    if path.name == "machine.json":
        yield "processor", float(sum(found["processor_seconds"].values()))
    elif path.with_name("machine.json").exists() and path.name in ("audit.json", "confirm.json"):
        return  # counted there
    elif "cpu_seconds" in found:
        yield "processor", float(found["cpu_seconds"])
    elif "run_seconds" in found:
        yield "training", float(found["run_seconds"])
    elif "seconds" in found:
        yield "elapsed", float(found["seconds"])


def digest_files(names: list[str]) -> str:
    """Return a digest of what files hold."""
    found = hashlib.sha256()
    for name in names:
        found.update((HERE / name).read_bytes())
    return found.hexdigest()[:DIGITS]


def run_git(*arguments: str) -> str:
    """Return what git says about these files."""
    command = ["git", "-C", str(HERE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def date_commits(names: list[str]) -> str:
    """Return the dates and commits that last changed files, as two cells; newest first."""
    lines = {
        run_git("log", "-1", f"--abbrev={DIGITS}", "--format=%cs %h", "--", name) for name in names
    }
    pairs = [line.split() for line in sorted(lines, reverse=True)]
    return " | ".join(" ".join(dict.fromkeys(column)) for column in zip(*pairs, strict=True))


def name_files(names: list[str]) -> str:
    """Return links to files; of many, how many there are in the folder of the first."""
    if len(names) > 3:
        return f"{len(names)} files in `{Path(names[0]).parent}`"
    return ", ".join(f"[{name.replace('/results/', '/')}]({name})" for name in names)


def write_row(made: dict) -> str:
    """Return a row without its date and commit: what a test can compare without the history."""
    names = made["found"]
    command = [f"`{made['command']}`"] if "command" in made else []
    how = ", ".join([*command, *([made["note"]] if "note" in made else [])])
    cells = (name_files(names), how, describe_cost(made), digest_files(names))
    return "| " + " | ".join(cells)


def tell_old() -> Iterator[str]:
    """Yield the results that are older than a change of the code that they come from."""
    for made in read_made():
        commits = {run_git("log", "-1", "--format=%H", "--", name) for name in made["found"]}
        counts = [run_git("rev-list", "--count", f"{one}..HEAD", "--", *CODE) for one in commits]
        # Files that came out the same again keep an older commit.
        if least := min(map(int, counts)):
            yield f"{', '.join(made['files'])}: {least} later commits"


def main() -> None:
    changed = run_git("status", "--porcelain", "--", *list_files())
    if changed:
        raise SystemExit(f"commit these results first, or take the changes back:\n{changed}")
    lines = [INTRODUCTION, "| result | command | cost | digest | date | commit |", "|-|-|-|-|-|-|"]
    lines += [f"{write_row(made)} | {date_commits(made['found'])} |" for made in read_made()]
    replace_file(TABLE, "\n".join(lines) + "\n")
    print("Code that trains, measures or plans has changed since these were made:")
    print("\n".join(tell_old()) or "none")


if __name__ == "__main__":
    main()
