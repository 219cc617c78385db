"""Runs made by an engine and kept in a store: what is kept is not made again.

An engine takes the source of the federations and a number of workers; as a context manager it
gives the workers back. Its `finished(runs)` takes runs as it needs them, so that the caller can
still change the later ones, and yields results in the order in which runs end. `LocalEngine` makes
them in this process, or in worker processes of one thread each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from fedaccord._checks import Vector, check_choice, check_workers
from fedaccord._lazy import imported
from fedaccord.errors import FedaccordError
from fedaccord.federation.algorithms.base import Counts
from fedaccord.federation.clients import Federation
from fedaccord.federation.history import History
from fedaccord.federation.runs.store import Outcome, Run, RunStore
from fedaccord.federation.training.loop import train

if TYPE_CHECKING:
    from fedaccord.federation.defection.audit import Known
    from fedaccord.federation.runs.worker import Worker

# How often it is seen whether there is room for more runs, in seconds.
LOOK = 1.0


class Source(Protocol):
    """An object that makes a federation for each trial; a Federation returns itself."""

    def deal(self, trial: int) -> Federation:
        """Return the federation of a trial."""

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""

    @property
    def requirements(self) -> Vector:
        """The accuracy each client wants."""

    @property
    def points(self) -> Counts:
        """How many samples each client could give."""

    @property
    def fingerprint(self) -> str:
        """A digest of all that its federations depend on."""


class RunError(FedaccordError):
    """A run failed, or the process that made it died."""


@dataclass(frozen=True)
class Finished:
    """A run, and what came of it."""

    run: Run
    history: History


class Engine(Protocol):
    """Makes runs, one per worker at a time."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *error: Any) -> None: ...

    def finished(self, runs: Iterable[Run]) -> Iterator[Finished]:
        """Make the runs, and yield them in the order in which they end."""


Deal: TypeAlias = Callable[[int], Federation]
Maker: TypeAlias = Callable[[Deal, Run], History]
EngineMaker: TypeAlias = Callable[..., Engine]
# Called with how many runs are finished, of how many.
Count: TypeAlias = Callable[[int, int], None]


