"""What clients want of a model: goals in any measure, for all points or for a group of them.

A client is satisfied if it reaches all of its goals. Algorithms see one number per client, its
standing, and compare it with the client's requirement. Of one goal in a measure that rises, these
are the value and the target. Of others they are

    requirement  =  the first target (1/2 of a measure that falls, or whose target is beyond 1)
    standing     =  requirement + the least that a goal has to spare, within 0 and 1

where a goal of a measure that rises has value - target to spare, and of one that falls
(target - value) / (2 target).
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Vector, as_plain, check_real
from fedaccord._measures import MEASURES, read_measure
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.source import describe_function
from fedaccord.federation.measures import (
    HALF,
    KNOWN,
    Function,
    Labels,
    deviate_by_bootstrap,
)
from fedaccord.measurement.noise import count_alike

if TYPE_CHECKING:
    from fedaccord.federation.data.dataset import Dataset

Mask = NDArray[np.bool_]
COMPARISON = re.compile(r"\s*(.+?)\s*(>=|<=|==|!=|=|>|<)\s*(.+?)\s*")


@dataclass(frozen=True, eq=False)
class ClientGoal:
    """What a client wants of one measure.

    measure: one of MEASURES, or a function of labels and outputs that returns a number. Outputs
        are probabilities: of class 1 if there are two classes, else one row per point.
    target: the least that it wants of a measure that rises with data, the most of one that falls.
    name: what the goal is called; by its measure where left out.
    threshold: of a sensitivity or specificity, on the probability of class 1; 1/2 where left out.
    group: which validation points count, true or false of each; all where left out.
    scored_group: which scored points count.
    rises: whether a function of one's own rises with data.
    """

    measure: str | Function
    target: float
    name: str = ""
    threshold: float | None = None
    group: Mask | None = None
    scored_group: Mask | None = None
    rises: bool = True

    def __post_init__(self) -> None:
        own = vars(self)
        if not callable(self.measure):
            own["measure"] = read_measure(self.measure, "a client's goal")
            own["rises"] = MEASURES[self.kind].rises
        own["name"] = str(self.name).strip() or self._default_name()
        own["target"] = check_target(self.target, self.kind, self.title)
        if self.threshold is not None:
            if self.kind not in KNOWN or not KNOWN[self.kind].thresholded:
                raise InputError(
                    f"{self.title} has a threshold, which only sensitivity and specificity have: "
                    "leave it out"
                )
            own["threshold"] = check_real(
                f"the threshold of {self.title}", as_plain(self.threshold), above=0, below=1
            )
        for field in ("group", "scored_group"):
            if getattr(self, field) is not None:
                own[field] = np.array(getattr(self, field), dtype=bool)

    def _default_name(self) -> str:
        if callable(self.measure):
            return str(getattr(self.measure, "__name__", "a function"))
        return self.kind if self.threshold is None else f"{self.kind}, at {self.threshold:g}"

    @property
    def kind(self) -> str:
        """The measure as MEASURES spells it; "" of a function."""
        return self.measure if isinstance(self.measure, str) else ""

    @property
    def labels(self) -> str:
        """What its measure is about: "classes", "amounts" or "times"; "" of a function."""
        return KNOWN[self.kind].labels if self.kind else ""

    @property
    def title(self) -> str:
        """What the goal is called in messages."""
        return f'the goal "{self.name}"'

    @property
    def is_plain(self) -> bool:
        """Whether it is an accuracy on all points, which needs no goals."""
        return self.kind == "accuracy" and self.group is None and self.scored_group is None

    @property
    def requirement(self) -> float:
        """What the client's standing is compared with, if this is its first goal."""
        return self.target if self.rises and 0 < self.target <= 1 else HALF

    def measure_on(self, labels: Labels, outputs: Vector, group: Mask | None) -> float:
        """Return the value of the measure on some points; NaN where they do not define it."""
        labels, outputs = _take(labels, outputs, group)
        if np.isnan(outputs).any() or not len(labels):
            return math.nan
        return float(self._function(labels, outputs))

    def deviate_on(self, labels: Labels, outputs: Vector, group: Mask | None) -> float:
        """Return by how much the value varies with the draw of the points."""
        labels, outputs = _take(labels, outputs, group)
        if math.isnan(self.measure_on(labels, outputs, None)):
            return math.nan
        known = KNOWN.get(self.kind)
        if known is None or known.deviation is None:
            return deviate_by_bootstrap(self._function, labels, outputs)
        more = (self.threshold or HALF,) if known.thresholded else ()
        return float(known.deviation(labels, outputs, *more))

    def _function(self, labels: Labels, outputs: Vector) -> float:
        if not isinstance(self.measure, str):
            return float(self.measure(labels, outputs))
        known = KNOWN[self.measure]
        more = (self.threshold or HALF,) if known.thresholded else ()
        return float(known.value(labels, outputs, *more))

    def spare(self, value: float) -> float:
        """Return what a value has to spare; below zero if it misses the goal."""
        if self.rises:
            return value - self.target
        return (self.target - value) / (2 * abs(self.target) or 1.0)

    def count_alike(self, labels: Labels) -> float:
        """Return on how many points a share scatters as much as the measure; inf if not known."""
        if self.labels != "classes":
            return math.inf
        own = labels if self.group is None else labels[self.group]
        found = count_alike(self.kind, self.target, np.bincount(own, minlength=2).tolist())
        return math.inf if math.isnan(found) else max(1, round(found))

    def check_points(self, labels: Labels, group: Mask | None, classes: int, what: str) -> None:
        """Raise an InputError at points on which the measure is not defined.

        labels: of the points.
        group: which of them count; None for all.
        classes: how many the model tells apart.
        what: the points are called.
        """
        if group is not None and group.shape != labels.shape[:1]:
            raise InputError(
                f"{self.title} has a group of {group.size} entries for the {len(labels)} {what}: "
                "give true or false of each"
            )
        counted = labels if group is None else labels[group]
        needed = KNOWN[self.kind].classes if self.kind else ""
        if needed and classes != 2:
            raise InputError(f"{self.title} needs two classes, and the labels name {classes}")
        # Whatever the model says, it is the labels that define the measure or do not.
        of_numbers = self.labels in ("amounts", "times") and len(counted)
        if of_numbers and math.isnan(self._function(counted, np.zeros(len(counted)))):
            raise InputError(
                f"{self.title} cannot be measured: no two of the {what} that it counts can be "
                "compared; give it more samples"
            )
        lacking = {
            "point": not len(counted),
            "positive sample (class 1)": needed in ("both", "positive")
            and not (counted == 1).any(),
            "negative sample (class 0)": needed in ("both", "negative") and (counted == 1).all(),
        }
        for one, absent in lacking.items():
            if absent:
                among = f"the {what}" if group is None else f"its group of the {what}"
                raise InputError(
                    f"{self.title} cannot be measured: {among} has no {one}; give it more samples, "
                    "widen the group or choose another measure"
                )

    def take(self, rows: Indices, *, scored: bool = False) -> ClientGoal:
        """Return the goal of a client with some of its validation, or scored, points."""
        field = "scored_group" if scored else "group"
        mask = getattr(self, field)
        return self if mask is None else dataclasses.replace(self, **{field: mask[rows]})

    @property
    def key(self) -> tuple[Any, ...]:
        """All that a run depends on, for fingerprints."""
        own = self.measure if isinstance(self.measure, str) else describe_function(self.measure)
        group = "" if self.group is None else hashlib.sha256(self.group.tobytes()).hexdigest()
        return (own, self.target, self.threshold, self.rises, self.name, group)


