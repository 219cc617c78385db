"""Where runs are made: in this process, or in worker processes of one thread each.

An engine takes the source of the federations and a number of workers; as a context manager it
gives the workers back. Its `finished(runs)` takes runs as it needs them, so that whoever yields
them can think better of the later ones, and gives what came of them in the order they end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Protocol

import cloudpickle  # type: ignore[import-untyped]
import torch

from fedaccord._arrays import Vector
from fedaccord._machine import checked_workers
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.allotment import Counts
from fedaccord.federation.clients import Federation
from fedaccord.federation.history import History
from fedaccord.federation.store import Run
from fedaccord.federation.training import train

# A worker's first words: the search path, then all else can be imported; nothing if this process
# is gone already.
BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline() or '0') or sys.exit(); "
    "from fedaccord.federation.engines import serve; serve(sys.stdin.buffer, int(sys.argv[1]))"
)
# The processes are the parallelism: libraries must not start threads of their own.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Source(Protocol):
    """What deals a federation to each trial; a Federation deals itself."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients are called."""

    @property
    def requirements(self) -> Vector:
        """The accuracy each client wants."""

    @property
    def points(self) -> Counts:
        """How many points each client could bring."""

    @property
    def fingerprint(self) -> str:
        """A digest of all that its federations depend on."""

    def deal(self, trial: int) -> Federation:
        """Give the federation of a trial."""


class RunError(FedaccordError):
    """A run failed, or the process that made it died."""


@dataclass(frozen=True)
class Finished:
    """A run, and what came of it."""

    run: Run
    history: History


class Engine(Protocol):
    """Makes runs, as many at a time as it has workers."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *error: Any) -> None: ...

    def finished(self, runs: Iterable[Run]) -> Iterator[Finished]:
        """Make the runs, and give them in the order in which they end."""


class LocalEngine:
    """Makes runs on this machine: one worker is this process, more are processes of their own.

    source: deals a federation to each trial.
    workers: how many runs are made at a time, at most one per core.
    """

    def __init__(self, source: Source, *, workers: int = 1) -> None:
        self._source = source
        self._workers = checked_workers(workers)
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers at once; what they are at is lost."""
        for worker in self._all:
            worker.end()
        # Their threads are at the end of the pipes now.
        if self._threads is not None:
            self._threads.shutdown()
        for worker in self._all:
            worker.close()
        self._all, self._idle, self._threads = [], [], None

    def finished(self, runs: Iterable[Run]) -> Iterator[Finished]:
        """Make the runs, and give them in the order in which they end."""
        return self._here(runs) if self._workers == 1 else self._spread(iter(runs))

    def _here(self, runs: Iterable[Run]) -> Iterator[Finished]:
        deal = functools.lru_cache(maxsize=1)(self._source.deal)
        for run in runs:
            try:
                history = _made(deal, run)
            except FedaccordError:
                raise
            except Exception as error:
                raise RunError(_failure(run, error)) from error
            yield Finished(run, history)

    def _spread(self, runs: Iterator[Run]) -> Iterator[Finished]:
        self._threads = self._threads or ThreadPoolExecutor(self._workers)
        at_work: dict[Future[History], tuple[Run, _Worker]] = {}
        ended: deque[Finished] = deque()
        try:
            while True:
                # Before a result is handed on, which takes a while, the worker has its next run.
                while len(at_work) < self._workers and (run := next(runs, None)) is not None:
                    worker = self._free_worker()
                    at_work[self._threads.submit(worker.make, run)] = run, worker
                if not ended and not at_work:
                    return
                if not ended:
                    wait(at_work, return_when=FIRST_COMPLETED)
                    ended.extend(self._gathered(at_work))
                yield ended.popleft()
        except KeyboardInterrupt:
            yield from ended
            yield from self._gathered(at_work)
            raise

    def _gathered(self, at_work: dict[Future[History], tuple[Run, _Worker]]) -> list[Finished]:
        """Take out the runs that have ended; a failure is raised when no other has."""
        done = [future for future in at_work if future.done()]
        well = [future for future in done if future.exception() is None]
        if done and not well:
            done[0].result()
        gathered = []
        for future in well:
            run, worker = at_work.pop(future)
            self._idle.append(worker)
            gathered.append(Finished(run, future.result()))
        return gathered

    def _free_worker(self) -> _Worker:
        if not self._idle:
            self._idle.append(_Worker(self._source))
            self._all.append(self._idle[-1])
        return self._idle.pop()


