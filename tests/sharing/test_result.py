"""How the shares of a cost are written: amounts rounded alike, and no group that seems to leave."""

import dataclasses
import re

import numpy as np
import pytest

from fedaccord.games.linear import LinearGame
from fedaccord.report.sharing import describe_contract
from fedaccord.sharing.result import choose_writer
from fedaccord.sharing.share import share_costs

THREE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("largest", "values", "written"),
    [
        (1372, (-9.245, 212, 25.43, -0.4, 1371.6), ("−9", "212", "25", "0", "1,372")),
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
    pairs = re.findall(r"bears ([0-9]+) in all, and would pay ([0-9]+)", said)
    pairs += re.findall(r"bear ([0-9]+)\. Without the others they would pay ([0-9]+)", said)
    assert pairs and all(int(bears) <= int(apart) for bears, apart in pairs)
    assert "Without the others they would pay about the same." in said


def test_a_group_of_many_is_not_listed_by_name_in_every_sentence():
    worth = (np.ones((7, 7)) + np.eye(7)) / 2
    found = share_costs(LinearGame(worth, np.linspace(50, 90, 7), agents=list("ABCDEFG")))
    said = "A and 4 others together bear 128. Without the rest they would pay 128."
    assert found.explain(0).endswith(said)
    said = "D, E, F and G together bear 128. Without the others they would pay 128."
    assert found.explain(6).endswith(said)


def test_an_agent_without_which_the_others_fail_is_named_in_short_sentences():
    game = LinearGame([[1, 0], [0.5, 1]], [10, 10], agents=["City", "Rural"], limits=[20, 5])
    notes = " ".join(share_costs(game).notes)
    lost = "There are no marginal shares. The others cannot reach their requirements without City."
    assert f"{lost} So City could ask for any amount." in notes
    assert "Rural cannot reach its requirement alone, so its cost alone is not defined." in notes


def test_what_a_group_saves_by_leaving_is_said_in_a_sentence():
    found = share_costs(LinearGame(np.eye(2), [10, 20]))
    charges = found.prices.charges / 1.001
    prices = dataclasses.replace(found.prices, exact=False, charges=charges)
    contract = dataclasses.replace(found.contracts["prices"], closest=None)
    some = dataclasses.replace(found, prices=prices, contracts={"prices": contract})
    said = "No group of agents saves more than 0.1 % of its cost by leaving."
    assert some.promise == f"The payments add up to zero. {said}"


def test_a_table_of_payments_has_no_dust_of_additions(tmp_path):
    found = share_costs(LinearGame([[1, 0], [0, 1]], [0.1 + 0.2, 1], agents=["A", "B"]))
    # A plan that additions left a little above three tenths.
    assert found.contributions.tolist() == [0.1 + 0.2, 1]
    found.save(tmp_path / "payments.csv")
    rows = (tmp_path / "payments.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[1] for row in rows[1:]] == ["0.3", "1.0"]


def test_a_funder_that_adds_more_than_the_plan_costs():
    found = share_costs(LinearGame([[1, 0.5], [0.5, 1]], [100, 100]))
    marginal = found.contracts["marginal"]
    total = found.prices.total
    for deficit, said in (
        (
            0.5 * total,
            f"has to pay {found.write(0.5 * total)} of the total cost of {found.write(total)}.",
        ),
        (4.0 * total, f"has to pay {found.write(4 * total)}, more than the plan costs "),
    ):
        contract = dataclasses.replace(marginal, deficit=deficit)
        assert said in describe_contract(found, contract)


def test_what_rounding_leaves_over_is_no_money():
    # Southport adds nothing: the others cost the same with it and without it, but for rounding.
    benefits = [
        [1, 0.3, 0.2, 0.5, 0.4],
        [0.8, 1, 0.1, 0.2, 0.3],
        [0.7, 0.1, 1, 0.3, 0.2],
        [0.75, 0.2, 0.3, 1, 0.6],
        [0.6, 0.2, 0.1, 0.5, 1],
    ]
    found = share_costs(LinearGame(benefits, [600, 1000, 800, 900, 400]))
    for contract in found.contracts.values():
        for amounts in (contract.shares.values, contract.payments.values):
            assert not ((amounts != 0) & (np.abs(amounts) < 1e-6)).any(), contract.rule
    assert found.contracts["marginal"].shares.values[2] == 0
