"""Waiting for replies, but not for those that can no longer come."""

import pytest
from federation.flower.in_process import InProcessGrid, Node
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo

from fedaccord.federation.flower import replies as attention
from fedaccord.federation.flower.replies import AttentiveGrid

FIRST, SECOND = "2026-01-01T08:00:00+00:00", "2026-01-01T08:01:00+00:00"


class Deployed(InProcessGrid):
    """A grid of nodes that report, as in a deployment, and reply after so many looks for it."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.started = {node.node_id: FIRST for node in nodes}
        self.late = {}
        self.looks = 0

    def get_nodes(self):
        return [
            NodeInfo(
                node_id=node.node_id,
                heartbeat_interval=30,
                last_activated_at=self.started[node.node_id],
            )
            for node in self.nodes
            if node.online
        ]

    def pull_messages(self, message_ids):
        self.looks += 1
        asked = {m.metadata.message_id: m.metadata.dst_node_id for m in self.pushed}
        due = [one for one in message_ids if self.looks > self.late.get(asked[one], 0)]
        return super().pull_messages(due)

    def send_and_receive(self, messages, *, timeout=None):
        raise AssertionError("the patience of Flower's own grid is not wanted")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(attention, "SHORTEST_PAUSE", 0.001)
    monkeypatch.setattr(attention, "LONGEST_PAUSE", 0.001)
    monkeypatch.setattr(attention, "LOOK_EVERY", 0.0)


def nodes(count):
    app = ClientApp()

    @app.query()
    def answer(message, context):
        return Message(
            RecordDict({"who": ConfigRecord({"node": context.node_id})}), reply_to=message
        )

    return [Node(app, node_id=100 + place) for place in range(count)]


def questions(grid):
    return [
        Message(RecordDict(), dst_node_id=node.node_id, message_type=MessageType.QUERY)
        for node in grid.nodes
    ]


def answers(replies):
    """What each node said: its own number, or the error in its place."""
    return sorted(
        r.error.reason if r.has_error() else str(r.content["who"]["node"]) for r in replies
    )


def test_replies_are_waited_for_however_late():
    grid = Deployed(nodes(3))
    grid.late = {101: 40, 102: 5}
    assert answers(AttentiveGrid(grid).send_and_receive(questions(grid))) == ["100", "101", "102"]
    assert grid.looks == 41


def test_a_node_that_was_started_anew_is_not_waited_for():
    grid = Deployed(nodes(2))
    grid.late = {101: 10**9}
    sent = questions(grid)
    pull = grid.pull_messages

    def restart(ids):
        if grid.looks == 3:
            grid.started[101] = SECOND
        return pull(ids)

    grid.pull_messages = restart
    replies = list(AttentiveGrid(grid).send_and_receive(sent, timeout=20))
    assert answers(replies) == ["100", attention.FORGOTTEN]
    # Told by the message that it replies to, as Flower's own errors are.
    assert replies[-1].metadata.reply_to_message_id == sent[1].metadata.message_id


def test_a_reply_that_came_before_the_node_was_started_anew_counts():
    """The reply and the news are there at the same look."""
    grid = Deployed(nodes(1))
    grid.late = {100: 3}
    pull = grid.pull_messages

    def restart(ids):
        grid.started[100] = SECOND if grid.looks >= 2 else FIRST
        return pull(ids)

    grid.pull_messages = restart
    assert answers(AttentiveGrid(grid).send_and_receive(questions(grid))) == ["100"]


def test_a_node_that_was_there_before_and_is_gone_is_left_to_flower():
    """Of such a node the SuperLink itself sends an error."""
    grid = Deployed(nodes(1))
    grid.late = {100: 30}
    sent = questions(grid)
    push = grid.push_messages

    def go(messages):
        ids = push(messages)
        grid.nodes[0].online = False
        return ids

    grid.push_messages = go
    assert answers(AttentiveGrid(grid).send_and_receive(sent)) == ["100"]


def test_time_is_up_when_it_is_up():
    grid = Deployed(nodes(2))
    grid.late = {101: 10**9}
    assert answers(AttentiveGrid(grid).send_and_receive(questions(grid), timeout=0.2)) == ["100"]
    grid.late = {100: 10**9, 101: 10**9}
    assert answers(AttentiveGrid(grid).send_and_receive(questions(grid), timeout=0.0)) == []


def test_what_could_not_be_sent_is_not_waited_for():
    grid = Deployed(nodes(2))
    push = grid.push_messages
    grid.push_messages = lambda messages: [next(iter(push(messages[:1]))), None]
    assert answers(AttentiveGrid(grid).send_and_receive(questions(grid))) == ["100"]


def test_nothing_to_send_is_soon_done():
    grid = Deployed(nodes(1))
    assert AttentiveGrid(grid).send_and_receive([]) == []
    assert grid.looks == 0


def test_nodes_that_never_report_are_left_to_their_own_grid():
    """A simulation's, and those of other kinds of grids."""
    grid = InProcessGrid(nodes(2))
    grid.nodes[1].tamper = lambda message, reply: None
    assert answers(AttentiveGrid(grid).send_and_receive(questions(grid), timeout=3600)) == ["100"]


def test_the_pauses_between_looks_grow_to_a_limit(monkeypatch):
    grid = Deployed(nodes(1))
    grid.late = {100: 30}
    clock, pauses = [0.0], []

    def sleep(seconds):
        pauses.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(attention, "SHORTEST_PAUSE", 0.1)
    monkeypatch.setattr(attention, "LONGEST_PAUSE", 2.0)
    monkeypatch.setattr(attention.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(attention.time, "sleep", sleep)
    AttentiveGrid(grid).send_and_receive(questions(grid))
    assert pauses[0] == 0.1
    assert pauses == sorted(pauses)
    assert all(pause <= max(0.1, 0.1 * sum(pauses[:n])) + 1e-9 for n, pause in enumerate(pauses))


def test_the_rest_is_passed_on():
    grid = Deployed(nodes(2))
    attentive = AttentiveGrid(grid)
    assert list(attentive.get_node_ids()) == [100, 101]
    assert [node.node_id for node in attentive.get_nodes()] == [100, 101]
    ids = list(attentive.push_messages(questions(grid)))
    assert answers(attentive.pull_messages(ids)) == ["100", "101"]
