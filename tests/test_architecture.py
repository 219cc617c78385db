"""Imports point downwards, results never print, and importing the package stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "fedaccord"

# What may not import what: the start of a module's name, then the starts it may not import.
FORBIDDEN = {
    "fedaccord.audit": ("fedaccord.equilibria", "fedaccord.report"),
    "fedaccord.allocation": ("fedaccord.equilibria", "fedaccord.games", "fedaccord.report"),
    "fedaccord.games": ("fedaccord.equilibria", "fedaccord.audit", "fedaccord.report"),
    "fedaccord.equilibria": ("fedaccord.report", "fedaccord.federation"),
    "fedaccord.federation": ("fedaccord.report", "fedaccord.equilibria", "fedaccord.games"),
    "fedaccord": ("fedaccord.cli", "torch", "typer"),
}
# Only these may: the entry point, the command line itself, and the half that trains.
EXCEPTIONS = {
    ("fedaccord.__main__", "fedaccord.cli"),
    ("fedaccord.cli", "fedaccord.cli"),
    ("fedaccord.cli", "typer"),
    ("fedaccord.federation", "torch"),
}
HEAVY = (
    "torch", "numba", "cvxpy", "ortools", "pyscipopt", "highspy", "sklearn", "matplotlib",
    "pandas", "ray", "flwr", "typer", "rich", "scipy.optimize", "scipy.stats",
)  # fmt: skip


def within(module: str, start: str) -> bool:
    return module == start or module.startswith(start + ".")


def imported(source: str, module: str) -> Iterator[str]:
    """Give the full names of all that a module imports, wherever in it the import stands."""
    package = module.split(".")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def wrong_imports(source: str, module: str) -> list[str]:
    """List the imports of a module that point upwards."""
    return sorted(
        {
            name
            for start, targets in FORBIDDEN.items()
            if within(module, start)
            for name in imported(source, module)
            for target in targets
            if within(name, target)
            and not any(within(module, m) and target == t for m, t in EXCEPTIONS)
        }
    )


def prints(source: str) -> list[int]:
    """List the lines that print, or write to a standard stream."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr"))
    ]


def modules() -> list[tuple[str, Path]]:
    named = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["fedaccord", *path.relative_to(PACKAGE).with_suffix("").parts]
        named.append((".".join(parts).removesuffix(".__init__"), path))
    return named


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: str(value))
def test_imports_point_downwards(module: str, path: Path) -> None:
    assert wrong_imports(path.read_text(), module) == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from fedaccord.equilibria.result import Solution", "fedaccord.audit"),
        ("def f():\n    import fedaccord.equilibria.stable", "fedaccord.audit"),
        ("from fedaccord import equilibria", "fedaccord.audit"),
        ("from . import equilibria", "fedaccord.audit"),
        ("from ..equilibria import base", "fedaccord.games.linear"),
        ("from fedaccord.audit import audit", "fedaccord.games.linear"),
        ("from fedaccord.cli import main", "fedaccord.report.tables"),
        ("import torch", "fedaccord.games.linear"),
        ("if True:\n    from torch import nn", "fedaccord.equilibria.stable"),
        ("import fedaccord.report.tables", "fedaccord.equilibria.stable"),
        ("import torch", "fedaccord.cli.training"),
        ("import torch", "fedaccord.report.training"),
        ("from fedaccord.equilibria.stable import solve_stable", "fedaccord.federation.clients"),
        ("from fedaccord.report.live import shown_live", "fedaccord.federation.defection.audit"),
        ("from fedaccord.cli.app import app", "fedaccord.federation.config.load"),
    ],
)
def test_the_rule_on_imports_objects_to_planted_faults(source: str, module: str) -> None:
    assert wrong_imports(source, module)


def test_the_rule_on_imports_lets_the_right_ones_pass() -> None:
    assert not wrong_imports("from fedaccord.games.base import Game", "fedaccord.audit")
    assert not wrong_imports("from fedaccord.cli import main", "fedaccord.__main__")
    assert not wrong_imports("import torch", "fedaccord.federation.models.networks")


@pytest.mark.parametrize(
    ("module", "path"),
    [
        (module, path)
        for module, path in modules()
        if not within(module, "fedaccord.cli") and not within(module, "fedaccord.report")
    ],
    ids=str,
)
def test_nothing_prints_outside_the_command_line_and_the_reports(module: str, path: Path) -> None:
    assert prints(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    ["print(1)", "def f():\n    print(1)", "import sys\nsys.stdout.write('a')", "f = print"],
)
def test_the_rule_on_printing_objects_to_planted_faults(source: str) -> None:
    assert prints(source)
    assert not prints("x = 'print'")


def loaded_by(statement: str) -> list[str]:
    """List the heavy modules that a statement brings into a fresh Python."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = set(done.stdout.split())
    return [name for name in HEAVY if name in found]


def test_importing_the_package_brings_nothing_heavy() -> None:
    assert loaded_by("import fedaccord") == []


def test_the_search_for_heavy_modules_finds_one() -> None:
    assert loaded_by("import fedaccord, scipy.optimize") == ["scipy.optimize"]


def test_the_command_line_starts_without_solvers_and_torch() -> None:
    allowed = {"typer", "rich"}
    assert set(loaded_by("import fedaccord.cli")) <= allowed


@pytest.mark.parametrize(
    "module",
    [
        *("algorithms.allotment", "algorithms.base", "training.rng", "history", "config.settings"),
        *("config.load", "defection.intervals", "charts", "defection.curves"),
    ],
)
def test_what_does_not_train_needs_no_torch(module: str) -> None:
    assert loaded_by(f"import fedaccord.federation.{module}") == []


def test_a_config_is_read_without_torch() -> None:
    read = "from fedaccord.federation.config.load import Config; Config.default().to_dict()"
    assert loaded_by(read) == []
