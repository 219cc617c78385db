"""What is imported when it is first asked for: public names, extras, and what notebooks show.

So importing stays quick, and what needs an extra that is not installed says which. Results and
progress are shown by `report`, and this is the one place below it that knows of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any, TypeAlias

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
# What a long function takes as `progress`: what is called with the news, or True for a bar.
Shows: TypeAlias = "Callable[..., None] | bool | None"


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
        with _explain_missing():
            return find(name)

    def list_names() -> list[str]:
        return [*names, *(["__version__"] if hasattr(sys.modules[package], "__version__") else [])]

    return find_name, list_names, names


def imported(module: str) -> Any:
    """Import a module, and if an extra is missing say which."""
    with _explain_missing():
        return import_module(module)


@contextmanager
def _explain_missing() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise MissingExtraError(error.name, EXTRAS[error.name]) from None
        raise


class Displayed:
    """A result that notebooks show as the tables of the command line."""

    def _repr_html_(self) -> str:
        text: str = _notebook().write_html(self)
        return text

    def to_frame(self) -> Any:
        """Return the result's main table as a pandas DataFrame, with every number in full."""
        return _notebook().make_frame(self)


def show_progress(progress: Shows) -> AbstractContextManager[Callable[..., None] | None]:
    """Return a context with what to call with the news, or None where nobody listens.

    progress: as a function that takes long got it; True shows a bar.
    """
    if progress is True:
        shown: AbstractContextManager[Callable[..., None]] = _notebook().show_progress()
        return shown
    return nullcontext(progress or None)


def _notebook() -> Any:
    return imported("fedaccord.report.notebook")
