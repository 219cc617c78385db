"""Public names, documented modules and what can be said to them."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from golden.pinning import HERE, pinned

DOCS = HERE.parents[1] / "docs"
PACKAGES = (
    "fedaccord",
    "fedaccord.federation",
    "fedaccord.federation.flower",
    "fedaccord.federation.nvflare",
    "fedaccord.report",
    "fedaccord.reproduce",
)
# Beside the packages, what the docs import from or send a reader to.
MODULES = {
    "fedaccord.games.catalog": ("build", "answers"),
    "fedaccord.equilibria.structure": (
        *("core_set", "CoreSet", "everyone_contributes", "everyone_must_contribute"),
        *("is_diagonally_dominant", "strictly_dominant_own_benefits"),
    ),
    "fedaccord.errors": ("FedaccordError", "InputError", "UnreachableError"),
    "fedaccord.charts": ("Chart",),
    "fedaccord.cli": ("main",),
}
# What is only ever given, never made by a user: how it is made is nobody's business.
RESULTS = {
    *(
        "Answer",
        "Audit",
        "Check",
        "Certified",
        "Contender",
        "CoreSet",
        "Doubt",
        "Frontier",
        "Interval",
    ),
    *("LeaveOneOut", "Measurement", "Path", "Payments", "Plan", "Price", "Refuted", "Solution"),
    *("Status", "Unknown", "Config", "DefectionAudit", "DefectionCurve", "DefectionLevel", "Draw"),
    *("History", "Known", "PretrainedWeights", "Progress", "Satisfaction", "Scores", "Seeking"),
    *("Sought", "Verified", "Remark", "Reproduction", "Row", "Verdict", "FedaccordError"),
    *("InputError", "Game", "Algorithm", "Coalitions", "Contract", "CostShares", "Grouping"),
}


@pinned("names/public")
def public_names(folder: Path) -> dict[str, Any]:
    """List what every package exports, and what it shows of itself."""
    found = {}
    for name in PACKAGES:
        package = importlib.import_module(name)
        for public in package.__all__:
            getattr(package, public)
        found[name] = sorted(package.__all__)
    return found


@pinned("names/shown", growing=True)
def shown_names(folder: Path) -> dict[str, Any]:
    """List what dir() shows of every package that chooses it."""
    packages = (importlib.import_module(name) for name in PACKAGES[:-1])
    return {p.__name__: sorted(n for n in dir(p) if n[:1] != "_") for p in packages}


@pinned("names/documented")
def documented_names(folder: Path) -> dict[str, list[str]]:
    """List the names in docs/reference/names.md under each package, all of which must be there."""
    text = (DOCS / "reference" / "names.md").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        package = importlib.import_module(title.strip())
        cells = re.findall(r"^\| (`[^|]*`) \|", body, flags=re.MULTILINE)
        names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
        found[title.strip()] = [name for name in names if getattr(package, name) is not None]
    return found


@pinned("names/modules")
def documented_modules(folder: Path) -> dict[str, list[str]]:
    """List the names of documented modules that are not in a package's list."""
    found = {}
    for name, wanted in MODULES.items():
        module = importlib.import_module(name)
        found[name] = [n for n in wanted if getattr(module, n) is not None]
    return found


@pinned("names/signatures")
def signatures(folder: Path) -> dict[str, list[str]]:
    """List what every public function and class can be given: names, order and defaults."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            thing = getattr(package, name)
            if callable(thing) and name not in RESULTS:
                found[f"{package.__name__}.{name}"] = _parameters(thing)
    return found


@pinned("names/members", growing=True)
def members(folder: Path) -> dict[str, list[str]]:
    """List the public members of public classes; more may come."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            thing = getattr(package, name)
            if inspect.isclass(thing) and thing.__module__.startswith("fedaccord"):
                fields = getattr(thing, "__dataclass_fields__", {})
                shown = {n for n in (*dir(thing), *fields) if not n.startswith("_")}
                found[f"{package.__name__}.{name}"] = sorted(shown - set(dir(tuple)))
    return found


def _parameters(thing: Any) -> list[str]:
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return []
    return [_parameter(p) for p in signature.parameters.values()]


def _parameter(parameter: inspect.Parameter) -> str:
    mark = {parameter.KEYWORD_ONLY: "*, ", parameter.POSITIONAL_ONLY: "/, "}.get(parameter.kind, "")
    if parameter.default is parameter.empty:
        return mark + parameter.name
    plain = isinstance(parameter.default, str | int | float | tuple | None)
    return (
        f"{mark}{parameter.name} = {parameter.default!r}" if plain else f"{mark}{parameter.name}=…"
    )
