"""Clients written without torch: the keys of the records are all that they need to know."""

import numpy as np
from federation.small import linear_model
from flower.in_process import Node
from flower.runs import config_of, run, started
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord.federation import MwFed as LocalMwFed
from fedaccord.federation import train
from fedaccord.federation.draws import goal_rows
from fedaccord.federation.flower import MwFed, drawn_points


class NumpyClient:
    """Logistic regression without torch, written by somebody who read what the keys mean."""

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
        config = config_of(message)
        rows = drawn_points(config, len(self.labels))
        weight, bias = message.content["arrays"].to_numpy_ndarrays()
        for some in np.split(rows, range(config["batch-size"], len(rows), config["batch-size"])):
            x, y = self.inputs[some], self.labels[some]
            scores = x @ weight.T + bias
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            slope = (odds / odds.sum(axis=1, keepdims=True) - np.eye(3)[y]) / len(some)
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
        config = config_of(message)
        weight, bias = message.content["arrays"].to_numpy_ndarrays()
        x, y = self.validation
        right = (x @ weight.T + bias).argmax(axis=1) == y
        metrics = {"num-examples": len(y)}
        if config["whole"]:
            metrics["accuracy"] = float(right.mean())
        if config["goal-points"]:
            rows = goal_rows(
                config["client"],
                len(y),
                config["goal-points"],
                seed=config["seed"],
                round_number=config["server-round"],
            )
            metrics["goal-accuracy"] = float(right[rows].mean())
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)


def test_clients_without_torch_train_as_the_local_loop_does():
    federation = started(model=linear_model, requirement=0.5)
    nodes = [
        Node(
            NumpyClient(
                c.name,
                *(
                    part.numpy()
                    for part in (c.inputs, c.labels, c.validation_inputs, c.validation_labels)
                ),
            ).app(),
            node_id=i,
        )
        for i, c in enumerate(federation.clients)
    ]
    settings = {
        "batch_size": 6,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "goal_points": 9,
        "evaluate_every": 1,
    }
    strategy = MwFed(requirements=0.5, seed=2, form="local", **settings)
    run(strategy, federation, nodes, rounds=6)
    local = train(federation, LocalMwFed(rounds=6, form="local", **settings), seed=2)
    assert strategy.remarks == []
    assert len({tuple(row) for row in local.samples}) > 1
    assert_array_equal(strategy.history.samples, local.samples)
    assert_array_equal(strategy.history.accuracy, local.accuracy)
    for name, weight in local.weights.items():
        assert_allclose(strategy.history.weights[name], weight, rtol=1e-9)
