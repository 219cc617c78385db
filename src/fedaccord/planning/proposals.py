"""Proposals: a plan for a scenario, the numbers that somebody put in its place, and their check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Check, check
from fedaccord.check.decide import count_whole
from fedaccord.equilibria.solve import solve_envy_free, solve_optimal, solve_stable
from fedaccord.equilibria.whole import has_whole_samples, round_plan, round_up
from fedaccord.errors import InputError
from fedaccord.games.base import Game
from fedaccord.games.files import write_game
from fedaccord.games.kept import KeptData
from fedaccord.games.kept import keep_data as count_for_goals
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.planning.kept import ALMOST, KeptPlan, count_kept, plan_for_kept_data
from fedaccord.planning.result import Outcome, Plan
from fedaccord.planning.sentences import list_verdict
from fedaccord.planning.what_if import (
    Changed,
    Numbers,
    Scenario,
    adopt_margins,
    counts_whole,
    follow_plan,
    has_accuracies,
    has_chances,
    list_bounds,
    list_frame,
)

if TYPE_CHECKING:
    from fedaccord.equilibria.result import Solution

SOLVERS = {"stable": solve_stable, "optimal": solve_optimal, "envy-free": solve_envy_free}


# The part of the largest contribution that is no change worth a word.
SMALL = 1e-3
# What binary fractions leave over, as a share of a number.
DUST = 1e-9


class Carried(NamedTuple):
    """Agents that are held to less than they would give, so that the others give more.

    agents: their places.
    fewer: how many samples less they give.
    more: how many samples more the others give.
    """

    agents: tuple[int, ...]
    fewer: float
    more: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """A plan for a scenario.

    changed: what was planned for.
    game: what the plan is for: with safety margins, if it is from pilots; None if a goal is too
        high for any.
    contributions: what each agent gives; None where there is no plan.
    said: why there is none, or what is not proved, a sentence each; else nothing.
    instead: contributions to start from where there is no plan: those of the optimal plan.
    plan: if it was made by planning, as plans from pilots are.
    optimal: the optimal plan of the game; None where there is none, or none was looked for.
    free: the plan if no contribution were locked and no limit changed; None where there is none,
        or where nothing is locked or changed.
    kept: what agents do that keep what they withhold; None where none does, or there is no plan.
    settled: whether this is the final plan, and not one on the way to it.
    whole: the plan with the agents that left; None where none left.
    usual: the plan for the probability of the file; None where the scenario has no other.
    """

    changed: Changed
    game: Game | None
    contributions: Vector | None
    said: tuple[str, ...] = ()
    instead: Vector | None = None
    plan: Plan | None = None
    optimal: Vector | None = None
    free: Vector | None = None
    kept: KeptPlan | None = None
    settled: bool = True
    whole: Proposal | None = None
    usual: Proposal | None = None

    @cached_property
    def start(self) -> Vector:
        """The plan, or what is proposed instead; or else what each would give alone and can.

        Without a plan, contributions are rounded up, and a locked agent gives its number.
        """
        if self.contributions is not None:
            return self.contributions
        given = self._list_alone() if self.instead is None else self.instead
        whole = counts_whole(self.changed.basis)
        return np.clip(round_up(given) if whole else given, *list_bounds(self.changed.basis))

    def _list_alone(self) -> Vector:
        """Return what each would give alone; of a goal out of reach, all that it can."""
        _, limits = list_bounds(self.changed.basis)
        alone = np.zeros(len(limits)) if self.game is None else self.game.alone
        alone = np.where(np.isfinite(alone), alone, 0.0)
        missed = [] if self.plan is None else [one.agent for one in self.plan.unreachable]
        alone[missed] = np.where(np.isfinite(limits), limits, alone)[missed]
        return alone

    def put(self, scenario: Scenario) -> Vector:
        """Return the contributions, as agents give them in a scenario.

        scenario: which contributions are replaced or cut, and which depend on others.
        """
        given = self._reduce(scenario)
        given[list(self.find_broken(scenario))] = 0.0
        return given

    def find_broken(self, scenario: Scenario) -> dict[int, int]:
        """Return which agents give nothing because another, the value, gives too little."""
        asked = np.array(self.start)
        if self.free is not None:
            held = list(self.list_held())
            asked[held] = self.free[held]
        return self.changed.find_broken(self._reduce(scenario), asked, scenario.only)

    def list_held(self) -> tuple[int, ...]:
        """Return the agents that a lock holds, or another limit at which they are."""
        changes, (_, limits) = self.changed.scenario, list_bounds(self.changed.basis)
        at_limit = self.start >= limits - DUST * np.maximum(1.0, self.start)
        limited = (n for n in self.changed.find(changes.limit) if at_limit[n])
        return tuple(sorted({*self.changed.find(changes.lock), *limited}))

    def find_carried(self, given: Vector) -> Carried | None:
        """Return which agents the others carry; None where there is none.

        They are held to less than they would give in the plan, and the others give more.

        given: what each agent gives.
        """
        if self.free is None:
            return None
        more, held = given - self.free, self.list_held()
        agents = tuple(i for i in held if more[i] < -SMALL * self.free.max())
        fewer = -float(more[list(agents)].sum())
        rest = float(more.sum()) + fewer
        return Carried(agents, fewer, rest) if agents and rest > SMALL * self.free.max() else None

    def split_equally(self) -> Numbers:
        """Return what each agent gives if all give the same, as many in all as in the plan.

        An agent gives no more than its limit, and a locked one its number.
        """
        each = np.full(len(self.start), self.start.mean())
        each = round_up(each) if counts_whole(self.changed.basis) else each
        given = np.clip(each, *list_bounds(self.changed.basis))
        return tuple(zip(self.changed.numbers, given.tolist(), strict=True))

    def find_kept_plan(self) -> Vector | None:
        """Return what agents give in a plan for agents that keep data; None where none is known."""
        return None if self.kept is None else self.kept.stable_contributions

    def is_kept_plan(self, given: Vector) -> bool:
        """Return whether agents give what all of them agree to if some of them keep data.

        given: what each agent gives.
        """
        # The plan of the others alone leaves those short that give nothing.
        if self.kept is None or self.kept.stable.contributions is None:
            return False
        return bool(np.allclose(given, np.asarray(self.find_kept_plan()), rtol=0, atol=1e-6))

    def find_costs_of_leaving(self, given: Vector) -> dict[str, float] | None:
        """Return how many samples more each agent gives than with those that left.

        None where none left, or where there is no plan to compare.

        given: what each agent gives.
        """
        if self.whole is None or self.whole.contributions is None or self.contributions is None:
            return None
        with_all = dict(zip(self.whole.changed.names, self.whole.contributions, strict=True))
        now = zip(self.changed.names, given.tolist(), strict=True)
        return {name: amount - float(with_all[name]) for name, amount in now}

    def _reduce(self, scenario: Scenario) -> Vector:
        given = self.changed.place(self.start, scenario.give)
        reduced = given * self.changed.place(np.ones(len(given)), scenario.cut)
        if not counts_whole(self.changed.basis):
            return reduced
        # 0.29 of 100 is 29, and not 28.999...
        return np.asarray(np.floor(reduced + np.clip(DUST * reduced, DUST, 0.5)))

    def list_sliders(
        self, what: str, given: Vector, locked: Sequence[int]
    ) -> tuple[Vector, Vector]:
        """Return the numbers of all agents that sliders change, and where the sliders end.

        what: "give" for contributions, or "goal", "limit" or "cost".
        given: what each agent gives.
        locked: agents whose contributions are locked.
        """
        basis = self.changed.basis
        frame = list_frame(basis)
        alone = self.start if self.game is None else self.game.alone
        alone = np.where(np.isfinite(alone), alone, 1.0)
        if what == "give":
            # A locked agent's limit is its number; its lock can still be moved, as far as before.
            unlocked = self.changed.unlocked
            limits = np.array(frame["limit"] if unlocked is None else unlocked)
            if unlocked is None:
                limits[np.isin(self.changed.numbers, locked)] = np.inf
            return given, np.where(np.isfinite(limits), limits, np.maximum(alone, given))
        values = frame[what]
        known = np.where(np.isfinite(values), values, 0.0)
        if what == "cost":
            return values, np.maximum(10.0, known)
        if what == "goal" and has_accuracies(basis):
            return values, np.full(len(values), 0.999)
        return values, np.maximum(1.5 * alone, known)

    def find_game(self, given: Vector, keep: Numbers = ()) -> Game | None:
        """Return the game that the plan is for, as it is saved; None where there is none.

        It counts what agents keep, so that its check says the same as the check here.

        given: what each agent gives.
        keep: what a sample is worth to an agent that keeps it.
        """
        # Planning in whole samples only explains why a game over the reals has no plan.
        explains = self.contributions is None and not has_chances(self.changed.basis)
        game = self.game if self.plan is None or explains else self.plan.saved_game
        if not isinstance(game, LinearGame) or not self.changed.find(keep):
            return game
        kept = self.hold(game, keep)
        # An agent that gains nothing by giving has its minimum as its limit.
        more = given > game.minimums
        worth = np.where(more, np.minimum(kept.worth, ALMOST), kept.worth)
        held = np.where(worth > 0, np.maximum(kept.holdings, given), game.limits)
        return count_for_goals(game, worth, held)

    def save_game(self, path: Path, given: Vector, keep: Numbers = ()) -> None:
        """Write the game that the plan is for, or raise an InputError where there is none.

        path: the file, which is replaced.
        given, keep: as in `find_game`.
        """
        game = self.find_game(given, keep)
        if game is None:
            raise InputError("there is no game to write: a goal is out of reach")
        write_game(game, path)

    def check(self, given: Vector, probability: float, keep: Numbers = ()) -> Check:
        """Return what the check, which trusts no solver, says of contributions.

        given: what each agent gives.
        probability: that all agents reach their goals, as asked for; only pilots tell it.
        keep: what a sample is worth to an agent that keeps it.
        """
        locked = self.changed.find(self.changed.scenario.lock)
        found = replace(self._check(given, probability), locked=locked)
        if not isinstance(found.game, LinearGame) or not self.changed.find(keep):
            return found
        # Agents that keep data have a plan of their own, which the saved game has too.
        stable = None if self.kept is None else self.kept.stable.contributions
        same = np.array_equal(given, self.start) or stable is None
        plan = None if same else self.find_kept_plan()
        return count_kept(found, self.hold(found.judged.game, keep), plan)

    def hold(self, game: Game, keep: Numbers) -> KeptData:
        """Return what agents hold; one without a limit holds what it would need alone.

        game: with safety margins, if there are pilots.
        keep: what a sample is worth to an agent that keeps it.
        """
        limits = game.limits if self.changed.unlocked is None else self.changed.unlocked
        held = np.where(np.isinf(limits), game.alone, limits)
        worth = self.changed.place(np.zeros(game.size), keep)
        return KeptData.read(game, worth, np.maximum.reduce([held, game.minimums, self.start]))

    def _check(self, given: Vector, probability: float) -> Check:
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
    given, instead = found.contributions, None
    if given is None:
        instead = optimal.contributions
    elif isinstance(game, LinearGame) and has_whole_samples(game):
        given = round_plan(game, given)
    said = _explain(found)
    return Proposal(changed, game, given, said, instead, optimal=optimal.contributions)


def _explain(found: Solution) -> tuple[str, ...]:
    """Return why there is no plan, or what is not proved of it; nothing where all is proved."""
    if found.contributions is not None and found.status.key == "optimal":
        return ()
    return tuple(filter(None, (found.status.value, found.note)))


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
        return Proposal(changed, plan.bare, None, tuple(list_verdict(plan)), plan=plan)
    given = plan.contributions
    if equilibrium is not None:
        if equilibrium >= len(plan.tradeoffs):
            raise InputError(f"there is no stable plan {equilibrium + 1}; choose another")
        given = plan.tradeoffs[equilibrium].contributions
        given = round_plan(plan.game, given) if counts_whole(changed.basis) else given
    optimal = solve_optimal(plan.game, time_limit=time_limit).contributions
    said = (plan.outcome.value,) if plan.outcome is Outcome.LESS_SURE else ()
    return Proposal(changed, plan.game, given, said, plan=plan, optimal=optimal)


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
    found = replace(found, free=last.free)
    given = follow_plan(game, last.start) if concept == "stable" else last.start
    given = np.clip(given, *list_bounds(changed.basis))
    optimal = None
    if isinstance(game, LinearGame):
        optimal = solve_optimal(game, time_limit=time_limit).contributions
    return replace(found, contributions=given, optimal=optimal)


def keep_data(proposal: Proposal, plan: Plan, keep: Numbers, *, time_limit: float) -> Proposal:
    """Return a proposal that knows what agents do that keep the samples they withhold.

    proposal: as if withheld samples were lost.
    plan: the stable plan for the same scenario.
    keep: what a sample is worth to an agent that keeps it.
    time_limit: seconds for each solver.
    """
    if plan.contributions is None or proposal.contributions is None:
        return proposal
    # The proposal may be the optimal plan, or another.
    plan = replace(plan, contributions=proposal.contributions)
    kept, whole = proposal.hold(plan.game, keep), counts_whole(proposal.changed.basis)
    found = plan_for_kept_data(plan, kept.worth, kept.holdings, whole=whole, time_limit=time_limit)
    return replace(proposal, kept=found)
