"""How what the clients sent becomes one: their models, and the metrics beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flwr.app import MetricRecord, RecordDict

from fedaccord._lazy import imported
from fedaccord.federation.algorithms import Algorithm
from fedaccord.federation.flower.replies import Arrays, Update

MetricsFunction = Callable[[list[RecordDict], str], MetricRecord]


class NextModel:
    """Makes the next model of what the clients sent.

    Models are averaged without torch, which a server need not have. It is needed where the server's
    own optimizer takes a step, and for an algorithm with a mean of its own.

    algorithm: its form and its mean.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self._step: Any = None
        own_mean = type(algorithm).aggregate is not Algorithm.aggregate
        if algorithm.form == "pooled" or own_mean:
            server_step = imported("fedaccord.federation.flower.server_step")
            self._step = server_step.ServerStep(algorithm)

    def __call__(self, model: Arrays, updates: Sequence[Update]) -> Arrays:
        """Give the next model.

        model: the present one.
        updates: what the clients sent, and how many samples each used.
        """
        every = [update.arrays for update in updates]
        counts = [update.samples for update in updates]
        if self._step is None:
            return mean_arrays(self._algorithm, model, every, counts)
        made: Arrays = self._step(model, every, counts)
        return made


def mean_arrays(
    algorithm: Algorithm, model: Arrays, every: Sequence[Arrays], counts: Sequence[int]
) -> Arrays:
    """Average arrays of numbers; what is not floating-point, such as a counter, stays as it is.

    algorithm: whose mean it is.
    model: the present one.
    every: the arrays of each client.
    counts: how many samples each used.
    """
    whole = np.array(counts)
    return {
        name: np.asarray(algorithm.aggregate([arrays[name] for arrays in every], whole))
        if present.dtype.kind == "f"
        else present
        for name, present in model.items()
    }


def mean_metrics(
    average: MetricsFunction, contents: list[RecordDict], weighted_by: str
) -> MetricRecord:
    """Average the metrics that all replies have alike, numbers or lists of one length.

    One client's metric that the others do not have, or have otherwise, would make Flower's
    functions fail, and with them the run.

    average: of Flower's, or the user's.
    contents: the replies.
    weighted_by: the metric that says how much each weighs.
    """
    records = [next(iter(content.metric_records.values())) for content in contents]
    kinds = [{(key, _length(value)) for key, value in record.items()} for record in records]
    alike = {key for key, _ in set.intersection(*kinds)}
    for record in records:
        for key in set(record) - alike:
            del record[key]
    return average(contents, weighted_by)


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, list) else None
