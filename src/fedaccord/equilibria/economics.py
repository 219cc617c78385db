"""What data is worth: prices of requirements, payments that support a plan, an agent's value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.solve import solve_optimal, solve_stable
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame


def requirement_prices(solution: Solution, *, tolerance: float = 1e-6) -> Vector:
    """Return what one more unit of each agent's requirement adds to the total.

    At the optimum these are the duals of LP 1. At a stable equilibrium with contributors S they are
    the solution of W_SS' p = c_S, zero for everybody else.

    solution: optimal or stable, of a linear game over the reals.
    """
    game = solution.game
    if not isinstance(game, LinearGame) or game.is_integer:
        raise InputError("prices of requirements need a linear game over the reals")
    if solution.concept == "optimal":
        if "prices" not in solution.certificate:
            raise InputError(f'the method "{solution.method}" gives no prices; use "highs"')
        return frozen(np.array(solution.certificate["prices"]))
    given = solution.allocation.contributions
    free = (given > game.minimums + tolerance * given.max()) & (given < game.limits)
    inside = np.flatnonzero(free)
    prices = np.zeros(game.size)
    if inside.size:
        block = game.benefits_among(inside, inside)
        prices[inside] = np.linalg.lstsq(block.T, game.costs[inside], rcond=None)[0]
    return frozen(prices)


@dataclass(frozen=True, eq=False)
class Payments:
    """What must be paid so that nobody gains by giving less.

    per_agent: to each agent, its cost of the samples it gives beyond its own best response.
    total: the sum.
    """

    per_agent: Vector
    total: float


def support_payments(solution: Solution) -> Payments:
    """Return the least payments that make nobody want to cut back from an allocation.

    An agent would cut back to its best response f_i; what that saves it, c_i (theta_i - f_i), is
    the least payment, conditional on giving theta_i, that makes it indifferent.

    solution: usually the optimal one.
    """
    game = solution.game
    given = solution.allocation.contributions
    floor = np.maximum(game.best_responses(given), game.minimums)
    owed = game.costs * np.maximum(given - floor, 0.0)
    return Payments(frozen(owed), float(owed.sum()))


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What each agent's membership is worth to the others.

    others_with: what the others give while the agent is a member.
    others_without: what they give once it has left with its data.
    value: the difference, in cost; negative where the others do better without it.
    """

    others_with: Vector
    others_without: Vector

    @property
    def value(self) -> Vector:
        """What the others save through each agent's membership."""
        return np.asarray(self.others_without - self.others_with)


def leave_one_out(game: Game, *, concept: str = "stable", time_limit: float = 60.0) -> LeaveOneOut:
    """Solve the game without each agent in turn and compare what the others give.

    game: any with at least two agents.
    concept: "stable" or "optimal".
    """
    if game.size < 2:
        raise InputError("leaving one out needs at least two agents")
    solvers: dict[str, Callable[..., Solution]] = {"stable": solve_stable, "optimal": solve_optimal}
    if concept not in solvers:
        raise InputError(f'concept must be "stable" or "optimal"; got {concept!r}')
    share = time_limit / (game.size + 1)
    base = solvers[concept](game, time_limit=share)
    given = game.costs * base.allocation.contributions
    without = np.empty(game.size)
    for agent in range(game.size):
        rest = game.without(agent)
        start = np.delete(base.allocation.contributions, agent)
        options = {"start": start} if concept == "stable" else {}
        without[agent] = solvers[concept](rest, time_limit=share, **options).total
    return LeaveOneOut(frozen(given.sum() - given), frozen(without))


def carried_over(solution: Solution, game: Game) -> Vector:
    """Return a start for a game that somebody joined or left: old contributions by name, else zero.

    Use it as solve_stable(game, start=carried_over(old, game)).
    """
    before, after = solution.game.agents, game.agents
    if before is None or after is None:
        raise InputError("carrying contributions over needs named agents in both games")
    old = dict(zip(before, solution.allocation.contributions.tolist(), strict=True))
    return np.array([old.get(name, 0.0) for name in after])
