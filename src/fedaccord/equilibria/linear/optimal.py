"""The socially optimal allocation of a linear game: LP 1, exactly or with a certificate.

    minimise  c' theta   subject to  W theta >= mu,  low <= theta <= high

HiGHS solves it exactly up to about a thousand agents; beyond, a first-order method approaches it,
and any pair (theta, y) gives bounds that prove how closely.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.equilibria.programs import linear_program, mixed_program
from fedaccord.equilibria.result import Claim, Deadline, Interval, Solution, Status
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import DiscoveryGame, LinearGame

# Non-zeros of W up to which HiGHS is tried first.
EXACT_LIMIT = 1_200_000
# What a certificate can prove at sizes where only first-order methods reach.
FIRST_ORDER_TOLERANCE = 1e-3


def optimal_linear(claim: Claim[LinearGame], method: str = "auto") -> Solution:
    """Find the least total by a method, or the one that fits."""
    game, tolerance = claim.game, claim.tolerance
    if game.is_integer and method in ("auto", "milp"):
        return milp_optimal(claim)
    if game.is_integer or method == "milp":
        raise InputError(f'method "{method}" does not fit {game.strategies} strategies; use "auto"')
    if method == "multiplicative-weights":
        from fedaccord.equilibria.linear import multiplicative_weights

        return multiplicative_weights.multiplicative_weights_optimal(claim)
    if method == "highs" or (method == "auto" and _nonzeros(game) <= EXACT_LIMIT):
        # Half the time, so that what HiGHS cannot finish a first-order method can still bound.
        share = claim.deadline if method == "highs" else Deadline(claim.deadline.left / 2)
        exact = highs_optimal(dataclasses.replace(claim, deadline=share))
        if exact is not None:
            return exact
    from fedaccord.equilibria.linear.first_order import first_order_optimal

    goal = max(tolerance, FIRST_ORDER_TOLERANCE) if method == "auto" else tolerance
    solution = first_order_optimal(dataclasses.replace(claim, tolerance=goal))
    if solution.status is Status.OPTIMAL and solution.bounds.relative_gap > tolerance:
        return dataclasses.replace(solution, status=Status.LIMIT)
    return solution


def _nonzeros(game: LinearGame) -> float:
    if isinstance(game, DiscoveryGame):
        # Each point that m agents share makes m^2 entries of Q Q', at most k^2 in all.
        sharing = np.bincount(game.distributions.indices).astype(np.float64)
        return min(float((sharing**2).sum()), float(game.size) ** 2)
    return float(getattr(game.benefits, "nnz", game.size**2))


@dataclass(frozen=True, eq=False)
class Normalised:
    """A linear game in units a solver's absolute tolerances suit: alone needs near one.

    benefits: W with every row divided by its own benefit.
    needs, low, high, costs: in units of the largest stand-alone need.
    unit: that need.
    """

    benefits: Any
    needs: Vector
    low: Vector
    high: Vector
    costs: Vector
    unit: float


def normalise(game: LinearGame) -> Normalised:
    """Rescale a game for HiGHS, whose tolerances are absolute; integer games keep their unit."""
    needs = game.requirements / game.own_benefits
    unit = 1.0 if game.is_integer else float(needs.max()) or 1.0
    scaled = sparse.diags_array(1 / game.own_benefits) @ sparse.csr_array(game.benefits)
    return Normalised(
        benefits=sparse.csr_array(scaled),
        needs=needs / unit,
        low=game.minimums / unit,
        high=game.limits / unit,
        costs=game.costs / game.costs.max(),
        unit=unit,
    )


def is_tame(game: LinearGame) -> bool:
    """Return whether benefits are close enough to each other for the tolerance of a MIP solver."""
    return float(normalise(game).benefits.max()) <= 1e4


def repair(game: LinearGame, theta: Vector) -> Vector | None:
    """Turn nearly feasible contributions into feasible ones at little cost.

    Raising everybody to its best response suffices, as the others' samples only help; so does
    scaling everything by the worst shortfall; and so does anything between: scale by less, then
    raise those who are still short.
    """
    utility = game.apply(theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.where(game.requirements > 0, game.requirements / utility, 0.0).max()
    best: Vector | None = None
    for scale in np.linspace(1.0, worst, 20) if 1.0 < worst < np.inf else (1.0,):
        short = np.maximum(game.requirements - scale * utility, 0.0)
        trial = scale * theta + short / game.own_benefits
        inside = bool((trial <= game.limits).all())
        if inside and (best is None or game.total(trial) < game.total(best)):
            best = trial
    return _raise_within_limits(game, theta) if best is None else best


def _raise_within_limits(game: LinearGame, theta: Vector) -> Vector | None:
    """Raise contributions within limits until nobody is short: own ones, then the best helpers'.

    None where somebody stays short by more than rounding.
    """
    theta = np.minimum(theta, game.limits)
    for agent in np.flatnonzero(game.apply(theta) < game.requirements).tolist():
        helpers, benefit = game.row(agent)
        order = np.argsort(-benefit / game.costs[helpers] - 1e300 * (helpers == agent))
        short = game.requirements[agent] - benefit @ theta[helpers]
        for j, gain in zip(helpers[order].tolist(), benefit[order].tolist(), strict=True):
            if short <= 0 or gain == 0:
                break
            added = min(short / gain, game.limits[j] - theta[j])
            theta[j] += added
            short -= added * gain
    enough = game.apply(theta) >= game.requirements * (1 - 1e-9)
    return theta if enough.all() else None


def dual_bound(game: LinearGame, prices: Vector) -> float:
    """Bound every feasible total from below by prices y >= 0 on the requirements.

        c' theta >= mu'y + sum_i min over low_i <= t <= high_i of (c - W'y)_i t

    Where an agent has no limit, prices are first scaled down until W'y <= c for it.
    """
    worth = game.apply_transposed(prices)
    unlimited = np.isinf(game.limits)
    over = float((worth[unlimited] / game.costs[unlimited]).max(initial=0.0))
    best = -np.inf
    for scale in {1.0 / over if over > 0 else 1.0, min(1.0, 1.0 / over) if over > 0 else 1.0}:
        left = game.costs - scale * worth
        left[unlimited] = np.maximum(left[unlimited], 0.0)
        high = np.where(unlimited, 0.0, game.limits)
        rest = np.where(left >= 0, left * game.minimums, left * high)
        best = max(best, float(scale * (game.requirements @ prices) + rest.sum()))
    return max(best, float(game.costs @ game.minimums))


def certify(game: LinearGame, theta: Vector, prices: Vector) -> tuple[Vector | None, Interval]:
    """Return a feasible allocation near theta and proved bounds on the least total."""
    feasible = repair(game, np.clip(theta, game.minimums, game.limits))
    upper = np.inf if feasible is None else game.total(feasible)
    return feasible, Interval(min(dual_bound(game, prices), upper), upper)


def highs_optimal(claim: Claim[LinearGame]) -> Solution | None:
    """Solve LP 1 by HiGHS; None where it gives up. The duals are the prices of requirements."""
    game = claim.game
    scaled = normalise(game)
    n = 0
    if isinstance(game, DiscoveryGame) and game.distributions.nnz * 5 < scaled.benefits.nnz:
        n = game.distributions.shape[1]
    cost, rows, right = _lp_parts(game, scaled, n)
    result = linear_program(
        cost,
        np.concatenate([scaled.low, np.zeros(n)]),
        np.concatenate([scaled.high, np.full(n, np.inf)]),
        rows=rows,
        most=right,
        method="highs-ds" if n == 0 else "highs-ipm",
        seconds=claim.deadline.left,
        tolerance=1e-9 if n == 0 else 1e-7,
    )
    if result.x is None:
        return None
    theta = result.x[: game.size] * scaled.unit
    duals = np.maximum(-result.duals[: game.size], 0.0)
    prices = duals * game.costs.max() / game.own_benefits
    feasible, bounds = certify(game, theta, prices)
    return claim.enclosed("highs", bounds, feasible, certificate={"prices": prices})


def _lp_parts(game: LinearGame, scaled: Normalised, n: int) -> tuple[Vector, Any, Vector]:
    """Return LP 1 as cost, rows and right-hand side; lifted by r <= Q' theta where n > 0."""
    if n == 0 or not isinstance(game, DiscoveryGame):
        return scaled.costs, -scaled.benefits, -scaled.needs
    share = sparse.diags_array(1 / game.own_benefits) @ game.distributions
    rows = sparse.block_array(
        [[None, -share], [-game.distributions.T, sparse.eye_array(n)]], format="csr"
    )
    cost = np.concatenate([scaled.costs, np.zeros(n)])
    return cost, rows, np.concatenate([-scaled.needs, np.zeros(n)])


def round_bound(game: Game, lower: float) -> float:
    """Return a bound on the total from below, rounded up where totals are whole numbers of costs.

    game: whose contributions may have to be whole numbers.
    lower: the bound, with the rounding of solvers in it.
    """
    if not game.is_integer or np.ptp(game.costs):
        return lower
    cost = float(game.costs[0])
    return cost * math.ceil(lower / cost * (1 - 1e-9))


def milp_optimal(claim: Claim[LinearGame]) -> Solution:
    """Solve LP 1 over the integers by HiGHS."""
    game, scaled = claim.game, normalise(claim.game)
    result = mixed_program(
        scaled.costs,
        scaled.low,
        scaled.high,
        rows=[(scaled.benefits, scaled.needs - 1e-9, np.inf)],
        whole=np.ones(game.size),
        seconds=claim.deadline.left,
        gap=claim.tolerance / 10,
    )
    if result.x is None:
        return claim.failed("milp", f"The mixed-integer solver said: {result.message}")
    theta = np.round(result.x)
    lower = round_bound(game, result.bound * float(game.costs.max()))
    if not game.is_feasible(theta):
        # Within the solver's tolerance of feasible: one more sample of whoever is short mends it.
        theta = np.minimum(np.maximum(theta, game.best_responses(theta)), game.limits)
    if not game.is_feasible(theta):
        note = "The mixed-integer solver's answer is not feasible."
        return claim.failed("milp", note, lower=max(lower, 0.0))
    total = game.total(theta)
    closed = total - lower <= claim.tolerance * total + 1e-9
    status = Status.OPTIMAL if closed else Status.LIMIT
    return claim.solution("milp", status, Interval(min(lower, total), total), theta)
