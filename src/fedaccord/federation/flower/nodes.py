"""Which node is which client, who takes part in a run, and waiting for them with a deadline.

A node's id is Flower's and may change; a client's name is what its weight, its quota and its draws
go by. Where a node is registered under a name, that is its name; else it is what the node says.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

from fedaccord._checks import is_whole
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.flower.members import LONGEST_NAME, name_fault, sort_names
from fedaccord.federation.flower.protocol import (
    CLIENT,
    LABEL_COUNTS,
    LOG,
    POINTS,
    REPORT,
    WHO,
    printable,
)
from fedaccord.federation.flower.replies import Unusable, by_client, read_answer

# How often a node that gives no proper answer is asked who it is.
ATTEMPTS = 3
# More points, or more classes, than this are a slip or a joke.
MOST_POINTS = 10**12
MOST_CLASSES = 100_000
# With these a spreadsheet begins a formula; names end up in files that people open with one.
FORMULAS = ("=", "+", "-", "@")
# What nodes without a name are called here; who says such a name could keep one of them out.
NAMELESS = re.compile("node [0-9]+")

# Seconds between the first two looks at who is there, and at most: each pause is twice the last.
FIRST_PAUSE = 0.02
PAUSE = 0.5
# Seconds between two lines of the log on whom is waited for.
TELL_EVERY = 10.0

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Introduction:
    """What a client says of itself.

    name: what it is called.
    points: how many points it could bring.
    label_counts: how many points of each class, if it was asked and allowed to say.
    registered: whether the SuperLink knows it by that name.
    """

    name: str
    points: int
    label_counts: tuple[int, ...] | None = None
    registered: bool = False


class Nodes:
    """The nodes that have been seen, by the client each is.

    Nodes are asked who they are and heard when they answer: one that never does holds up nobody.

    configrecord_key: the record in which clients look for what they are asked.
    report: what else to ask for.
    patience: after how many seconds a node that does not answer is asked again.
    met: called with the introduction of each client whose node is new.
    told: called with the client and the end of a sentence, on whatever is odd.
    """

    def __init__(
        self,
        *,
        configrecord_key: str,
        report: Collection[str],
        patience: float,
        met: Callable[[Introduction], None],
        told: Callable[[str, str], None],
    ) -> None:
        self._key = configrecord_key
        self._report = ",".join(report)
        self._patience = patience
        self._met = met
        self._told = told
        self._known: dict[int, Introduction] = {}
        self._asked: dict[int, _Asked] = {}
        self._silent: dict[int, str] = {}
        self._attempts: Counter[int] = Counter()
        self._holders: dict[str, int] = {}
        # Names that were a registered node's once are no other's for the rest of the run.
        self._registered: set[str] = set()
        self._doubles: set[int] = set()

    @property
    def silent(self) -> list[str]:
        """The nodes that are there, have been asked who they are and have not answered."""
        return [_called(node, registered) for node, registered in self._silent.items()]

    @property
    def introductions(self) -> list[Introduction]:
        """What each client that is there says of itself."""
        return [self._known[node] for node in self._holders.values()]

    def present(self, grid: Grid) -> dict[str, int]:
        """Return the node of each client that is there and has said who it is."""
        live = {node.node_id: node for node in grid.get_nodes()}
        self._forget(live)
        self._ask(grid, live)
        self._hear(grid)
        held, self._holders = self._holders, self._held(live)
        for name, node in self._holders.items():
            if held.get(name) != node:
                self._met(self._known[node])
        return dict(self._holders)

    def _forget(self, live: Mapping[int, NodeInfo]) -> None:
        """Forget what nodes were asked that are gone, or were started anew and know nothing of it.

        Who goes and comes back may be asked again.
        """
        self._asked = {
            node: asked
            for node, asked in self._asked.items()
            if node in live and live[node].last_activated_at == asked.started
        }
        self._attempts = Counter({node: self._attempts[node] for node in live})
        self._silent = {node: live[node].name for node in self._silent if node in live}

    def _ask(self, grid: Grid, live: Mapping[int, NodeInfo]) -> None:
        new = [
            node
            for node in live
            if node not in self._known
            and node not in self._asked
            and self._attempts[node] < ATTEMPTS
        ]
        now = time.monotonic()
        asked = {
            node: _Asked(self._question(node), now, live[node].name, live[node].last_activated_at)
            for node in new
        }
        if asked:
            grid.push_messages([question.message for question in asked.values()])
            self._asked.update(asked)
            self._attempts.update(new)
            self._silent.update({node: live[node].name for node in new})

    def _question(self, node: int) -> Message:
        record = RecordDict({self._key: ConfigRecord({REPORT: self._report})})
        return Message(record, dst_node_id=node, message_type=MessageType.QUERY)

    def _hear(self, grid: Grid) -> None:
        if not self._asked:
            return
        questions = {str(node): asked.message for node, asked in self._asked.items()}
        pulled = grid.pull_messages([m.metadata.message_id for m in questions.values()])
        replies, _ = by_client(pulled, questions)
        for node, asked in list(self._asked.items()):
            reply = replies.get(str(node))
            if reply is None and time.monotonic() - asked.since <= self._patience:
                continue
            del self._asked[node]
            try:
                if reply is None:
                    raise Unusable("it does not answer")
                self._silent.pop(node, None)
                self._introduce(node, read_introduction(reply, asked.registered))
            except Unusable as reason:
                self._told(_called(node, asked.registered), f"cannot be asked who it is: {reason}")

    def _introduce(self, node: int, said: Introduction) -> None:
        name = said.name or _called(node)
        self._known[node] = replace(said, name=name)
        if said.registered:
            self._registered.add(name)
        if not said.name:
            self._told(
                name,
                "has no name, so that its weight is lost if it comes back: register it under one "
                "(flwr supernode register --name), or let its app say one",
            )

    def _held(self, live: Collection[int]) -> dict[str, int]:
        """Find the node of each name: a registered one first, then the one that had it so far."""
        so_far = set(self._holders.values())
        ranked = sorted(
            (node for node in self._known if node in live),
            key=lambda node: (not self._known[node].registered, node not in so_far),
        )
        held: dict[str, int] = {}
        for node in ranked:
            name = self._known[node].name
            if not self._known[node].registered and name in self._registered:
                if node not in self._doubles:
                    self._doubles.add(node)
                    self._told(
                        name,
                        f"is a registered node's name, and node {node}, which says it is {name} "
                        "too, is not registered under it; that node is left out",
                    )
            elif held.setdefault(name, node) != node and node not in self._doubles:
                self._doubles.add(node)
                self._told(
                    name,
                    f"is there already, as node {held[name]}; node {node} says it is {name} too, "
                    "and is left out as long as the other is there",
                )
        return held


@dataclass(frozen=True)
class _Asked:
    """A node that was asked who it is.

    message: what it was sent.
    since: when.
    registered: under which name.
    started: when the node was started.
    """

    message: Message
    since: float
    registered: str
    started: str


def _called(node: int, registered: str = "") -> str:
    return printable(registered, LONGEST_NAME) or f"node {node}"


def read_introduction(reply: Message, registered: str) -> Introduction:
    """Read the reply to a query, or raise Unusable.

    reply: the message.
    registered: the name that the SuperLink knows the node by; empty if none.
    """
    content, metrics = read_answer(reply)
    points: Any = metrics.get(POINTS)
    if not (is_whole(points) and 0 <= points <= MOST_POINTS):
        raise Unusable(f"its {POINTS} is {printable(points)}, which cannot be")
    counts: Any = metrics.get(LABEL_COUNTS)
    if counts is not None and not (
        isinstance(counts, list)
        and len(counts) <= MOST_CLASSES
        and all(isinstance(n, int) and n >= 0 for n in counts)
    ):
        raise Unusable(f"its {LABEL_COUNTS} are not counts")
    said = content.config_records[WHO].get(CLIENT, "") if WHO in content.config_records else ""
    # What the SuperLink has on record is not for the client to say.
    name = registered.strip() or str(said).strip()
    fault = name_fault(name) if name else None
    if fault is None and not registered:
        fault = _own_name_fault(name)
    if fault is not None:
        raise Unusable(f"its name, {printable(name, 40)}, {fault}")
    label_counts = None if counts is None else tuple(counts)
    return Introduction(name, points, label_counts, bool(registered))


def _own_name_fault(name: str) -> str | None:
    """Return why a client cannot call itself so, though it could be registered under the name."""
    if name.startswith(FORMULAS):
        return "begins as a formula does"
    if NAMELESS.fullmatch(name):
        return "is of the kind that nodes without a name are given; let it say another"
    return None


class NodesError(FedaccordError):
    """Too few clients are there, and time is up."""


class Roster:
    """The members of a run, found among the nodes.

    nodes: who is there.
    named: the members, if they are named beforehand; else whoever is there when it begins.
    deadline: how many seconds to wait, each time.
    exacting: whether all members must be there.
    """

    def __init__(
        self, nodes: Nodes, *, named: Sequence[str] | None, deadline: float, exacting: bool
    ) -> None:
        self._nodes = nodes
        self._named = named
        self._deadline = deadline
        self._exacting = exacting
        self._members = named

    def enrol(self, grid: Grid, *, least: int) -> dict[str, Introduction | None]:
        """Wait for the members, and give what each says of itself; None for who is not there.

        Where they are named beforehand, all are waited for, and when time is up those that are
        there will do. Else a node that is there is waited for until it has said who it is.

        grid: where the nodes are.
        least: how many members there must be.
        """
        if self._named is not None and len(self._named) < least:
            raise InputError(
                f"{least} clients are wanted, and the requirements or the plan name "
                f"{len(self._named)}; lower min_available_nodes, min_train_nodes and "
                "min_evaluate_nodes"
            )
        wanted = least if self._named is None else len(self._named)

        def late(here: Collection[str]) -> str | None:
            silent = self._nodes.silent
            # Where all that are named are there, who is silent is none of them.
            if len(here) >= wanted and (self._named is not None or not silent):
                return None
            return _who_is_late(here, wanted, self._named or (), silent)

        here, reason = wait_for(lambda: self._here(grid), late, deadline=self._deadline)
        if reason is not None and (self._exacting or len(here) < least):
            raise NodesError(f"{reason}, after {self._deadline:g} seconds; {self._remedy()}")
        clients = {client.name: client for client in self._nodes.introductions}
        if self._members is None:
            self._members = sort_names(clients)
        return {name: clients.get(name) for name in self._members}

    def present(
        self, grid: Grid, *, least: int, staying: Collection[str] | None = None
    ) -> dict[str, int]:
        """Return the node of each member that is there, waiting for as many as are needed.

        grid: where the nodes are.
        least: how many are needed, if there are as many; all if the roster is exacting.
        staying: the members that have not left; all where left out.
        """
        members = (self._members or ()) if staying is None else staying
        wanted = len(members) if self._exacting else min(least, len(members))

        def look() -> dict[str, int]:
            return {name: node for name, node in self._here(grid).items() if name in members}

        def late(here: Collection[str]) -> str | None:
            return None if len(here) >= wanted else _who_is_late(here, wanted, members, ())

        here, reason = wait_for(look, late, deadline=self._deadline)
        if reason is not None:
            raise NodesError(f"{reason}, after {self._deadline:g} seconds")
        return here

    def _remedy(self) -> str:
        if self._nodes.silent:
            return "if they are only slow, raise node_deadline; if not, their logs say why"
        return (
            "start the other nodes, or lower min_available_nodes, min_train_nodes and "
            "min_evaluate_nodes"
        )

    def _here(self, grid: Grid) -> dict[str, int]:
        members = self._members
        seen = self._nodes.present(grid)
        return {n: node for n, node in seen.items() if members is None or n in members}


def wait_for(
    look: Callable[[], Seen], late: Callable[[Seen], str | None], *, deadline: float
) -> tuple[Seen, str | None]:
    """Look until nobody is late; give what was seen last and, where time is up, who is late.

    look: gives who is there.
    late: says who is late, None for nobody.
    deadline: how many seconds to wait.
    """
    begun = time.monotonic()
    end = begun + deadline
    told, pause = -math.inf, FIRST_PAUSE
    while (reason := late(seen := look())) is not None:
        now = time.monotonic()
        if now >= end:
            return seen, reason
        if now - told > TELL_EVERY:
            waited = f"{now - begun:.0f} of {deadline:g} seconds"
            LOG.info("waiting for clients (%s): %s", waited, reason)
            told = now
        time.sleep(min(pause, end - now))
        pause = min(2 * pause, PAUSE)
    return seen, None


def _who_is_late(
    here: Collection[str], wanted: int, members: Iterable[str], silent: Collection[str]
) -> str:
    away = _listed(set(members) - set(here) - set(silent))
    mute = _listed(silent)
    return (
        f"{len(here)} of {wanted} clients are there"
        + (f"; not connected: {away}" if away else "")
        + (f"; connected, and have not said yet who they are: {mute}" if mute else "")
    )


def _listed(names: Iterable[str]) -> str:
    every = sort_names(names)
    more = f" and {len(every) - 10} more" if len(every) > 10 else ""
    return ", ".join(every[:10]) + more
