"""Small federations run under Flower in this process, and ways to tamper with what clients say."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from federation.flower.in_process import InProcessGrid, Node
from federation.small import small_federation
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from torch.utils.data import Dataset, TensorDataset

from fedaccord.federation import Federation
from fedaccord.federation.clients import Client
from fedaccord.federation.flower import AlgorithmStrategy, client_app
from fedaccord.federation.training.loop import copy_weights

LOSS = "train-loss"


def started(sizes: Sequence[int] = (30, 24, 40), **options: Any) -> Federation:
    """Give a federation that starts from the same weights whatever the seed of a run."""
    federation = small_federation(tuple(sizes), **options)
    return with_weights(federation)


def with_weights(federation: Federation) -> Federation:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        weights = copy_weights(federation.start())
    return Federation(federation.clients, federation.model, weights=weights)


def arrays_of(federation: Federation) -> ArrayRecord:
    assert federation.weights is not None
    return ArrayRecord({name: Array(np.asarray(w)) for name, w in federation.weights.items()})


def app_of(client: Client, model: Callable[[], Any], **options: Any) -> Any:
    sets = (
        TensorDataset(client.inputs, client.labels),
        TensorDataset(client.validation_inputs, client.validation_labels),
    )
    given = {"name": lambda context: client.name, "may_report": (LOSS,), **options}
    if client.goals:
        given["goals"] = lambda context: client.goals
    return client_app(model, lambda context: sets, **given)


def node_of(client: Client, federation: Federation, node_id: int, **options: Any) -> Node:
    return Node(app_of(client, federation.model, **options), node_id=node_id)


def nodes_of(federation: Federation, *, first: int = 100, **options: Any) -> list[Node]:
    every = enumerate(federation.clients)
    return [node_of(client, federation, first + i, **options) for i, client in every]


def requirements_of(federation: Federation) -> dict[str, float]:
    return dict(zip(federation.names, federation.requirements.tolist(), strict=True))


def run(
    strategy: AlgorithmStrategy,
    federation: Federation,
    nodes: Sequence[Node] | None = None,
    *,
    rounds: int = 3,
    **options: Any,
) -> Any:
    """Start a strategy on nodes, by default honest ones, and give Flower's result."""
    grid = InProcessGrid(nodes_of(federation) if nodes is None else nodes)
    return strategy.start(grid, arrays_of(federation), num_rounds=rounds, **options)


def heard(nodes: Sequence[Node], kind: str) -> Iterator[tuple[int, Message]]:
    """Give each message of a kind that a node was sent."""
    for node in nodes:
        yield from ((node.node_id, m) for m in node.heard if m.metadata.message_type == kind)


def config_of(message: Message) -> Any:
    return next(iter(message.content.config_records.values()))


def tampering(
    node: Node, kind: str, change: Callable[[RecordDict], Any], *, rounds: Sequence[int] = ()
) -> None:
    """Let a node's replies to messages of a kind be changed, in some rounds or in all."""

    def tamper(message: Message, reply: Message) -> Message:
        n = config_of(message).get("server-round", 0)
        if message.metadata.message_type == kind and (not rounds or n in rounds):
            change(reply.content)
        return reply

    node.tamper = tamper


def say(**metrics: Any) -> Callable[[RecordDict], None]:
    """Put other values among the metrics of a reply; None takes one away."""

    def change(content: RecordDict) -> None:
        key = next(iter(content.metric_records))
        values = dict(content.metric_records[key])
        for name, value in metrics.items():
            values[name.replace("_", "-")] = value
        content[key] = MetricRecord({k: v for k, v in values.items() if v is not None})

    return change


def put(array: Callable[[np.ndarray], Any], place: int = 0) -> Callable[[RecordDict], None]:
    """Put something else in place of an array of a reply: an array, or an Array of Flower's."""

    def change(content: RecordDict) -> None:
        key = next(iter(content.array_records))
        arrays = dict(content.array_records[key])
        name = list(arrays)[place]
        made = array(arrays[name].numpy())
        arrays[name] = made if isinstance(made, Array) else Array(made)
        content[key] = ArrayRecord(arrays)

    return change


class Watched(Dataset):
    """A data set that notes which of its points were looked at."""

    def __init__(self, inputs: Any, labels: Any) -> None:
        self.inputs, self.labels = inputs, labels
        self.seen: list[int] = []

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> Any:
        self.seen.append(int(place))
        return self.inputs[place], self.labels[place]


def texts(strategy: AlgorithmStrategy) -> list[str]:
    return [remark.text for remark in strategy.remarks]


def after(n: int, act: Callable[[], None]) -> Callable[[int, ArrayRecord], None]:
    """Make what a strategy calls after each round, to act after one of them."""

    def look(server_round: int, arrays: ArrayRecord) -> None:
        if server_round == n:
            act()

    return look


def goes(*nodes: Node) -> Callable[[], None]:
    """Make what lets nodes go."""

    def act() -> None:
        for node in nodes:
            node.online = False

    return act
