"""What a plan would have been in other worlds: against solvers that look at one world at a time."""

import numpy as np
import pytest
from linear_games import random_game

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.games.linear import LinearGame
from fedaccord.planning.selection import find_optimal_totals, follow_equilibria

BENEFITS = np.array([[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]])
NEEDS = np.array([1440.0, 1440.0, 930.0])
FREE = (np.zeros(3), np.full(3, np.inf))


def test_in_the_same_world_it_is_the_same_equilibrium():
    chosen = np.array([300.0, 1200.0, 600.0])
    assert follow_equilibria(BENEFITS[None], NEEDS[None], *FREE, chosen)[0] == pytest.approx(chosen)


@pytest.mark.parametrize("most", [1e6, np.inf])
def test_whoever_is_out_of_reach_gives_all_it_can_whatever_others_have(most):
    benefits = np.array([[[1.0, 0.5], [0.5, 1.0]]])
    needs, limits = np.array([[np.inf, 1000.0]]), np.array([100.0, most])
    rows = follow_equilibria(benefits, needs, np.zeros(2), limits, np.array([50.0, 975.0]))
    assert rows[0] == pytest.approx([100.0, 950.0])


def test_of_twins_the_one_who_gives_is_followed_into_other_worlds():
    twins = np.ones((3, 2, 2))
    needs = np.array([[3.0, 3.0], [4.0, 4.0], [5.0, 5.0]])
    rows = follow_equilibria(twins, needs, np.zeros(2), np.full(2, np.inf), np.array([0.0, 3.0]))
    assert rows.tolist() == [[0.0, 3.0], [0.0, 4.0], [0.0, 5.0]]


def test_in_other_worlds_it_is_an_equilibrium_of_theirs():
    rng = np.random.default_rng(3)
    games = [random_game(rng, 4, kind="psd") for _ in range(30)]
    benefits = np.array([game.dense_benefits for game in games])
    needs = np.array([game.requirements for game in games])
    start = np.array(solve_stable(games[0]).contributions)
    rows = follow_equilibria(benefits, needs, np.zeros(4), np.full(4, np.inf), start)
    for game, row in zip(games, rows, strict=True):
        assert check(game, row, tolerance=1e-4).stable is Answer.TRUE


def test_who_is_short_at_its_limit_gives_its_limit():
    needs, limits = np.array([[5.0, 1.0]]), np.array([3.0, 9.0])
    rows = follow_equilibria(np.eye(2)[None], needs, np.zeros(2), limits, np.array([2.0, 1.0]))
    assert rows[0].tolist() == [3.0, 1.0]


def test_a_goal_out_of_reach_takes_all_that_there_is_where_there_is_a_limit():
    needs = np.array([[np.inf, 1.0]])
    limited = follow_equilibria(
        np.eye(2)[None], needs, np.zeros(2), np.array([3.0, 9.0]), np.ones(2)
    )
    assert limited[0] == pytest.approx([3.0, 1.0])
    endless = follow_equilibria(np.eye(2)[None], needs, np.zeros(2), np.full(2, np.inf), np.ones(2))
    assert np.isnan(endless).all()


def test_least_totals_are_those_of_the_solver():
    rng = np.random.default_rng(4)
    for _ in range(10):
        game = random_game(rng, 4, boxed=True, costs=True)
        box = (game.minimums, game.limits)
        total = find_optimal_totals(
            game.dense_benefits[None], game.requirements[None], *box, game.costs
        )[0]
        solved = solve_optimal(game)
        if solved.status is Status.INFEASIBLE:
            assert np.isnan(total)
        else:
            assert total == pytest.approx(solved.total, rel=1e-6, abs=1e-9)


def test_a_total_of_needs_without_end_is_not_known():
    needs = np.array([[np.inf, 1.0], [1.0, 1.0]])
    totals = find_optimal_totals(
        np.array([np.eye(2)] * 2), needs, *(v[:2] for v in FREE), np.ones(2)
    )
    assert np.isnan(totals[0]) and totals[1] == pytest.approx(2)


def test_the_game_of_the_readme_has_its_known_least_total():
    game = LinearGame(BENEFITS, NEEDS)
    total = find_optimal_totals(BENEFITS[None], NEEDS[None], *FREE, game.costs)[0]
    assert total == pytest.approx(1931.25)


def test_an_equilibrium_that_best_response_would_leave_is_followed_all_the_same():
    # With others' samples worth more than the own, whoever moves first ends up giving nothing.
    benefits = np.array([[1.0, 1.1], [1.1, 1.0]])
    chosen = np.linalg.solve(benefits, [10.0, 9.5])
    needs = np.array([[10.1, 9.6], [9.9, 9.45]])
    rows = follow_equilibria(
        np.array([benefits] * 2), needs, np.zeros(2), np.full(2, np.inf), chosen
    )
    assert rows == pytest.approx(np.linalg.solve(benefits, needs.T).T)
