"""Folders of new files: all of them or none, and never over a file that is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedaccord.errors import InputError


def write_folder(
    folder: str | Path, files: Mapping[str, str | bytes], *, what: str, hidden: Sequence[str] = ()
) -> None:
    """Write files into a folder, all or none, and never over a file.

    folder: which is made if need be; hidden files in it, such as .git, do not matter.
    files: by their place in the folder, what they hold.
    what: what they are together, for messages.
    hidden: hidden files that must not be there either.
    """
    root = Path(os.path.abspath(folder))
    check_folder(root, folder, hidden)
    try:
        # An interrupt too leaves nothing behind.
        with contextlib.ExitStack() as undo:
            for place, content in files.items():
                write_new(root / place, content, undo)
            undo.pop_all()
    except OSError as fault:
        reason = fault.strerror or fault
        raise InputError(f"cannot write {what} to {folder}: {reason}") from None


def check_folder(root: Path, folder: str | Path, hidden: Sequence[str] = ()) -> None:
    """Refuse a folder that has files, or is none.

    root: the folder.
    folder: the same as it was given, for messages.
    hidden: hidden files that must not be there either.
    """
    if not os.path.lexists(root):
        return
    if not root.is_dir():
        raise InputError(f"{folder} is not a folder; name another")
    try:
        there = sorted(os.listdir(root))
    except OSError as error:
        raise InputError(f"cannot look into {folder}: {error.strerror or error}") from None
    seen = [entry for entry in there if not entry.startswith(".")]
    seen += [entry for entry in hidden if entry in there]
    if seen:
        raise InputError(
            f"{folder} is not empty (it has {seen[0]}), and no file is overwritten: name a new "
            "folder"
        )


def write_new(path: Path, content: str | bytes, undo: contextlib.ExitStack) -> None:
    """Write a file that was not there, and the folders to it.

    undo: gets the removal of what was made.
    """
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir()
            undo.callback(_remove, folder)
    with path.open("xb") as file:
        undo.callback(_remove, path)
        file.write(content.encode() if isinstance(content, str) else content)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir() if path.is_dir() else path.unlink()
