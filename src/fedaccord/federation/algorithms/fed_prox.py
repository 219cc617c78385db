"""FedProx: clients' own steps are pulled back to the server's model.

T. Li, A. K. Sahu, M. Zaheer, M. Sanjabi, A. Talwalkar, V. Smith: Federated Optimization in
Heterogeneous Networks. MLSys 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedaccord._checks import check_real
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg


@dataclass(frozen=True, kw_only=True)
class FedProx(FedAvg):
    """FedAvg by model averaging, in which client i steps on

        F_i(w) + mu / 2 * |w - w_server|^2

    With mu = 0 it is FedAvg.

    mu: how strong the pull is.
    """

    kind = "fedprox"
    name = "FedProx"

    mu: float = 0.01
    form: str = "local"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("mu", self.mu, least=0)
        if self.form != "local":
            raise InputError('FedProx changes the steps of clients: it needs form = "local"')

    @property
    def proximal(self) -> float:
        """How strongly a client's own steps are pulled back to the server's model."""
        return self.mu
