"""What one client does in a round: the same as in the loop, though it remembers nothing."""

import copy

import numpy as np
import pytest
import torch
from federation.small import OwnMean, blobs, small_federation
from torch import nn
from torch.nn.functional import cross_entropy

from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.networks import ClientRows, Dropout, model_factory, ready_dropout
from fedaccord.federation.training.loop import (
    find_client_gradient,
    train,
    update_locally,
)
from fedaccord.federation.training.reference import train_plainly
from fedaccord.federation.training.rng import Draws
from fedaccord.federation.training.steps import new_optimizer


def dropped_layers():
    layers = (nn.Linear(4, 16), nn.Tanh(), Dropout(128), nn.Linear(16, 8), Dropout(64))
    return nn.Sequential(*layers, nn.Linear(8, 3)).double()


def paper_net(engine, chunk=None):
    model = model_factory("paper", (28, 28), 5, engine=engine)()
    model.train_chunk = chunk
    return model


def images(shape, classes, sizes=(9, 6)):
    random = np.random.default_rng(4)
    clients = []
    for i, size in enumerate(sizes):
        points = (
            random.random((size, *shape), dtype=np.float32),
            random.integers(classes, size=size),
        )
        clients.append(Client(f"client {i}", points, points, requirement=0.9))
    return clients


def federation_of(kind):
    if kind == "layers":
        return small_federation(model=dropped_layers)
    if kind == "cnn":
        return Federation(images((8, 8), 10, (30, 20, 25)), model_factory("cnn", (8, 8), 10))
    engine = kind
    if engine == "native" and not native.available():
        pytest.skip(native.why_not())
    return Federation(images((28, 28), 5), lambda: paper_net(engine, chunk=4))


def without_a_memory(federation, algorithm, seed):
    """Train as a server and clients would that know nothing but what they are told in a round."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        server = federation.start()
    optimizer = new_optimizer(server, algorithm.optimizer, algorithm.learning_rate)
    count, losses = algorithm.batch_size * algorithm.local_batches, []
    for drawn in range(0, algorithm.rounds * count, count):
        updates = []
        for client in federation.clients:
            model = federation.model()
            model.load_state_dict(copy.deepcopy(server.state_dict()))
            model.train()
            ready_dropout(model, [ClientRows(client.name, drawn, count)], seed=seed)
            rows = Draws(client.name, client.points, client.points, seed=seed, drawn=drawn)
            chosen = torch.from_numpy(rows.draw(count))
            batch = client.inputs[chosen], client.labels[chosen]
            if algorithm.form == "local":
                kept = ("batch_size", "optimizer", "learning_rate")
                loss = update_locally(
                    model, batch, **{key: getattr(algorithm, key) for key in kept}
                )
                updates.append(nn.utils.parameters_to_vector(model.parameters()).detach())
            else:
                update, each = find_client_gradient(model, batch)
                updates.append(update)
                loss = float(each.mean())
            losses.append(loss)
        mean = algorithm.aggregate(updates, np.full(len(updates), count))
        if algorithm.form == "local":
            nn.utils.vector_to_parameters(mean, server.parameters())
        else:
            for parameter, part in zip(
                server.parameters(),
                mean.split([p.numel() for p in server.parameters()]),
                strict=True,
            ):
                parameter.grad = part.reshape(parameter.shape)
            optimizer.step()
    weights = {name: value.detach().numpy() for name, value in server.state_dict().items()}
    return np.array(losses).reshape(algorithm.rounds, -1), weights


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def started(federation):
    """Give the federation a start that is the same for whoever begins."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights = {k: v.numpy().copy() for k, v in federation.start().state_dict().items()}
    return Federation(federation.clients, federation.model, weights=weights)


@pytest.mark.parametrize("kind", ["layers", "cnn", "native", "torch"])
@pytest.mark.parametrize("batches", [1, 2])
def test_clients_without_a_memory_make_the_models_of_the_loop(one_thread, kind, batches):
    federation = started(federation_of(kind))
    algorithm = FedAvg(
        rounds=3, batch_size=5, local_batches=batches, form="local", learning_rate=0.01
    )
    history = train(federation, algorithm, seed=6)
    losses, weights = without_a_memory(federation, algorithm, 6)
    assert losses.tobytes() == history.loss.tobytes()
    for name, value in weights.items():
        assert value.tobytes() == history.weights[name].tobytes(), name
    with pytest.raises(AssertionError):
        assert without_a_memory(federation, algorithm, 7)[0] == pytest.approx(history.loss)


