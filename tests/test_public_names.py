"""The public names: all listed once, in order, importable and documented."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import fedaccord


def missing_documentation(owner):
    """List public functions, methods and properties without a docstring."""
    missing = [] if inspect.getdoc(owner) else [owner.__name__]
    if inspect.isclass(owner):
        for name, member in vars(owner).items():
            shown = member.fget if isinstance(member, property) else member
            shown = getattr(shown, "func", getattr(shown, "__func__", shown))
            if (
                not name.startswith("_")
                and inspect.isfunction(shown)
                and not inspect.getdoc(getattr(owner, name))
            ):
                missing.append(f"{owner.__name__}.{name}")
    return missing


def imported_names():
    tree = ast.parse(Path(fedaccord.__file__).read_text())
    return [
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fedaccord")
        for alias in node.names
    ]


def test_the_list_is_sorted_and_names_each_once():
    assert fedaccord.__all__ == sorted(set(fedaccord.__all__))


def test_the_list_is_what_the_package_imports():
    assert sorted(imported_names()) == fedaccord.__all__


def test_every_name_can_be_imported_with_a_star():
    names = {}
    exec("from fedaccord import *", names)
    assert set(fedaccord.__all__) <= set(names)


def test_every_name_is_documented():
    assert [
        m for n in fedaccord.__all__ for m in missing_documentation(getattr(fedaccord, n))
    ] == []


def test_the_search_for_documentation_objects_to_planted_faults():
    class Bare:
        def method(self): ...

        @property
        def value(self): ...

        def _hidden(self): ...

    assert missing_documentation(Bare) == ["Bare", "Bare.method", "Bare.value"]


def test_public_functions_are_annotated():
    for name in fedaccord.__all__:
        thing = getattr(fedaccord, name)
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            assert signature.return_annotation is not inspect.Signature.empty, name
            for parameter in signature.parameters.values():
                assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert fedaccord.__version__ == version("fedaccord")


def test_names_imported_late_are_public_and_live_where_the_list_says():
    for name, home in fedaccord._HOMES.items():
        assert name in fedaccord.__all__
        assert getattr(fedaccord, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="no attribute 'solve_everything'"):
        fedaccord.solve_everything  # noqa: B018


def test_importing_the_package_brings_no_scipy_along():
    code = "import sys, fedaccord; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
