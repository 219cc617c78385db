"""Clients are known by their names, whatever node they are on."""

import math

import numpy as np
import pytest
from federation.flower.in_process import Node
from federation.flower.runs import (
    after,
    config_of,
    heard,
    node_of,
    nodes_of,
    requirements_of,
    run,
    say,
    started,
    tampering,
    texts,
)
from flwr.clientapp import ClientApp
from numpy.testing import assert_array_equal
from torch.utils.data import TensorDataset

from fedaccord.federation.flower import FedAvg, MwFed, client_app


def test_the_name_a_node_is_registered_under_wins():
    federation = started()
    nodes = nodes_of(federation)
    nodes[1].name = "Hill"
    goals = dict.fromkeys(("client 0", "Hill", "client 2"), 0.9)
    strategy = FedAvg(requirements=goals, batch_size=4, node_deadline=1)
    run(strategy, federation, nodes, rounds=2)
    assert strategy.remarks == []
    assert {config_of(m)["client"] for _, m in heard(nodes[1:2], "train")} == {"Hill"}
    assert strategy.history.samples.tolist() == [[4, 4, 4]] * 2


def test_in_a_simulation_a_client_is_its_partition():
    federation = started((12,) * 11)
    nodes = [
        Node(
            client_app(federation.model, lambda context, c=c: sets(c)),
            node_id=500 - i,
            partition_id=i,
            num_partitions=11,
        )
        for i, c in enumerate(federation.clients)
    ]
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.clients == tuple(f"client {i}" for i in range(11))
    assert strategy.remarks == []


def sets(client):
    return (
        TensorDataset(client.inputs, client.labels),
        TensorDataset(client.validation_inputs, client.validation_labels),
    )


def test_a_node_may_say_its_name_in_its_config():
    federation = started()
    nodes = [
        Node(client_app(federation.model, lambda context, c=c: sets(c)), node_id=i + 5)
        for i, c in enumerate(federation.clients)
    ]
    for node, name in zip(nodes, "abc", strict=True):
        node.config["name"] = name
    strategy = FedAvg(requirements=dict.fromkeys("cab", 0.9), batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.clients == ("c", "a", "b")
    assert np.isfinite(strategy.history.accuracy).all()


@pytest.mark.parametrize("kind", [FedAvg, MwFed])
def test_who_comes_back_under_another_id_goes_on_where_it_was(kind):
    federation = started(requirement=0.999)
    whole = kind(requirements=requirements_of(federation), batch_size=4, seed=3, form="pooled")
    run(whole, federation, rounds=6)
    nodes = nodes_of(federation)
    back = node_of(federation.clients[1], federation, 9_000)
    back.online = False

    def swap():
        nodes[1].online, back.online = False, True

    strategy = kind(requirements=requirements_of(federation), batch_size=4, seed=3, form="pooled")
    run(strategy, federation, [*nodes, back], rounds=6, evaluate_fn=after(3, swap))
    assert strategy.remarks == []
    assert len(back.heard) > 6
    assert_array_equal(strategy.history.samples, whole.history.samples)
    assert_array_equal(strategy.history.unique, whole.history.unique)
    assert_array_equal(strategy.history.accuracy, whole.history.accuracy)
    assert strategy.weights == whole.weights
    for name, weight in whole.history.weights.items():
        assert_array_equal(strategy.history.weights[name], weight)


def test_who_is_away_for_some_rounds_keeps_its_weight():
    federation = started(requirement=0.999)
    nodes = nodes_of(federation)
    strategy = MwFed(requirements=requirements_of(federation), batch_size=4)

    def look(n, arrays):
        nodes[1].online = n < 2 or n >= 4

    run(strategy, federation, nodes, rounds=6, evaluate_fn=look)
    # Four rounds of six raised it.
    assert strategy.weights["client 1"] == pytest.approx(4 * math.log(2))
    assert strategy.weights["client 0"] == pytest.approx(6 * math.log(2))
    samples = strategy.history.samples[:, 1]
    assert (samples > 0).tolist() == [True, True, False, False, True, True]
    told = [config_of(m)["drawn"] for _, m in heard(nodes[1:2], "train")]
    assert told == [0, samples[0], samples[0] + samples[1], samples[:5].sum()]


def test_a_node_that_dies_before_it_replies_is_named_and_its_weight_kept():
    federation = started(requirement=0.999)
    nodes = nodes_of(federation)

    class Late(MwFed):
        def configure_train(self, server_round, arrays, config, grid):
            messages = super().configure_train(server_round, arrays, config, grid)
            nodes[1].online = server_round != 2
            return messages

    strategy = Late(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, nodes, rounds=3)
    assert texts(strategy) == [
        "client 1 is left out of round 2: it reports: node unavailable",
    ]
    assert strategy.history.samples[1].tolist() == [4, 0, 4]
    assert np.isnan(strategy.history.accuracy[1]).tolist() == [False, True, False]
    assert strategy.weights["client 1"] == pytest.approx(2 * math.log(2))


def test_of_two_nodes_with_one_name_the_second_is_left_out_and_named():
    federation = started()
    nodes = nodes_of(federation)
    double = node_of(federation.clients[1], federation, 77)
    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes, double], rounds=2)
    (text,) = texts(strategy)
    assert text == (
        "client 1 is there already, as node 101; node 77 says it is client 1 too, and is left out "
        "while the other is connected"
    )
    assert strategy.history.samples.tolist() == [[4, 4, 4]] * 2
    assert [m.metadata.message_type for m in double.heard] == ["query"]


