"""Empty tables to send around: complete, readable by the commands, and never written over."""

import sys

import pytest
from commands import assert_refused, run
from documents import blocks

from fedaccord._io.table import read_rows
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.templates import write_tables
from fedaccord.wording import Words

NAMES = ("histograms", "pilots", "proposal")
HOSPITALS = Words("hospital", "case")


def test_the_folder_has_every_table_twice_and_a_readme(tmp_path):
    result = run("template", "plan", tmp_path / "tables")
    assert result.code == 0 and "pilots.xlsx" in result.stdout
    there = {path.name for path in (tmp_path / "tables").iterdir()}
    assert there == {"README.md", *(f"{n}.{s}" for n in NAMES for s in ("csv", "xlsx"))}
    for name in NAMES:
        csv, xlsx = (read_rows(tmp_path / "tables" / f"{name}.{s}") for s in ("csv", "xlsx"))
        assert csv.cells == xlsx.cells and csv.cells[0][0 if name != "pilots" else 1] == "hospital"


def test_what_is_there_is_not_written_over(tmp_path):
    folder = tmp_path / "tables"
    write_tables(folder, HOSPITALS)
    (folder / "pilots.csv").write_text("mine")
    assert_refused(run("template", "plan", folder), "is not empty", "name a new folder")
    assert (folder / "pilots.csv").read_text() == "mine"
    assert_refused(run("template", "plan", " "), "have no folder")


def test_without_openpyxl_there_are_csv_files_only(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    result = run("template", "plan", tmp_path / "tables")
    assert result.code == 0 and "pip install 'fedaccord[excel]'" in result.stdout
    assert {path.suffix for path in (tmp_path / "tables").iterdir()} == {".md", ".csv"}


def test_a_table_that_is_still_empty_says_so(tmp_path):
    write_tables(tmp_path / "tables", HOSPITALS)
    for name in NAMES[:2]:
        path = tmp_path / "tables" / f"{name}.xlsx"
        assert_refused(run("plan", path), "has nothing below its first line")
    assert_refused(run("pilots", path), "has nothing below its first line")


@pytest.mark.parametrize("words", [HOSPITALS, Words(), Words("land", "plot")])
def test_the_example_of_the_readme_has_the_columns_of_the_table_and_is_read(tmp_path, words):
    write_tables(tmp_path / "tables", words)
    text = (tmp_path / "tables" / "README.md").read_text()
    assert "{{" not in text and "\0" not in text
    (example,) = [block for block in blocks(text) if block.language == "csv"]
    path = tmp_path / example.file
    path.write_text(example.body)
    empty = tmp_path / "tables" / example.file
    assert path.read_text().splitlines()[0] == empty.read_text().strip()
    found = Histograms.load(path)
    assert found.agents == ("North", "South") and found.counts[0].tolist() == [900, 240, 5]
    assert run("pilots", path).code == 0
    if words == HOSPITALS:
        assert "agent" not in text.replace("agents.md", "") and "sample" not in text


def test_every_command_of_the_readme_is_one(tmp_path):
    write_tables(tmp_path / "tables", HOSPITALS)
    lines = (tmp_path / "tables" / "README.md").read_text().splitlines()
    commands = [line.split()[1:] for line in lines if line.startswith("    fedaccord ")]
    assert len(commands) == 5
    for command, *arguments in commands:
        known = run(command, "--help").stdout
        assert all(a in known for a in arguments if a.startswith("--")), command
