"""Changes that restore a plan at the requested probability, each verified by planning with it.

`remedies` finds the changes after which a plan exists on average. A safety margin may take more, so
each of them is enlarged here, step by step, until a plan with the requested probability is found.
It may also take less, since the others then give more: a change that is enough is made smaller.
With a margin there may be a plan where there is none on average, so lower goals of the agents in
the way are tried too. Where no change of one number is enough, all goals that are too high are
lowered together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.games.measured import nearest_goals
from fedaccord.measurement.fit import Measurement
from fedaccord.planning.remedies import Change
from fedaccord.planning.selection import MOST_AGENTS

# This many changes are tried, the smallest first; in larger games one, and as it is.
TRIED = 4
# Goals go down by thousandths, at most this many; limits go up by hundredths of themselves.
THOUSANDTHS, HUNDREDTHS = 256, 1024


@dataclass(frozen=True)
class Reached:
    """What the best plan after a change comes to.

    probability: that all agents reach their goals in one run; 0 where there is no plan.
    total: how many samples the plan takes.
    """

    probability: float
    total: float = math.inf


Attempt = Callable[[Measurement], Reached]


def suggest_goals(
    changes: tuple[Change, ...], measurement: Measurement, blocking: tuple[int, ...]
) -> tuple[Change, ...]:
    """Return lower goals to try, of agents in the way of a plan whose goals no change lowers.

    changes: after which there is a plan on average.
    measurement: what pilots measured.
    blocking: the agents that stay short though they give all they can.
    """
    missed = [one.agent for one in measurement.unreachable]
    # Where several goals are out of reach, no change of a single goal is enough.
    if measurement.table.size > MOST_AGENTS or len(missed) > 1:
        return ()
    lowered = {one.agent for one in changes if one.kind == "goal"}
    nearest = nearest_goals(measurement.benefits, measurement.curves, measurement.table.limits)
    found = []
    for agent in missed or blocking:
        old = float(measurement.goals[agent])
        new = round(math.floor(1000 * (min(float(nearest[agent]), old) - 1e-9)) / 1000, 9)
        if agent not in lowered and 0 < new < old:
            found.append(Change(agent, "goal", old, new, math.inf))
    return tuple(found[:TRIED])


def restore_changes(
    changes: tuple[Change, ...],
    measurement: Measurement,
    attempt: Attempt,
    probability: float,
    *,
    goals: tuple[Change, ...] = (),
) -> tuple[Change, ...]:
    """Return changes after which a plan has a probability, the smallest first; maybe none.

    changes: after which there is a plan on average, the smallest first.
    measurement: what pilots measured.
    attempt: plans from a measurement.
    probability: the one that is requested.
    goals: lower goals to try besides, whether or not there is a plan on average.
    """
    small = measurement.table.size <= MOST_AGENTS
    tried = (*changes[:TRIED], *goals) if small else changes[:1]
    found = [_enlarge(one, measurement, attempt, probability, far=small) for one in tried]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.size))


def rate_changes(
    changes: tuple[Change, ...], measurement: Measurement, attempt: Attempt
) -> tuple[Change, ...]:
    """Return the first change after which there is a plan, with the probability that it has.

    An agent without samples may fall short on average, so a change that is enough on average need
    not lead to a plan. Then none is returned.
    """
    for one in changes[:TRIED]:
        reached = attempt(_apply(measurement, one))
        if math.isfinite(reached.total):
            return (replace(one, total=reached.total, probability=reached.probability),)
    return ()


def lower_together(measurement: Measurement, attempt: Attempt, probability: float) -> Vector | None:
    """Return the highest goals that hold together with a probability; None where none were found.

    A goal becomes what the agent reaches if all give all they can, less what is taken off all
    goals alike, where that is below the goal.

    measurement: what pilots measured.
    attempt: plans from a measurement.
    probability: the one that is requested.
    """
    if measurement.table.size > MOST_AGENTS:
        return None
    most = nearest_goals(measurement.benefits, measurement.curves, measurement.table.limits)

    def lower(step: int) -> Vector:
        goals = np.floor(1000 * (most - 1e-9)) / 1000 - step / 1000
        return np.minimum(measurement.goals, np.round(goals, 9))

    def is_enough(step: int) -> bool:
        goals = lower(step)
        if goals.min() <= 0:
            return False
        return attempt(measurement.with_goals(goals)).probability >= probability

    step = _find_least(is_enough, THOUSANDTHS)
    return None if step is None else frozen(lower(step))


def pick_single(together: Vector, measurement: Measurement, attempt: Attempt) -> Change | None:
    """Return goals that hold together as a change of one goal; None where they lower several.

    together: the goals.
    measurement: what pilots measured.
    attempt: plans from a measurement.
    """
    lower = np.flatnonzero(together < measurement.goals).tolist()
    if len(lower) != 1:
        return None
    agent = lower[0]
    reached = attempt(measurement.with_goals(together))
    old, new = float(measurement.goals[agent]), float(together[agent])
    return Change(agent, "goal", old, new, reached.total, reached.probability)


def _enlarge(
    change: Change, measurement: Measurement, attempt: Attempt, probability: float, *, far: bool
) -> Change | None:
    """Return the change, or a larger or smaller one, after which a plan has a probability."""
    known: dict[int, Reached] = {}

    def is_enough(step: int) -> bool:
        larger = _enlarge_by(change, step)
        if larger is None:
            return False
        known[step] = attempt(_apply(measurement, larger))
        return known[step].probability >= probability

    most = THOUSANDTHS if change.kind == "goal" else HUNDREDTHS
    step = _find_least(is_enough, most if far else 0, _count_back(change) if far else -1)
    larger = None if step is None else _enlarge_by(change, step)
    if step is None or larger is None:
        return None
    return replace(larger, total=known[step].total, probability=known[step].probability)


def _enlarge_by(change: Change, step: int) -> Change | None:
    """Return a change that goes some steps further or back; None where there is nothing further."""
    if step == 0:
        return change
    if change.kind == "limit" and step < 0:
        return replace(change, new=change.new + step)
    if change.kind == "limit":
        return replace(change, new=float(math.ceil(change.new * (1 + step / 100))))
    goal = round((math.floor(change.new * 1000) - step) / 1000, 9)
    return replace(change, new=goal) if goal > 0 else None


def _count_back(change: Change) -> int:
    """Return the step back at which nothing is changed: limits go by ones, goals by thousandths."""
    if change.kind == "limit":
        return -math.ceil(change.new - change.old)
    return math.floor(change.new * 1000) - math.ceil(change.old * 1000 - 1e-9)


def _apply(measurement: Measurement, change: Change) -> Measurement:
    """Return the measurement after a change."""
    if change.kind == "goal":
        return measurement.with_goals({measurement.agents[change.agent]: change.new})
    limits = np.array(measurement.table.limits)
    limits[change.agent] = change.new
    return replace(measurement, table=replace(measurement.table, limits=frozen(limits)))


def _find_least(is_enough: Callable[[int], bool], most: int, least: int = -1) -> int | None:
    """Return the first step that is enough, if later ones are too; None where none was found.

    least: a step that is known not to be enough.
    """
    low, high = least, 0
    while not is_enough(high):
        low, high = high, 2 * high + 1
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
