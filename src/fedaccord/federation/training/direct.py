"""Small networks in machine code: their scores, and the gradients of their losses.

For a network of a few thousand numbers, torch takes many times longer to arrange a step than to
compute it. The built-in networks of one hidden layer or none go to the native block instead, with
whatever algorithm trains them. Results are those of torch up to rounding, and a sample's scores do
not depend on the other samples. All other networks, and all where the block is not available,
go through torch. FEDACCORD_NATIVE=0 in the environment switches the block off.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedaccord._checks import Indices
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.networks import Perceptron

if TYPE_CHECKING:
    from fedaccord.federation.clients import Client

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


class _Layers(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_ssize_t) for name in ("inputs", "hidden", "classes")),
        *((name, ctypes.c_void_p) for name in ("weights1", "bias1", "weights2", "bias2")),
    )


class _Samples(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("inputs", "labels", "chosen")),
        ("count", ctypes.c_ssize_t),
    )


class DirectNetwork:
    """A network that the native block computes; it shares the parameters of torch's.

    model: a network that `find_direct` has looked at.
    """

    def __init__(self, model: Perceptron) -> None:
        layers = [model.fc1, model.fc2] if isinstance(model.fc1, nn.Linear) else [model.fc2]
        self.parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
        self._slopes = [torch.empty_like(p, requires_grad=False) for p in self.parameters]
        classes, width = model.fc2.weight.shape
        self._sizes = (layers[0].weight.shape[1], width if model.hidden else 0, classes)
        self._gradient = self._describe(self._slopes)
        # The parameters are kept here, so no others can have their ids.
        self.seen = _list_parts(model)

    def _describe(self, tensors: Sequence[Tensor]) -> _Layers:
        addresses = [tensor.data_ptr() for tensor in tensors]
        return _Layers(*self._sizes, *[0] * (4 - len(addresses)), *addresses)

    def score(self, points: Tensor) -> Tensor:
        """Return the scores of points."""
        points = points.contiguous()
        scores = torch.empty(len(points), self._sizes[2], dtype=torch.float32)
        given = self._describe(self.parameters)
        _run("perceptron_scores", ctypes.byref(given), len(points), *_addresses(points, scores))
        return scores

    def takes(self, inputs: Tensor, labels: Tensor | None = None) -> bool:
        """Return whether these are points for it, with classes for labels if there are any."""
        if inputs.dtype != torch.float32 or inputs.numel() != len(inputs) * self._sizes[0]:
            return False
        if labels is None:
            return True
        return bool(
            len(labels) == len(inputs) > 0
            and (labels.dtype, labels.ndim) == (torch.int64, 1)
            and int(labels.min()) >= 0
            and int(labels.max()) < self._sizes[2]
        )

    def set_gradient(self, inputs: Tensor, labels: Tensor) -> NDArray[np.float32]:
        """Set the parameters' gradient to that of the mean loss; return each sample's loss."""
        inputs, labels = inputs.contiguous(), labels.contiguous()
        return self.run(_Samples(*_addresses(inputs, labels), 0, len(labels)), 1, len(labels))

    def run(
        self, samples: ctypes.Array[_Samples] | _Samples, clients: int, count: int
    ) -> NDArray[np.float32]:
        """Have the native block set the gradient."""
        losses = np.empty(count, dtype=np.float32)
        for parameter, slope in zip(self.parameters, self._slopes, strict=True):
            parameter.grad = slope
        given = self._describe(self.parameters)
        _run(
            *("perceptron_gradient", ctypes.byref(given), clients, ctypes.byref(samples)),
            *(ctypes.byref(self._gradient), losses.__array_interface__["data"][0]),
        )
        return losses


class JoinedClients:
    """The samples of clients whose losses a network is to lower together.

    network: what is trained.
    clients: whose samples they are, all of which the network takes.
    """

    def __init__(self, network: DirectNetwork, clients: Sequence[Client]) -> None:
        self._network = network
        # Kept for as long as the native block may read them.
        self._points = [(c.inputs.contiguous(), c.labels.contiguous()) for c in clients]
        self._samples = (_Samples * len(clients))()
        for at, points in zip(self._samples, self._points, strict=True):
            at.inputs, at.labels = _addresses(*points)

    def set_gradient(self, chosen: Sequence[Indices]) -> list[NDArray[np.float32]]:
        """Set the gradient of the mean loss of the chosen samples; return each client's losses."""
        counts = [len(rows) for rows in chosen]
        for at, rows, count in zip(self._samples, chosen, counts, strict=True):
            at.chosen, at.count = rows.__array_interface__["data"][0], count
        losses = self._network.run(self._samples, len(counts), sum(counts))
        ends = itertools.accumulate(counts)
        return [losses[end - count : end] for end, count in zip(ends, counts, strict=True)]


