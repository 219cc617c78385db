"""Proposals: a plan for a scenario, the numbers that somebody put in its place, and their check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Check, check
from fedaccord.check.decide import count_whole
from fedaccord.equilibria.solve import solve_envy_free, solve_optimal, solve_stable
from fedaccord.equilibria.whole import has_whole_samples, round_plan
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.files import write_game
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.result import Plan
from fedaccord.planning.what_if import (
    Changed,
    Numbers,
    adopt_margins,
    counts_whole,
    follow_plan,
    has_chances,
    list_frame,
)

if TYPE_CHECKING:
    from fedaccord.equilibria.result import Solution

SOLVERS = {"stable": solve_stable, "optimal": solve_optimal, "envy-free": solve_envy_free}


@dataclass(frozen=True, eq=False)
class Proposal:
    """A plan for a scenario.

    changed: what was planned for.
    game: what the plan is for: with safety margins, if it is from pilots; None if a goal is too
        high for any.
    contributions: what each agent gives; None where there is no plan.
    said: why there is none, or what is not proved, in a sentence; else nothing.
    instead: contributions to start from where there is no plan: those of the optimal plan.
    plan: if it was made by planning, as plans from pilots are.
    optimal: the least total that satisfies all agents; None where it was not looked for.
    settled: whether this is the final plan, and not one on the way to it.
    """

    changed: Changed
    game: Game | None
    contributions: Vector | None
    said: str = ""
    instead: Vector | None = None
    plan: Plan | None = None
    optimal: float | None = None
    settled: bool = True

    @cached_property
    def start(self) -> Vector:
        """The plan, or what is proposed instead; or else what each would give alone and can."""
        if self.contributions is not None:
            return self.contributions
        if self.instead is not None:
            return self.instead
        limits = list_frame(self.changed.basis)["limit"]
        alone = np.zeros(len(limits)) if self.game is None else self.game.alone
        return np.minimum(np.where(np.isfinite(alone), alone, 0.0), limits)

    def put(self, give: Numbers = (), cut: Numbers = ()) -> Vector:
        """Return the contributions, with some of them replaced.

        give: contributions in place of the plan's.
        cut: the parts of its contribution that an agent gives.
        """
        given = self.changed.place(self.start, give)
        reduced = given * self.changed.place(np.ones(len(given)), cut)
        return np.floor(reduced) if counts_whole(self.changed.basis) else reduced

    def save_game(self, path: Path) -> None:
        """Write the game that the plan is for, or raise an InputError where there is none.

        path: the file, which is replaced.
        """
        if self.plan is not None:
            self.plan.save_game(path)
        elif self.game is None:
            raise InputError("there is no game to write: a goal is out of reach")
        else:
            write_game(self.game, path)

    def check(self, given: Vector, probability: float) -> Check:
        """Return what the check, which trusts no solver, says of contributions.

        given: what each agent gives.
        probability: that all agents reach their goals, as asked for; only pilots tell it.
        """
        basis = self.changed.basis
        if isinstance(basis, Game) and not has_chances(basis):
            return check(basis, given)
        if isinstance(basis, MeasuredGame):
            basis = count_whole(basis.replace(margins=None))
        plan = self.plan if self.settled else None
        if plan is None and self.game is not None:
            return check(basis, given, plan=self, probability=probability)  # type: ignore[arg-type]
        return check(basis, given, plan=plan, probability=probability)


def propose(changed: Changed, game: Game, concept: str, *, time_limit: float) -> Proposal:
    """Solve a game for a concept: stable, optimal or envy-free.

    changed: what it is the game of.
    game: with safety margins, if there are pilots.
    time_limit: seconds for each solver.
    """
    found = SOLVERS[concept](game, time_limit=time_limit)
    optimal = found if concept == "optimal" else solve_optimal(game, time_limit=time_limit)
    given = found.contributions
    if given is not None and isinstance(game, LinearGame) and has_whole_samples(game):
        given = round_plan(game, given)
    instead = optimal.contributions if given is None else None
    return Proposal(changed, game, given, _explain(found), instead, optimal=optimal.total)


def _explain(found: Solution) -> str:
    """Return why there is no plan, or what is not proved of it; nothing where all is proved."""
    if found.contributions is not None and found.status.key == "optimal":
        return ""
    return " ".join(filter(None, (found.status.value, found.note)))


def propose_planned(
    changed: Changed, plan: Plan, *, equilibrium: int | None = None, time_limit: float
) -> Proposal:
    """Return the proposal that a plan makes, or another of its equilibria.

    changed: what was planned for.
    plan: what was planned.
    equilibrium: the number of the equilibrium, from 0; None for the plan.
    time_limit: seconds for the optimal plan.
    """
    if plan.contributions is None:
        return Proposal(changed, plan.bare, None, plan.verdict, plan=plan)
    given = plan.contributions
    if equilibrium is not None:
        if equilibrium >= len(plan.tradeoffs):
            raise InputError(f"there is no stable plan {equilibrium + 1}; choose another")
        given = plan.tradeoffs[equilibrium].contributions
        given = round_plan(plan.game, given) if counts_whole(changed.basis) else given
    optimal = solve_optimal(plan.game, time_limit=time_limit).total
    return Proposal(changed, plan.game, given, plan=plan, optimal=optimal)


def follow(changed: Changed, last: Proposal, concept: str, *, time_limit: float) -> Proposal:
    """Return a proposal within milliseconds: a plan like the last one, or its numbers.

    The check of it is as thorough as any; only the plan may not be the cheapest.

    changed: the new scenario.
    last: the proposal before.
    concept: stable, optimal or envy-free.
    time_limit: seconds for the optimal plan.
    """
    game = adopt_margins(changed.basis, last.game)
    if isinstance(game, LinearGame) and concept == "optimal":
        return replace(propose(changed, game, concept, time_limit=time_limit), settled=False)
    found = Proposal(changed, game, None, settled=False)
    if len(last.start) != len(changed.names):
        return found
    given = follow_plan(game, last.start) if concept == "stable" else last.start
    given = np.minimum(given, list_frame(changed.basis)["limit"])
    optimal = None
    if isinstance(game, LinearGame):
        optimal = solve_optimal(game, time_limit=time_limit).total
    return replace(found, contributions=given, optimal=optimal)
