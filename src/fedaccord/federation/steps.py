"""One round's step of the model, from the samples that each client drew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedaccord._arrays import Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import Algorithm
from fedaccord.federation.allotment import Counts

Batch: TypeAlias = tuple[Tensor, Tensor]
# Takes each client's samples, steps the model, gives each client's mean loss (NaN for none).
Stepper: TypeAlias = Callable[[Sequence[Batch]], Vector]


def stepper(model: nn.Module, algorithm: Algorithm) -> Stepper:
    """Choose the step that an algorithm asks for."""
    if algorithm.form == "local":
        return lambda batches: local_step(model, algorithm, batches)
    optimizer = new_optimizer(model, algorithm.optimizer, algorithm.learning_rate)
    # The mean of the clients' gradients, weighted by samples, is the gradient of all samples
    # together, which is quicker to find. An algorithm with a mean of its own goes the long way,
    # and so does a model in which the samples of a batch change each other's scores.
    if type(algorithm).aggregate is Algorithm.aggregate and not _mixes_samples(model):
        return lambda batches: pooled_step(model, optimizer, algorithm.local_batches, batches)
    return lambda batches: gradient_step(model, optimizer, algorithm, batches)


def new_optimizer(model: nn.Module, kind: str, learning_rate: float) -> torch.optim.Optimizer:
    """Make an optimizer of the model's parameters."""
    make = torch.optim.Adam if kind == "adam" else torch.optim.SGD
    return make(model.parameters(), lr=learning_rate, fused=True)


def pooled_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: int,
    batches: Sequence[Batch],
) -> Vector:
    """Step on the samples of all clients put together, in so many steps."""
    losses: list[list[Tensor]] = [[] for _ in batches]
    for parts in zip(*(_parts(batch, steps) for batch in batches), strict=True):
        sizes = [len(labels) for _, labels in parts]
        if not sum(sizes):
            continue
        inputs = torch.cat([inputs for inputs, _ in parts])
        labels = torch.cat([labels for _, labels in parts])
        found = take_step(model, optimizer, inputs, labels)
        for mine, loss in zip(losses, found.split(sizes), strict=True):
            mine.append(loss)
    return np.array([_mean(mine) for mine in losses])


def gradient_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    algorithm: Algorithm,
    batches: Sequence[Batch],
) -> Vector:
    """Step along the algorithm's own mean of the clients' gradients, in `local_batches` steps."""
    losses: list[list[Tensor]] = [[] for _ in batches]
    for parts in zip(*(_parts(batch, algorithm.local_batches) for batch in batches), strict=True):
        gradients = []
        for mine, (inputs, labels) in zip(losses, parts, strict=True):
            if len(labels):
                optimizer.zero_grad()
                mine.append(add_gradient(model, inputs, labels))
                gradients.append(torch.cat([_gradient(p).flatten() for p in model.parameters()]))
        if not gradients:
            continue
        counts = np.array([len(labels) for _, labels in parts if len(labels)])
        mean = aggregated(algorithm, gradients, counts)
        for parameter, part in zip(
            model.parameters(), _split_as_parameters(model, mean), strict=True
        ):
            parameter.grad = part.reshape(parameter.shape).clone()
        optimizer.step()
    return np.array([_mean(mine) for mine in losses])


def local_step(model: nn.Module, algorithm: Algorithm, batches: Sequence[Batch]) -> Vector:
    """Let each client step from the server's model, batch by batch, and average their models."""
    server = _read(model)
    updates, counts, losses = [], [], []
    for inputs, labels in batches:
        found = []
        if len(labels):
            _write(model, server)
            optimizer = new_optimizer(model, algorithm.optimizer, algorithm.learning_rate)
            size = algorithm.batch_size
            for part in zip(inputs.split(size), labels.split(size), strict=True):
                found.append(take_step(model, optimizer, *part))
            updates.append(_read(model))
            counts.append(len(labels))
        losses.append(_mean(found))
    if updates:
        _write(model, aggregated(algorithm, updates, np.array(counts)))
    return np.array(losses)


def aggregated(algorithm: Algorithm, updates: list[Tensor], counts: Counts) -> Tensor:
    """Ask an algorithm for one update, and see to it that it is one."""
    mean: Any = algorithm.aggregate(updates, counts)
    like = updates[0]
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


def _parts(batch: Batch, parts: int) -> Iterator[Batch]:
    """Cut a client's samples into so many parts of nearly equal size, some perhaps empty."""
    inputs, labels = batch
    return zip(inputs.tensor_split(parts), labels.tensor_split(parts), strict=True)


def _mean(losses: Sequence[Tensor]) -> float:
    found = torch.cat(list(losses)) if losses else torch.empty(0)
    return float(found.mean()) if len(found) else float("nan")


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _split_as_parameters(model: nn.Module, vector: Tensor) -> tuple[Tensor, ...]:
    return torch.split(vector, [parameter.numel() for parameter in model.parameters()])


def _state(model: nn.Module) -> Iterator[Tensor]:
    """Give all that is averaged: parameters, and buffers such as running means."""
    yield from model.parameters()
    yield from (buffer for buffer in model.buffers() if buffer.is_floating_point())


def _read(model: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in _state(model)])


def _write(model: nn.Module, vector: Tensor) -> None:
    tensors = list(_state(model))
    with torch.no_grad():
        for tensor, part in zip(tensors, vector.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.reshape(tensor.shape))
