"""Answers of the app without a browser."""

import numpy as np
import pytest

from fedaccord import LinearGame
from fedaccord.errors import InputError
from fedaccord.explore.desk import KEPT, Desk, Subject
from fedaccord.explore.state import State

GAME = LinearGame(
    [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]],
    [1440, 1440, 930],
    agents=("University", "City", "Rural"),
)


def test_a_plan_stands_though_there_is_none_to_compare_with(monkeypatch):
    desk = Desk(Subject(GAME))
    answer = desk._answer

    def refuse(problem):
        if not problem.left:
            raise InputError("there is no plan with all")
        return answer(problem)

    monkeypatch.setattr(desk, "_answer", refuse)
    found = desk.answer(State.read("left=1"))
    assert found.whole is None and found.contributions == pytest.approx([1440, 0])


def test_answers_are_forgotten_when_there_are_many():
    desk = Desk(Subject(GAME))
    for number in range(KEPT + 20):
        desk.answer(State.read(f"keep=0:{number / 1000}"))
    assert len(desk._answers) <= KEPT


@pytest.mark.parametrize("share", [0.29, 0.57, 0.58, 0.25])
def test_a_part_of_whole_samples_is_what_it_says(share):
    whole = GAME.replace(strategies="integer")
    desk = Desk(Subject(whole))
    state = State.read(f"give=0:100&cut=0:{share}")
    assert desk.answer(state).put(state)[0] == np.floor(round(100 * share, 6))


def test_an_audit_that_fails_is_not_said_to_be_stopped(tmp_path):
    watch = pytest.importorskip("fedaccord.explore.watch")
    auditor = watch.Auditor(str(tmp_path / "x.sqlite"), ["audit", str(tmp_path / "none.toml")])
    auditor.resume()
    auditor._process.wait(60)
    said = watch.Watch(auditor, State())._describe(())
    assert "failed (exit code 2)" in said and "stopped" not in said
