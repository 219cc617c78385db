"""EQ-FED: a plan at which all are satisfied and nobody could give much less, found by training.

Grow: whoever is furthest below its goal reveals points of its own, until all are satisfied. Trim:
each in turn goes down to the least with which it is. Tighten: as few passes as that takes. Verify:
on validation points and draws of chance that had no part in choosing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord._checks import Matrix
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.algorithms.pledged import Pledged
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.defection.design import chosen, cut, designed
from fedaccord.federation.defection.intervals import clustered, wilson
from fedaccord.federation.eqfed.estimate import Judge
from fedaccord.federation.eqfed.result import Cut, Sought, Step, Verified
from fedaccord.federation.eqfed.search import Account, Bench, Search, Seeking, told
from fedaccord.federation.runs.engines import Source
from fedaccord.federation.runs.execute import EngineMaker, open_executor
from fedaccord.federation.runs.store import Outcome, RunStore
from fedaccord.federation.runs.trials import SEEKING, VERIFYING
from fedaccord.federation.validation_halves import Halved, deals_anew

MOST_RUNS = 1_000_000
SPLITS = ("deals", "halves")
CUTS = (0.75, 0.5, 0.25)
# The part of the budget that choosing may use, and more if verifying takes less than the rest.
CHOOSING = 0.7


def usual_budget(clients: int) -> int:
    """Give a sensible number of runs: 100 for four clients, and more for more of them."""
    return max(100, 25 * clients)


def seek_equilibrium(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None = None,
    trials: int = 8,
    checks: int = 20,
    levels: Sequence[float] = CUTS,
    confidence: float = 0.95,
    step: float = 0.1,
    split: str | None = None,
    seed: int = 0,
    store: RunStore | str | Path | None = None,
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    progress: Callable[[Seeking], None] | None = None,
) -> Sought:
    """Find contributions at which all are satisfied and nobody could give much less.

        theta_i  =  the least with which i has its accuracy, the others giving theta_j

    up to a step, for all i that give anything. Everything is tried by training to the end, so that
    the algorithm may be any. Runs in the store are not made again.

    source: a federation, or what deals one to each trial.
    algorithm: to train with; where clients promise points, without what they have promised.
    budget: how many runs of training there may be in all, those in the store among them; 100, or
        25 per client if that is more, where left out. Seven in ten are for choosing, or more if
        verifying needs fewer than the rest.
    trials: with how many deals or seeds everything is tried at most; fewer where these tell.
    checks: with how many others the plan is verified, if the budget has room.
    levels: to what part of its contribution each contributor is cut then.
    confidence: how likely all are to be satisfied in one more trial.
    step: the part of its points by which a client's contribution is changed at least.
    split: "deals" verifies on other deals than it chooses by, for sources that deal anew each
        trial; "halves" on another half of the validation points as well. Where left out, the first
        that will do.
    seed: of everything random.
    store: a file of finished runs, or a RunStore.
    workers: how many runs at a time.
    engine: where the runs are made, as `defection_curves` has it.
    progress: told how far the search is, whenever a run is finished.
    """
    started = time.perf_counter()
    # What is asked of an audit is asked here too: an algorithm, levels, trials, a seed.
    asked = dict[str, Any](protocol="P2", defectors="each", width=None, seed=seed)
    levels = designed(source, algorithm, levels=levels, trials=trials, **asked).levels
    _check_can_be_sought(algorithm)
    account = Account(_budget(budget, source, trials), progress)
    _checked_count("checks", checks)
    anew, choosing, verifying = _split(source, split, seed)
    judge = Judge(
        np.asarray(source.requirements, dtype=float),
        _validation_points(choosing),
        confidence=_checked_part("confidence", confidence),
        same_points=not anew,
    )
    place: dict[str, Any] = {"engine": engine, "workers": workers, "store": store}
    check = functools.partial(_verified, checks=checks, levels=levels)
    with open_executor(choosing, **place) as executor:
        bench = Bench(choosing, executor, seed, account)
        search = Search(
            *(bench, algorithm, judge),
            trials=trials,
            step=_checked_part("step", step),
            most=max(trials, _for_choosing(account.budget, choosing, checks, levels)),
        )
        found, ending = search.equilibrium()
        promised, rows = _tightened(bench, search, judge, algorithm.committed(found), found)
        if verifying is choosing:
            verified, seen = check(bench, promised, found)
    if verifying is not choosing:
        with open_executor(verifying, **place) as executor:
            verified, seen = check(Bench(verifying, executor, seed, account), promised, found)
    if len(seen):
        rows.append(told(judge, seen, found, source.names, "verify"))
    return Sought(
        clients=tuple(source.names),
        contributions=found,
        algorithm=promised,
        requirements=tuple(float(r) for r in source.requirements),
        confidence=confidence,
        ending=ending,
        helpers=search.helpers(found),
        story=(*search.story, *rows),
        verified=verified,
        runs=account.made,
        reused=account.reused,
        seed=seed,
        seconds=time.perf_counter() - started,
    )


def _split(source: Source, split: str | None, seed: int) -> tuple[bool, Source, Source]:
    """Tell whether trials have points of their own, and give what to choose and verify by."""
    anew = deals_anew(source, SEEKING, VERIFYING)
    how = ("deals" if anew else "halves") if split is None else chosen("split", split, SPLITS)
    if how == "halves":
        return anew, Halved(source, "first", seed=seed), Halved(source, "second", seed=seed)
    if not anew:
        raise InputError(
            "the federation has the same points in every trial: split its validation points in "
            '"halves", to verify on others than the plan was chosen by'
        )
    return anew, source, source


def _tightened(
    bench: Bench, search: Search, judge: Judge, algorithm: Algorithm, theta: Contributions
) -> tuple[Algorithm, list[Step]]:
    """Give the algorithm with the fewest passes that will do, and the rows that tell of it.

    Training with fewer passes is the beginning of training with more: what everybody had then is
    in the histories of the runs that are there.
    """
    if not isinstance(algorithm, Pledged):
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
    row = told(judge, accuracies, theta, bench.source.names, "tighten")
    return dataclasses.replace(algorithm, passes=passes), [dataclasses.replace(row, passes=passes)]


def _evaluations(bench: Bench, run: Any, theta: Contributions) -> dict[float, list[float]]:
    """Give everybody's accuracy by how many times each point had been drawn, at evaluations."""
    names = bench.source.names
    drawn = dict.fromkeys(names, 0)
    found: dict[float, list[float]] = {}
    for rows in _by_round(bench.executor.store.rows(run), len(names)):
        for _, name, samples, *_ in rows:
            drawn[name] += samples
        accuracies = {name: accuracy for _, name, *_, accuracy in rows}
        if not any(map(math.isnan, accuracies.values())):
            most = max(drawn[name] / n for name, n in zip(names, theta, strict=True) if n)
            # A hundredth more at most: a number that people can read.
            found[math.ceil(100 * most - 1e-6) / 100] = [accuracies[name] for name in names]
    return found


