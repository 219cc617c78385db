"""From a state to a plan: the functions of the command line, called with a visitor's numbers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING

from fedaccord.check import Check
from fedaccord.equilibria.solve import solve_all
from fedaccord.errors import FedaccordError, InputError, UnreachableError
from fedaccord.explore.state import State
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.members import describe_joined
from fedaccord.planning.plan import make_plan
from fedaccord.planning.proposals import Proposal, follow, keep_data, propose, propose_planned
from fedaccord.planning.result import Plan
from fedaccord.planning.what_if import Basis, apply_scenario, has_chances, list_bounds, name_agents
from fedaccord.wording import Words

if TYPE_CHECKING:
    from fedaccord.coalitions.result import Coalitions
    from fedaccord.equilibria.result import SolvedGame
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
        self.change = lru_cache(KEPT)(partial(apply_scenario, subject.basis))
        self.plan = lru_cache(KEPT)(self._plan)
        self.share = lru_cache(KEPT)(self._share)
        self.follow = lru_cache(1)(self._follow)
        self._answers: dict[State, Proposal] = {}
        self._busy = Lock()

    def known(self, state: State) -> Proposal | None:
        """Return the plan for a state if it was found before."""
        return self._answers.get(state.problem.put(keep=state.keep))

    def answer(self, state: State) -> Proposal:
        """Return the plan for a state; it may take seconds."""
        with self._busy:
            found = self._find(state.problem)
        if state.plan == "payments" and found.contributions is not None:
            self.share(state.problem)
        if state.keep and isinstance(found.changed.basis, Measurement | LinearGame):
            plan = self.plan(state.stable)
            found = keep_data(found, plan, state.keep, time_limit=TIME_LIMIT)
            self._remember(state.problem.put(keep=state.keep), found)
        return found

    def _remember(self, state: State, found: Proposal) -> None:
        self._answers = {**(self._answers if len(self._answers) < KEPT else {}), state: found}

    def _find(self, problem: State) -> Proposal:
        found = self.known(problem)
        if found is None:
            found = self._answer(problem)
            if problem.is_bound and (free := self._compare(problem.free)):
                found = replace(found, free=free.contributions)
            plain = problem.put(plan=problem.concept)
            if problem.left:
                found = replace(found, whole=self._compare(plain.put(left=())))
            if problem.probability:
                found = replace(found, usual=self._compare(plain.put(probability=None)))
            self._remember(problem, found)
        return found

    def _compare(self, problem: State) -> Proposal | None:
        # That there is no plan to compare with says nothing against a plan.
        with suppress(FedaccordError):
            return self._find(problem)
        return None

    def warm_up(self) -> None:
        """Solve a small game without haste, so that what is compiled on first use is there."""
        with self._busy:
            solve_all(LinearGame([[1.0, 0.5], [0.4, 1.0]], [2.0, 2.0]))

    def _plan(self, problem: State) -> Plan:
        """Return the plan of a linear or measured subject, as `fedaccord plan` makes it."""
        basis = self.change(problem).basis
        if isinstance(basis, Measurement):
            joined, asked = describe_joined(self.subject.names, problem.like), self.asked(problem)
            return make_plan(basis, probability=asked, time_limit=TIME_LIMIT, assumed=joined)
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

    def _follow(self, state: State, last: Proposal) -> Proposal:
        """Return a plan like the last one at once, which may not be the cheapest."""
        return follow(self.change(state.problem), last, state.concept, time_limit=TIME_LIMIT)

    def check(self, answer: Proposal, state: State) -> Check:
        """Return what the check says of the plan with the numbers that the visitor has set."""
        return answer.check(answer.put(state), self.asked(state), state.keep)

    def asked(self, state: State) -> float:
        """Return the probability that all agents reach their goals, as asked for."""
        return state.probability or self.subject.probability

    def find_payments(self, answer: Proposal, state: State) -> CostShares | None:
        """Return who pays whom for the proposal; None where it has no payments."""
        kept = not state.give and not state.cut and not answer.find_broken(state)
        paid = state.plan == "payments" and kept and answer.contributions is not None
        return self.share(state.problem) if paid and answer.settled else None

    def solve_each(self, state: State) -> SolvedGame:
        """Return the optimal, the stable and the envy-free plan of the game that is saved."""
        answer, game = self.need_answer(state)
        saved = answer.find_game(answer.put(state), state.keep) or game
        return solve_all(saved, time_limit=TIME_LIMIT)

    def _share(self, problem: State) -> CostShares:
        """Return who pays whom for the cheapest plan."""
        from fedaccord.sharing.share import share_held_costs

        answer, game = self.need_answer(problem.put(plan="payments"))
        minimums, _ = list_bounds(self.change(problem.put(lock=())).basis)
        held = answer.contributions if problem.lock else None
        return share_held_costs(_need_linear(game), held, minimums, time_limit=TIME_LIMIT)

    def find_coalitions(self, state: State) -> Coalitions:
        """Return who should federate with whom."""
        from fedaccord.coalitions.find import find_coalitions

        return find_coalitions(_need_linear(self.need_game(state)), time_limit=TIME_LIMIT)

    def need_game(self, state: State) -> Game:
        """Return the game of a plan, or raise an UnreachableError where there is no plan."""
        return self.need_answer(state)[1]

    def need_answer(self, state: State) -> tuple[Proposal, Game]:
        """Return a plan and its game, or raise an UnreachableError where there is no plan."""
        answer = self.known(state) or self.answer(state)
        # Of pilots, a plan decides the margins; without it there is no game to solve.
        measured = isinstance(self.subject.basis, Measurement)
        if answer.game is None or (measured and answer.contributions is None):
            said = " ".join(answer.said).rstrip(".")
            raise UnreachableError(said or "there is no plan to compare")
        return answer, answer.game


def _need_linear(basis: Basis) -> LinearGame:
    if not isinstance(basis, LinearGame):
        raise InputError("this needs a linear or a measured game, and this game is of another kind")
    return basis
