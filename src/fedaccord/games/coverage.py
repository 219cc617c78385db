"""Random coverage: an agent's utility is the accuracy it gets from points anyone has seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fedaccord._checks import (
    Indices,
    Matrix,
    Vector,
    as_numbers,
    exact_numbers,
    frozen,
    simplest_fraction,
)
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import NEAR, Certified, Game, Refuted, Unknown, WellBehaved
from fedaccord.games.base import ROUNDING as SUM_ROUNDING
from fedaccord.games.linear import Sparse, check_distributions

# Stands for log(1 - q) where q = 1: exp(m * CERTAIN) is exactly 0 for every m >= 1 and exactly 1
# for m = 0, as 0^0 = 1 asks, and no product with a count leaves the range of a double.
CERTAIN = -1e100

# Sums of probabilities carry rounding errors of a few units in the last place; a requirement that
# is met but for those is met.
ROUNDING = 4e-15

# Above this many agents the products q_i q_j of all pairs are bounded instead of computed.
PAIRS_LIMIT = 5_000


class CoverageGame(Game):
    """Random coverage: half of what nobody has seen of an agent's points is misclassified.

        u_i(theta) = 1 - 1/2 sum_x q_ix prod_j p_jx
        p_jx       = (1 - q_jx)^floor(theta_j) (1 - f_j q_jx)

    f_j is the fraction of theta_j: a real contribution is rounded at random to one of the two whole
    numbers around it, with itself as the mean.

    distributions: Q, k x n, dense or scipy.sparse; row i is agent i's distribution over points.
    requirements and the rest: see Game.
    copies: how many points each column stands for, all alike; one where left out. Then q_ix is the
        probability of each copy, and the rows of Q times copies sum to one.
    """

    model: ClassVar[str] = "coverage"
    distributions: Sparse
    copies: Vector

    def __init__(
        self,
        distributions: Any,
        requirements: ArrayLike,
        *,
        copies: ArrayLike | None = None,
        **frame: Any,
    ) -> None:
        super().__init__(requirements, **frame)
        if copies is None:
            self.distributions = check_distributions(distributions, self.size, self.name)
            self.copies = frozen(np.ones(self.points))
        else:
            self.copies, self.distributions = self._read_copies(distributions, copies)
        self._check_reachable()

    def _read_copies(self, distributions: Any, copies: ArrayLike) -> tuple[Vector, Sparse]:
        counts = as_numbers(copies, "copies")
        if not sparse.issparse(distributions):
            distributions = np.atleast_2d(as_numbers(distributions, "distributions"))
        rates = sparse.csr_array(distributions, dtype=np.float64, copy=True)
        if counts.shape != rates.shape[1:]:
            raise InputError(
                f"copies must have one number per point, {rates.shape[1]}; got shape {counts.shape}"
            )
        if not ((counts >= 1) & (counts == np.floor(counts)) & (counts <= 2.0**53)).all():
            point = int(np.argmin((counts >= 1) & (counts == np.floor(counts))))
            raise InputError(
                f"copies of point {point} is {counts[point]:g}: give a whole number, one at least"
            )
        rates.sum_duplicates()
        weights = sparse.csr_array(rates * counts[np.newaxis, :])
        check_distributions(weights, self.size, self.name)
        rates.eliminate_zeros()
        rates.data.setflags(write=False)
        return frozen(counts), rates

    def _check_reachable(self) -> None:
        if not (self.requirements >= 1).any():
            return
        certain = np.asarray([self._rates[self._span(i)].min() == 1 for i in range(self.size)])
        hopeless = (self.requirements > 1) | ((self.requirements == 1) & ~certain)
        if hopeless.any():
            agent = int(np.argmax(hopeless))
            raise UnreachableError(
                f"the requirement of {self.name(agent)} is {self.requirements[agent]:g}, an "
                "accuracy that no number of samples is sure to reach: give a requirement below 1"
            )

    # Q entry by entry: one array per quantity, in the order of the rows, and a view by point.

    @property
    def points(self) -> int:
        """How many different points there are, n."""
        return int(self.distributions.shape[1])

    @property
    def _rates(self) -> Vector:
        return np.asarray(self.distributions.data)

    def _span(self, agent: int) -> slice:
        return slice(*self.distributions.indptr[agent : agent + 2].tolist())

    @cached_property
    def rows(self) -> Indices:
        """The agent of each entry of Q."""
        return frozen(np.repeat(np.arange(self.size), np.diff(self.distributions.indptr)))

    @cached_property
    def weights(self) -> Sparse:
        """Q times copies: the probability of all that each column stands for."""
        return sparse.csr_array(
            (self._rates * self.copies[self.distributions.indices], *self._pattern),
            shape=self.distributions.shape,
        )

    @property
    def _pattern(self) -> tuple[Any, Any]:
        return self.distributions.indices, self.distributions.indptr

    @cached_property
    def log_misses(self) -> Vector:
        """log(1 - q) of each entry of Q; CERTAIN where q is 1."""
        result = np.full(len(self._rates), CERTAIN)
        np.log1p(-self._rates, out=result, where=self._rates < 1)
        return frozen(result)

    @cached_property
    def by_point(self) -> tuple[Indices, Indices]:
        """The entries of Q in the order of points, and where each point's entries begin."""
        order = np.argsort(self.distributions.indices, kind="stable")
        counts = np.bincount(self.distributions.indices, minlength=self.points)
        return frozen(order), frozen(np.concatenate([[0], np.cumsum(counts)]))

    @cached_property
    def _blocks(self) -> list[Matrix]:
        order, starts = self.by_point
        return [order[block] for block in _segments(starts)]

    @cached_property
    def is_uniform(self) -> bool:
        """Whether each agent is uniform on a set of points, up to rounding."""
        first = self._rates[self.distributions.indptr[:-1]]
        return bool((np.abs(self._rates - first[self.rows]) <= 1e-12 * first[self.rows]).all())

    # What the agents see.

    def misses(self, contributions: Vector) -> Vector:
        """Return p_jx for each entry of Q: the chance that agent j never draws x."""
        return _misses(self._rates, self.log_misses, contributions[self.rows])

    def unseen(self, contributions: Vector) -> Vector:
        """Return E_x = prod_j p_jx for each point: the chance that nobody draws it."""
        return self._products(self.misses(contributions))

    def _products(self, misses: Vector) -> Vector:
        order, starts = self.by_point
        result = np.ones(self.points)
        some = np.flatnonzero(np.diff(starts))
        result[some] = np.multiply.reduceat(misses[order], starts[some])
        return result

    def others(self, contributions: Vector) -> Vector:
        """Return prod_{l != j} p_lx for each entry (j, x) of Q, without any division."""
        return _leave_one_out(self.misses(contributions), self._blocks)

    def utilities(self, contributions: Vector) -> Vector:
        """Return 1 - 1/2 sum_x q_ix E_x."""
        return np.asarray(1 - 0.5 * (self.weights @ self.unseen(contributions)))

    def smooth_utilities(self, contributions: Vector) -> Vector:
        """Return the utilities with (1 - q)^theta in place of randomized rounding.

        (1 - q)^t is convex, so that by Jensen's inequality p_jx >= (1 - q_jx)^theta_j: these are
        at least the utilities, equal at whole contributions, and bounds on totals come from them.
        """
        misses = np.exp(self.log_misses * contributions[self.rows])
        return np.asarray(1 - 0.5 * (self.weights @ self._products(misses)))

    def jacobian(self, contributions: Vector) -> Matrix:
        """Return the right-hand derivatives as a k x k array (the paper's appendix on them).

        du_i / dtheta_j = 1/2 sum_x q_ix prod_{l != j} p_lx q_jx (1 - q_jx)^floor(theta_j)
        """
        floors = np.floor(contributions)[self.rows]
        gains = self.others(contributions) * self._rates * np.exp(self.log_misses * floors)
        change = sparse.csr_array((gains, *self._pattern), shape=self.distributions.shape)
        return np.asarray(0.5 * (self.weights @ change.T).toarray())

    # Best responses.

    def _responses(self, contributions: Vector) -> Vector:
        starts = self.distributions.indptr[:-1].astype(np.intp)
        rest = self.weights.data * self.others(contributions)
        return _least_whole(self.log_misses, rest, starts, 2 * (1 - self.requirements))

    def _response(self, agent: int, contributions: Vector) -> float:
        span = self._span(agent)
        rest = self.weights.data[span] * self._others_of(agent, contributions)
        goal = np.array([2 * (1 - self.requirements[agent])])
        start = np.zeros(1, dtype=np.intp)
        return float(_least_whole(self.log_misses[span], rest, start, goal)[0])

    def _neighbourhood(self, agent: int) -> tuple[Indices, Indices]:
        """Return all entries of Q at an agent's points, point by point, and where each begins."""
        order, starts = self.by_point
        points = self.distributions.indices[self._span(agent)]
        first, sizes = starts[points], starts[points + 1] - starts[points]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        steps = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)
        return order[np.repeat(first, sizes) + steps], begins

    def _others_of(self, agent: int, contributions: Vector) -> Vector:
        """Return prod_{l != i} p_lx for each point x of one agent."""
        entries, begins = self._neighbourhood(agent)
        misses = self._local_misses(agent, entries, contributions)
        return np.asarray(np.multiply.reduceat(misses, begins[:-1]))

    def _local_misses(self, agent: int, entries: Indices, contributions: Vector) -> Vector:
        given = contributions[self.rows[entries]]
        misses = _misses(self._rates[entries], self.log_misses[entries], given)
        misses[self.rows[entries] == agent] = 1.0
        return misses

    # Swaps, neighbours and rates, for the check.

    def helpers(self, agent: int) -> Indices:
        """Return the agents that share a point with one agent, itself included."""
        return np.unique(self.rows[self._neighbourhood(agent)[0]])

    def own_rates(self, agents: Indices, contributions: Vector) -> Vector:
        """Return what one of an agent's own samples adds to its utility, on average over them."""
        return np.array([self._own_rate(agent, contributions) for agent in agents.tolist()])

    def _own_rate(self, agent: int, contributions: Vector) -> float:
        span = self._span(agent)
        rest = self.weights.data[span] * self._others_of(agent, contributions)
        given = contributions[agent] or 1.0
        misses = _misses(self._rates[span], self.log_misses[span], np.float64(given))
        return float(0.5 * (rest @ (1 - misses)) / given)

    def swapped_utilities(self, contributions: Vector, agent: int, others: Indices) -> Vector:
        """Return the agent's utility after swapping its contribution with each of the others."""
        span = self._span(agent)
        entries, begins = self._neighbourhood(agent)
        givers = self.rows[entries]
        misses = self._local_misses(agent, entries, contributions)
        rest = self.weights.data[span] * np.multiply.reduceat(misses, begins[:-1])
        # With j's amount in the agent's place, and j's own effect on shared points as it was ...
        amounts, which = np.unique(contributions[others], return_inverse=True)
        own = np.empty((len(amounts), len(rest)))
        for row, amount in enumerate(amounts):
            own[row] = _misses(self._rates[span], self.log_misses[span], np.float64(amount))
        loss = (own @ rest)[which]
        # ... then j's effect on shared points replaced by that of the agent's amount.
        column = np.repeat(np.arange(len(rest)), np.diff(begins))
        place = np.full(self.size, -1)
        place[others] = np.arange(len(others))
        shared = (place[givers] >= 0) & (givers != agent)
        swapped = _misses(self._rates[entries], self.log_misses[entries], contributions[agent])
        without = _leave_one_out(misses, _segments(begins))
        change = (without * (swapped - misses) * self.weights.data[span][column])[shared]
        at = place[givers[shared]]
        change *= own[which[at], column[shared]]
        loss = loss + np.bincount(at, weights=change, minlength=len(others))
        return np.asarray(1 - 0.5 * loss)

    # Exact arithmetic and derivatives' bounds.

    @cached_property
    def _exact_rates(self) -> dict[float, Fraction]:
        return {}

    def _exact_rate(self, rate: float) -> Fraction:
        found = self._exact_rates.get(rate)
        if found is None:
            found = self._exact_rates[rate] = simplest_fraction(rate)
        return found

    def exact_utility(self, agent: int, contributions: Sequence[Fraction]) -> Fraction:
        """Return u_i(theta) in Fractions, whole or not."""
        return 1 - self._exact_loss(agent, contributions, frozenset()) / 2

    def short_at_limits(self) -> int | None:
        """Return an agent that is short whatever everybody gives; None where none is.

        An agent without a limit leaves as little of its points unseen as you like, nothing if it is
        certain of them.
        """
        limited = np.isfinite(self.limits)
        if not limited.any():
            return None
        # As many samples as leave nothing unseen in doubles.
        slack = self.utilities(np.where(limited, self.limits, 1e100)) - self.requirements
        near = np.flatnonzero(slack < NEAR).tolist()
        return next((agent for agent in near if self._is_out_of_reach(agent)), None)

    def _is_out_of_reach(self, agent: int) -> bool:
        """Return whether u_i stays below mu_i within all limits; over the reals, up to rounding."""
        entries, begins = self._neighbourhood(agent)
        limits = self.limits[self.rows[entries]]
        seen = np.logical_or.reduceat(np.isinf(limits), begins[:-1])
        certain = np.logical_or.reduceat((self._rates[entries] == 1) & (limits >= 1), begins[:-1])
        given = exact_numbers(np.where(np.isfinite(self.limits), self.limits, 0.0))
        nearest = 1 - self._exact_loss(agent, given, frozenset(np.flatnonzero(seen).tolist())) / 2
        need = self.exact_requirements[agent]
        if nearest == need and (seen & ~certain).any():
            return True
        return nearest < (need if self.is_integer else need * (1 - Fraction(SUM_ROUNDING)))

    def _exact_loss(
        self, agent: int, contributions: Sequence[Fraction], seen: frozenset[int]
    ) -> Fraction:
        """Return sum_x q_ix E_x in Fractions, but for those of the agent's points that are seen."""
        entries, begins = self._neighbourhood(agent)
        givers, rates = self.rows[entries].tolist(), self._rates[entries].tolist()
        points = self.distributions.indices[self._span(agent)]
        own, counts = self._rates[self._span(agent)].tolist(), self.copies[points].tolist()
        unseen = Fraction(0)
        for n, (low, high) in enumerate(pairwise(begins.tolist())):
            if n in seen:
                continue
            chance = self._exact_rate(own[n]) * int(counts[n])
            # Exponents are added up first: powers of large fractions are what takes time.
            exponents: Counter[float] = Counter()
            for giver, rate in zip(givers[low:high], rates[low:high], strict=True):
                given = contributions[giver]
                whole = given.numerator // given.denominator
                exponents[rate] += whole
                if given != whole:
                    chance *= 1 - (given - whole) * self._exact_rate(rate)
            for rate, exponent in exponents.items():
                chance *= (1 - self._exact_rate(rate)) ** exponent
            unseen += chance
        return unseen

    def well_behaved(self, box: ArrayLike | None = None) -> WellBehaved:
        """Decide well-behavedness on the product of [0, C_i]; default C = alone.

            c2_i = 1/2 sum_x q_ix^2 (1 - q_ix)^(ceil(C_i) - 1) prod_{l != i} p_lx(C_l)
            c1_i = max_{j != i} 1/2 q_i q_j

        Both are attained: an own sample adds least at the last whole step below C with the others
        at C, another's adds most when nobody has given anything.
        """
        corner = self._per_agent(self.alone if box is None else box, "box", 0.0)
        last = np.maximum(np.ceil(corner) - 1, 0)[self.rows]
        remaining = np.exp(self.log_misses * last)
        parts = self.weights.data * self._rates * remaining * self.others(corner)
        own = 0.5 * np.add.reduceat(parts, self.distributions.indptr[:-1])
        if (own > 0).all():
            return Certified(frozen(own), frozen(self._largest_cross_rates()), corner)
        for i in np.flatnonzero(own == 0):
            if self._is_covered(int(i), corner):
                return Refuted(
                    int(i),
                    corner,
                    f"here all points of {self.name(int(i))} are sure to be seen without its last "
                    "sample, which adds nothing",
                )
        return Unknown("the least gain from an own sample is too small for a double")

    def _is_covered(self, agent: int, corner: Vector) -> bool:
        """Return whether all points of an agent are drawn surely before its own last sample."""
        entries, begins = self._neighbourhood(agent)
        sure = (self._rates[entries] == 1) & (corner[self.rows[entries]] >= 1)
        own = self.rows[entries] == agent
        sure[own] = (self._rates[entries][own] == 1) & (corner[agent] > 1)
        return bool(np.logical_or.reduceat(sure, begins[:-1]).all())

    def _largest_cross_rates(self) -> Vector:
        if self.size == 1:
            return np.zeros(1)
        if self.size <= PAIRS_LIMIT:
            pairs = (self.weights @ self.distributions.T).tolil()
            pairs.setdiag(0.0)
            return np.asarray(0.5 * pairs.tocsr().max(axis=1).toarray()).ravel()
        # An upper bound: sum_x q_ix max_{j != i} q_jx is at least q_i q_j for every j.
        top = np.zeros(self.points)
        np.maximum.at(top, self.distributions.indices, self._rates)
        return np.asarray(0.5 * (self.weights @ top))

    # The game as data.

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        matrix = self.distributions if keep is None else self.distributions[keep]
        plain = bool((self.copies == 1).all())
        return {"distributions": matrix, "copies": None if plain else self.copies}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        result = {"model": "coverage", **self._frame_dict()}
        result["distributions"] = self.distributions.toarray().tolist()
        if (self.copies != 1).any():
            result["copies"] = [int(n) for n in self.copies]
        return result


