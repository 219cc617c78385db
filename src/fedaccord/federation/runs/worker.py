"""Worker processes of one thread each, which make runs for this one."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import queue
import threading
import traceback
from typing import IO, Any, TypeAlias

import cloudpickle  # type: ignore[import-untyped]
import torch

from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.clients import Federation
from fedaccord.federation.history import History
from fedaccord.federation.runs.execute import (
    Deal,
    Maker,
    RunError,
    Source,
    describe_failure,
    make_run,
)
from fedaccord.federation.runs.processes import Process
from fedaccord.federation.runs.store import Run

Reply: TypeAlias = tuple[History | FedaccordError, str]


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


def answer(deal: Deal, run: Run, *, make: Maker | None = None) -> Reply:
    """Make a run; return its history, or what went wrong and where, to be sent to others."""
    try:
        return (make or make_run)(deal, run), ""
    except InputError as error:
        return InputError(str(error)), traceback.format_exc()
    except FedaccordError as error:
        return RunError(str(error)), traceback.format_exc()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's model may fail in any way
        return RunError(describe_failure(run, error)), traceback.format_exc()


def _refuse(error: Exception, trial: int) -> Federation:
    raise _explain_missing("federation", error) from error


def _explain_missing(what: str, error: Exception) -> RunError:
    """Return what to raise where a worker process cannot load something of the user's."""
    return RunError(
        f"a worker process cannot load the {what} ({type(error).__name__}: {error}): use the "
        "local engine with one worker, or keep its parts in modules that can be imported there"
    )
