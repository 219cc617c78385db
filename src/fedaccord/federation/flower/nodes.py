"""Which node is which client, and waiting for nodes without waiting for ever.

A node's id is Flower's and may change; a client's name is what its weight, its quota and its draws
go by. Where a node is registered under a name, that is its name; else it is what the node says.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedaccord.errors import FedaccordError
from fedaccord.federation.flower.protocol import CLIENT, LABEL_COUNTS, LOG, POINTS, REPORT, WHO
from fedaccord.federation.flower.replies import Unusable, by_client, read_answer

# How often a node that does not answer is asked who it is.
ATTEMPTS = 3
# Seconds between two looks at who is there.
PAUSE = 0.5
# A client's own name is not to fill the logs.
LONGEST_NAME = 200


class NodesError(FedaccordError):
    """Too few clients are there, and time is up."""


@dataclass(frozen=True)
class Introduction:
    """What a client says of itself.

    name: what it is called.
    points: how many points it could bring.
    label_counts: how many points of each class, if it was asked and allowed to say.
    """

    name: str
    points: int
    label_counts: tuple[int, ...] | None = None


class Nodes:
    """The nodes that have been seen, by the client each is.

    configrecord_key: the record in which clients look for what they are asked.
    report: what else to ask for.
    met: called with each new client's introduction.
    told: called with a sentence on whatever is odd, and the client it is about.
    """

    def __init__(
        self,
        *,
        configrecord_key: str,
        report: Collection[str],
        met: Callable[[Introduction], None],
        told: Callable[[str, str], None],
    ) -> None:
        self._key = configrecord_key
        self._report = ",".join(report)
        self._met = met
        self._told = told
        self._names: dict[int, str] = {}
        self._attempts: Counter[int] = Counter()
        self._refused: set[int] = set()

    def present(self, grid: Grid, *, timeout: float) -> dict[str, int]:
        """Give the node of each client that is there, asking new nodes who they are.

        grid: where the nodes are.
        timeout: how many seconds a new node has to answer.
        """
        live = {node.node_id: node.name for node in grid.get_nodes()}
        new = [
            node
            for node in live
            if node not in self._names
            and node not in self._refused
            and self._attempts[node] < ATTEMPTS
        ]
        if new:
            self._introduce(grid, {node: live[node] for node in new}, live, timeout)
        return {self._names[node]: node for node in live if node in self._names}

    def _introduce(
        self, grid: Grid, new: dict[int, str], live: Collection[int], timeout: float
    ) -> None:
        asked = {str(node): self._question(node) for node in new}
        self._attempts.update(new)
        replies, _ = by_client(grid.send_and_receive(list(asked.values()), timeout=timeout), asked)
        for node, registered in sorted(new.items()):
            known = registered or f"node {node}"
            reply = replies.get(str(node))
            if reply is None:
                self._told(known, "does not say who it is")
                continue
            try:
                introduction = _read_introduction(reply, registered)
            except Unusable as reason:
                self._told(known, f"cannot be asked who it is: {reason}")
                continue
            self._take(node, introduction, live)

    def _question(self, node: int) -> Message:
        record = RecordDict({self._key: ConfigRecord({REPORT: self._report})})
        return Message(record, dst_node_id=node, message_type=MessageType.QUERY)

    def _take(self, node: int, introduction: Introduction, live: Collection[int]) -> None:
        name = introduction.name or f"node {node}"
        if not introduction.name:
            self._told(
                name,
                "has no name, so that its weight is lost if it comes back: register it under one "
                "(flwr supernode register --name), or let its app say one",
            )
        holders = [n for n, held in self._names.items() if held == name]
        if any(holder in live for holder in holders):
            self._refused.add(node)
            self._told(name, f"is there already; node {node}, which says it is {name} too, is not")
            return
        for holder in holders:
            del self._names[holder]
        self._names[node] = name
        self._met(Introduction(name, introduction.points, introduction.label_counts))


def _read_introduction(reply: Message, registered: str) -> Introduction:
    content, metrics = read_answer(reply)
    points, counts = metrics.get(POINTS), metrics.get(LABEL_COUNTS)
    if isinstance(points, bool) or not isinstance(points, int) or points < 0:
        raise Unusable(f"its {POINTS} is {points!r}, which cannot be")
    said = content[WHO].get(CLIENT, "") if WHO in content.config_records else ""
    if counts is not None and not (
        isinstance(counts, list) and all(isinstance(n, int) and n >= 0 for n in counts)
    ):
        raise Unusable(f"its {LABEL_COUNTS} are not counts")
    # What the SuperLink has on record is not for the client to say.
    name = registered or " ".join(str(said).split())[:LONGEST_NAME]
    return Introduction(name, points, None if counts is None else tuple(map(int, counts)))


def wait_for(
    enough: Callable[[], bool], missing: Callable[[], str], *, deadline: float
) -> str | None:
    """Wait until enough clients are there; where time is up, say who is missing.

    enough: looks whether they are.
    missing: says who is not.
    deadline: how many seconds to wait.
    """
    end = time.monotonic() + deadline
    told = 0.0
    while not enough():
        now = time.monotonic()
        if now >= end:
            return missing()
        if now - told > 10:
            LOG.info("waiting for clients: %s", missing())
            told = now
        time.sleep(min(PAUSE, max(end - now, 0)))
    return None


def listed(names: Iterable[str]) -> str:
    """Write names one after the other, at most ten."""
    every = sorted(names)
    more = f" and {len(every) - 10} more" if len(every) > 10 else ""
    return ", ".join(every[:10]) + more
