"""What is claimed of games too large for fractions: bounds hold, and nothing wrong is proved."""

import numpy as np
import pytest
from row_games import RowOracle, draw_goals_game, draw_signed_game

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Deadline, Status
from fedaccord.equilibria.rows import solve as rows_solve
from fedaccord.equilibria.rows.lemke import find_by_lemke
from fedaccord.equilibria.rows.uniqueness import prove_unique
from fedaccord.equilibria.solve import solve_envy_free, solve_optimal, solve_stable
from fedaccord.games.goals import Goal, GoalsGame
from fedaccord.games.signed import SignedGame

KINDS = {
    "goals": draw_goals_game,
    "goals with harm": lambda rng, **rest: draw_goals_game(rng, harm=True, **rest),
    "signed": draw_signed_game,
}


def assert_true(solution, total):
    """Object to bounds that miss the total, to a false proof, and to a plan of another kind."""
    if total is None:
        assert solution.status in (Status.NONE_EXISTS, Status.INFEASIBLE, Status.FAILED)
        return
    value = float(total)
    allowed = 1e-6 * max(1.0, value)
    assert solution.status not in (Status.NONE_EXISTS, Status.INFEASIBLE)
    assert solution.bounds.lower - allowed <= value <= solution.bounds.upper + allowed
    if solution.status is Status.OPTIMAL:
        assert solution.total == pytest.approx(value, rel=1e-5, abs=1e-6)
    if solution.contributions is not None:
        found = check(solution.game, solution.allocation)
        assert found.verdicts[solution.concept] is not Answer.FALSE


@pytest.mark.parametrize("whole", [False, True], ids=["real", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_claims_of_large_games_are_true_of_small_ones(kind, whole, monkeypatch):
    monkeypatch.setattr(rows_solve, "EXACT_AGENTS", 0)
    proved = 0
    for seed in range(40 if whole else 80):
        game = KINDS[kind](np.random.default_rng(30_000 + seed), whole=whole)
        oracle = RowOracle.of(game)
        points = list(oracle.allocations() if whole else oracle.corners())
        stable = oracle.is_stable_whole if whole else oracle.is_stable
        found = solve_optimal(game), solve_stable(game)
        assert_true(found[0], oracle.least(points, oracle.is_feasible))
        assert_true(found[1], oracle.least(points, stable))
        if whole:
            assert_true(solve_envy_free(game), oracle.least(points, oracle.is_envy_free))
        proved += sum(solution.status is Status.OPTIMAL for solution in found)
    assert proved > 30


def test_lemke_finds_the_only_plan_in_fractions_and_in_doubles():
    seen = 0
    for seed in range(200):
        game = draw_goals_game(np.random.default_rng(seed), harm=True)
        game = game.replace(limits=None)
        if prove_unique(game) is None:
            continue
        seen += 1
        exact = find_by_lemke(game, Deadline(5.0), exact=True)
        near = find_by_lemke(game, Deadline(5.0), exact=False)
        assert exact is not None
        assert near is not None
        assert near == pytest.approx(exact, abs=1e-7)
        assert check(game, exact, tolerance=1e-9).stable is Answer.TRUE
    assert seen > 100


def test_large_games_with_dominant_own_samples_are_solved_with_proof():
    rng = np.random.default_rng(1)
    k = 60
    goals = []
    for agent in range(k):
        for name in ("sensitivity", "specificity"):
            row = rng.uniform(-1, 1, k) / k
            row[agent] = 1.0
            goals.append(Goal(agent, name, row, float(rng.uniform(5, 10))))
    game = GoalsGame(goals)
    stable = solve_stable(game)
    assert stable.status is Status.OPTIMAL
    assert "only stable plan" in stable.note
    assert check(game, stable.allocation).stable is Answer.TRUE


def test_a_large_game_without_proof_keeps_to_bounds(monkeypatch):
    # The program would take all of the time for the last per cent.
    monkeypatch.setattr(rows_solve, "MILP_ROWS", 0)
    rng = np.random.default_rng(2)
    k = 40
    benefits = np.where(rng.random((k, k)) < 0.2, 0.9, 0.0)
    np.fill_diagonal(benefits, 1.0)
    game = SignedGame(benefits, np.ones(k))
    stable = solve_stable(game)
    assert stable.status is Status.LIMIT
    assert stable.bounds.lower <= solve_optimal(game).bounds.upper
    assert check(game, stable.allocation).stable is Answer.TRUE
