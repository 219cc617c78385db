"""Envy-free allocations of linear games.

    i envies j   <=>   theta_i > theta_j   and   u_i + (theta_i - theta_j)(W_ij - W_ii) >= mu_i

so for every pair either theta_i <= theta_j or the swap leaves i short. The second is a strict
inequality: the set is not closed, and a least total need not be attained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from fedaccord._checks import Vector
from fedaccord.check.decide import find_envy, has_no_envy
from fedaccord.equilibria.linear.optimal import Normalised, normalise
from fedaccord.equilibria.programs import linear_program, make_difference_rows, mixed_program
from fedaccord.equilibria.result import Claim, Deadline, Interval, Solution, Status
from fedaccord.games.linear import LinearGame

# Rows of a program with the least and the most they may be.
Block: TypeAlias = tuple[Any, Any, Any]

# By how much, in units of the largest stand-alone need, a swap must leave an agent short in the
# search for a pattern of pairs: well above the mixed-integer solver's tolerance of 1e-6.
SEARCH_MARGIN = 1e-4
# By how much in the allocation returned: well above a check's tolerance.
FINAL_MARGIN = 1e-5
# Somebody else's sample this near in worth to one's own leaves a swap short by too little to tell
# from the search margin.
NEARLY_FORCED = 1e-3
# Above this size checking every triple for dominance takes too long.
DOMINANCE_LIMIT = 300


@dataclass(frozen=True, eq=False)
class _States:
    """How an allocation settles each pair (i, j).

    below: theta_i <= theta_j.
    apart: the swap leaves i short.
    more, less: agents that give more than another's limit, or less than another's minimum, with
        that amount: either way the other's burden and theirs cannot be swapped.
    """

    below: list[tuple[int, int]]
    apart: list[tuple[int, int]]
    more: list[tuple[int, float]]
    less: list[tuple[int, float]]


@dataclass
class _Pairs:
    """Which pairs are settled by theta_i <= theta_j, and which by leaving i short when swapped."""

    below: set[tuple[int, int]] = field(default_factory=set)
    either: set[tuple[int, int]] = field(default_factory=set)


def find_forced_pairs(game: LinearGame) -> set[tuple[int, int]]:
    """Return pairs (i, j) with theta_i <= theta_j in every envy-free allocation.

    If i gives more than j, a swap leaves it at least as well off as it is when W_ij >= W_ii, and
    at least as well off as j is when i dominates j: mu_i <= mu_j and every benefit of i is at
    least j's with the two names swapped. Either way it envies j. The swap must be allowed: j's
    limit and i's minimum may not stand in its way.
    """
    benefits, need = game.dense_benefits, game.requirements
    own = game.own_benefits
    allowed = (game.limits[:, None] <= game.limits[None, :]) & (
        game.minimums[:, None] <= game.minimums[None, :]
    )
    forced = benefits >= own[:, None]
    if game.size <= DOMINANCE_LIMIT:
        for i in range(game.size):
            row = benefits[i][None, :] - benefits
            np.fill_diagonal(row, 0.0)
            row[:, i] = 0.0
            forced[i] |= (
                (need[i] <= need) & (own[i] >= own) & (benefits[i] >= benefits[:, i])
                & (row >= 0).all(axis=1)
            )  # fmt: skip
    forced &= allowed
    np.fill_diagonal(forced, False)
    return {(int(i), int(j)) for i, j in np.argwhere(forced)}


def _has_nearly_forced(game: LinearGame, forced: set[tuple[int, int]]) -> bool:
    """Return whether for some pair that is not forced W_ij is just below W_ii."""
    share = game.dense_benefits / game.own_benefits[:, None]
    near = (share > 1 - NEARLY_FORCED) & (share < 1)
    return any((i, j) not in forced for i, j in np.argwhere(near).tolist() if i != j)


def find_envious_pairs(game: LinearGame, theta: Vector, margin: float) -> list[tuple[int, int]]:
    """List pairs with theta_i above theta_j whose swap leaves i less short than the margin."""
    slack = (game.apply(theta) - game.requirements) / game.own_benefits
    share = game.dense_benefits / game.own_benefits[:, None]
    gap = theta[:, None] - theta[None, :]
    after = slack[:, None] + gap * (share - 1)
    allowed = (theta[:, None] <= game.limits[None, :]) & (theta[None, :] >= game.minimums[:, None])
    found = (gap > margin) & (after > -margin) & allowed
    return [(int(i), int(j)) for i, j in np.argwhere(found)]


def envy_free_linear(
    claim: Claim[LinearGame], *, equal: Vector, stable: Vector | None, lower: float
) -> Solution:
    """Find the cheapest envy-free allocation by mixed-integer programming with lazy pairs.

    Begins with no pair but the forced ones, adds the pairs that the answer violates, and ends when
    there are none. Falls back on the equal allocation, or a stable one without envy, improved by
    linear programs. Over the reals the search leaves a margin, so that its bounds count only where
    it ends and no pair is so nearly forced that a margin may hide an allocation.

    equal: an envy-free allocation to begin with.
    stable: a stable equilibrium, tried as well.
    lower: a proved lower bound, such as the optimum's.
    """
    game, deadline = claim.game, claim.deadline
    unit = float((game.requirements / game.own_benefits).max()) or 1.0
    best = np.array(equal)
    if stable is not None and has_no_envy(game, stable, claim.tolerance):
        best = min((best, stable), key=game.total)
    forced = find_forced_pairs(game)
    pairs = _Pairs(below=set(forced))
    exact = False
    while not deadline.passed:
        answer = _solve_pattern(game, pairs, SEARCH_MARGIN, game.total(best), deadline)
        if answer is None:
            break
        theta, bound, proved = answer
        if game.is_integer and np.ptp(game.minimums) == 0:
            lower = max(lower, min(bound, game.total(best)))
        found = _find_violated(game, theta, 0.5 * SEARCH_MARGIN * unit)
        violated = [pair for pair in found if pair not in pairs.either]
        if found and not violated:
            # The solver's tolerance let through what the program forbids: no proof from here.
            break
        if not violated:
            # Minimums that differ may forbid swaps that the program counts as envy.
            exact = proved and bool(np.ptp(game.minimums) == 0)
            exact = exact and (game.is_integer or not _has_nearly_forced(game, forced))
            if game.total(theta) < game.total(best):
                best = theta
            break
        pairs.either.update(violated)
    if not game.is_integer:
        return _refine(claim, best, exact, lower, forced)
    total = game.total(best)
    closed = exact or lower >= total * (1 - 1e-9)
    return claim.solution(
        "milp" if exact else "equal", Status.OPTIMAL if closed else Status.LIMIT,
        Interval(total if closed else min(lower, total), total), best,
    )  # fmt: skip


def _find_violated(game: LinearGame, theta: Vector, margin: float) -> list[tuple[int, int]]:
    """List the pairs an answer of the program still violates, exactly so over the integers."""
    if not game.is_integer:
        return find_envious_pairs(game, theta, margin)
    certain, close = find_envy(game, theta, game.best_responses(theta), 0.0)
    return [*certain, *close]


def _refine(
    claim: Claim[LinearGame], best: Vector, exact: bool, lower: float, forced: set[tuple[int, int]]
) -> Solution:
    """Improve an allocation with its pair states frozen; see whether the infimum is attained."""
    game, tolerance = claim.game, claim.tolerance
    unit = float((game.requirements / game.own_benefits).max()) or 1.0
    for _ in range(20):
        trial = _lp(game, _frozen_states(game, best, forced), FINAL_MARGIN)
        if trial is None or game.total(trial) >= game.total(best) - 1e-9 * unit:
            break
        if find_envious_pairs(game, trial, 0.5 * FINAL_MARGIN * unit):
            break
        best = trial
    states = _frozen_states(game, best, forced)
    closed = _lp(game, states, 0.0)
    infimum = game.total(best) if closed is None else min(game.total(closed), game.total(best))
    total = game.total(best)
    if not exact:
        return claim.bounded("frozen-pairs", lower, best)
    if total - infimum <= tolerance * total:
        return claim.solution("milp", Status.OPTIMAL, Interval(infimum, total), best)
    attained = _with_margin(game, states, infimum)
    if attained is not None:
        bounds = Interval(infimum, game.total(attained))
        return claim.solution("milp", Status.OPTIMAL, bounds, attained)
    return claim.solution(
        "milp", Status.NOT_ATTAINED, Interval(infimum, total), best,
        note=f"Totals come as close to {infimum:.9g} as you like. This plan keeps a margin.",
    )  # fmt: skip


def _frozen_states(game: LinearGame, theta: Vector, forced: set[tuple[int, int]]) -> _States:
    """Split all pairs by the way in which theta settles them."""
    unit = float(theta.max()) or 1.0
    order = theta[:, None] - theta[None, :]
    larger = order > 1e-7 * unit
    more = larger & (theta[:, None] > game.limits[None, :])
    less = larger & ~more & (theta[None, :] < game.minimums[:, None])
    apart = larger & ~more & ~less
    return _States(
        below=[(int(i), int(j)) for i, j in np.argwhere(~larger) if i != j],
        apart=[(int(i), int(j)) for i, j in np.argwhere(apart) if (i, j) not in forced],
        more=[(int(i), float(game.limits[j])) for i, j in np.argwhere(more)],
        less=[(int(j), float(game.minimums[i])) for i, j in np.argwhere(less)],
    )


def make_pair_rows(scaled: Normalised, pairs: list[tuple[int, int]], kind: str) -> sparse.csr_array:
    """Return rows over theta: theta_i - theta_j, or u_i after swapping with j, for each pair."""
    difference = make_difference_rows(pairs, scaled.needs.size)
    if kind == "order":
        return difference
    first = np.array([i for i, _ in pairs], dtype=np.intp)
    second = np.array([j for _, j in pairs], dtype=np.intp)
    share = np.asarray(scaled.benefits[first, second]).ravel() - 1.0
    return sparse.csr_array(scaled.benefits[first] + sparse.diags_array(share) @ difference)


def _make_fixed_rows(scaled: Normalised, states: _States) -> tuple[Any, Vector, Vector]:
    """Return rows over theta, what they may be at most, and one where strictly less."""
    k = scaled.needs.size
    rows, right = [-scaled.benefits], [-scaled.needs]
    if states.apart:
        rows.append(make_pair_rows(scaled, states.apart, "swap"))
        right.append(scaled.needs[[i for i, _ in states.apart]])
    for sign, bounds in ((-1.0, states.more), (1.0, states.less)):
        if bounds:
            places = (np.arange(len(bounds)), np.array([agent for agent, _ in bounds]))
            shape = (len(bounds), k)
            rows.append(sparse.csr_array((np.full(len(bounds), sign), places), shape=shape))
            right.append(sign * np.array([amount for _, amount in bounds]) / scaled.unit)
    strict = np.concatenate([np.zeros(k), np.ones(sum(map(len, right)) - k)])
    if states.below:
        rows.append(make_pair_rows(scaled, states.below, "order"))
        right.append(np.zeros(len(states.below)))
        strict = np.append(strict, right[-1])
    return sparse.vstack(rows), np.concatenate(right), strict


def _lp(game: LinearGame, states: _States, margin: float) -> Vector | None:
    """Minimise the total with every pair's state fixed."""
    scaled = normalise(game)
    rows, most, strict = _make_fixed_rows(scaled, states)
    result = linear_program(
        scaled.costs, scaled.low, scaled.high, rows=rows, most=most - margin * strict,
        tolerance=1e-10,
    )  # fmt: skip
    return None if result.x is None else np.clip(result.x * scaled.unit, game.minimums, game.limits)


