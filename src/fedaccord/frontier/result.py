"""What comes of comparing algorithms: each contender's curves, and which goals it reaches.

    all satisfied          in at least 95 % of runs, everybody giving what is asked of it
    a cut is felt          a contributor that gives 25 % of that is satisfied in at most 10 %
    few samples            at most half of the different points that FedAvg uses

No goal is met by giving up another: contenders are told apart by all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from fedaccord.errors import InputError
from fedaccord.federation.defection.curves import (
    Contributions,
    DefectionCurve,
    Interval,
    Proportion,
)


@dataclass(frozen=True)
class Goals:
    """What an algorithm with its plan is to reach.

    satisfied: how often all are to be satisfied at least, everybody giving what is asked of it.
    cut: how often a contributor may be satisfied, at most, that gives only a part of that.
    level: that part.
    samples: how many different points may be used, at most, as a share of the baseline's.
    """

    satisfied: float = 0.95
    cut: float = 0.10
    level: float = 0.25
    samples: float = 0.50


@dataclass(frozen=True)
class Reached:
    """Whether a contender reaches one of the goals.

    goal: "satisfied", "cut" or "samples".
    value: what was seen; None where nothing was.
    low, high: the ends of its 95 % interval; None where it is not known.
    bound: what the value must not fall short of ("satisfied") or exceed (the others).
    """

    goal: str
    value: float | None
    low: float | None
    high: float | None
    bound: float

    @property
    def reached(self) -> bool:
        """Whether what was seen is on the right side of the bound."""
        return self.value is not None and self._right(self.value)

    @property
    def sure(self) -> bool:
        """Whether the whole interval is on the same side of the bound as what was seen."""
        if self.value is None or self.low is None or self.high is None:
            return False
        return self._right(self.low) == self._right(self.high) == self.reached

    def _right(self, value: float) -> bool:
        # Shares of counts are rounded: 0.1 + 0.2 is to be no more than 0.3.
        slack = 1e-9
        if self.goal == "satisfied":
            return value >= self.bound - slack
        return value <= self.bound + slack

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, whether the goal is reached, and whether that is sure."""
        return {**asdict(self), "reached": self.reached, "sure": self.sure}


@dataclass(frozen=True)
class Contender:
    """An algorithm with its plan, and how it fares.

    name: of the algorithm.
    plan: how the plan was made: "own", "all", "measured", "sought", or a file's name.
    story: a sentence on the plan, where there is more to say.
    planning_runs: how many runs of training it took to make the plan; those of "own" are not
        counted, they are the algorithm as it is.
    p1: its curve where one client has only a part of its points.
    p2: its curve where one client gives only a part of what is asked of it.
    """

    name: str
    plan: str
    story: str
    planning_runs: int
    p1: DefectionCurve
    p2: DefectionCurve

    def __repr__(self) -> str:
        return f"Contender({self.name}, {self.plan}, all satisfied {self.all_satisfied})"

    @property
    def contributions(self) -> Contributions:
        """What is asked of each client."""
        return self.p2.contributions

    @property
    def all_satisfied(self) -> Proportion:
        """How often all are satisfied when everybody gives what is asked of it."""
        return self.p2.all_satisfied

    def curve(self, protocol: str) -> DefectionCurve:
        """Return the curve of a protocol, "P1" or "P2"."""
        return {"P1": self.p1, "P2": self.p2}[protocol]

    def defector(self, protocol: str, level: float, *, contributors: bool = False) -> Proportion:
        """Return how often the one who gave less was satisfied all the same.

        protocol: "P1" or "P2".
        level: what part it gave.
        contributors: whether it is drawn among those of whom something is asked.
        """
        found = self.curve(protocol).at(level).at_end
        return found.contributors if contributors else found.random

    def others(self, protocol: str, level: float) -> Proportion:
        """Return how often all the others were satisfied when a contributor gave less."""
        found = self.curve(protocol).at(level).at_end
        return found.others_of_contributors or found.others

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> Contender:
        """Return the contender that a frontier's to_dict wrote."""
        return cls(
            name=name,
            plan=data["plan"],
            story=data["story"],
            planning_runs=data["planning_runs"],
            p1=DefectionCurve.from_dict(name, data["P1"]),
            p2=DefectionCurve.from_dict(name, data["P2"]),
        )


