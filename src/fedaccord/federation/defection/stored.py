"""Audits of defection from a file of runs alone: while they are made, and on another machine.

The file says what each client gave in a run, and which clients reached their goals. Which runs
belong to one audit follows: they share a federation, a seed and an algorithm, and all but those at
full contribution differ from one of these in what a defector, or a few, give.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

from fedaccord.errors import InputError
from fedaccord.federation.algorithms import ALGORITHMS
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.curves import (
    Contributions,
    DefectionAudit,
    DefectionCurve,
    Group,
    Trial,
    cut,
    sum_up,
)
from fedaccord.federation.runs.store import RESULT, Outcome, RunStore
from fedaccord.federation.runs.trials import PLANNING

# The most clients that defect together.
MOST_TOGETHER = 2
# The levels that are looked for; a part that is none of them is a level of its own.
LEVELS = sorted({*AuditOptions().levels, *(n / 20 for n in range(1, 20))}, reverse=True)


@dataclass(frozen=True)
class StoredAudit:
    """An audit as far as a file has its runs.

    audit: its curves.
    runs: how many runs it has so far.
    latest: when the last of them was finished, as the file has it.
    """

    audit: DefectionAudit
    runs: int
    latest: str


def read_audits(path: str | Path) -> tuple[StoredAudit, ...]:
    """Return the audits in a file of runs, that with the latest run first.

    Clients are numbered, since the file does not have them in order.

    path: the file, to which other processes may be writing.
    """
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; 'fedaccord audit --results' makes one")
    with RunStore(path) as store:
        rows = store.counted(range(PLANNING))
    whose = sorted(rows, key=lambda row: (row["source"], row["base_seed"]))
    found = (
        _sum_up(list(some))
        for _, some in groupby(whose, key=lambda row: (row["source"], row["base_seed"]))
    )
    return tuple(sorted(filter(None, found), key=lambda one: one.latest, reverse=True))


def _sum_up(rows: Sequence[Mapping[str, Any]]) -> StoredAudit | None:
    """Return the audit of one federation and seed; None where no algorithm has a full run yet."""
    ordered = sorted(rows, key=lambda row: (row["algorithm"], row["trial"], row["id"]))
    found = [
        (json.loads(text), full, cells)
        for text, some in groupby(ordered, key=lambda row: row["algorithm"])
        for full, cells in _find_cells(list(some)).items()
        if 1.0 in cells
    ]
    if not found:
        return None
    levels = sorted({level for *_, cells in found for level in cells}, reverse=True)
    curves: dict[str, DefectionCurve] = {}
    for settings, full, cells in found:
        kind = str(settings.get("kind", "algorithm"))
        name = ALGORITHMS[kind][0] if kind in ALGORITHMS else kind
        again = sum(other.partition(", ")[0] == name for other in curves)
        name = f"{name}, {again + 1}" if again else name
        # A level of which no run is finished yet has no trials.
        trials = {level: cells.get(level, []) for level in levels}
        curves[name] = sum_up(
            *(name, settings, full),
            clients=_number(len(full)),
            levels=levels,
            trials=trials,
            drawn=len(full),
        )
    most = max(row["trial"] for row in rows) + 1
    size = len(rows[0]["contributions"])
    audit = DefectionAudit(
        options=AuditOptions(levels=tuple(levels), trials=most),
        clients=_number(size),
        curves=tuple(curves.values()),
        versions=tuple(sorted({row["versions"] for row in rows})),
        source=rows[0]["source"],
        requirements=(float("nan"),) * size,
        reused=len(rows),
        run_seconds=sum(row["seconds"] for row in rows),
        seconds=0.0,
    )
    return StoredAudit(audit, len(rows), max(row["finished"] for row in rows))


def _find_cells(
    rows: Sequence[Mapping[str, Any]],
) -> dict[Contributions, dict[float, list[Trial]]]:
    """Return the trials of each level, for each full contribution.

    Of a trial of which only the full run is finished, it is not known yet who defects: where others
    tell it, this one does not count.
    """
    wholes = _find_full({row["contributions"] for row in rows})
    found: dict[Contributions, dict[float, list[Trial]]] = {}
    trials: dict[Contributions, list[dict[float, Trial]]] = {}
    for _, some in groupby(rows, key=lambda row: row["trial"]):
        trial: dict[Contributions, dict[float, Trial]] = {}
        for row in some:
            full = wholes[row["contributions"]]
            group = _list_defectors(full, row["contributions"])
            level = _find_level(full, row["contributions"], group)
            trial.setdefault(full, {}).setdefault(level, []).append((group, _read(row)))
        for full, cells in trial.items():
            trials.setdefault(full, []).append(cells)
    for full, several in trials.items():
        others = [cells for cells in several if cells.keys() - {1.0}]
        for cells in others or several:
            _spread_full_run(full, cells)
            for level, entries in cells.items():
                found.setdefault(full, {}).setdefault(level, []).append(entries)
    return found


def _spread_full_run(full: Contributions, cells: dict[float, Trial]) -> None:
    """Have the full run of a trial stand for each that defects in it, or else for each client."""
    if 1.0 in cells:
        groups = {group for level, cell in cells.items() if level != 1 for group, _ in cell}
        each = sorted(groups) or [(client,) for client in range(len(full))]
        cells[1.0] = [(group, cells[1.0][0][1]) for group in each]


def _find_full(given: Iterable[Contributions]) -> dict[Contributions, Contributions]:
    """Return for all contributions the full ones: more by what one client, or a few, give."""
    found: dict[Contributions, Contributions] = {}
    wholes: list[Contributions] = []
    for one in sorted(given, key=sum, reverse=True):
        above = [
            full
            for full in wholes
            if len(_list_defectors(full, one)) <= min(MOST_TOGETHER, max(1, len(one) - 1))
            and all(a <= b for a, b in zip(one, full, strict=True))
        ]
        nearest = min(above, key=lambda full: len(_list_defectors(full, one)), default=one)
        if nearest == one:
            wholes.append(one)
        found[one] = nearest
    return found


def _list_defectors(full: Contributions, given: Contributions) -> Group:
    return tuple(i for i, (a, b) in enumerate(zip(given, full, strict=True)) if a != b)


def _find_level(full: Contributions, given: Contributions, group: Group) -> float:
    """Return the level that leads to these contributions; 1 where nobody defects."""
    if not group:
        return 1.0
    for level in LEVELS:
        if level < 1 and all(cut(full, i, level)[i] == given[i] for i in group):
            return level
    return float(round(Fraction(given[group[0]], full[group[0]]), 3))


def _read(row: Mapping[str, Any]) -> Outcome:
    *lists, diverged = RESULT
    known = {name: row[name] for name in (*lists, "seconds", "versions")}
    return Outcome(**known, diverged=bool(row[diverged]))


def _number(clients: int) -> tuple[str, ...]:
    return tuple(f"client {n + 1}" for n in range(clients))
