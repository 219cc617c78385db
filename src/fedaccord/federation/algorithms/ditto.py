"""Ditto: each client has its own model, near the common one.

T. Li, S. Hu, A. Beirami, V. Smith: Ditto: Fair and Robust Federated Learning Through
Personalization. ICML 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedaccord._checks import check_real
from fedaccord.federation.algorithms.base import FedAvg


@dataclass(frozen=True, kw_only=True)
class Ditto(FedAvg):
    """FedAvg for the common model w, and for each client i a model v_i of its own, by steps on

        F_i(v_i) + pull / 2 * |v_i - w|^2

    with the samples that it draws for the common model. Clients are judged by their own models.

    pull: lambda, how near clients' models stay to the common one.
    """

    kind = "ditto"
    name = "Ditto"

    pull: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("pull", self.pull, above=0)

    @property
    def personal(self) -> float:
        """How strongly clients' own models are pulled to the server's."""
        return self.pull
