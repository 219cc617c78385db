"""The same algorithms under Flower: strategies for the server, an app for the clients.

Every name is imported when it is first asked for. The strategies need Flower, and torch only where
the server's optimizer takes the steps; `client_app` needs both.
"""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily

if TYPE_CHECKING:
    from fedaccord.federation.flower.client import client_app
    from fedaccord.federation.flower.protocol import drawn_points
    from fedaccord.federation.flower.replies import Remark
    from fedaccord.federation.flower.server import (
        AlgorithmStrategy,
        FedAvg,
        MwFed,
        PlannedFedAvg,
        Pledged,
        Release,
    )

__all__ = [
    "AlgorithmStrategy",
    "FedAvg",
    "MwFed",
    "PlannedFedAvg",
    "Pledged",
    "Release",
    "Remark",
    "client_app",
    "drawn_points",
]

_HOMES = {
    "AlgorithmStrategy": "fedaccord.federation.flower.server",
    "FedAvg": "fedaccord.federation.flower.server",
    "MwFed": "fedaccord.federation.flower.server",
    "PlannedFedAvg": "fedaccord.federation.flower.server",
    "Pledged": "fedaccord.federation.flower.server",
    "Release": "fedaccord.federation.flower.server",
    "Remark": "fedaccord.federation.flower.replies",
    "client_app": "fedaccord.federation.flower.client",
    "drawn_points": "fedaccord.federation.flower.protocol",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
