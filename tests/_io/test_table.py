"""Tables: one reader for what people save in any dialect, one writer for what is written."""

import csv
import io
import math
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord._io.kinds import HISTOGRAMS, MEMBERS, PILOTS, PROPOSAL
from fedaccord._io.sheet import name_cell
from fedaccord._io.table import read_rows, write_table
from fedaccord.errors import InputError
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.pilots import PilotTable
from fedaccord.wording import SPOKEN, Words


def written(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sheet_of(folder: Path, content: str | bytes, kind=PILOTS):
    return read_rows(written(folder, content)).to_sheet(kind)


# Rows.


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        ("\n a ; b \n\n1,5;2\n", [["a", "b"], ["1,5", "2"]]),
        ("a\tb\r\n1,5\t2\r\n", [["a", "b"], ["1,5", "2"]]),
        ("sep=;\r\na;b,c\r\n1;2\r\n", [["a", "b,c"], ["1", "2"]]),
        ('"sep=\t"\na\tb,c,d\n1\t2\n', [["a", "b,c,d"], ["1", "2"]]),
        ('"a;b",c\n1,2\n', [["a;b", "c"], ["1", "2"]]),
        ('"note, if any, here";agent\nx;1\n', [["note, if any, here", "agent"], ["x", "1"]]),
    ],
)
def test_separators_are_recognised_and_blank_lines_left_out(tmp_path, text, cells):
    assert read_rows(written(tmp_path, text)).cells == cells


def test_lines_are_those_of_the_file(tmp_path):
    assert read_rows(written(tmp_path, '\nA,b\n\n"1\n2",3\n4,5\n')).lines == [2, 5, 6]
    assert read_rows(written(tmp_path, "sep=,\nA,b\n\n4,5\n")).lines == [2, 4]


def test_an_expected_column_tells_separators_apart(tmp_path):
    path = written(tmp_path, "a,b,c;kind\nx;1\n")
    assert read_rows(path).cells[1] == ["x;1"]
    assert read_rows(path, "Kind").cells[1] == ["x", "1"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_usual_encodings_are_recognised(tmp_path, encoding):
    rows = read_rows(written(tmp_path, "agent;limit\nZürich;1\n".encode(encoding)))
    assert rows.cells == [["agent", "limit"], ["Zürich", "1"]]
    assert ["Windows-1252" in note for note in rows.notes] == [True] * (encoding == "cp1252")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00\x01\xff", "is not a text file in UTF-8; save it as one"),
        ("agent,x\na,1\n".encode("utf-16-le"), "is not a text file in UTF-8"),
        (b"\x81\xff", "is not a text file in UTF-8"),
        (b"\xff\xfea", "is cut short"),
        (b"\xd0\xcf\x11\xe0\xa1", "old Excel workbook; save it as .xlsx or as CSV"),
        (b'{"model": "linear"}', "is JSON and not a table; .*'fedaccord solve'"),
        (b"a,b\n" + b"1" * 200_000, "is not CSV"),
    ],
)
def test_what_is_no_table_gets_a_remedy(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        read_rows(written(tmp_path, content))


def test_a_text_file_has_no_sheets(tmp_path):
    with pytest.raises(InputError, match="has no sheets; leave --sheet out"):
        read_rows(written(tmp_path, "a,b\n"), sheet="Pilots")


# Columns.


def test_a_sheet_has_columns_with_their_places(tmp_path):
    sheet = sheet_of(tmp_path, "AGENT,Note,\na,x,\nb,w,\na,y,\n", HISTOGRAMS)
    assert sheet.columns == ("agent", "Note")
    assert sheet.column("Note") == ["x", "w", "y"]
    assert sheet.column("none") == ["", "", ""]
    assert sheet.names("agent") == ("a", "b")
    assert sheet.where(2).startswith("line 4 of ")


@pytest.mark.parametrize(
    ("headings", "noted"),
    [
        ("pilot,agent,contribution,accuracy,goal", 0),
        ("Pilot, AGENT ,Contribution,ACCURACY,Goal", 0),
        ("Run,Hospital,Cases,Acc,Target", 1),
        ("pilot,Site,n,accuracy,target_accuracy", 1),
        ("pilot,centre,Patients,accuracy,Target Accuracy", 1),
    ],
)
def test_headings_have_synonyms(tmp_path, headings, noted):
    sheet = sheet_of(tmp_path, headings + "\n1,a,7,0.5,0.6\n")
    assert sheet.columns == ("pilot", "agent", "contribution", "accuracy", "goal")
    assert len(sheet.notes) == noted


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ("pilot,site,hospital,n,accuracy", "two columns for the agent, 'site' and 'hospital'"),
        ("pilot,agent,n,n,accuracy", "names the column 'contribution' twice"),
        (
            "pilot,agent,n,,accuracy",
            "^column 4 of .* has no name in line 1, and line 2 has '4' in it: give the column a "
            "name, or write numbers without commas$",
        ),
        (
            "pilot,agent,n,acurracy,x",
            "no column 'accuracy': rename 'acurracy' if that is the column",
        ),
        (
            "Pilot,Maison,Cas,Taux,But",
            "Its headings in line 1 are 'Pilot', 'Maison', 'Cas', 'Taux' and 'But'. Rename one to "
            "an accepted heading, for the agent: 'agent', .*'hospital', 'site' and 19 more; for "
            "the contribution: 'contribution', ",
        ),
        ("pilot,agent,contributoin,x,y", "no column 'contribution': rename 'contributoin' if"),
        ("agent,n,a,b,c", "is a table of contributions, and a table of pilots is needed here"),
        ("agent,clear,ill,b,c", "is a table of label histograms, and a table of pilots is needed"),
    ],
)
def test_headings_at_fault_are_named(tmp_path, heads, said):
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, heads + "\n1,2,3,4,5\n")


