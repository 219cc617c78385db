"""Random small games against exact answers: no claim of a solver may be wrong.

    python benchmarks/fuzz.py --games 20000 --seed 1 [--start N] [--seconds S]

Linear games (symmetric or not, singular, indefinite, nearly tied, in units from 1e-9 to 1e9) and
coverage games, over reals and whole numbers, with limits, minimums and costs. What optimal, stable
and envy-free solvers claim is compared with answers in fractions: corners of the feasible set,
corners of all hyperplanes at which envy begins, and lists of all whole-number allocations. Game n
of a seed is always the same, so that runs can be resumed at any number. Ends with exit code 1 at
the first wrong claim, and prints that game as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from fedaccord import (
    CoverageGame,
    LinearGame,
    Solution,
    Status,
    check,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord._checks import exact_numbers, simplest_fraction
from fedaccord.check import Answer
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.reproduce.oracle import (
    ExactGame,
    Listing,
    coverage_utility,
    is_stable_when_rounded,
    linear_utility,
    list_envy,
    swap,
)

SOLVERS = {"optimal": solve_optimal, "stable": solve_stable, "envy-free": solve_envy_free}
TOLERANCE = 1e-6
# Seconds for a solver; what needs more ends with bounds, which are judged too.
TIME_LIMIT = 4.0
# Whole-number games with more allocations than this are not listed.
LISTED = 4_000


class Truth(NamedTuple):
    """The least total, or infimum, of a kind; None where none exists.

    attained: whether an allocation has it.
    exact: False where it is only the total of some allocation of the kind.
    """

    value: Fraction | None
    attained: bool = True
    exact: bool = True


# Games.


def draw_linear(rng: np.random.Generator) -> LinearGame:
    """Draw a linear game of two to four agents."""
    k = int(rng.choice([2, 3, 4], p=[0.5, 0.4, 0.1]))
    whole = bool(rng.random() < 0.3)
    benefits = _benefits(rng, k)
    needs = _decimals(rng, k, low=0.1, high=6.0 if whole else 3.0)
    if rng.random() < 0.35:
        # Requirements that some simple contributions meet exactly.
        planted = rng.integers(0, 4, k) / (1 if whole else 2)
        needs = np.round(benefits @ planted, 9)
        needs[needs == 0] = 1.0
    frame = _frame(rng, needs / np.diag(benefits), whole=whole)
    if rng.random() < 0.5:
        rows = rng.integers(-9, 10, k if rng.random() < 0.5 else 1)
        benefits, needs = _scaled(benefits, rows[:, None]), _scaled(needs, rows)
        if not whole:
            columns = rng.integers(-9, 10, k if rng.random() < 0.3 else 1)
            benefits = _scaled(benefits, -columns)
            for name in ("limits", "minimums"):
                if name in frame:
                    frame[name] = _scaled(frame[name], columns)
    if rng.random() < 0.3:
        # A near tie: one number moved by very little.
        i, j = rng.integers(0, k, 2)
        benefits[i, j] *= 1 + float(rng.choice([-1, 1])) * 10.0 ** -rng.integers(6, 12)
    return LinearGame(benefits, needs, **frame)


def _scaled(values: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Multiply decimals by powers of ten, rounding once, so that ties stay ties."""
    pairs = np.broadcast_arrays(values, powers)
    scaled = [
        value if math.isinf(value) else float(simplest_fraction(value) * Fraction(10) ** int(power))
        for value, power in zip(*(part.ravel().tolist() for part in pairs), strict=True)
    ]
    return np.reshape(scaled, pairs[0].shape)


def _decimals(rng: np.random.Generator, size: Any, *, low: float, high: float) -> np.ndarray:
    digits = int(rng.choice([0, 1, 2, 8], p=[0.2, 0.4, 0.3, 0.1]))
    values = np.round(rng.uniform(low, high, size), digits)
    return np.where(values == 0, 1.0, values)


