"""What becomes of a plan if agents keep the samples they withhold, and learn from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._checks import Indices, Vector, frozen
from fedaccord.check.result import Check, to_answer
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.solve import solve_stable
from fedaccord.equilibria.whole import round_up
from fedaccord.games.base import Game
from fedaccord.games.kept import ALL, KeptData, PerAgent, ignore_goals, keep_data
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.result import Plan

if TYPE_CHECKING:
    from fedaccord.games.chances import Chances

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
    responses: what each would give if it alone kept the rest of what it holds.
    level: the least part of its contribution that the plan looks at; None without probabilities.
    reached: the probability that each reaches its goal if it alone gives that part and keeps the
        rest; None without probabilities.
    stable: the cheapest stable plan if all agents keep what they withhold.
    rest: the same without the targets of agents that give nothing; None where it is not needed.
    whole: whether contributions are whole samples.
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
    whole: bool = True

    @property
    def defectors(self) -> Indices:
        """The agents that would give less than the plan asks."""
        return np.flatnonzero(self.responses < self.given)

    @property
    def stable_contributions(self) -> Vector | None:
        """The stable plan if agents keep data, or that of the others; None where there is none."""
        given = self.stable.contributions
        if given is None and self.rest is not None:
            given = self.rest.contributions
        return round_up(given) if self.whole and given is not None else given

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
    whole: bool = True,
    time_limit: float = 60.0,
) -> KeptPlan | None:
    """Return best responses of agents that keep what they withhold; None where there is no plan.

    plan: what was planned.
    kept_worth, holdings: as in `keep_data`.
    whole: whether contributions are whole samples.
    time_limit: seconds for each stable plan.
    """
    kept = KeptData.read(plan.game, kept_worth, holdings)
    given = plan.contributions
    if given is None:
        return None
    game = keep_data(plan.game, kept.worth, kept.holdings)
    # Each does what is best for it while the others do what the plan says.
    responses = game.responses_within(given)
    responses = np.maximum(np.ceil(responses - ROUNDING) if whole else responses, 0.0)
    # What solvers leave over is no sample.
    same = responses >= given - ROUNDING * max(1.0, float(given.max(initial=0.0)))
    responses = np.where(same, given, responses)
    level = min(plan.cuts, default=None)
    stable = solve_stable(game, time_limit=time_limit)
    rest = None
    if stable.contributions is None and len(kept.keepers):
        rest = solve_stable(ignore_goals(game, kept.keepers), time_limit=time_limit)
    reached = None if level is None else _find_reached(plan, kept, given, level)
    best = frozen(responses)
    return KeptPlan(plan, kept, game, given, best, level, reached, stable, rest, whole)


def _find_reached(plan: Plan, kept: KeptData, given: Vector, level: float) -> Vector | None:
    """Return the probability that each reaches its goal if it gives less and keeps the rest."""
    chances = _find_chances(plan.game, kept)
    if chances is None:
        return None
    return chances.replace(judged=plan.options["judged"]).could_cut(given, level)


def _find_chances(game: Game, kept: KeptData) -> Chances | None:
    """Return how likely agents are to reach their goals that keep what they withhold."""
    # The game of an agent to which giving adds nothing knows no contribution but the least.
    changed = keep_data(game, np.minimum(kept.worth, ALMOST), kept.holdings)
    return changed.chances if isinstance(changed, MeasuredGame) else None


def count_kept(found: Check, kept: KeptData, plan: Vector | None = None) -> Check:
    """Return the check of the same contributions by agents that keep what they withhold.

    An agent then has what it gives, what the others give, and what it keeps; the others have only
    what it gives.

    found: the check as if withheld samples were lost, of a linear or measured game.
    kept: what agents hold, and what a kept sample is worth to them. Who gives more than it was
        said to hold keeps nothing.
    plan: of these agents, to compare with; None for no comparison.
    """
    game, given = found.game, found.contributions
    kept = replace(kept, holdings=np.maximum(kept.holdings, given))
    assert isinstance(game, LinearGame)
    keeps, own = kept.worth > 0, game.own_benefits
    rest = np.where(keeps, kept.holdings - given, 0.0)
    reached = game.utilities(given) + own * kept.worth * rest
    slack = reached - game.requirements
    gain = np.where(kept.worth < ALL, 1 - kept.worth, 1.0)
    # By what giving adds, an agent that has enough could give less.
    enough = np.where(kept.worth < ALL, np.maximum(given - slack / (gain * own), 0.0), 0.0)
    allowed = found.tolerance * found.scale
    has = slack >= -max(allowed, ROUNDING) * own
    # An agent that lacks something gives what it keeps first, and then samples that it must find.
    added = (1 - kept.worth) * own * rest
    more = np.where(
        -slack <= added, given - slack / (gain * own), given + rest - (slack + added) / own
    )
    needed = np.where(has, np.minimum(enough, given), more)
    if game.is_integer:
        needed = np.ceil(needed - ROUNDING)
    needed = np.where(keeps, needed, found.needed)
    short = np.maximum(needed - given, 0.0)
    spare = np.maximum(given - np.maximum(needed, game.minimums), 0.0)
    inside = (given <= game.limits + allowed) & (given >= game.minimums - allowed)
    feasible = bool((inside & (short <= allowed)).all())
    stable = feasible and bool((spare <= allowed).all())
    envy = tuple(pair for pair in found.envy if not keeps[pair[0]])
    envy += tuple(_find_envy(game, kept, given, slack, allowed))
    close = tuple(pair for pair in found.borderline if not keeps[pair[0]])
    result = replace(
        found,
        utilities=frozen(reached),
        needed=frozen(needed),
        short=frozen(short),
        spare=frozen(spare),
        feasible=to_answer(feasible, not feasible),
        stable=to_answer(stable, not stable),
        envy=tuple(sorted(envy)),
        borderline=close,
        envy_free=to_answer(feasible and not envy and not close, not feasible or bool(envy)),
        kept=frozen(rest),
    )
    return _count_chances(result, kept, plan)


def _find_envy(
    game: LinearGame, kept: KeptData, given: Vector, slack: Vector, allowed: float
) -> Iterator[tuple[int, int]]:
    """Return whom agents envy that keep data: they would have enough with the other's burden."""
    for agent in np.flatnonzero(kept.worth > 0).tolist():
        helpers, benefit = game.row(agent)
        gains = np.zeros(game.size)
        gains[helpers] = benefit
        less = given[agent] - given
        lost = (1 - kept.worth[agent]) * gains[agent]
        happy = slack[agent] + (gains - lost) * less >= -max(allowed, ROUNDING)
        yield from ((agent, int(other)) for other in np.flatnonzero((less > 2 * allowed) & happy))


def _count_chances(found: Check, kept: KeptData, plan: Vector | None) -> Check:
    """Return a check whose probabilities, and whose check with margins, count kept data."""
    if found.with_margin is not None:
        found = replace(found, with_margin=count_kept(found.with_margin, kept))
    if found.prospects is None:
        return found
    chances = _find_chances(found.game.replace(chances=found.prospects.chances), kept)
    assert chances is not None
    compared = None if plan is None else chances.prospects(plan)
    return replace(found, prospects=chances.prospects(found.contributions), plan=compared)
