"""Imports point downwards, results never print, and importing the package stays light."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "fedaccord"

# What each part of the package may import, beside itself. A part is a folder or a module right
# under fedaccord; every one needs a rule. This is the order, from below:
#
#     errors < foundation < allocation < games < check < {groups, equilibria};
#     equilibria < {sharing, coalitions};
#     games < measurement;   {equilibria, measurement} < planning;
#     {allocation, measurement} < federation;
#     {planning, federation} < frontier < reproduce < report < explore < cli
FOUNDATION = {
    "errors",
    "_checks",
    "_io",
    "_lazy",
    "_machine",
    "_measures",
    "charts",
    "wording",
}
GAMES = FOUNDATION | {"allocation", "games"}
SOLVED = GAMES | {"check", "groups", "equilibria"}
MONEY = {"sharing", "coalitions"}
COMPARED = SOLVED | MONEY | {"measurement", "planning", "federation", "frontier"}
MAY_IMPORT = {
    "errors": set(),
    **dict.fromkeys(FOUNDATION - {"errors"}, FOUNDATION),
    "allocation": FOUNDATION,
    "games": GAMES,
    "check": GAMES,
    "groups": GAMES | {"check"},
    "equilibria": SOLVED - {"groups"},
    **dict.fromkeys(MONEY, SOLVED),
    "measurement": GAMES,
    "planning": SOLVED | {"measurement"},
    "federation": FOUNDATION | {"allocation", "measurement"},
    "frontier": COMPARED,
    "reproduce": COMPARED,
    "report": COMPARED | {"reproduce"},
    "explore": COMPARED | {"report"},
    "cli": COMPARED | {"reproduce", "report", "explore"},
    "__main__": {"cli"},
    # The package itself, whose names are public: what prints and draws is asked for by name.
    "__init__": COMPARED,
}
# Packages of others that only some parts may import, since the rest must do without them.
OTHERS = {
    "torch": {"federation"},
    "sklearn": {"federation"},
    "cloudpickle": {"federation"},
    "flwr": {"federation"},
    "nvflare": {"federation"},
    "ray": {"federation"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "pandas": {"report"},
    "nicegui": {"explore"},
    "starlette": {"explore"},
    "rich": {"report", "cli"},
    "typer": {"cli"},
    "click": {"cli"},
}
# What breaks a rule for now: a module, the part it imports, and where the module or what it
# imports is to go. An exception that is not needed any more is an error.
EXCEPTIONS: dict[tuple[str, str], str] = {
    # It stays: Jupyter asks the result itself for its HTML, and nothing else can ask `report`.
    ("fedaccord._lazy", "report"): "the one door upwards, opened when a result is shown",
}

# Functions that import what a string names.
IMPORTERS = {
    "import_module",
    "imported",
    "__import__",
    "find_spec",
    "lazily",
    "attach",
    "resolve_name",
}
NAMED = re.compile(r"fedaccord((?:\.\w+)+)\.?(?::\w+)?")
HEAVY = (
    "torch", "numba", "cvxpy", "ortools", "pyscipopt", "highspy", "sklearn", "matplotlib",
    "pandas", "ray", "flwr", "nvflare", "nicegui", "typer", "rich", "scipy.optimize",
    "scipy.stats",
)  # fmt: skip


def part_of(module: str) -> str:
    """Tell the part that a module of the package belongs to, or a name that it exports."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(source: str, module: str, *, package: bool = False) -> Iterator[str]:
    """List all that a module imports, wherever in it, by statements and by strings.

    source: the module's text.
    module: its full name.
    package: whether it is the package itself, from which relative imports start.
    """
    home = module.split(".") if package else module.split(".")[:-1]
    tree = ast.parse(source)
    prose = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute("." * node.level + (node.module or ""), home)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in IMPORTERS:
            yield from (absolute(name, home) for name in strings(node))
        elif isinstance(node, ast.Constant) and node not in prose and named(node.value):
            yield node.value.rstrip(".").partition(":")[0]


def absolute(name: str, home: list[str]) -> str:
    """Give the full name of a module that is named from within a package."""
    bare = name.lstrip(".")
    level = len(name) - len(bare)
    parents = home[: len(home) - level + 1] if level else []
    return ".".join([*parents, bare] if bare else parents)


