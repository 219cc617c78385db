"""The loop of training: against centralised learning, the plain loop, and planted faults."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from federation.small import (
    blobs,
    constant_model,
    linear_model,
    recorded,
    small_federation,
    two_layers,
)
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedaccord import Allocation, InputError
from fedaccord.federation.algorithms.base import Algorithm, FedAvg, Solo
from fedaccord.federation.algorithms.mw_fed import MwFed
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.training import loop as training
from fedaccord.federation.training.loop import train
from fedaccord.federation.training.reference import train_plainly

SGD = {"optimizer": "sgd", "learning_rate": 0.1}


def assert_same_weights(one, other, tolerance: float = 1e-10) -> None:
    assert one.weights.keys() == other.weights.keys()
    for name, value in one.weights.items():
        assert value == pytest.approx(other.weights[name], rel=tolerance, abs=tolerance), name


def assert_same_history(one, other, tolerance: float = 1e-10) -> None:
    assert one.samples.tolist() == other.samples.tolist()
    assert one.unique.tolist() == other.unique.tolist()
    assert one.loss == pytest.approx(other.loss, rel=tolerance, nan_ok=True)
    assert one.accuracy == pytest.approx(other.accuracy, nan_ok=True)
    assert_same_weights(one, other, tolerance)


# Against centralised learning


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_one_client_with_all_data_is_centralised_gradient_descent(form: str) -> None:
    inputs, labels = blobs(60, 0.5, seed=3)
    client = Client("all", (inputs, labels), blobs(12, 0.5, seed=4), requirement=0.9)
    start = {k: v.numpy().copy() for k, v in two_layers().state_dict().items()}
    federation = Federation([client], two_layers, weights=start)
    history = train(federation, FedAvg(rounds=20, batch_size=60, form=form, **SGD))

    # Every batch is all the data, so the order of the draws is nothing.
    model = two_layers()
    model.load_state_dict({k: torch.tensor(v) for k, v in start.items()})
    x, y = torch.tensor(inputs), torch.tensor(labels)
    for _ in range(20):
        model.zero_grad()
        cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    for name, value in model.state_dict().items():
        assert history.weights[name] == pytest.approx(value.numpy(), rel=1e-10, abs=1e-12)


def test_one_client_in_small_batches_is_centralised_sgd_over_shuffled_passes() -> None:
    start = {"layer.weight": np.full((3, 4), 0.01), "layer.bias": np.zeros(3)}
    federation, seen = recorded((12,), weights=start)
    history = train(federation, FedAvg(rounds=6, batch_size=4, **SGD), seed=5)
    order = [[int(p) for p in batch] for batch in seen]
    # Two passes of three batches, each with every point once.
    first, second = ([*a, *b, *c] for a, b, c in (order[:3], order[3:]))
    assert sorted(first) == sorted(second) == list(range(12))
    assert first != second

    weight, bias = torch.full((3, 4), 0.01, dtype=torch.float64), torch.zeros(3).double()
    client = federation.clients[0]
    for batch in order:
        weight.requires_grad_(), bias.requires_grad_()
        loss = cross_entropy(client.inputs[batch] @ weight.T + bias, client.labels[batch])
        slopes = torch.autograd.grad(loss, (weight, bias))
        weight, bias = (weight - 0.1 * slopes[0]).detach(), (bias - 0.1 * slopes[1]).detach()
    assert history.weights["layer.weight"] == pytest.approx(weight.numpy(), rel=1e-10, abs=1e-12)
    assert history.weights["layer.bias"] == pytest.approx(bias.numpy(), rel=1e-10, abs=1e-12)


def test_fedavg_with_one_local_batch_of_sgd_is_the_pooled_step() -> None:
    federation = small_federation()
    settings = {"rounds": 15, "batch_size": 8, **SGD}
    local = train(federation, FedAvg(form="local", **settings), seed=1)
    pooled = train(federation, FedAvg(form="pooled", **settings), seed=1)
    assert_same_weights(local, pooled)
    # With two local batches they part: the check above can fail.
    two = train(federation, FedAvg(form="local", local_batches=2, **settings), seed=1)
    one = train(federation, FedAvg(form="pooled", local_batches=2, **settings), seed=1)
    with pytest.raises(AssertionError):
        assert_same_weights(two, one)


def test_mw_fed_with_exact_counts_is_the_pooled_step_too_while_batches_are_whole() -> None:
    federation = small_federation(requirement=1.0)
    settings = {"rounds": 6, "batch_size": 64, "factor": 1.2, **SGD}
    # At one factor for all, nobody draws more than a batch of 64.
    local = train(federation, MwFed(form="local", **settings), seed=1)
    pooled = train(federation, MwFed(form="pooled", **settings), seed=1)
    assert local.samples.max() <= 64
    assert_same_weights(local, pooled)


# Against the plain loop


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("form", ["pooled", "local"])
@pytest.mark.parametrize(
    "algorithm",
    [
        FedAvg(rounds=8, batch_size=6, evaluate_every=3),
        FedAvg(rounds=5, batch_size=6, local_batches=3),
        MwFed(rounds=8, batch_size=6, factor=2.0),
        MwFed(rounds=8, batch_size=6, factor=2.0, goal_points=5, evaluate_every=4),
        MwFed(rounds=8, batch_size=6, factor=3.0, local_batches=2, counts="printed"),
    ],
    ids=["fedavg", "fedavg-3", "mw-fed", "mw-fed-sampled", "mw-fed-printed"],
)
def test_the_loop_gives_what_the_plain_loop_gives(algorithm, form: str, optimizer: str) -> None:
    settings = {**algorithm.to_dict(), "form": form, "optimizer": optimizer}
    settings.pop("kind")
    algorithm = type(algorithm)(**settings)
    federation = small_federation(requirement=0.85)
    options = {"contributions": [30, 7, 40], "seed": 11}
    fast = train(federation, algorithm, **options)
    plain = train_plainly(federation, algorithm, **options)
    # Adam divides by the size of gradients, which makes much of the last digits of small ones.
    assert_same_history(fast, plain, 1e-10 if optimizer == "sgd" else 1e-6)


def test_the_comparison_with_the_plain_loop_notices_another_seed() -> None:
    federation = small_federation()
    with pytest.raises(AssertionError):
        assert_same_history(
            train(federation, FedAvg(rounds=4, batch_size=6), seed=1),
            train_plainly(federation, FedAvg(rounds=4, batch_size=6), seed=2),
        )


def test_running_means_of_a_model_are_averaged_like_its_parameters() -> None:
    def model() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)).double()

    federation = small_federation(model=model)
    algorithm = FedAvg(rounds=3, batch_size=6, form="local", **SGD)
    fast, plain = train(federation, algorithm), train_plainly(federation, algorithm)
    assert fast.weights["0.running_mean"].any()
    assert fast.weights["0.running_mean"] == pytest.approx(plain.weights["0.running_mean"])


def test_samples_of_different_clients_do_not_mix_in_a_batch_norm() -> None:
    def model() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)).double()

    federation = small_federation(model=model)
    algorithm = FedAvg(rounds=4, batch_size=6, **SGD)
    assert_same_history(train(federation, algorithm), train_plainly(federation, algorithm))


@dataclass(frozen=True, kw_only=True)
class LouderFirst(FedAvg):
    """A user's algorithm: the first client counts for as much as all others."""

    def aggregate(self, updates: Sequence[Tensor], counts) -> Tensor:
        others = sum(updates[1:]) / (len(updates) - 1)
        return 0.5 * updates[0] + 0.5 * others


