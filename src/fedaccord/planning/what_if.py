"""What if: a game, or what pilots measured, with other numbers and other members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from fedaccord._checks import TIDY, Vector, round_bounds
from fedaccord.check.decide import LOWER, describe_excess
from fedaccord.equilibria.whole import has_whole_samples, round_box, round_up
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import Game
from fedaccord.games.goals import GoalsGame
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.selection import continue_equilibria

Basis: TypeAlias = Measurement | Game
# Numbers of some agents, by the agent's place in the file.
Numbers: TypeAlias = tuple[tuple[int, float], ...]
# Contributions that differ by this part of them are the same.
TIE = 1e-6


@dataclass(frozen=True)
class Scenario:
    """Changes to a game, or to what pilots measured; and what agents do that do not keep a plan.

    goal, limit, cost: in place of the file's. A limit that is infinite is none. Of a game without
        accuracies, goals are its requirements.
    lock: contributions that a plan must keep: these agents give neither more nor less.
    left: agents that left.
    like: agents that joined, each with data like those of an agent; they are numbered after the
        agents of the file.
    give: contributions in place of the plan's.
    cut: the part of its contribution that an agent gives.
    keep: what a sample is worth to an agent that keeps it.
    only: the agent on which an agent's contribution depends: if that one gives less than the plan
        asks, or leaves, this one gives nothing.
    """

    goal: Numbers = ()
    limit: Numbers = ()
    cost: Numbers = ()
    lock: Numbers = ()
    left: tuple[int, ...] = ()
    like: tuple[int, ...] = ()
    give: Numbers = ()
    cut: Numbers = ()
    keep: Numbers = ()
    only: Numbers = ()

    @property
    def replaces(self) -> bool:
        """Whether agents give other numbers than the plan's."""
        return bool(self.give or self.cut)

    @property
    def is_bound(self) -> bool:
        """Whether contributions are locked, or limits changed."""
        return bool(self.lock or self.limit)


