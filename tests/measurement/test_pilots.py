"""Tables of pilots: read, written, joined; every fault in a file is named in a sentence."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedaccord._io.kinds import PILOTS, PROPOSAL
from fedaccord._io.numbers import Marks, Suspicion, read_number
from fedaccord._io.table import read_rows
from fedaccord.errors import InputError
from fedaccord.measurement.pilots import PilotTable

TEXT = """pilot,agent,contribution,accuracy,goal,validation,limit,cost
1,City,100,0.71,0.8,400,900,2
1,Rural,50,0.62,0.75,,,
2,City,0,,,,,
2,Rural,200,0.7,,,,
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "pilots.csv"
    path.write_text(text, encoding="utf-8")
    return path


def same(one: PilotTable, other: PilotTable) -> bool:
    fields = ("contributions", "accuracies", "goals", "validation", "limits", "minimums", "costs")
    return one.agents == other.agents and all(
        np.array_equal(getattr(one, f), getattr(other, f), equal_nan=True) for f in fields
    )


def test_a_table_is_read_line_by_line(tmp_path: Path) -> None:
    table = PilotTable.load(written(tmp_path, TEXT))
    assert table.agents == ("City", "Rural")
    assert table.contributions.tolist() == [[100, 50], [0, 200]]
    assert table.accuracies[0].tolist() == [0.71, 0.62]
    assert np.isnan(table.accuracies[1, 0])
    assert table.goals.tolist() == [0.8, 0.75]
    assert table.validation[0] == 400
    assert np.isnan(table.validation[1])
    assert table.limits.tolist() == [900, np.inf]
    assert table.costs.tolist() == [2, 1]
    assert table.minimums.tolist() == [0, 0]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace(",", ";"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n") + " , ,,,,,,\n",
        lambda text: text.replace("pilot,agent", "Pilot, AGENT"),
        lambda text: "\n".join(line + ",a remark" for line in text.splitlines()),
    ],
    ids=["BOM", "semicolons", "Windows", "blank lines", "capitals", "another column"],
)
def test_spreadsheets_may_save_it_their_way(tmp_path: Path, change) -> None:
    plain = PilotTable.load(written(tmp_path, TEXT))
    assert same(PilotTable.load(written(tmp_path, change(TEXT))), plain)


def test_a_table_survives_the_round_trip(tmp_path: Path) -> None:
    table = PilotTable(
        ["a, b", "ü"],
        [[3, 0], [5, 7e6]],
        [[0.1, np.nan], [1, 0]],
        goals=[np.nan, 0.9],
        validation=[10, np.nan],
        limits=[np.inf, 8e6],
        minimums=[0, 5],
        costs=[1, 0.1],
    )
    table.save(tmp_path / "t.csv")
    assert same(PilotTable.load(tmp_path / "t.csv"), table)


