"""The counts in a table of label histograms: read, refused or doubted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Matrix, find_slip
from fedaccord._io.kinds import (
    AGAIN,
    HISTOGRAMS,
    NOUN,
    PERCENT,
    UNLABELLED,
    find_meant,
    has_no_counts,
    is_comment,
    simplify,
)
from fedaccord._io.numbers import PLAIN, SUPPRESSED, Suspicion, find_middle, shorten
from fedaccord._io.rows import Rows
from fedaccord._io.sheet import Sheet, is_total
from fedaccord.errors import InputError
from fedaccord.wording import count, format_samples, join_with_and, pluralize

# Names that agents have and labels have not.
AGENTS = re.compile(
    r"\b(?:hospital|clinic|klinik|klinikum|krankenhaus|university|universität|medical cent(?:er|re)"
    r"|institution|site|client)\b",
    re.IGNORECASE,
)
# What a line of the largest or the smallest numbers is called, and so may be an agent.
EXTREMES = ("max", "maximum", "min")
# What to do about a table whose rows are labels.
SWAP = "swap rows and columns, so that each agent has a row and each label a column"
# Comparing spellings takes time: more names than this are not compared with each other.
MOST_COMPARED = 100
# So many numbers that count up from 1 are likely the numbers of the rows.
LEAST_NUMBERED = 3
# Of three agents one can be the sum of the others by chance if its counts have fewer digits in all.
LEAST_DIGITS = 5
# A label can be the sum of some others by chance if its counts show fewer digits than this, beyond
# those that the number of sums to try takes away. Of so many labels all sums are tried, and of more
# so many sums of neighbours; as many agents as this must show it.
LEAST_SHOWN, MOST_CHOSEN, MOST_SETS, MOST_SHOWN = 2, 10, 2_000, 20
# So far off may a total be for which somebody counted again, and so large are numbers that show it.
MOST_OFF, LEAST_LARGE = 0.01, 100
# Larger counts than this are of telephone numbers, if other labels have few.
MOST_COUNTED = 10**6
# Numbers from here on, that differ by less than this while other columns differ by more, are dates
# or codes; people count off samples in round numbers.
LEAST_DATE, MOST_ALIKE, LEAST_UNLIKE, ROUND = 10_000, 0.03, 0.3, 100
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
    _refuse_percent(sheet, agents)
    if named := next((name for name in agents if simplify(name) in HISTOGRAMS.own), None):
        raise InputError(f"{_find_place(sheet, named)} names {named!r}, a column, as agent: {SWAP}")
    read = (_read_long if long else _read_wide)(sheet, agents)
    labels, counts, room = _leave_out_sums(sheet, agents, *read)
    _note_withheld(sheet, ["count"] if long else labels)
    _doubt_sums(sheet, agents, labels, counts, room)
    _doubt_limits(sheet, agents, counts, room, limits)
    _doubt_spelling(sheet, agents, labels, counts)
    _doubt_extremes(sheet, agents, counts)
    _note_percent(sheet, counts, limits)
    _doubt_turned(sheet, agents, labels)
    return labels, counts


def refuse_twice(sheet: Sheet) -> None:
    """Refuse an agent that comes twice in a table with a column for each label."""
    owners = sheet.column("agent")
    if "label" not in sheet.columns and len(set(owners)) < len(owners):
        row = next(n for n, name in enumerate(owners) if name in owners[:n])
        raise InputError(
            f"{sheet.where(row)} is the second of {owners[row]}; join the two, or delete a copy"
        )


def _refuse_percent(sheet: Sheet, agents: Sequence[str]) -> None:
    """Refuse names that say that their numbers are in per cent, as 'clear (%)'."""
    labels = sheet.names("label") if "label" in sheet.columns else _find_labels(sheet)
    for names, what in ((agents, f"{sheet.unit}s of"), (labels, "label")):
        if found := next(filter(PERCENT.search, names), None):
            raise InputError(
                f"the {what} {found!r} in {sheet.path} {'are' if names is agents else 'is'} in per "
                "cent: delete shares, and write how many samples each agent has"
            )


def _find_labels(sheet: Sheet) -> tuple[str, ...]:
    """Return the labels of a table with a column for each."""
    known = ("agent", *HISTOGRAMS.own)
    return tuple(name for name in sheet.columns if name not in known and not is_comment(name))


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
        others = f" (as for {count(over.size - 1, 'other agent')})" if over.size > 1 else ""
        up_to = " at most" if room[agent].any() else ""
        sheet.notes.append(
            Suspicion(
                f"the limit of {agents[agent]} in {sheet.path} is {format_samples(most[agent])}, "
                f"above its counts, which add up to {format_samples(sizes[agent])}{up_to}{others}: "
                "if all samples are counted, correct the limit or the counts"
            )
        )


def _doubt_spelling(
    sheet: Sheet, agents: Sequence[str], labels: Sequence[str], counts: Matrix
) -> None:
    """Note a label of one agent alone, or an agent of a long table, that is likely misspelt."""
    if max(counts.shape) > MOST_COMPARED:
        return
    has = counts > 0
    for label in map(int, np.flatnonzero(has.sum(axis=0) == 1)):
        agent = int(np.argmax(has[:, label]))
        others = [one for one, n in zip(labels, has[agent], strict=True) if not n]
        if near := find_slip(labels[label], others):
            sheet.notes.append(
                Suspicion(
                    f"{agents[agent]} alone has the label {labels[label]!r}, in "
                    f"{_find_place(sheet, agents[agent], labels[label])}, and has no {near!r}: "
                    f"correct the label if {near!r} is meant"
                )
            )
    for agent, name in enumerate(agents if "label" in sheet.columns else ()):
        fuller = has.sum(axis=1) > has[agent].sum()
        if near := find_slip(name, [one for one, more in zip(agents, fuller, strict=True) if more]):
            sheet.notes.append(
                Suspicion(
                    f"{name}, in {_find_place(sheet, name)}, has fewer labels than {near}: "
                    f"correct the name if {near} is meant"
                )
            )


def _doubt_extremes(sheet: Sheet, agents: Sequence[str], counts: Matrix) -> None:
    """Refuse a line named and filled like the largest counts of all; note one that is named so."""
    for agent, name in enumerate(agents):
        if simplify(name) in EXTREMES and len(agents) > 2:
            said = f"{_find_place(sheet, name)} is called {name!r}, like one of the largest or "
            said += "smallest numbers: delete it"
            others = np.delete(counts, agent, axis=0)
            if any((counts[agent] == of(axis=0)).all() for of in (others.max, others.min)):
                raise InputError(said)
            sheet.notes.append(f"{said} if it is")


def _note_percent(sheet: Sheet, counts: Matrix, limits: ArrayLike) -> None:
    """Note counts that add up to about 100 for every agent, as shares in per cent do."""
    with np.errstate(over="ignore"):
        sums = counts.sum(axis=1)
    given = sums[sums > 0]
    # Shares that were rounded add up to 99 or 101.
    if len(given) > 1 and (abs(given - 100) <= 1).all() and not np.isfinite(limits).any():
        sheet.notes.append(
            f"the counts of each agent in {sheet.path} add up to 100, as shares in per cent do: "
            "write how many samples each has, or give what each needs"
        )


def _doubt_turned(sheet: Sheet, agents: Sequence[str], labels: Sequence[str]) -> None:
    """Note labels that are called like agents, in a table whose rows may be the labels."""
    named = [label for label in labels if AGENTS.search(label)]
    if len(named) > 1 and not any(map(AGENTS.search, agents)):
        sheet.notes.append(
            Suspicion(
                f"the labels {named[0]!r} and {named[1]!r} of {sheet.path} have names of agents: "
                f"if they are agents, {SWAP}"
            )
        )


def refuse_turned(rows: Rows, names: Iterable[str]) -> None:
    """Refuse a table that has agents, whose names are known, as columns."""
    heads, *below = rows.cells
    for name in names:
        if name in heads and not any(name in row for row in below):
            raise InputError(f"{name} is an agent, and a column of {rows.path}: {SWAP}")


def _read_cells(sheet: Sheet, columns: Sequence[str]) -> tuple[Matrix, Matrix]:
    """Return columns of counts, NaN where empty, and how far off each may be."""
    bounds = [[SUPPRESSED.fullmatch(cell) for cell in sheet.column(name)] for name in columns]
    room = [[0.0 if bound is None else find_middle(bound) for bound in cells] for cells in bounds]
    for name in columns:
        for row, cell in enumerate(sheet.column(name)):
            if re.fullmatch("0[0-9]+", cell):
                remedy = f"delete the column {name!r}, or " if name != "count" else ""
                raise InputError(
                    f'{sheet.describe(name, row)} reads "{shorten(cell)}", with a zero in front, '
                    "like a telephone number or a postcode and unlike a count: "
                    f"{remedy}write the count without such zeros"
                )
    read = [_read_column(sheet, name) for name in columns]
    return np.array(read).T, np.array(room).T


def _read_column(sheet: Sheet, name: str) -> list[float]:
    """Return the counts of a column, or say that one without any number may be no label."""
    try:
        return sheet.numbers(name, suppressed=True)
    except InputError as error:
        if name == "count" or any(map(PLAIN.fullmatch, sheet.column(name))):
            raise
        raise InputError(f"{error}. If {name!r} is no label, delete the column") from None


def _note_withheld(sheet: Sheet, columns: Sequence[str]) -> None:
    """Note counts that were withheld."""
    cells = [cell for name in columns for cell in sheet.column(name)]
    withheld = [bound for cell in cells if (bound := SUPPRESSED.fullmatch(cell))]
    if withheld:
        middle = find_middle(withheld[0])
        sheet.notes.append(
            f"{count(len(withheld), 'count')} in {sheet.path} "
            f"{pluralize(len(withheld), 'is', 'are')} withheld: "
            f'"{withheld[0][0]}" was read as {middle:g}, the middle of 0 to {2 * middle:g}'
        )


def _read_wide(sheet: Sheet, agents: tuple[str, ...]) -> Counts:
    labels = _find_labels(sheet)
    if not labels:
        raise InputError(f"{sheet.path} has no column with counts of a label; add one per label")
    _check_labels(sheet, labels)
    counts, room = _read_cells(sheet, labels)
    _doubt_identifiers(sheet, labels, counts)
    _refuse_apart(sheet, labels)
    for label, column in zip(labels, counts.T, strict=True):
        is_left = sheet.places[label] < sheet.places["agent"]
        for first in (0, 1) if is_left else (1,):
            last = len(column) - 1 + first
            if len(column) < LEAST_NUMBERED or (column != np.arange(first, last + 1)).any():
                continue
            said = (
                f"the column {label!r} of {sheet.path} numbers its {sheet.unit}s from {first} to "
                f"{last}: delete it"
            )
            # Three labels right of the names can count up by chance.
            if is_left or len(column) > LEAST_NUMBERED:
                raise InputError(
                    f"{said}, or change the order of the {sheet.unit}s if it is a label"
                )
            sheet.notes.append(Suspicion(f"{said} unless it is a label"))
    return labels, counts, room


def _check_labels(sheet: Sheet, labels: Sequence[str]) -> None:
    """Refuse or doubt columns of numbers that are no counts, and labels that are spelled alike."""
    seen: dict[str, str] = {}
    free = [column for column in HISTOGRAMS.own if column not in sheet.columns]
    for label in dict.fromkeys((labels[0], labels[-1])):
        if meant := find_meant(label, free):
            sheet.notes.append(
                Suspicion(
                    f"the column {label!r} of {sheet.path} is read as a label: call it {meant!r} "
                    f"if it is the {meant}, or '{label} cases' if it is a label"
                )
            )
    for label in labels:
        if AGAIN.match(simplify(label)) or UNLABELLED.match(simplify(label)):
            why = (
                "counts samples that another column counts too"
                if AGAIN.match(simplify(label))
                else "counts samples that have no label"
            )
            raise InputError(
                f"the column {label!r} of {sheet.path} {why}: delete it, or rename it if it is a "
                "label"
            )
        if has_no_counts(label):
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


def _refuse_apart(sheet: Sheet, labels: Sequence[str]) -> None:
    """Refuse a column that stands among what agents have one of, apart from the labels."""
    groups: list[list[str]] = [[]]
    for name in sheet.columns:
        if name in HISTOGRAMS.own:
            groups.append([])
        elif name in labels and not is_total(name):
            groups[-1].append(name)
    most = max(groups, key=len)
    stray = next((group[0] for group in groups if group and group is not most), None)
    if stray is not None:
        raise InputError(
            f"the column {stray!r} of {sheet.path} stands apart from the labels: delete it, or "
            f"{_offer_limit(sheet)}move it next to {most[-1]!r} if it is a label"
        )


def _offer_limit(sheet: Sheet) -> str:
    """Return what to call a column that is no label, if the table has none such yet."""
    free = [repr(name) for name in ("limit", "need") if name not in sheet.columns]
    return f"call it {' or '.join(free)}, or " if free else ""


def _doubt_identifiers(sheet: Sheet, labels: Sequence[str], counts: Matrix) -> None:
    """Doubt columns of numbers that tell agents apart, as of a telephone, or of dates.

    They are far larger than any count, or large and almost the same for all agents, where the
    counts are neither.
    """
    least, most = counts.min(axis=0), counts.max(axis=0)
    can_be = np.array([re.search(NOUN, simplify(label)) is None for label in labels])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        spread = (most - least) / most
        is_round = (counts % ROUND == 0).all(axis=0)
        is_alike = (least >= LEAST_DATE) & (spread <= MOST_ALIKE) & (len(counts) >= LEAST_NUMBERED)
        for suspects, factor, is_unlike in (
            (can_be & (least >= MOST_COUNTED), 100, True),
            (can_be & is_alike & ~is_round, 4, False),
        ):
            # A column with an empty cell has neither least nor most, and is like no other.
            others = ~suspects & (np.nan_to_num(counts).max(axis=0) > 0)
            if not suspects.any() or not others.any() or len(counts) == 1:
                continue
            known = spread[others & ~np.isnan(spread)]
            is_unlike = is_unlike or (known.size > 0 and np.median(known) >= LEAST_UNLIKE)
            if is_unlike and least[suspects].min() >= factor * np.nanmax(counts[:, others]):
                label = labels[int(np.argmax(suspects))]
                sheet.notes.append(
                    Suspicion(
                        f"the column {label!r} of {sheet.path} has numbers far above all others, "
                        "like telephone numbers or dates and unlike counts: delete it, or call it "
                        f"'{label} cases' if it is a label"
                    )
                )


def _leave_out_sums(
    sheet: Sheet, agents: Sequence[str], labels: tuple[str, ...], counts: Matrix, room: Matrix
) -> Counts:
    """Return counts without labels that are called a total, with 0 where a cell is empty.

    sheet: the table; it takes the notes.
    agents, labels: names.
    counts, room: as in Counts.
    """
    rest = [n for n, label in enumerate(labels) if not is_total(label)]
    sums = [n for n in range(len(labels)) if n not in rest]
    filled = np.nan_to_num(counts, nan=0.0)
    if not sums or not rest:
        return labels, filled, room
    found, off = filled[:, rest].sum(axis=1), room[:, rest].sum(axis=1)
    what = "label" if "label" in sheet.columns else "column"
    for place in sums:
        wrong = np.abs(counts[:, place] - found) > off + room[:, place]
        if wrong.any():
            agent = int(np.argmax(wrong))
            where = _find_place(sheet, agents[agent], labels[place])
            raise InputError(
                f"{where} has {counts[agent, place]:g} in the {what} {labels[place]!r}, and the "
                f"other labels sum to {found[agent]:g}: leave the {what} out, or rename it if it "
                "is no total"
            )
    for place in sums:
        sheet.notes.append(
            f"the {what} {labels[place]!r} of {sheet.path} sums up the others and is left out"
        )
    return tuple(labels[n] for n in rest), filled[:, rest], room[:, rest]


def _find_place(sheet: Sheet, agent: str, label: str | None = None) -> str:
    """Return where an agent stands first in a table, or its count of a label, for messages."""
    owners, labels = sheet.column("agent"), sheet.column("label")
    is_long = "label" in sheet.columns and label is not None
    return next(
        sheet.where(row)
        for row, owner in enumerate(owners)
        if owner == agent and (not is_long or labels[row] == label)
    )


def _doubt_sums(
    sheet: Sheet, agents: Sequence[str], labels: Sequence[str], counts: Matrix, room: Matrix
) -> None:
    """Doubt a label that is the sum of others, and refuse such an agent, whatever its name.

    A label can be: of matched patients, as many have no disease as have one of the others.
    """
    if said := _find_sum_of_labels(sheet, labels, counts, room):
        sheet.notes.append(Suspicion(said))
    place = _find_sum(counts.T, room.T)
    if place is None or (counts[place] > 0).sum() < 2:
        _doubt_near_sum(sheet, agents, counts, room)
        return
    name, long = agents[place], "label" in sheet.columns
    said = (
        f"{_find_place(sheet, name)}, {name!r}, is the sum of the others for every label: "
        f"delete {f'all {sheet.unit}s of {name!r}' if long else f'the {sheet.unit}'}"
    )
    is_named = any(map(is_total, re.findall(r"\w+", name)))
    if len(agents) > 2 and (is_named or not _is_chance(counts, place)):
        raise InputError(said)
    if len(agents) > 2:
        sheet.notes.append(Suspicion(f"{said} if it is a total"))


def _find_sum_of_labels(
    sheet: Sheet, labels: Sequence[str], counts: Matrix, room: Matrix
) -> str | None:
    """Return that a label is the sum of all others, or of some, or of all but for 1 %, if one is.

    The last two are not said of a label with a heading such as 'abnormal cases'.
    """
    place, long = _find_sum(counts, room), "label" in sheet.columns
    what, remedy = ("label", "delete its lines") if long else ("column", "delete it")
    if place is not None and len(labels) > 2:
        if not long and "limit" not in sheet.columns:
            remedy = f"call it 'limit' if it is the limit, and {remedy}"
        each = "for every agent" if long else f"in every {sheet.unit}"
        return (
            f"the {what} {labels[place]!r} of {sheet.path} is the sum of the others {each}: "
            f"{remedy} if it is a total"
        )
    if len(counts) < LEAST_NUMBERED or not LEAST_NUMBERED <= len(labels) <= MOST_COMPARED:
        return None
    for place, label in enumerate(labels):
        if re.search(NOUN, simplify(label)):
            continue
        parts = _find_parts(counts, room, place)
        said = f"the sum of {join_with_and([repr(labels[n]) for n in parts])}" if parts else ""
        is_named = any(map(is_total, re.findall(r"\w+", label)))
        whom = "every agent"
        if not parts and _is_near_sum(counts, room, place, misses=int(is_named)):
            said = "the sum of the others but for 1 %"
            whom = whom if _is_near_sum(counts, room, place) else "all agents but one"
        if said:
            return (
                f"the {what} {label!r} of {sheet.path} is {said} for {whom}: {remedy} if it "
                f"is a total, or call it '{label} cases' if it is a label"
            )
    return None


def _find_parts(counts: Matrix, room: Matrix, place: int) -> list[int]:
    """Return the labels of which one is the sum for every agent, if that is no chance.

    counts, room: as in Counts.
    place: of the label that may be the sum.
    """
    others = [n for n in range(counts.shape[1]) if n != place and counts[:, n].any()]
    own = counts[:, place]
    known = np.flatnonzero((room == 0).all(axis=1) & (own > 0))[:MOST_SHOWN]
    chosen = _list_subsets(len(others))
    if len(known) < LEAST_NUMBERED or not len(chosen) or np.linalg.matrix_rank(counts[known]) < 2:
        return []
    # Round numbers have fewer digits than they seem to have.
    step = np.gcd.reduce(counts[known].astype(np.int64).ravel())
    digits = np.log10(own[known] / step).sum() - np.log10(len(chosen) * counts.shape[1])
    if digits < LEAST_SHOWN:
        return []
    fits = np.flatnonzero((chosen @ counts[known][:, others].T == own[known]).all(axis=1))
    for found in fits:
        parts = [n for n, one in zip(others, chosen[found], strict=True) if one]
        off = room[:, [place, *parts]].sum(axis=1)
        if (np.abs(counts[:, parts].sum(axis=1) - own) <= off).all():
            return parts
    return []


@cache
def _list_subsets(size: int) -> Matrix:
    """Return sets of two labels or more, a row of 0 and 1 each: all, or of many those in a row."""
    if size <= MOST_CHOSEN:
        numbers = np.arange(2**size)[:, None]
        every = np.asarray(numbers >> np.arange(size) & 1, float)
        return np.asarray(every[every.sum(axis=1) > 1])
    ends = [(a, a + width) for width in range(2, size) for a in range(size - width + 1)]
    rows = np.array([[float(a <= n < b) for n in range(size)] for a, b in ends[:MOST_SETS]])
    # All but one, too: most tables have a label of what is left.
    return np.vstack([rows, 1 - np.eye(size)])


def _is_near_sum(counts: Matrix, room: Matrix, place: int, misses: int = 0) -> bool:
    """Return whether a column is the sum of all others, but for 1 % in every row.

    Three rows of numbers that are not small must show it.

    misses: in how many rows the sum may be wrong.
    """
    own = counts[:, place]
    rest = np.delete(counts, place, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        off = room.sum(axis=1) + MOST_OFF * own
        fits = np.abs(rest.sum(axis=1) - own) <= off
    shown = (fits & (own >= LEAST_LARGE) & (room == 0).all(axis=1)).sum()
    return bool(
        (~fits).sum() <= misses and shown >= LEAST_NUMBERED and np.linalg.matrix_rank(rest) > 1
    )


def _doubt_near_sum(sheet: Sheet, agents: Sequence[str], counts: Matrix, room: Matrix) -> None:
    """Refuse or doubt an agent that has the sum of the others, but for 1 %, of every label."""
    if not LEAST_NUMBERED <= len(agents) <= MOST_COMPARED:
        return
    for place, name in enumerate(agents):
        own = counts[place]
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.delete(counts, place, axis=0).sum(axis=0)
            off = room.sum(axis=0) + MOST_OFF * own
            fits = (np.abs(sums - own) <= off).all()
        if not fits or (own >= LEAST_LARGE).sum() < 2:
            continue
        remedy = f"delete {f'all {sheet.unit}s of {name!r}' if 'label' in sheet.columns else 'it'}"
        said = (
            f"{_find_place(sheet, name)}, {name!r}, is the sum of the others for every label, but "
            f"for 1 %: {remedy} if it is a total"
        )
        if len(agents) > LEAST_NUMBERED and _is_near_sum(counts.T, room.T, place):
            raise InputError(said.removesuffix(" if it is a total"))
        sheet.notes.append(Suspicion(said))


def _is_chance(counts: Matrix, place: int) -> bool:
    """Return whether one agent may well have as many samples of every label as the others.

    So it is with few samples, and in examples of three agents where all have the same mix.

    counts: of three agents or more.
    place: the agent that has the sum.
    """
    digits = np.log10(counts[place][counts[place] > 0]).sum()
    if len(counts) > LEAST_NUMBERED:
        return bool(digits - np.log10(len(counts)) < LEAST_SHOWN)
    one, other = np.delete(counts, place, axis=0)
    return bool(digits < LEAST_DIGITS or np.linalg.matrix_rank([one, other]) < 2)


def _find_sum(counts: Matrix, room: Matrix) -> int | None:
    """Return which column is the sum of all others in every row, as far as withheld counts tell."""
    # Counts that are far too large are refused later, each by name.
    with np.errstate(over="ignore", invalid="ignore"):
        sums, off = counts.sum(axis=1, keepdims=True), room.sum(axis=1, keepdims=True)
        fits = (np.abs(2 * counts - sums) <= off).all(axis=0) & counts.any(axis=0)
    # Where counts were withheld, two others at least must show it.
    shown = ((off == 0) & (counts > 0)).sum(axis=0)
    fits &= (shown > 1) | (not off.any())
    return int(np.argmax(fits)) if fits.any() else None


def _read_long(sheet: Sheet, agents: tuple[str, ...]) -> Counts:
    labels = sheet.names("label")
    counts = np.full((len(agents), len(labels)), np.nan)
    room = np.zeros_like(counts)
    rows, columns = ({name: n for n, name in enumerate(some)} for some in (agents, labels))
    values, rooms = _read_cells(sheet, ["count"])
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
