"""Exact expectations over samples: what a learner knows after them, and how well it then does.

What an agent's m samples say about the worlds is a likelihood vector. Two samples with
proportional vectors say the same, so each such direction is kept once (an integer vector without
common factor) together with the weight of all samples that lead to it. Which directions occur
settles after a few samples in most games, and then only weights, whole numbers of any size, change.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord.errors import ExactnessError
from fedaccord.games.pac.worlds import Item, World

# Products of whole numbers below this are exact in int64; sums of such products in float64 are
# exact below the other.
INT64_SAFE = 2**62
FLOAT_SAFE = 2**53
# Larger tables than this, in bytes, are not made; a Python int takes about this many.
LARGEST_TABLE = 2**29
INT_BYTES = 64
# An agent that needs more own samples than this is not followed exactly.
MOST_SAMPLES = 100_000
# The count that stands for infinitely many samples.
FOREVER = -1

Objects = NDArray[Any]


@dataclass(frozen=True, eq=False)
class States:
    """What may be known at some stage: one row per distinct state.

    knowledge: the state itself; rows of likelihoods, or sets of seen samples as bit masks.
    possible: which worlds are not ruled out in each state.
    """

    knowledge: NDArray[Any]
    possible: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.knowledge)


@dataclass(frozen=True, eq=False)
class Join:
    """How the states of two independent samples join: row left[n] with right[n], in runs.

    states: the joint states; starts: where each state's run begins.
    factors: what each pair's weight is multiplied by.
    """

    states: States
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    starts: NDArray[np.intp]
    factors: Objects


@dataclass(frozen=True, eq=False)
class Table:
    """States with their weights (per state, or per state and world) over a common scale."""

    states: States
    weights: Objects
    scale: int


class Posteriors(ABC):
    """Tables of what samples reveal, for one classifier; a subclass says what a state is."""

    def __init__(self, worlds: Sequence[World]) -> None:
        self.worlds = worlds
        self.size = len(worlds[0].samples)
        self.prior_scale = math.lcm(*(w.prior.denominator for w in worlds))
        self.prior = _whole([w.prior * self.prior_scale for w in worlds])
        self.scales = [
            math.lcm(*(p.denominator for w in worlds for _, _, p in w.samples[agent]))
            for agent in range(self.size)
        ]
        self.outcomes = [_outcomes(worlds, agent) for agent in range(self.size)]
        self.chances = [
            _chances(worlds, agent, self.outcomes[agent], self.scales[agent])
            for agent in range(self.size)
        ]
        self._levels: dict[tuple[int, int], Table] = {}
        self._tables: dict[tuple[int, ...], Table] = {}
        self._utilities: dict[tuple[int, tuple[int, ...]], Fraction] = {}
        self._joins: dict[tuple[int, int], tuple[States, States, Join]] = {}
        self._scores: dict[tuple[int, int], tuple[States, Objects]] = {}
        self._known: dict[bytes, States] = {}

    @abstractmethod
    def _one_sample(self, agent: int) -> Table:
        """Return the states after one sample of an agent."""

    @abstractmethod
    def _all_samples(self, agent: int) -> Table:
        """Return the states after infinitely many samples of an agent."""

    @abstractmethod
    def _no_sample(self) -> Table:
        """Return the single state before any sample."""

    @abstractmethod
    def _join(self, left: States, right: States) -> Join:
        """Join the states of two independent samples."""

    @abstractmethod
    def _expected(self, agent: int, table: Table) -> int:
        """Return the weighted score of an agent, over prior scale, own scale and table scale."""

    def utility(self, agent: int, counts: tuple[int, ...]) -> Fraction:
        """Return u_i at whole numbers of samples, of which some may be FOREVER."""
        key = agent, counts
        if key not in self._utilities:
            table = self._table(counts)
            scale = table.scale * self.prior_scale * self.scales[agent]
            self._utilities[key] = Fraction(self._expected(agent, table), scale)
        return self._utilities[key]

    def point_starts(self, agent: int) -> list[int]:
        """Return where the outcomes of each point begin among an agent's outcomes."""
        points = [x for x, _ in self.outcomes[agent]]
        return [n for n, x in enumerate(points) if n == 0 or points[n - 1] != x]

    def _table(self, counts: tuple[int, ...]) -> Table:
        """Join all agents' tables; those of the first agents alone are kept for the next call."""
        if counts in self._tables:
            return self._tables[counts]
        last = max((j for j, m in enumerate(counts) if m), default=None)
        if last is None:
            table = self._no_sample()
        else:
            before = (*counts[:last], *(0,) * (self.size - last))
            level = self._level(last, counts[last])
            table = self._join_tables(self._table(before), level) if any(before) else level
        if len(self._tables) > 2_000:
            self._tables.clear()
        self._tables[counts] = table
        return table

    def _level(self, agent: int, count: int) -> Table:
        """Return the table of one agent's samples, built up one sample at a time."""
        if count == FOREVER:
            return self._all_samples(agent)
        if count > MOST_SAMPLES:
            raise ExactnessError(
                f"this game asks for more than {MOST_SAMPLES:,} samples of one agent: too many "
                "for exact tables; estimate it with SampledPacGame, or lower the requirement"
            )
        have = count
        while have > 1 and (agent, have) not in self._levels:
            have -= 1
        table = self._levels.setdefault((agent, have), self._one_sample(agent))
        for m in range(have + 1, count + 1):
            table = self._join_tables(table, self._levels[agent, 1])
            self._levels[agent, m] = table
        return table

    def _join_tables(self, left: Table, right: Table) -> Table:
        # The States are kept beside the join, so that their ids cannot be used again.
        key = id(left.states), id(right.states)
        if key not in self._joins:
            self._joins[key] = left.states, right.states, self._join(left.states, right.states)
        join = self._joins[key][2]
        weights = left.weights[join.left] * right.weights[join.right] * join.factors
        summed = np.add.reduceat(weights, join.starts, axis=0)
        return Table(join.states, summed, left.scale * right.scale)

    def _keep(self, states: States) -> States:
        """Return the same object for the same states, so that joins and scores are found again."""
        exact = states.knowledge.dtype == object
        digest = blake2b(
            repr(states.knowledge.tolist()).encode() if exact else states.knowledge.data
        )
        digest.update(states.possible.data)
        return self._known.setdefault(digest.digest(), states)

    def _pairs(
        self, left: States, right: States, kind: type
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """List the pairs of states that can both hold in some world."""
        both = left.possible.astype(np.float32) @ right.possible.astype(np.float32).T
        rows, columns = np.nonzero(both)
        width = INT_BYTES if kind is object else np.dtype(kind).itemsize
        if len(rows) * len(self.worlds) * width > LARGEST_TABLE:
            raise ExactnessError(
                f"these samples lead to {len(rows):,} states over {len(self.worlds)} worlds: too "
                "many for exact tables; estimate the game with SampledPacGame"
            )
        return rows, columns


class BayesPosteriors(Posteriors):
    """The learner labels every point with its likeliest label, given all samples.

        u_i(m) = sum over samples S and points x of
                     max over labels y of  sum over worlds w of prior_w L_w(S) D_i^w(x, y)

    The maximum is homogeneous in L, so samples with proportional likelihoods may be merged.
    """

    def _no_sample(self) -> Table:
        return self._from_rows(np.ones((1, len(self.worlds)), dtype=np.int64), 1)

    def _one_sample(self, agent: int) -> Table:
        return self._from_rows(self.chances[agent].T, self.scales[agent])

    def _all_samples(self, agent: int) -> Table:
        # Infinitely many samples reveal an agent's distribution and nothing else.
        _, kind = np.unique(self.chances[agent].astype(str), axis=0, return_inverse=True)
        return self._from_rows((kind.ravel() == np.unique(kind)[:, None]).astype(np.int64), 1)

    def _from_rows(self, rows: NDArray[Any], scale: int) -> Table:
        states, order, starts, factors = self._merge(rows)
        weights = np.add.reduceat(factors[order], starts)
        return Table(states, weights, scale)

    def _join(self, left: States, right: States) -> Join:
        # Narrow integers, where products fit them: these rows are the bulk of all memory used.
        kind = _kind(_largest(left.knowledge) * _largest(right.knowledge))
        rows, columns = self._pairs(left, right, kind)
        product: NDArray[Any] = left.knowledge.astype(kind)[rows]
        product *= right.knowledge.astype(kind)[columns]
        states, order, starts, factors = self._merge(product)
        return Join(states, rows[order], columns[order], starts, factors[order])

    def _merge(
        self, rows: NDArray[Any]
    ) -> tuple[States, NDArray[np.intp], NDArray[np.intp], Objects]:
        """Divide rows by their common factors and sort them into runs of equal ones."""
        if _largest(rows) == 1:
            factors = np.ones(len(rows), dtype=np.int64)
        else:
            factors = np.gcd.reduce(rows, axis=1)
            rows = rows // factors[:, None]
        order, starts = _runs(rows)
        distinct = np.ascontiguousarray(rows[order[starts]])
        distinct = distinct.astype(_kind(_largest(distinct)))
        return self._keep(States(distinct, distinct != 0)), order, starts, factors.astype(object)

    def _expected(self, agent: int, table: Table) -> int:
        key = id(table.states), agent
        if key not in self._scores:
            self._scores[key] = table.states, self._score(agent, table.states)
        return int(np.dot(table.weights, self._scores[key][1]))

    def _score(self, agent: int, states: States) -> Objects:
        """Return sum over x of max over y of sum over w of prior_w L_w D_i^w(x, y), per state."""
        joint = self.prior.astype(object)[:, None] * self.chances[agent].astype(object)
        bound = _largest(states.knowledge) * max(int(c) for c in joint.sum(axis=0))
        by_label: NDArray[Any]
        if bound < FLOAT_SAFE:
            by_label = states.knowledge.astype(np.float64) @ joint.astype(np.float64)
        else:
            by_label = states.knowledge.astype(object) @ joint
        best = np.maximum.reduceat(by_label, self.point_starts(agent), axis=1)
        # Each number is a whole one below the safe bound, but their sum need not be.
        return np.asarray(
            (best.astype(np.int64) if bound < FLOAT_SAFE else best).astype(object).sum(axis=1)
        )


class WorstPosteriors(Posteriors):
    """The learner uses the worst hypothesis that agrees with every label seen.

    A world labels the points that some agent can draw in it, and says nothing on the others: the
    hypotheses are all labellings that agree with some world on the points which that world labels.
    So a hypothesis is right on every point seen, and on an unseen point that its world does not
    label the worst one is wrong.
    """

    def __init__(self, worlds: Sequence[World], labels: Sequence[dict[Item, Item]]) -> None:
        super().__init__(worlds)
        pairs = [(x, y) for table in labels for x, y in table.items()]
        self.pairs = list(dict.fromkeys(pairs))
        self.points = list(dict.fromkeys(x for x, _ in self.pairs))
        place = {y: n for n, y in enumerate(dict.fromkeys(y for _, y in self.pairs))}
        codes = np.array([[place[t[x]] if x in t else -1 for x in self.points] for t in labels])
        differs = codes[:, None, :] != codes[None, :, :]
        # With a single label anywhere, nobody can be wrong.
        self.differs = differs & (len(place) > 1)
        self.contradicts = np.array([[x in t and t[x] != y for x, y in self.pairs] for t in labels])
        number = {x: n for n, x in enumerate(self.points)}
        self.point_of = np.array([number[x] for x, _ in self.pairs])
        self.marginals = [self._marginal(agent, number) for agent in range(self.size)]
        self._worst: dict[tuple[int, int], Objects] = {}

    def _marginal(self, agent: int, number: dict[Item, int]) -> Objects:
        result = np.zeros((len(self.worlds), len(number)), dtype=object)
        for w, world in enumerate(self.worlds):
            for x, _, p in world.samples[agent]:
                result[w, number[x]] += int(p * self.scales[agent])
        return result

    def _no_sample(self) -> Table:
        return self._from_masks([0], np.ones((1, len(self.worlds)), dtype=object), 1)

    def _one_sample(self, agent: int) -> Table:
        masks = [1 << self.pairs.index(pair) for pair in self.outcomes[agent]]
        return self._from_masks(masks, self.chances[agent].T.astype(object), self.scales[agent])

    def _all_samples(self, agent: int) -> Table:
        seen = [{(x, y) for x, y, _ in world.samples[agent]} for world in self.worlds]
        masks = [sum(1 << self.pairs.index(pair) for pair in pairs) for pairs in seen]
        return self._from_masks(masks, np.eye(len(masks), dtype=np.int64).astype(object), 1)

    def _from_masks(self, masks: Sequence[int], weights: Objects, scale: int) -> Table:
        states, order, starts = self._merge(_objects(masks), weights != 0)
        return Table(states, np.add.reduceat(weights[order], starts, axis=0), scale)

    def _join(self, left: States, right: States) -> Join:
        rows, columns = self._pairs(left, right, object)
        masks = left.knowledge[rows] | right.knowledge[columns]
        possible = left.possible[rows] & right.possible[columns]
        states, order, starts = self._merge(masks, possible)
        ones = np.ones((len(order), 1), dtype=np.int64).astype(object)
        return Join(states, rows[order], columns[order], starts, ones)

    def _merge(
        self, masks: Objects, possible: NDArray[np.bool_]
    ) -> tuple[States, NDArray[np.intp], NDArray[np.intp]]:
        order, starts = _group(masks)
        either = np.logical_or.reduceat(possible[order], starts, axis=0)
        # The same masks can come with different possible worlds only in tables of different
        # agents; the union is safe for both, as impossible pairs have weight zero.
        return self._keep(States(masks[order[starts]], either)), order, starts

    def _expected(self, agent: int, table: Table) -> int:
        scores = np.array([self._score(agent, mask) for mask in table.states.knowledge])
        return int((table.weights * self.prior.astype(object) * scores).sum())

    def _score(self, agent: int, mask: int) -> Objects:
        """Return the least accuracy in each true world of a hypothesis that fits the mask."""
        key = agent, mask
        if key not in self._worst:
            seen = np.array([bool(mask >> n & 1) for n in range(len(self.pairs))])
            agrees = ~self.contradicts[:, seen].any(axis=1)
            unseen = np.ones(len(self.points), dtype=bool)
            unseen[self.point_of[seen]] = False
            wrong = self.differs[agrees][:, :, unseen].astype(np.int64).astype(object)
            errors = (wrong * self.marginals[agent][None, :, unseen]).sum(axis=2)
            worst = errors.max(axis=0) if errors.size else np.zeros(len(self.worlds), dtype=int)
            self._worst[key] = np.asarray(self.scales[agent] - worst, dtype=object)
        return self._worst[key]


def _outcomes(worlds: Sequence[World], agent: int) -> list[tuple[Item, Item]]:
    """List the draws an agent may make in any world, those of one point together."""
    found = {(x, y) for world in worlds for x, y, _ in world.samples[agent]}
    return sorted(found, key=lambda d: (str(type(d[0])), str(d[0]), str(type(d[1])), str(d[1])))


def _chances(
    worlds: Sequence[World], agent: int, outcomes: Sequence[tuple[Item, Item]], scale: int
) -> NDArray[Any]:
    """Return an agent's probabilities times their scale: one row per world, one column per draw."""
    rows = []
    for world in worlds:
        chance = {(x, y): p for x, y, p in world.samples[agent]}
        rows.append([chance.get(pair, Fraction(0)) * scale for pair in outcomes])
    return _whole(rows)


def _whole(values: Any) -> NDArray[Any]:
    """Make whole Fractions an int64 array where they fit, an array of Python ints elsewhere."""
    array: NDArray[Any] = np.vectorize(int, otypes=[object])(np.array(values, dtype=object))
    return array.astype(np.int64) if _largest(array) < INT64_SAFE else array


def _kind(largest: int) -> type:
    """Return the narrowest type that holds numbers up to the largest: of any size, Python's."""
    if largest >= INT64_SAFE:
        return object
    return next(t for t in (np.int8, np.int16, np.int32, np.int64) if largest <= np.iinfo(t).max)


def _objects(values: Sequence[int]) -> Objects:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _largest(array: NDArray[Any]) -> int:
    return int(array.max()) if array.size else 0


def _runs(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return an order that brings equal rows together, and where each run of them starts."""
    if rows.dtype == object:
        number: dict[tuple[int, ...], int] = {}
        keys = np.array([number.setdefault(tuple(row), len(number)) for row in rows.tolist()])
        return _group(keys)
    # Rows are compared by a hash first; where two different rows share one, by their bytes.
    order, starts = _group(_hashes(rows))
    ordered = rows[order]
    same = (ordered[1:] == ordered[:-1]).all(axis=1)
    same[starts[1:] - 1] = True
    if same.all():
        return order, starts
    table: dict[bytes, int] = {}
    return _group(np.array([table.setdefault(row.tobytes(), len(table)) for row in rows]))


def _hashes(rows: NDArray[Any]) -> NDArray[Any]:
    """Hash rows eight bytes at a time, by a fixed random linear form modulo 2^64."""
    padding = -rows.shape[1] % (8 // rows.dtype.itemsize)
    words = np.pad(rows, ((0, 0), (0, padding))) if padding else np.ascontiguousarray(rows)
    # Modulo 2^64 a word's high bits reach few bits of a product: fold them down first.
    words = words.view(np.uint64)
    words = (words ^ words >> np.uint64(32)) * np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(29)
    mixer = np.random.default_rng(0).integers(1, 2**63, words.shape[1], dtype=np.uint64)
    return np.asarray(words @ (mixer * np.uint64(2) + np.uint64(1)))


def _group(keys: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return order, starts


def round_randomly(counts: Sequence[Any], one: Any) -> list[tuple[tuple[int, ...], Any]]:
    """List the whole counts that randomized rounding may lead to, with their probabilities.

    counts: of any kind of number; FOREVER stays as it is.
    one: the number one of that kind.
    """
    points: list[tuple[tuple[int, ...], Any]] = [((), one)]
    for count in counts:
        # FOREVER, a negative whole number, passes through unchanged.
        low = math.floor(count)
        rest = count - low
        ends = [(low, one - rest)] + ([(low + 1, rest)] if rest else [])
        points = [((*m, end), p * q) for m, p in points for end, q in ends]
    return points
