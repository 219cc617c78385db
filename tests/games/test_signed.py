"""Games with harm: what samples of others cost, and which games are refused."""

import numpy as np
import pytest

from fedaccord.check import Answer, check
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.linear import LinearGame
from fedaccord.games.signed import SignedGame
from fedaccord.groups import find_blocking_groups

DUEL = [[1, -0.5], [-0.5, 1]]


def test_the_more_others_give_the_more_an_agent_needs():
    game = SignedGame(DUEL, [10, 10])
    assert game.best_responses(np.array([0.0, 0.0])).tolist() == [10, 10]
    assert game.best_responses(np.array([0.0, 8.0])).tolist() == [14, 10]
    assert not game.is_monotone
    assert game.has_only_harm


def test_without_harm_it_says_what_a_linear_game_says():
    benefits = np.array([[2, 0.5, 0], [0.25, 1, 0.5], [0, 1, 4]])
    linear, signed = (kind(benefits, [4, 3, 8]) for kind in (LinearGame, SignedGame))
    for given in np.random.default_rng(0).uniform(0, 4, (20, 3)):
        assert signed.utilities(given) == pytest.approx(linear.utilities(given))
        assert signed.best_responses(given) == pytest.approx(linear.best_responses(given))
        ours, theirs = check(signed, given), check(linear, given)
        assert (ours.feasible, ours.stable, ours.envy) == (
            theirs.feasible, theirs.stable, theirs.envy,
        )  # fmt: skip


def test_a_plan_is_feasible_only_at_the_point():
    game = SignedGame(DUEL, [10, 10])
    assert check(game, [20, 20]).stable is Answer.TRUE
    # More of the other's samples is not better: North gives more, and City is short.
    assert check(game, [20, 24]).feasible is Answer.FALSE


def test_agents_that_would_give_less_alone_are_named_the_worst_first():
    found = check(SignedGame([[1, -0.5], [-0.25, 1]], [10, 10]), [120 / 7, 100 / 7])
    assert found.stable is Answer.TRUE
    assert found.better_alone.tolist() == [0, 1]
    assert not found.rational
    assert "The others' samples harm it" in found.explain(0)


def test_a_lighter_burden_is_not_envied_where_the_swap_would_harm():
    # Agent 0 could give 1 and be satisfied, but after a swap agent 1 would give 4 and harm it.
    game = SignedGame([[1, -1], [0, 1]], [0, 0])
    found = check(game, [4.0, 1.0])
    assert found.needed.tolist() == [1.0, 0.0]
    assert (0, 1) not in found.envy
    assert (0, 1) in check(SignedGame([[1, 0], [0, 1]], [0, 0]), [4.0, 1.0]).envy


def test_groups_are_refused_where_agents_harm_each_other():
    # Neither can give less than 5 alone, and together they can give nothing.
    game = SignedGame([[1, -1], [-1, 1]], [0, 0])
    assert check(game, [5, 5]).stable is Answer.TRUE
    assert check(game, [0, 0]).stable is Answer.TRUE
    with pytest.raises(
        InputError, match="harm some agents, but --groups needs a game without harm"
    ):
        find_blocking_groups(game, [5, 5])


def test_whole_responses_are_exact_where_large_numbers_cancel():
    game = SignedGame([[3, -1e9], [0, 1]], [0, 0], strategies="integer")
    # 1e9 * 3e6 / 3 = 1e15 exactly, and one more sample of the other asks 333,333,334 more.
    assert game.best_response(0, np.array([0.0, 3e6])) == 1e15
    assert game.best_response(0, np.array([0.0, 1.0])) == 333_333_334


@pytest.mark.parametrize(
    ("benefits", "error", "said"),
    [
        ([[1, -0.5]], InputError, "benefits must be 2 x 2"),
        ([[-1, 0], [0, 1]], UnreachableError, "gains nothing from its own samples"),
        ([[1, np.nan], [0, 1]], InputError, "not a number"),
        ([[1, -1e13], [0, 1]], InputError, "correct the units"),
    ],
)
def test_games_that_make_no_sense_are_refused(benefits, error, said):
    with pytest.raises(error, match=said):
        SignedGame(benefits, [1, 1])


def test_a_linear_game_with_harm_says_which_model_takes_it():
    with pytest.raises(InputError, match="use a SignedGame"):
        LinearGame(DUEL, [1, 1])


def test_who_is_short_at_all_limits_is_known_at_once():
    game = SignedGame([[1, -0.5], [0, 1]], [10, 4], limits=[11, 9], minimums=[0, 4])
    assert game.short_at_limits() == 0  # 11 - 0.5 * 4 = 9
    assert game.replace(limits=[12, 9]).short_at_limits() is None
