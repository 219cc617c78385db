"""A client of logistic regression without torch, by somebody who has read what the keys mean."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedaccord.federation.flower import drawn_points
from fedaccord.federation.training.rng import draw_goal_rows


class NumpyClient:
    """Takes steps of gradient descent in batches, and measures what it is asked to."""

    def __init__(self, name, inputs, labels, validation_inputs, validation_labels):
        self.name, self.inputs, self.labels = name, inputs, labels
        self.validation = validation_inputs, validation_labels

    def app(self):
        app = ClientApp()
        app.query()(self.query)
        app.train()(self.train)
        app.evaluate()(self.evaluate)
        return app

    def query(self, message, context):
        content = RecordDict(
            {
                "metrics": MetricRecord({"num-points": len(self.labels)}),
                "who": ConfigRecord({"client": self.name}),
            }
        )
        return Message(content, reply_to=message)

    def train(self, message, context):
        config = message.content["config"]
        rows = drawn_points(config, len(self.labels))
        weight, bias = message.content["arrays"].to_numpy_ndarrays()
        for some in np.split(rows, range(config["batch-size"], len(rows), config["batch-size"])):
            x, y = self.inputs[some], self.labels[some]
            scores = x @ weight.T + bias
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            slope = (odds / odds.sum(axis=1, keepdims=True) - np.eye(len(bias))[y]) / len(some)
            weight = weight - config["learning-rate"] * slope.T @ x
            bias = bias - config["learning-rate"] * slope.sum(axis=0)
        content = RecordDict(
            {
                "arrays": ArrayRecord({"weight": Array(weight), "bias": Array(bias)}),
                "metrics": MetricRecord({"num-examples": len(rows)}),
            }
        )
        return Message(content, reply_to=message)

    def evaluate(self, message, context):
        config = message.content["config"]
        weight, bias = message.content["arrays"].to_numpy_ndarrays()
        x, y = self.validation
        right = (x @ weight.T + bias).argmax(axis=1) == y
        metrics = {"num-examples": len(y)}
        if config["whole"]:
            metrics["accuracy"] = float(right.mean())
        if config["goal-points"]:
            rows = draw_goal_rows(
                config["client"],
                len(y),
                config["goal-points"],
                seed=config["seed"],
                round_number=config["server-round"],
            )
            metrics["goal-accuracy"] = float(right[rows].mean())
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)
