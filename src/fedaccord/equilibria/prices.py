"""What stability, fairness and bad luck cost: ratios of totals, as proved intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedaccord.equilibria.result import Interval, Solution, Status
from fedaccord.errors import InputError


@dataclass(frozen=True)
class Price(Interval):
    """A ratio of totals, between lower and upper.

    note: what to know about it, such as that both totals are zero.
    """

    note: str = ""


def price_of_stability(stable: Solution, optimal: Solution) -> Price:
    """Give the least total of a stable equilibrium over the least total of any allocation."""
    if stable.options.get("select") == "costliest":
        raise InputError('the price of stability needs solve_stable(game, select="cheapest")')
    return _ratio(stable, optimal, "stable")


def price_of_fairness(envy_free: Solution, optimal: Solution) -> Price:
    """Give the least total of an envy-free allocation over the least total of any allocation."""
    return _ratio(envy_free, optimal, "envy-free")


def price_of_anarchy(worst_stable: Solution, optimal: Solution) -> Price:
    """Give the greatest total of a stable equilibrium over the least total of any allocation.

    worst_stable: from solve_stable(game, select="costliest").
    """
    if worst_stable.options.get("select") != "costliest":
        raise InputError('the price of anarchy needs solve_stable(game, select="costliest")')
    return _ratio(worst_stable, optimal, "stable")


def _ratio(above: Solution, below: Solution, concept: str) -> Price:
    if above.concept != concept or below.concept != "optimal":
        raise InputError(
            f"this price needs a solution of concept {concept} and one of concept optimal; got "
            f"{above.concept} and {below.concept}"
        )
    if above.game is not below.game:
        if above.game.strategies != below.game.strategies:
            raise InputError(
                f"totals over {above.game.strategies} and {below.game.strategies} strategies "
                "cannot be compared: solve both over the same space"
            )
        raise InputError("both solutions must be of the same game")
    if above.status in (Status.NONE_EXISTS, Status.INFEASIBLE):
        return Price(np.inf, np.inf, above.status.value)
    if above.bounds.upper == 0.0 and below.bounds.upper == 0.0:
        return Price(1.0, 1.0, "Nobody needs to give anything: 0/0, taken as 1.")
    upper = above.bounds.upper / below.bounds.lower if below.bounds.lower > 0 else np.inf
    lower = above.bounds.lower / below.bounds.upper if below.bounds.upper > 0 else 1.0
    # No equilibrium undercuts the optimum.
    return Price(max(1.0, lower), max(1.0, upper))
