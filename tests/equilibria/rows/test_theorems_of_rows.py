"""The theorems on several goals and on harm as properties, and the counter-examples of the docs."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from row_games import RowOracle, determinant, draw_goals_game, draw_signed_game

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.rows.uniqueness import _by_minors, prove_unique
from fedaccord.equilibria.solve import (
    find_staying,
    solve_all,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.errors import InputError
from fedaccord.games.goals import Goal, GoalsGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.signed import SignedGame

FREE = {"limits": None, "minimums": None}


def list_stable(game):
    oracle = RowOracle.of(game)
    return [point for point in oracle.corners() if oracle.is_stable(point)]


# Several goals.


def test_without_harm_and_limits_a_stable_plan_exists_and_nobody_gives_more_than_alone():
    for seed in range(150):
        game = draw_goals_game(np.random.default_rng(seed)).replace(**FREE)
        stable = solve_stable(game)
        assert stable.status is Status.OPTIMAL
        assert (stable.contributions <= game.alone + 1e-9).all()


def test_one_more_goal_never_makes_the_optimal_plan_cheaper():
    for seed in range(60):
        game = draw_goals_game(np.random.default_rng(seed), harm=seed % 2 == 0).replace(**FREE)
        for agent in range(game.size):
            if len(game.goals_of(agent)) > 1:
                dropped = game.goals_of(agent)[0]
                fewer = game.replace(goals=[g for n, g in enumerate(game.goals) if n != dropped])
                assert solve_optimal(fewer).total <= solve_optimal(game).total + 1e-9


def test_one_more_goal_can_make_the_stable_plan_cheaper():
    # The hub is needed by both others, and gives enough only if it has a goal of its own.
    rows = [[1, 0, 0], [1, 1, 0], [1, 0, 1]]
    goals = [Goal(i, "accuracy", rows[i], float(i > 0)) for i in range(3)]
    before = solve_stable(GoalsGame(goals))
    after = solve_stable(GoalsGame([*goals, Goal(0, "AUC", [1, 0, 0], 1.0)]))
    assert before.contributions.tolist() == [0, 1, 1]
    assert after.contributions.tolist() == [1, 0, 0]


@pytest.mark.parametrize("solve", [solve_optimal, solve_stable, solve_envy_free])
def test_one_goal_per_agent_keeps_the_numbers_of_the_linear_game(solve):
    for seed in range(40):
        signed = draw_signed_game(np.random.default_rng(seed), low=0)
        frame = {name: getattr(signed, name) for name in ("limits", "minimums", "costs")}
        linear = LinearGame(signed.benefits, signed.requirements, **frame)
        goals = [Goal(i, "g", row, signed.needs[i]) for i, row in enumerate(signed.rows)]
        expected = solve(linear)
        for game in (signed, GoalsGame(goals, **frame)):
            found = solve(game)
            if expected.status is Status.LIMIT:
                assert expected.bounds.lower - 1e-6 <= found.total <= expected.bounds.upper + 1e-6
                continue
            assert found.status is expected.status
            if expected.status is Status.OPTIMAL:
                assert found.total == pytest.approx(expected.total, abs=1e-6)


@pytest.mark.parametrize("harm", [False, True])
def test_where_own_samples_are_worth_most_a_stable_plan_is_envy_free(harm):
    seen = 0
    for seed in range(300):
        game = draw_goals_game(np.random.default_rng(seed), harm=harm)
        others = np.arange(game.size) != game.owners[:, None]
        if (np.where(others, game.rows, -np.inf).max(axis=1) >= game.own_rows).any():
            continue
        oracle = RowOracle.of(game)
        for plan in list_stable(game):
            seen += 1
            assert not oracle.list_envy(plan)
    assert seen > 100


# One stable plan.


def test_where_one_plan_is_proved_there_is_not_a_second():
    proved = several = 0
    for seed in range(300):
        game = draw_goals_game(np.random.default_rng(seed), harm=True).replace(**FREE)
        plans = list_stable(game)
        if prove_unique(game) is not None:
            proved += 1
            assert len(plans) == 1
        several += len(plans) > 1
    assert proved > 100
    assert several > 0


def test_minors_are_those_of_every_representative():
    disagree = 0
    for seed in range(200):
        game = draw_goals_game(np.random.default_rng(seed), harm=True)
        minors = [
            determinant([[row[j] for j in chosen] for row in rows])
            for size in range(1, game.size + 1)
            for chosen in combinations(range(game.size), size)
            for rows in product(*([r for r, _ in game.exact_rows[i]] for i in chosen))
        ]
        found = _by_minors(game)
        assert (found is not None) == (min(minors) > 0)
        # Rows of several goals are no square matrix, but their representatives are.
        assert found is None or ("representative" in found.reason) == game.has_several_goals
        disagree += min(minors) <= 0
    assert disagree > 10


def test_a_game_with_two_plans_is_not_called_unique():
    game = SignedGame([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1])
    assert len(list_stable(game)) == 2
    assert prove_unique(game) is None
    assert "only" not in solve_stable(game).note


def test_a_distance_from_the_only_plan_holds():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        game = draw_signed_game(rng, low=-3).replace(**FREE)
        near = rng.uniform(0, 4, game.size)
        unique = prove_unique(game, near)
        if unique is None or unique.radius is None:
            continue
        (plan,) = list_stable(game)
        off = np.abs(near - np.array([float(t) for t in plan]))
        assert np.linalg.norm(off) <= np.linalg.norm(unique.radius) + 1e-9


# Harm.


def test_where_samples_only_harm_the_stable_plan_is_the_least_of_all_feasible_ones():
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = [np.minimum(row, 0) for row in draw_signed_game(rng).rows]
        needs = rng.integers(1, 17, len(rows)) / 8
        for i, row in enumerate(rows):
            row[i] = 1.0
        game = SignedGame(rows, needs)
        stable, corners = solve_stable(game), list(RowOracle.of(game).corners())
        assert (stable.contributions is None) == (not corners)
        if corners:
            found += 1
            assert stable.total == pytest.approx(solve_optimal(game).total)
            for corner in corners:
                assert (stable.contributions <= [float(t) + 1e-9 for t in corner]).all()
            assert (stable.contributions >= game.alone - 1e-9).all()
    assert found > 100


def test_mutual_harm_can_leave_no_plan_at_all():
    found = solve_all(SignedGame([[1, -2], [-2, 1]], [1, 1]))
    assert {s.status for s in found.solutions.values()} == {Status.NONE_EXISTS}


def test_a_feasible_game_can_have_no_stable_plan():
    # The first two harm each other without end; the third could help, and needs nothing.
    game = SignedGame([[1, -1, 1], [-1, 1, 0], [0, 0, 1]], [2, 1, 0])
    optimal = solve_optimal(game)
    assert optimal.contributions.tolist() == [0, 1, 3]
    assert check(game, optimal.allocation).feasible is Answer.TRUE
    assert solve_stable(game).status is Status.NONE_EXISTS


def test_equal_contributions_may_satisfy_nobody():
    game = SignedGame([[1, -1], [0.5, 1]], [1, 1])
    assert not game.is_feasible(np.full(2, 1000.0))
    envy_free = solve_envy_free(game)
    assert envy_free.status is Status.OPTIMAL
    assert check(game, envy_free.allocation).envy_free is Answer.TRUE


def test_the_costliest_plan_needs_limits_where_samples_harm():
    loose = SignedGame([[1, -1], [-1, 1]], [0, 0])
    with pytest.raises(InputError, match="give every agent a limit"):
        solve_stable(loose, select="costliest")
    assert solve_stable(loose).total == 0
    limited = solve_stable(loose.replace(limits=[3, 5]), select="costliest")
    assert limited.contributions.tolist() == [3, 3]
    only = SignedGame([[1, -0.5], [-0.5, 1]], [1, 1])
    assert solve_stable(only, select="costliest").total == solve_stable(only).total


def test_agents_that_are_harmed_leave_and_the_others_are_no_worse_than_alone():
    for seed in range(80):
        game = draw_signed_game(np.random.default_rng(seed)).replace(**FREE)
        staying = find_staying(game)
        assert sorted((*staying.agents, *staying.left)) == list(range(game.size))
        if staying.solution.contributions is not None:
            assert check(staying.solution.game, staying.solution.allocation).rational


def test_who_stays_is_found_where_somebody_would_give_less_alone():
    game = SignedGame(
        [[1, 0.4, -0.3], [0.5, 1, 0.1], [-0.2, -0.1, 1]],
        [400, 300, 200],
        agents=["City", "North", "Rural"],
    )
    staying = solve_all(game).staying
    assert staying.left == (2,)
    assert staying.solution.contributions.tolist() == [350, 125]
    assert solve_all(SignedGame([[1, 0.5], [0.5, 1]], [1, 1])).staying is None


@pytest.mark.parametrize("left", [1e-5, 1e-6, 1e-8])
def test_bounds_of_the_only_plan_allow_for_rounding(left):
    """W = (1 + b) I - b J, nearly singular: contributions add up to sum(mu) / (1 - (k - 1) b)."""
    size = 14
    harm = (1 - left) / (size - 1)
    needs = np.random.default_rng(0).random(size)
    game = SignedGame((1 + harm) * np.eye(size) - harm * np.ones((size, size)), needs)
    harm = Fraction(-game.benefits[0, 1])
    own = Fraction(game.benefits[0, 0])
    total = sum(map(Fraction, needs.tolist())) / (own - (size - 1) * harm)
    bounds = solve_stable(game).bounds
    assert bounds.lower <= total <= bounds.upper
    assert bounds.relative_gap < 1e-2


def test_a_plan_near_an_infimum_has_a_margin_that_a_check_can_see():
    # Agent 1 may give no more than its limit, so nobody envies it who gives a little more.
    game = SignedGame(
        [[7e-08, 8e-08, -1.2e-07], [770000, 880000, -1320000.132], [0.00049, 0.00056, 0.00084]],
        [3e-06, 2e6, 0.003], limits=[38.571, None, 3.214],
    )  # fmt: skip
    found = solve_envy_free(game)
    assert found.status is Status.NOT_ATTAINED
    assert found.bounds.lower == pytest.approx(38.571, rel=1e-12)
    assert found.total <= 1.001 * found.bounds.lower
    assert check(game, found.contributions).envy_free is Answer.TRUE
