"""Finished runs stay finished: whatever ends the process, fills the disk or edits the file."""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.history import History
from fedaccord.federation.runs.store import Outcome, Run, RunStore

RUN = Run("fingerprint", FedAvg(rounds=3), (5, 7), base_seed=1, trial=0)
ROUNDS, CLIENTS = 3, ("north", "south")


def history(seed=0, diverged=False):
    """A made-up history with accuracies that take all digits to write down."""
    random = np.random.default_rng(seed)
    shape = (ROUNDS, len(CLIENTS))
    accuracy = random.random(shape)
    accuracy[1:2] = np.nan
    if diverged:
        accuracy[-1] = np.nan
    return History(
        clients=CLIENTS,
        requirements=np.array([0.3, 0.5]),
        contributions=np.array([5, 7]),
        algorithm={**RUN.algorithm.to_dict(), "evaluate_every": 1},
        seed=3,
        samples=random.integers(0, 9, shape),
        unique=np.cumsum(random.integers(0, 3, shape), axis=0),
        loss=random.random(shape),
        accuracy=accuracy,
        diverged=diverged,
        seconds=0.25,
    )


def put(store, run=RUN, seed=0):
    made = history(seed)
    return store.put(run, Outcome.of(made, "made up 1.0"), made)


def trials(count, start=0):
    for trial in range(start, start + count):
        yield dataclasses.replace(RUN, trial=trial)


def test_a_run_comes_back_as_it_went_in(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        assert store.get(RUN) is None
        stored = put(store)
    with RunStore(tmp_path / "runs.db") as store:
        assert store.get(RUN) == stored
        assert len(store) == 1
        found = store.rows(RUN)
    expected = sorted(history().rows(), key=lambda row: row[:2])
    assert len(found) == ROUNDS * len(CLIENTS)
    assert np.array_equal([r[2:] for r in found], [r[2:] for r in expected], equal_nan=True)
    assert [r[:2] for r in found] == [r[:2] for r in expected]


def test_an_outcome_sums_up_a_history():
    made = history()
    outcome = Outcome.of(made, "x 1")
    assert outcome.accuracies == tuple(made.accuracy[2].tolist())
    assert outcome.samples == tuple(made.samples.sum(axis=0).tolist())
    assert outcome.unique == tuple(made.unique[2].tolist())
    assert outcome.versions == "x 1"
    assert outcome.seconds == 0.25


def test_a_run_that_diverged_comes_back_so_and_satisfies_nobody_by_any_reading():
    made = history(diverged=True)
    made.accuracy[0] = 1
    with RunStore() as store:
        store.put(RUN, Outcome.of(made, ""), made)
        found = store.get(RUN)
    assert found.diverged
    assert all(math.isnan(a) for a in found.accuracies)
    assert found.satisfied == (False, False)
    assert found.first_passage == (1, 1)
    assert found.satisfied_by_then == (False, False)


def test_who_was_satisfied_once_is_so_by_first_passage():
    made = history()
    made.accuracy[0] = 1
    made.accuracy[2] = [0, 1]
    outcome = Outcome.of(made, "")
    assert outcome.satisfied == (False, True)
    assert outcome.satisfied_by_then == (True, True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    st.lists(st.floats(0, 1) | st.just(math.nan), min_size=2, max_size=2),
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)),
    st.booleans(),
    st.floats(0, 1e9),
)
def test_any_outcome_comes_back_bit_for_bit(accuracies, satisfied, counts, diverged, seconds):
    outcome = Outcome(tuple(accuracies), satisfied, counts, counts, counts, diverged, seconds, "v")
    with RunStore() as store:
        store.put(RUN, outcome, history())
        # Text, for NaN is not equal to itself.
        assert repr(store.get(RUN)) == repr(outcome)


@pytest.mark.parametrize(
    "change",
    [
        {"source": "another"},
        {"algorithm": MwFed(rounds=3)},
        {"algorithm": FedAvg(rounds=3, learning_rate=0.1)},
        {"contributions": (5, 6)},
        {"contributions": (7, 5)},
        {"base_seed": 2},
        {"trial": 3},
    ],
)
def test_runs_that_differ_in_anything_are_different_runs(change):
    other = dataclasses.replace(RUN, **change)
    assert other.key != RUN.key
    with RunStore() as store:
        put(store)
        assert store.get(other) is None


def key_of_the_first_results(run):
    """Write out the key that a run had before any results changed."""
    settings = json.dumps(run.algorithm.to_dict(), sort_keys=True, separators=(",", ":"))
    brought = json.dumps(run.contributions, separators=(",", ":"))
    parts = ("1", run.source, settings, brought, str(run.base_seed), str(run.trial))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Looks(FedAvg):
    """A user's own algorithm that draws points for its goal tests under no known name."""

    @property
    def goal_test_points(self):
        return 7


