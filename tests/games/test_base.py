"""What every game checks when made, and what follows for every model."""

from fractions import Fraction

import numpy as np
import pytest

from fedaccord.errors import ExactnessError, InputError, UnreachableError
from fedaccord.games.base import Game, Unknown
from fedaccord.games.linear import DiscoveryGame, LinearGame

EYE = np.eye(2)


class Roots(Game):
    """u_i = sqrt(theta_i) + theta of the others / 10: the least that a model must bring."""

    model = "roots"

    def utilities(self, contributions):
        return np.sqrt(contributions) + (contributions.sum() - contributions) / 10

    def _responses(self, contributions):
        rest = (contributions.sum() - contributions) / 10
        return np.maximum(self.requirements - rest, 0) ** 2

    def _model_arguments(self, keep=None):
        return {}

    def to_dict(self):
        return self._frame_dict()


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"requirements": []}, "at least one agent"),
        ({"requirements": [[1, 2]]}, "one list; got shape"),
        ({"requirements": [1, np.nan]}, "the requirement of agent 1 is not a number"),
        ({"requirements": [1, -1], "agents": ["a", "b"]}, "the requirement of b is negative"),
        ({"requirements": [1, 1e300]}, "too large"),
        ({"agents": "ab"}, "a list of names"),
        ({"agents": ["a", 1]}, "a list of names"),
        ({"agents": ["a"]}, "2 requirements came with 1 agent names"),
        ({"agents": ["a", "a"]}, "two agents are called 'a'"),
        ({"strategies": "whole"}, 'must be "real" or "integer"'),
        ({"limits": [1]}, "limits must have one number per agent, 2"),
        ({"limits": [1, -1]}, "the limit of agent 1 is negative"),
        ({"limits": [1, np.nan]}, "the limit of agent 1 is not a number"),
        ({"limits": [1, -np.inf]}, "the limit of agent 1 is infinite"),
        ({"minimums": [np.inf, 0]}, "the minimum of agent 0 is infinite"),
        ({"costs": [1, np.inf]}, "the cost of agent 1 is infinite"),
        ({"costs": [0, 1]}, "the cost of agent 0 is zero"),
        ({"minimums": [2, 0], "limits": [1, None]}, "the minimum of agent 0 .* above its limit"),
        ({"limits": [1.5, None], "strategies": "integer"}, "the limit of agent 0 is 1.5"),
        ({"minimums": [0, 0.5], "strategies": "integer"}, "the minimum of agent 1 is 0.5"),
    ],
)
def test_bad_frames_are_refused_by_name(frame, words):
    with pytest.raises(InputError, match=words):
        LinearGame(EYE, **{"requirements": [1, 1], **frame})


@pytest.mark.parametrize(
    ("benefits", "words"),
    [
        (np.eye(3), "benefits must be 2 x 2"),
        ([[1, 0]], "got shape"),
        ([[1, np.nan], [0, 1]], "the benefit of agent 0, column 1 is not a number"),
        ([[1, -1], [0, 1]], "the benefit of agent 0, column 1 is negative"),
        ([[1, "x"], [0, 1]], "benefits must be numbers"),
        ([[1, 1e13], [0, 1]], "agent 0 gains 1e.13 times as much"),
    ],
)
def test_bad_benefits_are_refused_by_name(benefits, words):
    with pytest.raises(InputError, match=words):
        LinearGame(benefits, [1, 1])


def test_an_agent_that_gains_nothing_from_its_own_samples_is_unreachable():
    with pytest.raises(UnreachableError, match="agent 1 gains nothing from its own samples"):
        LinearGame([[1, 1], [1, 0]], [1, 1])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.5, 0.4], [1, 0]], "the probabilities of agent 0 sum to 0.9, not 1"),
        ([[1.5, -0.5], [1, 0]], "a probability of agent 0 is negative"),
        ([[1, 0]], "must have 2 rows"),
        ([1, 0], "one row per agent"),
    ],
)
def test_bad_distributions_are_refused_by_name(rows, words):
    with pytest.raises(InputError, match=words):
        DiscoveryGame(rows, [1, 1])