def _benefits(rng: np.random.Generator, k: int) -> np.ndarray:
    kind = rng.choice(["grid", "asymmetric", "symmetric", "gram", "singular", "spread"])
    if kind == "gram":
        rows = rng.integers(0, 4, (k, int(rng.integers(1, 4)))) + np.eye(k, 3)[:, :1] * 0 + 0.0
        rows[:, 0] += rows.sum(axis=1) == 0
        matrix = rows @ rows.T / 4
    elif kind == "singular":
        row = _decimals(rng, k, low=0.1, high=2.0)
        matrix = np.outer(_decimals(rng, k, low=0.1, high=2.0) if rng.random() < 0.5 else row, row)
        matrix = np.round(matrix, 6)
    elif kind == "spread":
        matrix = 10.0 ** rng.integers(-4, 5, (k, k)) * rng.integers(1, 10, (k, k))
    else:
        matrix = _decimals(rng, (k, k), low=0.0, high=2.0)
        if kind == "grid":
            matrix = rng.choice([0, 0.1, 0.25, 0.5, 1, 2], (k, k))
        matrix = np.where(rng.random((k, k)) < 0.25, 0.0, matrix)
        if kind == "symmetric":
            matrix = np.maximum(matrix, matrix.T)
    own = np.diag(matrix)
    np.fill_diagonal(matrix, np.where(own == 0, rng.choice([0.5, 1, 2], k), own))
    return np.asarray(matrix, dtype=np.float64)


def _frame(rng: np.random.Generator, alone: np.ndarray, *, whole: bool) -> dict[str, Any]:
    """Draw limits, minimums and costs; alone: what each would need."""
    k, frame = len(alone), {}
    if rng.random() < 0.4:
        share = rng.choice([0.25, 0.5, 0.9, 1.0, 1.5, 3.0], k)
        limits = np.ceil(alone * share) if whole else np.round(alone * share, 3) + 0.0
        frame["limits"] = np.where(rng.random(k) < 0.4, np.inf, limits)
    if rng.random() < 0.2:
        least = alone * rng.choice([0.0, 0.0, 0.25, 0.6], k)
        least = np.floor(least) if whole else np.round(least, 2)
        frame["minimums"] = np.minimum(least, frame.get("limits", np.inf))
    if rng.random() < 0.3:
        frame["costs"] = _decimals(rng, k, low=0.1, high=5.0) * 10.0 ** rng.integers(-6, 7)
    if whole:
        frame["strategies"] = "integer"
    return frame


def draw_coverage(rng: np.random.Generator) -> CoverageGame:
    """Draw a coverage game of two or three agents on two to four points, some of them certain."""
    k, points = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    counts = rng.integers(0, 3, (k, points))
    counts[np.arange(k), rng.integers(0, points, k)] += 1
    rows = counts / counts.sum(axis=1, keepdims=True)
    needs = rng.choice([0.5, 0.6, 2 / 3, 0.75, 0.8, 5 / 6], k)
    whole = bool(rng.random() < 0.6)
    return CoverageGame(rows, needs, **_frame(rng, np.full(k, 3.0), whole=whole))


def draw_game(seed: int, number: int) -> tuple[Game, str, str]:
    """Draw game `number` of a seed, a concept, and which equilibrium."""
    rng = np.random.default_rng([seed, number])
    concept = str(rng.choice(["optimal", "stable", "envy-free"], p=[0.25, 0.45, 0.3]))
    select = "costliest" if concept == "stable" and rng.random() < 0.25 else "cheapest"
    while True:
        try:
            linear = rng.random() < 0.95
            game = draw_linear(rng) if linear else draw_coverage(rng)
        except InputError:
            continue
        if not (game.is_integer and _allocations(game) > LISTED):
            return game, concept, select


def _allocations(game: Game) -> float:
    return float(np.prod(_highest(game) - game.minimums + 1))


def _highest(game: Game) -> np.ndarray:
    """Return amounts that no cheapest allocation of a whole-number game exceeds.

    Whoever pays for more than the level that satisfies everybody is cheaper at that level.
    """
    level = float(game.alone[np.isfinite(game.alone)].max(initial=0.0)) + 1
    for _ in range(12):
        at = np.maximum(np.minimum(level, game.limits), game.minimums)
        if game.is_feasible(at):
            break
        level *= 2
    spent = game.total(at) - game.total(game.minimums)
    return np.minimum(np.floor(game.minimums + spent / game.costs * (1 + 1e-9)), game.limits)


# Truths.


def find_truth(game: Game, concept: str, select: str) -> Truth | None:
    """Return the exact answer, or None where there is no way to list it."""
    if game.is_integer:
        return _list_whole(game, concept, select)
    if isinstance(game, LinearGame):
        exact = read_exactly(game)
        if concept == "envy-free":
            return envy_free_infimum(exact) if game.size <= 3 else None
        totals = [
            exact.total(c) for c in (exact.corners if concept == "optimal" else exact.equilibria)
        ]
        best = max if select == "costliest" else min
        return Truth(best(totals, default=None))
    return _list_grid(game, concept, select)


