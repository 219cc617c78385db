"""Proposals: what is put in place of a plan, and that their checks are those of `check`."""

import dataclasses

import numpy as np
import pytest
from known_hospitals import pilots

from fedaccord import LinearGame, check, fit_curves, make_plan
from fedaccord.errors import InputError
from fedaccord.planning.proposals import follow, keep_data, propose, propose_planned
from fedaccord.planning.what_if import Changed, Scenario, apply_scenario

BENEFITS = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
GAME = LinearGame(BENEFITS, [1440, 1440, 930], agents=["University", "City", "Rural"])
ALL = Changed(GAME, (0, 1, 2))
# Either of the first two can give all, or both a part: three stable plans, by hand.
TWINS = LinearGame([[1, 1.2], [1.2, 1]], [100, 100], agents=["A", "B"])


def solve(concept, changed=ALL):
    return propose(changed, changed.basis, concept, time_limit=60)


def test_known_plans_of_the_three_hospitals():
    assert solve("stable").contributions.tolist() == pytest.approx([300, 1200, 600])
    assert solve("stable").optimal.sum() == pytest.approx(1931.25)
    assert solve("optimal").contributions.sum() == pytest.approx(1931.25)
    assert solve("stable").said == ()


def test_all_give_the_same_as_far_as_limits_and_locks_allow():
    # The plan takes 2,100 in all.
    assert solve("stable").split_equally() == tuple((n, pytest.approx(700)) for n in range(3))
    scenario = Scenario(limit=((2, 650.0),), lock=((0, 300.0),))
    held = solve("stable", apply_scenario(GAME, scenario))
    assert held.split_equally()[0] == (0, 300)
    assert held.split_equally()[2] == (2, pytest.approx(min(650, held.start.mean())))
    whole = GAME.replace(strategies="integer", requirements=[1440, 1440, 931])
    found = solve("stable", Changed(whole, (0, 1, 2)))
    assert all(number == np.ceil(number) for _, number in found.split_equally())


def test_numbers_are_put_in_place_and_cut():
    proposal = solve("stable")
    given = proposal.put(Scenario(give=((0, 100.0),), cut=((1, 0.25), (0, 0.5))))
    assert given.tolist() == pytest.approx([50, 300, 600])
    found = proposal.check(given, 0.95)
    assert found.short.tolist() == pytest.approx(check(GAME, given).short.tolist())


def test_without_a_stable_plan_the_optimal_one_is_the_start():
    game = GAME.replace(limits=[0, 400, np.inf])
    proposal = solve("stable", Changed(game, (0, 1, 2)))
    assert proposal.contributions is None and "exists" in proposal.said[0]
    # Rural gives for University, of which it takes in a tenth: nobody else can.
    needed = solve("optimal", Changed(game, (0, 1, 2))).contributions
    assert proposal.start.tolist() == needed.tolist()
    assert check(game, needed).short.max() == pytest.approx(0, abs=1e-6)


def test_each_equilibrium_can_be_proposed():
    changed = Changed(TWINS, (0, 1))
    plan = make_plan(TWINS)
    # A or B gives 100 alone, or both give 100 / 2.2.
    found = {
        tuple(propose_planned(changed, plan, equilibrium=n, time_limit=60).contributions.round(3))
        for n in range(len(plan.tradeoffs))
    }
    each = round(100 / 2.2, 3)
    assert found == {(100.0, 0.0), (0.0, 100.0), (each, each)}
    with pytest.raises(InputError, match="no stable plan 4"):
        propose_planned(changed, plan, equilibrium=3, time_limit=60)


@pytest.mark.parametrize("concept", ["stable", "optimal", "envy-free"])
def test_following_is_checked_like_any_plan(concept):
    last = solve(concept)
    changed = apply_scenario(GAME, Scenario(goal=((0, 1500.0),)))
    near = follow(changed, last, concept, time_limit=60)
    wanted = solve("optimal", changed).contributions.sum()
    assert not near.settled and near.optimal.sum() == pytest.approx(wanted)
    if concept == "stable":
        assert near.check(near.start, 0.95).stable.json is True
    if concept == "envy-free":
        assert (near.start == last.start).all()


