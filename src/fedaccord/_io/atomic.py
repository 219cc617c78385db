"""Reading and replacing files so that a fault leaves the old file, never half a new one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fedaccord.errors import InputError


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file, or say in one sentence why not."""
    try:
        mode = Path(path).stat().st_mode
        # A device such as /dev/zero never ends; a pipe is as good as a file.
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            what = "a directory" if stat.S_ISDIR(mode) else "a device"
            raise InputError(f"cannot read {path}: it is {what}; name a file")
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8; save it as one") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from None


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file beside its destination; when all is written, flush it and move it into place."""
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
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


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
        why = "it is no file, and is left as it is; name a file"
        raise OSError(errno.EINVAL, why, str(target))
    return stat.S_IMODE(mode)


def replace_file(path: str | Path, text: str) -> None:
    """Replace a text file in one step."""
    with replacing(path) as file:
        file.write(text.encode())