def test_an_algorithm_with_a_mean_of_its_own_is_heard_in_both_forms() -> None:
    federation = small_federation()
    settings = {"rounds": 5, "batch_size": 8, **SGD}
    pooled = train(federation, LouderFirst(**settings))
    local = train(federation, LouderFirst(form="local", **settings))
    assert_same_weights(pooled, local)
    assert_same_weights(pooled, train_plainly(federation, LouderFirst(**settings)))
    with pytest.raises(AssertionError):
        assert_same_weights(pooled, train(federation, FedAvg(**settings)))


@dataclass(frozen=True, kw_only=True)
class FewerForTheSatisfied(Algorithm):
    """A user's algorithm that reacts to the goal test and defines nothing else."""

    def weights(self, state, accuracies, requirements):
        return np.where(accuracies >= requirements, -1.0, 0.0)

    def allot(self, state):
        return np.where(state < 0, 1, self.batch_size)


def test_an_algorithm_that_reacts_to_the_goal_need_not_say_so() -> None:
    federation = small_federation(requirement=0.01)
    history = train(federation, FewerForTheSatisfied(rounds=3, batch_size=6))
    assert history.samples.tolist() == [[6, 6, 6], [1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("counts", [[-1, 4, 4], [1.5, 4, 4], [4, 4], [np.nan] * 3, [[4, 4, 4]]])
def test_counts_that_are_none_are_refused_with_the_name_of_the_algorithm(counts) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd(FedAvg):
        def allot(self, state):
            return np.array(counts)

    with pytest.raises(InputError, match="allot of Odd must return 3 whole numbers"):
        train(small_federation(), Odd(rounds=1))


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_a_round_in_which_nobody_draws_changes_nothing(form: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Resting(FedAvg):
        def allot(self, state):
            return np.zeros(len(state), dtype=int)

    federation = small_federation()
    algorithm = Resting(rounds=2, form=form)
    fast, plain = train(federation, algorithm), train_plainly(federation, algorithm)
    assert_same_history(fast, plain)
    assert not fast.diverged
    assert fast.samples.sum() == 0


@pytest.mark.parametrize("form", ["pooled", "local"])
@pytest.mark.parametrize("result", [None, 3.0, torch.zeros(2), np.zeros(59)])
def test_an_aggregate_that_is_no_update_is_refused(form: str, result) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd(FedAvg):
        def aggregate(self, updates, counts):
            return result

    with pytest.raises(InputError, match="aggregate of Odd must return a tensor like its"):
        train(small_federation(), Odd(rounds=1, form=form))


# A step of the server


@dataclass(frozen=True, kw_only=True)
class HeavyBall(FedAvg):
    """The server moves along the mean change, and on along its last move."""

    form: str = "local"
    momentum: float = 0.5

    def begin(self, contributions):
        return len(contributions), 0.0

    def allot(self, state):
        return np.full(state[0], self.batch_size)

    def advance(self, state, server, mean):
        move = mean - server + self.momentum * state[1]
        return server + move, (state[0], move)


def test_a_server_without_momentum_takes_the_mean_model() -> None:
    federation = small_federation()
    settings = {"rounds": 4, "batch_size": 6, **SGD}
    assert_same_weights(
        train(federation, HeavyBall(momentum=0, **settings), seed=3),
        train(federation, FedAvg(form="local", **settings), seed=3),
    )


def test_a_servers_momentum_is_that_of_gradient_descent() -> None:
    # One client, one batch of all data: torch's SGD with momentum makes the same steps.
    inputs, labels = blobs(30, 0.5, seed=3)
    client = Client("all", (inputs, labels), blobs(12, 0.5, seed=4), requirement=0.9)
    start = {k: v.numpy().copy() for k, v in two_layers().state_dict().items()}
    federation = Federation([client], two_layers, weights=start)
    history = train(federation, HeavyBall(rounds=8, batch_size=30, **SGD))

    model = two_layers()
    model.load_state_dict({k: torch.tensor(v) for k, v in start.items()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for _ in range(8):
        optimizer.zero_grad()
        cross_entropy(model(torch.tensor(inputs)), torch.tensor(labels)).backward()
        optimizer.step()
    for name, value in model.state_dict().items():
        assert history.weights[name] == pytest.approx(value.numpy(), rel=1e-9), name


def test_the_plain_loop_takes_the_same_steps_of_the_server() -> None:
    federation, algorithm = small_federation(), HeavyBall(rounds=5, batch_size=6, **SGD)
    assert_same_history(
        train(federation, algorithm, seed=2), train_plainly(federation, algorithm, seed=2)
    )


def test_a_step_of_the_server_that_could_not_be_taken_is_refused() -> None:
    with pytest.raises(InputError, match=r'HeavyBall has a method advance, .* set form = "local"'):
        HeavyBall(form="pooled")

    class Odd(HeavyBall):
        def advance(self, state, server, mean):
            return mean[:-1], state

    with pytest.raises(InputError, match="advance of Odd must return a tensor like its"):
        train(small_federation(), Odd(rounds=1, batch_size=4))
    assert not HeavyBall().runs_anywhere


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed) -> None:
    with pytest.raises(InputError, match="a seed must be a whole number"):
        train(small_federation(), FedAvg(rounds=1), seed=seed)


def test_weights_that_forget_to_return_the_state_are_told_so() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Forgetful(FedAvg):
        def weights(self, state, accuracies, requirements):
            state += 1

    with pytest.raises(InputError, match="weights of Forgetful returned None"):
        train(small_federation(), Forgetful(rounds=2))


def test_a_part_of_a_users_model_that_is_called_stream_is_left_alone() -> None:
    class Streamed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stream = nn.Linear(4, 3).double()

        def forward(self, inputs: Tensor) -> Tensor:
            return self.stream(inputs)

    assert not train(small_federation(model=Streamed), FedAvg(rounds=1)).diverged


# Random streams


def seen_of(client: int, seen) -> list[int]:
    points = [int(p) for batch in seen for p in batch]
    return [p - 1000 * client for p in points if p // 1000 == client]


def test_a_defector_draws_only_from_its_part_and_others_draw_as_before() -> None:
    federation, seen = recorded((40, 40, 40))
    algorithm = FedAvg(rounds=20, batch_size=8)
    history = train(federation, algorithm, seed=3)
    full = [seen_of(i, seen) for i in range(3)]
    cut = train(federation, algorithm, contributions=[40, 10, 40], seed=3)
    assert seen_of(0, seen) == full[0]
    assert seen_of(2, seen) == full[2]
    assert len(set(full[1])) == 40
    assert len(set(seen_of(1, seen))) == 10
    assert history.unique[-1].tolist() == [40, 40, 40]
    assert cut.unique[-1].tolist() == [40, 10, 40]


def test_a_smaller_contribution_is_part_of_a_larger_one() -> None:
    federation, seen = recorded((40, 40))
    brought = []
    for level in (40, 20, 10, 2):
        train(federation, FedAvg(rounds=20, batch_size=8), contributions=[40, level], seed=8)
        brought.append(set(seen_of(1, seen)))
    assert [len(points) for points in brought] == [40, 20, 10, 2]
    assert brought[0] > brought[1] > brought[2] > brought[3]


def test_another_seed_brings_other_points_in_another_order() -> None:
    federation, seen = recorded((40, 40))
    train(federation, FedAvg(rounds=3, batch_size=8), contributions=[40, 10], seed=1)
    first = set(seen_of(1, seen)), seen_of(0, seen)
    train(federation, FedAvg(rounds=3, batch_size=8), contributions=[40, 10], seed=2)
    assert first[0] != set(seen_of(1, seen))
    assert first[1] != seen_of(0, seen)


class Noisy(nn.Module):
    """A model that draws random numbers whenever it is used, in evaluation as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3).double()

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs) + 0.1 * torch.randn(len(inputs), 3, dtype=torch.float64)


def test_how_often_one_looks_does_not_change_what_is_learnt() -> None:
    federation = small_federation(model=Noisy)
    often = train(federation, FedAvg(rounds=12, batch_size=6, evaluate_every=1), seed=4)
    seldom = train(federation, FedAvg(rounds=12, batch_size=6, evaluate_every=12), seed=4)
    assert_same_weights(often, seldom, 0)


def test_an_evaluation_in_the_stream_of_training_would_be_noticed(monkeypatch) -> None:
    """The fault planted: evaluation draws from the generator that training goes on with."""

    def careless(model, inputs):
        with torch.inference_mode():
            return model(inputs)

    monkeypatch.setattr(training, "find_scores", careless)
    with pytest.raises(AssertionError):
        test_how_often_one_looks_does_not_change_what_is_learnt()


def test_goal_tests_on_drawn_points_leave_the_draws_of_training_alone() -> None:
    federation, seen = recorded((40, 40))
    logs = []
    for points in (1, 2, None):
        train(federation, MwFed(rounds=9, batch_size=8, factor=1.0, goal_points=points), seed=6)
        logs.append(copy.deepcopy(seen))
    assert logs[0] == logs[1] == logs[2]
    assert len(logs[0]) == 9


def test_the_same_seed_gives_the_same_run_bit_for_bit() -> None:
    federation = small_federation(model=Noisy)
    one = train(federation, MwFed(rounds=10, batch_size=6), seed=4)
    torch.rand(7)
    other = train(federation, MwFed(rounds=10, batch_size=6), seed=4)
    assert_same_history(one, other, 0)
    assert one.loss.tobytes() == other.loss.tobytes()


def test_training_leaves_torch_as_it_found_it() -> None:
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    threads = torch.get_num_threads()
    train(small_federation(model=Noisy), FedAvg(rounds=2, batch_size=6))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.rand(3), expected)


# What is told


def test_a_history_has_one_row_per_round_and_client_with_what_was_drawn() -> None:
    federation, seen = recorded((10, 30))
    history = train(federation, FedAvg(rounds=4, batch_size=4), seed=1)
    rows = list(history.rows())
    assert [(row[0], row[1]) for row in rows] == [
        (n, name) for n in (1, 2, 3, 4) for name in ("client 0", "client 1")
    ]
    assert [row[2] for row in rows] == [4] * 8
    assert [row[3] for row in rows] == [4, 4, 8, 8, 10, 12, 10, 16]
    assert len(set(seen_of(1, seen))) == 16


def test_the_first_loss_is_that_of_the_start_on_the_samples_drawn() -> None:
    start = constant_model([0.0, 0.0, 0.0])
    weights = {k: v.numpy() for k, v in start.state_dict().items()}
    history = train(small_federation(model=linear_model, weights=weights), FedAvg(rounds=1))
    assert history.loss[0] == pytest.approx([np.log(3)] * 3)


def test_accuracy_is_the_part_of_the_validation_points_named_right() -> None:
    points = (np.zeros((8, 4)), np.array([1, 1, 1, 0, 0, 0, 0, 2]))
    client = Client("one", points, points, requirement=0.5)
    model = constant_model([0.0, 1.0, 0.0])
    weights = {k: v.numpy() for k, v in model.state_dict().items()}
    federation = Federation([client], linear_model, weights=weights)
    history = train(federation, FedAvg(rounds=1, learning_rate=1e-12))
    assert history.final.tolist() == [3 / 8]
    assert history.satisfied.tolist() == [False]


def test_a_client_alone_learns_what_it_learns_in_a_federation_of_one() -> None:
    federation = small_federation()
    algorithm = Solo(rounds=6, batch_size=16)
    together = train(federation, algorithm, contributions=[30, 12, 40], seed=2)
    for i, brought in enumerate((30, 12, 40)):
        alone = train(
            federation.only(i), FedAvg(rounds=6, batch_size=16), contributions=[brought], seed=2
        )
        assert together.loss[:, i].tolist() == alone.loss[:, 0].tolist()
        assert together.final[i] == alone.final[0]


# Contributions


def test_who_brings_nothing_draws_nothing_and_takes_no_share_of_the_weights() -> None:
    federation = small_federation(requirement=1.0)
    history = train(
        federation, MwFed(rounds=30, batch_size=6, factor=4.0), contributions=[30, 0, 40]
    )
    assert history.samples[:, 1].sum() == 0
    assert (history.samples.sum(axis=1) > 0).all()
    assert np.isnan(history.loss[:, 1]).all()
    assert np.isfinite(history.accuracy[:, 1]).all()


def test_contributions_follow_names() -> None:
    allocation = Allocation([40, 5, 24], ["client 2", "client 0", "client 1"])
    history = train(small_federation(), FedAvg(rounds=1), contributions=allocation)
    assert history.contributions.tolist() == [5, 24, 40]
    by_name = {"client 2": 40, "client 0": 5, "client 1": 24}
    again = train(small_federation(), FedAvg(rounds=1), contributions=by_name)
    assert again.contributions.tolist() == [5, 24, 40]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([31, 24, 40], "client 0 cannot give 31 samples: it has 30"),
        ([30, 2.5, 40], "client 1 cannot give 2.5 samples; use a whole number"),
        ([30, 24], "3 clients need one contribution each; got 2"),
        ([0, 0, 0], "all contributions are 0"),
        ([30, -1, 40], "the contribution of agent 1 is negative"),
        ([30, float("nan"), 40], "not a number"),
    ],
)
def test_contributions_that_cannot_be_are_refused(given, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        train(small_federation(), FedAvg(rounds=1), contributions=given)


# Divergence


class Poisoned(nn.Module):
    """A model whose scores become NaN after so many training batches."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3).double()
        self.left = after

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.left -= 1
        return self.layer(inputs) * (torch.nan if self.left < 0 else 1.0)


@pytest.mark.parametrize("algorithm", [FedAvg(rounds=10), MwFed(rounds=10), Solo(rounds=10)])
def test_a_model_that_returns_nan_diverges_and_satisfies_nobody(algorithm) -> None:
    federation = small_federation(model=lambda: Poisoned(after=4), requirement=0.01)
    history = train(federation, algorithm)
    assert history.diverged
    assert not history.satisfied.any()
    assert len(history.samples) < 10


def test_a_last_step_into_infinity_diverges_too() -> None:
    federation = small_federation(model=linear_model, requirement=0.01)
    history = train(federation, FedAvg(rounds=1, optimizer="sgd", learning_rate=1e308))
    assert history.diverged
    assert not history.satisfied.any()


def test_a_class_ruled_out_by_minus_infinity_is_no_divergence() -> None:
    class Ruled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3).double()

        def forward(self, inputs: Tensor) -> Tensor:
            scores = self.layer(inputs)
            return torch.cat([scores, torch.full_like(scores[:, :1], -torch.inf)], dim=1)

    history = train(small_federation(model=Ruled), FedAvg(rounds=2))
    assert not history.diverged
    assert np.isfinite(history.final).all()


def test_one_solo_client_that_diverges_leaves_the_others_satisfied() -> None:
    clients = list(small_federation(requirement=0.01).clients)
    huge = (1e200 * clients[1].inputs.numpy(), clients[1].labels)
    clients[1] = Client("huge", huge, huge, requirement=0.01)
    history = train(Federation(clients, linear_model), Solo(rounds=5, **SGD))
    assert history.diverged
    assert history.satisfied.tolist() == [True, False, True]


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_batch_normalisation_bears_a_batch_of_one_sample(form):
    """One sample has no spread: torch refuses it, and an audit of 5 % must not die of that."""

    def normalised() -> nn.Module:
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)).double()

    federation = small_federation(model=normalised)
    single = FedAvg(rounds=3, batch_size=1, form=form)
    history = train(federation, single, contributions=[1, 24, 40], seed=1)
    assert not history.diverged
    assert np.isfinite(history.final).all()
    # Batches of more samples are normalised by their own spread, as ever.
    model = normalised().train()
    plain = training.set_gradient(model, *(torch.randn(5, 4).double(), torch.zeros(5).long()))
    assert len(plain) == 5 and model[1].training
