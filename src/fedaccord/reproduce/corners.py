"""Small linear games in fractions, answered by listing corners: slow, exact, without any solver.

The feasible set {theta >= 0, W theta >= mu} has its least total at a corner. Its stable equilibria
are those of its faces on which theta_i = 0 or u_i = mu_i for every i. None gives more than alone,
so these faces are bounded, and the cheapest and the costliest equilibrium are corners too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np

from fedaccord._checks import Vector
from fedaccord.games.linear import LinearGame

Amounts: TypeAlias = tuple[Fraction, ...]
Rows: TypeAlias = Sequence[Sequence[Fraction]]

ZERO = Fraction(0)


@dataclass(frozen=True)
class ExactGame:
    """A linear game in fractions.

    benefits: W, row by row.
    needs: mu.
    """

    benefits: tuple[Amounts, ...]
    needs: Amounts

    @classmethod
    def of(cls, benefits: Sequence[Sequence[Any]], needs: Sequence[Any]) -> ExactGame:
        """Make one of anything that Fraction reads, such as "0.7"."""
        rows = tuple(tuple(Fraction(w) for w in row) for row in benefits)
        return cls(rows, tuple(Fraction(need) for need in needs))

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.needs)

    def game(self, **frame: Any) -> LinearGame:
        """Give the game to solvers, in doubles."""
        return LinearGame(
            [[float(w) for w in row] for row in self.benefits],
            [float(need) for need in self.needs],
            **frame,
        )

    def utilities(self, theta: Sequence[Fraction]) -> Amounts:
        """Give W theta."""
        return tuple(_product(row, theta) for row in self.benefits)

    def slack(self, theta: Sequence[Fraction]) -> Amounts:
        """Give W theta - mu."""
        return tuple(u - need for u, need in zip(self.utilities(theta), self.needs, strict=True))

    def restrict(self, keep: Sequence[int]) -> ExactGame:
        """Make the game among some of the agents."""
        rows = tuple(tuple(self.benefits[i][j] for j in keep) for i in keep)
        return ExactGame(rows, tuple(self.needs[i] for i in keep))

    def is_feasible(self, theta: Sequence[Fraction]) -> bool:
        """Say whether everybody has its requirement."""
        return min(theta) >= 0 and min(self.slack(theta)) >= 0

    def is_stable(self, theta: Sequence[Fraction]) -> bool:
        """Say whether theta is feasible and nobody can give less (W_ii > 0)."""
        idle = (t == 0 or s == 0 for t, s in zip(theta, self.slack(theta), strict=True))
        return self.is_feasible(theta) and all(idle)

    def envy(self, theta: Sequence[Fraction]) -> list[tuple[int, int]]:
        """List the pairs (i, j): i could swap its amount for j's smaller one."""
        return [
            (i, j)
            for i, j in permutations(range(self.size), 2)
            if theta[i] > theta[j]
            and _product(self.benefits[i], swapped(theta, i, j)) >= self.needs[i]
        ]

    @cached_property
    def corners(self) -> tuple[Amounts, ...]:
        """The corners of the feasible set."""
        return tuple(sorted(set(self._corners())))

    def _corners(self) -> Iterator[Amounts]:
        # At a corner k of the 2k inequalities are equalities and fix it: those who give nothing,
        # and as many agents without slack as others give.
        for count in range(self.size + 1):
            for givers in combinations(range(self.size), count):
                for tight in combinations(range(self.size), count):
                    theta = self._corner(givers, tight)
                    if theta is not None and self.is_feasible(theta):
                        yield theta

    def _corner(self, givers: Sequence[int], tight: Sequence[int]) -> Amounts | None:
        rows = [[self.benefits[i][j] for j in givers] for i in tight]
        amounts = solve_exactly(rows, [self.needs[i] for i in tight])
        return None if amounts is None else padded(amounts, givers, self.size)

    @cached_property
    def optimal_total(self) -> Fraction:
        """The least total that satisfies everybody."""
        return min(sum(theta, ZERO) for theta in self.corners)

    @cached_property
    def optima(self) -> list[Amounts]:
        """The corners with the least total; all optimal allocations are mixtures of them."""
        return [theta for theta in self.corners if sum(theta) == self.optimal_total]

    @cached_property
    def equilibria(self) -> list[Amounts]:
        """The corners that are stable."""
        return [theta for theta in self.corners if self.is_stable(theta)]

    @cached_property
    def stable_total(self) -> Fraction:
        """The least total of a stable equilibrium."""
        return min(sum(theta, ZERO) for theta in self.equilibria)


def _product(row: Sequence[Fraction], theta: Sequence[Fraction]) -> Fraction:
    return sum((w * t for w, t in zip(row, theta, strict=True) if w and t), ZERO)


def solve_exactly(rows: Rows, right: Sequence[Fraction]) -> Amounts | None:
    """Solve a square system of equations in fractions; None where it is singular."""
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


def padded(amounts: Sequence[Fraction], agents: Sequence[int], size: int) -> Amounts:
    """Give the amounts of some agents as those of all, the others at zero."""
    given = dict(zip(agents, amounts, strict=True))
    return tuple(given.get(i, ZERO) for i in range(size))


def swapped(theta: Sequence[Fraction], i: int, j: int) -> list[Fraction]:
    """Give theta with the amounts of two agents swapped."""
    result = list(theta)
    result[i], result[j] = theta[j], theta[i]
    return result


