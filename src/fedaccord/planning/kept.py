"""What becomes of a plan if agents keep the samples they withhold, and learn from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.solve import solve_stable
from fedaccord.games.base import Game
from fedaccord.games.kept import KeptData, PerAgent, ignore_goals, keep_data
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.result import Plan

# A need this little above a whole number of samples is that number.
ROUNDING = 1e-6
# So near to all of it that the difference is no sample.
ALMOST = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class KeptPlan:
    """A plan, and the best responses of agents that keep what they withhold.

    plan: what was planned, as if withheld samples were lost.
    kept: what agents hold, and what a kept sample is worth to them.
    game: of agents that keep data, with the plan's targets.
    given: what the plan asks of each agent.
    responses: what each would give, in whole samples, if it alone kept the rest of what it holds.
    level: the least part of its contribution that the plan looks at; None without probabilities.
    reached: the probability that each reaches its goal if it alone gives that part and keeps the
        rest; None without probabilities.
    stable: the cheapest stable plan if all agents keep what they withhold.
    rest: the same without the targets of agents that give nothing; None where it is not needed.
    """

    plan: Plan
    kept: KeptData
    game: Game
    given: Vector
    responses: Vector
    level: float | None
    reached: Vector | None
    stable: Solution
    rest: Solution | None

    @property
    def defectors(self) -> Indices:
        """The agents that would give less than the plan asks."""
        return np.flatnonzero(self.responses < self.given)

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "worth": self.kept.worth.tolist(),
            "holdings": [held if np.isfinite(held) else None for held in self.kept.holdings],
            "would_give": self.responses.tolist(),
            "level": self.level,
            "reached": None if self.reached is None else self.reached.tolist(),
            "stable": self.stable.to_dict(),
            "rest": None if self.rest is None else self.rest.to_dict(),
        }


def plan_for_kept_data(
    plan: Plan,
    kept_worth: PerAgent,
    holdings: PerAgent | None = None,
    *,
    time_limit: float = 60.0,
) -> KeptPlan | None:
    """Return best responses of agents that keep what they withhold; None where there is no plan.

    plan: what was planned.
    kept_worth, holdings: as in `keep_data`.
    time_limit: seconds for each stable plan.
    """
    kept = KeptData.read(plan.game, kept_worth, holdings)
    given = plan.contributions
    if given is None:
        return None
    game = keep_data(plan.game, kept.worth, kept.holdings)
    # Each does what is best for it while the others do what the plan says.
    whole = np.maximum(np.ceil(game.responses_within(given) - ROUNDING), 0.0)
    responses = np.minimum(whole, given)
    level = min(plan.cuts, default=None)
    stable = solve_stable(game, time_limit=time_limit)
    rest = None
    if stable.contributions is None and len(kept.keepers):
        rest = solve_stable(ignore_goals(game, kept.keepers), time_limit=time_limit)
    reached = None if level is None else _find_reached(plan, kept, given, level)
    return KeptPlan(plan, kept, game, given, frozen(responses), level, reached, stable, rest)


def _find_reached(plan: Plan, kept: KeptData, given: Vector, level: float) -> Vector | None:
    """Return the probability that each reaches its goal if it gives less and keeps the rest."""
    # The game of an agent to which giving adds nothing knows no contribution but the least.
    worth = np.minimum(kept.worth, ALMOST)
    changed = keep_data(plan.game, worth, kept.holdings)
    if not isinstance(changed, MeasuredGame) or changed.chances is None:
        return None
    chances = changed.chances.replace(judged=plan.options["judged"])
    return chances.could_cut(given, level)
