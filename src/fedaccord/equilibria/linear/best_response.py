"""Fixed points of best response in linear games: Gauss-Seidel sweeps, with momentum where slow.

For symmetric W >= 0 a sweep is coordinate descent on the potential

    minimise  1/2 theta' W theta - mu' theta    subject to  minimums <= theta <= limits,

whose stationary points are the fixed points of best response clipped to the strategy space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.equilibria.result import Deadline
from fedaccord.games.linear import DiscoveryGame, LinearGame, is_sparse

# Sweeps between two that visit idle agents too.
FULL_EVERY = 5
# Regret falling by less than this factor a sweep calls for momentum.
SLOW = 0.97
# Polishing solves a dense system among the contributors, up to this many.
POLISH_LIMIT = 3_000
# A least-squares solution of a singular system, up to this many.
LEAST_SQUARES_LIMIT = 600


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Where best response came to rest.

    contributions: theta.
    regret: the largest distance of anyone from its clipped best response, over the scale.
    sweeps: how often everybody had a turn.
    converged: whether the regret asked for was reached.
    accelerated: whether momentum was used.
    """

    contributions: Vector
    regret: float
    sweeps: int
    converged: bool
    accelerated: bool


def clipped_responses(game: LinearGame, contributions: Vector) -> Vector:
    """Give best responses moved into the strategy space."""
    return np.clip(game.best_responses(contributions), game.minimums, game.limits)


def relative_regret(game: LinearGame, contributions: Vector) -> float:
    """Give the largest distance from a clipped best response, relative to the largest gift."""
    scale = contributions.max() or game.alone.max() or 1.0
    return float(np.abs(clipped_responses(game, contributions) - contributions).max() / scale)


def find_fixed_point(
    game: LinearGame, *, tolerance: float, deadline: Deadline, start: Vector | None = None
) -> FixedPoint:
    """Sweep until nobody would move by more than tolerance times the largest contribution.

    game: linear, symmetric for a guarantee of convergence.
    tolerance: relative regret to stop at.
    start: where to begin; from nothing where left out.
    """
    mover = _Mover(game, start)
    momentum = _Momentum(mover)
    sweeps, previous, slow = 0, np.inf, 0
    regret = np.inf
    while not deadline.passed:
        full = sweeps % FULL_EVERY == 0
        moved = mover.sweep(full)
        sweeps += 1
        if full:
            # What anyone moved in a sweep bounds nobody's regret after it: measure that.
            if moved <= tolerance * mover.scale:
                regret = relative_regret(game, mover.theta)
                if regret <= tolerance:
                    break
            slow = slow + 1 if moved > SLOW**FULL_EVERY * previous else 0
            previous = moved
            momentum.on = momentum.on or slow >= 3
        if momentum.on:
            momentum.push()
    mover.settle()
    regret = relative_regret(game, mover.theta)
    return FixedPoint(mover.theta, regret, sweeps, regret <= tolerance, momentum.on)


class _Mover:
    """Contributions with whatever a kernel keeps beside them."""

    def __init__(self, game: LinearGame, start: Vector | None) -> None:
        self.game = game
        begin = game.minimums if start is None else start
        self.theta = np.clip(begin, game.minimums, game.limits).astype(np.float64)
        self.found: Vector | None = None
        self.idle = np.zeros(game.size, dtype=np.bool_)
        self._kernel = self._choose_kernel()

    @property
    def scale(self) -> float:
        return float(self.theta.max() or self.game.alone.max() or 1.0)

    def _choose_kernel(self) -> Callable[[bool], float]:
        from fedaccord.equilibria.linear import kernels

        game, theta, idle = self.game, self.theta, self.idle
        shared = (game.own_benefits, game.requirements, game.minimums, game.limits, theta)
        if isinstance(game, DiscoveryGame):
            rows = game.distributions
            found = self.found = np.asarray(rows.T @ theta)
            parts = (rows.indptr, rows.indices, rows.data)
            return lambda full: kernels.sweep_gram(*parts, *shared, found, idle, full)
        if is_sparse(game.benefits):
            rows = game.benefits
            parts = (rows.indptr, rows.indices, rows.data)
            return lambda full: kernels.sweep_explicit(*parts, *shared, idle, full)
        return lambda full: kernels.sweep_dense(game.benefits, *shared, idle, full)

    def sweep(self, full: bool) -> float:
        return float(self._kernel(full))

    def move(self, theta: Vector) -> None:
        """Go somewhere else."""
        self.theta[:] = np.clip(theta, self.game.minimums, self.game.limits)
        self.settle()

    def potential(self) -> float:
        """Give 1/2 theta' W theta - mu' theta."""
        if self.found is not None:
            square = self.found @ self.found
        else:
            square = self.theta @ self.game.apply(self.theta)
        return float(square / 2 - self.game.requirements @ self.theta)

    def settle(self) -> None:
        """Recompute what is kept beside the contributions, free of accumulated rounding."""
        if self.found is not None and isinstance(self.game, DiscoveryGame):
            self.found[:] = self.game.distributions.T @ self.theta


class _Momentum:
    """Nesterov's extrapolation between sweeps, started anew whenever the potential rises."""

    def __init__(self, mover: _Mover) -> None:
        self.mover = mover
        self.on = False
        self._step = 1.0
        self._last: Vector | None = None
        self._potential = np.inf

    def push(self) -> None:
        here, potential = self.mover.theta.copy(), self.mover.potential()
        if self._last is None or potential > self._potential:
            self._step = 1.0
        else:
            following = (1 + np.sqrt(1 + 4 * self._step**2)) / 2
            self.mover.move(here + (self._step - 1) / following * (here - self._last))
            self._step = following
        self._last, self._potential = here, potential


def polish(game: LinearGame, contributions: Vector) -> Vector:
    """Solve W_SS theta_S = mu_S - W_SF theta_F exactly, S the contributors strictly inside the box.

    Gives the contributions back unchanged where S is large or the result is no better.
    """
    free = (contributions > game.minimums) & (contributions < game.limits)
    # A gift this small beside the largest is rounding noise of somebody who gives nothing.
    free &= contributions - game.minimums > 1e-9 * contributions.max()
    inside = np.flatnonzero(free)
    if not 0 < inside.size <= POLISH_LIMIT:
        return contributions
    fixed = np.where(
        contributions - game.minimums <= game.limits - contributions, game.minimums, game.limits
    )
    rest = np.where(free, 0.0, fixed)
    target = (game.requirements - game.apply(rest))[inside]
    block = game.benefits_among(inside, inside)
    before = relative_regret(game, contributions)
    for correct in _corrections(inside.size):
        # Correcting the residual, not solving afresh, keeps to the nearest solution where W_SS is
        # singular and many would do.
        polished = rest.copy()
        polished[inside] = contributions[inside] + correct(
            block, target - block @ contributions[inside]
        )
        polished = np.clip(polished, game.minimums, game.limits)
        if relative_regret(game, polished) < before:
            return polished
    return contributions


def _corrections(size: int) -> Iterator[Callable[[Matrix, Vector], Vector]]:
    """Ways to solve for a correction: quick, then sure where W_SS may be singular."""

    def solve(block: Matrix, residual: Vector) -> Vector:
        try:
            return np.asarray(np.linalg.solve(block, residual))
        except np.linalg.LinAlgError:
            return np.zeros(residual.size)

    yield solve
    if size <= LEAST_SQUARES_LIMIT:
        yield lambda block, residual: np.asarray(np.linalg.lstsq(block, residual, rcond=1e-12)[0])
