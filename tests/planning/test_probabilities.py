"""How likely all are satisfied: against runs drawn one by one."""

import numpy as np
import pytest

from fedaccord.games.measured import LearningCurve
from fedaccord.planning.probabilities import Chances, lower_goals, spread

RNG = np.random.default_rng(5)
WORLDS, AGENTS = 6, 3
GOALS = np.array([0.7, 0.75, 0.8])
BENEFITS = RNG.uniform(0.1, 0.8, (WORLDS, AGENTS, AGENTS))
BENEFITS[:, range(AGENTS), range(AGENTS)] = 1.0
FLOORS = RNG.uniform(0.03, 0.1, (WORLDS, AGENTS))
CURVES = np.stack(
    [FLOORS, np.full_like(FLOORS, 2.0), np.full_like(FLOORS, 20.0), np.full_like(FLOORS, 0.45)],
    axis=-1,
)
NOISE = RNG.uniform(0.01, 0.03, (WORLDS, AGENTS))
CHANCES = Chances(GOALS, NOISE, BENEFITS, CURVES)
GIVEN = np.array([60.0, 90.0, 150.0])


def promised(world, agent, given):
    curve = LearningCurve(*CURVES[world, agent])
    return curve.accuracy(sum(BENEFITS[world, agent, j] * given[j] for j in range(AGENTS)))


def drawn(given, runs=4_000):
    """Draw runs world by world, agent by agent."""
    rng = np.random.default_rng(0)
    reached = np.zeros((WORLDS * runs, AGENTS))
    for world in range(WORLDS):
        for agent in range(AGENTS):
            scatter = NOISE[world, agent] * rng.standard_normal(runs)
            place = slice(world * runs, (world + 1) * runs)
            reached[place, agent] = promised(world, agent, given) + scatter
    return reached


def test_each_and_all_are_satisfied_as_often_as_in_runs_drawn_one_by_one():
    met = drawn(GIVEN) >= GOALS
    assert CHANCES.satisfied(GIVEN).mean(axis=0) == pytest.approx(met.mean(axis=0), abs=0.01)
    assert CHANCES.everyone(GIVEN).mean() == pytest.approx(met.all(axis=1).mean(), abs=0.01)


@pytest.mark.parametrize("level", [0.75, 0.25, 0.0])
def test_a_cut_is_the_agents_own_and_nobody_elses(level):
    expected = []
    for agent in range(AGENTS):
        cut = np.array(GIVEN)
        cut[agent] *= level
        expected.append(float((drawn(cut)[:, agent] >= GOALS[agent]).mean()))
    assert CHANCES.could_cut(GIVEN, level) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("level", [0.5, 0.25])
def test_the_others_reach_their_goals_as_often_as_in_runs_in_which_one_cuts(level):
    expected = []
    for agent in range(AGENTS):
        cut = np.array(GIVEN)
        cut[agent] *= level
        met = np.delete(drawn(cut) >= GOALS, agent, axis=1)
        expected.append(float(met.all(axis=1).mean()))
    assert CHANCES.others_reach(GIVEN, level) == pytest.approx(expected, abs=0.01)


def test_without_noise_a_goal_is_met_or_not():
    certain = Chances(GOALS, np.zeros_like(NOISE), BENEFITS, CURVES)
    assert set(np.unique(certain.satisfied(GIVEN))) <= {0.0, 1.0}
    exactly = Chances(certain.accuracies(GIVEN)[0], np.zeros_like(NOISE), BENEFITS, CURVES)
    assert exactly.satisfied(GIVEN)[0].tolist() == [1.0] * AGENTS


def test_needs_and_margins_are_what_the_curves_say():
    needs = CHANCES.needs(np.array([0.0, 0.02, 0.0]))
    for world in range(WORLDS):
        curve = LearningCurve(*CURVES[world, 1])
        assert needs[world, 1] == pytest.approx(curve.need(0.77))


def test_an_interval_leaves_a_fortieth_of_the_draws_on_either_side():
    draws = np.arange(1_000.0)[:, None]
    found = spread(np.array([500.0]), np.random.default_rng(0).permutation(draws))[0]
    assert (found.low, found.high) == (24.0, 974.0)


def test_worlds_without_what_is_estimated_are_left_out_of_its_interval():
    draws = np.arange(200.0)[:, None]
    draws[1::2] = np.nan
    found = spread(np.array([100.0]), draws)[0]
    assert (found.low, found.high) == (4.0, 194.0)


def test_there_is_no_interval_where_most_worlds_are_without():
    draws = np.full((100, 2), 5.0)
    draws[:51, 1] = np.nan
    found = spread(np.array([5.0, 5.0]), draws)
    assert found.low is None and found.high is None and found[0].low is None


def test_a_need_without_end_leaves_an_interval_open_above():
    draws = np.full((100, 1), 5.0)
    draws[:3] = np.inf
    found = spread(np.array([5.0]), draws)[0]
    assert (found.low, found.high) == (5.0, np.inf)


def test_goals_within_reach_are_met_as_often_as_asked_and_hardly_more():
    runs = drawn(GIVEN)
    lowered = lower_goals(runs, GOALS, 0.9)
    met = (runs >= lowered).all(axis=1).mean()
    assert 0.9 <= met <= 0.91
    assert (lowered <= GOALS).all()


def test_a_goal_that_is_always_met_is_not_lowered():
    runs = np.column_stack([np.full(1_000, 0.9), np.linspace(0.6, 0.8, 1_000)])
    lowered = lower_goals(runs, np.array([0.85, 0.75]), 0.8)
    assert lowered[0] == 0.85
    assert lowered[1] == pytest.approx(0.64, abs=0.001)
