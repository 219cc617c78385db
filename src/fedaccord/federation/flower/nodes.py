"""Which node is which client, who takes part in a run, and waiting for them with a deadline.

A node's id is Flower's and may change; a client's name is what its weight, its quota and its draws
go by. Where a node is registered under a name, that is its name; else it is what the node says.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.flower.protocol import CLIENT, LOG, WHO
from fedaccord.federation.flower.replies import match_replies, read_answer
from fedaccord.federation.remote.members import LONGEST_NAME, find_name_fault, sort_names
from fedaccord.federation.remote.protocol import REPORT, clip
from fedaccord.federation.remote.replies import Introduction, Unusable, read_points

# How often a node that gives no proper answer is asked who it is.
ATTEMPTS = 3
# With these a spreadsheet begins a formula; names end up in files that people open with one.
FORMULAS = ("=", "+", "-", "@")
# What nodes without a name are called here; who says such a name could keep one of them out.
NAMELESS = re.compile("node [0-9]+")

# Seconds between the first two looks at who is there, and at most: each pause is twice the last.
FIRST_PAUSE = 0.02
PAUSE = 0.5
# Seconds between two lines of the log on whom is waited for.
TELL_EVERY = 10.0


@dataclass
class _Node:
    """A node that is there.

    registered: the name that the SuperLink knows it by; empty if none.
    started: when it was started.
    attempts: how often it was asked who it is.
    question: what it was asked and has not answered yet.
    since: when.
    silent: whether no answer has come at all.
    """

    registered: str = ""
    started: str = ""
    attempts: int = 0
    question: Message | None = None
    since: float = 0.0
    silent: bool = False


class NodesError(FedaccordError):
    """Too few clients are there, and time is up."""


class Roster:
    """The members of a run, found among the nodes.

    Nodes are asked who they are and heard when they answer: one that never does holds up nobody.

    configrecord_key: the record in which clients look for what they are asked.
    report: what else to ask for.
    members: their names, if they are named beforehand; else all that are there at the start.
    deadline: how many seconds to wait, each time, and before a node that does not answer is asked
        again.
    exacting: whether all members must be there.
    on_arrival: called with the introduction of each client whose node is new.
    on_fault: called with the client and the end of a sentence, on whatever is odd.
    """

    def __init__(
        self,
        *,
        configrecord_key: str,
        report: Collection[str],
        members: Sequence[str] | None,
        deadline: float,
        exacting: bool,
        on_arrival: Callable[[Introduction], None],
        on_fault: Callable[[str, str], None],
    ) -> None:
        self._key = configrecord_key
        self._report = ",".join(report)
        self._members = members
        self._deadline = deadline
        self._exacting = exacting
        self._on_arrival = on_arrival
        self._on_fault = on_fault
        # Who is there, who has ever said who it is, and which node is which client now.
        self._nodes: dict[int, _Node] = {}
        self._known: dict[int, Introduction] = {}
        self._holders: dict[str, int] = {}
        self._doubles: set[int] = set()

    def enrol(self, grid: Grid, *, least: int) -> dict[str, Introduction | None]:
        """Wait for the members; return what each says of itself, None for who is not there.

        Where they are named beforehand, all are waited for, and when time is up those that are
        there will do. Else a node that is there is waited for until it has said who it is.
        """
        if self._members is not None and len(self._members) < least:
            raise InputError(
                f"at least {least} clients must take part, but the requirements or the plan name "
                f"{len(self._members)}; lower min_available_nodes, min_train_nodes and "
                "min_evaluate_nodes"
            )
        wanted = least if self._members is None else len(self._members)
        here, reason = self._wait(grid, wanted, self._members, introducing=True)
        if reason is not None and (self._exacting or len(here) < least):
            remedy = (
                "if they are only slow, raise node_deadline; if not, their logs say why"
                if self._silent()
                else "start the other nodes, or lower min_available_nodes, min_train_nodes and "
                "min_evaluate_nodes"
            )
            raise NodesError(f"{reason}, after {self._deadline:g} seconds; {remedy}")
        clients = {name: self._known[node] for name, node in self._holders.items()}
        if self._members is None:
            self._members = sort_names(clients)
        return {name: clients.get(name) for name in self._members}

    def find_present(self, grid: Grid, *, least: int, staying: Collection[str]) -> dict[str, int]:
        """Return the node of each member that is there, waiting for as many as are needed.

        grid: where the nodes are.
        least: how many are needed, if there are as many; all if the roster is exacting.
        staying: the members that have not left.
        """
        wanted = len(staying) if self._exacting else min(least, len(staying))
        here, reason = self._wait(grid, wanted, staying)
        if reason is not None:
            raise NodesError(f"{reason}, after {self._deadline:g} seconds")
        return here

    def find_here(self, names: Collection[str]) -> dict[str, int]:
        """Return the node of each of some members that was there at the last look."""
        return {name: node for name, node in self._holders.items() if name in names}

    def _wait(
        self, grid: Grid, wanted: int, members: Collection[str] | None, *, introducing: bool = False
    ) -> tuple[dict[str, int], str | None]:
        """Look until enough members are there; return them and, where time is up, who is late.

        grid: where the nodes are.
        wanted: how many are enough.
        members: who is waited for; None for anybody who is there.
        introducing: whether nodes that have not said who they are may be members.
        """
        begun = time.monotonic()
        told, pause = -math.inf, FIRST_PAUSE
        while True:
            seen = self._look(grid)
            here = {name: n for name, n in seen.items() if members is None or name in members}
            silent = self._silent() if introducing else []
            # Where all that are named are there, who is silent is none of them.
            if len(here) >= wanted and (members is not None or not silent):
                return here, None
            reason = _say_who_is_late(here, wanted, members or (), silent)
            waited = time.monotonic() - begun
            if waited >= self._deadline:
                return here, reason
            if waited - told > TELL_EVERY:
                share = f"{waited:.0f} of {self._deadline:g} seconds"
                LOG.info("waiting for clients (%s): %s", share, reason)
                told = waited
            time.sleep(min(pause, self._deadline - waited))
            pause = min(2 * pause, PAUSE)

    def _look(self, grid: Grid) -> dict[str, int]:
        """Return the node of each client that is there and has said who it is."""
        # Who goes and comes back may be asked again; who was started again has forgotten.
        live = list(grid.get_nodes())
        self._nodes = {info.node_id: self._nodes.get(info.node_id, _Node()) for info in live}
        for info in live:
            node = self._nodes[info.node_id]
            if node.started != info.last_activated_at:
                node.question = None
            node.registered, node.started = info.name, info.last_activated_at
        self._ask(grid)
        self._hear(grid)
        held, self._holders = self._holders, self._find_holders()
        for name, number in self._holders.items():
            if held.get(name) != number:
                self._on_arrival(self._known[number])
        return dict(self._holders)

    def _silent(self) -> list[str]:
        """List the nodes that are there, have been asked who they are and have not answered."""
        return [
            _call(number, node.registered) for number, node in self._nodes.items() if node.silent
        ]

    def _ask(self, grid: Grid) -> None:
        questions = []
        for number, node in self._nodes.items():
            if number in self._known or node.question is not None or node.attempts >= ATTEMPTS:
                continue
            record = RecordDict({self._key: ConfigRecord({REPORT: self._report})})
            node.question = Message(record, dst_node_id=number, message_type=MessageType.QUERY)
            node.attempts += 1
            node.since, node.silent = time.monotonic(), True
            questions.append(node.question)
        if questions:
            grid.push_messages(questions)

    def _hear(self, grid: Grid) -> None:
        questions = {str(n): node.question for n, node in self._nodes.items() if node.question}
        if not questions:
            return
        pulled = grid.pull_messages([m.metadata.message_id for m in questions.values()])
        replies, _ = match_replies(pulled, questions)
        for number, node in self._nodes.items():
            reply = replies.get(str(number))
            late = time.monotonic() - node.since > self._deadline
            if node.question is None or (reply is None and not late):
                continue
            node.question = None
            try:
                if reply is None:
                    raise Unusable("it does not answer")
                node.silent = False
                said = read_introduction(reply, node.registered)
            except Unusable as reason:
                name = _call(number, node.registered)
                self._on_fault(name, f"could not be asked for its name: {reason}")
                continue
            name = said.name or _call(number)
            self._known[number] = replace(said, name=name)
            if not said.name:
                self._on_fault(
                    name,
                    "has no name, so its weight is lost if it comes back: register it with a name "
                    "(flwr supernode register --name), or set a name in its app",
                )

    def _find_holders(self) -> dict[str, int]:
        """Find the node of each name: a registered one first, then the one that had it so far."""
        so_far = set(self._holders.values())
        ranked = sorted(
            (number for number in self._known if number in self._nodes),
            key=lambda number: (not self._known[number].registered, number not in so_far),
        )
        # Names that were a registered node's once are no other's for the rest of the run.
        reserved = {client.name for client in self._known.values() if client.registered}
        held: dict[str, int] = {}
        for number in ranked:
            client = self._known[number]
            name, fault = client.name, None
            if not client.registered and name in reserved:
                fault = (
                    f"is a registered node's name, and node {number}, which says it is {name} "
                    "too, is not registered under it; that node is left out"
                )
            elif held.setdefault(name, number) != number:
                fault = (
                    f"is there already, as node {held[name]}; node {number} says it is {name} too, "
                    "and is left out while the other is connected"
                )
            if fault is not None and number not in self._doubles:
                self._doubles.add(number)
                self._on_fault(name, fault)
        return held


def _call(node: int, registered: str = "") -> str:
    return clip(registered, LONGEST_NAME) or f"node {node}"


def read_introduction(reply: Message, registered: str) -> Introduction:
    """Read the reply to a query, or raise Unusable.

    reply: the message.
    registered: the name that the SuperLink knows the node by; empty if none.
    """
    content, metrics = read_answer(reply)
    points, label_counts = read_points(metrics)
    said = content.config_records[WHO].get(CLIENT, "") if WHO in content.config_records else ""
    # What the SuperLink has on record is not for the client to say.
    name = registered.strip() or str(said).strip()
    fault = find_name_fault(name) if name else None
    if not fault and not registered and name.startswith(FORMULAS):
        fault = "begins as a formula does"
    if not fault and not registered and NAMELESS.fullmatch(name):
        fault = "looks like the name of a node without a name; choose another"
    if fault is not None:
        raise Unusable(f"its name, {clip(name, 40)}, {fault}")
    return Introduction(name, points, label_counts, bool(registered))


def _say_who_is_late(
    here: Collection[str], wanted: int, members: Iterable[str], silent: Collection[str]
) -> str:
    def enumerate_some(names: Iterable[str]) -> str:
        every = sort_names(names)
        more = f" and {len(every) - 10} more" if len(every) > 10 else ""
        return ", ".join(every[:10]) + more

    away = enumerate_some(set(members) - set(here) - set(silent))
    mute = enumerate_some(silent)
    return (
        f"{len(here)} of {wanted} clients are there"
        + (f"; not connected: {away}" if away else "")
        + (f"; connected, but not yet known by name: {mute}" if mute else "")
    )
