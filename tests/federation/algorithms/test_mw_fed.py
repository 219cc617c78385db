"""Weights and sample counts, worked by hand and by their properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.federation.algorithms.base import weighted_mean
from fedaccord.federation.algorithms.mw_fed import (
    exact_counts,
    printed_counts,
    raise_weights,
    shares,
)


def test_the_unsatisfied_weigh_the_factor_more() -> None:
    weights = np.exp(raise_weights(np.log([1.0, 2.0, 3.0]), np.array([True, False, True]), 4.0))
    assert weights == pytest.approx([4.0, 2.0, 12.0])


def test_shares_are_in_proportion_to_the_weights() -> None:
    assert shares(np.log([1.0, 1.0, 6.0])) == pytest.approx([0.125, 0.125, 0.75])


def test_ten_thousand_rounds_of_raising_one_weight_leave_numbers() -> None:
    weights = np.zeros(3)
    for _ in range(10_000):
        weights = raise_weights(weights, np.array([True, False, False]), 100.0)
    assert shares(weights).tolist() == [1.0, 0.0, 0.0]
    # And whoever is left behind can catch up again.
    for _ in range(10_000):
        weights = raise_weights(weights, np.array([False, True, False]), 100.0)
    assert shares(weights) == pytest.approx([0.5, 0.5, 0.0])


def test_exact_counts_worked_by_hand() -> None:
    # 10 samples: 5.0, 3.33, 1.67 -> 5, 3, 1 and the one left goes to the largest remainder.
    assert exact_counts(np.array([1 / 2, 1 / 3, 1 / 6]), 10).tolist() == [5, 3, 2]
    assert exact_counts(np.array([1 / 3, 1 / 3, 1 / 3]), 8).tolist() == [3, 3, 2]
    assert exact_counts(np.array([1.0, 0.0]), 7).tolist() == [7, 0]


def test_printed_counts_starve_whoever_is_below_the_average() -> None:
    # Weights 1 : 1 : 2 of 4 x 3 samples: 3, 3 and 6, in batches of 4: none, none, one.
    assert printed_counts(np.array([0.25, 0.25, 0.5]), 12, 4).tolist() == [0, 0, 4]
    assert printed_counts(np.array([1 / 3, 1 / 3, 1 / 3]), 12, 4).tolist() == [4, 4, 4]


@given(
    weights=st.lists(st.floats(-50, 50), min_size=1, max_size=12),
    total=st.integers(0, 5_000),
)
def test_exact_counts_are_whole_sum_up_and_miss_by_less_than_one(
    weights: list[float], total: int
) -> None:
    parts = shares(np.array(weights))
    counts = exact_counts(parts, total)
    assert counts.sum() == total
    assert (counts >= 0).all()
    assert (np.abs(counts - parts * total) < 1 + 1e-6).all()


@given(
    clients=st.integers(1, 300),
    batch_size=st.integers(1, 512),
    batches=st.integers(1, 9),
)
def test_equal_weights_draw_equal_counts_in_both_forms(
    clients: int, batch_size: int, batches: int
) -> None:
    parts = shares(np.full(clients, 7.0))
    total = clients * batch_size * batches
    assert set(exact_counts(parts, total)) == {batch_size * batches}
    assert set(printed_counts(parts, total, batch_size)) == {batch_size * batches}


@given(weights=st.lists(st.floats(-30, 30), min_size=1, max_size=8), order=st.randoms())
def test_shares_do_not_depend_on_the_scale_of_the_weights(weights: list[float], order) -> None:
    assert shares(np.array(weights)) == pytest.approx(shares(np.array(weights) + 123.0))


def test_the_mean_weighs_by_samples() -> None:
    mean = weighted_mean([np.array([1.0, 0.0]), np.array([4.0, 8.0])], np.array([3, 1]))
    assert mean == pytest.approx([1.75, 2.0])
