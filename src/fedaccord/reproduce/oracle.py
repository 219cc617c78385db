"""Exact answers to tiny games, by listing everything in fractions: slow, and without solvers.

Utilities are written down a second time here, word by word as in the paper, so that whatever is
compared with them is compared with another program. Claims and tests share this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations, product
from math import floor, prod
from typing import Any, TypeAlias

import numpy as np

from fedaccord._checks import Vector
from fedaccord.games.base import Game
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame

Amounts: TypeAlias = Sequence[int | Fraction]
Fractions: TypeAlias = tuple[Fraction, ...]
Rows: TypeAlias = Sequence[Sequence[Fraction]]
Whole: TypeAlias = tuple[int, ...]
# The utility of an agent under an allocation.
Utility: TypeAlias = Callable[[int, Amounts], Fraction]
# How likely a world is, and per agent the (point, label, probability) that it may draw there.
PlainWorld: TypeAlias = tuple[Fraction, list[list[tuple[Any, Any, Fraction]]]]

ZERO, HALF, ONE = Fraction(0), Fraction(1, 2), Fraction(1)


# Numbers.


def read_fraction(number: float) -> Fraction:
    """Return the simple fraction that a double stands for, such as 1/3; else the double itself."""
    simple = Fraction(number).limit_denominator(1000)
    return simple if float(simple) == number else Fraction(number)


def read_rows(rows: Any) -> list[list[Fraction]]:
    """Read a table of doubles as simple fractions."""
    return [[read_fraction(value) for value in row] for row in rows]


def to_floats(theta: Amounts) -> Vector:
    """Return amounts in doubles."""
    return np.array([float(t) for t in theta])


def multiply(row: Sequence[Fraction], theta: Amounts) -> Fraction:
    """Return the sum of row_j theta_j."""
    return sum((w * t for w, t in zip(row, theta, strict=True) if w and t), ZERO)


def mix(first: Sequence[Fraction], second: Sequence[Fraction], share: Fraction) -> Fractions:
    """Return share * first + (1 - share) * second."""
    return tuple(share * a + (1 - share) * b for a, b in zip(first, second, strict=True))


def average(points: Sequence[Sequence[Fraction]]) -> Fractions:
    """Return the mean of allocations."""
    return tuple(sum(each, ZERO) / len(points) for each in zip(*points, strict=True))


def swap(theta: Sequence[Any], i: int, j: int) -> list[Any]:
    """Return theta with the amounts of two agents exchanged."""
    result = list(theta)
    result[i], result[j] = theta[j], theta[i]
    return result


def replace_amount(theta: Sequence[Any], agent: int, amount: Any) -> list[Any]:
    """Return theta with another amount of one agent."""
    return [amount if j == agent else t for j, t in enumerate(theta)]


def pad(amounts: Sequence[Fraction], agents: Sequence[int], size: int) -> Fractions:
    """Return the amounts of some agents as those of all, the others at zero."""
    given = dict(zip(agents, amounts, strict=True))
    return tuple(given.get(i, ZERO) for i in range(size))


def list_givers(theta: Sequence[Fraction]) -> list[int]:
    """List the agents that give anything."""
    return [i for i, amount in enumerate(theta) if amount > 0]


def solve_exactly(rows: Rows, right: Sequence[Fraction]) -> Fractions | None:
    """Solve a square system of equations; None where it is singular."""
    size = len(rows)
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for column in range(size):
        pivot = next((r for r in range(column, size) if table[r][column] != 0), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [value / table[column][column] for value in table[column]]
        for r in range(size):
            if r != column and (factor := table[r][column]) != 0:
                table[r] = [a - factor * b for a, b in zip(table[r], table[column], strict=True)]
    return tuple(row[-1] for row in table)


# Utilities.


def linear_utility(benefits: Rows) -> Utility:
    """Return u_i(theta) = sum_j W_ij theta_j."""
    return lambda agent, theta: multiply(benefits[agent], theta)


def coverage_utility(distributions: Rows) -> Utility:
    """Return u_i(theta) = 1 - 1/2 sum_x q_ix prod_j E[(1 - q_jx)^theta_j].

    Agents are rounded independently, as Appendix A says, so the mean of the product is the product
    of the means; of whole amounts nothing is rounded.
    """

    def miss(rate: Fraction, amount: int | Fraction) -> Fraction:
        low = floor(amount)
        whole = (1 - rate) ** low
        return whole * (1 - rate * (Fraction(amount) - low)) if amount != low else whole

    def utility(agent: int, theta: Amounts) -> Fraction:
        error = ZERO
        for point, unseen in enumerate(distributions[agent]):
            if unseen:
                for row, amount in zip(distributions, theta, strict=True):
                    if row[point] and amount:
                        unseen *= miss(row[point], amount)
                error += unseen
        return 1 - error / 2

    return utility


def round_at_random(utility: Utility) -> Utility:
    """Extend a utility of whole contributions to real ones, as Appendix A says.

    Every agent's amount becomes one of the two whole numbers around it, independently of the
    others', with itself as the mean; the expectation is taken over all of these outcomes.
    """

    def expected(agent: int, theta: Amounts) -> Fraction:
        outcomes = []
        for amount in theta:
            low = floor(amount)
            part = Fraction(amount) - low
            outcomes.append([(low, 1 - part), (low + 1, part)] if part else [(low, ONE)])
        return sum(
            (
                prod(share for _, share in drawn) * utility(agent, [amount for amount, _ in drawn])
                for drawn in product(*outcomes)
            ),
            ZERO,
        )

    return expected


def list_samples(
    world: PlainWorld, counts: Amounts
) -> Iterator[tuple[list[tuple[Any, Any]], Fraction]]:
    """List every way in which the agents' draws may come out, with its probability."""
    each = [draws for draws, m in zip(world[1], counts, strict=True) for _ in range(int(m))]
    for drawn in product(*each):
        chance = prod((share for _, _, share in drawn), start=ONE)
        yield [(point, label) for point, label, _ in drawn], chance


