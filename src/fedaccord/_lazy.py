"""Public names and modules that are imported when they are first asked for.

So importing stays quick, and what needs an extra that is not installed says which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import lazy_loader

from fedaccord.errors import MissingExtraError

# Packages that an extra brings.
EXTRAS = {
    "torch": "train",
    "sklearn": "train",
    "cloudpickle": "train",
    "flwr": "flower",
    "cryptography": "flower",
    "nvflare": "nvflare",
    "ray": "ray",
    "matplotlib": "report",
    "jinja2": "report",
    "openpyxl": "excel",
    "pandas": "pandas",
    "nicegui": "explore",
}


def attach_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's __getattr__, __dir__ and __all__, by the names that its stub lists.

    package: its name.
    file: its __init__.py; the stub is in the same folder.
    """
    find, _, names = lazy_loader.attach_stub(package, file)

    def find_name(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _explained():
            return find(name)

    def list_names() -> list[str]:
        return [*names, *(["__version__"] if hasattr(sys.modules[package], "__version__") else [])]

    return find_name, list_names, names


def imported(module: str) -> Any:
    """Import a module, and if an extra is missing say which."""
    with _explained():
        return import_module(module)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise MissingExtraError(error.name, EXTRAS[error.name]) from None
        raise
