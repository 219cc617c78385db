"""Federated averaging, the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass

from fedaccord.federation.algorithms.base import Algorithm


@dataclass(frozen=True, kw_only=True)
class FedAvg(Algorithm):
    """Federated averaging: everybody draws the same number of samples (the paper's Algorithm 1).

    The paper prints the average with a factor 1 / (B k), which for B > 1 would shrink the model
    itself; it is the mean of the k models here.
    """

    kind = "fedavg"
    name = "FedAvg"
