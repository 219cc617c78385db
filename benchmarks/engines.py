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

import contextlib
import functools
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training
from measuring import clock, compare, machine, measure_rows, parse_rows, write_ratio
from rich.console import Console
from rich.table import Table

from fedaccord.federation.clients import Federation
from fedaccord.federation.config.load import Config
from fedaccord.federation.training.rng import Draws

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "engines.json"
sys.path.insert(0, str(HERE / "rivals"))

import work
from processes import STARTS, Engine, EngineError, install_pfl

SEED = 20213
# Rounds for which draws are handed out.
MOST_ROUNDS = {"digits": 1000, "paper": 100}
# Rounds in which the models are compared, and how far apart they may be, as a part of how far
# they have moved: one other sample of one client in the last round makes 1e-2. Accuracies may
# differ by a few points that are near to two classes.
COMPARED, APART, NEAR = 3, 1e-3, 0.005


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
        {"strategy": "flower", "network": "plain"},
        rival=True,
    ),
    Contestant(
        "Flower's simulation, our network",
        "flower",
        "2 actors, 1 thread each, and the server",
        {"strategy": "flower", "network": "ours"},
        only="paper",
    ),
    Contestant(
        "Flower's simulation, our strategy and network",
        "flower",
        "2 actors, 1 thread each, and the server",
        {"strategy": "ours", "network": "ours"},
    ),
    Contestant("pfl, one thread", "pfl", "1 process, 1 thread", {"threads": 1}, rival=True),
    Contestant("pfl, two threads", "pfl", "1 process, 2 threads", {"threads": 2}, rival=True),
    Contestant(
        "pfl, two processes", "pfl2", "2 processes, 1 thread each", {"threads": 1}, rival=True
    ),
)


class OtherWork(Exception):
    """An engine did not do what the others do: its times would mean nothing."""


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
            if name == "pfl2" and "pfl" in self.missing:
                # What one process cannot do, two cannot.
                self.missing[name] = self.missing["pfl"]
                continue
            try:
                if name.startswith("pfl"):
                    install_pfl()
                begin = functools.partial(self._begin, name, start)
                self.startup[name], _ = clock(begin, time.perf_counter)
                self.versions.update(self.engines[name].ready)
            except EngineError as error:
                self._lose(name, error)

    def _begin(self, name: str, start: Callable[[Path], Engine]) -> None:
        self.engines[name] = start(self.folder)
        first = next(c for c in CONTESTANTS if c.engine == name)
        self.engines[name].ask(_job(first, "digits", 1, evaluated=True))

    def _lose(self, name: str, error: EngineError) -> None:
        """Go on without an engine, unless it is ours."""
        if engine := self.engines.pop(name, None):
            engine.close()
        if name == "local":
            raise error
        self.missing[name] = str(error)
        Console(stderr=True).print(f"without {name}: {error}", markup=False)

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()

    def contestants(self, name: str) -> list[Contestant]:
        """Give those that can do a piece of work here."""
        return [c for c in CONTESTANTS if c.engine in self.engines and c.only in (None, name)]

    def ask(self, who: Contestant, name: str, rounds: int, **rest: Any) -> dict[str, Any] | None:
        """Have some rounds made, and see that they were; None if the engine is lost."""
        if who.engine in self.missing:
            return None
        try:
            done = self.engines[who.engine].ask(_job(who, name, rounds, **rest))
        except EngineError as error:
            self._lose(who.engine, error)
            return None
        given = work.work(str(self.folder), name)
        clients, size = given.clients, given.settings["batch_size"]
        if done["samples"] != rounds * clients * size:
            raise OtherWork(f"{who.name} trained on {done['samples']} samples in {rounds} rounds")
        if done["steps"] not in (None, rounds * clients):
            raise OtherWork(f"{who.name} took {done['steps']} steps in {rounds} rounds")
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
            done = ring.ask(who, name, COMPARED, evaluated=True, dropout=False, save=file)
            if done is None:
                continue
            answers[who] = done
            with np.load(file) as made:
                models[who] = np.concatenate([made[k].ravel() for k in sorted(given.start)])
        start = np.concatenate([given.start[k].ravel() for k in sorted(given.start)])
        moved = float(np.linalg.norm(models[OURS] - start))
        for who, model in models.items():
            apart = float(np.linalg.norm(model - models[OURS])) / moved
            seen = abs(answers[who]["accuracy"] - answers[OURS]["accuracy"])
            if not (apart <= APART and seen <= NEAR):
                raise OtherWork(
                    f"{who.name} does other work on {name}: its model is {apart:.2g} apart, its "
                    f"accuracy {seen:.2g}"
                )
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
    rounds: dict[Contestant, int] = {}
    for who in ring.contestants(name):
        # The first is to warm up. About as long each, so that a slow minute falls on all alike.
        for few in (1, 2):
            done = ring.ask(who, name, few, evaluated=evaluated)
        if done is not None:
            wanted = round(2 * (0.2 if quick else 0.8) / done["seconds"])
            rounds[who] = min(max(2, wanted), MOST_ROUNDS[name])
    seconds: dict[Contestant, list[float]] = {who: [] for who in rounds}
    processor: dict[Contestant, list[float]] = {who: [] for who in rounds}
    for _ in range(2 if quick else 5):
        for who in rounds:
            done = ring.ask(who, name, rounds[who], evaluated=evaluated)
            if done is not None:
                seconds[who].append(done["seconds"] / rounds[who])
                processor[who].append(done["cpu_seconds"])
    contestants = [who for who in rounds if who.engine not in ring.missing]
    rows = [_row(who, seconds, processor, rounds[who], ring) for who in contestants]
    return rows + [
        {"row": c.name, "available": False, "why": ring.missing[c.engine]}
        for c in CONTESTANTS
        if c.engine in ring.missing and c.only in (None, name)
    ]


