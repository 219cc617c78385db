"""Random games of several goals and of harm against exact answers, as fuzz.py has of others.

    python benchmarks/fuzz_rows.py --games 20000 --seed 1 [--start N] [--seconds S]

Up to three goals per agent, benefits of any sign, nearly tied, in units from 1e-9 to 1e9, over
reals and whole numbers, with limits, minimums and costs. With --large the methods for games too
large for fractions are judged.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations, product

import fuzz
import numpy as np

from fedaccord import Goal, GoalsGame, SignedGame
from fedaccord._checks import exact_numbers
from fedaccord.equilibria.rows import solve as rows_solve
from fedaccord.errors import InputError
from fedaccord.games.rows import RowGame

# Whole-number games with more allocations than this are not listed.
LISTED = 4_000


@dataclass(frozen=True)
class ExactRows:
    """A game as fractions: rows (weights, least, agent), and the frame."""

    rows: tuple[tuple[tuple[Fraction, ...], Fraction, int], ...]
    lows: tuple[Fraction, ...]
    highs: tuple[Fraction | None, ...]
    costs: tuple[Fraction, ...]

    @classmethod
    def of(cls, game: RowGame) -> ExactRows:
        """Read a game's numbers as the library does: each as the simplest fraction."""
        needs = exact_numbers(game.needs)
        rows = [
            (tuple(exact_numbers(game.rows[g])), needs[g], int(owner))
            for g, owner in enumerate(game.owners)
        ]
        highs = [exact_numbers([n])[0] if math.isfinite(n) else None for n in game.limits.tolist()]
        lows, costs = (tuple(exact_numbers(part)) for part in (game.minimums, game.costs))
        return cls(tuple(rows), lows, tuple(highs), costs)

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.lows)

    def over(self, row: int, theta: tuple[Fraction, ...]) -> Fraction:
        """Return what a goal has to spare."""
        weights, least, _ = self.rows[row]
        return sum((w * t for w, t in zip(weights, theta, strict=True)), -least)

    def total(self, theta: tuple[Fraction, ...]) -> Fraction:
        """Return what an allocation costs."""
        return sum((c * t for c, t in zip(self.costs, theta, strict=True)), Fraction(0))

    def satisfies(self, agent: int, theta: tuple[Fraction, ...]) -> bool:
        """Return whether an agent reaches all of its goals."""
        return all(self.over(n, theta) >= 0 for n, row in enumerate(self.rows) if row[2] == agent)

    def is_inside(self, theta: tuple[Fraction, ...]) -> bool:
        """Return whether limits and minimums are kept."""
        ends = zip(self.lows, theta, self.highs, strict=True)
        return all(low <= t and (high is None or t <= high) for low, t, high in ends)

    def is_feasible(self, theta: tuple[Fraction, ...]) -> bool:
        """Return whether everybody is satisfied within the limits."""
        return self.is_inside(theta) and all(self.satisfies(i, theta) for i in range(self.size))

    @cached_property
    def walls(self) -> list[tuple[int, ...]]:
        """The rows of the feasible set."""
        ends = (*fuzz._unit_rows(self.lows, 1), *fuzz._unit_rows(self.highs, -1))
        goals = ((weights, least) for weights, least, _ in self.rows)
        return [fuzz._plane(*row) for row in (*ends, *goals)]

    @cached_property
    def corners(self) -> list[tuple[Fraction, ...]]:
        """The corners of the feasible set."""
        found = set()
        for chosen in combinations(sorted({fuzz._same_sign(w) for w in self.walls}), self.size):
            meet = fuzz._meet(chosen)
            if meet is not None and all(fuzz._over(row, meet) >= 0 for row in self.walls):
                found.add(tuple(Fraction(t, meet[-1]) for t in meet[:-1]))
        return sorted(found)

    def is_stable(self, theta: tuple[Fraction, ...]) -> bool:
        """Return whether everybody gives its least or has a goal with nothing to spare."""
        return all(
            theta[i] == self.lows[i]
            or any(row[2] == i and self.over(n, theta) == 0 for n, row in enumerate(self.rows))
            for i in range(self.size)
        )

    def is_stable_whole(self, theta: tuple[int, ...]) -> bool:
        """Return the same of whole numbers, by the definition."""

        def could_give_less(i: int) -> bool:
            return theta[i] > self.lows[i] and self.satisfies(
                i, (*theta[:i], theta[i] - 1, *theta[i + 1 :])
            )

        return self.is_feasible(theta) and not any(map(could_give_less, range(self.size)))

    def is_envy_free(self, theta: tuple[int, ...]) -> bool:
        """Return whether nobody would be satisfied with another's smaller amount."""
        for i, j in permutations(range(self.size), 2):
            swapped = list(theta)
            swapped[i], swapped[j] = theta[j], theta[i]
            if theta[i] > theta[j] and self.is_inside(swapped) and self.satisfies(i, swapped):
                return False
        return self.is_feasible(theta)

    def ways(self, i: int, j: int) -> Iterator[tuple[tuple[int, ...], bool]]:
        """Return the ways in which i does not envy j: a row, and whether it is strict."""
        unit = [[Fraction(n == m) for m in range(self.size)] for n in range(self.size)]
        below = [b - a for a, b in zip(unit[i], unit[j], strict=True)]
        yield fuzz._plane(below, Fraction(0)), False
        for weights, least, agent in self.rows:
            if agent == i:
                swapped = list(weights)
                swapped[i], swapped[j] = weights[j], weights[i]
                yield fuzz._plane([-w for w in swapped], -least), True
        if self.highs[j] is not None:
            yield fuzz._plane(unit[i], self.highs[j]), True
        if self.lows[i] > self.lows[j]:
            yield fuzz._plane([-a for a in unit[j]], -self.lows[i]), True


