"""The public names: all listed once, in order, importable and documented."""

import ast
import importlib
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import fedaccord
import fedaccord.federation
import fedaccord.federation.flower
import fedaccord.federation.nvflare
import fedaccord.report
import fedaccord.reproduce

ROOT = Path(__file__).parents[1]
PACKAGES = pytest.mark.parametrize(
    "package",
    [
        *(fedaccord, fedaccord.federation, fedaccord.federation.flower),
        *(fedaccord.report, fedaccord.reproduce),
        pytest.param(
            fedaccord.federation.nvflare,
            marks=pytest.mark.skipif(not find_spec("nvflare"), reason="needs NVFlare"),
        ),
    ],
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
                and name not in getattr(owner, "__dataclass_fields__", {})
                and inspect.isfunction(shown)
                and not inspect.getdoc(getattr(owner, name))
            ):
                missing.append(f"{owner.__name__}.{name}")
    return missing


def stub_of(package):
    """Return the file that lists a package's names."""
    return Path(package.__file__).with_suffix(".pyi")


def homes(package):
    """Return the module that each name is imported from, as the stub has it."""
    tree = ast.parse(stub_of(package).read_text())
    return [
        (alias.asname, ".".join(filter(None, (package.__name__, node.module))))
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


@PACKAGES
def test_the_list_is_sorted_and_names_each_once(package):
    assert package.__all__ == sorted(set(package.__all__))


@PACKAGES
def test_the_list_is_what_the_stub_imports_under_its_own_name(package):
    assert sorted(name for name, _ in homes(package)) == package.__all__


@PACKAGES
def test_the_package_shows_its_names_and_no_others(package):
    more = ["__version__"] if package is fedaccord else []
    assert dir(package) == sorted([*package.__all__, *more])


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
    for name, home in homes(package):
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


def test_a_name_that_a_module_has_too_stays_the_name():
    code = (
        "import fedaccord.check, fedaccord\n"
        "from fedaccord.check import Check\n"
        "from fedaccord import check\n"
        "assert callable(check) and fedaccord.check is check"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_wheel_has_the_stubs():
    """Without them not even `import fedaccord` works; and type checkers read them."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    packed = {
        file.distribution_path for file in builders.WheelBuilder(str(ROOT)).recurse_included_files()
    }
    stubs = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.pyi")}
    assert len(stubs) > 4 and stubs <= packed
