"""Intervals hold the true share as often as they say, also when outcomes of a trial go together."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fedaccord.errors import InputError
from fedaccord.federation.defection.intervals import Proportion, clustered, mean_interval, wilson


@pytest.mark.parametrize(
    ("successes", "trials"), [(5, 10), (94, 100), (45, 100), (0, 10), (10, 10), (1, 1), (7, 450)]
)
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_wilson_agrees_with_scipy(successes, trials, confidence):
    found = wilson(successes, trials, confidence)
    expected = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    assert found.p == successes / trials
    assert found.trials == trials
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_ends_of_wilsons_interval_solve_the_equation_that_defines_them(pair):
    successes, trials = pair
    found = wilson(successes, trials)
    assert 0 <= found.low <= found.p <= found.high <= 1
    for end in (found.low, found.high):
        if 0 < end < 1:
            reach = 1.959963984540054 * math.sqrt(end * (1 - end) / trials)
            assert abs(found.p - end) == pytest.approx(reach, rel=1e-6)
    mirrored = wilson(trials - successes, trials)
    assert mirrored.low == pytest.approx(1 - found.high, abs=1e-12)


def test_the_ends_are_exact_where_all_trials_end_alike():
    for trials in range(1, 400):
        assert wilson(0, trials).low == 0.0
        assert wilson(trials, trials).high == 1.0
        assert clustered(np.ones((trials, 3))).high == 1.0
        assert clustered(np.zeros((trials, 3))).low == 0.0


def test_without_trials_nothing_is_known():
    for nothing in (wilson(0, 0), clustered(np.zeros((0, 4))), clustered(np.zeros((3, 0)))):
        assert math.isnan(nothing.p)
        assert (nothing.low, nothing.high, nothing.trials) == (0.0, 1.0, 0)
        assert nothing.to_dict() == {"p": None, "low": 0.0, "high": 1.0, "trials": 0}
        assert str(nothing) == "unknown"


def test_a_proportion_reads_in_one_line_and_knows_its_width():
    assert str(Proportion(0.5, 0.25, 0.75, 10)) == "0.50 [0.25, 0.75]"
    assert Proportion(0.5, 0.25, 0.75, 10).width == 0.5


@pytest.mark.parametrize("call", [lambda: wilson(3, 2), lambda: wilson(-1, 2)])
def test_impossible_counts_are_refused(call):
    with pytest.raises(InputError, match="successes must be 0 to 2"):
        call()


@pytest.mark.parametrize("confidence", [0, 1, 95, math.nan])
def test_a_confidence_that_is_no_probability_is_refused(confidence):
    with pytest.raises(InputError, match="confidence must be between 0 and 1"):
        wilson(1, 2, confidence)


def test_more_confidence_means_a_wider_interval():
    assert wilson(5, 10, 0.99).width > wilson(5, 10).width > wilson(5, 10, 0.5).width


@given(st.integers(1, 60), st.integers(1, 6), st.floats(0, 1), st.integers(0, 99))
def test_copies_of_one_client_tell_no_more_than_the_client_alone(trials, clients, p, seed):
    column = np.random.default_rng(seed).random((trials, 1)) < p
    copies = clustered(np.repeat(column, clients, axis=1))
    alone = wilson(int(column.sum()), trials)
    assert (copies.low, copies.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
    assert copies.trials == trials


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 999))
def test_the_clustered_interval_lies_between_those_of_one_client_and_of_independent_ones(
    trials, clients, seed
):
    table = np.random.default_rng(seed).random((trials, clients)) < 0.6
    found = clustered(table)
    p = table.mean()
    assert found.p == pytest.approx(p)
    narrowest = wilson(int(table.sum()), table.size).width
    assert narrowest - 1e-9 <= found.width
    assert found.low <= p <= found.high
    # No share of this many trials has a wider interval than one half.
    assert found.width <= wilson(trials, 2 * trials).width * math.sqrt(2) + 1e-9


def test_clients_that_always_end_the_same_way_are_no_copies_of_each_other():
    # Three always satisfied and one never: had one trial's outcomes been copies, none would differ.
    always = np.tile([True, True, True, False], (20, 1))
    found = clustered(always)
    assert (found.low, found.high) == (wilson(60, 80).low, wilson(60, 80).high)
    # Nearly the same outcomes must not give a very different interval.
    nearly = always.copy()
    nearly[0, 3] = True
    assert clustered(nearly).width == pytest.approx(found.width, rel=0.05)


def coverage(interval, draw, p, repeats=800):
    """Count how often an interval from drawn outcomes holds the true share."""
    rng = np.random.default_rng(7)
    found = (interval(draw(rng)) for _ in range(repeats))
    return sum(one.low <= p <= one.high for one in found) / repeats


def naive(table):
    """Take all outcomes for independent: the fault the clustered interval is there to avoid."""
    return wilson(int(table.sum()), table.size)


def copies(p, trials=20, clients=4):
    return lambda rng: np.repeat(rng.random((trials, 1)) < p, clients, axis=1)


def independent(p, trials=20, clients=4):
    return lambda rng: rng.random((trials, clients)) < p


def in_between(p, trials=20, clients=4):
    """Each outcome is the trial's common one seven times in ten, else its own."""

    def draw(rng):
        common = rng.random((trials, 1)) < p
        own = independent(p, trials, clients)(rng)
        return np.where(rng.random((trials, clients)) < 0.7, common, own)

    return draw


# Wilson's own coverage swings around 95 % with p and n; three points are within that swing.
@pytest.mark.parametrize("p", [0.45, 0.75, 0.94])
@pytest.mark.parametrize("kind", [copies, independent, in_between])
@pytest.mark.parametrize("trials", [10, 24, 30, 40])
def test_the_clustered_interval_holds_the_true_share_often_enough(kind, p, trials):
    assert coverage(clustered, kind(p, trials), p) >= 0.91


@pytest.mark.parametrize("p", [0.45, 0.75])
def test_taking_copies_for_independent_outcomes_is_caught(p):
    assert coverage(naive, copies(p), p) < 0.8


def test_independent_outcomes_make_the_interval_narrower_than_copies_do():
    rng = np.random.default_rng(3)
    widths = {
        kind: np.mean([clustered(kind(0.5)(rng)).width for _ in range(200)])
        for kind in (copies, independent)
    }
    # 80 independent outcomes against 20: about half as wide.
    assert widths[independent] < 0.65 * widths[copies]


def test_the_interval_of_a_mean_is_students():
    # Of 1 to 5 the spread is the root of 2.5; t of 4 degrees of freedom is 2.776 in any table.
    low, high = mean_interval([1, 2, 3, 4, 5])
    assert (low + high) / 2 == pytest.approx(3)
    assert high - 3 == pytest.approx(2.776 * (2.5 / 5) ** 0.5, abs=1e-3)
    assert mean_interval([7]) is None
    assert mean_interval([7, 7]) == (7, 7)


def test_intervals_of_means_hold_the_true_one_as_often_as_they_say():
    random = np.random.default_rng(5)
    draws = random.normal(10, 3, size=(2000, 6))
    held = [low <= 10 <= high for low, high in map(mean_interval, draws)]
    assert 0.935 <= np.mean(held) <= 0.965


def test_a_trial_that_is_not_finished_counts_with_what_it_has():
    found = clustered([[True, False], [True, True], [False]])
    assert (found.p, found.trials) == (0.6, 3)
    whole = clustered(np.array([[1, 0], [1, 1]]))
    assert clustered([[True, False], [True, True], []]) == whole
