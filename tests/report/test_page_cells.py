"""Cells: written alike in a column, in full in the CSV, and never a formula."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.report.html import lay_out, table_csv
from fedaccord.report.model import Column, Mark, Probability, Records, Table
from fedaccord.wording import format_short_probability


def column(*cells, footer=()):
    table = Table("c", ("name", "v"), tuple(("row", cell) for cell in cells), footer)
    return lay_out(table)


def texts(*cells):
    return [row[1].text for row in column(*cells).rows]


def test_the_numbers_of_a_column_have_as_many_digits_behind_the_point():
    assert texts(1228.125, 703.1, 0) == ["1,228.1", "703.1", "0.0"]
    assert texts(1440, 300.0) == ["1,440", "300"]
    assert texts(0.4998231, 0.49) == ["0.49982", "0.49000"]
    assert texts(123456.7, 2.0) == ["123,457", "2"]
    assert texts(-2.5, 1) == ["−2.5", "1.0"]


def test_what_would_be_written_as_nothing_is_written_with_a_power():
    assert texts(10000, 1e-7) == ["10,000", "1e−07"]
    assert texts(1e20) == ["1e+20"]


def test_gaps_infinities_and_numbers_of_numpy_are_written():
    assert texts(None, math.nan, math.inf, -math.inf) == ["–", "–", "∞", "−∞"]
    assert texts(np.float32(0.5), np.int64(3)) == ["0.5", "3.0"]


def test_a_probability_on_a_page_reads_as_on_a_terminal_and_sorts_in_full():
    cells = [Probability(value) for value in (0.9963, 0.9996, 1.0, 0.95014, 0.004, 0.0)]
    assert texts(*cells) == ["> 0.99", "> 0.99", "1.00", "0.95", "< 0.01", "0.00"]
    shown = column(*cells)
    assert shown.kinds[1] == "number"
    assert [row[1].key for row in shown.rows[:2]] == ["0.9963", "0.9996"]
    chance = Column("P(goal)", lambda n: 0.99964, write=format_short_probability, trim=round)
    laid = lay_out(Records("c", (Column("name", str), chance), [0]).table("page"))
    assert laid.rows[0][1].text == "> 0.99"


def test_minus_nothing_is_nothing():
    assert texts(-0.0, 983.0) == ["0", "983"]


def test_a_cell_keeps_what_it_is_sorted_by_only_where_that_is_not_to_be_seen():
    first, second = (row[1] for row in column(1228.1254, 3.0).rows)
    assert first.key == "1228.1254"
    assert second.key == ""


def test_kinds_of_columns():
    def kind(*cells):
        return column(*cells).kinds[1]

    assert kind(1, 2.5, None) == "number"
    assert kind(1, 2, "none") == "number"
    assert kind("a", "b") == "short"
    assert kind("twenty letters, about") == "text"
    assert kind(Mark("x" * 35, "bad")) == "text"
    assert kind("word " * 20, 3) == "words"


def test_the_ends_of_an_interval_have_as_many_digits_as_its_number():
    heads = ("name", "pays", "pays, from", "pays, to", "gives")
    laid = lay_out(Table("c", heads, (("a", 597.1, -1.572, 1673.42, 0.125),)))
    assert [cell.text for cell in laid.rows[0]] == ["a", "597.1", "−1.6", "1,673.4", "0.125"]
    laid = lay_out(Table("c", heads[:4], (("a", 0.25, 0.125, math.inf),)))
    assert [cell.text for cell in laid.rows[0]] == ["a", "0.250", "0.125", "∞"]


def test_short_rows_are_filled_and_gaps_in_sums_are_not_marked():
    laid = lay_out(Table("c", ("name", "v", "w"), (("a",),), (("all", 3.0),)))
    assert [cell.text for cell in laid.rows[0]] == ["a", "–", "–"]
    assert [cell.text for cell in laid.footer[0]] == ["all", "3", ""]


def read(table):
    return list(csv.reader(io.StringIO(table_csv(table))))


def test_the_csv_has_every_number_in_full_and_the_sums():
    third = 1 / 3
    table = Table(
        "c", ("n", "v"), (("a", third), ("b", 10**17), ("c", None)), (("all", np.int64(4)),)
    )
    assert read(table) == [
        ["n", "v"],
        ["a", repr(third)],
        ["b", "1" + 17 * "0"],
        ["c", ""],
        ["all", "4"],
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "＝", "-1+1"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(start):
    rows = read(Table(start + "1", (start + "h",), ((start + "cmd|calc",), (Mark(start, "bad"),))))
    assert all(row[0].startswith("'") for row in rows)


def test_negative_numbers_and_common_names_get_none():
    rows = read(Table("c", ("n", "v"), (("St. Mary's = best", -1.5), ("a@b", -7))))
    assert rows[1:] == [["St. Mary's = best", "-1.5"], ["a@b", "-7"]]


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=8))
def test_any_numbers_are_written_and_read_back_from_the_csv(numbers):
    table = Table("c", ("v",), tuple((number,) for number in numbers))
    assert [float(row[0]) for row in read(table)[1:]] == numbers
    assert all(cell.text for row in lay_out(table).rows for cell in row)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_comes_back_from_the_csv(text):
    found = read(Table("c", ("n", "v"), ((text, 1),)))[1][0]
    assert found.removeprefix("'") == text.replace("\0", "").removeprefix("'")
