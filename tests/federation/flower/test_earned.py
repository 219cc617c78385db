"""Under Flower: the model is sent to those who deliver, and what the others see is looked at."""

import numpy as np
import pytest
from federation.flower.runs import (
    config_of,
    heard,
    node_of,
    nodes_of,
    requirements_of,
    run,
    started,
)
from flwr.app import Array, ArrayRecord
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord import Allocation
from fedaccord.errors import InputError
from fedaccord.federation import train
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.algorithms.earned import Earned as Rule
from fedaccord.federation.flower import Earned, drawn_points
from fedaccord.federation.flower.replies import Update, to_arrays
from fedaccord.federation.remote.protocol import OrderError, TrainOrder
from fedaccord.federation.remote.rounds import Withheld

PLAN = {"client 0": 20, "client 1": 0, "client 2": 20}
OPTIONS = {"passes": 2, "batch_size": 4, "learning_rate": 0.05, "node_deadline": 0.2}
RESERVE = (0, 24, 0)


def earned(federation, **options):
    given = {"plan": PLAN, "min_available_nodes": 2, **OPTIONS, **options}
    return Earned(requirements=requirements_of(federation), **given)


def models_seen(nodes, place):
    """Give, by kind and round, the first array of the model that a node was sent."""
    node = nodes[place]
    found = {}
    for kind in ("train", "evaluate"):
        for _, message in heard([node], kind):
            record = next(iter(message.content.array_records.values()))
            found[kind, config_of(message)["server-round"]] = next(iter(record.values())).numpy()
    return found


def recorded(federation, strategy, nodes, **options):
    """Run, and give the first array of the server's model after each round, the start first."""
    models = []

    def note(server_round, arrays):
        models.append(next(iter(arrays.values())).numpy().copy())

    then = options.pop("then", note)

    def look(server_round, arrays):
        note(server_round, arrays)
        if then is not note:
            then(server_round)

    run(strategy, federation, nodes, evaluate_fn=look, **options)
    return models


# A client with too few points.


def test_who_runs_out_of_points_is_sent_no_further_model_and_the_reserve_stands_in():
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)
    # It says that it has five points, and twenty are asked of it.
    nodes[0] = node_of(federation.clients[0], federation, 100, most_points=lambda context: 5)
    strategy = earned(federation, reserve=RESERVE)
    models = recorded(federation, strategy, nodes, rounds=50)
    history = strategy.history
    # Four points a round: in the second round it delivers one fresh point, and 8 are due.
    assert history.samples[:, 0].tolist() == [4, 4] + [0] * 8
    assert history.unique[-1].tolist() == [5, 16, 20]
    assert history.samples[2:, 2].tolist() == [4] * 8
    seen = models_seen(nodes, 0)
    assert_array_equal(seen["train", 1], models[0])
    assert_array_equal(seen["train", 2], models[1])
    for (kind, n), model in seen.items():
        assert n <= 2, f"it was sent something to {kind} in round {n}"
        assert any(np.array_equal(model, older) for older in models[:2])
    # What it has is the model after the first round; its accuracy is of that one.
    assert_array_equal(strategy.checkpoints["client 0"]["0.weight"], models[1])
    assert set(history.accuracy[1:, 0]) == {history.accuracy[0, 0]}
    # The others are sent every model, the last one too.
    for place in (1, 2):
        assert_array_equal(models_seen(nodes, place)["evaluate", 10], models[10])
    assert strategy.stopped == "EARNED needs no more samples from any client"


def test_the_local_loop_does_the_same():
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)
    nodes[0] = node_of(federation.clients[0], federation, 100, most_points=lambda context: 5)
    strategy = earned(federation, reserve=RESERVE)
    run(strategy, federation, nodes, rounds=50)
    rule = Rule(
        rounds=50,
        batch_size=4,
        passes=2,
        learning_rate=0.05,
        form="local",
        evaluate_every=1,
        commitment=(20, 0, 20),
        reserve=RESERVE,
    )
    local = train(federation, rule, contributions=[5, 0, 20], seed=0)
    assert_array_equal(strategy.history.samples, local.samples)
    assert_array_equal(strategy.history.unique, local.unique)
    # Client 0 draws other points here, of the five that it has; the reserve and client 2 do not.
    assert strategy.history.algorithm == local.algorithm


