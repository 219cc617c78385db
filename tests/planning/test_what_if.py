"""Scenarios: what a changed game must be, and that leaving and joining are what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord import LinearGame, check, fit_curves, make_plan, solve_stable
from fedaccord.errors import InputError
from fedaccord.measurement.pilots import PilotTable
from fedaccord.planning.members import _match_names
from fedaccord.planning.what_if import (
    Changed,
    Scenario,
    adopt_margins,
    apply_scenario,
    follow_plan,
    list_frame,
    name_joined,
)

NAMES = ("University", "City", "Rural")
BENEFITS = np.array([[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]])
GAME = LinearGame(BENEFITS, [1440, 1440, 930], agents=NAMES)
STABLE = (300, 1200, 600)


def change(scenario, basis=GAME):
    return apply_scenario(basis, scenario)


@pytest.fixture(scope="module")
def measurement(request):
    return fit_curves(PilotTable.load(request.config.rootpath / "docs/how-to/network/pilots.csv"))


def test_numbers_replace_those_of_the_file():
    scenario = Scenario(goal=((0, 1000.0),), limit=((1, 500.0), (2, np.inf)), cost=((2, 3.0),))
    game = change(scenario).basis
    assert game.requirements.tolist() == [1000, 1440, 930]
    assert game.limits.tolist() == [np.inf, 500, np.inf]
    assert game.costs.tolist() == [1, 1, 3]


@given(st.integers(0, 2), st.integers(0, 1440))
def test_a_locked_agent_gives_its_number(agent, number):
    changed = change(Scenario(lock=((agent, float(number)),)))
    plan = solve_stable(changed.basis)
    # With too low a number the agent itself is short, and no other has a reason to give more.
    assert plan.contributions is not None or number < STABLE[agent]
    if plan.contributions is None:
        return
    assert plan.contributions[agent] == pytest.approx(number, abs=1e-6)
    # The others do what is best for them: nobody among them could give less.
    found = check(GAME, plan.allocation)
    others = np.arange(3) != agent
    assert (found.short[others] < 1e-6).all() and (found.spare[others] < 1e-6).all()


def test_a_lock_above_the_limit_is_refused():
    with pytest.raises(InputError, match="University gives 400, and its limit is 100: lower the"):
        change(Scenario(limit=((0, 100.0),), lock=((0, 400.0),)))
    game = change(Scenario(limit=((0, 400.0),), lock=((0, 400.0),))).basis
    assert game.limits[0] == game.minimums[0] == 400


def test_who_leaves_is_gone_with_its_data():
    changed = change(Scenario(left=(1,), goal=((1, 5.0), (2, 800.0))))
    assert changed.names == ("University", "Rural") and changed.numbers == (0, 2)
    assert changed.basis.requirements.tolist() == [1440, 800]
    assert changed.basis.dense_benefits.tolist() == [[1, 0.7], [0.7, 1]]


def test_who_joins_has_the_data_of_the_agent_that_it_is_like():
    changed = change(Scenario(like=(2,), limit=((3, 7.0),)))
    assert changed.names == (*NAMES, "Rural 2")
    benefits = changed.basis.dense_benefits
    assert (benefits[3] == benefits[2]).all() and (benefits[:, 3] == benefits[:, 2]).all()
    assert changed.basis.limits[3] == 7
    # Two agents with the same data can share what one of them gave alone.
    both = solve_stable(change(Scenario(like=(2,))).basis)
    assert both.total == pytest.approx(solve_stable(GAME).total)


def test_names_of_those_who_join_are_new():
    assert name_joined(["A", "A 2"], [0, 0, 1]) == ["A", "A 2", "A 3", "A 4", "A 2 2"]


@pytest.mark.parametrize("scenario", [Scenario(like=(3,)), Scenario(left=(0, 1, 2))])
def test_what_cannot_be_is_refused(scenario):
    with pytest.raises(InputError, match="agent"):
        change(scenario)


def test_an_agent_that_left_counts_for_nothing_in_pilots(measurement):
    changed = apply_scenario(measurement, Scenario(left=(1,)))
    assert (changed.names, changed.numbers) == (("Harbour", "Mill"), (0, 2))
    plan = make_plan(changed.basis)
    assert plan.everyone.value >= 0.95 and plan.contributions.min() > 0
    # It is not there: of the whole network, it is the one that gives nothing.
    chances = measurement.game.chances.restrict(np.array([0, 2]))
    assert plan.everyone.value == pytest.approx(
        float(chances.everyone(plan.contributions).mean()), abs=1e-9
    )
    assert not any("Hill" in doubt.sentence for doubt in changed.basis.doubts)


def test_an_agent_that_is_not_there_cannot_leave(measurement):
    assert apply_scenario(measurement, Scenario(left=(99,))).numbers == (0, 1, 2)


def test_an_agent_joins_pilots_with_the_curve_of_another(measurement):
    changed = apply_scenario(measurement, Scenario(like=(1,)))
    assert changed.names == ("Harbour", "Hill", "Mill", "Hill 2")
    assert (changed.basis.curves[3] == measurement.curves[1]).all()
    assert changed.basis.game.chances.benefits.shape[1:] == (4, 4)


def test_names_are_found_whole():
    found = _match_names(["Hill"])
    assert found.search("The curve of Hill is flat.")
    assert not found.search("Hilltop learns unlike the others.")


def test_limits_and_goals_of_pilots(measurement):
    changed = change(Scenario(goal=((0, 0.8),), limit=((2, 300.0),)), measurement)
    frame = list_frame(changed.basis)
    assert frame["goal"][0] == 0.8 and frame["limit"][2] == 300
    assert change(Scenario(goal=((0, 0.999),)), measurement).basis.unreachable
    assert adopt_margins(change(Scenario(goal=((0, 0.999),)), measurement).basis, None) is None


@settings(max_examples=25)
@given(st.integers(0, 2), st.floats(0.7, 1.3))
def test_a_plan_that_is_followed_is_stable(agent, factor):
    goals = np.array(GAME.requirements)
    goals[agent] *= factor
    game = GAME.replace(requirements=goals)
    followed = follow_plan(game, solve_stable(GAME).contributions)
    assert check(game, followed).stable.json is True


def test_what_cannot_be_followed_stays_as_it_is():
    # City cannot reach its goal: no plan is near, and the numbers stay.
    game = GAME.replace(limits=[0, 400, np.inf])
    given = np.array([300.0, 1200.0, 600.0])
    assert (follow_plan(game, given) == given).all()
    assert (follow_plan(None, given) == given).all()


def test_numbers_of_agents_that_are_gone_are_passed_over():
    changed = Changed(GAME.without(1), (0, 2))
    assert changed.place(np.zeros(2), ((1, 5.0), (2, 7.0))).tolist() == [0, 7]


# Agents that give only if another does.

ASKED = np.array([300.0, 1200.0, 600.0])
ALL = Changed(GAME, (0, 1, 2))


def test_who_gives_only_if_another_does_gives_nothing_if_it_does_not():
    only = ((1, 2.0),)
    assert ALL.find_broken(ASKED, ASKED, only) == {}
    assert ALL.find_broken(np.array([300.0, 1200.0, 599.0]), ASKED, only) == {1: 2}
    # More than the plan asks, and the same but for rounding, is no less.
    assert ALL.find_broken(np.array([300.0, 1200.0, 700.0]), ASKED, only) == {}
    assert ALL.find_broken(ASKED * (1 - 1e-9), ASKED, only) == {}


def test_conditions_follow_one_from_the_other():
    # University depends on City, and City on Rural.
    chain = ((0, 1.0), (1, 2.0))
    assert ALL.find_broken(np.array([300.0, 1200.0, 0.0]), ASKED, chain) == {0: 1, 1: 2}
    assert ALL.find_broken(np.array([300.0, 0.0, 600.0]), ASKED, chain) == {0: 1}
    # Two that depend on each other both give, or neither does.
    both = ((0, 1.0), (1, 0.0))
    assert ALL.find_broken(ASKED, ASKED, both) == {}
    assert ALL.find_broken(np.array([299.0, 1200.0, 600.0]), ASKED, both) == {0: 1, 1: 0}


def test_an_agent_that_left_gives_nothing_to_depend_on():
    changed = Changed(GAME.without(2), (0, 1))
    assert changed.find_broken(ASKED[:2], ASKED[:2], ((1, 2.0),)) == {1: 2}
    # An agent that asks for nothing in the plan cannot give less.
    asked = np.array([300.0, 1200.0, 0.0])
    assert ALL.find_broken(asked, asked, ((1, 2.0),)) == {}
