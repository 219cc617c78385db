"""What clients reach alone: each trains by itself, with the same part of its samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.defection.curves import Contributions, cut
from fedaccord.federation.runs.execute import Count, EngineMaker, Source, open_executor
from fedaccord.federation.runs.store import Run, RunStore


@dataclass(frozen=True, eq=False)
class SoloCurves:
    """The accuracies of clients that train alone.

    clients: their names.
    requirements: the accuracy that each wants.
    rounds: after which accuracy was measured.
    accuracy: by level, one entry per trial, look and client; 0 where training diverged.
    seconds: how long the runs took, whenever they were made.
    """

    clients: tuple[str, ...]
    requirements: Vector
    rounds: Counts
    accuracy: Mapping[float, Vector] = field(repr=False)
    seconds: float

    def mean(self, level: float) -> Vector:
        """Return the curves averaged over the trials: a row per look, a column per client."""
        return np.asarray(self.accuracy[level].mean(axis=0))


def solo_curves(
    source: Source,
    algorithm: Algorithm,
    *,
    levels: Sequence[float],
    trials: int,
    seed: int,
    workers: int | None = 1,
    engine: str | EngineMaker = "local",
    store: RunStore | str | Path | None = None,
    progress: Count | None = None,
) -> SoloCurves:
    """Train every client alone on a part of its samples, in many trials.

    With a store for a part, it makes the runs of that part and raises OnlyPart.

    source: a federation, or what deals one to each trial.
    algorithm: Solo, with its settings.
    levels: what part of its samples each client trains on.
    trials: number of trials, each with its own partition and seed.
    seed: the random seed.
    workers: how many runs at a time; None on Ray for one per CPU of the cluster.
    engine: where the runs are made, as `defection_curves` has it.
    store: a file of finished runs, or a RunStore; runs that are in it are not made again.
    progress: told how many runs are finished, of how many.
    """
    runs = {
        level: [
            Run(source.fingerprint, algorithm, all_cut(source, level), seed, trial)
            for trial in range(trials)
        ]
        for level in levels
    }
    # Trial by trial, so that what is there when it is stopped has every level.
    ordered = [run for together in zip(*runs.values(), strict=True) for run in together]
    with open_executor(source, engine=engine, workers=workers, store=store) as executor:
        kept = executor.store
        if (part := kept.part) is not None:
            work = (source.fingerprint, algorithm.to_dict(), seed)
            kept.note_part(*work, finished=False)
            ours = [run for run in ordered if part.has(int(run.key, 16))]
            executor.execute_all(ours, progress=progress)
            kept.note_part(*work, finished=True)
            raise kept.end_part()
        executor.execute_all(ordered, progress=progress)
        outcomes = executor.outcomes.values()
        looks = [n + 1 for n in range(algorithm.rounds) if algorithm.evaluates(n)]
        accuracy = {
            level: frozen(np.array([_accuracies(kept, run, source.names, looks) for run in some]))
            for level, some in runs.items()
        }
    return SoloCurves(
        clients=tuple(source.names),
        requirements=source.requirements,
        rounds=frozen(np.array(looks)),
        accuracy=accuracy,
        seconds=sum(outcome.seconds for outcome in outcomes),
    )


def all_cut(source: Source, level: float) -> Contributions:
    """Return all clients' samples at a level, rounded as a defector's are."""
    full = tuple(int(n) for n in source.points)
    return tuple(cut(full, client, level)[client] for client in range(len(full)))


def _accuracies(
    store: RunStore, run: Run, names: Sequence[str], looks: Sequence[int]
) -> list[list[float]]:
    """Return a run's accuracies, a row per look and a column per client."""
    found = {(row[0], row[1]): row[5] for row in store.rows(run) if not math.isnan(row[5])}
    return [[found.get((n, name), 0.0) for name in names] for n in looks]