@dataclass(frozen=True, eq=False)
class Changed:
    """A game, or what pilots measured, with the changes of a scenario.

    basis: with all changes.
    numbers: of its agents, in order, as the scenario has them.
    scenario: the changes.
    every: what all agents are called, those that left among them.
    unlocked: the limits of its agents as they are without locks; None for those of the basis.
    """

    basis: Basis
    numbers: tuple[int, ...]
    scenario: Scenario = field(default_factory=Scenario)
    every: tuple[str, ...] = ()
    unlocked: Vector | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the agents are called."""
        return name_agents(self.basis)

    @property
    def gone(self) -> list[str]:
        """What the agents are called that left."""
        return [self.every[n] for n in self.scenario.left if n < len(self.every)]

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

    def find(self, numbers: Numbers) -> tuple[int, ...]:
        """Return the places of the agents that have a number, in order."""
        known = dict(numbers)
        return tuple(place for place, agent in enumerate(self.numbers) if agent in known)

    def find_broken(self, given: Vector, asked: Vector, only: Numbers) -> dict[int, int]:
        """Return the places of agents that give nothing because another gives too little.

        The value is the number of that other agent. An agent that gives nothing may in turn be one
        on which others depend.

        given: what each agent would give.
        asked: what the plan asks of each.
        only: on which agent the contribution of an agent depends.
        """
        left, broken = np.array(given, dtype=float), dict[int, int]()
        depends = {place: int(dict(only)[self.numbers[place]]) for place in self.find(only)}
        while True:
            lacking = {
                agent
                for agent, has, wants in zip(self.numbers, left, asked, strict=True)
                if has < wants - TIE * max(1.0, wants)
            }
            new = {
                place: other
                for place, other in depends.items()
                if left[place] > 0 and (other in lacking or other not in self.numbers)
            }
            if not new:
                return dict(sorted(broken.items()))
            broken |= new
            left[list(new)] = 0.0


def apply_scenario(basis: Basis, scenario: Scenario) -> Changed:
    """Return a game, or what pilots measured, with changes; or raise an InputError.

    basis: as it is.
    scenario: the changes.
    """
    if isinstance(basis, Measurement) and (scenario.left or scenario.like):
        from fedaccord.planning.members import change_members

        return change_members(basis, scenario)
    names = name_agents(basis)
    changed = _apply(basis, names, scenario)
    every = tuple(name_joined(names, scenario.like))
    # One that joined has the limit of the agent that it is like.
    order = [n if n < len(names) else scenario.like[n - len(names)] for n in changed.numbers]
    unlocked = changed.place(list_frame(basis)["limit"][order], scenario.limit)
    return replace(changed, scenario=scenario, every=every, unlocked=unlocked)


def _apply(basis: Basis, names: Sequence[str], scenario: Scenario) -> Changed:
    if isinstance(basis, Measurement):
        return Changed(_change_measurement(basis, scenario), tuple(range(len(names))))
    present, game = list_present(len(names), scenario), basis
    if scenario.like or scenario.left:
        every = name_joined(names, scenario.like)
        order = [n if n < len(names) else scenario.like[n - len(names)] for n in present]
        # An agent that is like another has its rows and columns; only names must differ.
        unnamed = game.replace(agents=None).restrict(order)
        game = unnamed.replace(agents=[every[n] for n in present])
    return _change_game(Changed(game, tuple(present)), game, scenario)


def list_present(size: int, scenario: Scenario) -> list[int]:
    """Return the numbers of the agents that take part, or raise an InputError.

    size: how many agents the file has.
    scenario: who left, and who joined.
    """
    if unknown := [agent for agent in scenario.like if agent >= size]:
        raise InputError(f"there is no agent {unknown[0]} to be like; there are {size} agents")
    present = [n for n in range(size + len(scenario.like)) if n not in scenario.left]
    if not present:
        raise InputError("every agent has left; let one of them come back")
    return present


def name_agents(basis: Basis) -> tuple[str, ...]:
    """Return what the agents are called."""
    if isinstance(basis, Measurement):
        return basis.agents
    return tuple(basis.name(agent) for agent in range(basis.size))


def name_joined(names: Sequence[str], like: Sequence[int]) -> list[str]:
    """Return the names of all agents, those that joined after the others."""
    found = list(names)
    for agent in like:
        number = 2
        while f"{names[agent]} {number}" in found:
            number += 1
        found.append(f"{names[agent]} {number}")
    return found


def _change_measurement(measurement: Measurement, scenario: Scenario) -> Measurement:
    table = measurement.table
    changed = Changed(measurement, tuple(range(table.size)))
    limits, minimums = _lock(changed, table.limits, table.minimums, scenario)
    costs = changed.place(table.costs, scenario.cost)
    other = replace(table, limits=limits, minimums=minimums, costs=costs)
    goals = changed.place(table.goals, scenario.goal)
    return replace(measurement, table=other).with_goals(goals)


def _change_game(changed: Changed, game: Game, scenario: Scenario) -> Changed:
    limits, minimums = _lock(changed, game.limits, game.minimums, scenario)
    wanted: dict[str, Vector] = {}
    if isinstance(game, MeasuredGame):
        wanted["goals"] = changed.place(game.goals, scenario.goal)
    elif scenario.goal and can_change_goals(game):
        wanted["requirements"] = changed.place(game.requirements, scenario.goal)
    costs = changed.place(game.costs, scenario.cost)
    other = game.replace(limits=limits, minimums=minimums, costs=costs, **wanted)
    return replace(changed, basis=other)


def _lock(
    changed: Changed, limits: Vector, minimums: Vector, scenario: Scenario
) -> tuple[Vector, Vector]:
    """Return limits and minimums; those of a locked agent are its number, whole where samples are.

    A part of a sample cannot be given, so it is left out, as it is of other contributions.
    """
    limits = changed.place(limits, scenario.limit)
    minimums = np.minimum(minimums, limits)
    lock = scenario.lock
    for place in changed.find(lock):
        number = dict(lock)[changed.numbers[place]]
        if number > limits[place]:
            excess = describe_excess(changed.names[place], number, float(limits[place]))
            raise InputError(f"{excess}: {LOWER}")
    if counts_whole(changed.basis):
        lock = tuple((agent, float(np.floor(number + TIDY))) for agent, number in lock)
    return changed.place(limits, lock), changed.place(minimums, lock)


# What can be asked of either kind of basis.


def can_change_goals(basis: Basis) -> bool:
    """Return whether each agent has one goal, which a scenario can change."""
    return not isinstance(basis, GoalsGame)


def has_accuracies(basis: Basis) -> bool:
    """Return whether goals are accuracies."""
    return isinstance(basis, Measurement | MeasuredGame)


def has_chances(basis: Basis) -> bool:
    """Return whether it is known how likely agents are to reach their goals."""
    return isinstance(basis, Measurement) or getattr(basis, "chances", None) is not None


def counts_whole(basis: Basis) -> bool:
    """Return whether agents give whole samples."""
    return isinstance(basis, Measurement) or has_whole_samples(basis)


def list_frame(basis: Basis) -> dict[str, Vector]:
    """Return the goals, limits and costs of the agents, by a scenario's names for them."""
    if isinstance(basis, Measurement):
        table = basis.table
        return {"goal": table.goals, "limit": table.limits, "cost": table.costs}
    goals = basis.goals if isinstance(basis, MeasuredGame) else basis.requirements
    return {"goal": goals, "limit": basis.limits, "cost": basis.costs}


def list_bounds(basis: Basis) -> tuple[Vector, Vector]:
    """Return the least and the most that agents can give, in whole samples where they are whole."""
    box = basis.table if isinstance(basis, Measurement) else basis
    if not counts_whole(basis):
        return box.minimums, box.limits
    return round_bounds(box.minimums, box.limits)


# A plan at once, while a better one is looked for.


def adopt_margins(basis: Basis, other: Game | None) -> Game | None:
    """Return the game of a basis, with the safety margins of another; None if a goal is too high.

    basis: to be planned for.
    other: a game of as many agents, with margins if there are pilots.
    """
    margins = getattr(other, "margins", None)
    try:
        game = basis.game if isinstance(basis, Measurement) else basis
        if isinstance(game, MeasuredGame) and margins is not None and len(margins) == game.size:
            return game.replace(margins=margins)
    except UnreachableError:
        return None
    return game


def follow_plan(game: Game | None, given: Vector) -> Vector:
    """Return a stable plan like an earlier one, within milliseconds; the earlier one if none is.

    It need not be the cheapest.

    game: which differs a little from that of the earlier plan.
    given: the earlier plan.
    """
    if not isinstance(game, LinearGame):
        return given
    found = continue_equilibria(round_box(game), given[None])
    if found is None:
        return given
    near: Vector = found.contributions[0]
    return round_up(near) if has_whole_samples(game) else near
