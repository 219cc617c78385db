"""Pilot trainings: a few runs with chosen contributions, from which learning curves are measured.

A pilot has a trial of its own: another deal and another seed, so that what two pilots have in
common is what their contributions have. No audit counts them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.clients import Federation
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.partition import Dealer, SiteDealer, read_each, set_goals
from fedaccord.federation.runs.engines import Source
from fedaccord.federation.runs.execute import Count, EngineMaker, Executor, open_executor
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.runs.trials import AIMED, MOST_PILOTS, PILOTS, UNCOUNTED
from fedaccord.federation.training.rng import stream
from fedaccord.measurement.pilots import PilotTable

# How often the whole design is gone through where no budget is given.
REPEATS = 3
# All clients at once, at parts of what they have: the first three tell a learning curve's height,
# start and bend, the other two its shape.
FIRST_LEVELS, MORE_LEVELS = (1.0, 0.1, 0.35), (0.6, 0.2)
# One client with nothing among others with some; one with much among others with little. Nothing,
# for plans often ask nothing of somebody, and under FedAvg two points, drawn again and again, are
# far from none. Not too little, for there accuracy is mostly chance, which plans stay away from.
WITHOUT, ALONE = (0.0, 0.3), (0.8, 0.1)
# Among few clients, others with nothing at all: what a client reaches alone is then near a plan,
# and tells most of what it needs. Each time through is at other levels, and later times have one
# pilot of all clients in place of five. Linear theory over made-up federations found no design of
# as many pilots that tells the total of a stable plan much better.
FEW_WITHOUT, FEW_ALONE, AGAIN = (0.5, 0.7, 0.35), (0.35, 0.5, 0.7), 0.35
FEW = 4
# Near a plan every client brings one of these parts of what the plan asks of it.
NEAR = (0.25, 1.0, 1.5)


def usual_budget(clients: int) -> int:
    """Return a sensible number of pilots: everything that the design has, three times."""
    return REPEATS * _whole_design(clients)


def pilot_design(points: Sequence[int], *, budget: int) -> list[Contributions]:
    """Choose what clients bring to each pilot.

    All bring the same part of what they have (five pilots); each in turn brings nothing while the
    others bring some, which shows what it is worth to them; each in turn brings much while the
    others bring little or nothing, which shows what it is worth to itself. That makes 2 k + 5, over
    and over while the budget lasts; among few clients at other levels each time. The more clients
    there are, the less each brings to most pilots. A small budget has the first of them, in such an
    order that any number of them tells most of what so few can.

    points: how many points each client has.
    budget: how many pilots.
    """
    sizes = [int(n) for n in points]
    if not sizes or min(sizes) < 1:
        raise InputError(f"pilots need clients that have points; got {sizes}")
    levels = itertools.islice(_levels(len(sizes)), check_budget(budget))
    return [_part(sizes, one) for one in levels]


def pilots_near(
    contributions: ArrayLike, points: Sequence[int], *, budget: int, seed: int = 0
) -> list[Contributions]:
    """Choose what clients bring to pilots near a plan: a quarter of it, all of it, or half more.

    contributions: the plan.
    points: how many points each client has.
    budget: how many pilots.
    seed: of who brings which part.
    """
    random = stream(seed, "pilots near a plan")
    drawn = random.choice(NEAR, size=(check_budget(budget), len(points)))
    most = np.array(points, dtype=float)
    wanted = np.minimum(np.asarray(contributions, dtype=float) * drawn, most) / most
    return [_part([int(n) for n in points], levels) for levels in wanted.tolist()]


def run_pilots(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None = None,
    goals: ArrayLike | None = None,
    aim: Callable[[PilotTable], ArrayLike] | None = None,
    seed: int = 0,
    store: RunStore | str | Path | None = None,
    others: bool = True,
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    progress: Count | None = None,
) -> PilotTable:
    """Train with chosen contributions, and give the table of what everybody had in the end.

    Pilots that are in the store are not made again. What else the store has of the same source
    and algorithm, of other trials that no audit counts, comes on top of the budget, one pilot of
    each trial, unless told otherwise. Goals do not matter to pilots of an algorithm that does not
    look at them: they can be changed, and all pilots of the design stay.

    source: a federation, or what deals one to each trial.
    algorithm: whose plan is to be made; pilots tell of no other.
    budget: how many pilots, 3 (2 k + 5) where left out; of them those in the store cost nothing.
    goals: the accuracy each client wants, one for all or one each; the source's where left out.
    aim: gives, from the table of the first pilots, contributions near which to make the last
        third of them: what is to be planned is best known there. Where left out, or where the
        budget is no more than 2 k + 5, all are of the design.
    seed: of everything random.
    store: a file of finished runs, or a RunStore.
    others: whether what else the store has counts too; without it the table is the same whatever
        was kept before.
    workers: how many runs at a time.
    engine: where the runs are made, as `defection_curves` has it.
    progress: told how many pilots are finished, of how many.
    """
    if algorithm.trains_alone:
        raise InputError(
            f"{algorithm.name} trains everybody alone, so that nobody's data is of use to others; "
            "plan for an algorithm that trains together, such as FedAvg"
        )
    given = source.requirements if goals is None else goals
    wanted = read_each(given, source.names, "goals", "one goal")
    validation = [len(client.validation_labels) for client in source.deal(PILOTS).clients]
    _check_goals(source, wanted, validation)
    asked = _choose_source(source, algorithm, wanted)
    points = [int(n) for n in source.points]
    total = usual_budget(len(points)) if budget is None else check_budget(budget)
    # A third of the pilots is aimed, if the design is made once all the same.
    spare = max(0, total - _whole_design(len(points)))
    aimed = 0 if aim is None else min(total // REPEATS, spare)
    with open_executor(asked, engine=engine, workers=workers, store=store) as executor:
        pilots = _Pilots(asked, algorithm, seed, executor, total, progress)
        pilots.make(pilot_design(points, budget=total - aimed), first=PILOTS)
        if aim is not None and aimed:
            # Of the design alone, so that whoever goes on after an interruption aims the same.
            plan = aim(pilots.table(wanted, validation))
            pilots.make(pilots_near(plan, points, budget=aimed, seed=seed), first=AIMED)
        # Where goals do not matter, neither do those that an audit of the source had.
        if others:
            pilots.find([asked] if algorithm.tests_goal else [asked, source])
    return pilots.table(wanted, validation)


@dataclass(frozen=True)
class _Pilots:
    """The pilots of one algorithm.

    source: what they are made of.
    algorithm: that trains.
    seed: of everything random.
    executor: makes those that are missing.
    total: how many are to be made.
    progress: told how many are finished, of how many.
    known: those that are, with what came of them.
    """

    source: Source
    algorithm: Algorithm
    seed: int
    executor: Executor
    total: int
    progress: Count | None
    known: dict[str, tuple[Run, Outcome]] = field(default_factory=dict)

    def make(self, design: Sequence[Contributions], *, first: int) -> None:
        """Make the pilots of a design that are not in the store, in trials from the first on."""
        before, progress = len(self.known), self.progress
        runs = [
            self._run(self.source.fingerprint, brought, self.seed, first + n)
            for n, brought in enumerate(design)
        ]

        def tell(done: int, _: int) -> None:
            if progress is not None:
                progress(before + done, self.total)

        outcomes = self.executor.execute_all(runs, progress=tell)
        self.known.update({r.key: (r, o) for r, o in zip(runs, outcomes, strict=True)})

    def find(self, sources: Sequence[Source]) -> None:
        """Take in all else that the store has to tell, of trials that no audit counts.

        Pilots of one trial have the same points and the same luck: of each trial one is taken.
        """
        taken = {(run.base_seed, run.trial) for run, _ in self.known.values()}
        for fingerprint in dict.fromkeys(source.fingerprint for source in sources):
            for brought, seed, trial in self.executor.store.kept(fingerprint, trials=UNCOUNTED):
                run = self._run(fingerprint, brought, seed, trial)
                if (seed, trial) in taken:
                    continue
                # None where the run was another algorithm's.
                if (outcome := self.executor.store.get(run)) is not None:
                    self.known[run.key] = (run, outcome)
                    taken.add((seed, trial))

    def table(self, goals: Vector, validation: Sequence[int]) -> PilotTable:
        """Return what is known as a table."""
        return PilotTable(
            agents=self.source.names,
            contributions=[run.contributions for run, _ in self.known.values()],
            accuracies=[outcome.accuracies for _, outcome in self.known.values()],
            goals=goals,
            validation=validation,
            limits=self.source.points,
        )

    def _run(self, source: str, brought: Contributions, seed: int, trial: int) -> Run:
        # Where clients promise what they bring, a pilot is a federation that has promised that.
        return Run(source, self.algorithm.committed(brought), brought, seed, trial)


def _choose_source(source: Source, algorithm: Algorithm, goals: Vector) -> Source:
    """Return the source that pilots are made of."""
    if algorithm.tests_goal:
        return set_goals(source, goals)
    # Whatever the goals are, the runs are the same; with the same goals they have the same key,
    # and are found again when others are asked for. A user's own source answers for itself.
    known = isinstance(source, Federation | Dealer | SiteDealer)
    return set_goals(source, np.ones(len(goals))) if known else source


def check_budget(budget: Any) -> int:
    """Return a budget that is a number of runs, or say that it is none."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise InputError(f"the budget must be a whole number of training runs; got {budget!r}")
    if not 1 <= budget <= MOST_PILOTS:
        raise InputError(f"the budget must be 1 to {MOST_PILOTS:,} training runs; got {budget}")
    return int(budget)


