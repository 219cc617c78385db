"""The loop as the paper prints it, slow and plain: `training` is tested against it.

It goes through the clients one by one, with torch's stock optimizers, a copy of the model for each
client's local steps, and one validation set at a time. It shares with `training` the start, the
draws, the checks and the records. It shares no step, no evaluation, and not how dropout finds a
client's stream.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from fedaccord._checks import Indices, Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.clients import Federation, Weights
from fedaccord.federation.goals import judge_goals
from fedaccord.federation.history import History, Session
from fedaccord.federation.measures import find_outputs
from fedaccord.federation.models.networks import Dropout
from fedaccord.federation.training.loop import (
    Contributions,
    Drawn,
    check_contributions,
    check_limits,
    copy_weights,
    draw_all,
    make_model,
    reproducibly,
    start_draws,
    withhold,
)
from fedaccord.federation.training.rng import draw_goal_rows, stream
from fedaccord.federation.training.steps import find_losses


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
    contributions: how many of its samples each client gives.
    seed: the random seed of the run.
    """
    if algorithm.trains_alone:
        raise InputError("train a federation of one client plainly instead of Solo")
    brought = check_contributions(federation, contributions)
    check_limits(federation, algorithm.limits(brought))
    session = Session(algorithm, federation.names, brought, federation.requirements, seed=seed)
    checkpoints: dict[str, Weights] = {}
    with reproducibly(seed):
        model = make_model(federation)
        optimizer = _stock_optimizer(model, algorithm)
        pools = start_draws(federation, brought, seed)
        for n in range(algorithm.rounds):
            sent = copy_weights(model) if algorithm.withholds else {}
            counts = session.allot()
            drawn = draw_all(federation.clients, pools, counts, session.brought)
            if algorithm.form == "local":
                losses = _average_local_models(model, session, drawn)
            else:
                losses = _step_on_mean_gradient(model, optimizer, session, drawn)
            session.record_round(counts, np.array([pool.unique for pool in pools]), losses)
            if algorithm.withholds:
                measure = lambda model: _accuracies(model, federation)  # noqa: E731
                checkpoints |= withhold(session, model, sent, measure)
            if not np.isfinite(losses[counts > 0]).all():
                session.record_divergence()
                break
            if algorithm.evaluates(n):
                session.record_accuracies(_accuracies(model, federation))
            if algorithm.tests(n):
                tested = session.accuracies
                if algorithm.goal_test_points is not None:
                    rows = _goal_rows(federation, algorithm.goal_test_points, seed, n + 1)
                    tested = _accuracies(model, federation, rows)
                for i in session.test(tested):
                    checkpoints[federation.names[i]] = copy_weights(model)
            if session.ended:
                if np.isnan(session.accuracies).any():
                    session.record_accuracies(_accuracies(model, federation))
                break
        return session.history(copy_weights(model), checkpoints)


def _stock_optimizer(model: nn.Module, algorithm: Algorithm) -> torch.optim.Optimizer:
    make = torch.optim.Adam if algorithm.optimizer == "adam" else torch.optim.SGD
    return make(model.parameters(), lr=algorithm.learning_rate, foreach=False)


def _give_streams_of(client: str, before: int, model: nn.Module, seed: int) -> None:
    """Set every dropout to the stream that a client has after the samples drawn before."""
    places = [module for module in model.modules() if isinstance(module, Dropout)]
    for place, module in enumerate(places):
        module.turns, module.stream = None, stream(seed, "dropout", place, client, before)


def _step_on_mean_gradient(
    model: nn.Module, optimizer: torch.optim.Optimizer, session: Session, drawn: Sequence[Drawn]
) -> Vector:
    """Take B steps, each along the algorithm's mean of the clients' gradients."""
    steps = session.algorithm.local_batches
    summed, used = np.zeros(len(drawn)), np.zeros(len(drawn), dtype=int)
    for b in range(steps):
        slopes, counts, clients = [], [], []
        for i, mine in enumerate(drawn):
            inputs, labels = (t.tensor_split(steps)[b] for t in (mine.inputs, mine.labels))
            if len(labels):
                _give_streams_of(mine.client, mine.before + int(used[i]), model, session.seed)
                client_loss = find_losses(model(inputs), labels).mean()
                slope = torch.autograd.grad(client_loss, list(model.parameters()))
                slopes.append(torch.cat([part.flatten() for part in slope]))
                counts.append(len(labels))
                clients.append(i)
                summed[i] += float(client_loss.detach()) * len(labels)
                used[i] += len(labels)
        if not slopes:
            continue
        mean = session.combine(slopes, np.array(counts), clients)
        sizes = [parameter.numel() for parameter in model.parameters()]
        for parameter, part in zip(model.parameters(), mean.split(sizes), strict=True):
            parameter.grad = part.reshape(parameter.shape)
        optimizer.step()
    return np.where(used > 0, summed / np.maximum(used, 1), np.nan)


def _average_local_models(server: nn.Module, session: Session, drawn: Sequence[Drawn]) -> Vector:
    """Train a copy of the server's model on each client, and average the copies."""
    algorithm = session.algorithm
    copies, counts, clients, losses = [], [], [], []
    for i, mine in enumerate(drawn):
        if not len(mine):
            losses.append(np.nan)
            continue
        model = copy.deepcopy(server)
        _give_streams_of(mine.client, mine.before, model, session.seed)
        optimizer = _stock_optimizer(model, algorithm)
        summed = 0.0
        for start in range(0, len(mine), algorithm.batch_size):
            part = slice(start, start + algorithm.batch_size)
            optimizer.zero_grad()
            loss = find_losses(model(mine.inputs[part]), mine.labels[part]).mean()
            loss.backward()
            optimizer.step()
            summed += float(loss.detach()) * len(mine.labels[part])
        copies.append(model.state_dict())
        counts.append(len(mine))
        clients.append(i)
        losses.append(summed / len(mine))
    if not copies:
        return np.array(losses)
    mean = {
        name: session.combine([c[name] for c in copies], np.array(counts), clients)
        for name, value in server.state_dict().items()
        if value.is_floating_point()
    }
    before = torch.cat([server.state_dict()[name].flatten() for name in mean])
    after = session.advance(before, torch.cat([value.flatten() for value in mean.values()]))
    parts = after.split([value.numel() for value in mean.values()])
    shaped = {name: part.reshape(mean[name].shape) for name, part in zip(mean, parts, strict=True)}
    server.load_state_dict(shaped, strict=False)
    return np.array(losses)


def _goal_rows(federation: Federation, count: int, seed: int, round_number: int) -> list[Indices]:
    drawn = []
    for client in federation.clients:
        points = len(client.validation_labels)
        drawn.append(
            draw_goal_rows(client.name, points, count, seed=seed, round_number=round_number)
        )
    return drawn


def _accuracies(
    model: nn.Module, federation: Federation, rows: Sequence[Indices] | None = None
) -> Vector:
    """Measure each client's accuracy, on all its points or on some rows of them."""
    model.eval()
    found = []
    with torch.no_grad():
        for i, client in enumerate(federation.clients):
            if rows is not None:
                client = client.take_validation(rows[i])
            inputs, labels = client.validation_inputs, client.validation_labels
            scores = model(inputs)
            if client.goals:
                outputs = find_outputs(scores.numpy())
                found.append(judge_goals(client.goals, labels.numpy(), outputs))
            else:
                found.append(float((scores.argmax(dim=1) == labels).double().mean()))
    model.train()
    return np.array(found)
