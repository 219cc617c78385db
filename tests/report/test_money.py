"""Tables, sentences and pages on who pays whom and who should federate with whom."""

from dataclasses import replace

import numpy as np
import pytest

from fedaccord import (
    CoalitionTable,
    LinearGame,
    find_coalitions,
    share_costs,
    tabulate_coalitions,
    tabulate_mean_estimation,
)
from fedaccord.games.chances import Estimates
from fedaccord.games.goals import Goal, GoalsGame
from fedaccord.report.coalitions import (
    coalitions_page,
    judge_coalitions,
    list_gains,
    list_groupings,
    list_pairs,
    show_coalitions,
)
from fedaccord.report.model import Mark, Table
from fedaccord.report.sharing import (
    CHOICES,
    RULES,
    advise_contract,
    describe_contract,
    describe_splitting,
    judge_shares,
    list_payments,
    share_page,
    show_shares,
)
from fedaccord.sharing.result import Unserved

CHAIN = LinearGame([[1, 1, 0], [0, 1, 0], [1, 0, 1]], [6, 12, 6], agents=["A", "B", "C"])


def texts(parts):
    """Return the sentences among what a terminal shows."""
    return [p.text if isinstance(p, Mark) else p for p in parts if not isinstance(p, Table)]


def test_a_group_that_shapley_shares_drive_out_is_named():
    found = share_costs(CHAIN)
    said = describe_contract(found, found.contracts["shapley"])
    assert "It drives a group out: A and B bear 13 and would pay 12 without the others." in said
    assert said in texts(show_shares(found))
    assert any("appearing as two" in line for line in describe_splitting(found))


def test_a_table_of_payments_adds_up():
    table = list_payments(share_costs(CHAIN)).table("page")
    columns = {head: n for n, head in enumerate(table.columns)}
    paid = [row[columns["pays"]] for row in table.rows]
    assert sum(paid) == pytest.approx(0, abs=1e-9)
    assert table.footer[0][columns["bears in all"]] == pytest.approx(18)


def test_many_agents_are_cut_on_a_terminal_and_whole_on_a_page():
    game = LinearGame(np.eye(100) + 0.1, np.linspace(1, 9, 100))
    found = share_costs(game)
    records = list_payments(found)
    assert len(records.table("terminal").rows) == 15 and len(records.table("page").rows) == 100
    assert judge_shares(found) == "plain"
    assert "agent 99" in share_page(found).html()
    assert not any(line.startswith("agent 99 gives") for line in texts(show_shares(found)))


def test_whole_samples_are_no_clean_proof():
    found = share_costs(LinearGame([[1, 0], [0, 1]], [1.5, 1.5], strategies="integer"))
    assert judge_shares(found) == "unsure"
    assert "to within 33 %" in dict(share_page(found).facts)["Proof"]


def test_whole_samples_are_proved_where_every_group_still_saves():
    found = share_costs(LinearGame([[1, 0.5], [0.5, 1]], [10, 10], strategies="integer"))
    assert found.contributions.tolist() == [7, 7] and found.payments.tolist() == [0, 0]
    assert judge_shares(found) == "plain"
    assert "every group" in dict(share_page(found).facts)["Proof"]


def test_payments_without_intervals_are_not_called_all_well():
    goals = [Goal(i, "AUC", CHAIN.benefits[i], float(CHAIN.requirements[i])) for i in range(3)]
    for game in (CHAIN, GoalsGame(goals)):
        found = share_costs(game)
        assert found.contracts["prices"].payments.low is None
        page = share_page(found)
        assert page.tone == "plain" and "All is well" not in page.html()
        assert any("was not examined" in line for line in texts(show_shares(found)))
        assert any("was not examined" in note for note in found.to_dict()["notes"])
    prices = found.contracts["prices"]
    ends = prices.payments.values - 0.1, prices.payments.values + 0.1
    known = replace(prices, payments=Estimates(prices.payments.values, *ends))
    assert judge_shares(replace(found, contracts={**found.contracts, "prices": known})) == "good"


def test_payments_of_both_signs_are_a_doubt():
    found = share_costs(CHAIN)
    assert judge_shares(found) == "plain"
    prices, ends = found.contracts["prices"], np.full(3, 50.0)
    wide = replace(prices, payments=Estimates(prices.payments.values, -ends, ends))
    doubtful = replace(found, contracts={**found.contracts, "prices": wide})
    assert judge_shares(doubtful) == "unsure"
    assert doubtful.verdict.startswith("The pilots do not yet show which agents pay")
    assert doubtful.to_dict()["doubts"] == [doubtful.verdict]
    assert found.to_dict()["doubts"] == []
    assert share_page(doubtful).tone == "unsure" and found.promise in share_page(doubtful).html()
    # One agent that surely pays is enough to agree on who pays.
    sure = Estimates(prices.payments.values, np.array([1.0, -50, -50]), ends)
    known = replace(found, contracts={**found.contracts, "prices": replace(prices, payments=sure)})
    assert known.verdict == found.promise


