"""Parts of networks: dropout of our own, and the paper's network up to its hidden layer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedaccord.errors import InputError

BYTES = 256


class Dropout(nn.Module):
    """Drop each unit with probability drop / 256 and scale the others by 256 / (256 - drop).

    A unit is dropped where a random byte is below `drop`, so the probability is exact. Set `stream`
    to draw the bytes from it; without one they come from torch's generator. Every row takes the
    same number of draws, whatever batch it is in.

    drop: how many of the 256 values of a byte drop a unit; 64 for a quarter, 128 for a half.
    """

    def __init__(self, drop: int) -> None:
        super().__init__()
        if not 0 <= drop < BYTES:
            raise InputError(f"drop must be a whole number from 0 to 255, of 256; got {drop}")
        self.drop = drop
        self.stream: np.random.Generator | None = None

    def draw(self, rows: int, units: int) -> Tensor:
        """Draw one byte per unit, (rows, units); a unit is dropped where its byte is below drop."""
        if self.stream is None:
            return torch.randint(BYTES, (rows, units), dtype=torch.uint8)
        # Eight bytes at a time, many times quicker than one. What a row does not use is left.
        words = self.stream.integers(
            2**64 - 1, size=(rows, -(-units // 8)), dtype=np.uint64, endpoint=True
        )
        return torch.from_numpy(words.view(np.uint8)[:, :units])

    def forward(self, values: Tensor) -> Tensor:
        """Drop units of (rows, ...) in training; change nothing in evaluation."""
        if not self.training or self.drop == 0:
            return values
        drawn = self.draw(len(values), math.prod(values.shape[1:]))
        return drop_units(values, drawn.reshape(values.shape), self.drop)

    def extra_repr(self) -> str:
        """Say the probability."""
        return f"p={self.drop / BYTES:g}"


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
    """Give the paper's network up to its hidden layer, in stock torch, tuned.

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
