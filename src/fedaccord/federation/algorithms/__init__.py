"""The federated algorithms, one per module.

To add one, write a subclass of `base.Algorithm` in a module of its own and name it here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedaccord.federation.algorithms.base import Algorithm

# By kind: the name that people read, the module and the class.
ALGORITHMS = {
    "fedavg": ("FedAvg", "fedavg", "FedAvg"),
    "mw-fed": ("MW-FED", "mw_fed", "MwFed"),
    "solo": ("Solo", "solo", "Solo"),
    "pledged": ("PLEDGED", "pledged", "Pledged"),
    "release": ("RELEASE", "release", "Release"),
    "hold-back": ("HOLD-BACK", "hold_back", "HoldBack"),
    "mw-relief": ("MW-RELIEF", "mw_relief", "RelievedMwFed"),
}


def algorithm_class(kind: str) -> type[Algorithm]:
    """Return the algorithm of a kind that a config can name.

    kind: such as "fedavg".
    """
    _, module, name = ALGORITHMS[kind]
    found: type[Algorithm] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
