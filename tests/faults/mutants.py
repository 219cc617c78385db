"""Files of every format with a fault in them, and the commands that read them.

A mutant differs from a sound file in a byte, a line, a number, a value, an array or a row. No
command may answer one with a traceback, for longer than half a minute or with gigabytes.
"""

import io
import json
import pickle
import random
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faults.forked import MEMORY, Ended, Forked
from scipy import sparse

from fedaccord.cli import app

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
AUDIT = "audit sites.toml --workers 1 --results runs.sqlite"
# Values that have no place in most fields. None asks for hours of honest work.
NUMBERS = (
    *(
        "nan",
        "inf",
        "-inf",
        "-1",
        "0",
        "-0.0",
        "1e-320",
        "1e400",
        "0x10",
        "1/3",
        "1_0",
        "١٢",
        "1,5",
    ),
    *(
        "",
        "x",
        "true",
        "null",
        '"',
        "[]",
        "{}",
        "'",
        "\\",
        "=1+1",
        "1 %",
        "None",
        "9" * 40,
        "1e308",
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, 5e-324, 10**30, float("nan"), float("inf"), "", "x", "\ud800"),
    *([], {}, [[]], [None], {"a": 1}, "1/3", "nan", "../../etc/passwd", "=cmd()", "\0", [1, [2]]),
)
# Training asks for as many rounds as it is told: these numbers are small.
SMALL = tuple(n for n in NUMBERS if n not in ("9" * 40, "1e308", "1e400", "0x10", "1_0"))
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?")

Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Reader:
    """A file, and a command that reads it.

    kind: what the file is.
    file: its name among the inputs.
    command: without the program.
    ways: how its mutants are made.
    """

    kind: str
    file: str
    command: str
    ways: tuple[Mutate, ...]


