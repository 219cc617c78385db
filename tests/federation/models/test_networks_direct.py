"""The native block trains small networks as torch does, whatever the algorithm."""

import copy
from pkgutil import resolve_name

import numpy as np
import pytest
import torch
from torch import nn

from fedaccord.federation import Client, FedAvg, Federation, MwFed, train
from fedaccord.federation.algorithms import ALGORITHMS
from fedaccord.federation.defection.tactic import Tactic
from fedaccord.federation.models import fused as native
from fedaccord.federation.models import networks
from fedaccord.federation.models.networks import Perceptron, find_direct, model_factory
from fedaccord.federation.training import loop
from fedaccord.federation.training.steps import (
    FusedOptimizer,
    new_optimizer,
    new_torch_optimizer,
)

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
SETTINGS = {"rounds": 12, "batch_size": 6, "learning_rate": 0.02, "evaluate_every": 3}
# Adam stays with torch in the form that averages models.
LOCAL = ("local", "fedprox", "fedce")
OWN = {
    "pledged": {"rounds": 40},
    "earned": {"rounds": 40},
    "maxfl": {"thresholds": (1.0, 1.2, 0.9)},
    "fedprox": {"form": "local"},
    "fedce": {"form": "local"},
}
FORMS = {
    "descent": FedAvg(**SETTINGS | {"optimizer": "sgd", "learning_rate": 0.3}),
    "batches": FedAvg(**SETTINGS, local_batches=3),
    "local": FedAvg(**SETTINGS, form="local", local_batches=2),
    "local descent": FedAvg(**SETTINGS | {"optimizer": "sgd", "form": "local"}, local_batches=2),
    "drawn": MwFed(**SETTINGS, goal_points=20),
    **{
        kind: resolve_name(place)(**SETTINGS | OWN.get(kind, {}))
        for kind, (_, place) in ALGORITHMS.items()
    },
}


def make_federation(seed: int, *, name: str = "mlp", clients: int | None = None) -> Federation:
    """Deal random points of a few classes to a few clients."""
    random = np.random.default_rng(seed)
    classes, numbers = int(random.integers(2, 7)), int(random.integers(1, 20))
    centres = random.normal(size=(classes, numbers))

    def points(count: int):
        labels = random.integers(classes, size=count)
        inputs = centres[labels] + random.normal(size=(count, numbers))
        return inputs.astype(np.float32), labels

    count = int(random.integers(1, 5)) if clients is None else clients
    made = [
        Client(f"c{i}", points(int(random.integers(5, 40))), points(60), requirement=0.6)
        for i in range(count)
    ]
    return Federation(made, model=model_factory(name, (numbers,), classes))


def train_in_torch(monkeypatch, *arguments, **options):
    with monkeypatch.context() as patched:
        patched.setenv(native.SWITCH, "0")
        return train(*arguments, **options)


def assert_alike(one, other) -> None:
    """Object to runs that differ by more than rounding."""
    np.testing.assert_array_equal(one.satisfied, other.satisfied)
    np.testing.assert_array_equal(one.samples, other.samples)
    np.testing.assert_array_equal(one.unique, other.unique)
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(one.accuracy, other.accuracy, atol=1 / 60 + 1e-9)
    assert one.weights.keys() == other.weights.keys()
    for name, value in one.weights.items():
        np.testing.assert_allclose(value, other.weights[name], rtol=1e-3, atol=1e-4, err_msg=name)


def bytes_of(history) -> list[bytes]:
    arrays = [history.loss, history.accuracy, *history.weights.values()]
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize("name", ["mlp", "logistic"])
@pytest.mark.parametrize("kind", FORMS)
def test_every_algorithm_trains_as_in_torch(monkeypatch, kind, name) -> None:
    federation = make_federation(7, name=name, clients=3)
    used = count_uses(monkeypatch)
    one = train(federation, FORMS[kind], seed=5)
    assert ("perceptron_gradient" in used) == (kind not in LOCAL)
    used.clear()
    other = train_in_torch(monkeypatch, federation, FORMS[kind], seed=5)
    assert not used
    assert_alike(one, other)


def count_uses(monkeypatch) -> list[str]:
    used: list[str] = []
    run = native._run

    def note(name, *arguments):
        used.append(name)
        run(name, *arguments)

    monkeypatch.setattr(native, "_run", note)
    return used


