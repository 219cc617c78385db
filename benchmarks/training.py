"""Speed of training, as ratios taken in one interleaved run.

A round is one of the paper's: four clients, 64 samples each are trained on with Adam, and 200
validation points each are evaluated. It is timed in the plain loop, which any user of torch would
write, and in the real one with the network in tuned stock torch and as the native block. Run with

    make bench            (or: python benchmarks/training.py [--only ROW ...] [--quick])

The row "small" is about small networks: runs and audits of the built-in federation, in CPU seconds
and in processes of their own. They are compared with torch, or with another version of fedaccord:
--against FOLDER names its src folder.

It prints a table and replaces benchmarks/results/training.json. The images are EMNIST's where the
folder FEDACCORD_DATA has them, and enlarged digits elsewhere; the results say which.
"""

from __future__ import annotations

import os

# One core each: the processes are the parallelism. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import functools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import (
    clock,
    compare,
    compare_seconds,
    interleaved,
    machine,
    measure_rows,
    parse_rows,
    take_turns,
    write_ratio,
)
from rich.console import Console
from rich.table import Table

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.data.dataset import load_data
from fedaccord.federation.data.pretraining import PretrainedWeights, pretrain
from fedaccord.federation.history import History
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.networks import Engine, model_factory
from fedaccord.federation.runs.execute import LocalEngine
from fedaccord.federation.runs.store import Run
from fedaccord.federation.training.loop import train
from fedaccord.federation.training.reference import train_plainly

RESULTS = Path(__file__).parent / "results" / "training.json"
SEED = 20212
CLIENTS, SAMPLES, VALIDATED, POINTS = 4, 64, 200, 1600
# What the plain algorithm multiplies and adds, forward alone and with the gradients.
FLOP_TRAINED, FLOP_EVALUATED = 71.6e6, 24.0e6
FLOP_A_ROUND = CLIENTS * (SAMPLES * FLOP_TRAINED + VALIDATED * FLOP_EVALUATED)
PRETRAINING_BATCHES = 75


@functools.cache
def images() -> tuple[np.ndarray, np.ndarray, str]:
    """Give 28 x 28 images with labels, shuffled, and what they are."""
    try:
        data = load_data("emnist")
        inputs = data.inputs.astype(np.float32) / np.float32(255)
    except InputError:
        data = load_data("digits")
        # Each pixel three times as large, and a margin of two.
        large = np.kron(data.inputs, np.ones((1, 3, 3), dtype=np.float32))
        inputs = np.pad(large, ((0, 0), (2, 2), (2, 2)))
    order = np.random.default_rng(SEED).permutation(len(inputs))
    # Enough for everybody, digits over and over.
    order = np.resize(order, CLIENTS * (POINTS + VALIDATED) + PRETRAINING_BATCHES * SAMPLES)
    return inputs[order, None], data.labels[order].astype(np.int64), data.source


@functools.cache
def pretrained() -> PretrainedWeights:
    """Give the weights from which the paper's federations start."""
    inputs, labels, _ = images()
    model = model_factory("paper", (28, 28), 47)
    points = PRETRAINING_BATCHES * SAMPLES
    return pretrain(
        model, inputs[-points:], labels[-points:], batches=PRETRAINING_BATCHES, seed=SEED
    )


def federation(engine: Engine, start: str) -> Federation:
    """Make four clients whose network starts fresh or pre-trained."""
    inputs, labels, _ = images()
    clients = []
    for place in range(CLIENTS):
        first = place * (POINTS + VALIDATED)
        trained = slice(first, first + POINTS)
        validated = slice(first + POINTS, first + POINTS + VALIDATED)
        clients.append(
            Client(
                f"client {place}",
                (inputs[trained], labels[trained]),
                (inputs[validated], labels[validated]),
                0.7,
            )
        )
    weights = pretrained() if start == "pre-trained" else None
    model = model_factory("paper", (28, 28), 47, engine=engine)
    return Federation(clients, model, weights=weights)


