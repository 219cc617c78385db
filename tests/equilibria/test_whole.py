"""Plans in whole samples, and in fractions where there are none."""

import pytest

from fedaccord.equilibria.whole import solve_whole
from fedaccord.games.linear import LinearGame


def test_where_no_whole_number_is_within_the_limits_the_plan_is_in_fractions():
    game = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], limits=[0.9, 0.9], minimums=[0.5, 0])
    found = solve_whole(game, concepts=("stable",), time_limit=20)
    assert not found.game.is_integer
    assert found.solutions["stable"].contributions == pytest.approx([2 / 3, 2 / 3])


def test_a_limit_that_rounding_left_below_a_whole_number_can_be_given():
    # 0.29 * 100 is just below 29, which is what the first agent needs.
    game = LinearGame([[1, 0], [0, 1]], [28.5, 5], limits=[0.29 * 100, 9])
    found = solve_whole(game, concepts=("stable",), time_limit=20)
    assert found.game.is_integer
    assert found.solutions["stable"].contributions.tolist() == [29, 5]
