"""Answers to tiny games by listing everything: slow, plain, and apart from all solvers."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog

# Integer games, from utilities in Fractions.


def exact_linear(game):
    """Give u(agent, theta) = sum of W_ij theta_j straight from the matrix."""
    benefits = [[Fraction(w) for w in row] for row in game.dense_benefits.tolist()]

    def utility(agent, theta):
        return sum((w * t for w, t in zip(benefits[agent], theta, strict=True)), Fraction(0))

    return utility


def exact_coverage(game):
    """Give u(agent, theta) = 1 - 1/2 sum of q_ix prod of (1 - q_jx)^theta_j."""
    rows = [[Fraction(q) for q in row] for row in game.distributions.toarray().tolist()]

    def utility(agent, theta):
        total = Fraction(1)
        for x, q in enumerate(rows[agent]):
            missed = q / 2
            for row, count in zip(rows, theta, strict=True):
                missed *= (1 - row[x]) ** count
            total -= missed
        return total

    return utility


def needs(game):
    """Give the requirements as Fractions of the floats that the game holds."""
    return [Fraction(str(r)) for r in game.requirements.tolist()]


def feasible(utility, required, theta):
    return all(utility(i, theta) >= mu for i, mu in enumerate(required))


def stable(utility, required, theta):
    """Nobody can give one less: utilities never fall, so one less is the best cut to try."""
    return feasible(utility, required, theta) and all(
        t == 0 or utility(i, [*theta[:i], t - 1, *theta[i + 1 :]]) < required[i]
        for i, t in enumerate(theta)
    )


def envy_free(utility, required, theta):
    if not feasible(utility, required, theta):
        return False
    for i, j in product(range(len(theta)), repeat=2):
        if theta[i] > theta[j]:
            swapped = list(theta)
            swapped[i], swapped[j] = theta[j], theta[i]
            if utility(i, swapped) >= required[i]:
                return False
    return True


def allocations(size, total):
    """List all whole contributions of a total."""
    if size == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in allocations(size - 1, total - first):
            yield (first, *rest)


def least_total(utility, required, kind, most):
    """Give the least total up to a bound at which some allocation is of the kind; None if none."""
    size = len(required)
    for total in range(most + 1):
        if any(kind(utility, required, theta) for theta in allocations(size, total)):
            return total
    return None


def swap_allowed(game, theta, i, j):
    """Whether i may take j's smaller burden: both must stay between minimum and limit."""
    return theta[i] <= game.limits[j] and theta[j] >= game.minimums[i]


def cheapest_in_box(game, utility):
    """Give the least cost of a feasible, a stable and an envy-free allocation within limits."""
    required = needs(game)
    sides = [
        range(int(low), int(high) + 1) for low, high in zip(game.minimums, game.limits, strict=True)
    ]
    best = {"feasible": None, "stable": None, "envy-free": None}

    def note(kind, theta):
        cost = float(game.costs @ np.array(theta))
        best[kind] = cost if best[kind] is None else min(best[kind], cost)

    for theta in product(*sides):
        if not feasible(utility, required, theta):
            continue
        note("feasible", theta)
        if all(
            t == low or utility(i, [*theta[:i], t - 1, *theta[i + 1 :]]) < required[i]
            for i, (t, low) in enumerate(zip(theta, game.minimums, strict=True))
        ):
            note("stable", theta)
        if not any(_envies(game, utility, required, theta, *pair) for pair in _pairs(theta)):
            note("envy-free", theta)
    return best


def _pairs(theta):
    return [(i, j) for i, j in product(range(len(theta)), repeat=2) if theta[i] > theta[j]]


def _envies(game, utility, required, theta, i, j):
    swapped = list(theta)
    swapped[i], swapped[j] = theta[j], theta[i]
    return swap_allowed(game, theta, i, j) and utility(i, swapped) >= required[i]


# Real linear games, by the corners of {theta >= 0, W theta >= mu}.


