"""Finished runs in a file, each committed at once: what is done is never done again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._io import sqlite
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.history import History
from fedaccord.federation.training.rng import derive_seed

# Written into the file's header, so that no other SQLite file is taken for one of ours: "FDAC".
APPLICATION = 0x46444143
# Raised whenever a change of the code changes what comes of the same run: older ones are then
# made again, not mixed with newer. Since 2 every client has its own draw of the points that a goal
# test looks at. (It has its own masks of dropout since then, too: by that the fingerprints of
# models with dropout differ.) Runs in which nobody draws such points came out alike before.
RESULTS = 2
UNCHANGED = 1
VERSION = 1
# The columns that identify a run, and those that say what came of it: both have a digest.
IDENTITY = ("source", "algorithm", "contributions", "base_seed", "trial")
RESULT = ("accuracies", "satisfied", "first_passage", "samples", "unique", "diverged")

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    contributions TEXT NOT NULL,
    base_seed TEXT NOT NULL,
    trial INTEGER NOT NULL,
    seed TEXT NOT NULL,
    accuracies TEXT NOT NULL,
    satisfied TEXT NOT NULL,
    first_passage TEXT NOT NULL,
    samples TEXT NOT NULL,
    "unique" TEXT NOT NULL,
    diverged INTEGER NOT NULL,
    digest TEXT NOT NULL,
    history_digest TEXT NOT NULL,
    seconds REAL NOT NULL,
    versions TEXT NOT NULL,
    finished TEXT NOT NULL
);
CREATE TABLE history (
    run INTEGER NOT NULL REFERENCES runs (id),
    round INTEGER NOT NULL,
    client TEXT NOT NULL,
    samples INTEGER NOT NULL,
    "unique" INTEGER NOT NULL,
    loss REAL,
    accuracy REAL,
    PRIMARY KEY (run, round, client)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Run:
    """A run of training, known by what goes into it.

    source: the fingerprint of the federation, or of what deals one to each trial.
    algorithm: with its settings.
    contributions: how many of its points each client brings.
    base_seed: of the whole audit.
    trial: which draw of clients and of chance.
    """

    source: str
    algorithm: Algorithm
    contributions: tuple[int, ...]
    base_seed: int
    trial: int

    def __str__(self) -> str:
        """Name the run in the middle of a sentence."""
        brought = ", ".join(map(str, self.contributions))
        return f"{self.algorithm.name} in trial {self.trial} with contributions {brought}"

    @property
    def seed(self) -> int:
        """The run's own seed: the same for all algorithms and contributions in a trial."""
        return derive_seed(self.base_seed, "trial", self.trial)

    @cached_property
    def key(self) -> str:
        """A digest of all that the run depends on: equal runs have equal keys."""
        algorithm = self.algorithm.to_dict()
        return _digest(
            _version_of(algorithm),
            self.source,
            _canonical(algorithm),
            _canonical(self.contributions),
            self.base_seed,
            self.trial,
        )


@dataclass(frozen=True)
class Outcome:
    """What is kept of a finished run: one value per client, and how long it took.

    accuracies: at the last evaluation, NaN where training diverged before the client left.
    satisfied: whether that is what the client wants.
    first_passage: the first round at whose evaluation it was, 0 for never.
    samples: how many samples the client drew in all.
    unique: how many different points that were.
    diverged: whether a loss was not finite.
    seconds: how long the run took.
    versions: of the packages that decide the result.
    """

    accuracies: tuple[float, ...]
    satisfied: tuple[bool, ...]
    first_passage: tuple[int, ...]
    samples: tuple[int, ...]
    unique: tuple[int, ...]
    diverged: bool
    seconds: float
    versions: str

    @classmethod
    def of(cls, history: History, versions: str) -> Outcome:
        """Sum up a history."""
        return cls(
            accuracies=tuple(history.final.tolist()),
            satisfied=tuple(history.satisfied.tolist()),
            first_passage=tuple(history.first_passage.tolist()),
            samples=tuple(history.samples.sum(axis=0).tolist()),
            unique=tuple(history.unique[-1].tolist()),
            diverged=bool(history.diverged),
            seconds=float(history.seconds),
            versions=versions,
        )

    @property
    def satisfied_by_then(self) -> tuple[bool, ...]:
        """Who had its accuracy at any evaluation; nobody whose training diverged in the end."""
        pairs = zip(self.first_passage, self.accuracies, strict=True)
        return tuple(passage > 0 and not math.isnan(last) for passage, last in pairs)


