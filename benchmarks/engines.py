"""Speed of a round of FedAvg: our local loop, Flower's simulation and pfl-research's simulator.

All do the same work: four clients, each takes its steps from the server's model on the same points,
and the models are averaged. It is the built-in federation of digits, and the paper's network at 64
samples a client; without evaluation, and with an evaluation of all four validation sets each
round. Before anything is timed, the models that the engines make of the same start are compared.
The engines take turns, block by block, in processes that were started before. Run with

    make bench            (or: python benchmarks/engines.py [--only ROW ...] [--quick])

It prints tables and replaces benchmarks/results/engines.json. pfl gets an environment of its own,
.venv-pfl, the first time; where it cannot be installed, the results say why and go on without it.
"""

from __future__ import annotations

import os

# One core each: the processes are the parallelism. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
# Flower and Ray are not to phone home.
os.environ.update(
    FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1", RAY_USAGE_STATS_ENABLED="0"
)

import argparse
import contextlib
import functools
import json
import math
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training
from games import machine, measure_rows
from rich.console import Console
from rich.table import Table

from fedaccord.federation import native
from fedaccord.federation.clients import Federation
from fedaccord.federation.config import Config
from fedaccord.federation.draws import Draws

HERE = Path(__file__).parent
RIVALS = HERE / "rivals"
RESULTS = HERE / "results" / "engines.json"
PFL_VENV = HERE.parent / ".venv-pfl"
PFL = ("pfl[pytorch]==0.6.0", HERE / "pfl-constraints.txt")
sys.path.insert(0, str(RIVALS))

import work

SEED = 20213
# How long a job may take before its engine is given up.
PATIENCE = 300.0
# Rounds for which draws are handed out.
MOST_ROUNDS = {"digits": 1000, "paper": 100}
# Rounds in which the models are compared, and how far apart they may be, as a part of how far
# they have moved. Another order of sums gives 1e-6; another point drawn gives 1e-1.
COMPARED, APART = 3, 1e-3


# The work, in files that every engine reads.


def write_work(folder: Path) -> dict[str, str]:
    """Write both pieces of work, and give the source of each one's points."""
    config = Config.default()
    digits = config.build(seed=SEED).deal(0)
    fedavg = config.algorithms["FedAvg"]
    _write(folder, "digits", digits, "mlp", fedavg.batch_size, fedavg.learning_rate)
    paper = training.federation("auto", "pre-trained")
    _write(folder, "paper", paper, "paper", training.SAMPLES, 0.002)
    return {"digits": "scikit-learn's digits", "paper": training.images()[2]}


def _write(
    folder: Path, name: str, source: Federation, network: str, batch_size: int, rate: float
) -> None:
    start = {k: v.numpy() for k, v in source.start().state_dict().items()}
    draws = []
    for client in source.clients:
        drawn = Draws(client.name, client.points, client.points, seed=SEED)
        draws.append([drawn.draw(batch_size) for _ in range(MOST_ROUNDS[name])])
    settings = {
        "names": source.names,
        "network": network,
        "classes": len(start["fc2.bias"]),
        "inputs": math.prod(source.clients[0].inputs.shape[1:]),
        "batch_size": batch_size,
        "learning_rate": rate,
        "seed": SEED,
    }
    points = {
        f"{kind}/{what}/{i}": tensor.numpy()
        for i, c in enumerate(source.clients)
        for kind, pair in (
            ("train", (c.inputs, c.labels)),
            ("validation", (c.validation_inputs, c.validation_labels)),
        )
        for what, tensor in zip("xy", pair, strict=True)
    }
    plain = {f"start/{k}": v for k, v in work.channels_first(start).items()}
    np.savez(
        folder / f"{name}.npz",
        settings=json.dumps(settings),
        draws=np.array(draws),
        **points,
        **plain,
    )


# The engines, each in processes of its own.


class EngineError(RuntimeError):
    """An engine did not start, or gave up."""


