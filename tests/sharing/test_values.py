"""Shapley values by permutations, nucleoli by Kohlberg's criterion, and what contracts promise."""

from itertools import permutations

import numpy as np
import pytest
from linear_games import optimum, random_game
from scipy.optimize import linprog

from fedaccord import InputError, LinearGame, share_costs
from fedaccord.games.measured import MeasuredGame
from fedaccord.sharing import many
from fedaccord.sharing.costs import GroupCosts, list_groups, number_group
from fedaccord.sharing.many import solve_many
from fedaccord.sharing.result import find_closest
from fedaccord.sharing.splitting import find_splits
from fedaccord.sharing.values import find_nucleolus, sample_shapley_value, shapley_value


def draw_game(seed, most=6, **options):
    rng = np.random.default_rng(seed)
    kind = ("any", "symmetric", "psd")[seed % 3]
    return random_game(rng, int(rng.integers(2, most)), kind=kind, costs=seed % 2 == 1, **options)


def shapley_by_orders(values, size):
    """Average what each agent adds over all orders of joining: the definition."""
    shares = np.zeros(size)
    orders = list(permutations(range(size)))
    for order in orders:
        for place, agent in enumerate(order):
            before = number_group(order[:place])
            shares[agent] += values[before | 1 << agent] - values[before]
    return shares / len(orders)


def cost_alone(game, group):
    found = optimum(game.restrict(group)) if group else np.zeros(0)
    return np.inf if found is None else float(game.costs[group] @ found)


@pytest.mark.parametrize("seed", range(60))
def test_the_costs_of_groups_are_those_of_scipy(seed):
    game = draw_game(seed, boxed=seed % 4 > 1)
    values = GroupCosts(game).values
    for number, members in enumerate(list_groups(game.size)):
        expected = cost_alone(game, np.flatnonzero(members).tolist())
        assert values[number] == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_benefits_of_very_different_size_do_not_mislead_the_tableau():
    """Benefits of very different size: the proof by prices decides, not the pivots."""
    benefits = np.array([[[1.0, 1e-9], [1e9, 1.0]]])
    needs, low = np.array([[1.0, 1.0]]), np.zeros((1, 2))
    found = solve_many(benefits, needs, low, np.full(2, np.inf), np.ones(2))
    assert found.totals[0] == pytest.approx(1.0, rel=1e-7)


@pytest.mark.parametrize("seed", range(300))
def test_shapley_values_are_those_of_all_orders(seed):
    game = draw_game(seed)
    values = GroupCosts(game).values
    found = shapley_value(values)
    np.testing.assert_allclose(found, shapley_by_orders(values, game.size), atol=1e-9)
    assert found.sum() == pytest.approx(values[-1])


@pytest.mark.parametrize("seed", range(50))
def test_twins_share_alike_and_a_dummy_bears_nothing(seed):
    game = draw_game(seed)
    size = game.size
    benefits = np.zeros((size + 2, size + 2))
    benefits[:size, :size] = game.dense_benefits
    # A twin of the first agent, and an agent that neither wants nor helps.
    benefits[size, : size + 1] = benefits[0, [*range(size), 0]]
    benefits[: size + 1, size] = benefits[: size + 1, 0]
    benefits[size + 1, size + 1] = 1.0
    needs = [*game.requirements, game.requirements[0], 0.0]
    larger = LinearGame(benefits, needs, costs=[*game.costs, game.costs[0], 1.0])
    found = shapley_value(GroupCosts(larger).values)
    assert found[size] == pytest.approx(found[0], abs=1e-9)
    assert found[size + 1] == pytest.approx(0, abs=1e-9)


def test_sampled_values_hold_the_exact_ones_in_their_intervals():
    inside = total = 0
    for seed in range(20):
        game = draw_game(seed)
        costs = GroupCosts(game)
        found = sample_shapley_value(costs.measure, game.size, orders=60, seed=seed)
        exact = shapley_value(costs.values)
        assert found.values.sum() == pytest.approx(exact.sum())
        inside += int(((found.low <= exact + 1e-9) & (exact <= found.high + 1e-9)).sum())
        total += game.size
    # Intervals of 95 %: far fewer would be a fault.
    assert inside >= 0.85 * total


def test_seventeen_agents_are_sampled_and_have_intervals():
    rng = np.random.default_rng(1)
    game = LinearGame(rng.random((17, 17)) * 0.3 + np.eye(17), rng.uniform(1, 9, 17))
    found = share_costs(game, orders=20).contracts["shapley"]
    assert found.shares.low is not None and (found.shares.low < found.shares.values).any()
    assert not found.leaver_known
    assert found.shares.values.sum() == pytest.approx(share_costs(game, orders=20).prices.total)


# The nucleolus.


