"""The command that compares algorithms, on federations of a few points."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import Run, assert_refused, assert_visible, run, write
from extras import skip_if_absent
from federation.tiny import tiny_audit

SOURCE = Path(__file__).parents[2] / "src"
PLEDGED = """
[algorithms.FedAvg]
[algorithms.PLEDGED]
passes = 2
rounds = 8
plan = "plan.csv"
[frontier]
trials = 2
levels = [1, 0.25]
"""
PLAN = "agent,contribution\nsouth,0\nnorth,20\n"
# FedAvg: both in full, and either's quarter, by P1; its own plan is all points, so by P2 the same,
# after three runs that tell so. PLEDGED: both in full; north's quarter of 20 points, and of its 32.
RUNS = 2 * 3 + 3 + 2 * 3


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in the current folder, where results go."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "plan.csv", PLAN)
    return write(tmp_path / "tiny.toml", tiny_audit(trials=3) + PLEDGED)


def changed(config: Path, old: str, new: str) -> Path:
    text = config.read_text()
    assert old in text
    return write(config.with_name("changed.toml"), text.replace(old, new))


def found_in(result: Run) -> Any:
    assert result.code == 0, result.stderr
    plain = json.loads(result.stdout)
    assert plain.pop("seconds") >= 0
    assert plain.pop("run_seconds") >= 0
    return plain


def test_a_comparison_as_json_has_both_protocols_of_every_algorithm(tiny: Path) -> None:
    result = run("frontier", tiny, "--workers", 1, "--json")
    found = found_in(result)
    assert list(found["contenders"]) == ["FedAvg", "PLEDGED"]
    pledged = found["contenders"]["PLEDGED"]
    assert pledged["plan"].endswith("plan.csv")
    assert set(pledged["goals"]) == {"satisfied", "cut", "others", "samples"}
    for protocol in ("P1", "P2"):
        assert pledged[protocol]["contributions"] == [20, 0]
        assert pledged[protocol]["settings"]["commitment"] == [20, 0]
        assert [point["level"] for point in pledged[protocol]["levels"]] == [1, 0.25]
    assert pledged["P2"]["total_samples"] == 20
    assert pledged["goals"]["samples"]["value"] == pytest.approx(20 / 64)
    assert found["contenders"]["FedAvg"]["P2"]["contributions"] == [32, 32]
    assert found["provenance"].endswith("trials 0 to 1 of seed 0.")
    assert result.stderr == (
        "fedaccord: P1 of 2 algorithms: up to 10 runs.\n"
        "fedaccord: P2 of 2 algorithms: up to 13 runs.\n"
        f"fedaccord: {RUNS} runs are stored in fedaccord.sqlite.\n"
    )


def test_a_comparison_in_words_has_tables_and_a_verdict_for_each_algorithm(tiny: Path) -> None:
    result = run("frontier", tiny, "--workers", 1)
    assert result.code == 0
    assert_visible(result.stdout)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["PLEDGED", "20", "-", "20"] in rows
    assert ["available", "32", "32", "64"] in rows
    assert any(row[:2] == ["PLEDGED", "plan.csv"] for row in rows)
    for name in ("FedAvg", "PLEDGED"):
        assert any(line.startswith(f"{name} meets ") for line in result.stdout.splitlines())
    assert "P2, a contributor" in result.stdout and "P1, a random agent" in result.stdout


def test_the_same_command_makes_no_run_twice(tiny: Path) -> None:
    first = run("frontier", tiny, "--workers", 1, "--json")
    again = run("frontier", tiny, "--workers", 1, "--json")
    assert found_in(again) == found_in(first)
    # Nothing is announced, for nothing is begun.
    assert again.stderr == f"fedaccord: {RUNS} runs are stored in fedaccord.sqlite.\n"


def test_options_override_the_config(tiny: Path) -> None:
    found = found_in(
        run(
            *("frontier", tiny, "--workers", 1, "--json", "--trials", 3, "--seed", 9),
            *("--levels", ".25", "--defectors", "random", "--algorithm", "PLEDGED"),
            *("--plan", "PLEDGED=all", "--results", "other.sqlite"),
        )
    )
    assert list(found["contenders"]) == ["PLEDGED"] and found["baseline"] == "PLEDGED"
    assert (found["trials"], found["seed"], found["levels"]) == (3, 9, [0.25])
    assert found["defectors"] == "random"
    assert found["contenders"]["PLEDGED"]["P2"]["contributions"] == [32, 32]
    assert Path("other.sqlite").exists()


def test_the_seed_is_the_audits_unless_the_frontier_has_one(tiny: Path) -> None:
    audits = changed(tiny, "[audit]\n", "[audit]\nseed = 4\n")
    assert found_in(run("frontier", audits, "--workers", 1, "--json", "--trials", 1))["seed"] == 4
    own = changed(audits, "[frontier]\n", "[frontier]\nseed = 6\n")
    assert found_in(run("frontier", own, "--workers", 1, "--json", "--trials", 1))["seed"] == 6


def test_a_page_is_written(tiny: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("frontier", tiny, "--workers", 1, "--trials", 1, "--report", "page.html")
    assert result.code == 0 and "the page is in page.html" in result.stderr
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Which algorithm lets all agents reach their goals" in page
    assert "PLEDGED meets" in page and page.count("<svg") >= 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--levels", "1,.5"), ("0.25", "1, 0.5")),
        (("--levels", "none"), ("--levels",)),
        (("--trials", "0"), ("--trials",)),
        (("--pilots", "0"), ("--pilots",)),
        (("--seeking", "0"), ("--seeking",)),
        (("--plan", "PLEDGED"), ("--plan", "NAME=PLAN")),
        (("--plan", "MW-FED=own"), ("MW-FED", "FedAvg, PLEDGED")),
        (("--plan", "PLEDGED=sough"), ("PLEDGED", "sought", "no file sough")),
        (("--plan", "PLEDGED=much.csv"), ("north", "33 samples, but north has 32")),
        (("--algorithm", "PLEDGE"), ("'PLEDGE'", "did you mean PLEDGED")),
        (("--defectors", "all"), ("--defectors",)),
        (("--seed", "-1"), ("--seed",)),
        (("--engine", "cloud"), ("--engine",)),
        (("--report", "page.pdf"), (".html",)),
        (("--results", "/nowhere/at/all.sqlite"), ("/nowhere/at",)),
    ],
)
def test_an_option_at_fault_is_refused_before_anything_is_trained(
    options: tuple[str, ...], words: tuple[str, ...], tiny: Path
) -> None:
    write(tiny.with_name("much.csv"), "contribution\n33\n1\n")
    assert_refused(run("frontier", tiny, *options), *words)
    assert not Path("fedaccord.sqlite").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('plan = "plan.csv"', "plan = 3", ("[algorithms.PLEDGED] plan", "text in quotes")),
        ('plan = "plan.csv"', 'plan = "sough"', ("PLEDGED", "sought")),
        ('plan = "plan.csv"', 'plans = "own"', ("'plans'", "did you mean plan")),
        ("trials = 2\n", "trials = 0\n", ("[frontier] trials",)),
        ("trials = 2\n", 'baseline = "Solo"\n', ("baseline", "FedAvg, PLEDGED")),
        ("trials = 2\n", 'prefer = "cheap"\n', ("[frontier] prefer", "total, firm")),
    ],
)
def test_a_config_at_fault_is_refused(
    old: str, new: str, words: tuple[str, ...], tiny: Path
) -> None:
    assert_refused(run("frontier", changed(tiny, old, new)), *words)


def test_a_name_with_a_sign_of_its_own_can_be_given_a_plan(tiny: Path) -> None:
    config = changed(
        tiny, "[algorithms.FedAvg]", '[algorithms.FedAvg]\n[algorithms."A=B"]\nkind = "fedavg"'
    )
    result = run("frontier", config, "--plan", "A=B=sough")
    assert_refused(result, "the plan of A=B must be", "no file sough")


def test_a_plan_is_looked_for_beside_the_config_that_names_it(tiny: Path) -> None:
    below = tiny.parent / "below"
    below.mkdir()
    config = write(below / "more.toml", 'extends = "../tiny.toml"\n[frontier]\ntrials = 1\n')
    found = found_in(run("frontier", config, "--workers", 1, "--json"))
    assert found["contenders"]["PLEDGED"]["P2"]["contributions"] == [20, 0]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="interrupts are POSIX")
def test_an_interrupt_keeps_what_is_finished_and_the_same_command_goes_on(tiny: Path) -> None:
    # Runs of 4 rounds take milliseconds: all could be finished before a busy machine looks again.
    slower = changed(tiny, "rounds = 4", "rounds = 300")
    command = [sys.executable, "-m", "fedaccord", "frontier", str(slower), "--trials", "40"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [*command, "--workers", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        while process.poll() is None and kept() < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    skip_if_absent(told)
    assert process.returncode == 130
    count = kept()
    assert count >= 3
    assert f"interrupted: {count} finished runs are stored in fedaccord.sqlite" in told
    result = run("frontier", slower, "--trials", 2, "--workers", 1, "--json")
    assert found_in(result)["trials"] == 2


def kept() -> int:
    """Count the runs in the results so far."""
    if not Path("fedaccord.sqlite").exists():
        return 0
    try:
        with closing(sqlite3.connect("fedaccord.sqlite")) as store:
            return int(store.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
