"""From a state to a plan: the functions of the command line, called with a visitor's numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Check, check
from fedaccord.check.decide import count_whole
from fedaccord.equilibria.result import Solution
from fedaccord.equilibria.solve import (
    solve_all,
    solve_envy_free,
    solve_optimal,
    solve_stable,
)
from fedaccord.equilibria.whole import has_whole_samples, round_to_samples, round_up
from fedaccord.errors import FedaccordError, InputError, UnreachableError
from fedaccord.explore.state import State
from fedaccord.explore.subject import Problem, Subject, frame_of, has_chances, set_up
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.plan import make_plan
from fedaccord.planning.result import Plan
from fedaccord.planning.selection import continue_equilibria, round_box

if TYPE_CHECKING:
    from fedaccord.coalitions.result import Coalitions
    from fedaccord.equilibria.result import SolvedGame
    from fedaccord.planning.kept import KeptPlan
    from fedaccord.sharing.result import CostShares

# Seconds for each solver: in a meeting, a good plan now is worth more than the best one later.
TIME_LIMIT = 5.0
# How many answers are kept: a visitor goes back and forth.
KEPT = 256
SOLVERS = {"stable": solve_stable, "optimal": solve_optimal, "envy-free": solve_envy_free}


@dataclass(frozen=True, eq=False)
class Answer:
    """The plan for a state.

    problem: what was planned for.
    game: what the plan is for: with safety margins, if it is from pilots.
    contributions: what each agent gives; None where there is no plan.
    said: why there is none, or what is not proved, in a sentence; else nothing.
    plan: made from pilots; None where there are none.
    optimal: the least total that satisfies all agents; None where it was not looked for.
    settled: whether this is the plan that was asked for, and not one on the way to it.
    """

    problem: Problem
    game: Game | None
    contributions: Vector | None
    said: str = ""
    plan: Plan | None = None
    optimal: float | None = None
    settled: bool = True

    @cached_property
    def start(self) -> Vector:
        """The plan; where there is none, what each would give alone and can."""
        if self.contributions is not None:
            return self.contributions
        limits = frame_of(self.problem.basis)["limit"]
        alone = np.zeros(len(limits)) if self.game is None else self.game.alone
        return np.minimum(np.where(np.isfinite(alone), alone, 0.0), limits)

    def propose(self, state: State) -> Vector:
        """Return the proposal: the plan with the contributions that the visitor has set."""
        given = self.problem.place(self.start, state.give)
        levels = self.problem.place(np.ones(len(given)), state.cut)
        reduced = given * levels
        return np.floor(reduced) if counts_whole(self.problem.basis) else reduced


def counts_whole(basis: Measurement | Game) -> bool:
    """Return whether agents give whole samples."""
    return isinstance(basis, Measurement) or has_whole_samples(basis)


class Desk:
    """Answers for one subject; those of late are kept.

    subject: what the app was opened on.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._kept: dict[Hashable, Any] = {}
        self.plan = lru_cache(KEPT)(self._plan)
        self.set_up = lru_cache(KEPT)(self._set_up)

    def _remember(self, what: str, state: State, value: Any) -> Any:
        self._kept[what, state.problem] = value
        while len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept)))
        return value

    def known(self, state: State) -> Answer | None:
        """Return the answer to a state if it was found before."""
        return self._kept.get(("answer", state.problem))

    def answer(self, state: State) -> Answer:
        """Return the plan for a state; it may take seconds."""
        found = self.known(state)
        return found or self._remember("answer", state, self._answer(state.problem))

    def _set_up(self, problem: State) -> Problem:
        # Joining is planned with the margins of the plan before it.
        before = replace(problem, like=(), left=(), plan="stable")
        return set_up(self.subject, problem, lambda _: self._find_margins(before))

    def _find_margins(self, state: State) -> LinearGame:
        plan = self.plan(state)
        if plan.contributions is None:
            raise InputError(f"an agent can join when there is a plan; {plan.reason}")
        return plan.game

    def _plan(self, problem: State) -> Plan:
        """Return the plan of a linear or measured subject, as `fedaccord plan` makes it."""
        basis = self.set_up(problem).basis
        if isinstance(basis, Measurement):
            wanted = {"probability": problem.probability or self.subject.probability}
            return make_plan(basis, time_limit=TIME_LIMIT, **wanted)
        if not isinstance(basis, LinearGame):
            raise InputError("this needs a linear or a measured game, as plans do")
        return make_plan(basis, time_limit=TIME_LIMIT)

    def _answer(self, state: State) -> Answer:
        problem = self.set_up(state)
        basis = problem.basis
        number = state.equilibrium
        if not has_chances(basis) and number is None:
            assert isinstance(basis, Game)
            return self._solve(problem, basis, state)
        plan = self.plan(replace(state, plan="stable"))
        if plan.contributions is None:
            return Answer(problem, plan.bare, None, plan.verdict, plan)
        kept = plan if has_chances(basis) else None
        optimal = solve_optimal(plan.game, time_limit=TIME_LIMIT).total
        if number is not None and number >= len(plan.tradeoffs):
            raise InputError(f"there are {len(plan.tradeoffs)} stable plans, not {number + 1}")
        if number is not None:
            given = round_to_samples(plan.game, plan.tradeoffs[number].contributions)
            return Answer(problem, plan.game, given, "", kept, optimal)
        if state.plan == "stable":
            return Answer(problem, plan.game, plan.contributions, "", plan, optimal)
        found = self._solve(problem, plan.game, state)
        return replace(found, plan=plan, optimal=optimal)

    def _solve(self, problem: Problem, game: Game, state: State) -> Answer:
        """Solve for the concept that the visitor chose."""
        concept = "optimal" if state.plan == "payments" else state.plan
        found = SOLVERS[concept](game, time_limit=TIME_LIMIT)
        optimal = found if concept == "optimal" else solve_optimal(game, time_limit=TIME_LIMIT)
        given = found.contributions
        if given is not None and isinstance(game, LinearGame) and has_whole_samples(game):
            given = round_to_samples(game, given)
        return Answer(problem, game, given, _explain(found), None, optimal.total)

    def follow(self, state: State, last: Answer) -> Answer:
        """Return an answer within milliseconds: a plan like the last one, or its numbers as such.

        The check of the proposal is as thorough as ever; only the plan may not be the cheapest.

        state: the new one.
        last: the answer to the state before.
        """
        problem = self.set_up(state.problem)
        game = self._adopt_margins(problem, last)
        given = last.start if last.start.shape == (len(problem.names),) else None
        near = None
        if given is not None and isinstance(game, LinearGame) and state.plan == "stable":
            near = continue_equilibria(round_box(game), given[None])
        if near is not None:
            given = near.contributions[0]
            given = round_up(given) if counts_whole(problem.basis) else given
        optimal = None
        if isinstance(game, LinearGame):
            best = solve_optimal(game, time_limit=TIME_LIMIT)
            optimal = best.total
            if state.plan in ("optimal", "payments") and best.contributions is not None:
                given = best.contributions
                given = round_up(given) if counts_whole(problem.basis) else given
        if given is not None:
            given = np.minimum(given, frame_of(problem.basis)["limit"])
        return Answer(problem, game, given, "", last.plan, optimal, settled=False)

    def _adopt_margins(self, problem: Problem, last: Answer) -> Game | None:
        basis = problem.basis
        try:
            game = basis.game if isinstance(basis, Measurement) else basis
            margins = getattr(last.game, "margins", None)
            if isinstance(game, MeasuredGame) and margins is not None and len(margins) == game.size:
                return game.replace(margins=margins)
        except UnreachableError:
            return None
        return game

    # What is asked of the proposal.

    def check(self, answer: Answer, state: State) -> Check:
        """Return what the check, which trusts no solver, says of the proposal."""
        basis, given = answer.problem.basis, answer.propose(state)
        if not has_chances(basis):
            assert isinstance(basis, Game)
            return check(basis, given)
        plan = answer.plan if answer.settled else _Planned.of(answer)
        if isinstance(basis, MeasuredGame):
            basis = count_whole(basis.replace(margins=None))
        asked = state.probability or self.subject.probability
        return check(basis, given, plan=plan, probability=asked)

    def solve_each(self, state: State) -> SolvedGame:
        """Return the optimal, the stable and the envy-free plan."""
        game = self._need_game(state)
        return solve_all(game, time_limit=TIME_LIMIT)

    def share(self, state: State) -> CostShares:
        """Return who pays whom for the cheapest plan."""
        from fedaccord.sharing.share import share_costs

        return share_costs(self._need_linear(state), time_limit=TIME_LIMIT)

    def find_coalitions(self, state: State) -> Coalitions:
        """Return who should federate with whom."""
        from fedaccord.coalitions.find import find_coalitions

        return find_coalitions(self._need_linear(state), time_limit=TIME_LIMIT)

    def keep_data(self, state: State) -> KeptPlan | None:
        """Return what agents do that keep the samples they withhold; None where there is no plan.

        An agent without a limit holds what it would need alone.
        """
        from fedaccord.planning.kept import plan_for_kept_data

        plan = self.plan(replace(state.problem, plan="stable"))
        problem = self.set_up(state.problem)
        worth = problem.place(np.zeros(len(problem.names)), state.keep)
        limits, alone = plan.game.limits, plan.game.alone
        held = np.where(np.isinf(limits), np.maximum(alone, plan.game.minimums), limits)
        return plan_for_kept_data(plan, worth, held, time_limit=TIME_LIMIT)

    def _need_game(self, state: State) -> Game:
        answer = self.answer(state)
        if answer.game is None or (answer.plan is not None and answer.plan.contributions is None):
            raise UnreachableError(answer.said or "there is no plan to compare")
        return answer.game

    def _need_linear(self, state: State) -> LinearGame:
        game = self._need_game(state)
        if not isinstance(game, LinearGame):
            raise InputError("this needs a linear or a measured game; this game is of another kind")
        return game


@dataclass(frozen=True, eq=False)
class _Planned:
    """What a check compares with while the plan is on its way."""

    game: Game
    contributions: Vector | None

    @classmethod
    def of(cls, answer: Answer) -> _Planned | None:
        return None if answer.game is None else cls(answer.game, answer.contributions)


def _explain(found: Solution) -> str:
    """Return why there is no plan, or what is not proved of it; nothing where all is proved."""
    if found.contributions is not None and found.status.key == "optimal":
        return ""
    return " ".join(filter(None, (found.status.value, found.note)))


__all__ = ["Answer", "Desk", "FedaccordError"]
