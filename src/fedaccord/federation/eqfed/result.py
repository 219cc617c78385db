"""What an equilibrium-seeking procedure found: the plan, how it came to it, what verifying saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fedaccord.allocation import Allocation
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.defection.curves import Contributions, Proportion

# How a search can end, and what that means for the plan.
ENDINGS = {
    "settled": "nobody's best response is further than a step from what it is to give",
    "budget": "the budget ended before nobody moved any more: some may be able to give less",
    "raised": "further trials asked for more than a step above where nobody moved",
    "circle": "best responses went in a circle: this is the cheapest of the plans in it that do",
}


@dataclass(frozen=True)
class Step:
    """One thing that was tried, and what came of it: a row of the story.

    phase: "grow", "trim", "confirm", "tighten" or "verify".
    contributions: what each client brought.
    mover: whose contribution was tried at another height than before; None where nobody's was.
    trials: how many runs of training were made with it.
    accuracies: everybody's at the end, on average.
    bounds: what everybody's accuracy in one more trial stays above with the confidence asked for.
    short: who is not satisfied by its bound.
    chance: how likely it is that all have their accuracies in one more trial, as estimated.
    passes: how many times each point was drawn, where that was tried; None else.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        return {k: v for k, v in plain.items() if k != "passes" or v is not None}


@dataclass(frozen=True)
class Cut:
    """How often a contributor that gave less than its part had its accuracy all the same.

    client: who.
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
    """What was seen of a plan on validation points and draws of chance that chose nothing.

    all_satisfied: how often everybody had its accuracy.
    satisfied: how often each client had, in the clients' order.
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
    """A plan at which nobody gives much more than it needs to, and how it was found.

    clients: their names.
    contributions: what each is to bring.
    algorithm: to train with: it has what clients have promised, and as few passes as are needed.
    requirements: the accuracy each client wants.
    confidence: how likely all were to be satisfied.
    ending: "settled" where nobody's best response is further than a step away, "budget" where
        there was no run left to see to that, "raised" where further trials asked for more, "circle"
        where best responses went in one.
    helpers: who gives more than it needs itself, for one that has given all it has.
    story: what was tried, in order.
    verified: what was seen on points and draws that chose nothing; None where no run was left.
    runs: how many runs of training it took.
    reused: how many of them were in the store.
    seed: of everything random.
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
        """The contributions by name."""
        return Allocation(self.contributions, self.clients)

    @property
    def settled(self) -> bool:
        """Whether nobody's best response is further than a step away."""
        return self.ending == "settled"

    @property
    def total(self) -> int:
        """How many points are asked for in all."""
        return sum(self.contributions)

    @property
    def contributors(self) -> tuple[str, ...]:
        """Who is asked for any point."""
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
