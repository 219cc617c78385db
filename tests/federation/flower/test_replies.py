"""A reply that cannot be used is dropped and its client named; the others' model is not touched."""

import io
import math

import numpy as np
import pytest
from federation.flower.in_process import SUPERLINK
from federation.flower.runs import nodes_of, put, run, say, started, tampering
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from numpy.testing import assert_allclose, assert_array_equal
from torch.utils.data import TensorDataset

from fedaccord.errors import FedaccordError
from fedaccord.federation.flower import FedAvg, MwFed, client_app
from fedaccord.federation.flower.replies import match_replies

BAD = "client 1"


def npy(header: bytes, data: bytes = b"") -> bytes:
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + data


def raw(data: bytes):
    return lambda array: Array("float64", array.shape, "numpy.ndarray", data)


def huge(array):
    """Say that there are 2**60 values, for which nobody has room."""
    return raw(npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % 2**60))(array)


def pickled(array):
    file = io.BytesIO()
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    return raw(file.getvalue())(array)


def longer(array):
    return raw(Array(array).data + b"\0" * 8)(array)


def zipped(array):
    file = io.BytesIO()
    np.savez(file, array=array)
    return raw(file.getvalue())(array)


def without_an_array(content):
    content["arrays"] = ArrayRecord(dict(list(content["arrays"].items())[1:]))


def with_an_array_more(content):
    content["arrays"]["\x1b[31mmore\n"] = Array(np.zeros(3))


def copied(kind):
    def change(content):
        content["again"] = type(content[kind])(dict(content[kind]))

    return change


FAULTS = {
    "NaN": (put(lambda a: np.full_like(a, np.nan)), "not finite"),
    "one infinity": (put(lambda a: np.where(np.arange(a.size) == 3, np.inf, a.ravel()).reshape(
        a.shape)), "not finite"),
    "NaN in a bias": (put(lambda a: a * np.nan, place=3), "not finite"),
    "fewer columns": (put(lambda a: a[:, :-1]), "has shape"),
    "as many values in another shape": (put(lambda a: a.reshape(-1)), "has shape"),
    "float32": (put(lambda a: a.astype(np.float32)), "of <f4 instead of"),
    "whole numbers": (put(lambda a: a.astype(np.int64)), "of <i8 instead of"),
    "complex": (put(lambda a: a.astype(complex)), "of <c16 instead of"),
    "big-endian": (put(lambda a: a.astype(">f8")), "of >f8 instead of"),
    "no bytes": (put(raw(b"")), "cannot be read"),
    "text": (put(raw(b"model")), "cannot be read"),
    "cut short": (put(lambda a: raw(Array(a).data[:-1])(a)), "cut short"),
    "longer than it says": (put(longer), "cut short, or has more"),
    "a header that no memory has room for": (put(huge), "has shape"),
    "a header that is no header": (put(raw(npy(b"{'descr': ((((("))), "cannot be read"),
    "a pickle": (put(pickled), "has shape"),
    "a zip file": (put(zipped), "cannot be read"),
    "a missing array": (without_an_array, "on one side only"),
    "an array too many": (with_an_array_more, "[31mmore is on one side only"),
    "no arrays": (lambda content: content.pop("arrays"), "0 records of arrays"),
    "two records of arrays": (copied("arrays"), "2 records of arrays"),
    "no metrics": (lambda content: content.pop("metrics"), "0 records of metrics"),
    "two records of metrics": (copied("metrics"), "2 records of metrics"),
    "nothing": (lambda content: content.clear(), "0 records of metrics"),
    "no count": (say(num_examples=None), "does not say its num-examples"),
    "a count of NaN": (say(num_examples=math.nan), "its num-examples is nan"),
    "an infinite count": (say(num_examples=math.inf), "its num-examples is inf"),
    "a negative count": (say(num_examples=-4), "its num-examples is -4"),
    "a count of zero": (say(num_examples=0), "its num-examples is 0"),
    "half a sample": (say(num_examples=3.5), "its num-examples is 3.5"),
    "a count of 2**60": (say(num_examples=2**60), "which cannot be"),
    "a list of counts": (say(num_examples=[4] * 10_000), "and not one number"),
    "a loss of NaN": (say(train_loss=math.nan), "its train-loss is nan"),
    "a list of losses": (say(train_loss=[1.0]), "and not one number"),
}  # fmt: skip


