"""Strategies are Flower's FedAvg to those who use them: its arguments, its records, its result."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from federation.flower.in_process import InProcessGrid
from federation.flower.runs import (
    after,
    arrays_of,
    config_of,
    heard,
    nodes_of,
    put,
    requirements_of,
    run,
    started,
    tampering,
)
from flwr.app import ConfigRecord, MetricRecord
from flwr.serverapp import strategy as flwr_strategy
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord import federation as algorithms
from fedaccord.errors import FedaccordError, InputError
from fedaccord.federation.flower import AlgorithmStrategy, FedAvg, MwFed, PlannedFedAvg
from fedaccord.federation.flower.nodes import NodesError

FIVE = (12, 12, 12, 12, 12)


def asked(nodes, kind, key):
    """Give what each client was told under a key, round by round."""
    told = {}
    for _, message in heard(nodes, kind):
        config = config_of(message)
        told.setdefault(config["client"], []).append(config[key])
    return told


def test_each_client_is_told_its_own_number_of_samples():
    federation = started()
    nodes = nodes_of(federation)
    goals = {"client 0": 0.999, "client 1": 0.01, "client 2": 0.01}
    run(MwFed(requirements=goals, batch_size=8, factor=4.0), federation, nodes, rounds=3)
    told = asked(nodes, "train", "num-samples")
    # Weights of 1, 4 and 16 beside 1 and 1, of 24 samples: 8, 16, and the larger part of 21 1/3.
    assert told == {"client 0": [8, 16, 22], "client 1": [8, 4, 1], "client 2": [8, 4, 1]}


def test_the_config_of_the_user_reaches_the_clients_and_is_left_alone():
    federation = started()
    nodes = nodes_of(federation)
    train_config = ConfigRecord({"augment": True})
    evaluate_config = ConfigRecord({"threshold": 0.5})
    strategy = FedAvg(requirements=0.9, batch_size=4)
    configs = {"train_config": train_config, "evaluate_config": evaluate_config}
    run(strategy, federation, nodes, **configs)
    assert all(config_of(m)["augment"] is True for _, m in heard(nodes, "train"))
    assert all(config_of(m)["threshold"] == 0.5 for _, m in heard(nodes, "evaluate"))
    assert asked(nodes, "train", "server-round")["client 1"] == [1, 2, 3]
    assert asked(nodes, "evaluate", "server-round")["client 1"] == [1, 2, 3]
    assert dict(train_config) == {"augment": True}
    assert dict(evaluate_config) == {"threshold": 0.5}


@pytest.mark.parametrize(
    ("which", "key"),
    [("train_config", "learning-rate"), ("train_config", "quota"), ("evaluate_config", "seed")],
)
def test_a_config_that_says_what_the_strategy_says_is_refused(which, key):
    with pytest.raises(InputError, match=f"the config for clients has {key}, which"):
        run(FedAvg(requirements=0.9), started(), **{which: ConfigRecord({key: 1})})


def test_a_config_that_another_strategy_left_its_round_in_is_taken():
    nodes = nodes_of(started())
    run(FedAvg(requirements=0.9), started(), nodes, train_config=ConfigRecord({"server-round": 9}))
    assert asked(nodes, "train", "server-round")["client 0"] == [1, 2, 3]


def test_records_have_the_keys_that_flowers_arguments_say():
    federation = started()
    nodes = nodes_of(federation)
    strategy = FedAvg(requirements=0.9, arrayrecord_key="model", configrecord_key="settings")
    run(strategy, federation, nodes, rounds=1)
    for kind in ("train", "evaluate"):
        for _, message in heard(nodes, kind):
            assert list(message.content.array_records) == ["model"]
            assert list(message.content.config_records) == ["settings"]
    assert strategy.history.samples.sum() == 3 * 64


def test_another_key_may_say_how_much_a_reply_weighs():
    federation = started()
    nodes = nodes_of(federation)
    for node in nodes:
        node.tamper = renamed
    strategy = FedAvg(requirements=0.9, batch_size=4, weighted_by_key="how-many")
    run(strategy, federation, nodes, rounds=2)
    assert strategy.remarks == []
    assert strategy.history.samples.tolist() == [[4, 4, 4]] * 2
    # Our own app says num-examples: where another key is asked for, everybody is named.
    strategy = FedAvg(requirements=0.9, batch_size=4, weighted_by_key="how-many")
    run(strategy, federation, rounds=1)
    assert "client 0 is left out of round 1: it does not say its how-many" in [
        remark.text for remark in strategy.remarks
    ]


def renamed(message, reply):
    for record in reply.content.metric_records.values():
        if "num-examples" in record:
            record["how-many"] = record.pop("num-examples")
    return reply


def test_the_result_has_what_flowers_has():
    federation = started()
    strategy = FedAvg(requirements=0.9, batch_size=4, ask_for=["train-loss"])
    result = run(
        strategy,
        federation,
        rounds=3,
        evaluate_fn=lambda n, arrays: MetricRecord({"round": n, "arrays": len(arrays)}),
    )
    assert list(result.train_metrics_clientapp) == [1, 2, 3]
    history = strategy.history
    for n in (1, 2, 3):
        found = result.train_metrics_clientapp[n]["train-loss"]
        assert found == pytest.approx(history.loss[n - 1].mean())
        found = result.evaluate_metrics_clientapp[n]["accuracy"]
        assert found == pytest.approx(history.accuracy[n - 1].mean())
    assert [dict(m) for m in result.evaluate_metrics_serverapp.values()] == [
        {"round": n, "arrays": 4} for n in range(4)
    ]
    for name, array in result.arrays.items():
        assert_array_equal(array.numpy(), history.weights[name])
        assert not np.array_equal(array.numpy(), federation.weights[name])


def test_the_functions_that_average_metrics_are_the_users():
    def largest(contents, weighted_by):
        assert weighted_by == "num-examples"
        return MetricRecord({"most": max(c["metrics"][weighted_by] for c in contents)})

    strategy = FedAvg(
        requirements=0.9,
        batch_size=4,
        train_metrics_aggr_fn=largest,
        evaluate_metrics_aggr_fn=largest,
    )
    result = run(strategy, started(), rounds=1)
    assert dict(result.train_metrics_clientapp[1]) == {"most": 4}
    assert dict(result.evaluate_metrics_clientapp[1]) == {"most": 18}


def test_fractions_and_least_numbers_of_nodes_are_flowers():
    federation = started(FIVE)
    for fraction, least, count in ((0.5, 1, 2), (0.5, 4, 4), (0.1, 1, 1), (1.0, 1, 5)):
        nodes = nodes_of(federation)
        strategy = FedAvg(
            requirements=0.9,
            batch_size=4,
            fraction_train=fraction,
            min_train_nodes=least,
            fraction_evaluate=fraction,
            min_evaluate_nodes=least,
        )
        run(strategy, federation, nodes, rounds=4)
        per_round = (strategy.history.samples > 0).sum(axis=1)
        assert per_round.tolist() == [count] * 4
        assert np.isfinite(strategy.history.accuracy).sum(axis=1).tolist() == [count] * 4


def test_a_fraction_of_zero_skips_training_or_evaluation():
    federation = started()
    strategy = FedAvg(requirements=0.01, fraction_train=0.0)
    result = run(strategy, federation, rounds=2)
    assert strategy.history.samples.sum() == 0
    assert strategy.history.satisfied.all()
    assert result.train_metrics_clientapp == {}
    for name, array in result.arrays.items():
        assert_array_equal(array.numpy(), federation.weights[name])
    strategy = FedAvg(requirements=0.01, fraction_evaluate=0.0)
    result = run(strategy, federation, rounds=2)
    assert np.isnan(strategy.history.accuracy).all()
    assert result.evaluate_metrics_clientapp == {}
    with pytest.raises(InputError, match="needs the clients' accuracies"):
        MwFed(requirements=0.9, fraction_evaluate=0.0)


def global_state(seed=None):
    """Give what everybody's random numbers come from, after seeding it if asked to."""
    if seed is not None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - to see whether it matters.
    return random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002


