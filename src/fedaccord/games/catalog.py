"""Games from the paper, and small ones beside it, each with its source and its known answers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._arrays import Vector, read_fraction
from fedaccord.errors import InputError
from fedaccord.games import known
from fedaccord.games.base import Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.function import FunctionGame
from fedaccord.games.known import Answers
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.games.pac import PacGame
from fedaccord.games.worlds import World

# The cycle of Theorem 3 has 8^d worlds; above this d it is given by its utilities instead.
MOST_CYCLE_BITS = 3

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
    entry, chosen = _chosen(name, parameters)
    return entry.build(**chosen)


def answers(name: str, /, **parameters: Any) -> Answers:
    """Give the totals that are known of a game of the catalogue, with the same parameters."""
    entry, chosen = _chosen(name, parameters)
    return entry.answers(**chosen)


def _chosen(name: str, parameters: Mapping[str, Any]) -> tuple[Entry, dict[str, Any]]:
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
    return entry, {key: _checked(name, key, value) for key, value in chosen.items()}


def _checked(name: str, key: str, value: Any) -> Any:
    if key in CHOICES:
        if value not in CHOICES[key]:
            listed = " or ".join(CHOICES[key])
            raise InputError(f"{key} of {name} must be {listed}; got {value!r}")
        return value
    if key == "requirement":
        return _requirement(name, value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{key} of {name} must be a whole number; got {value!r}")
    least = LEAST.get((name, key), 1)
    if value < least:
        raise InputError(f"{key} of {name} must be {least} at least; got {value}")
    if (name, key) == ("flower", "petals"):
        _check_square(int(value))
    return int(value)


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


def _requirement(name: str, value: Any) -> Fraction:
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
    return exact


# The flower: one agent whose data all others share a little of.


def _flower(model: str, petals: int, strategies: str) -> Game:
    return (_linear_flower if model == "linear" else _coverage_flower)(petals, strategies)


def _flower_names(petals: int) -> list[str]:
    return ["core", *(f"petal {i}" for i in range(1, petals + 1))]


def _linear_flower(petals: int, strategies: str) -> LinearGame:
    """Sparse: a petal gains from the core, its group and itself, sqrt(b) + 1 of b + 1 agents."""
    root = math.isqrt(petals)
    block = np.full((root, root), 1 / root)
    np.fill_diagonal(block, 1.0)
    cross = sparse.csr_array(np.full((1, petals), 1 / root))
    groups = sparse.csr_array(sparse.kron(sparse.eye_array(root), block))
    top = sparse.hstack([sparse.csr_array([[1.0]]), cross])
    return LinearGame(
        sparse.vstack([top, sparse.hstack([cross.T, groups])]),
        np.ones(petals + 1),
        agents=_flower_names(petals),
        strategies=strategies,
    )


def _coverage_flower(petals: int, strategies: str) -> CoverageGame:
    """Points that the same agents own are alike and stand in one column: 3 b entries, not b^2."""
    root = math.isqrt(petals)
    everyone = np.arange(petals)
    core = np.zeros(root, dtype=int), np.arange(root)
    shared = everyone + 1, everyone // root
    own = everyone + 1, root + everyone
    rows, columns = (np.concatenate(parts) for parts in zip(core, shared, own, strict=True))
    rates = np.full(len(rows), 1 / petals)
    return CoverageGame(
        sparse.csr_array((rates, (rows, columns)), shape=(petals + 1, root + petals)),
        np.full(petals + 1, 0.5 + 0.5 / petals),
        copies=[root] * root + [petals - root] * petals,
        agents=_flower_names(petals),
        strategies=strategies,
    )


def _flower_answers(model: str, petals: int, strategies: str) -> Answers:
    totals = known.linear_flower if model == "linear" else known.coverage_flower
    return totals(petals, strategies)


# Set systems: each agent is uniform on a set of points.


def _sets(
    model: str, sets: Sequence[Sequence[int]], names: Sequence[str], copies: Sequence[int]
) -> Game:
    """Make the game in which every agent wants one of its points seen, in expectation.

    Discovery: sum over j of |X_i and X_j| theta_j / (|X_i||X_j|) >= 1/|X_i|. Coverage: an
    accuracy of 1/2 + 1/(2 |X_i|).

    sets: the columns of each agent; copies: how many points a column stands for.
    """
    counts = np.asarray(copies)
    matrix = np.zeros((len(sets), len(counts)))
    for agent, columns in enumerate(sets):
        matrix[agent, list(columns)] = 1 / counts[list(columns)].sum()
    sizes = 1 / matrix.max(axis=1)
    if model == "coverage":
        return CoverageGame(matrix, 0.5 + 0.5 / sizes, copies=counts, agents=names)
    plain = np.repeat(matrix, counts, axis=1)
    return DiscoveryGame(plain, 1 / sizes, agents=names)


def _sunflower(
    model: str, petals: int, shared: int, own: int, cores: Sequence[str] = ("core",)
) -> Game:
    """Petals in a ring: neighbours share points, which a core agent (or none) owns as well."""
    rings = max(len(cores), 1)
    sets: list[list[int]] = [[r * petals + i for i in range(petals)] for r in range(len(cores))]
    for i in range(petals):
        both = [r * petals + j for r in range(rings) for j in (i, (i + 1) % petals)]
        sets.append([*both, rings * petals + i])
    names = [*cores, *(f"petal {i}" for i in range(1, petals + 1))]
    return _sets(model, sets, names, [shared] * (rings * petals) + [own] * petals)


def _common_core(model: str, agents: int, core: int, own: int) -> Game:
    sets = [[0, 1 + i] for i in range(agents)]
    return _sets(model, sets, [f"agent {i}" for i in range(agents)], [core] + [own] * agents)


def _sunflower_entry(name: str, summary: str, cores: tuple[str, ...], own: int) -> Entry:
    def make(model: str, petals: int, shared: int, own: int) -> Game:
        return _sunflower(model, petals, shared, own, cores)

    def totals(model: str, petals: int, shared: int, own: int) -> Answers:
        form = known.linear_sunflower if model == "linear" else known.coverage_sunflower
        return form(petals, shared, own, len(cores))

    parameters = {"model": "linear", "petals": 4, "shared": 2, "own": own}
    source = "examples in the notebook released with the paper, made larger by parameters"
    return Entry(name, summary, source, MappingProxyType(parameters), make, totals)


# Two agents and the complete graph on four vertices.


def _two_agents(strategies: str) -> CoverageGame:
    return CoverageGame([[0.5, 0.5], [0.5, 0.5]], [0.75, 0.75], strategies=strategies)


def _complete_graph(strategies: str) -> CoverageGame:
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    matrix = np.zeros((6, 10))
    for edge, ends in enumerate(edges):
        matrix[edge, [*ends, 4 + edge]] = 1 / 3
    names = [f"edge {i}" for i in range(1, 7)]
    return CoverageGame(matrix, [0.6] * 6, agents=names, strategies=strategies)


# The cycle without a stable equilibrium.


def _pac_cycle(d: int, requirement: Fraction, strategies: str) -> Game:
    if d > 1 and requirement == 1:
        raise InputError(
            "requirement of pac-cycle must be below 1 for d above 1, as no number of samples is "
            'sure to show all points; give one such as "3/4"'
        )
    frame: dict[str, Any] = {"requirements": [float(requirement)] * 3, "strategies": strategies}
    if d == 1:
        frame["limits"] = [1, 1, 1]
    if d <= MOST_CYCLE_BITS:
        return PacGame(_cycle_worlds(d), **frame)
    return FunctionGame(_CycleUtilities(d), exact=_CycleUtilities(d).exact, **frame)


def _cycle_worlds(d: int) -> list[World]:
    """Nature draws z_0, z_1, z_2 in {0, 1}^d; bit j of z_i moves point j of i, and labels i+1's."""
    worlds = []
    for bits in product((0, 1), repeat=3 * d):
        z = [bits[i * d : (i + 1) * d] for i in range(3)]
        draws = [
            [((2 * i + z[i][j]) * d + j, z[i - 1][j], Fraction(1, d)) for j in range(d)]
            for i in range(3)
        ]
        worlds.append(World(Fraction(1, 8**d), draws))
    return worlds


