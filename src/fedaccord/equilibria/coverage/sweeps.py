"""Equilibria of coverage games by sweeps of best responses.

Where each agent is uniform on a set X_i of b_i points and contributions are real, s_i = -log p_i
turns the equilibria into the minima of a convex function (p_i is the chance that agent i misses a
given point of its own):

    minimise  sum_x exp(-sum_{j: x in X_j} s_j) + sum_i 2 b_i (1 - mu_i) s_i   over   s >= 0

Its optimality conditions say 2 b_i (u_i - mu_i) >= 0, with equality where s_i > 0. It is strictly
convex in the sums over each point, so that E_x, and all utilities, are the same in every minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.result import Deadline
from fedaccord.games.coverage import ROUNDING, CoverageGame

# Above this many entries of Q the compiled sweeps earn the import of numba.
SMALL = 500
BATCH = 100

# The prime field in which ranks are computed: products of two elements fit 64 bits.
PRIME = 2_147_483_647
RANK_LIMIT = 400


@dataclass(frozen=True)
class Swept:
    """Where sweeps ended.

    contributions: the last point.
    regret: how far the furthest agent is from its best response within its limits, in samples.
    sweeps: how many were made.
    """

    contributions: Vector
    regret: float
    sweeps: int

    def is_close(self, tolerance: float) -> bool:
        """Return whether each is at its best response, relative to the largest contribution."""
        return self.regret <= tolerance * (float(self.contributions.max()) or 1.0)


def regret(game: CoverageGame, contributions: Vector) -> float:
    """Return the distance of the furthest agent from its best response within its limits."""
    return float(np.abs(game.responses_within(contributions) - contributions).max())


def clip_start(game: CoverageGame, start: Vector | None) -> Vector:
    """Return where sweeps begin: nobody gives more than it would alone."""
    if start is None:
        return np.array(game.minimums)
    begin = np.minimum(np.asarray(start, dtype=np.float64), game.alone)
    begin = np.clip(begin, game.minimums, game.limits)
    return np.ceil(begin) if game.is_integer else begin


# Uniform sets: the convex form.


def has_convex_form(game: CoverageGame) -> bool:
    """Return whether the convex form applies: real, uniform, and every p_i stays above zero."""
    if game.is_integer or not game.is_uniform or (game.requirements >= 1).any():
        return False
    return bool((set_misses(game, game.minimums) > 0).all())


def set_rates(game: CoverageGame) -> Vector:
    """Return 1 / b_i, the probability of each point of agent i's set."""
    return np.asarray(game.distributions.data[game.distributions.indptr[:-1]])


def set_logs(game: CoverageGame) -> Vector:
    """Return log(1 - 1 / b_i)."""
    return np.asarray(game.log_misses[game.distributions.indptr[:-1]])


def set_misses(game: CoverageGame, contributions: Vector) -> Vector:
    """Return p_i(theta_i), the chance that i misses a given point of its own; 0 for infinity."""
    finite = np.where(np.isfinite(contributions), contributions, 0.0)
    whole = np.floor(finite)
    misses = np.exp(set_logs(game) * whole) * (1 - (finite - whole) * set_rates(game))
    return np.where(np.isfinite(contributions), misses, 0.0)


def contributions_of(game: CoverageGame, misses: Vector) -> Vector:
    """Return theta from p: the inverse of set_misses, linear between whole numbers."""
    rates, logs = set_rates(game), set_logs(game)
    whole = np.floor(np.log(misses) / logs * (1 + 1e-15))
    part = (1 - misses / np.exp(logs * whole)) / rates
    return np.asarray(whole + np.clip(part, 0.0, 1.0))


def sweep_uniform(
    game: CoverageGame, start: Vector | None, aim: float, deadline: Deadline
) -> Swept:
    """Minimise the convex form by coordinate descent, which is sequential best response."""
    lowest = np.maximum(set_misses(game, game.limits), 1e-300)
    highest = set_misses(game, game.minimums)
    goals = 2 * (1 - game.requirements) * (1 + ROUNDING) / set_rates(game)
    misses = np.clip(set_misses(game, clip_start(game, start)), lowest, highest)
    enough, done = aim, 0
    while True:
        unseen = game._products(misses[game.rows])
        scale = float(contributions_of(game, misses).max()) or 1.0
        done += _uniform_batch(game, goals, lowest, highest, misses, unseen, enough * scale)
        given = np.clip(contributions_of(game, misses), game.minimums, game.limits)
        result = Swept(given, regret(game, given), done)
        if result.is_close(aim) or deadline.passed or enough < 1e-15:
            return result
        enough = enough / 4 if done % BATCH else enough


def _uniform_batch(
    game: CoverageGame,
    goals: Vector,
    lowest: Vector,
    highest: Vector,
    misses: Vector,
    unseen: Vector,
    enough: float,
) -> int:
    begins, points = game.distributions.indptr, game.distributions.indices
    if len(points) > SMALL:
        from fedaccord.equilibria.coverage.kernels import uniform_sweeps

        sizes = 1 / set_rates(game)
        state = (lowest, highest, misses, unseen)
        return int(uniform_sweeps(begins, points, game.copies, goals, sizes, *state, BATCH, enough))
    sets = [points[low:high] for low, high in pairwise(begins.tolist())]
    sizes = 1 / set_rates(game)
    for sweep in range(BATCH):
        furthest = 0.0
        for i, own in enumerate(sets):
            total = float(game.copies[own] @ unseen[own])
            old = float(misses[i])
            wanted = old * goals[i]
            new = wanted / total if wanted < highest[i] * total else float(highest[i])
            new = max(new, float(lowest[i]))
            unseen[own] *= new / old
            misses[i] = new
            furthest = max(furthest, sizes[i] * abs(new - old) / min(new, old))
        if furthest <= enough:
            return sweep + 1
    return BATCH


