"""One round's step of the model, from the samples that each client drew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedaccord._checks import Vector
from fedaccord.errors import InputError
from fedaccord.federation.models.layers import ClientRows, ready_dropout
from fedaccord.federation.training.session import Course

Batch: TypeAlias = tuple[Tensor, Tensor]


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


def stepper(model: nn.Module, course: Course, *, seed: int) -> Stepper:
    """Choose the step that an algorithm asks for.

    model: what is stepped, in place.
    course: of the algorithm, with its form, optimizer and mean.
    seed: of the run, for dropout.
    """
    algorithm = course.algorithm
    if algorithm.form == "local":
        return lambda drawn: local_step(model, course, drawn, seed=seed)
    optimizer = new_optimizer(model, algorithm.optimizer, algorithm.learning_rate)
    # The mean of the clients' gradients, weighted by samples, is the gradient of all samples
    # together, which is quicker to find. An algorithm with a mean of its own goes the long way,
    # and so does a model in which the samples of a batch change each other's scores.
    if algorithm.averages and not _mixes_samples(model):
        steps = algorithm.local_batches
        return lambda drawn: pooled_step(model, optimizer, drawn, steps=steps, seed=seed)
    return lambda drawn: gradient_step(model, optimizer, drawn, course=course, seed=seed)


def new_optimizer(model: nn.Module, kind: str, learning_rate: float) -> torch.optim.Optimizer:
    """Make an optimizer of the model's parameters."""
    make = torch.optim.Adam if kind == "adam" else torch.optim.SGD
    return make(model.parameters(), lr=learning_rate, fused=True)


def pooled_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    drawn: Sequence[Drawn],
    *,
    steps: int,
    seed: int,
) -> Vector:
    """Step on the samples of all clients put together, in so many steps."""
    losses: list[list[Tensor]] = [[] for _ in drawn]
    for parts in zip(*(mine.parts(steps) for mine in drawn), strict=True):
        sizes = [len(part) for part in parts]
        if not sum(sizes):
            continue
        ready_dropout(model, [part.rows for part in parts], seed=seed)
        inputs = torch.cat([part.inputs for part in parts])
        labels = torch.cat([part.labels for part in parts])
        found = take_step(model, optimizer, inputs, labels)
        for mine, loss in zip(losses, found.split(sizes), strict=True):
            mine.append(loss)
    return np.array([_mean(mine) for mine in losses])


def gradient_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    drawn: Sequence[Drawn],
    *,
    course: Course,
    seed: int,
) -> Vector:
    """Step along the algorithm's own mean of the clients' gradients, in `local_batches` steps."""
    losses: list[list[Tensor]] = [[] for _ in drawn]
    steps = course.algorithm.local_batches
    for parts in zip(*(mine.parts(steps) for mine in drawn), strict=True):
        gradients = []
        for mine, part in zip(losses, parts, strict=True):
            if len(part):
                ready_dropout(model, [part.rows], seed=seed)
                gradient, found = _gradient_and_losses(model, part.batch)
                gradients.append(gradient)
                mine.append(found)
        if not gradients:
            continue
        mean = aggregate(course, gradients, [len(part) for part in parts])
        slopes = _split_as_parameters(model, mean)
        for parameter, slope in zip(model.parameters(), slopes, strict=True):
            parameter.grad = slope.reshape(parameter.shape).clone()
        optimizer.step()
    return np.array([_mean(mine) for mine in losses])


def local_step(model: nn.Module, course: Course, drawn: Sequence[Drawn], *, seed: int) -> Vector:
    """Let each client step from the server's model, batch by batch, and average their models."""
    algorithm, server = course.algorithm, _read(model)
    updates, losses = [], []
    for mine in drawn:
        loss = float("nan")
        if len(mine):
            _write(model, server)
            ready_dropout(model, [mine.rows], seed=seed)
            loss = local_update(
                model,
                mine.batch,
                batch_size=algorithm.batch_size,
                optimizer=algorithm.optimizer,
                learning_rate=algorithm.learning_rate,
            )
            updates.append(_read(model))
        losses.append(loss)
    if updates:
        _write(model, aggregate(course, updates, [len(mine) for mine in drawn]))
    return np.array(losses)


def local_update(
    model: nn.Module, batch: Batch, *, batch_size: int, optimizer: str, learning_rate: float
) -> float:
    """Do what one client does in a round of the local form: step from where the model is.

    The model is changed in place, by an optimizer that starts afresh. Gives the mean over the
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


def client_gradient(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
    """Do what one client does in a step of the pooled form: find the gradient of its mean loss.

    Gives one flat vector, in the order of model.parameters() and with zeros for those that the
    loss does not depend on, and the mean loss.

    model: the server's, in training, its dropout readied for these samples.
    batch: the client's samples, inputs and labels; one or more.
    """
    gradient, losses = _gradient_and_losses(model, batch)
    return gradient, _mean([losses])


def _gradient_and_losses(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    model.zero_grad()
    losses = add_gradient(model, *batch)
    return torch.cat([_gradient(p).flatten() for p in model.parameters()]), losses


def aggregate(course: Course, updates: list[Tensor], counts: Sequence[int]) -> Tensor:
    """Ask an algorithm for one update, and see to it that it is one.

    course: of the algorithm.
    updates: of the clients that drew samples.
    counts: how many each of all clients drew.
    """
    every = np.array(counts)
    clients = np.flatnonzero(every)
    mean: Any = course.combine(updates, every[clients], clients.tolist())
    like, algorithm = updates[0], course.algorithm
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
    """Step once along the gradient of the mean loss, and give each sample's loss before it."""
    optimizer.zero_grad()
    losses = add_gradient(model, inputs, labels)
    optimizer.step()
    return losses


def add_gradient(model: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    """Add the gradient of the mean loss to the parameters', and give each sample's loss.

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


def _mixes_samples(model: nn.Module) -> bool:
    return any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())


def _mean(losses: Sequence[Tensor]) -> float:
    found = torch.cat(list(losses)) if losses else torch.empty(0)
    return float(found.mean()) if len(found) else float("nan")


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _split_as_parameters(model: nn.Module, vector: Tensor) -> tuple[Tensor, ...]:
    return torch.split(vector, [parameter.numel() for parameter in model.parameters()])


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
