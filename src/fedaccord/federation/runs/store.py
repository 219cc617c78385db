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
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._io import sqlite
from fedaccord.errors import FedaccordError, InputError, OnlyPart
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.defection.tactic import Tactic
from fedaccord.federation.history import History
from fedaccord.federation.training.rng import derive_seed

if TYPE_CHECKING:
    from fedaccord.federation.runs.parts import Part

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
COLUMNS = ("id", "key", *IDENTITY, *RESULT, "digest", "seconds", "versions", "finished")

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

# What was found on scored points, by the key of the points. A file gets this table with its first
# such run, so that files without one are as they always were.
SCORES = """
CREATE TABLE IF NOT EXISTS scores (
    run INTEGER NOT NULL REFERENCES runs (id),
    scored TEXT NOT NULL,
    accuracies TEXT NOT NULL,
    satisfied TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (run, scored)
) WITHOUT ROWID
"""


# How clients fared that went on alone, by what they were judged on and who they are.
WENT_ON = """
CREATE TABLE IF NOT EXISTS went_on (
    run INTEGER NOT NULL REFERENCES runs (id),
    judged TEXT NOT NULL,
    given TEXT NOT NULL,
    kept TEXT NOT NULL,
    outside TEXT NOT NULL,
    keeping TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (run, judged)
) WITHOUT ROWID
"""
# What came of each goal, where clients have goals in other measures than accuracy: on validation
# points, and on scored ones by their key.
GOALS = """
CREATE TABLE IF NOT EXISTS goals (
    run INTEGER NOT NULL REFERENCES runs (id),
    judged TEXT NOT NULL,
    "values" TEXT NOT NULL,
    deviations TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (run, judged)
) WITHOUT ROWID
"""
VALIDATION = "validation"
# The columns of WENT_ON, which are fields of an outcome.
GOING_ON = ("given", "kept", "outside", "keeping")
# Of each of these tables: its statement, what names its rows, its columns, and what is said of a
# row that was changed.
FURTHER: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "scores": (
        *(SCORES, "scored", ("accuracies", "satisfied")),
        "the scores of run {} are not as they were written",
    ),
    "went_on": (WENT_ON, "judged", GOING_ON, "what run {} led to is not as it was written"),
    "goals": (
        *(GOALS, "judged", ("values", "deviations")),
        "the goals of run {} are not as they were written",
    ),
}


