"""Measured games of made-up federations come near the true ones, and their intervals cover them."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.synthetic import coverage

RESULTS = Path(coverage.__file__).parent / "results"


@pytest.fixture(scope="module")
def found() -> dict:
    """Forty repetitions with seeds that the experiment does not have."""
    cell = coverage.CELLS["4 agents, 39 pilots"]
    seeds = range(10_000, 10_040)
    return coverage.summary([coverage.repetition(cell, s, resamples=120) for s in seeds])


@pytest.mark.slow
def test_totals_come_near_the_true_ones(found: dict) -> None:
    assert found["without_answer"] <= 2
    assert found["error_of_total"]["median"] < 0.06
    assert abs(found["bias_of_total"]) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        # Bounds that a share of 0.95 keeps with 40 draws, or 160, all but once in a thousand times.
        ("needs", 0.88, 0.995),
        ("contributions", 0.88, 1.0),
        ("total", 0.82, 1.0),
        ("accuracies", 0.88, 0.995),
        ("runs", 0.88, 0.995),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_claim(
    found: dict, name: str, least: float, most: float
) -> None:
    assert least <= found["coverage"][name] <= most


def test_both_kinds_of_true_curves_reach_goals_at_needs() -> None:
    for curve in ("power", "exponential"):
        truth = coverage.Truth.drawn(3, curve, np.random.default_rng(1))
        for agent in range(3):
            alone = np.zeros(3)
            alone[agent] = truth.needs[agent]
            assert truth.accuracies(alone)[agent] == pytest.approx(truth.goals[agent])


def test_runs_scatter_by_luck_and_by_validation_points() -> None:
    truth = coverage.Truth.drawn(2, "power", np.random.default_rng(1))
    given = np.tile([[300.0, 400.0]], (4000, 1))
    runs = coverage.measured_runs(truth, given, 400, np.random.default_rng(2))
    mean = truth.accuracies(given[0])
    assert runs.mean(axis=0) == pytest.approx(mean, abs=0.002)
    expected = np.sqrt(mean * (1 - mean) / 400 + 0.01**2)
    assert runs.std(axis=0) == pytest.approx(expected, rel=0.05)


def committed() -> dict:
    return json.loads((RESULTS / "coverage.json").read_text())["cells"]


def test_the_committed_summary_is_that_of_the_committed_repetitions() -> None:
    rows = [json.loads(line) for line in (RESULTS / "coverage.jsonl").read_text().splitlines()]
    seeds = [(row["cell"], row["seed"]) for row in rows]
    assert len(set(seeds)) == len(seeds)
    for name, cell in committed().items():
        assert coverage.summary([row for row in rows if row["cell"] == name]) == cell


def test_the_committed_intervals_cover_as_often_as_they_claim() -> None:
    for name, cell in committed().items():
        if coverage.CELLS[name].curve == "power" and cell["repetitions"] >= 40:
            assert 0.92 <= cell["coverage"]["needs"] <= 0.99, name
            assert 0.92 <= cell["coverage"]["accuracies"] <= 0.97, name
            assert 0.92 <= cell["coverage"]["contributions"] <= 0.995, name
            assert 0.92 <= cell["coverage"]["runs"] <= 0.99, name


def test_the_committed_plans_keep_what_they_promise() -> None:
    for name, cell in committed().items():
        assert cell["kept"] >= cell["promised"] - 0.02, name
        # With few pilots for many unknowns, plans are more careful than they say.
        few = name in ("4 agents, 13 pilots", "16 agents, 37 pilots")
        if coverage.CELLS[name].curve == "power" and not few:
            assert cell["kept"] <= cell["promised"] + 0.03, name


def test_two_in_three_totals_are_within_five_percent_with_39_pilots() -> None:
    assert committed()["4 agents, 39 pilots"]["within_5_percent"] >= 0.65


def test_with_many_pilots_plans_are_within_five_percent() -> None:
    cell = committed()["4 agents, 117 pilots, 2000 validation points"]
    assert cell["repetitions"] == 200
    assert cell["error_of_total"]["90 %"] <= 0.05
    assert 0.92 <= cell["coverage"]["total"] <= 0.99
