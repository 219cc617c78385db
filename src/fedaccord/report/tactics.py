"""What defectors do beyond giving less, in an audit's tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator

from fedaccord.federation.defection.curves import DefectionAudit, DefectionCurve
from fedaccord.federation.defection.intervals import KeptWorth, Proportion
from fedaccord.federation.defection.kept_worth import describe_kept_worth
from fedaccord.frontier.result import Frontier
from fedaccord.report.defection import format_share
from fedaccord.report.model import Cell, Table
from fedaccord.wording import count, format_interval, format_level

FILLED = {
    "copies": "fills its contribution up with copies of the samples that it gives",
    "labels": "fills its contribution up with its own samples, with shuffled labels",
    "noise": "fills its contribution up with noise",
    "idle": "gives no samples and returns every model as it got it",
    "random": "gives no samples and returns every model with noise added",
}
BEST = (
    "A defector can use the last model that it got. It can also continue training alone, on what "
    "it gave or on all its data (P3), and use the better model."
)
AFTERWARDS = ("last model", "trained on what it gave", "trained on all its data")


def describe_tactics(audit: DefectionAudit) -> str:
    """Return what defectors do beyond giving less; nothing if they do no more."""
    asked = audit.options
    said = []
    if asked.group > 1:
        said.append(
            f"{count(asked.group, 'agent')} defect together; they succeed if all of them reach "
            "their goals."
        )
    if asked.filler is not None:
        found = (
            ". The federation finds copies by their hashes and does not count them"
            if asked.detect_copies
            else ""
        )
        said.append(f"A defector {FILLED[asked.filler]}{found}.")
    if asked.kept_data:
        said.append(BEST)
    return " ".join(said)


def show_going_on(audit: DefectionAudit) -> Iterator[str | Table]:
    """Return the tables of defectors that continue training alone; nothing if none do."""
    if not audit.options.kept_data:
        return
    yield _list_going_on(audit)
    worths = [one for curve in audit.curves for one in curve.kept_worth.values()]
    if worths:
        yield _list_worths(audit)
        yield describe_kept_worth(worths)


def _list_going_on(audit: DefectionAudit) -> Table:
    """List how often a defector reaches its goal, by what it does with the model that it gets."""
    rows: list[tuple[Cell, ...]] = []
    for curve in audit.curves:
        for point in curve.levels:
            if point.outside is not None and point.kept is not None:
                shares = map(audit.defector_share, (point.judged, point.outside, point.kept))
                gives = format_level(point.level)
                rows.append((curve.algorithm, gives, *(format_share(share) for share in shares)))
    return Table(
        "How often a defector reaches its goal, by what it does afterwards",
        ("algorithm", "it gives", *AFTERWARDS),
        tuple(rows),
    )


def _list_worths(audit: DefectionAudit) -> Table:
    """List what a sample that an agent keeps is worth to it, relative to one that it shares."""
    names = [name for name in audit.clients if any(name in c.kept_worth for c in audit.curves)]
    return Table(
        "What a kept sample is worth to its owner (a shared sample: 1)",
        ("agent", *(curve.algorithm for curve in audit.curves)),
        tuple((name, *(_format_worth(curve, name) for curve in audit.curves)) for name in names),
    )


def list_tactics(frontier: Frontier) -> Table:
    """List how often contributors that give less reach their goals, by what else they do."""
    level = frontier.goals.level
    contenders = frontier.contenders
    rows = []
    for one in contenders:
        point = one.p2.at(level)
        shares: list[Proportion | None] = [point.judged.contributors]
        for found in (point.outside, point.kept):
            shares.append(None if found is None else found.contributors)
        for curve in one.further.values():
            found = curve.at(level).judged
            shares += [found.contributors, found.others_of_contributors or found.others]
        rows.append((one.name, *(None if s is None else format_share(s) for s in shares)))
    heads = [h for what in contenders[0].further for h in (what, f"others, {what}")]
    return Table(
        f"How often contributors that give {format_level(level)} reach their goals",
        ("algorithm", *AFTERWARDS, *heads),
        tuple(rows),
    )


def _format_worth(curve: DefectionCurve, name: str) -> Cell:
    found: KeptWorth | None = curve.kept_worth.get(name)
    if found is None:
        return None
    if not found.known:
        return "not known"
    return format_interval(found.value, found.low, found.high, "{:.2f}".format)
