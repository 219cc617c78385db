"""What comes back from Flower's nodes: waiting for it, and reading it.

A reply may come from somebody who means ill. So its arrays are not made larger than those that were
sent.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedaccord.federation.remote.protocol import clip
from fedaccord.federation.remote.replies import (
    Arrays,
    Evaluation,
    Unusable,
    Update,
    check_finite_array,
    check_names,
    read_accuracies,
    read_count,
    read_loss,
)
from fedaccord.federation.remote.replies import Remark as Remark

# What np.save writes before an array: magic, version, the header's length, the header.
_NPY = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|[\x02\x03]\x00....)"
    rb"\{'descr': '([^']{1,20})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n",
    re.DOTALL,
)

# Between two looks for replies: at first so many seconds, then a tenth of the time waited so far.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
# Seconds between two looks for nodes that were started again.
LOOK_EVERY = 3.0
# Nodes of a simulation report never, nodes of a deployment every half minute.
NEVER = 1e6
# Flower's code for a node that is gone.
GONE = 5
# Makes one record of all replies, by the metric that weighs them.
MetricsFunction = Callable[[list[RecordDict], str], MetricRecord]
FORGOTTEN = "its node lost the connection or restarted"


def match_replies(
    replies: Iterable[Message], asked: Mapping[str, Message]
) -> tuple[dict[str, Message], list[tuple[str, str]]]:
    """Return whose each reply is, by the message that it replies to, and list those that are odd.

    An error that the SuperLink reports for a node carries the SuperLink's id, so the sender's id
    does not tell. The odd ones are pairs of who sent it and what is odd about it.
    """
    senders = {message.metadata.message_id: name for name, message in asked.items()}
    # A message that was never sent has no id.
    senders.pop("", None)
    nodes = {message.metadata.dst_node_id: name for name, message in asked.items()}
    found: dict[str, Message] = {}
    odd: list[tuple[str, str]] = []
    for reply in replies:
        node = reply.metadata.src_node_id
        name = senders.get(reply.metadata.reply_to_message_id, nodes.get(node))
        if name is None:
            odd.append((f"node {node}", "replied without being asked; the reply is dropped"))
        elif not reply.has_error() and node != asked[name].metadata.dst_node_id:
            odd.append((f"node {node}", f"replied in place of {name}; the reply is dropped"))
        elif name in found:
            odd.append((name, "replied twice; the second reply is dropped"))
        else:
            found[name] = reply
    return found, odd


def read_update(reply: Message, sent: Arrays, *, allotted: int, weighted_by: str) -> Update:
    """Read the reply to a train message, or raise Unusable.

    reply: the message.
    sent: the model that the client was given.
    allotted: how many samples it was given.
    weighted_by: the metric that says how many it used.
    """
    content, metrics = read_answer(reply)
    loss = read_loss(metrics)
    records: list[ArrayRecord] = list(content.array_records.values())
    if len(records) != 1:
        raise Unusable(f"it has {len(records)} records of arrays instead of one")
    check_names(records[0], sent)
    arrays = {name: _read_array(records[0][name], like, name) for name, like in sent.items()}
    claimed = read_count(metrics, weighted_by)
    samples = min(claimed, allotted)
    # The functions that average metrics read the weight out of the reply.
    metrics[weighted_by] = samples
    return Update(arrays, samples, claimed, loss, content)


def read_evaluation(reply: Message, *, whole: bool, tested: bool, weighted_by: str) -> Evaluation:
    """Read the reply to an evaluate message, as `read_accuracies` does, or raise Unusable."""
    content, metrics = read_answer(reply)
    found = read_accuracies(metrics, whole=whole, tested=tested, weighted_by=weighted_by)
    return Evaluation(*found, content)


def read_answer(reply: Message) -> tuple[RecordDict, MetricRecord]:
    """Return what a reply holds and its one record of metrics, or raise Unusable."""
    if reply.has_error():
        reason = clip(reply.error.reason, 300) or f"error {reply.error.code}"
        raise Unusable(f"it reports: {reason}")
    if not reply.has_content():
        raise Unusable("its reply is empty")
    records = list(reply.content.metric_records.values())
    if len(records) != 1:
        raise Unusable(f"it has {len(records)} records of metrics instead of one")
    return reply.content, records[0]


def _read_array(array: Array, like: NDArray[Any], name: str) -> NDArray[Any]:
    """Read an array that must be like the one that was sent, without making room for another."""
    header = _NPY.match(array.data[:1000])
    if header is None:
        raise Unusable(f"{name} cannot be read as an array")
    kind, fortran, shape = (part.decode("latin1") for part in header.groups())
    wanted = ",".join(map(str, like.shape))
    if kind != like.dtype.str or shape.replace(" ", "").rstrip(",") != wanted:
        raise Unusable(
            f"{name} has shape ({clip(shape)}) of {clip(kind)} instead of {like.shape} "
            f"of {like.dtype.str}"
        )
    if len(array.data) - header.end() != like.nbytes:
        raise Unusable(f"{name} is cut short, or has more values than it says")
    flat = np.frombuffer(array.data, dtype=like.dtype, offset=header.end())
    values = flat.reshape(like.shape, order="F" if fortran == "True" else "C")
    return check_finite_array(values, name)


def to_arrays(record: ArrayRecord) -> Arrays:
    """Return the arrays of a record by name."""
    return {name: array.numpy() for name, array in record.items()}


class AttentiveGrid:
    """A grid of Flower's that does not wait for replies that can no longer come.

    Flower waits for a node until it replies, is found to be gone, or time is up. A SuperNode that
    is stopped and started again has forgotten what it was asked, and as it is there, nothing is
    found: the round would wait for the whole timeout, an hour unless told otherwise.

    grid: to send and receive by.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and wait for the replies that can come."""
        sent = list(messages)
        if not self._starts():
            return self._grid.send_and_receive(sent, timeout=timeout)
        ids = list(self._grid.push_messages(sent))
        # Only now: a node that was started again before it was asked knows what it was asked.
        started = self._starts()
        # What could not be sent has no id.
        waiting = {number: m for number, m in zip(ids, sent, strict=False) if number}
        heard: list[Message] = []
        begun = looked = time.monotonic()
        while waiting:
            now = time.monotonic()
            restarted: set[int] = set()
            if now - looked >= LOOK_EVERY:
                looked = now
                restarted = {n for n, at in self._starts().items() if started.get(n, at) != at}
            for reply in self._grid.pull_messages(list(waiting)):
                heard.append(reply)
                waiting.pop(reply.metadata.reply_to_message_id, None)
            for number, message in list(waiting.items()):
                if message.metadata.dst_node_id in restarted:
                    del waiting[number]
                    heard.append(Message(Error(code=GONE, reason=FORGOTTEN), reply_to=message))
            waited = time.monotonic() - begun
            if timeout is not None and waited >= timeout:
                break
            if waiting:
                time.sleep(min(max(SHORTEST_PAUSE, waited / 10), LONGEST_PAUSE))
        return heard

    def _starts(self) -> dict[int, str]:
        """Return when each node was started, of those that have to report that they are there."""
        return {
            node.node_id: node.last_activated_at
            for node in self._grid.get_nodes()
            if 0 < node.heartbeat_interval < NEVER
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
    kinds = [
        {(key, len(value) if isinstance(value, list) else None) for key, value in record.items()}
        for record in records
    ]
    alike = {key for key, _ in set.intersection(*kinds)}
    for record in records:
        for key in set(record) - alike:
            del record[key]
    return average(contents, weighted_by)
