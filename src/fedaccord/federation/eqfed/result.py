"""The result of EQ-FED: the plan, the steps that led to it, and how it did when verified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fedaccord.allocation import Allocation
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.defection.intervals import Proportion

# How a search can end, and what that means for the plan.
ENDINGS = {
    "settled": "every contribution is within one step of the client's best response",
    "budget": "the budget ended before contributions settled: perhaps some clients could give less",
    "raised": "further trials needed contributions more than one step above the settled ones",
    "circle": "best responses went in a circle: this is the cheapest plan in the circle in which "
    "all clients reach their goals",
}


@dataclass(frozen=True)
class Step:
    """Contributions that were tried, and the result: a row of the story.

    phase: "grow", "trim", "confirm", "tighten", "reserve" or "verify".
    contributions: what each client gave.
    mover: the client whose contribution differs from the row before; None if none does.
    trials: how many runs of training were made with it.
    accuracies: of each client at the end, on average.
    bounds: the accuracy that each client exceeds in one more trial, with the given confidence.
    short: the clients whose bounds are below their goals.
    chance: the estimated probability that all reach their goals in one more trial.
    passes: how many times each sample was drawn, if that was tried; None otherwise.
    reserve: how many samples each client held in reserve, if that was tried; None otherwise.
    """

    phase: str
    contributions: Contributions
    mover: str | None
    trials: int
    accuracies: tuple[float, ...]
    bounds: tuple[float, ...]
    short: tuple[str, ...]
    chance: float
    passes: float | None = None
    reserve: tuple[int, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        optional = ("passes", "reserve")
        return {k: v for k, v in plain.items() if k not in optional or v is not None}


@dataclass(frozen=True)
class Cut:
    """How often a contributor that gave less than planned still reached its goal.

    client: its name.
    level: what part of its contribution it gave.
    satisfied: how often it was.
    others: how often all the others were.
    """

    client: str
    level: float
    satisfied: Proportion
    others: Proportion

    def to_dict(self) -> dict[str, Any]:
        """Return the cut as plain values."""
        return {
            "agent": self.client,
            "level": self.level,
            **self.satisfied.to_dict(),
            "others": self.others.to_dict(),
        }


@dataclass(frozen=True)
class Verified:
    """How a plan did on validation samples and random draws that had no part in choosing it.

    all_satisfied: how often all clients reached their goals.
    satisfied: how often each client did, in the clients' order.
    cuts: of each contributor at each level.
    among_contributors: by level, a random contributor that cut to it.
    """

    all_satisfied: Proportion
    satisfied: tuple[Proportion, ...]
    cuts: tuple[Cut, ...]
    among_contributors: dict[float, Proportion]

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as plain values."""
        return {
            "all_satisfied": self.all_satisfied.to_dict(),
            "satisfied": [share.to_dict() for share in self.satisfied],
            "cuts": [cut.to_dict() for cut in self.cuts],
            "among_contributors": [
                {"level": level, **share.to_dict()}
                for level, share in self.among_contributors.items()
            ],
        }


@dataclass(frozen=True)
class Sought:
    """A plan in which no client gives much more than it needs to, and how it was found.

    clients: their names.
    contributions: what the plan asks of each.
    algorithm: to train with, committed to the plan, with as few passes as are needed.
    requirements: the accuracy each client wants.
    confidence: how likely all were to be satisfied.
    ending: "settled" if every best response is within one step, "budget" if no runs were left to
        get there, "raised" if further trials needed more, "circle" if best responses went in one.
    helpers: clients that give more than they need, for one that has given all it has.
    story: what was tried, in order.
    verified: how the plan did on samples and draws that chose nothing; None if no run was left.
    runs: how many runs of training it took.
    reused: how many of them were in the store.
    seed: the random seed.
    seconds: how long it took.
    """

    clients: tuple[str, ...]
    contributions: Contributions
    algorithm: Algorithm
    requirements: tuple[float, ...]
    confidence: float
    ending: str
    helpers: tuple[str, ...]
    story: tuple[Step, ...] = field(repr=False)
    verified: Verified | None = field(repr=False)
    runs: int
    reused: int
    seed: int
    seconds: float

    @property
    def plan(self) -> Allocation:
        """The contributions by name, with the reserves if there are any."""
        reserve = getattr(self.algorithm, "reserve", None)
        return Allocation(self.contributions, self.clients, reserve=reserve)

    @property
    def settled(self) -> bool:
        """Whether every best response is within one step."""
        return self.ending == "settled"

    @property
    def total(self) -> int:
        """How many samples the plan asks for."""
        return sum(self.contributions)

    @property
    def contributors(self) -> tuple[str, ...]:
        """The clients that the plan asks for samples."""
        pairs = zip(self.clients, self.contributions, strict=True)
        return tuple(name for name, points in pairs if points)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "agents": list(self.clients),
            "contributions": list(self.contributions),
            "total": self.total,
            "algorithm": self.algorithm.to_dict(),
            "requirements": list(self.requirements),
            "confidence": self.confidence,
            "ending": self.ending,
            "helpers": list(self.helpers),
            "story": [step.to_dict() for step in self.story],
            "verified": None if self.verified is None else self.verified.to_dict(),
            "runs": self.runs,
            "reused": self.reused,
            "seed": self.seed,
            "seconds": self.seconds,
        }
