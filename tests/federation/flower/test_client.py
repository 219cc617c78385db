"""The client's side: no more points than its quota and its own limit, no more said than it must."""

import logging
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from federation.flower.in_process import InProcessGrid, Node
from federation.flower.runs import (
    Watched,
    app_of,
    arrays_of,
    nodes_of,
    run,
    started,
)
from federation.small import linear_model
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import strategy as flwr_strategy
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn
from torch.utils.data import Subset, TensorDataset

from fedaccord.errors import InputError
from fedaccord.federation import Client, Federation, train
from fedaccord.federation import FedAvg as LocalFedAvg
from fedaccord.federation.flower import FedAvg, MwFed, client_app, drawn_points
from fedaccord.federation.remote.ledger import Ledger
from fedaccord.federation.remote.protocol import ALL_POINTS, OrderError, TrainOrder, clip
from fedaccord.federation.training.rng import Draws


def recorded(nodes):
    """Let all that nodes send be written down."""
    sent = []
    for node in nodes:

        def note(message, reply, sent=sent):
            sent.append(reply)
            return reply

        node.tamper = note
    return sent


def records(reply):
    """Give the kind, key and keys of each record of a reply."""
    kinds = ("array_records", "metric_records", "config_records")
    return {
        key: sorted(record)
        for kind in kinds
        for key, record in getattr(reply.content, kind).items()
    }


# What is said.


def test_by_default_nothing_is_said_but_what_must_be():
    federation = started()
    nodes = [
        Node(app_of(c, federation.model, may_report=()), node_id=i)
        for i, c in enumerate(federation.clients)
    ]
    sent = recorded(nodes)
    strategy = MwFed(requirements=0.9, batch_size=4, ask_for=["train-loss", "label-counts"])
    run(strategy, federation, nodes, rounds=2)
    said = {reply.metadata.message_type: records(reply) for reply in sent}
    assert said == {
        "query": {"metrics": ["num-points"], "who": ["client"]},
        "train": {"arrays": sorted(federation.weights), "metrics": ["num-examples"]},
        "evaluate": {"metrics": ["accuracy", "num-examples"]},
    }
    assert all(records(reply) == said[reply.metadata.message_type] for reply in sent)
    assert np.isnan(strategy.history.loss).all()
    assert strategy.label_counts == {}


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ((), ("train-loss", "label-counts")),
        (("train-loss",), ("label-counts",)),
        (("train-loss",), ("train-loss", "label-counts")),
        (("label-counts", "train-loss"), ("train-loss", "label-counts")),
    ],
)
def test_more_is_said_only_if_it_is_asked_and_allowed(asked, allowed):
    federation = started()
    nodes = nodes_of(federation, may_report=allowed)
    sent = recorded(nodes)
    strategy = FedAvg(requirements=0.9, batch_size=4, ask_for=asked)
    run(strategy, federation, nodes, rounds=1)
    both = set(asked) & set(allowed)
    for reply in sent:
        keys = set(reply.content["metrics"])
        kind = reply.metadata.message_type
        assert ("train-loss" in keys) == ("train-loss" in both and kind == "train")
        assert ("label-counts" in keys) == ("label-counts" in both and kind == "query")
    assert np.isfinite(strategy.history.loss).all() == ("train-loss" in both)
    counts = {"client 0": (10, 10, 10), "client 1": (8, 8, 8), "client 2": (14, 13, 13)}
    assert strategy.label_counts == (counts if "label-counts" in both else {})


def test_the_goal_test_says_how_many_were_right_and_not_on_which_points():
    federation = started()
    nodes = nodes_of(federation)
    sent = recorded(nodes)
    run(MwFed(requirements=0.9, goal_points=5, evaluate_every=9), federation, nodes, rounds=2)
    kinds = [records(r)["metrics"] for r in sent if r.metadata.message_type == "evaluate"]
    assert (
        kinds
        == [["goal-accuracy", "num-examples"]] * 3
        + [["accuracy", "goal-accuracy", "num-examples"]] * 3
    )


def test_what_an_error_says_stays_with_the_client(caplog):
    federation = started()
    nodes = nodes_of(federation)

    def unreadable(context):
        raise InputError('line 7 of patients.csv reads "Ada Lovelace"')

    def failing(network, points, config):
        raise KeyError("Ada Lovelace")

    first = federation.clients[0]
    nodes.append(Node(client_app(federation.model, unreadable), node_id=5, name="Hill"))
    nodes.append(Node(app_of(first, federation.model, train=failing), node_id=6, name="Mill"))
    sent = recorded(nodes)
    strategy = FedAvg(requirements=0.9, batch_size=4)
    with caplog.at_level(logging.INFO):
        run(strategy, federation, nodes, rounds=1)
    errors = [reply.error.reason for reply in sent if reply.has_error()]
    assert len(errors) == 4
    assert not any("Lovelace" in error or "patients" in error for error in errors)
    texts = [remark.text for remark in strategy.remarks]
    assert any(text.startswith("Hill") and "failed with InputError" in text for text in texts)
    assert any(text.startswith("Mill") and "failed with KeyError" in text for text in texts)
    # The node's own log has it.
    logged = "".join(str(record.exc_info) for record in caplog.records if record.exc_info)
    assert logged.count("Ada Lovelace") >= 2


