"""Work that is made in parts on several machines, and united."""

import json
import random
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import assert_refused, run, write
from federation.tiny import tiny_audit
from processes import make_parts_in_spite_of_kills, merge_in_any_order

from fedaccord.errors import InputError
from fedaccord.federation.runs.merge import merge_files
from fedaccord.federation.runs.parts import Part
from fedaccord.federation.runs.store import RunStore

TRIALS = """
[difficulty]
method = "trials"
points = 30
cap = 4
look_every = 2
trials = 12
"""
FRONTIER = """
[algorithms.FedAvg]
[algorithms.PLEDGED]
passes = 2
rounds = 8
plan = "all"
[frontier]
trials = 2
levels = [1, 0.25]
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in the current folder, where results go."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "tiny.toml", tiny_audit(trials=4))


def result_of(*command: Any) -> Any:
    """Return a command's result, times aside."""
    done = run(*command, "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    return {key: found[key] for key in found if key not in ("seconds", "run_seconds")}


def make(command: Sequence[Any], part: str) -> str:
    done = run(*command, "--part", part)
    assert (done.code, done.stdout) == (0, ""), done.stderr
    return done.stderr


def count_runs(path: Path | str) -> int:
    with closing(sqlite3.connect(path)) as store:
        return int(store.execute("SELECT count(*) FROM runs").fetchone()[0])


@pytest.mark.parametrize(
    "text", ["", "3", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "one/two", "1/1e3"]
)
def test_a_part_that_does_not_exist_is_refused(text: str, tiny: Path) -> None:
    assert_refused(run("audit", tiny, "--part", text), "part")
    assert not list(Path().glob("*.sqlite"))


@pytest.mark.parametrize("of", [1, 2, 7, 64])
def test_every_key_falls_to_exactly_one_part(of: int) -> None:
    parts = [Part(number, of) for number in range(1, of + 1)]
    ours = random.Random(0)
    for key in (ours.getrandbits(256) for _ in range(200)):
        assert sum(part.has(key) for part in parts) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["P2", "frontier"])
def test_ten_parts_that_are_killed_and_merged_in_any_order_are_one_audit(
    kind: str, tiny: Path
) -> None:
    command: list[Any] = ["audit", tiny, "--protocol", "P2", "--workers", 1]
    if kind == "frontier":
        command = ["frontier", write(tiny, tiny_audit(trials=3) + FRONTIER), "--workers", 1]
    started = time.monotonic()
    whole = result_of(*command, "--results", "unbroken.sqlite")
    seconds, ours = time.monotonic() - started, random.Random(kind)
    make_parts_in_spite_of_kills(command, range(1, 11), 10, seconds, ours)
    parts = [f"fedaccord.part-{i}-of-10.sqlite" for i in range(1, 11)]
    merge_in_any_order(parts, "fedaccord.sqlite", ours)
    made = count_runs("fedaccord.sqlite")
    assert made == count_runs("unbroken.sqlite")
    assert result_of(*command) == whole
    assert count_runs("fedaccord.sqlite") == made
    # Each run that counts was made by one part.
    with closing(sqlite3.connect("fedaccord.sqlite")) as store:
        counted = "SELECT count(*) FROM runs WHERE trial < 1000000"
        (expected,) = store.execute(counted).fetchone()
        found = 0
        for part in parts:
            with closing(sqlite3.connect(part)) as one:
                found += one.execute(counted).fetchone()[0]
        assert found == expected > 10


@pytest.fixture(scope="module")
def made_parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parts")
    config = write(folder / "tiny.toml", tiny_audit(trials=4))
    command = ["audit", config, "--workers", 1, "--trials", 2]
    for i in range(1, 4):
        make([*command, "--results", folder / "fedaccord.sqlite"], f"{i}/3")
    return sorted(folder.glob("*.part-*"))


@pytest.fixture
def parts(made_parts: list[Path], tiny: Path) -> list[str]:
    """The files of an audit in three parts, in the current folder."""
    return [shutil.copy(path, path.name) for path in made_parts]


