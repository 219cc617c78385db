"""Random games to try the paper's claims on: the same seed gives the same games.

Numbers are sums of few powers of two where nothing else is said, and so the same in doubles and in
fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fedaccord._checks import Matrix
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame
from fedaccord.reproduce.oracle import ONE, ExactGame, Fractions, Rows, multiply

# Multiples of it are held alike by floats and by fractions.
STEP = 1 / 8


# Games in doubles.


def linear_game(random: np.random.Generator, agents: int, **frame: Any) -> LinearGame:
    """Draw any benefits in eighths, own ones of a half at least, and requirements up to 2."""
    benefits = STEP * random.integers(0, 9, (agents, agents))
    benefits[np.diag_indices(agents)] = STEP * random.integers(4, 9, agents)
    return LinearGame(benefits, STEP * random.integers(2, 17, agents), **frame)


def unit_game(random: np.random.Generator, agents: int, **frame: Any) -> LinearGame:
    """Draw benefits as Section 2.2 has them: symmetric, positive semidefinite, unit diagonal.

    Any doubles, as in the next one.
    """
    factor = random.random((agents, int(random.integers(2, agents + 2))))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    benefits = np.minimum(factor @ factor.T, 1.0)
    np.fill_diagonal(benefits, 1.0)
    return LinearGame((benefits + benefits.T) / 2, random.uniform(0.5, 2, agents), **frame)


def discovery_game(random: np.random.Generator, agents: int, points: int) -> LinearGame:
    """Draw a larger game of random discovery with unequal requirements."""
    rows = random.dirichlet(np.full(points, 0.3), size=agents)
    return LinearGame(rows @ rows.T, random.uniform(0.02, 0.05, agents))


def distributions(random: np.random.Generator, agents: int, points: int) -> Matrix:
    """Draw a distribution over points for each agent, in eighths, point masses among them."""
    rows = []
    for _ in range(agents):
        cuts = np.sort(random.integers(0, 9, points - 1))
        rows.append(np.diff([0, *cuts, 8]) * STEP)
    return np.array(rows)


def coverage_game(
    random: np.random.Generator, agents: int, points: int = 3, **frame: Any
) -> CoverageGame:
    """Draw a coverage game with requirements from 5/8 to 7/8."""
    needs = STEP * random.integers(5, 8, agents)
    return CoverageGame(distributions(random, agents, points), needs, **frame)


# Linear games in fractions.


def set_benefits(random: np.random.Generator, size: int, points: int) -> list[list[Fraction]]:
    """Draw agents uniform on four of some points each: W_ij = |X_i and X_j| / 4, W_ii = 1."""
    sets = [set(random.choice(points, 4, replace=False).tolist()) for _ in range(size)]
    return [[Fraction(len(a & b), 4) for b in sets] for a in sets]


def gram_benefits(random: np.random.Generator, size: int, points: int) -> list[list[Fraction]]:
    """Draw W = Q Q' for small whole numbers Q, in units that bring W below one."""
    matrix = random.integers(0, 4, (size, points))
    matrix[np.arange(size), random.integers(0, points, size)] += 1
    products = matrix @ matrix.T
    unit = 1 << int(products.max()).bit_length()
    return [[Fraction(int(w), unit) for w in row] for row in products]


def psd_benefits(random: np.random.Generator, number: int) -> list[list[Fraction]]:
    """Draw the benefits of three or four agents, in turn of either kind, often singular."""
    size = int(random.integers(3, 5))
    if number % 2:
        return gram_benefits(random, size, int(random.integers(2, 5)))
    return set_benefits(random, size, int(random.integers(5, 9)))


def unequal_requirements(random: np.random.Generator, size: int) -> list[Fraction]:
    """Draw requirements in eighths, from one to two."""
    return [Fraction(int(n), 8) for n in random.integers(8, 17, size)]


def tight_requirements(random: np.random.Generator, benefits: Rows, *, least: int = 0) -> Fractions:
    """Return the requirements that drawn amounts meet exactly.

    least: of an amount, in halves.
    """
    amounts = [Fraction(int(n), 2) for n in random.integers(least, 4, len(benefits))]
    return tuple(multiply(row, amounts) for row in benefits)


def equal_games(count: int, *, seed: int) -> list[ExactGame]:
    """Draw symmetric positive semidefinite games with equal requirements."""
    random = np.random.default_rng(seed)
    drawn = (psd_benefits(random, number) for number in range(count))
    return [ExactGame.of(benefits, [ONE] * len(benefits)) for benefits in drawn]


def unequal_games(count: int, *, seed: int) -> list[ExactGame]:
    """Draw symmetric positive semidefinite games; half of them have a planted equilibrium."""
    random = np.random.default_rng(seed)
    games = []
    for number in range(count):
        benefits = psd_benefits(random, number)
        needs = unequal_requirements(random, len(benefits))
        if number % 4 < 2:
            planted = tight_requirements(random, benefits)
            needs = list(planted) if min(planted) > 0 else needs
        games.append(ExactGame.of(benefits, needs))
    return games


def both_games(count: int, *, seed: int) -> list[ExactGame]:
    """Draw games of which half have equal requirements."""
    half = count // 2
    return equal_games(half, seed=seed) + unequal_games(count - half, seed=seed)
