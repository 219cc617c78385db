"""The socially optimal allocation of a linear game by multiplicative weights."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.linear.optimal import certify
from fedaccord.equilibria.result import Claim, Interval, Solution, Status
from fedaccord.games.base import ROUNDING
from fedaccord.games.linear import DiscoveryGame, LinearGame

# Rounds before it is first asked whether they get anywhere.
FIRST_WINDOW = 256


def multiplicative_weights_optimal(claim: Claim[LinearGame]) -> Solution:
    """Approach LP 1 as a covering program by multiplicative weights, MW-FED's counterpart.

    Two kinds of weights take turns, and the best that either proves is kept: those of two players
    close in on any gap but are slow where requirements are of very different sizes; those under
    which contributions grow are quicker there but seldom come as near. With limits or minimums
    only the second kind is at hand, and that it reaches the tolerance is not proved.
    """
    game, tolerance = claim.game, claim.tolerance
    best = _Best(game)
    if not game.requirements.any():
        best.offer(np.array(game.minimums), np.zeros(game.size))
        return best.solution(claim, True, 0)
    growing = _Growing(game, tolerance)
    boxed = np.isfinite(game.limits).any() or game.minimums.any()
    methods: list[_Growing | _Players] = [growing] if boxed else [_Players(game), growing]
    while (
        not claim.deadline.passed
        and not best.is_closed(tolerance)
        and any(m.moves for m in methods)
    ):
        for method in methods:
            for _ in range(16 + method.rounds // 8):
                method.step()
            for given, prices in method.proposals():
                best.offer(given, prices)
            method.adapt(best)
    return best.solution(claim, best.is_closed(tolerance), sum(m.rounds for m in methods))


class _Best:
    """The best allocation and the best prices so far; any of either prove a bound."""

    def __init__(self, game: LinearGame) -> None:
        self.game = game
        self.given: Vector | None = None
        self.prices = np.zeros(game.size)
        self.lower, self.upper = 0.0, np.inf

    def offer(self, given: Vector, prices: Vector) -> None:
        feasible, bounds = certify(self.game, given, prices)
        if bounds.lower > self.lower:
            self.lower, self.prices = bounds.lower, prices
        if feasible is not None and bounds.upper < self.upper:
            self.given, self.upper = feasible, bounds.upper

    def is_closed(self, tolerance: float) -> bool:
        return self.given is not None and self.upper - self.lower <= tolerance * self.upper

    def solution(self, claim: Claim[LinearGame], closed: bool, rounds: int) -> Solution:
        found = Status.FAILED if self.given is None else Status.LIMIT
        # What is proved is proved up to rounding, and here the ends may meet.
        lower = min(self.lower, self.upper) * (1 - ROUNDING)
        return claim.solution(
            "multiplicative-weights", Status.OPTIMAL if closed else found,
            Interval(lower, self.upper * (1 + ROUNDING)), self.given,
            certificate={"prices": self.prices, "rounds": rounds},
        )  # fmt: skip


class _Players:
    """The two sets of weights of a covering program without limits.

    LP 1 is then a game between weights w on requirements and p on contributions,

        1 / (least total) = max over p of min over i (B p)_i = min over w of max over j (B'w)_j
        B_ij = W_ij / (mu_i c_j),   w and p >= 0, each of sum one.

    Each answers what the other just did plus what it did more than the round before (an optimistic
    step): so their averages approach a value at a rate of 1/rounds, where plain multiplicative
    weights circle around it.
    """

    moves = True

    def __init__(self, game: LinearGame) -> None:
        self.game = game
        self.wanted = np.flatnonzero(game.requirements > 0)
        self.need = game.requirements[self.wanted]
        # Where nobody is of use to others these weights are the answer at once.
        share = (game.alone * game.costs)[self.wanted]
        self.p = np.full(game.size, float(share.min()))
        self.p[self.wanted] = share
        self.p /= self.p.sum()
        self.w = share / share.sum()
        # Steps of a quarter over the largest B_ij are proved to work; longer ones mostly do, and
        # are halved where they do not.
        self.rate = 16.0 / _largest_entry(game, self.wanted)
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
        self.p = _reweight(self.p, self.rate * (2 * worth - self.worth))
        self.w = _reweight(self.w, -self.rate * (2 * cover - self.cover))
        self.cover, self.worth = cover, worth
        self.sums = self.sums[0] + self.p, self.sums[1] + self.w
        self.rounds += 1

    def proposals(self) -> list[tuple[Vector, Vector]]:
        """Return contributions and prices: those of this round, and of an average one."""
        pairs = (self.p, self.w), self.sums
        return [(self._scale_up(p / self.game.costs), self._prices(w)) for p, w in pairs]

    def _scale_up(self, theta: Vector) -> Vector:
        return theta / float((self.game.apply(theta)[self.wanted] / self.need).min())

    def adapt(self, best: _Best) -> None:
        """Go on from the best so far where the rounds have doubled, and begin a new average.

        Steps are halved if these rounds were idle: with steps that are small enough the gap halves.
        """
        if self.rounds - self.since < self.window:
            return
        gap = best.upper - best.lower
        if gap > 0.97 * self.gap:
            self.rate /= 2
        self.window, self.gap = self.rounds, gap
        if best.given is not None and best.lower > 0:
            self.p = _shares(best.given * self.game.costs)
            self.w = _shares(best.prices[self.wanted] * self.need)
            self.cover, self.worth = self._cover(), self._worth()
        self._forget()


def _largest_entry(game: LinearGame, wanted: Indices) -> float:
    """Return the largest B_ij, or a bound on it."""
    need = game.requirements[wanted]
    if isinstance(game, DiscoveryGame):
        # q_i q_j is at most the product of their lengths, and Q Q' itself may be large.
        lengths = np.sqrt(game.own_benefits)
        return float((lengths[wanted] / need).max() * (lengths / game.costs).max())
    rows = sparse.csr_array(game.benefits)[wanted]
    return float((sparse.diags_array(1 / need) @ rows @ sparse.diags_array(1 / game.costs)).max())


def _shares(weights: Vector) -> Vector:
    """Scale weights to a sum of one, none so small that it could not come back soon."""
    least = 1e-6 * weights.sum() / weights.size
    raised = np.maximum(weights, least)
    return np.asarray(raised / raised.sum())


def _reweight(weights: Vector, exponents: Vector) -> Vector:
    grown = weights * np.exp(exponents - exponents.max())
    # No weight ever vanishes for good.
    grown = np.maximum(grown, 1e-200)
    return np.asarray(grown / grown.sum())


class _Growing:
    """Contributions that grow within limits, those most that serve the weighted agents best.

    Every agent has a weight, w_i = exp(-rate * u_i / mu_i): unsatisfied agents weigh more. Weights
    divided by requirements are prices, so every round also proves a lower bound.
    """

    def __init__(self, game: LinearGame, tolerance: float) -> None:
        self.game = game
        self.wanted = np.flatnonzero(game.requirements > 0)
        self.need = np.where(game.requirements > 0, game.requirements, np.inf)
        self.rate = 2.0 * np.log(max(self.wanted.size, 2)) / max(tolerance, 1e-3)
        # Growing by factors needs a start above zero, of those too who need nothing themselves.
        needed = np.where(game.alone > 0, game.alone, game.alone.max())
        self.theta = np.maximum(game.minimums, 1e-3 * needed / game.size)
        self.sum = np.zeros(game.size)
        self.rounds, self.moves = 0, True

    def step(self) -> None:
        if not self.moves:
            return
        game, wanted = self.game, self.wanted
        cover = game.apply(self.theta) / self.need
        trial = np.zeros(game.size)
        trial[wanted] = np.exp(-self.rate * (cover[wanted] - cover[wanted].min()))
        trial /= self.need
        worth = game.apply_transposed(trial) / game.costs
        # The prices of all rounds, each scaled to what it proves, are better than any one round's.
        self.sum += trial / worth.max()
        self.rounds += 1
        # Who has reached its limit cannot give more, however much it serves.
        worth = np.where(self.theta < game.limits, worth, 0.0)
        self.moves = bool(worth.any())
        if not self.moves:
            return
        # A step that moves no coverage by more than 1/rate keeps the weights' first-order model.
        step = np.maximum(10.0 * worth / worth.max() - 9.0, 0.0) * self.theta
        moved = float((game.apply(step) / self.need)[wanted].max()) or 1.0
        step *= min(1.0, 1.0 / (self.rate * moved))
        self.theta = np.minimum(self.theta + step, game.limits)

    def proposals(self) -> list[tuple[Vector, Vector]]:
        """Return contributions, scaled until they suffice, and the average prices."""
        cover = (self.game.apply(self.theta) / self.need)[self.wanted]
        level = max(float(cover.min()), 1e-300)
        return [(self.theta / level, self.sum / max(self.rounds, 1))]

    def adapt(self, best: _Best) -> None:
        """Go on as before, whatever others found."""
