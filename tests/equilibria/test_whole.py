"""Plans in whole samples, and in fractions where there are none."""

import pytest

from fedaccord.equilibria.whole import solve_whole
from fedaccord.games.linear import LinearGame


def test_where_no_whole_number_is_within_the_limits_the_plan_is_in_fractions():
    game = LinearGame([[1, 0.5], [0.5, 1]], [1, 1], limits=[0.9, 0.9], minimums=[0.5, 0])
    found = solve_whole(game, concepts=("stable",), time_limit=20)
    assert not found.game.is_integer
    assert found.solutions["stable"].contributions == pytest.approx([2 / 3, 2 / 3])
