"""The training for the paper's claims, made in parts on several machines and merged."""

import dataclasses
import json
import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import assert_refused, run, write
from federation.made_up import AnyEngine
from federation.tiny import tiny_audit
from processes import (
    make_in_spite_of_a_kill,
    make_parts_in_spite_of_kills,
    merge_in_any_order,
)

from fedaccord.federation.config.load import Config
from fedaccord.federation.data import difficulty as trials
from fedaccord.federation.runs import execute
from fedaccord.federation.runs.execute import LocalEngine, Source
from fedaccord.federation.runs.store import Run
from fedaccord.reproduce import experiment, section_6_difficulty
from fedaccord.reproduce import run as running
from fedaccord.reproduce.claims import Setting, Unavailable

# An audit, two claims of other runs, and work in pieces of which later ones depend on earlier ones.
CLAIMS = ("solo-levels", "solo-half", "defection", "difficulty")
COMMAND = ["reproduce", "--workers", 1, *(word for id in CLAIMS for word in ("--only", id))]


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment with two agents and few trials, in the current folder."""
    monkeypatch.chdir(tmp_path)
    read = Config.load(write(tmp_path / "tiny.toml", tiny_audit(trials=4)))
    config = experiment.with_section(read, "audit", levels=(1.0, 0.25), defectors="random")
    monkeypatch.setattr(Config, "default", classmethod(lambda cls: config))
    monkeypatch.setattr("fedaccord.reproduce.section_6_solo.LEVELS", (1.0, 0.5))
    few = dataclasses.replace(section_6_difficulty.DIGITS, trials=6, fresh=2, holdout=50)
    monkeypatch.setattr(section_6_difficulty, "DIGITS", few)


def result_of(command: Sequence[Any]) -> Any:
    """Return a command's result, times aside."""
    done = run(*command, "--json")
    assert done.code in (0, 1), done.stderr
    found = json.loads(done.stdout)
    for part in (found, *found["rows"]):
        del part["seconds"]
    return found


@pytest.mark.slow
def test_ten_parts_that_are_killed_and_merged_in_any_order_are_one_reproduction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = result_of([*COMMAND, "--out", "unbroken"])
    started, ours = time.monotonic(), random.Random(0)
    assert not make_in_spite_of_a_kill([*COMMAND, "--part", "1/10"], math.inf)
    seconds = time.monotonic() - started
    make_parts_in_spite_of_kills(COMMAND, range(2, 11), 10, seconds, ours)
    parts = [f"reproduction.part-{i}-of-10" for i in range(1, 11)]
    merge_in_any_order(parts, "reproduction", ours)
    monkeypatch.setitem(execute.ENGINES, "local", Untrained())
    monkeypatch.setattr(trials, "run_trial", None)
    assert result_of(COMMAND) == whole


def test_a_merge_says_which_parts_of_a_reproduction_are_missing() -> None:
    command = ["reproduce", "--workers", 1, "--only", "solo-levels"]
    for i in (1, 3):
        done = run(*command, "--part", f"{i}/3", "--out", "v1.0")
        assert (done.code, done.stdout) == (0, ""), done.stderr
    assert (
        "'fedaccord merge v1.part-*-of-3.0 --into v1.0', and give this command again without "
        "--part." in done.stderr
    )
    parts = [f"v1.part-{i}-of-3.0" for i in (1, 3)]
    assert not Path("v1.0").exists()
    done = run("merge", *parts, "--into", "v1.0")
    assert (done.code, "one part is missing or unfinished: 2 of 3" in done.stderr) == (0, True)
    assert_refused(run("merge", *parts, "tiny.toml", "--into", "v1.0"), "no folder tiny.toml")
    Path("empty").mkdir()
    assert_refused(run("merge", "empty", "--into", "v1.0"), "no runs yet")
    assert_refused(run("merge", *parts, "--into", "tiny.toml"), "tiny.toml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--part", "4/3"), "a part must be a number from 1"),
        (("--part", "1/3", "--out", ""), "--out is empty"),
        (("--part", "1/3", "--out", "."), "a name of its own"),
        (("--part", "1/3", "--only", "theorem-7"), "need no training; leave --part out"),
        (("--part", "1/3", "--only", "theorem-0"), "there is no claim 'theorem-0'"),
        (("--part", "1/3", "--out", "tiny.toml/below"), "cannot write to --out"),
    ],
)
def test_a_part_that_cannot_be_made_is_refused_and_leaves_no_runs(
    arguments: tuple[str, ...], words: str
) -> None:
    assert_refused(run("reproduce", *arguments), words)
    assert not list(Path().rglob("*.sqlite"))


def test_a_part_without_its_data_is_no_finished_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(setting: Setting) -> None:
        raise Unavailable("there are no images")

    known = running.all_claims()
    lost = dataclasses.replace(known["solo-levels"], check=missing)
    monkeypatch.setattr(running, "all_claims", lambda: {**known, "solo-levels": lost})
    assert_refused(run(*COMMAND, "--part", "1/1"), "there are no images")
    done = run("merge", "reproduction.part-1-of-1", "--into", "reproduction")
    assert "one part is missing or unfinished: 1 of 1" in done.stderr


def test_the_requested_engine_makes_the_runs_of_audits_and_of_agents_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["reproduce", "--only", "solo-levels", "--only", "defection"]
    here = result_of([*command, "--workers", 1, "--out", "here"])
    asked = []

    def make(source: Source, *, workers: int | None, address: str | None) -> LocalEngine:
        asked.append((workers, address))
        return LocalEngine(source)

    monkeypatch.setitem(execute.ENGINES, "local", Untrained())
    monkeypatch.setitem(execute.ENGINES, "ray", make)
    assert result_of([*command, "--engine", "ray"]) == here
    assert asked == [(None, None)] * 2
    # Parts too.
    done = run(*command, "--engine", "ray", "--workers", 2, "--part", "1/1")
    assert (done.code, asked[2:]) == (0, [(2, None)] * 2), done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--address", "auto"), "--address needs --engine ray"),
        (("--engine", "slurm"), "--engine must be one of local, flower, ray"),
        (("--engine", "ray", "--address", "a"), "host:port"),
        (("--engine", "ray", "--workers", "0"), "1 or more"),
    ],
)
def test_an_engine_that_cannot_be_had_is_refused_before_any_work(
    arguments: tuple[str, ...], words: str
) -> None:
    assert_refused(run("reproduce", *arguments), words)
    assert not Path("reproduction").exists()


class Untrained(AnyEngine):
    """Fails at the first run that is not there."""

    def finished(self, runs: Iterable[Run]) -> Iterator[Any]:
        assert not list(runs)
        return iter(())
