"""What the paper claims: each claim with the check that decides whether it holds."""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from fedaccord.charts import Chart
from fedaccord.errors import FedaccordError

if TYPE_CHECKING:
    from fedaccord.federation.runs.execute import EngineMaker
    from fedaccord.federation.runs.parts import Part

# The part that takes training.
EXPERIMENT = "The experiment"
# What is said to be measured of a claim that was not asked for.
NOT_YET = "It has not been run yet."
# What claims.toml has of every claim, besides the sentences for what was measured.
_PRINTED = ("claim", "place", "paper", "minutes")
_COMPARE = {
    **{"<": operator.lt, "<=": operator.le, "==": operator.eq},
    **{">": operator.gt, ">=": operator.ge, "!=": operator.ne},
}


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


class Measured:
    """What a check measured; the verdict, the sentences and the evidence follow from it.

    evidence: the numbers, by name; fractions and records become plain values.
    words: more that the sentences and the conditions of claims.toml need, by name.
    charts: figures of the paper made again.
    """

    def __init__(
        self, *, words: Mapping[str, Any] = {}, charts: tuple[Chart, ...] = (), **evidence: Any
    ) -> None:
        self.evidence, self.words, self.charts = evidence, words, charts

    def find(self, id: str, expected: Mapping[str, Any]) -> Finding:
        """Return the finding, by the conditions and in the words of claims.toml.

        id: of the claim.
        expected: the paper's numbers for it.
        """
        texts = read_texts()[id]
        known = {"expected": expected, **self.evidence, **self.words}
        unshown = _list_unmet(texts.get("shown", {}), known)
        wrong = _list_unmet(texts.get("holds", {}), known)
        verdict, refuted = Verdict.HOLDS, texts.get("refuted", {})
        kept = _list_unmet(refuted if isinstance(refuted, dict) else {"": refuted}, known)
        if unshown or wrong:
            verdict = Verdict.FAILS
        elif refuted and not kept:
            verdict = Verdict.CORRECTED
        named = [*wrong, *filter(None, kept)]
        return Finding(
            verdict,
            " ".join([fill(texts["measured"], known), *unshown])
            + (f" Not so: {'; '.join(named)}." if named else ""),
            fill(texts["correction"], known) if verdict is Verdict.CORRECTED else "",
            evidence={name: _plain(value) for name, value in self.evidence.items()},
            charts=self.charts,
        )


@cache
def read_texts() -> dict[str, dict[str, Any]]:
    """Read what the paper claims, and the sentences for what was measured, by claim."""
    return tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


class _Filler(Formatter):
    """Fills in sentences, as str.format and in the further ways that claims.toml names."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:
            return format_spec.split("|")[not value]
        if format_spec == "count":
            return str(len(value))
        if format_spec == "amounts":
            return f"({', '.join(map(str, value))})"
        if format_spec.endswith("list"):
            return ", ".join(format(one, format_spec.removesuffix("list").strip()) for one in value)
        if format_spec.endswith("or none"):
            return format(value, format_spec.removesuffix("or none").strip()) if value else "none"
        if format_spec.endswith(" %"):
            return format(100 * value, format_spec.removesuffix(" %")) + " %"
        return format(value, format_spec)


def fill(sentence: str, known: Mapping[str, Any]) -> str:
    """Return a sentence of claims.toml with its numbers in place."""
    return _Filler().vformat(sentence, (), known)


def is_met(condition: str, known: Mapping[str, Any]) -> bool:
    """Return whether a condition of claims.toml is met, such as "not differ and gap <= most"."""

    def read(name: str) -> Any:
        try:
            return float(name)
        except ValueError:
            return _Filler().get_field(name, (), known)[0]

    for part in condition.split(" and "):
        words = part.removeprefix("not ").split()
        values, signs = [read(name) for name in words[::2]], words[1::2]
        pairs = zip(signs, pairwise(values), strict=True)
        met = all(_COMPARE[sign](*two) for sign, two in pairs) if signs else values[0]
        if bool(met) == part.startswith("not "):
            return False
    return True


def _list_unmet(conditions: Mapping[str, str], known: Mapping[str, Any]) -> list[str]:
    """Return what is said of the conditions that are not met."""
    return [fill(said, known) for said, met in conditions.items() if not is_met(met, known)]


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Setting:
    """What a check is given.

    full: whether to take hours for it, as against seconds.
    expected: the paper's numbers for this claim, from expected.toml.
    folder: where finished runs of training are kept, to go on from.
    workers: how many of them at a time; None on Ray for one per CPU of the cluster.
    tell: called with what is under way, how much of it is done, and of how much.
    part: the part of the training to do; None for all of it.
    engine: where the runs of agents are made, as `defection_curves` has it.
    """

    full: bool
    expected: Mapping[str, Any]
    folder: Path
    workers: int | None = 1
    tell: Callable[[str, int, int], None] = lambda what, done, total: None
    part: Part | None = None
    engine: str | EngineMaker = "local"


Check = Callable[[Setting], Finding]
Measure = Callable[[Setting], Measured]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper that software can check.

    id: its name on the command line.
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
            check: Check = lambda setting: measure(setting).find(  # noqa: E731
                id, setting.expected
            )
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
