"""Runs with more samples scatter less: at which rate, in worlds where it is known."""

import numpy as np
import pytest

from fedaccord.games.chances import Fading
from fedaccord.measurement.curve_fit import Residuals
from fedaccord.measurement.pooling import find_fading

SIZES = np.random.default_rng(0).integers(100, 1_000, 400).astype(float)
FALL = {rate: SIZES**-rate / np.mean(SIZES**-rate) for rate in (0.0, 0.5, 0.7, 1.0)}


def draw(rate, measuring=0.0, sizes=SIZES, seed=1):
    """Draw residuals of six agents, each with its scatter, whose variance falls at a rate."""
    rng = np.random.default_rng(seed)
    agents = []
    for training in np.linspace(0.01, 0.05, 6):
        variances = training**2 * FALL[rate] + measuring**2
        squares = variances * rng.standard_normal(len(SIZES)) ** 2
        ones = np.ones(len(SIZES))
        agents.append((sizes, Residuals(squares, ones, measuring**2 * ones), training))
    return agents


@pytest.mark.parametrize("measuring", [0.0, 0.02])
@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_the_rate_is_found_whatever_measuring_adds(rate, measuring):
    # Six agents tell it to a standard error of sqrt(2 / (6 * 400 * var(log sizes))), about 0.05.
    assert find_fading(draw(rate, measuring)).rate == pytest.approx(rate, abs=0.15)


def test_the_scatter_of_measuring_does_not_fall():
    # Where nearly all scatter is of measuring, the pilots show nothing of training.
    assert find_fading(draw(1.0, measuring=1.0)).rate == pytest.approx(0.0, abs=0.05)


def test_pilots_scatter_as_the_fit_says_on_average():
    found = find_fading(draw(0.7))
    assert (found.scale(SIZES) ** 2).mean() == pytest.approx(1.0)


def test_smaller_runs_scatter_more_and_nothing_is_claimed_of_larger_ones():
    found = Fading(0.5, usual=400.0, largest=900.0)
    assert found.scale(100.0) == pytest.approx(4**0.25)
    assert found.scale(400.0) == pytest.approx(1.0)
    assert found.scale(10_000.0) == found.scale(900.0) < 1
    assert np.isfinite(found.scale(0.0))


def test_pilots_of_one_size_do_not_tell():
    same = np.full(len(SIZES), 300.0)
    assert find_fading(draw(1.0, sizes=same)) == Fading()


def test_few_pilots_leave_it_at_nothing():
    few = [
        (sizes[:8], Residuals(*(getattr(r, n)[:8] for n in ("squares", "freedom", "measuring"))), t)
        for sizes, r, t in draw(0.0, seed=3)[:2]
    ]
    assert find_fading(few).rate < 0.5
