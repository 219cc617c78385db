"""Stable equilibria of linear games against one linear program for every set of contributors."""

import numpy as np
import pytest
from linear_games import INDEFINITE, PAPER_LIKE, flower, random_game, stable_range
from solvers import of_games

from fedaccord.check import Answer, check
from fedaccord.equilibria.general import stable as general
from fedaccord.equilibria.general.exhaustive import exhaustive_stable
from fedaccord.equilibria.linear import stable as linear_stable
from fedaccord.equilibria.linear.best_response import find_fixed_point
from fedaccord.equilibria.linear.stable import is_stable, polish, potential_gap, trivial_lower_bound
from fedaccord.equilibria.result import Deadline, Status
from fedaccord.equilibria.solve import solve_stable
from fedaccord.errors import InputError
from fedaccord.games.linear import DiscoveryGame, LinearGame

potential_stable, damped_stable, milp_stable, general_stable = (
    of_games(solve, "stable")
    for solve in (
        linear_stable.potential_stable,
        linear_stable.damped_stable,
        linear_stable.milp_stable,
        general.general_stable,
    )
)

SEGMENT = LinearGame(
    [[1, 0, 2**-0.5], [0, 1, 2**-0.5], [2**-0.5, 2**-0.5, 1]], [1, 1, 2**0.5]
)  # fmt: skip


def within(value, bounds):
    return bounds.lower - 1e-6 * abs(value) <= value <= bounds.upper + 1e-6 * abs(value)


def verify(solution, ends, select="cheapest"):
    """Check a claim against the least and the greatest total; ends None where there is none."""
    if ends is None:
        assert solution.status is Status.NONE_EXISTS
        assert solution.contributions is None
        return
    truth = ends[0] if select == "cheapest" else ends[1]
    assert solution.status is Status.OPTIMAL
    assert solution.total == pytest.approx(truth, rel=1e-6, abs=1e-9)
    assert within(truth, solution.bounds)
    assert check(solution.game, solution.allocation).stable is Answer.TRUE


def test_the_check_objects_to_planted_faults():
    solution = solve_stable(SEGMENT)
    verify(solution, (2**0.5, 2.0))
    verify(solve_stable(SEGMENT, select="costliest"), (2**0.5, 2.0), "costliest")
    for wrong in ((1.0, 2.0), (2.0, 2.0), None):
        with pytest.raises(AssertionError):
            verify(solution, wrong)
    assert stable_range(SEGMENT) == pytest.approx((2**0.5, 2.0))
    assert stable_range(LinearGame(np.eye(2), [1, 1], limits=[None, 0.5])) is None


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("select", ["cheapest", "costliest"])
def test_both_ends_are_found_whatever_the_benefits(seed, select):
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    game = random_game(
        rng, 3 + seed % 2, kind=kind, equal=seed % 2 == 0, boxed=seed % 4 >= 2, costs=seed % 5 == 0
    )
    if solve_stable(game).status is Status.INFEASIBLE:
        assert stable_range(game) is None
        return
    ends = stable_range(game)
    verify(solve_stable(game, select=select), ends, select)
    verify(solve_stable(game, select=select, method="milp"), ends, select)


def test_the_random_games_include_some_without_an_equilibrium():
    found = [
        stable_range(random_game(np.random.default_rng(seed), 3, kind="psd", boxed=True))
        for seed in range(8)
    ]
    assert 0 < found.count(None) < 8


@pytest.mark.parametrize("unit", [1e-6, 1e7])
def test_any_unit_will_do(unit):
    for benefits in (PAPER_LIKE, INDEFINITE):
        game = LinearGame(benefits, np.full(3, unit))
        ends = stable_range(LinearGame(benefits, np.ones(3)))
        for select in ("cheapest", "costliest"):
            solution = solve_stable(game, select=select)
            truth = ends[select == "costliest"] * unit
            assert solution.status is Status.OPTIMAL
            assert solution.total == pytest.approx(truth, rel=1e-6)


def test_the_potential_bounds_hold_the_total_even_after_few_sweeps():
    # Bounds follow from convexity at any point, so they must hold however early one stops.
    rng = np.random.default_rng(11)
    tight = 0
    for trial in range(24):
        game = random_game(rng, 4, kind="psd", equal=trial % 2 == 0, boxed=trial % 4 == 0)
        ends = stable_range(game)
        if ends is None or not game.requirements.any():
            continue
        for theta in (rng.random(4), polish(game, rng.random(4))):
            theta = np.clip(theta, game.minimums, game.limits)
            bounds = linear_stable.bound_totals(game, theta, potential_gap(game, theta))
            if bounds is not None:
                assert bounds.lower - 1e-9 <= ends[0] <= ends[1] <= bounds.upper + 1e-9
                tight += bounds.upper < 10 * ends[1]
    assert tight > 5


