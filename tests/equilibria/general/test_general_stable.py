"""Enclosures of all equilibria of small real games, and proofs that there are none."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pac_worlds import cycle_worlds
from solvers import of_games

from fedaccord.check import Answer, check
from fedaccord.equilibria.general import stable as enclosures
from fedaccord.equilibria.general.stable import small_real_equilibria
from fedaccord.equilibria.result import Deadline, Status
from fedaccord.errors import InputError
from fedaccord.games.linear import LinearGame
from fedaccord.games.pac.exact import PacGame

enclosed_stable = of_games(enclosures.enclosed_stable, "stable")


def cycle(requirement, d=1, **frame):
    return PacGame(cycle_worlds(d), [requirement] * 3, **frame)


class TestThePaperCycle:
    def test_with_certainty_there_is_none_though_almost_equilibria_exist(self):
        game = cycle(1)
        solution = enclosed_stable(game)
        assert solution.status is Status.NONE_EXISTS
        assert solution.certificate["boxes_examined"] == 27
        # Near (1, 1, 1) everybody's response is 1, as near as one likes to what it gives.
        near = np.full(3, 1 - 1e-9)
        assert np.abs(game.best_responses(near) - near).max() <= 1.1e-9
        assert check(game, np.ones(3)).stable is Answer.FALSE

    def test_without_looking_at_cells_the_jump_is_not_resolved(self, monkeypatch):
        monkeypatch.setattr(enclosures, "MOST_CELLS", 0)
        monkeypatch.setattr(enclosures, "MOST_BOXES", 300)
        result = small_real_equilibria(cycle(1))
        assert not result.none_exist

    @pytest.mark.parametrize(
        ("cell", "agent", "excluded"),
        [
            # Predecessor and agent both give less than a sample: short of certainty.
            (((0, 1), (0, 1), (0, 1)), 1, True),
            # The predecessor gives all: any part of a sample is too much, none is right.
            (((1, 1), (0, 1), (0, 1)), 1, True),
            (((1, 1), (1, 1), (0, 1)), 1, True),
            (((1, 1), (0, 0), (0, 1)), 1, False),
            # The predecessor gives less: only a whole sample is right.
            (((0, 1), (0, 0), (0, 1)), 1, True),
            (((0, 1), (1, 1), (0, 1)), 1, False),
        ],
    )
    def test_cells_are_excluded_for_the_right_agent(self, cell, agent, excluded):
        sides = tuple((Fraction(low), Fraction(high)) for low, high in cell)
        assert enclosures._is_excluded(cycle(1), sides, agent) is excluded

    @pytest.mark.parametrize("requirement", [0.5, 0.6, 0.75, 0.9, 0.99, 0.9999])
    def test_below_certainty_there_is_exactly_one(self, requirement):
        solution = enclosed_stable(cycle(requirement))
        assert solution.status is Status.OPTIMAL
        assert len(solution.certificate["boxes"]) == 1
        expected = 1 - np.sqrt(2 * (1 - requirement))
        np.testing.assert_allclose(solution.contributions, expected, atol=1e-6)
        assert solution.total in solution.bounds
        assert check(solution.game, solution.allocation).stable is Answer.TRUE

    def test_a_whole_equilibrium_of_the_general_cycle_is_proved_exactly(self):
        result = small_real_equilibria(cycle(Fraction(7, 8), d=2))
        exact = [e for e in result.found if e.exact]
        assert result.complete
        assert [e.witness.tolist() for e in exact] == [[1, 1, 1]]


class TestLinearGames:
    def test_both_equilibria_of_an_indefinite_game_are_enclosed(self):
        game = LinearGame([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [1, 1, 1])
        result = small_real_equilibria(game)
        assert result.complete
        for point in ([0, 1, 0], [1, 0, 1]):
            assert any(
                (e.lower <= np.array(point) + 1e-6).all()
                and (e.upper >= np.array(point) - 1e-6).all()
                for e in result.found
            )
        assert enclosed_stable(game).total == pytest.approx(1, abs=1e-6)
        assert enclosed_stable(game, select="costliest").total == pytest.approx(2, abs=1e-6)

    def test_the_asymmetric_cycle_has_one(self):
        solution = enclosed_stable(LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1]))
        np.testing.assert_allclose(solution.contributions, 0.5, atol=1e-6)

    @settings(max_examples=25)
    @given(
        st.lists(st.integers(0, 3), min_size=2, max_size=2),
        st.lists(st.integers(1, 8), min_size=2, max_size=2),
    )
    def test_symmetric_dominant_games_have_the_one_of_their_lcp(self, off, needs):
        weight = off[0] / 4
        benefits = np.array([[1, weight], [weight, 1]])
        requirements = np.array(needs) / 4
        game = LinearGame(benefits, requirements)
        solution = enclosed_stable(game)
        candidates = [
            np.linalg.solve(benefits, requirements),
            np.array([requirements[0], 0]),
            np.array([0, requirements[1]]),
        ]
        true = [
            c
            for c in candidates
            if (c >= 0).all() and check(game, c, tolerance=1e-12).stable is Answer.TRUE
        ]
        np.testing.assert_allclose(solution.contributions, true[0], atol=1e-5)

    def test_limits_and_minimums_are_kept(self):
        game = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], limits=[2, 2], minimums=[0.9, 0])
        solution = enclosed_stable(game)
        np.testing.assert_allclose(solution.contributions, [0.9, 0.55], atol=1e-6)
        tight = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], limits=[0.5, 2])
        # Its only equilibrium without limits, 2/3 each, is out of the first agent's reach.
        assert enclosed_stable(tight).status is Status.NONE_EXISTS


class TestHonestEndings:
    def test_a_continuum_of_equilibria_ends_in_a_limit(self, monkeypatch):
        monkeypatch.setattr(enclosures, "MOST_BOXES", 300)
        solution = enclosed_stable(LinearGame(np.ones((2, 2)), [1, 1]))
        assert solution.status in (Status.LIMIT, Status.FAILED)
        assert not solution.certificate["complete"]
        assert solution.bounds.lower <= 1

    def test_no_time_proves_nothing(self):
        result = small_real_equilibria(cycle(1), deadline=Deadline(0.0))
        assert not result.complete
        assert not result.none_exist

    def test_what_it_is_not_for_gets_a_sentence(self):
        with pytest.raises(InputError, match="use exhaustive"):
            small_real_equilibria(cycle(1, strategies="integer"))
        with pytest.raises(InputError, match="up to 4 agents"):
            small_real_equilibria(LinearGame(np.eye(5), np.ones(5)))