def draw_rows_game(seed: int, number: int) -> tuple[RowGame, str, str]:
    """Draw game `number` of a seed, a concept, and which equilibrium."""
    rng = np.random.default_rng([seed, number, 7])
    concept = str(rng.choice(["optimal", "stable", "envy-free"], p=[0.25, 0.45, 0.3]))
    select = "costliest" if concept == "stable" and rng.random() < 0.2 else "cheapest"
    while True:
        try:
            game = _draw(rng)
        except InputError:
            continue
        bounded = game.is_monotone or np.isfinite(game.limits).all()
        if (select == "cheapest" or bounded) and not (game.is_integer and _count(game) > LISTED):
            return game, concept, select


def _count(game: RowGame) -> float:
    return float(np.prod(game.limits - game.minimums + 1))


def _draw(rng: np.random.Generator) -> RowGame:
    k = int(rng.choice([1, 2, 3], p=[0.1, 0.55, 0.35]))
    whole = bool(rng.random() < 0.3)
    harm = rng.choice([0.0, 0.3, 0.6, 1.0])
    layers = int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2])) if k < 3 else int(rng.integers(1, 3))
    matrices, needs = [], []
    for _ in range(layers):
        matrix = fuzz._benefits(rng, k)
        signs = np.where(rng.random((k, k)) < harm, -1.0, 1.0)
        np.fill_diagonal(signs, 1.0)
        matrices.append(matrix * signs)
        needs.append(fuzz._decimals(rng, k, low=0.1, high=6.0 if whole else 3.0))
        if rng.random() < 0.35:
            planted = matrices[-1] @ (rng.integers(0, 4, k) / (1 if whole else 2))
            needs[-1] = np.maximum(np.round(planted, 9), 0.0)
    alone = np.max([n / np.diag(m) for n, m in zip(needs, matrices, strict=True)], axis=0)
    frame = fuzz._frame(rng, np.maximum(alone, 0.5), whole=whole)
    if whole:
        least = frame.get("minimums", np.zeros(k))
        frame["limits"] = np.maximum(rng.integers(1, 9, k).astype(float), least)
    if rng.random() < 0.4:
        for n in range(layers):
            powers = rng.integers(-9, 10, k)
            matrices[n], needs[n] = _scale(matrices[n], powers[:, None]), _scale(needs[n], powers)
    if rng.random() < 0.3:
        i, j = rng.integers(0, k, 2)
        matrices[0][i, j] *= 1 + float(rng.choice([-1, 1])) * 10.0 ** -rng.integers(6, 12)
    if layers == 1 and rng.random() < 0.7:
        return SignedGame(matrices[0], needs[0], **frame)
    goals = [
        Goal(i, f"goal {n}", matrices[n][i], float(needs[n][i]))
        for n in range(layers)
        for i in range(k)
        if n == 0 or rng.random() < 0.7
    ]
    return GoalsGame(goals, **frame)


