"""What an agent would gain by appearing as two agents with the same data.

Two ways are tried. *Twins*: both parts want what the agent wants. *Giver*: one part wants it, and
the other only gives. Prices leave nothing to gain in either way; other contracts may.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedaccord._checks import Vector, frozen
from fedaccord.games.linear import LinearGame
from fedaccord.sharing.costs import GroupCosts, list_groups
from fedaccord.sharing.values import shapley_value

# Up to this many agents splits are tried.
SPLIT_AGENTS = 12
WAYS = ("twins", "giver")


@dataclass(frozen=True, eq=False)
class Splitting:
    """What each agent would gain by appearing as two; zero where neither way gains anything.

    gains: by contract, per agent.
    ways: the way that gains most under the Shapley value, per agent.
    """

    gains: dict[str, Vector]
    ways: tuple[str, ...]


def find_splits(costs: GroupCosts) -> Splitting:
    """Return what each agent would gain by appearing as two, under each contract.

    costs: of the groups of a game without limits and minimums, so that each part could give all.
    """
    size, before = costs.game.size, shapley_value(costs.values)
    after = np.array([_share_as_two(costs, agent) for agent in range(size)])
    gains = before[:, None] - after
    # What is left of rounding is no gain.
    gains[gains <= 1e-9 * costs.values[-1]] = 0.0
    added = costs.values[-1] - costs.without_one
    return Splitting(
        {
            "prices": frozen(np.zeros(size)),
            # Without one twin nothing changes, so that twins add nothing and pay nothing. A part
            # that wants the model adds no less than the agent did.
            "marginal": frozen(np.maximum(added, 0.0)),
            "shapley": frozen(gains.max(axis=1)),
        },
        tuple(WAYS[way] for way in gains.argmax(axis=1).tolist()),
    )


def _share_as_two(costs: GroupCosts, agent: int) -> tuple[float, float]:
    """Return what the two parts of an agent bear by the Shapley value: as twins, and with a giver.

    The part that wants the model keeps the agent's number; the other has the last.
    """
    game, values = costs.game, costs.values
    assert isinstance(game, LinearGame)
    groups = np.arange(2 * len(values))
    first, second = groups >> agent & 1 == 1, groups >= len(values)
    others = groups & (len(values) - 1) & ~(1 << agent)
    joined = np.where(first | second, values[others | 1 << agent], values[others])
    giving = np.where(first, values[others | 1 << agent], values[others])
    lone = second & ~first
    needs = np.array(game.requirements)
    needs[agent] = 0.0
    helped = GroupCosts(LinearGame(game.dense_benefits, needs, costs=game.costs))
    giving[lone] = helped.measure(list_groups(game.size)[others[lone] | 1 << agent])
    twins, giver = shapley_value(joined), shapley_value(giving)
    return float(twins[agent] + twins[-1]), float(giver[agent] + giver[-1])
