"""What the paper claims: each claim with the check that decides whether it holds."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from fedaccord.charts import Chart
from fedaccord.errors import FedaccordError

# The part that takes training.
EXPERIMENT = "The experiment"
# What is said to be measured of a claim that was not asked for.
NOT_YET = "It has not been run yet."
# What claims.toml has of every claim, beside the sentences for what was measured.
_PRINTED = ("claim", "place", "paper", "minutes")


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
    charts: figures of the paper made again.
    """

    verdict: Verdict
    measured: str
    correction: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What a check measured; the verdict, the sentences and the evidence follow from it.

    parts: what must be so for the claim to hold, each with whether it is.
    evidence: the numbers, by name; fractions and records become plain values.
    words: more that the sentences of claims.toml need, which are filled in with both.
    refuted: whether the claim does not hold as printed; or what refutes it, with whether it does.
    unshown: why the claim is not shown, in a sentence to put last; it fails then.
    charts: figures of the paper made again.
    """

    parts: Mapping[str, bool]
    evidence: Mapping[str, Any]
    words: Mapping[str, Any] = field(default_factory=dict)
    refuted: bool | Mapping[str, bool] = False
    unshown: str = ""
    charts: tuple[Chart, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What came of the check."""
        if self.unshown or not all(self.parts.values()):
            return Verdict.FAILS
        refuted = all(self.refuted.values()) if isinstance(self.refuted, Mapping) else self.refuted
        return Verdict.CORRECTED if refuted else Verdict.HOLDS

    def find(self, id: str) -> Finding:
        """Return the finding, in the words that claims.toml has for a claim."""
        texts, verdict = read_texts()[id], self.verdict
        known = {**self.evidence, **self.words}
        counter = self.refuted if isinstance(self.refuted, Mapping) else {}
        return Finding(
            verdict,
            fill(texts["measured"], known) + self.unshown + _not_so({**self.parts, **counter}),
            fill(texts["correction"], known) if verdict is Verdict.CORRECTED else "",
            evidence={name: _plain(value) for name, value in self.evidence.items()},
            charts=self.charts,
        )


@cache
def read_texts() -> dict[str, dict[str, Any]]:
    """Read what the paper claims, and the sentences for what was measured, by claim."""
    return tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


class _Filler(Formatter):
    """Fills in sentences: as str.format, and {x:count} for a length, {x:or none} for nothing."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "count":
            return str(len(value))
        if format_spec.endswith("or none"):
            return format(value, format_spec.removesuffix("or none").strip()) if value else "none"
        return format(value, format_spec)


def fill(sentence: str, known: Mapping[str, Any]) -> str:
    """Return a sentence of claims.toml with its numbers in place."""
    return _Filler().vformat(sentence, (), known)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _not_so(parts: Mapping[str, bool]) -> str:
    """Name what did not come out as claimed, in a sentence to put last; empty where all did."""
    failed = [what for what, found in parts.items() if not found]
    return f" Not so: {'; '.join(failed)}." if failed else ""


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
Measure = Callable[[Setting], Measured]


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
        """Return the row as plain values."""
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

    def measure(self, id: str) -> Callable[[Measure], Measure]:
        """Make a decorator that adds a claim of claims.toml, measured by the function below it."""
        texts = read_texts()[id]

        def add(measure: Measure) -> Measure:
            claim, place, paper, (quick, full) = (texts[key] for key in _PRINTED)
            check: Check = lambda setting: measure(setting).find(id)  # noqa: E731
            self.include(Claim(id, claim, place, paper, check, (quick, full)))
            return measure

        return add

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
