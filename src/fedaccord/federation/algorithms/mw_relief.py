"""MW-RELIEF: MW-FED that takes weights back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Vector, check_real
from fedaccord.federation.algorithms.mw_fed import MwFed, raise_weights


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
        super().__post_init__()
        check_real("relief", self.relief, least=1, expected="a number of 1 or more")

    def weights(self, state: Vector, accuracies: Vector, requirements: Vector) -> Vector:
        """Raise the weights of unsatisfied clients; lower those of satisfied ones, down to 1."""
        lowered = np.maximum(0.0, state - np.log(self.relief))
        # A client that did not report is neither: its accuracy is NaN.
        satisfied = np.where(accuracies >= requirements, lowered, state)
        return raise_weights(satisfied, accuracies < requirements, self.factor)