def _whole_design(clients: int) -> int:
    return len(FIRST_LEVELS) + len(MORE_LEVELS) + 2 * clients


def _levels(clients: int) -> Iterator[list[float]]:
    """Return what part of its points each client brings, pilot by pilot, without end."""
    # Of more than FEW clients a tenth each would be more than any of them could need: what was a
    # tenth is then what FEW of them would bring, and what was all stays all.
    power = 1 + math.log10(max(clients, FEW) / FEW)
    (nothing, some), (much, little) = WITHOUT, ALONE
    if clients <= FEW:
        some, much, little = FEW_WITHOUT[0], FEW_ALONE[0], 0.0
    while True:
        yield from ([level**power] * clients for level in FIRST_LEVELS)
        yield from _each_in_turn(clients, nothing, some**power)
        yield from ([level**power] * clients for level in MORE_LEVELS)
        yield from _each_in_turn(clients, much, little**power)
        if clients <= FEW:
            break
    for time in itertools.count(1):
        yield [AGAIN] * clients
        yield from _each_in_turn(clients, FEW_ALONE[time % len(FEW_ALONE)], 0.0)
        yield from _each_in_turn(clients, 0.0, FEW_WITHOUT[time % len(FEW_WITHOUT)])


def _each_in_turn(clients: int, own: float, others: float) -> Iterator[list[float]]:
    for client in range(clients):
        yield [own if other == client else others for other in range(clients)]


def _part(sizes: Sequence[int], levels: Sequence[float]) -> Contributions:
    brought = [math.floor(n * level + 0.5) for n, level in zip(sizes, levels, strict=True)]
    if not any(brought):
        # Of very few points so little would be nothing at all, and nobody could train.
        brought[int(np.argmax(np.multiply(sizes, levels)))] = 1
    return tuple(brought)


def _check_goals(source: Source, goals: Vector, validation: Sequence[int]) -> None:
    """Raise an error, before anything is trained, at what no training could be known to reach."""
    for name, goal, points in zip(source.names, goals, validation, strict=True):
        if not 0 < goal <= 1:
            raise InputError(
                f"the goal of {name} must be an accuracy above 0 and below 1; got {goal:g}"
            )
        if goal == 1:
            raise UnreachableError(
                f"{name} wants an accuracy of 1, all of its {points} validation points right: no "
                "learning curve ends there, whoever contributes what; the nearest goal that can "
                f"be planned for is {math.floor(1000 * (1 - 1 / max(points, 2))) / 1000:g}"
            )