class Trap:
    """What touches a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("sprung"),)


# Bytes and lines, of any format.


def flip(content: bytes, ours: random.Random) -> bytes:
    """Change some bytes."""
    changed = bytearray(content)
    for _ in range(ours.choice((1, 1, 2, 8))):
        changed[ours.randrange(len(changed))] ^= 1 << ours.randrange(8)
    return bytes(changed)


def cut(content: bytes, ours: random.Random) -> bytes:
    """Cut off the end, or take out a piece."""
    first, second = sorted(ours.randrange(len(content)) for _ in range(2))
    return content[:first] if ours.random() < 0.5 else content[:first] + content[second:]


def insert(content: bytes, ours: random.Random) -> bytes:
    """Put in bytes from elsewhere: noise, a byte order mark, or a piece of the file itself."""
    place = ours.randrange(len(content))
    start = ours.randrange(len(content))
    new = ours.choice(
        (ours.randbytes(9), b"\0", b"\xef\xbb\xbf", b"\xff\xfe", content[start : start + 200])
    )
    return content[:place] + new + content[place:]


def recode(content: bytes, ours: random.Random) -> bytes:
    """Write the text otherwise, as editors and spreadsheets do."""
    text = content.decode("utf-8", "replace")
    return ours.choice(
        (
            text.encode("utf-16"),
            text.encode("utf-8-sig"),
            text.replace("\n", "\r\n").encode(),
            text.replace("\n", "\r").encode(),
            text.replace(",", ";").encode(),
            text.replace(",", "\t").encode(),
            text.upper().encode(),
        )
    )


def change_lines(content: bytes, ours: random.Random) -> bytes:
    """Lose a line, write it twice, or swap it with another."""
    lines = content.splitlines(keepends=True)
    first, second = ours.randrange(len(lines)), ours.randrange(len(lines))
    which = ours.randrange(3)
    if which == 0:
        del lines[first]
    elif which == 1:
        lines.insert(second, lines[first])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def change_number(content: bytes, ours: random.Random, among: tuple[str, ...] = NUMBERS) -> bytes:
    """Put something else where a number is."""
    text = content.decode("utf-8", "replace")
    if not (places := list(NUMBER.finditer(text))):
        return flip(content, ours)
    place = ours.choice(places)
    return (text[: place.start()] + ours.choice(among) + text[place.end() :]).encode()


def scale_number(content: bytes, ours: random.Random) -> bytes:
    """Make a number many times as large or as small: often a sound file, of a hard problem."""
    text = content.decode("utf-8", "replace")
    place = ours.choice(list(NUMBER.finditer(text)))
    new = float(place[0]) * 10.0 ** ours.choice((-9, -4, -2, -1, 1, 2, 3, 6, 12))
    return f"{text[: place.start()]}{new!r}{text[place.end() :]}".encode()


def change_setting(content: bytes, ours: random.Random) -> bytes:
    """Put something else where a number of a config is, but nothing that takes long."""
    return change_number(content, ours, SMALL)


def change_field(content: bytes, ours: random.Random) -> bytes:
    """Put something else into a cell of a table."""
    lines = content.decode().splitlines()
    n = ours.randrange(len(lines))
    cells = lines[n].split(",")
    cells[ours.randrange(len(cells))] = ours.choice((*NUMBERS, "a" * 5000, "\u202e", "<b>", "a\0b"))
    lines[n] = ",".join(cells)
    return "\n".join(lines).encode()


# Formats with a structure.


def change_value(content: bytes, ours: random.Random) -> bytes:
    """Replace or remove a value anywhere in a JSON document."""
    data = json.loads(content)
    places = list(_places(data))
    holder, key = ours.choice(places)
    if ours.random() < 0.25:
        del holder[key]
    else:
        holder[key] = ours.choice(VALUES)
    return json.dumps(data).encode()


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in entries:
        yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


def change_array(content: bytes, ours: random.Random) -> bytes:
    """Change an array of an npz file: its values, type or shape, or leave it out."""
    with np.load(io.BytesIO(content)) as file:
        arrays: dict[str, Any] = dict(file)
    name = ours.choice(sorted(arrays))
    array = arrays[name]
    numeric = array.dtype.kind in "fiub"
    choices: list[Callable[[], Any]] = [
        lambda: array[:0] if array.ndim else array.reshape(1, 1),
        lambda: array[None],
        lambda: np.array(None, dtype=object),
        lambda: np.array([Trap()], dtype=object),
        lambda: array.astype("U20"),
        lambda: np.array([], dtype="M8[s]"),
        lambda: np.zeros((0,) * 32),
    ]
    if numeric:
        choices += [
            lambda: np.full(array.shape, np.nan),
            lambda: np.full(array.shape, np.inf),
            lambda: np.full(array.shape, -1),
            lambda: array.astype(complex),
            lambda: array.astype(bool),
            lambda: np.full(array.shape, 2**63, dtype=np.uint64),
            lambda: array.astype(">f2"),
            lambda: array.T[..., ::-1],
        ]
    if ours.random() < 0.1:
        del arrays[name]
    else:
        with np.errstate(all="ignore"):
            arrays[name] = ours.choice(choices)()
    made = io.BytesIO()
    np.savez(made, **{ours.choice((name, name, "x/../y")) if n == name else n: a
                      for n, a in arrays.items()})  # fmt: skip
    return made.getvalue()


def swell(content: bytes, ours: random.Random) -> bytes:
    """Make an archive that unpacks to gigabytes, or an array whose header says that it does."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        chosen = ours.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            if name == chosen and name.endswith(".npy") and ours.random() < 0.5:
                header = io.BytesIO()
                what = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
                np.lib.format.write_array_header_1_0(header, what)
                data = header.getvalue() + b"\0" * 64
            elif name == chosen:
                data += b"\0" * (64 << 20)
            new.writestr(name, data)
    whole = bytearray(made.getvalue())
    # Claim 4 GiB for the last entry of the central directory, too.
    if ours.random() < 0.5:
        entry = whole.rindex(b"PK\x01\x02")
        whole[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    return bytes(whole)


def pickle_all(content: bytes, ours: random.Random) -> bytes:
    """Replace the file by a pickle."""
    return pickle.dumps(Trap(), protocol=ours.randrange(6))


def change_row(content: bytes, ours: random.Random) -> bytes:
    """Change a database as a program could that knows its tables."""
    path = Path("changed.sqlite")
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = [n for (n,) in connection.execute("SELECT name FROM sqlite_master")]
        table = ours.choice([t for t in tables if not t.startswith("sqlite_")])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column = ours.choice(columns)
        value = ours.choice(
            (None, "", "x", -1, b"\0\xff", "[1e999]", "[[]]", "null", 2**62, "9" * 99)
        )
        statement = ours.choice(
            (
                f'UPDATE {table} SET "{column}" = ?1',
                f'UPDATE {table} SET "{column}" = ?1',
                f'UPDATE {table} SET "{column}" = ?1',
                f"DELETE FROM {table}",
                f"DROP TABLE {table}",
                f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other',
                "PRAGMA user_version = 77",
                "PRAGMA application_id = 77",
            )
        )
        with suppress(sqlite3.Error):
            connection.execute(statement, (value,) if "?1" in statement else ())
    changed = path.read_bytes()
    path.unlink()
    return changed


# No command may take what these make.
REFUSED: tuple[Mutate, ...] = (swell, pickle_all)
BYTES: tuple[Mutate, ...] = (flip, cut, insert)
TEXT: tuple[Mutate, ...] = (*BYTES, recode, change_lines, change_number)
GAME: tuple[Mutate, ...] = (*BYTES, change_value, change_value, scale_number, scale_number)
TABLE: tuple[Mutate, ...] = (*TEXT, change_field, scale_number)
CONFIG: tuple[Mutate, ...] = (*BYTES, change_lines, change_setting, change_setting)
ARRAYS: tuple[Mutate, ...] = (*BYTES, change_array, change_array, swell, pickle_all)
STORE: tuple[Mutate, ...] = (*BYTES, change_row, change_row)

READERS = (
    *(
        Reader("game", f"{model}.json", f"{command} {model}.json", GAME)
        for model in ("hospitals", "measured")
        for command in ("solve", "share", "coalitions", "plan")
    ),
    *(
        Reader("game", f"{model}.json", f"solve {model}.json", GAME)
        for model in ("coverage", "discovery", "whole", "goals", "harm")
    ),
    Reader("game", "goals.json", "share goals.json", GAME),
    Reader("game", "harm.json", "coalitions harm.json", GAME),
    Reader("allocation", "shares.csv", "check hospitals.json shares.csv", TABLE),
    Reader("allocation", "cut.json", "check hospitals.json cut.json", GAME),
    Reader("allocation", "three.csv", "check goals.json three.csv", TABLE),
    Reader("allocation", "shares.xlsx", "check hospitals.json shares.xlsx", (*BYTES, swell)),
    Reader("pilots", "two_pilots.csv", "plan two_pilots.csv", TABLE),
    Reader("pilots", "two_pilots.csv", "coalitions two_pilots.csv", TABLE),
    Reader("pilots", "two_pilots.csv", "share two_pilots.csv", TABLE),
    Reader("histograms", "histograms.csv", "plan histograms.csv", TABLE),
    Reader("config", "sites.toml", "train sites.toml", CONFIG),
    Reader("config", "digits.toml", "train digits.toml --algorithm MW-FED", CONFIG),
    Reader("config", "sites.toml", AUDIT, CONFIG),
    Reader("data", "patients.csv", "train sites.toml", TABLE),
    Reader("npz", "points.npz", "train points.toml", ARRAYS),
    Reader("npz", "matrix.npz", "check matrix.json two.json", ARRAYS),
    Reader("npz", "scores.npz", "train digits.toml --algorithm FedAvg", ARRAYS),
    Reader("weights", "weights.npz", "train digits.toml --algorithm FedAvg", ARRAYS),
    Reader("sqlite", "runs.sqlite", AUDIT, STORE),
    Reader("sqlite", "runs.sqlite", "merge runs.sqlite --into whole.sqlite", STORE),
    Reader("sqlite", "part.sqlite", "merge part.sqlite runs.sqlite --into whole.sqlite", STORE),
    Reader("sqlite", "trials.sqlite", "merge trials.sqlite --into whole.sqlite", STORE),
)
KINDS = tuple(dict.fromkeys(reader.kind for reader in READERS))


def copy_inputs(folder: Path) -> None:
    """Put the inputs of the golden tests into a folder."""
    shutil.copytree(INPUTS, folder, dirs_exist_ok=True)


def prepare(folder: Path) -> None:
    """Put the sound files into the folder, which is the current one, and run each command once.

    What is imported and compiled now need not be again in every fork.
    """
    copy_inputs(folder)
    ours = np.random.default_rng(0)
    labels = np.arange(60) % 2
    np.savez("points.npz", x=ours.normal(size=(60, 3)), y=labels, site=np.repeat(["A", "B"], 30))
    (folder / "points.toml").write_text(
        (folder / "sites.toml").read_text().replace('"csv"', '"npz"').replace(
            'path = "patients.csv"\nlabel = "ill"\nsite = "hospital"\ncategories = ["kind"]',
            'path = "points.npz"',
        )
    )  # fmt: skip
    sparse.save_npz("matrix.npz", sparse.csr_array(np.eye(2)))
    game = {"model": "discovery", "requirements": [1, 1], "distributions": "matrix.npz"}
    (folder / "matrix.json").write_text(json.dumps(game))
    (folder / "two.json").write_text(json.dumps({"contributions": [1, 1]}))
    run_here("check matrix.json two.json")
    run_here("solve hospitals.json --save shares.xlsx")
    run_here(AUDIT)
    run_here(f"{AUDIT.replace('runs', 'more')} --part 1/2")
    shutil.move("more.part-1-of-2.sqlite", "part.sqlite")
    run_here("difficulty trials.toml --part 1/2 --cache cache")
    shutil.move(next(Path("cache").glob("*.sqlite")), "trials.sqlite")
    for command in dict.fromkeys(reader.command for reader in READERS):
        run_here(command)
        Path("whole.sqlite").unlink(missing_ok=True)


def run_here(command: str) -> None:
    """Run a command in this process; it must answer."""
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, command.split())
    assert done.exit_code in (0, 1), (command, done.output, done.exception)


