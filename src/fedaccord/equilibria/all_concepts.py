"""All three concepts of one game: each solved once, audited, and its price."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, get_args

from fedaccord.audit import Answer, Audit, audit
from fedaccord.equilibria.envy_free import envy_free_beside
from fedaccord.equilibria.optimal import solve_optimal
from fedaccord.equilibria.prices import Price, price_of_fairness, price_of_stability
from fedaccord.equilibria.result import Concept, Solution, Status
from fedaccord.equilibria.stable import solve_stable
from fedaccord.games.base import Game

CONCEPTS: tuple[Concept, ...] = get_args(Concept)


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
        verdicts = (found.feasible, found.stable, found.envy_free)
        return dict(zip(CONCEPTS, verdicts, strict=True))[concept] is not Answer.FALSE

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