def _scale(values: np.ndarray, powers: np.ndarray) -> np.ndarray:
    return np.sign(values) * fuzz._scaled(np.abs(values), powers)


def find_rows_truth(game: RowGame, concept: str, select: str) -> fuzz.Truth | None:
    """Return the exact answer, or None where there is no way to list it."""
    exact = ExactRows.of(game)
    if game.is_integer:
        kinds = {
            "optimal": exact.is_feasible,
            "stable": exact.is_stable_whole,
            "envy-free": exact.is_envy_free,
        }
        ends = zip(exact.lows, exact.highs, strict=True)
        points = product(*(range(int(low), int(high) + 1) for low, high in ends))
        totals = [exact.total(theta) for theta in points if kinds[concept](theta)]
    elif concept == "envy-free":
        return _find_infimum(exact)
    else:
        wanted = exact.is_stable if concept == "stable" else exact.is_feasible
        totals = [exact.total(theta) for theta in exact.corners if wanted(theta)]
    return fuzz.Truth((max if select == "costliest" else min)(totals, default=None))


def _find_infimum(exact: ExactRows) -> fuzz.Truth | None:
    """Return the least envy-free total, as fuzz.envy_free_infimum does, below a budget."""
    if exact.size > 2 and len(exact.rows) > 4:
        return None
    if not exact.corners:
        return fuzz.Truth(None)
    # Whatever is cheaper than an envy-free level is in a polytope; without such a level, skip.
    budget = _find_level_budget(exact)
    if budget is None:
        return None
    weak = [*exact.walls, fuzz._plane([-c for c in exact.costs], -budget)]
    pairs = [list(exact.ways(i, j)) for i, j in permutations(range(exact.size), 2)]
    planes = {fuzz._same_sign(p) for p in [*weak, *(p for ways in pairs for p, _ in ways)]}
    corners = [
        theta
        for chosen in combinations(sorted(planes), exact.size)
        if (theta := fuzz._meet(chosen)) is not None
        and all(fuzz._over(row, theta) >= 0 for row in weak)
    ]
    cost = {theta: exact.total([Fraction(t, theta[-1]) for t in theta[:-1]]) for theta in corners}
    best, attained = None, False
    for kept, strict in fuzz._patterns(pairs, list(cost), []):
        if not all(any(fuzz._over(row, t) > 0 for t in kept) for row in strict):
            continue
        least = min(cost[t] for t in kept)
        face = [t for t in kept if cost[t] == least]
        reached = all(any(fuzz._over(row, t) > 0 for t in face) for row in strict)
        if best is None or least < best:
            best, attained = least, reached
        elif least == best:
            attained = attained or reached
    return fuzz.Truth(best, attained)


def _find_level_budget(exact: ExactRows) -> Fraction | None:
    """Return more than the total of some level allocation that satisfies everybody."""
    level = max([row[1] / row[0][row[2]] for row in exact.rows] + list(exact.lows))
    for _ in range(80):
        theta = [
            max(low, level if high is None else min(level, high))
            for low, high in zip(exact.lows, exact.highs, strict=True)
        ]
        if exact.is_feasible(theta):
            return 2 * exact.total(theta) + 1
        level *= 2
    return None


if __name__ == "__main__":
    if "--large" in sys.argv:
        sys.argv.remove("--large")
        rows_solve.EXACT_AGENTS = 0
    fuzz.draw_game, fuzz.find_truth = draw_rows_game, find_rows_truth
    sys.exit(fuzz.main())
