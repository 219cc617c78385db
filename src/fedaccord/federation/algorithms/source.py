"""What an algorithm of a user's own is known by: a digest of its source.

The digest is the same in every process and in every version of Python, and comments, docstrings
and layout do not change it. It covers the methods of the class and of those classes it is derived
from that are not ours, the defaults of their arguments, and the constants of the classes. It does
not cover functions outside the classes. Where Python has no source of a method, as for code typed
into a plain prompt or made by `exec`, the method's bytecode stands for it, which differs between
versions of Python.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import CodeType, EllipsisType, FunctionType, NoneType
from typing import Any

import numpy as np

# Where the classes of this package are.
OURS = "fedaccord.federation."
# Methods that have no part in training; dataclasses make them, each version of Python its own way.
IRRELEVANT = (
    *("__repr__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__setattr__", "__delattr__", "__replace__", "__annotate__", "__annotate_func__"),
)


def digest(kind: type) -> str:
    """Return a digest of the methods and constants of a class and its bases, ours aside."""
    found: list[tuple[Any, ...]] = []
    for owner in kind.__mro__:
        if owner is object or owner.__module__.startswith(OURS):
            continue
        for name, member in sorted(vars(owner).items()):
            wrapped = (getattr(member, key, None) for key in ("fget", "__func__", "func"))
            held = next((one for one in wrapped if one is not None), member)
            if isinstance(held, FunctionType):
                made = name == "__init__" and held.__code__.co_filename == "<string>"
                if name not in IRRELEVANT and not made:
                    defaults = _plain((held.__defaults__, held.__kwdefaults__))
                    found.append((name, _source(held.__code__), defaults))
            elif not name.startswith("__"):
                found.append((name, _plain(held)))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def describe_function(function: Callable[..., Any]) -> str:
    """Return what a function of a user's own is known by: a digest of its source and defaults.

    function: the function; of an object that can be called, its name stands for it.
    """
    if isinstance(function, FunctionType):
        defaults = _plain((function.__defaults__, function.__kwdefaults__))
        parts = repr((_source(function.__code__), defaults))
        return hashlib.sha256(parts.encode()).hexdigest()
    kind = type(function)
    name = getattr(function, "__qualname__", kind.__qualname__)
    return f"{getattr(function, '__module__', kind.__module__)}.{name}"


# Once per method: a file may be edited while a program that has read it is running.
@functools.cache
def _source(code: CodeType) -> Any:
    """Return a method's source in a form that layout and the version of Python do not change."""
    try:
        text = textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        return _plain(code)
    try:
        return _outline(ast.parse(text))
    except SyntaxError:
        # A lambda within a longer expression has lines that are no statement.
        return text.split()


def _outline(node: Any) -> Any:
    """Return a syntax tree as tuples, without docstrings and without empty fields.

    Newer versions of Python add fields, which are empty in code that older versions can read.
    """
    if isinstance(node, list):
        return [_outline(one) for one in node]
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node, False):
        fields["body"] = node.body[1:]
    kept = {name: value for name, value in fields.items() if value is not None and value != []}
    return (type(node).__name__, *((name, _outline(value)) for name, value in kept.items()))


def _plain(value: Any) -> Any:
    """Return code and constants in a form that is written alike in every process."""
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
    # Anything else might be written with its place in memory.
    return type(value).__name__
