"""MaxFL: make the common model better than their own for as many clients as possible.

Y. J. Cho, D. Jhunjhunwala, T. Li, V. Smith, G. Joshi: Maximizing Global Model Appeal in Federated
Learning. TMLR 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Indices, Vector
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm, Counts, Update, weighted_sum

# A weight this small keeps the mean defined where the model appeals to all clients or to none.
LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, kw_only=True)
class MaxFl(Algorithm):
    """Minimise a smooth count of the clients for whom the model is not good enough.

        sum_i s(F_i(w) - rho_i),    s(x) = 1 / (1 + exp(-x))

    Its gradient weighs client i by s (1 - s): most where its loss is near rho_i, the loss at which
    the model begins to appeal to it.

    thresholds: rho, one loss per client, such as that of a model which it trained alone.
    """

    kind = "maxfl"
    name = "MaxFL"

    thresholds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.thresholds
        if not isinstance(given, list | tuple) or not all(
            isinstance(one, int | float) and np.isfinite(one) for one in given
        ):
            raise InputError(f"thresholds must be a list of losses, one per client; got {given!r}")
        object.__setattr__(self, "thresholds", tuple(float(one) for one in self.thresholds))

    def begin(self, contributions: Counts) -> Vector:
        """Begin with every client at its threshold."""
        if len(self.thresholds) != len(contributions):
            raise InputError(
                f"MaxFL needs one loss in thresholds for each of {len(contributions)} clients, at "
                f"which the model begins to appeal to it; got {len(self.thresholds)}"
            )
        return np.zeros(len(contributions))

    def heard(self, state: Vector, losses: Vector) -> Vector:
        """Keep how far each client is above the loss that appeals to it."""
        return np.asarray(losses - np.array(self.thresholds))

    def combine(
        self, state: Vector, updates: Sequence[Update], counts: Counts, clients: Indices
    ) -> Update:
        """Return the mean of the updates, weighted by how much each client can still be won."""
        appeal = 1 / (1 + np.exp(-np.clip(state[clients], -500, 500)))
        parts = np.maximum(appeal * (1 - appeal), LEAST_WEIGHT)
        return weighted_sum(updates, parts / parts.sum())
