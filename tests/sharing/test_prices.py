"""Prices that make the cheapest plan hold: sums of zero, and no group that would rather leave."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from linear_games import optimum, random_game

from fedaccord import InputError, LinearGame, share_costs
from fedaccord.equilibria.whole import round_plan
from fedaccord.errors import UnsolvedError
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.sharing.prices import EXACT_AGENTS, find_prices, proves_plan, share_by_prices

HOSPITALS = LinearGame(
    [[1, 0.6, 0.7], [0.6, 1, 0.1], [0.7, 0.1, 1]],
    [1440, 1440, 930],
    agents=["University", "City", "Rural"],
)


def groups(size):
    """List all groups of some agents, the empty one and the whole left out."""
    return [list(g) for n in range(1, size) for g in combinations(range(size), n)]


def cost_alone(game, group):
    """Return what a group costs alone, by scipy; infinite where it cannot."""
    found = optimum(game.restrict(group))
    return np.inf if found is None else float(game.costs[group] @ found)


def draw_game(seed):
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    size = int(rng.integers(2, 6))
    return random_game(rng, size, kind=kind, boxed=seed % 2 == 1, costs=seed % 5 > 1)


def test_the_hospitals_pay_what_the_duals_say():
    found = share_costs(HOSPITALS)
    np.testing.assert_allclose(found.contributions, [1228.125, 703.125, 0])
    np.testing.assert_allclose(found.payments, [-1228.125, 646.875, 581.25])
    assert found.prices.exact
    assert found.explain(1) == (
        "City gives 703 and pays 647. It bears 1,350 in all, and would pay 1,440 alone. "
        "City and Rural together bear 1,931. Without the others they would pay 2,155."
    )


@pytest.mark.parametrize("seed", range(320))
def test_payments_add_up_to_zero_and_no_group_would_leave(seed):
    game = draw_game(seed)
    whole = optimum(game)
    if whole is None:
        with pytest.raises(UnsolvedError, match="nothing to share"):
            find_prices(game)
        return
    prices = find_prices(game)
    total = float(game.costs @ whole)
    scale = max(total, 1e-9)
    assert prices.exact
    assert prices.charges.sum() == pytest.approx(total, rel=1e-9, abs=1e-12)
    assert prices.total == pytest.approx(total, rel=1e-9, abs=1e-12)
    # Each agent is charged for its requirement and paid for its samples.
    payments = prices.requirements * game.requirements - prices.samples * prices.contributions
    np.testing.assert_allclose(
        prices.charges, game.costs * prices.contributions + payments, atol=1e-9 * scale
    )
    for group in groups(game.size):
        assert prices.charges[group].sum() <= cost_alone(game, group) + 1e-7 * scale


@pytest.mark.parametrize("seed", range(40))
def test_nobody_gains_by_giving_less_or_more_at_the_prices(seed):
    """At the price of its samples, no other contribution within its range is cheaper to it."""
    game = draw_game(seed)
    if optimum(game) is None:
        return
    prices = find_prices(game)
    for agent, margin in enumerate(game.costs - prices.samples):
        given = prices.contributions[agent]
        if margin > 1e-9:
            assert given == pytest.approx(game.minimums[agent])
        if margin < -1e-9:
            assert given == pytest.approx(game.limits[agent])


def test_a_limit_that_binds_earns_its_owner_more_than_its_samples_cost():
    game = HOSPITALS.replace(limits=[300, None, None])
    prices = find_prices(game)
    assert prices.exact and prices.contributions[0] == 300
    assert prices.samples[0] > 1
    assert prices.charges.sum() == pytest.approx(prices.total, rel=1e-12)


# Faults.


def exact_hospitals():
    given = [Fraction(9825, 8), Fraction(5625, 8), Fraction(0)]
    return given, [Fraction(0), Fraction(15, 16), Fraction(5, 8)]


def test_the_proof_in_fractions_holds_and_objects_to_planted_faults():
    given, prices = exact_hospitals()
    assert proves_plan(HOSPITALS, given, prices)
    tiny = Fraction(1, 10**15)
    for agent in range(3):
        for sign in (1, -1):
            wrong = list(prices)
            wrong[agent] += sign * tiny
            assert not proves_plan(HOSPITALS, given, wrong)
    assert not proves_plan(HOSPITALS, [given[0] - tiny, *given[1:]], prices)
    assert not proves_plan(HOSPITALS, [given[0] + tiny, *given[1:]], prices)
    assert not proves_plan(HOSPITALS.replace(limits=[1228, None, None]), given, prices)


def test_a_price_below_zero_proves_nothing():
    """With it, a plan twice as dear as the cheapest would seem to be proved."""
    game = LinearGame([[1, 0], [1, 1]], [4, 0])
    plan, prices = [Fraction(8), Fraction(0)], [Fraction(2), Fraction(-1)]
    assert sum(share_by_prices(game, prices)) == 8
    assert not proves_plan(game, plan, prices)


def test_prices_above_what_a_sample_costs_need_a_limit():
    prices = [Fraction(2), Fraction(0), Fraction(0)]
    assert share_by_prices(HOSPITALS, prices) is None
    assert share_by_prices(HOSPITALS.replace(limits=[10, 10, 10]), prices) is not None


# Beyond few agents, and whole numbers.


@pytest.mark.parametrize("seed", range(6))
def test_many_agents_are_charged_up_to_rounding(seed):
    rng = np.random.default_rng(seed)
    size = 25 + EXACT_AGENTS
    benefits = rng.random((size, size)) * 0.5 + np.eye(size)
    game = LinearGame(benefits, rng.uniform(10, 100, size), costs=rng.uniform(0.5, 2, size))
    prices = find_prices(game)
    assert not prices.exact and prices.gap < 1e-8
    for _ in range(20):
        group = np.flatnonzero(rng.random(size) < rng.random())
        if len(group):
            alone = cost_alone(game, group.tolist())
            assert prices.charges[group].sum() <= alone * (1 + 1e-8)


def test_whole_samples_cost_a_little_more_and_still_hold():
    game = LinearGame([[1, 0.5], [0.5, 1]], [10, 10], strategies="integer")
    found = share_costs(game)
    # Both give 7 where 6 2/3 would be enough, or one gives 6 and the other 8.
    assert found.prices.total == 14
    assert found.prices.gap == pytest.approx(14 / (40 / 3) - 1)
    assert found.payments.sum() == pytest.approx(0, abs=1e-9)
    assert any("whole samples" in note for note in found.notes)
    # Each bears 7, and would need 10 alone.
    assert found.contracts["prices"].saving == pytest.approx(3) and found.is_proved


def test_a_measured_game_is_shared_as_its_linear_game():
    curves = [[0.05, 1.0, 1.0, 0.5], [0.1, 1.0, 1.0, 0.5]]
    game = MeasuredGame([[1, 0.5], [0.3, 1]], curves, [0.85, 0.8])
    linear = LinearGame([[1, 0.5], [0.3, 1]], game.requirements)
    found, real = share_costs(game), share_costs(linear)
    np.testing.assert_allclose(found.prices.requirements, real.prices.requirements)
    # Pilots count samples: the plan is whole, and so is what each agent needs alone.
    assert (found.contributions % 1 == 0).all() and (found.alone % 1 == 0).all()
    assert game.is_feasible(found.contributions)
    assert (np.abs(found.contributions - real.contributions) < 1).all()
    np.testing.assert_array_equal(found.alone, np.ceil(game.requirements - 1e-6))
    assert found.payments.sum() == pytest.approx(0, abs=1e-9 * found.prices.total)


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_in_whole_samples_is_feasible_and_within_one_of_the_plan(seed):
    game = draw_game(seed)
    real = optimum(game)
    if real is None:
        return
    # In units of a thousandth, so that contributions are hundreds of samples.
    game = game.replace(
        requirements=1000 * game.requirements,
        minimums=np.floor(1000 * game.minimums),
        limits=np.ceil(1000 * game.limits),
    )
    real = optimum(game)
    whole = round_plan(game, real)
    assert (whole % 1 == 0).all() and game.is_feasible(whole)
    assert (np.abs(whole - real) < 1).all()


def test_other_games_are_refused():
    game = CoverageGame([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5])
    with pytest.raises(InputError, match="coverage"):
        share_costs(game)
