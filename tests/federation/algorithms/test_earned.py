"""EARNED: who gets the model, what a reserve is asked for, and the way back, worked by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from federation.small import small_federation
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fedaccord import InputError
from fedaccord.federation.algorithms.earned import Earned, call_reserve
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.history import Session
from fedaccord.federation.training.loop import copy_weights, make_model, reproducibly, train
from fedaccord.federation.training.reference import train_plainly

UNREACHABLE = 1.0


@dataclass
class Played:
    """What was asked in each round, delivered, called and withheld."""

    asked: np.ndarray
    fresh: np.ndarray
    called: np.ndarray
    out: np.ndarray


def play(algorithm, brought, absent=(), most=4000):
    """Run the rules alone: all deliver what they have, but for (round, client) that are absent."""
    brought = np.array(brought)
    names = list(map(str, range(len(brought))))
    session = Session(algorithm, names, brought, np.full(len(brought), 0.8), seed=0)
    drawn = np.zeros(len(brought), dtype=int)
    fresh = drawn.copy()
    rows = []
    for n in range(most):
        asked, able = session.allot(), session.brought
        used = np.array([0 if (n, i) in absent else c for i, c in enumerate(asked)])
        drawn += used
        fresh = np.minimum(fresh + used, able)
        session.record_round(used, fresh, np.zeros(len(brought)))
        session.part()
        rows.append((asked, fresh.copy(), algorithm.called(session.state), session.left))
        if session.ended:
            return Played(*(np.array(column) for column in zip(*rows, strict=True)))
    raise AssertionError("it never ends")


# Everybody delivers.

pledges = st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any)


@given(pledges, st.integers(1, 12), st.sampled_from([1.0, 1.5, 3.0]), st.data())
def test_if_all_deliver_it_is_pledged_and_nobody_is_left_out(theta, m, passes, data):
    settings = {"rounds": 4000, "batch_size": m, "passes": passes, "commitment": tuple(theta)}
    rule = {
        "reserve": data.draw(st.tuples(*(st.integers(0, 9) for _ in theta))),
        "fresh_by": data.draw(st.sampled_from([None, 1.0])),
        "grace": data.draw(st.sampled_from([0.0, 0.2])),
        "patience": data.draw(st.integers(0, 2)),
    }
    pledged = play(Pledged(ends="each", **settings), theta)
    earned = play(Earned(**settings, **rule), theta)
    assert earned.asked.tolist() == pledged.asked.tolist()
    assert not earned.out.any()
    assert not any(np.any(called) for called in earned.called)


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_if_all_deliver_the_models_are_the_same_to_the_last_bit(form):
    federation = small_federation(requirement=0.7)
    settings = {
        "rounds": 60,
        "batch_size": 5,
        "passes": 3,
        "commitment": (30, 0, 20),
        "form": form,
        "learning_rate": 0.02,
        "evaluate_every": 4,
    }
    options = {"contributions": [30, 0, 20], "seed": 4}
    pledged = train(federation, Pledged(ends="each", **settings), **options)
    earned = train(federation, Earned(reserve=(0, 24, 10), **settings), **options)
    for name, weights in pledged.weights.items():
        assert_array_equal(earned.weights[name], weights)
    assert_array_equal(earned.accuracy, pledged.accuracy)
    assert earned.checkpoints == {}


# Who does not deliver.

QUARTER = {"rounds": 100, "batch_size": 4, "passes": 2, "commitment": (40, 40)}


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        # Four points a round: after two of them it has 8 of its 10, in the third 2 of 4.
        ({}, 3),
        ({"patience": 1}, 4),
        ({"patience": 2}, 5),
        # A fifth of 40 are 8 that it may be behind: at 20 points due it is behind by 10.
        ({"grace": 0.2}, 5),
        # Twice as slow: 10 are due after five rounds, and 12 after six.
        ({"fresh_by": 1.0}, 6),
        # 8 are due for each 3 rounds: 10 after four, and 13 after five.
        ({"fresh_by": 0.75}, 5),
    ],
)
def test_a_client_with_a_quarter_of_its_pledge_is_out_when_it_runs_out_of_points(settings, last):
    played = play(Earned(**QUARTER, **settings), [10, 40])
    assert played.out[:, 0].tolist() == [False] * (last - 1) + [True] * (20 - last + 1)
    assert not played.out[:, 1].any()
    # Its ten points are good for 20 draws.
    asked = min(last, 5)
    assert played.asked[:, 0].tolist() == [4] * asked + [0] * (20 - asked)
    assert played.asked[:, 1].tolist() == [4] * 20


def test_a_client_that_never_delivers_gets_the_first_model_alone():
    federation = small_federation(requirement=UNREACHABLE)
    algorithm = Earned(rounds=99, batch_size=6, passes=3, commitment=(12, 12, 12))
    history = train(federation, algorithm, contributions=[0, 12, 12], seed=3)
    with reproducibly(3):
        first = copy_weights(make_model(federation))
    assert list(history.checkpoints) == ["client 0"]
    for name, weights in history.checkpoints["client 0"].items():
        assert_array_equal(weights, first[name])
    assert history.samples.sum(axis=0).tolist() == [0, 36, 36]


@dataclass(frozen=True, kw_only=True)
class Cut(Earned):
    """The same, but training ends after some rounds."""

    last: int = 0

    def ended(self, state):
        return state.rounds >= self.last


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_who_leaves_has_the_model_that_was_sent_in_its_last_round(form):
    """Six points of 24 last for two rounds of three; in the third it delivers nothing fresh."""
    federation = small_federation(requirement=UNREACHABLE)
    settings = {
        "rounds": 99,
        "batch_size": 3,
        "passes": 2,
        "commitment": (24, 24, 24),
        "form": form,
        "evaluate_every": 1,
    }
    options = {"contributions": [24, 6, 24], "seed": 5}
    history = train(federation, Earned(**settings), **options)
    after_two = train(federation, Cut(last=2, **settings), **options)
    assert history.samples[:, 1].tolist() == [3, 3, 3] + [0] * 13
    assert list(history.checkpoints) == ["client 1"]
    for name, weights in history.checkpoints["client 1"].items():
        assert_array_equal(weights, after_two.weights[name])
        assert not np.array_equal(weights, history.weights[name])
    # Its accuracy is that of the model it has, from then on.
    assert set(history.accuracy[2:, 1]) == {after_two.accuracy[-1, 1]}
    assert history.accuracy[:2].tolist() == after_two.accuracy.tolist()


def test_leaving_does_not_disturb_the_model_of_the_others():
    """By another route: an algorithm that knows from the start what each will draw."""
    federation = small_federation(requirement=UNREACHABLE)
    settings = {"rounds": 16, "batch_size": 3, "learning_rate": 0.02}
    earned = Earned(passes=2, commitment=(24, 24, 24), **settings)
    options = {"contributions": [24, 6, 24], "seed": 5}
    history = train(federation, earned, **options)

    @dataclass(frozen=True, kw_only=True)
    class Written(Pledged):
        def allot(self, state):
            return np.array([3, 3 if state.rounds < 3 else 0, 3])

    plain = train(federation, Written(ends="each", passes=2, **settings), **options)
    for name, weights in plain.weights.items():
        assert_array_equal(history.weights[name], weights)


# The reserve.


def test_what_is_missing_is_called_and_drawn_as_often_as_what_was_pledged():
    """After three rounds it has drawn 12 of its 80: 34 of 40 points, twice each, are missing."""
    algorithm = Earned(
        rounds=100, batch_size=4, passes=2, commitment=(40, 40, 0, 0), reserve=(0, 0, 34, 17)
    )
    played = play(algorithm, [10, 40, 0, 0])
    assert played.called[:2].sum() == 0
    # Two thirds of each reserve.
    assert played.called[2:].tolist() == [[0, 0, 23, 11]] * 18
    assert played.fresh[-1].tolist() == [10, 40, 23, 11]
    # 17 rounds are left, and a tenth of the pledged points is drawn in each: 2.3 and 1.1 of these.
    assert played.asked[3:, 2:].sum(axis=0).tolist() == [39, 18]
    assert (played.asked[3:, :2] == [0, 4]).all()
    assert not played.out[:, 1:].any()


def test_who_gives_nearly_all_and_leaves_is_replaced_for_the_draws_to_come():
    """All 36 points of 40 were drawn once, and half of the draws are still missing."""
    algorithm = Earned(
        rounds=100, batch_size=4, passes=2, commitment=(40, 40, 0), reserve=(0, 0, 60)
    )
    played = play(algorithm, [36, 40, 0])
    assert played.out[:, 0].tolist() == [False] * 9 + [True] * 11
    # It drew ten times four, of which four were repeats.
    assert set(played.called[9:, 2]) == {20}


cases = st.integers(2, 6).flatmap(
    lambda k: st.tuples(
        *(st.lists(st.integers(0, 50), min_size=k, max_size=k) for _ in range(2)),
        st.lists(st.booleans(), min_size=k, max_size=k),
        st.sampled_from([0.5, 1.0, 1.5, 3.0]),
    )
)


@given(cases)
def test_as_much_is_called_as_is_missing_or_as_there_is(case):
    owed, reserve, out = map(np.array, case[:3])
    cover = case[3]
    called = call_reserve(owed, reserve, np.zeros_like(owed), out, cover=cover)
    missing = math.ceil(cover * sum(int(n) for n, gone in zip(owed, out, strict=True) if gone))
    there = int(reserve[~out].sum())
    assert called.sum() == min(missing, there)
    assert (called <= reserve).all()
    assert not called[out].any()
    # In proportion, to less than one point.
    if there:
        assert (abs(called - reserve * ~out * min(missing, there) / there) < 1).all()


def test_points_that_a_reserve_has_given_stay():
    owed, reserve = np.array([6, 0, 0]), np.array([0, 8, 8])
    nobody = np.zeros(3, dtype=bool)
    assert call_reserve(owed, reserve, np.array([0, 3, 0]), nobody).tolist() == [0, 3, 0]
    # Those of a holder that is out itself stand in for what is missing, too.
    out = np.array([True, True, False])
    assert call_reserve(owed, reserve, np.array([0, 2, 0]), out).tolist() == [0, 2, 4]


def test_a_holder_that_does_not_deliver_is_out_and_the_next_is_called():
    algorithm = Earned(
        rounds=100, batch_size=4, passes=2, commitment=(40, 40, 0, 0), reserve=(0, 0, 30, 30)
    )
    absent = {(n, 2) for n in range(100)}
    played = play(algorithm, [10, 40, 0, 0], absent)
    assert played.called[2].tolist() == [0, 0, 17, 17]
    assert played.out[3].tolist() == [True, False, True, False]
    # It owes 17 itself as long as it is out, and the other holder stands in for it.
    assert played.called[3:].tolist() == [[0, 0, 17, 30]] * 17
    assert played.out[3:].tolist() == [[True, False, True, False]] * 17
    assert played.fresh[-1].tolist() == [10, 40, 0, 30]


def test_a_pledger_can_hold_a_reserve_too():
    algorithm = Earned(
        rounds=100, batch_size=4, passes=2, commitment=(40, 20), reserve=(0, 12), patience=1
    )
    played = play(algorithm, [10, 20])
    assert played.fresh[-1].tolist() == [10, 32]
    assert not played.out[:, 1].any()


def test_in_training_the_reserve_is_drawn_of_points_of_its_own():
    federation = small_federation(requirement=UNREACHABLE)
    algorithm = Earned(
        rounds=99, batch_size=3, passes=2, commitment=(24, 24, 0), reserve=(0, 0, 40)
    )
    history = train(federation, algorithm, contributions=[24, 6, 0], seed=2)
    # It left after 9 of its 48 draws.
    assert history.unique[-1].tolist() == [24, 6, 20]
    assert history.contributions.tolist() == [24, 6, 0]
    with pytest.raises(InputError, match=r"client 2 may have to give 41 samples, .* it has 40"):
        big = Earned(rounds=99, batch_size=3, passes=2, reserve=(0, 0, 41))
        train(federation, big, contributions=[24, 6, 0])


# Grace, and the way back.


def test_lost_records_within_the_grace_cost_nothing():
    """With 36 of 40 and a grace of a tenth it keeps up; its budget is that of its points."""
    played = play(Earned(grace=0.1, **QUARTER), [36, 40])
    assert not played.out.any()
    assert played.asked.sum(axis=0).tolist() == [72, 80]
    assert play(Earned(grace=0.09, **QUARTER), [36, 40]).out[-1].tolist() == [True, False]


def test_a_client_that_comes_back_delivers_what_it_owes_and_is_in_again():
    """Away in rounds 2 to 4, it is asked for 16 points in the fifth and gets the model again."""
    algorithm = Earned(
        rounds=100, batch_size=4, passes=2, commitment=(40, 40, 0), reserve=(0, 0, 40)
    )
    absent = {(n, 0) for n in (1, 2, 3)}
    played = play(algorithm, [40, 40, 0], absent)
    assert played.out[:, 0].tolist() == [False, True, True, True] + [False] * 16
    assert played.asked[:6, 0].tolist() == [4, 4, 8, 12, 16, 4]
    assert played.fresh[4].tolist() == [20, 20, 11]
    # For its 76 draws to come 38 were called; what the reserve gave until it was back stays.
    assert played.called[1:4].tolist() == [[0, 0, 38]] * 3
    assert set(played.called[4:, 2]) == {11}
    assert played.fresh[-1].tolist() == [40, 40, 11]


def test_who_is_late_within_its_patience_is_never_out():
    absent = {(n, 0) for n in (1, 2)}
    played = play(Earned(patience=2, **QUARTER), [40, 40], absent)
    assert not played.out.any()
    assert played.fresh[3].tolist() == [16, 16]
    late = {(n, 0) for n in (1, 2, 3)}
    assert play(Earned(patience=2, **QUARTER), [40, 40], late).out[:, 0].sum() == 1


def test_who_stops_after_its_last_fresh_point_is_out_as_well():
    """All its points appeared in the first pass of two; then it works no more."""
    absent = {(n, 0) for n in range(12, 100)}
    played = play(Earned(**QUARTER), [40, 40], absent)
    assert played.fresh[11].tolist() == [40, 40]
    assert played.out[:, 0].tolist() == [False] * 12 + [True] * 8
    back = play(Earned(**QUARTER), [40, 40], {(12, 0), (13, 0)})
    assert back.out[:, 0].tolist() == [False] * 12 + [True] * 2 + [False] * 6


def test_in_a_session_who_is_back_has_the_common_accuracy_again():
    algorithm = Earned(**QUARTER)
    session = Session(algorithm, "ab", np.array([40, 40]), np.full(2, 0.8), seed=0)
    session.record_round(np.array([0, 4]), np.array([0, 4]), np.zeros(2))
    assert session.part().tolist() == [0]
    session.keep(np.array([0]), np.array([0.25]))
    session.record_accuracies(np.array([0.5, 0.5]))
    assert session.accuracies.tolist() == [0.25, 0.5]
    kept = {"a": {"w": np.zeros(1)}}
    assert session.history({}, kept).checkpoints == kept
    session.record_round(np.array([8, 4]), np.array([8, 8]), np.zeros(2))
    assert session.part().tolist() == []
    assert not session.left.any()
    session.record_accuracies(np.array([0.6, 0.7]))
    assert session.accuracies.tolist() == [0.6, 0.7]
    assert session.history({}, kept).checkpoints == {}


# The end.


def test_it_ends_when_nobody_has_anything_to_deliver():
    played = play(Earned(**QUARTER), [10, 10])
    assert len(played.asked) == 3


def test_those_without_the_model_are_not_waited_for_at_the_goal():
    algorithm = Earned(stop_after=1, evaluate_every=1, **QUARTER)
    state = algorithm.begin(np.array([0, 40]))
    state = algorithm.delivered(algorithm.drew(state, np.array([0, 4])), np.array([0, 4]))
    assert algorithm.ended(algorithm.weights(state, np.array([0.1, 0.9]), np.full(2, 0.8)))
    assert not algorithm.ended(algorithm.weights(state, np.array([0.9, 0.1]), np.full(2, 0.8)))


# Settings.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fresh_by": 0.09}, "fresh_by must be from 0.1, one pass of 10, to 1; got 0.09"),
        ({"fresh_by": 1.01}, "fresh_by must be from 0.1"),
        ({"grace": 1}, "grace must be from 0 to below 1; got 1"),
        ({"grace": -0.1}, "grace must be"),
        ({"patience": -1}, "patience must be"),
        ({"cover": 0}, "cover must be a number above 0; got 0"),
        ({"reserve": (1.5,)}, r"reserve must be a list of whole numbers of samples; got \(1.5,\)"),
        ({"reserve": (-1, 2)}, "reserve must be"),
        ({"reserve": 4}, "reserve must be a list .* got 4"),
        ({"commitment": (0, 0)}, "commitment must be"),
        ({"passes": math.nan}, "passes must be"),
    ],
)
def test_settings_that_no_training_could_follow_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        Earned(**settings)


def test_as_many_reserves_as_clients_are_needed():
    with pytest.raises(InputError, match="3 clients need one reserve each; got 2"):
        Earned(reserve=(1, 2)).begin(np.array([3, 3, 3]))


def test_reserves_are_set_once():
    algorithm = Earned().reserving([np.int64(4), 0])
    assert algorithm == Earned(reserve=(4, 0))
    assert algorithm.reserving([1, 1]) is algorithm
    assert Pledged().reserving([1]) == Pledged()
    assert Earned(reserve=[3, 1]).limits(np.array([2, 2])).tolist() == [5, 3]


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_the_quick_loop_trains_as_the_plain_one_does(form):
    federation = small_federation(requirement=0.7)
    algorithm = Earned(
        rounds=40,
        batch_size=5,
        passes=2,
        commitment=(30, 0, 20),
        reserve=(0, 24, 4),
        stop_after=3,
        learning_rate=0.02,
        evaluate_every=3,
        form=form,
    )
    options = {"contributions": [8, 0, 20], "seed": 4}
    quick = train(federation, algorithm, **options)
    plain = train_plainly(federation, algorithm, **options)
    assert quick.samples.tolist() == plain.samples.tolist()
    assert quick.unique.tolist() == plain.unique.tolist()
    assert quick.loss == pytest.approx(plain.loss, rel=1e-9, nan_ok=True)
    assert quick.accuracy == pytest.approx(plain.accuracy, nan_ok=True)
    assert list(quick.checkpoints) == list(plain.checkpoints) == ["client 0"]
