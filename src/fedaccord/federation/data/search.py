"""A search for hyperparameters on one pool of points, before any federation."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord.errors import InputError
from fedaccord.federation.data.pretraining import (
    DivergedError,
    ModelMaker,
    Pair,
    digest_model,
    pretrain,
)
from fedaccord.federation.runs.resumable import finish
from fedaccord.federation.training.rng import stream

BATCH_SIZES = (4, 8, 64, 128, 256, 512)
LEARNING_RATES = (1e-6, 1e-2)


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
    """Try random learning rates and batch sizes; return all that were tried, the best first.

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
            f"a search needs at least one draw and some training; got {draws} draws of {epochs} "
            "epochs"
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


def digest_pair(pair: Pair) -> str:
    """Return a digest of inputs and labels."""
    digest = hashlib.sha256()
    for array in map(np.ascontiguousarray, pair):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()