def test_verdicts_are_those_of_torch_on_random_federations(monkeypatch) -> None:
    for seed in range(150):
        federation = make_federation(seed, name=("mlp", "logistic")[seed % 2])
        algorithm = (FORMS["fedavg"], FORMS["mw-fed"])[seed // 2 % 2]
        one = train(federation, algorithm, seed=seed)
        assert_alike(one, train_in_torch(monkeypatch, federation, algorithm, seed=seed))


@pytest.mark.parametrize("filler", ["idle", "random"])
def test_fake_updates_are_combined_as_in_torch(monkeypatch, filler) -> None:
    federation, tactic = make_federation(3, clients=3), Tactic((1,), filler)
    one = train(federation, FORMS["fedavg"], seed=2, tactic=tactic)
    assert_alike(
        one, train_in_torch(monkeypatch, federation, FORMS["fedavg"], seed=2, tactic=tactic)
    )


@pytest.mark.parametrize("fault", ["gradient", "losses", "rows", "scores"])
def test_the_comparison_with_torch_notices_faults(monkeypatch, fault) -> None:
    run, score = native.DirectNetwork.run, native.DirectNetwork.score

    def wrong_run(self, samples, clients, count):
        if fault == "rows":
            for at in samples:
                at.chosen = None
        losses = run(self, samples, clients, count)
        if fault == "gradient":
            self._slopes[0].neg_()
        return losses * 1.01 if fault == "losses" else losses

    def wrong_score(self, points):
        scores = score(self, points)
        return scores.flip(1) if fault == "scores" else scores

    monkeypatch.setattr(native.DirectNetwork, "run", wrong_run)
    monkeypatch.setattr(native.DirectNetwork, "score", wrong_score)
    federation = make_federation(7, clients=3)
    one = train(federation, FORMS["fedavg"], seed=5)
    with pytest.raises(AssertionError):
        assert_alike(one, train_in_torch(monkeypatch, federation, FORMS["fedavg"], seed=5))


def test_a_run_gives_the_same_bytes_alone_and_among_others() -> None:
    federations = [make_federation(seed) for seed in range(6)]
    for algorithm in (FORMS["fedavg"], FORMS["mw-fed"]):
        alone = [bytes_of(train(f, algorithm, seed=1)) for f in federations]
        for order in ([5, 4, 3, 2, 1, 0], [2, 0, 2, 5, 2]):
            for n in order:
                assert bytes_of(train(federations[n], algorithm, seed=1)) == alone[n]


@pytest.mark.parametrize("hidden", [0, 5, 64])
def test_the_scores_of_a_point_do_not_depend_on_the_points_beside_it(hidden) -> None:
    torch.manual_seed(0)
    network, points = find_direct(Perceptron(17, 10, hidden)), torch.randn(211, 17)
    assert network is not None
    every = network.score(points)
    for part in (slice(0, 1), slice(3, 10), slice(90, 200), slice(210, 211)):
        assert torch.equal(network.score(points[part]), every[part])


@pytest.mark.parametrize("hidden", [0, 1, 7, 64])
@pytest.mark.parametrize("rows", [1, 2, 6, 7, 33])
def test_gradients_are_those_of_exact_arithmetic(hidden, rows) -> None:
    torch.manual_seed(rows)
    for inputs, classes in ((1, 2), (13, 3), (64, 10), (16, 17)):
        model = Perceptron(inputs, classes, hidden)
        exact = copy.deepcopy(model).double()
        points, labels = torch.randn(rows, inputs), torch.randint(classes, (rows,))
        losses = loop.set_gradient(model, points, labels)
        assert find_direct(model) is not None and find_direct(exact) is None
        expected = loop.set_gradient(exact, points.double(), labels)
        torch.testing.assert_close(losses.double(), expected, rtol=1e-5, atol=1e-6)
        for one, other in zip(model.parameters(), exact.parameters(), strict=True):
            torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_what_is_not_finite_spreads_as_in_torch(monkeypatch, value, place) -> None:
    torch.manual_seed(1)
    model = Perceptron(6, 3, 9)
    with torch.no_grad():
        list(model.parameters())[place].view(-1)[0] = value
    other = copy.deepcopy(model)
    networks.keep_in_torch(other)
    points, labels = torch.randn(8, 6), torch.randint(3, (8,))
    one, two = (loop.set_gradient(m, points, labels) for m in (model, other))
    torch.testing.assert_close(one.isfinite(), two.isfinite())
    one, two = (loop.find_scores(m, points) for m in (model, other))
    torch.testing.assert_close(one, two, equal_nan=True, rtol=1e-4, atol=1e-5)


def derive() -> nn.Module:
    class Own(Perceptron):
        pass

    return Own(4, 3, 5)


def change(how) -> nn.Module:
    model = Perceptron(4, 3, 5)
    how(model)
    return model


OTHERS = {
    "derived": derive,
    "double": lambda: Perceptron(4, 3, 5).double(),
    "hook": lambda: change(lambda m: m.fc1.register_forward_hook(lambda *_: None)),
    "tensor hook": lambda: change(lambda m: m.fc1.weight.register_hook(lambda g: 2 * g)),
    "frozen": lambda: change(lambda m: m.fc1.requires_grad_(False)),
    "own forward": lambda: change(lambda m: setattr(m, "forward", lambda x: m.fc2(m.fc1(x)))),
    "other layer": lambda: change(lambda m: setattr(m, "fc1", nn.Identity())),
    "no bias": lambda: change(lambda m: setattr(m, "fc2", nn.Linear(5, 3, bias=False))),
    "weight norm": lambda: change(lambda m: nn.utils.parametrizations.weight_norm(m.fc1)),
    "torch": lambda: Perceptron(4, 3, 5, "torch"),
    "large": lambda: Perceptron(2000, 3, 64),
    "linear": lambda: nn.Linear(4, 3),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_networks_stay_with_torch(name) -> None:
    assert find_direct(Perceptron(4, 3, 5)) is not None
    assert find_direct(OTHERS[name]()) is None


LATER = {
    "double": lambda m: m.double(),
    "hook": lambda m: m.fc2.register_forward_hook(lambda *_: torch.zeros(6, 3)),
    "own forward": lambda m: setattr(m, "forward", lambda x: torch.zeros(6, 3)),
    "other parameters": lambda m: setattr(m.fc2, "weight", nn.Parameter(torch.zeros(3, 5))),
    "other layer": lambda m: setattr(m, "fc2", nn.Linear(5, 3)),
}


@pytest.mark.parametrize("name", LATER)
def test_a_network_that_changes_later_is_looked_at_again(name) -> None:
    model, points = Perceptron(4, 3, 5), torch.randn(6, 4)
    loop.find_scores(model, points)
    LATER[name](model)
    points = points.to(next(model.parameters()).dtype)
    with torch.no_grad():
        assert torch.allclose(loop.find_scores(model, points), model(points), atol=1e-5)


def test_a_network_that_is_frozen_later_gets_no_gradient() -> None:
    model = Perceptron(4, 3, 5)
    assert find_direct(model) is not None
    model.fc1.requires_grad_(False)
    assert find_direct(model) is None


def test_points_and_labels_that_do_not_fit_are_left_to_torch() -> None:
    model = Perceptron(4, 3, 5)
    network = find_direct(model)
    points, labels = torch.randn(6, 2, 2), torch.tensor([0, 1, 2, 0, 1, 2])
    assert network.takes(points) and network.takes(points, labels)
    assert not network.takes(points.double())
    assert not network.takes(torch.randn(6, 5))
    for wrong in (labels + 1, labels - 1, labels.float(), labels[:5], labels.int()):
        assert not network.takes(points, wrong)
    with pytest.raises((IndexError, RuntimeError)):
        loop.set_gradient(model, points, labels + 1)


def test_pretraining_does_not_depend_on_the_native_block(monkeypatch) -> None:
    from fedaccord.federation.data.pretraining import pretrain

    factory, random = model_factory("mlp", (8,), 3), np.random.default_rng(0)
    points = random.normal(size=(60, 8)).astype(np.float32), random.integers(3, size=60)
    options = {"batches": 20, "batch_size": 8, "validation": points}
    one = pretrain(factory, *points, **options)
    monkeypatch.setenv(native.SWITCH, "0")
    other = pretrain(factory, *points, **options)
    assert one.record == other.record
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_fingerprints_do_not_depend_on_the_native_block(monkeypatch) -> None:
    found = make_federation(4).fingerprint
    monkeypatch.setenv(native.SWITCH, "0")
    assert make_federation(4).fingerprint == found


# Optimizers.


@pytest.mark.parametrize("kind", ["adam", "sgd"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_optimizers_step_as_torchs_own_to_the_last_bit(kind, dtype) -> None:
    torch.manual_seed(0)
    one = nn.Sequential(nn.Linear(13, 7), nn.Linear(7, 3), nn.Linear(3, 3)).to(dtype)
    two = copy.deepcopy(one)
    mine = new_optimizer(one, kind, 0.03)
    assert isinstance(mine, FusedOptimizer)
    theirs = new_torch_optimizer(two.parameters(), kind, 0.03)
    for step in range(9):
        for a, b in zip(one.parameters(), two.parameters(), strict=True):
            a.grad = torch.randn_like(a) * 10.0 ** (step - 4)
            b.grad = a.grad.clone()
        if step % 3 == 1:
            # The loss does not depend on a layer in every step.
            one[1].zero_grad()
            two[1].zero_grad()
        mine.step()
        theirs.step()
        assert all(map(torch.equal, one.parameters(), two.parameters()))
    with torch.no_grad():
        one[0].bias += 1e-6
    assert not all(map(torch.equal, one.parameters(), two.parameters()))


def test_parameters_of_two_types_get_torchs_own_optimizer() -> None:
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    assert isinstance(new_optimizer(mixed, "adam", 0.1), torch.optim.Adam)
