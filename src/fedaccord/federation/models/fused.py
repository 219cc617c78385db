"""Networks in machine code: the convolutional half of the paper's, and whole perceptrons.

For a network of a few thousand numbers, torch takes many times longer to arrange a step than to
compute it. The block is compiled when fedaccord is installed, if the machine has a C++ compiler,
and is used when the processor can run it. FEDACCORD_NATIVE=0 in the environment switches it off.
Results are those of torch up to rounding, and a sample's scores do not depend on the other samples;
dropout uses the same bytes.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fedaccord._checks import Indices
from fedaccord.errors import FedaccordError, InputError

if TYPE_CHECKING:
    from fedaccord.federation.clients import Client
    from fedaccord.federation.models.networks import Perceptron

# How many values a random byte of dropout has.
BYTES = 256
SWITCH = "FEDACCORD_NATIVE"
FOLDER = Path(__file__).parents[1] / "fused"
# Set out by the source: an image has 28 x 28 pixels and gives 12 x 12 windows of 64 channels.
SIDE = 28
WINDOWS = 144
FEATURES = WINDOWS * 64
PLACES = 4
UNITS = 128
SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (UNITS, FEATURES), (UNITS,))
# Of larger perceptrons torch is quicker, as it divides matrices into parts that fit the cache.
MOST_PARAMETERS = 2**16

_POINTER = ctypes.c_void_p
_SIGNATURES: dict[str, tuple[type[Any], list[type[Any]]]] = {
    "fused_source": (ctypes.c_char_p, []),
    "fused_runs_here": (ctypes.c_int, []),
    "fused_forward": (
        ctypes.c_int,
        [ctypes.c_ssize_t, *[_POINTER] * 3, ctypes.c_int, ctypes.c_float, *[_POINTER] * 3],
    ),
    "fused_backward": (ctypes.c_int, [ctypes.c_ssize_t, *[_POINTER] * 6, ctypes.c_float, _POINTER]),
    "perceptron_scores": (ctypes.c_int, [_POINTER, ctypes.c_ssize_t, _POINTER, _POINTER]),
    "perceptron_gradient": (ctypes.c_int, [_POINTER, ctypes.c_ssize_t, *[_POINTER] * 3]),
}
# What the functions give back.
_DONE, _NO_MEMORY, _OUT_OF_RANGE = 0, 1, 2


def available() -> bool:
    """Return whether the native block is built, current, switched on and runs on this machine."""
    return why_not() is None


def why_not() -> str | None:
    """Return why training does not use the native block, or None when it does."""
    reason: str | None = f"the native block is switched off by {SWITCH} in the environment"
    if not is_off(SWITCH):
        reason = _load()[1]
    return f"{reason}; training uses torch, some 5 times slower" if reason else None


def is_off(switch: str) -> bool:
    """Return whether the environment switches something off."""
    return os.environ.get(switch, "1").strip().lower() in ("0", "no", "off", "false")


def hidden_layer(
    images: Tensor, weights: Sequence[Tensor], drawn: Tensor | None, drop: int
) -> Tensor:
    """Return the paper's network up to its hidden layer, as stock torch would, but quicker.

    Torch does the work where a number could overflow or is not finite, because such values would
    not spread as in torch; and where the caller needs a gradient of the images, which the block
    does not compute.

    images: (N, 1, 28, 28).
    weights: of the two convolutions and the linear layer, each weights and bias.
    drawn: (N, 9216) random bytes for dropout between them; None for no dropout.
    drop: as of Dropout.
    """
    _check(images, weights, drawn)
    given = (images.contiguous(), None if drawn is None else drawn.contiguous(), drop)
    kept = [weight.contiguous() for weight in weights]
    found: Tensor | None = None
    if not (torch.is_grad_enabled() and any(t.requires_grad for t in (images, *weights))):
        found, *_ = _forward(*given, kept, for_backward=False)
    elif not images.requires_grad:
        found = _HiddenLayer.apply(*given, *kept)  # type: ignore[no-untyped-call]
    return hidden_layer_in_torch(images, weights, drawn, drop) if found is None else found


def hidden_layer_in_torch(
    images: Tensor, weights: Sequence[Tensor], drawn: Tensor | None, drop: int
) -> Tensor:
    """Return the paper's network up to its hidden layer, in stock torch, tuned."""
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


def drop_units(values: Tensor, drawn: Tensor, drop: int) -> Tensor:
    """Drop the units whose byte is below `drop`, and scale the others."""
    return values * ((drawn >= drop).to(values.dtype) * (BYTES / (BYTES - drop)))


def _check(images: Tensor, weights: Sequence[Tensor], drawn: Tensor | None) -> None:
    for tensor in (images, *weights):
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise InputError(
                f"the native block takes images and weights of type float32 on the CPU; got "
                f'{tensor.dtype} on {tensor.device}: convert them, or use engine="torch"'
            )
    if images.shape[1:] != (1, SIDE, SIDE):
        raise InputError(f"the native block takes 28 x 28 images; got shape {tuple(images.shape)}")
    shapes = tuple(tuple(weight.shape) for weight in weights)
    if shapes != SHAPES:
        raise InputError(f"the native block takes weights of shapes {SHAPES}; got {shapes}")
    if drawn is not None and (drawn.dtype != torch.uint8 or drawn.shape != (len(images), FEATURES)):
        raise InputError(
            f"dropout needs {len(images)} x {FEATURES} bytes; got {tuple(drawn.shape)} of "
            f"{drawn.dtype}"
        )


