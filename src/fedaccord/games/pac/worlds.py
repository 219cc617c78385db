"""Worlds: the finitely many things that nature may have chosen, from which agents learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from fedaccord._checks import Indices, read_fraction, simplest_fraction, write_fraction
from fedaccord.errors import InputError

Item: TypeAlias = int | str
Draw: TypeAlias = tuple[Item, Item, Fraction]

# Probabilities that sum to one only this closely were rounded when written; they are rescaled.
SUM_TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True)
class World:
    """One thing that nature may have chosen: how every agent's labelled points are distributed.

    prior: how likely this world is.
    samples: for each agent the draws (point, label, probability) that it may make; as triples or
        as a mapping from (point, label). Points and labels are whole numbers or strings,
        probabilities numbers or strings such as "1/8".
    """

    prior: Fraction
    samples: tuple[tuple[Draw, ...], ...]

    def __init__(self, prior: Any, samples: Sequence[Any]) -> None:
        read = _read_world({"prior": prior, "samples": samples}, "a world", _name_by_place)
        object.__setattr__(self, "prior", read[0])
        object.__setattr__(self, "samples", read[1])

    def restrict(self, keep: Sequence[int] | Indices) -> World:
        """Return the same world with some of the agents only."""
        return World(self.prior, [self.samples[int(i)] for i in keep])

    def to_dict(self) -> dict[str, Any]:
        """Return the world as an entry of GAME.json."""
        return {
            "prior": _format_fraction(self.prior),
            "samples": [
                [[x, y, _format_fraction(p)] for x, y, p in draws] for draws in self.samples
            ],
        }


def read_worlds(worlds: Any, size: int, name_of: Callable[[int], str]) -> tuple[World, ...]:
    """Read worlds given as World objects or as entries of GAME.json, and check them together."""
    if isinstance(worlds, (str, Mapping)) or not isinstance(worlds, Sequence) or not worlds:
        raise InputError(
            'worlds must be a list of at least one world, each {"prior": p, "samples": '
            "[[[point, label, p], ...] per agent]}"
        )
    result = []
    for number, entry in enumerate(worlds):
        where = f"world {number}"
        if not isinstance(entry, World):
            prior, samples = _read_world(entry, where, name_of)
            entry = World(prior, samples)
        if len(entry.samples) != size:
            raise InputError(
                f"{where} must give samples of {size} agents, one list per requirement; got "
                f"{len(entry.samples)}"
            )
        result.append(entry)
    total = sum((world.prior for world in result), Fraction(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"the priors of the worlds sum to {float(total):.9g}, not 1: divide each by that sum, "
            "or correct them"
        )
    if total == 1:
        return tuple(result)
    return tuple(World(world.prior / total, world.samples) for world in result)


def _name_by_place(agent: int) -> str:
    return f"agent {agent}"


def _format_fraction(value: Fraction) -> int | str:
    return int(value) if value.denominator == 1 else write_fraction(value)


def _read_world(
    entry: Any, where: str, name_of: Callable[[int], str]
) -> tuple[Fraction, tuple[tuple[Draw, ...], ...]]:
    if not isinstance(entry, Mapping) or not {"prior", "samples"} <= set(entry):
        raise InputError(f'{where} must be an object with a "prior" and "samples"')
    prior = _read_probability(entry["prior"], f"the prior of {where}")
    samples = entry["samples"]
    if isinstance(samples, (str, Mapping)) or not isinstance(samples, Sequence):
        raise InputError(f"the samples of {where} must be a list with one list per agent")
    return prior, tuple(
        _read_draws(draws, f"{name_of(agent)} in {where}") for agent, draws in enumerate(samples)
    )


def _read_draws(draws: Any, where: str) -> tuple[Draw, ...]:
    """Read one agent's distribution; equal draws are added, impossible ones dropped."""
    if isinstance(draws, Mapping):
        draws = [[*key, p] if isinstance(key, tuple) else [key] for key, p in draws.items()]
    if isinstance(draws, str) or not isinstance(draws, Sequence) or not draws:
        raise InputError(f"the samples of {where} must be a list of [point, label, probability]")
    chances: dict[tuple[Item, Item], Fraction] = {}
    for draw in draws:
        if isinstance(draw, str) or not isinstance(draw, Sequence) or len(draw) != 3:
            raise InputError(
                f"every sample of {where} must be [point, label, probability]; got {draw!r}"
            )
        key = _read_item(draw[0], "point", where), _read_item(draw[1], "label", where)
        chance = _read_probability(draw[2], f"the probability of {draw[0]!r} for {where}")
        chances[key] = chances.get(key, Fraction(0)) + chance
    total = sum(chances.values(), Fraction(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"the probabilities of {where} sum to {float(total):.9g}, not 1: divide them by that "
            "sum, or correct them"
        )
    return tuple((x, y, p / total) for (x, y), p in chances.items() if p)


def _read_item(value: Any, what: str, where: str) -> Item:
    if isinstance(value, (bool, np.bool_, np.integer)):
        return int(value)
    if not isinstance(value, (int, str)):
        raise InputError(f"a {what} of {where} is {value!r}: use a whole number or a string for it")
    return value


def _read_probability(value: Any, what: str) -> Fraction:
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, str):
            exact = read_fraction(value)
        else:
            exact = simplest_fraction(value) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(
            f'{what} must be a number or a string such as "1/8"; got {value!r}'
        ) from None
    if not 0 <= exact <= 1:
        raise InputError(f"{what} is {value!r}: a probability lies between 0 and 1")
    return exact


def read_labels(worlds: Sequence[World], name_of: Callable[[int], str]) -> list[dict[Item, Item]]:
    """Return each world's labelling of the points it can produce, or say where labels are noisy."""
    result = []
    for number, world in enumerate(worlds):
        labels: dict[Item, Item] = {}
        for agent, draws in enumerate(world.samples):
            for x, y, _ in draws:
                if labels.setdefault(x, y) != y:
                    raise InputError(
                        f"in world {number} point {x!r} has the labels {labels[x]!r} and {y!r} "
                        f"(a sample of {name_of(agent)}); the worst consistent classifier needs "
                        "one label per point in each world: correct it, or use the classifier "
                        '"bayes"'
                    )
        result.append(labels)
    return result


def merge_worlds(worlds: Sequence[World]) -> list[World]:
    """Drop impossible worlds and merge those that no agent's samples can tell apart."""

    def looks(world: World) -> Any:
        return tuple(tuple(sorted(map(_sortable, draws))) for draws in world.samples)

    possible = sorted((w for w in worlds if w.prior), key=looks)
    groups = (list(group) for _, group in groupby(possible, key=looks))
    return [World(sum(w.prior for w in group), group[0].samples) for group in groups]


def _sortable(draw: Draw) -> tuple[str, str, str, str, Fraction]:
    x, y, p = draw
    return type(x).__name__, str(x), type(y).__name__, str(y), p
