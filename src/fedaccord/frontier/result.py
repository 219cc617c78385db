"""What comes of comparing algorithms: each contender's curves, and which goals it reaches.

    all satisfied          in at least 95 % of runs, everybody giving what is asked of it
    a cut is felt          a contributor that gives 25 % of that is satisfied in at most 10 %
    few samples            at most half of the different points that FedAvg uses

No goal is met by giving up another: contenders are told apart by all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from fedaccord._display import Displayed
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import PLANS
from fedaccord.federation.defection.curves import (
    Contributions,
    DefectionCurve,
    Interval,
    Proportion,
)
from fedaccord.wording import format_low_part as percent
from fedaccord.wording import join_with_and

COUNTS = ("none", "one", "two", "all three")


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
class Frontier(Displayed):
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
        found = self.reached(contender)
        count = sum(one.reached for one in found)
        which = "all three goals" if count == 3 else f"{COUNTS[count]} of the three goals"
        return f"{contender.name} reaches {which}: {'; '.join(map(self._clause, found))}."

    def _clause(self, found: Reached) -> str:
        words = {
            "satisfied": "all are satisfied in {} of runs",
            "cut": f"a contributor that gives {percent(self.goals.level)} of what is asked is in "
            "{}",
            "samples": f"it uses {{}} of {self.baseline}'s samples",
        }[found.goal]
        bound = f"{'at least' if found.goal == 'satisfied' else 'at most'} {percent(found.bound)}"
        if found.value is None:
            return f"nothing is asked of anybody, so nobody can cut (goal {bound})"
        ends = ""
        if found.low is not None and found.high is not None:
            low, high = percent(found.low), percent(found.high)
            ends = "" if low == high else f"{100 * found.low:.0f} to {high}; "
        answer = "reached" if found.reached else "missed"
        surely = "" if found.sure else ", not surely"
        return f"{words.format(percent(found.value))} ({ends}goal {bound}: {answer}{surely})"

    @property
    def conclusion(self) -> str:
        """The answer in a sentence: who reaches all three goals; if nobody does, who is nearest."""
        goals = self.goals
        asked = (
            f"all satisfied in at least {percent(goals.satisfied)} of runs, a contributor that "
            f"gives {percent(goals.level)} of what is asked in at most {percent(goals.cut)}, at "
            f"most {percent(goals.samples)} of {self.baseline}'s samples"
        )
        found = {contender.name: self.reached(contender) for contender in self.contenders}
        counts = {name: sum(one.reached for one in goals) for name, goals in found.items()}
        best = max(counts.values())
        names = [name for name, count in counts.items() if count == best]
        reach = f"{join_with_and(names)} {'reaches' if len(names) == 1 else 'reach'}"
        if best == 0:
            return f"Nobody reaches any of the three goals: {asked}."
        if best < 3:
            return f"Nobody reaches all three goals: {asked}. {reach} {COUNTS[best]} of them."
        sure = [name for name in names if all(one.sure for one in found[name])]
        doubt = f"and of {join_with_and(sure)} so do all intervals"
        if not sure:
            doubt = "by what was seen, though not beyond the doubt that intervals leave"
        elif sure == names:
            doubt = "and so do all intervals"
        return f"{reach} all three goals, {doubt}: {asked}."

    @property
    def provenance(self) -> str:
        """A sentence on what chose the plans, and what they were judged by."""
        trials = "trial 0" if self.trials == 1 else f"trials 0 to {self.trials - 1:,}"
        given = [one.name for one in self.contenders if one.plan not in PLANS]
        taken = f" (that of {join_with_and(given)} was given)" if given else ""
        return (
            f"Plans were made on trials of their own{taken}. Everything here is counted on "
            f"{trials} of seed {self.seed}, which chose nothing."
        )

    def describe_harm(self, contender: Contender) -> str:
        """Say what a cut does to the others, where they are satisfied less often; or nothing."""
        level, full = self.goals.level, contender.all_satisfied
        then = contender.others("P2", level)
        if not then.trials or then.high >= full.low or then.p >= full.p:
            return ""
        return (
            f"Under {contender.name} the others pay for a cut too: when a contributor gives "
            f"{percent(level)} of what is asked, all the others are satisfied in "
            f"{percent(then.p)} of runs ({100 * then.low:.0f} to {percent(then.high)})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: the same for the same input, the two times aside."""
        return {
            "conclusion": self.conclusion,
            "provenance": self.provenance,
            "goals": asdict(self.goals),
            "baseline": self.baseline,
            "contenders": {
                one.name: {
                    "plan": one.plan,
                    "story": one.story,
                    "planning_runs": one.planning_runs,
                    "verdict": self.verdict(one),
                    "goals": {found.goal: found.to_dict() for found in self.reached(one)},
                    "P1": one.p1.to_dict(),
                    "P2": one.p2.to_dict(),
                }
                for one in self.contenders
            },
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

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Frontier:
        """Return the frontier that to_dict wrote, or `fedaccord frontier --json` prints."""
        own = {field.name for field in fields(cls)} & data.keys()
        made = {
            "contenders": (Contender.from_dict(n, c) for n, c in data["contenders"].items()),
            "clients": data["requirements"],
            "requirements": data["requirements"].values(),
            "points": data["points"].values(),
            "levels": data["levels"],
            "versions": data["versions"],
        }
        lists = {name: tuple(values) for name, values in made.items()}
        return cls(**{n: data[n] for n in own} | lists | {"goals": Goals(**data["goals"])})


def _of_share(goal: str, share: Proportion, bound: float) -> Reached:
    if not share.trials:
        return Reached(goal, None, None, None, bound)
    return Reached(goal, share.p, share.low, share.high, bound)
