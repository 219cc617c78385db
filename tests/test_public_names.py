"""The public names: all listed once, in order, importable and documented."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import fedaccord
import fedaccord.federation
import fedaccord.federation.flower

PACKAGES = pytest.mark.parametrize(
    "package",
    [fedaccord, fedaccord.federation, fedaccord.federation.flower],
    ids=lambda package: package.__name__,
)


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


def imported_names(package):
    """List the names that a package imports from its own parts, its own helpers aside."""
    tree = ast.parse(Path(package.__file__).read_text())
    return [
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and str(node.module).startswith("fedaccord")
        and "._" not in str(node.module)
        for alias in node.names
    ]


@PACKAGES
def test_the_list_is_sorted_and_names_each_once(package):
    assert package.__all__ == sorted(set(package.__all__))


@PACKAGES
def test_the_list_is_what_the_package_imports(package):
    assert sorted(imported_names(package)) == package.__all__


@PACKAGES
def test_every_name_can_be_imported_with_a_star(package):
    names = {}
    exec(f"from {package.__name__} import *", names)
    assert set(package.__all__) <= set(names)


@PACKAGES
def test_every_name_is_documented(package):
    assert [m for n in package.__all__ for m in missing_documentation(getattr(package, n))] == []


def test_the_search_for_documentation_objects_to_planted_faults():
    class Bare:
        def method(self): ...

        @property
        def value(self): ...

        def _hidden(self): ...

    assert missing_documentation(Bare) == ["Bare", "Bare.method", "Bare.value"]


@PACKAGES
def test_public_functions_are_annotated(package):
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            assert signature.return_annotation is not inspect.Signature.empty, name
            for parameter in signature.parameters.values():
                assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert fedaccord.__version__ == version("fedaccord")


@PACKAGES
def test_names_imported_late_are_public_and_live_where_the_list_says(package):
    for name, home in package._HOMES.items():
        assert name in package.__all__
        assert getattr(package, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="no attribute 'solve_everything'"):
        package.solve_everything  # noqa: B018


def test_a_name_that_needs_a_missing_extra_says_which():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import fedaccord.federation as f; f.FedAvg\n"
        "try: f.train\n"
        "except ImportError as error: sys.exit(str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'fedaccord[train]'" in done.stderr


def test_importing_the_package_brings_no_scipy_along():
    code = "import sys, fedaccord; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
