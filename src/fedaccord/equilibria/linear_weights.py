"""The socially optimal allocation of a linear game by multiplicative weights."""

from __future__ import annotations

import numpy as np

from fedaccord._arrays import Vector
from fedaccord.equilibria.base import Deadline, Interval, Solution, Status
from fedaccord.equilibria.linear_optimal import certified
from fedaccord.games.base import ROUNDING
from fedaccord.games.linear import LinearGame

# Rounds before it is first asked whether they get anywhere.
FIRST_WINDOW = 256


def multiplicative_weights_optimal(
    game: LinearGame, *, tolerance: float, deadline: Deadline
) -> Solution:
    """Approach LP 1 as a covering program by multiplicative weights, MW-FED's counterpart.

    Without limits LP 1 is a game between weights w on requirements and p on contributions,

        1 / (least total) = max over p of min over i (B p)_i = min over w of max over j (B'w)_j
        B_ij = W_ij / (mu_i c_j),   w and p >= 0, each of sum one.

    Round after round the weights of those who have least grow by a factor, and the contributions
    that serve the weighted agents best. Any p proves an upper bound, any w a lower one.
    """
    if np.isfinite(game.limits).any() or game.minimums.any() or not game.requirements.any():
        return _grown_by_weights(game, tolerance=tolerance, deadline=deadline)
    players = _Players(game)
    best, lower, upper, prices = None, 0.0, np.inf, np.zeros(game.size)
    closed = False
    while not closed and not deadline.passed:
        for _ in range(16 + players.rounds // 8):
            players.step()
        for given, trial in players.proposals():
            feasible, bounds = certified(game, given, trial)
            if bounds.lower > lower:
                lower, prices = bounds.lower, trial
            if feasible is not None and bounds.upper < upper:
                best, upper = feasible, bounds.upper
        closed = best is not None and upper - lower <= tolerance * upper
        players.adapt(upper - lower)
    status = Status.OPTIMAL if closed else Status.FAILED if best is None else Status.LIMIT
    # What is proved is proved up to rounding, and here the ends may meet.
    bounds = Interval(min(lower, upper) * (1 - ROUNDING), upper * (1 + ROUNDING))
    return Solution(
        game, "optimal", "multiplicative-weights", status, bounds, best,
        certificate={"prices": prices, "rounds": players.rounds}, seconds=deadline.elapsed,
    )  # fmt: skip


class _Players:
    """The two sets of weights of a covering program, kept as logarithms.

    Each answers what the other just did plus what it did more than the round before (an optimistic
    step): so their averages approach a value at a rate of 1/rounds, where plain multiplicative
    weights circle around it.
    """

    def __init__(self, game: LinearGame) -> None:
        self.game = game
        self.wanted = np.flatnonzero(game.requirements > 0)
        self.need = game.requirements[self.wanted]
        self.p = np.full(game.size, 1 / game.size)
        self.w = np.full(self.wanted.size, 1 / self.wanted.size)
        # Steps of a quarter over the largest B_ij are proved to work; longer ones mostly do, and
        # are halved where they do not.
        self.rate = 16.0 * float((game.alone * game.costs)[self.wanted].min())
        self.cover, self.worth = self._cover(), self._worth()
        self.rounds, self.window, self.gap = 0, FIRST_WINDOW, np.inf
        self._forget()

    def _cover(self) -> Vector:
        return np.asarray(self.game.apply(self.p / self.game.costs)[self.wanted] / self.need)

    def _prices(self, weights: Vector) -> Vector:
        prices = np.zeros(self.game.size)
        prices[self.wanted] = weights / self.need
        return prices

    def _worth(self) -> Vector:
        return np.asarray(self.game.apply_transposed(self._prices(self.w)) / self.game.costs)

    def _forget(self) -> None:
        self.sums = np.zeros(self.p.size), np.zeros(self.w.size)
        self.since = self.rounds

    def step(self) -> None:
        cover, worth = self._cover(), self._worth()
        self.p = _weighted(self.p, self.rate * (2 * worth - self.worth))
        self.w = _weighted(self.w, -self.rate * (2 * cover - self.cover))
        self.cover, self.worth = cover, worth
        self.sums = self.sums[0] + self.p, self.sums[1] + self.w
        self.rounds += 1

    def proposals(self) -> list[tuple[Vector, Vector]]:
        """Give contributions and prices: those of this round, and of an average one."""
        pairs = (self.p, self.w), self.sums
        return [(self._scaled(p / self.game.costs), self._prices(w)) for p, w in pairs]

    def _scaled(self, theta: Vector) -> Vector:
        return theta / float((self.game.apply(theta)[self.wanted] / self.need).min())

    def adapt(self, gap: float) -> None:
        """Begin a new average where the rounds have doubled, with smaller steps if that was idle.

        With steps that are small enough the gap halves.
        """
        if self.rounds - self.since < self.window:
            return
        if gap > 0.97 * self.gap:
            self.rate /= 2
        self.window, self.gap = self.rounds, gap
        self._forget()


def _weighted(weights: Vector, exponents: Vector) -> Vector:
    grown = weights * np.exp(exponents - exponents.max())
    # No weight ever vanishes for good.
    grown = np.maximum(grown, 1e-200)
    return np.asarray(grown / grown.sum())


def _grown_by_weights(game: LinearGame, *, tolerance: float, deadline: Deadline) -> Solution:
    """Let contributions grow within limits, those most that serve the weighted agents best.

    Every agent has a weight, w_i = exp(-rate * u_i / mu_i): unsatisfied agents weigh more. Weights
    divided by requirements are prices, so every round also proves a lower bound. That it reaches
    the tolerance is not proved.
    """
    wanted = np.flatnonzero(game.requirements > 0)
    need = np.where(game.requirements > 0, game.requirements, np.inf)
    rate = 2.0 * np.log(max(wanted.size, 2)) / max(tolerance, 1e-3)
    average = np.zeros(game.size)
    # Growing by factors needs a start above zero, of those too who need nothing themselves.
    needed = np.where(game.alone > 0, game.alone, game.alone.max())
    theta = np.maximum(game.minimums, 1e-3 * needed / game.size)
    best, lower, upper, prices = None, 0.0, np.inf, np.zeros(game.size)
    rounds = 0
    closed = wanted.size == 0
    while not closed and not deadline.passed:
        rounds += 1
        utility = game.apply(theta)
        cover = utility / need
        weights = np.zeros(game.size)
        weights[wanted] = np.exp(-rate * (cover[wanted] - cover[wanted].min()))
        trial = weights / need
        worth = game.apply_transposed(trial) / game.costs
        # The prices of all rounds, each scaled to what it proves, are better than any one round's.
        average += trial / worth.max()
        if rounds % 10 == 1:
            level = max(float(cover[wanted].min()), 1e-300)
            feasible, bounds = certified(game, theta / level, average / rounds)
            if bounds.lower > lower:
                lower, prices = bounds.lower, average / rounds
            if feasible is not None and bounds.upper < upper:
                best, upper = feasible, bounds.upper
            closed = best is not None and upper - lower <= tolerance * upper
        # Who has reached its limit cannot give more, however much it serves.
        worth = np.where(theta < game.limits, worth, 0.0)
        if not worth.any():
            break
        # A step that moves no coverage by more than 1/rate keeps the weights' first-order model.
        gain = np.maximum(worth / worth.max() - (1 - 1e-1), 0.0) * 10.0
        step = gain * theta
        moved = float((game.apply(step) / need)[wanted].max()) or 1.0
        theta = np.minimum(theta + step * min(1.0, 1.0 / (rate * moved)), game.limits)
    if wanted.size == 0:
        best = np.array(game.minimums)
        lower = upper = game.total(best)
    status = Status.OPTIMAL if closed else Status.FAILED if best is None else Status.LIMIT
    return Solution(
        game, "optimal", "multiplicative-weights", status, Interval(min(lower, upper), upper), best,
        certificate={"prices": prices, "rounds": rounds}, seconds=deadline.elapsed,
    )  # fmt: skip
