"""Games of several goals per agent: what goals mean, and which are refused."""

import numpy as np
import pytest

from fedaccord.check import Answer, check
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.goals import MEASURES, Goal, GoalsGame, LossCurve
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import LearningCurve

RISING = LearningCurve(0.05, 1.0, 1.0, 0.5)
FALLING = LossCurve(0.2, 4.0, 1.0, 0.5)


def two_agents(**frame):
    goals = [
        Goal("City", "sensitivity", [1, 0.5], 10),
        Goal("North", "accuracy", [0.25, 1], 6),
        Goal("City", "specificity", [1, 1], 14),
    ]
    return GoalsGame(goals, agents=["City", "North"], **frame)


def test_goals_lie_together_agent_by_agent():
    game = two_agents()
    assert [goal.name for goal in game.goals] == ["sensitivity", "specificity", "accuracy"]
    assert game.owners.tolist() == [0, 0, 1]
    assert list(game.goals_of(0)) == [0, 1]


def test_a_best_response_is_the_most_that_a_goal_asks():
    game = two_agents()
    # Sensitivity: 10 - 0.5 * 4 = 8; specificity: 14 - 4 = 10.
    assert game.best_responses(np.array([0.0, 4.0])).tolist() == [10.0, 6.0]
    # Sensitivity: 10 - 6 = 4; specificity: 14 - 12 = 2.
    assert game.best_responses(np.array([0.0, 12.0])).tolist() == [4.0, 6.0]
    assert game.alone.tolist() == [14.0, 6.0]


def test_the_goal_that_binds_has_least_to_spare():
    game = two_agents()
    assert game.binding_goals(np.array([10.0, 4.0])).tolist() == [1, 2]
    assert game.binding_goals(np.array([4.0, 12.0])).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("given", "feasible"), [([10, 4], True), ([8, 4], False), ([2, 12], False), ([4, 12], True)]
)
def test_the_check_objects_to_a_plan_that_misses_one_of_two_goals(given, feasible):
    found = check(two_agents(), given)
    assert (found.feasible is Answer.TRUE) is feasible


def test_the_check_names_the_goal_that_binds_and_the_one_that_is_missed():
    assert 'Its goal "specificity" asks most of it' in check(two_agents(), [10, 4]).explain("City")
    assert 'Its goal "sensitivity" asks most of it' in check(two_agents(), [4, 12]).explain("City")
    missed = check(two_agents(), [2, 12])
    assert missed.sentence() == (
        'Not feasible: City is short by 2 samples of its goal "sensitivity".'
    )
    assert "Its goal" not in missed.explain("North")


def test_machines_get_goal_by_goal():
    goals = check(two_agents(), [10, 4]).to_dict()["goals"]
    assert [goal["reaches"] for goal in goals] == [12.0, 14.0, 6.5]
    assert [goal["spare"] for goal in goals] == [2.0, 0.0, 0.5]
    assert [goal["binds"] for goal in goals] == [False, True, False]


def test_over_whole_numbers_a_goal_binds_if_one_sample_less_would_miss_it():
    game = two_agents(strategies="integer")
    # At (11, 4) City has one sample to spare, at (10, 4) none; North has less than one at both.
    assert check(game, [11, 4]).binding == {2}
    assert check(game, [10, 4]).binding == {1, 2}


def test_one_goal_per_agent_is_a_linear_game_in_samples_of_its_own():
    benefits = np.array([[2, 0.5, 0], [0.25, 1, 0.5], [0, 1, 4]])
    needs = [4.0, 3.0, 8.0]
    linear = LinearGame(benefits, needs)
    game = GoalsGame([Goal(i, "accuracy", benefits[i], needs[i]) for i in range(3)])
    for given in np.random.default_rng(0).uniform(0, 4, (20, 3)):
        assert game.best_responses(given) == pytest.approx(linear.best_responses(given))
        assert game.utilities(given) == pytest.approx(linear.utilities(given) / linear.own_benefits)
        assert game.satisfied(given).tolist() == linear.satisfied(given).tolist()


# Goals in the units of a measure.


@pytest.mark.parametrize("measure", [name for name, part in MEASURES.items() if part.rises])
def test_what_rises_is_wanted_at_least(measure):
    goal = Goal(0, "g", [1], measure=measure, at_least=0.85, curve=RISING)
    assert goal.need == pytest.approx(99)  # 0.05 + 100^(-1/2) = 0.15
    assert goal.reach(99) == pytest.approx(0.85)