def rounds(count: int) -> FedAvg:
    """Give the algorithm, for so many rounds with an evaluation each."""
    return FedAvg(rounds=count, batch_size=SAMPLES, evaluate_every=1)


def sgemm_peak() -> float:
    """Measure what one core reaches in a product of 1024 x 1024 matrices, in flop a second."""
    a, b = torch.rand(1024, 1024), torch.rand(1024, 1024)
    return 2 * 1024**3 / min(clock(lambda: a @ b)[0] for _ in range(5))


def rows_round(quick: bool) -> list[dict[str, Any]]:
    """Seconds of a round: the plain loop, tuned torch, the native block."""
    return [row for start in ("pre-trained", "fresh") for row in _rows_from(start, quick)]


def _rows_from(start: str, quick: bool) -> list[dict[str, Any]]:
    # About as long each, so that a slow minute of the machine falls on all alike.
    lengths = {"eager": 1 if quick else 2, "torch": 2 if quick else 3, "native": 4 if quick else 16}
    if not native.available():
        Console(stderr=True).print(native.why_not())
        del lengths["native"]
    loops = {name: train_plainly if name == "eager" else train for name in lengths}
    federations = {name: federation(name, start) for name in lengths}
    histories: dict[str, History] = {}

    def make(name: str, length: int) -> None:
        histories[name] = loops[name](federations[name], rounds(length), seed=SEED)

    for name in lengths:
        make(name, 1)
    peaks: list[float] = []
    tasks = {name: functools.partial(make, name, length) for name, length in lengths.items()}
    found = interleaved({"sgemm": lambda: peaks.append(sgemm_peak()), **tasks}, 2 if quick else 9)
    seconds = {name: [s / length for s in found[name]] for name, length in lengths.items()}
    peak = statistics.median(peaks)
    goals = {"torch": 1.5, "native": 5.0}
    return [
        _round_row(name, start, seconds, peak, goal, histories)
        for name, goal in goals.items()
        if name in lengths
    ]


def _round_row(
    name: str,
    start: str,
    seconds: dict[str, list[float]],
    peak: float,
    goal: float,
    histories: dict[str, History],
) -> dict[str, Any]:
    row = compare_seconds(
        f"a round, {start} weights: {name} against the plain loop",
        seconds[name],
        seconds["eager"],
        faster=True,
    )
    if name == "native":
        row |= compare(seconds["torch"], seconds[name], "ratio_to_torch")
    mine, plain = row["seconds"], row["against_seconds"]
    shared = len(histories["eager"].loss)
    apart = np.abs(histories[name].loss[:shared] / histories["eager"].loss - 1).max()
    return {
        **row,
        "gflops": FLOP_A_ROUND / mine / 1e9,
        "against_gflops": FLOP_A_ROUND / plain / 1e9,
        "sgemm_gflops": peak / 1e9,
        "of_sgemm_peak": FLOP_A_ROUND / mine / peak,
        "against_of_sgemm_peak": FLOP_A_ROUND / plain / peak,
        "flop_note": "counted as the plain algorithm does them; native does fewer",
        "largest_relative_difference_of_losses": float(apart),
        "goal": f"ratio >= {goal:g}",
        "met": bool(row["ratio"] >= goal),
    }


def row_workers(quick: bool) -> list[dict[str, Any]]:
    """Runs in two worker processes against the same runs in one process."""
    source = federation("auto", "pre-trained")
    length = 4 if quick else 40
    with LocalEngine(source) as one, LocalEngine(source, workers=2) as two:
        tasks = {}
        for name, engine in {"one": one, "two": two}.items():
            _make(engine, source, length=1, runs=2)
            tasks[name] = functools.partial(_make, engine, source, length=length, runs=4)
        seconds = interleaved(tasks, 1 if quick else 5, time.perf_counter)
    row = compare_seconds(
        f"4 runs of {length} rounds: two workers against one, on the clock",
        seconds["two"],
        seconds["one"],
        faster=True,
        goal="ratio >= 1.8",
    )
    return [{**row, "met": bool(row["ratio"] >= 1.8)}]


