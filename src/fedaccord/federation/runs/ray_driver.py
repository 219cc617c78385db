"""The process that speaks with Ray: it takes runs from a pipe, and sends back what came of them.

It makes no run itself and needs no torch. A bug in a run comes back as a result; what Ray raises is
the loss of a worker process or of a node, and the run is made again, elsewhere if need be.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import queue
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import ray
from ray import exceptions

from fedaccord.federation.runs.processes import ONE_THREAD, clean_up_after

# How often a run is tried before it is taken to be what ends its workers.
ATTEMPTS = 4
# How often the cluster's nodes are counted, and how long all may be away, in seconds.
LOOK = 2.0
PATIENCE = 600.0
# How long leaving may take before this process ends without it, in seconds.
LEAVE = 15.0
LOST = {
    exceptions.WorkerCrashedError: "its worker process died",
    exceptions.NodeDiedError: "its node died",
    exceptions.OutOfMemoryError: "its node had too little memory and Ray ended it",
}


def drive(tasks: IO[bytes], results_to: int) -> None:
    """Have runs made for the process at the other end of the pipes until it hangs up.

    tasks: where first what is wanted of Ray, and then the runs come from.
    results_to: the descriptor that results go to.
    """
    try:
        wanted = pickle.load(tasks)
    except EOFError:
        return
    with clean_up_after(Path(wanted["folder"])) if wanted["folder"] else contextlib.nullcontext():
        try:
            _serve(wanted, tasks, results_to)
        except Exception:
            # Python would say it too late.
            traceback.print_exc()
            raise


def _serve(wanted: dict[str, Any], tasks: IO[bytes], results_to: int) -> None:
    # It is to end with this process, not with the last that Ray starts.
    os.set_inheritable(results_to, False)
    with os.fdopen(results_to, "wb") as results, contextlib.suppress(BrokenPipeError):
        relay = _Relay(results, pause=wanted["pause"])
        threading.Thread(target=_listen, args=(tasks, relay.waiting), daemon=True).start()
        options = {"address": wanted["address"]}
        if wanted["address"] is None:
            options = {
                "address": "local",
                "num_cpus": wanted["cpus"],
                "include_dashboard": False,
                # One inside: Ray opens its folder to everybody.
                "_temp_dir": str(Path(wanted["folder"]) / "ray"),
            }
        try:
            ray.init(**options, log_to_driver=False, configure_logging=False)
            relay.serve(wanted)
        except (OSError, RuntimeError, ValueError, exceptions.RayError) as error:
            relay.tell("refused", _one_line(error))
        finally:
            ray.shutdown()
            if wanted["folder"]:
                shutil.rmtree(wanted["folder"], ignore_errors=True)


@dataclass(frozen=True)
class _Task:
    """A run that is to be made.

    number: what the other process knows it by.
    run: pickled.
    lost: how often it was lost before.
    """

    number: int
    run: bytes
    lost: int = 0


def _listen(tasks: IO[bytes], waiting: queue.SimpleQueue[_Task | None]) -> None:
    """Pass runs on; see to it that this process ends when the other has hung up."""
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            waiting.put(_Task(*pickle.load(tasks)))
    waiting.put(None)
    time.sleep(LEAVE)
    os._exit(1)


class _Relay:
    """Passes runs to the cluster and results back, and tries again what was lost.

    results: where what came of it goes.
    pause: how long it is waited before the first run that was lost is tried again, in seconds.
    """

    def __init__(self, results: IO[bytes], *, pause: float) -> None:
        self.waiting: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._results = results
        self._pause = pause
        self._under_way: set[int] = set()
        self._lock = threading.RLock()

    def tell(self, *message: Any) -> None:
        """Send a message to the process at the other end."""
        with self._lock:
            pickle.dump(message, self._results)
            self._results.flush()

    def serve(self, wanted: dict[str, Any]) -> None:
        """Have runs made until the other process hangs up."""
        submit, cpus = _submitter(wanted), _cpus()
        if cpus == 0 and not wanted["waits_for_nodes"]:
            return self.tell("refused", "no node there has a CPU; start one, or ask for workers")
        self.tell("room", cpus)
        threading.Thread(target=self._watch, args=(cpus,), daemon=True).start()
        while (task := self.waiting.get()) is not None:
            if task.lost and task.number not in self._under_way:
                # It was given up in the meantime.
                continue
            self._under_way.add(task.number)
            submit(task.run).add_done_callback(functools.partial(self._end, task))

    def _end(self, task: _Task, done: Future[Any]) -> None:
        error, lost = done.exception(), task.lost + 1
        if error is None:
            kind = "made" if isinstance(done.result(), bytes) else "failed"
            self._finish(kind, task.number, done.result())
        elif isinstance(error, exceptions.RayTaskError):
            # The task itself raised an error; a retry would fail the same way.
            self._finish("failed", task.number, _one_line(getattr(error, "cause", error)))
        elif lost == ATTEMPTS:
            self._finish("lost", task.number, lost, LOST.get(type(error), _one_line(error)))
        else:
            again = _Task(task.number, task.run, lost)
            timer = threading.Timer(self._pause * 2**task.lost, self.waiting.put, [again])
            timer.daemon = True
            timer.start()

    def _finish(self, kind: str, number: int, *rest: Any) -> None:
        with self._lock:
            if number in self._under_way:
                self._under_way.remove(number)
                self.tell(kind, number, *rest)

    def _watch(self, told: int) -> None:
        """Report how many CPUs there are, and give up where there have been none for long."""
        seen = time.monotonic()
        while True:
            time.sleep(LOOK)
            # A head that does not answer may do so later.
            with contextlib.suppress(OSError, RuntimeError, exceptions.RayError):
                cpus = _cpus()
                if cpus:
                    seen = time.monotonic()
                elif time.monotonic() - seen > PATIENCE:
                    for number in list(self._under_way):
                        self._finish("failed", number, "the cluster has had no CPUs for a while")
                if cpus != told:
                    told = cpus
                    self.tell("room", cpus)


def _cpus() -> int:
    """Count the CPUs of the nodes that are there, each of which can make a run."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    return sum(int(node["Resources"].get("CPU", 0)) for node in alive)


def _submitter(wanted: dict[str, Any]) -> Callable[[bytes], Future[Any]]:
    """Put the source into Ray's store, once; return what has a run made with it."""
    job = ray.put(wanted["job"])
    path = list(sys.path)

    # Inside a function, so that it is sent as it is: where fedaccord is missing it can say so.
    def attempt(job: list[Any], run: bytes, path: list[str]) -> bytes | str:
        import socket
        import sys

        import ray

        # Behind what the node has, for modules of a user's that all machines see.
        sys.path.extend(entry for entry in path if entry not in sys.path)
        node = f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"
        try:
            from fedaccord.federation.runs import ray as ray_engine
        except ImportError as error:
            return f"the Ray node {node} cannot import fedaccord ({error}); install it there"
        return ray_engine.attempt(job[0], run, node=node)

    options: dict[str, Any] = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
    if wanted["address"] is not None:
        # A local Ray has this process's environment.
        options["runtime_env"] = {"env_vars": ONE_THREAD}
    remote = ray.remote(**options)(attempt)

    def submit(run: bytes) -> Future[Any]:
        # In a list the reference stays one: a worker fetches the source once, not for each run.
        future: Future[Any] = remote.remote([job], run, path).future()
        return future

    return submit


def _one_line(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 400 else text[:400] + "..."
