"""FedCE: weigh clients by what they contribute to the others.

M. Jiang, H. R. Roth, W. Li, D. Yang, C. Zhao, V. Nath, D. Xu, Q. Dou, Z. Xu: Fair Federated Medical
Image Segmentation via Client Contribution Estimation. CVPR 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Indices, Vector, check_real
from fedaccord.federation.algorithms.base import Algorithm, Counts, Update, weighted_sum


@dataclass(frozen=True, kw_only=True)
class FedCe(Algorithm):
    """Weigh a client more, the more its update differs from the others' and the larger its loss.

        direction_i  =  1 - cosine(update_i, mean of the others' updates)
        weight_i     =  direction_i * F_i^exponent, normalised

    The paper measures the second factor by the error, on a client's data, of a model made without
    the client. In one common step that error is its loss under the present model, which is used
    here; and it averages weights over rounds, which the loss and the optimizer do here.

    exponent: how much the loss counts, compared with the direction.
    """

    kind = "fedce"
    name = "FedCE"

    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("exponent", self.exponent, least=0)

    def heard(self, state: Any, losses: Vector) -> Vector:
        """Keep the losses for the step that follows."""
        return np.asarray(losses)

    def combine(
        self, state: Vector, updates: Sequence[Update], counts: Counts, clients: Indices
    ) -> Update:
        """Return the mean of the updates, weighted by the clients' contributions."""
        even = np.full(len(updates), 1 / len(updates))
        if len(updates) < 2:
            return weighted_sum(updates, even)
        total = weighted_sum(updates, np.ones(len(updates)))
        distances = np.array([1 - _cosine(update, total - update) for update in updates])
        parts = distances * np.nan_to_num(state[clients], nan=0.0) ** self.exponent
        return weighted_sum(updates, parts / parts.sum() if parts.sum() > 0 else even)


def _cosine(one: Any, other: Any) -> float:
    """Return the cosine of two updates; 0 where one of them is nothing."""
    scale = float((one * one).sum()) ** 0.5 * float((other * other).sum()) ** 0.5
    return float((one * other).sum()) / scale if scale else 0.0
