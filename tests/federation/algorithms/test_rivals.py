"""AFL, q-FFL, FedProx, MaxFL, FedCE, Ditto and ON-DEMAND against a second implementation.

The second implementation is plain numpy on a linear softmax model, written from the papers'
formulas. It shares with the package only the samples that clients draw.
"""

import dataclasses
import warnings

import numpy as np
import pytest
from federation.small import blobs
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.afl import Afl, project_to_simplex
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.ditto import Ditto
from fedaccord.federation.algorithms.fed_ce import FedCe
from fedaccord.federation.algorithms.fed_prox import FedProx
from fedaccord.federation.algorithms.max_fl import MaxFl
from fedaccord.federation.algorithms.on_demand import OnDemand
from fedaccord.federation.algorithms.q_ffl import QFfl
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.training.loop import train
from fedaccord.federation.training.rng import Draws

SIZES = (20, 14, 26)
SGD = {"optimizer": "sgd", "rounds": 5, "batch_size": 8, "evaluate_every": 5}


def softmax_regression() -> nn.Module:
    model = nn.Linear(4, 3).double()
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def federation() -> Federation:
    clients = [
        Client(f"c{i}", blobs(n, 0.8 * i, i), blobs(30, 0.8 * i, 90 + i), 0.7)
        for i, n in enumerate(SIZES)
    ]
    return Federation(clients, softmax_regression)


class Plain:
    """The second implementation: draws, losses and gradients of a linear softmax model."""

    def __init__(self, seed: int = 3) -> None:
        self.data = [
            (c.inputs.numpy(), c.labels.numpy(), Draws(c.name, c.points, c.points, seed=seed))
            for c in federation().clients
        ]

    def batches(self, counts=(8, 8, 8)):
        found = []
        for (inputs, labels, draws), count in zip(self.data, counts, strict=True):
            rows = draws.draw(count)
            found.append((inputs[rows], labels[rows]))
        return found

    @staticmethod
    def loss(w, batch):
        inputs, labels = batch
        scores = inputs @ w[:, :4].T + w[:, 4]
        scores = scores - scores.max(axis=1, keepdims=True)
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = -np.log(chances[rows, labels]).mean()
        slope = chances.copy()
        slope[rows, labels] -= 1
        ones = np.column_stack([inputs, np.ones(len(inputs))])
        return loss, slope.T @ ones / len(labels)


def flat(history) -> np.ndarray:
    return np.column_stack([history.weights["weight"], history.weights["bias"]])


