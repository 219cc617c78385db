"""Appendix B: derivatives of coverage utilities under randomized rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import numpy as np

from fedaccord.games.coverage import CoverageGame
from fedaccord.reproduce.claims import Claims, Finding, Setting, judged, not_so
from fedaccord.reproduce.draws import distributions
from fedaccord.reproduce.oracle import HALF, Utility, coverage_utility, round_at_random, to_floats

CLAIMS = Claims()
SEED = 2
GAMES = (40, 300)


@CLAIMS.add(
    "rounding-derivatives",
    claim="Under randomized rounding derivatives are differences of utilities at whole numbers",
    place="Appendix B, random coverage; Appendix A",
    paper="du_i/dtheta_j is u_i with theta_j rounded up less u_i with it rounded down; at a whole "
    "number the right and the left derivative are the differences to the next and from the last. "
    "These fall as anybody gives more; own ones are at least that at C, others' at most that at 0.",
    minutes=(0.2, 1),
)
def rounding_derivatives(setting: Setting) -> Finding:
    """Compare difference quotients of random games with the formulas, in fractions."""
    rng = np.random.default_rng(SEED)
    count, worst = GAMES[setting.full], 0.0
    tally = {"quotients": 0, "right": 0, "kinks": 0, "bounds": 0, "within": 0}
    for _ in range(count):
        rows = [[Fraction(q) for q in row] for row in distributions(rng, 3, 4).tolist()]
        theta = drawn_amounts(rng)
        plain = round_at_random(coverage_utility(rows))
        game = CoverageGame([[float(q) for q in row] for row in rows], [0.6] * 3)
        rates = game.jacobian(to_floats(theta))
        for i, j in product(range(3), repeat=2):
            formula = marginal(rows, theta, i, j, floor(theta[j]))
            worst = max(worst, abs(float(formula) - float(rates[i, j])))
            compare_quotients(plain, rows, theta, i, j, tally)
            compare_bounds(plain, rows, theta, i, j, tally)
    parts = {
        "all quotients are what the formulas say": tally["right"] == tally["quotients"],
        "all derivatives keep to their bounds": tally["within"] == tally["bounds"],
        "utilities have kinks": tally["kinks"] > 0,
        "the package's derivatives are right": worst <= setting.expected["tolerance"],
    }
    return judged(
        all(parts.values()),
        f"{tally['right']} of {tally['quotients']} difference quotients of {count} games of three "
        "agents, from utilities that list all roundings, are exactly what the formulas say, right "
        f"and left; the package's derivatives are off by {worst:.0e} at most. They differ at "
        f"{tally['kinks']} of the whole numbers tried, where utilities have kinks. Derivatives "
        f"fall as others give more and keep to their bounds in {tally['within']} of "
        f"{tally['bounds']} comparisons. (Section 3.1 says that another's impact is at least "
        "u_i(1, 0) - u_i(0); it means at most, as Appendix B has it.)" + not_so(parts),
        evidence={"games": count, **tally, "worst_error_of_jacobian": worst, "seed": SEED},
    )


def drawn_amounts(rng: np.random.Generator) -> list[Fraction]:
    """Draw three amounts up to three, in quarters."""
    return [Fraction(int(n), 4) for n in rng.integers(0, 13, 3)]


def at(theta: Sequence[Fraction], agent: int, amount: Any) -> list[Fraction]:
    """Give theta with another amount of one agent."""
    return [Fraction(amount) if j == agent else t for j, t in enumerate(theta)]


def marginal(
    rows: Sequence[Sequence[Fraction]], theta: Sequence[Fraction], i: int, j: int, whole: int
) -> Fraction:
    """Give 1/2 sum_x q_ix prod_{l != j} E[(1 - q_lx)^m_l] q_jx (1 - q_jx)^t, as printed."""
    total = Fraction(0)
    for x, chance in enumerate(rows[i]):
        part = chance * rows[j][x] * (1 - rows[j][x]) ** whole
        for other, amount in enumerate(theta):
            if other != j:
                miss, low = 1 - rows[other][x], floor(amount)
                part *= (1 - amount + low) * miss**low + (amount - low) * miss ** (low + 1)
        total += part
    return HALF * total


def compare_quotients(
    plain: Utility, rows: Any, theta: list[Fraction], i: int, j: int, tally: dict[str, int]
) -> None:
    """Count quotients to the right and to the left of theta_j that are as printed."""
    here, low = plain(i, theta), floor(theta[j])
    slopes = []
    for step in (Fraction(1, 8), Fraction(-1, 8)):
        if theta[j] + step < 0:
            continue
        # Left of a whole number the piece is the one below it.
        whole = low - 1 if step < 0 and theta[j] == low else low
        quotient = (plain(i, at(theta, j, theta[j] + step)) - here) / step
        printed = plain(i, at(theta, j, whole + 1)) - plain(i, at(theta, j, whole))
        tally["quotients"] += 1
        tally["right"] += quotient == printed == marginal(rows, theta, i, j, whole)
        slopes.append(quotient)
    tally["kinks"] += len(set(slopes)) > 1


def compare_bounds(
    plain: Utility, rows: Any, theta: list[Fraction], i: int, j: int, tally: dict[str, int]
) -> None:
    """Count comparisons that hold: falling in t and in others' amounts, and the two bounds."""
    low, corner = floor(theta[j]), [t + HALF for t in theta]
    rate = marginal(rows, theta, i, j, low)
    other = (j + 1) % 3
    overlap = HALF * sum((a * b for a, b in zip(rows[i], rows[j], strict=True)), Fraction(0))
    checks = [
        marginal(rows, theta, i, j, low + 1) <= rate,
        marginal(rows, at(theta, other, theta[other] + HALF), i, j, low) <= rate,
        rate <= overlap <= HALF,
        overlap == plain(i, at([Fraction(0)] * 3, j, 1)) - plain(i, [Fraction(0)] * 3),
    ]
    if i == j:
        least = plain(i, at(corner, i, corner[i] + 1)) - plain(i, corner)
        checks.append(rate >= least)
    tally["bounds"] += len(checks)
    tally["within"] += sum(checks)
