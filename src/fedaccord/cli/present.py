"""What happens to a result: its page is written, then it is printed as JSON or as tables.

Files that cannot be written are refused beforehand, by check_destination and check_report.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._io.json import json_text
from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.report.terminal import complain, emit, emit_text, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import RenderableType

    from fedaccord.report.model import Page


def present(
    *,
    record: Callable[[], Mapping[str, Any]],
    parts: Callable[[], Iterable[RenderableType]],
    page: Callable[[], Page] | None = None,
    report: str | None = None,
    as_json: bool = False,
    success: bool = True,
) -> int:
    """Write a result's page where one was asked for, print the result, return the exit code.

    record: makes the record that JSON has.
    parts: lays the result out for the terminal.
    page: makes the page.
    report: the page's file; None for no page.
    as_json: whether JSON is printed, not tables.
    success: whether the answer is yes.
    """
    # Files first: whoever reads the output may stop in the middle of it.
    if page is not None:
        write_page(report, page)
    if as_json:
        emit_text(json_text(record()))
    else:
        emit(*parts())
    return 0 if success else 1


def write_page(report: str | None, page: Callable[[], Page]) -> None:
    """Write a page where one was asked for, and say where it is.

    report: the file's name; None for no page.
    page: makes the page.
    """
    if report is not None:
        with progress(f"writing {report}"):
            page().save(report)
        complain(f"the page is in {report}")


def command_line() -> str:
    """Return the command as it was typed, to be typed again."""
    return shlex.join(["fedaccord", *sys.argv[1:]])


def describe_files(report: str | None, files: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Return the facts of a page that say which files it is about, by name and content.

    report: where the page goes; None for no page, which needs none.
    files: by what the page calls them; None where there is none.
    """
    if report is None:
        return []
    # What comes through a pipe can be read only once.
    paths = {what: Path(name) for what, name in files.items() if name and Path(name).is_file()}
    return [
        (what, f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
        for what, path in paths.items()
    ]


# Checks of files to write.


def check_report(report: str | None, *, keep: str | Path | None = None) -> None:
    """Refuse a report that cannot be written, or drawn, before any time goes into it.

    report: the file's name, as it was given; None for no report.
    keep: a file that must not be overwritten.
    """
    if report is not None:
        check_destination(report, (".html",), keep=keep, what="report", option="--report")
        try:
            imported("fedaccord.report.html")
        except ValueError as error:
            # Settings of matplotlib's in the environment or in a file, read on import.
            raise InputError(f"matplotlib cannot be loaded for --report: {error}") from None


def check_destination(
    save: str,
    suffixes: Sequence[str],
    *,
    keep: str | Path | None = None,
    what: str = "file",
    option: str = "--save",
) -> None:
    """Refuse a file that cannot be written before any time goes into its content.

    save: the file's name, as it was given.
    suffixes: what its name may end in.
    keep: a file that must not be overwritten.
    what: what is written there, for the message.
    option: that named the file, for the message.
    """
    path = Path(save)
    if path.suffix not in suffixes:
        raise InputError(f"{option} needs a file that ends in {' or '.join(suffixes)}; got {save}")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} would overwrite {save}, which is no {what}; name another")
    if path.exists() and keep is not None and Path(keep).exists() and os.path.samefile(path, keep):
        raise InputError(f"{option} would overwrite {save}, which is read here; name another file")
    # Through a link to where the file will be.
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {save}: there is no folder {folder} to write to")


def check_folder(path: str, option: str) -> None:
    """Refuse a file in a folder that is not there or cannot be written to.

    path: the file's name, as it was given.
    option: that named the file, for the message.
    """
    folder = Path(path).parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {option} {path}: there is no folder {folder} to write to")
