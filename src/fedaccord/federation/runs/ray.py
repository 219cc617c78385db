"""Runs on a Ray cluster: as many at a time as it has CPUs, and again elsewhere if a node dies.

Ray itself is in a process of its own. It prints what it likes there, and where it ends its process,
as it does when a cluster's head is gone, this one is still there to say so.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import itertools
import os
import pickle
import re
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from fedaccord._checks import check_workers, cores
from fedaccord._lazy import EXTRAS
from fedaccord.errors import FedaccordError, InputError, MissingExtraError
from fedaccord.federation.history import History
from fedaccord.federation.runs.execute import (
    Deal,
    Finished,
    RunError,
    Source,
    package_versions,
    spread,
)
from fedaccord.federation.runs.processes import name_folder, new_token
from fedaccord.federation.runs.store import Run
from fedaccord.federation.runs.worker import answer, pack, read_reply, start_process, unpack

ADDRESS = re.compile(r"(?:ray://)?(?P<host>\[[^][\s]+\]|[^][:/\s]+):(?P<port>\d{1,5})")
# What Ray is told by its environment: to send nothing home, and not to warn of the future.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# How long a machine may take to answer, Ray to connect or to start, and to leave, in seconds.
REACH = 5.0
CONNECT = 180.0
LEAVE = 20.0
# How long it is waited before a run that was lost is made again, then twice as long, in seconds:
# Ray needs a while to notice that a node is gone.
PAUSE = 2.0


class RayEngine(contextlib.AbstractContextManager["RayEngine"]):
    """Makes runs on the nodes of a Ray cluster, or of a local Ray that it starts and ends.

    source: deals a federation to each trial.
    workers: how many runs are under way at a time; one per CPU of the cluster where left out.
    address: of a cluster: "auto", host:port or ray://host:port. Without one, Ray is started here.
    """

    def __init__(
        self, source: Source, *, workers: int | None = None, address: str | None = None
    ) -> None:
        self._workers, self._address = check_request(workers, address)
        self._source = source
        self._driver: _Driver | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster, or end the local Ray; runs under way are lost."""
        if self._driver is not None:
            self._driver.close()
        self._driver = None

    def finished(self, runs: Iterable[Run]) -> Iterator[Finished]:
        """Make the runs, and yield them in the order in which they end."""
        return spread(iter(runs), self._submit, room=self._room)

    def _room(self) -> int:
        # Ray is not asked before there is a run to make. Where all nodes are gone one is waited
        # for, with a run at hand.
        return self._workers or (max(1, self._driver.cpus) if self._driver else 1)

    def _submit(self, run: Run) -> Future[History]:
        if self._driver is None:
            self._driver = _Driver(self._address)
            self._driver.connect(self._source, self._workers)
        return self._driver.submit(run)


def check_request(workers: int | None, address: str | None) -> tuple[int | None, str | None]:
    """Return what is asked of Ray, if it can be had, or raise what is wrong."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", EXTRAS["ray"])
    if workers is not None:
        workers = check_workers(workers, here=address is None)
    return workers, None if address is None else _check_address(address)


def _check_address(address: str) -> str:
    """Return the address of a cluster at which somebody listens."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or "auto"
    if address == "auto":
        return address
    try:
        parts = ADDRESS.fullmatch(address)
        if parts is None or int(parts["port"]) > 65535:
            raise ValueError
        host = parts["host"].strip("[]")
        socket.create_connection((host, int(parts["port"])), timeout=REACH).close()
    except OSError as error:
        raise InputError(
            f"nothing answers at {address} ({error.strerror or error}): start a Ray cluster there "
            "(ray start --head), or correct the address"
        ) from None
    except ValueError:
        # Also of a name that no machine has: those have letters between their dots, and not too
        # many.
        raise InputError(
            f"the address of a Ray cluster must be auto, host:port or ray://host:port; got "
            f"{address!r}; leave it out to start Ray on this machine"
        ) from None
    return address