def _scale(drawn: Tensor | None, drop: int) -> float:
    return 1.0 if drawn is None else 256 / (256 - drop)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _addresses(tensors: Sequence[Tensor]) -> Any:
    return (_POINTER * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


def _forward(
    images: Tensor,
    drawn: Tensor | None,
    drop: int,
    weights: Sequence[Tensor],
    *,
    for_backward: bool,
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """Return the hidden layer (None when out of range), the features, and the pools' winners."""
    # Whatever torch's defaults are: the block writes floats into the machine's memory.
    hidden = torch.empty(len(images), UNITS, dtype=torch.float32, device="cpu")
    features = torch.empty(len(images), FEATURES, dtype=torch.float32, device="cpu")
    winners = None
    if for_backward or drawn is not None:
        winners = torch.empty(len(images), WINDOWS, PLACES, dtype=torch.int64, device="cpu")
    outcome = library().fused_forward(
        len(images),
        images.data_ptr(),
        _addresses(weights),
        _address(drawn),
        drop,
        _scale(drawn, drop),
        features.data_ptr(),
        _address(winners),
        hidden.data_ptr(),
    )
    if outcome == _NO_MEMORY:
        raise MemoryError
    return (None if outcome == _OUT_OF_RANGE else hidden), features, winners


class _HiddenLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, drawn: Tensor | None, drop: int, *weights: Tensor
    ) -> Tensor | None:
        hidden, features, winners = _forward(images, drawn, drop, weights, for_backward=True)
        ctx.drop = drop
        ctx.save_for_backward(images, drawn, features, winners, hidden, *weights)
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        images, drawn, features, winners, hidden, *weights = ctx.saved_tensors
        gradient = gradient.contiguous()
        gradients = [torch.empty_like(weight) for weight in weights]
        outcome = library().fused_backward(
            len(images),
            images.data_ptr(),
            _addresses(weights),
            features.data_ptr(),
            winners.data_ptr(),
            hidden.data_ptr(),
            gradient.data_ptr(),
            _scale(drawn, ctx.drop),
            _addresses(gradients),
        )
        if outcome == _NO_MEMORY:
            raise MemoryError
        if outcome == _OUT_OF_RANGE:
            with torch.enable_grad():
                leaves = [weight.detach().requires_grad_() for weight in weights]
                hidden = hidden_layer_in_torch(images, leaves, drawn, ctx.drop)
                gradients = list(torch.autograd.grad(hidden, leaves, gradient))
        return None, None, None, *gradients


# Perceptrons.


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
    """A perceptron that the block computes; it shares the parameters of torch's.

    model: a network that `find_direct` has looked at.
    seen: what it was then.
    """

    def __init__(self, model: Perceptron, seen: list[object]) -> None:
        layers = [model.fc1, model.fc2] if isinstance(model.fc1, nn.Linear) else [model.fc2]
        self.parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
        self._slopes = [torch.empty_like(p, requires_grad=False) for p in self.parameters]
        classes, width = model.fc2.weight.shape
        self._sizes = (layers[0].weight.shape[1], width if model.hidden else 0, classes)
        self._gradient = self._describe(self._slopes)
        # The parameters are kept here, so no others can have their ids.
        self.seen = seen

    def _describe(self, tensors: Sequence[Tensor]) -> _Layers:
        addresses = [tensor.data_ptr() for tensor in tensors]
        return _Layers(*self._sizes, *[0] * (4 - len(addresses)), *addresses)

    def score(self, points: Tensor) -> Tensor:
        """Return the scores of points."""
        points = points.contiguous()
        scores = torch.empty(len(points), self._sizes[2], dtype=torch.float32)
        given = self._describe(self.parameters)
        _run(
            "perceptron_scores",
            ctypes.byref(given),
            len(points),
            points.data_ptr(),
            scores.data_ptr(),
        )
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
        samples = _Samples(inputs.data_ptr(), labels.data_ptr(), 0, len(labels))
        return self.run(samples, 1, len(labels))

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
        for at, (inputs, labels) in zip(self._samples, self._points, strict=True):
            at.inputs, at.labels = inputs.data_ptr(), labels.data_ptr()

    def set_gradient(self, chosen: Sequence[Indices]) -> list[NDArray[np.float32]]:
        """Set the gradient of the mean loss of the chosen samples; return each client's losses."""
        counts = [len(rows) for rows in chosen]
        for at, rows, count in zip(self._samples, chosen, counts, strict=True):
            at.chosen, at.count = rows.__array_interface__["data"][0], count
        losses = self._network.run(self._samples, len(counts), sum(counts))
        ends = itertools.accumulate(counts)
        return [losses[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _run(name: str, *arguments: object) -> None:
    if getattr(library(), name)(*arguments):
        raise MemoryError


# The library.


def library() -> ctypes.CDLL:
    """Return the native block, or raise a FedaccordError that says why there is none."""
    found, reason = _load()
    if found is None:
        raise FedaccordError(f"{reason}")
    return found


@cache
def _load() -> tuple[ctypes.CDLL | None, str | None]:
    return load_library(FOLDER)


def load_library(folder: Path) -> tuple[ctypes.CDLL | None, str | None]:
    """Load the block compiled in a folder, or say why it cannot be used."""
    file = folder / "fused.so"
    if not file.exists():
        note = folder / "not_built.txt"
        why = f" ({note.read_text(encoding='utf-8').strip()})" if note.exists() else ""
        return None, f"the native block was not built when fedaccord was installed{why}"
    try:
        library = ctypes.CDLL(str(file))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        return None, f"the native block could not be loaded ({error})"
    if library.fused_source() != source_digest(folder).encode():
        return None, (
            "the native block was built from another version of its source "
            "(install fedaccord again to rebuild it)"
        )
    if not library.fused_runs_here():
        return None, "the native block needs a processor with AVX2 and FMA"
    return library, None


def source_digest(folder: Path) -> str:
    """Return the digest of the source, by which the build marks the library."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.[ch]pp")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
