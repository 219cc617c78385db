"""Compare algorithms on a federation, each with a plan of its own.

A plan is "own" (what the algorithm uses when all bring everything), "all" (every point),
"measured" (a stable plan of the game that pilots show), "sought" (what EQ-FED finds), or given.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fedaccord.allocation import Allocation
from fedaccord.errors import InputError, UnreachableError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.algorithms.fedavg import FedAvg
from fedaccord.federation.config.load import PLANS
from fedaccord.federation.defection.audit import defection_curves
from fedaccord.federation.defection.curves import DefectionAudit
from fedaccord.federation.defection.design import LEVELS, Design, checked_plans, designed
from fedaccord.federation.eqfed.result import ENDINGS
from fedaccord.federation.runs.engines import Engine, Source
from fedaccord.federation.runs.execute import EngineMaker, Progress, open_executor
from fedaccord.federation.runs.store import RunStore
from fedaccord.federation.runs.trials import PLANNING
from fedaccord.federation.validation_halves import Halved, deals_anew
from fedaccord.frontier.result import Contender, Frontier, Goals

__all__ = ["Contender", "Frontier", "Goals", "Stage", "compare_algorithms"]

PlanOf: TypeAlias = "str | Path | Allocation | Sequence[float]"
# What is asked of EQ-FED's own verification: the audit that follows tells more.
FEWEST_CHECKS = 1


@dataclass(frozen=True)
class Stage:
    """How far a comparison is.

    what: is under way, in a few words.
    done: runs finished, those found in the store among them.
    total: runs of this stage in all, as far as can be told.
    audit: how far the audit is, where one is under way.
    """

    what: str
    done: int
    total: int
    audit: Progress | None = None


def compare_algorithms(
    source: Source,
    algorithms: Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm],
    *,
    plans: Mapping[str, PlanOf] | None = None,
    levels: Sequence[float] = LEVELS[:-1],
    trials: int = 30,
    defectors: str = "each",
    seed: int = 0,
    baseline: str | None = None,
    goals: Goals | None = None,
    pilots: int | None = None,
    seeking: int | None = None,
    probability: float = 0.95,
    prefer: str = "total",
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    store: RunStore | str | Path | None = None,
    progress: Callable[[Stage], None] | None = None,
) -> Frontier:
    """Tell of each algorithm, with its plan, who is satisfied, who could cut, and what it takes.

    Plans are made on trials of their own. Then each algorithm is audited twice, by P1 and by P2,
    on trials that chose nothing; all runs of a trial have the same data and the same seed.

    source: a federation, or what deals one to each trial.
    algorithms: to be compared; give a dict to name them, where two are of one kind.
    plans: by the algorithms' names "own", "all", "measured", "sought", an allocation or its
        numbers, or a file that has one; "own" where left out.
    levels: what part a defector gives; that of the goals must be among them.
    trials: how many times everything is done.
    defectors: "each" client in every trial, or one at "random".
    seed: of everything random.
    baseline: whose samples the others' are counted against; the first FedAvg where left out, or
        the first algorithm.
    goals: what is to be reached.
    pilots: how many pilots a measured plan may take.
    seeking: how many runs EQ-FED may take.
    probability: with which all are to be satisfied under a measured plan.
    prefer: which equilibrium a measured plan is, "total" or "firm".
    workers: how many runs at a time.
    engine: where the runs are made, as `defection_curves` has it.
    store: a file of finished runs, or a RunStore; runs that are in it are not made again.
    progress: told how far things are whenever a run starts or finishes.
    """
    started = time.perf_counter()
    asked = dict[str, Any](levels=levels, trials=trials, defectors=defectors, width=None, seed=seed)
    choosing, judging = _split(source, plans or {}, seed)
    design = designed(judging, algorithms, protocol="P2", **asked)
    goals = goals or Goals()
    base = _baseline(design, baseline)
    _check_level(design, goals)
    words = {name: (plans or {}).get(name, PLANS[0]) for name in design.algorithms}
    given = _given(design, words, plans or {})
    _check_startable(design, set(words) - set(given))
    with contextlib.ExitStack() as stack:
        kept = store if isinstance(store, RunStore) else stack.enter_context(RunStore(store))
        place = dict[str, Any](engine=engine, workers=workers, store=kept)
        told = progress or (lambda stage: None)
        wanted = {"probability": probability, "prefer": prefer}
        planner = _Planner(source, choosing, design, place, told, goals, pilots, seeking, wanted)
        made = {n: given.get(n) or planner.made(n, str(words[n])) for n in design.algorithms}
        missing = {name: one for name, one in made.items() if isinstance(one, str)}
        ready = {name: one for name, one in made.items() if not isinstance(one, str)}
        if base in missing:
            raise InputError(f"there is no plan for {base}, the baseline: {missing[base]}")
        p1, p2 = _audited(judging, ready, asked, place, told)
    return Frontier(
        contenders=tuple(
            Contender(name, _word(words[name]), one.story, one.runs, p1.curve(name), p2.curve(name))
            for name, one in ready.items()
        ),
        unplanned=missing,
        baseline=base,
        goals=goals,
        clients=design.names,
        requirements=p2.requirements,
        points=design.points,
        levels=design.levels,
        trials=trials,
        defectors=defectors,
        seed=seed,
        versions=tuple(sorted({*p1.versions, *p2.versions})),
        source=design.fingerprint,
        run_seconds=p1.run_seconds + p2.run_seconds,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True)
class _Made:
    """A plan for a contender.

    algorithm: to be audited.
    plan: what is asked of each client; None for the algorithm's own.
    story: a sentence on it.
    runs: how many runs it took.
    """

    algorithm: Algorithm
    plan: Allocation | None
    story: str = ""
    runs: int = 0


def _split(source: Source, plans: Mapping[str, PlanOf], seed: int) -> tuple[Source, Source]:
    """Give what plans are made by and what they are judged by: points that did not choose them."""
    chosen = any(isinstance(plan, str) and plan in PLANS[2:] for plan in plans.values())
    if not chosen or deals_anew(source, 0, PLANNING):
        return source, source
    # The halves that EQ-FED chooses and verifies by.
    return Halved(source, "first", seed=seed), Halved(source, "second", seed=seed)


def _baseline(design: Design, name: str | None) -> str:
    if name is not None and name not in design.algorithms:
        known = ", ".join(design.algorithms)
        raise InputError(f"the baseline must be one of {known}; got {name!r}")
    averaging = [n for n, a in design.algorithms.items() if a.kind == FedAvg.kind]
    return name or next(iter(averaging or design.algorithms))


def _check_level(design: Design, goals: Goals) -> None:
    if goals.level not in design.levels:
        have = ", ".join(f"{level:g}" for level in design.levels)
        raise InputError(
            f"levels must have {goals.level:g}, the one that a goal is about; got {have}"
        )


def _given(
    design: Design, words: Mapping[str, PlanOf], plans: Mapping[str, PlanOf]
) -> dict[str, _Made]:
    """Read and check all plans that need no training, before anything is trained."""
    for name in plans:
        if name not in design.algorithms:
            known = ", ".join(design.algorithms)
            raise InputError(f"there is a plan for {name}, which is not compared; there is {known}")
    everything = Allocation([float(n) for n in design.points], design.names)
    found: dict[str, _Made] = {}
    for name, algorithm in design.algorithms.items():
        word = words[name]
        if isinstance(word, Allocation):
            found[name] = _Made(algorithm, word)
        elif not isinstance(word, str | Path):
            found[name] = _Made(algorithm, Allocation(word, design.names))
        elif word == "own":
            found[name] = _Made(algorithm, None)
        elif word == "all":
            found[name] = _Made(algorithm, everything)
        elif word not in PLANS:
            found[name] = _Made(algorithm, _loaded(name, word))
    with_plan = {name: one.plan for name, one in found.items() if one.plan is not None}
    checked_plans(design, with_plan)
    return found


def _check_startable(design: Design, names: Collection[str]) -> None:
    """Refuse what could not be trained with everybody's points, before any plan is made."""
    for name, algorithm in design.algorithms.items():
        if name in names:
            try:
                algorithm.begin(np.array(design.points))
            except InputError as error:
                raise InputError(f"{name}: {error}") from None