def test_others_than_before_cannot_be_followed():
    changed = apply_scenario(GAME, Scenario(left=(0,)))
    assert follow(changed, solve("stable"), "stable", time_limit=60).contributions is None


def test_conditions_count_in_the_contributions():
    proposal = solve("stable")
    scenario = Scenario(cut=((2, 0.5),), only=((1, 2.0),))
    assert proposal.put(scenario).tolist() == pytest.approx([300, 0, 300])
    assert proposal.put(Scenario(only=((1, 2.0),))).tolist() == pytest.approx([300, 1200, 600])


def check_kept(scenario, changed=ALL):
    proposal = solve("stable", changed)
    return proposal.check(proposal.put(scenario), 0.95, scenario.keep)


def test_a_check_counts_what_an_agent_keeps():
    cut = ((1, 0.25),)
    lost, found = (check_kept(Scenario(cut=cut, keep=k)) for k in ((), ((1, 1.0),)))
    # By hand: City holds 1,440, gives 300 of its 1,200 and keeps 1,140. The others lack 0.6 and 0.1
    # of 900 in either case; City lacks the 900 only if they are lost.
    assert lost.short.tolist() == pytest.approx([540, 900, 90])
    assert found.short.tolist() == pytest.approx([540, 0, 90])
    assert found.spare.tolist() == pytest.approx([0, 300, 0])
    assert found.utilities[1] == pytest.approx(0.6 * 300 + 1440 + 0.1 * 600)
    assert found.kept.tolist() == pytest.approx([0, 1140, 0])
    # A kept sample is worth half a sample: 300 + 570 + 240 of 1,440. Giving one more adds half.
    half = check_kept(Scenario(cut=cut, keep=((1, 0.5),)))
    assert half.short[1] == pytest.approx(2 * 330)
    # All of it given, City has 1,200 + 120 + 240, and each sample less costs it half a sample.
    half = check_kept(Scenario(keep=((1, 0.5),)))
    assert half.spare[1] == pytest.approx(240) and half.stable.json is False
    # It would have enough with the burden of either of the others.
    kept = check_kept(Scenario(keep=((1, 1.0),)))
    assert kept.envy == ((1, 0), (1, 2)) and kept.feasible.json is True


def test_a_lock_takes_nothing_from_what_an_agent_holds():
    scenario = Scenario(lock=((1, 200.0),), cut=((1, 0.25),), keep=((1, 1.0),))
    changed = apply_scenario(GAME, scenario)
    assert check_kept(scenario, changed).kept[1] == pytest.approx(1440 - 50)
    limited = dataclasses.replace(scenario, limit=((1, 1000.0),))
    changed = apply_scenario(GAME, limited)
    assert check_kept(limited, changed).kept[1] == pytest.approx(1000 - 50)


def test_probabilities_count_what_an_agent_keeps():
    measured = fit_curves(pilots(), resamples=40)
    plan = make_plan(measured)
    changed = apply_scenario(measured, Scenario())
    proposal = propose_planned(changed, plan, time_limit=60)
    keep = ((1, 1.0),)
    kept = keep_data(proposal, plan, keep, time_limit=60).kept
    whole = plan.contributions * [1, 0.25, 1, 1]
    assert (whole == np.floor(whole)).all()
    lost, found = (proposal.check(whole, 0.95, keep=k) for k in ((), keep))
    assert found.satisfied[1] == pytest.approx(kept.reached[1]) and kept.level == 0.25
    assert found.satisfied[1] > lost.satisfied[1] + 0.02
    assert found.everyone.value > lost.everyone.value
    # The others have no more than what is given.
    assert np.delete(found.satisfied, 1).tolist() == np.delete(lost.satisfied, 1).tolist()
    assert found.judged.short[1] == 0 < lost.judged.short[1]


def lock(game, agent, number):
    """Return the stable plan with a lock, which knows the plan without it."""
    free = propose(Changed(game, (0, 1)), game, "stable", time_limit=60).contributions
    changed = apply_scenario(game, Scenario(lock=((agent, number),)))
    found = propose(changed, changed.basis, "stable", time_limit=60)
    return dataclasses.replace(found, free=free)