def called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def strings(node: ast.Call) -> Iterator[str]:
    """List the texts among a call's arguments; of one that is put together its beginning."""
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value.partition(":")[0]


def named(value: object) -> bool:
    """Tell whether a text is the name of a module of the package, or the beginning of one."""
    match = NAMED.fullmatch(value) if isinstance(value, str) else None
    return match is not None and part_of(f"fedaccord{match[1]}") in MAY_IMPORT


def docstrings(tree: ast.AST) -> set[ast.expr]:
    """Give the texts that only tell people something."""
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def wrong_imports(source: str, module: str, *, package: bool = False) -> list[str]:
    """List the imports of a module that its part may not make, exceptions among them."""
    part = part_of(module)
    if part not in MAY_IMPORT:
        return [f"{part} has no rule: say in MAY_IMPORT what it may import"]
    may = MAY_IMPORT[part] | {part}
    return sorted(
        {name for name in imports(source, module, package=package) if not allowed(name, part, may)}
    )


def allowed(name: str, part: str, may: set[str]) -> bool:
    top = name.partition(".")[0]
    if top != "fedaccord":
        return top not in OTHERS or part in OTHERS[top]
    # Of the package itself its version is all that a part may ask for: the rest is below it.
    return name == "fedaccord.__version__" or part_of(name) in may


def modules() -> list[tuple[str, Path]]:
    """List all modules with their names, and the stubs of those that import late."""
    named = []
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        # What `flower init` copies is an app of its own, and not imported from here.
        if "template" not in parts:
            named.append((".".join(parts).removesuffix(".__init__"), path))
    return named


EVERY = pytest.mark.parametrize(("module", "path"), modules(), ids=str)


@EVERY
def test_imports_point_downwards(module: str, path: Path) -> None:
    wrong = wrong_imports(path.read_text(), module, package=path.stem == "__init__")
    assert [name for name in wrong if (module, part_of(name)) not in EXCEPTIONS] == []


def test_every_part_has_a_rule_and_every_rule_a_part() -> None:
    assert {part_of(module) for module, _ in modules()} == set(MAY_IMPORT)
    for part, may in MAY_IMPORT.items():
        assert may <= set(MAY_IMPORT), part


def test_no_two_parts_may_import_each_other() -> None:
    for part, may in MAY_IMPORT.items():
        if part not in FOUNDATION:
            assert not [other for other in may - {part} if part in MAY_IMPORT[other]], part


def test_every_exception_is_still_needed() -> None:
    made = {
        (module, part_of(name))
        for module, path in modules()
        for name in wrong_imports(path.read_text(), module, package=path.stem == "__init__")
    }
    assert set(EXCEPTIONS) <= made


