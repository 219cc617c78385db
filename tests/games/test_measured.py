"""Measured games: a linear game underneath, goals on top."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord import (
    Answer,
    FunctionGame,
    check,
    read_game,
    solve_optimal,
    solve_stable,
    write_game,
)
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.files import game_from_dict
from fedaccord.games.measured import LearningCurve, MeasuredGame, nearest_goals

BENEFITS = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
# Needs by hand: ((1 - goal - floor) / height)^(-1 / pace) - head = (height / gap)^2 - head.
CURVES = [LearningCurve(0.05, 4, 60, 0.5)] * 2 + [LearningCurve(0.05, 3, 0, 0.5)]
GOALS = [0.85, 0.85, 0.8]
NEEDS = [40.0**2 - 60, 40.0**2 - 60, 20.0**2]


def game(**changes) -> MeasuredGame:
    given = {"agents": ["University", "City", "Rural"], **changes}
    return MeasuredGame(BENEFITS, CURVES, GOALS, **given)


def test_requirements_are_the_needs_of_the_goals() -> None:
    assert game().requirements == pytest.approx(NEEDS)
    assert game().alone == pytest.approx(NEEDS)


def test_a_margin_counts_as_a_higher_goal() -> None:
    with_margin = game(margins=[0.02, 0, 0.01])
    higher = MeasuredGame(BENEFITS, CURVES, [0.87, 0.85, 0.81])
    assert with_margin.requirements == pytest.approx(higher.requirements)
    assert with_margin.goals.tolist() == GOALS
    assert game(margins=0.01).margins.tolist() == [0.01] * 3


def test_accuracies_are_the_curves_of_effective_samples() -> None:
    theta = np.array([100.0, 200.0, 300.0])
    uneven = MeasuredGame([[1, 0.5, 0], [0.6, 1, 0.1], [0.7, 0.2, 1]], CURVES, GOALS)
    effective = [100 + 100 + 0, 60 + 200 + 30, 70 + 40 + 300]
    expected = [curve.accuracy(n) for curve, n in zip(CURVES, effective, strict=True)]
    assert uneven.accuracies(theta) == pytest.approx(expected)
    assert uneven.accuracies(np.array([theta, 0 * theta]))[0] == pytest.approx(expected)


def test_a_stable_plan_gives_contributors_exactly_their_goals() -> None:
    plan = solve_stable(game())
    theta = np.asarray(plan.allocation.contributions)
    reached = game().accuracies(theta)
    assert (reached >= np.array(GOALS) - 1e-6).all()
    assert reached[theta > 1] == pytest.approx(np.array(GOALS)[theta > 1], abs=1e-6)
    assert check(game(), plan.allocation).stable is Answer.TRUE


def test_plans_are_those_of_the_game_whose_utilities_are_accuracies() -> None:
    """The same agents without any word of linear games: accuracy in, wish for accuracy."""
    plain = FunctionGame(lambda theta: game().accuracies(theta), GOALS)
    for solve in (solve_stable, solve_optimal):
        assert solve(plain).total == pytest.approx(solve(game()).total, rel=1e-3)


def test_replace_keeps_what_is_not_replaced() -> None:
    changed = game(limits=[900, None, 900]).replace(goals=[0.8] * 3, margins=[0.01] * 3)
    assert isinstance(changed, MeasuredGame)
    assert changed.limits.tolist() == [900, np.inf, 900]
    assert changed.agents == ("University", "City", "Rural")
    assert changed.requirements == pytest.approx([c.need(0.81) for c in CURVES])
    with pytest.raises(InputError, match="give goals instead"):
        game().replace(requirements=[1, 2, 3])


def test_games_without_an_agent_keep_the_others_curves_and_goals() -> None:
    fewer = game(margins=[0, 0, 0.01], limits=[1, 2, 3], costs=[1, 2, 3]).without(0)
    assert fewer.agents == ("City", "Rural")
    assert fewer.requirements == pytest.approx([NEEDS[1], CURVES[2].need(0.81)])
    assert fewer.dense_benefits.tolist() == [[1, 0.1], [0.1, 1]]
    assert fewer.limits.tolist() == [2, 3]
    assert fewer.costs.tolist() == [2, 3]


def test_a_goal_beyond_the_curve_names_the_agent_and_the_best_it_can_have() -> None:
    with pytest.raises(UnreachableError, match=r"City wants an accuracy of 0\.96.* 0\.95"):
        MeasuredGame(BENEFITS, CURVES, [0.85, 0.96, 0.8], agents=["University", "City", "Rural"])
    with pytest.raises(UnreachableError, match=r"0\.9504, but .* stays at or below 0\.95 with"):
        MeasuredGame(BENEFITS, CURVES, [0.85, 0.9504, 0.8])
    with pytest.raises(UnreachableError, match=r"agent 1 .* aims 0\.11 above it"):
        MeasuredGame(BENEFITS, CURVES, GOALS, margins=[0, 0.11, 0])


def test_nearest_goals_are_what_all_limits_together_reach() -> None:
    limits = [100, 200, 300]
    assert game(limits=limits).nearest_goals() == pytest.approx(
        game().accuracies(np.array(limits, dtype=float))
    )
    # Whoever is helped by an agent without a limit comes as close to its best as it likes.
    assert game(limits=[100, None, 300]).nearest_goals() == pytest.approx([0.95] * 3)
    alone = nearest_goals(np.eye(2), np.array([c.row for c in CURVES[:2]]), np.array([5, np.inf]))
    assert alone == pytest.approx([CURVES[0].accuracy(5), 0.95])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"goals": [0.8, 85, 0.8]}, "goal of City is 85: write 0.85 for 85 %"),
        ({"goals": [0.8, 1, 0.8]}, "goal of City is 1"),
        ({"goals": [0.8, np.nan, 0.8]}, "goal of City is nan"),
        ({"goals": [0.8, 0.8]}, "goals must have 3 numbers"),
        ({"margins": [0, 0, 2]}, "margin of Rural is 2"),
        ({"curves": CURVES[:2]}, "goals must have 2 numbers"),
        ({"requirements": [1, 2, 3]}, "follow from its goals"),
        ({"benefits": np.eye(2)}, "3 x 3"),
        ({"benefits": [[0, 1, 1], [0, 1, 0], [0, 0, 1]]}, "University gains nothing"),
    ],
)
def test_what_makes_no_game_is_refused_by_name(changes, said: str) -> None:
    right = {"benefits": BENEFITS, "curves": CURVES, "goals": GOALS}
    with pytest.raises(InputError, match=said):
        MeasuredGame(**{**right, **changes}, agents=["University", "City", "Rural"])


def test_the_file_survives_the_round_trip(tmp_path: Path) -> None:
    there = game(margins=[0, 0.01, 0], limits=[None, 900, 1e4], costs=[1, 2, 3])
    write_game(there, tmp_path / "g.json")
    back = read_game(tmp_path / "g.json")
    assert isinstance(back, MeasuredGame)
    assert back.to_dict() == there.to_dict()
    assert "requirements" not in json.loads((tmp_path / "g.json").read_text())
    assert back.requirements.tolist() == there.requirements.tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requirements": [1, 2, 3]}, '"requirements" is not known'),
        ({"curves": None}, '"curves" must be a list'),
        ({"curves": [{"floor": 0.1}] * 3}, "curve of University .* floor, height, head, pace"),
        ({"curves": [CURVES[0].to_dict()] * 2}, '"curves" must have 3 curves'),
        (
            {"curves": [{**CURVES[0].to_dict(), "pace": "fast"}] * 3},
            'pace of University in "curves" is "fast"',
        ),
        ({"curves": [{**CURVES[0].to_dict(), "pace": 0}] * 3}, "University: the pace .* above 0"),
        ({"margins": [0, 0]}, '"margins" must have 3 numbers'),
        ({"goals": []}, '"goals" is empty'),
        ({"agents": ["a"]}, '"goals" 3 numbers'),
    ],
)
def test_faults_in_the_file_are_named(change, said: str) -> None:
    with pytest.raises(InputError, match=said):
        game_from_dict({**game().to_dict(), **change})


def test_a_linear_game_has_no_curves() -> None:
    data = {"model": "linear", "requirements": [1], "benefits": [[1]]}
    with pytest.raises(InputError, match='"curves" is not known'):
        game_from_dict({**data, "curves": [CURVES[0].to_dict()]})
    with pytest.raises(InputError, match='"goals" is missing'):
        game_from_dict({"model": "measured", "curves": [CURVES[0].to_dict()], "benefits": [[1]]})


@given(
    st.lists(st.floats(0.5, 0.9), min_size=1, max_size=4),
    st.floats(0.001, 0.9),
    st.floats(0.2, 1),
)
def test_whoever_is_satisfied_has_its_goal(goals: list[float], worth: float, pace: float) -> None:
    size = len(goals)
    benefits = np.full((size, size), worth) + (1 - worth) * np.eye(size)
    made = MeasuredGame(benefits, [LearningCurve(0.05, 2, 10, pace)] * size, goals)
    for share in (0.3, 1.0, 1.7):
        theta = share * made.requirements
        close = np.abs(made.accuracies(theta) - goals) < 1e-9
        said = made.satisfied(theta) == (made.accuracies(theta) >= goals)
        assert (said | close).all()