def test_others_carry_an_agent_that_is_locked_at_less():
    # A gives 100 and B nothing, or the other way round: whoever gives is locked at nothing.
    free = propose(Changed(TWINS, (0, 1)), TWINS, "stable", time_limit=60).contributions
    giver = int(np.argmax(free))
    proposal = lock(TWINS, giver, 0.0)
    carried = proposal.find_carried(proposal.start)
    more = proposal.start[1 - giver] - free[1 - giver]
    assert carried.agents == (giver,)
    assert (carried.fewer, carried.more) == pytest.approx((free[giver], more))
    # Nobody is carried without a lock, or with one at what the plan asks anyway.
    assert solve("stable").find_carried(np.array([300.0, 1200.0, 600.0])) is None
    same = lock(TWINS, giver, float(free[giver]))
    assert same.find_carried(same.start) is None
    # A lock holds what depends on the agent to what the plan without it asks.
    assert proposal.find_broken(Scenario(only=((1 - giver, float(giver)),))) == {1 - giver: giver}


def test_a_lock_is_no_limit_of_what_an_agent_has():
    proposal = lock(TWINS, 0, 0.0)
    found = proposal.check(proposal.start, 0.95)
    assert found.locked == (0,) and "Alone it would need 100" in found.explain(0)
    none = Changed(TWINS.replace(limits=[0, np.inf]), (0, 1))
    found = solve("stable", none).check(np.array([0.0, 100.0]), 0.95)
    assert "Its limit is 0, so it could not go alone" in found.explain(0)


@pytest.fixture(scope="module")
def measured():
    return fit_curves(pilots(), resamples=40)


def propose_for(measured, scenario):
    changed = apply_scenario(measured, scenario)
    plan = make_plan(changed.basis)
    return propose_planned(changed, plan, time_limit=60), plan


def test_without_a_plan_locks_hold_needs_are_rounded_up_and_limits_are_reached(measured):
    table = measured.table
    lock, limit = float(table.limits[0]) - 7, 31.0
    scenario = Scenario(goal=((1, 0.999),), lock=((0, lock),), limit=((2, limit),))
    proposal, plan = propose_for(measured, scenario)
    assert plan.contributions is None
    start = proposal.start
    assert (start[0], start[1], start[2]) == (lock, table.limits[1], limit)
    assert start[3] == np.ceil(plan.bare.alone[3])
    assert (proposal.put(Scenario()) == start).all()


def test_an_agent_that_cannot_reach_its_goal_starts_at_its_limit(measured):
    names = range(1, measured.table.size)
    proposal, plan = propose_for(measured, Scenario(limit=((0, 40.0), *((n, 0.0) for n in names))))
    assert plan.contributions is None
    assert proposal.put(Scenario()).tolist() == [40, 0, 0, 0]


def test_a_lock_leaves_the_end_of_a_slider_where_it_is(measured):
    free = propose(Changed(GAME, (0, 1, 2)), GAME, "stable", time_limit=60)
    limited = GAME.replace(limits=[2400, np.inf, 1800])
    for game, lock in ((limited, (0, 500.0)), (limited, (2, 600.0)), (GAME, (1, 1000.0))):
        start = propose(apply_scenario(game, Scenario()), game, "stable", time_limit=60)
        changed = apply_scenario(game, Scenario(lock=(lock,)))
        locked = propose(changed, changed.basis, "stable", time_limit=60)
        _, before = start.list_sliders("give", start.start, [])
        _, after = locked.list_sliders("give", locked.start, [lock[0]])
        assert after[lock[0]] == before[lock[0]]
    _, ends = free.list_sliders("give", np.array([2000.0, 0, 0]), [])
    assert ends[0] == 2000


def test_a_lock_at_a_part_of_a_sample_is_rounded_down(measured):
    lock = float(np.floor(measured.table.limits[0] / 2))
    proposal, _ = propose_for(measured, Scenario(lock=((0, lock + 0.5),)))
    assert proposal.start[0] == lock


def test_a_plan_that_is_followed_keeps_a_lock(measured):
    last, _ = propose_for(measured, Scenario())
    for concept in ("stable", "envy-free"):
        lock = float(last.start[0]) + 9
        scenario = Scenario(lock=((0, lock),), goal=((1, 0.999),))
        changed = apply_scenario(measured, scenario)
        assert follow(changed, last, concept, time_limit=60).start[0] == lock
