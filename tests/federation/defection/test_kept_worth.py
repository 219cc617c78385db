"""The worth of kept samples: known answers, coverage of its interval, and planted faults."""

import math

import numpy as np
import pytest

from fedaccord.federation.defection.intervals import KeptWorth
from fedaccord.federation.defection.kept_worth import describe_kept_worth, measure_kept_worth

COUNTS = {"samples_shared": 30, "samples_kept": 50}


def draw(kappa: float, gain: float, trials: int, random: np.random.Generator, noise: float = 0.01):
    """Draw accuracies in which a shared sample is worth gain / 30, a kept one kappa times that."""
    luck = random.normal(0, 0.03, trials)
    cut = 0.6 + luck + random.normal(0, noise, trials)
    full = 0.6 + luck + gain + random.normal(0, noise, trials)
    own = 0.6 + luck + kappa * gain * 50 / 30 + random.normal(0, noise, trials)
    return full, cut, own


@pytest.mark.parametrize("kappa", [0.0, 0.4, 1.0])
def test_the_ratio_is_per_sample(kappa):
    full, cut, own = draw(kappa, 0.12, 4, np.random.default_rng(1), noise=0.0)
    found = measure_kept_worth(full, cut, own, **COUNTS)
    assert found.value == pytest.approx(kappa, abs=1e-9)
    assert found.low == pytest.approx(kappa, abs=1e-6) == pytest.approx(found.high, abs=1e-6)


@pytest.mark.parametrize(("kappa", "gain"), [(0.3, 0.06), (1.0, 0.04)])
def test_intervals_hold_the_truth_as_often_as_they_say(kappa, gain):
    """400 repetitions; 0.95 has a standard error of 0.011."""
    random = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        found = measure_kept_worth(*draw(kappa, gain, 12, random), **COUNTS)
        held += found.low <= kappa <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_luck_that_all_runs_of_a_trial_share_does_not_count():
    """Paired differences: with luck of 0.03 and no other noise the interval has no width."""
    full, cut, own = draw(0.5, 0.1, 8, np.random.default_rng(3), noise=1e-9)
    found = measure_kept_worth(full, cut, own, **COUNTS)
    assert found.high - found.low < 1e-6
    # Shown unpaired accuracies, it must widen.
    shuffled = measure_kept_worth(full, np.roll(cut, 1), own, **COUNTS)
    assert shuffled.high - shuffled.low > 0.05


def test_where_sharing_makes_no_difference_nothing_is_claimed():
    found = measure_kept_worth(*draw(0.5, 0.0, 10, np.random.default_rng(5)), **COUNTS)
    assert not found.known
    assert found.to_dict()["low"] is None
    assert KeptWorth.from_dict(found.to_dict()).high == math.inf
    assert "not known" in describe_kept_worth([found])


def test_trials_that_diverged_are_left_out():
    full, cut, own = draw(0.4, 0.12, 5, np.random.default_rng(1), noise=0.0)
    own[2] = math.nan
    found = measure_kept_worth(full, cut, own, **COUNTS)
    assert found.trials == 4 and found.value == pytest.approx(0.4)
    assert measure_kept_worth(full[:1], cut[:1], own[:1], **COUNTS).trials == 1


def test_the_sentence_warns_of_agents_that_may_as_well_keep():
    low, near = KeptWorth(0.2, 0.1, 0.4, 9), KeptWorth(0.9, 0.7, 1.1, 9)
    assert "a reason to share" in describe_kept_worth([low, low])
    assert describe_kept_worth([low, near]).startswith("For 1 of 2 agents")
    assert "earned models or payments" in describe_kept_worth([low, near])