def test_the_group_that_saves_least_is_named():
    found = share_costs(LinearGame([[1, 0.5], [0.5, 1]], [10, 8], agents=["A", "B"]))
    # Alone A pays 10 and B 8; the prices are 2/3, so A bears 6.67 and B 5.33.
    assert "Every group saves by staying. B saves least: 2.67." in describe_contract(
        found, found.contracts["prices"]
    )
    shown = list(show_shares(found))
    lines = [part for part in shown if isinstance(part, str)]
    # Each table has its title above it.
    titles = [shown[n - 1] for n, part in enumerate(shown) if isinstance(part, Table)]
    assert titles[0] == "Who pays whom:" and all(title.endswith(":") for title in titles)
    heads = next(part.columns for part in shown if isinstance(part, Table))
    assert "pays alone" in heads
    assert "would pay 10 alone" in found.explain(0)
    assert any(line.startswith("The unit of money is the cost of one sample.") for line in lines)
    # Each contract that is listed has its reason to take it, and no other has.
    advice = advise_contract(found)
    assert advice in lines and advice.count("Take ") == len(found.contracts) - 1
    assert set(RULES) == set(CHOICES)


def chase(members):
    """Return costs of three agents that each prefer the next to the one before."""
    table = {(0, 1): [1, 2], (1, 2): [1, 2], (0, 2): [2, 1], (0, 1, 2): [4, 4, 4]}
    return table.get(members, [3])


def test_pairs_are_compared_with_now():
    found = find_coalitions(
        LinearGame([[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]], [12] * 3, agents=["A", "B", "C"])
    )
    # Each gives 12 / 2 with all together, and 12 / 1.5 as one of a pair.
    table = list_pairs(found).table("terminal")
    assert table.rows[1] == ("A and C", "8 and 8", "6 and 6", "no")
    assert len(table.rows) == 3 and table in [*show_coalitions(found)]
    assert "A and C" in coalitions_page(found, CHAIN).html()


def test_names_of_a_grouping_stay_whole_on_a_terminal():
    names = [f"The hospital of the far town number {n}" for n in range(4)]
    found = find_coalitions(LinearGame(np.eye(4) + 0.5, [12] * 4, agents=names))
    lines = texts(show_coalitions(found))
    assert any(line.startswith("Grouping 1: ") and all(n in line for n in names) for line in lines)
    assert any("Core-stable: no group" in line for line in lines)


def test_a_cycle_is_shown():
    found = find_coalitions(tabulate_coalitions(3, chase, agents=["A", "B", "C"]))
    assert judge_coalitions(found) == "bad"
    lines = texts(show_coalitions(found))
    assert "From A and B; C: B and C would leave and form a coalition." in lines
    page = coalitions_page(found, CHAIN)
    assert [section.heading for section in page.sections][-1] == "Why none holds"
    assert page.tone == "bad"


def test_groupings_are_listed_with_both_kinds_of_stability():
    found = find_coalitions(tabulate_mean_estimation([5, 5, 10, 15], agents=list("ABCD")))
    rows = list_groupings(found).table("page").rows
    assert [row[2:] for row in rows] == [("yes", "yes"), ("no", "yes")]
    assert rows[0][0] == "A, B and C; D"
    gains = list_gains(found).table("terminal")
    assert gains.rows[3][1] == "2"
    assert "Coalition 2: D." in texts(show_coalitions(found))


def test_very_many_groupings_are_counted_and_cut():
    found = find_coalitions(CoalitionTable(np.ones((2**8, 8))))
    assert found.core_count == 4140 and len(found.core) == 1000
    assert len(list_groupings(found).table("terminal").rows) == 8
    assert any("4,140 groupings are core-stable" in str(line) for line in show_coalitions(found))
    # Of groupings that are not all known, no price is told.
    assert found.price_of_anarchy is None


def test_notebooks_show_both_results():
    pytest.importorskip("pandas")
    shares, coalitions = share_costs(CHAIN), find_coalitions(CHAIN)
    assert "pays" in shares._repr_html_() and shares.to_frame()["pays"].sum() == 0
    assert "coalition" in coalitions._repr_html_() and len(coalitions.to_frame()) == 3


def test_payments_are_not_certain_if_many_worlds_have_no_plan():
    sure = share_costs(CHAIN)
    for worlds, certain in ((10, True), (153, False)):
        found = replace(sure, unserved=Unserved(worlds, 200))
        assert found.is_certain is certain
        assert ("In 153 of 200 resamples" in found.verdict) is not certain
        assert certain or (judge_shares(found) == "unsure" and share_page(found).tone == "unsure")
        assert certain or "counts goals, not targets" in found.verdict
        assert bool(found.to_dict()["doubts"]) is not certain


def test_payments_repeat_the_doubts_of_the_game():
    found = replace(share_costs(CHAIN), doubts=("The curve of A does not fit.",))
    said = Mark("Doubt: The curve of A does not fit.", "unsure")
    assert said in list(show_shares(found)) and judge_shares(found) == "unsure"
    assert said in share_page(found).sections[0].parts
    assert "The curve of A does not fit." in found.to_dict()["doubts"]


def test_an_agent_whose_limit_is_too_low_alone_is_told_so_and_columns_of_dashes_go():
    benefits = [[1, 0.9], [0.9, 1]]
    short = LinearGame(benefits, [10, 10], agents=["A", "B"], limits=[6, 6])
    said = "Alone, within its limit of 6, it could not reach its requirement."
    found, groups = share_costs(short), find_coalitions(short)
    for one in (found, groups):
        assert said in one.explain(0)
    for records, gone in ((list_payments(found), "alone"), (list_gains(groups), "on its own")):
        for place in ("terminal", "page"):
            assert not any(gone in head for head in records.table(place).columns)
    free = LinearGame(benefits, [10, 10], agents=["A", "B"])
    assert any("alone" in head for head in list_payments(share_costs(free)).table("page").columns)
    assert "could not reach" not in share_costs(free).explain(0)
