"""A controller of NVFlare's whose sites are executors in this process, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from federation.nvflare import task
from nvflare.apis.controller_spec import TaskCompletionStatus
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from fedaccord.federation import Client, Federation
from fedaccord.federation.nvflare import AlgorithmController, SiteExecutor
from fedaccord.federation.nvflare.messages import read_order

LOSS = "train-loss"
GOALS = {"site-1": 0.9, "site-2": 0.3, "site-3": 0.6}
NETWORK, DATA = "federation.nvflare.task:make_network", "federation.nvflare.task:load_data"


def local_federation(goals: Mapping[str, float] = GOALS) -> Federation:
    """Return the same sites as clients of the local loop."""
    clients = []
    for name, goal in goals.items():
        points, validation = task.load_data(name)
        clients.append(Client(name, points.tensors, validation.tensors, requirement=goal))
    return Federation(clients, task.make_network)


class InProcessSite:
    """A site: its executor, what it was asked, and how tests tamper with its replies."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self.executor = SiteExecutor(
            **{"model": NETWORK, "data": DATA, "may_report": [LOSS], **options}
        )
        self.online = True
        # The task, the round and the model of each order.
        self.heard: list[tuple[str, int, dict[str, np.ndarray]]] = []
        self.tamper: Callable[[str, int, Shareable], Shareable | None] = lambda *asked: asked[-1]

    def answer(self, kind: str, order: Shareable) -> Shareable | None:
        arrays, config = read_order(order)
        number = config.get("server-round", 0)
        self.heard.append((kind, number, dict(arrays)))
        context: Any = SimpleNamespace(get_identity_name=lambda: self.name)
        return self.tamper(kind, number, self.executor.execute(kind, order, context, Signal()))


class InProcessController(AlgorithmController):
    """Calls the sites one after the other."""

    def run_in(self, folder: Path, sites: Mapping[str, InProcessSite]) -> str | None:
        """Run, and return what NVFlare would panic of, if anything."""
        self.sites = sites
        self.panic: str | None = None
        self.signal = Signal()
        self.control_flow(self.signal, context_of(folder, sites))
        return self.panic

    def system_panic(self, reason: str, fl_ctx: Any) -> None:
        self.panic = reason

    def broadcast(self, task: Any, fl_ctx: Any, targets: Any = None, **options: Any) -> None:
        (name,) = targets
        reply = self.sites[name].answer(task.name, task.data)
        task.completion_status = TaskCompletionStatus.TIMEOUT
        if reply is not None:
            done = SimpleNamespace(result=reply, client=SimpleNamespace(name=name))
            task.result_received_cb(client_task=done, fl_ctx=fl_ctx)
            task.completion_status = TaskCompletionStatus.OK


def context_of(folder: Path, sites: Mapping[str, InProcessSite]) -> Any:
    def clients() -> list[Any]:
        return [SimpleNamespace(name=name) for name, site in sites.items() if site.online]

    workspace = SimpleNamespace(get_run_dir=lambda job: str(folder))
    engine = SimpleNamespace(get_clients=clients, get_workspace=lambda: workspace)
    return SimpleNamespace(get_engine=lambda: engine, get_job_id=lambda: "job")


def sites_of(names: Any = GOALS, **options: Any) -> dict[str, InProcessSite]:
    return {name: InProcessSite(name, **options) for name in names}
