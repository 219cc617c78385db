"""What stands in the way where there is no plan, and which single change would make one possible.

A change raises one agent's limit, or lowers one agent's goal, and leaves everything else as it is.
Where an equilibrium exists, its contributors S determine it (see `selection`), and

    W_SS x_S = (mu - W low)_S

is linear in the need mu_i of an agent. So in a small game the needs at which S is an equilibrium
are an interval, and the highest goal that leaves a plan is the end of one of them. A higher limit
never destroys an equilibrium: the least that is enough is the least that agent i gives in any
equilibrium without its limit. In larger games a solver is asked along the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fedaccord._checks import Matrix, Vector, round_wide_bounds
from fedaccord.games.linear import LinearGame
from fedaccord.games.measured import MeasuredGame, find_needs, predict_accuracies
from fedaccord.planning.selection import (
    FINE,
    MOST_AGENTS,
    list_equilibria,
    settle_within,
    solve_sets,
)

if TYPE_CHECKING:
    from fedaccord.measurement.fit import Measurement

Kind: TypeAlias = Literal["limit", "goal", "requirement"]

# Up to this many agents changes are looked for; and this often the distance to one is halved.
MOST_SEARCHED = 40
HALVINGS = 10
# Without pilots and limits, nothing is tried beyond this many times the largest need.
FARTHEST = 100.0
# What a need may be off by, relative to the largest.
SLACK = 1e-9
# A need this near to a whole number is meant to be it; a solver decides whether it is.
ROUND = 1e-6


@dataclass(frozen=True)
class Change:
    """A change of one number that makes a plan possible.

    agent: the place of the agent.
    kind: what changes: its limit, its goal, or its requirement where it has no goal.
    old, new: from what to what.
    total: how many samples the plan then takes; without a safety margin where the probability
        is not known.
    probability: that all agents then reach their goals in one run; None where it is not known.
    """

    agent: int
    kind: Kind
    old: float
    new: float
    total: float
    probability: float | None = None

    @property
    def size(self) -> float:
        """How large the change is: relative to the limit, the error a goal leaves, or the need."""
        base = 1 - self.old if self.kind == "goal" else self.old
        return abs(self.new - self.old) / base

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        known = {name: value for name, value in vars(self).items() if value is not None}
        return {**known, "size": self.size}


@dataclass(frozen=True, eq=False)
class Impasse:
    """A game without a plan, in which a need may be out of reach altogether.

    benefits: W, k x k.
    needs: effective samples, infinite where no data reach the goal.
    minimums, limits, costs: of each agent.
    curves, goals: of agents that want accuracies; None of others.
    margins: what the needs are above the goals, in accuracies; it stays if a goal changes.
    most: effective samples beyond which nothing is known of each agent's curve.
    patient: whether agents that have nothing to give may fall short on average, as in plans from
        pilots, where margins can be wide enough for them.
    """

    benefits: Matrix
    needs: Vector
    minimums: Vector
    limits: Vector
    costs: Vector
    curves: Matrix | None = None
    goals: Vector | None = None
    margins: Vector | float = 0.0
    most: Vector | None = None
    patient: bool = False

    @classmethod
    def of(cls, subject: Measurement | LinearGame, most: Vector | None = None) -> Impasse:
        """Return the game of what was planned from, in whole samples, goals out of reach and all.

        subject: what pilots measured, or a game.
        most: effective samples beyond which nothing is known of each agent's curve.
        """
        box: Any = subject
        curves: Matrix | None = None
        goals: Vector | None = None
        margins: Vector | float = 0.0
        if isinstance(subject, LinearGame):
            benefits, needs = subject.dense_benefits, subject.requirements
            if isinstance(subject, MeasuredGame):
                curves, goals, margins = subject.rows, subject.goals, subject.margins
        else:
            box, benefits = subject.table, subject.benefits
            curves, goals = subject.curves, subject.goals
            needs = find_needs(curves, goals)
        minimums, limits = round_wide_bounds(box.minimums, box.limits)
        patient = not isinstance(subject, LinearGame)
        wants = (curves, goals, margins)
        return cls(benefits, needs, minimums, limits, box.costs, *wants, most, patient)

    @property
    def binding(self) -> Vector:
        """The needs that a plan must meet."""
        return np.where(self.patient & (self.limits == 0), 0.0, self.needs)

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self.needs)

    def solve(self, time_limit: float) -> Vector | None:
        """Return the cheapest stable plan; None where there is none, or none was found."""
        from fedaccord.equilibria.solve import solve_stable

        if not np.isfinite(self.needs).all():
            return None
        frame = {"minimums": self.minimums, "limits": self.limits, "costs": self.costs}
        game = LinearGame(self.benefits, self.binding, **frame)
        return solve_stable(game, time_limit=time_limit).contributions

    def with_limit(self, agent: int, limit: float) -> Impasse:
        """Return the game in which an agent has another limit."""
        limits = np.array(self.limits)
        limits[agent] = limit
        return replace(self, limits=limits)

    def with_need(self, agent: int, need: float) -> Impasse:
        """Return the game in which an agent needs something else."""
        needs = np.array(self.needs)
        needs[agent] = need
        return replace(self, needs=needs)


def find_blocking(game: Impasse) -> tuple[int, ...]:
    """Return the agents that stay short though they give all they can.

    Best response comes to rest where these give their limits and all others what they need.
    """
    if not (np.isfinite(game.needs) | np.isfinite(game.limits)).all():
        return tuple(np.flatnonzero(np.isinf(game.needs)).tolist())
    box = (game.minimums, game.limits)
    given = settle_within(game.benefits, game.binding, *box, game.minimums)
    if given is None:
        return ()
    short = game.benefits @ given < game.binding * (1 - SLACK)
    short &= given >= game.limits * (1 - SLACK)
    return tuple(np.flatnonzero(short).tolist())


def find_changes(game: Impasse, *, time_limit: float) -> tuple[Change, ...]:
    """Return the single changes that make a plan possible, the smallest first.

    game: without a plan.
    time_limit: seconds for each solver.
    """
    if game.size > MOST_SEARCHED:
        return ()
    found = [
        *(_raise_limit(game, agent, time_limit) for agent in range(game.size)),
        *(_lower_need(game, agent, time_limit) for agent in range(game.size)),
    ]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.size))


# A higher limit.


def _raise_limit(game: Impasse, agent: int, time_limit: float) -> Change | None:
    old = float(game.limits[agent])
    # An agent without samples has none to give, whatever its limit is called.
    if not 0 < old < math.inf or not np.isfinite(game.needs).all():
        return None
    free = game.with_limit(agent, math.inf)
    if game.size <= MOST_AGENTS:
        rows = list_equilibria(free.benefits, free.binding, free.minimums, free.limits)
        if not len(rows):
            return None
        enough = float(rows[:, agent].min())
    else:
        given = free.solve(time_limit)
        if given is None:
            return None
        enough = _halve_limit(game, agent, float(given[agent]), time_limit)
    new = float(math.ceil(enough - SLACK * max(enough, 1.0)))
    given = game.with_limit(agent, new).solve(time_limit) if new > old else None
    return None if given is None else Change(agent, "limit", old, new, float(given.sum()))


def _halve_limit(game: Impasse, agent: int, enough: float, time_limit: float) -> float:
    low = float(game.limits[agent])
    for _ in range(HALVINGS):
        if enough - low <= 1:
            break
        middle = (low + enough) / 2
        given = game.with_limit(agent, middle).solve(time_limit)
        low, enough = (middle, enough) if given is None else (low, float(given[agent]))
    return enough


# A lower goal.


def _lower_need(game: Impasse, agent: int, time_limit: float) -> Change | None:
    others = np.delete(game.needs, agent)
    need: float | None
    if not np.isfinite(others).all() or game.needs[agent] <= 0:
        return None
    if game.patient and game.limits[agent] == 0:
        need = _find_most(game, agent) if game.needs[agent] > _find_most(game, agent) else None
    elif game.size <= MOST_AGENTS:
        need = _find_highest_need(game, agent)
    else:
        need = _halve_need(game, agent, time_limit)
    if need is None:
        return None
    for change, reached in _round_down(game, agent, need):
        given = game.with_need(agent, reached).solve(time_limit)
        if given is not None:
            return replace(change, total=float(given.sum()))
    return None


def _find_highest_need(game: Impasse, agent: int) -> float | None:
    """Return the most that an agent may need, below what it does, for there to be an equilibrium.

    For each set of contributors every condition is linear in the need: it holds on one side of
    where its line crosses zero.
    """
    highest: float | None = None
    unit = float(np.max(game.needs[np.isfinite(game.needs)], initial=1.0))
    top = min(float(game.needs[agent]), _find_most(game, agent))
    for size in range(game.size + 1):
        sets = np.array(list(combinations(range(game.size), size)), dtype=np.intp)
        at_zero, at_unit = (
            _measure_conditions(game.with_need(agent, need), sets) for need in (0.0, unit)
        )
        slope = (at_unit - at_zero) / unit
        ends = _find_ends(at_zero, slope, top)
        if ends.size and (highest is None or ends.max() > highest):
            highest = float(ends.max())
    return highest


def _find_most(game: Impasse, agent: int) -> float:
    """Return what an agent would have if all gave their limits, as far as its curve is known."""
    with np.errstate(invalid="ignore"):
        worth = np.where(game.benefits[agent] > 0, game.benefits[agent] * game.limits, 0.0)
    if game.most is not None:
        return min(float(worth.sum()), float(game.most[agent]))
    if np.isfinite(worth).all():
        return float(worth.sum())
    return FARTHEST * float(np.max(game.needs[np.isfinite(game.needs)], initial=1.0))


def _measure_conditions(game: Impasse, sets: Any) -> Matrix:
    """Return by how much each condition of an equilibrium holds, one row a set of contributors.

    Each contributor gives something, nobody more than its limit, and everybody has what it needs.
    """
    left = game.binding - game.benefits @ game.minimums
    kept, extra = solve_sets(game.benefits, left, sets)
    given = np.tile(game.minimums, (len(kept), 1))
    np.put_along_axis(given, kept, np.take_along_axis(given, kept, axis=1) + extra, axis=1)
    slack = given @ game.benefits.T - game.binding
    # Contributors have exactly what they need, but for rounding.
    np.put_along_axis(slack, kept, 0.0, axis=1)
    bounded = np.isfinite(game.limits)
    return np.concatenate([extra, slack, (game.limits - given)[:, bounded]], axis=1)


def _find_ends(at_zero: Matrix, slope: Matrix, top: float) -> Vector:
    """Return the ends of the intervals of needs in which all conditions hold, where not empty."""
    scale = FINE * max(top, 1.0)
    flat = np.abs(slope) <= 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(flat, 0.0, -at_zero / slope)
    impossible = (flat & (at_zero < -scale)).any(axis=1)
    low = np.where(~flat & (slope > 0), crossing, 0.0).max(axis=1, initial=0.0)
    high = np.where(~flat & (slope < 0), crossing, top).min(axis=1, initial=top)
    return np.asarray(high[~impossible & (high >= low - scale) & (high >= 0)])


def _halve_need(game: Impasse, agent: int, time_limit: float) -> float | None:
    """Look for a need as high as may be, from what the agent has at rest; None where it is met."""
    if agent not in find_blocking(game):
        return None
    given = settle_within(game.benefits, game.needs, game.minimums, game.limits, game.minimums)
    if given is None:
        return None
    low = float(game.benefits[agent] @ given) * (1 - SLACK)
    high = min(float(game.needs[agent]), _find_most(game, agent))
    if game.with_need(agent, low).solve(time_limit) is None:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        known = game.with_need(agent, middle).solve(time_limit)
        low, high = (low, middle) if known is None else (middle, high)
    return low


def _round_down(game: Impasse, agent: int, need: float) -> Iterator[tuple[Change, float]]:
    """Return the change to a need, and the need itself, from round numbers to all digits."""
    if game.curves is None or game.goals is None:
        old = float(game.needs[agent])
        for new in (math.floor(need * (1 + ROUND)), need * (1 - SLACK)):
            yield Change(agent, "requirement", old, float(new), 0.0), float(new)
        return
    curve, old = game.curves[agent], float(game.goals[agent])
    margin = float(np.broadcast_to(game.margins, game.goals.shape)[agent])
    best = float(predict_accuracies(curve[None], np.array([need]))[0]) - margin
    for digits in (1e2, 1e3, 1e4, 1e9):
        goal = math.floor(best * digits * (1 + SLACK)) / digits
        # A hundredth is worth a thousandth or two less than could be kept, and no more.
        if 0 < goal < old and (digits > 1e2 or best - goal < 0.002):
            reached = float(find_needs(curve[None], np.array([goal + margin]))[0])
            yield Change(agent, "goal", old, goal, 0.0), reached
