"""Two sets of validation points where there was one: to choose by the first, verify by the second.

Whatever is chosen because accuracies came out well has had luck among its reasons; points that
were not looked at then have no part in that luck.
"""

from __future__ import annotations

import copy
import hashlib

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.allotment import Counts
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.runs.engines import Source
from fedaccord.federation.training.rng import stream

HALVES = ("first", "second")


class Halved:
    """A source whose clients are measured on one half of their validation points.

    A client's halves are drawn by its name and a seed, every class in proportion: the same in
    each trial of a federation whose points are given.

    source: a federation, or what deals one to each trial.
    half: "first" or "second".
    seed: of the draw.
    """

    def __init__(self, source: Source, half: str, *, seed: int = 0) -> None:
        if half not in HALVES:
            raise InputError(f"half must be one of {', '.join(HALVES)}; got {half!r}")
        self._source = source
        self._half = half
        self._seed = seed

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients are called."""
        return self._source.names

    @property
    def requirements(self) -> Vector:
        """The accuracy each client wants."""
        return self._source.requirements

    @property
    def points(self) -> Counts:
        """How many points each client could bring."""
        return self._source.points

    @property
    def fingerprint(self) -> str:
        """A digest of all that its federations depend on."""
        parts = repr((self._source.fingerprint, "half", self._half, self._seed))
        return hashlib.sha256(parts.encode()).hexdigest()

    def deal(self, trial: int) -> Federation:
        """Give the federation of a trial, with one half of all validation points.

        trial: which one.
        """
        whole = self._source.deal(trial)
        clients = [self._halved(client) for client in whole.clients]
        return Federation(clients, whole.model, weights=whole.weights)

    def _halved(self, client: Client) -> Client:
        labels = client.validation_labels.numpy()
        if len(labels) < len(HALVES):
            raise InputError(
                f"{client.name} has one validation point, and verifying needs another than "
                "choosing: give it more"
            )
        order = _mixed(labels, stream(self._seed, "halves", client.name))
        rows = np.sort(order[HALVES.index(self._half) :: len(HALVES)])
        changed = copy.copy(client)
        for name in ("validation_inputs", "validation_labels"):
            object.__setattr__(changed, name, getattr(client, name)[rows])
        return changed


def deals_anew(source: Source, one: int, other: int) -> bool:
    """Tell whether a source deals different points to two trials."""
    if isinstance(source, Federation):
        return False
    return source.deal(one).fingerprint != source.deal(other).fingerprint


def _mixed(labels: Counts, random: np.random.Generator) -> Indices:
    """Shuffle points and sort them by class: every other one is half of each class."""
    shuffled = random.permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]