def selection(nodes, federation, seed):
    strategy = FedAvg(requirements=0.9, batch_size=4, seed=seed, fraction_train=0.4)
    run(strategy, federation, nodes, rounds=6)
    return [tuple(np.flatnonzero(row)) for row in strategy.history.samples]


def test_who_is_selected_goes_by_the_seed_alone():
    federation = started(FIVE)
    before = global_state(seed=1)
    first = selection(nodes_of(federation), federation, 3)
    assert global_state() == before
    global_state(seed=2)
    other_ids = nodes_of(federation, first=9_000)[::-1]
    other_ids[0].node_id = 2
    assert selection(other_ids, federation, 3) == first
    assert selection(nodes_of(federation), federation, 4) != first
    assert len(set(first)) > 1


def test_a_strategy_can_be_started_twice():
    federation = started()
    strategy = MwFed(requirements=requirements_of(federation), batch_size=4, form="pooled")
    nodes = nodes_of(federation)
    tampering(nodes[0], "train", lambda content: content.clear(), rounds=[2])
    run(strategy, federation, nodes, rounds=3)
    first = strategy.history
    assert len(strategy.remarks) == 1
    run(strategy, federation, rounds=2)
    again = MwFed(requirements=requirements_of(federation), batch_size=4, form="pooled")
    run(again, federation, rounds=2)
    assert len(first.samples) == 3
    assert strategy.remarks == []
    assert strategy.history.algorithm == again.history.algorithm
    assert_array_equal(strategy.history.accuracy, again.history.accuracy)
    assert_array_equal(strategy.history.unique, again.history.unique)
    for name, weight in again.history.weights.items():
        assert_array_equal(strategy.history.weights[name], weight)


