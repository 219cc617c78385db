"""The process that speaks with Ray: it takes runs from a pipe, and sends back what came of them.

It makes no run itself and needs no torch. A bug in a run comes back as a result; what Ray raises is
the loss of a worker process or of a node, and the run is made again, elsewhere if need be.
"""

from __future__ import annotations

import contextlib
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
        events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(tasks, events), daemon=True).start()
        relay = _Relay(events, results)
        try:
            ray.init(**_options(wanted), log_to_driver=False, configure_logging=False)
            relay.serve(wanted)
        except (OSError, RuntimeError, ValueError, exceptions.RayError) as error:
            relay.tell("refused", _one_line(error))
        finally:
            ray.shutdown()
            if wanted["folder"]:
                shutil.rmtree(wanted["folder"], ignore_errors=True)


def _options(wanted: dict[str, Any]) -> dict[str, Any]:
    if wanted["address"] is not None:
        return {"address": wanted["address"]}
    return {
        "address": "local",
        "num_cpus": wanted["cpus"],
        "include_dashboard": False,
        # One inside: Ray opens its folder to everybody.
        "_temp_dir": str(Path(wanted["folder"]) / "ray"),
    }


def _listen(tasks: IO[bytes], events: queue.SimpleQueue[tuple[Any, ...]]) -> None:
    """Pass runs on; see to it that this process ends when the other has hung up."""
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            events.put(("run", *pickle.load(tasks)))
    events.put(("end",))
    time.sleep(LEAVE)
    os._exit(1)


class _Relay:
    """Passes runs to the cluster and results back, and counts how often a run was lost.

    events: what happens: runs that come in, attempts that ended, nodes that were counted.
    results: where what came of it goes.
    """

    def __init__(self, events: queue.SimpleQueue[tuple[Any, ...]], results: IO[bytes]) -> None:
        self._events = events
        self._results = results
        self._runs: dict[int, bytes] = {}
        self._lost: dict[int, int] = {}
        self._cpus = -1
        self._last_seen = time.monotonic()
        self._submit: Callable[[bytes], Future[Any]]
        self._pause: float

    def tell(self, *message: Any) -> None:
        """Tell the process at the other end."""
        pickle.dump(message, self._results)
        self._results.flush()

    def serve(self, wanted: dict[str, Any]) -> None:
        """Deal with what happens until the other process hangs up."""
        self._submit, self._pause = _submitter(wanted), wanted["pause"]
        cpus = _cpus()
        if cpus == 0 and not wanted["waits_for_nodes"]:
            return self.tell("refused", "no node there has a CPU; start one, or ask for workers")
        self._room(cpus)
        threading.Thread(target=_look, args=(self._events,), daemon=True).start()
        while (event := self._events.get())[0] != "end":
            getattr(self, f"_{event[0]}")(*event[1:])

    def _run(self, number: int, run: bytes) -> None:
        self._runs[number] = run
        self._lost[number] = 0
        self._again(number)

    def _again(self, number: int) -> None:
        if number in self._runs:
            future = self._submit(self._runs[number])
            future.add_done_callback(lambda done: self._events.put(("ended", number, done)))

    def _ended(self, number: int, done: Future[Any]) -> None:
        if number not in self._runs:
            return
        error = done.exception()
        if error is None:
            kind = "made" if isinstance(done.result(), bytes) else "failed"
            self._finish(kind, number, done.result())
        elif isinstance(error, exceptions.RayTaskError):
            # No loss: what makes runs failed itself, and would again.
            self._finish("failed", number, _one_line(getattr(error, "cause", error)))
        else:
            self._lost[number] += 1
            self._retry(number, error)

    def _retry(self, number: int, error: BaseException) -> None:
        times = self._lost[number]
        if times == ATTEMPTS:
            why = LOST.get(type(error), _one_line(error))
            return self._finish("lost", number, times, why)
        pause = self._pause * 2 ** (times - 1)
        timer = threading.Timer(pause, self._events.put, [("again", number)])
        timer.daemon = True
        timer.start()

    def _finish(self, kind: str, number: int, *rest: Any) -> None:
        del self._runs[number], self._lost[number]
        self.tell(kind, number, *rest)

    def _room(self, cpus: int) -> None:
        if cpus:
            self._last_seen = time.monotonic()
        elif self._runs and time.monotonic() - self._last_seen > PATIENCE:
            for number in list(self._runs):
                self._finish("failed", number, "the cluster has had no CPUs for a while")
        if cpus != self._cpus:
            self._cpus = cpus
            self.tell("room", cpus)


def _cpus() -> int:
    """Count the CPUs of the nodes that are there, each of which can make a run."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    return sum(int(node["Resources"].get("CPU", 0)) for node in alive)


def _look(events: queue.SimpleQueue[tuple[Any, ...]]) -> None:
    while True:
        time.sleep(LOOK)
        # A head that does not answer may do so later.
        with contextlib.suppress(OSError, RuntimeError, exceptions.RayError):
            events.put(("room", _cpus()))


def _submitter(wanted: dict[str, Any]) -> Callable[[bytes], Future[Any]]:
    """Put the source into Ray's store, once, and give what has a run made with it."""
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
