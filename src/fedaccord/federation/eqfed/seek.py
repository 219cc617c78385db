"""EQ-FED: find by training a plan that satisfies all, and in which none could give much less.

Grow: the client that is furthest below its goal gives more, until all are satisfied. Trim: each in
turn goes down to the least contribution that satisfies it. Tighten: use as few passes as that
takes. Reserve, where models are earned: find the least with which the others are satisfied when
one client fails. Verify: audit on validation samples and random draws that had no part in choosing.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._checks import Matrix, check_choice, check_real, check_whole
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.algorithms.pledged import Pledging
from fedaccord.federation.config.sections import AuditOptions, takes
from fedaccord.federation.defection.audit import Design, run_audit
from fedaccord.federation.defection.curves import Contributions, DefectionCurve, cut
from fedaccord.federation.defection.intervals import Proportion, wilson
from fedaccord.federation.eqfed.estimate import Judge
from fedaccord.federation.eqfed.reserve import ReserveSearch
from fedaccord.federation.eqfed.result import Cut, Sought, Step, Verified
from fedaccord.federation.eqfed.search import Bench, Search, Seeking, describe_step
from fedaccord.federation.partition import Halved, varies_by_trial
from fedaccord.federation.runs.execute import EngineMaker, Executor, Source
from fedaccord.federation.runs.store import Outcome, RunStore
from fedaccord.federation.runs.trials import SEEKING, VERIFYING

MOST_RUNS = 1_000_000
SPLITS = ("deals", "halves")
# The part of the budget that choosing may use, and more if verifying takes less than the rest.
CHOOSING = 0.7


@dataclass(frozen=True)
class SeekOptions:
    """Options of EQ-FED: keyword arguments of `seek_equilibrium`.

    budget: how many runs of training there may be in all, those in the store among them; 100, or
        25 per client if that is more, where left out. Seven in ten are for choosing, or more if
        verifying needs fewer than the rest.
    trials: the most partitions or seeds to try contributions with; fewer where these are enough.
    checks: with how many others the plan is verified, if the budget has room.
    levels: the fractions of its contribution that each contributor then gives.
    confidence: the probability that all are satisfied in one more trial.
    step: the part of its points by which a client's contribution is changed at least.
    split: "deals" verifies on other partitions than it chooses by, for sources with a new
        partition in each trial; "halves" also on another half of the validation samples. Where
        left out, the first that the source supports.
    seed: the random seed.
    """

    budget: int | None = None
    trials: int = 8
    checks: int = 20
    levels: tuple[float, ...] = (0.75, 0.5, 0.25)
    confidence: float = 0.95
    step: float = 0.1
    split: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise an InputError at options that cannot be used."""
        # Levels, trials and the seed are those of an audit.
        object.__setattr__(self, "levels", self.audit(self.trials).levels)
        expected = f"a whole number from 1 to {MOST_RUNS:,}"
        if self.budget is not None:
            check_whole("budget", self.budget, most=MOST_RUNS, expected=expected)
            if self.budget < self.trials:
                raise InputError(
                    f"a budget of {self.budget} runs is not enough for one plan in {self.trials} "
                    "trials; use more runs, or fewer trials"
                )
        check_whole("checks", self.checks, most=MOST_RUNS, expected=expected)
        for name in ("confidence", "step"):
            check_real(name, getattr(self, name), above=0, below=1, expected="between 0 and 1")
        if self.split is not None:
            check_choice("split", self.split, SPLITS)

    def audit(self, trials: int) -> AuditOptions:
        """Return the options of the audit that verifies a plan."""
        return AuditOptions(levels=self.levels, trials=trials, protocol="P2", seed=self.seed)

    def allow(self, clients: int) -> int:
        """Return how many runs there may be in all."""
        return max(100, 25 * clients) if self.budget is None else self.budget

    def allow_choosing(self, clients: int) -> int:
        """Return how many runs there may be before the plan is verified."""
        budget, verifying = self.allow(clients), self.checks * (1 + len(self.levels) * clients)
        return max(self.trials, math.floor(CHOOSING * budget), budget - verifying)


