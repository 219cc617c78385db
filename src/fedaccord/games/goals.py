"""Agents with several goals each, such as a sensitivity and a specificity."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import (
    Indices,
    Matrix,
    Vector,
    as_numbers,
    as_plain,
    check_finite,
    check_real,
    find_closest,
    frozen,
    is_whole,
)
from fedaccord._measures import MEASURES as MEASURES
from fedaccord._measures import Measure as Measure
from fedaccord._measures import read_measure as read_measure
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import Game
from fedaccord.games.measured import PARTS, ROUNDING, LearningCurve, MeasuredGame
from fedaccord.games.rows import RowGame


@dataclass(frozen=True)
class LossCurve:
    """A power law with a floor of a measure that falls, in effective samples n.

        loss(n) = floor + height * (head + n)^(-pace)

    floor: the loss that no amount of data takes away.
    height, head, pace: as of a LearningCurve.
    """

    floor: float
    height: float
    head: float
    pace: float

    def __post_init__(self) -> None:
        for name in PARTS:
            value = as_plain(getattr(self, name))
            above = 0.0 if name in ("height", "pace") else None
            value = check_real(f"the {name} of a loss curve", value, above=above, least=0.0)
            object.__setattr__(self, name, value)

    @property
    def best(self) -> float:
        """The loss that an agent approaches with more and more data."""
        return self.floor

    def loss(self, samples: ArrayLike) -> Any:
        """Return the loss at a number of effective samples, or at an array of them."""
        amount = self.head + np.asarray(samples, dtype=float)
        with np.errstate(divide="ignore", over="ignore"):
            return (self.floor + self.height * amount**-self.pace)[()]

    def need(self, goal: float) -> float:
        """Return the least effective samples that bring the loss down to a goal; inf if none do."""
        with np.errstate(divide="ignore", over="ignore"):
            total = np.float64(max(goal - self.floor, 0.0) / self.height) ** (-1 / self.pace)
        return float(total - self.head) if total - self.head > ROUNDING * self.head else 0.0

    def to_dict(self) -> dict[str, float]:
        """Return the curve as GAME.json holds it."""
        return {name: getattr(self, name) for name in PARTS}


Curve: TypeAlias = LearningCurve | LossCurve


@dataclass(frozen=True, eq=False)
class Goal:
    """What an agent wants of one measure.

        sum_j benefits_j theta_j >= requirement

    Give the requirement in effective samples, or give a measure, `at_least` or `at_most` in its
    units, and the curve of the measure: the requirement is then what reaches the goal on the curve.

    agent: whose goal it is, by name or number.
    name: what it is called, such as "sensitivity, over 75".
    benefits: what one sample of each agent adds to the goal; below zero where it harms.
    requirement: the effective samples that reach the goal.
    measure: one of MEASURES, if it is one.
    at_least: the goal, of a measure that rises with data.
    at_most: the goal, of a measure that falls with data.
    curve: a LearningCurve of a measure that rises, a LossCurve of one that falls.
    margin: the safety margin that `at_least` or `at_most` includes. GAME.json does not hold it.
    """

    agent: str | int
    name: str
    benefits: Vector
    requirement: float | None = None
    measure: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    curve: Curve | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        if not str(self.name).strip():
            raise InputError(f"a goal of {self.agent} has no name: give it one")
        for field in ("requirement", "at_least", "at_most"):
            if (value := getattr(self, field)) is not None:
                value = check_real(f'the "{field}" of {self.title}', value)
                object.__setattr__(self, field, value)
        row = as_numbers(self.benefits, f"the benefits of {self.title}")
        if row.ndim != 1:
            raise InputError(f"the benefits of {self.title} must be one list; got {row.shape}")
        check_finite(np.abs(row), "the benefit", lambda j: f"agent {j} to {self.title}")
        object.__setattr__(self, "benefits", frozen(row))
        if self.measure is not None:
            object.__setattr__(self, "measure", read_measure(self.measure, self.title))
        self._check_wish()

    @property
    def title(self) -> str:
        """What the goal is called in messages."""
        whom = f"agent {self.agent}" if is_whole(self.agent) else str(self.agent)
        return f'the goal "{self.name}" of {whom}'

    def _check_wish(self) -> None:
        """Refuse a goal that is empty, given twice, or outside the range of its measure."""
        title = self.title
        given = [n for n in ("requirement", "at_least", "at_most") if getattr(self, n) is not None]
        if not given:
            raise InputError(
                f'{title} is empty: give its "requirement" in effective samples, or a measure '
                'with "at_least" or "at_most" and its curve'
            )
        if len(given) > 1:
            pair = " and ".join(f'"{name}"' for name in given)
            raise InputError(f"{title} has both {pair}: give one of them")
        if self.requirement is not None:
            if self.requirement < 0:
                raise InputError(f"{title} has a negative requirement: give zero or more")
            if self.curve is not None:
                raise InputError(f"{title} has a requirement and a curve: give one of them")
            return
        if self.measure is None:
            raise InputError(f"{title} names no measure: give one of {', '.join(MEASURES)}")
        self._check_target(MEASURES[self.measure])

    def _check_target(self, measure: Measure) -> None:
        title, target = self.title, self.target
        wanted, other = ("at_least", "at_most") if measure.rises else ("at_most", "at_least")
        way = "rises" if measure.rises else "falls"
        if getattr(self, wanted) is None:
            raise InputError(
                f'{title} wants "{other}", but {self.measure} {way} with more data: give "{wanted}"'
            )
        inside = measure.low <= target < measure.high if measure.rises else target > measure.low
        if not inside or target > measure.high:
            remedy = f"give a number from {measure.low:g} to below {measure.high:g}"
            if not measure.rises:
                below = f" and at most {measure.high:g}" if np.isfinite(measure.high) else ""
                remedy = f"give a number above {measure.low:g}{below}"
            elif 1 < target <= 100:
                remedy = f"write {target / 100:g} for {target:g} %"
            raise InputError(f"{title} is {target:g}: {remedy}")
        kind = LearningCurve if measure.rises else LossCurve
        if not isinstance(self.curve, kind):
            got = "no curve" if self.curve is None else f"a {type(self.curve).__name__}"
            raise InputError(f"{title} has {got}: give a {kind.__name__} of its {self.measure}")
        if np.isinf(self.need):
            raise UnreachableError(
                f"{title} is {self.wish}, but its curve stays at or "
                f"{'below' if measure.rises else 'above'} {self.curve.best:.3g} with any amount of "
                "data: give it an easier goal"
            )

    @property
    def target(self) -> float:
        """The goal in the units of its measure; the requirement where it has no measure."""
        given = (self.at_least, self.at_most, self.requirement)
        return next(float(value) for value in given if value is not None)

    @property
    def wish(self) -> str:
        """The goal in words: "at least 0.9"."""
        if self.requirement is not None:
            return f"{self.requirement:.6g} samples"
        return f"at {'least' if self.at_least is not None else 'most'} {self.target:.5g}"

    @property
    def need(self) -> float:
        """The effective samples that reach the goal; inf where none do."""
        return self.target if self.curve is None else float(self.curve.need(self.target))

    def reach(self, samples: float) -> float:
        """Return the value that effective samples reach, in the units of the goal."""
        if self.curve is None:
            return samples
        amount = max(samples, 0.0)
        curve = self.curve
        return float(curve.loss(amount) if isinstance(curve, LossCurve) else curve.accuracy(amount))

    def to_dict(self) -> dict[str, Any]:
        """Return the goal as GAME.json holds it."""
        held = {
            "measure": self.measure,
            "requirement": self.requirement,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "curve": None if self.curve is None else self.curve.to_dict(),
        }
        return {
            "agent": self.agent,
            "name": self.name,
            **{key: value for key, value in held.items() if value is not None},
            "benefits": self.benefits.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Worlds:
    """What else may be true of the goals of a game that pilots measured, resample by resample.

    benefits: the rows of each world, B x goals x k.
    needs: the effective samples that the goals take, B x goals; inf where none reach one.
    """

    benefits: Matrix
    needs: Matrix


class GoalsGame(RowGame):
    """Agents with one or more goals each; an agent is satisfied if it reaches all of its goals.

    An agent's utility is counted in its own samples: its requirement, the most that one of its
    goals needs alone, plus what the goal with least to spare has to spare.

    goals: in any order; every agent has one at least.
    worlds: what else may be true of them, in the same order; None where only averages are known.
        GAME.json does not hold it.
    the rest: see Game; requirements follow from the goals and are not given.
    """

    model: ClassVar[str] = "goals"

    def __init__(
        self,
        goals: Sequence[Goal],
        *,
        agents: Sequence[str] | None = None,
        worlds: Worlds | None = None,
        **frame: Any,
    ) -> None:
        if "requirements" in frame:
            raise InputError("the requirements follow from the goals: give goals instead")
        size = _count_agents(goals, agents)
        super().__init__(np.zeros(size), agents=agents, **frame)
        places = [self._place(goal) for goal in goals]
        self._check_each_has_one(places)
        order = np.argsort(places, kind="stable")
        self.goals: tuple[Goal, ...] = tuple(goals[n] for n in order)
        self.worlds = worlds and Worlds(worlds.benefits[:, order], worlds.needs[:, order])
        self._check_names()
        rows = np.array([goal.benefits for goal in self.goals])
        needs = np.array([goal.need for goal in self.goals])
        self._set_rows(rows, needs, np.array(places, dtype=np.intp)[order], np.ones(size))
        self._check_rows()
        self.requirements = frozen(np.maximum.reduceat(needs / self.own_rows, self.starts))

    def _place(self, goal: Goal) -> int:
        """Return whose goal it is."""
        agent = as_plain(goal.agent)
        if is_whole(agent) and 0 <= agent < self.size:
            return int(agent)
        names = list(self.agents or ())
        if agent not in names:
            closest = find_closest(agent, names)
            meant = f"did you mean {closest}?" if closest else "name one of the game's agents"
            raise InputError(f"{goal.title} belongs to no agent of the game; {meant}")
        return names.index(agent)

    def _check_each_has_one(self, places: list[int]) -> None:
        for agent in range(self.size):
            if agent not in places:
                raise InputError(
                    f"{self.name(agent)} has no goal: give it one, or one with a requirement of 0 "
                    "if it needs nothing"
                )

    def _check_names(self) -> None:
        seen: set[tuple[int, str]] = set()
        for goal in self.goals:
            key = (self._place(goal), goal.name)
            if key in seen:
                raise InputError(f"{goal.title} is listed twice: give each goal its own name")
            seen.add(key)

    @property
    def has_margins(self) -> bool:
        """Whether goals include safety margins."""
        return any(goal.margin for goal in self.goals)

    def goal_name(self, goal: int) -> str:
        """Return what a goal is called in messages."""
        return self.goals[goal].title

    def reached(self, contributions: Vector) -> Vector:
        """Return the value that each goal reaches, in its own units."""
        effective = (self.rows @ contributions).tolist()
        return np.array([g.reach(n) for g, n in zip(self.goals, effective, strict=True)])

    def _frame(self, keep: Indices | None = None) -> dict[str, Any]:
        frame = super()._frame(keep)
        del frame["requirements"]
        return frame

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        if keep is None:
            return {"goals": self.goals, "worlds": self.worlds}
        chosen = keep.tolist()
        held = [g for old in chosen for g in self.goals_of(old)]
        worlds = self.worlds and Worlds(
            self.worlds.benefits[:, held][:, :, keep], self.worlds.needs[:, held]
        )
        kept = [
            dataclasses.replace(
                self.goals[g],
                agent=new if self.agents is None else self.name(old),
                benefits=self.rows[g][keep],
            )
            for new, old in enumerate(chosen)
            for g in self.goals_of(old)
        ]
        return {"goals": kept, "worlds": worlds}

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        frame = self._frame_dict()
        del frame["requirements"]
        goals = [
            {**goal.to_dict(), "agent": self.name(owner) if self.agents is not None else owner}
            for goal, owner in zip(self.goals, self.owners.tolist(), strict=True)
        ]
        return {"model": "goals", **frame, "goals": goals}


def has_curves(game: Game) -> bool:
    """Return whether requirements rest on learning curves, as pilots measure them."""
    if isinstance(game, GoalsGame):
        return any(goal.curve is not None for goal in game.goals)
    return isinstance(game, MeasuredGame)


def _count_agents(goals: Sequence[Goal], agents: Sequence[str] | None) -> int:
    """Return how many agents there are, or say which goal does not fit."""
    if not goals or not all(isinstance(goal, Goal) for goal in goals):
        raise InputError("goals must be a list of Goal, one at least per agent")
    size = len(goals[0].benefits) if agents is None else len(agents)
    for goal in goals:
        if len(goal.benefits) != size:
            raise InputError(
                f"{goal.title} has {len(goal.benefits)} benefits, and needs {size}, one per agent"
            )
    return size
