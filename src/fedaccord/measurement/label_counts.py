"""The counts in a table of label histograms: read, refused or doubted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Matrix
from fedaccord._io.kinds import HISTOGRAMS, NO_LABELS, TOTALS, simplify
from fedaccord._io.numbers import SUPPRESSED, Suspicion, find_middle
from fedaccord._io.table import Sheet
from fedaccord.errors import InputError
from fedaccord.wording import count, format_samples, pluralize

# What a table says of each label: NaN where a cell is empty, and how far off a count may be that
# was withheld.
Counts: TypeAlias = tuple[tuple[str, ...], Matrix, Matrix]


def read_counts(
    sheet: Sheet, agents: tuple[str, ...], limits: ArrayLike
) -> tuple[tuple[str, ...], Matrix]:
    """Return the labels of a table, and how many samples of each every agent has.

    sheet: the table, wide or long; it takes the notes.
    agents: their names.
    limits: the most that each can give.
    """
    long = {"label", "count"} & set(sheet.columns)
    if len(long) == 1:
        raise InputError(
            f"{sheet.path} has a column for the {long.pop()} and none for the "
            f"{'count' if 'label' in sheet.columns else 'label'}: a table has both, or a "
            "column for each label"
        )
    labels, counts, room = (_read_long if long else _read_wide)(sheet, agents)
    counts = np.nan_to_num(counts, nan=0.0)
    _doubt_limits(sheet, agents, counts, room, limits)
    return labels, counts


def _doubt_limits(
    sheet: Sheet, agents: Sequence[str], counts: Matrix, room: Matrix, limits: ArrayLike
) -> None:
    """Note which agent may give more samples than were counted, and can have been withheld."""
    with np.errstate(over="ignore"):
        sizes = (counts + room).sum(axis=1)
    most = np.asarray(limits, float)
    over = np.flatnonzero((sizes > 0) & np.isfinite(most) & (most > sizes))
    if over.size:
        agent = int(over[0])
        others = f" (and so for {count(over.size - 1, 'other agent')})" if over.size > 1 else ""
        up_to = " at most" if room[agent].any() else ""
        sheet.notes.append(
            Suspicion(
                f"the limit of {agents[agent]} in {sheet.path} is {format_samples(most[agent])}, "
                f"above its counts, which add up to {format_samples(sizes[agent])}{up_to}{others}: "
                "correct one of the two, unless not all samples are counted"
            )
        )


def _read_cells(sheet: Sheet, columns: Sequence[str]) -> tuple[Matrix, Matrix]:
    """Return columns of counts, NaN where empty, and how far off each may be."""
    bounds = [[SUPPRESSED.fullmatch(cell) for cell in sheet.column(name)] for name in columns]
    room = [[0.0 if bound is None else find_middle(bound) for bound in cells] for cells in bounds]
    read = [sheet.numbers(name, suppressed=True) for name in columns]
    return np.array(read).T, np.array(room).T


def _note_withheld(sheet: Sheet, columns: Sequence[str]) -> None:
    """Note counts that were withheld."""
    cells = [cell for name in columns for cell in sheet.column(name)]
    withheld = [bound for cell in cells if (bound := SUPPRESSED.fullmatch(cell))]
    if withheld:
        middle = find_middle(withheld[0])
        sheet.notes.append(
            f"{count(len(withheld), 'count')} in {sheet.path} "
            f"{pluralize(len(withheld), 'is', 'are')} withheld and ASSUMED: "
            f'"{withheld[0][0]}" was read as {middle:g}, the middle of 0 to {2 * middle:g}'
        )


def _read_wide(sheet: Sheet, agents: tuple[str, ...]) -> Counts:
    known = ("agent", *HISTOGRAMS.own)
    labels = tuple(name for name in sheet.columns if name not in known)
    if not labels:
        raise InputError(f"{sheet.path} has no column with counts of a label; add one per label")
    _check_labels(sheet, labels)
    if len(agents) < len(sheet.lines):
        owners = sheet.column("agent")
        row = next(n for n, name in enumerate(owners) if name in owners[:n])
        raise InputError(
            f"{sheet.where(row)} is the second of {owners[row]}; join the two, or delete a copy"
        )
    sums = [name for name in labels if name.casefold() in TOTALS]
    rest = tuple(name for name in labels if name not in sums)
    counts, room = _read_cells(sheet, rest or labels)
    _note_withheld(sheet, rest or labels)
    if not sums or not rest:
        _refuse_sum(sheet, labels, np.nan_to_num(counts))
        return labels, counts, room
    found = np.nansum(counts, axis=1)
    for row, said in enumerate(sheet.numbers(sums[0])):
        if said == said and said != found[row] and not room[row].any():
            raise InputError(
                f"{sheet.where(row)} has {said:g} in the column {sums[0]!r}, and its labels sum to "
                f"{found[row]:g}: leave the column out, or rename it if it is a label"
            )
    sheet.notes.append(f"the column {sums[0]!r} of {sheet.path} sums up the others and is left out")
    return rest, counts, room


def _check_labels(sheet: Sheet, labels: Sequence[str]) -> None:
    """Refuse columns of numbers that are no counts, and labels that differ in capitals only."""
    seen: dict[str, str] = {}
    for label in labels:
        if simplify(label).rstrip(".") in NO_LABELS:
            raise InputError(
                f"the column {label!r} of {sheet.path} seems to have no counts of samples: delete "
                "it, or rename it if it is a label"
            )
        other = seen.setdefault(label.casefold(), label)
        if other != label:
            raise InputError(
                f"{sheet.path} has the labels {other!r} and {label!r}: use the same spelling, and "
                "join the two columns if they are one label"
            )


def _refuse_sum(sheet: Sheet, labels: Sequence[str], counts: Matrix) -> None:
    """Refuse a column that is the sum of all the others, whatever it is called."""
    # Counts that are far too large are refused later, each by name.
    with np.errstate(over="ignore"):
        sums = counts.sum(axis=1)
    for label, column in zip(labels, counts.T, strict=True):
        if len(labels) > 2 and column.any() and (column == sums / 2).all():
            raise InputError(
                f"the column {label!r} of {sheet.path} is the sum of the others in every "
                f"{sheet.unit}: delete it"
            )


def _read_long(sheet: Sheet, agents: tuple[str, ...]) -> Counts:
    labels = sheet.names("label")
    counts = np.full((len(agents), len(labels)), np.nan)
    room = np.zeros_like(counts)
    rows, columns = ({name: n for n, name in enumerate(some)} for some in (agents, labels))
    values, rooms = _read_cells(sheet, ["count"])
    _note_withheld(sheet, ["count"])
    seen = set()
    cells = zip(sheet.column("agent"), sheet.column("label"), strict=True)
    for row, (agent, label) in enumerate(cells):
        place = rows[agent], columns[label]
        if place in seen:
            raise InputError(
                f"{sheet.where(row)} is the second of {agent} for the label {label!r}; join the two"
            )
        seen.add(place)
        counts[place], room[place] = values[row, 0], rooms[row, 0]
    return labels, counts, room
