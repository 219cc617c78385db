"""Envy by its definition: which agents would rather have another's smaller burden."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord._checks import Indices, Vector, simplest_fraction
from fedaccord.errors import ExactnessError
from fedaccord.games.base import NEAR, Game

# Exact arithmetic settles ties only for numbers that a person wrote: ones with short fractions.
SHORT_DENOMINATOR = 10**6
# A burden counts as smaller than another if it is by this many tolerances: nearer than that, what a
# swap would leave somebody short is itself within the tolerance.
SMALLER = 100
# Envy is looked for this many agents at a time, which bounds the memory that takes.
BLOCK = 2_000
# Up to this many agents every pair is listed; above, one witness for each envious agent.
LISTED = 2_000


def find_envy(
    game: Game, given: Vector, needed: Vector, allowed: float
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """List the pairs (i, j) where i envies j, and those too close to call.

    Somebody whose burden would satisfy i even if it stayed as it is, theta_j >= f_i, is envied for
    certain, because the swap only adds to what the others give. Below f_i the swap satisfies i only
    if j's samples help i. In large games one witness an agent of the first kind is kept. Where
    somebody may be harmed, every swap is looked at.
    """
    certain: dict[tuple[int, int], None] = {}
    close: dict[tuple[int, int], None] = {}
    exact = _ExactSwaps(game, given)
    gap = SMALLER * allowed
    larger = np.flatnonzero(given > given.min() + gap)
    if game.utility_doubt == 0 and game.is_monotone:
        certain = dict.fromkeys(_lighter_burdens(game, given, needed, allowed, gap, larger))
    if game.size > LISTED:
        larger = np.setdiff1d(larger, [i for i, _ in certain])
    for begin in range(0, larger.size, BLOCK):
        first, second, after = game.swaps(given, larger[begin : begin + BLOCK], gap)
        keep = _may_swap(game, given, first, second, allowed)
        first, second = first[keep], second[keep]
        slack = after[keep] - game.requirements[first]
        near = np.abs(slack) <= _nearness(game, given, first, allowed)
        sure = _pairs(game, first[~near & (slack > 0)], second[~near & (slack > 0)])
        certain.update(dict.fromkeys(sure))
        for pair in zip(first[near].tolist(), second[near].tolist(), strict=True):
            _settle(pair, exact, certain, close)
    for pair in _match_burdens(game, given, needed, allowed, gap):
        _settle(pair, exact, certain, close)
    if gap > 0 and game.utility_doubt == 0:
        # Lighter by less than the gap: envy, if so little matters.
        everyone = np.arange(game.size)
        for pair in _lighter_burdens(game, given, needed, allowed, allowed, everyone):
            # A swap by more than the gap is settled above where somebody may be harmed.
            slight = game.is_monotone or given[pair[0]] - given[pair[1]] <= gap
            if pair not in certain and slight:
                close[pair] = None
    return tuple(sorted(certain)), tuple(sorted(close))


def has_no_envy(game: Game, given: Vector, tolerance: float) -> bool:
    """Return whether it is certain that no agent envies another."""
    allowed = 0.0 if game.is_integer else tolerance * float(given.max())
    return find_envy(game, given, game.best_responses(given), allowed) == ((), ())


def _settle(
    pair: tuple[int, int],
    exact: _ExactSwaps,
    certain: dict[tuple[int, int], None],
    close: dict[tuple[int, int], None],
) -> None:
    """Put a pair too close for floats where exact arithmetic says, if it can say."""
    if pair in certain or pair in close:
        return
    answer = exact.envies(*pair)
    if answer is None:
        close[pair] = None
    elif answer:
        certain[pair] = None


def _pairs(game: Game, first: Indices, second: Indices) -> list[tuple[int, int]]:
    """List pairs; in large games the first of each agent."""
    if game.size > LISTED:
        _, kept = np.unique(first, return_index=True)
        first, second = first[kept], second[kept]
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _lighter_burdens(
    game: Game, given: Vector, needed: Vector, allowed: float, gap: float, agents: Indices
) -> Iterator[tuple[int, int]]:
    """Return pairs (i, j) with f_i <= theta_j < theta_i, the last by more than the gap."""
    low, high = needed[agents] + allowed, given[agents] - gap
    for i, found in _burdens_between(game, given, agents, low, high, allowed):
        yield from ((i, j) for j in (found if game.size <= LISTED else found[:1]))


def _match_burdens(
    game: Game, given: Vector, needed: Vector, allowed: float, gap: float
) -> Iterator[tuple[int, int]]:
    """Return pairs (i, j) with theta_j too close to f_i to say that it satisfies i, or does not.

    Helpers of i are among its swaps anyway; these are the pairs in which j's samples do not matter
    to i. The larger theta_j, the better, so that in large games the largest is enough.
    """
    agents = np.flatnonzero((given > needed + gap) & (given > given.min() + gap))
    low = needed[agents] - allowed
    high = np.minimum(needed[agents] + allowed, given[agents] - gap)
    for i, found in _burdens_between(game, given, agents, low, high, allowed):
        yield from ((i, j) for j in (found if game.size <= LISTED else found[-1:]))


def _burdens_between(
    game: Game, given: Vector, agents: Indices, low: Vector, high: Vector, allowed: float
) -> Iterator[tuple[int, list[int]]]:
    """Return for each agent those with low <= theta_j < high that it may swap with, by theta_j."""
    order = np.argsort(given, kind="stable")
    ranked = given[order]
    begin = np.searchsorted(ranked, low, side="left")
    end = np.searchsorted(ranked, high, side="left")
    some = end > begin
    spans = zip(agents[some].tolist(), begin[some].tolist(), end[some].tolist(), strict=True)
    for i, first, last in spans:
        found = order[first:last]
        may = _may_swap(game, given, np.full(found.size, i), found, allowed)
        yield i, found[may].tolist()


def _may_swap(game: Game, given: Vector, first: Indices, second: Indices, allowed: float) -> Any:
    """Return which swaps stay within limits and minimums, up to what is allowed."""
    under = given[first] <= game.limits[second] + allowed
    return under & (given[second] >= game.minimums[first] - allowed)


def _nearness(game: Game, given: Vector, agents: Indices, allowed: float) -> Vector:
    """Return how far from zero each agent's slack must be, so that it is no tie."""
    if game.is_integer:
        return np.maximum(NEAR * np.maximum(1.0, game.requirements[agents]), game.utility_doubt)
    unique, place = np.unique(agents, return_inverse=True)
    rates = game.own_rates(unique, given)[place] if unique.size else np.zeros(0)
    return np.maximum(allowed * rates, game.utility_doubt)


class _ExactSwaps:
    """Settles ties in exact arithmetic, where the contributions are short fractions."""

    def __init__(self, game: Game, given: Vector) -> None:
        self.game = game
        self.given = given

    @cached_property
    def fractions(self) -> list[Fraction] | None:
        """The contributions as Fractions; None where one is not short, so that none is exact."""
        result = []
        for contribution in self.given.tolist():
            result.append(simplest_fraction(contribution))
            if result[-1].denominator > SHORT_DENOMINATOR:
                return None
        return result

    def envies(self, agent: int, other: int) -> bool | None:
        """Return whether the agent would still be satisfied after the swap; None if undecided."""
        if self.game.utility_doubt or self.fractions is None:
            return None
        swapped = list(self.fractions)
        swapped[agent], swapped[other] = swapped[other], swapped[agent]
        try:
            return self.game.exact_utility(agent, swapped) >= self.game.exact_requirements[agent]
        except ExactnessError:
            return None
