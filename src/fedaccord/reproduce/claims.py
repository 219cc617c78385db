"""What the paper claims: each claim with the check that decides whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from fedaccord.charts import Chart
from fedaccord.errors import FedaccordError

# The part that takes training.
EXPERIMENT = "The experiment"
# What is said to be measured of a claim that was not asked for.
NOT_YET = "It has not been run yet."


class Unavailable(FedaccordError):
    """What a check needs is not on this machine; the text says what, and where to get it."""


class Verdict(Enum):
    """What came of a check; the value is the word that a reader sees."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    FAILS = "fails"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Finding:
    """What a check found.

    verdict: whether the claim holds.
    measured: what was done and what came out, in a sentence or two with the numbers.
    correction: how the claim must read to hold, where it does not as printed.
    evidence: the numbers behind it, as plain values.
    charts: figures of the paper made anew.
    """

    verdict: Verdict
    measured: str
    correction: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What a check is given.

    full: whether to take hours for it, as against seconds.
    expected: the paper's numbers for this claim, from expected.toml.
    folder: where finished runs of training are kept, to go on from.
    workers: how many of them at a time.
    tell: called with what is under way, how much of it is done, and of how much.
    """

    full: bool
    expected: Mapping[str, Any]
    folder: Path
    workers: int = 1
    tell: Callable[[str, int, int], None] = lambda what, done, total: None


Check = Callable[[Setting], Finding]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper that software can check.

    id: by which it is asked for.
    claim: what is claimed, in a line.
    place: where it stands in the paper.
    paper: what the paper says there, in our words, with its numbers.
    check: decides it.
    minutes: what the check takes, quick and full, on two cores; measured, and rounded up.
    part: the part of the paper that it belongs to.
    """

    id: str
    claim: str
    place: str
    paper: str
    check: Check
    minutes: tuple[float, float]
    part: str = ""


@dataclass(frozen=True)
class Row:
    """A claim with what came of its check, and how long that took."""

    claim: Claim
    finding: Finding
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Give the row as plain values."""
        return {
            "id": self.claim.id,
            "part": self.claim.part,
            "claim": self.claim.claim,
            "place": self.claim.place,
            "paper": self.claim.paper,
            "verdict": self.finding.verdict.value,
            "measured": self.finding.measured,
            "correction": self.finding.correction,
            "seconds": self.seconds,
            "evidence": dict(self.finding.evidence),
            "charts": [chart.to_dict() for chart in self.finding.charts],
        }

    @classmethod
    def from_dict(cls, claim: Claim, data: Mapping[str, Any]) -> Row:
        """Make a row of what to_dict gives, of a claim that is known."""
        for key, kind in (("measured", str), ("correction", str), ("seconds", float | int)):
            if not isinstance(data[key], kind):
                raise TypeError(f"{key} of {claim.id} is {data[key]!r}")
        finding = Finding(
            Verdict(data["verdict"]),
            data["measured"],
            data["correction"],
            evidence=dict(data["evidence"]),
            charts=tuple(Chart.from_dict(chart) for chart in data["charts"]),
        )
        return cls(claim, finding, data["seconds"])


class Claims(dict[str, Claim]):
    """Claims by id, in the order in which they were added."""

    def add(
        self,
        id: str,
        *,
        claim: str,
        place: str,
        paper: str,
        minutes: tuple[float, float] = (0.1, 0.1),
    ) -> Callable[[Check], Check]:
        """Make a decorator that adds a claim with the function below it as its check."""

        def added(check: Check) -> Check:
            self.include(Claim(id, claim, place, paper, check, minutes))
            return check

        return added

    def include(self, claim: Claim) -> None:
        """Add a claim whose id is not taken."""
        if claim.id in self:
            raise ValueError(f"the claim {claim.id} is there already")
        self[claim.id] = claim

    def include_all(self, *others: Claims) -> None:
        """Add all claims of others; none of their ids may be taken."""
        for claims in others:
            for claim in claims.values():
                self.include(claim)


def judged(holds: bool, measured: str, **options: Any) -> Finding:
    """Give the finding of a check that can only hold or fail.

    holds: whether everything measured is as claimed.
    measured: what came out.
    options: more of the finding.
    """
    return Finding(Verdict.HOLDS if holds else Verdict.FAILS, measured, **options)


def weighed(holds: bool, refuted: bool, measured: str, correction: str, **options: Any) -> Finding:
    """Give the finding of a check of a claim as printed and as it must read.

    holds: whether the corrected claim stands.
    refuted: whether what is printed does not.
    measured: what came out.
    correction: how the claim must read, given only where that is needed and stands.
    options: more of the finding.
    """
    if holds and refuted:
        return Finding(Verdict.CORRECTED, measured, correction, **options)
    return judged(holds, measured, **options)


def not_so(parts: Mapping[str, bool]) -> str:
    """Name what did not come out as claimed, in a sentence to put last; empty where all did.

    parts: whether it came out so, by what is claimed, such as "the audit says the same".
    """
    failed = [what for what, found in parts.items() if not found]
    return f" Not so: {'; '.join(failed)}." if failed else ""
