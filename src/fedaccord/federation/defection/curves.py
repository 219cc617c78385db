"""Defection curves: how often clients are satisfied by how much one of them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord.errors import InputError
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.defection.intervals import (
    Interval,
    Proportion,
    clustered,
    mean_interval,
    wilson,
)
from fedaccord.federation.runs.store import Outcome

Contributions = tuple[int, ...]
# Of one trial: each client that defected, and what came of the run in which it did; after those
# that were drawn from all clients, perhaps one that was drawn from the contributors.
Trial = list[tuple[int, Outcome]]


@dataclass(frozen=True)
class Satisfaction:
    """How often clients were satisfied when one of them had cut its contribution to a level.

    random: the one who cut, drawn at random.
    clients: each client, when it was the one.
    contributors: the one who cut, drawn among those who are to contribute at all.
    others: all the others together.
    others_of_contributors: the same, where who cut is to contribute at all; None in results of
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
    at_end: how often clients were satisfied at the last evaluation.
    by_then: how often they were at any evaluation up to the last.
    """

    level: float
    at_end: Satisfaction
    by_then: Satisfaction

    def __repr__(self) -> str:
        return f"DefectionLevel({self.level:g}, {self.at_end.random})"

    def to_dict(self) -> dict[str, Any]:
        """Return the shares at the last evaluation, and beside them those by first passage."""
        first_passage = self.by_then.to_dict()
        return {"level": self.level, **self.at_end.to_dict(), "first_passage": first_passage}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DefectionLevel:
        """Return the point that to_dict wrote."""
        passed = Satisfaction.from_dict(data["first_passage"])
        return cls(data["level"], Satisfaction.from_dict(data), passed)


@dataclass(frozen=True)
class DefectionCurve:
    """How one algorithm fares when a client gives less.

    algorithm: its name.
    settings: all of its settings.
    contributions: what each client is to give: all its points, or what is prescribed.
    levels: the points of the curve.
    all_satisfied: how often all were, everybody contributing in full, at the last evaluation.
    all_by_then: the same by first passage: each at some evaluation, not all at the same.
    total_samples: different points that all together used then, on average.
    total_draws: samples that all together drew then, on average.
    diverged: how many of the runs counted here had a loss that was not finite.
    samples_interval, draws_interval: the 95 % intervals of the two means; None where there are
        too few trials, or in results of before they were counted.
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

    def __repr__(self) -> str:
        levels = ", ".join(f"{one.level:g}: {one.at_end.random.p:.2f}" for one in self.levels)
        return f"DefectionCurve({self.algorithm}, {levels})"

    def at(self, level: float) -> DefectionLevel:
        """Return the curve's point at a level."""
        for point in self.levels:
            if point.level == level:
                return point
        known = ", ".join(f"{point.level:g}" for point in self.levels)
        raise InputError(f"the curve has no level {level:g}; it has {known}")

    def find_worst_off(self) -> str | None:
        """Return the client that is satisfied least often over all levels; None if all are alike.

        Only clients of whom something is asked count.
        """
        asked = zip(self.levels[0].at_end.clients, self.contributions, strict=True)
        shares = {
            name: [own.p for p in self.levels if (own := p.at_end.clients[name]).trials]
            for name, points in asked
            if points
        }
        means = {name: float(np.mean(found)) for name, found in shares.items() if found}
        if len(set(means.values())) < 2:
            return None
        return min(means, key=lambda name: means[name])

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain values."""
        ends = {"samples_interval": self.samples_interval, "draws_interval": self.draws_interval}
        return {
            "all_satisfied": self.all_satisfied.to_dict(),
            "total_samples": self.total_samples,
            "levels": [point.to_dict() for point in self.levels],
            "first_passage": {"all_satisfied": self.all_by_then.to_dict()},
            "total_draws": self.total_draws,
            "contributions": list(self.contributions),
            "diverged": self.diverged,
            **{name: list(interval) for name, interval in ends.items() if interval is not None},
            "settings": dict(self.settings),
        }

    @classmethod
    def from_dict(cls, algorithm: str, data: Mapping[str, Any]) -> DefectionCurve:
        """Return the algorithm's curve that to_dict wrote."""
        return cls(
            algorithm=algorithm,
            settings=data["settings"],
            contributions=tuple(data["contributions"]),
            levels=tuple(map(DefectionLevel.from_dict, data["levels"])),
            all_satisfied=Proportion.from_dict(data["all_satisfied"]),
            all_by_then=Proportion.from_dict(data["first_passage"]["all_satisfied"]),
            total_samples=data["total_samples"],
            total_draws=data["total_draws"],
            diverged=data["diverged"],
            samples_interval=_interval(data.get("samples_interval")),
            draws_interval=_interval(data.get("draws_interval")),
        )


def _interval(ends: Sequence[float] | None) -> Interval | None:
    return None if ends is None else (ends[0], ends[1])


