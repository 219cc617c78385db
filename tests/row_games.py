"""Random games of several goals and of harm, and their answers by listing, in whole numbers.

Every number is a multiple of 1/8, so that 8 times all of them are whole, and nothing is rounded.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from fedaccord.games.goals import Goal, GoalsGame
from fedaccord.games.signed import SignedGame

EIGHTHS = 8


def draw_row(rng, k, agent, low):
    """Draw benefits in eighths up to 1, many of them zero, and an own one of a half at least."""
    row = rng.integers(low, 9, k) * (rng.random(k) < 0.7)
    row[agent] = rng.integers(4, 9)
    return row / EIGHTHS


def draw_frame(rng, k, whole):
    """Draw limits, minimums and costs, each in some games only; whole games have small limits."""
    frame = {"strategies": "integer" if whole else "real"}
    unit = 1 if whole else 4
    if whole or rng.random() < 0.4:
        limits = rng.integers(1, 5, k).astype(float) if whole else rng.integers(1, 33, k) / unit
        if not whole:
            limits[rng.random(k) < 0.5] = np.inf
        frame["limits"] = limits
    if rng.random() < 0.3:
        least = rng.integers(0, 3, k) / unit
        frame["minimums"] = np.minimum(least, frame.get("limits", np.inf))
    if rng.random() < 0.3:
        frame["costs"] = rng.choice([0.5, 1.0, 2.0], k)
    return frame


def draw_goals_game(rng, *, harm=False, whole=False, most_agents=3):
    """Draw a game of one to three goals per agent."""
    k = int(rng.integers(1, most_agents + 1))
    goals = [
        Goal(i, f"goal {g}", draw_row(rng, k, i, -6 if harm else 0), rng.integers(0, 17) / EIGHTHS)
        for i in range(k)
        for g in range(int(rng.integers(1, 4 if k < 3 else 3)))
    ]
    return GoalsGame(goals, **draw_frame(rng, k, whole))


def draw_signed_game(rng, *, whole=False, most_agents=3, low=-6):
    """Draw a game with harm."""
    k = int(rng.integers(1, most_agents + 1))
    rows = [draw_row(rng, k, i, low) for i in range(k)]
    needs = rng.integers(0, 17, k) / EIGHTHS
    return SignedGame(rows, needs, **draw_frame(rng, k, whole))


def determinant(rows):
    """Return a determinant of at most three rows, by its definition."""
    if len(rows) == 1:
        return rows[0][0]
    rest = [row[1:] for row in rows]
    return sum(
        (-1) ** n * row[0] * determinant(rest[:n] + rest[n + 1 :])
        for n, row in enumerate(rows)
        if row[0]
    )


@dataclass
class RowOracle:
    """A game as whole numbers: each row (weights, least, agent) in eighths."""

    size: int
    rows: list
    lows: list
    highs: list
    costs: list

    @classmethod
    def of(cls, game):
        rows = [
            ([round(w * EIGHTHS) for w in row], round(need * EIGHTHS), int(owner))
            for row, need, owner in zip(
                game.rows.tolist(), game.needs.tolist(), game.owners, strict=True
            )
        ]
        for (weights, least, _), row, need in zip(rows, game.rows, game.needs, strict=True):
            assert (np.array(weights) == EIGHTHS * row).all()
            assert least == EIGHTHS * need
        highs = [Fraction(h) if np.isfinite(h) else None for h in game.limits.tolist()]
        lows, costs = (list(map(Fraction, part.tolist())) for part in (game.minimums, game.costs))
        return cls(game.size, rows, lows, highs, costs)

    def over(self, row, theta):
        weights, least, _ = row
        return sum(w * t for w, t in zip(weights, theta, strict=True)) - least

    def satisfies(self, agent, theta):
        return all(self.over(row, theta) >= 0 for row in self.rows if row[2] == agent)

    def is_inside(self, theta):
        return all(
            low <= t and (high is None or t <= high)
            for low, t, high in zip(self.lows, theta, self.highs, strict=True)
        )

    def is_feasible(self, theta):
        return self.is_inside(theta) and all(self.satisfies(i, theta) for i in range(self.size))

    def total(self, theta):
        return sum(c * t for c, t in zip(self.costs, theta, strict=True))

    # Over the reals: the least total of a face of the feasible set is at one of its corners.

    def corners(self):
        """Yield the corners of what reaches all goals within limits."""
        walls = [(weights, least) for weights, least, _ in self.rows]
        unit = [[EIGHTHS * (i == j) for j in range(self.size)] for i in range(self.size)]
        walls += [(unit[i], EIGHTHS * low) for i, low in enumerate(self.lows)]
        walls += [(unit[i], EIGHTHS * h) for i, h in enumerate(self.highs) if h is not None]
        seen = set()
        for chosen in combinations(walls, self.size):
            rows = [list(weights) for weights, _ in chosen]
            bottom = determinant(rows)
            if not bottom:
                continue
            theta = []
            for j in range(self.size):
                replaced = [[*r[:j], c[1], *r[j + 1 :]] for r, c in zip(rows, chosen, strict=True)]
                theta.append(Fraction(determinant(replaced)) / bottom)
            point = tuple(theta)
            if point not in seen and self.is_feasible(point):
                seen.add(point)
                yield point

    def is_stable(self, theta):
        """Return whether everybody gives its least or has a goal with nothing to spare."""
        return self.is_feasible(theta) and all(
            theta[i] == self.lows[i]
            or any(row[2] == i and self.over(row, theta) == 0 for row in self.rows)
            for i in range(self.size)
        )

    # Over whole numbers: by the definitions, word by word.

    def allocations(self):
        spans = [range(int(a), int(b) + 1) for a, b in zip(self.lows, self.highs, strict=True)]
        return product(*spans)

    def is_stable_whole(self, theta):
        def could_give_less(i):
            less = ([*theta[:i], x, *theta[i + 1 :]] for x in range(int(self.lows[i]), theta[i]))
            return any(self.satisfies(i, trial) for trial in less)

        return self.is_feasible(theta) and not any(map(could_give_less, range(self.size)))

    def list_envy(self, theta):
        found = []
        for i, j in product(range(self.size), repeat=2):
            swapped = list(theta)
            swapped[i], swapped[j] = theta[j], theta[i]
            allowed = self.is_inside(swapped)
            if theta[i] > theta[j] and allowed and self.satisfies(i, swapped):
                found.append((i, j))
        return found

    def is_envy_free(self, theta):
        return self.is_feasible(theta) and not self.list_envy(theta)

    def least(self, points, kind):
        return min((self.total(p) for p in points if kind(p)), default=None)