def test_what_nobody_said_is_not_written(tmp_path: Path) -> None:
    PilotTable(["a"], [[1]], [[0.5]]).save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "pilot,agent,contribution,accuracy\n0,a,1,0.5\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.71", "71", r"City in line 2 of .* is 71: did you mean 0\.71, or 71 %\?"),
        ("100,0.71", "100 %,0.71", "City in line 2.*write a number of samples"),
        ("0.71", "-0.1", "between 0 and 1"),
        ("0.71", "good", "City in line 2.*good"),
        ("0.71", "nan", "City in line 2.*nan"),
        ("1,City,100", "1,City,", "contribution of City in line 2.*write 0"),
        ("1,City,100", "1,City,-5", "contribution of City in line [0-9]+ of .* is negative"),
        ("1,City,100", "1,City,inf", "contribution of City.*inf.*write a number"),
        ("1,City,100", '1,City,"1,700"', "1700, above its limit of 900"),
        ("1,City,100", "1,City,1 700", "1700, above its limit of 900"),
        ("1,City,100", "1,City,1.000", 'reads "1.000", which can be 1000 or 1: write 1000'),
        ("1,City,100", "1,City,10.5", "City in line 2.* is 10.5: write a whole number"),
        ("1,City,100", "1,City,100.0001", r"City in line 2.* is 100\.0001: write a whole number"),
        ("1,City,100", "1,City,80-100", "80-100.: a range cannot be used; write one number"),
        ("0.71", "0.70 – 0.72", "0.72.: a range cannot be used; write one number"),
        ("1,City,100", "1,City,<11", "City in line 2.*<11.*withheld.*the number itself"),
        ("1,City,100", "1,City,#N/A", "City in line 2.*#N/A.*error of the spreadsheet"),
        ("1,City,100", "1,City,901", "City in line 2 of .* is 901, above its limit of 900"),
        ("1,City,100", "1,City,1,700", "line 2 of .* one number .* write 1700"),
        ("2,City,0,,", "2,City,0,,0.9", "goal of City is 0.8 .* 0.9 in line 4"),
        ("0.8,400", "80,400", "did you mean 0.8"),
        ("0.8,400", "1,400", "goal of City in line 2 of .* is 1: .* above 0 and below 1"),
        ("0.8,400", "100 %,400", "goal of City in line 2 of .* is 1: .* above 0 and below 1"),
        ("0.8,400", "0.8,0", "validation of City in line 2 of .* is 0: leave it empty"),
        ("0.71", "0.71 %", "City in line 2 of .* write 71 % or 0.71"),
        ("900,2", "900,0", "cost of City in line 2 .* is 0: give every agent a cost above"),
        ("2,City,0,,,,,\n", "", "pilot 2 .*, from line 4, has no line for City.*contribution 0"),
        (
            "2,Rural",
            "1,Rural",
            "line 5 .* repeats Rural in pilot 1 .first on line 3.*or delete the line",
        ),
        ("2,Rural", "2,", "line 5 .* names no agent"),
        ("2,Rural", ",Rural", "line 5 .* names no pilot"),
        (
            "2,Rural",
            "2,rural",
            "line 5 .* names the agent 'rural' and line 3 'Rural': use the same",
        ),
        ("2,Rural", "2,Rurral", "line 5 .* names Rurral, .* did you mean Rural"),
        ("accuracy", "score", "no column 'accuracy'"),
        ("accuracy", "acuracy", "no column 'accuracy': rename 'acuracy' if that is the column"),
        ("validation", "target", "two columns for the goal, 'goal' and 'target'"),
        ("validation", "goal", "'goal' twice"),
        ("validation", "", "no name"),
    ],
)
def test_every_fault_is_named_with_its_remedy(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=said):
        PilotTable.load(written(tmp_path, TEXT.replace(old, new, 1)))


@pytest.mark.parametrize("cell", ["100.00000000000001", "99.99999999999999"])
def test_what_a_formula_leaves_of_a_whole_number_is_that_number(tmp_path: Path, cell: str) -> None:
    table = PilotTable.load(written(tmp_path, TEXT.replace("1,City,100", f"1,City,{cell}", 1)))
    assert table.contributions[0, 0] == 100


def test_an_accuracy_without_any_error_is_read_with_a_note(tmp_path: Path) -> None:
    table = PilotTable.load(written(tmp_path, TEXT.replace("0.71", "1", 1)))
    assert table.accuracies[0, 0] == 1
    assert any("accuracy of City in line 2" in note and " is 1: " in note for note in table.notes)