def without_the_bad_one(federation, form, rounds):
    """Give the model that the others alone make of a round."""
    nodes = nodes_of(federation)
    nodes[1].tamper = lambda message, reply: (
        None if message.metadata.message_type == "train" else reply
    )
    strategy = MwFed(requirements=0.999, batch_size=4, form=form)
    run(strategy, federation, nodes, rounds=rounds)
    return strategy.history.weights


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_model_is_dropped_and_its_client_named(fault, form, caplog):
    change, words = FAULTS[fault]
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[1], "train", change, rounds=[1])
    strategy = MwFed(requirements=0.999, batch_size=4, form=form, ask_for=["train-loss"])
    run(strategy, federation, nodes, rounds=1)
    (remark,) = strategy.remarks
    assert (remark.round, remark.client) == (1, BAD)
    assert remark.text.startswith(f"{BAD} is left out of round 1: ")
    assert words in remark.text
    assert remark.text.isprintable()
    assert len(remark.text) < 500
    assert remark.text in caplog.messages
    history = strategy.history
    assert history.samples.tolist() == [[4, 0, 4]]
    assert history.unique.tolist() == [[4, 0, 4]]
    assert np.isfinite(history.accuracy).all()
    for name, weight in without_the_bad_one(federation, form, rounds=1).items():
        assert_array_equal(history.weights[name], weight)


def test_the_others_alone_make_another_model_than_all():
    federation = started()
    strategy = MwFed(requirements=0.999, batch_size=4)
    run(strategy, federation, rounds=1)
    other = without_the_bad_one(federation, "local", rounds=1)
    assert any(not np.allclose(other[n], w) for n, w in strategy.history.weights.items())


def test_who_was_dropped_draws_the_same_samples_again():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[1], "train", say(num_examples=-1), rounds=[1, 2])
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=4)
    drawn = [m.content["config"]["drawn"] for m in nodes[1].heard if "drawn" in m.content["config"]]
    assert drawn == [0, 0, 0, 4]
    assert strategy.history.unique[:, 1].tolist() == [0, 0, 4, 8]


def test_more_than_was_allotted_is_not_believed():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[1], "train", say(num_examples=400))
    strategy = FedAvg(requirements=0.9, batch_size=4, ask_for=["train-loss"])
    result = run(strategy, federation, nodes, rounds=2)
    honest = FedAvg(requirements=0.9, batch_size=4, ask_for=["train-loss"])
    expected = run(honest, federation, rounds=2)
    assert result.train_metrics_clientapp == expected.train_metrics_clientapp
    for name, array in expected.arrays.items():
        assert_array_equal(result.arrays[name].numpy(), array.numpy())
    assert_array_equal(strategy.history.samples, honest.history.samples)
    assert [remark.text for remark in strategy.remarks] == [
        f"{BAD} says it used 400 samples in round {n} and was allotted 4; it counts as 4"
        for n in (1, 2)
    ]


