"""Where there is no plan: who stands in the way, and which single change makes one possible."""

import numpy as np
import pytest

from fedaccord.equilibria.solve import solve_stable
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, find_needs
from fedaccord.planning.plan import make_plan
from fedaccord.planning.remedies import (
    MOST_SEARCHED,
    Change,
    Impasse,
    find_blocking,
    find_changes,
)
from fedaccord.planning.result import Outcome
from fedaccord.planning.sentences import write_change


def draw(seed, size):
    """Draw a game whose limits are often too small."""
    rng = np.random.default_rng(seed)
    benefits = np.where(rng.random((size, size)) < 0.5, rng.random((size, size)).round(2), 0.0)
    np.fill_diagonal(benefits, 1.0)
    needs = rng.integers(10, 40, size).astype(float)
    limits = np.floor(needs * rng.uniform(0.5, 1.3, size))
    zeros = np.zeros(size)
    return Impasse(benefits, needs, zeros, limits, np.ones(size))


def test_a_fixed_part_of_a_sample_has_its_changes_too():
    frame = {"minimums": [0, 500.5, 0], "limits": [np.inf, 500.5, np.inf]}
    game = LinearGame([[1, 0.6, 0.7], [0.6, 1, 0.1], [0.7, 0.1, 1]], [1440, 1440, 930], **frame)
    plan = make_plan(game)
    assert plan.contributions is None and plan.blocking == (1,)
    assert [(one.kind, one.old, one.new) for one in plan.changes] == [
        ("requirement", 1440, 1132),
        ("limit", 500.5, 1200),
    ]


def test_a_fixed_part_of_a_sample_is_kept_in_a_plan(tmp_path):
    game = LinearGame([[1, 0.5], [0.5, 1]], [100, 40], minimums=[0, 0.5], limits=[np.inf, 0.5])
    plan = make_plan(game)
    assert plan.contributions.tolist() == [100, 0.5] and not plan.whole
    plan.save_game(tmp_path / "game.json")


def has_plan(game):
    found = LinearGame(game.benefits, game.needs, limits=game.limits)
    return solve_stable(found).contributions is not None


def without_plan(size, number=6):
    """List games without a stable plan."""
    games = (draw(seed, size) for seed in range(200))
    return [game for game in games if not has_plan(game)][:number]


@pytest.mark.parametrize("size", [2, 3])
def test_a_raised_limit_is_the_least_whole_one_that_the_solver_has_a_plan_with(size):
    helped = 0
    for game in without_plan(size):
        found = {c.agent: c for c in find_changes(game, time_limit=10) if c.kind == "limit"}
        for agent in range(size):
            old = int(game.limits[agent])
            tried = (n for n in range(old, old + 60) if has_plan(game.with_limit(agent, float(n))))
            least = next(tried, None)
            if agent in found:
                helped += 1
                assert (found[agent].old, found[agent].new) == (old, least)
            else:
                assert least is None
    assert helped


@pytest.mark.parametrize("size", [2, 3])
def test_no_smaller_cut_of_a_requirement_leaves_a_plan(size):
    helped = 0
    for game in without_plan(size):
        found = {c.agent: c for c in find_changes(game, time_limit=10) if c.kind != "limit"}
        for agent in range(size):
            # The solver is asked at every tenth below the need.
            tried = np.arange(game.needs[agent] - 0.1, 0, -0.1)
            best = next((r for r in tried if has_plan(game.with_need(agent, r))), None)
            if agent in found:
                helped += 1
                assert has_plan(game.with_need(agent, found[agent].new))
                # Whole numbers are preferred, so that less than one may be given away.
                assert best - 1 <= found[agent].new <= best + 0.1
            else:
                assert best is None
    assert helped


def test_changes_come_smallest_first_with_what_the_plan_then_takes():
    (game, *_) = [g for g in without_plan(3, 20) if len(find_changes(g, time_limit=10)) > 1]
    changes = find_changes(game, time_limit=10)
    assert [c.size for c in changes] == sorted(c.size for c in changes)
    for one in changes:
        other = game.with_limit if one.kind == "limit" else game.with_need
        changed = other(one.agent, one.new)
        solved = solve_stable(LinearGame(changed.benefits, changed.needs, limits=changed.limits))
        assert one.total == pytest.approx(solved.total)


def test_a_lower_goal_is_found_on_the_curve_and_makes_a_plan_possible():
    # Error 1 / sqrt(n): 0.9 takes 100 samples. The first has 60 and gains nothing from the second.
    curves = [(0.0, 1.0, 0.0, 0.5)] * 2
    game = MeasuredGame(
        [[1.0, 0.0], [1.0, 1.0]], curves, [0.9, 0.9], limits=[60, 200], agents=["A", "B"]
    )
    plan = make_plan(game)
    assert plan.outcome is Outcome.UNREACHABLE and plan.blocking == (0,)
    (goal, limit) = plan.changes
    assert (goal.agent, goal.kind, limit.agent, limit.kind) == (0, "goal", 0, "limit")
    # 1 - 1 / sqrt(60) is 0.87090.
    assert goal.new == pytest.approx(0.87) and limit.new == 100
    assert "lower the goal of A from 0.90 to 0.87" in plan.verdict
    assert make_plan(game.replace(goals=[goal.new, 0.9])).contributions is not None
    assert make_plan(game.replace(limits=[limit.new, 200])).contributions is not None
    assert plan.to_dict()["changes"][0]["new"] == goal.new


