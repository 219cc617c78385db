"""Games from the paper, and small ones, each with its source and its known answers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from fedaccord._checks import as_plain, is_whole, read_fraction
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.catalog import closed_forms as known
from fedaccord.games.catalog import examples
from fedaccord.games.catalog.closed_forms import Answers
from fedaccord.games.linear import LinearGame

# Nearer to 1 than this, exact fractions become too long to compute with.
NEAREST = 1 - Fraction(1, 10**6)
CHOICES = {"model": ("linear", "coverage"), "strategies": ("real", "integer")}


@dataclass(frozen=True)
class Entry:
    """A game of the catalogue.

    name, summary: what it is called and what it is.
    source: where it comes from.
    parameters: what may be chosen, with what is chosen otherwise.
    build: makes the game from the parameters.
    answers: gives the totals that are known, from the same parameters.
    """

    name: str
    summary: str
    source: str
    parameters: Mapping[str, Any]
    build: Callable[..., Game]
    answers: Callable[..., Answers]


def build(name: str, /, **parameters: Any) -> Game:
    """Make a game of the catalogue.

    name: which one; ENTRIES lists them.
    parameters: those of its entry that are to differ from what the entry says.
    """
    entry, chosen = _choose(name, parameters)
    return entry.build(**chosen)


def answers(name: str, /, **parameters: Any) -> Answers:
    """Return the totals that are known of a game of the catalogue, with the same parameters."""
    entry, chosen = _choose(name, parameters)
    return entry.answers(**chosen)


def _choose(name: str, parameters: Mapping[str, Any]) -> tuple[Entry, dict[str, Any]]:
    if name not in ENTRIES:
        near = difflib.get_close_matches(name, ENTRIES, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(ENTRIES)}"
        raise InputError(f'the catalogue has no game "{name}"; {guess}')
    entry = ENTRIES[name]
    for key in parameters:
        if key not in entry.parameters:
            known_keys = ", ".join(entry.parameters) or "none"
            raise InputError(f'{name} has no parameter "{key}"; it has: {known_keys}')
    chosen = {**entry.parameters, **parameters}
    return entry, {key: _read_parameter(name, key, value) for key, value in chosen.items()}


def _read_parameter(name: str, key: str, value: Any) -> Any:
    if key in CHOICES:
        if value not in CHOICES[key]:
            listed = " or ".join(CHOICES[key])
            raise InputError(f"{key} of {name} must be {listed}; got {value!r}")
        return value
    if key == "requirement":
        return _read_requirement(name, value)
    value = as_plain(value)
    if not is_whole(value):
        raise InputError(f"{key} of {name} must be a whole number; got {value!r}")
    least = LEAST.get((name, key), 1)
    if value < least:
        raise InputError(f"{key} of {name} must be {least} at least; got {value}")
    most = MOST_PETALS if name == "flower" else MOST
    if value > most:
        raise InputError(f"{key} of {name} must be {most:,} at most; got {value}")
    if (name, key) == ("flower", "petals"):
        _check_square(value)
    return value


# A linear flower holds b^1.5 numbers, 27 million of them at this b.
MOST_PETALS = 90_000
MOST = 1_000
LEAST = {
    ("flower", "petals"): 4,
    ("sunflower", "petals"): 3,
    ("sunflower-without-core", "petals"): 3,
    ("flower-and-bud", "petals"): 3,
    ("common-core", "agents"): 2,
}


def _check_square(petals: int) -> None:
    root = math.isqrt(petals)
    if root * root != petals:
        raise InputError(
            "petals of flower must be a square, as the petals come in as many groups as a group "
            f"has petals; got {petals}, the nearest are {root**2} and {(root + 1) ** 2}"
        )


def _read_requirement(name: str, value: Any) -> Fraction:
    try:
        exact = read_fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f'requirement of {name} must be a number or a fraction such as "7/8"; got {value!r}'
        ) from None
    if not Fraction(1, 2) < exact <= 1:
        raise InputError(
            f"requirement of {name} must be above 1/2, which guessing reaches, and at most 1; "
            f"got {value}"
        )
    if NEAREST < exact < 1:
        raise InputError(f"requirement of {name} must be 1, or {NEAREST} at most; got {value}")
    return exact


# Entries.


def _flower_answers(model: str, petals: int, strategies: str) -> Answers:
    totals = known.linear_flower if model == "linear" else known.coverage_flower
    return totals(petals, strategies)


def _sunflower_entry(name: str, summary: str, cores: tuple[str, ...], own: int) -> Entry:
    def make(model: str, petals: int, shared: int, own: int) -> Game:
        return examples.sunflower(model, petals, shared, own, cores)

    def totals(model: str, petals: int, shared: int, own: int) -> Answers:
        form = known.linear_sunflower if model == "linear" else known.coverage_sunflower
        return form(petals, shared, own, len(cores))

    parameters = {"model": "linear", "petals": 4, "shared": 2, "own": own}
    source = "examples in the notebook released with the paper, made larger by parameters"
    return Entry(name, summary, source, MappingProxyType(parameters), make, totals)


# Small linear games, each of which shows one thing.


def _matrix_entry(
    name: str, summary: str, benefits: Any, requirements: Sequence[float], totals: Answers
) -> Entry:
    def make() -> Game:
        return LinearGame(benefits, requirements)

    return Entry(name, summary, totals.source, MappingProxyType({}), make, lambda: totals)


def _cyclic_answers(strategies: str) -> Answers:
    # Each agent gains as much from its predecessor as from itself: envy-free is all alike.
    source = "beyond the paper: the cycle of Theorem 3 with linear utilities"
    if strategies == "integer":
        return Answers(2, None, 3, stable_exists=False, source=source)
    return Answers(1.5, 1.5, 1.5, source=source)


def _star_answers(leaves: int) -> Answers:
    """Hub only: 2. Stable with two leaves or more: the leaves 1 each, the hub idle.

    Leaves are alike and so give alike to be free of envy, and the hub, which gains more from the
    leaves than a leaf from the hub, at most as much: 2/3 each.
    """
    source = "beyond the paper: the least total of the closed envy-free relaxation is only 2"
    if leaves == 1:
        return Answers(4 / 3, 4 / 3, 4 / 3, source=source)
    return Answers(2.0, float(leaves), 2 * (leaves + 1) / 3, source=source)


def _unit(row: int, column: int) -> Any:
    matrix = np.zeros((5, 5))
    matrix[row, column] = 1
    return matrix


_SLOPE = math.sqrt(0.5)
_OVERLAP = [[1, 0.7, 0.7], [0.7, 1, 0.2], [0.7, 0.2, 1]]


_SMALL = [
    _matrix_entry(
        "continuum",
        "equilibria on a segment with different totals; the best is optimal",
        [[1, 0, _SLOPE], [0, 1, _SLOPE], [_SLOPE, _SLOPE, 1]],
        [1, 1, math.sqrt(2)],
        Answers(
            math.sqrt(2), math.sqrt(2), math.sqrt(2), source="beyond Theorem 5: unequal needs"
        ),
    ),
    _matrix_entry(
        "overlap",
        "one agent overlaps with two others, which give all the samples in equilibrium",
        _OVERLAP,
        [1, 1, 1],
        Answers(10 / 7, 5 / 3, source="an instance of Theorem 5"),
    ),
    _matrix_entry(
        "unequal",
        "the same overlap with unequal requirements: all give, but the plan is not optimal",
        _OVERLAP,
        [2.4, 1.9, 1.9],
        Answers(19 / 7, 3.0, source="Theorem 5 and its corollary need equal requirements"),
    ),
    _matrix_entry(
        "dominant-diagonal",
        "diagonally dominant without a unit diagonal: stability costs 1.8 times the optimum",
        [[1, 0.45, 0.45], [0.45, 0.5, 0], [0.45, 0, 0.5]],
        [0.5, 0.5, 0.5],
        Answers(10 / 9, 2.0, source="the remark after Corollary 1 needs a unit diagonal"),
    ),
    _matrix_entry(
        "indefinite",
        "symmetric, not positive semidefinite: equilibria of totals 1 and 2",
        [[1, 1, 0], [1, 1, 1], [0, 1, 1]],
        [1, 1, 1],
        Answers(1.0, 1.0, 1.5, source="beyond Theorem 5: benefits that are not PSD"),
    ),
    Entry(
        "cyclic",
        "each agent gains from itself and its predecessor; best responses cycle",
        "beyond the paper: the cycle of Theorem 3 with linear utilities",
        MappingProxyType({"strategies": "real"}),
        examples.cyclic,
        _cyclic_answers,
    ),
    _matrix_entry(
        "twins",
        "two agents with the same data: any split is stable, only the even one is envy-free",
        [[1, 1], [1, 1]],
        [1, 1],
        Answers(1.0, 1.0, 1.0, source="Theorem 6 needs W_ij < W_ii"),
    ),
    Entry(
        "envious-equilibrium",
        "random discovery whose only equilibrium is not envy-free",
        "Theorem 6 needs W_ij < W_ii, which random discovery does not ensure",
        MappingProxyType({}),
        examples.envious,
        lambda: Answers(5 / 6, 25 / 26, 25 / 28, source="beyond Theorem 6"),
    ),
    Entry(
        "star",
        "a hub that every leaf shares half with",
        "a small flower, beyond the paper",
        MappingProxyType({"leaves": 4}),
        examples.star,
        _star_answers,
    ),
    _matrix_entry(
        "not-attained",
        "envy-free allocations come as near to 3 as one likes and never reach it",
        np.eye(5) + 0.5 * (_unit(0, 1) + _unit(2, 0) + _unit(3, 0) + _unit(4, 0)),
        [1, 0.5, 1, 1, 1],
        Answers(
            2.5, 3.125, 3.0, envy_free_attained=False,
            source="beyond the paper: the envy-free set of Section 2.1 is not closed",
        ),
    ),
]  # fmt: skip


_REAL = MappingProxyType({"strategies": "real"})
_LARGE = [
    Entry(
        "flower",
        "a core agent overlaps with all others, the petals; stable costs about sqrt(k)/2 times "
        "the optimum",
        "Theorem 4, Section 4 and Appendix E",
        MappingProxyType({"model": "linear", "petals": 16, "strategies": "real"}),
        examples.flower,
        _flower_answers,
    ),
    Entry(
        "two-agents",
        "two agents uniform on the same two points: the stable set is not convex",
        "Theorem 7 and Appendix H.1",
        _REAL,
        examples.two_agents,
        known.two_agents,
    ),
    Entry(
        "k4",
        "an agent per edge of the complete graph K4: the envy-free set is not convex",
        "Theorem 8 and Appendix H.2",
        _REAL,
        examples.complete_graph,
        known.complete_graph,
    ),
    Entry(
        "pac-cycle",
        "three agents whose points tell the next one's labels: no stable equilibrium",
        "Theorem 3, Section 3.3; with d above 1 Appendix D",
        MappingProxyType({"d": 1, "requirement": "1", "strategies": "integer"}),
        examples.pac_cycle,
        known.pac_cycle,
    ),
    _sunflower_entry(
        "sunflower", "petals in a ring, whose shared points a core owns", ("core",), 4
    ),
    _sunflower_entry(
        "sunflower-without-core", "petals in a ring that share points with their neighbours", (), 4
    ),
    _sunflower_entry("flower-and-bud", "petals in a ring around two cores", ("core", "bud"), 2),
    Entry(
        "common-core",
        "agents that share some points and each own equally many others: a sunflower of sets",
        "a sunflower as combinatorics defines it, beyond the paper",
        MappingProxyType({"model": "linear", "agents": 5, "core": 4, "own": 4}),
        examples.common_core,
        known.common_core,
    ),
]


ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _LARGE + _SMALL}
