"""The work that every engine is given, and how the benchmark talks to an engine's process.

It is read by engines that have no fedaccord installed: numpy and torch are all it needs. A piece
of work is a federation in a file: each client's points, the points it draws in each round, and
the weights to start from.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.optimizer import register_optimizer_step_post_hook

# Features of the paper's network: 64 channels of 12 x 12.
CHANNELS, PLACES = 64, 144
steps_taken = 0


class Work:
    """One federation and its draws, from a file that `save` wrote."""

    def __init__(self, path: str | Path) -> None:
        with np.load(path) as file:
            stored = {name: file[name] for name in file.files}
        self.settings: dict[str, Any] = json.loads(str(stored.pop("settings")))
        self.start = {
            name.removeprefix("start/"): value
            for name, value in stored.items()
            if name.startswith("start/")
        }
        # clients x rounds x samples
        self.draws = torch.from_numpy(stored["draws"])
        self.points = {
            kind: [
                tuple(torch.from_numpy(stored[f"{kind}/{what}/{i}"]) for what in ("x", "y"))
                for i in range(self.clients)
            ]
            for kind in ("train", "validation")
        }

    @property
    def clients(self) -> int:
        return len(self.settings["names"])

    def samples(self, client: int, round_number: int) -> tuple[Tensor, Tensor]:
        """Give what a client trains on in a round, counted from 0."""
        inputs, labels = self.points["train"][client]
        rows = self.draws[client, round_number]
        return inputs[rows], labels[rows]

    def model(self, *, dropout: bool = True) -> nn.Module:
        """Make the network as a user of torch has it, with weights of its own."""
        if self.settings["network"] == "paper":
            return PlainNet(self.settings["classes"], dropout)
        return PlainPerceptron(self.settings["inputs"], self.settings["classes"])


@functools.cache
def work(folder: str, name: str) -> Work:
    """Read a piece of work once in each process."""
    return Work(Path(folder) / f"{name}.npz")


class PlainNet(nn.Module):
    """The paper's network, as one writes it down."""

    def __init__(self, classes: int, dropout: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25 if dropout else 0.0)
        self.fc1 = nn.Linear(CHANNELS * PLACES, 128)
        self.dropout2 = nn.Dropout(0.5 if dropout else 0.0)
        self.fc2 = nn.Linear(128, classes)

    def forward(self, images: Tensor) -> Tensor:
        inner = functional.relu(self.conv2(functional.relu(self.conv1(images))))
        features = self.dropout1(functional.max_pool2d(inner, 2)).flatten(1)
        return self.fc2(self.dropout2(functional.relu(self.fc1(features))))


class PlainPerceptron(nn.Module):
    """One hidden layer of 64, as one writes it down."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(inputs, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, points: Tensor) -> Tensor:
        return self.fc2(functional.relu(self.fc1(points.flatten(1))))


def channels_first(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Order the features of our network as the plain one does; of others change nothing."""
    return _reordered(weights, (PLACES, CHANNELS))


def channels_last(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Order the features of the plain network as ours does; of others change nothing."""
    return _reordered(weights, (CHANNELS, PLACES))


def _reordered(weights: dict[str, np.ndarray], shape: tuple[int, int]) -> dict[str, np.ndarray]:
    if "conv2.weight" not in weights:
        return weights
    rows = weights["fc1.weight"]
    turned = rows.reshape(-1, *shape).transpose(0, 2, 1).reshape(rows.shape)
    return {**weights, "fc1.weight": np.ascontiguousarray(turned)}


def as_state(weights: dict[str, np.ndarray]) -> dict[str, Tensor]:
    """Give weights as a state dict."""
    return {name: torch.from_numpy(value.copy()) for name, value in weights.items()}


def fit(
    model: nn.Module, inputs: Tensor, labels: Tensor, *, batch_size: int, learning_rate: float
) -> tuple[int, float]:
    """Take a client's steps, as a user of torch writes them; give samples seen and mean loss."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    seen, summed = 0, 0.0
    for x, y in zip(inputs.split(batch_size), labels.split(batch_size), strict=True):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        seen += len(y)
        summed += loss.item() * len(y)
    return seen, summed / seen


def accuracy(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    """Measure a model, as a user of torch does."""
    model.eval()
    with torch.no_grad():
        return (model(inputs).argmax(dim=1) == labels).float().mean().item()


def count_steps() -> None:
    """Count every step of every optimizer of this process in `steps_taken`."""

    def count(*_: Any) -> None:
        global steps_taken
        steps_taken += 1

    register_optimizer_step_post_hook(count)


def answer(jobs: Callable[[dict[str, Any]], dict[str, Any]], ready: dict[str, Any]) -> None:
    """Do the jobs that come in as lines of JSON, until there are no more.

    jobs: does one.
    ready: what to say first.
    """
    for job in told(ready):
        tell(jobs(job))


def told(ready: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Say that the engine is ready, and give the jobs as they come in."""
    tell(ready)
    for line in sys.stdin:
        yield json.loads(line)


@functools.cache
def _answers() -> Any:
    """Keep the pipe for answers; whatever else is printed goes to the errors."""
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return pipe


def tell(answer: dict[str, Any]) -> None:
    """Send a line of JSON to the benchmark."""
    print(json.dumps(answer), file=_answers(), flush=True)


def keep_answers_apart() -> None:
    """Call before anything can print."""
    _answers()
