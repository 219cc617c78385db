"""Flower's clients: a plain one, as the users of Flower and PyTorch write it, and ours."""

from __future__ import annotations

import functools
import os
from typing import Any

import torch
import work
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch.utils.data import TensorDataset

work.count_steps()
plain_app = ClientApp()


def work_named(name: str) -> work.Work:
    return work.work(os.environ["FEDACCORD_BENCH_WORK"], name)


def opened(message: Message, context: Context) -> tuple[Any, ConfigRecord, int, torch.nn.Module]:
    """Read a message: the work, what the server said, whose turn it is, and the model."""
    config = message.content["config"]
    given = work_named(config["work"])
    if config["native"]:
        model = our_network(given, dropout=config["dropout"])()
    else:
        model = given.model(dropout=config["dropout"])
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return given, config, int(context.node_config["partition-id"]), model


def our_network(given: work.Work, *, dropout: bool) -> Any:
    """Give what makes our network, for those who want it under Flower."""
    from run_local import factory

    return factory(given, "auto", dropout)


@plain_app.train()
def train(message: Message, context: Context) -> Message:
    given, config, client, model = opened(message, context)
    before = work.steps_taken
    seen, loss = work.fit(
        model,
        *given.samples(client, config["server-round"] - 1),
        batch_size=given.settings["batch_size"],
        learning_rate=given.settings["learning_rate"],
    )
    steps = work.steps_taken - before
    metrics = {"num-examples": seen, "train-loss": loss, "samples": seen, "steps": steps}
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord(metrics)}
    return Message(RecordDict(content), reply_to=message)


@plain_app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    given, _, client, model = opened(message, context)
    inputs, labels = given.points["validation"][client]
    metrics = {"num-examples": len(labels), "accuracy": work.accuracy(model, inputs, labels)}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)


@functools.cache
def our_app(name: str, dropout: bool) -> ClientApp:
    """Make the app that our strategies talk to."""
    from fedaccord.federation.flower import client_app

    given = work_named(name)

    def place(context: Context) -> int:
        return int(context.node_config["partition-id"])

    def data(context: Context) -> tuple[TensorDataset, TensorDataset]:
        own = [given.points[kind][place(context)] for kind in ("train", "validation")]
        return TensorDataset(*own[0]), TensorDataset(*own[1])

    return client_app(
        our_network(given, dropout=dropout),
        data,
        name=lambda context: given.settings["names"][place(context)],
    )


class Apps(ClientApp):
    """Both, so that they share one simulation; ours is told by the key of the config."""

    def __call__(self, message: Message, context: Context) -> Message:
        key = next(iter(message.content.config_records))
        if key == "config":
            return plain_app(message, context)
        name, dropout = key.split("/")
        return our_app(name, dropout == "True")(message, context)
