"""AFL: agnostic federated learning, for the worst mixture of the clients' distributions.

M. Mohri, G. Sivek, A. T. Suresh: Agnostic Federated Learning. ICML 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Indices, Vector, check_real
from fedaccord.federation.algorithms.base import Algorithm, Counts, Update, weighted_sum


@dataclass(frozen=True)
class AflState:
    """The mixture that the present step is for, and the next.

    mixture: lambda, one part per client; they add up to 1.
    following: the mixture after the losses that were last heard.
    """

    mixture: Vector
    following: Vector

    def __len__(self) -> int:
        return len(self.mixture)


@dataclass(frozen=True, kw_only=True)
class Afl(Algorithm):
    """Minimise the loss of the worst mixture of clients, by descent and ascent in turn.

        min over w, max over lambda in the simplex, of  sum_i lambda_i F_i(w)

        w       <-  w - eta * sum_i lambda_i grad F_i(w)
        lambda  <-  projection onto the simplex of  lambda + gamma * (F_1(w), ..., F_k(w))

    ascent: gamma.
    """

    kind = "afl"
    name = "AFL"

    ascent: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("ascent", self.ascent, above=0)

    def begin(self, contributions: Counts) -> AflState:
        """Begin with the even mixture of clients that give anything."""
        gives = (np.asarray(contributions) > 0).astype(float)
        even = gives / gives.sum()
        return AflState(even, even)

    def heard(self, state: AflState, losses: Vector) -> AflState:
        """Move on to the next mixture, and step up along the losses for the one after it."""
        known = np.isfinite(losses)
        if not known.any():
            return AflState(state.following, state.following)
        raised = state.following + self.ascent * np.where(known, losses, 0.0)
        following = np.zeros(len(raised))
        following[known] = project_to_simplex(raised[known])
        return AflState(state.following, following)

    def combine(
        self, state: AflState, updates: Sequence[Update], counts: Counts, clients: Indices
    ) -> Update:
        """Return the mean of the updates by the mixture."""
        parts = state.mixture[clients]
        total = parts.sum()
        even = np.full(len(parts), 1 / len(parts))
        return weighted_sum(updates, parts / total if total else even)


def project_to_simplex(values: Vector) -> Vector:
    """Return the nearest point whose entries are at least 0 and add up to 1.

    It is max(values - t, 0) for the one t with which the entries add up to 1.
    """
    # Only differences count, and next to large numbers 1 would be lost.
    values = values - values.max()
    falling = np.sort(values)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    return np.asarray(np.maximum(values - level, 0.0))