def least_core(values, size):
    """Return the largest saving that every group can have at once, by scipy."""
    groups = list_groups(size)[1:-1].astype(float)
    rows = np.hstack([groups, np.ones((len(groups), 1))])
    whole = np.append(np.ones(size), 0.0)[None]
    free = [(None, None)] * (size + 1)
    cost = np.append(np.zeros(size), -1.0)
    found = linprog(cost, rows, values[1:-1], whole, values[-1:], bounds=free)
    return -found.fun


def is_balanced(groups):
    """Return whether weights of at least one for all groups cover all agents evenly."""
    size = groups.shape[1]
    equal = np.hstack([groups.T, -np.ones((size, 1))])
    bounds = [(1, None)] * len(groups) + [(None, None)]
    found = linprog(np.zeros(len(groups) + 1), A_eq=equal, b_eq=np.zeros(size), bounds=bounds)
    return found.status == 0


def meets_kohlberg(values, shares, size):
    """Return whether groups that save least are balanced, level by level: Kohlberg's criterion."""
    groups = list_groups(size)[1:-1].astype(float)
    saved = values[1:-1] - groups @ shares
    scale = max(float(values[-1]), 1e-9)
    levels = np.unique(np.round(saved / scale, 6))
    return all(is_balanced(groups[saved / scale <= level + 1e-6]) for level in levels)


@pytest.mark.parametrize("seed", range(300))
def test_the_nucleolus_is_in_the_least_core_and_meets_kohlbergs_criterion(seed):
    game = draw_game(seed, most=5)
    values, size = GroupCosts(game).values, game.size
    found = find_nucleolus(values)
    assert found.shares.sum() == pytest.approx(values[-1], abs=1e-9)
    saved = values[1:-1] - list_groups(size)[1:-1] @ found.shares
    best = least_core(values, size)
    assert saved.min() == pytest.approx(best, abs=1e-6)
    assert found.least == pytest.approx(best, abs=1e-6)
    # Linear games have a core.
    assert saved.min() >= -1e-7
    assert meets_kohlberg(values, found.shares, size)
    if seed < 20:
        contract = share_costs(game).contracts["nucleolus"]
        assert contract.saving == pytest.approx(max(best, 0.0), abs=1e-6)


def test_kohlbergs_criterion_objects_to_other_shares():
    values = GroupCosts(draw_game(4, most=5)).values
    size = len(values).bit_length() - 1
    shares = np.array(find_nucleolus(values).shares)
    shares[0] += 0.1 * values[-1]
    shares[1] -= 0.1 * values[-1]
    assert not meets_kohlberg(values, shares, size)


def test_known_nucleoli():
    # One agent alone; two that share what they save; and the airport game of three runways.
    assert find_nucleolus(np.array([0, 5.0])).shares.tolist() == [5.0]
    np.testing.assert_allclose(find_nucleolus(np.array([0, 6, 4, 8.0])).shares, [5, 3])
    runways = np.array([0.0, 1, 2, 2, 3, 3, 3, 3])
    np.testing.assert_allclose(find_nucleolus(runways).shares, [0.5, 0.75, 1.75], atol=1e-7)
    np.testing.assert_allclose(shapley_value(runways), [1 / 3, 5 / 6, 11 / 6])


def test_thirteen_agents_are_too_many_for_the_nucleolus():
    with pytest.raises(InputError, match="up to 12 agents"):
        find_nucleolus(np.zeros(2**13))
    with pytest.raises(InputError, match="infinite"):
        find_nucleolus(np.array([0, np.inf, 1, 2.0]))


# Contracts.


def test_shapley_shares_drive_groups_out_of_some_games():
    """The core is never empty, and yet the Shapley value is often outside it."""
    driven = 0
    for seed in range(100):
        game = draw_game(seed)
        found = share_costs(game).contracts["shapley"]
        if found.leaver is not None:
            driven += 1
            group = list(found.leaver.agents)
            assert found.shares.values[group].sum() > cost_alone(game, group)
    assert 10 <= driven <= 60


def test_a_leaver_is_found_where_shares_are_planted():
    costs = GroupCosts(LinearGame([[1, 0.5], [0.5, 1]], [3, 3]))
    assert find_closest(np.array([2.0, 2.0]), costs).saving == 1.0
    leaver = find_closest(np.array([0.5, 3.5]), costs)
    assert leaver.saving == -0.5
    assert (leaver.agents, leaver.bears, leaver.alone) == ((1,), 3.5, 3.0)


@pytest.mark.parametrize("seed", range(60))
def test_marginal_shares_leave_a_deficit_and_no_group_leaves(seed):
    game = draw_game(seed)
    found = share_costs(game).contracts["marginal"]
    assert found.deficit >= -1e-9 * max(1, abs(found.deficit))
    assert found.leaver is None
    everyone = list(range(game.size))
    for agent in everyone:
        rest = [other for other in everyone if other != agent]
        added = cost_alone(game, everyone) - cost_alone(game, rest)
        assert found.shares.values[agent] == pytest.approx(added, abs=1e-7)


