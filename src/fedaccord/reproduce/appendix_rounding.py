"""Appendix B: derivatives of coverage utilities under randomized rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import numpy as np

from fedaccord.games.coverage import CoverageGame
from fedaccord.reproduce.claims import Claims, Measured, Setting
from fedaccord.reproduce.draws import distributions
from fedaccord.reproduce.oracle import (
    HALF,
    ZERO,
    Rows,
    Utility,
    coverage_utility,
    multiply,
    read_rows,
    replace_amount,
    round_at_random,
    to_floats,
)

CLAIMS = Claims()
SEED = 2
GAMES = (40, 300)


@CLAIMS.measure("rounding-derivatives")
def rounding_derivatives(setting: Setting) -> Measured:
    """Compare difference quotients of random games with the formulas, in fractions."""
    random = np.random.default_rng(SEED)
    count, worst = GAMES[setting.full], 0.0
    tally: dict[str, Any] = {"quotients": 0, "right": 0, "kinks": 0, "bounds": 0, "within": 0}
    for _ in range(count):
        table = distributions(random, 3, 4)
        rows = read_rows(table.tolist())
        theta = [Fraction(int(n), 4) for n in random.integers(0, 13, 3)]
        plain = round_at_random(coverage_utility(rows))
        rates = CoverageGame(table, [0.6] * 3).jacobian(to_floats(theta))
        for i, j in product(range(3), repeat=2):
            formula = compute_marginal(rows, theta, i, j, floor(theta[j]))
            worst = max(worst, abs(float(formula) - float(rates[i, j])))
            compare_quotients(plain, rows, theta, i, j, tally)
            compare_bounds(plain, rows, theta, i, j, tally)
    return Measured(games=count, **tally, worst_error_of_jacobian=worst, seed=SEED)


def compute_marginal(rows: Rows, theta: Sequence[Fraction], i: int, j: int, whole: int) -> Fraction:
    """Return 1/2 sum_x q_ix prod_{l != j} E[(1 - q_lx)^m_l] q_jx (1 - q_jx)^t, as printed."""
    total = ZERO
    for x, chance in enumerate(rows[i]):
        part = chance * rows[j][x] * (1 - rows[j][x]) ** whole
        for other, amount in enumerate(theta):
            if other != j:
                miss, low = 1 - rows[other][x], floor(amount)
                part *= (1 - amount + low) * miss**low + (amount - low) * miss ** (low + 1)
        total += part
    return HALF * total


def compare_quotients(
    plain: Utility, rows: Rows, theta: list[Fraction], i: int, j: int, tally: dict[str, int]
) -> None:
    """Count quotients to the right and to the left of theta_j that are as printed."""

    def at(amount: Fraction | int) -> Fraction:
        return plain(i, replace_amount(theta, j, amount))

    low, slopes = floor(theta[j]), []
    for step in (Fraction(1, 8), Fraction(-1, 8)):
        if theta[j] + step < 0:
            continue
        # Left of a whole number the piece is the one below it.
        whole = low - 1 if step < 0 and theta[j] == low else low
        quotient = (at(theta[j] + step) - at(theta[j])) / step
        tally["quotients"] += 1
        tally["right"] += (
            quotient == at(whole + 1) - at(whole) == compute_marginal(rows, theta, i, j, whole)
        )
        slopes.append(quotient)
    tally["kinks"] += len(set(slopes)) > 1


def compare_bounds(
    plain: Utility, rows: Rows, theta: list[Fraction], i: int, j: int, tally: dict[str, int]
) -> None:
    """Count comparisons that hold: falling in t and in others' amounts, and the two bounds."""
    low, corner, nothing = floor(theta[j]), [t + HALF for t in theta], [ZERO] * 3
    rate, other = compute_marginal(rows, theta, i, j, low), (j + 1) % 3
    more = replace_amount(theta, other, theta[other] + HALF)
    overlap = HALF * multiply(rows[i], rows[j])
    checks = [
        compute_marginal(rows, theta, i, j, low + 1) <= rate,
        compute_marginal(rows, more, i, j, low) <= rate,
        rate <= overlap <= HALF,
        overlap == plain(i, replace_amount(nothing, j, 1)) - plain(i, nothing),
    ]
    if i == j:
        further = plain(i, replace_amount(corner, i, corner[i] + 1))
        checks.append(rate >= further - plain(i, corner))
    tally["bounds"] += len(checks)
    tally["within"] += sum(checks)
