"""Coalitions of agents with several goals, or with samples that harm."""

from itertools import combinations

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
    large = SignedGame(np.eye(61), np.ones(61))
    with pytest.raises(InputError, match="up to 60 agents; this game has 61"):
        find_coalitions(large, plans="cheapest")
    with pytest.raises(InputError, match="plans must be one of stable, cheapest"):
        find_coalitions(HARM, plans="best")


def draw_game(seed: int, size: int) -> GoalsGame:
    """Return a game with two goals each, with some harm and with limits."""
    random = np.random.default_rng(seed)
    goals = []
    for agent in range(size):
        for name in ("AUC", "sensitivity"):
            row = random.uniform(-0.2, 0.8, size)
            row[agent] = 1.0
            goals.append(Goal(agent, name, row, float(random.uniform(5, 40))))
    return GoalsGame(goals, limits=np.full(size, 40.0))


@pytest.mark.parametrize("seed", range(4))
def test_no_small_group_leaves_what_many_agents_end_with(seed: int) -> None:
    game = draw_game(seed, 13)
    found = find_coalitions(game, plans="cheapest")
    assert found.core and not found.complete
    alone = {
        group: solve_optimal(game.restrict([*group])).contributions
        for size in (1, 2, 3)
        for group in combinations(range(13), size)
    }
    for grouping in found.core:
        assert grouping.checked == 3
        for part in grouping.coalitions:
            own = solve_optimal(game.restrict([*part])).contributions
            total = np.inf if own is None else own.sum()
            assert grouping.costs[[*part]].sum() == pytest.approx(total, rel=1e-6)
        for group, own in alone.items():
            better = own is not None and (own < grouping.costs[[*group]] * (1 - 1e-5)).all()
            assert not better, group


def test_two_blocks_of_agents_that_harm_each_other_split() -> None:
    # Inside a block samples help; those of the other block harm, so together nobody can be served.
    block = np.where(np.add.outer(range(14), range(14)) % 2 == 0, 0.5, -1.0)
    np.fill_diagonal(block, 1.0)
    found = find_coalitions(
        SignedGame(block, np.full(14, 20.0), limits=np.full(14, 30.0)), plans="cheapest"
    )
    assert found.chosen is not None and found.together is None
    assert found.chosen.coalitions == (tuple(range(0, 14, 2)), tuple(range(1, 14, 2)))
    # Each of the seven in a block: t / 2 + 7 t / 2 = 20.
    assert found.chosen.total == pytest.approx(2 * 7 * 5)