def read_exactly(game: LinearGame) -> ExactGame:
    """Read a game's numbers as the library does: each as the simplest fraction."""
    limits = [exact_numbers([n])[0] if math.isfinite(n) else None for n in game.limits.tolist()]
    return ExactGame(
        tuple(tuple(exact_numbers(row)) for row in game.dense_benefits),
        tuple(exact_numbers(game.requirements)),
        tuple(exact_numbers(game.minimums)),
        tuple(limits),
        tuple(exact_numbers(game.costs)),
    )


def _utility(game: Game) -> Any:
    if isinstance(game, LinearGame):
        return linear_utility([exact_numbers(row) for row in game.dense_benefits])
    assert isinstance(game, CoverageGame)
    return coverage_utility([exact_numbers(row) for row in game.distributions.toarray()])


def _list_whole(game: Game, concept: str, select: str) -> Truth:
    high = tuple(int(n) for n in np.maximum(_highest(game), game.minimums))
    utility, needs = _utility(game), exact_numbers(game.requirements)
    costs = exact_numbers(game.costs)
    listing = Listing(
        utility,
        tuple(needs),
        limits=tuple(int(n) if math.isfinite(n) else 10**9 for n in game.limits.tolist()),
        minimums=tuple(int(n) for n in game.minimums),
    )
    kinds = {
        "optimal": listing.is_feasible, "stable": listing.is_stable,
        "envy-free": listing.is_envy_free,
    }  # fmt: skip
    sides = (range(int(low), top + 1) for low, top in zip(game.minimums, high, strict=True))
    priced = sorted(
        (sum(c * t for c, t in zip(costs, theta, strict=True)), theta) for theta in product(*sides)
    )
    if select == "costliest":
        priced.reverse()
    return Truth(next((cost for cost, theta in priced if kinds[concept](theta)), None))


def _list_grid(game: Game, concept: str, select: str) -> Truth:
    """Return the best of whole, half and quarter amounts: one allocation of the kind, if any."""
    utility, needs = _utility(game), exact_numbers(game.requirements)
    costs = exact_numbers(game.costs)
    low, high = exact_numbers(game.minimums), np.minimum(game.limits, 4.0)
    steps = [
        sorted({*(least + Fraction(n, 4) for n in range(17 if game.size < 3 else 9)
                  if least + Fraction(n, 4) <= top), Fraction(top) if top <= 4 else least})
        for least, top in zip(low, exact_numbers(high), strict=True)
    ]  # fmt: skip
    best: Fraction | None = None
    for theta in product(*steps):
        cost = sum(c * t for c, t in zip(costs, theta, strict=True))
        better = best is None or (cost > best if select == "costliest" else cost < best)
        if better and _is_kind(game, concept, utility, needs, low, theta):
            best = cost
    return Truth(best, exact=False)


def _is_kind(
    game: Game, concept: str, utility: Any, needs: Sequence[Fraction], low: Sequence[Fraction],
    theta: Sequence[Fraction],
) -> bool:  # fmt: skip
    if any(utility(i, theta) < need for i, need in enumerate(needs)):
        return False
    if concept == "stable":
        return not any(low) and is_stable_when_rounded(utility, needs, theta)
    if concept == "envy-free":
        return not any(
            all(low[n] <= t <= game.limits[n] for n, t in enumerate(swap(theta, i, j)))
            for i, j in list_envy(utility, needs, theta)
        )
    return True


def envy_free_infimum(exact: ExactGame) -> Truth:
    """Return the least total of envy-free allocations, approached or attained, by listing corners.

    Envy begins and ends at hyperplanes. For each way of avoiding it pair by pair, the closed set of
    allocations below some total is a polytope whose corners are corners of these hyperplanes; what
    is to be strict can be, if for each such row it is at one of them.
    """
    highs = exact.limits or (None,) * exact.size
    budget = _some_level(exact)
    if budget is None:
        return Truth(None)
    weak = [_plane(*row) for row in (*_unit_rows(exact.lows, 1), *_unit_rows(highs, -1))]
    weak += [_plane(*row) for row in zip(exact.benefits, exact.requirements, strict=True)]
    weak.append(_plane([-c for c in exact.costs or ()], -budget))
    pairs = [_ways(exact, highs, i, j) for i, j in permutations(range(exact.size), 2)]
    planes = {_same_sign(plane) for plane in [*weak, *(p for ways in pairs for p, _ in ways)]}
    corners = [
        theta
        for chosen in combinations(sorted(planes), exact.size)
        if (theta := _meet(chosen)) is not None and all(_over(row, theta) >= 0 for row in weak)
    ]
    cost = {theta: exact.total([Fraction(t, theta[-1]) for t in theta[:-1]]) for theta in corners}
    best: Fraction | None = None
    attained = False
    for kept, strict in _patterns(pairs, list(cost), []):
        if not all(any(_over(row, t) > 0 for t in kept) for row in strict):
            continue
        least = min(cost[t] for t in kept)
        face = [t for t in kept if cost[t] == least]
        reached = all(any(_over(row, t) > 0 for t in face) for row in strict)
        if best is None or least < best:
            best, attained = least, reached
        elif least == best:
            attained = attained or reached
    return Truth(best, attained)


