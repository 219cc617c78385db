"""An algorithm under way: every hook is called when and with what it should be, in both loops."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from federation.small import small_federation
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fedaccord import InputError
from fedaccord.federation.algorithms.base import Algorithm, FedAvg
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.history import Session
from fedaccord.federation.training.loop import is_right, train
from fedaccord.federation.training.reference import train_plainly

GOALS = np.array([0.5, 0.6, 0.7])
BOTH = pytest.mark.parametrize("loop", [train, train_plainly])


def session(algorithm, contributions=(10, 20, 30)):
    return Session(algorithm, "abc", np.array(contributions), GOALS, seed=0)


def record(under_way, accuracies):
    """Record a round of no samples, and return its accuracies."""
    under_way.record_round(np.zeros(3, dtype=int), np.zeros(3, dtype=int), np.zeros(3))
    under_way.record_accuracies(np.array(accuracies))
    return under_way.accuracies.tolist()


@dataclass(frozen=True, kw_only=True)
class Scripted(Algorithm):
    """Does what it is told, and notes what it is told in its turn.

    leaving: after which goal test, counted from 1, each client leaves; 0 for never.
    ending: after how many rounds it ends; 0 for never.
    ending_tests: after how many goal tests it ends; 0 for never.
    few: how many points a goal test looks at; 0 for all.
    """

    notes: ClassVar[list] = []

    leaving: tuple[int, ...] = (0, 0, 0)
    ending: int = 0
    ending_tests: int = 0
    few: int = 0
    every: int = 1

    @property
    def goal_test_points(self):
        return self.few or None

    def tests(self, n):
        return (n + 1) % self.every == 0

    def begin(self, contributions):
        self.notes.clear()
        self.notes.append(("begin", contributions.tolist()))
        return (0, 0)

    def allot(self, state):
        return np.full(3, self.batch_size * self.local_batches)

    def drew(self, state, counts):
        self.notes.append(("drew", state[0], counts.tolist()))
        return (state[0] + 1, state[1])

    def weights(self, state, accuracies, requirements):
        self.notes.append(("weights", state[0], np.array(accuracies), requirements.tolist()))
        return (state[0], state[1] + 1)

    def combine(self, state, updates, counts, clients):
        self.notes.append(("combine", state[0], counts.tolist(), np.array(clients).tolist()))
        return self.aggregate(updates, counts)

    def left(self, state):
        return np.array([0 < n <= state[1] for n in self.leaving])

    def ended(self, state):
        return 0 < self.ending <= state[0] or 0 < self.ending_tests <= state[1]


def noted(what):
    return [entry[1:] for entry in Scripted.notes if entry[0] == what]


# By itself.


def test_who_brings_nothing_or_has_left_is_asked_for_nothing():
    under_way = session(Scripted(batch_size=4, leaving=(0, 0, 1)), (10, 0, 30))
    assert under_way.allot().tolist() == [4, 0, 4]
    assert under_way.test(np.array([0.1, 0.2, 0.9])).tolist() == [2]
    assert under_way.allot().tolist() == [4, 0, 0]
    assert under_way.left.tolist() == [False, False, True]


def test_who_leaves_is_told_once_and_keeps_its_accuracy():
    under_way = session(Scripted(leaving=(2, 1, 0)))
    assert under_way.test(np.array([0.1, 0.65, 0.2])).tolist() == [1]
    assert under_way.test(np.array([0.55, 0.3, 0.2])).tolist() == [0]
    assert under_way.test(np.array([0.0, 0.0, 0.0])).tolist() == []
    assert record(under_way, [0.9, 0.9, 0.9]) == [0.55, 0.65, 0.9]
    # The algorithm, too, is told what clients left with, not what has become of the model.
    seen = [accuracies.tolist() for _, accuracies, _ in noted("weights")]
    assert seen == [[0.1, 0.65, 0.2], [0.55, 0.65, 0.2], [0.55, 0.65, 0.0]]


def test_nobody_returns_whatever_the_algorithm_says_later():
    class Fickle(Scripted):
        def left(self, state):
            return np.array([state[1] == 1, False, False])

    under_way = session(Fickle(batch_size=4))
    assert under_way.test(np.array([0.6, 0.1, 0.1])).tolist() == [0]
    assert under_way.test(np.array([0.1, 0.1, 0.1])).tolist() == []
    assert under_way.allot().tolist() == [0, 4, 4]
    assert record(under_way, [0, 0, 0])[0] == 0.6


def test_who_leaves_unheard_leaves_once_all_the_same():
    under_way = session(Scripted(leaving=(1, 0, 0)))
    assert under_way.test(np.array([np.nan, 0.1, 0.1])).tolist() == [0]
    assert under_way.test(np.array([0.9, 0.1, 0.1])).tolist() == []
    assert under_way.left.tolist() == [True, False, False]


def test_looking_at_who_has_left_changes_nothing():
    under_way = session(Scripted(leaving=(1, 0, 0)))
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            under_way.left[:] = True
        under_way.test(np.zeros(3))
    assert under_way.left.tolist() == [True, False, False]


@pytest.mark.parametrize("passes_off", [True, False])
def test_who_brings_nothing_is_passed_off_as_satisfied_where_the_algorithm_says_so(passes_off):
    class Told(Scripted):
        passes_off_idle = passes_off

    session(Told(), (10, 0, 30)).test(np.array([0.1, 0.2, 0.3]))
    ((_, accuracies, requirements),) = noted("weights")
    assert accuracies.tolist() == [0.1, np.inf if passes_off else 0.2, 0.3]
    assert requirements == GOALS.tolist()


@pytest.mark.parametrize("hook", ["drew", "weights"])
def test_a_hook_that_forgets_to_return_the_state_is_named(hook):
    forgetful = type("Forgetful", (Scripted,), {hook: lambda self, *given: None})
    under_way = session(forgetful())
    with pytest.raises(InputError, match=f"{hook} of Forgetful returned None; .* the next state"):
        record(under_way, [0, 0, 0]) if hook == "drew" else under_way.test(np.zeros(3))


@pytest.mark.parametrize("given", [np.array([True, False]), np.zeros(3), True, [1, 0, 1]])
def test_leaving_that_is_not_said_of_everybody_is_refused(given):
    odd = type("Odd", (Scripted,), {"left": lambda self, state: given})
    with pytest.raises(InputError, match="left of Odd must return true or false for each of the 3"):
        session(odd()).test(np.zeros(3))


@pytest.mark.parametrize("given", [[-99, 0, 0], [0.5, 0, 0], [0, 0], [0, 0, 1], "none"])
def test_calls_that_are_no_counts_within_the_limits_are_refused(given):
    # Without a reserve, nothing can be called.
    odd = type("Odd", (Scripted,), {"called": lambda self, state: given})
    with pytest.raises(
        InputError, match=r"called of Odd must return 3 whole numbers, .* its limits"
    ):
        _ = session(odd()).brought


@pytest.mark.parametrize("algorithm", [FedAvg(), MwFed()])
def test_algorithms_without_these_hooks_are_as_ever(algorithm):
    under_way = session(algorithm)
    for _ in range(3):
        assert under_way.allot().tolist() == [64, 64, 64]
        counts = under_way.allot()
        under_way.record_round(counts, counts, np.zeros(3))
        assert under_way.test(np.array([0.9, 0.9, 0.9])).tolist() == []
    assert not under_way.left.any() and not under_way.ended
    assert algorithm.committed([1, 2, 3]) is algorithm
    assert algorithm.averages
    assert not Scripted().averages


# In the loops.


@BOTH
def test_hooks_are_called_in_order_with_what_happened(loop):
    algorithm = Scripted(rounds=5, batch_size=4, every=2, leaving=(0, 0, 1), optimizer="sgd")
    history = loop(small_federation(), algorithm, contributions=[9, 0, 12], seed=2)
    kinds = [entry[0] for entry in Scripted.notes]
    a_round, tested = ["combine", "drew"], ["combine", "drew", "weights"]
    assert kinds == ["begin", *a_round, *tested, *a_round, *tested, *a_round]
    assert noted("begin") == [([9, 0, 12],)]
    # Client 2 leaves at the first test. Places are those among all clients.
    assert noted("combine") == [
        (0, [4, 4], [0, 2]),
        (1, [4, 4], [0, 2]),
        (2, [4], [0]),
        (3, [4], [0]),
        (4, [4], [0]),
    ]
    assert noted("drew") == [(n, row) for n, row in enumerate(history.samples.tolist())]
    for (_, accuracies, _), n in zip(noted("weights"), (1, 3), strict=True):
        assert_array_equal(accuracies[[0, 2]], history.accuracy[n, [0, 2]])
        assert accuracies[1] == np.inf
    assert list(history.checkpoints) == ["client 2"]


@BOTH
@pytest.mark.parametrize("form", ["pooled", "local"])
def test_a_round_that_ends_it_is_evaluated_and_the_last(loop, form):
    algorithm = Scripted(rounds=9, batch_size=4, ending=3, every=50, evaluate_every=50, form=form)
    history = loop(small_federation(), algorithm, seed=2)
    assert len(history.samples) == 3
    assert np.isnan(history.accuracy[:2]).all()
    assert np.isfinite(history.final).all()


@BOTH
def test_a_test_on_some_points_that_ends_it_is_followed_by_an_evaluation_on_all(loop):
    federation = small_federation()
    algorithm = Scripted(rounds=9, batch_size=4, ending_tests=2, few=2, evaluate_every=50)
    history = loop(federation, algorithm, seed=2)
    assert len(history.samples) == 2
    assert np.isnan(history.accuracy[0]).all()
    # Each has 18 validation points, and two of them say nothing of thirds.
    assert history.final.tolist() == accuracies_with(federation, history.weights)
    assert len(noted("weights")) == 2


def accuracies_with(federation, weights):
    model = federation.model()
    model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    return [
        float(is_right(model, client.validation_inputs, client.validation_labels).mean())
        for client in federation.clients
    ]


@settings(max_examples=15)
@given(
    leaving=st.tuples(*(st.integers(0, 4) for _ in range(3))),
    every=st.integers(1, 3),
    ending=st.integers(0, 7),
    evaluate_every=st.integers(1, 4),
    form=st.sampled_from(["pooled", "local"]),
    brought=st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)),
)
def test_who_leaves_draws_no_more_and_its_checkpoint_has_its_accuracy(
    leaving, every, ending, evaluate_every, form, brought
):
    federation = small_federation()
    algorithm = Scripted(
        rounds=6,
        batch_size=3,
        learning_rate=0.05,
        leaving=leaving,
        every=every,
        ending=ending,
        evaluate_every=evaluate_every,
        form=form,
    )
    history = train(federation, algorithm, contributions=list(brought), seed=3)
    rounds = min(ending or 6, 6)
    assert len(history.samples) == rounds
    for i, name in enumerate(federation.names):
        last = leaving[i] * every
        leaves = 0 < last <= rounds
        assert (name in history.checkpoints) == leaves
        drawing = last if leaves else rounds
        assert (history.samples[:drawing, i] == (3 if brought[i] else 0)).all()
        assert not history.samples[drawing:, i].any()
        if leaves:
            kept = history.accuracy[last - 1 :, i]
            assert set(kept[~np.isnan(kept)]) == {history.final[i]}
            assert accuracies_with(federation, history.checkpoints[name])[i] == history.final[i]
        else:
            assert accuracies_with(federation, history.weights)[i] == history.final[i]


def test_checkpoints_are_copies_of_then():
    algorithm = Scripted(rounds=4, batch_size=3, leaving=(1, 2, 0), learning_rate=0.1)
    history = train(small_federation(), algorithm, seed=1)
    first, second, final = (
        weights["0.weight"] for weights in (*history.checkpoints.values(), history.weights)
    )
    assert not np.allclose(first, second)
    assert not np.allclose(second, final)


def test_a_round_that_diverges_is_the_last_and_not_tested():
    def linear():
        return torch.nn.Sequential(torch.nn.Linear(4, 9), torch.nn.Linear(9, 3)).double()

    algorithm = Scripted(rounds=5, batch_size=4, learning_rate=1e308, optimizer="sgd", ending=5)
    history = train(small_federation(model=linear), algorithm, seed=1)
    assert history.diverged
    assert len(history.samples) < 5
    assert len(noted("weights")) == len(history.samples) - 1