class LocalEngine(contextlib.AbstractContextManager["LocalEngine"]):
    """Makes runs on this machine: one worker is this process, more are processes of their own.

    source: deals a federation to each trial.
    workers: how many runs are made at a time, at most one per core; one where left out.
    """

    # For engines that make their runs on this machine in another way: what worker processes run,
    # what is set in their environment, and whether a worker is another process even if it is alone.
    server: str = "fedaccord.federation.runs.worker:serve"
    environment: Mapping[str, str] = MappingProxyType({})
    apart: bool = False

    def __init__(self, source: Source, *, workers: int | None = None) -> None:
        self._source = source
        self._workers = check_workers(1 if workers is None else workers)
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[Worker] = []
        self._all: list[Worker] = []

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers at once; their current runs are lost."""
        for worker in self._all:
            worker.process.end()
        # Their threads are at the end of the pipes now.
        if self._threads is not None:
            self._threads.shutdown()
        for worker in self._all:
            worker.process.close()
        self._all, self._idle, self._threads = [], [], None

    def finished(self, runs: Iterable[Run]) -> Iterator[Finished]:
        """Make the runs, and yield them in the order in which they end."""
        if self._workers == 1 and not self.apart:
            return self._make_here(runs)
        return spread(iter(runs), self._submit, room=lambda: self._workers)

    def _make_here(self, runs: Iterable[Run]) -> Iterator[Finished]:
        deal = functools.lru_cache(maxsize=1)(self._source.deal)
        for run in runs:
            try:
                history = make_run(deal, run)
            except FedaccordError:
                raise
            except (Exception, SystemExit) as error:  # a user's model may fail in any way
                raise RunError(describe_failure(run, error)) from error
            yield Finished(run, history)

    def _submit(self, run: Run) -> Future[History]:
        self._threads = self._threads or ThreadPoolExecutor(self._workers)
        return self._threads.submit(self._make, self._free_worker(), run)

    def _make(self, worker: Worker, run: Run) -> History:
        history = worker.make(run)
        self._idle.append(worker)
        return history

    def _free_worker(self) -> Worker:
        if self._idle:
            return self._idle.pop()
        self._all.append(self._start_worker())
        return self._all[-1]

    def _start_worker(self) -> Worker:
        # Only now: one worker is this process.
        module = imported("fedaccord.federation.runs.worker")
        process = module.start_process(self.server, environment=self.environment, at_once=True)
        worker: Worker = module.Worker(process, self._source)
        return worker


def spread(
    runs: Iterator[Run], submit: Callable[[Run], Future[History]], *, room: Callable[[], int]
) -> Iterator[Finished]:
    """Keep as many runs under way as there is room for; yield them in the order in which they end.

    runs: taken as there is room.
    submit: has a run made elsewhere.
    room: how many runs can be under way now.
    """
    under_way: dict[Future[History], Run] = {}
    ended: deque[Finished] = deque()
    try:
        while True:
            # Before a result is handed on, which takes a while, the worker has its next run.
            while len(under_way) < room() and (run := next(runs, None)) is not None:
                under_way[submit(run)] = run
            if not ended and not under_way:
                return
            if not ended:
                # There may be more room by then.
                wait(under_way, timeout=LOOK, return_when=FIRST_COMPLETED)
                ended.extend(_take_ended(under_way))
            if ended:
                yield ended.popleft()
            else:
                _raise_failure(under_way)
    except KeyboardInterrupt:
        # A run that failed is no reason to hold back the others, or to hide the interrupt.
        yield from ended
        yield from _take_ended(under_way)
        raise


def _take_ended(under_way: dict[Future[History], Run]) -> list[Finished]:
    """Take out the runs that have ended well."""
    well = [future for future in under_way if future.done() and future.exception() is None]
    return [Finished(under_way.pop(future), future.result()) for future in well]


def _raise_failure(under_way: dict[Future[History], Run]) -> None:
    """Raise the error of a run that failed, if one has."""
    for future in under_way:
        if future.done():
            future.result()


def make_run(deal: Deal, run: Run) -> History:
    """Make a run in this process."""
    federation, brought = deal(run.trial), run.contributions
    history = train(
        federation, run.algorithm, contributions=brought, seed=run.seed, tactic=run.tactic
    )
    if run.goes_on:
        from fedaccord.federation.training.alone import let_go_on

        history = let_go_on(federation, run.algorithm, history, run.goes_on)
    # Nobody asks for the models that came of it, and they are far larger than all the rest.
    return dataclasses.replace(history, weights={}, checkpoints={})


def describe_failure(run: Run, error: BaseException) -> str:
    """Return what is said of a run that raised an error."""
    detail = " ".join(str(error).split())
    return f"the run of {run} failed: {type(error).__name__}: {detail}"


def _import_and_make(module: str, name: str, source: Source, **options: Any) -> Engine:
    """Make an engine of a module that is imported only then, for it needs an extra."""
    engine: Engine = getattr(imported(module), name)(source, **options)
    return engine


ENGINES: dict[str, EngineMaker] = {
    "local": LocalEngine,
    "flower": functools.partial(
        _import_and_make, "fedaccord.federation.flower.engine", "FlowerEngine"
    ),
    "ray": functools.partial(_import_and_make, "fedaccord.federation.runs.ray", "RayEngine"),
}


@dataclass(frozen=True)
class Progress:
    """How far an audit is.

    done: runs finished, those found in the store among them.
    reused: those found in the store.
    total: the expected number of runs, by the shares so far if cells stop early.
    running: runs under way.
    seconds: since the audit began.
    left: the expected seconds until the end; None before the first run has finished.
    planning: whether these are the runs that find the contributions to prescribe.
    known: the table so far.
    estimated: whether the shares so far say that fewer runs are enough than may be made.
    """

    done: int
    reused: int
    total: int
    running: int
    seconds: float
    left: float | None
    planning: bool
    known: tuple[Known, ...]
    estimated: bool = False


class Executor:
    """Makes runs, each once: not those that are in the store, nor those that it made before.

    engine: makes them.
    store: keeps them.
    """

    def __init__(self, engine: Engine, store: RunStore) -> None:
        self.engine = engine
        self.store = store
        # What came of the runs so far, by their keys; how many of them were in the store.
        self.outcomes: dict[str, Outcome] = {}
        self.reused = 0
        self.under_way: set[str] = set()
        self.started = time.perf_counter()

    def execute(
        self,
        runs: Iterable[Run],
        *,
        take: Callable[[Run, Outcome], None] = lambda run, outcome: None,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the runs that are not in the store, and keep each at once.

        runs: in the order in which they start; each is taken when there is room for it.
        take: called with each run and its result, before a further run is taken.
        report: called whenever a run has started or finished.
        """
        missing = self._missing(iter(runs), take, report)
        made = self.engine.finished(missing)
        try:
            for finished in made:
                try:
                    outcome = self._keep(finished)
                    take(finished.run, outcome)
                    report()
                except KeyboardInterrupt:
                    self._keep(finished)
                    for one in _list_rest(made):
                        self._keep(one)
                    raise
            if lost := len(self.under_way) + sum(1 for _ in missing):
                runs_lost = "1 run" if lost == 1 else f"{lost} runs"
                raise RunError(f"the workers did not return {runs_lost}; start again")
        except RunError as error:
            if self.store.path is None:
                raise
            raise RunError(
                f"{error}; the runs finished before are safe in {self.store.path}, and the same "
                "command continues from there"
            ) from error

    def execute_all(self, runs: Sequence[Run], *, progress: Count | None = None) -> list[Outcome]:
        """Make the runs that are not in the store, and return what came of all of them.

        runs: in the order in which they are begun.
        progress: called with how many are finished, of how many.
        """
        wanted = {run.key: run for run in runs}
        missing = [run for run in wanted.values() if not self._find(run)]

        def count(*_: Any) -> None:
            if progress is not None:
                progress(sum(key in self.outcomes for key in wanted), len(wanted))

        count()
        self.execute(missing, take=count)
        return [self.outcomes[run.key] for run in runs]

    def _keep(self, finished: Finished) -> Outcome:
        """Put a run into the store; twice is the same as once."""
        run, history = finished.run, finished.history
        check_is_requested(run, history)
        outcome = self.store.put(run, Outcome.of(history, package_versions()), history)
        self.under_way.discard(run.key)
        self.outcomes[run.key] = outcome
        return outcome

    def _missing(
        self, runs: Iterator[Run], take: Callable[[Run, Outcome], None], report: Callable[[], None]
    ) -> Iterator[Run]:
        """Pass on the runs that are not in the store, nor under way already."""
        for run in runs:
            if run.key in self.outcomes or run.key in self.under_way:
                continue
            if self._find(run):
                take(run, self.outcomes[run.key])
            else:
                self.under_way.add(run.key)
                report()
                yield run

    def _find(self, run: Run) -> bool:
        """Take a run out of the store, if it is not known already and the store has it."""
        if run.key not in self.outcomes and (stored := self.store.get(run)) is not None:
            self.reused += 1
            self.outcomes[run.key] = stored
        return run.key in self.outcomes


