"""Who takes part in a run, and waiting for them with a deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from flwr.serverapp import Grid

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.flower.members import in_order
from fedaccord.federation.flower.nodes import Introduction, Nodes
from fedaccord.federation.flower.protocol import LOG

# Seconds between the first two looks at who is there, and at most: each pause is twice the last.
FIRST_PAUSE = 0.02
PAUSE = 0.5
# Seconds between two lines of the log on whom is waited for.
TELL_EVERY = 10.0

Seen = TypeVar("Seen")


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
            self._members = in_order(clients)
        return {name: clients.get(name) for name in self._members}

    def present(
        self, grid: Grid, *, least: int, staying: Collection[str] | None = None
    ) -> dict[str, int]:
        """Give the node of each member that is there, waiting for as many as are needed.

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
    every = in_order(names)
    more = f" and {len(every) - 10} more" if len(every) > 10 else ""
    return ", ".join(every[:10]) + more