def test_empty_columns_and_rows_of_a_spreadsheet_are_skipped(tmp_path):
    sheet = sheet_of(tmp_path, "agent,,contribution,,\na,,5,,\n,,,,\nb,,6,,\n", PROPOSAL)
    assert sheet.columns == ("agent", "contribution")
    assert sheet.numbers("contribution") == [5, 6]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,1,0.5\n* not final\n", "has 1 cell, the headings 3: it looks like a note; delete it$"),
        ("a,1,0.5\nb,2\n", "has 2 cells, the headings 3: fill in the missing cells$"),
        ("a,1,0.5\nb\n", "it looks like a note; delete it$"),
        ("a,1,0.5\nHouse M, Bonn,2,0.5\n", 'a name with a comma in quotes, as "House M, Bonn"$'),
        ("a,1,0.5\nb,1,700,0.5\n", "likely one number with a comma: write 1700$"),
        ("a,1,0.5\nb,1,0,7\n", "write numbers without commas, as 1700 or 0.85$"),
    ],
)
def test_a_line_of_another_width_gets_one_remedy(tmp_path, text, said):
    with pytest.raises(InputError, match=rf"^line 3 of .*{said}"):
        sheet_of(tmp_path, f"agent,contribution,accuracy\n{text}", PROPOSAL)


def test_a_semicolon_between_cells_leaves_commas_alone(tmp_path):
    text = "agent;contribution;note\na;1,5;\nb;1,5;x;y\n"
    with pytest.raises(InputError, match=r'a name with a semicolon in quotes, as "x; y"$'):
        sheet_of(tmp_path, text, PROPOSAL)
    with pytest.raises(InputError, match=r"has 4 cells, .*: delete the cells without a heading$"):
        sheet_of(tmp_path, text.replace("x;y", "7;8"), PROPOSAL)


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"%PDF-1.4\n1 0 obj\n", "a.csv", r"is not a spreadsheet \(it is a PDF\); save the table"),
        (b"%PDF-1.4\n%\xe2\xe3\n", "a.xlsx", r"is not a spreadsheet \(it is a PDF\)"),
        (b"\x89PNG\r\n\x1a\n", "a.csv", r"is not a spreadsheet \(it is a picture\)"),
        (b"", "a.csv", "is empty; save the table again"),
        (b"", "a.xlsx", "is empty; save the table again"),
        (b" \n\n", "a.csv", "is empty; save the table again"),
    ],
)
def test_a_file_without_a_table_is_named_for_what_it_is(tmp_path, content, name, said):
    with pytest.raises(InputError, match=rf"{name} {said}"):
        read_rows(written(tmp_path, content, name))


def test_half_a_number_is_not_taken_for_an_empty_column(tmp_path):
    with pytest.raises(InputError, match=r"line 3 .* has 1 and 500 .*: write 1500 if"):
        sheet_of(tmp_path, "agent,contribution,note\na,800,\nb,1,500,\n", PROPOSAL)
    sheet = sheet_of(tmp_path, "agent,contribution\na,800,\nb,500,\n", PROPOSAL)
    assert sheet.numbers("contribution") == [800, 500]


def test_an_agent_has_one_number_in_a_column(tmp_path):
    sheet = sheet_of(tmp_path, "agent,x,cost\na,1,2\nb,1,\na,1,\n", HISTOGRAMS)
    assert sheet.own_fields(("a", "b"))["costs"] == [2.0, 1.0]
    sheet = sheet_of(tmp_path, "agent,x,cost\na,1,2\na,1,3\n", HISTOGRAMS)
    with pytest.raises(InputError, match=r"2 in one line .* 3 in line 3: an agent has one cost"):
        sheet.own_fields(("a",))


PILOT = "pilot;agent;contribution;accuracy;goal\n1;a;{};{};{}\n1;b;800;0{}7;\n"


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (("1.500", "0,85", "85 %", ","), (1500, 0.85, 0.85)),
        (("1 500", "0,85", "85%", ","), (1500, 0.85, 0.85)),
        (("1.500,0", "85,5 %", "0,9", ","), (1500, 0.855, 0.9)),
        (("1,500", "87.4 %", "0.9", "."), (1500, 0.874, 0.9)),
        (("1500", "1,000", "0,9", ","), (1500, 1, 0.9)),
        (("1500.0", "", "", "."), (1500, None, None)),
    ],
)
def test_decimals_and_thousands_are_told_by_the_whole_file(tmp_path, cells, read):
    table = PilotTable.load(written(tmp_path, PILOT.format(*cells)))
    found = table.contributions[0, 0], table.accuracies[0, 0], table.goals[0]
    assert [None if math.isnan(v) else v for v in found] == list(read)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (("1.000", "0.85", "", "."), "a in line 2 .* can be 1000 or 1"),
        (("1,500", "0,85", "", ","), "a in line 2 .* comma for decimals: write 1500"),
        (("1,000", "0,85", "", ","), "a in line 2 .* can be 1000 or 1"),
        (("15", "0,85", "", "."), "a point for decimals, .* a comma for decimals: write all"),
        (("1.500.000", "0.85", "", "."), "point for decimals, .* point for thousands: write all"),
        (
            ("15", "85", "", "."),
            "accuracy of a in line 2 .* is 85: did you mean 0.85, or 85 %\\? .*accuracy \\(%\\)",
        ),
        (
            ("15", "1.04", "", "."),
            "accuracy of a .* is 1.04: it must lie between 0 and 1, or end with %",
        ),
        (("15", "-0.85", "", "."), "accuracy of a .* is -0.85: it must lie between 0 and 1$"),
        (("15", "0.8", "85", "."), "goal of a in line 2 .* is 85: did you mean 0.85"),
        (("15", "<11", "", "."), "accuracy of a in line 2 .*withheld"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, cells, said):
    with pytest.raises(InputError, match=said):
        PilotTable.load(written(tmp_path, PILOT.format(*cells)))


