"""Tables of pilots to fill in: who takes part, what is written, and what goes into a plan."""

import numpy as np
import pytest

from fedaccord._io.table import read_rows
from fedaccord.errors import InputError
from fedaccord.measurement.design import pilot_design
from fedaccord.measurement.pilots import PilotTable, continue_names
from fedaccord.measurement.to_run import Members, PilotList


def members(folder, text, name="members.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return Members.from_rows(read_rows(path))


# Who takes part.


def test_agents_are_named_with_what_they_have():
    found = Members.from_text("City=1200, Rural = 800,St. Ann=0")
    assert found.agents == ("City", "Rural", "St. Ann")
    assert found.limits.tolist() == [1200, 800, 0]
    assert np.isnan(found.goals).all()


def test_agents_are_split_at_semicolons_too():
    found = Members.from_text("Küstenklinik=1200;Köln=900")
    assert found.agents == ("Küstenklinik", "Köln")
    assert found.limits.tolist() == [1200, 900]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("City,Rural", '"City" does not read NAME=SAMPLES: write the agents as City=1200'),
        ("City=1,200,Rural=800", '"200" does not read NAME=SAMPLES.*separators'),
        ("City=1.000", "of City .*can be 1000 or 1: write 1000"),
        ("City=12.5", 'of City is "12.5": write a whole number'),
        ("City=-5", 'of City is "-5": write a whole number of 0 or more'),
        ("City=many", 'of City reads "many": write a number'),
        ("City=5,City=6", "City is named twice"),
        ('"House M, Bonn"=1200,b=3', '"House M" does not .*; a name with a comma needs a file'),
        ("=5", '"=5" does not read'),
        ("City=0,Rural=0", "no agent has samples"),
    ],
)
def test_a_list_that_cannot_be_read_is_explained(text, said):
    with pytest.raises(InputError, match=said):
        Members.from_text(text)


def test_histograms_say_what_each_has_unless_a_limit_does(tmp_path):
    text = "agent,clear,ill,limit,goal\nCity,100,<11,,0.8\nRural,50,3,40,\nSpa,0,0,,\n"
    found = members(tmp_path, text)
    assert found.limits.tolist() == [105, 40, 0]
    assert found.goals[0] == 0.8
    assert any("withheld" in note for note in found.notes)
    long = members(tmp_path, "agent,label,count\nCity,clear,7\nCity,ill,5\nSpa,ill,0\n")
    assert long.limits.tolist() == [12, 0]


@pytest.mark.parametrize("heading", ["limit", "cases", "Available", "N", "patients"])
def test_a_list_of_agents_may_call_what_they_have_by_many_names(tmp_path, heading):
    text = f"Hospital;{heading};goal;validation;cost\nCity;1.200;0,85;400;2\nRural;800;;;\n"
    found = members(tmp_path, text)
    assert found.limits.tolist() == [1200, 800]
    assert found.goals[0] == 0.85 and found.validation[0] == 400
    assert found.costs.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent,limit\nCity,\n", "limit of City in line 2 .* is empty: write how many samples"),
        ("agent,limit\nCity,5\nCity,6\n", "line 3 .* is the second of City"),
        (
            "agent,contribution\nCity,5\n",
            "is a table of contributions, and a list of agents is needed",
        ),
        ("agent,limit\nCity,1.5\n", "limit of City in line 2 .* is 1.5: write a whole number"),
        ("agent,limit\nCity,0\n", "no agent has samples"),
    ],
)
def test_a_list_that_lacks_something_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        members(tmp_path, text)


# The table to fill in.


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_table_that_was_filled_in_has_the_design_and_what_was_known(tmp_path, suffix):
    who = Members(
        ["City", "Rural", "Spa"], [1200, 800, 0], goals=[0.85, np.nan, 0.8], costs=[1, 2, 1]
    )
    pilots = PilotList.first(who, 9)
    path = tmp_path / f"pilots.{suffix}"
    pilots.save(path)
    with pytest.raises(InputError, match=r"no pilot .* has an accuracy yet"):
        PilotTable.load(path)
    rows = read_rows(path)
    place = rows.cells[0].index("accuracy")
    for row in rows.cells[1:]:
        row[place] = "0.7"
    table = PilotTable.from_rows(rows)
    assert table.contributions.tolist() == [list(r) for r in pilot_design([1200, 800, 0], budget=9)]
    assert table.limits.tolist() == [1200, 800, 0]
    assert table.costs.tolist() == [1, 2, 1]
    assert table.goals[[0, 2]].tolist() == [0.85, 0.8]
    assert table.notes == ()


def test_one_round_of_the_design_is_for_those_who_give():
    assert len(PilotList.first(Members.from_text("a=5,b=6,c=0"))) == 9


def test_rows_to_append_have_the_columns_of_their_table():
    found = PilotList(
        Members(["City", "Rural"], [10, 20]),
        ((3, 4),),
        ("7",),
        ("Because.",),
        ("Run", "Hospital", "remark", "Cases", "goal", "why"),
    )
    assert found.rows == [
        ["7", "City", "", 3, "", "Because."],
        ["7", "Rural", "", 4, "", ""],
    ]


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (["1", "2", "11"], ("12", "13")),
        (["11", "2"], ("12", "13")),
        (["run 8", "run 9"], ("run 10", "run 11")),
        (["0", "P3"], ("P4", "P5")),
        (["first", "second"], ("3", "4")),
    ],
)
def test_more_pilots_are_numbered_after_those_there_are(names, more):
    assert continue_names(names, 2) == more
