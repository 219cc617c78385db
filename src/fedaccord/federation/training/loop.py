"""The one loop around every algorithm: draw, step, test the goal, note what happened.

A run depends on its seed alone. Which points a client brings, the batches it draws, the start of
the model, dropout and the points a goal test looks at have a random stream each; a client's
streams go by its name. So one client's cut moves nobody else's draws or masks, a client needs no
memory of the rounds before, and how often one looks does not change what is learnt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedaccord._checks import Vector
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.clients import Client, Federation, Weights
from fedaccord.federation.history import History, Session
from fedaccord.federation.models.networks import ClientRows, dropouts, ready_dropout
from fedaccord.federation.training.rng import Draws, derive_seed, draw_goal_rows, stream

Batch: TypeAlias = tuple[Tensor, Tensor]
Contributions: TypeAlias = Allocation | Mapping[str, int] | Sequence[int] | Counts


def train(
    federation: Federation,
    algorithm: Algorithm,
    *,
    contributions: Contributions | None = None,
    seed: int = 0,
) -> History:
    """Train the federation's model and return what happened.

    federation: the clients and the model.
    algorithm: who draws how much, and how the model is stepped.
    contributions: how many of its points each client brings, in the clients' order or by name,
        all of them where left out; a client that brings fewer brings a part of what it would
        bring otherwise.
    seed: of everything random in the run.
    """
    brought = check_contributions(federation, contributions)
    if algorithm.trains_alone:
        clients = range(len(federation.clients))
        return History.side_by_side(
            [_train(federation.only(i), algorithm, brought[i : i + 1], seed) for i in clients]
        )
    return _train(federation, algorithm, brought, seed)


def _train(federation: Federation, algorithm: Algorithm, brought: Counts, seed: int) -> History:
    session = Session(algorithm, federation.names, brought, federation.requirements, seed=seed)
    with reproducibly(seed):
        model = make_model(federation)
        step = choose_step(model, session)
        pools = [Pool(c, int(n), seed) for c, n in zip(federation.clients, brought, strict=True)]
        validation = Validation(federation, seed)
        checkpoints: dict[str, Weights] = {}
        for n in range(algorithm.rounds):
            counts = session.allot()
            losses = step([pool.draw(int(c)) for pool, c in zip(pools, counts, strict=True)])
            session.record_round(counts, np.array([pool.unique for pool in pools]), losses)
            diverged = not np.isfinite(losses[counts > 0]).all()
            if algorithm.evaluates(n) and not diverged:
                session.record_accuracies(validation.measure(model))
                diverged = not np.isfinite(session.accuracies).all()
            if algorithm.tests(n) and not diverged:
                points = algorithm.goal_test_points
                tested = (
                    session.accuracies if points is None else validation.test(model, points, n + 1)
                )
                leaving = [federation.names[i] for i in session.test(tested)]
                checkpoints |= {name: copy_weights(model) for name in leaving}
            if session.ended and not diverged and np.isnan(session.accuracies).any():
                # The last accuracies are known, in whichever round it ends.
                session.record_accuracies(validation.measure(model))
                diverged = not np.isfinite(session.accuracies).all()
            if diverged:
                session.record_divergence()
            if diverged or session.ended:
                break
        return session.history(copy_weights(model), checkpoints)


def check_contributions(federation: Federation, given: Contributions | None) -> Counts:
    """Read how many points each client brings, or say whose number is wrong."""
    points = federation.points
    if given is None:
        return points
    if isinstance(given, Mapping):
        given = Allocation(list(given.values()), list(given))
    allocation = given if isinstance(given, Allocation) else Allocation(np.asarray(given))
    values = allocation.ordered_for(federation.names).contributions
    if len(values) != len(points):
        raise InputError(f"{len(points)} clients need one contribution each; got {len(values)}")
    whole = values.astype(np.int64)
    for name, value, most in zip(federation.names, values, points, strict=True):
        if value != int(value):
            raise InputError(f"{name} cannot bring {value:g} points; give a whole number")
        if value > most:
            raise InputError(f"{name} cannot bring {value:g} points: it has {most}")
    if not whole.any():
        raise InputError("nobody brings any point; let at least one client bring some")
    return whole


@contextlib.contextmanager
def reproducibly(seed: int) -> Iterator[None]:
    """Run with torch's generator seeded and on one thread, and leave both as they were.

    Results depend on how sums are split over threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "torch"))
            yield
    finally:
        torch.set_num_threads(threads)


