"""The infimum of envy-free totals by one linear program for each way in which envy is avoided."""

from itertools import product

import numpy as np
from scipy.optimize import linprog


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
