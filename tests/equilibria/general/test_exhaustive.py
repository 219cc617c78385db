"""Exhaustive search in integer games: known answers, brute force, proofs of absence."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pac_worlds import cycle_worlds, find_cycle_threshold

from fedaccord.check import Answer, check
from fedaccord.equilibria.general import exhaustive
from fedaccord.equilibria.general.exhaustive import (
    all_envy_free,
    all_equilibria,
    exhaustive_envy_free,
    exhaustive_optimal,
    exhaustive_stable,
)
from fedaccord.equilibria.result import Deadline, Status
from fedaccord.errors import ExactnessError, InputError
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.pac.exact import PacGame


def as_tuples(allocations):
    return sorted(tuple(int(c) for c in theta) for theta in allocations)


def cycle(d, requirement, **frame):
    return PacGame(cycle_worlds(d), [requirement] * 3, strategies="integer", **frame)


@st.composite
def small_games(draw):
    """Draw linear integer games of two or three agents, with limits, minimums and costs."""
    k = draw(st.integers(2, 3))
    weights = st.integers(0, 4)
    benefits = np.array([[draw(weights) for _ in range(k)] for _ in range(k)]) / 4
    np.fill_diagonal(benefits, [draw(st.integers(2, 5)) / 4 for _ in range(k)])
    limits = [draw(st.one_of(st.none(), st.integers(1, 4))) for _ in range(k)]
    minimums = [draw(st.integers(0, 1)) for _ in range(k)]
    return LinearGame(
        benefits,
        [draw(st.integers(0, 8)) / 4 for _ in range(k)],
        strategies="integer",
        limits=limits,
        minimums=minimums,
        costs=[draw(st.integers(1, 3)) for _ in range(k)],
    )


def every_allocation(game, most=6):
    """List every allocation of the box up to `most`, within limits and minimums."""
    sides = [
        range(int(low), int(min(high, most)) + 1)
        for low, high in zip(game.minimums, game.limits, strict=True)
    ]
    return [np.array(theta, dtype=float) for theta in product(*sides)]


class TestThePaperCycle:
    def test_one_sample_each_with_certainty_has_no_equilibrium(self):
        game = cycle(1, 1, limits=[1, 1, 1])
        stable = exhaustive_stable(game)
        assert stable.status is Status.NONE_EXISTS
        assert stable.certificate["points"] == 8
        assert stable.certificate["complete"]
        assert exhaustive_optimal(game).total == 2
        fair = exhaustive_envy_free(game)
        assert (fair.status, fair.contributions.tolist()) == (Status.OPTIMAL, [1, 1, 1])
        assert as_tuples(all_envy_free(game, up_to=3)) == [(1, 1, 1)]

    @pytest.mark.parametrize(
        "requirement", ["5/8", "3/4", "4/5", "7/8", "9/10", "15/16", "24/25", "31/32", "127/128"]
    )
    def test_odd_thresholds_have_none_and_even_ones_exactly_one(self, requirement):
        game = cycle(2, Fraction(requirement))
        m = find_cycle_threshold(Fraction(requirement), 2)
        expected = [] if m % 2 else [(m // 2,) * 3]
        assert as_tuples(all_equilibria(game)) == expected
        stable = exhaustive_stable(game)
        assert stable.status is (Status.NONE_EXISTS if m % 2 else Status.OPTIMAL)
        assert exhaustive_optimal(game).total == -(-3 * m // 2)
        assert exhaustive_envy_free(game).total == 3 * -(-m // 2)

    @pytest.mark.slow
    @pytest.mark.parametrize(("requirement", "m"), [("3/4", 2), ("4/5", 3)])
    def test_512_worlds(self, requirement, m):
        game = cycle(3, Fraction(requirement))
        assert find_cycle_threshold(Fraction(requirement), 3) == m
        assert as_tuples(all_equilibria(game)) == ([] if m % 2 else [(m // 2,) * 3])

    def test_a_wrong_requirement_would_be_noticed(self):
        # Just above a threshold the answer flips: the comparison above is not vacuous.
        assert as_tuples(all_equilibria(cycle(2, Fraction(7, 8)))) == [(1, 1, 1)]
        assert all_equilibria(cycle(2, Fraction(876, 1000))) == []


class TestLinearGames:
    def test_the_asymmetric_cycle_has_no_integer_equilibrium(self):
        game = LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1], strategies="integer")
        assert exhaustive_stable(game).status is Status.NONE_EXISTS

    def test_an_indefinite_game_has_a_cheap_and_a_costly_equilibrium(self):
        game = LinearGame([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1], strategies="integer")
        assert as_tuples(all_equilibria(game)) == [(0, 1, 0), (1, 0, 1)]
        assert exhaustive_stable(game).contributions.tolist() == [0, 1, 0]
        costly = exhaustive_stable(game, select="costliest")
        assert costly.contributions.tolist() == [1, 0, 1]
        assert (costly.bounds.lower, costly.bounds.upper) == (2, 2)

    def test_equilibria_come_with_the_cheapest_first(self):
        game = LinearGame(np.ones((3, 3)), [2, 2, 2], strategies="integer", costs=[3, 1, 2])
        totals = [game.total(theta) for theta in all_equilibria(game)]
        assert totals == sorted(totals)
        assert totals == [2, 3, 4, 4, 5, 6]

    @settings(max_examples=50)
    @given(small_games())
    def test_equilibria_agree_with_brute_force(self, game):
        stable = [t for t in every_allocation(game) if check(game, t).stable is Answer.TRUE]
        assert as_tuples(all_equilibria(game)) == as_tuples(stable)
        costly = exhaustive_stable(game, select="costliest")
        if stable:
            assert exhaustive_stable(game).total == min(map(game.total, stable))
            assert costly.total == max(map(game.total, stable))
        else:
            assert costly.status in (Status.NONE_EXISTS, Status.INFEASIBLE)

    @settings(max_examples=40)
    @given(small_games())
    def test_optimal_and_envy_free_agree_with_brute_force(self, game):
        audits = [check(game, t) for t in every_allocation(game)]
        feasible = [a.contributions for a in audits if a.feasible is Answer.TRUE]
        fair = [a.contributions for a in audits if a.envy_free is Answer.TRUE]
        optimal, envy_free = exhaustive_optimal(game), exhaustive_envy_free(game)
        if optimal.status is Status.OPTIMAL and optimal.contributions.max() <= 6:
            assert optimal.total == min(map(game.total, feasible))
        if envy_free.status is Status.OPTIMAL and envy_free.contributions.max() <= 6:
            assert envy_free.total == min(map(game.total, fair))
            listed = [t for t in all_envy_free(game, up_to=envy_free.total) if t.max() <= 6]
            same = [t for t in fair if game.total(t) == envy_free.total]
            assert as_tuples(listed) == as_tuples(same)
        if optimal.status is Status.INFEASIBLE:
            assert not feasible
            assert exhaustive_optimal(game).contributions is None

    def test_brute_force_notices_a_box_that_is_too_small(self, monkeypatch):
        game = LinearGame([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [2, 2, 2], strategies="integer")
        right = as_tuples(all_equilibria(game))
        box = exhaustive.stable_box
        monkeypatch.setattr(exhaustive, "stable_box", lambda g: (box(g)[0], box(g)[1] - 1))
        stable = [t for t in every_allocation(game) if check(game, t).stable is Answer.TRUE]
        assert as_tuples(stable) == right
        assert as_tuples(all_equilibria(game)) != right


class TestLimitsAndMinimums:
    def test_limits_that_satisfy_nobody_are_infeasible_for_every_concept(self):
        game = cycle(1, 1, limits=[0, 1, 0])
        for solve in (exhaustive_optimal, exhaustive_envy_free, exhaustive_stable):
            solution = solve(game)
            assert solution.status is Status.INFEASIBLE
            assert solution.contributions is None

    def test_an_agent_who_cannot_do_it_alone_may_be_satisfied_by_others(self):
        game = cycle(2, Fraction(7, 8), limits=[1, 3, 3])
        optimal = exhaustive_optimal(game)
        assert optimal.total == 3
        assert optimal.contributions[0] <= 1
        assert check(game, optimal.allocation).feasible is Answer.TRUE

    def test_minimums_are_given_even_where_nobody_needs_them(self):
        game = LinearGame(np.ones((2, 2)), [1, 1], strategies="integer", minimums=[1, 1])
        assert as_tuples(all_equilibria(game)) == [(1, 1)]
        assert exhaustive_optimal(game).total == 2

    def test_an_agent_who_can_never_do_it_alone_rides_with_the_other(self):
        def helped(theta):
            return [theta[1], theta[1]]

        game = FunctionGame(helped, [2, 2], strategies="integer", limits=[4, None])
        assert game.alone.tolist() == [np.inf, 2]
        assert as_tuples(all_equilibria(game)) == [(0, 2)]
        assert exhaustive_optimal(game).contributions.tolist() == [0, 2]

    def test_what_others_alone_can_supply_is_found_by_doubling(self):
        def helped(theta):
            return [theta[1], theta[1]]

        game = FunctionGame(helped, [5, 2], strategies="integer", limits=[4, None])
        assert exhaustive_optimal(game).contributions.tolist() == [0, 5]
        assert exhaustive_optimal(game).total == 5


class TestHonestEndings:
    def test_no_time_leaves_bounds_and_an_allocation(self):
        game = cycle(2, Fraction(15, 16))
        for solve in (exhaustive_optimal, exhaustive_envy_free):
            solution = solve(game, deadline=Deadline(0.0))
            assert solution.status is Status.LIMIT
            assert solution.bounds.lower <= solve(game).total <= solution.bounds.upper
            assert check(game, solution.allocation).feasible is Answer.TRUE
        stable = exhaustive_stable(game, deadline=Deadline(0.0))
        assert stable.status is Status.FAILED
        assert "Time ran out" in stable.note
        with pytest.raises(ExactnessError, match="not complete"):
            all_equilibria(game, deadline=Deadline(0.0))

    def test_real_games_and_wrong_choices_are_refused(self):
        with pytest.raises(InputError, match="whole contributions"):
            exhaustive_stable(LinearGame([[1]], [1]))
        with pytest.raises(InputError, match="cheapest"):
            exhaustive_stable(cycle(1, 1), select="best")

    def test_a_function_game_is_searched_like_any_other(self):
        game = FunctionGame(lambda t: np.minimum(t, 3) + t[::-1] / 2, [2, 2], strategies="integer")
        twin = LinearGame([[1, 0.5], [0.5, 1]], [2, 2], strategies="integer")
        assert as_tuples(all_equilibria(game)) == as_tuples(all_equilibria(twin))
