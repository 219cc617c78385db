"""Who has what it wants leaves, is held, or is asked for less: by hand, by theorem, in training."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from federation.small import blobs, small_federation, two_layers
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch.nn.functional import cross_entropy

from fedaccord import InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.hold_back import HoldBack, project_off
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.algorithms.mw_relief import RelievedMwFed
from fedaccord.federation.algorithms.release import Release
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.history import Session
from fedaccord.federation.training.loop import is_right, train
from fedaccord.federation.training.reference import train_plainly

GOALS = np.array([0.7, 0.7, 0.7])


def session(algorithm, contributions=(10, 20, 30)):
    return Session(algorithm, "abc", np.array(contributions), GOALS, seed=0)


@dataclass(frozen=True, kw_only=True)
class Blasted(Release):
    """RELEASE that makes nothing of a model once somebody has left."""

    def aggregate(self, updates, counts):
        mean = super().aggregate(updates, counts)
        return mean if len(updates) > 1 else mean * math.nan


@pytest.mark.parametrize("run", [train, train_plainly])
def test_who_left_before_training_diverged_has_what_it_left_with(run):
    clients = [
        Client(name, train=blobs(30, 0, i), validation=blobs(18, 0, 9 + i), requirement=wants)
        for i, (name, wants) in enumerate([("content", 0.05), ("never", 1.0)])
    ]
    algorithm = Blasted(
        rounds=12, batch_size=8, evaluate_every=3, learning_rate=0.05, evaluations=1
    )
    history = run(Federation(clients, two_layers), algorithm)
    assert history.diverged and list(history.checkpoints) == ["content"]
    # Its model is its own, whatever became of the other.
    assert history.final[0] == history.accuracy[2, 0] >= 0.05
    assert math.isnan(history.final[1])
    assert history.satisfied.tolist() == [True, False]


# RELEASE


def test_release_over_four_tests_worked_by_hand():
    under_way = session(Release(batch_size=8, factor=3.0, evaluations=2))
    assert under_way.allot().tolist() == [8, 8, 8]
    assert under_way.test(np.array([0.5, 0.7, 0.9])).tolist() == []
    # Weights 3 1 1 of 24: 14.4 4.8 4.8, one each to the two largest remainders.
    assert under_way.allot().tolist() == [14, 5, 5]
    assert under_way.test(np.array([0.6, 0.69, 0.8])).tolist() == [2]
    # Weights 9 3 of the 16 samples of two clients.
    assert under_way.allot().tolist() == [12, 4, 0]
    assert under_way.test(np.array([0.8, 0.8, 0.0])).tolist() == []
    assert under_way.allot().tolist() == [12, 4, 0]
    assert under_way.test(np.array([0.8, 0.8, 0.0])).tolist() == [0, 1]
    assert under_way.allot().tolist() == [0, 0, 0]
    assert under_way.ended


def test_who_fails_once_begins_to_count_anew():
    under_way = session(Release(evaluations=3))
    high, low = [0.8, 0.8, 0.8], [0.1, 0.8, 0.8]
    found = [under_way.test(np.array(one)).tolist() for one in (high, high, low, high, high, high)]
    assert found == [[], [], [1, 2], [], [], [0]]


def test_who_was_not_heard_has_neither_passed_nor_failed():
    under_way = session(Release(batch_size=4, evaluations=2))
    under_way.test(np.array([0.8, 0.1, 0.1]))
    assert under_way.test(np.array([np.nan, 0.1, 0.1])).tolist() == []
    # Its weight is not raised either: 1 4 4.
    assert under_way.allot().tolist() == [2, 5, 5]
    assert under_way.test(np.array([0.8, 0.1, 0.1])).tolist() == [0]


def test_who_brings_nothing_leaves_when_it_truly_has_its_accuracy():
    under_way = session(Release(batch_size=4, evaluations=2), (10, 0, 30))
    assert under_way.allot().tolist() == [4, 0, 4]
    low, high = np.array([0.1, 0.6, 0.1]), np.array([0.1, 0.7, 0.1])
    assert [under_way.test(a).tolist() for a in (low, low, high, high)] == [[], [], [], [1]]
    # What it cannot bring is taken from nobody, however short it was.
    assert under_way.allot().tolist() == [4, 0, 4]
    assert not under_way.ended


def test_it_is_over_when_nobody_is_left_to_draw_from():
    under_way = session(Release(evaluations=1), (10, 0, 30))
    assert under_way.test(np.array([0.9, 0.1, 0.1])).tolist() == [0]
    assert not under_way.ended
    assert under_way.test(np.array([0.9, 0.1, 0.9])).tolist() == [2]
    assert under_way.ended


def test_release_tests_at_evaluations_alone():
    algorithm = Release(evaluate_every=4, rounds=10)
    assert [n for n in range(10) if algorithm.tests(n)] == [3, 7]
    assert [n for n in range(10) if algorithm.evaluates(n)] == [3, 7, 9]


@given(
    st.integers(1, 5),
    st.integers(1, 9),
    st.lists(st.lists(st.sampled_from([0.1, 0.9]), min_size=4, max_size=4), max_size=9),
)
def test_a_round_has_as_many_samples_as_clients_that_are_there(evaluations, m, tests):
    brought = np.array([5, 0, 3, 9])
    algorithm = Release(batch_size=m, local_batches=2, evaluations=evaluations)
    under_way = Session(algorithm, "abcd", brought, np.full(4, 0.7), seed=0)
    gone = np.zeros(4, dtype=bool)
    for accuracies in tests:
        counts = under_way.allot()
        assert counts.sum() == 2 * m * np.count_nonzero((brought > 0) & ~gone)
        assert not counts[gone].any()
        under_way.test(np.array(accuracies))
        assert (under_way.left >= gone).all()
        gone = under_way.left


def uneven(goals=(0.75, 0.9, 0.6)):
    """Three clients of different goals, so that they have them at different times."""
    parts = [(blobs(24, 0.3 * i, seed=i), blobs(40, 0.3 * i, seed=50 + i)) for i in range(3)]
    clients = [
        Client(f"client {i}", *sets, requirement=goal)
        for i, (sets, goal) in enumerate(zip(parts, goals, strict=True))
    ]
    return Federation(clients, two_layers)


@pytest.mark.parametrize("form", ["pooled", "local"])
@pytest.mark.parametrize("brought", [[24, 24, 24], [24, 24, 0]])
def test_who_is_released_has_its_accuracy_and_keeps_the_model_that_gave_it(form, brought):
    federation = uneven()
    algorithm = Release(
        rounds=80, batch_size=6, learning_rate=0.02, evaluate_every=2, evaluations=2, form=form
    )
    history = train(federation, algorithm, contributions=brought, seed=2)
    assert len(history.checkpoints) >= 2
    assert len({len(np.flatnonzero(column)) for column in history.samples.T}) > 1
    for i, client in enumerate(federation.clients):
        if client.name not in history.checkpoints:
            continue
        model = federation.model()
        kept = history.checkpoints[client.name]
        model.load_state_dict({name: torch.tensor(value) for name, value in kept.items()})
        right = is_right(model, client.validation_inputs, client.validation_labels)
        assert right.mean() == history.final[i] >= client.requirement
        # It left at the second of two evaluations in a row, and drew nothing afterwards.
        evaluated = history.accuracy[1::2, i] >= client.requirement
        second = next(n for n in range(1, len(evaluated)) if evaluated[n - 1] and evaluated[n])
        assert not history.samples[2 * (second + 1) :, i].any()
        assert (history.samples[: 2 * (second + 1), i] > 0).all() == (brought[i] > 0)


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_release_agrees_with_the_plain_loop(form):
    algorithm = Release(
        rounds=60, batch_size=6, learning_rate=0.02, evaluate_every=3, evaluations=2, form=form
    )
    assert_agree(uneven(), algorithm, contributions=[24, 0, 20])


def assert_agree(federation, algorithm, **options):
    quick = train(federation, algorithm, seed=3, **options)
    plain = train_plainly(federation, algorithm, seed=3, **options)
    assert quick.samples.tolist() == plain.samples.tolist()
    assert quick.loss == pytest.approx(plain.loss, rel=1e-8, nan_ok=True)
    assert quick.accuracy == pytest.approx(plain.accuracy, nan_ok=True)
    assert list(quick.checkpoints) == list(plain.checkpoints)
    for name, weights in {"": quick.weights, **quick.checkpoints}.items():
        other = plain.checkpoints[name] if name else plain.weights
        for part, value in weights.items():
            assert_allclose(value, other[part], rtol=1e-7, atol=1e-9)
    return quick


# HOLD-BACK

vectors = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(vectors, st.integers(1, 12), st.integers(1, 5))
def test_what_is_projected_is_orthogonal_and_the_rest_is_in_the_span(random, length, many):
    directions = list(
        random.normal(size=(many, length)) * 10.0 ** random.integers(-6, 6, (many, 1))
    )
    vector = random.normal(size=length)
    left = project_off(vector, directions)
    scale = np.linalg.norm(directions, axis=1)
    assert_allclose(np.array(directions) @ left / scale, 0, atol=1e-9)
    # By least squares, which is another way to the same.
    columns = (np.array(directions) / scale[:, None]).T
    best, *_ = np.linalg.lstsq(columns, vector, rcond=1e-9)
    assert_allclose(left, vector - columns @ best, atol=1e-7)


@given(vectors, st.integers(2, 6))
def test_directions_that_depend_on_each_other_count_once(random, length):
    one, other = random.normal(size=(2, length + 3))
    vector = random.normal(size=length + 3)
    twice = [one, other, one + other, 2 * one, 0 * one, one * (1 + 1e-12)]
    assert_allclose(project_off(vector, twice), project_off(vector, [one, other]), atol=1e-8)


def test_nothing_is_left_of_a_vector_in_the_span_and_all_where_there_is_none():
    vector = np.array([1.0, 2.0, 3.0])
    assert_allclose(project_off(vector, [vector * 7]), 0, atol=1e-12)
    assert project_off(vector, [np.zeros(3)]).tolist() == vector.tolist()


def test_what_comes_is_of_the_kind_that_went_in():
    tensor = project_off(torch.tensor([1.0, 1.0]), [torch.tensor([2.0, 0.0])])
    assert tensor.dtype == torch.float32
    assert tensor.tolist() == [0, 1]
    array = project_off(np.array([1, 1], dtype=np.float32), [np.array([0, 3], dtype=np.float32)])
    assert array.dtype == np.float32
    assert array.tolist() == [1, 0]


def test_a_gradient_that_is_not_finite_spoils_the_step_and_nothing_else():
    found = project_off(torch.ones(2), [torch.tensor([math.inf, 0.0])])
    assert torch.isnan(found).all()


def test_holding_back_worked_by_hand():
    under_way = session(HoldBack(batch_size=4))
    gradients = [torch.tensor(g) for g in ([1.0, 1.0, 0.0], [3.0, 0.0, 2.0], [0.0, 5.0, 0.0])]
    counts = np.array([4, 4, 4])
    # Nobody is satisfied yet: the mean of all.
    assert_allclose(under_way.combine(gradients, counts, [0, 1, 2]), [4 / 3, 2, 2 / 3], rtol=1e-6)
    under_way.test(np.array([0.1, 0.1, 0.7]))
    # The mean of the first two, (2, .5, 1), without its second coordinate.
    assert_allclose(under_way.combine(gradients, counts, [0, 1, 2]), [2, 0, 1], atol=1e-6)
    # A client that drew more counts for more: (1.5, .75, .5) by 3 to 1.
    uneven = under_way.combine(gradients, np.array([6, 2, 4]), [0, 1, 2])
    assert_allclose(uneven, [1.5, 0, 0.5], atol=1e-6)
    # Who was satisfied and drew nothing is not held back for; places are those among all.
    assert_allclose(under_way.combine(gradients[:2], counts[:2], [0, 1]), [2, 0.5, 1], atol=1e-6)
    assert_allclose(under_way.combine(gradients[1:], counts[1:], [1, 2]), [3, 0, 2], atol=1e-6)
    assert not under_way.ended
    under_way.test(np.array([0.7, 0.8, 0.9]))
    assert under_way.ended


def test_who_is_satisfied_no_longer_learns_again():
    under_way = session(HoldBack())
    gradients, counts = [torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])], np.array([4, 4])
    under_way.test(np.array([0.1, 0.9, 0.1]))
    assert_allclose(under_way.combine(gradients, counts, [0, 1]), [0.5, -0.5], atol=1e-6)
    under_way.test(np.array([0.1, 0.6, 0.1]))
    assert_allclose(under_way.combine(gradients, counts, [0, 1]), [1, 0.5], atol=1e-6)


def test_where_only_those_are_short_that_bring_nothing_the_step_is_on_all():
    under_way = session(HoldBack(), (10, 0, 30))
    under_way.test(np.array([0.9, 0.2, 0.9]))
    assert not under_way.ended
    gradients = [torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])]
    assert under_way.combine(gradients, np.array([4, 4]), [0, 2]).tolist() == [0.5, 0.5]
    under_way.test(np.array([0.9, 0.7, 0.9]))
    assert under_way.ended


def test_holding_back_needs_gradients():
    with pytest.raises(InputError, match=r'HOLD-BACK projects .*: set form to "pooled"'):
        HoldBack(form="local")


def test_everybody_draws_alike_and_tests_come_at_evaluations():
    algorithm = HoldBack(batch_size=3, local_batches=2, evaluate_every=5)
    assert algorithm.allot(algorithm.begin(np.ones(3))).tolist() == [6, 6, 6]
    assert [n for n in range(11) if algorithm.tests(n)] == [4, 9]


def test_a_step_costs_the_satisfied_nothing_to_first_order():
    """One step of plain gradient descent on all points: loss changes by the square of the rate."""
    federation = uneven(goals=(0.999, 0.999, 0.05))
    torch.manual_seed(0)
    start = {k: v.numpy().copy() for k, v in two_layers().state_dict().items()}
    federation = Federation(federation.clients, two_layers, weights=start)

    def loss_of_the_satisfied(weights):
        model = two_layers()
        model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        client = federation.clients[2]
        return float(cross_entropy(model(client.inputs), client.labels).detach())

    def change(rate, algorithm):
        # The first round makes the test; the second is the step that is looked at.
        settings = {"batch_size": 24, "learning_rate": rate, "optimizer": "sgd"}
        before = train(federation, algorithm(rounds=1, evaluate_every=1, **settings))
        after = train(federation, algorithm(rounds=2, evaluate_every=1, **settings))
        return loss_of_the_satisfied(after.weights) - loss_of_the_satisfied(before.weights)

    held, free = ([abs(change(rate, kind)) for rate in (0.02, 0.01)] for kind in (HoldBack, FedAvg))
    # Half the rate is half the change, or for who is held back a quarter.
    assert free[0] / free[1] == pytest.approx(2, rel=0.1)
    assert held[0] / held[1] == pytest.approx(4, rel=0.1)
    assert held[1] < free[1] / 20


@pytest.mark.parametrize("local_batches", [1, 2])
def test_holding_back_agrees_with_the_plain_loop(local_batches):
    algorithm = HoldBack(
        rounds=24, batch_size=5, learning_rate=0.02, evaluate_every=2, local_batches=local_batches
    )
    history = assert_agree(uneven(), algorithm, contributions=[24, 20, 24])
    held = (history.accuracy >= history.requirements).sum(axis=1)
    assert ((held > 0) & (held < 3)).any()


# MW-RELIEF


def test_relief_over_four_rounds_worked_by_hand():
    algorithm = RelievedMwFed(batch_size=8, factor=4.0, relief=2.0)
    state = algorithm.init(3)
    weights = []
    for accuracies in ([0.1, 0.7, 0.1], [0.1, 0.9, 0.8], [0.8, 0.1, 0.8], [0.8, 0.8, 0.8]):
        state = algorithm.weights(state, np.array(accuracies), GOALS)
        weights.append(np.exp(state))
    assert_allclose(weights, [[4, 1, 4], [16, 1, 2], [8, 4, 1], [4, 2, 1]])
    # Of 24 samples by 4 : 2 : 1 that is 13.7 6.9 3.4.
    assert algorithm.allot(state).tolist() == [14, 7, 3]


def test_a_weight_is_never_below_one_and_who_was_not_heard_keeps_its_own():
    algorithm = RelievedMwFed(factor=2.0, relief=10.0)
    state = algorithm.weights(np.log([3.0, 30.0, 5.0]), np.array([0.9, 0.9, np.nan]), GOALS)
    assert_allclose(np.exp(state), [1, 3, 5])


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), max_size=12))
def test_without_relief_it_is_mw_fed(rounds):
    ours, theirs = RelievedMwFed(relief=1.0), MwFed()
    state = other = theirs.init(3)
    for accuracies in rounds:
        state = ours.weights(state, np.array(accuracies), GOALS)
        other = theirs.weights(other, np.array(accuracies), GOALS)
    assert state.tolist() == other.tolist()
    assert ours.allot(state).tolist() == theirs.allot(other).tolist()


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_relief_agrees_with_the_plain_loop(form):
    algorithm = RelievedMwFed(
        rounds=15, batch_size=5, learning_rate=0.02, relief=1.5, goal_points=9, form=form
    )
    assert_agree(small_federation(requirement=0.6), algorithm)


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (Release, {"factor": 0.5}, "factor must be a number of 1 or more"),
        (Release, {"evaluations": 0}, "evaluations must be a whole number of 1 or more"),
        (RelievedMwFed, {"relief": 0.5}, "relief must be a number of 1 or more; got 0.5"),
        (RelievedMwFed, {"factor": 0}, "factor must be a number of 1 or more"),
    ],
)
def test_settings_that_no_training_could_follow_are_refused(kind, settings, words):
    with pytest.raises(InputError, match=words):
        kind(**settings)