def test_a_table_with_columns_for_each_agent_is_told_what_is_needed(tmp_path):
    text = "pilot,North cases,South cases,North acc,South acc\n1,50,60,0.8,0.9\n"
    said = "columns of its own for each agent, as 'North cases': write one line for each agent and"
    with pytest.raises(InputError, match=said):
        PilotTable.load(written(tmp_path, text))


def test_headings_may_be_german(tmp_path):
    text = "Lauf,Krankenhaus,Fälle,Genauigkeit,Ziel,Grenze\n1,a,50,0.8,0.9,99\n1,b,60,0.9,0.9,99\n"
    table = PilotTable.load(written(tmp_path, text))
    assert table.agents == ("a", "b") and table.goals.tolist() == [0.9, 0.9]
    assert table.limits.tolist() == [99, 99]


def test_a_heading_may_say_that_a_column_is_in_per_cent(tmp_path):
    text = "pilot,agent,contribution,Accuracy (%)\n1,a,50,87.4\n1,b,60,90 %\n"
    assert PilotTable.load(written(tmp_path, text)).accuracies.tolist() == [[0.874, 0.9]]
    with pytest.raises(InputError, match=r"is 0.874 below a heading with %: write it in per cent"):
        PilotTable.load(written(tmp_path, text.replace("87.4", "0.874")))


# Totals, and counts that are withheld.


def test_a_last_line_that_sums_up_the_others_is_left_out(tmp_path):
    sheet = sheet_of(tmp_path, "agent,contribution\na,5\nb,7\nTotal,12\n", PROPOSAL)
    assert sheet.column("agent") == ["a", "b"]
    assert "'Total', is a line of totals and is left out" in sheet.notes[0]
    text = "pilot,agent,contribution,accuracy\n1,a,5,0.5\n1,b,7,0.5\nSUM,,12,\n"
    assert PilotTable.load(written(tmp_path, text)).agents == ("a", "b")
    with pytest.raises(InputError, match=r"Total in line 4 .* is 13, and the sum .* 12: correct"):
        sheet_of(tmp_path, "agent,contribution\na,5\nb,7\nTotal,13\n", PROPOSAL)
    with pytest.raises(InputError, match=r"line 3 .* called 'All', like a line of totals"):
        sheet_of(tmp_path, "agent,contribution\na,5\nAll,5\nb,7\n", PROPOSAL)


def test_counts_that_are_withheld_are_the_middle_and_noted(tmp_path):
    text = "agent,clear,ill,all\na,100,<11,104\nb,50,≤4,\nTotal,150,9,\n"
    found = Histograms.load(written(tmp_path, text))
    assert found.labels == ("clear", "ill")
    assert found.counts.tolist() == [[100, 5], [50, 2]]
    assert any(
        "2 counts in" in note and '"<11" was read as 5, the middle of 0 to 10' in note
        for note in found.notes
    )
    assert any(" withheld: " in said for said in found.planning_game()[1])
    with pytest.raises(
        InputError, match=r"Total in line 4 .* is 15, .* sum of the others is 0: .*'Total'"
    ):
        Histograms.load(written(tmp_path, text.replace(",9,", ",15,")))


def test_a_cell_has_the_name_that_spreadsheets_give_it():
    assert [name_cell(place, 5) for place in (0, 25, 26, 701, 702)] == [
        *("A5", "Z5", "AA5", "ZZ5", "AAA5")
    ]


# Writing.


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "a.csv"
    write_table(path, ["name", "n"], [["x, y", 1], ['"z"', 2.5]])
    assert path.read_bytes() == b'name,n\n"x, y",1\n"""z""",2.5\n'
    assert read_rows(path).cells == [["name", "n"], ["x, y", "1"], ['"z"', "2.5"]]


def test_no_spreadsheet_runs_what_is_written(tmp_path):
    names = [
        "=1+1",
        "+A1",
        "-x",
        "@sum",
        "'=1",
        "-5 %",
        "a=b",
        "\tx",
        "＝1",
        "' =1",
        "'s-Gravenhage",
    ]
    path = tmp_path / "a.csv"
    write_table(path, ["agent", "contribution"], [[name, 5.0] for name in names])
    cells = [row[0] for row in csv.reader(path.read_text().splitlines())][1:]
    assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "-", "@", "＝"))]
    assert sheet_of(tmp_path, path.read_bytes(), PROPOSAL).column("agent") == names


@pytest.mark.parametrize("value", [1.125, 432.334, 999.5, 1e22, 0.125, 1 / 3, 12.0])
def test_a_number_that_we_write_means_one_thing(tmp_path, value):
    write_table(tmp_path / "a.csv", ["contribution"], [[value]])
    assert read_rows(tmp_path / "a.csv").to_sheet(PROPOSAL).numbers("contribution") == [value]


# Any table in any dialect.