class Halving(FedAvg):
    """As Flower's documentation shows it: change the config, then do as before."""

    def configure_train(self, server_round, arrays, config, grid):
        config["decay"] = 0.5**server_round
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round, replies):
        arrays, metrics = super().aggregate_train(server_round, replies)
        self.seen.append((server_round, len(arrays)))
        return arrays, metrics

    def configure_evaluate(self, server_round, arrays, config, grid):
        messages = list(super().configure_evaluate(server_round, arrays, config, grid))
        return messages[:2]

    def aggregate_evaluate(self, server_round, replies):
        metrics = super().aggregate_evaluate(server_round, list(replies))
        self.seen.append((server_round, metrics["accuracy"]))
        return metrics


def test_a_subclass_may_override_what_flowers_documentation_overrides():
    federation = started()
    nodes = nodes_of(federation)
    strategy = Halving(requirements=0.9, batch_size=4)
    strategy.seen = []
    run(strategy, federation, nodes, rounds=2)
    assert asked(nodes, "train", "decay")["client 2"] == [0.5, 0.25]
    assert [n for n, _ in strategy.seen] == [1, 1, 2, 2]
    # What a subclass does not send is not answered.
    assert [r.text for r in strategy.remarks] == [
        f"client 2 is left out of round {n}: no reply came" for n in (1, 2)
    ]
    assert np.isnan(strategy.history.accuracy[:, 2]).all()


def test_it_is_a_strategy_of_flowers_with_its_keyword_arguments():
    given = {
        "fraction_train": 0.7,
        "fraction_evaluate": 0.6,
        "min_train_nodes": 3,
        "min_evaluate_nodes": 4,
        "min_available_nodes": 5,
        "weighted_by_key": "w",
        "arrayrecord_key": "a",
        "configrecord_key": "c",
    }
    for strategy in (
        FedAvg(requirements=0.9, **given),
        MwFed(requirements=0.9, factor=3.0, **given),
        PlannedFedAvg({"a": 1}, requirements=0.9, **given),
    ):
        assert isinstance(strategy, flwr_strategy.FedAvg)
        assert {key: getattr(strategy, key) for key in given} == given
    with pytest.raises(TypeError, match="fraction_fit"):
        FedAvg(requirements=0.9, fraction_fit=0.5)


def test_rounds_after_the_end_do_nothing():
    federation = started()
    nodes = nodes_of(federation)
    evaluated = []
    strategy = FedAvg(requirements=0.01, stop_at_goal=2)
    run(strategy, federation, nodes, rounds=9, evaluate_fn=lambda n, _: evaluated.append(n))
    assert strategy.stopped == "every client reaches its goal"
    assert len(strategy.history.samples) == 2
    assert asked(nodes, "train", "server-round")["client 0"] == [1, 2]
    assert evaluated == [0, 1, 2]


def test_goals_must_be_met_so_often_in_a_row():
    federation = started()
    nodes = nodes_of(federation)
    marks = iter([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])

    def mark(message, reply):
        if message.metadata.message_type == "evaluate":
            reply.content["metrics"]["accuracy"] = next(marks)
        return reply

    nodes[1].tamper = mark
    strategy = FedAvg(requirements=0.01, stop_at_goal=3)
    run(strategy, federation, nodes, rounds=7)
    assert strategy.history.accuracy[:, 1].tolist() == [1, 1, 0, 1, 1, 1]


