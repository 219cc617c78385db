"""Coalitions of agents with several goals, or with samples that harm."""

import numpy as np
import pytest

from fedaccord import Goal, GoalsGame, SignedGame, find_coalitions, solve_optimal, solve_stable
from fedaccord.coalitions.rows import tabulate_cheapest_plans, tabulate_goal_plans
from fedaccord.coalitions.table import list_members
from fedaccord.errors import InputError

HARM = SignedGame(
    [[1, 0.5, -0.6], [0.5, 1, -0.6], [0.2, 0.2, 1]], [30, 30, 40], agents=["City", "Hill", "Sea"]
)


def test_an_agent_whose_samples_harm_is_left_alone() -> None:
    found = find_coalitions(HARM)
    assert found.chosen is not None
    assert found.chosen.coalitions == ((0, 1), (2,))
    # City and Hill: t + t / 2 = 30. Sea alone gives 40.
    assert found.chosen.costs == pytest.approx([20, 20, 40])


@pytest.mark.parametrize("tabulate, solve", [
    (tabulate_goal_plans, solve_stable), (tabulate_cheapest_plans, solve_optimal),
])  # fmt: skip
def test_each_coalition_plays_its_own_plan(tabulate, solve) -> None:  # type: ignore[no-untyped-def]
    rows = [[1, 0.2, 0.1], [1, 0.9, 0.5], [0.4, 1, 0.3], [0.2, 0.7, 1]]
    goals = [Goal(i, name, row, 30 + 5 * n) for n, (i, name, row) in enumerate(
        zip((0, 0, 1, 2), ("AUC", "sensitivity", "AUC", "AUC"), rows, strict=True))]  # fmt: skip
    game = GoalsGame(goals)
    table = tabulate(game)
    for coalition in range(1, 8):
        members = [*list_members(coalition)]
        own = solve(game.restrict(members)).contributions
        assert table.costs[coalition, members].sum() == pytest.approx(own.sum(), rel=1e-6)


def test_a_game_that_is_too_large_or_no_plan_is_refused() -> None:
    many = SignedGame(np.eye(13) - 0.01, np.ones(13))
    with pytest.raises(InputError, match="up to 12 agents; this game has 13"):
        find_coalitions(many)
    with pytest.raises(InputError, match="plans must be one of stable, cheapest"):
        find_coalitions(HARM, plans="best")
