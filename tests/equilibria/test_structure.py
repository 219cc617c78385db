"""Theorems 5 and 6, the corollary and diagonal dominance, with the games that break them."""

import numpy as np
import pytest
from hypothesis import given, settings
from linear_games import PAPER_LIKE, flower
from scipy import sparse
from strategies import discovery_games, psd_games, strict_psd_games

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.equilibria.structure import (
    core_set,
    everyone_contributes,
    everyone_must_contribute,
    is_diagonally_dominant,
    strictly_dominant_own_benefits,
)
from fedaccord.errors import InputError
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame

BROKEN_DIAGONAL = np.array([[2, 0.9, 0.9], [0.9, 1, 0], [0.9, 0, 1]]) / 2


@settings(max_examples=30)
@given(psd_games(most_agents=4, equal=True))
def test_the_core_is_socially_optimal_where_theorem_5_applies(game):
    core = core_set(solve_stable(game))
    assert core.applies
    assert core.socially_optimal
    assert core.total == pytest.approx(core.optimal_total, rel=1e-4)


def test_the_core_of_the_flower_is_its_petals():
    core = core_set(solve_stable(flower(16)))
    assert core.agents.tolist() == list(range(1, 17))
    assert core.total == pytest.approx(64 / 7)
    assert core.socially_optimal
    assert core.sentence().endswith("as Theorem 5 says.")


def test_theorem_5_needs_equal_requirements():
    stable = solve_stable(LinearGame(PAPER_LIKE, [2.4, 1.9, 1.9]))
    core = core_set(stable)
    assert core.agents.tolist() == [0, 1, 2]
    assert (core.applies, core.socially_optimal) == (False, False)
    assert core.total == pytest.approx(3)
    assert core.optimal_total == pytest.approx(2.7142857, rel=1e-6)
    assert "is not socially optimal" in core.sentence()
    assert not everyone_contributes(stable)


@pytest.mark.parametrize(
    "frame", [{"minimums": [0.1, 0, 0]}, {"strategies": "integer"}, {"costs": [1, 2, 1]}]
)
def test_theorem_5_says_nothing_of_minimums_whole_numbers_and_costs(frame):
    core = core_set(solve_stable(LinearGame(PAPER_LIKE, [1, 1, 1], **frame)))
    assert not core.applies
    assert "Theorem 5 does not apply" in core.sentence()


def test_a_minimum_breaks_social_optimality():
    core = core_set(solve_stable(LinearGame(PAPER_LIKE, [1, 1, 1], minimums=[0.1, 0, 0])))
    assert core.agents.size == 3
    assert not core.socially_optimal


def test_theorem_5_needs_symmetric_benefits():
    # Everybody contributes, and yet agent 0 alone could help the others more cheaply.
    game = LinearGame([[1, 0, 0], [0.9, 1, 0], [0.9, 0, 1]], [1, 1, 1])
    core = core_set(solve_stable(game))
    assert not core.applies
    assert core.agents.size == 3
    assert not core.socially_optimal


def test_the_corollary():
    game = LinearGame([[1, 0.2], [0.2, 1]], [1, 1])
    stable = solve_stable(game)
    assert everyone_contributes(stable)
    assert stable.total == pytest.approx(solve_optimal(game).total)
    assert not everyone_contributes(solve_stable(flower(16)))


def test_nobody_contributes_where_nobody_needs_anything():
    core = core_set(solve_stable(LinearGame(np.eye(2), [0, 0])))
    assert (core.agents.size, core.total, core.socially_optimal) == (0, 0.0, True)


def test_other_solutions_are_refused():
    with pytest.raises(InputError, match="needs a stable solution"):
        core_set(solve_optimal(flower(4)))
    with pytest.raises(InputError, match="linear games only"):
        core_set(solve_stable(CoverageGame([[0.5, 0.5]], [0.75])))


def test_diagonal_dominance_needs_a_unit_diagonal():
    broken = LinearGame(BROKEN_DIAGONAL, [0.5] * 3)
    assert is_diagonally_dominant(broken)
    assert not everyone_must_contribute(broken)
    ratio = solve_stable(broken).total / solve_optimal(broken).total
    assert ratio == pytest.approx(1.8)
    assert not is_diagonally_dominant(flower(16))


def test_diagonal_dominance_in_the_right_units_makes_everybody_contribute():
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        factor = rng.random((3, 3)) * 0.4 + np.eye(3)
        game = LinearGame(factor @ factor.T * rng.uniform(0.5, 2), np.full(3, 1.5))
        stable = solve_stable(game)
        if everyone_must_contribute(game):
            seen += 1
            assert (stable.contributions > 0).all()
            assert stable.total == pytest.approx(solve_optimal(game).total, rel=1e-6)
    assert 5 < seen < 60


@pytest.mark.parametrize(
    "frame",
    [
        {"requirements": [1, 2]},
        {"requirements": [0, 0]},
        {"requirements": [1, 1], "minimums": [9, 0]},
        {"requirements": [1.1, 1.1], "strategies": "integer"},
    ],
)
def test_dominance_promises_nothing_beyond_its_proof(frame):
    game = LinearGame([[1, 0.6], [0.6, 1]], **frame)
    assert not everyone_must_contribute(game)
    assert everyone_must_contribute(LinearGame([[1, 0.6], [0.6, 1]], [1, 1]))
    if "minimums" in frame or "strategies" in frame:
        # Indeed somebody gives no more than it must.
        stable = solve_stable(game)
        assert stable.status is Status.OPTIMAL
        assert stable.contributions.min() == 0


@settings(max_examples=25)
@given(strict_psd_games())
def test_stable_is_envy_free_where_own_samples_help_most(game):
    assert strictly_dominant_own_benefits(game)
    found = check(game, solve_stable(game, tolerance=1e-9).allocation)
    assert found.stable is Answer.TRUE
    assert found.envy_free is not Answer.FALSE


def test_theorem_6_needs_its_condition():
    game = LinearGame([[0.52, 0.6], [0.6, 1]], [0.5, 0.2])
    assert not strictly_dominant_own_benefits(game)
    found = check(game, [0.5 / 0.52, 0])
    assert (found.stable, found.envy_free) == (Answer.TRUE, Answer.FALSE)


@settings(max_examples=30)
@given(discovery_games())
def test_dominance_is_the_same_in_every_form(game):
    benefits = game.dense_benefits
    plain = all(
        benefits[i, j] < benefits[i, i]
        for i in range(game.size)
        for j in range(game.size)
        if i != j
    )
    for form in (
        game,
        LinearGame(benefits, game.requirements),
        LinearGame(sparse.csr_array(benefits), game.requirements),
    ):
        assert strictly_dominant_own_benefits(form) is plain