def _loaded(name: str, path: str | Path) -> Allocation:
    if not Path(path).exists():
        raise InputError(
            f"the plan of {name} must be one of {', '.join(PLANS)}, or a file that has it; there "
            f"is no file {path}"
        )
    return Allocation.load(path)


def _word(plan: PlanOf) -> str:
    """Say how a plan was made; of a file its name, wherever it is."""
    return Path(plan).name if isinstance(plan, str | Path) else "given"


@dataclass(frozen=True)
class _Planner:
    """Makes the plans that take training.

    source: what to plan for.
    choosing: the same, as pilots may see it.
    design: of the comparison.
    place: where runs are made and kept.
    told: is told how far things are.
    goals: what is to be reached.
    pilots, seeking: how many runs a plan may take.
    wanted: of a measured plan, the arguments of `make_plan`.
    """

    source: Source
    choosing: Source
    design: Design
    place: Mapping[str, Any]
    told: Callable[[Stage], None]
    goals: Goals
    pilots: int | None
    seeking: int | None
    wanted: Mapping[str, Any]

    def made(self, name: str, word: str) -> _Made | str:
        """Make a plan, or say why there is none."""
        algorithm = self.design.algorithms[name]
        make = self._measured if word == "measured" else self._sought
        try:
            return make(name, algorithm)
        except UnreachableError as error:
            return str(error)

    def _measured(self, name: str, algorithm: Algorithm) -> _Made | str:
        from fedaccord.frontier.from_federation import from_federation
        from fedaccord.planning.plan import make_plan

        what = f"pilots of {name}"
        measurement = from_federation(
            self.choosing,
            algorithm,
            budget=self.pilots,
            seed=self.design.seed,
            # The audits that follow leave runs in the store: whoever goes on after an
            # interruption is to plan by the pilots that were there before.
            others=False,
            progress=lambda done, total: self.told(Stage(what, done, total)),
            **self.place,
        )
        levels = [level for level in self.design.levels if level < 1]
        plan = make_plan(measurement, levels=levels, seed=self.design.seed, **self.wanted)
        if plan.contributions is None or not plan.contributions.any():
            return plan.verdict
        return _Made(algorithm, plan.allocation, plan.verdict, len(measurement.table.contributions))

    def _sought(self, name: str, algorithm: Algorithm) -> _Made:
        from fedaccord.federation.eqfed.seek import seek_equilibrium

        def tell(now: Any) -> None:
            self.told(Stage(f"EQ-FED for {name}: {now.phase}", now.done, now.budget))

        found = seek_equilibrium(
            self.source,
            algorithm,
            budget=self.seeking,
            checks=FEWEST_CHECKS,
            levels=(self.goals.level,),
            # Half of the misses that the goal allows are left to what a few trials cannot tell.
            confidence=(1 + self.goals.satisfied) / 2,
            seed=self.design.seed,
            progress=tell,
            **self.place,
        )
        given = f"{found.total:,} points of {len(found.contributors):,} agents"
        story = f"EQ-FED found {given}. How it ended: {ENDINGS[found.ending]}."
        return _Made(found.algorithm, found.plan, story, found.runs)


def _audited(
    source: Source,
    ready: Mapping[str, _Made],
    asked: Mapping[str, Any],
    place: Mapping[str, Any],
    told: Callable[[Stage], None],
) -> tuple[DefectionAudit, DefectionAudit]:
    """Audit all contenders by P1 and by P2, with the same workers."""
    algorithms = {name: one.algorithm for name, one in ready.items()}
    plans = {name: one.plan for name, one in ready.items() if one.plan is not None}
    with open_executor(source, **place) as executor:

        def audited(protocol: str) -> DefectionAudit:
            def tell(now: Progress) -> None:
                what = f"{protocol} of {len(algorithms)} algorithms"
                told(Stage(what, now.done, now.total, now))

            return defection_curves(
                source,
                algorithms,
                protocol=protocol,
                plan=plans,
                engine=_opened(executor.engine),
                store=executor.store,
                progress=tell,
                **asked,
            )

        return audited("P1"), audited("P2")


def _opened(engine: Engine) -> EngineMaker:
    """Lend an engine that is open already, and is to stay so."""

    def lent(source: Source, *, workers: int | None) -> Any:
        return contextlib.nullcontext(engine)

    return lent