def learnt_utility(worlds: Sequence[PlainWorld]) -> Utility:
    """Return the expected accuracy of the best classifier, over every world and every sample.

    The classifier sees the sample and says of each point the label that is likeliest then.
    """

    def utility(agent: int, counts: Amounts) -> Fraction:
        scores: dict[Any, dict[Any, Fraction]] = {}
        for world in worlds:
            for seen, chance in list_samples(world, counts):
                # What was seen, and not in which order, is all that matters to anybody.
                key = tuple(sorted(map(str, seen)))
                for point, label, share in world[1][agent]:
                    labels = scores.setdefault((key, point), {})
                    labels[label] = labels.get(label, ZERO) + world[0] * chance * share
        return sum((max(labels.values()) for labels in scores.values()), ZERO)

    return utility


def cycle_worlds(d: int) -> list[PlainWorld]:
    """Return the worlds of Theorem 3: agent i draws ((2i + z_ij) d + j, z_(i-1)j), j uniform."""
    worlds: list[PlainWorld] = []
    for bits in product((0, 1), repeat=3 * d):
        draws = [
            [
                ((2 * i + bits[i * d + j]) * d + j, bits[(i - 1) % 3 * d + j], Fraction(1, d))
                for j in range(d)
            ]
            for i in range(3)
        ]
        worlds.append((Fraction(1, 8**d), draws))
    return worlds


def ring_utility(d: int) -> Utility:
    """Return 1 - 1/2 (1 - 1/d)^(theta_i + theta_(i-1)), as Appendix D prints it of these worlds."""

    def utility(agent: int, theta: Amounts) -> Fraction:
        return 1 - HALF * (1 - Fraction(1, d)) ** (int(theta[agent]) + int(theta[agent - 1]))

    return utility


def utility_of(game: Game) -> Utility:
    """Return the utility of a linear or coverage game, every point in a column of its own."""
    if isinstance(game, LinearGame):
        return linear_utility(read_rows(game.dense_benefits.tolist()))
    assert isinstance(game, CoverageGame)
    table = np.repeat(game.distributions.toarray(), game.copies.astype(int), axis=1)
    return coverage_utility(read_rows(table.tolist()))


# Definitions.


def list_envy(
    utility: Utility, requirements: Sequence[Fraction], theta: Amounts
) -> list[tuple[int, int]]:
    """List the pairs (i, j) where i would still be satisfied with j's smaller amount."""
    return [
        (i, j)
        for i, j in permutations(range(len(theta)), 2)
        if theta[i] > theta[j] and utility(i, swap(theta, i, j)) >= requirements[i]
    ]