@takes(SeekOptions)
def seek_equilibrium(
    source: Source,
    algorithm: Algorithm,
    *,
    options: SeekOptions,
    store: RunStore | str | Path | None = None,
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    progress: Callable[[Seeking], None] | None = None,
) -> Sought:
    """Find contributions that satisfy all clients, and of which none could be much smaller.

        theta_i  =  the least with which i reaches its goal, the others giving theta_j

    up to a step, for all i that give anything. Contributions are tried by training to the end, so
    any algorithm works. Runs in the store are not made again.

    source: a federation, or an object that makes one for each trial.
    algorithm: to train with; if it takes pledges, leave them out.
    options: SeekOptions.
    store: a file of finished runs, or a RunStore.
    workers: how many runs at a time.
    engine: where the runs are made, as `defection_curves` has it.
    progress: called with how far the search is, whenever a run is finished.
    """
    started = time.perf_counter()
    # What an audit could not train with, EQ-FED cannot either.
    Design(source, algorithm, options.audit(options.trials))
    _check_algorithm(algorithm)
    clients, seed = len(source.names), options.seed
    bench = Bench(seed, options.allow(clients), progress)
    by_trial, choosing, verifying = _split(source, options.split, seed)
    judge = Judge(
        np.asarray(source.requirements, dtype=float),
        np.array([client.counted_points for client in choosing.deal(SEEKING).clients]),
        confidence=options.confidence,
        same_points=not by_trial,
    )
    place: dict[str, Any] = {"engine": engine, "workers": workers, "store": store}
    with bench.open(choosing, **place):
        search = Search(
            *(bench, algorithm, judge),
            trials=options.trials,
            step=options.step,
            most=options.allow_choosing(clients),
        )
        found, ending = search.find_equilibrium()
        pledged, rows = _tighten(bench, search, judge, algorithm.committed(found), found)
        if pledged.withholds:
            pledged, story = _find_reserve(bench, pledged, judge, found, options)
            rows += story
        if verifying is choosing:
            verified, seen = _verify(bench, pledged, found, options)
    if verifying is not choosing:
        with bench.open(verifying, **place):
            verified, seen = _verify(bench, pledged, found, options)
    if len(seen):
        rows.append(describe_step(judge, seen, found, source.names, "verify"))
    return Sought(
        clients=tuple(source.names),
        contributions=found,
        algorithm=pledged,
        requirements=tuple(float(r) for r in source.requirements),
        confidence=options.confidence,
        ending=ending,
        helpers=search.find_helpers(found),
        story=(*search.story, *rows),
        verified=verified,
        runs=bench.made,
        reused=bench.reused,
        seed=seed,
        seconds=time.perf_counter() - started,
    )


def _split(source: Source, split: str | None, seed: int) -> tuple[bool, Source, Source]:
    """Return whether trials have points of their own, and what to choose and to verify by."""
    by_trial = varies_by_trial(source, SEEKING, VERIFYING)
    how = ("deals" if by_trial else "halves") if split is None else split
    if how == "halves":
        return by_trial, Halved(source, "first", seed=seed), Halved(source, "second", seed=seed)
    if not by_trial:
        raise InputError(
            'the federation has the same samples in every trial: use split="halves", so that the '
            "plan is verified on other validation samples than it was chosen by"
        )
    return by_trial, source, source


def _find_reserve(
    bench: Bench, pledged: Algorithm, judge: Judge, found: Contributions, options: SeekOptions
) -> tuple[Algorithm, list[Any]]:
    """Return the algorithm with the reserve that it needs, and the steps that found it."""
    search = ReserveSearch(
        *(bench, pledged, judge),
        theta=found,
        level=min(options.levels),
        trials=options.trials,
        most=options.allow_choosing(len(found)),
    )
    return search.find(), search.story


def _tighten(
    bench: Bench, search: Search, judge: Judge, algorithm: Algorithm, theta: Contributions
) -> tuple[Algorithm, list[Step]]:
    """Return the algorithm with the fewest passes that are enough, and the steps that show it.

    Training with fewer passes is the beginning of training with more: the accuracies at that time
    are in the histories of finished runs.
    """
    if not isinstance(algorithm, Pledging):
        return algorithm, []
    histories = [_evaluations(bench, run, theta) for run in search.runs(theta)]
    if not histories:
        return algorithm, []
    best: tuple[float, Matrix] | None = None
    for passes in sorted(set.intersection(*map(set, histories)), reverse=True):
        accuracies = np.array([history[passes] for history in histories])
        if float(np.prod(judge.chances(accuracies))) < judge.confidence:
            break
        best = passes, accuracies
    if best is None or best[0] >= algorithm.passes:
        return algorithm, []
    passes, accuracies = best
    row = describe_step(judge, accuracies, theta, bench.source.names, "tighten")
    return algorithm.repeated(passes), [dataclasses.replace(row, passes=passes)]


