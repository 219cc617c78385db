"""Algorithms compared: the curves of each, and which criteria it meets.

    all reach their goals   in at least 95 % of runs, if all give what the plan asks
    no defection            a contributor that gives 25 % of that reaches its goal in at most 10 %
    no harm                 all the others reach their goals in at least 90 % then
    few samples             at most half of the different samples that FedAvg uses

If further defectors were audited, such as contributors that keep their data or defect together,
each kind is one more criterion, with the bound of defection. The numbers are settings. An algorithm
meets each criterion or misses it; none makes up for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from fedaccord._lazy import Displayed
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import PLANS
from fedaccord.federation.defection.curves import (
    ACCURACY,
    Contributions,
    DefectionCurve,
    DefectionLevel,
    Satisfaction,
)
from fedaccord.federation.defection.intervals import Interval, Proportion
from fedaccord.wording import format_low_part as percent
from fedaccord.wording import join_with_and, name_few

# The criteria that a share must reach; it must not exceed the others.
AT_LEAST = ("satisfied", "others")


@dataclass(frozen=True)
class Goals:
    """The criteria of a comparison, set by the user.

    satisfied: in which share of runs, at least, all clients are to reach their goals, if all give
        what the plan asks.
    cut: in which share of runs, at most, a contributor may reach its goal that gives only a part.
        The same holds for every further kind of defector.
    level: that part.
    samples: how many different samples may be used, at most, as a share of the baseline's.
    others: in which share of runs, at least, all the others are to reach their goals then.
    """

    satisfied: float = 0.95
    cut: float = 0.10
    level: float = 0.25
    samples: float = 0.50
    others: float = 0.90


@dataclass(frozen=True)
class Reached:
    """Whether an algorithm meets one of the criteria.

    goal: "satisfied", "cut", "others", "kept", "samples", or what further defectors do.
    value: the share found; None where there is none.
    low, high: the ends of its 95 % interval; None where it is not known.
    bound: the least that the value may be (for AT_LEAST), or the most.
    """

    goal: str
    value: float | None
    low: float | None
    high: float | None
    bound: float

    @property
    def reached(self) -> bool:
        """Whether the share found is on the right side of the bound."""
        return self.value is not None and self._right(self.value)

    @property
    def sure(self) -> bool:
        """Whether the whole interval is on the same side of the bound as the share found."""
        if self.value is None or self.low is None or self.high is None:
            return False
        return self._right(self.low) == self._right(self.high) == self.reached

    def _right(self, value: float) -> bool:
        # Shares of counts are rounded: 0.1 + 0.2 must not exceed 0.3.
        slack = 1e-9
        if self.goal in AT_LEAST:
            return value >= self.bound - slack
        return value <= self.bound + slack

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, whether the criterion is met, and whether that is sure."""
        return {**asdict(self), "reached": self.reached, "sure": self.sure}


@dataclass(frozen=True)
class Contender:
    """An algorithm with its plan, and its curves.

    name: of the algorithm.
    plan: how the plan was made: "own", "all", "measured", "sought", or a file's name.
    story: a sentence about the plan, where there is more to say.
    planning_runs: how many training runs the plan took; those of "own" are not counted.
    p1: its curve where one client has only a part of its samples.
    p2: its curve where one client gives only a part of what the plan asks of it.
    further: its curves where defectors do more than give less, by what they do.
    """

    name: str
    plan: str
    story: str
    planning_runs: int
    p1: DefectionCurve
    p2: DefectionCurve
    further: Mapping[str, DefectionCurve] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Contender({self.name}, {self.plan}, all reach their goals {self.all_satisfied})"

    @property
    def contributions(self) -> Contributions:
        """What the plan asks of each client."""
        return self.p2.contributions

    @property
    def all_satisfied(self) -> Proportion:
        """How often all reach their goals, if all give what the plan asks."""
        return self.p2.all_judged

    def to_further(self) -> dict[str, Any]:
        """Return the curves of defectors that do more than give less as plain values."""
        return {what: curve.to_dict() for what, curve in self.further.items()}

    def curve(self, protocol: str) -> DefectionCurve:
        """Return the curve of a protocol, "P1" or "P2"."""
        return {"P1": self.p1, "P2": self.p2}[protocol]

    def defector(self, protocol: str, level: float, *, contributors: bool = False) -> Proportion:
        """Return how often a defector still reached its goal.

        protocol: "P1" or "P2".
        level: what part it gave.
        contributors: whether only clients count that the plan asks for something.
        """
        found = self.curve(protocol).at(level).judged
        return found.contributors if contributors else found.random

    def others(self, protocol: str, level: float) -> Proportion:
        """Return how often all the others reached their goals when a contributor gave less."""
        found = self.curve(protocol).at(level).judged
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
            further={
                what: DefectionCurve.from_dict(name, one)
                for what, one in data.get("further", {}).items()
            },
        )