DIALECTS = st.fixed_dictionaries(
    {
        "separator": st.sampled_from(",;\t"),
        "decimal": st.sampled_from(".,"),
        "group": st.sampled_from(["", " ", "'", ".", ",", "\u00a0", "\u202f"]),
        "percent": st.sampled_from([None, " %", "%"]),
        "newline": st.sampled_from(["\n", "\r\n"]),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
        "hint": st.booleans(),
        "heads": st.sampled_from(
            [
                ("pilot", "agent", "contribution", "accuracy", "cost"),
                ("Run", "Hospital", "Cases", "ACCURACY", "Price"),
            ]
        ),
    }
)
NAMES = st.lists(
    st.text("abcXYZ äöé,;'\"=-+.1", min_size=1, max_size=8).map(str.strip).filter(bool),
    min_size=1,
    max_size=4,
    unique_by=lambda name: "".join(name.split()).casefold(),
)


def written_number(value: float, dialect: dict, digits: int) -> str:
    whole, _, part = f"{value:,.{digits}f}".partition(".")
    whole = whole.replace(",", dialect["group"])
    return f"{whole}{dialect['decimal']}{part}" if part else whole


def dump(rows: list[list[str]], dialect: dict) -> bytes:
    text = io.StringIO(newline="")
    if dialect["hint"]:
        text.write(f"sep={dialect['separator']}{dialect['newline']}")
    writer = csv.writer(text, delimiter=dialect["separator"], lineterminator=dialect["newline"])
    writer.writerows([dialect["heads"], *rows])
    return text.getvalue().encode(dialect["encoding"], "replace")


@settings(max_examples=400, deadline=None)
@given(
    dialect=DIALECTS,
    names=NAMES,
    counts=st.lists(st.integers(0, 3_000_000), min_size=4, max_size=4),
    accuracies=st.lists(st.integers(0, 1000), min_size=4, max_size=4),
    costs=st.lists(st.integers(1, 9_999_999), min_size=4, max_size=4),
    digits=st.integers(0, 4),
)
def test_a_table_in_any_dialect_has_the_same_numbers_or_is_refused(
    tmp_path_factory, dialect, names, counts, accuracies, costs, digits
):
    size = len(names)
    wanted_counts = np.array([counts[:size]], dtype=float)
    shares = [n / 1000 for n in accuracies[:size]]
    prices = [round(n / 1000, digits) for n in costs[:size]]
    rows = []
    for name, count, share, price in zip(names, counts, shares, prices, strict=False):
        accuracy = written_number(share, dialect, 3)
        if dialect["percent"] is not None:
            accuracy = written_number(share * 100, dialect, 1) + dialect["percent"]
        cost = written_number(price, dialect, digits)
        rows.append(["1", name, written_number(count, dialect, 0), accuracy, cost])
    path = tmp_path_factory.mktemp("dialect") / "pilots.csv"
    path.write_bytes(dump(rows, dialect))
    try:
        table = PilotTable.load(path)
    except InputError as error:
        assert "\n" not in str(error)
        clear = dialect["decimal"] == "." and dialect["group"] == "" and digits != 3
        wrong = wanted_counts.max() <= 1 or min(prices) == 0
        assert not clear or wrong or "'" in str(names) or "=" in str(names)
        return
    assert np.array_equal(table.contributions, wanted_counts)
    assert table.accuracies[0].tolist() == shares
    assert table.costs.tolist() == prices


@settings(max_examples=200, deadline=None)
@given(
    names=NAMES,
    amounts=st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=4, max_size=4),
)
def test_an_allocation_survives_the_round_trip(tmp_path_factory, names, amounts):
    from fedaccord.allocation import Allocation

    allocation = Allocation([a if a > 1e-90 else 0.0 for a in amounts[: len(names)]], names)
    path = tmp_path_factory.mktemp("round") / "plan.csv"
    allocation.save(path)
    assert Allocation.load(path) == allocation


# Titles above a table.


def test_a_title_above_the_headings_is_left_out_and_noted(tmp_path):
    text = "Our network, March\n\nPilots\nagent;contribution\na;1,5\nb;7\n"
    sheet = sheet_of(tmp_path, text, PROPOSAL)
    assert sheet.numbers("contribution") == [1.5, 7]
    assert sheet.where(0) == f"line 5 of {tmp_path / 'table.csv'}"
    assert sheet.notes[0].endswith("found in line 4; lines above were skipped")


@pytest.mark.parametrize(
    "text",
    ["contribution\n5\n7\n", "notes,x\nagent,contribution\na,5\n", "title\nx,y\n1,2\n"],
    ids=["one column", "two cells above", "no headings below"],
)
def test_what_is_no_title_stays(tmp_path, text):
    rows = read_rows(written(tmp_path, text))
    assert rows.lines[0] == 1 and rows.notes == ()


# Lines that are not of the table, and names as programs write them.

HEADS = "pilot,agent,contribution,accuracy\n"
CITY = HEADS + "1,City,90,0.8\n"


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (CITY + "Note: by mail,,,\n", PILOTS, "line 3 of .* looks like a note: delete it"),
        (CITY + ",* by mail,,\n", PILOTS, "line 3 of .* looks like a note: delete it"),
        (CITY + "* by mail, and by hand\n", PILOTS, "it looks like a note; delete it"),
        (CITY + "1) by mail\n", PILOTS, "line 3 of .* it looks like a note; delete it"),
        ("agent,contribution\nA,1\nNote: x,\n", PROPOSAL, "line 3 of .* looks like a note"),
        ("agent,ill,well\nA,1,2\n,source: x,\n", HISTOGRAMS, "line 3 of .* looks like a note"),
    ],
)
def test_notes_are_named(tmp_path, content, kind, said):
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, content, kind)