def test_parts_of_what_agents_have_are_not_taken_for_numbers_of_samples(tmp_path: Path) -> None:
    text = "pilot,agent,contribution,accuracy\n1,a,0.1,0.6\n2,a,1,0.8\n"
    with pytest.raises(InputError, match="write how many samples it gave"):
        PilotTable.load(written(tmp_path, text))
    with pytest.raises(InputError, match=r"no contribution in .* more than one sample"):
        PilotTable.load(written(tmp_path, text.replace("0.1,", "0,")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("pilot,agent,contribution,accuracy\n", "pilot,agent,contribution,accuracy"),
    ],
)
def test_an_empty_file_is_called_empty(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        PilotTable.load(written(tmp_path, text))


@pytest.mark.parametrize("text", ["0.1", "1700", "0.30000000000000004", "9" * 30, "1/3", "+2e-5"])
def test_a_cell_is_read_to_the_nearest_number(text: str) -> None:
    assert read_number(text, "a cell", Marks()) == float(Fraction(text))


def test_tables_are_told_by_their_first_line(tmp_path: Path) -> None:
    assert read_rows(written(tmp_path, TEXT)).kind is PILOTS
    assert read_rows(written(tmp_path, TEXT.upper())).kind is PILOTS
    assert read_rows(written(tmp_path, "agent,contribution\na,1\n")).kind is PROPOSAL
    assert read_rows(written(tmp_path, "who,size\na,1\n")).kind is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agents": ["a", "a"]}, "two agents are called 'a'"),
        ({"agents": ["a", " "]}, "blank"),
        ({"agents": "ab"}, "list of names"),
        ({"contributions": [[1, 2, 3]]}, "2 columns"),
        ({"accuracies": [[0.5, 0.5], [0.5, 0.5]]}, r"shape of the contributions, \(1, 2\)"),
        ({"contributions": np.zeros((0, 2)), "accuracies": np.zeros((0, 2))}, "no pilots"),
        ({"accuracies": [[0.5, 85]]}, "b in pilot 0 is 85: did you mean 0.85"),
        ({"goals": [0.5]}, "2 numbers"),
        ({"limits": [5, np.nan]}, "limit of b is not a number"),
        ({"limits": [5, 9], "minimums": [6, 0]}, "a has a minimum above its limit"),
    ],
)
def test_tables_are_checked_when_they_are_made(given, said: str) -> None:
    right = {"agents": ["a", "b"], "contributions": [[1, 2]], "accuracies": [[0.5, 0.6]]}
    PilotTable(**right)
    with pytest.raises(InputError, match=said):
        PilotTable(**{**right, **given})


def test_goals_can_be_given_later() -> None:
    table = PilotTable(["a", "b"], [[1, 2]], [[0.5, 0.6]], goals=[0.7, np.nan])
    assert not table.has_goals
    assert table.with_goals({"b": 0.6}).goals.tolist() == [0.7, 0.6]
    assert table.with_goals(0.5).goals.tolist() == [0.5, 0.5]
    assert table.with_goals([0.3, 0.4]).has_goals
    with pytest.raises(InputError, match=r"B is not among .* did you mean b"):
        table.with_goals({"B": 0.6})
    with pytest.raises(InputError, match=r"did you mean 0\.9"):
        table.with_goals(90)


def test_joined_tables_match_agents_by_name_and_keep_what_one_of_them_knows() -> None:
    one = PilotTable(["a", "b"], [[1, 2]], [[0.1, 0.2]], goals=[0.7, np.nan], limits=[5, np.inf])
    two = PilotTable(["b", "a"], [[4, 3]], [[0.4, 0.3]], goals=[0.6, np.nan], costs=[3, 1])
    both = one.joined(two)
    assert both.agents == ("a", "b")
    assert both.contributions.tolist() == [[1, 2], [3, 4]]
    assert both.accuracies.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert both.goals.tolist() == [0.7, 0.6]
    assert both.limits.tolist() == [5, np.inf]
    assert both.costs.tolist() == [1, 3]


def test_tables_that_contradict_each_other_are_not_joined() -> None:
    one = PilotTable(["a"], [[1]], [[0.1]], goals=[0.7])
    with pytest.raises(InputError, match=r"a has 0\.7 among the goals .* 0\.8 in the other"):
        one.joined(PilotTable(["a"], [[1]], [[0.1]], goals=[0.8]))
    with pytest.raises(InputError, match="b is in one table"):
        one.joined(PilotTable(["a", "b"], [[1, 1]], [[0.1, 0.1]]))


def test_a_table_cannot_be_changed() -> None:
    table = PilotTable(["a"], [[1]], [[0.1]])
    with pytest.raises(ValueError, match="read-only"):
        table.contributions[0, 0] = 5
    with pytest.raises(AttributeError):
        table.agents = ("b",)


# Tables that are being filled in.

HALF = """pilot,agent,contribution,accuracy,goal
1,City,100,,0.8
1,Rural,50,,0.75
2,City,0,0.6,
2,Rural,200,0.7,
3,City,40,,
3,Rural,20,0.5,
4,City,70,failed,
4,Rural,30,Failed,
5,City,10,,
5,Rural,10,,
"""