def _by_round(rows: list[Any], clients: int) -> Iterator[list[Any]]:
    return (rows[n : n + clients] for n in range(0, len(rows), clients))


def _verified(
    bench: Bench,
    algorithm: Algorithm,
    theta: Contributions,
    *,
    checks: int,
    levels: Sequence[float],
) -> tuple[Verified | None, Matrix]:
    """Count how often all are satisfied with a plan, and each contributor if it cuts."""
    account = bench.account

    def outcomes(cases: list[Contributions], room: int) -> list[list[Outcome]]:
        """Make as many trials of all cases as there is room for."""
        trials = min(checks, room // max(1, len(cases)))
        numbers = range(VERIFYING, VERIFYING + trials)
        runs = [bench.run(algorithm, case, trial) for trial in numbers for case in cases]
        made = bench.outcomes(runs, "verify", most=account.budget)
        return [made[n : n + len(cases)] for n in range(0, len(made), max(1, len(cases)))]

    cuts = [(i, level) for i, n in enumerate(theta) if n for level in levels]
    left = account.budget - account.made
    # One trial of all cuts tells more than one more of nothing but the plan.
    full = [trial[0] for trial in outcomes([theta], left - len(cuts) if left > len(cuts) else left)]
    less = outcomes([cut(theta, i, level) for i, level in cuts], account.budget - account.made)
    if not full:
        return None, np.zeros((0, len(theta)))
    who = np.array([outcome.satisfied for outcome in full])
    names, trials = bench.source.names, len(full)
    verified = Verified(
        all_satisfied=wilson(int(who.all(axis=1).sum()), trials),
        satisfied=tuple(wilson(int(n), trials) for n in who.sum(axis=0)),
        cuts=tuple(
            _cut(names[i], i, level, [trial[n].satisfied for trial in less])
            for n, (i, level) in enumerate(cuts)
        ),
        among_contributors={
            level: clustered(
                [
                    [o.satisfied[i] for (i, at), o in zip(cuts, trial, strict=True) if at == level]
                    for trial in less
                ]
            )
            for level in levels
        },
    )
    return verified, np.nan_to_num([outcome.accuracies for outcome in full], nan=0.0)


def _cut(name: str, client: int, level: float, satisfied: list[tuple[bool, ...]]) -> Cut:
    own = sum(one[client] for one in satisfied)
    others = sum(all(one[:client]) and all(one[client + 1 :]) for one in satisfied)
    return Cut(name, level, wilson(own, len(satisfied)), wilson(others, len(satisfied)))


def _validation_points(source: Source) -> np.ndarray[Any, Any]:
    clients = source.deal(SEEKING).clients
    return np.array([len(client.validation_labels) for client in clients])


def _check_can_be_sought(algorithm: Algorithm) -> None:
    if algorithm.trains_alone:
        raise InputError(
            f"{algorithm.name} trains everybody alone, so that nobody's data is of use to others; "
            "seek a plan for an algorithm that trains together, such as FedAvg"
        )
    if getattr(algorithm, "commitment", None) is not None:
        raise InputError(
            f"{algorithm.name} has a commitment already; leave it out, for it is what is sought"
        )


def _budget(budget: object, source: Source, trials: int) -> int:
    if budget is None:
        return usual_budget(len(source.names))
    runs = _checked_count("budget", budget)
    if runs < trials:
        raise InputError(
            f"a budget of {runs} runs is not enough for one plan in {trials} trials; give more of "
            "the one, or fewer of the other"
        )
    return runs


def _for_choosing(budget: int, source: Source, checks: int, levels: Sequence[float]) -> int:
    verifying = checks * (1 + len(levels) * len(source.names))
    return max(math.floor(CHOOSING * budget), budget - verifying)


def _checked_count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_RUNS:
        raise InputError(f"{what} must be a whole number from 1 to {MOST_RUNS:,}; got {value!r}")
    return value


def _checked_part(what: str, value: float) -> float:
    if not 0 < value < 1:
        raise InputError(f"{what} must be between 0 and 1; got {value!r}")
    return float(value)