def make_model(federation: Federation) -> nn.Module:
    """Make the model a run starts from; no row is masked before it is readied for its client."""
    model = federation.start()
    ready_dropout(model, [], seed=0)
    return model.train()


def copy_weights(model: nn.Module) -> dict[str, NDArray[Any]]:
    """Copy a model's parameters and buffers, by name."""
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def give_streams(model: nn.Module, seed: int) -> None:
    """Give each dropout of ours in a model a random stream of its own, for whoever trains alone."""
    for place, module in enumerate(dropouts(model)):
        module.stream = stream(seed, "dropout", place)


class Pool:
    """The points a client brings, drawn in shuffled passes."""

    def __init__(self, client: Client, contribution: int, seed: int) -> None:
        self._client = client
        self._draws = Draws(client.name, client.points, contribution, seed=seed)

    @property
    def unique(self) -> int:
        """How many different points were drawn so far."""
        return self._draws.unique

    def draw(self, count: int) -> Drawn:
        """Draw the next so many samples."""
        client, before = self._client, self._draws.drawn
        chosen = torch.from_numpy(self._draws.draw(count))
        return Drawn(client.name, before, client.inputs[chosen], client.labels[chosen])


class Validation:
    """Everybody's validation points, on which accuracy is measured together."""

    def __init__(self, federation: Federation, seed: int) -> None:
        clients = federation.clients
        self._names = federation.names
        self._seed = seed
        self._inputs = torch.cat([client.validation_inputs for client in clients])
        self._labels = torch.cat([client.validation_labels for client in clients])
        self._sizes = [len(client.validation_labels) for client in clients]

    def measure(self, model: nn.Module) -> Vector:
        """Measure everybody's accuracy on all points."""
        return self._means(is_right(model, self._inputs, self._labels), self._sizes)

    def test(self, model: nn.Module, count: int, round_number: int) -> Vector:
        """Measure everybody's accuracy on so many points each, drawn anew each round."""
        starts = np.cumsum([0, *self._sizes[:-1]])
        chosen = [
            start + draw_goal_rows(name, size, count, seed=self._seed, round_number=round_number)
            for start, name, size in zip(starts, self._names, self._sizes, strict=True)
        ]
        rows = torch.from_numpy(np.concatenate(chosen))
        right = is_right(model, self._inputs[rows], self._labels[rows])
        return self._means(right, [len(mine) for mine in chosen])

    @staticmethod
    def _means(right: Vector, sizes: list[int]) -> Vector:
        return np.array([part.mean() for part in np.split(right, np.cumsum(sizes)[:-1])])


def is_right(model: nn.Module, inputs: Tensor, labels: Tensor) -> Vector:
    """Return for each point whether the model names its class: 1, 0, or NaN where it names none.

    A score of minus infinity is a class ruled out; one of NaN, or of infinity, is divergence.
    """
    was_training = model.training
    model.eval()
    # A user's model may draw random numbers even now; those must not shift training's.
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        chunk = getattr(model, "evaluate_chunk", None) or max(len(labels), 1)
        scores = torch.cat([model(part) for part in inputs.split(chunk)])
        best = scores.max(dim=1)
        right = (best.indices == labels).to(torch.float64)
        right[~torch.isfinite(best.values)] = torch.nan
    model.train(was_training)
    return np.asarray(right.numpy())


# One round's step of the model, from the samples that each client drew.