def test_pilots_that_were_not_run_yet_are_left_out_and_their_goals_count(tmp_path: Path) -> None:
    table = PilotTable.load(written(tmp_path, HALF))
    assert table.contributions.tolist() == [[0, 200], [40, 20], [70, 30]]
    assert table.goals.tolist() == [0.8, 0.75]
    assert table.finishing == pytest.approx(2 / 3)
    waiting, half = table.notes
    assert "2 pilots in" in waiting and "first on line 2, have no accuracy yet" in waiting
    assert "1 pilot in" in half and "first on line 6, lacks the accuracy of an agent" in half
    assert "failed" not in half


def test_a_pilot_that_failed_is_saved_as_failed(tmp_path: Path) -> None:
    table = PilotTable.load(written(tmp_path, HALF))
    table.save(tmp_path / "saved.csv")
    assert same(PilotTable.load(tmp_path / "saved.csv"), table)
    assert (tmp_path / "saved.csv").read_text().count("failed") == 2


def test_a_table_with_no_accuracy_at_all_is_not_filled_in_yet(tmp_path: Path) -> None:
    empty = HALF.replace("failed", "").replace("Failed", "").replace(",0.6,", ",,")
    empty = empty.replace(",0.7,", ",,").replace(",0.5,", ",,")
    with pytest.raises(InputError, match="has an accuracy yet: run the pilots, fill in"):
        PilotTable.load(written(tmp_path, empty))


def test_a_failure_of_one_agent_is_questioned_for_a_run_fails_as_a_whole(tmp_path: Path) -> None:
    notes = PilotTable.load(
        written(tmp_path, HALF.replace("3,City,40,,", "3,City,40,failed,"))
    ).notes
    (failed,) = (note for note in notes if isinstance(note, Suspicion))
    assert "accuracy of City in line 6" in failed and "counts as not measured" in failed
    assert 'write "failed" for every agent of the pilot' in failed


def test_only_an_accuracy_may_be_failed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'goal of City in line 2 .* reads "failed"'):
        PilotTable.load(written(tmp_path, HALF.replace("0.8\n", "failed\n")))


@pytest.mark.parametrize(("value", "said"), [("1", "made no error at all"), ("0", '"failed" if')])
def test_an_accuracy_at_an_end_is_questioned(tmp_path, value, said):
    path = tmp_path / "pilots.csv"
    path.write_text(f"pilot,agent,contribution,accuracy\n1,A,9,{value}\n1,B,9,0.5\n")
    (note,) = PilotTable.load(path).notes
    assert f"is {value}: " in note and said in note
    assert isinstance(note, Suspicion) == (value == "0")


def test_a_minimum_above_the_limit_is_named_with_its_line(tmp_path):
    text = TEXT.replace("cost", "minimum").replace("900,2", "900,1000")
    said = "minimum of City in line 2 .* is 1000, above its limit of 900"
    with pytest.raises(InputError, match=said):
        PilotTable.load(written(tmp_path, text))


def test_tables_that_are_joined_keep_their_notes_and_places(tmp_path):
    copied = "3,City,100,0.71,,,,\n3,Rural,50,0.62,,,,\n"
    one = PilotTable.load(written(tmp_path, TEXT + copied))
    lines = (TEXT + copied).splitlines(keepends=True)
    turned = written(tmp_path, "".join([lines[0], lines[2], lines[1], *lines[3:]]))
    both = one.joined(PilotTable.load(turned))
    assert sum(isinstance(note, Suspicion) for note in both.notes) == 2
    assert "line 3" in both.locate(0, 1) and "line 2" in both.locate(len(one), 1)
    # Pilots without a file are told by their names, which go on where those of the file end.
    made = PilotTable(one.agents, one.contributions, one.accuracies)
    assert one.names[-1] == "3" and one.joined(made).locate(len(one), 0) == "pilot 4"


def test_a_pilot_that_was_pasted_twice_is_noted_with_both_lines(tmp_path):
    copied = "3,City,100,0.71,,,,\n3,Rural,50,0.62,,,,\n"
    notes = PilotTable.load(written(tmp_path, TEXT + copied)).notes
    assert len(notes) == 2 and "pilot 3 (from line 6" in notes[1]
    assert "equals pilot 1 (from line 2)" in notes[1] and "pasted twice" in notes[1]
    # Another accuracy makes it a pilot that was made again; two that failed are alike.
    for other in (copied.replace("0.62", "0.63"), copied.replace("0.71", "").replace("0.62", "")):
        notes = PilotTable.load(written(tmp_path, TEXT + other)).notes
        assert not any("equals" in note for note in notes)