def try_mutants(
    count: int, *, seed: int = 0, kinds: tuple[str, ...] = KINDS
) -> Iterator[tuple[Reader, int, Ended, list[str]]]:
    """Yield mutants with what came of them and what was wrong with that, kind by kind.

    The current folder is one that `prepare` has filled.

    count: how many of each kind.
    seed: of all mutants; with its number it makes each again.
    """
    for kind in kinds:
        readers = [reader for reader in READERS if reader.kind == kind]
        for n in range(count):
            reader, ours = readers[n % len(readers)], random.Random(f"{seed} {kind} {n}")
            path, whole = Path(reader.file), Path("whole.sqlite")
            sound = path.read_bytes()
            try:
                way = reader.ways[(n + n // len(readers)) % len(reader.ways)]
                path.write_bytes(way(sound, ours))
                ended = Forked(reader.command.split(), memory=MEMORY).wait()
                faults = ended.faults()
                if way in REFUSED and ended.code != 2:
                    faults.append("it was not refused")
                if Path("sprung").exists():
                    Path("sprung").unlink()
                    faults.append("it ran a pickle")
                if faults:
                    shutil.copy(path, f"fault-{kind}-{n}-{path.name}")
                yield reader, n, ended, [f"{way.__name__}: {fault}" for fault in faults]
            finally:
                path.write_bytes(sound)
                whole.unlink(missing_ok=True)


# Names of matrices that leave the folder of their game, or are no names.
ELSEWHERE = (
    *("../matrix.npz", "/etc/passwd", "inner/matrix.npz", "./matrix.npz", "..", "", "\\matrix.npz"),
    *("matrix.npz/../matrix.npz", "C:\\matrix.npz", "~/matrix.npz", "matrix.npz\0", "/dev/zero"),
)


def leave_folder() -> Iterator[tuple[str, list[str]]]:
    """Yield names of matrices with what was wrong with the command's answer."""
    game = json.loads(Path("matrix.json").read_text())
    Path("inner").mkdir(exist_ok=True)
    for place in ("inner", ".."):
        shutil.copy("matrix.npz", Path(place) / "matrix.npz")
    for name in ELSEWHERE:
        Path("elsewhere.json").write_text(json.dumps({**game, "distributions": name}))
        ended = Forked(["check", "elsewhere.json", "two.json"], memory=MEMORY).wait()
        yield name, ended.faults(codes=(2,))
