"""From a state to a plan: the functions of the command line, called with a visitor's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fedaccord._checks import Vector
from fedaccord.check import Check, check
from fedaccord.check.decide import count_whole
from fedaccord.equilibria.solve import solve_all, solve_envy_free, solve_optimal, solve_stable
from fedaccord.equilibria.whole import has_whole_samples, round_to_samples
from fedaccord.errors import InputError, UnreachableError
from fedaccord.explore.state import State
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.plan import make_plan
from fedaccord.planning.result import Plan
from fedaccord.planning.what_if import (
    Basis,
    Changed,
    adopt_margins,
    apply_scenario,
    counts_whole,
    follow_plan,
    has_chances,
    list_frame,
    name_agents,
)
from fedaccord.wording import Words

if TYPE_CHECKING:
    from fedaccord.coalitions.result import Coalitions
    from fedaccord.equilibria.result import Solution, SolvedGame
    from fedaccord.planning.kept import KeptPlan
    from fedaccord.sharing.result import CostShares

# Seconds for each solver: in a meeting, a good plan now is worth more than the best one later.
TIME_LIMIT = 5.0
# How many answers are kept, since visitors go back and forth.
KEPT = 256
SOLVERS = {"stable": solve_stable, "optimal": solve_optimal, "envy-free": solve_envy_free}
# The probability that is asked for unless the state or the game has another.
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
        """The probability that is asked for unless the state has another."""
        chances = getattr(self.basis, "chances", None)
        return getattr(chances, "probability", None) or PROBABILITY


def open_hospitals() -> Subject:
    """Return the hospitals of the README: the worth of a case of each to each, and their needs."""
    benefits = [[1.0, 0.6, 0.7], [0.6, 1.0, 0.1], [0.7, 0.1, 1.0]]
    game = LinearGame(benefits, [1440, 1440, 930], agents=["University", "City", "Rural"])
    return Subject(game, "Three hospitals", Words("hospital", "case"))


@dataclass(frozen=True, eq=False)
class Answer:
    """The plan for a state.

    changed: what was planned for.
    game: what the plan is for: with safety margins, if it is from pilots; None if a goal is too
        high for any.
    contributions: what each agent gives; None where there is no plan.
    said: why there is none, or what is not proved, in a sentence; else nothing.
    plan: if it was made by planning, as pilots are.
    optimal: the least total that satisfies all agents; None where it was not looked for.
    settled: whether this is the plan that was asked for, and not one on the way to it.
    """

    changed: Changed
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
        limits = list_frame(self.changed.basis)["limit"]
        alone = np.zeros(len(limits)) if self.game is None else self.game.alone
        return np.minimum(np.where(np.isfinite(alone), alone, 0.0), limits)

    def propose(self, state: State) -> Vector:
        """Return the proposal: the plan with the contributions that the visitor has set."""
        given = self.changed.place(self.start, state.give)
        reduced = given * self.changed.place(np.ones(len(given)), state.cut)
        return np.floor(reduced) if counts_whole(self.changed.basis) else reduced


class Desk:
    """Answers for one subject; those of late are kept.

    subject: what the app was opened on.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        # By what decides them: a slider that moves a contribution solves nothing again.
        self.change = lru_cache(KEPT)(self._change)
        self.plan = lru_cache(KEPT)(self._plan)
        self._answers: dict[State, Answer] = {}

    def known(self, state: State) -> Answer | None:
        """Return the answer to a state if it was found before."""
        return self._answers.get(state.problem)

    def answer(self, state: State) -> Answer:
        """Return the plan for a state; it may take seconds."""
        found = self.known(state) or self._answer(state.problem)
        if len(self._answers) >= KEPT:
            self._answers.clear()
        self._answers[state.problem] = found
        return found

    def _change(self, problem: State) -> Changed:
        before = replace(problem, like=(), left=(), plan="stable")

        def find_margins(_: Measurement) -> LinearGame:
            plan = self.plan(before)
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

    def _answer(self, problem: State) -> Answer:
        changed, number = self.change(problem), problem.equilibrium
        basis = changed.basis
        if isinstance(basis, Game) and not has_chances(basis) and number is None:
            return _solve(changed, basis, problem.plan)
        plan = self.plan(problem.stable)
        if plan.contributions is None:
            return Answer(changed, plan.bare, None, plan.verdict, plan)
        if number is None and problem.plan != "stable":
            return replace(_solve(changed, plan.game, problem.plan), plan=plan)
        given = plan.contributions
        if number is not None:
            if number >= len(plan.tradeoffs):
                raise InputError(f"there is no stable plan {problem.plan}; choose another")
            given = plan.tradeoffs[number].contributions
            given = round_to_samples(plan.game, given) if counts_whole(basis) else given
        optimal = solve_optimal(plan.game, time_limit=TIME_LIMIT).total
        return Answer(changed, plan.game, given, plan=plan, optimal=optimal)

    def follow(self, state: State, last: Answer) -> Answer:
        """Return an answer within milliseconds: a plan like the last one, or its numbers.

        The check of the proposal is as thorough as ever; only the plan may not be the cheapest.

        state: the new one.
        last: the answer to the state before.
        """
        changed = self.change(state.problem)
        game = adopt_margins(changed.basis, last.game)
        answer = Answer(changed, game, None, settled=False)
        if isinstance(game, LinearGame) and state.plan in ("optimal", "payments"):
            return replace(_solve(changed, game, state.plan), settled=False)
        if len(last.start) != len(changed.names):
            return answer
        given = follow_plan(game, last.start) if state.plan == "stable" else last.start
        given = np.minimum(given, list_frame(changed.basis)["limit"])
        optimal = None
        if isinstance(game, LinearGame):
            optimal = solve_optimal(game, time_limit=TIME_LIMIT).total
        return replace(answer, contributions=given, optimal=optimal)

    # What is asked of the proposal.

    def check(self, answer: Answer, state: State) -> Check:
        """Return what the check, which trusts no solver, says of the proposal."""
        basis, given = answer.changed.basis, answer.propose(state)
        if isinstance(basis, Game) and not has_chances(basis):
            return check(basis, given)
        if isinstance(basis, MeasuredGame):
            basis = count_whole(basis.replace(margins=None))
        plan = answer.plan
        if not answer.settled or plan is None:
            plan = None if answer.game is None else answer  # type: ignore[assignment]
        asked = state.probability or self.subject.probability
        return check(basis, given, plan=plan, probability=asked)

    def solve_each(self, state: State) -> SolvedGame:
        """Return the optimal, the stable and the envy-free plan."""
        return solve_all(self.need_game(state), time_limit=TIME_LIMIT)

    def share(self, state: State) -> CostShares:
        """Return who pays whom for the cheapest plan."""
        from fedaccord.sharing.share import share_costs

        return share_costs(_need_linear(self.need_game(state)), time_limit=TIME_LIMIT)

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
        answer = self.answer(state)
        if answer.game is None or (answer.plan is not None and answer.plan.contributions is None):
            raise UnreachableError(answer.said.rstrip(".") or "there is no plan to compare")
        return answer.game


def _solve(changed: Changed, game: Game, plan: str) -> Answer:
    """Solve a game for the concept that the visitor chose."""
    concept = "optimal" if plan == "payments" else plan
    found = SOLVERS[concept](game, time_limit=TIME_LIMIT)
    optimal = found if concept == "optimal" else solve_optimal(game, time_limit=TIME_LIMIT)
    given = found.contributions
    if given is not None and isinstance(game, LinearGame) and has_whole_samples(game):
        given = round_to_samples(game, given)
    return Answer(changed, game, given, _explain(found), optimal=optimal.total)


def _explain(found: Solution) -> str:
    """Return why there is no plan, or what is not proved of it; nothing where all is proved."""
    if found.contributions is not None and found.status.key == "optimal":
        return ""
    return " ".join(filter(None, (found.status.value, found.note)))


def _need_linear(basis: Basis) -> LinearGame:
    if not isinstance(basis, LinearGame):
        raise InputError("this needs a linear or a measured game, and this game is of another kind")
    return basis
