"""Reserves: known answers, brute force on small games, and who falls short in spite of them."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fedaccord import Allocation
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame
from fedaccord.planning.plan import make_plan
from fedaccord.planning.reserve import choose_reserve, hold_reserve
from fedaccord.report.plan_contributions import describe_contributions, list_contributions


def replaced(game, theta, reserve, i, delivered=0.0):
    """Tell who has enough if one fails and all that the others hold is called."""
    given = np.array(theta, dtype=float)
    given[i] *= delivered
    held = np.array(reserve, dtype=float)
    held[i] = 0
    enough = game.utilities(given + held) >= game.requirements - 1e-6
    return all(enough[j] for j in range(game.size) if j != i)


def is_enough(game, theta, reserve, delivered=0.0):
    return all(replaced(game, theta, reserve, i, delivered) for i in range(game.size) if theta[i])


def test_if_all_samples_are_alike_as_many_are_held_as_the_largest_contribution():
    """Three that need 60 in all and give 40, 20 and 0; only the third has any left."""
    game = LinearGame(np.ones((3, 3)), [60, 60, 60], limits=[40, 20, 100], agents=list("abc"))
    found = choose_reserve(game, np.array([40.0, 20.0, 0.0]))
    assert found.samples.tolist() == [0, 0, 40]
    assert found.shortfalls == ()
    assert found.total == 40


def test_what_was_delivered_need_not_be_replaced():
    game = LinearGame(np.ones((3, 3)), [60, 60, 60], limits=[40, 20, 100])
    found = choose_reserve(game, np.array([40.0, 20.0, 0.0]), delivered=0.25)
    assert found.samples.tolist() == [0, 0, 30]


def test_the_one_that_fails_is_not_helped():
    """Both need their own samples alone: nobody else lacks anything when one fails."""
    game = LinearGame(np.eye(2), [10, 10], limits=[50, 50])
    assert choose_reserve(game, np.array([10.0, 10.0])).samples.tolist() == [0, 0]


def test_whose_samples_are_worth_more_holds_the_reserve():
    benefits = np.array([[1, 0.2, 0.2, 0.8], [0.2, 1, 0.2, 0.8], [1, 0.2, 1, 0.2], [1, 1, 1, 1]])
    theta = np.array([30.0, 30.0, 0.0, 0.0])
    game = LinearGame(benefits, [0, 36, 0, 0], limits=[30, 30, 100, 100])
    # Agent 1 has 0.2 * 30 of agent 0, and agent 3 replaces it best: 7.5 samples at 0.8.
    assert choose_reserve(game, theta).samples.tolist() == [0, 0, 0, 8]


def test_who_falls_short_in_spite_of_all_reserves_is_named():
    game = LinearGame(np.ones((3, 3)), [60, 60, 60], limits=[40, 20, 15], agents=list("abc"))
    found = choose_reserve(game, np.array([40.0, 20.0, 0.0]))
    assert found.samples.tolist() == [0, 0, 15]
    short = {(s.failing, s.agent): s.missing for s in found.shortfalls}
    assert short == {("a", "b"): 25, ("a", "c"): 25, ("b", "a"): 5, ("b", "c"): 5}


def test_no_more_is_called_than_is_missing():
    """Samples of c are worth half: 80 of them would do for 40 of a, and 40 are called."""
    benefits = np.array([[1, 1, 0.5], [1, 1, 0.5], [1, 1, 1]])
    game = LinearGame(benefits, [60, 60, 0], limits=[40, 20, 100], agents=list("abc"))
    found = choose_reserve(game, np.array([40.0, 20.0, 0.0]))
    assert found.samples.tolist() == [0, 0, 80]
    short = {(s.failing, s.agent): s.missing for s in found.shortfalls}
    assert short == {("a", "b"): 20, ("b", "a"): 10}
    assert choose_reserve(game, np.array([40.0, 20.0, 0.0]), cover=2).shortfalls == ()


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9])
def test_the_unit_of_benefits_does_not_matter(unit):
    benefits = np.array([[1, 0.5, 0.2], [0.3, 1, 0.4], [0.2, 0.6, 1]])
    needs, theta = np.array([100.0, 120.0, 80.0]), np.array([47.0, 102.0, 9.0])
    plain, scaled = (
        choose_reserve(LinearGame(u * benefits, u * needs, limits=[300, 300, 300]), theta)
        for u in (1.0, unit)
    )
    assert scaled.samples.tolist() == plain.samples.tolist() == [41, 0, 54]
    assert [(s.failing, s.agent) for s in scaled.shortfalls] == [("agent 2", "agent 1")]


def test_without_limits_nobody_holds_more_than_all_give():
    game = LinearGame(np.ones((2, 2)), [60, 60])
    found = choose_reserve(game, np.array([60.0, 0.0]))
    assert found.samples.tolist() == [0, 60]


games = st.integers(2, 3).flatmap(
    lambda k: st.tuples(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=k * k, max_size=k * k),
        st.lists(st.integers(0, 4), min_size=k, max_size=k).filter(any),
        st.lists(st.integers(0, 4), min_size=k, max_size=k),
        st.sampled_from([0.0, 0.5]),
    )
)


@settings(deadline=None)
@given(games)
def test_reserves_do_and_are_the_least_up_to_rounding(case):
    flat, theta, spare, delivered = case
    k = len(theta)
    benefits = np.array(flat).reshape(k, k)
    np.fill_diagonal(benefits, 1.0)
    # Goals that the plan just reaches.
    game = LinearGame(benefits, benefits @ theta, limits=np.add(theta, spare))
    found = choose_reserve(game, np.array(theta, dtype=float), delivered=delivered)
    every = itertools.product(*(range(n + 1) for n in spare))
    good = [r for r in every if is_enough(game, theta, r, delivered)]
    assert (found.samples <= spare).all()
    if not good:
        assert_array_equal(found.samples, spare)
        assert found.shortfalls
        return
    assert is_enough(game, theta, found.samples, delivered)
    least = min(map(sum, good))
    # Each of k reserves is rounded up by less than one sample.
    assert least <= found.total < least + k


@settings(deadline=None)
@given(games)
def test_who_is_named_is_short_and_who_is_not_has_enough(case):
    flat, theta, spare, delivered = case
    k = len(theta)
    benefits = np.array(flat).reshape(k, k)
    np.fill_diagonal(benefits, 1.0)
    game = LinearGame(
        benefits, benefits @ theta, limits=np.add(theta, spare), agents=list("abc"[:k])
    )
    found = choose_reserve(game, np.array(theta, dtype=float), delivered=delivered)
    named = {(s.failing, s.agent) for s in found.shortfalls}
    for i in range(k):
        assume(theta[i] or not named)
        others = [j for j in range(k) if j != i]
        held = sum(found.samples[j] for j in others)
        owed = (1 - delivered) * theta[i]
        part = min(1, owed / held) if held else 0
        for j in others if theta[i] else ():
            has = sum(benefits[j, h] * (theta[h] + part * found.samples[h]) for h in others)
            has += benefits[j, i] * delivered * theta[i]
            is_short = has < game.requirements[j] - 1e-6
            assert is_short == (("abc"[i], "abc"[j]) in named)


def test_a_plan_gets_its_reserves_by_name():
    game = LinearGame(np.ones((3, 3)), [60, 60, 60], limits=[40, 20, 100], agents=list("abc"))
    plan = hold_reserve(game, Allocation([0, 40, 20], ["c", "a", "b"]))
    assert plan == Allocation([40, 20, 0], ["a", "b", "c"], reserve=[0, 0, 40])


@pytest.mark.parametrize("delivered", [-0.1, 1, np.nan])
def test_a_part_that_cannot_be_is_refused(delivered):
    game = LinearGame(np.ones((2, 2)), [6, 6])
    with pytest.raises(InputError, match="delivered must be at least 0 and below 1"):
        choose_reserve(game, np.array([6.0, 0.0]), delivered=delivered)


@pytest.mark.parametrize("size", [250, 100_000])
def test_too_many_agents_for_reserves_are_refused_at_once(size):
    helped = np.full((size, size), 0.5) if size < 1000 else scipy.sparse.csr_array((size, size))
    game = LinearGame(helped + scipy.sparse.eye_array(size) / 2, np.ones(size))
    with pytest.raises(InputError, match="are too many to find reserves for"):
        choose_reserve(game, np.full(size, 1 / size))


def test_many_agents_that_need_few_others_have_reserves():
    ring = scipy.sparse.eye_array(300, format="csr") + scipy.sparse.eye_array(300, k=1) / 2
    found = choose_reserve(LinearGame(ring, np.ones(300)), np.ones(300))
    assert found.shortfalls == ()


def test_as_many_contributions_as_agents_are_needed():
    with pytest.raises(InputError, match="2 agents need one contribution each; got 3"):
        choose_reserve(LinearGame(np.ones((2, 2)), [6, 6]), np.array([6.0, 0.0, 1.0]))


def test_a_plan_with_reserves_is_shown_and_saved_with_them(tmp_path):
    benefits = [[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]]
    plan = make_plan(LinearGame(benefits, [100.0, 100.0, 100.0], limits=[200.0] * 3))
    held = plan.with_reserve()
    # Without one of three that give 50 each, the other two have 75 and lack 25, by 1.5 r >= 25.
    assert plan.contributions.tolist() == [50.0] * 3 and plan.reserve is None
    assert held.reserve.tolist() == [17.0] * 3 and held.uncovered == ()
    held.save(tmp_path / "plan.csv")
    assert Allocation.load(tmp_path / "plan.csv").reserve.tolist() == [17.0] * 3
    table = list_contributions(held).table("page")
    assert (
        "reserve" in table.columns
        and "reserve" not in list_contributions(plan).table("page").columns
    )
    assert any(said.startswith("Reserve: samples") for said in describe_contributions(held, "page"))
    assert held.to_dict()["reserve"] == [17.0] * 3 and "reserve" not in plan.to_dict()


def test_reserves_that_are_not_enough_name_whose_failure_they_do_not_cover():
    benefits = [[1.0, 0.5], [0.5, 1.0]]
    held = make_plan(LinearGame(benefits, [90.0, 90.0], limits=[60.0, 61.0])).with_reserve()
    assert set(held.uncovered) == {"agent 0", "agent 1"}
    said = " ".join(describe_contributions(held, "terminal"))
    assert "The reserves cannot make up for a failure of agent 0 and agent 1." in said
