"""q-FFL: fair resource allocation, which weighs clients by their losses.

T. Li, M. Sanjabi, A. Beirami, V. Smith: Fair Resource Allocation in Federated Learning. ICLR 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Indices, Vector, check_real
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts, Update, weighted_sum

# A loss of exactly nothing has no power below 0.
LEAST_LOSS = 1e-10


@dataclass(frozen=True, kw_only=True)
class QFfl(Algorithm):
    """Minimise the sum of the clients' losses to the power of q + 1, by q-FedSGD.

        h_i  =  q F_i^(q-1) |grad F_i|^2 + F_i^q / eta
        w   <-  w - sum_i F_i^q grad F_i / sum_i h_i

    where F_i is the loss of client i under the present w. With q = 0 it is FedAvg with plain
    gradient descent; the larger q, the more the clients with the largest losses count.

    q: how much large losses count.
    """

    kind = "q-ffl"
    name = "q-FFL"

    q: float = 1.0
    optimizer: str = "sgd"
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("q", self.q, least=0)
        if self.form != "pooled" or self.optimizer != "sgd":
            raise InputError(
                'q-FFL takes its own steps, so it needs form = "pooled" and optimizer = "sgd"'
            )

    def heard(self, state: Any, losses: Vector) -> Vector:
        """Keep the losses for the step that follows."""
        return np.maximum(losses, LEAST_LOSS)

    def combine(
        self, state: Vector, updates: Sequence[Update], counts: Counts, clients: Indices
    ) -> Update:
        """Return the update whose step, at the learning rate, is that of q-FedSGD."""
        losses = state[clients]
        squares = np.array([float((update * update).sum()) for update in updates])
        # With a large q, powers are too large or too small for a float: training then diverges.
        with np.errstate(over="ignore", invalid="ignore"):
            powers = losses**self.q
            smoothness = self.q * losses ** (self.q - 1) * squares + powers / self.learning_rate
            return weighted_sum(updates, powers / (self.learning_rate * smoothness.sum()))