def is_stable_when_rounded(
    utility: Utility, requirements: Sequence[Fraction], theta: Sequence[Fraction]
) -> bool:
    """Return whether theta is feasible and nobody can give less, amounts being rounded at random.

    Utilities rise along straight pieces: an agent that has more than it needs can give less, and
    one that has exactly that can if the piece below is level.
    """

    def is_settled(agent: int) -> bool:
        reached, need = utility(agent, theta), requirements[agent]
        if theta[agent] == 0 or reached < need:
            return reached >= need
        below = replace_amount(theta, agent, Fraction(-floor(-theta[agent]) - 1))
        return reached == need and utility(agent, below) < reached

    return all(map(is_settled, range(len(theta))))


@dataclass(frozen=True, eq=False)
class Listing:
    """Every whole-number allocation that matters, and what the definitions say of each.

    A stable one gives nobody more than its stand-alone need, and the cheapest of each kind costs at
    most what equal shares or going alone do: so all up to that total are listed.

    utility: what each agent gets.
    requirements: what each wants.
    limits: the most that each may give; no limit where left out.
    minimums: the least that each may give; zero where left out.
    costs: of a sample of each; one where left out.
    up_to: the total up to which to list them, where that above is more than is wanted.
    """

    utility: Utility
    requirements: Fractions
    limits: Whole | None = None
    minimums: Whole | None = None
    costs: Fractions | None = None
    up_to: int | None = None
    _known: dict[tuple[int, tuple[int | Fraction, ...]], Fraction] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def of(cls, game: Game, utility: Utility | None = None) -> Listing:
        """Return the listing of a game over whole numbers, with its limits, minimums and costs."""
        bounded = np.isfinite(game.limits).all()
        return cls(
            utility or utility_of(game),
            tuple(read_fraction(need) for need in game.requirements.tolist()),
            limits=tuple(map(int, game.limits)) if bounded else None,
            minimums=tuple(map(int, game.minimums)) if game.minimums.any() else None,
            costs=tuple(map(Fraction, game.costs.tolist())) if (game.costs != 1).any() else None,
        )

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.requirements)

    @cached_property
    def most(self) -> int:
        """The total up to which all allocations are listed."""
        if self.up_to is not None:
            return self.up_to
        if self.limits is not None:
            return sum(self.limits)
        alone = sum(self._least_given_by([i], i) for i in range(self.size))
        level = max(self._least_given_by(range(self.size), i) for i in range(self.size))
        return max(alone, self.size * level)

    def _least_given_by(self, givers: Sequence[int], agent: int) -> int:
        """Return the least amount that satisfies an agent if these givers give it each."""
        count = 0
        while not self.has_enough(agent, tuple(count * (j in givers) for j in range(self.size))):
            count += 1
        return count

    @cached_property
    def box(self) -> tuple[range, ...]:
        """What each agent may give."""
        lows, highs = self.minimums or (0,) * self.size, self.limits or (self.most,) * self.size
        return tuple(range(low, high + 1) for low, high in zip(lows, highs, strict=True))

    @cached_property
    def allocations(self) -> tuple[Whole, ...]:
        """All allocations that are listed."""
        return tuple(self._allocations(self.size, self.most))

    def _allocations(self, agents: int, total: int) -> Iterator[Whole]:
        if agents == 0:
            yield ()
            return
        for last in self.box[agents - 1]:
            if last > total:
                break
            for rest in self._allocations(agents - 1, total - last):
                yield (*rest, last)

    def cost(self, theta: Whole) -> int | Fraction:
        """Return what an allocation costs: its total where samples cost one."""
        return sum(theta) if self.costs is None else multiply(self.costs, theta)

    def utilities(self, theta: Whole) -> Fractions:
        """Return everybody's utility."""
        return tuple(self._utility(i, theta) for i in range(self.size))

    def _utility(self, agent: int, theta: Amounts) -> Fraction:
        key = agent, tuple(theta)
        if key not in self._known:
            self._known[key] = self.utility(agent, theta)
        return self._known[key]

    def has_enough(self, agent: int, theta: Whole) -> bool:
        """Return whether an agent reaches its requirement: u_i(theta) >= mu_i."""
        return self._utility(agent, theta) >= self.requirements[agent]

    def is_feasible(self, theta: Whole) -> bool:
        """Return whether everybody does."""
        return all(self.has_enough(i, theta) for i in range(self.size))

    def is_stable(self, theta: Whole) -> bool:
        """Return whether nobody who gives less alone would still reach its requirement."""
        return self.is_feasible(theta) and not any(
            self.has_enough(i, (*theta[:i], less, *theta[i + 1 :]))
            for i, given in enumerate(theta)
            for less in range(self.box[i].start, given)
        )

    def envy(self, theta: Whole) -> tuple[tuple[int, int], ...]:
        """Return the pairs (i, j) where i would still be satisfied with j's smaller amount.

        The swap counts only if it leads to an allocation that is allowed.
        """
        pairs = list_envy(self._utility, self.requirements, theta)
        swaps = ((pair, zip(swap(theta, *pair), self.box, strict=True)) for pair in pairs)
        return tuple(pair for pair, after in swaps if all(t in allowed for t, allowed in after))

    def is_envy_free(self, theta: Whole) -> bool:
        """Return whether everybody reaches its requirement and nobody envies anybody."""
        return self.is_feasible(theta) and not self.envy(theta)

    def list_all(self, kind: Callable[[Whole], bool]) -> list[Whole]:
        """List the allocations of a kind, the cheapest first."""
        return sorted(filter(kind, self.allocations), key=lambda theta: (self.cost(theta), theta))

    def least(self, kind: Callable[[Whole], bool]) -> int | Fraction | None:
        """Return the least cost of an allocation of a kind; None where there is none."""
        ordered = sorted(self.allocations, key=self.cost)
        return next((self.cost(theta) for theta in ordered if kind(theta)), None)