def test_goals_that_are_met_in_the_last_round_end_nothing():
    strategy = FedAvg(requirements=0.01, stop_at_goal=2)
    run(strategy, started(), rounds=2)
    assert strategy.history.satisfied.all()
    assert strategy.stopped is None
    strategy = FedAvg(requirements=0.01)
    run(strategy, started(), rounds=3)
    assert len(strategy.history.samples) == 3


def test_accuracies_are_measured_every_so_many_rounds_and_in_the_last():
    strategy = FedAvg(requirements=0.01, evaluate_every=3, stop_at_goal=2)
    run(strategy, started(), rounds=10)
    measured = np.isfinite(strategy.history.accuracy).all(axis=1)
    assert measured.tolist() == [False, False, True] * 2
    strategy, nodes = FedAvg(requirements=0.01, evaluate_every=3), nodes_of(started())
    run(strategy, started(), nodes, rounds=4)
    measured = np.isfinite(strategy.history.accuracy).all(axis=1)
    assert measured.tolist() == [False, False, True, True]
    assert asked(nodes, "evaluate", "server-round")["client 0"] == [3, 4]


def test_one_client_and_one_round_will_do():
    federation = started((12,))
    one = dict.fromkeys(("min_available_nodes", "min_train_nodes", "min_evaluate_nodes"), 1)
    strategy = FedAvg(requirements=0.01, batch_size=4, **one)
    run(strategy, federation, rounds=1)
    assert strategy.history.samples.tolist() == [[4]]
    assert strategy.history.satisfied.tolist() == [True]
    with pytest.raises(InputError, match=r"at least 2 clients must take part, but .* name 1"):
        run(FedAvg(requirements={"client 0": 0.5}), federation)


def test_there_is_no_history_before_the_first_round():
    strategy = FedAvg(requirements=0.9)
    with pytest.raises(FedaccordError, match="start the strategy first"):
        _ = strategy.history
    with pytest.raises(NodesError):
        run(FedAvg(requirements=0.9, node_deadline=0), started(), [])
    grid = InProcessGrid(nodes_of(started()))
    strategy.configure_train(1, arrays_of(started()), ConfigRecord(), grid)
    with pytest.raises(FedaccordError, match="no round has been trained"):
        _ = strategy.history


@pytest.mark.parametrize("seed", [0, 2**63 - 1, np.int64(7)])
def test_any_seed_that_a_record_holds_will_do(seed):
    federation = started()
    strategy = MwFed(requirements=0.9, batch_size=4, seed=seed)
    nodes = nodes_of(federation)
    run(strategy, federation, nodes, rounds=1)
    assert asked(nodes, "train", "seed")["client 0"] == [seed]
    assert strategy.remarks == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 2**63}, "below 2\\*\\*63"),
        ({"seed": -1}, "zero or more"),
        ({"seed": 1.5}, "whole number"),
        ({"stop_at_goal": 0}, "stop_at_goal must be"),
        ({"stop_at_goal": True}, "stop_at_goal must be"),
        ({"node_deadline": float("nan")}, "number of seconds"),
        ({"node_deadline": -1}, "number of seconds"),
        ({"node_deadline": "60"}, "number of seconds"),
        ({"ask_for": ["raw-data"]}, "train-loss and label-counts; got 'raw-data'"),
        ({"requirements": 1.5}, "each client must be an accuracy"),
        ({"requirements": {"a": 0.5, "b": float("nan")}}, "requirement of b"),
        ({"requirements": {}}, "no client is named"),
        ({"form": "pooled", "local_batches": 2}, "a round with remote clients is one step"),
        ({"batch_size": 20_000_000}, "at most 10,000,000"),
        ({"algorithm": algorithms.FedAvg(), "batch_size": 8}, "batch_size is a setting"),
        ({"algorithm": algorithms.MwFed()}, "this strategy runs FedAvg; got MW-FED"),
    ],
)
def test_options_that_cannot_be_kept_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        FedAvg(**{"requirements": 0.9, **options})


