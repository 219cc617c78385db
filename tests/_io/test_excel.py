"""Workbooks: what a sheet holds is read as it is shown, and written so that nothing is run."""

import builtins
import contextlib
import datetime
import io
import re
import sys
import zipfile
from pathlib import Path

import pytest

from fedaccord._io.excel import format_workbook
from fedaccord._io.kinds import PROPOSAL
from fedaccord._io.numbers import Suspicion
from fedaccord._io.table import read_rows
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.measurement.fit import fit_curves
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.pilots import PilotTable

openpyxl = pytest.importorskip("openpyxl")

PILOTS = [
    ["Run", "Hospital", "Cases", "Accuracy", "Target", None],
    [1, "City", 1500, 0.871, "85 %", None],
    [1, "Rural", 1.5e3, None, 0.8, None],
    [None, None, None, None, None, None],
    [2, "City", "1 200", "87,4 %", None, None],
    [2, "Rural", 0, 0.79, None, None],
    ["Total", None, 4200, None, None, None],
]


def book(folder: Path, *sheets: list[list[object]], name: str = "table.xlsx") -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for number, rows in enumerate(sheets):
        sheet = made.create_sheet(f"Sheet {number}")
        for row in rows:
            sheet.append(row)
    made.save(folder / name)
    return folder / name


def test_pilots_are_read_from_a_workbook(tmp_path):
    table = PilotTable.load(book(tmp_path, PILOTS))
    assert table.agents == ("City", "Rural")
    assert table.contributions.tolist() == [[1500, 1500], [1200, 0]]
    assert table.accuracies[1].tolist() == [0.874, 0.79]
    assert table.goals.tolist() == [0.85, 0.8]
    assert any("row 7 of" in note and "left out" in note for note in table.notes)


def test_a_number_in_a_cell_is_that_number(tmp_path):
    rows = [["agent", "contribution"], ["a", 1.125], ["b", 1500], ["c", "1.500"]]
    with pytest.raises(InputError, match=r"c in row 4 of .* \(cell B4\) .* 1500 or 1.5"):
        Allocation.load(book(tmp_path, rows))
    found = Allocation.load(book(tmp_path, rows[:-1]))
    assert found.contributions.tolist() == [1.125, 1500]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("#DIV/0!", r"row 3 of .* \(cell B3\) reads \"#DIV/0!\": an error of the spreadsheet"),
        ("=B2*2", r"cell B3 of .* has a formula without a value: type the value in its place"),
        (datetime.date(2026, 3, 1), r"\(cell B3\) is a date, 2026-03-01: format the cell"),
        (True, r"\(cell B3\) reads \"TRUE\""),
        (2.5, r"\(cell B3\) is 2.5: write a whole number"),
        ("<11", None),
    ],
)
def test_cells_at_fault_are_named(tmp_path, cell, said):
    path = book(tmp_path, [["agent", "clear", "ill"], ["a", 4, 5], ["b", cell, 6]])
    if said is None:
        assert Histograms.load(path).counts.tolist() == [[4, 5], [5, 6]]
        return
    with pytest.raises(InputError, match=said):
        Histograms.load(path)


def test_what_a_formula_leaves_of_a_whole_number_is_that_number(tmp_path):
    rows = [["agent", "clear", "ill"], ["a", 420.00000000000006, 119.99999999999999]]
    assert Histograms.load(book(tmp_path, rows)).counts.tolist() == [[420, 120]]


def test_a_stray_cell_to_the_right_is_named(tmp_path):
    rows = [["agent", "clear", None, None], ["a", 4, None, None], ["b", 5, None, "ask Mary"]]
    with pytest.raises(InputError, match=r"^column D of .* has no name .*cell D3 has 'ask Mary'"):
        Histograms.load(book(tmp_path, rows))