@pytest.mark.parametrize(
    ("source", "module"),
    [
        # Directly, by name, relatively and in a function.
        ("from fedaccord.equilibria.result import Solution", "fedaccord.check"),
        ("import fedaccord.report.games", "fedaccord.equilibria.stable"),
        ("from fedaccord import equilibria", "fedaccord.check"),
        ("from . import equilibria", "fedaccord.check"),
        ("from ..equilibria import base", "fedaccord.games.linear"),
        ("from ...report import page", "fedaccord.equilibria.linear.stable"),
        ("def f():\n    import fedaccord.equilibria.stable", "fedaccord.check"),
        ("if TYPE_CHECKING:\n    from fedaccord.cli import app", "fedaccord.report.games"),
        ("import numpy, fedaccord.cli", "fedaccord.reproduce.claims"),
        # By a string, whole or in parts.
        ('import_module("fedaccord.report.page")', "fedaccord.planning.plan"),
        ('importlib.import_module(".report", "fedaccord")', "fedaccord.__init__"),
        ('importlib.import_module("..report", __package__)', "fedaccord.games.linear"),
        ('imported("fedaccord.federation.pilots").run_pilots()', "fedaccord.planning.plan"),
        ('imported(f"fedaccord.report.{name}")', "fedaccord.frontier.compare"),
        ('PAGES = "fedaccord.report.pages_plans"\nimported(PAGES)', "fedaccord.planning.plan"),
        ('server = "fedaccord.cli.app:serve"', "fedaccord.federation.runs.execute"),
        ('HOMES = {"Page": "fedaccord.report." + name}', "fedaccord.frontier.result"),
        ('__import__("fedaccord.cli")', "fedaccord.games.base"),
        # Each step of the order, upwards.
        ("from fedaccord._checks import Vector", "fedaccord.errors"),
        ("from fedaccord.allocation import Allocation", "fedaccord._io.table"),
        ("from fedaccord.games.base import Game", "fedaccord.allocation"),
        ("from fedaccord.check import check", "fedaccord.games.linear"),
        ("from fedaccord.measurement.fit import fit_curves", "fedaccord.equilibria.stable"),
        ("from fedaccord.equilibria.solve import solve_stable", "fedaccord.measurement.fit"),
        ("from fedaccord.equilibria.solve import solve_stable", "fedaccord.federation.clients"),
        ("from fedaccord.games.linear import LinearGame", "fedaccord.federation.clients"),
        ("from fedaccord.federation.history import History", "fedaccord.planning.plan"),
        ("from fedaccord.planning.plan import make_plan", "fedaccord.federation.pilots"),
        ("from fedaccord.frontier.result import Frontier", "fedaccord.planning.plan"),
        ("from fedaccord.reproduce.claims import Claim", "fedaccord.frontier.compare"),
        ("from fedaccord.report.terminal import show_live", "fedaccord.federation.defection.audit"),
        ("from fedaccord.report.page import Page", "fedaccord.reproduce.claims"),
        ("from fedaccord.cli.app import app", "fedaccord.report.games"),
        # Public names are for others: the package would import itself.
        ("from fedaccord import Plan", "fedaccord.report.plans"),
        # What only some parts may have.
        ("import torch", "fedaccord.games.linear"),
        ("if True:\n    from torch import nn", "fedaccord.equilibria.stable"),
        ("import torch", "fedaccord.cli.train"),
        ('imported("torch")', "fedaccord.report.training"),
        ("import typer", "fedaccord.report.terminal"),
        ("import matplotlib.pyplot", "fedaccord.federation.defection.chart"),
        # A new part.
        ("", "fedaccord.newcomer"),
    ],
)  # fmt: skip
def test_the_rule_on_imports_objects_to_planted_faults(source: str, module: str) -> None:
    assert wrong_imports(source, module.removesuffix(".__init__"), package="__init__" in module)


def test_a_stub_and_a_package_are_read_as_what_they_are() -> None:
    assert wrong_imports("from .cli import main as main", "fedaccord", package=True)
    assert wrong_imports("from ..report import page", "fedaccord.games", package=True)
    assert not wrong_imports("from .clients import Client", "fedaccord.federation", package=True)


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from fedaccord.games.base import Game", "fedaccord.check"),
        ("from fedaccord.cli import main", "fedaccord.__main__"),
        ("from fedaccord import __version__", "fedaccord._machine"),
        ("import torch", "fedaccord.federation.models.networks"),
        ('"""Drawn by fedaccord.report."""', "fedaccord.charts"),
        ('"""fedaccord.report"""', "fedaccord.charts"),
        ('results = "fedaccord.sqlite"', "fedaccord.federation.runs.store"),
        ('imported("fedaccord.federation.flower.keys")', "fedaccord.cli.flower"),
    ],
)
def test_the_rule_on_imports_lets_the_right_ones_pass(source: str, module: str) -> None:
    assert not wrong_imports(source, module)


# No module needs itself.


def early_imports(source: str) -> Iterator[str]:
    """List what a module imports when it is imported, not later or for types only."""
    waiting: list[ast.stmt] = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If | ast.Try) and "TYPE_CHECKING" not in ast.unparse(node):
            waiting += [s for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt)]


def needs(sources: dict[str, str]) -> dict[str, set[str]]:
    """Give the modules that each of some modules cannot be imported without."""
    found = {}
    for module, source in sources.items():
        names = set(early_imports(source))
        homes = {name if name in sources else name.rpartition(".")[0] for name in names}
        found[module] = homes & sources.keys() - {module}
    return found


