"""ON-DEMAND: multi-distribution learning that asks for samples only when they are needed.

After LazyHedge. Z. Zhang, W. Zhan, Y. Chen, S. S. Du, J. D. Lee: Optimal Multi-Distribution
Learning. COLT 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Vector, check_real, check_whole
from fedaccord.federation.algorithms.base import Algorithm, Counts
from fedaccord.federation.algorithms.mw_fed import exact_counts, shares

# A cap is raised when a weight is this many times as large.
DOUBLE = 2.0


@dataclass(frozen=True)
class OnDemandState:
    """The clients' weights, and the largest weights for which samples were asked.

    log_weights: of all clients, as logarithms.
    caps: the weights that the quotas are for.
    contributions: how many samples each client gives at most.
    """

    log_weights: Vector
    caps: Vector
    contributions: Counts

    def __len__(self) -> int:
        return len(self.log_weights)


@dataclass(frozen=True, kw_only=True)
class OnDemand(Algorithm):
    """Hedge over the clients' losses; a client gives more samples when its weight has doubled.

        draws of i in a round  =  m * B * k * w_i
        w_i    <-  w_i * exp(rate * F_i), normalised
        cap_i  <-  w_i                                      where w_i >= 2 cap_i
        quota of different samples of i  =  samples * cap_i

    The caps begin at 1 / k, so that every client gives samples / k at first. A client whose loss
    stays small is never asked for more.

    rate: of Hedge.
    samples: how many different samples all clients together give at first.
    """

    kind = "on-demand"
    name = "ON-DEMAND"

    rate: float = 0.05
    samples: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("rate", self.rate, above=0)
        check_whole("samples", self.samples)

    def begin(self, contributions: Counts) -> OnDemandState:
        """Begin with equal weights of the clients that give anything."""
        given = np.asarray(contributions)
        log_weights = np.where(given > 0, 0.0, -np.inf)
        return OnDemandState(log_weights, shares(log_weights), given)

    def allot(self, state: OnDemandState) -> Counts:
        """Divide a round's draws in proportion to the weights."""
        total = self.batch_size * self.local_batches * int((state.contributions > 0).sum())
        return exact_counts(shares(state.log_weights), total)

    def heard(self, state: OnDemandState, losses: Vector) -> OnDemandState:
        """Raise the weights of clients with large losses, and the caps that they outgrow."""
        raised = state.log_weights + self.rate * np.nan_to_num(losses, nan=0.0)
        parts = shares(raised)
        caps = np.where(parts >= DOUBLE * state.caps, parts, state.caps)
        return OnDemandState(raised - raised.max(), caps, state.contributions)

    def called(self, state: OnDemandState) -> Counts:
        """Return by how many samples each quota is below what the client gives at most."""
        quotas = np.ceil(self.samples * state.caps - 1e-9).astype(np.int64)
        asked = np.minimum(np.maximum(quotas, state.contributions > 0), state.contributions)
        return asked - state.contributions