def test_fewer_than_were_allotted_weigh_less_and_the_rest_is_drawn_next():
    federation = started()
    nodes = nodes_of(federation)
    models = {}

    def keep(message, reply):
        if message.metadata.message_type == "train":
            models[message.metadata.dst_node_id] = reply.content["arrays"]
        return reply

    for node in nodes:
        node.tamper = keep
    tampering(nodes[1], "train", say(num_examples=1))
    strategy = FedAvg(requirements=0.9, batch_size=4)
    inner = nodes[1].tamper
    nodes[1].tamper = lambda message, reply: keep(message, inner(message, reply))
    result = run(strategy, federation, nodes, rounds=2)
    assert strategy.remarks == []
    for name, array in result.arrays.items():
        parts = [models[100 + i][name].numpy() for i in range(3)]
        mean = (4 * parts[0] + 1 * parts[1] + 4 * parts[2]) / 9
        assert_allclose(array.numpy(), mean, rtol=1e-12)
    drawn = [m.content["config"]["drawn"] for m in nodes[1].heard if "drawn" in m.content["config"]]
    assert drawn == [0, 1]
    assert strategy.history.samples.tolist() == [[4, 1, 4]] * 2
    assert strategy.history.unique[:, 1].tolist() == [1, 2]


MEASURES = {
    "NaN": (say(accuracy=math.nan), "its accuracy is nan"),
    "too accurate": (say(accuracy=1.5), "not between 0 and 1"),
    "negative": (say(accuracy=-0.1), "not between 0 and 1"),
    "none": (say(accuracy=None), "does not say its accuracy"),
    "a list": (say(accuracy=[0.5]), "not one number"),
    "no points": (say(num_examples=0), "it has no validation samples"),
    "no metrics": (lambda content: content.clear(), "0 records"),
}


@pytest.mark.parametrize("fault", MEASURES)
def test_a_bad_accuracy_is_dropped_and_moves_no_weight(fault):
    change, words = MEASURES[fault]
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[1], "evaluate", change, rounds=[2])
    strategy = MwFed(requirements=0.999, batch_size=4)
    result = run(strategy, federation, nodes, rounds=3)
    (remark,) = strategy.remarks
    assert (remark.round, remark.client) == (2, BAD)
    assert words in remark.text
    once = math.log(2)
    assert strategy.weights == {
        "client 0": pytest.approx(3 * once),
        BAD: pytest.approx(2 * once),
        "client 2": pytest.approx(3 * once),
    }
    accuracy = strategy.history.accuracy
    assert np.isnan(accuracy[1, 1])
    assert np.isfinite(accuracy).sum() == 8
    found = result.evaluate_metrics_clientapp[2]["accuracy"]
    assert found == pytest.approx(accuracy[1, [0, 2]].mean())


def test_a_bad_accuracy_of_the_goal_test_moves_no_weight():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[1], "evaluate", say(goal_accuracy=math.nan), rounds=[1])
    strategy = MwFed(requirements=0.999, batch_size=4, goal_points=5, evaluate_every=9)
    run(strategy, federation, nodes, rounds=2)
    assert strategy.weights[BAD] == pytest.approx(math.log(2))
    assert strategy.weights["client 0"] == pytest.approx(2 * math.log(2))
    assert [(r.round, r.client) for r in strategy.remarks] == [(1, BAD)]


def test_replies_that_are_all_bad_leave_the_model_and_training_goes_on():
    federation = started()
    nodes = nodes_of(federation)
    for node in nodes:
        tampering(node, "train", lambda content: content.clear(), rounds=[1, 2])
    strategy = FedAvg(requirements=0.9, batch_size=4)
    result = run(strategy, federation, nodes, rounds=2)
    assert len(strategy.remarks) == 6
    assert result.arrays.keys() == federation.weights.keys()
    for name, array in result.arrays.items():
        assert_array_equal(array.numpy(), federation.weights[name])
    run(strategy, federation, nodes, rounds=3)
    assert strategy.history.samples.tolist() == [[0, 0, 0], [0, 0, 0], [4, 4, 4]]
    assert strategy.stopped is None


def test_accuracies_that_are_all_bad_meet_no_goal():
    federation = started()
    nodes = nodes_of(federation)
    for node in nodes:
        tampering(node, "evaluate", lambda content: content.clear(), rounds=[1, 2])
    strategy = FedAvg(requirements=0.01, batch_size=4, stop_at_goal=1)
    run(strategy, federation, nodes, rounds=5)
    assert len(strategy.remarks) == 6
    assert len(strategy.history.samples) == 3
    assert np.isnan(strategy.history.accuracy[:2]).all()


