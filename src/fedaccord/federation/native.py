"""The convolutional half of the paper's network as one block of machine code.

It is compiled when fedaccord is installed, if the machine has a C++ compiler, and is used when the
processor can run it. FEDACCORD_NATIVE=0 in the environment switches it off. Results are those of
torch up to rounding; dropout uses the same bytes.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from fedaccord.errors import FedaccordError, InputError

SWITCH = "FEDACCORD_NATIVE"
FOLDER = Path(__file__).parent / "fused"
# Set out by the source: an image has 28 x 28 pixels and gives 12 x 12 windows of 64 channels.
SIDE = 28
WINDOWS = 144
FEATURES = WINDOWS * 64
PLACES = 4
UNITS = 128
SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), (UNITS, FEATURES), (UNITS,))

Weights: TypeAlias = Sequence[Tensor]

_POINTER = ctypes.c_void_p
_SIGNATURES: dict[str, tuple[type[Any], list[type[Any]]]] = {
    "fused_source": (ctypes.c_char_p, []),
    "fused_runs_here": (ctypes.c_int, []),
    "fused_forward": (
        ctypes.c_int,
        [ctypes.c_ssize_t, *[_POINTER] * 3, ctypes.c_int, ctypes.c_float, *[_POINTER] * 3],
    ),
    "fused_backward": (
        ctypes.c_int,
        [ctypes.c_ssize_t, *[_POINTER] * 6, ctypes.c_float, _POINTER],
    ),
}
# What the functions give back.
_DONE, _NO_MEMORY, _OUT_OF_RANGE = 0, 1, 2


def available() -> bool:
    """Whether the native block is built, current, switched on and runs on this processor."""
    return why_not() is None


def why_not() -> str | None:
    """Say why training does not use the native block, or None when it does."""
    reason = _switched_off() or _load()[1]
    return f"{reason}; training uses torch, some 3 times slower" if reason else None


def hidden(
    images: Tensor, weights: Weights, *, drawn: Tensor | None = None, drop: int = 0
) -> Tensor | None:
    """Give the hidden layer: conv, relu, conv, max-pool, relu, dropout, linear, relu.

    Gives None, for torch to do the work, where a number could overflow or is none, as such values
    would not spread as in torch; and where a gradient of the images is asked for.

    images: (N, 28, 28) or (N, 1, 28, 28).
    weights: of the three layers, each weights and bias, in torch's order.
    drawn: (N, 9216) random bytes, for dropout.
    drop: features whose byte is below this are dropped, the others scaled by 256 / (256 - drop).
    """
    _check(images, weights, drawn)
    with_gradients = torch.is_grad_enabled()
    if with_gradients and images.requires_grad:
        return None
    images = images.contiguous()
    kept = [weight.contiguous() for weight in weights]
    drawn = None if drawn is None else drawn.contiguous()
    if with_gradients and any(weight.requires_grad for weight in weights):
        found: Tensor | None = _Hidden.apply(images, drawn, drop, *kept)  # type: ignore[no-untyped-call]
        return found
    return _forward(images, kept, drawn, drop, None)[0]


def _check(images: Tensor, weights: Weights, drawn: Tensor | None) -> None:
    for tensor in (images, *weights):
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise InputError(
                f"the native block takes images and weights of type float32 on the CPU; got "
                f'{tensor.dtype} on {tensor.device}: convert them, or use engine="torch"'
            )
    if images.shape[1:] not in ((SIDE, SIDE), (1, SIDE, SIDE)):
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


def _pointers(tensors: Sequence[Tensor]) -> Any:
    return (_POINTER * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


def _forward(
    images: Tensor,
    weights: Sequence[Tensor],
    drawn: Tensor | None,
    drop: int,
    winners: Tensor | None,
) -> tuple[Tensor | None, Tensor]:
    """Run forward; give the hidden layer, or None when out of range, and the features."""
    features = torch.empty(len(images), FEATURES)
    out = torch.empty(len(images), UNITS)
    outcome = _library().fused_forward(
        len(images),
        images.data_ptr(),
        _pointers(weights),
        None if drawn is None else drawn.data_ptr(),
        drop,
        _scale(drawn, drop),
        features.data_ptr(),
        None if winners is None else winners.data_ptr(),
        out.data_ptr(),
    )
    if outcome == _NO_MEMORY:
        raise MemoryError
    return (None if outcome == _OUT_OF_RANGE else out), features


class _Hidden(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, drawn: Tensor | None, drop: int, *weights: Tensor
    ) -> Tensor | None:
        winners = torch.empty(len(images), WINDOWS, PLACES, dtype=torch.int64)
        out, features = _forward(images, weights, drawn, drop, winners)
        if out is None:
            return None
        ctx.save_for_backward(images, features, winners, out, *weights)
        ctx.scale = _scale(drawn, drop)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        images, features, winners, out, *weights = ctx.saved_tensors
        gradient = gradient.contiguous()
        gradients = [torch.empty_like(weight) for weight in weights]
        outcome = _library().fused_backward(
            len(images),
            images.data_ptr(),
            _pointers(weights),
            features.data_ptr(),
            winners.data_ptr(),
            out.data_ptr(),
            gradient.data_ptr(),
            ctx.scale,
            _pointers(gradients),
        )
        if outcome == _NO_MEMORY:
            raise MemoryError
        return None, None, None, *gradients


def _switched_off() -> str | None:
    if os.environ.get(SWITCH, "1").strip().lower() in ("0", "no", "off", "false"):
        return f"the native block is switched off by {SWITCH} in the environment"
    return None


def _library() -> ctypes.CDLL:
    library, reason = _load()
    if library is None:
        raise FedaccordError(f"{reason}")
    return library


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
            "the native block was built from other source than lies beside it "
            "(install fedaccord again to build it anew)"
        )
    if not library.fused_runs_here():
        return None, "the native block needs a processor with AVX2 and FMA"
    return library, None


def source_digest(folder: Path) -> str:
    """Give the digest of the source, by which the build marks the library."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.[ch]pp")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