def test_a_part_says_what_it_made_and_how_to_unite_all(tiny: Path) -> None:
    command = ["audit", tiny, "--workers", 1, "--results", "runs.sqlite"]
    said = make(command, "2/3")
    made = count_runs("runs.part-2-of-3.sqlite")
    assert 0 < made < 24
    assert said == (
        f"fedaccord: {made} runs to make.\n"
        f"fedaccord: part 2 of 3 is finished: {made} runs made and stored in "
        "runs.part-2-of-3.sqlite. When all 3 parts are finished, unite them with 'fedaccord merge "
        "runs.part-*-of-3.sqlite --into runs.sqlite', and give this command again without "
        "--part.\n"
    )
    assert "0 runs made" in make(command, "2/3")
    assert not Path("runs.sqlite").exists()


def test_a_merge_says_which_parts_are_lacking(parts: list[str]) -> None:
    with closing(sqlite3.connect(parts[1])) as store, store:
        # As a part that was killed leaves it.
        store.execute("UPDATE parts SET finished = 0")
    done = run("merge", parts[0], parts[1], "--into", "whole.sqlite")
    assert done.code == 0
    assert "parts are missing or unfinished: 2 of 3 and 3 of 3" in done.stderr
    with closing(sqlite3.connect(parts[1])) as store, store:
        store.execute("UPDATE parts SET finished = 1")
    done = run("merge", parts[1], parts[2], "whole.sqlite", "--into", "whole.sqlite")
    assert (done.code, "missing" in done.stderr) == (0, False)
    assert count_runs("whole.sqlite") == sum(map(count_runs, parts)) == 12


def test_more_trials_go_on_from_the_parts(tiny: Path, parts: list[str]) -> None:
    merge_files(parts, "fedaccord.sqlite")
    command = ["audit", tiny, "--workers", 1, "--trials", 4]
    for i in range(1, 4):
        make(command, f"{i}/3")
    found = merge_files(parts, "fedaccord.sqlite")
    assert (found.runs, found.added, found.lacking) == (24, 12, ())
    assert result_of(*command) == result_of(*command, "--results", "other.sqlite")


def test_histories_scores_and_what_clients_do_alone_are_merged_too(tiny: Path) -> None:
    command = ["audit", tiny, "--workers", 1, "--trials", 2, "--scored-on", 5, "--kept-data"]
    for i in range(1, 4):
        make(command, f"{i}/3")
    files = [f"fedaccord.part-{i}-of-3.sqlite" for i in range(1, 4)]
    merge_files(files, "fedaccord.sqlite")
    before = count_runs("fedaccord.sqlite")
    assert result_of(*command) == result_of(*command, "--results", "other.sqlite")
    assert count_runs("fedaccord.sqlite") == before

    def rows(path: str) -> list[Any]:
        with closing(sqlite3.connect(path)) as store:
            query = "SELECT key, h.* FROM runs JOIN history AS h ON run = id ORDER BY 1, 3, 4"
            return [(key, *rest) for key, _, *rest in store.execute(query)]

    assert rows("fedaccord.sqlite") == rows("other.sqlite")


def change(path: str, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as store, store:
        for statement in statements:
            store.execute(statement)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE runs SET versions = 'fedaccord 9'", ("fedaccord 9", "same versions")),
        ("UPDATE parts SET label = 'another'", ("not parts of the same work",)),
        ("UPDATE runs SET versions = x'00ff'", ("same versions",)),
        ("UPDATE parts SET of = 1e99", ("damaged", "make this part again")),
        ("UPDATE parts SET of = 4611686018427387904", ("damaged", "make this part again")),
        ("UPDATE parts SET part = 9", ("damaged", "make this part again")),
        ("PRAGMA user_version = 2", ("another version of fedaccord",)),
        ("PRAGMA application_id = 7", ("another program",)),
        ("PRAGMA application_id = 0x46444150", ("different kinds of work",)),
    ],
)
def test_a_foreign_file_is_refused_and_nothing_is_written(
    statement: str, words: tuple[str, ...], parts: list[str]
) -> None:
    change(parts[2], statement)
    for order in (parts, parts[::-1]):
        assert_refused(run("merge", *order, "--into", "whole.sqlite"), parts[2], *words)
        assert not Path("whole.sqlite").exists()
    merge_files(parts[:2], "whole.sqlite")
    before = Path("whole.sqlite").read_bytes()
    assert_refused(run("merge", parts[2], "--into", "whole.sqlite"), parts[2], *words)
    assert Path("whole.sqlite").read_bytes() == before


