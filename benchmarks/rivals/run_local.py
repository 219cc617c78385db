"""Our local loop, in a process that does the benchmark's jobs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import work

from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.networks import Dropout, model_factory
from fedaccord.federation.runs.execute import LocalEngine
from fedaccord.federation.runs.store import Run
from fedaccord.federation.training.loop import train


@dataclass(frozen=True, kw_only=True)
class Unevaluated(FedAvg):
    """FedAvg that looks at nobody's accuracy, not even after the last round."""

    def evaluates(self, n: int) -> bool:
        return False


@dataclass(frozen=True)
class Factory:
    """Makes the network, without dropout where models are to be compared."""

    network: str
    shape: tuple[int, ...]
    classes: int
    engine: Any
    dropout: bool

    def __call__(self) -> torch.nn.Module:
        model = model_factory(self.network, self.shape, self.classes, engine=self.engine)()
        for module in model.modules():
            if isinstance(module, Dropout) and not self.dropout:
                module.drop = 0
        return model


class Local:
    """The federations asked for, and workers for them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._federations: dict[Any, Federation] = {}
        self._pairs: dict[Any, LocalEngine] = {}

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        given = work.work(self._folder, job["work"])
        key = job["work"], job["engine"], job["dropout"]
        if key not in self._federations:
            self._federations[key] = federation(given, job["engine"], job["dropout"])
        settings = given.settings
        kind = FedAvg if job["evaluated"] else Unevaluated
        algorithm = kind(
            rounds=job["rounds"],
            batch_size=settings["batch_size"],
            learning_rate=settings["learning_rate"],
            form="local",
            evaluate_every=1,
        )
        if job["at_a_time"] == 2:
            return self._two_runs(key, algorithm, settings["seed"])
        begin = time.perf_counter()
        history = train(self._federations[key], algorithm, seed=settings["seed"])
        seconds = time.perf_counter() - begin
        if job["save"]:
            np.savez(job["save"], **work.channels_first(history.weights))
        return {
            "seconds": seconds,
            # The loop takes its steps without torch's optimizers, so nothing counts them.
            "steps": None,
            "samples": int(history.samples.sum()),
            "accuracy": float(history.accuracy[-1].mean()) if job["evaluated"] else None,
        }

    def _two_runs(self, key: Any, algorithm: FedAvg, seed: int) -> dict[str, Any]:
        if key not in self._pairs:
            self._pairs[key] = LocalEngine(self._federations[key], workers=2)
        points = tuple(int(n) for n in self._federations[key].points)
        runs = [Run("benchmark", algorithm, points, seed, trial) for trial in range(2)]
        begin = time.perf_counter()
        histories = [done.history for done in self._pairs[key].finished(iter(runs))]
        seconds = time.perf_counter() - begin
        # Two runs in that time: a round of either has cost half of it.
        samples = [int(history.samples.sum()) for history in histories]
        assert samples[0] == samples[1]
        made = 2 * algorithm.rounds
        done = {"seconds": seconds / 2, "made": made, "samples": samples[0]}
        return {**done, "steps": None, "accuracy": None}


def federation(given: work.Work, engine: Any, dropout: bool) -> Federation:
    """Give the federation of a piece of work, on our network."""
    settings = given.settings
    clients = [
        Client(name, train_points, validation, 0.7)
        for name, train_points, validation in zip(
            settings["names"], given.points["train"], given.points["validation"], strict=True
        )
    ]
    weights = work.channels_last(given.start)
    return Federation(clients, factory(given, engine, dropout), weights=weights)


def factory(given: work.Work, engine: Any, dropout: bool) -> Factory:
    """Give what makes our network for a piece of work."""
    shape = tuple(given.points["train"][0][0].shape[1:])
    settings = given.settings
    return Factory(settings["network"], shape, settings["classes"], engine, dropout)


if __name__ == "__main__":
    work.keep_answers_apart()
    torch.set_num_threads(1)
    local = Local(sys.argv[1])
    ready = {"torch": torch.__version__, "native": native.available(), "why": native.why_not()}
    work.answer(local.do, ready)
