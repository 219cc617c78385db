"""CSV files: one reader for what people write, one writer for what is written."""

import math
from pathlib import Path

import pytest

from fedaccord._io.csv import read_number, read_rows, write_csv
from fedaccord.errors import InputError


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        ("\n a ; b \n\n1,5;2\n", [["a", "b"], ["1,5", "2"]]),
        ('"a;b",c\n1,2\n', [["a;b", "c"], ["1", "2"]]),
        ("", []),
    ],
)
def test_rows_are_stripped_and_blank_lines_left_out(tmp_path, text, cells):
    assert read_rows(written(tmp_path, text)).cells == cells


def test_lines_are_those_of_the_file(tmp_path):
    rows = read_rows(written(tmp_path, '\nA,b\n\n"1\n2",3\n4,5\n'))
    assert rows.lines == [2, 5, 6]
    assert rows.first == ("a", "b")


def test_an_expected_column_tells_semicolons_from_commas(tmp_path):
    path = written(tmp_path, '"note, if any, here";label\nx;1\n')
    assert read_rows(path).cells[1] == ["x;1"]
    assert read_rows(path, "label").cells[1] == ["x", "1"]


def test_a_sheet_gives_columns_with_their_places(tmp_path):
    sheet = read_rows(written(tmp_path, "AGENT,Note,\na,x,\nb,,\na,y,\n")).to_sheet(["agent"], "-")
    assert sheet.columns == ("agent", "Note")
    assert sheet.column("Note") == ["x", "", "y"]
    assert sheet.column("none") == ["", "", ""]
    assert sheet.names("agent") == ("a", "b")
    assert sheet.where(2).startswith("line 4 of ")
    with pytest.raises(InputError, match=r"^line 3 of .* names no Note; fill it in$"):
        sheet.names("Note")


def test_an_agent_has_one_number_in_a_column(tmp_path):
    sheet = read_rows(written(tmp_path, "agent,cost\na,2\nb,\na,\n")).to_sheet(["agent"], "-")
    assert sheet.own_numbers("cost", ("a", "b"), 1.0) == [2.0, 1.0]
    sheet = read_rows(written(tmp_path, "agent,cost\na,2\na,3\n")).to_sheet(["agent"], "-")
    with pytest.raises(InputError, match="an agent has one cost; correct one"):
        sheet.own_numbers("cost", ("a",), 1.0)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("85%", "as 0.85 for 85 %"), ("1,700", "as 1700 or 0.85"), ("many", "leave the cell empty")],
)
def test_what_is_no_number_gets_a_remedy(text, remedy):
    with pytest.raises(InputError, match=rf'^the cell reads "{text}": .*{remedy}'):
        read_number(text, "the cell")


def test_an_empty_cell_is_no_number_unless_one_is_needed():
    assert math.isnan(read_number("", "the cell"))
    with pytest.raises(InputError, match=r'^the cell reads "": write one$'):
        read_number("", "the cell", {"": "write one"}, needed=True)


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "a.csv"
    write_csv(path, ["name", "n"], [["x, y", 1], ['"z"', 2.5]])
    assert path.read_bytes() == b'name,n\n"x, y",1\n"""z""",2.5\n'
    assert read_rows(path).cells == [["name", "n"], ["x, y", "1"], ['"z"', "2.5"]]
