"""Flower's simulation, in a process that does the benchmark's jobs: one server, started once.

Two actors of one thread each, which is what two cores hold. The ServerApp takes one job after the
other, so that starting Ray is not in anybody's rounds.
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
from flower_client import app as client_app
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    ready = {name: version(name) for name in ("flwr", "ray", "torch")}
    for job in work.told(ready):
        work.tell(do(job, grid))


def do(job: dict[str, Any], grid: Grid) -> dict[str, Any]:
    given = work.work(sys.argv[1], job["work"])
    start = work.channels_last(given.start) if job["native"] else given.start
    # Its own figures for "all of them, and none to evaluate" where evaluation is not wanted.
    strategy = FedAvg(
        fraction_evaluate=1.0 if job["evaluated"] else 0.0,
        min_train_nodes=given.clients,
        min_evaluate_nodes=given.clients,
        min_available_nodes=given.clients,
    )
    said = {name: job[name] for name in ("work", "native", "dropout")}
    begin = time.perf_counter()
    result = strategy.start(
        grid,
        ArrayRecord(work.as_state(start)),
        num_rounds=job["rounds"],
        train_config=ConfigRecord(said),
        evaluate_config=ConfigRecord(said),
    )
    seconds = time.perf_counter() - begin
    rounds = result.train_metrics_clientapp
    assert sorted(rounds) == list(range(1, job["rounds"] + 1))
    if job["save"]:
        made = {k: v.numpy() for k, v in result.arrays.to_torch_state_dict().items()}
        np.savez(job["save"], **(work.channels_first(made) if job["native"] else made))
    measured = result.evaluate_metrics_clientapp
    return {
        "seconds": seconds,
        # Flower averages what clients report.
        "steps": round(sum(r["steps"] for r in rounds.values()) * given.clients),
        "samples": round(sum(r["samples"] for r in rounds.values()) * given.clients),
        "accuracy": measured[job["rounds"]]["accuracy"] if job["evaluated"] else None,
    }


if __name__ == "__main__":
    work.keep_answers_apart()
    torch.set_num_threads(1)
    logging.getLogger("flwr").setLevel(logging.WARNING)
    resources = {"num_cpus": float(sys.argv[2]) if len(sys.argv) > 2 else 1, "num_gpus": 0}
    run_simulation(
        server_app,
        client_app,
        num_supernodes=4,
        backend_config={"init_args": {"num_cpus": 2}, "client_resources": resources},
    )