def test_a_saved_game_keeps_its_margin_when_a_goal_is_lowered():
    # Error 1 / sqrt(n): 60 samples reach 0.87090, which is 0.01234 above 0.85856.
    game = MeasuredGame(
        np.eye(1), [(0.0, 1.0, 0.0, 0.5)], [0.9], margins=[0.01234], limits=[60], agents=["City"]
    )
    plan = make_plan(game)
    change = next(one for one in plan.changes if one.kind == "goal")
    assert (change.old, change.new) == (0.9, 0.858)
    assert make_plan(game.replace(goals=[change.new])).contributions is not None
    target = "its target of 0.912, its goal of 0.90 plus a safety margin"
    assert f"City cannot reach {target}: if all" in plan.verdict
    assert "lower the goal of City from 0.90 to 0.858" in plan.verdict
    assert "Its safety margin stays the same." in plan.verdict
    two = MeasuredGame(
        [[1.0, 1.0], [0.0, 1.0]], [(0.0, 1.0, 0.0, 0.5)] * 2, [0.9, 0.8],
        margins=[0.01, 0.01], limits=[60, 200], agents=["City", "Rural"],
    )  # fmt: skip
    assert "misses its target, its goal plus a safety margin." in make_plan(two).verdict


def test_where_one_change_is_not_enough_that_is_said():
    game = LinearGame(np.eye(2), [50.0, 50.0], limits=[20.0, 20.0], agents=["A", "B"])
    plan = make_plan(game)
    assert plan.contributions is None and plan.changes == () and plan.blocking == (0, 1)
    assert "Even if all agents give all they can, they do not reach all goals." in plan.verdict
    assert plan.verdict.endswith(
        "The limits of A and B are too low. No change of one limit or goal was found to be enough."
    )


def test_the_limit_of_an_agent_without_samples_is_not_raised():
    game = Impasse(np.eye(2), np.array([5.0, 5.0]), np.zeros(2), np.array([0.0, 9.0]), np.ones(2))
    (change,) = find_changes(game, time_limit=5)
    assert (change.agent, change.kind, change.new) == (0, "requirement", 0.0)


def test_in_larger_games_a_solver_finds_changes_too():
    size = 14
    limits = np.full(size, 100.0)
    limits[3] = 30.0
    game = Impasse(np.eye(size), np.full(size, 50.0), np.zeros(size), limits, np.ones(size))
    assert find_blocking(game) == (3,)
    found = find_changes(game, time_limit=5)
    assert {(c.agent, c.kind, c.new) for c in found} == {(3, "limit", 50), (3, "requirement", 30)}


def test_a_goal_no_data_reach_is_lowered_and_no_limit_helps():
    curves = np.array([(0.2, 1.0, 0.0, 0.5)])
    goals = np.array([0.9])
    needs = find_needs(curves, goals)
    assert np.isinf(needs[0])
    box = (np.zeros(1), np.array([400.0]), np.ones(1))
    (change,) = find_changes(Impasse(np.eye(1), needs, *box, curves, goals), time_limit=5)
    # 1 - 0.2 - 1 / sqrt(400).
    assert change.kind == "goal" and change.new == pytest.approx(0.75)
    assert find_blocking(Impasse(np.eye(1), needs, *box, curves, goals)) == (0,)


def test_sizes_compare_limits_goals_and_requirements():
    assert Change(0, "limit", 100, 150, 0).size == pytest.approx(0.5)
    assert Change(0, "goal", 0.9, 0.85, 0).size == pytest.approx(0.5)
    assert Change(0, "requirement", 100, 50, 0).size == pytest.approx(0.5)


def test_of_several_equilibria_the_one_that_asks_least_of_the_agent_counts():
    # Without the first's limit there are (100, 0) and the one in which both just have enough,
    # where the first gives 4.5 / 0.21.
    twins = Impasse(
        np.array([[1.0, 1.1], [1.1, 1.0]]),
        np.array([100.0, 95.0]),
        np.zeros(2),
        np.array([10.0, 80.0]),
        np.ones(2),
    )
    changes = find_changes(twins, time_limit=5)
    assert {c.agent: c.new for c in changes if c.kind == "limit"} == {0: 22, 1: 95}


def test_a_goal_is_written_with_all_digits_that_a_plan_needs():
    assert write_change("goal", 0.87) == "0.87" and write_change("goal", 0.1 + 0.2) == "0.30"
    assert write_change("goal", 0.870900987) == "0.870900987"


def test_of_more_agents_than_are_searched_no_change_is_said_to_be_missing():
    limits = np.full(MOST_SEARCHED + 1, np.inf)
    limits[0] = 5
    # A limit of 10 would be enough, but nobody looked for it.
    plan = make_plan(LinearGame(np.eye(limits.size), np.full(limits.size, 10.0), limits=limits))
    assert plan.blocking == (0,) and not plan.changes
    assert "change" not in plan.verdict