def test_a_game_never_changes():
    benefits = np.eye(2)
    game = LinearGame(benefits, [1, 1], limits=[2, None])
    benefits[0, 1] = 5
    assert game.benefits[0, 1] == 0
    for array in (game.benefits, game.requirements, game.limits, game.costs, game.alone):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_a_model_of_four_methods_is_a_game():
    game = Roots([1, 2])
    assert game.alone.tolist() == [1, 4]
    assert game.best_response(1, np.array([10.0, 0.0])) == pytest.approx(1)
    assert game.satisfied(np.array([1.0, 4.0])).all()
    assert not game.is_feasible(np.array([1.0, 3.0]))
    assert game.helpers(0).tolist() == [0, 1]
    assert isinstance(game.well_behaved(), Unknown)
    swapped = game.swapped_utilities(np.array([4.0, 1.0]), 0, np.array([1]))
    assert swapped == pytest.approx([1 + 0.4])
    with pytest.raises(ExactnessError, match="Roots has no exact utilities"):
        game.exact_utility(0, [Fraction(1), Fraction(1)])
    with pytest.raises(ExactnessError, match="Roots has no derivatives"):
        game.jacobian(np.ones(2))
    first, second, after = game.swaps(np.array([4.0, 1.0]), np.array([0, 1]))
    assert (first.tolist(), second.tolist()) == ([0], [1])
    assert after == pytest.approx(swapped)
    rates = game.own_rates(np.array([0, 1]), np.array([4.0, 0.0]))
    assert rates == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize(
    ("own", "need"),
    [(0.1, 0.3), (0.1, 0.7), (0.2, 0.6), (1 / 3, 1), (1 / 9, 1), (1.1, 3.3), (0.7, 2.1)],
)
def test_whole_responses_are_decided_exactly(own, need):
    count = round(need / own)
    game = LinearGame([[own]], [need], strategies="integer")
    # In floats some of these quotients fall just above, some just below the whole number.
    assert game.alone.tolist() == [count]
    assert game.best_response(0, np.zeros(1)) == count
    assert game.satisfied(np.array([float(count)])).all()
    assert not game.satisfied(np.array([count - 1.0])).any()
    above = LinearGame([[own]], [need * (1 + 1e-10)], strategies="integer")
    assert above.alone.tolist() == [count + 1]


def test_totals_count_costs():
    game = LinearGame(EYE, [1, 1], costs=[1, 3])
    assert game.total(np.array([2.0, 1.0])) == 5
    assert LinearGame(EYE, [1, 1]).total(np.array([2.0, 1.0])) == 3


def test_parts_of_games_keep_their_frames():
    game = LinearGame(
        np.arange(1, 10).reshape(3, 3), [1, 2, 3], agents=["a", "b", "c"],
        limits=[1, None, 3], minimums=[0, 1, 0], costs=[1, 2, 3],
    )  # fmt: skip
    part = game.restrict([2, 0])
    assert part.benefits.tolist() == [[9, 7], [3, 1]]
    assert part.requirements.tolist() == [3, 1]
    assert part.agents == ("c", "a")
    assert part.limits.tolist() == [3, 1]
    assert part.costs.tolist() == [3, 1]
    rest = game.without(1)
    assert rest.agents == ("a", "c")
    assert rest.benefits.tolist() == [[1, 3], [7, 9]]
    other = game.replace(strategies="integer", requirements=[3, 2, 1])
    assert other.is_integer
    assert other.requirements.tolist() == [3, 2, 1]
    assert other.limits.tolist() == game.limits.tolist()
    assert game.requirements.tolist() == [1, 2, 3]
    discovery = DiscoveryGame([[1, 0], [0.5, 0.5]], [1, 1]).without(0)
    assert discovery.distributions.toarray().tolist() == [[0.5, 0.5]]


def test_what_a_file_holds_leaves_defaults_out():
    plain = LinearGame(EYE, [1, 1]).to_dict()
    assert set(plain) == {"model", "requirements", "strategies", "benefits"}
    full = LinearGame(EYE, [1, 1], agents=["a", "b"], limits=[None, 2], costs=[1, 2]).to_dict()
    assert full["limits"] == [None, 2]
    assert full["costs"] == [1, 2]
    assert repr(LinearGame(EYE, [1, 1])) == "LinearGame(2 agents, real strategies)"
