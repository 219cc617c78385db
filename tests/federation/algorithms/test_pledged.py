"""Pledges: rounds and budgets worked by hand, and what a cut does to everybody."""

import math

import numpy as np
import pytest
from federation.small import small_federation
from hypothesis import given
from hypothesis import strategies as st

from fedaccord import InputError
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.history import Session
from fedaccord.federation.training.loop import train
from fedaccord.federation.training.reference import train_plainly

UNREACHABLE = 1.0


def rounds_of(algorithm, contributions, accuracies=None, most=500):
    """Give the samples of each round until the algorithm ends, with accuracies by round."""
    brought = np.array(contributions)
    names = list(map(str, brought))
    session = Session(algorithm, names, brought, np.full(len(brought), 0.8), seed=0)
    rows = []
    for n in range(most):
        rows.append(session.allot())
        session.record_round(rows[-1], rows[-1], np.zeros(len(brought)))
        if accuracies is not None and algorithm.tests(n):
            session.test(np.array(accuracies(n), dtype=float))
        if session.ended:
            return np.array(rows)
    raise AssertionError("it never ends")


def test_a_round_is_divided_by_pledges_and_lasts_for_so_many_passes():
    # Two have pledged, so 2 * 4 samples a round, by 30 : 10.
    rows = rounds_of(Pledged(batch_size=4, passes=2), [30, 10, 0])
    assert rows.tolist() == [[6, 2, 0]] * 10


def test_shares_that_are_no_whole_numbers_come_out_even():
    # 2 samples a round by 2 : 1, so 4/3 and 2/3: in all 1 2 4 and 0 1 2 after each round.
    rows = rounds_of(Pledged(batch_size=1, passes=2), [2, 1])
    assert rows.tolist() == [[1, 0], [1, 1], [2, 1]]


def test_batches_of_a_round_count():
    rows = rounds_of(Pledged(batch_size=2, local_batches=3, passes=1), [12, 12])
    assert rows.tolist() == [[6, 6]] * 2


@pytest.mark.parametrize(
    ("ends", "rows"),
    [
        # Who brings 10 of its 40 has 20 of 80 samples: five rounds of four instead of twenty.
        ("first", [[4, 4]] * 5),
        ("each", [[4, 4]] * 5 + [[0, 4]] * 15),
    ],
)
def test_a_cut_to_a_quarter_ends_its_part_after_a_quarter_of_the_rounds(ends, rows):
    algorithm = Pledged(batch_size=4, passes=2, ends=ends, commitment=(40, 40))
    assert len(rounds_of(algorithm, [40, 40])) == 20
    assert rounds_of(algorithm, [10, 40]).tolist() == rows


def test_who_brings_more_than_it_has_pledged_is_not_asked_for_it():
    algorithm = Pledged(batch_size=4, passes=2, commitment=(10, 10), ends="each")
    assert rounds_of(algorithm, [10, 50]).tolist() == [[4, 4]] * 5


def test_who_has_pledged_nothing_draws_nothing_whatever_it_brings():
    algorithm = Pledged(batch_size=4, passes=1, commitment=(8, 0))
    assert rounds_of(algorithm, [8, 8]).tolist() == [[4, 0]] * 2


def test_who_brings_none_of_its_pledge_ends_training_at_once():
    algorithm = Pledged(batch_size=4, passes=1, commitment=(8, 8))
    assert rounds_of(algorithm, [8, 0]).tolist() == [[4, 0]]


@pytest.mark.parametrize(
    ("ends", "expected"),
    # One of 1 point is drawn 1.5 times, of 1,000 points 1,500 times, in 751 rounds at two a round:
    # 750.75 exactly. Counting one sample for the first would end it all after 501.
    [("first", 751), ("each", 751)],
)
def test_a_pledge_of_one_point_and_half_a_pass_does_not_end_it_all_too_soon(ends, expected):
    algorithm = Pledged(rounds=2000, batch_size=1, passes=1.5, ends=ends)
    rows = rounds_of(algorithm, [1, 1000], most=2000)
    assert len(rows) == expected


