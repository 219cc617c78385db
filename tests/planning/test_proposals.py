"""Proposals: what is put in place of a plan, and that their checks are those of `check`."""

import numpy as np
import pytest

from fedaccord import LinearGame, check, make_plan
from fedaccord.errors import InputError
from fedaccord.planning.proposals import follow, propose, propose_planned
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
    assert solve("stable").optimal == pytest.approx(1931.25)
    assert solve("optimal").contributions.sum() == pytest.approx(1931.25)
    assert solve("stable").said == ""


def test_numbers_are_put_in_place_and_cut():
    proposal = solve("stable")
    given = proposal.put(give=((0, 100.0),), cut=((1, 0.25), (0, 0.5)))
    assert given.tolist() == pytest.approx([50, 300, 600])
    found = proposal.check(given, 0.95)
    assert found.short.tolist() == pytest.approx(check(GAME, given).short.tolist())


def test_without_a_stable_plan_the_optimal_one_is_the_start():
    game = GAME.replace(limits=[0, 400, np.inf])
    proposal = solve("stable", Changed(game, (0, 1, 2)))
    assert proposal.contributions is None and "exists" in proposal.said
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
    changed = apply_scenario(GAME, Scenario(goal=((0, 1500.0),)), lambda _: None)
    near = follow(changed, last, concept, time_limit=60)
    assert not near.settled and near.optimal == pytest.approx(solve("optimal", changed).optimal)
    if concept == "stable":
        assert near.check(near.start, 0.95).stable.json is True
    if concept == "envy-free":
        assert (near.start == last.start).all()


def test_others_than_before_cannot_be_followed():
    changed = apply_scenario(GAME, Scenario(left=(0,)), lambda _: None)
    assert follow(changed, solve("stable"), "stable", time_limit=60).contributions is None
