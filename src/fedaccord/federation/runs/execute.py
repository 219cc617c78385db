"""Runs made by an engine and kept in a store: what is kept is not made again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord._checks import check_choice
from fedaccord.federation.history import History
from fedaccord.federation.runs.engines import ENGINES, Engine, Finished, RunError, Source
from fedaccord.federation.runs.store import Outcome, Run, RunStore

if TYPE_CHECKING:
    from fedaccord.federation.defection.audit import Known

EngineMaker = Callable[..., Engine]
# Called with how many runs are finished, of how many.
Count = Callable[[int, int], None]


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


@cache
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
