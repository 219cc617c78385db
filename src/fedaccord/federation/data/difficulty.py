"""How hard each point of a pool is, by the paper's procedure: many trials of training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import takes
from fedaccord.federation.data.dataset import Dataset, Preparation
from fedaccord.federation.data.pretraining import (
    DivergedError,
    ModelMaker,
    Pair,
    Scores,
    digest_model,
    iterate_training,
    measure_accuracy,
    start_model,
)
from fedaccord.federation.runs.parts import Part
from fedaccord.federation.runs.resumable import finish
from fedaccord.federation.training.loop import reproducibly
from fedaccord.federation.training.rng import derive_seed, stream


@dataclass(frozen=True)
class TrialOptions:
    """How trials are made: keyword arguments of `trial_scores`.

    points: how many points of the pool each trial draws.
    batch_size, learning_rate: how its network is trained.
    target: the accuracy that ends a trial.
    cap: the most batches of a trial.
    look_every: after how many batches to look; iterations are multiples of it.
    seed: the random seed.
    """

    points: int = 1_000
    batch_size: int = 16
    learning_rate: float = 0.002
    target: float = 0.6
    cap: int = 2_000
    look_every: int = 10
    seed: int = 0


@takes(TrialOptions)
def trial_scores(
    pool: Dataset,
    model: ModelMaker,
    *,
    holdout: Dataset,
    trials: int = 10_000,
    options: TrialOptions,
    path: str | Path | None = None,
    part: Part | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Score points by how long networks take that learn from them (the paper's procedure).

        score(x) = mean { T(t) : trial t with x among its points }
        T(t)     = batches until a fresh network, trained on t's points, reaches the target

    A trial that does not reach the target counts as the cap; provenance says how many did so.
    More trials are the same ones and further ones.

    pool: the points to score.
    model: makes a new model.
    holdout: the points on which a trial's accuracy is measured.
    trials: how many to run.
    options: TrialOptions.
    path: a SQLite file that keeps every finished trial, so that the same call can go on.
    part: the part of the trials to run; OnlyPart is then raised when they are in the file.
    progress: told how many trials are finished, of how many.
    """
    made = run_trials(
        *(pool, model),
        holdout=holdout,
        trials=trials,
        options=options,
        path=path,
        part=part,
        progress=progress,
    )
    values, counts = mean_by_point(len(pool), made.members, made.times)
    provenance = {
        "method": "trials",
        "trials": trials,
        "capped": made.capped,
        "iterations": {"mean": float(made.times.mean()), "sd": float(made.times.std())},
        **made.description,
    }
    return Scores(values, counts, pool.sha256, provenance)


@dataclass(frozen=True, eq=False)
class Trials:
    """What came of the trials of the paper's procedure, one by one.

    members: the points of each trial.
    times: the batches that each took.
    capped: how many did not reach the target.
    description: all that they depend on.
    """

    members: tuple[Indices, ...] = field(repr=False)
    times: Vector
    capped: int
    description: Mapping[str, Any] = field(repr=False)


@takes(TrialOptions)
def run_trials(
    pool: Dataset,
    model: ModelMaker,
    *,
    holdout: Dataset,
    trials: int,
    options: TrialOptions,
    path: str | Path | None = None,
    part: Part | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trials:
    """Train networks on random parts of a pool and note how long each takes.

    The arguments are those of `trial_scores`.
    """
    if not 0 < options.points <= len(pool):
        raise InputError(f"a trial cannot draw {options.points} of {len(pool)} samples; draw fewer")
    if not 0 < options.target <= 1:
        raise InputError(
            f"the target must be an accuracy above 0 and at most 1; got {options.target}"
        )
    numbers = {"trials": trials, "cap": options.cap, "look_every": options.look_every}
    for what, value in numbers.items():
        if value < 1:
            raise InputError(f"{what} must be at least 1; got {value}")
    description = {
        "pool": pool.sha256,
        "holdout": holdout.sha256,
        "model": digest_model(model),
        **asdict(options),
    }
    preparation = Preparation.fit(pool.inputs, pool.columns)
    tested = (preparation.apply(holdout.inputs), holdout.labels)

    def work(trial: int) -> dict[str, Any]:
        chosen = draw_members(len(pool), trial, options)
        points = (preparation.apply(pool.inputs[chosen]), pool.labels[chosen])
        return run_trial(model, points, tested, trial, options)

    place: dict[str, Any] = {"path": path, "part": part, "progress": progress}
    rows = finish("trials", trials, work, description=description, **place)
    return Trials(
        members=tuple(draw_members(len(pool), trial, options) for trial in range(trials)),
        times=frozen(np.array([row["iterations"] for row in rows], dtype=np.float64)),
        capped=sum(not row["reached"] for row in rows),
        description=description,
    )


def draw_members(points: int, trial: int, options: TrialOptions) -> Indices:
    """Draw the points of a trial."""
    random = stream(options.seed, "difficulty", trial)
    return random.choice(points, options.points, replace=False)


def run_trial(
    model: ModelMaker, points: Pair, holdout: Pair, trial: int, options: TrialOptions
) -> dict[str, Any]:
    """Train a fresh network on a trial's points until it is good; return the iterations."""
    own = derive_seed(options.seed, "difficulty", trial)
    with reproducibly(own):
        network = start_model(model, own)
        steps = iterate_training(
            *(network, *points),
            batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            random=stream(own, "order"),
        )
        with contextlib.suppress(DivergedError):
            for done, _ in zip(range(1, options.cap + 1), steps, strict=False):
                looks = done % options.look_every == 0 or done == options.cap
                if looks and measure_accuracy(network, holdout) >= options.target:
                    return {"iterations": done, "reached": True}
    return {"iterations": options.cap, "reached": False}


def mean_by_point(
    points: int, members: Iterable[Indices], values: Vector
) -> tuple[Vector, NDArray[np.int64]]:
    """Return for each point the mean value of the trials it was in, and how many those were."""
    total, counts = np.zeros(points), np.zeros(points, dtype=np.int64)
    for chosen, value in zip(members, values, strict=True):
        total[chosen] += value
        counts[chosen] += 1
    unseen = np.full(points, np.nan)
    return np.divide(total, counts, out=unseen, where=counts > 0), counts