def test_who_was_left_out_takes_the_place_when_the_other_is_gone():
    # As when a SuperNode starts anew before the SuperLink has missed the old one.
    federation = started()
    nodes = nodes_of(federation)
    again = node_of(federation.clients[1], federation, 77)
    again.online = False

    def look(n, arrays):
        again.online = n >= 1
        nodes[1].online = n < 2

    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes, again], rounds=4, evaluate_fn=look)
    assert strategy.history.samples.tolist() == [[4, 4, 4]] * 4
    told = {n: [config_of(m)["drawn"] for _, m in heard([n], "train")] for n in (nodes[1], again)}
    assert list(told.values()) == [[0, 4], [8, 12]]


def test_who_has_taken_a_place_keeps_it_when_the_other_comes_back():
    federation = started()
    nodes = nodes_of(federation)
    again = node_of(federation.clients[1], federation, 77)
    again.online = False

    def look(n, arrays):
        again.online = n >= 1
        nodes[1].online = n != 2

    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes, again], rounds=5, evaluate_fn=look)
    rounds = {
        node.node_id: [config_of(m)["server-round"] for _, m in heard([node], "train")]
        for node in (nodes[1], again)
    }
    assert rounds == {101: [1, 2], 77: [3, 4, 5]}


def test_who_is_registered_comes_before_who_only_says_so():
    federation = started()
    nodes = nodes_of(federation)
    thief = nodes[1]
    real = node_of(federation.clients[1], federation, 5)
    real.name, real.online = "client 1", False

    def come():
        real.online = True

    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes, real], rounds=3, evaluate_fn=after(1, come))
    assert [config_of(m)["server-round"] for _, m in heard([thief], "train")] == [1]
    assert [config_of(m)["server-round"] for _, m in heard([real], "train")] == [2, 3]
    assert "node 101, which says it is client 1 too" in texts(strategy)[0]


def test_a_registered_name_is_nobody_elses_while_its_node_is_away():
    federation = started()
    nodes = nodes_of(federation)
    real = node_of(federation.clients[1], federation, 5)
    real.name = "client 1"
    thief, nodes[1] = nodes[1], real
    thief.online = False

    def steal():
        real.online, thief.online = False, True

    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes, thief], rounds=3, evaluate_fn=after(1, steal))
    assert list(heard([thief], "train")) == []
    assert strategy.history.samples[:, 1].tolist() == [4, 0, 0]
    assert "node 101, which says it is client 1 too, is not registered" in texts(strategy)[0]


def test_a_question_to_a_node_that_is_started_anew_is_asked_again():
    federation = started()
    nodes = nodes_of(federation)
    answer, nodes[1].tamper = nodes[1].tamper, lambda message, reply: None

    def start_anew():
        nodes[1].started, nodes[1].tamper = "later", answer

    # It is not waited for: the others are enough.
    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4, node_deadline=0.2)
    run(strategy, federation, nodes, rounds=3, evaluate_fn=after(1, start_anew))
    assert strategy.history.samples[:, 1].tolist() == [0, 4, 4]