@pytest.mark.parametrize(
    ("algorithm", "stands"),
    [
        (FedAvg(rounds=3), True),
        (Solo(rounds=3), True),
        (MwFed(rounds=3), True),
        (MwFed(rounds=3, goal_points=40), False),
        (Looks(rounds=3), False),
    ],
)
def test_only_runs_that_come_out_as_before_are_still_found(algorithm, stands):
    run = dataclasses.replace(RUN, algorithm=algorithm)
    assert (run.key == key_of_the_first_results(run)) == stands
    with RunStore() as store:
        put(store, run)
        assert store.get(run) is not None


def test_equal_runs_have_equal_keys_also_in_other_processes():
    code = (
        "from fedaccord.federation.runs.store import Run; "
        "from fedaccord.federation.algorithms.base import FedAvg; "
        "print(Run('fingerprint', FedAvg(rounds=3), (5, 7), base_seed=1, trial=0).key)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE
    )
    assert done.stdout.strip() == RUN.key


def test_a_trial_has_one_seed_whatever_is_trained_in_it():
    same = dataclasses.replace(RUN, algorithm=MwFed(), contributions=(1, 2))
    assert same.seed == RUN.seed
    assert dataclasses.replace(RUN, trial=3).seed != RUN.seed
    assert dataclasses.replace(RUN, base_seed=3).seed != RUN.seed


def test_the_run_that_was_there_first_stands():
    with RunStore() as store:
        first = put(store, seed=0)
        assert put(store, seed=1) == first
        assert store.get(RUN) == first
        assert len(store) == 1


def test_a_run_lost_from_the_file_is_not_there(tmp_path):
    path = tmp_path / "runs.db"
    with RunStore(path) as store:
        put(store)
    with sqlite3.connect(path) as direct:
        direct.execute("DELETE FROM history")
        direct.execute("DELETE FROM runs")
    direct.close()
    with RunStore(path) as store:
        assert store.get(RUN) is None
        assert put(store) == store.get(RUN)


def change_store(folder, edit, run=RUN):
    """Make a store of one run, change it as another program could, and return its path."""
    path = folder / "runs.db"
    with RunStore(path) as store:
        put(store, run)
    with contextlib.closing(sqlite3.connect(path)) as direct, direct:
        direct.execute(edit)
    return path


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE runs SET satisfied = '[false,false]'",
        "UPDATE runs SET accuracies = '[0.9,0.9]'",
        "UPDATE runs SET diverged = 1",
        "UPDATE runs SET \"unique\" = ''",
        "UPDATE runs SET contributions = '[5,8]'",
        "UPDATE runs SET trial = 5",
        "UPDATE runs SET algorithm = '{}'",
    ],
)
def test_a_row_that_was_changed_is_refused(tmp_path, edit):
    path = change_store(tmp_path, edit)
    with (
        RunStore(path) as store,
        pytest.raises(InputError, match=r"damaged .*not as it was written"),
    ):
        store.get(RUN)


def test_the_result_of_another_run_is_refused(tmp_path):
    edit = f"UPDATE runs SET key = '{RUN.key}'"
    path = change_store(tmp_path, edit, dataclasses.replace(RUN, trial=9))
    with RunStore(path) as store, pytest.raises(InputError, match="damaged"):
        store.get(RUN)


@pytest.mark.parametrize(
    "edit", ["UPDATE history SET loss = 0 WHERE round = 1", "DELETE FROM history WHERE round = 3"]
)
def test_a_history_that_was_changed_is_refused(tmp_path, edit):
    path = change_store(tmp_path, edit)
    with (
        RunStore(path) as store,
        pytest.raises(InputError, match=r"damaged \(the history of run"),
    ):
        store.rows(RUN)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("UPDATE runs SET seconds = 'x'", r"damaged \(run [0-9a-f]{12} is not as it was written"),
        ("UPDATE runs SET versions = x'00ff'", "is not as it was written"),
        ("UPDATE runs SET satisfied = '[false,true,false]'", "is not as it was written"),
        ("UPDATE runs SET samples = 'x'", "is not as it was written"),
        ("UPDATE runs SET base_seed = 'x'", "is not as it was written"),
        ("ALTER TABLE runs RENAME COLUMN versions TO other", "no such column: runs.versions"),
        ("ALTER TABLE runs RENAME COLUMN samples TO other", "no such column: runs.samples"),
        ("DROP TABLE runs", "no such table: runs"),
    ],
)
def test_a_table_that_was_changed_is_refused(tmp_path, edit, words):
    path = change_store(tmp_path, edit)
    for read in (lambda store: store.get(RUN), lambda store: store.counted(range(10))):
        with pytest.raises(InputError, match=words), RunStore(path) as store:
            read(store)


def text_file(path):
    path.write_text("accuracy,0.7\n" * 200)


def other_database(path):
    with sqlite3.connect(path) as direct:
        direct.execute("CREATE TABLE runs (key)")
    direct.close()


def later_version(path):
    RunStore(path).close()
    with sqlite3.connect(path) as direct:
        direct.execute("PRAGMA user_version = 99")
    direct.close()


def broken_page(path):
    with RunStore(path) as store:
        for run in trials(40):
            put(store, run)
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 3] = b"x" * 8192
    path.write_bytes(content)


