"""Prices are ratios of proved bounds, and only of totals that may be compared."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_games import INDEFINITE, PAPER_LIKE, flower

from fedaccord.equilibria.result import Interval, Price, Solution, Status
from fedaccord.equilibria.solve import (
    price_of_anarchy,
    price_of_fairness,
    price_of_stability,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.errors import InputError, UnsolvedError
from fedaccord.games.linear import LinearGame

GAME = LinearGame(np.eye(2), [1, 1])


def solution(concept, lower, upper, status=Status.LIMIT, game=GAME, **options):
    return Solution(game, concept, "planted", status, Interval(lower, upper), options=options)


totals = st.floats(0.1, 1e6)


@given(totals, totals, totals, totals)
def test_the_interval_holds_every_ratio_of_totals_within_bounds(a, b, c, d):
    low, high = sorted((a, b))
    least, most = sorted((c, d))
    price = price_of_stability(solution("stable", low, high), solution("optimal", least, most))
    for above in (low, (low + high) / 2, high):
        for below in (least, (least + most) / 2, most):
            if above >= below:
                assert price.lower * (1 - 1e-12) <= above / below <= price.upper * (1 + 1e-12)
    assert 1 <= price.lower <= price.upper
    assert price.lower == max(1, low / most)
    assert price.upper == max(1, high / least)


def test_bounds_not_known_make_prices_not_known():
    price = price_of_stability(solution("stable", 1, np.inf), solution("optimal", 0, 2))
    assert (price.lower, price.upper) == (1, np.inf)
    price = price_of_fairness(solution("envy-free", 3, 4), solution("optimal", 0, np.inf))
    assert (price.lower, price.upper) == (1, np.inf)
    assert price.to_dict() == {"lower": 1, "upper": None}


def test_nothing_over_nothing_is_one_and_says_so():
    nobody = LinearGame(np.eye(2), [0, 0])
    price = price_of_stability(solve_stable(nobody), solve_optimal(nobody))
    assert (price.lower, price.upper) == (1, 1)
    assert "counts as 1" in price.note
    price = price_of_fairness(solve_envy_free(nobody), solve_optimal(nobody))
    assert (price.lower, price.upper) == (1, 1)


@pytest.mark.parametrize("status", [Status.NONE_EXISTS, Status.INFEASIBLE])
def test_where_none_exists_there_is_no_price(status):
    price = price_of_stability(
        solution("stable", np.inf, np.inf, status), solution("optimal", 1, 1, Status.OPTIMAL)
    )
    assert (price.lower, price.upper) == (np.inf, np.inf)
    none_exists = status is Status.NONE_EXISTS
    assert price.note == ("There is no stable plan." if none_exists else status.value)
    assert price.to_dict() == {"lower": None, "upper": None}


def test_totals_of_different_spaces_and_games_are_never_compared():
    optimal = solution("optimal", 1, 1)
    whole = LinearGame(np.eye(2), [1, 1], strategies="integer")
    with pytest.raises(InputError, match="over integer and real strategies cannot be compared"):
        price_of_stability(solution("stable", 1, 1, game=whole), optimal)
    other = LinearGame(np.eye(2), [1, 1])
    with pytest.raises(InputError, match="of the same game"):
        price_of_stability(solution("stable", 1, 1, game=other), optimal)


@pytest.mark.parametrize("concept", ["optimal", "envy-free"])
def test_other_concepts_are_refused(concept):
    optimal = solution("optimal", 1, 1)
    with pytest.raises(InputError, match="concept stable and one of concept optimal"):
        price_of_stability(solution(concept, 1, 1), optimal)
    with pytest.raises(InputError, match="concept stable and one of concept optimal"):
        price_of_stability(solution("stable", 1, 1), solution("stable", 1, 1))


def test_stability_and_anarchy_want_different_equilibria():
    game = LinearGame(INDEFINITE, [1, 1, 1])
    optimal = solve_optimal(game)
    best, worst = solve_stable(game), solve_stable(game, select="costliest")
    assert price_of_stability(best, optimal).upper == pytest.approx(1)
    assert price_of_anarchy(worst, optimal).lower == pytest.approx(2)
    with pytest.raises(InputError, match="price of anarchy needs"):
        price_of_anarchy(best, optimal)
    with pytest.raises(InputError, match="price of stability needs"):
        price_of_stability(worst, optimal)


def test_the_flower_has_the_prices_of_the_paper():
    game = flower(16)
    optimal = solve_optimal(game)
    stability = price_of_stability(solve_stable(game), optimal)
    assert 16 / 7 in Price(stability.lower - 1e-6, stability.upper + 1e-6)
    assert stability.upper - stability.lower < 1e-5
    fairness = price_of_fairness(solve_envy_free(game), optimal)
    assert fairness.lower == pytest.approx(17 / 8, rel=1e-5)
    assert fairness.upper == pytest.approx(17 / 8, rel=1e-5)


def test_intervals_hold_their_ends():
    interval = Interval(1.0, 2.0)
    assert 1.0 in interval
    assert 2.0 in interval
    assert 2.1 not in interval
    assert interval.relative_gap == 0.5
    assert Interval(0.0, 0.0).relative_gap == 0.0
    assert Interval(np.inf, np.inf).relative_gap == 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        interval.lower = 0.0


def test_a_status_has_no_truth_value_and_an_unsolved_solution_no_allocation():
    with pytest.raises(TypeError, match="no truth value"):
        bool(Status.OPTIMAL)
    unsolved = solve_stable(LinearGame(PAPER_LIKE, [1, 1, 1], limits=[0.1, 0.1, 0.1]))
    with pytest.raises(UnsolvedError, match=r"There is no plan.*cannot reach its requirement"):
        _ = unsolved.allocation
    assert unsolved.total == np.inf
    assert unsolved.to_dict()["lower_bound"] is None
