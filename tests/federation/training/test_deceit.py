"""Fake samples and fake updates: what a defector passes off as its contribution."""

import numpy as np
import pytest
import torch
from federation.small import linear_model, small_federation, two_layers

from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import FedAvg
from fedaccord.federation.defection.tactic import Tactic
from fedaccord.federation.training.deceit import FakeUpdates, deceive
from fedaccord.federation.training.loop import train
from fedaccord.federation.training.rng import draw_contribution

BROUGHT = np.array([20, 24, 30])
SHORT = FedAvg(rounds=6, batch_size=4, learning_rate=0.01, evaluate_every=3)


def fill(filler: str, genuine: int = 5):
    """Return the honest and the deceived client, and its genuine and its fake samples."""
    federation = small_federation()
    tactic = Tactic((0,), filler=filler, genuine=(genuine,))
    cheated = deceive(federation, BROUGHT, tactic, seed=3)
    given = draw_contribution("client 0", 30, 20, seed=3)
    for place in (1, 2):
        assert cheated.clients[place] is federation.clients[place] or torch.equal(
            cheated.clients[place].inputs, federation.clients[place].inputs
        )
    return federation.clients[0], cheated.clients[0], given[:genuine], given[genuine:]


@pytest.mark.parametrize("filler", ["copies", "labels", "noise"])
def test_genuine_samples_and_validation_are_left_alone(filler):
    honest, cheat, genuine, _ = fill(filler)
    assert torch.equal(honest.inputs[genuine], cheat.inputs[genuine])
    assert torch.equal(honest.labels[genuine], cheat.labels[genuine])
    assert torch.equal(honest.validation_inputs, cheat.validation_inputs)


def test_copies_are_copies_of_genuine_samples_with_their_labels():
    _, cheat, genuine, fake = fill("copies")
    rows = {
        (*row.tolist(), int(label))
        for row, label in zip(cheat.inputs[genuine], cheat.labels[genuine], strict=True)
    }
    assert len(rows) == 5
    copies = [
        (*row.tolist(), int(label))
        for row, label in zip(cheat.inputs[fake], cheat.labels[fake], strict=True)
    ]
    assert set(copies) == rows
    # Each genuine sample is copied equally often.
    assert {copies.count(row) for row in rows} == {3}


def test_shuffled_labels_keep_inputs_and_the_histogram_of_labels():
    honest, cheat, _, fake = fill("labels")
    assert torch.equal(honest.inputs, cheat.inputs)
    assert sorted(honest.labels[fake].tolist()) == sorted(cheat.labels[fake].tolist())
    assert not torch.equal(honest.labels[fake], cheat.labels[fake])


def test_noise_is_new_in_every_row_and_as_large_as_genuine_samples():
    honest, cheat, genuine, fake = fill("noise", genuine=10)
    rows = cheat.inputs[fake]
    assert len({tuple(row.tolist()) for row in rows}) == len(fake)
    known = {tuple(row.tolist()) for row in honest.inputs}
    assert not known & {tuple(row.tolist()) for row in rows}
    spread = honest.inputs[genuine].std(dim=0, correction=0)
    # Ten rows of noise scatter like the samples that they imitate, to a factor.
    assert ((rows.std(dim=0) / spread) < 2.5).all() and ((rows.std(dim=0) / spread) > 0.3).all()


def test_copies_of_nothing_are_refused():
    tactic = Tactic((0,), filler="copies", genuine=(0,))
    with pytest.raises(InputError, match="client 0 needs a genuine sample"):
        deceive(small_federation(), BROUGHT, tactic, seed=3)


def test_training_on_copies_equals_training_on_the_copied_data():
    """Deceit is nothing but other data: train the changed federation honestly, and compare."""
    federation = small_federation()
    tactic = Tactic((0,), filler="copies", genuine=(5,))
    deceived = train(federation, SHORT, contributions=BROUGHT, seed=3, tactic=tactic)
    changed = deceive(federation, BROUGHT, tactic, seed=3)
    honest = train(changed, SHORT, contributions=BROUGHT, seed=3)
    for name, weights in deceived.weights.items():
        assert np.array_equal(weights, honest.weights[name])
    # The server is told of as many samples as were pledged.
    assert deceived.unique[-1].tolist() == honest.unique[-1].tolist()
    plain = train(federation, SHORT, contributions=BROUGHT, seed=3)
    assert any(not np.array_equal(w, plain.weights[n]) for n, w in deceived.weights.items())


@pytest.mark.parametrize("form", ["pooled", "local"])
def test_an_idle_client_only_dilutes_the_update(form):
    """With plain gradient descent, a zero update in a mean of two equals half the step."""
    federation = small_federation((24, 24), model=linear_model)
    plain = {"rounds": 1, "batch_size": 24, "optimizer": "sgd", "form": form}
    slow = FedAvg(learning_rate=0.1, **plain)
    idle = train(federation, slow, seed=1, tactic=Tactic((1,), filler="idle"))
    alone = train(federation, FedAvg(learning_rate=0.05, **plain), contributions=[24, 0], seed=1)
    for name, weights in idle.weights.items():
        assert weights == pytest.approx(alone.weights[name], abs=1e-12)


def test_a_federation_of_idle_clients_learns_nothing():
    federation = small_federation(model=two_layers)
    everyone = Tactic((0, 1, 2), filler="idle")
    one = train(federation, SHORT, seed=1, tactic=everyone)
    two = train(federation, FedAvg(**{**vars(SHORT), "rounds": 1}), seed=1, tactic=everyone)
    assert all(np.array_equal(w, two.weights[n]) for n, w in one.weights.items())


def test_random_updates_are_as_large_as_the_last_change():
    fake = FakeUpdates(("a",), noisy=True, seed=1)
    zero = torch.zeros(50)
    assert torch.equal(fake.make("a", zero), zero)
    fake.observe(torch.full((4,), 3.0))
    first, second = fake.make("a", zero), fake.make("a", zero)
    assert float(first.norm()) == pytest.approx(6, rel=1e-5)
    assert not torch.equal(first, second)
    assert "a" in fake and "b" not in fake
