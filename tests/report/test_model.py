"""Tables and pages as data: what each place shows, what is refused, how pages are joined."""

import math

import numpy as np
import pytest

from fedaccord.errors import InputError
from fedaccord.report.model import (
    Column,
    Estimated,
    Listing,
    Mark,
    Page,
    Picture,
    Records,
    Section,
    Table,
    choose_rows,
    joined,
    name_rows,
)

DATA = Table("numbers", ("a", "b"), ((1, 2),))


def picture(name):
    return Picture(name, "title", "alt", lambda ax: ax, DATA)


def page(title, *parts, facts=()):
    return Page(title, f"verdict of {title}", "good", (Section("heading", parts),), facts)


def test_pictures_are_listed_in_order_from_every_level():
    inner = Section("inner", ("text", picture("b")))
    whole = page("t", picture("a"), inner, Listing(("x",)), picture("c"))
    assert [found.name for found in whole.pictures()] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["", "a b", "../etc", "a.svg", "é", '"', "-a", "a/b"])
def test_a_picture_whose_name_cannot_be_a_files_is_refused(name):
    with pytest.raises(InputError, match="goes into names of files"):
        picture(name)


def test_two_pictures_of_one_name_are_refused():
    with pytest.raises(InputError, match="two pictures of this page are named b"):
        page("t", picture("a"), picture("b"), Section("s", (picture("b"),)))


def test_a_row_with_more_cells_than_columns_is_refused_and_a_shorter_one_is_not():
    with pytest.raises(InputError, match='the table "sums" has 2 columns, and a row of 3 cells'):
        Table("sums", ("a", "b"), (), ((1, 2, 3),))
    assert Table("sums", ("a", "b"), ((1,),)).rows == ((1,),)


def test_pages_joined_keep_their_verdicts_facts_and_every_picture():
    facts = (("Seed", "7"), ("Versions", "x"))
    first = page("one", picture("curve"), facts=facts)
    second = page("two", picture("curve"), Section("deep", (picture("curve-2"),)), facts=facts)
    whole = joined("all", "well", "good", pages=[first, second], command="make demo")
    assert [section.heading for section in whole.sections] == ["one", "two"]
    assert whole.sections[0].parts[0] == Mark("verdict of one", "good")
    names = [found.name for found in whole.pictures()]
    assert names[0] == "curve"
    assert len(set(names)) == 3
    assert whole.facts == facts
    assert whole.command == "make demo"


def test_facts_of_joined_pages_say_which_page_they_are_about_unless_shared():
    first = page("one", facts=(("Seed", "none"), ("Rounds", "4"), ("Date", "today")))
    second = page("two", facts=(("Seed", "7"), ("Date", "today")))
    whole = joined("all", "well", "good", pages=[first, second], names=("Plan", "Audit"))
    assert whole.facts == (
        ("Plan: Seed", "none"),
        ("Plan: Rounds", "4"),
        ("Audit: Seed", "7"),
        ("Date", "today"),
    )
    assert joined("all", "well", "good", pages=[first, second]).facts[0] == ("one: Seed", "none")
    assert joined("all", "well", "good", pages=[first]).facts == first.facts
    with pytest.raises(InputError, match="2 pages and 1 names"):
        joined("all", "well", "good", pages=[first, second], names=("Plan",))


def test_a_page_for_a_folder_that_is_not_there_is_refused_with_its_name(tmp_path):
    with pytest.raises(InputError, match=r"x\.html: the folder .*none does not exist; make it"):
        page("t").save(tmp_path / "none" / "x.html")


# One definition of a table, for a terminal and for a page.


def records() -> Records:
    shares = [Estimated(20.4, 10.0, math.inf), Estimated(5.25), Estimated(None)]
    return Records(
        "Shares",
        (
            *name_rows("abc".__getitem__, terminal=("sum",), page=("all",), rest="and 1 other"),
            Column("share", shares.__getitem__, sums=(Estimated(25.65, 1.0, 2.0),),
                   ends=("from", "to"), write="{:.0f}".format, trim=round),
            Column("reached", lambda n: Mark("yes", "good"), short="ok"),
            Column("note", lambda n: f"note {n}", where="page"),
        ),
        page=(0, 1, 2),
        terminal=(1, 0),
    )  # fmt: skip


def test_a_page_has_columns_for_the_ends_of_intervals() -> None:
    table = records().table("page")
    assert table.columns == ("agent", "share", "from", "to", "reached", "note")
    yes = Mark("yes", "good")
    assert table.rows == (
        ("a", 20, 10, "no bound", yes, "note 0"),
        ("b", 5, None, None, yes, "note 1"),
        ("c", None, None, None, yes, "note 2"),
    )
    assert table.footer == (("all", 26, 1, 2),)


def test_a_terminal_has_the_ends_of_intervals_in_brackets() -> None:
    table = records().table("terminal")
    assert table.columns == ("agent", "share", "ok")
    assert table.rows == (
        ("b", "5", "yes"),
        ("a", "20 [10, ∞]", "yes"),
        (Mark("and 1 other", "plain"), "", ""),
    )
    assert table.footer == (("sum", "26 [1, 2]"),)


def test_marks_keep_their_tone_on_a_terminal_where_a_column_is_coloured() -> None:
    column = Column("reached", lambda n: Mark("no", "bad"), coloured=True)
    assert Records("", (column,), (), (0,)).table("terminal").rows == ((Mark("no", "bad"),),)


def test_of_many_things_those_with_the_largest_weights_are_listed() -> None:
    weights = np.array([1.0, 3.0, 2.0, 3.0])
    assert choose_rows(weights, most=4, few=2) == [0, 1, 2, 3]
    assert choose_rows(weights, most=3, few=2) == [1, 3]
    assert choose_rows(np.arange(1000.0), most=30, few=2) == [999, 998]


def test_a_row_of_sums_that_a_column_does_not_have_is_empty_there() -> None:
    counts = Column("gives", float, sums=(4.0, 12.0))
    chance = Column("P(goal)", float, sums=(0.95,))
    names = Column("agent", str, sums=("all", "total cost"))
    table = Records("caption", (names, counts, chance), [3, 1]).table("terminal")
    assert table.footer == (("all", "4", "0.95"), ("total cost", "12", ""))
    assert Records("caption", (names, chance), [3]).table("page").footer[1] == ("total cost", None)
