"""Pilot trainings: a few runs with chosen contributions, from which learning curves are measured.

A pilot has a trial of its own: another deal and another seed, so that what two pilots have in
common is what their contributions have. No audit counts them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedaccord._checks import Vector, check_whole
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.defection.curves import Contributions
from fedaccord.federation.partition import REST, Dealer, SiteDealer, read_each, set_goals
from fedaccord.federation.runs.execute import Count, EngineMaker, Executor, Source, open_executor
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.runs.trials import AIMED, PILOTS, UNCOUNTED
from fedaccord.federation.training.rng import stream
from fedaccord.measurement.design import (
    REPEATS,
    check_budget,
    check_design,
    take_parts,
    usual_budget,
    whole_design,
)
from fedaccord.measurement.design import pilot_design as pilot_design
from fedaccord.measurement.measures import GoalPilots
from fedaccord.measurement.pilots import PilotTable

# Near a plan every client brings one of these parts of what the plan asks of it.
NEAR = (0.25, 1.0, 1.5)


def pilots_near(
    contributions: ArrayLike, points: Sequence[int], *, budget: int, seed: int = 0
) -> list[Contributions]:
    """Choose what clients bring to pilots near a plan: a quarter of it, all of it, or half more."""
    random = stream(seed, "pilots near a plan")
    drawn = random.choice(NEAR, size=(check_budget(budget), len(points)))
    most = np.array(points, dtype=float)
    wanted = np.minimum(np.asarray(contributions, dtype=float) * drawn, most) / np.maximum(most, 1)
    return [take_parts([int(n) for n in points], levels) for levels in wanted.tolist()]


def run_pilots(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None = None,
    goals: ArrayLike | None = None,
    aim: Callable[[PilotTable], ArrayLike] | None = None,
    stages: int = 1,
    seed: int = 0,
    store: RunStore | str | Path | None = None,
    others: bool = True,
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    progress: Count | None = None,
) -> PilotTable:
    """Train with chosen contributions, and return the table of final accuracies.

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
    stages: how often to aim; each time by all pilots so far, at an equal part of the last third.
    seed: the random seed.
    store: a file of finished runs, or a RunStore.
    others: whether what else the store has counts too; without it the table is the same whatever
        was kept before.
    workers: how many runs at a time.
    engine: where the runs are made, as `defection_curves` has it.
    progress: told how many pilots are finished, of how many.
    """
    made, wanted, validation = _make_pilots(
        source,
        algorithm,
        budget=budget,
        goals=goals,
        aim=aim,
        stages=stages,
        seed=seed,
        store=store,
        others=others,
        place={"workers": workers, "engine": engine},
        progress=progress,
    )
    return made.table(wanted, validation)


def run_goal_pilots(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None = None,
    aim: Callable[[PilotTable], ArrayLike] | None = None,
    design: Sequence[Sequence[int]] | None = None,
    seed: int = 0,
    store: RunStore | str | Path | None = None,
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    progress: Count | None = None,
) -> GoalPilots:
    """Train with chosen contributions, and return what came of every goal: a table for `fit_goals`.

    All clients have goals of the same names.

    design: what each client brings to each pilot, in place of budget and aim.
    source, algorithm, budget, aim, seed, store, workers, engine, progress: as `run_pilots` has
        them.
    """
    clients = source.deal(PILOTS).clients
    measures = tuple(goal.name for goal in clients[0].listed_goals)
    if not any(client.goals for client in clients):
        raise InputError("all clients want an accuracy: run_pilots makes their table")
    for client in clients:
        if (own := tuple(goal.name for goal in client.listed_goals)) != measures:
            raise InputError(
                f"{client.name} has the goals {', '.join(own)}, and {clients[0].name} "
                f"{', '.join(measures)}: give all clients the same goals, each with its own targets"
            )
    made, *_ = _make_pilots(
        source,
        algorithm,
        budget=budget,
        goals=None,
        aim=aim,
        design=design,
        seed=seed,
        store=store,
        others=design is None,
        place={"workers": workers, "engine": engine},
        progress=progress,
    )
    shape = (len(made.known), len(clients), len(measures))
    outcomes = [outcome for _, outcome in made.known.values()]
    values, deviations = (
        np.array([getattr(one, name) for one in outcomes]).reshape(shape)
        for name in ("values", "deviations")
    )
    if _measures_on_rest(source):
        deviations = np.full(shape, np.nan)
    return GoalPilots(
        agents=source.names,
        measures=measures,
        contributions=np.array([run.contributions for run, _ in made.known.values()]),
        values=values,
        deviations=deviations,
        goals=np.array([[goal.target for goal in client.listed_goals] for client in clients]),
        limits=np.array(source.points, dtype=float),
    )


def _make_pilots(
    source: Source,
    algorithm: Algorithm,
    *,
    budget: int | None,
    goals: ArrayLike | None,
    aim: Callable[[PilotTable], ArrayLike] | None,
    design: Sequence[Sequence[int]] | None = None,
    stages: int = 1,
    seed: int,
    store: RunStore | str | Path | None,
    others: bool,
    place: Mapping[str, Any],
    progress: Count | None,
) -> tuple[_Pilots, Vector, list[float]]:
    """Return the pilots, the goals, and on how many points each client is measured."""
    if algorithm.trains_alone:
        raise InputError(
            f"{algorithm.name} trains each client alone, so no client's data helps another; plan "
            "for an algorithm that trains together, such as FedAvg"
        )
    given = source.requirements if goals is None else goals
    wanted = read_each(given, source.names, "goals", "one goal")
    clients = source.deal(PILOTS).clients
    counted = [client.counted_points for client in clients]
    unknown = _measures_on_rest(source)
    validation = [math.nan if unknown or math.isinf(n) else n for n in counted]
    shares = all(client.has_one_share for client in clients)
    if goals is not None and not shares:
        raise InputError("the clients have goals that one number does not replace: change them")
    _check_goals(source.names, clients, wanted)
    asked = _choose_source(source, algorithm, wanted) if shares else source
    points = [int(n) for n in source.points]
    if design is not None:
        chosen = check_design(design, source.names, points)
        if budget is not None or aim is not None:
            raise InputError("a design is given, so leave budget and aim out")
        budget = len(chosen)
    total = usual_budget(len(points)) if budget is None else check_budget(budget)
    check_whole("stages", stages)
    # A third of the pilots is aimed, if the design is made once all the same.
    spare = max(0, total - whole_design(len(points)))
    aimed = 0 if aim is None else min(total // REPEATS, spare)
    with open_executor(asked, store=store, **place) as executor:
        pilots = _Pilots(asked, algorithm, seed, executor, total, progress)
        if design is None:
            chosen = pilot_design(points, budget=total - aimed)
        pilots.make(chosen, first=PILOTS)
        if aim is not None and aimed:
            pilots.make_near(lambda: aim(pilots.table(wanted, validation)), aimed, stages)
        # Where goals do not matter, neither do those that an audit of the source had.
        if others:
            pilots.find([asked] if algorithm.tests_goal else [asked, source])
    return pilots, wanted, validation


@dataclass(frozen=True)
class _Pilots:
    """The pilots of one algorithm.

    source: what they are made of.
    algorithm: that trains.
    seed: the random seed.
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

    def make_near(self, aim: Callable[[], ArrayLike], count: int, stages: int) -> None:
        """Make pilots near plans, in stages."""
        points = [int(n) for n in self.source.points]
        ends = [count * stage // stages for stage in range(stages + 1)]
        for before, end in itertools.pairwise(ends):
            if end > before:
                # By the stages before it alone, so that whoever goes on after an interruption
                # aims the same.
                near = pilots_near(aim(), points, budget=end, seed=self.seed)
                self.make(near[before:], first=AIMED + before)

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

    def table(self, goals: Vector, validation: Sequence[float]) -> PilotTable:
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


def _measures_on_rest(source: Source) -> bool:
    """Return whether clients are measured on all points they have that do not train.

    Those are nearly the same points in each pilot, so which they are adds nothing to the scatter.
    """
    return isinstance(source, SiteDealer) and source.validation == REST


def _check_goals(names: Sequence[str], clients: Sequence[Client], goals: Vector) -> None:
    """Raise an error, before anything is trained, at what no training could be known to reach."""
    for name, client, goal in zip(names, clients, goals.tolist(), strict=True):
        points = len(client.validation_labels)
        if not 0 < goal <= 1:
            raise InputError(
                f"the goal of {name} must be an accuracy above 0 and below 1; got {goal:g}"
            )
        if goal == 1 and not client.goals:
            raise UnreachableError(
                f"{name} wants an accuracy of 1, all of its {points} validation samples right: no "
                "learning curve reaches that, whatever clients contribute; the highest goal that "
                f"can be planned for is {math.floor(1000 * (1 - 1 / max(points, 2))) / 1000:g}"
            )
        for own in client.goals:
            if own.kind and own.rises and own.target == 1:
                raise UnreachableError(
                    f'{name} wants 1 of "{own.name}": no learning curve reaches that, whatever '
                    "clients contribute; give it an easier goal"
                )
