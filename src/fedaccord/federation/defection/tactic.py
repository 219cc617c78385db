"""Who defects in a run, and how: what a run is known by, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedaccord._checks import check_choice
from fedaccord.errors import InputError

# With what a defector fills its pledge up: samples that are not genuine, or updates that are not.
FAKE_SAMPLES = ("copies", "labels", "noise")
FAKE_UPDATES = ("idle", "random")
FILLERS = (*FAKE_SAMPLES, *FAKE_UPDATES)


@dataclass(frozen=True)
class Tactic:
    """What defectors do in a run beyond giving less.

    clients: who defects, as places among all clients.
    filler: with what each fills its pledge up, one of FILLERS.
    genuine: how many genuine samples each gives, where samples are not genuine.
    """

    clients: tuple[int, ...]
    filler: str
    genuine: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise an InputError at a tactic that nobody can follow."""
        if len(set(self.clients)) < len(self.clients) or not self.clients:
            raise InputError(f"a tactic needs different clients; got {list(self.clients)}")
        check_choice("the filler", self.filler, FILLERS)
        if self.filler in FAKE_SAMPLES and len(self.genuine) != len(self.clients):
            raise InputError(
                f"{len(self.clients)} defectors need one number of genuine samples each; got "
                f"{len(self.genuine)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the tactic as plain values, by which a stored run is known."""
        return {
            "clients": list(self.clients),
            "filler": self.filler,
            "genuine": list(self.genuine),
        }
