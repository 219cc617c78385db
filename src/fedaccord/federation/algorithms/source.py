"""What an algorithm of a user's own is known by: a digest of its code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import CodeType, EllipsisType, FunctionType, NoneType
from typing import Any

import numpy as np


def is_ours(kind: type) -> bool:
    """Return whether a class belongs to this package."""
    return kind.__module__.startswith("fedaccord.federation.")


def digest(kind: type) -> str:
    """Return a digest of what a class and those it is derived from define: methods and constants.

    It is the same in every process. What methods call outside the class is not in it.
    """
    found: list[tuple[Any, ...]] = []
    for owner in kind.__mro__:
        if is_ours(owner) or owner is object:
            continue
        for name, member in vars(owner).items():
            wrapped = (getattr(member, key, None) for key in ("fget", "__func__", "func"))
            held = next((one for one in wrapped if one is not None), member)
            if isinstance(held, FunctionType):
                given = (held.__defaults__, held.__kwdefaults__)
                found.append((name, _plain(held.__code__), _plain(given)))
            elif not name.startswith("__"):
                found.append((name, _plain(held)))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Give code and constants in a form that is written alike in every process."""
    if isinstance(value, CodeType):
        return (value.co_name, value.co_code, value.co_names, _plain(value.co_consts))
    if isinstance(value, tuple | list):
        return (type(value).__name__, [_plain(one) for one in value])
    if isinstance(value, set | frozenset):
        return (type(value).__name__, sorted(repr(_plain(one)) for one in value))
    if isinstance(value, Mapping):
        return ("dict", [(_plain(k), _plain(v)) for k, v in value.items()])
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, _plain(value.tolist()))
    if isinstance(value, bool | int | float | complex | str | bytes | NoneType | EllipsisType):
        return value
    # Whatever else there is may be written with its place in memory.
    return type(value).__name__
