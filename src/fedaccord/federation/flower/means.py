"""How what the clients sent becomes one: their models, and the metrics beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import MetricRecord, RecordDict

from fedaccord._lazy import imported
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower.ledger import Ledger
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
        if algorithm.form == "pooled" or not algorithm.averages:
            server_step = imported("fedaccord.federation.flower.server_step")
            self._step = server_step.ServerStep(algorithm)

    def __call__(
        self, model: Arrays, updates: Mapping[str, Update], *, ledger: Ledger, finite: bool = False
    ) -> Arrays | None:
        """Give the next model.

        model: the present one.
        updates: what the clients sent, and how many samples each used, in the ledger's order.
        ledger: of all clients.
        finite: whether to give None, and forget what was sent, if the next model is not finite.
        """
        every = [update.arrays for update in updates.values()]
        used = {name: update.samples for name, update in updates.items()}
        kept = self._step.kept() if finite and self._step is not None else None
        # The sum of finite numbers need not be one.
        with np.errstate(over="ignore", invalid="ignore"):
            if self._step is None:
                made = mean_arrays(self._algorithm, model, every, list(used.values()))
            else:
                counts = [used.get(name, 0) for name in ledger.names]
                made = self._step(model, every, counts, course=ledger.course)
        if not finite or (_all_finite(made) and (self._step is None or self._step.is_finite)):
            return made
        if self._step is not None:
            self._step.put_back(kept)
        return None


def too_large(updates: Mapping[str, Update], server_round: int) -> tuple[str, str]:
    """Find who sent the number furthest from 0, and give its name and what is to be said of it.

    updates: what each client sent, of which no finite model could be made.
    server_round: in which that was.
    """
    sizes = {name: _magnitude(update.arrays) for name, update in updates.items()}
    name = max(sizes, key=lambda name: sizes[name])
    return name, (
        f"sent numbers as large as {sizes[name]:.2g} in round {server_round}, more than anybody "
        "else: what all sent makes a model that is not finite, and the last one is kept"
    )


def _magnitude(arrays: Arrays) -> float:
    numbers = [a for a in arrays.values() if a.dtype.kind == "f" and a.size]
    return max((float(np.abs(a).max()) for a in numbers), default=0.0)


def _all_finite(arrays: Arrays) -> bool:
    return all(bool(np.isfinite(a).all()) for a in arrays.values() if a.dtype.kind in "fc")


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
