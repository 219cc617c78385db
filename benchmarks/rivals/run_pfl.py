"""pfl-research's simulator, in a process (or two) that does the benchmark's jobs.

It runs in an environment of its own, which has no fedaccord. With PFL_WORKER_RANK and
PFL_WORKER_ADDRESSES set, as its users set them, two processes share each round's clients.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
import work
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import StringMetricName, Weighted
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional


class UserModel(torch.nn.Module):
    """The plain network with the two methods that pfl wants of it."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network
        self.seen = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.network(inputs)

    def loss(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.train()
        self.seen += len(labels)
        return functional.cross_entropy(self(inputs), labels)

    @torch.no_grad()
    def metrics(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
        self.eval()
        right = (self(inputs).argmax(dim=1) == labels).sum().item()
        return {"accuracy": Weighted(right, len(labels))}


class OnlyTrained(FederatedAveraging):
    """pfl's FedAvg without the look at the training points that its round 0 always takes."""

    def get_next_central_contexts(self, *args: Any, **kwargs: Any) -> Any:
        contexts, model, metrics = super().get_next_central_contexts(*args, **kwargs)
        if contexts is not None:
            contexts = tuple(dataclasses.replace(c, do_evaluation=False) for c in contexts)
        return contexts, model, metrics


class Validated(CentralEvaluationCallback):
    """pfl's evaluation on one client's validation points; keeps the last accuracy."""

    def __init__(self, client: int, points: tuple[torch.Tensor, torch.Tensor]) -> None:
        super().__init__(
            PyTorchTensorDataset(points),
            model_eval_params=NNEvalHyperParams(local_batch_size=len(points[1])),
            format_fn=lambda name: StringMetricName(f"client {client} | {name}"),
        )
        self.last = float("nan")

    def _eval(self, model: Any) -> Any:
        stop, metrics = super()._eval(model)
        self.last = metrics[self._format_fn("accuracy")].overall_value
        return stop, metrics


def draws_of(given: work.Work) -> FederatedDataset:
    """Let every client draw, each time it is its turn, what it draws in that round."""
    turns = [0] * given.clients

    def drawn(client: int) -> PyTorchTensorDataset:
        turns[client] += 1
        return PyTorchTensorDataset(given.samples(client, turns[client] - 1), user_id=str(client))

    return FederatedDataset(drawn, get_user_sampler("minimize_reuse", range(given.clients)))


def do(job: dict[str, Any]) -> dict[str, Any]:
    given = work.work(sys.argv[1], job["work"])
    settings = given.settings
    torch.set_num_threads(job["threads"])
    network = given.model(dropout=job["dropout"])
    network.load_state_dict(work.as_state(given.start))
    user = UserModel(network)
    central = torch.optim.SGD(user.parameters(), lr=1.0)
    model = PyTorchModel(user, torch.optim.Adam, central)
    data = draws_of(given)
    evaluations = [Validated(i, points) for i, points in enumerate(given.points["validation"])]
    params = NNAlgorithmParams(
        central_num_iterations=job["rounds"],
        evaluation_frequency=job["rounds"],
        train_cohort_size=given.clients,
        val_cohort_size=0,
    )
    train_params = NNTrainHyperParams(
        local_num_epochs=1,
        local_learning_rate=settings["learning_rate"],
        local_batch_size=settings["batch_size"],
    )
    before = work.steps_taken
    begin = time.perf_counter()
    OnlyTrained().run(
        params,
        SimulatedBackend(data, data),
        model,
        train_params,
        callbacks=evaluations if job["evaluated"] else [],
        send_metrics_to_platform=False,
    )
    seconds = time.perf_counter() - begin
    if job["save"]:
        np.savez(job["save"], **{k: v.numpy() for k, v in network.state_dict().items()})
    return {
        "seconds": seconds,
        # The server's optimizer steps once a round as well.
        "steps": work.steps_taken - before - job["rounds"],
        "samples": user.seen,
        "accuracy": float(np.mean([e.last for e in evaluations])) if job["evaluated"] else None,
    }


if __name__ == "__main__":
    work.keep_answers_apart()
    work.count_steps()
    work.answer(do, {"pfl": version("pfl"), "torch": torch.__version__})
