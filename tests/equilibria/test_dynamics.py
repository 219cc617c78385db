"""Best-response dynamics: where they settle, where they cycle, and what they say about it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pac_worlds import cycle_worlds

from fedaccord.check import Answer, check
from fedaccord.equilibria.dynamics import Ending, best_response_dynamics
from fedaccord.errors import InputError
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.pac.exact import PacGame

ASYMMETRIC = LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1])


def flower(petals):
    """The paper's flower with linear utilities: petals in groups that share part of the core."""
    root = int(np.sqrt(petals))
    group = np.arange(petals) // root
    benefits = np.eye(petals + 1)
    benefits[0, 1:] = benefits[1:, 0] = 1 / root
    benefits[1:, 1:] = np.where(group[:, None] == group, 1 / root, 0.0)
    np.fill_diagonal(benefits, 1.0)
    return LinearGame(benefits, np.ones(petals + 1))


def run(game, order="simultaneous", **options):
    return best_response_dynamics(game, order=order, **options)


class TestWhatThePaperSays:
    def test_simultaneous_responses_swing_between_all_and_nothing(self):
        path = run(flower(16))
        assert (path.ending, path.period) == (Ending.CYCLED, 2)
        assert path.contributions[0].tolist() == [0] * 17
        assert path.contributions[1].tolist() == [1] * 17
        assert path.sentence() == (
            "Simultaneous best response from zero cycles between 2 allocations and never settles."
        )

    @pytest.mark.parametrize(
        ("order", "damping"), [("sequential", 1.0), ("simultaneous", 0.5), ("sequential", 0.5)]
    )
    def test_sequential_or_damped_responses_settle_at_an_equilibrium(self, order, damping):
        game = flower(16)
        path = run(game, order, damping=damping)
        assert path.ending is Ending.CONVERGED
        assert check(game, path.last).stable is Answer.TRUE
        # The core gives nothing, each petal 1 / (2 - 1/sqrt(b)).
        np.testing.assert_allclose(path.last, [0] + [4 / 7] * 16, atol=1e-7)

    @pytest.mark.parametrize("game", [ASYMMETRIC, PacGame(cycle_worlds(), [0.9] * 3)])
    def test_sequential_responses_cycle_where_help_goes_round_in_a_ring(self, game):
        assert run(game, "sequential").ending is Ending.CYCLED
        for order in ("simultaneous", "sequential"):
            path = run(game, order, damping=0.5)
            assert path.ending is Ending.CONVERGED
            assert check(game, path.last).stable is Answer.TRUE

    def test_half_steps_find_the_equilibrium_of_the_ring(self):
        np.testing.assert_allclose(run(ASYMMETRIC, damping=0.5).last, 0.5, atol=1e-9)
        path = run(PacGame(cycle_worlds(), [0.9] * 3), damping=0.5)
        np.testing.assert_allclose(path.last, 1 - np.sqrt(0.2), atol=1e-8)

    def test_without_an_equilibrium_nothing_settles(self):
        game = PacGame(cycle_worlds(), [1, 1, 1], strategies="integer", limits=[1, 1, 1])
        for order in ("simultaneous", "sequential"):
            path = run(game, order)
            assert path.ending is Ending.CYCLED
            # The reported cycle is one: replaying it gives the same allocations.
            rows = path.contributions
            again = run(game, order, start=rows[-1])
            assert (again.contributions[path.period] == rows[-1]).all()
            assert (again.contributions[1 : path.period] != rows[-1]).any(axis=1).all()

    @given(st.integers(2, 4), st.data())
    def test_sequential_integer_responses_settle_in_symmetric_games(self, k, data):
        weights = [[data.draw(st.integers(0, 4)) / 4 for _ in range(k)] for _ in range(k)]
        benefits = np.triu(weights, 1)
        benefits = benefits + benefits.T + np.eye(k)
        needs = [data.draw(st.integers(0, 12)) / 4 for _ in range(k)]
        game = LinearGame(benefits, needs, strategies="integer")
        path = run(game, "sequential")
        assert path.ending is Ending.CONVERGED
        assert check(game, path.last).stable is Answer.TRUE


