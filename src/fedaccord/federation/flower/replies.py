"""Whether a reply can be used: a model that is not finite, or a count that cannot be, is not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from numpy.typing import NDArray

from fedaccord.federation.algorithms import MOST_SAMPLES
from fedaccord.federation.flower.protocol import ACCURACY, GOAL_ACCURACY, LOSS

Arrays = dict[str, NDArray[Any]]


class Unusable(Exception):
    """A reply that is dropped; the text says why, as the end of a sentence on the client."""


class NotFinite(Unusable):
    """A reply that is dropped because training diverged there, or somebody wants it to look so."""


@dataclass(frozen=True)
class Update:
    """What a client made of a round.

    arrays: its model, or its gradient.
    samples: how many samples count: what it was allotted, or what it says it used, if less.
    claimed: how many it says it used.
    loss: mean over them, NaN if it does not say.
    content: the reply, with the samples that count.
    """

    arrays: Arrays = field(repr=False)
    samples: int
    claimed: int
    loss: float
    content: RecordDict = field(repr=False)


@dataclass(frozen=True)
class Measured:
    """What a client measured: its accuracy on all validation points, and on the goal test's."""

    accuracy: float | None
    tested: float | None
    content: RecordDict = field(repr=False)


def by_client(
    replies: Iterable[Message], asked: Mapping[str, Message]
) -> tuple[dict[str, Message], list[str]]:
    """Tell whose each reply is, by the message that it replies to; drop second ones.

    An error that the SuperLink reports for a node carries the SuperLink's id, so the sender's id
    does not tell.

    replies: as they came.
    asked: the message that each client was sent.
    """
    senders = {message.metadata.message_id: name for name, message in asked.items()}
    nodes = {message.metadata.dst_node_id: name for name, message in asked.items()}
    found: dict[str, Message] = {}
    odd: list[str] = []
    for reply in replies:
        about = reply.metadata
        name = senders.get(about.reply_to_message_id) or nodes.get(about.src_node_id)
        if name is None:
            odd.append(f"a reply came from node {about.src_node_id}, which was not asked")
        elif name in found:
            odd.append(f"{name} replied twice; the second reply is dropped")
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
    loss = _number(metrics.get(LOSS, math.nan), LOSS)
    if LOSS in metrics and not math.isfinite(loss):
        raise NotFinite(f"its loss is {loss}")
    arrays = _the_arrays(content, sent)
    claimed = _count(metrics.get(weighted_by), weighted_by)
    samples = min(claimed, allotted)
    # The functions that average metrics read the weight out of the reply.
    metrics[weighted_by] = samples
    return Update(arrays, samples, claimed, loss, content)


def read_measured(reply: Message, *, whole: bool, tested: bool, weighted_by: str) -> Measured:
    """Read the reply to an evaluate message, or raise Unusable.

    reply: the message.
    whole: whether the accuracy on all points was asked for.
    tested: whether that on the goal test's points was.
    weighted_by: the metric that says on how many points.
    """
    content, metrics = read_answer(reply)
    _count(metrics.get(weighted_by), weighted_by)
    return Measured(
        _accuracy(metrics, ACCURACY) if whole else None,
        _accuracy(metrics, GOAL_ACCURACY) if tested else None,
        content,
    )


def read_answer(reply: Message) -> tuple[RecordDict, MetricRecord]:
    """Give what a reply holds and its one record of metrics, or raise Unusable."""
    if reply.has_error():
        reason = " ".join(str(reply.error.reason).split()) or f"error {reply.error.code}"
        raise Unusable(f"it reports: {reason[:300]}")
    records = list(reply.content.metric_records.values())
    if len(records) != 1:
        raise Unusable(f"it has {len(records)} records of metrics instead of one")
    return reply.content, records[0]


def _the_arrays(content: RecordDict, sent: Arrays) -> Arrays:
    records: list[ArrayRecord] = list(content.array_records.values())
    if len(records) != 1:
        raise Unusable(f"it has {len(records)} records of arrays instead of one")
    if set(records[0]) != set(sent):
        odd = min(set(records[0]) ^ set(sent))
        raise Unusable(f"its arrays are not those it was sent: {odd[:80]} is on one side only")
    arrays = {}
    for name, like in sent.items():
        array = _decoded(records[0][name], name)
        if array.shape != like.shape or array.dtype != like.dtype:
            raise Unusable(
                f"{name} has shape {array.shape} of {array.dtype} instead of {like.shape} of "
                f"{like.dtype}"
            )
        if not np.isfinite(array).all():
            raise NotFinite(f"{name} has values that are not finite")
        arrays[name] = array
    return arrays


def _decoded(array: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(array.numpy())
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise Unusable(f"{name} cannot be read as an array ({error})") from None


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unusable(f"its {what} is {value!r} and not one number")
    return float(value)


def _count(value: Any, what: str) -> int:
    number = _number(value, what)
    if not (math.isfinite(number) and number == int(number) and 1 <= number <= MOST_SAMPLES):
        raise Unusable(f"its {what} is {value!r}, which cannot be")
    return int(number)


def _accuracy(metrics: MetricRecord, what: str) -> float:
    value = _number(metrics.get(what), what)
    if not math.isfinite(value):
        raise NotFinite(f"its {what} is {value}")
    if not 0 <= value <= 1:
        raise Unusable(f"its {what} is {value!r}, and not between 0 and 1")
    return value
