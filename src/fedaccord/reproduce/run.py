"""Check the paper's claims, one after the other."""

from __future__ import annotations

import time
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._io.files import read_text
from fedaccord._machine import machine, versions
from fedaccord.errors import (
    ExactnessError,
    InputError,
    MissingExtraError,
    OnlyPart,
    UnsolvedError,
)
from fedaccord.reproduce.claims import (
    EXPERIMENT,
    NOT_YET,
    Claim,
    Claims,
    Finding,
    Row,
    Setting,
    Unavailable,
    Verdict,
    read_texts,
)
from fedaccord.reproduce.experiment import RUNS
from fedaccord.wording import join_with_and

if TYPE_CHECKING:
    from fedaccord.federation.runs.execute import EngineMaker
    from fedaccord.federation.runs.parts import Part

# The parts of the paper, in its order, and the modules that have their CLAIMS.
PARTS = {
    "What the words mean": ("section_2_definitions", "section_2_utilities"),
    "When equilibria exist": ("section_3_existence", "section_3_well_behaved"),
    "What stability and fairness cost": ("section_4_prices",),
    "Linear utilities": ("section_5_linear", "section_5_structure", "appendix_weights"),
    "Coverage utilities": ("section_5_coverage", "appendix_rounding"),
    EXPERIMENT: (
        "section_6_solo",
        "section_6_defection",
        "section_6_preparation",
        "section_6_difficulty",
        "section_6_algorithms",
    ),
}
PACKAGED = Path(__file__).parent / "blum2021"
CHECKOUT = Path(__file__).parents[3] / "experiments" / "blum2021"

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Reproduction:
    """What came of checking the paper's claims.

    rows: by the claim's id, those that have not been run among them.
    full: whether checks took the time they wanted.
    machine: what they were made on.
    versions: of the packages that decide the results.
    seconds: how long it all took.
    """

    rows: Mapping[str, Row]
    full: bool
    machine: str
    versions: str
    seconds: float

    def __repr__(self) -> str:
        return f"Reproduction({self.sentence()})"

    def count(self, verdict: Verdict) -> int:
        """Return how many rows ended so."""
        return sum(row.finding.verdict is verdict for row in self.rows.values())

    def sentence(self) -> str:
        """Return how many claims ended with each verdict, in a sentence."""
        counts = Counter(row.finding.verdict for row in self.rows.values())
        words = {
            Verdict.HOLDS: ("holds as printed", "hold as printed"),
            Verdict.CORRECTED: ("holds with a correction", "hold with a correction"),
            Verdict.FAILS: ("fails", "fail"),
            Verdict.NOT_RUN: ("was not run", "were not run"),
        }
        said = [f"{n} {words[verdict][n > 1]}" for verdict in words if (n := counts[verdict])]
        return f"Of {len(self.rows)} claims of the paper, {join_with_and(said)}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "scale": _scale(self.full),
            "sentence": self.sentence(),
            "rows": [row.to_dict() for row in self.rows.values()],
            "machine": self.machine,
            "versions": self.versions,
            "seconds": self.seconds,
        }


@cache
def all_claims() -> Mapping[str, Claim]:
    """Return every claim that can be checked, by its id, in the order of the paper."""
    found = Claims()
    for part, modules in PARTS.items():
        for module in modules:
            for claim in import_module(f"fedaccord.reproduce.{module}").CLAIMS.values():
                found.include(replace(claim, part=part))
    return {id: found[id] for id in read_texts()}


def blum2021() -> Path:
    """Return the folder of the paper's numbers and the experiments' configs."""
    return PACKAGED if PACKAGED.is_dir() else CHECKOUT


def minutes(only: Sequence[str] | None, *, full: bool) -> float:
    """Estimate how long checks take on two cores, the first time.

    only: the ids of those to check; all where left out or empty.
    full: whether they take the time they want.
    """
    known = all_claims()
    _check_ids(only, known)
    return sum(known[id].minutes[full] for id in set(only or known))


def expected_numbers() -> dict[str, dict[str, Any]]:
    """Read the paper's numbers, by claim."""
    return tomllib.loads(read_text(blum2021() / "expected.toml"))