@pytest.mark.parametrize("old", ["learning_rate = 0.01", "requirement = 0.15"])
def test_a_part_of_another_config_is_refused(old: str, tiny: Path, parts: list[str]) -> None:
    other = write(Path("other.toml"), tiny.read_text().replace(old, old + "1"))
    make(["audit", other, "--workers", 1, "--trials", 2, "--results", "x.sqlite"], "1/3")
    sentence = "not parts of the same work"
    assert_refused(run("merge", *parts, "x.part-1-of-3.sqlite", "--into", "w.sqlite"), sentence)
    # A file without parts goes by its federation alone.
    run("audit", other, "--workers", 1, "--trials", 1, "--results", "y.sqlite")
    refused = run("merge", *parts, "--into", "y.sqlite")
    assert (refused.code == 2) is old.startswith("requirement")


def test_machines_that_compute_differently_are_noticed(parts: list[str]) -> None:
    merge_files(parts, "whole.sqlite")
    change(parts[0], "UPDATE runs SET digest = 'x' WHERE id = 1")
    assert_refused(run("merge", *parts, "--into", "whole.sqlite"), parts[0], "differently")
    assert count_runs("whole.sqlite") == 12


def test_files_that_are_missing_empty_or_no_files_of_runs_are_named(
    tmp_path: Path, parts: list[str]
) -> None:
    assert_refused(run("merge", "nothing.sqlite", "--into", "w.sqlite"), "nothing.sqlite")
    write(tmp_path / "text.sqlite", "x" * 5000)
    assert_refused(run("merge", *parts, "text.sqlite", "--into", "w.sqlite"), "text.sqlite")
    write(tmp_path / "empty.sqlite", "")
    assert_refused(run("merge", "empty.sqlite", "--into", "w.sqlite"), "no runs yet")
    # A part that was killed as it began.
    assert merge_files([*parts, "empty.sqlite"], "w.sqlite").runs == 12
    with RunStore("w.sqlite") as store:
        assert len(store) == 12


def test_a_merge_that_fails_half_way_loses_nothing(
    parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedaccord.federation.runs import merge

    merge_files(parts[:1], "whole.sqlite")
    there, copy = count_runs("whole.sqlite"), merge._copy

    def fail(connection: sqlite3.Connection, table: str) -> None:
        copy(connection, table)
        if table == "history":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(merge, "_copy", fail)
        merge_files(parts, "whole.sqlite")
    assert count_runs("whole.sqlite") == there
    assert merge_files(parts, "whole.sqlite").runs == 12


def test_trials_of_difficulty_are_made_in_parts_and_merged(tiny: Path) -> None:
    config = tiny.read_text().replace("[difficulty]\nbatches = 5\nholdout = 20\n", "") + TRIALS
    command = ["difficulty", write(tiny, config)]
    expected = result_of(*command, "--cache", "unbroken")
    for i in (3, 1, 2):
        said = make(command, f"{i}/3")
        assert "4 runs made" in said
    *_, (merge, *arguments) = (line.split() for line in said.split("'") if "merge" in line)
    assert merge == "fedaccord"
    files = sorted(Path("fedaccord.cache").glob("*.part-*"))
    assert arguments[1] == str(files[0]).replace("part-1", "part-*")
    done = run("merge", *files, "--into", arguments[-1])
    assert (done.code, done.stderr.count("\n")) == (0, 1), done.stderr
    assert result_of(*command) == expected
    with closing(sqlite3.connect(arguments[-1])) as store:
        assert store.execute("SELECT count(*) FROM trials").fetchone() == (12,)
    change(str(files[0]), "UPDATE trials SET result = 'x'")
    with pytest.raises(InputError, match="differently"):
        merge_files(files, arguments[-1])
    loss = write(tiny, tiny_audit(trials=1))
    assert_refused(run("difficulty", loss, "--part", "1/2"), "--method trials")
