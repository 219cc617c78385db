"""What chance in the validation points adds to the scatter of pilots, for any measure."""

import csv
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedaccord.errors import InputError
from fedaccord.measurement.measures import fit_goals
from fedaccord.measurement.noise import count_alike, count_by_deviations, deviate_auc_of_counts

AGENTS = ("A", "B")


def test_a_share_on_as_many_points_varies_as_much() -> None:
    for value, negatives, positives in ((0.6, 40, 40), (0.8, 100, 30), (0.95, 25, 60)):
        count = count_alike("AUC", value, (negatives, positives))
        deviation = deviate_auc_of_counts(value, positives, negatives)
        assert_allclose(math.sqrt(value * (1 - value) / count), deviation)


def test_shares_of_a_class_are_counted_in_its_points() -> None:
    counts = (70, 30)
    assert count_alike("accuracy", 0.8, counts) == 100
    assert count_alike("sensitivity", 0.8, counts) == 30
    assert count_alike("specificity", 0.8, counts) == 70
    # Half the variance of each class's mean: (p q / 70 + p q / 30) / 4.
    assert_allclose(count_alike("balanced accuracy", 0.8, counts), 4 / (1 / 70 + 1 / 30))
    assert math.isnan(count_alike("log loss", 0.8, counts))


def test_deviations_are_counted_in_points() -> None:
    shares = np.array([0.6, 0.7, 0.9])
    deviations = np.sqrt(shares * (1 - shares) / 50)
    assert_allclose(count_by_deviations(shares, deviations), 50)
    assert_allclose(count_by_deviations([*shares, np.nan], [*deviations, np.nan]), 50)
    assert math.isnan(count_by_deviations(shares, np.full(3, np.nan)))


def write_pilots(path, *, measure="AUC", heads=("sd",), cells=(0.05,), noise=0.05, scale=1.0):
    """Pilots whose trainings hardly differ: nearly all scatter is by measuring."""
    random = np.random.default_rng(3)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["pilot", "agent", "contribution", "measure", "value", "goal", *heads])
        for pilot in range(40):
            given = random.integers(20, 200, size=2)
            for agent, own in zip(AGENTS, given, strict=True):
                samples = own + 0.5 * (given.sum() - own)
                loss = 0.1 + 1.2 * (20 + samples) ** -0.5 + noise * random.normal()
                value = scale * loss if measure == "log loss" else 1 - loss
                goal = 0.25 * scale if measure == "log loss" else 0.75
                rows.writerow([pilot, agent, own, measure, f"{value:.6f}", goal, *cells])
    return path


def training_of(path, measure):
    return fit_goals(path, resamples=5).measurements[measure].training_noise


@pytest.mark.parametrize(
    ("heads", "cells"),
    [
        (("sd",), (0.05,)),
        # Hanley and McNeil: an AUC of 0.82 on 35 points of each class varies by 0.05.
        (("positives", "negatives"), (35, 35)),
    ],
)
def test_what_measuring_explains_is_not_taken_for_training(tmp_path, heads, cells) -> None:
    known = write_pilots(tmp_path / "known.csv", heads=heads, cells=cells)
    unknown = write_pilots(tmp_path / "unknown.csv", heads=(), cells=())
    assert (training_of(unknown, "AUC") > 0.035).all()
    assert (training_of(known, "AUC") < 0.025).all()


def test_a_loss_is_divided_by_its_unit_together_with_its_deviation(tmp_path) -> None:
    options = {"measure": "log loss", "noise": 0.03}
    small = write_pilots(tmp_path / "small.csv", cells=(0.03,), **options)
    large = write_pilots(tmp_path / "large.csv", cells=(3.0,), scale=100.0, **options)
    found = [training_of(path, "log loss") for path in (small, large)]
    assert_allclose(*found, rtol=1e-3)
    without = write_pilots(tmp_path / "without.csv", heads=(), cells=(), **options)
    assert (found[0] < 0.7 * training_of(without, "log loss")).all()


@pytest.mark.parametrize("text", ["0", "-0.1", "x"])
def test_a_deviation_that_is_none_is_refused(tmp_path, text) -> None:
    path = write_pilots(tmp_path / "bad.csv", cells=(text,))
    with pytest.raises(InputError, match=r"the sd in line 2"):
        fit_goals(path, resamples=2)