@pytest.mark.parametrize("measure", [name for name, part in MEASURES.items() if not part.rises])
def test_what_falls_is_wanted_at_most(measure):
    goal = Goal(0, "g", [1], measure=measure, at_most=0.6, curve=FALLING)
    assert goal.need == pytest.approx(99)  # 0.2 + 4 / 10 = 0.6
    assert goal.reach(99) == pytest.approx(0.6)


def test_a_loss_above_one_is_a_goal_too():
    goal = Goal(0, "years", [1], measure="mae", at_most=4.0, curve=LossCurve(3.0, 10.0, 0.0, 0.5))
    assert goal.measure == "MAE"
    assert goal.need == pytest.approx(100)
    assert goal.wish == "at most 4"


def test_a_goal_that_is_reached_from_the_start_needs_nothing():
    assert Goal(0, "g", [1], measure="log loss", at_most=9.0, curve=FALLING).need == 0.0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "is empty"),
        ({"requirement": -1}, "negative requirement"),
        ({"requirement": 1, "curve": RISING}, "a requirement and a curve"),
        ({"requirement": 1, "at_least": 0.5}, 'both "requirement" and "at_least"'),
        ({"measure": "AUC", "at_least": 0.8, "at_most": 0.9}, 'both "at_least" and "at_most"'),
        ({"at_least": 0.8, "curve": RISING}, "names no measure"),
        ({"measure": "acuracy", "at_least": 0.8, "curve": RISING}, "did you mean accuracy?"),
        ({"measure": "F1", "at_least": 0.8, "curve": RISING}, "give one of accuracy,"),
        (
            {"measure": "accuracy", "at_most": 0.8, "curve": RISING},
            'rises with more data: give "at',
        ),
        ({"measure": "Brier", "at_least": 0.1, "curve": FALLING}, 'falls with more data: give "at'),
        ({"measure": "accuracy", "at_least": 90, "curve": RISING}, "write 0.9 for 90 %"),
        ({"measure": "accuracy", "at_least": 1, "curve": RISING}, "is 1: give a number from 0"),
        ({"measure": "R2", "at_least": -0.2, "curve": RISING}, "is -0.2: give a number from 0"),
        ({"measure": "MAE", "at_most": 0, "curve": FALLING}, "is 0: give a number above 0"),
        ({"measure": "Brier", "at_most": 3, "curve": FALLING}, "above 0 and at most 2"),
        ({"measure": "accuracy", "at_least": 0.8}, "has no curve: give a LearningCurve"),
        ({"measure": "MAE", "at_most": 0.8, "curve": RISING}, "give a LossCurve"),
        ({"measure": "AUC", "at_least": float("nan"), "curve": RISING}, "must be a number"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(wrong, said):
    with pytest.raises(InputError, match='the goal "over 75" of City') as error:
        Goal("City", "over 75", [1], **wrong)
    assert said in str(error.value)


def test_a_goal_beyond_its_curve_is_out_of_reach():
    with pytest.raises(UnreachableError, match=r"stays at or below 0\.95"):
        Goal(0, "g", [1], measure="accuracy", at_least=0.96, curve=RISING)
    with pytest.raises(UnreachableError, match=r"stays at or above 0\.2"):
        Goal(0, "g", [1], measure="log loss", at_most=0.2, curve=FALLING)


@pytest.mark.parametrize(
    ("goals", "said"),
    [
        ([], "a list of Goal"),
        ([Goal("City", "a", [1, 0], 1)], "North has no goal"),
        ([Goal("City", "a", [1, 0], 1), Goal("Nort", "a", [0, 1], 1)], "did you mean North?"),
        (
            [Goal("City", "a", [1, 0], 1), Goal(7, "a", [0, 1], 1)],
            "belongs to no agent of the game",
        ),
        ([Goal("City", "a", [1, 0, 2], 1)], "has 3 benefits, and needs 2"),
        ([Goal(0, "a", [1, 0], 1), Goal(0, "a", [1, 0], 2), Goal(1, "a", [0, 1], 1)], "twice"),
        ([Goal("City", "a", [0, 1], 1), Goal("North", "a", [0, 1], 1)], "gains nothing"),
        ([Goal("City", "a", [1, 1e13], 1), Goal("North", "a", [0, 1], 1)], "correct the units"),
    ],
)
def test_goals_that_make_no_game_are_refused(goals, said):
    with pytest.raises(InputError) as error:
        GoalsGame(goals, agents=["City", "North"])
    assert said in str(error.value)


def test_a_game_without_an_agent_drops_its_goals_and_its_benefits():
    game = two_agents().without(0)
    assert [goal.title for goal in game.goals] == ['the goal "accuracy" of North']
    assert game.rows.tolist() == [[1.0]]
    assert two_agents(limits=[20, 5]).replace(strategies="integer").limits.tolist() == [20, 5]
