"""The paper's claims with their verdicts, for a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from fedaccord.report.model import Mark, Page, Section, Table, Tone
from fedaccord.report.terminal import line
from fedaccord.reproduce.claims import EXPERIMENT, NOT_YET, Row, Verdict
from fedaccord.wording import format_duration

if TYPE_CHECKING:
    from fedaccord.reproduce.claims import Claim
    from fedaccord.reproduce.run import Reproduction

TONES: Mapping[Verdict, Tone] = {
    Verdict.HOLDS: "good",
    Verdict.CORRECTED: "unsure",
    Verdict.FAILS: "bad",
    Verdict.NOT_RUN: "plain",
}
STYLES = {"good": "green", "unsure": "yellow", "bad": "red", "plain": "dim"}


def claims_table(claims: Mapping[str, Claim]) -> Grid:
    """List the claims that can be checked: the id, what is claimed, and where."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for claim in claims.values():
        grid.add_row(line(claim.id, "bold"), line(f"{claim.claim} ({claim.place})"))
    return grid


def row_line(row: Row) -> str:
    """Return the verdict on a claim in a line."""
    return f"{row.claim.id}: {row.finding.verdict.value} ({format_duration(row.seconds)})"


def rows_table(found: Reproduction) -> Grid:
    """List the checked claims: the verdict, then what was measured."""
    grid = Grid.grid(padding=(0, 2, 1, 0))
    grid.add_column(max_width=len(Verdict.CORRECTED.value))
    for row in found.rows.values():
        if _is_left_out(row):
            continue
        style = STYLES[TONES[row.finding.verdict]]
        head = Text.assemble(
            (row.claim.id, "bold"), f"  {row.claim.place}, {format_duration(row.seconds)}\n"
        )
        correction = f"Correction: {row.finding.correction}" if row.finding.correction else ""
        said = (f"{row.claim.claim}.", row.finding.measured, correction)
        body = " ".join(filter(None, said))
        grid.add_row(line(row.finding.verdict.value, style), Text.assemble(head, line(body)))
    return grid


# The page.


def reproduction_page(found: Reproduction, *, command: str = "") -> Page:
    """Make a page of the paper's claims: a table of verdicts, then each claim with its evidence.

    found: the checked claims.
    command: what was typed.
    """
    run = [row for row in found.rows.values() if not _is_left_out(row)]
    parts: dict[str, list[Section]] = {}
    for row in run:
        parts.setdefault(row.claim.part, []).append(_claim(row))
    return Page(
        title="One for One, or All for All: its claims, checked",
        verdict=found.sentence(),
        tone=_tone(found),
        sections=(
            Section("The claims at a glance", (*_introduction(found, run), _overview(run))),
            *(Section(part, tuple(claims)) for part, claims in parts.items()),
        ),
        facts=(
            ("Paper", "Blum, Haghtalab, Phillips, Shao: One for One, or All for All (ICML 2021)"),
            ("Scale", "full" if found.full else "quick"),
            ("Machine", found.machine),
            ("Versions", found.versions),
            ("Time", format_duration(found.seconds)),
        ),
        command=command,
    )


def _tone(found: Reproduction) -> Tone:
    if found.count(Verdict.FAILS):
        return "bad"
    return "good" if found.count(Verdict.HOLDS) == len(found.rows) else "plain"


def _introduction(found: Reproduction, run: Sequence[Row]) -> Iterator[str]:
    yield (
        "Every claim of the paper that software can check is a row. A claim holds as printed, "
        "holds with a correction, or fails. With a correction: the printed claim has a "
        "counter-example or other numbers, and the row says how the claim must read. It fails if "
        "the measurement contradicts it or does not decide it. The theorem about the convex "
        "program CP 1 has no number here. In copies of the paper that number it, every theorem "
        "after the fourth has a number higher by one."
    )
    if any(row.claim.part == EXPERIMENT for row in run):
        yield (
            "The experiment was run on EMNIST."
            if found.full
            else "The experiment was run on a smaller scale, on scikit-learn's handwritten "
            "digits. These are not the paper's data, so its rows show trends, and cannot "
            "refute any percentage."
        )
    if len(run) < len(found.rows):
        yield f"{len(found.rows) - len(run)} more claims were not checked and are not listed."


def _overview(run: Sequence[Row]) -> Table:
    rows = []
    for row in run:
        verdict = Mark(row.finding.verdict.value, TONES[row.finding.verdict])
        claim = row.claim
        rows.append((claim.claim, verdict, claim.place, claim.id, round(row.seconds, 1)))
    columns = ("claim", "verdict", "where in the paper", "id", "seconds")
    return Table("Claims and verdicts", columns, tuple(rows))


def _is_left_out(row: Row) -> bool:
    """Return whether a row was left out on purpose, as opposed to one that could not be run."""
    return row.finding.measured == NOT_YET


def _claim(row: Row) -> Section:
    from fedaccord.report.drawing import picture_of

    said = {
        "Verdict": f"{row.finding.verdict.value}.",
        "The paper": f"{row.claim.paper} ({row.claim.place}.)",
        "Measured": row.finding.measured,
        "Correction": row.finding.correction,
    }
    words = (f"{head}: {text}" for head, text in said.items() if text)
    pictures = (picture_of(chart) for chart in row.finding.charts)
    return Section(row.claim.claim, (*words, *pictures))
