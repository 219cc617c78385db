"""Runs made by Flower's simulation: the audit's engine "flower".

Starting the simulation takes a quarter of a minute, so one makes all runs, one after the other, in
a process of its own. What it computes is what the local loop computes, up to rounding; only where
a network draws random numbers in a way of its own, as torch's Dropout does, are they others.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import math
import os
import queue
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from torch.utils.data import TensorDataset

from fedaccord._checks import check_workers
from fedaccord.errors import FedaccordError, InputError, MissingExtraError
from fedaccord.federation.clients import Federation
from fedaccord.federation.flower import client as answers
from fedaccord.federation.flower.server import AlgorithmStrategy
from fedaccord.federation.history import History
from fedaccord.federation.remote import protocol
from fedaccord.federation.remote.site import Site
from fedaccord.federation.runs.execute import Deal, LocalEngine, RunError, Source
from fedaccord.federation.runs.processes import clean_up_after, name_folder, new_token
from fedaccord.federation.runs.ray import QUIET as RAY_QUIET
from fedaccord.federation.runs.store import Run
from fedaccord.federation.runs.worker import Worker, pack, start_process, unpack
from fedaccord.federation.runs.worker import serve as serve_runs
from fedaccord.federation.training.loop import (
    check_contributions,
    copy_weights,
    make_model,
    reproducibly,
    score_history,
)

# Flower is to send nothing home either.
QUIET = {**RAY_QUIET, "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
# How the process is told where to keep its files, and how many clients are to train at a time.
FOLDER = "FEDACCORD_SIMULATION_FOLDER"
ACTORS = "FEDACCORD_SIMULATION_ACTORS"
# What messages say besides: which trial's points.
TRIAL = "trial"
# Of Flower's kinds of error, that of an app.
CLIENT_APP_FAILED = 2
# Seconds between two looks for replies, instead of Flower's 0.1.
PULL_INTERVAL = 0.005
# How often Ray is started where it fails: on a busy machine it gives itself too little time.
ATTEMPTS = 3
# How long the files of a simulation that has ended may take to go, in seconds.
PATIENCE = 10.0
# How Flower names what Ray raised.
RAY_ERROR = re.compile(r"ray\.exceptions\.(\w+)")


class FlowerEngine(LocalEngine):
    """Makes runs in Flower's simulation, with our strategies and each client a node of its own.

    What models print there is not shown, and neither is what Flower and Ray have to say.

    source: deals a federation to each trial.
    workers: how many clients train at a time, each on one core; one where left out.
    """

    server = "fedaccord.federation.flower.engine:serve"
    apart = True

    def __init__(self, source: Source, *, workers: int | None = None) -> None:
        actors = min(check_workers(1 if workers is None else workers), len(source.names))
        super().__init__(source)
        if find_spec("ray") is None:
            raise MissingExtraError("ray", "flower")
        self.environment = {**QUIET, **new_token(), ACTORS: str(actors)}
        # One for each simulation; another is started after an error.
        self.folders: list[Path] = []

    def close(self) -> None:
        """End the simulation at once; what it is at is lost."""
        super().close()
        end = time.monotonic() + PATIENCE
        while any(folder.exists() for folder in self.folders) and time.monotonic() < end:
            time.sleep(0.02)

    def _submit(self, run: Run) -> Future[History]:
        if run.algorithm.trains_alone:
            raise InputError(
                f"{run.algorithm.name} trains clients alone, so there is no federation to "
                'simulate: use the engine "local"'
            )
        if not run.algorithm.runs_anywhere or run.tactic is not None or run.goes_on:
            raise InputError(
                f"{run.algorithm.name} with these options needs data that Flower's clients do not "
                'send here: use the engine "local"'
            )
        return super()._submit(run)

    def _make(self, worker: Worker, run: Run) -> History:
        try:
            return super()._make(worker, run)
        except FedaccordError:
            # A client of this simulation may be dead: who goes on gets a new one.
            worker.process.end()
            raise

    def _start_worker(self) -> Worker:
        self.folders.append(name_folder("fedaccord-"))
        environment = {**self.environment, FOLDER: str(self.folders[-1])}
        process = start_process(self.server, environment=environment, quiet=True)
        return _Simulator(process, self._source)


class _Simulator(Worker):
    """The process of a simulation, which can tell why it ended."""

    def _explain_loss(self, run: Run, status: int) -> RunError:
        said = self.process.read_errors()
        if status > 0 and said:
            last = said.rpartition("\n")[2]
            error = RunError(f"Flower's simulation ended in the run of {run}: {last}")
        else:
            error = super()._explain_loss(run, status)
        error.add_note(said)
        return error


# In the worker process.


def serve(tasks: IO[bytes], results_to: int) -> None:
    """Make runs for the process at the other end of the pipes until it is gone."""
    folder = Path(os.environ[FOLDER])
    with clean_up_after(folder):
        simulation = Simulation(folder, actors=int(os.environ[ACTORS]))
        serve_runs(tasks, results_to, make=simulation.make)


class Simulation:
    """Flower's simulation, started for the first run.

    folder: where its files are.
    actors: how many clients train at a time.
    """

    def __init__(self, folder: Path, *, actors: int) -> None:
        self._folder = folder
        self._actors = actors
        self._grid: Grid | None = None

    def make(self, deal: Deal, run: Run) -> History:
        """Make a run."""
        federation = deal(run.trial)
        strategy = _strategy(federation, run)
        if self._grid is None:
            file = self._folder / "source"
            with file.open("wb") as to:
                pack(inspect.unwrap(deal), to)
            points = tuple(federation.points.tolist())
            self._grid = self._start(Clients(str(file), federation.names, points))
        try:
            with reproducibly(run.seed):
                start = copy_weights(make_model(federation))
                about = ConfigRecord({TRIAL: run.trial})
                strategy.start(
                    self._grid,
                    ArrayRecord({name: Array(array) for name, array in start.items()}),
                    num_rounds=run.algorithm.rounds,
                    # Nobody is far away here: a round takes as long as it takes.
                    timeout=math.inf,
                    train_config=about,
                    evaluate_config=about,
                )
        except InputError:
            raise
        except FedaccordError as error:
            raise RunError(_failure(run, strategy, error)) from error
        history = score_history(federation, strategy.history)
        return dataclasses.replace(history, weights={}, checkpoints={})

    def _start(self, clients: Clients) -> Grid:
        _start_ray(self._folder, self._actors)
        # Only now: Ray is to find its environment set. Flower would rather be started by its own
        # command, but that makes one run and ends.
        from flwr.simulation import run_simulation

        logging.getLogger("flwr").setLevel(logging.CRITICAL)
        grids: queue.SimpleQueue[Grid] = queue.SimpleQueue()

        def simulate() -> None:
            try:
                run_simulation(
                    _make_lender(grids),
                    clients.app(),
                    num_supernodes=len(clients.names),
                    backend_config={"client_resources": {"num_cpus": 1}},
                )
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is told and the end
                traceback.print_exc()
                # Why it ended in the last line, for Flower says only that it did.
                while error.__cause__ is not None:
                    error = error.__cause__
                os.write(2, " ".join(f"{type(error).__name__}: {error}".split()).encode() + b"\n")
            finally:
                # No reply would ever come.
                os._exit(1)

        threading.Thread(target=simulate, daemon=True).start()
        return grids.get()


def _start_ray(folder: Path, cpus: int) -> None:
    import ray

    # Its processes find what this one finds.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    for attempt in range(ATTEMPTS):
        try:
            ray.init(
                address="local",
                num_cpus=cpus,
                num_gpus=0,
                include_dashboard=False,
                log_to_driver=False,
                # One inside: Ray opens its folder to everybody.
                _temp_dir=str(folder / "ray"),
            )
            return
        except Exception as error:  # it has no other name for having run out of its own patience
            ray.shutdown()
            if attempt + 1 == ATTEMPTS:
                detail = " ".join(str(error).split())
                raise RunError(f"Ray, in which Flower simulates, cannot start: {detail}") from error


def _make_lender(grids: queue.SimpleQueue[Grid]) -> ServerApp:
    """Make a ServerApp that gives its grid away, for runs to come, and never ends."""
    app = ServerApp()

    @app.main()
    def _main(grid: Grid, context: Context) -> None:
        if hasattr(grid, "pull_interval"):
            grid.pull_interval = PULL_INTERVAL
        grids.put(grid)
        threading.Event().wait()

    return app


def _failure(run: Run, strategy: AlgorithmStrategy, error: FedaccordError) -> str:
    death = RAY_ERROR.search(str(error))
    if death is None:
        return f"the run of {run} failed: {error}"
    return (
        f"the process of {strategy.remarks[-1].client} was lost in the run of {run} "
        f"({death[1]}): if memory is short, use fewer workers"
    )


def _strategy(federation: Federation, run: Run) -> AlgorithmStrategy:
    brought = check_contributions(federation, run.contributions)
    names, clients = federation.names, len(federation.clients)
    return AlgorithmStrategy(
        algorithm=run.algorithm,
        requirements=dict(zip(names, federation.requirements.tolist(), strict=True)),
        plan=dict(zip(names, brought.tolist(), strict=True)),
        seed=run.seed,
        ask_for=(protocol.LOSS,),
        exacting=True,
        min_train_nodes=clients,
        min_evaluate_nodes=clients,
        min_available_nodes=clients,
    )


# In the clients' processes.


@dataclass(frozen=True)
class Clients:
    """The nodes' side. It goes along with every message, so it only says where the points are.

    file: where what deals the federations is.
    names: what the clients are called, in the order of their nodes.
    points: how many points each could bring.
    """

    file: str
    names: tuple[str, ...]
    points: tuple[int, ...]

    def app(self) -> ClientApp:
        """Return the app of all nodes."""
        app = ClientApp()
        app.query()(self.introduce)
        app.train()(self.train)
        app.evaluate()(self.evaluate)
        return app

    def introduce(self, message: Message, context: Context) -> Message:
        """Say who the client is, of which no trial's points are needed."""
        place = _place(context)
        many = TensorDataset(torch.empty((self.points[place], 0)))
        site = Site(torch.nn.Identity, many, many, name=self.names[place])
        return answers.introduce(site, message)

    def train(self, message: Message, context: Context) -> Message:
        """Train on what the client draws."""
        return self._answer(answers.train_on, message, context)

    def evaluate(self, message: Message, context: Context) -> Message:
        """Measure the client's accuracy."""
        return self._answer(answers.evaluate_on, message, context)

    def _answer(
        self, act: Callable[[Site, Message], Message], message: Message, context: Context
    ) -> Message:
        try:
            return act(self._site(message, context), message)
        except FedaccordError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a user's model may fail in any way; it is told
            # Flower would give a page of Ray's.
            reason = f"{type(error).__name__}: {error}"
        return Message(Error(code=CLIENT_APP_FAILED, reason=reason), reply_to=message)

    def _site(self, message: Message, context: Context) -> Site:
        config = next(iter(message.content.config_records.values()))
        federation = _load_deal(self.file)(int(config[TRIAL]))  # type: ignore[arg-type]
        client = federation.clients[_place(context)]
        return Site(
            federation.model,
            TensorDataset(client.inputs, client.labels),
            TensorDataset(client.validation_inputs, client.validation_labels),
            name=client.name,
            may_report=(protocol.LOSS,),
            goals=client.goals,
        )


def _place(context: Context) -> int:
    return int(context.node_config["partition-id"])


@functools.cache
def _load_deal(file: str) -> Deal:
    """Load what deals the federations, once in each process."""
    torch.set_num_threads(1)
    with open(file, "rb") as source:
        return unpack(source)