@pytest.mark.parametrize("gap", ["", "\n", ",,,\n"])
def test_headings_that_come_again_are_skipped_and_noted(tmp_path, gap):
    text = CITY + gap + HEADS.upper() + "2,City,9,0.5\n"
    table = PilotTable.load(written(tmp_path, text))
    assert table.contributions.tolist() == [[90], [9]]
    line = 4 if gap else 3
    assert f"line {line} of" in table.notes[0] and "the headings again" in table.notes[0]


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (CITY + "\nagent,limit,,\nCity,900,,\n", PILOTS, "begins in line 4 .*'agent', 'limit'"),
        (CITY + "agent,limit\nCity,900\n", PILOTS, "begins in line 3 .*: move it to a file"),
        (CITY + "\nLimits,,,\nagent,limit,,\n", PILOTS, "begins in line 5"),
        (CITY + "agent,pilot,contribution,accuracy\n", PILOTS, "begins in line 3"),
        ("agent,ill\nA,1\n\nagent,goal\nA,0.8\n", HISTOGRAMS, "begins in line 4"),
        ("agent,ill,well\nA,1,2\n\nagent,old,young\n", HISTOGRAMS, "begins in line 4"),
        ("agent,contribution\nA,1\n\nagent,cost\nA,3\n", PROPOSAL, "begins in line 4"),
        (
            "pilot,agent,contribution,accuracy,,agent,limit\n1,A,9,0.8,,A,9\n",
            PILOTS,
            "line 1 of .* 'agent' twice, .* stands next to another to a file of its own",
        ),
    ],
)
def test_a_second_table_is_refused_where_it_begins(tmp_path, content, kind, said):
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, content, kind)


@pytest.mark.parametrize("name", ["Mean", "Average", "Subtotal"])
def test_a_line_of_means_is_no_agent(tmp_path, name):
    text = f"agent,ill,well\nA,1,2\nB,3,4\n{name},2,3\n"
    with pytest.raises(InputError, match=f"line 4 of .* is called '{name}', .*: leave it out"):
        Histograms.load(written(tmp_path, text))


def test_an_agent_may_have_the_name_of_a_heading(tmp_path):
    sheet = sheet_of(tmp_path, "agent,ill,well\nA,1,2\n\nClinic,3,4\n", HISTOGRAMS)
    assert sheet.names("agent") == ("A", "Clinic")


def test_a_quotation_mark_that_stays_open_is_found_where_it_opens(tmp_path):
    text = HEADS + '1,City,90,0.8\n1,"Rural,50,0.7\n2,City,9,0.5\n'
    with pytest.raises(InputError, match=r"a quotation mark opens in line 3 of .* never closes"):
        read_rows(written(tmp_path, text))
    with pytest.raises(InputError, match=r"a quotation mark opens in line 4 of .* never closes"):
        read_rows(written(tmp_path, "sep=,\n" + text))
    # One for inches inside a cell is none.
    assert read_rows(written(tmp_path, HEADS + '1,City 5" x,90,0.8\n')).cells[1][2] == "90"
    assert read_rows(written(tmp_path, HEADS + '1,"City\nHall",90,0.8\n')).lines == [1, 3]


def test_bars_may_separate_cells(tmp_path):
    text = CITY.replace(",", "|")
    assert PilotTable.load(written(tmp_path, text)).contributions.tolist() == [[90]]


@pytest.mark.parametrize("gap", ["", "\n\n"])
def test_a_name_without_any_number_may_be_a_note(tmp_path, gap):
    text = f"agent,ill,well,limit\nA,1,2,\n{gap}preliminary,,,\n"
    said = "has the name 'preliminary' and no number: delete it if it is a note, or write 0"
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, text, HISTOGRAMS)
    for cells in ("0,,", ",,0"):
        sheet = sheet_of(tmp_path, text.replace("preliminary,,,", f"B,{cells}"), HISTOGRAMS)
        assert sheet.names("agent") == ("A", "B")


def test_groups_of_headings_above_the_headings_are_skipped(tmp_path):
    for above in ("Pilot,,Result,\n", "Training,,Result,\n", "Pilots\nPilot,,Result,\n"):
        rows = read_rows(written(tmp_path, above + CITY))
        assert rows.cells[0] == ["pilot", "agent", "contribution", "accuracy"]
        assert f"found in line {above.count(chr(10)) + 1}" in rows.notes[0]


def test_headings_with_line_breaks_are_shown_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"rename 'accuracy \(test\)' if"):
        sheet_of(tmp_path, 'pilot,agent,contribution,"accuracy\n(test)"\n1,City,90,0.8\n')


def test_composed_letters_and_plain_spaces_make_names_equal(tmp_path):
    odd = unicodedata.normalize("NFD", "Sankt\u00a0Köln")
    assert odd != "Sankt Köln"
    sheet = sheet_of(tmp_path, HEADS + f"1,Sankt Köln,90,0.8\n2,{odd},80,0.7\n")
    assert sheet.names("agent") == ("Sankt Köln",)


@pytest.mark.parametrize("other", ["2.0", "02"])
def test_a_pilot_has_one_spelling(tmp_path, other):
    sheet = sheet_of(tmp_path, CITY + f"2,City,90,0.8\n{other},Spa,90,0.8\n10,City,9,0.8\n")
    with pytest.raises(InputError, match=f"pilot '{other}' and line 3 '2': use the same spelling"):
        sheet.names("pilot")


def test_a_heading_in_the_words_of_the_user_is_not_translated(tmp_path):
    text = "pilot,Hospital,contribution,acc\n1,City,90,0.8\n"
    assert "the column 'Hospital' is read as agent" in sheet_of(tmp_path, text).notes[0]
    token = SPOKEN.set(Words(agent="hospital"))
    try:
        (note,) = sheet_of(tmp_path, text).notes
    finally:
        SPOKEN.reset(token)
    assert "Hospital" not in note and "'acc' is read as accuracy" in note


