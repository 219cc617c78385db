"""Files of games of several goals and of harm: read, written, read again, and refused."""

import copy
import json

import numpy as np
import pytest
import scipy.sparse
from commands import run
from row_games import draw_goals_game, draw_signed_game

from fedaccord.errors import InputError
from fedaccord.games.files import game_from_dict, read_game, write_game

CURVE = {"floor": 0.05, "height": 1, "head": 1, "pace": 0.5}
GOALS = {
    "model": "goals",
    "agents": ["City", "North"],
    "goals": [
        {"agent": "City", "name": "over 75", "requirement": "20/2", "benefits": [1, "1/2"]},
        {
            "agent": "City",
            "name": "all",
            "measure": "sensitivity",
            "at_least": 0.85,
            "curve": CURVE,
            "benefits": [1, 1],
        },
        {
            "agent": "North",
            "name": "all",
            "measure": "log loss",
            "at_most": 0.3,
            "curve": {"floor": 0.1, "height": 2, "head": 0, "pace": 0.5},
            "benefits": [-0.25, 1],
        },
    ],
    "limits": [None, 300],
}
SIGNED = {"model": "signed", "requirements": [1, 1], "benefits": [[1, -0.5], ["-1/4", 1]]}


def test_a_file_of_goals_is_read_with_its_needs():
    game = game_from_dict(GOALS)
    assert game.needs == pytest.approx([10, 99, 100])
    assert game.rows.tolist() == [[1, 0.5], [1, 1], [-0.25, 1]]
    assert game.limits.tolist() == [np.inf, 300]
    assert not game.is_monotone


def test_a_file_with_harm_is_read_with_its_signs():
    assert game_from_dict(SIGNED).benefits.tolist() == [[1, -0.5], [-0.25, 1]]


@pytest.mark.parametrize("draw", [draw_goals_game, draw_signed_game])
def test_what_is_written_is_read_again(draw, tmp_path):
    for seed in range(30):
        game = draw(np.random.default_rng(seed), whole=seed % 2 == 0)
        write_game(game, tmp_path / "game.json")
        again = read_game(tmp_path / "game.json")
        assert again.to_dict() == game.to_dict()
        for name in ("rows", "needs", "owners", "requirements", "limits", "minimums", "costs"):
            assert getattr(again, name).tolist() == getattr(game, name).tolist()


def test_goals_with_measures_are_written_with_them():
    game = game_from_dict(GOALS)
    assert game_from_dict(game.to_dict()).needs.tolist() == game.needs.tolist()
    assert game.to_dict()["goals"][1] == GOALS["goals"][1]


def goal(place, **changes):
    """Return the file with one goal changed; None drops a key."""
    data = copy.deepcopy(GOALS)
    kept = {**data["goals"][place], **changes}
    data["goals"][place] = {key: value for key, value in kept.items() if value is not None}
    return data


