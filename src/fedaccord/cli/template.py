"""The commands about templates: empty tables to send around."""

from __future__ import annotations

from typing import Annotated

import typer

from fedaccord.cli.app import AgentWord, SampleWord, app, read_wording
from fedaccord.report.terminal import emit_text, plain
from fedaccord.wording import join_with_and

template = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Write empty tables to fill in.",
)
app.add_typer(template, name="template")


@template.callback()
def _template() -> None:
    """Write empty tables to fill in."""


@template.command()
def plan(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder to create. It must be new or empty.")
    ],
    agent_word: AgentWord = "hospital",
    sample_word: SampleWord = "case",
) -> None:
    """Write the empty tables of a plan (histograms, pilots, proposal) and a README for hospitals.

    The README says in plain English what to count and what to send. Tables are written as CSV and,
    if openpyxl is installed, as Excel files. Existing files are never overwritten.
    """
    from fedaccord.measurement.templates import write_tables

    words = read_wording(None, agent_word, sample_word).words
    made = write_tables(folder, words)
    emit_text(plain(f"The folder {folder} now has {join_with_and(made)}."))
    if not any(name.endswith(".xlsx") for name in made):
        emit_text("Install openpyxl for Excel files as well: pip install 'fedaccord[excel]'.")
    to_send = f"Send README.md and the table histograms to each {words.agent}."
    emit_text(plain(f"{to_send} README.md has the commands."))