def test_the_first_sheet_is_read_unless_another_is_named(tmp_path):
    other = [["contribution", "agent", "reserve"], [9, "x", 0]]
    path = book(tmp_path, [["agent", "contribution"], ["a", 5]], other)
    found = Allocation.load(path)
    assert found.agents == ("a",)
    assert "the first sheet is read, 'Sheet 0'; --sheet names another" in found.notes[0]
    assert "The sheet 'Sheet 1' looks like such a table too, and is not read" in found.notes[0]
    assert Allocation.load(path, sheet="Sheet 1").agents == ("x",)
    assert Allocation.load(path, sheet="Sheet 1").notes == ()
    with pytest.raises(InputError, match=r"no sheet 'Sheet1'; did you mean Sheet 1\?"):
        Allocation.load(path, sheet="Sheet1")
    with pytest.raises(InputError, match="; its sheets are 'Sheet 0' and 'Sheet 1': name one of"):
        Allocation.load(path, sheet="Plan")
    with pytest.raises(InputError, match="has only the sheet 'Sheet 0': leave --sheet out"):
        Allocation.load(book(tmp_path, [["a"]], name="one.xlsx"), sheet="Plan")


def test_a_workbook_is_told_by_its_content(tmp_path):
    path = book(tmp_path, [["agent", "contribution"], ["a", 5]])
    path = path.rename(tmp_path / "table.csv")
    assert Allocation.load(path) == Allocation([5], ["a"])
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"not a workbook that can be read .* save it as .xlsx"):
        Allocation.load(path)


def test_what_is_written_is_read_again_and_never_run(tmp_path):
    names = ["=1+1", "+x", "-y", "@z", "a, b", "'=q"]
    allocation = Allocation([1.125, 2, 0, 4e8, 1 / 3, 6], names)
    allocation.save(tmp_path / "plan.xlsx")
    assert Allocation.load(tmp_path / "plan.xlsx") == allocation
    cells = list(openpyxl.load_workbook(tmp_path / "plan.xlsx").active["A"])
    assert {cell.data_type for cell in cells} == {"s"}
    table = PilotTable(["a", "b"], [[5, 0]], [[0.5, 0.25]], limits=[9, 9])
    table.save(tmp_path / "pilots.xlsx")
    again = PilotTable.load(tmp_path / "pilots.xlsx")
    assert again.contributions.tolist() == [[5, 0]]
    assert again.limits.tolist() == [9, 9]
    with pytest.raises(InputError, match=r"cannot write .* save it as CSV"):
        Allocation([1], ["a\x01b"]).save(tmp_path / "plan.xlsx")


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    path = book(tmp_path, [["agent", "contribution"], ["a", 5]])
    real = builtins.__import__

    def refuse(name, *rest, **options):
        if name.partition(".")[0] == "openpyxl":
            raise ModuleNotFoundError("none here", name="openpyxl")
        return real(name, *rest, **options)

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedaccord\[excel\]'"):
        read_rows(path)
    with pytest.raises(MissingExtraError, match=r"fedaccord\[excel\]"):
        Allocation([1], ["a"]).save(tmp_path / "plan.xlsx")


def test_an_empty_sheet_says_what_it_should_start_with(tmp_path):
    with pytest.raises(InputError, match="is empty; save the table again"):
        read_rows(book(tmp_path, [])).to_sheet(PROPOSAL)


def test_a_cell_that_is_shown_in_per_cent_is_a_share_under_any_heading(tmp_path):
    for heading in ("accuracy", "Accuracy (%)"):
        path = book(tmp_path, [["pilot", "agent", "contribution", heading], [1, "a", 50, 0.874]])
        workbook = openpyxl.load_workbook(path)
        workbook.active["D2"].number_format = "0.0%"
        workbook.save(path)
        assert PilotTable.load(path).accuracies.tolist() == [[0.874]]
    workbook.active["C2"].number_format = "0%"
    workbook.save(path)
    with pytest.raises(
        InputError, match=r"\(cell C2\) reads \"5000 %\": write a number of samples"
    ):
        PilotTable.load(path)