def test_training_ends_where_everybodys_model_is_not_finite():
    federation = started()
    nodes = nodes_of(federation)
    for node in nodes:
        tampering(node, "train", put(lambda a: a * np.nan), rounds=[2])
    strategy = FedAvg(requirements=0.9, batch_size=4)
    result = run(strategy, federation, nodes, rounds=5)
    assert strategy.stopped.startswith("training diverged: the clients' replies are not finite")
    assert strategy.history.diverged
    assert len(strategy.history.samples) == 2
    assert strategy.history.samples[1].tolist() == [4, 4, 4]
    assert all(np.isfinite(array.numpy()).all() for array in result.arrays.values())


def test_one_client_cannot_make_training_look_diverged_when_the_others_are_away():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[0], "train", put(lambda a: a * np.nan), rounds=[1])
    for node in nodes[1:]:
        tampering(node, "train", lambda content: content.clear(), rounds=[1])
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=3)
    assert strategy.stopped is None
    assert not strategy.history.diverged
    assert strategy.history.samples.tolist() == [[0, 0, 0], [4, 4, 4], [4, 4, 4]]


def test_training_ends_where_nobodys_accuracy_can_be_measured():
    federation = started()
    nodes = nodes_of(federation)
    for node in nodes:
        tampering(node, "evaluate", say(accuracy=math.nan), rounds=[2])
    strategy = FedAvg(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=5)
    assert strategy.stopped.startswith("training diverged: no accuracy can be measured")
    assert strategy.history.diverged
    assert len(strategy.history.samples) == 2


def test_an_exacting_run_ends_with_the_first_bad_reply():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[0], "train", put(lambda a: a * np.nan), rounds=[2])
    tampering(nodes[1], "train", say(num_examples=-1), rounds=[2])
    strategy = FedAvg(requirements=0.9, batch_size=4, exacting=True)
    with pytest.raises(FedaccordError, match=f"^{BAD} is left out of round 2: its num-examples"):
        run(strategy, federation, nodes, rounds=3)
    assert len(strategy.history.samples) == 1
    nodes = nodes_of(federation)
    tampering(nodes[0], "train", put(lambda a: a * np.nan), rounds=[2])
    run(strategy, federation, nodes, rounds=3)
    assert strategy.history.diverged


def test_metrics_that_not_all_have_alike_are_left_out():
    federation = started()
    nodes = nodes_of(federation)
    tampering(nodes[0], "train", say(extra=1.0, shared=2.0, parts=[1.0, 2.0], mixed=1.0))
    tampering(nodes[1], "train", say(shared=5.0, parts=[1.0], mixed=[1.0]))
    tampering(nodes[2], "train", say(shared=8.0, parts=[1.0, 2.0], mixed=1.0))
    strategy = FedAvg(requirements=0.9, batch_size=4)
    result = run(strategy, federation, nodes, rounds=1)
    assert dict(result.train_metrics_clientapp[1]) == {"shared": pytest.approx(5.0)}
    assert strategy.history.samples.tolist() == [[4, 4, 4]]


# Whose a reply is.


def question(node: int, number: str) -> Message:
    message = Message(RecordDict(), dst_node_id=node, message_type="train")
    message.metadata.__dict__["_message_id"] = number
    return message


def answer(message: Message, node: int | None = None) -> Message:
    reply = Message(RecordDict({"metrics": MetricRecord()}), reply_to=message)
    if node is not None:
        reply.metadata.__dict__["_src_node_id"] = node
    return reply


