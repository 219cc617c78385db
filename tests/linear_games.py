"""Linear games with limits, minimums and costs, answered by listing linear programs."""

from itertools import product

import numpy as np
from scipy.optimize import linprog

from fedaccord.games.linear import LinearGame

PAPER_LIKE = np.array([[1, 0.7, 0.7], [0.7, 1, 0.2], [0.7, 0.2, 1]])
TWINS = np.ones((2, 2))
INDEFINITE = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])


def flower(petals):
    """The linear flower: one core, b petals in groups of sqrt(b)."""
    root = round(petals**0.5)
    benefits = np.eye(petals + 1)
    benefits[0, 1:] = benefits[1:, 0] = 1 / root
    for i, j in product(range(petals), repeat=2):
        if i != j and i // root == j // root:
            benefits[1 + i, 1 + j] = 1 / root
    return LinearGame(benefits, np.ones(petals + 1))


def random_game(rng, size, *, kind="any", equal=False, boxed=False, costs=False, **frame):
    """Draw a game; kind is any, symmetric or psd; boxed ones have limits and minimums."""
    if kind == "psd":
        factor = rng.random((size, rng.integers(1, size + 2))) * (rng.random((size, 1)) + 0.3)
        benefits = factor @ factor.T
    else:
        benefits = rng.random((size, size)) * rng.integers(0, 2, (size, size)) + np.eye(size) / 2
        benefits = (benefits + benefits.T) / 2 if kind == "symmetric" else benefits
    needs = np.full(size, 1.0) if equal else rng.integers(0, 9, size) / 4
    if boxed:
        alone = needs / np.diagonal(benefits)
        frame["limits"] = [
            None if rng.random() < 0.5 else float(c) for c in alone * rng.uniform(0.4, 1.3, size)
        ]
        frame["minimums"] = [
            0.0 if limit is None or rng.random() < 0.6 else limit * float(rng.uniform(0, 0.8))
            for limit in frame["limits"]
        ]
    if costs:
        frame["costs"] = rng.integers(1, 5, size) / 2
    return LinearGame(benefits, needs, **frame)


def program(game, cost, *, strict=(), equal=(), weak=(), extra=0.0):
    """Minimise over the feasible box with more rows (row, right): <= or =; None if infeasible."""
    k = game.size
    rows = [(-row, -need) for row, need in zip(game.dense_benefits, game.requirements, strict=True)]
    rows += [*weak, *((row, right - extra) for row, right in strict)]
    answer = linprog(
        cost,
        A_ub=np.array([row for row, _ in rows]),
        b_ub=np.array([right for _, right in rows]),
        A_eq=np.array([row for row, _ in equal]) if equal else None,
        b_eq=np.array([right for _, right in equal]) if equal else None,
        bounds=[(low, None if np.isinf(high) else high) for low, high in box(game)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    assert answer.status in (0, 2), answer.message
    assert answer.x is None or answer.x.shape == (k,)
    return None if answer.status == 2 else answer.x


def box(game):
    return list(zip(game.minimums.tolist(), game.limits.tolist(), strict=True))


def optimum(game):
    """Give an optimal allocation by one linear program; None where there is none."""
    return program(game, game.costs)


def stable_range(game):
    """Give the least and the greatest total of an equilibrium; None where there is none.

    Everybody is at its minimum or has exactly its requirement: one program for each choice.
    """
    k = game.size
    totals = []
    for choice in product((False, True), repeat=k):
        equal = [
            (game.dense_benefits[i], game.requirements[i])
            if gives
            else (np.eye(k)[i], game.minimums[i])
            for i, gives in enumerate(choice)
        ]
        for sign in (1, -1):
            found = program(game, sign * game.costs, equal=equal)
            if found is not None:
                totals.append(float(game.costs @ found))
    return (min(totals), max(totals)) if totals else None


def weak_orders(size):
    """List all rankings with ties: ranks 0.. without holes."""
    return [
        ranks
        for ranks in product(range(size), repeat=size)
        if set(ranks) == set(range(max(ranks) + 1))
    ]


def envy_free_infimum(game):
    """Give the infimum of envy-free totals and whether it is attained; None where there is none.

    For each ranking with ties, and for each pair of it a reason against the swap: the one who gives
    more would be short, or the other's limit or its own minimum forbids it. All are strict; if a
    point keeps them by a margin the closed program's value is an infimum.
    """
    k = game.size
    unit = np.eye(k)
    best, attained = np.inf, False
    for ranks in weak_orders(k):
        pairs = [(i, j) for i in range(k) for j in range(k) if ranks[i] > ranks[j]]
        equal = [
            (unit[i] - unit[j], 0.0) for i in range(k) for j in range(i) if ranks[i] == ranks[j]
        ]
        order = [(unit[j] - unit[i], 0.0) for i, j in pairs]
        for reasons in product(*(_reasons(game, i, j) for i, j in pairs)):
            strict = [*order, *reasons]
            value, reached = _infimum(game, strict, equal)
            if value < best - 1e-9:
                best, attained = value, reached
            elif value < best + 1e-9:
                attained = attained or reached
    return None if np.isinf(best) else (best, attained)


def _reasons(game, i, j):
    swapped = np.array(game.dense_benefits[i])
    swapped[[i, j]] = swapped[[j, i]]
    unit = np.eye(game.size)
    reasons = [(swapped, game.requirements[i])]
    if np.isfinite(game.limits[j]):
        reasons.append((-unit[i], -game.limits[j]))
    if game.minimums[i] > 0:
        reasons.append((unit[j], game.minimums[i]))
    return reasons


def _infimum(game, strict, equal):
    closed = program(game, game.costs, strict=strict, equal=equal)
    if closed is None:
        return np.inf, False
    if not strict:
        return float(game.costs @ closed), True
    if _margin(game, strict, equal, []) <= 1e-7:
        return np.inf, False
    value = float(game.costs @ closed)
    budget = [(game.costs, value + 1e-9)]
    return value, _margin(game, strict, equal, budget) > 1e-6


def _margin(game, strict, equal, weak):
    """Give the most by which all strict rows can be kept at once."""
    wide = lambda rows, last: [np.append(row, last) for row, _ in rows]  # noqa: E731
    needs = [
        (-row, -need) for row, need in zip(game.dense_benefits, game.requirements, strict=True)
    ]
    answer = linprog(
        [*np.zeros(game.size), -1.0],
        A_ub=np.array(wide(strict, 1.0) + wide([*weak, *needs], 0.0)),
        b_ub=[right for _, right in [*strict, *weak, *needs]],
        A_eq=np.array(wide(equal, 0.0)) if equal else None,
        b_eq=[right for _, right in equal] if equal else None,
        bounds=[*((low, None if np.isinf(high) else high) for low, high in box(game)), (None, 1.0)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return -answer.fun if answer.status == 0 else -np.inf
