"""The client's side: a ClientApp that draws no more than its quota and tells no more than it must.

    app = client_app(Net, load_data)

where Net makes the network and load_data(context) gives the client's training and validation sets.
Nothing has to be remembered between messages: the server says how many samples the client drew
before, and which points those were follows from the seed and the client's name. So a set must have
the same points in the same order in the whole run.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset, TensorDataset, default_collate

from fedaccord._checks import Indices
from fedaccord.errors import InputError
from fedaccord.federation.flower import protocol
from fedaccord.federation.flower.protocol import (
    LOG,
    EvaluateOrder,
    Order,
    OrderError,
    TrainOrder,
    drawn_points,
)
from fedaccord.federation.goals import ClientGoal, check_goals, find_labels, judge_goals
from fedaccord.federation.measures import find_outputs
from fedaccord.federation.models.networks import ClientRows, ready_dropout
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
TrainFunction: TypeAlias = Callable[[nn.Module, Points, ConfigRecord], float]
# Takes the network and validation points; gives the accuracy.
EvaluateFunction: TypeAlias = Callable[[nn.Module, Points], float]
Answer: TypeAlias = Callable[[Message, Context], Message]


def own_name(context: Context) -> str:
    """Return what a node calls itself: its node-config's name, or its partition in a simulation.

    A name under which the node is registered at the SuperLink comes before this.
    """
    config = context.node_config
    if "name" in config:
        return str(config["name"])
    return f"client {config['partition-id']}" if "partition-id" in config else ""


def own_limit(context: Context) -> int | None:
    """Return the most samples that a node ever gives: most-points of its node-config, if set.

    The operator of the node sets it, whatever the server asks for:
    flower-supernode --node-config "most-points=200".
    """
    limit = context.node_config.get("most-points")
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise OrderError("most-points of the node-config must be a whole number, zero or more")
    return limit


def client_app(
    model: Callable[[], nn.Module],
    data: Callable[[Context], tuple[Points, Points]],
    *,
    train: TrainFunction | None = None,
    evaluate: EvaluateFunction | None = None,
    name: Callable[[Context], str] = own_name,
    most_points: Callable[[Context], int | None] = own_limit,
    least_samples: int = 1,
    may_report: Sequence[str] = (),
    mods: Sequence[Any] = (),
    goals: Callable[[Context], Sequence[ClientGoal]] | None = None,
) -> ClientApp:
    """Make a ClientApp out of a network and a client's data.

    It reports how many samples it could give, how many draws it made, and its accuracy on its own
    validation set. Nothing else about its data leaves the client, except through the model. If
    loading or training fails, the details stay in the node's own log.

    model: makes the network, an nn.Module that returns a score per class for each input.
    data: returns a client's training and validation sets, of pairs of an input and a class.
    train: trains the network in place on the samples drawn, and returns the mean loss; where left
        out, in steps of the batch size, with the server's optimizer and learning rate.
    evaluate: returns the network's accuracy on samples.
    name: returns the client's name, if it is not registered under one.
    most_points: returns the most samples that it gives, whatever the server asks for: the first of
        its training set. None for all.
    least_samples: the fewest samples of which it makes a model or a gradient, because that of one
        sample reveals much about one patient. If the server asks for fewer, it declines.
    may_report: what else it may report if the server asks: "train-loss", "label-counts".
    mods: Flower's mods, around all that the client does.
    goals: returns what the client wants in other measures than accuracy. It then reports where it
        stands, one number, in place of its accuracy; the server's requirement for it is that of
        its first goal, `ClientGoal.requirement`.
    """
    for what in may_report:
        if what not in protocol.EXTRAS:
            raise InputError(f"may_report knows {', '.join(protocol.EXTRAS)}; got {what!r}")

    def site(context: Context) -> Site:
        points, validation = data(context)
        most = most_points(context)
        return Site(
            model,
            points if most is None else Subset(points, range(min(most, _size(points)))),
            validation,
            own_train=train,
            own_evaluate=evaluate,
            name=name(context),
            least_samples=least_samples,
            may_report=tuple(may_report),
            goals=() if goals is None else check_goals(goals(context), name(context)),
        )

    def answer_by(act: Callable[[Site, Message], Message]) -> Answer:
        def answer(message: Message, context: Context) -> Message:
            with _keep_errors(), torch.random.fork_rng(devices=[]):
                return act(site(context), message)

        return answer

    app = ClientApp(mods=list(mods))
    app.query()(answer_by(Site.introduce))
    app.train()(answer_by(Site.train))
    app.evaluate()(answer_by(Site.evaluate))
    return app


@contextlib.contextmanager
def _keep_errors() -> Iterator[None]:
    """Keep from the server what an error says: Flower sends it, and it may have a patient's name.

    All but what an order made of it: that tells nothing of the data, and is for the server to read.
    """
    try:
        yield
    except OrderError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its text is not for the server.
        LOG.exception("this client cannot answer the server")
        raise OrderError(
            f"its app failed with {type(error).__name__}; the log of its node says more"
        ) from None


@dataclass(frozen=True)
class Site:
    """A client with its data: answers the server's messages."""

    model: Callable[[], nn.Module]
    points: Points
    validation: Points
    own_train: TrainFunction | None = None
    own_evaluate: EvaluateFunction | None = None
    name: str = ""
    least_samples: int = 1
    may_report: tuple[str, ...] = ()
    goals: tuple[ClientGoal, ...] = ()

    def introduce(self, message: Message) -> Message:
        """Say who it is and how many points it could bring."""
        metrics: dict[str, Any] = {protocol.POINTS: _size(self.points)}
        asked = str(_config(message).get(protocol.REPORT, ""))
        if protocol.LABEL_COUNTS in self._reports(asked) and self._label_kind == "classes":
            _, labels = _tensors(self.points, np.arange(_size(self.points)))
            counts = Counter(labels.tolist())
            every = range(max(counts, default=-1) + 1)
            metrics[protocol.LABEL_COUNTS] = [counts[label] for label in every]
        who = ConfigRecord({protocol.CLIENT: self.name})
        return _reply(message, metrics, {protocol.WHO: who})

    def train(self, message: Message) -> Message:
        """Draw the requested samples, within the quota, and train on them."""
        key, arrays = _arrays(message)
        config = _config(message)
        order = TrainOrder.read(config)
        if order.num_samples < self.least_samples:
            raise OrderError(
                f"{order.client} trains on {self.least_samples:,} samples or more at a time, and "
                f"the server asks for {order.num_samples:,}"
            )
        chosen = drawn_points(config, _size(self.points))
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
        record = ArrayRecord({n: Array(value.detach().cpu().numpy()) for n, value in made.items()})
        metrics: dict[str, Any] = {protocol.EXAMPLES: len(chosen)}
        if protocol.LOSS in self._reports(order.report):
            metrics[protocol.LOSS] = float(loss)
        return _reply(message, metrics, {key: record})

    def evaluate(self, message: Message) -> Message:
        """Measure the accuracy on all validation points, on some drawn again, or both."""
        _, arrays = _arrays(message)
        order = EvaluateOrder.read(_config(message))
        network = self._network(arrays, order, "evaluation", order.server_round)
        size = _size(self.validation)
        metrics: dict[str, Any] = {protocol.EXAMPLES: size}
        if not size:
            # Of nothing there is no accuracy; the server says what is wrong.
            return _reply(message, metrics, {})
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
        return _reply(message, metrics, {})

    @property
    def _label_kind(self) -> str:
        return find_labels(self.goals, self.name)

    def _reports(self, asked: str) -> set[str]:
        """Return what else to report: what the server requests and the client allows."""
        return set(asked.split(",")) & set(self.may_report)

    def _network(self, arrays: ArrayRecord, order: Order, *purpose: int | str) -> nn.Module:
        # For a network that draws random numbers in a way of its own.
        torch.manual_seed(derive_seed(order.seed, "torch", order.client, *purpose))
        network = self.model()
        try:
            network.load_state_dict(arrays.to_torch_state_dict())
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
        inputs, labels = _batch(points, np.arange(_size(points)), network, self._label_kind)
        if not self.goals:
            return float(is_right(network, inputs, labels).mean())
        goals = [goal if rows is None else goal.take(rows) for goal in self.goals]
        return judge_goals(
            goals, labels.numpy(), find_outputs(find_scores(network, inputs).numpy())
        )


def _config(message: Message) -> ConfigRecord:
    records = list(message.content.config_records.values())
    return records[0] if records else ConfigRecord()


def _arrays(message: Message) -> tuple[str, ArrayRecord]:
    for key, record in message.content.array_records.items():
        return key, record
    raise OrderError("the server sent no model")


def _reply(message: Message, metrics: dict[str, Any], others: dict[str, Any]) -> Message:
    content = RecordDict({protocol.METRICS: MetricRecord(metrics), **others})
    return Message(content, reply_to=message)


def _size(points: Points) -> int:
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