def test_a_strategy_of_any_algorithm_must_be_given_one():
    with pytest.raises(InputError, match="say which algorithm"):
        AlgorithmStrategy(requirements=0.9)
    with pytest.raises(InputError, match="learn alone need no server"):
        AlgorithmStrategy(requirements=0.9, algorithm=algorithms.Solo())


def test_the_history_is_in_its_file_after_each_round(tmp_path):
    file = tmp_path / "history.csv"
    lines = []
    strategy = FedAvg(requirements=0.9, history_file=file, batch_size=4)

    def look(n, arrays):
        lines.append(len(file.read_text().splitlines()) if file.exists() else 0)

    run(strategy, started(), rounds=3, evaluate_fn=look)
    assert lines == [0, 4, 7, 10]
    assert file.read_text().splitlines()[0] == "round,client,samples,unique,loss,accuracy"
    assert file.read_text().splitlines()[4].startswith("2,client 0,4,8,,")
    assert list(tmp_path.iterdir()) == [file]


def test_a_history_that_cannot_be_written_does_not_end_training(tmp_path):
    with pytest.raises(InputError, match=r"the folder of .* is not there"):
        run(FedAvg(requirements=0.9, history_file=tmp_path / "no" / "history.csv"), started())
    file = tmp_path / "history.csv"

    def in_the_way():
        file.unlink()
        file.mkdir()

    strategy = FedAvg(requirements=0.9, history_file=file)
    run(strategy, started(), rounds=2, evaluate_fn=after(1, in_the_way))
    assert len(strategy.history.samples) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [("folder", "Is a directory"), ("pipe", "not a file"), ("x" * 300, "too long"), ("\0", "null")],
)
def test_a_history_that_could_not_be_written_is_refused_before_training(tmp_path, name, words):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    nodes = nodes_of(started())
    with pytest.raises(InputError, match=f"the history cannot be written to .*{words}"):
        run(FedAvg(requirements=0.9, history_file=tmp_path / name), started(), nodes)
    assert list(heard(nodes, "train")) == []


def test_an_old_history_is_left_alone_until_the_first_round_is_over(tmp_path):
    file = tmp_path / "history.csv"
    file.write_text("old")
    seen = []
    strategy = FedAvg(requirements=0.9, history_file=file)
    run(strategy, started(), rounds=1, evaluate_fn=lambda n, arrays: seen.append(file.read_text()))
    assert seen[0] == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_server_needs_no_torch_to_average_models():
    code = (
        "import sys, numpy as np\n"
        "import fedaccord.federation.flower.server, fedaccord.federation.flower as flower\n"
        "flower.MwFed(requirements=0.9), flower.drawn_points\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().split() == ["False"]


def test_models_are_averaged_as_flower_averages_them():
    federation = started()
    ours, nodes = FedAvg(requirements=0.9, batch_size=4), nodes_of(federation)
    sizes = iter([1, 3, 2])

    def less(message, reply):
        if message.metadata.message_type == "train":
            reply.content["metrics"]["num-examples"] = next(sizes)
            replies.append(reply)
        return reply

    replies = []
    for node in nodes:
        node.tamper = less
    result = run(ours, federation, nodes, rounds=1)
    theirs, _ = flwr_strategy.FedAvg().aggregate_train(1, replies)
    for name, array in theirs.items():
        assert_allclose(result.arrays[name].numpy(), array.numpy(), rtol=1e-12)


def test_what_happened_is_kept_when_a_function_of_the_users_fails(tmp_path):
    federation = started()
    file = tmp_path / "history.csv"

    def fail():
        raise ZeroDivisionError

    strategy = FedAvg(requirements=0.9, batch_size=4, history_file=file)
    strategy.evaluate_metrics_aggr_fn = lambda contents, key: fail()
    with pytest.raises(ZeroDivisionError):
        run(strategy, federation, nodes_of(federation), rounds=3)
    assert file.read_text().count("\n") == 1 + 3


def test_one_client_that_is_asked_alone_cannot_end_training_with_a_nan():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[0], "train", put(lambda array: np.full_like(array, np.nan)))
    others = dict(zip(federation.names[1:], (0, 0), strict=True))
    plan = {federation.names[0]: 10, **others}
    strategy = FedAvg(requirements=requirements_of(federation), batch_size=4, plan=plan)
    run(strategy, federation, nodes, rounds=2)
    assert strategy.stopped is None
    assert not strategy.history.diverged
