"""Text and JSON files, read and replaced so that a fault leaves the old file, never half a new one.

JSON is strict about what comes in; what goes out has full precision and no NaN.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from fedaccord.errors import InputError

# What the name of a table ends in, as opposed to JSON.
TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")


def read_bytes(path: str | Path) -> bytes:
    """Read a file or a pipe, or say in one sentence why not."""
    try:
        mode = Path(path).stat().st_mode
        # A device such as /dev/zero never ends; a pipe is as good as a file.
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            what = "a directory" if stat.S_ISDIR(mode) else "a device"
            raise InputError(f"cannot read {path}: it is {what}; name a file")
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from None


def read_text(path: str | Path, data: bytes | None = None) -> str:
    """Read a UTF-8 text file, or say in one sentence why not.

    path: the file.
    data: what it holds, if it was read already.
    """
    try:
        text = (read_bytes(path) if data is None else data).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8; save it as one") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file in the folder of its destination; once complete, move it into place."""
    # Through a link to the file it names, which keeps its permissions if it is there already.
    target = Path(os.path.realpath(path))
    mode = _read_mode(target)
    if mode is None:
        umask = os.umask(0)
        os.umask(umask)
        mode = 0o666 & ~umask
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".fedaccord-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        if error.errno and error.filename in (None, temporary):
            # A full disk is known by its number only: name the file that the user knows.
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        # It is gone if it was moved into place.
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def check_replaceable(path: str | Path) -> None:
    """Raise an OSError now where `replacing` would later; what is there is not touched."""
    target = Path(os.path.realpath(path))
    _read_mode(target)
    with tempfile.TemporaryFile(dir=target.parent, prefix=".fedaccord-"):
        pass


def _read_mode(target: Path) -> int | None:
    """Return the permissions of a file that is to be replaced, None if there is none yet.

    A device, a pipe or a folder would be destroyed, not written to, so they are refused.
    """
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        why = "it is not a file; name a file"
        raise OSError(errno.EINVAL, why, str(target))
    return stat.S_IMODE(mode)


def replace_file(path: str | Path, text: str) -> None:
    """Replace a text file in one step."""
    with replacing(path) as file:
        file.write(text.encode())


# JSON.


def read_json(path: str | Path, data: bytes | None = None) -> dict[str, Any]:
    """Read a file that holds one JSON object, or say in one sentence why that fails.

    NaN and Infinity come through as floats, so that a caller that knows which agent they belong to
    can name it.

    path: the file.
    data: what it holds, if it was read already.
    """
    if Path(path).suffix.lower() in TABLES:
        raise InputError(
            f"{path} is a table, and JSON is needed here: 'fedaccord plan {path}' takes pilots and "
            f"label histograms, 'fedaccord check GAME.json {path}' contributions"
        )
    text = read_text(path, data)
    if not text.strip():
        raise InputError(f"{path} is empty; it must hold a JSON object, {{...}}")
    try:
        found = json.loads(text, object_pairs_hook=_check_unique)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise InputError(
            f"{path} is not JSON ({what} at line {error.lineno}, column {error.colno}): is it cut "
            "short, or does it lack a comma or a quote?"
        ) from None
    except RecursionError:
        raise InputError(f"{path} is nested too deep; lists of lists of lists are enough") from None
    except ValueError:
        # The only other fault of the parser: integers too long to convert.
        raise InputError(f"{path} has a number of thousands of digits; shorten it") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} must hold a JSON object, {{...}}; it holds {kind(found)}")
    return found


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f'the key "{twice}" appears twice; keep one of them')
    return result


def kind(value: object) -> str:
    """Return a JSON value's type as JSON calls it, with its article."""
    names = {bool: "truth value", int: "number", float: "number", str: "string", list: "list"}
    if value is None:
        return "null"
    return f"a {names[type(value)]}" if type(value) in names else "an object"


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
