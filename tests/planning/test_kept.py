"""Plans of agents that keep what they withhold, against the formula and against single runs."""

from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.pilots import PilotTable
from fedaccord.planning.kept import plan_for_kept_data
from fedaccord.planning.plan import make_plan

PILOTS = Path(__file__).parent / "digits_pilots.csv"


def small_game(**changes):
    frame = {"agents": ["City", "Rural"], "limits": [100, 100], **changes}
    return LinearGame([[1, 0.5], [0.5, 1]], [80, 70], **frame)


@settings(max_examples=40)
@given(st.integers(0, 99), st.integers(0, 99))
def test_responses_are_those_of_the_formula(first, second):
    worth = np.array([first, second]) / 100
    plan = make_plan(small_game())
    assume(plan.contributions is not None)
    found = plan_for_kept_data(plan, worth)
    # Each needs just what it gives: (theta - kappa n) / (1 - kappa), in whole samples.
    real = np.maximum((np.array([60, 40]) - worth * 100) / (1 - worth), 0)
    assert found.responses == pytest.approx(np.ceil(real - 1e-6))
    assert found.defectors.tolist() == np.flatnonzero(found.responses < [60, 40]).tolist()


def test_with_a_kept_worth_of_nothing_the_plan_is_as_it_was():
    plan = make_plan(small_game())
    found = plan_for_kept_data(plan, 0)
    assert found.responses.tolist() == plan.contributions.tolist() == [60, 40]
    assert found.stable.total == pytest.approx(100)
    assert (found.level, found.reached, found.rest) == (None, None, None)
    assert found.to_dict()["would_give"] == [60, 40]


def test_keepers_give_nothing_and_the_others_settle_without_them():
    plan = make_plan(small_game())
    found = plan_for_kept_data(plan, [1, 0], [40, 100])
    assert found.responses[0] == 0
    assert found.stable.contributions is None
    assert found.rest.contributions == pytest.approx([0, 70])
    record = found.to_dict()
    assert record["stable"]["contributions"] is None
    assert record["rest"]["contributions"] == pytest.approx([0, 70])


def test_without_a_plan_there_is_nothing_to_say():
    plan = make_plan(small_game(limits=[50, 50]))
    assert plan.contributions is None
    assert plan_for_kept_data(plan, 0.5) is None


@pytest.fixture(scope="module")
def plan():
    return make_plan(fit_curves(PilotTable.load(PILOTS)), probability=0.9)


def chance_by_hand(plan, worth, level, agent):
    """Give P(agent reaches its goal) if it gives a part and keeps the rest, from the resamples."""
    fit, given = plan.measurement, np.array(plan.contributions)
    held, asked = plan.game.limits[agent], plan.contributions[agent]
    given[agent] = level * asked
    kept = worth * (held - given[agent])
    # Smaller runs scatter more.
    scale = float((fit.fading.usual / given.sum()) ** (fit.fading.rate / 2))
    chances = []
    for benefits, curves, noise in zip(
        fit.resamples.benefits, fit.resamples.curves, fit.resamples.training, strict=True
    ):
        effective = benefits[agent] @ given + benefits[agent, agent] * kept
        ahead = predict_accuracies(curves[agent], effective) - fit.goals[agent]
        chances.append((1 + erf(float(ahead) / (scale * float(noise[agent])) / sqrt(2))) / 2)
    return fit.table.finishing * np.mean(chances)


@pytest.mark.parametrize("worth", [0.0, 0.4, 0.7, 1.0])
def test_the_probability_that_a_defector_succeeds_is_that_of_its_effective_samples(plan, worth):
    found = plan_for_kept_data(plan, worth)
    assert found.level == 0.25
    for agent in np.flatnonzero(plan.contributions):
        expected = chance_by_hand(plan, worth, 0.25, agent)
        assert found.reached[agent] == pytest.approx(expected, abs=1e-5)


def test_keeping_data_makes_defection_pay(plan):
    contributors = plan.contributions > 0
    lost = plan_for_kept_data(plan, 0)
    assert lost.reached == pytest.approx(plan.cuts[0.25])
    before = lost.reached
    for worth in (0.3, 0.7, 1.0):
        after = plan_for_kept_data(plan, worth).reached
        assert (after[contributors] > before[contributors]).all()
        before = after
