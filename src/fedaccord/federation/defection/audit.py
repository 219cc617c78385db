"""The audit of defection: is a client that gives less than it should still satisfied?

Every trial trains the federation with everybody's full contribution, and again with one client's
cut to each level. All runs of a trial have the same data and the same seed, so that only the cut
tells them apart.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fedaccord._checks import simplest_fraction
from fedaccord._display import show_progress
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.config.sections import AuditOptions, takes
from fedaccord.federation.defection.curves import (
    Contributions,
    DefectionAudit,
    Proportion,
    Trial,
    clustered,
    count_all_satisfied,
    count_defectors_satisfied,
    sum_up,
)
from fedaccord.federation.runs.engines import Engine, Source
from fedaccord.federation.runs.execute import Executor, Progress, open_executor
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.runs.trials import PLANNING
from fedaccord.federation.training.rng import stream

if TYPE_CHECKING:
    from fedaccord.allocation import Allocation

Algorithms: TypeAlias = Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm]
# A cell is not stopped early before this many trials: by chance the first few often agree.
FEWEST_TRIALS = 5
# How many trials find the contributions to prescribe.
PLANNING_TRIALS = 3


@dataclass(frozen=True)
class Known:
    """What is known so far of one algorithm at one level.

    algorithm: its name.
    level: of the defector.
    satisfied: how often the defector was, in the trials finished up to the first that is not.
    stopped: whether that is narrow enough to leave it there.
    """

    algorithm: str
    level: float
    satisfied: Proportion
    stopped: bool


@dataclass(frozen=True)
class Design:
    """An audit of a federation: which runs it takes, checked before any of them is made.

    source: a federation, or what deals one to each trial.
    algorithms: as `defection_curves` has them; then by name.
    options: what was asked.
    first: the number of the first trial.
    """

    source: Source
    algorithms: Mapping[str, Algorithm]
    options: AuditOptions
    first: int = 0

    def __init__(
        self, source: Source, algorithms: Algorithms, options: AuditOptions, first: int = 0
    ) -> None:
        named = _name_each(algorithms)
        # A frozen dataclass is filled through its dict.
        vars(self).update(source=source, algorithms=named, options=options, first=first)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""
        return tuple(self.source.names)

    @cached_property
    def points(self) -> Contributions:
        """How many points each client could bring."""
        return tuple(int(n) for n in self.source.points)

    @cached_property
    def fingerprint(self) -> str:
        """Of the source of federations."""
        return self.source.fingerprint

    def run(
        self,
        algorithm: str,
        contributions: Contributions,
        trial: int,
        *,
        full: Contributions | None = None,
    ) -> Run:
        """Return a run of the audit; the same arguments always mean the same run.

        algorithm: its name.
        contributions: how many points each client brings.
        trial: which draw of clients and of chance.
        full: how many it has pledged; all its points where left out.
        """
        return Run(
            source=self.fingerprint,
            algorithm=self.pledge(algorithm, full),
            contributions=contributions,
            base_seed=self.options.seed,
            trial=trial,
        )

    def pledge(self, algorithm: str, full: Contributions | None = None) -> Algorithm:
        """Return an algorithm with what clients have pledged; a defector has pledged it too."""
        return self.algorithms[algorithm].committed(self.points if full is None else full)

    def defect(self, full: Contributions, client: int, level: float) -> Contributions:
        """Return what clients contribute when one of them defects.

            P1:  min(theta_i, level * points_i), since it has no more data left
            P2:  level * theta_i

        full: theta, what everybody is to bring.
        client: i, who defects.
        level: what part of its points, or of what it is to bring, stays.
        """
        if self.options.protocol == "P2":
            return cut(full, client, level)
        left = min(full[client], cut(self.points, client, level)[client])
        return (*full[:client], left, *full[client + 1 :])

    def defectors_of(self, trial: int) -> range | list[int]:
        """Return who defects in a trial; in any k trials from a multiple of k, everyone once."""
        clients = len(self.names)
        if self.options.defectors == "each":
            return range(clients)
        block, place = divmod(trial, clients)
        return [int(stream(self.options.seed, "defectors", block).permutation(clients)[place])]

    def choose_defectors(self, trial: int, full: Contributions) -> list[int]:
        """Return who defects in a trial, at least one contributor among them.

        A random client that is to contribute nothing cannot defect. In its trials a contributor is
        drawn as well, each equally often.

        trial: which.
        full: what everyone is to contribute.
        """
        drawn = list(self.defectors_of(trial))
        giving = [i for i, points in enumerate(full) if points]
        if not giving or any(full[i] for i in drawn):
            return drawn
        block, place = divmod(trial, len(giving))
        order = stream(self.options.seed, "contributors", block).permutation(giving)
        return [*drawn, int(order[place])]

    @property
    def drawn(self) -> int:
        """How many clients defect in a trial."""
        return len(self.names) if self.options.defectors == "each" else 1


@takes(AuditOptions)
def defection_curves(
    source: Source,
    algorithms: Algorithms,
    *,
    options: AuditOptions,
    workers: int | None = None,
    engine: str | Callable[..., Engine] = "local",
    store: RunStore | str | Path | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
) -> DefectionAudit:
    """Train with one client's contribution cut, and count how often it is satisfied all the same.

        P1:  client i has L * points_i left and brings those, everybody else all its points
        P2:  client i brings L * theta_i, everybody else theta_j, the contribution prescribed

    rounded to whole points, at least one. Where a plan prescribes theta under P1 as well, i brings
    the smaller of theta_i and L * points_i, everybody else theta_j. A client of whom nothing is
    asked (theta_i = 0) cannot defect: the random client may be it, the random contributor may not.

    An algorithm that goes by what clients have pledged gets all of theta, whoever defects.

    With a width a level stops after the fewest trials, five or more, whose interval for the
    random client is as narrow; looking so often makes the intervals hold a little less often than
    they say.

    source: a federation, or what deals one to each trial.
    algorithms: to be compared; give a dict to name them, where two are of one kind.
    options: AuditOptions.
    workers: how many runs at a time; where left out one, or on Ray one per CPU of the cluster.
    engine: where the runs are made: "local", in Flower's simulation ("flower") or on Ray ("ray");
        or what makes an engine of a source and workers=, such as RayEngine with an address.
    store: a file of finished runs, or a RunStore; runs that are in it are not made again.
    progress: called with how far things are whenever a run starts or finishes; True shows a bar.
    """
    design = Design(source, algorithms, options)
    plans = read_plans(design)
    with (
        show_progress(progress) as tell,
        open_executor(source, engine=engine, workers=workers, store=store) as executor,
    ):
        return run_audit(design, plans, executor, tell)


def run_audit(
    design: Design,
    plans: Mapping[str, Contributions],
    executor: Executor,
    progress: Callable[[Progress], None] | None = None,
) -> DefectionAudit:
    """Return what comes of an audit whose workers are there already.

    design: of the audit.
    plans: what algorithms are held to, of those that have a plan.
    executor: makes the runs that it does not know yet.
    progress: called with how far things are.
    """
    started = time.perf_counter()
    work = _Work(design, executor, progress)
    full = work.find_plans(plans)
    cells = work.score(full)
    counted = {id(o): o for cell in cells for trial in cell.finished for _, o in trial}.values()
    return DefectionAudit(
        options=design.options,
        clients=design.names,
        curves=tuple(
            sum_up(
                *(name, design.pledge(name, theta).to_dict(), theta),
                clients=design.names,
                levels=design.options.levels,
                trials={cell.level: cell.finished for cell in cells if cell.algorithm == name},
                drawn=design.drawn,
            )
            for name, theta in full.items()
        ),
        versions=tuple(sorted({outcome.versions for outcome in counted})),
        source=design.fingerprint,
        requirements=tuple(float(r) for r in design.source.requirements),
        reused=executor.reused,
        run_seconds=sum(outcome.seconds for outcome in counted),
        seconds=time.perf_counter() - started,
    )


class _Cell:
    """The trials of one algorithm at one level, counted in order up to the first unfinished."""

    def __init__(self, design: Design, algorithm: str, level: float, full: Contributions) -> None:
        self.algorithm = algorithm
        self.level = level
        self.finished: list[Trial] = []
        self.stopped = False
        self.satisfied = clustered(np.zeros((0, 1)))
        self._design = design
        self._full = full
        self._next = self.runs(design.first)

    def runs(self, trial: int) -> list[tuple[int, Run]]:
        """List who defects in a trial, and the run that shows what comes of it."""
        design, full = self._design, self._full
        return [
            (i, design.run(self.algorithm, design.defect(full, i, self.level), trial, full=full))
            for i in design.choose_defectors(trial, full)
        ]

    def advance(self, outcomes: Mapping[str, Outcome]) -> None:
        """Count the trials that are finished now; the order in which runs end does not matter."""
        while not self.ended and all(run.key in outcomes for _, run in self._next):
            self.finished.append([(client, outcomes[run.key]) for client, run in self._next])
            self.satisfied = count_defectors_satisfied(self.finished, self._design.drawn)
            widest, width = self.satisfied.width, self._design.options.width
            if self.level == 1:
                widest = max(widest, count_all_satisfied(self.finished).width)
            enough = len(self.finished) >= FEWEST_TRIALS and width is not None
            self.stopped = enough and widest <= (width or 0)
            if not self.ended:
                self._next = self.runs(self._design.first + len(self.finished))

    @property
    def ended(self) -> bool:
        return self.stopped or len(self.finished) == self._design.options.trials

    def left(self, outcomes: Mapping[str, Outcome]) -> int:
        """Count the runs to come, unless it stops early, that no other cell makes."""
        if self.ended:
            return 0
        own = [r.key for _, r in self._next if self.level == 1 or r.contributions != self._full]
        to_come = (self._design.options.trials - len(self.finished)) * len(set(own))
        return to_come - sum(key in outcomes for key in set(own))


class _Work:
    """Makes the runs that are not in the store, and keeps account."""

    def __init__(
        self, design: Design, executor: Executor, progress: Callable[[Progress], None] | None
    ) -> None:
        self._design = design
        self._executor = executor
        self._progress = progress
        self._names: dict[str, str] = {}
        self._seconds: dict[str, list[float]] = {name: [] for name in design.algorithms}
        self._cells: list[_Cell] = []
        self._plans: list[tuple[str, Run]] = []

    def find_plans(self, plans: Mapping[str, Contributions]) -> dict[str, Contributions]:
        """Return what each algorithm is held to: its plan, all points, or what it uses of them."""
        full = {name: plans.get(name, self._design.points) for name in self._design.algorithms}
        without = [name for name in full if name not in plans]
        if self._design.options.protocol == "P1" or not without:
            return full
        # Until the plans are known the work that follows them is guessed from full contributions.
        self._cells = self._new_cells(full)
        trials = range(PLANNING, PLANNING + PLANNING_TRIALS)
        wanted = {n: [self._design.run(n, full[n], trial) for trial in trials] for n in without}
        self._plans = [(name, run) for name, runs in wanted.items() for run in runs]
        self._make(self._plans)
        self._plans = []
        for name, runs in wanted.items():
            used = np.mean([self._executor.outcomes[run.key].unique for run in runs], axis=0)
            full[name] = tuple(int(n) for n in np.ceil(used))
        return full

    def score(self, full: Mapping[str, Contributions]) -> list[_Cell]:
        """Make the runs of all cells, one trial after the other."""
        self._cells = self._new_cells(full)
        self._make(self._list_runs())
        # Runs that the executor knew before are passed over in silence.
        for cell in self._cells:
            cell.advance(self._executor.outcomes)
        return self._cells

    def _new_cells(self, full: Mapping[str, Contributions]) -> list[_Cell]:
        # Full contribution always is a cell: it tells whether all are satisfied.
        levels = (1.0, *(level for level in self._design.options.levels if level != 1))
        return [_Cell(self._design, n, level, full[n]) for n in full for level in levels]

    def _list_runs(self) -> Iterator[tuple[str, Run]]:
        first = self._design.first
        for trial in range(first, first + self._design.options.trials):
            for cell in self._cells:
                if not cell.stopped:
                    yield from ((cell.algorithm, run) for _, run in cell.runs(trial))

    def _make(self, wanted: Iterable[tuple[str, Run]]) -> None:
        """Make the runs, and note which algorithm asked for each first."""

        def note_names() -> Iterator[Run]:
            for name, run in wanted:
                self._names.setdefault(run.key, name)
                yield run

        self._executor.execute(note_names(), take=self._take, report=self._report)

    def _take(self, run: Run, outcome: Outcome) -> None:
        self._seconds[self._names[run.key]].append(outcome.seconds)
        for cell in self._cells:
            cell.advance(self._executor.outcomes)

    def _report(self) -> None:
        if self._progress is None:
            return
        executor = self._executor
        left = dict.fromkeys(self._design.algorithms, 0)
        for name, run in self._plans:
            left[name] += run.key not in executor.outcomes
        for cell in self._cells:
            left[cell.algorithm] += cell.left(executor.outcomes)
        # Runs under way of cells that stopped since are still to come.
        to_come = max(sum(left.values()), len(executor.under_way))
        self._progress(
            Progress(
                done=len(executor.outcomes),
                reused=executor.reused,
                total=len(executor.outcomes) + to_come,
                running=len(executor.under_way),
                seconds=time.perf_counter() - executor.started,
                left=self._time_left(left),
                planning=bool(self._plans),
                known=tuple(
                    Known(cell.algorithm, cell.level, cell.satisfied, cell.stopped)
                    for cell in self._cells
                ),
            )
        )

    def _time_left(self, left: Mapping[str, int]) -> float | None:
        every = [seconds for runs in self._seconds.values() for seconds in runs]
        if not every:
            return None
        # The median: a worker's first run is slow. An algorithm that has not run yet is taken to
        # be as slow as those that have.
        usual = {name: statistics.median(runs or every) for name, runs in self._seconds.items()}
        work = sum(count * usual[name] for name, count in left.items())
        # As many at a time as now: nodes of a cluster come and go.
        return work / max(1, len(self._executor.under_way))


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


def _name_each(algorithms: Algorithms) -> dict[str, Algorithm]:
    if isinstance(algorithms, Algorithm):
        algorithms = [algorithms]
    pairs = (
        list(algorithms.items())
        if isinstance(algorithms, Mapping)
        else [(getattr(a, "name", ""), a) for a in algorithms]
    )
    if not pairs:
        raise InputError("there is no algorithm to audit; give at least one, such as FedAvg()")
    for name, algorithm in pairs:
        if not isinstance(algorithm, Algorithm):
            raise InputError(f"an algorithm is needed, such as FedAvg(); got {algorithm!r}")
        if [other for other, _ in pairs].count(name) > 1:
            raise InputError(
                f"two algorithms are called {name}; give a dict with a name for each of them"
            )
    return dict(pairs)


def read_plans(design: Design) -> dict[str, Contributions]:
    """Return the contributions of each algorithm that has a plan, or raise an InputError.

    design: of the audit.
    """
    plan = design.options.plan
    if plan is None:
        return {}

    from fedaccord.allocation import Allocation

    if isinstance(plan, str):
        plan = Allocation.load(plan)
    if isinstance(plan, Allocation):
        return dict.fromkeys(design.algorithms, _round_up(design, plan, "the plan"))
    for name in plan:
        if name not in design.algorithms:
            known = ", ".join(design.algorithms)
            raise InputError(f"there is a plan for {name}, which is not audited; there is {known}")
    return {name: _round_up(design, one, f"the plan of {name}") for name, one in plan.items()}


def _round_up(design: Design, plan: Allocation, what: str) -> Contributions:
    """Return the contributions of a plan in the clients' order, rounded up to whole points."""
    names, points = design.names, design.points
    try:
        amounts = plan.ordered_for(names).contributions
    except InputError as error:
        raise InputError(f"{what} does not fit: {error}") from None
    if len(amounts) != len(names):
        raise InputError(f"{what} is for {len(amounts)} clients; there are {len(names)}")
    # Solvers give 80.00000001 for 80, which is not 81.
    whole = tuple(math.ceil(round(float(amount), 6)) for amount in amounts)
    for name, wanted, there in zip(names, whole, points, strict=True):
        if wanted > there:
            raise InputError(
                f"{what} asks {name} for {wanted} points, and it has {there}; lower that, or "
                "give it more data"
            )
    if not any(whole):
        raise InputError(f"{what} asks nobody for anything; somebody must contribute")
    return whole