@dataclass(frozen=True)
class Run:
    """A run of training, known by what goes into it.

    source: the fingerprint of the federation, or of what deals one to each trial.
    algorithm: with its settings.
    contributions: how many of its points each client brings.
    base_seed: of the whole audit.
    trial: which draw of clients and of chance.
    scored: which further points its final model is judged on, a key of `Scored`; "" for none. It
        is not a part of the run's own key, since training does not depend on it.
    tactic: what some clients do beyond giving less; None for nothing.
    goes_on: which clients go on alone when training has ended. Training does not depend on it.
    """

    source: str
    algorithm: Algorithm
    contributions: tuple[int, ...]
    base_seed: int
    trial: int
    scored: str = ""
    tactic: Tactic | None = None
    goes_on: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Name the run in the middle of a sentence."""
        brought = ", ".join(map(str, self.contributions))
        return f"{self.algorithm.name} in trial {self.trial} with contributions {brought}"

    @property
    def content(self) -> str:
        """What clients contribute, as it is stored: the numbers, and a tactic if there is one."""
        if self.tactic is None:
            return _canonical(self.contributions)
        return _canonical({"given": self.contributions, "tactic": self.tactic.to_dict()})

    @property
    def judged(self) -> str:
        """What clients that go on are judged on, and who they are."""
        return f"{self.scored or 'validation'}: {_canonical(self.goes_on)}"

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
            self.content,
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
    scored: the accuracies on the scored points; empty where the run was not to be judged on any.
    scored_satisfied: whether that is what the client wants.
    given, kept: the accuracies of clients that went on alone, with the samples that they gave and
        with all that they have; NaN of the others, empty where nobody went on.
    outside, keeping: who is satisfied if each of these takes the best model that it could have
        without and with the samples that it kept.
    values: of each goal, client by client; empty where all want an accuracy.
    deviations: by how much each value varies with the draw of the points.
    scored_values: the values on the scored points.
    """

    accuracies: tuple[float, ...]
    satisfied: tuple[bool, ...]
    first_passage: tuple[int, ...]
    samples: tuple[int, ...]
    unique: tuple[int, ...]
    diverged: bool
    seconds: float
    versions: str
    scored: tuple[float, ...] = ()
    scored_satisfied: tuple[bool, ...] = ()
    given: tuple[float, ...] = ()
    kept: tuple[float, ...] = ()
    outside: tuple[bool, ...] = ()
    keeping: tuple[bool, ...] = ()
    values: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    scored_values: tuple[float, ...] = ()

    @classmethod
    def of(cls, history: History, versions: str) -> Outcome:
        """Sum up a history."""
        scored, reached = history.scored, history.scored_satisfied
        return cls(
            accuracies=tuple(history.final.tolist()),
            satisfied=tuple(history.satisfied.tolist()),
            first_passage=tuple(history.first_passage.tolist()),
            samples=tuple(history.samples.sum(axis=0).tolist()),
            unique=tuple(history.unique[-1].tolist()),
            diverged=bool(history.diverged),
            seconds=float(history.seconds),
            versions=versions,
            scored=() if scored is None else tuple(scored.tolist()),
            scored_satisfied=() if reached is None else tuple(reached.tolist()),
            **_sum_up_going_on(history),
            **_sum_up_goals(history),
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
    part: the part of an audit whose runs it is for; None for all runs.
    """

    def __init__(self, path: str | Path | None = None, *, part: Part | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.part = part
        # Counted here, for when the file can no longer be asked.
        self._safe_runs = 0
        # How many runs were added since it was opened.
        self.added = 0
        if self.path is not None and not self.path.parent.is_dir():
            raise InputError(f"cannot write {self.path}: there is no folder {self.path.parent}")
        with self._explain("open"):
            self._connection = sqlite.connect(self.path)
        with contextlib.ExitStack() as undo:
            undo.callback(self._connection.close)
            with self._explain("read"):
                self._prepare()
            self._safe_runs = len(self)
            undo.pop_all()

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
        """Return what came of a run, None where it has not been finished.

        A run that is to be judged on scored points has not been finished without that.
        """
        if not (found := self._select("key = ?", run.key)):
            return None
        (row,) = found
        scores = self._get_further("scores", run, row["id"], run.scored) if run.scored else ((), ())
        went_on = self._get_further("went_on", run, row["id"], run.judged) if run.goes_on else ()
        if scores is None or went_on is None:
            return None
        values, deviations = self._get_further("goals", run, row["id"], VALIDATION) or ((), ())
        judged = self._get_further("goals", run, row["id"], run.scored) if run.scored else None
        *lists, diverged = RESULT
        return Outcome(
            **{name: _read_list(row[name]) for name in lists},
            diverged=bool(row[diverged]),
            seconds=row["seconds"],
            versions=row["versions"],
            scored=scores[0],
            scored_satisfied=scores[1],
            **dict(zip(GOING_ON, went_on, strict=False)),
            values=values,
            deviations=deviations,
            scored_values=judged[0] if judged else (),
        )

    def _select(self, condition: str, *values: object) -> list[dict[str, Any]]:
        """Return runs by their columns, in the order of trials, or name one that was changed."""
        names = ", ".join(f'runs."{column}"' for column in COLUMNS)
        with self._explain("read"):
            cursor = self._connection.execute(
                f"SELECT {names} FROM runs WHERE {condition} ORDER BY trial, id", values
            )
            found = [dict(zip(COLUMNS, row, strict=True)) for row in cursor]
        for row in found:
            key, identity = row["key"], [row[name] for name in IDENTITY]
            result = [row[name] for name in RESULT]
            sound = (
                any(key == _digest(n, *identity) for n in range(UNCHANGED, RESULTS + 1))
                and row["digest"] == _digest(key, *result)
                and isinstance(row["seconds"], float)
                and isinstance(row["versions"], str)
                and isinstance(row["finished"], str)
            )
            if not sound:
                raise self._describe_damage(f"run {str(key)[:12]} is not as it was written")
        return found

    def _get_further(
        self, table: str, run: Run, number: int, judged: str
    ) -> list[tuple[Any, ...]] | None:
        """Return the row that a further table has of a run, None where it has none."""
        _, key, columns, fault = FURTHER[table]
        names = ", ".join(f'"{name}"' for name in (*columns, "digest"))
        with self._explain("read"):
            if not self._has_table(table):
                return None
            found = self._connection.execute(
                f"SELECT {names} FROM {table} WHERE run = ? AND {key} = ?", (number, judged)
            ).fetchone()
        if found is None:
            return None
        *lists, digest = found
        if digest != _digest(run.key, judged, *lists):
            raise self._describe_damage(fault.format(run.key[:12]))
        return [*map(_read_list, lists)]

    def _has_table(self, name: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._connection.execute(query, (name,)).fetchone() is not None

    def put(self, run: Run, outcome: Outcome, history: History) -> Outcome:
        """Commit a finished run; return what the file has of it.

        Where another process was first, its runs stand: the same, for they had the same seed. A
        run that was made again for its scores replaces one that came out otherwise, with other
        versions of the packages: what is kept of a run is all of one model.
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
            "contributions": run.content,
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
            if run.scored or run.goes_on:
                self._remove_other(run, str(row["digest"]))
            cursor = self._connection.execute(
                f"INSERT OR IGNORE INTO runs ({columns}) VALUES ({values})", row
            )
            if new := cursor.rowcount > 0:
                self._connection.executemany(
                    "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)",
                    ((cursor.lastrowid, *entry) for entry in rows),
                )
            if run.scored:
                found = (outcome.scored, outcome.scored_satisfied)
                self._put_further("scores", run, run.scored, *found)
            if run.goes_on:
                went_on = [getattr(outcome, name) for name in GOING_ON]
                self._put_further("went_on", run, run.judged, *went_on)
            if outcome.values:
                self._put_further("goals", run, VALIDATION, outcome.values, outcome.deviations)
            if outcome.scored_values and run.scored:
                self._put_further("goals", run, run.scored, outcome.scored_values, ())
        self._safe_runs += new
        self.added += new
        return outcome if new else self.get(run) or outcome

    def _remove_other(self, run: Run, digest: str) -> None:
        """Take out a run that came out otherwise than it did now."""
        find = "SELECT id FROM runs WHERE key = ? AND digest != ?"
        for (number,) in self._connection.execute(find, (run.key, digest)).fetchall():
            there = [name for name in FURTHER if self._has_table(name)]
            for table, column in (*((t, "run") for t in ("history", *there)), ("runs", "id")):
                self._connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
            self._safe_runs -= 1

    def _put_further(self, table: str, run: Run, judged: str, *lists: Sequence[float]) -> None:
        """Write the row that a further table has of a run."""
        row = (judged, *(found := [*map(_write_list, lists)]), _digest(run.key, judged, *found))
        self._connection.execute(FURTHER[table][0])
        self._connection.execute(
            f"INSERT OR IGNORE INTO {table} SELECT id{', ?' * len(row)} FROM runs WHERE key = ?",
            (*row, run.key),
        )

    def note_part(self, *work: object, finished: bool) -> None:
        """Write that the part has begun, or is finished.

        work: all that its runs depend on, apart from the number of trials and levels.
        finished: whether it is.
        """
        assert self.part is not None
        with self._explain("write"):
            self.part.note(self._connection, _digest(*work), finished=finished)

    def end_part(self) -> OnlyPart:
        """Return what is raised when the part's runs are made."""
        assert self.part is not None
        return self.part.end(self.path, self.added)

    def kept(self, source: str, *, trials: range) -> list[tuple[tuple[int, ...], int, int]]:
        """List runs of a source: the contributions, base seed and trial of each, by trial.

        source: the fingerprint.
        trials: which to return.
        """
        with self._explain("read"):
            found = self._connection.execute(
                "SELECT DISTINCT contributions, base_seed, trial FROM runs"
                # What is no list has a tactic, and tells nothing of honest training.
                " WHERE source = ? AND trial >= ? AND trial < ? AND contributions LIKE '[%'"
                " ORDER BY trial, base_seed, contributions",
                (source, trials.start, trials.stop),
            ).fetchall()
        try:
            return [(_read_list(brought), int(seed), trial) for brought, seed, trial in found]
        except (TypeError, ValueError):
            raise self._describe_damage("a run is not as it was written") from None

    def counted(self, trials: range) -> list[dict[str, Any]]:
        """List what is kept of runs without their histories, as columns by name, by trial.

        Runs with a tactic are left out, since they tell nothing of agents that merely give less.

        trials: which to return.
        """
        condition = "trial >= ? AND trial < ? AND contributions LIKE '[%'"
        found = self._select(condition, trials.start, trials.stop)
        lists = ("contributions", *RESULT[:-1])
        return [{**row, **{name: _read_list(row[name]) for name in lists}} for row in found]

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
            raise self._describe_damage(
                f"the history of run {run.key[:12]} is not as it was written"
            )
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
                raise self._describe_damage(report)

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
            # A plain error is a table or a column that is not there.
            if code == sqlite3.SQLITE_CORRUPT or (what, code) == ("read", sqlite3.SQLITE_ERROR):
                raise self._describe_damage(str(error)) from None
            # A new file is written when it is opened.
            if what != "write" and code != sqlite3.SQLITE_FULL:
                raise InputError(
                    f"cannot {what} {self.path}: {error}; name another file, or see that this one "
                    "can be read and written"
                ) from None
            raise FedaccordError(
                f"cannot write {self.path}: {error}; {self._remedy(code)}"
            ) from None

    def _remedy(self, code: int) -> str:
        remedy = {
            sqlite3.SQLITE_FULL: "free some space",
            sqlite3.SQLITE_IOERR: "check that the disk has space and is healthy",
            sqlite3.SQLITE_READONLY: "make the file writable",
            sqlite3.SQLITE_CANTOPEN: "make its folder writable",
            sqlite3.SQLITE_BUSY: "end the other process that holds the file",
        }.get(code, "see to the file")
        runs = "run in it is" if self._safe_runs == 1 else "runs in it are"
        return f"the {self._safe_runs} {runs} safe: {remedy}, and run the same command again"

    def _describe_damage(self, detail: str) -> InputError:
        detail = " ".join(detail.split())
        return InputError(
            f"{self.path} is damaged ({detail}): put back a copy of it, or move it away and start "
            "again"
        )


def _sum_up_going_on(history: History) -> dict[str, tuple[Any, ...]]:
    """Return the fields of an outcome that tell of clients that went on alone."""
    went = history.went_on
    if went is None:
        return {}
    scored = history.scored_satisfied
    received = history.satisfied if scored is None else scored
    # A comparison with NaN is false: who did not go on has what it received.
    outside = received | (went.given >= history.requirements)
    keeping = outside | (went.kept >= history.requirements)
    found = (went.given, went.kept, outside, keeping)
    return {name: tuple(x.tolist()) for name, x in zip(GOING_ON, found, strict=True)}


def _sum_up_goals(history: History) -> dict[str, tuple[Any, ...]]:
    """Return the fields of an outcome that tell of goals."""
    goals = history.goals
    if goals is None:
        return {}
    found = {"values": goals.values, "deviations": goals.deviations, "scored_values": goals.scored}
    return {name: tuple(x.tolist()) for name, x in found.items() if x is not None}


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
