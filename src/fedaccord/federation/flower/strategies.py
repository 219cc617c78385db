"""The federated algorithms as strategies of Flower's, one by one.

Each is a FedAvg of Flower's with the same keyword arguments, and drops into a ServerApp:

    strategy = MwFed(requirements=0.8, batch_size=8)
    result = strategy.start(grid, initial_arrays, num_rounds=40)
    strategy.history.satisfied
"""

from __future__ import annotations

from typing import Any

from fedaccord.federation.algorithms import fedavg, mw_fed, pledged, release
from fedaccord.federation.flower.members import Plan, Requirements
from fedaccord.federation.flower.strategy import AlgorithmStrategy


class FedAvg(AlgorithmStrategy):
    """Federated averaging with equal samples for all, as in the local loop."""

    kind = fedavg.FedAvg


class MwFed(AlgorithmStrategy):
    """MW-FED: who is short of its goal draws more.

    Its own settings are factor, counts and goal_points; see `fedaccord.federation.MwFed`.
    """

    kind = mw_fed.MwFed


class Pledged(AlgorithmStrategy):
    """Training lasts as long as what its members have pledged: the plan, or all their points.

    Its own settings are passes, ends and stop_after; see `fedaccord.federation.Pledged`. Let there
    be rounds enough: it ends by itself.
    """

    kind = pledged.Pledged


class Release(AlgorithmStrategy):
    """Who has its accuracy at some evaluations in a row leaves with the model as it is then.

    Its own settings are factor and evaluations; see `fedaccord.federation.Release`. What clients
    left with is in `checkpoints`, by name.
    """

    kind = release.Release


class PlannedFedAvg(AlgorithmStrategy):
    """Train on a plan: each client is asked for its quota of different points and no more.

    Training ends as soon as everybody has its accuracy, unless stop_at_goal is None.
    """

    kind = fedavg.FedAvg

    def __init__(
        self,
        plan: Plan,
        *,
        requirements: Requirements,
        stop_at_goal: int | None = 1,
        **settings: Any,
    ) -> None:
        super().__init__(
            requirements=requirements, plan=plan, stop_at_goal=stop_at_goal, **settings
        )
