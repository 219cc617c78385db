"""Scripts that no other test runs import only what is there."""

import ast
import importlib
from pathlib import Path

import pytest
from extras import find_absent_extra

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "experiments", "docs", "demo")
SCRIPTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def missing_imports(source: str) -> list[str]:
    """List the names that a script imports from the package and that are not there."""
    missing = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("fedaccord"):
            continue
        for alias in node.names:
            try:
                if not hasattr(importlib.import_module(node.module), alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
            except ModuleNotFoundError as error:
                if find_absent_extra(error) is None:
                    missing.append(f"{node.module}.{alias.name}")
    return missing


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_import_what_is_there(script):
    assert missing_imports(script.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    ["from fedaccord.games import no_such_module", "from fedaccord.no_such import name"],
)
def test_a_missing_name_is_seen(source):
    assert missing_imports(source)
