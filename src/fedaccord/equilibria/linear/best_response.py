"""Fixed points of best response in linear games: sweeps and momentum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Matrix, Vector
from fedaccord.equilibria.result import Deadline
from fedaccord.games.linear import EPSILON, DiscoveryGame, LinearGame, is_sparse, relative_regret

# How much of its stand-alone need an agent at its minimum must have to spare to be left out.
IDLE_SHARE = 0.05
# Sweeps between two that visit idle agents too.
FULL_EVERY = 5
# Moves that shrink by less than this factor a sweep call for momentum, and how often in a row they
# must. A small game, whose plan is polished in the end, can do many sweeps without it.
SLOW, SLOW_SMALL = (0.75, 1), (0.97, 3)
# How many steps momentum remembers.
STEPS = 8
# Steps that are this short next to the contributions, in terms of the potential, are rounding;
# and so are steps that would have to be this many times as long.
SHORTEST, LONGEST = 1e-10, 1e2
# The relative error of an image above which it is computed afresh.
DRIFT = 1e-12
# A potential that rises by no more than this, relatively, may be rounding.
NOISE = 1e-13
# Up to this share of the agents, their rows are copied to leave out the others'.
FEW = 0.1
# A game of up to this many agents counts as small.
SMALL = 3_000
# Up to this many agents a compiled sweep does not earn the import of numba.
PLAIN = 20


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Where best response came to rest.

    contributions: theta.
    regret: the largest distance of anyone from its clipped best response, over the scale.
    sweeps: how often everybody had a turn.
    accelerated: whether momentum was used.
    """

    contributions: Vector
    regret: float
    sweeps: int
    accelerated: bool


def find_fixed_point(
    game: LinearGame, *, tolerance: float, deadline: Deadline, start: Vector | None = None
) -> FixedPoint:
    """Sweep until nobody would move by more than tolerance times the largest contribution.

    game: linear, symmetric for a guarantee of convergence.
    tolerance: relative regret to stop at.
    start: where to begin; from nothing where left out.
    """
    mover = _Mover(game, start)
    momentum: _Momentum | None = None
    sweeps, previous, slow = 0, np.inf, 0
    factor, enough = SLOW_SMALL if game.size <= SMALL else SLOW
    while not deadline.passed:
        full = sweeps % FULL_EVERY == 0
        moved = mover.sweep(full)
        sweeps += 1
        if full:
            # What anyone moved in a sweep bounds nobody's regret after it: measure that.
            if moved <= tolerance * game.scale_of(mover.theta):
                regret = relative_regret(game, mover.theta)
                if regret <= tolerance:
                    break
                if regret > 10 * tolerance:
                    # Rounding has added up in what the kernel keeps.
                    mover.settle()
                    momentum = None
            slow = slow + 1 if moved > factor**FULL_EVERY * previous else 0
            if momentum is None and slow >= enough:
                momentum = _Momentum(mover)
            previous = moved
        if momentum is not None:
            momentum.push()
    regret = relative_regret(game, mover.theta)
    return FixedPoint(mover.theta, regret, sweeps, momentum is not None)


class _Mover:
    """Contributions with all that a kernel keeps with them.

    image: Q' theta where W = Q Q', which sweeps keep up to date; otherwise None.
    """

    def __init__(self, game: LinearGame, start: Vector | None) -> None:
        self.game = game
        begin = game.minimums if start is None else start
        self.theta = np.clip(begin, game.minimums, game.limits).astype(np.float64)
        self.image: Vector | None = None
        self.idle = np.zeros(game.size, dtype=np.bool_)
        self.sweep = self._choose_kernel()

    def _choose_kernel(self) -> Callable[[bool], float]:
        game, theta, idle = self.game, self.theta, self.idle
        shared = (game.own_benefits, game.requirements, game.minimums, game.limits, theta)
        is_dense = not isinstance(game, DiscoveryGame) and not is_sparse(game.benefits)
        if is_dense and game.size <= PLAIN:
            return lambda full: sweep_dense(game.benefits, *shared, idle, full)
        from fedaccord.equilibria.linear import kernels

        if isinstance(game, DiscoveryGame):
            rows = game.distributions
            image = self.image = np.asarray(rows.T @ theta)
            parts = (rows.indptr, rows.indices, rows.data)
            return lambda full: kernels.sweep_gram(*parts, *shared, image, idle, full)
        if is_sparse(game.benefits):
            rows = game.benefits
            parts = (rows.indptr, rows.indices, rows.data)
            return lambda full: kernels.sweep_explicit(*parts, *shared, idle, full)
        return lambda full: kernels.sweep_dense(game.benefits, *shared, idle, full)

    def settle(self) -> None:
        """Compute Q' theta afresh, free of accumulated rounding."""
        if self.image is not None and isinstance(self.game, DiscoveryGame):
            self.image[:] = self.game.distributions.T @ self.theta


