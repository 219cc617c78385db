"""The audit of defection: does a client that gives less than it should still reach its goal?

Every trial trains the federation with everybody's full contribution, and again with one client's
cut to each level. All runs of a trial have the same data and the same seed, so that only the cut
tells them apart.
"""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from fedaccord._lazy import show_progress
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.config.sections import AuditOptions, Plans, takes
from fedaccord.federation.defection.curves import (
    Contributions,
    DefectionAudit,
    DefectionCurve,
    Group,
    Reading,
    Rows,
    Sharing,
    Trial,
    at_end,
    compare_curves,
    cut,
    list_all_satisfied,
    list_satisfied,
    on_scored,
    sum_up,
)
from fedaccord.federation.defection.intervals import Proportion, clustered
from fedaccord.federation.defection.sequences import expect_trials, sequence
from fedaccord.federation.defection.tactic import FAKE_SAMPLES, Tactic
from fedaccord.federation.partition import find_measures
from fedaccord.federation.runs.execute import Engine, Executor, Progress, Source, open_executor
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.runs.trials import PLANNING
from fedaccord.federation.training.rng import stream
from fedaccord.wording import count, pluralize

if TYPE_CHECKING:
    from fedaccord.allocation import Allocation
    from fedaccord.federation.scoring import Scored

Algorithms: TypeAlias = Algorithm | Sequence[Algorithm] | Mapping[str, Algorithm]
# Of more groups than this, one is drawn in each trial.
MOST_GROUPS = 12
# How many trials find the contributions to prescribe.
PLANNING_TRIALS = 3


