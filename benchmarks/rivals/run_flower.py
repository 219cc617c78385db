"""Flower's simulation, in a process that does the benchmark's jobs: one server, started once.

Two actors of one thread each: one or four were no quicker on two cores, taking digits and the
paper's network together. The ServerApp takes one job after the other, so that starting Ray is not
in anybody's rounds.
"""

from __future__ import annotations

import logging
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
import work
from flower_client import Apps
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Result
from flwr.simulation import run_simulation

server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    ready = {name: version(name) for name in ("flwr", "ray", "torch")}
    for job in work.told(ready):
        work.tell(do(job, grid))


def do(job: dict[str, Any], grid: Grid) -> dict[str, Any]:
    given = work.work(sys.argv[1], job["work"])
    ours = job["network"] == "ours"
    start = ArrayRecord(work.as_state(work.channels_last(given.start) if ours else given.start))
    nodes = {
        # Its own way to say that evaluation is not wanted.
        "fraction_evaluate": 1.0 if job["evaluated"] else 0.0,
        "min_train_nodes": given.clients,
        "min_evaluate_nodes": given.clients,
        "min_available_nodes": given.clients,
    }
    train = our_strategy if job["strategy"] == "ours" else its_own_strategy
    done, result = train(job, given, grid, start, nodes)
    if job["save"]:
        made = {k: v.numpy() for k, v in result.arrays.to_torch_state_dict().items()}
        np.savez(job["save"], **(work.channels_first(made) if ours else made))
    measured = result.evaluate_metrics_clientapp
    found = measured[job["rounds"]]["accuracy"] if job["evaluated"] else None
    return {**done, "accuracy": found}


def its_own_strategy(
    job: dict[str, Any], given: work.Work, grid: Grid, start: ArrayRecord, nodes: dict[str, Any]
) -> tuple[dict[str, Any], Result]:
    """Train with Flower's own FedAvg and the plain client."""
    said = {
        "work": job["work"],
        "native": job["network"] == "ours",
        "dropout": job["dropout"],
    }
    begin = time.perf_counter()
    result = FedAvg(**nodes).start(
        grid,
        start,
        num_rounds=job["rounds"],
        train_config=ConfigRecord(said),
        evaluate_config=ConfigRecord(said),
    )
    seconds = time.perf_counter() - begin
    rounds = result.train_metrics_clientapp
    assert sorted(rounds) == list(range(1, job["rounds"] + 1))
    # Flower averages what clients report.
    summed = {
        key: round(sum(r[key] for r in rounds.values()) * given.clients)
        for key in ("steps", "samples")
    }
    return {"seconds": seconds, **summed}, result


def our_strategy(
    job: dict[str, Any], given: work.Work, grid: Grid, start: ArrayRecord, nodes: dict[str, Any]
) -> tuple[dict[str, Any], Result]:
    """Train with our FedAvg and our client."""
    from fedaccord.federation import flower

    strategy = flower.FedAvg(
        requirements=0.7,
        seed=given.settings["seed"],
        batch_size=given.settings["batch_size"],
        learning_rate=given.settings["learning_rate"],
        configrecord_key=f"{job['work']}/{job['dropout']}",
        **nodes,
    )
    # Its first round asks the clients who they are; that is part of starting, and is not timed.
    first = 0 if job["save"] else 1
    ends: list[float] = []
    result = strategy.start(
        grid,
        start,
        num_rounds=first + job["rounds"],
        evaluate_fn=lambda *_: ends.append(time.perf_counter()),
    )
    samples = int(strategy.history.samples[first:].sum())
    made = first + job["rounds"]
    done = {"seconds": ends[-1] - ends[first], "made": made, "samples": samples}
    return {**done, "steps": None}, result


if __name__ == "__main__":
    work.keep_answers_apart()
    torch.set_num_threads(1)
    logging.getLogger("flwr").setLevel(logging.WARNING)
    resources = {"num_cpus": float(sys.argv[2]) if len(sys.argv) > 2 else 1, "num_gpus": 0}
    run_simulation(
        server_app,
        Apps(),
        num_supernodes=4,
        # A Ray of its own, whatever else runs here.
        backend_config={
            "init_args": {"address": "local", "num_cpus": 2, "_temp_dir": f"{sys.argv[1]}/ray"},
            "client_resources": resources,
        },
    )