def sweep_dense(
    benefits: Matrix,
    own: Vector,
    need: Vector,
    low: Vector,
    high: Vector,
    theta: Vector,
    idle: NDArray[np.bool_],
    full: bool,
) -> float:
    """Sweep with W given as a dense array; `kernels` has it compiled, for larger games."""
    worst = 0.0
    for i in range(need.size):
        if idle[i] and not full:
            continue
        wanted = theta[i] + (need[i] - np.dot(benefits[i], theta)) / own[i]
        new = min(max(wanted, low[i]), high[i])
        idle[i] = wanted < low[i] - IDLE_SHARE * need[i] / own[i]
        worst = max(worst, abs(new - theta[i]))
        theta[i] = new
    return worst


class _Momentum:
    """Go on along the last steps, as far as the potential falls, after each sweep.

    The potential is quadratic, and its minimum along the sweep's own step and those before it takes
    a few inner products. It is clipped to the box, which may raise the potential. Where the next
    sweep does not make up for that, the sweep before it counts, and the steps are forgotten. So
    from sweep to sweep the potential only falls, as without momentum.

    Steps are kept with their images: Q'd where W = Q Q', and W d otherwise.
    """

    def __init__(self, mover: _Mover) -> None:
        self.mover = mover
        self.implicit = mover.image is not None
        self.sweeps = 0
        self.image = self._find_image()
        self.errors = np.zeros(STEPS + 1)
        self.steps = np.zeros((STEPS + 1, mover.theta.size))
        self.images = np.zeros((STEPS + 1, self.image.size))
        self.best: tuple[float, Vector, Vector] | None = None
        self._begin_step()

    def _find_image(self) -> Vector:
        """Return the image of the contributions after a sweep."""
        if self.mover.image is not None:
            return self.mover.image
        return self.mover.game.apply(self.mover.theta)

    def _begin_step(self) -> None:
        """Write down from where the next step goes: a step is its end less its beginning."""
        self.steps[self.sweeps % (STEPS + 1)] = -self.mover.theta
        self.images[self.sweeps % (STEPS + 1)] = -self.image
        self.errors[self.sweeps % (STEPS + 1)] = EPSILON

    def push(self) -> None:
        """Move on from where a sweep has led to."""
        theta, self.image = self.mover.theta, self._find_image()
        current = self.sweeps % (STEPS + 1)
        self.steps[current] += theta
        self.images[current] += self.image
        need = self.mover.game.requirements
        potential = float((self.image if self.implicit else theta) @ self.image / 2 - need @ theta)
        if self.best is not None and potential > self.best[0] + NOISE * abs(self.best[0]):
            theta[:], self.image[:] = self.best[1:]
            self.best = None
            self.steps[:], self.images[:], self.errors[:] = 0.0, 0.0, 0.0
        else:
            self.best = potential, theta.copy(), self.image.copy()
            self._extrapolate(current)
        self.sweeps += 1
        self._begin_step()

    def _extrapolate(self, current: int) -> None:
        """Go to the minimum of the potential along the steps, clipped to the box."""
        game, theta = self.mover.game, self.mover.theta
        dual = self.image if self.implicit else theta
        products = (self.images if self.implicit else self.steps) @ self.images.T
        slopes = self.steps @ game.requirements - self.images @ dual
        squares = products.diagonal()
        used = squares > SHORTEST**2 * float(dual @ self.image)
        units = used / np.sqrt(np.where(used, squares, 1.0))
        unit_products = products * units * units[:, None]
        factors = units * np.linalg.lstsq(unit_products, slopes * units, rcond=1e-8)[0]
        if np.abs(factors).max() > LONGEST:
            return
        wanted = theta + factors @ self.steps
        clipped = np.clip(wanted, game.minimums, game.limits)
        # Long steps multiply the rounding of those before them.
        error = EPSILON + float(np.abs(factors) @ self.errors)
        if error <= DRIFT:
            change = factors @ self.images + self._image_of(clipped - wanted)
        else:
            change = self._image_of(clipped) - self.image
        self.errors[current] = min(error, DRIFT)
        self.steps[current] += clipped - theta
        self.images[current] += change
        theta[:] = clipped
        self.image += change

    def _image_of(self, step: Vector) -> Vector:
        """Return the image of a step, which few agents may make."""
        game, movers = self.mover.game, np.flatnonzero(step)
        if not isinstance(game, DiscoveryGame):
            return game.apply(step)
        rows = game.distributions
        # The rows of some agents are a copy, which of most would fill memory.
        if movers.size > FEW * game.size:
            return np.asarray(rows.T @ step)
        return np.asarray(rows[movers].T @ step[movers])