@dataclass(frozen=True)
class Known:
    """What is known so far of one algorithm at one level.

    algorithm: its name.
    level: of the defector.
    satisfied: how often the defector reached its goal, in the trials up to the first unfinished.
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
        check_group(options.group, len(source.names))
        named = _hold_reserves(_name_each(algorithms), source, options.plan)
        if options.scored_on is not None:
            # Most audits judge models on validation samples.
            from fedaccord.federation.scoring import Scored

            if not isinstance(source, Scored):
                source = Scored(source, options.scored_on)
            # How many "all" are is known from here on.
            options = replace(options, scored_on=source.count)
        # A frozen dataclass is filled through its dict.
        vars(self).update(source=source, algorithms=named, options=options, first=first)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""
        return tuple(self.source.names)

    @cached_property
    def points(self) -> Contributions:
        """How many samples each client could give."""
        return tuple(int(n) for n in self.source.points)

    @cached_property
    def fingerprint(self) -> str:
        """Of the source of federations."""
        return self.source.fingerprint

    @cached_property
    def scored(self) -> str:
        """Which further samples models are judged on; "" for none."""
        return "" if self.options.scored_on is None else cast("Scored", self.source).key

    @property
    def reading(self) -> Reading:
        """What says which clients reach their goals in a run."""
        return on_scored if self.scored else at_end

    @property
    def share(self) -> Sharing:
        """What makes shares with intervals; with a width, intervals that hold at every look."""
        width = self.options.width
        return clustered if width is None else functools.partial(sequence, width=width)

    def count_block(self, full: Iterable[Contributions]) -> int:
        """Return in how many trials all defect equally often.

        Within them, who has defected tells who will, and a gambler could use that. Over all of
        them it cannot: the mean of what each client brings it is 1, so their product is at most 1.

        full: what each algorithm asks of everybody.
        """
        blocks = [1]
        for giving in (sum(map(bool, theta)) or 1 for theta in full):
            groups = math.comb(giving, min(self.options.group, giving))
            if self.options.group > 1:
                few = self.options.defectors == "each" and groups <= MOST_GROUPS
                blocks.append(1 if few else groups)
            elif self.options.defectors == "random":
                blocks.append(math.lcm(len(self.names), giving))
        return math.lcm(*blocks)

    def run(
        self,
        algorithm: str,
        contributions: Contributions,
        trial: int,
        *,
        full: Contributions | None = None,
        judged: bool = True,
        tactic: Tactic | None = None,
        goes_on: Group = (),
    ) -> Run:
        """Return a run of the audit; the same arguments always mean the same run.

        algorithm: its name.
        contributions: how many samples each client gives.
        trial: which draw of clients and of chance.
        full: how many it has pledged; all its samples where left out.
        judged: whether it counts, and is judged on scored samples if the audit is.
        tactic: what defectors do beyond giving less.
        goes_on: who goes on alone when training has ended.
        """
        return Run(
            source=self.fingerprint,
            algorithm=self.pledge(algorithm, full),
            contributions=contributions,
            base_seed=self.options.seed,
            trial=trial,
            scored=self.scored if judged else "",
            tactic=tactic,
            goes_on=goes_on,
        )

    def defecting_run(
        self, algorithm: str, full: Contributions, group: Group, level: float, trial: int
    ) -> Run:
        """Return the run in which a group defects."""
        given = self.defect(full, group, level)
        giving = tuple(i for i in group if given[i] < full[i])
        filler = self.options.filler if giving and not self.options.detect_copies else None
        tactic = None
        if filler is not None:
            genuine = tuple(given[i] for i in giving) if filler in FAKE_SAMPLES else ()
            # The defector says that it gives all that it pledged. Copies that are detected count
            # for nothing: the run is then that of a defector that gives less.
            tactic, given = Tactic(giving, filler, genuine), full
        goes_on = giving if self.options.kept_data else ()
        return self.run(algorithm, given, trial, full=full, tactic=tactic, goes_on=goes_on)

    def pledge(self, algorithm: str, full: Contributions | None = None) -> Algorithm:
        """Return an algorithm with what clients have pledged; a defector has pledged it too."""
        return self.algorithms[algorithm].committed(self.points if full is None else full)

    def defect(self, full: Contributions, group: Group, level: float) -> Contributions:
        """Return what clients contribute when some of them defect.

            P1:  min(theta_i, level * points_i), since it has no more data left
            P2:  level * theta_i

        full: theta, what everybody is to bring.
        group: who defects.
        level: what part of its points, or of what it is to bring, stays.
        """
        given = list(full)
        for i in group:
            most = full if self.options.protocol == "P2" else self.points
            given[i] = min(full[i], cut(most, i, level)[i])
        return tuple(given)

    def describe_work(self, full: Mapping[str, Contributions]) -> list[object]:
        """Return what parts of the audit must have in common: all but levels and trials."""
        asked = self.options
        pledged = {name: str(self.pledge(name, theta).to_dict()) for name, theta in full.items()}
        how = (asked.protocol, asked.defectors, asked.group, asked.filler, asked.detect_copies)
        return [self.fingerprint, self.scored, asked.seed, asked.kept_data, *how, full, pledged]

    def defectors_of(self, trial: int) -> range | list[int]:
        """Return who defects in a trial; in any k trials from a multiple of k, everyone once."""
        clients = len(self.names)
        if self.options.defectors == "each":
            return range(clients)
        block, place = divmod(trial, clients)
        return [int(stream(self.options.seed, "defectors", block).permutation(clients)[place])]

    def choose_groups(self, trial: int, full: Contributions) -> list[Group]:
        """Return the groups that defect in a trial, each in a run of its own.

        Groups of several are drawn among the contributors: all of them where each client defects
        in every trial and there are not too many, or else one at random.
        """
        if self.options.group == 1:
            return [(i,) for i in self.choose_defectors(trial, full)]
        giving = [i for i, points in enumerate(full) if points] or [0]
        groups = list(combinations(giving, min(self.options.group, len(giving))))
        if self.options.defectors == "each" and len(groups) <= MOST_GROUPS:
            return groups
        block, place = divmod(trial, len(groups))
        return [groups[stream(self.options.seed, "groups", block).permutation(len(groups))[place]]]

    def choose_defectors(self, trial: int, full: Contributions) -> list[int]:
        """Return who defects in a trial, at least one contributor among them.

        A random client that is to contribute nothing cannot defect. In its trials a contributor is
        drawn as well, each with the same probability.
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
        """How many of a trial's groups are drawn from all clients, at most."""
        if self.options.group > 1:
            return MOST_GROUPS
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
    """Train while one client gives less, and count how often that client still reaches its goal.

        P1:  client i gives L * points_i, its remaining data, and every other client all its samples
        P2:  client i gives L * theta_i, and every other client theta_j, which the plan asks of it

    rounded to whole samples, at least one. If a plan asks for theta under P1 too, client i gives
    the smaller of theta_i and L * points_i, and every other client theta_j. A client that the plan
    asks for nothing (theta_i = 0) cannot defect. It counts as a random client, but not as a
    contributor.

    An algorithm that goes by pledges always gets all of theta as pledges.

    With a width, a level stops as soon as all of its shares, single clients' aside, have intervals
    that are narrow enough. All intervals are then those of confidence sequences, which hold at
    every look. If one random client defects in each trial, the audit looks when all have defected
    equally often.

    source: a federation, or what deals one to each trial.
    algorithms: to be audited; use a dict to name them if two are of one kind.
    options: AuditOptions.
    workers: number of parallel runs. Default: one, or on Ray one per CPU of the cluster.
    engine: where the runs are made: "local", in Flower's simulation ("flower") or on Ray ("ray");
        or what makes an engine of a source and workers=, such as RayEngine with an address.
    store: a file of finished runs, or a RunStore; runs that are in it are not made again.
    progress: called with the progress whenever a run starts or finishes; True shows a bar.
    """
    design = Design(source, algorithms, options)
    plans = read_plans(design)
    with (
        show_progress(progress) as tell,
        open_executor(design.source, engine=engine, workers=workers, store=store) as executor,
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

    With a store for a part, it makes the runs of that part and raises OnlyPart.
    """
    if executor.store.part is not None and design.options.width is not None:
        raise InputError(
            "a part of an audit cannot stop early, because it does not know the results of the "
            "other parts; leave --part or --width out"
        )
    started = time.perf_counter()
    work = _Work(design, executor, progress)
    full = work.find_plans(plans)
    cells = work.score(full)
    counted = {id(o): o for cell in cells for trial in cell.finished for _, o in trial}.values()
    trials = {
        name: {cell.level: cell.finished for cell in cells if cell.algorithm == name}
        for name in full
    }
    defectors = "random" if design.options.protocol == "P1" else "contributors"
    curves = compare_curves(
        (_sum_up(design, name, theta, trials[name]) for name, theta in full.items()),
        {(cell.algorithm, cell.level): cell.rows[defectors] for cell in cells},
        design.options.width,
        design.count_block(full.values()),
    )
    return DefectionAudit(
        options=design.options,
        clients=design.names,
        curves=curves,
        versions=tuple(sorted({outcome.versions for outcome in counted})),
        source=design.fingerprint,
        requirements=tuple(float(r) for r in design.source.requirements),
        reused=executor.reused,
        run_seconds=sum(outcome.seconds for outcome in counted),
        seconds=time.perf_counter() - started,
        measures=find_measures(design.source),
    )


def _sum_up(
    design: Design, name: str, theta: Contributions, trials: Mapping[float, Sequence[Trial]]
) -> DefectionCurve:
    """Return the curve of an algorithm, with what kept samples are worth if that was audited."""
    curve = sum_up(
        *(name, design.pledge(name, theta).to_dict(), theta),
        clients=design.names,
        levels=design.options.levels,
        trials=trials,
        drawn=design.drawn,
        scored=bool(design.scored),
        share=design.share,
    )
    lowest = min(trials)
    if not design.options.kept_data or lowest == 1:
        return curve
    from fedaccord.federation.defection.kept_worth import measure_each

    worths = measure_each(
        design.names,
        trials[1.0],
        trials[lowest],
        points=design.points,
        contributions=theta,
        given=[design.defect(theta, (i,), lowest)[i] for i in range(len(theta))],
    )
    return replace(curve, kept_worth=worths)


class _Cell:
    """The trials of one algorithm at one level, counted in order up to the first unfinished."""

    def __init__(
        self, design: Design, algorithm: str, level: float, full: Contributions, block: int
    ) -> None:
        self.algorithm = algorithm
        self.level = level
        self.finished: list[Trial] = []
        # Of each trial, who reached their goals; the shares of these decide when it stops.
        self.rows: dict[str, Rows] = list_satisfied([], design.reading, full, design.drawn)
        self.stopped = False
        self.satisfied = clustered(np.zeros((0, 1)))
        # How many trials it takes, by the shares so far.
        self.expected = design.options.trials
        self._design = design
        self._full = full
        self._block = block
        self._next = self.runs(design.first)

    def runs(self, trial: int) -> list[tuple[Group, Run]]:
        """List who defects in a trial, and the run that shows what comes of it."""
        design, full = self._design, self._full
        return [
            (group, design.defecting_run(self.algorithm, full, group, self.level, trial))
            for group in design.choose_groups(trial, full)
        ]

    def advance(self, outcomes: Mapping[str, Outcome]) -> None:
        """Count the trials that are finished now; the order in which runs end does not matter."""
        while not self.ended and all(run.key in outcomes for _, run in self._next):
            self._count([(group, outcomes[run.key]) for group, run in self._next])
            if not self.ended:
                self._next = self.runs(self._design.first + len(self.finished))

    def _count(self, trial: Trial) -> None:
        """Count a trial, and look whether it is the last."""
        design = self._design
        self.finished.append(trial)
        found = list_satisfied([trial], design.reading, self._full, design.drawn)
        if self.level == 1:
            found["all"] = list_all_satisfied([trial], design.reading)
        for name, rows in found.items():
            self.rows.setdefault(name, []).extend(rows)
        self.satisfied = design.share(self.rows["random"])
        width, seen, most = design.options.width, len(self.finished), design.options.trials
        if width is None or (design.first + seen) % self._block:
            return
        looked_at = [rows for rows in self.rows.values() if rows]
        self.stopped = all(design.share(rows).width <= width for rows in looked_at)
        if not self.ended:
            longest = max(expect_trials(rows, width, most) for rows in looked_at)
            whole = math.ceil(max(longest, seen + 1) / self._block) * self._block
            self.expected = min(whole, most)

    @property
    def ended(self) -> bool:
        return self.stopped or len(self.finished) == self._design.options.trials

    def left(self, outcomes: Mapping[str, Outcome]) -> int:
        """Count the runs to come that no other cell makes, as far as the shares so far tell."""
        if self.ended:
            return 0
        own = [r.key for _, r in self._next if self.level == 1 or _is_defection(r, self._full)]
        to_come = max(1, self.expected - len(self.finished)) * len(set(own))
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
        # The runs of this part, if there are parts; cells then stay unfinished.
        self._listed: list[tuple[str, Run]] = []

    def find_plans(self, plans: Mapping[str, Contributions]) -> dict[str, Contributions]:
        """Return what each algorithm is held to: its plan, all points, or what it uses of them."""
        full = {name: plans.get(name, self._design.points) for name in self._design.algorithms}
        without = [name for name in full if name not in plans]
        if self._design.options.protocol == "P1" or not without:
            return full
        # Until the plans are known the work that follows them is guessed from full contributions.
        self._expect(full)
        trials = range(PLANNING, PLANNING + PLANNING_TRIALS)
        plain = functools.partial(self._design.run, judged=False)
        wanted = {n: [plain(n, full[n], trial) for trial in trials] for n in without}
        self._plans = [(name, run) for name, runs in wanted.items() for run in runs]
        self._make(self._plans)
        self._plans = []
        for name, runs in wanted.items():
            used = np.mean([self._executor.outcomes[run.key].unique for run in runs], axis=0)
            full[name] = tuple(int(n) for n in np.ceil(used))
        return full

    def score(self, full: Mapping[str, Contributions]) -> list[_Cell]:
        """Make the runs of all cells, one trial after the other; of a part only its own."""
        self._expect(full)
        store = self._executor.store
        if store.part is not None:
            work = self._design.describe_work(full)
            store.note_part(*work, finished=False)
            self._make(self._listed)
            store.note_part(*work, finished=True)
            raise store.end_part()
        self._make(self._list_runs())
        # Runs that the executor knew before are passed over in silence.
        for cell in self._cells:
            cell.advance(self._executor.outcomes)
        return self._cells

    def _expect(self, full: Mapping[str, Contributions]) -> None:
        """Set out the runs to come, by what each algorithm is held to."""
        self._cells = self._new_cells(full)
        if (part := self._executor.store.part) is not None:
            runs = {r.key: (n, r) for n, r in self._list_runs() if part.has(int(r.key, 16))}
            self._cells, self._listed = [], list(runs.values())

    def _new_cells(self, full: Mapping[str, Contributions]) -> list[_Cell]:
        # Full contribution always is a cell: it tells whether all are satisfied.
        levels = (1.0, *(level for level in self._design.options.levels if level != 1))
        block = self._design.count_block(full.values())
        return [_Cell(self._design, n, level, full[n], block) for n in full for level in levels]

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
        for name, run in (*self._plans, *self._listed):
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
                estimated=any(cell.expected < self._design.options.trials for cell in self._cells),
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


def _is_defection(run: Run, full: Contributions) -> bool:
    """Return whether somebody gives less than is asked, openly or not."""
    return run.contributions != full or run.tactic is not None


def check_group(group: int, clients: int) -> None:
    """Refuse a group of more agents than there are, before anything is trained."""
    if group > clients:
        raise InputError(
            f"{group:,} agents cannot defect together: there {pluralize(clients, 'is', 'are')} "
            f"{count(clients, 'agent')}; use --group {clients} or less"
        )


def _name_each(algorithms: Algorithms) -> dict[str, Algorithm]:
    if isinstance(algorithms, Algorithm | str) or not isinstance(algorithms, Iterable):
        algorithms = [algorithms]
    pairs = (
        list(algorithms.items())
        if isinstance(algorithms, Mapping)
        else [(getattr(a, "name", ""), a) for a in algorithms]
    )
    if not pairs:
        raise InputError("there is no algorithm to audit; add at least one, such as FedAvg()")
    for name, algorithm in pairs:
        if not isinstance(algorithm, Algorithm):
            shown = algorithm.__name__ if isinstance(algorithm, type) else repr(algorithm)
            raise InputError(f"an algorithm is needed, such as FedAvg(); got {shown}")
        if [other for other, _ in pairs].count(name) > 1:
            raise InputError(
                f"two algorithms are called {name}; give a dict with a name for each of them"
            )
    return dict(pairs)


def read_plans(design: Design) -> dict[str, Contributions]:
    """Return the contributions of each algorithm that has a plan, or raise an InputError."""
    plan = design.options.plan
    if plan is None:
        return {}

    named = plan if isinstance(plan, Mapping) else {}
    for name in named:
        if name not in design.algorithms:
            known = ", ".join(design.algorithms)
            raise InputError(f"there is a plan for {name}, which is not audited; audited: {known}")
    return {
        name: _round_up(design, one, f"the plan of {name}" if named else "the plan")
        for name, one in _plan_each(plan, design.algorithms).items()
    }


def _plan_each(plan: Plans, names: Iterable[str]) -> dict[str, Allocation]:
    """Return the plan of each algorithm that has one."""
    from fedaccord.allocation import Allocation

    if plan is None:
        return {}
    if isinstance(plan, Mapping):
        plans = {name: plan[name] for name in names if name in plan}
    else:
        plans = dict.fromkeys(names, Allocation.load(plan) if isinstance(plan, str) else plan)
    for one in plans.values():
        if not isinstance(one, Allocation):
            raise InputError(
                f"a plan must be an Allocation, as in Allocation([20, 30]); got {one!r}"
            )
    return plans


def _hold_reserves(
    algorithms: Mapping[str, Algorithm], source: Source, plan: Plans
) -> dict[str, Algorithm]:
    """Return the algorithms with the reserves of their plans."""
    made = dict(algorithms)
    for name, one in _plan_each(plan, algorithms).items():
        own = one if one.reserve is None else one.ordered_for(tuple(source.names))
        if own.reserve is None:
            continue
        # Rounded as contributions are.
        given, held = (np.ceil(np.round(n, 6)) for n in (own.contributions, own.reserve))
        for client, wanted, there in zip(source.names, given + held, source.points, strict=True):
            if wanted > there:
                raise InputError(
                    f"the plan may ask {client} for {wanted:g} samples, its reserve included, and "
                    f"it has {there}; lower its reserve"
                )
        made[name] = made[name].reserving([int(n) for n in held])
    return made


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
                f"{what} asks {name} for {wanted} samples, but {name} has {there}: lower that, or "
                "give it more data"
            )
    if not any(whole):
        raise InputError(f"{what} asks no agent for samples; at least one agent must contribute")
    return whole
