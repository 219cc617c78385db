"""The loop written out as the paper prints it, slow and plain: what `training` is tested against.

Every client is gone through by itself, with torch's stock optimizers, a copy of the model for each
client's local steps and one validation set at a time. It shares with `training` the start, the
draws of samples and the checks, and neither a step nor an evaluation.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedaccord._arrays import Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import Algorithm, Solo
from fedaccord.federation.clients import Federation
from fedaccord.federation.history import History
from fedaccord.federation.layers import Dropout
from fedaccord.federation.steps import Batch
from fedaccord.federation.streams import stream
from fedaccord.federation.training import (
    Contributions,
    Pool,
    checked_contributions,
    checked_counts,
    current_weights,
    next_state,
    reproducibly,
    seeded_start,
)


def train_plainly(
    federation: Federation,
    algorithm: Algorithm,
    *,
    contributions: Contributions | None = None,
    seed: int = 0,
) -> History:
    """Train as `train` does, one client after the other.

    federation: the clients and the model.
    algorithm: FedAvg, MW-FED or one like them; Solo is `train` on one client and has no plain form.
    contributions: how many of its points each client brings.
    seed: of everything random in the run.
    """
    if isinstance(algorithm, Solo):
        raise InputError("train a federation of one client plainly instead of Solo")
    brought = checked_contributions(federation, contributions)
    started = time.perf_counter()
    samples, unique, loss, accuracy = [], [], [], []
    with reproducibly(seed):
        model = seeded_start(federation, seed)
        optimizer = _stock_optimizer(model, algorithm)
        pools = [Pool(c, int(n), seed) for c, n in zip(federation.clients, brought, strict=True)]
        goal_stream = stream(seed, "validation")
        state = algorithm.init(len(pools))
        for n in range(algorithm.rounds):
            counts = np.where(brought > 0, checked_counts(algorithm, state, len(pools)), 0)
            batches = [pool.draw(int(count)) for pool, count in zip(pools, counts, strict=True)]
            if algorithm.form == "local":
                losses = _average_local_models(model, algorithm, batches)
            else:
                losses = _step_on_mean_gradient(model, optimizer, algorithm, batches)
            samples.append(counts)
            unique.append([pool.unique for pool in pools])
            loss.append(losses)
            if not np.isfinite(losses[counts > 0]).all():
                accuracy.append(np.full(len(pools), np.nan))
                break
            measured = np.full(len(pools), np.nan)
            if algorithm.evaluates(n):
                measured = _accuracies(model, federation)
            accuracy.append(measured)
            if algorithm.tests_goal:
                if algorithm.goal_test_points is not None:
                    measured = _accuracies(
                        model, federation, algorithm.goal_test_points, goal_stream
                    )
                wanting = np.where(brought > 0, measured, np.inf)
                state = next_state(algorithm, state, wanting, federation.requirements)
    return History(
        clients=federation.names,
        requirements=federation.requirements,
        contributions=brought,
        algorithm=algorithm.to_dict(),
        seed=seed,
        samples=np.array(samples),
        unique=np.array(unique),
        loss=np.array(loss),
        accuracy=np.array(accuracy),
        diverged=not bool(np.isfinite(np.array(loss)[np.array(samples) > 0]).all()),
        seconds=time.perf_counter() - started,
        weights=current_weights(model),
    )


def _stock_optimizer(model: nn.Module, algorithm: Algorithm) -> torch.optim.Optimizer:
    make = torch.optim.Adam if algorithm.optimizer == "adam" else torch.optim.SGD
    return make(model.parameters(), lr=algorithm.learning_rate, foreach=False)


def _step_on_mean_gradient(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    batches: Sequence[Batch],
) -> Vector:
    """Take B steps, each along the algorithm's mean of the clients' gradients."""
    summed = np.zeros(len(batches))
    for b in range(algorithm.local_batches):
        parts = [tuple(t.tensor_split(algorithm.local_batches)[b] for t in x) for x in batches]
        slopes, counts = [], []
        for i, (inputs, labels) in enumerate(parts):
            if len(labels):
                client_loss = cross_entropy(model(inputs), labels)
                slopes.append(torch.autograd.grad(client_loss, list(model.parameters())))
                counts.append(len(labels))
                summed[i] += float(client_loss.detach()) * len(labels)
        if not slopes:
            continue
        for parameter, mine in zip(model.parameters(), zip(*slopes, strict=True), strict=True):
            parameter.grad = algorithm.aggregate(mine, np.array(counts))
        optimizer.step()
    drawn = np.array([len(labels) for _, labels in batches])
    return np.where(drawn > 0, summed / np.maximum(drawn, 1), np.nan)


def _average_local_models(
    server: nn.Module, algorithm: Algorithm, batches: Sequence[Batch]
) -> Vector:
    """Let a copy of the server's model take each client's steps, and average the copies."""
    copies, counts, losses = [], [], []
    for inputs, labels in batches:
        if not len(labels):
            losses.append(np.nan)
            continue
        model = copy.deepcopy(server)
        # The copy's dropout must go on in the server's stream, not in a copy of it.
        for mine, theirs in zip(model.modules(), server.modules(), strict=True):
            if isinstance(mine, Dropout) and isinstance(theirs, Dropout):
                mine.stream = theirs.stream
        optimizer = _stock_optimizer(model, algorithm)
        summed = 0.0
        for start in range(0, len(labels), algorithm.batch_size):
            part = slice(start, start + algorithm.batch_size)
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs[part]), labels[part])
            loss.backward()
            optimizer.step()
            summed += float(loss.detach()) * len(labels[part])
        copies.append(model.state_dict())
        counts.append(len(labels))
        losses.append(summed / len(labels))
    if not copies:
        return np.array(losses)
    mean = {
        name: algorithm.aggregate([c[name] for c in copies], np.array(counts))
        for name, value in server.state_dict().items()
        if value.is_floating_point()
    }
    server.load_state_dict(mean, strict=False)
    return np.array(losses)


def _accuracies(
    model: nn.Module,
    federation: Federation,
    points: int | None = None,
    random: np.random.Generator | None = None,
) -> Vector:
    """Measure each client's accuracy, on all its points or on so many drawn anew."""
    model.eval()
    found = []
    with torch.no_grad():
        for client in federation.clients:
            inputs, labels = client.validation_inputs, client.validation_labels
            if points is not None and random is not None:
                rows = random.choice(len(labels), min(points, len(labels)), replace=False)
                inputs, labels = inputs[rows], labels[rows]
            found.append(float((model(inputs).argmax(dim=1) == labels).double().mean()))
    model.train()
    return np.array(found)