@dataclass(frozen=True)
class Frontier:
    """Algorithms side by side, under the same data and seeds.

    contenders: in the order asked for.
    unplanned: algorithms without a plan, by name, each with the reason in a sentence.
    baseline: the contender whose samples the others' are counted against.
    goals: what was to be reached.
    clients: their names.
    requirements: the accuracy that each client wants.
    points: how many each has.
    levels: what part a defector gives.
    trials: how many there were.
    defectors: "each" or "random".
    seed: of everything random.
    versions: of the packages that the runs were made with.
    source: the fingerprint of the federation, or of what deals one to each trial.
    run_seconds: how long all the runs took that are counted, whenever they were made.
    seconds: how long it took this time.
    """

    contenders: tuple[Contender, ...]
    unplanned: Mapping[str, str]
    baseline: str
    goals: Goals
    clients: tuple[str, ...]
    requirements: tuple[float, ...]
    points: Contributions
    levels: tuple[float, ...]
    trials: int
    defectors: str
    seed: int
    versions: tuple[str, ...]
    source: str
    run_seconds: float
    seconds: float

    def __repr__(self) -> str:
        names = ", ".join(contender.name for contender in self.contenders)
        return f"Frontier({names}; {len(self.clients)} clients, {self.trials} trials)"

    def contender(self, name: str) -> Contender:
        """Return a contender by its name."""
        for contender in self.contenders:
            if contender.name == name:
                return contender
        known = ", ".join(contender.name for contender in self.contenders)
        raise InputError(f'nothing is known of "{name}"; there are {known}')

    @cached_property
    def idle(self) -> bool:
        """Whether there is a contender that asks nothing of somebody."""
        return any(0 in contender.contributions for contender in self.contenders)

    def share(self, contender: Contender) -> tuple[float, Interval | None]:
        """Return a contender's samples as a share of the baseline's, and the interval of that.

        contender: one of them.
        """
        base = self.contender(self.baseline).p2
        share = contender.p2.total_samples / base.total_samples
        own, against = contender.p2.samples_interval, base.samples_interval
        if contender.name == self.baseline:
            return 1.0, (1.0, 1.0)
        if own is None or against is None:
            return share, None
        # Each end against the other's far one: no narrower than the ratio's own interval.
        return share, (own[0] / against[1], own[1] / max(against[0], 1.0))

    def reached(self, contender: Contender) -> tuple[Reached, Reached, Reached]:
        """Return which goals a contender reaches: all satisfied, cuts felt, few samples."""
        goals = self.goals
        cut = contender.defector("P2", goals.level, contributors=True)
        share, ends = self.share(contender)
        low, high = (None, None) if ends is None else ends
        return (
            _of_share("satisfied", contender.all_satisfied, goals.satisfied),
            _of_share("cut", cut, goals.cut),
            Reached("samples", share, low, high, goals.samples),
        )

    def verdict(self, contender: Contender) -> str:
        """Say which goals a contender reaches, and whether its intervals leave any doubt."""
        from fedaccord.frontier.sentences import verdict

        return verdict(self, contender)

    @property
    def conclusion(self) -> str:
        """The answer in a sentence: who reaches all three goals."""
        from fedaccord.frontier.sentences import conclusion

        return conclusion(self)

    @property
    def provenance(self) -> str:
        """A sentence on what chose the plans, and what they were judged by."""
        from fedaccord.frontier.sentences import provenance

        return provenance(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: the same for the same input, the two times aside."""
        return {
            "conclusion": self.conclusion,
            "provenance": self.provenance,
            "goals": asdict(self.goals),
            "baseline": self.baseline,
            "contenders": {one.name: self._plain(one) for one in self.contenders},
            "unplanned": dict(self.unplanned),
            "requirements": dict(zip(self.clients, self.requirements, strict=True)),
            "points": dict(zip(self.clients, self.points, strict=True)),
            "levels": list(self.levels),
            "trials": self.trials,
            "defectors": self.defectors,
            "seed": self.seed,
            "source": self.source,
            "versions": list(self.versions),
            "run_seconds": self.run_seconds,
            "seconds": self.seconds,
        }

    def _plain(self, contender: Contender) -> dict[str, Any]:
        return {
            "plan": contender.plan,
            "story": contender.story,
            "planning_runs": contender.planning_runs,
            "verdict": self.verdict(contender),
            "goals": {one.goal: one.to_dict() for one in self.reached(contender)},
            "P1": contender.p1.to_dict(),
            "P2": contender.p2.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Frontier:
        """Return the frontier that to_dict wrote, or `fedaccord frontier --json` prints."""
        return cls(
            contenders=tuple(Contender.from_dict(n, c) for n, c in data["contenders"].items()),
            unplanned=data["unplanned"],
            baseline=data["baseline"],
            goals=Goals(**data["goals"]),
            clients=tuple(data["requirements"]),
            requirements=tuple(data["requirements"].values()),
            points=tuple(data["points"].values()),
            levels=tuple(data["levels"]),
            trials=data["trials"],
            defectors=data["defectors"],
            seed=data["seed"],
            versions=tuple(data["versions"]),
            source=data["source"],
            run_seconds=data["run_seconds"],
            seconds=data["seconds"],
        )


def _of_share(goal: str, share: Proportion, bound: float) -> Reached:
    if not share.trials:
        return Reached(goal, None, None, None, bound)
    return Reached(goal, share.p, share.low, share.high, bound)