def test_a_cover_sheet_and_a_title_are_passed_over(tmp_path):
    cover = [["St. Mary's"], ["Version", 3]]
    table = [["Counts of March"], [], ["agent", "contribution"], ["a", 5]]
    found = Allocation.load(book(tmp_path, cover, table))
    assert found.agents == ("a",)
    assert any(
        "one sheet is read, 'Sheet 1'; --sheet names another" in note for note in found.notes
    )
    assert any("found in row 3; rows above were skipped" in note for note in found.notes)


def test_hidden_rows_are_read_and_noted(tmp_path: Path) -> None:
    path = book(tmp_path, [["agent", "contribution"], ["A", 5], ["B", 7]])
    made = openpyxl.load_workbook(path)
    made.active.row_dimensions[3].hidden = True
    made.save(path)
    read = read_rows(path)
    assert read.cells[-1] == ["B", "7"]
    assert read.notes == (f"hidden rows of {path} are read too, the first is row 3",)


def test_rows_that_are_struck_through_are_read_and_noted(tmp_path: Path) -> None:
    path = book(tmp_path, [["agent", "contribution", "beds"], ["A", 5], ["B", 7], ["C", 9]])
    made = openpyxl.load_workbook(path)
    struck = openpyxl.styles.Font(strike=True)
    # An empty cell shows no stroke.
    made.active["C2"].font = struck
    made.active["A3"].font = made.active["B3"].font = struck
    made.save(path)
    read = read_rows(path)
    assert [row[0] for row in read.cells[1:]] == ["A", "B", "C"]
    said = f"row 3 of {path} is struck through and read too: delete what does not count"
    assert read.notes == (said,)


def test_struck_rows_and_copied_pilots_are_doubts_of_the_plan(tmp_path: Path) -> None:
    rows = [["pilot", "agent", "contribution", "accuracy", "goal"]]
    rows += [
        [n, a, 90 * n + i, 0.7 + n / 50, 0.75] for n in range(1, 9) for i, a in enumerate("AB")
    ]
    rows += [[9, a, *rows[3 + i][2:]] for i, a in enumerate("AB")]
    path = book(tmp_path, rows)
    made = openpyxl.load_workbook(path)
    made.active["A4"].font = openpyxl.styles.Font(strike=True)
    made.save(path)
    doubts = fit_curves(PilotTable.load(path), resamples=2).doubts
    said = [doubt.sentence for doubt in doubts if doubt.kind == "suspect-rows"]
    assert said[0].startswith("Row 4 of")
    assert "Pilot 9 (from row 18 of" in said[1] and "pilot 2 (from row 4)" in said[1]


def test_cells_that_are_merged_downwards_are_names_of_all_their_rows(tmp_path: Path) -> None:
    path = book(tmp_path, PILOTS[:3])
    made = openpyxl.load_workbook(path)
    made.active.merge_cells("A2:A3")
    made.save(path)
    assert len(PilotTable.load(path)) == 1
    for column in "CD":
        made = openpyxl.load_workbook(path)
        made.active.merge_cells(f"{column}2:{column}3")
        made.save(tmp_path / "numbers.xlsx")
        said = rf"Rural in row 3 .*\(cell {column}3\) is merged with the cell"
        with pytest.raises(InputError, match=said):
            PilotTable.load(tmp_path / "numbers.xlsx")


def test_hidden_columns_are_read_and_noted(tmp_path: Path) -> None:
    path = book(tmp_path, PILOTS)
    made = openpyxl.load_workbook(path)
    made.active.column_dimensions["E"].hidden = True
    made.save(path)
    assert any("the first is column E" in note for note in PilotTable.load(path).notes)


def test_a_hidden_sheet_is_named_where_the_others_are_empty(tmp_path: Path) -> None:
    path = book(tmp_path, PILOTS, [])
    made = openpyxl.load_workbook(path)
    made.active.sheet_state = "hidden"
    made.save(path)
    with pytest.raises(InputError, match=r"'Sheet 1' of .* empty, .* --sheet 'Sheet 0' reads it"):
        PilotTable.load(path)


