"""The reference of files and of the command plan says what the code has: columns and options."""

import re
from pathlib import Path

import pytest
import typer.main

from fedaccord._io import kinds
from fedaccord._io.kinds import SYNONYMS, TOTALS
from fedaccord.cli import app
from fedaccord.measurement import histograms, pilots

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = "\n".join(
    (REFERENCE / name).read_text(encoding="utf-8")
    for name in ("file-formats.md", "game-commands.md")
)
COMMANDS = ("solve", "check", "share", "coalitions", "catalog", "pilots", "plan", "reproduce")
# Said of every command.
EVERYWHERE = {"--help"}
WORDING = {"--title", "--agent-word", "--sample-word"}


def part(heading, text=PAGE):
    """Give what stands under a heading, up to the next."""
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"the page has no heading {heading}"
    return found[1]


def columns(heading, text=PAGE):
    """Give the columns that the table of a file names."""
    rows = re.findall(r"^\| (`.*?) \|", part(heading, text), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def usage(name, text=PAGE):
    """Give the options of a command that the page shows."""
    found = re.search(
        rf"^    fedaccord {name} (.*?)(?=^    fedaccord|^\S)", part("Commands", text), re.M | re.S
    )
    own = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", found[1]))
    return own | WORDING if "[WORDING]" in found[1] else own


def test_the_columns_of_a_table_of_pilots_are_on_the_page():
    assert columns("PILOTS.csv") == [*kinds.PILOTS.needed, *kinds.PILOTS.own]


def test_the_columns_of_histograms_are_on_the_page():
    assert columns("HISTOGRAMS.csv") == ["agent", *kinds.HISTOGRAMS.own[2:]]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_on_the_page(name):
    command = typer.main.get_command(app).commands[name]
    shown = [p for p in command.params if not p.hidden]
    options = {o for p in shown for o in (*p.opts, *p.secondary_opts)}
    assert usage(name) == {o for o in options if o.startswith("--")} - EVERYWHERE


def test_the_headings_that_mean_a_column_are_on_the_page_of_tables():
    text = (REFERENCE / "tables.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", part("Headings", text), re.MULTILINE)
    said = {name: tuple(re.findall(r"`([^`]+)`", cell)) for name, cell in rows}
    assert said == dict(SYNONYMS)


def test_the_names_of_totals_are_on_the_page_of_tables():
    text = (REFERENCE / "tables.md").read_text(encoding="utf-8")
    sentence = re.search(r"These names say\nso: ([^.]+)\.", text)[1]
    said = {name.replace(" ", "").casefold() for name in re.findall(r"`([^`]+)`", sentence)}
    assert said == TOTALS - {"∑"}


def test_the_pages_own_files_can_be_read(tmp_path):
    for heading, read in (
        ("PILOTS.csv", pilots.PilotTable.load),
        ("HISTOGRAMS.csv", histograms.Histograms.load),
    ):
        file = tmp_path / heading
        file.write_text(re.search(r"```csv [a-z]+\.csv\n(.*?)```", part(heading), re.S)[1])
        assert read(file).agents == ("north", "south")


# The checker is first shown pages that lie.


@pytest.mark.parametrize(
    ("true", "false", "look"),
    [
        ("| `accuracy` |", "| `exactness` |", lambda text: columns("PILOTS.csv", text)),
        ("| `need` |", "| `needs` |", lambda text: columns("HISTOGRAMS.csv", text)),
        ("[--save-pilots ", "[--keep-pilots ", lambda text: usage("plan", text)),
    ],
)
def test_a_page_that_lies_is_caught(true, false, look):
    assert PAGE.count(true) == 1
    assert look(PAGE.replace(true, false)) != look(PAGE)
