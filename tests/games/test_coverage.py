"""Random coverage games: utilities, responses and derivatives against other ways to get them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from coverage_games import (
    complete_graph,
    contributions,
    coverage_games,
    flower,
    plain_flower,
    two_agents,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fedaccord.check import Answer, check
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import Certified, Game, Refuted
from fedaccord.games.coverage import CoverageGame


def plain_utility(game, agent, amounts):
    """u_i by the definition: the mean, over whole roundings, of what nobody has drawn."""
    matrix = game.distributions.toarray()
    expected = Fraction(0)
    choices = []
    for amount in amounts:
        whole, part = int(amount // 1), Fraction(amount) % 1
        choices.append([(whole, 1 - part), (whole + 1, part)])
    for rounding in product(*choices):
        chance = np.prod([Fraction(p) for _, p in rounding])
        if chance == 0:
            continue
        unseen = Fraction(0)
        for x in range(matrix.shape[1]):
            missed = Fraction(matrix[agent, x])
            for j, (m, _) in enumerate(rounding):
                missed *= (1 - Fraction(matrix[j, x])) ** m
            unseen += missed
        expected += chance * (1 - unseen / 2)
    return expected


@st.composite
def positions(draw, **options):
    game = draw(coverage_games(**options))
    return game, draw(contributions(game.size))


# Utilities.


@given(positions(most_agents=3))
def test_utilities_are_the_mean_over_roundings(position):
    game, theta = position
    theta = np.round(theta * 16) / 16
    for i in range(game.size):
        exact = plain_utility(game, i, [Fraction(t) for t in theta])
        assert game.exact_utility(i, [Fraction(t) for t in theta]) == exact
        assert game.utilities(theta)[i] == pytest.approx(float(exact), abs=1e-14)


def test_the_check_by_roundings_sees_a_smooth_utility():
    game = two_agents()
    theta = np.array([0.5, 0.5])
    exact = float(plain_utility(game, 0, [Fraction(1, 2)] * 2))
    assert abs(game.smooth_utilities(theta)[0] - exact) > 0.01


@given(positions())
def test_smooth_utilities_are_at_least_the_utilities_and_equal_at_whole_numbers(position):
    game, theta = position
    assert (game.smooth_utilities(theta) >= game.utilities(theta) - 1e-12).all()
    whole = np.ceil(theta)
    assert game.smooth_utilities(whole) == pytest.approx(game.utilities(whole), abs=1e-12)


def test_two_agents_lose_by_mixing():
    game = two_agents()
    for alpha in (0.1, 0.25, 0.5, 0.9):
        utility = game.utilities(np.array([alpha, 1 - alpha]))
        assert utility == pytest.approx(0.75 - alpha * (1 - alpha) / 8, abs=1e-15)


def test_alike_points_may_stand_in_one_column():
    merged, plain = flower(9), plain_flower(9)
    theta = np.linspace(0, 2.5, 10)
    assert merged.utilities(theta) == pytest.approx(plain.utilities(theta), abs=1e-14)
    assert merged.best_responses(theta) == pytest.approx(plain.best_responses(theta), abs=1e-12)
    assert merged.jacobian(theta) == pytest.approx(plain.jacobian(theta), abs=1e-14)
    one, other = merged.well_behaved(), plain.well_behaved()
    assert one.own == pytest.approx(other.own)
    assert one.cross == pytest.approx(other.cross)
    whole = [Fraction(i % 3) for i in range(10)]
    assert merged.exact_utility(4, whole) == plain.exact_utility(4, whole)


def test_the_complete_graph_has_the_paper_s_utilities():
    game = complete_graph()
    matching = [Fraction(1), 0, Fraction(1), 0, 0, 0]
    matching = [Fraction(t) for t in matching]
    assert game.exact_utility(0, matching) == Fraction(2, 3)
    assert game.exact_utility(1, matching) == Fraction(11, 18)
    swapped = [matching[1], matching[0], *matching[2:]]
    assert game.exact_utility(0, swapped) == Fraction(5, 9)
    mixed = [Fraction(9, 10), Fraction(1, 10)] * 2 + [Fraction(0)] * 2
    assert game.exact_utility(1, mixed) == Fraction(46, 75)
    mixed[1], mixed[5] = mixed[5], mixed[1]
    assert game.exact_utility(1, mixed) == Fraction(1087, 1800)


def test_the_complete_graph_s_mixture_is_envied_by_exactly_four_pairs():
    found = check(complete_graph(), [0.9, 0.1, 0.9, 0.1, 0, 0])
    assert sorted(found.envy) == [(1, 4), (1, 5), (3, 4), (3, 5)]
    assert check(complete_graph(), [1, 0, 1, 0, 0, 0]).envy_free is Answer.TRUE


# Responses.


@given(positions())
def test_a_best_response_is_enough_and_no_less_is(position):
    game, theta = position
    needed = game.best_responses(theta)
    for i in range(game.size):
        trial = theta.copy()
        trial[i] = needed[i]
        assert game.utilities(trial)[i] >= game.requirements[i] - 1e-12
        if needed[i] > 1e-9:
            trial[i] = needed[i] * (1 - 1e-6)
            assert game.utilities(trial)[i] < game.requirements[i]


@given(positions())
def test_one_agent_s_response_is_that_of_all(position):
    game, theta = position
    needed = game.best_responses(theta)
    each = [game.best_response(i, theta) for i in range(game.size)]
    assert each == pytest.approx(needed, rel=1e-12, abs=1e-12)


@given(coverage_games(strategies="integer"), st.data())
def test_whole_responses_are_the_least_by_trying(game, data):
    theta = np.floor(data.draw(contributions(game.size)))
    for i in range(game.size):
        trial = [Fraction(int(t)) for t in theta]
        least = 0
        while True:
            trial[i] = Fraction(least)
            if game.exact_utility(i, trial) >= game.exact_requirements[i]:
                break
            least += 1
        assert game.best_response(i, theta) == least
        assert game.best_responses(theta)[i] == least


def test_a_tie_over_whole_numbers_is_decided_exactly():
    # Each petal's requirement is met by exactly one sample of its own.
    assert flower(100, strategies="integer").alone == pytest.approx(np.ones(101), abs=0)


def test_rates_of_very_different_size_are_climbed():
    game = CoverageGame([[1e-9, 0.5]], [0.9], copies=[5 * 10**8, 1])
    assert game.utilities(game.alone)[0] == pytest.approx(0.9, abs=1e-12)


def test_a_requirement_that_guessing_meets_needs_nothing():
    game = CoverageGame([[1 / 3, 2 / 3], [0.1, 0.9]], [0.5, 0.3])
    assert (game.alone == 0).all()


def test_a_certain_point_is_covered_by_one_sample():
    game = CoverageGame([[1.0, 0], [0.2, 0.8]], [1, 0.95])
    assert game.alone[0] == 1
    assert game.best_responses(np.array([0.0, 2.0]))[0] == 1
    # Somebody else who draws it with certainty leaves nothing to do.
    both = CoverageGame([[1.0], [1.0]], [1, 0.8])
    assert both.best_responses(np.array([0.0, 1.0]))[0] == 0
    assert both.utilities(np.array([0.0, 1.0])) == pytest.approx([1, 1], abs=0)
    assert both.others(np.array([1.0, 1.0])) == pytest.approx([0, 0], abs=0)


# Derivatives, swaps, neighbours.


@given(positions())
def test_the_jacobian_is_the_gain_of_one_more_whole_sample(position):
    # The paper's appendix: du_i / dtheta_j = u_i(floor + 1, rest) - u_i(floor, rest).
    game, theta = position
    jacobian = game.jacobian(theta)
    for j in range(game.size):
        low, high = theta.copy(), theta.copy()
        low[j], high[j] = np.floor(theta[j]), np.floor(theta[j]) + 1
        gain = game.utilities(high) - game.utilities(low)
        assert jacobian[:, j] == pytest.approx(gain, abs=1e-13)


def test_the_jacobian_agrees_with_finite_differences():
    game = complete_graph()
    theta = np.array([0.3, 1.7, 0.0, 2.0, 0.5, 1.1])
    step = 1e-6
    for j in range(6):
        more = theta.copy()
        more[j] += step
        slope = (game.utilities(more) - game.utilities(theta)) / step
        assert game.jacobian(theta)[:, j] == pytest.approx(slope, abs=1e-8)


@given(positions())
def test_swaps_and_own_rates_agree_with_the_plain_way(position):
    game, theta = position
    for i in range(game.size):
        others = np.array([j for j in range(game.size) if j != i], dtype=np.intp)
        plain = [game._swapped_utility(theta, i, int(j)) for j in others]
        assert game.swapped_utilities(theta, i, others) == pytest.approx(plain, abs=1e-13)
    everyone = np.arange(game.size)
    plain = Game.own_rates(game, everyone, theta)
    # Plainly, a difference of utilities is divided by amounts as small as 1e-5.
    assert game.own_rates(everyone, theta) == pytest.approx(plain, abs=1e-10)


@given(positions())
def test_nobody_but_helpers_matters(position):
    game, theta = position
    for i in range(game.size):
        more = theta + 1
        more[game.helpers(i)] = theta[game.helpers(i)]
        assert game.utilities(more)[i] == pytest.approx(game.utilities(theta)[i], abs=1e-15)
        assert i in game.helpers(i)


# Well-behavedness.


@given(coverage_games(certain=False), st.data())
def test_certified_constants_hold_throughout_the_box_and_are_attained(game, data):
    box = data.draw(st.lists(st.floats(0.1, 3), min_size=game.size, max_size=game.size))
    verdict = game.well_behaved(box)
    assert isinstance(verdict, Certified)
    corner = np.array(box)
    share = data.draw(st.lists(st.floats(0, 1), min_size=game.size, max_size=game.size))
    inside = np.minimum(np.array(share) * corner, corner * (1 - 1e-9))
    jacobian = game.jacobian(inside)
    assert (np.diag(jacobian) >= verdict.own - 1e-12).all()
    off = jacobian - np.diag(np.diag(jacobian))
    assert (off.max(axis=1) <= verdict.cross + 1e-12).all()
    at_zero = game.jacobian(np.zeros(game.size))
    cross = (at_zero - np.diag(np.diag(at_zero))).max(axis=1)
    assert verdict.cross == pytest.approx(cross, abs=1e-12)


def test_a_covering_neighbour_refutes_well_behavedness():
    game = CoverageGame([[1.0], [1.0]], [0.9, 0.9])
    verdict = game.well_behaved([0.5, 1.0])
    assert isinstance(verdict, Refuted)
    assert verdict.agent == 0
    assert game.jacobian(np.array(verdict.witness))[0, 0] == 0
    assert isinstance(game.well_behaved([0.5, 0.5]), Certified)


# Input.


@pytest.mark.parametrize("requirement", [1.0, 1.2])
def test_certainty_is_out_of_reach(requirement):
    with pytest.raises(UnreachableError, match="agent 1 is 1"):
        CoverageGame([[1.0, 0], [0.5, 0.5]], [0.9, requirement])


def test_more_than_certainty_is_out_of_reach_of_a_point_mass():
    with pytest.raises(UnreachableError, match="below 1"):
        CoverageGame([[1.0]], [1.5])


@pytest.mark.parametrize(
    ("matrix", "copies", "words"),
    [
        ([[0.5, 0.6]], None, "sum to 1.1"),
        ([[0.5, -0.5]], None, "negative"),
        ([[0.5, 0.5], [0.5, 0.5]], None, "1 rows"),
        ([[0.5, 0.25]], [1], "one number per point, 2"),
        ([[0.5, 0.25]], [1, 1.5], "point 1 is 1.5"),
        ([[0.5, 0.25]], [2, 2], "sum to 1.5"),
    ],
)
def test_distributions_that_are_none_are_refused(matrix, copies, words):
    with pytest.raises(InputError, match=words):
        CoverageGame(matrix, [0.6], copies=copies)


def test_a_game_leaves_the_caller_s_matrix_alone():
    matrix = sparse.csr_array([[0.5, 0.5], [0.0, 1.0]])
    game = CoverageGame(matrix, [0.6, 0.6])
    matrix.data[0] = 0.25
    assert game.distributions.data[0] == 0.5


@pytest.mark.parametrize("game", [two_agents(), flower(4), complete_graph(strategies="integer")])
def test_a_game_is_rebuilt_from_its_dictionary(game):
    stored = game.to_dict()
    assert stored.pop("model") == "coverage"
    again = CoverageGame(**stored)
    theta = np.arange(game.size) * 1.0
    assert (again.utilities(theta) == game.utilities(theta)).all()
    assert again.strategies == game.strategies


def test_restriction_takes_the_data_of_those_who_left():
    game = flower(4)
    rest = game.without(0)
    theta = np.array([0.5, 0.2, 0, 1])
    padded = np.concatenate([[0.0], theta])
    assert rest.utilities(theta) == pytest.approx(game.utilities(padded)[1:], abs=1e-15)
