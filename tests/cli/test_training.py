"""The commands about training, on federations of a few points."""

import contextlib
import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import Run, assert_refused, assert_visible, run, write
from extras import skip_if_absent
from federation.tiny import tiny_audit

TINY = tiny_audit(trials=3)
# Two algorithms, each with everybody's full contribution and with either agent's half.
RUNS_A_TRIAL = 2 * (1 + 2)
ALL_MADE = (
    f"fedaccord: {3 * RUNS_A_TRIAL} runs to make.\n"
    f"fedaccord: {3 * RUNS_A_TRIAL} runs are stored in fedaccord.sqlite.\n"
)
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in the current folder, where results go."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "tiny.toml", TINY)


def changed(config: Path, old: str, new: str) -> Path:
    text = config.read_text()
    assert old in text
    return write(config.with_name("changed.toml"), text.replace(old, new))


# train


def test_training_tells_who_is_satisfied(tiny: Path) -> None:
    result = run("train", tiny)
    assert (result.code, result.stderr) == (0, "")
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert rows[1][:4] == ["agent", "goal", "accuracy", "reached"]
    north = next(row for row in rows if row[0] == "north")
    assert (north[1], north[3]) == ("0.150", "yes")
    # 32 points, drawn 8 at a time in 4 rounds.
    assert north[-3:] == ["32", "32", "32"]
    assert ["all", "64", "64", "64"] in rows
    assert "After 4 rounds of FedAvg, all agents reach their goals." in result.stdout


def test_the_exit_code_says_when_somebody_is_not_satisfied(tiny: Path) -> None:
    result = run("train", changed(tiny, "requirement = 0.15", "requirement = [0.15, 1]"))
    assert result.code == 1
    assert re.search(
        r"1 of 2 agents reach their goals. Missed: south \(0\.\d+, short by 0\.\d+\)\.",
        result.stdout,
    )


def test_training_as_json_is_the_history(tiny: Path) -> None:
    found = json.loads(run("train", tiny, "--json", "--algorithm", "MW-FED").stdout)
    assert found["algorithm_name"] == "MW-FED"
    assert found["algorithm"]["kind"] == "mw-fed"
    assert found["clients"] == ["north", "south"]
    assert [len(rows) for rows in found["samples"]] == [2] * 4
    assert found["samples"][0] == [8, 8]
    assert found["satisfied"] == [True, True]


def test_the_usual_algorithms_need_not_be_in_the_config(tiny: Path) -> None:
    found = json.loads(run("train", tiny, "--json", "--algorithm", "Solo").stdout)
    assert found["algorithm"]["kind"] == "solo"
    # The settings of [training] are everybody's.
    assert (found["algorithm"]["rounds"], found["algorithm"]["batch_size"]) == (4, 8)
    only = write(tiny.with_name("only.toml"), TINY + "[algorithms.Solo]\nrounds = 2\n")
    found = json.loads(run("train", only, "--json", "--algorithm", "FedAvg").stdout)
    assert (found["algorithm"]["kind"], found["algorithm"]["rounds"]) == ("fedavg", 4)
    found = json.loads(run("train", only, "--json").stdout)
    assert (found["algorithm"]["kind"], found["algorithm"]["rounds"]) == ("solo", 2)


def test_every_round_is_saved(tiny: Path) -> None:
    assert run("train", tiny, "--save", "history.csv").code == 0
    rows = list(csv.DictReader(Path("history.csv").read_text().splitlines()))
    assert len(rows) == 4 * 2
    assert [row["accuracy"] == "" for row in rows[::2]] == [True, False, True, False]


