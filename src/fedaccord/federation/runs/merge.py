"""Unite the files of parts: every run once, whatever the order and however often."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedaccord._io import sqlite
from fedaccord.errors import InputError
from fedaccord.federation.runs import resumable, store
from fedaccord.federation.runs.parts import MOST

# The files that can be united: their layouts, and the tables of a new one.
LAYOUTS = {
    store.APPLICATION: (store.VERSION, store.SCHEMA.split(";")[:-1]),
    resumable.APPLICATION: (resumable.VERSION, []),
}
# Counts rows that name no part.
NO_PARTS = (
    "SELECT count(*) FROM parts WHERE typeof(part) != 'integer' OR typeof(of) != 'integer'"
    f" OR part < 1 OR part > of OR of > {MOST}"
)
# Where a file of pieces of work says what they depend on.
DESCRIBED = ("work", "description")


@dataclass(frozen=True)
class Merged:
    """What came of uniting files.

    runs: how many runs, or pieces of work, the whole has now.
    added: how many of them it did not have before.
    lacking: the parts that are missing or unfinished, such as "3 of 10".
    """

    runs: int
    added: int
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class _Content:
    """What a file holds, as far as it decides whether another file fits.

    path: the file.
    application: which of our layouts it has; 0 for none yet.
    labels: of the work that was divided.
    sources: the federations of its runs, or the descriptions of its pieces of work.
    versions: of the packages that made them.
    """

    path: Path
    application: int
    labels: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    versions: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path) -> _Content:
        """Look into a file, or raise an InputError where it is damaged or of another kind."""
        with _open(path) as connection:
            application = _one(connection, "PRAGMA application_id")
            if not application and not _tables(connection, "main"):
                return cls(path, 0)
            # A file of neither kind is refused as no file of runs.
            known = application if application in LAYOUTS else store.APPLICATION
            sqlite.claim(connection, path, application=known, version=LAYOUTS[known][0])
            if (report := _one(connection, "PRAGMA quick_check(1)")) != "ok":
                raise InputError(f"{path} is damaged ({report}): make this part again")
            if "parts" in _tables(connection, "main") and _one(connection, NO_PARTS):
                raise InputError(f"{path} is damaged (its table of parts): make this part again")
            runs = known == store.APPLICATION
            return cls(
                *(path, known),
                labels=_values(connection, "parts", "label"),
                sources=_values(connection, *(("runs", "source") if runs else DESCRIBED)),
                versions=_values(connection, "runs" if runs else "parts", "versions"),
            )

    def check_fits(self, other: _Content) -> None:
        """Raise an InputError if the two files are not parts of the same work."""
        if self.application != other.application:
            raise InputError(
                f"{self.path} and {other.path} hold different kinds of work: merge the runs of "
                "audits and the trials of difficulty into files of their own"
            )
        mine, theirs = (self.labels, other.labels)
        if not (mine and theirs):
            mine, theirs = (self.sources, other.sources)
        if mine and theirs and mine.isdisjoint(theirs):
            raise InputError(
                f"{self.path} and {other.path} are not parts of the same work: their data, agents, "
                "algorithms, plans or seeds differ; merge only parts that the same command made"
            )
        if self.versions and other.versions and len(self.versions | other.versions) > 1:
            one, two = (", and ".join(sorted(c.versions)) for c in (self, other))
            raise InputError(
                f"{self.path} was made with {one}, but {other.path} with {two}: make all parts "
                "with the same versions, or merge into a new file"
            )


def merge_files(parts: Sequence[str | Path], whole: str | Path) -> Merged:
    """Add the runs of the parts to a file, made where there is none.

    All files are checked before anything is written. Each part is then added in one transaction, so
    that a process that is killed leaves a sound file, and the same call goes on.

    parts: the files; the whole itself is passed over.
    whole: the file that has the runs of all of them in the end.
    """
    whole = Path(whole)
    paths = [Path(part) for part in parts if Path(part).resolve() != whole.resolve()]
    for path in paths:
        if not path.is_file():
            raise InputError(f"there is no file {path}; make this part first")
    found = [_Content.read(path) for path in (*paths, *([whole] if whole.exists() else []))]
    filled = [content for content in found if content.application]
    if not filled:
        raise InputError("the parts hold no runs yet; make them first")
    for n, content in enumerate(filled):
        for other in filled[:n]:
            other.check_fits(content)
    version, schema = LAYOUTS[filled[0].application]
    with _open(whole) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        kind = {"application": filled[0].application, "version": version}
        sqlite.claim(connection, whole, **kind, schema=schema)
        before = _count(connection)
        for content in filled:
            if content.path != whole:
                _add(connection, content.path, whole)
        labels = frozenset[str]().union(*(content.labels for content in filled))
        after = _count(connection)
        return Merged(after, after - before, _list_lacking(connection, labels))


def merge_folders(parts: Sequence[str | Path], whole: str | Path) -> Merged:
    """Unite the files of the same name in the folders of parts, as `merge_files` does.

    parts: the folders.
    whole: the folder that has the work of all of them in the end; made where there is none.
    """
    whole = Path(whole)
    for part in map(Path, parts):
        if not part.is_dir():
            raise InputError(f"there is no folder {part}; make this part first")
    files: dict[str, list[Path]] = {}
    for path in _list_files(*parts):
        # A part that was killed as it began leaves an empty file.
        if _Content.read(path).application:
            files.setdefault(path.name, []).append(path)
    if not files:
        raise InputError("the parts hold no runs yet; make them first")
    whole.mkdir(parents=True, exist_ok=True)
    found = [merge_files(paths, whole / name) for name, paths in sorted(files.items())]
    return Merged(
        runs=sum(one.runs for one in found),
        added=sum(one.added for one in found),
        lacking=tuple(dict.fromkeys(part for one in found for part in one.lacking)),
    )


def count_work(folder: str | Path) -> int:
    """Count the runs and pieces of work that the files of a folder keep."""
    total = 0
    for path in _list_files(folder):
        with _open(path) as connection:
            total += _count(connection)
    return total


def _list_files(*folders: str | Path) -> list[Path]:
    return [path for folder in folders for path in sorted(Path(folder).glob("*.sqlite"))]


def _add(connection: sqlite3.Connection, path: Path, whole: Path) -> None:
    """Add what a file has to the open one."""
    connection.execute("ATTACH ? AS part", (str(path),))
    try:
        with sqlite.transaction(connection):
            there = _tables(connection, "main")
            theirs = _tables(connection, "part")
            for name, statement in theirs.items():
                if name not in there:
                    connection.execute(statement)
            # Runs first: the rows of other tables go by their new numbers.
            for name in sorted(theirs, key=lambda name: name != "runs"):
                _refuse_other_results(connection, name, path, whole)
                _copy(connection, name)
    finally:
        connection.execute("DETACH part")


def _copy(connection: sqlite3.Connection, table: str) -> None:
    """Copy the rows that are not there yet; of parts all, since they may be finished by now."""
    first, *rest = _columns(connection, table)
    columns = ", ".join(f'"{name}"' for name in (first, *rest))
    if table == "runs":
        columns = columns.removeprefix('"id", ')
        rows = f"SELECT {columns} FROM part.runs"
    elif first == "run":
        values = ", ".join(f'x."{name}"' for name in rest)
        rows = (
            f"SELECT ours.id, {values} FROM part.{table} AS x JOIN part.runs AS theirs"
            " ON theirs.id = x.run JOIN main.runs AS ours ON ours.key = theirs.key"
        )
    else:
        rows = f"SELECT {columns} FROM part.{table}"
    how = "REPLACE" if table == "parts" else "IGNORE"
    connection.execute(f"INSERT OR {how} INTO main.{table} ({columns}) {rows}")


def _refuse_other_results(
    connection: sqlite3.Connection, table: str, path: Path, whole: Path
) -> None:
    """Raise an InputError where the same run has other results in the two files."""
    columns = _columns(connection, table)
    identity = {"key": "digest", "piece": "result", "name": "description"}
    for key, result in identity.items():
        if {key, result} <= set(columns):
            query = (
                f"SELECT count(*) FROM part.{table} AS theirs JOIN main.{table} AS ours"
                f" USING ({key}) WHERE theirs.{result} != ours.{result}"
            )
            if _one(connection, query):
                raise InputError(
                    f"{path} has other results than {whole} for the same runs: their machines "
                    "compute differently; make all parts on machines of the same kind"
                )


def _list_lacking(connection: sqlite3.Connection, labels: frozenset[str]) -> tuple[str, ...]:
    """List the parts of the work that are not in the file, or not finished."""
    if "parts" not in _tables(connection, "main"):
        return ()
    rows = connection.execute("SELECT label, part, of, finished FROM parts").fetchall()
    finished = {(label, of, part) for label, part, of, done in rows if done}
    lacking = {
        (of, part)
        for label, of in {(label, of) for label, _, of, _ in rows if label in labels}
        for part in range(1, of + 1)
        if (label, of, part) not in finished
    }
    return tuple(f"{part} of {of}" for of, part in sorted(lacking))


def _count(connection: sqlite3.Connection) -> int:
    """Count the runs or pieces of work."""
    tables = _tables(connection, "main")
    counted = ["runs"] if "runs" in tables else [t for t in tables if t not in ("work", "parts")]
    return sum(_one(connection, f"SELECT count(*) FROM main.{table}") for table in counted)


def _tables(connection: sqlite3.Connection, database: str) -> dict[str, str]:
    """Return the statements that made the tables, by name."""
    query = f"SELECT name, sql FROM {database}.sqlite_master WHERE type = 'table'"
    # SQLite has tables of its own.
    return {n: sql for n, sql in connection.execute(query) if not n.startswith("sqlite_")}


def _values(connection: sqlite3.Connection, table: str, column: str) -> frozenset[str]:
    """Return the different values of a column, none where there is no such table."""
    if table not in _tables(connection, "main"):
        return frozenset()
    found = connection.execute(f"SELECT DISTINCT {column} FROM {table}")
    return frozenset(str(value) for (value,) in found)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for _, name, *_ in connection.execute(f"PRAGMA part.table_info({table})")]


def _one(connection: sqlite3.Connection, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


@contextlib.contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(sqlite.connect(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise InputError(
            f"cannot merge {path} ({error}): check that all files hold finished runs, and that the "
            "disk has space"
        ) from None
