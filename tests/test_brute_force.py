"""Solvers against plain listing on tiny random games, and theorems as properties."""

from fractions import Fraction

import numpy as np
import pytest
from brute_force import (
    cheapest_in_box,
    envy_free,
    exact_coverage,
    exact_linear,
    feasible,
    least_envy_free_total,
    least_real_total,
    least_total,
    needs,
    stable,
    stable_real_totals,
)
from coverage_games import coverage_games
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import discovery_games, framed_games, linear_games, psd_games, strict_psd_games

from fedaccord.audit import Answer, audit
from fedaccord.equilibria.envy_free import equal_allocation, solve_envy_free
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.result import Status
from fedaccord.equilibria.stable import solve_stable
from fedaccord.equilibria.structure import core_set, strictly_dominant_own_benefits
from fedaccord.games import catalog
from fedaccord.games.linear import LinearGame

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


def test_listing_finds_the_known_answers():
    cyclic = catalog.build("cyclic", strategies="integer")
    utility, required = exact_linear(cyclic), needs(cyclic)
    assert least_total(utility, required, feasible, 6) == 2
    assert least_total(utility, required, stable, 6) is None
    assert least_total(utility, required, envy_free, 6) == 3
    pair = catalog.build("two-agents", strategies="integer")
    utility, required = exact_coverage(pair), needs(pair)
    assert [least_total(utility, required, kind, 4) for kind in (feasible, stable, envy_free)] == [
        1,
        1,
        2,
    ]
    assert least_real_total(catalog.build("overlap")) == pytest.approx(10 / 7)
    assert stable_real_totals(catalog.build("indefinite")) == [1, 2]
    assert least_envy_free_total(catalog.build("indefinite")) == pytest.approx(1.5)
    assert least_envy_free_total(catalog.build("envious-equilibrium")) == pytest.approx(25 / 28)
    # The closed relaxation would stop at 2, where envy is a tie.
    star = catalog.build("star", leaves=2)
    assert least_envy_free_total(star) == pytest.approx(2)


def test_listing_objects_to_wrong_allocations():
    game = LinearGame([[1, 0.5], [0.5, 1]], [2, 2], strategies="integer")
    utility, required = exact_linear(game), needs(game)
    assert stable(utility, required, (2, 1))
    assert not stable(utility, required, (2, 2))
    assert not stable(utility, required, (1, 1))
    assert not feasible(utility, required, (1, 1))
    assert envy_free(utility, required, (2, 2))
    assert not envy_free(utility, required, (3, 1))


# Integers, exactly.


def assert_agrees_over_integers(game, utility, most):
    required = needs(game)
    optimal, even = solve_optimal(game), solve_envy_free(game)
    assert optimal.total == least_total(utility, required, feasible, most)
    assert even.total == least_total(utility, required, envy_free, most)
    equilibrium = solve_stable(game)
    expected = least_total(utility, required, stable, int(game.alone.sum()))
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
    most = int(game.size * game.alone.max())
    assert_agrees_over_integers(game, exact_linear(game), most)


@FEW
@given(coverage_games(most_agents=3, most_points=3, highest=0.8, strategies="integer"))
def test_integer_coverage_games_agree_with_listing(game):
    most = int(game.size * game.alone.max())
    assume(most <= 24)
    assert_agrees_over_integers(game, exact_coverage(game), most)


# Reals.


@SOME
@given(linear_games())
def test_optimal_and_stable_totals_of_any_linear_game_agree_with_corners(game):
    assert_found(solve_optimal(game), float(least_real_total(game)))
    totals = stable_real_totals(game)
    cheapest, costliest = solve_stable(game), solve_stable(game, select="costliest")
    if not totals:
        assert cheapest.status is Status.NONE_EXISTS
        return
    assert_found(cheapest, float(min(totals)))
    assert_found(costliest, float(max(totals)))


@SOME
@given(psd_games())
def test_optimal_and_stable_totals_of_psd_games_agree_with_corners(game):
    assert_found(solve_optimal(game), float(least_real_total(game)))
    totals = stable_real_totals(game)
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
    assert audit(game, found.allocation).envy_free is not Answer.FALSE


# Limits, minimums and costs.

NOTHING = (Status.NONE_EXISTS, Status.INFEASIBLE)


@SOME
@given(framed_games(linear_games(strategies="integer"), whole=True))
def test_integer_games_with_limits_minimums_and_costs_agree_with_listing(game):
    best = cheapest_in_box(game, exact_linear(game))
    for kind, solver in (
        ("feasible", solve_optimal),
        ("stable", solve_stable),
        ("envy-free", solve_envy_free),
    ):
        found = solver(game)
        if best[kind] is None:
            assert found.status in NOTHING
        else:
            assert_found(found, best[kind])


@SOME
@given(framed_games(st.one_of(linear_games(), psd_games())))
def test_real_games_with_limits_minimums_and_costs_agree_with_corners(game):
    best, totals = least_real_total(game), stable_real_totals(game)
    optimal = solve_optimal(game)
    if best is None:
        assert optimal.status is Status.INFEASIBLE
    else:
        assert_found(optimal, float(best))
    cheapest, costliest = solve_stable(game), solve_stable(game, select="costliest")
    if totals:
        assert_found(cheapest, float(min(totals)))
        assert_found(costliest, float(max(totals)))
        assert audit(game, cheapest.allocation).stable is Answer.TRUE
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
    assert audit(game, equal).envy_free is Answer.TRUE


@SOME
@given(st.one_of(psd_games(most_agents=6), discovery_games()))
def test_symmetric_psd_games_always_have_a_stable_equilibrium(game):
    found = solve_stable(game)
    assert found.status is Status.OPTIMAL
    assert audit(game, found.allocation).stable is Answer.TRUE
    assert found.total >= solve_optimal(game).bounds.lower * (1 - 1e-6)


@SOME
@given(linear_games(symmetric=True, strategies="integer", most_agents=4))
def test_symmetric_integer_games_always_have_a_stable_equilibrium(game):
    # An exact potential falls with every move, even where benefits are not PSD.
    found = solve_stable(game)
    assert found.status is Status.OPTIMAL
    assert audit(game, found.allocation).stable is Answer.TRUE


@FEW
@given(strict_psd_games())
def test_stable_means_envy_free_where_own_samples_help_most(game):
    # Theorem 6.
    assert strictly_dominant_own_benefits(game)
    found = solve_stable(game)
    assert audit(game, found.allocation).envy_free is Answer.TRUE


@SOME
@given(psd_games(equal=True, most_agents=4))
def test_equal_requirements_give_all_equilibria_one_total(game):
    assert len(set(stable_real_totals(game))) == 1
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
    totals = stable_real_totals(game)
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
    best = float(least_real_total(game))
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


def test_fractions_of_eighths_are_exact():
    assert needs(LinearGame(np.eye(2), [0.375, 1.25])) == [Fraction(3, 8), Fraction(5, 4)]