def test_seeds_trials_and_contributions_change_the_run(tiny: Path) -> None:
    def losses(*options: Any) -> Any:
        return json.loads(run("train", tiny, "--json", *options).stdout)["loss"]

    plan = write(tiny.with_name("plan.csv"), "agent,contribution\nsouth,5\nnorth,32\n")
    assert losses() == losses("--seed", 0, "--trial", 0)
    others = [losses(*more) for more in (("--seed", 1), ("--trial", 1), ("--contributions", plan))]
    assert all(other != losses() for other in others)
    used = json.loads(run("train", tiny, "--json", "--contributions", plan).stdout)
    assert used["contributions"] == [32, 5]
    assert used["unique"][-1] == [32, 5]


def test_a_run_of_an_audit_can_be_looked_at(tiny: Path) -> None:
    assert run("audit", tiny, "--workers", 1, "--seed", 5).code == 0
    found = json.loads(
        run("train", tiny, "--seed", 5, "--trial", 2, "--algorithm", "MW-FED", "--json").stdout
    )
    with contextlib.closing(sqlite3.connect("fedaccord.sqlite")) as store:
        rows = store.execute(
            "SELECT loss FROM history JOIN runs ON runs.id = history.run WHERE trial = 2 "
            "AND contributions = '[32,32]' AND algorithm LIKE '%mw-fed%' ORDER BY round, client"
        ).fetchall()
    assert [loss for (loss,) in rows] == [loss for losses in found["loss"] for loss in losses]


def test_training_that_diverges_says_so(tiny: Path) -> None:
    result = run("train", changed(tiny, "learning_rate = 0.01", "learning_rate = 1e30"))
    assert result.code == 1
    assert "FedAvg diverged in round" in result.stdout
    assert "Use a smaller learning rate." in result.stdout


def test_an_agent_that_lacks_a_class_is_no_fault(tiny: Path) -> None:
    # Of ten classes, three points know three at most.
    few = changed(tiny, "points = 40", "points = 4\nvalidation = 0.25")
    result = run("train", few, "--json")
    assert result.code in (0, 1)
    found = json.loads(result.stdout)
    assert set(found["contributions"]) == {3}
    assert not found["diverged"]


# audit


def shares(entry: dict[str, Any]) -> bool:
    return 0 <= entry["low"] <= entry["p"] <= entry["high"] <= 1 and entry["trials"] == 3


def test_an_audit_as_json_has_the_keys_that_were_promised(tiny: Path) -> None:
    result = run("audit", tiny, "--workers", 1, "--json")
    assert (result.code, result.stderr) == (0, ALL_MADE)
    found = json.loads(result.stdout)
    assert list(found)[:3] == ["protocol", "algorithms", "seconds"]
    assert found["protocol"] == "P1"
    assert list(found["algorithms"]) == ["FedAvg", "MW-FED"]
    assert found["algorithms"]["FedAvg"]["total_samples"] == 64
    for curve in found["algorithms"].values():
        assert shares(curve["all_satisfied"])
        assert 0 < curve["total_samples"] <= 64
        assert [point["level"] for point in curve["levels"]] == [1, 0.5]
        for point in curve["levels"]:
            assert shares(point)
            assert list(point["agents"]) == ["north", "south"]
            assert all(shares(agent) for agent in point["agents"].values())


def test_an_audit_in_words_has_tables_and_a_sentence_per_algorithm(tiny: Path) -> None:
    result = run("audit", tiny, "--workers", 1)
    assert (result.code, result.stderr) == (0, ALL_MADE)
    first, second, *others = result.stdout.splitlines()
    assert first.startswith(
        "The tables say how often a defector reaches its goal (accuracy 0.15) at the end"
    )
    assert first.endswith("fractions of the runs in 3 trials, with 95 % intervals in brackets.")
    assert second.endswith("Models are judged on the agents' own validation samples.")
    rows = [line.split() for line in others]
    assert ["a", "random", "agent", "gives", "FedAvg", "MW-FED"] in rows
    assert ["compared", "with", "FedAvg", "MW-FED"] in rows
    assert [row[:2] for row in rows].count(["50", "%"]) == 4
    assert "all reach their goals at 100 %" in result.stdout
    for name in ("FedAvg", "MW-FED"):
        sentence = rf"Under {name}, a random agent that gives 50 % of its data reaches its goal in "
        sentence += (
            r"\d+ % of runs\. The 95 % interval is from \d+ % to \d+ % \(3 trials of 2 agents\)"
        )
        assert re.search(sentence, result.stdout)