def test_a_reply_is_known_by_the_message_that_it_answers():
    asked = {"a": question(7, "x"), "b": question(8, "y")}
    failed = Message(Error(code=5, reason="gone"), reply_to=asked["b"])
    failed.metadata.__dict__["_src_node_id"] = SUPERLINK
    good = answer(asked["a"])
    assert match_replies([failed, good], asked) == ({"b": failed, "a": good}, [])


def test_replies_of_nobody_second_ones_and_those_for_others_are_odd():
    asked = {"a": question(7, "x"), "b": question(8, "y")}
    stranger = answer(question(9, "z"))
    first, second = answer(asked["a"]), answer(asked["a"])
    forged = answer(asked["b"], node=7)
    found, odd = match_replies([stranger, first, second, forged], asked)
    assert found == {"a": first}
    assert odd == [
        ("node 9", "replied without being asked; the reply is dropped"),
        ("a", "replied twice; the second reply is dropped"),
        ("node 7", "replied in place of b; the reply is dropped"),
    ]


def test_a_message_that_was_not_sent_has_no_reply():
    unsent = Message(RecordDict(), dst_node_id=7, message_type="train")
    stray = Message(Error(code=5, reason="gone"), reply_to=question(9, ""))
    found, odd = match_replies([stray], {"a": unsent})
    assert found == {}
    assert [sender for sender, _ in odd] == ["node 9"]


def test_odd_replies_are_remarked_on(caplog):
    federation = started()
    nodes = nodes_of(federation)

    class Doubling(FedAvg):
        def aggregate_train(self, server_round, replies):
            replies = list(replies)
            return super().aggregate_train(
                server_round, [*replies, replies[0], answer(question(77, "z"))]
            )

    strategy = Doubling(requirements=0.9, batch_size=4)
    run(strategy, federation, nodes, rounds=1)
    assert [remark.text for remark in strategy.remarks] == [
        "client 0 replied twice; the second reply is dropped (round 1)",
        "node 77 replied without being asked; the reply is dropped (round 1)",
    ]
    assert strategy.remarks[0].text in caplog.messages
    assert strategy.history.samples.tolist() == [[4, 4, 4]]


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 9.0), ("adam", 0.05)])
def test_numbers_that_make_the_model_infinite_leave_it_as_it_was(optimizer, rate):
    federation = started()
    options = {"optimizer": optimizer, "learning_rate": rate, "form": "pooled", "batch_size": 4}
    nodes = nodes_of(federation)
    tampering(nodes[1], "train", put(nearly_infinite), rounds=[2])
    strategy = FedAvg(requirements=0.99, **options)
    result = run(strategy, federation, nodes, rounds=3)
    (remark,) = strategy.remarks
    assert (remark.round, remark.client) == (2, BAD)
    assert "more than any other client" in remark.text
    assert strategy.stopped is None
    # What was drawn for nothing is drawn again, so it is as if that round had not been.
    assert strategy.history.samples.tolist() == [[4, 4, 4], [0, 0, 0], [4, 4, 4]]
    honest = run(FedAvg(requirements=0.99, **options), federation, rounds=2)
    for name, array in honest.arrays.items():
        assert_array_equal(result.arrays[name].numpy(), array.numpy())


def nearly_infinite(array):
    return np.full_like(array, 0.97 * np.finfo(array.dtype).max)


@pytest.mark.parametrize("goal_points", [None, 4])
def test_who_has_no_validation_points_is_told_so(goal_points):
    federation = started()
    nodes = nodes_of(federation)
    client = federation.clients[1]
    nodes[1].app = client_app(
        federation.model,
        lambda context: (
            TensorDataset(client.inputs, client.labels),
            TensorDataset(client.validation_inputs[:0], client.validation_labels[:0]),
        ),
        name=lambda context: BAD,
    )
    strategy = MwFed(requirements=0.9, batch_size=4, goal_points=goal_points)
    run(strategy, federation, nodes, rounds=1)
    assert [remark.text for remark in strategy.remarks] == [
        f"{BAD} is left out of round 1: it has no validation samples; give it some"
    ]
