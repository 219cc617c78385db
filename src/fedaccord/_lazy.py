"""Public names that are imported when they are first asked for, so that importing stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from fedaccord.errors import MissingExtraError

# Packages that an extra brings.
EXTRAS = {
    "torch": "train",
    "sklearn": "train",
    "cloudpickle": "train",
    "flwr": "flower",
    "cryptography": "flower",
    "ray": "ray",
    "matplotlib": "report",
    "jinja2": "report",
}


def lazily(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a module's __getattr__, which imports a name from its home and keeps it.

    module: the module's name.
    homes: for each name the module that defines it.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(imported(homes[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return find


def imported(module: str) -> Any:
    """Import a module, and if an extra is missing say which."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise MissingExtraError(error.name, EXTRAS[error.name]) from None
        raise
