"""Whether what is recommended where there is no plan leads to one at the requested probability."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord.measurement.fit import fit_curves
from fedaccord.planning.plan import make_plan
from fedaccord.planning.remedies import Change
from fedaccord.planning.restore import (
    Reached,
    lower_together,
    pick_single,
    rate_changes,
    restore_changes,
    suggest_goals,
)
from fedaccord.planning.result import Outcome

LIMITS = (1_600.0, 1_600.0, 1_000.0, 1_000.0)


@cache
def fitted():
    return fit_curves(pilots(repeats=1, validation=600, limit=LIMITS), resamples=60)


@cache
def planned(*goals, probability=0.95):
    return make_plan(fitted().with_goals(list(goals)), probability=probability)


def highest_reachable():
    limits, found = fitted().table.limits, fitted()
    return found.accuracies(limits).mean(axis=0)


def too_high(*agents):
    """Return the goals of the pilots, those of some agents beyond what all can give."""
    goals = np.array(fitted().goals)
    goals[list(agents)] = np.round(highest_reachable()[list(agents)] + 0.02, 3)
    return goals.tolist()


@pytest.mark.parametrize("probability", [0.9, 0.95])
def test_a_recommended_goal_has_a_plan_at_the_requested_probability_and_no_higher_one(probability):
    goals = too_high(1)
    plan = planned(*goals, probability=probability)
    assert plan.outcome is Outcome.UNREACHABLE
    (change,) = [one for one in plan.changes if (one.agent, one.kind) == (1, "goal")]
    tried = {
        step: make_plan(
            fitted().with_goals([goals[0], change.new + step, *goals[2:]]), probability=probability
        )
        for step in (0.0, 0.001)
    }
    assert tried[0.0].outcome is Outcome.PLANNED
    assert tried[0.0].contributions.sum() == change.total
    assert tried[0.0].everyone.value == pytest.approx(change.probability)
    assert tried[0.001].outcome is not Outcome.PLANNED
    assert f"to {change.new:g}. Then all agents reach their goals with" in plan.verdict


def test_goals_that_are_too_high_at_once_are_lowered_to_some_that_hold_together():
    goals = too_high(0, 1, 2)
    plan = planned(*goals)
    assert plan.changes == () and (plan.together <= np.array(goals)).all()
    again = make_plan(fitted().with_goals(plan.together))
    assert again.outcome is Outcome.PLANNED
    higher = np.where(plan.together < goals, plan.together + 0.001, plan.together)
    assert make_plan(fitted().with_goals(higher)).outcome is not Outcome.PLANNED
    said = "limit or goal was found to be enough. All agents reach these lower goals"
    assert f"No change of one {said}" in plan.verdict
    assert plan.to_dict()["goals_together"] == plan.together.tolist()


def test_a_change_after_which_nothing_is_sure_is_not_restored():
    plan = planned(*too_high(1))
    nothing = restore_changes(plan.changes, fitted(), lambda _: Reached(0.5, 10.0), 0.95)
    assert nothing == () and lower_together(fitted(), lambda _: Reached(0.5, 10.0), 0.95) is None


def test_a_change_that_is_more_than_enough_is_made_smaller():
    goal, limit = float(fitted().goals[1]), 95.0
    changes = (Change(1, "limit", limit, 141.0, 0.0), Change(1, "goal", goal, goal - 0.0072, 0.0))

    def attempt(measurement):
        lower = measurement.goals[1] <= goal - 0.0039
        enough = lower or 100 <= measurement.table.limits[1] <= 141
        return Reached(0.95 if enough else 0.0, 10.0)

    new = {one.kind: one.new for one in restore_changes(changes, fitted(), attempt, 0.95)}
    assert new == {"limit": 100.0, "goal": pytest.approx(goal - 0.004)}


def test_where_a_change_is_enough_only_on_average_the_verdict_says_so(monkeypatch):
    monkeypatch.setattr("fedaccord.planning.restore.THOUSANDTHS", 0)
    monkeypatch.setattr("fedaccord.planning.restore.HUNDREDTHS", 0)
    goals = too_high(1)
    plan = make_plan(fitted().with_goals(goals), probability=0.95)
    (change,) = plan.changes
    assert change.probability < 0.95
    assert "Even then all agents reach their goals only on average" in plan.verdict


def test_no_change_is_recommended_after_which_there_is_no_plan():
    table = dataclasses.replace(fitted().table, limits=np.zeros(4))
    plan = make_plan(dataclasses.replace(fitted(), table=table))
    assert plan.outcome is Outcome.UNREACHABLE and plan.changes == () and plan.together is None
    assert "The smallest change" not in plan.verdict
    said = "No change of one goal, or of one limit above 0, was found to be enough."
    assert plan.verdict.endswith(said)


def test_the_first_change_that_leads_to_a_plan_is_rated():
    changes = tuple(Change(n, "limit", 10.0, 20.0, 1.0) for n in (1, 0))

    def attempt(measurement):
        return Reached(0.4, 70.0) if measurement.table.limits[0] == 20 else Reached(0.0)

    (change,) = rate_changes(changes, fitted(), attempt)
    assert (change.agent, change.probability, change.total) == (0, 0.4, 70.0)
    assert rate_changes(changes, fitted(), lambda _: Reached(0.0)) == ()


# A plan with a margin, though there is none on average.


@pytest.mark.parametrize(("goal", "kinds"), [(0.849, ["goal", "limit"]), (0.901, ["goal"])])
def test_a_lower_goal_is_listed_where_there_is_a_plan_only_with_a_margin(goal, kinds):
    limits = np.array([1_000.0, 600.0, 1_600.0, 400.0])
    limited = dataclasses.replace(
        fitted(), table=dataclasses.replace(fitted().table, limits=limits)
    )
    wanted = make_plan(limited, probability=0.9)
    assert wanted.outcome is Outcome.PLANNED and wanted.solutions["stable"].contributions is None
    goals = [goal, *limited.goals[1:]]
    plan = make_plan(limited.with_goals(goals), probability=0.9)
    assert plan.outcome is Outcome.UNREACHABLE and plan.together is None
    assert [(one.agent, one.kind) for one in plan.changes] == [(0, kind) for kind in kinds]
    lower = plan.changes[0].new
    assert f"lower the goal of University from {goal:g} to {lower:g}. Then all" in plan.verdict
    for step, outcome in ((0.0, Outcome.PLANNED), (0.001, Outcome.LESS_SURE)):
        again = make_plan(limited.with_goals([lower + step, *goals[1:]]), probability=0.9)
        assert again.outcome is outcome


def test_goals_are_suggested_only_where_one_may_be_enough():
    one, two = (fitted().with_goals(too_high(*agents)) for agents in ((1,), (1, 2)))
    (goal,) = suggest_goals((), one, ())
    reached = float(make_plan(one).nearest.values[1])
    assert (goal.agent, goal.kind) == (1, "goal") and reached - 0.001 <= goal.new < reached
    assert suggest_goals((goal,), one, ()) == ()
    assert suggest_goals((), two, ()) == ()
    assert [change.new for change in suggest_goals((), fitted(), (0, 3))] == [0.819, 0.799]


def test_one_lower_goal_is_a_change_of_that_goal():
    goals = np.array(fitted().goals)
    lower = goals - np.array([0.0, 0.01, 0.0, 0.0])
    change = pick_single(lower, fitted(), lambda _: Reached(0.96, 70.0))
    assert change == Change(1, "goal", goals[1], lower[1], 70.0, 0.96)
    assert pick_single(goals - 0.01, fitted(), lambda _: Reached(0.96, 70.0)) is None
