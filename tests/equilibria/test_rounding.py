"""Searches in doubles say what searches in fractions say, or that they cannot tell."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import framed_games, linear_games

from fedaccord import LinearGame, Status, solve_envy_free, solve_optimal, solve_stable
from fedaccord.equilibria import confirm as confirming
from fedaccord.equilibria.confirm import confirm, program_of
from fedaccord.equilibria.programs import Program, Row, Undecided, least_total
from fedaccord.equilibria.result import Claim, Deadline, Interval
from fedaccord.equilibria.rounding import RoundedCorner, _Ties

CONCEPTS = ("optimal", "stable", "envy-free")


def draw(size, seed, *, symmetric=True):
    """Draw a game whose numbers have as many digits as doubles hold."""
    rng = np.random.default_rng(seed)
    benefits = rng.random((size, size)) * (rng.random((size, size)) < 0.6) * 0.8
    benefits = (benefits + benefits.T) / 2 if symmetric else benefits
    np.fill_diagonal(benefits, 1 + rng.random(size))
    return LinearGame(benefits, rng.random(size) * 100, costs=1 + rng.random(size))


def compare(game, concept, select="cheapest"):
    """Search both ways; say whether doubles could tell, and then that they tell the same."""
    program = program_of(game, concept, select)
    exact = least_total(program, Deadline(30.0))
    try:
        found = least_total(program, Deadline(30.0), rounded=True)
    except Undecided:
        return False
    assert found.complete
    assert exact.complete
    assert float(found.value) == pytest.approx(float(exact.value), rel=1e-11)
    assert (found.point is None) == (exact.point is None)
    return True


@pytest.mark.parametrize("concept", CONCEPTS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_doubles_tell_the_least_total_of_long_numbers(concept, symmetric):
    assert all(compare(draw(6, seed, symmetric=symmetric), concept) for seed in range(5))


def test_doubles_tell_the_costliest_equilibrium():
    assert all(compare(draw(5, seed, symmetric=False), "stable", "costliest") for seed in range(5))


def test_doubles_tell_that_limits_leave_no_equilibrium():
    game = draw(5, 1)
    given = solve_stable(game).contributions
    limits = np.where(given == given.max(), 0.9 * given, np.inf)
    limited = game.replace(limits=limits)
    assert solve_stable(limited).status is Status.NONE_EXISTS
    assert compare(limited, "stable")


@given(framed_games(linear_games()), st.sampled_from(CONCEPTS))
@settings(max_examples=60)
def test_short_numbers_are_told_rightly_or_not_at_all(game, concept):
    compare(game, concept)


def test_an_infimum_that_is_not_attained_is_left_to_fractions():
    chain = np.eye(5)
    chain[0, 1] = chain[2, 0] = chain[3, 0] = chain[4, 0] = 0.5
    assert not compare(LinearGame(chain, [1, 0.5, 1, 1, 1]), "envy-free")


def test_signs_within_rounding_are_not_told():
    # At the corner x = y = 1/3 the last row misses by 1e-30.
    tiny = 10**30
    rows = (
        Row(((0, 1),), 0),
        Row(((1, 1),), 0),
        Row(((0, 3),), 1),
        Row(((1, 3),), 1),
        Row(((0, 3 * tiny), (1, 3 * tiny + 1)), 2 * tiny + 1),
    )
    corner = RoundedCorner(Program((1, 1), (0, 0), 1, rows))
    assert corner.settle(rows[:4])
    with pytest.raises(Undecided):
        corner.sign(rows[4])
    with pytest.raises(Undecided):
        corner.copy().settle(rows)


def test_rows_tied_through_others_are_known_exactly():
    # x = y, y = z and w = 0 hold with equality, and 2 x + z + 5 w = 6.
    ties = _Ties(
        [
            Row(((0, 1), (1, -1)), 0),
            Row(((1, 1), (2, -1)), 0),
            Row(((3, 1),), 0),
            Row(((0, 2), (2, 1), (3, 5)), 6),
        ]
    )
    assert ties.cover(Row(((0, -1), (2, 1)), 0))
    assert ties.cover(Row(((1, -1),), -2))
    assert ties.cover(Row(((0, 1), (1, 2), (3, 7)), 6))
    assert not ties.cover(Row(((0, 1), (1, 2), (3, 7)), 7))
    assert not ties.cover(Row(((0, 1), (3, -1)), 0))


@pytest.mark.parametrize("solve", [solve_optimal, solve_stable, solve_envy_free])
def test_wrong_claims_are_not_confirmed(monkeypatch, solve):
    monkeypatch.setattr(confirming, "LONG", 0)
    game = draw(5, 3)
    right = solve(game)
    claim = Claim(game, right.concept, 1e-6, Deadline(10.0))
    assert right.status is Status.OPTIMAL
    again = confirm(claim, right)
    assert again.certificate["confirmed"]
    assert (again.status, again.total, again.method) == (right.status, right.total, right.method)
    for share in (0.99, 1.01):
        wrong = dataclasses.replace(
            right,
            contributions=share * np.array(right.contributions),
            bounds=Interval(share * right.bounds.lower, share * right.bounds.upper),
        )
        mended = confirm(claim, wrong)
        assert mended.total == pytest.approx(right.total, rel=1e-6)
    nothing = dataclasses.replace(right, status=Status.NONE_EXISTS, contributions=None)
    assert confirm(claim, nothing).contributions is not None
