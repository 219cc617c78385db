"""A smaller part of the soak, and faults that its checks must notice."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
from commands import write
from faults import hostile, kills, mutants, soak, surroundings
from faults.forked import Ended, Forked
from page_elements import hash_of
from processes import is_alive, needs_proc, until

from fedaccord._checks import cores

pytestmark = [pytest.mark.slow, needs_proc]
needs_cores = pytest.mark.skipif(cores() < 2, reason="two workers need two cores")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sound files, in which every command has run once."""
    place = tmp_path_factory.mktemp("faults") / "work"
    place.mkdir()
    with contextlib.chdir(place):
        mutants.prepare(place)
    return place


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def audit(folder: Path) -> kills.Audit:
    with contextlib.chdir(folder):
        return kills.Audit(trials=4)


def faults_of(told: soak.Told) -> list[str]:
    return [fault for _, faults in told for fault in faults]


# The commands.


def test_audits_that_are_killed_lose_no_finished_run(here: Path, audit: kills.Audit) -> None:
    assert faults_of(soak.kill_audits(audit, 1, alone=5, together=0)) == []


@needs_cores
def test_no_worker_outlives_its_parent(here: Path, audit: kills.Audit) -> None:
    assert kills.kill_over_stopped(audit) == []


def test_audits_that_share_a_store_or_stop_end_as_others(here: Path, audit: kills.Audit) -> None:
    assert kills.run_twice(audit) == []
    assert kills.stop_and_continue(audit, 1) == []


def test_a_damaged_store_is_refused_or_right(here: Path, audit: kills.Audit) -> None:
    counts, faults = kills.damage_store(audit, 16, seed=1)
    assert faults == []
    assert all(counts.values())


@pytest.mark.parametrize("kind", mutants.KINDS)
def test_mutated_files_are_read_or_refused(kind: str, here: Path) -> None:
    found = list(mutants.try_mutants(12, seed=3, kinds=(kind,)))
    assert [faults for *_, faults in found if faults] == []
    assert any(ended.code == 2 for _, _, ended, _ in found)


def test_no_matrix_is_read_outside_the_folder_of_its_game(here: Path) -> None:
    assert [found for found in mutants.leave_folder() if found[1]] == []


def test_a_full_disk_and_a_closed_folder_are_told(here: Path, audit: kills.Audit) -> None:
    try:
        assert [f for *_, f in surroundings.fill_disk(here / "disk", 4096) if f] == []
        assert [f for *_, f in surroundings.close_folder(here / "disk") if f] == []
        assert surroundings.outgrow_disk(audit, here / "disk") == []
    except surroundings.Unmountable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", surroundings.STRANGE)
def test_neither_home_nor_language_matters(name: str, here: Path) -> None:
    line = surroundings.READERS[2]
    usual, strange = (
        surroundings.start_strangely(what, line) for what in ({}, surroundings.STRANGE[name])
    )
    assert surroundings.compare(usual, strange) == []


def test_hostile_names_do_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mutants.copy_inputs(tmp_path)
    hostile.prepare(tmp_path)
    monkeypatch.setattr(hostile, "PAGES", hostile.PAGES[:2])
    monkeypatch.setattr(hostile, "TABLES", hostile.TABLES[:5])
    assert faults_of(soak.tell("tables", hostile.write_tables())) == []
    assert faults_of(soak.tell("pages", hostile.open_pages())) == []


# The checks, each with a fault that it is for.


def fail() -> None:
    raise KeyError("x")


def take_memory() -> None:
    try:
        bytearray(3 << 30)
    except MemoryError:
        sys.stderr.write("fedaccord: this machine has too little memory for this.\n")
        sys.exit(2)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (fail, "a traceback: KeyError: 'x'"),
        (lambda: time.sleep(60), "it took over"),
        (take_memory, "over 4 GiB"),
        (lambda: sys.exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "exit code -9"),
        (lambda: sys.exit(2), "no sentence"),
        (lambda: sys.exit(sys.stderr.write("warning\nfedaccord: no.\n") * 0 + 2), "no sentence"),
        (lambda: (sys.stdout.write("half a result"), sys.exit(2)), "no sentence"),
    ],
)
def test_the_judge_of_commands_objects(command: Callable[[], None], words: str) -> None:
    found = Forked([], memory=2 << 30, command=command).wait(1.5).faults()
    assert any(words in fault for fault in found), found


def test_the_judge_of_commands_lets_answers_pass() -> None:
    assert Forked(["catalog"]).wait().faults() == []
    assert Forked(["solve", "missing.json"]).wait().faults() == []