def cut_short(path):
    with RunStore(path) as store:
        for run in trials(40):
            put(store, run)
    os.truncate(path, path.stat().st_size // 2)


def without_runs(path):
    RunStore(path).close()
    with sqlite3.connect(path) as direct:
        direct.execute("DROP TABLE runs")
    direct.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (without_runs, r"is damaged \(no such table: runs\): put back a copy of it"),
        (text_file, "is not a file of finished runs; name another file"),
        (other_database, "is a database of another program; name another file"),
        (later_version, r"another version of fedaccord \(its layout is 99, not 1\)"),
        (broken_page, "is damaged .*: put back a copy of it, or move it away"),
        (cut_short, "is damaged .*: put back a copy of it, or move it away"),
        (lambda path: path.mkdir(), "cannot open .*: unable to open database file; name another"),
    ],
)
def test_a_file_that_is_not_ours_or_damaged_gets_one_sentence(tmp_path, make, words):
    path = tmp_path / "runs.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match=words) as caught:
        RunStore(path)
    assert "\n" not in str(caught.value)
    # Whatever it is, it is left alone.
    assert before is None or path.read_bytes() == before


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*absent"):
        RunStore(tmp_path / "absent" / "runs.db")


def test_an_empty_file_is_a_new_store(tmp_path):
    path = tmp_path / "runs.db"
    path.touch()
    with RunStore(path) as store:
        assert len(store) == 0


def test_a_full_disk_says_how_many_runs_are_safe_and_what_to_do(tmp_path):
    path = tmp_path / "runs.db"
    with RunStore(path) as store:
        put(store, RUN)
    with RunStore(path) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(
            FedaccordError, match=r"disk is full; the [0-9]+ runs in it are safe: free some space"
        ) as caught:
            for run in trials(100, start=1):
                put(store, run)
    assert "run the same command again" in str(caught.value)
    safe = int(str(caught.value).split("; the ")[1].split()[0])
    with RunStore(path) as store:
        assert len(store) == safe > 1
        assert all(len(store.rows(run)) == ROUNDS * len(CLIENTS) for run in trials(safe))
        put(store, dataclasses.replace(RUN, trial=safe))
        assert len(store) == safe + 1


def test_a_disk_that_is_full_from_the_start_gets_a_remedy(tmp_path, monkeypatch):
    def fail(*_, **__):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr("fedaccord._io.sqlite.claim", fail)
    with pytest.raises(FedaccordError, match=r"cannot write .* is full; .*free some space"):
        RunStore(tmp_path / "runs.db")


def test_a_file_that_may_grow_no_further_gets_a_sentence_too(tmp_path):
    path = tmp_path / "runs.db"
    with RunStore(path) as store:
        put(store, RUN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
        try:
            with pytest.raises(
                FedaccordError, match=r"cannot write .* safe: .* same command again"
            ):
                for run in trials(100, start=1):
                    put(store, run)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
        # Once there is space, the same store goes on.
        put(store, dataclasses.replace(RUN, trial=500))
    with RunStore(path) as store:
        assert store.get(RUN) is not None


def test_a_file_that_cannot_be_written_gets_a_sentence():
    with RunStore() as store:
        store._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(
            FedaccordError, match=r"readonly database; the 0 runs .*make the file wri"
        ):
            put(store)


def test_a_file_that_another_process_holds_for_too_long_gets_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("fedaccord._io.sqlite.PATIENCE", 0.05)
    path = tmp_path / "runs.db"
    with RunStore(path) as store:
        other = sqlite3.connect(path)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(FedaccordError, match=r"database is locked; .*end the other process"):
            put(store)
        other.close()
        put(store)


WRITER = """
import sys
sys.path[:0] = {path!r}
from federation.runs.test_store import RunStore, put, trials
with RunStore(sys.argv[1]) as store:
    print("open", flush=True)
    for run in trials(int(sys.argv[2])):
        put(store, run)
"""


def writer(path, count):
    command = [sys.executable, "-c", WRITER.format(path=sys.path), str(path), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_may_write_the_same_file(tmp_path):
    path = tmp_path / "runs.db"
    writers = [writer(path, 25) for _ in range(2)]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    with RunStore(path) as store:
        assert len(store) == 25
        assert all(len(store.rows(run)) == ROUNDS * len(CLIENTS) for run in trials(25))


def test_a_killed_process_leaves_a_whole_file_with_whole_runs(tmp_path):
    path = tmp_path / "runs.db"
    count = 0
    for _ in range(2):
        process = writer(path, 10**6)
        process.stdout.readline()
        time.sleep(0.2)
        process.kill()
        process.communicate()
        before = count
        with RunStore(path) as store:
            count = len(store)
            assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert all(store.get(run) is not None for run in trials(count))
            assert all(len(store.rows(run)) == ROUNDS * len(CLIENTS) for run in trials(count))
        # The second writer writes the same runs: none that was there may be gone.
        assert count >= max(before, 1)


def test_a_store_reads_in_one_line(tmp_path):
    with RunStore() as memory, RunStore(tmp_path / "runs.db") as store:
        assert repr(memory) == "RunStore(in memory)"
        assert repr(store) == f"RunStore('{tmp_path}/runs.db')"