def without_seconds(result: Run) -> Any:
    found = json.loads(result.stdout)
    assert found.pop("seconds") >= 0
    assert found.pop("run_seconds") >= 0
    return found


def test_the_same_command_goes_on_and_says_what_was_there(tiny: Path) -> None:
    first = run("audit", tiny, "--workers", 1, "--trials", 2, "--json")
    assert first.stderr == ALL_MADE.replace("18", "12")
    again = run("audit", tiny, "--workers", 1, "--trials", 2, "--json")
    assert without_seconds(again) == without_seconds(first)
    assert again.stderr == (
        "fedaccord: 12 runs are stored in fedaccord.sqlite; all of them were there already.\n"
    )
    more = run("audit", tiny, "--workers", 1, "--json")
    assert more.stderr == (
        "fedaccord: 18 runs to make, minus the runs already in fedaccord.sqlite.\n"
        "fedaccord: 18 runs are stored in fedaccord.sqlite; 12 of them were there already.\n"
    )
    elsewhere = run("audit", tiny, "--workers", 1, "--json", "--results", "other.sqlite")
    assert elsewhere.stderr == ALL_MADE.replace("fedaccord.sqlite", "other.sqlite")
    assert without_seconds(more) == without_seconds(elsewhere)


def test_runs_that_are_found_after_the_last_one_made_are_counted(tiny: Path) -> None:
    options = ("audit", tiny, "--workers", 1, "--trials", 1)
    assert run(*options, "--algorithm", "MW-FED").code == 0
    told = run(*options).stderr.splitlines()
    assert told[-1] == (
        "fedaccord: 6 runs are stored in fedaccord.sqlite; 3 of them were there already."
    )


def test_runs_that_may_turn_out_fewer_are_announced_as_at_most_as_many(tiny: Path) -> None:
    options = ("audit", tiny, "--workers", 1, "--algorithm", "FedAvg", "--width", "0.9")
    told = run(*options, "--trials", 9).stderr
    # Each level stops by itself.
    assert told == (
        f"fedaccord: up to {9 * 3} runs to make.\n"
        "fedaccord: 8 runs are stored in fedaccord.sqlite.\n"
    )


def test_runs_of_several_versions_are_told_of(tiny: Path) -> None:
    options = ("audit", tiny, "--workers", 1, "--trials", 1, "--algorithm", "FedAvg")
    with pytest.MonkeyPatch.context() as patch:
        versions = "fedaccord.federation.runs.execute.package_versions"
        patch.setattr(versions, lambda: "fedaccord 0.0.9")
        assert "versions" not in run(*options).stderr
    told = run(*options, "--levels", "1,.5,.25").stderr.splitlines()
    assert len(told) == 3
    assert "the runs come from 2 different versions: fedaccord 0.0.9; fedaccord" in told[1]


def test_options_override_the_config(tiny: Path) -> None:
    found = json.loads(
        run(
            *("audit", tiny, "--workers", 1, "--json", "--levels", ".25,1", "--trials", 2),
            *("--defectors", "random", "--algorithm", "MW-FED", "--seed", 9),
        ).stdout
    )
    assert list(found["algorithms"]) == ["MW-FED"]
    assert (found["defectors"], found["seed"]) == ("random", 9)
    points = found["algorithms"]["MW-FED"]["levels"]
    assert [point["level"] for point in points] == [0.25, 1]
    assert [agent["trials"] for agent in points[0]["agents"].values()] == [1, 1]


