"""How the clients' models become one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._lazy import imported
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.remote.ledger import Ledger
from fedaccord.federation.remote.replies import Arrays, Update

if TYPE_CHECKING:
    import torch
    from torch import nn


class NextModel:
    """Makes the next model of what the clients sent.

    Models are averaged without torch, which a server need not have. It is needed for an algorithm
    with a mean of its own, and in the pooled form: the clients' gradients are averaged, and the
    server's optimizer, which lasts, takes the step, as in the local loop.

    algorithm: its form, its mean and its optimizer.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self._parameters: nn.ParameterList | None = None
        self._optimizer: torch.optim.Optimizer | None = None
        self._steps: Any = None
        if algorithm.form == "pooled" or not algorithm.averages:
            self._steps = imported("fedaccord.federation.training.loop")

    def __call__(
        self, model: Arrays, updates: Mapping[str, Update], *, ledger: Ledger, finite: bool = False
    ) -> Arrays | None:
        """Return the next model.

        model: the present one.
        updates: what the clients sent, and how many samples each used, in the ledger's order.
        ledger: of all clients.
        finite: whether to return None, and forget what was sent, if the next model is not finite.
        """
        remembered = None
        if finite and self._optimizer is not None:
            remembered = copy.deepcopy(self._optimizer.state_dict())
        # The sum of finite numbers need not be one.
        with np.errstate(over="ignore", invalid="ignore"):
            if self._steps is None:
                made = _average(self._algorithm, model, updates)
            else:
                made = self._step(model, updates, ledger)
        every = self._optimizer.state.values() if self._optimizer is not None else ()
        if not finite or (
            all(bool(np.isfinite(a).all()) for a in made.values() if a.dtype.kind in "fc")
            and all(bool(t.isfinite().all()) for state in every for t in state.values())
        ):
            return made
        if remembered is None:
            self._optimizer = None
        elif self._optimizer is not None:
            self._optimizer.load_state_dict(remembered)
        return None

    def _step(self, server: Arrays, updates: Mapping[str, Update], ledger: Ledger) -> Arrays:
        import torch

        numbers = {name: array for name, array in server.items() if array.dtype.kind == "f"}
        sent = [
            torch.cat([torch.tensor(update.arrays[name]).flatten() for name in numbers])
            for update in updates.values()
        ]
        counts = [updates[n].samples if n in updates else 0 for n in ledger.names]
        parts = self._steps.aggregate(ledger, sent, counts).split(
            [a.size for a in numbers.values()]
        )
        made = {
            name: part.numpy().reshape(array.shape).astype(array.dtype)
            for (name, array), part in zip(numbers.items(), parts, strict=True)
        }
        if self._algorithm.form == "pooled":
            made = self._descend(server, made)
        # What is not floating-point, such as a counter, stays as it is.
        return {**server, **made}

    def _descend(self, server: Arrays, gradient: Arrays) -> Arrays:
        import torch

        if self._optimizer is None:
            # A list keeps the order and takes any name.
            self._parameters = torch.nn.ParameterList([torch.tensor(server[n]) for n in gradient])
            optimizers = imported("fedaccord.federation.training.steps")
            self._optimizer = optimizers.new_torch_optimizer(
                self._parameters, self._algorithm.optimizer, self._algorithm.learning_rate
            )
        assert self._parameters is not None
        for parameter, name in zip(self._parameters, gradient, strict=True):
            parameter.data.copy_(torch.from_numpy(np.array(server[name])))
            parameter.grad = torch.from_numpy(gradient[name])
        self._optimizer.step()
        values = (parameter.detach().numpy().copy() for parameter in self._parameters)
        return dict(zip(gradient, values, strict=True))


def _average(algorithm: Algorithm, model: Arrays, updates: Mapping[str, Update]) -> Arrays:
    """Average arrays of numbers; what is not floating-point, such as a counter, stays as it is."""
    every = [update.arrays for update in updates.values()]
    counts = np.array([update.samples for update in updates.values()])
    return {
        name: np.asarray(algorithm.aggregate([arrays[name] for arrays in every], counts))
        if present.dtype.kind == "f"
        else present
        for name, present in model.items()
    }


def find_largest(updates: Mapping[str, Update], server_round: int) -> tuple[str, str]:
    """Find who sent the number furthest from 0; return its name and what is to be said of it."""
    sizes = {name: _magnitude(update.arrays) for name, update in updates.items()}
    name = max(sizes, key=lambda name: sizes[name])
    return name, (
        f"sent numbers as large as {sizes[name]:.2g} in round {server_round}, more than any other "
        "client: together the replies make a model that is not finite, so the last model is kept"
    )


def _magnitude(arrays: Arrays) -> float:
    numbers = [a for a in arrays.values() if a.dtype.kind == "f" and a.size]
    return max((float(np.abs(a).max()) for a in numbers), default=0.0)
