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
    """List the corners of the feasible set.

    A linear total is least at one; and the equilibria are a union of faces, those where theta_i or
    the slack of i is zero for every i, so that corners hold the least total of an equilibrium too.
    """
    k = game.size
    benefits = [[Fraction(w) for w in row] for row in game.dense_benefits.tolist()]
    required = needs(game)
    unit = [[Fraction(int(i == j)) for j in range(k)] for i in range(k)]
    rows, right = unit + benefits, [Fraction(0)] * k + required
    found = set()
    for chosen in combinations(range(2 * k), k):
        theta = solve_exactly([rows[c] for c in chosen], [right[c] for c in chosen])
        if theta is not None and min(theta) >= 0:
            slack = [
                sum(w * t for w, t in zip(benefits[i], theta, strict=True)) - required[i]
                for i in range(k)
            ]
            if min(slack) >= 0:
                found.add((tuple(theta), tuple(slack)))
    return sorted(found)


def least_real_total(game):
    return min(sum(theta) for theta, _ in corners(game))


def stable_real_totals(game):
    """Give the totals of all equilibria that are corners."""
    return [
        sum(theta)
        for theta, slack in corners(game)
        if all(t == 0 or s == 0 for t, s in zip(theta, slack, strict=True))
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
