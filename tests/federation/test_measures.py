"""Measures are scikit-learn's, and their standard deviations cover what chance does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import ndtri
from scipy.stats import norm
from sklearn import metrics

from fedaccord.federation.goals import ClientGoal
from fedaccord.federation.measures import (
    deviate_auc,
    deviate_by_bootstrap,
    find_accuracy,
    find_auc,
    find_outputs,
)
from fedaccord.measurement.noise import deviate_auc_of_counts

# Of so many simulated intervals, at 95 %, the share that covers varies by this much.
SIMULATED = 1_000
CHANCE = 4 * np.sqrt(0.95 * 0.05 / SIMULATED)


def draw_points(seed, count=40, levels=8):
    """Outputs with ties, and labels that depend on them; both classes occur."""
    random = np.random.default_rng(seed)
    outputs = random.integers(levels, size=count) / levels + 0.5 / levels
    labels = (random.random(count) < outputs).astype(int)
    labels[:2] = 0, 1
    return labels, outputs


def value(measure, labels, outputs, **options):
    return ClientGoal(measure, 0.5, **options).measure_on(labels, outputs, None)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.sampled_from([2, 5, 1000]))
def test_measures_of_two_classes_are_those_of_scikit_learn(seed, count, levels) -> None:
    labels, outputs = draw_points(seed, count, levels)
    chosen = outputs >= 0.3
    expected = {
        "AUC": metrics.roc_auc_score(labels, outputs),
        "log loss": metrics.log_loss(labels, outputs),
        "Brier": metrics.brier_score_loss(labels, outputs),
        "accuracy": metrics.accuracy_score(labels, outputs > 0.5),
        "balanced accuracy": metrics.balanced_accuracy_score(labels, outputs > 0.5),
    }
    for name, found in expected.items():
        assert_allclose(value(name, labels, outputs), found, rtol=1e-12, err_msg=name)
    for name, positive in (("sensitivity", 1), ("specificity", 0)):
        found = metrics.recall_score(labels, chosen, pos_label=positive)
        assert_allclose(value(name, labels, outputs, threshold=0.3), found, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_measures_of_more_classes_are_those_of_scikit_learn(seed) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(50, 4)).astype(np.float32)
    labels = np.concatenate([np.arange(4), random.integers(4, size=46)])
    outputs = find_outputs(scores)
    best = scores.argmax(axis=1)
    assert_allclose(value("log loss", labels, outputs), metrics.log_loss(labels, outputs))
    assert_allclose(value("accuracy", labels, outputs), (best == labels).mean())
    assert_allclose(
        value("balanced accuracy", labels, outputs),
        metrics.balanced_accuracy_score(labels, best),
    )
    truth = np.eye(4)[labels]
    assert_allclose(value("Brier", labels, outputs), ((outputs - truth) ** 2).sum(axis=1).mean())


def test_two_classes_tie_as_the_best_score_does() -> None:
    scores = np.array([[0.3, 0.3], [1e-12, 0.0], [0.0, 1e-12]], dtype=np.float32)
    labels = scores.argmax(axis=1)
    assert find_accuracy(labels, find_outputs(scores)) == 1.0


def test_outputs_are_not_numbers_where_training_diverged() -> None:
    bad = np.array([[0.0, np.nan], [np.inf, 0.0], [-np.inf, 1.0]])
    assert np.isnan(find_outputs(bad)).tolist() == [True, True, False]


@pytest.mark.parametrize("measure", ["AUC", "sensitivity"])
def test_a_measure_that_points_do_not_define_is_not_a_number(measure) -> None:
    assert np.isnan(value(measure, np.zeros(5, dtype=int), np.linspace(0.1, 0.9, 5)))


# Amounts and times.


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30))
def test_measures_of_amounts_are_those_of_scikit_learn(seed, count) -> None:
    random = np.random.default_rng(seed)
    labels, outputs = random.normal(size=(2, count))
    assert_allclose(value("mae", labels, outputs), metrics.mean_absolute_error(labels, outputs))
    assert_allclose(value("r2", labels, outputs), metrics.r2_score(labels, outputs))


def draw_times(seed, count):
    """Times and risks with many ties, a third of them censored."""
    random = np.random.default_rng(seed)
    times = random.integers(1, max(3, count // 2), size=count)
    events = random.random(count) < 0.67
    return np.stack([times, events], axis=1).astype(float), random.integers(6, size=count) / 6


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40))
def test_the_c_index_is_that_of_lifelines(seed, count) -> None:
    utils = pytest.importorskip("lifelines.utils")
    labels, risks = draw_times(seed, count)
    try:
        expected = utils.concordance_index(labels[:, 0], -risks, labels[:, 1])
    except ZeroDivisionError:
        expected = np.nan
    assert_allclose(value("c-index", labels, risks), expected)


@pytest.mark.parametrize("seed", range(5))
def test_the_c_index_counts_pairs_one_by_one(seed) -> None:
    labels, risks = draw_times(seed, 25)
    right = pairs = 0.0
    for (time, event), risk in zip(labels, risks, strict=True):
        for (other, happened), lower in zip(labels, risks, strict=True):
            if event and (time < other or (time == other and not happened)):
                pairs += 1
                right += 1.0 if risk > lower else 0.5 if risk == lower else 0.0
    assert_allclose(value("c-index", labels, risks), right / pairs)


def test_intervals_of_the_bootstrap_cover_the_c_index() -> None:
    """Without censoring and with exponential times, exp(risk) is the rate of the event."""
    random = np.random.default_rng(9)
    goal = ClientGoal("c-index", 0.6)

    def draw(count):
        risks = random.integers(2, size=count) * np.log(3)
        return np.stack([random.exponential(np.exp(-risks)), np.ones(count)], axis=1), risks

    # Of pairs with different risks, 3/4 have the event sooner at the rate that is three times as
    # high. Half of all pairs have the same risk, and count half.
    truth = 0.5 * 0.75 + 0.5 * 0.5
    found = []
    for _ in range(150):
        labels, risks = draw(60)
        spread = goal.deviate_on(labels, risks, None)
        found.append(abs(goal.measure_on(labels, risks, None) - truth) <= ndtri(0.975) * spread)
    assert abs(np.mean(found) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 150)


# Intervals.


def draw_normal(random, positives, negatives, distance):
    labels = np.repeat([1, 0], [positives, negatives])
    return labels, random.normal(size=len(labels)) + distance * labels


def cover(make, truth):
    """The share of intervals, two standard deviations to each side, that hold the truth."""
    z = ndtri(0.975)
    found = [make() for _ in range(SIMULATED)]
    return np.mean([abs(value - truth) <= z * spread for value, spread in found])


def test_intervals_of_delong_cover_the_auc() -> None:
    random = np.random.default_rng(1)
    truth = norm.cdf(1.0 / np.sqrt(2))

    def make():
        points = draw_normal(random, 60, 90, 1.0)
        return find_auc(*points), deviate_auc(*points)

    assert abs(cover(make, truth) - 0.95) < CHANCE


def test_intervals_of_half_the_deviation_would_be_noticed() -> None:
    """The fault planted: a variance that forgets one of the two classes."""
    random = np.random.default_rng(1)

    def make():
        labels, outputs = draw_normal(random, 60, 90, 1.0)
        above = [(outputs[labels == 0] < one).mean() for one in outputs[labels == 1]]
        return np.mean(above), np.std(above, ddof=1) / np.sqrt(60)

    assert abs(cover(make, norm.cdf(1.0 / np.sqrt(2))) - 0.95) > CHANCE


def test_delong_is_the_variance_over_draws() -> None:
    random = np.random.default_rng(2)
    drawn = [draw_normal(random, 30, 50, 1.5) for _ in range(2 * SIMULATED)]
    truth = np.std([find_auc(*points) for points in drawn])
    assert_allclose(np.mean([deviate_auc(*points) for points in drawn]), truth, rtol=0.06)


def test_hanley_and_mcneil_are_exact_for_exponential_outputs() -> None:
    """Their shares of pairs are those of outputs with exponential distributions."""
    random, auc, positives, negatives = np.random.default_rng(6), 0.8, 15, 40
    labels = np.repeat([1, 0], [positives, negatives])
    scale = np.where(labels == 1, auc / (1 - auc), 1.0)
    drawn = [find_auc(labels, random.exponential(scale)) for _ in range(4 * SIMULATED)]
    found = deviate_auc_of_counts(auc, positives, negatives)
    assert_allclose(found, np.std(drawn), rtol=5 / np.sqrt(2 * len(drawn)))
    # The fault planted: the classes in the place of each other.
    swapped = deviate_auc_of_counts(auc, negatives, positives)
    assert abs(swapped / np.std(drawn) - 1) > 5 / np.sqrt(2 * len(drawn))


def test_classes_that_are_apart_by_chance_leave_a_doubt() -> None:
    labels, outputs = np.repeat([0, 1], 5), np.arange(10.0)
    assert find_auc(labels, outputs) == 1.0
    assert 0.02 < deviate_auc(labels, outputs) < 0.3


def test_intervals_of_a_sensitivity_cover_it_with_the_positives_of_its_group() -> None:
    random = np.random.default_rng(3)
    goal = ClientGoal("sensitivity", 0.5, group=np.arange(400) < 200)
    labels = np.arange(400) % 2

    def make():
        outputs = random.random(400)
        points = labels, outputs, goal.group
        return goal.measure_on(*points), goal.deviate_on(*points)

    assert abs(cover(make, 0.5) - 0.95) < CHANCE


@pytest.mark.parametrize("measure", ["accuracy", "balanced accuracy", "Brier"])
def test_intervals_of_other_measures_cover_them(measure) -> None:
    """The right class gets an output of 0.9 with probability 0.7, and else of 0.1."""
    random = np.random.default_rng(4)
    goal = ClientGoal(measure, 0.5)
    truth = 0.7 * 0.1**2 + 0.3 * 0.9**2 if measure == "Brier" else 0.7

    def make():
        labels = np.arange(120) % 2
        right = random.random(120) < 0.7
        outputs = np.where(right == (labels == 1), 0.9, 0.1)
        return goal.measure_on(labels, outputs, None), goal.deviate_on(labels, outputs, None)

    assert abs(cover(make, truth) - 0.95) < CHANCE


def test_the_bootstrap_agrees_with_formulas() -> None:
    random = np.random.default_rng(5)
    points = draw_normal(random, 60, 90, 1.0)
    drawn = deviate_by_bootstrap(find_auc, *points, resamples=600)
    assert_allclose(drawn, deviate_auc(*points), rtol=0.12)


def test_a_function_of_ones_own_is_measured_by_bootstrap() -> None:
    labels, outputs = draw_points(7, 200)
    goal = ClientGoal(metrics.average_precision_score, 0.6)
    assert goal.name == "average_precision_score"
    assert_allclose(
        goal.measure_on(labels, outputs, None), metrics.average_precision_score(labels, outputs)
    )
    assert 0.005 < goal.deviate_on(labels, outputs, None) < 0.1