def test_a_pilot_of_one_agent_that_another_pilot_lacks_is_a_slip_in_its_name(tmp_path):
    lines = [f"{run},{agent},10,0.7" for run in "123" for agent in ("A", "B", "C")]
    path = tmp_path / "pilots.csv"
    said = "line 9 of .* names pilot 3a, which has no other agent; did you mean pilot 3, .* for B"
    for slip, words in (("3a,B,10,0.7", said), (None, "has no line for B.*contribution 0")):
        kept = [slip if line == "3,B,10,0.7" else line for line in lines]
        text = "\n".join(["pilot,agent,contribution,accuracy", *filter(None, kept)])
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=words):
            PilotTable.load(path)


def test_pilots_keep_their_names_and_whole_numbers(tmp_path: Path) -> None:
    text = (
        "pilot,agent,contribution,accuracy,goal,limit,cost\n"
        "run 7,a,4200,0.9,0.8,5000,2\nrun 7,b,10,0.5,0.4,,0.5\n"
        "spring,a,80,,,,\nspring,b,90,,,,\n"
        "run 9,a,60,0.8,,,\nrun 9,b,0,,,,\n"
    )
    (tmp_path / "pilots.csv").write_text(text)
    table = PilotTable.load(tmp_path / "pilots.csv")
    assert table.names == ("run 7", "run 9")
    table.with_goals(0.7).save(tmp_path / "saved.csv")
    assert (tmp_path / "saved.csv").read_text() == (
        "pilot,agent,contribution,accuracy,goal,limit,cost\n"
        "run 7,a,4200,0.9,0.7,5000,2\nrun 7,b,10,0.5,0.7,,0.5\n"
        "run 9,a,60,0.8,0.7,5000,2\nrun 9,b,0,,0.7,,0.5\n"
    )


def test_names_of_pilots_are_joined_and_go_on_where_both_tables_have_one() -> None:
    one, two, again = (PilotTable(["a"], [[5]], [[0.5]], names=[name]) for name in ("x", "y", "x"))
    assert one.joined(two).names == ("x", "y")
    assert one.joined(again).names == ("x", "2")
    first, more = (PilotTable(["a"], [[5], [6]], [[0.5], [0.6]], names=n) for n in ("12", ()))
    assert first.joined(more).names == ("1", "2", "3", "4")
    odd = PilotTable(["a"], [[5], [6]], [[0.5], [0.6]], names=["3", "x"])
    assert odd.joined(again).names == ("3", "x", "4")
    with pytest.raises(InputError, match="names must be 2 different names, one per pilot"):
        PilotTable(["a"], [[5], [6]], [[0.5], [0.6]], names=["x", "x"])


def made_of(heading: str, cells: tuple[str, str]) -> str:
    first, *rest = (
        TEXT.replace(",limit", f",{heading}").replace("400,900", f"400,{cells[0]}").split("\n")
    )
    return "\n".join([first, *(line.replace("0.75,,,", f"0.75,,{cells[1]},") for line in rest)])


def test_a_column_that_looks_like_limits_is_a_doubt(tmp_path: Path) -> None:
    said = "has one whole number for each agent, and is not read: call it 'limit' if it is that"
    for cells in (("900", "300"), ("100", "200"), ("60", "80")):
        table = PilotTable.load(written(tmp_path, made_of("Deckel", cells)))
        [doubt] = [note for note in table.notes if isinstance(note, Suspicion)]
        assert doubt.startswith("the column 'Deckel' of ") and doubt.endswith(said)


@pytest.mark.parametrize("heading", ["rounds", "Runden", "test set"])
def test_what_is_the_same_for_all_agents_is_no_limit(tmp_path: Path, heading: str) -> None:
    table = PilotTable.load(written(tmp_path, made_of(heading, ("5000", "5000"))))
    assert f"the column {heading!r} of {tmp_path / 'pilots.csv'} is not read" in table.notes
    assert not [note for note in table.notes if isinstance(note, Suspicion)]


