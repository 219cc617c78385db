"""Where a command may write: into a folder that exists, and over a file only of its own kind."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord._lazy import imported
from fedaccord.errors import InputError
from fedaccord.wording import count, join_with_and, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedaccord._io.rows import Rows


class Written(Enum):
    """The files that commands write; tables by the sets of columns they can have.

    A list of pilots has the columns of the user's own table: its accuracies are empty. A game is
    never a table.
    """

    PILOTS_TO_RUN = ()
    PILOTS = (
        (
            *("pilot", "agent", "contribution", "accuracy"),
            *("goal", "validation", "limit", "minimum", "cost"),
        ),
        ("pilot", "agent", "contribution", "measure", "value", "sd", "goal", "limit"),
    )
    PLAN = (("agent", "contribution", "reserve"),)
    PAYMENTS = (("agent", "contribution", "share", "payment"),)
    HISTORY = (("round", "client", "samples", "unique", "loss", "accuracy"),)
    GAME = None


def check_destination(
    save: str,
    suffixes: Sequence[str],
    *,
    keep: str | Path | Sequence[str | None] | None = None,
    what: str = "file",
    option: str = "--save",
    written: Written | None = None,
) -> None:
    """Refuse a file that cannot be written before any time goes into its content.

    save: the file's name, as it was given.
    suffixes: what its name may end in.
    keep: a file that must not be overwritten, or several.
    what: what is written there, for the message.
    option: that named the file, for the message.
    written: the file that is written there; only a file of the same kind is replaced.
    """
    path = Path(save)
    if path.suffix not in suffixes:
        ends = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise InputError(f"{option} needs a file that ends in {ends}; got {save}")
    if path.suffix == ".xlsx":
        imported("openpyxl")
    if path.exists() and not path.is_file():
        raise InputError(
            f"{option} would overwrite {save}, which is not a {what}; choose another name"
        )
    kept = [keep] if isinstance(keep, str | Path | None) else keep
    there = [name for name in kept if name is not None and os.path.exists(name)]
    if path.exists() and any(os.path.samefile(path, name) for name in there):
        raise InputError(
            f"{option} would overwrite {save}, which this command reads; choose another name"
        )
    if written is not None and path.exists():
        check_replaced(path, written, option)
    # Through a link to where the file will be.
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {save}: the folder {folder} is missing or not writable")


def check_replaced(path: Path, written: Written, option: str) -> None:
    """Refuse to replace a file that the command could not have written itself.

    path: a file that is there.
    written: what the command writes.
    option: that named the file, for the message.
    """
    from fedaccord._io.table import read_rows

    if path.stat().st_size == 0:
        return
    remedy = "save under another name"
    if written is Written.GAME or path.suffix == ".json":
        if not _could_write_json(written, path):
            what = "game" if written is Written.GAME else "plan"
            raise InputError(f"{option} would overwrite {path}, which is not a {what}: {remedy}")
        return
    try:
        rows = read_rows(path)
    except InputError:
        raise InputError(
            f"{option} would overwrite {path}, which is not a table of this command: {remedy}"
        ) from None
    if _could_write(written, rows):
        return
    if number := _count_accuracies(rows):
        raise InputError(f"{path} holds {count(number, 'accuracy', 'accuracies')}: {remedy}")
    heads = [head for head in rows.cells[0] if head]
    named = f"{pluralize(len(heads), 'column')} {join_with_and(heads[:8])}"
    raise InputError(
        f"{option} would overwrite {path}, which is another table, with the {named}: {remedy}"
    )


def _could_write_json(written: Written, path: Path) -> bool:
    from fedaccord._io.files import read_json
    from fedaccord.games.files import MODELS

    try:
        found = read_json(path)
    except InputError:
        return False
    if written is Written.GAME:
        return found.get("model") in tuple(MODELS)
    # What commands print with --json may have contributions too, and much else.
    return "contributions" in found and found.keys() <= {"contributions", "agents", "reserve"}


def _could_write(written: Written, rows: Rows) -> bool:
    heads = [head for head in rows.cells[0] if head]
    if written is Written.PILOTS_TO_RUN:
        return "accuracy" in _find_columns(rows) and not _count_accuracies(rows)
    # Pilots that are trained count from 0, and those of a list that people fill in from 1.
    below = rows.cells[1:2]
    if written is Written.PILOTS and below and below[0][0] != "0":
        return False
    return any(set(heads) <= set(columns) for columns in written.value)


def _find_columns(rows: Rows) -> list[str | None]:
    """Return the columns that the headings of a table of pilots mean."""
    from fedaccord._io.kinds import PILOTS

    is_ours = rows.kind is PILOTS
    return [PILOTS.find_column(head) if is_ours else None for head in rows.cells[0]]


def _count_accuracies(rows: Rows) -> int:
    columns = _find_columns(rows)
    if "accuracy" not in columns:
        return 0
    place = columns.index("accuracy")
    return sum(bool(row[place]) for row in rows.cells[1:] if place < len(row))
