"""Growing and trimming contributions: best responses, found by training with what is tried."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord._checks import Matrix, Vector
from fedaccord.errors import UnreachableError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.eqfed.estimate import Judge
from fedaccord.federation.eqfed.result import Step
from fedaccord.federation.runs.execute import Executor, Source, open_executor
from fedaccord.federation.runs.store import Outcome, Run
from fedaccord.federation.runs.trials import SEEKING

# The fewest trials before contributions may be given up, and before they may be accepted.
FIRST_LOOK = 2
FEWEST = 4


@dataclass(frozen=True)
class Seeking:
    """How far a search is.

    phase: "grow", "trim", "confirm" or "verify".
    contributions: what is being tried.
    done: runs finished, those found in the store among them.
    budget: how many there may be in all.
    """

    phase: str
    contributions: Contributions
    done: int
    budget: int


class SpentError(Exception):
    """There is no run left in the budget."""


class Bench:
    """Where runs are made and kept, within a budget.

    seed: the random seed.
    budget: how many runs there may be in all.
    progress: called whenever one is finished.
    """

    source: Source
    executor: Executor

    def __init__(
        self, seed: int, budget: int, progress: Callable[[Seeking], None] | None = None
    ) -> None:
        self.seed = seed
        self.budget = budget
        self._progress = progress
        # How many runs there were, and how many of them were in the store.
        self.made = 0
        self.reused = 0

    @contextlib.contextmanager
    def open(self, source: Source, **place: Any) -> Iterator[None]:
        """Make runs of a source from now on."""
        with open_executor(source, **place) as executor:
            self.source, self.executor = source, executor
            yield

    def report(self, phase: str, contributions: Contributions, done: int) -> None:
        """Report how many runs are finished, in addition to those counted before."""
        if self._progress is not None:
            self._progress(Seeking(phase, contributions, self.made + done, self.budget))

    def outcomes(self, runs: Sequence[Run], phase: str, *, most: int) -> list[Outcome]:
        """Return what came of runs, or raise SpentError where there would be too many in all."""
        executor = self.executor
        new = list({r.key: r for r in runs if r.key not in executor.outcomes}.values())
        if self.made + len(new) > most:
            raise SpentError
        reused, tried = executor.reused, runs[0].contributions
        executor.execute_all(new, progress=lambda done, _: self.report(phase, tried, done))
        self.made += len(new)
        self.reused += executor.reused - reused
        return [executor.outcomes[run.key] for run in runs]


class Search:
    """Looks for contributions that are best responses to each other.

    bench: makes the runs.
    algorithm: to train with; it is committed again to each set of contributions that is tried.
    judge: predicts which clients will be satisfied.
    trials: the most partitions or seeds to try contributions with, before they are confirmed.
    step: the part of its points by which a client's contribution is changed at least.
    most: how many runs there may be in all.
    """

    def __init__(
        self,
        bench: Bench,
        algorithm: Algorithm,
        judge: Judge,
        *,
        trials: int,
        step: float,
        most: int,
    ) -> None:
        source = bench.source
        self.story: list[Step] = []
        self._bench = bench
        self._algorithm = algorithm
        self._judge = judge
        self._trials = trials
        # A plan is confirmed by twice as many trials.
        self._upto, self._most = most, max(most - 2 * trials, min(trials, most))
        self._names = tuple(source.names)
        self._points = tuple(int(n) for n in source.points)
        self._steps = tuple(max(1, math.floor(step * n + 0.5)) for n in self._points)
        self._first = SEEKING
        self._seen: dict[Contributions, Matrix] = {}
        # What came of everybody's giving all it has, in the first trials.
        self._everything: Matrix | None = None
        self._unconfirmed: Contributions | None = None
        self._helping: tuple[str, ...] = ()
        self._phase = "grow"

    def find_equilibrium(self) -> tuple[Contributions, str]:
        """Grow, trim over and over, and confirm; return the contributions, and how it ended."""
        self._check_reachable()
        try:
            theta, ending = self._find_fixed_point(self._grow((0,) * len(self._points)))
        except SpentError:
            theta, ending = self._find_cheapest(), "budget"
        self._most = self._upto
        confirmed = self._confirm(theta)
        stayed = ending != "settled" or self._is_near(confirmed, theta)
        return confirmed, ending if stayed else "raised"

    def _find_fixed_point(self, theta: Contributions) -> tuple[Contributions, str]:
        """Move clients to their best responses until none moves further than a step."""
        before: list[Contributions] = []
        while theta not in before:
            before.append(theta)
            theta = self._grow(self._trim(theta))
            if self._is_near(theta, before[-1]):
                return theta, "settled"
        return self._find_cheapest(), "circle"

    def _is_near(self, one: Contributions, other: Contributions) -> bool:
        moves = zip(one, other, self._steps, strict=True)
        return all(abs(a - b) <= step for a, b, step in moves)

    def _confirm(self, theta: Contributions) -> Contributions:
        """Try a plan in twice as many other trials, and raise it if it only had luck.

        Of many plans that were tried, a lucky one is the likeliest to be chosen; in trials that
        had no part in the choice, it has no such luck. If the budget ends before a larger plan is
        confirmed, return the plan that is probably enough by what was seen.
        """
        # By the trials in which its like were tried.
        self._unconfirmed, self._helping = theta, self.find_helpers(theta)
        self._everything = self._get_seen(self._points)
        self._first, self._trials = self._first + self._trials, 2 * self._trials
        self._seen = {}
        try:
            return self._grow(theta, phase="confirm")
        except SpentError:
            if not self._seen:
                return theta
            good = [plan for plan in self._seen if self._chance(plan) >= self._judge.confidence]
            likely = [self._raise_to_likely(plan) for plan in self._seen if plan not in good]
            return min([*good, *likely], key=lambda plan: (sum(plan), plan))

    def _raise_to_likely(self, theta: Contributions) -> Contributions:
        """Raise a plan that is not enough to where it is likely to be, the neediest first."""
        everyone = range(len(theta))
        missing = self._guess_crossing(theta, self._points, everyone) - sum(theta)
        for i in np.argsort(self._margins(theta), kind="stable").tolist():
            more = min(max(0, missing), self._points[i] - theta[i])
            theta, missing = _with(theta, i, theta[i] + more), missing - more
        return theta

    def _find_cheapest(self) -> Contributions:
        """Return the least contributions, in all, with which all are satisfied as far as known."""
        good = [
            theta
            for theta, accuracies in self._seen.items()
            if len(accuracies) >= min(FEWEST, self._trials)
            and self._chance(theta) >= self._judge.confidence
        ]
        # Everything that everybody has was found to do.
        return min(good or [self._points], key=lambda theta: (sum(theta), theta))

    def runs(self, contributions: Contributions) -> list[Run]:
        """Return the runs that confirmed contributions; none if the budget ended before."""
        return self._runs(contributions)[: len(self._seen.get(contributions, ()))]

    def find_helpers(self, theta: Contributions) -> tuple[str, ...]:
        """Return the clients that give more than they need, for others that have given all."""
        if theta == self._unconfirmed:
            return self._helping
        helping = []
        for i, own in enumerate(theta):
            less = _with(theta, i, max(0, own - self._steps[i]))
            if own and less in self._seen and self._is_satisfied(less, i):
                spent = [j for j, n in enumerate(theta) if n == self._points[j] and j != i]
                if any(self._is_short(less, j) for j in spent):
                    helping.append(self._names[i])
        return tuple(helping)

    def _check_reachable(self) -> None:
        """Raise an InputError if some client is unsatisfied even when all give everything."""
        if self._look_at_all(self._points):
            return
        accuracies = self._seen[self._points]
        short = self._judge.chances(accuracies) < self._level(self._points)
        neediest = int(np.argmin(self._margins(self._points)))
        bounds = self._judge.bounds(accuracies, self._judge.level(int(short.sum())))
        name, goal = self._names[neediest], self._judge.goals[neediest]
        raise UnreachableError(
            f"no plan: {name} wants an accuracy of {goal:g}, and with all samples of all clients "
            f"it reaches {accuracies.mean(axis=0)[neediest]:.3f} on average under "
            f"{self._algorithm.name}; the nearest goal that it reaches with a probability of "
            f"{self._judge.confidence:g} is {max(math.floor(1000 * bounds[neediest]), 0) / 1000:g}"
        )

    def _grow(self, theta: Contributions, phase: str = "grow") -> Contributions:
        """Raise contributions, the neediest client first, until all have enough."""
        self._phase = phase
        while not (any(theta) and self._look_at_all(theta)):
            if any(theta):
                # Two runs tell that somebody is short, but not well who is furthest from its goal.
                self._train(theta, FEWEST)
            neediest = np.argsort(self._margins(theta), kind="stable").tolist()
            short = [i for i in neediest if self._is_short(theta, i)] or neediest[:1]
            open_hands = [i for i in neediest if theta[i] < self._points[i]]
            if not open_hands:
                # All were satisfied with this; what was seen since made the judge stricter.
                return theta
            willing = [i for i in open_hands if i in short]
            # Those who are short and have given all are helped by the next in need.
            i = (willing or open_hands)[0]
            helpless = (j for j in short if theta[j] == self._points[j])
            theta = self._raise(theta, i, (*willing[:1], *helpless))
        return theta

    def _raise(self, theta: Contributions, i: int, watched: Sequence[int]) -> Contributions:
        """Raise what one gives to the least with which those watched are satisfied, or to all.

        From where it is likely to be on, the way is doubled until it is too long, then divided.
        """
        most, step = self._points[i], self._steps[i]
        low = theta[i]
        jump = max(step, self._guess_crossing(theta, self._points, watched) - sum(theta))
        if not any(theta):
            jump = 2 * step
        while True:
            high = min(theta[i] + jump, most)
            if self._is_enough(_with(theta, i, high), watched, i):
                return _with(theta, i, self._bisect(theta, i, watched, low, high))
            if high == most:
                return _with(theta, i, most)
            low, jump = high, 2 * jump

    def _trim(self, theta: Contributions) -> Contributions:
        """Move each contributor in turn, the largest first, to its best response."""
        self._phase = "trim"
        for i in sorted(range(len(theta)), key=lambda i: (-theta[i], i)):
            if not theta[i]:
                continue
            # Who has given all it has cannot answer for what others take away from it.
            spent = [j for j, n in enumerate(theta) if n == self._points[j] and j != i]
            watched = (i, *(j for j in spent if not self._is_short(theta, j)))
            if self._is_enough(theta, watched, None):
                theta = self._lower(theta, i, watched)
            elif theta[i] < self._points[i]:
                theta = self._raise(theta, i, watched)
        return theta

    def _lower(self, theta: Contributions, i: int, watched: Sequence[int]) -> Contributions:
        """Lower what one gives to the least with which those watched are still satisfied."""
        # Somebody must bring something, or there is nothing to train on.
        least = 0 if any(n for j, n in enumerate(theta) if j != i) else 1
        high = theta[i]
        jump = self._steps[i]
        while high > least:
            low = max(least, theta[i] - jump)
            if not self._is_enough(_with(theta, i, low), watched, i):
                return _with(theta, i, self._bisect(theta, i, watched, low, high))
            high, jump = low, 2 * jump
        return _with(theta, i, high)

    def _bisect(
        self, theta: Contributions, i: int, watched: Sequence[int], low: int, high: int
    ) -> int:
        """Divide the way between too little and enough until it is no longer than a step.

        Where it is likely to be enough, and in the middle, by turns: so that the way is at most
        half as long after any two.
        """
        step, turn = self._steps[i], 0
        while high - low > step:
            middle, turn = (low + high) // 2, turn + 1
            less, more = _with(theta, i, low), _with(theta, i, high)
            if turn % 2 and less in self._seen:
                likely = low + self._guess_crossing(less, more, watched) - sum(less)
                middle = min(max(likely, low + step), high - step)
            if self._is_enough(_with(theta, i, middle), watched, i):
                high = middle
            else:
                low = middle
        return high

    def _guess_crossing(
        self, less: Contributions, more: Contributions, watched: Sequence[int]
    ) -> int:
        """Guess with how many points in all those watched have just enough.

        By a line between the bounds at both, over the logarithm of all points.
        """
        if less not in self._seen or not any(less):
            return 0
        gaps = []
        for theta in (less, more):
            bounds = self._judge.bounds(self._get_seen(theta), self._level(theta))
            gaps.append(float((bounds - self._judge.goals)[list(watched)].min()))
        if not gaps[0] < 0 < gaps[1]:
            return 0
        start, end = math.log(sum(less)), math.log(sum(more))
        return math.ceil(math.exp(start - (end - start) * gaps[0] / (gaps[1] - gaps[0])))

    def _get_seen(self, theta: Contributions) -> Matrix:
        """Return what came of contributions; of everything, perhaps in earlier trials."""
        if theta not in self._seen and theta == self._points and self._everything is not None:
            return self._everything
        return self._seen[theta]

    def _is_enough(self, theta: Contributions, watched: Sequence[int], mover: int | None) -> bool:
        """Try contributions, and return whether the watched clients are satisfied."""
        self._look(theta, watched, mover)
        return all(self._is_satisfied(theta, i) for i in watched)

    def _look_at_all(self, theta: Contributions) -> bool:
        """Try contributions, and return whether all are satisfied, with the given confidence."""
        self._look(theta, range(len(theta)))
        return self._chance(theta) >= self._judge.confidence

    def _look(self, theta: Contributions, watched: Sequence[int], mover: int | None = None) -> None:
        """Train with contributions, as often as it takes to tell whether some are satisfied."""
        while not self._is_decided(theta, watched):
            self._train(theta, max(FIRST_LOOK, 2 * len(self._seen.get(theta, ()))))
            if self._is_decided(theta, watched):
                judge, seen = self._judge, self._seen[theta]
                row = describe_step(judge, seen, theta, self._names, self._phase, mover)
                self.story.append(row)

    def _train(self, theta: Contributions, trials: int) -> None:
        """Train with contributions in a number of trials, as far as the budget allows."""
        if trials <= len(self._seen.get(theta, ())):
            return
        runs = self._runs(theta)[:trials]
        outcomes = self._bench.outcomes(runs, self._phase, most=self._most)
        # Who diverged has learnt nothing.
        accuracies = np.nan_to_num(np.array([o.accuracies for o in outcomes]), nan=0.0)
        self._seen[theta] = accuracies
        self._judge.note(theta, accuracies)

    def _runs(self, theta: Contributions) -> list[Run]:
        # Where clients promise what they bring, a plan is tried by a federation that has promised
        # as much.
        promised = self._algorithm.committed(theta)
        trials = range(self._first, self._first + self._trials)
        source, seed = self._bench.source.fingerprint, self._bench.seed
        return [Run(source, promised, theta, seed, trial) for trial in trials]

    def _is_decided(self, theta: Contributions, watched: Sequence[int]) -> bool:
        accuracies = self._seen.get(theta)
        if accuracies is None:
            return False
        if len(accuracies) == self._trials:
            return True
        level, some = self._level(theta), list(watched)
        enough = len(accuracies) >= FEWEST
        # Two trials may both be bad luck: by them only those are given up whose accuracy would be
        # too low on average, without any room for chance.
        short = self._judge.falls_short(accuracies, level if enough else 0.5)
        if short[some].any():
            return True
        return enough and bool(self._judge.does_well(accuracies, level)[some].all())

    def _chance(self, theta: Contributions) -> float:
        return float(np.prod(self._judge.chances(self._seen[theta])))

    def _level(self, theta: Contributions) -> float:
        return self._judge.level(int(np.count_nonzero(theta)))

    def _is_satisfied(self, theta: Contributions, i: int) -> bool:
        return bool(self._judge.chances(self._seen[theta])[i] >= self._level(theta))

    def _is_short(self, theta: Contributions, i: int) -> bool:
        return theta not in self._seen or not self._is_satisfied(theta, i)

    def _margins(self, theta: Contributions) -> Vector:
        """Return how far everybody is above its goal; if nobody gives, with what all had."""
        accuracies = self._get_seen(theta if theta in self._seen else self._points)
        return np.asarray(accuracies.mean(axis=0) - self._judge.goals)


def describe_step(
    judge: Judge,
    accuracies: Matrix,
    theta: Contributions,
    names: Sequence[str],
    phase: str,
    mover: int | None = None,
) -> Step:
    """Return the row of the story that tells what came of contributions."""
    level = judge.level(int(np.count_nonzero(theta)))
    chances = judge.chances(accuracies)
    return Step(
        phase=phase,
        contributions=theta,
        mover=None if mover is None else names[mover],
        trials=len(accuracies),
        accuracies=tuple(accuracies.mean(axis=0).tolist()),
        bounds=tuple(judge.bounds(accuracies, level).tolist()),
        short=tuple(name for name, c in zip(names, chances, strict=True) if c < level),
        chance=float(np.prod(chances)),
    )


def _with(theta: Contributions, i: int, points: int) -> Contributions:
    return (*theta[:i], points, *theta[i + 1 :])
