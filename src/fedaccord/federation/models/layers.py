"""Parts of networks: dropout of our own, and the paper's network up to its hidden layer."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedaccord.errors import InputError
from fedaccord.federation.training.rng import stream

BYTES = 256


class ClientRows(NamedTuple):
    """Rows of a batch that are one client's.

    client: its name.
    drawn: how many samples it had drawn before the step that they are for.
    rows: how many they are.
    """

    client: str
    drawn: int
    rows: int


class Dropout(nn.Module):
    """Drop each unit with probability drop / 256 and scale the others by 256 / (256 - drop).

    A unit is dropped where a random byte is below `drop`, so the probability is exact. Set `stream`
    to draw the bytes from it, or `turns` to draw them from one stream after the other, each for
    so many rows; without either they come from torch's generator. Every row takes the same number
    of draws, whatever batch it is in.

    drop: how many of the 256 values of a byte drop a unit; 64 for a quarter, 128 for a half.
    """

    def __init__(self, drop: int) -> None:
        super().__init__()
        if not 0 <= drop < BYTES:
            raise InputError(f"drop must be a whole number from 0 to 255, of 256; got {drop}")
        self.drop = drop
        self.stream: np.random.Generator | None = None
        self.turns: deque[tuple[np.random.Generator, int]] | None = None

    def draw(self, rows: int, units: int) -> Tensor:
        """Draw one byte per unit, (rows, units); a unit is dropped where its byte is below drop."""
        if rows == 0:
            return torch.empty((0, units), dtype=torch.uint8)
        if self.turns is not None:
            parts = [_words(random, some, units) for random, some in self._taken(rows)]
            words = parts[0] if len(parts) == 1 else np.concatenate(parts)
        elif self.stream is not None:
            words = _words(self.stream, rows, units)
        else:
            return torch.randint(BYTES, (rows, units), dtype=torch.uint8)
        return torch.from_numpy(words.view(np.uint8)[:, :units])

    def _taken(self, rows: int) -> list[tuple[np.random.Generator, int]]:
        """Take the next rows from those whose turn it is, and object to more than there are."""
        assert self.turns is not None
        taken, wanted = [], rows
        while wanted:
            if not self.turns:
                raise InputError(
                    f"dropout was asked for {rows} rows, {wanted} more than the clients' samples: "
                    "in training use each Dropout once in a pass, with one row per sample"
                )
            random, left = self.turns.popleft()
            some = min(wanted, left)
            taken.append((random, some))
            wanted -= some
            if left > some:
                self.turns.appendleft((random, left - some))
        return taken

    def forward(self, values: Tensor) -> Tensor:
        """Drop units of (rows, ...) in training; change nothing in evaluation."""
        if not self.training or self.drop == 0:
            return values
        drawn = self.draw(len(values), math.prod(values.shape[1:]))
        return drop_units(values, drawn.reshape(values.shape), self.drop)

    def extra_repr(self) -> str:
        """Say the probability."""
        return f"p={self.drop / BYTES:g}"


def _words(random: np.random.Generator, rows: int, units: int) -> NDArray[np.uint64]:
    # Eight bytes at a time, as the streams make them, many times quicker than one. What a row
    # does not use is left.
    return random.bit_generator.random_raw((rows, -(-units // 8)))


def dropouts(model: nn.Module) -> list[Dropout]:
    """Find each dropout of ours in a model; its number is its place."""
    return [module for module in model.modules() if isinstance(module, Dropout)]


def ready_dropout(model: nn.Module, batch: Sequence[ClientRows], *, seed: int) -> None:
    """Let the rows that a model is given next be masked from their clients' own streams.

        stream of a client and place  =  stream(seed, place, name, drawn)

    So a client's masks depend on nobody else. They are for these rows and no more: dropout that is
    asked for others in training objects.

    model: whose dropout of ours is readied.
    batch: whose the rows are, in their order.
    seed: of the run.
    """
    for place, module in enumerate(dropouts(model)):
        module.turns = deque(
            (stream(seed, "dropout", place, client, drawn), rows)
            for client, drawn, rows in batch
            if rows
        )


def drop_units(values: Tensor, drawn: Tensor, drop: int) -> Tensor:
    """Drop the units whose byte is below `drop`, and scale the others.

    values: of the units.
    drawn: a byte per unit.
    drop: as of Dropout.
    """
    return values * ((drawn >= drop).to(values.dtype) * (BYTES / (BYTES - drop)))


def hidden_layer(
    images: Tensor, weights: Sequence[Tensor], drawn: Tensor | None, drop: int
) -> Tensor:
    """Return the paper's network up to its hidden layer, in stock torch, tuned.

    images: (N, 1, 28, 28).
    weights: of the two convolutions and the linear layer, each weights and bias.
    drawn: (N, 9216) random bytes for dropout between them; None for no dropout.
    drop: as of Dropout.
    """
    weights1, bias1, weights2, bias2, weights3, bias3 = weights
    # Of equals the pool takes the first, and relu keeps the order: pooling before relu gives the
    # same values and gradients for a quarter of the work. Channels go last, which the second
    # convolution is quicker at, and in which order the features are wanted.
    inner = functional.relu_(functional.conv2d(images, weights1, bias1))
    inner = inner.contiguous(memory_format=torch.channels_last)
    kernels = weights2.contiguous(memory_format=torch.channels_last)
    pooled = functional.max_pool2d(functional.conv2d(inner, kernels, bias2), 2)
    features = functional.relu_(pooled).permute(0, 2, 3, 1).flatten(1)
    if drawn is not None:
        features = drop_units(features, drawn, drop)
    return functional.relu(functional.linear(features, weights3, bias3))