def _some_level(exact: ExactGame) -> Fraction | None:
    """Return more than the total of some level allocation that satisfies everybody."""
    highs = exact.limits or (None,) * exact.size
    level = max(
        [need / exact.benefits[i][i] for i, need in enumerate(exact.requirements)]
        + list(exact.lows)
    )
    for _ in range(120):
        theta = [
            max(low, level if high is None else min(level, high))
            for low, high in zip(exact.lows, highs, strict=True)
        ]
        if min(exact.slack(theta)) >= 0:
            return 2 * exact.total(theta) + 1
        level *= 2
    return None


def _unit_rows(ends: Sequence[Fraction | None], sign: int) -> Iterator[tuple[Any, Fraction]]:
    for i, end in enumerate(ends):
        if end is not None:
            yield tuple(Fraction(sign * (i == j)) for j in range(len(ends))), sign * end


def _ways(
    exact: ExactGame, highs: Sequence[Any], i: int, j: int
) -> list[tuple[tuple[int, ...], bool]]:
    """List the ways in which i does not envy j: a row a'theta >= b, and whether it is strict."""
    unit = [[Fraction(n == m) for m in range(exact.size)] for n in range(exact.size)]
    below = [b - a for a, b in zip(unit[i], unit[j], strict=True)]
    swapped = swap(exact.benefits[i], i, j)
    ways = [(_plane(below, Fraction(0)), False)]
    ways.append((_plane([-w for w in swapped], -exact.requirements[i]), True))
    if highs[j] is not None:
        ways.append((_plane(unit[i], highs[j]), True))
    if exact.lows[i] > exact.lows[j]:
        ways.append((_plane([-a for a in unit[j]], -exact.lows[i]), True))
    return ways


