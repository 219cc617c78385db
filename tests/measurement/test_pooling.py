"""Pooling where the data support it: an agent unlike the others is left alone."""

import dataclasses

import numpy as np
import pytest

from fedaccord.games.measured import LearningCurve, find_needs, predict_accuracies, read_curves
from fedaccord.measurement import pooling
from fedaccord.measurement.curve_fit import fit_agent
from fedaccord.measurement.fit import Measurement, fit_curves
from fedaccord.measurement.pilots import PilotTable
from fedaccord.measurement.pooling import MOST_LOST, score_left_out

LIKE = LearningCurve(0.05, 2.2, 40, 0.45)
UNLIKE = LearningCurve(0.005, 3400, 600, 1.4)


def measure(curves: list[LearningCurve], *, own: int | None = None, seed: int = 0) -> Measurement:
    """Fit pilots of agents with these curves; samples of others are worth nothing to one."""
    size = len(curves)
    benefits = np.full((size, size), 0.4)
    if own is not None:
        benefits[own] = 0.01
    np.fill_diagonal(benefits, 1.0)
    rng = np.random.default_rng(seed)
    given = np.concatenate([np.diag([level] * size) for level in (100.0, 300.0, 900.0)])
    given = np.concatenate([given, rng.uniform(0, 900, (5 * size, size))])
    reached = predict_accuracies(read_curves(curves), given @ benefits.T)
    lucky = (reached + 0.01 * rng.standard_normal(reached.shape)).clip(0, 1)
    names = [f"agent {i}" for i in range(size)]
    table = PilotTable(
        names,
        given,
        rng.binomial(400, lucky) / 400,
        goals=np.full(size, 0.75),
        validation=np.full(size, 400),
    )
    return fit_curves(table, resamples=100)


@pytest.fixture(scope="module")
def mixed() -> Measurement:
    return measure([UNLIKE, LIKE, LIKE, LIKE], own=0)


def test_an_agent_unlike_all_others_is_found_and_named(mixed: Measurement) -> None:
    assert mixed.pooling.pooled == (False, True, True, True)
    assert mixed.pooling.gains[0] < -MOST_LOST
    doubts = [doubt for doubt in mixed.doubts if doubt.kind == "unlike-others"]
    assert [doubt.agent for doubt in doubts] == [0]
    assert "agent 0 learns unlike the other agents" in doubts[0].sentence


def test_an_agent_unlike_all_others_is_not_dragged(
    mixed: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its needs are found, and better than if it were pooled all the same."""
    wanted = np.array([0.8, 0.85, 0.9])
    true = find_needs(np.tile(read_curves([UNLIKE]), (3, 1)), wanted)

    def find_off(found: Measurement) -> np.ndarray:
        return np.log([find_needs(found.curves[:1], goal)[0] for goal in wanted] / true)

    needs = np.array([find_needs(mixed.resamples.curves[:, 0], goal) for goal in wanted])
    low, high = np.quantile(needs, [0.005, 0.995], axis=1, method="inverted_cdf")
    assert ((low <= true) & (true <= high)).all()
    assert np.abs(find_off(mixed)).max() < 0.15
    assert mixed.benefits[0, 1:].mean() < 0.1 < mixed.benefits[1:, 0].mean()
    monkeypatch.setattr(pooling, "MOST_LOST", np.inf)
    dragged = measure([UNLIKE, LIKE, LIKE, LIKE], own=0)
    assert all(dragged.pooling.pooled)
    assert np.abs(find_off(dragged)).mean() > np.abs(find_off(mixed)).mean()


def test_agents_that_are_alike_are_pooled_and_better_known() -> None:
    found = measure([LIKE] * 6)
    assert all(found.pooling.pooled)
    assert found.pooling.gains.sum() > 0
    assert not [doubt for doubt in found.doubts if doubt.kind == "unlike-others"]
    table = found.table
    alone = []
    for agent in range(6):
        # What it would know without the others' accuracies.
        single = np.full_like(table.accuracies, np.nan)
        single[:, agent] = table.accuracies[:, agent]
        alone.append(width_alone(table, single, agent))
    assert np.mean(find_widths(found)) < 0.95 * np.mean(alone)


def find_widths(found: Measurement) -> np.ndarray:
    """Return how wide the intervals of accuracies are where every agent gives 300."""
    low, high = np.quantile(found.accuracies(np.full(found.table.size, 300.0)), [0.1, 0.9], axis=0)
    return high - low


def width_alone(table: PilotTable, single: np.ndarray, agent: int) -> float:
    """Put the agent first, with others that are measured but say nothing."""
    accuracies = np.where(np.isnan(single), np.nan, single)
    # A fit needs one accuracy of each agent.
    for other in range(table.size):
        if other != agent:
            accuracies[other, other] = table.accuracies[other, other]
    lonely = PilotTable(
        table.agents,
        table.contributions,
        accuracies,
        goals=table.goals,
        validation=table.validation,
    )
    return float(find_widths(fit_curves(lonely, resamples=100))[agent])


def test_scores_are_those_of_fits_without_each_pilot(mixed: Measurement) -> None:
    """The closed form is that of as many fits, each without one group of pilots."""
    fit = mixed.fits[1]
    fit = fit_agent(fit, fit.prior, fit.found[None])
    scores = score_left_out(fit)
    rows, group = np.unique(fit.model.contributions, axis=0, return_inverse=True)
    group = group.ravel()
    slow = []
    for number in range(len(rows)):
        kept = group != number
        less = dataclasses.replace(
            fit,
            model=dataclasses.replace(fit.model, contributions=fit.model.contributions[kept]),
            errors=fit.errors[kept],
            pilots=fit.pilots[kept],
        )
        again = fit_agent(less, fit.prior, fit.found[None])
        whole = dataclasses.replace(fit, found=again.found)
        _, slopes = fit.model.slopes(again.found[None])
        doubt = np.linalg.inv(again.information + fit.prior.precision)
        slope = slopes[0][~kept].mean(axis=0)
        noise = fit.scatter[~kept][0] ** 2 / (~kept).sum()
        variance = noise + slope @ doubt @ slope
        gap = fit.errors[~kept].mean() - whole.fitted[~kept][0]
        slow.append(-0.5 * (np.log(variance / noise) + gap**2 / variance))
    assert scores == pytest.approx(slow, abs=0.4)
    assert scores.sum() == pytest.approx(np.sum(slow), abs=0.5)


def test_one_agent_has_nobody_to_be_pooled_with() -> None:
    found = measure([LIKE])
    assert found.pooling.pooled == (True,)
    assert found.pooling.to_dict() == {"gains": [0.0], "pooled": [True]}


def test_two_agents_that_differ_are_each_fitted_alone_or_together() -> None:
    """With two, either both are in the pool or none is."""
    found = measure([UNLIKE, LIKE], own=0)
    assert len({fit.pooled for fit in found.fits}) == 1