def test_the_gap_bounds_the_distance_of_the_potential_from_its_least():
    rng = np.random.default_rng(2)
    for trial in range(30):
        game = random_game(rng, 4, kind="psd", boxed=trial % 2 == 0)

        def potential(theta, game=game):
            return theta @ game.apply(theta) / 2 - game.requirements @ theta

        point = find_fixed_point(game, tolerance=1e-10, deadline=Deadline(10))
        least = potential(point.contributions)
        theta = np.clip(rng.random(4) * 2, game.minimums, game.limits)
        assert potential(theta) - least <= potential_gap(game, theta) + 1e-9


def test_discovery_bounds_hold_at_unequal_requirements():
    rng = np.random.default_rng(4)
    for _ in range(6):
        rows = rng.random((4, 2))
        game = DiscoveryGame(rows / rows.sum(axis=1, keepdims=True), rng.uniform(0.2, 1, 4))
        ends = stable_range(game)
        assert ends[1] == pytest.approx(ends[0], rel=1e-6)
        verify(solve_stable(game), ends)


def test_who_is_short_at_everybodys_limit_makes_it_infeasible():
    solution = solve_stable(LinearGame(np.eye(2), [1, 1], limits=[0.5, None]))
    assert solution.status is Status.INFEASIBLE
    assert "agent 0 cannot reach its requirement" in solution.note


def test_an_unlimited_helper_makes_it_feasible_however_little_it_helps():
    game = LinearGame([[1, 1e-8], [0, 1]], [1, 1], limits=[0.5, None])
    # Feasible at 5e7 samples of agent 1, but agent 1 has no reason to give more than one.
    assert solve_stable(game).status is Status.NONE_EXISTS


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_infeasibility_does_not_depend_on_the_unit(unit):
    game = LinearGame(np.eye(2), [unit, unit], limits=[0.9 * unit, None])
    assert solve_stable(game).status is Status.INFEASIBLE
    assert solve_stable(game.replace(limits=[unit, None])).status is Status.OPTIMAL


def test_limits_that_leave_somebody_short_are_proved_to():
    game = LinearGame([[1, 0.5], [0, 1]], [1, 0.1], limits=[0.8, None])
    assert stable_range(game) is None
    solution = solve_stable(game)
    assert solution.status is Status.NONE_EXISTS
    symmetric = LinearGame([[1, 0.5], [0.5, 1]], [1, 0.5], limits=[0.8, None])
    assert stable_range(symmetric) is None
    solution = solve_stable(symmetric)
    assert solution.status is Status.NONE_EXISTS
    assert "agent 0 stays short" in solution.note
    assert solution.certificate["agent"] == 0


@pytest.mark.parametrize("seed", range(6))
def test_cp1_agrees(seed):
    pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    game = random_game(rng, 4, kind="psd", equal=seed % 2 == 0, boxed=seed >= 4)
    ends = stable_range(game)
    if ends is None:
        game = game.replace(limits=None)
        ends = stable_range(game)
    solution = solve_stable(game, method="cp1", tolerance=1e-3)
    assert solution.total == pytest.approx(ends[0], rel=1e-4)
    assert within(ends[0], solution.bounds)


def test_cp1_says_when_the_conic_solver_gives_up(monkeypatch):
    cvxpy = pytest.importorskip("cvxpy")

    def give_up(problem, **options):
        raise cvxpy.error.SolverError("no progress")

    monkeypatch.setattr(cvxpy.Problem, "solve", give_up)
    solution = solve_stable(flower(4), method="cp1")
    assert (solution.status, solution.contributions) == (Status.FAILED, None)
    assert "no progress" in solution.note


def test_cp1_refuses_what_it_cannot_say():
    pytest.importorskip("cvxpy")
    game = LinearGame(PAPER_LIKE, [1, 1, 1])
    with pytest.raises(InputError, match="cheapest real equilibrium only"):
        solve_stable(game, method="cp1", select="costliest")
    with pytest.raises(InputError, match="cheapest real equilibrium only"):
        solve_stable(game.replace(strategies="integer"), method="cp1")
    with pytest.raises(InputError, match="positive semidefinite"):
        solve_stable(LinearGame(INDEFINITE, [1, 1, 1]), method="cp1")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("select", ["cheapest", "costliest"])