def spoil(sheet: bytes | None = None, **more: bytes) -> bytes:
    """Return a small workbook with another sheet in it, or with more files."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(format_workbook(["agent"], [["A"]]))) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            own = sheet is not None and name.endswith("sheet1.xml")
            new.writestr(name, sheet if own else old.read(name))
        for name, content in more.items():
            new.writestr(name, content)
    return made.getvalue()


SHEET = b"""<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<sheetData>%s</sheetData></worksheet>"""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (spoil(SHEET % (b"<row>" + b"<c/>" * 400_000 + b"</row>")), "far more than a table"),
        (spoil((SHEET % (b"<c/>" * 400_000)).decode().encode("utf-16")), "far more than a table"),
        (spoil(picture=b"\0" * (65 << 20)), "far more than a table"),
        (
            spoil(SHEET % b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
            "reaches to cell XFD1048576",
        ),
    ],
    ids=["cells", "cells in UTF-16", "bytes", "a far cell"],
)
def test_a_workbook_that_would_take_hours_is_refused(
    data: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "plan.xlsx").write_bytes(data)
    with pytest.raises(InputError, match=words):
        read_rows(tmp_path / "plan.xlsx")


def test_a_workbook_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    whole = format_workbook(["agent", "contribution"], [["North", 5], ["South", 7]])
    path = tmp_path / "plan.xlsx"
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        with contextlib.suppress(InputError):
            read_rows(path)


def test_a_workbook_of_a_later_version_of_zip_is_refused(tmp_path: Path) -> None:
    whole = bytearray(format_workbook(["agent", "contribution"], [["North", 5], ["South", 7]]))
    # What the directory says of the first file that it needs.
    whole[whole.index(b"PK\x01\x02") + 6] = 78
    (tmp_path / "plan.xlsx").write_bytes(whole)
    with pytest.raises(InputError, match="is not a workbook that can be read"):
        read_rows(tmp_path / "plan.xlsx")


def test_two_sheets_with_the_same_headings_are_refused_until_one_is_named(tmp_path):
    final = [[" agent", "FLU", "ok"], ["a", 4, 5], ["b", 5, 6]]
    path = book(tmp_path, [["agent", "flu", "ok"], ["a", 1, 2]], [["notes"], ["x"]], final)
    said = r"the sheets 'Sheet 0' and 'Sheet 2' of .* have the same columns: .* --sheet 'Sheet 2'$"
    with pytest.raises(InputError, match=said):
        read_rows(path)
    assert len(read_rows(path, sheet="Sheet 2").cells) == 3
    workbook = openpyxl.load_workbook(path)
    workbook["Sheet 0"].sheet_state = "hidden"
    workbook.save(path)
    assert len(read_rows(path).cells) == 3


@pytest.mark.parametrize(
    ("area", "load", "said"),
    [
        (
            "E2:E3",
            Histograms.load,
            r"the limit of Hill in row 3 .*\(cell E3\) .* the cell above: s",
        ),
        ("D2:D3", Histograms.load, r"the need of Hill in row 3 .*\(cell D3\) .* the cell above: s"),
        ("B2:B3", Histograms.load, r"the count of clear of Hill .*\(cell B3\) .* the cell above: "),
        ("B3:C3", Histograms.load, r"the count of ill of Hill .*\(cell C3\) .* cell to its left: "),
        ("B2:C3", Histograms.load, r"the count of clear of Hill .*\(cell B3\) .* the cell above: "),
    ],
)
def test_merged_numbers_are_refused_in_every_column(tmp_path, area, load, said):
    made = openpyxl.Workbook()
    for row in (["agent", "clear", "ill", "need", "limit"], ["City", 9, 8, 7, 300]):
        made.active.append(row)
    made.active.append(["Hill", 5, 6, 4, 200])
    made.active.merge_cells(area)
    made.save(tmp_path / "table.xlsx")
    with pytest.raises(InputError, match=said + ".*write a number in each"):
        load(tmp_path / "table.xlsx")


@pytest.mark.parametrize("column", ["validation", "limit"])
def test_what_an_agent_has_one_of_may_be_merged_over_its_own_lines(tmp_path, column):
    made = openpyxl.Workbook()
    made.active.append(["agent", "pilot", "contribution", "accuracy", column])
    for agent in ("City", "Hill"):
        for pilot in (1, 2):
            made.active.append([agent, pilot, 100 * pilot, 0.7 + pilot / 10, 500])
    for area in ("A2:A3", "A4:A5", "E2:E3", "E4:E5"):
        made.active.merge_cells(area)
    made.save(tmp_path / "own.xlsx")
    table = PilotTable.load(tmp_path / "own.xlsx")
    assert getattr(table, {"limit": "limits"}.get(column, column)).tolist() == [500, 500]
    made.active.unmerge_cells("E4:E5")
    made.active.unmerge_cells("E2:E3")
    made.active.merge_cells("E2:E5")
    made.save(tmp_path / "all.xlsx")
    with pytest.raises(InputError, match=rf"the {column} of Hill in row 4 .* merged with the cell"):
        PilotTable.load(tmp_path / "all.xlsx")


@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        (
            1_500_000,
            "#,##0,",
            "is read as 1500000, and .* in thousands or millions, with the format #,##0,: check",
        ),
        (1_500_000, '0.0,,"M"', "is read as 1500000, and .* in thousands or millions"),
        (2, "0.000", "is read as 2, and the spreadsheet shows it like thousands, with the format"),
    ],
)
def test_a_number_that_is_shown_as_another_is_a_doubt(tmp_path, value, code, said):
    path = book(tmp_path, [["agent", "clear", "ill"], ["a", 4, 5], ["b", value, 6]])
    made = openpyxl.load_workbook(path)
    made.active["B3"].number_format = code
    made.save(path)
    found = Histograms.load(path)
    assert found.counts[1].tolist() == [value, 6]
    [doubt] = [note for note in found.notes if isinstance(note, Suspicion)]
    assert re.search(rf"clear of b in row 3 .*\(cell B3\) {said}", doubt)


@pytest.mark.parametrize(
    "code", ["#,##0", "0", "#,##0.00", '_-* #,##0.00 "€"_-', '#,##0 "a, b"', "0.00", "[Red]#,##0"]
)
def test_a_number_may_be_shown_with_signs(tmp_path, code):
    path = book(tmp_path, [["agent", "clear", "ill"], ["a", 4, 5], ["b", 1500, 6]])
    made = openpyxl.load_workbook(path)
    made.active["B3"].number_format = code
    made.save(path)
    assert Histograms.load(path).counts[1].tolist() == [1500, 6]


def test_an_accuracy_may_have_three_decimals(tmp_path):
    path = book(tmp_path, PILOTS)
    made = openpyxl.load_workbook(path)
    for row in range(2, 7):
        made.active.cell(row, 4).number_format = "0.000"
    made.save(path)
    assert PilotTable.load(path).accuracies[0, 0] == 0.871


def test_sheets_with_other_words_for_the_same_columns_are_refused(tmp_path):
    one = [["agent", "contribution"], ["a", 1500]]
    other = [["cases", "hospital"], [1200, "a"]]
    with pytest.raises(InputError, match=r"'Sheet 0' and 'Sheet 1' .* have the same columns"):
        Allocation.load(book(tmp_path, one, other))


def test_a_formula_may_have_an_empty_text_for_its_value(tmp_path):
    path = book(tmp_path, [["agent", "clear", "ill"], ["a", 4, 5], ["b", "=A1", 6]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b'<c r="B3">', b'<c r="B3" t="str">')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert Histograms.load(path).counts.tolist() == [[4, 5], [0, 6]]


def test_a_sheet_with_a_chart_that_cannot_be_read_is_named(tmp_path):
    path = book(tmp_path, PILOTS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/chartsheets/sheet1.xml", "<chartsheet/>")
        archive.writestr("xl/worksheets/sheet1.xml", "<worksheet")
    with pytest.raises(InputError, match="delete the sheet that has only a chart, or save the tab"):
        PilotTable.load(path)
