"""JSON in and out: strict about what comes in, full precision and no NaN in what goes out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fedaccord._io.atomic import read_text
from fedaccord.errors import InputError


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a file that holds one JSON object, or say in one sentence why that fails.

    NaN and Infinity come through as floats, so that whoever knows which agent they belong to can
    name it.
    """
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path} is empty; it must hold a JSON object, {{...}}")
    try:
        data = json.loads(text, object_pairs_hook=_check_unique)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is not JSON ({error.msg} at line {error.lineno}, column {error.colno}): is it "
            "cut short, or does it lack a comma or a quote?"
        ) from None
    except RecursionError:
        raise InputError(f"{path} is nested too deep; lists of lists of lists are enough") from None
    except ValueError:
        # The only other fault of the parser: integers too long to convert.
        raise InputError(f"{path} has a number of thousands of digits; shorten it") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} must hold a JSON object, {{...}}; it holds a {kind(data)}")
    return data


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f'the key "{twice}" comes twice; keep one of them')
    return result


def kind(value: object) -> str:
    """Name a JSON value's type as JSON does."""
    names = {bool: "truth value", int: "number", float: "number", str: "string", list: "list"}
    return "null" if value is None else names.get(type(value), "object")


def json_text(value: Any, indent: str = "") -> str:
    """Lay JSON out for readers and machines both, every number at full precision.

    A key gets a line, and so does a row of a matrix; what is not finite becomes null.

    value: what to write.
    indent: what the lines after the first start with.
    """
    inner = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{json.dumps(str(key))}: {json_text(v, inner)}" for key, v in value.items()]
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and any(isinstance(v, list | tuple | dict) for v in value):
        rows = [inner + json.dumps(_drop_nan(row), allow_nan=False) for row in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(_drop_nan(value), allow_nan=False)


def _drop_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _drop_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_drop_nan(item) for item in value]
    return value
