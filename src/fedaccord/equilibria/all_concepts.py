"""All three concepts of one game, each solved once and audited, and what they cost: the prices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fedaccord.audit import Answer, Audit, audit
from fedaccord.equilibria.envy_free import envy_free_beside
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.result import Concept, Interval, Solution, Status
from fedaccord.equilibria.stable import solve_stable
from fedaccord.errors import InputError
from fedaccord.games.base import Game

CONCEPTS: tuple[Concept, ...] = get_args(Concept)


@dataclass(frozen=True)
class Price(Interval):
    """A ratio of totals, between lower and upper.

    note: what to know about it, such as that both totals are zero.
    """

    note: str = ""


@dataclass(frozen=True, eq=False)
class SolvedGame:
    """What was found for each concept that was asked for.

    game: what was solved.
    solutions: by concept, in the order of CONCEPTS.
    audits: by concept, where an allocation was found.
    price_of_stability, price_of_fairness: None where a solution they need was not asked for.
    """

    game: Game
    solutions: Mapping[str, Solution]
    audits: Mapping[str, Audit]
    price_of_stability: Price | None
    price_of_fairness: Price | None

    @property
    def main_concept(self) -> str:
        """The concept to explain and to save: stable, or the first that was asked for."""
        return "stable" if "stable" in self.solutions else next(iter(self.solutions))

    @property
    def prices(self) -> dict[str, Price | None]:
        """The prices by their names in JSON."""
        return {
            "price_of_stability": self.price_of_stability,
            "price_of_fairness": self.price_of_fairness,
        }

    def is_answered(self, concept: str) -> bool:
        """Whether a concept got an answer that the audit does not refute."""
        if concept not in self.audits:
            return self.solutions[concept].status is not Status.FAILED
        found = self.audits[concept]
        verdicts = {
            "optimal": found.feasible, "stable": found.stable, "envy-free": found.envy_free,
        }  # fmt: skip
        return verdicts[concept] is not Answer.FALSE

    def to_dict(self) -> dict[str, Any]:
        """Return what was found, for machines."""
        return {
            "solutions": {
                concept: {
                    **solution.to_dict(),
                    "audit": self.audits[concept].to_dict() if concept in self.audits else None,
                }
                for concept, solution in self.solutions.items()
            },
            **{name: price and price.to_dict() for name, price in self.prices.items()},
        }


def solve_all(
    game: Game,
    *,
    concepts: Collection[str] = CONCEPTS,
    time_limit: float = 60.0,
    stage: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> SolvedGame:
    """Solve a game for several concepts, and audit what was found.

    concepts: which of optimal, stable and envy-free.
    time_limit: the most seconds for each.
    stage: a context to solve each concept in, given its name, and "audit" to audit in.
    """
    solutions: dict[str, Solution] = {}
    if "optimal" in concepts:
        with stage("optimal"):
            solutions["optimal"] = solve_optimal(game, time_limit=time_limit)
    if "stable" in concepts:
        with stage("stable"):
            solutions["stable"] = solve_stable(game, time_limit=time_limit)
    if "envy-free" in concepts:
        with stage("envy-free"):
            known = tuple(solutions.values())
            solutions["envy-free"] = envy_free_beside(known, game, time_limit=time_limit)
    with stage("audit"):
        audits = {
            concept: audit(game, solution.allocation)
            for concept, solution in solutions.items()
            if solution.contributions is not None
        }
    optimal = solutions.get("optimal")
    stable, envy_free = solutions.get("stable"), solutions.get("envy-free")
    return SolvedGame(
        game,
        solutions,
        audits,
        price_of_stability(stable, optimal) if optimal and stable else None,
        price_of_fairness(envy_free, optimal) if optimal and envy_free else None,
    )


def price_of_stability(stable: Solution, optimal: Solution) -> Price:
    """Return the least total of a stable equilibrium over the least total of any allocation."""
    if stable.options.get("select") == "costliest":
        raise InputError('the price of stability needs solve_stable(game, select="cheapest")')
    return _ratio(stable, optimal, "stable")


def price_of_fairness(envy_free: Solution, optimal: Solution) -> Price:
    """Return the least total of an envy-free allocation over the least total of any allocation."""
    return _ratio(envy_free, optimal, "envy-free")


def price_of_anarchy(worst_stable: Solution, optimal: Solution) -> Price:
    """Return the greatest total of a stable equilibrium over the least total of any allocation.

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
