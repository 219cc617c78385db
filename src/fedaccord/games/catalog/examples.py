"""How the games of the catalogue are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.games.pac.exact import PacGame
from fedaccord.games.pac.worlds import World

# The cycle of Theorem 3 has 8^d worlds; above this d it is given by its utilities instead.
MOST_CYCLE_BITS = 3

# The flower: one agent whose data all others share a little of.


def flower(model: str, petals: int, strategies: str) -> Game:
    """Make the flower of Theorem 4: one core agent and petals in sqrt(b) groups of sqrt(b)."""
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
    sizes = np.array([counts[list(columns)].sum() for columns in sets], dtype=np.float64)
    rows = np.repeat(np.arange(len(sets)), [len(columns) for columns in sets])
    matrix = sparse.csr_array(
        (1 / sizes[rows], (rows, np.concatenate(sets))), shape=(len(sets), len(counts))
    )
    if model == "coverage":
        return CoverageGame(matrix, 0.5 + 0.5 / sizes, copies=counts, agents=names)
    plain = matrix[:, np.repeat(np.arange(len(counts)), counts)]
    return DiscoveryGame(plain, 1 / sizes, agents=names)


def sunflower(
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


def common_core(model: str, agents: int, core: int, own: int) -> Game:
    """Make agents that all own the same core of points and some of their own."""
    sets = [[0, 1 + i] for i in range(agents)]
    return _sets(model, sets, [f"agent {i}" for i in range(agents)], [core] + [own] * agents)


# Two agents and the complete graph on four vertices.


def two_agents(strategies: str) -> CoverageGame:
    """Make the two agents of Theorem 7."""
    return CoverageGame([[0.5, 0.5], [0.5, 0.5]], [0.75, 0.75], strategies=strategies)


def complete_graph(strategies: str) -> CoverageGame:
    """Make K4 of Theorem 8: an agent per edge, uniform on its ends and its middle."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    matrix = np.zeros((6, 10))
    for edge, ends in enumerate(edges):
        matrix[edge, [*ends, 4 + edge]] = 1 / 3
    names = [f"edge {i}" for i in range(1, 7)]
    return CoverageGame(matrix, [0.6] * 6, agents=names, strategies=strategies)


# The cycle without a stable equilibrium.


def pac_cycle(d: int, requirement: Fraction, strategies: str) -> Game:
    """Make the cycle of Theorem 3; with d = 1 everybody has one sample, as in Section 3.3."""
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


# Small linear games.


def cyclic(strategies: str) -> LinearGame:
    """Make three agents that gain from themselves and their predecessor."""
    return LinearGame([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [1, 1, 1], strategies=strategies)


def envious() -> DiscoveryGame:
    """Make two agents: the samples of one serve the other best."""
    return DiscoveryGame([[0.6, 0.4], [1.0, 0.0]], [0.5, 0.2])


def star(leaves: int) -> LinearGame:
    """Make a hub that every leaf shares half with."""
    benefits = np.eye(leaves + 1)
    benefits[0, 1:] = benefits[1:, 0] = 0.5
    names = ["hub", *(f"leaf {i}" for i in range(1, leaves + 1))]
    return LinearGame(benefits, np.ones(leaves + 1), agents=names)