def _row(
    who: Contestant,
    seconds: dict[Contestant, list[float]],
    processor: dict[Contestant, list[float]],
    rounds: int,
    ring: Ring,
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "row": who.name,
        "uses": who.uses,
        "startup_seconds": ring.startup[who.engine],
        "rounds_a_block": rounds,
        "seconds": statistics.median(seconds[who]),
        "all_seconds": seconds[who],
        **compare(seconds[who], seconds[OURS]),
        # What the engine keeps all cores busy with; other work on the machine hardly changes it.
        "cpu_seconds": statistics.median(processor[who]),
        **compare(processor[who], processor[OURS], "cpu_ratio"),
    }
    if OURS_TORCH in seconds:
        row |= compare(seconds[who], seconds[OURS_TORCH], "ratio_to_stock_torch")
    if who.rival:
        row |= {"goal": "ratio > 1", "met": row["ratio"] > 1}
    return row


def described_machine(ring: Ring) -> dict[str, Any]:
    """Say what ran this, on what points, and what could not run."""
    told = {k: v for k, v in ring.versions.items() if k != "why"}
    return {**machine(), **told, "points": ring.sources, "missing": ring.missing}


def table(rows: list[dict[str, Any]]) -> Table:
    """Lay the rows out for a terminal."""
    if "model_apart" in rows[0]:
        result = Table("what", "steps", "samples", "accuracy", "apart from our loop's", "met")
        for row in rows:
            figures = (f"{row['accuracy']:.4f}", f"{row['model_apart']:.1e}")
            result.add_row(row["row"], str(row["steps"]), str(row["samples"]), *figures, "yes")
        return result
    columns = ("starts in", "a round", "x ours", "x ours in stock torch", "CPU", "x ours", "met")
    result = Table("engine", *columns)
    for row in rows:
        if row.get("available", True):
            result.add_row(
                row["row"],
                f"{row['startup_seconds']:.1f} s",
                f"{1000 * row['seconds']:.4g} ms",
                write_ratio(row, "ratio"),
                write_ratio(row, "ratio_to_stock_torch"),
                f"{1000 * row['cpu_seconds']:.4g} ms",
                write_ratio(row, "cpu_ratio"),
                {True: "yes", False: "no"}.get(row.get("met"), ""),
            )
        else:
            result.add_row(row["row"], "not here")
    return result


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
    chosen = parse_rows(str(__doc__).splitlines()[0], GROUPS).parse_args()
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
