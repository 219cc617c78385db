"""A grid of Flower's whose nodes are ClientApps in this process, for tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

SUPERLINK = 1

# Messages carry the run that they belong to, which Flower's runtime sets.
TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = SUPERLINK


class Node:
    """A node: an app, its config, the name it is registered under."""

    def __init__(self, app: ClientApp, *, node_id: int, name: str = "", **config: Any) -> None:
        self.app = app
        self.node_id = node_id
        self.name = name
        self.online = True
        self.started = "once"
        self.heard: list[Message] = []
        # Put in place of a reply by tests that need a bad one; None for no reply at all.
        self.tamper: Callable[[Message, Message], Message | None] = lambda message, reply: reply
        self.config: dict[str, Any] = {
            key.replace("_", "-"): value for key, value in config.items()
        }

    def answer(self, message: Message) -> Message | None:
        self.heard.append(message)
        context = Context(
            run_id=1,
            node_id=self.node_id,
            node_config=self.config,
            state=RecordDict(),
            run_config={},
        )
        try:
            reply = self.app(message, context)
        except Exception as error:  # noqa: BLE001 - as Flower does
            reason = f"{type(error)}:<'{error}'>"
            reply = Message(Error(code=2, reason=reason), reply_to=message)
        return self.tamper(message, reply)


class InProcessGrid(Grid):
    """Calls the apps one after the other; ids, replies and errors are as Flower's."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self.pushed: list[Message] = []
        self._replies: dict[str, list[Message]] = {}

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *args: Any, **options: Any) -> Message:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        for message in messages:
            message.metadata.__dict__["_message_id"] = secrets.token_hex(8)
            self.pushed.append(message)
            self._replies[message.metadata.message_id] = self._answers(message)
        return [message.metadata.message_id for message in messages]

    def _answers(self, message: Message) -> list[Message]:
        node = next(n for n in self.nodes if n.node_id == message.metadata.dst_node_id)
        if node.online:
            reply = node.answer(message)
            return [] if reply is None else [reply]
        reply = Message(Error(code=5, reason="node unavailable"), reply_to=message)
        reply.metadata.__dict__["_src_node_id"] = SUPERLINK
        return [reply]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [reply for one in message_ids for reply in self._replies.pop(one, [])]

    def get_node_ids(self) -> Iterable[int]:
        return [node.node_id for node in self.nodes if node.online]

    def get_nodes(self) -> Iterable[NodeInfo]:
        return [
            NodeInfo(node_id=n.node_id, name=n.name, last_activated_at=n.started)
            for n in self.nodes
            if n.online
        ]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))
