"""The client's side: it draws no more than its quota and tells no more than it must.

Nothing has to be remembered between messages: the server says how many samples the client drew
before, and which points those were follows from the seed and the client's name. So a set must have
the same points in the same order in the whole run.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset, TensorDataset, default_collate

from fedaccord._checks import Indices
from fedaccord.errors import InputError
from fedaccord.federation.goals import ClientGoal, find_labels, judge_goals
from fedaccord.federation.measures import find_outputs
from fedaccord.federation.models.networks import ClientRows, ready_dropout
from fedaccord.federation.remote import protocol
from fedaccord.federation.remote.protocol import (
    EvaluateOrder,
    Order,
    OrderError,
    TrainOrder,
    drawn_points,
)
from fedaccord.federation.remote.replies import Arrays
from fedaccord.federation.training.loop import (
    Batch,
    find_client_gradient,
    find_scores,
    is_right,
    update_locally,
)
from fedaccord.federation.training.rng import derive_seed, draw_goal_rows

Points: TypeAlias = Dataset[Any]
# Takes the network, the samples that were drawn and what the server said; trains the network and
# gives the mean loss.
TrainFunction: TypeAlias = Callable[[nn.Module, Points, Any], float]
# Takes the network and validation points; gives the accuracy.
EvaluateFunction: TypeAlias = Callable[[nn.Module, Points], float]


def check_reports(may_report: Sequence[str]) -> tuple[str, ...]:
    """Return what a client may report, or refuse what is not known."""
    for what in may_report:
        if what not in protocol.EXTRAS:
            raise InputError(f"may_report knows {', '.join(protocol.EXTRAS)}; got {what!r}")
    return tuple(may_report)


@contextlib.contextmanager
def keep_errors(log: logging.Logger) -> Iterator[None]:
    """Keep from the server what an error says: it may have a patient's name.

    All but what an order made of it: that tells nothing of the data, and is for the server to read.
    """
    try:
        yield
    except OrderError:
        raise
    except Exception as error:  # a user's app may fail in any way
        log.exception("this client cannot answer the server")
        raise OrderError(
            f"its app failed with {type(error).__name__}; the log of its node says more"
        ) from None


@dataclass(frozen=True)
class Site:
    """A client with its data: answers the server's messages.

    model: makes the network.
    points: to train on.
    validation: to measure the accuracy on.
    own_train: trains the network in place of the steps that the server asks for.
    own_evaluate: returns the network's accuracy on points.
    name: the client's, where it has to say one.
    least_samples: the fewest samples of which it makes a model or a gradient.
    may_report: what else it may report if the server asks.
    goals: what it wants in other measures than accuracy.
    """

    model: Callable[[], nn.Module]
    points: Points
    validation: Points
    own_train: TrainFunction | None = None
    own_evaluate: EvaluateFunction | None = None
    name: str = ""
    least_samples: int = 1
    may_report: tuple[str, ...] = ()
    goals: tuple[ClientGoal, ...] = ()

    def introduce(self, asked: str = "") -> dict[str, Any]:
        """Return how many points it could bring.

        asked: what else the server would like to know, between commas.
        """
        metrics: dict[str, Any] = {protocol.POINTS: count_points(self.points)}
        if protocol.LABEL_COUNTS in self._reports(asked) and self._label_kind == "classes":
            _, labels = _tensors(self.points, np.arange(count_points(self.points)))
            counts = Counter(labels.tolist())
            every = range(max(counts, default=-1) + 1)
            metrics[protocol.LABEL_COUNTS] = [counts[label] for label in every]
        return metrics

    def train(self, arrays: Arrays, config: Mapping[str, Any]) -> tuple[Arrays, dict[str, Any]]:
        """Draw the requested samples, within the quota, and train on them.

        Return the model, or the gradient, that came of it, and the metrics to report.

        arrays: the server's model.
        config: what the server said with it.
        """
        order = TrainOrder.read(config)
        if order.num_samples < self.least_samples:
            raise OrderError(
                f"{order.client} trains on {self.least_samples:,} samples or more at a time, and "
                f"the server asks for {order.num_samples:,}"
            )
        chosen = drawn_points(config, count_points(self.points))
        network = self._network(arrays, order, "training", order.drawn)
        network.train()
        if self.own_train is None:
            rows = ClientRows(order.client, order.drawn, len(chosen))
            ready_dropout(network, [rows], seed=order.seed)
        if order.form == "pooled":
            made, loss = self._find_gradient(network, chosen)
        else:
            if self.own_train is not None:
                loss = self.own_train(network, Subset(self.points, chosen.tolist()), config)
            else:
                loss = update_locally(
                    network,
                    _batch(self.points, chosen, network, self._label_kind),
                    batch_size=order.batch_size,
                    optimizer=order.optimizer,
                    learning_rate=order.learning_rate,
                )
            made = network.state_dict()
        metrics: dict[str, Any] = {protocol.EXAMPLES: len(chosen)}
        if protocol.LOSS in self._reports(order.report):
            metrics[protocol.LOSS] = float(loss)
        return {name: value.detach().cpu().numpy() for name, value in made.items()}, metrics

    def evaluate(self, arrays: Arrays, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the accuracy on all validation points, on some drawn again, or both."""
        order = EvaluateOrder.read(config)
        network = self._network(arrays, order, "evaluation", order.server_round)
        size = count_points(self.validation)
        metrics: dict[str, Any] = {protocol.EXAMPLES: size}
        if not size:
            # Of nothing there is no accuracy; the server says what is wrong.
            return metrics
        if order.whole:
            metrics[protocol.ACCURACY] = self._accuracy(network, None)
        if order.goal_points:
            rows = draw_goal_rows(
                order.client,
                size,
                order.goal_points,
                seed=order.seed,
                round_number=order.server_round,
            )
            metrics[protocol.GOAL_ACCURACY] = self._accuracy(network, rows)
        return metrics

    @property
    def _label_kind(self) -> str:
        return find_labels(self.goals, self.name)

    def _reports(self, asked: str) -> set[str]:
        """Return what else to report: what the server requests and the client allows."""
        return set(asked.split(",")) & set(self.may_report)

    def _network(self, arrays: Arrays, order: Order, *purpose: int | str) -> nn.Module:
        # For a network that draws random numbers in a way of its own.
        torch.manual_seed(derive_seed(order.seed, "torch", order.client, *purpose))
        network = self.model()
        try:
            network.load_state_dict({n: torch.tensor(value) for n, value in arrays.items()})
        except RuntimeError as error:
            detail = protocol.clip(error, 200)
            raise OrderError(f"the server's model is not this client's: {detail}") from None
        return network

    def _find_gradient(
        self, network: nn.Module, chosen: Indices
    ) -> tuple[dict[str, Tensor], float]:
        if self.own_train is not None:
            raise OrderError(
                'a train function of one\'s own needs form = "local": in the pooled form clients '
                "send gradients"
            )
        named = list(network.named_parameters())
        if len(named) != len(network.state_dict()):
            raise OrderError(
                "a network with buffers, such as the running means of BatchNorm, or with one "
                'parameter in two places needs form = "local": gradients do not carry them'
            )
        flat, losses = find_client_gradient(
            network, _batch(self.points, chosen, network, self._label_kind)
        )
        parts = flat.split([parameter.numel() for _, parameter in named])
        pairs = zip(named, parts, strict=True)
        return {n: part.reshape(p.shape) for (n, p), part in pairs}, float(losses.mean())

    def _accuracy(self, network: nn.Module, rows: Indices | None) -> float:
        """Measure the accuracy, or where the goals stand, on all validation points or on some."""
        points = self.validation if rows is None else Subset(self.validation, rows.tolist())
        if self.own_evaluate is not None:
            return float(self.own_evaluate(network.eval(), points))
        every = np.arange(count_points(points))
        inputs, labels = _batch(points, every, network, self._label_kind)
        if not self.goals:
            return float(is_right(network, inputs, labels).mean())
        goals = [goal if rows is None else goal.take(rows) for goal in self.goals]
        return judge_goals(
            goals, labels.numpy(), find_outputs(find_scores(network, inputs).numpy())
        )


def count_points(points: Points) -> int:
    """Return how many points a data set has."""
    return len(points)  # type: ignore[arg-type]


def _batch(points: Points, rows: Indices, network: nn.Module, label_kind: str) -> Batch:
    """Put points into two tensors, the inputs in the type of the network's parameters."""
    inputs, labels = _tensors(points, rows)
    kinds = {p.dtype for p in network.parameters() if p.is_floating_point()}
    inputs = inputs.to(kinds.pop()) if len(kinds) == 1 else inputs
    return inputs, labels.to(torch.int64 if label_kind == "classes" else torch.float32)


def _tensors(points: Points, rows: Indices) -> tuple[Tensor, Tensor]:
    # Of these two alone it is known what they give; a subclass may change what it is asked for.
    if type(points) is Subset:
        return _tensors(points.dataset, np.asarray(points.indices)[rows])
    if type(points) is TensorDataset:
        inputs, labels = points.tensors
        return inputs[rows], labels[rows]
    pairs = [points[int(row)] for row in rows]
    inputs, labels = default_collate(pairs)
    return inputs, labels