def test_a_plan_is_what_the_second_protocol_prescribes(tiny: Path) -> None:
    plan = write(tiny.with_name("plan.json"), {"contributions": [0, 20]})
    options = ("--workers", 1, "--protocol", "P2", "--plan", plan, "--algorithm", "FedAvg")
    result = run("audit", tiny, *options)
    # Everybody in full, and the south with half of it.
    assert result.stderr.startswith(f"fedaccord: {3 * 2} runs to make.\n")
    assert ["plan", "asks", "-", "20"] in [line.split() for line in result.stdout.splitlines()]
    assert "a random contributor gives" in result.stdout
    assert "of what the plan asks of it reaches its goal in" in result.stdout
    found = json.loads(run("audit", tiny, *options, "--json").stdout)
    assert found["protocol"] == "P2"
    assert found["algorithms"]["FedAvg"]["contributions"] == [0, 20]
    assert found["algorithms"]["FedAvg"]["total_samples"] == 20


def test_under_the_first_protocol_a_plan_is_followed_as_far_as_points_go(tiny: Path) -> None:
    plan = write(tiny.with_name("plan.json"), {"contributions": [10, 20]})
    run("audit", tiny, "--workers", 1, "--plan", plan, "--algorithm", "FedAvg")
    with contextlib.closing(sqlite3.connect("fedaccord.sqlite")) as file:
        brought = {
            tuple(json.loads(row)) for (row,) in file.execute("SELECT contributions FROM runs")
        }
    # Half of 32 points are enough for 10, and not for 20.
    assert brought == {(10, 20), (10, 16)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--levels", "1,0"), ("--levels", "above 0 and at most 1", "0.0")),
        (("--levels", "1.5"), ("--levels", "1.5")),
        (("--levels", "nan"), ("--levels", "nan")),
        (("--levels", "half"), ("--levels", "half", "commas")),
        (("--levels", ""), ("--levels",)),
        (("--levels", ".5,0.5"), ("--levels", "0.5 twice")),
        (("--trials", "0"), ("--trials",)),
        (("--workers", "0"), ("workers",)),
        (("--workers", "1000000"), ("workers", "cores")),
        (("--engine", "cloud"), ("--engine", "local")),
        (("--protocol", "P3"), ("--protocol", "P1, P2")),
        (("--plan", "plan.json"), ("north",)),
        (("--plan", "none.json", "--protocol", "P2"), ("none.json",)),
        (("--plan", "plan.json", "--protocol", "P2"), ("north",)),
        (("--defectors", "all"), ("--defectors", "each, random")),
        (("--width", "2"), ("--width",)),
        (("--seed", "-1"), ("--seed",)),
        (("--algorithm", "MWFED"), ("'MWFED'", "did you mean MW-FED")),
        (("--results", "/nowhere/at/all.sqlite"), ("/nowhere/at",)),
        (("--results", "tiny.toml"), ("tiny.toml",)),
    ],
)
def test_an_option_at_fault_is_refused_before_anything_is_trained(
    options: tuple[str, ...], words: tuple[str, ...], tiny: Path
) -> None:
    write(tiny.with_name("plan.json"), {"contributions": [33, 1]})
    assert_refused(run("audit", tiny, *options), *words)
    assert not Path("fedaccord.sqlite").exists() or sqlite_runs(Path("fedaccord.sqlite")) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "none.toml"), ("none.toml",)),
        (("train", "BAD"), ("bad.toml", "[training]", "batchsize", "batch_size")),
        (("audit", "BAD"), ("bad.toml", "[training]", "batchsize", "batch_size")),
        (("train", "TINY", "--algorithm", "Sole"), ("'Sole'", "did you mean Solo")),
        (("train", "TINY", "--trial", "-1"), ("--trial",)),
        (("train", "TINY", "--seed", "-1"), ("--seed",)),
        (("train", "TINY", "--save", "history.txt"), (".csv",)),
        (("train", "TINY", "--save", "/nowhere/h.csv"), ("/nowhere",)),
        (("train", "TINY", "--contributions", "none.csv"), ("none.csv",)),
        (("train", "TINY", "--contributions", "PLAN", "--save", "PLAN"), ("overwrite",)),
        (("train", "TINY", "--contributions", "PLAN"), ("north", "it has 32")),
        (("difficulty", "TINY", "--method", "guess"), ("--method",)),
        (("difficulty", "TINY", "--method", "loss", "--trials", "3"), ("trials",)),
        (("difficulty", "TINY", "--trials", "0"), ("--trials",)),
        (("difficulty", "TINY", "--save", "scores.csv"), (".npz",)),
        (("pretrain", "TINY", "--save", "weights.pt"), (".npz",)),
        (("search", "TINY", "--draws", "0"), ("--draws",)),
        (("search", "TINY", "--epochs", "0"), ("--epochs",)),
        (("search", "TINY", "--results", "/nowhere/s.sqlite"), ("/nowhere",)),
    ],
)
def test_a_wrong_argument_of_the_other_commands_is_refused(
    arguments: tuple[str, ...], words: tuple[str, ...], tiny: Path
) -> None:
    files = {
        "TINY": tiny,
        "BAD": write(tiny.with_name("bad.toml"), "[training]\nbatchsize = 3"),
        "PLAN": write(tiny.with_name("plan.csv"), "contribution\n33\n1\n"),
    }
    assert_refused(run(*(files.get(a, a) for a in arguments)), *words)


