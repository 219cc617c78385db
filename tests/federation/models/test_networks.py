"""Networks give what their sentences say, and dropout does not depend on how a batch is cut."""

import copy
import pickle

import numpy as np
import pytest
import torch
from federation.networks import assert_near, generator, results, seeded
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from fedaccord.errors import InputError
from fedaccord.federation.models import fused as native
from fedaccord.federation.models.networks import Dropout, ModelFactory, PaperNet, model_factory

ENGINES = ["eager", "torch", "native"]


def engine_or_skip(name):
    if name == "native" and not native.available():
        pytest.skip(native.why_not())
    return name


@pytest.fixture(autouse=True)
def one_thread_and_one_seed():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
    torch.set_num_threads(before)


def batch(rows=6):
    torch.manual_seed(3)
    return torch.rand(rows, 1, 28, 28), torch.randint(47, (rows,))


@pytest.mark.parametrize(("drop", "scale"), [(64, 4 / 3), (128, 2.0), (1, 256 / 255)])
def test_dropout_drops_where_the_streams_byte_is_below_drop_and_scales_the_rest(drop, scale):
    layer = Dropout(drop)
    layer.stream = generator(5)
    found = layer(torch.ones(40, 64))
    words = generator(5).integers(2**64 - 1, size=40 * 8, dtype=np.uint64, endpoint=True)
    byte = words.view(np.uint8).reshape(40, 64)
    assert torch.equal(found == 0, torch.from_numpy(byte < drop))
    assert torch.allclose(found[found != 0], torch.tensor(scale, dtype=torch.float32), rtol=1e-6)
    assert 0.5 * drop / 256 < (found == 0).double().mean() < 1.5 * drop / 256


@pytest.mark.parametrize("shape", [(48,), (13,), (3, 5)])
@pytest.mark.parametrize("cuts", [[4, 4, 2], [1] * 10, [0, 7, 0, 3]])
def test_dropout_is_the_same_for_a_batch_whole_and_in_parts(shape, cuts):
    values = torch.rand(10, *shape) + 1
    layer = Dropout(100)
    layer.stream = generator(8)
    whole = layer(values)
    layer.stream = generator(8)
    parts = torch.cat([layer(part) for part in values.split(cuts)])
    assert torch.equal(whole, parts)
    layer.stream = generator(9)
    assert not torch.equal(layer(values), whole)


def test_dropout_without_a_stream_follows_torchs_generator():
    layer, values = Dropout(128), torch.ones(5, 32)
    torch.manual_seed(1)
    first, second = layer(values), layer(values)
    torch.manual_seed(1)
    assert torch.equal(layer(values), first)
    assert not torch.equal(first, second)


def test_dropout_changes_nothing_in_evaluation_and_draws_nothing():
    layer = Dropout(128)
    layer.stream = generator(0)
    values = torch.rand(4, 8)
    assert layer.eval()(values) is values
    assert layer.stream.integers(2**63) == generator(0).integers(2**63)
    assert Dropout(0)(values) is values
    assert repr(layer) == "Dropout(p=0.5)"


@pytest.mark.parametrize("drop", [-1, 256])
def test_dropout_of_nothing_known_is_refused(drop):
    with pytest.raises(InputError, match=f"from 0 to 255, of 256; got {drop}"):
        Dropout(drop)


def test_dropout_passes_gradients_where_it_passed_values():
    layer = Dropout(64)
    layer.stream = generator(2)
    values = torch.ones(3, 16, requires_grad=True)
    found = layer(values)
    found.sum().backward()
    assert torch.equal(values.grad, found.detach())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_papers_network_is_the_one_of_stock_layers(engine):
    network = PaperNet(47, engine_or_skip(engine)).eval()
    stock = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(128, 47),
    ).double().eval()  # fmt: skip
    state = dict(zip(stock.state_dict(), network.state_dict().values(), strict=True))
    # Stock layers order features by channel, then by position.
    by_position = state["7.weight"].reshape(128, 144, 64)
    state["7.weight"] = by_position.transpose(1, 2).reshape(128, 9216)
    stock.load_state_dict(state)
    images, _ = batch()
    expected = {"scores": stock(images.double()).detach()}
    assert_near({"scores": network(images).detach()}, expected)
    with pytest.raises(AssertionError):
        assert_near({"scores": network(images.flip(0)).detach()}, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_all_engines_give_the_plain_networks_scores_and_gradients(engine):
    plain = seeded(PaperNet(47, "eager").double())
    images, labels = batch()
    expected = results(plain, images.double(), labels)
    network = seeded(PaperNet(47, engine_or_skip(engine)), plain.state_dict())
    assert_near(results(network, images, labels), expected)
    # Another mask of dropout is another result.
    network = seeded(PaperNet(47, engine), plain.state_dict())
    network.dropout1.stream = generator(99)
    with pytest.raises(AssertionError):
        assert_near(results(network, images, labels), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cuts", [[3, 3], [1, 5], [2, 0, 4]])
def test_gradients_of_parts_add_up_to_the_whole_batchs(engine, cuts):
    network = seeded(PaperNet(47, engine_or_skip(engine)))
    images, labels = batch()
    whole = results(network, images, labels)
    seeded(network).train().zero_grad()
    for some_images, some_labels in zip(images.split(cuts), labels.split(cuts), strict=True):
        (cross_entropy(network(some_images), some_labels, reduction="sum") / 6).backward()
    found = {name: weight.grad for name, weight in network.named_parameters()}
    # Stock torch sums batches of other sizes in other orders, to about this exactness.
    assert_near(found, {name: whole[name] for name in found}, 1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_images_may_come_without_the_axis_of_their_channel(engine):
    network = PaperNet(10, engine_or_skip(engine)).eval()
    images, _ = batch()
    with torch.no_grad():
        assert torch.equal(network(images), network(images[:, 0]))
        assert network(images).shape == (6, 10)
        assert network(images[:0]).shape == (0, 10)


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (2, 3, 28, 28), (28, 28), (2, 784)])
def test_the_papers_network_says_which_images_it_takes(shape):
    with pytest.raises(InputError, match="images of 28 x 28; got shape"):
        PaperNet()(torch.zeros(shape))


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="one of auto, native, torch, eager; got 'gpu'"):
        PaperNet(47, "gpu")
    with pytest.raises(InputError, match="one of auto, native, torch, eager; got 'gpu'"):
        model_factory("mlp", (8,), 3, engine="gpu")()


