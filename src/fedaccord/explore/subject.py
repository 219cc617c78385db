"""What the app was opened on, and that with a visitor's changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fedaccord._checks import Vector
from fedaccord.errors import InputError
from fedaccord.explore.state import Numbers, State
from fedaccord.games.base import Game
from fedaccord.games.goals import GoalsGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Measurement
from fedaccord.wording import Words

# The probability that is asked for unless the state or the game has another.
PROBABILITY = 0.95
# The README's hospitals: what a case of each is worth to each, and how many each would need alone.
HOSPITALS = ("University", "City", "Rural")
BENEFITS = ((1.0, 0.6, 0.7), (0.6, 1.0, 0.1), (0.7, 0.1, 1.0))
NEEDS = (1440, 1440, 930)


@dataclass(frozen=True, eq=False)
class Subject:
    """What the app was opened on.

    basis: what pilots measured, or a game.
    title: what it is called.
    words: what agents and samples are called.
    files: facts about the files that were read, for pages.
    notes: sentences on how they were read.
    """

    basis: Measurement | Game
    title: str = ""
    words: Words = field(default_factory=Words)
    files: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What the agents of the file are called."""
        return _name_all(self.basis)

    @property
    def is_measured(self) -> bool:
        """Whether it is known how likely agents reach their goals."""
        return has_chances(self.basis)

    @property
    def probability(self) -> float:
        """The probability that is asked for unless the state has another."""
        chances = getattr(self.basis, "chances", None)
        known = None if chances is None else chances.probability
        return PROBABILITY if known is None else known


def open_hospitals() -> Subject:
    """Return the hospitals of the README."""
    game = LinearGame(BENEFITS, NEEDS, agents=HOSPITALS)
    return Subject(game, "Three hospitals", Words("hospital", "case"))


@dataclass(frozen=True, eq=False)
class Problem:
    """What a visitor's changes make of the subject.

    basis: with all changes.
    numbers: of its agents, in order, as the state has them.
    """

    basis: Measurement | Game
    numbers: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the agents are called."""
        return _name_all(self.basis)

    def place(self, values: Vector, numbers: Numbers) -> Vector:
        """Return values, one per agent, with some of them replaced.

        values: as they are.
        numbers: the new ones; those of agents that are not there are passed over.
        """
        found = np.array(values, dtype=float)
        for agent, number in numbers:
            if agent in self.numbers:
                found[self.numbers.index(agent)] = number
        return found


Planner = Callable[[Measurement], LinearGame]


def set_up(subject: Subject, state: State, plan: Planner) -> Problem:
    """Return the subject with a visitor's changes, or raise an InputError.

    subject: what the app was opened on.
    state: what the visitor has set.
    plan: returns the game, with safety margins, that a plan from pilots is made for.
    """
    basis, size = subject.basis, len(subject.names)
    for agent in (*state.like, *(agent for agent in state.left if agent < size)):
        if agent >= size:
            raise InputError(f"there is no agent {agent} in the file; it has {size} agents")
    if isinstance(basis, Measurement) and not state.like:
        return _change_pilots(basis, state)
    # The pilots say nothing of a newcomer: it has the curve, and the margin, of the agent it is
    # like.
    game = plan(basis) if isinstance(basis, Measurement) else basis
    present = [n for n in range(size + len(state.like)) if n not in state.left]
    if not present:
        raise InputError("every agent has left; let one of them come back")
    if state.like or state.left:
        names = name_joined(subject.names, state.like)
        order = [n if n < size else state.like[n - size] for n in present]
        copies = game.replace(agents=None).restrict(order)
        game = copies.replace(agents=[names[n] for n in present])
    return _change_game(Problem(game, tuple(present)), state)


def name_joined(names: Sequence[str], like: Sequence[int]) -> list[str]:
    """Return the names of all agents, those that joined after the others."""
    found = list(names)
    for agent in like:
        number = 2
        while f"{names[agent]} {number}" in found:
            number += 1
        found.append(f"{names[agent]} {number}")
    return found


def _change_pilots(measurement: Measurement, state: State) -> Problem:
    table = measurement.table
    problem = Problem(measurement, tuple(range(table.size)))
    # An agent that wants nothing and has nothing to give is as good as gone.
    gone: Numbers = tuple((agent, 0.0) for agent in state.left)
    limits, minimums = _lock(problem, table.limits, table.minimums, state)
    names = [f"{name} (left)" * (n in state.left) or name for n, name in enumerate(table.agents)]
    changed = replace(
        table,
        agents=tuple(names),
        limits=problem.place(limits, gone),
        minimums=problem.place(minimums, gone),
        costs=problem.place(table.costs, state.cost),
    )
    goals = problem.place(problem.place(table.goals, state.goal), gone)
    return replace(problem, basis=replace(measurement, table=changed).with_goals(goals))


def _change_game(problem: Problem, state: State) -> Problem:
    game = problem.basis
    assert isinstance(game, Game)
    limits, minimums = _lock(problem, game.limits, game.minimums, state)
    changes: dict[str, Vector] = {}
    if isinstance(game, MeasuredGame):
        changes["goals"] = problem.place(game.goals, state.goal)
    elif can_change_goals(game) and state.goal:
        changes["requirements"] = problem.place(game.requirements, state.goal)
    costs = problem.place(game.costs, state.cost)
    return replace(
        problem, basis=game.replace(limits=limits, minimums=minimums, costs=costs, **changes)
    )


def _lock(
    problem: Problem, limits: Vector, minimums: Vector, state: State
) -> tuple[Vector, Vector]:
    """Return limits and minimums; those of a locked agent are its number."""
    limits = problem.place(limits, state.limit)
    minimums = np.minimum(minimums, limits)
    return problem.place(limits, state.lock), problem.place(minimums, state.lock)


def can_change_goals(basis: Measurement | Game) -> bool:
    """Return whether each agent has one goal, which a visitor can change."""
    return not isinstance(basis, GoalsGame)


def has_chances(basis: Measurement | Game) -> bool:
    """Return whether it is known how likely agents reach their goals."""
    return isinstance(basis, Measurement) or getattr(basis, "chances", None) is not None


def frame_of(basis: Measurement | Game) -> dict[str, Vector]:
    """Return the goals, limits and costs of the agents, by the state's names for them."""
    if isinstance(basis, Measurement):
        table = basis.table
        return {"goal": table.goals, "limit": table.limits, "cost": table.costs}
    goals = basis.goals if isinstance(basis, MeasuredGame) else basis.requirements
    return {"goal": goals, "limit": basis.limits, "cost": basis.costs}


def _name_all(basis: Measurement | Game) -> tuple[str, ...]:
    if isinstance(basis, Measurement):
        return basis.agents
    return tuple(basis.name(agent) for agent in range(basis.size))
