"""A step of training: the loss that it lowers, by the kind of labels, and the optimizers.

Adam and gradient descent are torch's fused kernels, called directly. torch.optim arranges for many
cases that do not occur here. To make an optimizer it loads torch's compiler, which takes a second,
and a step of a small network takes several times longer. The kernels and so the results are the
same, to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

# The defaults of torch.optim.Adam and torch.optim.SGD.
_BOTH: dict[str, Any] = {
    "weight_decay": 0.0, "maximize": False, "grad_scale": None, "found_inf": None
}  # fmt: skip
_ADAM = {**_BOTH, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False}
_SGD = {**_BOTH, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "is_first_step": False}
_KERNELS = {
    "adam": getattr(torch, "_fused_adam_", None),
    "sgd": getattr(torch, "_fused_sgd_", None),
}
_PLAIN = ({(torch.float32, "cpu")}, {(torch.float64, "cpu")})


def find_losses(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of each sample.

    Whole labels are classes and have the cross-entropy. Others are amounts, with the squared
    distance, or pairs of a time and whether the event took place, with the partial likelihood.
    """
    if not labels.is_floating_point():
        return cross_entropy(scores, labels, reduction="none")
    if labels.ndim == 1:
        return (scores[:, 0] - labels) ** 2
    return find_partial_losses(scores[:, 0], labels[:, 0], labels[:, 1])


def find_partial_losses(risks: Tensor, times: Tensor, events: Tensor) -> Tensor:
    """Return minus the logarithm of Cox's partial likelihood, one term per sample (Breslow).

        loss_i  =  event_i (log sum over j with time_j >= time_i of exp(risk_j)  -  risk_i)

    Only samples of the same batch are compared, so that no client's times are held against
    another's.

    risks: of the samples.
    times: of the event, or of the last sight.
    events: 1 where the event took place, else 0.
    """
    at_risk = times[None, :] >= times[:, None]
    total = torch.logsumexp(risks[None, :].masked_fill(~at_risk, -torch.inf), dim=1)
    return events * (total - risks)


def compares_samples(labels: Tensor) -> bool:
    """Return whether the loss of a sample depends on the other samples of its batch."""
    return labels.ndim > 1


class Optimizer(Protocol):
    """Steps parameters along their gradients."""

    def step(self) -> Any:
        """Step once; a parameter without a gradient stays as it is."""


class FusedOptimizer:
    """Adam or gradient descent with the settings that torch.optim has by default.

    parameters: of one type, in the machine's memory.
    kind: "adam" or "sgd".
    learning_rate: eta.
    """

    def __init__(self, parameters: Sequence[Tensor], kind: str, learning_rate: float) -> None:
        self._parameters = list(parameters)
        self._kernel, self._is_adam = _KERNELS[kind], kind == "adam"
        self._rate = learning_rate
        # Of Adam, for each parameter: means of its gradients and their squares, and its steps.
        self._means, self._squares = (
            [torch.zeros_like(p, requires_grad=False) for p in parameters] for _ in range(2)
        )
        self._steps = [torch.zeros((), dtype=torch.float32) for _ in parameters]

    def step(self) -> None:
        """Step once; a parameter without a gradient stays as it is."""
        slopes = [parameter.grad for parameter in self._parameters]
        lists: list[list[Any]] = [self._parameters, slopes]
        if self._is_adam:
            lists += [self._means, self._squares, self._steps]
        if any(slope is None for slope in slopes):
            has = [slope is not None for slope in slopes]
            lists = [list(itertools.compress(some, has)) for some in lists]
        if not lists[0]:
            return
        assert self._kernel is not None
        with torch.no_grad():
            if self._is_adam:
                *given, steps = lists
                torch._foreach_add_(steps, 1)
                self._kernel(*given, [], steps, lr=self._rate, **_ADAM)
            else:
                self._kernel(*lists, [], lr=self._rate, **_SGD)


def new_optimizer(model: nn.Module, kind: str, learning_rate: float) -> Optimizer:
    """Make an optimizer of the model's parameters."""
    parameters = list(model.parameters())
    plain = {(p.dtype, p.device.type) for p in parameters} in _PLAIN
    if plain and _KERNELS[kind] is not None:
        return FusedOptimizer(parameters, kind, learning_rate)
    return new_torch_optimizer(parameters, kind, learning_rate)


def new_torch_optimizer(
    parameters: Iterable[nn.Parameter], kind: str, learning_rate: float
) -> torch.optim.Optimizer:
    """Make torch's own optimizer, whose state can be read and put back."""
    make = torch.optim.Adam if kind == "adam" else torch.optim.SGD
    return make(parameters, lr=learning_rate, fused=True)