def simplex(v):
    """Project by bisection on the level, a second method."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(v - level, 0).sum() > 1 else (low, level)
    return np.maximum(v - low, 0)


def test_afl_descends_and_ascends_as_printed():
    plain, w, mixture = Plain(), np.zeros((3, 5)), np.full(3, 1 / 3)
    for _ in range(5):
        found = [plain.loss(w, batch) for batch in plain.batches()]
        following = simplex(mixture + 0.3 * np.array([loss for loss, _ in found]))
        w = w - 0.2 * sum(m * g for m, (_, g) in zip(mixture, found, strict=True))
        mixture = following
    trained = train(federation(), Afl(ascent=0.3, learning_rate=0.2, **SGD), seed=3)
    assert flat(trained) == pytest.approx(w, abs=1e-9)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_the_projection_is_the_nearest_point_of_the_simplex(values):
    found = project_to_simplex(np.array(values))
    assert found == pytest.approx(simplex(np.array(values)), abs=1e-9)
    assert found.sum() == pytest.approx(1) and (found >= 0).all()


def test_afl_stands_losses_that_are_huge_or_none():
    assert project_to_simplex(np.array([1e20, 1.0])).tolist() == [1, 0]
    start = Afl().begin(np.array([3, 3]))
    assert Afl().heard(start, np.array([np.nan, np.inf])).following.tolist() == [0.5, 0.5]
    assert Afl().heard(start, np.array([1e30, 1.0])).following.tolist() == [1, 0]


@pytest.mark.parametrize("q", [0.0, 1.0, 2.5])
def test_q_ffl_steps_as_q_fedsgd(q):
    plain, w, rate = Plain(), np.zeros((3, 5)), 0.3
    for _ in range(5):
        found = [plain.loss(w, batch) for batch in plain.batches()]
        steps = sum(loss**q * g for loss, g in found)
        h = sum(q * loss ** (q - 1) * (g * g).sum() + loss**q / rate for loss, g in found)
        w = w - steps / h
    trained = train(federation(), QFfl(q=q, learning_rate=rate, **SGD), seed=3)
    assert flat(trained) == pytest.approx(w, abs=1e-9)


def test_q_ffl_without_fairness_is_fedavg():
    fair = train(federation(), QFfl(q=0.0, learning_rate=0.3, **SGD), seed=3)
    plain = train(federation(), FedAvg(learning_rate=0.3, **SGD), seed=3)
    assert flat(fair) == pytest.approx(flat(plain), abs=1e-12)


def test_q_ffl_diverges_in_silence_where_q_is_far_too_large():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(federation(), QFfl(q=1e9, learning_rate=0.3, **SGD), seed=3).diverged


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_fedprox_pulls_local_steps_back(mu):
    plain, w, rate = Plain(), np.zeros((3, 5)), 0.3
    for _ in range(5):
        models = []
        for inputs, labels in plain.batches((16, 16, 16)):
            own = w.copy()
            for part in range(2):
                rows = slice(8 * part, 8 * part + 8)
                _, gradient = plain.loss(own, (inputs[rows], labels[rows]))
                own = own - rate * (gradient + mu * (own - w))
            models.append(own)
        w = sum(models) / 3
    settings = {**SGD, "local_batches": 2, "learning_rate": rate}
    trained = train(federation(), FedProx(mu=mu, **settings), seed=3)
    assert flat(trained) == pytest.approx(w, abs=1e-9)
    if not mu:
        averaged = train(federation(), FedAvg(form="local", **settings), seed=3)
        assert np.array_equal(flat(trained), flat(averaged))


def test_maxfl_weighs_clients_near_their_thresholds():
    plain, w, rho = Plain(), np.zeros((3, 5)), (0.4, 1.2, 5.0)
    for _ in range(5):
        found = [plain.loss(w, batch) for batch in plain.batches()]
        s = np.array(
            [1 / (1 + np.exp(-(loss - r))) for (loss, _), r in zip(found, rho, strict=True)]
        )
        parts = s * (1 - s) / (s * (1 - s)).sum()
        w = w - 0.3 * sum(p * g for p, (_, g) in zip(parts, found, strict=True))
    trained = train(federation(), MaxFl(thresholds=rho, learning_rate=0.3, **SGD), seed=3)
    assert flat(trained) == pytest.approx(w, abs=1e-9)
    with pytest.raises(InputError, match="one loss in thresholds for each of 3 clients"):
        train(federation(), MaxFl(thresholds=(1.0,), **SGD))


def test_fedce_weighs_by_direction_and_loss():
    plain, w = Plain(), np.zeros((3, 5))
    for _ in range(5):
        found = [plain.loss(w, batch) for batch in plain.batches()]
        total = sum(g for _, g in found)
        parts = []
        for loss, g in found:
            rest = total - g
            cosine = (g * rest).sum() / np.sqrt((g * g).sum() * (rest * rest).sum())
            parts.append((1 - cosine) * loss)
        parts = np.array(parts) / sum(parts)
        w = w - 0.3 * sum(p * g for p, (_, g) in zip(parts, found, strict=True))
    trained = train(federation(), FedCe(learning_rate=0.3, **SGD), seed=3)
    assert flat(trained) == pytest.approx(w, abs=1e-9)


def test_ditto_trains_a_model_for_each_client_near_the_common_one():
    plain, w = Plain(), np.zeros((3, 5))
    own = [w.copy() for _ in SIZES]
    for _ in range(5):
        batches = plain.batches()
        for i, batch in enumerate(batches):
            _, gradient = plain.loss(own[i], batch)
            own[i] = own[i] - 0.3 * (gradient + 0.7 * (own[i] - w))
        w = w - 0.3 * sum(plain.loss(w, batch)[1] for batch in batches) / 3
    trained = train(federation(), Ditto(pull=0.7, learning_rate=0.3, **SGD), seed=3)
    assert flat(trained) == pytest.approx(w, abs=1e-9)
    for i, client in enumerate(federation().clients):
        saved = trained.checkpoints[client.name]
        assert np.column_stack([saved["weight"], saved["bias"]]) == pytest.approx(own[i], abs=1e-9)
        # Clients are judged by their own models.
        scores = client.validation_inputs.numpy() @ own[i][:, :4].T + own[i][:, 4]
        right = (scores.argmax(axis=1) == client.validation_labels.numpy()).mean()
        assert trained.final[i] == pytest.approx(right)


def test_the_common_model_of_ditto_is_that_of_fedavg():
    common = train(federation(), Ditto(learning_rate=0.3, **SGD), seed=3)
    plain = train(federation(), FedAvg(learning_rate=0.3, **SGD), seed=3)
    assert np.array_equal(flat(common), flat(plain))


def test_on_demand_asks_for_samples_only_when_a_weight_has_doubled():
    algorithm = OnDemand(samples=12, rate=0.5, learning_rate=0.01, **SGD)
    state = algorithm.begin(np.array([20, 14, 26]))
    assert (algorithm.called(state) + state.contributions).tolist() == [4, 4, 4]
    # By hand: after losses 2, 0, 0 and rate .5 the first weight is e / (e + 2) = .576, which is
    # below twice 1/3; after the same again it is e^2 / (e^2 + 2) = .787, and 12 * .787 = 9.4.
    once = algorithm.heard(state, np.array([2.0, 0.0, 0.0]))
    assert (algorithm.called(once) + state.contributions).tolist() == [4, 4, 4]
    twice = algorithm.heard(once, np.array([2.0, 0.0, np.nan]))
    assert (algorithm.called(twice) + state.contributions).tolist() == [10, 4, 4]
    # Nobody is asked for more than it gives.
    most = dataclasses.replace(algorithm, samples=1000)
    assert (most.called(twice) + state.contributions).tolist() == [20, 14, 26]


def test_on_demand_uses_few_samples_of_clients_that_are_easy():
    inputs, labels = blobs(200, 0.0, 2)
    random = np.random.default_rng(5)
    noisy = inputs, np.where(random.random(200) < 0.6, random.integers(0, 3, 200), labels)
    clients = [Client(f"easy {i}", blobs(200, 0.0, i), noisy, 0.7) for i in range(3)]
    clients.append(Client("hard", noisy, noisy, 0.7))
    algorithm = OnDemand(samples=60, rate=0.1, rounds=80, learning_rate=0.05, batch_size=16)
    used = train(Federation(clients, softmax_regression), algorithm, seed=1).unique[-1]
    assert used[:3].tolist() == [15, 15, 15]
    assert used[3] >= 30


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match='form = "local"'):
        FedProx(form="pooled")
    with pytest.raises(InputError, match='optimizer = "sgd"'):
        QFfl(optimizer="adam")
    for make in (lambda: Afl(ascent=0), lambda: Ditto(pull=0), lambda: OnDemand(rate=-1)):
        with pytest.raises(InputError):
            make()
