"""Compare algorithms on a federation, each with a plan of its own.

A plan is "own" (what the algorithm uses when all bring everything), "all" (every point),
"measured" (a stable plan of the game that pilots show), "sought" (what EQ-FED finds), or given.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fedaccord._lazy import show_progress
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError, OnlyPart, UnreachableError
from fedaccord.federation.algorithms.base import Algorithm, FedAvg
from fedaccord.federation.config.sections import (
    PLANS,
    AuditOptions,
    FrontierOptions,
    takes,
)
from fedaccord.federation.defection.audit import (
    Algorithms,
    Design,
    check_group,
    read_plans,
    run_audit,
)
from fedaccord.federation.defection.curves import DefectionAudit
from fedaccord.federation.eqfed.result import ENDINGS
from fedaccord.federation.partition import Halved, varies_by_trial
from fedaccord.federation.runs.execute import EngineMaker, Executor, Progress, Source, open_executor
from fedaccord.federation.runs.store import RunStore
from fedaccord.federation.runs.trials import PLANNING
from fedaccord.frontier.result import Contender, Frontier, Goals

if TYPE_CHECKING:
    from fedaccord._checks import Vector
    from fedaccord.measurement.fit import Measurement
    from fedaccord.planning.result import Plan

__all__ = ["Contender", "Frontier", "Goals", "Stage", "compare_algorithms"]

PlanOf: TypeAlias = "str | Path | Allocation | Sequence[float]"
# What is asked of EQ-FED's own verification: the audit that follows tells more.
FEWEST_CHECKS = 1


@dataclass(frozen=True)
class Stage:
    """How far a comparison is.

    what: is under way, in a few words.
    done: runs finished, those found in the store among them.
    total: the expected number of runs of this stage.
    audit: how far the audit is, where one is under way.
    """

    what: str
    done: int
    total: int
    audit: Progress | None = None


@takes(FrontierOptions, seed=0)
def compare_algorithms(
    source: Source,
    algorithms: Algorithms,
    *,
    plans: Mapping[str, PlanOf] | None = None,
    options: FrontierOptions,
    goals: Goals | None = None,
    workers: int | None = None,
    engine: str | EngineMaker = "local",
    store: RunStore | str | Path | None = None,
    progress: Callable[[Stage], None] | bool | None = None,
) -> Frontier:
    """Compare algorithms, each with its plan: goals reached, gains from defecting, samples used.

    Plans are made on trials of their own. Then each algorithm is audited by P1 and by P2, on trials
    that no plan was made on. All runs of a trial have the same data and the same seed.

    source: a federation, or what deals one to each trial.
    algorithms: to be compared; use a dict to name them if two are of one kind.
    plans: by the algorithms' names "own", "all", "measured", "sought", an allocation or its
        numbers, or a file that has one; "own" where left out.
    options: FrontierOptions.
    goals: the criteria; those of the options where left out.
    workers: number of parallel runs.
    engine: where the runs are made, as `defection_curves` has it.
    store: a file of finished runs, or a RunStore; runs that are in it are not made again.
    progress: called with the progress whenever a run starts or finishes; True shows a bar.
    """
    started = time.perf_counter()
    audit = _choose_audit(options)
    choosing, judging = _split(source, plans or {}, audit.seed)
    design = Design(judging, algorithms, audit)
    goals = goals or _choose_goals(options)
    base = _check_options(design, options, goals)
    given, words = _read_given(design, plans or {})
    with contextlib.ExitStack() as stack:
        kept = store if isinstance(store, RunStore) else stack.enter_context(RunStore(store))
        place = dict[str, Any](engine=engine, workers=workers, store=kept)
        report = stack.enter_context(show_progress(progress)) or (lambda stage: None)
        planner = _Planner(source, choosing, design, place, report, goals, options)
        made = {n: given.get(n) or planner.plan(n, words[n]) for n in design.algorithms}
        missing = {name: one for name, one in made.items() if isinstance(one, str)}
        ready = {name: one for name, one in made.items() if not isinstance(one, str)}
        if base in missing:
            raise InputError(f"there is no plan for {base}, the baseline: {missing[base]}")
        audits = _audit_all(design, ready, options, goals, place, report)
    p1, p2 = audits["P1"], audits["P2"]
    return Frontier(
        contenders=tuple(
            Contender(
                *(name, words[name], one.story, one.runs, p1.curve(name), p2.curve(name)),
                further={what: audits[what].curve(name) for what in list(audits)[2:]},
            )
            for name, one in ready.items()
        ),
        unplanned=missing,
        baseline=base,
        goals=goals,
        clients=design.names,
        requirements=p2.requirements,
        measures=p2.measures,
        points=design.points,
        levels=audit.levels,
        trials=audit.trials,
        defectors=audit.defectors,
        scored_on=p2.scored_on,
        seed=audit.seed,
        versions=tuple(sorted({v for audit in audits.values() for v in audit.versions})),
        source=design.fingerprint,
        run_seconds=sum(audit.run_seconds for audit in audits.values()),
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
    """Return what plans are made by, and what they are judged by: points that chose nothing."""
    chosen = any(isinstance(plan, str) and plan in PLANS[2:] for plan in plans.values())
    if not chosen or varies_by_trial(source, 0, PLANNING):
        return source, source
    # The halves that EQ-FED chooses and verifies by.
    return Halved(source, "first", seed=seed), Halved(source, "second", seed=seed)


def _check_options(design: Design, options: FrontierOptions, goals: Goals) -> str:
    """Return the name of the baseline, or raise an InputError."""
    check_group(options.group, len(design.names))
    base, levels = options.baseline, design.options.levels
    if base is not None and base not in design.algorithms:
        known = ", ".join(design.algorithms)
        raise InputError(f"the baseline must be one of {known}; got {base!r}")
    if goals.level not in levels:
        have = ", ".join(f"{level:g}" for level in levels)
        raise InputError(
            f"levels must include {goals.level:g}, the level of the criterion defector_gives; got "
            f"{have}"
        )
    averaging = [n for n, a in design.algorithms.items() if a.kind == FedAvg.kind]
    return base or next(iter(averaging or design.algorithms))


def _read_given(
    design: Design, plans: Mapping[str, PlanOf]
) -> tuple[dict[str, _Made], dict[str, str]]:
    """Return the plans that need no training, and how each plan is made, before anything trains."""
    for name in plans:
        if name not in design.algorithms:
            known = ", ".join(design.algorithms)
            raise InputError(
                f"there is a plan for {name}, which is not compared; compared: {known}"
            )
    found: dict[str, _Made] = {}
    words: dict[str, str] = {}
    for name, algorithm in design.algorithms.items():
        plan = plans.get(name, PLANS[0])
        # Of a file its name, wherever it is.
        words[name] = Path(plan).name if isinstance(plan, str | Path) else "given"
        if isinstance(plan, Allocation):
            found[name] = _Made(algorithm, plan)
        elif not isinstance(plan, str | Path):
            found[name] = _Made(algorithm, Allocation(plan, design.names))
        elif plan == "own":
            found[name] = _Made(algorithm, None)
        elif plan == "all":
            everything = [float(n) for n in design.points]
            found[name] = _Made(algorithm, Allocation(everything, design.names))
        elif plan not in PLANS:
            if not Path(plan).exists():
                raise InputError(
                    f"the plan of {name} must be one of {', '.join(PLANS)}, or a file that has it; "
                    f"there is no file {plan}"
                )
            found[name] = _Made(algorithm, Allocation.load(plan))
    with_plan = {name: one.plan for name, one in found.items() if one.plan is not None}
    read_plans(replace(design, options=replace(design.options, plan=with_plan)))
    for name in [name for name in words if name not in found]:
        # What could not train with everyone's points is refused before it is planned for.
        try:
            design.algorithms[name].begin(np.array(design.points))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    return found, words


@dataclass(frozen=True)
class _Planner:
    """Makes the plans that take training.

    source: what to plan for.
    choosing: the same, as pilots may see it.
    design: of the comparison.
    place: where runs are made and kept.
    report: called with how far things are.
    goals: what is to be reached.
    options: what was asked.
    """

    source: Source
    choosing: Source
    design: Design
    place: Mapping[str, Any]
    report: Callable[[Stage], None]
    goals: Goals
    options: FrontierOptions

    def plan(self, name: str, word: str) -> _Made | str:
        """Return a plan, or the reason why there is none."""
        algorithm = self.design.algorithms[name]
        make = self._measure if word == "measured" else self._seek
        try:
            return make(name, algorithm)
        except UnreachableError as error:
            return str(error)

    def _measure(self, name: str, algorithm: Algorithm) -> _Made | str:
        from fedaccord.frontier.from_federation import from_federation, plan_roughly

        def aim(first: Measurement) -> Vector:
            given = self._plan_for(first).contributions
            return plan_roughly(first) if given is None or not given.any() else given

        what = f"pilots of {name}"
        measurement = from_federation(
            self.choosing,
            algorithm,
            budget=self.options.pilots,
            seed=self.design.options.seed,
            # The audits that follow leave runs in the store: whoever goes on after an
            # interruption is to plan by the pilots that were there before.
            others=False,
            aim=aim,
            progress=lambda done, total: self.report(Stage(what, done, total)),
            **self.place,
        )
        plan = self._plan_for(measurement)
        if plan.contributions is None or not plan.contributions.any():
            return plan.verdict
        allocation = plan.allocation
        if algorithm.withholds:
            from fedaccord.planning.reserve import hold_reserve

            cover = float(getattr(algorithm, "cover", 1.0))
            allocation = hold_reserve(plan.game, allocation, cover=cover)
        return _Made(algorithm, allocation, plan.verdict, len(measurement.table.contributions))

    def _plan_for(self, measurement: Measurement) -> Plan:
        """Return the plan of a measurement, for goals that are judged as the audits judge them."""
        from fedaccord.planning.plan import make_plan

        return make_plan(
            measurement,
            levels=[level for level in self.design.options.levels if level < 1],
            probability=self.options.probability,
            judged="measured" if self.design.options.scored_on is None else "true",
            prefer=self.options.prefer,  # type: ignore[arg-type]
            seed=self.design.options.seed,
        )

    def _seek(self, name: str, algorithm: Algorithm) -> _Made:
        from fedaccord.federation.eqfed.seek import seek_equilibrium

        def tell(now: Any) -> None:
            self.report(Stage(f"EQ-FED for {name}: {now.phase}", now.done, now.budget))

        found = seek_equilibrium(
            self.source,
            algorithm,
            budget=self.options.seeking,
            checks=FEWEST_CHECKS,
            levels=(self.goals.level,),
            # Half of the misses that the goal allows are left to what a few trials cannot tell.
            confidence=(1 + self.goals.satisfied) / 2,
            seed=self.design.options.seed,
            progress=tell,
            **self.place,
        )
        given = f"{found.total:,} samples of {len(found.contributors):,} agents"
        story = f"EQ-FED found {given}. How it ended: {ENDINGS[found.ending]}."
        return _Made(found.algorithm, found.plan, story, found.runs)


def _choose_audit(options: FrontierOptions) -> AuditOptions:
    """Return the options of an audit that the comparison shares."""
    return AuditOptions(
        levels=options.levels,
        trials=options.trials,
        protocol="P2",
        defectors=options.defectors,
        scored_on=options.scored_on,
        seed=options.seed or 0,
    )


def _choose_goals(options: FrontierOptions) -> Goals:
    """Return the criteria that the options name."""
    return Goals(
        satisfied=options.all_reach,
        cut=options.defector_reaches,
        level=options.defector_gives,
        samples=options.samples_used,
        others=options.others_reach,
    )


def _audit_all(
    design: Design,
    ready: Mapping[str, _Made],
    options: FrontierOptions,
    goals: Goals,
    place: Mapping[str, Any],
    report: Callable[[Stage], None],
) -> dict[str, DefectionAudit]:
    """Audit all contenders with the same workers; return the audits by what they are of.

    P1 and P2 come first, then those of defectors that do more than give less.
    """
    algorithms = {name: one.algorithm for name, one in ready.items()}
    plan = {name: one.plan for name, one in ready.items() if one.plan is not None}
    source, found = design.source, {}
    with open_executor(source, **place) as executor:
        for what, asked in _list_audits(replace(design.options, plan=plan), options, goals):
            stage = f"{what} of {len(algorithms)} algorithms"

            def tell(now: Progress, stage: str = stage) -> None:
                report(Stage(stage, now.done, now.total, now))

            one = Design(source, algorithms, asked)
            fresh = Executor(executor.engine, executor.store)
            # A part goes on to the next audit.
            with contextlib.suppress(OnlyPart):
                found[what] = run_audit(one, read_plans(one), fresh, tell)
        if executor.store.part is not None:
            raise executor.store.end_part()
    return found


def _list_audits(
    asked: AuditOptions, options: FrontierOptions, goals: Goals
) -> Iterator[tuple[str, AuditOptions]]:
    """Yield the audits to make, each with what it is of.

    Where a plan asks for everything, a defector of P1 gives what one of P2 gives: as both may go on
    alone, the runs are the same.
    """
    asked = replace(asked, kept_data=options.kept_data)
    yield "P1", replace(asked, protocol="P1")
    yield "P2", replace(asked, protocol="P2")
    further = replace(asked, protocol="P2", levels=(1.0, goals.level))
    if options.group > 1:
        yield f"{options.group} together", replace(further, group=options.group)
    for filler in options.fillers:
        found = filler == "copies" and options.detect_copies
        what = f"{filler}, detected" if found else filler
        yield what, replace(further, filler=filler, detect_copies=found)