def test_a_plan_brings_its_reserves():
    federation = started((30, 24, 40), requirement=0.99)
    plan = Allocation([0, 20, 20], ["client 1", "client 2", "client 0"], reserve=[23.5, 0, 0])
    strategy = earned(federation, plan=plan)
    nodes = nodes_of(federation)
    nodes[0] = node_of(federation.clients[0], federation, 100, most_points=lambda context: 5)
    run(strategy, federation, nodes, rounds=50)
    assert strategy.history.algorithm["reserve"] == (0, 24, 0)
    assert strategy.history.unique[-1].tolist() == [5, 16, 20]


def test_a_client_that_declines_all_has_the_first_model():
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)
    nodes[0] = node_of(federation.clients[0], federation, 100, least_samples=1000)
    strategy = earned(federation)
    models = recorded(federation, strategy, nodes, rounds=50)
    for model in models_seen(nodes, 0).values():
        assert_array_equal(model, models[0])
    assert strategy.history.samples[:, 0].sum() == 0
    # It is asked again in each round, and gets nothing newer with the question.
    assert sum(kind == "train" for kind, _ in models_seen(nodes, 0)) == 10


# A client that comes back.


def test_who_comes_back_delivers_what_it_owes_on_its_old_model_and_gets_the_new_one():
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)
    strategy = earned(federation, reserve=RESERVE)

    def then(server_round):
        nodes[0].online = server_round not in (2, 3)

    models = recorded(federation, strategy, nodes, rounds=50, then=then)
    history = strategy.history
    # Away in rounds 3 and 4, it owes the 8 points of these and the 4 of round 5.
    assert history.samples[:6, 0].tolist() == [4, 4, 0, 0, 12, 4]
    assert history.unique[4].tolist() == [20, 6, 20]
    seen = models_seen(nodes, 0)
    assert ("evaluate", 4) not in seen
    assert_array_equal(seen["train", 5], models[2])
    assert_array_equal(seen["evaluate", 5], models[5])
    assert_array_equal(seen["train", 6], models[5])
    assert_array_equal(seen["evaluate", 10], models[10])
    assert strategy.checkpoints == {}
    # For 32 draws to come 16 points are called, at 0.2 draws a round; then the 6 that it gave.
    assert history.samples[:, 1].tolist() == [0, 0, 0, 3, 3, 1, 1, 2, 1, 1]
    assert history.unique[-1].tolist() == [20, 6, 20]


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_what_it_delivers_goes_into_the_model(form):
    """In the round in which it comes back, the model is not that of the others alone."""
    federation = started((30, 24, 40), requirement=0.99)
    found = {}
    for comes_back in (True, False):
        nodes = nodes_of(federation)
        strategy = earned(federation, form=form)

        def then(server_round, nodes=nodes, comes_back=comes_back):
            nodes[0].online = server_round < 2 or (comes_back and server_round > 3)

        found[comes_back] = recorded(federation, strategy, nodes, rounds=50, then=then)
    assert_allclose(found[True][4], found[False][4])
    assert np.abs(found[True][5] - found[False][5]).max() > 1e-6
    assert np.isfinite(found[True][-1]).all()


def test_who_returns_the_old_model_as_it_was_does_not_pull_the_new_one_back():
    """In round 5 everybody sends back what it was sent: nothing was learnt, and nothing is lost."""
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)

    def send_back(message, reply):
        if message.metadata.message_type == "train" and config_of(message)["server-round"] == 5:
            key, sent = next(iter(message.content.array_records.items()))
            reply.content[key] = sent
        return reply

    for node in nodes:
        node.tamper = send_back
    strategy = earned(federation)

    def then(server_round):
        nodes[0].online = server_round not in (2, 3)

    models = recorded(federation, strategy, nodes, rounds=50, then=then)
    assert strategy.history.samples[4].tolist() == [12, 0, 4]
    assert np.abs(models[4] - models[2]).max() > 1e-3
    assert_allclose(models[5], models[4], atol=1e-6)


def test_a_reserve_that_is_called_after_the_first_pass_is_told_so():
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)
    strategy = earned(federation, reserve=(0, 0, 15), min_available_nodes=1)

    def then(server_round):
        nodes[0].online = server_round < 6

    recorded(federation, strategy, nodes, rounds=50, then=then)
    told = {
        config_of(message)["server-round"]: config_of(message).get("changes")
        for _, message in heard([nodes[2]], "train")
    }
    # Client 0 drew 24 of its 40, so 8 points are called; client 2 has drawn 28 by then.
    assert told[7] is None
    assert told[8] == "0:20,28:28"
    assert strategy.history.unique[-1].tolist() == [20, 0, 28]


