"""Pages as data: what they refuse, and how several become one."""

import pytest

from fedaccord.errors import InputError
from fedaccord.report.model import Listing, Mark, Page, Picture, Section, Table, joined

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