def _evaluations(bench: Bench, run: Any, theta: Contributions) -> dict[float, list[float]]:
    """Return everyone's accuracy by how many times each point had been drawn, at evaluations."""
    names = bench.source.names
    drawn = dict.fromkeys(names, 0)
    found: dict[float, list[float]] = {}
    every = bench.executor.store.rows(run)
    for start in range(0, len(every), len(names)):
        rows = every[start : start + len(names)]
        for _, name, samples, *_ in rows:
            drawn[name] += samples
        accuracies = {name: accuracy for _, name, *_, accuracy in rows}
        if not any(map(math.isnan, accuracies.values())):
            most = max(drawn[name] / n for name, n in zip(names, theta, strict=True) if n)
            # A hundredth more at most: a number that people can read.
            found[math.ceil(100 * most - 1e-6) / 100] = [accuracies[name] for name in names]
    return found


def _verify(
    bench: Bench, algorithm: Algorithm, theta: Contributions, options: SeekOptions
) -> tuple[Verified | None, Matrix]:
    """Audit a plan in trials that chose nothing; return what was seen, and the accuracies."""
    name = algorithm.name
    cuts = [(i, level) for i, n in enumerate(theta) if n for level in options.levels]
    left = bench.budget - bench.made
    # One trial of all cuts tells more than one more of nothing but the plan.
    full = min(options.checks, left - len(cuts) if left > len(cuts) else left)
    less = min(options.checks, (left - full) // len(cuts))
    if not full:
        return None, np.zeros((0, len(theta)))
    executor = Executor(bench.executor.engine, bench.executor.store)
    asked = options.audit(full)
    design = Design(bench.source, algorithm, asked, first=VERIFYING)

    def audit(**changed: Any) -> DefectionCurve:
        part = dataclasses.replace(design, options=dataclasses.replace(asked, **changed))
        tell = lambda now: bench.report("verify", theta, now.done)  # noqa: E731
        return run_audit(part, {name: theta}, executor, tell).curve(name)

    def outcomes(contributions: Contributions, trials: int) -> list[Outcome]:
        numbers = range(VERIFYING, VERIFYING + trials)
        runs = [design.run(name, contributions, trial, full=theta) for trial in numbers]
        return [executor.outcomes[run.key] for run in runs]

    def others_satisfied(i: int, level: float) -> Proportion:
        found = [outcome.satisfied for outcome in outcomes(cut(theta, i, level), less)]
        return wilson(sum(all(who[:i] + who[i + 1 :]) for who in found), len(found))

    at_levels = {p.level: p.at_end for p in audit(trials=less).levels} if less else {}
    at_full = audit(levels=(1.0,))
    bench.made += len(executor.outcomes)
    bench.reused += executor.reused
    nothing = wilson(0, 0)
    verified = Verified(
        all_satisfied=at_full.all_satisfied,
        satisfied=tuple(at_full.at(1.0).at_end.clients.values()),
        cuts=tuple(
            Cut(
                client=design.names[i],
                level=level,
                satisfied=at_levels[level].clients[design.names[i]] if less else nothing,
                others=others_satisfied(i, level),
            )
            for i, level in cuts
        ),
        among_contributors={
            level: at_levels[level].contributors if less else nothing for level in options.levels
        },
    )
    seen = [outcome.accuracies for outcome in outcomes(theta, full)]
    return verified, np.nan_to_num(seen, nan=0.0)


def _check_algorithm(algorithm: Algorithm) -> None:
    if algorithm.trains_alone:
        raise InputError(
            f"{algorithm.name} trains each client alone, so no client's data helps another; seek a "
            "plan for an algorithm that trains together, such as FedAvg"
        )
    if getattr(algorithm, "reserve", None) is not None:
        raise InputError(
            f"{algorithm.name} has a reserve already; leave it out, because EQ-FED chooses it"
        )
    if getattr(algorithm, "commitment", None) is not None:
        raise InputError(
            f"{algorithm.name} has a commitment already; leave it out, because EQ-FED searches for "
            "it"
        )
