"""Known answers of Donahue and Kleinberg's model-sharing games, and its formulas by other means."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedaccord import InputError, find_coalitions, tabulate_mean_estimation


def parts(groupings):
    """Return groupings with agents numbered from one, as on paper."""
    return [[[agent + 1 for agent in part] for part in p.coalitions] for p in groupings]


@pytest.mark.parametrize(
    ("federation", "errors"),
    [
        ("uniform", [1.2222, 0.8889, 0.5556]),
        ("coarse", [0.632353, 0.394737, 0.283333]),
        ("fine", [0.630435, 0.391304, 0.282609]),
    ],
)
def test_errors_of_three_agents_together(federation, errors):
    found = find_coalitions(tabulate_mean_estimation([10, 20, 30], federation=federation))
    np.testing.assert_allclose(found.together.costs, errors, atol=5e-5)
    np.testing.assert_allclose(found.alone.costs, [1, 0.5, 1 / 3])


def test_a_large_agent_stays_out_of_a_coarse_federation():
    table = tabulate_mean_estimation([30, 30, 30, 300], federation="coarse")
    assert parts(find_coalitions(table).core) == [[[1, 2, 3], [4]]]


def test_the_cheapest_grouping_need_not_be_stable():
    found = find_coalitions(tabulate_mean_estimation([1, 8, 15], weighted=True))
    assert parts([found.cheapest]) == [[[1, 2], [3]]]
    assert parts(found.individual) == [[[1, 3], [2]]]
    assert parts(found.core) == [[[1, 3], [2]]]


def test_the_price_of_anarchy_of_three_agents():
    found = find_coalitions(tabulate_mean_estimation([1, 10, 10], weighted=True))
    assert found.price_of_anarchy == pytest.approx(1.018182, abs=5e-7)


def test_four_agents_leave_the_coalition_of_all():
    found = find_coalitions(tabulate_mean_estimation([5, 5, 10, 15]))
    np.testing.assert_allclose(found.together.costs, [1.306, 1.306, 1.020, 0.734], atol=1e-3)
    assert parts(found.core) == [[[1, 2, 3], [4]]]


# The formulas once more, by simulation and by search.


def error_of(weights, counts, agent, noise, spread):
    """Return the expected squared error of a weighted mean: variance of draws, and of means."""
    others = np.delete(weights, agent)
    means = np.sum(others**2) + (1 - weights[agent]) ** 2
    return noise * np.sum(weights**2 / counts) + spread * means


@pytest.mark.parametrize("agent", [0, 1, 2])
def test_the_formulas_are_the_least_errors_of_weighted_means(agent):
    counts, noise, spread = np.array([3.0, 8.0, 20.0]), 7.0, 1.5
    given = {
        kind: tabulate_mean_estimation(counts, federation=kind, noise=noise, spread=spread)
        for kind in ("uniform", "coarse", "fine")
    }
    common, own = counts / counts.sum(), np.eye(3)[agent]
    errors = {kind: table.costs[7, agent] for kind, table in given.items()}
    assert errors["uniform"] == pytest.approx(error_of(common, counts, agent, noise, spread))
    mixes = [w * own + (1 - w) * common for w in np.linspace(0, 1, 20_001)]
    least = min(error_of(mix, counts, agent, noise, spread) for mix in mixes)
    assert errors["coarse"] == pytest.approx(least, rel=1e-7)

    def fine(free):
        weights = np.insert(free, agent, 1 - free.sum())
        return error_of(weights, counts, agent, noise, spread)

    found = minimize(fine, np.full(2, 0.3), tol=1e-12)
    assert errors["fine"] == pytest.approx(found.fun, rel=1e-6)


def test_the_error_of_a_weighted_mean_by_simulation():
    rng = np.random.default_rng(0)
    counts, noise, spread = np.array([3, 8]), 7.0, 1.5
    means = rng.normal(0, np.sqrt(spread), (200_000, 2))
    drawn = rng.normal(means, np.sqrt(noise / counts))
    common = drawn @ counts / counts.sum()
    errors = ((common[:, None] - means) ** 2).mean(axis=0)
    table = tabulate_mean_estimation(counts, noise=noise, spread=spread)
    np.testing.assert_allclose(table.costs[3], errors, rtol=0.02)


@pytest.mark.parametrize(
    ("samples", "options", "words"),
    [
        ([], {}, "samples"),
        ([1, 0], {}, "above 0"),
        ([1, 2], {"federation": "best"}, "federation"),
        ([1, 2], {"noise": -1}, "noise"),
        ([1, 2], {"spread": np.inf}, "spread"),
    ],
)
def test_what_is_no_model_is_refused(samples, options, words):
    with pytest.raises(InputError, match=words):
        tabulate_mean_estimation(samples, **options)