@pytest.mark.parametrize(
    ("heading", "cells"), [("epochs", ("5", "5")), ("rank", ("1", "2")), ("Betten", ("900", "300"))]
)
def test_another_number_of_each_agent_is_noted(
    tmp_path: Path, heading: str, cells: tuple[str, str]
) -> None:
    [note] = PilotTable.load(written(tmp_path, made_of(heading, cells))).notes[:1]
    assert note.startswith(f"the column {heading!r} of ") and "is not read" in note


@pytest.mark.parametrize(("slip", "meant"), [("Sued", "Süd"), ("Klinik am Fluss", "Süd")])
def test_two_names_that_share_the_pilots_are_one_agent(
    tmp_path: Path, slip: str, meant: str
) -> None:
    text = TEXT.replace("Rural", "Süd") + f"3,City,5,0.7,,,,\n3,{slip},5,0.6,,,,\n"
    said = f"^line 7 of .* names {slip}, which is not in every pilot; did you mean {meant}\\?$"
    with pytest.raises(InputError, match=said):
        PilotTable.load(written(tmp_path, text))


def test_two_agents_that_trained_alone_are_not_one(tmp_path: Path) -> None:
    text = "pilot,agent,contribution,accuracy\n1,Harbour,40,0.7\n2,City,50,0.72\n3,City,80,0.8\n"
    with pytest.raises(InputError, match=r"^pilot 1 in .* has no line for City: add one, with"):
        PilotTable.load(written(tmp_path, text))


def test_headings_of_pilots_and_agents_may_be_swapped(tmp_path: Path) -> None:
    heads, *lines = TEXT.splitlines()
    text = "\n".join([heads.replace("pilot,agent", "agent,pilot"), *lines]) + "\n"
    text = text.replace("2,City,0,,,", "2,City,0,,0.7,")
    with pytest.raises(
        InputError, match=r"'pilot' and 'agent' of .* seem to be swapped: 1 is an a"
    ):
        PilotTable.load(written(tmp_path, text))


def test_a_share_may_have_spaces(tmp_path: Path) -> None:
    text = TEXT.replace("0.71", "419 / 500")
    assert PilotTable.load(written(tmp_path, text)).accuracies[0, 0] == 0.838


def test_many_columns_that_are_not_read_are_one_note(tmp_path: Path) -> None:
    lines = [f"{line}{''.join(f',x{n}' for n in range(40))}" for line in TEXT.splitlines()]
    notes = PilotTable.load(written(tmp_path, "\n".join(lines) + "\n")).notes
    assert [note for note in notes if "not read" in note] == [
        f"the column 'x0' of {tmp_path / 'pilots.csv'} and 39 others are not read"
    ]


@pytest.mark.parametrize("heading", ["limit (thousands)", "available in Tsd.", "cases (k)"])
def test_a_column_in_thousands_is_not_offered_another_name(tmp_path: Path, heading: str) -> None:
    text = TEXT.replace("limit", heading)
    with pytest.raises(InputError, match="is not in single samples: write the numbers in full"):
        PilotTable.load(written(tmp_path, text))


@pytest.mark.parametrize("name", ["Network", "Total (3 hospitals)", "Verbund"])
def test_an_agent_that_gives_the_sum_of_the_others_in_every_pilot_is_refused(tmp_path, name):
    given = [(100, 200, 300), (50, 200, 20), (100, 30, 300)]
    lines = [
        f"{pilot},{agent},{samples},0.8,0.75"
        for pilot, row in enumerate(given, 1)
        for agent, samples in zip(("A", "B", "C", name), (*row, sum(row)), strict=True)
    ]
    path = tmp_path / "pilots.csv"
    path.write_text("\n".join(["pilot,agent,contribution,accuracy,goal", *lines]))
    said = rf"^{re.escape(name)} gives in every pilot as much .* line 5.*: delete all lines of "
    with pytest.raises(InputError, match=said):
        PilotTable.load(path)
    path.write_text(path.read_text().replace(f"{name},430,", f"{name},431,"))
    assert PilotTable.load(path).size == 4
