"""Lower bounds on totals in coverage games, by cuts of the smooth form, and integer optima.

The smooth form has (1 - q)^theta in place of randomized rounding. Its utilities are never smaller
(Jensen), equal at whole contributions, and its constraints are convex:

    log sum_x q_ix exp(sum_j theta_j log(1 - q_jx)) <= log 2(1 - mu_i)

so that each tangent is a cut a_i theta >= r_i with a_i >= 0 that every allocation obeys, real or
integer: least totals stand in the order smooth <= real <= integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.programs import bound_by_prices, linear_program, mixed_program
from fedaccord.equilibria.result import Deadline
from fedaccord.games.coverage import CoverageGame

# Stands for -log(1 - q) where q = 1. e^(-M t) is convex, so below its chord on [0, 1]:
# 1 - t >= e^(-M t) - t e^(-M), and for t >= 1 the true p = 0 >= e^(-M t) - e^(-M). So the product
# over agents is too large by at most e^(-M) for each certain agent of the point, and goals raised
# by the sum of these (4e-18 each, far below rounding) make the smooth constraints valid.
CERTAIN_RATE = 40.0

# exp(-500) is about 1e-217, so that no sum of them is zero.
LARGEST_EXPONENT = 500.0

# Rows of cuts are scaled to this largest coefficient: solvers' tolerances are absolute, and a
# violation must exceed them to be seen.
ROW_SCALE = 1e3

# A constraint that is broken by less than this, in logarithms, is not cut.
SLACK = 1e-9


@dataclass(frozen=True)
class Cut:
    """Rows a theta >= r that every allocation of the kind obeys."""

    rows: Any
    least: Vector


class SmoothForm:
    """The convex constraints of a game, ready to be cut."""

    def __init__(self, game: CoverageGame) -> None:
        self.game = game
        logs = np.minimum(-game.log_misses, CERTAIN_RATE)
        shape = game.distributions.shape
        pattern = (game.distributions.indices, game.distributions.indptr)
        self.log_rates = sparse.csr_array((logs, *pattern), shape=shape)
        certain = np.zeros(game.points)
        np.add.at(certain, game.distributions.indices, game.log_misses < -CERTAIN_RATE)
        self.goals = 2 * (1 - game.requirements) + np.exp(-CERTAIN_RATE) * (game.weights @ certain)
        # Agents whom u(0) satisfies need nothing, and a goal of one or more is no constraint.
        self.needy = np.flatnonzero(game.weights @ np.ones(game.points) > self.goals)

    def losses(self, contributions: Vector) -> tuple[Vector, Vector]:
        """Return sum_x q_ix E_x of every agent and E_x of every point."""
        unseen = np.exp(-self._exponents(contributions))
        return np.asarray(self.game.weights @ unseen), unseen

    def _exponents(self, contributions: Vector) -> Vector:
        # Any point will do for a tangent; from one further out nothing unseen is left in doubles.
        return np.asarray(np.minimum(self.log_rates.T @ contributions, LARGEST_EXPONENT))

    def shares(self, contributions: Vector, agents: Indices) -> tuple[Any, Vector]:
        """Return tangents as S and r: the cuts are S (L' theta) >= r, L = log_rates."""
        losses, unseen = self.losses(contributions)
        kept = self.game.weights[agents]
        scaled = sparse.diags_array(1 / losses[agents]) @ kept @ sparse.diags_array(unseen)
        shares = sparse.csr_array(scaled)
        slope = shares @ self._exponents(contributions)
        return shares, np.log(losses[agents] / self.goals[agents]) + slope

    def cut(self, contributions: Vector, agents: Indices) -> Cut:
        """Return the tangents of some agents' constraints at a point, as rows."""
        shares, least = self.shares(contributions, agents)
        rows = sparse.csr_array(shares @ self.log_rates.T)
        scale = ROW_SCALE / rows.max(axis=1).toarray().ravel()
        return Cut(sparse.csr_array(sparse.diags_array(scale) @ rows), scale * least)

    def find_violated(self, contributions: Vector) -> Indices:
        """Return the agents whose constraint is broken by more than SLACK, in logarithms."""
        losses, _ = self.losses(contributions)
        over = losses[self.needy] > self.goals[self.needy] * np.exp(SLACK)
        return np.asarray(self.needy[over])


@dataclass(frozen=True)
class Bound:
    """A proved lower bound on totals, and the point of the relaxation that shows it."""

    lower: float
    contributions: Vector
    rounds: int
    finished: bool


def smooth_bound(
    game: CoverageGame,
    deadline: Deadline,
    *,
    upper: float,
    extra: Sequence[Cut] = (),
) -> Bound:
    """Bound totals from below by the least total of the smooth form, by tangent planes.

    upper: the total of an allocation of the kind; only totals below it are looked for.
    extra: further rows that every allocation of the kind obeys.
    """
    form = SmoothForm(game)
    best, point = game.total(game.minimums), np.array(game.minimums)
    cuts, rounds, stalled = [*extra], 0, 0
    agents = form.find_violated(point)
    # The solver's tolerance may hold the last violations up for ever: three rounds that add
    # nothing to the bound are the end too.
    while agents.size and stalled < 3 and not deadline.passed:
        cuts.append(form.cut(point, agents))
        matrix, least = _stack(cuts)
        most = _most(game, upper)
        answer = linear_program(
            game.costs, game.minimums, most, seconds=deadline.left, rows=-matrix, most=-least
        )
        rounds += 1
        if answer.x is None:
            break
        found = bound_by_prices(game.costs, matrix, least, -answer.duals, game.minimums, most)
        stalled = stalled + 1 if found <= best * (1 + 1e-9) else 0
        best = max(best, found)
        point = np.clip(np.asarray(answer.x), game.minimums, most)
        agents = form.find_violated(point)
    return Bound(min(best, upper), point, rounds, not agents.size or stalled >= 3)


def _most(game: CoverageGame, upper: float) -> Vector:
    """No agent gives more than its limit, or than what an allocation of that total leaves it."""
    rest = upper - game.total(game.minimums)
    return np.minimum(game.limits, game.minimums + rest / game.costs)


def _stack(cuts: Sequence[Cut]) -> tuple[Any, Vector]:
    matrix = sparse.csr_array(sparse.vstack([c.rows for c in cuts], format="csr"))
    return matrix, np.concatenate([c.least for c in cuts])


def integer_optimum(
    game: CoverageGame, deadline: Deadline, *, upper: float, extra: Sequence[Cut] = ()
) -> Bound:
    """Find the least whole contributions that satisfy everybody, by cuts of an integer program.

    Over whole numbers the smooth form is the game itself. A solution of the relaxation that the
    game, asked exactly, calls feasible is therefore least.
    """
    form = SmoothForm(game)
    relaxed = smooth_bound(game, deadline, upper=upper, extra=extra)
    cuts = [*extra]
    if form.needy.size:
        cuts += [form.cut(p, form.needy) for p in (np.array(game.minimums), relaxed.contributions)]
    best, point, rounds = relaxed.lower, np.array(game.minimums), 0
    while not deadline.passed:
        missing = np.flatnonzero(~game.satisfied(point))
        if not missing.size and rounds:
            return Bound(best, point, rounds, True)
        if missing.size and rounds:
            cut = form.cut(point, missing)
            if (cut.least - cut.rows @ point).max() < 1e-5:
                break  # Too close for the solver to see: it would give the same point again.
            cuts.append(cut)
        matrix, least = _stack(cuts) if cuts else (None, np.zeros(0))
        answer = mixed_program(
            game.costs,
            game.minimums,
            np.floor(_most(game, upper) + 1e-9),
            rows=[] if matrix is None else [(matrix, least, np.inf)],
            whole=np.ones(game.size),
            seconds=deadline.left,
            gap=0.0,
        )
        rounds += 1
        best = max(best, answer.bound)
        if not answer.solved or answer.x is None:
            break
        point = np.round(answer.x)
    return Bound(min(best, upper), point, rounds, False)


def quick_bound(game: CoverageGame, reference: Vector, *, rounds: int = 60) -> tuple[float, Vector]:
    """Bound totals from below in games too large for a linear program.

    The tangents at a reference point are a covering program S L' theta >= r. Any prices y >= 0
    prove c theta >= r y / max_j (L S' y)_j / c_j; these are found by softmax ascent. The agents of
    the greatest load, on average over the rounds, are where samples count most: the second result.
    """
    form = SmoothForm(game)
    least_total = game.total(game.minimums)
    if not form.needy.size:
        return least_total, np.array(game.minimums)
    shares, least = form.shares(reference, form.needy)
    useful = np.flatnonzero(least > 0)
    if not useful.size:
        return least_total, np.array(game.minimums)
    shares, least = shares[useful], least[useful]
    best, prices, direction = 0.0, np.ones(len(least)), np.zeros(game.size)
    for round_number in range(rounds):
        load = (form.log_rates @ (shares.T @ prices)) / game.costs
        top = load.max()
        best = max(best, float(least @ prices) / float(top))
        sharpness = 20.0 + 5.0 * round_number
        heavy = np.exp(sharpness * (load / top - 1)) / game.costs
        heavy /= heavy @ game.costs
        cost = shares @ (form.log_rates.T @ heavy)
        direction += heavy * (round_number >= rounds // 2)
        # Raise the price of requirements that buy more bound than the load they add.
        worth = least / np.maximum(cost, 1e-300)
        prices *= np.clip(worth / (worth @ prices / prices.sum()), 0.5, 2.0) ** 0.3
    direction[direction < 1e-6 * direction.max()] = 0.0
    return max(best, least_total), direction * (best / float(game.costs @ direction))
