"""A hospital without cases that wants the model: from pilots to a plan that can be saved."""

from functools import cache

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord.allocation import Allocation
from fedaccord.check import Answer, check
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, predict_accuracies
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.pilots import PilotTable
from fedaccord.planning.margins import lower_to_limits
from fedaccord.planning.plan import make_plan
from fedaccord.planning.result import Outcome
from fedaccord.wording import format_part

CURVE = np.array([0.05, 2.0, 60.0, 0.4])
WORTH = np.array([0.5, 0.5, 0.3, 0.3])


@cache
def table(goal):
    """Add to the known hospitals one that gives nothing in any pilot and has a limit of zero."""
    known = pilots()
    rng = np.random.default_rng(7)
    reached = predict_accuracies(CURVE, known.contributions @ WORTH)
    reached = reached + rng.normal(0, 0.01, len(reached))
    nothing = np.zeros((len(known), 1))
    return PilotTable(
        [*known.agents, "Clinic"],
        np.hstack([known.contributions, nothing]),
        np.hstack([known.accuracies, reached[:, None]]),
        goals=[*known.goals, goal],
        validation=[*known.validation, 400],
        limits=[*known.limits, 0],
    )


@cache
def planned(goal):
    return make_plan(fit_curves(table(goal), resamples=60))


@pytest.mark.parametrize("goal", [0.7, 0.84])
def test_it_is_planned_for_whether_or_not_the_others_would_serve_it_anyway(goal):
    plan = planned(goal)
    assert plan.outcome is Outcome.PLANNED and plan.recipients == (4,)
    assert plan.contributions[4] == 0
    truth = predict_accuracies(CURVE, plan.contributions[:4] @ WORTH)
    assert truth >= goal
    # The others give what is stable at their targets.
    assert plan.found.stable is Answer.TRUE
    whole = plan.game.replace(strategies="integer")
    assert check(whole, plan.contributions).stable is Answer.TRUE


def test_the_others_give_more_where_it_wants_more():
    assert planned(0.84).contributions.sum() > planned(0.7).contributions.sum()
    assert planned(0.84).z > planned(0.7).z


def test_sentences_do_not_speak_of_samples_it_does_not_have():
    plan = planned(0.84)
    wanted = "Clinic has no samples. The others give enough for it to reach its goal too."
    assert wanted in plan.verdict
    said = plan.explain(4)
    assert said.startswith("Clinic gives nothing: it has no samples. It relies on the ")
    assert "Alone" not in said and "gave less" not in said
    assert not any("Clinic gave nothing in any pilot" in one.sentence for one in plan.doubts)


def test_agents_with_samples_are_compared_with_going_alone_and_it_is_said_who_they_are():
    plan = planned(0.7)
    alone = plan.alone_as_sure.values[:4].sum()
    fewer = format_part(1 - plan.contributions.sum() / alone)
    said = f"Together the 4 agents that have samples give {fewer} fewer samples than they would"
    assert f"{said} need alone for the same targets." in plan.verdict
    worth = [[1.0, 0.5], [0.5, 1.0]]
    one = make_plan(LinearGame(worth, [100.0, 80.0], limits=[300.0, 0.0], agents=["A", "B"]))
    assert one.contributions is None or "A gives" in one.verdict


def test_no_pilot_is_asked_for_in_which_it_gives():
    known = table(0.84)
    # Two pilots leave open what anybody's samples are worth.
    few = PilotTable(
        known.agents, known.contributions[:2], known.accuracies[:2], goals=known.goals,
        validation=known.validation, limits=known.limits,
    )  # fmt: skip
    doubts = [one.sentence for one in fit_curves(few, resamples=30).doubts if one.kind == "flat"]
    assert doubts and not any("a sample of Clinic" in one for one in doubts)


def test_the_plan_is_saved_and_read_again(tmp_path):
    plan = planned(0.84)
    plan.save(tmp_path / "plan.csv")
    again = Allocation.load(tmp_path / "plan.csv")
    assert again.contributions.tolist() == plan.contributions.tolist()


def test_a_goal_beyond_what_all_can_give_is_lowered_to_what_they_can():
    plan = planned(0.949)
    assert plan.outcome is Outcome.UNREACHABLE
    (change, *_) = plan.changes
    assert (change.agent, change.kind) == (4, "goal") and change.new < plan.nearest.values[4]
    goals = dict.fromkeys(["Clinic"], change.new)
    assert make_plan(plan.measurement.with_goals(goals)).outcome is Outcome.PLANNED


def test_only_an_agent_without_samples_may_fall_short_of_its_goal():
    curves = [(0.05, 2.0, 10.0, 0.5)] * 2
    game = MeasuredGame([[1.0, 0.2], [0.5, 1.0]], curves, [0.7, 0.7], limits=[400.0, 0.0])
    lowered = lower_to_limits(game, np.zeros(2))
    assert lowered.margins[1] < 0 == lowered.margins[0]
    assert lower_to_limits(game.replace(limits=[400.0, 1.0]), np.zeros(2)) is None


def test_it_has_no_column_among_the_samples_that_help():
    plan = planned(0.84)
    pytest.importorskip("matplotlib")
    from fedaccord.report.overlap import picture_overlap

    data = picture_overlap(plan.game).data
    assert "Clinic" not in data.columns and "Clinic" in [row[0] for row in data.rows]
    assert len(data.columns) == 1 + 4
