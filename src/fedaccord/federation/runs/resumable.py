"""Work in numbered pieces that can be stopped at any time and gone on with later."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._io import sqlite
from fedaccord.errors import InputError
from fedaccord.federation.runs.parts import Part

# Written into the file's header, so that no other SQLite file is taken for one of these: "FDAP".
APPLICATION = 0x46444150
VERSION = 1


def finish(
    table: str,
    pieces: int,
    work: Callable[[int], Mapping[str, Any]],
    *,
    path: str | Path | None,
    description: Mapping[str, Any],
    part: Part | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Do the pieces of work that are not in the file yet; return the results of all.

    Every finished piece is committed at once, so that a process that is killed loses the piece
    under way and no other, and the same call goes on where it stopped. Calls in several processes
    with the same file share the work.

    table: the table of the file that the results stand in, a row each.
    pieces: how many; piece n must not depend on any other.
    work: does a piece and gives its row.
    path: a SQLite file, made if it is not there; None keeps nothing.
    description: all that the results depend on; a file made for another one is refused.
    part: the part of the pieces to do, in a file of its own; None for all of them.
    progress: told how many pieces are finished, of how many.
    """
    tell = progress or (lambda done, of: None)
    if path is None:
        rows = []
        for n in range(pieces):
            tell(n, pieces)
            rows.append(dict(work(n)))
        tell(pieces, pieces)
        return rows
    with _open(path) as connection:
        sqlite.claim(connection, path, application=APPLICATION, version=VERSION)
        _check_description(connection, table, description, path)
        made = 0
        ours = [n for n in range(pieces) if part is None or part.has(n)]
        if part is not None:
            part.note(connection, _digest(description), finished=False)
        # Every process in an order of its own, so that two of them seldom do the same piece.
        for n in np.random.default_rng(os.getpid()).permutation(ours).tolist():
            query = f"select piece from {table} where piece < ?"
            finished = {piece for (piece,) in connection.execute(query, (pieces,))}
            if n not in finished:
                tell(len(finished), len(ours))
                values = (n, json.dumps(dict(work(n))))
                with sqlite.transaction(connection):
                    connection.execute(f"insert or ignore into {table} values (?, ?)", values)
                made += 1
        tell(len(ours), len(ours))
        if part is not None:
            part.note(connection, _digest(description), finished=True)
            raise part.end(Path(path), made)
        query = f"select result from {table} where piece < ? order by piece"
        return [_read(text, path) for (text,) in connection.execute(query, (pieces,))]


def _read(text: Any, path: str | Path) -> dict[str, Any]:
    """Return what was kept, or raise an InputError where it is something else."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged: put back a copy of it, or move it away")
    return found


def _digest(description: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _open(path: str | Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(sqlite.connect(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise InputError(
            f"cannot keep results in {path} ({error}): is it a file of another kind, or is the "
            "disk full?"
        ) from None


def _check_description(
    connection: sqlite3.Connection, table: str, description: Mapping[str, Any], path: str | Path
) -> None:
    text = json.dumps(description, sort_keys=True)
    with sqlite.transaction(connection):
        connection.execute(
            f"create table if not exists {table} (piece integer primary key, result)"
        )
        connection.execute("create table if not exists work (name primary key, description)")
        connection.execute("insert or ignore into work values (?, ?)", (table, text))
    query = "select description from work where name = ?"
    (found,) = connection.execute(query, (table,)).fetchone()
    if found != text:
        old, new = _read(found, path), json.loads(text)
        key = next(k for k in sorted({*old, *new}) if old.get(k) != new.get(k))
        raise InputError(
            f"{path} holds {table} made with {key} = {old.get(key)!r}, and now {key} is "
            f"{new.get(key)!r}; name another file, or use the same settings as before"
        )