def _with_margin(game: LinearGame, states: _States, total: float) -> Vector | None:
    """Return an allocation of a total that keeps all swaps strictly short, or None."""
    scaled = normalise(game)
    rows, most, strict = _make_fixed_rows(scaled, states)
    column, cost = sparse.csr_array(strict[:, None]), np.append(scaled.costs, 0.0)
    budget = total / (float(game.costs.max()) * scaled.unit) * (1 + 1e-9)
    result = linear_program(
        np.append(np.zeros(game.size), -1.0),
        np.append(scaled.low, 0.0),
        np.append(scaled.high, 1.0),
        rows=sparse.vstack([sparse.hstack([rows, column]), sparse.csr_array(cost[None, :])]),
        most=np.append(most, budget),
        tolerance=1e-10,
    )
    if result.x is None or result.x[-1] < 1e-7:
        return None
    return np.clip(result.x[: game.size] * scaled.unit, game.minimums, game.limits)


def _solve_pattern(
    game: LinearGame, pairs: _Pairs, margin: float, best_total: float, deadline: Deadline
) -> tuple[Vector, float, bool] | None:
    """Solve the program with the pairs known so far: theta, a bound and whether it is exact."""
    scaled = normalise(game)
    k, either = game.size, sorted(pairs.either)
    if game.is_integer:
        margin = 1e-6
    # Two binaries a pair: the swap leaves i short, or j could not take i's burden.
    m = 2 * len(either)
    # No agent gives more than the best total known buys.
    most = np.minimum(best_total / game.costs / scaled.unit, scaled.high)
    refusals = np.array([float(scaled.high[j] < most[i]) for i, j in either])
    none = sparse.csr_array((k, m))
    rows: list[Block] = [(sparse.hstack([scaled.benefits, none]), scaled.needs, np.inf)]
    if pairs.below:
        order = make_pair_rows(scaled, sorted(pairs.below), "order")
        empty = sparse.csr_array((len(pairs.below), m))
        rows.append((sparse.hstack([order, empty]), -np.inf, 0.0))
    if m:
        rows += _either_or(game, scaled, either, most, margin)
    result = mixed_program(
        np.concatenate([scaled.costs, np.zeros(m)]),
        np.concatenate([scaled.low, np.zeros(m)]),
        np.concatenate([most, np.ones(len(either)), refusals]),
        rows=rows,
        whole=np.concatenate([np.full(k, game.is_integer), np.ones(m, dtype=np.bool_)]),
        seconds=deadline.left,
        gap=1e-9,
    )
    if result.x is None:
        return None
    theta = np.clip(result.x[:k] * scaled.unit, game.minimums, game.limits)
    theta = np.round(theta) if game.is_integer else theta
    bound = result.bound * float(game.costs.max()) * scaled.unit
    return theta, bound, result.solved


