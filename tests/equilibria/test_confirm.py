"""Claims that solvers once made wrongly, confirmed or replaced by exact ones; planted faults."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from fedaccord import CoverageGame, LinearGame, check
from fedaccord._checks import simplest_fraction
from fedaccord.check import Answer
from fedaccord.equilibria import confirm as confirming
from fedaccord.equilibria.confirm import confirm, is_refuted
from fedaccord.equilibria.result import Claim, Deadline, Interval, Status
from fedaccord.equilibria.solve import solve_envy_free, solve_optimal, solve_stable

SOLVERS = {"optimal": solve_optimal, "stable": solve_stable, "envy-free": solve_envy_free}
OVERLAP = LinearGame([[1, 0.7, 0.7], [0.7, 1, 0.2], [0.7, 0.2, 1]], [1, 1.5, 1])
# Everybody is short of its limit alone, and who waits for whom goes round.
NOBODY = LinearGame([[1, 0.5, 0], [0.5, 0.1, 1], [0, 1, 1]], [1, 1.5, 0.5], limits=[1, 1, None])


def verify(solution, status, value):
    """Check a status, a total or infimum, and that the audit does not refute the allocation."""
    assert solution.status is status
    assert solution.bounds.lower == pytest.approx(value, rel=1e-9)
    report = check(solution.game, solution.allocation)
    verdicts = {"optimal": report.feasible, "stable": report.stable, "envy-free": report.envy_free}
    assert verdicts[solution.concept] is not Answer.FALSE


# Each of these was claimed otherwise; the numbers behind the games are the exact answers.


@pytest.mark.parametrize(
    ("game", "status", "value"),
    [
        (NOBODY, Status.NOT_ATTAINED, 2.0),
        (
            LinearGame(
                [[2, 1, 1], [1, 1, 1], [1, 0, 0.1]], [1, 1, 0.3], limits=[0.5, None, None],
                costs=[2, 5, 2],
            ),
            Status.NOT_ATTAINED, 2.75,
        ),
        (
            LinearGame(
                [[6.819e-07, 0.5759], [0.8084, 761400]], [1.4, 1.142857142857],
                limits=[4106173.93, None],
            ),
            Status.OPTIMAL, 4.861949443717094,
        ),
        (
            LinearGame(
                [[0.03, 0.3, 400], [0.3, 2, 0], [400, 0, 1e6]], [1, 1, 1],
                limits=[66.67, 0.5, None],
            ),
            Status.OPTIMAL, 0.502125,
        ),
    ],
)  # fmt: skip
def test_envy_free_claims_hold(game, status, value):
    verify(solve_envy_free(game), status, value)


def test_a_stable_claim_over_whole_numbers_holds():
    benefits = [[0.5, 0.99999998, 0], [0.99999998, 1, 1.99999995], [0, 1.99999995, 0.5]]
    game = LinearGame(benefits, [366, 807.99999999, 339.5], strategies="integer")
    solution = solve_stable(game)
    verify(solution, Status.OPTIMAL, 808)
    assert solution.contributions.tolist() == [0, 808, 0]


SIX = LinearGame(
    [
        [0.5, 0.91, 0, 0.53, 0, 0.87], [0, 2, 0, 0.34, 0.31, 0], [0.26, 0, 1, 0.92, 0.88, 0],
        [0, 0, 0, 1, 0.12, 0], [0, 0.22, 0, 0.85, 2, 0], [0, 0, 0, 0, 0.31, 2],
    ],
    [4.2, 3, 2.9, 2.8, 0.9, 2.7], limits=[12.6, None, None, None, 0.68, None],
    costs=[0.2, 2, 0.6, 1.5, 2.7, 1.7],
)  # fmt: skip


@np.vectorize
def scale(value, power):
    """Multiply a decimal by a power of ten, rounding once, so that ties stay ties."""
    return (
        value if np.isinf(value) else float(simplest_fraction(value) * Fraction(10) ** int(power))
    )


@pytest.mark.parametrize("power", [-9, -4, -1, 0, 1, 4, 9])
@pytest.mark.parametrize("concept", SOLVERS)
def test_units_of_account_do_not_matter(concept, power):
    rng = np.random.default_rng(abs(power))
    for game in (SIX, NOBODY, OVERLAP):
        before = SOLVERS[concept](game)
        rows = rng.integers(-9, 10, game.size)
        other = game.replace(
            benefits=scale(game.benefits, rows[:, None] - power),
            requirements=scale(game.requirements, rows),
            limits=scale(game.limits, power),
            minimums=scale(game.minimums, power),
            costs=scale(game.costs, -power),
        )
        after = SOLVERS[concept](other)
        assert after.status is before.status
        if before.status is not Status.NONE_EXISTS:
            assert after.bounds.lower == pytest.approx(before.bounds.lower, rel=1e-6)


# Faults planted in what a solver says.


def settle(solution, **changes):
    return confirm(ask(solution), dataclasses.replace(solution, **changes))


def ask(solution):
    return Claim(solution.game, solution.concept, 1e-6, Deadline(10.0))


@pytest.mark.parametrize("concept", SOLVERS)
def test_a_right_claim_stands_as_it_is(concept):
    solution = SOLVERS[concept](OVERLAP)
    assert solution.status is Status.OPTIMAL
    again = settle(solution)
    assert again.method == solution.method
    assert again.bounds == solution.bounds
    assert again.contributions.tolist() == solution.contributions.tolist()
    assert again.certificate["confirmed"] == "exact arithmetic"


@pytest.mark.parametrize("concept", SOLVERS)
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_wrong_point_is_replaced(concept, factor):
    solution = SOLVERS[concept](OVERLAP)
    point = solution.contributions * factor
    total = OVERLAP.total(point)
    mended = settle(solution, contributions=point, bounds=Interval(total, total))
    verify(mended, Status.OPTIMAL, solution.total)
    assert mended.total == pytest.approx(solution.total)


@pytest.mark.parametrize("concept", SOLVERS)
def test_a_wrong_bound_is_mended(concept):
    solution = SOLVERS[concept](OVERLAP)
    raised = Interval(solution.total * 1.01, solution.total * 1.02)
    mended = settle(solution, bounds=raised)
    assert mended.bounds.lower <= solution.total * (1 + 1e-9)
    limit = settle(solution, status=Status.LIMIT, bounds=raised)
    assert limit.bounds.lower <= solution.total * (1 + 1e-9)


def test_a_dearer_pattern_is_replaced_by_the_cheapest():
    # Equilibria (0, 1, 0) and (1, 0, 1): both at rest, one of them twice as dear.
    game = LinearGame([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1])
    claimed = dataclasses.replace(
        solve_stable(game), contributions=np.array([1.0, 0, 1]), bounds=Interval(2, 2)
    )
    assert not is_refuted(claimed, 1e-6)
    mended = settle(claimed)
    verify(mended, Status.OPTIMAL, 1.0)


def test_what_exists_is_not_said_not_to():
    solution = solve_stable(OVERLAP)
    denied = settle(
        solution, status=Status.NONE_EXISTS, contributions=None, bounds=Interval(math.inf, math.inf)
    )
    verify(denied, Status.OPTIMAL, solution.total)


def test_what_does_not_exist_is_not_said_to():
    none = solve_stable(NOBODY)
    assert none.status is Status.NONE_EXISTS
    claimed = settle(
        none, status=Status.OPTIMAL, contributions=np.array([1.0, 0, 1]), bounds=Interval(2, 2)
    )
    assert claimed.status is Status.NONE_EXISTS


def test_a_method_asked_for_keeps_its_answer_with_bounds_that_hold():
    game = LinearGame([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1])
    claimed = dataclasses.replace(
        solve_stable(game),
        contributions=np.array([1.0, 0, 1]),
        bounds=Interval(2, 2),
        certificate={},
    )
    kept = confirm(ask(claimed), claimed, "milp")
    assert kept.status is Status.LIMIT and "confirmed" not in kept.certificate
    assert kept.contributions.tolist() == [1, 0, 1]
    assert kept.bounds == Interval(1.0, 2.0)


def test_a_search_that_does_not_end_leaves_bounds_and_no_claim(monkeypatch):
    solution = solve_stable(SIX.replace(costs=None))
    monkeypatch.setattr(confirming, "NODES", 0)
    open_end = settle(solution, bounds=Interval(solution.total, solution.total), certificate={})
    assert "confirmed" not in open_end.certificate
    assert open_end.status in (Status.LIMIT, Status.OPTIMAL)
    assert open_end.bounds.lower <= solution.total
    if open_end.status is Status.OPTIMAL:
        assert open_end.bounds.relative_gap <= 1e-6
    refuted = settle(solution, contributions=solution.contributions * 0.5)
    assert refuted.status is Status.FAILED
    assert refuted.contributions is None


def test_a_program_of_many_agents_proves_nothing_by_itself():
    rng = np.random.default_rng(0)
    benefits = np.round(rng.random((30, 30)), 2) + np.eye(30)
    game = LinearGame(benefits, np.round(rng.uniform(1, 2, 30), 2))
    solution = solve_stable(game, time_limit=10)
    if solution.method == "milp":
        assert solution.status is Status.LIMIT
        lower = solve_optimal(game).bounds.lower
        assert solution.bounds.lower == pytest.approx(lower, rel=1e-6)


# Coverage.


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solve", SOLVERS.values())
@pytest.mark.parametrize(
    "game",
    [
        CoverageGame([[0, 1 / 3, 1 / 3, 0, 1 / 3], [0, 0, 0, 0, 1]], [0.9, 0.9], limits=[1, None]),
        # Nobody but agent 2 is ever certain of its point, and it may give nothing.
        CoverageGame(
            [[0.5, 0.5], [2 / 3, 1 / 3], [1, 0]], [5 / 6, 8 / 9, 1], limits=[0, None, 0],
            strategies="integer",
        ),
    ],
)  # fmt: skip
def test_a_coverage_game_that_limits_rule_out_is_infeasible(solve, game):
    assert solve(game).status is Status.INFEASIBLE


@pytest.mark.filterwarnings("error")
def test_a_certain_point_makes_a_requirement_of_one_feasible():
    game = CoverageGame([[0.5, 0.5], [1, 0]], [0.6, 1], limits=[1, 1], strategies="integer")
    verify(solve_optimal(game), Status.OPTIMAL, 1)


def test_a_real_coverage_game_may_have_no_whole_numbers_between_minimum_and_limit():
    game = CoverageGame(
        [[0.5, 0.5], [2 / 3, 1 / 3]], [5 / 6, 0.7], limits=[None, 0.5], minimums=[0, 0.25]
    )
    solution = solve_envy_free(game)
    assert check(game, solution.allocation).envy_free is not Answer.FALSE


@pytest.mark.filterwarnings("error")
def test_a_real_coverage_game_may_be_infeasible_over_whole_numbers():
    game = CoverageGame(
        [[1 / 6, 1 / 6, 1 / 2, 1 / 6], [1, 0, 0, 0]], [2 / 3, 2 / 3], limits=[0.75, None]
    )
    solution = solve_envy_free(game)
    assert check(game, solution.allocation).envy_free is not Answer.FALSE