class Engine:
    """One or more processes that do jobs together, and answer in lines of JSON."""

    def __init__(self, name: str, commands: list[list[str]], folder: Path, **env: str) -> None:
        self._log = folder / f"{name}.log"
        self._processes = []
        # Free before any of them starts, and the same for all.
        port = _free_port()
        with self._log.open("w") as log:
            for rank, command in enumerate(commands):
                own = {key: value.format(rank=rank, port=port) for key, value in env.items()}
                self._processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                        cwd=folder,
                        env={**os.environ, "FEDACCORD_BENCH_WORK": str(folder), **own},
                    )
                )
        self.ready = self._heard()[0]

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Have a job done."""
        for rank, process in enumerate(self._processes):
            own = job if rank == 0 else {**job, "save": None}
            process.stdin.write(json.dumps(own) + "\n")
            process.stdin.flush()
        answers = self._heard()
        steps = [a["steps"] for a in answers]
        return {
            "seconds": max(a["seconds"] for a in answers),
            "steps": None if None in steps else sum(steps),
            "samples": sum(a["samples"] for a in answers),
            "accuracy": answers[0]["accuracy"],
        }

    def _heard(self) -> list[dict[str, Any]]:
        late = threading.Timer(PATIENCE, self._kill)
        late.start()
        try:
            lines = [process.stdout.readline() for process in self._processes]
        finally:
            late.cancel()
        if not all(lines):
            self._kill()
            words = " ".join(self._log.read_text().split())
            raise EngineError(f"its process ended: ... {words[-600:]}")
        return [json.loads(line) for line in lines]

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """Tell the processes that there is no more to do, and wait until they are gone."""
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_pfl() -> Path:
    """Give the Python of pfl's own environment, after making it where there is none."""
    python = PFL_VENV / "bin" / "python"
    if (PFL_VENV / ".installed").exists():
        return python
    Console(stderr=True).print(f"installing pfl into {PFL_VENV.name}, about two minutes once")
    wanted, constraints = PFL
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", PFL_VENV],
        [*pip, "-c", constraints, wanted],
    ):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
        except subprocess.CalledProcessError as error:
            said = " ".join(error.stderr.split())[-400:]
            raise EngineError(f"{wanted} cannot be installed: {said}") from None
        except (subprocess.TimeoutExpired, OSError) as error:
            raise EngineError(f"{wanted} cannot be installed: {error}") from None
    (PFL_VENV / ".installed").touch()
    return python


def _start_local(folder: Path) -> Engine:
    return Engine("local", [[sys.executable, str(RIVALS / "run_local.py"), str(folder)]], folder)


def _start_flower(folder: Path) -> Engine:
    command = [sys.executable, str(RIVALS / "run_flower.py"), str(folder)]
    return Engine("flower", [command], folder, FLWR_HOME=str(folder / "flwr"))


def _start_pfl(folder: Path, processes: int = 1) -> Engine:
    command = [str(install_pfl()), str(RIVALS / "run_pfl.py"), str(folder)]
    if processes == 1:
        return Engine("pfl", [command], folder)
    # As its users spread it over processes.
    addresses = ",".join(["127.0.0.1:{port}"] * processes)
    return Engine(
        "pfl2",
        [command] * processes,
        folder,
        PFL_WORKER_RANK="{rank}",
        PFL_WORKER_ADDRESSES=addresses,
    )


STARTS: dict[str, Callable[[Path], Engine]] = {
    "local": _start_local,
    "flower": _start_flower,
    "pfl": _start_pfl,
    "pfl2": functools.partial(_start_pfl, processes=2),
}


# Who is timed against whom.


@dataclass(frozen=True, eq=False)
class Contestant:
    """An engine with the way it is used.

    name: as in the results.
    engine: whose processes do it.
    uses: processes and threads.
    job: what its jobs say besides.
    rival: whether our loop should be ahead of it.
    only: the piece of work it is for; None for all.
    """

    name: str
    engine: str
    uses: str
    job: dict[str, Any] = field(default_factory=dict)
    rival: bool = False
    only: str | None = None


ONE = {"at_a_time": 1}
TWO = {"at_a_time": 2}
OURS = Contestant("our loop", "local", "1 process, 1 thread", {"engine": "auto", **ONE})
OURS_TORCH = Contestant(
    "our loop, stock torch", "local", OURS.uses, {"engine": "torch", **ONE}, only="paper"
)
CONTESTANTS = (
    OURS,
    OURS_TORCH,
    Contestant(
        "our loop, two runs at a time",
        "local",
        "2 processes, 1 thread each",
        {"engine": "auto", **TWO},
    ),
    Contestant(
        "our loop, stock torch, two runs at a time",
        "local",
        "2 processes, 1 thread each",
        {"engine": "torch", **TWO},
        only="paper",
    ),
    Contestant(
        "Flower's simulation",
        "flower",
        "2 actors, 1 thread each, and the server",
        {"native": False},
        rival=True,
    ),
    Contestant(
        "Flower's simulation, our native network",
        "flower",
        "2 actors, 1 thread each, and the server",
        {"native": True},
        only="paper",
    ),
    Contestant("pfl, one thread", "pfl", "1 process, 1 thread", {"threads": 1}, rival=True),
    Contestant("pfl, two threads", "pfl", "1 process, 2 threads", {"threads": 2}, rival=True),
    Contestant(
        "pfl, two processes", "pfl2", "2 processes, 1 thread each", {"threads": 1}, rival=True
    ),
)


