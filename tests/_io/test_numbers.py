"""Numbers in tables: read where they can mean one thing, refused with a remedy where not."""

import re

import pytest

from fedaccord._io.numbers import Marks, read_number, read_share
from fedaccord.errors import InputError

NONE = Marks()
POINT = Marks({".": ("decimals", "x")}, {"here"})
COMMA = Marks({",": ("decimals", "x")})


@pytest.mark.parametrize(
    ("text", "marks", "kind", "value"),
    [
        ("1 500", NONE, "count", 1500),
        ("1\u00a0500", NONE, "count", 1500),
        ("1\u202f500,5", NONE, "amount", 1500.5),
        ("\u200b1500", NONE, "count", 1500),
        ("1'500", NONE, "count", 1500),
        ("1’500", NONE, "count", 1500),
        ("1.500.000", NONE, "count", 1_500_000),
        ("1.500,25", NONE, "amount", 1500.25),
        ("1,500.25", NONE, "amount", 1500.25),
        ("0.500", NONE, "amount", 0.5),
        ("0,500", NONE, "amount", 0.5),
        ("1500,5", NONE, "amount", 1500.5),
        ("1.5000", NONE, "amount", 1.5),
        ("1.500", COMMA, "count", 1500),
        ("1.500", POINT, "amount", 1.5),
        ("1,500", POINT, "count", 1500),
        ("1,000", NONE, "share", 1),
        ("-5", NONE, "count", -5),
        ("1e3", NONE, "count", 1000),
        ("2/4", NONE, "amount", 0.5),
        # A count is whole, and 1.5 is not.
        ("1.500", NONE, "count", 1500),
    ],
)
def test_a_number_is_read_where_it_can_mean_one_thing(text, marks, kind, value):
    assert read_number(text, "the cell", marks, kind=kind, column="here") == value


@pytest.mark.parametrize(
    ("text", "marks", "kind", "said"),
    [
        ("1.000", NONE, "count", "can be 1000 or 1: write 1000$"),
        ("1,000", COMMA, "count", "can be 1000 or 1: write 1000$"),
        # The file writes decimals with this mark, so thousands would contradict it.
        ("1.500", POINT, "count", "a point for decimals: write 1500, or the whole number"),
        ("2,400", COMMA, "count", "a comma for decimals: write 2400, or the whole number"),
        ("88 percent", NONE, "share", "write 0.88$"),
        ("917 per mille", NONE, "share", "write 0.917$"),
        ("O.88", NONE, "share", "a letter in place of a digit; write 0.88 if that is meant$"),
        ("l5OO", NONE, "count", "a letter in place of a digit; write 1500 if that is meant$"),
        ("0.88 ± 0.01", NONE, "share", "write the number alone, as 0.88$"),
        ("1.500", NONE, "amount", "can be 1500 or 1.5: write 1500 or 1.5$"),
        ("1.525", NONE, "amount", "can be 1525 or 1.525: write 1525 or 1.5250$"),
        ("1.50.000", NONE, "count", "a point for decimals and no separators"),
        ("1 50", NONE, "count", "a point for decimals and no separators"),
        ("many", NONE, "count", "or leave the cell empty"),
        ("ca. 90", NONE, "count", "write the number alone, as 90$"),
        ("0.872 (by mail)", NONE, "share", "write the number alone, as 0.872$"),
        ("<0,9", NONE, "share", "a bound cannot be used"),
        ("2.4k", NONE, "count", ": write 2400$"),
        ("2,4 K", NONE, "count", ": write 2400$"),
        ("12 Tsd.", NONE, "count", ": write 12000$"),
        ("1.2M", NONE, "count", ": write 1200000$"),
        # In another country it would be 1234 thousand.
        ("1.234k", NONE, "count", ": write it in full$"),
        ("917‰", NONE, "share", r": write 0\.917$"),
        ("91,7\u00a0‰", NONE, "share", r": write 0\.0917$"),
        ("03.04.2026", NONE, "count", "it is a date; format the cell as a number"),
        ("3/4/26", NONE, "count", "it is a date"),
        ("2026-04-03", NONE, "count", "it is a date"),
        ("Apr 03", NONE, "count", "it is a date"),
        ("3. Mai", NONE, "amount", "it is a date"),
        ("inf", NONE, "amount", "write a number"),
        ("nan", NONE, "amount", "write a number"),
        ("#DIV/0!", NONE, "count", "an error of the spreadsheet; correct its formula"),
        ("<0.8", NONE, "share", "a bound cannot be used; write .* or leave the cell empty$"),
        ("≥ 90 %", NONE, "share", "a bound cannot be used"),
        ("0.872 (0.85-0.89)", NONE, "share", r"write the number alone, as 0\.872$"),
        ("0,872 [0,85; 0,89]", NONE, "share", r"write the number alone, as 0\.872$"),
        ("<11", NONE, "count", "withheld cannot be used here; write the number itself"),
    ],
)
def test_what_can_mean_two_things_or_nothing_gets_a_remedy(text, marks, kind, said):
    with pytest.raises(InputError, match=rf'^the cell reads "{re.escape(text)}".*{said}'):
        read_number(text, "the cell", marks, kind=kind, column="limit")


def test_a_contribution_is_never_to_be_left_empty():
    with pytest.raises(InputError, match=r"write a number \(0 if there is none\)$"):
        read_number("many", "the cell", NONE, kind="count", column="contribution")


def test_an_accuracy_that_is_a_word_may_be_a_run_that_failed():
    with pytest.raises(InputError, match='or "failed" where training failed'):
        read_share("fehlgeschlagen", "the cell", NONE, column="accuracy")


def test_a_share_below_one_per_cent_is_refused():
    assert read_share("87.4 %", "the cell", NONE) == 0.874
    assert read_share("0 %", "the cell", NONE) == 0
    with pytest.raises(InputError, match=r"less than one in a hundred: write 85 % or 0\.85$"):
        read_share("0.85 %", "the cell", NONE)
