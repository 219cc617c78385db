"""Games given as Python functions: the same answers as the models they imitate."""

from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.check import Answer, check
from fedaccord.errors import ExactnessError, FedaccordError, InputError, UnreachableError
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import LinearGame

BENEFITS = np.array([[1.0, 0.5, 0.0], [0.25, 1.0, 0.5], [0.0, 0.75, 2.0]])


def linear(theta):
    return BENEFITS @ theta


def linear_exact(theta):
    rows = [[Fraction(w) for w in row] for row in BENEFITS.tolist()]
    return [sum(w * t for w, t in zip(row, theta, strict=True)) for row in rows]


amounts = st.lists(st.floats(0, 5), min_size=3, max_size=3)
needs = st.lists(st.floats(0, 9).map(lambda n: round(n, 6)), min_size=3, max_size=3)


@given(amounts, needs)
def test_real_responses_equal_those_of_the_linear_game(theta, requirements):
    game = FunctionGame(linear, requirements)
    twin = LinearGame(BENEFITS, requirements)
    given_ = np.array(theta)
    np.testing.assert_allclose(
        game.best_responses(given_), twin.best_responses(given_), rtol=1e-12, atol=1e-12
    )


@given(st.lists(st.integers(0, 6), min_size=3, max_size=3), st.integers(0, 36))
def test_whole_responses_equal_those_of_the_linear_game(theta, quarters):
    requirements = [quarters / 4] * 3
    twin = LinearGame(BENEFITS, requirements, strategies="integer")
    for exact in (None, linear_exact, lambda i, t: linear_exact(t)[i]):
        game = FunctionGame(linear, requirements, exact=exact, strategies="integer")
        given_ = np.array(theta, dtype=float)
        assert (game.best_responses(given_) == twin.best_responses(given_)).all()
        assert (game.satisfied(given_) == twin.satisfied(given_)).all()


def test_exact_utilities_settle_ties_that_floats_get_wrong():
    # 0.1 + 0.2 as the sum of three tenths: floats say 0.30000000000000004 or less than 0.3.
    def tenths(theta):
        # From Python 3.12 on, sum itself makes up for rounding.
        return [reduce(add, [0.1] * int(theta[0]), 0.0)]

    def exact(theta):
        return [Fraction(1, 10) * theta[0]]

    by_floats = FunctionGame(tenths, [0.8], strategies="integer")
    exactly = FunctionGame(tenths, [0.8], exact=exact, strategies="integer")
    assert by_floats.alone[0] == 9
    assert exactly.alone[0] == 8
    assert check(exactly, [8]).stable is Answer.TRUE


def test_a_learning_curve_is_a_game():
    # u = 1 - 1/sqrt(1 + n) reaches 0.9 at n = 99 effective samples.
    game = FunctionGame(lambda t: 1 - 1 / np.sqrt(1 + linear(t)), [0.9, 0.9, 0.9])
    np.testing.assert_allclose(game.alone, [99, 99, 49.5], rtol=1e-9)
    assert check(game, game.alone).feasible is Answer.TRUE


def test_restricting_leaves_the_others_at_zero():
    game = FunctionGame(linear, [1, 2, 3], exact=linear_exact, agents=["a", "b", "c"])
    less = game.without(1)
    assert less.agents == ("a", "c")
    np.testing.assert_allclose(less.utilities(np.array([1.0, 2.0])), [1, 4])
    assert less.exact_utility(1, [Fraction(1), Fraction(2)]) == 4
    assert game.replace(requirements=[1, 1, 1]).alone.tolist() == [1, 1, 0.5]
    assert FunctionGame(linear, [1, 2, 3]).without(0).size == 2


def test_an_agent_with_a_limit_may_depend_on_others():
    game = FunctionGame(lambda t: [t[1], t[1]], [1, 1], limits=[5, None])
    assert game.alone.tolist() == [np.inf, 1]
    with pytest.raises(UnreachableError, match="gives lame its requirement of 1"):
        FunctionGame(lambda t: [t[1], t[1]], [1, 1], agents=["lame", "well"])


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda t: [np.nan, 1.0], "gives a no finite number"),
        (lambda t: [1.0], "must give 2 numbers, one per agent"),
        (lambda t: 1.0, "must give 2 numbers, one per agent"),
        (lambda t: "no", "failed at contributions"),
        (lambda t: [t[0], t[1] - 2 * t[0]], "utility of b falls from 0 to -2 when a gives 1"),
        (lambda t: [t[0], -t[1]], "utility of b falls"),
        (lambda t: [t[0], 3 * t[1] * (1 - t[1] / 6.1)], "utility of b falls"),
        ("not a function", "must be a function"),
    ],
)
def test_functions_that_are_no_utilities_get_a_sentence(function, sentence):
    with pytest.raises(InputError, match=sentence):
        FunctionGame(function, [1, 9], agents=["a", "b"])


def test_a_fall_that_shows_only_later_is_seen_when_responses_are_computed():
    # Fine while the other gives nothing; beside it, more own samples hurt.
    game = FunctionGame(lambda t: [t[0] if t[1] == 0 else 5 - t[0], t[1]], [8, 1])
    with pytest.raises(InputError, match="utility of agent 0 falls"):
        game.best_responses(np.array([0.0, 1.0]))


def test_the_function_cannot_change_the_allocation_it_is_shown():
    def greedy(theta):
        theta[0] = 99
        return [1.0]

    with pytest.raises(InputError, match="read-only"):
        FunctionGame(greedy, [1])


def test_what_a_function_cannot_do_gets_a_sentence():
    game = FunctionGame(linear, [1, 1, 1])
    with pytest.raises(FedaccordError, match="cannot be written to a file"):
        game.to_dict()
    with pytest.raises(ExactnessError, match="no exact utilities"):
        game.exact_utility(0, [Fraction(1)] * 3)
    with pytest.raises(InputError, match="exact must be a function"):
        FunctionGame(linear, [1, 1, 1], exact=3)
    rough = FunctionGame(linear, [1, 1, 1], exact=lambda t: [0.5] * 3)
    with pytest.raises(InputError, match="must give a Fraction for agent 0"):
        rough.exact_utility(0, [Fraction(1)] * 3)