def true_burden(game, reported, agent, rule):
    """Return what an agent bears in truth if it reports another game; infinite if it is short."""
    found = share_costs(reported)
    given = found.contributions
    if game.utilities(given)[agent] < game.requirements[agent] * (1 - 1e-9):
        return np.inf
    return game.costs[agent] * given[agent] + found.contracts[rule].payments.values[agent]


def lies(game, rng, agent):
    """Yield games in which an agent misstates its costs or its requirement."""
    for what in ("costs", "requirements"):
        values = np.array(getattr(game, what))
        values[agent] *= rng.uniform(0.3, 2.5)
        yield game.replace(**{what: values})


def test_marginal_shares_reward_the_truth_and_prices_do_not_always():
    gained = {"marginal": 0, "prices": 0}
    for seed in range(50):
        rng = np.random.default_rng(seed)
        game = draw_game(seed, most=5)
        agent = int(rng.integers(game.size))
        for reported in lies(game, rng, agent):
            for rule in gained:
                honest = true_burden(game, game, agent, rule)
                lied = true_burden(game, reported, agent, rule)
                gained[rule] += lied < honest - 1e-7
    assert gained["marginal"] == 0
    assert gained["prices"] > 0


def test_limits_that_some_agents_cannot_do_without():
    game = LinearGame([[1, 0.5], [0.5, 1]], [10, 10], agents=["A", "B"], limits=[6, None])
    found = share_costs(game)
    assert set(found.contracts) == {"prices"}
    assert any("cannot reach their requirements without B" in note for note in found.notes)
    assert any("A cannot reach its requirement alone" in note for note in found.notes)
    assert any("appearing as two" in note for note in found.notes)
    assert "it could not reach its requirement" in found.explain(0)


def test_accuracy_is_shared_by_what_samples_add():
    curves = [[0.05, 1.0, 1.0, 0.5], [0.1, 1.0, 1.0, 0.5], [0.1, 0.9, 1.0, 0.4]]
    benefits = np.array([[1, 0.5, 0.1], [0.3, 1, 0.2], [0.4, 0.1, 1]])
    game = MeasuredGame(benefits, curves, [0.85, 0.8, 0.7])
    found = share_costs(game)
    values = [
        game.accuracies(members * found.contributions).mean() for members in list_groups(game.size)
    ]
    expected = shapley_by_orders(np.array(values), game.size)
    np.testing.assert_allclose(found.accuracy.values, expected, atol=1e-12)


# Splitting.


def split(game, agent, need):
    """Return the game in which an agent appears as two; the other part is the last agent."""
    order = [*range(game.size), agent]
    benefits = game.dense_benefits[np.ix_(order, order)]
    needs = [*game.requirements, need]
    return LinearGame(benefits, needs, costs=game.costs[order])


@pytest.mark.parametrize("seed", range(30))
def test_gains_of_splitting_are_those_of_the_game_with_one_agent_more(seed):
    game = draw_game(seed, most=5)
    found = find_splits(GroupCosts(game))
    before = shapley_value(GroupCosts(game).values)
    for agent in range(game.size):
        gains = []
        for need in (game.requirements[agent], 0.0):
            larger = split(game, agent, need)
            after = shapley_value(GroupCosts(larger).values)
            gains.append(before[agent] - after[agent] - after[-1])
            # The parts of an agent are charged by prices of the game without the split.
            prices = share_costs(larger).prices
            merged = np.array(prices.requirements[:-1])
            merged[agent] += prices.requirements[-1] * (need > 0)
            assert (game.apply_transposed(merged) <= game.costs * (1 + 1e-9)).all()
            assert merged @ game.requirements == pytest.approx(prices.total)
        assert found.gains["shapley"][agent] == pytest.approx(max(0, *gains), abs=1e-7)


def test_some_agents_gain_by_splitting_under_shapley_shares():
    gains = [find_splits(GroupCosts(draw_game(seed))).gains["shapley"].max() for seed in range(20)]
    assert max(gains) > 0.01


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_what_is_solved_again_is_solved_in_its_own_units(monkeypatch, unit):
    """Each agent needs 3 of its own samples, whatever a sample is worth."""
    monkeypatch.setattr(many, "_find_unproved", lambda *_: np.array([True]))
    found = solve_many(
        unit * np.eye(2)[None], np.full((1, 2), 3 * unit), np.zeros((1, 2)), np.full(2, np.inf),
        np.array([1.0, 2.0]),
    )  # fmt: skip
    assert found.totals == pytest.approx([9])
    assert found.contributions == pytest.approx(np.full((1, 2), 3))
    assert found.prices * unit == pytest.approx(np.array([[1, 2]]))