def test_who_is_silent_holds_up_nobody_once_all_that_are_named_are_there():
    federation = started()
    mute = node_of(federation.clients[0], federation, 77, name=lambda context: "stranger")
    mute.tamper = lambda message, reply: None
    strategy = FedAvg(
        requirements=requirements_of(federation), batch_size=4, node_deadline=60, exacting=True
    )
    run(strategy, federation, [*nodes_of(federation), mute], rounds=1)
    assert strategy.history.samples.tolist() == [[4, 4, 4]]


def test_a_double_does_not_say_how_many_points_the_other_has():
    federation = started()
    double = node_of(federation.clients[0], federation, 77, name=lambda context: "client 1")
    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes_of(federation), double], rounds=2)
    assert strategy.history.contributions.tolist() == [30, 24, 40]


def test_a_node_without_a_name_takes_part_and_is_told():
    federation = started()
    nodes = nodes_of(federation)
    nodes[1] = node_of(federation.clients[1], federation, 77, name=lambda context: "")
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.clients == ("client 0", "client 2", "node 77")
    (text,) = texts(strategy)
    assert text.startswith("node 77 has no name, so its weight is lost if it comes back")


def test_nobody_keeps_a_node_without_a_name_out_by_its_name():
    federation = started()
    nodes = nodes_of(federation)
    # First, so that it would have the name already.
    thief = node_of(federation.clients[0], federation, 77, name=lambda context: "node 101")
    nodes[1] = node_of(federation.clients[1], federation, 101, name=lambda context: "")
    strategy = FedAvg(requirements=0.9, batch_size=4, min_available_nodes=3)
    run(strategy, federation, [thief, *nodes], rounds=1)
    assert strategy.history.clients == ("client 0", "client 2", "node 101")
    assert list(heard([thief], "train")) == []
    assert any(
        "node 77 could not be asked for its name: its name, node 101, looks like the name "
        "of" in text
        for text in texts(strategy)
    )


def test_a_node_may_be_registered_under_a_name_of_any_kind():
    federation = started()
    nodes = nodes_of(federation)
    nodes[1].name = "node 7"
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.clients == ("client 0", "client 2", "node 7")
    assert strategy.remarks == []


@pytest.mark.parametrize(
    "name",
    ["two\nlines", "a" * 10_000, "\x1b[2Jclear", "\u202egnp.exe", "nul\x00", "\ttab\tbed"],
    ids=["newline", "long", "escape", "right to left", "nul", "tabs"],
)
def test_a_name_that_would_spoil_a_log_is_refused(name, caplog):
    federation = started()
    nodes = nodes_of(federation)
    odd = node_of(federation.clients[0], federation, 77, name=lambda context: name)
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, [*nodes, odd], rounds=1)
    assert strategy.history.clients == ("client 0", "client 1", "client 2")
    # It is asked so often and no more.
    assert len(odd.heard) <= 3
    for text in texts(strategy):
        assert text.startswith("node 77 could not be asked for its name: its name, ")
        assert text.isprintable()
        assert len(text) < 300
    for record in caplog.records:
        assert record.getMessage().replace("\t", "").replace("\n", "").isprintable()
        assert len(record.getMessage()) < 2_000


@pytest.mark.parametrize("name", ["=1+1", "@A1", "+1", '=HYPERLINK("x")'])
def test_a_name_that_a_spreadsheet_would_compute_is_refused(name):
    federation = started()
    odd = node_of(federation.clients[2], federation, 77, name=lambda context: name)
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, [*nodes_of(federation)[:2], odd], rounds=1)
    assert name not in strategy.history.clients
    assert "begins as a formula does" in texts(strategy)[0]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "1=1", "x²", "北京", "a1b", "%s"])
def test_a_name_that_is_only_odd_is_taken_as_it_is(name, tmp_path):
    federation = started()
    nodes = nodes_of(federation)
    nodes[2] = node_of(federation.clients[2], federation, 77, name=lambda context: name)
    file = tmp_path / "history.csv"
    strategy = FedAvg(requirements=0.9, batch_size=4, history_file=file)
    run(strategy, federation, nodes, rounds=1)
    assert name in strategy.history.clients
    assert strategy.remarks == []
    assert f",{name}," in file.read_text() or f',"{name}",' in file.read_text()


