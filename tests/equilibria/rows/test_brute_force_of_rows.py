"""Plans of games of several goals and of harm against plain listing, 2,400 random games."""

import numpy as np
import pytest
from row_games import RowOracle, draw_goals_game, draw_signed_game

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_envy_free, solve_optimal, solve_stable

NOWHERE = (Status.NONE_EXISTS, Status.INFEASIBLE)
KINDS = {
    "goals": draw_goals_game,
    "goals with harm": lambda rng, **rest: draw_goals_game(rng, harm=True, **rest),
    "signed": draw_signed_game,
}


def assert_least(solution, total):
    """Object unless the solution has this total, or says that there is none."""
    if total is None:
        assert solution.status in NOWHERE, solution
        return
    assert solution.status is Status.OPTIMAL, solution
    assert solution.total == pytest.approx(float(total), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_real_plans_are_the_least_of_all_corners(kind):
    for seed in range(500):
        game = KINDS[kind](np.random.default_rng(seed))
        oracle = RowOracle.of(game)
        points = list(oracle.corners())
        assert_least(solve_optimal(game), oracle.least(points, oracle.is_feasible))
        assert_least(solve_stable(game), oracle.least(points, oracle.is_stable))


@pytest.mark.parametrize("kind", KINDS)
def test_whole_plans_are_the_least_of_all_allocations(kind):
    for seed in range(300):
        game = KINDS[kind](np.random.default_rng(10_000 + seed), whole=True)
        oracle = RowOracle.of(game)
        points = list(oracle.allocations())
        assert_least(solve_optimal(game), oracle.least(points, oracle.is_feasible))
        assert_least(solve_stable(game), oracle.least(points, oracle.is_stable_whole))
        assert_least(solve_envy_free(game), oracle.least(points, oracle.is_envy_free))


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_agrees_with_the_definitions(kind):
    for seed in range(100):
        rng = np.random.default_rng(20_000 + seed)
        game = KINDS[kind](rng, whole=True)
        oracle = RowOracle.of(game)
        points = list(oracle.allocations())
        for n in rng.integers(0, len(points), 5).tolist():
            found = check(game, [float(t) for t in points[n]])
            expected = (
                oracle.is_feasible(points[n]),
                oracle.is_stable_whole(points[n]),
                oracle.is_envy_free(points[n]),
            )
            said = (found.feasible, found.stable, found.envy_free)
            assert tuple(answer is Answer.TRUE for answer in said) == expected
            assert sorted(found.envy) == oracle.list_envy(points[n])
