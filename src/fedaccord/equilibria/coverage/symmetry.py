"""What envy-freeness forces on coverage games: agents that must give alike, or no more than others.

In an envy-free allocation theta_i > theta_j implies that i, with j's burden, would fall short. So
wherever u_i(theta with i and j swapped) >= u_j(theta) whenever theta_i > theta_j, and mu_i <= mu_j,
theta_i <= theta_j must hold: otherwise i envied j. (And j's limit and i's minimum must let them
swap.) Three forms of this, each with its proof, generalise the paper's proof for the flower.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from fedaccord._checks import Indices, Vector
from fedaccord.equilibria.coverage.cuts import Cut
from fedaccord.equilibria.programs import linear_program, make_difference_rows
from fedaccord.equilibria.result import Deadline
from fedaccord.games.coverage import CoverageGame

# Work that finding symmetries may take: entries of columns looked at, classes compared in pairs,
# kinds of points an agent may have in that comparison, boxes divided.
ENTRIES_LIMIT = 2_000_000
CLASSES_LIMIT = 12
KINDS_LIMIT = 40
BOXES_LIMIT = 20_000

Kind: TypeAlias = frozenset[tuple[tuple[int, float], int]]


@dataclass(frozen=True)
class Symmetry:
    """Facts about every envy-free allocation.

    labels: the class of each agent; members of a class give alike.
    orders: pairs (a, b) of classes: members of a give no more than members of b.
    """

    labels: Indices
    orders: tuple[tuple[int, int], ...]

    @property
    def members(self) -> list[Indices]:
        """The agents of each class."""
        return [np.flatnonzero(self.labels == c) for c in range(int(self.labels.max()) + 1)]

    def rows(self) -> list[Cut]:
        """Return the facts as rows that are zero or more."""
        pairs = [(int(m[0]), int(i)) for m in self.members for i in m[1:]]
        pairs += [(i, j) for j, i in pairs]
        first = [int(m[0]) for m in self.members]
        pairs += [(first[a], first[b]) for a, b in self.orders]
        if not pairs:
            return []
        rows = make_difference_rows([(high, low) for low, high in pairs], len(self.labels))
        return [Cut(rows, np.zeros(len(pairs)))]


def find_symmetry(game: CoverageGame) -> Symmetry:
    """Find agents that must give alike, or no more than others, in every envy-free allocation."""
    labels = _number_keys([_twin_key(game, i) for i in range(game.size)])
    degrees = np.bincount(game.distributions.indices, minlength=game.points)
    while True:
        first = np.unique(labels, return_index=True)[1]
        work = sum(int(degrees[_points(game, int(i))].sum()) for i in first)
        if work > ENTRIES_LIMIT:
            return Symmetry(labels, ())
        merged = _number_keys([_class_key(game, labels, int(i)) for i in first])
        if merged.max() + 1 == len(first):
            break
        labels = merged[labels]
    if len(first) > CLASSES_LIMIT or len(first) == 1:
        return Symmetry(labels, ())
    orders = [
        (a, b)
        for a in range(len(first))
        for b in range(len(first))
        if a != b and _gives_no_more(game, labels, int(first[a]), int(first[b]))
    ]
    return Symmetry(labels, tuple(orders))


def _number_keys(keys: Sequence[Hashable]) -> Indices:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _points(game: CoverageGame, agent: int) -> Indices:
    low, high = game.distributions.indptr[agent : agent + 2]
    return np.asarray(game.distributions.indices[low:high], dtype=np.intp)


def _frame_key(game: CoverageGame, agent: int) -> tuple[float, float, float]:
    return (float(game.requirements[agent]), float(game.limits[agent]), float(game.minimums[agent]))


def _twin_key(game: CoverageGame, agent: int) -> Hashable:
    """Agents with the same key are twins, and give alike.

    They draw the same shared points with the same probabilities, so that a swap does not change
    what is seen of those; and as much of points of their own. So u_i(swapped) = u_j(theta).
    """
    starts = game.by_point[1]
    points = _points(game, agent)
    low, high = game.distributions.indptr[agent : agent + 2]
    rates = game.distributions.data[low:high].tolist()
    shared = (np.diff(starts)[points] > 1).tolist()
    counts = game.copies[points].tolist()
    kinds = Counter(
        (q, n, x if common else -1)
        for q, n, x, common in zip(rates, counts, points.tolist(), shared, strict=True)
    )
    return _frame_key(game, agent), frozenset(kinds.items())


def _column(game: CoverageGame, point: int) -> tuple[list[int], list[float]]:
    order, starts = game.by_point
    entries = order[starts[point] : starts[point + 1]]
    return game.rows[entries].tolist(), game.distributions.data[entries].tolist()


def _class_key(game: CoverageGame, labels: Indices, agent: int) -> Hashable:
    """Classes whose first members have the same key give alike.

    The key is all that an agent's utility depends on, with its own class called "own". No class
    sees the other then (it would stand under its label in one key and as "own" in the other). If
    i's class gives a, j's class b < a, then after the swap i has its burden b and classmates at a:
    u_i(swapped) is u_j(theta) with j's classmates raised from b to a, so at least u_j(theta).
    """
    kinds: Counter[Hashable] = Counter()
    for x in _points(game, agent).tolist():
        givers, rates = _column(game, x)
        others: Counter[Hashable] = Counter()
        own = 0.0
        for j, q in zip(givers, rates, strict=True):
            if j == agent:
                own = q
            else:
                label = -1 if labels[j] == labels[agent] else int(labels[j])
                others[label, q] += 1
        kinds[own, float(game.copies[x]), frozenset(others.items())] += 1
    return _frame_key(game, agent), frozenset(kinds.items())


def _gives_no_more(game: CoverageGame, labels: Indices, i: int, j: int) -> bool:
    """Return whether i's class provably gives no more than j's.

    Suppose i's class gives a and j's b < a. After a swap of i and j, each point x of i is missed
    with the chance of a product of p's; so is, before it, each point y of j. Where the factors of
    y are among those of x, x is missed less. If i's points, by weight, can be matched with points
    of j so, i misses after the swap no more than j before, and j is satisfied.
    """
    if game.requirements[i] > game.requirements[j]:
        return False
    if game.limits[i] > game.limits[j] or game.minimums[i] > game.minimums[j]:
        return False
    mine, theirs = (
        _kinds(game, labels, i, j, swapped=True),
        _kinds(game, labels, i, j, swapped=False),
    )
    if max(len(mine), len(theirs)) > KINDS_LIMIT:
        return False
    pairs = [
        (x, y)
        for x, (a, _) in enumerate(mine)
        for y, (b, _) in enumerate(theirs)
        if all(Counter(dict(a))[factor] >= n for factor, n in b)
    ]
    if not pairs:
        return False
    out, into = np.array(pairs).T
    count = np.arange(len(pairs))
    ones = np.ones(len(pairs))
    supply = sparse.csr_array((ones, (out, count)), shape=(len(mine), len(pairs)))
    demand = sparse.csr_array((ones, (into, count)), shape=(len(theirs), len(pairs)))
    # The most that can be matched is one, the whole weight, or i cannot be matched with j.
    answer = linear_program(
        -ones,
        0 * ones,
        ones,
        rows=sparse.vstack([supply, demand]),
        most=np.array([w for _, w in mine] + [w for _, w in theirs]),
    )
    return bool(answer.solved and -answer.bound >= sum(w for _, w in mine) - 1e-12)


def _kinds(
    game: CoverageGame, labels: Indices, i: int, j: int, *, swapped: bool
) -> list[tuple[Kind, float]]:
    """List the factors of the chance to miss each kind of point: i's after the swap, or j's."""
    weights: defaultdict[Kind, float] = defaultdict(float)
    viewer = i if swapped else j
    trade = {i: int(labels[j]), j: int(labels[i])} if swapped else {}
    for x in _points(game, viewer).tolist():
        givers, rates = _column(game, x)
        factors: Counter[tuple[int, float]] = Counter()
        for agent, q in zip(givers, rates, strict=True):
            factors[trade.get(agent, int(labels[agent])), q] += 1
        own = rates[givers.index(viewer)]
        weights[frozenset(factors.items())] += own * float(game.copies[x])
    return list(weights.items())


# The least total of one amount per class.


@dataclass(frozen=True)
class Quotient:
    """The game of the classes: one amount each, one requirement each (of the first member)."""

    symmetry: Symmetry
    costs: Vector
    low: Vector
    high: Vector
    goals: Vector
    kinds: list[tuple[Vector, Any, Vector, Vector, Vector]]

    def satisfied(self, amounts: Vector) -> bool:
        """Return whether the first member of every class is satisfied."""
        return all(
            self.missed(c, amounts) <= goal * (1 + 1e-14) for c, goal in enumerate(self.goals)
        )

    def missed(self, number: int, amounts: Vector) -> float:
        """Return sum_x q_ix E_x of the first member of a class."""
        weights, starts, classes, rates, counts = self.kinds[number]
        given = amounts[classes.astype(np.intp)]
        whole = np.floor(given)
        misses = (1 - rates) ** whole * (1 - (given - whole) * rates)
        return float(weights @ np.multiply.reduceat(misses**counts, starts))


def quotient(game: CoverageGame, symmetry: Symmetry) -> Quotient:
    """Make the game of the classes."""
    first = [int(m[0]) for m in symmetry.members]
    kinds = []
    for i in first:
        parts = _kinds(game, symmetry.labels, i, i, swapped=False)
        factors = [sorted(kind) for kind, _ in parts]
        starts = np.cumsum([0, *(len(f) for f in factors[:-1])])
        flat = np.array([(*factor, n) for f in factors for factor, n in f], dtype=np.float64)
        kinds.append((np.array([w for _, w in parts]), starts, *flat.T))
    costs = np.array([float(game.costs[m].sum()) for m in symmetry.members])
    goals = 2 * (1 - game.requirements[first])
    return Quotient(symmetry, costs, game.minimums[first], game.limits[first], goals, kinds)


def least_by_class(
    classes: Quotient, upper: float, gap: float, deadline: Deadline
) -> tuple[float, Vector | None]:
    """Bound from below the total of one amount per class that satisfies all and keeps the orders.

    More never hurts, so that over a box low <= v <= high no class can give less than what it takes
    with all others at high; boxes are narrowed by this, cut off at the upper bound, and halved.
    Gives the bound, and a point that attains it within the gap if one was met below upper.
    """
    best, point = upper, None
    low = np.array(classes.low)
    high = np.minimum(classes.high, low + (upper - classes.costs @ low) / classes.costs)
    heap = [(float(classes.costs @ low), 0, low, high)]
    for count in range(1, BOXES_LIMIT):
        if not heap or heap[0][0] >= best - gap or deadline.passed:
            break
        _, _, low, high = heapq.heappop(heap)
        narrow = _narrow(classes, low, high, best)
        if narrow is None:
            continue
        low, high = narrow
        if classes.satisfied(low) and classes.costs @ low < best:
            best, point = float(classes.costs @ low), low
            continue
        widest = int(np.argmax((high - low) * classes.costs))
        middle = (low[widest] + high[widest]) / 2
        left, right = high.copy(), low.copy()
        left[widest] = right[widest] = middle
        heapq.heappush(heap, (float(classes.costs @ low), 2 * count, low, left))
        heapq.heappush(heap, (float(classes.costs @ right), 2 * count + 1, right, high))
    bound = min(best, heap[0][0]) if heap else best
    return bound, point


def _narrow(
    classes: Quotient, low: Vector, high: Vector, best: float
) -> tuple[Vector, Vector] | None:
    low, high = low.copy(), high.copy()
    for _ in range(3):
        for a, b in classes.symmetry.orders:
            high[a] = min(high[a], high[b])
            low[b] = max(low[b], low[a])
        high = np.minimum(high, low + (best - classes.costs @ low) / classes.costs)
        if (low > high).any() or not classes.satisfied(high):
            return None
        for c in range(len(low)):
            low[c] = _least_amount(classes, c, low, high)
    return (low, high) if (low <= high).all() and classes.costs @ low < best else None


def _least_amount(classes: Quotient, number: int, low: Vector, high: Vector) -> float:
    """Return a bound below which a class makes the box infeasible, whatever the others give."""
    trial = high.copy()
    below, above = float(low[number]), float(high[number])
    trial[number] = below
    if classes.satisfied(trial):
        return below
    for _ in range(45):
        trial[number] = middle = (below + above) / 2
        below, above = (below, middle) if classes.satisfied(trial) else (middle, above)
    return below
