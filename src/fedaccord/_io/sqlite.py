"""SQLite files of our own: marked as ours, and changed in whole transactions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedaccord.errors import InputError

# How long to wait for another process that is just committing, in seconds.
PATIENCE = 60


def connect(path: str | Path | None) -> sqlite3.Connection:
    """Open a file, or a database in memory; transactions begin where `transaction` says so."""
    connection = sqlite3.connect(":memory:" if path is None else path, timeout=PATIENCE)
    connection.isolation_level = None
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything that is done in the block, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        # After some errors, a full disk among them, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def claim(
    connection: sqlite3.Connection,
    path: str | Path | None,
    *,
    application: int,
    version: int,
    schema: Sequence[str] = (),
) -> bool:
    """Mark a new file as one of ours and make its tables; refuse a file of another kind.

    Return whether the file was new.

    connection: to the file.
    path: its name, for errors.
    application: written into its header, so that no other SQLite file is taken for one of ours.
    version: of its layout.
    schema: the statements that make its tables.
    """
    if _is_ours(connection, path, application, version):
        return False
    with transaction(connection):
        # Another process may have been first.
        if not _is_ours(connection, path, application, version):
            for statement in schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {application}")
            connection.execute(f"PRAGMA user_version = {version}")
    return True


def _is_ours(
    connection: sqlite3.Connection, path: str | Path | None, application: int, version: int
) -> bool:
    """Return whether a file is one of ours, False if it is empty; refuse any other file."""
    found, layout, tables = (
        connection.execute(query).fetchone()[0]
        for query in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
    )
    if not found and not tables:
        return False
    if found != application:
        raise InputError(f"{path} is a database of another program; name another file")
    if layout != version:
        raise InputError(
            f"{path} was written by another version of fedaccord (its layout is {layout}, not "
            f"{version}); name another file, or use that version"
        )
    return True
