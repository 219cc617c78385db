"""The models that clients were sent, where not everybody is sent the current one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from fedaccord.federation.remote.replies import Arrays, Update

Model = TypeVar("Model")


class Withheld(Generic[Model]):
    """Keeps the model that each client was sent last, and that of those who get no further one.

    first: the model that training begins with, which everybody may have, in the form in which
        models are sent.
    to_arrays: returns the arrays of a model in that form.
    """

    def __init__(self, first: Model, to_arrays: Callable[[Model], Arrays]) -> None:
        self._first = first
        self._to_arrays = to_arrays
        self._sent: dict[str, Model] = {}
        self._kept: dict[str, Model] = {}

    @property
    def checkpoints(self) -> dict[str, Arrays]:
        """The models of those who get no further one, by client."""
        return {name: self._to_arrays(record) for name, record in self._kept.items()}

    def choose(self, name: str, current: Model) -> Model:
        """Return the model that a client is sent: the current one, or the last that it got."""
        if name in self._kept:
            return self._kept[name]
        self._sent[name] = current
        return current

    def part(self, without: Collection[str]) -> tuple[list[str], list[str]]:
        """Note who gets no further model; return who lost it now, and who is back."""
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
        """
        moved = {}
        for name, update in updates.items():
            if name in self._kept:
                old = self._to_arrays(self._kept[name])
                arrays = {
                    key: model[key] + (array - old[key]) if array.dtype.kind == "f" else array
                    for key, array in update.arrays.items()
                }
                update = dataclasses.replace(update, arrays=arrays)
            moved[name] = update
        return moved