@pytest.mark.parametrize("kind", ["layers", "cnn", "native", "torch"])
def test_gradients_of_clients_without_a_memory_make_the_pooled_step(one_thread, kind):
    federation = started(federation_of(kind))
    algorithm = FedAvg(rounds=3, batch_size=5, optimizer="sgd", learning_rate=0.05)
    history = train(federation, algorithm, seed=6)
    losses, weights = without_a_memory(federation, algorithm, 6)
    assert losses == pytest.approx(history.loss, rel=1e-4)
    for name, value in weights.items():
        np.testing.assert_allclose(value, history.weights[name], 1e-3, 1e-5, err_msg=name)
    with pytest.raises(AssertionError):
        assert without_a_memory(federation, algorithm, 7)[0] == pytest.approx(
            history.loss, rel=1e-4
        )


@pytest.mark.parametrize("kind", ["layers", "cnn", "native", "eager"])
@pytest.mark.parametrize("form", ["pooled", "local"])
@pytest.mark.parametrize(
    "algorithm",
    [FedAvg, OwnMean, MwFed],
    ids=["fedavg", "own-mean", "mw-fed"],
)
def test_the_loop_with_dropout_gives_what_the_plain_loop_gives(kind, form, algorithm):
    federation = federation_of(kind)
    clients = len(federation.clients)
    settings = {"counts": (7, 2, 5)[:clients]} if algorithm is OwnMean else {}
    algorithm = algorithm(
        rounds=3,
        batch_size=3,
        local_batches=2,
        form=form,
        optimizer="sgd",
        learning_rate=0.05,
        **settings,
    )
    brought = [4, *federation.points[1:]]
    fast = train(federation, algorithm, contributions=brought, seed=5)
    plain = train_plainly(federation, algorithm, contributions=brought, seed=5)
    assert fast.samples.tolist() == plain.samples.tolist()
    exact = 1e-9 if kind == "layers" else 2e-4
    assert fast.loss == pytest.approx(plain.loss, rel=exact, nan_ok=True)
    for name, value in fast.weights.items():
        np.testing.assert_allclose(value, plain.weights[name], 10 * exact, exact / 10, err_msg=name)


# What one client does


def test_the_gradient_of_a_client_is_that_of_its_mean_loss():
    model = nn.Linear(4, 3).double()
    inputs, labels = blobs(12, 0.5, seed=3)
    x, y = torch.tensor(inputs), torch.tensor(labels)
    gradient, losses = find_client_gradient(model, (x, y))
    # Softmax minus the label, times the input, by hand.
    scores = inputs @ model.weight.detach().numpy().T + model.bias.detach().numpy()
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    slope = (chances - np.eye(3)[labels]) / len(labels)
    assert gradient.numpy() == pytest.approx(
        np.concatenate([(slope.T @ inputs).ravel(), slope.sum(0)])
    )
    assert losses.numpy() == pytest.approx(-np.log(chances[np.arange(12), labels]))
    again, _ = find_client_gradient(model, (x, y))
    assert torch.equal(again, gradient)


def test_a_parameter_that_has_no_part_in_the_loss_has_a_gradient_of_zeros():
    model = nn.ModuleDict({"idle": nn.Linear(2, 2), "layer": nn.Linear(4, 3)}).double()
    model.forward = model["layer"].forward
    inputs, labels = blobs(6, 0.5, seed=3)
    gradient, _ = find_client_gradient(model, (torch.tensor(inputs), torch.tensor(labels)))
    assert len(gradient) == 6 + 15
    assert not gradient[:6].any()
    assert gradient[6:].any()


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_local_update_steps_batch_by_batch_with_a_fresh_optimizer(optimizer):
    inputs, labels = map(torch.tensor, blobs(7, 0.5, seed=3))
    model = nn.Linear(4, 3).double()
    stock = copy.deepcopy(model)
    for _ in range(2):
        loss = update_locally(
            model, (inputs, labels), batch_size=3, optimizer=optimizer, learning_rate=0.1
        )
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
        stepping, losses = kind(stock.parameters(), lr=0.1), []
        for rows in (slice(0, 3), slice(3, 6), slice(6, 7)):
            stepping.zero_grad()
            found = cross_entropy(stock(inputs[rows]), labels[rows], reduction="none")
            found.mean().backward()
            stepping.step()
            losses += found.tolist()
        assert loss == pytest.approx(np.mean(losses))
    for mine, theirs in zip(model.parameters(), stock.parameters(), strict=True):
        assert mine.detach().numpy() == pytest.approx(theirs.detach().numpy())
