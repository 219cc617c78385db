"""Nobody is waited for for ever, and who is missing is named."""

import numpy as np
import pytest
from federation.flower.in_process import InProcessGrid
from federation.flower.runs import (
    after,
    arrays_of,
    goes,
    heard,
    node_of,
    nodes_of,
    requirements_of,
    run,
    started,
    tampering,
    texts,
)
from flwr.app import ConfigRecord, MetricRecord

from fedaccord.errors import InputError
from fedaccord.federation.flower import FedAvg
from fedaccord.federation.flower.nodes import NodesError

ONE = {"min_available_nodes": 1, "min_train_nodes": 1, "min_evaluate_nodes": 1}


def test_too_few_at_the_start_end_in_a_sentence_that_names_them():
    federation = started()
    strategy = FedAvg(requirements=requirements_of(federation), node_deadline=0.01)
    with pytest.raises(
        NodesError,
        match=r"1 of 3 clients are there; not connected: client 1, client 2, after 0\.01 seconds",
    ):
        run(strategy, federation, nodes_of(federation)[:1])
    strategy = FedAvg(requirements=0.9, node_deadline=0.01, min_train_nodes=7)
    with pytest.raises(NodesError, match=r"^3 of 7 clients are there, after 0\.01 seconds"):
        run(strategy, federation)


def test_many_who_are_missing_are_not_all_named():
    strategy = FedAvg(requirements=dict.fromkeys(map(str, range(1000)), 0.9), node_deadline=0)
    with pytest.raises(
        NodesError, match="not connected: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 990 more"
    ):
        run(strategy, started(), [])


def test_nodes_are_waited_for():
    federation = started()
    nodes = nodes_of(federation)
    grid = InProcessGrid(nodes)
    looks = []

    def get_nodes():
        looks.append(len(looks))
        nodes[2].online = len(looks) > 2
        return InProcessGrid.get_nodes(grid)

    grid.get_nodes = get_nodes
    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4)
    strategy.start(grid, arrays_of(federation), num_rounds=1)
    assert strategy.history.samples.tolist() == [[4, 4, 4]]
    assert strategy.remarks == []


def test_too_few_in_mid_run_end_training_and_the_history_is_kept(tmp_path):
    federation = started()
    nodes = nodes_of(federation)
    file = tmp_path / "history.csv"
    strategy = FedAvg(requirements=0.9, batch_size=4, node_deadline=0.01, history_file=file)
    result = run(strategy, federation, nodes, rounds=9, evaluate_fn=after(2, goes(*nodes[1:])))
    assert strategy.stopped == (
        "1 of 2 clients are there; not connected: client 1, client 2, after 0.01 seconds"
    )
    assert len(strategy.history.samples) == 2
    assert np.isfinite(strategy.history.accuracy).all()
    assert len(file.read_text().splitlines()) == 1 + 2 * 3
    assert list(result.train_metrics_clientapp) == [1, 2]


def test_too_few_to_evaluate_end_training_with_the_round_in_the_file(tmp_path):
    federation = started()
    nodes = nodes_of(federation)

    class Leaving(FedAvg):
        def aggregate_train(self, server_round, replies):
            goes(*nodes[1:])()
            return super().aggregate_train(server_round, replies)

    file = tmp_path / "history.csv"
    strategy = Leaving(requirements=0.9, batch_size=4, node_deadline=0.01, history_file=file)
    run(strategy, federation, nodes, rounds=3)
    assert strategy.stopped.startswith("1 of 2 clients are there")
    assert strategy.history.samples.tolist() == [[4, 4, 4]]
    assert np.isnan(strategy.history.accuracy).all()
    assert len(file.read_text().splitlines()) == 4


def test_an_exacting_run_needs_everybody():
    federation = started()
    nodes = nodes_of(federation)
    strategy = FedAvg(requirements=0.9, batch_size=4, node_deadline=0.01, exacting=True, **ONE)
    with pytest.raises(NodesError, match="2 of 3 clients are there; not connected: client 2"):
        run(strategy, federation, nodes, rounds=3, evaluate_fn=after(1, goes(nodes[2])))
    assert len(strategy.history.samples) == 1
    named = FedAvg(requirements=requirements_of(federation), node_deadline=0, exacting=True)
    with pytest.raises(NodesError, match="2 of 3 clients are there"):
        run(named, federation, nodes)


def test_a_node_that_never_answers_holds_up_nobody_for_longer_than_the_deadline():
    federation = started()
    nodes = nodes_of(federation)
    mute = node_of(federation.clients[0], federation, 77)
    mute.tamper = lambda message, reply: None
    strategy = FedAvg(requirements=0.9, batch_size=4, node_deadline=0.3)
    run(strategy, federation, [*nodes, mute], rounds=3)
    assert strategy.history.samples.tolist() == [[4, 4, 4]] * 3
    strategy = FedAvg(requirements=0.9, node_deadline=0.01)
    with pytest.raises(
        NodesError,
        match="1 of 2 clients are there; connected, but not yet known by name: node 77",
    ):
        run(strategy, federation, [nodes[0], mute])


def answering_late(grid, late, looks):
    """Let the replies of some nodes come only after so many looks."""
    pulls = []

    def pull_messages(message_ids):
        ids = list(message_ids)
        pulls.append(len(ids))
        sent = {m.metadata.message_id: m.metadata.dst_node_id for m in grid.pushed}
        soon = [one for one in ids if sent[one] not in late or len(pulls) > looks]
        return InProcessGrid.pull_messages(grid, soon)

    grid.pull_messages = pull_messages


@pytest.mark.parametrize("late", [{102}, {100, 101, 102}])
def test_a_node_that_is_there_is_waited_for_until_it_has_said_who_it_is(late):
    federation = started()
    grid = InProcessGrid(nodes_of(federation))
    answering_late(grid, late, looks=2)
    strategy = FedAvg(requirements=0.9, batch_size=4)
    strategy.start(grid, arrays_of(federation), num_rounds=1)
    assert strategy.history.samples.tolist() == [[4, 4, 4]]
    assert strategy.remarks == []
    # Each is asked once.
    assert sum(m.metadata.message_type == "query" for m in grid.pushed) == 3


def test_clients_without_any_point_are_no_federation():
    federation = started()
    nodes = nodes_of(federation, most_points=lambda context: 0)
    with pytest.raises(InputError, match="no client has any samples"):
        run(FedAvg(requirements=0.9), federation, nodes)


def test_a_plan_above_what_a_client_has_ends_before_the_first_round():
    federation = started()
    nodes = nodes_of(federation)
    strategy = FedAvg(requirements=0.9, plan={"client 0": 5, "client 1": 25, "client 2": 5})
    with pytest.raises(InputError, match="asks client 1 for 25 samples and it has 24; plan again"):
        run(strategy, federation, nodes)
    assert not list(heard(nodes, "train"))


def test_a_query_is_asked_under_the_users_key_and_for_what_is_wanted():
    federation = started()
    nodes = nodes_of(federation)
    strategy = FedAvg(requirements=0.9, configrecord_key="c", ask_for=["label-counts"])
    run(strategy, federation, nodes, rounds=1)
    (query,) = (m for _, m in heard(nodes[:1], "query"))
    assert dict(query.content.config_records) == {"c": ConfigRecord({"report": "label-counts"})}
    # Asked, and not allowed.
    assert strategy.label_counts == {}
    tampering(nodes[0], "query", lambda content: content.update(extra=MetricRecord()))
    strategy = FedAvg(requirements=0.9)
    run(strategy, federation, nodes, rounds=1)
    assert "2 records of metrics" in texts(strategy)[0]
