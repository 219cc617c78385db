"""The worlds that a game may carry: they survive its file, and follow its agents and goals."""

import json

import numpy as np
import pytest

from fedaccord.errors import InputError
from fedaccord.games.chances import Chances, Fading
from fedaccord.games.files import game_from_dict, read_game, write_game
from fedaccord.games.measured import MeasuredGame

RNG = np.random.default_rng(3)
WORLDS, AGENTS = 5, 3
BENEFITS = RNG.uniform(0.1, 0.8, (WORLDS, AGENTS, AGENTS))
BENEFITS[:, range(AGENTS), range(AGENTS)] = 1.0
CURVES = np.tile([0.05, 2.0, 20.0, 0.45], (WORLDS, AGENTS, 1)) * RNG.uniform(
    0.9, 1.1, (WORLDS, AGENTS, 4)
)
GIVEN = np.array([60.0, 90.0, 150.0])


def make_game(**changes):
    chances = Chances(
        np.zeros(AGENTS),
        RNG.uniform(0.01, 0.02, (WORLDS, AGENTS)),
        BENEFITS,
        CURVES,
        finishing=0.9,
        measuring=np.array([0.01, 0.02, 0.03]),
        doubts=("Few pilots.",),
        probability=0.8,
        fading=Fading(0.6, usual=250.0, largest=700.0),
    )
    return MeasuredGame(
        BENEFITS.mean(axis=0),
        CURVES.mean(axis=0),
        [0.7, 0.75, 0.7],
        agents=["A", "B", "C"],
        chances=chances,
        **changes,
    )


def test_a_file_keeps_the_probabilities_to_the_last_bit(tmp_path):
    game = make_game()
    write_game(game, tmp_path / "game.json")
    again = read_game(tmp_path / "game.json")
    for judged in ("true", "measured"):
        before, after = (one.chances.replace(judged=judged) for one in (game, again))
        assert (before.everyone(GIVEN) == after.everyone(GIVEN)).all()
    assert again.to_dict() == game.to_dict()
    assert (again.chances.doubts, again.chances.probability) == (("Few pilots.",), 0.8)


def test_training_scatters_more_in_smaller_runs_and_measuring_does_not():
    chances = make_game().chances.replace(judged="measured")
    scale = (250 / 100) ** 0.3
    assert chances.noise(250.0) == pytest.approx(np.hypot(chances.training, chances.measuring))
    expected = np.hypot(scale * chances.training, chances.measuring)
    assert chances.noise(100.0) == pytest.approx(expected)


def test_a_defector_is_judged_in_a_run_without_what_it_keeps():
    chances = make_game().chances.replace(goals=np.array([0.7, 0.75, 0.7]))
    for agent in range(AGENTS):
        cut = np.array(GIVEN)
        cut[agent] *= 0.25
        alone = chances.satisfied(cut)[:, agent].mean()
        assert chances.could_cut(GIVEN, 0.25)[agent] == pytest.approx(alone)


@pytest.mark.parametrize(
    "fading",
    [5, {"rate": 0.5}, {"rate": -1, "usual": 1, "largest": 1},
     {"rate": 2, "usual": 1, "largest": 1}, {"rate": 0.5, "usual": 0, "largest": 1},
     {"rate": "x", "usual": 1, "largest": 1}],
)  # fmt: skip
def test_a_wrong_fading_is_refused(fading):
    data = make_game().to_dict()
    data["chances"]["fading"] = fading
    with pytest.raises(InputError, match='"fading" in "chances" must have'):
        game_from_dict(data)


def test_a_file_without_worlds_is_a_game_of_which_only_averages_are_known():
    data = make_game().to_dict()
    del data["chances"]
    assert game_from_dict(data).chances is None


def test_being_measured_once_is_less_certain_than_being_good():
    """Above the goal more scatter means more runs that miss it."""
    chances = make_game().chances
    ahead = (chances.accuracies(2 * GIVEN) > chances.goals).all()
    measured = chances.replace(judged="measured")
    assert ahead and (measured.everyone(2 * GIVEN) < chances.everyone(2 * GIVEN)).all()


def test_the_worlds_have_the_goals_of_the_game():
    game = make_game()
    higher = game.replace(goals=game.goals + 0.05)
    assert (higher.chances.goals == game.goals + 0.05).all()
    assert (higher.chances.everyone(GIVEN) < game.chances.everyone(GIVEN)).all()


def test_an_agent_that_leaves_takes_its_data_along():
    game = make_game()
    left = game.without(1)
    with_nothing = game.chances.satisfied(np.array([60.0, 0.0, 150.0]))[:, [0, 2]]
    assert left.chances.satisfied(np.array([60.0, 150.0])) == pytest.approx(with_nothing)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("version", 99, "version 1"),
        ("judged", "kindly", '"judged" in "chances" must be "true" or "measured"'),
        ("finishing", 1.5, '"finishing" in "chances" must be a number from 0 to 1'),
        ("probability", "high", '"probability" in "chances"'),
        ("doubts", "few", '"doubts" in "chances"'),
        ("training", [], '"training" in "chances"'),
        ("training", [[0.1, 0.1]], "of 3 numbers"),
        ("measuring", [0.1], '"measuring" in "chances"'),
        ("curves", [[0.1] * 12], "5 rows of 12 numbers"),
        ("benefits", [[-1.0] * 9] * 5, "0 or more"),
        ("benefits", "a lot", '"benefits" in "chances"'),
    ],
)
def test_worlds_that_are_not_right_are_refused_with_a_sentence(tmp_path, key, value, sentence):
    data = make_game().to_dict()
    data["chances"][key] = value
    (tmp_path / "game.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"game\.json: ") as error:
        read_game(tmp_path / "game.json")
    assert sentence in str(error.value)


def test_what_is_no_object_is_refused():
    data = make_game().to_dict() | {"chances": [1, 2]}
    with pytest.raises(InputError, match='"chances" must be an object'):
        game_from_dict(data)
