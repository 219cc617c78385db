"""LP 1: three solvers, certificates that hold for any prices, repairs, and whole numbers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from linear_games import flower, optimum, random_game
from scipy import sparse
from solvers import of_games
from strategies import discovery_games

from fedaccord.check import Answer, check
from fedaccord.equilibria.linear import first_order, multiplicative_weights, optimal
from fedaccord.equilibria.linear.multiplicative_weights import _Best, _Players
from fedaccord.equilibria.linear.optimal import certify, dual_bound, repair
from fedaccord.equilibria.result import Deadline, Status
from fedaccord.equilibria.solve import solve_optimal
from fedaccord.errors import InputError
from fedaccord.games.linear import DiscoveryGame, LinearGame

highs_optimal, first_order_optimal, milp_optimal, multiplicative_weights_optimal = (
    of_games(solve, "optimal")
    for solve in (
        optimal.highs_optimal,
        first_order.first_order_optimal,
        optimal.milp_optimal,
        multiplicative_weights.multiplicative_weights_optimal,
    )
)


def drawn_game(seed, **frame):
    """Draw a feasible game, with limits, minimums and costs in turn."""
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    while True:
        game = random_game(rng, 4, kind=kind, boxed=seed % 2 == 1, costs=seed % 4 >= 2, **frame)
        if optimum(game) is not None:
            return game


def verify(solution, truth):
    """Check a claim against the least total."""
    assert solution.status in (Status.OPTIMAL, Status.LIMIT)
    assert solution.bounds.lower <= truth * (1 + 1e-7) + 1e-9
    assert solution.bounds.upper >= truth * (1 - 1e-7) - 1e-9
    assert solution.total == pytest.approx(solution.bounds.upper, rel=1e-9, abs=1e-12)
    assert check(solution.game, solution.allocation).feasible is Answer.TRUE


def test_the_check_objects_to_planted_faults():
    solution = solve_optimal(flower(16))
    verify(solution, 4.0)
    for wrong in (3.9, 4.1):
        with pytest.raises(AssertionError):
            verify(solution, wrong)


@pytest.mark.parametrize("seed", range(18))
def test_highs_finds_the_optimum_and_proves_it(seed):
    game = drawn_game(seed)
    truth = float(game.costs @ optimum(game))
    solution = highs_optimal(game, tolerance=1e-6, deadline=Deadline(20))
    verify(solution, truth)
    assert solution.status is Status.OPTIMAL
    assert solution.total == pytest.approx(truth, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("solve", "tolerance"),
    [(first_order_optimal, 1e-4), (multiplicative_weights_optimal, 2e-2)],
)
def test_first_order_methods_keep_their_certificates(seed, solve, tolerance):
    game = drawn_game(seed)
    truth = float(game.costs @ optimum(game))
    free = not np.isfinite(game.limits).any()
    solution = solve(game, tolerance=tolerance, deadline=Deadline(20 if free else 0.5))
    if solution.status is not Status.FAILED:
        verify(solution, truth)
    if free:
        assert solution.status is Status.OPTIMAL
        assert solution.total <= truth * (1 + tolerance) + 1e-9
    assert dual_bound(game, solution.certificate["prices"]) <= truth * (1 + 1e-9) + 1e-12


@settings(max_examples=15)
@given(discovery_games())
def test_the_lifted_form_solves_the_same_program(game):
    truth = float(game.costs @ optimum(game))
    verify(first_order_optimal(game, tolerance=1e-4, deadline=Deadline(5)), truth)
    dense = LinearGame(game.dense_benefits, game.requirements)
    assert solve_optimal(dense).total == pytest.approx(truth, rel=1e-6, abs=1e-9)
    assert solve_optimal(game).total == pytest.approx(truth, rel=1e-6, abs=1e-9)


def crowded_discovery(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(12, 0.3), size=30)
    return DiscoveryGame(rows, scale * rng.uniform(0.5, 1, 30))


def note_precision(monkeypatch):
    """Return a list that gets the kind of number of each program that is made."""
    kinds = []
    make = first_order._make_program
    monkeypatch.setattr(first_order, "_make_program", lambda g, k: kinds.append(k) or make(g, k))
    return kinds


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_single_precision_proves_three_digits_in_any_unit(scale, monkeypatch):
    game, kinds = crowded_discovery(scale=scale), note_precision(monkeypatch)
    solution = first_order_optimal(game, tolerance=1e-3, deadline=Deadline(20))
    assert solution.status is Status.OPTIMAL
    assert kinds == [np.float32]
    verify(solution, float(optimum(crowded_discovery()).sum()) * scale)
    kinds.clear()
    first_order_optimal(game, tolerance=1e-5, deadline=Deadline(1))
    assert kinds == [np.float64]


def test_double_precision_takes_over_where_single_stalls(monkeypatch):
    game, kinds = crowded_discovery(), note_precision(monkeypatch)
    monkeypatch.setattr(first_order, "SINGLE", 0.0)
    monkeypatch.setattr(first_order, "PATIENCE", first_order.CHECK_EVERY)
    solution = first_order_optimal(game, tolerance=1e-9, deadline=Deadline(20))
    assert solution.status is Status.OPTIMAL
    assert kinds == [np.float32, np.float64]
    verify(solution, float(optimum(game).sum()))


def test_highs_solves_the_lifted_form_of_a_crowded_discovery_game():
    # Many agents at few points: Q has far fewer entries than Q Q'.
    rng = np.random.default_rng(0)
    rows = np.zeros((60, 8))
    for i in range(60):
        rows[i, rng.choice(8, 2, replace=False)] = 0.5
    game = DiscoveryGame(sparse.csr_array(rows), rng.uniform(0.5, 1, 60))
    solution = highs_optimal(game, tolerance=1e-6, deadline=Deadline(20))
    verify(solution, float(optimum(game).sum()))
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", range(24))
def test_any_prices_give_a_lower_bound(seed):
    rng = np.random.default_rng(seed)
    game = drawn_game(seed)
    truth = float(game.costs @ optimum(game))
    best = 0.0
    for _ in range(60):
        prices = rng.exponential(size=4) * rng.integers(0, 2, 4) * 10.0 ** rng.integers(-3, 4)
        bound = dual_bound(game, prices)
        assert bound <= truth * (1 + 1e-9) + 1e-12
        best = max(best, bound)
    duals = highs_optimal(game, tolerance=1e-6, deadline=Deadline(5)).certificate["prices"]
    assert dual_bound(game, duals) == pytest.approx(truth, rel=1e-6, abs=1e-9)
    assert dual_bound(game, np.zeros(4)) == pytest.approx(float(game.costs @ game.minimums))


@pytest.mark.parametrize("seed", range(24))
def test_repaired_contributions_are_feasible(seed):
    rng = np.random.default_rng(seed)
    game = drawn_game(seed)
    truth = float(game.costs @ optimum(game))
    for theta in (rng.random(4), 0.999 * optimum(game), np.zeros(4), optimum(game)):
        found, bounds = certify(game, theta, rng.random(4))
        if found is not None:
            assert check(game, found).feasible is Answer.TRUE
            assert bounds.upper >= truth * (1 - 1e-9)
            assert bounds.lower <= truth * (1 + 1e-9)
    near = repair(game, np.clip(optimum(game) * (1 - 1e-9), game.minimums, game.limits))
    assert near is not None
    assert game.total(near) == pytest.approx(truth, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_limits_with_nothing_to_spare_are_no_failure(seed):
    rng = np.random.default_rng(seed)
    benefits, limits = rng.random((3, 3)) + np.eye(3), rng.random(3)
    share = [1.0, 1.0, 1.0] if seed % 2 else [1.0, 0.7, 0.5]
    game = LinearGame(benefits, benefits @ limits * share, limits=limits)
    solution = solve_optimal(game)
    assert solution.status is Status.OPTIMAL
    assert check(game, solution.allocation).feasible is Answer.TRUE
    assert solution.total == pytest.approx(limits.sum(), rel=1e-6)


def test_multiplicative_weights_go_around_whom_limits_stop():
    benefits = np.eye(5)
    benefits[0] = benefits[:, 0] = 0.5
    benefits[0, 0] = 1.0
    for limit, least in ((0.0, 4.0), (1.0, 3.0)):
        game = LinearGame(benefits, np.ones(5), limits=[limit, None, None, None, None])
        solution = multiplicative_weights_optimal(game, tolerance=2e-2, deadline=Deadline(10))
        assert solution.status is Status.OPTIMAL
        verify(solution, least)


def test_multiplicative_weights_let_those_give_who_need_nothing():
    benefits = np.eye(5)
    benefits[0] = benefits[:, 0] = 0.5
    benefits[0, 0] = 1.0
    game = LinearGame(benefits, [0, 1, 1, 1, 1])
    solution = multiplicative_weights_optimal(game, tolerance=2e-2, deadline=Deadline(10))
    assert solution.status is Status.OPTIMAL
    verify(solution, 2.0)
    nobody = LinearGame(np.eye(2), [0, 0], minimums=[0.5, 0])
    solution = multiplicative_weights_optimal(nobody, tolerance=1e-2, deadline=Deadline(5))
    assert (solution.status, solution.total) == (Status.OPTIMAL, 0.5)


def test_multiplicative_weights_close_where_columns_and_rows_tie():
    # Several prices and several allocations are optimal here, and plain weights circle among them.
    benefits = [[1, 0, 0.25], [0, 1, 0.75], [0.25, 0.75, 1]]
    game = LinearGame(benefits, [1.625, 1.75, 2])
    solution = multiplicative_weights_optimal(game, tolerance=1e-3, deadline=Deadline(20))
    assert solution.status is Status.OPTIMAL
    verify(solution, 3.375)


@pytest.mark.parametrize("seed", range(3))
def test_multiplicative_weights_close_on_crowded_discovery_games(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(40, 0.3), size=60)
    game = DiscoveryGame(rows, rng.uniform(0.02, 0.05, 60))
    solution = multiplicative_weights_optimal(game, tolerance=2e-2, deadline=Deadline(30))
    assert solution.status is Status.OPTIMAL
    verify(solution, float(optimum(game).sum()))


def test_weights_that_do_not_get_anywhere_take_smaller_steps():
    game = flower(16)
    players, best = _Players(game), _Best(game)
    rate = players.rate
    # The first window has nothing to be compared with; then a gap that shrinks, and one that stays.
    for upper, factor in ((2.0, 1), (1.5, 1), (1.49, 2)):
        best.upper = upper
        for _ in range(2 * players.window):
            players.step()
        players.adapt(best)
        assert players.rate == rate / factor


def unlike_games():
    """Games with needs or benefits of very different sizes, on which equal weights get stuck."""
    yield LinearGame(np.eye(30), np.geomspace(0.1, 10, 30))
    yield LinearGame(np.eye(30), np.geomspace(0.01, 100, 30))
    rng = np.random.default_rng(0)
    benefits = rng.random((100, 100)) * (rng.random((100, 100)) < 0.03)
    np.fill_diagonal(benefits, 1.0)
    yield LinearGame(benefits, rng.uniform(0.1, 3, 100))
    # Own samples are worth next to nothing here, and steps by what they are worth far too long.
    benefits = np.random.default_rng(1).random((20, 20))
    np.fill_diagonal(benefits, 0.001)
    yield LinearGame(benefits, np.random.default_rng(2).uniform(0.5, 1, 20))


@pytest.mark.parametrize("number", range(4))
def test_multiplicative_weights_close_where_needs_or_benefits_are_of_very_different_sizes(number):
    game = [*unlike_games()][number]
    solution = multiplicative_weights_optimal(game, tolerance=2e-2, deadline=Deadline(60))
    assert solution.status is Status.OPTIMAL
    verify(solution, float(optimum(game).sum()))


def test_a_unit_that_is_unlike_the_others_does_not_hold_up_multiplicative_weights():
    # Nobody is of use to others but the first, to the second, whose needs are the smallest.
    benefits = np.eye(20)
    benefits[1, 0] = 0.01
    game = LinearGame(benefits, np.geomspace(10, 0.1, 20))
    solution = multiplicative_weights_optimal(game, tolerance=1e-2, deadline=Deadline(20))
    assert solution.status is Status.OPTIMAL
    verify(solution, float(optimum(game).sum()))


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_any_unit_will_do(unit):
    game = flower(16)
    scaled = game.replace(requirements=game.requirements * unit)
    solution = solve_optimal(scaled)
    assert solution.status is Status.OPTIMAL
    assert solution.total == pytest.approx(4 * unit, rel=1e-6)


def least_whole_total(game, most=6):
    """Try every allocation of whole numbers in a box."""
    highs = [int(min(high, most)) for high in game.limits]
    lows = [int(low) for low in game.minimums]
    ranges = (range(low, high + 1) for low, high in zip(lows, highs, strict=True))
    totals = [
        game.total(np.array(theta, dtype=float))
        for theta in product(*ranges)
        if game.is_feasible(np.array(theta, dtype=float))
    ]
    return min(totals) if totals else None


@pytest.mark.parametrize("seed", range(16))
def test_whole_optima_are_those_of_plain_search(seed):
    rng = np.random.default_rng(seed)
    limits = [None if rng.random() < 0.5 else int(rng.integers(1, 5)) for _ in range(3)]
    minimums = [0 if limit is None else int(rng.integers(0, 2)) for limit in limits]
    game = random_game(
        rng, 3, strategies="integer", costs=seed % 2 == 0, limits=limits, minimums=minimums
    )
    truth = least_whole_total(game, most=9)
    solution = solve_optimal(game)
    if truth is None:
        assert solution.status is Status.INFEASIBLE
    else:
        assert solution.status is Status.OPTIMAL
        assert solution.total == pytest.approx(truth)
        assert game.is_feasible(solution.contributions)


@pytest.mark.parametrize(("own", "need", "least"), [(0.1, 0.3, 3), (0.1, 0.7, 7), (1 / 9, 1, 9)])
def test_whole_optima_are_not_fooled_by_rounding(own, need, least):
    game = LinearGame(np.diag([own, own]), [need, need], strategies="integer")
    solution = milp_optimal(game, tolerance=1e-6, deadline=Deadline(5))
    assert (solution.status, solution.total) == (Status.OPTIMAL, 2 * least)


@pytest.mark.parametrize(
    ("options", "strategies", "words"),
    [
        ({"method": "guess"}, "real", "method must be one of"),
        ({"method": "milp"}, "real", "does not fit real strategies"),
        ({"method": "highs"}, "integer", "does not fit integer strategies"),
    ],
)
def test_bad_options_are_refused(options, strategies, words):
    with pytest.raises(InputError, match=words):
        solve_optimal(LinearGame(np.eye(2), [1, 1], strategies=strategies), **options)


def test_bounds_of_whole_numbers_are_whole_numbers():
    """The solver's own bound is 2.9999999999999982."""
    benefits = [[1.0, 0.1, 0.8], [0.3, 1.0, 0.8], [0.8, 0.8, 1.0]]
    game = LinearGame(benefits, [1.9, 1.3, 2.9], limits=[3, None, None], strategies="integer")
    found = solve_optimal(game)
    assert (found.bounds.lower, found.bounds.upper, found.total) == (3, 3, 3)
