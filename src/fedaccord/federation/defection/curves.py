"""Defection curves: how often clients are satisfied by how much one of them gives.

With intervals: how far a share or a mean seen in a few trials may be from the true one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._display import Displayed
from fedaccord.errors import InputError
from fedaccord.federation.config.sections import AuditOptions
from fedaccord.federation.runs.store import Outcome

Contributions = tuple[int, ...]
# The lower and the upper end.
Interval: TypeAlias = tuple[float, float]
# Of one trial: each client that defected, and what came of the run in which it did; after those
# that were drawn from all clients, perhaps one that was drawn from the contributors.
Trial = list[tuple[int, Outcome]]
# Who was satisfied in a run: at the last evaluation, or at any.
Reading: TypeAlias = Callable[[Outcome], tuple[bool, ...]]
at_end: Reading = attrgetter("satisfied")
by_then: Reading = attrgetter("satisfied_by_then")


@dataclass(frozen=True)
class Proportion:
    """A share seen in trials, and the interval that holds the true one with some confidence.

    p: the share seen, NaN without trials.
    low: the lower end of the interval.
    high: the upper end.
    trials: how many independent trials it was seen in.
    """

    p: float
    low: float
    high: float
    trials: int

    def __str__(self) -> str:
        return "unknown" if not self.trials else f"{self.p:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.high - self.low

    def to_dict(self) -> dict[str, Any]:
        """Return the share, the ends and the trials; a share that is not known as None."""
        return {**asdict(self), "p": self.p if self.trials else None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Proportion:
        """Return the proportion that to_dict wrote."""
        p = math.nan if data["p"] is None else float(data["p"])
        return cls(p, data["low"], data["high"], data["trials"])


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


# Those of a curve that results of before they were counted have not.
INTERVALS = ("samples_interval", "draws_interval")


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
        ends = {name: getattr(self, name) for name in INTERVALS}
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
            **{name: tuple(data[name]) for name in INTERVALS if name in data},
        )


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
        all_satisfied=count_all_satisfied(full),
        all_by_then=count_all_satisfied(full, by_then),
        total_samples=float(np.mean(used)),
        total_draws=float(np.mean(sampled)),
        diverged=sum(run.diverged for run in counted.values()),
        samples_interval=mean_interval(used),
        draws_interval=mean_interval(sampled),
    )


def count_all_satisfied(trials: Sequence[Trial], reading: Reading = at_end) -> Proportion:
    """Count the trials at full contribution in which all were satisfied."""
    return wilson(sum(all(reading(trial[0][1])) for trial in trials), len(trials))


def count_defectors_satisfied(trials: Sequence[Trial], drawn: int) -> Proportion:
    """Count how often whoever defected was satisfied at the last evaluation.

    trials: those finished.
    drawn: how many of a trial's defectors were drawn from all clients.
    """
    return clustered([[outcome.satisfied[i] for i, outcome in t[:drawn]] for t in trials])


def _satisfaction(
    trials: Sequence[Trial],
    reading: Reading,
    names: Sequence[str],
    full: Contributions,
    drawn: int,
) -> Satisfaction:
    """Sum up the trials of a cell."""
    # Of each trial, who defected, whether it was satisfied, and whether all the others were.
    entries = []
    for trial in trials:
        found = [(i, reading(outcome)) for i, outcome in trial]
        entries.append([(i, s[i], all(s[:i] + s[i + 1 :])) for i, s in found])
    of_all = [trial[:drawn] for trial in entries]
    giving = [own for trial in entries if (own := [one for one in trial if full[one[0]]])]

    def share(some: Sequence[Sequence[tuple[int, bool, bool]]], place: int) -> Proportion:
        return clustered([[one[place] for one in trial] for trial in some] or np.zeros((0, 1)))

    def alone(client: int) -> Proportion:
        own = [satisfied for trial in entries for i, satisfied, _ in trial if i == client]
        return wilson(sum(own), len(own))

    together = len(names) > 1
    return Satisfaction(
        random=share(of_all, 1),
        clients={name: alone(i) for i, name in enumerate(names)},
        contributors=share(giving, 1),
        others=share(of_all if together else [], 2),
        others_of_contributors=share(giving if together else [], 2),
    )


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Proportion:
    """Return Wilson's score interval for a share of independent trials.

        |p - q| <= z * sqrt(q (1 - q) / n)      holds for the q in the interval

    Unlike p +- z * sqrt(p (1 - p) / n) it stays within [0, 1], and says something when all
    trials end alike.

    successes: how many trials ended well.
    trials: how many there were.
    confidence: how often such intervals hold the true share, nearly.
    """
    if not 0 <= successes <= trials:
        raise InputError(f"successes must be 0 to {trials}, the trials; got {successes}")
    p = successes / trials if trials else math.nan
    return _score_interval(p, trials, trials, confidence)


def clustered(outcomes: ArrayLike, confidence: float = 0.95) -> Proportion:
    """Return an interval for a random client's share when each trial tries every client.

    One trial's runs share their seed and their data, so their outcomes go together: 20 trials of
    4 clients tell less than 80 trials would, in the worst case no more than 20. How much they
    tell shows in the spread s of the trials' own shares: the overall share q has variance
    s^2 / T, and as many independent outcomes n would have it with

        q (1 - q) / n = s^2 / T

    Wilson's interval is taken with this n, never below T (outcomes that are copies of each other)
    nor above k T (independent ones). A few trials that happen to agree would promise too much:
    so q and s are those of the trials and two more, one in which all clients are satisfied and
    one in which none is.

    outcomes: one row per trial, one column per client, true where the client was satisfied.
    confidence: how often such intervals hold the true share, nearly.
    """
    table = np.atleast_2d(np.asarray(outcomes, dtype=np.float64))
    trials = len(table) if table.size else 0
    if not trials:
        return _score_interval(math.nan, 0, 0, confidence)
    p = float(table.sum()) / table.size
    shares = np.append(table.mean(axis=1), (1.0, 0.0))
    q = float(shares.mean())
    effective = trials * q * (1 - q) / float(shares.var(ddof=1))
    return _score_interval(p, min(max(effective, trials), table.size), trials, confidence)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval | None:
    """Return Student's interval for the mean of what independent trials gave.

        mean +- t * s / sqrt(n)

    values: one per trial; of fewer than two nothing can be told, and None is given.
    confidence: how often such intervals hold the true mean, nearly.
    """
    from scipy.special import stdtrit

    seen = np.asarray(values, dtype=np.float64)
    if seen.size < 2:
        return None
    reach = float(stdtrit(seen.size - 1, (1 + confidence) / 2)) * float(seen.std(ddof=1))
    middle = float(seen.mean())
    return middle - reach / math.sqrt(seen.size), middle + reach / math.sqrt(seen.size)


def _score_interval(p: float, n: float, trials: int, confidence: float) -> Proportion:
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1; got {confidence!r}")
    if n == 0:
        return Proportion(p, 0.0, 1.0, trials)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives exactly 0 and 1, and rounding must not.
    low = 0.0 if p == 0 else max(0.0, middle - reach)
    high = 1.0 if p == 1 else min(1.0, middle + reach)
    return Proportion(p, low, high, trials)
