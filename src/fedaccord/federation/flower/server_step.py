"""The server's part of a round where it is more than an average: its optimizer's step."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower.replies import Arrays
from fedaccord.federation.training.session import Course
from fedaccord.federation.training.steps import aggregated, new_optimizer


class ServerStep:
    """Makes the next model of what the clients sent, as the local loop does.

    In the pooled form their gradients are averaged and the server's optimizer, which lasts, takes
    the step; in the local form their models become one by the algorithm's own mean.

    algorithm: its form, its mean and its optimizer.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self._parameters: nn.ParameterList | None = None
        self._optimizer: torch.optim.Optimizer | None = None

    def __call__(
        self, server: Arrays, every: Sequence[Arrays], counts: Sequence[int], *, course: Course
    ) -> Arrays:
        """Give the next model.

        server: the present model.
        every: what the clients sent that were heard.
        counts: how many samples each of all clients used.
        course: of the algorithm.
        """
        mean = aggregated(course, [_flat(arrays) for arrays in every], counts)
        parts = _cut_as(server, mean)
        made = parts if self._algorithm.form == "local" else self._step(server, parts)
        # What is not floating-point, such as a counter, stays as it is.
        return {**server, **made}

    def kept(self) -> Any:
        """Give what the optimizer remembers, to be put back."""
        return None if self._optimizer is None else copy.deepcopy(self._optimizer.state_dict())

    def put_back(self, kept: Any) -> None:
        """Let the optimizer remember what it did before."""
        if kept is None:
            self._optimizer = None
        elif self._optimizer is not None:
            self._optimizer.load_state_dict(kept)

    @property
    def is_finite(self) -> bool:
        """Whether all that the optimizer remembers is finite."""
        every = self._optimizer.state.values() if self._optimizer is not None else ()
        return all(bool(torch.isfinite(t).all()) for state in every for t in state.values())

    def _step(self, server: Arrays, gradient: Arrays) -> Arrays:
        if self._optimizer is None:
            # A list keeps the order and takes any name.
            self._parameters = nn.ParameterList([torch.tensor(server[n]) for n in gradient])
            self._optimizer = new_optimizer(
                self._parameters, self._algorithm.optimizer, self._algorithm.learning_rate
            )
        assert self._parameters is not None
        for parameter, name in zip(self._parameters, gradient, strict=True):
            parameter.data.copy_(torch.from_numpy(np.array(server[name])))
            parameter.grad = torch.from_numpy(gradient[name])
        self._optimizer.step()
        values = (parameter.detach().numpy().copy() for parameter in self._parameters)
        return dict(zip(gradient, values, strict=True))


def _flat(arrays: Arrays) -> Tensor:
    """Put all floating-point arrays after one another."""
    return torch.cat([torch.tensor(a).flatten() for a in arrays.values() if a.dtype.kind == "f"])


def _cut_as(server: Arrays, vector: Tensor) -> Arrays:
    cut, start = {}, 0
    for name, array in server.items():
        if array.dtype.kind == "f":
            part = vector[start : start + array.size]
            cut[name] = part.numpy().reshape(array.shape).astype(array.dtype)
            start += array.size
    return cut
