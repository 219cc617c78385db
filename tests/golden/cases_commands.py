"""Every command: its help, what it prints, the files and pages it writes, and its exit code."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from golden.pinning import SOLVED, TRAINED, normal, page_text, pinned, run, settled

from fedaccord.reproduce import all_claims

HELP = (
    *((), ("solve",), ("check",), ("catalog",), ("plan",), ("audit",), ("frontier",), ("train",)),
    *(("share",), ("coalitions",)),
    *(("template",), ("template", "plan"), ("pilots",)),
    *(("difficulty",), ("pretrain",), ("search",), ("merge",), ("flower",), ("flower", "init")),
    *(("flower", "keys"), ("reproduce",)),
)


@pinned("commands/help")
def help_of_commands(folder: Path) -> str:
    """Print the help of every command."""
    return "".join(_told((*command, "--help"), folder) for command in HELP)


# The rows of resamples in a GAME.json: many, and told by the probabilities that they lead to.
RESAMPLES = re.compile(r"(?<=: )\[\n(?:   \[.*\],?\n){50,}  \]")
# Numbers in full, of which training gives other last digits on another machine.
IN_FULL = re.compile(r"\b\d+\.\d{9,}")


def _round_trained(text: str) -> str:
    return IN_FULL.sub(lambda number: f"{float(number[0]):.4f}", text)


def _told(arguments: Sequence[str], folder: Path, *, files: Sequence[str] = ()) -> str:
    """Run a command, and tell what came of it as a text."""
    done = run(*arguments)
    told = f"$ fedaccord {' '.join(arguments)}\n{done.stdout}"
    if done.stderr:
        told += f"--- on stderr\n{done.stderr}"
    told += f"--- exit code {done.code}\n\n"
    for name in files:
        text = (folder / name).read_text(encoding="utf-8")
        told += f"--- {name}\n{RESAMPLES.sub('ROWS', text)}\n"
    return told


def _json(arguments: Sequence[str]) -> dict[str, Any]:
    """Run a command that prints JSON, and give all that came of it."""
    done = run(*arguments)
    plain = settled(json.loads(done.stdout)) if done.stdout.strip() else None
    return {"exit code": done.code, "stdout": plain, "stderr": normal(done.stderr, Path.cwd())}


def _text_case(
    name: str, *lines: str, files: Sequence[str] = (), trained: bool = False, **options: Any
) -> None:
    """Pin what commands print, one after the other in one folder, and the files of the last.

    trained: whether the files have numbers that were trained.
    """

    def made(folder: Path) -> str:
        told = "".join(_told(line.split(), folder) for line in lines[:-1])
        told += _told(lines[-1].split(), folder, files=files)
        return _round_trained(told) if trained else told

    pinned(f"commands/{name}", **options)(made)


def _json_case(name: str, line: str, rel: float = SOLVED, **options: Any) -> None:
    """Pin the JSON that a command prints."""
    pinned(f"json/{name}", rel=rel, **options)(lambda folder: _json([*line.split(), "--json"]))


def _page_case(name: str, line: str, **options: Any) -> None:
    """Pin the words of the page that a command writes, and what it prints then."""

    def made(folder: Path) -> str:
        told = _told([*line.split(), "--report", "page.html"], folder)
        return told + page_text(folder / "page.html")

    pinned(f"pages/{name}", **options)(made)


# Games.
_text_case("version", "--version")
_text_case("solve", "solve hospitals.json --save plan.json", files=["plan.json"])
_text_case("solve-models", "solve measured.json", "solve coverage.json", "solve discovery.json")
_text_case("solve-whole", "solve whole.json --concept stable --save w.csv", files=["w.csv"])
_text_case("solve-impossible", "solve impossible.json", "solve nowhere.json", "solve cut.json")
_text_case(
    "check",
    "check hospitals.json shares.csv",
    "check hospitals.json cut.json",
    "check hospitals.json cut.json --require feasible,envy-free",
    "check whole.json shares.csv",
)
_text_case("catalog", "catalog", "catalog flower --parameter petals=4", "catalog flowr")
_text_case("catalog-games", "catalog two-agents", "catalog k4", "catalog pac-cycle")
_text_case("solve-goals", "solve goals.json --save plan.csv", "check goals.json plan.csv")
_text_case("check-goals", "check goals.json three.csv", "check harm.json three.csv --groups 2")
_text_case("solve-harm", "solve harm.json --save plan.csv", "check harm.json plan.csv")
for model in ("hospitals", "measured", "coverage", "discovery", "whole", "impossible"):
    _json_case(f"solve-{model}", f"solve {model}.json")
_json_case("solve-goals", "solve goals.json")
_json_case("solve-harm", "solve harm.json")
_json_case("check", "check hospitals.json shares.csv")
_json_case("check-cut", "check hospitals.json cut.json")
_json_case("catalog", "catalog")
_json_case("catalog-flower", "catalog flower --parameter petals=4")
_page_case("solve", "solve hospitals.json")
_page_case("solve-coverage", "solve coverage.json")
_page_case("solve-goals", "solve goals.json")
_page_case("solve-harm", "solve harm.json")
_page_case("check", "check hospitals.json cut.json")
_page_case("catalog", "catalog")

# Money.
_text_case(
    "share",
    "share measured.json",
    "share whole.json",
    "share impossible.json",
    "share hospitals.json --save pay.csv",
    files=["pay.csv"],
)
_text_case(
    "coalitions", "coalitions hospitals.json", "coalitions measured.json", "coalitions whole.json"
)
for command in ("share", "coalitions"):
    _json_case(command, f"{command} hospitals.json")
    _page_case(command, f"{command} hospitals.json")
_json_case("share-pilots", "share two_pilots.csv", rel=TRAINED)

# Plans.
_text_case(
    "plan-pilots",
    "plan two_pilots.csv --save p.csv --save-game g.json --save-pilots again.csv",
    files=["p.csv", "g.json", "again.csv"],
)
_text_case(
    "plan-others",
    "plan histograms.csv",
    "plan hospitals.json",
    "plan measured.json --goal 0.999",
    "plan two_pilots.csv --goal South=0.97",
    "plan two_pilots.csv --goal Sout=0.7",
)
_json_case("plan-pilots", "plan two_pilots.csv", rel=TRAINED)
_json_case("plan-four", "plan pilots.csv --prefer firm --probability 0.9", rel=TRAINED)
_json_case("plan-histograms", "plan histograms.csv")
_json_case("plan-game", "plan hospitals.json")
_json_case("plan-federation", "plan digits.toml --workers 1", rel=TRAINED)
_page_case("plan", "plan two_pilots.csv")
_page_case("plan-four", "plan pilots.csv")
_page_case("plan-histograms", "plan histograms.csv")

# Training.
AUDIT = "audit digits.toml --workers 1 --algorithm FedAvg --algorithm PLEDGED"
FRONTIER = "frontier digits.toml --workers 1 --algorithm FedAvg --algorithm PLEDGED"
FRONTIER += " --plan PLEDGED=plan.csv"
_text_case(
    "train",
    "train digits.toml --save history.csv --contributions contributions.csv",
    files=["history.csv"],
    trained=True,
)
_text_case("train-others", "train sites.toml --algorithm Solo", "train wrong.toml")
_text_case("audit", f"{AUDIT} --defectors random", f"{AUDIT} --defectors random")
_text_case("audit-p2", "audit sites.toml --workers 1 --protocol P2 --trials 1")
_text_case("frontier", FRONTIER)
_text_case("difficulty", "difficulty beforehand.toml")
_text_case("pretrain", "pretrain beforehand.toml")
_text_case("search", "search beforehand.toml --draws 3")
_json_case("train", "train digits.toml --algorithm MW-FED --trial 1 --seed 3", rel=TRAINED)
_json_case("audit", AUDIT, rel=TRAINED)
_json_case("audit-sites", "audit sites.toml --workers 1 --protocol P2", rel=TRAINED)
_json_case("frontier", FRONTIER, rel=TRAINED)
_json_case("difficulty", "difficulty beforehand.toml", rel=TRAINED)
_json_case("difficulty-trials", "difficulty trials.toml", rel=TRAINED)
_json_case("pretrain", "pretrain beforehand.toml", rel=TRAINED)
_json_case("search", "search beforehand.toml --draws 3", rel=TRAINED)
_page_case("train", "train digits.toml --algorithm MW-FED")
_page_case("audit", AUDIT)
_page_case("frontier", FRONTIER)
_page_case("difficulty", "difficulty beforehand.toml")
_page_case("pretrain", "pretrain beforehand.toml")
_page_case("search", "search beforehand.toml --draws 3")

# The paper.
CHEAP = "reproduce --out paper --only theorem-7 --only theorem-3 --only definition-stable"
_text_case("reproduce-list", "reproduce --list", "reproduce --only theorem-17")
_text_case("reproduce", CHEAP)
_json_case("reproduce", CHEAP)


@pinned("pages/reproduce")
def reproduction_page(folder: Path) -> str:
    """Give the words of a page with claims of the paper."""
    _told([*CHEAP.split(), "--report", "page.html"], folder)
    return _timeless(page_text(folder / "page.html"))


# Those that train take minutes, and conic solvers' errors are not the same everywhere.
NOT_HERE = {
    *("solo-curves", "solo-levels", "solo-half", "defection", "fedavg-satisfies-all", "cp-1"),
    *("fedavg-draws", "mw-fed-draws", "more-agents", "larger-sets", "experiment-pools"),
    *("pre-training", "hyperparameters", "difficulty"),
}


@pinned("json/reproduce-all", slow=True, rel=TRAINED)
def whole_paper(folder: Path) -> dict[str, Any]:
    """Check all claims that need no training: what is printed, the result and the page."""
    chosen = [f"--only={id}" for id in all_claims() if id not in NOT_HERE]
    done = run("reproduce", "--out", "paper", *chosen)
    result = json.loads((folder / "paper" / "reproduction.json").read_text(encoding="utf-8"))
    return {
        "exit code": done.code,
        "stdout": normal(done.stdout, folder).splitlines(),
        "result": settled(result),
        "page": settled(_timeless(page_text(folder / "paper" / "reproduction.html")).splitlines()),
    }


def _timeless(page: str) -> str:
    """Drop from a page how long claims took, which stands in a column of its own."""
    return re.sub(r"\| [\d.]+ \|$", "| TIME |", page, flags=re.MULTILINE)


@pinned("commands/flower-init")
def flower_app(folder: Path) -> str:
    """Print what `flower init` says, and the files it writes."""
    told = _told(["flower", "init", "app"], folder)
    told += _told(["flower", "init", "app"], folder)
    for path in sorted(p for p in (folder / "app").rglob("*") if p.is_file()):
        told += f"--- {path.relative_to(folder)}\n{path.read_text(encoding='utf-8')}\n"
    return told


@pinned("commands/flower-keys")
def flower_keys(folder: Path) -> str:
    """Print what `flower keys` says, and the names of the files it writes."""
    told = _told(["flower", "keys", "keys", "north", "south", "--host", "server.org"], folder)
    files = sorted(p for p in (folder / "keys").rglob("*") if p.is_file())
    return told + "".join(f"{p.relative_to(folder)} {p.stat().st_mode & 0o777:o}\n" for p in files)
