"""Under Flower an algorithm does, round by round, what it does in the local loop."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from federation.flower.runs import (
    LOSS,
    arrays_of,
    nodes_of,
    requirements_of,
    run,
    started,
    with_weights,
)
from federation.test_goals import make_federation, make_numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fedaccord.errors import FedaccordError
from fedaccord.federation import (
    Client,
    Earned,
    FedAvg,
    Federation,
    HoldBack,
    MwFed,
    Pledged,
    Release,
    RelievedMwFed,
    train,
)
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.flower import AlgorithmStrategy
from fedaccord.federation.models.networks import SmallNet

SEED = 5


def pictures():
    """Three clients with noisy pictures of three classes, and a network with dropout."""
    random = np.random.default_rng(3)
    shapes = random.normal(size=(3, 6, 6)).astype(np.float32)

    def some(count):
        labels = random.integers(3, size=count)
        noise = random.normal(scale=1.5, size=(count, 6, 6)).astype(np.float32)
        return shapes[labels] + noise, labels

    clients = [
        Client(f"clinic {i}", some(20 + 5 * i), some(30), requirement=0.5 + 0.2 * i)
        for i in range(3)
    ]
    return with_weights(Federation(clients, lambda: SmallNet((6, 6), 3)))


def under_flower(federation, algorithm, *, seed=SEED, plan=None, **options):
    strategy = AlgorithmStrategy(
        requirements=requirements_of(federation),
        algorithm=algorithm,
        plan=None if plan is None else dict(zip(federation.names, plan, strict=True)),
        seed=seed,
        ask_for=(LOSS,),
        exacting=True,
        min_available_nodes=1,
        min_train_nodes=1,
        min_evaluate_nodes=1,
        **options,
    )
    # Nodes in another order, with ids of which the order is another still.
    nodes = nodes_of(federation)[::-1]
    for node, other in zip(nodes, (7, 2**63 + 5, 31, 4, 90), strict=False):
        node.node_id = other
    result = run(strategy, federation, nodes, rounds=algorithm.rounds)
    return strategy, result


def assert_agree(federation, algorithm, *, plan=None, seed=SEED, atol=1e-9):
    local = train(federation, algorithm, contributions=plan, seed=seed)
    strategy, _ = under_flower(federation, algorithm, plan=plan, seed=seed)
    found = strategy.history
    assert found.clients == local.clients
    assert_array_equal(found.samples, local.samples)
    assert_array_equal(found.unique, local.unique)
    assert_array_equal(found.contributions, local.contributions)
    assert_array_equal(found.requirements, local.requirements)
    assert_array_equal(np.isnan(found.accuracy), np.isnan(local.accuracy))
    # One point of so many validation points may be told otherwise after rounding.
    assert_allclose(found.accuracy, local.accuracy, atol=atol)
    assert_allclose(found.loss, local.loss, rtol=2e-5, atol=1e-6)
    assert found.diverged == local.diverged
    assert found.algorithm == local.algorithm
    if not local.diverged:
        for name, weight in local.weights.items():
            assert_allclose(found.weights[name], weight, rtol=1e-4, atol=1e-5)
    assert list(found.checkpoints) == list(local.checkpoints)
    assert found.checkpoints == strategy.checkpoints
    for client, weights in local.checkpoints.items():
        for name, weight in weights.items():
            assert_allclose(found.checkpoints[client][name], weight, rtol=1e-4, atol=1e-5)
    return local, strategy


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("kind", [FedAvg, MwFed])
def test_rounds_agree_with_the_local_loop(kind, form, optimizer):
    algorithm = kind(
        rounds=8, batch_size=5, learning_rate=0.03, form=form, optimizer=optimizer, evaluate_every=3
    )
    local, _ = assert_agree(started(requirement=0.9), algorithm, plan=[30, 10, 40])
    assert np.isfinite(local.accuracy[-1]).all()


@pytest.mark.parametrize("points", [None, 9])
def test_goals_in_other_measures_agree_with_the_local_loop(points):
    federation = with_weights(make_federation(scored=False))
    algorithm = MwFed(
        rounds=6, batch_size=5, learning_rate=0.03, factor=2.0, goal_points=points, evaluate_every=2
    )
    local, _ = assert_agree(federation, algorithm, plan=[30, 10, 20], atol=1e-6)
    assert len(set(local.samples[-1].tolist())) > 1


@pytest.mark.parametrize("kind", ["amounts", "times"])
def test_numbers_agree_with_the_local_loop(kind):
    federation = with_weights(make_numbers(kind))
    algorithm = FedAvg(rounds=5, batch_size=8, learning_rate=0.03)
    # These measures have no steps that would hide rounding.
    assert_agree(federation, algorithm, plan=[30, 10, 20], atol=1e-6)


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_weights_that_part_give_the_same_allotments(form):
    federation = started((30, 24, 40))
    goals = (0.999, 0.05, 0.05)
    clients = [
        Client(c.name, (c.inputs, c.labels), (c.validation_inputs, c.validation_labels), goal)
        for c, goal in zip(federation.clients, goals, strict=True)
    ]
    federation = Federation(clients, federation.model, weights=federation.weights)
    algorithm = MwFed(rounds=8, batch_size=4, factor=3.0, form=form)
    local, strategy = assert_agree(federation, algorithm)
    assert len(set(local.samples[-1])) > 1
    assert strategy.weights["client 0"] == pytest.approx(8 * np.log(3))
    assert strategy.weights["client 1"] == 0


@pytest.mark.parametrize(
    "algorithm",
    [
        MwFed(rounds=6, batch_size=4, goal_points=7, evaluate_every=4, form="local"),
        MwFed(rounds=6, batch_size=4, goal_points=7, evaluate_every=4, form="pooled"),
        MwFed(rounds=6, batch_size=4, counts="printed", local_batches=3, form="local"),
        FedAvg(rounds=4, batch_size=4, local_batches=3, form="local"),
    ],
    ids=["goal points, local", "goal points, pooled", "printed counts", "local batches"],
)
def test_all_settings_agree_with_the_local_loop(algorithm):
    assert_agree(started(requirement=0.8), algorithm)


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("kind", [FedAvg, MwFed])
def test_a_client_that_brings_nothing_agrees(kind, form):
    local, _ = assert_agree(started(), kind(rounds=4, batch_size=4, form=form), plan=[30, 0, 9])
    assert local.samples[:, 1].sum() == 0
    assert np.isfinite(local.accuracy[-1, 1])


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("kind", [FedAvg, MwFed])
def test_a_network_with_dropout_agrees(kind, form):
    assert_agree(pictures(), kind(rounds=5, batch_size=6, learning_rate=0.01, form=form))


@dataclass(frozen=True, kw_only=True)
class Headstrong(Algorithm):
    """Draws by place and round, forgets the accuracies but for their order, and takes medians."""

    step: int = 2

    def init(self, clients):
        return {"round": 0, "order": np.arange(clients)}

    def allot(self, state):
        return 3 + self.step * state["order"] + state["round"]

    def weights(self, state, accuracies, requirements):
        order = np.argsort(np.argsort(accuracies - requirements, kind="stable"), kind="stable")
        return {"round": state["round"] + 1, "order": order}

    def aggregate(self, updates, counts):
        assert [type(update) for update in updates] == [torch.Tensor] * len(counts)
        # The heaviest counts twice.
        return torch.stack([*updates, updates[int(np.argmax(counts))]]).mean(dim=0)


@pytest.mark.parametrize("kind", [FedAvg, Headstrong])
def test_a_network_with_running_means_agrees_in_the_local_form(kind):
    def network():
        layers = [torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3)]
        return torch.nn.Sequential(*layers).double()

    federation = started(model=network)
    algorithm = kind(rounds=3, batch_size=64, form="local", optimizer="sgd")
    local = train(federation, algorithm, seed=SEED)
    strategy, _ = under_flower(federation, algorithm)
    assert_allclose(strategy.history.accuracy, local.accuracy, atol=1e-9)
    # How many batches were seen is no mean: the local loop lets it run on, here it stays.
    for name, weight in local.weights.items():
        counter = name.endswith("num_batches_tracked")
        expected = federation.weights[name] if counter else weight
        assert_allclose(strategy.history.weights[name], expected, rtol=1e-6)


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_an_algorithm_of_ones_own_with_its_own_mean_and_weights_agrees(form):
    algorithm = Headstrong(rounds=5, batch_size=4, form=form, learning_rate=0.05)
    local, strategy = assert_agree(started(), algorithm)
    assert len({tuple(row) for row in local.samples}) > 3
    with pytest.raises(FedaccordError, match="not one weight per client"):
        _ = strategy.weights


@pytest.mark.parametrize(
    ("form", "ends", "plan"),
    [
        ("local", "first", [5, 24, 40]),
        ("pooled", "first", [20, 0, 40]),
        ("local", "each", [20, 0, 40]),
        ("pooled", "each", [5, 24, 40]),
        ("pooled", "first", None),
    ],
)
def test_pledges_are_used_up_in_the_same_round(form, ends, plan):
    algorithm = Pledged(
        rounds=40,
        batch_size=5,
        passes=2.5,
        ends=ends,
        commitment=(20, 24, 40),
        form=form,
        evaluate_every=7,
    )
    local, strategy = assert_agree(started(), algorithm, plan=plan)
    assert len(local.samples) < 40
    assert np.isfinite(local.accuracy[-1]).all()
    assert strategy.stopped == "PLEDGED needs no more samples from any client"


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_pledged_training_that_stops_at_its_goal_agrees(form):
    algorithm = Pledged(
        rounds=60,
        batch_size=5,
        passes=9,
        stop_after=2,
        evaluate_every=3,
        learning_rate=0.03,
        form=form,
    )
    local, _ = assert_agree(started(requirement=0.7), algorithm)
    assert len(local.samples) < 47
    assert local.satisfied.all()


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("gives", [30, 7, 0])
def test_models_are_earned_as_in_the_local_loop(form, gives):
    algorithm = Earned(
        rounds=40,
        batch_size=5,
        passes=3,
        learning_rate=0.03,
        form=form,
        evaluate_every=3,
        commitment=(30, 0, 20),
        reserve=(0, 24, 15),
        stop_after=9,
    )
    local, _ = assert_agree(started(), algorithm, plan=(gives, 0, 20))
    assert list(local.checkpoints) == (["client 0"] if gives < 30 else [])
    # Of seven points 12 draws were made before it left, which are worth four of 30.
    assert local.unique[-1].sum() == {30: 50, 7: 7 + 20 + 26, 0: 50}[gives]


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("plan", [None, [30, 0, 20]])
def test_who_is_released_leaves_with_the_same_model_in_the_same_round(form, plan):
    algorithm = Release(
        rounds=60, batch_size=6, learning_rate=0.03, form=form, evaluate_every=2, evaluations=2
    )
    local, strategy = assert_agree(started(requirement=0.8), algorithm, plan=plan)
    # Nobody brings anything any more, whoever of the others is still short.
    assert set(local.checkpoints) >= {"client 0", "client 2"}
    assert len({tuple(row > 0) for row in local.samples}) > 1
    assert strategy.stopped == "RELEASE needs no more samples from any client"


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("plan", [None, [30, 0, 40]])
def test_holding_back_agrees(optimizer, plan):
    rate = 0.02 if optimizer == "adam" else 0.2
    algorithm = HoldBack(
        rounds=50, batch_size=6, learning_rate=rate, optimizer=optimizer, evaluate_every=2
    )
    local, _ = assert_agree(started(requirement=0.8), algorithm, plan=plan)
    held = ((local.accuracy >= local.requirements).sum(axis=1) % 3) > 0
    assert held[:-1].any(), "nobody was ever held back for"


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_weights_that_fall_again_agree(form):
    algorithm = RelievedMwFed(rounds=25, batch_size=5, learning_rate=0.03, form=form, relief=1.5)
    local, strategy = assert_agree(started(requirement=0.8), algorithm)
    raised = [(local.accuracy[:, i] < 0.8).sum() * np.log(2) for i in range(3)]
    assert (np.array(list(strategy.weights.values())) < np.array(raised) - 0.1).any()


@dataclass(frozen=True, kw_only=True)
class LeavesOnAFew(Algorithm):
    """Looks at some points; each leaves at its first success, and all is over with the second."""

    @property
    def goal_test_points(self):
        return 9

    def init(self, clients):
        return np.zeros(clients, dtype=bool)

    def weights(self, state, accuracies, requirements):
        return state | (accuracies >= requirements)

    def left(self, state):
        return state

    def ended(self, state):
        return state.sum() >= 2


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("rounds", [40, 11, 10])
def test_who_ends_at_a_test_on_some_points_is_measured_on_all(form, rounds):
    algorithm = LeavesOnAFew(
        rounds=rounds, batch_size=4, learning_rate=0.02, form=form, evaluate_every=50
    )
    local, strategy = assert_agree(started(requirement=0.75), algorithm)
    # It ends in the tenth round; those before it had no evaluation at all.
    assert len(local.samples) == 10
    assert len(local.checkpoints) == 2
    assert np.isfinite(local.accuracy[-1]).all()
    assert np.isnan(local.accuracy[:-1]).all()
    assert (strategy.stopped is None) == (len(local.samples) == rounds)


@pytest.mark.parametrize("form", ["local", "pooled"])
def test_what_a_subclass_makes_of_the_model_is_what_the_next_round_starts_from(form):
    class Forgetful(AlgorithmStrategy):
        def aggregate_train(self, server_round, replies):
            arrays, metrics = super().aggregate_train(server_round, replies)
            return (arrays_of(federation) if server_round == 1 else arrays), metrics

    federation = started()
    algorithm = FedAvg(batch_size=4, form=form, optimizer="sgd", learning_rate=0.1)
    nodes = nodes_of(federation)
    strategy = Forgetful(requirements=0.9, algorithm=algorithm)
    result = run(strategy, federation, nodes, rounds=2)
    # The second round from the start: what the clients draw is all that the first one left behind.
    start = federation.weights["0.weight"]
    mean = sum(made(node, "0.weight", form, start) for node in nodes) / 3
    assert_allclose(result.arrays["0.weight"].numpy(), start - 0.1 * mean, rtol=1e-9)


def made(node, name, form, start):
    """Give the gradient that a client found in its last round, one step of a batch."""
    message = [m for m in node.heard if m.metadata.message_type == "train"][-1]
    found = node.answer(message).content["arrays"][name].numpy()
    return found if form == "pooled" else (start - found) / 0.1


def wide_linear():
    return torch.nn.Sequential(torch.nn.Linear(4, 30), torch.nn.Linear(30, 3)).double()


@pytest.mark.parametrize("form", ["local", "pooled"])
@pytest.mark.parametrize("goal_points", [None, 5])
def test_training_that_diverges_ends_in_the_same_round(form, goal_points):
    algorithm = MwFed(
        rounds=9,
        batch_size=5,
        learning_rate=1e308,
        optimizer="sgd",
        form=form,
        goal_points=goal_points,
        evaluate_every=4,
    )
    local, strategy = assert_agree(started(model=wide_linear), algorithm)
    assert local.diverged
    assert len(local.samples) < 9
    assert strategy.stopped.startswith("training diverged")
    assert not strategy.history.satisfied.any()


@settings(max_examples=12)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    data=st.data(),
    kind=st.sampled_from([FedAvg, MwFed, Pledged, Release]),
    form=st.sampled_from(["local", "pooled"]),
    optimizer=st.sampled_from(["adam", "sgd"]),
    batch_size=st.integers(1, 9),
    evaluate_every=st.integers(1, 3),
    requirement=st.sampled_from([0.05, 0.5, 0.7, 1.0]),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_small_run_agrees_with_the_local_loop(sizes, data, kind, form, requirement, seed, **s):
    plan = data.draw(st.tuples(*(st.integers(0, size) for size in sizes)).filter(any))
    federation = started(sizes, requirement=requirement)
    # Three rounds are enough for a quarter of twelve points at one a round.
    own = {"passes": 0.25} if kind is Pledged else {}
    assert_agree(federation, kind(rounds=3, form=form, **s, **own), plan=list(plan), seed=seed)