@dataclass(frozen=True)
class DefectionAudit:
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
        """How many were asked for; a level that stopped early has fewer."""
        return self.options.trials

    @property
    def width(self) -> float | None:
        """How narrow an interval had to be to stop early; None for never."""
        return self.options.width

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
        """Return the share of the one who gives less: under P2, of those with something to cut."""
        return found.random if self.protocol == "P1" else found.contributors

    def describe_defector(self, *curves: DefectionCurve) -> str:
        """Say who it is that gives less: a random contributor where of some nothing is asked.

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
            "defectors": self.defectors,
            "requirements": dict(zip(self.clients, self.requirements, strict=True)),
            "source": self.source,
            "seed": self.seed,
            "versions": list(self.versions),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DefectionAudit:
        """Return the audit that to_dict wrote, or `fedaccord audit --json` printed."""
        curves = tuple(DefectionCurve.from_dict(n, c) for n, c in data["algorithms"].items())
        asked = {name: data[name] for name in ("protocol", "defectors", "trials", "width", "seed")}
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
) -> DefectionCurve:
    """Make an algorithm's curve out of its finished trials.

    algorithm: its name.
    settings: all of its settings.
    contributions: what each client is to give.
    clients: the clients' names.
    levels: those the curve is to have.
    trials: by level; level 1 is among them.
    drawn: how many of a trial's defectors were drawn from all clients.
    """
    full = trials[1.0]
    at_full = [trial[0][1] for trial in full]
    used = [sum(run.unique) for run in at_full]
    sampled = [sum(run.samples) for run in at_full]
    # A run may stand for several defectors: at full contribution it does for all.
    counted = {id(run): run for some in trials.values() for trial in some for _, run in trial}
    return DefectionCurve(
        algorithm=algorithm,
        settings=settings,
        contributions=contributions,
        levels=tuple(
            DefectionLevel(
                level,
                _satisfaction(trials[level], at_end, clients, contributions, drawn),
                _satisfaction(trials[level], by_then, clients, contributions, drawn),
            )
            for level in levels
        ),
        all_satisfied=all_satisfied(full, at_end),
        all_by_then=all_satisfied(full, by_then),
        total_samples=float(np.mean(used)),
        total_draws=float(np.mean(sampled)),
        diverged=sum(run.diverged for run in counted.values()),
        samples_interval=mean_interval(used),
        draws_interval=mean_interval(sampled),
    )


def at_end(outcome: Outcome) -> tuple[bool, ...]:
    """Return who was satisfied at the last evaluation."""
    return outcome.satisfied


def by_then(outcome: Outcome) -> tuple[bool, ...]:
    """Return who was satisfied at any evaluation."""
    return outcome.satisfied_by_then


def all_satisfied(
    trials: Sequence[Trial], reading: Callable[[Outcome], tuple[bool, ...]]
) -> Proportion:
    """Count the trials at full contribution in which all were satisfied."""
    return wilson(sum(all(reading(trial[0][1])) for trial in trials), len(trials))


def defectors_satisfied(trials: Sequence[Trial], drawn: int) -> Proportion:
    """Count how often whoever defected was satisfied at the last evaluation.

    trials: those finished.
    drawn: how many of a trial's defectors were drawn from all clients.
    """
    return clustered([[outcome.satisfied[i] for i, outcome in t[:drawn]] for t in trials])


def _satisfaction(
    trials: Sequence[Trial],
    reading: Callable[[Outcome], tuple[bool, ...]],
    names: Sequence[str],
    full: Contributions,
    drawn: int,
) -> Satisfaction:
    """Sum up the trials of a cell."""
    entries = [[(i, reading(outcome)) for i, outcome in trial] for trial in trials]
    giving = [[one for one in trial if full[one[0]]] for trial in entries]
    of_all = [trial[:drawn] for trial in entries]
    return Satisfaction(
        random=_share(of_all, _own),
        clients={n: _alone_share(entries, i) for i, n in enumerate(names)},
        contributors=_share(giving, _own),
        others=_share(of_all if len(names) > 1 else [], _others),
        others_of_contributors=_share(giving if len(names) > 1 else [], _others),
    )


def _own(client: int, satisfied: tuple[bool, ...]) -> bool:
    return satisfied[client]


def _others(client: int, satisfied: tuple[bool, ...]) -> bool:
    return all(satisfied[:client] + satisfied[client + 1 :])


def _share(
    trials: Sequence[Sequence[tuple[int, tuple[bool, ...]]]],
    look: Callable[[int, tuple[bool, ...]], bool],
) -> Proportion:
    """Count over trials, each of as many defectors; trials of none do not count."""
    rows = [[look(*one) for one in trial] for trial in trials if trial]
    return clustered(rows if rows else np.zeros((0, 1)))


def _alone_share(
    trials: Sequence[Sequence[tuple[int, tuple[bool, ...]]]], client: int
) -> Proportion:
    own = [satisfied[i] for trial in trials for i, satisfied in trial if i == client]
    return wilson(sum(own), len(own))