def _misses(rates: Vector, logs: Vector, given: Vector | np.float64) -> Vector:
    """Return (1 - q)^floor(t) (1 - frac(t) q), with 0^0 = 1."""
    whole = np.floor(given)
    return np.asarray(np.exp(logs * whole) * (1 - (given - whole) * rates))


def _segments(starts: Indices) -> list[Matrix]:
    """Group consecutive segments by length: one array of places per length, a row a segment.

    There are at most sqrt(2 * entries) different lengths, so a loop over them is short.
    """
    sizes = np.diff(starts)
    return [
        starts[:-1][sizes == size][:, np.newaxis] + np.arange(size)
        for size in np.unique(sizes[sizes > 0])
    ]


def _leave_one_out(values: Vector, blocks: Sequence[Matrix]) -> Vector:
    """Return for each value the product of the others in its row, from prefixes and suffixes."""
    result = np.ones(len(values))
    for block in blocks:
        if block.shape[1] == 1:
            continue
        part = values[block]
        products = np.ones(part.shape)
        np.cumprod(part[:, :-1], axis=1, out=products[:, 1:])
        products[:, :-1] *= np.cumprod(part[:, :0:-1], axis=1)[:, ::-1]
        result[block] = products
    return result


def _least_whole(logs: Vector, rest: Vector, starts: Indices, goals: Vector) -> Vector:
    """Return each agent's least t >= 0 with S(t) <= goal, S(t) = sum_x rest_x p_x(t).

    At whole t, S(t) = sum_x rest_x (1 - q_x)^t, and p is linear between: the root is found among
    whole numbers and interpolated. log S is convex over the reals, so that Newton's method from
    t = 1 climbs to the real root of the smooth S without passing it; the whole number below is then
    checked, and corrected, by S itself. (From t = 1, as points with q = 1 are gone by then.)
    """
    sizes = np.diff(np.append(starts, len(logs)))
    goals = goals * (1 + ROUNDING)

    def left(amounts: Vector) -> Vector:
        return np.add.reduceat(rest * np.exp(logs * np.repeat(amounts, sizes)), starts)

    low = np.zeros(len(goals))
    at_zero, at_one = left(low), left(low + 1)
    needy = at_zero > goals
    later = at_one > goals
    if later.any():
        low = np.where(later, _climb(logs, rest, starts, sizes, goals, later), low)
        at_zero, at_one = left(low), left(low + 1)
    frac = np.zeros(len(goals))
    np.divide(at_zero - goals, at_zero - at_one, out=frac, where=needy & (at_zero > at_one))
    return np.where(needy, low + np.clip(frac, 0.0, 1.0), 0.0)


