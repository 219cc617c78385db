"""Prices against finite differences, payments, members' worth, and warm starts."""

import numpy as np
import pytest
from linear_games import PAPER_LIKE, flower, random_game

from fedaccord.check import Answer, check
from fedaccord.equilibria.economics import (
    carried_over,
    leave_one_out,
    requirement_prices,
    support_payments,
)
from fedaccord.equilibria.linear.best_response import find_fixed_point
from fedaccord.equilibria.result import Deadline, Interval, Solution, Status
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.errors import InputError
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame

STEP = 1e-4


def differences(solve, game):
    """Raise and lower each requirement a little; None where the total has a kink."""
    slopes = []
    for i in range(game.size):
        totals = []
        for sign in (1, 0, -1):
            needs = np.array(game.requirements)
            needs[i] += sign * STEP
            totals.append(solve(game.replace(requirements=needs)).total)
        up, down = (totals[0] - totals[1]) / STEP, (totals[1] - totals[2]) / STEP
        slopes.append((up + down) / 2 if abs(up - down) < 1e-4 else None)
    return slopes


@pytest.mark.parametrize("solve", [solve_optimal, solve_stable])
@pytest.mark.parametrize("seed", range(6))
def test_prices_are_what_the_total_gains(solve, seed):
    rng = np.random.default_rng(seed)
    game = random_game(rng, 3, kind="psd", costs=seed % 2 == 0)
    noise = rng.uniform(0.3, 1, 3)
    kind = np.eye(3) * 0.3
    game = LinearGame(game.dense_benefits + kind, noise, costs=game.costs)
    prices = requirement_prices(solve(game))
    slopes = differences(solve, game)
    smooth = [i for i, slope in enumerate(slopes) if slope is not None]
    assert smooth
    for i in smooth:
        assert prices[i] == pytest.approx(slopes[i], abs=1e-4)
    assert prices.sum() > 0


def test_the_comparison_with_differences_objects_to_wrong_prices():
    game = LinearGame(PAPER_LIKE, [1, 1, 1])
    slopes = differences(solve_stable, game)
    assert slopes == pytest.approx([0, 5 / 6, 5 / 6], abs=1e-4)
    assert slopes != pytest.approx([0, 0.9, 5 / 6], abs=1e-4)


def test_an_asymmetric_equilibrium_is_priced_by_the_transposed_benefits():
    game = LinearGame([[1, 0.5], [0.1, 1]], [1, 1])
    prices = requirement_prices(solve_stable(game))
    assert prices == pytest.approx(differences(solve_stable, game), abs=1e-4)
    assert prices[0] != pytest.approx(prices[1], abs=0.1)


def test_prices_need_real_linear_games_and_duals():
    with pytest.raises(InputError, match="linear game over the reals"):
        requirement_prices(solve_stable(LinearGame(np.eye(1), [1], strategies="integer")))
    with pytest.raises(InputError, match="linear game over the reals"):
        requirement_prices(solve_stable(CoverageGame([[0.5, 0.5]], [0.75])))
    assert not requirement_prices(solve_stable(LinearGame(np.eye(2), [0, 0]))).any()


@pytest.mark.parametrize("petals", [4, 16, 25])
def test_supporting_the_optimum_of_the_flower_costs_its_root_less_one(petals):
    game = flower(petals)
    optimal = solve_optimal(game)
    payments = support_payments(optimal)
    assert payments.total == pytest.approx(petals**0.5 - 1, rel=1e-6)
    assert payments.per_agent.argmax() == 0
    assert (payments.per_agent >= 0).all()


def test_an_equilibrium_needs_no_payments():
    for game in (flower(16), LinearGame(PAPER_LIKE, [1, 1, 1], minimums=[0.5, 0, 0])):
        assert support_payments(solve_stable(game)).total == pytest.approx(0, abs=1e-6)


def test_payments_count_costs():
    game = LinearGame(np.eye(2), [1, 1], costs=[1, 3])
    dear = Solution(game, "optimal", "planted", Status.LIMIT, Interval(4, 8), np.array([2.0, 2.0]))
    assert support_payments(dear).per_agent.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("concept", "solve"), [("stable", solve_stable), ("optimal", solve_optimal)]
)
def test_leaving_one_out_is_solving_without_it(concept, solve):
    game = LinearGame(PAPER_LIKE, [1, 1.2, 0.9], costs=[1, 2, 1])
    found = leave_one_out(game, concept=concept)
    base = solve(game)
    for i in range(3):
        others = sum(game.costs[j] * base.contributions[j] for j in range(3) if j != i)
        assert found.others_with[i] == pytest.approx(others, abs=1e-6)
        assert found.others_without[i] == pytest.approx(solve(game.without(i)).total, abs=1e-6)
        assert found.value[i] == pytest.approx(found.others_without[i] - others, abs=1e-6)
    # Without agent 2 the others must do alone what they did together.
    assert not np.allclose(found.value, 0)


def test_a_member_may_be_worth_less_than_nothing():
    # Agent 1 has dear samples and needs many: at the optimum agent 0 gives three instead of one.
    game = LinearGame([[1, 0], [1, 1]], [1, 3], costs=[1, 2])
    assert leave_one_out(game, concept="optimal").value[1] == pytest.approx(-2)


def test_leaving_one_out_needs_somebody_else():
    with pytest.raises(InputError, match="at least two agents"):
        leave_one_out(LinearGame([[1]], [1]))
    with pytest.raises(InputError, match="concept must be"):
        leave_one_out(flower(4), concept="envy-free")


def federation(size, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.random((size, 2 * size)) * (rng.random((size, 2 * size)) < 0.3) + 0.02
    names = [f"site {i}" for i in range(size)]
    return LinearGame(factor @ factor.T, rng.uniform(1, 2, size), agents=names)


def test_a_warm_start_reaches_the_same_equilibrium_in_no_more_sweeps():
    game = federation(40)
    before = solve_stable(game.without(7))
    start = carried_over(before, game)
    assert start[7] == 0
    assert np.delete(start, 7) == pytest.approx(before.contributions)
    cold, warm = solve_stable(game), solve_stable(game, start=start)
    assert warm.contributions == pytest.approx(cold.contributions, abs=1e-6)
    assert check(game, warm.allocation).stable is Answer.TRUE
    sweeps = [
        find_fixed_point(game, tolerance=1e-6, deadline=Deadline(20), start=begin).sweeps
        for begin in (None, start, cold.contributions)
    ]
    assert sweeps[2] <= sweeps[1] <= sweeps[0]
    assert sweeps[2] <= 1


def test_who_left_is_forgotten():
    game = federation(6)
    start = carried_over(solve_stable(game), game.restrict([4, 2]))
    assert start == pytest.approx(solve_stable(game).contributions[[4, 2]])


def test_carrying_over_needs_names():
    with pytest.raises(InputError, match="needs named agents"):
        carried_over(solve_stable(flower(4)), flower(4))