class _CycleUtilities:
    """u_i = 1 - 1/2 p_i p_{i-1}, p_i = (1 - 1/d)^floor(theta_i) (1 - frac(theta_i)/d)."""

    def __init__(self, d: int) -> None:
        self.d = d

    def __call__(self, contributions: Vector) -> Vector:
        whole = np.floor(contributions)
        missed = (1 - 1 / self.d) ** whole * (1 - (contributions - whole) / self.d)
        return 1 - missed * np.roll(missed, 1) / 2

    def exact(self, contributions: list[Fraction]) -> list[Fraction]:
        missed = []
        for amount in contributions:
            whole = math.floor(amount)
            missed.append((1 - Fraction(1, self.d)) ** whole * (1 - (amount - whole) / self.d))
        return [1 - missed[i] * missed[i - 1] / 2 for i in range(3)]


# Small linear games, each of which shows one thing.


def _matrix_entry(
    name: str, summary: str, benefits: Any, requirements: Sequence[float], totals: Answers
) -> Entry:
    def make() -> Game:
        return LinearGame(benefits, requirements)

    return Entry(name, summary, totals.source, MappingProxyType({}), make, lambda: totals)


def _cyclic(strategies: str) -> LinearGame:
    return LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1], strategies=strategies)


def _cyclic_answers(strategies: str) -> Answers:
    # Each agent gains as much from its predecessor as from itself: envy-free is all alike.
    source = "beyond the paper: the cycle of Theorem 3 with linear utilities"
    if strategies == "integer":
        return Answers(2, None, 3, stable_exists=False, source=source)
    return Answers(1.5, 1.5, 1.5, source=source)


