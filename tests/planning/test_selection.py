"""Which equilibrium: all of a small game are listed, against programs that list them otherwise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_games import TWINS, flower, random_game, stable_range

from fedaccord.check import Answer, check
from fedaccord.games.linear import LinearGame
from fedaccord.planning.selection import find_equilibria, list_equilibria

KINDS = st.sampled_from(["any", "symmetric", "psd"])


def listed(game):
    return list_equilibria(game.dense_benefits, game.requirements, game.minimums, game.limits)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4), KINDS, st.booleans())
def test_the_cheapest_and_the_costliest_are_those_of_all_linear_programs(seed, k, kind, boxed):
    game = random_game(np.random.default_rng(seed), k, kind=kind, boxed=boxed, costs=True)
    ends = stable_range(game)
    totals = listed(game) @ game.costs
    assert (len(totals) == 0) == (ends is None)
    if ends is not None:
        assert totals.min() == pytest.approx(ends[0], abs=1e-6)
        assert totals.max() == pytest.approx(ends[1], abs=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 7), KINDS)
def test_the_audit_finds_every_listed_equilibrium_stable(seed, k, kind):
    game = random_game(np.random.default_rng(seed), k, kind=kind, boxed=True)
    for row in listed(game):
        assert check(game, row).stable is Answer.TRUE


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_names_in_another_order_have_the_same_equilibria(seed):
    rng = np.random.default_rng(seed)
    game = random_game(rng, 4, boxed=True)
    order = rng.permutation(4)
    rows = {tuple(np.round(row[order], 6)) for row in listed(game)}
    assert rows == {tuple(np.round(row, 6)) for row in listed(game.restrict(order))}


def test_of_twins_either_gives_all_or_the_other_does():
    assert sorted(map(tuple, listed(LinearGame(TWINS, [3.0, 3.0])).tolist())) == [(0, 3), (3, 0)]


def test_a_limit_leaves_the_equilibrium_that_keeps_to_it():
    game = LinearGame(TWINS, [3.0, 3.0], limits=[2.0, None])
    assert listed(game).tolist() == [[0.0, 3.0]]


def test_who_must_give_something_gives_it():
    game = LinearGame(np.eye(2) + 0.5 * (1 - np.eye(2)), [4.0, 1.0], minimums=[0.0, 1.0])
    assert listed(game).tolist() == [[3.5, 1.0]]


def test_needs_without_end_have_no_equilibrium():
    assert len(list_equilibria(np.eye(2), np.array([1.0, np.inf]), np.zeros(2), np.ones(2))) == 0


def test_nobody_needs_anything_is_an_equilibrium():
    assert listed(LinearGame(TWINS, [0.0, 0.0])).tolist() == [[0.0, 0.0]]


def test_all_equilibria_of_a_small_game_come_cheapest_first():
    game = LinearGame([[1.0, 2.0], [2.0, 1.0]], [2.0, 3.0])
    found = find_equilibria(game)
    assert found.complete
    totals = found.contributions.sum(axis=1)
    assert (np.diff(totals) >= 0).all() and len(totals) == 3


def test_of_a_larger_game_some_are_found_and_all_of_them_are_stable():
    game = flower(16)
    found = find_equilibria(game)
    assert not found.complete and len(found) >= 1
    assert all(check(game, row).stable is Answer.TRUE for row in found.contributions)


def test_of_many_twins_several_equilibria_are_found():
    benefits = np.kron(np.eye(8), TWINS)
    found = find_equilibria(LinearGame(benefits, np.ones(16)), seed=1)
    assert len(found) > 1
    assert np.allclose(found.contributions.sum(axis=1), 8)


def test_why_there_is_none_is_said():
    stuck = LinearGame([[1.0, 0.0], [1.0, 1.0]], [2.0, 1.0], limits=[1.0, None])
    found = find_equilibria(stuck)
    assert len(found) == 0 and "agent 0" in found.reason
