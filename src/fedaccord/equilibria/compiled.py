"""Functions that numba compiles; importing this module imports numba, which takes a moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compile_loop(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a function that is compiled at its first call, and kept for the next process.

    Where no folder can be written, neither the package's nor the user's, nothing is kept.

    options: further options of numba.njit.
    """
    try:
        kept: Callable[..., Any] = njit(cache=True, **options)(function)
        return kept
    except RuntimeError:
        made: Callable[..., Any] = njit(**options)(function)
        return made


def compile_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose sums may be taken in any order, several terms at a time."""
    return compile_loop(function, fastmath={"reassoc", "contract"})
