"""Where runs are made: in this process, or in worker processes of one thread each.

An engine takes the source of the federations and a number of workers; as a context manager it
gives the workers back. Its `finished(runs)` takes runs as it needs them, so that the caller can
still change the later ones, and yields results in the order in which runs end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pickle
import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

import cloudpickle  # type: ignore[import-untyped]
import torch

from fedaccord._checks import Vector, check_workers
from fedaccord._lazy import imported
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.algorithms.base import Counts
from fedaccord.federation.clients import Federation
from fedaccord.federation.history import History
from fedaccord.federation.runs.store import Run
from fedaccord.federation.training.loop import train

if TYPE_CHECKING:
    from fedaccord.federation.runs.processes import Process

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


class LocalEngine(contextlib.AbstractContextManager["LocalEngine"]):
    """Makes runs on this machine: one worker is this process, more are processes of their own.

    source: deals a federation to each trial.
    workers: how many runs are made at a time, at most one per core; one where left out.
    """

    # For engines that make their runs on this machine in another way: what worker processes run,
    # what is set in their environment, and whether a worker is another process even if it is alone.
    server: str = "fedaccord.federation.runs.engines:serve"
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
                raise RunError(_failure(run, error)) from error
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
        process = start_process(self.server, environment=self.environment, at_once=True)
        return Worker(process, self._source)


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
    except KeyboardInterrupt:
        yield from ended
        yield from _take_ended(under_way)
        raise


def _take_ended(under_way: dict[Future[History], Run]) -> list[Finished]:
    """Take out the runs that have ended; a failure is raised when no other has."""
    done = [future for future in under_way if future.done()]
    well = [future for future in done if future.exception() is None]
    if done and not well:
        done[0].result()
    return [Finished(under_way.pop(future), future.result()) for future in well]


class Worker:
    """A process that makes one run at a time; runs go in through a pipe, histories come back."""

    def __init__(self, process: Process, source: Source) -> None:
        self.process = process
        self._source: Source | None = source

    def make(self, run: Run) -> History:
        """Have the process make a run."""
        tasks = self.process.tasks
        try:
            if self._source is not None:
                self.process.greet()
                pack(self._source.deal, tasks)
                self._source = None
            cloudpickle.dump(run, tasks)
            tasks.flush()
            return read_reply(pickle.load(self.process.results))
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            raise self._explain_loss(run, self.process.status()) from None

    def _explain_loss(self, run: Run, status: int) -> RunError:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return RunError(
            f"a worker process {how} in the run of {run}: if memory is short, use fewer workers"
        )


def start_process(server: str, **options: Any) -> Process:
    """Start a process, or say why it cannot be; see Process for the arguments."""
    # Only now: one worker is this process.
    from fedaccord.federation.runs.processes import Process

    try:
        return Process(server, **options)
    except OSError as error:
        raise RunError(f"cannot start a worker process: {error.strerror}") from None


def pack(deal: Deal, to: IO[bytes]) -> None:
    """Write what deals the federations, with torch's settings, so that a process can read it."""
    try:
        settings = torch.get_default_dtype(), torch.get_float32_matmul_precision()
        cloudpickle.dump((settings, deal), to)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise RunError(
            f"the federation cannot be sent to worker processes ({error}): use the local engine "
            "with one worker, or a model factory that holds only plain values"
        ) from error


def unpack(source: IO[bytes]) -> Deal:
    """Return what deals the federations, and take over torch's settings.

    source: a file that `pack` wrote. If it cannot be loaded, dealing says why.
    """
    try:
        (default, precision), deal = pickle.load(source)
        torch.set_default_dtype(default)
        torch.set_float32_matmul_precision(precision)
        return functools.lru_cache(maxsize=1)(deal)
    except EOFError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a user's objects need may be missing
        return functools.partial(_refuse, error)


