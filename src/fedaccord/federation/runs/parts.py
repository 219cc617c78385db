"""Work in parts, each made by another machine and kept in its own file.

A part makes the runs, or pieces of work, whose key falls to it. Every part makes whatever decides
which runs there are, such as pilots. A result needs all parts, so making one part ends with
`OnlyPart`; `merge_files` unites the files.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from fedaccord._io import sqlite
from fedaccord.errors import InputError, OnlyPart
from fedaccord.wording import count

# The parts whose work is in a file. A file gets this table with its first part. A label is a digest
# of the work that was divided, without the number of trials and levels.
TABLE = """
CREATE TABLE IF NOT EXISTS parts (
    label TEXT NOT NULL,
    part INTEGER NOT NULL,
    of INTEGER NOT NULL,
    versions TEXT NOT NULL,
    finished INTEGER NOT NULL,
    PRIMARY KEY (label, part, of)
) WITHOUT ROWID
"""
MOST = 100_000


@dataclass(frozen=True)
class Part:
    """One of several parts of work.

    number: which, from 1.
    of: how many parts there are.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        """Raise an InputError at a part that does not exist."""
        if not 1 <= self.number <= self.of <= MOST:
            raise InputError(
                f"a part must be a number from 1 to the number of parts, at most {MOST:,}; got "
                f"{self.number}/{self.of}"
            )

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read a part such as 3/10, or raise an InputError."""
        if not (found := re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())):
            raise InputError(f'a part must be I/N, such as 3/10; got "{text}"')
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        """Name the part in the middle of a sentence."""
        return f"{self.number} of {self.of}"

    def has(self, key: int) -> bool:
        """Return whether a run or a piece of work falls to this part."""
        return key % self.of == self.number - 1

    def name_file(self, whole: str | Path) -> Path:
        """Return the file of this part, next to the file of the whole."""
        path = Path(whole)
        return path.with_name(f"{path.stem}.part-{self.number}-of-{self.of}{path.suffix}")

    def end(self, path: Path | None, made: int) -> OnlyPart:
        """Return what is raised when the work of this part is finished."""
        ended = f"part {self} is finished: {count(made, 'run')} made"
        if path is None:
            return OnlyPart(ended)
        mark = f".part-{self.number}-of-{self.of}"
        files, whole = (str(path).replace(mark, m) for m in (f".part-*-of-{self.of}", ""))
        return OnlyPart(
            f"{ended} and stored in {path}. When all {self.of} parts are finished, unite them with "
            f"'fedaccord merge {files} --into {whole}', and give this command again without --part"
        )

    def note(self, connection: sqlite3.Connection, label: str, *, finished: bool) -> None:
        """Write into a file that the part's work has begun, or is finished.

        connection: to the file.
        label: a digest of the work that was divided.
        finished: whether it is.
        """
        from fedaccord.federation.runs.execute import package_versions

        row = (label, self.number, self.of, package_versions(), finished)
        with sqlite.transaction(connection):
            connection.execute(TABLE)
            connection.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?)", row)
