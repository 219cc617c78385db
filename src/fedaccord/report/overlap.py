"""Who shares data with whom, as numbers: what the pictures of a game's overlap show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Matrix, Vector
from fedaccord.errors import ExactnessError
from fedaccord.games.base import Game

# Up to this many agents are named, in up to this many groups of shared points.
NAMED = 30
GROUPS = 24
# Up to this many agents the whole matrix is made, and drawn in at most this many cells a side.
MATRIX = 1_500
CELLS = 50
# Of more agents, these many are asked whom they share with, until so many were named.
ASKED = 1_000
ANSWERS = 5_000_000
# Where fewer than this part of all pairs share anything, ties are followed; else the strengths.
SPARSE = 0.3

SHARED = "part of the row's points that the column has too"
WORTH = "a sample of the column's, in samples of the row's own"
ADDS = "what the first sample of the column adds to the row's accuracy"


@dataclass(frozen=True, eq=False)
class SharedPoints:
    """Groups of points that the same agents have.

    masses: for each agent and group how likely the agent's sample is one of the group.
    sizes: how many points are in each group.
    own: how likely each agent's sample is a point that nobody else has.
    """

    masses: Matrix
    sizes: Indices
    own: Vector


@dataclass(frozen=True, eq=False)
class Pairs:
    """A number for each pair of agents.

    values: a row for each agent, in order.
    what: what the numbers are.
    """

    values: Matrix
    what: str


@dataclass(frozen=True, eq=False)
class Blocks:
    """The numbers of pairs of many agents, in an order that puts those who share side by side.

    order: the agents.
    values: the mean over the pairs of each block of neighbours, an agent with itself left out.
    others: with how many others each agent shares, by number of agent.
    what: what the numbers are.
    """

    order: Indices
    values: Matrix
    others: Indices
    what: str


@dataclass(frozen=True, eq=False)
class Others:
    """With how many others some agents share.

    agents: who was asked.
    counts: with how many others each of them shares.
    """

    agents: Indices
    counts: Indices


Overlap: TypeAlias = SharedPoints | Pairs | Blocks | Others


def find_overlap(game: Game) -> Overlap | None:
    """Return what can be shown of who shares data with whom; None where a game does not tell."""
    if game.size == 1:
        return None
    distributions = _weights(game)
    if distributions is None and not hasattr(game, "benefits_among"):
        return _first_samples(game)
    if game.size > MATRIX:
        return _others(game)
    if distributions is not None and game.size <= NAMED:
        groups = _shared_points(distributions, getattr(game, "copies", None))
        if len(groups.sizes) <= GROUPS:
            return groups
    values, what = _pairs(game, distributions)
    return Pairs(values, what) if game.size <= NAMED else _blocks(values, what)


def explain_no_overlap(game: Game) -> str:
    """Say why there is no picture of a game's overlap."""
    if game.size == 1:
        return "There is one agent, and nobody to share data with."
    if game.model == "pac":
        return (
            "Who learns from whose samples is drawn for up to "
            f"{NAMED} agents; this game has {game.size:,}."
        )
    return (
        "This game is a function of the contributions, which does not tell whose data overlap: "
        "there is no picture of that."
    )


def _weights(game: Any) -> Any:
    """Return the distributions over points, of coverage games times the copies of each point."""
    return getattr(game, "weights", getattr(game, "distributions", None))


def _first_samples(game: Game) -> Pairs | None:
    if game.model != "pac" or game.size > NAMED:
        return None
    try:
        return Pairs(game.jacobian(np.zeros(game.size)), ADDS)
    except ExactnessError:
        return None


def _shared_points(weights: Any, copies: Vector | None) -> SharedPoints:
    """Put points that the same agents have together; each set of agents is a binary number."""
    agents, points = weights.shape
    entries = weights.tocoo()
    owners = np.bincount(entries.col, weights=2.0**entries.row, minlength=points)
    held, sets = np.unique(owners, return_inverse=True)
    masses = np.zeros((agents, len(held)))
    np.add.at(masses, (entries.row, sets[entries.col]), entries.data)
    shared = np.asarray((masses > 0).sum(axis=0) > 1)
    own = masses[:, ~shared].sum(axis=1)
    sizes = np.bincount(sets, weights=copies).astype(np.intp)
    return SharedPoints(masses[:, shared], sizes[shared], own)


def _pairs(game: Any, weights: Any) -> tuple[Matrix, str]:
    """Return what each shares with each other, or what a sample of one is worth to another."""
    if weights is None:
        everyone = np.arange(game.size)
        benefits = game.benefits_among(everyone, everyone)
        return benefits / game.own_benefits[:, np.newaxis], WORTH
    has = weights.copy()
    has.data = np.ones_like(has.data)
    return np.asarray((weights @ has.T).toarray()), SHARED


def _blocks(values: Matrix, what: str) -> Blocks:
    ties = np.array(values)
    np.fill_diagonal(ties, 0.0)
    order = _side_by_side((ties + ties.T) / 2)
    ends = np.linspace(0, len(order), min(CELLS, len(order)) + 1).astype(np.intp)
    laid = ties[np.ix_(order, order)]
    sums = np.add.reduceat(np.add.reduceat(laid, ends[:-1], axis=0), ends[:-1], axis=1)
    sizes = np.diff(ends)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    others = np.count_nonzero(ties, axis=1)
    return Blocks(order, sums / np.maximum(pairs, 1), others, what)


def _side_by_side(ties: Matrix) -> Indices:
    """Order agents so that those with strong ties come close to each other."""
    if np.count_nonzero(ties) < SPARSE * ties.size:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        return np.asarray(reverse_cuthill_mckee(csr_array(ties), symmetric_mode=True), np.intp)
    from scipy.linalg import eigh

    # Fiedler's vector: of all ways to lay the agents along a line, that with the shortest ties.
    laplacian = np.diag(ties.sum(axis=1)) - ties
    vector = eigh(laplacian, subset_by_index=(1, 1))[1][:, 0]
    return np.argsort(vector * np.sign(vector[np.argmax(np.abs(vector))]), kind="stable")


def _others(game: Game) -> Others:
    """Ask agents spread over all, in an order that leaves any number of them spread too."""
    asked = np.unique(np.linspace(0, game.size - 1, ASKED).astype(np.intp))
    agents: list[int] = []
    counts: list[int] = []
    named = 0
    for agent in np.random.default_rng(0).permutation(asked).tolist():
        helpers: NDArray[np.intp] = game.helpers(agent)
        agents.append(agent)
        counts.append(int(np.count_nonzero(helpers != agent)))
        named += len(helpers)
        if named > ANSWERS:
            break
    return Others(np.array(agents), np.array(counts))
