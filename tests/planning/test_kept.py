"""Plans of agents that keep what they withhold, against the formula and against single runs."""

from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedaccord.check import check
from fedaccord.games.kept import KeptData, keep_data
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.pilots import PilotTable
from fedaccord.planning.kept import count_kept, plan_for_kept_data
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


def test_what_an_agent_lacks_is_what_giving_adds_and_then_what_samples_are_worth():
    game = LinearGame(np.eye(2), [60, 10], limits=[100, 10])
    kept = KeptData(np.array([0.5, 0.0]), np.array([100.0, 10.0]))
    # 10 given and 90 kept, each worth a half, make 55. Each further one given adds a half.
    assert count_kept(check(game, [10, 10]), kept).needed[0] == pytest.approx(20)
    # All 40 that it holds make 40, and 20 more must be found.
    few = KeptData(np.array([0.5, 0.0]), np.array([40.0, 10.0]))
    assert count_kept(check(game, [10, 10]), few).needed[0] == pytest.approx(60)
    # What is kept is worth as much: only samples that it does not hold help.
    same = KeptData(np.array([1.0, 0.0]), np.array([40.0, 10.0]))
    assert count_kept(check(game, [10, 10]), same).needed[0] == pytest.approx(60)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_needs_are_the_best_responses_of_the_game_with_kept_data(seed):
    random = np.random.default_rng(seed)
    benefits = random.uniform(0, 1, (3, 3)) + np.eye(3)
    game = LinearGame(benefits, random.uniform(20, 200, 3), limits=np.full(3, 400.0))
    worth, given = random.uniform(0.05, 0.9, 3), random.uniform(0, 40, 3)
    found = count_kept(check(game, given), KeptData(worth, np.full(3, 400.0)))
    wanted = keep_data(game, worth, 400.0).best_responses(given)
    inside = wanted <= 400
    assert found.needed[inside] == pytest.approx(np.asarray(wanted)[inside], abs=1e-6)