def _climb(
    logs: Vector, rest: Vector, starts: Indices, sizes: Indices, goals: Vector, active: Any
) -> Vector:
    """Return the largest whole t >= 1 with S(t) > goal, for the active agents."""
    amounts = np.ones(len(goals))
    for _ in range(1000):
        parts = rest * np.exp(logs * np.repeat(amounts, sizes))
        total = np.add.reduceat(parts, starts)
        # Where q = 1 the part is exactly zero from t = 1 on, and so is its share of the slope.
        slope = -np.add.reduceat(parts * np.maximum(logs, -745.0), starts)
        step = np.zeros(len(goals))
        climbing = active & (total > goals)
        ratio = np.divide(total, goals, out=np.ones(len(goals)), where=climbing)
        np.divide(total * np.log(ratio), slope, out=step, where=climbing)
        amounts += step
        if (step <= 1e-12 * amounts).all() or (step < 0.01).all():
            break
    amounts = np.floor(amounts)
    for _ in range(8):
        total = np.add.reduceat(rest * np.exp(logs * np.repeat(amounts, sizes)), starts)
        after = np.add.reduceat(rest * np.exp(logs * np.repeat(amounts + 1, sizes)), starts)
        move = np.where(total <= goals, -1.0, np.where(after > goals, 1.0, 0.0)) * active
        if not move.any():
            break
        amounts = np.maximum(amounts + move, 1.0)
    return amounts