class Ring:
    """The engines that could be started, and the reasons why others could not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = write_work(folder)
        self.engines: dict[str, Engine] = {}
        self.missing: dict[str, str] = {}
        self.startup: dict[str, float] = {}
        self.versions: dict[str, Any] = {}

    def open(self) -> None:
        """Start every engine, and let each do a first round."""
        for name, start in STARTS.items():
            try:
                if name.startswith("pfl"):
                    install_pfl()
                begin = time.perf_counter()
                self.engines[name] = start(self.folder)
                first = next(c for c in CONTESTANTS if c.engine == name)
                self.engines[name].ask(_job(first, "digits", 1, evaluated=True))
                self.startup[name] = time.perf_counter() - begin
                self.versions.update(self.engines[name].ready)
            except EngineError as error:
                if engine := self.engines.pop(name, None):
                    engine.close()
                self.missing[name] = str(error)
                Console(stderr=True).print(f"without {name}: {error}", markup=False)

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()

    def contestants(self, name: str) -> list[Contestant]:
        """Give those that can do a piece of work here."""
        return [
            c
            for c in CONTESTANTS
            if c.engine in self.engines
            and c.only in (None, name)
            and (native.available() or not c.job.get("native"))
        ]

    def ask(self, who: Contestant, name: str, rounds: int, **rest: Any) -> dict[str, Any]:
        """Have some rounds made, and see that they were."""
        done = self.engines[who.engine].ask(_job(who, name, rounds, **rest))
        given = work.work(str(self.folder), name)
        clients, size = given.clients, given.settings["batch_size"]
        if done["samples"] != rounds * clients * size:
            raise EngineError(f"{who.name} trained on {done['samples']} samples in {rounds} rounds")
        if done["steps"] not in (None, rounds * clients):
            raise EngineError(f"{who.name} took {done['steps']} steps in {rounds} rounds")
        return done


def _job(
    who: Contestant,
    name: str,
    rounds: int,
    *,
    evaluated: bool,
    dropout: bool = True,
    save: str | None = None,
) -> dict[str, Any]:
    said = {"evaluated": evaluated, "dropout": dropout, "save": save}
    return {"work": name, "rounds": rounds, **said, **who.job}


# The measurements.


def rows_same_work(ring: Ring, quick: bool) -> list[dict[str, Any]]:
    """Compare what the engines make of the same start and the same draws, without dropout."""
    rows = []
    for name in MOST_ROUNDS:
        given = work.work(str(ring.folder), name)
        answers, models = {}, {}
        for who in ring.contestants(name):
            if who.job.get("at_a_time") == 2:
                continue
            file = str(ring.folder / "made.npz")
            answers[who] = ring.ask(who, name, COMPARED, evaluated=True, dropout=False, save=file)
            with np.load(file) as made:
                models[who] = np.concatenate([made[k].ravel() for k in sorted(given.start)])
        start = np.concatenate([given.start[k].ravel() for k in sorted(given.start)])
        moved = float(np.linalg.norm(models[OURS] - start))
        for who, model in models.items():
            apart = float(np.linalg.norm(model - models[OURS])) / moved
            if not apart <= APART:
                raise EngineError(f"{who.name} makes another model of {name}: {apart:.2g} apart")
            rows.append(
                {
                    "row": f"{name}, {COMPARED} rounds: {who.name}",
                    "steps": answers[who]["steps"],
                    "samples": answers[who]["samples"],
                    "accuracy": answers[who]["accuracy"],
                    "model_apart": apart,
                    "goal": f"model_apart <= {APART:g}",
                    "met": True,
                }
            )
    return rows


def rows_of(ring: Ring, quick: bool, *, name: str, evaluated: bool) -> list[dict[str, Any]]:
    """Seconds of a round in every engine, block by block."""
    contestants = ring.contestants(name)
    rounds = {}
    for who in contestants:
        # About as long each, so that a slow minute of the machine falls on all alike.
        ring.ask(who, name, 1, evaluated=evaluated)
        once = ring.ask(who, name, 2, evaluated=evaluated)["seconds"] / 2
        rounds[who] = min(max(2, round((0.3 if quick else 1.2) / once)), MOST_ROUNDS[name])
    seconds: dict[Contestant, list[float]] = {who: [] for who in contestants}
    for _ in range(2 if quick else 5):
        for who in contestants:
            taken = ring.ask(who, name, rounds[who], evaluated=evaluated)["seconds"]
            seconds[who].append(taken / rounds[who])
    rows = [_row(who, seconds, rounds[who], ring) for who in contestants]
    return rows + [
        {"row": c.name, "available": False, "why": ring.missing[c.engine]}
        for c in CONTESTANTS
        if c.engine in ring.missing and c.only in (None, name)
    ]


def _row(
    who: Contestant, seconds: dict[Contestant, list[float]], rounds: int, ring: Ring
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "row": who.name,
        "uses": who.uses,
        "startup_seconds": ring.startup[who.engine],
        "rounds_a_block": rounds,
        "seconds": statistics.median(seconds[who]),
        "all_seconds": seconds[who],
        **_ratio("ratio", seconds[who], seconds[OURS]),
    }
    if OURS_TORCH in seconds:
        row |= _ratio("ratio_to_stock_torch", seconds[who], seconds[OURS_TORCH])
    if who.rival:
        row |= {"goal": "ratio > 1", "met": row["ratio"] > 1}
    return row


def _ratio(key: str, theirs: list[float], ours: list[float]) -> dict[str, Any]:
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return {key: statistics.median(ratios), f"{key}_range": [min(ratios), max(ratios)]}


def described_machine(ring: Ring) -> dict[str, Any]:
    """Say what ran this, on what points, and what could not run."""
    told = {k: v for k, v in ring.versions.items() if k != "why"}
    load = os.getloadavg()[0]
    return {**machine(), **told, "points": ring.sources, "load": load, "missing": ring.missing}


def table(rows: list[dict[str, Any]]) -> Table:
    """Lay the rows out for a terminal."""
    if "model_apart" in rows[0]:
        result = Table("what", "steps", "samples", "accuracy", "apart from our loop's", "met")
        for row in rows:
            figures = (f"{row['accuracy']:.4f}", f"{row['model_apart']:.1e}")
            result.add_row(row["row"], str(row["steps"]), str(row["samples"]), *figures, "yes")
        return result
    result = Table("engine", "uses", "start", "a round", "of our loop's", "of stock torch's", "met")
    for row in rows:
        if row.get("available", True):
            result.add_row(
                row["row"],
                row["uses"],
                f"{row['startup_seconds']:.1f} s",
                f"{1000 * row['seconds']:.4g} ms",
                _spread(row, "ratio"),
                _spread(row, "ratio_to_stock_torch"),
                {True: "yes", False: "no"}.get(row.get("met"), ""),
            )
        else:
            result.add_row(row["row"], "not here", row["why"][:60])
    return result


def _spread(row: dict[str, Any], key: str) -> str:
    if key not in row:
        return ""
    low, high = row[f"{key}_range"]
    return f"{row[key]:.3g} [{low:.3g}, {high:.3g}]"


GROUPS: dict[str, Callable[[Ring, bool], list[dict[str, Any]]]] = {
    "same work": rows_same_work,
    "digits": functools.partial(rows_of, name="digits", evaluated=False),
    "digits, evaluated": functools.partial(rows_of, name="digits", evaluated=True),
    "paper": functools.partial(rows_of, name="paper", evaluated=False),
    "paper, evaluated": functools.partial(rows_of, name="paper", evaluated=True),
}


@contextlib.contextmanager
def opened_ring() -> Iterator[Ring]:
    """Start the engines in a folder of their own, and end them."""
    with tempfile.TemporaryDirectory(prefix="fa-") as folder:
        ring = Ring(Path(folder))
        try:
            ring.open()
            yield ring
        finally:
            ring.close()


def main() -> None:
    """Run the rows asked for, keep the others' last results, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--quick", action="store_true", help="few repetitions, nothing written")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with opened_ring() as ring:
        measure_rows(
            {name: functools.partial(rows, ring) for name, rows in GROUPS.items()},
            chosen,
            results=RESULTS,
            seed=SEED,
            machine=functools.partial(described_machine, ring),
            table=table,
        )


if __name__ == "__main__":
    sys.exit(main())