def _envious() -> DiscoveryGame:
    return DiscoveryGame([[0.6, 0.4], [1.0, 0.0]], [0.5, 0.2])


def _star(leaves: int) -> LinearGame:
    benefits = np.eye(leaves + 1)
    benefits[0, 1:] = benefits[1:, 0] = 0.5
    names = ["hub", *(f"leaf {i}" for i in range(1, leaves + 1))]
    return LinearGame(benefits, np.ones(leaves + 1), agents=names)


def _star_answers(leaves: int) -> Answers:
    """Hub only: 2. Stable with two leaves or more: the leaves 1 each, the hub idle.

    Leaves are alike and so give alike to be free of envy, and the hub, which gains more from the
    leaves than a leaf from the hub, at most as much: 2/3 each.
    """
    source = "beyond the paper: the least total of the closed envy-free relaxation is only 2"
    if leaves == 1:
        return Answers(4 / 3, 4 / 3, 4 / 3, source=source)
    return Answers(2.0, float(leaves), 2 * (leaves + 1) / 3, source=source)


_SLOPE = math.sqrt(0.5)
_OVERLAP = [[1, 0.7, 0.7], [0.7, 1, 0.2], [0.7, 0.2, 1]]


def _small_entries() -> list[Entry]:
    return [
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
            "one agent overlaps with two others, who do all the work in equilibrium",
            _OVERLAP,
            [1, 1, 1],
            Answers(10 / 7, 5 / 3, source="an instance of Theorem 5"),
        ),
        _matrix_entry(
            "unequal",
            "the same overlap with unequal requirements: all give, and yet it is not optimal",
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
            _cyclic,
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
            _envious,
            lambda: Answers(5 / 6, 25 / 26, 25 / 28, source="beyond Theorem 6"),
        ),
        Entry(
            "star",
            "a hub that every leaf shares half with",
            "a small flower, beyond the paper",
            MappingProxyType({"leaves": 4}),
            _star,
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


def _unit(row: int, column: int) -> Any:
    matrix = np.zeros((5, 5))
    matrix[row, column] = 1
    return matrix


def _large_entries() -> list[Entry]:
    real = MappingProxyType({"strategies": "real"})
    return [
        Entry(
            "flower",
            "a core agent overlaps with all others, the petals; stable costs about sqrt(k)/2 times "
            "the optimum",
            "Theorem 4, Section 4 and Appendix E",
            MappingProxyType({"model": "linear", "petals": 16, "strategies": "real"}),
            _flower,
            _flower_answers,
        ),
        Entry(
            "two-agents",
            "two agents uniform on the same two points: the stable set is not convex",
            "Theorem 7 and Appendix H.1",
            real,
            _two_agents,
            known.two_agents,
        ),
        Entry(
            "k4",
            "an agent per edge of the complete graph K4: the envy-free set is not convex",
            "Theorem 8 and Appendix H.2",
            real,
            _complete_graph,
            known.complete_graph,
        ),
        Entry(
            "pac-cycle",
            "three agents whose points tell the next one's labels: no stable equilibrium",
            "Theorem 3, Section 3.3; with d above 1 Appendix D",
            MappingProxyType({"d": 1, "requirement": "1", "strategies": "integer"}),
            _pac_cycle,
            known.pac_cycle,
        ),
        _sunflower_entry(
            "sunflower", "petals in a ring, whose shared points a core owns", ("core",), 4
        ),
        _sunflower_entry(
            "sunflower-without-core", "petals in a ring, who share points with neighbours", (), 4
        ),
        _sunflower_entry("flower-and-bud", "petals in a ring around two cores", ("core", "bud"), 2),
        Entry(
            "common-core",
            "agents who share the same points and own as many others each: a sunflower of sets",
            "a sunflower as combinatorics defines it, beyond the paper",
            MappingProxyType({"model": "linear", "agents": 5, "core": 4, "own": 4}),
            _common_core,
            known.common_core,
        ),
    ]


ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _large_entries() + _small_entries()}
