"""Random games to try the paper's claims on: the same seed gives the same games."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedaccord._checks import Matrix
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.linear import LinearGame

# Multiples of it are held alike by floats and by fractions.
STEP = 1 / 8


def linear_game(random: np.random.Generator, agents: int, **frame: Any) -> LinearGame:
    """Draw any benefits in eighths, own ones of a half at least, and requirements up to 2."""
    benefits = STEP * random.integers(0, 9, (agents, agents))
    benefits[np.diag_indices(agents)] = STEP * random.integers(4, 9, agents)
    return LinearGame(benefits, STEP * random.integers(2, 17, agents), **frame)


def unit_game(random: np.random.Generator, agents: int, **frame: Any) -> LinearGame:
    """Draw benefits as Section 2.2 has them: symmetric, positive semidefinite, unit diagonal."""
    factor = random.random((agents, int(random.integers(2, agents + 2))))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    benefits = np.minimum(factor @ factor.T, 1.0)
    np.fill_diagonal(benefits, 1.0)
    return LinearGame((benefits + benefits.T) / 2, random.uniform(0.5, 2, agents), **frame)


def distributions(random: np.random.Generator, agents: int, points: int) -> Matrix:
    """Draw a distribution over points for each agent, in eighths, point masses among them."""
    rows = []
    for _ in range(agents):
        cuts = np.sort(random.integers(0, 9, points - 1))
        rows.append(np.diff([0, *cuts, 8]) * STEP)
    return np.array(rows)


def coverage_game(random: np.random.Generator, agents: int, points: int = 3, **frame: Any) -> Any:
    """Draw a coverage game with requirements from 5/8 to 7/8."""
    needs = STEP * random.integers(5, 8, agents)
    return CoverageGame(distributions(random, agents, points), needs, **frame)
