"""Waiting for replies, but not for those that can no longer come.

Flower waits for a node until it replies, is found to be gone, or time is up. A SuperNode that is
stopped and started again has forgotten what it was asked, and as it is there, nothing is found:
the round would wait for the whole timeout, an hour unless told otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from flwr.app import Error, Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

# Between two looks for replies: at first so many seconds, then a tenth of the time waited so far.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
# Seconds between two looks for nodes that were started anew.
LOOK_EVERY = 3.0
# Nodes of a simulation report never, nodes of a deployment every half minute.
NEVER = 1e6
# Flower's code for a node that is gone.
GONE = 5
FORGOTTEN = "its node lost touch or was started anew in the meantime"


class AttentiveGrid(Grid):
    """A grid that gives up on a node that was started anew since it was asked.

    grid: to send and receive by.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def set_run(self, run: Any) -> None:
        """Pass on the run."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Make a message."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Give the ids of the nodes that are there."""
        return self._grid.get_node_ids()

    def get_nodes(self) -> Iterable[NodeInfo]:
        """Give the nodes that are there."""
        return self._grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Fetch replies."""
        return self._grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and wait for the replies that can come."""
        sent = list(messages)
        if not self._starts():
            return self._grid.send_and_receive(sent, timeout=timeout)
        ids = list(self._grid.push_messages(sent))
        # Only now: a node that was started anew before it was asked knows what it was asked.
        started = self._starts()
        # What could not be sent has no id.
        waiting = {number: m for number, m in zip(ids, sent, strict=False) if number}
        heard: list[Message] = []
        begun = looked = time.monotonic()
        while waiting:
            now = time.monotonic()
            forgotten: list[str] = []
            if now - looked >= LOOK_EVERY:
                looked = now
                forgotten = self._forgotten(waiting, started)
            for reply in self._grid.pull_messages(list(waiting)):
                heard.append(reply)
                waiting.pop(reply.metadata.reply_to_message_id, None)
            heard += [_given_up(waiting.pop(number)) for number in forgotten if number in waiting]
            waited = time.monotonic() - begun
            if timeout is not None and waited >= timeout:
                break
            if waiting:
                time.sleep(min(max(SHORTEST_PAUSE, waited / 10), LONGEST_PAUSE))
        return heard

    def _starts(self) -> dict[int, str]:
        """Tell when each node was started, of those that have to report that they are there."""
        return {
            node.node_id: node.last_activated_at
            for node in self._grid.get_nodes()
            if 0 < node.heartbeat_interval < NEVER
        }

    def _forgotten(self, waiting: dict[str, Message], started: dict[int, str]) -> list[str]:
        """Find the messages to nodes that were started anew since."""
        anew = {node for node, at in self._starts().items() if started.get(node, at) != at}
        return [n for n, message in waiting.items() if message.metadata.dst_node_id in anew]


def _given_up(message: Message) -> Message:
    return Message(Error(code=GONE, reason=FORGOTTEN), reply_to=message)
