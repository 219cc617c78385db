"""How results and progress are shown in notebooks: asked of `report`, and only when shown.

This is the one place below `report` that knows of it. Nothing is imported before a result is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

from fedaccord._lazy import imported

# What a long function takes as `progress`: what is called with the news, or True for a bar.
Shows: TypeAlias = "Callable[..., None] | bool | None"


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