pledges = st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any)


@given(pledges, st.integers(1, 12), st.integers(1, 4), st.sampled_from(["first", "each"]))
def test_at_full_contributions_all_pledges_are_used_up_in_the_same_round(theta, m, passes, ends):
    algorithm = Pledged(rounds=4000, batch_size=m, passes=passes, ends=ends)
    rows = rounds_of(algorithm, theta, most=4000)
    assert rows.sum(axis=0).tolist() == [passes * n for n in theta]
    a_round = m * sum(n > 0 for n in theta)
    assert len(rows) == math.ceil(passes * sum(theta) / a_round)
    # Only the last round may be short, and rounding moves less than one sample of each.
    assert (abs(rows[:-1].sum(axis=1) - a_round) < len(theta)).all()


@given(pledges, st.data(), st.integers(1, 12), st.sampled_from([0.5, 1.0, 2.3, 4.0]))
def test_nobody_draws_more_than_its_points_are_good_for(theta, data, m, passes):
    brought = data.draw(st.tuples(*(st.integers(0, n) for n in theta)).filter(any))
    for ends in ("first", "each"):
        algorithm = Pledged(batch_size=m, passes=passes, ends=ends, commitment=tuple(theta))
        drawn = rounds_of(algorithm, brought, most=4000).sum(axis=0)
        assert (drawn <= np.ceil(passes * np.array(brought) - 1e-9)).all()


@given(st.lists(st.integers(4, 60), min_size=2, max_size=5), st.data(), st.integers(1, 12))
def test_under_first_a_cut_shortens_training_for_all_in_proportion(theta, data, m):
    who = data.draw(st.integers(0, len(theta) - 1))
    left = data.draw(st.integers(1, theta[who]))
    algorithm = Pledged(batch_size=m, passes=3, commitment=tuple(theta))
    brought = [left if i == who else n for i, n in enumerate(theta)]
    whole, cut = rounds_of(algorithm, theta, most=4000), rounds_of(algorithm, brought, most=4000)
    exact = 3 * sum(theta) / (m * len(theta))
    assert len(cut) == math.ceil(exact * left / theta[who] - 1e-9)
    # As long as it lasts the others draw as ever; they are let down in the end.
    others = np.arange(len(theta)) != who
    assert (cut[:, others] == whole[: len(cut), others]).all()


# Stopping at the goal.


def test_training_stops_after_so_many_tests_in_a_row_at_which_all_have_their_accuracy():
    algorithm = Pledged(batch_size=1, passes=9, stop_after=2, evaluate_every=3)
    high, low = [0.8, 0.9], [0.8, 0.79]
    # Rounds are counted from 0: tests come in rounds 2, 5, 8, 11, 14.
    found = {2: high, 5: low, 8: high, 11: high, 14: high}
    assert len(rounds_of(algorithm, [20, 20], found.__getitem__)) == 12
    assert [n for n in range(15) if algorithm.tests(n)] == [2, 5, 8, 11, 14]


def test_without_stop_after_the_goal_is_not_tested():
    algorithm = Pledged(evaluate_every=3)
    assert not any(algorithm.tests(n) for n in range(9))
    assert [n for n in range(9) if algorithm.evaluates(n)] == [2, 5, 8]


@pytest.mark.parametrize("its_own", [0.5, math.nan])
def test_who_brings_nothing_or_is_not_heard_is_not_taken_for_satisfied(its_own):
    algorithm = Pledged(batch_size=1, passes=2, stop_after=1, evaluate_every=1)
    rows = rounds_of(algorithm, [5, 0], lambda n: [0.9, its_own])
    assert len(rows) == 10
    assert len(rounds_of(algorithm, [5, 0], lambda n: [0.9, 0.8])) == 1


# Commitments.


