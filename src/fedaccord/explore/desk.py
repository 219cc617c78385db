"""From a state to a plan: the functions of the command line, called with a visitor's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.check import Check
from fedaccord.equilibria.solve import solve_all
from fedaccord.errors import InputError, UnreachableError
from fedaccord.explore.state import State
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.plan import make_plan
from fedaccord.planning.proposals import Proposal, follow, propose, propose_planned
from fedaccord.planning.result import Plan
from fedaccord.planning.what_if import Basis, Changed, apply_scenario, has_chances, name_agents
from fedaccord.wording import Words

if TYPE_CHECKING:
    from fedaccord.coalitions.result import Coalitions
    from fedaccord.equilibria.result import SolvedGame
    from fedaccord.planning.kept import KeptPlan
    from fedaccord.sharing.result import CostShares

# Seconds for each solver: in a meeting, a good plan now is worth more than the best one later.
TIME_LIMIT = 10.0
# How many answers are kept, since visitors go back and forth.
KEPT = 256
# The probability that plans must have unless the state or the game has another.
PROBABILITY = 0.95


@dataclass(frozen=True, eq=False)
class Subject:
    """What the app was opened on.

    basis: what pilots measured, or a game.
    title: what it is called.
    words: what agents and samples are called.
    files: facts about the files that were read, for pages.
    """

    basis: Basis
    title: str = "Who gives how much"
    words: Words = field(default_factory=Words)
    files: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What the agents of the file are called."""
        return name_agents(self.basis)

    @property
    def probability(self) -> float:
        """The probability that plans must have unless the state has another."""
        chances = getattr(self.basis, "chances", None)
        return getattr(chances, "probability", None) or PROBABILITY


class Desk:
    """Answers for one subject; those of late are kept.

    subject: what the app was opened on.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        # By what decides them: a slider that moves a contribution solves nothing again.
        self.change = lru_cache(KEPT)(self._change)
        self.plan = lru_cache(KEPT)(self._plan)
        self.share = lru_cache(KEPT)(self._share)
        self._answers: dict[State, Proposal] = {}
        self._busy = Lock()

    def known(self, state: State) -> Proposal | None:
        """Return the plan for a state if it was found before."""
        return self._answers.get(state.problem)

    def answer(self, state: State) -> Proposal:
        """Return the plan for a state; it may take seconds."""
        with self._busy:
            found = self.known(state) or self._answer(state.problem)
            if len(self._answers) >= KEPT:
                self._answers.clear()
            self._answers[state.problem] = found
        if state.plan == "payments" and found.contributions is not None:
            self.share(state.problem)
        return found

    def warm_up(self) -> None:
        """Solve a small game without haste, so that what is compiled on first use is there."""
        with self._busy:
            solve_all(LinearGame([[1.0, 0.5], [0.4, 1.0]], [2.0, 2.0]))

    def _change(self, problem: State) -> Changed:
        def find_margins(_: Measurement) -> LinearGame:
            plan = self.plan(replace(problem.stable, like=(), left=()))
            if plan.contributions is None:
                raise InputError(f"an agent can join when there is a plan; {plan.reason}")
            return plan.game

        return apply_scenario(self.subject.basis, problem, find_margins)

    def _plan(self, problem: State) -> Plan:
        """Return the plan of a linear or measured subject, as `fedaccord plan` makes it."""
        basis = self.change(problem).basis
        if isinstance(basis, Measurement):
            asked = problem.probability or self.subject.probability
            return make_plan(basis, probability=asked, time_limit=TIME_LIMIT)
        return make_plan(_need_linear(basis), time_limit=TIME_LIMIT)

    def _answer(self, problem: State) -> Proposal:
        changed, number = self.change(problem), problem.equilibrium
        basis = changed.basis
        if isinstance(basis, Game) and not has_chances(basis) and number is None:
            found = propose(changed, basis, problem.concept, time_limit=TIME_LIMIT)
            lacks = found.contributions is None and isinstance(basis, LinearGame)
            # Planning says what would make a plan possible.
            return replace(found, plan=self.plan(problem.stable)) if lacks else found
        plan = self.plan(problem.stable)
        if plan.contributions is None or number is not None or problem.concept == "stable":
            return propose_planned(changed, plan, equilibrium=number, time_limit=TIME_LIMIT)
        found = propose(changed, plan.game, problem.concept, time_limit=TIME_LIMIT)
        return replace(found, plan=plan)

    def follow(self, state: State, last: Proposal) -> Proposal:
        """Return a plan for a state at once, which may not be the cheapest.

        state: the new one.
        last: the plan for the state before.
        """
        return follow(self.change(state.problem), last, state.concept, time_limit=TIME_LIMIT)

    # What is asked of the proposal.

    def check(self, answer: Proposal, state: State) -> Check:
        """Return what the check says of the plan with the numbers that the visitor has set."""
        asked = state.probability or self.subject.probability
        return answer.check(answer.put(state.give, state.cut), asked)

    def solve_each(self, state: State) -> SolvedGame:
        """Return the optimal, the stable and the envy-free plan."""
        return solve_all(self.need_game(state), time_limit=TIME_LIMIT)

    def _share(self, problem: State) -> CostShares:
        """Return who pays whom for the cheapest plan."""
        from fedaccord.sharing.share import share_costs

        return share_costs(_need_linear(self.need_game(problem)), time_limit=TIME_LIMIT)

    def find_coalitions(self, state: State) -> Coalitions:
        """Return who should federate with whom."""
        from fedaccord.coalitions.find import find_coalitions

        return find_coalitions(_need_linear(self.need_game(state)), time_limit=TIME_LIMIT)

    def keep_data(self, state: State) -> KeptPlan | None:
        """Return what agents do that keep the samples they withhold; None where there is no plan.

        An agent without a limit holds what it would need alone.
        """
        from fedaccord.planning.kept import plan_for_kept_data

        plan, changed = self.plan(state.stable), self.change(state.problem)
        worth = changed.place(np.zeros(len(changed.names)), state.keep)
        limits, alone = plan.game.limits, plan.game.alone
        held = np.where(np.isinf(limits), np.maximum(alone, plan.game.minimums), limits)
        return plan_for_kept_data(plan, worth, held, time_limit=TIME_LIMIT)

    def need_game(self, state: State) -> Game:
        """Return the game of a plan, or raise an UnreachableError where there is no plan."""
        answer = self.known(state) or self.answer(state)
        if answer.game is None or (answer.plan is not None and answer.plan.contributions is None):
            raise UnreachableError(answer.said.rstrip(".") or "there is no plan to compare")
        return answer.game


def _need_linear(basis: Basis) -> LinearGame:
    if not isinstance(basis, LinearGame):
        raise InputError("this needs a linear or a measured game, and this game is of another kind")
    return basis