def test_a_process_that_outlives_its_parent_is_seen_and_ended() -> None:
    def leave() -> None:
        subprocess.Popen(["sleep", "60"], start_new_session=True)
        time.sleep(60)

    parent = Forked([], command=leave)
    (left,) = until(lambda: kills.descend(parent.pid), "it has started another")
    assert parent.wait(0.1).code is None
    assert kills.outlive({left}) == [f"process {left} outlived its parent"]
    until(lambda: not is_alive(left), "it is gone", 5)


def test_lost_runs_and_other_results_are_noticed(here: Path, audit: kills.Audit) -> None:
    kills.STORE.write_bytes(Path("unbroken.sqlite").read_bytes())
    right = Forked(audit.arguments(1)).wait(kills.PATIENCE)
    assert audit.judge(right) == []
    wrong = Ended(0, right.out.replace('"trials": 4', '"trials": 5'), right.err, 1.0)
    assert wrong != right
    assert audit.judge(wrong) == ["another result than without the disturbance"]
    with contextlib.closing(sqlite3.connect(kills.STORE)) as store, store:
        store.execute("DELETE FROM runs WHERE id = 3")
    assert audit.judge(right) == ["other runs in the store"]


def test_a_kill_that_loses_a_finished_run_is_noticed(
    here: Path, audit: kills.Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills.STORE.unlink(missing_ok=True)
    one = frozenset({("a run", "that is not there any more")})
    read, seen = kills.read_rows, []

    def forget(path: Path) -> kills.Rows:
        seen.append(read(path))
        return one if len(seen) == 1 else frozenset()

    monkeypatch.setattr(kills, "read_rows", forget)
    monkeypatch.setattr(kills, "wait_for_run", lambda pid, before: None)
    monkeypatch.setattr(kills, "descend", lambda pid: seen.clear() or set())
    found = kills.Kills(audit, 1)
    found.kill_once()
    assert "finished runs were lost" in found.faults


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda page: page.replace("Content-Security-Policy", "x"), "no content-security policy"),
        (lambda page: page.replace("'none'", "*"), "the policy allows"),
        (lambda page: page.replace("<main", "<script>alert(1)</script><main"), "does not know"),
        (lambda page: page.replace("<main", "<main onclick='x'"), "main has onclick"),
        (lambda page: page.replace("<main", "<a href='http://x'>x</a><main"), "a leads to http"),
    ],
)
def test_the_judge_of_pages_objects(change: Callable[[str], str], words: str) -> None:
    page = (
        '<html><head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f'script-src {hash_of("1")}"></head><body><main></main><script>1</script></body></html>'
    )
    assert hostile.find_page_faults(page) == []
    assert change(page) != page
    found = hostile.find_page_faults(change(page))
    assert any(words in fault for fault in found), found


def test_the_judge_of_tables_objects(tmp_path: Path) -> None:
    assert hostile.find_cell_faults('agent,gives\n\'=1+1,-5\n"a,b",+3.5 %\n') != []
    assert hostile.find_cell_faults('agent,gives\n\'=1+1,-5\n"a,b",3.5 %\n') == []
    for cell in ("=1+1", "+A1", "@SUM(1)", "-1+2", "\t=1", "＝1"):
        assert hostile.find_cell_faults(f'agent\n"{cell}"\n') == [f"the cell {cell!r}"]
    book = openpyxl.Workbook()
    book.active["A1"] = "=1+1"
    book.save(tmp_path / "book.xlsx")
    assert hostile.find_workbook_faults(tmp_path / "book.xlsx") == ["the formula '=1+1'"]


def test_a_pickle_that_is_run_is_noticed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(Forked):
        def wait(self, seconds: float = 30.0) -> Ended:
            write(Path("sprung"), "")
            return super().wait(seconds)

    monkeypatch.setattr(mutants, "Forked", Careless)
    (found,) = mutants.try_mutants(1, kinds=("weights",))
    assert any("it ran a pickle" in fault for fault in found[-1])


def test_strange_results_and_strange_words_are_noticed() -> None:
    usual = Ended(0, "gives 5", "", 0.0)
    assert surroundings.compare(usual, usual) == []
    assert surroundings.compare(usual, Ended(0, "gives 6", "", 0.0)) == ["another result"]
    said = surroundings.compare(usual, Ended(0, "gives 5", "UserWarning: x\n", 0.0))
    assert said == ["it says UserWarning: x"]
