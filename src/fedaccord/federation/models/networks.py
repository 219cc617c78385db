"""Networks: the paper's, and smaller ones for small images and tables.

All give one score (logit) per class. Their dropout draws from streams that the training loop
hands out, row by row, so that a batch taken whole, in parts or client by client is masked alike.

A perceptron goes to the native block, with whatever algorithm trains it, unless somebody changed
what its layers do. All other networks, and all where the block is not available, go through torch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedaccord.errors import InputError
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.fused import BYTES, drop_units
from fedaccord.federation.training.rng import stream

if TYPE_CHECKING:
    from fedaccord.federation.clients import Client

Engine = Literal["auto", "native", "torch", "eager"]
# Rows at a time, to train and to evaluate: measured quickest; None for all at once.
_CHUNKS: dict[str, tuple[int | None, int | None]] = {
    "native": (256, 400),
    "torch": (64, 100),
    "eager": (None, None),
}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


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
    its number of rows; without either they come from torch's generator. Every row takes the same
    number of draws, whatever batch it is in.

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
            parts = [_words(random, some, units) for random, some in self._take_rows(rows)]
            words = parts[0] if len(parts) == 1 else np.concatenate(parts)
        elif self.stream is not None:
            words = _words(self.stream, rows, units)
        else:
            return torch.randint(BYTES, (rows, units), dtype=torch.uint8)
        return torch.from_numpy(words.view(np.uint8)[:, :units])

    def _take_rows(self, rows: int) -> list[tuple[np.random.Generator, int]]:
        """Take the next rows from the clients in turn; refuse more rows than there are."""
        assert self.turns is not None
        taken, wanted = [], rows
        while wanted:
            if not self.turns:
                raise InputError(
                    f"dropout got {rows} rows, {wanted} more than the clients' samples: "
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
        """Return the probability, for the model's repr."""
        return f"p={self.drop / BYTES:g}"


