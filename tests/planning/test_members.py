"""Plans for other members than those that pilots measured."""

import pytest
from known_hospitals import pilots

from fedaccord import fit_curves, make_plan
from fedaccord.planning.members import change_members
from fedaccord.planning.result import Outcome
from fedaccord.planning.what_if import Scenario

MEASURED = fit_curves(pilots(), resamples=20)


@pytest.mark.parametrize(
    "scenario",
    [Scenario(like=(0,), goal=((4, 0.98),)), Scenario(left=(0,), goal=((1, 0.98),))],
    ids=["joined", "left"],
)
def test_a_goal_out_of_reach_after_members_changed_is_said(scenario):
    found = change_members(MEASURED, scenario).basis
    plan = make_plan(found)
    assert plan.outcome is Outcome.UNREACHABLE
    assert found.with_goals(0.6).fading == MEASURED.fading
