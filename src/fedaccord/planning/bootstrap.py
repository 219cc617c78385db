"""What a plan would have been, had the pilots come out otherwise: once for each resample."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from fedaccord._checks import Matrix, Vector
from fedaccord.planning.selection import FINE, settle, with_contributors

# What an equilibrium may be off by, relative to the largest need.
LOOSE = 1e-6


def followed(
    benefits: Matrix, needs: Matrix, minimums: Vector, limits: Vector, chosen: Vector
) -> Matrix:
    """Give the equilibrium of each of many games that is most like a chosen one.

    Where the contributors are the same, theirs; elsewhere what best response from the chosen one
    leads to, in which somebody may be short at its limit. NaN where that does not settle, or
    where a need is out of reach and nothing limits what is given.

    benefits: B x k x k, a game each.
    needs: B x k, infinite where a goal is out of reach.
    minimums, limits: of all games alike.
    chosen: the equilibrium to follow.
    """
    result = np.full(needs.shape, np.nan)
    contributors = np.flatnonzero(chosen > minimums + FINE * (float(chosen.max()) or 1.0))
    for b in np.flatnonzero((np.isfinite(needs) | np.isfinite(limits)).all(axis=1)).tolist():
        if np.isfinite(needs[b]).all():
            same = with_contributors(benefits[b], needs[b], minimums, limits, contributors[None])
            if len(same):
                result[b] = same[0]
                continue
        theta = settled(benefits[b], needs[b], minimums, limits, chosen)
        if theta is not None:
            result[b] = theta
    return result


def settled(
    benefits: Matrix, needs: Vector, minimums: Vector, limits: Vector, start: Vector
) -> Vector | None:
    """Give where best response comes to rest within the limits; None where it does not.

    benefits, needs, minimums, limits: of one game; a need may be infinite where there is a limit.
    start: where to begin.
    """
    # Whoever cannot reach its goal gives all it can, whatever the others give.
    least = np.where(np.isfinite(needs), minimums, limits)
    wanted = np.where(np.isfinite(needs), needs, 0.0)
    theta = np.clip(start, least, limits)
    settle(benefits, wanted, least, limits, theta, np.argsort(-start, kind="stable"))
    response = theta + (wanted - benefits @ theta) / benefits.diagonal()
    off = np.abs(np.clip(response, least, limits) - theta).max()
    return theta if off <= LOOSE * (float(wanted.max()) or 1.0) else None


def optimal_totals(
    benefits: Matrix, needs: Matrix, minimums: Vector, limits: Vector, costs: Vector
) -> Vector:
    """Give the least cost that satisfies everybody in each of many games; NaN where none does.

    benefits: B x k x k, a game each.
    needs: B x k.
    minimums, limits, costs: of all games alike.
    """
    totals = np.full(len(needs), np.nan)
    for b in np.flatnonzero(np.isfinite(needs).all(axis=1)).tolist():
        # Solvers have absolute tolerances: they are given needs of about one.
        unit = float(needs[b].max()) or 1.0
        box = list(zip((minimums / unit).tolist(), (limits / unit).tolist(), strict=True))
        found = linprog(costs, A_ub=-benefits[b], b_ub=-needs[b] / unit, bounds=box)
        if found.status == 0:
            totals[b] = unit * float(found.fun or 0.0)
    return totals
