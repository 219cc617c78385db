"""Claims about coverage games: what was found, put into a Solution its bounds allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.equilibria.coverage.feasible import cap_alone
from fedaccord.equilibria.coverage.sweeps import Swept
from fedaccord.equilibria.result import Concept, Deadline, Interval, Solution, Status
from fedaccord.errors import InputError
from fedaccord.games.coverage import CoverageGame


class Claim:
    """Puts what was found into a Solution, with the status that its bounds allow."""

    def __init__(
        self,
        game: CoverageGame,
        concept: Concept,
        tolerance: float,
        deadline: Deadline,
        *,
        costliest: bool = False,
    ) -> None:
        self.game, self.concept = game, concept
        self.tolerance, self.deadline, self.costliest = tolerance, deadline, costliest

    def _solution(self, method: str, status: Status, bounds: Interval, **rest: Any) -> Solution:
        options: dict[str, Any] = {"tolerance": self.tolerance}
        if self.concept == "stable":
            options["select"] = "costliest" if self.costliest else "cheapest"
        return Solution(
            game=self.game,
            concept=self.concept,
            method=method,
            status=status,
            bounds=bounds,
            options=options,
            seconds=self.deadline.elapsed,
            **rest,
        )

    def check_method(self, method: str, known: tuple[str, ...]) -> None:
        """Refuse a method that this concept does not have."""
        if method not in known:
            raise InputError(f"method must be one of {', '.join(known)}; got {method!r}")

    def is_closed(self, lower: float, best: Vector) -> bool:
        upper = self.game.total(best)
        return upper - lower <= self.tolerance * upper

    def bounded(self, method: str, lower: float, best: Vector) -> Solution:
        """Claim an allocation and a lower bound on the least total."""
        upper = self.game.total(best)
        status = Status.OPTIMAL if self.is_closed(lower, best) else Status.LIMIT
        bounds = Interval(min(lower, upper), upper)
        return self._solution(method, status, bounds, contributions=best)

    def ends(self, best: Vector, lower: float, upper: float) -> tuple[float, Vector]:
        """Mirror the costliest case, so that one test of closeness does for both."""
        return (2 * self.game.total(best) - upper if self.costliest else lower), best

    def among(self, method: str, best: Vector, lower: float, upper: float) -> Solution:
        """Claim an equilibrium among others whose totals lie between lower and upper."""
        total = self.game.total(best)
        if not self.costliest:
            return self.bounded(method, lower, best)
        closed = self.is_closed(*self.ends(best, lower, upper))
        status = Status.OPTIMAL if closed else Status.LIMIT
        bounds = Interval(total, max(upper, total))
        return self._solution(method, status, bounds, contributions=best)

    def unique(self, method: str, swept: Swept) -> Solution:
        """Claim the only equilibrium there is."""
        total = self.game.total(swept.contributions)
        return self._solution(
            method,
            Status.OPTIMAL,
            Interval(total, total),
            contributions=swept.contributions,
            certificate={"unique": True, "sweeps": swept.sweeps, "regret": swept.regret},
        )

    def none_exists(self, method: str, agent: int) -> Solution:
        note = f"{self.game.name(agent)} would need more than its limit."
        return self._solution(method, Status.NONE_EXISTS, Interval(np.inf, np.inf), note=note)

    def failed(self, method: str, why: str) -> Solution:
        bounds = Interval(0.0, np.inf)
        return self._solution(method, Status.FAILED, bounds, note=f"Because {why}.")

    def better(self, found: list[Vector]) -> Vector:
        return (max if self.costliest else min)(found, key=self.game.total)

    def most_stable(self) -> float:
        """No equilibrium costs more than everybody going alone."""
        return self.game.total(cap_alone(self.game))