class RunStore(contextlib.AbstractContextManager["RunStore"]):
    """A SQLite file of finished runs and their histories.

    A rollback journal, not a write-ahead log: everything is in one file that can be copied, also
    on a network drive, and a commit every few seconds gains nothing from the log. With
    synchronous = EXTRA a run that was reported finished survives a kill and a power cut.

    path: the file, made where there is none; None keeps the runs in memory.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        # Counted here, for when the file can no longer be asked.
        self._safe_runs = 0
        if self.path is not None and not self.path.parent.is_dir():
            raise InputError(f"cannot write {self.path}: there is no folder {self.path.parent}")
        with self._explain("open"):
            self._connection = sqlite.connect(self.path)
        try:
            with self._explain("read"):
                self._prepare()
            self._safe_runs = len(self)
        except BaseException:
            self._connection.close()
            raise

    def __repr__(self) -> str:
        return "RunStore(in memory)" if self.path is None else f"RunStore({str(self.path)!r})"

    def __len__(self) -> int:
        with self._explain("read"):
            return int(self._connection.execute("SELECT count(*) FROM runs").fetchone()[0])

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything is in it already."""
        self._connection.close()

    def get(self, run: Run) -> Outcome | None:
        """Return what came of a run, None where it has not been finished."""
        with self._explain("read"):
            cursor = self._connection.execute("SELECT * FROM runs WHERE key = ?", (run.key,))
            found = cursor.fetchone()
        if found is None:
            return None
        row = dict(zip((column for column, *_ in cursor.description), found, strict=True))
        identity, result = ([row[name] for name in names] for names in (IDENTITY, RESULT))
        key = _digest(_version_of(run.algorithm.to_dict()), *identity)
        if key != run.key or _digest(key, *result) != row["digest"]:
            raise self._damaged(f"run {run.key[:12]} is not as it was written")
        *lists, diverged = RESULT
        return Outcome(
            **{name: _read_list(row[name]) for name in lists},
            diverged=bool(row[diverged]),
            seconds=row["seconds"],
            versions=row["versions"],
        )

    def put(self, run: Run, outcome: Outcome, history: History) -> Outcome:
        """Commit a finished run; return what the file has of it.

        Where another process was first, its runs stand: the same, for they had the same seed.
        """
        *lists, diverged = RESULT
        result: dict[str, str | int] = {n: _write_list(getattr(outcome, n)) for n in lists}
        result[diverged] = int(outcome.diverged)
        # SQLite has no NaN: what is not known is NULL there.
        rows = [
            tuple(None if value != value else value for value in entry) for entry in history.rows()
        ]
        row = {
            "key": run.key,
            "source": run.source,
            "algorithm": _canonical(run.algorithm.to_dict()),
            "contributions": _canonical(run.contributions),
            "base_seed": str(run.base_seed),
            "trial": run.trial,
            "seed": str(run.seed),
            **result,
            "digest": _digest(run.key, *result.values()),
            "history_digest": _digest(*sorted(rows, key=_place)),
            "seconds": outcome.seconds,
            "versions": outcome.versions,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        columns, values = (", ".join(map(form.format, row)) for form in ('"{}"', ":{}"))
        with self._explain("write"), sqlite.transaction(self._connection):
            cursor = self._connection.execute(
                f"INSERT OR IGNORE INTO runs ({columns}) VALUES ({values})", row
            )
            if new := cursor.rowcount > 0:
                self._connection.executemany(
                    "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)",
                    ((cursor.lastrowid, *entry) for entry in rows),
                )
        if new:
            self._safe_runs += 1
            return outcome
        return self.get(run) or outcome

    def kept(self, source: str, *, trials: range) -> list[tuple[tuple[int, ...], int, int]]:
        """List runs of a source: the contributions, base seed and trial of each, by trial.

        source: the fingerprint.
        trials: which are asked for.
        """
        with self._explain("read"):
            rows = self._connection.execute(
                "SELECT DISTINCT contributions, base_seed, trial FROM runs"
                " WHERE source = ? AND trial >= ? AND trial < ?"
                " ORDER BY trial, base_seed, contributions",
                (source, trials.start, trials.stop),
            ).fetchall()
        return [(_read_list(brought), int(seed), trial) for brought, seed, trial in rows]

    def rows(self, run: Run) -> list[tuple[int, str, int, int, float, float]]:
        """Return a finished run's history by round and client, with the columns of History.rows."""
        with self._explain("read"):
            found = self._connection.execute(
                'SELECT round, client, h.samples, h."unique", loss, accuracy, history_digest'
                " FROM history AS h JOIN runs ON runs.id = h.run WHERE key = ?"
                " ORDER BY round, client",
                (run.key,),
            ).fetchall()
        rows = [row[:-1] for row in found]
        if found and _digest(*sorted(rows, key=_place)) != found[0][-1]:
            raise self._damaged(f"the history of run {run.key[:12]} is not as it was written")
        return [
            (*row[:4], *(math.nan if number is None else number for number in row[4:]))
            for row in rows
        ]

    def _prepare(self) -> None:
        """Make the tables in a new file; refuse a file that is not ours or is damaged."""
        self._connection.execute("PRAGMA synchronous = EXTRA")
        kind = {"application": APPLICATION, "version": VERSION}
        if not sqlite.claim(self._connection, self.path, **kind, schema=SCHEMA.split(";")[:-1]):
            report = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if report != "ok":
                raise self._damaged(report)

    @contextlib.contextmanager
    def _explain(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into a sentence with the remedy."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            # The low byte is the kind of error, the rest its details.
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            if code == sqlite3.SQLITE_NOTADB:
                sentence = f"{self.path} is not a file of finished runs; name another file"
                raise InputError(sentence) from None
            if code == sqlite3.SQLITE_CORRUPT:
                raise self._damaged(str(error)) from None
            if what != "write":
                raise InputError(f"cannot {what} {self.path}: {error}") from None
            raise FedaccordError(
                f"cannot write {self.path}: {error}; {self._remedy(code)}"
            ) from None

    def _remedy(self, code: int) -> str:
        remedy = {
            sqlite3.SQLITE_FULL: "free some space",
            sqlite3.SQLITE_IOERR: "see that the disk has space and is healthy",
            sqlite3.SQLITE_READONLY: "make the file writable",
            sqlite3.SQLITE_CANTOPEN: "make its folder writable",
            sqlite3.SQLITE_BUSY: "end the other process that holds the file",
        }.get(code, "see to the file")
        runs = "run in it is" if self._safe_runs == 1 else "runs in it are"
        return f"the {self._safe_runs} {runs} safe: {remedy}, and run the same command again"

    def _damaged(self, detail: str) -> InputError:
        detail = " ".join(detail.split())
        return InputError(
            f"{self.path} is damaged ({detail}): put back a copy of it, or move it away and start "
            "again"
        )


@cache
def package_versions() -> str:
    """Name the versions of the packages that decide a run's result, and the native block's."""
    import torch

    from fedaccord import __version__
    from fedaccord.federation.models import fused as native

    block = native.source_digest(native.FOLDER)[:8] if native.available() else "none"
    return (
        f"fedaccord {__version__}, torch {torch.__version__}, numpy {np.__version__}, "
        f"native block {block}"
    )


def _version_of(algorithm: Mapping[str, Any]) -> int:
    # A user's own algorithm may test goals on drawn points under any name.
    own, draws = "code" in algorithm, algorithm.get("goal_points") is not None
    return RESULTS if own or draws else UNCHANGED


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(*values: object) -> str:
    return hashlib.sha256("\n".join(map(str, values)).encode()).hexdigest()


def _place(row: tuple[Any, ...]) -> tuple[int, str]:
    return row[0], row[1]


def _write_list(values: Sequence[float]) -> str:
    # Python writes floats so that they read back as the very same; JSON has no NaN.
    return _canonical([None if value != value else value for value in values])


def _read_list(text: str) -> tuple[Any, ...]:
    return tuple(math.nan if value is None else value for value in json.loads(text))