@dataclass(frozen=True)
class Drawn:
    """Samples of one client.

    client: its name.
    before: how many samples it had drawn before these.
    inputs, labels: the samples.
    """

    client: str
    before: int
    inputs: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def batch(self) -> Batch:
        """Inputs and labels."""
        return self.inputs, self.labels

    @property
    def rows(self) -> ClientRows:
        """Whose they are, for dropout."""
        return ClientRows(self.client, self.before, len(self))

    def parts(self, count: int) -> Iterator[Drawn]:
        """Cut the samples into so many parts of nearly equal size, some perhaps empty."""
        if count == 1:
            yield self
            return
        before = self.before
        for part in zip(*(tensor.tensor_split(count) for tensor in self.batch), strict=True):
            yield Drawn(self.client, before, *part)
            before += len(part[1])


# Takes each client's samples, steps the model, gives each client's mean loss (NaN for none).
Stepper: TypeAlias = Callable[[Sequence[Drawn]], Vector]


def choose_step(model: nn.Module, session: Session) -> Stepper:
    """Choose the step that an algorithm asks for.

    model: what is stepped, in place.
    session: of the algorithm, with its form, optimizer and mean.
    """
    algorithm = session.algorithm
    if algorithm.form == "local":
        return lambda drawn: local_step(model, session, drawn)
    optimizer = new_optimizer(model, algorithm.optimizer, algorithm.learning_rate)
    # The mean of the clients' gradients, weighted by samples, is the gradient of all samples
    # together, which is quicker to find. An algorithm with a mean of its own goes the long way,
    # and so does a model in which the samples of a batch change each other's scores.
    batch_norm = nn.modules.batchnorm._BatchNorm
    mixes_samples = any(isinstance(module, batch_norm) for module in model.modules())
    find = find_gradient if algorithm.averages and not mixes_samples else find_mean_gradient

    def step(drawn: Sequence[Drawn]) -> Vector:
        losses: list[list[Tensor]] = [[] for _ in drawn]
        for parts in zip(*(mine.parts(algorithm.local_batches) for mine in drawn), strict=True):
            if any(len(part) for part in parts):
                for mine, loss in zip(losses, find(model, session, parts), strict=True):
                    mine.append(loss)
                optimizer.step()
        return np.array([_mean(mine) for mine in losses])

    return step


def new_optimizer(model: nn.Module, kind: str, learning_rate: float) -> torch.optim.Optimizer:
    """Make an optimizer of the model's parameters."""
    make = torch.optim.Adam if kind == "adam" else torch.optim.SGD
    return make(model.parameters(), lr=learning_rate, fused=True)


def find_gradient(model: nn.Module, session: Session, drawn: Sequence[Drawn]) -> Sequence[Tensor]:
    """Set the gradient of the samples of all clients put together; return each client's losses."""
    ready_dropout(model, [mine.rows for mine in drawn], seed=session.seed)
    inputs, labels = (torch.cat(part) for part in zip(*(m.batch for m in drawn), strict=True))
    model.zero_grad()
    losses: Sequence[Tensor] = add_gradient(model, inputs, labels).split([len(m) for m in drawn])
    return losses


def find_mean_gradient(
    model: nn.Module, session: Session, drawn: Sequence[Drawn]
) -> Sequence[Tensor]:
    """Set the algorithm's own mean of the clients' gradients; return each client's losses."""
    gradients, losses = [], []
    for mine in drawn:
        loss = torch.empty(0)
        if len(mine):
            ready_dropout(model, [mine.rows], seed=session.seed)
            gradient, loss = find_client_gradient(model, mine.batch)
            gradients.append(gradient)
        losses.append(loss)
    mean = aggregate(session, gradients, [len(mine) for mine in drawn])
    parameters = list(model.parameters())
    slopes = mean.split([parameter.numel() for parameter in parameters])
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.grad = slope.reshape(parameter.shape).clone()
    return losses


def local_step(model: nn.Module, session: Session, drawn: Sequence[Drawn]) -> Vector:
    """Let each client step from the server's model, batch by batch, and average their models."""
    algorithm, server = session.algorithm, _read(model)
    updates, losses = [], []
    for mine in drawn:
        loss = float("nan")
        if len(mine):
            _write(model, server)
            ready_dropout(model, [mine.rows], seed=session.seed)
            loss = update_locally(
                model,
                mine.batch,
                batch_size=algorithm.batch_size,
                optimizer=algorithm.optimizer,
                learning_rate=algorithm.learning_rate,
            )
            updates.append(_read(model))
        losses.append(loss)
    if updates:
        _write(model, aggregate(session, updates, [len(mine) for mine in drawn]))
    return np.array(losses)