def reproduce(
    only: Sequence[str] | None = None,
    *,
    full: bool = False,
    folder: str | Path = ".",
    workers: int | None = 1,
    engine: str | EngineMaker = "local",
    earlier: Mapping[str, Any] | None = None,
    tell: Tell = lambda what, done, total: None,
    finished: Callable[[Row, Reproduction], None] = lambda row, so_far: None,
) -> Reproduction:
    """Check the paper's claims, those that are quick to check and those that take training.

    only: the ids of those to check; all where left out or empty.
    full: whether to take hours, as against minutes.
    folder: where finished runs of training are kept; those that are there are not made again.
    workers: how many runs of training at a time; None on Ray for one per CPU of the cluster.
    engine: where the runs of agents are made, as `defection_curves` has it.
    earlier: what Reproduction.to_dict gave before; rows that are not asked for now are taken from
        it, if it is of the same scale and versions.
    tell: called with what is under way, how much of it is done, and of how much.
    finished: called with each row, and all that is known after it.
    """
    known = all_claims()
    _check_ids(only, known)
    started = time.perf_counter()
    expected = expected_numbers()
    so_far = Reproduction({}, full, machine(), versions(), 0.0)
    rows = {id: Row(claim, Finding(Verdict.NOT_RUN, NOT_YET), 0.0) for id, claim in known.items()}
    rows |= _rows_of(earlier, known, full=full)
    for claim in known.values():
        if only and claim.id not in only:
            continue
        numbers = expected.get(claim.id, {})
        setting = Setting(full, numbers, Path(folder), workers, tell, engine=engine)
        rows[claim.id] = check_claim(claim, setting)
        so_far = replace(so_far, rows=dict(rows), seconds=time.perf_counter() - started)
        finished(rows[claim.id], so_far)
    return so_far


def make_part(
    part: Part,
    only: Sequence[str] | None = None,
    *,
    full: bool = False,
    folder: str | Path = ".",
    workers: int | None = 1,
    engine: str | EngineMaker = "local",
    tell: Tell = lambda what, done, total: None,
) -> OnlyPart:
    """Make one part of the training that the claims need, in a folder of its own.

    Return what to raise when it is made: the claims are decided when all parts are merged.

    part: which part.
    only, full, folder, workers, engine, tell: as for `reproduce`; the folder is that of the whole.
    """
    from fedaccord.federation.runs.merge import count_work
    from fedaccord.federation.runs.store import RunStore

    known, expected = all_claims(), expected_numbers()
    _check_ids(only, known)
    claims = [known[id] for id in only or known if known[id].part == EXPERIMENT]
    if not claims:
        raise InputError("these claims need no training; leave --part out")
    own = part.name_file(folder)
    own.mkdir(parents=True, exist_ok=True)
    before, ids = count_work(own), sorted({claim.id for claim in claims})
    with RunStore(own / RUNS, part=part) as store:
        store.note_part("reproduce", full, ids, finished=False)
    for claim in claims:
        numbers = expected.get(claim.id, {})
        setting = Setting(full, numbers, Path(folder), workers, tell, part, engine)
        try:
            claim.check(setting)
        except OnlyPart:
            continue
        except Unavailable as error:
            raise InputError(str(error)) from None
    with RunStore(own / RUNS, part=part) as store:
        store.note_part("reproduce", full, ids, finished=True)
    return part.end(own, count_work(own) - before)


def is_continued(earlier: Mapping[str, Any], *, full: bool) -> bool:
    """Return whether rows of an earlier result may be mixed with rows that are made now.

    earlier: what Reproduction.to_dict gave.
    full: the scale now.
    """
    now = {"scale": _scale(full), "versions": versions(), "machine": machine()}
    return all(earlier.get(key) == value for key, value in now.items())


def _rows_of(
    earlier: Mapping[str, Any] | None, known: Mapping[str, Claim], *, full: bool
) -> dict[str, Row]:
    """Read the rows of a result that was made as this one is."""
    if earlier is None or not is_continued(earlier, full=full):
        return {}
    try:
        rows = {row["id"]: row for row in earlier["rows"] if row["id"] in known}
        return {id: Row.from_dict(known[id], row) for id, row in rows.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the earlier result is not one that fedaccord wrote ({error!r}): delete it, or name "
            "another folder"
        ) from None


def _scale(full: bool) -> str:
    return "full" if full else "quick"


def check_claim(claim: Claim, setting: Setting) -> Row:
    """Check one claim. A solver that gives up is no proof, so the claim fails.

    Any other fault, such as a full disk, says nothing of the claim, and ends the work.
    """
    started = time.perf_counter()
    try:
        finding = claim.check(setting)
    except (Unavailable, MissingExtraError) as error:
        finding = Finding(Verdict.NOT_RUN, f"It could not be run here: {error}.")
    except (UnsolvedError, ExactnessError) as error:
        finding = Finding(Verdict.FAILS, f"The check ended with an error: {error}.")
    return Row(claim, finding, time.perf_counter() - started)


def _check_ids(only: Sequence[str] | None, known: Mapping[str, Claim]) -> None:
    for id in only or ():
        if id not in known:
            near = get_close_matches(id, known, n=3)
            meant = f"; did you mean {' or '.join(near)}?" if near else ";"
            raise InputError(
                f"there is no claim {id!r}{meant} 'fedaccord reproduce --list' lists them"
            )
