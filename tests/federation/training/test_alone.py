"""Going on alone: what a client makes of the model that it got."""

import numpy as np
import pytest
import torch
from federation.small import blobs, linear_model, small_federation

from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.training.alone import PASSES, RATES, go_on_alone
from fedaccord.federation.training.loop import copy_weights, is_right, make_model, reproducibly

ALGORITHM = FedAvg(rounds=1, learning_rate=0.05, batch_size=16)


def start(federation: Federation):
    with reproducibly(0):
        return copy_weights(make_model(federation))


def accuracy(federation: Federation, client: Client, weights) -> float:
    model = federation.model()
    model.load_state_dict({n: torch.as_tensor(w) for n, w in weights.items()})
    return float(is_right(model, client.validation_inputs, client.validation_labels).mean())


def test_going_on_from_an_ignorant_model_learns_the_task():
    clients = [Client("a", blobs(300, 0.3, 1), blobs(600, 0.3, 2), 0.8)]
    federation = Federation(clients, linear_model)
    weights = {name: np.zeros_like(w) for name, w in start(federation).items()}
    went = go_on_alone(federation, clients[0], weights, np.arange(300), ALGORITHM, seed=1)
    before = accuracy(federation, clients[0], weights)
    after = accuracy(federation, clients[0], went.weights)
    # The clouds' best rule is right in about 83 % of cases.
    assert before < 0.5 < 0.75 < after
    assert went.passes in PASSES and went.rate in RATES


def test_more_samples_of_its_own_take_a_client_further():
    """Means over ten draws: the kept data are worth something."""
    gains = []
    for seed in range(10):
        client = Client("a", blobs(200, 0.3, seed), blobs(600, 0.3, 900 + seed), 0.8)
        federation = Federation([client], linear_model)
        weights = {name: np.zeros_like(w) for name, w in start(federation).items()}
        few, many = (
            go_on_alone(federation, client, weights, np.arange(n), ALGORITHM, seed=seed).weights
            for n in (9, 200)
        )
        gains.append(accuracy(federation, client, many) - accuracy(federation, client, few))
    assert np.mean(gains) > 0.03


def test_neither_validation_nor_withheld_samples_are_looked_at():
    """Spoil everything that the client does not train on: the model must not change a bit."""
    federation = small_federation()
    client = federation.clients[0]
    samples = np.arange(20)
    weights = start(federation)
    plain = go_on_alone(federation, client, weights, samples, ALGORITHM, seed=1)
    inputs = client.inputs.clone()
    inputs[20:] = torch.nan
    spoiled = client.replace(inputs=inputs, validation_inputs=client.validation_inputs * torch.nan)
    again = go_on_alone(federation, spoiled, weights, samples, ALGORITHM, seed=1)
    assert all(np.array_equal(w, again.weights[n]) for n, w in plain.weights.items())
    # And it does look at the samples it has.
    inputs = client.inputs.clone()
    inputs[:20] = inputs[:20] * 3
    other = go_on_alone(
        federation, client.replace(inputs=inputs), weights, samples, ALGORITHM, seed=1
    )
    assert any(not np.array_equal(w, other.weights[n]) for n, w in plain.weights.items())


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_or_no_samples_are_no_obstacle(count):
    federation = small_federation()
    weights = start(federation)
    went = go_on_alone(
        federation, federation.clients[0], weights, np.arange(count), ALGORITHM, seed=1
    )
    assert went.passes == min(count, 1)
    unchanged = all(np.array_equal(w, weights[n]) for n, w in went.weights.items())
    assert unchanged == (count == 0)


def test_the_same_seed_gives_the_same_model():
    federation = small_federation()
    weights = start(federation)
    one, two = (
        go_on_alone(federation, federation.clients[1], weights, np.arange(24), ALGORITHM, seed=5)
        for _ in range(2)
    )
    assert all(np.array_equal(w, two.weights[n]) for n, w in one.weights.items())