def test_what_a_fault_of_the_users_own_says_stays_with_the_client_too():
    federation = started()

    def train(network, points, config):
        raise InputError("row 17: patient Jane Doe has no label")

    nodes = nodes_of(federation, train=train)
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.remarks
    assert all("Jane" not in remark.text for remark in strategy.remarks)
    assert "its app failed with InputError" in strategy.remarks[0].text


def test_a_client_declines_to_train_on_fewer_samples_than_it_wants_to():
    federation = started()
    nodes = nodes_of(federation, least_samples=5)
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.samples.tolist() == [[0, 0, 0]]
    assert "trains on 5 samples or more at a time" in strategy.remarks[0].text
    enough = FedAvg(requirements=0.9, batch_size=5)
    run(enough, federation, nodes_of(federation, least_samples=5), rounds=1)
    assert enough.history.samples.tolist() == [[5, 5, 5]]


def test_an_app_may_report_only_what_is_known():
    with pytest.raises(InputError, match="may_report knows train-loss, label-counts; got 'rows'"):
        client_app(linear_model, lambda context: ([], []), may_report=["rows"])


# How much is drawn.


def order(**changes):
    given = {
        "server_round": 3,
        "client": "north",
        "seed": 7,
        "num_samples": 4,
        "quota": 6,
        "num_points": 20,
        "drawn": 0,
        "form": "local",
        "batch_size": 2,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "report": "",
    }
    return ConfigRecord(TrainOrder(**{**given, **changes}).to_config())


def test_the_points_drawn_are_those_of_the_local_loop():
    local = Draws("north", 20, 6, seed=7)
    for drawn in range(0, 40, 4):
        assert_array_equal(drawn_points(order(drawn=drawn), 20), local.draw(4))


def test_all_points_are_drawn_where_there_is_no_quota():
    found = drawn_points(order(quota=ALL_POINTS, num_samples=20), 20)
    assert sorted(found) == list(range(20))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_samples": 0}, "num-samples of 0"),
        ({"num_samples": -5}, "num-samples of -5"),
        ({"num_samples": 10_000_001}, "num-samples of 10,000,001: it must be from 1 to 10,000,000"),
        ({"quota": 0}, "quota of 0"),
        ({"quota": -2}, "quota of -2"),
        ({"quota": 21}, "quota of 21: it must be from 1 to 20"),
        ({"drawn": -1}, "drawn of -1"),
        ({"num_points": 19}, "said that it has 19 samples and has 20 now"),
    ],
)
def test_an_order_that_no_honest_server_gives_is_refused(changes, words):
    with pytest.raises(OrderError, match=words):
        drawn_points(order(**changes), 20)


def test_a_server_of_another_kind_is_told_what_is_needed():
    config = order()
    del config["quota"]
    with pytest.raises(OrderError, match=r"the server did not say quota: .* such as MwFed"):
        drawn_points(config, 20)
    federation = started()
    nodes = nodes_of(federation)
    sent = recorded(nodes)
    grid = InProcessGrid(nodes)
    flwr_strategy.FedAvg().start(grid, arrays_of(federation), num_rounds=1)
    assert all("the server did not say client" in reply.error.reason for reply in sent)


def test_a_nodes_own_limit_holds_whatever_the_server_asks():
    federation = started((20, 20, 20))
    watched = [Watched(c.inputs, c.labels) for c in federation.clients]
    nodes = []
    for i, (points, client) in enumerate(zip(watched, federation.clients, strict=True)):
        held_out = TensorDataset(client.validation_inputs, client.validation_labels)
        made = client_app(
            federation.model,
            lambda context, sets=(points, held_out): sets,
            name=lambda context, client=client: client.name,
            may_report=["label-counts"],
        )
        nodes.append(Node(made, node_id=i))
    nodes[1].config["most-points"] = 5
    nodes[2].config["most-points"] = 1_000
    strategy = FedAvg(requirements=0.9, batch_size=9, ask_for=["label-counts"])
    run(strategy, federation, nodes, rounds=5)
    assert strategy.history.contributions.tolist() == [20, 5, 20]
    assert strategy.history.unique[-1].tolist() == [20, 5, 20]
    assert set(watched[1].seen) == set(range(5))
    # Other seeds look at no other points.
    run(FedAvg(requirements=0.9, batch_size=9, seed=8), federation, nodes, rounds=2)
    assert set(watched[1].seen) == set(range(5))
    assert sum(strategy.label_counts["client 1"]) == 5
    plan = {"client 0": 9, "client 1": 6, "client 2": 9}
    with pytest.raises(InputError, match="asks client 1 for 6 samples and it has 5"):
        run(FedAvg(requirements=0.9, plan=plan), federation, nodes)


