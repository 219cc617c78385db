"""Clients and servers without torch: the keys of the records are all that they need to know."""

import subprocess
import sys
from pathlib import Path

from federation.flower.in_process import Node
from federation.flower.numpy_client import NumpyClient
from federation.flower.runs import run, started
from federation.small import linear_model
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord.federation import MwFed as LocalMwFed
from fedaccord.federation import train
from fedaccord.federation.flower import MwFed


def test_clients_without_torch_train_as_the_local_loop_does():
    federation = started(model=linear_model, requirement=0.5)
    nodes = []
    for i, c in enumerate(federation.clients):
        parts = (c.inputs, c.labels, c.validation_inputs, c.validation_labels)
        client = NumpyClient(c.name, *(part.numpy() for part in parts))
        nodes.append(Node(client.app(), node_id=i))
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


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # Any import of it fails.
import numpy as np
from flwr.app import Array, ArrayRecord
from federation.flower.in_process import InProcessGrid, Node
from federation.flower.numpy_client import NumpyClient
from fedaccord.federation.flower import {kind}

random = np.random.default_rng(0)
def some(count):
    labels = np.arange(count) % 3
    return np.eye(3)[labels] * 3 + random.normal(size=(count, 3)), labels
clients = [NumpyClient(name, *some(20), *some(30)) for name in ("a", "b")]
grid = InProcessGrid([Node(client.app(), node_id=i) for i, client in enumerate(clients)])
arrays = ArrayRecord({{"weight": Array(np.zeros((3, 3))), "bias": Array(np.zeros(3))}})
strategy = {kind}(requirements=0.9, batch_size=5, learning_rate=0.5, optimizer="sgd", {options})
strategy.start(grid, arrays, num_rounds=8)
print(strategy.history.samples.sum(), strategy.history.final.min() > 0.8, strategy.remarks)
"""


def without_torch(kind: str, options: str = "") -> "subprocess.CompletedProcess[str]":
    code = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    code += WITHOUT_TORCH.format(kind=kind, options=options)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_server_that_averages_models_needs_no_torch():
    done = without_torch("MwFed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["80", "True", "[]"]


def test_a_server_that_takes_steps_says_that_it_needs_torch():
    done = without_torch("FedAvg", 'form="pooled"')
    assert done.returncode == 1
    assert "MissingExtraError: this needs torch" in done.stderr
    assert "ROUND" not in done.stderr