@dataclass(frozen=True)
class Frontier(Displayed):
    """Algorithms side by side, under the same data and seeds.

    contenders: the algorithms, in the order given.
    unplanned: algorithms without a plan, by name, each with the reason in a sentence.
    baseline: the algorithm whose samples the others are compared with.
    goals: the criteria.
    clients: their names.
    requirements: the accuracy that each client wants.
    points: how many each has.
    levels: what part a defector gives.
    trials: how many there were.
    defectors: "each" or "random".
    seed: the random seed.
    versions: of the packages that made the runs.
    source: the fingerprint of the federation, or of the source that deals one to each trial.
    run_seconds: how long all counted runs took, whenever they were made.
    seconds: how long it took this time.
    scored_on: on how many further samples per client models are judged; None for validation
        samples.
    measures: what clients want, by the names of their goals.
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
    scored_on: int | None = None
    measures: tuple[str, ...] = ACCURACY

    def __repr__(self) -> str:
        names = ", ".join(contender.name for contender in self.contenders)
        return f"Frontier({names}; {len(self.clients)} clients, {self.trials} trials)"

    def contender(self, name: str) -> Contender:
        """Return a contender by its name."""
        for contender in self.contenders:
            if contender.name == name:
                return contender
        known = ", ".join(contender.name for contender in self.contenders)
        raise InputError(f'"{name}" was not compared; the algorithms are {known}')

    @cached_property
    def idle(self) -> bool:
        """Whether a plan asks nothing of some client."""
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

    def reached(self, contender: Contender) -> tuple[Reached, ...]:
        """Return which criteria a contender meets, the share of samples last."""
        goals, point = self.goals, contender.p2.at(self.goals.level)
        further = {} if point.kept is None else {"kept": point.kept}
        further |= {what: _best(curve.at(goals.level)) for what, curve in contender.further.items()}
        share, ends = self.share(contender)
        low, high = (None, None) if ends is None else ends
        return (
            _of_share("satisfied", contender.all_satisfied, goals.satisfied),
            _of_share("cut", _best(point).contributors, goals.cut),
            _of_share("others", contender.others("P2", goals.level), goals.others),
            *(_of_share(what, found.contributors, goals.cut) for what, found in further.items()),
            Reached("samples", share, low, high, goals.samples),
        )

    def verdict(self, contender: Contender) -> str:
        """Return which criteria a contender meets, and whether its intervals leave a doubt."""
        found = self.reached(contender)
        met = sum(one.reached for one in found)
        which = _count_criteria(met, len(found))
        told = [self._describe(one) for one in found if one.value is not None]
        if len(told) < len(found):
            told.append("The plan asks nothing of any agent, so no agent can defect.")
        return " ".join([f"{contender.name} meets {which}.", *told])

    def _describe(self, found: Reached) -> str:
        words = {
            "satisfied": "All agents reach their goals in {} of runs",
            "cut": f"A contributor that gives {percent(self.goals.level)} reaches its goal in {{}}",
            "others": "All the others then reach theirs in {}",
            "kept": "If it trains on all its data afterwards, it does in {}",
            "samples": f"It uses {{}} of the samples of {self.baseline}",
        }.get(found.goal, f"Defectors reach their goals in {{}} ({found.goal})")
        answer = "met" if found.reached else "missed"
        surely = "" if found.sure else ", not certain"
        return f"{words.format(percent(found.value or 0.0))} ({answer}{surely})."

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria in sentences, which are settings of the comparison."""
        goals = self.goals
        further = self.reached(self.contenders[0])[3:-1]
        same = f", {'each' if len(further) > 1 else 'the'} further kind of defector included"
        return (
            f"All agents reach their goals in at least {percent(goals.satisfied)} of runs.",
            f"A contributor that gives {percent(goals.level)} of what the plan asks reaches its "
            f"goal in at most {percent(goals.cut)} of runs{same if further else ''}.",
            f"All the others then reach theirs in at least {percent(goals.others)} of runs.",
            f"Training uses at most {percent(goals.samples)} of the samples of {self.baseline}.",
        )

    @property
    def conclusion(self) -> str:
        """The answer in a sentence: which algorithms meet all criteria, or the most."""
        found = {contender.name: self.reached(contender) for contender in self.contenders}
        counts = {name: sum(one.reached for one in goals) for name, goals in found.items()}
        best, most = max(counts.values()), len(self.reached(self.contenders[0]))
        names = [name for name, count in counts.items() if count == best]
        meet = f"{name_few(names)} {'meets' if len(names) == 1 else 'meet'}"
        if best == 0:
            return f"No algorithm meets any of the {most} criteria."
        if best < most:
            return f"No algorithm meets all {most} criteria. {meet} {best} of them."
        sure = [name for name in names if all(one.sure for one in found[name])]
        if not sure:
            return f"{meet} all {most} criteria, but the 95 % intervals leave a doubt."
        certain = "The" if sure == names else f"For {name_few(sure)}, the"
        return f"{meet} all {most} criteria. {certain} 95 % intervals confirm it."

    @property
    def provenance(self) -> str:
        """A sentence about what chose the plans, and what they are judged by."""
        trials = "trial 0" if self.trials == 1 else f"trials 0 to {self.trials - 1:,}"
        given = [one.name for one in self.contenders if one.plan not in PLANS]
        taken = f" (the plan of {join_with_and(given)} was given)" if given else ""
        return (
            f"Plans were made on trials of their own{taken}. All shares come from other trials: "
            f"{trials} of seed {self.seed}."
        )

    def describe_harm(self, contender: Contender) -> str:
        """Return what defection does to the others, where they reach their goals less often."""
        level, full = self.goals.level, contender.all_satisfied
        then = contender.others("P2", level)
        if not then.trials or then.high >= full.low or then.p >= full.p:
            return ""
        return (
            f"Under {contender.name}, defection harms the others too. When a contributor gives "
            f"{percent(level)} of what the plan asks, all the others reach their goals in "
            f"{percent(then.p)} of runs. The 95 % interval is from "
            f"{100 * then.low:.0f} % to {percent(then.high)}."
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
                    **({"further": one.to_further()} if one.further else {}),
                }
                for one in self.contenders
            },
            "unplanned": dict(self.unplanned),
            "requirements": dict(zip(self.clients, self.requirements, strict=True)),
            **({} if self.measures == ACCURACY else {"measures": list(self.measures)}),
            "points": dict(zip(self.clients, self.points, strict=True)),
            "levels": list(self.levels),
            "trials": self.trials,
            "defectors": self.defectors,
            **({} if self.scored_on is None else {"scored_on": self.scored_on}),
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
            "measures": data.get("measures", ACCURACY),
        }
        lists = {name: tuple(values) for name, values in made.items()}
        return cls(**{n: data[n] for n in own} | lists | {"goals": Goals(**data["goals"])})


def _best(point: DefectionLevel) -> Satisfaction:
    """Return how often defectors succeed if they do the best they can with what they gave."""
    return point.judged if point.outside is None else point.outside


def _count_criteria(met: int, of: int) -> str:
    return f"all {of} criteria" if met == of else f"{met or 'none'} of the {of} criteria"


def _of_share(goal: str, share: Proportion, bound: float) -> Reached:
    if not share.trials:
        return Reached(goal, None, None, None, bound)
    return Reached(goal, share.p, share.low, share.high, bound)
