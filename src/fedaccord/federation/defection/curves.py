"""Defection curves: how often clients reach their goals, by how much one of them gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import simplest_fraction
from fedaccord._lazy import Displayed
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.intervals import (
    Difference,
    Interval,
    KeptWorth,
    Proportion,
    clustered,
    compare_trials,
    mean_interval,
)
from fedaccord.federation.runs.store import Outcome

Contributions = tuple[int, ...]
# Who defects in a run: one client, or several together.
Group = tuple[int, ...]
# Of one trial: each group that defected, and what came of the run in which it did; after those
# that were drawn from all clients, perhaps one that was drawn from the contributors.
Trial = list[tuple[Group, Outcome]]
# Which clients reached their goals in a run: at the last evaluation, or at any.
Reading: TypeAlias = Callable[[Outcome], tuple[bool, ...]]
# Of each trial, a row with who reached its goal; and what makes a share with its interval of them.
Rows: TypeAlias = list[list[bool]]
Sharing: TypeAlias = Callable[[ArrayLike], Proportion]
at_end: Reading = attrgetter("satisfied")
by_then: Reading = attrgetter("satisfied_by_then")
# The same at the end, on further samples.
on_scored: Reading = attrgetter("scored_satisfied")


# The same if each defector takes the best model that it could have.


def outside(outcome: Outcome) -> tuple[bool, ...]:
    """Return who was satisfied if each defector went on with the samples that it gave."""
    return outcome.outside or outcome.scored_satisfied or outcome.satisfied


def keeping(outcome: Outcome) -> tuple[bool, ...]:
    """Return who was satisfied if each defector went on with all samples that it has."""
    return outcome.keeping or outcome.scored_satisfied or outcome.satisfied


@dataclass(frozen=True)
class Satisfaction:
    """How often clients reached their goals when one of them, the defector, gave less.

    random: the defector, a random client.
    clients: each client, when it was the defector.
    contributors: the defector, a random client among those that the plan asks for something.
    others: all the others together.
    others_of_contributors: the same, where the defector is a contributor; None in results from
        before this was counted.
    """

    random: Proportion
    clients: Mapping[str, Proportion]
    contributors: Proportion
    others: Proportion
    others_of_contributors: Proportion | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the random client's share at the top, the others by name."""
        beside = self.others_of_contributors
        return {
            **self.random.to_dict(),
            "runs": sum(share.trials for share in self.clients.values()),
            "agents": {name: share.to_dict() for name, share in self.clients.items()},
            "contributors": self.contributors.to_dict(),
            "others": self.others.to_dict(),
            **({} if beside is None else {"others_of_contributors": beside.to_dict()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Satisfaction:
        """Return the shares that to_dict wrote."""
        beside = data.get("others_of_contributors")
        return cls(
            random=Proportion.from_dict(data),
            clients={n: Proportion.from_dict(share) for n, share in data["agents"].items()},
            contributors=Proportion.from_dict(data["contributors"]),
            others=Proportion.from_dict(data["others"]),
            others_of_contributors=None if beside is None else Proportion.from_dict(beside),
        )


@dataclass(frozen=True)
class DefectionLevel:
    """One point of a curve.

    level: what part of its contribution the defector gave.
    at_end: how often clients reached their goals at the last evaluation.
    by_then: how often they did at any evaluation up to the last.
    scored: how often they did by the final model's accuracy on further samples, which nobody
        trains or validates on; None where models were not judged on any.
    outside: how often they were if a defector goes on alone with the samples that it gave, and
        takes the better model; None where defectors did not go on.
    kept: the same with all samples that it has (P3).
    from_full: by how much more often the defector reached its goal than at full contribution, in
        the same trials; None at full contribution, and in results of before this was counted.
    from_others: the same at this level, than under each algorithm before this one.
    """

    level: float
    at_end: Satisfaction
    by_then: Satisfaction
    scored: Satisfaction | None = None
    outside: Satisfaction | None = None
    kept: Satisfaction | None = None
    from_full: Difference | None = None
    from_others: Mapping[str, Difference] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"DefectionLevel({self.level:g}, {self.judged.random})"

    @property
    def judged(self) -> Satisfaction:
        """What the audit goes by: further samples, or validation samples where there are none."""
        return self.at_end if self.scored is None else self.scored

    def to_dict(self) -> dict[str, Any]:
        """Return the shares the audit goes by, and with them those by first passage.

        Where models were judged on further samples, the shares on validation samples stand under
        "validation".
        """
        others = {name: found.to_dict() for name, found in self.from_others.items()}
        return {
            "level": self.level,
            **self.judged.to_dict(),
            "first_passage": self.by_then.to_dict(),
            **({} if self.scored is None else {"validation": self.at_end.to_dict()}),
            **{name: found.to_dict() for name, found in self._going_on() if found is not None},
            **({} if self.from_full is None else {"from_full": self.from_full.to_dict()}),
            **({"from_others": others} if others else {}),
        }

    def _going_on(self) -> tuple[tuple[str, Satisfaction | None], ...]:
        return ("outside", self.outside), ("kept", self.kept)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DefectionLevel:
        """Return the point that to_dict wrote."""
        passed, judged = (Satisfaction.from_dict(part) for part in (data["first_passage"], data))
        beside: dict[str, Any] = {
            name: Satisfaction.from_dict(data[name]) for name in ("outside", "kept") if name in data
        }
        if "from_full" in data:
            beside["from_full"] = Difference.from_dict(data["from_full"])
        others = data.get("from_others", {})
        beside["from_others"] = {n: Difference.from_dict(one) for n, one in others.items()}
        if "validation" not in data:
            return cls(data["level"], judged, passed, **beside)
        validated = Satisfaction.from_dict(data["validation"])
        return cls(data["level"], validated, passed, judged, **beside)


# The options of an audit about what defectors do beyond giving less.
TACTICS = ("kept_data", "filler", "group", "detect_copies")
# Those of a curve that results of before they were counted have not.
INTERVALS = ("samples_interval", "draws_interval")


@dataclass(frozen=True)
class DefectionCurve:
    """How one algorithm fares when a client gives less.

    algorithm: its name.
    settings: all of its settings.
    contributions: what each client is to give: all its samples, or what the plan asks.
    levels: the points of the curve.
    all_satisfied: how often all reached their goals at the last evaluation, if all gave in full.
    all_by_then: the same by first passage: each at some evaluation, not all at the same.
    total_samples: different samples that all together used then, on average.
    total_draws: draws of all together then, on average.
    diverged: how many of the runs counted here had a loss that was not finite.
    samples_interval, draws_interval: the 95 % intervals of the two means; None where there are
        too few trials, or in results of before they were counted.
    all_scored: as all_satisfied, by the accuracies on further samples; None where models were not
        judged on any.
    kept_worth: what a sample that a client keeps is worth to it, relative to one that it shares,
        by the runs of the lowest level; empty where defectors did not go on.
    """

    algorithm: str
    settings: Mapping[str, Any]
    contributions: Contributions
    levels: tuple[DefectionLevel, ...]
    all_satisfied: Proportion
    all_by_then: Proportion
    total_samples: float
    total_draws: float
    diverged: int
    samples_interval: Interval | None = None
    draws_interval: Interval | None = None
    all_scored: Proportion | None = None
    kept_worth: Mapping[str, KeptWorth] = field(default_factory=dict)

    def __repr__(self) -> str:
        levels = ", ".join(f"{one.level:g}: {one.judged.random.p:.2f}" for one in self.levels)
        return f"DefectionCurve({self.algorithm}, {levels})"

    @property
    def all_judged(self) -> Proportion:
        """How often all reach their goals in full, by what the audit goes by."""
        return self.all_satisfied if self.all_scored is None else self.all_scored

    def at(self, level: float) -> DefectionLevel:
        """Return the curve's point at a level."""
        for point in self.levels:
            if point.level == level:
                return point
        known = ", ".join(f"{point.level:g}" for point in self.levels)
        raise InputError(f"the curve has no level {level:g}; it has {known}")

    def find_worst_off(self) -> str | None:
        """Return the client for which defection fails most often; None if all are alike.

        Only clients count that the plan asks for something.
        """
        asked = zip(self.levels[0].judged.clients, self.contributions, strict=True)
        shares = {
            name: [own.p for p in self.levels if (own := p.judged.clients[name]).trials]
            for name, points in asked
            if points
        }
        means = {name: float(np.mean(found)) for name, found in shares.items() if found}
        if len(set(means.values())) < 2:
            return None
        return min(means, key=lambda name: means[name])

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain values."""
        ends = {name: getattr(self, name) for name in INTERVALS}
        measured = {"all_satisfied": self.all_satisfied.to_dict()}
        worths = {name: one.to_dict() for name, one in self.kept_worth.items()}
        return {
            "all_satisfied": self.all_judged.to_dict(),
            "total_samples": self.total_samples,
            "levels": [point.to_dict() for point in self.levels],
            "first_passage": {"all_satisfied": self.all_by_then.to_dict()},
            **({} if self.all_scored is None else {"validation": measured}),
            "total_draws": self.total_draws,
            "contributions": list(self.contributions),
            "diverged": self.diverged,
            **{name: list(interval) for name, interval in ends.items() if interval is not None},
            **({"kept_worth": worths} if worths else {}),
            "settings": dict(self.settings),
        }

    @classmethod
    def from_dict(cls, algorithm: str, data: Mapping[str, Any]) -> DefectionCurve:
        """Return the algorithm's curve that to_dict wrote."""
        judged = Proportion.from_dict(data["all_satisfied"])
        measured = data.get("validation")
        return cls(
            algorithm=algorithm,
            settings=data["settings"],
            contributions=tuple(data["contributions"]),
            levels=tuple(map(DefectionLevel.from_dict, data["levels"])),
            all_satisfied=(
                judged if measured is None else Proportion.from_dict(measured["all_satisfied"])
            ),
            all_scored=None if measured is None else judged,
            all_by_then=Proportion.from_dict(data["first_passage"]["all_satisfied"]),
            total_samples=data["total_samples"],
            total_draws=data["total_draws"],
            diverged=data["diverged"],
            **{name: tuple(data[name]) for name in INTERVALS if name in data},
            kept_worth={n: KeptWorth.from_dict(o) for n, o in data.get("kept_worth", {}).items()},
        )


# What clients want that have no goals in other measures.
ACCURACY = ("accuracy",)


@dataclass(frozen=True)
class DefectionAudit(Displayed):
    """The curves of some algorithms on one federation, under the same data and seeds.

    options: what the audit was asked.
    clients: the clients' names.
    curves: one per algorithm, in the order asked for.
    versions: of the packages that the runs were made with.
    source: the fingerprint of the federation, or of what deals one to each trial.
    requirements: the accuracy that each client wants.
    reused: how many runs were in the store already.
    run_seconds: how long all the runs took that are counted, whenever they were made.
    seconds: how long it took this time.
    measures: what clients want, by the names of their goals.
    """

    options: AuditOptions
    clients: tuple[str, ...]
    curves: tuple[DefectionCurve, ...]
    versions: tuple[str, ...]
    source: str
    requirements: tuple[float, ...]
    reused: int
    run_seconds: float
    seconds: float
    measures: tuple[str, ...] = ACCURACY

    def __repr__(self) -> str:
        names = ", ".join(curve.algorithm for curve in self.curves)
        return f"DefectionAudit({self.protocol}, {names}, {len(self.clients)} clients)"

    @property
    def protocol(self) -> str:
        """P1 or P2."""
        return self.options.protocol

    @property
    def defectors(self) -> str:
        """Who defects: "each" client in every trial, or one at "random"."""
        return self.options.defectors

    @property
    def trials(self) -> int:
        """The most trials of a level; a level that stopped early has fewer."""
        return self.options.trials

    @property
    def width(self) -> float | None:
        """How narrow intervals had to be to stop early; None for never."""
        return self.options.width

    @property
    def scored_on(self) -> int | None:
        """On how many further samples per client models are judged; None for validation samples."""
        count = self.options.scored_on
        return None if count is None else int(count)

    @property
    def seed(self) -> int:
        """The seed of the audit."""
        return self.options.seed

    def curve(self, algorithm: str) -> DefectionCurve:
        """Return an algorithm's curve."""
        for curve in self.curves:
            if curve.algorithm == algorithm:
                return curve
        known = ", ".join(curve.algorithm for curve in self.curves)
        raise InputError(f'the audit has no curve of "{algorithm}"; it has {known}')

    def defector_share(self, found: Satisfaction) -> Proportion:
        """Return the share of the defector: under P2, of a defector that is a contributor."""
        return found.random if self.protocol == "P1" else found.contributors

    def describe_defector(self, *curves: DefectionCurve) -> str:
        """Return what the defector is called: a contributor, if a plan asks nothing of some.

        curves: those that are spoken of; all of them where left out.
        """
        idle = any(0 in curve.contributions for curve in curves or self.curves)
        return "a random contributor" if idle and self.protocol == "P2" else "a random agent"

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values: the same for the same input, the two times aside."""
        return {
            "protocol": self.protocol,
            "algorithms": {curve.algorithm: curve.to_dict() for curve in self.curves},
            "seconds": self.seconds,
            "run_seconds": self.run_seconds,
            "trials": self.trials,
            "width": self.width,
            **({} if self.width is None else {"intervals": "confidence sequence"}),
            "defectors": self.defectors,
            "requirements": dict(zip(self.clients, self.requirements, strict=True)),
            **({} if self.measures == ACCURACY else {"measures": list(self.measures)}),
            **({} if self.scored_on is None else {"scored_on": self.scored_on}),
            **{name: getattr(self.options, name) for name in self.tactics},
            "source": self.source,
            "seed": self.seed,
            "versions": list(self.versions),
        }

    @property
    def tactics(self) -> list[str]:
        """The options about what defectors do beyond giving less that are not the defaults."""
        plain = AuditOptions()
        return [n for n in TACTICS if getattr(self.options, n) != getattr(plain, n)]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DefectionAudit:
        """Return the audit that to_dict wrote, or `fedaccord audit --json` printed."""
        curves = tuple(DefectionCurve.from_dict(n, c) for n, c in data["algorithms"].items())
        asked = {name: data[name] for name in ("protocol", "defectors", "trials", "width", "seed")}
        asked["scored_on"] = data.get("scored_on")
        asked |= {name: data[name] for name in TACTICS if name in data}
        return cls(
            options=AuditOptions(levels=tuple(p.level for p in curves[0].levels), **asked),
            clients=tuple(data["requirements"]),
            curves=curves,
            versions=tuple(data["versions"]),
            source=data["source"],
            requirements=tuple(data["requirements"].values()),
            # How many runs were there already is not among the values: it says nothing of them.
            reused=0,
            run_seconds=data["run_seconds"],
            seconds=data["seconds"],
            measures=tuple(data.get("measures", ACCURACY)),
        )


def sum_up(
    algorithm: str,
    settings: Mapping[str, Any],
    contributions: Contributions,
    *,
    clients: Sequence[str],
    levels: Sequence[float],
    trials: Mapping[float, Sequence[Trial]],
    drawn: int,
    scored: bool = False,
    share: Sharing = clustered,
) -> DefectionCurve:
    """Make an algorithm's curve out of its finished trials.

    algorithm: its name.
    settings: all of its settings.
    contributions: what each client is to give.
    clients: the clients' names.
    levels: those the curve is to have.
    trials: by level; level 1 is among them.
    drawn: how many of a trial's defectors were drawn from all clients.
    scored: whether models were judged on further samples.
    share: makes a share with its interval.
    """
    full = trials[1.0]
    at_full = [trial[0][1] for trial in full]
    used = [sum(run.unique) for run in at_full]
    sampled = [sum(run.samples) for run in at_full]
    # A run may stand for several defectors: at full contribution it does for all.
    counted = {id(run): run for some in trials.values() for trial in some for _, run in trial}

    def if_went_on(level: float, reading: Reading) -> Satisfaction | None:
        went_on = any(run.keeping for trial in trials[level] for _, run in trial)
        return satisfaction(level, reading) if went_on else None

    def satisfaction(level: float, reading: Reading) -> Satisfaction:
        return _satisfaction(trials[level], reading, clients, contributions, drawn, share)

    return DefectionCurve(
        algorithm=algorithm,
        settings=settings,
        contributions=contributions,
        levels=tuple(
            DefectionLevel(
                level,
                satisfaction(level, at_end),
                satisfaction(level, by_then),
                satisfaction(level, on_scored) if scored else None,
                outside=if_went_on(level, outside),
                kept=if_went_on(level, keeping),
            )
            for level in levels
        ),
        all_satisfied=share(list_all_satisfied(full)),
        all_by_then=share(list_all_satisfied(full, by_then)),
        total_samples=float(np.mean(used)),
        total_draws=float(np.mean(sampled)),
        diverged=sum(run.diverged for run in counted.values()),
        samples_interval=mean_interval(used),
        draws_interval=mean_interval(sampled),
        all_scored=share(list_all_satisfied(full, on_scored)) if scored else None,
    )


def compare_curves(
    curves: Iterable[DefectionCurve],
    rows: Mapping[tuple[str, float], Rows],
    width: float | None = None,
    block: int = 1,
) -> tuple[DefectionCurve, ...]:
    """Return curves with their differences from full contribution and from each other.

    curves: in the order asked for.
    rows: how the trials of each algorithm ended at each level, for the defectors.
    width, block: as in `compare_trials`.
    """
    subtract = partial(compare_trials, width=width, block=block)
    known: list[DefectionCurve] = []
    for curve in curves:
        name = curve.algorithm

        def compare(point: DefectionLevel, name: str = name) -> DefectionLevel:
            own, level = rows[name, point.level], point.level
            others = {c.algorithm: rows[c.algorithm, level] for c in known}
            return replace(
                point,
                from_full=None if level == 1 else subtract(own, rows[name, 1.0]),
                from_others={n: subtract(own, other) for n, other in others.items()},
            )

        known.append(replace(curve, levels=tuple(map(compare, curve.levels))))
    return tuple(known)


def list_all_satisfied(trials: Sequence[Trial], reading: Reading = at_end) -> Rows:
    """List for the trials at full contribution whether all reached their goals."""
    return [[all(reading(trial[0][1]))] for trial in trials]


def list_satisfied(
    trials: Sequence[Trial], reading: Reading, full: Contributions, drawn: int
) -> dict[str, Rows]:
    """List for each trial who reached their goals, by the names that Satisfaction has for them.

    trials: those finished.
    reading: what says who is satisfied in a run.
    full: what each client is to give.
    drawn: how many of a trial's defectors were drawn from all clients.
    """
    # Of each trial, who defected, whether it was satisfied, and whether all the others were.
    entries = []
    for trial in trials:
        found = [(group, reading(outcome)) for group, outcome in trial]
        entries.append([(g, all_of(s, g), all_of(s, _others(g, len(s)))) for g, s in found])
    of_all = [trial[:drawn] for trial in entries]
    giving = [own for trial in entries if (own := [one for one in trial if _gives(one[0], full)])]
    together = len(full) > 1
    return {
        "random": [[own for _, own, _ in trial] for trial in of_all],
        "contributors": [[own for _, own, _ in trial] for trial in giving],
        "others": [[others for *_, others in trial] for trial in of_all if together],
        "others_of_contributors": [[others for *_, others in t] for t in giving if together],
    }


def all_of(satisfied: Sequence[bool], group: Group) -> bool:
    """Return whether all of a group are satisfied."""
    return all(satisfied[i] for i in group)


def cut(full: Contributions, client: int, level: float) -> Contributions:
    """Return contributions with one client's cut to a level, half up and at least one point.

    full: everybody's contributions.
    client: whose is cut; nothing is left of nothing.
    level: what part of it stays.
    """
    # A level such as 0.29 is taken as 29/100: of 50 points that is 14.5, and no float says so.
    part = simplest_fraction(level) * full[client]
    whole = min(full[client], max(1, math.floor(part + Fraction(1, 2))))
    return (*full[:client], whole, *full[client + 1 :])


def _satisfaction(
    trials: Sequence[Trial],
    reading: Reading,
    names: Sequence[str],
    full: Contributions,
    drawn: int,
    share: Sharing,
) -> Satisfaction:
    """Sum up the trials of a cell."""

    def list_own(client: int) -> Rows:
        entries = (entry for trial in trials for entry in trial)
        return [[reading(run)[client]] for group, run in entries if client in group]

    listed = list_satisfied(trials, reading, full, drawn)
    return Satisfaction(
        clients={name: share(list_own(i)) for i, name in enumerate(names)},
        **{name: share(rows) for name, rows in listed.items()},
    )


def _others(group: Group, clients: int) -> Group:
    return tuple(i for i in range(clients) if i not in group)


def _gives(group: Group, full: Contributions) -> bool:
    """Return whether something is asked of each of a group."""
    return all(full[i] for i in group)