def test_a_column_that_is_not_read_is_noted(tmp_path):
    text = "pilot,agent,contribution,accuracy,lim,beds\n1,A,10,0.8,20,5\n"
    first, second = sheet_of(tmp_path, text).notes
    assert first.startswith("the column 'lim' of ")
    assert first.endswith(" is not read; if it is the limit, call it 'limit'")
    assert second.startswith("the column 'beds' of ") and second.endswith(" is not read")


@pytest.mark.parametrize(
    ("heading", "meant"), [("limt", "limit"), ("validaton", "validation"), ("Gaol", "goal")]
)
def test_a_column_that_is_likely_misspelt_is_refused(tmp_path, heading, meant):
    text = f"pilot,agent,contribution,accuracy,{heading}\n1,A,10,0.8,20\n"
    said = rf"^the column '{heading}' of .* is likely the {meant}: call it '{meant}', or delete it$"
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Haus,contribution\nMill,579\nHill,145\n", ["Mill", "Hill"]),
        ("Haus,contribution\nMill,579\nHill,145\nSumme,724\n", ["Mill", "Hill"]),
        ("Haus,note,contribution\nMill,,579\nHill,new,145\n", ["Mill", "Hill"]),
        ("old,contribution\n600,579\n100,145\n", ["", ""]),
    ],
)
def test_a_proposal_has_its_names_in_a_column_of_texts(tmp_path, text, names):
    sheet = sheet_of(tmp_path, text, PROPOSAL)
    assert sheet.column("agent") == names
    assert any("'Haus' is read as agent" in note for note in sheet.notes) == any(names)


@pytest.mark.parametrize("text", ["A,B,contribution\nx,y,5\nz,v,6\n", "A,contribution\nx,5\nx,6\n"])
def test_texts_that_may_be_no_names_are_refused_in_a_proposal(tmp_path, text):
    with pytest.raises(
        InputError, match=r"no column 'agent', and texts in the columns? 'A'.*: call"
    ):
        sheet_of(tmp_path, text, PROPOSAL)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",13\n", r"^line 4 of .* names no agent, and is the sum of the others: delete the line$"),
        (",12\n", r"^line 4 of .* names no agent; fill it in, or delete the line$"),
    ],
)
def test_a_line_without_a_name_may_be_a_sum(tmp_path, text, said):
    sheet = sheet_of(tmp_path, "agent,contribution\nA,5\nB,8\n" + text, PROPOSAL)
    with pytest.raises(InputError, match=said):
        sheet.names("agent")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("agent,contribution\nA,5\n,5\n", PROPOSAL),
        ("agent,ill,well\nA,5,6\n,5,6\n", HISTOGRAMS),
        ("agent,limit\nA,5\nB,8\n,7\n", MEMBERS),
    ],
)
def test_a_line_without_a_name_is_no_sum_of_one_other_or_of_no_numbers(tmp_path, text, kind):
    sheet = sheet_of(tmp_path, text, kind)
    with pytest.raises(InputError, match=r" names no agent; fill it in, or delete the line$"):
        sheet.names("agent")


def test_names_in_the_encoding_of_another_system_are_named_or_refused(tmp_path):
    table = "agent,contribution\nNord,5\nKöln,8\n"
    [note] = read_rows(written(tmp_path, table.encode("mac-roman"))).notes
    assert note.endswith(": check that names are right, as 'Kšln'")
    table = table.replace("Köln", "Süd")
    with pytest.raises(InputError, match="it names 'SŸd': save it as CSV in UTF-8"):
        read_rows(written(tmp_path, table.encode("mac-roman")))
    table = "agent,contribution\nŠumava “Süd”,5\nSt. Mary’s – Nord,8\nŒuvre,€ 5\n"
    assert read_rows(written(tmp_path, table.encode("cp1252"))).cells[1][0] == "Šumava “Süd”"


# The first sector of an OLE2 file, and the directory in which Excel names what it has encrypted.
OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(512, b"\0")


def test_a_workbook_with_a_password_is_told_from_an_old_one(tmp_path):
    entries = ("Root Entry", "EncryptionInfo", "EncryptedPackage")
    directory = b"".join(entry.encode("utf-16-le").ljust(128, b"\0") for entry in entries)
    with pytest.raises(InputError, match="has a password: remove the password"):
        read_rows(written(tmp_path, OLE2 + directory, "table.xlsx"))
    with pytest.raises(InputError, match=r"old Excel workbook; save it as \.xlsx or as CSV"):
        read_rows(written(tmp_path, OLE2 + "Workbook".encode("utf-16-le"), "table.xls"))


def test_counts_in_per_cent_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"the column 'cases \(%\)' of .* is in per cent: write"):
        sheet_of(tmp_path, "agent,cases (%)\nA,20\nB,30\n", PROPOSAL)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("2.4k,0.8", 'the contribution of A in line 2 of .* reads "2.4k": write 2400$'),
        ("20,917‰", r'the accuracy of A in line 2 of .* reads "917‰": write 0\.917$'),
        ("20‰,0.8", "the contribution of A in line 2 of .*: write a number of samples$"),
    ],
)
def test_thousands_and_per_mille_are_refused_with_the_number_to_write(tmp_path, cells, said):
    sheet = sheet_of(tmp_path, f"pilot,agent,contribution,accuracy\n1,A,{cells}\n")
    with pytest.raises(InputError, match=said):
        [sheet.numbers(name) for name in ("contribution", "accuracy")]


