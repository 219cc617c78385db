"""Plans for other members than those that pilots measured."""

from types import SimpleNamespace

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord import PilotTable, fit_curves, make_plan
from fedaccord.games.measured import predict_accuracies
from fedaccord.measurement.diagnostics import Doubt
from fedaccord.planning.members import _list_doubts, change_members
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


def test_samples_of_an_agent_that_left_count_as_tried():
    # City gave one sample in each pilot, and University many.
    given = np.array([[n, 1.0] for n in (50, 100, 200, 400, 800, 1600, 3000)])
    curve = np.array([0.05, 2.0, 40.0, 0.45])
    reached = predict_accuracies(curve, given @ [[1.0, 0.8], [0.8, 1.0]])
    table = PilotTable(["University", "City"], given, reached, goals=[0.8, 0.8])
    found = change_members(fit_curves(table, resamples=20), Scenario(left=(0,))).basis
    assert found.game.requirements[0] > 100
    assert make_plan(found, probability=0.5).contributions is not None


def test_doubts_stay_unless_they_name_only_agents_that_left():
    kept = (
        Doubt(None, "one", "It is not known how the accuracies of Hill and Mill were measured."),
        Doubt(None, "two", "Hilltop learns unlike the others."),
        Doubt(1, "three", "The curve of Mill is flat."),
    )
    gone = (Doubt(0, "four", "A curve is flat."), Doubt(None, "five", "The curve of Hill is flat."))
    fit = SimpleNamespace(agents=("Hill", "Mill"), doubts=(*kept, *gone))
    found = list(_list_doubts(fit, [1]))
    assert [one.kind for one in found] == ["one", "two", "three"]
    assert [one.agent for one in found] == [None, None, 0]