def test_an_older_model_is_moved_to_the_present_one():
    def record(value):
        return ArrayRecord({"a": Array(np.array([value, value])), "n": Array(np.array([3]))})

    withheld = Withheld(record(0.0), to_arrays)
    assert withheld.choose("x", record(1.0))["a"].numpy().tolist() == [1, 1]
    assert withheld.part(["x", "y"]) == (["x", "y"], [])
    assert withheld.choose("x", record(2.0))["a"].numpy().tolist() == [1, 1]
    assert withheld.checkpoints["y"]["a"].tolist() == [0, 0]
    arrays = {"a": np.array([1.5, 0.5]), "n": np.array([3])}
    updates = {
        name: Update(arrays=arrays, samples=1, claimed=1, loss=0.0, content=None)
        for name in ("x", "z")
    }
    moved = withheld.move(updates, {"a": np.array([10.0, 10.0]), "n": np.array([3])})
    assert moved["x"].arrays["a"].tolist() == [10.5, 9.5]
    assert moved["z"].arrays["a"].tolist() == [1.5, 0.5]
    assert withheld.part(["y"]) == ([], ["x"])
    assert withheld.choose("x", record(2.0))["a"].numpy().tolist() == [2, 2]


def test_patience_forgives_a_lost_reply():
    federation = started((30, 24, 40), requirement=0.99)
    nodes = nodes_of(federation)
    lost = {3}
    nodes[0].tamper = lambda message, reply: (
        None
        if message.metadata.message_type == "train" and config_of(message)["server-round"] in lost
        else reply
    )
    strategy = earned(federation, patience=1, reserve=RESERVE)
    run(strategy, federation, nodes, rounds=50, timeout=0.5)
    history = strategy.history
    assert history.samples[:5, 0].tolist() == [4, 4, 0, 8, 4]
    assert history.unique[-1].tolist() == [20, 0, 20]
    assert strategy.checkpoints == {}


def test_who_is_out_does_not_hold_up_the_end_at_the_goal():
    federation = started((30, 24, 40), requirement=0.01)
    nodes = nodes_of(federation)
    nodes[0] = node_of(federation.clients[0], federation, 100, least_samples=1000)
    goals = {"client 0": 1.0, "client 1": 0.01, "client 2": 0.01}
    strategy = Earned(requirements=goals, plan=PLAN, stop_at_goal=2, **OPTIONS)
    run(strategy, federation, nodes, rounds=50)
    assert strategy.stopped == "every client reaches its goal"
    assert len(strategy.history.samples) == 2


# Orders.


def test_selecting_some_clients_is_refused():
    with pytest.raises(InputError, match="EARNED sends its model to clients that deliver in each"):
        Earned(requirements=0.8, fraction_train=0.5)


ORDER = {
    "server_round": 1,
    "client": "Hill",
    "seed": 4,
    "num_samples": 3,
    "quota": 6,
    "num_points": 9,
    "drawn": 5,
    "form": "local",
    "batch_size": 4,
    "optimizer": "adam",
    "learning_rate": 0.1,
    "report": "",
}


def test_an_order_tells_how_the_quota_changed_if_it_did():
    plain = TrainOrder(**ORDER)
    assert "changes" not in plain.to_config()
    assert TrainOrder.read(plain.to_config()) == plain
    grown = TrainOrder(**ORDER, changes="0:2,5:6")
    assert TrainOrder.read(grown.to_config()) == grown
    first = set(drawn_points({**TrainOrder(**{**ORDER, "quota": 2}).to_config()}, 9).tolist())
    # The three that are drawn next are new ones.
    assert not first & set(drawn_points(grown.to_config(), 9).tolist())


@pytest.mark.parametrize("changes", ["0:2", "0:2,5:7", "1:2,5:6", "0:x", "0:2,5:12,5:6", "0:2;5:6"])
def test_changes_that_cannot_be_are_refused(changes):
    config = TrainOrder(**ORDER, changes=changes).to_config()
    with pytest.raises(OrderError, match="Hill cannot read how its quota changed"):
        drawn_points(config, 9)


def test_other_strategies_still_refuse_a_plan_that_asks_for_too_much():
    from fedaccord.federation.remote.ledger import Ledger

    with pytest.raises(InputError, match="asks a for 9 samples and it has 5"):
        Ledger(FedAvg(), {"a": 5}, requirements=0.5, quotas={"a": 9})
    assert Ledger(Rule(), {"a": 5}, requirements=0.5, quotas={"a": 9}).contributions == [5]