def join_clients(model: nn.Module, clients: Sequence[Client]) -> JoinedClients | None:
    """Return the samples of clients for the native block; None where it does not compute a model.

    model: to be trained.
    clients: whose samples it is trained on.
    """
    direct = find_direct(model)
    if direct is None or not all(direct.takes(c.inputs, c.labels) for c in clients):
        return None
    return JoinedClients(direct, clients)


def _addresses(*tensors: Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def _run(name: str, *arguments: object) -> None:
    if getattr(native.library(), name)(*arguments):
        raise MemoryError


_found: WeakKeyDictionary[nn.Module, DirectNetwork | None] = WeakKeyDictionary()


def find_direct(model: nn.Module) -> DirectNetwork | None:
    """Return the network that the native block computes in place of a model; None for none."""
    direct = _found.get(model)
    if direct is None and model in _found:
        return None
    # Since the last time somebody may have added a hook, or put other parameters in.
    if direct is not None and direct.seen == _list_parts(model):
        return direct
    direct = None
    if isinstance(model, Perceptron) and native.available() and _is_plain(model):
        direct = DirectNetwork(model)
    _found[model] = direct
    return direct


def _list_parts(model: nn.Module) -> list[object]:
    """Return what makes a network plain, in a form that is quickly compared at every step."""
    found: list[object] = []
    for module in (model, *model._modules.values()):
        own = vars(module)
        found += [type(module), "forward" in own, *(len(own[name]) for name in _HOOKS)]
        for parameter in own["_parameters"].values():
            if parameter is not None:
                hooks = [bool(getattr(parameter, name, None)) for name in _TENSOR_HOOKS]
                found += [id(parameter), parameter.dtype, parameter.requires_grad, *hooks]
    return found


def keep_in_torch(model: nn.Module) -> None:
    """Have torch compute a model, so that its numbers do not depend on the native block."""
    _found[model] = None


def _is_plain(model: Perceptron) -> bool:
    """Return whether a network is as it was made: nobody changes what its layers do."""
    modules = [model, *model.children()]
    # A class derived from it, or another layer in its place, may do something else.
    expected = [Perceptron, nn.Linear if model.hidden else nn.Identity, nn.Linear]
    if [type(m) for m in modules] != expected or model.engine in ("torch", "eager"):
        return False
    if any("forward" in vars(m) or any(getattr(m, name) for name in _HOOKS) for m in modules):
        return False
    parameters = list(model.parameters())
    if len(parameters) != (4 if model.hidden else 2):
        return False
    if isinstance(model.fc1, nn.Linear) and len(model.fc1.weight) != model.fc2.weight.shape[1]:
        return False
    return sum(p.numel() for p in parameters) <= native.MOST_PARAMETERS and all(
        (p.dtype, p.device.type, p.requires_grad) == (torch.float32, "cpu", True)
        and p.is_contiguous()
        and not any(getattr(p, name, None) for name in _TENSOR_HOOKS)
        for p in parameters
    )
