"""The models that clients were sent, where not everybody is sent the current one."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from flwr.app import ArrayRecord

from fedaccord.federation.flower.replies import Arrays, Update


class Withheld:
    """Keeps the model that each client was sent last, and that of those who get no further one.

    first: the model that training begins with, which everybody may have.
    """

    def __init__(self, first: ArrayRecord) -> None:
        self._first = first
        self._sent: dict[str, ArrayRecord] = {}
        self._kept: dict[str, ArrayRecord] = {}

    @property
    def checkpoints(self) -> dict[str, Arrays]:
        """The models of those who get no further one, by client."""
        return {name: to_arrays(record) for name, record in self._kept.items()}

    def choose(self, name: str, current: ArrayRecord) -> ArrayRecord:
        """Return the model that a client is sent: the current one, or the last that it got.

        name: the client's.
        current: the server's model.
        """
        if name in self._kept:
            return self._kept[name]
        self._sent[name] = current
        return current

    def part(self, without: Collection[str]) -> tuple[list[str], list[str]]:
        """Note who gets no further model; return who lost it now, and who is back.

        without: everybody who gets none.
        """
        lost = [name for name in without if name not in self._kept]
        back = [name for name in self._kept if name not in without]
        for name in lost:
            self._kept[name] = self._sent.get(name, self._first)
        for name in back:
            del self._kept[name]
        return lost, back

    def move(self, updates: Mapping[str, Update], model: Arrays) -> dict[str, Update]:
        """Return updates in which models that were made of older ones are as if made of this one.

            model + (what the client made - what it was sent)

        updates: what clients sent, each a model.
        model: the server's.
        """
        moved = {}
        for name, update in updates.items():
            if name in self._kept:
                old = to_arrays(self._kept[name])
                arrays = {
                    key: model[key] + (array - old[key]) if array.dtype.kind == "f" else array
                    for key, array in update.arrays.items()
                }
                update = dataclasses.replace(update, arrays=arrays)
            moved[name] = update
        return moved


def to_arrays(record: ArrayRecord) -> Arrays:
    """Return the arrays of a record by name."""
    return {name: array.numpy() for name, array in record.items()}