def test_a_greedy_server_gets_no_more_than_the_limit():
    federation = started((20, 20, 20))
    node = nodes_of(federation)[0]
    node.config["most-points"] = 5
    for said in (5, 20):
        ledger = Ledger(LocalFedAvg(), {"client 0": said}, requirements=0.9)
        config = ConfigRecord(ledger.train_order("client 0", 9, 1).to_config())
        content = RecordDict({"arrays": arrays_of(federation), "config": config})
        grid = InProcessGrid([node])
        (reply,) = grid.send_and_receive(
            [Message(content, dst_node_id=node.node_id, message_type="train")]
        )
        assert reply.has_error() == (said == 20)
    assert "said that it has 20 samples and has 5 now" in reply.error.reason


@pytest.mark.parametrize("limit", [-1, 2.5, True, "5"])
def test_a_limit_that_is_none_is_refused(limit):
    federation = started()
    nodes = nodes_of(federation)
    nodes[1].name, nodes[1].config["most-points"] = "client 1", limit
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.clients == ("client 0", "client 2")
    assert "most-points of the node-config must be a whole number" in strategy.remarks[0].text


# What is done with it.


def test_a_train_function_of_ones_own_is_given_the_samples_and_the_config():
    federation = started()
    calls = []

    def own(network, points, config):
        assert network.training
        inputs = torch.stack([points[i][0] for i in range(len(points))])
        calls.append((inputs.numpy(), dict(config)))
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.fill_(float(len(calls)))
        return 0.25

    nodes = nodes_of(federation, train=own)
    strategy = FedAvg(requirements=0.9, batch_size=4, ask_for=["train-loss"])
    config = ConfigRecord({"augment": "yes"})
    result = run(strategy, federation, nodes, rounds=1, train_config=config)
    assert strategy.remarks == []
    for (inputs, given), client in zip(calls, federation.clients, strict=True):
        rows = Draws(client.name, client.points, client.points, seed=0).draw(4)
        assert_array_equal(inputs, client.inputs[rows].numpy())
        assert (given["augment"], given["num-samples"], given["client"]) == ("yes", 4, client.name)
    assert_array_equal(strategy.history.loss, [[0.25] * 3])
    for array in result.arrays.values():
        assert_allclose(array.numpy(), 2.0)


def test_an_evaluate_function_of_ones_own_is_given_the_points():
    federation = started()
    sizes = []

    def own(network, points):
        assert not network.training
        sizes.append(len(points))
        return 0.625

    nodes = nodes_of(federation, evaluate=own)
    strategy = MwFed(requirements=0.9, batch_size=4, goal_points=5)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.accuracy.tolist() == [[0.625] * 3]
    assert sizes == [18, 5] * 3


def two_in_one() -> nn.Module:
    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)).double()
    network[1].weight = network[0].weight
    return network


def with_means() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).double()


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (two_in_one, {}, "one parameter in two places"),
        (with_means, {}, "running means of BatchNorm"),
        (linear_model, {"train": lambda *given: 0.0}, "train function of one's own needs form"),
    ],
)
def test_what_gradients_cannot_carry_is_said(model, options, words):
    federation = started(model=model)
    strategy = FedAvg(requirements=0.9, form="pooled", batch_size=4)
    run(strategy, federation, nodes_of(federation, **options), rounds=1)
    assert len(strategy.remarks) == 3
    assert all(words in remark.text for remark in strategy.remarks)
    local = FedAvg(requirements=0.9, form="local", batch_size=4)
    run(local, federation, nodes_of(federation, **options), rounds=1)
    assert local.remarks == []


def test_a_server_with_another_model_is_told():
    federation = started()
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, started(model=linear_model), nodes_of(federation), rounds=1)
    assert "the server's model is not this client's" in strategy.remarks[0].text


def test_data_sets_of_any_kind_give_the_same_run():
    federation = started((20, 20, 20))
    histories = []
    for kind in ("tensors", "items", "subset"):
        nodes = nodes_of(federation)
        for node, client in zip(nodes, federation.clients, strict=True):
            sets = data(client, kind)
            node.app = client_app(
                federation.model,
                lambda context, sets=sets: sets,
                name=lambda context, client=client: client.name,
            )
        strategy = MwFed(requirements=0.9, batch_size=6, goal_points=4)
        run(strategy, federation, nodes, rounds=3)
        assert strategy.remarks == []
        histories.append(strategy.history)
    for other in histories[1:]:
        assert_array_equal(other.accuracy, histories[0].accuracy)
        for name, weight in histories[0].weights.items():
            assert_array_equal(other.weights[name], weight)