def _make(engine: LocalEngine, source: Federation, *, length: int, runs: int) -> None:
    wanted: Iterator[Run] = (
        Run("benchmark", rounds(length), tuple(int(n) for n in source.points), SEED, trial)
        for trial in range(runs)
    )
    for _ in engine.finished(wanted):
        pass


# Prints the CPU seconds of a run of the built-in federation, the median of several.
ONE_RUN = """
import statistics, sys, tempfile, time
from fedaccord.cli.options import build_source, read_config
from fedaccord.federation.training.loop import train
config = read_config(None)
folder = tempfile.mkdtemp()
federation = build_source(config, 0, results=folder + "/runs.sqlite", cache=None).deal(0)
seconds = []
for seed in range(int(sys.argv[2])):
    begin = time.process_time()
    train(federation, config.algorithms[sys.argv[1]], seed=seed)
    seconds.append(time.process_time() - begin)
print(statistics.median(seconds))
"""


def _run_apart(arguments: list[str], environment: dict[str, str]) -> float:
    """Run Python in a process and a folder of its own; give its CPU seconds, or what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **environment},
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if arguments[0] == "-c":
        return float(done.stdout)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows_small(quick: bool, against: str | None = None) -> list[dict[str, Any]]:
    """CPU seconds of small networks: single runs and an audit."""
    name = "torch" if against is None else "before"
    other = (
        {native.SWITCH: "0"} if against is None else {"PYTHONPATH": str(Path(against).resolve())}
    )
    runs, trials = ("10", "1") if quick else ("20", "4")
    command = ["-m", "fedaccord"]
    tasks = {
        "a run of FedAvg": ["-c", ONE_RUN, "FedAvg", runs],
        "a run of MW-FED": ["-c", ONE_RUN, "MW-FED", runs],
        f"audit --trials {trials}": [*command, "audit", "--workers", "1", "--trials", trials],
    }
    rows = []
    for what, arguments in tasks.items():
        turns = {
            which: functools.partial(_run_apart, arguments, environment)
            for which, environment in (("native", {}), (name, other))
        }
        seconds = take_turns(turns, 1 if quick else 3)
        row = compare_seconds(
            f"{what}: native against {name}, CPU",
            seconds["native"],
            seconds[name],
            faster=True,
            goal="ratio >= 4",
        )
        rows.append({**row, "met": bool(row["ratio"] >= 4)})
    return rows


ROWS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "round": rows_round,
    "workers": row_workers,
    "small": rows_small,
}


def described_machine() -> dict[str, Any]:
    """Say what ran this, on what images."""
    return {**machine("torch"), "images": images()[2]}


def table(rows: list[dict[str, Any]]) -> Table:
    """Lay the rows out for a terminal."""
    result = Table(
        "what", "seconds", "against", "ratio [min, max]", "GFLOP/s", "of sgemm", "goal", "met"
    )
    for row in rows:
        result.add_row(
            row["row"],
            f"{row['seconds']:.3g}",
            f"{row['against_seconds']:.3g}",
            write_ratio(row),
            f"{row['gflops']:.0f}" if "gflops" in row else "",
            f"{row['of_sgemm_peak']:.0%}" if "gflops" in row else "",
            row["goal"],
            "yes" if row["met"] else "no",
        )
    return result


def main() -> None:
    """Run the rows asked for, keep the others' last results, and write the file."""
    parser = parse_rows(str(__doc__).splitlines()[0], ROWS)
    parser.add_argument("--against", metavar="FOLDER", help="compare small networks with this src")
    chosen = parser.parse_args()
    rows = {**ROWS, "small": functools.partial(rows_small, against=chosen.against)}
    torch.set_num_threads(1)
    measure_rows(rows, chosen, results=RESULTS, seed=SEED, machine=described_machine, table=table)


if __name__ == "__main__":
    sys.exit(main())
