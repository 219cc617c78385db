"""Next pilots: those that narrow a plan most by linear theory, and that answer its doubts."""

import dataclasses

import numpy as np
import pytest
from known_hospitals import BENEFITS, CURVES, NAMES, pilots

from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import find_needs, predict_accuracies
from fedaccord.measurement.diagnostics import Doubt
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.pilots import PilotTable
from fedaccord.planning import next_pilots
from fedaccord.planning.candidates import Candidates, find_most
from fedaccord.planning.next_pilots import choose_next_pilots, find_gradients
from fedaccord.planning.plan import make_plan
from fedaccord.planning.selection import list_with_contributors


@pytest.fixture(scope="module")
def plan():
    return make_plan(fit_curves(pilots(), seed=1))


def quiet(plan):
    """Return the plan with doubts that nobody has."""
    measurement = dataclasses.replace(plan.measurement)
    measurement.__dict__["doubts"] = ()
    quiet = dataclasses.replace(plan, measurement=measurement)
    # Those that the plan itself has are about its own numbers.
    assert {doubt.kind for doubt in quiet.doubts} <= {"extrapolation", "uncertain-division"}
    return quiet


# Linear theory.


def total_with(plan, agent, parameters):
    """Return the total of the plan if an agent's curve had other parameters, by solving again."""
    found, fit = plan.measurement, plan.measurement.fits[agent]
    benefits, curves = np.array(found.benefits), np.array(found.curves)
    benefits[agent] = fit.model.benefits(parameters[None])[0]
    curves[agent] = fit.model.curves(parameters[None])[0]
    needs = find_needs(curves, plan.goals)
    giving = np.flatnonzero(plan.stable.values > 1e-6)
    game = plan.bare
    (row,) = list_with_contributors(benefits, needs, game.minimums, game.limits, giving[None])
    return float(row @ game.costs)


def test_the_gradient_is_that_of_plans_solved_again(plan, monkeypatch):
    monkeypatch.setattr(next_pilots, "MOST_FOLLOWED", 0)
    subject, gradients = find_gradients(plan, plan.measurement)
    assert subject == "the stable plan's total"
    for agent, fit in enumerate(plan.measurement.fits):
        for place in range(len(fit.found)):
            step = np.zeros(len(fit.found))
            step[place] = 1e-5
            up, down = (total_with(plan, agent, fit.found + s) for s in (step, -step))
            slope = (up - down) / 2e-5
            assert gradients[agent][0, place] == pytest.approx(slope, rel=1e-3, abs=1e-2)


def variance_after(plan, gradients, rows):
    """Return the variance of the total after pilots, by one inverse for each agent."""
    total = 0.0
    for gradient, fit in zip(gradients, plan.measurement.fits, strict=True):
        information = fit.information + fit.prior.precision
        if len(rows):
            model = dataclasses.replace(fit.model, contributions=np.array(rows, dtype=float))
            errors, slopes = model.slopes(fit.found[None])
            noise = fit.training**2 + errors[0] * (1 - errors[0]) / fit.validation
            information = information + (slopes[0].T / noise) @ slopes[0]
        solved = np.linalg.solve(information, gradient.T)
        total += float((gradient * solved.T).sum(axis=1).mean())
    return total


def test_pilots_are_the_best_one_after_the_other_and_narrow_as_they_say(plan):
    plan = quiet(plan)
    found = choose_next_pilots(plan, 3)
    _, gradients = find_gradients(plan, plan.measurement)
    before = variance_after(plan, gradients, [])
    every = Candidates.near(plan, plan.measurement).contributions
    chosen = [list(row) for row in found.contributions]
    for n, width in enumerate(found.widths):
        after = variance_after(plan, gradients, chosen[: n + 1])
        assert width == pytest.approx((after / before) ** 0.5, rel=1e-6)
    others = [variance_after(plan, gradients, [*chosen[:2], row]) for row in every[::7]]
    assert min(others) >= variance_after(plan, gradients, chosen) * (1 - 1e-9)
    assert list(found.widths) == sorted(found.widths, reverse=True)


def test_no_pilot_asks_for_more_than_there_is(plan):
    found = choose_next_pilots(plan, 12)
    given = np.array(found.contributions)
    assert given.shape == (12, 4)
    assert (given >= 0).all() and (given <= plan.measurement.table.limits).all()
    assert given.any(axis=1).all()
    assert len(found.why) == len(found.widths) == 12
    every = Candidates.near(plan, plan.measurement)
    assert (every.contributions <= find_most(plan.measurement)).all()
    assert len(np.unique(every.contributions, axis=0)) == len(every.labels)


def test_an_agent_without_samples_gives_none_and_others_are_asked(plan):
    table = pilots(limit=[3000.0, 3000.0, 3000.0, 0.0], goals=[0.8, 0.8, 0.8, 0.7])
    found = choose_next_pilots(make_plan(fit_curves(table, seed=1)), 4)
    given = np.array(found.contributions)
    assert not given[:, 3].any() and given[:, :3].any(axis=1).all()


def test_where_nothing_limits_an_agent_twice_what_was_tried_is_the_most():
    table = pilots(repeats=1)
    free = PilotTable(
        table.agents,
        table.contributions,
        table.accuracies,
        goals=table.goals,
        validation=table.validation,
    )
    assert find_most(fit_curves(free, seed=1, resamples=20)).tolist() == [6000.0] * 4


