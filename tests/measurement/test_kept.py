"""What kept samples are worth, found again from runs whose kept worth is known."""

import math

import numpy as np
import pytest

from fedaccord.errors import InputError
from fedaccord.games.kept import keep_data
from fedaccord.games.measured import LearningCurve, MeasuredGame
from fedaccord.measurement.kept import WorthOfKept, worth_of_kept

CURVE = LearningCurve(floor=0.05, height=2.6, head=50, pace=0.52)
KEPT, EFFECTIVE = 300.0, 150.0


def accuracy_at(worth, curve=CURVE):
    return float(curve.accuracy(EFFECTIVE + worth * KEPT))


def simulate(rng, worth, runs, noise, curve=CURVE):
    return accuracy_at(worth, curve) + noise * rng.standard_normal(runs)


@pytest.mark.parametrize("worth", [0.0, 0.25, 0.6, 1.0])
def test_without_noise_the_worth_is_found_exactly(worth):
    found = worth_of_kept(CURVE, [accuracy_at(worth)], kept=KEPT, effective=EFFECTIVE, noise=0)
    assert found.value == pytest.approx(worth, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((worth, worth), abs=1e-9)
    row = CURVE.row.tolist()
    runs = [accuracy_at(worth)]
    assert worth_of_kept(row, runs, kept=KEPT, effective=EFFECTIVE, noise=0) == found
    start = float(CURVE.accuracy(EFFECTIVE))
    paired = worth_of_kept(CURVE, [accuracy_at(worth)], kept=KEPT, received=[start], noise=0)
    assert paired.value == pytest.approx(worth, abs=1e-9)


def test_a_measured_game_with_that_worth_gives_the_accuracies_back():
    worth, theta = 0.4, np.array([100.0, 60])
    game = MeasuredGame([[1, 0.5], [0.2, 1]], [CURVE, CURVE], [0.85, 0.8], limits=[400, 300])
    reached = keep_data(game, [worth, 0]).accuracies(theta)[0]
    found = worth_of_kept(CURVE, [reached], kept=300, effective=130, noise=0)
    assert found.value == pytest.approx(worth, abs=1e-9)


def test_the_interval_is_that_of_the_slope_where_noise_is_small():
    # d kappa = d a / (phi'(n) kept); the quantile of t with 7 degrees of freedom is 2.365.
    runs = accuracy_at(0.5) + 1e-5 * np.array([-1.5, -1, -0.5, -0.1, 0.1, 0.5, 1, 1.5])
    found = worth_of_kept(CURVE, runs, kept=KEPT, effective=EFFECTIVE)
    step = 1e-6
    slope = (accuracy_at(0.5 + step) - accuracy_at(0.5 - step)) / (2 * step)
    half = 2.365 * runs.std(ddof=1) / math.sqrt(8) / slope
    assert found.high - found.value == pytest.approx(half, rel=0.02)
    assert found.value - found.low == pytest.approx(half, rel=0.02)


def coverage(make, worth, trials=300):
    hits = 0
    for _ in range(trials):
        found = make()
        hits += found.low <= worth <= found.high
    return hits / trials


def test_intervals_from_runs_hold_the_truth_in_95_of_100():
    rng = np.random.default_rng(5)

    def make():
        return worth_of_kept(CURVE, simulate(rng, 0.5, 5, 0.006), kept=KEPT, effective=EFFECTIVE)

    assert 0.92 <= coverage(make, 0.5) <= 0.98


def test_intervals_hold_the_truth_when_the_curve_is_only_known_by_resamples():
    rng = np.random.default_rng(6)
    curves = CURVE.row * np.exp(rng.normal(0, [0.1, 0.03, 0.1, 0.01], (200, 4)))

    def make(**how):
        truth = LearningCurve(*curves[rng.integers(len(curves))])
        runs = simulate(rng, 0.5, 5, 0.004, truth)
        return worth_of_kept(CURVE, runs, kept=KEPT, effective=EFFECTIVE, **how)

    assert coverage(lambda: make(curves=curves), 0.5, 200) >= 0.92
    # Planted: with the curve taken as certain the intervals are far too short.
    assert coverage(make, 0.5, 100) < 0.85


def test_most_of_what_the_curve_is_off_by_is_taken_out_by_the_accuracy_received():
    rng = np.random.default_rng(7)
    off = LearningCurve(floor=0.06, height=2.6, head=50, pace=0.52)
    shared = 0.01 * rng.standard_normal(40)
    before = float(off.accuracy(EFFECTIVE)) + shared
    after = accuracy_at(0.3, off) + shared
    naive = worth_of_kept(CURVE, after, kept=KEPT, effective=EFFECTIVE)
    paired = worth_of_kept(CURVE, after, kept=KEPT, received=before)
    assert abs(paired.value - 0.3) < 0.5 * abs(naive.value - 0.3)
    # Runs that go up and down together leave the difference nearly as it is.
    apart = worth_of_kept(CURVE, after, kept=KEPT, received=rng.permutation(before))
    assert paired.high - paired.low < 0.7 * (apart.high - apart.low)


def test_worths_are_moved_into_the_range_and_the_raw_one_is_kept():
    above = worth_of_kept(CURVE, [0.97], kept=KEPT, effective=EFFECTIVE, noise=0)
    assert (above.value, above.low, above.high) == (1, 1, 1)
    assert above.raw == math.inf and above.to_dict()["raw"] is None
    assert above.may_be_all
    below = worth_of_kept(CURVE, [accuracy_at(-0.2)], kept=KEPT, effective=EFFECTIVE, noise=0)
    assert (below.value, below.low, below.high) == (0, 0, 0)
    assert below.raw == pytest.approx(-0.2)
    assert not below.may_be_all
    assert below.to_dict() == {"value": 0, "low": 0, "high": 0, "raw": below.raw}


def test_noise_that_is_known_serves_for_one_run():
    found = worth_of_kept(CURVE, [accuracy_at(0.5)], kept=KEPT, effective=EFFECTIVE, noise=0.002)
    assert isinstance(found, WorthOfKept)
    assert found.low < 0.5 < found.high
    four = worth_of_kept(CURVE, [accuracy_at(0.5)] * 4, kept=KEPT, effective=EFFECTIVE, noise=0.002)
    assert four.high - four.low == pytest.approx((found.high - found.low) / 2, rel=0.1)


def test_effective_samples_can_come_with_each_resample():
    runs = [accuracy_at(0.5)]
    curves = [CURVE, CURVE]
    found = worth_of_kept(
        CURVE, runs, kept=KEPT, effective=150, noise=0, curves=curves, effectives=[120, 180]
    )
    assert (found.low, found.value, found.high) == pytest.approx((0.4, 0.5, 0.6))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kept": 0}, "kept must be a number above 0"),
        ({"effective": None}, "give either effective or received"),
        ({"received": [0.8, 0.8]}, "give either effective or received"),
        ({"accuracies": [0.8]}, "one run does not say how far runs scatter"),
        ({"accuracies": []}, "accuracies must be one or more numbers from 0 to 1"),
        ({"accuracies": [80, 81]}, "accuracies must be one or more numbers from 0 to 1"),
        ({"noise": -1}, "noise must be a number at least 0"),
        ({"effective": None, "received": [0.8]}, "received must have one accuracy per run, 2"),
        ({"effectives": [1, 2]}, "effectives must be 1 numbers of 0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, said):
    given = {"accuracies": [0.8, 0.81], "kept": 300, "effective": 150, **changes}
    with pytest.raises(InputError, match=said):
        worth_of_kept(CURVE, given.pop("accuracies"), **given)
