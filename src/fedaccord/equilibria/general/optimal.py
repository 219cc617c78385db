"""The optimum of a game of which nothing is known but that utilities rise."""

from __future__ import annotations

import heapq

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.result import Claim, Deadline, Solution, bisect
from fedaccord.games.base import Game

# Up to this many agents boxes of allocations are searched.
MOST_AGENTS = 4
MOST_BOXES = 3_000


def cut_back(game: Game, contributions: Vector, *, sweeps: int = 20) -> Vector:
    """Cut everybody back in turn as far as all stay satisfied, the dearest gifts first.

    Needs nothing but utilities; what comes out is feasible and cannot be cut by one agent alone.
    """
    theta = np.array(contributions)
    for _ in range(sweeps):
        before = theta.copy()
        for agent in np.argsort(-game.costs * theta, kind="stable"):
            theta[agent] = _least_feasible(game, theta, int(agent))
        if np.allclose(before, theta, rtol=0, atol=1e-12 * (1 + theta.max())):
            break
    return theta


def _least_feasible(game: Game, theta: Vector, agent: int) -> float:
    """Return the least that one agent can give with the others as they are."""
    trial = np.array(theta)
    low, high = float(game.minimums[agent]), float(theta[agent])
    trial[agent] = low
    if game.is_feasible(trial):
        return low

    def enough(amount: float) -> bool:
        trial[agent] = amount
        return game.is_feasible(trial)

    return bisect(enough, low, high, 60)


def general_optimal(claim: Claim[Game]) -> Solution:
    """Look for a cheap feasible allocation of any monotone game, and bound how cheap one can be.

    Starts from everybody's stand-alone need, from equal shares (each also shrunk evenly) and from
    each agent in the lead, and cuts back. With few agents boxes of allocations are then ruled out,
    the cheapest corner first; with many the lower bound is only what the minimums cost.
    """
    game, best = claim.game, None
    for start in _starts(game):
        if not game.is_feasible(start):
            continue
        trial = cut_back(game, start)
        if best is None or game.total(trial) < game.total(best):
            best = trial
        if claim.deadline.passed:
            break
    lower = float(game.costs @ game.minimums)
    if best is None:
        return claim.failed("cut-back", "No start was feasible.", lower=lower)
    if game.size > MOST_AGENTS:
        return claim.bounded("cut-back", lower, best)
    best, lower = _bound_by_boxes(game, best, claim.tolerance, Deadline(claim.deadline.left / 2))
    return claim.bounded("boxes", lower, best)


def _bound_by_boxes(
    game: Game, best: Vector, tolerance: float, deadline: Deadline
) -> tuple[Vector, float]:
    """Rule out boxes of allocations until what is left costs about as much as the best known.

    Utilities only rise, so a box whose upper corner is not feasible holds nothing feasible, and
    nothing in a box costs less than its lower corner.
    """
    low = np.array(game.minimums)
    high = np.minimum(game.limits, low + (game.total(best) - game.total(low)) / game.costs)
    heap: list[tuple[float, int, Vector, Vector]] = [(game.total(low), 0, low, high)]
    count = 0
    while heap and count < MOST_BOXES and not deadline.passed:
        total = game.total(best)
        cost, _, low, high = heap[0]
        if total - cost <= tolerance * total:
            break
        heapq.heappop(heap)
        if not game.is_feasible(high):
            continue
        best = min(best, _on_diagonal(game, low, high), key=game.total)
        widest = int(np.argmax(game.costs * (high - low)))
        middle = (low[widest] + high[widest]) / 2
        for begin, end in ((low[widest], middle), (middle, high[widest])):
            left, right = low.copy(), high.copy()
            left[widest], right[widest] = begin, end
            count += 1
            if game.total(left) < game.total(best):
                heapq.heappush(heap, (game.total(left), count, left, right))
    lower = heap[0][0] if heap else game.total(best)
    best = min(best, cut_back(game, best), key=game.total)
    return best, min(lower, game.total(best))


def _on_diagonal(game: Game, low: Vector, high: Vector, halvings: int = 12) -> Vector:
    """Go from a feasible upper corner towards the lower one as far as all stay satisfied."""
    share = bisect(lambda n: game.is_feasible(low + n * (high - low)), 0.0, 1.0, halvings)
    return np.asarray(low + share * (high - low))


def _shrink(game: Game, theta: Vector) -> Vector:
    """Cut everybody back by the same part of what it can cut, as far as all stay satisfied."""
    if not game.is_feasible(theta):
        return theta
    return _on_diagonal(game, game.minimums, theta, halvings=60)


def _starts(game: Game) -> list[Vector]:
    finite = np.where(np.isfinite(game.alone), game.alone, 0.0)
    high = np.minimum(game.limits, game.size * (finite.max() + 1.0))
    alone = np.clip(finite, game.minimums, game.limits)
    starts = [alone, high, _shrink(game, alone), _shrink(game, high)]
    for agent in range(min(game.size, 50)):
        lead = np.array(alone)
        lead[agent] = high[agent]
        starts.append(lead)
    return starts