class _Worker:
    """A process that makes one run at a time; runs go in through a pipe, histories come back."""

    def __init__(self, source: Source) -> None:
        self._source: Source | None = source
        read, write = os.pipe()
        try:
            # In a group of its own it does not get the terminal's Ctrl-C: this process decides.
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(write)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(write,),
                env={**os.environ, **ONE_THREAD},
                process_group=0,
            )
        except OSError as error:
            os.close(read)
            raise RunError(f"cannot start a worker process: {error.strerror}") from None
        finally:
            os.close(write)
        assert self._process.stdin is not None
        self._tasks: IO[bytes] = self._process.stdin
        self._results: IO[bytes] = os.fdopen(read, "rb")

    def make(self, run: Run) -> History:
        """Have the process make a run."""
        try:
            if self._source is not None:
                self._tasks.write(json.dumps(sys.path).encode() + b"\n")
                self._send_source()
            cloudpickle.dump(run, self._tasks)
            self._tasks.flush()
            result, trace = pickle.load(self._results)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            raise RunError(_death(run, self._status())) from None
        if isinstance(result, History):
            return result
        error: FedaccordError = result
        error.add_note(trace)
        raise error

    def _status(self) -> int:
        """Wait for a process that no longer answers to end, and not for ever."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _send_source(self) -> None:
        try:
            settings = torch.get_default_dtype(), torch.get_float32_matmul_precision()
            cloudpickle.dump((settings, self._source), self._tasks)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise RunError(
                f"the federation cannot be sent to worker processes ({error}): use one worker, or "
                "a model factory that holds nothing but plain values"
            ) from error
        self._source = None

    def end(self) -> None:
        """End the process, whatever it is at."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes."""
        self._results.close()
        # What is still in the buffer has nobody to go to.
        with contextlib.suppress(BrokenPipeError):
            self._tasks.close()


def serve(tasks: IO[bytes], results_to: int) -> None:
    """Make runs for the process at the other end of the pipes until it is gone.

    tasks: where torch's settings and the source, and then the runs come from.
    results_to: the descriptor that histories go to.
    """
    results = os.fdopen(results_to, "wb")
    # Whatever a user's model prints goes to the errors.
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    waiting: queue.SimpleQueue[Run] = queue.SimpleQueue()
    deal: Callable[[int], Federation]
    try:
        (default, precision), source = pickle.load(tasks)
        torch.set_default_dtype(default)
        torch.set_float32_matmul_precision(precision)
        deal = functools.lru_cache(maxsize=1)(source.deal)
    except EOFError:
        return
    except Exception as error:  # noqa: BLE001 - whatever a user's objects need may be missing
        deal = functools.partial(_refuse, error)
    threading.Thread(target=_listen, args=(tasks, waiting), daemon=True).start()
    while True:
        pickle.dump(_reply(deal, waiting.get()), results)
        results.flush()


def _listen(tasks: IO[bytes], waiting: queue.SimpleQueue[Run]) -> None:
    """Pass runs on, and end this process at once, in the middle of a run, if the other is gone."""
    while True:
        try:
            waiting.put(pickle.load(tasks))
        except Exception:  # noqa: BLE001 - a pipe cut anywhere: nobody is there to tell
            os._exit(0)


def _reply(deal: Callable[[int], Federation], run: Run) -> tuple[History | FedaccordError, str]:
    try:
        return _made(deal, run), ""
    except InputError as error:
        return InputError(str(error)), traceback.format_exc()
    except FedaccordError as error:
        return RunError(str(error)), traceback.format_exc()
    except Exception as error:  # noqa: BLE001 - a user's model may fail in any way; it is told
        return RunError(_failure(run, error)), traceback.format_exc()


def _refuse(error: Exception, trial: int) -> Federation:
    raise RunError(
        f"a worker process cannot load the federation ({type(error).__name__}: {error}): use one "
        "worker, or keep its parts in modules that can be imported"
    ) from error


def _made(deal: Callable[[int], Federation], run: Run) -> History:
    brought = run.contributions
    history = train(deal(run.trial), run.algorithm, contributions=brought, seed=run.seed)
    # Nobody asks for the model that came of it, and it is far larger than all the rest.
    return dataclasses.replace(history, weights={})


def _failure(run: Run, error: Exception) -> str:
    detail = " ".join(str(error).split())
    return f"the run of {_described(run)} failed: {type(error).__name__}: {detail}"


def _death(run: Run, status: int) -> str:
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return (
        f"a worker process {how} in the run of {_described(run)}: if memory is short, use fewer "
        "workers"
    )


def _described(run: Run) -> str:
    brought = ", ".join(map(str, run.contributions))
    return f"{run.algorithm.name} in trial {run.trial} with contributions {brought}"


ENGINES: dict[str, Callable[..., Engine]] = {"local": LocalEngine}
