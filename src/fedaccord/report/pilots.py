"""Pilots to run, for people: what each agent gives in each, how to run them, and why these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedaccord.report.model import Mark, Table
from fedaccord.wording import count, format_percent, join_with_and

if TYPE_CHECKING:
    from fedaccord.measurement.to_run import PilotList
    from fedaccord.planning.next_pilots import NextPilots

HOW = (
    "In each pilot, every agent takes as many of its samples as the column contribution says, "
    "drawn at random for this pilot.",
    "All agents train together, exactly as in the real training. Then each agent measures the "
    "model on its own validation samples, new ones in each pilot, and fills in its accuracy.",
)
ACCURACY = (
    "Column accuracy: a number between 0 and 1. Leave it empty until the pilot is run, and write "
    "failed if training failed."
)
OWN = (
    "Column goal: the accuracy that the agent wants. Column validation: how many validation "
    "samples it measures on. Column limit: the most samples it can give. Fill these in once for "
    "each agent."
)


def show_pilots(
    pilots: PilotList, found: NextPilots | None, path: str
) -> Iterator[str | Mark | Table]:
    """Lay out pilots for a terminal.

    pilots: the table to fill in.
    found: why these, where they follow others; None for first pilots.
    path: where the table was written; empty where it was not.
    """
    where = f" The table to fill in is {path}." if path else ""
    agents = count(len(pilots.members), "agent")
    yield f"{count(len(pilots), 'pilot')} to run with {agents}.{where}"
    yield _list_contributions(pilots, found)
    if found is not None:
        yield from (f"{n}: {why}" for n, why in zip(pilots.names, pilots.why, strict=True))
        yield ""
    yield from list_instructions(pilots, found, path)


def list_instructions(
    pilots: PilotList, found: NextPilots | None = None, path: str = "FILE"
) -> list[str]:
    """Return sentences on how to run pilots, what each column wants, and what they will tell.

    pilots: the table to fill in.
    found: why these, where they follow others.
    path: where the table is.
    """
    if found is None:
        limits = zip(pilots.members.agents, pilots.members.limits, strict=True)
        empty = [name for name, most in limits if not most]
        verb = "has" if len(empty) == 1 else "have"
        only = [f"{join_with_and(empty)} {verb} no samples: write contribution 0, and an accuracy."]
        after = f"Then run: fedaccord plan {path or 'FILE'}"
        return [*HOW, *(only if empty else []), ACCURACY, OWN, after]
    said = [_describe_total(found), found.verdict]
    if found.left:
        said.append(
            f"{count(len(found.left), 'doubt')} would stay open: {_name_doubts(found)}. Choose "
            "more pilots, or see what each doubt asks for."
        )
    return [*filter(None, said), "Append the rows to your table, run the pilots, and plan again."]


def _describe_total(found: NextPilots) -> str:
    total = found.total
    if total is None or total.low is None or total.high is None:
        return ""
    return (
        f"Without a safety margin, the stable plan now asks for {total.value:,.0f} samples. Its "
        f"95 % interval runs from {total.low:,.0f} to {total.high:,.0f}."
    )


def _name_doubts(found: NextPilots) -> str:
    from fedaccord.measurement.diagnostics import SUBJECTS

    kinds: dict[str, list[str]] = {}
    for doubt in found.left:
        names = kinds.setdefault(SUBJECTS[doubt.kind], [])
        if doubt.agent is not None:
            names.append(found.plan.name(doubt.agent))
    return ", ".join(
        f"{kind} ({join_with_and(names)})" if names else kind for kind, names in kinds.items()
    )


def _list_contributions(pilots: PilotList, found: NextPilots | None) -> Table:
    """Return what each agent gives in each pilot, the sum, and how wide the interval is then."""
    more = () if found is None else ("interval",)
    widths: list[tuple[str, ...]] = [()] * len(pilots)
    if found is not None:
        widths = [(format_percent(width),) for width in found.widths]
    given = zip(pilots.names, pilots.contributions, widths, strict=True)
    caption = "The samples that each agent gives in each pilot"
    if found is not None:
        caption += ", and the expected width of the interval after it, in per cent of that now"
    return Table(
        caption,
        ("pilot", *pilots.members.agents, "all", *more),
        tuple(
            (name, *(f"{n:,}" for n in row), f"{sum(row):,}", *width) for name, row, width in given
        ),
    )
