"""HOLD-BACK: unsatisfied clients learn, and satisfied clients lose nothing by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedaccord._checks import Indices, Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts, Update

# Directions that differ by less, as parts of their length, are taken for one.
SAME_DIRECTION = 1e-5


@dataclass(frozen=True, kw_only=True)
class HoldBack(Algorithm):
    """Unsatisfied clients learn, in directions in which satisfied clients lose nothing.

        step along  g - P g,    g = mean of the unsatisfied clients' gradients
                                P = projection onto the span of the satisfied clients' gradients

    All clients draw m * B samples, the satisfied ones for their gradients alone. The goal is tested
    at evaluations, every `evaluate_every` rounds, and training is over once all clients reach
    their goals. If the only unsatisfied clients have no samples, the step is along the mean of all.

    The step is orthogonal to the satisfied clients' gradients with the optimizer "sgd"; Adam, which
    scales each coordinate by itself, bends it.
    """

    kind = "hold-back"
    name = "HOLD-BACK"
    passes_off_idle = False
    tests_at_evaluations = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form != "pooled":
            raise InputError(
                f"{self.name} projects gradients, but clients of the local form send models: "
                'set form to "pooled"'
            )

    def begin(self, contributions: Counts) -> NDArray[np.bool_]:
        """Start with no client satisfied."""
        return np.zeros(len(contributions), dtype=bool)

    def weights(
        self, state: NDArray[np.bool_], accuracies: Vector, requirements: Vector
    ) -> NDArray[np.bool_]:
        """Record which clients reach their goals."""
        return np.asarray(accuracies >= requirements)

    def ended(self, state: NDArray[np.bool_]) -> bool:
        """Return whether all clients reach their goals."""
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
            mean = project_off(mean, held)
        return mean


def project_off(vector: Any, directions: Sequence[Any]) -> Any:
    """Take out of a vector all that lies in the span of some directions."""
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
    """Return values as an array or a tensor like another."""
    if isinstance(vector, np.ndarray):
        return values.astype(vector.dtype)
    return vector.new_tensor(values)