def data(client: Client, kind: str):
    sets = (client.inputs, client.labels), (client.validation_inputs, client.validation_labels)
    if kind == "items":
        return tuple(Watched(inputs, [int(label) for label in labels]) for inputs, labels in sets)
    if kind == "tensors":
        return tuple(TensorDataset(*pair) for pair in sets)
    # Every second point of a set in which each stands twice.
    return tuple(
        Subset(
            TensorDataset(*(t.repeat_interleave(2, dim=0) for t in pair)),
            range(0, 2 * len(pair[1]), 2),
        )
        for pair in sets
    )


class Halved(TensorDataset):
    """Changes its points when they are looked at, as a transform does."""

    def __getitem__(self, place):
        inputs, label = super().__getitem__(place)
        return inputs / 2, label


class HalvedSubset(Subset):
    def __getitem__(self, place):
        inputs, label = super().__getitem__(place)
        return inputs / 2, label

    def __getitems__(self, places):
        return [self[place] for place in places]


@pytest.mark.parametrize("most", [None, 20])
@pytest.mark.parametrize("kind", ["tensors", "subset"])
def test_what_a_data_set_of_ones_own_does_to_its_points_is_done(kind, most):
    federation = started((30, 24))

    def arrays(halved):
        client = federation.clients[0]
        whole = (client.inputs, client.labels)
        validation = TensorDataset(client.validation_inputs, client.validation_labels)
        if not halved:
            data = TensorDataset(whole[0] / 2, whole[1])
        elif kind == "tensors":
            data = Halved(*whole)
        else:
            data = HalvedSubset(TensorDataset(*whole), range(30))
        app = client_app(
            federation.model,
            lambda context: (data, validation),
            name=lambda context: "one",
            most_points=lambda context: most,
        )
        strategy = FedAvg(requirements=0.9, batch_size=4, min_available_nodes=1)
        strategy.min_train_nodes = strategy.min_evaluate_nodes = 1
        result = run(strategy, federation, [Node(app, node_id=1)], rounds=1)
        return [array.numpy() for array in result.arrays.values()]

    for one, other in zip(arrays(True), arrays(False), strict=True):
        assert_allclose(one, other, rtol=1e-6)


def test_inputs_come_in_the_type_of_the_network():
    whole = [(np.arange(12).reshape(3, 4), np.arange(3)) for _ in range(2)]
    clients = [Client(name, *whole, requirement=0.9) for name in ("a", "b")]
    weights = {"weight": np.ones((3, 4), np.float32), "bias": np.zeros(3, np.float32)}
    federation = Federation(clients, lambda: nn.Linear(4, 3), weights=weights)
    nodes = [
        Node(
            client_app(
                federation.model,
                lambda context: tuple(TensorDataset(*map(torch.tensor, pair)) for pair in whole),
                name=lambda context, name=name: name,
            ),
            node_id=i,
        )
        for i, name in enumerate("ab")
    ]
    algorithm = LocalFedAvg(rounds=2, batch_size=2, form="local", evaluate_every=1)
    strategy = FedAvg(requirements=0.9, batch_size=2)
    run(strategy, federation, nodes, rounds=2)
    local = train(federation, algorithm)
    for name, weight in local.weights.items():
        assert_allclose(strategy.history.weights[name], weight, rtol=1e-6)


def test_a_client_leaves_torchs_random_numbers_alone():
    federation = started(model=noisy)
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    strategies = [FedAvg(requirements=0.9, batch_size=4, seed=1) for _ in range(2)]
    run(strategies[0], federation, rounds=2)
    assert torch.equal(torch.random.get_rng_state(), before)
    # And a network that draws in its own way draws the same in the same run.
    torch.manual_seed(4)
    run(strategies[1], federation, rounds=2)
    for name, weight in strategies[0].history.weights.items():
        assert_array_equal(strategies[1].history.weights[name], weight)


def noisy() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double()


def test_drawing_needs_no_torch():
    code = (
        "import sys\n"
        "from fedaccord.federation.flower import drawn_points\n"
        "from fedaccord.federation.training.rng import draw_goal_rows\n"
        "print('torch' in sys.modules, 'flwr' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().split() == ["False", "False"]


def test_what_is_shown_of_a_text_fits_a_line():
    assert clip("a\n b\x1b[2J\tc") == "a b [2J c"
    assert clip("x" * 10**6, 20) == "x" * 17 + "..."
    assert clip(["y"] * 10, 300) == str(["y"] * 10)
    assert clip(math.nan) == "nan"