def read_reply(reply: Reply) -> History:
    """Return the history that a worker replied with, or raise what went wrong there."""
    result, trace = reply
    if isinstance(result, History):
        return result
    result.add_note(trace)
    raise result


def serve(tasks: IO[bytes], results_to: int, *, make: Maker | None = None) -> None:
    """Make runs for the process at the other end of the pipes until it is gone.

    tasks: where torch's settings and the source, and then the runs come from.
    results_to: the descriptor that histories go to.
    make: makes a run, in another way than `make_run`.
    """
    results = os.fdopen(results_to, "wb")
    # Whatever a user's model prints goes to the errors.
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    waiting: queue.SimpleQueue[Run | Exception] = queue.SimpleQueue()
    try:
        deal = unpack(tasks)
    except EOFError:
        return
    threading.Thread(target=_listen, args=(tasks, waiting), daemon=True).start()
    while True:
        run = waiting.get()
        if isinstance(run, Exception):
            reply: Reply = (_explain_missing("algorithm", run), "")
        else:
            reply = answer(deal, run, make=make)
        pickle.dump(reply, results)
        results.flush()


def _listen(tasks: IO[bytes], waiting: queue.SimpleQueue[Run | Exception]) -> None:
    """Pass runs on, or why one cannot be loaded.

    End this process at once, in the middle of a run, if the other is gone.
    """
    while True:
        try:
            waiting.put(pickle.load(tasks))
        except (EOFError, pickle.UnpicklingError):
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - whatever a user's algorithm needs may be missing
            waiting.put(error)
            # What follows cannot be told apart from the rest of that run: wait for the end.
            tasks.read()


Reply: TypeAlias = tuple[History | FedaccordError, str]


def answer(deal: Deal, run: Run, *, make: Maker | None = None) -> Reply:
    """Make a run; return its history, or what went wrong and where, to be sent to others.

    deal: gives the federation of a trial.
    run: to be made.
    make: makes it, in another way than `make_run`.
    """
    try:
        return (make or make_run)(deal, run), ""
    except InputError as error:
        return InputError(str(error)), traceback.format_exc()
    except FedaccordError as error:
        return RunError(str(error)), traceback.format_exc()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's model may fail in any way
        return RunError(_failure(run, error)), traceback.format_exc()


def _refuse(error: Exception, trial: int) -> Federation:
    raise _explain_missing("federation", error) from error


def _explain_missing(what: str, error: Exception) -> RunError:
    """Return what to raise where a worker process cannot load something of the user's."""
    return RunError(
        f"a worker process cannot load the {what} ({type(error).__name__}: {error}): use the "
        "local engine with one worker, or keep its parts in modules that can be imported there"
    )


def make_run(deal: Deal, run: Run) -> History:
    """Make a run in this process.

    deal: gives the federation of a trial.
    run: to be made.
    """
    federation, brought = deal(run.trial), run.contributions
    history = train(
        federation, run.algorithm, contributions=brought, seed=run.seed, tactic=run.tactic
    )
    if run.goes_on:
        from fedaccord.federation.training.alone import let_go_on

        history = let_go_on(federation, run.algorithm, history, run.goes_on)
    # Nobody asks for the models that came of it, and they are far larger than all the rest.
    return dataclasses.replace(history, weights={}, checkpoints={})


def _failure(run: Run, error: BaseException) -> str:
    detail = " ".join(str(error).split())
    return f"the run of {run} failed: {type(error).__name__}: {detail}"


def _import_and_make(module: str, name: str, source: Source, **options: Any) -> Engine:
    """Make an engine of a module that is imported only then, for it needs an extra."""
    engine: Engine = getattr(imported(module), name)(source, **options)
    return engine


ENGINES: dict[str, Callable[..., Engine]] = {
    "local": LocalEngine,
    "flower": functools.partial(
        _import_and_make, "fedaccord.federation.flower.engine", "FlowerEngine"
    ),
    "ray": functools.partial(_import_and_make, "fedaccord.federation.runs.ray", "RayEngine"),
}
