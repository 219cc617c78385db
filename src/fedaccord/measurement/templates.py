"""The empty tables that `fedaccord template plan` writes, with a README for those who fill them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from fedaccord._io.folders import write_folder
from fedaccord._io.kinds import HISTOGRAMS, PILOTS, PROPOSAL
from fedaccord._io.table import format_table
from fedaccord._lazy import imported
from fedaccord.errors import InputError, MissingExtraError
from fedaccord.wording import Words

# The columns of each empty table.
TABLES = {
    "histograms": ("agent", *HISTOGRAMS.own),
    "pilots": (*PILOTS.needed, *PILOTS.own),
    "proposal": ("agent", *PROPOSAL.needed),
}
# Where the README has the heading of the column of agents.
HEADING = "{{agent}}"


def write_tables(folder: str | Path, words: Words) -> tuple[str, ...]:
    """Write empty tables and a README into a folder, and return the names of the files.

    Excel files are written where openpyxl is there.

    folder: new or empty.
    words: what the README calls agents and samples.
    """
    if not str(folder).strip():
        raise InputError("the tables have no folder; name a new one, such as tables")
    readme = resources.files("fedaccord.measurement") / "template" / "README.md"
    # Their own word for an agent is the heading, if tables with it are read.
    heading = words.agent if PILOTS.find_column(words.agent) == "agent" else "agent"
    text = words.rename(readme.read_text("utf-8").replace(HEADING, "\0")).replace("\0", heading)
    tables = {
        name: [heading if column == "agent" else column for column in columns]
        for name, columns in TABLES.items()
    }
    files: dict[str, str | bytes] = {"README.md": text}
    files.update({f"{name}.csv": format_table(columns, ()) for name, columns in tables.items()})
    files.update(_make_workbooks(tables))
    write_folder(folder, files, what="tables")
    return tuple(files)


def _make_workbooks(tables: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    try:
        imported("openpyxl")
    except MissingExtraError:
        return {}
    from fedaccord._io.excel import format_workbook

    return {f"{name}.xlsx": format_workbook(columns, ()) for name, columns in tables.items()}
