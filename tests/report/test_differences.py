"""Differences between algorithms and levels, on the terminal and on the page."""

from dataclasses import replace

from reading import cells, parts, shown, texts
from training_results import audit, lenient, strict, two_algorithms

from fedaccord.federation.defection.intervals import Difference
from fedaccord.report.defection import compare_with_first, compare_with_full, show_audit
from fedaccord.report.defection_page import audit_page
from fedaccord.report.model import Table


def without_differences(found):
    """The audit as results of before differences were counted have it."""

    def forget(point):
        return replace(point, from_full=None, from_others={})

    curves = (replace(c, levels=tuple(map(forget, c.levels))) for c in found.curves)
    return replace(found, curves=tuple(curves))


def test_algorithms_are_compared_with_the_first():
    """Under MW-FED no defector reaches its goal, and under FedAvg each does: in 20 trials."""
    found = two_algorithms(trials=20)
    table = compare_with_first(found)
    assert table.columns == ("compared with FedAvg", "MW-FED")
    # -1 for 20 trials: -20 / 22 +- 1.96 sqrt(21 / 22 - (20 / 22)^2) / sqrt(22).
    assert table.rows == (
        ("100 %", "0.00 [−0.09,\u00a0+0.09]"),
        ("50 %", "−1.00 [−1.00,\u00a0−0.76]"),
        ("25 %", "−1.00 [−1.00,\u00a0−0.76]"),
    )


def test_levels_are_compared_with_full_contribution():
    table = compare_with_full(two_algorithms(trials=20))
    assert table.columns == ("compared with 100 %", "FedAvg", "MW-FED")
    assert [row[0] for row in table.rows] == ["50 %", "25 %"]
    assert table.rows[0][1].startswith("0.00 [−0.09") and table.rows[0][2].startswith("−1.00")


def test_one_algorithm_and_older_results_have_nothing_to_compare():
    alone = audit({"FedAvg": strict}, names=("north", "south"))
    assert compare_with_first(alone) is None
    assert compare_with_full(audit({"FedAvg": lenient}, names=("north",), levels=(1.0,))) is None
    old = without_differences(two_algorithms())
    assert compare_with_first(old) is None and compare_with_full(old) is None
    assert "compared with" not in str(audit_page(old))


def test_a_plan_that_asks_nothing_of_anybody_leaves_a_dash():
    found = audit({"FedAvg": strict, "MW-FED": strict}, names=("north",), protocol="P2", asked=[0])
    assert {row[1] for row in compare_with_first(found).rows} == {"-"}


def test_the_terminal_and_the_page_have_them():
    found = two_algorithms(trials=20)
    text = "".join(shown(part) for part in show_audit(found) if isinstance(part, Table))
    assert ["25", "%", "−1.00", "[−1.00,", "−0.76]"] in cells(text.replace("\u00a0", " "))
    page = audit_page(found)
    heads = [one.columns[0] for one in parts(page, Table)]
    assert {"compared with FedAvg", "compared with 100 %"} <= set(heads)
    assert "Agresti and Min (2005)" in texts(page)


def test_a_result_that_stopped_early_says_that_its_intervals_hold_at_every_look():
    early, fixed = two_algorithms(width=0.2), two_algorithms()
    assert "intervals in brackets, which hold at every look." in next(iter(show_audit(early)))
    assert "look" not in next(iter(show_audit(fixed)))
    assert "confidence sequences" in texts(audit_page(early))
    assert "Agresti" not in texts(audit_page(early))
    assert "confidence sequences" not in texts(audit_page(fixed))
    assert early.to_dict()["intervals"] == "confidence sequence"
    assert "intervals" not in fixed.to_dict()


def test_an_end_near_zero_does_not_look_like_zero():
    point = two_algorithms(trials=20).curves[1].levels[0]
    found = two_algorithms(trials=20)
    for low, text in ((0.003, "+0.003"), (-0.003, "−0.003"), (0.0, "0.00"), (0.1, "+0.10")):
        near = replace(point, from_others={"FedAvg": Difference(0.05, low, 0.2, 20)})
        curves = (
            found.curves[0],
            replace(found.curves[1], levels=(near, *found.curves[1].levels[1:])),
        )
        table = compare_with_first(replace(found, curves=curves))
        assert f"[{text}," in table.rows[0][1]
