"""Find the agents that stay if samples harm: agents leave while one would give less alone."""

from __future__ import annotations

import numpy as np

from fedaccord.check import check
from fedaccord.equilibria.result import Deadline, Staying
from fedaccord.equilibria.solve import solve_stable
from fedaccord.errors import InputError
from fedaccord.games.rows import RowGame


def find_staying(game: RowGame, *, time_limit: float = 60.0) -> Staying:
    """Remove agents until no agent that stays would give less alone.

    Each round finds the cheapest stable plan of the agents that stay. Among those that give more
    than they would alone, the agent that gives most in proportion leaves. An agent that is left
    alone gives what it needs alone, so this ends. Other orders may end with other agents.

    game: what the agents want.
    time_limit: seconds in all.
    """
    if time_limit < 0:
        raise InputError(f"time_limit must be zero seconds or more; got {time_limit!r}")
    deadline = Deadline(time_limit)
    agents = list(range(game.size))
    left: list[int] = []
    while True:
        part = game if not left else game.restrict(agents)
        solution = solve_stable(part, time_limit=deadline.left)
        if solution.contributions is None or len(agents) == 1:
            break
        found = check(part, solution.allocation)
        if not len(found.better_alone):
            break
        harmed = found.better_alone
        alone = np.maximum(found.alone[harmed], 1e-300)
        worst = int(harmed[np.argmax(found.contributions[harmed] / alone)])
        left.append(agents.pop(worst))
    return Staying(tuple(agents), tuple(left), solution)
