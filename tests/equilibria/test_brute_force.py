"""Solvers against plain listing on tiny random games, and theorems as properties."""

from fractions import Fraction

import pytest
from coverage_games import coverage_games
from envy_patterns import least_envy_free_total
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import discovery_games, framed_games, linear_games, psd_games, strict_psd_games

from fedaccord.check import Answer, check
from fedaccord.equilibria.result import Status, equal_allocation
from fedaccord.equilibria.solve import (
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.equilibria.structure import core_set, strictly_dominant_own_benefits
from fedaccord.games import catalog
from fedaccord.games.linear import LinearGame
from fedaccord.reproduce.oracle import ExactGame, Listing, read_fraction

FEW = settings(max_examples=25)
SOME = settings(max_examples=50)


def holds(bounds, total, tolerance=1e-6):
    """Say whether proved bounds hold a total, up to rounding."""
    allowed = tolerance * max(1.0, abs(total))
    return bounds.lower - allowed <= total <= bounds.upper + allowed


def assert_found(solution, total, tolerance=1e-6):
    assert solution.status is Status.OPTIMAL
    assert holds(solution.bounds, total, tolerance)
    assert solution.total == pytest.approx(total, rel=tolerance, abs=tolerance)


# The listing itself, first shown games whose answers are known, and wrong allocations.


def least_totals(listing):
    """Return the least cost of a feasible, a stable and an envy-free allocation."""
    kinds = (listing.is_feasible, listing.is_stable, listing.is_envy_free)
    return [listing.least(kind) for kind in kinds]


def list_stable_totals(game):
    """Return the costs of all equilibria that are corners."""
    exact = ExactGame.of_game(game)
    return [exact.total(theta) for theta in exact.equilibria]


def find_least_total(game):
    """Return the least cost of a feasible allocation; None where there is none."""
    exact = ExactGame.of_game(game)
    return exact.optimal_total if exact.corners else None


def test_listing_finds_the_known_answers():
    assert least_totals(Listing.of(catalog.build("cyclic", strategies="integer"))) == [2, None, 3]
    assert least_totals(Listing.of(catalog.build("two-agents", strategies="integer"))) == [1, 1, 2]
    assert find_least_total(catalog.build("overlap")) == pytest.approx(10 / 7)
    assert list_stable_totals(catalog.build("indefinite")) == [1, 2]
    assert least_envy_free_total(catalog.build("indefinite")) == pytest.approx(1.5)
    assert least_envy_free_total(catalog.build("envious-equilibrium")) == pytest.approx(25 / 28)
    # The closed relaxation would stop at 2, where envy is a tie.
    star = catalog.build("star", leaves=2)
    assert least_envy_free_total(star) == pytest.approx(2)


def test_listing_objects_to_wrong_allocations():
    listing = Listing.of(LinearGame([[1, 0.5], [0.5, 1]], [2, 2], strategies="integer"))
    assert listing.is_stable((2, 1))
    assert not listing.is_stable((2, 2))
    assert not listing.is_stable((1, 1))
    assert not listing.is_feasible((1, 1))
    assert listing.is_envy_free((2, 2))
    assert not listing.is_envy_free((3, 1))


def test_corners_with_limits_minimums_and_costs_are_those_found_by_hand():
    # The second gives 1/2 at least and 1 at most: (3/2, 1), or more of the first and less of it.
    game = LinearGame(
        [[1, 0.5], [0, 1]], [2, 0.25], limits=[None, 1], minimums=[0, 0.5], costs=[1, 3]
    )
    exact = ExactGame.of_game(game)
    assert exact.corners == ((Fraction(3, 2), 1), (Fraction(7, 4), Fraction(1, 2)))
    assert exact.equilibria == [(Fraction(7, 4), Fraction(1, 2))]
    assert exact.stable_total == exact.optimal_total == Fraction(13, 4)


# Integers, exactly.


def assert_agrees_over_integers(game):
    optimal, equilibrium, even = solve_optimal(game), solve_stable(game), solve_envy_free(game)
    least, expected, fair = least_totals(Listing.of(game))
    assert (optimal.total, even.total) == (least, fair)
    if expected is None:
        assert equilibrium.status is Status.NONE_EXISTS
    else:
        assert equilibrium.status is Status.OPTIMAL
        assert equilibrium.total == expected
    assert {optimal.status, even.status} == {Status.OPTIMAL}
    for solution in (optimal, even):
        assert solution.bounds.lower == solution.bounds.upper == solution.total


@FEW
@given(linear_games(strategies="integer"))
def test_integer_linear_games_agree_with_listing(game):
    assert_agrees_over_integers(game)


@FEW
@given(coverage_games(most_agents=3, most_points=3, highest=0.8, strategies="integer"))
def test_integer_coverage_games_agree_with_listing(game):
    assume(game.size * game.alone.max() <= 24)
    assert_agrees_over_integers(game)


# Reals.


@SOME
@given(linear_games())
def test_optimal_and_stable_totals_of_any_linear_game_agree_with_corners(game):
    assert_found(solve_optimal(game), float(find_least_total(game)))
    totals = list_stable_totals(game)
    cheapest, costliest = solve_stable(game), solve_stable(game, select="costliest")
    if not totals:
        assert cheapest.status is Status.NONE_EXISTS
        return
    assert_found(cheapest, float(min(totals)))
    assert_found(costliest, float(max(totals)))


@SOME
@given(psd_games())
def test_optimal_and_stable_totals_of_psd_games_agree_with_corners(game):
    assert_found(solve_optimal(game), float(find_least_total(game)))
    totals = list_stable_totals(game)
    assert_found(solve_stable(game), float(min(totals)))
    assert_found(solve_stable(game, select="costliest"), float(max(totals)))


@settings(max_examples=15)
@given(st.one_of(linear_games(least_agents=2), psd_games(least_agents=2)))
def test_envy_free_totals_agree_with_one_program_per_pattern(game):
    infimum = least_envy_free_total(game)
    found = solve_envy_free(game, time_limit=20)
    assert found.status in (Status.OPTIMAL, Status.NOT_ATTAINED)
    assert holds(found.bounds, infimum)
    assert found.bounds.lower == pytest.approx(infimum, rel=1e-5, abs=1e-6)
    # Just above an infimum that is not attained stands an allocation that is envy-free.
    assert found.total == pytest.approx(infimum, rel=1e-4, abs=1e-6)
    assert check(game, found.allocation).envy_free is not Answer.FALSE


# Limits, minimums and costs.

NOTHING = (Status.NONE_EXISTS, Status.INFEASIBLE)


@SOME
@given(framed_games(linear_games(strategies="integer"), whole=True))
def test_integer_games_with_limits_minimums_and_costs_agree_with_listing(game):
    solvers = (solve_optimal, solve_stable, solve_envy_free)
    for solve, least in zip(solvers, least_totals(Listing.of(game)), strict=True):
        found = solve(game)
        if least is None:
            assert found.status in NOTHING
        else:
            assert_found(found, float(least))


@SOME
@given(framed_games(st.one_of(linear_games(), psd_games())))
def test_real_games_with_limits_minimums_and_costs_agree_with_corners(game):
    best, totals = find_least_total(game), list_stable_totals(game)
    optimal = solve_optimal(game)
    if best is None:
        assert optimal.status is Status.INFEASIBLE
    else:
        assert_found(optimal, float(best))
    cheapest, costliest = solve_stable(game), solve_stable(game, select="costliest")
    if totals:
        assert_found(cheapest, float(min(totals)))
        assert_found(costliest, float(max(totals)))
        assert check(game, cheapest.allocation).stable is Answer.TRUE
    else:
        assert cheapest.status in NOTHING
        assert costliest.status in NOTHING


# Theorems.


@SOME
@given(linear_games(most_agents=5))
def test_equal_shares_are_always_envy_free(game):
    # Theorem 1.
    equal = equal_allocation(game)
    assert equal is not None
    assert check(game, equal).envy_free is Answer.TRUE


@SOME
@given(st.one_of(psd_games(most_agents=6), discovery_games()))
def test_symmetric_psd_games_always_have_a_stable_equilibrium(game):
    found = solve_stable(game)
    assert found.status is Status.OPTIMAL
    assert check(game, found.allocation).stable is Answer.TRUE
    assert found.total >= solve_optimal(game).bounds.lower * (1 - 1e-6)


@SOME
@given(linear_games(symmetric=True, strategies="integer", most_agents=4))
def test_symmetric_integer_games_always_have_a_stable_equilibrium(game):
    # An exact potential falls with every move, even where benefits are not PSD.
    found = solve_stable(game)
    assert found.status is Status.OPTIMAL
    assert check(game, found.allocation).stable is Answer.TRUE


@FEW
@given(strict_psd_games())
def test_stable_means_envy_free_where_own_samples_help_most(game):
    # Theorem 6.
    assert strictly_dominant_own_benefits(game)
    found = solve_stable(game)
    assert check(game, found.allocation).envy_free is Answer.TRUE


@SOME
@given(psd_games(equal=True, most_agents=4))
def test_equal_requirements_give_all_equilibria_one_total(game):
    assert len(set(list_stable_totals(game))) == 1
    cheapest, costliest = solve_stable(game), solve_stable(game, select="costliest")
    assert cheapest.total == pytest.approx(costliest.total, rel=1e-6)


@FEW
@given(psd_games(equal=True, most_agents=4))
def test_contributors_are_socially_optimal_among_themselves(game):
    # Theorem 5.
    core = core_set(solve_stable(game))
    assert core.applies
    assert core.socially_optimal


@SOME
@given(discovery_games())
def test_random_discovery_gives_all_equilibria_one_total(game):
    totals = list_stable_totals(game)
    assert float(max(totals)) == pytest.approx(float(min(totals)), rel=1e-9)


@FEW
@given(psd_games(most_agents=5))
def test_the_integer_program_and_the_potential_agree(game):
    assume(game.requirements.any())
    by_program = solve_stable(game, method="milp")
    assert_found(by_program, solve_stable(game, method="best-response").total, 2e-6)


@settings(max_examples=8)
@given(psd_games(most_agents=3, equal=True))
def test_the_papers_convex_program_and_the_potential_agree(game):
    by_program = solve_stable(game, method="cp1")
    expected = solve_stable(game).total
    assert by_program.contributions is not None
    assert by_program.total == pytest.approx(expected, rel=1e-5, abs=1e-5)


@FEW
@given(psd_games(most_agents=4))
def test_other_methods_for_the_optimum_agree(game):
    assume(game.requirements.any())
    best = float(find_least_total(game))
    for method in ("highs", "first-order", "multiplicative-weights"):
        tolerance = 1e-6 if method == "highs" else 1e-2
        seconds = 1 if method == "multiplicative-weights" else 20
        found = solve_optimal(game, method=method, tolerance=tolerance, time_limit=seconds)
        assert holds(found.bounds, best)
        assert game.is_feasible(found.contributions * (1 + 1e-9))
        # Multiplicative weights may be slow, and then say so.
        assert found.status is (
            Status.LIMIT if found.bounds.relative_gap > tolerance else Status.OPTIMAL
        )
        assert found.status is Status.OPTIMAL or method == "multiplicative-weights"


def test_doubles_are_read_as_the_simple_fractions_that_they_stand_for():
    assert [read_fraction(x) for x in (0.375, 0.1, 1 / 3)] == [
        Fraction(3, 8),
        Fraction(1, 10),
        Fraction(1, 3),
    ]
    assert read_fraction(2**0.5) == Fraction(2**0.5)