def test_a_comma_in_a_contribution_is_no_reserve(tmp_path):
    text = "agent,contribution,reserve\nN,1,340\nHill,340,\nMill,905,\n"
    said = "^line 2 of .* has 1 and 340 next to each other, which can be 1340: write 1340 if .* 1.0"
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, text, PROPOSAL)
    for honest in (text.replace(",1,", ",1.0,"), text.replace("340\n", "34\n", 1)):
        assert sheet_of(tmp_path, honest, PROPOSAL).number("contribution", 0) == 1
    assert len(sheet_of(tmp_path, text.replace(",", ";"), PROPOSAL).lines) == 3


def test_some_agents_may_hold_three_digits_in_reserve(tmp_path):
    sheet = sheet_of(tmp_path, "agent,contribution,reserve\nN,500,200\nHill,340,\n", PROPOSAL)
    assert sheet.numbers("contribution") == [500, 340]


COUNTS = "agent,clear,ill,hurt,{}\nA,1530,520,250,\nB,350,1240,430,\nC,1,140,190,370\n"
SPLIT = "agent,clear,ill,hurt,{}\nA,1,530,520,250\nB,350,1,240,430\nC,140,190,1,370\n"
RUNS = "pilot,agent,accuracy,contribution,goal,limit,validation,{}\n{}1,B,0.9,250,0.8,850,50,\n"


@pytest.mark.parametrize(
    ("text", "line", "number"),
    [
        *(
            (COUNTS.format(head), 4, 1140)
            for head in ("need", "other", "comment", "Unnamed: 4", "")
        ),
        *((SPLIT.format(head), 2, 1530) for head in ("limit", "other", "notes", "minimum", "goal")),
        (COUNTS.format("need").replace(",\n", "\n"), 4, 1140),
        ("agent,a,b,need,limit\nA,530,520,520,2150\nB,350,240,410,1850\nC,1,9,1,350\n", 4, 1350),
        ("agent,label,count\nA,flu,530\nB,flu,1,280\n", 3, 1280),
        ("agent,label,count,need,goal,cost\nA,flu,530,,,\nB,flu,1,280,,\n", 3, 1280),
        ("agent,label,count,need,goal,limit\nA,flu,530,,,2\nB,flu,1,280,,,\n", 3, 1280),
        (RUNS.format("minimum", "1,A,0.9,250,0.8,2450,1,150\n"), 2, 1150),
        (RUNS.format("date", "1,A,0.9,250,0.8,2,450,150\n"), 2, 2450),
        (RUNS.format("comment", "1,A,0.9,1,320,0.8,850\n"), 2, 1320),
    ],
)
def test_two_cells_that_are_one_number_are_refused_with_it(tmp_path, text, line, number):
    kind = PILOTS if text.startswith("pilot") else HISTOGRAMS
    said = f"^line {line} of .* has [0-9]+ and [0-9]+ next to each other, .*: write {number}( |$)"
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, text, kind)


@pytest.mark.parametrize("column", ["reserve", "comment", "limit", "beds", "plan"])
@pytest.mark.parametrize("ends", [("340", "260", "150"), ("000", "000", "000")])
def test_contributions_that_are_all_split_are_refused(tmp_path, column, ends):
    rows = "".join(f"{name},1,{end}\n" for name, end in zip("ABC", ends, strict=True))
    with pytest.raises(InputError, match=f"^line 2 of .*: write 1{ends[0]} if that is meant"):
        sheet_of(tmp_path, f"agent,contribution,{column}\n{rows}", PROPOSAL)


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("agent,a,b,c,need\nA,530,120,250,300\nB,350,240,430,200\n", False),
        ("agent,rare,b,c,need\nA,2,340,520,250\nB,5,220,120,300\nC,1,140,250,200\n", True),
        (
            "agent,a,b,c,need,limit\nA,530,52,2,52,215\nB,350,1240,430,41,1850\nC,1,140,190,370,\n",
            1,
        ),
        ("agent,a,b,c,need\nA,530,20,250,300\nB,3,240,430,200\nC,90,240,130,200\n", False),
        ("agent,label,count,need\nA,flu,90,250\nA,none,5,\nB,flu,120,280\nB,none,7,\n", False),
        (RUNS.format("cost", "1,A,0.9,250,0.8,450,150,200\n"), False),
        (COUNTS.format("need").replace(",", ";"), False),
    ],
)
def test_two_cells_that_may_be_two_numbers_are_read(tmp_path, text, noted):
    kind = PILOTS if text.startswith("pilot") else HISTOGRAMS
    notes = [note for note in sheet_of(tmp_path, text, kind).notes if "next to each other" in note]
    assert len(notes) == noted
    assert not noted or "if that is one number" in notes[0]


LONG = "agent,label,count,need,limit\nA,flu,90,50,100\nA,cold,8,,\nB,flu,9,40,20\n"
WIDE = "agent,flu,cold,need\nA,90,8,50\nB,9,4,40\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LONG + "\nregion,beds,\nNorth,400,\n", 6),
        (LONG + "\nDeadline,2026,,,\n", 6),
        (LONG + "* estimated,12,,,\n", 5),
        (WIDE + "\n\nDeadline,2026,,\n", 6),
        (WIDE + "* estimated,12,,\n", 4),
    ],
)
@pytest.mark.parametrize("mark", [",", ";"])
def test_what_stands_below_a_histogram_is_no_agent(tmp_path, text, line, mark):
    width = text.split("\n")[0].count(",")
    rows = [row + "," * (width - row.count(",")) if row else row for row in text.split("\n")]
    with pytest.raises(InputError, match=f"^line {line} of .*, like a note .*: delete it, or wr"):
        sheet_of(tmp_path, "\n".join(rows).replace(",", mark), HISTOGRAMS)