def _take(labels: Labels, outputs: Vector, group: Mask | None) -> tuple[Labels, Vector]:
    return (labels, outputs) if group is None else (labels[group], outputs[group])


def check_target(target: Any, kind: str, title: str) -> float:
    """Return a target that the measure can reach, or raise an InputError.

    target: the number.
    kind: the measure; "" of a function, of which any number may be wanted.
    title: what the goal is called.
    """
    value = check_real(f"the target of {title}", as_plain(target))
    if not kind:
        return value
    measure = MEASURES[kind]
    if measure.low < value <= measure.high:
        return value
    remedy = f"give a number above {measure.low:g}"
    if math.isfinite(measure.high):
        remedy += f" and at most {measure.high:g}"
    if measure.rises and 1 < value <= 100:
        remedy += f", such as {value / 100:g} for {value:g} %"
    raise InputError(f"the target of {title} is {value:g}: {remedy}")


def check_goals(goals: Sequence[ClientGoal], client: str) -> tuple[ClientGoal, ...]:
    """Return a client's goals, or raise an InputError at goals that repeat or contradict others."""
    found = tuple(goals)
    if not found or not all(isinstance(goal, ClientGoal) for goal in found):
        raise InputError(f"the goals of {client} must be a list of ClientGoal, one or more")
    seen: dict[Any, ClientGoal] = {}
    for goal in found:
        same = seen.setdefault(goal.key[:1] + goal.key[2:3] + goal.key[5:], goal)
        if same is not goal:
            raise InputError(
                f"{goal.title} of {client} has the measure and the group of another, with the "
                f"targets {same.target:g} and {goal.target:g}: keep one of them"
            )
    names = [goal.name for goal in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'two goals of {client} are called "{name}": give each its own name')
    return found