def _words(random: np.random.Generator, rows: int, units: int) -> NDArray[np.uint64]:
    # Eight bytes at a time, as the streams make them, many times quicker than one. What a row
    # does not use is left.
    return random.bit_generator.random_raw((rows, -(-units // 8)))


def dropouts(model: nn.Module) -> list[Dropout]:
    """Find each dropout of ours in a model; its number is its place."""
    return [module for module in model.modules() if isinstance(module, Dropout)]


def ready_dropout(model: nn.Module, batch: Sequence[ClientRows], *, seed: int) -> None:
    """Set dropout so that the model's next rows are masked from their clients' streams.

        stream of a client and place  =  stream(seed, place, name, drawn)

    So a client's masks depend on no other client. They are for these rows only: in training,
    dropout refuses other rows.

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


def _check_engine(engine: Engine, reason: str | None) -> None:
    """Raise an InputError at an unknown engine, and at the native one if it cannot be used.

    engine: what the user asked for.
    reason: why the native block does not compute the network; None if it does.
    """
    if engine not in get_args(Engine):
        raise InputError(f"engine must be one of {', '.join(get_args(Engine))}; got {engine!r}")
    if engine == "native" and reason is not None:
        raise InputError(f'{reason}; use engine="auto" to train without it')


class PaperNet(nn.Module):
    """The network of the paper's experiments, for images of 28 x 28.

        conv 3x3 to 32, relu, conv 3x3 to 64, relu, max-pool 2, dropout 1/4,
        linear to 128, relu, dropout 1/2, linear to the classes

    All engines have the same parameters and give the same results up to rounding. The 9216 features
    between the halves are ordered by position, then by channel.

    classes: how many scores to give.
    engine: "native", the compiled block; "torch", stock torch, tuned; "eager", torch as one would
        write it down; "auto", native where it is available and torch elsewhere.
    """

    side = native.SIDE

    def __init__(self, classes: int = 47, engine: Engine = "auto") -> None:
        super().__init__()
        reason = native.why_not()
        _check_engine(engine, reason)
        if engine == "auto":
            engine = "torch" if reason is not None else "native"
        self.engine = engine
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = Dropout(64)
        self.fc1 = nn.Linear(native.FEATURES, 128)
        self.dropout2 = Dropout(128)
        self.fc2 = nn.Linear(128, classes)
        # How many rows the training loop should take at a time: what fits a core's cache.
        self.train_chunk, self.evaluate_chunk = _CHUNKS[engine]

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of (N, 1, 28, 28) or (N, 28, 28) images."""
        if images.shape[1:] not in ((1, self.side, self.side), (self.side, self.side)):
            raise InputError(
                f"the paper's network takes images of 28 x 28; got shape {tuple(images.shape)}"
            )
        images = images.reshape(-1, 1, self.side, self.side)
        scores: Tensor = self.fc2(self.dropout2(self._hidden(images)))
        return scores

    def _hidden(self, images: Tensor) -> Tensor:
        drop = self.dropout1.drop
        drawn = None
        if self.dropout1.training:
            drawn = self.dropout1.draw(len(images), native.FEATURES)
        if self.engine == "eager":
            inner = functional.relu(self.conv1(images))
            pooled = functional.max_pool2d(functional.relu(self.conv2(inner)), 2)
            features = pooled.permute(0, 2, 3, 1).flatten(1)
            dropped = features if drawn is None else drop_units(features, drawn, drop)
            return functional.relu(self.fc1(dropped))
        layers = (self.conv1, self.conv2, self.fc1)
        weights = [weight for layer in layers for weight in layer.parameters()]
        if self.engine == "native":
            return native.hidden_layer(images, weights, drawn, drop)
        return native.hidden_layer_in_torch(images, weights, drawn, drop)


class SmallNet(nn.Module):
    """A small network for small images such as 8 x 8 digits.

        conv 3x3 to 16, relu, max-pool 2, linear to 64, relu, dropout 1/4, linear to the classes

    shape: of an image, (height, width) or (channels, height, width).
    classes: how many scores to give.
    """

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.channels, height, width = shape if len(shape) == 3 else (1, *shape)
        self.size = (height, width)
        self.conv = nn.Conv2d(self.channels, 16, 3)
        self.fc1 = nn.Linear(16 * ((height - 2) // 2) * ((width - 2) // 2), 64)
        self.dropout = Dropout(64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of images; the axis of a single channel may be left out."""
        images = images.reshape(-1, self.channels, *self.size)
        pooled = functional.relu(functional.max_pool2d(self.conv(images), 2)).flatten(1)
        scores: Tensor = self.fc2(self.dropout(functional.relu(self.fc1(pooled))))
        return scores


class Perceptron(nn.Module):
    """A network of one hidden layer of 64, for tables and small images; or none: logistic.

    inputs: how many numbers a point has.
    classes: how many scores to give.
    hidden: units of the hidden layer; 0 for no hidden layer.
    engine: "torch" or "eager" to train it in torch; "native" to insist on the native block; "auto"
        for the block if it is available and the network is small enough.
    """

    def __init__(
        self, inputs: int, classes: int, hidden: int = 64, engine: Engine = "auto"
    ) -> None:
        super().__init__()
        self.engine = engine
        self.fc1 = nn.Linear(inputs, hidden) if hidden else nn.Identity()
        self.fc2 = nn.Linear(hidden or inputs, classes)
        self.hidden = hidden
        size = sum(parameter.numel() for parameter in self.parameters())
        large = (
            f"the native block computes networks of up to {native.MOST_PARAMETERS:,} parameters, "
            f"and this one has {size:,}"
        )
        _check_engine(engine, large if size > native.MOST_PARAMETERS else native.why_not())

    def forward(self, points: Tensor) -> Tensor:
        """Return the scores of (N, ...) points."""
        values = points.flatten(1)
        if self.hidden:
            values = functional.relu(self.fc1(values))
        scores: Tensor = self.fc2(values)
        return scores


@dataclass(frozen=True)
class ModelFactory:
    """Makes new networks of one kind; can be pickled, so worker processes can have it.

    name: a name that `model_factory` knows.
    input_shape: of one point.
    classes: how many scores to give.
    engine: what computes it, see PaperNet and Perceptron.
    """

    name: str
    input_shape: tuple[int, ...]
    classes: int
    engine: Engine = "auto"

    def __call__(self) -> nn.Module:
        """Make a network with fresh random weights."""
        if self.name == "paper":
            return PaperNet(self.classes, self.engine)
        if self.name == "cnn":
            return SmallNet(self.input_shape, self.classes)
        hidden = 64 if self.name == "mlp" else 0
        return Perceptron(math.prod(self.input_shape), self.classes, hidden, self.engine)


KNOWN = {
    "paper": "the paper's network, for images of 28 x 28",
    "cnn": "a small convolutional network, for images from 4 x 4",
    "mlp": "one hidden layer, for all data",
    "logistic": "logistic regression, for all data",
    "linear": "the same under another name, for amounts and risks",
}


def model_factory(
    name: str,
    input_shape: tuple[int, ...],
    classes: int,
    *,
    engine: Engine = "auto",
    predicts: str = "classes",
) -> ModelFactory:
    """Return what makes a network of a known kind, after checking that it fits the data.

    name: "paper", "cnn", "mlp", "logistic" or "linear".
    input_shape: of one point: (height, width), (channels, height, width) or (features,).
    classes: how many classes the labels name.
    engine: what computes it, see PaperNet and Perceptron.
    predicts: "classes", or "amounts" or "times": a network with one output, whatever the classes.
    """
    shape = tuple(int(side) for side in input_shape)
    size = " x ".join(map(str, shape)) or "no size"
    if name not in KNOWN:
        known = "; ".join(f"{key} ({what})" for key, what in KNOWN.items())
        raise InputError(f"there is no model {name!r}; known are {known}")
    if name == "cnn" or predicts != "classes":
        what = "the model 'cnn'" if name == "cnn" else f"models of {predicts}"
        _check_engine(engine, f"the native block does not compute {what}")
    if predicts != "classes":
        if name in ("paper", "cnn"):
            raise InputError(f"model {name!r} predicts classes: use 'mlp' or 'linear'")
        return ModelFactory(name, shape, 1, engine)
    if classes < 2:
        raise InputError(f"a model needs at least 2 classes to tell apart; got {classes}")
    if not shape or min(shape) < 1:
        raise InputError(f"a sample must have at least one number; got shape {shape}")
    side = native.SIDE
    if name == "paper" and shape not in ((side, side), (1, side, side)):
        raise InputError(f"model 'paper' takes images of 28 x 28; got {size}: use 'cnn' or 'mlp'")
    if name == "cnn" and (len(shape) not in (2, 3) or min(shape[-2:]) < 4):
        raise InputError(f"model 'cnn' takes images from 4 x 4; got {size}: use 'mlp'")
    return ModelFactory(name, shape, classes, engine)


# Which networks the native block computes in place of torch.
_found: WeakKeyDictionary[nn.Module, native.DirectNetwork | None] = WeakKeyDictionary()


def find_direct(model: nn.Module) -> native.DirectNetwork | None:
    """Return the network that the native block computes in place of a model; None for none."""
    direct = _found.get(model)
    if direct is None and model in _found:
        return None
    # Since the last time somebody may have added a hook, or put other parameters in.
    if direct is not None and direct.seen == _list_parts(model):
        return direct
    direct = None
    if isinstance(model, Perceptron) and native.available() and _is_plain(model):
        direct = native.DirectNetwork(model, _list_parts(model))
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


def join_clients(model: nn.Module, clients: Sequence[Client]) -> native.JoinedClients | None:
    """Return clients' samples for the native block; None where it does not compute a model."""
    direct = find_direct(model)
    if direct is None or not all(direct.takes(c.inputs, c.labels) for c in clients):
        return None
    return native.JoinedClients(direct, clients)