def test_integer_programs_agree_with_exhaustive_search(seed, select):
    rng = np.random.default_rng(seed)
    kind = "symmetric" if seed % 2 else "any"
    game = random_game(rng, 3, kind=kind, strategies="integer", costs=seed % 3 == 0)
    deadline = Deadline(20)
    plain = exhaustive_stable(game, select=select, deadline=deadline)
    program = milp_stable(game, select=select, tolerance=1e-6, deadline=deadline)
    if plain.status is Status.NONE_EXISTS:
        # A solver's word is no proof over the integers.
        assert program.status is Status.FAILED
    else:
        assert program.status is plain.status is Status.OPTIMAL
        assert program.total == plain.total
        assert check(game, program.allocation).stable is Answer.TRUE


@pytest.mark.parametrize("select", ["cheapest", "costliest"])
def test_damped_best_response_is_verified_and_bounds_only_what_it_found(select):
    cycle = LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1])
    solution = damped_stable(cycle, select=select, tolerance=1e-6, deadline=Deadline(10))
    assert solution.status is Status.LIMIT
    assert solution.contributions == pytest.approx([0.5] * 3)
    game = LinearGame(INDEFINITE, [1, 1, 1])
    solution = solve_stable(game, method="best-response", select=select)
    assert check(game, solution.allocation).stable is Answer.TRUE
    assert within(1.0 if select == "cheapest" else 2.0, solution.bounds)
    if select == "costliest":
        assert solution.bounds.upper == np.inf


def test_damped_best_response_that_does_not_settle_has_failed():
    cycle = LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1])
    solution = damped_stable(cycle, tolerance=1e-6, deadline=Deadline(0.0))
    assert solution.status is Status.FAILED
    assert solution.contributions is None
    assert solution.bounds.upper == np.inf


def test_general_best_response_bounds_the_end_that_was_asked_for():
    game = LinearGame(PAPER_LIKE, [1, 1, 1])
    deadline = Deadline(10)
    for select, ends in (("cheapest", (0.0, 5 / 3)), ("costliest", (5 / 3, np.inf))):
        solution = general_stable(
            game, method="best-response", select=select, tolerance=1e-6, deadline=deadline
        )
        assert (solution.bounds.lower, solution.bounds.upper) == pytest.approx(ends)


@pytest.mark.parametrize("select", ["cheapest", "costliest"])
def test_games_too_large_to_choose_say_so(monkeypatch, select):
    monkeypatch.setattr(linear_stable, "FACTOR_LIMIT", 0)
    solution = potential_stable(SEGMENT, select=select, tolerance=1e-6, deadline=Deadline(10))
    assert solution.status is Status.LIMIT
    assert check(SEGMENT, solution.allocation).stable is Answer.TRUE
    assert within(2**0.5 if select == "cheapest" else 2.0, solution.bounds)


def test_without_time_nothing_is_called_an_equilibrium():
    solution = solve_stable(flower(16), time_limit=0.0)
    assert solution.status is Status.FAILED
    assert solution.contributions is None
    assert within(64 / 7, solution.bounds)
    assert solution.certificate["regret"] > 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_the_trivial_bound_is_one(seed):
    game = random_game(np.random.default_rng(seed), 3, kind="any", costs=True)
    assert trivial_lower_bound(game) <= stable_range(game)[0] + 1e-9


def test_stability_is_checked_by_best_responses():
    game = LinearGame(PAPER_LIKE, [1, 1, 1])
    assert is_stable(game, np.array([0, 5 / 6, 5 / 6]), 1e-9)
    assert not is_stable(game, np.array([0, 0.84, 5 / 6]), 1e-6)
    whole = LinearGame(np.eye(1) * 0.3, [1], strategies="integer")
    assert is_stable(whole, np.array([4.0]), 0.5)
    assert not is_stable(whole, np.array([5.0]), 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "guess"}, "method must be one of"),
        ({"select": "middle"}, "select must be"),
        ({"start": [1]}, "start must have 3 contributions"),
        ({"start": [1, np.nan, 0]}, "the start of agent 1 is not a number"),
        ({"start": [1, -1, 0]}, "the start of agent 1 is negative"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        solve_stable(LinearGame(PAPER_LIKE, [1, 1, 1]), **options)