def test_names_that_differ_only_in_the_place_of_a_digit_keep_their_order():
    federation = started()
    names = ("a1b", "ab1", "1ab")
    orders = []
    for places in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        nodes = [
            node_of(federation.clients[i], federation, 50 + i, name=lambda context, i=i: names[i])
            for i in places
        ]
        strategy = FedAvg(requirements=0.9, batch_size=4)
        run(strategy, federation, nodes, rounds=1)
        orders.append(strategy.history.clients)
    assert len(set(orders)) == 1


def test_a_stranger_is_left_out_and_named():
    federation = started()
    stranger = node_of(federation.clients[0], federation, 77, name=lambda context: "Eve")
    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [stranger, *nodes_of(federation)], rounds=2)
    assert texts(strategy) == ["Eve is not a member, and is left out"]
    assert strategy.history.clients == federation.names
    assert [m.metadata.message_type for m in stranger.heard] == ["query"]


def test_who_comes_when_training_has_begun_is_left_out_and_named():
    federation = started()
    nodes = nodes_of(federation)
    nodes[2].online = False

    def come():
        nodes[2].online = True

    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=3, evaluate_fn=after(1, come))
    assert texts(strategy) == ["client 2 was not there when training began, and is left out"]
    assert strategy.history.clients == ("client 0", "client 1")


def test_a_member_that_comes_late_is_taken_in():
    federation = started()
    nodes = nodes_of(federation)
    nodes[1].online = False

    def come():
        nodes[1].online = True

    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4, node_deadline=0)
    run(strategy, federation, nodes, rounds=3, evaluate_fn=after(1, come))
    assert texts(strategy) == ["client 1 is not there; training begins without it"]
    assert strategy.history.samples.tolist() == [[4, 0, 4], [4, 4, 4], [4, 4, 4]]
    assert strategy.history.contributions.tolist() == [30, 24, 40]
    assert np.isnan(strategy.history.accuracy[0]).tolist() == [False, True, False]


def test_a_member_that_comes_late_with_too_few_points_does_not_end_the_run():
    federation = started()
    nodes = nodes_of(federation)
    nodes[1].online = False

    def come():
        nodes[1].online = True

    plan = {"client 0": 5, "client 1": 25, "client 2": 5}
    strategy = FedAvg(requirements=0.9, plan=plan, batch_size=4, node_deadline=0)
    run(strategy, federation, nodes, rounds=3, evaluate_fn=after(1, come))
    assert texts(strategy)[1] == (
        "client 1 cannot train: the plan asks client 1 for 25 samples and it has 24; plan again "
        "with a limit of 24 for client 1"
    )
    assert strategy.history.samples.tolist() == [[4, 0, 4]] * 3
    assert not list(heard(nodes[1:2], "train"))
    assert np.isfinite(strategy.history.accuracy[1:, 1]).all()


def test_who_comes_back_with_other_points_does_not_train():
    federation = started()
    nodes = nodes_of(federation)
    back = node_of(started((30, 20, 40)).clients[1], federation, 77)
    back.online = False

    def swap():
        nodes[1].online, back.online = False, True

    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    run(strategy, federation, [*nodes, back], rounds=3, evaluate_fn=after(1, swap))
    assert texts(strategy)[0] == (
        "client 1 cannot train: client 1 had 24 samples and came back with 20; give it the same "
        "samples until the run is over, or it would draw different ones"
    )
    assert strategy.history.samples.tolist() == [[4, 4, 4], [4, 0, 4], [4, 0, 4]]
    assert "it would draw different ones" in texts(strategy)[1]


POINTS = [-1, 2.5, math.nan, 10**13, 2**63, [3]]


@pytest.mark.parametrize("points", POINTS, ids=str)
def test_who_says_points_that_cannot_be_is_left_out(points):
    federation = started()
    nodes = nodes_of(federation)
    nodes[1].name = "client 1"
    tampering(nodes[1], "query", say(num_points=points))
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert strategy.history.clients == ("client 0", "client 2")
    start = "client 1 could not be asked for its name: its num-points is"
    assert texts(strategy)[0].startswith(start)


def test_an_app_that_answers_no_query_is_named():
    federation = started()
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, [*nodes_of(federation), Node(ClientApp(), node_id=77)], rounds=4)
    assert set(texts(strategy)) == {
        "node 77 could not be asked for its name: it reports: <class 'ValueError'>:<'No query "
        "function registered with name 'default''>"
    }
    assert len(strategy.remarks) == 3