def solve_exactly(rows, right):
    """Solve a square system in Fractions; None where it is singular."""
    k = len(rows)
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for column in range(k):
        pivot = next((r for r in range(column, k) if table[r][column] != 0), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [value / table[column][column] for value in table[column]]
        for r in range(k):
            if r != column and table[r][column] != 0:
                factor = table[r][column]
                table[r] = [a - factor * b for a, b in zip(table[r], table[column], strict=True)]
    return [row[-1] for row in table]


def corners(game):
    """List the corners of the feasible set, each with the slack of every agent.

    A linear total is least at one; and the equilibria are a union of faces, those where theta_i is
    at its minimum or the slack of i is zero for every i, so that corners hold the least total of
    an equilibrium too, and the greatest, as no equilibrium exceeds the stand-alone needs.
    """
    k = game.size
    benefits = [[Fraction(w) for w in row] for row in game.dense_benefits.tolist()]
    low = [Fraction(m) for m in game.minimums.tolist()]
    unit = [[Fraction(int(i == j)) for j in range(k)] for i in range(k)]
    limits = [(i, Fraction(n)) for i, n in enumerate(game.limits.tolist()) if np.isfinite(n)]
    rows = unit + benefits + [unit[i] for i, _ in limits]
    right = low + needs(game) + [n for _, n in limits]
    found = set()
    for chosen in combinations(range(len(rows)), k):
        theta = solve_exactly([rows[c] for c in chosen], [right[c] for c in chosen])
        if theta is None or any(theta[i] > n for i, n in limits):
            continue
        values = [
            sum(w * t for w, t in zip(row, theta, strict=True)) - least
            for row, least in zip(rows[: 2 * k], right[: 2 * k], strict=True)
        ]
        if min(values) >= 0:
            found.add((tuple(theta), tuple(values[:k]), tuple(values[k:])))
    return [
        (sum(Fraction(c) * t for c, t in zip(game.costs.tolist(), theta, strict=True)), *rest)
        for theta, *rest in sorted(found)
    ]


def least_real_total(game):
    """Give the least cost of a feasible allocation; None where there is none."""
    return min((total for total, _, _ in corners(game)), default=None)


def stable_real_totals(game):
    """Give the costs of all equilibria that are corners."""
    return [
        total
        for total, above, slack in corners(game)
        if all(a == 0 or s == 0 for a, s in zip(above, slack, strict=True))
    ]


# Real linear envy-free allocations, one linear program for each way in which envy is avoided.


def least_envy_free_total(game):
    """Give the infimum of envy-free totals.

    For each ordered pair either theta_i <= theta_j, or after the swap i has less than it needs.
    Where a choice for all pairs has a point with all of the latter strict, the closure of such
    points is the closed polyhedron, and its least total is the infimum.
    """
    k = game.size
    benefits = game.dense_benefits
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
    best = np.inf
    for pattern in product((False, True), repeat=len(pairs)):
        weak, weak_right = [-row for row in benefits], list(-game.requirements)
        strict, strict_right = [], []
        for (i, j), short in zip(pairs, pattern, strict=True):
            if short:
                swapped = np.array(benefits[i])
                swapped[[i, j]] = swapped[[j, i]]
                strict.append(swapped)
                strict_right.append(game.requirements[i])
            else:
                weak.append(np.eye(k)[i] - np.eye(k)[j])
                weak_right.append(0.0)
        if strict and not _has_inner_point(weak, weak_right, strict, strict_right):
            continue
        answer = linprog(
            np.ones(k), A_ub=np.array(weak + strict), b_ub=weak_right + strict_right, method="highs"
        )
        if answer.status == 0:
            best = min(best, float(answer.fun))
    return best


def _has_inner_point(weak, weak_right, strict, strict_right):
    """Say whether some point keeps the strict rows by a margin."""
    k = len(weak[0])
    rows = [np.append(row, 0.0) for row in weak] + [np.append(row, 1.0) for row in strict]
    answer = linprog(
        [*np.zeros(k), -1.0],
        A_ub=np.array(rows),
        b_ub=weak_right + strict_right,
        bounds=[(0, None)] * k + [(None, 1.0)],
        method="highs",
    )
    return answer.status == 0 and -answer.fun > 1e-7