def test_clients_commit_themselves_once():
    algorithm = Pledged(passes=3)
    committed = algorithm.committed([np.int64(5), 7])
    assert committed == Pledged(passes=3, commitment=(5, 7))
    assert committed.committed([1, 2]) is committed
    assert committed.to_dict() != algorithm.to_dict()


def test_what_is_brought_is_what_is_pledged_where_nothing_was_said():
    bare, told = Pledged(batch_size=3), Pledged(batch_size=3, commitment=(9, 4, 0))
    assert np.array_equal(rounds_of(bare, [9, 4, 0]), rounds_of(told, [9, 4, 0]))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"passes": 0}, "passes must be a number above 0; got 0"),
        ({"passes": math.nan}, "passes must be a number above 0"),
        ({"ends": "last"}, "ends must be one of first, each; got 'last'"),
        ({"stop_after": 0}, "stop_after must be a whole number of 1 or more"),
        ({"commitment": (0, 0)}, r"commitment must be above 0 for some client; got \(0, 0\)"),
        ({"commitment": (1.5, 2)}, r"commitment must be .* got \(1.5, 2\)"),
        ({"commitment": (-1, 2)}, "commitment must be"),
        ({"commitment": (True, 2)}, "commitment must be"),
        ({"commitment": 5}, "commitment must be a list .* got 5"),
        ({"commitment": "56"}, "commitment must be a list .* got '56'"),
        ({"commitment": []}, "commitment must be"),
    ],
)
def test_settings_that_no_training_could_follow_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        Pledged(**settings)


def test_as_many_commitments_as_clients_are_needed():
    with pytest.raises(InputError, match="3 clients need one commitment each; got 2"):
        Session(Pledged(commitment=(1, 2)), "abc", np.array([3, 3, 3]), np.full(3, 0.5), seed=0)


def test_a_list_is_taken_as_from_a_config():
    assert Pledged(commitment=[3, 0]).commitment == (3, 0)


# In training.


@pytest.mark.parametrize("form", ["pooled", "local"])
@pytest.mark.parametrize("ends", ["first", "each"])
def test_the_quick_loop_trains_to_pledges_as_the_plain_one_does(form, ends):
    federation = small_federation(requirement=0.7)
    algorithm = Pledged(
        rounds=40,
        batch_size=5,
        passes=2,
        ends=ends,
        commitment=(30, 0, 20),
        stop_after=3,
        learning_rate=0.02,
        evaluate_every=3,
        form=form,
    )
    options = {"contributions": [30, 0, 10], "seed": 4}
    quick = train(federation, algorithm, **options)
    plain = train_plainly(federation, algorithm, **options)
    assert quick.samples.tolist() == plain.samples.tolist()
    assert quick.loss == pytest.approx(plain.loss, rel=1e-9, nan_ok=True)
    assert quick.accuracy == pytest.approx(plain.accuracy, nan_ok=True)


def test_the_round_in_which_pledges_are_used_up_is_evaluated():
    federation = small_federation(requirement=UNREACHABLE)
    algorithm = Pledged(rounds=99, batch_size=6, passes=1, evaluate_every=50)
    history = train(federation, algorithm, contributions=[12, 12, 12], seed=1)
    assert len(history.samples) == 2
    assert np.isnan(history.accuracy[0]).all()
    assert np.isfinite(history.final).all()
    assert history.unique[-1].tolist() == [12, 12, 12]


def test_fewer_rounds_than_the_pledges_take_are_refused():
    """94 points five times, at six a round, take 79 rounds; without them no cut would be felt."""
    federation = small_federation()
    history = train(federation, Pledged(rounds=79, batch_size=2, passes=5), seed=1)
    assert len(history.samples) == 79
    words = "takes 79 rounds to draw 94 samples 5 times, and rounds is 78: set rounds to 79 or more"
    with pytest.raises(InputError, match=words):
        train(federation, Pledged(rounds=78, batch_size=2, passes=5), seed=1)
