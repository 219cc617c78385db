"""Algorithms that let go of who has what it wants: it leaves, is held, or is asked for less."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms import allotment
from fedaccord.federation.algorithms.allotment import Counts, Update
from fedaccord.federation.algorithms.base import Algorithm, MwFed, check_count, check_number

# Directions that differ by less, as parts of their length, are taken for one.
SAME_DIRECTION = 1e-5


@dataclass(frozen=True)
class ReleaseState:
    """Who is still there, and how much of each round it draws.

    log_weights: of all, as logarithms.
    passed: at how many goal tests in a row, up to the last it was heard at, each had its accuracy.
    brings: whether it has any point to draw.
    gone: whether it has left.
    """

    log_weights: Vector
    passed: Counts
    brings: NDArray[np.bool_]
    gone: NDArray[np.bool_]

    @property
    def drawing(self) -> NDArray[np.bool_]:
        """Of whom samples are drawn."""
        return np.asarray(self.brings & ~self.gone)


@dataclass(frozen=True, kw_only=True)
class Release(Algorithm):
    """Who has its accuracy at so many tests in a row leaves with the model, and does not return.

        m_i = m * B * r * w_i / sum(w),    then w_i <- c * w_i where accuracy_i < requirement_i

    over the r clients that are still there and bring anything. The goal is tested at evaluations,
    every `evaluate_every` rounds. Nothing is drawn of a client that has left, whatever becomes of
    the model: it has the one it left with. Training is over when nobody is left to draw from. A
    client that brings nothing leaves when it has its accuracy, as any other.

    factor: c.
    evaluations: how many tests in a row.
    """

    kind = "release"
    name = "RELEASE"
    passes_off_idle = False

    factor: float = 2.0
    evaluations: int = 3

    def __post_init__(self) -> None:
        """Refuse settings that no training could follow."""
        super().__post_init__()
        check_number("factor", self.factor, "of 1 or more", lambda factor: factor >= 1)
        check_count("evaluations", self.evaluations)

    def tests(self, n: int) -> bool:
        """Test the goal at evaluations only."""
        return (n + 1) % self.evaluate_every == 0

    def begin(self, contributions: Counts) -> ReleaseState:
        """Begin with everybody there, at the same weight."""
        clients = len(contributions)
        return ReleaseState(
            log_weights=np.zeros(clients),
            passed=np.zeros(clients, dtype=np.int64),
            brings=np.asarray(contributions) > 0,
            gone=np.zeros(clients, dtype=bool),
        )

    def allot(self, state: ReleaseState) -> Counts:
        """Divide the samples of those who are there in proportion to their weights."""
        counts = np.zeros(len(state.gone), dtype=np.int64)
        drawing = np.flatnonzero(state.drawing)
        if len(drawing):
            total = self.batch_size * self.local_batches * len(drawing)
            parts = allotment.shares(state.log_weights[drawing])
            counts[drawing] = allotment.exact_counts(parts, total)
        return counts

    def weights(
        self, state: ReleaseState, accuracies: Vector, requirements: Vector
    ) -> ReleaseState:
        """Let go of who has passed often enough; raise the weights of those who are short."""
        # Who was not heard, its accuracy NaN, has neither passed nor failed.
        passed = state.passed + (accuracies >= requirements)
        passed[accuracies < requirements] = 0
        return dataclasses.replace(
            state,
            log_weights=allotment.raised(state.log_weights, accuracies < requirements, self.factor),
            passed=passed,
            gone=state.gone | (passed >= self.evaluations),
        )

    def left(self, state: ReleaseState) -> NDArray[np.bool_]:
        """Tell who has left."""
        return state.gone

    def ended(self, state: ReleaseState) -> bool:
        """Tell whether nobody is left to draw from."""
        return not state.drawing.any()


@dataclass(frozen=True, kw_only=True)
class HoldBack(Algorithm):
    """The unsatisfied learn, in directions in which the satisfied lose nothing.

        step along  g - P g,    g = mean of the unsatisfied clients' gradients
                                P = projection onto the span of the satisfied clients' gradients

    Everybody draws m * B samples, the satisfied for their gradients alone. The goal is tested at
    evaluations, every `evaluate_every` rounds, and training is over once everybody has its
    accuracy. Where only clients are short that bring nothing, the step is along the mean of all.

    The step is orthogonal to the satisfied clients' gradients with the optimizer "sgd"; Adam, which
    scales each coordinate by itself, bends it.
    """

    kind = "hold-back"
    name = "HOLD-BACK"
    passes_off_idle = False

    def __post_init__(self) -> None:
        """Refuse settings that no training could follow."""
        super().__post_init__()
        if self.form != "pooled":
            raise InputError(
                f"{self.name} projects the clients' gradients, and in the local form they send "
                'models: set form to "pooled"'
            )

    def tests(self, n: int) -> bool:
        """Test the goal at evaluations only."""
        return (n + 1) % self.evaluate_every == 0

    def begin(self, contributions: Counts) -> NDArray[np.bool_]:
        """Take nobody for satisfied."""
        return np.zeros(len(contributions), dtype=bool)

    def weights(
        self, state: NDArray[np.bool_], accuracies: Vector, requirements: Vector
    ) -> NDArray[np.bool_]:
        """Note who has its accuracy."""
        return np.asarray(accuracies >= requirements)

    def ended(self, state: NDArray[np.bool_]) -> bool:
        """Tell whether everybody has its accuracy."""
        return bool(state.all())

    def combine(
        self,
        state: NDArray[np.bool_],
        updates: Sequence[Update],
        counts: Counts,
        clients: Indices,
    ) -> Update:
        """Project the unsatisfied clients' mean gradient off the satisfied clients'."""
        short = ~state[clients]
        if not short.any():
            return self.aggregate(updates, counts)
        behind, held = (
            [update for update, chosen in zip(updates, who, strict=True) if chosen]
            for who in (short, ~short)
        )
        mean: Update = self.aggregate(behind, counts[short])
        if held:
            mean = without(mean, held)
        return mean


@dataclass(frozen=True, kw_only=True)
class RelievedMwFed(MwFed):
    """MW-FED that takes back: a weight falls again while its client is satisfied.

        w_i <- c * w_i            where accuracy_i <  requirement_i
        w_i <- max(1, w_i / r)    where accuracy_i >= requirement_i

    relief: r.
    """

    kind = "mw-relief"
    name = "MW-RELIEF"

    relief: float = 2.0

    def __post_init__(self) -> None:
        """Refuse settings that no training could follow."""
        super().__post_init__()
        check_number("relief", self.relief, "of 1 or more", lambda relief: relief >= 1)

    def weights(self, state: Vector, accuracies: Vector, requirements: Vector) -> Vector:
        """Raise the weights of who is short, and lower those of who is not, down to 1."""
        lowered = np.maximum(0.0, state - np.log(self.relief))
        # Who was not heard is neither: its accuracy is NaN.
        satisfied = np.where(accuracies >= requirements, lowered, state)
        return allotment.raised(satisfied, accuracies < requirements, self.factor)


def without(vector: Any, directions: Sequence[Any]) -> Any:
    """Take out of a vector all that lies in the span of some directions.

    vector: flat, a tensor or an array.
    directions: of the same kind, perhaps dependent.
    """
    columns = np.stack([np.asarray(one, dtype=np.float64) for one in directions], axis=1)
    lengths = np.linalg.norm(columns, axis=0)
    if not np.isfinite(lengths).all():
        # Training has diverged, and is to be seen to.
        return _like(vector, np.full(len(columns), np.nan))
    unit = columns[:, lengths > 0] / lengths[lengths > 0]
    # The small matrix of their products has the squares of the singular values.
    squares, mixtures = np.linalg.eigh(unit.T @ unit)
    kept = squares > SAME_DIRECTION**2
    basis = unit @ (mixtures[:, kept] / np.sqrt(squares[kept]))
    given = np.asarray(vector, dtype=np.float64)
    return _like(vector, given - basis @ (basis.T @ given))


def _like(vector: Any, values: Vector) -> Any:
    """Give values as an array or a tensor like another."""
    if isinstance(vector, np.ndarray):
        return values.astype(vector.dtype)
    return vector.new_tensor(values)