@pytest.mark.parametrize(
    ("name", "shape", "predicts", "words"),
    [
        ("mlp", (8,), "classes", "switched off by FEDACCORD_NATIVE"),
        ("logistic", (8,), "classes", "switched off by FEDACCORD_NATIVE"),
        ("mlp", (2000,), "classes", "up to 65,536 parameters, and this one has 128,259"),
        ("cnn", (8, 8), "classes", "does not compute the model 'cnn'"),
        ("mlp", (8,), "amounts", "does not compute models of amounts"),
        ("linear", (8,), "times", "does not compute models of times"),
    ],
)
def test_no_network_is_trained_in_torch_where_the_config_insists_on_the_native_block(
    name, shape, predicts, words, monkeypatch
):
    monkeypatch.setenv("FEDACCORD_NATIVE", "0")
    assert model_factory(name, shape, 3, predicts=predicts)() is not None
    with pytest.raises(InputError, match=rf'{words}.*; use engine="auto" to train'):
        model_factory(name, shape, 3, engine="native", predicts=predicts)()


def test_a_copied_network_trains_like_the_original():
    network = seeded(PaperNet())
    images, labels = batch()
    twin = copy.deepcopy(network)
    expected = results(network, images, labels)
    for name, value in results(twin, images, labels).items():
        assert torch.equal(value, expected[name])


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("paper", (28, 28), 47),
        ("paper", (1, 28, 28), 10),
        ("cnn", (8, 8), 10),
        ("cnn", (3, 9, 12), 4),
        ("mlp", (13,), 2),
        ("logistic", (1, 8, 8), 10),
    ],
)
def test_a_factory_makes_fresh_networks_that_fit_and_survives_pickling(name, shape, classes):
    factory = model_factory(name, shape, classes)
    again = pickle.loads(pickle.dumps(factory))
    assert again == factory
    points = torch.rand(5, *shape)
    network = again().eval()
    assert network(points).shape == (5, classes)
    assert not torch.equal(network(points), again().eval()(points))
    torch.manual_seed(7)
    first = factory().eval()(points)
    torch.manual_seed(7)
    assert torch.equal(first, factory().eval()(points))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resnet", (28, 28), 10), r"no model 'resnet'; known are paper \(.*\); cnn .*logistic"),
        (("paper", (8, 8), 10), "'paper' takes images of 28 x 28; got 8 x 8: use 'cnn' or 'mlp'"),
        (("paper", (3, 28, 28), 10), "got 3 x 28 x 28"),
        (("cnn", (13,), 2), "'cnn' takes images from 4 x 4; got 13: use 'mlp'"),
        (("cnn", (8, 3), 2), "got 8 x 3"),
        (("mlp", (13,), 1), "at least 2 classes to tell apart; got 1"),
        (("mlp", (), 2), "at least one number"),
        (("mlp", (0,), 2), "at least one number"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        model_factory(*arguments)


def test_a_factory_passes_the_engine_on():
    assert model_factory("paper", (28, 28), 47, engine="eager")().engine == "eager"
    assert ModelFactory("paper", (28, 28), 47).engine == "auto"


@pytest.mark.parametrize(("name", "goal"), [("cnn", 0.9), ("mlp", 0.85), ("logistic", 0.85)])
def test_small_networks_learn_the_digits(name, goal):
    digits = load_digits()
    inputs = torch.tensor(digits.images / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    network = model_factory(name, (8, 8), 10)()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for rows in torch.randint(1200, (120, 64)):
        optimizer.zero_grad()
        cross_entropy(network(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    right = network.eval()(inputs[1200:]).argmax(dim=1) == labels[1200:]
    assert right.double().mean() > goal