FAULTS = {
    "no goals": ({**GOALS, "goals": []}, '"goals" is empty'),
    "no list": ({**GOALS, "goals": {}}, '"goals" must be a list; got an object'),
    "a name that is a number": (goal(0, name=4), 'the "name" of goal 0 in "goals" is a number'),
    "names and no agents": ({**GOALS, "agents": None}, "belongs to no agent of the game"),
    "no agent at all": ({**GOALS, "agents": []}, "a game needs at least one agent"),
    "a number": ({**GOALS, "goals": [3]}, 'goal 0 in "goals" must be an object'),
    "an agent without": ({**GOALS, "goals": GOALS["goals"][:2]}, "North has no goal"),
    "an unknown key": (goal(0, atleast=3), "unknown key 'atleast'; did you mean at_least?"),
    "no name": (goal(0, name=None), 'has no "name"; add it'),
    "no benefits": (goal(0, benefits=None), 'has no "benefits"; add it'),
    "an unknown agent": (
        goal(0, agent="Citi"),
        "belongs to no agent of the game; did you mean City?",
    ),
    "short benefits": (goal(0, benefits=[1]), "has 1 benefits, and needs 2"),
    "a word": (goal(0, benefits=[1, "much"]), 'column 1 of goal 0 in "goals" is "much"'),
    "empty": (goal(0, requirement=None), "is empty: give its"),
    "a wrong number": (goal(0, requirement="x"), '"requirement" of goal 0'),
    "contradiction": (goal(1, at_most=0.9), 'has both "at_least" and "at_most"'),
    "twice": (goal(1, name="over 75"), "is listed twice"),
    "beyond one": (goal(1, at_least=1.2), "write 0.012 for 1.2 %"),
    "per cent": (goal(1, at_least=85), "write 0.85 for 85 %"),
    "out of reach": (goal(1, at_least=0.97), "stays at or below 0.95"),
    "unknown measure": (goal(1, measure="sensitivty"), "did you mean sensitivity?"),
    "wrong way": (goal(1, at_least=None, at_most=0.9), 'rises with more data: give "at_least"'),
    "wrong way down": (goal(2, at_least=0.3, at_most=None), 'falls with more data: give "at_most"'),
    "no curve": (goal(1, curve=None), "has no curve"),
    "half a curve": (goal(1, curve={"floor": 0}), "must be an object with floor, height"),
    "a bad curve": (goal(1, curve={**CURVE, "pace": 0}), "the pace of a learning curve"),
    "requirements": ({**GOALS, "requirements": [1, 1]}, 'the key "requirements" is not known'),
    "own harm": ({**SIGNED, "benefits": [[-1, 0], [0, 1]]}, "gains nothing from its own samples"),
    "harm in linear": ({**SIGNED, "model": "linear"}, 'use a SignedGame (model "signed")'),
    "negative need": ({**SIGNED, "requirements": [-1, 1]}, "negative"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_file_ends_with_a_sentence_and_exit_code_2(fault, tmp_path):
    data, said = FAULTS[fault]
    with pytest.raises(InputError):
        game_from_dict(data)
    path = tmp_path / "game.json"
    path.write_text(json.dumps(data))
    done = run("solve", path)
    assert done.code == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_kept_data_of_goals_is_refused_before_holdings_are_wanted(tmp_path):
    path = tmp_path / "game.json"
    path.write_text(json.dumps(GOALS))
    done = run("solve", path, "--kept-worth", "0.5")
    assert done.code == 2
    assert "kept data needs a linear or measured game" in done.stderr


@pytest.mark.parametrize(("size", "code"), [(2, 0), (2_000, 2)])
def test_harm_in_a_sparse_matrix_is_read_or_refused_with_a_sentence(size, code, tmp_path):
    harm = scipy.sparse.eye_array(size) - scipy.sparse.eye_array(size, k=1) / 2
    scipy.sparse.save_npz(tmp_path / "harm.npz", harm.tocsr())
    game = {"model": "signed", "requirements": [1] * size, "benefits": "harm.npz"}
    (tmp_path / "game.json").write_text(json.dumps(game))
    done = run("solve", tmp_path / "game.json", "--concept", "stable", "--json")
    assert done.code == code
    if code:
        assert "a signed game has up to 1,000 agents, and this one has 2,000" in done.stderr
    else:
        assert json.loads(done.stdout)["solutions"]["stable"]["contributions"] == [1.5, 1]


def test_right_files_end_with_exit_code_0(tmp_path):
    for name, data in (("goals", GOALS), ("signed", SIGNED)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(data))
        done = run("solve", path, "--save", tmp_path / "plan.csv")
        assert done.code == 0, done.stderr
        assert run("check", path, tmp_path / "plan.csv").code == 0


def test_groups_with_harm_end_with_exit_code_2(tmp_path):
    path = tmp_path / "game.json"
    path.write_text(json.dumps(SIGNED))
    (tmp_path / "plan.json").write_text(json.dumps({"contributions": [9, 9]}))
    done = run("check", path, tmp_path / "plan.json", "--groups", "2")
    assert done.code == 2
    assert "needs a game without harm: leave out --groups" in " ".join(done.stderr.split())
