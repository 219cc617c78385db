"""Estimated PAC games: near the exact ones, inside their intervals, and honest when undecided."""

from fractions import Fraction

import numpy as np
import pytest
from pac_worlds import cycle_worlds

from fedaccord.check import Answer, check
from fedaccord.errors import ExactnessError, InputError, UnreachableError
from fedaccord.games.base import Unknown
from fedaccord.games.pac.exact import PacGame
from fedaccord.games.pac.sampled import SampledPacGame, half_width
from fedaccord.games.pac.worlds import World


def noisy_pair():
    """Two agents, noisy labels, three worlds."""
    chances = [(Fraction(1, 5), Fraction(2, 3)), (Fraction(1, 2), Fraction(1, 2))]
    chances.append((Fraction(9, 10), Fraction(1, 4)))
    return [
        World(Fraction(1, 3), [[(0, 1, p), (0, 0, 1 - p)], [(1, 1, q), (0, 0, 1 - q)]])
        for p, q in chances
    ]


def test_estimates_lie_near_the_exact_utilities():
    exact = PacGame(noisy_pair(), [0.5, 0.5])
    game = SampledPacGame(noisy_pair(), [0.5, 0.5], draws=20_000, seed=1)
    for theta in ([0, 0], [3, 1], [2.5, 4], [7, 7.25]):
        given = np.array(theta, dtype=float)
        np.testing.assert_allclose(game.utilities(given), exact.utilities(given), atol=0.01)


def test_without_samples_the_estimate_is_exact():
    game = SampledPacGame(noisy_pair(), [0.5, 0.5], draws=10)
    expected = PacGame(noisy_pair(), [0.5, 0.5]).utilities(np.zeros(2))
    np.testing.assert_allclose(game.utilities(np.zeros(2)), expected, rtol=1e-12)


def test_intervals_hold_the_truth_at_least_as_often_as_they_say():
    theta = np.array([2.0, 1.0])
    truth = PacGame(noisy_pair(), [0.5, 0.5]).utilities(theta)
    missed = 0
    for seed in range(200):
        game = SampledPacGame(noisy_pair(), [0.5, 0.5], draws=60, seed=seed, confidence=0.8)
        low, high = game.utility_bounds(theta)
        missed += not ((low <= truth) & (truth <= high)).all()
    assert missed <= 0.2 * 200


def test_the_count_of_misses_notices_intervals_that_are_too_narrow():
    theta = np.array([2.0, 1.0])
    truth = PacGame(noisy_pair(), [0.5, 0.5]).utilities(theta)
    missed = 0
    for seed in range(200):
        game = SampledPacGame(noisy_pair(), [0.5, 0.5], draws=60, seed=seed, confidence=0.8)
        middle = game.utilities(theta)
        low, high = game.utility_bounds(theta)
        width = (high - low) / 100
        missed += not ((middle - width <= truth) & (truth <= middle + width)).all()
    assert missed > 0.2 * 200


def test_half_widths_shrink_with_draws_and_with_agreement():
    generator = np.random.default_rng(0)
    few, many = generator.random(100), generator.random(10_000)
    assert half_width(many, 0.01) < half_width(few, 0.01) / 5
    # Scores that all agree leave only the Bernstein term 7 log(8/risk) / (3 (n - 1)).
    assert half_width(np.full(10_000, 0.7), 0.01) == pytest.approx(7 * np.log(800) / 29_997)
    assert half_width(few, 0.001) > half_width(few, 0.1)


def test_response_bounds_hold_the_exact_response():
    exact = PacGame(cycle_worlds(2), [0.9] * 3, strategies="integer")
    theta = np.array([2.0, 1.0, 1.0])
    needed = exact.best_responses(theta)
    for seed in range(10):
        game = SampledPacGame(
            cycle_worlds(2), [0.9] * 3, strategies="integer", draws=300, seed=seed
        )
        low, high = game.response_bounds(theta)
        assert (low <= needed).all()
        assert (needed <= high).all()
        assert (low <= game.best_responses(theta)).all()
        assert (game.best_responses(theta) <= high).all()


def test_real_response_bounds_hold_the_exact_response():
    exact = PacGame(cycle_worlds(2), [0.9] * 3)
    theta = np.array([2.0, 1.3, 1.0])
    needed = exact.best_responses(theta)
    low, high = SampledPacGame(cycle_worlds(2), [0.9] * 3, draws=3_000).response_bounds(theta)
    assert (low < needed).all()
    assert (needed < high).all()
    assert (high - low < 1).all()


def test_an_audit_is_borderline_where_few_draws_do_not_decide():
    # Utilities at (1, 1, 1) are 0.875, just above the requirement.
    frame = {"requirements": [0.87] * 3, "strategies": "integer"}
    few = SampledPacGame(cycle_worlds(2), draws=400, **frame)
    assert check(few, [1, 1, 1]).feasible is Answer.BORDERLINE
    assert check(few, [0, 0, 0]).feasible is Answer.FALSE
    assert check(few, [6, 6, 6]).feasible is Answer.TRUE
    assert check(few, [6, 6, 6]).stable is Answer.FALSE


def test_many_draws_decide_what_few_do_not():
    frame = {"requirements": [0.85] * 3, "strategies": "integer"}
    many = SampledPacGame(cycle_worlds(2), draws=4_000, **frame)
    assert check(many, [1, 1, 1]).stable is Answer.TRUE


def test_the_same_seed_gives_the_same_game_and_longer_samples_begin_with_shorter_ones():
    first, second = (SampledPacGame(noisy_pair(), [0.5] * 2, draws=50, seed=3) for _ in range(2))
    long_first = first._sample(0, 100)[:, :7].copy()
    assert (second._sample(0, 7) == long_first).all()
    assert (first.utilities(np.array([5.0, 2])) == second.utilities(np.array([5.0, 2]))).all()
    other = SampledPacGame(noisy_pair(), [0.5] * 2, draws=50, seed=4)
    assert (first.utilities(np.array([5.0, 2])) != other.utilities(np.array([5.0, 2]))).any()


def test_replace_and_dict_keep_how_it_is_estimated():
    game = SampledPacGame(noisy_pair(), [0.5, 0.5], draws=50, seed=3, confidence=0.9)
    data = game.replace(requirements=[0.55, 0.5]).to_dict()
    assert (data["draws"], data["seed"], data["confidence"]) == (50, 3, 0.9)
    del data["model"]
    assert SampledPacGame(**data).to_dict() == {"model": "pac", **data}
    assert game.without(0).size == 1


def test_estimated_slopes_are_differences_of_utilities():
    game = SampledPacGame(cycle_worlds(1), [0.9] * 3, draws=500)
    np.testing.assert_allclose(np.diag(game.jacobian(np.zeros(3))), 0.5)
    assert isinstance(game.well_behaved(), Unknown)


def test_what_cannot_be_answered_gets_a_sentence():
    game = SampledPacGame(cycle_worlds(1), [0.9] * 3, draws=10)
    with pytest.raises(ExactnessError):
        game.exact_utility(0, [Fraction(0)] * 3)
    with pytest.raises(InputError, match="draws must lie between"):
        SampledPacGame(cycle_worlds(1), [0.9] * 3, draws=1)
    with pytest.raises(InputError, match="confidence must lie"):
        SampledPacGame(cycle_worlds(1), [0.9] * 3, confidence=1.0)
    with pytest.raises(UnreachableError):
        SampledPacGame(cycle_worlds(2), [1.0] * 3)
