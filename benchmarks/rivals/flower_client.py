"""A plain Flower client, as the users of Flower and PyTorch write it."""

from __future__ import annotations

import os
from typing import Any

import torch
import work
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

work.count_steps()
app = ClientApp()


def opened(message: Message, context: Context) -> tuple[Any, ConfigRecord, int, torch.nn.Module]:
    """Read a message: the work, what the server said, whose turn it is, and the model."""
    config = message.content["config"]
    given = work.work(os.environ["FEDACCORD_BENCH_WORK"], config["work"])
    if config["native"]:
        model = native_model(given, dropout=config["dropout"])
    else:
        model = given.model(dropout=config["dropout"])
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return given, config, int(context.node_config["partition-id"]), model


def native_model(given: work.Work, *, dropout: bool) -> torch.nn.Module:
    """Make our network for those who want it under Flower."""
    from run_local import factory

    return factory(given, "native", dropout)()


@app.train()
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


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    given, _, client, model = opened(message, context)
    inputs, labels = given.points["validation"][client]
    metrics = {"num-examples": len(labels), "accuracy": work.accuracy(model, inputs, labels)}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)
