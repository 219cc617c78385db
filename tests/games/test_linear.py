"""Linear games against straight loops; dense, sparse and implicit benefits are one game."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_games import INDEFINITE, random_game
from scipy import sparse
from strategies import discovery_games, linear_games

from fedaccord.errors import InputError
from fedaccord.games import linear
from fedaccord.games.base import Certified
from fedaccord.games.linear import DiscoveryGame, LinearGame


def forms(game):
    """Give a game with dense, sparse and, where it came so, implicit benefits."""
    dense = LinearGame(game.dense_benefits, game.requirements)
    return [dense, LinearGame(sparse.coo_array(game.dense_benefits), game.requirements), game]


def gifts(size):
    return st.lists(st.integers(0, 12), min_size=size, max_size=size).map(lambda n: np.array(n) / 4)


@settings(max_examples=60)
@given(st.one_of(linear_games(most_agents=4), discovery_games()), st.data())
def test_all_forms_answer_as_straight_loops_do(drawn, data):
    theta = data.draw(gifts(drawn.size))
    k = drawn.size
    benefits = drawn.dense_benefits
    if isinstance(drawn, DiscoveryGame):
        rows = drawn.distributions.toarray()
        products = [[sum(rows[i] * rows[j]) for j in range(k)] for i in range(k)]
        assert benefits == pytest.approx(np.array(products))
    for game in forms(drawn):
        for i in range(k):
            utility = sum(benefits[i, j] * theta[j] for j in range(k))
            rest = utility - benefits[i, i] * theta[i]
            least = max(0.0, (game.requirements[i] - rest) / benefits[i, i])
            assert game.utilities(theta)[i] == pytest.approx(utility)
            assert game.best_responses(theta)[i] == pytest.approx(least, abs=1e-12)
            assert game.best_response(i, theta) == pytest.approx(least, abs=1e-12)
            assert game.alone[i] == pytest.approx(game.requirements[i] / benefits[i, i])
            exact = game.exact_utility(i, [Fraction(t) for t in theta])
            assert exact == sum(
                (Fraction(benefits[i, j]) * Fraction(theta[j]) for j in range(k)), Fraction(0)
            )
            assert sorted(game.helpers(i).tolist()) == np.flatnonzero(benefits[i]).tolist()
            after = game.swapped_utilities(theta, i, np.arange(k))
            for j in range(k):
                swapped = theta.copy()
                swapped[[i, j]] = theta[[j, i]]
                assert after[j] == pytest.approx(benefits[i] @ swapped)
        assert game.jacobian(theta) == pytest.approx(benefits)
        assert game.own_benefits == pytest.approx(np.diagonal(benefits))
        assert game.apply_transposed(theta) == pytest.approx(benefits.T @ theta)
        assert game.benefits_among(np.arange(k)[::-1], np.arange(1)) == pytest.approx(
            benefits[::-1, :1]
        )


@settings(max_examples=60)
@given(st.one_of(linear_games(most_agents=4), discovery_games()), st.data())
def test_swaps_lists_every_helper_who_gives_less_and_may_be_envied(drawn, data):
    theta = data.draw(gifts(drawn.size))
    gap = data.draw(st.sampled_from([0.0, 0.5]))
    for game in forms(drawn):
        first, second, after = game.swaps(theta, np.arange(game.size), gap)
        found = dict(zip(zip(first.tolist(), second.tolist(), strict=True), after, strict=True))
        for i in range(game.size):
            for j in game.helpers(i).tolist():
                swapped = theta.copy()
                swapped[[i, j]] = theta[[j, i]]
                utility = game.utilities(swapped)[i]
                if theta[i] - theta[j] > gap and (gap == 0 or utility >= game.requirements[i]):
                    assert found[i, j] == pytest.approx(utility)
        assert all(theta[i] - theta[j] > gap for i, j in found)


@settings(max_examples=60)
@given(st.one_of(linear_games(most_agents=4), discovery_games()))
def test_certified_constants_hold(drawn):
    for game in forms(drawn):
        verdict = game.well_behaved()
        assert isinstance(verdict, Certified)
        assert (verdict.own > 0).all()
        assert verdict.own == pytest.approx(np.diagonal(game.dense_benefits))
        others = game.dense_benefits - np.diag(np.diagonal(game.dense_benefits))
        assert (others.max(axis=1) <= verdict.cross + 1e-12).all()
        if not isinstance(game, DiscoveryGame):
            assert others.max(axis=1) == pytest.approx(verdict.cross)
        assert verdict.box == pytest.approx(game.alone)
        assert game.well_behaved([5.0] * game.size).box.tolist() == [5.0] * game.size


@pytest.mark.parametrize(
    ("benefits", "symmetric", "psd"),
    [
        (np.eye(3), True, True),
        (np.ones((3, 3)), True, True),
        (INDEFINITE, True, False),
        ([[1, 0, 1], [1, 1, 0], [0, 1, 1]], False, True),
        ([[1, 3], [0, 1]], False, False),
        ([[1, 2], [2, 1]], True, False),
        ([[1, 0.5], [0.5 + 1e-9, 1]], False, True),
        ([[1, 1], [1, 1 - 1e-9]], True, False),
    ],
)
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_symmetry_and_definiteness(benefits, symmetric, psd, form):
    game = LinearGame(form(benefits), np.ones(len(benefits)))
    assert game.is_symmetric is symmetric
    assert game.is_psd is psd


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_small_benefits_count_like_any_other(unit):
    # Beside an agent with large benefits two with small ones are still indefinite, or asymmetric.
    benefits = np.zeros((3, 3))
    benefits[0, 0] = 1.0
    benefits[1:, 1:] = unit * np.array([[1, 2], [2, 1]])
    assert not LinearGame(benefits, np.ones(3)).is_psd
    benefits[1:, 1:] = unit * np.array([[1, 0.5], [0.4, 1]])
    assert not LinearGame(benefits, np.ones(3)).is_symmetric
    benefits[1:, 1:] = unit * np.array([[1, 1], [1, 1]])
    game = LinearGame(benefits, np.ones(3))
    assert game.is_symmetric
    assert game.is_psd


def test_definiteness_agrees_with_eigenvalues():
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(60):
        game = random_game(rng, 4, kind="symmetric")
        least = np.linalg.eigvalsh(game.dense_benefits)[0]
        assert game.is_psd is bool(least >= -1e-10)
        assert LinearGame(sparse.csr_array(game.benefits), game.requirements).is_psd is game.is_psd
        seen.add(game.is_psd)
    assert seen == {True, False}


@pytest.mark.parametrize(("cross", "psd"), [(0.4, True), (0.9, False)])
def test_definiteness_of_large_sparse_benefits(monkeypatch, cross, psd):
    # Above a size no dense array is made; a ring of agents has eigenvalues 1 + 2 cross cos(x).
    monkeypatch.setattr("fedaccord.games.linear.DENSE_LIMIT", 10)
    k = 40
    ring = sparse.diags_array(
        [np.ones(k), *[np.full(k - 1, cross)] * 2, [cross], [cross]],
        offsets=[0, 1, -1, k - 1, 1 - k],
    )
    assert LinearGame(ring, np.ones(k)).is_psd is psd


def test_definiteness_by_lanczos_where_rows_do_not_dominate(monkeypatch):
    monkeypatch.setattr("fedaccord.games.linear.DENSE_LIMIT", 10)
    rng = np.random.default_rng(0)
    rows = sparse.random_array((40, 60), density=0.2, rng=rng) + sparse.eye_array(40, 60)
    assert LinearGame(rows @ rows.T, np.ones(40)).is_psd is True


def test_discovery_never_forms_benefits_of_agents_without_common_points():
    game = DiscoveryGame(np.eye(3), [1, 1, 1])
    assert game.benefits.nnz == 3
    assert game.is_symmetric
    assert game.is_psd
    assert game.has_equal_totals
    assert not DiscoveryGame(np.eye(2), [1, 2], costs=[1, 2]).has_equal_totals
    assert LinearGame(np.eye(2), [1, 1]).has_equal_totals
    assert not LinearGame(np.eye(2), [1, 2]).has_equal_totals


def test_exact_utilities_read_thirds_as_thirds():
    game = LinearGame([[1 / 3, 1 / 7], [0, 1]], [1, 1])
    assert game.exact_utility(0, [Fraction(3), Fraction(7)]) == 2
    game = DiscoveryGame([[1 / 3, 2 / 3], [1, 0]], [1, 1])
    assert game.exact_utility(0, [Fraction(9), Fraction(3)]) == 6


def test_whole_responses_are_exact_where_sums_of_doubles_lose_digits():
    game = LinearGame([[1e-6, 0.1], [0, 1]], [1e6, 1e9], strategies="integer")
    # In doubles 1e-6 x + 999999.9 falls short or not by what rounding leaves.
    for helped, needed in ((9_999_999, 10**5), (9_999_990, 10**6), (10**7, 0)):
        assert game.best_responses(np.array([0.0, helped]))[0] == needed


def test_own_benefits_are_the_same_some_rows_at_a_time(monkeypatch):
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 8)
    monkeypatch.setattr(linear, "ROWS_AT_A_TIME", 3)
    assert DiscoveryGame(rows, np.ones(8)).own_benefits == pytest.approx((rows**2).sum(axis=1))


def test_a_wrong_entry_is_named_beyond_the_first_that_are_checked(monkeypatch):
    rows = sparse.csr_array([[0.5, 0.5], [0.25, 0.75], [1.5, -0.5]])
    monkeypatch.setattr(linear, "ENTRIES_AT_A_TIME", 2)
    with pytest.raises(InputError, match=r"a probability of agent 2 is negative"):
        DiscoveryGame(rows, np.ones(3))
