"""The convolutional half of the paper's network as one block of machine code.

It is compiled when fedaccord is installed, if the machine has a C++ compiler, and is used when the
processor can run it. FEDACCORD_NATIVE=0 in the environment switches it off. Results are those of
torch up to rounding; dropout uses the same bytes.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from fedaccord.errors import FedaccordError, InputError

SWITCH = "FEDACCORD_NATIVE"
FOLDER = Path(__file__).parent
# Set out by the source: an image has 28 x 28 pixels and gives 12 x 12 windows of 64 channels.
SIDE = 28
PIXELS = SIDE * SIDE
WINDOWS = 144
FEATURES = WINDOWS * 64
PLACES = 4
SHAPES = ((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,))

Weights: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]

_POINTER = ctypes.c_void_p
_SIGNATURES: dict[str, tuple[type[Any], list[type[Any]]]] = {
    "fused_source": (ctypes.c_char_p, []),
    "fused_runs_here": (ctypes.c_int, []),
    "fused_in_range": (ctypes.c_int, [ctypes.c_ssize_t, *[_POINTER] * 5]),
    "fused_forward": (
        ctypes.c_int,
        [ctypes.c_ssize_t, *[_POINTER] * 6, ctypes.c_int, ctypes.c_float, _POINTER, _POINTER],
    ),
    "fused_backward": (
        ctypes.c_int,
        [ctypes.c_ssize_t, *[_POINTER] * 6, ctypes.c_float, *[_POINTER] * 4],
    ),
}


def available() -> bool:
    """Whether the native block is built, current, switched on and runs on this processor."""
    return why_not() is None


def why_not() -> str | None:
    """Say why training does not use the native block, or None when it does."""
    reason = _switched_off() or _load()[1]
    return f"{reason}; training uses torch, some 3 times slower" if reason else None


def suits(images: Tensor, weights: Weights) -> bool:
    """Whether the block does for these images what torch does.

    Not where a number could overflow or is none, since such values would not spread as in torch;
    nor where a gradient of the images is asked for, which the block does not give.
    """
    if images.requires_grad and torch.is_grad_enabled():
        return False
    images, arrays = _checked(images, weights)
    pointers = [array.data_ptr() for array in (images, *arrays)]
    return bool(_library().fused_in_range(len(images), *pointers))


def features(
    images: Tensor, weights: Weights, *, drawn: Tensor | None = None, drop: int = 0
) -> Tensor:
    """Give conv, relu, conv, max-pool, relu and dropout of images that the block suits.

    images: (N, 28, 28) or (N, 1, 28, 28).
    weights: first weights and bias, second weights and bias, in torch's order.
    drawn: (N, 9216) random bytes, for dropout.
    drop: features whose byte is below this are dropped, the others scaled by 256 / (256 - drop).
    """
    images, arrays = _checked(images, weights)
    if drawn is not None:
        drawn = _checked_bytes(drawn, len(images))
    if torch.is_grad_enabled() and any(weight.requires_grad for weight in weights):
        result: Tensor = _Block.apply(images, *arrays, drawn, drop)  # type: ignore[no-untyped-call]
        return result
    return _forward(images, arrays, drawn, drop)[0]


def _checked(images: Tensor, weights: Weights) -> tuple[Tensor, list[Tensor]]:
    """Bring images to (N, 784) and everything to the layout in memory that the block reads."""
    for tensor in (images, *weights):
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise InputError(
                f"the native block takes images and weights of type float32 on the CPU; got "
                f'{tensor.dtype} on {tensor.device}: convert them, or use engine="torch"'
            )
    if images.numel() != len(images) * PIXELS or images.shape[-2:] != (SIDE, SIDE):
        raise InputError(f"the native block takes 28 x 28 images; got shape {tuple(images.shape)}")
    shapes = tuple(tuple(weight.shape) for weight in weights)
    if shapes != SHAPES:
        raise InputError(f"the native block takes weights of shapes {SHAPES}; got {shapes}")
    return images.contiguous().view(-1, PIXELS), [weight.contiguous() for weight in weights]


def _checked_bytes(drawn: Tensor, rows: int) -> Tensor:
    if drawn.dtype != torch.uint8 or drawn.shape != (rows, FEATURES):
        raise InputError(
            f"dropout needs {rows} x {FEATURES} bytes; got {tuple(drawn.shape)} of {drawn.dtype}"
        )
    return drawn.contiguous()


def _scale(drop: int) -> float:
    return 256 / (256 - drop)


def _forward(
    images: Tensor, weights: list[Tensor], drawn: Tensor | None, drop: int, *, keep: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Run forward; to keep what backward needs, also give the winners of the pool windows."""
    out = torch.empty(len(images), FEATURES)
    winners = None
    if keep or drawn is not None:
        winners = torch.empty(len(images), WINDOWS, PLACES, dtype=torch.int64)
    pointers = [tensor.data_ptr() for tensor in (images, *weights)]
    failed = _library().fused_forward(
        len(images),
        *pointers,
        None if drawn is None else drawn.data_ptr(),
        drop,
        _scale(drop),
        out.data_ptr(),
        None if winners is None else winners.data_ptr(),
    )
    if failed:
        raise MemoryError
    return out, winners


class _Block(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        weights1: Tensor,
        bias1: Tensor,
        weights2: Tensor,
        bias2: Tensor,
        drawn: Tensor | None,
        drop: int,
    ) -> Tensor:
        out, winners = _forward(images, [weights1, bias1, weights2, bias2], drawn, drop, keep=True)
        assert winners is not None
        ctx.save_for_backward(images, weights1, bias1, weights2, winners)
        ctx.scale = 1.0 if drawn is None else _scale(drop)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        images, weights1, bias1, weights2, winners = ctx.saved_tensors
        gradient = gradient.contiguous()
        outs = [torch.empty_like(weights1), torch.empty_like(bias1), torch.empty_like(weights2)]
        outs.append(torch.empty(weights2.shape[0]))
        given = (images, weights1, bias1, weights2, winners, gradient)
        failed = _library().fused_backward(
            len(images),
            *[tensor.data_ptr() for tensor in given],
            ctx.scale,
            *[tensor.data_ptr() for tensor in outs],
        )
        if failed:
            raise MemoryError
        return None, *outs, None, None


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
    file = folder / "_fused.so"
    if not file.exists():
        note = folder / "_fused.txt"
        why = f" ({note.read_text(encoding='utf-8').strip()})" if note.exists() else ""
        return None, f"the native block was not built when fedaccord was installed{why}"
    try:
        library = ctypes.CDLL(str(file))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        return None, f"the native block could not be loaded ({error})"
    source = folder / "_fused.cpp"
    if source.exists():
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if library.fused_source() != digest.encode():
            return None, (
                "the native block was built from other source than lies beside it "
                "(install fedaccord again to build it anew)"
            )
    if not library.fused_runs_here():
        return None, "the native block needs a processor with AVX2 and FMA"
    return library, None