class _Driver:
    """The process that speaks with Ray: runs go in, and their histories come back.

    address: of the cluster; None to start Ray on this machine.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._where = "here" if address is None else f"at {address}"
        self.cpus = 0
        self._numbers = itertools.count()
        self._under_way: dict[int, tuple[Run, Future[History]]] = {}
        self._over = False
        self._lock = threading.Lock()
        self._connected: Future[None] = Future()
        # Of a Ray that is started here; one that runs already has its own.
        self._folder = "" if address else str(name_folder("fedaccord-ray-"))
        self._process = start_process(
            "fedaccord.federation.runs.ray_driver:drive",
            environment={**QUIET, **({} if address else new_token())},
            quiet=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def connect(self, source: Source, workers: int | None) -> None:
        """Have Ray connected or started, and given the source."""
        stream = io.BytesIO()
        pack(source.deal, stream)
        self._process.greet()
        self._send(
            {
                "address": self._address,
                "cpus": workers or cores(),
                "waits_for_nodes": workers is not None,
                "folder": self._folder,
                "pause": PAUSE,
                "job": (stream.getvalue(), package_versions()),
            }
        )
        try:
            self._connected.result(timeout=CONNECT)
        except TimeoutError:
            raise RunError(
                f"Ray {self._where} has not answered in {CONNECT:.0f} seconds: check its state "
                "with 'ray status'"
            ) from None

    def submit(self, run: Run) -> Future[History]:
        """Have the cluster make a run."""
        number, future = next(self._numbers), Future[History]()
        with self._lock:
            if self._over:
                raise self._gone()
            self._under_way[number] = run, future
        self._send((number, bytes(cloudpickle.dumps(run))))
        return future

    def _send(self, what: Any) -> None:
        try:
            pickle.dump(what, self._process.tasks)
            self._process.tasks.flush()
        except BrokenPipeError:
            raise self._gone() from None

    def _listen(self) -> None:
        """Take in what the process says until it ends."""
        try:
            with contextlib.suppress(EOFError, pickle.UnpicklingError):
                while True:
                    kind, *rest = pickle.load(self._process.results)
                    getattr(self, f"_{kind}")(*rest)
        finally:
            self._give_up(self._gone())

    def _give_up(self, error: FedaccordError) -> None:
        """Fail everything that is still waiting."""
        with self._lock:
            self._over = True
            waiting: list[Future[Any]] = [future for _, future in self._under_way.values()]
        for future in (self._connected, *waiting):
            if not future.done():
                future.set_exception(error)

    def _room(self, cpus: int) -> None:
        self.cpus = cpus
        if not self._connected.done():
            self._connected.set_result(None)

    def _refused(self, why: str) -> None:
        if self._connected.done():
            # Not what was asked for is at fault, and there may be finished runs to go on from.
            self._give_up(RunError(f"Ray {self._where} failed: {why}"))
        else:
            self._give_up(InputError(f"cannot use Ray {self._where}: {why}"))

    def _made(self, number: int, replied: bytes) -> None:
        _, future = self._under_way.pop(number)
        try:
            future.set_result(read_reply(pickle.loads(replied)))
        except FedaccordError as error:
            future.set_exception(error)

    def _failed(self, number: int, why: str) -> None:
        run, future = self._under_way.pop(number)
        future.set_exception(RunError(f"Ray cannot make the run of {run}: {why}"))

    def _lost(self, number: int, times: int, why: str) -> None:
        run, future = self._under_way.pop(number)
        sentence = (
            f"Ray lost the run of {run} {times} times, at last because {why}: if memory "
            "is short, use fewer workers, or start the nodes with fewer CPUs"
        )
        future.set_exception(RunError(sentence))

    def _gone(self) -> RunError:
        said = self._process.read_errors()
        if self._connected.done():
            sentence = (
                f"the connection to Ray {self._where} was lost: check that its head is running"
            )
        else:
            last = said.rpartition("\n")[2]
            sentence = f"Ray {self._where} cannot be used, its process ended: {last}"
        error = RunError(sentence)
        error.add_note(said)
        return error

    def close(self) -> None:
        """Have the process leave; what is under way is cancelled."""
        try:
            self._process.hang_up()
            if self._connected.done():
                self._process.status(LEAVE)
        finally:
            # Ctrl-C while it takes its time: it has had enough.
            self._process.end()
            self._listener.join()
            self._process.close()
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)


def attempt(job: Any, run: bytes, *, node: str) -> bytes:
    """Make a run in a process of a cluster's; return what came of it as bytes.

    job: Ray's reference to the source and the versions of the process that asks.
    run: to be made, pickled.
    node: what this node is called.
    """
    deal, asked = _load_job(job)
    if asked != package_versions():
        sentence = (
            f"the Ray node {node} has {package_versions()}, and this process has {asked}: install "
            "the same there, or start that node without CPUs"
        )
        return pickle.dumps((RunError(sentence), ""))
    try:
        loaded: Run = pickle.loads(run)
    except Exception as error:  # noqa: BLE001 - whatever a user's algorithm needs may be missing
        sentence = (
            f"the Ray node {node} cannot load the algorithm ({type(error).__name__}: {error}): "
            "install the module that it is in there"
        )
        return pickle.dumps((RunError(sentence), ""))
    return pickle.dumps(answer(deal, loaded))


@functools.lru_cache(maxsize=1)
def _load_job(job: Any) -> tuple[Deal, str]:
    import ray

    source, versions = ray.get(job)
    return unpack(io.BytesIO(source)), versions