def _plane(row: Sequence[Fraction], right: Fraction) -> tuple[int, ...]:
    """Write a row and its right-hand side in whole numbers."""
    scale = math.lcm(*(w.denominator for w in (*row, right)))
    whole = [int(w * scale) for w in (*row, right)]
    common = math.gcd(*whole) or 1
    return tuple(w // common for w in whole)


def _same_sign(plane: tuple[int, ...]) -> tuple[int, ...]:
    negative = next((w < 0 for w in plane if w), False)
    return tuple(-w for w in plane) if negative else plane


def _determinant(rows: Sequence[Sequence[int]]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    return sum(
        (-1) ** n * row[0] * _determinant([r[1:] for m, r in enumerate(rows) if m != n])
        for n, row in enumerate(rows)
        if row[0]
    )


def _meet(planes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the point where hyperplanes meet, over a common denominator, by Cramer's rule."""
    below = _determinant([p[:-1] for p in planes])
    if below == 0:
        return None
    sign = 1 if below > 0 else -1
    point = [
        sign * _determinant([(*p[:n], p[-1], *p[n + 1 : -1]) for p in planes])
        for n in range(len(planes))
    ]
    common = math.gcd(*point, below)
    return tuple(n // common for n in (*point, abs(below)))


def _over(row: tuple[int, ...], theta: tuple[int, ...]) -> int:
    return sum(map(mul, row[:-1], theta)) - row[-1] * theta[-1]


def _patterns(
    pairs: Sequence[Any], corners: list[Any], strict: list[Any]
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield for each choice of ways, one a pair, the corners that obey it and its strict rows."""
    if not corners:
        return
    if not pairs:
        yield corners, strict
        return
    for row, is_strict in pairs[0]:
        kept = [theta for theta in corners if _over(row, theta) >= 0]
        yield from _patterns(pairs[1:], kept, [*strict, row] if is_strict else strict)


# Judgements.


def find_faults(game: Game, solution: Solution, truth: Truth, select: str) -> list[str]:
    """List what is wrong with what a solver claims."""
    faults = []
    status, bounds = solution.status, solution.bounds
    value = None if truth.value is None else float(truth.value)
    if status in (Status.NONE_EXISTS, Status.INFEASIBLE):
        return [f"claims {status.key}, but {value:.9g} exists"] if value is not None else []
    if solution.contributions is not None:
        report = check(game, solution.contributions, tolerance=TOLERANCE)
        verdict = {
            "optimal": report.feasible, "stable": report.stable, "envy-free": report.envy_free,
        }[solution.concept]  # fmt: skip
        if verdict is Answer.FALSE:
            faults.append("the check refutes the allocation")
    if value is None:
        excused = _is_knife_edge(game) or _is_at_rest(solution)
        if truth.exact and status is not Status.FAILED and not excused:
            faults.append(f"claims {status.key}, but none exists")
        return faults
    slack = 1e-9 * value
    costliest = select == "costliest"
    excused = _is_at_rest(solution)
    if truth.exact and not excused and not bounds.lower - slack <= value <= bounds.upper + slack:
        faults.append(f"the bounds do not hold {value:.12g}")
    if not truth.exact and (
        value > bounds.upper + slack if costliest else value < bounds.lower - slack
    ):
        faults.append(f"the bounds rule out {value:.12g}")
    near = (10 if solution.concept == "stable" else 1) * TOLERANCE * value * 1.0001
    off = abs(solution.total - value) > near
    if status is Status.OPTIMAL and truth.exact and off and not _is_at_rest(solution):
        faults.append(f"claims {solution.total:.12g}; the truth is {value:.12g}")
    if status is Status.NOT_ATTAINED and truth.attained and truth.exact:
        faults.append(f"{value:.12g} is attained")
    return faults


def _is_at_rest(solution: Solution) -> bool:
    """Say whether an allocation is stable but for rounding, which counts though none is exactly."""
    given = solution.contributions
    if solution.concept != "stable" or given is None or solution.game.is_integer:
        return False
    wanted = np.maximum(solution.game.best_responses(given), solution.game.minimums)
    return bool((np.abs(wanted - given) <= 1e-12 * given.max()).all())


def _is_knife_edge(game: Game) -> bool:
    """Say whether limits miss a requirement by rounding only, which counts as met."""
    if not np.isfinite(game.limits).all() or game.is_integer:
        return False
    slack = game.utilities(game.limits) - game.requirements
    return bool((np.abs(slack) <= 1e-12 * game.requirements).any())


def judge(seed: int, number: int) -> tuple[str, list[str], Game]:
    """Solve one game and compare; return how it ended, its faults and the game."""
    game, concept, select = draw_game(seed, number)
    truth = find_truth(game, concept, select)
    if truth is None:
        return "no truth", [], game
    options = {"select": select} if concept == "stable" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            solution = SOLVERS[concept](game, time_limit=TIME_LIMIT, **options)
        except Exception as error:  # noqa: BLE001
            return "error", [f"{concept}: {type(error).__name__}: {error}"], game
    faults = [f"{concept} ({select}): {text}; {solution}" for text in
              find_faults(game, solution, truth, select)]  # fmt: skip
    return f"{concept} {solution.status.key}", faults, game


def main() -> int:
    """Judge games until the number or the time asked for is reached."""
    parser = argparse.ArgumentParser(description="Compare solvers with exact answers.")
    parser.add_argument("--games", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--keep-going", action="store_true", help="list every wrong claim")
    asked = parser.parse_args()
    began, tally, wrong, slowest = time.perf_counter(), Counter(), 0, (0.0, -1)
    number = asked.start
    while number < asked.start + asked.games and time.perf_counter() - began < asked.seconds:
        before = time.perf_counter()
        ending, faults, game = judge(asked.seed, number)
        slowest = max(slowest, (time.perf_counter() - before, number))
        tally[ending] += 1
        if faults:
            wrong += 1
            print(f"game {number} of seed {asked.seed}:", *faults, sep="\n  ")
            print(json.dumps(game.to_dict()))
            if not asked.keep_going:
                break
        number += 1
    seconds = time.perf_counter() - began
    games = sum(tally.values())
    print(f"{games:,} games from {asked.start:,} of seed {asked.seed}: {wrong} wrong")
    print(f"{games / seconds:.0f} a second; slowest {slowest[0]:.1f} s (game {slowest[1]})")
    for ending, count in sorted(tally.items()):
        print(f"  {count:7,} {ending}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
