"""The structure of linear equilibria: Theorems 5 and 6, the corollary, diagonal dominance.

The paper's statements need corrections where they are read literally; each function checks the
condition that the proof uses and says so where it fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, frozen
from fedaccord.equilibria.result import Deadline, Solution
from fedaccord.equilibria.solve import solve_optimal
from fedaccord.errors import InputError
from fedaccord.games.linear import DiscoveryGame, LinearGame, is_sparse


@dataclass(frozen=True, eq=False)
class CoreSet:
    """The contributors of a stable equilibrium, and what Theorem 5 says of them.

    agents: who gives anything.
    total: what they give.
    optimal_total: the least total that satisfies the contributors alone.
    socially_optimal: whether the equilibrium is socially optimal among the contributors.
    applies: whether Theorem 5 applies: symmetric PSD benefits, equal requirements and costs, over
        the reals and without minimums.
    """

    agents: Indices
    total: float
    optimal_total: float
    socially_optimal: bool
    applies: bool

    def sentence(self) -> str:
        """Say it in one sentence."""
        verb = "is" if self.socially_optimal else "is not"
        why = "as Theorem 5 says" if self.applies else "Theorem 5 does not apply"
        return (
            f"{self.agents.size} agents contribute; among them the equilibrium {verb} socially "
            f"optimal ({self.total:.6g} against {self.optimal_total:.6g}): {why}."
        )


def core_set(stable: Solution, *, tolerance: float = 1e-6) -> CoreSet:
    """Take the contributors of a stable equilibrium and compare it with their social optimum.

    Theorem 5: with symmetric PSD W and equal requirements, an optimal stable equilibrium restricted
    to its contributors is socially optimal for them. With unequal requirements it may not be.
    """
    game = _linear_game(stable)
    given = stable.allocation.contributions
    core = np.flatnonzero(given > tolerance * given.max())
    applies = bool(
        game.is_symmetric and game.is_psd
        and np.ptp(game.requirements) <= tolerance * game.requirements.max()
        and np.ptp(game.costs) == 0 and not game.is_integer and not game.minimums.any()
    )  # fmt: skip
    if core.size == 0:
        return CoreSet(core, 0.0, 0.0, True, applies)
    total = game.total(given)
    optimum = solve_optimal(game.restrict(core), tolerance=tolerance)
    best = optimum.total
    return CoreSet(frozen(core), total, best, total <= best * (1 + 10 * tolerance), applies)


def everyone_contributes(stable: Solution, *, tolerance: float = 1e-6) -> bool:
    """Return whether the corollary applies: all contribute, so the equilibrium is socially optimal.

    Needs equal requirements, as Theorem 5 does; where that does not apply the answer is no.
    """
    core = core_set(stable, tolerance=tolerance)
    return core.applies and core.agents.size == stable.game.size


def is_diagonally_dominant(game: LinearGame) -> bool:
    """Return whether sum over j != i of W_ij < W_ii for every i, as the paper's remark has it."""
    others = np.asarray(game.apply(np.ones(game.size))) - game.own_benefits
    return bool((others < game.own_benefits).all())


def everyone_must_contribute(game: LinearGame) -> bool:
    """Return whether diagonal dominance in the right units forces everybody to contribute.

    At equal requirements nobody gives more than mu / W_jj, so if sum over j != i of W_ij / W_jj < 1
    for every i, the others never meet i's requirement and everybody contributes; where Theorem 5
    applies, the price of stability is then 1. With a unit diagonal this is the paper's condition;
    without one the paper's condition does not suffice. Whole numbers and minimums let agents give
    more than that, so the answer for them is no.
    """
    if game.is_integer or game.minimums.any():
        return False
    if np.ptp(game.requirements) != 0 or game.requirements[0] == 0:
        return False
    received = game.apply(1 / game.own_benefits) - 1.0
    return bool((received < 1).all())


def strictly_dominant_own_benefits(
    game: LinearGame, *, deadline: Deadline | None = None
) -> bool | None:
    """Return whether W_ij < W_ii for all j != i, the condition of Theorem 6 (stable => envy-free).

    None where the deadline came first.
    """
    if isinstance(game, DiscoveryGame):
        return _discovery_dominant(game, deadline)
    benefits = game.benefits
    if is_sparse(benefits):
        entries = sparse.coo_array(benefits)
        off = entries.row != entries.col
        return bool((entries.data[off] < game.own_benefits[entries.row[off]]).all())
    others = np.array(benefits)
    np.fill_diagonal(others, -np.inf)
    return bool((others < game.own_benefits[:, None]).all())


def _discovery_dominant(game: DiscoveryGame, deadline: Deadline | None) -> bool | None:
    # A block of rows of Q Q' at a time keeps memory small.
    rows = game.distributions
    for begin in range(0, game.size, 2_000):
        if deadline is not None and deadline.passed:
            return None
        block = sparse.coo_array(rows[begin : begin + 2_000] @ rows.T)
        agents = block.row + begin
        off = agents != block.col
        if (block.data[off] >= game.own_benefits[agents[off]]).any():
            return False
    return True


def _linear_game(solution: Solution) -> LinearGame:
    if solution.concept != "stable":
        raise InputError(f"this needs a stable solution; got one of concept {solution.concept}")
    if not isinstance(solution.game, LinearGame):
        raise InputError("this is known for linear games only")
    return solution.game