class TestPaths:
    def test_every_round_is_the_clipped_response_to_the_one_before(self):
        game = LinearGame(ASYMMETRIC.benefits, [1, 1, 1], limits=[0.6, 2, 2], minimums=[0, 0.25, 0])
        path = run(game, damping=0.5, max_rounds=20)
        for before, after in zip(path.contributions, path.contributions[1:], strict=False):
            wanted = np.clip(game.best_responses(before), game.minimums, game.limits)
            np.testing.assert_allclose(after, (before + wanted) / 2, atol=1e-15)

    def test_regret_is_the_distance_to_the_best_response(self):
        path = run(ASYMMETRIC, damping=0.5, start=[1, 0, 0.25], max_rounds=5)
        for theta, regret in zip(path.contributions, path.regret, strict=True):
            assert regret == np.abs(ASYMMETRIC.best_responses(theta) - theta).max()

    def test_a_start_at_an_equilibrium_settles_at_once(self):
        path = run(ASYMMETRIC, start=[0.5, 0.5, 0.5])
        assert (path.ending, path.rounds) == (Ending.CONVERGED, 0)
        assert "settles after 0 rounds" in path.sentence()

    def test_slow_convergence_is_not_called_a_cycle(self):
        # Alternating signs and a rate near one: it swings, ever less.
        game = LinearGame([[1, 0.99], [0.99, 1]], [1, 1])
        path = run(game, max_rounds=200)
        assert path.ending is Ending.LIMIT
        assert "had not settled after 200 rounds" in path.sentence()
        assert run(game, max_rounds=5_000).ending is Ending.CONVERGED

    def test_very_slow_convergence_is_not_called_a_cycle_either(self):
        game = LinearGame([[1, 1 - 1e-9], [1 - 1e-9, 1]], [1, 1])
        assert run(game, max_rounds=500).ending is Ending.LIMIT

    def test_steps_too_small_to_see_are_not_called_a_cycle(self):
        path = run(ASYMMETRIC, damping=1e-14, start=[0.9, 0.1, 0.3], max_rounds=50)
        assert path.ending is Ending.LIMIT

    @settings(max_examples=30)
    @given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    def test_a_cycle_once_reported_goes_on(self, a, b, c):
        path = run(ASYMMETRIC, "sequential", start=[a, b, c], max_rounds=100)
        if path.ending is Ending.CYCLED:
            longer = run(ASYMMETRIC, "sequential", start=path.last, max_rounds=100)
            assert longer.ending is Ending.CYCLED
            assert longer.period == path.period

    def test_an_agent_who_never_has_enough_gives_its_limit(self):
        game = FunctionGame(lambda t: [t[1], t[1]], [2, 1], limits=[3, None])
        path = run(game)
        assert path.ending is Ending.CONVERGED
        assert path.last.tolist() == [3, 1]

    def test_recorded_paths_cannot_be_changed(self):
        path = run(ASYMMETRIC, damping=0.5)
        with pytest.raises(ValueError, match="read-only"):
            path.contributions[0, 0] = 9
        with pytest.raises(TypeError, match="no truth value"):
            bool(path.ending)
        assert repr(path).startswith("Path(simultaneous")

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"order": "random"}, "order must be"),
            ({"damping": 0}, "damping must be above 0"),
            ({"damping": 1.5}, "at most 1"),
            ({"max_rounds": 0}, "max_rounds must be at least 1"),
            ({"start": [1, 2]}, "start must have 3 contributions"),
            ({"start": [1, 2, np.nan]}, "start of agent 2 is not a number"),
        ],
    )
    def test_wrong_options_get_a_sentence(self, options, sentence):
        with pytest.raises(InputError, match=sentence):
            best_response_dynamics(ASYMMETRIC, **options)

    def test_whole_games_take_whole_starts_and_whole_steps(self):
        game = ASYMMETRIC.replace(strategies="integer")
        with pytest.raises(InputError, match="use damping 1"):
            run(game, damping=0.5)
        with pytest.raises(InputError, match="whole numbers"):
            run(game, start=[0.5, 0, 0])