def _either_or(
    game: LinearGame, scaled: Normalised, pairs: list[tuple[int, int]], most: Vector, margin: float
) -> list[Block]:
    """Return rows for each pair (i, j), of which one of three must hold.

    theta_i <= theta_j, or the swap leaves i short by the margin (z = 1), or i gives more than j's
    limit (w = 1).
    """
    first = np.array([i for i, _ in pairs])
    second = np.array([j for _, j in pairs])
    largest = scaled.benefits.max(axis=1).toarray().ravel()[first]
    # After a swap i's utility is at most its best benefit times all that the budget buys, twice.
    slack = 2 * largest * float((game.costs * most).max() / game.costs.min()) + margin
    order = make_pair_rows(scaled, pairs, "order")
    swap = make_pair_rows(scaled, pairs, "swap")
    give = sparse.csr_array(
        (np.ones(len(pairs)), (np.arange(len(pairs)), first)), shape=order.shape
    )
    room = sparse.diags_array(most[first])
    beyond = 1.0 if game.is_integer else margin
    limit = np.where(np.isfinite(scaled.high[second]), scaled.high[second], 0.0) + beyond
    none = sparse.csr_array((len(pairs), len(pairs)))
    return [
        (sparse.hstack([order, -room, -room]), -np.inf, 0.0),
        (
            sparse.hstack([swap, sparse.diags_array(slack), none]),
            -np.inf, scaled.needs[first] - margin + slack,
        ),
        (sparse.hstack([give, none, -sparse.diags_array(limit)]), 0.0, np.inf),
    ]  # fmt: skip