@pytest.mark.parametrize("text", [LONG + "\nC,flu,5,,\n", WIDE + "\nC,0,,\n", WIDE + "\nC,5,,9\n"])
def test_an_agent_below_an_empty_line_is_one(tmp_path, text):
    assert "C" in sheet_of(tmp_path, text, HISTOGRAMS).column("agent")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2.5/5,0.8", "the contribution .*: write"),
        ("1150/2,0.8", 'reads "1150/2": write it with a point .* no separators'),
        ("0x47e,0.8", 'reads "0x47e": write it in digits alone, as 1700'),
    ],
)
def test_a_part_of_a_number_is_no_number_of_samples(tmp_path, text, said):
    sheet = sheet_of(tmp_path, f"pilot,agent,contribution,accuracy\n1,A,{text}\n")
    with pytest.raises(InputError, match=said):
        sheet.numbers("contribution")


def test_a_table_named_like_a_workbook_is_read_with_a_note(tmp_path):
    rows = read_rows(written(tmp_path, CITY, "table.xlsx"))
    assert rows.notes == (f"{rows.path} is not a workbook, whatever its name, and is read as CSV",)


def test_a_column_of_comments_is_no_label(tmp_path):
    sheet = sheet_of(tmp_path, "agent,ill,well,Remarks\nA,5,6,late\nB,4,9,\n", HISTOGRAMS)
    assert sheet.notes == [f"the column 'Remarks' of {sheet.path} is not read"]
    assert Histograms.load(sheet.path).labels == ("ill", "well")


@pytest.mark.parametrize("text", ["nr,cases\n2,5\n1,6\n", "id,cases\n70,5\n12,6\n"])
def test_numbers_of_agents_in_another_order_are_refused(tmp_path, text):
    said = "has no names of agents, and the numbers in the column .* are not in order: sort the"
    with pytest.raises(InputError, match=said):
        sheet_of(tmp_path, text, PROPOSAL)
    heads, *lines = text.splitlines()
    ordered = "\n".join([heads, *reversed(lines)]) + "\n"
    assert sheet_of(tmp_path, ordered, PROPOSAL).numbers("contribution") == [6, 5]


def test_fewer_than_none_is_no_count(tmp_path):
    sheet = sheet_of(tmp_path, "agent,ill,well\nA,<0,2\nB,<1,≤0\n", HISTOGRAMS)
    with pytest.raises(InputError, match='reads "<0"'):
        sheet.numbers("ill", suppressed=True)
    assert sheet.numbers("well", suppressed=True) == [2, 0]


def test_a_title_with_as_many_cells_as_the_headings_is_named(tmp_path):
    text = "Network of the north, March 2026\nagent,contribution\nN,5\n"
    with pytest.raises(InputError, match=r"^the headings of .* are in line 2: delete line 1$"):
        sheet_of(tmp_path, text, PROPOSAL)
    with pytest.raises(
        InputError, match=r"^the headings of .* are in line 3: delete lines 1 to 2$"
    ):
        sheet_of(tmp_path, "Version,2\n" + text, PROPOSAL)


def test_a_line_that_names_another_separator_is_named(tmp_path):
    with pytest.raises(
        InputError, match=r"^line 1 of .* says that ';' separates .* commas do: del"
    ):
        sheet_of(tmp_path, "sep=;\n" + CITY, PILOTS)


def test_a_cell_that_is_too_long_is_named_by_its_line(tmp_path):
    with pytest.raises(InputError, match=r"^line 3 of .* is not CSV \(field larger than .*correct"):
        sheet_of(tmp_path, CITY + f'2,"{"x" * 300_000}",1,0.5\n', PILOTS)


def test_bytes_with_the_name_of_a_workbook_are_none(tmp_path):
    path = tmp_path / "table.xlsx"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="is not a workbook, whatever its name: save the table ag"):
        read_rows(path)


@pytest.mark.parametrize(
    ("heads", "column"),
    [
        ("pilot,site name,n,accuracy", "agent"),
        ("pilot,Hospital:,n,accuracy", "agent"),
        ("pilot,agent,number of cases,accuracy", "contribution"),
        ("Pilot no.,agent,n,accuracy", "pilot"),
        ("pilot,agent,contribution (cases),accuracy", "contribution"),
    ],
)
def test_common_headings_are_read(tmp_path, heads, column):
    sheet = sheet_of(tmp_path, f"{heads}\n1,City,90,0.8\n", PILOTS)
    assert column in sheet.columns
    assert sheet.number("contribution", 0) == 90


@pytest.mark.parametrize(
    "heading", ["accuracy in percent", "Accuracy (per cent)", "acc in prozent"]
)
def test_a_heading_may_say_per_cent_in_words(tmp_path, heading):
    sheet = sheet_of(tmp_path, f"pilot,agent,n,{heading}\n1,City,90,87.2\n", PILOTS)
    assert sheet.number("accuracy", 0) == 0.872
    with pytest.raises(InputError, match="below a heading with %: write it in per cent"):
        sheet_of(tmp_path, f"pilot,agent,n,{heading}\n1,City,90,0.8\n", PILOTS).number(
            "accuracy", 0
        )


def test_a_name_that_was_encoded_twice_is_noted(tmp_path):
    text = HEADS + "1,N\u00c3\u00bcrnberg,90,0.8\n"
    assert "names 'NÃ¼rnberg', which is likely 'Nürnberg' in a wrong encoding" in " ".join(
        sheet_of(tmp_path, text, PILOTS).notes
    )
    for name in ("São Paulo", "Ângela", "Nürnberg"):
        assert not sheet_of(tmp_path, HEADS + f"1,{name},90,0.8\n", PILOTS).notes
