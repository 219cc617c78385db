"""Clients and federations: a few lines for a user's own model, and sentences for what is wrong."""

import numpy as np
import pytest
import torch
from federation.small import blobs, linear_model, small_federation
from torch import nn

from fedaccord import InputError
from fedaccord.federation import clients
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.clients import Client, Federation
from fedaccord.federation.models.networks import Dropout
from fedaccord.federation.training.loop import train

POINTS = blobs(9, 0.0, seed=0)


def test_lists_arrays_and_tensors_are_taken_alike() -> None:
    inputs, labels = POINTS
    for points in (
        (inputs.tolist(), labels.tolist()),
        (inputs.astype(np.float32), labels.astype(np.uint8)),
        (torch.tensor(inputs), torch.tensor(labels)),
    ):
        client = Client("one", points, POINTS, requirement=0.5)
        assert client.points == 9
        assert client.labels.dtype is torch.int64


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"train": (np.zeros((0, 4)), [])}, "the training samples of one are empty"),
        ({"validation": (np.zeros((0, 4)), [])}, "the validation samples of one are empty"),
        ({"train": (np.zeros((3, 4)), [0, 1])}, "need one row of inputs per label"),
        ({"train": (np.full((2, 4), np.nan), [0, 1])}, "not finite .row 0.: fill in missing"),
        ({"train": (np.zeros((2, 4)), [0.5, 1])}, "labels that are not whole numbers"),
        ({"train": "text"}, "must be a pair of arrays"),
        ({"train": (np.array(["a"]), [0])}, "must be a pair of arrays"),
        ({"train": (np.zeros((2, 5)), [0, 1])}, "give both the same shape"),
        ({"requirement": 0.0}, "requirement of one must be an accuracy above 0"),
        ({"requirement": 70}, "requirement of one must be an accuracy above 0 and at most 1"),
        ({"requirement": "0.7"}, "requirement of one must be an accuracy"),
        ({"requirement": float("nan")}, "requirement of one must be"),
        ({"name": " "}, "a client has no name"),
    ],
)
def test_a_client_that_cannot_be_is_refused(arguments, sentence: str) -> None:
    given = {"name": "one", "train": POINTS, "validation": POINTS, "requirement": 0.5}
    with pytest.raises(InputError, match=sentence):
        Client(**{**given, **arguments})


SHARED = nn.Linear(4, 3)


def client(name: str, labels: list[int] | None = None, features: int = 4) -> Client:
    labels = labels or [0, 1, 2]
    points = (np.zeros((len(labels), features)), labels)
    return Client(name, points, points, requirement=0.5)


@pytest.mark.parametrize(
    ("clients", "model", "sentence"),
    [
        ([], linear_model, "at least one client"),
        ([client("a"), client("a")], linear_model, "two clients are called a"),
        ([client("a"), client("b", features=5)], linear_model, "inputs of b have shape"),
        ([client("a"), client("b", [0, 3])], linear_model, "b has the label 3, and the model"),
        ([client("a", [-1, 0])], linear_model, "a has the label -1, and the model knows 3 classes"),
        ([client("a")], lambda: nn.Linear(5, 3).double(), "the model does not accept inputs"),
        ([client("a")], nn.Linear(4, 3), "every run would continue it: pass a func"),
        ([client("a")], lambda: SHARED, "returns the same object twice: pass a function"),
        ([client("a")], lambda: nn.Flatten(0).double(), "one row of scores per input"),
    ],
)
def test_a_federation_that_cannot_be_is_refused(clients, model, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Federation(clients, model)


def test_inputs_are_given_to_the_model_in_the_type_of_its_parameters() -> None:
    inputs, labels = POINTS
    for given in (inputs, inputs.astype(np.float32), inputs[::-1], inputs.round().astype(int)):
        one = Client("one", (given, labels), (given, labels), requirement=0.5)
        for model in (lambda: nn.Linear(4, 3), linear_model):
            assert not train(Federation([one], model), FedAvg(rounds=1)).diverged


def test_what_becomes_of_the_arrays_later_is_nothing_to_the_client() -> None:
    inputs, labels = POINTS[0].copy(), POINTS[1].copy()
    inputs.setflags(write=True)
    one = Client("one", (inputs, labels), (inputs, labels), requirement=0.5)
    before = Federation([one], linear_model).fingerprint
    inputs[:] = np.nan
    assert Federation([one], linear_model).fingerprint == before


def test_a_class_that_a_client_lacks_is_no_hindrance() -> None:
    full, lacking = client("full", [0, 1, 2]), client("lacking", [0, 2, 2])
    history = train(Federation([full, lacking], linear_model), FedAvg(rounds=2))
    assert not history.diverged


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="the weights do not fit the model"):
        small_federation(weights={"weight": np.zeros((3, 4))})


class Squashed(nn.Module):
    """A model of which neither the parameters nor the text tell what it does."""

    def __init__(self, squash) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3).double()
        self.squash = squash

    def forward(self, inputs):
        return self.squash(self.layer(inputs))


def test_the_fingerprint_follows_everything_a_run_depends_on() -> None:
    def made(**changes):
        options = {"name": "a", "requirement": 0.5, "shift": 0.0, "model": linear_model}
        options.update(changes)
        points = blobs(9, options["shift"], seed=0)
        clients = [Client(options["name"], points, POINTS, options["requirement"])]
        return Federation(clients, options["model"], weights=options.get("weights")).fingerprint

    zeros = {"weight": np.zeros((3, 4)), "bias": np.zeros(3)}
    prints = [
        made(),
        made(name="b"),
        made(requirement=0.6),
        made(shift=1.0),
        made(model=lambda: nn.Linear(4, 4).double()),
        made(weights=zeros),
        made(model=lambda: Squashed(torch.relu)),
        made(model=lambda: Squashed(torch.tanh)),
    ]
    assert made() == prints[0]
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_tells_masks_by_client_from_those_of_old(monkeypatch) -> None:
    def fingerprints() -> list[str]:
        models = (linear_model, lambda: nn.Sequential(Dropout(64), linear_model()))
        return [small_federation(model=model).fingerprint for model in models]

    plain, masked = fingerprints()
    # As it was before dropout had a stream per client.
    monkeypatch.setattr(clients, "dropouts", lambda model: [])
    assert fingerprints()[0] == plain
    assert fingerprints()[1] != masked