@contextlib.contextmanager
def open_executor(
    source: Source,
    *,
    engine: str | EngineMaker = "local",
    workers: int | None,
    store: RunStore | str | Path | None,
) -> Iterator[Executor]:
    """Open what makes runs and what keeps them; both are closed in the end, unless given open.

    source: a federation, or what deals one to each trial.
    engine: "local", "flower", "ray", or what makes an engine of a source and workers=.
    workers: how many runs at a time.
    store: a file of finished runs, or a RunStore.
    """
    if not callable(engine):
        engine = ENGINES[check_choice("engine", engine, tuple(ENGINES))]
    with contextlib.ExitStack() as stack:
        # First, for whatever is wrong with it is to leave no new file behind.
        machine = stack.enter_context(engine(source, workers=workers))
        kept = store if isinstance(store, RunStore) else stack.enter_context(RunStore(store))
        yield Executor(machine, kept)


def _list_rest(made: Iterator[Finished]) -> Iterator[Finished]:
    """Yield the runs that an engine has finished but not returned when Ctrl-C comes."""
    if isinstance(made, Generator):
        # An engine hands over what it has before it lets the interrupt through.
        with contextlib.suppress(KeyboardInterrupt, StopIteration):
            yield made.throw(KeyboardInterrupt())
            yield from made


def check_is_requested(run: Run, history: History) -> None:
    """Raise a RunError if an engine's result is not of the requested run."""
    asked = (run.seed, run.contributions, run.algorithm.to_dict())
    given = (history.seed, tuple(history.contributions.tolist()), history.algorithm)
    limits = run.algorithm.limits(history.contributions)
    if asked != given or (history.unique > limits).any():
        raise RunError(
            f"an engine returned a different run than requested: seed {given[0]} and contributions "
            f"{given[1]} for seed {asked[0]} and {asked[1]}"
        )
    if run.scored and history.scored is None:
        raise RunError(
            f"an engine did not judge the run of {run} on the scored samples; use the engine "
            '"local", or leave scored_on out'
        )
    if run.tactic != history.tactic or (run.goes_on and history.went_on is None):
        raise RunError(
            f"an engine did not follow the defectors' tactic in the run of {run}; use the engine "
            '"local", or leave kept_data and filler out'
        )


@functools.cache
def package_versions() -> str:
    """Name the versions of the packages that decide a run's result, and the native block's."""
    import numpy as np
    import torch

    from fedaccord import __version__
    from fedaccord.federation.models import fused as native

    block = native.source_digest(native.FOLDER)[:8] if native.available() else "none"
    return (
        f"fedaccord {__version__}, torch {torch.__version__}, numpy {np.__version__}, "
        f"native block {block}"
    )