def test_an_agent_without_data_is_named(tiny: Path) -> None:
    assert_refused(run("train", changed(tiny, "points = 40", "points = [40, 0]")), "south", "data")


def test_names_are_shown_as_they_are_written(tiny: Path) -> None:
    hostile = changed(tiny, '"north"', r'"[bold]\u001b[31mnorth\u202e"')
    for arguments in (("train", hostile), ("audit", hostile, "--workers", 1, "--trials", 1)):
        result = run(*arguments)
        assert_visible(result.stdout + result.stderr)
        assert "[bold]" in result.stdout


# Interrupted.


def sqlite_runs(file: Path) -> int:
    """Count the runs in a file that another process may be writing."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
            return int(store.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "workers"), [(signal.SIGINT, 1), (signal.SIGKILL, 2)])
def test_an_audit_that_is_stopped_goes_on_to_the_same_table(
    sent: signal.Signals, workers: int, tiny: Path
) -> None:
    if workers > len(os.sched_getaffinity(0)):
        pytest.skip("needs two cores")
    # Runs of 4 rounds take milliseconds: all could be finished before a busy machine looks again.
    slower = changed(tiny, "rounds = 4", "rounds = 300")
    arguments = ("audit", str(slower), "--json", "--trials", "12", "--workers")
    process = subprocess.Popen(
        [sys.executable, "-m", "fedaccord", *arguments, str(workers)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    store = Path("fedaccord.sqlite")
    while sqlite_runs(store) < 5 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(sent)
    stdout, stderr = process.communicate(timeout=60)
    skip_if_absent(stderr)
    assert stdout == ""
    kept = sqlite_runs(store)
    assert 5 <= kept < 12 * RUNS_A_TRIAL
    if sent is signal.SIGINT:
        assert process.returncode == 130
        assert stderr == (
            f"fedaccord: {12 * RUNS_A_TRIAL} runs to make.\n"
            f"fedaccord: interrupted: {kept} finished runs are stored in fedaccord.sqlite; the "
            "same command continues from there.\n"
        )
    again = run(*arguments, 1)
    assert again.code == 0
    assert again.stderr.endswith(
        f"{12 * RUNS_A_TRIAL} runs are stored in fedaccord.sqlite; {kept} of them were there "
        "already.\n"
    )
    whole = run(*arguments, 1, "--results", "whole.sqlite")
    assert without_seconds(again) == without_seconds(whole)


# What comes before training.


def test_difficulty_is_told_and_saved_for_a_config(tiny: Path) -> None:
    result = run("difficulty", tiny, "--save", "scores.npz")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.split()[:3] == ["difficulty", "by", "loss"]
    assert "1,637" in result.stdout
    before = run("train", tiny, "--json")
    with_scores = changed(tiny, "batches = 5", 'scores = "scores.npz"')
    assert (
        json.loads(run("train", with_scores, "--json").stdout)["loss"]
        == json.loads(before.stdout)["loss"]
    )


def test_difficulty_by_trials_goes_on(tiny: Path) -> None:
    small = changed(
        tiny, "batches = 5\nholdout = 20", 'method = "trials"\npoints = 30\ncap = 4\nlook_every = 2'
    )
    few = json.loads(run("difficulty", small, "--trials", 2, "--json").stdout)
    assert (few["method"], few["provenance"]["trials"]) == ("trials", 2)
    more = json.loads(run("difficulty", small, "--trials", 4, "--json").stdout)
    assert more["provenance"]["trials"] == 4
    assert list(more["summary"]) == ["points", "mean", "sd", "least", "most"]
    (kept,) = Path("fedaccord.cache").glob("trials-*.sqlite")
    with contextlib.closing(sqlite3.connect(kept)) as store:
        assert store.execute("SELECT count(*) FROM trials").fetchone() == (4,)


def test_weights_are_made_and_saved_for_a_config(tiny: Path) -> None:
    found = json.loads(run("pretrain", tiny, "--save", "weights.npz", "--json").stdout)
    assert found["batches"] == 8
    assert 0 <= found["accuracy"] <= 1
    assert "accuracy" in run("pretrain", tiny).stdout
    with_weights = changed(tiny, "batches = 8", 'weights = "weights.npz"')
    runs = [json.loads(run("train", file, "--json").stdout) for file in (tiny, with_weights)]
    assert runs[0]["loss"] == runs[1]["loss"]
    without = changed(tiny, "batches = 8", "batches = 0")
    assert_refused(run("pretrain", without), "[pretraining] batches")
    assert json.loads(run("train", without, "--json").stdout)["loss"] != runs[0]["loss"]


def test_a_search_lists_its_draws_the_best_first(tiny: Path) -> None:
    options = ("--draws", 4, "--epochs", 1, "--results", "search.sqlite")
    draws = json.loads(run("search", tiny, *options, "--json").stdout)["draws"]
    assert list(draws[0]) == ["learning_rate", "batch_size", "accuracy", "batches"]
    found = [draw["accuracy"] for draw in draws]
    assert found == sorted(found, reverse=True)
    shown = [line for line in run("search", tiny, *options).stdout.splitlines() if "e-" in line]
    assert [float(line.split()[-1]) for line in shown] == [
        pytest.approx(a, abs=1e-4) for a in found
    ]


def test_help_tells_of_every_command() -> None:
    text = run("--help").stdout
    words = " ".join(text.split())
    assert "0 for success, 1 if the answer is no, and 2 if the input has an error." in words
    for command in ("audit", "train", "difficulty", "pretrain", "search"):
        assert command in text
        assert "--json" in run(command, "--help").stdout


def test_a_missing_native_block_is_told_once(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDACCORD_NATIVE", "0")
    assert run("train", tiny).stderr == ""
    paper = changed(tiny, "[training]", '[model]\nname = "paper"\n[training]')
    told, fault = run("train", paper).stderr.splitlines()
    assert "the native block is switched off by FEDACCORD_NATIVE" in told
    assert "28 x 28" in fault


def test_the_built_in_federation_needs_no_config_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("train")
    assert (result.code, result.stderr) == (0, "")
    assert "After 40 rounds of FedAvg, all agents reach their goals." in result.stdout
    assert list(tmp_path.iterdir()) == []
