"""Learning curves of effective samples, and the linear games that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import (
    LARGEST,
    Indices,
    Matrix,
    Vector,
    as_numbers,
    as_plain,
    frozen,
    is_real,
)
from fedaccord.errors import InputError, UnreachableError
from fedaccord.games.base import Game
from fedaccord.games.linear import LinearGame
from fedaccord.wording import format_goal

if TYPE_CHECKING:
    from fedaccord.games.chances import Chances

# The numbers of a curve, in the order in which arrays of curves hold them.
PARTS = ("floor", "height", "head", "pace")
# A need below this part of the head start is the rounding of a need of none.
ROUNDING = 1e-12


@dataclass(frozen=True)
class LearningCurve:
    """A power law with a floor, in effective samples n.

        accuracy(n) = 1 - floor - height * (head + n)^(-pace),   cut off at 0

    floor: the error that no amount of data takes away.
    height: how large the error above the floor is.
    head: how many samples' worth is known before the first, as by pre-training.
    pace: how fast the error falls.
    """

    floor: float
    height: float
    head: float
    pace: float

    def __post_init__(self) -> None:
        for name in PARTS:
            value = getattr(self, name)
            if not is_real(as_plain(value)):
                raise InputError(f"the {name} of a learning curve must be a number; got {value!r}")
            object.__setattr__(self, name, float(value))
        wrong = (
            ("floor", not 0 <= self.floor < 1, "at least 0 and below 1"),
            ("height", not 0 < self.height < np.inf, "above 0"),
            ("head", not 0 <= self.head <= LARGEST, "0 or more"),
            ("pace", not 0 < self.pace <= LARGEST, "above 0"),
        )
        for name, bad, rule in wrong:
            if bad:
                got = getattr(self, name)
                raise InputError(f"the {name} of a learning curve must be {rule}; got {got:g}")

    @property
    def best(self) -> float:
        """The accuracy that more and more data comes close to."""
        return 1 - self.floor

    def accuracy(self, samples: ArrayLike) -> Any:
        """Return the accuracy at a number of effective samples, or at an array of them."""
        return predict_accuracies(self.row, np.asarray(samples, dtype=float))[()]

    def need(self, goal: ArrayLike) -> Any:
        """Return the least effective samples that reach a goal; inf where none do, 0 at once."""
        return find_needs(self.row, np.asarray(goal, dtype=float))[()]

    @property
    def row(self) -> Vector:
        """The four numbers as an array."""
        return np.array([self.floor, self.height, self.head, self.pace])

    def to_dict(self) -> dict[str, float]:
        """Return the curve as GAME.json holds it."""
        return {name: getattr(self, name) for name in PARTS}


def predict_accuracies(curves: Matrix, samples: Matrix) -> Matrix:
    """Return accuracies of many curves at once.

    curves: (..., 4), the parts of each curve.
    samples: effective samples, of the shape in front or one that goes with it.
    """
    floor, height, head, pace = np.moveaxis(curves, -1, 0)
    with np.errstate(divide="ignore", over="ignore"):
        error = floor + height * (head + samples) ** -pace
    return np.asarray(np.maximum(1 - error, 0.0))


def find_needs(curves: Matrix, goals: Matrix) -> Matrix:
    """Return the effective samples that reach the goals on many curves at once; inf where none do.

    curves: (..., 4), the parts of each curve.
    goals: accuracies, of the shape in front or one that goes with it.
    """
    floor, height, head, pace = np.moveaxis(curves, -1, 0)
    above = (1 - goals) - floor
    with np.errstate(divide="ignore", over="ignore"):
        total = (np.maximum(above, 0.0) / height) ** (-1 / pace)
    needs = np.where(total - head > ROUNDING * head, total - head, 0.0)
    # Every model is right with probability 0 at least.
    return np.where(goals <= 0, 0.0, np.where(needs > LARGEST, np.inf, needs))


def read_curves(curves: Sequence[LearningCurve] | ArrayLike) -> Matrix:
    """Return curves as an array with one row each, whichever way they came."""
    if isinstance(curves, Sequence):
        made = [curve.row for curve in curves if isinstance(curve, LearningCurve)]
        if made and len(made) == len(curves):
            return np.array(made)
    rows = as_numbers(curves, "curves")
    if rows.ndim != 2 or rows.shape[1] != len(PARTS):
        raise InputError(
            f"curves must be learning curves or rows of ({', '.join(PARTS)}); got shape "
            f"{rows.shape}"
        )
    return rows


class MeasuredGame(LinearGame):
    """Agents that want an accuracy, and whose accuracy is a learning curve of effective samples.

        accuracy_i(theta) = curve_i((W theta)_i),   wanted: at least goal_i + margin_i

    Agents enter only through whether they reach their goals, so that this is the linear game in
    which agent i wants (W theta)_i >= need_i, the effective samples that reach its goal.

    benefits: W, k x k, dense; W[i, j] is what a sample of j is worth to i, in samples of i.
    curves: a learning curve per agent.
    goals: the accuracy each agent wants.
    margins: by how much each aims above its goal; zero where left out.
    chances: what else the curves may be, and how far runs scatter; None where only averages are
        known. Its goals are those of the game.
    the rest: see Game; requirements follow from the goals and are not given.
    """

    model: ClassVar[str] = "measured"

    def __init__(
        self,
        benefits: Any,
        curves: Sequence[LearningCurve] | ArrayLike,
        goals: ArrayLike,
        *,
        margins: ArrayLike | None = None,
        chances: Chances | None = None,
        **frame: Any,
    ) -> None:
        if "requirements" in frame:
            raise InputError(
                "the requirements of a measured game follow from its goals: give goals instead"
            )
        rows = read_curves(curves)
        self.curves = tuple(LearningCurve(*row) for row in rows.tolist())
        self.goals = _read_vector(goals, "goals", len(rows))
        self.margins = _read_vector(0.0 if margins is None else margins, "margins", len(rows))
        self.agents = frame.get("agents")
        self._check_goals()
        super().__init__(benefits, self._needs(rows), **frame)
        self.chances = None if chances is None else chances.replace(goals=self.goals)

    def _check_goals(self) -> None:
        for what, values, wrong in (
            ("goal", self.goals, ~((self.goals >= 0) & (self.goals < 1))),
            ("margin", self.margins, ~(np.abs(self.margins) < 1)),
        ):
            if wrong.any():
                agent = int(np.argmax(wrong))
                remedy = "give an accuracy, at least 0 and below 1"
                if 1 < values[agent] <= 100:
                    remedy = f"write {values[agent] / 100:g} for {values[agent]:g} %"
                raise InputError(
                    f"the {what} of {self._name_of(agent)} is {values[agent]:g}: {remedy}"
                )

    def _name_of(self, agent: int) -> str:
        # Names are checked only later, with the rest of the frame.
        try:
            return str(self.agents[agent]) if self.agents is not None else f"agent {agent}"
        except (IndexError, TypeError):
            return f"agent {agent}"

    def _needs(self, rows: Matrix) -> Vector:
        needs = find_needs(rows, self.goals + self.margins)
        if np.isinf(needs).any():
            agent = int(np.argmax(np.isinf(needs)))
            margin = self.margins[agent]
            above = f" and aims {margin:.3g} above it" if margin > 0 else ""
            wanted = f"{format_goal(self.goals[agent])}{above}"
            raise UnreachableError(
                f"{self._name_of(agent)} wants an accuracy of {wanted}, but its learning curve "
                f"stays at or below {self.curves[agent].best:g} with any "
                "amount of data: lower its goal"
            )
        return needs

    @property
    def rows(self) -> Matrix:
        """The curves as an array with one row (floor, height, head, pace) each."""
        return np.array([curve.row for curve in self.curves])

    def accuracies(self, contributions: ArrayLike) -> Vector:
        """Return the accuracy that each agent is expected to reach.

        contributions: theta, or many of them along the first axes.
        """
        given = np.asarray(contributions, dtype=float)
        return predict_accuracies(self.rows, given @ self.dense_benefits.T)

    def nearest_goals(self) -> Vector:
        """Return the accuracy that each agent would reach if all gave as much as they can."""
        return nearest_goals(self.dense_benefits, self.rows, self.limits)

    def _frame(self, keep: Indices | None = None) -> dict[str, Any]:
        frame = super()._frame(keep)
        del frame["requirements"]
        return frame

    def _model_arguments(self, keep: Indices | None = None) -> dict[str, Any]:
        chosen = np.arange(self.size) if keep is None else keep
        return {
            **super()._model_arguments(keep),
            "curves": [self.curves[i] for i in chosen],
            "goals": self.goals[chosen],
            "margins": self.margins[chosen],
            "chances": self._keep_chances(keep),
        }

    def _keep_chances(self, keep: Indices | None) -> Chances | None:
        return self.chances if self.chances is None or keep is None else self.chances.restrict(keep)

    def to_dict(self) -> dict[str, Any]:
        """Return the game as GAME.json holds it."""
        frame = self._frame_dict()
        del frame["requirements"]
        margins = {"margins": self.margins.tolist()} if self.margins.any() else {}
        return {
            "model": "measured",
            "goals": self.goals.tolist(),
            **margins,
            **frame,
            "curves": [curve.to_dict() for curve in self.curves],
            "benefits": self.dense_benefits.tolist(),
            **({} if self.chances is None else {"chances": self.chances.to_dict()}),
        }


def nearest_goals(benefits: Matrix, curves: Matrix, limits: Vector) -> Vector:
    """Return the accuracy of each agent if all gave their limits; of what helps nobody, nothing.

    benefits: (..., k, k).
    curves: (..., k, 4).
    limits: (k,), inf where there is none.
    """
    endless = np.isinf(limits)
    samples = benefits @ np.where(endless, 0.0, limits)
    helped = (benefits[..., endless] > 0).any(axis=-1)
    return predict_accuracies(curves, np.where(helped, np.inf, samples))


def list_doubts(game: Game) -> tuple[str, ...]:
    """Return what speaks against trusting a game, where pilots measured it, a sentence each."""
    chances = game.chances if isinstance(game, MeasuredGame) else None
    return () if chances is None else chances.doubts


def _read_vector(values: ArrayLike, what: str, size: int) -> Vector:
    array = as_numbers(values, what)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise InputError(f"{what} must have {size} numbers, one per curve; got shape {array.shape}")
    return frozen(array)