def test_a_plan_without_pilots_has_no_next_ones():
    plan = make_plan(LinearGame(np.eye(2), [1, 1]))
    with pytest.raises(InputError, match="from a plan made from pilots"):
        choose_next_pilots(plan, 3)


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_their_number_is_a_number_of_trainings(plan, count):
    with pytest.raises(InputError, match="training runs"):
        choose_next_pilots(plan, count)


# Doubts.


def answers(plan, kind, agent=0):
    """Return the pilots that would answer a doubt."""
    candidates = Candidates.near(plan, plan.measurement)
    chosen, times = candidates.answer(Doubt(agent, kind, "Because."))
    return candidates.contributions[chosen], times


def test_a_goal_that_may_be_out_of_reach_is_answered_by_much_data(plan):
    rows, times = answers(plan, "saturation-below-goal")
    assert times == 1
    assert ((rows @ plan.measurement.benefits[0]).min()) > 0.85 * plan.measurement.benefits[
        0
    ] @ np.full(4, 3000)


def test_a_fit_that_is_poor_is_answered_by_a_pilot_made_again(plan):
    rows, _ = answers(plan, "poor-fit")
    tried = plan.measurement.table.contributions.tolist()
    assert len(rows) and all(row in tried for row in rows.tolist())


def test_a_worth_that_was_not_found_is_answered_by_pilots_with_much_of_that_agent(plan):
    drawn = plan.measurement.resamples.benefits[:, 0]
    other = int(np.argmax(np.ptp(np.quantile(drawn, [0.025, 0.975], axis=0), axis=0)))
    rows, _ = answers(plan, "flat")
    assert len(rows) and (rows[:, other] >= 900).all()
    assert (np.delete(rows, other, axis=1) <= np.delete(plan.stable.values, other) + 1).all()


def test_too_few_pilots_are_answered_by_as_many_others_as_are_missing():
    table = pilots(repeats=1)
    few = PilotTable(
        NAMES,
        table.contributions[:4],
        table.accuracies[:4],
        goals=table.goals,
        validation=table.validation,
        limits=table.limits,
    )
    plan = make_plan(fit_curves(few, seed=1))
    assert "too-few-pilots" in {doubt.kind for doubt in plan.doubts}
    found = choose_next_pilots(plan, 3)
    rows = [*map(tuple, few.contributions.astype(int).tolist()), *found.contributions]
    assert len(set(rows)) == 7
    assert all(": too few different pilots." in why for why in found.why)


@pytest.mark.parametrize("levels", [(0.02, 0.1), (0.6, 1.0)], ids=["too little", "too much"])
def test_a_need_outside_all_pilots_is_answered_by_pilots_there(levels):
    table = pilots(repeats=3)
    part = table.contributions.max(axis=1) / 3000
    kept = (part >= levels[0]) & (part <= levels[1])
    every = np.array(
        [[1.0, 1, 1, 1], [1, 0.5, 1, 1], [0.5, 1, 1, 1], [1, 1, 0.5, 1], [1, 1, 1, 0.5]]
    )
    given = np.round(np.concatenate([every * 3000 * level for level in levels] * 2))
    reached = predict_accuracies(CURVES, given @ BENEFITS.T)
    noise = 0.005 * np.random.default_rng(0).standard_normal(reached.shape)
    outside = PilotTable(
        NAMES,
        given,
        np.clip(reached + noise, 0, 1),
        goals=table.goals,
        validation=table.validation,
        limits=table.limits,
    )
    assert kept.any()
    plan = make_plan(fit_curves(outside, seed=1))
    doubted = [doubt.agent for doubt in plan.doubts if doubt.kind == "extrapolation"]
    assert doubted
    found = choose_next_pilots(plan, len(plan.doubts) + 1)
    benefits = plan.measurement.benefits
    tried, chosen = given @ benefits.T, np.array(found.contributions) @ benefits.T
    for agent in doubted:
        if levels[0] > 0.5:
            assert chosen[:, agent].min() < tried[:, agent].min()
        else:
            assert chosen[:, agent].max() > tried[:, agent].max()
    assert any(": a need beyond all pilots." in why for why in found.why)


def test_doubts_that_have_no_row_are_named(plan):
    measurement = dataclasses.replace(plan.measurement)
    measurement.__dict__["doubts"] = (
        Doubt(0, "flat", "Because."),
        Doubt(1, "saturation-below-goal", "Because."),
        Doubt(None, "failed-pilots", "Because."),
    )
    doubtful = dataclasses.replace(plan, measurement=measurement)
    one, three = (choose_next_pilots(doubtful, n) for n in (1, 3))
    assert len(one.left) == 1 and "This pilot answers a doubt" in one.why[0]
    assert three.left == ()
    assert sum("about University: what others' samples are worth." in why for why in three.why) == 1
    assert sum("about City: whether the goal can be reached." in why for why in three.why) == 1


def test_without_a_plan_pilots_tell_how_much_can_be_reached():
    plan = make_plan(fit_curves(pilots(goals=[0.99, 0.8, 0.8, 0.8]), seed=1))
    assert plan.contributions is None
    found = choose_next_pilots(plan, 3)
    assert found.subject == "the accuracy that University can reach"
    most = plan.measurement.benefits[0] @ np.full(4, 3000.0)
    assert max(np.array(found.contributions) @ plan.measurement.benefits[0]) > 0.8 * most