def find_labels(goals: Sequence[ClientGoal], client: str) -> str:
    """Return what a client's labels are: "classes", "amounts" or "times"."""
    kinds = {goal.labels: goal for goal in goals if goal.labels}
    if len(kinds) > 1:
        one, other, *_ = kinds.items()
        raise InputError(
            f"{client} has {one[1].title}, about {one[0]}, and {other[1].title}, about {other[0]}: "
            "its labels cannot be both"
        )
    return next(iter(kinds), "classes")


def find_standing(goals: Sequence[ClientGoal], values: Sequence[float]) -> float:
    """Return one number from 0 to 1, at least the requirement if, and only if, all are reached.

    goals: of a client.
    values: of its measures; a goal whose value is not known counts as missed.
    """
    first = goals[0]
    if any(math.isnan(value) for value in values):
        return 0.0
    if len(goals) == 1 and first.rises and first.requirement == first.target:
        return min(max(float(values[0]), 0.0), 1.0)
    least = min(goal.spare(v) for goal, v in zip(goals, values, strict=True))
    standing = min(max(first.requirement + least, 0.0), 1.0)
    # A tiny shortfall must not be lost in the sum.
    return standing if least >= 0 else min(standing, math.nextafter(first.requirement, 0.0))


def judge_goals(
    goals: Sequence[ClientGoal], labels: Labels, outputs: Vector, *, scored: bool = False
) -> float:
    """Return where a client stands with a model; NaN where training diverged."""
    if np.isnan(outputs).any():
        return math.nan
    groups = [goal.scored_group if scored else goal.group for goal in goals]
    pairs = zip(goals, groups, strict=True)
    return find_standing(goals, [goal.measure_on(labels, outputs, mask) for goal, mask in pairs])


# Goals of all clients of a dealer.


@dataclass(frozen=True)
class GoalRule:
    """A goal that all clients of a dealer have, with their own targets.

    measure: as of a ClientGoal.
    target: one for all, or one each.
    threshold: as of a ClientGoal.
    group: which points count, by a column of the table: "age >= 75" or "sex == F".
    name: what the goal is called; by its measure and group where left out.
    rises: as of a ClientGoal.
    """

    measure: str | Function
    target: float | tuple[float, ...]
    threshold: float | None = None
    group: str | None = None
    name: str = ""
    rises: bool = True

    def __post_init__(self) -> None:
        targets = self.target if isinstance(self.target, tuple) else (self.target,)
        for target in targets:
            ClientGoal(self.measure, target, self.name, self.threshold, rises=self.rises)

    @property
    def is_share(self) -> bool:
        """Whether its values are shares that rise with data, as accuracies are."""
        return not callable(self.measure) and self.make(0).rises

    def target_of(self, position: int) -> float:
        """Return the target of a client."""
        return self.target[position] if isinstance(self.target, tuple) else self.target

    def make(
        self, position: int, group: Mask | None = None, scored: Mask | None = None
    ) -> ClientGoal:
        """Return the goal of a client.

        position: of the client among all.
        group, scored: which of its validation and of its scored points count.
        """
        plain = ClientGoal(self.measure, self.target_of(position), self.name, self.threshold)
        name = plain.name
        if self.group is not None and not self.name:
            name = f"{plain.name}, {self.group}"
        return dataclasses.replace(
            plain, name=name, group=group, scored_group=scored, rises=self.rises
        )


def find_group(rule: str, data: Dataset) -> Mask:
    """Return which points of a table are in a group.

    A point whose value is missing is not.

    rule: a column, a comparison and a value: "age >= 75".
    data: the table.
    """
    read = COMPARISON.fullmatch(rule)
    if read is None:
        raise InputError(
            f'the group "{rule}" needs a column, a comparison and a value: "age >= 75"'
        )
    name, sign, text = read.groups()
    names = [] if data.columns is None else [column.name for column in data.columns]
    if name not in names:
        known = f"its columns are {', '.join(names)}" if names else "it has no columns"
        raise InputError(
            f'the group "{rule}" is about the column {name!r}, which {data.source} does not have '
            f"among those that are learned from; {known}"
        )
    assert data.columns is not None
    place = names.index(name)
    levels, cells = data.columns[place].levels, data.inputs[:, place]
    if levels is not None:
        if sign not in ("=", "==", "!=") or text not in levels:
            known = ", ".join(levels)
            raise InputError(
                f'the group "{rule}" is about text values: use == or != and one of {known}'
            )
        value: Any = levels.index(text)
    else:
        try:
            value = np.float32(float(text))
        except ValueError:
            raise InputError(
                f'the group "{rule}" compares {name} with {text!r}: give a number'
            ) from None
    compare = {
        ">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less,
        "=": np.equal, "==": np.equal, "!=": np.not_equal,
    }[sign]  # fmt: skip
    return np.asarray(compare(cells, value) & ~np.isnan(cells))
