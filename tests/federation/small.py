"""Small federations with made-up points, and models that show what they are given."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.clients import Client, Federation


def blobs(points: int, shift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds in four dimensions, one per class."""
    random = np.random.default_rng(seed)
    labels = np.arange(points) % 3
    centres = np.array([[2, 0, 0, shift], [0, 2, 0, -shift], [0, 0, 2, 0.0]])
    return centres[labels] + random.normal(size=(points, 4)), labels


def linear_model() -> nn.Module:
    return nn.Linear(4, 3).double()


def two_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def in_a_worker_only(act: Callable[[], object]) -> Callable[[], nn.Module]:
    """A model factory that does something once it is in another process than the tests."""
    here = os.getpid()

    def factory() -> nn.Module:
        if os.getpid() != here:
            act()
        return two_layers()

    return factory


def small_federation(
    sizes: tuple[int, ...] = (30, 24, 40), model=two_layers, requirement: float = 0.8, **options
) -> Federation:
    clients = [
        Client(
            f"client {i}",
            train=blobs(size, 0.3 * i, seed=i),
            validation=blobs(18, 0.3 * i, seed=100 + i),
            requirement=requirement,
        )
        for i, size in enumerate(sizes)
    ]
    return Federation(clients, model, **options)


@dataclass(frozen=True, kw_only=True)
class Uneven(FedAvg):
    """Everybody draws what it is told to."""

    counts: tuple[int, ...] = ()

    def allot(self, state):
        return np.array(self.counts)


@dataclass(frozen=True, kw_only=True)
class OwnMean(Uneven):
    """The same by the long way: client by client."""

    def aggregate(self, updates, counts):
        return sum(updates) / len(updates)


class Recorder(nn.Module):
    """A model that logs the first column of every training batch; a new one starts a new log."""

    def __init__(self, seen: list[list[float]]) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3).double()
        self.seen = seen
        seen.clear()

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.seen.append(inputs[:, 0].tolist())
        return self.layer(inputs)


def recorded(sizes: tuple[int, ...], **options) -> tuple[Federation, list[list[float]]]:
    """A federation in which point p of client i is told by the number 1000 i + p, and its log."""
    seen: list[list[float]] = []
    clients = []
    for i, size in enumerate(sizes):
        inputs = np.zeros((size, 4))
        inputs[:, 0] = 1000 * i + np.arange(size)
        points = (inputs, np.arange(size) % 3)
        clients.append(Client(f"client {i}", points, (inputs[:3], [0, 1, 2]), requirement=0.99))

    return Federation(clients, lambda: Recorder(seen), **options), seen


def constant_model(scores: list[float]) -> nn.Module:
    """A model with the same scores for every input."""
    model = nn.Linear(4, 3).double()
    with torch.no_grad():
        model.weight.zero_()
        model.bias.copy_(torch.tensor(scores))
    return model
