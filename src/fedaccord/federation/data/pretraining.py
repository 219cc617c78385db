"""What is learnt from one pool of samples before any federation: start weights and difficulty."""

from __future__ import annotations

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
from torch.nn.functional import cross_entropy

from fedaccord._checks import Indices, Vector, frozen
from fedaccord._io.npz import load_arrays, save_arrays, wrong_content
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import check_bands
from fedaccord.federation.data.dataset import Dataset, Preparation
from fedaccord.federation.data.idx import find_file
from fedaccord.federation.models.networks import keep_in_torch
from fedaccord.federation.training.loop import (
    give_streams,
    is_right,
    reproducibly,
    take_step,
)
from fedaccord.federation.training.rng import stream
from fedaccord.federation.training.steps import new_optimizer

# Makes a new model: a `ModelFactory`, or any function.
ModelMaker: TypeAlias = Callable[[], nn.Module]
# What a network learns from: inputs as it takes them, and labels.
Pair: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
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
        raise InputError("training until an accuracy needs validation samples to measure it on")
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
    # Runs are known by the weights and scores that they start from: these must be the same to the
    # last bit wherever they are made.
    keep_in_torch(network)
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
            "a batch must have at least one sample and the learning rate must be above 0; got "
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


def digest_model(model: ModelMaker) -> str:
    """Return a digest of a model's structure and of the names and shapes of its parameters."""
    with torch.random.fork_rng(devices=[]):
        network = model()
    shapes = [(name, tuple(tensor.shape)) for name, tensor in network.state_dict().items()]
    return hashlib.sha256(repr((network, shapes)).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Scores:
    """How hard the points of a pool are: the higher, the harder.

    values: a score per point; NaN for a point of which nothing is known.
    counts: how many trials each score is the mean of.
    pool: the sha256 of the pool.
    provenance: the method, its options and what was seen on the way.
    """

    values: Vector
    counts: NDArray[np.int64] = field(repr=False)
    pool: str
    provenance: Mapping[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.shape != self.counts.shape:
            raise InputError("scores must be one list, with a count for every score")
        frozen(self.values)
        frozen(self.counts)

    def __len__(self) -> int:
        return len(self.values)

    def summary(self) -> dict[str, float]:
        """Return the mean, the standard deviation and the range of the scores that are known."""
        known = self.values[~np.isnan(self.values)]
        if not len(known):
            raise InputError("no sample has a score yet; run more trials")
        return {
            "points": len(known),
            "mean": float(known.mean()),
            "sd": float(known.std()),
            "least": float(known.min()),
            "most": float(known.max()),
        }

    def save(self, path: str | Path) -> None:
        """Write an npz file, replacing it in one step."""
        notes = {"pool": self.pool, "provenance": dict(self.provenance)}
        save_arrays(path, {"values": self.values, "counts": self.counts}, notes)

    @classmethod
    def load(cls, path: str | Path) -> Scores:
        """Read what save() wrote."""
        arrays, notes = load_arrays(
            find_file(path), "scores", ("values", "counts", "pool", "provenance")
        )
        sound = (
            set(arrays) == {"values", "counts"}
            and arrays["values"].dtype.kind in "fiu"
            and arrays["counts"].dtype.kind in "iu"
            and isinstance(notes["pool"], str)
            and isinstance(notes["provenance"], dict)
        )
        if not sound:
            raise wrong_content(path, "scores")
        return cls(arrays["values"], arrays["counts"], notes["pool"], notes["provenance"])


@dataclass(frozen=True)
class Bands:
    """Which parts of the scores are the hard points and which the easy ones, in percentiles.

    The hardest points by loss are beyond learning and the easiest known from the start, so that
    the default bands lie in between; Bands(hard=(90, 100), easy=(0, 10)) takes the extremes.

    hard: from and to which percentile of the scores a point is hard.
    easy: from and to which it is easy.
    """

    hard: tuple[float, float] = (65.0, 85.0)
    easy: tuple[float, float] = (45.0, 65.0)

    def __post_init__(self) -> None:
        check_bands(self.hard, self.easy, names=("the hard band", "the easy band"))

    def pools(self, scores: Scores) -> tuple[Indices, Indices]:
        """Return the places of the hard and of the easy points, each from easier to harder.

        Percentile p lies before the point of rank p n / 100, so that bands which touch share no
        point; points without a score are in no band.
        """
        known = np.flatnonzero(~np.isnan(scores.values))
        order = known[np.argsort(scores.values[known], kind="stable")]
        hard, easy = (
            order[math.ceil(low * len(order) / 100) : math.ceil(high * len(order) / 100)]
            for low, high in (self.hard, self.easy)
        )
        for name, pool in (("hard", hard), ("easy", easy)):
            if not len(pool):
                raise InputError(
                    f"no sample is in the {name} band: {len(order)} of {len(scores)} samples have "
                    "a score; widen the band or run more trials"
                )
        return hard, easy


def loss_scores(
    pool: Dataset,
    model: ModelMaker,
    *,
    reference: Dataset,
    until: float = 0.83,
    batches: int = 4_000,
    batch_size: int = 64,
    learning_rate: float = 0.002,
    holdout: int = 1_000,
    seed: int = 0,
) -> Scores:
    """Score points by their loss under a network that was trained on others.

    pool: the points to score.
    model: makes a new model.
    reference: the points to train it on; disjoint from the pool, or it would have seen the answers.
    until: the accuracy at which it is good enough.
    batches: the most batches it is trained; if it is not good enough by then, provenance says so.
    batch_size, learning_rate: how it is trained.
    holdout: how many points of the reference are kept to measure its accuracy.
    seed: the random seed.
    """
    if not 0 < holdout < len(reference):
        raise InputError(
            f"the holdout must leave some of the {len(reference)} reference samples to train on; "
            f"got {holdout}"
        )
    started = time.perf_counter()
    learned, kept = (part for part in reference.split(len(reference) - holdout, seed=seed))
    preparation = Preparation.fit(learned.inputs, learned.columns)
    weights = pretrain(
        *(model, preparation.apply(learned.inputs), learned.labels),
        batches=batches,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        until=until,
        validation=(preparation.apply(kept.inputs), kept.labels),
    )
    with reproducibly(seed):
        network = model()
        network.load_state_dict({k: torch.tensor(v) for k, v in weights.items()})
        values = measure_losses(network, pool, preparation)
    provenance = {
        "method": "loss",
        "reference": reference.sha256,
        "model": digest_model(model),
        "accuracy": weights.accuracy,
        "good_enough": weights.accuracy >= until,
        **weights.provenance,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return Scores(values, np.ones(len(pool), dtype=np.int64), pool.sha256, provenance)


def measure_losses(model: nn.Module, pool: Dataset, preparation: Preparation) -> Vector:
    """Return every point's cross-entropy loss under a model."""
    model.eval()
    losses = []
    with torch.inference_mode():
        chunk = getattr(model, "evaluate_chunk", None) or 500
        for start in range(0, len(pool), chunk):
            part = slice(start, start + chunk)
            inputs, labels = tensors((preparation.apply(pool.inputs[part]), pool.labels[part]))
            losses.append(cross_entropy(model(inputs), labels, reduction="none"))
        return torch.cat(losses).numpy().astype(np.float64)