def is_determined(game: CoverageGame, contributions: Vector, margin: float) -> bool:
    """Return whether the convex form provably has one minimum only, given one of them.

    Two minima have the same sums at every point, so their difference d has A' d = 0 with A the
    incidence of agents and points, and d_i = 0 for an agent that has utility to spare in one.
    If the remaining rows of A are independent, d = 0. An agent with a point of its own among those
    remaining has d_i = 0, and is taken out, again and again. What is left is settled by elimination
    modulo a prime: rows independent there are independent.
    """
    slack = game.utilities(contributions) - game.requirements
    fixed = (contributions <= game.minimums) & (slack > margin)
    left = _peel(game, np.flatnonzero(~fixed))
    if left.size == 0:
        return True
    if left.size > RANK_LIMIT:
        return False
    return _independent(game.distributions[left])


def _peel(game: CoverageGame, agents: Indices) -> Indices:
    while agents.size:
        rows = game.distributions[agents]
        covered = np.bincount(rows.indices, minlength=game.points)
        private = np.add.reduceat(covered[rows.indices] == 1, rows.indptr[:-1]) > 0
        if not private.any():
            return agents
        agents = agents[~private]
    return agents


def _independent(rows: sparse.csr_array) -> bool:
    matrix = (np.unique(rows.toarray() > 0, axis=1)).astype(np.int64)
    if matrix.shape[1] < matrix.shape[0]:
        return False
    for i in range(len(matrix)):
        pivots = np.flatnonzero(matrix[i])
        if not pivots.size:
            return False
        column = pivots[0]
        inverse = pow(int(matrix[i, column]), -1, PRIME)
        matrix[i] = matrix[i] * inverse % PRIME
        below = i + 1 + np.flatnonzero(matrix[i + 1 :, column])
        factors = matrix[below, column][:, np.newaxis]
        matrix[below] = (matrix[below] - factors * matrix[i] % PRIME) % PRIME
    return True


# Any distributions.


def sweep_responses(
    game: CoverageGame, start: Vector | None, aim: float, deadline: Deadline
) -> Swept:
    """Let agents move to their best responses in turn, halfway once whole steps stop helping.

    Whole contributions end at an equilibrium of the game without limits, by the exact potential

        P(m) = sum_x prod_j (1 - q_jx)^m_j + 2 sum_i (1 - mu_i) m_i
        P(m + e_i) - P(m) = 2 (u_i(m) - mu_i)

    A step up is taken while u_i(m) < mu_i, so lowers P; a step down while u_i(m - e_i) >= mu_i, so
    does not raise P and lowers the total: (P, total) falls in lexicographic order.
    """
    state = _State(game, clip_start(game, start))
    best = Swept(state.given.copy(), regret(game, state.given), 0)
    damping, done, checks = 1.0, 0, 0
    while not (best.is_close(aim) or deadline.passed):
        done += state.sweep(damping, aim, deadline)
        now = Swept(state.given.copy(), regret(game, state.given), done)
        stuck = now.regret > 0.5 * best.regret
        best = min(best, now, key=lambda s: s.regret)
        checks = checks + 1 if stuck else 0
        if stuck and damping == 1.0 and not game.is_integer:
            damping = 0.5
        elif checks >= 30:
            break
    return best


class _State:
    """The point that sweeps change, with what the compiled loop keeps with it."""

    def __init__(self, game: CoverageGame, given: Vector) -> None:
        self.game = game
        self.given = given

    def sweep(self, damping: float, aim: float, deadline: Deadline) -> int:
        enough = aim * (float(self.given.max()) or 1.0)
        if len(self.game.rows) <= SMALL or self.game.is_integer:
            return self._sweep_plain(damping, enough, deadline)
        return self._sweep_compiled(damping, enough)

    def _sweep_plain(self, damping: float, enough: float, deadline: Deadline) -> int:
        """Sweep in plain Python; whole numbers decided exactly."""
        game = self.game
        if game.is_integer and len(game.rows) > SMALL:
            # The compiled loop decides near ties in floating point; the exact sweep settles them.
            self._sweep_compiled(1.0, 0.5)
        for sweep in range(BATCH):
            furthest = 0.0
            everyone = list(range(game.size))
            if game.is_integer and game.size > SMALL:
                moving = game.responses_within(self.given) != self.given
                everyone = np.flatnonzero(moving).tolist()
            for i in everyone:
                if deadline.passed:
                    return sweep + 1
                needed = game.best_response(i, self.given)
                target = min(max(needed, float(game.minimums[i])), float(game.limits[i]))
                furthest = max(furthest, abs(target - self.given[i]))
                self.given[i] += damping * (target - self.given[i])
            if furthest <= enough:
                return sweep + 1
        return BATCH

    def _sweep_compiled(self, damping: float, enough: float) -> int:
        from fedaccord.equilibria.coverage.kernels import response_sweeps

        game = self.game
        misses = game.misses(self.given)
        order, starts = game.by_point
        return int(
            response_sweeps(
                game.distributions.indptr,
                game.distributions.indices,
                game.distributions.data,
                game.log_misses,
                game.weights.data,
                game.rows,
                order,
                starts,
                2 * (1 - game.requirements) * (1 + ROUNDING),
                game.minimums,
                game.limits,
                self.given,
                misses,
                game.unseen(self.given),
                np.empty(len(misses)),
                damping,
                game.is_integer,
                BATCH,
                enough,
            )
        )
