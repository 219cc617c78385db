"""Training on one pool of points, before any federation: start weights and hyperparameters."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedaccord._checks import Indices, frozen
from fedaccord._io.npz import load_arrays, save_arrays, wrong_content
from fedaccord.errors import InputError
from fedaccord.federation.data.idx import find_file
from fedaccord.federation.runs.resumable import finish
from fedaccord.federation.training.loop import (
    give_streams,
    is_right,
    new_optimizer,
    reproducibly,
    take_step,
)
from fedaccord.federation.training.rng import stream

# Makes a new model: a `ModelFactory`, or any function.
ModelMaker: TypeAlias = Callable[[], nn.Module]
# What a network learns from: inputs as it takes them, and labels.
Pair: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
BATCH_SIZES = (4, 8, 64, 128, 256, 512)
LEARNING_RATES = (1e-6, 1e-2)
# How the names of parameters begin in a file.
PREFIX = "weights/"


@dataclass(frozen=True, eq=False)
class PretrainedWeights(Mapping[str, NDArray[Any]]):
    """A model's parameters by name, and how they came about.

    arrays: the parameters and buffers.
    record: the validation accuracy whenever it was looked at, by batches trained so far.
    provenance: the options, the seed, the versions, and the seconds it took; where a config's
        points were trained on, their sha256 as pool.
    """

    arrays: Mapping[str, NDArray[Any]] = field(repr=False)
    record: tuple[tuple[int, float], ...]
    provenance: Mapping[str, Any] = field(repr=False)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def accuracy(self) -> float:
        """The accuracy at the end on the validation points; NaN without any."""
        return self.record[-1][1] if self.record else math.nan

    @property
    def batches(self) -> int:
        """How many batches were trained."""
        return int(self.provenance["batches_trained"])

    def save(self, path: str | Path) -> None:
        """Write an npz file, replacing it in one step."""
        notes = {"record": self.record, "provenance": dict(self.provenance)}
        named = {f"{PREFIX}{name}": array for name, array in self.arrays.items()}
        save_arrays(path, named, notes)

    @classmethod
    def load(cls, path: str | Path) -> PretrainedWeights:
        """Read what save() wrote."""
        what = "pre-trained weights"
        content, notes = load_arrays(find_file(path), what, ("record", "provenance"), prefix=PREFIX)
        arrays = {name.removeprefix(PREFIX): frozen(v) for name, v in content.items()}
        numbers = all(array.dtype.kind in "fiub" for array in arrays.values())
        if not arrays or not numbers or not isinstance(notes["provenance"], dict):
            raise wrong_content(path, what)
        try:
            record = tuple((int(batches), float(accuracy)) for batches, accuracy in notes["record"])
        except (TypeError, ValueError, OverflowError):
            raise wrong_content(path, what) from None
        return cls(arrays, record, notes["provenance"])


def pretrain(
    model: ModelMaker,
    inputs: NDArray[Any],
    labels: NDArray[Any],
    *,
    batches: int = 75,
    batch_size: int = 64,
    learning_rate: float = 0.002,
    seed: int = 0,
    validation: Pair | None = None,
    until: float | None = None,
    look_every: int = 25,
) -> PretrainedWeights:
    """Train a new model with Adam on shuffled passes over the points.

    model: makes a new model.
    inputs, labels: the points, as the model takes them.
    batches: how many batches to train, at most.
    batch_size, learning_rate: the points in a batch, the optimizer's rate.
    seed: of the model's start, dropout and the order of the points.
    validation: inputs and labels on which accuracy is measured, at the end at least.
    until: stop as soon as the accuracy on the validation points reaches this.
    look_every: after how many batches to look whether it does.
    """
    if until is not None and validation is None:
        raise InputError("training until an accuracy needs validation points to measure it on")
    for value, what in ((batches, "batches"), (look_every, "look_every")):
        if value < 1:
            raise InputError(f"{what} must be at least 1; got {value}")
    started, record, done = time.perf_counter(), [], 0
    with reproducibly(seed):
        network = start_model(model, seed)
        steps = iterate_training(
            *(network, inputs, labels),
            batch_size=batch_size,
            learning_rate=learning_rate,
            random=stream(seed, "pre-training"),
        )
        for done, _ in zip(range(1, batches + 1), steps, strict=False):
            looks = until is not None and done % look_every == 0
            if validation is not None and (looks or done == batches):
                record.append((done, measure_accuracy(network, validation)))
                if until is not None and record[-1][1] >= until:
                    break
        arrays = {k: frozen(v.detach().numpy().copy()) for k, v in network.state_dict().items()}
    provenance = {
        "batches": batches,
        "batches_trained": done,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "seed": seed,
        "until": until,
        "points": len(labels),
        "versions": {"numpy": np.__version__, "torch": torch.__version__},
        "seconds": round(time.perf_counter() - started, 3),
    }
    return PretrainedWeights(arrays, tuple(record), provenance)


def start_model(model: ModelMaker, seed: int) -> nn.Module:
    """Make a new model, its dropout drawing from streams of the seed."""
    network = model()
    give_streams(network, seed)
    return network.train()


def iterate_training(
    model: nn.Module,
    inputs: NDArray[Any],
    labels: NDArray[Any],
    *,
    batch_size: int,
    learning_rate: float,
    random: np.random.Generator,
) -> Iterator[float]:
    """Step without end, batch after batch, and give each batch's mean loss."""
    if len(labels) == 0 or len(inputs) != len(labels):
        raise InputError(f"{len(inputs)} inputs came with {len(labels)} labels; give one per input")
    if batch_size < 1 or not 0 < learning_rate < math.inf:
        raise InputError(
            "a batch must have a point or more and the learning rate be above 0; got "
            f"{batch_size} and {learning_rate:g}"
        )
    points, classes = tensors((inputs, labels))
    optimizer = new_optimizer(model, "adam", learning_rate)
    for batch, chosen in enumerate(shuffle_batches(len(labels), batch_size, random), start=1):
        rows = torch.from_numpy(chosen)
        loss = float(take_step(model, optimizer, points[rows], classes[rows]).mean())
        if not math.isfinite(loss):
            raise DivergedError(
                f"the loss was {loss} at batch {batch} with the learning rate {learning_rate:g}; "
                "choose a smaller one"
            )
        yield loss