def update_locally(
    model: nn.Module, batch: Batch, *, batch_size: int, optimizer: str, learning_rate: float
) -> float:
    """Do what one client does in a round of the local form: step from where the model is.

    The model is changed in place, by an optimizer that starts afresh. Returns the mean over the
    samples of the loss that each had before its step.

    model: the server's, in training, its dropout readied for these samples.
    batch: the client's samples, inputs and labels; one or more.
    batch_size: m, how many samples a step is on; the last may be on fewer.
    optimizer: "adam" or "sgd".
    learning_rate: eta.
    """
    stepping = new_optimizer(model, optimizer, learning_rate)
    parts = zip(*(tensor.split(batch_size) for tensor in batch), strict=True)
    return _mean([take_step(model, stepping, *part) for part in parts])


def find_client_gradient(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Do what one client does in a step of the pooled form: find the gradient of its mean loss.

    Returns one flat vector, in the order of model.parameters() and with zeros for those that the
    loss does not depend on, and the loss of each sample.

    model: the server's, in training, its dropout readied for these samples.
    batch: the client's samples, inputs and labels; one or more.
    """
    model.zero_grad()
    losses = add_gradient(model, *batch)
    slopes = ((torch.zeros_like(p) if p.grad is None else p.grad) for p in model.parameters())
    return torch.cat([slope.flatten() for slope in slopes]), losses


def aggregate(session: Session, updates: list[Tensor], counts: Sequence[int]) -> Tensor:
    """Ask an algorithm for one update, and see to it that it is one.

    session: of the algorithm.
    updates: of the clients that drew samples.
    counts: how many each of all clients drew.
    """
    every = np.array(counts)
    clients = np.flatnonzero(every)
    mean: Any = session.combine(updates, every[clients], clients.tolist())
    like, algorithm = updates[0], session.algorithm
    if not isinstance(mean, Tensor) or mean.shape != like.shape or mean.dtype != like.dtype:
        got = f"{tuple(mean.shape)} of {mean.dtype}" if isinstance(mean, Tensor) else repr(mean)
        raise InputError(
            f"aggregate of {algorithm.name} must give a tensor like those it is given, of shape "
            f"{tuple(like.shape)} and {like.dtype}; got {got[:80]}"
        )
    return mean


def take_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor
) -> Tensor:
    """Step once along the gradient of the mean loss, and return each sample's loss before it."""
    optimizer.zero_grad()
    losses = add_gradient(model, inputs, labels)
    optimizer.step()
    return losses


def add_gradient(model: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    """Add the gradient of the mean loss to the parameters'; return each sample's loss.

    A model with a `train_chunk` is given so many samples at a time: what fits the cache is
    quicker, and the sum of the parts is the same.
    """
    chunk = getattr(model, "train_chunk", None) or len(labels)
    losses = []
    for some_inputs, some_labels in zip(inputs.split(chunk), labels.split(chunk), strict=True):
        loss = cross_entropy(model(some_inputs), some_labels, reduction="none")
        (loss.sum() / len(labels)).backward()
        losses.append(loss.detach())
    return torch.cat(losses)


def _mean(losses: Sequence[Tensor]) -> float:
    found = [loss for loss in losses if len(loss)]
    return float(torch.cat(found).mean()) if found else float("nan")


def _state(model: nn.Module) -> Iterator[Tensor]:
    """Return all that is averaged: parameters, and buffers such as running means."""
    yield from model.parameters()
    yield from (buffer for buffer in model.buffers() if buffer.is_floating_point())


def _read(model: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in _state(model)])


def _write(model: nn.Module, vector: Tensor) -> None:
    tensors = list(_state(model))
    with torch.no_grad():
        for tensor, part in zip(tensors, vector.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.reshape(tensor.shape))