def circles(needed: dict[str, set[str]]) -> set[str]:
    """Give the modules that need one another, and those between them."""
    left = dict(needed)
    while True:
        wanted = set().union(*left.values())
        kept = {m: left[m] & left.keys() for m in left if m in wanted and left[m] & left.keys()}
        if kept == left:
            return set(left)
        left = kept


def test_no_module_needs_itself_by_way_of_others() -> None:
    sources = {module: path.read_text() for module, path in modules() if path.suffix == ".py"}
    assert circles(needs(sources)) == set()


def test_the_search_for_circles_finds_one() -> None:
    sources = {
        "p": "",
        "p.a": "import p.b\nfrom numpy import nan",
        "p.b": "from p.c import name",
        "p.c": "if TYPE_CHECKING:\n    import p.a\nfrom p import b\ndef f():\n    import p.a",
        "p.d": "from p import a",
    }
    assert needs(sources) == {
        "p": set(),
        "p.a": {"p.b"},
        "p.b": {"p.c"},
        "p.c": {"p.b"},
        "p.d": {"p.a"},
    }
    assert circles(needs(sources)) == {"p.b", "p.c"}
    assert circles(needs({**sources, "p.c": ""})) == set()


def prints(source: str) -> list[int]:
    """List the lines that print, or write to a standard stream."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr"))
    ]


@EVERY
def test_nothing_prints_outside_the_command_line_and_the_reports(module: str, path: Path) -> None:
    assert part_of(module) in ("cli", "report", "__main__") or prints(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    ["print(1)", "def f():\n    print(1)", "import sys\nsys.stdout.write('a')", "f = print"],
)
def test_the_rule_on_printing_objects_to_planted_faults(source: str) -> None:
    assert prints(source)
    assert not prints("x = 'print'")


def loaded_by(statement: str, names: Sequence[str] = HEAVY) -> list[str]:
    """List the modules, heavy ones or others, that a statement brings into a fresh Python."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = set(done.stdout.split("\n"))
    return [name for name in names if name in found]


def test_importing_the_package_brings_nothing_heavy() -> None:
    assert loaded_by("import fedaccord") == []


def test_the_search_for_heavy_modules_finds_one() -> None:
    assert loaded_by("import fedaccord, scipy.optimize") == ["scipy.optimize"]


def test_the_command_line_starts_without_solvers_and_torch() -> None:
    allowed = {"typer", "rich"}
    assert set(loaded_by("import fedaccord.cli")) <= allowed


def test_solving_a_linear_game_brings_no_other_model_and_no_pilots(tmp_path: Path) -> None:
    others = ("games.goals", "games.measured", "games.coverage", "games.chances", "measurement.fit")
    names = [f"fedaccord.{name}" for name in others]
    game = tmp_path / "game.json"
    game.write_text('{"model": "linear", "benefits": [[1, 0.5], [0.5, 1]], "requirements": [1, 2]}')
    lines = [
        "import sys",
        "from fedaccord.cli import main",
        f"sys.argv[1:] = ['solve', {str(game)!r}]",
        "try: main()",
        "except SystemExit as end: assert not end.code",
    ]
    assert loaded_by("\n".join(lines), names) == []
    assert loaded_by("import fedaccord.measurement.fit", names)


@pytest.mark.parametrize(
    "module",
    [
        *("algorithms.mw_fed", "algorithms.base", "training.rng", "history", "config.sections"),
        *("config.load", "defection.curves", "defection.chart", "defection.curves"),
    ],
)
def test_what_does_not_train_needs_no_torch(module: str) -> None:
    assert loaded_by(f"import fedaccord.federation.{module}") == []


def test_a_config_is_read_without_torch() -> None:
    read = "from fedaccord.federation.config.load import Config; Config.default().to_dict()"
    assert loaded_by(read) == []


def test_one_place_writes_cells_that_a_spreadsheet_opens() -> None:
    """Elsewhere a name that begins like a formula could be forgotten."""
    writers = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if re.search(r"csv\.(writer|DictWriter)|\.to_csv\(|Workbook\(\)", file.read_text())
    }
    # The command prints what format_table made.
    assert writers == {"_io/table.py", "_io/excel.py", "report/html.py", "cli/pilots.py"}
    assert "escape_formula(" in (PACKAGE / "report" / "html.py").read_text()