class DivergedError(InputError):
    """A loss that is no longer a number."""


def shuffle_batches(points: int, size: int, random: np.random.Generator) -> Iterator[Indices]:
    """Go through all points in a random order, again and again; batches may span two passes."""
    waiting = np.empty(0, dtype=np.intp)
    while True:
        while len(waiting) < size:
            waiting = np.concatenate([waiting, random.permutation(points)])
        yield waiting[:size]
        waiting = waiting[size:]


def tensors(pair: Pair) -> tuple[Tensor, Tensor]:
    """Return inputs and labels as torch takes them."""
    inputs, labels = (np.asarray(array) for array in pair)
    # torch warns of arrays that cannot be written to, though nobody writes.
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels, dtype=torch.int64)


def measure_accuracy(model: nn.Module, pair: Pair) -> float:
    """Measure a model's accuracy."""
    return float(is_right(model, *tensors(pair)).mean())


@dataclass(frozen=True)
class Draw:
    """One random choice of hyperparameters and what came of it.

    learning_rate, batch_size: the choice.
    accuracy: on the validation points; NaN if the training diverged.
    batches: how many batches were trained.
    """

    learning_rate: float
    batch_size: int
    accuracy: float
    batches: int


def search_hyperparameters(
    model: ModelMaker,
    train: Pair,
    *,
    validation: Pair,
    draws: int = 40,
    epochs: float = 1.0,
    seed: int = 0,
    path: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Draw, ...]:
    """Try random learning rates and batch sizes; give all that were tried, the best first.

    Learning rates are log-uniform in 1e-6 to 1e-2, batches of 4, 8, 64, 128, 256 or 512 points.
    Every choice starts from the same model and sees as many points. More draws try the same
    choices and further ones.

    model: makes a new model.
    train, validation: inputs and labels to learn from, and to measure the accuracy on.
    draws: how many choices to try.
    epochs: how often each choice goes through the training points.
    seed: of the choices and of the training.
    path: a SQLite file that keeps every finished draw, so that the same call can go on.
    progress: told how many draws are finished, of how many.
    """
    if draws < 1 or not epochs > 0:
        raise InputError(
            f"a search needs a draw or more and some training; got {draws} draws of {epochs} epochs"
        )
    description = {
        "model": digest_model(model),
        "train": digest_pair(train),
        "validation": digest_pair(validation),
        "epochs": epochs,
        "seed": seed,
    }

    def work(n: int) -> dict[str, Any]:
        return dataclasses.asdict(_try(model, train, validation, n, epochs, seed))

    rows = finish("draws", draws, work, path=path, description=description, progress=progress)
    tried = [Draw(**row) for row in rows]
    # A draw that diverged, whose accuracy is NaN, comes last.
    return tuple(sorted(tried, key=lambda draw: -np.nan_to_num(draw.accuracy, nan=-1.0)))


def _try(
    model: ModelMaker, train: Pair, validation: Pair, draw: int, epochs: float, seed: int
) -> Draw:
    random = stream(seed, "hyperparameters", draw)
    learning_rate = float(np.exp(random.uniform(*np.log(LEARNING_RATES))))
    batch_size = int(random.choice(BATCH_SIZES))
    batches = max(1, round(epochs * len(train[1]) / batch_size))
    try:
        accuracy = pretrain(
            *(model, *train),
            batches=batches,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            validation=validation,
        ).accuracy
    except DivergedError:
        accuracy = math.nan
    return Draw(learning_rate, batch_size, accuracy, batches)


def digest_model(model: ModelMaker) -> str:
    """Return a digest of a model's structure and of the names and shapes of its parameters."""
    with torch.random.fork_rng(devices=[]):
        network = model()
    shapes = [(name, tuple(tensor.shape)) for name, tensor in network.state_dict().items()]
    return hashlib.sha256(repr((network, shapes)).encode()).hexdigest()


def digest_pair(pair: Pair) -> str:
    """Return a digest of inputs and labels."""
    digest = hashlib.sha256()
    for array in map(np.ascontiguousarray, pair):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()