# Linear games over the reals.


@dataclass(frozen=True)
class ExactGame:
    """A small linear game in fractions, answered by listing corners.

    The feasible set {lows <= theta <= highs, W theta >= mu} has its least total at a corner. Its
    stable equilibria are those of its faces on which theta_i is the least that is allowed or
    u_i = mu_i for every i. None gives more than alone, so these faces are bounded, and the cheapest
    and the costliest equilibrium are corners too.

    benefits: W, row by row.
    requirements: mu.
    minimums, limits, costs: per agent; zero, none and one where left out.
    """

    benefits: tuple[Fractions, ...]
    requirements: Fractions
    minimums: Fractions | None = None
    limits: tuple[Fraction | None, ...] | None = None
    costs: Fractions | None = None

    @classmethod
    def of(cls, benefits: Sequence[Sequence[Any]], requirements: Sequence[Any]) -> ExactGame:
        """Make one of anything that Fraction reads, such as "0.7"."""
        rows = tuple(tuple(Fraction(w) for w in row) for row in benefits)
        return cls(rows, tuple(Fraction(need) for need in requirements))

    @classmethod
    def of_game(cls, game: LinearGame) -> ExactGame:
        """Make one of the very doubles that a game holds, with its limits, minimums and costs."""
        plain = cls.of(game.dense_benefits.tolist(), game.requirements.tolist())
        limits = [Fraction(n) if np.isfinite(n) else None for n in game.limits.tolist()]
        return cls(
            plain.benefits,
            plain.requirements,
            minimums=tuple(map(Fraction, game.minimums.tolist())),
            limits=tuple(limits),
            costs=tuple(map(Fraction, game.costs.tolist())),
        )

    def __format__(self, part: str) -> str:
        """Write W, row by row, as in f"{game:W}", or the requirements, as in f"{game:mu}"."""
        if part == "mu":
            return ", ".join(f"{float(need):g}" for need in self.requirements)
        rows = (", ".join(f"{float(w):g}" for w in row) for row in self.benefits)
        return f"({'; '.join(rows)})"

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.requirements)

    @cached_property
    def lows(self) -> Fractions:
        """The least that each may give."""
        return self.minimums or (ZERO,) * self.size

    def game(self, **frame: Any) -> LinearGame:
        """Return the game for solvers, in doubles."""
        return LinearGame(
            [[float(w) for w in row] for row in self.benefits],
            [float(need) for need in self.requirements],
            **frame,
        )

    def utilities(self, theta: Sequence[Fraction]) -> Fractions:
        """Return W theta."""
        return tuple(multiply(row, theta) for row in self.benefits)

    def slack(self, theta: Sequence[Fraction]) -> Fractions:
        """Return W theta - mu."""
        reached = self.utilities(theta)
        return tuple(u - need for u, need in zip(reached, self.requirements, strict=True))

    def restrict(self, keep: Sequence[int]) -> ExactGame:
        """Return the game among some of the agents."""
        rows = tuple(tuple(self.benefits[i][j] for j in keep) for i in keep)
        return ExactGame(rows, tuple(self.requirements[i] for i in keep))

    def total(self, theta: Sequence[Fraction]) -> Fraction:
        """Return what an allocation costs: its total where samples cost one."""
        return sum(theta, ZERO) if self.costs is None else multiply(self.costs, theta)

    def is_feasible(self, theta: Sequence[Fraction]) -> bool:
        """Return whether everybody has its requirement and gives what it may."""
        limits = self.limits or ()
        return (
            all(t >= low for t, low in zip(theta, self.lows, strict=True))
            and all(high is None or t <= high for t, high in zip(theta, limits, strict=False))
            and min(self.slack(theta)) >= 0
        )

    def is_stable(self, theta: Sequence[Fraction]) -> bool:
        """Return whether theta is feasible and nobody can give less (W_ii > 0)."""
        each = zip(theta, self.lows, self.slack(theta), strict=True)
        return self.is_feasible(theta) and all(t == low or slack == 0 for t, low, slack in each)

    def envy(self, theta: Sequence[Fraction]) -> list[tuple[int, int]]:
        """List the pairs (i, j): i could swap its amount for j's smaller one."""
        return list_envy(linear_utility(self.benefits), self.requirements, theta)

    @cached_property
    def corners(self) -> tuple[Fractions, ...]:
        """The corners of the feasible set."""
        return tuple(sorted(set(self._corners())))

    def _corners(self) -> Iterator[Fractions]:
        # At a corner as many inequalities are equalities as there are agents, and fix it: some
        # agents give the least or the most that they may, and as many have no slack as are left.
        limits = self.limits or (None,) * self.size
        ends = [
            (None, low, *((high,) if high is not None else ()))
            for low, high in zip(self.lows, limits, strict=True)
        ]
        for fixed in product(*ends):
            free = [i for i, amount in enumerate(fixed) if amount is None]
            slack = self.slack([amount or ZERO for amount in fixed])
            for tight in combinations(range(self.size), len(free)):
                rows = [[self.benefits[i][j] for j in free] for i in tight]
                amounts = solve_exactly(rows, [-slack[i] for i in tight])
                if amounts is not None:
                    left = iter(amounts)
                    theta = tuple(next(left) if t is None else t for t in fixed)
                    if self.is_feasible(theta):
                        yield theta

    @cached_property
    def optimal_total(self) -> Fraction:
        """The least total that satisfies everybody."""
        return min(map(self.total, self.corners))

    @cached_property
    def optima(self) -> list[Fractions]:
        """The corners with the least total; all optimal allocations are mixtures of them."""
        return [theta for theta in self.corners if self.total(theta) == self.optimal_total]

    @cached_property
    def equilibria(self) -> list[Fractions]:
        """The corners that are stable."""
        return [theta for theta in self.corners if self.is_stable(theta)]

    @cached_property
    def stable_total(self) -> Fraction:
        """The least total of a stable equilibrium."""
        return min(map(self.total, self.equilibria))


def bound_optimum(game: LinearGame, theta: Vector, prices: Vector) -> tuple[Fraction, Fraction]:
    """Bound the least total of a game in doubles by any theta and y >= 0, in fractions.

    mu'y / max_j (W'y)_j  <=  least total  <=  sum(theta) max_i mu_i / u_i(theta)
    """
    exact = ExactGame.of(game.dense_benefits.tolist(), game.requirements.tolist())
    given = [max(Fraction(t), ZERO) for t in theta.tolist()]
    worth = [max(Fraction(y), ZERO) for y in prices.tolist()]
    most = max(multiply(column, worth) for column in zip(*exact.benefits, strict=True))
    ratios = zip(exact.requirements, exact.utilities(given), strict=True)
    upper = sum(given, ZERO) * max(need / utility for need, utility in ratios)
    return multiply(exact.requirements, worth) / most, upper