def mixed(first: Sequence[Fraction], second: Sequence[Fraction], share: Fraction) -> Amounts:
    """Give share * first + (1 - share) * second."""
    return tuple(share * a + (1 - share) * b for a, b in zip(first, second, strict=True))


def floats(theta: Sequence[Fraction]) -> Vector:
    """Give amounts in doubles."""
    return np.array([float(t) for t in theta])


def amounts_text(theta: Sequence[Fraction]) -> str:
    """Write amounts in a line."""
    return "(" + ", ".join(str(t) for t in theta) + ")"


def matrix_text(exact: ExactGame) -> str:
    """Write W in a line."""
    rows = (", ".join(f"{float(w):g}" for w in row) for row in exact.benefits)
    return "(" + "; ".join(rows) + ")"


def needs_text(exact: ExactGame) -> str:
    """Write requirements in a line."""
    return ", ".join(f"{float(need):g}" for need in exact.needs)


def givers(theta: Sequence[Fraction]) -> list[int]:
    """List who gives anything."""
    return [i for i, amount in enumerate(theta) if amount > 0]


def proved_bounds(game: LinearGame, theta: Vector, prices: Vector) -> tuple[Fraction, Fraction]:
    """Bound the least total of a game in doubles by any theta and y >= 0, in fractions.

    mu'y / max_j (W'y)_j  <=  least total  <=  sum(theta) max_i mu_i / u_i(theta)
    """
    exact = ExactGame.of(game.dense_benefits.tolist(), game.requirements.tolist())
    given = [max(Fraction(t), ZERO) for t in theta.tolist()]
    worth = [max(Fraction(y), ZERO) for y in prices.tolist()]
    most = max(_product(column, worth) for column in zip(*exact.benefits, strict=True))
    ratios = zip(exact.needs, exact.utilities(given), strict=True)
    upper = sum(given, ZERO) * max(need / utility for need, utility in ratios)
    return _product(exact.needs, worth) / most, upper


def discovery_game(rng: np.random.Generator, agents: int, points: int) -> LinearGame:
    """Draw a larger game of random discovery, in doubles, with unequal requirements."""
    rows = rng.dirichlet(np.full(points, 0.3), size=agents)
    return LinearGame(rows @ rows.T, rng.uniform(0.02, 0.05, agents))


# Games to draw in fractions. All numbers are sums of few powers of two, and so the same in doubles.


def set_benefits(rng: np.random.Generator, size: int, points: int) -> list[list[Fraction]]:
    """Draw agents uniform on four of some points each: W_ij = |X_i and X_j| / 4, W_ii = 1."""
    sets = [set(rng.choice(points, 4, replace=False).tolist()) for _ in range(size)]
    return [[Fraction(len(a & b), 4) for b in sets] for a in sets]


def gram_benefits(rng: np.random.Generator, size: int, points: int) -> list[list[Fraction]]:
    """Draw W = Q Q' for small whole numbers Q, in units that bring W below one."""
    matrix = rng.integers(0, 4, (size, points))
    matrix[np.arange(size), rng.integers(0, points, size)] += 1
    products = matrix @ matrix.T
    unit = 1 << int(products.max()).bit_length()
    return [[Fraction(int(w), unit) for w in row] for row in products]


def equal_needs(size: int) -> list[Fraction]:
    """Require one of everybody."""
    return [Fraction(1)] * size


def drawn_needs(rng: np.random.Generator, size: int) -> list[Fraction]:
    """Draw requirements in eighths, from one to two."""
    return [Fraction(int(n), 8) for n in rng.integers(8, 17, size)]


def tight_needs(
    rng: np.random.Generator, benefits: Rows, *, least: int = 0
) -> tuple[Amounts, Amounts]:
    """Draw amounts and give them with requirements that they meet exactly.

    least: of an amount, in halves.
    """
    amounts = tuple(Fraction(int(n), 2) for n in rng.integers(least, 4, len(benefits)))
    return amounts, tuple(_product(row, amounts) for row in benefits)


def drawn_benefits(rng: np.random.Generator, number: int) -> list[list[Fraction]]:
    """Draw the benefits of three or four agents, in turn of either kind, often singular."""
    size = int(rng.integers(3, 5))
    if number % 2:
        return gram_benefits(rng, size, int(rng.integers(2, 5)))
    return set_benefits(rng, size, int(rng.integers(5, 9)))


def equal_games(count: int, *, seed: int) -> list[ExactGame]:
    """Draw symmetric positive semidefinite games with equal requirements."""
    rng = np.random.default_rng(seed)
    drawn = (drawn_benefits(rng, number) for number in range(count))
    return [ExactGame.of(benefits, equal_needs(len(benefits))) for benefits in drawn]


def unequal_games(count: int, *, seed: int) -> list[ExactGame]:
    """Draw symmetric positive semidefinite games; of half of them some equilibrium is planted."""
    rng = np.random.default_rng(seed)
    games = []
    for number in range(count):
        benefits = drawn_benefits(rng, number)
        needs = drawn_needs(rng, len(benefits))
        if number % 4 < 2:
            _, planted = tight_needs(rng, benefits)
            needs = list(planted) if min(planted) > 0 else needs
        games.append(ExactGame.of(benefits, needs))
    return games
