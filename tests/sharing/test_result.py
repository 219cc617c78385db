"""How the shares of a cost are written: amounts rounded alike, and no group that seems to leave."""

import re

import pytest

from fedaccord.games.linear import LinearGame
from fedaccord.sharing.result import choose_writer
from fedaccord.sharing.share import share_costs

THREE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("largest", "values", "written"),
    [
        (1372, (-9.245, 212, 25.43, -0.4, 1371.6), ("-9", "212", "25", "0", "1,372")),
        (40, (12.3456, 7, -0.001), ("12.35", "7", "0")),
        (2, (0.9376, 1 / 3, 1), ("0.938", "0.333", "1")),
        (0.02, (0.0123456, 0.02), ("0.01235", "0.02")),
        (0, (0,), ("0",)),
    ],
)
def test_amounts_of_a_column_are_rounded_alike(largest, values, written):
    assert tuple(map(choose_writer(largest), values)) == written


def test_whole_samples_do_not_make_a_group_seem_to_pay_more_than_without_the_others():
    # 101 whole samples for a requirement of 100.2, and the prices are those of the reals.
    needs = [100.2, 150.0, 200.0]
    game = LinearGame(THREE, needs, agents=("A", "B", "C"), strategies="integer")
    said = " ".join(share_costs(game).explain(agent) for agent in range(3))
    pairs = re.findall(r"bears? ([0-9]+)(?: in all)?, and would pay ([0-9]+)", said)
    assert pairs and all(int(bears) <= int(apart) for bears, apart in pairs)
    assert "and would pay the same, up to rounding, without the others" in said
