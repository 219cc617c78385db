"""How hard each point of a pool is, and the pools of hard and of easy points that this makes."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from fedaccord._checks import Indices, Vector, frozen
from fedaccord._io.npz import load_arrays, save_arrays, wrong_content
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import check_bands
from fedaccord.federation.data.dataset import Dataset
from fedaccord.federation.data.idx import find_file
from fedaccord.federation.data.preprocessing import Preparation
from fedaccord.federation.data.pretraining import (
    DivergedError,
    ModelMaker,
    digest_model,
    iterate_training,
    measure_accuracy,
    pretrain,
    start_model,
    tensors,
)
from fedaccord.federation.runs.resumable import finish
from fedaccord.federation.training.loop import reproducibly
from fedaccord.federation.training.rng import derived_seed, stream


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
            raise InputError("no point has a score yet; run more trials")
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
                    f"no point is in the {name} band: {len(order)} of {len(scores)} points have a "
                    "score; widen the band or run more trials"
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
    reference: the points to train it on; disjoint from the pool, or it would know the answers.
    until: the accuracy at which it is good enough.
    batches: the most batches it is trained; if it is not good enough by then, provenance says so.
    batch_size, learning_rate: how it is trained.
    holdout: how many points of the reference are kept to measure its accuracy.
    seed: of everything random.
    """
    if not 0 < holdout < len(reference):
        raise InputError(
            f"the holdout must leave some of the {len(reference)} reference points to train on; "
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


@dataclass(frozen=True)
class _Trials:
    """What every trial of the paper's procedure needs."""

    pool: Dataset
    model: ModelMaker
    holdout: tuple[NDArray[Any], NDArray[Any]]
    preparation: Preparation
    points: int
    batch_size: int
    learning_rate: float
    target: float
    cap: int
    look_every: int
    seed: int

    def members(self, trial: int) -> Indices:
        """Draw the points of a trial."""
        random = stream(self.seed, "difficulty", trial)
        return random.choice(len(self.pool), self.points, replace=False)

    def run(self, trial: int) -> dict[str, Any]:
        """Train a fresh network on a trial's points until it is good; give the iterations."""
        own = derived_seed(self.seed, "difficulty", trial)
        chosen = self.members(trial)
        with reproducibly(own):
            network = start_model(self.model, own)
            steps = iterate_training(
                network,
                self.preparation.apply(self.pool.inputs[chosen]),
                self.pool.labels[chosen],
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                random=stream(own, "order"),
            )
            with contextlib.suppress(DivergedError):
                for done, _ in zip(range(1, self.cap + 1), steps, strict=False):
                    looks = done % self.look_every == 0 or done == self.cap
                    if looks and measure_accuracy(network, self.holdout) >= self.target:
                        return {"iterations": done, "reached": True}
        return {"iterations": self.cap, "reached": False}


def trial_scores(
    pool: Dataset,
    model: ModelMaker,
    *,
    holdout: Dataset,
    trials: int = 10_000,
    points: int = 1_000,
    batch_size: int = 16,
    learning_rate: float = 0.002,
    target: float = 0.6,
    cap: int = 2_000,
    look_every: int = 10,
    seed: int = 0,
    path: str | Path | None = None,
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
    points: how many points of the pool each trial draws.
    batch_size, learning_rate: how its network is trained.
    target: the accuracy that ends a trial.
    cap: the most batches of a trial.
    look_every: after how many batches to look; iterations are multiples of it.
    seed: of everything random.
    path: a SQLite file that keeps every finished trial, so that the same call can go on.
    progress: told how many trials are finished, of how many.
    """
    made = run_trials(
        pool,
        model,
        holdout=holdout,
        trials=trials,
        path=path,
        progress=progress,
        points=points,
        batch_size=batch_size,
        learning_rate=learning_rate,
        target=target,
        cap=cap,
        look_every=look_every,
        seed=seed,
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


def run_trials(
    pool: Dataset,
    model: ModelMaker,
    *,
    holdout: Dataset,
    trials: int,
    path: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Trials:
    """Train networks on random parts of a pool and note how long each takes.

    The arguments and options are those of `trial_scores`, all of them.
    """
    preparation = Preparation.fit(pool.inputs, pool.columns)
    tested = (preparation.apply(holdout.inputs), holdout.labels)
    plan = _Trials(pool, model, tested, preparation, **options)
    _check_trials(plan, trials)
    description = {
        "pool": pool.sha256,
        "holdout": holdout.sha256,
        "model": digest_model(model),
        **options,
    }
    rows = finish("trials", trials, plan.run, path=path, description=description, progress=progress)
    return Trials(
        members=tuple(plan.members(trial) for trial in range(trials)),
        times=frozen(np.array([row["iterations"] for row in rows], dtype=np.float64)),
        capped=sum(not row["reached"] for row in rows),
        description=description,
    )


def _check_trials(plan: _Trials, trials: int) -> None:
    if not 0 < plan.points <= len(plan.pool):
        raise InputError(
            f"a trial cannot draw {plan.points} of {len(plan.pool)} points; draw fewer"
        )
    if not 0 < plan.target <= 1:
        raise InputError(f"the target must be an accuracy above 0 and at most 1; got {plan.target}")
    numbers = {"trials": trials, "cap": plan.cap, "look_every": plan.look_every}
    for what, value in numbers.items():
        if value < 1:
            raise InputError(f"{what} must be at least 1; got {value}")


def mean_by_point(
    points: int, members: Iterable[Indices], values: Vector
) -> tuple[Vector, NDArray[np.int64]]:
    """Return each point the mean value of the trials it was in, and how many those were.

    points: how many points there are.
    members: the points of every trial, each once.
    values: a value per trial.
    """
    total, counts = np.zeros(points), np.zeros(points, dtype=np.int64)
    for chosen, value in zip(members, values, strict=True):
        total[chosen] += value
        counts[chosen] += 1
    unseen = np.full(points, np.nan)
    return np.divide(total, counts, out=unseen, where=counts > 0), counts
